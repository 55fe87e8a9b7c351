/* The algebra of collective units: worked tilings, each a row of the units that
 * are applied in turn and what comes of it, and a comparison of every
 * iterator, guard and box with what the threads themselves say. */
#include "passes/analysis/tiling.h"

#include <criterion/criterion.h>
#include <string.h>

/* blockDim^b * clusterDim^c * num / den */
#define EX(num, den, b, c)    \
    {                         \
        num, den, b, c, false \
    }
#define ANY              \
    {                    \
        0, 1, 0, 0, true \
    }

typedef struct TestUnit {
    const char *name;
    unsigned n;
    UnitExtent domain[3], box[3];
} TestUnit;

enum {
    U_thread,
    U_thread8,
    U_thread128,
    U_warp,
    U_warpgroup,
    U_quadpair,
    U_mod8,
    U_cta,
    U_two_cta,
    U_cta_strided2,
    U_cluster,
    U_intact_cta,
    U_sub_cta,
    U_block64,
    U_shfl,
    U_thread23,
    U_thread64
};

/* clang-format off */
static const TestUnit test_units[] = {
    [U_thread] = { "cuda_thread", 1, { EX(1, 1, 1, 0) }, { EX(1, 1, 0, 0) } },
    [U_thread8] = { "cuda_thread", 1, { EX(1, 1, 1, 0) }, { EX(8, 1, 0, 0) } },
    [U_thread128] = { "cuda_thread", 1, { EX(1, 1, 1, 0) },
                      { EX(128, 1, 0, 0) } },
    [U_warp] = { "cuda_warp", 1, { EX(1, 1, 1, 0) }, { EX(32, 1, 0, 0) } },
    [U_warpgroup] = { "cuda_warpgroup", 1, { EX(1, 1, 1, 0) },
                      { EX(128, 1, 0, 0) } },
    [U_quadpair] = { "cuda_quadpair", 2, { EX(1, 16, 1, 0), EX(16, 1, 0, 0) },
                     { EX(2, 1, 0, 0), EX(4, 1, 0, 0) } },
    [U_mod8] = { "one_of_8", 1, { EX(8, 1, 0, 0) }, { EX(1, 1, 0, 0) } },
    [U_cta] = { "cuda_cta_in_cluster", 1, { EX(1, 1, 1, 1) },
                { EX(1, 1, 1, 0) } },
    [U_two_cta] = { "cuda_cta_in_cluster", 1, { EX(1, 1, 1, 1) },
                    { EX(2, 1, 1, 0) } },
    [U_cta_strided2] = { "cuda_cta_in_cluster_strided", 3,
                         { EX(1, 2, 0, 1), EX(2, 1, 0, 0), EX(1, 1, 1, 0) },
                         { EX(2, 1, 0, 0), EX(1, 1, 0, 0), EX(1, 1, 1, 0) } },
    [U_cluster] = { "cuda_cluster", 1, { EX(1, 1, 1, 1) }, { EX(1, 1, 1, 1) } },
    [U_intact_cta] = { "cuda_agnostic_intact_cta", 2,
                       { EX(1, 1, 0, 1), EX(1, 1, 1, 0) },
                       { ANY, EX(1, 1, 1, 0) } },
    [U_sub_cta] = { "cuda_agnostic_sub_cta", 2,
                    { EX(1, 1, 0, 1), EX(1, 1, 1, 0) },
                    { EX(1, 1, 0, 0), ANY } },
    [U_block64] = { "block_64th", 1, { EX(1, 64, 1, 0) }, { EX(1, 1, 0, 0) } },
    [U_shfl] = { "cuda_threads_strided", 2, { EX(1, 8, 1, 0), EX(8, 1, 0, 0) },
                 { EX(1, 1, 0, 0), EX(2, 1, 0, 0) } },
    [U_thread23] = { "cuda_thread", 1, { EX(1, 1, 1, 0) },
                     { EX(23, 1, 0, 0) } },
    [U_thread64] = { "cuda_thread", 1, { EX(1, 1, 1, 0) },
                     { EX(64, 1, 0, 0) } },
};
/* clang-format on */

typedef struct Step {
    int unit;
    int64_t lo, hi;
    bool specialise;
} Step;

#define LOOP(u, n)     \
    {                  \
        u, 0, n, false \
    }
#define WARPS(lo, hi)        \
    {                        \
        U_warp, lo, hi, true \
    }

/* ---- the setting -------------------------------------------------------- */

typedef struct Fixture {
    Ctx *ctx;
    TilingCtx tc;
    VarId cta, warp, lane;
    const Affine *cta_at, *thread;
} Fixture;

static VarId coordinate(ExprCtx *x, const char *name, int64_t n)
{
    VarId v = var_new(x, name, VAR_coord);
    var_set_bounds(x, v, affine_const(x, 0), affine_const(x, n));
    return v;
}

static Fixture fixture(int64_t block_dim, int64_t cluster_dim)
{
    Fixture f = { .ctx = ctx_new() };
    ExprCtx *x = expr_ctx_new();
    f.tc = (TilingCtx){ .arena = ctx_arena(f.ctx),
                        .exprs = x,
                        .block_dim = block_dim,
                        .cluster_dim = cluster_dim };
    f.cta = coordinate(x, "cta", cluster_dim);
    f.warp = coordinate(x, "warp", block_dim / 32);
    f.lane = coordinate(x, "lane", 32);
    f.cta_at = affine_var(x, f.cta);
    f.thread = affine_add(x, affine_scale(x, affine_var(x, f.warp), 32),
                          affine_var(x, f.lane));
    return f;
}

static void fixture_free(Fixture *f)
{
    expr_ctx_free(f->tc.exprs);
    ctx_free(f->ctx);
}

static const Shape *shape(Fixture *f, int unit, const char **why)
{
    const TestUnit *t = &test_units[unit];
    Unit u = { .ref = unitref_get(f->ctx, 1, t->name, 0, NULL),
               .n = t->n,
               .domain = t->domain,
               .box = t->box,
               .scaled_dim = -1 };
    return shape_of_unit(&f->tc, &u, why);
}

static const char *var_name(const ExprNames *n, VarId v)
{
    return var_get(n->user, v)->name;
}

static const char *text_of(Fixture *f, const Affine *e)
{
    StrBuf b = { 0 };
    ExprNames names = { .var = var_name, .user = f->tc.exprs };
    affine_print(&b, f->tc.exprs, e, &names, 0);
    const char *text = arena_strdup(f->tc.arena, strbuf_text(&b));
    strbuf_free(&b);
    return text;
}

/* ---- the threads themselves --------------------------------------------- */

typedef struct Thread {
    const Fixture *f;
    int64_t cta, thread;
} Thread;

static bool thread_value(const Env *env, const Atom *a, int64_t *out)
{
    const Thread *t = env->user;
    if (a->kind != ATOM_var)
        return false;
    *out = a->var == t->f->cta    ? t->cta
           : a->var == t->f->warp ? t->thread / 32
                                  : t->thread % 32;
    return true;
}

static int64_t eval(Thread *t, const Affine *e)
{
    Env env = { thread_value, t };
    int64_t v;
    cr_assert(affine_eval(e, &env, &v));
    return v;
}

/* Every thread that passes the guards is in the box that the tiling states:
 * each dimension's position is start + intra, and intra is below the box. */
static unsigned count_taking_part(Fixture *f, const Tiling *t,
                                  const Cond *guard)
{
    unsigned n = 0;
    for (int64_t i = 0; i < f->tc.block_dim * f->tc.cluster_dim; i++) {
        Thread th = { f, i / f->tc.block_dim, i % f->tc.block_dim };
        Env env = { thread_value, &th };
        bool in;
        cr_assert(cond_eval(guard, &env, &in));
        if (!in)
            continue;
        n++;
        int64_t linear = 0;
        for (unsigned d = 0; d < t->n; d++) {
            int64_t intra = eval(&th, t->dims[d].intra), start = 0;
            cr_assert(intra >= 0 && intra < tile_dim_box(&t->dims[d]),
                      "dim %u of thread %ld: intra %ld", d, (long)i,
                      (long)intra);
            for (unsigned k = 0; k < t->dims[d].n_ops; k++)
                start += eval(&th, t->dims[d].ops[k].start);
            linear += (start + intra) * t->dims[d].pitch;
        }
        cr_assert_eq(linear, i, "thread %ld comes out as %ld", (long)i,
                     (long)linear);
    }
    return n;
}

/* ---- worked tilings ----------------------------------------------------- */

typedef struct Row {
    const char *name;
    int64_t block_dim, cluster_dim;
    Step steps[4];
    unsigned n_steps;
    const char *tiling; /* or NULL, and then error */
    const char *iter;   /* of the last step */
    unsigned taking_part;
    const char *error;
} Row;

/* clang-format off */
static const Row rows[] = {
    { "warps of a CTA", 256, 1, { LOOP(U_warp, 4) }, 1,
      "domain=(256,), box=(32,)", "warp", 128, NULL },
    { "threads of a warp", 256, 1, { LOOP(U_warp, 4), LOOP(U_thread, 16) }, 2,
      "domain=(256,), box=(1,)", "lane", 64, NULL },
    { "one of 8, then 128", 256, 1, { LOOP(U_mod8, 8), LOOP(U_thread128, 2) },
      2, "domain=(32, 8), box=(16, 1)", "warp floordiv 4", 256, NULL },
    { "warps 2 to 6, then 8 threads", 256, 1,
      { WARPS(2, 6), LOOP(U_thread8, 16) }, 2, "domain=(256,), box=(8,)",
      "4 * warp + lane floordiv 8 - 8", 128, NULL },
    { "pairs of CTAs, then CTAs", 128, 4,
      { LOOP(U_two_cta, 2), LOOP(U_cta, 2) }, 2,
      "domain=(4, 128), box=(1, 128)",
      "cta mod 2", 512, NULL },
    { "CTAs two apart", 128, 4, { LOOP(U_cta_strided2, 2) }, 1,
      "domain=(2, 2, 128), box=(2, 1, 128)", "cta mod 2", 512, NULL },
    { "quadpairs of a warp", 512, 1, { LOOP(U_warp, 16), LOOP(U_quadpair, 4) },
      2, "domain=(32, 16), box=(2, 4)", "(lane mod 16) floordiv 4", 512, NULL },
    { "quadpairs of a warpgroup", 512, 1,
      { LOOP(U_warpgroup, 4), LOOP(U_quadpair, 4) }, 2, NULL, NULL, 0,
      "ambiguous dimension" },
    { "warpgroups after 4 warps", 384, 1,
      { WARPS(4, 12), LOOP(U_warpgroup, 2) }, 2, "domain=(384,), box=(128,)",
      "warp floordiv 4 - 1", 256, NULL },
    { "one warp, then lanes", 384, 1, { WARPS(4, 5), LOOP(U_thread, 32) }, 2,
      "domain=(384,), box=(1,)", "lane", 32, NULL },
    { "10 groups of 23, of which 9 and 20", 256, 1,
      { LOOP(U_thread23, 9), LOOP(U_thread, 20) }, 2,
      "domain=(256,), box=(1,)", NULL, 180, NULL },
    { "more threads than there are", 32, 1, { LOOP(U_thread64, 1) }, 1, NULL,
      NULL, 0, "not enough threads available" },
    { "as many threads as there are", 64, 1, { LOOP(U_thread64, 1) }, 1,
      "domain=(64,), box=(64,)", "0", 64, NULL },
    { "too many tiles", 256, 1, { WARPS(0, 3), LOOP(U_warp, 4) }, 2, NULL, NULL,
      0, "max_tile_count=3" },
    { "two of one warp", 256, 1, { LOOP(U_warp, 8), WARPS(2, 4) }, 2, NULL,
      NULL, 0, "trivial tiling" },
    { "the one of one warp", 256, 1, { LOOP(U_warp, 8), WARPS(0, 1) }, 2,
      "domain=(256,), box=(32,)", "0", 256, NULL },
    { "a warp of half a warp", 256, 1, { LOOP(U_thread8, 8), WARPS(0, 1) }, 2,
      NULL, NULL, 0, "max_tile_count=0" },
    { "a fraction of blockDim", 96, 1, { LOOP(U_block64, 1) }, 1, NULL, NULL, 0,
      "`blockDim / 64` has divisibility issue" },
    { "warps of one CTA", 256, 1, { LOOP(U_cta, 1), LOOP(U_warp, 8) }, 2,
      "domain=(256,), box=(32,)", "warp", 256, NULL },
};
/* clang-format on */

static const char *run_row(Fixture *f, const Row *r, const Tiling **t,
                           const Cond **guard, const Affine **value)
{
    const char *why = NULL;
    *t = tiling_top(&f->tc, f->cta_at, f->thread);
    *guard = cond_bool(f->tc.exprs, true);
    for (unsigned i = 0; i < r->n_steps; i++) {
        const Step *s = &r->steps[i];
        TileRequest q = { .unit = shape(f, s->unit, &why),
                          .lo = s->lo,
                          .hi = s->hi,
                          .specialise = s->specialise };
        const Cond *g;
        if (!q.unit || !(*t = tiling_derive(&f->tc, *t, &q, &g, value, &why)))
            return why;
        *guard = cond_and(f->tc.exprs, *guard, g);
    }
    return NULL;
}

static void check_row(const Row *r)
{
    Fixture f = fixture(r->block_dim, r->cluster_dim);
    const Tiling *t;
    const Cond *guard;
    const Affine *value;
    const char *why = run_row(&f, r, &t, &guard, &value);
    if (r->error) {
        cr_expect(why && strstr(why, r->error), "%s: `%s`", r->name,
                  why ? why : "accepted");
        fixture_free(&f);
        return;
    }
    cr_assert(!why, "%s: refused, %s", r->name, why);
    StrBuf b = { 0 };
    tiling_print(&b, t);
    cr_expect(!strcmp(strbuf_text(&b), r->tiling), "%s: %s", r->name,
              strbuf_text(&b));
    if (r->iter)
        cr_expect(!strcmp(text_of(&f, value), r->iter), "%s: iterator %s",
                  r->name, text_of(&f, value));
    cr_expect_eq(count_taking_part(&f, t, guard), r->taking_part, "%s",
                 r->name);
    strbuf_free(&b);
    fixture_free(&f);
}

Test(tiling, worked_tilings)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}

/* ---- matching ----------------------------------------------------------- */

typedef struct MatchRow {
    const char *name;
    int64_t block_dim, cluster_dim;
    Step steps[3];
    unsigned n_steps;
    int unit;
    const char *error; /* NULL: matches */
} MatchRow;

/* clang-format off */
static const MatchRow match_rows[] = {
    { "warps 0 to 4 are a warpgroup", 256, 1, { WARPS(0, 4) }, 1, U_warpgroup,
      NULL },
    { "warps 1 to 5 are not aligned", 256, 1, { WARPS(1, 5) }, 1, U_warpgroup,
      "alignment" },
    { "warps 4 to 8 are a warpgroup", 256, 1, { WARPS(4, 8) }, 1, U_warpgroup,
      NULL },
    { "one warp is no warpgroup", 256, 1, { WARPS(0, 1) }, 1, U_warpgroup,
      "expected box=" },
    { "one thread is no warp", 256, 1, { LOOP(U_thread, 256) }, 1, U_warp,
      "expected box=" },
    { "one thread is a thread", 256, 1, { LOOP(U_thread, 256) }, 1, U_thread,
      NULL },
    { "a warp is no thread", 256, 1, { LOOP(U_warp, 8) }, 1, U_thread,
      "32 threads" },
    { "one thread of each of two warps", 128, 1,
      { LOOP(U_warpgroup, 1), LOOP(U_mod8, 8) }, 2, U_thread,
      "expected box=" },
    { "a pair of shuffles", 32, 1, { LOOP(U_warp, 1) }, 1, U_shfl,
      "expected box=" },
    { "warps in one CTA are inside it", 256, 2,
      { LOOP(U_cta, 2), WARPS(0, 3) }, 2, U_sub_cta, NULL },
    { "a cluster is not inside a CTA", 256, 2, { { 0, 0, 0, 0 } }, 0, U_sub_cta,
      "expected box=" },
    { "a CTA not subdivided", 256, 2, { LOOP(U_cta, 2) }, 1, U_intact_cta,
      NULL },
    { "a cluster's CTAs not subdivided", 256, 2, { { 0, 0, 0, 0 } }, 0,
      U_intact_cta, NULL },
    { "a CTA subdivided", 256, 1, { LOOP(U_warp, 8) }, 1, U_intact_cta,
      "expected box=" },
    { "all of the cluster", 64, 4, { { 0, 0, 0, 0 } }, 0, U_cluster, NULL },
    { "half of the cluster", 64, 4, { LOOP(U_two_cta, 2) }, 1, U_cluster,
      "expected box=" },
};
/* clang-format on */

Test(tiling, matching)
{
    for (size_t i = 0; i < sizeof match_rows / sizeof *match_rows; i++) {
        const MatchRow *m = &match_rows[i];
        Fixture f = fixture(m->block_dim, m->cluster_dim);
        Row r = { .n_steps = m->n_steps };
        memcpy(r.steps, m->steps, sizeof m->steps);
        const Tiling *t;
        const Cond *guard;
        const Affine *value;
        cr_assert(!run_row(&f, &r, &t, &guard, &value), "%s", m->name);
        const char *why = NULL;
        bool same = tiling_matches(&f.tc, t, shape(&f, m->unit, &why), &why);
        if (m->error)
            cr_expect(!same && strstr(why, m->error), "%s: `%s`", m->name,
                      same ? "accepted" : why);
        else
            cr_expect(same, "%s: refused, %s", m->name, why);
        fixture_free(&f);
    }
}

/* A collective that narrows past a split stands on both halves, so that a
 * second loop cannot take the outer half again. */
Test(tiling, split_of_a_narrower_box)
{
    Fixture f = fixture(256, 1);
    Row r = { .steps = { LOOP(U_thread8, 32) }, .n_steps = 1 };
    const Tiling *t;
    const Cond *guard;
    const Affine *value;
    cr_assert(!run_row(&f, &r, &t, &guard, &value));
    const char *why;
    const Tiling *c = tiling_complete(&f.tc, t, shape(&f, U_warp, &why), &why);
    cr_assert(c);
    cr_assert_eq(c->n, 2);
    cr_expect_eq(tile_dim_box(&c->dims[0]), 1);
    cr_expect_eq(tile_dim_box(&c->dims[1]), 8);
    cr_expect_eq(c->dims[0].ops[0].serial, c->dims[1].ops[0].serial);
    cr_expect_eq(count_taking_part(&f, c, guard), 256);
    fixture_free(&f);
}
