/* Numbers of barrier elements. An element has one from when something refers to
 * it until nothing does and nobody will name it again; then another gets it.
 * A ring's numbers thus come round like its slots, and so do the records that
 * hold them. Arrivals on barriers that count on are counted from a base that
 * follows them, for the same reason: no Await tells apart what is older. */
#include "verify/sync/machine_impl.h"

/* So many buried elements, or arrivals over what matters, are borne. */
enum { SWEEP = 4 };

enum { LEAST_TURN = 16, MOST_TURN = 1 << 12 };

static BarOwner *owner_of(Machine *m, BarId bar)
{
    while (m->owners.len <= bar) {
        VEC_PUSH(m->arena, &m->owners, ((BarOwner){ 0 }));
        VEC_PUSH(m->arena, &m->fates, ((BarFate){ 0 }));
    }
    return &m->owners.data[bar];
}

/* Numbers that a ring's elements have in turn: a power of two, so that those of
 * all rings come round together. */
static int64_t turn_of(const SyncTensor *t)
{
    int64_t turn = LEAST_TURN;
    while (turn < 4 * t->value->ring_depth)
        turn *= 2;
    return turn;
}

void bars_reserve(Machine *m, unsigned barrier)
{
    const SyncTensor *t = &m->run->program->tensors[barrier];
    Instance *in = &m->instances[barrier];
    int dim = t->value->ring_dim;
    if (dim < 0 || in->n_turn || !in->cells[dim])
        return;
    int64_t n = turn_of(t) * (in->n_cells / in->cells[dim]);
    if (n > MOST_TURN)
        return;
    in->n_turn = n;
    in->turn = m->owners.len ? (BarId)m->owners.len : 1;
    for (BarId i = in->turn; i < in->turn + n; i++)
        owner_of(m, i)->reserved = true;
}

/* The number whose turn it is; 0: there is none. */
static BarId in_turn(const Machine *m, unsigned barrier, int64_t flat)
{
    const SyncTensor *t = &m->run->program->tensors[barrier];
    const Instance *in = &m->instances[barrier];
    if (!in->n_turn)
        return 0;
    unsigned dim = (unsigned)t->value->ring_dim;
    int64_t inner = instance_stride(m, barrier, dim), n = in->cells[dim];
    int64_t k = flat / inner % n, beside = flat / (inner * n);
    int64_t at = (beside * inner + flat % inner) * turn_of(t) + k % turn_of(t);
    return at < in->n_turn ? in->turn + (BarId)at : 0;
}

BarId bar_of(Machine *m, unsigned barrier, int64_t flat)
{
    BarId *bar = &m->instances[barrier].bars[flat];
    if (*bar)
        return *bar;
    BarId id = in_turn(m, barrier, flat);
    if (!id || owner_of(m, id)->used) {
        id = m->lowest;
        while (owner_of(m, id)->used || owner_of(m, id)->reserved)
            id++;
        m->lowest = id + 1;
    }
    BarOwner *o = owner_of(m, id);
    o->used = true;
    o->element = (SyncElement){ barrier, flat };
    return *bar = id;
}

bool barrier_find(const Machine *m, BarId bar, SyncElement *out)
{
    if (bar >= m->owners.len || !m->owners.data[bar].used ||
        m->owners.data[bar].astray)
        return false;
    *out = m->owners.data[bar].element;
    return m->instances[out->tensor].live;
}

void bar_bury(Machine *m, unsigned barrier, int64_t flat)
{
    BarId bar = m->instances[barrier].bars[flat];
    if (!bar || m->owners.data[bar].buried)
        return;
    m->owners.data[bar].buried = true;
    m->n_buried++;
}

int64_t bar_count(const Instance *in, int64_t flat)
{
    return (int64_t)in->arrives[flat] - in->base[flat];
}

/* ---- giving numbers back ------------------------------------------------ */

static void give_back(Machine *m, BarId bar)
{
    BarOwner *o = &m->owners.data[bar];
    BarId *held = o->astray
                      ? NULL
                      : &m->instances[o->element.tensor].bars[o->element.flat];
    if (held && *held == bar)
        *held = 0;
    m->n_buried -= o->buried;
    *o = (BarOwner){ .reserved = o->reserved };
    m->lowest = bar < m->lowest ? bar : m->lowest;
}

/* Nothing holds what was buried or ended, once all records know of it. */
static void give_back_all(Machine *m)
{
    for (BarId i = 1; i < m->owners.len; i++) {
        BarFate fate = m->fates.data[i];
        m->fates.data[i] = (BarFate){ 0 };
        if (fate.ends || fate.buried)
            give_back(m, i);
    }
}

/* The fates, and what they come to, as numbers that say all of it. */
static void settle(Machine *m)
{
    Arena *arena = arena_child(m->arena);
    VEC(BarId) said = { 0 };
    for (BarId i = 1; i < m->owners.len; i++) {
        const BarFate *fate = &m->fates.data[i];
        if (!fate->buried && !fate->ends && !fate->less)
            continue;
        VEC_PUSH(arena, &said, i);
        VEC_PUSH(arena, &said, 4 * fate->less + 2 * fate->ends + fate->buried);
    }
    change_all(m, &(Change){ .kind = CHANGE_settle,
                             .n = (unsigned)said.len,
                             .targets = said.data });
    give_back_all(m);
    arena_free(arena);
}

/* ---- sweeping ----------------------------------------------------------- */

/* The base follows the arrivals, as far behind as an Await may look back. */
static void rebase(Machine *m, BarId bar)
{
    SyncElement e;
    if (!barrier_find(m, bar, &e))
        return;
    const SyncTensor *t = &m->run->program->tensors[e.tensor];
    Instance *in = &m->instances[e.tensor];
    int64_t over = bar_count(in, e.flat) - t->most_left - 1;
    if (barrier_is_one_shot(t) || over <= 0)
        return;
    m->fates.data[bar].less = (uint32_t)over;
    in->base[e.flat] += (uint32_t)over;
}

void bars_sweep(Machine *m, unsigned barrier, int64_t flat)
{
    const SyncTensor *t = &m->run->program->tensors[barrier];
    const Instance *in = &m->instances[barrier];
    bool counts =
        !barrier_is_one_shot(t) && bar_count(in, flat) - t->most_left > SWEEP;
    if (m->n_buried < SWEEP && !counts)
        return;
    for (BarId i = 1; i < m->owners.len; i++) {
        if (!m->owners.data[i].used)
            continue;
        m->fates.data[i].buried = m->owners.data[i].buried;
        rebase(m, i);
    }
    settle(m);
}

void bars_end(Machine *m, unsigned barrier)
{
    bool any = false;
    for (BarId i = 1; i < m->owners.len; i++) {
        const BarOwner *o = &m->owners.data[i];
        if (!o->used || o->astray || o->element.tensor != barrier)
            continue;
        m->fates.data[i].ends = any = true;
    }
    if (!any)
        return;
    settle(m);
}

/* ---- moving on ---------------------------------------------------------- */

void bars_move(Machine *m, unsigned barrier, int64_t by,
               bool (*moves)(SyncElement e, void *user), void *user)
{
    Instance *in = &m->instances[barrier];
    Arena *arena = arena_child(m->arena);
    VEC(BarId) moved = { 0 };
    for (BarId i = 1; i < m->owners.len; i++) {
        const BarOwner *o = &m->owners.data[i];
        if (!o->used || o->astray || o->element.tensor != barrier ||
            !moves(o->element, user))
            continue;
        VEC_PUSH(arena, &moved, i);
        in->bars[o->element.flat] = 0;
    }
    for (size_t i = 0; i < moved.len; i++) {
        BarOwner *o = &m->owners.data[moved.data[i]];
        o->element.flat += by;
        o->astray = o->element.flat >= in->n_bars;
        if (!o->astray)
            in->bars[o->element.flat] = moved.data[i];
    }
    arena_free(arena);
}
