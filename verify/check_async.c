/* Runs a lowered program at a few sizes under the observers of verify/async and
 * turns what they and the machine found into verdicts. The canonical schedule
 * suffices: docs/semantics.md says why. Runs are shared with a process beside
 * this one (aside.h). */
#include "verify/check_async.h"

#include "verify/aside.h"
#include "verify/async/arguments.h"
#include "verify/async/budget.h"
#include "verify/async/dependent.h"
#include "verify/async/fault.h"
#include "verify/async/layout.h"
#include "verify/async/refine.h"
#include "verify/async/run.h"
#include "verify/async/turns.h"
#include "verify/async/values.h"

#include <stdlib.h>
#include <string.h>

typedef struct AsyncCheck {
    Ctx *ctx;
    Module *m;
    const Op *host;
    AsyncRun run;
    AsyncSource source;
    RefineResult refined;      /* what the runs found together */
    const char *machine_class; /* of the fault that ended a run */
    bool protocol_bad, races_bad, ended;
    bool no_room;  /* for the arguments */
    bool too_much; /* work */
    bool once;     /* a kernel does something for first tasks alone */
    const char *sizes;
    Turns *turns;       /* NULL: the sizes were given */
    const char *unseen; /* what no run has shown, or NULL */
} AsyncCheck;

/* ---- faults -------------------------------------------------------------- */

static void place(StrBuf *out, const AsyncRun *r, const MachineEvent *e)
{
    strbuf_addf(out, "cluster = %u, cta = %u, warp = %u", e->agent.cluster,
                e->agent.cta, e->agent.warp);
    uint32_t lanes = e->agent.lanes;
    if (lanes && !(lanes & (lanes - 1)))
        strbuf_addf(out, ", lane = %d", __builtin_ctz(lanes));
    if (r->sizes && *r->sizes)
        strbuf_addf(out, ", %s", r->sizes);
}

static Diag *fault(AsyncRun *r, const MachineEvent *e, const char *code,
                   const char *fmt, va_list ap)
{
    StrBuf at = { 0 };
    Diag *d = async_vfault(r->ctx, e->op, code, fmt, ap);
    place(&at, r, e);
    diag_witness(r->ctx, d, "%s", strbuf_text(&at));
    strbuf_free(&at);
    return d;
}

static void note_cause(AsyncRun *r, Diag *d)
{
    if (r->cause.code)
        diag_note(r->ctx, d, r->cause.event.op->loc, "%s: %s", r->cause.code,
                  r->cause.text);
}

void protocol_fault(AsyncRun *r, const MachineEvent *e, const char *code,
                    const char *fmt, ...)
{
    if (r->protocol_bad)
        return;
    r->protocol_bad = true;
    const Cause *c = &r->cause;
    va_list ap;
    va_start(ap, fmt);
    Diag *d = fault(r, e, c->code ? c->code : code, fmt, ap);
    va_end(ap);
    note_cause(r, d);
}

void race_fault(AsyncRun *r, const MachineEvent *e, const Stamp *other,
                const char *code, const char *fmt, ...)
{
    if (r->races_bad)
        return;
    r->races_bad = true;
    va_list ap;
    va_start(ap, fmt);
    Diag *d = fault(r, e, code, fmt, ap);
    va_end(ap);
    if (other)
        diag_note(r->ctx, d, other->op->loc, "the other access is here");
}

/* ---- the observer -------------------------------------------------------- */

static bool value_in_lane(void *user, const Affine *e, unsigned lane,
                          int64_t *out)
{
    return machine_eval(user, e, lane, out);
}

static uint64_t warp_of(const MachineEvent *e)
{
    const MachineAgent *a = &e->agent;
    return (uint64_t)a->cluster << 16 | a->cta << 8 | a->warp;
}

/* That the clocks of a run may take. */
#define MOST_BYTES ((size_t)2 << 30)

static void observe(MachineObserver *self, const MachineEvent *e)
{
    AsyncRun *r = (AsyncRun *)self;
    if (arena_bytes(r->order.arena) > MOST_BYTES)
        *r->too_much = true;
    if (e->kind == MEV_launch && r->turns)
        turns_begin(r->turns);
    if (e->kind == MEV_come) {
        turns_see(r->turns, e->op, warp_of(e), e->agent.lanes, value_in_lane,
                  (void *)e);
        return;
    }
    if (r->refine && refine_wants() >> e->kind & 1)
        refine_event(r->refine, e);
    if (e->kind == MEV_read || e->kind == MEV_write) {
        races_event(r, e);
        dependent_event(r, e);
        return;
    }
    if (e->kind == MEV_op)
        return;
    if (e->kind == MEV_target) {
        protocol_event(r, e);
        return;
    }
    if (e->kind != MEV_launch)
        protocol_event(r, e);
    order_event(&r->order, e);
    races_forget(r);
    if (e->kind == MEV_launch) {
        r->exited = NULL;
        r->targets.len = 0;
        races_event(r, e);
    }
    dependent_event(r, e);
    protocol_after(r, e);
}

/* ---- the class of the machine's own faults ------------------------------- */

typedef struct ClassRow {
    const char *code, *op, *class;
} ClassRow;

/* The first row whose code and op fit; op NULL fits all. */
static const ClassRow classes[] = {
    { "uninitialised", NULL, "B-LIFE" },
    { "proxy", NULL, "D-PROXY" },
    { "mbarrier", "mbarrier.init", "B-LIFE" },
    { "mbarrier", "mbarrier.arrive", "B-COUNT" },
    { "mbarrier", "cp.async.mbarrier.arrive", "B-COUNT" },
    { "mbarrier", "mbarrier.wait", "B-PHASE" },
    { "mbarrier", NULL, "B-TX" },
    { "exited", NULL, "CL-EXIT" },
    { "unfinished", NULL, "D-WAR" },
    { "in-flight", NULL, "W-REG" },
    { "wgmma", NULL, "W-REG" },
    { "copy", NULL, "M-BOX" },
    { "align", NULL, "M-ALIGN" },
    { "machine", "mbarrier.arrive", "CL-MASK" },
    { "machine", "bulk.tensor.load", "CL-MASK" },
    { "bounds", "bulk.copy", "CL-MASK" },
    { "machine", "barrier.cta.sync", "C-ID" },
    { "machine", NULL, "C-CONV" },
};

/* Which of an mbarrier's numbers is wrong when nothing can go on. */
static const char *deadlock_class(const AsyncRun *r)
{
    const Order *o = &r->order;
    bool bytes = false, count = false;
    for (unsigned c = 0; c < o->n_clusters; c++)
        for (size_t i = 0; i < o->n_ctas * o->n_bars; i++) {
            const OrderBar *b = o->clusters[c].bars[i];
            if (!b || !b->agent)
                continue;
            int64_t arrived = (int64_t)b->arrivals[0].len;
            bytes |= b->expected != b->delivered && arrived == b->count;
            count |= arrived > 0 && arrived < b->count;
        }
    return bytes ? "B-TX" : count ? "B-COUNT" : "B-CYCLE";
}

static const char *class_of(const AsyncRun *r, const Op *op, const char *code)
{
    const OpInfo *i = op_info(op->code);
    const char *name = i->text ? i->text : i->name;
    bool by_protocol = !strcmp(code, "deadlock") || !strcmp(code, "poison") ||
                       !strcmp(code, "mbarrier") || !strcmp(code, "unfinished");
    if (by_protocol && r->cause.code)
        return r->cause.code;
    if (!strcmp(code, "deadlock"))
        return deadlock_class(r);
    if (!strcmp(code, "poison"))
        return "D-RAW";
    for (size_t n = 0; n < sizeof classes / sizeof *classes; n++)
        if (!strcmp(classes[n].code, code) &&
            (!classes[n].op || !strcmp(classes[n].op, name)))
            return classes[n].class;
    return code;
}

static const char *classify(void *user, const Op *op, const char *code)
{
    AsyncCheck *c = user;
    c->machine_class = class_of(&c->run, op, code);
    return c->machine_class;
}

/* ---- arguments ----------------------------------------------------------- */

typedef struct WriteSearch {
    const Module *m;
    const Value *v;
    Arena *scratch;
    bool found;
} WriteSearch;

static bool find_write(Op *op, void *user)
{
    WriteSearch *s = user;
    OpAccessVec v = { 0 };
    op_accesses(s->m, op, s->scratch, &v);
    for (size_t i = 0; i < v.len; i++)
        if ((v.data[i].flags & (ACC_WRITE | ACC_REDUCE)) &&
            value_root(v.data[i].access->base) == s->v)
            s->found = true;
    return !s->found;
}

/* The host's value behind a launch operand. */
static const Value *behind(const Operand *o)
{
    Value *v = o->kind == OPND_access  ? o->u.access->base
               : o->kind == OPND_value ? o->u.value
                                       : NULL;
    while (v && v->def && v->def->code == OP_host_tensor_map)
        v = v->def->operands[0].u.access->base;
    return v ? value_root(v) : NULL;
}

typedef struct LaunchSearch {
    AsyncCheck *c;
    const Value *param;
    bool written;
} LaunchSearch;

static bool launch_writes(Op *op, void *user)
{
    LaunchSearch *s = user;
    if (op->code != OP_host_launch)
        return true;
    const Op *k = module_symbol(s->c->m, op_attr_str(op, "kernel", ""));
    for (unsigned i = 0; k && i < op->n_operands; i++) {
        if (behind(&op->operands[i]) != s->param || i >= k->blocks[0]->n_args)
            continue;
        WriteSearch w = { s->c->m, k->blocks[0]->args[i].value,
                          s->c->run.order.arena, false };
        op_walk((Op *)k, find_write, &w);
        s->written |= w.found;
    }
    return true;
}

static bool is_written(AsyncCheck *c, const Value *param)
{
    LaunchSearch s = { c, param, false };
    op_walk((Op *)c->host, launch_writes, &s);
    return s.written;
}

/* Tensors with a value of its own in each element. */
static bool make_args(AsyncCheck *c, const SizeSet *sizes, ProcArg *args)
{
    const Block *b = c->host->blocks[0];
    AsyncRun *r = &c->run;
    r->quiet = ARENA_ARRAY(r->order.arena, const Tensor *, b->n_args + 1);
    for (unsigned i = 0, n = 0; i < b->n_args; i++)
        if (!b->args[i].value && n < sizes->n)
            args[i].value = sizes->values[n++];
    for (unsigned i = 0; i < b->n_args; i++) {
        int64_t extent[TENSOR_MAX_RANK];
        const Value *v = b->args[i].value;
        if (!v)
            continue;
        if (!interp_param_extents(c->m, c->host, i, args, extent))
            return false;
        Tensor *t = tensor_new(v->name, v->type->elem, v->type->rank, extent);
        args[i].tensor = t;
        if (!t)
            return false;
        values_fill(t, i);
        if (!is_written(c, v))
            r->quiet[r->n_quiet++] = t;
    }
    return true;
}

/* ---- runs ---------------------------------------------------------------- */

static const char *set_text(AsyncCheck *c, const SizeSet *s)
{
    StrBuf text = { 0 };
    sizes_print(&text, c->m, s);
    const char *out = ctx_intern(c->ctx, strbuf_text(&text));
    strbuf_free(&text);
    return out;
}

static void note_end(AsyncCheck *c, bool ok)
{
    const AsyncRun *r = &c->run;
    c->protocol_bad |= r->protocol_bad;
    c->races_bad |= r->races_bad;
    if (ok || c->no_room || c->too_much)
        return;
    const char *class = c->machine_class;
    const Diag *last = NULL;
    for (const Diag *d = ctx_diags(c->ctx); d; d = d->next)
        last = d->severity == SEV_error ? d : last;
    if (!class && last && !strcmp(last->code, "poison"))
        class = "D-RAW"; /* by an instruction's body */
    c->ended = true;
    if (class && class[0] == 'D' && class[1] == '-')
        c->races_bad = true;
    else
        c->protocol_bad = true;
}

/* What one run found, to what the runs before did. */
static void note_refined(AsyncCheck *c, RefineResult one)
{
    c->refined.cover_bad |= one.cover_bad;
    c->refined.value_bad |= one.value_bad;
    if (one.open)
        c->refined.open = one.open;
    if (one.value_open)
        c->refined.value_open = one.value_open;
}

/* Ops that a run may take: some ten seconds. */
#define MOST_OPS UINT64_C(50000000)

static void run_at(AsyncCheck *c, const SizeSet *sizes, int64_t clusters)
{
    AsyncRun *r = &c->run;
    *r = (AsyncRun){
        .ctx = c->ctx, .m = c->m, .turns = c->turns, .too_much = &c->too_much
    };
    r->order.arena = arena_new();
    r->base.event = observe;
    r->base.wants = 1u << MEV_read | 1u << MEV_write | 1u << MEV_issue |
                    1u << MEV_finish | 1u << MEV_phase | 1u << MEV_exit |
                    1u << MEV_launch | 1u << MEV_init | 1u << MEV_arrive |
                    1u << MEV_expect | 1u << MEV_deliver | 1u << MEV_target |
                    1u << MEV_pass | 1u << MEV_meet | 1u << MEV_step;
    r->sizes = set_text(c, sizes);
    if (c->turns)
        r->base.wants |= 1u << MEV_come;
    if (c->turns)
        turns_around(c->turns, c->host, sizes);
    if (c->turns && c->source.proc)
        turns_around(c->turns, c->source.proc, sizes);
    if (c->source.proc) {
        r->refine = refine_new(r->order.arena, c->ctx, c->source.m,
                               c->source.proc, c->turns);
        r->base.wants |= refine_wants();
    }
    MachineObserver *observers[1] = { &r->base };
    MachineOptions o = { .clusters = clusters,
                         .canonical = true,
                         .most_ops = MOST_OPS,
                         .spent = &c->too_much,
                         .classify = classify,
                         .classify_user = c,
                         .n_observers = 1,
                         .observers = observers };
    unsigned n = c->host->blocks[0]->n_args;
    ProcArg *args = ARENA_ARRAY(r->order.arena, ProcArg, n + 1);
    bool ok = make_args(c, sizes, args);
    if (!ok)
        c->no_room = c->ended = true;
    if (ok && c->source.proc &&
        interp_estimate(c->source.m, c->source.proc, args) >
            CHECK_ASYNC_MOST_WORK)
        c->too_much = true;
    ok = ok && !c->too_much;
    if (ok && r->refine)
        refine_program(r->refine, args, n);
    ok = ok && machine_run(c->m, c->host, args, n, &o);
    c->ended |= c->too_much;
    note_end(c, ok);
    if (r->refine) {
        if (ok)
            refine_end(r->refine, args, n, c->host->loc);
        note_refined(c, refine_result(r->refine));
        refine_free(r->refine);
    }
    for (unsigned i = 0; i < n; i++)
        tensor_free(args[i].tensor);
    arena_free(r->order.arena);
}

/* Further sizes for what the first ones do not show, and clusters of a run in
 * which each task is a cluster's first. */
enum { MOST_TRIES = 6, MANY_CLUSTERS = 16 };

static bool find_launch(Op *op, void *user)
{
    bool *found = user;
    *found |= op->code == OP_host_launch;
    return true;
}

/* A verdict on what the program is compared with. */
static CheckResult compared(const AsyncCheck *c, const char *scope,
                            unsigned n_runs, bool bad, const char *open)
{
    CheckResult out = { .verdict = VERDICT_proved, .scope = scope };
    if (!c->source.proc)
        out = (CheckResult){ .verdict = VERDICT_not_run,
                             .reason = "the par program is not given" };
    else if (bad)
        out = (CheckResult){ .verdict = VERDICT_refuted, .witness = c->sizes };
    else if (c->ended || !n_runs)
        out = (CheckResult){ .verdict = VERDICT_not_run,
                             .reason = "no run came to its end" };
    else if (open)
        out = (CheckResult){ .verdict = VERDICT_unknown, .reason = open };
    return out;
}

static bool find_once(Op *op, void *user)
{
    bool *found = user;
    *found |= op->code == OP_async_tasks && op_attr_int(op, "once", 0);
    return !*found;
}

static bool find_kernel_once(Op *op, void *user)
{
    AsyncCheck *c = user;
    Op *k = op->code == OP_host_launch
                ? module_symbol(c->m, op_attr_str(op, "kernel", ""))
                : NULL;
    if (k)
        op_walk(k, find_once, &c->once);
    return !c->once;
}

/* How many run at once at the i-th sizes: one, whose tasks follow each other,
 * or two, whose tasks meet. */
static int64_t clusters_of(unsigned i)
{
    return i == 1 ? 2 : 1;
}

static bool is_refuted(const AsyncCheck *c)
{
    return c->protocol_bad || c->races_bad || c->refined.cover_bad ||
           c->refined.value_bad;
}

/* A run of a list. */
typedef struct RunAt {
    const SizeSet *sizes;
    int64_t clusters;
    bool first_tasks; /* in addition to the others */
} RunAt;

/* Runs that do not depend on each other. */
typedef struct Runs {
    AsyncCheck *c;
    CtxMark mark;
    RefineResult refined; /* before them */
    bool to_the_end;      /* of those that come to theirs */
    VEC(RunAt) runs;
} Runs;

static void runs_add(Arena *arena, Runs *r, const SizeSet *sizes,
                     int64_t clusters)
{
    VEC_PUSH(arena, &r->runs, ((RunAt){ sizes, clusters, false }));
}

/* Where a kernel does something for first tasks alone, a run more in which each
 * of a few is one. */
static void runs_add_first_tasks(Arena *arena, Runs *r, const SizeSet *sizes)
{
    if (r->c->once)
        VEC_PUSH(arena, &r->runs, ((RunAt){ sizes, MANY_CLUSTERS, true }));
}

static bool run_here(void *user, unsigned i)
{
    Runs *r = user;
    AsyncCheck *c = r->c;
    const RunAt *at = &r->runs.data[i];
    c->sizes = set_text(c, at->sizes);
    if (!at->first_tasks || !c->ended)
        run_at(c, at->sizes, at->clusters);
    return !is_refuted(c) && !(r->to_the_end && c->ended);
}

/* This process is the copy. */
static bool run_beside(void *user, unsigned i)
{
    Runs *r = user;
    AsyncCheck *c = r->c;
    if (c->turns)
        turns_aside(c->turns);
    run_here(r, i);
    return !is_refuted(c) && !c->ended && c->refined.open == r->refined.open &&
           c->refined.value_open == r->refined.value_open &&
           !ctx_diags_since(c->ctx, r->mark);
}

/* Until one refutes; some beside. */
static void run_each(Runs *r)
{
    AsideList list = { (unsigned)r->runs.len, run_here, run_beside, r };
    r->mark = ctx_mark(r->c->ctx);
    r->refined = r->c->refined;
    aside_each(&list);
}

/* Runs at the first sizes. Answers the scope. */
static const char *run_sizes(AsyncCheck *c, const SizeSet *sizes, unsigned n)
{
    StrBuf scope = { 0 };
    Runs runs = { .c = c };
    Arena *arena = arena_new();
    for (unsigned i = 0; i < n; i++) {
        runs_add(arena, &runs, &sizes[i], clusters_of(i));
        if (i == 2 || n <= 2)
            runs_add_first_tasks(arena, &runs, &sizes[i]);
        strbuf_addf(&scope, "%s%s", i ? "; " : "", set_text(c, &sizes[i]));
    }
    run_each(&runs);
    const char *text = ctx_intern(c->ctx, strbuf_text(&scope));
    strbuf_free(&scope);
    arena_free(arena);
    return text;
}

/* All sizes that were run, and their text. */
typedef struct Ran {
    Arena *arena;
    VEC(SizeSet) sets;
    StrBuf scope;
} Ran;

/* Runs at further sizes, by so many clusters as the first runs. */
static void run_further(AsyncCheck *c, Ran *ran, SizeSet at)
{
    Runs runs = { .c = c, .to_the_end = true };
    strbuf_addf(&ran->scope, "; %s", set_text(c, &at));
    VEC_PUSH(ran->arena, &ran->sets, at);
    for (unsigned i = 0; i < 2; i++)
        runs_add(ran->arena, &runs, &at, clusters_of(i));
    runs_add_first_tasks(ran->arena, &runs, &at);
    run_each(&runs);
}

/* Runs at more sizes, each the least that shows what no run has shown yet. One
 * that was seen for the first time then, one way, is asked about again. */
static void run_unseen(AsyncCheck *c, Prover *prover, Ran *ran)
{
    unsigned n = (unsigned)ran->sets.len;
    const SizeSet *sizes =
        arena_memdup(ran->arena, ran->sets.data, n * sizeof *sizes);
    TextTurn *next = NULL;
    SizeSet at;
    for (unsigned tries = 0; !is_refuted(c) && !c->ended &&
                             (next = turns_next(c->turns, prover));) {
        unsigned before = turn_progress(c->turns, next);
        if (tries++ < MOST_TRIES &&
            turns_reach(c->turns, next, ran->arena, sizes, n, &at))
            run_further(c, ran, at);
        if (turn_progress(c->turns, next) == before)
            turn_give_up(c->turns, next);
    }
}

/* What a condition on sizes lets in was seen at the least sizes: what it does
 * with more rounds and tasks is run as well. */
static void run_wide(AsyncCheck *c, Ran *ran)
{
    SizeSet wide;
    unsigned at = 0;
    for (unsigned tries = 0;
         tries < MOST_TRIES && !is_refuted(c) && !c->ended &&
         turns_widen(c->turns, &at, ran->arena, ran->sets.data,
                     (unsigned)ran->sets.len, &wide);
         tries++)
        run_further(c, ran, wide);
}

/* Runs at sizes at which turns are seen. Answers the scope with these sizes. */
static const char *run_turns(AsyncCheck *c, Prover *prover,
                             const SizeSet *sizes, unsigned n,
                             const char *scope)
{
    Ran ran = { .arena = arena_new() };
    strbuf_add(&ran.scope, scope);
    for (unsigned i = 0; i < n; i++)
        VEC_PUSH(ran.arena, &ran.sets, sizes[i]);
    run_unseen(c, prover, &ran);
    run_wide(c, &ran);
    const TextTurn *unseen = turns_hopeless(c->turns);
    StrBuf why = { 0 };
    if (unseen) {
        strbuf_add(&why, "at the sizes that were run ");
        turn_print(&why, c->turns, unseen);
        c->unseen = ctx_intern(c->ctx, strbuf_text(&why));
    }
    const char *out = ctx_intern(c->ctx, strbuf_text(&ran.scope));
    strbuf_free(&why);
    strbuf_free(&ran.scope);
    arena_free(ran.arena);
    return out;
}

/* What was proved of what was run is not of what was not. */
static void note_unseen(const AsyncCheck *c, CheckResult *r)
{
    if (c->unseen && r->verdict == VERDICT_proved)
        *r = (CheckResult){ .verdict = VERDICT_unknown, .reason = c->unseen };
}

static void run_all(AsyncCheck *c, const SizeSet *sizes, unsigned n,
                    Prover *prover, CheckResult out[ASYNC_PARTS])
{
    const RefineResult *refined = &c->refined;
    CheckResult *protocol = &out[ASYNC_protocol], *races = &out[ASYNC_races];
    const char *text = run_sizes(c, sizes, n);
    if (n && c->turns)
        text = run_turns(c, prover, sizes, n, text);
    out[ASYNC_instances] =
        compared(c, text, n, refined->cover_bad, refined->open);
    out[ASYNC_refinement] =
        compared(c, text, n, refined->value_bad, refined->value_open);
    *protocol = (CheckResult){ .verdict = VERDICT_proved, .scope = text };
    *races = *protocol;
    const char *open =
        c->no_room    ? "there is no room for tensors of these sizes"
        : c->too_much ? "a run takes too many steps or too much memory: "
                        "give small sizes"
                      : "the run ended early, see the other parts";
    if (c->protocol_bad)
        *protocol =
            (CheckResult){ .verdict = VERDICT_refuted, .witness = c->sizes };
    else if (c->ended)
        *protocol = (CheckResult){ .verdict = VERDICT_unknown, .reason = open };
    if (c->races_bad)
        *races =
            (CheckResult){ .verdict = VERDICT_refuted, .witness = c->sizes };
    else if (c->ended)
        *races = (CheckResult){ .verdict = VERDICT_unknown, .reason = open };
    if (!n)
        *protocol = *races = (CheckResult){
            .verdict = VERDICT_unknown,
            .reason = "no sizes were found that keep the program's conditions"
        };
    static const int of_runs[] = { ASYNC_protocol, ASYNC_races, ASYNC_instances,
                                   ASYNC_refinement };
    for (unsigned i = 0; i < sizeof of_runs / sizeof *of_runs; i++)
        note_unseen(c, &out[of_runs[i]]);
}

/* ---- orders of tasks ----------------------------------------------------- */

/* Task loops of one kernel that take their tasks in bands of other heights:
 * where there are few rows, that cannot be seen. */
typedef struct Orders {
    Module *m;
    const Op *first, *other; /* other: NULL where all are alike */
} Orders;

static bool find_order(Op *op, void *user)
{
    Orders *o = user;
    if (op->code != OP_async_tasks || o->other)
        return !o->other;
    if (!o->first)
        o->first = op;
    else if (op_attr_int(o->first, "group", 1) != op_attr_int(op, "group", 1))
        o->other = op;
    return true;
}

static bool find_orders(Op *op, void *user)
{
    Orders *o = user;
    if (op->code != OP_host_launch || o->other)
        return true;
    Op *kernel = module_symbol(o->m, op_attr_str(op, "kernel", ""));
    o->first = NULL;
    if (kernel && kernel->code == OP_async_kernel)
        op_walk(kernel, find_order, o);
    return true;
}

/* Why it is not known that all roles take the same tasks; NULL: it is. */
static const char *orders_differ(Ctx *ctx, Module *m, const Op *host)
{
    Orders o = { .m = m };
    op_walk((Op *)host, find_orders, &o);
    if (!o.other)
        return NULL;
    return arena_printf(
        ctx_arena(ctx),
        "the task loops of lines %u and %u have the groups %lld and %lld: "
        "that they take the same tasks shows only with more rows of tasks "
        "than the smaller one; give sizes",
        o.first->loc.line, o.other->loc.line,
        (long long)op_attr_int(o.first, "group", 1),
        (long long)op_attr_int(o.other, "group", 1));
}

/* ---- all parts ----------------------------------------------------------- */

static const char *const part_names[ASYNC_PARTS] = {
    "check-async/protocol",  "check-async/races",     "check-async/layout",
    "check-async/budget",    "check-async/arguments", "check-async/instances",
    "check-async/refinement"
};

void check_async(Ctx *ctx, Module *m, const Op *host, const SizeSet *sizes,
                 AsyncSource source, Prover *prover,
                 CheckResult out[ASYNC_PARTS])
{
    AsyncCheck c = { .ctx = ctx, .m = m, .host = host, .source = source };
    SizeSet own[SIZE_SETS];
    Arena *arena = arena_new();
    bool launches = false;
    op_walk((Op *)host, find_launch, &launches);
    op_walk((Op *)host, find_kernel_once, &c);
    unsigned n = 1;
    if (sizes)
        own[0] = *sizes;
    else
        n = sizes_choose(arena, m, host, source.m, source.proc, own);
    if (!sizes) {
        c.turns = turns_new(arena, m, host, source.m, source.proc);
        c.unseen = orders_differ(ctx, m, host);
    }
    out[ASYNC_budget] = check_async_budget(ctx, m, host);
    out[ASYNC_layout] = check_async_layout(ctx, m, host, prover);
    out[ASYNC_arguments] = check_async_arguments(ctx, m, host, source, prover);
    if (out[ASYNC_budget].verdict == VERDICT_refuted)
        out[ASYNC_protocol] = out[ASYNC_races] = out[ASYNC_instances] =
            out[ASYNC_refinement] =
                (CheckResult){ .verdict = VERDICT_not_run,
                               .reason = "the budget is refuted" };
    else
        run_all(&c, own, n, prover ? prover : prover_layer1(arena), out);
    for (int i = 0; i < ASYNC_PARTS; i++) {
        out[i].check = part_names[i];
        out[i].proc = op_attr_str(host, "name", "_");
        out[i].version = CHECK_ASYNC_VERSION;
        if (!launches && out[i].verdict != VERDICT_refuted)
            out[i] = (CheckResult){ .check = part_names[i],
                                    .proc = out[i].proc,
                                    .verdict = VERDICT_not_run,
                                    .reason = "no kernel is launched" };
    }
    turns_free(c.turns);
    arena_free(arena);
}
