/* exo-check: what is known of the procedures of a file, a line a check.
 *
 * The checks of the level run on every public procedure, or on the one named;
 * those that this build does not have say `not run`. The report goes to
 * standard output or to -o, faults go to standard error. The exit status is
 * the worst of the verdicts. */
#include "passes/pass.h"
#include "tools/check_report.h"
#include "tools/checks.h"
#include "tools/diag_print.h"
#include "tools/input.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/prover.h"

#include <string.h>

typedef struct Check {
    const Options *options;
    Ctx *ctx;
    Module *m;
    DiagFormat format;
    const Diag *printed; /* the last diagnostic that was shown */
} Check;

/* ---- what is asked ------------------------------------------------------ */

static bool see_level(Op *op, void *user)
{
    const char **level = user;
    switch (op->code) {
    case OP_async_kernel:
    case OP_host_proc:
        *level = "async";
        return false;
    case OP_par_device:
    case OP_par_instr:
        if (!strcmp(*level, "seq"))
            *level = "par";
        return false;
    default:
        return true;
    }
}

/* --level, or the highest level of which the module has an op. */
static const char *level_of(const Check *c)
{
    const char *level = "seq";
    block_walk(c->m->body, see_level, &level);
    return options_value(c->options, "--level", level);
}

/* The module keeps the one procedure that --proc names public. */
static ToolStatus select_proc(Check *c)
{
    const char *name = options_value(c->options, "--proc", NULL);
    if (!name)
        return TOOL_done;
    Op *found = module_symbol(c->m, name);
    if (!found || found->code != OP_ctl_proc)
        return options_usage(c->options, "no procedure is named '%s'", name);
    return TOOL_done;
}

/* ---- running ------------------------------------------------------------ */

static ToolStatus run_pipeline(Check *c, const char *level, PassManager *pm,
                               Arena *arena)
{
    Pipeline p = { 0 };
    const char *text = check_pipeline(ctx_arena(c->ctx), c->options, level);
    if (!text || !pipeline_parse(c->ctx, text, &p))
        return TOOL_usage;
    *pm = (PassManager){ .ctx = c->ctx };
    ToolProver *prover = tool_prover_open(arena);
    pm->prover = tool_prover(prover);
    pm->checks = tool_checks_of(
        arena, options_value(c->options, "--proc", NULL), &pm->n_checks);
    bool ok = pipeline_run(pm, &p, &c->m);
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

static ToolStatus check_module(Check *c)
{
    ToolStatus status = select_proc(c);
    if (status != TOOL_done)
        return status;
    status = check_sizes(c->ctx, c->m, c->options);
    if (status == TOOL_done)
        status = check_side_inputs(c->ctx, c->options);
    if (status != TOOL_done)
        return status;
    Arena *arena = arena_new();
    PassManager pm;
    status = run_pipeline(c, level_of(c), &pm, arena);
    if (status != TOOL_usage)
        status = tool_status_worse(status, report(c, &pm));
    arena_free(arena);
    return status;
}

static ToolStatus check_file(Check *c)
{
    const char *path = options_file(c->options);
    if (!path)
        return TOOL_usage;
    c->m = input_read(c->ctx, c->options, path);
    ToolStatus status = c->m ? check_module(c) : TOOL_wrong;
    diag_print_new(c->ctx, &c->printed, c->format);
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
    c.ctx = ctx_new();
    ctx_set_max_errors(c.ctx, (unsigned)options_int(o, "--max-errors", 20));
    ToolStatus status = options_has(o, "--certificate")
                            ? check_certificate(c.ctx, o)
                            : check_file(&c);
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
    status = run(&o);
    options_free(&o);
    return status;
}
