/* SASS against a kernel: each row changes one place of a listing that fits. */
#include "ir/eir.h"
#include "ir/lib.h"
#include "verify/async/sass.h"

#include <criterion/criterion.h>
#include <string.h>

static const char kernel_text[] =
    "host.proc @p(%N: size) {\n"
    "  host.launch @k(%N)\n"
    "}\n"
    "async.kernel @k(%N: size, %cta: coord, %warp: coord, %lane: coord) "
    "{proc = 'p', blockDim = 64, clusterDim = 2, blocks_per_sm = 1, "
    "smem_bytes = 16} {\n"
    "  %full = async.mbarrier.alloc {offset = 0, count = 1} : "
    "mbarrier[2 ring 2]\n"
    "  %a = async.ring.init {position = 0} : ring<2>\n"
    "  async.mbarrier.init %full\n"
    "  async.fence.proxy\n"
    "  async.barrier.cluster.arrive\n"
    "  async.barrier.cluster.wait\n"
    "  async.barrier.cta.sync {id = 1, threads = 64}\n"
    "  async.mbarrier.expect_tx %full[ring(%a)] {bytes = 16}\n"
    "  async.mbarrier.expect_tx %full[ring(%a)] {bytes = 32}\n"
    "  async.mbarrier.arrive %full[ring(%a)] {cta_xor = (0, 1)}\n"
    "  async.mbarrier.wait %full[ring(%a)]\n"
    "  async.bulk.commit_group\n"
    "}\n";

static const char sass_text[] =
    "\t.section .text.k,\"ax\"\n"
    ".text.k:\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
    "        /*0010*/                   SYNCS.EXCH.64 URZ, [UR4], UR6 ;\n"
    "        /*0020*/              @!P0 SYNCS.EXCH.64 URZ, [UR4+0x8], UR6 ;\n"
    "        /*0030*/                   FENCE.VIEW.ASYNC.S ;\n"
    "        /*0040*/                   UCGABAR_ARV ;\n"
    "        /*0050*/                   UCGABAR_WAIT ;\n"
    "        /*0060*/                   BAR.SYNC.DEFER_BLOCKING 0x1, 0x40 ;\n"
    "        /*0070*/    SYNCS.ARRIVE.TRANS64.RED.A0TR URZ, [R2], R3 ;\n"
    "        /*0080*/    SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2], RZ ;\n"
    "        /*0090*/    SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [R2], RZ ;\n"
    "        /*00a0*/    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;\n"
    "        /*00b0*/    @!P0 SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;\n"
    "        /*00c0*/                   UTMACMDFLUSH ;\n"
    "        /*00d0*/                   EXIT ;\n"
    "                              /* 0x000fe20000000000 */\n"
    ".text.k2:\n"
    "        /*0000*/                   STL [R1], R2 ;\n";

typedef struct Edit {
    const char *name, *from, *to, *code;
} Edit;

static const Edit edits[] = {
    { "as it is", "", "", NULL },
    { "as cuobjdump heads it", ".text.k:\n", "\t\tFunction : k\n", NULL },
    { "two for one announcement", "/*00d0*/",
      "/*00d0*/ SYNCS.ARRIVE.TRANS64.RED.A0TR URZ, [R2], R3 ;\n /*00e0*/",
      NULL },
    { "a barrier more", "/*00d0*/", "/*00d0*/ BAR.SYNC 0x0 ;\n /*00e0*/",
      NULL },
    { "a store by its space", "/*00d0*/",
      "/*00d0*/ STG.E [R1.64], R2 ;\n /*00e0*/", NULL },
    { "doubled", "/*00d0*/", "/*00d0*/ UTMACMDFLUSH ;\n /*00e0*/", "?" },
    { "an arrival too many", "/*00d0*/",
      "/*00d0*/ SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2], RZ ;\n /*00e0*/", "?" },
    { "no commit", "UTMACMDFLUSH", "NOP", "SASS-COUNT" },
    { "no fence", "FENCE.VIEW.ASYNC.S", "NOP", "SASS-COUNT" },
    { "one initialisation", "@!P0 SYNCS.EXCH.64", "NOP", "SASS-COUNT" },
    { "no arrival elsewhere", "SYNCS.ARRIVE.TRANS64.RED.A1T0", "NOP",
      "SASS-COUNT" },
    { "nothing announced", "SYNCS.ARRIVE.TRANS64.RED.A0TR", "NOP",
      "SASS-COUNT" },
    { "no barrier", "BAR.SYNC", "NOP", "SASS-COUNT" },
    { "no cluster barrier", "UCGABAR_WAIT", "NOP", "SASS-COUNT" },
    { "spilled", "/*00d0*/", "/*00d0*/ STL [R1], R2 ;\n /*00e0*/",
      "SASS-MEMORY" },
    { "filled", "/*00d0*/", "/*00d0*/ @P0 LDL.LU R2, [R1] ;\n /*00e0*/",
      "SASS-MEMORY" },
    { "a generic load", "/*00d0*/", "/*00d0*/ LD.E R2, [R4.64] ;\n /*00e0*/",
      "SASS-MEMORY" },
    { "another name", ".text.k:", ".text.k3:", "SASS-COUNT" },
    { "nothing", ".text.k:\n", "", "SASS-COUNT" },
};

static void check(const Edit *e)
{
    Ctx *ctx = ctx_new();
    uint32_t file =
        ctx_add_source(ctx, "k.eir", kernel_text, strlen(kernel_text));
    Module *m = eir_parse(ctx, file, lib_new(ctx));
    const char *at = strstr(sass_text, e->from);
    StrBuf sass = { 0 };
    cr_assert(m && at, "%s", e->name);
    strbuf_addn(&sass, sass_text, (size_t)(at - sass_text));
    strbuf_add(&sass, e->to);
    strbuf_add(&sass, at + strlen(e->from));
    CheckResult r = check_sass(ctx, m, module_symbol(m, "p"),
                               strbuf_text(&sass), sass.len);
    const Diag *d = ctx_diags(ctx);
    if (!e->code)
        cr_expect(r.verdict == VERDICT_proved, "%s: %s", e->name,
                  d ? d->message : r.reason);
    else if (*e->code == '?')
        cr_expect(r.verdict == VERDICT_unknown && r.reason && !d, "%s: %s",
                  e->name, d ? d->message : "not unknown");
    else
        cr_expect(r.verdict == VERDICT_refuted && d &&
                      !strcmp(d->code, e->code),
                  "%s: expected %s, found %s", e->name, e->code,
                  d ? d->message : "nothing");
    strbuf_free(&sass);
    module_free(m);
    ctx_free(ctx);
}

Test(sass, each_edit)
{
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        check(&edits[i]);
}
