/* Unification: accesses, values, statements, each against the body's, and the
 * numbers that they determine. */
#include "passes/schedule/unify.h"

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

/* ---- sizes and indices --------------------------------------------------- */

/* The parameter of a variable when it is one that is not found yet. */
static bool is_unknown(const Unify *u, VarId v, unsigned *i)
{
    for (*i = 0; *i < u->params->n_args; ++*i)
        if (!u->params->args[*i].value && u->params->args[*i].var == v)
            return !u->numbers[*i];
    return false;
}

typedef struct Unknowns {
    const Unify *u;
    unsigned n, last; /* occurrences; the last one's parameter */
} Unknowns;

static void note_unknown(VarId v, void *user)
{
    Unknowns *k = user;
    unsigned i;
    if (!is_unknown(k->u, v, &i))
        return;
    k->n++;
    k->last = i;
}

static Unknowns unknowns_of(const Unify *u, const Affine *e)
{
    Unknowns k = { .u = u };
    affine_walk_vars(e, note_unknown, &k);
    return k;
}

void unify_give(Unify *u, unsigned i, const Affine *e)
{
    u->numbers[i] = e;
    clone_map_index(u->map, u->params->args[i].var, e);
}

const Affine *unify_index(Unify *u, const Affine *e)
{
    return unknowns_of(u, e).n ? NULL : clone_index(u->map, e);
}

static bool uses_inner(const Unify *u, const Affine *e)
{
    for (size_t i = 0; i < u->inner.len; i++)
        if (affine_uses(e, u->inner.data[i]))
            return true;
    return false;
}

void unify_solve(Unify *u, const Affine *e, const Affine *to)
{
    ExprCtx *x = u->s->m->exprs;
    Unknowns k = unknowns_of(u, e);
    if (k.n != 1)
        return;
    VarId v = u->params->args[k.last].var;
    int64_t c = affine_coef(e, v);
    if (c != 1 && c != -1)
        return;
    const Affine *known = affine_sub(
        u->exprs, e, affine_scale(u->exprs, affine_var(u->exprs, v), c));
    const Affine *rest = known ? clone_index(u->map, known) : NULL;
    const Affine *found = affine_scale(x, affine_sub(x, to, rest), c);
    if (found && !uses_inner(u, found))
        unify_give(u, k.last, found);
}

/* ---- accesses ---------------------------------------------------------- */

/* The body's expression in the nest's names, where it may still find a number
 * by being equal to `to`. */
static const Affine *solved_index(Unify *u, const Affine *e, const Affine *to)
{
    unify_solve(u, e, to);
    return unify_index(u, e);
}

static bool same_index(Unify *u, const Affine *a, const Affine *b)
{
    return a && b &&
           (a == b ||
            affine_equal(u->s->prover, u->facts, a, b).answer == PROVE_yes);
}

/* Gives dimension d, d - 1, .. 0 of the parameter dimensions below `top` of the
 * base, later ones first. A number found on the way is forgotten when it does
 * not work out. */
static bool place_dims(Unify *u, Window *w, const Access *p, const Access *n,
                       int d, int top)
{
    if (d < 0) {
        for (int k = top - 1; k >= 0; k--)
            if (uses_inner(u, n->dims[k].lo))
                return false;
        return u->passing == 0 || (u->passing--, false);
    }
    for (int k = top - 1; k >= d; k--) {
        const Affine *before[UNIFY_MAX_PARAMS];
        memcpy(before, u->numbers, sizeof before);
        unify_solve(u, p->dims[d].lo, n->dims[k].lo);
        const Affine *diff = affine_sub(u->s->m->exprs, n->dims[k].lo,
                                        unify_index(u, p->dims[d].lo));
        if (diff && !uses_inner(u, diff)) {
            w->dim[d] = k;
            w->lo[k] = diff;
            if (place_dims(u, w, p, n, d - 1, k))
                return true;
        }
        memcpy(u->numbers, before, sizeof before);
        if (uses_inner(u, n->dims[k].lo))
            return false;
    }
    return false;
}

/* `_` in an instruction, a variable that no argument gives: it takes all. */
static bool is_open_extent(const Unify *u, const Affine *extent)
{
    VarId v;
    if (!u->in || !affine_is_var(extent, &v))
        return false;
    for (unsigned i = 0; i < u->params->n_args; i++)
        if (!u->params->args[i].value && u->params->args[i].var == v)
            return false;
    return true;
}

static bool open_window(Unify *u, unsigned i, const Access *p, const Access *n)
{
    Window *w = &u->windows[i];
    const Value *param = p->base;
    Window fresh = { .base = n->base };
    for (unsigned k = 0; k < n->rank; k++)
        fresh.lo[k] = n->dims[k].lo;
    u->opened[u->n_opened++] = i;
    u->passing = u->placement[i];
    u->unplaced = n->rank > UNIFY_MAX_RANK || param->type->rank > n->rank ||
                  !place_dims(u, &fresh, p, n, (int)p->rank - 1, (int)n->rank);
    if (u->unplaced)
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
        fresh.whole[k] = is_open_extent(u, param->shape[d]);
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

/* A scalar that the body allocates against one of the nest. */
static bool unify_local(Unify *u, const Value *p, const Value *n)
{
    if (p->type->rank || clone_map_get(u->map, (Value *)p) != n)
        return differ(u, "%s is not the body's '%s'", sched_value_name(u->s, n),
                      p->name);
    u->matched++;
    return true;
}

static bool unify_access(Unify *u, const Access *p, const Access *n)
{
    unsigned i;
    if (p->base->def)
        return unify_local(u, p->base, n->base);
    if (!param_number(u, p->base, &i))
        return differ(u, "the body has memory of its own");
    Window *w = &u->windows[i];
    if (!w->base)
        return open_window(u, i, p, n) && (u->matched++, true);
    if (w->base != n->base)
        return differ(u, "'%s' stands for both %s and %s", p->base->name,
                      sched_value_name(u->s, w->base),
                      sched_value_name(u->s, n->base));
    bool taken[UNIFY_MAX_RANK] = { false };
    for (unsigned d = 0; d < p->rank; d++) {
        int k = w->dim[d];
        taken[k] = true;
        const Affine *at = affine_add(
            u->s->m->exprs, w->lo[k],
            solved_index(u, p->dims[d].lo,
                         affine_sub(u->s->m->exprs, n->dims[k].lo, w->lo[k])));
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
    if (!loop_modes_equal(a, b))
        return differ(u, a->code == OP_arith_const
                             ? "the literals differ"
                             : "the names in two values differ");
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

bool unify_trips(const Op *loop, int64_t *n)
{
    int64_t lo, hi;
    if (!affine_is_const(loop->operands[0].u.index, &lo) ||
        !affine_is_const(loop->operands[1].u.index, &hi))
        return false;
    *n = hi - lo;
    return true;
}

static bool unify_loop(Unify *u, const Op *p, const Op *n)
{
    VarId v = sched_loop_var(n);
    for (unsigned i = 0; i < 2; i++) {
        const Affine *e =
            solved_index(u, p->operands[i].u.index, n->operands[i].u.index);
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

/* Finds numbers in a condition of the same form. */
static void solve_cond(Unify *u, const Cond *p, const Cond *n)
{
    if (p->kind != n->kind)
        return;
    if (p->expr)
        unify_solve(u, p->expr, n->expr);
    if (p->lhs)
        solve_cond(u, p->lhs, n->lhs);
    if (p->rhs)
        solve_cond(u, p->rhs, n->rhs);
}

static bool same_cond(Unify *u, const Cond *p, const Cond *n)
{
    Unknowns k = { .u = u };
    solve_cond(u, p, n);
    cond_walk_vars(p, note_unknown, &k);
    return !k.n && clone_cond(u->map, p) == n;
}

static bool unify_if(Unify *u, const Op *p, const Op *n)
{
    if (p->n_blocks != n->n_blocks ||
        !same_cond(u, p->operands[0].u.cond, n->operands[0].u.cond))
        return differ(u, "the conditions differ at '%s'",
                      sched_stmt_text(u->s, n));
    for (unsigned i = 0; i < p->n_blocks; i++)
        if (!unify_block(u, p->blocks[i], n->blocks[i]->first, NULL))
            return false;
    return true;
}

/* Scalars of the nest's own. */
static bool unify_alloc(Unify *u, const Op *p, const Op *n)
{
    Value *of = p->results[0], *is = n->results[0];
    if (of->type->kind != TK_tensor || is->type->kind != TK_tensor ||
        of->type->rank || is->type->rank || of->type->elem != is->type->elem)
        return differ(u, "'%s' is not compared", sched_stmt_text(u->s, n));
    clone_map_value(u->map, of, is);
    u->matched++;
    return true;
}

static bool unify_stmt(Unify *u, const Op *p, const Op *n)
{
    int64_t once, other;
    bool skip =
        p->code == OP_ctl_for && unify_trips(p, &once) && once == 1 &&
        !(n->code == OP_ctl_for && unify_trips(n, &other) && other == 1);
    if (skip) {
        clone_map_index(u->map, sched_loop_var(p),
                        unify_index(u, p->operands[0].u.index));
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
    case OP_mem_alloc:
        return unify_alloc(u, p, n);
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

/* The next placement of the last window, or of the one before when the last has
 * none left; false when all were tried. */
static bool next_placement(Unify *u)
{
    bool exhausted = u->unplaced;
    while (u->n_opened) {
        unsigned i = u->opened[--u->n_opened];
        if (!exhausted) {
            u->placement[i]++;
            return true;
        }
        u->placement[i] = 0;
        exhausted = false;
    }
    return false;
}

bool unify_nest(Unify *u, const Op *first, const Op *end)
{
    enum { MOST_TRIES = 1000 };
    Unify start = *u;
    for (unsigned n = 0; n < MOST_TRIES; n++) {
        if (unify_block(u, u->params, first, end))
            return true;
        if (!next_placement(u))
            return false;
        memcpy(start.placement, u->placement, sizeof start.placement);
        start.best = u->best;
        start.mismatch = u->mismatch;
        *u = start;
    }
    return false;
}
