/* Shapes of units, and domain completion: two domains refined to one.
 *
 * Completion works on *cuts*: the thread pitches at which either side ends a
 * dimension. Both domains can be refined to one exactly when the sorted union
 * of their cuts is a chain in which each divides the next; then every dimension
 * is split at the cuts that fall inside it, innermost first. */
#include "passes/analysis/domain.h"

#include <stdlib.h>

void *domain_fail(TilingCtx *tc, const char **why, const char *fmt, ...)
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
    StrBuf b = { 0 };
    unitref_print(&b, ref);
    domain_fail(tc, why, "%s: %s", strbuf_text(&b), text);
    strbuf_free(&b);
    return NULL;
}

/* ---- shapes ------------------------------------------------------------- */

/* The written form of a fractional extent: `blockDim / 64`. */
static const char *extent_text(Arena *a, const UnitExtent *e)
{
    StrBuf b = { 0 };
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
                               "clusterDim %lld",
                               text, (long long)tc->block_dim,
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

const Shape *shape_align(TilingCtx *tc, const Shape *s, const char **why)
{
    Shape *out = shape_new(tc, 2 * s->n);
    for (unsigned i = 0; i < s->n; i++) {
        int64_t d = s->domain[i], b = s->box[i];
        if (b == BOX_ANY || b == d) {
            shape_push(out, d, b);
            continue;
        }
        if (d % b)
            return domain_fail(
                tc, why,
                "Invalid alignment for CollUnit: box %lld does not "
                "divide domain %lld",
                (long long)b, (long long)d);
        shape_push(out, d / b, 1);
        shape_push(out, b, b);
    }
    out->partial = s->partial;
    return out;
}

void tile_dim_push(TilingCtx *tc, TileDim *d, TileOp op)
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

/* The loop or CudaWarps that made the op, for messages. */
static const char *op_label(TilingCtx *tc, const TileOp *op)
{
    const char *name = op->iter ? var_get(tc->exprs, op->iter)->name : NULL;
    if (op->iter)
        return arena_printf(tc->arena, "the loop over %s", name ? name : "_");
    name = op->by ? op_attr_str(op->by, "name", NULL) : NULL;
    if (name)
        return arena_printf(tc->arena, "CudaWarps '%s'", name);
    return op->by ? "CudaWarps" : "an argument's interval";
}

static bool split_failed(TilingCtx *tc, const TileOp *op, int64_t f,
                         const char **why)
{
    domain_fail(tc, why,
                "thread alignment issue: %s takes %lld threads from thread "
                "%lld on, which are not aligned to %lld",
                op_label(tc, op), (long long)op->box, (long long)op->offset,
                (long long)f);
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
        tile_dim_push(tc, outer, o);
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
        tile_dim_push(tc, outer, o);
    }
    tile_dim_push(tc, inner, in);
    return true;
}

static bool split_dim(TilingCtx *tc, const TileDim *d, int64_t f,
                      TileDim *outer, TileDim *inner, const char **why)
{
    *outer = (TileDim){ .extent = d->extent / f,
                        .pitch = d->pitch * f,
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

/* ---- cuts --------------------------------------------------------------- */

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

bool cuts_chain(TilingCtx *tc, Cuts *c, const char **why)
{
    qsort(c->at, c->n, sizeof *c->at, compare_int64);
    unsigned n = 1;
    for (unsigned i = 1; i < c->n; i++) {
        if (c->at[i] == c->at[n - 1])
            continue;
        if (c->at[i] % c->at[n - 1]) {
            domain_fail(tc, why,
                        "Domain completion failed: %lld doesn't divide %lld",
                        (long long)c->at[n - 1], (long long)c->at[i]);
            return false;
        }
        c->at[n++] = c->at[i];
    }
    c->n = n;
    return true;
}

void cuts_add(Cuts *c, unsigned n, int64_t (*extent)(const void *, unsigned),
              const void *of)
{
    int64_t pitch = 1;
    c->at[c->n++] = 1;
    for (unsigned i = n; i-- > 0;) {
        pitch *= extent(of, i);
        c->at[c->n++] = pitch;
    }
}

int64_t tiling_extent(const void *t, unsigned i)
{
    return ((const Tiling *)t)->dims[i].extent;
}

int64_t shape_extent(const void *s, unsigned i)
{
    return ((const Shape *)s)->domain[i];
}

Tiling *tiling_refine(TilingCtx *tc, const Tiling *t, const Cuts *c,
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
        domain_fail(tc, why,
                    "Domain completion failed: %lld doesn't divide box %lld",
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
        return domain_fail(tc, why,
                           "Domain completion failed: the unit's domain does "
                           "not divide the %lld threads",
                           (long long)threads);
    Shape *out = shape_new(tc, s->n + 1);
    if (own != threads)
        shape_push(out, threads / own, outer_box);
    for (unsigned i = 0; i < s->n; i++) {
        if (s->domain[i] != 1)
            shape_push(out, s->domain[i], s->box[i]);
        else if (s->box[i] != 1 && s->box[i] != BOX_ANY)
            return domain_fail(tc, why,
                               "not enough threads available: the unit needs "
                               "%lld on a dimension of 1",
                               (long long)s->box[i]);
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

bool domain_complete(TilingCtx *tc, const Tiling *t, const Shape *s,
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
