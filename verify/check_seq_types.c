/* Types that the structure of the IR leaves open: literals against their type,
 * elements and ranks of arguments, sizes of parameters. */
#include "verify/check_seq_internal.h"

#include <math.h>

static int64_t int_min(ScalarType t)
{
    return scalar_info(t)->kind == SK_UINT
               ? 0
               : -((int64_t)1 << (8 * scalar_type_bytes(t) - 1));
}

static int64_t int_max(ScalarType t)
{
    int bits = 8 * scalar_type_bytes(t);
    return ((int64_t)1 << (scalar_info(t)->kind == SK_UINT ? bits : bits - 1)) -
           1;
}

/* inf is written as such; a finite literal stays finite. */
static void check_literal(SeqCheck *c, const Op *op)
{
    const Param *p = op_attr_param(op, "value");
    ScalarType t = op->results[0]->type->elem;
    if (!p || scalar_type_bytes(t) == 0 || scalar_type_bytes(t) > 8)
        return;
    double v = p->kind == PARAM_float ? p->f : (double)p->i;
    bool fits = true;
    if (scalar_info(t)->kind == SK_SINT || scalar_info(t)->kind == SK_UINT)
        fits =
            v == floor(v) && v >= (double)int_min(t) && v <= (double)int_max(t);
    else if (scalar_type_is_float(t))
        fits = isinf(v) || (isfinite(scalar_round(t, v)) &&
                            (!scalar_info(t)->saturates ||
                             fabs(v) <= fabs(scalar_round(t, INFINITY))));
    if (fits)
        return;
    Diag *d = sc_error(c, op, "type", "the literal %g is out of range of %s", v,
                       scalar_type_name(t));
    diag_fix(c->ctx, d, "use a value that %s holds, or a wider type",
             scalar_type_name(t));
}

static unsigned count_intervals(const Access *a)
{
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++)
        n += a->dims[i].kind == DIM_interval;
    return n;
}

static void check_element(SeqCheck *c, const Op *op, const char *callee,
                          const char *param, ScalarType want, const Access *a)
{
    if (a->base->type->elem == want || want == TY_R)
        return;
    sc_error(c, op, "type",
             "argument %s of %s: expected elements of type %s, "
             "found %s of %s",
             param, callee, scalar_type_name(want),
             scalar_type_name(a->base->type->elem), par_text_access(c->m, a));
}

static void check_instr_arg(SeqCheck *c, const Op *op, const Instr *in,
                            unsigned i)
{
    const InstrParam *p = &in->params[i];
    const Operand *o = &op->operands[i];
    bool control = o->kind == OPND_index || o->kind == OPND_cond;
    if (p->is_index != control) {
        sc_error(c, op, "type", "argument %s of %s: expected %s", p->name,
                 in->name,
                 p->is_index ? "a control expression"
                             : "a tensor, window or variable");
        return;
    }
    if (control || o->kind != OPND_access)
        return;
    unsigned rank = count_intervals(o->u.access);
    if (rank != p->rank) {
        Diag *d = sc_error(c, op, "type",
                           "argument %s of %s: expected %u "
                           "intervals, found %u in %s",
                           p->name, in->name, p->rank, rank,
                           par_text_access(c->m, o->u.access));
        diag_fix(c->ctx, d,
                 "an interval `lo:hi` keeps a dimension, a point "
                 "drops it");
        return;
    }
    check_element(c, op, in->name, p->name, p->elem, o->u.access);
}

static void check_instr(SeqCheck *c, const Op *op)
{
    const Instr *in = op_instr(c->m, op);
    if (!in) {
        c->ok = false;
        return;
    }
    unsigned n = op->n_operands - (op_attr_int(op, "trailing", 0) != 0);
    if (!op->n_operands || n != in->n_params) {
        sc_error(c, op, "type", "%s takes %u arguments, found %u", in->name,
                 in->n_params, n);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        check_instr_arg(c, op, in, i);
}

/* One run of memory: points, an interval, then whole dimensions. */
static bool is_one_run(const Access *a)
{
    bool begun = false;
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        int64_t lo;
        bool interval = d->kind == DIM_interval;
        bool whole = interval && affine_is_const(d->lo, &lo) && lo == 0 &&
                     d->len == a->base->shape[i];
        if (begun && !whole)
            return false;
        begun = begun || interval;
    }
    return true;
}

static void check_dense(SeqCheck *c, const Op *op, const char *name,
                        const Value *param, const Access *a)
{
    if (value_root(a->base) != a->base)
        sc_error(c, op, "type",
                 "argument %s of %s: expected a tensor, found the window %s",
                 par_text_value(param), name, par_text_value(a->base));
    else if (!is_one_run(a)) {
        Diag *d =
            sc_error(c, op, "type",
                     "argument %s of %s: expected a dense tensor, found "
                     "%s, which leaves gaps",
                     par_text_value(param), name, par_text_access(c->m, a));
        diag_fix(c->ctx, d, "make the parameter a window: %s: [%s][..]",
                 par_text_value(param), scalar_type_name(param->type->elem));
    }
}

static void check_call(SeqCheck *c, const Op *op)
{
    const char *name = op_attr_str(op, "callee", "");
    const Op *callee = module_symbol(c->m, name);
    if (!callee || callee->code != OP_ctl_proc)
        return;
    const Block *b = callee->blocks[0];
    for (unsigned i = 0; i < op->n_operands && i < b->n_args; i++) {
        const Value *v = b->args[i].value;
        const Operand *o = &op->operands[i];
        if (!v || o->kind != OPND_access)
            continue;
        check_element(c, op, name, par_text_value(v), v->type->elem,
                      o->u.access);
        if (v->type->kind == TK_tensor && v->type->rank)
            check_dense(c, op, name, v, o->u.access);
    }
}

static bool check_op(Op *op, void *user)
{
    if (op->code == OP_arith_const)
        check_literal(user, op);
    else if (op->code == OP_par_instr)
        check_instr(user, op);
    else if (op->code == OP_ctl_call)
        check_call(user, op);
    return true;
}

void check_seq_types(SeqCheck *c)
{
    op_walk(c->proc, check_op, c);
}
