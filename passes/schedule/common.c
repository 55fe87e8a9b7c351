/* What operators share: reports, names in scope, proofs, loops. */
#include "passes/schedule/schedule.h"

#include "ir/lib_entry.h"
#include "passes/rewrite.h"

#include <limits.h>
#include <string.h>

bool sched_fail(Sched *s, Loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(s->arena, fmt, ap);
    va_end(ap);
    diag_error(s->ctx, loc, "schedule", "%s", text);
    return false;
}

/* ---- scope ------------------------------------------------------------- */

const ExoListing *sched_listing(Sched *s)
{
    if (s->listing)
        return s->listing;
    ExoListing *l = ARENA_NEW(s->arena, ExoListing);
    if (!exo_list_proc(s->m, s->proc, s->arena, l))
        return NULL;
    s->listing = l;
    return l;
}

static void bind_value(Sched *s, Build *b, Value *v)
{
    bool known = v->id < s->listing->n_values_named;
    const char *name = known ? s->listing->value_names[v->id] : NULL;
    if (name)
        build_bind(b, ctx_intern(s->ctx, name), s->loc, BIND_value)->value = v;
}

static void bind_var(Sched *s, Build *b, VarId v)
{
    bool known = v < s->listing->n_vars_named;
    const char *name = known ? s->listing->var_names[v] : NULL;
    if (name)
        build_bind(b, ctx_intern(s->ctx, name), s->loc, BIND_var)->var = v;
}

static void bind_args(Sched *s, Build *b, const Block *block)
{
    for (unsigned i = 0; i < block->n_args; i++)
        if (block->args[i].value)
            bind_value(s, b, block->args[i].value);
        else
            bind_var(s, b, block->args[i].var);
}

/* Outer blocks first. Nesting is bounded by the parsers. */
static void bind_before(Sched *s, Build *b, Op *at)
{
    if (!at->parent || !at->parent->parent)
        return;
    bind_before(s, b, at->parent->parent);
    bind_args(s, b, at->parent);
    for (Op *op = at->parent->first; op && op != at; op = op->next)
        for (unsigned i = 0; i < op->n_results; i++)
            bind_value(s, b, op->results[i]);
}

static Op *find_proc(Build *b, const char *name)
{
    return module_symbol(b->m, name);
}

bool sched_scope(Sched *s, Op *at, bool inside, Build *b)
{
    if (!sched_listing(s))
        return false;
    build_init(b, s->m, s->m->lib, s->arena);
    b->proc = find_proc;
    b->in_device = op_enclosing(at, OP_par_device) != NULL;
    bind_before(s, b, at);
    if (inside)
        bind_args(s, b, at->blocks[0]);
    return true;
}

static AstExpr *syntax(Sched *s, Loc loc, const char *text)
{
    return exo_syntax_expr(s->ctx, s->arena, loc, text, strlen(text));
}

const Affine *sched_index(Sched *s, Op *at, Loc loc, const char *text)
{
    Build b;
    AstExpr *e = syntax(s, loc, text);
    return e && sched_scope(s, at, false, &b) ? build_index(&b, e) : NULL;
}

const Cond *sched_cond(Sched *s, Op *at, Loc loc, const char *text)
{
    Build b;
    AstExpr *e = syntax(s, loc, text);
    return e && sched_scope(s, at, false, &b) ? build_cond(&b, e) : NULL;
}

/* Intervals are written as in windows, which only an indexing may hold. */
Access *sched_access(Sched *s, Op *at, Loc loc, const char *text)
{
    Build b;
    AstExpr *e = syntax(s, loc, text);
    return e && sched_scope(s, at, false, &b) ? build_access(&b, e, true)
                                              : NULL;
}

const MemRef *sched_mem(Sched *s, Loc loc, const char *text)
{
    Build b;
    AstExpr *e = syntax(s, loc, text);
    if (!e)
        return NULL;
    build_init(&b, s->m, s->m->lib, s->arena);
    return build_mem(&b, e);
}

Op *sched_stmt(Sched *s, Op *at, Loc loc, const char *text)
{
    Build b;
    AstStmt *t = exo_syntax_stmt(s->ctx, s->arena, loc, text);
    if (!t || !sched_scope(s, at, false, &b))
        return NULL;
    Block *block = block_new(s->m, NULL);
    b.block = block;
    build_stmts(&b, t);
    return b.failed ? NULL : block_last_stmt(block);
}

/* ---- texts for messages ------------------------------------------------ */

static const char *var_text(const ExprNames *n, VarId v)
{
    const Sched *s = n->user;
    bool known = s->listing && v < s->listing->n_vars_named;
    const char *name = known ? s->listing->var_names[v] : NULL;
    return name ? name : var_get(s->m->exprs, v)->name;
}

static const char *tensor_text(const ExprNames *n, const void *value)
{
    return sched_value_name(n->user, value);
}

const char *sched_value_name(Sched *s, const Value *v)
{
    bool known = s->listing && v->id < s->listing->n_values_named;
    const char *name = known ? s->listing->value_names[v->id] : NULL;
    return name ? name : v->name ? v->name : "a value";
}

static ExprNames names_of(Sched *s)
{
    return (ExprNames){
        .var = var_text, .tensor = tensor_text, .user = s, .exo = true
    };
}

const char *sched_index_text(Sched *s, const Affine *e)
{
    StrBuf b = { 0 };
    ExprNames names = names_of(s);
    if (!e)
        return "an expression beyond 64 bits";
    affine_print(&b, s->m->exprs, e, &names, 0);
    const char *text = arena_strdup(s->arena, strbuf_text(&b));
    strbuf_free(&b);
    return text;
}

const char *sched_cond_text(Sched *s, const Cond *c)
{
    StrBuf b = { 0 };
    ExprNames names = names_of(s);
    if (!c)
        return "a condition beyond 64 bits";
    cond_print(&b, s->m->exprs, c, &names, 0);
    const char *text = arena_strdup(s->arena, strbuf_text(&b));
    strbuf_free(&b);
    return text;
}

const char *sched_stmt_text(Sched *s, const Op *op)
{
    const ExoListing *l = s->listing;
    while (!op_has(op, OPT_STMT) && op->next)
        op = op->next;
    for (size_t i = 0; l && i < l->marks.len; i++) {
        const ExoMark *k = &l->marks.data[i];
        if (k->op != op)
            continue;
        const char *at = l->text + k->at;
        at += strspn(at, " ");
        return arena_strndup(s->arena, at, strcspn(at, "\n"));
    }
    return op_info(op->code)->name;
}

/* ---- proofs ------------------------------------------------------------ */

bool sched_implied(Sched *s, const Facts *f, const Cond *c)
{
    return prove_implied(s->prover, f, c).answer == PROVE_yes;
}

bool sched_prove(Sched *s, const Facts *f, const Cond *c, Loc loc,
                 const char *fmt, ...)
{
    Proof p = prove_implied(s->prover, f, c);
    if (p.answer == PROVE_yes)
        return true;
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(s->arena, fmt, ap);
    va_end(ap);
    Diag *d = diag_error(s->ctx, loc, "schedule", "%s", what);
    if (p.answer == PROVE_no) {
        StrBuf w = { 0 };
        ExprNames names = names_of(s);
        proof_witness(&w, s->m->exprs, &p, &names);
        diag_witness(s->ctx, d, "%s", strbuf_text(&w));
        strbuf_free(&w);
        return false;
    }
    diag_note(s->ctx, d, (Loc){ 0 }, "not decided: %s; refused, as unknown is",
              p.reason ? p.reason : "the question passes 64 bits");
    return false;
}

/* ---- new ops ------------------------------------------------------------ */

Op *sched_zero(Sched *s, ScalarType t)
{
    Op *zero = op_new(s->m, OP_arith_const, s->loc, 0, 1, 0);
    ParamKind kind = scalar_type_is_int(t) ? PARAM_int : PARAM_float;
    op_set_param(s->m, zero, "value", &(Param){ .kind = kind });
    op_set_result(s->m, zero, 0, type_scalar(s->ctx, t), NULL);
    return zero;
}

bool sched_access_fits(Sched *s, const Facts *f, const Access *a, Loc loc)
{
    ExprCtx *x = s->m->exprs;
    for (unsigned k = 0; k < a->rank; k++) {
        const AccessDim *d = &a->dims[k];
        const Affine *len = d->kind == DIM_point ? affine_const(x, 1) : d->len;
        const Cond *in = cond_and(
            x, cond_cmp(x, CMP_ge, d->lo, affine_const(x, 0)),
            cond_cmp(x, CMP_le, affine_add(x, d->lo, len), a->base->shape[k]));
        in = cond_and(x, in, cond_cmp(x, CMP_ge, len, affine_const(x, 0)));
        if (!sched_prove(s, f, in, loc,
                         "the access to %s may leave its bounds in dimension "
                         "%u",
                         sched_value_name(s, a->base), k))
            return false;
    }
    return true;
}

const Affine *sched_negative_extent(Sched *s, const Facts *f, const Value *v)
{
    ExprCtx *x = s->m->exprs;
    for (unsigned i = 0; i < v->type->rank; i++)
        if (!sched_implied(
                s, f, cond_cmp(x, CMP_ge, v->shape[i], affine_const(x, 0))))
            return v->shape[i];
    return NULL;
}

/* ---- loops and uses ---------------------------------------------------- */

VarId sched_loop_var(const Op *loop)
{
    return loop->blocks[0]->args[0].var;
}

Op *sched_loop(Sched *s, const Op *like, const char *name, const Affine *lo,
               const Affine *hi, VarId *v)
{
    Op *loop = op_new(s->m, OP_ctl_for, like ? like->loc : s->loc, 2, 0, 1);
    loop->operands[0] = opnd_index(lo);
    loop->operands[1] = opnd_index(hi);
    for (unsigned i = 0; like && like->code == OP_ctl_for && i < like->n_attrs;
         i++)
        op_set_attr(s->m, loop, like->attrs[i]);
    *v = block_add_var(s->m, loop->blocks[0], name, VAR_iter);
    var_set_bounds(s->m->exprs, *v, lo, hi);
    return loop;
}

Facts *sched_facts_later(Sched *s, Op *loop, VarId *later)
{
    ExprCtx *x = s->m->exprs;
    VarId v = sched_loop_var(loop);
    *later = var_new(x, arena_printf(s->arena, "%s'", var_get(x, v)->name),
                     VAR_iter);
    var_set_bounds(x, *later, loop->operands[0].u.index,
                   loop->operands[1].u.index);
    Facts *f = prove_facts_in(s->arena, s->m, loop, 0);
    facts_assume_var(f, *later);
    facts_assume(f,
                 cond_cmp(x, CMP_lt, affine_var(x, v), affine_var(x, *later)));
    return f;
}

typedef struct SubstWalk {
    Sched *s;
    CloneMap *map;
    bool ok;
} SubstWalk;

static bool subst_op(Op *op, void *user)
{
    SubstWalk *w = user;
    ExprCtx *x = w->s->m->exprs;
    w->ok &= op_substitute(w->map, w->s->m, op);
    for (unsigned i = 0; i < op->n_results; i++)
        w->ok &= value_substitute(w->map, w->s->m, op->results[i]);
    if (w->ok && op->code == OP_ctl_for)
        var_set_bounds(x, sched_loop_var(op), op->operands[0].u.index,
                       op->operands[1].u.index);
    return w->ok;
}

bool sched_subst(Sched *s, Block *b, VarId v, const Affine *e)
{
    SubstWalk w = { s, clone_map_new(s->m, s->m), e != NULL };
    clone_map_index(w.map, v, e);
    if (e)
        block_walk(b, subst_op, &w);
    return w.ok || sched_fail(s, s->loc, "an index expression passes 64 bits");
}

bool sched_clone_into(Sched *s, const Block *from, Block *to, VarId v,
                      const Affine *e)
{
    CloneMap *map = clone_map_new(s->m, s->m);
    if (!e)
        return sched_fail(s, s->loc, "an index expression passes 64 bits");
    if (v)
        clone_map_index(map, v, e);
    block_clone_into(map, from, to);
    return true;
}

typedef struct UseWalk {
    VarId var;
    const Value *value;
    bool strides; /* only stride(value, d) */
    bool views;   /* windows of the value too */
    Op *first;
    unsigned n;
} UseWalk;

/* Is it the value, or a window of it where those count? */
static bool is_meant(const UseWalk *w, const Value *v)
{
    while (w->views && v && v != w->value)
        v = v->def && v->def->code == OP_mem_window
                ? v->def->operands[0].u.access->base
                : NULL;
    return v == w->value;
}

static bool affine_touches(const Affine *e, const UseWalk *w)
{
    if (!e)
        return false;
    if (w->var)
        return affine_uses(e, w->var);
    for (uint32_t i = 0; i < e->n_terms; i++) {
        const Atom *a = e->terms[i].atom;
        if (a->kind == ATOM_opaque && a->ref && is_meant(w, a->ref))
            return true;
        if (affine_touches(a->arg, w) || affine_touches(a->lhs, w) ||
            affine_touches(a->rhs, w))
            return true;
    }
    return false;
}

static bool cond_touches(const Cond *c, const UseWalk *w)
{
    return c && (affine_touches(c->expr, w) || cond_touches(c->lhs, w) ||
                 cond_touches(c->rhs, w));
}

static bool access_touches(const Access *a, const UseWalk *w)
{
    bool hit = w->value && !w->strides && is_meant(w, a->base);
    for (unsigned i = 0; i < a->rank && !hit; i++)
        hit = affine_touches(a->dims[i].lo, w) ||
              affine_touches(a->dims[i].len, w);
    return hit;
}

static bool operand_touches(const Operand *o, const UseWalk *w)
{
    switch (o->kind) {
    case OPND_value:
        return w->value && !w->strides && o->u.value == w->value;
    case OPND_access:
        return access_touches(o->u.access, w);
    case OPND_index:
        return affine_touches(o->u.index, w);
    default:
        return cond_touches(o->u.cond, w);
    }
}

static bool note_use(Op *op, void *user)
{
    UseWalk *w = user;
    bool hit = false;
    for (unsigned i = 0; i < op->n_operands && !hit; i++)
        hit = operand_touches(&op->operands[i], w);
    for (unsigned i = 0; i < op->n_results && !hit; i++) {
        const Value *v = op->results[i];
        hit = w->value && !w->strides && v->ring_guard == w->value;
        for (unsigned k = 0; v->shape && k < v->type->rank && !hit; k++)
            hit = affine_touches(v->shape[k], w);
    }
    for (unsigned i = 0; i < op->n_attrs && !hit; i++)
        hit = op->attrs[i].kind == ATTR_index &&
              affine_touches(op->attrs[i].index, w);
    if (hit && !w->first)
        w->first = op;
    w->n += hit;
    return true;
}

bool op_uses_var(Op *op, VarId v)
{
    UseWalk w = { .var = v };
    op_walk(op, note_use, &w);
    return w.n > 0;
}

bool block_uses_var(Block *b, VarId v)
{
    UseWalk w = { .var = v };
    block_walk(b, note_use, &w);
    return w.n > 0;
}

bool op_uses_value(Op *op, const Value *v)
{
    UseWalk w = { .value = v };
    op_walk(op, note_use, &w);
    return w.n > 0;
}

unsigned sched_uses(Sched *s, const Value *v, Op **first)
{
    UseWalk w = { .value = v };
    op_walk(s->proc, note_use, &w);
    if (first)
        *first = w.first;
    return w.n;
}

bool op_reaches(Op *op, const Value *v)
{
    UseWalk w = { .value = v, .views = true };
    op_walk(op, note_use, &w);
    return w.n > 0;
}

bool sched_by_element(Sched *s, const Op *op, Loc loc)
{
    return op->code == OP_mem_load || op->code == OP_mem_store ||
           op->code == OP_mem_reduce ||
           sched_fail(s, loc, "'%s' takes it as a whole",
                      sched_stmt_text(s, op));
}

bool sched_uses_stride(Sched *s, const Value *v)
{
    UseWalk w = { .value = v, .strides = true };
    op_walk(s->proc, note_use, &w);
    return w.n > 0;
}

typedef struct StrideWalk {
    Sched *s;
    const Value *v;
    unsigned changed; /* strides of that many leading dimensions change */
    unsigned depth;   /* of calls */
    Op *found;
} StrideWalk;

/* The body of what op calls, or NULL. */
static Block *called_body(const Module *m, const Op *op)
{
    const Instr *in = op->code == OP_par_instr ? op_instr(m, op) : NULL;
    const Op *proc = op->code == OP_ctl_call
                         ? module_symbol(m, op_attr_str(op, "callee", ""))
                     : in ? in->body
                          : NULL;
    return proc ? proc->blocks[0] : NULL;
}

/* Does what is given of v keep its strides? */
static bool keeps_strides(const StrideWalk *w, const Operand *o)
{
    bool keeps = o->u.access->base == w->v;
    for (unsigned i = 0; keeps && i < o->u.access->rank; i++)
        keeps = i >= w->changed || o->u.access->dims[i].kind == DIM_point;
    return keeps;
}

static bool note_stride(Op *op, void *user)
{
    enum { DEEPEST = 64 };
    StrideWalk *w = user;
    UseWalk here = { .value = w->v, .strides = true, .views = true };
    Block *body = called_body(w->s->m, op);
    note_use(op, &here);
    bool reads = here.n > 0;
    here.strides = false;
    for (unsigned i = 0; body && i < body->n_args && !reads; i++) {
        StrideWalk inner = { w->s, body->args[i].value, UINT_MAX, w->depth + 1,
                             NULL };
        if (!inner.v || !operand_touches(&op->operands[i], &here) ||
            keeps_strides(w, &op->operands[i]))
            continue;
        if (inner.depth < DEEPEST)
            block_walk(body, note_stride, &inner);
        reads = inner.found || inner.depth == DEEPEST;
    }
    if (reads)
        w->found = op;
    return !reads;
}

Op *sched_stride_reader(Sched *s, Op *in, const Value *v, unsigned changed)
{
    StrideWalk w = { .s = s, .v = v, .changed = changed };
    if (changed)
        op_walk(in, note_stride, &w);
    return w.found ? sched_stmt_of(w.found) : NULL;
}

Op *sched_stmt_of(Op *op)
{
    while (!op_has(op, OPT_STMT))
        op = op->next;
    return op;
}

Op *sole_stmt(const Block *b)
{
    Op *op = b->first;
    return op && op == b->last && op_has(op, OPT_STMT) ? op : NULL;
}
