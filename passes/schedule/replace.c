/* replace: a loop nest becomes the call of an instruction that does the same.
 *
 *     for i in seq(0, 16):                   copy(a[c, 0:16], b[k, 0:16])
 *         a[c, i] = b[k, i]
 *
 * The nest is unified with the body of the instruction's instance. Types and
 * extents that the call does not give are read off the nest first, then the
 * instance is made, which checks its where clauses. Parameters are unknown
 * windows: a parameter's index e against an index f of the nest gives the
 * window's start f - e, which must not use the nest's own iterators. What does
 * not fit is remembered by how far the comparison got; the farthest is told. */
#include "passes/schedule/ops.h"
#include "passes/schedule/pattern.h"

#include "ir/lib_entry.h"

enum { MAX_RANK = 16, MAX_PARAMS = 32 };

typedef struct Window {
    Value *base;                /* NULL: not met yet */
    int dim[MAX_RANK];          /* parameter dimension -> base dimension */
    const Affine *lo[MAX_RANK]; /* by base dimension */
    bool whole[MAX_RANK];       /* by base dimension */
} Window;

typedef struct Unify {
    Sched *s;
    const Instr *in; /* NULL: a procedure */
    const Block *params;
    CloneMap *map; /* the body's names -> the nest's */
    Window windows[MAX_PARAMS];
    VEC(VarId) inner; /* iterators of the nest met so far */
    unsigned matched, best;
    const char *mismatch;
    const Facts *facts;
} Unify;

/* Remembers why it does not fit, if the comparison got farther than before. */
static bool differ(Unify *u, const char *fmt, ...) EXO_PRINTF(2, 3);
static bool differ(Unify *u, const char *fmt, ...)
{
    if (u->mismatch && u->matched < u->best)
        return false;
    va_list ap;
    va_start(ap, fmt);
    u->mismatch = arena_vprintf(u->s->arena, fmt, ap);
    va_end(ap);
    u->best = u->matched;
    return false;
}

/* ---- accesses ---------------------------------------------------------- */

static bool uses_inner(const Unify *u, const Affine *e)
{
    for (size_t i = 0; i < u->inner.len; i++)
        if (affine_uses(e, u->inner.data[i]))
            return true;
    return false;
}

static bool same_index(Unify *u, const Affine *a, const Affine *b)
{
    return a && b &&
           (a == b ||
            affine_equal(u->s->prover, u->facts, a, b).answer == PROVE_yes);
}

/* The mapped index of dimension d of the parameter. */
static const Affine *param_index(Unify *u, const Access *p, unsigned d)
{
    return clone_index(u->map, p->dims[d].lo);
}

/* Gives dimension d, d - 1, .. 0 of the parameter dimensions below `top` of the
 * base, later ones first. */
static bool place_dims(Unify *u, Window *w, const Access *p, const Access *n,
                       int d, int top)
{
    if (d < 0) {
        for (int k = top - 1; k >= 0; k--)
            if (uses_inner(u, n->dims[k].lo))
                return false;
        return true;
    }
    for (int k = top - 1; k >= d; k--) {
        const Affine *diff = affine_sub(u->s->m->exprs, n->dims[k].lo,
                                        param_index(u, p, (unsigned)d));
        if (diff && !uses_inner(u, diff)) {
            w->dim[d] = k;
            w->lo[k] = diff;
            if (place_dims(u, w, p, n, d - 1, k))
                return true;
        }
        if (uses_inner(u, n->dims[k].lo))
            return false;
    }
    return false;
}

static bool open_window(Unify *u, unsigned i, const Access *p, const Access *n)
{
    Window *w = &u->windows[i];
    const Value *param = p->base;
    Window fresh = { .base = n->base };
    for (unsigned k = 0; k < n->rank; k++)
        fresh.lo[k] = n->dims[k].lo;
    if (n->rank > MAX_RANK || param->type->rank > n->rank ||
        !place_dims(u, &fresh, p, n, (int)p->rank - 1, (int)n->rank))
        return differ(u,
                      "the indices of %s are not those of '%s' and a "
                      "window's start",
                      sched_value_name(u->s, n->base), param->name);
    if (param->type->elem != n->base->type->elem)
        return differ(u, "%s has elements of type %s, '%s' of type %s",
                      sched_value_name(u->s, n->base),
                      scalar_type_name(n->base->type->elem), param->name,
                      scalar_type_name(param->type->elem));
    for (unsigned d = 0; d < p->rank; d++) {
        int k = fresh.dim[d];
        fresh.whole[k] = u->in && u->in->params[i].shape[d] < 0;
        if (fresh.whole[k] && fresh.lo[k] != affine_const(u->s->m->exprs, 0))
            return differ(u, "'%s' is taken whole in dimension %u", param->name,
                          d);
    }
    *w = fresh;
    return true;
}

static bool param_number(const Unify *u, const Value *v, unsigned *out)
{
    for (unsigned i = 0; i < u->params->n_args; i++)
        if (u->params->args[i].value == v) {
            *out = i;
            return true;
        }
    return false;
}

static bool unify_access(Unify *u, const Access *p, const Access *n)
{
    unsigned i;
    if (!param_number(u, p->base, &i))
        return differ(u, "the body has memory of its own");
    Window *w = &u->windows[i];
    if (!w->base)
        return open_window(u, i, p, n) && (u->matched++, true);
    if (w->base != n->base)
        return differ(u, "'%s' stands for both %s and %s", p->base->name,
                      sched_value_name(u->s, w->base),
                      sched_value_name(u->s, n->base));
    bool taken[MAX_RANK] = { false };
    for (unsigned d = 0; d < p->rank; d++) {
        int k = w->dim[d];
        taken[k] = true;
        const Affine *at =
            affine_add(u->s->m->exprs, w->lo[k], param_index(u, p, d));
        if (!same_index(u, at, n->dims[k].lo))
            return differ(u, "an index of %s is %s, expected %s",
                          sched_value_name(u->s, n->base),
                          sched_index_text(u->s, n->dims[k].lo),
                          sched_index_text(u->s, at));
    }
    for (unsigned k = 0; k < n->rank; k++)
        if (!taken[k] && !same_index(u, w->lo[k], n->dims[k].lo))
            return differ(u, "an index of %s is %s, expected %s",
                          sched_value_name(u->s, n->base),
                          sched_index_text(u->s, n->dims[k].lo),
                          sched_index_text(u->s, w->lo[k]));
    u->matched++;
    return true;
}

/* ---- values ------------------------------------------------------------ */

static bool unify_value(Unify *u, const Value *p, const Value *n);

static bool unify_pair(Unify *u, const Operand *p, const Operand *n)
{
    Unify before = *u;
    if (unify_value(u, p[0].u.value, n[0].u.value) &&
        unify_value(u, p[1].u.value, n[1].u.value))
        return true;
    before.best = u->best;
    before.mismatch = u->mismatch;
    *u = before;
    return unify_value(u, p[0].u.value, n[1].u.value) &&
           unify_value(u, p[1].u.value, n[0].u.value);
}

static const char *op_text(const Op *op)
{
    return op_info(op->code)->name;
}

static bool unify_value(Unify *u, const Value *p, const Value *n)
{
    const Op *a = p->def, *b = n->def;
    if (!a || !b || a->code != b->code)
        return differ(u, "expected %s, found %s", a ? op_text(a) : "a value",
                      b ? op_text(b) : "a value");
    if (p->type != n->type)
        return differ(u, "expected a value of type %s, found %s",
                      scalar_type_name(p->type->elem),
                      scalar_type_name(n->type->elem));
    u->matched++;
    if (a->code == OP_mem_load)
        return unify_access(u, a->operands[0].u.access,
                            b->operands[0].u.access);
    if (a->code == OP_arith_const)
        return op_attr_param(a, "value") == op_attr_param(b, "value") ||
               differ(u, "the literals differ");
    if (a->n_operands != b->n_operands)
        return differ(u, "%s has another number of operands", op_text(a));
    if (op_has(a, OPT_COMMUTES) && a->n_operands == 2)
        return unify_pair(u, a->operands, b->operands);
    for (unsigned i = 0; i < a->n_operands; i++)
        if (a->operands[i].kind != OPND_value ||
            !unify_value(u, a->operands[i].u.value, b->operands[i].u.value))
            return false;
    return true;
}

/* ---- statements -------------------------------------------------------- */

static bool unify_block(Unify *u, const Block *p, const Op *n, const Op *end);

static bool unify_assign(Unify *u, const Op *p, const Op *n)
{
    if (p->n_operands != n->n_operands)
        return differ(u, "one sum is fused, the other is not");
    if (!unify_access(u, p->operands[0].u.access, n->operands[0].u.access))
        return false;
    if (p->n_operands == 3)
        return unify_pair(u, p->operands + 1, n->operands + 1);
    return unify_value(u, p->operands[1].u.value, n->operands[1].u.value);
}

/* The number of trips of a loop of the body, when it is a number. */
static bool trips(const Op *loop, int64_t *n)
{
    int64_t lo, hi;
    if (!affine_is_const(loop->operands[0].u.index, &lo) ||
        !affine_is_const(loop->operands[1].u.index, &hi))
        return false;
    *n = hi - lo;
    return true;
}

/* A size of a procedure that stands alone as a bound is solved by it. */
static void solve_size(Unify *u, const Affine *bound, const Affine *found)
{
    VarId v;
    if (u->in || !affine_is_var(bound, &v))
        return;
    for (unsigned i = 0; i < u->params->n_args; i++)
        if (u->params->args[i].var == v && clone_index(u->map, bound) == bound)
            clone_map_index(u->map, v, found);
}

static bool unify_loop(Unify *u, const Op *p, const Op *n)
{
    VarId v = sched_loop_var(n);
    for (unsigned i = 0; i < 2; i++) {
        const Affine *e = p->operands[i].u.index;
        solve_size(u, e, n->operands[i].u.index);
        e = clone_index(u->map, e);
        if (!same_index(u, e, n->operands[i].u.index))
            return differ(u, "a bound of '%s' is %s, expected %s",
                          sched_stmt_text(u->s, n),
                          sched_index_text(u->s, n->operands[i].u.index),
                          sched_index_text(u->s, e));
    }
    clone_map_index(u->map, sched_loop_var(p), affine_var(u->s->m->exprs, v));
    VEC_PUSH(u->s->arena, &u->inner, v);
    u->matched++;
    return unify_block(u, p->blocks[0], n->blocks[0]->first, NULL);
}

static bool unify_if(Unify *u, const Op *p, const Op *n)
{
    if (clone_cond(u->map, p->operands[0].u.cond) != n->operands[0].u.cond ||
        p->n_blocks != n->n_blocks)
        return differ(u, "the conditions differ at '%s'",
                      sched_stmt_text(u->s, n));
    for (unsigned i = 0; i < p->n_blocks; i++)
        if (!unify_block(u, p->blocks[i], n->blocks[i]->first, NULL))
            return false;
    return true;
}

static bool unify_stmt(Unify *u, const Op *p, const Op *n)
{
    int64_t once, other;
    bool skip = p->code == OP_ctl_for && trips(p, &once) && once == 1 &&
                !(n->code == OP_ctl_for && trips(n, &other) && other == 1);
    if (skip) {
        clone_map_index(u->map, sched_loop_var(p),
                        clone_index(u->map, p->operands[0].u.index));
        return unify_block(u, p->blocks[0], n, n->next);
    }
    if (p->code != n->code)
        return differ(u, "expected %s, found '%s'", op_text(p),
                      sched_stmt_text(u->s, n));
    switch (p->code) {
    case OP_ctl_for:
        return unify_loop(u, p, n);
    case OP_ctl_if:
        return unify_if(u, p, n);
    case OP_mem_store:
    case OP_mem_reduce:
        return unify_assign(u, p, n);
    case OP_ctl_pass:
        return true;
    default:
        return differ(u, "'%s' is not compared", sched_stmt_text(u->s, n));
    }
}

static const Op *skip_values(const Op *op, const Op *end)
{
    while (op && op != end &&
           (!op_has(op, OPT_STMT) || op->code == OP_ctl_assert))
        op = op->next;
    return op == end ? NULL : op;
}

static bool unify_block(Unify *u, const Block *p, const Op *n, const Op *end)
{
    const Op *a = skip_values(p->first, NULL), *b = skip_values(n, end);
    for (; a && b;
         a = skip_values(a->next, NULL), b = skip_values(b->next, end))
        if (!unify_stmt(u, a, b))
            return false;
    if (a || b)
        return differ(u,
                      b ? "'%s' has no counterpart"
                        : "the nest ends before the body%s",
                      b ? sched_stmt_text(u->s, b) : "");
    return true;
}

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
    for (; p && p->kind == AST_for; p = p->body) {
        const AstExpr *hi =
            p->a->kind == AST_call && p->a->n == 3 ? p->a->args[2] : NULL;
        unsigned k = 0, count = p->pack ? family_rank(t->e) : 1;
        for (; k < count; k++) {
            int64_t extent = 0, known;
            bool loop = n && n->code == OP_ctl_for && trips(n, &extent);
            const char *name =
                !hi || (hi->kind != AST_name && hi->kind != AST_pack) ? NULL
                : p->pack ? arena_printf(t->s->arena, "%s%u", hi->name, k)
                          : hi->name;
            const Param *given = name ? targ_of(t, name) : NULL;
            known = given && given->kind == PARAM_int ? given->i : -1;
            if (known == 1 && extent != 1)
                continue;
            if (loop && name && (p->pack || is_tparam(t, name)))
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

/* NAME or NAME(key=literal, ..) */
static bool read_call(Targs *t, Loc loc, const char *text, const char **name)
{
    Build b;
    AstExpr *e =
        exo_syntax_expr(t->s->ctx, t->s->arena, loc, text, strlen(text));
    if (!e)
        return false;
    *name = ast_callee(e);
    if (!*name)
        return sched_fail(t->s, loc, "expected NAME or NAME(key=literal, ..)");
    build_init(&b, t->s->m, t->s->m->lib, t->s->arena);
    b.in_entry = true;
    for (unsigned i = 1; e->kind == AST_call && i < e->n; i++) {
        Param p;
        if (e->args[i]->kind != AST_keyword)
            return sched_fail(t->s, loc,
                              "arguments of data are found, not "
                              "given: write key=literal");
        if (!build_const(&b, e->args[i]->args[0], &p))
            return false;
        add_targ(t, e->args[i]->name, p);
    }
    return true;
}

/* ---- the call ---------------------------------------------------------- */

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
                                       : clone_index(u->map, param->shape[d]);
    }
    return a;
}

static bool check_bounds(Unify *u, const Access *a, Loc loc)
{
    ExprCtx *x = u->s->m->exprs;
    for (unsigned k = 0; k < a->rank; k++) {
        const AccessDim *d = &a->dims[k];
        const Affine *len = d->kind == DIM_point ? affine_const(x, 1) : d->len;
        const Cond *in = cond_and(
            x, cond_cmp(x, CMP_ge, d->lo, affine_const(x, 0)),
            cond_cmp(x, CMP_le, affine_add(x, d->lo, len), a->base->shape[k]));
        if (!sched_prove(u->s, u->facts, in, loc,
                         "the window of %s may leave its bounds in dimension "
                         "%u",
                         sched_value_name(u->s, a->base), k))
            return false;
    }
    return true;
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

/* The preconditions of the body, where the call will stand. */
static bool check_asserts(Unify *u, Loc loc)
{
    const Op *op = u->params->first;
    for (; op && op->code == OP_ctl_assert; op = op->next) {
        const Cond *c = clone_cond(u->map, op->operands[0].u.cond);
        if (!sched_prove(u->s, u->facts, c, loc,
                         "the precondition %s is not shown",
                         sched_cond_text(u->s, c)))
            return false;
    }
    return true;
}

static bool make_operands(Unify *u, Op *call, Loc loc)
{
    unsigned n = u->params->n_args;
    Access **args = ARENA_ARRAY(u->s->arena, Access *, n + 1);
    for (unsigned i = 0; i < n; i++) {
        const BlockArg *p = &u->params->args[i];
        if (!p->value) {
            const Affine *e = affine_var(u->s->m->exprs, p->var);
            const Affine *to = u->in ? NULL : clone_index(u->map, e);
            if (!to || to == e)
                return sched_fail(u->s, loc,
                                  "nothing in the nest determines "
                                  "argument %u",
                                  i + 1);
            call->operands[i] = opnd_index(to);
            continue;
        }
        if (!u->windows[i].base)
            return sched_fail(u->s, loc, "'%s' is not used by the body",
                              p->value->name);
        args[i] = window_access(u, i);
        call->operands[i] = opnd_access(args[i]);
        bool free = args[i]->base->type->kind == TK_map;
        if ((u->in && !check_memory(u, i, args[i], loc)) ||
            (!free && !check_bounds(u, args[i], loc)))
            return false;
    }
    return check_aliases(u, n, args, loc) && check_asserts(u, loc);
}

static bool finish(Unify *u, const SchedArg *a, OpCode code, const char *name,
                   unsigned n_targs, const Param *targs)
{
    Sched *s = u->s;
    Op *first = a[0].at.first, *last = a[0].at.last;
    if (!unify_block(u, u->params, stmt_first(first), last->next)) {
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

bool sched_replace(Sched *s, const SchedArg *a)
{
    Targs t = { .s = s };
    const char *name;
    Op *first = a[0].at.first;
    if (!read_call(&t, a[1].loc, a[1].s, &name))
        return false;
    if (sched_escapes(s, first, a[0].at.last))
        return sched_fail(s, a[0].loc,
                          "what the block defines is used behind "
                          "it");
    Unify u = { .s = s, .facts = prove_facts_at(s->arena, s->m, first) };
    Op *proc = module_symbol(s->m, name);
    t.e = proc ? NULL : lib_find(s->m->lib, AST_instr, name);
    if (!t.e) {
        if (!proc || proc->code != OP_ctl_proc || proc == s->proc)
            return sched_fail(s, a[1].loc, "no instruction or procedure '%s'",
                              name);
        u.params = proc->blocks[0];
        u.map = clone_map_new(s->m, s->m);
        return u.params->n_args <= MAX_PARAMS &&
               finish(&u, a, OP_ctl_call, name, 0, NULL);
    }
    const AstClause *body = entry_clause(t.e->decl, "body", NULL);
    unsigned n;
    Param *targs;
    read_types(&t, first);
    read_extents(&t, body ? body->body : NULL, first);
    order_targs(&t, &n, &targs);
    u.in = instr_instance(s->m->lib, a[1].loc, name, n, targs);
    if (!u.in)
        return false;
    if (u.in->n_params > MAX_PARAMS)
        return sched_fail(s, a[1].loc, "more than %d parameters", MAX_PARAMS);
    u.params = u.in->body->blocks[0];
    for (unsigned i = 0; i < u.params->n_args; i++)
        if (!u.params->args[i].value)
            return sched_fail(s, a[1].loc,
                              "'%s' takes an index, which is not found: "
                              "instructions over data alone can be named",
                              name);
    u.map = clone_map_new(s->m, u.in->module);
    return finish(&u, a, OP_par_instr, name, n, targs);
}
