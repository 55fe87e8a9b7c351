/* Products of variables in the indices of the lowered text.
 *
 * A sum of variables, each times what the sizes give, differs from another one
 * already among few values. A polynomial can vanish on all of a loop's few
 * trips: %b * (%b - 1) * (%b - 2) does for three tasks, whatever comes then. It
 * has no turn at which it begins to differ, so that no run is looked for. The
 * programs' language has no such indices, and no lowering makes them. */
#include "verify/async/turns_impl.h"

typedef struct Products {
    Turns *t; /* NULL: the degree alone is asked for */
    Module *m;
    const Op *in;     /* the host, the kernel or the program */
    const Op *launch; /* of the kernel */
    const struct Products *around;
    unsigned most, allowed; /* degree: in an index, and in the program's */
} Products;

static unsigned degree(Products *p, const Affine *e);

/* Is v the same for the whole of a launch: an argument, no coordinate, that the
 * host does not vary from launch to launch? */
static bool is_size(const Products *p, VarId v)
{
    const Block *b = p->in->blocks[0];
    unsigned n = p->launch ? p->launch->n_operands : b->n_args;
    for (unsigned i = 0; i < n && i < b->n_args; i++) {
        if (b->args[i].value || b->args[i].var != v)
            continue;
        Products around = p->around ? *p->around : (Products){ 0 };
        const Operand *o = p->launch ? &p->launch->operands[i] : NULL;
        return !o ||
               (o->kind == OPND_index && degree(&around, o->u.index) == 0);
    }
    return false;
}

/* How many variables are multiplied in it. */
static unsigned atom_degree(Products *p, const Atom *a)
{
    if (a->kind == ATOM_var)
        return is_size(p, a->var) ? 0 : 1;
    if (a->kind != ATOM_opaque)
        return degree(p, a->arg) ? 1 : 0;
    return a->opaque == OPAQUE_product ? degree(p, a->lhs) + degree(p, a->rhs)
                                       : 0;
}

static unsigned degree(Products *p, const Affine *e)
{
    unsigned most = 0;
    for (uint32_t i = 0; e && i < e->n_terms; i++) {
        unsigned d = atom_degree(p, e->terms[i].atom);
        most = d > most ? d : most;
    }
    p->most = most > p->most ? most : p->most;
    return most;
}

static void see_index(Products *p, const Op *op, const Affine *e)
{
    p->most = 0;
    degree(p, e);
    if (p->most <= p->allowed)
        return;
    if (!p->t) {
        p->allowed = p->most;
        return;
    }
    TextTurn x = { .kind = TURN_product,
                   .m = p->m,
                   .op = op,
                   .e = e,
                   .hopeless = true,
                   .at = (unsigned)p->t->all.len };
    VEC_PUSH(p->t->arena, &p->t->all, arena_memdup(p->t->arena, &x, sizeof x));
}

static void see_operands(Products *p, const Op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_index)
            see_index(p, op, o->u.index);
        for (unsigned d = 0; o->kind == OPND_access && d < o->u.access->rank;
             d++) {
            see_index(p, op, o->u.access->dims[d].lo);
            see_index(p, op, o->u.access->dims[d].len);
        }
    }
}

static bool see_op(Op *op, void *user)
{
    Products *p = user;
    see_operands(p, op);
    const Op *k = p->t && op->code == OP_host_launch
                      ? module_symbol(p->m, op_attr_str(op, "kernel", ""))
                      : NULL;
    if (!k || k->code != OP_async_kernel || turns_launch(p->t, k) != op)
        return true;
    Products in = { .t = p->t,
                    .m = p->m,
                    .in = k,
                    .launch = op,
                    .around = p,
                    .allowed = p->allowed };
    op_walk((Op *)k, see_op, &in);
    return true;
}

void turns_products(Turns *t, Module *of, const Op *proc)
{
    Products program = { .m = of, .in = proc, .allowed = 1 };
    if (proc)
        op_walk((Op *)proc, see_op, &program);
    Products host = {
        .t = t, .m = t->m, .in = t->host, .allowed = program.allowed
    };
    op_walk((Op *)t->host, see_op, &host);
}
