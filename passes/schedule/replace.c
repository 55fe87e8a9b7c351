/* replace: a loop nest becomes the call of an instruction that does the same.
 *
 *     for i in seq(0, 16):                   copy(a[c, 0:16], b[k, 0:16])
 *         a[c, i] = b[k, i]
 *
 * Types and extents that the call does not give are read off the nest first,
 * then the instance is made, which checks its where clauses, and the nest is
 * unified with its body (unify.c). What the parameters are found to be becomes
 * the call, when bounds, memories, preconditions and aliases allow it. */
#include "passes/schedule/ops.h"
#include "passes/schedule/pattern.h"
#include "passes/schedule/unify.h"

#include "ir/lib_entry.h"

/* ---- template arguments ------------------------------------------------ */

typedef struct Targs {
    Sched *s;
    const Entry *e;
    VEC(Param) args; /* what was given, then what was found */
} Targs;

static const Param *targ_of(const Targs *t, const char *name)
{
    for (size_t i = 0; i < t->args.len; i++)
        if (!strcmp(t->args.data[i].name, name))
            return &t->args.data[i];
    return NULL;
}

/* How many parameters a pack of the entry stands for. */
static unsigned family_rank(const Entry *e)
{
    bool ranked = e->is_member && e->member.kind == PARAM_int;
    return ranked ? (unsigned)e->member.i : 0;
}

static void add_targ(Targs *t, const char *name, Param p)
{
    p.name = ctx_intern(t->s->ctx, name);
    if (!targ_of(t, name))
        VEC_PUSH(t->s->arena, &t->args, p);
}

static bool is_tparam(const Targs *t, const char *name)
{
    for (const AstParam *a = t->e->decl->tparams; a; a = a->next)
        if (!strcmp(a->name, name))
            return true;
    return false;
}

/* The extents of a nest's loops against the bounds of the entry's text. */
static void read_extents(Targs *t, const AstStmt *p, const Op *n)
{
    while (p && p->kind == AST_assert)
        p = p->next;
    for (; p && p->kind == AST_for; p = p->body) {
        const AstExpr *hi =
            p->a->kind == AST_call && p->a->n == 3 ? p->a->args[2] : NULL;
        unsigned k = 0, count = p->pack ? family_rank(t->e) : 1;
        for (; k < count; k++) {
            int64_t extent = 0, known;
            bool loop = n && n->code == OP_ctl_for && unify_trips(n, &extent);
            const char *name =
                !hi || (hi->kind != AST_name && hi->kind != AST_pack) ? NULL
                : p->pack ? arena_printf(t->s->arena, "%s%u", hi->name, k)
                          : hi->name;
            const Param *given = name ? targ_of(t, name) : NULL;
            known = given && given->kind == PARAM_int ? given->i : -1;
            if (known == 1 && extent != 1)
                continue;
            if (loop && name && is_tparam(t, hi->name))
                add_targ(t, name, (Param){ .kind = PARAM_int, .i = extent });
            n = loop ? block_first_stmt(n->blocks[0]) : NULL;
        }
    }
}

typedef VEC(const char *) NameVec;

/* Names of parameters in the order in which an assignment uses them. */
static void names_of_expr(Targs *t, const AstExpr *e, NameVec *out)
{
    if (e->kind == AST_index && e->args[0]->kind == AST_name) {
        VEC_PUSH(t->s->arena, out, e->args[0]->name);
        return;
    }
    for (unsigned i = 0; i < e->n; i++)
        if (e->args[i])
            names_of_expr(t, e->args[i], out);
}

static const AstStmt *first_assign(const AstStmt *p)
{
    for (; p; p = p->next) {
        if (p->kind == AST_assign || p->kind == AST_reduce)
            return p;
        const AstStmt *inner = p->body ? first_assign(p->body) : NULL;
        if (inner)
            return inner;
    }
    return NULL;
}

typedef VEC(const Value *) BaseVec;

static void bases_of_value(Sched *s, const Value *v, BaseVec *out)
{
    const Op *op = v->def;
    if (!op)
        return;
    if (op->code == OP_mem_load)
        VEC_PUSH(s->arena, out, op->operands[0].u.access->base);
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i].kind == OPND_value)
            bases_of_value(s, op->operands[i].u.value, out);
}

static bool note_assign(Op *op, void *user)
{
    if (!*(Op **)user &&
        (op->code == OP_mem_store || op->code == OP_mem_reduce))
        *(Op **)user = op;
    return true;
}

/* Does the parameter's type name a type parameter? */
static bool typed_by_template(const Targs *t, const AstParam *a)
{
    const AstExpr *e = a->type;
    while (e->kind == AST_binary || e->kind == AST_index)
        e = e->args[0];
    if (e->kind == AST_list && e->n == 1)
        e = e->args[0];
    return e->kind == AST_name && is_tparam(t, e->name);
}

/* The element types of the nest's first assignment, by parameter. */
static void read_types(Targs *t, Op *first)
{
    Op *assign = NULL;
    NameVec names = { 0 };
    BaseVec bases = { 0 };
    const AstClause *body = entry_clause(t->e->decl, "body", NULL);
    const AstStmt *p = body ? first_assign(body->body) : NULL;
    op_walk(first, note_assign, &assign);
    if (!p || !assign)
        return;
    names_of_expr(t, p->a, &names);
    names_of_expr(t, p->b, &names);
    VEC_PUSH(t->s->arena, &bases, assign->operands[0].u.access->base);
    for (unsigned i = 1; i < assign->n_operands; i++)
        bases_of_value(t->s, assign->operands[i].u.value, &bases);
    for (const AstParam *a = t->e->decl->params; a; a = a->next)
        for (size_t i = 0; i < names.len && i < bases.len; i++)
            if (names.data[i] == a->name && typed_by_template(t, a)) {
                add_targ(t, a->name,
                         (Param){ .kind = PARAM_type,
                                  .i = bases.data[i]->type->elem });
                break;
            }
}

/* In the order of the call: types by parameter, then the template's. */
static void order_targs(Targs *t, unsigned *n, Param **out)
{
    VEC(Param) sorted = { 0 };
    Arena *arena = t->s->arena;
    for (const AstParam *a = t->e->decl->params; a; a = a->next) {
        const Param *p = targ_of(t, a->name);
        if (p)
            VEC_PUSH(arena, &sorted, *p);
    }
    for (const AstParam *a = t->e->decl->tparams; a; a = a->next) {
        unsigned count = a->pack ? family_rank(t->e) : 1;
        for (unsigned k = 0; k < count; k++) {
            const char *name =
                a->pack ? arena_printf(arena, "%s%u", a->name, k) : a->name;
            const Param *p = targ_of(t, name);
            if (p)
                VEC_PUSH(arena, &sorted, *p);
        }
    }
    for (size_t i = 0; i < t->args.len; i++) {
        bool in = false;
        for (size_t k = 0; k < sorted.len; k++)
            in |= sorted.data[k].name == t->args.data[i].name;
        if (!in)
            VEC_PUSH(arena, &sorted, t->args.data[i]);
    }
    *n = (unsigned)sorted.len;
    *out = sorted.data;
}

/* The syntax of NAME or NAME(key=value, ..). */
static AstExpr *read_call(Sched *s, Loc loc, const char *text,
                          const char **name)
{
    AstExpr *e = exo_syntax_expr(s->ctx, s->arena, loc, text, strlen(text));
    if (!e)
        return NULL;
    *name = ast_callee(e);
    if (!*name) {
        sched_fail(s, loc, "expected NAME or NAME(key=value, ..)");
        return NULL;
    }
    for (unsigned i = 1; e->kind == AST_call && i < e->n; i++)
        if (e->args[i]->kind != AST_keyword) {
            sched_fail(s, loc,
                       "arguments of data are found, not given: write "
                       "key=value for the others");
            return NULL;
        }
    return e;
}

/* Is it a size or index of the entry, which no literal need be? */
static bool is_number(const Entry *e, const char *name)
{
    for (const AstParam *a = e->decl->params; a; a = a->next)
        if (a->name == name)
            return a->type->kind == AST_name &&
                   scalar_type_is_control(scalar_type_from_name(
                       a->type->name, strlen(a->type->name)));
    return false;
}

static bool read_targs(Targs *t, const AstExpr *e)
{
    Build b;
    build_init(&b, t->s->m, t->s->m->lib, t->s->arena);
    b.in_entry = true;
    for (unsigned i = 1; e->kind == AST_call && i < e->n; i++) {
        Param p;
        if (is_number(t->e, e->args[i]->name))
            continue;
        if (!build_const(&b, e->args[i]->args[0], &p))
            return false;
        add_targ(t, e->args[i]->name, p);
    }
    return true;
}

/* The sizes and indices that are given, in names known at the nest. all: there
 * is nothing else to give. */
static bool read_numbers(Unify *u, Op *first, const AstExpr *e, bool all,
                         Loc loc)
{
    Build b;
    if (e->kind != AST_call || e->n < 2)
        return true;
    if (!sched_scope(u->s, first, false, &b))
        return false;
    for (unsigned i = 1; i < e->n; i++) {
        const AstExpr *k = e->args[i];
        unsigned at = 0;
        for (; at < u->params->n_args; at++)
            if (!u->params->args[at].value &&
                !strcmp(var_get(u->exprs, u->params->args[at].var)->name,
                        k->name))
                break;
        if (at == u->params->n_args && all)
            return sched_fail(u->s, loc, "there is no size or index '%s'",
                              k->name);
        if (at == u->params->n_args)
            continue;
        const Affine *to = build_index(&b, k->args[0]);
        if (!to)
            return false;
        unify_give(u, at, to);
    }
    return true;
}

/* ---- the call ---------------------------------------------------------- */

/* NULL: an extent is not determined. */
static Access *window_access(Unify *u, unsigned i)
{
    Window *w = &u->windows[i];
    const Value *param = u->params->args[i].value;
    Access *a = access_new(u->s->m, w->base);
    for (unsigned k = 0; k < a->rank; k++)
        a->dims[k] = (AccessDim){ .kind = DIM_point, .lo = w->lo[k] };
    for (unsigned d = 0; d < param->type->rank; d++) {
        AccessDim *dim = &a->dims[w->dim[d]];
        dim->kind = DIM_interval;
        dim->len = w->whole[w->dim[d]] ? w->base->shape[w->dim[d]]
                                       : unify_index(u, param->shape[d]);
        if (!dim->len)
            return NULL;
    }
    return a;
}

static bool check_memory(Unify *u, unsigned i, const Access *a, Loc loc)
{
    const InstrParam *p = &u->in->params[i];
    const MemRef *have = a->base->type->mem;
    if (!p->mem || !have || mem_is_a(u->s->m->lib, have, p->mem))
        return true;
    StrBuf b = { 0 };
    memref_print(&b, have, false);
    strbuf_add(&b, ", which is no ");
    memref_print(&b, p->mem, false);
    sched_fail(u->s, loc, "%s: %s is in %s", p->name,
               sched_value_name(u->s, a->base), strbuf_text(&b));
    strbuf_free(&b);
    return false;
}

/* Two arguments of which one is written must not share elements. */
static bool check_aliases(Unify *u, unsigned n, Access *const *args, Loc loc)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < i; k++) {
            if (!args[i] || !args[k] ||
                effect_root(args[i]->base) != effect_root(args[k]->base))
                continue;
            unsigned flags =
                u->in ? u->in->params[i].flags | u->in->params[k].flags
                      : ACC_WRITE;
            bool apart =
                args[i]->base == args[k]->base &&
                prove_disjoint(u->s->prover, u->facts, args[i], args[k])
                        .answer == PROVE_yes;
            if ((flags & ACC_WRITE) && !apart)
                return sched_fail(u->s, loc,
                                  "two arguments share elements of %s",
                                  sched_value_name(u->s, args[i]->base));
        }
    return true;
}

/* What stands for a parameter where a precondition reads a stride of it: a
 * window whose strides are those of its base. */
static void map_window(Unify *u, Facts *f, unsigned i, Access *a)
{
    Module *m = u->s->m;
    ExprCtx *x = m->exprs;
    const Value *param = u->params->args[i].value;
    Op *w = op_new(m, OP_mem_window, u->s->loc, 1, 1, 0);
    w->operands[0] = opnd_access(a);
    Value *v =
        op_set_result(m, w, 0,
                      type_tensor(u->s->ctx, TK_window, a->base->type->elem,
                                  param->type->rank, a->base->type->mem),
                      param->name);
    clone_map_value(u->map, param, v);
    if (a->base->type->kind == TK_map)
        return;
    for (unsigned k = 0, n = 0; k < a->rank; k++) {
        if (a->dims[k].kind != DIM_interval)
            continue;
        v->shape[n] = a->dims[k].len;
        facts_assume(f, cond_cmp(x, CMP_eq, affine_stride(x, v, n++),
                                 affine_stride(x, a->base, k)));
    }
}

/* The preconditions of the body, where the call will stand. */
static bool check_asserts(Unify *u, unsigned n, Access *const *args, Loc loc)
{
    const Op *op = u->params->first;
    Facts *f = facts_copy(u->s->arena, u->facts);
    if (op && op->code == OP_ctl_assert)
        for (unsigned i = 0; i < n; i++)
            if (args[i])
                map_window(u, f, i, args[i]);
    for (; op && op->code == OP_ctl_assert; op = op->next) {
        const Cond *c = clone_cond(u->map, op->operands[0].u.cond);
        if (!sched_prove(u->s, f, c, loc, "the precondition %s is not shown",
                         sched_cond_text(u->s, c)))
            return false;
    }
    return true;
}

/* A size that only an extent names takes the window to the end. */
static void find_extents(Unify *u)
{
    for (unsigned i = 0; i < u->params->n_args; i++) {
        const Value *param = u->params->args[i].value;
        const Window *w = &u->windows[i];
        for (unsigned d = 0; param && w->base && d < param->type->rank; d++) {
            int k = w->dim[d];
            unify_solve(
                u, param->shape[d],
                affine_sub(u->s->m->exprs, w->base->shape[k], w->lo[k]));
        }
    }
}

/* The operand for a size or index. A size is at least 1. */
static bool number_operand(Unify *u, unsigned i, Op *call, Loc loc)
{
    ExprCtx *x = u->s->m->exprs;
    const Var *v = var_get(u->exprs, u->params->args[i].var);
    const Affine *e = u->numbers[i];
    if (!e)
        return sched_fail(u->s, loc,
                          "nothing in the nest determines '%s': give it as "
                          "%s=..",
                          v->name, v->name);
    call->operands[i] = opnd_index(e);
    return v->kind != VAR_size ||
           sched_prove(u->s, u->facts,
                       cond_cmp(x, CMP_ge, e, affine_const(x, 1)), loc,
                       "the size %s of '%s' may be less than 1",
                       sched_index_text(u->s, e), v->name);
}

static bool data_operand(Unify *u, unsigned i, Op *call, Loc loc, Access **arg)
{
    const char *name = u->params->args[i].value->name;
    if (!u->windows[i].base)
        return sched_fail(u->s, loc, "'%s' is not used by the body", name);
    *arg = window_access(u, i);
    if (!*arg)
        return sched_fail(u->s, loc,
                          "nothing in the nest determines the extents of '%s'",
                          name);
    call->operands[i] = opnd_access(*arg);
    bool free = (*arg)->base->type->kind == TK_map;
    return (!u->in || check_memory(u, i, *arg, loc)) &&
           (free || sched_access_fits(u->s, u->facts, *arg, loc));
}

static bool make_operands(Unify *u, Op *call, Loc loc)
{
    unsigned n = u->params->n_args;
    Access **args = ARENA_ARRAY(u->s->arena, Access *, n + 1);
    find_extents(u);
    for (unsigned i = 0; i < n; i++)
        if (!(u->params->args[i].value ? data_operand(u, i, call, loc, &args[i])
                                       : number_operand(u, i, call, loc)))
            return false;
    return check_aliases(u, n, args, loc) && check_asserts(u, n, args, loc);
}

static bool finish(Unify *u, const SchedArg *a, OpCode code, const char *name,
                   unsigned n_targs, const Param *targs)
{
    Sched *s = u->s;
    Op *first = a[0].at.first, *last = a[0].at.last;
    if (!unify_nest(u, stmt_first(first), last->next)) {
        Diag *d = diag_error(s->ctx, a[0].loc, "schedule",
                             "the block is not what '%s' does", name);
        diag_note(s->ctx, d, (Loc){ 0 }, "closest: %s",
                  u->mismatch ? u->mismatch : "nothing is alike");
        return false;
    }
    Op *call = op_new(s->m, code, first->loc, u->params->n_args, 0, 0);
    op_set_str(s->m, call, "callee", name);
    if (n_targs)
        op_set_param(
            s->m, call, "targs",
            &(Param){ .kind = PARAM_tuple, .n = n_targs, .items = targs });
    if (!make_operands(u, call, a[0].loc))
        return false;
    edit_insert_before(s->log, first, call);
    for (Op *op = first, *next; op; op = next) {
        next = op == last ? NULL : stmt_next(op);
        edit_erase(s->log, op);
    }
    s->result = call->sid;
    return true;
}

static bool replace_by_proc(Unify *u, const SchedArg *a, const AstExpr *call,
                            Op *proc, const char *name)
{
    Sched *s = u->s;
    if (!proc || proc->code != OP_ctl_proc || proc == s->proc)
        return sched_fail(s, a[1].loc, "no instruction or procedure '%s'",
                          name);
    u->params = proc->blocks[0];
    u->exprs = s->m->exprs;
    u->map = clone_map_new(s->m, s->m);
    if (u->params->n_args > UNIFY_MAX_PARAMS)
        return sched_fail(s, a[1].loc, "more than %d parameters",
                          UNIFY_MAX_PARAMS);
    return read_numbers(u, a[0].at.first, call, true, a[1].loc) &&
           finish(u, a, OP_ctl_call, name, 0, NULL);
}

bool sched_replace(Sched *s, const SchedArg *a)
{
    Targs t = { .s = s };
    const char *name;
    Op *first = a[0].at.first;
    const AstExpr *call = read_call(s, a[1].loc, a[1].s, &name);
    if (!call)
        return false;
    if (sched_escapes(s, first, a[0].at.last))
        return sched_fail(s, a[0].loc,
                          "what the block defines is used behind "
                          "it");
    Unify u = { .s = s, .facts = prove_facts_at(s->arena, s->m, first) };
    Op *proc = module_symbol(s->m, name);
    t.e = proc ? NULL : lib_find(s->m->lib, AST_instr, name);
    if (!t.e)
        return replace_by_proc(&u, a, call, proc, name);
    const AstClause *body = entry_clause(t.e->decl, "body", NULL);
    unsigned n;
    Param *targs;
    if (!read_targs(&t, call))
        return false;
    read_types(&t, first);
    read_extents(&t, body ? body->body : NULL, first);
    order_targs(&t, &n, &targs);
    u.in = instr_instance(s->m->lib, a[1].loc, name, n, targs);
    if (!u.in)
        return false;
    if (u.in->n_params > UNIFY_MAX_PARAMS)
        return sched_fail(s, a[1].loc, "more than %d parameters",
                          UNIFY_MAX_PARAMS);
    u.params = u.in->body->blocks[0];
    u.exprs = u.in->module->exprs;
    u.map = clone_map_new(s->m, u.in->module);
    return read_numbers(&u, first, call, false, a[1].loc) &&
           finish(&u, a, OP_par_instr, name, n, targs);
}
