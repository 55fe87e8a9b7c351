/* Writing states down, comparing them, and moving one on.
 *
 * A cell's entry is its state and counters. Cells behind everything that the
 * loop still touches are settled where trips no longer change what their
 * entries say; the others of both times must be equal, moved. Barrier elements
 * far behind are known by their number, the others by their distance. */
#include "verify/sync/steady.h"

#include "verify/sync/moves.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 40, KEPT = 4, MOST_KINDS = 64 };

#define MOVED_BAR (UINT32_C(1) << 31)

typedef struct Entry {
    int64_t key; /* row-major number of the cell */
    uint32_t data[4];
    const CellUse *use; /* of a cell of global memory */
} Entry;

typedef struct Entries {
    Entry *data;
    size_t len, cap;
} Entries;

/* The state at the beginning of a trip. */
typedef struct Snapshot {
    int64_t trip;
    int64_t n;          /* periods since the first */
    Entries *entries;   /* by tensor */
    uint32_t **arrives; /* by tensor: of barriers that are not one-shot */
} Snapshot;

/* One loop under observation, from one of its first trips to its end, in an
 * arena of its own; its snapshots are those of the last periods. */
typedef struct Watch {
    Arena *arena;
    Moves moves;
    bool given_up;
    unsigned tries;
    Snapshot kept[KEPT];
    unsigned n_kept;
    unsigned generation; /* of the states that they hold */
} Watch;

/* What records and states are when all that moves is moved back by n periods:
 * remembered by number. */
typedef struct Mapping {
    Arena *arena;
    Machine *m;
    const Moves *moves;
    int64_t n;
    const int64_t *first; /* by tensor: a number for the first element */
    VEC(RecordId) records;
    VEC(StateId) states;
} Mapping;

/* ---- barrier elements --------------------------------------------------- */

/* Along the dimension in which the tensor moves, in cells. */
static int64_t low_of(const Machine *m, const Moves *mv, unsigned tensor,
                      int64_t n)
{
    const Move *t = &mv->tensors[tensor];
    return (t->low + n * t->by) / m->grains[tensor][t->dim];
}

static int64_t shift_of(const Machine *m, const Moves *mv, unsigned tensor)
{
    const Move *t = &mv->tensors[tensor];
    if (!t->by)
        return 0;
    return t->by / m->grains[tensor][t->dim] *
           instance_stride(m, tensor, t->dim);
}

/* Is the cell so far behind all that the loop touches n periods on? */
static bool is_behind(const Machine *m, const Moves *mv, unsigned tensor,
                      int64_t key, int64_t n, int64_t far)
{
    const Move *t = &mv->tensors[tensor];
    if (!t->by)
        return false;
    int64_t at = key / instance_stride(m, tensor, t->dim) %
                 m->instances[tensor].cells[t->dim];
    return at < low_of(m, mv, tensor, n) - far;
}

static bool is_past(const Machine *m, const Moves *mv, unsigned tensor,
                    int64_t key, int64_t n)
{
    return is_behind(m, mv, tensor, key, n, 0);
}

/* Elements so far behind along a ring are named by no trip, and so may be known
 * by any name. */
static int64_t margin_of(const Machine *m, unsigned tensor)
{
    const Value *v = m->run->program->tensors[tensor].value;
    return v->ring_dim >= 0 ? 2 * v->ring_depth : 0;
}

/* Does it move with the trips? Those far behind stay. */
static bool bar_moves(const Machine *m, const Moves *mv, SyncElement e,
                      int64_t n)
{
    return mv->tensors[e.tensor].by &&
           !is_behind(m, mv, e.tensor, e.flat, n, margin_of(m, e.tensor));
}

/* The element moved back, with a mark. */
static BarId map_bar(const Mapping *map, BarId bar)
{
    SyncElement e;
    if (!barrier_find(map->m, bar, &e) ||
        !bar_moves(map->m, map->moves, e, map->n))
        return bar;
    int64_t far =
        margin_of(map->m, e.tensor) *
        instance_stride(map->m, e.tensor, map->moves->tensors[e.tensor].dim);
    return MOVED_BAR | (BarId)(map->first[e.tensor] + e.flat + far -
                               map->n * shift_of(map->m, map->moves, e.tensor));
}

/* Arrivals that a record waits for, as their age, in which what no Await
 * leaves out is old. */
static uint32_t map_count(const Mapping *map, Pend p)
{
    SyncElement e;
    const SyncTensor *tensors = map->m->run->program->tensors;
    if (!barrier_find(map->m, p.bar, &e) ||
        barrier_is_one_shot(&tensors[e.tensor]))
        return p.count;
    int64_t count = bar_count(&map->m->instances[e.tensor], e.flat);
    int64_t age = count - p.count, most = tensors[e.tensor].most_left;
    return (uint32_t)(age < most + 1 ? age : most + 1);
}

/* ---- records and states ------------------------------------------------- */

static RecordId map_record(Mapping *map, RecordId id)
{
    Arena *arena = map->arena;
    while (map->records.len <= id)
        VEC_PUSH(arena, &map->records, 0);
    if (map->records.data[id])
        return map->records.data[id];
    Record r = *record_get(map->m->records, id);
    Pend *pend = ARENA_ARRAY(arena, Pend, r.n_pend);
    unsigned n = 0;
    for (unsigned i = 0; i < r.n_pend; i++) {
        Pend p = r.pend[i];
        if (map->m->owners.data[p.bar].buried)
            continue;
        p = (Pend){ map_bar(map, p.bar), map_count(map, p) };
        unsigned k = n++;
        for (; k && pend[k - 1].bar > p.bar; k--)
            pend[k] = pend[k - 1];
        pend[k] = p;
    }
    r.pend = pend;
    r.n_pend = n;
    r.free_bar = r.free_bar ? map_bar(map, r.free_bar) : 0;
    RecordId to = record_intern(map->m->records, &r);
    map->records.data[id] = to;
    return to;
}

static StateId map_state(Mapping *map, StateId id)
{
    Arena *arena = map->arena;
    if (!id)
        return 0;
    while (map->states.len <= id)
        VEC_PUSH(arena, &map->states, 0);
    if (map->states.data[id])
        return map->states.data[id];
    State s = *state_get(map->m->records, id);
    unsigned n = s.n_reads + s.n_mutates;
    RecordId *ids = ARENA_ARRAY(arena, RecordId, n);
    for (unsigned i = 0; i < n; i++)
        ids[i] = map_record(map, s.records[i]);
    BarId bar = s.free_bar ? map_bar(map, s.free_bar) : 0;
    StateId to = state_intern(map->m->records, bar, s.n_reads, ids, s.n_mutates,
                              ids + s.n_reads);
    map->states.data[id] = to;
    return to;
}

/* ---- snapshots ---------------------------------------------------------- */

static void add_dense(Mapping *map, unsigned tensor, Entries *out)
{
    Machine *m = map->m;
    const Instance *in = &m->instances[tensor];
    bool counted =
        in->n_bars && barrier_is_one_shot(&m->run->program->tensors[tensor]);
    bool awaits = counted && m->run->program->tensors[tensor].mem->barrier ==
                                 BARRIER_cluster;
    for (int64_t i = 0; i < in->n_cells; i++) {
        Entry e = { .key = i };
        if (in->dense[i])
            e.data[0] = map_state(map, handle_state(m, in->dense[i]));
        if (counted) {
            e.data[1] = in->arrives[i];
            e.data[2] = awaits ? in->awaits[i] : 0;
            e.data[3] = in->reached[i];
        }
        if (e.data[0] | e.data[1] | e.data[2] | e.data[3])
            VEC_PUSH(map->arena, out, e);
    }
}

static int compare_entries(const void *a, const void *b)
{
    const Entry *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void add_sparse(Mapping *map, unsigned tensor, Entries *out)
{
    const Instance *in = &map->m->instances[tensor];
    for (size_t i = 0; i < in->cap_sparse; i++) {
        const Sparse *c = &in->sparse[i];
        if (!c->key)
            continue;
        Entry e = { .key = c->key - 1, .use = &c->use };
        e.data[0] = map_state(map, handle_state(map->m, c->handle));
        e.data[1] = c->use.how;
        if (!e.data[0] && !e.data[1])
            continue;
        VEC_PUSH(map->arena, out, e);
    }
    if (out->len > 1)
        qsort(out->data, out->len, sizeof *out->data, compare_entries);
}

/* Numbers for the first elements of barriers, with room for what is behind. */
static const int64_t *number_elements(const Machine *m, Arena *arena)
{
    unsigned n = m->run->program->n_tensors;
    int64_t *first = ARENA_ARRAY(arena, int64_t, n), next = 0;
    for (unsigned i = 0; i < n; i++) {
        const Instance *in = &m->instances[i];
        const Value *v = m->run->program->tensors[i].value;
        first[i] = next;
        if (!in->live || !in->n_bars)
            continue;
        next += in->n_bars;
        if (v->ring_dim >= 0)
            next +=
                margin_of(m, i) * instance_stride(m, i, (unsigned)v->ring_dim);
    }
    return first;
}

static void take_snapshot(Machine *m, Watch *w, int64_t trip, Snapshot *out)
{
    unsigned n = m->run->program->n_tensors;
    out->trip = trip;
    out->n = (trip - w->moves.lo) / w->moves.period;
    out->entries = ARENA_ARRAY(w->arena, Entries, n);
    out->arrives = ARENA_ARRAY(w->arena, uint32_t *, n);
    Mapping map = { .arena = w->arena,
                    .m = m,
                    .moves = &w->moves,
                    .n = out->n,
                    .first = number_elements(m, w->arena) };
    for (unsigned i = 0; i < n; i++) {
        const Instance *in = &m->instances[i];
        if (!in->live)
            continue;
        if (in->dense)
            add_dense(&map, i, &out->entries[i]);
        else
            add_sparse(&map, i, &out->entries[i]);
        if (in->n_bars && !barrier_is_one_shot(&m->run->program->tensors[i]))
            out->arrives[i] =
                arena_memdup(w->arena, in->arrives,
                             (size_t)in->n_bars * sizeof *in->arrives);
    }
}

/* ---- comparing ---------------------------------------------------------- */

/* What entries of settled cells say. */
typedef struct Kinds {
    unsigned n;
    uint32_t data[MOST_KINDS][4];
} Kinds;

static bool has_kind(const Kinds *k, const Entry *e)
{
    for (unsigned i = 0; i < k->n; i++)
        if (!memcmp(k->data[i], e->data, sizeof e->data))
            return true;
    return false;
}

/* Kinds of cells that were behind already and did not change. */
static void find_kinds(const Machine *m, const Moves *mv, unsigned tensor,
                       const Snapshot *a, const Snapshot *b, Kinds *out)
{
    const Entries *x = &a->entries[tensor], *y = &b->entries[tensor];
    out->n = 0;
    for (size_t i = 0, k = 0; i < x->len && out->n < MOST_KINDS; i++) {
        const Entry *e = &x->data[i];
        while (k < y->len && y->data[k].key < e->key)
            k++;
        if (k < y->len && y->data[k].key == e->key &&
            !memcmp(y->data[k].data, e->data, sizeof e->data) &&
            is_past(m, mv, tensor, e->key, a->n) && !has_kind(out, e))
            memcpy(out->data[out->n++], e->data, sizeof e->data);
    }
}

static bool is_settled(const Machine *m, const Moves *mv, unsigned tensor,
                       const Kinds *k, const Snapshot *s, const Entry *e)
{
    return is_past(m, mv, tensor, e->key, s->n) && has_kind(k, e);
}

/* Are the cells that are not settled the same, moved? */
static bool same_cells(const Machine *m, const Moves *mv, unsigned tensor,
                       const Snapshot *a, const Snapshot *b, Kinds *kinds)
{
    const Entries *x = &a->entries[tensor], *y = &b->entries[tensor];
    int64_t shift = shift_of(m, mv, tensor) * (b->n - a->n);
    size_t i = 0, k = 0;
    find_kinds(m, mv, tensor, a, b, kinds);
    for (;;) {
        while (i < x->len && is_settled(m, mv, tensor, kinds, a, &x->data[i]))
            i++;
        while (k < y->len && is_settled(m, mv, tensor, kinds, b, &y->data[k]))
            k++;
        if (i == x->len || k == y->len)
            return i == x->len && k == y->len;
        if (y->data[k].key != x->data[i].key + shift ||
            memcmp(y->data[k].data, x->data[i].data, sizeof x->data[i].data))
            return false;
        i++;
        k++;
    }
}

static bool same_snapshots(Machine *m, Watch *w, const Snapshot *a,
                           const Snapshot *b, Kinds *kinds)
{
    for (unsigned i = 0; i < m->run->program->n_tensors; i++)
        if (!same_cells(m, &w->moves, i, a, b, &kinds[i]))
            return false;
    return true;
}

/* ---- moving on ---------------------------------------------------------- */

typedef struct Jump {
    Machine *m;
    const Moves *moves;
    const Snapshot *from, *now;
    Arena *arena;
    int64_t times;      /* distances from `from` to `now` to go on by */
    const Kinds *kinds; /* by tensor */
} Jump;

static void put_dense(Jump *j, unsigned tensor, int64_t key, StateId s,
                      const Entry *e)
{
    Instance *in = &j->m->instances[tensor];
    cell_set(j->m, &in->dense[key], s);
    if (!in->n_bars)
        return;
    in->arrives[key] = e ? e->data[1] : 0;
    in->awaits[key] = e ? e->data[2] : 0;
    in->reached[key] = e ? e->data[3] : 0;
}

static void put_sparse(Jump *j, unsigned tensor, int64_t key, StateId s,
                       const Entry *e, const CellUse *use)
{
    int64_t at[SYNC_MAX_RANK] = { 0 };
    instance_unflat(j->m, tensor, key, at);
    Sparse *c = sparse_cell(j->m, tensor, at);
    if (!c)
        return;
    cell_set(j->m, &c->handle, s);
    c->use.how = 0;
    if (e)
        c->use = *use;
}

static void put(Jump *j, unsigned tensor, int64_t key, StateId s,
                const Entry *e, const CellUse *use)
{
    if (j->m->instances[tensor].dense)
        put_dense(j, tensor, key, s, e);
    else
        put_sparse(j, tensor, key, s, e, use);
}

static StateId state_at(const Jump *j, unsigned tensor, int64_t key)
{
    Machine *m = j->m;
    const Instance *in = &m->instances[tensor];
    int64_t at[SYNC_MAX_RANK] = { 0 };
    if (in->dense)
        return handle_state(m, in->dense[key]);
    instance_unflat(m, tensor, key, at);
    const Sparse *c = sparse_cell(m, tensor, at);
    return c ? handle_state(m, c->handle) : 0;
}

/* Where an entry of a moving tensor goes. */
typedef enum Goes { GOES_stays, GOES_repeats, GOES_moves } Goes;

static Goes goes(const Jump *j, unsigned tensor, const Entry *e)
{
    const Kinds *k = &j->kinds[tensor];
    if (!is_settled(j->m, j->moves, tensor, k, j->now, e))
        return GOES_moves;
    const Entries *x = &j->from->entries[tensor];
    const Entry *old =
        x->len ? bsearch(e, x->data, x->len, sizeof *e, compare_entries) : NULL;
    return old && is_settled(j->m, j->moves, tensor, k, j->from, old)
               ? GOES_stays
               : GOES_repeats;
}

/* Cells that move: what settled in the last distance settles in each, what is
 * not settled is found at the end, and nowhere else. What cells were used for
 * is read before any is looked up, which may give their table another place. */
static void move_cells(Jump *j, unsigned tensor)
{
    Machine *m = j->m;
    const Entries *x = &j->now->entries[tensor];
    int64_t shift = shift_of(m, j->moves, tensor) * (j->now->n - j->from->n);
    StateId *to = ARENA_ARRAY(j->arena, StateId, x->len);
    CellUse *use = ARENA_ARRAY(j->arena, CellUse, x->len);
    unsigned char *how = ARENA_ARRAY(j->arena, unsigned char, x->len);
    for (size_t i = 0; i < x->len; i++)
        if (x->data[i].use)
            use[i] = *x->data[i].use;
    for (size_t i = 0; i < x->len; i++) {
        to[i] = state_at(j, tensor, x->data[i].key);
        how[i] = (unsigned char)goes(j, tensor, &x->data[i]);
    }
    for (size_t i = 0; i < x->len; i++)
        if (how[i] == GOES_moves)
            put(j, tensor, x->data[i].key, 0, NULL, NULL);
        else
            put(j, tensor, x->data[i].key, to[i], &x->data[i], &use[i]);
    for (size_t i = 0; i < x->len; i++)
        for (int64_t q = 1;
             how[i] == GOES_repeats && q <= j->times && !m->run->failed; q++)
            put(j, tensor, x->data[i].key + q * shift, to[i], &x->data[i],
                &use[i]);
    for (size_t i = 0; i < x->len; i++)
        if (how[i] == GOES_moves)
            put(j, tensor, x->data[i].key + j->times * shift, to[i],
                &x->data[i], &use[i]);
}

/* Arrivals on barriers that count on: the pending ones stay as old as they
 * are. */
static void count_on(Jump *j, unsigned tensor)
{
    Instance *in = &j->m->instances[tensor];
    const uint32_t *now = j->now->arrives[tensor];
    for (int64_t k = 0; now && k < in->n_bars; k++) {
        uint32_t more =
            (uint32_t)j->times * (now[k] - j->from->arrives[tensor][k]);
        in->arrives[k] += more;
        in->base[k] += more;
    }
}

static bool moves_on(SyncElement e, void *user)
{
    const Jump *j = user;
    return bar_moves(j->m, j->moves, e, j->now->n);
}

/* Records and states are what they are: the elements that they name are others,
 * and they are those of other cells. */
static void jump(Jump *j)
{
    Machine *m = j->m;
    int64_t by = j->times * (j->now->n - j->from->n);
    for (unsigned i = 0; i < m->run->program->n_tensors; i++) {
        if (!m->instances[i].live)
            continue;
        if (m->instances[i].n_bars && j->moves->tensors[i].by)
            bars_move(m, i, by * shift_of(m, j->moves, i), moves_on, j);
        if (j->moves->tensors[i].by)
            move_cells(j, i);
        count_on(j, i);
    }
}

/* ---- watching ----------------------------------------------------------- */

static SyncLoop *note_of(Machine *m, const SyncNode *n)
{
    for (size_t i = 0; i < m->pub.loops.len; i++)
        if (m->pub.loops.data[i].node == n)
            return &m->pub.loops.data[i];
    VEC_PUSH(m->arena, &m->pub.loops, ((SyncLoop){ .node = n }));
    return &m->pub.loops.data[m->pub.loops.len - 1];
}

/* Is what is left to run so much more than writing states down? Most cells are
 * untouched, and passed over. */
static bool is_worth_it(const Machine *m, const SyncTrip *t)
{
    uint64_t cells = 0, done = (uint64_t)(t->trip - t->first);
    uint64_t events = m->run->n_events - t->events;
    for (unsigned i = 0; i < m->run->program->n_tensors; i++)
        if (m->instances[i].live)
            cells += m->instances[i].dense ? (uint64_t)m->instances[i].n_cells
                                           : m->instances[i].n_sparse;
    return m->run->eager ||
           events / done * (uint64_t)(t->end - t->trip) > 2000 + cells / 8;
}

/* Some barrier that counts on must not move: its elements have no age then. */
static bool counts_stay(const Machine *m, const Moves *mv)
{
    for (unsigned i = 0; i < m->run->program->n_tensors; i++)
        if (m->instances[i].n_bars && mv->tensors[i].by &&
            !barrier_is_one_shot(&m->run->program->tensors[i]))
            return false;
    return true;
}

static Watch *watch_new(Machine *m, const SyncTrip *t)
{
    Arena *arena = arena_child(m->arena);
    Watch *w = ARENA_NEW(arena, Watch);
    w->arena = arena;
    SyncLoop *note = note_of(m, t->node);
    note->trips = t->end - t->first;
    w->given_up =
        m->run->every_step || note->every ||
        !moves_find(arena, m->run, t->node, t->trip, t->end, &w->moves) ||
        !counts_stay(m, &w->moves);
    note->every = w->given_up;
    return w;
}

static void try_again(Machine *m, Watch *w, SyncTrip *t)
{
    const SyncProgram *p = m->run->program;
    Kinds *kinds = ARENA_ARRAY(w->arena, Kinds, p->n_tensors);
    Snapshot now;
    w->n_kept = w->generation == m->generation ? w->n_kept : 0;
    w->generation = m->generation;
    take_snapshot(m, w, t->trip, &now);
    for (unsigned i = w->n_kept; i-- > 0 && !w->given_up;) {
        const Snapshot *from = &w->kept[i];
        int64_t distance = now.trip - from->trip;
        if (!same_snapshots(m, w, from, &now, kinds))
            continue;
        int64_t times = (w->moves.hi - now.trip) / distance;
        SyncLoop *note = note_of(m, t->node);
        w->given_up = true; /* once is enough */
        if (times < 1)
            return;
        Jump j = { .m = m,
                   .moves = &w->moves,
                   .from = from,
                   .now = &now,
                   .arena = w->arena,
                   .times = times,
                   .kinds = kinds };
        jump(&j);
        t->trip += times * distance;
        note->period = distance;
        if (from->trip - t->first > note->from)
            note->from = from->trip - t->first;
        return;
    }
    if (w->n_kept == KEPT)
        memmove(w->kept, w->kept + 1, --w->n_kept * sizeof now);
    w->kept[w->n_kept++] = now;
    w->given_up = ++w->tries == TRIES;
    note_of(m, t->node)->every = w->given_up;
}

void steady_trip(Machine *m, SyncTrip *t)
{
    Watch *w = t->user;
    if (!w) {
        if (t->trip - t->first < 2 || !is_worth_it(m, t))
            return;
        t->user = w = watch_new(m, t);
    }
    if (w->given_up || t->trip < w->moves.lo || t->trip >= w->moves.hi ||
        (t->trip - w->moves.lo) % w->moves.period)
        return;
    try_again(m, w, t);
}

void steady_left(SyncTrip *t)
{
    Watch *w = t->user;
    arena_free(w->arena);
}
