/* Sizes at which tasks come to each other's places by their strides. In
 * `y[7 * b + i]` task b at i + 7 is where task b + 1 is at i: two tasks and
 * eight trips of i show it, fewer do not. In general strides p and q meet after
 * q / gcd steps along the first and p / gcd along the second; both loops get
 * one trip more than that, whatever parameters they depend on. */
#include "verify/sizes_impl.h"

#include "ir/lib.h"

#include <stdlib.h>

enum { MOST_MEETINGS = 8 };

/* Two loops, one of them of tasks, and the trips after which they have met. */
typedef struct Meeting {
    const SizeLoop *loop[2];
    int64_t trips[2];
    int64_t places; /* more than they come to */
} Meeting;

typedef struct Meetings {
    const Chooser *c;
    Arena *arena;
    unsigned n;
    Meeting all[MOST_MEETINGS];
    bool beyond; /* there are more */
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

/* The loops from which the places of an index are counted, two by two. */
static void note_index(Meetings *t, const Affine *e)
{
    const SizeLoop *loops = t->c->loops;
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

static bool is_global(const Chooser *c, const Value *v)
{
    const Mem *mem =
        v->type->mem ? lib_mem_find(c->of->lib, v->type->mem) : NULL;
    return mem && mem->family == MEMF_global;
}

static bool note_writes(Op *op, void *user)
{
    Meetings *t = user;
    OpAccessVec all = { 0 };
    op_accesses(t->c->m, op, t->arena, &all);
    for (size_t i = 0; i < all.len; i++) {
        const Access *a = all.data[i].access;
        bool writes = all.data[i].flags & (ACC_WRITE | ACC_REDUCE);
        if (!writes || (all.data[i].flags & ACC_SYNC) ||
            !is_global(t->c, value_root(a->base)))
            continue;
        a = access_compose(t->c->m, a);
        for (unsigned k = 0; a && k < a->rank; k++)
            if (a->dims[k].lo)
                note_index(t, a->dims[k].lo);
    }
    return true;
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
 * where asserts want that. One parameter that drives both is taken one trip
 * further: there the last task may have fewer. */
static bool meet_by(Chooser *c, const Meeting *m, unsigned i, unsigned k,
                    const int64_t *base)
{
    for (unsigned round = 0; round < 2; round++) {
        chooser_load(c, base);
        reach(c, i, m->loop[0], m->trips[0] + (i == k));
        reach(c, k, m->loop[1], m->trips[1] + (i == k));
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
    op_walk((Op *)c->proc, note_writes, &t);
    for (unsigned i = 0; i < t.n; i++)
        t.beyond = !add_set(c, &t.all[i], base, out) || t.beyond;
    if (t.beyond)
        out->beyond = "strides of tasks meet at sizes beyond those that are "
                      "derived: give sizes";
}
