/* Where a statement stands and what it may touch there: permissions of
 * memories by scope and instruction timeline, units of plain statements and of
 * instructions, and constructs that belong to one side only
 * (docs/checks.md, "Memory"). */
#include "verify/check_par_internal.h"

#include "passes/inline.h"

#include <string.h>

enum { PERM_r = 1, PERM_w = 2, PERM_c = 4, PERM_all = 7 };

typedef struct Place {
    bool cuda;
    const char *timeline; /* of the statement */
    const char *callee;   /* instruction called, or NULL */
} Place;

static unsigned permission(MemFamily family, const Place *p)
{
    bool stream = !strcmp(p->timeline, "cpu_cuda_stream_instr");
    switch (family) {
    case MEMF_cpu:
        return p->cuda ? 0 : PERM_all;
    case MEMF_grid_constant:
        return p->cuda ? PERM_r : PERM_all;
    case MEMF_global:
    case MEMF_map:
        return stream ? PERM_all : p->cuda ? PERM_r | PERM_w : PERM_c;
    case MEMF_shared:
    case MEMF_register:
    case MEMF_barrier:
        return p->cuda ? PERM_all : 0;
    }
    panic("permission: family %d", (int)family);
}

static const char *scope_text(const Place *p)
{
    return p->cuda ? "cuda_in_order" : "cpu_in_order";
}

static void refuse_access(ParCheck *c, const Op *op, const Place *p, Value *v,
                          const char *what)
{
    const char *suffix = "";
    if (p->callee)
        suffix = arena_printf(c->m->arena, " (in call to %s with instr-tl %s)",
                              p->callee, p->timeline);
    Diag *d = pc_error(c, op, "permission",
                       "%s: %s does not allow %s in a "
                       "scope using %s%s",
                       par_text_value(v),
                       par_text_mem(c->m, value_root(v)->type->mem), what,
                       scope_text(p), suffix);
    diag_fix(c->ctx, d,
             p->cuda ? "use a memory of the device, or copy it first"
                     : "touch it in a device function, or through an "
                       "instruction of the stream");
}

/* Shared memory and registers exist from their allocation in a task on. */
static bool is_allocated(Value *v)
{
    const Op *def = value_root(v)->def;
    return def && pc_on_device(def);
}

static void refuse_outside(ParCheck *c, const Op *op, Value *v)
{
    const char *name = par_text_value(value_root(v));
    Diag *d = pc_error(c, op, "permission",
                       "%s: %s lives in a task of a device function; a "
                       "parameter in it has no place",
                       name, par_text_mem(c->m, value_root(v)->type->mem));
    diag_fix(c->ctx, d,
             "allocate %s in the task, or inline the procedure where that "
             "is done",
             name);
}

static void check_access(ParCheck *c, const Op *op, const Place *p,
                         const Access *a, unsigned flags)
{
    const Mem *mem = pc_mem(c, a->base);
    if (!mem || (flags & ACC_SYNC))
        return;
    unsigned may = permission(mem->family, p);
    if (p->cuda && may == PERM_all && !is_allocated(a->base)) {
        refuse_outside(c, op, a->base);
        return;
    }
    if ((flags & (ACC_WRITE | ACC_REDUCE)) && !(may & PERM_w))
        refuse_access(c, op, p, a->base,
                      may & PERM_r ? "mutable access" : "any access");
    else if ((flags & ACC_READ) && !(may & PERM_r))
        refuse_access(c, op, p, a->base, "reads");
}

/* A window of a grid constant would be a pointer into the host's memory. */
static void check_grid_window(ParCheck *c, const Op *op, const Access *a)
{
    const Mem *mem = pc_mem(c, a->base);
    if (mem && mem->family == MEMF_grid_constant &&
        a->base->type->kind == TK_window)
        pc_error(c, op, "memory",
                 "%s: %s cannot be a window inside a device "
                 "function",
                 par_text_value(a->base), par_text_mem(c->m, mem->ref));
}

/* ---- plain statements --------------------------------------------------- */

static void check_scalar(ParCheck *c, const Op *op, const Access *a, bool write)
{
    const Mem *mem = pc_mem(c, a->base);
    if (!mem || (write ? mem->scalar_write : mem->scalar_read))
        return;
    Diag *d = pc_error(c, op, "permission", "%s: %s does not allow scalar %s",
                       par_text_value(a->base), par_text_mem(c->m, mem->ref),
                       write ? "writes" : "reads");
    diag_fix(c->ctx, d, "use an instruction of the library on it");
}

static void check_mutate_unit(ParCheck *c, const Op *op, const Access *a)
{
    const Mem *mem = pc_mem(c, a->base);
    const ThreadSet *threads = par_threads(c->pi, op);
    if (!mem || !threads || !mem->scalar_write)
        return;
    const UnitRef *unit =
        mem->mutate_unit ? mem->mutate_unit
                         : unitref_get(c->ctx, 1, "standalone_thread", 0, NULL);
    const char *why;
    if (par_matches_unit(c->pi, op, unit, &why))
        return;
    Diag *d =
        pc_error(c, op, "unit",
                 "write to %s (%s) must be executed by "
                 "%s, found %lld threads: %s",
                 par_text_mem(c->m, mem->ref), par_text_value(a->base),
                 par_text_unit(c->m, unit), (long long)threads->threads, why);
    diag_fix(c->ctx, d,
             "put the statement in a loop `for t in "
             "cuda_threads(0, n, unit=%s)`",
             par_text_unit(c->m, unit));
}

static void check_statement(ParCheck *c, const Op *op, const Place *p)
{
    const Access *a = op->operands[0].u.access;
    bool write = op->code != OP_mem_load;
    unsigned flags = op->code == OP_mem_load    ? ACC_READ
                     : op->code == OP_mem_store ? ACC_WRITE
                                                : ACC_READ | ACC_REDUCE;
    check_access(c, op, p, a, flags);
    if (!p->cuda)
        return;
    check_grid_window(c, op, a);
    check_scalar(c, op, a, write);
    if (write)
        check_mutate_unit(c, op, a);
}

/* ---- instructions ------------------------------------------------------- */

static bool starts_with(const char *s, const char *prefix)
{
    return !strncmp(s, prefix, strlen(prefix));
}

static void check_instr_unit(ParCheck *c, const Op *op, const Instr *in)
{
    const ThreadSet *threads = par_threads(c->pi, op);
    const char *why;
    if (!threads || !in->unit || par_matches_unit(c->pi, op, in->unit, &why))
        return;
    Diag *d = pc_error(c, op, "unit",
                       "wrong collective unit (need %s) for "
                       "%s: %s",
                       par_text_unit(c->m, in->unit), in->name, why);
    diag_fix(c->ctx, d, "call it in a scope of one %s",
             par_text_unit(c->m, in->unit));
}

static void check_instr(ParCheck *c, const Op *op, const Place *outer)
{
    const Instr *in = op_instr(c->m, op);
    if (!in) {
        c->ok = false;
        return;
    }
    Place p = *outer;
    p.callee = in->name;
    p.timeline = in->timeline;
    if (starts_with(in->timeline, "cpu_") == outer->cuda) {
        pc_error(c, op, "scope",
                 "%s with instr-tl %s is not allowed in scope "
                 "using %s",
                 in->name, in->timeline, scope_text(outer));
        return;
    }
    for (unsigned i = 0; i < op->n_operands && i < in->n_params; i++) {
        if (op->operands[i].kind != OPND_access)
            continue;
        check_access(c, op, &p, op->operands[i].u.access, in->params[i].flags);
        if (p.cuda)
            check_grid_window(c, op, op->operands[i].u.access);
    }
    if (p.cuda)
        check_instr_unit(c, op, in);
}

/* ---- allocations and windows -------------------------------------------- */

static void check_alloc(ParCheck *c, const Op *op, const Place *p)
{
    const Value *v = op->results[0];
    const Mem *mem = pc_mem(c, op->results[0]);
    if (!mem)
        return;
    if (!(permission(mem->family, p) & PERM_c)) {
        Diag *d = pc_error(c, op, "permission",
                           "%s: %s cannot be allocated in "
                           "a scope using %s",
                           par_text_value(v), par_text_mem(c->m, mem->ref),
                           scope_text(p));
        diag_fix(c->ctx, d,
                 p->cuda ? "allocate it outside of the device "
                           "function"
                         : "allocate it in the task of a device "
                           "function");
    } else if (mem->family == MEMF_global && !v->type->rank) {
        pc_error(c, op, "memory",
                 "%s: %s does not allow access to a scalar "
                 "allocation; use a tensor of one element",
                 par_text_value(v), par_text_mem(c->m, mem->ref));
    }
}

static void check_window(ParCheck *c, const Op *op, const Place *p)
{
    const Value *v = op->results[0];
    const Value *base = op->operands[0].u.access->base;
    if (v->type->kind != TK_map || base->type->kind == TK_map || !p->cuda)
        return;
    pc_error(c, op, "permission",
             "%s: %s cannot be constructed in a scope "
             "using %s",
             par_text_value(v), par_text_mem(c->m, v->type->mem),
             scope_text(p));
}

/* ---- constructs of one side --------------------------------------------- */

static void check_host_loop(ParCheck *c, const Op *op)
{
    const char *mode = op_attr_str(op, "mode", "seq");
    if (!strcmp(mode, "threads") || !strcmp(mode, "tasks")) {
        const char *name =
            var_get(c->m->exprs, op->blocks[0]->args[0].var)->name;
        Diag *d = pc_error(c, op, "loop",
                           "unexpected loop mode cuda_%s in %s "
                           "loop",
                           mode, name ? name : "_");
        diag_fix(c->ctx, d, "put it in a CudaDeviceFunction");
    }
}

static void check_device_call(ParCheck *c, const Op *op)
{
    Diag *d = pc_error(c, op, "scope",
                       "%s is no instruction and cannot be "
                       "called in a device function",
                       op_attr_str(op, "callee", "_"));
    diag_fix(c->ctx, d, "inline the call");
}

/* The pass manager has put calls of what launches in line where it can. */
static void check_host_call(ParCheck *c, const Op *op)
{
    if (!op_launches(c->m, op))
        return;
    Diag *d = pc_error(c, op, "scope",
                       "%s launches a kernel: such a call is put in line, and "
                       "this one cannot be",
                       op_attr_str(op, "callee", "_"));
    diag_fix(
        c->ctx, d,
        "a procedure must not reach itself, tensors must lie in the memory "
        "of their parameters, and a bool must be a name or a constant");
}

static void refuse_on_host(ParCheck *c, const Op *op, const char *what)
{
    Diag *d = pc_error(c, op, "scope",
                       "%s is not allowed in a scope using "
                       "cpu_in_order",
                       what);
    diag_fix(c->ctx, d, "put it in a CudaDeviceFunction");
}

/* ---- configuration state ------------------------------------------------ */

/* A configuration field that the expression reads, or NULL. */
static const char *config_of(const Affine *e)
{
    const char *found = NULL;
    for (uint32_t i = 0; e && i < e->n_terms && !found; i++) {
        const Atom *a = e->terms[i].atom;
        bool read = a->kind == ATOM_opaque && a->opaque == OPAQUE_config;
        found = read ? a->name : config_of(a->arg);
        found = found ? found : config_of(a->lhs);
        found = found ? found : config_of(a->rhs);
    }
    return found;
}

static const char *config_of_cond(const Cond *k)
{
    const char *found = k ? config_of(k->expr) : NULL;
    found = k && !found ? config_of_cond(k->lhs) : found;
    return k && !found ? config_of_cond(k->rhs) : found;
}

static const char *config_of_operand(const Operand *o)
{
    if (o->kind == OPND_index)
        return config_of(o->u.index);
    if (o->kind == OPND_cond)
        return config_of_cond(o->u.cond);
    const char *found = NULL;
    const Access *a = o->kind == OPND_access ? o->u.access : NULL;
    for (unsigned i = 0; a && i < a->rank && !found; i++) {
        found = config_of(a->dims[i].lo);
        found = found ? found : config_of(a->dims[i].len);
    }
    return found;
}

/* It is state of the host, which no kernel sees. */
static void check_config(ParCheck *c, const Op *op)
{
    const char *field = op->code == OP_cfg_read || op->code == OP_cfg_write
                            ? op_attr_str(op, "field", "_")
                            : NULL;
    for (unsigned i = 0; i < op->n_operands && !field; i++)
        field = config_of_operand(&op->operands[i]);
    if (!field)
        return;
    Diag *d = pc_error(c, op, "scope",
                       "the configuration field %s is not allowed in a scope "
                       "using cuda_in_order",
                       field);
    diag_fix(c->ctx, d, "give the value to the procedure as a parameter");
}

static bool check_op(Op *op, void *user)
{
    ParCheck *c = user;
    Place p = { .cuda = pc_on_device(op) };
    p.timeline = p.cuda ? "cuda_in_order_instr" : "cpu_in_order_instr";
    if (p.cuda)
        check_config(c, op);
    switch (op->code) {
    case OP_mem_load:
    case OP_mem_store:
    case OP_mem_reduce:
        check_statement(c, op, &p);
        break;
    case OP_mem_alloc:
        check_alloc(c, op, &p);
        break;
    case OP_mem_window:
        check_window(c, op, &p);
        break;
    case OP_par_instr:
        check_instr(c, op, &p);
        break;
    case OP_ctl_for:
        if (!p.cuda)
            check_host_loop(c, op);
        break;
    case OP_ctl_call:
        if (p.cuda)
            check_device_call(c, op);
        else
            check_host_call(c, op);
        break;
    case OP_par_warps:
        if (!p.cuda)
            refuse_on_host(c, op, par_text_loop(c->m, op));
        break;
    case OP_par_fence:
    case OP_par_arrive:
    case OP_par_await:
        if (!p.cuda)
            refuse_on_host(c, op,
                           op->code == OP_par_fence    ? "Fence"
                           : op->code == OP_par_arrive ? "Arrive"
                                                       : "Await");
        break;
    default:
        break;
    }
    return true;
}

void check_par_scopes(ParCheck *c)
{
    op_walk(c->proc, check_op, c);
}
