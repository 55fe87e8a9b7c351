/* The abstract machine of sync-check once more, as it is written down: a list
 * of records for every element, a record for every thread, a set of signatures
 * for every record, nothing shared and nothing remembered. It consumes the
 * events that the fast machine consumes, and is what that one is held against.
 */
#ifndef EXO_TEST_SYNC_PLAIN_H
#define EXO_TEST_SYNC_PLAIN_H

#include "verify/sync/machine.h"

#include <string.h>

typedef struct PlainRecord {
    uint32_t *sig; /* [thread][flag]: timelines as bits */
    BarId *bars;   /* pend */
    uint32_t *counts;
    unsigned n_pend;
    BarId free_bar;
    uint32_t mask, origin;
    bool freed, before_alloc, read;
    struct PlainRecord *next;
} PlainRecord;

typedef struct PlainElement {
    PlainRecord *reads, *mutates;
    BarId free_bar;
} PlainElement;

typedef struct PlainTensor {
    bool live;
    int64_t extents[SYNC_MAX_RANK], n;
    PlainElement *elements;
    BarId base;
    uint32_t *arrives, *awaits;
} PlainTensor;

typedef struct Plain {
    SyncSink sink;
    Arena *arena;
    SyncRun *run;
    int64_t *
        *grains; /* one element stands for so many; NULL: each for itself */
    unsigned threads;
    PlainTensor *tensors;
    BarId next_bar;
    /* The first fault. */
    bool fault;
    const SyncNode *node;
    unsigned tensor;
    int64_t flat;
} Plain;

static bool plain_in(const Plain *p, ThreadsId c, unsigned t)
{
    return threads_has(p->run->pool, c, t);
}

static bool plain_fail(Plain *p, const SyncEvent *e, unsigned tensor,
                       int64_t flat)
{
    p->fault = true;
    p->node = e->node;
    p->tensor = tensor;
    p->flat = flat;
    return false;
}

static PlainRecord *plain_new(Plain *p, uint32_t mask, BarId free_bar)
{
    PlainRecord *r = ARENA_NEW(p->arena, PlainRecord);
    r->sig = ARENA_ARRAY(p->arena, uint32_t, 4 * p->threads);
    r->mask = mask;
    r->free_bar = free_bar;
    return r;
}

static void plain_pend(Plain *p, PlainRecord *r, BarId bar, uint32_t count)
{
    for (unsigned i = 0; i < r->n_pend; i++)
        if (r->bars[i] == bar) {
            if (count < r->counts[i])
                r->counts[i] = count;
            return;
        }
    BarId *bars = ARENA_ARRAY(p->arena, BarId, r->n_pend + 1);
    uint32_t *counts = ARENA_ARRAY(p->arena, uint32_t, r->n_pend + 1);
    for (unsigned i = 0; i < r->n_pend; i++) {
        bars[i] = r->bars[i];
        counts[i] = r->counts[i];
    }
    bars[r->n_pend] = bar;
    counts[r->n_pend++] = count;
    r->bars = bars;
    r->counts = counts;
}

static bool plain_visible(const Plain *p, const PlainRecord *r, ThreadsId c,
                          uint32_t quals, VisFlag f, bool convergent)
{
    for (unsigned t = 0; t < p->threads; t++) {
        if (!plain_in(p, c, t))
            continue;
        bool has = r->sig[4 * t + f] & quals;
        if (convergent && has)
            return true;
        if (!convergent && !has)
            return false;
    }
    return !convergent;
}

static bool plain_witnessed(const Plain *p, const PlainRecord *r, ThreadsId c,
                            const SyncTimeline *l1)
{
    for (unsigned t = 0; t < p->threads; t++)
        if (plain_in(p, c, t) &&
            ((r->sig[4 * t + VIS_issue] | r->sig[4 * t + VIS_full] |
              (r->read ? r->sig[4 * t + VIS_temporal] : 0)) &
             l1->full))
            return true;
    return false;
}

static void plain_augment(const Plain *p, PlainRecord *r, ThreadsId c,
                          const SyncTimeline *l2)
{
    uint32_t full = l2->full & r->mask;
    uint32_t temporal = (l2->full | l2->temporal) & r->mask;
    if (temporal)
        r->before_alloc = false;
    for (unsigned t = 0; t < p->threads; t++) {
        if (!plain_in(p, c, t))
            continue;
        r->sig[4 * t + VIS_atomic] |= full;
        r->sig[4 * t + VIS_full] |= full;
        r->sig[4 * t + VIS_issue] |= full;
        r->sig[4 * t + VIS_temporal] |= temporal;
    }
}

/* ---- elements ----------------------------------------------------------- */

static int64_t plain_grain(const Plain *p, unsigned tensor, unsigned dim)
{
    return p->grains ? p->grains[tensor][dim] : 1;
}

static void plain_open(Plain *p, unsigned tensor, const int64_t *extents)
{
    const Value *v = p->run->program->tensors[tensor].value;
    PlainTensor *t = &p->tensors[tensor];
    *t = (PlainTensor){ .live = true, .n = 1 };
    for (unsigned i = 0; i < v->type->rank; i++) {
        int64_t g = plain_grain(p, tensor, i);
        t->extents[i] = extents[i] > 0 ? (extents[i] + g - 1) / g : 0;
        t->n *= t->extents[i];
    }
    t->elements = ARENA_ARRAY(p->arena, PlainElement, t->n);
    t->arrives = ARENA_ARRAY(p->arena, uint32_t, t->n);
    t->awaits = ARENA_ARRAY(p->arena, uint32_t, t->n);
}

typedef struct PlainAccess {
    ThreadsId c;
    uint32_t initial, extended, flags, mask, origin;
    unsigned n_pend;
    BarId bars[64];
    uint32_t counts[64];
} PlainAccess;

static PlainRecord *plain_record(Plain *p, const PlainAccess *a, BarId free_bar,
                                 unsigned only)
{
    PlainRecord *r = plain_new(p, a->mask, free_bar);
    uint32_t q = 1u << a->initial;
    r->origin = a->origin;
    r->read = !(a->flags & SYNC_MUTATE);
    for (unsigned t = 0; t < p->threads; t++) {
        if (a->flags & SYNC_ATOMIC)
            r->sig[4 * t + VIS_atomic] |= q;
        if (!plain_in(p, a->c, t))
            continue;
        if (only != UINT32_MAX && only != t)
            continue;
        r->sig[4 * t + VIS_issue] |= q;
        if (a->flags & SYNC_OUT_OF_ORDER)
            continue;
        r->sig[4 * t + VIS_atomic] |= q;
        r->sig[4 * t + VIS_full] |= q;
        r->sig[4 * t + VIS_temporal] |= q;
    }
    for (unsigned i = 0; i < a->n_pend; i++)
        plain_pend(p, r, a->bars[i], a->counts[i]);
    return r;
}

static void plain_add(Plain *p, const PlainAccess *a, PlainElement *e,
                      PlainRecord **list)
{
    if (a->flags & SYNC_CONVERGENT) {
        PlainRecord *r = plain_record(p, a, e->free_bar, UINT32_MAX);
        r->next = *list;
        *list = r;
        return;
    }
    for (unsigned t = 0; t < p->threads; t++) {
        if (!plain_in(p, a->c, t))
            continue;
        PlainRecord *r = plain_record(p, a, e->free_bar, t);
        r->next = *list;
        *list = r;
    }
}

static bool plain_touch(Plain *p, const PlainAccess *a, PlainElement *e)
{
    bool conv = a->flags & SYNC_CONVERGENT, mutate = a->flags & SYNC_MUTATE;
    VisFlag f = a->flags & SYNC_ATOMIC       ? VIS_atomic
                : a->flags & SYNC_WRITE_ONLY ? VIS_temporal
                                             : VIS_full;
    for (PlainRecord *r = e->mutates; r; r = r->next)
        if (!plain_visible(p, r, a->c, a->extended, f, conv))
            return false;
    for (PlainRecord *r = mutate ? e->reads : NULL; r; r = r->next)
        if (!plain_visible(p, r, a->c, a->extended, VIS_temporal, conv))
            return false;
    if (!mutate) {
        plain_add(p, a, e, &e->reads);
        return true;
    }
    e->reads = NULL;
    if (!(a->flags & SYNC_ATOMIC))
        e->mutates = NULL;
    plain_add(p, a, e, &e->mutates);
    return true;
}

static bool plain_barrier_reads(Plain *p, const SyncEvent *e, unsigned n,
                                const int64_t *flats, bool convergent)
{
    const SyncTensor *t = &p->run->program->tensors[e->barrier];
    uint32_t initial, extended;
    if (t->mem->barrier != BARRIER_mbarrier ||
        !qual_family_lookup(t->mem->qual_family, "cuda_in_order_instr",
                            &initial, &extended))
        return true;
    PlainAccess a = { .c = e->threads,
                      .initial = (uint32_t)__builtin_ctz(initial),
                      .extended = extended,
                      .flags = convergent ? SYNC_CONVERGENT : 0,
                      .mask = t->mask };
    for (unsigned i = 0; i < n; i++)
        if (!plain_touch(p, &a, &p->tensors[e->barrier].elements[flats[i]]))
            return plain_fail(p, e, e->barrier, flats[i]);
    return true;
}

static bool plain_one_shot(const SyncTensor *t)
{
    return t->mem->barrier == BARRIER_mbarrier ||
           t->mem->barrier == BARRIER_cluster;
}

static bool plain_access(Plain *p, const SyncEvent *e)
{
    unsigned tensor = e->node->tensor;
    const SyncTensor *t = &p->run->program->tensors[tensor];
    unsigned rank = t->value->type->rank;
    PlainTensor *bars = &p->tensors[e->barrier];
    PlainAccess a = { .c = e->threads,
                      .initial = e->node->initial,
                      .extended = e->node->extended,
                      .flags = e->node->flags,
                      .mask = t->mask,
                      .origin = e->node->id,
                      .n_pend = e->n_targets };
    for (unsigned i = 0; i < e->n_targets; i++) {
        a.counts[i] = bars->arrives[e->targets[i]];
        a.bars[i] = bars->base + (BarId)e->targets[i];
        if (a.counts[i] &&
            plain_one_shot(&p->run->program->tensors[e->barrier]))
            return plain_fail(p, e, e->barrier, e->targets[i]);
    }
    int64_t at[SYNC_MAX_RANK] = { 0 };
    for (int64_t k = 0; k < p->tensors[tensor].n; k++) {
        int64_t rest = k;
        bool in = true;
        for (unsigned i = rank; i-- > 0;) {
            int64_t g = plain_grain(p, tensor, i);
            at[i] = rest % p->tensors[tensor].extents[i];
            rest /= p->tensors[tensor].extents[i];
            in = in && at[i] * g < e->hi[i] && (at[i] + 1) * g > e->lo[i];
        }
        if (in && !plain_touch(p, &a, &p->tensors[tensor].elements[k]))
            return plain_fail(p, e, tensor, k);
    }
    return !e->n_targets ||
           plain_barrier_reads(p, e, e->n_targets, e->targets, false);
}

/* ---- synchronisation ---------------------------------------------------- */

static void plain_each(Plain *p, const SyncEvent *e,
                       void (*fn)(Plain *, const SyncEvent *, PlainRecord *,
                                  int64_t),
                       int64_t n)
{
    for (unsigned i = 0; i < p->run->program->n_tensors; i++)
        for (int64_t k = 0; p->tensors[i].live && k < p->tensors[i].n; k++) {
            PlainElement *x = &p->tensors[i].elements[k];
            for (PlainRecord *r = x->reads; r; r = r->next)
                fn(p, e, r, n);
            for (PlainRecord *r = x->mutates; r; r = r->next)
                fn(p, e, r, n);
        }
}

static void plain_fence(Plain *p, const SyncEvent *e, PlainRecord *r, int64_t n)
{
    (void)n;
    if (plain_witnessed(p, r, e->threads, e->node->first))
        plain_augment(p, r, e->threads, e->node->second);
}

static void plain_arrive(Plain *p, const SyncEvent *e, PlainRecord *r,
                         int64_t n)
{
    BarId base = p->tensors[e->barrier].base;
    if (!plain_witnessed(p, r, e->threads, e->node->first))
        return;
    for (unsigned i = 0; i < e->n_targets; i++)
        if (r->free_bar && r->free_bar == base + (BarId)e->targets[i]) {
            memset(r->sig, 0, 4 * p->threads * sizeof *r->sig);
            r->n_pend = 0;
            r->freed = true;
            return;
        }
    for (unsigned i = 0; i < e->n_targets; i++)
        plain_pend(p, r, base + (BarId)e->targets[i], (uint32_t)n);
}

static void plain_await(Plain *p, const SyncEvent *e, PlainRecord *r,
                        int64_t limit)
{
    BarId bar = p->tensors[e->barrier].base + (BarId)e->home;
    const SyncTensor *t = &p->run->program->tensors[e->barrier];
    if (!r->read && barrier_awaits_reads(t->mem->barrier, e->node->second))
        return;
    for (unsigned i = 0; i < r->n_pend; i++)
        if (r->bars[i] == bar && (int64_t)r->counts[i] <= limit) {
            plain_augment(p, r, e->threads, e->node->second);
            return;
        }
}

static bool plain_sync(Plain *p, const SyncEvent *e)
{
    const SyncTensor *t = &p->run->program->tensors[e->barrier];
    PlainTensor *b = &p->tensors[e->barrier];
    if (e->node->kind == SYNC_fence) {
        plain_each(p, e, plain_fence, 0);
        return true;
    }
    if (e->node->kind == SYNC_arrive) {
        if (!plain_barrier_reads(p, e, e->n_targets, e->targets, false))
            return false;
        uint32_t n = b->arrives[e->home]++;
        if (n && plain_one_shot(t))
            return plain_fail(p, e, e->barrier, e->home);
        plain_each(p, e, plain_arrive, n);
        return true;
    }
    if (!plain_barrier_reads(p, e, 1, &e->home, true))
        return false;
    if (b->awaits[e->home]++ && t->mem->barrier == BARRIER_cluster)
        return plain_fail(p, e, e->barrier, e->home);
    plain_each(p, e, plain_await,
               (int64_t)b->arrives[e->home] - 1 - e->node->n);
    return true;
}

/* ---- allocations -------------------------------------------------------- */

static void plain_unflat(const Plain *p, unsigned tensor, int64_t flat,
                         int64_t *at)
{
    const Value *v = p->run->program->tensors[tensor].value;
    for (unsigned i = v->type->rank; i-- > 0;) {
        at[i] = flat % p->tensors[tensor].extents[i];
        flat /= p->tensors[tensor].extents[i];
    }
}

static bool plain_is_ring(const Plain *p, unsigned tensor)
{
    const SyncTensor *t = &p->run->program->tensors[tensor];
    const SyncTensor *g = &p->run->program->tensors[t->guard];
    return t->value->ring_dim >= 0 && g->space == SYNC_barrier &&
           g->value->type->rank <= t->value->type->rank &&
           (t->space == SYNC_barrier ? t->mem->barrier == BARRIER_mbarrier
                                     : t->guard != tensor) &&
           p->tensors[t->guard].live;
}

static void plain_group(Plain *p, unsigned guard, const int64_t *home,
                        PlainRecord *r)
{
    const SyncTensor *t = &p->run->program->tensors[guard];
    for (int64_t i = 0; i < p->tensors[guard].n; i++) {
        int64_t at[SYNC_MAX_RANK] = { 0 };
        bool any = false;
        plain_unflat(p, guard, i, at);
        for (unsigned k = 0; k < t->n_patterns; k++) {
            bool match = true;
            for (unsigned d = 0; d < t->value->type->rank; d++)
                if (!(t->patterns[k] >> d & 1) && at[d] != home[d])
                    match = false;
            any = any || match;
        }
        if (any)
            plain_pend(p, r, p->tensors[guard].base + (BarId)i, 0);
    }
}

static bool plain_ring(Plain *p, const SyncEvent *e, unsigned tensor)
{
    const SyncTensor *t = &p->run->program->tensors[tensor];
    const Value *v = t->value;
    PlainTensor *g = &p->tensors[t->guard];
    unsigned rank = p->run->program->tensors[t->guard].value->type->rank;
    for (int64_t i = 0; i < p->tensors[tensor].n; i++) {
        int64_t at[SYNC_MAX_RANK] = { 0 }, next[SYNC_MAX_RANK];
        plain_unflat(p, tensor, i, at);
        memcpy(next, at, sizeof next);
        next[v->ring_dim] += v->ring_depth;
        PlainElement *x = &p->tensors[tensor].elements[i];
        if (next[v->ring_dim] < g->extents[v->ring_dim])
            x->free_bar = g->base + (BarId)sync_flat(rank, g->extents, next);
        else if (t->guard != tensor)
            return plain_fail(p, e, t->guard, 0);
        PlainRecord *r = plain_new(p, t->mask, x->free_bar);
        r->before_alloc = x->free_bar != 0;
        next[v->ring_dim] = at[v->ring_dim] - v->ring_depth;
        if (t->guard != tensor)
            plain_group(p, t->guard, at, r);
        else if (next[v->ring_dim] >= 0)
            plain_pend(p, r, g->base + (BarId)sync_flat(rank, g->extents, next),
                       0);
        x->mutates = r->n_pend ? r : NULL;
    }
    return true;
}

static bool plain_alloc(Plain *p, const SyncEvent *e)
{
    unsigned tensor = e->node->tensor;
    const SyncTensor *t = &p->run->program->tensors[tensor];
    plain_open(p, tensor, e->hi);
    PlainTensor *x = &p->tensors[tensor];
    if (t->space == SYNC_barrier) {
        x->base = p->next_bar;
        p->next_bar += (BarId)x->n;
        for (int64_t i = 0; i < x->n && t->value->ring_dim >= 0; i++) {
            int64_t at[SYNC_MAX_RANK] = { 0 };
            plain_unflat(p, tensor, i, at);
            x->arrives[i] = at[t->value->ring_dim] < t->mem->pre_arrive;
        }
    }
    return !plain_is_ring(p, tensor) || plain_ring(p, e, tensor);
}

static bool plain_free_record(const Plain *p, const SyncTensor *t,
                              const PlainRecord *r, bool ring)
{
    uint32_t initial, extended;
    if (ring)
        return !r->free_bar || r->freed;
    qual_family_lookup(t->mem->qual_family, "cuda_in_order_instr", &initial,
                       &extended);
    return plain_visible(p, r, threads_all(p->run->pool), extended,
                         VIS_temporal, false);
}

/* An element of a slot that nothing touched, where the phases of one mbarrier
 * release the slots one after the other. */
static bool plain_untouched(const Plain *p, unsigned tensor, int64_t i)
{
    const SyncTensor *t = &p->run->program->tensors[tensor];
    const SyncTensor *g = &p->run->program->tensors[t->guard];
    const PlainElement *x = &p->tensors[tensor].elements[i];
    for (const PlainRecord *r = x->mutates; r; r = r->next)
        if (r->origin)
            return false;
    return !x->reads && t->guard != tensor &&
           g->mem->barrier == BARRIER_mbarrier &&
           g->value->ring_depth == t->value->ring_depth;
}

static bool plain_free(Plain *p, const SyncEvent *e)
{
    unsigned tensor = e->node->tensor;
    const SyncTensor *t = &p->run->program->tensors[tensor];
    PlainTensor *x = &p->tensors[tensor];
    bool ring = plain_is_ring(p, tensor);
    for (int64_t i = 0; (ring || t->space == SYNC_shared) && i < x->n; i++) {
        if (ring && plain_untouched(p, tensor, i))
            continue;
        for (PlainRecord *r = x->elements[i].reads; r; r = r->next)
            if (!plain_free_record(p, t, r, ring))
                return plain_fail(p, e, tensor, i);
        for (PlainRecord *r = x->elements[i].mutates; r; r = r->next)
            if (!plain_free_record(p, t, r, ring))
                return plain_fail(p, e, tensor, i);
    }
    bool counted = t->space == SYNC_barrier && plain_one_shot(t);
    for (int64_t i = 0; counted && i < x->n; i++)
        if (x->arrives[i] != 1 ||
            (t->mem->barrier == BARRIER_cluster && x->awaits[i] != 1))
            return plain_fail(p, e, tensor, i);
    x->live = false;
    return true;
}

static bool plain_event(SyncSink *self, const SyncEvent *e)
{
    Plain *p = (Plain *)self;
    if (e->node->kind == SYNC_access)
        return plain_access(p, e);
    if (e->node->kind == SYNC_alloc)
        return e->is_free ? plain_free(p, e) : plain_alloc(p, e);
    return plain_sync(p, e);
}

static Plain *plain_machine(Arena *arena, SyncRun *run, int64_t **grains)
{
    Plain *p = ARENA_NEW(arena, Plain);
    p->sink.event = plain_event;
    p->arena = arena;
    p->run = run;
    p->grains = grains;
    p->threads = thread_pool_size(run->pool);
    p->tensors = ARENA_ARRAY(arena, PlainTensor, run->program->n_tensors);
    p->next_bar = 1;
    for (unsigned i = 0; i < run->program->n_tensors; i++)
        if (run->program->tensors[i].space == SYNC_global &&
            run->program->tensors[i].checked)
            plain_open(p, i, run->extents[i]);
    return p;
}

#endif
