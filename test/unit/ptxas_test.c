/* Reading what ptxas says, and the gate's verdict on it. */
#include "codegen/ptxas.h"

#include <criterion/criterion.h>
#include <string.h>

static const char clean[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n"
    "ptxas info    : Function properties for gemm\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 2 barriers, 16 bytes smem\n"
    "ptxas info    : Compile time = 186.972 ms\n"
    "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
    "ptxas info    : Function properties for other\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 24 registers, used 0 barriers\n";

Test(ptxas, reads_each_kernel)
{
    Ctx *ctx = ctx_new();
    PtxasReport r = { 0 };
    ptxas_parse(ctx, clean, &r);
    cr_assert_eq(r.kernels.len, 2);
    cr_expect_str_eq(r.kernels.data[0].name, "gemm");
    cr_expect_eq(r.kernels.data[0].registers, 168);
    cr_expect_eq(r.kernels.data[0].barriers, 2);
    cr_expect_eq(r.kernels.data[0].smem, 16);
    cr_expect_eq(r.kernels.data[0].spill_loads, 0);
    cr_expect_str_eq(r.kernels.data[1].name, "other");
    cr_expect_eq(r.kernels.data[1].registers, 24);
    cr_expect_eq(r.notes.len, 0);
    cr_expect(ptxas_gate(ctx, &r));
    cr_expect_eq(ctx_error_count(ctx), 0);
    ctx_free(ctx);
}

/* The one diagnostic that the gate gives for text, or NULL when it is content.
 */
static const Diag *gate(Ctx *ctx, const char *text, bool *ok)
{
    PtxasReport r = { 0 };
    ptxas_parse(ctx, text, &r);
    *ok = ptxas_gate(ctx, &r);
    return ctx_diags(ctx);
}

Test(ptxas, refuses_spills)
{
    Ctx *ctx = ctx_new();
    bool ok;
    const Diag *d = gate(
        ctx,
        "ptxas info    : Function properties for k\n"
        "    0 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads\n",
        &ok);
    cr_assert(d && !ok);
    cr_expect(strstr(d->message, "'k'"));
    ctx_free(ctx);
}

Test(ptxas, refuses_a_stack_frame)
{
    Ctx *ctx = ctx_new();
    bool ok;
    const Diag *d =
        gate(ctx,
             "ptxas info    : Function properties for k\n"
             "    432 bytes stack frame, 0 bytes spill stores, 0 bytes spill "
             "loads\n",
             &ok);
    cr_assert(d && !ok);
    cr_expect(strstr(d->message, "432 bytes of stack"));
    ctx_free(ctx);
}

Test(ptxas, refuses_serialised_wgmma)
{
    Ctx *ctx = ctx_new();
    bool ok;
    const Diag *d = gate(
        ctx,
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
        "instructions are serialized due to the presence of Extern calls in "
        "the function 'k'\n",
        &ok);
    cr_assert(d && !ok);
    cr_expect(strstr(d->message, "C7510"));
    cr_expect(strstr(d->message, "function 'k'"));
    ctx_free(ctx);
}

Test(ptxas, refuses_a_dropped_setmaxnreg)
{
    Ctx *ctx = ctx_new();
    bool ok;
    const Diag *d =
        gate(ctx,
             "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' "
             "ignored; unable to determine register count at entry.\n",
             &ok);
    cr_assert(d && !ok);
    cr_expect(strstr(d->message, "ignores setmaxnreg"));
    ctx_free(ctx);
}

Test(ptxas, warns_of_other_notes)
{
    Ctx *ctx = ctx_new();
    bool ok;
    const Diag *d = gate(ctx, "ptxas info    : (C7599) Something else\n", &ok);
    cr_assert(d && ok);
    cr_expect_eq(d->severity, SEV_warning);
    ctx_free(ctx);
}

Test(ptxas, names_where_it_looked)
{
    Ctx *ctx = ctx_new();
    cr_expect_null(ptxas_find(ctx, "/no/such/program"));
    cr_assert_eq(ctx_error_count(ctx), 1);
    cr_expect(strstr(ctx_diags(ctx)->message, "/no/such/program"));
    ctx_free(ctx);
}

Test(ptxas, a_program_that_is_no_assembler)
{
    Ctx *ctx = ctx_new();
    PtxasReport r = { 0 };
    StrBuf cubin = { 0 };
    cr_expect_not(ptxas_run(ctx, "/bin/false", "sm_90a", "x", 1, &cubin, &r));
    cr_expect_not(ptxas_run(ctx, "/bin/true", "sm_90a", "x", 1, &cubin, &r));
    cr_expect_eq(ctx_error_count(ctx), 2);
    strbuf_free(&cubin);
    ctx_free(ctx);
}
