/* The host ops, read for whoever carries them out. */
#include "verify/host_run.h"

#include "ir/eir_types.h"
#include "passes/abi.h"

typedef struct Owned {
    Tensor *tensor;
    struct Owned *next;
} Owned;

typedef struct Host {
    Module *m;
    Arena *arena;
    const HostActions *actions;
    Owned *owned; /* tensors made by host.alloc */
} Host;

static bool run_check(Interp *in, Scope *s, const Op *op)
{
    bool ok;
    if (!interp_operand_cond(in, s, op, 0, &ok))
        return false;
    return ok ||
           interp_fault(in, s, op, "precondition",
                        op_attr_str(op, "message", "an argument check failed"));
}

static bool run_tensor_map(Interp *in, Scope *s, const Op *op)
{
    View v;
    if (!interp_operand_view(in, s, op, 0, &v))
        return false;
    view_make_map(&v);
    interp_set_result(in, s, op, &v);
    return true;
}

static bool run_alloc(Host *h, Interp *in, Scope *s, const Op *op)
{
    int64_t extent[TENSOR_MAX_RANK];
    const Value *v = op->results[0];
    if (!interp_value_extents(in, s, op, v, extent))
        return false;
    Tensor *t = tensor_new(v->name, v->type->elem, v->type->rank, extent);
    if (!t)
        return interp_fault(in, s, op, "size",
                            "cannot allocate this tensor: "
                            "an extent is negative, or it is too large");
    Owned *o = ARENA_NEW(h->arena, Owned);
    *o = (Owned){ t, h->owned };
    h->owned = o;
    View w = view_of(t);
    interp_set_result(in, s, op, &w);
    return !h->actions->alloc || h->actions->alloc(h->actions->user, op, t);
}

static bool run_copy(Host *h, Interp *in, Scope *s, const Op *op)
{
    View to, from;
    bool fill = op->code == OP_host_memset;
    if (!interp_operand_view(in, s, op, 0, &to) ||
        (!fill && !interp_operand_view(in, s, op, 1, &from)))
        return false;
    if (!fill && to.tensor->elem != from.tensor->elem)
        return interp_fault(in, s, op, "type",
                            "the sides of a copy have different types");
    return h->actions->copy(h->actions->user, in, s, op, &to,
                            fill ? NULL : &from);
}

/* ---- launches ------------------------------------------------------------ */

bool host_given_value(const Env *env, const Atom *atom, int64_t *out)
{
    const HostGiven *g = env->user;
    for (unsigned i = 0; atom->kind == ATOM_var && i < g->n; i++)
        if (!g->kernel->args[i].value && g->kernel->args[i].var == atom->var) {
            *out = g->args[i].value;
            return true;
        }
    return false;
}

typedef struct Tasks {
    Env env;
    bool known, loops;
    int64_t most;
} Tasks;

static bool count_tasks(Op *op, void *user)
{
    Tasks *t = user;
    int64_t n = 1, lo, hi;
    if (op->code != OP_async_tasks)
        return true;
    for (unsigned d = 0; d < eir_first_carried(op) / 2 && t->known; d++)
        t->known = affine_eval(op->operands[2 * d].u.index, &t->env, &lo) &&
                   affine_eval(op->operands[2 * d + 1].u.index, &t->env, &hi) &&
                   !__builtin_mul_overflow(n, hi > lo ? hi - lo : 0, &n);
    t->most = n > t->most ? n : t->most;
    t->loops = true;
    return t->known;
}

int64_t host_launch_tasks(const Op *kernel, const HostArg *args, unsigned n)
{
    HostGiven given = { kernel->blocks[0], args, n };
    Tasks t = { .env = { host_given_value, &given }, .known = true };
    block_walk(kernel->blocks[0], count_tasks, &t);
    return t.known && t.loops ? t.most : INT64_MAX;
}

static bool read_arg(Interp *in, Scope *s, const Op *op, unsigned i,
                     HostArg *out)
{
    bool holds = false, ok;
    switch (op->operands[i].kind) {
    case OPND_index:
        return interp_operand_index(in, s, op, i, &out->value);
    case OPND_cond:
        ok = interp_operand_cond(in, s, op, i, &holds);
        out->value = holds;
        return ok;
    default:
        return interp_operand_view(in, s, op, i, &out->view);
    }
}

static bool run_launch(Host *h, Interp *in, Scope *s, const Op *op)
{
    const Op *kernel = module_symbol(h->m, op_attr_str(op, "kernel", ""));
    if (!kernel || kernel->code != OP_async_kernel ||
        kernel->blocks[0]->n_args != op->n_operands + ABI_N_COORDS)
        return interp_fault(in, s, op, "call",
                            "there is no kernel that takes these arguments");
    HostArg *args = ARENA_ARRAY(h->arena, HostArg, op->n_operands + 1);
    for (unsigned i = 0; i < op->n_operands; i++)
        if (!read_arg(in, s, op, i, &args[i]))
            return false;
    return h->actions->launch(h->actions->user, op, kernel, args,
                              op->n_operands);
}

static bool run_op(void *user, Interp *in, Scope *s, const Op *op)
{
    Host *h = user;
    switch (op->code) {
    case OP_host_check:
        return run_check(in, s, op);
    case OP_host_align_check:
        return true;
    case OP_host_tensor_map:
        return run_tensor_map(in, s, op);
    case OP_host_alloc:
        return run_alloc(h, in, s, op);
    case OP_host_copy:
    case OP_host_memset:
        return run_copy(h, in, s, op);
    case OP_host_launch:
        return run_launch(h, in, s, op);
    default:
        return interp_fault(in, s, op, "level",
                            "this op has no meaning on the host");
    }
}

bool host_run(Module *m, const Op *host, const ProcArg *args, unsigned n,
              const HostActions *actions)
{
    Host h = { .m = m, .arena = arena_new(), .actions = actions };
    Interp *in = interp_new(m);
    InterpOptions o = { .hook = run_op, .hook_user = &h };
    bool ok = interp_run(in, host, args, n, &o);
    for (Owned *t = h.owned; t; t = t->next)
        tensor_free(t->tensor);
    arena_free(h.arena);
    interp_free(in);
    return ok;
}
