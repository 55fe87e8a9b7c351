/* Writes of configuration state. Its values do not depend on iterators: the
 * ops that make the value are followed back to the elements they load, and no
 * index there may be that of a loop around the write. */
#include "verify/check_seq_internal.h"

typedef struct ConfigWrite {
    const Op *write;
    VarId iterator; /* found; 0: none */
} ConfigWrite;

static bool is_iterator(const Op *at, VarId v)
{
    for (const Op *p = op_parent(at); p; p = op_parent(p))
        if (p->code == OP_ctl_for && p->blocks[0]->args[0].var == v)
            return true;
    return false;
}

static void visit_var(VarId v, void *user)
{
    ConfigWrite *w = user;
    if (is_iterator(w->write, v))
        w->iterator = v;
}

static void follow(ConfigWrite *w, const Op *op)
{
    for (unsigned i = 0; op && i < op->n_operands && !w->iterator; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_value)
            follow(w, o->u.value->def);
        else if (o->kind == OPND_index)
            affine_walk_vars(o->u.index, visit_var, w);
        else if (o->kind == OPND_cond)
            cond_walk_vars(o->u.cond, visit_var, w);
        else
            for (unsigned k = 0; k < o->u.access->rank; k++)
                affine_walk_vars(o->u.access->dims[k].lo, visit_var, w);
    }
}

static bool check_write(Op *op, void *user)
{
    SeqCheck *c = user;
    if (op->code != OP_cfg_write)
        return true;
    ConfigWrite w = { .write = op };
    follow(&w, op);
    if (!w.iterator)
        return true;
    const char *name = var_get(c->m->exprs, w.iterator)->name;
    Diag *d = sc_error(c, op, "config",
                       "Config values must not depend on loop iterators: that "
                       "of %s depends on %s",
                       op_attr_str(op, "field", "_"), name);
    diag_fix(c->ctx, d, "write it outside of the loop over %s", name);
    return true;
}

void check_seq_configs(SeqCheck *c)
{
    op_walk(c->proc, check_write, c);
}
