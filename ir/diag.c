/* The context: sources, interned strings and structures, diagnostics. */
#include "ir/diag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Source {
    const char *name, *text;
    size_t n;
} Source;

typedef struct Interned {
    struct Interned *next;
    size_t n;
    uint64_t hash;
    void *bytes;
} Interned;

typedef struct Table {
    Interned **bucket;
    size_t n_buckets, n;
} Table;

typedef struct AtFree {
    void (*fn)(void *what);
    void *what;
    struct AtFree *next;
} AtFree;

struct Ctx {
    Arena *arena;
    AtFree *at_free;
    VEC(Source) sources;
    Table strings, uniques;
    Diag *first, *last;
    unsigned n_errors, n_repeated, max_errors;
};

Ctx *ctx_new(void)
{
    Arena *arena = arena_new();
    Ctx *ctx = ARENA_NEW(arena, Ctx);
    ctx->arena = arena;
    ctx->max_errors = 20;
    return ctx;
}

void ctx_at_free(Ctx *ctx, void (*fn)(void *what), void *what)
{
    AtFree *f = ARENA_NEW(ctx->arena, AtFree);
    *f = (AtFree){ fn, what, ctx->at_free };
    ctx->at_free = f;
}

void ctx_free(Ctx *ctx)
{
    if (!ctx)
        return;
    for (AtFree *f = ctx->at_free; f; f = f->next)
        f->fn(f->what);
    arena_free(ctx->arena);
}

Arena *ctx_arena(Ctx *ctx)
{
    return ctx->arena;
}

static void table_grow(Ctx *ctx, Table *t)
{
    size_t n = t->n_buckets ? t->n_buckets * 2 : 256;
    Interned **bucket = ARENA_ARRAY(ctx->arena, Interned *, n);
    for (size_t i = 0; i < t->n_buckets; i++)
        for (Interned *e = t->bucket[i], *next; e; e = next) {
            next = e->next;
            e->next = bucket[e->hash % n];
            bucket[e->hash % n] = e;
        }
    t->bucket = bucket;
    t->n_buckets = n;
}

static void *table_get(Ctx *ctx, Table *t, const void *p, size_t n)
{
    if (t->n >= t->n_buckets)
        table_grow(ctx, t);
    uint64_t h = hash_bytes(HASH_SEED, p, n);
    Interned **slot = &t->bucket[h % t->n_buckets];
    for (Interned *e = *slot; e; e = e->next)
        if (e->hash == h && e->n == n && !memcmp(e->bytes, p, n))
            return e->bytes;
    Interned *e = ARENA_NEW(ctx->arena, Interned);
    *e = (Interned){ *slot, n, h, arena_alloc(ctx->arena, n + 1) };
    memcpy(e->bytes, p, n);
    *slot = e;
    t->n++;
    return e->bytes;
}

const char *ctx_intern_n(Ctx *ctx, const char *s, size_t n)
{
    return table_get(ctx, &ctx->strings, s, n);
}

const char *ctx_intern(Ctx *ctx, const char *s)
{
    return ctx_intern_n(ctx, s, strlen(s));
}

const void *ctx_unique(Ctx *ctx, const void *p, size_t n)
{
    return table_get(ctx, &ctx->uniques, p, n);
}

uint32_t ctx_add_source(Ctx *ctx, const char *name, const char *text, size_t n)
{
    Source s = { arena_strdup(ctx->arena, name),
                 arena_strndup(ctx->arena, text, n), n };
    VEC_PUSH(ctx->arena, &ctx->sources, s);
    return (uint32_t)ctx->sources.len;
}

const char *ctx_source_name(const Ctx *ctx, uint32_t file)
{
    if (file == 0 || file > ctx->sources.len)
        return "<unknown>";
    return ctx->sources.data[file - 1].name;
}

const char *ctx_source_text(const Ctx *ctx, uint32_t file, size_t *n)
{
    if (file == 0 || file > ctx->sources.len) {
        *n = 0;
        return "";
    }
    *n = ctx->sources.data[file - 1].n;
    return ctx->sources.data[file - 1].text;
}

/* Of the mark of UTF-8 with which some editors begin a file. */
static size_t bom_length(const StrBuf *text)
{
    return text->len >= 3 && !memcmp(text->data, "\xEF\xBB\xBF", 3) ? 3 : 0;
}

uint32_t ctx_read_source(Ctx *ctx, const char *path)
{
    bool standard = !strcmp(path, "-");
    FILE *f = standard ? stdin : fopen(path, "rb");
    if (!f) {
        diag_error(ctx, (Loc){ 0 }, "file", "cannot open '%s': %s", path,
                   strerror(errno));
        return 0;
    }
    StrBuf text = { 0 };
    char chunk[1 << 14];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        strbuf_addn(&text, chunk, n);
    bool bad = ferror(f) != 0;
    int why = errno;
    if (!standard)
        fclose(f);
    uint32_t file = 0;
    if (bad)
        diag_error(ctx, (Loc){ 0 }, "file", "cannot read '%s': %s", path,
                   strerror(why));
    else
        file = ctx_add_source(ctx, standard ? "<stdin>" : path,
                              strbuf_text(&text) + bom_length(&text),
                              text.len - bom_length(&text));
    strbuf_free(&text);
    return file;
}

/* Was this error reported already, at the same place? Looked for among the
 * first thousand. */
static bool is_repeated(const Ctx *ctx, const Diag *d)
{
    unsigned left = 1000;
    for (const Diag *o = ctx->first; o && d->loc.line && left--; o = o->next)
        if (o->severity == SEV_error && o->loc.line == d->loc.line &&
            o->loc.col == d->loc.col && o->loc.file == d->loc.file &&
            !strcmp(o->message, d->message))
            return true;
    return false;
}

static Diag *diag_add(Ctx *ctx, Severity sev, Loc loc, const char *code,
                      const char *fmt, va_list ap)
{
    Diag *d = ARENA_NEW(ctx->arena, Diag);
    d->severity = sev;
    d->loc = loc;
    d->code = code;
    d->message = arena_vprintf(ctx->arena, fmt, ap);
    if (sev == SEV_error) {
        bool again = is_repeated(ctx, d);
        ctx->n_errors++;
        ctx->n_repeated += again;
        if (again || (ctx->max_errors &&
                      ctx->n_errors - ctx->n_repeated > ctx->max_errors))
            return d;
    }
    if (ctx->last)
        ctx->last->next = d;
    else
        ctx->first = d;
    ctx->last = d;
    return d;
}

CtxMark ctx_mark(const Ctx *ctx)
{
    return (CtxMark){ ctx->last, ctx->n_errors, ctx->n_repeated };
}

void ctx_rollback(Ctx *ctx, CtxMark mark)
{
    if (mark.last)
        mark.last->next = NULL;
    else
        ctx->first = NULL;
    ctx->last = mark.last;
    ctx->n_errors = mark.n_errors;
    ctx->n_repeated = mark.n_repeated;
}

const Diag *ctx_diags_since(const Ctx *ctx, CtxMark mark)
{
    return mark.last ? mark.last->next : ctx->first;
}

#define DIAG_BODY(sev)                                \
    va_list ap;                                       \
    va_start(ap, fmt);                                \
    Diag *d = diag_add(ctx, sev, loc, code, fmt, ap); \
    va_end(ap);                                       \
    return d

Diag *diag_error(Ctx *ctx, Loc loc, const char *code, const char *fmt, ...)
{
    DIAG_BODY(SEV_error);
}

Diag *diag_warning(Ctx *ctx, Loc loc, const char *code, const char *fmt, ...)
{
    DIAG_BODY(SEV_warning);
}

Diag *diag_remark(Ctx *ctx, Loc loc, const char *code, const char *fmt, ...)
{
    DIAG_BODY(SEV_remark);
}

void diag_note(Ctx *ctx, Diag *d, Loc loc, const char *fmt, ...)
{
    Diag *note = ARENA_NEW(ctx->arena, Diag);
    note->severity = SEV_note;
    note->loc = loc;
    note->code = d->code;
    va_list ap;
    va_start(ap, fmt);
    note->message = arena_vprintf(ctx->arena, fmt, ap);
    va_end(ap);
    Diag **at = &d->notes;
    while (*at)
        at = &(*at)->next;
    *at = note;
}

void diag_fix(Ctx *ctx, Diag *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    d->fix = arena_vprintf(ctx->arena, fmt, ap);
    va_end(ap);
}

void diag_witness(Ctx *ctx, Diag *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    d->witness = arena_vprintf(ctx->arena, fmt, ap);
    va_end(ap);
}

const Diag *ctx_diags(const Ctx *ctx)
{
    return ctx->first;
}

unsigned ctx_error_count(const Ctx *ctx)
{
    return ctx->n_errors;
}

unsigned ctx_repeated_count(const Ctx *ctx)
{
    return ctx->n_repeated;
}

void ctx_set_max_errors(Ctx *ctx, unsigned n)
{
    ctx->max_errors = n;
}

void ctx_clear_diags(Ctx *ctx)
{
    ctx->first = ctx->last = NULL;
    ctx->n_errors = ctx->n_repeated = 0;
}

const char *severity_name(Severity s)
{
    static const char *const names[] = { "error", "warning", "remark", "note" };
    return names[s];
}

/* The line's text, cut to a readable length around nothing: at most 160 bytes;
 * control bytes show as '?'. */
static void render_line(const Ctx *ctx, Loc loc, StrBuf *out)
{
    enum { WIDEST = 160 };
    size_t n, at = 0;
    const char *text = ctx_source_text(ctx, loc.file, &n);
    for (uint32_t line = 1; line < loc.line; line++) {
        const char *end = memchr(text + at, '\n', n - at);
        if (!end)
            return;
        at = (size_t)(end - text) + 1;
    }
    strbuf_add(out, "  ");
    for (size_t i = at; i < n && text[i] != '\n' && i - at < WIDEST; i++)
        strbuf_addc(out, text[i] == '\t'               ? ' '
                         : (unsigned char)text[i] < 32 ? '?'
                                                       : text[i]);
    strbuf_add(out, "\n");
    if (loc.col == 0 || loc.col > WIDEST)
        return;
    strbuf_add(out, "  ");
    for (uint32_t i = 1; i < loc.col; i++)
        strbuf_addc(out, ' ');
    strbuf_add(out, "^\n");
}

static void render_one(const Ctx *ctx, const Diag *d, StrBuf *out)
{
    if (d->loc.file)
        strbuf_addf(out, "%s:%u:%u: ", ctx_source_name(ctx, d->loc.file),
                    d->loc.line, d->loc.col);
    strbuf_addf(out, "%s: %s\n", severity_name(d->severity), d->message);
    if (d->loc.file && d->loc.line)
        render_line(ctx, d->loc, out);
    if (d->witness)
        strbuf_addf(out, "  witness: %s\n", d->witness);
    if (d->fix)
        strbuf_addf(out, "  help: %s\n", d->fix);
}

void diag_render(const Ctx *ctx, const Diag *d, StrBuf *out)
{
    render_one(ctx, d, out);
    for (const Diag *note = d->notes; note; note = note->next)
        render_one(ctx, note, out);
}
