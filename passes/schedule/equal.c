/* When two blocks say the same. */
#include "passes/schedule/ops.h"

typedef struct Compare {
    Sched *s;
    const Facts *f;
    CloneMap *map; /* of b's names to a's */
} Compare;

bool loop_modes_equal(const Op *a, const Op *b)
{
    if (a->n_attrs != b->n_attrs)
        return false;
    for (unsigned i = 0; i < a->n_attrs; i++) {
        const Attr *x = &a->attrs[i], *y = op_attr(b, x->key);
        if (!y || x->kind != y->kind || x->param != y->param ||
            x->mem != y->mem || x->unit != y->unit)
            return false;
    }
    return true;
}

static bool index_equal(Compare *c, const Affine *a, const Affine *b)
{
    if (!a || !b)
        return a == b;
    b = clone_index(c->map, b);
    return a == b || affine_equal(c->s->prover, c->f, a, b).answer == PROVE_yes;
}

static bool access_equal(Compare *c, const Access *a, const Access *b)
{
    bool same = a->base == clone_map_get(c->map, b->base) && a->rank == b->rank;
    for (unsigned i = 0; same && i < a->rank; i++)
        same = a->dims[i].kind == b->dims[i].kind &&
               index_equal(c, a->dims[i].lo, b->dims[i].lo) &&
               index_equal(c, a->dims[i].len, b->dims[i].len);
    return same;
}

static bool operand_equal(Compare *c, const Operand *a, const Operand *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case OPND_value:
        return a->u.value == clone_map_get(c->map, b->u.value);
    case OPND_access:
        return access_equal(c, a->u.access, b->u.access);
    case OPND_index:
        return index_equal(c, a->u.index, b->u.index);
    default:
        return a->u.cond == clone_cond(c->map, b->u.cond);
    }
}

static bool op_equal(Compare *c, const Op *a, const Op *b);

static bool block_equal(Compare *c, const Block *a, const Block *b)
{
    if (a->n_args != b->n_args)
        return false;
    ExprCtx *x = c->s->m->exprs;
    for (unsigned i = 0; i < a->n_args; i++) {
        if (!a->args[i].value != !b->args[i].value)
            return false;
        const Value *v = a->args[i].value;
        for (unsigned k = 0; v && k < v->type->rank; k++)
            if (!index_equal(c, v->shape[k], b->args[i].value->shape[k]))
                return false;
        if (v)
            clone_map_value(c->map, b->args[i].value, a->args[i].value);
        else if (a->args[i].var != b->args[i].var)
            clone_map_index(c->map, b->args[i].var,
                            affine_var(x, a->args[i].var));
    }
    const Op *p = a->first, *q = b->first;
    for (; p && q; p = p->next, q = q->next)
        if (!op_equal(c, p, q))
            return false;
    return !p && !q;
}

static bool op_equal(Compare *c, const Op *a, const Op *b)
{
    if (a->code != b->code || a->n_operands != b->n_operands ||
        a->n_results != b->n_results || a->n_blocks != b->n_blocks ||
        !loop_modes_equal(a, b))
        return false;
    for (unsigned i = 0; i < a->n_operands; i++)
        if (!operand_equal(c, &a->operands[i], &b->operands[i]))
            return false;
    for (unsigned i = 0; i < a->n_results; i++) {
        const Value *v = a->results[i], *w = b->results[i];
        if (v->type != w->type || v->ring_dim != w->ring_dim)
            return false;
        for (unsigned k = 0; v->shape && k < v->type->rank; k++)
            if (!index_equal(c, v->shape[k], w->shape[k]))
                return false;
        clone_map_value(c->map, w, a->results[i]);
    }
    for (unsigned i = 0; i < a->n_blocks; i++)
        if (!block_equal(c, a->blocks[i], b->blocks[i]))
            return false;
    return true;
}

/* A loop's own variables are compared by place, so the caller has put one
 * variable in both bodies. */
bool sched_blocks_equal(Sched *s, const Facts *f, const Block *a,
                        const Block *b)
{
    Compare c = { s, f, clone_map_new(s->m, s->m) };
    const Op *p = a->first, *q = b->first;
    for (; p && q; p = p->next, q = q->next)
        if (!op_equal(&c, p, q))
            return false;
    return !p && !q;
}

bool sched_procs_equal(Sched *s, Op *a, Op *b)
{
    const Block *p = a->blocks[0], *q = b->blocks[0];
    Compare c = { s, facts_new(s->arena, s->m->exprs),
                  clone_map_new(s->m, s->m) };
    if (p->n_args != q->n_args)
        return false;
    for (unsigned i = 0; i < p->n_args; i++) {
        const Value *v = p->args[i].value, *w = q->args[i].value;
        ExprCtx *x = s->m->exprs;
        if (!v != !w || (v && v->type != w->type))
            return false;
        if (!v && var_get(x, p->args[i].var)->kind !=
                      var_get(x, q->args[i].var)->kind)
            return false;
    }
    return block_equal(&c, p, q);
}

bool sched_escapes(Sched *s, Op *first, Op *last)
{
    (void)s;
    for (Op *op = stmt_first(first); op; op = op == last ? NULL : op->next)
        for (unsigned i = 0; i < op->n_results; i++)
            for (Op *use = last->next; use; use = use->next)
                if (op_uses_value(use, op->results[i]))
                    return true;
    return false;
}
