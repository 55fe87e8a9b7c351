/* Reads the PTX of real kernels back: each thread does what it does in the IR.
 * test/unit/readback_test.c has PTX that does not. */
#include "codegen/llvm.h"
#include "ir/eir.h"
#include "ir/exo.h"
#include "ir/lib.h"
#include "passes/abi.h"
#include "passes/lower/lower.h"
#include "verify/async/letters.h"
#include "verify/async/readback.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

typedef struct Loaded {
    Ctx *ctx;
    Module *m;
    Op *kernels[8];
    unsigned n;
} Loaded;

/* A program of this source tree, lowered where it is .exo. */
static Loaded load(const char *path)
{
    Loaded l = { .ctx = ctx_new() };
    char full[512];
    Lib *lib = lib_new(l.ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    snprintf(full, sizeof full, EXO_SOURCE_DIR "/%s", path);
    uint32_t file = ctx_read_source(l.ctx, full);
    cr_assert_neq(file, 0);
    if (strstr(path, ".exo")) {
        l.m = exo_parse(l.ctx, file, lib, NULL);
        cr_assert(l.m && lower_par_to_async(l.ctx, l.m));
    } else {
        l.m = eir_parse(l.ctx, file, lib);
        cr_assert(l.m);
    }
    for (Op *op = l.m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel && l.n < 8)
            l.kernels[l.n++] = op;
    return l;
}

static void unload(Loaded *l)
{
    module_free(l->m);
    ctx_free(l->ctx);
}

typedef struct Program {
    char path[64];
} Program;

ParameterizedTestParameters(llvm_readback, counts)
{
    static Program programs[] = {
        { "kernels/saxpy.exo" },
        { "kernels/transpose.exo" },
        { "kernels/gemm_simt_f32.exo" },
        { "kernels/gemm_sm90_bf16.exo" },
        { "kernels/gemm_sm90_f16.exo" },
        { "kernels/gemm_sm90_tf32.exo" },
        { "test/lit/codegen/sync.eir" },
        { "test/lit/codegen/copies.eir" },
        { "test/lit/codegen/wgmma.eir" },
        { "test/lit/codegen/gemm_pipeline.eir" },
    };
    return cr_make_param_array(Program, programs,
                               sizeof programs / sizeof *programs);
}

ParameterizedTest(Program *program, llvm_readback, counts)
{
    Loaded l = load(program->path);
    StrBuf ptx = { 0 };
    cr_assert(l.n > 0);
    cr_assert(llvm_emit_kernels(l.ctx, l.m, l.n, l.kernels, NULL, NULL, &ptx));
    CheckResult r = check_readback(l.ctx, l.m, NULL, 0, ptx.data);
    const Diag *d = ctx_diags(l.ctx);
    cr_expect(r.verdict == VERDICT_proved, "%s: %s", program->path,
              d ? d->message : r.reason);
    strbuf_free(&ptx);
    unload(&l);
}

/* ---- one line changed ---------------------------------------------------- */

typedef struct Line {
    const char *at;
    size_t n; /* with its end */
    const char *letter;
} Line;

/* The lines of the kernel that do what read-back compares, in order. */
static unsigned find_lines(Loaded *l, const char *ptx, Line *out, unsigned max)
{
    Arena *a = ctx_arena(l->ctx);
    Alphabet letters = { .a = a, .arch = "sm_90a" };
    PtxKernel k;
    const char *error;
    uint32_t line, at = 1;
    unsigned n = 0;
    cr_assert(ptx_read(a, ptx, op_attr_str(l->kernels[0], "name", ""), &k,
                       &error, &line));
    for (uint32_t i = 0; i < k.n_instrs && n < max; i++) {
        Letter x = letter_of_instr(&letters, &k.instrs[i]);
        for (; at < k.instrs[i].line; at++)
            ptx = strchr(ptx, '\n') + 1;
        if (x.id)
            out[n++] = (Line){ ptx, strcspn(ptx, "\n") + 1,
                               letter_name(&letters, x.id) };
    }
    return n;
}

typedef enum Change { DROP, TWICE, EXCHANGE, CHANGES } Change;

/* The text with that line, and for EXCHANGE the next, changed. */
static void change_line(StrBuf *out, const char *ptx, const Line *x, Change how)
{
    const Line *y = x + 1;
    strbuf_addn(out, ptx, (size_t)(x->at - ptx));
    if (how == EXCHANGE) {
        strbuf_addn(out, y->at, y->n);
        strbuf_addn(out, x->at + x->n, (size_t)(y->at - x->at) - x->n);
        strbuf_addn(out, x->at, x->n);
        strbuf_add(out, y->at + y->n);
        return;
    }
    for (int i = 0; how == TWICE && i < 2; i++)
        strbuf_addn(out, x->at, x->n);
    strbuf_add(out, x->at + x->n);
}

/* Without any line, with it twice, with it and the next one exchanged: each is
 * refuted. */
Test(llvm_readback, every_line_counts)
{
    static Line lines[512];
    Loaded l = load("kernels/gemm_sm90_bf16_pingpong.exo");
    StrBuf ptx = { 0 };
    cr_assert(llvm_emit_kernels(l.ctx, l.m, l.n, l.kernels, NULL, NULL, &ptx));
    unsigned n = find_lines(&l, ptx.data, lines, 512), refuted = 0;
    cr_assert(n > 50 && n < 512);
    for (unsigned i = 0; i < n; i++)
        for (Change how = DROP; how < CHANGES; how++) {
            if (how == EXCHANGE &&
                (i + 1 == n || lines[i].letter == lines[i + 1].letter ||
                 lines[i].at == lines[i + 1].at))
                continue;
            StrBuf changed = { 0 };
            change_line(&changed, ptx.data, &lines[i], how);
            CheckResult r = check_readback(l.ctx, l.m, NULL, 0, changed.data);
            refuted += r.verdict == VERDICT_refuted;
            cr_expect(r.verdict == VERDICT_refuted, "%s, change %d: %.*s",
                      lines[i].letter, (int)how, (int)lines[i].n, lines[i].at);
            strbuf_free(&changed);
        }
    cr_expect(refuted > 2 * n);
    strbuf_free(&ptx);
    unload(&l);
}

/* Twice in one process, and after other work: the same bytes. */
Test(llvm_readback, same_bytes)
{
    StrBuf text[2] = { { 0 }, { 0 } };
    for (int i = 0; i < 2; i++) {
        Loaded l = load("kernels/gemm_sm90_bf16.exo");
        cr_assert(llvm_emit_kernels(l.ctx, l.m, l.n, l.kernels, NULL, NULL,
                                    &text[i]));
        unload(&l);
        Loaded other = load("kernels/saxpy.exo");
        unload(&other);
    }
    cr_expect_str_eq(text[0].data, text[1].data);
    strbuf_free(&text[0]);
    strbuf_free(&text[1]);
}

/* The head of the PTX says how the kernel is called. */
Test(llvm_readback, abi_line)
{
    Loaded l = load("kernels/saxpy.exo");
    StrBuf ptx = { 0 };
    char line[128];
    LlvmOptions options = { .summary = "nothing was checked" };
    cr_assert(
        llvm_emit_kernels(l.ctx, l.m, l.n, l.kernels, &options, NULL, &ptx));
    snprintf(line, sizeof line, "// exo-abi: %016llx %s\n",
             (unsigned long long)kernel_abi_hash(l.ctx, l.kernels[0]),
             op_attr_str(l.kernels[0], "name", ""));
    cr_expect(strstr(ptx.data, line) == ptx.data);
    cr_expect(strstr(ptx.data, "// exo-certificate: nothing was checked\n"));
    strbuf_free(&ptx);
    unload(&l);
}
