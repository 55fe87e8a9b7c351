/* Units, domain completion and the derivation of tilings.
 *
 * Domain completion is done on *cuts*: the thread pitches at which either side
 * ends a dimension. Both domains can be refined to one exactly when the sorted
 * union of their cuts is a chain in which each divides the next; then every
 * dimension is split at the cuts that fall inside it, innermost first. */
#include "passes/analysis/tiling.h"

#include <limits.h>
#include <stdlib.h>

/* A failure text; answers NULL so that callers can return it. */
EXO_PRINTF(3, 4)
static void *fail(TilingCtx *tc, const char **why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *why = arena_vprintf(tc->arena, fmt, ap);
    va_end(ap);
    return NULL;
}

/* Extents stay far below this; more is refused before it can overflow. */
#define EXTENT_LIMIT ((int64_t)1 << 31)

static bool mul_extent(int64_t *acc, int64_t by)
{
    if (by < 0 || by > EXTENT_LIMIT || *acc > EXTENT_LIMIT)
        return false;
    *acc *= by;
    return *acc <= EXTENT_LIMIT;
}

static void *unit_fail(TilingCtx *tc, const UnitRef *ref, const char **why,
                       const char *text)
{
    StrBuf b = {0};
    unitref_print(&b, ref);
    fail(tc, why, "%s: %s", strbuf_text(&b), text);
    strbuf_free(&b);
    return NULL;
}

/* ---- shapes ---------------------------------------------------------------- */

/* The written form of a fractional extent: `blockDim / 64`. */
static const char *extent_text(Arena *a, const UnitExtent *e)
{
    StrBuf b = {0};
    const char *times = "";
    if (e->num != 1 || (!e->block_dim && !e->cluster_dim)) {
        strbuf_addf(&b, "%lld", (long long)e->num);
        times = " * ";
    }
    for (unsigned i = 0; i < e->cluster_dim; i++, times = " * ")
        strbuf_addf(&b, "%sclusterDim", times);
    for (unsigned i = 0; i < e->block_dim; i++, times = " * ")
        strbuf_addf(&b, "%sblockDim", times);
    if (e->den != 1)
        strbuf_addf(&b, " / %lld", (long long)e->den);
    const char *text = arena_strdup(a, strbuf_text(&b));
    strbuf_free(&b);
    return text;
}

static bool extent_eval(TilingCtx *tc, const UnitRef *ref, const UnitExtent *e,
                        int64_t *out, const char **why)
{
    const char *text = extent_text(tc->arena, e);
    int64_t v = 1;
    bool fits = mul_extent(&v, e->num);
    for (unsigned i = 0; fits && i < e->block_dim; i++)
        fits = mul_extent(&v, tc->block_dim);
    for (unsigned i = 0; fits && i < e->cluster_dim; i++)
        fits = mul_extent(&v, tc->cluster_dim);
    if (!fits || e->den < 1) {
        unit_fail(tc, ref, why,
                  arena_printf(tc->arena, "`%s` is out of range", text));
        return false;
    }
    if (v % e->den) {
        unit_fail(tc, ref, why,
                  arena_printf(tc->arena,
                               "`%s` has divisibility issue at blockDim %lld, "
                               "clusterDim %lld", text,
                               (long long)tc->block_dim,
                               (long long)tc->cluster_dim));
        return false;
    }
    *out = v / e->den;
    if (*out < 1) {
        unit_fail(tc, ref, why,
                  arena_printf(tc->arena, "`%s` must be positive", text));
        return false;
    }
    return true;
}

static Shape *shape_new(TilingCtx *tc, unsigned room)
{
    Shape *s = ARENA_NEW(tc->arena, Shape);
    s->domain = ARENA_ARRAY(tc->arena, int64_t, room);
    s->box = ARENA_ARRAY(tc->arena, int64_t, room);
    return s;
}

static void shape_push(Shape *s, int64_t extent, int64_t box)
{
    s->domain[s->n] = extent;
    s->box[s->n++] = box;
}

static bool shape_product(const Shape *s, int64_t *out)
{
    *out = 1;
    for (unsigned i = 0; i < s->n; i++)
        if (!mul_extent(out, s->domain[i]))
            return false;
    return true;
}

const Shape *shape_of_unit(TilingCtx *tc, const Unit *u, const char **why)
{
    Shape *s = shape_new(tc, u->n);
    for (unsigned i = 0; i < u->n; i++) {
        int64_t extent, box = BOX_ANY;
        if (!extent_eval(tc, u->ref, &u->domain[i], &extent, why))
            return NULL;
        if (!u->box[i].agnostic &&
            !extent_eval(tc, u->ref, &u->box[i], &box, why))
            return NULL;
        shape_push(s, extent, box);
    }
    int64_t all;
    if (!shape_product(s, &all))
        return unit_fail(tc, u->ref, why, "the domain is out of range");
    s->partial = all != tc->block_dim * tc->cluster_dim;
    return s;
}

/* Each dimension of which the unit takes a part becomes two: which part, and
 * the part. */
static const Shape *shape_align(TilingCtx *tc, const Shape *s, const char **why)
{
    Shape *out = shape_new(tc, 2 * s->n);
    for (unsigned i = 0; i < s->n; i++) {
        int64_t d = s->domain[i], b = s->box[i];
        if (b == BOX_ANY || b == d) {
            shape_push(out, d, b);
            continue;
        }
        if (d % b)
            return fail(tc, why,
                        "Invalid alignment for CollUnit: box %lld does not "
                        "divide domain %lld", (long long)b, (long long)d);
        shape_push(out, d / b, 1);
        shape_push(out, b, b);
    }
    out->partial = s->partial;
    return out;
}

/* ---- tilings ---------------------------------------------------------------- */

int64_t tile_dim_box(const TileDim *d)
{
    return d->n_ops ? d->ops[d->n_ops - 1].box : d->extent;
}

int64_t tile_dim_offset(const TileDim *d)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < d->n_ops; i++)
        sum += d->ops[i].offset;
    return sum;
}

int64_t tiling_threads(const Tiling *t)
{
    int64_t n = 1;
    for (unsigned i = 0; i < t->n; i++)
        n *= tile_dim_box(&t->dims[i]);
    return n;
}

int64_t tiling_offset(const Tiling *t)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < t->n; i++)
        sum += tile_dim_offset(&t->dims[i]) * t->dims[i].pitch;
    return sum;
}

static Tiling *tiling_new(TilingCtx *tc, unsigned depth, unsigned room)
{
    Tiling *t = ARENA_NEW(tc->arena, Tiling);
    t->depth = depth;
    t->dims = ARENA_ARRAY(tc->arena, TileDim, room);
    return t;
}

const Tiling *tiling_top(TilingCtx *tc, const Affine *cta, const Affine *thread)
{
    Tiling *t = tiling_new(tc, 0, 2);
    if (tc->cluster_dim > 1)
        t->dims[t->n++] = (TileDim){ .extent = tc->cluster_dim,
                                     .pitch = tc->block_dim, .intra = cta };
    t->dims[t->n++] =
        (TileDim){ .extent = tc->block_dim, .pitch = 1, .intra = thread };
    return t;
}

static void dim_push(TilingCtx *tc, TileDim *d, TileOp op)
{
    TileOp *ops = ARENA_ARRAY(tc->arena, TileOp, d->n_ops + 1);
    for (unsigned i = 0; i < d->n_ops; i++)
        ops[i] = d->ops[i];
    ops[d->n_ops++] = op;
    d->ops = ops;
}

/* May every tile of op lie inside one run of f positions? */
static bool tiles_fit(const TileOp *op, int64_t f)
{
    for (int64_t i = 0; i < op->tile_count; i++) {
        if ((op->offset + i * op->box) % f + op->box > f)
            return false;
        if (f % op->box == 0 && op->offset % op->box == 0)
            break;
    }
    return true;
}

static bool split_failed(TilingCtx *tc, const TileOp *op, int64_t f,
                         const char **why)
{
    fail(tc, why,
         "thread alignment issue: offset %lld, box %lld against a multiple of "
         "%lld", (long long)op->offset, (long long)op->box, (long long)f);
    return false;
}

/* Gives one op of a dimension that is split at f to the outer half, the inner
 * half, or to both when it goes from more than f threads to fewer. */
static bool split_op(TilingCtx *tc, const TileOp *op, int64_t f, int64_t before,
                     TileDim *outer, TileDim *inner, const char **why)
{
    TileOp o = *op, in = *op;
    if (op->box >= f) {
        if (op->offset % f || op->box % f)
            return split_failed(tc, op, f, why);
        o.offset /= f;
        o.box /= f;
        o.start = affine_floordiv(tc->exprs, op->start, f);
        dim_push(tc, outer, o);
        return true;
    }
    if (before > f) {
        if (!tiles_fit(op, f))
            return split_failed(tc, op, f, why);
        o.offset /= f;
        o.box = 1;
        o.start = affine_floordiv(tc->exprs, op->start, f);
        in.offset %= f;
        in.start = affine_mod(tc->exprs, op->start, f);
        dim_push(tc, outer, o);
    }
    dim_push(tc, inner, in);
    return true;
}

static bool split_dim(TilingCtx *tc, const TileDim *d, int64_t f,
                      TileDim *outer, TileDim *inner, const char **why)
{
    *outer = (TileDim){ .extent = d->extent / f, .pitch = d->pitch * f,
                        .label = d->label };
    *inner = (TileDim){ .extent = f, .pitch = d->pitch, .label = d->label };
    int64_t before = d->extent;
    for (unsigned i = 0; i < d->n_ops; i++) {
        if (!split_op(tc, &d->ops[i], f, before, outer, inner, why))
            return false;
        before = d->ops[i].box;
    }
    bool inside = tile_dim_box(d) <= f;
    outer->intra = inside ? affine_const(tc->exprs, 0)
                          : affine_floordiv(tc->exprs, d->intra, f);
    inner->intra = inside ? d->intra : affine_mod(tc->exprs, d->intra, f);
    return true;
}

/* ---- cuts ------------------------------------------------------------------- */

typedef struct Cuts {
    unsigned n;
    int64_t *at; /* ascending, from 1 to the number of threads */
} Cuts;

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts, removes repetitions, and demands that each divides the next. */
static bool cuts_chain(TilingCtx *tc, Cuts *c, const char **why)
{
    qsort(c->at, c->n, sizeof *c->at, compare_int64);
    unsigned n = 1;
    for (unsigned i = 1; i < c->n; i++) {
        if (c->at[i] == c->at[n - 1])
            continue;
        if (c->at[i] % c->at[n - 1]) {
            fail(tc, why, "Domain completion failed: %lld doesn't divide %lld",
                 (long long)c->at[n - 1], (long long)c->at[i]);
            return false;
        }
        c->at[n++] = c->at[i];
    }
    c->n = n;
    return true;
}

static void cuts_add(Cuts *c, unsigned n, int64_t (*extent)(const void *,
                     unsigned), const void *of)
{
    int64_t pitch = 1;
    c->at[c->n++] = 1;
    for (unsigned i = n; i-- > 0;) {
        pitch *= extent(of, i);
        c->at[c->n++] = pitch;
    }
}

static int64_t tiling_extent(const void *t, unsigned i)
{
    return ((const Tiling *)t)->dims[i].extent;
}

static int64_t shape_extent(const void *s, unsigned i)
{
    return ((const Shape *)s)->domain[i];
}

/* Splits every dimension of t at the cuts inside it. */
static Tiling *tiling_refine(TilingCtx *tc, const Tiling *t, const Cuts *c,
                             const char **why)
{
    Tiling *out = tiling_new(tc, t->depth, c->n + t->n);
    for (unsigned i = 0; i < t->n; i++) {
        TileDim d = t->dims[i];
        unsigned first = out->n;
        for (unsigned k = 0; k < c->n; k++) {
            if (c->at[k] <= d.pitch || c->at[k] >= d.pitch * d.extent)
                continue;
            TileDim outer, inner;
            if (!split_dim(tc, &d, c->at[k] / d.pitch, &outer, &inner, why))
                return NULL;
            out->dims[out->n++] = inner;
            d = outer;
        }
        out->dims[out->n++] = d;
        for (unsigned a = first, b = out->n - 1; a < b; a++, b--) {
            TileDim swap = out->dims[a];
            out->dims[a] = out->dims[b];
            out->dims[b] = swap;
        }
    }
    return out;
}

static bool split_box(TilingCtx *tc, int64_t box, int64_t f, int64_t *outer,
                      int64_t *inner, const char **why)
{
    if (box == BOX_ANY) {
        *outer = *inner = BOX_ANY;
    } else if (box < f) {
        *outer = 1;
        *inner = box;
    } else if (box % f == 0) {
        *outer = box / f;
        *inner = f;
    } else {
        fail(tc, why, "Domain completion failed: %lld doesn't divide box %lld",
             (long long)f, (long long)box);
        return false;
    }
    return true;
}

static Shape *shape_refine(TilingCtx *tc, const Shape *s, const Cuts *c,
                           const char **why)
{
    Shape *rev = shape_new(tc, c->n + s->n);
    int64_t pitch = 1;
    for (unsigned i = s->n; i-- > 0;) {
        int64_t extent = s->domain[i], box = s->box[i], inner;
        int64_t end = pitch * extent;
        for (unsigned k = 0; k < c->n; k++) {
            if (c->at[k] <= pitch || c->at[k] >= end)
                continue;
            int64_t f = c->at[k] / pitch;
            if (!split_box(tc, box, f, &box, &inner, why))
                return NULL;
            shape_push(rev, f, inner);
            extent /= f;
            pitch *= f;
        }
        shape_push(rev, extent, box);
        pitch = end;
    }
    Shape *out = shape_new(tc, rev->n);
    for (unsigned i = rev->n; i-- > 0;)
        shape_push(out, rev->domain[i], rev->box[i]);
    out->partial = s->partial;
    return out;
}

/* The shape over all threads of the cluster, without dimensions of 1. A unit
 * of fewer threads gets an outer dimension with the given box entry. */
static Shape *shape_fill(TilingCtx *tc, const Shape *s, int64_t threads,
                         int64_t outer_box, const char **why)
{
    int64_t own;
    if (!shape_product(s, &own) || threads % own)
        return fail(tc, why, "Domain completion failed: the unit's domain does "
                    "not divide the %lld threads", (long long)threads);
    Shape *out = shape_new(tc, s->n + 1);
    if (own != threads)
        shape_push(out, threads / own, outer_box);
    for (unsigned i = 0; i < s->n; i++) {
        if (s->domain[i] != 1)
            shape_push(out, s->domain[i], s->box[i]);
        else if (s->box[i] != 1 && s->box[i] != BOX_ANY)
            return fail(tc, why, "not enough threads available: the unit needs "
                        "%lld on a dimension of 1", (long long)s->box[i]);
    }
    out->partial = s->partial;
    return out;
}

static int64_t tiling_domain_size(const Tiling *t)
{
    int64_t n = 1;
    for (unsigned i = 0; i < t->n; i++)
        n *= t->dims[i].extent;
    return n;
}

/* Refines t and s to one domain. */
static bool complete_both(TilingCtx *tc, const Tiling *t, const Shape *s,
                          int64_t outer_box, Tiling **t_out, Shape **s_out,
                          const char **why)
{
    Shape *full = shape_fill(tc, s, tiling_domain_size(t), outer_box, why);
    if (!full)
        return false;
    Cuts c = { .at = ARENA_ARRAY(tc->arena, int64_t, t->n + full->n + 2) };
    cuts_add(&c, t->n, tiling_extent, t);
    cuts_add(&c, full->n, shape_extent, full);
    if (!cuts_chain(tc, &c, why))
        return false;
    *t_out = tiling_refine(tc, t, &c, why);
    *s_out = *t_out ? shape_refine(tc, full, &c, why) : NULL;
    return *s_out != NULL;
}

/* ---- tiling and specialising --------------------------------------------------- */

/* The dimension that the unit narrows: -1 for none, -2 for several. */
static int candidate_dim(const Tiling *t, const Shape *s)
{
    int found = -1;
    for (unsigned i = 0; i < t->n; i++) {
        int64_t b = s->box[i];
        if (b == BOX_ANY || b == tile_dim_box(&t->dims[i]) ||
            b == t->dims[i].extent)
            continue;
        if (found >= 0)
            return -2;
        found = (int)i;
    }
    return found;
}

/* e < c, or e >= c when `below` is false. On a multiple of 32 it is said of
 * warps, so that it does not speak of lanes. */
static const Cond *compare_position(ExprCtx *x, const Affine *e, int64_t c,
                                    bool below)
{
    if (c && c % 32 == 0) {
        e = affine_floordiv(x, e, 32);
        c /= 32;
    }
    return cond_cmp(x, below ? CMP_lt : CMP_ge, e, affine_const(x, c));
}

/* The position inside a box of `box` that begins at `offset`. */
static const Affine *position_in(ExprCtx *x, const Affine *intra,
                                 int64_t offset, int64_t box)
{
    if (32 % box == 0 && offset % box == 0)
        return affine_mod(x, intra, box);
    return affine_add_const(x, intra, -offset);
}

static void tile_dim_tile(TilingCtx *tc, TileDim *d, const TileRequest *r,
                          int64_t unit, TileOp *op, const Cond **guard)
{
    ExprCtx *x = tc->exprs;
    op->offset = r->lo * unit;
    op->box = unit;
    op->tile_count = r->hi - r->lo;
    op->pitch = op->tile_count > 1 ? d->pitch * unit : 0;
    op->value = op->tile_count > 1 ? affine_floordiv(x, d->intra, unit)
                                   : affine_const(x, r->lo);
    op->start = affine_scale(x, op->value, unit);
    if (r->hi * unit < tile_dim_box(d))
        *guard = compare_position(x, d->intra, r->hi * unit, true);
    d->intra = op->tile_count > 1 ? affine_mod(x, d->intra, unit)
                                  : position_in(x, d->intra, 0, unit);
}

static void tile_dim_specialise(TilingCtx *tc, TileDim *d, const TileRequest *r,
                                int64_t unit, TileOp *op, const Cond **guard)
{
    ExprCtx *x = tc->exprs;
    op->offset = r->lo * unit;
    op->box = (r->hi - r->lo) * unit;
    op->tile_count = 1;
    op->value = affine_const(x, 0);
    op->start = affine_const(x, op->offset);
    if (r->lo > 0)
        *guard = cond_and(x, *guard,
                          compare_position(x, d->intra, op->offset, false));
    if (r->hi * unit < tile_dim_box(d))
        *guard = cond_and(x, *guard,
                          compare_position(x, d->intra, r->hi * unit, true));
    d->intra = position_in(x, d->intra, op->offset, op->box);
}

const Tiling *tiling_derive(TilingCtx *tc, const Tiling *t,
                            const TileRequest *r, const Cond **guard,
                            const Affine **value, const char **why)
{
    *guard = cond_bool(tc->exprs, true);
    *value = affine_const(tc->exprs, 0);
    Tiling *out;
    Shape *unit;
    if (!complete_both(tc, t, r->unit, BOX_ANY, &out, &unit, why))
        return NULL;
    out->depth = t->depth + 1;
    int dim = candidate_dim(out, unit);
    if (dim == -2)
        return fail(tc, why, "ambiguous dimension to tile");
    if (dim < 0) {
        if (r->lo != 0 || r->hi != 1)
            return fail(tc, why, "trivial tiling: the collective is one unit "
                        "already, so that only [0, 1) is possible");
        return out;
    }
    TileDim *d = &out->dims[dim];
    int64_t box = unit->box[dim], have = tile_dim_box(d);
    if (r->hi > have / box)
        return fail(tc, why, "not enough threads available; max_tile_count="
                    "%lld", (long long)(have / box));
    TileOp op = { .by = r->by, .iter = r->iter, .serial = ++tc->next_serial,
                  .depth = out->depth };
    if (r->specialise)
        tile_dim_specialise(tc, d, r, box, &op, guard);
    else
        tile_dim_tile(tc, d, r, box, &op, guard);
    *value = op.value;
    dim_push(tc, d, op);
    return out;
}

/* ---- completing and matching ----------------------------------------------------- */

const Tiling *tiling_complete(TilingCtx *tc, const Tiling *t, const Shape *unit,
                              const char **why)
{
    const Shape *aligned = shape_align(tc, unit, why);
    Tiling *out;
    Shape *s;
    if (!aligned || !complete_both(tc, t, aligned, 1, &out, &s, why))
        return NULL;
    for (unsigned i = 0; i < out->n; i++)
        out->dims[i].label = s->box[i] == BOX_ANY ? LABEL_agnostic
                             : s->box[i] == 1     ? LABEL_subdiv
                                                  : LABEL_intact;
    return out;
}

static void print_list(StrBuf *out, unsigned n, int64_t (*at)(const void *,
                       unsigned), const void *of)
{
    strbuf_addc(out, '(');
    for (unsigned i = 0; i < n; i++) {
        int64_t v = at(of, i);
        if (v == BOX_ANY)
            strbuf_addf(out, "%sNone", i ? ", " : "");
        else
            strbuf_addf(out, "%s%lld", i ? ", " : "", (long long)v);
    }
    strbuf_add(out, n == 1 ? ",)" : ")");
}

static int64_t tiling_box(const void *t, unsigned i)
{
    return tile_dim_box(&((const Tiling *)t)->dims[i]);
}

static int64_t shape_box(const void *s, unsigned i)
{
    return ((const Shape *)s)->box[i];
}

static int64_t label_box(const void *t, unsigned i)
{
    const TileDim *d = &((const Tiling *)t)->dims[i];
    return d->label == LABEL_agnostic ? BOX_ANY
           : d->label == LABEL_subdiv ? 1
                                      : d->extent;
}

void tiling_print(StrBuf *out, const Tiling *t)
{
    strbuf_add(out, "domain=");
    print_list(out, t->n, tiling_extent, t);
    strbuf_add(out, ", box=");
    print_list(out, t->n, tiling_box, t);
}

void shape_print(StrBuf *out, const Shape *s)
{
    strbuf_add(out, "domain=");
    print_list(out, s->n, shape_extent, s);
    strbuf_add(out, ", box=");
    print_list(out, s->n, shape_box, s);
}

bool tiling_matches(TilingCtx *tc, const Tiling *t, const Shape *unit,
                    const char **why)
{
    const Tiling *c = tiling_complete(tc, t, unit, why);
    if (!c)
        return false;
    bool same = true;
    for (unsigned i = 0; i < c->n; i++) {
        int64_t want = label_box(c, i);
        same = same && (want == BOX_ANY || tile_dim_box(&c->dims[i]) == want);
    }
    if (same)
        return true;
    StrBuf b = {0};
    tiling_print(&b, c);
    strbuf_addf(&b, ", %lld threads; expected box=",
                (long long)tiling_threads(c));
    print_list(&b, c->n, label_box, c);
    fail(tc, why, "%s", strbuf_text(&b));
    strbuf_free(&b);
    return false;
}

/* ---- comparing ------------------------------------------------------------------- */

/* With intact dimensions whole where they do not count. */
static const Tiling *tiling_without_intact(TilingCtx *tc, const Tiling *t)
{
    Tiling *out = tiling_new(tc, t->depth, t->n);
    out->n = t->n;
    for (unsigned i = 0; i < t->n; i++) {
        out->dims[i] = t->dims[i];
        if (t->dims[i].label == LABEL_intact)
            out->dims[i].n_ops = 0;
    }
    return out;
}

bool tiling_same_base(TilingCtx *tc, const Tiling *a, const Tiling *b,
                      bool subdiv_only, const char **why)
{
    if (subdiv_only) {
        a = tiling_without_intact(tc, a);
        b = tiling_without_intact(tc, b);
    }
    int64_t at_a = tiling_offset(a), at_b = tiling_offset(b);
    if (at_a != at_b) {
        fail(tc, why, "Incompatible offsets: thread %lld and thread %lld",
             (long long)at_a, (long long)at_b);
        return false;
    }
    Cuts c = { .at = ARENA_ARRAY(tc->arena, int64_t, a->n + b->n + 2) };
    cuts_add(&c, a->n, tiling_extent, a);
    cuts_add(&c, b->n, tiling_extent, b);
    if (!cuts_chain(tc, &c, why))
        return false;
    a = tiling_refine(tc, a, &c, why);
    b = a ? tiling_refine(tc, b, &c, why) : NULL;
    if (!b)
        return false;
    for (unsigned i = 0; i < a->n; i++)
        if (tile_dim_box(&a->dims[i]) != tile_dim_box(&b->dims[i])) {
            fail(tc, why, "Incompatible box size: %lld and %lld threads",
                 (long long)tiling_threads(a), (long long)tiling_threads(b));
            return false;
        }
    return true;
}
