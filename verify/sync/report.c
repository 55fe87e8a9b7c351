/* A fault in words: the class and element, both accesses, what the record says
 * of why one does not see the other, the synchronisation that came nearest,
 * and a way out. */
#include "verify/sync/report.h"

#include "passes/analysis/par_text.h"
#include "verify/sync/trace.h"

#include <string.h>

enum { REPLAY_SEEDS = 32 };

typedef struct Report {
    Ctx *ctx;
    SyncRun *run;
    const SyncOutcome *out;
    const SyncFault *f;
    SyncTrace trace;
    Diag *d;
    const char *fix;
} Report;

/* ---- pieces of text ----------------------------------------------------- */

static const char *keep(Report *r, StrBuf *s)
{
    const char *text = arena_strdup(ctx_arena(r->ctx), strbuf_text(s));
    strbuf_free(s);
    return text;
}

static const char *element_text(Report *r, unsigned tensor, unsigned rank,
                                const int64_t *at)
{
    StrBuf s = { 0 };
    const Value *v = r->run->program->tensors[tensor].value;
    strbuf_add(&s, v->name ? v->name : "_");
    for (unsigned i = 0; i < rank; i++)
        strbuf_addf(&s, "%s%lld", i ? ", " : "[", (long long)at[i]);
    strbuf_add(&s, rank ? "]" : "");
    return keep(r, &s);
}

static const char *barrier_text(Report *r, unsigned tensor, int64_t flat)
{
    const Value *v = r->run->program->tensors[tensor].value;
    int64_t at[SYNC_MAX_RANK] = { 0 };
    for (unsigned i = v->type->rank; i-- > 0;) {
        int64_t n = r->run->extents[tensor][i];
        at[i] = n > 0 ? flat % n : 0;
        flat = n > 0 ? flat / n : 0;
    }
    return element_text(r, tensor, v->type->rank, at);
}

static const char *threads_text(Report *r, ThreadsId c)
{
    StrBuf s = { 0 };
    threads_print(&s, r->run->pool, c, r->run->device->par->block_dim);
    return keep(r, &s);
}

static const char *moment_text(Report *r, const SyncMoment *m)
{
    StrBuf s = { 0 };
    sync_moment_print(&s, r->run->program->m->exprs, m);
    return keep(r, &s);
}

static const char *quals_text(Report *r, uint32_t quals)
{
    StrBuf s = { 0 };
    for (unsigned q = 0; q < 32; q++)
        if (quals >> q & 1)
            strbuf_addf(&s, "%s%s", s.len ? " or " : "",
                        qual_timeline(q)->name);
    return keep(r, &s);
}

/* What a statement is called. */
static const char *statement(const SyncNode *n)
{
    switch (n->kind) {
    case SYNC_fence:
        return "the Fence";
    case SYNC_arrive:
        return "the Arrive";
    case SYNC_await:
        return "the Await";
    default:
        break;
    }
    switch (n->op->code) {
    case OP_par_instr:
        return op_attr_str(n->op, "callee", "the instruction");
    case OP_mem_store:
        return "the assignment";
    case OP_mem_reduce:
        return "the reduction";
    case OP_mem_alloc:
        return "the allocation";
    default:
        return "the read";
    }
}

static const char *verb(const SyncNode *n)
{
    if (n->kind != SYNC_access)
        return "uses";
    return !(n->flags & SYNC_MUTATE) ? "reads" : "writes";
}

static void note_moment(Report *r, const SyncMoment *m, const char *what)
{
    const SyncNode *n = m->node;
    const char *on = n->kind == SYNC_access
                         ? arena_printf(ctx_arena(r->ctx), " on %s",
                                        qual_timeline(n->initial)->name)
                         : "";
    diag_note(r->ctx, r->d, n->op->loc, "%s: %s %s%s, by %s, at %s", what,
              statement(n), verb(n), on, threads_text(r, m->threads),
              moment_text(r, m));
}

/* ---- why ---------------------------------------------------------------- */

/* Threads that have the flag on any timeline. */
static ThreadsId threads_with(Report *r, VisFlag flag, uint32_t quals)
{
    const Record *rec = &r->f->record;
    ThreadsId out = 0;
    for (uint32_t i = 0; i < rec->n_vis; i++)
        if (rec->vis[i].slot % VIS_flags == flag &&
            (quals >> (rec->vis[i].slot / VIS_flags) & 1))
            out = threads_or(r->run->pool, out, rec->vis[i].threads);
    return out;
}

static const char *origin_timeline(const Report *r)
{
    const SyncNode *n = r->trace.before.node;
    return n && n->kind == SYNC_access ? qual_timeline(n->initial)->name : "";
}

/* How an access on this timeline is waited for. */
static const char *way_to_wait(const char *qual)
{
    if (!strcmp(qual, "tma_to_smem_async"))
        return "give the copy a trailing barrier `>> bar`, Arrive on it after "
               "the copy, and Await it here";
    if (!strcmp(qual, "tma_to_gmem_async"))
        return "Arrive(tma_to_gmem_async, 1) >> a Sm90_TmaCommitGroup after "
               "the store and Await it with 0";
    if (!strcmp(qual, "Sm80_cp_async"))
        return "Arrive(Sm80_cp_async, 1) >> a Sm80_CommitGroup and Await it, "
               "then synchronise the threads";
    if (!strncmp(qual, "wgmma", 5))
        return "Arrive(wgmma_async, 1) >> a Sm90_WgmmaCommitGroup and Await it "
               "by fewer outstanding before this";
    return "put Fence(cuda_in_order, cuda_in_order) by all these threads "
           "between the two, or an Arrive and an Await";
}

static const char *pending_text(Report *r)
{
    StrBuf s = { 0 };
    for (unsigned i = 0; i < r->f->n_reported; i++)
        strbuf_addf(
            &s, "%s%s", s.len ? ", " : "",
            barrier_text(r, r->f->reported[i].tensor, r->f->reported[i].flat));
    return keep(r, &s);
}

/* The cause's name, its words in *text, a way out in r->fix. */
static const char *why(Report *r, const char *pending, const char **text)
{
    ThreadPool *pool = r->run->pool;
    const SyncFault *f = r->f;
    Arena *a = ctx_arena(r->ctx);
    ThreadsId seen = threads_with(r, f->flag, f->quals);
    ThreadsId late = threads_minus(pool, f->threads, seen);
    const SyncNode *maker = r->trace.before.node;
    bool access = maker && maker->kind == SYNC_access;
    uint32_t own = access ? 1u << maker->initial : 0;
    bool generic = access && strstr(qual_timeline(maker->initial)->name,
                                    "cuda_in_order") != NULL;
    uint32_t others = ~f->quals & (generic ? UINT32_MAX : ~own);
    ThreadsId in_time = threads_with(r, VIS_temporal, f->quals);
    ThreadsId elsewhere = threads_with(r, VIS_full, others);
    if (generic && (own & others))
        elsewhere = threads_or(pool, elsewhere, f->record.own);
    r->fix = way_to_wait(origin_timeline(r));
    if (late && threads_subset(pool, late, elsewhere)) {
        *text = arena_printf(a,
                             "it is visible to the threads, but not on %s: "
                             "nothing crosses the proxies",
                             quals_text(r, f->quals));
        r->fix = "use cuda_generic_and_async_proxy as the second timeline of "
                 "the fence or await in between";
        return "D-PROXY";
    }
    if (f->flag == VIS_full && late && threads_subset(pool, late, in_time)) {
        *text = "it is ordered in time, but its value need not be visible: "
                "the synchronisation is temporal only";
        r->fix = "use a timeline whose full set has the access, such as "
                 "cuda_in_order or cuda_generic_and_async_proxy, in place of "
                 "cuda_temporal";
        return "D-TEMPORAL";
    }
    if (*pending) {
        *text = arena_printf(a,
                             "its completion is reported to %s, and that is "
                             "not awaited by %s",
                             pending, threads_text(r, late));
        r->fix = arena_printf(a, "Await %s before this, by all these threads",
                              pending);
        return "not awaited";
    }
    ThreadsId others_seen = threads_minus(pool, seen, r->trace.before.threads);
    if (threads_and(pool, f->threads, seen) || others_seen) {
        *text = arena_printf(a, "it is synchronised with %s only, not with %s",
                             threads_text(r, seen), threads_text(r, late));
        return "D-SCOPE";
    }
    if (f->record.own && r->trace.nearest.node &&
        !threads_subset(pool, f->record.own, r->trace.nearest.threads)) {
        *text = arena_printf(a, "the accesses of %s are not waited for",
                             threads_text(r, f->record.own));
        return "D-SCOPE";
    }
    *text = arena_printf(a, "nothing makes %s wait for it",
                         threads_text(r, f->threads));
    return "no synchronisation";
}

/* An Await of the right barrier that does not do. */
static const char *await_reason(Report *r)
{
    const SyncMoment *m = &r->trace.nearest;
    const SyncElement *e = &r->f->reported[0];
    for (unsigned i = 1; i < r->f->n_reported; i++)
        if (r->f->reported[i].tensor == m->node->tensor)
            e = &r->f->reported[i];
    if (m->home != e->flat)
        return arena_printf(ctx_arena(r->ctx), "it awaits %s, not %s",
                            barrier_text(r, e->tensor, m->home),
                            barrier_text(r, e->tensor, e->flat));
    if (m->node->n > 0)
        return arena_printf(ctx_arena(r->ctx),
                            "it leaves %lld of the groups outstanding",
                            (long long)m->node->n);
    return "not all of these threads execute it";
}

static const char *nearest_reason(Report *r)
{
    const SyncMoment *m = &r->trace.nearest;
    const SyncNode *n = m->node;
    const SyncNode *before = r->trace.before.node;
    bool issued = before && before->kind == SYNC_access;
    if (r->trace.near == NEAR_element)
        return await_reason(r);
    if (r->trace.near == NEAR_release)
        return arena_printf(
            ctx_arena(r->ctx),
            "it gives the slot back, and by then the access%s%s is not "
            "complete for these threads",
            issued ? " on " : "",
            issued ? qual_timeline(before->initial)->name : "");
    if (n->first && issued && !(n->first->full >> before->initial & 1))
        return arena_printf(
            ctx_arena(r->ctx), "its first timeline %s does not wait for %s",
            n->first->name, qual_timeline(before->initial)->name);
    if (n->second && !((n->second->full) & r->f->quals))
        return arena_printf(ctx_arena(r->ctx),
                            "its second timeline %s does not give what the "
                            "access needs",
                            n->second->name);
    return "it does not reach all of these threads, or not this access";
}

static void note_nearest(Report *r)
{
    const SyncMoment *m = &r->trace.nearest;
    if (!m->node)
        return;
    diag_note(r->ctx, r->d, m->node->op->loc,
              "the nearest synchronisation is %s here, by %s, at %s: %s",
              statement(m->node), threads_text(r, m->threads),
              moment_text(r, m), nearest_reason(r));
}

/* ---- the kinds ---------------------------------------------------------- */

typedef struct Kind {
    const char *code, *name, *earlier;
} Kind;

static const Kind kinds[] = {
    [FAULT_raw] = { "D-RAW", "RAW HAZARD", "written before" },
    [FAULT_war] = { "D-WAR", "WAR HAZARD", "read before" },
    [FAULT_waw] = { "D-WAW", "WAW HAZARD", "written before" },
    [FAULT_use_after_free] = { "D-FREED", "use_after_free HAZARD",
                               "used before" },
    [FAULT_use_before_alloc] = { "D-ALLOC", "use_before_alloc HAZARD",
                                 "used before" },
    [FAULT_free_missing_sync] = { "D-LIFE", "free_missing_sync HAZARD",
                                  "used before" },
    [FAULT_free_missing_arrive] = { "D-RELEASE", "free_missing_arrive HAZARD",
                                    "used before" },
    [FAULT_arrived_twice] = { "B-COUNT", NULL, NULL },
    [FAULT_awaited_twice] = { "B-COUNT", NULL, NULL },
    [FAULT_trailing_after_arrive] = { "B-TX", NULL, NULL },
    [FAULT_arrive_count] = { "B-COUNT", NULL, NULL },
    [FAULT_await_count] = { "B-COUNT", NULL, NULL },
    [FAULT_guard_too_short] = { "B-RING", NULL, NULL },
    [FAULT_deadlock] = { "B-CYCLE", NULL, NULL },
    [FAULT_tasks_raw] = { "D-RAW", "RAW HAZARD", "written before" },
    [FAULT_tasks_war] = { "D-WAR", "WAR HAZARD", "read before" },
    [FAULT_tasks_waw] = { "D-WAW", "WAW HAZARD", "written before" },
};

static const char *ring_words(Report *r, const char *pending)
{
    Arena *a = ctx_arena(r->ctx);
    switch (r->f->kind) {
    case FAULT_use_before_alloc:
        r->fix = arena_printf(a, "Await %s before this, by all these threads",
                              pending);
        return arena_printf(a,
                            "the slot's last use is released through %s, "
                            "and that is not awaited by %s",
                            pending, threads_text(r, r->f->threads));
    case FAULT_use_after_free:
        r->fix = "move the Arrive on the guard behind the last use of the slot";
        return "an Arrive on the guard has released the slot already";
    default:
        r->fix = "Arrive on the guard after the last use of the slot, by "
                 "threads that are past all its accesses";
        return "an access of the slot is not before the Arrive on the guard "
               "that releases it, or there is no such Arrive";
    }
}

static void report_data(Report *r, const Kind *k, const char *pending)
{
    const SyncFault *f = r->f;
    const char *text = "", *cause = "";
    const char *at = element_text(r, f->tensor, f->rank, f->element);
    bool ring = f->kind == FAULT_use_before_alloc ||
                f->kind == FAULT_use_after_free ||
                f->kind == FAULT_free_missing_arrive;
    bool freed = f->kind == FAULT_free_missing_arrive ||
                 f->kind == FAULT_free_missing_sync;
    if (ring)
        text = ring_words(r, pending);
    else
        cause =
            arena_printf(ctx_arena(r->ctx), " (%s)", why(r, pending, &text));
    r->d = diag_error(r->ctx, f->node->op->loc, k->code,
                      freed ? "%s @ free(%s): %s%s%s" : "%s @ %s: %s%s%s",
                      k->name, at, text, cause, "");
    if (!freed && r->trace.now.node)
        note_moment(r, &r->trace.now, "now");
    if (r->trace.before.node)
        note_moment(r, &r->trace.before, k->earlier);
    note_nearest(r);
}

static const char *task_text(Report *r, const int64_t *task)
{
    StrBuf s = { 0 };
    const SyncDevice *d = r->run->device;
    for (unsigned i = 0; i < d->n_tasks; i++)
        strbuf_addf(&s, "%s%s = %lld", i ? ", " : "",
                    var_get(r->run->program->m->exprs, d->task_vars[i])->name,
                    (long long)task[i]);
    return keep(r, &s);
}

static void report_tasks(Report *r, const Kind *k)
{
    const SyncFault *f = r->f;
    r->d = diag_error(r->ctx, f->node->op->loc, k->code,
                      "%s @ %s: %s %s it in the task %s, and the task %s has "
                      "%s it; tasks run at once",
                      k->name, element_text(r, f->tensor, f->rank, f->element),
                      statement(f->node), verb(f->node),
                      task_text(r, r->out->task), task_text(r, r->out->other),
                      f->kind == FAULT_tasks_war ? "read" : "written");
    diag_note(r->ctx, r->d, r->out->other_node->op->loc, "%s: %s", k->earlier,
              statement(r->out->other_node));
    r->fix = "let tasks write disjoint parts, or all of them reduce by "
             "Sm90_tma_reduce_add";
}

static void report_barrier(Report *r, const Kind *k)
{
    const SyncFault *f = r->f;
    const char *at = element_text(r, f->tensor, f->rank, f->element);
    Loc loc = f->node->op->loc;
    switch (f->kind) {
    case FAULT_arrived_twice:
        r->d = diag_error(r->ctx, loc, k->code,
                          "Arrived twice on one-shot arrive barrier %s", at);
        break;
    case FAULT_awaited_twice:
        r->d = diag_error(r->ctx, loc, k->code,
                          "Awaited twice on one-shot await barrier %s", at);
        break;
    case FAULT_trailing_after_arrive:
        r->d = diag_error(r->ctx, loc, k->code,
                          "Cannot use this barrier as trailing barrier after "
                          "previous Arrive on one-shot barrier %s",
                          at);
        r->fix = "move the Arrive behind all copies that report to the barrier";
        break;
    case FAULT_guard_too_short:
        r->d = diag_error(r->ctx, loc, k->code,
                          "the guard %s lacks element %lld, which would "
                          "release the last slot",
                          at, (long long)f->count);
        r->fix = "make the guard's extent that of the ring plus its depth";
        break;
    default:
        r->d = diag_error(r->ctx, loc, k->code,
                          "%s count (%lld) needs to be 1 at the end of the "
                          "scope: %s",
                          f->kind == FAULT_await_count ? "Await" : "Arrive",
                          (long long)f->count, at);
        r->fix = "arrive once on every element that is not arrived on before";
        break;
    }
    if (r->trace.now.node)
        note_moment(r, &r->trace.now, "now");
}

static void report_deadlock(Report *r, const Kind *k)
{
    r->d = diag_error(r->ctx, r->f->node->op->loc, k->code,
                      "No forward progress: deadlock in every schedule: %s",
                      r->out->cycle ? r->out->cycle : "");
    r->fix = "every element that is awaited needs the arrivals of all its "
             "CTAs, made before their threads wait for what comes later";
}

/* The command that runs the program at these sizes under many schedules. A
 * fault between tasks needs clusters that run at once. */
static void note_replay(Report *r, const char *sizes)
{
    const Op *proc = r->run->program->proc;
    const char *file = ctx_source_name(r->ctx, r->f->node->op->loc.file);
    SyncFaultKind k = r->f->kind;
    if (k == FAULT_guard_too_short || k == FAULT_arrive_count ||
        k == FAULT_await_count)
        return;
    StrBuf s = { 0 };
    strbuf_addf(&s, "exo-run %s --proc=%s --level=async", file ? file : "FILE",
                op_attr_str(proc, "name", "_"));
    strbuf_add(&s, *sizes ? " --size=" : "");
    for (const char *c = sizes; *c; c++)
        if (*c != ' ')
            strbuf_addc(&s, *c);
    strbuf_addf(&s, " --clusters=%d --seeds=%d --check",
                k >= FAULT_tasks_raw ? 4 : 1, REPLAY_SEEDS);
    diag_note(r->ctx, r->d, r->f->node->op->loc,
              "replay, where the machine model can show it: %s",
              strbuf_text(&s));
    strbuf_free(&s);
}

const char *sync_report(Ctx *ctx, SyncRun *run, const SyncOutcome *out,
                        const char *sizes)
{
    Arena *arena = arena_new();
    Report r = { .ctx = ctx, .run = run, .out = out, .f = &out->fault };
    const Kind *k = &kinds[out->fault.kind];
    bool tasks = out->fault.kind >= FAULT_tasks_raw;
    StrBuf s = { 0 };
    strbuf_addf(&s, "%s%s", sizes, *sizes ? "; " : "");
    if (out->fault.kind == FAULT_deadlock) {
        report_deadlock(&r, k);
        strbuf_add(&s, task_text(&r, out->task));
    } else if (tasks) {
        report_tasks(&r, k);
        strbuf_add(&s, task_text(&r, out->task));
    } else {
        sync_trace(arena, run, out, &r.trace);
        if (k->name)
            report_data(&r, k, pending_text(&r));
        else
            report_barrier(&r, k);
        sync_moment_print(&s, run->program->m->exprs, &r.trace.now);
    }
    const char *witness = keep(&r, &s);
    note_replay(&r, sizes);
    if (r.fix)
        diag_fix(ctx, r.d, "%s", r.fix);
    diag_witness(ctx, r.d, "%s", witness);
    arena_free(arena);
    return witness;
}
