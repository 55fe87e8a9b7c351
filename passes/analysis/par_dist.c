/* Distributed memory: which leading dimensions of an allocation are spread over
 * threads. At the allocation the collective must hold whole native units; each
 * use then names, by its thread iterators, one native unit; what those
 * iterators are must be the same at every use (docs/checks.md, "Distributed
 * memory"). */
#include "passes/analysis/par_internal.h"

/* Deduction at one use. */
typedef struct Deduction {
    ParInfo *pi;
    AllocFacts *alloc;
    const DistUse *use;
    const Tiling *tiling; /* of the use; completed for the native unit */
    unsigned *synthetic;  /* per dimension: serial of its tile op, or 0 */
    DistIter *iters;
    unsigned *serials; /* per consumed dimension */
    unsigned n;
} Deduction;

EXO_PRINTF(2, 3)
static bool refuse(Deduction *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(d->pi->m->arena, fmt, ap);
    va_end(ap);
    ParInfo *pi = d->pi;
    const ParAlloc *a = &d->alloc->pub;
    const char *mem = par_text_mem(pi->m, a->value->type->mem);
    Diag *e = par_error(pi, d->use->op, "distribution",
                        "Distributed memory deduction for %s failed: %s (use "
                        "%s of %s)",
                        par_text_value(a->value), text,
                        par_text_access(pi->m, d->use->access), mem);
    diag_note(
        pi->ctx, e, a->op->loc, "%s: %s is allocated here, native unit %s",
        par_text_value(a->value), mem, par_text_unit(pi->m, d->alloc->native));
    if (a->first_use)
        diag_note(pi->ctx, e, a->first_use->loc,
                  "its first use %s, which fixes the distribution, is here",
                  par_text_access(pi->m, d->alloc->first_access));
    return false;
}

/* ---- the allocation ----------------------------------------------------- */

static void check_whole(ParInfo *pi, Op *op, const Tiling *t,
                        const UnitRef *native)
{
    for (unsigned i = 0; i < t->n; i++) {
        const TileDim *d = &t->dims[i];
        if (d->label != LABEL_intact || tile_dim_box(d) == d->extent)
            continue;
        StrBuf b = { 0 };
        tiling_print(&b, t);
        Diag *e = par_error(pi, op, "distribution",
                            "Missing threads to match "
                            "%s: %s of %s is allocated by %lld of %lld "
                            "threads on dims[%u], %s",
                            par_text_unit(pi->m, native),
                            par_text_value(op->results[0]),
                            par_text_mem(pi->m, op->results[0]->type->mem),
                            (long long)tile_dim_box(d), (long long)d->extent, i,
                            strbuf_text(&b));
        diag_fix(pi->ctx, e, "move the allocation out to a scope of whole %s",
                 par_text_unit(pi->m, native));
        strbuf_free(&b);
        return;
    }
}

static const Shape *native_shape(ParInfo *pi, TilingCtx *tc, const Op *op,
                                 const UnitRef *ref, const char **why)
{
    const Unit *u = lib_unit(pi->m->lib, op->loc, ref);
    *why = "unknown unit";
    return u ? shape_of_unit(tc, u, why) : NULL;
}

void par_dist_alloc(ParInfo *pi, Op *op, Scope *s)
{
    Value *v = op->results[0];
    const Mem *mem =
        v->type->mem ? lib_mem(pi->m->lib, op->loc, v->type->mem) : NULL;
    if (!mem) {
        pi->ok = false;
        return;
    }
    AllocFacts *a = ARENA_NEW(pi->m->arena, AllocFacts);
    a->pub.value = v;
    a->pub.op = op;
    a->pub.mem = mem;
    a->pub.n_shard = v->type->rank;
    a->pub.shard = v->shape;
    a->native = mem->native_unit;
    a->depth = s->tiling->depth;
    ptr_map_put(pi->m->arena, &pi->allocs, v, a);
    if (!a->native)
        return;
    const char *why;
    const Shape *unit = native_shape(pi, s->tc, op, a->native, &why);
    const Tiling *t =
        unit ? tiling_complete(s->tc, s->tiling, unit, &why) : NULL;
    if (t)
        check_whole(pi, op, t, a->native);
    else
        par_error(pi, op, "distribution",
                  "cannot match native unit %s of %s: "
                  "%s",
                  par_text_unit(pi->m, a->native), par_text_value(v), why);
}

/* ---- intervals of arguments --------------------------------------------- */

/* Spreads dimension i of the access by one of the argument's units. */
static bool spread_interval(Deduction *d, unsigned i, const UnitRef *ref)
{
    ParInfo *pi = d->pi;
    const AccessDim *dim = &d->use->access->dims[i];
    int64_t lo, len, extent;
    if (!affine_is_const(d->alloc->pub.value->shape[i], &extent))
        return refuse(d, "shape[%u] must be constant", i);
    if (!affine_is_const(dim->lo, &lo) || !affine_is_const(dim->len, &len) ||
        lo != 0 || len != extent)
        return refuse(d, "expected idx[%u]=0:%lld", i, (long long)extent);
    TilingCtx *tc = d->use->scope->tc;
    const char *why;
    const Shape *unit = native_shape(pi, tc, d->use->op, ref, &why);
    if (!unit)
        return refuse(d, "%s", why);
    TileRequest r = { .unit = unit, .lo = 0, .hi = extent };
    const Cond *guard;
    const Affine *value;
    unsigned before = tc->next_serial;
    d->tiling = tiling_derive(tc, d->tiling, &r, &guard, &value, &why);
    if (!d->tiling)
        return refuse(d, "idx[%u] spread over %s: %s", i,
                      par_text_unit(pi->m, ref), why);
    d->synthetic[i] = tc->next_serial > before ? tc->next_serial : 0;
    d->iters[i] =
        (DistIter){ .tile_count = extent, .value = value, .synthetic = true };
    return true;
}

static bool spread_intervals(Deduction *d)
{
    unsigned n = 0;
    for (unsigned i = 0; i < d->use->access->rank && n < d->use->n_units; i++)
        if (d->use->access->dims[i].kind == DIM_interval)
            if (!spread_interval(d, i, d->use->units[n++]))
                return false;
    return true;
}

/* ---- what is needed ----------------------------------------------------- */

static const TileOp *needed_op(const Deduction *d, unsigned serial)
{
    if (!serial)
        return NULL;
    for (unsigned i = 0; i < d->tiling->n; i++) {
        const TileDim *dim = &d->tiling->dims[i];
        for (unsigned k = 0; k < dim->n_ops; k++)
            if (dim->label == LABEL_subdiv && dim->ops[k].serial == serial &&
                dim->ops[k].depth > d->alloc->depth &&
                dim->ops[k].tile_count > 1)
                return &dim->ops[k];
    }
    return NULL;
}

static bool was_consumed(const Deduction *d, unsigned serial)
{
    for (unsigned i = 0; i < d->n; i++)
        if (d->serials[i] == serial)
            return true;
    return false;
}

/* A needed iterator that no index has named yet, or NULL. */
static const TileOp *still_needed(const Deduction *d)
{
    for (unsigned i = 0; i < d->tiling->n; i++) {
        const TileDim *dim = &d->tiling->dims[i];
        for (unsigned k = 0; k < dim->n_ops; k++) {
            unsigned serial = dim->ops[k].serial;
            if (needed_op(d, serial) && !was_consumed(d, serial))
                return &dim->ops[k];
        }
    }
    return NULL;
}

static const char *op_name(const Deduction *d, const TileOp *op)
{
    const char *name =
        op->iter ? var_get(d->pi->m->exprs, op->iter)->name : NULL;
    return name ? name : op->by ? "_" : "an interval";
}

static bool check_subdivided(Deduction *d)
{
    for (unsigned i = 0; i < d->tiling->n; i++) {
        const TileDim *dim = &d->tiling->dims[i];
        if (dim->label != LABEL_subdiv || tile_dim_box(dim) == 1)
            continue;
        StrBuf b = { 0 };
        tiling_print(&b, d->tiling);
        refuse(d, "Missing subdivision on dims[%u] to match %s: %s", i,
               par_text_unit(d->pi->m, d->alloc->native), strbuf_text(&b));
        strbuf_free(&b);
        return false;
    }
    return true;
}

/* ---- consuming indices -------------------------------------------------- */

/* The facts of the thread loop whose iterator dimension i names, or NULL after
 * an error. */
static const LoopFacts *index_loop(Deduction *d, unsigned i, VarId *iter)
{
    ParInfo *pi = d->pi;
    const AccessDim *dim = &d->use->access->dims[i];
    if (dim->kind != DIM_point || !affine_is_var(dim->lo, iter)) {
        const char *text = par_text_affine(pi->m, dim->lo);
        if (dim->kind == DIM_interval)
            text = "an interval";
        refuse(d, "Expected single variable name, not %s, as idx[%u]", text, i);
        return NULL;
    }
    Op *loop = par_loop_of_var(d->use->op, *iter);
    const LoopFacts *f = loop ? ptr_map_get(&pi->loops, loop) : NULL;
    if (!f)
        refuse(d, "Expected cuda_threads-loop iterator, not %s, as idx[%u]",
               par_text_affine(pi->m, dim->lo), i);
    return f;
}

static bool check_extent(Deduction *d, unsigned i, const char *name,
                         int64_t count)
{
    int64_t extent;
    if (!affine_is_const(d->alloc->pub.value->shape[i], &extent))
        return refuse(d, "shape[%u] must be constant, found %s", i,
                      par_text_affine(d->pi->m, d->alloc->pub.value->shape[i]));
    if (extent != count)
        return refuse(d,
                      "%s.tile_count = %lld; must be %lld to match "
                      "underlying tensor",
                      name, (long long)count, (long long)extent);
    return true;
}

static bool consume_iterator(Deduction *d, unsigned i)
{
    VarId iter = 0;
    const LoopFacts *f = index_loop(d, i, &iter);
    if (!f)
        return false;
    const char *name = var_get(d->pi->m->exprs, iter)->name;
    name = name ? name : "_";
    if (f->pitch && !needed_op(d, f->serial))
        return refuse(d, "%s is not an expected distributed iterator", name);
    if (f->pitch && was_consumed(d, f->serial))
        return refuse(d, "iterator %s is repeated unexpectedly", name);
    if (!check_extent(d, i, name, f->tile_count))
        return false;
    d->iters[i] = (DistIter){ f->tile_count, f->pitch, f->iter, false };
    d->serials[d->n++] = f->serial;
    return true;
}

static bool consume(Deduction *d, unsigned i)
{
    if (!d->iters[i].synthetic)
        return consume_iterator(d, i);
    const TileOp *op = needed_op(d, d->synthetic[i]);
    if (d->synthetic[i] && !op && d->iters[i].tile_count > 1)
        return refuse(d, "idx[%u] is not an expected distributed interval", i);
    d->iters[i].pitch = op ? op->pitch : 0;
    d->serials[d->n++] = d->synthetic[i];
    return true;
}

static bool consume_all(Deduction *d)
{
    const TileOp *need;
    for (unsigned i = 0; (need = still_needed(d)) != NULL; i++) {
        if (i == d->use->access->rank)
            return refuse(d, "Missing: %s must index a leading dimension",
                          op_name(d, need));
        if (!consume(d, i))
            return false;
    }
    return true;
}

/* ---- agreement of uses -------------------------------------------------- */

static bool agree(Deduction *d)
{
    const ParAlloc *a = &d->alloc->pub;
    if (d->n != a->n_dist)
        return refuse(d,
                      "Different number of distributed dimensions deduced, "
                      "%u and %u; possible reason, used iterator with "
                      "tile_count=1",
                      d->n, a->n_dist);
    for (unsigned i = 0; i < d->n; i++)
        if (d->iters[i].pitch != a->dist[i].pitch)
            return refuse(d,
                          "thread pitch of idx[%u]: X.thread_pitch (%lld) "
                          "!= Y.thread_pitch (%lld)",
                          i, (long long)d->iters[i].pitch,
                          (long long)a->dist[i].pitch);
    const char *why;
    if (!tiling_same_base(d->use->scope->tc, d->tiling, d->alloc->tiling, true,
                          &why))
        return refuse(d, "%s", why);
    return true;
}

static void fix_first(Deduction *d)
{
    ParAlloc *a = &d->alloc->pub;
    ParDist *dist = ARENA_ARRAY(d->pi->m->arena, ParDist, d->n);
    int64_t block_dim = d->use->scope->dev->block_dim;
    for (unsigned i = 0; i < d->n; i++)
        dist[i] =
            (ParDist){ d->iters[i].tile_count, d->iters[i].pitch,
                       d->iters[i].pitch % block_dim == 0, d->iters[i].value };
    a->n_dist = d->n;
    a->dist = dist;
    a->n_shard = a->value->type->rank - d->n;
    a->shard = a->value->shape + d->n;
    a->first_use = d->use->op;
    d->alloc->tiling = d->tiling;
    d->alloc->first_access = d->use->access;
}

static bool deduce(Deduction *d)
{
    if (!spread_intervals(d))
        return false;
    TilingCtx *tc = d->use->scope->tc;
    const char *why;
    const Shape *unit =
        native_shape(d->pi, tc, d->use->op, d->alloc->native, &why);
    d->tiling = unit ? tiling_complete(tc, d->tiling, unit, &why) : NULL;
    if (!d->tiling)
        return refuse(d, "%s", why);
    if (!check_subdivided(d) || !consume_all(d))
        return false;
    if (d->alloc->pub.first_use)
        return agree(d);
    fix_first(d);
    return true;
}

bool par_dist_use(ParInfo *pi, AllocFacts *a, const DistUse *u, unsigned *n,
                  const DistIter **iters)
{
    unsigned rank = u->access->rank;
    Deduction d = {
        .pi = pi, .alloc = a, .use = u, .tiling = u->scope->tiling
    };
    d.synthetic = ARENA_ARRAY(pi->m->arena, unsigned, rank);
    d.iters = ARENA_ARRAY(pi->m->arena, DistIter, rank);
    d.serials = ARENA_ARRAY(pi->m->arena, unsigned, rank);
    a->pub.used = true;
    if (!a->native) {
        if (!a->pub.first_use)
            a->pub.first_use = u->op;
    } else if (!deduce(&d)) {
        return false;
    }
    if (n)
        *n = d.n;
    if (iters)
        *iters = d.iters;
    return true;
}
