/* The fast machine of sync-check against the plain one (sync_plain.h): the same
 * fault at the same statement and element, or none, on programs made at random
 * and on the kernels at small sizes. EXO_LONG: ten thousand programs. */
#include "sync_compare.h"

#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- programs ----------------------------------------------------------- */

typedef struct Random {
    uint64_t state;
} Random;

static unsigned pick(Random *r, unsigned n)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return (unsigned)(r->state >> 33) % n;
}

static const char *pick_text(Random *r, unsigned n, const char *const *texts)
{
    return texts[pick(r, n)];
}

typedef struct Gen {
    Random r;
    StrBuf out;
    unsigned indent;
    bool loop;      /* inside `for k` */
    bool many;      /* loops of so many trips that they become steady */
    unsigned trips; /* of the loop at hand */
} Gen;

static void line(Gen *g, const char *fmt, ...)
{
    va_list ap;
    strbuf_addf(&g->out, "%*s", (int)(4 * g->indent), "");
    va_start(ap, fmt);
    strbuf_vaddf(&g->out, fmt, ap);
    va_end(ap);
    strbuf_add(&g->out, "\n");
}

static const char *const in_order[] = { "cuda_in_order", "cuda_in_order",
                                        "cuda_temporal" };
static const char *const fence_first[] = { "cuda_in_order", "Sm80_generic",
                                           "cuda_temporal", "Sm80_generic" };

static void slot(Gen *g, char *text, size_t n)
{
    if (g->loop && pick(&g->r, 2))
        snprintf(text, n, "(k + %u) %% 4", pick(&g->r, 3));
    else
        snprintf(text, n, "%u", pick(&g->r, 4));
}

static void statement(Gen *g, unsigned depth);

static void threads_statement(Gen *g)
{
    char a[32];
    unsigned d = pick(&g->r, 3) * 4 + pick(&g->r, 2);
    slot(g, a, sizeof a);
    switch (pick(&g->r, 7)) {
    case 0:
        line(g, "s[%s, (4 * t + %u) %% 256] = x[t, 0]", a, d);
        break;
    case 1:
        line(g, "s[%s, (4 * t + %u) %% 256] += x[t, 0]", a, d);
        break;
    case 2:
        line(g, "y[%u, t] = s[%s, (4 * t + %u) %% 256]", pick(&g->r, 4), a, d);
        break;
    case 3:
        line(g,
             "Sm80_cp_async_1d(s[%s, 4 * t:4 * t + 4], x[t, 0:4], size0=4, "
             "T=f32)",
             a);
        break;
    case 4:
        line(g, "Arrive(Sm80_cp_async, 1) >> cg[t]");
        break;
    case 5:
        line(g, "Await(cg[t], cuda_in_order, %u)", pick(&g->r, 3));
        break;
    default:
        line(g, "s[%s, 4 * t] = s[%s, 4 * t + 1]", a, a);
        break;
    }
}

static void threads_block(Gen *g)
{
    unsigned n = 1 + pick(&g->r, 3);
    line(g, "for t in cuda_threads(0, 64, unit=cuda_thread):");
    g->indent++;
    while (n--)
        threads_statement(g);
    g->indent--;
}

static void loop_block(Gen *g, unsigned depth)
{
    unsigned n = 1 + pick(&g->r, 4);
    bool outer = g->loop;
    unsigned trips = g->many ? 20 + pick(&g->r, 12) : 1 + pick(&g->r, 4);
    if (!outer)
        g->trips = trips;
    if (!outer)
        line(g, "for k in seq(0, %u):", trips);
    else if (!pick(&g->r, 4))
        line(g, "for j in seq(0, %u):", g->many ? 9 : 2);
    else if (pick(&g->r, 2))
        line(g, "if k >= %u:", 1 + pick(&g->r, 2));
    else
        line(g, "if k < %u:", g->trips - 1);
    g->loop = true;
    g->indent++;
    while (n--)
        statement(g, depth - 1);
    g->indent--;
    g->loop = outer;
}

static void statement(Gen *g, unsigned depth)
{
    unsigned what = pick(&g->r, 8);
    if (what < 4) {
        threads_block(g);
    } else if (what < 6 || !depth) {
        line(g, "Fence(%s, %s)", pick_text(&g->r, 4, fence_first),
             pick_text(&g->r, 3, in_order));
    } else if (what == 6) {
        line(g, "for w in cuda_threads(0, 2, unit=cuda_warp):");
        g->indent++;
        line(g, "Fence(%s, cuda_in_order)", pick_text(&g->r, 4, fence_first));
        g->indent--;
    } else {
        loop_block(g, depth);
    }
}

/* All elements are written, and the group has its two halves. */
static void start(Gen *g)
{
    line(g, "for t in cuda_threads(0, 64, unit=cuda_thread):");
    g->indent++;
    line(g, "for a in seq(0, 4):");
    line(g, "    for i in seq(0, 4):");
    line(g, "        s[a, 4 * t + i] = x[t, i]");
    line(g, "Arrive(Sm80_cp_async, 1) >> cg[t]");
    line(g, "Await(cg[t], cuda_in_order, 0)");
    g->indent--;
    if (pick(&g->r, 8))
        line(g, "Fence(cuda_in_order, cuda_in_order)");
}

/* Statements by threads, fences and commit groups in any order. */
static void free_program(Gen *g)
{
    unsigned n = 2 + pick(&g->r, 6);
    g->indent = 0;
    line(g, "def p(x: f32[64, 4] @ CudaGmemLinear, y: f32[4, 64] @ "
            "CudaGmemLinear):");
    g->indent++;
    line(g, "with CudaDeviceFunction(blockDim=64):");
    g->indent++;
    line(g, "for task in cuda_tasks(0, 1):");
    g->indent++;
    line(g, "s: f32[4, 256] @ CudaSmemLinear");
    line(g, "cg: barrier[64] @ Sm80_CommitGroup");
    start(g);
    while (n--)
        statement(g, 2);
    if (pick(&g->r, 4))
        line(g, "Fence(Sm80_generic, cuda_in_order)");
}

/* One statement in `odds` goes wrong. */
static bool wrong(Gen *g, unsigned odds)
{
    return pick(&g->r, odds) == 0;
}

static void producer(Gen *g, unsigned odds)
{
    unsigned late = wrong(g, odds);
    line(g, "with CudaWarps(0, 1):");
    g->indent++;
    if (!late)
        line(g, "Await(war[k], cuda_temporal, 0)");
    line(g, "for t in cuda_threads(0, 32, unit=cuda_thread):");
    g->indent++;
    if (pick(&g->r, 2))
        line(g, "Sm80_cp_async_1d(s[k, 4 * t:4 * t + 4], x[t, 0:4], size0=4, "
                "T=f32)");
    else
        line(g, "s[k, 4 * t] = x[t, 0]");
    g->indent--;
    if (late)
        line(g, "Await(war[k], cuda_temporal, 0)");
    line(g, "Arrive(%s, 1) >> raw[k]",
         pick(&g->r, 3) ? "Sm80_cp_async" : "cuda_in_order");
    g->indent--;
}

static void consumer(Gen *g, unsigned odds, unsigned depth)
{
    unsigned lead = wrong(g, odds) ? 1 : 0;
    bool early = wrong(g, odds);
    line(g, "with CudaWarps(1, 2):");
    g->indent++;
    if (!wrong(g, odds))
        line(g, "Await(raw[k], cuda_in_order, 0)");
    else
        line(g, "Await(raw[0], cuda_in_order, 0)");
    if (early)
        line(g, "Arrive(cuda_in_order, 1) >> war[k + %u]", depth + lead);
    line(g, "for t in cuda_threads(0, 32, unit=cuda_thread):");
    g->indent++;
    line(g, "y[k, t] = s[%s, 4 * t]", wrong(g, odds) ? "0" : "k");
    g->indent--;
    if (wrong(g, odds)) {
        if (pick(&g->r, 2))
            line(g, "if k >= 1:");
        else
            line(g, "if k < %u:", g->trips - 1);
        g->indent++;
        line(g, "Arrive(cuda_in_order, 1) >> war[k + %u]", depth + lead);
        g->indent--;
    } else if (!early) {
        line(g, "Arrive(cuda_in_order, 1) >> war[k + %u]", depth + lead);
    }
    g->indent--;
}

/* A ring filled by one warp and read by another, with a few faults. */
static void ring_program(Gen *g)
{
    unsigned depth = 1 + pick(&g->r, 3);
    unsigned trips = g->many ? 20 + pick(&g->r, 12) : 1 + pick(&g->r, 5);
    unsigned odds = 6 + pick(&g->r, 20);
    g->indent = 0;
    g->trips = trips;
    line(g, "def p(x: f32[64, 4] @ CudaGmemLinear, y: f32[32, 64] @ "
            "CudaGmemLinear):");
    g->indent++;
    line(g, "with CudaDeviceFunction(blockDim=64):");
    g->indent++;
    line(g, "for task in cuda_tasks(0, 1):");
    g->indent++;
    line(g,
         "war: barrier[%u @ (ring_buffer_by(depth=%u))] @ "
         "CudaMbarrierPreArrive(%u)",
         trips + depth, depth, wrong(g, odds) ? depth - 1 : depth);
    line(g,
         "raw: barrier[%u @ (ring_buffer_by(depth=%u))] @ "
         "CudaMbarrierPreArrive(0)",
         trips, depth);
    line(g,
         "s: f32[%u @ (ring_buffer_by(depth=%u)), "
         "128].ring_guarded_by(war) @ CudaSmemLinear",
         trips, depth);
    line(g, "for k in seq(0, %u):", trips);
    g->indent++;
    bool swapped = wrong(g, odds);
    if (swapped)
        consumer(g, odds, depth);
    producer(g, odds);
    if (!swapped)
        consumer(g, odds, depth);
}

/* ---- comparing ---------------------------------------------------------- */

static void generated(Ctx *ctx, Lib *lib, uint64_t seed, Counts *counts)
{
    static const unsigned how[] = { HOW_eager, HOW_eager | HOW_narrow,
                                    HOW_every_step | HOW_narrow };
    Gen g = { .r = { seed * UINT64_C(0x9e3779b97f4a7c15) + 1 } };
    for (unsigned i = 0; i < 8; i++)
        pick(&g.r, 2);
    g.many = !pick(&g.r, 12);
    if (pick(&g.r, 2))
        free_program(&g);
    else
        ring_program(&g);
    uint32_t file =
        ctx_add_source(ctx, "p.exo", strbuf_text(&g.out), g.out.len);
    Loaded l = load(ctx, lib, file);
    SizeSet none = { 0 };
    if (l.p && !l.p->unknown)
        compare(&l, &none, how[seed % 3], counts, strbuf_text(&g.out));
    else
        counts->skipped++;
    unload(&l);
    strbuf_free(&g.out);
}

Test(sync_machine, agrees_on_generated_programs)
{
    unsigned n = getenv("EXO_LONG") ? 10000 : 300;
    Counts counts = { 0 };
    for (unsigned seed = 0; seed < n;) {
        Ctx *ctx = ctx_new();
        Lib *lib = lib_new(ctx);
        cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
        for (unsigned k = 0; k < 100 && seed < n; k++)
            generated(ctx, lib, seed++, &counts);
        ctx_free(ctx);
    }
    cr_assert_lt(counts.skipped, n / 2, "%u skipped", counts.skipped);
    cr_assert_gt(counts.accepted, n / 20, "%u accepted", counts.accepted);
    cr_assert_gt(counts.refused, n / 20, "%u refused", counts.refused);
    cr_assert_gt(counts.steady, n / 50, "%u steady", counts.steady);
    printf("generated programs: %u accepted, %u refused, %u steady loops, %u "
           "not in the language\n",
           counts.accepted, counts.refused, counts.steady, counts.skipped);
}

static Counts agree(const char *path, const int64_t *values, unsigned how)
{
    Ctx *ctx = ctx_new();
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    uint32_t file = ctx_read_source(ctx, path);
    cr_assert(file, "%s", path);
    Loaded l = load(ctx, lib, file);
    cr_assert(l.p, "%s", path);
    Counts counts = { 0 };
    SizeSet sizes = sizes_of(l.arena, l.p->proc);
    sizes.values = values;
    compare(&l, &sizes, how, &counts, path);
    cr_assert_eq(counts.accepted, 1, "%s", path);
    unload(&l);
    ctx_free(ctx);
    return counts;
}

static void agrees_on(const char *path, const int64_t *values)
{
    agree(path, values, HOW_coarse);
}

/* With a steady loop in it. */
static void agrees_on_steady(const char *path, const int64_t *values)
{
    Counts c = agree(path, values, HOW_coarse | HOW_eager);
    cr_assert_gt(c.steady, 0, "%s", path);
}

#define KERNEL(name) EXO_SOURCE_DIR "/kernels/" name ".exo"
#define EXAMPLE(name) EXO_SOURCE_DIR "/test/examples/" name ".exo"

Test(sync_machine, agrees_on_small_kernels)
{
    agrees_on(KERNEL("saxpy"), (int64_t[]){ 300 });
    agrees_on(KERNEL("transpose"), (int64_t[]){ 33, 40 });
    agrees_on(EXAMPLE("scale_pipelined"), (int64_t[]){ 4, 4 });
}

typedef struct GemmCase {
    char path[256];
    int64_t values[3];
    bool is_long; /* by EXO_LONG alone */
} GemmCase;

/* Each in a process of its own: the plain machine needs up to a GiB. */
ParameterizedTestParameters(sync_machine, agrees_on_gemms)
{
    static GemmCase cases[] = {
        { EXAMPLE("gemm_bf16_one_cta"), { 128, 256, 128 }, false },
        { EXAMPLE("gemm_bf16_cluster"), { 256, 256, 256 }, true },
        { KERNEL("gemm_simt_f32"), { 128, 128, 16 }, true },
        { KERNEL("gemv_f32"), { 33, 40 }, true },
        { KERNEL("gemm_sm80_bf16"), { 128, 128, 8 }, true },
        { KERNEL("gemm_sm80_f16"), { 136, 128, 8 }, true },
        { KERNEL("gemm_sm80_tf32"), { 128, 128, 8 }, true },
        { KERNEL("gemm_sm80_bf16_mbarrier"), { 128, 128, 8 }, true },
        { KERNEL("gemm_sm80_f16_mbarrier"), { 128, 136, 8 }, true },
        { KERNEL("gemm_sm80_tf32_mbarrier"), { 128, 128, 8 }, true },
        { KERNEL("gemm_sm90_bf16"), { 256, 256, 320 }, true },
        { KERNEL("gemm_sm90_f16"), { 256, 256, 136 }, true },
        { KERNEL("gemm_sm90_tf32"), { 256, 256, 72 }, true },
        { KERNEL("gemm_sm90_tf32_splitk"), { 256, 256, 64 }, true },
        { KERNEL("gemm_sm90_bf16_1x1"), { 128, 256, 200 }, true },
        { KERNEL("gemm_sm90_bf16_1x2"), { 128, 512, 136 }, true },
        { KERNEL("gemm_sm90_bf16_2x2"), { 256, 512, 72 }, true },
        { KERNEL("gemm_sm90_bf16_pingpong"), { 256, 128, 200 }, true },
    };
    return cr_make_param_array(GemmCase, cases, sizeof cases / sizeof *cases);
}

ParameterizedTest(GemmCase *c, sync_machine, agrees_on_gemms)
{
    if (!c->is_long || getenv("EXO_LONG"))
        agrees_on(c->path, c->values);
}

Test(sync_machine, agrees_on_steady_loops)
{
    agrees_on_steady(EXO_SOURCE_DIR "/test/conformance/sync/three_cycle.exo",
                     (int64_t[]){ 45 });
    agrees_on_steady(EXAMPLE("scale_pipelined"), (int64_t[]){ 30, 30 });
    if (!getenv("EXO_LONG"))
        return;
    agrees_on_steady(EXAMPLE("gemm_bf16_one_cta"),
                     (int64_t[]){ 128, 256, 1600 });
    agrees_on_steady(KERNEL("gemm_sm90_bf16_1x1"),
                     (int64_t[]){ 128, 256, 2000 });
    agrees_on_steady(KERNEL("gemm_sm90_bf16_pingpong"),
                     (int64_t[]){ 256, 128, 1800 });
}
