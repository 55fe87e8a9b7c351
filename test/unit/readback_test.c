/* Read-back: a small kernel of two roles and PTX for it, written by hand. Each
 * row changes one place of the PTX; most make it wrong, some only different. */
#include "ir/eir.h"
#include "ir/lib.h"
#include "passes/abi.h"
#include "verify/async/letters.h"
#include "verify/async/readback.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char kernel_text[] =
    "host.proc @p(%N: size) {\n"
    "  host.launch @k(%N)\n"
    "}\n"
    "async.kernel @k(%N: size, %cta: coord, %warp: coord, %lane: coord) "
    "{proc = 'p', blockDim = 64, clusterDim = 1, blocks_per_sm = 1, "
    "smem_bytes = 16} {\n"
    "  %full = async.mbarrier.alloc {offset = 0, count = 1} : "
    "mbarrier[2 ring 2]\n"
    "  ctl.if 32 * %warp + %lane == 0 {\n"
    "    async.mbarrier.init %full\n"
    "    async.fence.mbarrier_init\n"
    "  }\n"
    "  async.barrier.cta.sync {id = 0, threads = 64}\n"
    "  async.role {name = 'load', lo = 0, hi = 1} {\n"
    "    %a = async.ring.init {position = 0} : ring<2>\n"
    "    %b = ctl.for %k in [0, %N) iter(%c = %a) {\n"
    "      async.elect {\n"
    "        async.mbarrier.expect_tx %full[ring(%c)] {bytes = 16}\n"
    "        async.mbarrier.arrive %full[ring(%c)]\n"
    "      }\n"
    "      %d = async.ring.advance %c, 1\n"
    "      ctl.yield %d\n"
    "    }\n"
    "  }\n"
    "  async.role {name = 'math', lo = 1, hi = 2} {\n"
    "    %e = async.ring.init {position = 0} : ring<2>\n"
    "    %f = ctl.for %k in [0, %N) iter(%g = %e) {\n"
    "      async.mbarrier.wait %full[ring(%g)]\n"
    "      async.fence.proxy {space = 'shared'}\n"
    "      async.warp.sync\n"
    "      %h = async.ring.advance %g, 1\n"
    "      ctl.yield %h\n"
    "    }\n"
    "  }\n"
    "  async.cp.async.wait_group {n = 0}\n"
    "}\n";

static const char ptx_text[] =
    "\n.version 8.3\n.target sm_90a\n.address_size 64\n"
    ".extern .shared .align 1024 .b8 smem[];\n"
    ".visible .entry k(\n\t.param .u32 k_param_0\n)\n"
    ".maxntid 64, 1, 1\n"
    "{\n"
    "\t.reg .pred %p<9>;\n\t.reg .b32 %r<30>;\n\t.reg .b64 %rd<3>;\n"
    "\tld.param.u32 %r1, [k_param_0];\n"
    "\tmov.u32 %r2, %tid.x;\n"
    "\tshr.u32 %r3, %r2, 5;\n"
    "\tshfl.sync.idx.b32 %r4, %r3, 0, 31, -1;\n"
    "\tmov.u32 %r5, smem;\n"
    "\tsetp.ne.s32 %p1, %r2, 0;\n"
    "\t@%p1 bra $L_2;\n"
    "\tmbarrier.init.shared::cta.b64 [%r5], 1;\n"
    "\tmbarrier.init.shared::cta.b64 [%r5+8], 1;\n"
    "\tfence.mbarrier_init.release.cluster;\n"
    "$L_2:\n"
    "\tbarrier.cta.sync 0, 64;\n"
    "\tsetp.gt.u32 %p2, %r4, 0;\n"
    "\t@%p2 bra $L_5;\n"
    "$L_3:\n"
    "\tsetp.eq.s32 %p3, %r1, 0;\n"
    "\t@%p3 bra $L_9;\n"
    "\telect.sync _|%p4, 0xffffffff;\n"
    "\t@!%p4 bra $L_4;\n"
    "\tmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r5], 16;\n"
    "\tmbarrier.arrive.shared::cta.b64 _, [%r5];\n"
    "$L_4:\n"
    "\tadd.s32 %r1, %r1, -1;\n"
    "\tbra.uni $L_3;\n"
    "$L_5:\n"
    "\tsetp.ne.s32 %p5, %r4, 1;\n"
    "\t@%p5 bra $L_9;\n"
    "\tsetp.eq.s32 %p8, %r1, 0;\n"
    "\t@%p8 bra $L_9;\n"
    "$L_6:\n"
    "\t{\n\t.reg .pred P;\nWAIT:\n"
    "\tmbarrier.try_wait.parity.shared::cta.b64 P, [%r5], 0;\n"
    "\t@P bra DONE;\n"
    "\tbra WAIT;\n"
    "DONE:\n\t}\n"
    "\tfence.proxy.async.shared::cta;\n"
    "\tbar.warp.sync 0xffffffff;\n"
    "\tadd.s32 %r1, %r1, -1;\n"
    "\tsetp.ne.s32 %p6, %r1, 0;\n"
    "\t@%p6 bra $L_6;\n"
    "$L_9:\n"
    "\tcp.async.wait_group 0;\n"
    "\tret;\n"
    "}\n";

typedef struct Edit {
    const char *name, *from, *to;
    const char *code; /* NULL: accepted; "?": unknown */
} Edit;

static const Edit edits[] = {
    { "as it is", "", "", NULL },
    /* other text for the same */
    { "renamed label", "WAIT:\n", "WAIT: WAIT2:\n", NULL },
    { "comment", "\tret;", "\t/* bar.warp.sync; */ ret; // membar.gl;", NULL },
    { "one line", "\tbar.warp.sync 0xffffffff;\n\tadd",
      "\tbar.warp.sync 0xffffffff; add", NULL },
    { "guard for a branch", "\t@%p5 bra $L_9;\n\tsetp.eq.s32 %p8",
      "\t@!%p5 bra $L_7;\n\tbra.uni $L_9;\n$L_7:\n\tsetp.eq.s32 %p8", NULL },
    { "other test of the role", "setp.gt.u32 %p2, %r4, 0",
      "setp.ge.u32 %p2, %r4, 1", NULL },
    { "role by the thread", "setp.gt.u32 %p2, %r4, 0",
      "setp.gt.u32 %p2, %r2, 31", NULL },
    { "role by arithmetic", "setp.gt.u32 %p2, %r4, 0",
      "mul.wide.u32 %rd1, %r4, 3; cvt.u32.u64 %r9, %rd1; bfe.u32 %r9, %r9, 0, "
      "2; sub.s32 %r9, 3, %r9; setp.ne.s32 %p2, %r9, 3",
      NULL },
    { "role by a table", "setp.gt.u32 %p2, %r4, 0",
      "lop3.b32 %r9, %r4, %r1, -2, 0x50; setp.gt.u32 %p2, %r9, 0", NULL },
    { "role by a table of which two bits are not asked",
      "setp.gt.u32 %p2, %r4, 0",
      "lop3.b32 %r9, %r4, %r1, %r1, 0xf0; setp.gt.u32 %p2, %r9, 0", NULL },
    { "the wrong role by a table", "setp.gt.u32 %p2, %r4, 0",
      "lop3.b32 %r9, %r4, %r1, %r1, 0x0f; setp.gt.u32 %p2, %r9, 0",
      "PTX-COUNT" },
    { "shared wait turned", "\t@P bra DONE;\n\tbra WAIT;\n",
      "\t@!P bra WAIT;\n", NULL },
    { "scopes", "\tcp.async.wait_group 0;", "\t{{ cp.async.wait_group 0; }}",
      NULL },
    { "guarded", "\t@%p1 bra $L_2;\n\tmbarrier.init.shared::cta.b64 [%r5], 1;",
      "\t@!%p1 mbarrier.init.shared::cta.b64 [%r5], 1;\n\t@%p1 bra $L_2;",
      NULL },
    { "by index", "\t@%p2 bra $L_5;",
      "T: .branchtargets $L_3, $L_5;\n\tbrx.idx %r4, T;", "PTX-COUNT" },
    { "scopes and orders that are so without words",
      "mbarrier.arrive.shared::cta.b64 _, [%r5];",
      "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r5], 1;", NULL },
    /* what a mnemonic or an operand adds */
    { "arrives twice at once", "_, [%r5];", "_, [%r5], 2;", "PTX-COUNT" },
    { "arrives as often as", "_, [%r5];", "_, [%r5], %r1;", "PTX-COUNT" },
    { "leaves the barrier", "mbarrier.arrive.", "mbarrier.arrive_drop.",
      "PTX-COUNT" },
    { "expects again", "mbarrier.arrive.shared::cta.b64 _, [%r5];",
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 16;", "PTX-COUNT" },
    { "releases nothing", "mbarrier.arrive.", "mbarrier.arrive.relaxed.cta.",
      "PTX-COUNT" },
    { "acquires nothing", "try_wait.parity.", "try_wait.parity.relaxed.cta.",
      "PTX-COUNT" },
    { "fence of another space", "fence.proxy.async.shared::cta",
      "fence.proxy.async.global", "PTX-COUNT" },
    { "another named barrier", "barrier.cta.sync 0,", "barrier.cta.sync 1,",
      "PTX-COUNT" },
    { "all threads without their number", "barrier.cta.sync 0, 64",
      "bar.sync 0", NULL },
    { "all threads at another barrier", "barrier.cta.sync 0, 64", "bar.sync 1",
      "PTX-COUNT" },
    { "half of a warp", "bar.warp.sync 0xffffffff", "bar.warp.sync 0xffff",
      "PTX-COUNT" },
    { "a mask of lanes", "bar.warp.sync 0xffffffff", "bar.warp.sync %r1",
      "PTX-COUNT" },
    { "all lanes", "bar.warp.sync 0xffffffff", "bar.warp.sync -1", NULL },
    { "one of half a warp", "elect.sync _|%p4, 0xffffffff",
      "elect.sync _|%p4, 0xffff", "PTX-COUNT" },
    { "a trap", "\tadd.s32 %r1, %r1, -1;\n\tbra.uni",
      "\tadd.s32 %r1, %r1, -1;\n\t@%p3 trap;\n\tbra.uni", "PTX-COUNT" },
    { "a trap at the end", "\tret;", "\ttrap;\n\tret;", "PTX-COUNT" },
    { "an exit at the end", "\tret;", "\texit;", NULL },
    { "a breakpoint", "\tret;", "\tbrkpt;\n\tret;", "PTX-COUNT" },
    { "a product of the warp", "\tret;",
      "\twmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r5], {%r1, %r1, "
      "%r1, %r1};\n\tret;",
      "PTX-COUNT" },
    /* counts */
    { "dropped", "\tbar.warp.sync 0xffffffff;\n", "", "PTX-COUNT" },
    { "twice", "\tbar.warp.sync 0xffffffff;\n",
      "\tbar.warp.sync 0xffffffff;\n\tbar.warp.sync 0xffffffff;\n",
      "PTX-COUNT" },
    { "one initialisation less",
      "\tmbarrier.init.shared::cta.b64 [%r5+8], 1;\n", "", "PTX-COUNT" },
    { "something else", "\tret;", "\tmembar.gl;\n\tret;", "PTX-COUNT" },
    { "a call", "\tret;", "\tcall.uni f;\n\tret;", "PTX-COUNT" },
    { "a constant: bytes", "[%r5], 16;", "[%r5], 32;", "PTX-COUNT" },
    { "a constant: count", "[%r5+8], 1;", "[%r5+8], 2;", "PTX-COUNT" },
    { "a constant: groups", "wait_group 0", "wait_group 1", "PTX-COUNT" },
    { "a constant: threads", "sync 0, 64", "sync 0, 32", "PTX-COUNT" },
    { "another space", "fence.proxy.async.shared::cta;", "fence.proxy.async;",
      "PTX-COUNT" },
    /* roles */
    { "moved to the other role",
      "\tmbarrier.arrive.shared::cta.b64 _, [%r5];\n",
      "\tmbarrier.arrive.shared::cta.b64 _, [%r5];\n"
      "\tfence.proxy.async.shared::cta;\n",
      "PTX-COUNT" },
    { "a role of all", "\t@%p2 bra $L_5;", "", "PTX-COUNT" },
    { "the wrong warps", "setp.gt.u32 %p2, %r4, 0", "setp.gt.u32 %p2, %r4, 1",
      "PTX-COUNT" },
    { "turned", "@%p2 bra", "@!%p2 bra", "PTX-COUNT" },
    { "by another lane", "setp.ne.s32 %p1, %r2, 0", "setp.ne.s32 %p1, %r2, 1",
      "PTX-COUNT" },
    { "by every lane", "\t@%p1 bra $L_2;\n", "", "PTX-COUNT" },
    { "not elected", "\t@!%p4 bra $L_4;\n", "", "PTX-COUNT" },
    { "an instruction nobody knows", "setp.gt.u32 %p2, %r4, 0",
      "brev.b32 %r4, %r3; setp.gt.u32 %p2, %r4, 0", "?" },
    /* order */
    { "sunk past the election",
      "\telect.sync _|%p4, 0xffffffff;\n\t@!%p4 bra $L_4;\n\tmbarrier.expect_tx"
      ".relaxed.cta.shared::cta.b64 [%r5], 16;\n",
      "\tmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r5], 16;\n"
      "\telect.sync _|%p4, 0xffffffff;\n\t@!%p4 bra $L_4;\n",
      "PTX-ORDER" },
    { "exchanged",
      "\tfence.proxy.async.shared::cta;\n\tbar.warp.sync 0xffffffff;\n",
      "\tbar.warp.sync 0xffffffff;\n\tfence.proxy.async.shared::cta;\n",
      "PTX-ORDER" },
    { "out of the loop",
      "\tbar.warp.sync 0xffffffff;\n\tadd.s32 %r1, %r1, -1;\n\tsetp.ne.s32 "
      "%p6, %r1, 0;\n\t@%p6 bra $L_6;\n",
      "\tadd.s32 %r1, %r1, -1;\n\tsetp.ne.s32 %p6, %r1, 0;\n"
      "\t@%p6 bra $L_6;\n\tbar.warp.sync 0xffffffff;\n",
      "PTX-ORDER" },
    { "skipped at times", "\tbar.warp.sync 0xffffffff;\n",
      "\tsetp.eq.s32 %p7, %r1, 5;\n\t@%p7 bra $L_7;\n"
      "\tbar.warp.sync 0xffffffff;\n$L_7:\n",
      "PTX-ORDER" },
    { "an end too early", "\tcp.async.wait_group 0;\n",
      "\tsetp.eq.s32 %p7, %r1, 5;\n\t@%p7 ret;\n\tcp.async.wait_group 0;\n",
      "PTX-ORDER" },
    { "a wait that does not", "\tbra WAIT;\n", "", "PTX-ORDER" },
    { "a wait for the opposite", "\t@P bra DONE;", "\t@!P bra DONE;",
      "PTX-ORDER" },
    /* instructions by themselves */
    { "local memory", "\tret;", "\tld.local.u32 %r9, [%r8];\n\tret;",
      "PTX-LOCAL" },
    { "a local array", "\t.reg .pred %p<9>;",
      "\t.local .align 4 .b8 stack[16];\n\t.reg .pred %p<9>;", "PTX-LOCAL" },
    { "a generic load", "\tret;", "\tld.u32 %r9, [%rd1];\n\tret;",
      "PTX-GENERIC" },
    { "a volatile generic load", "\tret;",
      "\tld.volatile.u32 %r9, [%rd1];\n\tret;", "PTX-GENERIC" },
    { "a shared load", "\tret;", "\tld.shared.u32 %r9, [%r5];\n\tret;", NULL },
    { "a generic barrier", "mbarrier.arrive.shared::cta.b64",
      "mbarrier.arrive.b64", "PTX-GENERIC" },
    { "an address made generic", "\tret;",
      "\tcvta.shared.u64 %rd1, %rd2;\n\tret;", "PTX-GENERIC" },
    { "memory of its own for each thread", "\tret;",
      "\talloca.u64 %rd1, 16, 8;\n\tret;", "PTX-LOCAL" },
    /* the head */
    { "lines that end otherwise", " k\n", " k\r\n", NULL },
    { "a kernel whose name goes on", " k\n", " k2\n", "PTX-ABI" },
    { "a wider parameter", ".param .u32 k_param_0", ".param .u64 k_param_0",
      "PTX-HEAD" },
    { "a parameter as bytes", ".param .u32 k_param_0",
      ".param .align 4 .b8 k_param_0[4]", NULL },
    { "a parameter as fewer bytes", ".param .u32 k_param_0",
      ".param .align 4 .b8 k_param_0[3]", "PTX-HEAD" },
    { "a parameter less aligned", ".param .u32 k_param_0",
      ".param .align 2 .b8 k_param_0[4]", "PTX-HEAD" },
    { "a parameter more aligned", ".param .u32 k_param_0",
      ".param .align 16 .u32 k_param_0 /* ) { */", NULL },
    { "a parameter more", ".param .u32 k_param_0",
      ".param .u32 k_param_0,\n\t.param .u64 .ptr .global .align 1 q",
      "PTX-HEAD" },
    { "no parameter", ".param .u32 k_param_0", "", "PTX-HEAD" },
    { "a directive in a comment", ".maxntid 64, 1, 1",
      "// .maxntid 32 {\n.maxntid 64, 1, 1", NULL },
    { "an entry in a comment", ".visible .entry",
      "// .entry k() { ret; }\n.visible .entry", NULL },
    { "an old version", ".version 8.3", ".version 7.8", "T-ARCH" },
    { "an old target", ".target sm_90a", ".target sm_80", "T-ARCH" },
    { "another kernel's", "// exo-abi: ", "// exo-abi: 1", "PTX-ABI" },
    { "another name", ".entry k(", ".entry k2(", "PTX-COUNT" },
    { "a longer target", ".target sm_90a", ".target sm_90", NULL },
    { "no number", ".version 8.3", ".version 8.x", "T-ARCH" },
    { "a target of that name", ".target sm_90a", ".target sm_90ab", "T-ARCH" },
    { "addresses of 32 bits", ".address_size 64", ".address_size 32",
      "T-ARCH" },
    { "fewer threads", ".maxntid 64, 1, 1", ".maxntid 32, 1, 1", "PTX-HEAD" },
    { "more threads", ".maxntid 64, 1, 1", ".maxntid 64, 2, 1", "PTX-HEAD" },
    { "threads in y", ".maxntid 64, 1, 1", ".maxntid 1, 64, 1", "PTX-HEAD" },
    { "other threads asked for", ".maxntid 64, 1, 1", ".reqntid 128",
      "PTX-HEAD" },
    { "as many threads asked for", ".maxntid 64, 1, 1", ".reqntid 64", NULL },
    { "nothing said of threads", ".maxntid 64, 1, 1\n", "", NULL },
    { "more blocks", ".maxntid 64, 1, 1", ".maxntid 64\n.minnctapersm 2",
      "PTX-HEAD" },
    { "a cluster", ".maxntid 64, 1, 1", ".maxntid 64\n.maxclusterrank 2",
      "PTX-HEAD" },
    { "a cluster asked for", ".maxntid 64, 1, 1",
      ".maxntid 64\n.reqnctapercluster 2, 1, 1", "PTX-HEAD" },
    { "registers", ".maxntid 64, 1, 1", ".maxntid 64\n.maxnreg 1040",
      "PTX-HEAD" },
    { "less aligned", ".align 1024", ".align 16", "PTX-HEAD" },
    { "shared memory of its own", "\t.reg .pred",
      "\t.shared .align 4 .b8 own[64];\n\t.reg .pred", "PTX-HEAD" },
    { "shared memory of the module", ".visible .entry",
      ".shared .align 4 .b8 own[64];\n.visible .entry", "PTX-HEAD" },
    { "and for all to see", ".visible .entry",
      " .visible .shared .align 4 .b8 own[64];\n.visible .entry", "PTX-HEAD" },
    { "shared memory in words", ".visible .entry",
      "// .shared memory\n.visible .entry", NULL },
    /* what cannot be read */
    { "a parameter without a type", ".param .u32 k", ".param k", "PTX-FORM" },
    { "a parameter of a type that is none", ".u32 k_param_0", ".u33 k_param_0",
      "PTX-FORM" },
    { "a parameter without a length", "k_param_0", "k_param_0[]", "PTX-FORM" },
    { "parameters without an end", "k_param_0\n)", "k_param_0\n", "PTX-FORM" },
    { "the entry once more", ".visible .entry",
      ".visible .entry k()\n{ ret; }\n.visible .entry", "PTX-FORM" },
    { "no such instruction", "\tret;", "\tadds.s32 %r1, %r1, 1;\n\tret;",
      "PTX-FORM" },
    { "no such type", "\tret;", "\tadd.s33 %r1, %r1, 1;\n\tret;", "PTX-FORM" },
    { "too few operands", "\tret;", "\tadd.s32 %r1, %r1;\n\tret;", "PTX-FORM" },
    { "too many operands", "\tret;", "\tshl.b32 %r1, %r1, 1, 2;\n\tret;",
      "PTX-FORM" },
    { "an instruction of the ISA", "\tret;",
      "\tlop3.b32 %r9, %r1, %r2, %r3, 0x80;\n\tret;", NULL },
    { "no such register", "\tret;", "\tmov.b32 %r30, 1;\n\tret;", "PTX-FORM" },
    { "a register of another scope", "\tret;", "\t@P ret;\n\tret;",
      "PTX-FORM" },
    { "a register of the machine", "\tret;",
      "\tmov.u32 %r9, %nctaid.x;\n\tret;", NULL },
    { "no such label", "bra.uni $L_3", "bra.uni $L_33", "PTX-FORM" },
    { "a label of another scope", "\tret;", "\tbra WAIT;\n\tret;", "PTX-FORM" },
    { "no end", "\tret;\n}\n", "", "PTX-FORM" },
    { "no semicolon", "\tret;\n", "\tadd.s32 %r1, %r1 \"\n", "PTX-FORM" },
    { "no body", "{\n\t.reg", ";\n", "PTX-FORM" },
    { "a guard that is none", "@%p6", "@", "PTX-FORM" },
    { "no list of targets", "\t@%p2 bra $L_5;", "\tbrx.idx %r4, T;",
      "PTX-FORM" },
};

static bool replace_first(StrBuf *out, const char *text, const Edit *e)
{
    const char *at = strstr(text, e->from);
    if (!at)
        return false;
    strbuf_addn(out, text, (size_t)(at - text));
    strbuf_add(out, e->to);
    strbuf_add(out, at + strlen(e->from));
    return true;
}

static void check(const Edit *e)
{
    Ctx *ctx = ctx_new();
    Lib *lib = lib_new(ctx);
    uint32_t file =
        ctx_add_source(ctx, "k.eir", kernel_text, strlen(kernel_text));
    Module *m = eir_parse(ctx, file, lib);
    cr_assert(m);
    StrBuf whole = { 0 }, ptx = { 0 };
    strbuf_addf(&whole, "// exo-abi: %016llx k\n%s",
                (unsigned long long)kernel_abi_hash(ctx, module_symbol(m, "k")),
                ptx_text);
    cr_assert(replace_first(&ptx, strbuf_text(&whole), e), "%s: no such text",
              e->name);
    CheckResult r =
        check_readback(ctx, m, module_symbol(m, "p"), 0, strbuf_text(&ptx));
    const Diag *d = ctx_diags(ctx);
    if (!e->code)
        cr_expect(r.verdict == VERDICT_proved, "%s: %s", e->name,
                  d ? d->message : r.reason);
    else if (*e->code == '?')
        cr_expect(r.verdict == VERDICT_unknown && !d, "%s", e->name);
    else
        cr_expect(r.verdict == VERDICT_refuted && d &&
                      !strcmp(d->code, e->code),
                  "%s: expected %s, found %s", e->name, e->code,
                  d ? d->message : "nothing");
    strbuf_free(&whole);
    strbuf_free(&ptx);
    module_free(m);
    ctx_free(ctx);
}

Test(readback, each_edit)
{
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        check(&edits[i]);
}

#define WGMMA \
    "\twgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r1, %r2}, "

/* Each line is another letter than the one before it, by its constants. */
static const char operands_text[] =
    ".entry k()\n{\n\t.reg .pred P;\n\t.reg .b32 %r<9>;\n"
    "\t.reg .b64 %rd<9>;\n" WGMMA "%rd1, %rd2, P, 1, 1, 0, 0;\n" WGMMA
    "%rd1, %rd2, P, 1, 1, 1, 0;\n" WGMMA "%rd1, %rd2, P, 1, 1, 0, 1;\n" WGMMA
    "%rd1, %rd2, P, -1, 1, 0, 1;\n" WGMMA "%rd1, %rd2, P, 1, -1, 0, 1;\n" WGMMA
    "{%r3, %r4, %r5, %r6}, %rd2, P, 1, 1, 0;\n" WGMMA
    "{%r3, %r4, %r5, %r6}, %rd2, P, 1, 1, 1;\n"
    "\tcp.async.ca.shared.global [%r1], [%rd1], 8;\n"
    "\tcp.async.ca.shared.global [%r1+8], [%rd1], 4;\n"
    "\tcp.async.ca.shared.global [%r1], [%rd1+16], 8, 0;\n"
    "\tcp.async.ca.shared.global [%r1], [%rd1], 8, %r2;\n"
    "\tatom.global.add.u32 %r1, [%rd1], 1;\n"
    "\tatom.global.add.f32 %r1, [%rd1], %r2;\n"
    "\tatom.shared.add.f32 %r1, [%r3], %r2;\n"
    "\tatom.relaxed.cta.global.add.f32 %r1, [%rd1], %r2;\n"
    "}\n";

Test(readback, letters_tell_constants_apart)
{
    Alphabet letters = { .a = arena_new(), .arch = "sm_90a" };
    PtxKernel k;
    const char *error;
    uint32_t line;
    cr_assert(ptx_read(letters.a, operands_text, "k", &k, &error, &line), "%s",
              error);
    for (unsigned i = 0; i + 1 < k.n_instrs; i++)
        cr_expect_eq(letter_of_instr(&letters, &k.instrs[i]).id, i + 1,
                     "line %u", k.instrs[i].line);
    arena_free(letters.a);
}

/* Any beginning of the text is read without a crash. */
Test(readback, truncated)
{
    for (size_t n = 0; n < sizeof ptx_text; n += 7) {
        Arena *a = arena_new();
        PtxKernel k;
        const char *error;
        uint32_t line;
        char *part = arena_strndup(a, ptx_text, n);
        bool ok = ptx_read(a, part, "k", &k, &error, &line);
        cr_expect(!ok || n > sizeof ptx_text - 4);
        arena_free(a);
    }
}

/* Every op that synchronises or is collective has a letter. A shuffle orders
 * nothing, so that LLVM may merge or drop it. */
Test(readback, letters_are_complete)
{
    for (int c = OP_none + 1; c < OP_count; c++) {
        const OpInfo *row = op_info((OpCode)c);
        bool must = !strcmp(row->dialect, "async") &&
                    (row->traits & (OPT_SYNC | OPT_COLLECTIVE)) &&
                    !(row->traits & OPT_PURE);
        cr_expect(!must || letters_know((OpCode)c), "async.%s has no letter",
                  row->name);
    }
}
