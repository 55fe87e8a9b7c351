/* Units and tilings: deriving, completing, matching, comparing. */
#include "passes/analysis/domain.h"

/* ---- tilings ------------------------------------------------------------ */

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

Tiling *tiling_new(TilingCtx *tc, unsigned depth, unsigned room)
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
                                     .pitch = tc->block_dim,
                                     .intra = cta };
    t->dims[t->n++] =
        (TileDim){ .extent = tc->block_dim, .pitch = 1, .intra = thread };
    return t;
}

/* ---- tiling and specialising -------------------------------------------- */

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
    if (!domain_complete(tc, t, r->unit, BOX_ANY, &out, &unit, why))
        return NULL;
    out->depth = t->depth + 1;
    int dim = candidate_dim(out, unit);
    if (dim == -2)
        return domain_fail(tc, why, "ambiguous dimension to tile");
    if (dim < 0) {
        if (r->lo != 0 || r->hi != 1)
            return domain_fail(tc, why,
                               "trivial tiling: the collective is one unit "
                               "already, so that only [0, 1) is possible");
        return out;
    }
    TileDim *d = &out->dims[dim];
    int64_t box = unit->box[dim], have = tile_dim_box(d);
    if (r->hi > have / box)
        return domain_fail(tc, why,
                           "not enough threads available; max_tile_count="
                           "%lld",
                           (long long)(have / box));
    TileOp op = { .by = r->by,
                  .iter = r->iter,
                  .serial = ++tc->next_serial,
                  .depth = out->depth };
    if (r->specialise)
        tile_dim_specialise(tc, d, r, box, &op, guard);
    else
        tile_dim_tile(tc, d, r, box, &op, guard);
    *value = op.value;
    tile_dim_push(tc, d, op);
    return out;
}

/* ---- completing and matching -------------------------------------------- */

const Tiling *tiling_complete(TilingCtx *tc, const Tiling *t, const Shape *unit,
                              const char **why)
{
    const Shape *aligned = shape_align(tc, unit, why);
    Tiling *out;
    Shape *s;
    if (!aligned || !domain_complete(tc, t, aligned, 1, &out, &s, why))
        return NULL;
    for (unsigned i = 0; i < out->n; i++)
        out->dims[i].label = s->box[i] == BOX_ANY ? LABEL_agnostic
                             : s->box[i] == 1     ? LABEL_subdiv
                                                  : LABEL_intact;
    return out;
}

static void print_list(StrBuf *out, unsigned n,
                       int64_t (*at)(const void *, unsigned), const void *of)
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
    StrBuf b = { 0 };
    tiling_print(&b, c);
    strbuf_addf(&b,
                ", %lld threads; expected box=", (long long)tiling_threads(c));
    print_list(&b, c->n, label_box, c);
    domain_fail(tc, why, "%s", strbuf_text(&b));
    strbuf_free(&b);
    return false;
}

/* ---- comparing ---------------------------------------------------------- */

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
        domain_fail(tc, why,
                    "Incompatible offsets: thread %lld and thread %lld",
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
            domain_fail(tc, why, "Incompatible box size: %lld and %lld threads",
                        (long long)tiling_threads(a),
                        (long long)tiling_threads(b));
            return false;
        }
    return true;
}
