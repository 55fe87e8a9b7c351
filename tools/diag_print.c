/* Diagnostics as text through diag_render, as JSON through jansson. */
#include "tools/diag_print.h"

#include "verify/check.h"

#include <stdio.h>
#include <stdlib.h>

#if EXO_WITH_JSON
#include <jansson.h>

/* The string as UTF-8: bytes that are none become U+FFFD. */
static json_t *json_text(const char *s)
{
    json_t *j = json_string(s);
    if (j)
        return j;
    StrBuf b = { 0 };
    for (; *s; s++)
        if ((unsigned char)*s < 128)
            strbuf_addc(&b, *s);
        else
            strbuf_add(&b, "\xef\xbf\xbd");
    j = json_string(strbuf_text(&b));
    strbuf_free(&b);
    return j;
}

static json_t *json_place(const Ctx *ctx, Loc loc)
{
    if (!loc.file)
        return json_null();
    json_t *j = json_object();
    json_object_set_new(j, "file", json_text(ctx_source_name(ctx, loc.file)));
    json_object_set_new(j, "line", json_integer(loc.line));
    json_object_set_new(j, "column", json_integer(loc.col));
    return j;
}

static json_t *json_or_null(const char *s)
{
    return s ? json_text(s) : json_null();
}

static json_t *json_note(const Ctx *ctx, const Diag *d)
{
    json_t *j = json_object();
    json_object_set_new(j, "message", json_text(d->message));
    json_object_set_new(j, "place", json_place(ctx, d->loc));
    return j;
}

static void print_json(const Ctx *ctx, const Diag *d, StrBuf *out)
{
    json_t *j = json_object(), *notes = json_array();
    for (const Diag *n = d->notes; n; n = n->next)
        json_array_append_new(notes, json_note(ctx, n));
    json_object_set_new(j, "version", json_integer(1));
    json_object_set_new(j, "severity", json_text(severity_name(d->severity)));
    json_object_set_new(j, "code", json_text(d->code));
    const Hazard *rule = hazard_find(d->code);
    json_object_set_new(j, "rule", json_or_null(rule ? rule->text : NULL));
    json_object_set_new(j, "message", json_text(d->message));
    json_object_set_new(j, "place", json_place(ctx, d->loc));
    json_object_set_new(j, "notes", notes);
    json_object_set_new(j, "fix", json_or_null(d->fix));
    json_object_set_new(j, "witness", json_or_null(d->witness));
    char *text = json_dumps(j, JSON_PRESERVE_ORDER);
    if (text)
        strbuf_addf(out, "%s\n", text);
    free(text);
    json_decref(j);
}
#else
static void print_json(const Ctx *ctx, const Diag *d, StrBuf *out)
{
    diag_render(ctx, d, out);
}
#endif

bool diag_format_available(DiagFormat format)
{
    return format == DIAG_text || EXO_WITH_JSON;
}

void diag_print(const Ctx *ctx, const Diag *d, DiagFormat format, StrBuf *out)
{
    if (format == DIAG_json)
        print_json(ctx, d, out);
    else
        diag_render(ctx, d, out);
}

void diag_print_new(const Ctx *ctx, const Diag **last, DiagFormat format)
{
    StrBuf s = { 0 };
    const Diag *d = *last ? (*last)->next : ctx_diags(ctx);
    for (; d; d = d->next) {
        diag_print(ctx, d, format, &s);
        *last = d;
    }
    if (s.data)
        fputs(s.data, stderr);
    strbuf_free(&s);
}

void diag_print_rest(const Ctx *ctx, DiagFormat format)
{
    unsigned shown = 0;
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        shown += d->severity == SEV_error;
    unsigned rest = ctx_error_count(ctx) - ctx_repeated_count(ctx) - shown;
    if (rest && format == DIAG_text)
        fprintf(stderr, "%u more error%s not shown: see --max-errors\n", rest,
                rest == 1 ? "" : "s");
}
