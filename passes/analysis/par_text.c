/* Spellings for messages, through the printers of the IR. */
#include "passes/analysis/par_text.h"

static const char *var_name(const ExprNames *n, VarId v)
{
    const Module *m = n->user;
    const char *name = var_get(m->exprs, v)->name;
    return name ? name : "_";
}

static const char *tensor_name(const ExprNames *n, const void *value)
{
    (void)n;
    return par_text_value(value);
}

static ExprNames names_of(Module *m)
{
    return (ExprNames){
        .var = var_name, .tensor = tensor_name, .user = m, .exo = true
    };
}

static const char *keep(Module *m, StrBuf *b)
{
    const char *text = arena_strdup(m->arena, strbuf_text(b));
    strbuf_free(b);
    return text;
}

static void add_affine(Module *m, StrBuf *b, const Affine *e)
{
    ExprNames names = names_of(m);
    if (e)
        affine_print(b, m->exprs, e, &names, 0);
    else
        strbuf_add(b, "?");
}

const char *par_text_affine(Module *m, const Affine *e)
{
    StrBuf b = { 0 };
    add_affine(m, &b, e);
    return keep(m, &b);
}

const char *par_text_cond(Module *m, const Cond *c)
{
    StrBuf b = { 0 };
    ExprNames names = names_of(m);
    cond_print(&b, m->exprs, c, &names, 0);
    return keep(m, &b);
}

const char *par_text_proof(Module *m, const Proof *p)
{
    StrBuf b = { 0 };
    ExprNames names = names_of(m);
    proof_witness(&b, m->exprs, p, &names);
    return keep(m, &b);
}

const char *par_text_value(const Value *v)
{
    return v && v->name ? v->name : "_";
}

const char *par_text_access(Module *m, const Access *a)
{
    StrBuf b = { 0 };
    strbuf_add(&b, par_text_value(a->base));
    for (unsigned i = 0; i < a->rank; i++) {
        strbuf_add(&b, i ? ", " : "[");
        add_affine(m, &b, a->dims[i].lo);
        if (a->dims[i].kind == DIM_interval) {
            strbuf_addc(&b, ':');
            add_affine(m, &b,
                       affine_add(m->exprs, a->dims[i].lo, a->dims[i].len));
        }
    }
    if (a->rank)
        strbuf_addc(&b, ']');
    return keep(m, &b);
}

const char *par_text_unit(Module *m, const UnitRef *u)
{
    StrBuf b = { 0 };
    unitref_print(&b, u);
    return keep(m, &b);
}

const char *par_text_mem(Module *m, const MemRef *mem)
{
    StrBuf b = { 0 };
    if (mem)
        memref_print(&b, mem, false);
    else
        strbuf_add(&b, "no memory");
    return keep(m, &b);
}

const char *par_text_param(Module *m, const Param *p)
{
    StrBuf b = { 0 };
    if (p)
        param_print(&b, p);
    else
        strbuf_add(&b, "no literal");
    return keep(m, &b);
}

const char *par_text_shape(Module *m, const Value *v, unsigned first)
{
    StrBuf b = { 0 };
    strbuf_addc(&b, '[');
    for (unsigned i = first; i < v->type->rank; i++) {
        strbuf_add(&b, i > first ? ", " : "");
        add_affine(m, &b, v->shape[i]);
    }
    strbuf_addc(&b, ']');
    return keep(m, &b);
}

static void add_warps(StrBuf *b, const Op *op)
{
    const Param *lo = op_attr_param(op, "lo"), *hi = op_attr_param(op, "hi");
    const char *name = op_attr_str(op, "name", NULL), *comma = "";
    strbuf_add(b, "CudaWarps(");
    if (lo && lo->kind == PARAM_int) {
        strbuf_addf(b, "%lld", (long long)lo->i);
        comma = ", ";
    }
    if (hi && hi->kind == PARAM_int) {
        strbuf_addf(b, "%s%s%lld", comma, lo ? "" : "hi=", (long long)hi->i);
        comma = ", ";
    }
    if (name)
        strbuf_addf(b, "%sname='%s'", comma, name);
    strbuf_addc(b, ')');
}

const char *par_text_loop(Module *m, const Op *op)
{
    StrBuf b = { 0 };
    if (op->code == OP_par_warps) {
        add_warps(&b, op);
        return keep(m, &b);
    }
    const char *mode = op_attr_str(op, "mode", "seq");
    const char *name = var_get(m->exprs, op->blocks[0]->args[0].var)->name;
    strbuf_addf(&b, "for %s in %s%s(", name ? name : "_",
                op->code == OP_ctl_for && (mode[0] == 't') ? "cuda_" : "",
                mode);
    add_affine(m, &b, op->operands[0].u.index);
    strbuf_add(&b, ", ");
    add_affine(m, &b, op->operands[1].u.index);
    const Attr *unit = op_attr(op, "unit");
    if (unit && unit->kind == ATTR_unit) {
        strbuf_add(&b, ", unit=");
        unitref_print(&b, unit->unit);
    }
    strbuf_addc(&b, ')');
    return keep(m, &b);
}
