/* Records and states: interning by content, visibility, and what each kind of
 * synchronisation makes of a record. */
#include "verify/sync/records.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_VIS = 32 * VIS_flags };

/* Numbers by content: open addressing over 64-bit hashes. */
typedef struct Slot {
    uint64_t hash;
    uint32_t id;
} Slot;

typedef struct Index {
    Slot *slots;
    size_t cap, len;
} Index;

struct RecordTable {
    Arena *arena;
    ThreadPool *pool;
    VEC(Record) records;
    VEC(State) states;
    Index record_index, state_index;
    Pend *pend; /* scratch */
    size_t pend_cap;
    RecordId *ids; /* scratch */
    size_t ids_cap;
};

RecordTable *record_table_new(Arena *parent, ThreadPool *pool)
{
    Arena *arena = arena_child(parent);
    RecordTable *t = ARENA_NEW(arena, RecordTable);
    t->arena = arena;
    t->pool = pool;
    VEC_PUSH(arena, &t->records, (Record){ 0 });
    VEC_PUSH(arena, &t->states, (State){ 0 });
    return t;
}

void record_table_free(RecordTable *t)
{
    arena_free(t->arena);
}

size_t record_table_bytes(const RecordTable *t)
{
    return arena_bytes(t->arena);
}

const Record *record_get(const RecordTable *t, RecordId id)
{
    return &t->records.data[id];
}

const State *state_get(const RecordTable *t, StateId id)
{
    return &t->states.data[id];
}

/* ---- the index ---------------------------------------------------------- */

static void index_put(Index *x, Slot slot)
{
    size_t i = slot.hash & (x->cap - 1);
    while (x->slots[i].id)
        i = (i + 1) & (x->cap - 1);
    x->slots[i] = slot;
}

static void index_add(Arena *arena, Index *x, uint64_t hash, uint32_t id)
{
    if (2 * ++x->len > x->cap) {
        Index old = *x;
        x->cap = old.cap ? 2 * old.cap : 256;
        x->slots = ARENA_ARRAY(arena, Slot, x->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.slots[i].id)
                index_put(x, old.slots[i]);
    }
    index_put(x, (Slot){ hash, id });
}

/* Both tables are asked for each change: 64 bits at a time. */
static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

static uint64_t mix_words(uint64_t h, const uint32_t *words, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        h = mix(h, (uint64_t)words[i] << 32 | words[i + 1]);
    return n % 2 ? mix(h, words[n - 1]) : h;
}

/* ---- records ------------------------------------------------------------ */

static uint64_t record_hash(const Record *r)
{
    uint64_t h = HASH_SEED;
    for (uint32_t i = 0; i < r->n_vis; i++)
        h = mix(h, (uint64_t)r->vis[i].slot << 32 | r->vis[i].threads);
    for (uint32_t i = 0; i < r->n_pend; i++)
        h = mix(h, (uint64_t)r->pend[i].bar << 32 | r->pend[i].count);
    uint32_t rest[] = { r->own,   r->own_qual, r->own_flags, r->free_bar,
                        r->flags, r->origin,   r->mask };
    return mix_words(h, rest, sizeof rest / sizeof *rest);
}

static bool record_same(const Record *a, const Record *b)
{
    return a->n_vis == b->n_vis && a->n_pend == b->n_pend && a->own == b->own &&
           a->own_qual == b->own_qual && a->own_flags == b->own_flags &&
           a->free_bar == b->free_bar && a->flags == b->flags &&
           a->origin == b->origin && a->mask == b->mask &&
           (!a->n_vis || !memcmp(a->vis, b->vis, a->n_vis * sizeof *a->vis)) &&
           (!a->n_pend ||
            !memcmp(a->pend, b->pend, a->n_pend * sizeof *a->pend));
}

static ThreadsId vis_at(const Record *r, uint32_t slot)
{
    for (uint32_t i = 0; i < r->n_vis; i++)
        if (r->vis[i].slot == slot)
            return r->vis[i].threads;
    return 0;
}

/* Own signatures that everybody of the family has anyway say nothing. */
static void drop_own(RecordTable *t, Record *r)
{
    for (unsigned f = 0; f < VIS_flags; f++)
        if ((r->own_flags >> f & 1) &&
            !threads_subset(t->pool, r->own,
                            vis_at(r, VIS_flags * r->own_qual + f)))
            return;
    r->own = r->own_qual = r->own_flags = 0;
}

/* The flags by which a record is witnessed, as bits. */
static uint32_t witness_flags(const Record *r)
{
    uint32_t flags = 1u << VIS_issue | 1u << VIS_full;
    return r->flags & REC_READ ? flags | 1u << VIS_temporal : flags;
}

static uint32_t witness_quals(const Record *r)
{
    uint32_t quals = 0, flags = witness_flags(r);
    for (uint32_t i = 0; i < r->n_vis; i++) {
        if (flags >> r->vis[i].slot % VIS_flags & 1)
            quals |= 1u << (r->vis[i].slot / VIS_flags);
    }
    if (r->own && (r->own_flags & flags))
        quals |= 1u << r->own_qual;
    return quals;
}

RecordId record_intern(RecordTable *t, const Record *from)
{
    Record r = *from;
    if (r.own)
        drop_own(t, &r);
    uint64_t hash = record_hash(&r);
    Index *x = &t->record_index;
    for (size_t i = hash & (x->cap - 1); x->cap && x->slots[i].id;
         i = (i + 1) & (x->cap - 1))
        if (x->slots[i].hash == hash &&
            record_same(&r, &t->records.data[x->slots[i].id]))
            return x->slots[i].id;
    RecordId id = (RecordId)t->records.len;
    r.vis = arena_memdup(t->arena, r.vis, r.n_vis * sizeof *r.vis);
    r.pend = arena_memdup(t->arena, r.pend, r.n_pend * sizeof *r.pend);
    r.witness = witness_quals(&r);
    VEC_PUSH(t->arena, &t->records, r);
    index_add(t->arena, x, hash, id);
    return id;
}

/* ---- states ------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    RecordId x = *(const RecordId *)a, y = *(const RecordId *)b;
    return x < y ? -1 : x > y;
}

/* One family where a and b differ in `own` only; else 0. */
static RecordId merge(RecordTable *t, RecordId a, RecordId b)
{
    if (a == b)
        return a;
    Record x = t->records.data[a];
    const Record *y = &t->records.data[b];
    if (!x.own || !y->own)
        return 0;
    ThreadsId both = threads_or(t->pool, x.own, y->own);
    x.own = y->own;
    if (!record_same(&x, y))
        return 0;
    x.own = both;
    return record_intern(t, &x);
}

static unsigned normalize(RecordTable *t, RecordId *ids, unsigned n)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < n; i++) {
        RecordId id = ids[i];
        for (unsigned k = 0; k < kept;) {
            RecordId both = merge(t, ids[k], id);
            if (!both) {
                k++;
                continue;
            }
            id = both;
            ids[k] = ids[--kept];
        }
        ids[kept++] = id;
    }
    if (kept > 1)
        qsort(ids, kept, sizeof *ids, compare_ids);
    return kept;
}

/* Is anything there released? */
static bool any_freed(const RecordTable *t, unsigned n, const RecordId *ids)
{
    for (unsigned i = 0; i < n; i++)
        if (t->records.data[ids[i]].flags & REC_FREED)
            return true;
    return false;
}

bool state_is_freed(const RecordTable *t, StateId id)
{
    const State *s = &t->states.data[id];
    return s->n_mutates && any_freed(t, s->n_mutates, s->records + s->n_reads);
}

static bool state_same(const State *a, const State *b)
{
    uint32_t n = a->n_reads + a->n_mutates;
    return a->free_bar == b->free_bar && a->n_reads == b->n_reads &&
           a->n_mutates == b->n_mutates &&
           (!n || !memcmp(a->records, b->records, n * sizeof *a->records));
}

static void summarize(const RecordTable *t, State *s)
{
    for (uint32_t i = 0; i < s->n_reads + s->n_mutates; i++) {
        const Record *r = &t->records.data[s->records[i]];
        s->witness |= r->witness;
        for (uint32_t k = 0; k < r->n_pend; k++)
            s->pends |= UINT64_C(1) << r->pend[k].bar % 64;
    }
}

StateId state_intern(RecordTable *t, BarId free_bar, unsigned n_reads,
                     const RecordId *reads, unsigned n_mutates,
                     const RecordId *mutates)
{
    if (n_reads + n_mutates == 0 && !free_bar)
        return 0;
    if (n_reads + n_mutates > t->ids_cap) {
        t->ids_cap = 2 * (n_reads + n_mutates) + 64;
        t->ids = ARENA_ARRAY(t->arena, RecordId, t->ids_cap);
    }
    RecordId *ids = t->ids;
    if (n_reads)
        memcpy(ids, reads, n_reads * sizeof *ids);
    n_reads = normalize(t, ids, n_reads);
    if (n_mutates)
        memcpy(ids + n_reads, mutates, n_mutates * sizeof *ids);
    n_mutates = normalize(t, ids + n_reads, n_mutates);
    if (any_freed(t, n_mutates, ids + n_reads))
        free_bar = 0;
    State s = { .free_bar = free_bar,
                .n_reads = n_reads,
                .n_mutates = n_mutates,
                .records = ids };
    unsigned n = n_reads + n_mutates;
    uint64_t hash = mix_words(mix(HASH_SEED, free_bar), ids, n);
    hash = mix(hash, n_reads);
    Index *x = &t->state_index;
    for (size_t i = hash & (x->cap - 1); x->cap && x->slots[i].id;
         i = (i + 1) & (x->cap - 1))
        if (x->slots[i].hash == hash &&
            state_same(&s, &t->states.data[x->slots[i].id]))
            return x->slots[i].id;
    StateId id = (StateId)t->states.len;
    s.records = arena_memdup(t->arena, ids, n * sizeof *ids);
    summarize(t, &s);
    VEC_PUSH(t->arena, &t->states, s);
    index_add(t->arena, x, hash, id);
    return id;
}

/* ---- visibility --------------------------------------------------------- */

ThreadsId record_visible(const RecordTable *t, const Record *r, uint32_t quals,
                         VisFlag flag)
{
    ThreadsId out = 0;
    for (uint32_t i = 0; i < r->n_vis; i++)
        if (r->vis[i].slot % VIS_flags == flag &&
            (quals >> (r->vis[i].slot / VIS_flags) & 1))
            out = threads_or(t->pool, out, r->vis[i].threads);
    return out;
}

bool record_permits(const RecordTable *t, const Record *r, ThreadsId c,
                    uint32_t quals, VisFlag flag, bool convergent)
{
    ThreadPool *pool = t->pool;
    ThreadsId seen = record_visible(t, r, quals, flag);
    bool own =
        r->own && (quals >> r->own_qual & 1) && (r->own_flags >> flag & 1);
    if (convergent)
        return threads_and(pool, c, seen) != 0 ||
               (own && threads_subset(pool, r->own, c));
    ThreadsId missing = threads_minus(pool, c, seen);
    return !missing ||
           (own && missing == r->own && threads_count(pool, r->own) == 1);
}

ThreadsId record_witnessed(const RecordTable *t, const Record *r, ThreadsId c,
                           const SyncTimeline *l1, bool *all)
{
    uint32_t flags = witness_flags(r);
    *all = false;
    if (!(r->witness & l1->full))
        return 0;
    for (uint32_t i = 0; i < r->n_vis && !*all; i++)
        if ((flags >> r->vis[i].slot % VIS_flags & 1) &&
            (l1->full >> (r->vis[i].slot / VIS_flags) & 1))
            *all = threads_and(t->pool, r->vis[i].threads, c) != 0;
    ThreadsId part = 0;
    if (r->own && (l1->full >> r->own_qual & 1) && (r->own_flags & flags))
        part = threads_and(t->pool, r->own, c);
    if (r->own && part == r->own)
        *all = true;
    return part;
}

/* ---- changing records --------------------------------------------------- */

/* A record under change: its signatures by slot, where used has a bit. */
typedef struct Draft {
    Record r;
    uint64_t used[MAX_VIS / 64];
    ThreadsId slots[MAX_VIS];
    Vis vis[MAX_VIS];
} Draft;

static void draft_open(Draft *d, const Record *r)
{
    d->r = *r;
    memset(d->used, 0, sizeof d->used);
    for (uint32_t i = 0; i < r->n_vis; i++) {
        uint32_t s = r->vis[i].slot;
        d->slots[s] = r->vis[i].threads;
        d->used[s / 64] |= UINT64_C(1) << s % 64;
    }
}

static RecordId draft_close(RecordTable *t, Draft *d)
{
    d->r.n_vis = 0;
    d->r.vis = d->vis;
    for (uint32_t w = 0; w < MAX_VIS / 64; w++)
        for (uint64_t bits = d->used[w]; bits; bits &= bits - 1) {
            uint32_t s = 64 * w + (uint32_t)__builtin_ctzll(bits);
            d->vis[d->r.n_vis++] = (Vis){ s, d->slots[s] };
        }
    return record_intern(t, &d->r);
}

static void draft_add(RecordTable *t, Draft *d, unsigned qual, VisFlag flag,
                      ThreadsId c)
{
    uint32_t s = VIS_flags * qual + flag;
    uint64_t bit = UINT64_C(1) << s % 64;
    d->slots[s] =
        d->used[s / 64] & bit ? threads_or(t->pool, d->slots[s], c) : c;
    d->used[s / 64] |= bit;
}

/* C sees the record by what l2 names. */
static void draft_augment(RecordTable *t, Draft *d, ThreadsId c,
                          const SyncTimeline *l2)
{
    uint32_t full = l2->full & d->r.mask;
    uint32_t temporal = (l2->temporal | l2->full) & d->r.mask;
    for (unsigned q = 0; q < 32; q++) {
        if (full >> q & 1) {
            draft_add(t, d, q, VIS_atomic, c);
            draft_add(t, d, q, VIS_full, c);
            draft_add(t, d, q, VIS_issue, c);
        }
        if (temporal >> q & 1)
            draft_add(t, d, q, VIS_temporal, c);
    }
    if (temporal)
        d->r.flags &= ~(uint32_t)REC_BEFORE_ALLOC;
}

static RecordImage same(RecordId id)
{
    return (RecordImage){ 1, { id, 0 } };
}

/* The witnessed part as d says, and what is left of the family. */
static RecordImage split(RecordTable *t, RecordId id, Draft *d, bool all,
                         ThreadsId part)
{
    RecordImage out = { .n = 1 };
    if (!all) {
        Record rest = t->records.data[id];
        rest.own = threads_minus(t->pool, rest.own, part);
        d->r.own = d->r.own ? part : 0;
        out.id[out.n++] = record_intern(t, &rest);
    }
    out.id[0] = draft_close(t, d);
    if (out.n == 2 && out.id[0] == out.id[1])
        out.n = 1;
    return out;
}

RecordImage record_fence(RecordTable *t, RecordId id, ThreadsId c,
                         const SyncTimeline *l1, const SyncTimeline *l2)
{
    bool all;
    ThreadsId part = record_witnessed(t, &t->records.data[id], c, l1, &all);
    if (!all && !part)
        return same(id);
    Draft d;
    draft_open(&d, &t->records.data[id]);
    draft_augment(t, &d, c, l2);
    return split(t, id, &d, all, part);
}

static bool has_bar(unsigned n, const BarId *bars, BarId bar)
{
    for (unsigned i = 0; bar && i < n; i++)
        if (bars[i] == bar)
            return true;
    return false;
}

static Pend *pend_room(RecordTable *t, size_t n)
{
    if (n > t->pend_cap) {
        t->pend_cap = 2 * n + 64;
        t->pend = ARENA_ARRAY(t->arena, Pend, t->pend_cap);
    }
    return t->pend;
}

/* Both lists ascend; a count that is there already is the smaller one, since
 * arrivals only grow. */
static void draft_pend(RecordTable *t, Draft *d, unsigned n,
                       const BarId *targets, uint32_t count)
{
    Pend *out = pend_room(t, n + d->r.n_pend);
    const Pend *old = d->r.pend;
    uint32_t i = 0, k = 0, len = 0;
    while (i < d->r.n_pend || k < n) {
        if (k == n || (i < d->r.n_pend && old[i].bar <= targets[k])) {
            k += k < n && old[i].bar == targets[k];
            out[len++] = old[i++];
        } else {
            out[len++] = (Pend){ targets[k++], count };
        }
    }
    d->r.pend = out;
    d->r.n_pend = len;
}

static void draft_free(Draft *d)
{
    d->r = (Record){ .flags = REC_FREED, .mask = d->r.mask };
    memset(d->used, 0, sizeof d->used);
}

RecordImage record_arrive(RecordTable *t, RecordId id, ThreadsId c,
                          const SyncTimeline *l1, unsigned n,
                          const BarId *targets, uint32_t count)
{
    bool all;
    ThreadsId part = record_witnessed(t, &t->records.data[id], c, l1, &all);
    if (!all && !part)
        return same(id);
    Draft d;
    draft_open(&d, &t->records.data[id]);
    if (has_bar(n, targets, d.r.free_bar))
        draft_free(&d);
    else
        draft_pend(t, &d, n, targets, count);
    return split(t, id, &d, all, part);
}

RecordImage record_await(RecordTable *t, RecordId id, ThreadsId c,
                         const SyncTimeline *l2, BarId bar, int64_t limit,
                         bool reads_only)
{
    const Record *r = &t->records.data[id];
    if (reads_only && !(r->flags & REC_READ))
        return same(id);
    for (uint32_t i = 0; i < r->n_pend; i++) {
        if (r->pend[i].bar != bar || (int64_t)r->pend[i].count > limit)
            continue;
        Draft d;
        draft_open(&d, r);
        draft_augment(t, &d, c, l2);
        return same(draft_close(t, &d));
    }
    return same(id);
}

BarId bar_settle(BarId free_bar, const BarFate *fates)
{
    if (!free_bar || free_bar == BAR_NEVER)
        return free_bar;
    const BarFate *fate = &fates[free_bar];
    return fate->ends ? 0 : fate->buried ? BAR_NEVER : free_bar;
}

RecordImage record_settle(RecordTable *t, RecordId id, const BarFate *fates)
{
    Record r = t->records.data[id];
    Pend *out = pend_room(t, r.n_pend);
    uint32_t n = 0;
    BarId free_bar = bar_settle(r.free_bar, fates);
    bool any = free_bar != r.free_bar;
    for (uint32_t i = 0; i < r.n_pend; i++) {
        Pend p = r.pend[i];
        const BarFate *fate = &fates[p.bar];
        uint32_t less = fate->less < p.count ? fate->less : p.count;
        p.count -= less;
        any = any || less || fate->ends || fate->buried;
        if (!fate->ends && !fate->buried)
            out[n++] = p;
    }
    if (!any)
        return same(id);
    r.pend = out;
    r.n_pend = n;
    r.free_bar = free_bar;
    return same(record_intern(t, &r));
}
