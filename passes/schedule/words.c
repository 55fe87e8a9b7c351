/* Splitting lines. Back-quotes, quotes and brackets hold blanks together. */
#include "passes/schedule/words.h"

#include <string.h>

const char *word_end(const char *p)
{
    int depth = 0;
    char quote = 0;
    for (; *p; p++) {
        if (quote) {
            quote = *p == quote ? 0 : quote;
        } else if (*p == '`' || *p == '"' || *p == '\'') {
            quote = *p;
        } else if (strchr("([{", *p)) {
            depth++;
        } else if (strchr(")]}", *p)) {
            depth--;
        } else if (depth <= 0 && (*p == ' ' || *p == '\t')) {
            break;
        }
    }
    return p;
}

char *line_without_comment(Arena *arena, const char *line, size_t n)
{
    char *s = arena_strndup(arena, line, n);
    char quote = 0;
    size_t len = 0;
    for (; s[len]; len++) {
        char c = s[len];
        if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '`' || c == '"')
            quote = c;
        else if (c == '#' && (!len || strchr(" \t", s[len - 1])))
            break;
    }
    while (len && strchr(" \t\r", s[len - 1]))
        len--;
    s[len] = 0;
    return s;
}

/* `key=` before a value, where key is a plain word. */
static size_t key_length(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz_0123456789");
    return n && word[n] == '=' && word[n + 1] != '=' ? n : 0;
}

static void unknown_op(Ctx *ctx, Loc loc, const char *name)
{
    const SchedOther *other = sched_other_find(name);
    Diag *d = diag_error(ctx, loc, "schedule", "no operator '%s'", name);
    if (other)
        diag_fix(ctx, d, "write %s: %s", other->write, other->why);
    else
        diag_fix(ctx, d, "exo-opt --list-schedule-ops lists them");
}

static void add_word(Arena *arena, Loc loc, const char *text, const char *p,
                     const char *end, SchedText *out)
{
    size_t key = key_length(p);
    out->loc = (Loc){ loc.file, loc.line, (uint32_t)(p - text + 1) };
    if (key) {
        out->key = arena_strndup(arena, p, key);
        p += key + 1;
    }
    out->text = arena_strndup(arena, p, (size_t)(end - p));
}

bool step_parse(Ctx *ctx, Arena *arena, Loc loc, const char *text, Step *out)
{
    *out = (Step){ .loc = loc };
    const char *p = text + strspn(text, " \t");
    const char *end = word_end(p), *after = end + strspn(end, " \t");
    if (*after == '=' && after[1] != '=') {
        out->bind = ctx_intern_n(ctx, p, (size_t)(end - p));
        p = after + 1 + strspn(after + 1, " \t");
        end = word_end(p);
    }
    const char *name = arena_strndup(arena, p, (size_t)(end - p));
    out->op = sched_op_find(name);
    if (!out->op) {
        loc.col = (uint32_t)(p - text + 1);
        unknown_op(ctx, loc, name);
        return false;
    }
    for (p = end + strspn(end, " \t"); *p; p = end + strspn(end, " \t")) {
        end = word_end(p);
        if (out->n == SCHED_MAX_ARGS) {
            diag_error(ctx, loc, "schedule", "more than %d arguments",
                       SCHED_MAX_ARGS);
            return false;
        }
        add_word(arena, loc, text, p, end, &out->args[out->n++]);
    }
    return true;
}
