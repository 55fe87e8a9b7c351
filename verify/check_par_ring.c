/* How managed rings are indexed: by a point, which is the same for all lanes
 * of a warp that execute the statement together. A warp has one slot and one
 * parity of a ring, carried from statement to statement; lanes that stood at
 * different positions would have none in common. The index is written over the
 * coordinates of a thread, once for each of two lanes, and the prover is asked
 * whether both are equal wherever both lanes execute the statement
 * (docs/checks.md, "Barriers"). */
#include "passes/prove.h"
#include "verify/check_par_internal.h"

#include <string.h>

/* Iterators of the loops around a statement, over warp and lane. */
typedef struct LaneView {
    ParCheck *c;
    VarId lane, other; /* the coordinate, and that of a second lane */
    VEC(VarId) vars;
    VEC(const Affine *) values;
    const Op *by; /* the innermost loop whose iterator speaks of lanes */
} LaneView;

static Subst subst_of(const LaneView *v)
{
    return (Subst){ .n = (unsigned)v->vars.len,
                    .var = v->vars.data,
                    .to = v->values.data };
}

static const Affine *in_lanes(const LaneView *v, const Affine *e)
{
    Subst s = subst_of(v);
    return affine_subst(v->c->m->exprs, e, &s);
}

/* The iterator of one loop for the executing thread; NULL: the same for all
 * lanes. A sequential loop that begins at another value in each lane takes
 * its steps together. */
static const Affine *loop_value(const LaneView *v, const Op *loop)
{
    const Affine *value = par_iter(v->c->pi, loop);
    if (value || strcmp(op_attr_str(loop, "mode", "seq"), "seq"))
        return value;
    ExprCtx *x = v->c->m->exprs;
    const Affine *lo = in_lanes(v, loop->operands[0].u.index);
    if (!lo || !affine_uses(lo, v->lane))
        return NULL;
    VarId step = var_new(x, "step", VAR_iter);
    var_set_bounds(x, step, affine_const(x, 0), NULL);
    return affine_add(x, lo, affine_var(x, step));
}

/* Outermost first: the bounds of a loop name the iterators around it. */
static void view_loops(LaneView *v, const Op *op)
{
    if (!op || op->code == OP_par_device)
        return;
    view_loops(v, op_parent(op));
    if (op->code != OP_ctl_for)
        return;
    const Affine *value = loop_value(v, op);
    if (!value)
        return;
    VEC_PUSH(v->c->m->arena, &v->vars, op->blocks[0]->args[0].var);
    VEC_PUSH(v->c->m->arena, &v->values, value);
    if (affine_uses(value, v->lane))
        v->by = op;
}

/* Adds what holds of the thread at the statement, for both lanes. */
static Facts *facts_of_both(const LaneView *v, Op *op, const Subst *second)
{
    ParCheck *c = v->c;
    Facts *at = prove_facts_at(c->m->arena, c->m, op);
    Facts *both = facts_copy(c->m->arena, at);
    both->conds.len = 0;
    const ThreadSet *t = par_threads(c->pi, op);
    if (t)
        VEC_PUSH(c->m->arena, &at->conds, t->guard);
    Subst s = subst_of(v);
    for (size_t i = 0; i < at->conds.len; i++) {
        const Cond *one = cond_subst(c->m->exprs, at->conds.data[i], &s);
        facts_assume(both, one);
        facts_assume(both, cond_subst(c->m->exprs, one, second));
    }
    return both;
}

static void report(const LaneView *v, const Op *op, const Access *a)
{
    ParCheck *c = v->c;
    const Value *ring = a->base;
    const char *name = par_text_value(ring);
    Diag *d = pc_error(c, op, "ring",
                       "%s: idx[%d], on the managed ring buffer dimension of "
                       "%s, differs between the lanes of a warp; a warp has "
                       "one position in a ring",
                       par_text_access(c->m, a), ring->ring_dim, name);
    if (v->by)
        diag_note(c->ctx, d, v->by->loc, "lanes differ by %s",
                  par_text_loop(c->m, v->by));
    if (ring->def && ring->def->code == OP_mem_alloc)
        diag_note(c->ctx, d, ring->def->loc, "%s, a ring of %lld slots", name,
                  (long long)ring->ring_depth);
    diag_fix(c->ctx, d,
             "index by threads a dimension of its own, before or behind the "
             "ring's");
}

/* Is the index the same for all lanes that execute op? */
static void check_lanes(ParCheck *c, Op *op, const Access *a)
{
    const ParDevice *dev = par_device(c->pi, op);
    if (!dev)
        return;
    LaneView v = { .c = c, .lane = dev->lane };
    view_loops(&v, op_parent(op));
    const Affine *one = in_lanes(&v, a->dims[a->base->ring_dim].lo);
    if (!v.by || !one || !affine_uses(one, v.lane))
        return;
    ExprCtx *x = c->m->exprs;
    const Var *lane = var_get(x, v.lane);
    v.other = var_new(x, "lane", VAR_coord);
    var_set_bounds(x, v.other, lane->lo, lane->hi);
    const Affine *to = affine_var(x, v.other);
    Subst second = { .n = 1, .var = &v.lane, .to = &to };
    Proof p =
        affine_equal(prover_layer1(c->m->arena), facts_of_both(&v, op, &second),
                     one, affine_subst(x, one, &second));
    if (p.answer != PROVE_yes)
        report(&v, op, a);
}

static bool check_op(Op *op, void *user)
{
    ParCheck *c = user;
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (op->operands[i].kind != OPND_access)
            continue;
        const Access *a = access_compose(c->m, op->operands[i].u.access);
        int ring = a->base->ring_dim;
        if (ring < 0)
            continue;
        if (a->dims[ring].kind == DIM_point) {
            check_lanes(c, op, a);
        } else if (op_has(op, OPT_STMT)) {
            Diag *d = pc_error(c, op, "ring",
                               "%s cannot have interval idx[%d] on managed "
                               "ring buffer dimension",
                               par_text_access(c->m, a), ring);
            diag_fix(c->ctx, d, "index it by a point");
        }
    }
    return true;
}

void check_par_rings(ParCheck *c)
{
    op_walk(c->proc, check_op, c);
}
