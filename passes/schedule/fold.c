/* resize_dim with fold: of a dimension of which only a window is alive at a
 * time, a ring of slots is kept.
 *
 *     for i in seq(0, n):               for i in seq(0, n):
 *         x[i + 1] = a[i]                   x[(i + 1) % 2] = a[i]
 *         b[i] = x[i] + x[i + 1]            b[i] = x[i % 2] + x[(i + 1) % 2]
 *
 * One loop holds all uses, and its trip t touches only the n indices from
 * start(t), where start never turns back. An index written in trip r and read
 * in trip t then lies in the window of every trip in between, and another
 * index of its slot is n or more away, so none of them writes that slot. */
#include "passes/schedule/ops.h"

typedef struct FoldUse {
    Op *op;
    Access *access;
} FoldUse;

typedef struct Fold {
    Sched *s;
    Op *loop;
    unsigned dim;
    int64_t n;
    const Affine *offset;
    VEC(FoldUse) uses;
    Loc loc;
} Fold;

/* ---- the loop around all uses ------------------------------------------- */

/* The only statement from op on that uses v, NULL when there are more. */
static Op *only_user(Op *op, const Value *v)
{
    Op *found = NULL;
    for (; op; op = op->next) {
        if (!op_uses_value(op, v))
            continue;
        if (found)
            return NULL;
        found = op;
    }
    return found;
}

static Op *loop_of_uses(Op *alloc)
{
    const Value *v = alloc->results[0];
    Op *op = only_user(alloc->next, v);
    while (op && op->code != OP_ctl_for) {
        Block *holds = NULL;
        for (unsigned i = 0; i < op->n_blocks; i++) {
            if (!only_user(op->blocks[i]->first, v))
                continue;
            if (holds)
                return NULL;
            holds = op->blocks[i];
        }
        op = holds ? only_user(holds->first, v) : NULL;
    }
    return op;
}

static bool note_use(Sched *s, Op *op, Access *a, void *user)
{
    Fold *fold = user;
    FoldUse use = { op, a };
    if (a->dims[fold->dim].kind != DIM_point)
        return sched_fail(s, fold->loc,
                          "'%s' takes an interval of the dimension",
                          sched_stmt_text(s, op));
    VEC_PUSH(s->arena, &fold->uses, use);
    return true;
}

/* Indices that read configuration must mean the same in every trip. */
static bool configuration_stays(Fold *fold)
{
    EffectVec e = { 0 };
    effects_of(fold->s, fold->loop, fold->loop, &e);
    for (size_t i = 0; i < e.len; i++)
        if (e.data[i].field && (e.data[i].flags & ACC_WRITE))
            return sched_fail(fold->s, fold->loc, "the loop writes %s",
                              e.data[i].field);
    return true;
}

/* ---- the window --------------------------------------------------------- */

static const Affine *index_of(const Fold *fold, const FoldUse *use)
{
    return use->access->dims[fold->dim].lo;
}

/* Does e use a variable of a loop around op within the fold's? */
static bool uses_inner(const Fold *fold, const Affine *e, const Op *op)
{
    for (const Op *o = op_parent(op); o && o != fold->loop; o = op_parent(o))
        if (o->code == OP_ctl_for && affine_uses(e, sched_loop_var(o)))
            return true;
    return false;
}

static const Cond *in_window(const Fold *fold, const Affine *e,
                             const Affine *start)
{
    ExprCtx *x = fold->s->m->exprs;
    const Affine *end = affine_add_const(x, start, fold->n);
    return cond_and(x, cond_cmp(x, CMP_le, start, e),
                    cond_cmp(x, CMP_lt, e, end));
}

/* Does start move in one direction from trip to trip? */
static bool moves_one_way(const Fold *fold, const Affine *start)
{
    Sched *s = fold->s;
    ExprCtx *x = s->m->exprs;
    VarId w;
    Facts *f = sched_facts_later(s, fold->loop, &w);
    CloneMap *map = clone_map_new(s->m, s->m);
    clone_map_index(map, sched_loop_var(fold->loop), affine_var(x, w));
    const Affine *then = clone_index(map, start);
    return sched_implied(s, f, cond_cmp(x, CMP_le, start, then)) ||
           sched_implied(s, f, cond_cmp(x, CMP_ge, start, then));
}

static bool all_in_window(const Fold *fold, const Affine *start)
{
    Sched *s = fold->s;
    for (size_t i = 0; i < fold->uses.len; i++) {
        const FoldUse *use = &fold->uses.data[i];
        Facts *f = prove_facts_at(s->arena, s->m, use->op);
        if (!sched_implied(s, f, in_window(fold, index_of(fold, use), start)))
            return false;
    }
    return true;
}

/* A window that begins at an index in use, or ends at one. */
static bool find_window(const Fold *fold)
{
    ExprCtx *x = fold->s->m->exprs;
    for (size_t i = 0; i < fold->uses.len; i++) {
        const FoldUse *use = &fold->uses.data[i];
        const Affine *e = index_of(fold, use);
        if (uses_inner(fold, e, use->op))
            continue;
        for (int64_t back = 0; back < fold->n; back += fold->n - 1) {
            const Affine *start = affine_add_const(x, e, -back);
            if (start && all_in_window(fold, start) &&
                moves_one_way(fold, start))
                return true;
            if (fold->n == 1)
                break;
        }
    }
    return sched_fail(fold->s, fold->loc,
                      "no window of %lld indices is found that holds all that "
                      "a trip of '%s' touches and moves one way: say where it "
                      "begins by start=..",
                      (long long)fold->n, sched_stmt_text(fold->s, fold->loop));
}

static bool check_window(const Fold *fold, const SchedArg *text)
{
    Sched *s = fold->s;
    Op *first = block_first_stmt(fold->loop->blocks[0]);
    const Affine *start = sched_index(s, first, text->loc, text->s);
    if (!start)
        return false;
    for (size_t i = 0; i < fold->uses.len; i++) {
        const FoldUse *use = &fold->uses.data[i];
        Facts *f = prove_facts_at(s->arena, s->m, use->op);
        if (!sched_prove(s, f, in_window(fold, index_of(fold, use), start),
                         text->loc, "'%s' may leave the window of %lld from %s",
                         sched_stmt_text(s, use->op), (long long)fold->n,
                         sched_index_text(s, start)))
            return false;
    }
    return moves_one_way(fold, start) ||
           sched_fail(s, text->loc, "the window may turn back: its start is %s",
                      sched_index_text(s, start));
}

bool sched_fold_dim(Sched *s, Op *alloc, unsigned dim, const SchedArg *extent,
                    const Affine *size, const Affine *offset,
                    const SchedArg *start)
{
    ExprCtx *x = s->m->exprs;
    Value *v = alloc->results[0];
    Fold fold = { .s = s, .dim = dim, .offset = offset, .loc = extent->loc };
    if (!affine_is_const(size, &fold.n) || fold.n < 1)
        return sched_fail(s, extent->loc,
                          "a fold is into a positive number of slots");
    if (v->ring_dim == (int)dim)
        return sched_fail(s, extent->loc, "the dimension is a ring");
    fold.loop = loop_of_uses(alloc);
    if (!fold.loop)
        return sched_fail(s, extent->loc, "%s is not used in one loop alone",
                          sched_value_name(s, v));
    if (!sched_each_access(s, v, note_use, &fold) ||
        !configuration_stays(&fold) ||
        !(start->given ? check_window(&fold, start) : find_window(&fold)))
        return false;
    for (size_t i = 0; i < fold.uses.len; i++) {
        AccessDim *d = &fold.uses.data[i].access->dims[dim];
        d->lo = affine_mod(x, affine_sub(x, d->lo, offset), fold.n);
        if (!d->lo)
            return sched_fail(s, extent->loc, "an index passes 64 bits");
    }
    v->shape[dim] = size;
    edit_replace(s->log, alloc);
    return true;
}
