/* Buffers: shapes, places and memories of allocations. Every access to the
 * buffer is rewritten; whether the new index is right is proved where the
 * access stands. */
#include "passes/schedule/ops.h"

#include <stdlib.h>

/* ---- rewriting every access -------------------------------------------- */

typedef struct AccessWalk {
    Sched *s;
    const Value *v;
    SchedAccessFn *fn;
    void *user;
    bool ok;
} AccessWalk;

static bool visit(Op *op, void *user)
{
    AccessWalk *w = user;
    for (unsigned i = 0; i < op->n_operands && w->ok; i++)
        if (op->operands[i].kind == OPND_access &&
            op->operands[i].u.access->base == w->v)
            w->ok = w->fn(w->s, op, op->operands[i].u.access, w->user);
    return w->ok;
}

bool sched_each_access(Sched *s, const Value *v, SchedAccessFn *fn, void *user)
{
    AccessWalk w = { s, v, fn, user, true };
    op_walk(s->proc, visit, &w);
    return w.ok;
}

static bool no_strides(Sched *s, const Value *v, Loc loc)
{
    return !sched_uses_stride(s, v) ||
           sched_fail(s, loc, "a stride of %s is read", sched_value_name(s, v));
}

/* The same where strides of the first dimensions change, of windows too. */
static bool no_view_strides(Sched *s, const Value *v, unsigned changed, Loc loc)
{
    const Op *op = sched_stride_reader(s, s->proc, v, changed);
    return !op || sched_fail(s, loc, "'%s' reads a stride of %s",
                             sched_stmt_text(s, op), sched_value_name(s, v));
}

static void set_type(Sched *s, Value *v, unsigned rank, ScalarType elem,
                     const MemRef *mem)
{
    v->type = v->type->kind == TK_barrier
                  ? type_barrier(s->ctx, rank, mem)
                  : type_tensor(s->ctx, v->type->kind, elem, rank, mem);
}

/* Room for one dimension more at `at` in a list of n. */
static AccessDim *dims_with(Sched *s, const Access *a, unsigned at)
{
    AccessDim *d = ARENA_ARRAY(s->m->arena, AccessDim, a->rank + 1);
    for (unsigned i = 0; i < a->rank; i++)
        d[i < at ? i : i + 1] = a->dims[i];
    return d;
}

static const Affine **shape_with(Sched *s, const Value *v, unsigned at,
                                 const Affine *extent)
{
    const Affine **e =
        ARENA_ARRAY(s->m->arena, const Affine *, v->type->rank + 1);
    for (unsigned i = 0; i < v->type->rank; i++)
        e[i < at ? i : i + 1] = v->shape[i];
    e[at] = extent;
    return e;
}

static const Affine **shape_without(Sched *s, const Value *v, unsigned at)
{
    const Affine **e = ARENA_ARRAY(s->m->arena, const Affine *, v->type->rank);
    for (unsigned i = 0, k = 0; i < v->type->rank; i++)
        if (i != at)
            e[k++] = v->shape[i];
    return e;
}

static bool has_dim(Sched *s, const Value *v, const SchedArg *a)
{
    return (a->i >= 0 && a->i < (int64_t)v->type->rank) ||
           sched_fail(s, a->loc, "%s has no dimension %lld",
                      sched_value_name(s, v), (long long)a->i);
}

/* ---- expand_dim -------------------------------------------------------- */

static bool add_point(Sched *s, Op *op, Access *a, void *user)
{
    a->dims = dims_with(s, a, 0);
    a->dims[0] = (AccessDim){ .kind = DIM_point, .lo = user };
    a->rank++;
    edit_replace(s->log, op);
    return true;
}

static bool expand(Sched *s, Op *alloc, const Affine *size, const Affine *index,
                   Loc loc)
{
    ExprCtx *x = s->m->exprs;
    Value *v = alloc->results[0];
    Facts *f = prove_facts_at(s->arena, s->m, alloc);
    const Affine *zero = affine_const(x, 0);
    if (!no_strides(s, v, loc) ||
        !sched_prove(s, f, cond_cmp(x, CMP_gt, size, zero), loc,
                     "the extent %s may not be positive",
                     sched_index_text(s, size)) ||
        !sched_prove(s, f,
                     cond_and(x, cond_cmp(x, CMP_ge, index, zero),
                              cond_cmp(x, CMP_lt, index, size)),
                     loc, "the index %s may leave the extent %s",
                     sched_index_text(s, index), sched_index_text(s, size)))
        return false;
    sched_each_access(s, v, add_point, (void *)index);
    v->shape = shape_with(s, v, 0, size);
    v->ring_dim += v->ring_dim >= 0;
    set_type(s, v, v->type->rank + 1, v->type->elem, v->type->mem);
    edit_replace(s->log, alloc);
    return true;
}

bool sched_expand_dim(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first;
    const Affine *size = sched_index(s, alloc, a[1].loc, a[1].s);
    const Affine *index = size ? sched_index(s, alloc, a[2].loc, a[2].s) : NULL;
    return index && expand(s, alloc, size, index, a[1].loc);
}

/* ---- replicate_buffer -------------------------------------------------- */

typedef struct Replicate {
    const SchedArg *read; /* the copy that reads take, where they stand */
    const Affine *n;
    const char *name; /* of the loops over copies */
    VEC(Op *) uses;
    Loc loc;
} Replicate;

static bool note_copy_use(Sched *s, Op *op, Access *a, void *user)
{
    Replicate *r = user;
    (void)a;
    VEC_PUSH(s->arena, &r->uses, op);
    return sched_by_element(s, op, r->loc);
}

static bool is_write_of(const Op *op, const Value *v)
{
    return (op->code == OP_mem_store || op->code == OP_mem_reduce) &&
           op->operands[0].u.access->base == v;
}

/* Puts a write under a loop over the copies; what its value reads of them is
 * the same copy. */
static void write_copies(Sched *s, const Replicate *r, const Value *v, Op *stmt)
{
    VarId copy;
    Op *loop =
        sched_loop(s, NULL, r->name, affine_const(s->m->exprs, 0), r->n, &copy);
    const Affine *at = affine_var(s->m->exprs, copy);
    for (Op *op = stmt_first(stmt);; op = op->next) {
        for (unsigned i = 0; i < op->n_operands; i++)
            if (op->operands[i].kind == OPND_access &&
                op->operands[i].u.access->base == v)
                add_point(s, op, op->operands[i].u.access, (void *)at);
        if (op == stmt)
            break;
    }
    edit_wrap(s->log, stmt, stmt, loop);
}

static bool read_copy(Sched *s, const Replicate *r, Op *op)
{
    ExprCtx *x = s->m->exprs;
    const Affine *at = sched_index(s, op, r->read->loc, r->read->s);
    if (!at)
        return false;
    const Cond *in = cond_and(x, cond_cmp(x, CMP_ge, at, affine_const(x, 0)),
                              cond_cmp(x, CMP_lt, at, r->n));
    Facts *f = prove_facts_at(s->arena, s->m, sched_stmt_of(op));
    return sched_prove(s, f, in, r->read->loc, "there may be no copy %s",
                       sched_index_text(s, at)) &&
           add_point(s, op, op->operands[0].u.access, (void *)at);
}

bool sched_replicate_buffer(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first;
    Value *v = alloc->results[0];
    Replicate r = { .read = &a[3], .name = a[2].s, .loc = a[0].loc };
    if (a[1].i < 1)
        return sched_fail(s, a[1].loc, "expected a positive number of copies");
    r.n = affine_const(s->m->exprs, a[1].i);
    if (v->type->kind != TK_tensor || v->ring_dim >= 0)
        return sched_fail(s, a[0].loc, "barriers and rings have no copies");
    if (!no_strides(s, v, a[0].loc) ||
        !sched_each_access(s, v, note_copy_use, &r))
        return false;
    for (size_t i = 0; i < r.uses.len; i++)
        if (!is_write_of(sched_stmt_of(r.uses.data[i]), v) &&
            !read_copy(s, &r, r.uses.data[i]))
            return false;
    for (size_t i = 0; i < r.uses.len; i++)
        if (is_write_of(r.uses.data[i], v))
            write_copies(s, &r, v, r.uses.data[i]);
    v->shape = shape_with(s, v, 0, r.n);
    set_type(s, v, v->type->rank + 1, v->type->elem, v->type->mem);
    edit_replace(s->log, alloc);
    return true;
}

/* ---- lift_alloc, sink_alloc, autolift_alloc ---------------------------- */

/* Outside a scope that may not run, an extent may be less than 0. */
static bool extents_hold(Sched *s, Op *scope, const Value *v, Loc loc)
{
    const Affine *e =
        sched_negative_extent(s, prove_facts_at(s->arena, s->m, scope), v);
    return !e ||
           sched_fail(s, loc, "the extent %s may be negative outside '%s'",
                      sched_index_text(s, e), sched_stmt_text(s, scope));
}

static bool lift_once(Sched *s, Op *alloc, Loc loc)
{
    Op *scope = op_parent(alloc);
    Value *v = alloc->results[0];
    if (!scope || scope == s->proc)
        return sched_fail(s, loc, "there is no scope around '%s'",
                          sched_stmt_text(s, alloc));
    for (unsigned i = 0; i < v->type->rank && scope->code == OP_ctl_for; i++)
        if (affine_uses(v->shape[i], sched_loop_var(scope)))
            return sched_fail(
                s, loc,
                "the extent %s uses '%s', which is not in scope "
                "outside its loop",
                sched_index_text(s, v->shape[i]),
                var_get(s->m->exprs, sched_loop_var(scope))->name);
    if (v->ring_dim >= 0 && scope->code == OP_par_device)
        return sched_fail(s, loc,
                          "%s is a ring, which stays in its device "
                          "function",
                          sched_value_name(s, v));
    if (v->ring_guard && v->ring_guard->def &&
        v->ring_guard->def->parent == alloc->parent)
        return sched_fail(s, loc, "its guard %s is allocated in the scope",
                          sched_value_name(s, v->ring_guard));
    if (!extents_hold(s, scope, v, loc))
        return false;
    edit_move_before(s->log, scope, alloc);
    return true;
}

bool sched_lift_alloc(Sched *s, const SchedArg *a)
{
    if (a[1].i < 1)
        return sched_fail(s, a[1].loc, "n_lifts is positive");
    for (int64_t i = 0; i < a[1].i; i++)
        if (!lift_once(s, a[0].at.first, a[0].loc))
            return false;
    return true;
}

/* Every loop that is crossed becomes a dimension. */
bool sched_autolift_alloc(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first;
    if (a[1].i < 1)
        return sched_fail(s, a[1].loc, "n_lifts is positive");
    for (int64_t i = 0; i < a[1].i; i++) {
        Op *scope = op_parent(alloc);
        if (scope && scope->code == OP_ctl_for) {
            ExprCtx *x = s->m->exprs;
            const Affine *lo = scope->operands[0].u.index;
            const Affine *n = affine_sub(x, scope->operands[1].u.index, lo);
            const Affine *at =
                affine_sub(x, affine_var(x, sched_loop_var(scope)), lo);
            if (!n || !at || !expand(s, alloc, n, at, a[0].loc))
                return false;
        }
        if (!lift_once(s, alloc, a[0].loc))
            return false;
    }
    return true;
}

static bool only_of(const Effect *e, const Value *v)
{
    return e->access && effect_root(e->access->base) == v;
}

/* Is the element a loop reads one that the same trip wrote? Shown when no trip
 * reads what an earlier one wrote, or when a trip begins by setting a scalar.
 */
static bool trips_are_apart(Sched *s, Op *loop, Value *v, Loc loc)
{
    ExprCtx *x = s->m->exprs;
    EffectVec all = { 0 }, later = { 0 };
    VarId i = sched_loop_var(loop);
    Op *first = block_first_stmt(loop->blocks[0]);
    while (first && !op_uses_value(first, v))
        first = stmt_next(first);
    if (first && first->code == OP_mem_store && v->type->rank == 0 &&
        first->operands[0].u.access->base == v)
        return true;
    effects_of_block(s, loop->blocks[0], &all);
    VarId j;
    Facts *f = sched_facts_later(s, loop, &j);
    const Affine *to = affine_var(x, j);
    if (!effects_renamed(s, &all, loop->parent, 1, &i, &to, &later))
        return false;
    for (size_t p = 0; p < all.len; p++)
        for (size_t q = 0; q < later.len; q++) {
            const Effect *w = &all.data[p], *r = &later.data[q];
            if (!only_of(w, v) || !only_of(r, v) || !(w->flags & ACC_WRITE) ||
                !(r->flags & ACC_READ))
                continue;
            const Cond *meet =
                cond_and(x, cond_and(x, w->when, r->when),
                         w->access->base == r->access->base
                             ? access_overlap(x, w->access, r->access)
                             : cond_bool(x, true));
            if (!sched_prove(s, f, cond_not(x, meet), loc,
                             "a trip may read what an earlier one wrote to %s",
                             sched_value_name(s, v)))
                return false;
        }
    return true;
}

bool sched_sink_alloc(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first, *into = stmt_next(alloc);
    Value *v = alloc->results[0];
    if (!into || !into->n_blocks)
        return sched_fail(s, a[0].loc, "the next statement is no scope");
    for (Op *op = into->next; op; op = op->next)
        if (op_uses_value(op, v))
            return sched_fail(s, a[0].loc, "it is used behind '%s' too",
                              sched_stmt_text(s, into));
    for (unsigned i = 1; i < into->n_blocks; i++)
        for (Op *op = into->blocks[i]->first; op; op = op->next)
            if (op_uses_value(op, v))
                return sched_fail(s, a[0].loc, "it is used in the else too");
    if (into->code == OP_ctl_for && !trips_are_apart(s, into, v, a[0].loc))
        return false;
    Op *first = block_first_stmt(into->blocks[0]);
    edit_move_before(s->log, first, alloc);
    return true;
}

/* ---- memory, precision ------------------------------------------------- */

bool sched_set_memory(Sched *s, const SchedArg *a)
{
    Value *v = a[0].at.first->results[0];
    const MemRef *mem = sched_mem(s, a[1].loc, a[1].s);
    if (!mem)
        return false;
    set_type(s, v, v->type->rank, v->type->elem, mem);
    edit_replace(s->log, a[0].at.first);
    return true;
}

/* ---- resize, divide, merge, permute ------------------------------------ */

typedef struct Reshape {
    unsigned dim, lo_dim;
    int64_t n;
    const Affine *size, *offset;
    const unsigned *order;
    Loc loc;
} Reshape;

static bool resize_access(Sched *s, Op *op, Access *a, void *user)
{
    const Reshape *r = user;
    ExprCtx *x = s->m->exprs;
    AccessDim *d = &a->dims[r->dim];
    const Affine *lo = affine_sub(x, d->lo, r->offset);
    const Affine *len = d->kind == DIM_point ? affine_const(x, 1) : d->len;
    const Cond *in =
        cond_and(x, cond_cmp(x, CMP_ge, lo, affine_const(x, 0)),
                 cond_cmp(x, CMP_le, affine_add(x, lo, len), r->size));
    Facts *f = prove_facts_at(s->arena, s->m, op);
    if (!sched_prove(s, f, in, r->loc, "'%s' may leave the new extent %s",
                     sched_stmt_text(s, op), sched_index_text(s, r->size)))
        return false;
    d->lo = lo;
    return true;
}

bool sched_resize_dim(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first;
    Value *v = alloc->results[0];
    if (!has_dim(s, v, &a[1]) ||
        !no_view_strides(s, v, (unsigned)a[1].i, a[0].loc))
        return false;
    Reshape r = { .dim = (unsigned)a[1].i, .loc = a[0].loc };
    r.size = sched_index(s, alloc, a[2].loc, a[2].s);
    r.offset = r.size ? sched_index(s, alloc, a[3].loc, a[3].s) : NULL;
    ExprCtx *x = s->m->exprs;
    if (r.offset && a[4].i)
        return sched_fold_dim(s, alloc, r.dim, &a[2], r.size, r.offset, &a[5]);
    if (!r.offset ||
        !sched_prove(s, prove_facts_at(s->arena, s->m, alloc),
                     cond_cmp(x, CMP_gt, r.size, affine_const(x, 0)), a[2].loc,
                     "the extent may not be positive") ||
        !sched_each_access(s, v, resize_access, &r))
        return false;
    v->shape[r.dim] = r.size;
    edit_replace(s->log, alloc);
    return true;
}

static bool divide_access(Sched *s, Op *op, Access *a, void *user)
{
    const Reshape *r = user;
    ExprCtx *x = s->m->exprs;
    AccessDim d = a->dims[r->dim];
    if (d.kind != DIM_point)
        return sched_fail(s, r->loc, "'%s' takes an interval of the dimension",
                          sched_stmt_text(s, op));
    a->dims = dims_with(s, a, r->dim + 1);
    a->dims[r->dim].lo = affine_floordiv(x, d.lo, r->n);
    a->dims[r->dim + 1] =
        (AccessDim){ .kind = DIM_point, .lo = affine_mod(x, d.lo, r->n) };
    a->rank++;
    return true;
}

bool sched_divide_dim(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first;
    Value *v = alloc->results[0];
    ExprCtx *x = s->m->exprs;
    Reshape r = { .dim = (unsigned)a[1].i, .n = a[2].i, .loc = a[0].loc };
    if (!has_dim(s, v, &a[1]) || !no_strides(s, v, a[0].loc))
        return false;
    if (r.n < 1 || v->ring_dim == (int)r.dim)
        return sched_fail(s, a[2].loc,
                          "a ring is not divided, and the divisor "
                          "is positive");
    const Affine *e = v->shape[r.dim];
    if (!sched_prove(
            s, prove_facts_at(s->arena, s->m, alloc),
            cond_cmp(x, CMP_eq, affine_mod(x, e, r.n), affine_const(x, 0)),
            a[2].loc, "%lld does not divide the extent %s", (long long)r.n,
            sched_index_text(s, e)) ||
        !sched_each_access(s, v, divide_access, &r))
        return false;
    v->shape = shape_with(s, v, r.dim + 1, affine_const(x, r.n));
    v->shape[r.dim] = affine_floordiv(x, e, r.n);
    v->ring_dim += v->ring_dim > (int)r.dim;
    set_type(s, v, v->type->rank + 1, v->type->elem, v->type->mem);
    edit_replace(s->log, alloc);
    return true;
}

static const char window_turns[] =
    "'%s' takes a window whose dimensions would change places";

static bool interval_between(const Access *a, unsigned i, unsigned k)
{
    unsigned from = i < k ? i : k, to = i < k ? k : i;
    while (++from < to)
        if (a->dims[from].kind == DIM_interval)
            return true;
    return false;
}

/* hi * n + lo in hi's place. An interval of lo stays one. */
static bool mult_access(Sched *s, Op *op, Access *a, void *user)
{
    const Reshape *r = user;
    ExprCtx *x = s->m->exprs;
    AccessDim hi = a->dims[r->dim], lo = a->dims[r->lo_dim];
    int64_t start, len;
    bool whole = lo.kind == DIM_interval && affine_is_const(lo.lo, &start) &&
                 affine_is_const(lo.len, &len) && start == 0 && len == r->n;
    if (hi.kind != DIM_point)
        return sched_fail(s, r->loc, "'%s' takes an interval of dimension %u%s",
                          sched_stmt_text(s, op), r->dim,
                          whole ? ", which would change a window's rank" : "");
    if (lo.kind == DIM_interval && interval_between(a, r->dim, r->lo_dim))
        return sched_fail(s, r->loc, window_turns, sched_stmt_text(s, op));
    AccessDim to = lo;
    to.lo = affine_add(x, affine_scale(x, hi.lo, r->n), lo.lo);
    if (!to.lo)
        return sched_fail(s, r->loc, "an index passes 64 bits");
    AccessDim *d = ARENA_ARRAY(s->m->arena, AccessDim, a->rank);
    for (unsigned i = 0, k = 0; i < a->rank; i++)
        if (i != r->lo_dim)
            d[k++] = i == r->dim ? to : a->dims[i];
    a->dims = d;
    a->rank--;
    return true;
}

bool sched_mult_dim(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first;
    Value *v = alloc->results[0];
    Reshape r = { .dim = (unsigned)a[1].i,
                  .lo_dim = (unsigned)a[2].i,
                  .loc = a[0].loc };
    if (!has_dim(s, v, &a[1]) || !has_dim(s, v, &a[2]) ||
        !no_view_strides(s, v, v->type->rank, a[0].loc))
        return false;
    if (a[1].i == a[2].i || v->ring_dim == (int)a[1].i ||
        v->ring_dim == (int)a[2].i)
        return sched_fail(s, a[1].loc,
                          "expected two dimensions that are no "
                          "rings");
    if (!affine_is_const(v->shape[r.lo_dim], &r.n) || r.n < 1)
        return sched_fail(s, a[2].loc,
                          "the extent of the inner dimension is "
                          "no number");
    const Affine *e = affine_scale(s->m->exprs, v->shape[r.dim], r.n);
    if (!e || !sched_each_access(s, v, mult_access, &r))
        return e ? false : sched_fail(s, a[1].loc, "the extent passes 64 bits");
    v->shape[r.dim] = e;
    v->shape = shape_without(s, v, r.lo_dim);
    v->ring_dim -= v->ring_dim > (int)r.lo_dim;
    set_type(s, v, v->type->rank - 1, v->type->elem, v->type->mem);
    edit_replace(s->log, alloc);
    return true;
}

static bool permute_access(Sched *s, Op *op, Access *a, void *user)
{
    const Reshape *r = user;
    AccessDim *d = ARENA_ARRAY(s->m->arena, AccessDim, a->rank);
    int last = -1;
    for (unsigned i = 0; i < a->rank; i++) {
        d[i] = a->dims[r->order[i]];
        if (d[i].kind != DIM_interval)
            continue;
        if ((int)r->order[i] < last)
            return sched_fail(s, r->loc, window_turns, sched_stmt_text(s, op));
        last = (int)r->order[i];
    }
    a->dims = d;
    return true;
}

/* order: `[2, 0, 1]`, the old dimension at each new place. */
static bool read_order(Sched *s, const SchedArg *a, unsigned n, unsigned *order)
{
    bool *seen = ARENA_ARRAY(s->arena, bool, n + 1);
    const char *p = a->s;
    unsigned k = 0;
    for (; *p; p += *p != 0) {
        if (*p < '0' || *p > '9')
            continue;
        char *end;
        unsigned long at = strtoul(p, &end, 10);
        if (k >= n || at >= n || seen[at])
            break;
        seen[at] = true;
        order[k++] = (unsigned)at;
        p = end - 1;
    }
    return (k == n && !*p) ||
           sched_fail(s, a->loc, "expected a permutation of %u dimensions", n);
}

bool sched_rearrange_dim(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first;
    Value *v = alloc->results[0];
    unsigned n = v->type->rank;
    unsigned *order = ARENA_ARRAY(s->arena, unsigned, n + 1);
    Reshape r = { .order = order, .loc = a[0].loc };
    if (!read_order(s, &a[1], n, order) ||
        !no_view_strides(s, v, v->type->rank, a[0].loc) ||
        !sched_each_access(s, v, permute_access, &r))
        return false;
    const Affine **shape = ARENA_ARRAY(s->m->arena, const Affine *, n);
    int ring = -1;
    for (unsigned i = 0; i < n; i++) {
        shape[i] = v->shape[order[i]];
        if (v->ring_dim == (int)order[i])
            ring = (int)i;
    }
    v->shape = shape;
    v->ring_dim = ring;
    edit_replace(s->log, alloc);
    return true;
}

/* ---- unroll_buffer ----------------------------------------------------- */

typedef struct Parts {
    unsigned dim;
    int64_t n;
    Value **parts;
    Loc loc;
} Parts;

static bool part_access(Sched *s, Op *op, Access *a, void *user)
{
    Parts *p = user;
    int64_t at;
    if (a->dims[p->dim].kind != DIM_point ||
        !affine_is_const(a->dims[p->dim].lo, &at) || at < 0 || at >= p->n)
        return sched_fail(s, p->loc, "'%s' has no literal index there",
                          sched_stmt_text(s, op));
    AccessDim *d = ARENA_ARRAY(s->m->arena, AccessDim, a->rank);
    for (unsigned i = 0, k = 0; i < a->rank; i++)
        if (i != p->dim)
            d[k++] = a->dims[i];
    a->dims = d;
    a->rank--;
    a->base = p->parts[at];
    return true;
}

bool sched_unroll_buffer(Sched *s, const SchedArg *a)
{
    enum { MOST = 1024 };
    Op *alloc = a[0].at.first;
    Value *v = alloc->results[0];
    Parts p = { .dim = (unsigned)a[1].i, .loc = a[0].loc };
    if (!has_dim(s, v, &a[1]) ||
        !no_view_strides(s, v, v->type->rank, a[0].loc))
        return false;
    if (!affine_is_const(v->shape[p.dim], &p.n) || p.n < 1 || p.n > MOST)
        return sched_fail(s, a[1].loc, "the extent is no number up to %d",
                          MOST);
    p.parts = ARENA_ARRAY(s->arena, Value *, p.n);
    for (int64_t i = 0; i < p.n; i++) {
        Op *op = op_new(s->m, OP_mem_alloc, alloc->loc, 0, 1, 0);
        const char *name =
            arena_printf(s->arena, "%s_%lld", v->name, (long long)i);
        p.parts[i] =
            op_set_result(s->m, op, 0,
                          type_tensor(s->ctx, v->type->kind, v->type->elem,
                                      v->type->rank - 1, v->type->mem),
                          ctx_intern(s->ctx, name));
        p.parts[i]->shape = shape_without(s, v, p.dim);
        edit_insert_before(s->log, alloc, op);
    }
    if (!sched_each_access(s, v, part_access, &p))
        return false;
    edit_erase(s->log, alloc);
    s->result = 0;
    return true;
}

/* ---- delete_buffer, reuse_buffer --------------------------------------- */

bool sched_delete_buffer(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first, *use;
    if (sched_uses(s, alloc->results[0], &use))
        return sched_fail(s, a[0].loc, "it is used by '%s'",
                          sched_stmt_text(s, use));
    if (!stmt_prev(alloc) && !stmt_next(alloc))
        edit_insert_after(s->log, alloc,
                          op_new(s->m, OP_ctl_pass, alloc->loc, 0, 0, 0));
    edit_erase(s->log, alloc);
    s->result = 0;
    return true;
}

bool sched_reuse_buffer(Sched *s, const SchedArg *a)
{
    Op *kept = a[0].at.first, *gone = a[1].at.first;
    Value *v = kept->results[0], *w = gone->results[0];
    if (kept->parent != gone->parent || kept == gone)
        return sched_fail(s, a[1].loc, "expected two allocations of one block");
    bool same = v->type == w->type && v->ring_dim == w->ring_dim &&
                (v->ring_dim < 0 || v->ring_depth == w->ring_depth) &&
                v->ring_guard == w->ring_guard;
    for (unsigned i = 0; same && i < v->type->rank; i++)
        same = v->shape[i] == w->shape[i];
    if (!same)
        return sched_fail(s, a[1].loc, "type, shape, memory or ring differ");
    bool before = false;
    for (Op *op = kept->next; op; op = op->next)
        before |= op == gone;
    if (!before)
        return sched_fail(s, a[1].loc,
                          "the second allocation stands before "
                          "the first");
    for (Op *op = gone->next; op; op = op->next)
        if (op_reaches(op, v))
            return sched_fail(s, a[0].loc, "%s is still used by '%s'",
                              sched_value_name(s, v), sched_stmt_text(s, op));
    if (!no_strides(s, w, a[1].loc))
        return false;
    block_replace_value(s->proc->blocks[0], w, v);
    edit_erase(s->log, gone);
    return true;
}

/* ---- inline_window ----------------------------------------------------- */

static bool compose_access(Sched *s, Op *op, Access *a, void *user)
{
    const Op *window = user;
    const Access *w = window->operands[0].u.access;
    AccessDim *d = ARENA_ARRAY(s->m->arena, AccessDim, w->rank);
    for (unsigned i = 0, k = 0; i < w->rank; i++) {
        d[i] = w->dims[i];
        if (w->dims[i].kind != DIM_interval)
            continue;
        d[i] = a->dims[k++];
        d[i].lo = affine_add(s->m->exprs, d[i].lo, w->dims[i].lo);
        if (!d[i].lo)
            return sched_fail(s, s->loc, "an index passes 64 bits");
    }
    a->base = w->base;
    a->rank = w->rank;
    a->dims = d;
    edit_replace(s->log, op);
    return true;
}

bool sched_inline_window(Sched *s, const SchedArg *a)
{
    Op *op = a[0].at.first;
    if (op->code != OP_mem_window)
        return sched_fail(s, a[0].loc, "'%s' makes no window",
                          sched_stmt_text(s, op));
    Value *v = op->results[0];
    const Value *base = op->operands[0].u.access->base;
    bool is_map = v->type->kind == TK_map && base->type->kind != TK_map;
    if (!no_strides(s, v, a[0].loc) ||
        (is_map && !sched_guard_map(s, v, a[0].loc)) ||
        !sched_each_access(s, v, compose_access, op))
        return false;
    edit_erase(s->log, op);
    s->result = 0;
    return true;
}
