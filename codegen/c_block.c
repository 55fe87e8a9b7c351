/* Statements of control: loops, ifs, calls, and the blocks they stand in.
 *
 * Allocations are variables of the whole function, zero until they are made,
 * and released where their block ends; an error leaves by `goto done`, where
 * all that are left are released. */
#include "codegen/c_emit.h"

#include <string.h>

void c_try(CPrinter *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *call = arena_vprintf(p->arena, fmt, ap);
    va_end(ap);
    p->may_fail = true;
    c_line(p, "EXO_TRY(%s);", call);
}

const char *c_alloc_name(CPrinter *p, const char *wanted, bool device)
{
    const char *name = c_text(p, "exo_m%u_%s", (unsigned)p->allocs.len + 1,
                              c_identifier(p, wanted));
    CAlloc a = { name, device, NULL };
    VEC_PUSH(p->arena, &p->allocs, a);
    return name;
}

/* ---- loops and ifs -------------------------------------------------- */

static bool print_for(CPrinter *p, const Op *op)
{
    const Block *body = op->blocks[0];
    if (op->n_results || op->n_operands > 2 || body->n_args != 1 ||
        body->args[0].value)
        return c_refuse(p, op,
                        "'ctl.for' that carries values has no form in "
                        "C");
    VarId v = body->args[0].var;
    CRange lo = c_range(p, op->operands[0].u.index);
    CRange hi = c_range(p, op->operands[1].u.index);
    const char *from = c_index(p, op->operands[0].u.index);
    const char *to = c_index(p, op->operands[1].u.index);
    size_t scope = c_scope(p);
    const char *name = c_name(p, var_get(p->m->exprs, v)->name);
    p->var_name[v] = name;
    p->var_range[v] = (CRange){ lo.lo, hi.hi - 1 > lo.lo ? hi.hi - 1 : lo.lo };
    c_line(p, "for (int64_t %s = %s; %s < %s; %s++) {", name, from, name, to,
           name);
    c_open(p);
    bool ok = c_block(p, body);
    c_close(p);
    c_scope_end(p, scope);
    return ok;
}

static bool print_if(CPrinter *p, const Op *op)
{
    if (op->n_results)
        return c_refuse(p, op,
                        "'ctl.if' that carries values has no form in "
                        "C");
    c_line(p, "if (%s) {", c_condition(p, op->operands[0].u.cond));
    c_open(p);
    bool ok = c_block(p, op->blocks[0]);
    if (ok && op->n_blocks > 1) {
        p->indent--;
        c_line(p, "} else {");
        c_open(p);
        ok = c_block(p, op->blocks[1]);
    }
    c_close(p);
    return ok;
}

/* ---- calls ---------------------------------------------------------- */

static const char *join(CPrinter *p, const char *list, const char *item)
{
    return *list ? c_text(p, "%s, %s", list, item) : item;
}

/* A tensor argument: its address, or its element, and a window's strides. */
static const char *tensor_argument(CPrinter *p, const Op *op, const Access *a,
                                   const Value *param, const char *list)
{
    const CValue *base = c_value(p, a->base);
    if (base->kind != CV_tensor) {
        c_refuse(p, op, "'ctl.call' argument '%s' has no form in C",
                 a->base->name ? a->base->name : "?");
        return list;
    }
    const char *text;
    if (param->type->rank == 0 && param->type->mem &&
        !strcmp(param->type->mem->name, "CudaGridConstant"))
        text = c_element(p, a);
    else if (base->device)
        text = c_text(p, "(void *)(uintptr_t)(%s)", c_address(p, a));
    else
        text = c_text(p, "&%s", c_element(p, a));
    list = join(p, list, text);
    for (unsigned i = 0; i < a->rank && param->type->kind == TK_window; i++)
        if (a->dims[i].kind == DIM_interval)
            list = join(p, list, base->strides[i]);
    return list;
}

static bool print_call(CPrinter *p, const Op *op)
{
    const CFunction *f = c_function(p, op_attr_str(op, "callee", ""));
    if (!f)
        return c_refuse(p, op,
                        "'ctl.call' calls '%s', which is no procedure "
                        "with a form in C",
                        op_attr_str(op, "callee", ""));
    if (f->is_host && !p->is_host)
        return c_refuse(p, op,
                        "'ctl.call' calls '%s', which needs a stream, "
                        "from a procedure without one",
                        op_attr_str(op, "callee", ""));
    const Block *params = f->op->blocks[0];
    if (params->n_args != op->n_operands)
        return c_refuse(p, op, "'ctl.call' must have %u arguments, but has %u",
                        params->n_args, op->n_operands);
    const char *list = f->is_host ? "call" : "";
    p->uses_call |= f->is_host;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_index)
            list = join(p, list, c_index(p, o->u.index));
        else if (o->kind == OPND_cond)
            list = join(p, list, c_condition(p, o->u.cond));
        else if (o->kind == OPND_access && params->args[i].value)
            list = tensor_argument(p, op, o->u.access, params->args[i].value,
                                   list);
        else
            return c_refuse(p, op, "'ctl.call' argument %u has no form in C",
                            i);
    }
    c_try(p, "%s(%s)", f->run, list);
    return !p->failed;
}

/* ---- blocks --------------------------------------------------------- */

static bool print_op(CPrinter *p, const Op *op)
{
    switch (op->code) {
    case OP_ctl_for:
        return print_for(p, op);
    case OP_ctl_if:
        return print_if(p, op);
    case OP_ctl_call:
        return print_call(p, op);
    case OP_ctl_pass:
        return true;
    case OP_ctl_yield:
        return op->n_operands == 0;
    case OP_mem_window:
        return c_window(p, op);
    case OP_host_launch:
        return c_launch(p, op);
    default:
        break;
    }
    const char *dialect = op_info(op->code)->dialect;
    if (!strcmp(dialect, "host") || op->code == OP_ctl_assert)
        return c_host_op(p, op);
    return c_scalar_op(p, op);
}

bool c_block(CPrinter *p, const Block *b)
{
    size_t scope = c_scope(p), first = p->allocs.len;
    bool is_body = b->parent && op_has(b->parent, OPT_SYMBOL);
    const Op *op = is_body ? c_prologue(p, b) : b->first;
    bool ok = !p->failed;
    for (; op && ok; op = op->next)
        ok = print_op(p, op) && !p->failed;
    for (size_t i = p->allocs.len; ok && !is_body && i-- > first;)
        c_release(p, &p->allocs.data[i]);
    c_scope_end(p, scope);
    return ok;
}
