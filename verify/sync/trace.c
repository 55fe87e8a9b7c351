/* The machine runs again; for each statement the last execution that matters
 * is kept: accesses of the element by threads of the record, and
 * synchronisation after them by threads that are concerned. After many events
 * steady loops are cut short here too; what came before a cut is forgotten. */
#include "verify/sync/trace.h"

#include <string.h>

enum { MOST_TRACED = 1 << 18 };

typedef struct Tracer {
    SyncSink sink;
    SyncMachine *machine;
    SyncRun *run;
    const SyncOutcome *out;
    SyncTrace *trace;
    ThreadsId makers; /* threads of the record */
    uint64_t at;
    SyncMoment last[NEAR_release + 1]; /* the last of each kind */
} Tracer;

static SyncMoment moment(const Tracer *t, const SyncEvent *e)
{
    SyncMoment m = {
        .node = e->node, .threads = e->threads, .at = t->at, .home = e->home
    };
    VarId vars[SYNC_MAX_RANK];
    for (const Op *p = op_parent(e->node->op); p && m.n < SYNC_MAX_RANK;
         p = op_parent(p))
        if (p->code == OP_ctl_for)
            vars[m.n++] = p->blocks[0]->args[0].var;
    for (unsigned i = 0; i < m.n; i++) {
        m.vars[i] = vars[m.n - 1 - i];
        m.values[i] = t->run->vars[m.vars[i]];
    }
    return m;
}

static bool covers(const Tracer *t, const SyncEvent *e)
{
    const SyncFault *f = &t->out->fault;
    if (e->node->kind != SYNC_access || e->node->tensor != f->tensor)
        return false;
    for (unsigned i = 0; i < f->rank; i++) {
        int64_t g = t->run->grains[f->tensor][i];
        if (e->hi[i] <= f->element[i] || e->lo[i] >= f->element[i] + g)
            return false;
    }
    return true;
}

static bool releases(const SyncFault *f, const SyncEvent *e)
{
    bool any = false;
    for (unsigned i = 0; f->n_releases && i < e->n_targets; i++)
        any = any || e->targets[i] == f->release.flat;
    return any && e->node->kind == SYNC_arrive &&
           e->barrier == f->release.tensor;
}

static bool awaits_reported(const SyncFault *f, const SyncEvent *e)
{
    bool any = false;
    for (unsigned i = 0; i < f->n_reported; i++)
        any = any || e->barrier == f->reported[i].tensor;
    return any && e->node->kind == SYNC_await;
}

static void note_sync(Tracer *t, const SyncEvent *e)
{
    const SyncFault *f = &t->out->fault;
    ThreadPool *pool = t->run->pool;
    bool makes = threads_and(pool, e->threads, t->makers);
    bool uses = threads_and(pool, e->threads, f->threads);
    if (releases(f, e))
        t->last[NEAR_release] = moment(t, e);
    if (awaits_reported(f, e) && uses)
        t->last[NEAR_element] = moment(t, e);
    if (t->trace->before.node && makes && uses)
        t->last[NEAR_between] = moment(t, e);
    if (t->trace->before.node && (makes || uses))
        t->last[NEAR_side] = moment(t, e);
}

static bool on_event(SyncSink *self, const SyncEvent *e)
{
    Tracer *t = (Tracer *)self;
    const SyncFault *f = &t->out->fault;
    t->at++;
    if (!t->machine->sink.event(&t->machine->sink, e)) {
        t->trace->now = moment(t, e);
        return false;
    }
    bool maker = e->node->id == f->record.origin &&
                 threads_and(t->run->pool, e->threads, t->makers);
    if (maker && (covers(t, e) || e->node->kind != SYNC_access)) {
        t->trace->before = moment(t, e);
        t->last[NEAR_between] = t->last[NEAR_side] = (SyncMoment){ 0 };
    } else if (e->node->kind == SYNC_fence || e->node->kind == SYNC_arrive ||
               e->node->kind == SYNC_await) {
        note_sync(t, e);
    }
    return true;
}

static void on_trip(SyncSink *self, SyncTrip *trip)
{
    Tracer *t = (Tracer *)self;
    int64_t from = trip->trip;
    if (t->at < MOST_TRACED)
        return;
    t->machine->sink.trip(&t->machine->sink, trip);
    if (trip->trip == from)
        return;
    t->trace->before = (SyncMoment){ 0 };
    memset(t->last, 0, sizeof t->last);
}

static void on_left(SyncSink *self, SyncTrip *trip)
{
    Tracer *t = (Tracer *)self;
    t->machine->sink.left(&t->machine->sink, trip);
}

/* The threads whose access a record stands for: those with its own signature,
 * or with any where it is not a family. */
static ThreadsId makers_of(SyncRun *run, const Record *r)
{
    ThreadsId out = r->own;
    for (uint32_t i = 0; i < r->n_vis && !r->own; i++)
        out = threads_or(run->pool, out, r->vis[i].threads);
    return out;
}

void sync_trace(Arena *arena, SyncRun *run, const SyncOutcome *out,
                SyncTrace *trace)
{
    const SyncDevice *d = run->device;
    Tracer t = { .sink = { on_event, on_trip, on_left },
                 .run = run,
                 .out = out,
                 .trace = trace };
    *trace = (SyncTrace){ 0 };
    t.makers = makers_of(run, &out->fault.record);
    for (unsigned i = 0; i < d->n_tasks; i++)
        run->vars[d->task_vars[i]] = out->task[i];
    t.machine = sync_machine_new(arena, run, run->grains);
    run->n_events = 0;
    sync_run_task(run, &t.sink);
    for (unsigned i = 0; i <= NEAR_release; i++)
        if (t.last[i].node) {
            trace->nearest = t.last[i];
            trace->near = (SyncNear)i;
        }
}

void sync_moment_print(StrBuf *out, const ExprCtx *x, const SyncMoment *m)
{
    for (unsigned i = 0; i < m->n; i++) {
        const char *name = var_get(x, m->vars[i])->name;
        strbuf_addf(out, "%s%s = %lld", i ? ", " : "", name ? name : "_",
                    (long long)m->values[i]);
    }
}
