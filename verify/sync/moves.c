/* A walk over the body lists what must be settled; the period is searched
 * upwards from 1, and the trips by bisection with interval arithmetic. */
#include "verify/sync/moves.h"

#include "verify/sync/ranges.h"

#include <string.h>

enum { MOST_PERIOD = 64 };

typedef enum ItemKind {
    ITEM_range, /* the variable of an inner loop */
    ITEM_ge0,
    ITEM_eq0,
    ITEM_inside /* least <= expr and expr + len <= most */
} ItemKind;

typedef struct Item {
    ItemKind kind;
    const Affine *expr, *len, *hi; /* len NULL: 1; range: [expr, hi) */
    int64_t least, most;
    VarId var;
} Item;

typedef struct Search {
    Arena *arena;
    const SyncRun *run;
    VarId var;
    int64_t period;
    Range *ranges;
    bool *inner; /* by VarId: of loops of the body */
    VEC(Item) items;
    Move *tensors;
} Search;

/* ---- changes in a period ------------------------------------------------ */

static bool change_of(const Search *s, const Affine *e, int64_t *out);

static void note_inner(VarId v, void *user)
{
    const Search *s = ((void **)user)[0];
    bool *any = ((void **)user)[1];
    *any = *any || s->inner[v] || v == s->var;
}

/* Does e depend on what changes within the loop? */
static bool varies(const Search *s, const Affine *e)
{
    bool any = false;
    void *user[] = { (void *)s, &any };
    affine_walk_vars(e, note_inner, user);
    return any;
}

static bool product_change(const Search *s, const Atom *a, int64_t *out)
{
    int64_t l, r, value;
    if (a->opaque != OPAQUE_product || !change_of(s, a->lhs, &l) ||
        !change_of(s, a->rhs, &r))
        return false;
    *out = 0;
    if (!l && !r)
        return true;
    const Affine *fixed = l ? a->rhs : a->lhs;
    return !(l && r) && !varies(s, fixed) &&
           sync_run_eval(s->run, fixed, &value) &&
           !__builtin_mul_overflow(l ? l : r, value, out);
}

static bool atom_change(const Search *s, const Atom *a, int64_t *out)
{
    *out = 0;
    if (a->kind == ATOM_var) {
        *out = a->var == s->var ? s->period : 0;
        return true;
    }
    if (a->kind == ATOM_opaque)
        return a->lhs && a->rhs ? product_change(s, a, out) : true;
    int64_t arg;
    if (!change_of(s, a->arg, &arg) || arg % a->divisor)
        return false;
    *out = a->kind == ATOM_floordiv ? arg / a->divisor : 0;
    return true;
}

/* By how much e grows in a period, whatever the inner variables are. */
static bool change_of(const Search *s, const Affine *e, int64_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        int64_t by;
        if (!atom_change(s, e->terms[i].atom, &by) ||
            __builtin_mul_overflow(by, e->terms[i].coef, &by) ||
            __builtin_add_overflow(*out, by, out))
            return false;
    }
    return true;
}

static bool stays(const Search *s, const Affine *e)
{
    int64_t by;
    return !e || (change_of(s, e, &by) && !by);
}

/* ---- the body ----------------------------------------------------------- */

/* The tensor moves so along this dimension, as all its accesses do; first: this
 * is the first of them. */
static bool add_move(Search *s, unsigned tensor, unsigned dim, int64_t by,
                     bool first)
{
    Move *m = &s->tensors[tensor];
    if (!by)
        return first || !m->by || m->dim != dim;
    if (by < 0 || by % s->run->grains[tensor][dim])
        return false;
    if (first && !m->by) {
        m->by = by;
        m->dim = dim;
    }
    return m->by == by && m->dim == dim;
}

static bool add_dim(Search *s, const SyncExpr *x, unsigned i, bool first)
{
    int64_t by;
    if (!change_of(s, x->lo[i], &by) || !stays(s, x->len[i]) ||
        (x->clip_lo && (!stays(s, x->clip_lo[i]) || !stays(s, x->clip_len[i]))))
        return false;
    if (!add_move(s, x->tensor, i, by, first))
        return false;
    if (!by)
        return true;
    Item item = { .kind = ITEM_inside,
                  .expr = x->lo[i],
                  .len = x->len[i],
                  .most = s->run->extents[x->tensor][i] };
    VEC_PUSH(s->arena, &s->items, item);
    if (!x->clip_lo)
        return true;
    int64_t lo, len;
    if (varies(s, x->clip_lo[i]) || varies(s, x->clip_len[i]) ||
        !sync_run_eval(s->run, x->clip_lo[i], &lo) ||
        !sync_run_eval(s->run, x->clip_len[i], &len))
        return false;
    item.least = lo;
    item.most = lo + len;
    VEC_PUSH(s->arena, &s->items, item);
    return true;
}

static bool add_exprs(Search *s, unsigned n, const SyncExpr *x)
{
    for (unsigned k = 0; k < n; k++) {
        Move *m = &s->tensors[x[k].tensor];
        bool first = !m->touched;
        m->touched = true;
        for (unsigned i = 0; i < x[k].rank; i++)
            if (!add_dim(s, &x[k], i, first))
                return false;
    }
    return true;
}

static bool add_cond(Search *s, const Cond *c)
{
    if (!c || c->kind == COND_true || c->kind == COND_false)
        return true;
    if (c->kind != COND_ge0 && c->kind != COND_eq0)
        return add_cond(s, c->lhs) && add_cond(s, c->rhs);
    int64_t by;
    if (!change_of(s, c->expr, &by))
        return false;
    Item item = { .kind = c->kind == COND_ge0 ? ITEM_ge0 : ITEM_eq0,
                  .expr = c->expr };
    if (by)
        VEC_PUSH(s->arena, &s->items, item);
    return true;
}

static bool add_node(Search *s, const SyncNode *n)
{
    if (n->kind == SYNC_loop || n->kind == SYNC_threads) {
        Item item = {
            .kind = ITEM_range, .expr = n->lo, .hi = n->hi, .var = n->var
        };
        if (!stays(s, n->lo) || !stays(s, n->hi))
            return false;
        if (n->var)
            VEC_PUSH(s->arena, &s->items, item);
    }
    if (n->kind == SYNC_alloc) {
        const Value *v = s->run->program->tensors[n->tensor].value;
        for (unsigned i = 0; i < v->type->rank; i++)
            if (!stays(s, v->shape[i]))
                return false;
    }
    return (n->kind != SYNC_if || add_cond(s, n->cond)) &&
           add_exprs(s, n->n_exprs, n->exprs) &&
           add_exprs(s, n->n_trailing, n->trailing);
}

static bool add_nodes(Search *s, const SyncNode *n)
{
    for (; n; n = n->next)
        if (!add_node(s, n) || !add_nodes(s, n->body) ||
            !add_nodes(s, n->orelse))
            return false;
    return true;
}

static void find_inner(Search *s, const SyncNode *n)
{
    for (; n; n = n->next) {
        if (n->kind == SYNC_loop || n->kind == SYNC_threads)
            s->inner[n->var] = true;
        find_inner(s, n->body);
        find_inner(s, n->orelse);
    }
}

/* ---- trips -------------------------------------------------------------- */

static bool item_settled(Search *s, const Item *item)
{
    Range x, len = { true, 1, 1 };
    if (item->kind == ITEM_range)
        return range_of_loop(s->ranges, item->expr, item->hi,
                             &s->ranges[item->var]);
    if (!range_of(s->ranges, item->expr, &x) ||
        (item->len && !range_of(s->ranges, item->len, &len)))
        return false;
    if (item->kind == ITEM_inside)
        return x.lo >= item->least && x.hi <= item->most - len.hi;
    return item->kind == ITEM_ge0 ? x.lo >= 0 || x.hi < 0
                                  : x.lo > 0 || x.hi < 0;
}

/* Is every condition decided and every access inside in the trips [lo, hi)? */
static bool settled(Search *s, int64_t lo, int64_t hi)
{
    s->ranges[s->var] = (Range){ true, lo, hi - 1 };
    for (size_t i = 0; i < s->items.len; i++)
        if (!item_settled(s, &s->items.data[i]))
            return false;
    return true;
}

/* The widest trips around the middle. */
static bool find_trips(Search *s, int64_t lo, int64_t hi, Moves *out)
{
    int64_t mid = lo + (hi - lo) / 2;
    if (lo >= hi || !settled(s, mid, mid + 1))
        return false;
    int64_t yes = mid + 1, most = hi;
    while (yes < most) {
        int64_t at = yes + (most - yes + 1) / 2;
        if (settled(s, mid, at))
            yes = at;
        else
            most = at - 1;
    }
    out->hi = yes;
    int64_t least = lo, from = mid;
    while (least < from) {
        int64_t at = least + (from - least) / 2;
        if (settled(s, at, out->hi))
            from = at;
        else
            least = at + 1;
    }
    out->lo = from;
    return settled(s, out->lo, out->hi);
}

/* ---- rings -------------------------------------------------------------- */

/* An element of a ring begins like the one a period earlier where the guard
 * has elements on both sides; those that an Await wakes are a depth ahead. */
static bool add_rings(Search *s)
{
    const SyncProgram *p = s->run->program;
    for (unsigned i = 0; i < p->n_tensors; i++) {
        const Value *v = p->tensors[i].value;
        const Move *guard = &s->tensors[p->tensors[i].guard];
        Move *m = &s->tensors[i];
        if (v->ring_dim < 0 || (!m->by && !guard->by))
            continue;
        if (!m->touched)
            *m = (Move){ true, guard->dim, guard->by, 0 };
        if (m->by != guard->by || m->dim != guard->dim ||
            m->dim != (unsigned)v->ring_dim)
            return false;
    }
    return true;
}

/* The ring that guards itself: item says where its accesses are. */
static void narrow_ring(Search *s, const SyncExpr *x, unsigned dim)
{
    const SyncTensor *t = &s->run->program->tensors[x->tensor];
    if (t->guard != x->tensor || t->value->ring_dim != (int)dim)
        return;
    Item item = { .kind = ITEM_inside,
                  .expr = x->lo[dim],
                  .len = x->len[dim],
                  .least = t->value->ring_depth,
                  .most = s->run->extents[x->tensor][dim] -
                          2 * t->value->ring_depth };
    VEC_PUSH(s->arena, &s->items, item);
}

static bool add_lows(Search *s, const SyncExpr *x, unsigned n)
{
    for (unsigned k = 0; k < n; k++) {
        Move *m = &s->tensors[x[k].tensor];
        Range r;
        if (!m->by)
            continue;
        if (!range_of(s->ranges, x[k].lo[m->dim], &r))
            return false;
        m->low = r.lo < m->low ? r.lo : m->low;
    }
    return true;
}

typedef bool (*OnExprs)(Search *s, const SyncExpr *x, unsigned n);

static bool each_exprs(Search *s, const SyncNode *n, OnExprs fn)
{
    for (; n; n = n->next)
        if (!fn(s, n->exprs, n->n_exprs) ||
            !fn(s, n->trailing, n->n_trailing) || !each_exprs(s, n->body, fn) ||
            !each_exprs(s, n->orelse, fn))
            return false;
    return true;
}

static bool narrow_rings(Search *s, const SyncExpr *x, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        if (s->tensors[x[k].tensor].by)
            narrow_ring(s, &x[k], s->tensors[x[k].tensor].dim);
    return true;
}

/* Ring elements are woken by Awaits of their guard. */
static bool find_lows(Search *s, const SyncNode *body)
{
    const SyncProgram *p = s->run->program;
    for (unsigned i = 0; i < p->n_tensors; i++)
        s->tensors[i].low = INT64_MAX;
    if (!each_exprs(s, body, add_lows))
        return false;
    for (unsigned i = 0; i < p->n_tensors; i++) {
        const Move *guard = &s->tensors[p->tensors[i].guard];
        Move *m = &s->tensors[i];
        if (m->by && guard->by && guard->low < m->low)
            m->low = guard->low;
    }
    return true;
}

bool moves_find(Arena *arena, const SyncRun *run, const SyncNode *loop,
                int64_t lo, int64_t hi, Moves *out)
{
    const SyncProgram *p = run->program;
    unsigned n_vars = var_count(p->m->exprs) + 1;
    Search s = { .arena = arena, .run = run, .var = loop->var };
    s.ranges = ARENA_ARRAY(arena, Range, n_vars);
    s.inner = ARENA_ARRAY(arena, bool, n_vars);
    s.tensors = ARENA_ARRAY(arena, Move, p->n_tensors);
    find_inner(&s, loop->body);
    for (unsigned v = 1; v < n_vars; v++)
        if (run->known[v] && !s.inner[v])
            s.ranges[v] = (Range){ true, run->vars[v], run->vars[v] };
    for (s.period = 1; s.period <= MOST_PERIOD; s.period++) {
        memset(s.tensors, 0, p->n_tensors * sizeof *s.tensors);
        s.items.len = 0;
        if (!add_nodes(&s, loop->body) || !add_rings(&s))
            continue;
        each_exprs(&s, loop->body, narrow_rings);
        if (!find_trips(&s, lo, hi, out) || !find_lows(&s, loop->body))
            return false;
        out->period = s.period;
        out->tensors = s.tensors;
        return true;
    }
    return false;
}
