/* Runs at the levels seq and async, and the comparison of two runs. */
#include "tools/run.h"

#include "passes/pass.h"
#include "passes/prove.h"
#include "tools/checks.h"
#include "tools/run_trace.h"
#include "verify/machine/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Work, in units of a plainly interpreted op, above which a comparison runs
 * only some tasks: about ten seconds. */
#define REFERENCE_BUDGET 1e8
/* Work that is not begun. */
#define WORK_LIMIT 1e13

/* ---- lowering ------------------------------------------------------------ */

ToolStatus run_lower(Run *r)
{
    if (r->proc->code == OP_host_proc) {
        r->lowered = r->m;
        r->host = r->proc;
        return TOOL_done;
    }
    const char *name = op_attr_str(r->proc, "name", "");
    PassManager pm = { .ctx = r->ctx, .verify_each = true };
    pm.checks = tool_checks(&pm.n_checks);
    Pipeline p = { 0 };
    r->lowered = module_clone(r->m);
    if (!pipeline_parse(r->ctx, "lower-par-to-async{keep=true}", &p) ||
        !pipeline_run(&pm, &p, &r->lowered))
        return TOOL_wrong;
    r->host = module_symbol(r->lowered, name);
    if (r->host && r->host->code == OP_host_proc)
        return TOOL_done;
    diag_error(r->ctx, r->proc->loc, "level",
               "procedure '%s' has no device function, so there is no async "
               "form of it to run; use --level=seq",
               name);
    return TOOL_wrong;
}

/* Refuses what would not end within days. */
static ToolStatus check_work(const Run *r, double work)
{
    if (work < WORK_LIMIT)
        return TOOL_done;
    diag_error(r->ctx, r->proc->loc, "size",
               "a sequential run would take about %.0e steps at these sizes; "
               "take smaller ones",
               work);
    return TOOL_wrong;
}

/* ---- the reference ------------------------------------------------------- */

/* tasks, unless NULL, receives how many device tasks there are, 0 where those
 * of a later task loop may need what an earlier one wrote. */
static ToolStatus run_interp(Run *r, ProcArg *args, const InterpOptions *o,
                             int64_t *tasks)
{
    Interp *in = interp_new(r->m);
    bool ok = interp_run(in, r->proc, args, r->n, o);
    if (tasks)
        *tasks = interp_task_nests(in) == 1 ? interp_task_count(in) : 0;
    interp_free(in);
    return ok ? TOOL_done : TOOL_wrong;
}

/* Picks `want` of n tasks, spread by a seeded hash. */
static bool *pick_tasks(const Run *r, int64_t n, int64_t want)
{
    bool *sample = ARENA_ARRAY(r->o->arena, bool, n);
    for (int64_t i = 0, left = want; i < n && left; i++) {
        uint64_t h = hash_u64(hash_u64(HASH_SEED, r->seed), (uint64_t)i);
        if ((int64_t)(h >> 33) % (n - i) < left) {
            sample[i] = true;
            left--;
        }
    }
    return sample;
}

ToolStatus run_reference(Run *r, Reference *out)
{
    *out = (Reference){ .name = "seq" };
    if (r->proc->code != OP_ctl_proc) {
        diag_error(r->ctx, r->proc->loc, "level",
                   "--check compares with the sequential meaning, which an "
                   "async file no longer holds: give the file that it was "
                   "lowered from");
        return TOOL_wrong;
    }
    out->args = run_copy_args(r);
    double work = interp_estimate(r->m, r->proc, out->args);
    ToolStatus refused = check_work(r, work);
    if (refused)
        return refused;
    InterpOptions o = { 0 };
    if (work > REFERENCE_BUDGET) {
        bool none = false;
        int64_t tasks = 0;
        o.sample = &none;
        ToolStatus s = run_interp(r, out->args, &o, &tasks);
        if (s)
            return s;
        double want = floor(REFERENCE_BUDGET / (work / (double)(tasks + 1)));
        if (tasks > 1 && want < (double)tasks) {
            out->tasks = tasks;
            out->run = want < 1.0 ? 1 : (int64_t)want;
            o.sample = pick_tasks(r, tasks, out->run);
            o.n_sample = tasks;
        } else {
            o.sample = NULL;
        }
        run_free_args(r, out->args);
        out->args = run_copy_args(r);
    }
    return run_interp(r, out->args, &o, NULL);
}

/* ---- comparing ----------------------------------------------------------- */

typedef struct Difference {
    int64_t compared, differ, first;
    double rms;
} Difference;

static double root_mean_square(const Tensor *t)
{
    double sum = 0.0;
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++)
        if (t->written[i]) {
            double x = tensor_get(t, i);
            if (x - x == 0.0) {
                sum += x * x;
                n++;
            }
        }
    return n ? sqrt(sum / (double)n) : 0.0;
}

static bool same_bits(const Tensor *a, const Tensor *b, int64_t i)
{
    return !memcmp(a->bytes + i * a->elem_bytes, b->bytes + i * b->elem_bytes,
                   a->elem_bytes);
}

/* Within two units in the last place of the type, or 2^-12 of the outputs'
 * root mean square, which covers another order of a sum; of bf16 and smaller
 * types a quarter of such a unit, since what was summed up may have been
 * rounded to that type as well. */
static bool is_close(const Tensor *want, const Tensor *got, int64_t i,
                     double rms)
{
    double a = tensor_get(want, i), b = tensor_get(got, i);
    int man = scalar_info(want->elem)->man_bits;
    if (!(a == a) || !(b == b))
        return !(a == a) && !(b == b);
    int sum = man < 10 ? man + 2 : 12;
    return fabs(a - b) <= ldexp(fabs(a), 1 - man) + ldexp(rms, -sum);
}

static Difference compare_tensor(const Run *r, const Reference *ref, unsigned i,
                                 const Tensor *got)
{
    const Tensor *want = ref->args[i].tensor, *start = r->args[i].tensor;
    Difference d = { .first = -1 };
    bool exact = r->exact || scalar_type_is_int(want->elem);
    if (!exact)
        d.rms = root_mean_square(want);
    for (int64_t e = 0; e < want->count; e++) {
        bool changed =
            !same_bits(want, start, e) || want->written[e] != start->written[e];
        if (ref->tasks && !changed)
            continue;
        d.compared++;
        if (same_bits(want, got, e))
            continue;
        bool ok = !exact && want->written[e] && is_close(want, got, e, d.rms);
        if (!ok && !d.differ++)
            d.first = e;
    }
    return d;
}

static void report_difference(const Run *r, const Reference *ref, unsigned i,
                              const Tensor *got, const Difference *d,
                              const char *where)
{
    const Tensor *want = ref->args[i].tensor;
    StrBuf name = { 0 };
    tensor_print_element(&name, want, d->first);
    bool poison =
        scalar_is_poison(got->elem, got->bytes + d->first * got->elem_bytes);
    if (!want->written[d->first])
        diag_error(r->ctx, r->proc->loc, "mismatch",
                   "%s: %s was written, but %s leaves it alone; %lld of %lld "
                   "elements differ",
                   where, strbuf_text(&name), ref->name, (long long)d->differ,
                   (long long)d->compared);
    else if (poison)
        diag_error(r->ctx, r->proc->loc, "mismatch",
                   "%s: %s was not written, but %s gives %g; %lld of %lld "
                   "elements differ",
                   where, strbuf_text(&name), ref->name,
                   tensor_get(want, d->first), (long long)d->differ,
                   (long long)d->compared);
    else
        diag_error(r->ctx, r->proc->loc, "mismatch",
                   "%s: %s is %.9g, but %s gives %.9g; %lld of %lld elements "
                   "differ",
                   where, strbuf_text(&name), tensor_get(got, d->first),
                   ref->name, tensor_get(want, d->first), (long long)d->differ,
                   (long long)d->compared);
    strbuf_free(&name);
}

ToolStatus run_compare(const Run *r, const Reference *ref, const ProcArg *got,
                       const char *where)
{
    ToolStatus status = TOOL_done;
    int64_t compared = 0;
    for (unsigned i = 0; i < r->n; i++) {
        if (!r->args[i].tensor || r->args[i].use == RUN_input)
            continue;
        Difference d = compare_tensor(r, ref, i, got[i].tensor);
        compared += d.compared;
        if (d.differ) {
            report_difference(r, ref, i, got[i].tensor, &d, where);
            status = TOOL_wrong;
        }
    }
    if (status)
        return status;
    printf("%s: agrees with %s on %lld elements", where, ref->name,
           (long long)compared);
    if (ref->tasks)
        printf(" of %lld sampled tasks of %lld", (long long)ref->run,
               (long long)ref->tasks);
    printf("\n");
    return TOOL_done;
}

/* ---- the levels ---------------------------------------------------------- */

static ToolStatus finish(const Run *r, const ProcArg *args)
{
    run_print_outputs(r, args);
    return run_write_outputs(r, args);
}

ToolStatus run_seq(Run *r)
{
    if (r->proc->code != OP_ctl_proc) {
        diag_error(r->ctx, r->proc->loc, "level",
                   "an async file has no sequential form: use --level=async");
        return TOOL_wrong;
    }
    ProcArg *args = run_copy_args(r);
    InterpOptions o = { 0 };
    ToolStatus s = check_work(r, interp_estimate(r->m, r->proc, args));
    s = s ? s : run_interp(r, args, &o, NULL);
    if (!s && options_has(r->o, "--check")) {
        Reference plain = { .name = "plain loops", .args = run_copy_args(r) };
        o.plain = true;
        s = run_interp(r, plain.args, &o, NULL);
        s = s ? s : run_compare(r, &plain, args, "native loops");
        run_free_args(r, plain.args);
    }
    s = s ? s : finish(r, args);
    run_free_args(r, args);
    return s;
}

/* Runs one schedule and compares it with ref, or, when ref is still empty,
 * leaves its results there for the next ones. */
static ToolStatus run_schedule(Run *r, Reference *ref, uint64_t seed, bool last)
{
    MachineOptions o = { .clusters = options_int(r->o, "--clusters", 1),
                         .canonical = seed == 0,
                         .seed = seed };
    RunTrace *trace = NULL;
    MachineObserver *observers[1];
    const char *path = options_value(r->o, "--trace", NULL);
    if (path && last) {
        trace = run_trace_new(r->lowered);
        observers[0] = run_trace_observer(trace);
        o.observers = observers;
        o.n_observers = 1;
    }
    ProcArg *args = run_copy_args(r);
    bool ok = machine_run(r->lowered, r->host, args, r->n, &o);
    ToolStatus s = ok ? TOOL_done : TOOL_wrong;
    if (trace) {
        bool written = run_trace_write(r->ctx, trace, path);
        s = written ? s : TOOL_wrong;
    }
    char where[64];
    snprintf(where, sizeof where, "async, seed %llu", (unsigned long long)seed);
    if (!s && ref->args)
        s = run_compare(r, ref, args, where);
    if (!s && last)
        s = finish(r, args);
    if (!s && !ref->args)
        *ref = (Reference){ .name = "the first schedule", .args = args };
    else
        run_free_args(r, args);
    return s;
}

ToolStatus run_async(Run *r)
{
    Reference ref = { 0 };
    int64_t seeds = options_int(r->o, "--seeds", 1);
    ToolStatus s = run_lower(r);
    if (!s && options_has(r->o, "--check"))
        s = run_reference(r, &ref);
    for (int64_t i = 0; i < seeds && !s; i++)
        s = run_schedule(r, &ref, r->seed + (uint64_t)i, i == seeds - 1);
    run_free_args(r, ref.args);
    return s;
}
