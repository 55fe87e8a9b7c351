/* exo-opt: read a program, run passes and checks on it, print it.
 *
 * The parts of a split input are files of their own; a part that fails does not
 * stop the others. Output goes out only when every part succeeded (or, with
 * --verify-diagnostics, failed as expected). */
#include "ir/eir.h"
#include "ir/exo.h"
#include "passes/pass.h"
#include "passes/schedule/schedule.h"
#include "tools/checks.h"
#include "tools/diag_print.h"
#include "tools/expected.h"
#include "tools/input.h"
#include "tools/interactive.h"
#include "tools/memory.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/prover.h"
#include "tools/show.h"
#include "tools/warn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_PARTS 1000
#define SPLIT_LINE "// -----"

typedef struct Opt {
    const Options *options;
    Ctx *ctx;
    Lib *lib;
    Pipeline pipeline;
    EirPrintOptions print;
    DiagFormat format;
    const Diag *printed; /* the last diagnostic that was shown */
    const char *path;
    bool is_exo, expect, dump_failed;
    StrBuf out;
    unsigned n_parts;
} Opt;

/* ---- showing modules ----------------------------------------------------- */

static bool names_pass(const Opt *opt, const char *option, const char *pass)
{
    const char *name;
    for (unsigned i = 0; (name = options_nth(opt->options, option, i)); i++)
        if (!strcmp(name, pass))
            return true;
    return false;
}

static void show(const Opt *opt, const Module *m, const char *when,
                 const char *pass)
{
    StrBuf s = { 0 };
    strbuf_addf(&s, "// *** IR %s %s ***\n", when, pass);
    eir_print(m, &opt->print, &s);
    fputs(strbuf_text(&s), stderr);
    strbuf_free(&s);
}

/* Writes DIR/NN_name.eir; the first failure is reported and ends it. */
static void write_tree(Opt *opt, unsigned i, const char *name, const Module *m)
{
    const char *dir = options_value(opt->options, "--print-ir-tree-dir", NULL);
    if (!dir || opt->dump_failed)
        return;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        diag_error(opt->ctx, (Loc){ 0 }, "file", "cannot make '%s': %s", dir,
                   strerror(errno));
        opt->dump_failed = true;
        return;
    }
    StrBuf s = { 0 };
    eir_print(m, &opt->print, &s);
    const char *path =
        arena_printf(ctx_arena(opt->ctx), "%s/%02u_%s.eir", dir, i, name);
    opt->dump_failed = !output_write(opt->ctx, path, strbuf_text(&s), s.len);
    strbuf_free(&s);
}

static void before_pass(void *user, const PassRun *run, unsigned i,
                        const Module *m)
{
    Opt *opt = user;
    if (i == 0)
        write_tree(opt, 0, "input", m);
    if (names_pass(opt, "--print-ir-before", run->pass->name))
        show(opt, m, "before", run->pass->name);
}

static void after_pass(void *user, const PassRun *run, unsigned i,
                       const Module *m)
{
    Opt *opt = user;
    write_tree(opt, i + 1, run->pass->name, m);
    if (options_has(opt->options, "--print-ir-after-all") ||
        names_pass(opt, "--print-ir-after", run->pass->name))
        show(opt, m, "after", run->pass->name);
}

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

static void report_costs(const Opt *opt, const PassManager *pm,
                         const ToolProver *prover)
{
    if (options_has(opt->options, "--timing"))
        report_times(pm, prover);
    if (options_has(opt->options, "--pass-statistics"))
        for (size_t i = 0; i < pm->counters.len; i++)
            fprintf(
                stderr, "statistics: %s: %lld %s\n", pm->counters.data[i].pass,
                (long long)pm->counters.data[i].n, pm->counters.data[i].what);
}

/* ---- running the pipeline ------------------------------------------------ */

/* The module before the pass that failed, under a line that repeats it. */
static void write_reproducer(Opt *opt, const PassManager *pm, const Module *m)
{
    const char *path = options_value(opt->options, "--reproducer", NULL);
    if (!path)
        return;
    StrBuf s = { 0 };
    strbuf_addf(&s, "// exo-opt %s --pass-pipeline='", path);
    pipeline_print(&opt->pipeline, pm->failed, &s);
    strbuf_add(&s, "'\n");
    eir_print(m, &(EirPrintOptions){ .derived = true }, &s);
    if (output_write(opt->ctx, path, strbuf_text(&s), s.len))
        diag_remark(opt->ctx, (Loc){ 0 }, "reproducer",
                    "wrote what failed to '%s'", path);
    strbuf_free(&s);
}

static ToolStatus run_passes(Opt *opt, Module **m)
{
    Arena *arena = arena_new();
    PassManager pm = {
        .ctx = opt->ctx, .before = before_pass, .after = after_pass, .user = opt
    };
    ToolProver *prover = tool_prover_open(arena, opt->ctx, opt->options);
    pm.prover = tool_prover(prover);
    pm.checks = tool_checks(&pm.n_checks);
    pm.verify_each =
        strcmp(options_value(opt->options, "--verify-each", "on"), "off");
    bool ok = pipeline_run(&pm, &opt->pipeline, m);
    ToolStatus status = tool_findings_report(opt->ctx, &pm);
    if (!ok) {
        status = tool_status_worse(status, TOOL_wrong);
        write_reproducer(opt, &pm, *m);
    }
    report_costs(opt, &pm, prover);
    tool_prover_close(prover);
    arena_free(arena);
    return status;
}

static bool print_module(Opt *opt, Module *m)
{
    const char *emit = options_value(opt->options, "--emit", "eir");
    if (!strcmp(emit, "svg"))
        return show_svg(opt->ctx, m, options_int(opt->options, "--line", 0),
                        &opt->out);
    if (!strcmp(emit, "exo"))
        return options_has(opt->options, "--annotate")
                   ? show_annotated(opt->ctx, m, &opt->out)
                   : exo_print(m, &opt->out);
    if (opt->print.derived && !show_derived(opt->ctx, m))
        return false;
    eir_print(m, &opt->print, &opt->out);
    return true;
}

/* ---- parts of the input -------------------------------------------------- */

/* Steps from standard input; what comes of them goes on only to -o. */
static bool goes_on(Opt *opt, Module **m, ToolStatus *status)
{
    if (!options_has(opt->options, "--interactive"))
        return true;
    *status = interactive_run(opt->ctx, opt->options, m);
    return *status == TOOL_done && options_has(opt->options, "-o");
}

static ToolStatus run_part(Opt *opt, uint32_t file)
{
    Module *m =
        input_module(opt->ctx, opt->options, file, opt->is_exo, opt->lib);
    ToolStatus status = TOOL_wrong;
    if (m && !goes_on(opt, &m, &status)) {
        module_free(m);
        m = NULL;
    }
    if (m) {
        tool_warn(opt->ctx, m, opt->options);
        status = run_passes(opt, &m);
        if (opt->n_parts++)
            strbuf_add(&opt->out, SPLIT_LINE "\n");
        if (!print_module(opt, m))
            status = tool_status_worse(status, TOOL_wrong);
        module_free(m);
    }
    if (ctx_error_count(opt->ctx))
        status = tool_status_worse(status, TOOL_wrong);
    if (!opt->expect) {
        diag_print_new(opt->ctx, &opt->printed, opt->format);
        return status;
    }
    StrBuf s = { 0 };
    bool match = expected_match(opt->ctx, file, &s);
    fputs(strbuf_text(&s), stderr);
    strbuf_free(&s);
    ctx_clear_diags(opt->ctx);
    return match ? TOOL_done : TOOL_wrong;
}

/* The start of the next split line at or after `at`, or the end. */
static size_t find_split(const char *text, size_t n, size_t at)
{
    while (at < n) {
        if (n - at >= strlen(SPLIT_LINE) &&
            !memcmp(text + at, SPLIT_LINE, strlen(SPLIT_LINE)))
            return at;
        const char *end = memchr(text + at, '\n', n - at);
        at = end ? (size_t)(end - text) + 1 : n;
    }
    return n;
}

/* Runs one part as a source with empty lines above it, so that its lines have
 * the numbers of the file; the count of lines is moved on. */
static ToolStatus run_slice(Opt *opt, const char *text, size_t from, size_t to,
                            size_t *lines)
{
    StrBuf part = { 0 };
    for (size_t i = 0; i < *lines; i++)
        strbuf_addc(&part, '\n');
    strbuf_addn(&part, text + from, to - from);
    for (size_t i = from; i < to; i++)
        *lines += text[i] == '\n';
    uint32_t file =
        ctx_add_source(opt->ctx, opt->path, strbuf_text(&part), part.len);
    strbuf_free(&part);
    return run_part(opt, file);
}

static ToolStatus run_split(Opt *opt, uint32_t file)
{
    size_t n, at = 0, lines = 0;
    const char *text = ctx_source_text(opt->ctx, file, &n);
    ToolStatus status = TOOL_done;
    for (unsigned parts = 0; at <= n; parts++) {
        if (parts == MAX_PARTS) {
            diag_error(opt->ctx, (Loc){ file, 1, 1 }, "file",
                       "more than %d parts", MAX_PARTS);
            return TOOL_wrong;
        }
        size_t end = find_split(text, n, at);
        status =
            tool_status_worse(status, run_slice(opt, text, at, end, &lines));
        const char *next = end < n ? memchr(text + end, '\n', n - end) : NULL;
        if (!next)
            break;
        lines++;
        at = (size_t)(next - text) + 1;
    }
    return status;
}

static ToolStatus run_file(Opt *opt)
{
    const char *path = options_file(opt->options);
    if (!path)
        return TOOL_usage;
    opt->path = strcmp(path, "-") ? path : "<stdin>";
    opt->is_exo = input_is_exo(opt->options, path);
    opt->lib = input_library(opt->ctx, opt->options);
    uint32_t file = opt->lib ? ctx_read_source(opt->ctx, path) : 0;
    if (!file)
        return TOOL_wrong;
    ToolStatus status = options_has(opt->options, "--split-input-file")
                            ? run_split(opt, file)
                            : run_part(opt, file);
    status =
        tool_status_worse(status, tool_warnings_status(opt->ctx, opt->options));
    bool write = status == TOOL_done || status == TOOL_undecided;
    if (write &&
        !output_write(opt->ctx, options_value(opt->options, "-o", NULL),
                      strbuf_text(&opt->out), opt->out.len))
        status = TOOL_wrong;
    return status;
}

/* ---- the command line ---------------------------------------------------- */

static ToolStatus print_pass_list(void)
{
    StrBuf s = { 0 };
    pass_list_print(&s);
    fputs(strbuf_text(&s), stdout);
    strbuf_free(&s);
    return TOOL_done;
}

static ToolStatus print_schedule_ops(void)
{
    StrBuf s = { 0 };
    sched_list_print(&s);
    fputs(strbuf_text(&s), stdout);
    strbuf_free(&s);
    return TOOL_done;
}

static void print_name(const char *kind, const char *name, void *user)
{
    if (!strcmp(kind, "instr"))
        strbuf_addf(user, "%s\n", name);
}

static ToolStatus print_instructions(Opt *opt, bool page)
{
    StrBuf s = { 0 };
    Lib *lib = input_library(opt->ctx, opt->options);
    if (!lib)
        return TOOL_wrong;
    if (page)
        lib_print_page(lib, &s);
    else
        lib_list(lib, print_name, &s);
    fputs(strbuf_text(&s), stdout);
    strbuf_free(&s);
    return TOOL_done;
}

static ToolStatus missing(const char *what)
{
    fprintf(stderr, "exo-opt: %s\n", what);
    return TOOL_missing;
}

static void print_pipeline(const Opt *opt)
{
    StrBuf s = { 0 };
    pipeline_print(&opt->pipeline, 0, &s);
    fprintf(stderr, "%s\n", strbuf_text(&s));
    strbuf_free(&s);
}

/* Every pass named by --print-ir-before and -after must be one. */
static ToolStatus check_pass_names(const Opt *opt, const char *option)
{
    const char *name;
    for (unsigned i = 0; (name = options_nth(opt->options, option, i)); i++)
        if (!pass_find(name))
            return options_usage(opt->options, "%s: no pass '%s'", option,
                                 name);
    return TOOL_done;
}

/* --annotate goes with --emit=exo, --line with --emit=svg. */
static ToolStatus check_emit(const Options *o)
{
    const char *emit = options_value(o, "--emit", "eir");
    if (options_has(o, "--annotate") && strcmp(emit, "exo"))
        return options_usage(o, "--annotate needs --emit=exo");
    if (options_has(o, "--line") != !strcmp(emit, "svg"))
        return options_usage(o, "--emit=svg and --line=N go together");
    return TOOL_done;
}

static ToolStatus run(Opt *opt)
{
    const Options *o = opt->options;
    if (options_has(o, "--list-passes"))
        return print_pass_list();
    if (options_has(o, "--list-schedule-ops"))
        return print_schedule_ops();
    const char *list = options_value(o, "--list-instructions", NULL);
    if (list)
        return print_instructions(opt, !strcmp(list, "markdown"));
    if (!strcmp(options_value(o, "--diagnostics", "text"), "json"))
        opt->format = DIAG_json;
    if (!diag_format_available(opt->format))
        return missing("--diagnostics=json: built without jansson");
    if (check_emit(o) != TOOL_done)
        return TOOL_usage;
    ToolStatus names =
        tool_status_worse(check_pass_names(opt, "--print-ir-before"),
                          check_pass_names(opt, "--print-ir-after"));
    if (names != TOOL_done)
        return names;
    opt->print.locs = options_has(o, "--print-loc");
    opt->print.derived = options_has(o, "--print-derived");
    opt->expect = options_has(o, "--verify-diagnostics");
    int64_t most = opt->expect ? 0 : options_int(o, "--max-errors", 20);
    ctx_set_max_errors(opt->ctx, most > 1000000 ? 0 : (unsigned)most);
    if (!pipeline_parse(opt->ctx, options_value(o, "--pass-pipeline", ""),
                        &opt->pipeline))
        return TOOL_usage;
    if (options_has(o, "--print-pipeline"))
        print_pipeline(opt);
    return run_file(opt);
}

int main(int argc, char **argv)
{
    Options options;
    int status = options_parse("opt", argc, argv, &options);
    if (status >= 0)
        return status;
    memory_keep();
    Opt opt = { .options = &options, .ctx = ctx_new() };
    status = (int)run(&opt);
    diag_print_new(opt.ctx, &opt.printed, opt.format);
    diag_print_rest(opt.ctx, opt.format);
    strbuf_free(&opt.out);
    ctx_free(opt.ctx);
    options_free(&options);
    return status;
}
