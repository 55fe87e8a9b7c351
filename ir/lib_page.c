/* The page on the library's instructions, as Markdown.
 *
 * What stands in an entry's text is what the page says: its lines are taken as
 * they are, one clause after the other, and only sorted into tables. A family
 * is one entry. Summaries first: name, unit, timeline, how it is lowered. */
#include "ir/lib_entry.h"

#include <string.h>

typedef struct Span {
    const char *at;
    size_t n;
} Span;

static Span trimmed(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\n'))
        end--;
    return (Span){ at, (size_t)(end - at) };
}

/* Adds text on one line. */
static void add_span(StrBuf *out, Span s)
{
    bool blank = false;
    for (size_t i = 0; i < s.n; i++) {
        bool space = s.at[i] == ' ' || s.at[i] == '\n';
        if (!space || !blank)
            strbuf_addc(out, space ? ' ' : s.at[i]);
        blank = space;
    }
}

static void add_code(StrBuf *out, Span s)
{
    strbuf_addc(out, '`');
    add_span(out, s);
    strbuf_addc(out, '`');
}

/* The first `stop` outside brackets and strings from `at` on, or the end. */
static const char *find_outside(const char *at, const char *end, char stop)
{
    int depth = 0;
    char quote = 0;
    for (; at < end; at++) {
        if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '\'' || *at == '"')
            quote = *at;
        else if (*at == stop && depth == 0)
            return at;
        else if (strchr("([{", *at))
            depth++;
        else if (strchr(")]}", *at))
            depth--;
    }
    return end;
}

/* ---- clauses ------------------------------------------------------------- */

typedef struct Clause {
    Span key, rest; /* the rest of its first line, or of all its lines */
    Span lines;     /* those below the first */
} Clause;

static const char *line_end(const char *at, const char *end)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    return stop ? stop + 1 : end;
}

/* The clause that starts at *at, which moves behind it; false at the end. */
static bool next_clause(const char **at, const char *end, Clause *c)
{
    const char *p = *at;
    while (p < end && *p == '\n')
        p++;
    if (p >= end)
        return false;
    const char *stop = line_end(p, end), *below = stop;
    while (stop < end && (*stop == '\n' || !strncmp(stop, "     ", 5)))
        stop = line_end(stop, end);
    Span first = trimmed(p, below);
    size_t n = 0;
    while (n < first.n && first.at[n] != ' ' && first.at[n] != ':')
        n++;
    c->key = (Span){ first.at, n };
    c->rest = trimmed(first.at + n, first.at + first.n);
    c->lines = (Span){ below, (size_t)(stop - below) };
    *at = stop;
    return true;
}

static bool is(Span s, const char *word)
{
    return s.n == strlen(word) && !strncmp(s.at, word, s.n);
}

/* ---- one entry ----------------------------------------------------------- */

/* `NAME head: rest` of a clause without its key: both sides of the colon. */
static void split_clause(Span rest, Span *head, Span *tail)
{
    const char *end = rest.at + rest.n;
    const char *colon = find_outside(rest.at, end, ':');
    *head = trimmed(rest.at, colon);
    *tail = trimmed(colon < end ? colon + 1 : end, end);
}

/* The words of the access clause of a parameter. */
static Span access_words(const char *clauses, const char *end, Span name)
{
    Clause c;
    Span head, words;
    while (next_clause(&clauses, end, &c)) {
        split_clause(c.rest, &head, &words);
        if (is(c.key, "access") && head.n == name.n &&
            !strncmp(head.at, name.at, name.n))
            return words;
    }
    return (Span){ name.at, 0 };
}

/* A row for each parameter of a list, with its access where it has one. */
static void add_params(StrBuf *out, Span list, const char *what,
                       const char *clauses, const char *end)
{
    const char *at = list.at, *stop = list.at + list.n;
    while (at < stop) {
        const char *comma = find_outside(at, stop, ',');
        Span name, type;
        split_clause(trimmed(at, comma), &name, &type);
        Span words = access_words(clauses, end, name);
        strbuf_addf(out, "| %s ", what);
        add_code(out, name);
        strbuf_add(out, " | ");
        add_code(out, type);
        if (words.n) {
            strbuf_add(out, ", ");
            add_span(out, words);
        }
        strbuf_add(out, " |\n");
        at = comma + 1;
    }
}

static void add_clause(StrBuf *out, const Clause *c)
{
    Span head, tail;
    if (is(c->key, "access") || is(c->key, "body"))
        return;
    strbuf_add(out, "| ");
    add_span(out, c->key);
    strbuf_add(out, " | ");
    split_clause(c->rest, &head, &tail);
    if (tail.n > 1 && tail.at[0] == '"')
        tail = (Span){ tail.at + 1, tail.n - 2 };
    if (is(c->key, "ptx")) {
        add_span(out, head);
        strbuf_add(out, ": ");
        add_code(out, tail);
    } else if (is(c->key, "where")) {
        add_code(out, head);
        strbuf_add(out, ": ");
        add_span(out, tail);
    } else {
        add_code(out, c->rest);
    }
    strbuf_add(out, " |\n");
}

/* A body's lines, less the eight blanks before each. */
static void add_body(StrBuf *out, Span lines)
{
    const char *at = lines.at, *end = lines.at + lines.n;
    strbuf_add(out, "\n```\n");
    while (at < end) {
        const char *stop = line_end(at, end);
        size_t blanks = strspn(at, " ");
        size_t cut = blanks < 8 ? blanks : 8;
        if (*at != '\n')
            strbuf_addn(out, at + cut, (size_t)(stop - at) - cut);
        at = stop;
    }
    if (out->data[out->len - 1] != '\n')
        strbuf_addc(out, '\n');
    strbuf_add(out, "```\n");
}

/* The entry's name, as in its text. */
static Span entry_name(const AstDecl *d)
{
    const char *at = d->text + strlen("instr "), *end = d->text + d->len;
    const char *stop = at;
    while (stop < end && *stop != '[' && *stop != '(')
        stop++;
    return trimmed(at, stop);
}

/* The list between brackets at *at, which moves behind it. */
static Span take_list(const char **at, const char *end, char open, char close)
{
    if (*at >= end || **at != open)
        return (Span){ *at, 0 };
    const char *stop = find_outside(*at + 1, end, close);
    Span list = trimmed(*at + 1, stop);
    *at = stop < end ? stop + 1 : end;
    return list;
}

/* A comment without the lines that head a part of the file. */
static void add_comment(StrBuf *out, const char *text)
{
    const char *end = text ? text + strlen(text) : NULL;
    size_t before = out->len;
    for (const char *next; text < end; text = next) {
        next = line_end(text, end);
        Span line = trimmed(text, next);
        if (line.n == 0 || !strncmp(line.at, "----", 4))
            continue;
        strbuf_addn(out, line.at, line.n);
        strbuf_addc(out, '\n');
    }
    if (out->len > before)
        strbuf_addc(out, '\n');
}

static void add_entry(StrBuf *out, const AstDecl *d)
{
    Span name = entry_name(d);
    const char *at = name.at + name.n, *end = d->text + d->len;
    Span targs = take_list(&at, end, '[', ']');
    Span params = take_list(&at, end, '(', ')');
    const char *clauses = line_end(at, end), *p = clauses;
    Clause c;
    strbuf_add(out, "\n### ");
    add_code(out, name);
    strbuf_add(out, "\n\n");
    add_comment(out, d->comment);
    strbuf_add(out, "| | |\n|---|---|\n");
    add_params(out, params, "argument", clauses, end);
    add_params(out, targs, "template", clauses, end);
    while (next_clause(&p, end, &c))
        add_clause(out, &c);
    for (p = clauses; next_clause(&p, end, &c);)
        if (is(c.key, "body"))
            add_body(out, c.lines);
}

/* ---- the page ------------------------------------------------------------ */

static void add_summary(StrBuf *out, const AstDecl *d)
{
    const char *end = d->text + d->len;
    const char *p = line_end(find_outside(d->text, end, ':'), end);
    const char *const keys[] = { "unit", "timeline" };
    const char *clauses = p;
    Clause c;
    strbuf_add(out, "| ");
    add_code(out, entry_name(d));
    for (unsigned i = 0; i < 2; i++) {
        strbuf_add(out, " | ");
        for (p = clauses; next_clause(&p, end, &c);)
            if (is(c.key, keys[i]))
                add_code(out, c.rest);
    }
    strbuf_add(out, " | ");
    bool hook = false, ptx = false;
    for (p = clauses; next_clause(&p, end, &c);)
        if (is(c.key, "hook")) {
            strbuf_add(out, "hook ");
            add_code(out, c.rest);
            hook = true;
        } else if (is(c.key, "ptx")) {
            ptx = true;
        }
    strbuf_addf(out, "%s |\n", !ptx ? "" : hook ? ", PTX" : "PTX");
}

/* The last part of the path of the file that an entry stands in. */
static const char *file_of(const Lib *lib, const AstDecl *d)
{
    const char *path = ctx_source_name(lib->ctx, d->loc.file);
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

static void each_instr(const Lib *lib, StrBuf *out,
                       void (*add)(StrBuf *out, const AstDecl *d),
                       const char *between)
{
    const AstDecl *last = NULL;
    const char *file = "";
    for (size_t i = 0; i < lib->entries.len; i++) {
        const AstDecl *d = lib->entries.data[i]->decl;
        if (d == last || d->kind != AST_instr)
            continue;
        if (strcmp(file, file_of(lib, d)) != 0) {
            file = file_of(lib, d);
            strbuf_addf(out, "\n## lib/%s\n%s", file, between);
        }
        add(out, d);
        last = d;
    }
}

void lib_print_page(const Lib *lib, StrBuf *out)
{
    strbuf_add(out, "# The instructions\n\nMade from lib/*.exo by `exo-opt "
                    "--list-instructions=markdown`; change the entries. What "
                    "each clause means: adding-an-instruction.md.\n\n"
                    "A name with `{..}` is a family: its `rank` clause lists "
                    "the members.\n");
    each_instr(lib, out, add_summary,
               "\n| instruction | unit | timeline | by |\n|---|---|---|---|\n");
    strbuf_add(out, "\n# Each of them\n");
    each_instr(lib, out, add_entry, "");
}
