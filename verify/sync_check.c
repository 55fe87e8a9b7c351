/* The check: chooses sizes, walks the host part of the procedure, and has every
 * device function that it launches run by the machine. Derived sets of sizes
 * are shared with a process beside this one; what is said is what would be said
 * if all were run here, one after another. */
#include "verify/sync_check.h"

#include "verify/aside.h"
#include "verify/sizes.h"
#include "verify/sync/report.h"

#include <string.h>

/* Statements that may be run: at given sizes, and over all derived ones. */
#define MOST_EVENTS UINT64_C(4000000000)
#define MOST_DERIVED UINT64_C(12000000)
/* Work of theirs (SyncRun): a minute, and some seconds. */
#define MOST_WORK UINT64_C(16000000000)
#define MOST_DERIVED_WORK UINT64_C(1000000000)

typedef struct Check {
    Ctx *ctx;
    Arena *arena; /* of one set of sizes */
    SyncProgram *p;
    int64_t *vars;
    bool *known;
    const SyncAsk *ask;
    uint64_t n_events, most_events, n_syncs;
    uint64_t work, most_work;
    const char *sizes;
    const char *unknown, *witness;
    bool refuted;
    uint64_t n_tasks, n_classes;
    StrBuf loops; /* what was found out of loops with many trips */
} Check;

/* ---- the host ----------------------------------------------------------- */

static bool atom_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Check *c = env->user;
    if (atom->kind != ATOM_var || !c->known[atom->var])
        return false;
    *out = c->vars[atom->var];
    return true;
}

/* `; k steady from step 9 of 64`, or `; every step of k run`. */
static void print_loops(Check *c, const SyncOutcome *out)
{
    for (size_t i = 0; i < out->loops.len; i++) {
        const SyncLoop *l = &out->loops.data[i];
        const char *name = var_get(c->p->m->exprs, l->node->var)->name;
        name = name ? name : "_";
        if (l->period)
            strbuf_addf(&c->loops, "; %s steady from step %lld of %lld", name,
                        (long long)l->from, (long long)l->trips);
        if (l->period > 1)
            strbuf_addf(&c->loops, " by %lld", (long long)l->period);
        if (l->every)
            strbuf_addf(&c->loops, "; every step of %s run", name);
    }
}

static bool check_device(Check *c, const SyncDevice *d)
{
    unsigned n = var_count(c->p->m->exprs) + 1;
    int64_t *vars = arena_memdup(c->arena, c->vars, n * sizeof *vars);
    bool *known = arena_memdup(c->arena, c->known, n * sizeof *known);
    SyncRun *run = sync_run_new(c->arena, c->p, d, vars, known);
    SyncOutcome out;
    run->max_events = c->most_events - c->n_events;
    run->most_work = c->most_work - c->work;
    run->every_step = c->ask->every_step;
    run->most_bytes = (c->ask->most_mib ? c->ask->most_mib : SYNC_MOST_MIB)
                      << 20;
    sync_tasks_check(c->arena, run, &out);
    c->n_events += out.n_events;
    c->work += run->work < run->most_work ? run->work : run->most_work;
    c->n_syncs += out.n_syncs;
    c->n_tasks += out.n_tasks;
    c->n_classes += out.n_classes;
    print_loops(c, &out);
    if (out.unknown) {
        c->unknown = arena_strdup(ctx_arena(c->ctx), out.unknown);
    } else if (out.fault.kind != FAULT_none) {
        c->witness = sync_report(c->ctx, run, &out, c->sizes);
        c->refuted = true;
    }
    if (out.kept)
        arena_free(out.kept);
    return !c->unknown && !c->refuted;
}

static bool host_block(Check *c, const Block *b);

static bool not_known(Check *c)
{
    c->unknown = "control of the host depends on a value that is not known "
                 "here";
    return false;
}

static bool host_loop(Check *c, const Op *op)
{
    Env env = { atom_value, c };
    int64_t lo, hi;
    VarId v = op->blocks[0]->args[0].var;
    if (!affine_eval(op->operands[0].u.index, &env, &lo) ||
        !affine_eval(op->operands[1].u.index, &env, &hi))
        return not_known(c);
    c->known[v] = true;
    for (int64_t i = lo; i < hi; i++) {
        c->vars[v] = i;
        if (++c->n_events > c->most_events) {
            c->unknown = "too many statements at these sizes";
            return false;
        }
        if (!host_block(c, op->blocks[0]))
            return false;
    }
    c->known[v] = false;
    return true;
}

static bool host_if(Check *c, const Op *op)
{
    Env env = { atom_value, c };
    bool holds;
    if (!cond_eval(op->operands[0].u.cond, &env, &holds))
        return not_known(c);
    if (holds)
        return host_block(c, op->blocks[0]);
    return op->n_blocks < 2 || host_block(c, op->blocks[1]);
}

static bool is_device(Op *op, void *user)
{
    *(bool *)user = *(bool *)user || op->code == OP_par_device;
    return true;
}

static bool host_op(Check *c, Op *op)
{
    bool any = false;
    op_walk(op, is_device, &any);
    if (!any)
        return true;
    if (op->code == OP_ctl_for)
        return host_loop(c, op);
    if (op->code == OP_ctl_if)
        return host_if(c, op);
    for (unsigned i = 0; i < c->p->n_devices; i++)
        if (c->p->devices[i].op == op)
            return check_device(c, &c->p->devices[i]);
    return true;
}

static bool host_block(Check *c, const Block *b)
{
    for (Op *op = b->first; op; op = op->next)
        if (!host_op(c, op))
            return false;
    return true;
}

/* ---- sizes -------------------------------------------------------------- */

/* One set of sizes; false when it is not proved. */
static bool check_set(Check *c, const SizeSet *sizes)
{
    unsigned n = var_count(c->p->m->exprs) + 1;
    c->arena = arena_new();
    c->vars = ARENA_ARRAY(c->arena, int64_t, n);
    c->known = ARENA_ARRAY(c->arena, bool, n);
    for (unsigned i = 0; i < sizes->n; i++) {
        c->vars[sizes->vars[i]] = sizes->values[i];
        c->known[sizes->vars[i]] = true;
    }
    StrBuf s = { 0 };
    sizes_print(&s, c->p->m, sizes);
    c->sizes = arena_strdup(ctx_arena(c->ctx), strbuf_text(&s));
    strbuf_free(&s);
    bool ok = host_block(c, c->p->proc->blocks[0]);
    arena_free(c->arena);
    return ok;
}

static const char *given_value(Check *c, VarId v, int64_t *out)
{
    const SyncSize *sizes = c->ask->sizes;
    const Var *var = var_get(c->p->m->exprs, v);
    Arena *a = ctx_arena(c->ctx);
    bool found = false;
    for (unsigned k = 0; k < c->ask->n_sizes; k++)
        if (!strcmp(sizes[k].name, var->name)) {
            *out = sizes[k].value;
            found = true;
        }
    if (!found)
        return arena_printf(a, "no value is given for %s", var->name);
    return var->kind == VAR_size && *out < 1
               ? arena_printf(a, "the size %s is %lld, which must be positive",
                              var->name, (long long)*out)
               : NULL;
}

static const char *check_given(Check *c, Arena *arena)
{
    SizeSet set = sizes_of(arena, c->p->proc);
    int64_t *values = ARENA_ARRAY(arena, int64_t, set.n + 1);
    set.values = values;
    c->most_events = MOST_EVENTS;
    c->most_work = MOST_WORK;
    for (unsigned i = 0; i < set.n && !c->unknown; i++)
        c->unknown = given_value(c, set.vars[i], &values[i]);
    const Op *broken = c->unknown ? NULL : sizes_broken(c->p->proc, &set);
    if (broken)
        c->unknown = arena_printf(ctx_arena(c->ctx),
                                  "the sizes break the assert of line %u",
                                  broken->loc.line);
    if (c->unknown || !check_set(c, &set))
        return NULL;
    return arena_printf(ctx_arena(c->ctx),
                        "%s%s%llu of %llu tasks run, the others are "
                        "translations%s",
                        c->sizes, *c->sizes ? "; " : "",
                        (unsigned long long)c->n_classes,
                        (unsigned long long)c->n_tasks, strbuf_text(&c->loops));
}

/* What was proved before the work ran out is the scope. */
static const char *derived_scope(Check *c, const SizeSets *sets, size_t n,
                                 const char *which)
{
    StrBuf phases = { 0 };
    sizes_print_phases(&phases, c->p->m, c->p->proc, sets, n);
    const char *text = arena_printf(
        ctx_arena(c->ctx), "%s%s%s%s", which, phases.len ? "; " : "",
        strbuf_text(&phases),
        n < sets->len ? "; the rest was left out, being too much work" : "");
    strbuf_free(&phases);
    return text;
}

/* What sets that were run beside have taken. */
typedef struct Spent {
    uint64_t n_events, n_syncs, work;
} Spent;

/* Derived sets of sizes. */
typedef struct Derived {
    Check *c;
    SizeSets sets;
    Spent *beside; /* by set, of both processes */
    bool open;     /* one was not proved */
} Derived;

static bool derived_here(void *user, unsigned i)
{
    Derived *d = user;
    d->open = !check_set(d->c, &d->sets.data[i]);
    return !d->open;
}

/* This process is the copy. */
static bool derived_beside(void *user, unsigned i)
{
    Derived *d = user;
    Check *c = d->c;
    Spent before = { c->n_events, c->n_syncs, c->work };
    if (!check_set(c, &d->sets.data[i]))
        return false;
    d->beside[i] =
        (Spent){ c->n_events - before.n_events, c->n_syncs - before.n_syncs,
                 c->work - before.work };
    return true;
}

/* Takes what was run beside as if it had been run here; false: together it is
 * more than may be run. */
static bool join_beside(Check *c, const Spent *s)
{
    if (s->n_events > c->most_events - c->n_events ||
        s->work > c->most_work - c->work)
        return false;
    c->n_events += s->n_events;
    c->n_syncs += s->n_syncs;
    c->work += s->work;
    return true;
}

/* Runs the sets until one is not proved. Answers how many were. */
static size_t check_sets(Derived *d)
{
    size_t bytes = (d->sets.len + 1) * sizeof *d->beside;
    AsideList list = { (unsigned)d->sets.len, derived_here, derived_beside, d };
    d->beside = aside_share(bytes);
    if (!d->beside)
        list.n = 0;
    size_t n = aside_each(&list);
    while (n < list.n && !d->open && join_beside(d->c, &d->beside[n]))
        n++;
    while (n < d->sets.len && !d->open)
        derived_here(d, (unsigned)n++);
    if (d->beside)
        aside_unshare(d->beside, bytes);
    return n - d->open;
}

#define MEETING_WITHOUT_FAULT                                              \
    "two tasks may come to one place of global memory, though not at the " \
    "sizes run: give sizes"

static const char *check_derived(Check *c, Arena *arena)
{
    Derived d = { .c = c };
    SizeSets *sets = &d.sets;
    StrBuf which = { 0 };
    Prover *prover = c->ask->prover ? c->ask->prover : prover_layer1(arena);
    sizes_derive(arena, c->p->m, c->p->proc, prover, sets);
    c->most_events = MOST_DERIVED;
    c->most_work = MOST_DERIVED_WORK;
    size_t n = check_sets(&d);
    for (size_t i = 0; i < n; i++) {
        strbuf_add(&which, i ? "; " : "");
        if (sets->data[i].n)
            sizes_print(&which, c->p->m, &sets->data[i]);
        else
            strbuf_add(&which, "all sizes");
        if (sets->data[i].meets)
            sets->beyond = MEETING_WITHOUT_FAULT;
    }
    if (n && n >= sets->needed && n < sets->len && !c->refuted &&
        (c->n_events >= c->most_events || c->work >= c->most_work))
        c->unknown = NULL;
    if (!c->unknown)
        c->unknown = sets->beyond;
    if (!sets->len)
        c->unknown = "no sizes were found that satisfy the asserts: give them";
    const char *text = c->unknown || c->refuted
                           ? NULL
                           : derived_scope(c, sets, n, strbuf_text(&which));
    strbuf_free(&which);
    return text;
}

CheckResult sync_check(Ctx *ctx, Module *m, Op *proc, const SyncAsk *ask,
                       SyncCost *cost)
{
    Arena *arena = arena_new();
    Check c = { .ctx = ctx, .ask = ask };
    CheckResult r = { .check = "sync-check",
                      .proc = op_attr_str(proc, "name", "_"),
                      .verdict = VERDICT_proved,
                      .scope = "all sizes",
                      .version = SYNC_CHECK_VERSION };
    c.p = sync_program_build(ctx, m, proc, arena);
    if (!c.p)
        c.unknown = "check-par found faults";
    else if (c.p->unknown)
        c.unknown = c.p->unknown;
    else if (c.p->n_devices)
        r.scope =
            ask->n_sizes ? check_given(&c, arena) : check_derived(&c, arena);
    if (c.refuted)
        r.verdict = VERDICT_refuted;
    else if (c.unknown)
        r.verdict = VERDICT_unknown;
    r.reason = c.unknown ? ctx_intern(ctx, c.unknown) : NULL;
    r.witness = c.witness;
    if (cost) {
        cost->statements += c.n_events;
        cost->syncs += c.n_syncs;
    }
    strbuf_free(&c.loops);
    arena_free(arena);
    return r;
}
