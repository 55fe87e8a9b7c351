/* What synchronisation makes of all states. A change is a function of the
 * state's contents alone, so what it made of one is remembered: with numbers of
 * barrier elements that come round, nearly all is found there. */
#include "verify/sync/machine_impl.h"

#include <string.h>

/* PLACES: at which a name may be. */
enum { MOST_TARGETS = 16, PLACES = 8 };

struct ChangeName {
    Change change;
    BarId targets[MOST_TARGETS];
    uint32_t number;
};

void changes_open(Machine *m)
{
    m->names = ARENA_ARRAY(m->arena, ChangeName, SYNC_CHANGES);
    memo_open(&m->made, m->arena, SYNC_CHANGED);
}

/* ---- numbers of changes ------------------------------------------------- */

static uint32_t change_hash(const Change *c)
{
    uint64_t h = hash_word(HASH_SEED, c->c ^ (uint64_t)c->kind << 32);
    h = hash_word(h, (uint64_t)c->limit ^ (uint64_t)c->count << 32);
    h = hash_word(h, (uintptr_t)c->l1 ^ (uintptr_t)c->l2 << 20);
    for (unsigned i = 0; i < c->n; i++)
        h = hash_word(h, c->targets[i]);
    return (uint32_t)(h ^ h >> 32);
}

static bool change_same(const Change *a, const Change *b)
{
    return a->kind == b->kind && a->c == b->c && a->l1 == b->l1 &&
           a->l2 == b->l2 && a->n == b->n && a->count == b->count &&
           a->limit == b->limit &&
           (!a->n || !memcmp(a->targets, b->targets, a->n * sizeof(BarId)));
}

/* Equal changes have equal numbers, as long as none takes their place; 0: it
 * has none. */
static uint32_t change_number(Machine *m, const Change *c)
{
    if (c->n > MOST_TARGETS || m->n_names == UINT32_MAX)
        return 0;
    uint32_t first = change_hash(c), k = 0;
    ChangeName *name = &m->names[first & (SYNC_CHANGES - 1)];
    while (name->number && k++ < PLACES) {
        if (change_same(&name->change, c))
            return name->number;
        name = &m->names[(first + k) & (SYNC_CHANGES - 1)];
    }
    name->change = *c;
    name->change.targets = name->targets;
    if (c->n)
        memcpy(name->targets, c->targets, c->n * sizeof(BarId));
    return name->number = ++m->n_names;
}

static bool is_await(const Change *c)
{
    return c->kind == CHANGE_await || c->kind == CHANGE_await_reads;
}

/* ---- records and states ------------------------------------------------- */

static RecordImage change_record(Machine *m, const Change *c, RecordId id)
{
    while (m->images.len <= id) {
        VEC_PUSH(m->arena, &m->images, ((RecordImage){ 0 }));
        VEC_PUSH(m->arena, &m->stamps, 0);
    }
    if (m->stamps.data[id] == m->stamp)
        return m->images.data[id];
    RecordImage out;
    if (c->kind == CHANGE_fence)
        out = record_fence(m->records, id, c->c, c->l1, c->l2);
    else if (c->kind == CHANGE_arrive)
        out = record_arrive(m->records, id, c->c, c->l1, c->n, c->targets,
                            c->count);
    else if (is_await(c))
        out = record_await(m->records, id, c->c, c->l2, *c->targets, c->limit,
                           c->kind == CHANGE_await_reads);
    else
        out = record_settle(m->records, id, m->fates.data);
    const Record *r = record_get(m->records, id);
    m->run->work += r->n_pend + r->n_vis;
    m->stamps.data[id] = m->stamp;
    m->images.data[id] = out;
    return out;
}

/* The state with its records changed; the same where none did. */
static StateId change_state(Machine *m, const Change *c, StateId id)
{
    State s = *state_get(m->records, id);
    unsigned n = s.n_reads + s.n_mutates, n_reads = 0;
    bool any = false;
    m->scratch.len = 0;
    for (unsigned i = 0; i < n; i++) {
        RecordImage image = change_record(m, c, s.records[i]);
        any = any || image.n != 1 || image.id[0] != s.records[i];
        for (unsigned k = 0; k < image.n; k++)
            VEC_PUSH(m->arena, &m->scratch, image.id[k]);
        if (i < s.n_reads)
            n_reads = (unsigned)m->scratch.len;
    }
    BarId free_bar = c->kind == CHANGE_settle
                         ? bar_settle(s.free_bar, m->fates.data)
                         : s.free_bar;
    if (!any && free_bar == s.free_bar)
        return id;
    return state_intern(m->records, free_bar, n_reads, m->scratch.data,
                        (unsigned)m->scratch.len - n_reads,
                        m->scratch.data + n_reads);
}

static StateId change_again(Machine *m, const Change *c, uint32_t number,
                            StateId from)
{
    MemoKey key = { .from = from, .what = number };
    StateId to;
    if (!number)
        return change_state(m, c, from);
    if (memo_find(&m->made, key, &to))
        return to;
    to = change_state(m, c, from);
    memo_put(&m->made, key, to);
    return to;
}

/* ---- handles ------------------------------------------------------------ */

/* May it change any record of the state? */
static bool concerns(const Change *c, const Live *l)
{
    if (c->kind == CHANGE_settle)
        return true;
    return is_await(c) ? l->pends >> c->targets[0] % 64 & 1
                       : (l->witness & c->l1->full) != 0;
}

/* The handle's state after the change. */
static void change_handle(Machine *m, const Change *c, uint32_t number, Live l)
{
    const Handle *h = &m->handles.data[l.handle];
    StateId from = h->state;
    if (h->forward)
        return;
    if (!h->count) {
        handle_detach(m, from);
        return;
    }
    StateId to = change_again(m, c, number, from);
    handle_watch(m, l.handle, to);
    if (to == from)
        return;
    VEC_PUSH(m->arena, &m->changed, l.handle);
    VEC_PUSH(m->arena, &m->changed_to, to);
    handle_detach(m, from);
}

void change_all(Machine *m, const Change *c)
{
    if (!++m->stamp)
        panic("sync-check: stamps ran out");
    m->changed.len = m->changed_to.len = 0;
    uint32_t number = change_number(m, c);
    size_t n = m->live.len;
    m->run->work += n;
    m->live.len = 0;
    for (size_t i = 0; i < n && (i % 64 || room_for(m, 0)); i++) {
        Live l = m->live.data[i];
        if (concerns(c, &l))
            change_handle(m, c, number, l);
        else
            m->live.data[m->live.len++] = l;
    }
    for (size_t i = 0; i < m->changed.len; i++)
        handle_attach(m, m->changed.data[i], m->changed_to.data[i]);
}
