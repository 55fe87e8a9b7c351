/* Places in what a kernel allocates, for all sizes.
 *
 * A run refuses a place outside of an object. That none is outside at other
 * sizes is asked here: an index that grows with a loop leaves its object some
 * time, and if what reads it grows alike, no value shows it before. What facts
 * and intervals show at once is no turn; of the rest a prover is asked, and
 * sizes are looked for at which the place is outside. Tensors are not looked
 * at: values tell their places apart. */
#include "verify/async/turns_impl.h"

typedef struct Bounds {
    Turns *t;
    Prover *prover;
} Bounds;

static bool is_known(const Bounds *b, const Op *op, const Affine *e)
{
    int64_t lo;
    ExprCtx *exprs = b->t->m->exprs;
    if (affine_min(exprs, e, &lo) && lo >= 0)
        return true;
    Arena *arena = arena_new();
    Facts *f = prove_facts_at(arena, b->t->m, (Op *)op);
    const Cond *c = cond_cmp(exprs, CMP_ge, e, affine_const(exprs, 0));
    bool known = prove_implied(b->prover, f, c).answer == PROVE_yes;
    arena_free(arena);
    return known;
}

static void see_bound(Bounds *b, const Op *op, const Affine *e)
{
    if (!e || is_known(b, op, e))
        return;
    TextTurn x = { .kind = TURN_within,
                   .m = b->t->m,
                   .op = op,
                   .e = e,
                   .at = (unsigned)b->t->all.len };
    VEC_PUSH(b->t->arena, &b->t->all, arena_memdup(b->t->arena, &x, sizeof x));
}

/* Of an instruction each lane may give the place of a row of its own, so that
 * its intervals are those of the first lane alone: it must begin within. */
static void see_dim(Bounds *b, const Op *op, const AccessDim *d,
                    const Affine *extent)
{
    ExprCtx *exprs = b->t->m->exprs;
    bool whole = d->kind == DIM_interval && op->code != OP_async_instr;
    const Affine *end = whole ? affine_add(exprs, d->lo, d->len)
                              : affine_add_const(exprs, d->lo, 1);
    if (d->kind == DIM_ring)
        return;
    see_bound(b, op, d->lo);
    see_bound(b, op, end ? affine_sub(exprs, extent, end) : NULL);
}

static bool see_op(Op *op, void *user)
{
    Bounds *b = user;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Access *a = op->operands[i].kind == OPND_access
                              ? op->operands[i].u.access
                              : NULL;
        bool own = a && a->base->def && a->base->shape &&
                   op_enclosing(a->base->def, OP_async_kernel);
        for (unsigned d = 0; own && d < a->rank; d++)
            see_dim(b, op, &a->dims[d], a->base->shape[d]);
    }
    return true;
}

static bool see_launch(Op *op, void *user)
{
    Bounds *b = user;
    Op *k = op->code == OP_host_launch
                ? module_symbol(b->t->m, op_attr_str(op, "kernel", ""))
                : NULL;
    if (k && k->code == OP_async_kernel && turns_launch(b->t, k) == op)
        op_walk(k, see_op, b);
    return true;
}

void turns_bounds(Turns *t)
{
    Bounds b = { t, prover_layer1(t->arena) };
    op_walk((Op *)t->host, see_launch, &b);
}
