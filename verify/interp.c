/* Statements and procedures in the interpreter.
 *
 * A recursive walk over the tree. Values and control variables live in arrays
 * indexed by their module-wide numbers (Scope), so nothing is looked up by name
 * or hash except a loop's native plan. The body of an instruction belongs to
 * another module and has its own Scope. */
#include "verify/interp_internal.h"

#include "ir/values.h"
#include "verify/nest.h"

#include <stdlib.h>
#include <string.h>

/* ---- environments -------------------------------------------------------- */

static void *regrow(void *p, size_t *n, size_t want, size_t size)
{
    if (want <= *n)
        return p;
    want += want / 2;
    p = realloc(p, want * size);
    if (!p)
        panic("interpreter: out of memory");
    memset((char *)p + *n * size, 0, (want - *n) * size);
    *n = want;
    return p;
}

Scope *interp_scope(Interp *in, Module *m)
{
    Scope *e = in->envs;
    while (e && e->m != m)
        e = e->next;
    if (!e) {
        e = ARENA_NEW(in->arena, Scope);
        e->m = m;
        e->next = in->envs;
        in->envs = e;
    }
    e->vars =
        regrow(e->vars, &e->n_vars, var_count(m->exprs) + 1, sizeof *e->vars);
    e->slots =
        regrow(e->slots, &e->n_slots, m->next_value + 1, sizeof *e->slots);
    return e;
}

View *interp_slot_view(Interp *in, Slot *s)
{
    if (!s->view)
        s->view = ARENA_NEW(in->arena, View);
    return s->view;
}

GIVES Interp *interp_new(Module *m)
{
    Interp *in = calloc(1, sizeof *in);
    if (!in)
        panic("interp_new: out of memory");
    in->m = m;
    in->arena = arena_new();
    in->sem = values_sem();
    in->nests = nest_cache_new();
    return in;
}

void interp_free(TAKES Interp *in)
{
    if (!in)
        return;
    for (Scope *e = in->envs; e; e = e->next) {
        for (size_t i = 0; i < e->n_slots; i++)
            tensor_free(e->slots[i].owned);
        free(e->vars);
        free(e->slots);
    }
    nest_cache_free(in->nests);
    arena_free(in->arena);
    free(in);
}

int64_t interp_task_count(const Interp *in)
{
    return in->tasks;
}

int64_t interp_task_nests(const Interp *in)
{
    return in->task_nests;
}

/* ---- faults -------------------------------------------------------------- */

static void add_iterators(StrBuf *out, const Scope *env, const Op *op)
{
    const Op *p = op_parent(op);
    if (!p)
        return;
    add_iterators(out, env, p);
    if (p->code != OP_ctl_for)
        return;
    VarId v = p->blocks[0]->args[0].var;
    strbuf_addf(out, "%s%s = %lld", out->len ? ", " : "",
                var_get(env->m->exprs, v)->name, (long long)env->vars[v]);
}

bool interp_fail(Interp *in, Scope *env, const Op *op, const char *code,
                 const char *fmt, ...)
{
    Ctx *ctx = in->m->ctx;
    va_list ap;
    va_start(ap, fmt);
    StrBuf text = { 0 }, at = { 0 };
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    Diag *d = diag_error(ctx, op->loc, code, "%s", strbuf_text(&text));
    add_iterators(&at, env, op);
    if (at.len)
        diag_witness(ctx, d, "%s", strbuf_text(&at));
    for (const Call *c = in->call; c; c = c->outer) {
        StrBuf where = { 0 };
        if (c->env)
            add_iterators(&where, c->env, c->at);
        diag_note(ctx, d, c->at->loc, "called here%s%s",
                  where.len ? " with " : "", strbuf_text(&where));
        strbuf_free(&where);
    }
    strbuf_free(&text);
    strbuf_free(&at);
    return false;
}

/* ---- scalars ------------------------------------------------------------- */

static bool run_load(Interp *in, Scope *env, const Op *op)
{
    Tensor *t = NULL;
    int64_t e = interp_element(in, env, op, op->operands[0].u.access, &t);
    if (e == VIEW_OUT_OF_BOUNDS)
        return false;
    double x = 0.0;
    if (e != VIEW_OUTSIDE_MAP) {
        if (!interp_check_written(in, env, op, t, e))
            return false;
        x = tensor_get(t, e);
    }
    scope_slot(env, op->results[0])->f = x;
    return true;
}

static bool run_store(Interp *in, Scope *env, const Op *op)
{
    Tensor *t = NULL;
    int64_t e = interp_element(in, env, op, op->operands[0].u.access, &t);
    if (e == VIEW_OUT_OF_BOUNDS)
        return false;
    if (e != VIEW_OUTSIDE_MAP)
        tensor_set(t, e, scope_slot(env, op->operands[1].u.value)->f);
    return true;
}

static bool run_reduce(Interp *in, Scope *env, const Op *op)
{
    Tensor *t = NULL;
    int64_t e = interp_element(in, env, op, op->operands[0].u.access, &t);
    if (e == VIEW_OUT_OF_BOUNDS)
        return false;
    if (e == VIEW_OUTSIDE_MAP)
        return true;
    if (!interp_check_written(in, env, op, t, e))
        return false;
    double x = tensor_get(t, e);
    double a = scope_slot(env, op->operands[1].u.value)->f;
    if (op->n_operands == 3)
        x = value_fma(t->elem, a, scope_slot(env, op->operands[2].u.value)->f,
                      x);
    else
        x = value_add(t->elem, x, a);
    tensor_set(t, e, x);
    return true;
}

static ConfigField *config_field(Interp *in, const char *field)
{
    ConfigField *f = in->config;
    while (f && strcmp(f->field, field) != 0)
        f = f->next;
    return f;
}

static bool run_config_read(Interp *in, Scope *env, const Op *op)
{
    const char *field = op_attr_str(op, "field", "");
    ConfigField *f = config_field(in, field);
    if (!f)
        return interp_fail(in, env, op, "poison",
                           "reads configuration field '%s', which was never "
                           "written",
                           field);
    scope_slot(env, op->results[0])->f = f->value;
    return true;
}

static bool run_config_write(Interp *in, Scope *env, const Op *op)
{
    const char *field = op_attr_str(op, "field", "");
    ConfigField *f = config_field(in, field);
    if (!f) {
        f = ARENA_NEW(in->arena, ConfigField);
        f->field = arena_strdup(in->arena, field);
        f->next = in->config;
        in->config = f;
    }
    f->value = scope_slot(env, op->operands[0].u.value)->f;
    return true;
}

static bool run_arith(Interp *in, Scope *env, const Op *op)
{
    double v[4] = { 0 };
    for (unsigned i = 0; i < op->n_operands && i < 4; i++)
        v[i] = scope_slot(env, op->operands[i].u.value)->f;
    scope_slot(env, op->results[0])->f = value_arith(&in->sem, op, v);
    return true;
}

bool interp_scalar_op(Interp *in, Scope *env, const Op *op)
{
    return run_arith(in, env, op);
}

/* ---- memory -------------------------------------------------------------- */

bool interp_value_extents(Interp *in, Scope *env, const Op *op, const Value *v,
                          int64_t *extent)
{
    if (v->type->rank > TENSOR_MAX_RANK)
        return interp_fail(in, env, op, "rank",
                           "a tensor of %u dimensions; the interpreter allows "
                           "%d",
                           v->type->rank, TENSOR_MAX_RANK);
    for (unsigned d = 0; d < v->type->rank; d++)
        if (!interp_index(in, env, op, v->shape[d], &extent[d]))
            return false;
    return true;
}

static bool same_extents(const Tensor *t, const int64_t *extent)
{
    for (unsigned d = 0; d < t->rank; d++)
        if (t->extent[d] != extent[d])
            return false;
    return true;
}

static bool run_alloc(Interp *in, Scope *env, const Op *op)
{
    const Value *v = op->results[0];
    int64_t extent[TENSOR_MAX_RANK] = { 0 };
    if (v->type->kind == TK_barrier)
        return true;
    if (!interp_value_extents(in, env, op, v, extent))
        return false;
    Slot *s = scope_slot(env, v);
    if (s->owned && same_extents(s->owned, extent)) {
        tensor_poison(s->owned);
        return true;
    }
    tensor_free(s->owned);
    s->owned = tensor_new(v->name, v->type->elem, v->type->rank, extent);
    if (!s->owned)
        return interp_fail(in, env, op, "size",
                           "cannot allocate this tensor: "
                           "an extent is negative, or it is too large");
    *interp_slot_view(in, s) = view_of(s->owned);
    return true;
}

static bool run_window(Interp *in, Scope *env, const Op *op)
{
    View w;
    const Access *a = op->operands[0].u.access;
    if (!interp_window(in, env, op, a, &w))
        return false;
    if (op->results[0]->type->kind == TK_map && a->base->type->kind != TK_map)
        view_make_map(&w);
    *interp_slot_view(in, scope_slot(env, op->results[0])) = w;
    return true;
}

/* ---- calls --------------------------------------------------------------- */

/* Binds one actual to a block argument of the callee. */
static bool bind_operand(Interp *in, Scope *from, const Op *op,
                         const Operand *actual, Scope *to,
                         const BlockArg *formal)
{
    int64_t i = 0;
    bool b = false;
    View w;
    switch (actual->kind) {
    case OPND_index:
        if (formal->value || !interp_index(in, from, op, actual->u.index, &i))
            break;
        to->vars[formal->var] = i;
        return true;
    case OPND_cond:
        if (formal->value || !interp_cond(in, from, op, actual->u.cond, &b))
            break;
        to->vars[formal->var] = b;
        return true;
    case OPND_access:
        if (!formal->value ||
            !interp_window(in, from, op, actual->u.access, &w))
            break;
        *interp_slot_view(in, scope_slot(to, formal->value)) = w;
        return true;
    case OPND_value:
        if (!formal->value)
            break;
        Slot *s = scope_slot(to, formal->value);
        if (actual->u.value->type->kind == TK_scalar) {
            tensor_free(s->owned);
            s->owned = tensor_new(formal->value->name,
                                  actual->u.value->type->elem, 0, NULL);
            tensor_set(s->owned, 0, scope_slot(from, actual->u.value)->f);
            *interp_slot_view(in, s) = view_of(s->owned);
            return true;
        }
        if (!scope_slot(from, actual->u.value)->view)
            break;
        *interp_slot_view(in, s) = *scope_slot(from, actual->u.value)->view;
        return true;
    }
    if (!ctx_error_count(in->m->ctx))
        interp_fail(in, from, op, "call",
                    "an argument does not fit its parameter");
    return false;
}

static bool run_callee(Interp *in, Scope *env, const Op *op, const Op *callee,
                       Module *m, unsigned n_actuals)
{
    for (const Call *c = in->call; c; c = c->outer)
        if (c->at == op)
            return interp_fail(in, env, op, "call",
                               "procedure '%s' calls itself",
                               op_attr_str(callee, "name", "?"));
    const Block *body = callee->blocks[0];
    if (body->n_args != n_actuals)
        return interp_fail(
            in, env, op, "call", "'%s' takes %u arguments, but %u are given",
            op_attr_str(callee, "name", "?"), body->n_args, n_actuals);
    Scope *to = interp_scope(in, m);
    for (unsigned i = 0; i < n_actuals; i++)
        if (!bind_operand(in, env, op, &op->operands[i], to, &body->args[i]))
            return false;
    Call call = { .at = op, .env = env, .outer = in->call };
    in->call = &call;
    bool ok = interp_block(in, to, body);
    in->call = call.outer;
    return ok;
}

static bool run_call(Interp *in, Scope *env, const Op *op)
{
    const char *name = op_attr_str(op, "callee", "");
    const Op *callee = module_symbol(env->m, name);
    if (!callee || callee->code != OP_ctl_proc)
        return interp_fail(in, env, op, "call", "no procedure '%s' here", name);
    return run_callee(in, env, op, callee, env->m, op->n_operands);
}

static bool run_instr(Interp *in, Scope *env, const Op *op)
{
    const Instr *instr = op_instr(env->m, op);
    if (!instr)
        return false;
    unsigned n = op->n_operands;
    if (op_attr_int(op, "trailing", 0) && n)
        n--;
    return run_callee(in, env, op, instr->body, instr->module, n);
}

/* ---- control ------------------------------------------------------------- */

static const Op *block_yield(const Block *b)
{
    return b->last && b->last->code == OP_ctl_yield ? b->last : NULL;
}

/* Moves n values at once, as the yields of a loop may permute them. */
static void move_values(Scope *env, const Operand *from,
                        const BlockArg *to_args, Value *const *to_results,
                        unsigned n)
{
    double few[8], *tmp = few;
    if (n > 8 && !(tmp = malloc(n * sizeof *tmp)))
        panic("interpreter: out of memory");
    for (unsigned i = 0; i < n; i++)
        tmp[i] = scope_slot(env, from[i].u.value)->f;
    for (unsigned i = 0; i < n; i++)
        if (to_args || to_results)
            scope_slot(env, to_args ? to_args[i].value : to_results[i])->f =
                tmp[i];
    if (tmp != few)
        free(tmp);
}

static bool loop_is_tasks(const Op *op)
{
    const char *mode = op_attr_str(op, "mode", NULL);
    return mode && !strcmp(mode, "tasks");
}

/* Is the body of this task loop another task loop? */
static bool loop_is_outer_tasks(const Op *op)
{
    for (const Op *o = op->blocks[0]->first; o; o = o->next)
        if (o->code == OP_ctl_for && loop_is_tasks(o))
            return true;
    return false;
}

/* Is it in the body of another task loop? */
static bool loop_is_inner_tasks(const Op *op)
{
    const Op *parent = op_parent(op);
    return parent && parent->code == OP_ctl_for && loop_is_tasks(parent);
}

/* Whether the next device task runs; counts it. */
static bool take_task(Interp *in)
{
    int64_t t = in->tasks++;
    const InterpOptions *o = &in->options;
    return !o->sample || (t < o->n_sample && o->sample[t]);
}

static bool is_watched(const Interp *in, const Scope *env, const Op *op)
{
    return in->options.watch && op->sid && env->m == in->m &&
           in->options.watched[op->sid];
}

static bool run_for(Interp *in, Scope *env, const Op *op)
{
    int64_t lo, hi;
    const Block *b = op->blocks[0];
    unsigned n = op->n_results;
    if (!in->options.plain && !n && !is_watched(in, env, op) &&
        nest_run(in, env, op))
        return true;
    if (!interp_index(in, env, op, op->operands[0].u.index, &lo) ||
        !interp_index(in, env, op, op->operands[1].u.index, &hi))
        return false;
    bool tasks = loop_is_tasks(op), task = tasks && !loop_is_outer_tasks(op);
    in->task_nests += tasks && !loop_is_inner_tasks(op);
    move_values(env, op->operands + 2, b->args + 1, NULL, n);
    for (int64_t i = lo; i < hi; i++) {
        env->vars[b->args[0].var] = i;
        if (task && !take_task(in))
            continue;
        if (!interp_block(in, env, b))
            return false;
        const Op *y = n ? block_yield(b) : NULL;
        if (y)
            move_values(env, y->operands, b->args + 1, NULL, n);
    }
    for (unsigned i = 0; i < n; i++)
        scope_slot(env, op->results[i])->f =
            scope_slot(env, b->args[1 + i].value)->f;
    return true;
}

static bool run_if(Interp *in, Scope *env, const Op *op)
{
    bool c;
    if (!interp_cond(in, env, op, op->operands[0].u.cond, &c))
        return false;
    const Block *b = c                  ? op->blocks[0]
                     : op->n_blocks > 1 ? op->blocks[1]
                                        : NULL;
    if (!b)
        return true;
    if (!interp_block(in, env, b))
        return false;
    const Op *y = op->n_results ? block_yield(b) : NULL;
    if (y)
        move_values(env, y->operands, NULL, op->results, op->n_results);
    return true;
}

static bool run_assert(Interp *in, Scope *env, const Op *op)
{
    bool c;
    if (!interp_cond(in, env, op, op->operands[0].u.cond, &c))
        return false;
    return c || interp_fail(in, env, op, "precondition",
                            "this assert does not hold for the arguments "
                            "given");
}

static bool run_op(Interp *in, Scope *env, const Op *op)
{
    switch (op->code) {
    case OP_mem_load:
        return run_load(in, env, op);
    case OP_mem_store:
        return run_store(in, env, op);
    case OP_mem_reduce:
        return run_reduce(in, env, op);
    case OP_ctl_for:
        return run_for(in, env, op);
    case OP_ctl_if:
        return run_if(in, env, op);
    case OP_ctl_call:
        return run_call(in, env, op);
    case OP_par_instr:
        return run_instr(in, env, op);
    case OP_ctl_assert:
        return run_assert(in, env, op);
    case OP_mem_alloc:
        return run_alloc(in, env, op);
    case OP_mem_window:
        return run_window(in, env, op);
    case OP_par_device:
    case OP_par_warps:
        return interp_block(in, env, op->blocks[0]);
    case OP_cfg_read:
        return run_config_read(in, env, op);
    case OP_cfg_write:
        return run_config_write(in, env, op);
    case OP_ctl_pass:
    case OP_ctl_yield:
    case OP_par_fence:
    case OP_par_arrive:
    case OP_par_await:
        return true;
    default:
        break;
    }
    const OpInfo *info = op_info(op->code);
    if (!strcmp(info->dialect, "arith"))
        return run_arith(in, env, op);
    if (in->options.hook)
        return in->options.hook(in->options.hook_user, in, env, op);
    return interp_fail(in, env, op, "level",
                       "'%s.%s' has no sequential meaning; the interpreter "
                       "runs procedures of the levels seq and par",
                       info->dialect, info->name);
}

bool interp_block(Interp *in, Scope *env, const Block *b)
{
    for (const Op *op = b->first; op; op = op->next) {
        if (!run_op(in, env, op))
            return false;
        if (is_watched(in, env, op) &&
            !in->options.watch(in->options.watch_user, in, env, op))
            return false;
    }
    return true;
}

/* ---- for hooks ----------------------------------------------------------- */

bool interp_operand_index(Interp *in, Scope *scope, const Op *op, unsigned i,
                          int64_t *out)
{
    return interp_index(in, scope, op, op->operands[i].u.index, out);
}

bool interp_operand_cond(Interp *in, Scope *scope, const Op *op, unsigned i,
                         bool *out)
{
    return interp_cond(in, scope, op, op->operands[i].u.cond, out);
}

bool interp_operand_view(Interp *in, Scope *scope, const Op *op, unsigned i,
                         View *out)
{
    const Operand *o = &op->operands[i];
    if (o->kind == OPND_access)
        return interp_window(in, scope, op, o->u.access, out);
    const View *v =
        o->kind == OPND_value ? scope_slot(scope, o->u.value)->view : NULL;
    if (!v)
        return interp_fail(in, scope, op, "call",
                           "operand %u is no tensor that was made before", i);
    *out = *v;
    return true;
}

int64_t interp_var(const Scope *scope, VarId var)
{
    return scope->vars[var];
}

void interp_set_result(Interp *in, Scope *scope, const Op *op, const View *v)
{
    *interp_slot_view(in, scope_slot(scope, op->results[0])) = *v;
}

bool interp_fault(Interp *in, Scope *scope, const Op *op, const char *code,
                  const char *message)
{
    return interp_fail(in, scope, op, code, "%s", message);
}

/* ---- running a procedure ------------------------------------------------- */

static bool bind_arg(Interp *in, Scope *env, const Op *proc, const BlockArg *a,
                     const ProcArg *arg)
{
    if (!a->value) {
        const Var *v = var_get(env->m->exprs, a->var);
        env->vars[a->var] = arg->value;
        if (v->kind == VAR_size && arg->value < 1)
            return interp_fail(in, env, proc, "size",
                               "size '%s' is %lld; a size is at least 1",
                               v->name, (long long)arg->value);
        return true;
    }
    if (!arg->tensor && !arg->view)
        return interp_fail(in, env, proc, "call",
                           "parameter '%s' was given no tensor",
                           a->value->name ? a->value->name : "?");
    View *v = interp_slot_view(in, scope_slot(env, a->value));
    *v = arg->view ? *arg->view : view_of(arg->tensor);
    return true;
}

/* Do the tensors have the extents that the signature states? */
static bool check_shapes(Interp *in, Scope *env, const Op *proc)
{
    const Block *b = proc->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++) {
        const Value *v = b->args[i].value;
        int64_t extent[TENSOR_MAX_RANK] = { 0 };
        if (!v)
            continue;
        const View *w = scope_slot(env, v)->view;
        if (!interp_value_extents(in, env, proc, v, extent))
            return false;
        for (unsigned d = 0; d < v->type->rank; d++)
            if (w->rank != v->type->rank || w->extent[d] != extent[d])
                return interp_fail(in, env, proc, "shape",
                                   "argument '%s' has another shape than the "
                                   "procedure states: extent %u should be "
                                   "%lld",
                                   v->name ? v->name : "?", d,
                                   (long long)extent[d]);
    }
    return true;
}

static bool run_body(Interp *in, Module *m, const Op *proc, const ProcArg *args,
                     unsigned n)
{
    const Block *b = proc->blocks[0];
    Scope *env = interp_scope(in, m);
    if (n != b->n_args)
        return interp_fail(in, env, proc, "call",
                           "'%s' takes %u arguments, but %u are given",
                           op_attr_str(proc, "name", "?"), b->n_args, n);
    for (unsigned i = 0; i < n; i++)
        if (!bind_arg(in, env, proc, &b->args[i], &args[i]))
            return false;
    return check_shapes(in, env, proc) && interp_block(in, env, b);
}

bool interp_run(Interp *in, const Op *proc, const ProcArg *args, unsigned n,
                const InterpOptions *options)
{
    in->options = options ? *options : (InterpOptions){ 0 };
    in->tasks = in->task_nests = 0;
    in->config = NULL;
    in->call = NULL;
    return run_body(in, in->m, proc, args, n);
}

bool interp_run_instr(Interp *in, const Instr *instr, const ProcArg *args,
                      unsigned n, const Op *at)
{
    Call call = { .at = at };
    in->call = &call;
    bool ok = run_body(in, instr->module, instr->body, args, n);
    in->call = NULL;
    return ok;
}
