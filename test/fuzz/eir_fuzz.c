/* Fuzzes the .eir text and the general passes: any bytes are read without a
 * crash; what is read prints as text that reads back to the same text, with and
 * without locations; the passes leave a well-formed module well-formed. */
#include "ir/eir.h"
#include "ir/wellformed.h"
#include "passes/pass.h"
#include "passes/prove.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Module *read_text(Ctx *ctx, const char *name, const StrBuf *text)
{
    return eir_parse(
        ctx, ctx_add_source(ctx, name, strbuf_text(text), text->len), NULL);
}

static void check_text(Ctx *ctx, const Module *m, bool locs)
{
    EirPrintOptions options = { .locs = locs, .derived = true };
    StrBuf once = { 0 }, again = { 0 };
    eir_print(m, &options, &once);
    Module *back = read_text(ctx, "printed", &once);
    if (!back)
        panic("printed text does not read back:\n%s", strbuf_text(&once));
    eir_print(back, &options, &again);
    if (once.len != again.len ||
        memcmp(strbuf_text(&once), strbuf_text(&again), once.len))
        panic("printed text changes:\n%s\nto\n%s", strbuf_text(&once),
              strbuf_text(&again));
    strbuf_free(&once);
    strbuf_free(&again);
    module_free(back);
}

static void check_passes(Ctx *ctx, Module **m)
{
    static const char text[] = "canonicalize,cse,dce,inline,canonicalize";
    Arena *arena = arena_new();
    PassManager pm = { .ctx = ctx, .verify_each = true };
    pm.prover = prover_layer1(arena);
    Pipeline p = { 0 };
    if (!pipeline_parse(ctx, text, &p))
        panic("the pipeline does not parse");
    ctx_clear_diags(ctx);
    pipeline_run(&pm, &p, m);
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        if (!strcmp(d->code, "internal"))
            panic("%s", d->message);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Ctx *ctx = ctx_new();
    uint32_t file = ctx_add_source(ctx, "input", (const char *)data, size);
    Module *m = eir_parse(ctx, file, NULL);
    if (m) {
        bool sound = module_wellformed(m, NULL);
        check_text(ctx, m, false);
        check_text(ctx, m, true);
        if (sound) {
            check_passes(ctx, &m);
            check_text(ctx, m, false);
        }
        module_free(m);
    }
    StrBuf s = { 0 };
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        diag_render(ctx, d, &s);
    strbuf_free(&s);
    ctx_free(ctx);
    return 0;
}
