/* Sizes at which tasks come to each other's places: by their strides, by what
 * two accesses are apart, and by moduli and quotients.
 *
 * In `y[7 * b + i]` task b at i + 7 is where task b + 1 is at i: two tasks and
 * eight trips of i show it, fewer do not. In general strides p and q meet after
 * q / gcd steps along the first and p / gcd along the second; both loops get
 * one trip more than that, whatever parameters they depend on. `y[b]` and
 * `y[b + 50]` meet when there are 51 tasks. An index with moduli and quotients
 * of a task moves by a constant from one of its periods to the next (`b / 8 %
 * 5`: 40 tasks, by 0), and what conditions let through has a period too; each
 * task of one period has met the same one of the next after two. */
#include "verify/sizes_impl.h"

#include "ir/lib.h"

#include <stdlib.h>

enum { MOST_MEETINGS = 64 };

/* Two loops, one of them of tasks, or one that meets itself; and the trips
 * after which they have met. */
typedef struct Meeting {
    const SizeLoop *loop[2];
    int64_t trips[2];
    int64_t places; /* more than they come to */
} Meeting;

/* An access to global memory, on its root. */
typedef struct GlobalAccess {
    const Access *access;
    bool writes;
} GlobalAccess;

typedef struct Meetings {
    const Chooser *c;
    Arena *arena;
    unsigned n;
    Meeting all[MOST_MEETINGS];
    bool beyond; /* there are more */
    VEC(GlobalAccess) places;
    int64_t let[SIZE_LOOPS]; /* by loop: the period of conditions on it */
} Meetings;

static void add_meeting(Meetings *t, const Meeting *m)
{
    for (unsigned i = 0; i < t->n; i++) {
        const Meeting *o = &t->all[i];
        if (o->loop[0] == m->loop[0] && o->loop[1] == m->loop[1] &&
            o->trips[0] == m->trips[0] && o->trips[1] == m->trips[1])
            return;
    }
    if (t->n == MOST_MEETINGS)
        t->beyond = true;
    else
        t->all[t->n++] = *m;
}

static bool has_small_strides(int64_t p, int64_t q)
{
    return p && q && p > -SIZE_MOST * SIZE_MOST && p < SIZE_MOST * SIZE_MOST &&
           q > -SIZE_MOST * SIZE_MOST && q < SIZE_MOST * SIZE_MOST;
}

static bool is_of_sizes(const Chooser *c, VarId v)
{
    for (unsigned k = 0; k < c->n_loops; k++)
        if (c->loops[k].var == v)
            return true;
    return false;
}

/* Tasks and a loop whose trips no size changes: `y[b + 10 * i]`. It has to make
 * its steps itself. */
static void note_fixed(Meetings *t, const SizeLoop *l, const Affine *e)
{
    int64_t p = affine_coef(e, l->var), lo, hi;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        const Atom *a = e->terms[i].atom;
        int64_t q = e->terms[i].coef;
        if (a->kind != ATOM_var || is_of_sizes(t->c, a->var) ||
            !has_small_strides(p, q))
            continue;
        const Var *v = var_get(t->c->m->exprs, a->var);
        int64_t g = int_gcd(p, q);
        if (!v->lo || !v->hi || !affine_is_const(v->lo, &lo) ||
            !affine_is_const(v->hi, &hi) || hi - lo <= llabs(p / g))
            continue;
        int64_t n = llabs(q / g) + 1;
        add_meeting(t, &(Meeting){ { l, l }, { n, n }, 0 });
    }
}

/* The loops from which the places of an index are counted, two by two. */
static void note_index(Meetings *t, const Affine *e)
{
    const SizeLoop *loops = t->c->loops;
    for (unsigned i = 0; i < t->c->n_loops; i++)
        if (loops[i].tasks)
            note_fixed(t, &loops[i], e);
    for (unsigned i = 0; i < t->c->n_loops; i++)
        for (unsigned k = 0; k < t->c->n_loops; k++) {
            int64_t p = affine_coef(e, loops[i].var);
            int64_t q = affine_coef(e, loops[k].var);
            if (!loops[i].tasks || i == k || (loops[k].tasks && k < i) ||
                !has_small_strides(p, q))
                continue;
            int64_t g = int_gcd(p, q);
            p = llabs(p / g);
            q = llabs(q / g);
            Meeting m = { { &loops[i], &loops[k] }, { q + 1, p + 1 }, 0 };
            m.places = p < SIZE_MOST && q < SIZE_MOST ? 2 * p * q * g + 1 : 0;
            add_meeting(t, &m);
        }
}

/* ---- periods ------------------------------------------------------------- */

/* A period that is too long to be told. */
#define FAR (SIZE_MOST + 1)

/* An expression is greater by `step` when a variable is by `period`. */
typedef struct Shift {
    int64_t period, step;
} Shift;

static int64_t common_period(int64_t a, int64_t b)
{
    if (a >= FAR || b >= FAR)
        return FAR;
    int64_t n = a / int_gcd(a, b) * b;
    return n < FAR ? n : FAR;
}

static Shift shift_of(const Affine *e, VarId v);

static Shift atom_shift(const Atom *a, VarId v)
{
    if (a->kind == ATOM_var)
        return (Shift){ 1, a->var == v };
    if (a->kind == ATOM_opaque || !affine_uses(a->arg, v))
        return (Shift){ 1, 0 };
    Shift s = shift_of(a->arg, v);
    int64_t times = a->divisor / int_gcd(a->divisor, s.step);
    if (s.period >= FAR || times > SIZE_MOST / s.period)
        return (Shift){ FAR, 0 };
    int64_t moved = s.step / (a->divisor / times);
    return (Shift){ s.period * times, a->kind == ATOM_mod ? 0 : moved };
}

static Shift shift_of(const Affine *e, VarId v)
{
    Shift all = { 1, 0 };
    for (uint32_t i = 0; i < e->n_terms; i++) {
        Shift s = atom_shift(e->terms[i].atom, v);
        int64_t n = common_period(all.period, s.period), one, old;
        if (n >= FAR || __builtin_mul_overflow(s.step, n / s.period, &one) ||
            __builtin_mul_overflow(one, e->terms[i].coef, &one) ||
            __builtin_mul_overflow(all.step, n / all.period, &old) ||
            __builtin_add_overflow(one, old, &all.step))
            return (Shift){ FAR, 0 };
        all.period = n;
    }
    return all;
}

static void note_condition(const Affine *e, void *user)
{
    Meetings *t = user;
    for (unsigned k = 0; k < t->c->n_loops; k++)
        t->let[k] =
            common_period(t->let[k], shift_of(e, t->c->loops[k].var).period);
}

static bool note_if(Op *op, void *user)
{
    if (op->code == OP_ctl_if)
        cond_walk_exprs(op->operands[0].u.cond, note_condition, user);
    return true;
}

/* The tasks that come to places of an access again. Where the place moves
 * evenly none does; where it moves from period to period and every task counts,
 * neighbours meet if any do. */
static void note_periods(Meetings *t, const Access *a)
{
    for (unsigned k = 0; k < t->c->n_loops; k++) {
        const SizeLoop *l = &t->c->loops[k];
        int64_t period = 1;
        bool moves = false;
        for (unsigned d = 0; d < a->rank; d++) {
            Shift s = a->dims[d].lo ? shift_of(a->dims[d].lo, l->var)
                                    : (Shift){ 1, 0 };
            period = common_period(period, s.period);
            moves = moves || s.step;
        }
        int64_t all = common_period(period, t->let[k]);
        bool some = t->let[k] > 1;
        if (!l->tasks || all == 1 || (moves && (period == 1 || !some)))
            continue;
        if (some)
            add_meeting(t, &(Meeting){ { l, l }, { 2 * all, 2 * all }, 0 });
        add_meeting(t, &(Meeting){ { l, l }, { all + 1, all + 1 }, 0 });
    }
}

/* ---- places of global memory --------------------------------------------- */

static bool is_global(const Chooser *c, const Value *v)
{
    const Mem *mem =
        v->type->mem ? lib_mem_find(c->of->lib, v->type->mem) : NULL;
    return mem && mem->family == MEMF_global;
}

static bool collect(Op *op, void *user)
{
    Meetings *t = user;
    OpAccessVec all = { 0 };
    op_accesses(t->c->m, op, t->arena, &all);
    for (size_t i = 0; i < all.len; i++) {
        const Access *a = all.data[i].access;
        if ((all.data[i].flags & ACC_SYNC) ||
            !is_global(t->c, value_root(a->base)))
            continue;
        GlobalAccess g = { access_compose(t->c->m, a),
                           all.data[i].flags & (ACC_WRITE | ACC_REDUCE) };
        if (g.access)
            VEC_PUSH(t->arena, &t->places, g);
    }
    return true;
}

static bool is_written(const Meetings *t, const Value *root)
{
    for (size_t i = 0; i < t->places.len; i++)
        if (t->places.data[i].writes && t->places.data[i].access->base == root)
            return true;
    return false;
}

/* Never the same place: points of a dimension that are apart for all tasks. */
static bool are_apart(const Access *a, const Access *b)
{
    int64_t x, y;
    for (unsigned d = 0; d < a->rank; d++)
        if (a->dims[d].kind != DIM_interval &&
            b->dims[d].kind != DIM_interval && a->dims[d].lo && b->dims[d].lo &&
            affine_is_const(a->dims[d].lo, &x) &&
            affine_is_const(b->dims[d].lo, &y) && x != y)
            return true;
    return false;
}

/* Tasks of l at which p * l and q * l + apart have been the same: the first
 * of the one is where the other comes to, or as many further as the strides
 * take. */
static void note_distance(Meetings *t, const SizeLoop *l, const Affine *e,
                          const Affine *f)
{
    int64_t p = affine_coef(e, l->var), q = affine_coef(f, l->var), apart;
    if (!has_small_strides(p, q) ||
        __builtin_sub_overflow(e->constant, f->constant, &apart) || !apart ||
        apart == INT64_MIN)
        return;
    int64_t g = int_gcd(p, q);
    p = llabs(p);
    q = llabs(q);
    int64_t n = llabs(apart) / (p < q ? p : q) + (p < q ? q : p) / g + 1;
    add_meeting(t, &(Meeting){ { l, l }, { n, n }, 0 });
}

/* Accesses whose pairs are looked at. */
enum { MOST_PLACES = 8192 };

/* What two accesses are apart matters where one of them writes, for tasks that
 * sizes count. */
static void note_pairs(Meetings *t)
{
    bool tasks = false;
    for (unsigned j = 0; j < t->c->n_loops; j++)
        tasks = tasks || t->c->loops[j].tasks;
    if (!tasks)
        return;
    if (t->places.len > MOST_PLACES) {
        t->beyond = true;
        return;
    }
    for (size_t i = 0; i < t->places.len; i++)
        for (size_t k = 0; k < i; k++) {
            const GlobalAccess *x = &t->places.data[i], *y = &t->places.data[k];
            const Access *a = x->access, *b = y->access;
            if ((!x->writes && !y->writes) || a->base != b->base ||
                a->rank != b->rank || are_apart(a, b))
                continue;
            for (unsigned d = 0; d < a->rank; d++)
                for (unsigned j = 0; j < t->c->n_loops; j++)
                    if (t->c->loops[j].tasks && a->dims[d].lo && b->dims[d].lo)
                        note_distance(t, &t->c->loops[j], a->dims[d].lo,
                                      b->dims[d].lo);
        }
}

static void note_places(Meetings *t)
{
    for (size_t i = 0; i < t->places.len; i++) {
        const Access *a = t->places.data[i].access;
        if (!is_written(t, a->base))
            continue;
        for (unsigned k = 0; k < a->rank; k++)
            if (a->dims[k].lo)
                note_index(t, a->dims[k].lo);
        note_periods(t, a);
    }
    note_pairs(t);
}

/* ---- trying -------------------------------------------------------------- */

static bool is_met(const Chooser *c, const Meeting *m)
{
    return chooser_trips(c, m->loop[0]) >= m->trips[0] &&
           chooser_trips(c, m->loop[1]) >= m->trips[1];
}

static bool is_met_already(Chooser *c, const Meeting *m, const SizeSets *sets)
{
    for (size_t i = 0; i < sets->len; i++) {
        chooser_load(c, sets->data[i].values);
        if (is_met(c, m))
            return true;
    }
    return false;
}

static void reach(Chooser *c, unsigned i, const SizeLoop *l, int64_t n)
{
    if (chooser_trips(c, l) < n)
        chooser_set_trips(c, i, l, n);
}

static bool is_of_loops(const Chooser *c, unsigned i)
{
    for (unsigned k = 0; k < c->n_loops; k++)
        if (size_loop_uses(&c->loops[k], c->set.vars[i]))
            return true;
    return false;
}

/* Sizes of tensors, which a guard may compare with the place. */
static void make_room(Chooser *c, int64_t places)
{
    for (unsigned i = 0; i < c->set.n; i++) {
        int64_t n = (places / c->step[i] + 1) * c->step[i];
        VarKind kind = var_get(c->m->exprs, c->set.vars[i])->kind;
        if (kind == VAR_size && !is_of_loops(c, i) && c->values[i] < n)
            c->values[i] = n;
    }
}

static bool mend_rest(Chooser *c, unsigned i, unsigned k)
{
    c->pinned[i] = c->pinned[k] = true;
    bool ok = chooser_mend(c);
    c->pinned[i] = c->pinned[k] = false;
    return ok;
}

/* Parameters i and k at values with which the loops meet; both at the greater,
 * where asserts want that. One parameter that drives two is taken one trip
 * further: there the last task may have fewer. */
static bool meet_by(Chooser *c, const Meeting *m, unsigned i, unsigned k,
                    const int64_t *base)
{
    int64_t more = i == k && m->loop[0] != m->loop[1];
    for (unsigned round = 0; round < 2; round++) {
        chooser_load(c, base);
        reach(c, i, m->loop[0], m->trips[0] + more);
        reach(c, k, m->loop[1], m->trips[1] + more);
        int64_t *least =
            c->values[i] < c->values[k] ? &c->values[i] : &c->values[k];
        if (round)
            *least = c->values[i] + c->values[k] - *least;
        make_room(c, m->places);
        if (is_met(c, m) && mend_rest(c, i, k) && is_met(c, m))
            return true;
    }
    return false;
}

static bool meet(Chooser *c, const Meeting *m, const int64_t *base)
{
    for (unsigned i = 0; i < c->set.n; i++)
        for (unsigned k = 0; k < c->set.n; k++)
            if (size_loop_uses(m->loop[0], c->set.vars[i]) &&
                size_loop_uses(m->loop[1], c->set.vars[k]) &&
                meet_by(c, m, i, k, base))
                return true;
    return false;
}

/* Trips that are more than a check runs. */
static bool is_long(const Meeting *m, int64_t most)
{
    return m->trips[0] > most || m->trips[1] > most;
}

/* Adds a set where the loops meet, where there is one; false: it is beyond what
 * a check runs. */
static bool add_set(Chooser *c, const Meeting *m, const int64_t *base,
                    SizeSets *out)
{
    if (is_long(m, SIZE_MOST))
        return false;
    if (is_met_already(c, m, out) || !meet(c, m, base))
        return true;
    if (is_long(m, SIZE_MOST_TURN) || !chooser_add(c, out))
        return false;
    out->needed = out->len;
    return true;
}

void sizes_meet(Chooser *c, const int64_t *base, SizeSets *out)
{
    Meetings t = { .c = c, .arena = c->arena };
    for (unsigned k = 0; k < c->n_loops; k++)
        t.let[k] = 1;
    op_walk((Op *)c->proc, note_if, &t);
    op_walk((Op *)c->proc, collect, &t);
    note_places(&t);
    for (unsigned i = 0; i < t.n; i++)
        t.beyond = !add_set(c, &t.all[i], base, out) || t.beyond;
    if (t.beyond)
        out->beyond = "tasks meet at sizes beyond those that are "
                      "derived: give sizes";
}
