/* Host outlining: what a kernel takes from its procedure, the launch, and the
 * host.proc with its argument checks.
 *
 * Checks are made once, here, of the procedure's asserts and of the rules of
 * passes/host_rules.h. Every reader of a host.proc then has the same ones. */
#include "passes/host_rules.h"
#include "passes/lower/lower.h"

#include <string.h>

/* ---- captures ------------------------------------------------------------ */

typedef struct Scan {
    Lower *L;
    bool *inside; /* by VarId: defined in the device function */
    bool *taken;  /* by VarId: captured */
    unsigned n_vars;
} Scan;

static bool note_inside(Op *op, void *user)
{
    Scan *s = user;
    for (unsigned i = 0; i < op->n_blocks; i++)
        for (unsigned j = 0; j < op->blocks[i]->n_args; j++)
            s->inside[op->blocks[i]->args[j].var] = true;
    return true;
}

static void capture_var(VarId v, void *user)
{
    Scan *s = user;
    if (v == 0 || v > s->n_vars || s->inside[v] || s->taken[v])
        return;
    s->taken[v] = true;
    Capture c = { .var = v };
    VEC_PUSH(s->L->scratch, &s->L->captures, c);
}

static void capture_index(Scan *s, const Affine *e)
{
    if (e)
        affine_walk_vars(e, capture_var, s);
}

static bool inside_device(Scan *s, const Value *v)
{
    for (const Op *op = v->def; op; op = op_parent(op))
        if (op == s->L->dev->op)
            return true;
    for (const Op *op = v->owner ? v->owner->parent : NULL; op;
         op = op_parent(op))
        if (op == s->L->dev->op)
            return true;
    return false;
}

static void capture_value(Scan *s, Value *v)
{
    if (inside_device(s, v))
        return;
    for (size_t i = 0; i < s->L->captures.len; i++)
        if (s->L->captures.data[i].value == v)
            return;
    Capture c = { .value = v };
    VEC_PUSH(s->L->scratch, &s->L->captures, c);
    for (unsigned d = 0; d < v->type->rank; d++)
        capture_index(s, v->shape[d]);
}

static void capture_operand(Scan *s, const Operand *o)
{
    if (o->kind == OPND_index)
        capture_index(s, o->u.index);
    else if (o->kind == OPND_cond)
        cond_walk_vars(o->u.cond, capture_var, s);
    else if (o->kind == OPND_access) {
        const Access *a = access_compose(s->L->m, o->u.access);
        capture_value(s, a->base);
        for (unsigned i = 0; i < a->rank; i++) {
            capture_index(s, a->dims[i].lo);
            capture_index(s, a->dims[i].len);
        }
    } else if (!inside_device(s, o->u.value))
        capture_value(s, o->u.value);
}

static bool capture_op(Op *op, void *user)
{
    Scan *s = user;
    for (unsigned i = 0; i < op->n_operands; i++)
        capture_operand(s, &op->operands[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        for (unsigned d = 0; d < op->results[i]->type->rank; d++)
            capture_index(s, op->results[i]->shape[d]);
    return true;
}

static bool capture_before(const Capture *a, const Capture *b)
{
    if (!a->value != !b->value)
        return !a->value;
    return a->value ? a->value->id < b->value->id : a->var < b->var;
}

void host_captures(Lower *L)
{
    unsigned n = var_count(L->m->exprs);
    Scan s = { L, ARENA_ARRAY(L->scratch, bool, n + 1),
               ARENA_ARRAY(L->scratch, bool, n + 1), n };
    op_walk(L->dev->op, note_inside, &s);
    s.inside[L->dev->cta] = true;
    s.inside[L->dev->warp] = true;
    s.inside[L->dev->lane] = true;
    op_walk(L->dev->op, capture_op, &s);
    for (size_t i = 1; i < L->captures.len; i++)
        for (size_t j = i; j > 0; j--) {
            Capture *a = &L->captures.data[j - 1], *b = a + 1;
            if (!capture_before(b, a))
                break;
            Capture t = *a;
            *a = *b;
            *b = t;
        }
}

/* ---- the launch ---------------------------------------------------------- */

static Access *whole_access(Lower *L, Value *v)
{
    Access *a = access_new(L->m, v);
    for (unsigned i = 0; i < a->rank; i++)
        a->dims[i] = (AccessDim){ .kind = DIM_interval,
                                  .lo = affine_const(L->m->exprs, 0),
                                  .len = v->shape[i] };
    return a;
}

void host_launch(Lower *L, Op *device)
{
    unsigned n = (unsigned)L->captures.len;
    Op *launch = op_new(L->m, OP_host_launch, device->loc, n, 0, 0);
    op_set_str(L->m, launch, "kernel", op_attr_str(L->kernel, "name", ""));
    for (unsigned i = 0; i < n; i++) {
        const Capture *c = &L->captures.data[i];
        if (!c->value)
            launch->operands[i] = opnd_index(affine_var(L->m->exprs, c->var));
        else if (c->value->type->kind == TK_map)
            launch->operands[i] = opnd_value(c->value);
        else
            launch->operands[i] = opnd_access(whole_access(L, c->value));
    }
    op_insert_before(device, launch);
    op_detach(device);
}

/* ---- checks -------------------------------------------------------------- */

static const char *plain_var(const ExprNames *n, VarId v)
{
    const Lower *L = n->user;
    return var_get(L->m->exprs, v)->name;
}

static const char *plain_tensor(const ExprNames *n, const void *value)
{
    (void)n;
    const Value *v = value;
    return v->name ? v->name : "tensor";
}

typedef struct Checks {
    Lower *L;
    Op *at; /* checks go before this op, or to the end of block */
    Block *block;
    Loc loc;
} Checks;

static void place(Checks *c, Op *op)
{
    if (c->at)
        op_insert_before(c->at, op);
    else
        block_append(c->block, op);
}

static void first_var(VarId v, void *user)
{
    VarId *first = user;
    if (*first == 0)
        *first = v;
}

static const char *cond_text(Lower *L, const Cond *c)
{
    ExprNames names = {
        .var = plain_var, .tensor = plain_tensor, .user = L, .exo = true
    };
    StrBuf b = { 0 };
    cond_print(&b, L->m->exprs, c, &names, 0);
    char *text = arena_strdup(L->scratch, strbuf_text(&b));
    strbuf_free(&b);
    return text;
}

static void place_rule(Checks *c, const HostRule *rule)
{
    Lower *L = c->L;
    Op *op;
    if (rule->tensor) {
        op = op_new(L->m, OP_host_align_check, c->loc, 1, 0, 0);
        op->operands[0] = opnd_value((Value *)rule->tensor);
        op_set_int(L->m, op, "bytes", rule->bytes);
    } else {
        op = op_new(L->m, OP_host_check, c->loc, 1, 0, 0);
        op->operands[0] = opnd_cond(rule->cond);
    }
    op_set_str(L->m, op, "message", rule->message);
    if (rule->argument)
        op_set_str(L->m, op, "argument", rule->argument);
    place(c, op);
}

/* Makes a check of each rule unless it holds by itself; one that cannot hold is
 * an error. */
static void place_rules(Checks *c, const HostRules *r)
{
    for (size_t i = 0; i < r->rules.len; i++) {
        const HostRule *rule = &r->rules.data[i];
        if (rule->cond && rule->cond->kind == COND_false)
            lower_error(c->L, c->loc, "tensor-map", "%s", rule->message);
        else if (rule->tensor || rule->stated ||
                 !cond_holds(c->L->m->exprs, rule->cond))
            place_rule(c, rule);
    }
}

/* ---- the host procedure -------------------------------------------------- */

static void check_assert(Checks *c, Op *op)
{
    Lower *L = c->L;
    const Cond *cond = op->operands[0].u.cond;
    VarId first = 0;
    cond_walk_vars(cond, first_var, &first);
    c->loc = op->loc;
    HostRule rule = { .cond = cond,
                      .argument =
                          first ? var_get(L->m->exprs, first)->name : NULL };
    rule.message = arena_printf(L->scratch, "the precondition %s does not hold",
                                cond_text(L, cond));
    if (!cond_holds(L->m->exprs, cond))
        place_rule(c, &rule);
}

static Op *replace_op(Lower *L, Op *old, OpCode code, unsigned n_operands,
                      unsigned n_results)
{
    Op *op = op_new(L->m, code, old->loc, n_operands, n_results, 0);
    op->sid = old->sid;
    op->comment = old->comment;
    op_insert_before(old, op);
    return op;
}

static void take_result(Lower *L, Block *block, Op *old, Op *op)
{
    Value *from = old->results[0];
    Value *to = op_set_result(L->m, op, 0, from->type, from->name);
    for (unsigned i = 0; i < from->type->rank; i++)
        to->shape[i] = from->shape[i];
    block_replace_value(block, from, to);
    op_detach(old);
}

static void host_window(Lower *L, Block *top, Op *op)
{
    if (op->results[0]->type->kind != TK_map)
        return;
    Access *window = op->operands[0].u.access;
    if (window->base->type->kind == TK_map) {
        op_detach(op);
        return;
    }
    Checks c = { L, op, NULL, op->loc };
    HostRules r = { .arena = L->scratch, .m = L->m };
    host_rules_map(&r, window);
    place_rules(&c, &r);
    Op *map = replace_op(L, op, OP_host_tensor_map, 1, 1);
    map->operands[0] = opnd_access(window);
    take_result(L, top, op, map);
}

/* Copies and fills by name of their lowering hooks. */
static void host_instr(Lower *L, Op *op)
{
    const Instr *in = op_instr(L->m, op);
    const char *hook = in && in->hook ? in->hook : "";
    Access *tensor[2] = { NULL, NULL };
    unsigned n = 0;
    for (unsigned i = 0; i < op->n_operands && n < 2; i++)
        if (op->operands[i].kind == OPND_access)
            tensor[n++] = op->operands[i].u.access;
    if (!strcmp(hook, "memset0") && n >= 1) {
        replace_op(L, op, OP_host_memset, 1, 0)->operands[0] =
            opnd_access(tensor[0]);
        op_detach(op);
    } else if (!strncmp(hook, "copy_", 5) && n == 2) {
        Op *copy = replace_op(L, op, OP_host_copy, 2, 0);
        copy->operands[0] = opnd_access(tensor[0]);
        copy->operands[1] = opnd_access(tensor[1]);
        op_set_str(L->m, copy, "direction", hook + 5);
        op_detach(op);
    } else
        lower_error(L, op->loc, "instruction",
                    "instruction '%s' cannot be called from host code",
                    op_attr_str(op, "callee", ""));
}

/* ---- rules of launches --------------------------------------------------- */

typedef struct Locals {
    const Block *top;
    bool found; /* a variable that is no parameter of the procedure */
} Locals;

static void see_var(VarId v, void *user)
{
    Locals *l = user;
    bool parameter = false;
    for (unsigned i = 0; i < l->top->n_args && !parameter; i++)
        parameter = !l->top->args[i].value && l->top->args[i].var == v;
    l->found |= !parameter;
}

/* Does the rule speak of a loop's iterator, so that it holds or not at each
 * launch? The others stand once, at the procedure's begin. */
static bool rule_is_local(const Block *top, const HostRule *rule)
{
    Locals l = { .top = top };
    if (rule->cond)
        cond_walk_vars(rule->cond, see_var, &l);
    return l.found;
}

static HostRules rules_where(const HostRules *r, const Block *top, bool local)
{
    HostRules out = { .arena = r->arena, .m = r->m };
    for (size_t i = 0; i < r->rules.len; i++)
        if (rule_is_local(top, &r->rules.data[i]) == local)
            VEC_PUSH(r->arena, &out.rules, r->rules.data[i]);
    return out;
}

static void check_launch(Lower *L, const Block *top, Op *launch)
{
    const Op *k = module_symbol(L->m, op_attr_str(launch, "kernel", ""));
    Checks c = { L, launch, NULL, launch->loc };
    HostRules tasks = { .arena = L->scratch, .m = L->m }, pieces = tasks;
    if (!k)
        return;
    host_rules_launch_tasks(&tasks, launch, k);
    tasks = rules_where(&tasks, top, true);
    place_rules(&c, &tasks);
    host_rules_pieces(&pieces, launch, k);
    place_rules(&c, &pieces);
}

static void host_block(Lower *L, Block *top, Block *b)
{
    for (Op *op = b->first, *next; op && !L->failed; op = next) {
        next = op->next;
        L->fault.at = op;
        switch (op->code) {
        case OP_ctl_assert: {
            Checks c = { L, op, NULL, op->loc };
            check_assert(&c, op);
            op_detach(op);
            break;
        }
        case OP_mem_window:
            host_window(L, top, op);
            break;
        case OP_mem_alloc:
            take_result(L, top, op, replace_op(L, op, OP_host_alloc, 0, 1));
            break;
        case OP_par_instr:
            host_instr(L, op);
            break;
        case OP_host_launch:
            check_launch(L, top, op);
            break;
        case OP_ctl_for:
        case OP_ctl_if:
            for (unsigned i = 0; i < op->n_blocks; i++)
                host_block(L, top, op->blocks[i]);
            break;
        default:
            break;
        }
    }
}

bool host_outline(Lower *L, Op *proc)
{
    Op *host = op_new(L->m, OP_host_proc, proc->loc, 0, 0, 0);
    host->n_blocks = 1;
    host->blocks = proc->blocks;
    host->blocks[0]->parent = host;
    host->comment = proc->comment;
    op_set_str(L->m, host, "name", op_attr_str(proc, "name", ""));
    op_insert_before(proc, host);
    op_detach(proc);
    Block *b = host->blocks[0];
    Checks c = { L, b->first, b, host->loc };
    HostRules r = { .arena = L->scratch, .m = L->m };
    for (unsigned i = 0; i < b->n_args; i++) {
        if (b->args[i].value)
            host_rules_strides(&r, b->args[i].value);
        else
            host_rules_control(&r, b->args[i].var);
    }
    for (size_t k = 0; k < L->task_counts.len; k++)
        host_rules_tasks(&r, L->task_counts.data[k]);
    r = rules_where(&r, b, false);
    place_rules(&c, &r);
    host_block(L, b, b);
    return !L->failed;
}
