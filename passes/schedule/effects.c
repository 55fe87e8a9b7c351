/* Collecting effects and comparing them pair by pair. */
#include "passes/schedule/effects.h"

#include <string.h>

Value *effect_root(Value *v)
{
    while (v->def && v->def->code == OP_mem_window)
        v = v->def->operands[0].u.access->base;
    return v;
}

bool sched_read_fits(Sched *s, const Facts *f, const Access *a, Loc loc)
{
    if (effect_root(a->base)->def)
        return sched_fail(s, loc, "%s may not have been written",
                          sched_value_name(s, a->base));
    return sched_access_fits(s, f, a, loc);
}

/* ---- collecting -------------------------------------------------------- */

typedef struct Collect {
    Sched *s;
    EffectVec *out;
    const Cond *when;
    VEC(const Value *) own; /* allocated in the range */
    unsigned depth;         /* of calls */
    bool keep_own;
} Collect;

static void collect_op(Collect *c, Op *op);

static void collect_block(Collect *c, const Block *b)
{
    for (Op *op = b->first; op; op = op->next)
        collect_op(c, op);
}

static bool is_own(const Collect *c, const Value *v)
{
    for (size_t i = 0; i < c->own.len; i++)
        if (c->own.data[i] == v)
            return true;
    return false;
}

static void add_field(Collect *c, Op *op, const char *field, unsigned flags)
{
    Effect e = { .field = ctx_intern(c->s->ctx, field),
                 .flags = flags,
                 .when = c->when,
                 .op = op };
    VEC_PUSH(c->s->arena, c->out, e);
}

static void fields_of_affine(Collect *c, Op *op, const Affine *e)
{
    for (uint32_t i = 0; e && i < e->n_terms; i++) {
        const Atom *a = e->terms[i].atom;
        if (a->kind == ATOM_opaque && a->opaque == OPAQUE_config)
            add_field(c, op, a->name, ACC_READ);
        fields_of_affine(c, op, a->arg);
        fields_of_affine(c, op, a->lhs);
        fields_of_affine(c, op, a->rhs);
    }
}

static void fields_of_cond(Collect *c, Op *op, const Cond *e)
{
    if (!e)
        return;
    fields_of_affine(c, op, e->expr);
    fields_of_cond(c, op, e->lhs);
    fields_of_cond(c, op, e->rhs);
}

static void fields_of_access(Collect *c, Op *op, const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++) {
        fields_of_affine(c, op, a->dims[i].lo);
        fields_of_affine(c, op, a->dims[i].len);
    }
}

/* Configuration read by the expressions of an op. */
static void collect_fields(Collect *c, Op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_index)
            fields_of_affine(c, op, o->u.index);
        else if (o->kind == OPND_cond)
            fields_of_cond(c, op, o->u.cond);
        else if (o->kind == OPND_access)
            fields_of_access(c, op, o->u.access);
    }
    for (unsigned i = 0; i < op->n_results; i++)
        for (unsigned k = 0;
             op->results[i]->shape && k < op->results[i]->type->rank; k++)
            fields_of_affine(c, op, op->results[i]->shape[k]);
    if (op->code == OP_cfg_read)
        add_field(c, op, op_attr_str(op, "field", ""), ACC_READ);
    if (op->code == OP_cfg_write)
        add_field(c, op, op_attr_str(op, "field", ""), ACC_WRITE);
}

static void collect_accesses(Collect *c, Op *op)
{
    OpAccessVec v = { 0 };
    op_accesses(c->s->m, op, c->s->arena, &v);
    for (size_t i = 0; i < v.len; i++) {
        if (v.data[i].flags & ACC_SYNC)
            continue;
        const Access *a = access_compose(c->s->m, v.data[i].access);
        bool own = is_own(c, effect_root(a->base));
        if (own && !c->keep_own)
            continue;
        Effect e = { a, NULL, v.data[i].flags, c->when, op, own };
        VEC_PUSH(c->s->arena, c->out, e);
    }
}

/* The configuration that a called procedure reads and writes. */
static void collect_callee(Collect *c, Op *op)
{
    enum { DEEPEST = 64 };
    Op *callee = module_symbol(c->s->m, op_attr_str(op, "callee", ""));
    if (!callee || c->depth >= DEEPEST)
        return;
    Collect inner = { .s = c->s, .when = c->when, .depth = c->depth + 1 };
    EffectVec all = { 0 };
    inner.out = &all;
    collect_block(&inner, callee->blocks[0]);
    for (size_t i = 0; i < all.len; i++)
        if (all.data[i].field)
            add_field(c, op, all.data[i].field, all.data[i].flags);
}

static const Cond *range_of(ExprCtx *x, const Op *loop)
{
    const Affine *v = affine_var(x, sched_loop_var(loop));
    return cond_and(x, cond_cmp(x, CMP_ge, v, loop->operands[0].u.index),
                    cond_cmp(x, CMP_lt, v, loop->operands[1].u.index));
}

/* NULL stands for a condition beyond 64 bits: it is then not known, true. */
static const Cond *also(Collect *c, const Cond *more)
{
    const Cond *both = cond_and(c->s->m->exprs, c->when, more);
    return both ? both : c->when;
}

static void collect_op(Collect *c, Op *op)
{
    ExprCtx *x = c->s->m->exprs;
    const Cond *outer = c->when;
    if (op_has(op, OPT_SYNC))
        return;
    collect_fields(c, op);
    if (op->code == OP_mem_alloc)
        VEC_PUSH(c->s->arena, &c->own, op->results[0]);
    if (op->code == OP_ctl_call)
        collect_callee(c, op);
    collect_accesses(c, op);
    for (unsigned i = 0; i < op->n_blocks; i++) {
        if (op->code == OP_ctl_for)
            c->when = also(c, range_of(x, op));
        else if (op->code == OP_ctl_if)
            c->when = also(c, i == 0 ? op->operands[0].u.cond
                                     : cond_not(x, op->operands[0].u.cond));
        collect_block(c, op->blocks[i]);
        c->when = outer;
    }
}

void effects_of(Sched *s, Op *first, Op *last, EffectVec *out)
{
    Collect c = { .s = s, .out = out, .when = cond_bool(s->m->exprs, true) };
    for (Op *op = stmt_first(first); op; op = op == last ? NULL : op->next)
        collect_op(&c, op);
}

void effects_all(Sched *s, Op *first, Op *last, EffectVec *out)
{
    Collect c = { .s = s,
                  .out = out,
                  .when = cond_bool(s->m->exprs, true),
                  .keep_own = true };
    for (Op *op = stmt_first(first); op; op = op == last ? NULL : op->next)
        collect_op(&c, op);
}

void effects_of_block(Sched *s, const Block *b, EffectVec *out)
{
    Collect c = { .s = s, .out = out, .when = cond_bool(s->m->exprs, true) };
    collect_block(&c, b);
}

/* ---- renaming ---------------------------------------------------------- */

typedef struct Rename {
    Sched *s;
    CloneMap *map;
    bool *done;
    unsigned n_done;
} Rename;

static void rename_inner(Rename *r, const Op *op, const Block *until)
{
    ExprCtx *x = r->s->m->exprs;
    for (; op && op->parent != until; op = op_parent(op)) {
        const Op *o = op_parent(op);
        if (!o || o->code != OP_ctl_for)
            continue;
        VarId v = sched_loop_var(o);
        if (v >= r->n_done || r->done[v])
            continue;
        r->done[v] = true;
        VarId w = var_new(
            x, arena_printf(r->s->arena, "%s'", var_get(x, v)->name), VAR_iter);
        clone_map_index(r->map, v, affine_var(x, w));
    }
}

bool effects_renamed(Sched *s, const EffectVec *in, const Block *until,
                     unsigned n_vars, const VarId *vars,
                     const Affine *const *to, EffectVec *out)
{
    Rename r = { .s = s,
                 .map = clone_map_new(s->m, s->m),
                 .n_done = var_count(s->m->exprs) + 1 };
    r.done = ARENA_ARRAY(s->arena, bool, r.n_done);
    for (unsigned i = 0; i < n_vars; i++) {
        clone_map_index(r.map, vars[i], to[i]);
        r.done[vars[i]] = true;
    }
    for (size_t i = 0; i < in->len; i++)
        rename_inner(&r, in->data[i].op, until);
    for (size_t i = 0; i < in->len; i++) {
        Effect e = in->data[i];
        e.when = clone_cond(r.map, e.when);
        if (e.access)
            e.access = clone_access(r.map, e.access);
        if (!e.when)
            return sched_fail(s, s->loc, "a condition passes 64 bits");
        VEC_PUSH(s->arena, out, e);
    }
    return true;
}

/* ---- comparing --------------------------------------------------------- */

bool effects_same_root(const Effect *a, const Effect *b)
{
    if (a->field || b->field)
        return a->field == b->field;
    return effect_root(a->access->base) == effect_root(b->access->base);
}

static bool is_floating(const Effect *e)
{
    return !scalar_type_is_int(e->access->base->type->elem);
}

/* Do they leave each other alone for being both reads or both sums? */
static bool kinds_commute(Sched *s, const Effect *a, const Effect *b,
                          bool *sums)
{
    (void)s;
    unsigned writes = (a->flags | b->flags) & ACC_WRITE;
    *sums = a->access && b->access && (a->flags & ACC_REDUCE) &&
            (b->flags & ACC_REDUCE);
    return !writes;
}

/* The condition under which both happen at one place; NULL: not known. */
static const Cond *meeting(Sched *s, const Effect *a, const Effect *b)
{
    ExprCtx *x = s->m->exprs;
    const Cond *both = cond_and(x, a->when, b->when);
    if (a->field || a->access->base != b->access->base)
        return both;
    return cond_and(x, both, access_overlap(x, a->access, b->access));
}

static bool pair_commutes(Sched *s, const Facts *f, const Effect *a,
                          const Effect *b, Loc loc, const char *what)
{
    bool sums;
    if (!effects_same_root(a, b) || kinds_commute(s, a, b, &sums))
        return true;
    const Cond *meet = meeting(s, a, b);
    const Cond *never = cond_not(s->m->exprs, meet);
    if (sums) {
        if (is_floating(a) && !sched_implied(s, f, never))
            s->reassociates = true;
        return true;
    }
    const char *place =
        a->field ? a->field : sched_value_name(s, a->access->base);
    return sched_prove(s, f, never, loc, "%s: '%s' and '%s' may both touch %s",
                       what, sched_stmt_text(s, a->op),
                       sched_stmt_text(s, b->op), place);
}

bool effects_commute(Sched *s, const Facts *f, const EffectVec *a,
                     const EffectVec *b, Loc loc, const char *what)
{
    for (size_t i = 0; i < a->len; i++)
        for (size_t k = 0; k < b->len; k++)
            if (!pair_commutes(s, f, &a->data[i], &b->data[k], loc, what))
                return false;
    return true;
}

/* Twice is once when nothing that is read is written. The variables
 * of loops inside have twins in the second run. */
bool effects_idempotent(Sched *s, const Facts *f, const EffectVec *e,
                        const Block *until, Loc loc, const char *what)
{
    EffectVec second = { 0 };
    if (!effects_renamed(s, e, until, 0, NULL, NULL, &second))
        return false;
    for (size_t i = 0; i < e->len; i++)
        for (size_t k = 0; k < second.len; k++) {
            const Effect *w = &e->data[i], *r = &second.data[k];
            if (!(w->flags & ACC_WRITE) || !(r->flags & ACC_READ) ||
                !effects_same_root(w, r))
                continue;
            const Cond *never = cond_not(s->m->exprs, meeting(s, w, r));
            if (!sched_prove(s, f, never, loc,
                             "%s: '%s' reads what '%s' wrote the time before",
                             what, sched_stmt_text(s, r->op),
                             sched_stmt_text(s, w->op)))
                return false;
        }
    return true;
}
