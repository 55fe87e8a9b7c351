/* exo-run: runs a procedure on made inputs, by its sequential meaning, on the
 * machine model, or on a GPU, and compares. */
#include "tools/run.h"

#include "tools/diag_print.h"
#include "tools/input.h"
#include "tools/memory.h"
#include "tools/output.h"
#include "tools/run_trace.h"

#include <stdio.h>
#include <string.h>

static bool is_host(const Op *op)
{
    return op->code == OP_host_proc && *op_attr_str(op, "name", "_") != '_';
}

/* The procedure that --proc names, or the only public one. */
static ToolStatus find_proc(Run *r)
{
    const char *name = options_value(r->o, "--proc", NULL);
    unsigned n = 0;
    if (name) {
        r->proc = module_symbol(r->m, name);
        if (r->proc &&
            (r->proc->code == OP_ctl_proc || r->proc->code == OP_host_proc))
            return TOOL_done;
        diag_error(r->ctx, (Loc){ 0 }, "name", "no procedure '%s' in '%s'",
                   name, r->o->files.data[0]);
        return TOOL_wrong;
    }
    for (Op *op = r->m->body->first; op; op = op->next)
        if (proc_is_public(op) || is_host(op)) {
            r->proc = op;
            n++;
        }
    if (n == 1)
        return TOOL_done;
    diag_error(r->ctx, (Loc){ 0 }, "name",
               "'%s' has %u public procedures, but one is run: name it with "
               "--proc",
               r->o->files.data[0], n);
    return TOOL_wrong;
}

static ToolStatus check_options(const Run *r, const char *level)
{
    bool gpu = !strcmp(level, "gpu"), async = !strcmp(level, "async");
    if (options_has(r->o, "--bench") && !gpu)
        return options_usage(r->o, "--bench needs --level=gpu");
    if (options_has(r->o, "--ptx") != gpu)
        return options_usage(r->o, gpu ? "--level=gpu needs --ptx=FILE"
                                       : "--ptx needs --level=gpu");
    if (!async &&
        (options_has(r->o, "--trace") || options_has(r->o, "--seeds")))
        return options_usage(r->o, "--trace and --seeds need --level=async");
    if (options_int(r->o, "--seeds", 1) < 1)
        return options_usage(r->o, "--seeds must be at least 1");
    if (options_int(r->o, "--clusters", 1) < 1 ||
        options_int(r->o, "--clusters", 1) > 65536)
        return options_usage(r->o, "--clusters must be from 1 to 65536");
    if (options_has(r->o, "--trace") && !run_trace_available()) {
        fprintf(stderr, "exo-run: this build cannot write traces: it has no "
                        "jansson\n");
        return TOOL_missing;
    }
    return TOOL_done;
}

static ToolStatus run_file(Run *r, const char *path)
{
    const char *level = options_value(r->o, "--level", "seq");
    ToolStatus s = check_options(r, level);
    if (s)
        return s;
    r->m = input_read(r->ctx, r->o, path);
    if (!r->m)
        return TOOL_wrong;
    s = find_proc(r);
    if (!s && !strcmp(level, "gpu"))
        s = run_gpu_probe(r);
    s = s ? s : run_make_args(r);
    if (s)
        return s;
    if (!strcmp(level, "seq"))
        return run_seq(r);
    return strcmp(level, "gpu") ? run_async(r) : run_gpu(r);
}

int main(int argc, char **argv)
{
    Options o;
    int status = options_parse("run", argc, argv, &o);
    if (status >= 0)
        return status;
    memory_keep();
    const char *path = options_file(&o);
    Run r = { .ctx = ctx_new(), .o = &o };
    DiagFormat format =
        strcmp(options_value(&o, "--diagnostics", "text"), "json") ? DIAG_text
                                                                   : DIAG_json;
    if (!path) {
        status = TOOL_usage;
    } else if (!diag_format_available(format)) {
        fprintf(stderr, "exo-run: this build cannot print JSON: it has no "
                        "jansson\n");
        status = TOOL_missing;
    } else {
        ctx_set_max_errors(r.ctx,
                           (unsigned)options_int(&o, "--max-errors", 20));
        status = (int)run_file(&r, path);
        if (!output_flush(r.ctx))
            status = (int)tool_status_worse((ToolStatus)status, TOOL_wrong);
        const Diag *last = NULL;
        diag_print_new(r.ctx, &last, format);
        diag_print_rest(r.ctx, format);
    }
    for (unsigned i = 0; i < r.n; i++)
        tensor_free(r.args[i].tensor);
    if (r.lowered != r.m)
        module_free(r.lowered);
    module_free(r.m);
    ctx_free(r.ctx);
    options_free(&o);
    return status;
}
