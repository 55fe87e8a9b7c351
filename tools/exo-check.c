/* exo-check: what is known of the procedures of a file, a line a check.
 *
 * The checks of the level run on every public procedure, or on the one named;
 * those that this build does not have say `not run`. The report goes to
 * standard output or to -o, faults go to standard error. The exit status is
 * the worst of the verdicts. */
#include "passes/pass.h"
#include "tools/certificate.h"
#include "tools/check_report.h"
#include "tools/checks.h"
#include "tools/diag_print.h"
#include "tools/input.h"
#include "tools/memory.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/prover.h"
#include "tools/sass.h"
#include "tools/show.h"
#include "tools/warn.h"

#include <stdio.h>
#include <string.h>

typedef struct Check {
    const Options *options;
    Ctx *ctx;
    Module *m;
    DiagFormat format;
    const Diag *printed; /* the last diagnostic that was shown */
    CheckInputs inputs;
} Check;

/* ---- what is asked ------------------------------------------------------ */

/* --level, or the module's own. */
static const char *level_of(const Check *c)
{
    return options_value(c->options, "--level", module_level(c->m));
}

/* An empty report says that it is empty. */
static void remark_nothing(Check *c)
{
    for (const Op *op = c->m->body->first; op; op = op->next)
        if (proc_is_public(op) || op->code == OP_async_kernel)
            return;
    diag_remark(c->ctx, (Loc){ 0 }, "file",
                "nothing to check: no procedure is public (top-level, not "
                "imported, name not starting with _)");
}

/* --proc names a procedure. */
static ToolStatus select_proc(Check *c)
{
    const char *name = options_value(c->options, "--proc", NULL);
    if (!name) {
        remark_nothing(c);
        return TOOL_done;
    }
    Op *found = module_symbol(c->m, name);
    if (!found || (found->code != OP_ctl_proc && found->code != OP_host_proc))
        return options_usage(c->options, "no procedure is named '%s'", name);
    return TOOL_done;
}

/* ---- running ------------------------------------------------------------ */

static void report_times(const PassManager *pm, const ToolProver *prover)
{
    StrBuf s = { 0 };
    for (size_t i = 0; i < pm->times.len; i++)
        strbuf_addf(&s, "timing: %s %.6f s\n", pm->times.data[i].pass,
                    pm->times.data[i].seconds);
    tool_prover_report(prover, &s);
    fputs(strbuf_text(&s), stderr);
    strbuf_free(&s);
}

static ToolStatus run_pipeline(Check *c, const char *level, PassManager *pm)
{
    Arena *arena = ctx_arena(c->ctx);
    Pipeline p = { 0 };
    const char *text = check_pipeline(arena, c->options, level);
    if (!text || !pipeline_parse(c->ctx, text, &p))
        return TOOL_usage;
    *pm = (PassManager){ .ctx = c->ctx };
    ToolProver *prover = tool_prover_open(arena, c->ctx, c->options);
    pm->prover = tool_prover(prover);
    pm->checks = tool_checks_of(arena, &c->inputs, &pm->n_checks);
    bool ok = pipeline_run(pm, &p, &c->m);
    if (options_has(c->options, "--timing"))
        report_times(pm, prover);
    tool_prover_close(prover);
    return ok ? TOOL_done : TOOL_wrong;
}

static ToolStatus report(Check *c, const PassManager *pm)
{
    StrBuf out = { 0 };
    ToolStatus status =
        check_report_print(c->ctx, c->options, pm, c->format, &out);
    diag_print_new(c->ctx, &c->printed, c->format);
    if (!output_write(c->ctx, options_value(c->options, "-o", NULL),
                      strbuf_text(&out), out.len))
        status = tool_status_worse(status, TOOL_wrong);
    strbuf_free(&out);
    return status;
}

/* --explain: sentences instead of verdicts. */
static ToolStatus explain(Check *c)
{
    StrBuf out = { 0 };
    int64_t line = options_int(c->options, "--explain", 0);
    bool ok = show_explained(c->ctx, c->m, line, &out);
    if (out.len)
        ok &= output_write(c->ctx, options_value(c->options, "-o", NULL),
                           strbuf_text(&out), out.len);
    strbuf_free(&out);
    return ok ? TOOL_done : TOOL_wrong;
}

static ToolStatus check_module(Check *c)
{
    if (options_has(c->options, "--explain"))
        return explain(c);
    ToolStatus status = select_proc(c);
    if (status != TOOL_done)
        return status;
    status = check_sizes(c->ctx, c->m, c->options);
    if (status == TOOL_done)
        status = check_side_inputs(c->ctx, c->options, &c->inputs);
    c->inputs.sass = sass_of_ptx;
    if (status != TOOL_done)
        return status;
    if (options_has(c->options, "--certificate"))
        return check_certificate(c->ctx, &c->m, c->options, &c->inputs);
    PassManager pm;
    tool_warn(c->ctx, c->m, c->options);
    status = run_pipeline(c, level_of(c), &pm);
    if (status != TOOL_usage)
        status = tool_status_worse(status, report(c, &pm));
    return tool_status_worse(status, tool_warnings_status(c->ctx, c->options));
}

static ToolStatus check_file(Check *c)
{
    const char *path = options_file(c->options);
    if (!path)
        return TOOL_usage;
    c->m = input_read(c->ctx, c->options, path);
    ToolStatus status = c->m ? check_module(c) : TOOL_wrong;
    diag_print_new(c->ctx, &c->printed, c->format);
    check_inputs_free(&c->inputs);
    module_free(c->m);
    return status;
}

static ToolStatus run(const Options *o)
{
    const char *format = options_value(o, "--diagnostics", "text");
    Check c = { .options = o };
    c.format = !strcmp(format, "json") ? DIAG_json : DIAG_text;
    if (!diag_format_available(c.format))
        return check_missing(o, "JSON output");
    if (options_has(o, "--certificate") && !certificate_available())
        return check_missing(o, "reading certificates");
    c.ctx = ctx_new();
    ctx_set_max_errors(c.ctx, (unsigned)options_int(o, "--max-errors", 20));
    ToolStatus status = check_file(&c);
    diag_print_new(c.ctx, &c.printed, c.format);
    ctx_free(c.ctx);
    return status;
}

int main(int argc, char **argv)
{
    Options o;
    int status = options_parse("check", argc, argv, &o);
    if (status >= 0)
        return status;
    memory_keep();
    status = run(&o);
    options_free(&o);
    return status;
}
