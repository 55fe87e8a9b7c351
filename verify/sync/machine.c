/* The state machine: what each event does to cells, records and barriers. */
#include "verify/sync/steady.h"

#include <string.h>

static void touch(Sparse *s, const SyncNode *n)
{
    if (!(n->flags & SYNC_MUTATE)) {
        s->use.how |= TOUCH_read;
        s->use.reader = n;
        return;
    }
    s->use.how |= n->flags & SYNC_ATOMIC ? TOUCH_atomic : TOUCH_write;
    s->use.writer = n;
}

/* ---- faults ------------------------------------------------------------- */

static SyncFault *fault(Machine *m, SyncFaultKind kind, unsigned tensor,
                        const int64_t *cell)
{
    SyncFault *f = &m->pub.fault;
    *f = (SyncFault){ .kind = kind,
                      .node = m->event->node,
                      .tensor = tensor,
                      .threads = m->event->threads };
    f->rank = m->run->program->tensors[tensor].value->type->rank;
    for (unsigned i = 0; i < f->rank && cell; i++)
        f->element[i] = cell[i] * m->grains[tensor][i];
    return f;
}

static bool fault_at(Machine *m, SyncFaultKind kind, unsigned tensor,
                     int64_t flat, int64_t count)
{
    int64_t at[SYNC_MAX_RANK] = { 0 };
    instance_unflat(m, tensor, flat, at);
    fault(m, kind, tensor, at)->count = count;
    return false;
}

/* The fault is that this record is not visible. */
static void fault_record(Machine *m, const Record *r)
{
    SyncFault *f = &m->pub.fault;
    f->record = *r;
    for (uint32_t i = 0; i < r->n_pend && f->n_reported < SYNC_REPORTED; i++)
        f->n_reported +=
            barrier_find(m, r->pend[i].bar, &f->reported[f->n_reported]);
    int64_t at[SYNC_MAX_RANK] = { 0 };
    for (unsigned i = 0; i < f->rank; i++)
        at[i] = f->element[i] / m->grains[f->tensor][i];
    f->n_releases = r->free_bar && ring_release(m, f->tensor, at, &f->release);
}

/* ---- accesses ----------------------------------------------------------- */

/* One access to cells: what it demands and what it leaves. */
typedef struct Touching {
    ThreadsId c;
    uint32_t node, initial, extended, flags, mask;
    unsigned n_pend;
    const Pend *pend;
    /* Where a demand is not met. */
    SyncFaultKind kind;
    RecordId record;
    VisFlag flag;
} Touching;

static SyncFaultKind fault_kind(const Record *r, SyncFaultKind otherwise)
{
    if (r->flags & REC_FREED)
        return FAULT_use_after_free;
    return r->flags & REC_BEFORE_ALLOC ? FAULT_use_before_alloc : otherwise;
}

static bool demand(Machine *m, Touching *a, unsigned n, const RecordId *ids,
                   VisFlag flag, SyncFaultKind otherwise)
{
    for (unsigned i = 0; ids && i < n; i++) {
        const Record *r = record_get(m->records, ids[i]);
        if (record_permits(m->records, r, a->c, a->extended, flag,
                           a->flags & SYNC_CONVERGENT))
            continue;
        a->kind = fault_kind(r, otherwise);
        a->record = ids[i];
        a->flag = flag;
        return false;
    }
    return true;
}

static RecordId new_record(Machine *m, const Touching *a, BarId free_bar)
{
    Vis vis[2 * VIS_flags];
    Record r = { .vis = vis,
                 .pend = a->pend,
                 .n_pend = a->n_pend,
                 .free_bar = free_bar,
                 .flags = a->flags & SYNC_MUTATE ? 0 : REC_READ,
                 .origin = a->node,
                 .mask = a->mask };
    bool ordered = !(a->flags & SYNC_OUT_OF_ORDER);
    bool atomic = a->flags & SYNC_ATOMIC;
    bool together = a->flags & SYNC_CONVERGENT;
    for (unsigned f = 0; f < VIS_flags; f++) {
        bool has = f == VIS_issue || ordered;
        bool meets = atomic && f == VIS_atomic;
        if ((has && together) || meets)
            vis[r.n_vis++] = (Vis){ VIS_flags * a->initial + f,
                                    meets ? threads_all(m->run->pool) : a->c };
        if (has && !together)
            r.own_flags |= 1u << f;
    }
    if (!together) {
        r.own = a->c;
        r.own_qual = a->initial;
    }
    return record_intern(m->records, &r);
}

/* The state after the access; false where a demand is not met. */
static bool step(Machine *m, Touching *a, StateId from, StateId *to)
{
    State s = *state_get(m->records, from);
    const RecordId *reads = s.records;
    const RecordId *mutates = reads ? reads + s.n_reads : NULL;
    VisFlag flag = a->flags & SYNC_ATOMIC       ? VIS_atomic
                   : a->flags & SYNC_WRITE_ONLY ? VIS_temporal
                                                : VIS_full;
    bool mutate = a->flags & SYNC_MUTATE;
    if (!demand(m, a, s.n_mutates, mutates, flag,
                mutate ? FAULT_waw : FAULT_raw) ||
        (mutate && !demand(m, a, s.n_reads, reads, VIS_temporal, FAULT_war)))
        return false;
    RecordId made = new_record(m, a, s.free_bar);
    m->scratch.len = 0;
    bool keep_mutates = mutate && (a->flags & SYNC_ATOMIC);
    for (unsigned i = 0; reads && i < (mutate ? 0 : s.n_reads); i++)
        VEC_PUSH(m->arena, &m->scratch, reads[i]);
    for (unsigned i = 0; mutates && i < (keep_mutates ? s.n_mutates : 0); i++)
        VEC_PUSH(m->arena, &m->scratch, mutates[i]);
    VEC_PUSH(m->arena, &m->scratch, made);
    unsigned n = (unsigned)m->scratch.len;
    *to = mutate ? state_intern(m->records, s.free_bar, 0, NULL, n,
                                m->scratch.data)
                 : state_intern(m->records, s.free_bar, n, m->scratch.data,
                                s.n_mutates, mutates);
    return true;
}

/* step, remembered unless trailing barriers make it depend on counts. */
static bool step_again(Machine *m, Touching *a, StateId from, StateId *to)
{
    MemoKey key = { .from = from, .what = a->node + 1, .of = a->c };
    if (a->n_pend)
        return step(m, a, from, to);
    if (memo_find(&m->steps, key, to))
        return true;
    if (!step(m, a, from, to))
        return false;
    memo_put(&m->steps, key, *to);
    return true;
}

/* The state of a cell, which an untouched one of a ring has by its place. */
static StateId cell_state(Machine *m, unsigned tensor, const HandleId *cell,
                          const int64_t *at)
{
    return *cell || !m->instances[tensor].ring ? handle_state(m, *cell)
                                               : ring_state(m, tensor, at);
}

static bool touch_cell(Machine *m, Touching *a, unsigned tensor, HandleId *cell,
                       const int64_t *at)
{
    StateId to;
    if (step_again(m, a, cell_state(m, tensor, cell, at), &to)) {
        cell_set(m, cell, to);
        return true;
    }
    SyncFault *f = fault(m, a->kind, tensor, at);
    f->quals = a->extended;
    f->flag = a->flag;
    f->convergent = a->flags & SYNC_CONVERGENT;
    fault_record(m, record_get(m->records, a->record));
    return false;
}

static HandleId *cell_at(Machine *m, unsigned tensor, const int64_t *at)
{
    Instance *in = &m->instances[tensor];
    unsigned rank = m->run->program->tensors[tensor].value->type->rank;
    if (in->dense)
        return &in->dense[sync_flat(rank, in->cells, at)];
    Sparse *s = sparse_cell(m, tensor, at);
    if (!s)
        return NULL;
    touch(s, m->event->node);
    return &s->handle;
}

/* All cells of the event's box. */
static bool touch_box(Machine *m, Touching *a, unsigned tensor,
                      const int64_t *lo, const int64_t *hi)
{
    int64_t first[SYNC_MAX_RANK], last[SYNC_MAX_RANK];
    int64_t at[SYNC_MAX_RANK] = { 0 };
    unsigned rank = m->run->program->tensors[tensor].value->type->rank;
    const int64_t *g = m->grains[tensor];
    for (unsigned i = 0; i < rank; i++) {
        first[i] = at[i] = lo[i] / g[i];
        last[i] = (hi[i] - 1) / g[i];
    }
    for (;;) {
        HandleId *cell = cell_at(m, tensor, at);
        if (!cell || !touch_cell(m, a, tensor, cell, at))
            return false;
        unsigned i = rank;
        while (i-- > 0 && ++at[i] > last[i])
            at[i] = first[i];
        if (i == UINT32_MAX)
            return true;
    }
}

/* Elements of an mbarrier are read by who uses them. */
static bool read_barriers(Machine *m, unsigned tensor, unsigned n,
                          const int64_t *targets, bool convergent)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    uint32_t initial, extended;
    if (!t->checked || !m->instances[tensor].live ||
        !qual_family_lookup(t->mem->qual_family, "cuda_in_order_instr",
                            &initial, &extended))
        return true;
    Touching a = { .c = m->event->threads,
                   .node = m->event->node->id,
                   .initial = (uint32_t)__builtin_ctz(initial),
                   .extended = extended,
                   .flags = convergent ? SYNC_CONVERGENT : 0,
                   .mask = t->mask };
    for (unsigned i = 0; i < n; i++) {
        int64_t at[SYNC_MAX_RANK] = { 0 };
        instance_unflat(m, tensor, targets[i], at);
        HandleId *cell = &m->instances[tensor].dense[targets[i]];
        if (!touch_cell(m, &a, tensor, cell, at))
            return false;
    }
    return true;
}

/* One of n + 1 that ascend. */
static void add_pend(Pend *pend, unsigned n, BarId bar, uint32_t count)
{
    for (; n && pend[n - 1].bar > bar; n--)
        pend[n] = pend[n - 1];
    pend[n] = (Pend){ bar, count };
}

static bool do_access(Machine *m, const SyncEvent *e)
{
    const SyncNode *n = e->node;
    Pend pend[256];
    Touching a = { .c = e->threads,
                   .node = n->id,
                   .initial = n->initial,
                   .extended = n->extended,
                   .flags = n->flags,
                   .mask = m->run->program->tensors[n->tensor].mask,
                   .n_pend = e->n_targets,
                   .pend = pend };
    if (threads_count(m->run->pool, a.c) == 1)
        a.flags &= ~(unsigned)SYNC_CONVERGENT;
    const Instance *bars = e->n_targets ? &m->instances[e->barrier] : NULL;
    for (unsigned i = 0; i < e->n_targets; i++) {
        uint32_t count = bars->arrives[e->targets[i]];
        if (count && barrier_is_one_shot(&m->run->program->tensors[e->barrier]))
            return fault_at(m, FAULT_trailing_after_arrive, e->barrier,
                            e->targets[i], count);
        add_pend(pend, i, bar_of(m, e->barrier, e->targets[i]),
                 (uint32_t)bar_count(bars, e->targets[i]));
    }
    return touch_box(m, &a, n->tensor, e->lo, e->hi) &&
           (!e->n_targets ||
            read_barriers(m, e->barrier, e->n_targets, e->targets, false));
}

/* ---- synchronisation ---------------------------------------------------- */

static bool do_fence(Machine *m, const SyncEvent *e)
{
    Change c = { .kind = CHANGE_fence,
                 .c = e->threads,
                 .l1 = e->node->first,
                 .l2 = e->node->second };
    change_all(m, &c);
    return true;
}

/* The numbers of all that an Arrive reaches, ascending. */
static void find_bars(Machine *m, const SyncEvent *e, BarId *out)
{
    for (unsigned i = 0; i < e->n_targets; i++) {
        BarId bar = bar_of(m, e->barrier, e->targets[i]);
        unsigned k = i;
        for (; k && out[k - 1] > bar; k--)
            out[k] = out[k - 1];
        out[k] = bar;
    }
}

static bool do_arrive(Machine *m, const SyncEvent *e)
{
    const SyncTensor *t = &m->run->program->tensors[e->barrier];
    Instance *in = &m->instances[e->barrier];
    BarId targets[256];
    if (!read_barriers(m, e->barrier, e->n_targets, e->targets, false))
        return false;
    uint32_t count = in->arrives[e->home]++;
    if (count && barrier_is_one_shot(t))
        return fault_at(m, FAULT_arrived_twice, e->barrier, e->home, count + 1);
    find_bars(m, e, targets);
    for (unsigned i = 0; i < e->n_targets; i++)
        in->reached[e->targets[i]]++;
    Change c = { .kind = CHANGE_arrive,
                 .c = e->threads,
                 .l1 = e->node->first,
                 .n = e->n_targets,
                 .targets = targets,
                 .count = count - in->base[e->home] };
    change_all(m, &c);
    for (unsigned i = 0; i < e->n_targets; i++)
        ring_bury(m, e->barrier, e->targets[i]);
    bars_sweep(m, e->barrier, e->home);
    return true;
}

static bool do_await(Machine *m, const SyncEvent *e)
{
    const SyncTensor *t = &m->run->program->tensors[e->barrier];
    Instance *in = &m->instances[e->barrier];
    if (!read_barriers(m, e->barrier, 1, &e->home, true))
        return false;
    uint32_t awaits = in->awaits[e->home]++;
    if (awaits && t->mem->barrier == BARRIER_cluster)
        return fault_at(m, FAULT_awaited_twice, e->barrier, e->home,
                        awaits + 1);
    BarId bar = bar_of(m, e->barrier, e->home);
    bool reads = barrier_awaits_reads(t->mem->barrier, e->node->second);
    Change c = { .kind = reads ? CHANGE_await_reads : CHANGE_await,
                 .c = e->threads,
                 .l2 = e->node->second,
                 .n = 1,
                 .targets = &bar,
                 .limit = bar_count(in, e->home) - 1 - e->node->n };
    if (barrier_is_one_shot(t) && in->reached[e->home] < t->source_ctas)
        m->pub.early = true;
    if (c.limit < 0)
        return true;
    ring_wake(m, e->barrier, e->home);
    change_all(m, &c);
    return true;
}

/* ---- allocations -------------------------------------------------------- */

static bool do_alloc(Machine *m, const SyncEvent *e)
{
    unsigned tensor = e->node->tensor;
    const SyncTensor *t = &m->run->program->tensors[tensor];
    int64_t lacking = 0;
    if (!instance_open(m, tensor, e->hi))
        return false;
    if (t->space == SYNC_barrier)
        barrier_open(m, tensor);
    return ring_open(m, tensor, &lacking) ||
           (!m->run->failed &&
            fault_at(m, FAULT_guard_too_short, t->guard, 0, lacking));
}

/* ---- frees -------------------------------------------------------------- */

/* May all of these threads use the bytes again? */
static bool free_permits(Machine *m, const SyncTensor *t, const Record *r,
                         ThreadsId c, uint32_t *quals)
{
    uint32_t initial;
    return !qual_family_lookup(t->mem->qual_family, "cuda_in_order_instr",
                               &initial, quals) ||
           record_permits(m->records, r, c, *quals, VIS_temporal, false);
}

static bool free_record(Machine *m, unsigned tensor, RecordId id, int64_t flat,
                        bool ring)
{
    const Record *r = record_get(m->records, id);
    const SyncTensor *t = &m->run->program->tensors[tensor];
    uint32_t quals = 0;
    ThreadsId all = threads_all(m->run->pool);
    if (ring ? !r->free_bar || (r->flags & REC_FREED)
             : free_permits(m, t, r, all, &quals))
        return true;
    if (!ring && !t->whole_cluster &&
        free_permits(m, t, r, m->event->threads, &quals)) {
        m->run->failed = arena_printf(
            m->run->arena,
            "shared memory (%s %s) that a part of the cluster allocates: "
            "whether others may use it again is not decided",
            t->mem->ref->name, t->value->name);
        return false;
    }
    fault_at(m, ring ? FAULT_free_missing_arrive : FAULT_free_missing_sync,
             tensor, flat, 0);
    SyncFault *f = &m->pub.fault;
    fault_record(m, r);
    f->quals = quals;
    f->flag = VIS_temporal;
    f->threads = all;
    return false;
}

/* Do the phases of one mbarrier after the other release the ring's slots, so
 * that a slot is free only after its use before was over? */
static bool phases_release(const Machine *m, unsigned tensor)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    const SyncTensor *guard = &m->run->program->tensors[t->guard];
    return t->guard != tensor && guard->mem->barrier == BARRIER_mbarrier &&
           guard->value->ring_depth == t->value->ring_depth;
}

/* Has nothing touched what the slot was allocated with? */
static bool is_untouched(Machine *m, const State *s)
{
    for (unsigned k = 0; k < s->n_mutates; k++)
        if (record_get(m->records, s->records[s->n_reads + k])->origin)
            return false;
    return s->n_reads == 0;
}

static bool free_cells(Machine *m, unsigned tensor, bool ring)
{
    Instance *in = &m->instances[tensor];
    bool in_phases = ring && phases_release(m, tensor);
    StateId last = 0;
    for (int64_t i = 0; i < in->n_cells; i++) {
        int64_t at[SYNC_MAX_RANK] = { 0 };
        if (ring && !in->dense[i])
            instance_unflat(m, tensor, i, at);
        StateId id = cell_state(m, tensor, &in->dense[i], at);
        if (!id || id == last)
            continue;
        State s = *state_get(m->records, id);
        if (in_phases && is_untouched(m, &s))
            continue;
        for (unsigned k = 0; k < s.n_reads + s.n_mutates; k++)
            if (!free_record(m, tensor, s.records[k], i, ring))
                return false;
        last = id;
    }
    return true;
}

static bool free_barrier(Machine *m, unsigned tensor)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    Instance *in = &m->instances[tensor];
    for (int64_t i = 0; i < in->n_bars && barrier_is_one_shot(t); i++) {
        if (in->arrives[i] != 1)
            return fault_at(m, FAULT_arrive_count, tensor, i, in->arrives[i]);
        if (in->awaits[i] != 1 && t->mem->barrier == BARRIER_cluster)
            return fault_at(m, FAULT_await_count, tensor, i, in->awaits[i]);
    }
    bars_end(m, tensor);
    return true;
}

static bool do_free(Machine *m, const SyncEvent *e)
{
    unsigned tensor = e->node->tensor;
    const SyncTensor *t = &m->run->program->tensors[tensor];
    Instance *in = &m->instances[tensor];
    bool ring = in->ring;
    if ((ring || t->space == SYNC_shared) && !free_cells(m, tensor, ring))
        return false;
    for (int64_t i = 0; i < in->n_cells; i++)
        cell_set(m, &in->dense[i], 0);
    if (t->space == SYNC_barrier && !free_barrier(m, tensor))
        return false;
    in->live = false;
    return true;
}

/* ---- events ------------------------------------------------------------- */

static bool do_event(Machine *m, const SyncEvent *e)
{
    switch (e->node->kind) {
    case SYNC_access:
        return do_access(m, e);
    case SYNC_alloc:
        return e->is_free ? do_free(m, e) : do_alloc(m, e);
    case SYNC_fence:
        return do_fence(m, e);
    case SYNC_arrive:
        return do_arrive(m, e);
    default:
        return do_await(m, e);
    }
}

static bool on_event(SyncSink *self, const SyncEvent *e)
{
    Machine *m = (Machine *)self;
    m->event = e;
    if (!room_make(m))
        return false;
    m->pub.n_syncs +=
        e->node->kind != SYNC_access && e->node->kind != SYNC_alloc;
    return do_event(m, e) && !m->run->failed;
}

static void on_trip(SyncSink *self, SyncTrip *t)
{
    steady_trip((Machine *)self, t);
}

static void on_left(SyncSink *self, SyncTrip *t)
{
    (void)self;
    steady_left(t);
}

SyncMachine *sync_machine_new(Arena *arena, SyncRun *run, int64_t **grains)
{
    const SyncProgram *p = run->program;
    Machine *m = ARENA_NEW(arena, Machine);
    m->pub.sink = (SyncSink){ on_event, on_trip, on_left };
    run->grains = grains;
    m->arena = arena;
    m->run = run;
    m->grains = grains;
    m->records = record_table_new(arena, run->pool);
    m->instances = ARENA_ARRAY(arena, Instance, p->n_tensors);
    memo_open(&m->steps, arena, SYNC_STEPS);
    VEC_PUSH(arena, &m->handles, ((Handle){ 0 }));
    m->lowest = 1;
    changes_open(m);
    for (unsigned i = 0; i < p->n_tensors; i++)
        if (p->tensors[i].space == SYNC_global && p->tensors[i].checked)
            instance_open(m, i, run->extents[i]);
    return &m->pub;
}

void sync_machine_touched(const SyncMachine *pub,
                          void (*fn)(const SyncTouch *t, void *user),
                          void *user)
{
    const Machine *m = (const Machine *)pub;
    for (unsigned i = 0; i < m->run->program->n_tensors; i++)
        for (size_t k = 0; k < m->instances[i].cap_sparse; k++) {
            const Sparse *s = &m->instances[i].sparse[k];
            SyncTouch t = { .tensor = i,
                            .how = s->use.how,
                            .reader = s->use.reader,
                            .writer = s->use.writer };
            if (!t.how)
                continue;
            instance_unflat(m, i, s->key - 1, t.at);
            fn(&t, user);
        }
}
