/* Rings: logical positions become carried slot-and-parity values.
 *
 * A ring dimension of logical extent E, of which the first P count as arrived,
 * uses E - P positions of its hardware ring in each task, so that a task's
 * element e stands at position base + e - P, base being carried across tasks.
 * Rings of one depth and one consumption share a base: they form a group.
 *
 * While a role is emitted there is a list of cursors, ring values that stand
 * at a known logical position. A position is named as a cursor and a constant
 * distance; a loop whose iterator moves a position carries a cursor along, from
 * where that position is as the loop begins, so that the slot is a counter and
 * no division is needed. Where no cursor is at
 * a constant distance one is made by advancing the task's base. */
#include "passes/lower/lower.h"

#include <string.h>

int64_t ring_pre_arrive(Lower *L, const Value *v)
{
    const Mem *mem = lower_mem(L, v);
    return mem && mem->barrier == BARRIER_mbarrier ? mem->pre_arrive : 0;
}

static const Affine *consumption(Lower *L, const Value *v)
{
    return affine_add_const(L->m->exprs, v->shape[v->ring_dim],
                            -ring_pre_arrive(L, v));
}

int ring_group(Lower *L, const Value *v)
{
    if (v->ring_dim < 0)
        return -1;
    const Affine *per_task = consumption(L, v);
    for (size_t g = 0; g < L->groups.len; g++)
        if (L->groups.data[g].depth == v->ring_depth &&
            L->groups.data[g].per_task == per_task)
            return (int)g;
    return -1;
}

static bool collect_ring(Op *op, void *user)
{
    Lower *L = user;
    if (op->code != OP_mem_alloc)
        return true;
    const Value *v = op->results[0];
    if (v->ring_dim < 0 || ring_group(L, v) >= 0)
        return true;
    for (Op *outer = op_parent(op); outer && outer != L->dev->op;
         outer = op_parent(outer))
        if (outer->code == OP_ctl_for &&
            !strcmp(op_attr_str(outer, "mode", "seq"), "seq")) {
            Diag *d = lower_error(
                L, op->loc, "ring-scope",
                "ring '%s' is allocated inside a sequential loop, where its "
                "phases would start again in each iteration",
                v->name);
            diag_fix(L->ctx, d,
                     "allocate it outside of the loop, in the "
                     "task's body");
        }
    RingGroup g = { v->ring_depth, consumption(L, v), false };
    VEC_PUSH(L->scratch, &L->groups, g);
    return true;
}

void ring_collect(Lower *L)
{
    op_walk(L->dev->op, collect_ring, L);
}

static void mark_used(Lower *L, Op *op, const OpAccess *a, void *user)
{
    (void)op, (void)user;
    int g = ring_group(L, value_root(a->access->base));
    if (g >= 0)
        L->groups.data[g].used = true;
}

void ring_mark_used(Lower *L)
{
    for (size_t g = 0; g < L->groups.len; g++)
        L->groups.data[g].used = false;
    role_walk_accesses(L, L->dev->body, mark_used, NULL);
}

typedef struct Moves {
    Op *loop;
    const Affine **from;
} Moves;

typedef struct Definition {
    const Affine *in;
    bool found;
} Definition;

static bool find_definition(Op *op, void *user)
{
    Definition *d = user;
    for (unsigned i = 0; i < op->n_blocks; i++)
        for (unsigned j = 0; j < op->blocks[i]->n_args; j++)
            if (affine_uses(d->in, op->blocks[i]->args[j].var))
                d->found = true;
    return !d->found;
}

/* Where position `at` stands as the loop's iterator is 0: what it has beside
 * the iterator and a constant, or 0 where that changes in the loop's body or
 * is another in each lane. */
static const Affine *starts_at(Lower *L, Op *loop, const Affine *at)
{
    ExprCtx *x = L->m->exprs;
    const Affine *iter = affine_var(x, loop->blocks[0]->args[0].var);
    const Affine *rest = affine_sub(x, at, iter);
    rest = affine_add_const(x, rest, -rest->constant);
    Definition d = { rest, false };
    op_walk(loop, find_definition, &d);
    if (!d.found)
        rest = lower_index(L, rest);
    return d.found || affine_uses(rest, L->dev->lane) ? affine_const(x, 0)
                                                      : rest;
}

static void mark_moving(Lower *L, Op *op, const OpAccess *a, void *user)
{
    (void)op;
    const Moves *m = user;
    const Access *at = access_compose(L->m, a->access);
    int g = ring_group(L, at->base);
    if (g < 0)
        return;
    const Affine *e = at->dims[at->base->ring_dim].lo;
    if (affine_coef(e, m->loop->blocks[0]->args[0].var) == 1 && !m->from[g])
        m->from[g] = starts_at(L, m->loop, e);
}

void ring_loop_groups(Lower *L, Op *loop, const Affine **from)
{
    Moves m = { loop, from };
    for (size_t g = 0; g < L->groups.len; g++)
        from[g] = NULL;
    role_walk_accesses(L, loop->blocks[0], mark_moving, &m);
}

Value *ring_advance(Lower *L, Value *ring, const Affine *by)
{
    int64_t n;
    if (affine_is_const(by, &n) && n == 0)
        return ring;
    Op *op = lower_emit(L, OP_async_ring_advance, 2, 1, 0);
    op->operands[0] = opnd_value(ring);
    op->operands[1] = opnd_index(by);
    return op_set_result(L->m, op, 0, ring->type, "ring");
}

/* The innermost cursor at a constant distance from `at`, or the first of the
 * group (the task's base) when there is none. */
static const RingCursor *nearest(Lower *L, unsigned group, const Affine *at,
                                 int64_t *delta)
{
    const RingCursor *base = NULL;
    for (size_t i = L->cursors.len; i-- > 0;) {
        const RingCursor *c = &L->cursors.data[i];
        if (c->group != group)
            continue;
        if (affine_is_const(affine_sub(L->m->exprs, at, c->at), delta))
            return c;
        base = c;
    }
    if (!base)
        panic("ring group %u has no cursor", group);
    *delta = 0;
    return base;
}

/* A cursor at a constant distance from `at`; made when there is none. */
static RingCursor cursor_near(Lower *L, unsigned group, const Affine *at,
                              int64_t *delta)
{
    ExprCtx *x = L->m->exprs;
    const RingCursor *c = nearest(L, group, at, delta);
    const Affine *off = affine_sub(x, at, c->at);
    if (affine_is_const(off, delta))
        return *c;
    const Affine *round = affine_add_const(x, at, -at->constant);
    Value *ring = ring_advance(L, c->ring, affine_sub(x, round, c->at));
    RingCursor made = { group, round, ring };
    VEC_PUSH(L->scratch, &L->cursors, made);
    *delta = at->constant;
    return made;
}

Value *ring_at(Lower *L, unsigned group, const Affine *at)
{
    int64_t delta;
    RingCursor c = cursor_near(L, group, at, &delta);
    return ring_advance(L, c.ring, affine_const(L->m->exprs, delta));
}

AccessDim ring_dim(Lower *L, const Value *v, const Affine *e)
{
    int g = ring_group(L, v);
    if (g < 0)
        panic("ring of '%s' is in no group", v->name);
    const Affine *at = affine_add_const(L->m->exprs, lower_index(L, e),
                                        -ring_pre_arrive(L, v));
    int64_t delta;
    RingCursor c = cursor_near(L, (unsigned)g, at, &delta);
    if (LOWER_WRONG(L, "slot") && v->type->kind == TK_tensor && L->role->lo > 0)
        delta++;
    return (AccessDim){ .kind = DIM_ring, .ring = c.ring, .delta = delta };
}
