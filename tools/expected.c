/* Expected diagnostics: read from the text, struck off one by one. */
#include "tools/expected.h"

#include <stdlib.h>
#include <string.h>

typedef struct Expected {
    Severity severity;
    uint32_t line; /* 0: a diagnostic without a place */
    const char *text;
    bool seen;
} Expected;

typedef VEC(Expected) ExpectedVec;

typedef struct Matching {
    const Ctx *ctx;
    uint32_t file;
    Arena *arena;
    ExpectedVec expected;
    StrBuf *out;
    bool ok;
} Matching;

/* `@+1`, `@above` and the like behind the word; moves on. */
static uint32_t target_line(const char **at, uint32_t line)
{
    if (**at != '@')
        return line;
    const char *s = *at + 1;
    char *end = NULL;
    if (!strncmp(s, "above", 5)) {
        *at = s + 5;
        return line - 1;
    }
    if (!strncmp(s, "below", 5)) {
        *at = s + 5;
        return line + 1;
    }
    if (!strncmp(s, "unknown", 7)) {
        *at = s + 7;
        return 0;
    }
    long offset = strtol(s, &end, 10);
    *at = end;
    return (uint32_t)((long)line + offset);
}

/* The expectation at s, which lies before end, if it is one. */
static void read_one(Matching *m, const char *s, const char *end, uint32_t line)
{
    Expected e = { .severity = SEV_error };
    bool known = false;
    for (int i = SEV_error; i <= SEV_note && !known; i++) {
        const char *word = severity_name((Severity)i);
        if (strncmp(s, word, strlen(word)))
            continue;
        e.severity = (Severity)i;
        s += strlen(word);
        known = true;
    }
    if (!known)
        return;
    e.line = target_line(&s, line);
    s += strspn(s, " ");
    if (s[0] != '{' || s[1] != '{')
        return;
    const char *close = strstr(s, "}}");
    if (!close || close > end)
        return;
    e.text = arena_strndup(m->arena, s + 2, (size_t)(close - s - 2));
    VEC_PUSH(m->arena, &m->expected, e);
}

static void read_expected(Matching *m)
{
    static const char word[] = "expected-";
    size_t n;
    const char *text = ctx_source_text(m->ctx, m->file, &n);
    const char *end = text + n, *at = text;
    for (uint32_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            stop = end;
        const char *copy = arena_strndup(m->arena, at, (size_t)(stop - at));
        for (const char *s = copy; (s = strstr(s, word));) {
            s += sizeof word - 1;
            read_one(m, s, copy + (stop - at), line);
        }
        at = stop + 1;
    }
}

/* Remarks need not be expected. */
static void strike_off(Matching *m, const Diag *d)
{
    uint32_t line = d->loc.file == m->file ? d->loc.line : 0;
    bool found = false;
    for (size_t i = 0; i < m->expected.len && !found; i++) {
        Expected *e = &m->expected.data[i];
        found = e->severity == d->severity && e->line == line && !e->seen &&
                strstr(d->message, e->text);
        e->seen |= found;
    }
    if (!found && d->severity != SEV_remark) {
        m->ok = false;
        strbuf_add(m->out, "not expected: ");
        diag_render(m->ctx, d, m->out);
    }
}

/* Notes need not be expected; when they are, they must be there. */
static void strike_off_notes(Matching *m, const Diag *d)
{
    for (const Diag *note = d->notes; note; note = note->next) {
        uint32_t line = note->loc.file == m->file ? note->loc.line : 0;
        for (size_t i = 0; i < m->expected.len; i++) {
            Expected *e = &m->expected.data[i];
            if (e->severity == SEV_note && e->line == line && !e->seen &&
                strstr(note->message, e->text)) {
                e->seen = true;
                break;
            }
        }
    }
}

bool expected_match(const Ctx *ctx, uint32_t file, StrBuf *out)
{
    Matching m = {
        .ctx = ctx, .file = file, .arena = arena_new(), .out = out, .ok = true
    };
    read_expected(&m);
    for (const Diag *d = ctx_diags(ctx); d; d = d->next) {
        strike_off(&m, d);
        strike_off_notes(&m, d);
    }
    for (size_t i = 0; i < m.expected.len; i++) {
        const Expected *e = &m.expected.data[i];
        if (e->seen)
            continue;
        m.ok = false;
        strbuf_addf(out, "%s:%u: expected %s not reported: %s\n",
                    ctx_source_name(ctx, file), e->line,
                    severity_name(e->severity), e->text);
    }
    arena_free(m.arena);
    return m.ok;
}
