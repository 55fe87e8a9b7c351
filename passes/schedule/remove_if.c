/* remove_if: a guard that changes nothing is dropped.
 *
 *     if m < M: c_map[m, n] = v          c_map[m, n] = v
 *
 * Where the condition does not hold, the body must do nothing, and may. It does
 * nothing when each of its writes is to memory of its own, or to a tensor map
 * outside its tensor (nothing is written there), or adds a product whose
 * factors are read from tensor maps outside theirs (they are zero there). It
 * may when every other access stays within its tensor, and what is read, or
 * what a sum adds to, has been set before. */
#include "passes/schedule/ops.h"

typedef struct Guard {
    Sched *s;
    Op *op;
    Facts *off; /* what holds where the body would not have run */
    Loc loc;
    bool failed;
} Guard;

/* Is the access beyond the base's extents whenever the facts hold? */
static const Cond *outside(Sched *s, const Access *a)
{
    ExprCtx *x = s->m->exprs;
    const Affine *zero = affine_const(x, 0), *one = affine_const(x, 1);
    const Cond *any = cond_bool(x, false);
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        const Affine *len = d->kind == DIM_point ? one : d->len;
        any = cond_or(x, any, cond_cmp(x, CMP_ge, d->lo, a->base->shape[i]));
        any = cond_or(x, any,
                      cond_cmp(x, CMP_le, affine_add(x, d->lo, len), zero));
    }
    return any;
}

static const Cond *inside(Sched *s, const Access *a)
{
    ExprCtx *x = s->m->exprs;
    const Affine *zero = affine_const(x, 0), *one = affine_const(x, 1);
    const Cond *all = cond_bool(x, true);
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        const Affine *len = d->kind == DIM_point ? one : d->len;
        all = cond_and(x, all, cond_cmp(x, CMP_ge, d->lo, zero));
        all = cond_and(
            x, all,
            cond_cmp(x, CMP_le, affine_add(x, d->lo, len), a->base->shape[i]));
    }
    return all;
}

static Facts *with(Guard *g, const Cond *when)
{
    Facts *f = facts_copy(g->s->arena, g->off);
    facts_assume(f, when);
    return f;
}

static bool is_map(const Access *a)
{
    return a->base->type->kind == TK_map;
}

/* Zero of a zero: casts, and the rounding of tf32. */
static bool keeps_zero(const Op *op)
{
    return op->code == OP_arith_cast || op_has(op, OPT_TF32);
}

/* A value that is zero: read from a map outside its tensor, through ops that
 * keep zero. */
static bool is_zero(Guard *g, const Facts *f, const Value *v)
{
    const Op *op = v->def;
    while (op && keeps_zero(op))
        op = op->operands[0].u.value->def;
    if (!op || op->code != OP_mem_load)
        return false;
    const Access *a = access_compose(g->s->m, op->operands[0].u.access);
    return is_map(a) && sched_implied(g->s, f, outside(g->s, a));
}

/* Both factors are zero, so that the product is, whatever they would be. */
static bool adds_zero(Guard *g, const Facts *f, const Op *op)
{
    const Op *def;
    if (op->code != OP_mem_reduce)
        return false;
    if (op->n_operands == 3)
        return is_zero(g, f, op->operands[1].u.value) &&
               is_zero(g, f, op->operands[2].u.value);
    def = op->operands[1].u.value->def;
    while (def && def->code == OP_arith_cast)
        def = def->operands[0].u.value->def;
    if (def && def->code == OP_arith_mul)
        return is_zero(g, f, def->operands[0].u.value) &&
               is_zero(g, f, def->operands[1].u.value);
    return is_zero(g, f, op->operands[1].u.value);
}

/* Was this element set by a statement before, in this or an outer block? */
static bool was_set(Guard *g, const Access *a)
{
    if (!a->base->def || a->base->def->code != OP_mem_alloc)
        return true;
    for (Op *o = g->op; o; o = op_parent(o))
        for (const Op *p = o->prev; p; p = p->prev) {
            if (p->code != OP_mem_store)
                continue;
            const Access *w = p->operands[0].u.access;
            bool same = w->base == a->base;
            for (unsigned i = 0; same && i < a->rank; i++)
                same = a->dims[i].kind == DIM_point &&
                       w->dims[i].lo == a->dims[i].lo;
            if (same)
                return true;
        }
    return false;
}

static bool check_write(Guard *g, const Effect *e)
{
    Sched *s = g->s;
    Facts *f = with(g, e->when);
    const char *text = sched_stmt_text(s, e->op);
    if (e->field)
        return sched_fail(s, g->loc, "'%s' writes %s", text, e->field);
    if (e->own)
        return true;
    if (adds_zero(g, f, e->op))
        return was_set(g, e->access) ||
               sched_fail(s, g->loc, "'%s' may add to what was never written",
                          text);
    if (!is_map(e->access))
        return sched_fail(s, g->loc,
                          "'%s' writes %s, which is no tensor map, where the "
                          "condition does not hold",
                          text, sched_value_name(s, e->access->base));
    return sched_prove(s, f, outside(s, e->access), g->loc,
                       "'%s' may write within the tensor where the condition "
                       "does not hold",
                       text);
}

static bool check_effect(Guard *g, const Effect *e)
{
    Sched *s = g->s;
    if ((e->flags & ACC_WRITE) && !check_write(g, e))
        return false;
    if (e->field || is_map(e->access))
        return true;
    if (!e->own && !(e->flags & ACC_WRITE) && !was_set(g, e->access))
        return sched_fail(s, g->loc,
                          "'%s' may read %s, which was never written, where "
                          "the condition does not hold",
                          sched_stmt_text(s, e->op),
                          sched_value_name(s, e->access->base));
    return sched_prove(s, with(g, e->when), inside(s, e->access), g->loc,
                       "'%s' may leave the bounds of %s where the condition "
                       "does not hold",
                       sched_stmt_text(s, e->op),
                       sched_value_name(s, e->access->base));
}

/* May what the body allocates be allocated where it would not have run? What
 * loops inside say of an extent is not looked at. */
static bool check_alloc(Op *op, void *user)
{
    Guard *g = user;
    const Value *v = op->code == OP_mem_alloc ? op->results[0] : NULL;
    const Affine *e =
        v && !g->failed ? sched_negative_extent(g->s, g->off, v) : NULL;
    if (e)
        g->failed =
            !sched_fail(g->s, g->loc,
                        "the extent %s of %s may be negative where the "
                        "condition does not hold",
                        sched_index_text(g->s, e), sched_value_name(g->s, v));
    return !g->failed;
}

static bool find_call(Op *op, void *user)
{
    if (op->code == OP_ctl_call || op->code == OP_par_device)
        *(Op **)user = op;
    return true;
}

bool sched_remove_if(Sched *s, const SchedArg *a)
{
    Op *op = a[0].at.first, *call = NULL;
    Guard g = { s, op, prove_facts_at(s->arena, s->m, op), a[0].loc, false };
    const Cond *c = op->operands[0].u.cond;
    if (op->n_blocks > 1)
        return sched_fail(s, a[0].loc, "the if has an else");
    op_walk(op, find_call, &call);
    if (call)
        return sched_fail(s, a[0].loc, "'%s' is under the condition",
                          sched_stmt_text(s, call));
    bool always = sched_implied(s, g.off, c);
    EffectVec e = { 0 };
    facts_assume(g.off, cond_not(s->m->exprs, c));
    effects_all(s, block_first_stmt(op->blocks[0]),
                block_last_stmt(op->blocks[0]), &e);
    for (size_t i = 0; i < e.len && !always; i++)
        if (!check_effect(&g, &e.data[i]))
            return false;
    if (!always)
        block_walk(op->blocks[0], check_alloc, &g);
    if (g.failed)
        return false;
    edit_unwrap(s->log, op, op->blocks[0]);
    s->result = 0;
    return true;
}
