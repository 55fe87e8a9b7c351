/* Adapters from the checks of verify/, which look at one procedure, to passes,
 * which look at a module: every public procedure is checked, or the one that
 * the CheckInputs behind `user` name. Each in a module of its own, so that what
 * a check makes of it goes when it is over, and does not grow with the file. */
#include "tools/checks.h"

#include "tools/checks_async.h"
#include "tools/input.h"
#include "verify/check.h"
#include "verify/check_par.h"
#include "verify/check_seq.h"
#include "verify/sync_check.h"

#include <string.h>

static PassVerdict to_pass_verdict(Verdict v)
{
    switch (v) {
    case VERDICT_proved:
        return PASS_proved;
    case VERDICT_refuted:
        return PASS_refuted;
    case VERDICT_unknown:
        return PASS_unknown;
    default:
        return PASS_not_run;
    }
}

PassFinding to_pass_finding(const CheckResult *r)
{
    PassFinding f = { r->check, r->proc, to_pass_verdict(r->verdict), NULL };
    f.text = r->verdict == VERDICT_proved    ? r->scope
             : r->verdict == VERDICT_refuted ? r->witness
                                             : r->reason;
    return f;
}

static void report(PassCtx *pc, const CheckResult *r)
{
    pass_finding(pc, to_pass_finding(r));
}

static bool is_asked(const Op *op, const CheckInputs *in)
{
    if (!in || !in->proc)
        return proc_is_public(op);
    return op->code == OP_ctl_proc &&
           !strcmp(op_attr_str(op, "name", ""), in->proc);
}

/* A check of proc, with what it is told. */
typedef CheckResult CheckFn(PassCtx *pc, Module *m, Op *proc, const void *told);

static void check_each(PassCtx *pc, const Module *m, const CheckInputs *in,
                       CheckFn *check, const void *told)
{
    for (const Op *op = m->body->first; op; op = op->next)
        if (is_asked(op, in)) {
            Op *proc = NULL;
            Module *part = module_part(m, op, &proc);
            CheckResult r = check(pc, part, proc, told);
            report(pc, &r);
            module_free(part);
        }
}

static CheckResult check_seq_of(PassCtx *pc, Module *m, Op *proc,
                                const void *told)
{
    (void)told;
    struct Prover *prover =
        pc->prover ? pc->prover : prover_layer1(pc->scratch);
    return check_seq(pc->ctx, m, proc, prover);
}

static void run_check_seq(PassCtx *pc, Module *m, void *user)
{
    check_each(pc, m, user, check_seq_of, NULL);
}

static CheckResult check_par_of(PassCtx *pc, Module *m, Op *proc,
                                const void *told)
{
    (void)told;
    return check_par(pc->ctx, m, proc);
}

static void run_check_par(PassCtx *pc, Module *m, void *user)
{
    check_each(pc, m, user, check_par_of, NULL);
}

/* Has check-par refuted this procedure as it stands? */
static bool is_refuted(const PassCtx *pc, const char *proc)
{
    const PassManager *pm = pc->manager;
    if (!pm || !pass_has_refuted(pm, "check-par"))
        return false;
    for (size_t i = pm->findings.len; i-- > 0;) {
        const PassFinding *f = &pm->findings.data[i];
        if (f->proc && !strcmp(f->check, "check-par") && !strcmp(f->proc, proc))
            return f->verdict == PASS_refuted;
    }
    return false;
}

static CheckResult sync_check_of(PassCtx *pc, Module *m, Op *proc,
                                 const void *told)
{
    const SyncAsk *ask = told;
    const char *name = op_attr_str(proc, "name", "_");
    if (is_refuted(pc, name))
        return (CheckResult){ .check = "sync-check",
                              .proc = name,
                              .verdict = VERDICT_not_run,
                              .reason = "check-par refuted the procedure" };
    SyncCost cost = { 0 };
    CheckResult r = sync_check(pc->ctx, m, proc, ask, &cost);
    pass_count(pc, "statements", (int64_t)cost.statements);
    pass_count(pc, "synchronisation statements", (int64_t)cost.syncs);
    return r;
}

/* The options of the pass: its own, then sizes. */
static SyncAsk sync_ask(const PassCtx *pc)
{
    SyncAsk ask = { .prover = pc->prover };
    unsigned n = pc->run ? pc->run->n_options : 0;
    SyncSize *sizes = ARENA_ARRAY(pc->scratch, SyncSize, n);
    for (unsigned i = 0; i < n; i++) {
        const PassOption *o = &pc->run->options[i];
        if (!strcmp(o->key, "every-step"))
            ask.every_step = o->value.i;
        else if (!strcmp(o->key, "max-mib"))
            ask.most_mib = (uint64_t)o->value.i;
        else
            sizes[ask.n_sizes++] = (SyncSize){ o->key, o->value.i };
    }
    ask.sizes = sizes;
    return ask;
}

bool proc_has_parameter(const Module *m, const Op *proc, const char *name)
{
    const Block *b = proc->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value &&
            !strcmp(var_get(m->exprs, b->args[i].var)->name, name))
            return true;
    return false;
}

/* Every size is one of some procedure that is asked for. */
static bool sizes_are_known(PassCtx *pc, const Module *m, void *user,
                            const SyncAsk *ask)
{
    for (unsigned i = 0; i < ask->n_sizes; i++) {
        bool known = false;
        for (Op *op = m->body->first; op; op = op->next)
            known = known || (is_asked(op, user) &&
                              proc_has_parameter(m, op, ask->sizes[i].name));
        if (known)
            continue;
        diag_error(pc->ctx, (Loc){ 0 }, "pipeline",
                   "sync-check: no procedure that is checked has a parameter "
                   "'%s'",
                   ask->sizes[i].name);
        return false;
    }
    return true;
}

/* At the pass's own sizes; derived ones where it has none. A procedure that
 * check-par has refuted is not looked at: the same fault would be reported
 * twice, and what follows from it. */
static void run_sync_check(PassCtx *pc, Module *m, void *user)
{
    SyncAsk ask = sync_ask(pc);
    if (sizes_are_known(pc, m, user, &ask))
        check_each(pc, m, user, sync_check_of, &ask);
}

static const PassCheck checks[] = {
    { "check-seq", run_check_seq, NULL },
    { "check-par", run_check_par, NULL },
    { "sync-check", run_sync_check, NULL },
    { "check-async", run_check_async, NULL },
};
enum { CHECK_COUNT = sizeof checks / sizeof *checks };

const PassCheck *tool_checks(unsigned *n)
{
    *n = CHECK_COUNT;
    return checks;
}

const PassCheck *tool_checks_of(Arena *arena, const CheckInputs *in,
                                unsigned *n)
{
    PassCheck *own = arena_memdup(arena, checks, sizeof checks);
    for (unsigned i = 0; i < CHECK_COUNT; i++)
        own[i].user = (void *)in;
    *n = CHECK_COUNT;
    return own;
}

void tool_finding_print(StrBuf *out, const PassFinding *f)
{
    strbuf_add(out, f->check);
    if (f->proc)
        strbuf_addf(out, " @%s", f->proc);
    strbuf_addf(out, ": %s", pass_verdict_name(f->verdict));
    if (f->verdict == PASS_proved)
        strbuf_addf(out, " [%s]", f->text ? f->text : "all sizes");
    else if (f->text)
        strbuf_addf(out, ": %s", f->text);
}

ToolStatus tool_finding_report(Ctx *ctx, const PassFinding *f)
{
    StrBuf s = { 0 };
    tool_finding_print(&s, f);
    diag_remark(ctx, (Loc){ 0 }, f->check, "%s", s.data);
    strbuf_free(&s);
    return f->verdict == PASS_refuted   ? TOOL_wrong
           : f->verdict == PASS_unknown ? TOOL_undecided
                                        : TOOL_done;
}

ToolStatus tool_findings_report(Ctx *ctx, const PassManager *pm)
{
    ToolStatus status = TOOL_done;
    for (size_t i = 0; i < pm->findings.len; i++)
        status = tool_status_worse(
            status, tool_finding_report(ctx, &pm->findings.data[i]));
    return status;
}
