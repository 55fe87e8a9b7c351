/* Procedures: names, calls in line and out of line, assertions, fixed sizes. */
#include "passes/rewrite.h"
#include "passes/schedule/ops.h"

/* The procedure's name, interned. */
static const char *own_name(Sched *s)
{
    return ctx_intern(s->ctx, op_attr_str(s->proc, "name", ""));
}

/* Callers see a difference from here on. */
static void interface_changes(Sched *s)
{
    kin_note(s->kin, KIN_breaks, own_name(s), NULL);
}

bool sched_rename(Sched *s, const SchedArg *a)
{
    if (module_symbol(s->m, a[0].s))
        return sched_fail(s, a[0].loc, "there is a procedure '%s' already",
                          a[0].s);
    kin_note(s->kin, KIN_rename, own_name(s), a[0].s);
    op_set_str(s->m, s->proc, "name", a[0].s);
    return true;
}

/* A copy before the procedure, to be scheduled by itself and called. */
bool sched_copy_proc(Sched *s, const SchedArg *a)
{
    if (module_symbol(s->m, a[0].s))
        return sched_fail(s, a[0].loc, "there is a procedure '%s' already",
                          a[0].s);
    Op *copy = op_clone(clone_map_new(s->m, s->m), s->proc);
    op_set_str(s->m, copy, "name", a[0].s);
    op_insert_before(s->proc, copy);
    kin_note(s->kin, KIN_copy, a[0].s, own_name(s));
    s->made = a[0].s;
    return true;
}

Value *sched_tensor_param(Sched *s, Loc loc, const char *name)
{
    const Block *b = s->proc->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value && b->args[i].value->name &&
            !strcmp(b->args[i].value->name, name))
            return b->args[i].value;
    sched_fail(s, loc, "there is no tensor parameter '%s'", name);
    return NULL;
}

/* Is the procedure called in the module? Its parameters are then given. */
static bool find_caller(Op *op, void *user)
{
    const char **name = user;
    if (op->code == OP_ctl_call && *name &&
        !strcmp(op_attr_str(op, "callee", ""), *name))
        *name = NULL;
    return *name != NULL;
}

bool sched_not_called(Sched *s, Loc loc)
{
    const char *name = op_attr_str(s->proc, "name", "");
    block_walk(s->m->body, find_caller, &name);
    return name || sched_fail(s, loc,
                              "the procedure is called: its interface "
                              "stays");
}

bool sched_set_arg_memory(Sched *s, const SchedArg *a)
{
    Value *v = sched_tensor_param(s, a[0].loc, a[0].s);
    const MemRef *mem = v ? sched_mem(s, a[1].loc, a[1].s) : NULL;
    if (!mem || !sched_not_called(s, a[0].loc))
        return false;
    v->type =
        type_tensor(s->ctx, v->type->kind, v->type->elem, v->type->rank, mem);
    interface_changes(s);
    return true;
}

bool sched_set_window(Sched *s, const SchedArg *a)
{
    Value *v = sched_tensor_param(s, a[0].loc, a[0].s);
    if (!v || !sched_not_called(s, a[0].loc))
        return false;
    if (v->type->rank == 0)
        return sched_fail(s, a[0].loc, "a scalar is no window");
    if (sched_uses_stride(s, v))
        return sched_fail(s, a[0].loc, "a stride of %s is read", v->name);
    v->type = type_tensor(s->ctx, a[1].i ? TK_window : TK_tensor, v->type->elem,
                          v->type->rank, v->type->mem);
    interface_changes(s);
    return true;
}

/* ---- simplify ---------------------------------------------------------- */

bool sched_simplify(Sched *s, const SchedArg *a)
{
    (void)a;
    PassCtx pc = { .ctx = s->ctx, .prover = s->prover, .scratch = s->arena };
    return pass_canonicalize(&pc, s->m);
}

/* ---- inline, call_eqv -------------------------------------------------- */

static Op *callee_of(Sched *s, const SchedArg *a)
{
    Op *call = a->at.first;
    Op *callee = call->code == OP_ctl_call
                     ? module_symbol(s->m, op_attr_str(call, "callee", ""))
                     : NULL;
    if (!callee)
        sched_fail(s, a->loc, "'%s' is no call of a procedure",
                   sched_stmt_text(s, call));
    return callee;
}

bool sched_inline(Sched *s, const SchedArg *a)
{
    Op *call = a[0].at.first, *callee = callee_of(s, &a[0]);
    if (!callee)
        return false;
    if (call_passes_condition(s->m, call))
        return sched_fail(s, a[0].loc, "the call passes a condition");
    Op *before = stmt_prev(call);
    if (!call_inline(s->m, call, call->n_operands, s->m, callee))
        return false;
    Op *begin = before ? stmt_next(before) : block_first_stmt(call->parent);
    edit_became(s->log, call, begin == call ? NULL : begin);
    s->result = 0;
    return true;
}

typedef struct Reach {
    Sched *s;
    unsigned depth;
    bool found;
} Reach;

/* Does what is below op call the procedure itself? */
static bool find_call_of_self(Op *op, void *user)
{
    enum { DEEPEST = 64 };
    Reach *r = user;
    Op *callee = op->code == OP_ctl_call
                     ? module_symbol(r->s->m, op_attr_str(op, "callee", ""))
                     : NULL;
    if (callee == r->s->proc || r->depth > DEEPEST)
        r->found = true;
    if (callee && !r->found) {
        r->depth++;
        block_walk(callee->blocks[0], find_call_of_self, r);
        r->depth--;
    }
    return !r->found;
}

static bool calls_self(Sched *s, Op *other)
{
    Reach r = { .s = s, .found = other == s->proc };
    block_walk(other->blocks[0], find_call_of_self, &r);
    return r.found;
}

/* Is the one a copy of the other, and nothing here reads the configuration in
 * which they differ? */
static bool kin_of_callee(Sched *s, const Op *callee, const SchedArg *other)
{
    const char *name = ctx_intern(s->ctx, op_attr_str(callee, "name", ""));
    KinDifference d = { 0 };
    if (!kin_equal(s->kin, s->arena, name, other->s, &d))
        return sched_fail(s, other->loc,
                          "'%s' is not shown to do what '%s' does", other->s,
                          name);
    for (size_t i = 0; i < d.fields.len; i++) {
        if (!sched_config_unread(s, d.fields.data[i], other->loc))
            return false;
        sched_config_differs(s, d.fields.data[i]);
    }
    s->reassociates |= d.reassociates;
    s->rounds |= d.rounds;
    return true;
}

bool sched_call_eqv(Sched *s, const SchedArg *a)
{
    Op *call = a[0].at.first, *callee = callee_of(s, &a[0]);
    Op *other = module_symbol(s->m, a[1].s);
    if (!callee)
        return false;
    if (!other || other->code != OP_ctl_proc)
        return sched_fail(s, a[1].loc, "there is no procedure '%s'", a[1].s);
    if (calls_self(s, other))
        return sched_fail(s, a[1].loc, "'%s' calls this procedure", a[1].s);
    if (!sched_procs_equal(s, callee, other) &&
        !kin_of_callee(s, callee, &a[1]))
        return false;
    op_set_str(s->m, call, "callee", a[1].s);
    edit_replace(s->log, call);
    return true;
}

/* ---- add_assertion, partial_eval --------------------------------------- */

/* What is asked of callers grows, so there must be none. */
bool sched_add_assertion(Sched *s, const SchedArg *a)
{
    Block *b = s->proc->blocks[0];
    Op *first = block_first_stmt(b);
    while (first && first->code == OP_ctl_assert && stmt_next(first))
        first = stmt_next(first);
    const Cond *c = first ? sched_cond(s, first, a[0].loc, a[0].s) : NULL;
    if (!c || !sched_not_called(s, a[0].loc))
        return false;
    Facts *f = prove_facts_at(s->arena, s->m, first);
    if (prove_satisfiable(s->prover, f, c).answer == PROVE_no)
        return sched_fail(s, a[0].loc, "%s never holds", a[0].s);
    Op *op = op_new(s->m, OP_ctl_assert, s->loc, 1, 0, 0);
    op->operands[0] = opnd_cond(c);
    edit_insert_before(s->log, first, op);
    interface_changes(s);
    return true;
}

static bool drop_param(Block *b, VarId v)
{
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value && b->args[i].var == v) {
            memmove(&b->args[i], &b->args[i + 1],
                    (b->n_args - i - 1) * sizeof *b->args);
            b->n_args--;
            return true;
        }
    return false;
}

bool sched_partial_eval(Sched *s, const SchedArg *a)
{
    Block *b = s->proc->blocks[0];
    ExprCtx *x = s->m->exprs;
    VarId v = 0;
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value &&
            !strcmp(var_get(x, b->args[i].var)->name, a[0].s))
            v = b->args[i].var;
    if (!v)
        return sched_fail(s, a[0].loc,
                          "there is no size or index parameter "
                          "'%s'",
                          a[0].s);
    if (var_get(x, v)->kind == VAR_size && a[1].i < 1)
        return sched_fail(s, a[1].loc, "a size is at least 1");
    if (!sched_not_called(s, a[0].loc) ||
        !sched_subst(s, b, v, affine_const(x, a[1].i)))
        return false;
    CloneMap *map = clone_map_new(s->m, s->m);
    clone_map_index(map, v, affine_const(x, a[1].i));
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value && !value_substitute(map, s->m, b->args[i].value))
            return sched_fail(s, a[1].loc, "an extent passes 64 bits");
    for (Op *op = b->first; op && op->code == OP_ctl_assert; op = op->next)
        if (cond_decide(x, op->operands[0].u.cond) == DECIDED_no)
            return sched_fail(s, a[1].loc,
                              "an assertion does not hold for %lld",
                              (long long)a[1].i);
    interface_changes(s);
    return drop_param(b, v);
}

/* ---- extract_subproc --------------------------------------------------- */

typedef struct Extract {
    Sched *s;
    VEC(VarId) vars;
    VEC(Value *) values;
    Op *odd;
} Extract;

static bool is_inside(const Op *first, const Op *last, const Op *op)
{
    for (; op; op = op_parent(op))
        for (const Op *r = first; r; r = r == last ? NULL : r->next)
            if (r == op)
                return true;
    return false;
}

static void need_var(VarId v, void *user)
{
    Extract *e = user;
    for (size_t i = 0; i < e->vars.len; i++)
        if (e->vars.data[i] == v)
            return;
    VEC_PUSH(e->s->arena, &e->vars, v);
}

static void need_value(Extract *e, Value *v, const Op *first, const Op *last)
{
    if (v->def && is_inside(first, last, v->def))
        return;
    for (size_t i = 0; i < e->values.len; i++)
        if (e->values.data[i] == v)
            return;
    VEC_PUSH(e->s->arena, &e->values, v);
    for (unsigned i = 0; v->shape && i < v->type->rank; i++)
        affine_walk_vars(v->shape[i], need_var, e);
}

typedef struct ExtractWalk {
    Extract *e;
    const Op *first, *last;
} ExtractWalk;

static bool need_op(Op *op, void *user)
{
    ExtractWalk *w = user;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_index)
            affine_walk_vars(o->u.index, need_var, w->e);
        else if (o->kind == OPND_cond)
            cond_walk_vars(o->u.cond, need_var, w->e);
        else if (o->kind == OPND_value)
            need_value(w->e, o->u.value, w->first, w->last);
        if (o->kind != OPND_access)
            continue;
        need_value(w->e, o->u.access->base, w->first, w->last);
        for (unsigned k = 0; k < o->u.access->rank; k++) {
            affine_walk_vars(o->u.access->dims[k].lo, need_var, w->e);
            if (o->u.access->dims[k].len)
                affine_walk_vars(o->u.access->dims[k].len, need_var, w->e);
        }
    }
    for (unsigned i = 0; i < op->n_results; i++)
        for (unsigned k = 0;
             op->results[i]->shape && k < op->results[i]->type->rank; k++)
            affine_walk_vars(op->results[i]->shape[k], need_var, w->e);
    if (op->code == OP_par_device || op->code == OP_par_warps ||
        op_has(op, OPT_SYNC))
        w->e->odd = op;
    return true;
}

/* Is the variable that of a loop inside the block? */
static bool is_loop_inside(Op *op, void *user)
{
    VarId *v = user;
    if (op->code == OP_ctl_for && *v && sched_loop_var(op) == *v)
        *v = 0;
    return *v != 0;
}

static void add_assert(Sched *s, Block *b, const Cond *c)
{
    Op *op = op_new(s->m, OP_ctl_assert, s->loc, 1, 0, 0);
    op->operands[0] = opnd_cond(c);
    block_append(b, op);
}

/* What holds of the block's variables where it stands becomes preconditions,
 * as far as they are about parameters. */
static void carry_facts(Extract *e, CloneMap *map, Block *b, Op *first)
{
    Sched *s = e->s;
    Facts *f = prove_facts_at(s->arena, s->m, first);
    for (size_t i = 0; i < f->conds.len; i++) {
        Extract probe = { .s = s };
        bool known = true;
        cond_walk_vars(f->conds.data[i], need_var, &probe);
        for (size_t k = 0; k < probe.vars.len && known; k++) {
            known = false;
            for (size_t j = 0; j < e->vars.len; j++)
                known |= e->vars.data[j] == probe.vars.data[k];
        }
        const Cond *c = known ? clone_cond(map, f->conds.data[i]) : NULL;
        if (c && c->kind != COND_true)
            add_assert(s, b, c);
    }
}

/* An access to all of v. */
static Access *whole_of(Sched *s, Value *v)
{
    Access *whole = access_new(s->m, v);
    for (unsigned k = 0; k < whole->rank; k++)
        whole->dims[k] = (AccessDim){ .kind = DIM_interval,
                                      .lo = affine_const(s->m->exprs, 0),
                                      .len = v->shape[k] };
    return whole;
}

static void extract_params(Extract *e, Op *proc, Op *call, CloneMap *map)
{
    Sched *s = e->s;
    ExprCtx *x = s->m->exprs;
    Block *b = proc->blocks[0];
    op_resize_operands(s->m, call, (unsigned)(e->vars.len + e->values.len));
    unsigned n = 0;
    for (size_t i = 0; i < e->vars.len; i++) {
        VarId v = e->vars.data[i];
        const Var *var = var_get(x, v);
        VarKind kind = var->kind == VAR_iter ? VAR_index : var->kind;
        VarId w = block_add_var(s->m, b, var->name, kind);
        clone_map_index(map, v, affine_var(x, w));
        call->operands[n++] = opnd_index(affine_var(x, v));
    }
    for (size_t i = 0; i < e->values.len; i++) {
        Value *v = e->values.data[i];
        Value *p = block_add_value(s->m, b, v->type, v->name);
        for (unsigned k = 0; k < v->type->rank; k++)
            p->shape[k] = clone_index(map, v->shape[k]);
        clone_map_value(map, v, p);
        call->operands[n++] = opnd_access(whole_of(s, v));
    }
}

/* Parameters are taken not to overlap. */
static bool values_are_apart(Extract *e, Op *first, Loc loc)
{
    Sched *s = e->s;
    Facts *f = prove_facts_at(s->arena, s->m, first);
    for (size_t i = 0; i < e->values.len; i++)
        for (size_t k = 0; k < i; k++) {
            Value *v = e->values.data[i], *w = e->values.data[k];
            if (effect_root(v) != effect_root(w))
                continue;
            const Access *p = access_compose(s->m, whole_of(s, v));
            const Access *q = access_compose(s->m, whole_of(s, w));
            if (p->base != q->base ||
                prove_disjoint(s->prover, f, p, q).answer != PROVE_yes)
                return sched_fail(s, loc,
                                  "%s and %s may share elements, and two "
                                  "parameters do not",
                                  sched_value_name(s, w),
                                  sched_value_name(s, v));
        }
    return true;
}

bool sched_extract_subproc(Sched *s, const SchedArg *a)
{
    Op *first = a[0].at.first, *last = a[0].at.last, *run = stmt_first(first);
    Extract e = { .s = s };
    ExtractWalk w = { &e, run, last };
    if (module_symbol(s->m, a[1].s))
        return sched_fail(s, a[1].loc, "there is a procedure '%s' already",
                          a[1].s);
    if (sched_escapes(s, first, last))
        return sched_fail(s, a[0].loc,
                          "what the block defines is used behind "
                          "it");
    for (Op *op = run; op; op = op == last ? NULL : op->next)
        op_walk(op, need_op, &w);
    if (e.odd || op_enclosing(first, OP_par_device))
        return sched_fail(s, a[0].loc, "code of a GPU stays in its procedure");
    size_t n = 0;
    for (size_t i = 0; i < e.vars.len; i++) {
        VarId v = e.vars.data[i];
        for (Op *op = run; op; op = op == last ? NULL : op->next)
            op_walk(op, is_loop_inside, &v);
        if (v)
            e.vars.data[n++] = v;
    }
    e.vars.len = n;
    if (!values_are_apart(&e, first, a[0].loc))
        return false;
    for (size_t i = 0; i < e.values.len; i++)
        if (e.values.data[i]->type->kind != TK_tensor &&
            e.values.data[i]->type->kind != TK_window)
            return sched_fail(s, a[0].loc, "%s cannot be a parameter",
                              sched_value_name(s, e.values.data[i]));
    Op *proc = op_new(s->m, OP_ctl_proc, s->loc, 0, 0, 1);
    Op *call = op_new(s->m, OP_ctl_call, s->loc, 0, 0, 0);
    CloneMap *map = clone_map_new(s->m, s->m);
    op_set_str(s->m, proc, "name", a[1].s);
    op_set_str(s->m, call, "callee", a[1].s);
    extract_params(&e, proc, call, map);
    carry_facts(&e, map, proc->blocks[0], first);
    for (Op *op = run; op; op = op == last ? NULL : op->next)
        block_append(proc->blocks[0], op_clone(map, op));
    op_insert_before(s->proc, proc);
    edit_insert_before(s->log, first, call);
    for (Op *op = first, *next; op; op = next) {
        next = op == last ? NULL : stmt_next(op);
        edit_erase(s->log, op);
    }
    s->result = call->sid;
    s->made = a[1].s;
    return true;
}

/* ---- configurations ---------------------------------------------------- */

/* Nothing in the procedure, or called by it, may read the field. */
bool sched_config_unread(Sched *s, const char *field, Loc loc)
{
    EffectVec e = { 0 };
    effects_of_block(s, s->proc->blocks[0], &e);
    for (size_t i = 0; i < e.len; i++)
        if (e.data[i].field && !strcmp(e.data[i].field, field) &&
            (e.data[i].flags & ACC_READ))
            return sched_fail(s, loc, "'%s' reads %s",
                              sched_stmt_text(s, e.data[i].op), field);
    return sched_not_called(s, loc);
}

void sched_config_differs(Sched *s, const char *field)
{
    kin_note(s->kin, KIN_modulo, own_name(s), ctx_intern(s->ctx, field));
}

/* May the value of a new statement be made here: are its reads of parameters,
 * which hold something, within bounds? */
static bool reads_fit(Sched *s, Op *stmt, Loc loc)
{
    Facts *f = prove_facts_at(s->arena, s->m, stmt);
    for (Op *op = stmt_first(stmt); op != stmt; op = op->next) {
        if (op->code != OP_mem_load)
            continue;
        if (!sched_read_fits(s, f, op->operands[0].u.access, loc))
            return false;
    }
    return true;
}

bool sched_write_config(Sched *s, const SchedArg *a)
{
    Op *mark = op_new(s->m, OP_ctl_pass, s->loc, 0, 0, 0);
    if (!sched_config_unread(s, a[1].s, a[1].loc))
        return false;
    if (a[0].at.after)
        op_insert_after(a[0].at.last, mark);
    else
        op_insert_before(stmt_first(a[0].at.first), mark);
    Op *op = sched_stmt(s, mark, a[2].loc,
                        arena_printf(s->arena, "%s = %s", a[1].s, a[2].s));
    if (op && op->code != OP_cfg_write)
        return sched_fail(s, a[1].loc, "'%s' is no field of a configuration",
                          a[1].s);
    if (op) {
        edit_insert_before(s->log, mark, op);
        sched_config_differs(s, a[1].s);
    }
    op_detach(mark);
    return op && reads_fit(s, op, a[2].loc);
}

bool sched_delete_config(Sched *s, const SchedArg *a)
{
    Op *op = a[0].at.first;
    if (op->code != OP_cfg_write)
        return sched_fail(s, a[0].loc, "'%s' writes no configuration",
                          sched_stmt_text(s, op));
    if (!sched_config_unread(s, op_attr_str(op, "field", ""), a[0].loc))
        return false;
    sched_config_differs(s, op_attr_str(op, "field", ""));
    if (!stmt_prev(op) && !stmt_next(op))
        edit_insert_after(s->log, op,
                          op_new(s->m, OP_ctl_pass, op->loc, 0, 0, 0));
    edit_erase(s->log, op);
    s->result = 0;
    return true;
}
