/* What nvdisasm and cuobjdump print of kernels that ship, without encodings and
 * blanks, against the lowered kernels (test/unit/sass/): as it is, with an
 * instruction of one role dropped and one like it done in another, so that the
 * kernel's counts stay equal, and with one done elsewhere in its role. */
#include "ir/eir.h"
#include "ir/lib.h"
#include "verify/async/sass.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char folder[] = EXO_SOURCE_DIR "/test/unit/sass";

/* One of a mnemonic is moved to behind one of another: from the first, or the
 * last, behind the first, or the last. */
typedef struct Move {
    const char *kernel, *ending;
    const char *what, *behind; /* NULL: nothing is moved */
    bool from_last, to_last;
    /* Of the fault, or found of what leaves it open and no role; NULL: it is
     * proved. */
    const char *found, *role;
} Move;

static const char tn[] = "gemm_sm90_bf16";
static const char pingpong[] = "gemm_sm90_bf16_pingpong";
static const char split[] = "gemm_bf16_64x64_s4";

static const Move moves[] = {
    { tn, "nvdisasm", NULL, NULL, 0, 0, NULL, NULL },
    { pingpong, "nvdisasm", NULL, NULL, 0, 0, NULL, NULL },
    { split, "cuobjdump", NULL, NULL, 0, 0, NULL, NULL },
    { tn, "nvdisasm", "HGMMA", "UTMALDG", 0, 0, "3 of HGMMA for 4", "math" },
    { tn, "nvdisasm", "UTMALDG", "HGMMA", 0, 0, "1 of UTMALDG for 2", "load" },
    { tn, "nvdisasm", "UTMALDG", "UTMASTG", 0, 0, "1 of UTMALDG for 2",
      "load" },
    { tn, "nvdisasm", "UTMASTG", "UTMALDG", 1, 0, "3 of UTMASTG for 4",
      "load" },
    { tn, "nvdisasm", "SYNCS.ARRIVE.TRANS64.A1T0", "HGMMA", 0, 0,
      "of SYNCS.ARRIVE.TRANS64.A1T0 for", "load" },
    { tn, "nvdisasm", "SYNCS.PHASECHK", "WARPGROUP.DEPBAR", 0, 0,
      "0 of SYNCS.PHASECHK for 1", "load" },
    { tn, "nvdisasm", "SYNCS.PHASECHK", "UTMALDG", 1, 0,
      "9 of SYNCS.PHASECHK for 5", "math" },
    { tn, "nvdisasm", "FENCE.VIEW.ASYNC", "UTMASTG", 1, 0,
      "3 of FENCE.VIEW.ASYNC for 4", "math" },
    { tn, "nvdisasm", "USETMAXREG.DEALLOC", "USETMAXREG.TRY_ALLOC", 0, 0,
      "0 of USETMAXREG for 1", "load" },
    { tn, "nvdisasm", "WARPGROUP.ARRIVE", "UTMALDG", 0, 0,
      "0 of WARPGROUP.ARRIVE for 1", "math" },
    { tn, "nvdisasm", "STSM", "UTMASTG", 0, 0, "of STSM for", "math" },
    { tn, "nvdisasm", "SYNCS.EXCH", "HGMMA", 0, 0, "11 of SYNCS.EXCH for 12",
      "load" },
    { tn, "nvdisasm", "UCGABAR_ARV", "HGMMA", 1, 0, "1 of UCGABAR_ARV for 2",
      "load" },
    { pingpong, "nvdisasm", "HGMMA", "UTMALDG", 0, 0, "7 of HGMMA for 8",
      "math" },
    { pingpong, "nvdisasm", "SYNCS.ARRIVE.TRANS64.A1T0", "UTMALDG", 1, 0,
      "of SYNCS.ARRIVE.TRANS64.A1T0 for", "" },
    { split, "cuobjdump", "HGMMA", "UTMALDG", 1, 0, "of HGMMA for", "math" },
    { split, "cuobjdump", "LD.E.128", "UTMALDG", 0, 0, "7 of LD.E for 8",
      "math" },
    { split, "cuobjdump", "ACQBULK", "UTMALDG", 0, 0, "0 of ACQBULK for 1",
      "" },
    { tn, "nvdisasm", "SYNCS.ARRIVE.TRANS64.RED.A0TR", "UTMALDG", 0, 0, NULL,
      NULL },
    { tn, "nvdisasm", "UTMALDG", "ELECT", 0, 0,
      "comes where the kernel has 'cp.async.bulk.tensor.load'", NULL },
    { tn, "nvdisasm", "UTMALDG.2D.MULTICAST", "SYNCS.ARRIVE.TRANS64.RED.A1T0",
      0, 0, "A1T0 comes where the kernel has 'cp.async.bulk.tensor.load'",
      NULL },
    { tn, "nvdisasm", "UTMASTG", "UTMACMDFLUSH", 0, 0,
      "UTMACMDFLUSH comes where the kernel has", NULL },
    { tn, "nvdisasm", "UTMACMDFLUSH", "DEPBAR", 0, 0,
      "A1T0 comes where the kernel has 'cp.async.bulk.wait_group'", NULL },
    { tn, "nvdisasm", "WARPGROUP.DEPBAR", "@P1 SYNCS.ARRIVE.TRANS64.RED.A1T0",
      0, 0, "comes where the kernel has 'wgmma.wait_group'", NULL },
    { tn, "nvdisasm", "FENCE.VIEW.ASYNC", "@P1 SYNCS.ARRIVE.TRANS64.A1T0", 1, 1,
      "'fence.proxy.async'; thread", NULL },
    { tn, "nvdisasm", "UCGABAR_ARV", "UCGABAR_WAIT", 0, 0,
      "UCGABAR_ARV comes where the kernel has", NULL },
    { pingpong, "nvdisasm", "HGMMA", "WARPGROUP.DEPBAR", 0, 0,
      "comes where the kernel has 'wgmma.mma_async'", NULL },
    { split, "cuobjdump", "UTMALDG", "ELECT", 0, 0, "UTMALDG.2D comes where",
      NULL },
};

static char *read_text(const char *name, const char *ending)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
    FILE *f = fopen(path, "rb");
    cr_assert(f, "no %s", path);
    char *text = calloc(1, 1 << 17);
    size_t n = text ? fread(text, 1, (1 << 17) - 1, f) : 0;
    fclose(f);
    cr_assert(n > 0);
    return text;
}

/* The line of an instruction that begins so, the first or the last. */
static const char *find(const char *text, const char *op, bool last)
{
    const char *found = NULL, *at = text;
    while ((at = strstr(at, op))) {
        bool begins = at > text && at[-1] == ' ';
        while (at > text && at[-1] != '\n')
            at--;
        if (begins && (last || !found))
            found = at;
        at += strcspn(at, "\n");
    }
    cr_assert(found, "no %s", op);
    return found;
}

/* The text with the line at `from` copied to behind that of `to`, where it was
 * a NOP remains. */
static void moved(const char *text, const Move *m, StrBuf *out)
{
    const char *from = find(text, m->what, m->from_last);
    const char *to = find(text, m->behind, m->to_last);
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "\n") + 1;
        if (at == from)
            strbuf_addf(out, "%.*s NOP ;\n", (int)strcspn(at, " "), at);
        else
            strbuf_addn(out, at, n);
        if (at == to) {
            size_t place = strcspn(from, " ");
            strbuf_addf(out, "/*fff0*/%.*s\n",
                        (int)(strcspn(from, "\n") - place), from + place);
        }
        at += n;
    }
}

static const char *host_of(Module *m)
{
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_host_proc)
            return op_attr_str(op, "name", "");
    return "";
}

/* Of the kernel in the folder and that code; its diagnostics are ctx's. */
static CheckResult check_code(Ctx *ctx, const char *kernel, const char *code)
{
    char *text = read_text(kernel, "eir");
    uint32_t file = ctx_add_source(ctx, "k.eir", text, strlen(text));
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    Module *m = eir_parse(ctx, file, lib);
    cr_assert(m, "%s", kernel);
    CheckResult r = check_sass(ctx, m, module_symbol(m, host_of(m)),
                               sass_text(m->arena, code));
    module_free(m);
    free(text);
    return r;
}

static void check(const Move *move)
{
    Ctx *ctx = ctx_new();
    char *code = read_text(move->kernel, move->ending);
    StrBuf sass = { 0 };
    if (move->what)
        moved(code, move, &sass);
    else
        strbuf_add(&sass, code);
    CheckResult r = check_code(ctx, move->kernel, strbuf_text(&sass));
    const Diag *d = ctx_diags(ctx);
    const char *name = move->what ? move->what : "nothing";
    if (!move->found)
        cr_expect(r.verdict == VERDICT_proved && !strcmp(r.scope, "all sizes"),
                  "%s: %s", move->kernel, d ? d->message : r.reason);
    else if (!move->role)
        cr_expect(r.verdict == VERDICT_unknown && strstr(r.reason, move->found),
                  "%s, %s moved: expected %s, found %s", move->kernel, name,
                  move->found,
                  d          ? d->message
                  : r.reason ? r.reason
                             : r.scope);
    else
        cr_expect(r.verdict == VERDICT_refuted && d &&
                      strstr(d->message, move->found) &&
                      strstr(d->message, "; thread: ") &&
                      strstr(d->message, move->role),
                  "%s, %s moved: expected %s, found %s", move->kernel, name,
                  move->found,
                  d          ? d->message
                  : r.reason ? r.reason
                             : r.scope);
    strbuf_free(&sass);
    free(code);
    ctx_free(ctx);
}

/* Cut off in the middle of a line, in the first three quarters, where most of
 * what the roles do stands. */
static void check_cut(const char *kernel, const char *ending)
{
    char *code = read_text(kernel, ending);
    size_t n = strlen(code) / 4 * 3;
    for (size_t at = n; at > n / 8; at -= n / 8 - 5) {
        Ctx *ctx = ctx_new();
        code[at] = '\0';
        CheckResult r = check_code(ctx, kernel, code);
        cr_expect(r.verdict == VERDICT_refuted, "%s, %zu: %s", kernel, at,
                  r.reason ? r.reason : r.scope);
        ctx_free(ctx);
    }
    free(code);
}

Test(sass_dump, each_move)
{
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        check(&moves[i]);
}

Test(sass_dump, cut_off)
{
    check_cut(tn, "nvdisasm");
    check_cut(split, "cuobjdump");
}
