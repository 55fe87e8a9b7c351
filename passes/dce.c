/* dce: erases what has no effect.
 *
 *     %a = mem.load %x[%i]          no use of %a: erased
 *     %t = mem.alloc : ..           only stored to: the stores and it erased
 *
 * Uses are counted over the module; blocks are then walked from their ends, so
 * that what only served an erased op goes in the same walk. Tensors that are
 * only written may become so by that: the passes repeat until nothing goes. */
#include "passes/pass.h"

typedef struct Dce {
    PassCtx *pc;
    unsigned *uses;  /* of each value, by id */
    unsigned *reads; /* uses other than as the target of a store */
    int64_t erased;
    int sign; /* while counting: +1, or -1 for an op that goes */
} Dce;

/* ---- counting ------------------------------------------------------------ */

static void count_value(Dce *d, const Value *v, bool reads)
{
    if (!v)
        return;
    d->uses[v->id] += (unsigned)d->sign;
    if (reads)
        d->reads[v->id] += (unsigned)d->sign;
}

static void count_index(Dce *d, const Affine *e);

static void count_atom(Dce *d, const Atom *a)
{
    if (a->kind == ATOM_floordiv || a->kind == ATOM_mod) {
        count_index(d, a->arg);
    } else if (a->kind == ATOM_opaque && a->opaque == OPAQUE_stride) {
        count_value(d, a->ref, true);
    } else if (a->kind == ATOM_opaque && a->opaque == OPAQUE_product) {
        count_index(d, a->lhs);
        count_index(d, a->rhs);
    }
}

static void count_index(Dce *d, const Affine *e)
{
    for (uint32_t i = 0; e && i < e->n_terms; i++)
        count_atom(d, e->terms[i].atom);
}

static void count_cond(Dce *d, const Cond *c)
{
    if (!c)
        return;
    count_index(d, c->expr);
    count_cond(d, c->lhs);
    count_cond(d, c->rhs);
}

static void count_access(Dce *d, const Access *a, bool reads)
{
    count_value(d, a->base, reads);
    for (unsigned i = 0; i < a->rank; i++) {
        count_value(d, a->dims[i].ring, true);
        count_index(d, a->dims[i].lo);
        count_index(d, a->dims[i].len);
    }
}

static bool is_store(const Op *op)
{
    return op->code == OP_mem_store || op->code == OP_mem_reduce;
}

static void count_operand(Dce *d, const Op *op, unsigned i)
{
    const Operand *o = &op->operands[i];
    switch (o->kind) {
    case OPND_value:
        count_value(d, o->u.value, true);
        return;
    case OPND_access:
        count_access(d, o->u.access, !(is_store(op) && i == 0));
        return;
    case OPND_index:
        count_index(d, o->u.index);
        return;
    case OPND_cond:
        count_cond(d, o->u.cond);
    }
}

static void count_shape(Dce *d, const Value *v)
{
    count_value(d, v->ring_guard, true);
    for (unsigned i = 0; i < v->type->rank; i++)
        count_index(d, v->shape[i]);
}

/* All that one op refers to, not what is below it. */
static void count_op(Dce *d, const Op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++)
        count_operand(d, op, i);
    for (unsigned i = 0; i < op->n_attrs; i++) {
        count_index(d, op->attrs[i].index);
        for (unsigned k = 0; k < op->attrs[i].n; k++)
            count_index(d, op->attrs[i].indices[k]);
    }
    for (unsigned i = 0; i < op->origin.n; i++)
        count_index(d, op->origin.iters[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        count_shape(d, op->results[i]);
    for (unsigned i = 0; i < op->n_blocks; i++)
        for (unsigned k = 0; k < op->blocks[i]->n_args; k++)
            if (op->blocks[i]->args[k].value)
                count_shape(d, op->blocks[i]->args[k].value);
}

static bool count_walk(Op *op, void *user)
{
    count_op(user, op);
    return true;
}

/* ---- erasing ------------------------------------------------------------- */

static void erase(Dce *d, Op *op)
{
    d->sign = -1;
    count_op(d, op);
    d->sign = 1;
    op_detach(op);
    d->erased++;
}

static bool has_no_effect(const Op *op)
{
    switch (op->code) {
    case OP_mem_load:
    case OP_mem_window:
    case OP_mem_alloc:
    case OP_cfg_read:
        return true;
    default:
        return op_has(op, OPT_PURE);
    }
}

static bool results_unused(const Dce *d, const Op *op)
{
    for (unsigned i = 0; i < op->n_results; i++)
        if (d->uses[op->results[i]->id])
            return false;
    return true;
}

/* Is it a store to a tensor of this module's making that nobody reads? */
static bool stores_to_nobody(const Dce *d, const Op *op)
{
    if (!is_store(op))
        return false;
    const Value *v = op->operands[0].u.access->base;
    return v->def && v->def->code == OP_mem_alloc && !d->reads[v->id];
}

static void dce_block(Dce *d, Block *b)
{
    for (Op *op = b->last, *prev; op; op = prev) {
        prev = op->prev;
        for (unsigned i = op->n_blocks; i-- > 0;)
            dce_block(d, op->blocks[i]);
        if (stores_to_nobody(d, op) ||
            (has_no_effect(op) && results_unused(d, op)))
            erase(d, op);
    }
}

bool pass_dce(PassCtx *pc, Module *m)
{
    Dce d = { .pc = pc, .sign = 1 };
    d.uses = ARENA_ARRAY(pc->scratch, unsigned, m->next_value);
    d.reads = ARENA_ARRAY(pc->scratch, unsigned, m->next_value);
    block_walk(m->body, count_walk, &d);
    int64_t before;
    do {
        before = d.erased;
        dce_block(&d, m->body);
    } while (d.erased > before);
    pass_count(pc, "ops erased", d.erased);
    return true;
}
