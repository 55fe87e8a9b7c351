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

static const char kernel_sass[] =
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

static const char roles_kernel[] =
    "host.proc @p(%N: size) {\n"
    "  host.launch @k(%N)\n"
    "}\n"
    "async.kernel @k(%N: size, %cta: coord, %warp: coord, %lane: coord) "
    "{proc = 'p', blockDim = 64, clusterDim = 1, blocks_per_sm = 1, "
    "smem_bytes = 16} {\n"
    "  %full = async.mbarrier.alloc {offset = 0, count = 1} : "
    "mbarrier[2 ring 2]\n"
    "  %a = async.ring.init {position = 0} : ring<2>\n"
    "  async.role {name = 'load', lo = 0, hi = 1} {\n"
    "    async.elect {\n"
    "      async.mbarrier.arrive %full[ring(%a)]\n"
    "      async.bulk.commit_group\n"
    "    }\n"
    "    async.barrier.cta.sync {id = 1, threads = 64}\n"
    "  }\n"
    "  async.role {name = 'math', lo = 1, hi = 2} {\n"
    "    async.mbarrier.wait %full[ring(%a)]\n"
    "    async.barrier.cta.sync {id = 1, threads = 64}\n"
    "  }\n"
    "}\n";

static const char roles_sass[] =
    "\t\tFunction : k\n"
    "/*0000*/ S2R R0, SR_TID.X ;\n"
    "/*0010*/ SHF.R.U32.HI R1, RZ, 0x5, R0 ;\n"
    "/*0020*/ SHFL.IDX PT, R1, R1, RZ, 0x1f ;\n"
    "/*0030*/ R2UR UR4, R1 ;\n"
    "/*0040*/ UISETP.NE.U32.AND UP0, UPT, UR4, URZ, UPT ;\n"
    "/*0050*/ PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0 ;\n"
    "/*0060*/ @P0 BRA `(.L_math) ;\n"
    "/*0070*/ BRA.DIV UR5, `(.L_apart) ;\n"
    "/*0080*/ ELECT P0, URZ, PT ;\n"
    ".L_elected:\n"
    "/*0090*/ @P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2.reuse], RZ ;\n"
    "/*00a0*/ UTMACMDFLUSH ;\n"
    "/*00b0*/ BAR.SYNC 0x1, 0x40 ;\n"
    "/*00c0*/ EXIT ;\n"
    ".L_math:\n"
    "/*00d0*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;\n"
    "/*00e0*/ @!P0 BRA `(.L_again) ;\n"
    ".L_on:\n"
    "/*00f0*/ BAR.SYNC 0x1, 0x40 ;\n"
    "/*0100*/ EXIT ;\n"
    ".L_apart:\n"
    "/*0110*/ BSSY B0, `(.L_met) ;\n"
    "/*0120*/ ELECT P0, UR6, PT ;\n"
    "/*0130*/ BSYNC B0 ;\n"
    ".L_met:\n"
    "/*0140*/ BRA 0x90 ;\n"
    ".L_again:\n"
    "/*0150*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;\n"
    "/*0160*/ @!P0 BRA `(.L_again) ;\n"
    "/*0170*/ BRA `(.L_on) ;\n";

typedef struct Edit {
    const char *name, *from, *to, *code;
} Edit;

static const Edit edits[] = {
    { "as it is", "", "", NULL },
    { "as cuobjdump heads it", ".text.k:\n", "\t\tFunction : k\n", NULL },
    { "behind another kernel", "\t.section",
      ".text.kk:\n/*0000*/ LDL R0, [R1] ;\n\t.section", NULL },
    { "around another kernel", "/*00d0*/",
      "\n.text.kk:\n/*0000*/ LDL R0, [R1] ;\n.text.k:\n/*00d0*/", NULL },
    { "the rest is of another kernel", "/*00c0*/", "\n.text.kk:\n/*00c0*/",
      "SASS-COUNT" },
    { "it is another kernel's", ".text.k:", ".text.kk:", "SASS-COUNT" },
    { "two for one announcement", "/*00d0*/",
      "/*00d0*/ SYNCS.ARRIVE.TRANS64.RED.A0TR URZ, [R2], R3 ;\n /*00e0*/",
      NULL },
    { "the barrier of a launch without clusters", "UCGABAR_WAIT ;\n",
      "UCGABAR_WAIT ;\n /*0051*/ CCTL.IVALL ;\n /*0052*/ BRA 0x60 ;\n"
      " /*0053*/ BAR.SYNC.DEFER_BLOCKING 0x0 ;\n",
      NULL },
    { "that barrier alone",
      "UCGABAR_WAIT ;\n        /*0060*/                   "
      "BAR.SYNC.DEFER_BLOCKING 0x1, 0x40",
      "UCGABAR_WAIT ;\n /*0051*/ CCTL.IVALL ;\n /*0052*/ BRA 0x60 ;\n"
      " /*0060*/ BAR.SYNC.DEFER_BLOCKING 0x0",
      "SASS-COUNT" },
    { "a fence before the first initialisation, none after",
      "SYNCS.EXCH.64 URZ, [UR4], UR6 ;",
      "FENCE.VIEW.ASYNC.S ;\n /*0011*/ SYNCS.EXCH.64 URZ, [UR4], UR6 ;", NULL },
    { "one try of a wait", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "NOP", NULL },
    { "three tries of a wait", "/*00c0*/",
      "/*00b1*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;\n /*00c0*/",
      "?" },
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

/* What each role comes to: the counts of the whole stay the same, unless it is
 * said. */
static const Edit roles_edits[] = {
    { "as it is", "", "", NULL },
    { "the other way round", "@P0 BRA `(.L_math)", "@!P0 BRA `(.L_math)",
      "SASS-COUNT" },
    { "another warp", "UR4, URZ, UPT", "UR4, 0x2, UPT", "SASS-COUNT" },
    { "a thread, not its warp", "SHFL.IDX PT, R1, R1, RZ, 0x1f", "MOV R1, R0",
      "SASS-COUNT" },
    { "another table", "UP0, 0x80", "UP0, 0x7f", "SASS-COUNT" },
    { "the same by a table", "UP0, 0x80", "!UP0, 0x40", NULL },
    { "the same by another comparison", "UISETP.NE.U32.AND UP0, UPT, UR4, URZ",
      "UISETP.GT.AND UP0, UPT, UR4, URZ", NULL },
    { "the warp by a high half", "SHF.R.U32.HI R1, RZ, 0x5, R0",
      "LEA.HI R1, R0, RZ, RZ, 0x1b", NULL },
    { "half of it by a high half", "SHF.R.U32.HI R1, RZ, 0x5, R0",
      "LEA.HI R1, R0, RZ, RZ, 0x1a", "SASS-COUNT" },
    { "a vote on the election", "/*00a0*/ UTMACMDFLUSH",
      "/*00a0*/ VOTEU.ANY UP1, P0 ;\n/*00a1*/ UTMACMDFLUSH", NULL },
    { "a vote before what is elected", "@P0 SYNCS.ARRIVE",
      "VOTEU.ANY UP1, P0 ;\n/*0091*/ @P0 SYNCS.ARRIVE", NULL },
    { "the election and what is not known", "@P0 SYNCS.ARRIVE",
      "LDS R9, [R0] ;\n/*0091*/ ISETP.GT.U32.AND P0, PT, R9, 0x3f, P0 ;\n"
      "/*0092*/ @P0 SYNCS.ARRIVE",
      NULL },
    { "the election or what is not known", "@P0 SYNCS.ARRIVE",
      "LDS R9, [R0] ;\n/*0091*/ ISETP.GT.U32.OR P0, PT, R9, 0x3f, P0 ;\n"
      "/*0092*/ @P0 SYNCS.ARRIVE",
      "?" },
    { "one role goes on into the other", "/*00c0*/ EXIT", "/*00c0*/ NOP", "?" },
    { "both ways by an operand", "@P0 BRA `(.L_math)", "BRA P0, `(.L_math)",
      NULL },
    { "an arrival of all lanes", "@P0 SYNCS.ARRIVE", "SYNCS.ARRIVE", "?" },
    { "an arrival of the other lanes", "@P0 SYNCS.ARRIVE", "@!P0 SYNCS.ARRIVE",
      "SASS-COUNT" },
    { "the arrival in the other role",
      "@P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2.reuse], RZ ;\n/*00a0*/ "
      "UTMACMDFLUSH ;\n/*00b0*/ BAR.SYNC 0x1, 0x40 ;\n/*00c0*/ EXIT ;\n"
      ".L_math:\n",
      "UTMACMDFLUSH ;\n/*00b0*/ BAR.SYNC 0x1, 0x40 ;\n/*00c0*/ EXIT ;\n"
      ".L_math:\n/*00c1*/ @P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2], RZ ;\n",
      "SASS-COUNT" },
    { "a try of the wait in the other role",
      "UTMACMDFLUSH ;\n/*00b0*/ BAR.SYNC 0x1, 0x40 ;\n/*00c0*/ EXIT ;\n"
      ".L_math:\n/*00d0*/",
      "UTMACMDFLUSH ;\n/*00a1*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3 ;\n"
      "/*00b0*/ BAR.SYNC 0x1, 0x40 ;\n/*00c0*/ EXIT ;\n.L_math:\n/*00d0*/ "
      "NOP ;\n/*00d1*/ NOP ; //",
      "SASS-COUNT" },
    { "both roles by one barrier", "BAR.SYNC 0x1, 0x40 ;\n/*00c0*/ EXIT ;",
      "BRA `(.L_on) ;\n/*00c0*/ EXIT ;", NULL },
    { "past the barrier", "UTMACMDFLUSH ;", "UTMACMDFLUSH ;\n/*00a1*/ EXIT ;",
      "SASS-COUNT" },
    { "past the barrier, sometimes", "UTMACMDFLUSH ;",
      "UTMACMDFLUSH ;\n/*00a1*/ @P6 EXIT ;", "?" },
    { "by an unknown function of the thread", "R2UR UR4, R1",
      "PRMT R1, R1, 0x5410, RZ ;\n/*0031*/ R2UR UR4, R1", "/unknown" },
    { "by what the launch gives", "R2UR UR4, R1", "ULDC UR4, c[0x0][0x210]",
      "?" },
    { "to a place that is computed", "BRA 0x90", "BRX R4 -0x90",
      "/a place that is computed" },
    { "to nowhere", "BRA 0x90", "BRA 0x94", "/no place" },
    { "to nowhere, and less", "BAR.SYNC 0x1, 0x40 ;\n/*0100*/ EXIT ;",
      "EXIT ;\n/*0100*/ BRA 0x94 ;", "SASS-COUNT" },
    { "both roles call one place",
      "UTMACMDFLUSH ;\n/*00b0*/ BAR.SYNC 0x1, 0x40 ;\n/*00c0*/ EXIT ;\n"
      ".L_math:\n",
      "UTMACMDFLUSH ;\n/*00a1*/ CALL.REL.NOINC `($f) ;\n"
      "/*00b0*/ BAR.SYNC 0x1, 0x40 ;\n/*00c0*/ EXIT ;\n$f:\n"
      "/*00c1*/ VIADD R7, R7, 0x1 ;\n/*00c2*/ RET.REL.NODEC R4 `(k) ;\n"
      ".L_math:\n/*00c3*/ CALL.REL.NOINC `($f) ;\n",
      NULL },
    { "and it is done there what one does", "/*00d0*/",
      "/*00c1*/ CALL.REL.NOINC `($f) ;\n/*00c2*/ BRA `(.L_math2) ;\n$f:\n"
      "/*00c3*/ UTMACMDFLUSH ;\n/*00c4*/ RET.REL.NODEC R4 `(k) ;\n"
      ".L_math2:\n/*00d0*/",
      "?" },
    { "the role is written where it calls", "@P0 BRA `(.L_math)",
      "CALL.REL.NOINC `($f) ;\n/*0061*/ BRA `(.L_f) ;\n$f:\n"
      "/*0062*/ LDS R9, [R0] ;\n/*0063*/ ISETP.NE.AND P0, PT, R9, RZ, PT ;\n"
      "/*0064*/ RET.REL.NODEC R4 `(k) ;\n.L_f:\n/*0065*/ @P0 BRA `(.L_math)",
      "?" },
    { "met elsewhere", "BSSY B0, `(.L_met)", "BSSY B0, `(.L_on)",
      "/goes on elsewhere" },
};

/* code: NULL, it is proved of each thread; "/...": of the kernel alone, and
 * that is in the scope; "?": it is unknown; else what refutes it. */
static void check(const char *kernel, const char *code, const Edit *e)
{
    Ctx *ctx = ctx_new();
    uint32_t file = ctx_add_source(ctx, "k.eir", kernel, strlen(kernel));
    Module *m = eir_parse(ctx, file, lib_new(ctx));
    const char *at = strstr(code, e->from);
    StrBuf sass = { 0 };
    cr_assert(m && at, "%s", e->name);
    strbuf_addn(&sass, code, (size_t)(at - code));
    strbuf_add(&sass, e->to);
    strbuf_add(&sass, at + strlen(e->from));
    CheckResult r = check_sass(ctx, m, module_symbol(m, "p"),
                               sass_text(m->arena, strbuf_text(&sass)));
    const Diag *d = ctx_diags(ctx);
    if (!e->code)
        cr_expect(r.verdict == VERDICT_proved && !strcmp(r.scope, "all sizes"),
                  "%s: %s", e->name,
                  d         ? d->message
                  : r.scope ? r.scope
                            : r.reason);
    else if (*e->code == '/')
        cr_expect(r.verdict == VERDICT_proved && strstr(r.scope, e->code + 1),
                  "%s: %s", e->name,
                  d         ? d->message
                  : r.scope ? r.scope
                            : r.reason);
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
        check(kernel_text, kernel_sass, &edits[i]);
}

Test(sass, each_edit_of_roles)
{
    for (size_t i = 0; i < sizeof roles_edits / sizeof *roles_edits; i++)
        check(roles_kernel, roles_sass, &roles_edits[i]);
}
