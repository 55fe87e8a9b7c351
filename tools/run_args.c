/* The arguments of a run: sizes and scalars from the command line, tensors made
 * by runtime/fill.h or read from .npy files, outputs poisoned. */
#include "tools/run.h"

#include "runtime/fill.h"
#include "runtime/npy.h"
#include "tools/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how parameters are used --------------------------------------------- */

/* The parameter of the top-level op whose storage v stands for; NULL when it
 * is another tensor. */
static const Value *storage_of(Value *v)
{
    for (;;) {
        v = value_root(v);
        bool map = v->def && (v->def->code == OP_mem_window ||
                              v->def->code == OP_host_tensor_map);
        if (!map)
            return v->owner ? v : NULL;
        v = v->def->operands[0].u.access->base;
    }
}

/* What is known of one kernel or procedure: flags by block argument. */
typedef struct KnownUses {
    const Op *top;
    unsigned *flags;
} KnownUses;

typedef VEC(KnownUses) KnownUsesVec;

typedef struct Uses {
    Run *r;
    Module *m;
    const Op *top;
    unsigned *flags;     /* by block argument of top */
    KnownUsesVec *known; /* of what was looked at before */
} Uses;

static unsigned *find_uses(Run *r, Module *m, const Op *top,
                           KnownUsesVec *known);

static void note_use(Uses *u, Value *v, unsigned flags)
{
    const Value *p = storage_of(v);
    if (p && p->owner == u->top->blocks[0])
        u->flags[p->index] |= flags;
}

/* A kernel or callee uses its parameters as its own body says. */
static void note_call(Uses *u, const Op *op, const char *key)
{
    Op *callee = module_symbol(u->m, op_attr_str(op, key, ""));
    if (!callee || callee == u->top)
        return;
    unsigned n = callee->blocks[0]->n_args;
    const unsigned *inner = find_uses(u->r, u->m, callee, u->known);
    for (unsigned i = 0; i < op->n_operands && i < n; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_access)
            note_use(u, o->u.access->base, inner[i]);
        else if (o->kind == OPND_value)
            note_use(u, o->u.value, inner[i]);
    }
}

static bool use_visit(Op *op, void *user)
{
    Uses *u = user;
    if (op->code == OP_ctl_call || op->code == OP_host_launch) {
        note_call(u, op, op->code == OP_ctl_call ? "callee" : "kernel");
        return true;
    }
    if (op->code == OP_mem_window || op->code == OP_host_tensor_map)
        return true;
    OpAccessVec list = { 0 };
    op_accesses(u->m, op, ctx_arena(u->r->ctx), &list);
    for (size_t i = 0; i < list.len; i++)
        if (!(list.data[i].flags & ACC_SYNC))
            note_use(u, list.data[i].access->base, list.data[i].flags);
    return true;
}

/* How each parameter of top is used. Each op is looked at once, so that also
 * procedures that call each other in a circle end. */
static unsigned *find_uses(Run *r, Module *m, const Op *top,
                           KnownUsesVec *known)
{
    for (size_t i = 0; i < known->len; i++)
        if (known->data[i].top == top)
            return known->data[i].flags;
    unsigned n = top->blocks[0]->n_args;
    Uses u = { .r = r, .m = m, .top = top, .known = known };
    u.flags = ARENA_ARRAY(ctx_arena(r->ctx), unsigned, n);
    KnownUses k = { top, u.flags };
    VEC_PUSH(ctx_arena(r->ctx), known, k);
    block_walk(top->blocks[0], use_visit, &u);
    return u.flags;
}

static RunUse use_of(unsigned flags)
{
    if (!(flags & (ACC_WRITE | ACC_REDUCE)))
        return RUN_input;
    return flags & (ACC_READ | ACC_REDUCE) ? RUN_both : RUN_output;
}

/* ---- names on the command line ------------------------------------------- */

/* The value of `name=value` given with an option that repeats, or NULL. */
static const char *named_value(const Run *r, const char *option,
                               const char *name)
{
    size_t n = strlen(name);
    const char *found = NULL;
    for (unsigned i = 0;; i++) {
        const char *v = options_nth(r->o, option, i);
        if (!v)
            return found;
        if (!strncmp(v, name, n) && v[n] == '=')
            found = v + n + 1;
    }
}

static const RunArg *find_arg(const Run *r, const char *name, size_t n)
{
    for (unsigned i = 0; i < r->n; i++)
        if (strlen(r->args[i].name) == n && !memcmp(r->args[i].name, name, n))
            return &r->args[i];
    return NULL;
}

/* Each name given with the option must be a parameter. */
static ToolStatus check_names(const Run *r, const char *option, bool tensor)
{
    for (unsigned i = 0;; i++) {
        const char *v = options_nth(r->o, option, i);
        if (!v)
            return TOOL_done;
        const char *eq = strchr(v, '=');
        if (!eq)
            return options_usage(r->o, "%s takes NAME=VALUE, not '%s'", option,
                                 v);
        const RunArg *a = find_arg(r, v, (size_t)(eq - v));
        if (!a || (tensor && !a->is_tensor))
            return options_usage(r->o, "%s %s: the procedure has no such %s",
                                 option, v, tensor ? "tensor" : "parameter");
    }
}

typedef struct Sizes {
    Run *r;
    bool *given;
    const char *unknown;
} Sizes;

static bool take_size(const char *name, size_t n, int64_t value, void *user)
{
    Sizes *s = user;
    RunArg *a = (RunArg *)find_arg(s->r, name, n);
    if (!a || a->is_tensor) {
        s->unknown = arena_strndup(s->r->o->arena, name, n);
        return false;
    }
    a->value = value;
    s->given[a - s->r->args] = true;
    return true;
}

static ToolStatus take_controls(Run *r)
{
    Sizes s = { .r = r, .given = ARENA_ARRAY(r->o->arena, bool, r->n) };
    const char *text = options_joined(r->o, "--size");
    if (text && !options_sizes(text, take_size, &s))
        return s.unknown ? options_usage(r->o,
                                         "--size: the procedure has no size "
                                         "'%s'",
                                         s.unknown)
                         : options_usage(r->o,
                                         "--size takes NAME=INTEGER,.., not "
                                         "'%s'",
                                         text);
    for (unsigned i = 0; i < r->n; i++) {
        RunArg *a = &r->args[i];
        const char *v = a->is_tensor ? NULL : named_value(r, "--arg", a->name);
        char *end = NULL;
        if (v) {
            errno = 0;
            a->value = strtoll(v, &end, 10);
            if (errno || end == v || *end)
                return options_usage(r->o, "--arg %s=%s: not an integer",
                                     a->name, v);
            s.given[i] = true;
        }
        if (!a->is_tensor && !s.given[i])
            return options_usage(r->o,
                                 "the procedure needs a value for '%s': "
                                 "give --size %s=N",
                                 a->name, a->name);
    }
    return TOOL_done;
}

/* ---- tensors ------------------------------------------------------------- */

static ToolStatus read_tensor(const Run *r, RunArg *a, const char *path)
{
    NpyArray npy;
    NpyError err;
    Tensor *t = a->tensor;
    if (!npy_read(path, &npy, &err)) {
        diag_error(r->ctx, (Loc){ 0 }, "file", "argument '%s' from '%s': %s",
                   a->name, path, err.text);
        return TOOL_wrong;
    }
    bool ok = npy_matches(&npy, t->elem, (int)t->rank, t->extent, &err);
    if (ok) {
        memcpy(t->bytes, npy.data, (size_t)t->count * t->elem_bytes);
        tensor_set_written(t);
    } else {
        diag_error(r->ctx, (Loc){ 0 }, "file", "argument '%s' from '%s': %s",
                   a->name, path, err.text);
    }
    npy_free(&npy);
    return ok ? TOOL_done : TOOL_wrong;
}

static ToolStatus scalar_tensor(const Run *r, RunArg *a, const char *text)
{
    char *end = NULL;
    double x = strtod(text, &end);
    if (end == text || *end || a->tensor->rank)
        return options_usage(r->o,
                             "--arg %s=%s: a number for a scalar is "
                             "needed",
                             a->name, text);
    tensor_set(a->tensor, 0, x);
    return TOOL_done;
}

static ToolStatus make_tensor(Run *r, unsigned i, const ProcArg *controls,
                              FillKind fill)
{
    RunArg *a = &r->args[i];
    const Value *v = r->proc->blocks[0]->args[i].value;
    int64_t extent[TENSOR_MAX_RANK];
    if (v->type->elem == TY_R) {
        diag_error(r->ctx, r->proc->loc, "type",
                   "parameter '%s' has the generic type R: give it a number "
                   "type before running",
                   a->name);
        return TOOL_wrong;
    }
    if (!interp_param_extents(r->m, r->proc, i, controls, extent))
        return TOOL_wrong;
    Tensor *t = tensor_new(a->name, v->type->elem, v->type->rank, extent);
    if (!t) {
        diag_error(r->ctx, r->proc->loc, "size",
                   "parameter '%s' does not fit memory at these sizes",
                   a->name);
        return TOOL_wrong;
    }
    a->tensor = t;
    const char *path = named_value(r, "--in", a->name);
    const char *value = named_value(r, "--arg", a->name);
    if (path)
        return read_tensor(r, a, path);
    if (value)
        return scalar_tensor(r, a, value);
    if (a->use == RUN_output)
        return TOOL_done;
    fill_range(fill, t->elem, fill_seed(r->seed, a->name), 0, (size_t)t->count,
               t->bytes);
    tensor_set_written(t);
    return TOOL_done;
}

typedef struct Rounding {
    const Module *m;
    bool found;
} Rounding;

static bool find_rounded(Op *op, void *user)
{
    Rounding *f = user;
    const Instr *in = op->code == OP_par_instr ? op_instr(f->m, op) : NULL;
    f->found = f->found || op_has(op, OPT_APPROX) || (in && instr_reorders(in));
    if (in && in->body)
        op_walk(in->body, find_rounded, f);
    return !f->found;
}

/* Are the results of small integers the same bits, however they are computed?
 */
static bool is_exact(const Run *r, FillKind fill)
{
    Rounding f = { .m = r->m };
    op_walk((Op *)r->proc, find_rounded, &f);
    return fill == FILL_INTS && !options_nth(r->o, "--in", 0) && !f.found;
}

ToolStatus run_make_args(Run *r)
{
    const Block *b = r->proc->blocks[0];
    FillKind fill = FILL_INTS;
    const char *kind = options_value(r->o, "--fill", "ints");
    if (!fill_kind_from_name(kind, &fill))
        return options_usage(r->o, "--fill takes ints or normal");
    r->exact = is_exact(r, fill);
    r->seed = (uint64_t)options_int(r->o, "--seed", 0);
    r->n = b->n_args;
    r->args = ARENA_ARRAY(r->o->arena, RunArg, r->n + 1);
    KnownUsesVec known = { 0 };
    const unsigned *flags = find_uses(r, r->m, r->proc, &known);
    for (unsigned i = 0; i < r->n; i++) {
        const Value *v = b->args[i].value;
        const char *name =
            v ? v->name : var_get(r->m->exprs, b->args[i].var)->name;
        r->args[i] = (RunArg){ .name = name ? name : "?",
                               .is_tensor = v != NULL,
                               .use = use_of(flags[i]) };
    }
    ToolStatus s = take_controls(r);
    s = s ? s : check_names(r, "--arg", false);
    s = s ? s : check_names(r, "--in", true);
    s = s ? s : check_names(r, "--out", true);
    ProcArg *controls = ARENA_ARRAY(r->o->arena, ProcArg, r->n + 1);
    for (unsigned i = 0; i < r->n; i++)
        controls[i].value = r->args[i].value;
    for (unsigned i = 0; i < r->n && !s; i++)
        if (r->args[i].is_tensor)
            s = make_tensor(r, i, controls, fill);
    return s;
}

GIVES ProcArg *run_copy_args(const Run *r)
{
    ProcArg *args = calloc(r->n + 1, sizeof *args);
    if (!args)
        panic("run_copy_args: out of memory");
    for (unsigned i = 0; i < r->n; i++) {
        args[i].value = r->args[i].value;
        if (!r->args[i].tensor)
            continue;
        args[i].tensor = r->args[i].use == RUN_input
                             ? r->args[i].tensor
                             : tensor_copy(r->args[i].tensor);
    }
    return args;
}

void run_free_args(const Run *r, TAKES ProcArg *args)
{
    for (unsigned i = 0; args && i < r->n; i++)
        if (args[i].tensor != r->args[i].tensor)
            tensor_free(args[i].tensor);
    free(args);
}

/* ---- results ------------------------------------------------------------- */

ToolStatus run_write_outputs(const Run *r, const ProcArg *args)
{
    NpyError err;
    for (unsigned i = 0; i < r->n; i++) {
        const Tensor *t = args[i].tensor;
        const char *path = t ? named_value(r, "--out", r->args[i].name) : NULL;
        if (path && !npy_write(path, t->elem, (int)t->rank, t->extent, t->bytes,
                               &err)) {
            diag_error(r->ctx, (Loc){ 0 }, "file", "%s", err.text);
            return TOOL_wrong;
        }
    }
    return TOOL_done;
}

void run_print_outputs(const Run *r, const ProcArg *args)
{
    for (unsigned i = 0; i < r->n; i++) {
        const Tensor *t = args[i].tensor;
        if (!t || r->args[i].use == RUN_input)
            continue;
        printf("%s: %s[", r->args[i].name, scalar_type_name(t->elem));
        for (unsigned d = 0; d < t->rank; d++)
            printf("%s%lld", d ? ", " : "", (long long)t->extent[d]);
        printf("] %016llx\n",
               (unsigned long long)hash_bytes(
                   HASH_SEED, t->bytes, (size_t)t->count * t->elem_bytes));
    }
}
