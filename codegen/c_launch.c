/* host.launch: the kernel's parameters by passes/abi.h, and its tasks.
 *
 * The grid is as many clusters as run at once, but no more than the tasks need
 * (exo_even_clusters in codegen/c_support_driver.c), where the kernel's
 * persistent loops have one box and its bounds are known here. */
#include "codegen/c_emit.h"
#include "passes/abi.h"

#include <string.h>

/* ---- tasks ---------------------------------------------------------- */

typedef struct Tasks {
    CPrinter *p;
    const Op *launch, *kernel;
    const Affine *count; /* of the loops seen; NULL: none yet */
    bool known;
} Tasks;

/* The kernel's expression in the launch's terms, NULL when it cannot be. */
static const Affine *at_launch(Tasks *t, const Affine *e)
{
    const Block *b = t->kernel->blocks[0];
    unsigned n = t->launch->n_operands;
    VarId *var = ARENA_ARRAY(t->p->arena, VarId, n);
    const Affine **to = ARENA_ARRAY(t->p->arena, const Affine *, n);
    Subst s = { .var = var, .to = to };
    for (unsigned i = 0; i < n; i++)
        if (!b->args[i].value && t->launch->operands[i].kind == OPND_index) {
            var[s.n] = b->args[i].var;
            to[s.n++] = t->launch->operands[i].u.index;
        }
    return affine_subst(t->p->m->exprs, e, &s);
}

static void note_unknown_var(VarId v, void *user)
{
    Tasks *t = user;
    t->known = t->known && v < t->p->n_vars && t->p->var_name[v] != NULL;
}

static bool note_tasks(Op *op, void *user)
{
    Tasks *t = user;
    ExprCtx *x = t->p->m->exprs;
    if (op->code != OP_async_tasks)
        return true;
    int64_t rank = op_attr_int(op, "rank", 0);
    const Affine *count = affine_const(x, 1);
    for (int64_t i = 0; i < rank && 2 * i + 1 < op->n_operands; i++) {
        const Affine *lo = at_launch(t, op->operands[2 * i].u.index);
        const Affine *hi = at_launch(t, op->operands[2 * i + 1].u.index);
        count = affine_mul(x, count, affine_sub(x, hi, lo));
    }
    t->known = t->known && count && (!t->count || t->count == count);
    if (count)
        affine_walk_vars(count, note_unknown_var, t);
    t->count = count;
    return t->known;
}

static const char *task_count(CPrinter *p, const Op *launch, Op *kernel)
{
    Tasks t = { .p = p, .launch = launch, .kernel = kernel, .known = true };
    op_walk(kernel, note_tasks, &t);
    return t.known && t.count ? c_index(p, t.count) : "INT64_MAX";
}

/* ---- parameters ----------------------------------------------------- */

/* Where a tensor operand of the launch lies: base, access from its root. */
typedef struct Place {
    const CValue *base;
    const Access *a; /* NULL: the whole value */
    const Value *v;
} Place;

static bool place_of(CPrinter *p, const Operand *o, Place *out)
{
    if (o->kind != OPND_access && o->kind != OPND_value)
        return false;
    out->a = o->kind == OPND_access ? o->u.access : NULL;
    out->v = out->a ? out->a->base : o->u.value;
    out->base = c_value(p, out->v);
    return true;
}

static const char *place_address(CPrinter *p, const Place *at)
{
    if (at->a)
        return c_address(p, at->a);
    const char *offset = at->base->offset;
    return offset ? c_text(p, "%s + %du * (uint64_t)(%s)", at->base->name,
                           scalar_type_bytes(at->v->type->elem), offset)
                  : at->base->name;
}

/* The stride of the dim-th interval. */
static const char *place_stride(const Place *at, unsigned dim)
{
    if (!at->a)
        return at->base->strides[dim];
    for (unsigned d = 0; d < at->a->rank; d++)
        if (at->a->dims[d].kind == DIM_interval && dim-- == 0)
            return at->base->strides[d];
    return NULL;
}

static bool is_dense(const Value *v)
{
    return v->type->kind == TK_tensor;
}

typedef struct Launch {
    CPrinter *p;
    const Op *op;
    const Op *kernel;
    const char *list; /* "&exo_p0, &exo_p1" */
} Launch;

static void add_param(Launch *l, const char *text)
{
    l->list = *l->list ? c_text(l->p, "%s, %s", l->list, text) : text;
}

/* A control value of 32 bits, tested unless its range shows that it fits. */
static void print_control(Launch *l, unsigned i, const char *text, bool fits,
                          const char *what)
{
    CPrinter *p = l->p;
    c_line(p, "uint32_t exo_p%u = (uint32_t)%s;", i, text);
    add_param(l, c_text(p, "&exo_p%u", i));
    if (fits)
        return;
    p->needs |= NEED_control;
    c_try(p, "exo_check_control(%s, %s, %s, -EXO_CONTROL_LIMIT)", p->procedure,
          c_string(p, what), text);
}

static bool fits_control(CRange r)
{
    double limit = (double)ABI_CONTROL_LIMIT;
    return r.lo >= -limit && r.hi <= limit;
}

static const char *kernel_arg_name(const Launch *l, unsigned arg)
{
    const BlockArg *a = &l->kernel->blocks[0]->args[arg];
    const char *name =
        a->value ? a->value->name : var_get(l->p->m->exprs, a->var)->name;
    return name ? name : "a kernel parameter";
}

static bool print_param(Launch *l, unsigned i, const AbiParam *abi)
{
    CPrinter *p = l->p;
    const Operand *o = &l->op->operands[abi->arg];
    const char *what = kernel_arg_name(l, abi->arg);
    if (abi->kind == ABI_control) {
        if (o->kind == OPND_cond)
            print_control(l, i, c_text(p, "(%s)", c_condition(p, o->u.cond)),
                          true, what);
        else if (o->kind == OPND_index)
            print_control(l, i, c_index(p, o->u.index),
                          fits_control(c_range(p, o->u.index)), what);
        else
            return c_refuse(p, l->op,
                            "'host.launch' gives '%s' no index "
                            "expression",
                            what);
        return true;
    }
    Place at;
    if (!place_of(p, o, &at) ||
        (abi->kind == ABI_map) != (at.base->kind == CV_map))
        return c_refuse(p, l->op,
                        "'host.launch' operand %u does not fit the "
                        "kernel's parameter '%s'",
                        abi->arg, what);
    bool device = abi->kind == ABI_pointer || abi->kind == ABI_stride;
    if (abi->kind != ABI_map && at.base->device != device)
        return c_refuse(p, l->op,
                        "'host.launch' needs '%s' in the memory of "
                        "the %s",
                        what, device ? "GPU" : "host");
    switch (abi->kind) {
    case ABI_pointer:
        c_line(p, "uint64_t exo_p%u = %s;", i, place_address(p, &at));
        add_param(l, c_text(p, "&exo_p%u", i));
        return true;
    case ABI_stride: {
        const char *stride = place_stride(&at, abi->dim);
        if (!stride)
            return c_refuse(p, l->op,
                            "'host.launch' gives '%s' too few "
                            "dimensions",
                            what);
        const Value *root = value_root((Value *)at.v);
        bool fits = root->type->kind == TK_window && !root->def;
        print_control(l, i, c_text(p, "(%s)", stride),
                      fits || !strcmp(stride, "1"),
                      c_text(p, "the stride of %s", what));
        return true;
    }
    case ABI_map:
        add_param(l, c_text(p, "&%s", at.base->name));
        return true;
    default:
        break;
    }
    if (!is_dense(at.v))
        return c_refuse(p, l->op,
                        "'host.launch' copies '%s' to the kernel, "
                        "so it must be dense",
                        what);
    if (at.base->by_value)
        add_param(l, c_text(p, "&%s", at.base->name));
    else
        add_param(l, c_text(p, "(void *)(uintptr_t)&%s[%s]", at.base->name,
                            at.base->offset ? at.base->offset : "0"));
    return true;
}

static int kernel_index(const CPrinter *p, const Op *kernel)
{
    for (size_t i = 0; i < p->kernels.len; i++)
        if (p->kernels.data[i] == kernel)
            return (int)i;
    return -1;
}

bool c_launch(CPrinter *p, const Op *op)
{
    const char *name = op_attr_str(op, "kernel", "");
    Op *kernel = module_symbol(p->m, name);
    if (!kernel || kernel->code != OP_async_kernel)
        return c_refuse(p, op,
                        "'host.launch' launches '%s', which is no "
                        "kernel of the module",
                        name);
    AbiParamVec params = { 0 };
    if (!kernel_abi(p->ctx, kernel, p->arena, &params))
        return !(p->failed = true);
    unsigned n_args = kernel->blocks[0]->n_args - ABI_N_COORDS;
    if (op->n_operands != n_args)
        return c_refuse(p, op,
                        "'host.launch' must have an operand for each "
                        "of the kernel's %u parameters, but has %u",
                        n_args, op->n_operands);
    Launch l = { .p = p, .op = op, .kernel = kernel, .list = "" };
    p->needs |= NEED_launch | NEED_driver;
    p->uses_call = true;
    c_line(p, "{ /* %s */", name);
    c_open(p);
    for (size_t i = 0; i < params.len; i++)
        if (!print_param(&l, (unsigned)i, &params.data[i]))
            return false;
    const char *tasks = task_count(p, op, kernel);
    if (params.len)
        c_line(p, "void *exo_params[] = {%s};", l.list);
    c_try(p, "exo_launch(call, %d, %s, %s)", kernel_index(p, kernel), tasks,
          params.len ? "exo_params" : "NULL");
    c_close(p);
    return !p->failed;
}
