/* Adapters from the checks of verify/, which look at one procedure, to passes,
 * which look at a module: every public procedure is checked. */
#include "tools/checks.h"

#include "tools/input.h"
#include "verify/check.h"
#include "verify/check_par.h"

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

static void report(PassCtx *pc, const CheckResult *r)
{
    PassFinding f = { r->check, r->proc, to_pass_verdict(r->verdict), NULL };
    f.text = r->verdict == VERDICT_proved    ? r->scope
             : r->verdict == VERDICT_refuted ? r->witness
                                             : r->reason;
    pass_finding(pc, f);
}

static void run_check_par(PassCtx *pc, Module *m, void *user)
{
    (void)user;
    for (Op *op = m->body->first; op; op = op->next)
        if (proc_is_public(op)) {
            CheckResult r = check_par(pc->ctx, m, op);
            report(pc, &r);
        }
}

static const PassCheck checks[] = {
    { "check-par", run_check_par, NULL },
};

const PassCheck *tool_checks(unsigned *n)
{
    *n = sizeof checks / sizeof *checks;
    return checks;
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

ToolStatus tool_findings_report(Ctx *ctx, const PassManager *pm)
{
    ToolStatus status = TOOL_done;
    for (size_t i = 0; i < pm->findings.len; i++) {
        const PassFinding *f = &pm->findings.data[i];
        StrBuf s = { 0 };
        tool_finding_print(&s, f);
        diag_remark(ctx, (Loc){ 0 }, f->check, "%s", s.data);
        strbuf_free(&s);
        if (f->verdict == PASS_refuted)
            status = tool_status_worse(status, TOOL_wrong);
        else if (f->verdict == PASS_unknown)
            status = tool_status_worse(status, TOOL_undecided);
    }
    return status;
}
