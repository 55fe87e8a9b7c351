/* One maximal concurrent execution. Threads that take part in the same events
 * are one agent; each agent has the list of its events in program order. A
 * Fence lets its agents pass when all of them stand at it; an Arrive counts
 * when all its agents have made it; an Await waits for the arrivals of all
 * CTAs. */
#include "verify/sync/deadlock.h"

#include <string.h>

typedef enum WaitKind { WAIT_fence, WAIT_arrive, WAIT_await } WaitKind;

typedef struct Wait {
    WaitKind kind;
    const SyncNode *node;
    ThreadsId threads;
    unsigned n_agents, n_here; /* agents that must come, and that have come */
    uint32_t bar;              /* await: its element */
    unsigned n_targets;
    const uint32_t *targets; /* arrive */
} Wait;

/* An element of a live or dead mbarrier. */
typedef struct Element {
    unsigned tensor;
    int64_t flat;
    int64_t arrived, needed;
} Element;

typedef struct Agent {
    ThreadsId threads;
    VEC(uint32_t) waits;
    size_t at;
    bool here; /* counted at the event it stands at */
} Agent;

struct Deadlock {
    SyncSink sink;
    Arena *arena;
    SyncRun *run;
    VEC(Wait) waits;
    VEC(Element) elements;
    uint32_t *base; /* by tensor: first element of the live instance */
    VEC(Agent) agents;
};

/* ---- recording ---------------------------------------------------------- */

static void open_elements(Deadlock *d, const SyncEvent *e)
{
    unsigned tensor = e->node->tensor;
    const SyncTensor *t = &d->run->program->tensors[tensor];
    int64_t n = 1, inner = 1;
    d->base[tensor] = (uint32_t)d->elements.len;
    for (unsigned i = 0; i < t->value->type->rank; i++) {
        n *= e->hi[i] > 0 ? e->hi[i] : 0;
        if (t->value->ring_dim >= 0 && (int)i > t->value->ring_dim)
            inner *= e->hi[i];
    }
    for (int64_t i = 0; i < n; i++) {
        bool ring = t->value->ring_dim >= 0;
        int64_t k = ring ? i / inner % e->hi[t->value->ring_dim] : 0;
        bool before = ring && k < t->mem->pre_arrive;
        int64_t needed = t->source_ctas > 0 ? t->source_ctas : 1;
        VEC_PUSH(d->arena, &d->elements,
                 ((Element){ tensor, i, before ? needed : 0, needed }));
    }
}

static bool blocks(const SyncTensor *t)
{
    return t->mem->barrier == BARRIER_mbarrier ||
           t->mem->barrier == BARRIER_cluster;
}

static void add_wait(Deadlock *d, const SyncEvent *e, WaitKind kind)
{
    Wait w = { .kind = kind, .node = e->node, .threads = e->threads };
    if (kind != WAIT_fence) {
        uint32_t base = d->base[e->barrier];
        uint32_t *targets = ARENA_ARRAY(d->arena, uint32_t, e->n_targets);
        for (unsigned i = 0; i < e->n_targets; i++)
            targets[i] = base + (uint32_t)e->targets[i];
        w.bar = base + (uint32_t)e->home;
        w.n_targets = e->n_targets;
        w.targets = targets;
    }
    VEC_PUSH(d->arena, &d->waits, w);
}

/* The agents' lists come on top of what is recorded. */
static bool has_room(Deadlock *d)
{
    uint64_t most = d->run->most_bytes;
    if (sync_has_room(most, 2 * (uint64_t)arena_bytes(d->arena), 0))
        return true;
    d->run->failed = sync_no_room(d->run->arena, most);
    return false;
}

static bool record_event(SyncSink *self, const SyncEvent *e)
{
    Deadlock *d = (Deadlock *)self;
    const SyncTensor *tensors = d->run->program->tensors;
    if (!has_room(d))
        return false;
    switch (e->node->kind) {
    case SYNC_alloc:
        if (!e->is_free && tensors[e->node->tensor].space == SYNC_barrier &&
            blocks(&tensors[e->node->tensor]))
            open_elements(d, e);
        break;
    case SYNC_fence:
        if (threads_count(d->run->pool, e->threads) > 1)
            add_wait(d, e, WAIT_fence);
        break;
    case SYNC_arrive:
        if (blocks(&tensors[e->barrier]))
            add_wait(d, e, WAIT_arrive);
        break;
    case SYNC_await:
        if (blocks(&tensors[e->barrier]))
            add_wait(d, e, WAIT_await);
        break;
    default:
        break;
    }
    return true;
}

Deadlock *deadlock_new(Arena *arena, SyncRun *run)
{
    Deadlock *d = ARENA_NEW(arena, Deadlock);
    d->sink = (SyncSink){ .event = record_event };
    d->arena = arena;
    d->run = run;
    d->base = ARENA_ARRAY(arena, uint32_t, run->program->n_tensors);
    return d;
}

/* ---- agents ------------------------------------------------------------- */

/* Cuts the agents along a set of threads. */
static void cut_agents(Deadlock *d, ThreadsId by)
{
    ThreadPool *pool = d->run->pool;
    size_t n = d->agents.len;
    for (size_t i = 0; i < n; i++) {
        ThreadsId in = threads_and(pool, d->agents.data[i].threads, by);
        ThreadsId rest = threads_minus(pool, d->agents.data[i].threads, by);
        if (!in || !rest)
            continue;
        d->agents.data[i].threads = in;
        VEC_PUSH(d->arena, &d->agents, ((Agent){ .threads = rest }));
    }
}

static void make_agents(Deadlock *d)
{
    VEC_PUSH(d->arena, &d->agents,
             ((Agent){ .threads = threads_all(d->run->pool) }));
    ThreadsId last = 0;
    for (size_t i = 0; i < d->waits.len; i++) {
        if (d->waits.data[i].threads != last)
            cut_agents(d, d->waits.data[i].threads);
        last = d->waits.data[i].threads;
    }
    for (size_t i = 0; i < d->waits.len; i++) {
        Wait *w = &d->waits.data[i];
        for (size_t a = 0; a < d->agents.len; a++) {
            Agent *agent = &d->agents.data[a];
            if (!threads_and(d->run->pool, agent->threads, w->threads))
                continue;
            w->n_agents++;
            VEC_PUSH(d->arena, &agent->waits, (uint32_t)i);
        }
    }
}

/* ---- going on ----------------------------------------------------------- */

static void arrive(Deadlock *d, Wait *w)
{
    if (w->n_here < w->n_agents)
        return;
    for (unsigned i = 0; i < w->n_targets; i++)
        d->elements.data[w->targets[i]].arrived++;
}

/* May the agent pass the event it stands at? */
static bool pass(Deadlock *d, Agent *a)
{
    Wait *w = &d->waits.data[a->waits.data[a->at]];
    if (!a->here) {
        a->here = true;
        w->n_here++;
        if (w->kind == WAIT_arrive)
            arrive(d, w);
    }
    if (w->kind == WAIT_fence)
        return w->n_here == w->n_agents;
    if (w->kind == WAIT_arrive)
        return true;
    const Element *e = &d->elements.data[w->bar];
    return e->arrived >= e->needed;
}

bool deadlock_free(Deadlock *d, SyncFault *fault)
{
    bool moved = true;
    if (!sync_run_task(d->run, &d->sink))
        return true;
    make_agents(d);
    while (moved) {
        moved = false;
        for (size_t i = 0; i < d->agents.len; i++) {
            Agent *a = &d->agents.data[i];
            while (a->at < a->waits.len && pass(d, a)) {
                a->at++;
                a->here = false;
                moved = true;
            }
        }
    }
    for (size_t i = 0; i < d->agents.len; i++) {
        const Agent *a = &d->agents.data[i];
        if (a->at == a->waits.len)
            continue;
        const Wait *w = &d->waits.data[a->waits.data[a->at]];
        *fault = (SyncFault){ .kind = FAULT_deadlock,
                              .node = w->node,
                              .tensor = w->node->tensor,
                              .threads = w->threads };
        return false;
    }
    return true;
}

/* ---- in words ----------------------------------------------------------- */

static void print_element(const Deadlock *d, const Element *e, StrBuf *out)
{
    const Value *v = d->run->program->tensors[e->tensor].value;
    int64_t flat = e->flat, at[SYNC_MAX_RANK] = { 0 };
    const int64_t *extents = d->run->extents[e->tensor];
    for (unsigned i = v->type->rank; i-- > 0;) {
        at[i] = extents[i] ? flat % extents[i] : 0;
        flat = extents[i] ? flat / extents[i] : 0;
    }
    strbuf_add(out, v->name ? v->name : "_");
    for (unsigned i = 0; i < v->type->rank; i++)
        strbuf_addf(out, "%s%lld", i ? ", " : "[", (long long)at[i]);
    strbuf_add(out, v->type->rank ? "]" : "");
}

static void print_wait(const Deadlock *d, const Wait *w, StrBuf *out)
{
    threads_print(out, d->run->pool, w->threads,
                  d->run->device->par->block_dim);
    strbuf_addf(out, " at line %u: ", w->node->op->loc.line);
    if (w->kind == WAIT_fence) {
        strbuf_addf(out, "the Fence waits for threads that do not come");
        return;
    }
    const Element *e = &d->elements.data[w->bar];
    strbuf_add(out, "the Await of ");
    print_element(d, e, out);
    strbuf_addf(out, " has %lld of %lld arrivals", (long long)e->arrived,
                (long long)e->needed);
}

void deadlock_print(const Deadlock *d, StrBuf *out)
{
    enum { MOST = 8 };
    unsigned n = 0;
    for (size_t i = 0; i < d->agents.len && n < MOST; i++) {
        const Agent *a = &d->agents.data[i];
        if (a->at == a->waits.len)
            continue;
        const Wait *w = &d->waits.data[a->waits.data[a->at]];
        bool first = true;
        for (size_t k = 0; k < i && first; k++) {
            const Agent *b = &d->agents.data[k];
            first = b->at == b->waits.len ||
                    b->waits.data[b->at] != a->waits.data[a->at];
        }
        if (!first)
            continue;
        strbuf_add(out, n++ ? "; " : "");
        print_wait(d, w, out);
    }
}
