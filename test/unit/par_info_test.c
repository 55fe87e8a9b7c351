/* What the par analysis says of programs: worked deductions of distributed
 * memory, iterators and guards in terms of coordinates, kinds of thread sets,
 * targets of multicasts and arrival counts. */
#include "ir/exo.h"
#include "passes/analysis/par_info.h"
#include "passes/analysis/par_text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Program {
    Ctx *ctx;
    Module *m;
    ParInfo *pi;
} Program;

/* `body`, indented by 12, as the one task of a device function. */
static Program program(const char *device, const char *body)
{
    static const char shape[] = "def p(x: f32[4096] @ CudaGmemLinear):\n"
                                "    with CudaDeviceFunction(%s):\n"
                                "        for task in cuda_tasks(0, 1):\n"
                                "%s";
    Program p = { .ctx = ctx_new() };
    Lib *lib = lib_new(p.ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    StrBuf text = { 0 };
    strbuf_addf(&text, shape, device, body);
    uint32_t file =
        ctx_add_source(p.ctx, "p.exo", strbuf_text(&text), text.len);
    p.m = exo_parse(p.ctx, file, lib, NULL);
    StrBuf errors = { 0 };
    if (!p.m)
        diag_render(p.ctx, ctx_diags(p.ctx), &errors);
    cr_assert(p.m, "%s", strbuf_text(&errors));
    strbuf_free(&text);
    p.pi = par_analyze(p.ctx, p.m, NULL);
    return p;
}

static void program_free(Program *p)
{
    module_free(p->m);
    ctx_free(p->ctx);
}

static const char *first_error(const Program *p)
{
    for (const Diag *d = ctx_diags(p->ctx); d; d = d->next)
        if (d->severity == SEV_error)
            return d->message;
    return "accepted";
}

/* ---- finding ops -------------------------------------------------------- */

typedef struct Search {
    const Module *m;
    OpCode code;
    const char *name; /* of an allocation or of a loop's iterator; or NULL */
    unsigned skip;
    Op *found;
} Search;

static const char *op_name(const Module *m, const Op *op)
{
    if (op->code == OP_mem_alloc)
        return op->results[0]->name;
    if (op->code == OP_ctl_for)
        return var_get(m->exprs, op->blocks[0]->args[0].var)->name;
    return NULL;
}

static bool search_op(Op *op, void *user)
{
    Search *s = user;
    if (!s->found && op->code == s->code &&
        (!s->name || !strcmp(op_name(s->m, op), s->name)) && s->skip-- == 0)
        s->found = op;
    return !s->found;
}

static Op *find(const Program *p, OpCode code, const char *name, unsigned nth)
{
    Search s = { p->m, code, name, nth, NULL };
    block_walk(p->m->body, search_op, &s);
    cr_assert(s.found, "no op %s", op_info(code)->name);
    return s.found;
}

/* ---- distributed memory ------------------------------------------------- */

typedef struct DistRow {
    const char *name, *device, *body, *alloc;
    unsigned n;
    int64_t pitch[4];
    const char *shard; /* what remains */
    const char *error; /* or NULL */
} DistRow;

#define T12 "            "
#define T16 "                "
#define T20 "                    "
#define T24 "                        "
#define T28 "                            "

/* clang-format off */
static const DistRow dist_rows[] = {
    { "chain of two", "blockDim=256",
      T12 "v: f32[16, 8, 2] @ CudaRmem\n"
      T12 "with CudaWarps(2, 6):\n"
      T16 "for m in cuda_threads(0, 16, unit=8 * cuda_thread):\n"
      T20 "for n in cuda_threads(0, 8, unit=cuda_thread):\n"
      T24 "for s in seq(0, 2):\n"
      T28 "v[m, n, s] = 0.0\n",
      "v", 2, { 8, 1 }, "[2]", NULL },
    { "chain of three, in any order of indices", "blockDim=256",
      T12 "v: f32[16, 8, 2] @ CudaRmem\n"
      T12 "for b in cuda_threads(0, 2, unit=128 * cuda_thread):\n"
      T16 "for m in cuda_threads(0, 16, unit=8 * cuda_thread):\n"
      T20 "for n in cuda_threads(0, 8, unit=cuda_thread):\n"
      T24 "v[m, n, b] = 0.0\n",
      "v", 3, { 8, 1, 128 }, "[]", NULL },
    { "repeated behind the last needed", "blockDim=256",
      T12 "v: f32[16, 16, 16] @ CudaRmem\n"
      T12 "for m in cuda_threads(0, 16, unit=16 * cuda_thread):\n"
      T16 "for n in cuda_threads(0, 16, unit=cuda_thread):\n"
      T20 "v[n, m, m] = 0.0\n",
      "v", 2, { 1, 16 }, "[16]", NULL },
    { "repeated among the needed", "blockDim=256",
      T12 "v: f32[16, 16, 16] @ CudaRmem\n"
      T12 "for m in cuda_threads(0, 16, unit=16 * cuda_thread):\n"
      T16 "for n in cuda_threads(0, 16, unit=cuda_thread):\n"
      T20 "v[m, m, n] = 0.0\n",
      "v", 0, { 0 }, NULL, "repeated" },
    { "six tiles of each warp", "blockDim=256",
      T12 "D: f32[2, 4, 6, 16, 8] @ Sm80_RmemMatrixD(16, 8)\n"
      T12 "for a in cuda_threads(0, 2, unit=128 * cuda_thread):\n"
      T16 "for b in cuda_threads(0, 4, unit=32 * cuda_thread):\n"
      T20 "for s in seq(0, 6):\n"
      T24 "Sm80_mma_m16n8_zero(D[a, b, s, 0:16, 0:8], D=f32)\n",
      "D", 2, { 128, 32 }, "[6, 16, 8]", NULL },
    { "shared memory of each CTA", "blockDim=256, clusterDim=4",
      T12 "S: f32[4, 4, 64] @ CudaSmemLinear\n"
      T12 "for a in cuda_threads(0, 4, unit=cuda_cta_in_cluster):\n"
      T16 "for y in cuda_threads(0, 4, unit=64 * cuda_thread):\n"
      T20 "for z in cuda_threads(0, 64, unit=cuda_thread):\n"
      T24 "S[a, y, z] = 0.0\n",
      "S", 1, { 256 }, "[4, 64]", NULL },
    { "threads in front of CTAs", "blockDim=256, clusterDim=4",
      T12 "S: f32[4, 4, 64] @ CudaSmemLinear\n"
      T12 "for a in cuda_threads(0, 4, unit=cuda_cta_in_cluster):\n"
      T16 "for y in cuda_threads(0, 4, unit=64 * cuda_thread):\n"
      T20 "for z in cuda_threads(0, 64, unit=cuda_thread):\n"
      T24 "S[y, a, z] = 0.0\n",
      "S", 0, { 0 }, NULL, "y is not an expected distributed iterator" },
    { "barriers of each CTA", "blockDim=64, clusterDim=2",
      T12 "b: barrier[2, 2, 4 @ (ring_buffer_by(depth=2))] @ "
          "CudaMbarrierPreArrive(0, )\n"
      T12 "for c in cuda_threads(0, 2, unit=cuda_cta_in_cluster):\n"
      T16 "for w in cuda_threads(0, 2, unit=cuda_warp):\n"
      T20 "for i in seq(0, 4):\n"
      T24 "Arrive(cuda_in_order, 1) >> b[c, w, i]\n"
      T24 "Await(b[c, w, i], cuda_in_order, 0)\n",
      "b", 1, { 64 }, "[2, 4]", NULL },
    { "an iterator of one tile counts", "blockDim=64, clusterDim=2",
      T12 "S: f32[1, 2, 64] @ CudaSmemLinear\n"
      T12 "for n in cuda_threads(0, 1, unit=2 * cuda_cta_in_cluster):\n"
      T16 "for c in cuda_threads(0, 2, unit=cuda_cta_in_cluster):\n"
      T20 "for t in cuda_threads(0, 64, unit=cuda_thread):\n"
      T24 "S[n, c, t] = 0.0\n",
      "S", 2, { 0, 64 }, "[64]", NULL },
};
/* clang-format on */

static void check_dist(const DistRow *r)
{
    Program p = program(r->device, r->body);
    if (r->error) {
        cr_expect(!par_ok(p.pi) && strstr(first_error(&p), r->error), "%s: %s",
                  r->name, first_error(&p));
        program_free(&p);
        return;
    }
    cr_assert(par_ok(p.pi), "%s: %s", r->name, first_error(&p));
    const Value *v = find(&p, OP_mem_alloc, r->alloc, 0)->results[0];
    const ParAlloc *a = par_alloc(p.pi, v);
    cr_assert(a);
    cr_assert_eq(a->n_dist, r->n, "%s: R = %u", r->name, a->n_dist);
    for (unsigned i = 0; i < r->n; i++)
        cr_expect_eq(a->dist[i].pitch, r->pitch[i], "%s: pitch %u is %ld",
                     r->name, i, (long)a->dist[i].pitch);
    cr_expect_str_eq(par_text_shape(p.m, v, a->n_dist), r->shard, "%s",
                     r->name);
    program_free(&p);
}

Test(par_info, worked_deductions)
{
    for (size_t i = 0; i < sizeof dist_rows / sizeof *dist_rows; i++)
        check_dist(&dist_rows[i]);
}

/* ---- the warp-specialised GEMM in small --------------------------------- */

/* clang-format off */
static const char roles[] =
    "clusterDim=2, warp_config=["
    "CudaWarpConfig(name='load', count=4, setmaxnreg_dec=40, "
    "setmaxnreg_inc=None), "
    "CudaWarpConfig(name='math', count=8, setmaxnreg_dec=None, "
    "setmaxnreg_inc=232)]";
/* clang-format on */

/* clang-format off */
static const char gemm[] =
    T12 "acc: f32[2, 2, 4, 16, 64] @ Sm90_TkRmemTileD(64)\n"
    T12 "empty: barrier[2, 8 @ (ring_buffer_by(depth=2))] @ "
        "CudaMbarrierPreArrive(2, )\n"
    T12 "for k in seq(0, 4):\n"
    T16 "for c in cuda_threads(0, 2, unit=cuda_cta_in_cluster):\n"
    T20 "with CudaWarps(0, 1, name='load'):\n"
    T24 "Await(empty[c, k], cuda_temporal, 0)\n"
    T24 "for t in cuda_threads(0, 32, unit=cuda_thread):\n"
    T28 "x[t] = 0.0\n"
    T20 "with CudaWarps(name='math'):\n"
    T24 "for g in cuda_threads(0, 2, unit=cuda_warpgroup):\n"
    T28 "Fence(wgmma_fence_1, wgmma_fence_2)\n"
    T28 "Sm90_tk_zero_scale_d(acc[c, g, 0:4, 0:16, 0:64], D=f32, N=64)\n"
    T24 "Fence(cuda_in_order, cuda_in_order)\n"
    T24 "Arrive(cuda_in_order, 1) >> empty[c, k + 2] >> empty[:, k + 2]\n"
    T20 "Fence(cuda_in_order, cuda_in_order)\n"
    T16 "Fence(cuda_in_order, cuda_in_order)\n";
/* clang-format on */

static void expect_text(Program *p, const Affine *e, const char *text)
{
    cr_assert(e);
    cr_expect_str_eq(par_text_affine(p->m, e), text);
}

Test(par_info, iterators_in_coordinates)
{
    Program p = program(roles, gemm);
    cr_assert(par_ok(p.pi), "%s", first_error(&p));
    expect_text(&p, par_iter(p.pi, find(&p, OP_ctl_for, "c", 0)), "cta");
    expect_text(&p, par_iter(p.pi, find(&p, OP_ctl_for, "t", 0)), "lane");
    expect_text(&p, par_iter(p.pi, find(&p, OP_ctl_for, "g", 0)),
                "warp / 4 - 1");
    cr_expect_null(par_iter(p.pi, find(&p, OP_ctl_for, "k", 0)));
    const Cond *all = par_guard(p.pi, find(&p, OP_ctl_for, "g", 0));
    cr_expect_eq(all->kind, COND_true);
    program_free(&p);
}

/* Which warps pass the guards around the op. */
static bool warp_value(const Env *env, const Atom *a, int64_t *out)
{
    const int64_t *at = env->user;
    if (a->kind != ATOM_var || (int64_t)a->var != at[0])
        return false;
    *out = at[1];
    return true;
}

static void expect_warps(Program *p, const Op *op, int64_t lo, int64_t hi)
{
    const ThreadSet *s = par_threads(p->pi, op);
    const ParDevice *d = par_device(p->pi, op);
    for (int64_t w = 0; w < d->block_dim / 32; w++) {
        int64_t at[2] = { d->warp, w };
        Env env = { warp_value, at };
        bool in = false;
        cr_assert(cond_eval(s->guard, &env, &in));
        cr_expect_eq(in, w >= lo && w < hi, "warp %ld", (long)w);
    }
    cr_expect_eq(s->cover_lo, lo);
    cr_expect_eq(s->cover_hi, hi);
}

Test(par_info, thread_sets)
{
    Program p = program(roles, gemm);
    cr_assert(par_ok(p.pi), "%s", first_error(&p));
    Op *fences[4];
    for (unsigned i = 0; i < 4; i++)
        fences[i] = find(&p, OP_par_fence, NULL, i);
    static const struct {
        ThreadsKind kind;
        int64_t threads, ctas, lo, hi;
        const char *role;
    } want[4] = {
        { THREADS_warpgroup, 128, 1, 4, 12, "math" },
        { THREADS_warps, 256, 1, 4, 12, "math" },
        { THREADS_cta, 384, 1, 0, 12, NULL },
        { THREADS_cluster, 768, 2, 0, 12, NULL },
    };
    for (unsigned i = 0; i < 4; i++) {
        const ThreadSet *s = par_threads(p.pi, fences[i]);
        cr_expect_eq(s->kind, want[i].kind, "fence %u: kind %d", i, s->kind);
        cr_expect_eq(s->threads, want[i].threads);
        cr_expect_eq(s->ctas, want[i].ctas);
        cr_expect(want[i].role ? s->role && !strcmp(s->role, want[i].role)
                               : !s->role);
        expect_warps(&p, fences[i], want[i].lo, want[i].hi);
    }
    expect_text(&p, par_threads(p.pi, fences[0])->warp_lo, "4 * (warp / 4)");
    expect_text(&p, par_threads(p.pi, fences[1])->warp_lo, "4");
    Op *await = find(&p, OP_par_await, NULL, 0);
    cr_expect_eq(par_threads(p.pi, await)->kind, THREADS_warp);
    expect_warps(&p, await, 0, 1);
    Op *store = find(&p, OP_mem_store, NULL, 0);
    cr_expect_eq(par_threads(p.pi, store)->kind, THREADS_one);
    program_free(&p);
}

Test(par_info, barriers)
{
    Program p = program(roles, gemm);
    cr_assert(par_ok(p.pi), "%s", first_error(&p));
    const ParSync *s = par_sync(p.pi, find(&p, OP_par_arrive, NULL, 0));
    cr_assert(s);
    cr_expect_eq(s->threads, 256);
    cr_expect_eq(s->source_ctas, 2);
    cr_assert_eq(s->n_xor, 2);
    cr_expect_eq(s->xors[0], 0);
    cr_expect_eq(s->xors[1], 1);
    expect_text(&p, s->home[1], "k + 2");
    cr_expect_eq(par_mbarrier_count(p.pi, s->barrier), 512);
    const ParSync *a = par_sync(p.pi, find(&p, OP_par_await, NULL, 0));
    cr_assert(a);
    cr_expect_eq(a->n_xor, 1);
    const ParAlloc *acc =
        par_alloc(p.pi, find(&p, OP_mem_alloc, "acc", 0)->results[0]);
    cr_assert_eq(acc->n_dist, 3);
    cr_expect(acc->dist[0].across_ctas);
    cr_expect_not(acc->dist[1].across_ctas);
    expect_text(&p, acc->dist[2].value, "warp % 4");
    program_free(&p);
}

/* A row and a column of a 2 x 2 cluster; no multicast; both dimensions. */
Test(par_info, multicast_targets)
{
    static const struct {
        const char *arrive;
        unsigned n;
        int64_t xors[4];
    } rows[] = {
        { "b[m, n, 0]", 1, { 0 } },
        { "b[m, :, 0] >> b[m, n, 0]", 2, { 0, 1 } },
        { "b[:, n, 0] >> b[m, n, 0]", 2, { 0, 2 } },
        { "b[m, :, 0] >> b[:, n, 0]", 3, { 0, 1, 2 } },
        { "b[:, :, 0] >> b[m, n, 0]", 4, { 0, 1, 2, 3 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        StrBuf body = { 0 };
        strbuf_addf(&body,
                    T12 "b: barrier[2, 2, 4 @ (ring_buffer_by(depth=2))] @ "
                        "CudaMbarrierPreArrive(0, )\n" T12
                        "for m in cuda_threads(0, 2, "
                        "unit=2 * cuda_cta_in_cluster):\n" T16
                        "for n in cuda_threads(0, 2, "
                        "unit=cuda_cta_in_cluster):\n" T20
                        "Arrive(cuda_in_order, 1) >> %s\n" T20
                        "Await(b[m, n, 0], cuda_in_order, 0)\n",
                    rows[i].arrive);
        Program p = program("blockDim=64, clusterDim=4", strbuf_text(&body));
        cr_assert(par_ok(p.pi), "%s: %s", rows[i].arrive, first_error(&p));
        const ParSync *s = par_sync(p.pi, find(&p, OP_par_arrive, NULL, 0));
        cr_assert_eq(s->n_xor, rows[i].n, "%s", rows[i].arrive);
        for (unsigned k = 0; k < s->n_xor; k++)
            cr_expect_eq(s->xors[k], rows[i].xors[k], "%s", rows[i].arrive);
        cr_expect_eq(par_mbarrier_count(p.pi, s->barrier), 64 * rows[i].n);
        program_free(&p);
        strbuf_free(&body);
    }
}

Test(par_info, the_host_has_no_answers)
{
    Program p = program("blockDim=64", T12 "pass\n");
    Op *proc = p.m->body->first;
    cr_expect_null(par_threads(p.pi, proc));
    cr_expect_null(par_device(p.pi, proc));
    cr_expect_null(par_sync(p.pi, proc));
    program_free(&p);
}
