/* Brings check-async together: finds or makes the lowered form of each
 * procedure that is asked for, and reports a finding a part. */
#include "tools/checks_async.h"

#include "passes/lower/lower.h"
#include "tools/input.h"
#include "verify/async/readback.h"
#include "verify/async/sass.h"
#include "verify/check_async.h"
#include "verify/interp.h"

#include <string.h>

static const char READ_BACK[] = "check-async/read-back";
static const char SASS[] = "check-async/sass";

typedef struct Asked {
    PassCtx *pc;
    const CheckInputs *in;
    Module *lowered;
} Asked;

static void report(Asked *a, const CheckResult *r)
{
    pass_finding(a->pc, to_pass_finding(r));
}

/* ---- sizes --------------------------------------------------------------- */

typedef struct Given {
    Asked *a;
    SizeSet *set;
    int64_t *values;
    unsigned n;
} Given;

static bool take_size(const char *name, size_t n, int64_t value, void *user)
{
    Given *g = user;
    for (unsigned i = 0; i < g->set->n; i++) {
        const char *own = var_get(g->a->lowered->exprs, g->set->vars[i])->name;
        if (own && strlen(own) == n && !strncmp(own, name, n)) {
            g->values[i] = value;
            g->n++;
        }
    }
    return true;
}

/* The sizes that were given, when they are all that host needs. */
static bool given_sizes(Asked *a, const Op *host, SizeSet *out)
{
    const Block *b = host->blocks[0];
    Arena *arena = a->pc->scratch;
    VarId *vars = ARENA_ARRAY(arena, VarId, b->n_args + 1);
    int64_t *values = ARENA_ARRAY(arena, int64_t, b->n_args + 1);
    *out = (SizeSet){ .vars = vars, .values = values };
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value)
            vars[out->n++] = b->args[i].var;
    Given g = { a, out, values, 0 };
    return a->in && a->in->sizes &&
           options_sizes(a->in->sizes, take_size, &g) && g.n == out->n;
}

/* Would a run at the sizes that were given be too much? */
static bool is_too_much(const Asked *a, const SizeSet *set, AsyncSource source)
{
    const Block *b = source.proc->blocks[0];
    ProcArg *args = ARENA_ARRAY(a->pc->scratch, ProcArg, b->n_args + 1);
    for (unsigned i = 0; i < b->n_args; i++)
        for (unsigned k = 0; k < set->n && !b->args[i].value; k++)
            if (!strcmp(var_get(source.m->exprs, b->args[i].var)->name,
                        var_get(a->lowered->exprs, set->vars[k])->name))
                args[i].value = set->values[k];
    return interp_estimate(source.m, source.proc, args) > CHECK_ASYNC_MOST_WORK;
}

/* ---- parts --------------------------------------------------------------- */

static void check_host(Asked *a, const Op *host, AsyncSource source)
{
    CheckResult r[ASYNC_PARTS];
    SizeSet sizes;
    bool given = given_sizes(a, host, &sizes);
    if (given && source.proc && is_too_much(a, &sizes, source)) {
        given = false;
        diag_remark(a->pc->ctx, (Loc){ 0 }, "check-async",
                    "check-async @%s: a run at these sizes is too much work: "
                    "it runs at sizes of its own",
                    op_attr_str(host, "name", "_"));
    }
    check_async(a->pc->ctx, a->lowered, host, given ? &sizes : NULL, source,
                a->pc->prover, r);
    for (int i = 0; i < ASYNC_PARTS; i++)
        report(a, &r[i]);
}

static CheckResult ptx_not_run(const char *check, const Op *host,
                               const char *reason)
{
    return (CheckResult){ .check = check,
                          .proc = op_attr_str(host, "name", "_"),
                          .verdict = VERDICT_not_run,
                          .reason = reason };
}

/* What the assembler makes of PTX that is right. */
static CheckResult check_assembled(Asked *a, const Op *host, const char *ptx,
                                   size_t n)
{
    StrBuf sass = { 0 };
    const char *why = "this tool does not assemble";
    bool refused = false;
    CheckResult r;
    if (a->in->sass && a->in->sass(a->pc->ctx, ptx, n, &sass, &why, &refused))
        r = check_sass(a->pc->ctx, a->lowered, host,
                       sass_text(a->pc->scratch, strbuf_text(&sass)));
    else
        r = ptx_not_run(SASS, host, why);
    if (refused)
        r.verdict = VERDICT_refuted;
    strbuf_free(&sass);
    return r;
}

static void check_ptx(Asked *a, const Op *host)
{
    static const char none[] = "no PTX is given";
    CheckResult back = ptx_not_run(READ_BACK, host, none);
    CheckResult sass = ptx_not_run(SASS, host, none);
    size_t n;
    if (a->in && a->in->ptx_follows)
        return;
    if (a->in && a->in->ptx) {
        const char *text = ctx_source_text(a->pc->ctx, a->in->ptx, &n);
        back = check_readback(a->pc->ctx, a->lowered, host, a->in->ptx, text);
        sass.reason = "reading the PTX back does not prove it";
        if (back.verdict == VERDICT_proved)
            sass = check_assembled(a, host, text, n);
    }
    report(a, &back);
    report(a, &sass);
}

/* Both are checked in modules of their own (checks.c). */
static void check_lowered(Asked *a, const Op *host, AsyncSource source)
{
    Op *own = NULL, *proc = NULL;
    Asked part = { a->pc, a->in, module_part(a->lowered, host, &own) };
    AsyncSource of = { 0 };
    if (source.proc) {
        of.m = module_part(source.m, source.proc, &proc);
        of.proc = proc;
    }
    check_host(&part, own, of);
    check_ptx(&part, own);
    module_free(of.m);
    module_free(part.lowered);
}

static void not_run(Asked *a, const char *proc, const char *reason)
{
    CheckResult r = { .check = "check-async",
                      .proc = proc,
                      .verdict = VERDICT_not_run,
                      .reason = reason };
    report(a, &r);
}

/* A lowered text is to carry out each procedure that is asked about. */
static void refute_absent(Asked *a, const Op *proc)
{
    const char *name = op_attr_str(proc, "name", "_");
    diag_error(a->pc->ctx, proc->loc, "X-COVER",
               "X-COVER: the lowered text has no host.proc @%s; --proc=NAME "
               "asks about one procedure alone",
               name);
    CheckResult r = { .check = "check-async",
                      .proc = name,
                      .verdict = VERDICT_refuted };
    report(a, &r);
}

/* ---- which procedures ---------------------------------------------------- */

static bool find_device(Op *op, void *user)
{
    bool *found = user;
    *found |= op->code == OP_par_device;
    return !*found;
}

static bool has_device(const Op *proc)
{
    bool found = false;
    op_walk((Op *)proc, find_device, &found);
    return found;
}

static bool is_asked(const Asked *a, const Op *op)
{
    if (a->in && a->in->proc)
        return op->code == OP_ctl_proc &&
               !strcmp(op_attr_str(op, "name", ""), a->in->proc);
    return proc_is_public(op);
}

static bool was_refuted(const Asked *a, const char *proc)
{
    const PassManager *pm = a->pc->manager;
    for (size_t i = 0; pm && i < pm->findings.len; i++) {
        const PassFinding *f = &pm->findings.data[i];
        if (f->verdict == PASS_refuted && f->proc && !strcmp(f->proc, proc))
            return true;
    }
    return false;
}

static void check_source(Asked *a, Module *m, const Op *proc)
{
    const char *name = op_attr_str(proc, "name", "_");
    if (!has_device(proc)) {
        not_run(a, name, "the procedure has no device function");
        return;
    }
    if (was_refuted(a, name)) {
        not_run(a, name, "a check of the level above refuted it");
        return;
    }
    if (!a->lowered && a->in)
        a->lowered = a->in->lowered;
    if (!a->lowered) {
        a->lowered = module_clone(m);
        if (!lower_par_to_async(a->pc->ctx, a->lowered)) {
            not_run(a, name, "the lowering refuses it");
            return;
        }
    }
    const Op *host = module_symbol(a->lowered, name);
    if (!host || host->code != OP_host_proc) {
        refute_absent(a, proc);
        return;
    }
    check_lowered(a, host, (AsyncSource){ m, proc });
}

/* The procedure that host was, where the program is still there. */
static AsyncSource source_of(const Asked *a, const Op *host)
{
    Module *m = a->in ? a->in->source : NULL;
    const Op *proc = m ? module_symbol(m, op_attr_str(host, "name", "")) : NULL;
    if (!proc || proc->code != OP_ctl_proc)
        return (AsyncSource){ 0 };
    return (AsyncSource){ m, proc };
}

void run_check_async(PassCtx *pc, Module *m, void *user)
{
    Asked a = { pc, user, NULL };
    bool lowered = false;
    for (Op *op = m->body->first; op; op = op->next) {
        if (op->code != OP_host_proc ||
            (a.in && a.in->proc &&
             strcmp(op_attr_str(op, "name", ""), a.in->proc) != 0))
            continue;
        lowered = true;
        a.lowered = m;
        check_lowered(&a, op, source_of(&a, op));
    }
    for (Op *op = m->body->first; op && !lowered; op = op->next)
        if (is_asked(&a, op))
            check_source(&a, m, op);
    if (a.lowered && a.lowered != m && !(a.in && a.in->lowered))
        module_free(a.lowered);
}

void tool_readback(Ctx *ctx, const Module *m, const char *ptx,
                   ToolFindingFn *fn, void *user)
{
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_host_proc) {
            CheckResult r = check_readback(ctx, m, op, 0, ptx);
            fn(user, to_pass_finding(&r));
        }
}

void tool_sass(Ctx *ctx, const Module *m, const char *sass, ToolFindingFn *fn,
               void *user)
{
    Arena *arena = arena_new();
    const SassText *text = sass_text(arena, sass);
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_host_proc) {
            CheckResult r = check_sass(ctx, m, op, text);
            fn(user, to_pass_finding(&r));
        }
    arena_free(arena);
}

void tool_not_run(const Module *m, const char *check, const char *reason,
                  ToolFindingFn *fn, void *user)
{
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_host_proc) {
            CheckResult r = ptx_not_run(check, op, reason);
            fn(user, to_pass_finding(&r));
        }
}
