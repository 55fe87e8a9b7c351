/* Every load, store and reduce, and every window, is within the tensor at its
 * root; extents are positive. A read of a tensor map may run out of bounds: it
 * gives zero there. */
#include "verify/check_seq_internal.h"

static bool is_spared(const BoundsScope *s, Value *root)
{
    for (unsigned i = 0; i < s->n_spared; i++)
        if (s->spared[i] == root)
            return true;
    return false;
}

/* Facts at op, with those that only the scope knows. */
static Facts *facts_at(SeqCheck *c, Op *op, const BoundsScope *s)
{
    Facts *f = prove_facts_at(c->m->arena, c->m, op);
    for (size_t i = 0; s->extra && i < s->extra->conds.len; i++)
        facts_assume(f, s->extra->conds.data[i]);
    return f;
}

static const char *call_suffix(SeqCheck *c, const BoundsScope *s)
{
    return s->in_call
               ? arena_printf(c->m->arena, " (in call to %s)", s->in_call)
               : "";
}

static void check_dim(SeqCheck *c, const Op *at, const Facts *f,
                      const Access *a, unsigned i, const char *suffix)
{
    ExprCtx *x = c->m->exprs;
    const AccessDim *d = &a->dims[i];
    const Affine *len = d->kind == DIM_interval ? d->len : affine_const(x, 1);
    Proof p = prove_within(c->prover, f, d->lo, len, a->base->shape[i]);
    if (p.answer == PROVE_yes)
        return;
    sc_answer(c, at, &p, "bounds",
              arena_printf(c->m->arena,
                           "%s is out of bounds: idx[%u] must be "
                           "within 0 and %s%s",
                           par_text_access(c->m, a), i,
                           par_text_affine(c->m, a->base->shape[i]), suffix));
}

static void check_access(SeqCheck *c, Op *op, const Access *access,
                         const BoundsScope *s)
{
    const Access *a = access_compose(c->m, access);
    if (a->base->type->kind == TK_map || is_spared(s, a->base) || !a->rank)
        return;
    Facts *f = facts_at(c, op, s);
    for (unsigned i = 0; i < a->rank; i++)
        check_dim(c, s->at ? s->at : op, f, a, i, call_suffix(c, s));
}

static void check_positive(SeqCheck *c, Op *op, const Value *v,
                           const BoundsScope *s)
{
    Facts *f = NULL;
    for (unsigned i = 0; i < v->type->rank; i++) {
        int64_t n;
        if (affine_is_const(v->shape[i], &n) && n > 0)
            continue;
        f = f ? f : facts_at(c, op, s);
        sc_require(c, s->at ? s->at : op, f,
                   cond_cmp(c->m->exprs, CMP_gt, v->shape[i],
                            affine_const(c->m->exprs, 0)),
                   "size", "extent %s of %s must be positive%s",
                   par_text_affine(c->m, v->shape[i]), par_text_value(v),
                   call_suffix(c, s));
    }
}

typedef struct BoundsWalk {
    SeqCheck *c;
    const BoundsScope *scope;
} BoundsWalk;

static bool check_op(Op *op, void *user)
{
    BoundsWalk *w = user;
    switch (op->code) {
    case OP_mem_load:
    case OP_mem_store:
    case OP_mem_reduce:
        check_access(w->c, op, op->operands[0].u.access, w->scope);
        break;
    case OP_mem_window: /* not one that stands for an argument */
        if (w->scope->in_call && op->results[0]->type->kind != TK_map)
            break;
        check_access(w->c, op, op->operands[0].u.access, w->scope);
        check_positive(w->c, op, op->results[0], w->scope);
        break;
    case OP_mem_alloc:
        check_positive(w->c, op, op->results[0], w->scope);
        break;
    default:
        break;
    }
    return true;
}

/* Extents of parameters are sizes or sums of them. */
static void check_params(SeqCheck *c, Op *proc, const BoundsScope *s)
{
    const Block *b = proc->blocks[0];
    Facts *f = prove_facts_in(c->m->arena, c->m, proc, 0);
    for (unsigned i = 0; i < b->n_args; i++) {
        const Value *v = b->args[i].value;
        for (unsigned k = 0; v && k < v->type->rank; k++)
            sc_require(c, s->at ? s->at : proc, f,
                       cond_cmp(c->m->exprs, CMP_gt, v->shape[k],
                                affine_const(c->m->exprs, 0)),
                       "size", "extent %s of parameter %s must be positive",
                       par_text_affine(c->m, v->shape[k]), par_text_value(v));
    }
}

void check_seq_bounds(SeqCheck *c, Op *op, const BoundsScope *s)
{
    BoundsWalk w = { c, s };
    if (op->code == OP_ctl_proc)
        check_params(c, op, s);
    op_walk(op, check_op, &w);
}
