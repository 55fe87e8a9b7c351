/* exo-translate: a program to another form: its text at a level, LLVM IR, PTX,
 * a cubin, or a C library.
 *
 *   read -> checks (and lowering) by the default pipeline -> the form
 *
 * The steps fill one certificate; what a check refuted is not translated, what
 * it could not decide only with --allow-unknown. Files are written when all
 * succeeded. */
#include "codegen/c_print.h"
#include "codegen/ptxas.h"
#if EXO_WITH_LLVM
#include "codegen/llvm.h"
#endif
#include "ir/eir.h"
#include "ir/exo.h"
#include "passes/inline.h"
#include "passes/pass.h"
#include "tools/certificate.h"
#include "tools/check_report.h"
#include "tools/checks.h"
#include "tools/diag_print.h"
#include "tools/dispatch.h"
#include "tools/input.h"
#include "tools/memory.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/prover.h"
#include "tools/report.h"
#include "tools/sass.h"
#include "tools/warn.h"

#include <stdio.h>
#include <string.h>

typedef enum Form {
    FORM_eir,
    FORM_exo,
    FORM_llvm,
    FORM_ptx,
    FORM_cubin,
    FORM_c
} Form;

typedef struct Translate {
    const Options *options;
    Ctx *ctx;
    Form form;
    DiagFormat format;
    const Diag *printed;
    const char *arch, *out_path;
    Module *m;
    const Dispatch *dispatch; /* FILE is a table of kernels */
    CheckInputs inputs;       /* source: the par program of a lowered m */
    Certificate cert;
    VEC(Op *) kernels;
    StrBuf llvm, ptx, cubin;
    PtxasReport ptxas;
    bool assembled;
} Translate;

/* ---- checks and lowering ------------------------------------------------- */

/* The default pipeline's text, sizes given to sync-check. */
static void pipeline_text(const Translate *t, const char *form, StrBuf *out)
{
    static const char pass[] = "sync-check";
    const char *text = pipeline_default(form);
    const char *at = strstr(text, pass);
    int before = at ? (int)(at - text) : (int)strlen(text);
    strbuf_addf(out, "%.*s", before, text);
    if (at)
        strbuf_addf(out, "%s%s", check_sync_pass(t->options->arena, t->options),
                    at + sizeof pass - 1);
}

/* After each pass: the module at a level it was not yet seen at. */
static void after_pass(void *user, const PassRun *run, unsigned i,
                       const Module *m)
{
    Translate *t = user;
    (void)run;
    (void)i;
    certificate_add_module(&t->cert, m);
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

/* What is undecided is translated only when the user says so. */
static ToolStatus allow_unknown(Translate *t, ToolStatus status)
{
    if (status != TOOL_undecided)
        return status;
    if (options_has(t->options, "--allow-unknown"))
        return TOOL_done;
    diag_remark(t->ctx, (Loc){ 0 }, "undecided",
                "not translated, since a check is undecided; --allow-unknown "
                "translates all the same");
    return status;
}

static ToolStatus run_pipeline(Translate *t, const char *text)
{
    Pipeline pipeline = { 0 };
    if (!pipeline_parse(t->ctx, text, &pipeline))
        return TOOL_usage;
    PassManager pm = {
        .ctx = t->ctx, .verify_each = true, .after = after_pass, .user = t
    };
    Arena *arena = arena_new();
    ToolProver *prover = tool_prover_open(arena, t->ctx, t->options);
    pm.prover = tool_prover(prover);
    t->inputs.ptx_follows = t->form > FORM_llvm;
    pm.checks = tool_checks_of(ctx_arena(t->ctx), &t->inputs, &pm.n_checks);
    bool ok = pipeline_run(&pm, &pipeline, &t->m);
    ToolStatus status = tool_findings_report(t->ctx, &pm);
    certificate_add_findings(&t->cert, &pm);
    if (options_has(t->options, "--timing"))
        report_times(&pm, prover);
    tool_prover_close(prover);
    arena_free(arena);
    if (!ok || ctx_error_count(t->ctx))
        return TOOL_wrong;
    return allow_unknown(t, status);
}

static int level_rank(const char *level)
{
    return !strcmp(level, "seq") ? 0 : !strcmp(level, "par") ? 1 : 2;
}

/* The level at which the form shows the program. */
static const char *wanted_level(const Translate *t)
{
    const char *level = options_value(t->options, "--level", NULL);
    if (t->form >= FORM_llvm)
        return "async";
    return level ? level : module_level(t->m);
}

static ToolStatus bring_to_level(Translate *t)
{
    const char *have = module_level(t->m), *want = wanted_level(t);
    certificate_add_module(&t->cert, t->m);
    if (level_rank(have) == 2 && level_rank(want) < 2) {
        diag_error(t->ctx, (Loc){ 0 }, "level",
                   "a program at level async "
                   "cannot be shown at level %s",
                   want);
        return TOOL_wrong;
    }
    StrBuf text = { 0 };
    if (level_rank(have) == 2) {
        strbuf_add(&text, "check-async");
    } else if (level_rank(want) == 2) {
        Module *own = inline_launches(t->ctx, t->m, true);
        t->inputs.source = own ? own : module_clone(t->m);
        pipeline_text(t, "async", &text);
    } else {
        pipeline_text(t, have, &text);
    }
    if (level_rank(have) == 1 && level_rank(want) == 0)
        strbuf_add(&text, ",strip-annotations");
    ToolStatus status = run_pipeline(t, strbuf_text(&text));
    strbuf_free(&text);
    return status;
}

/* ---- code ---------------------------------------------------------------- */

static ToolStatus gather_kernels(Translate *t)
{
    for (Op *op = t->m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel) {
            VEC_PUSH(ctx_arena(t->ctx), &t->kernels, op);
            certificate_add_kernel(&t->cert, op);
        }
    if (t->kernels.len || t->form == FORM_c)
        return TOOL_done;
    diag_error(t->ctx, (Loc){ 0 }, "kernel",
               "the program has no device "
               "function, so there is no code for a GPU to make");
    return TOOL_wrong;
}

static ToolStatus missing(const char *what)
{
    fprintf(stderr, "exo-translate: %s\n", what);
    return TOOL_missing;
}

typedef struct ReadBack {
    Translate *t;
    ToolStatus status;
} ReadBack;

/* What reading the PTX or the SASS back found about one procedure. */
static void read_back(void *user, PassFinding f)
{
    ReadBack *b = user;
    certificate_add_finding(&b->t->cert, f);
    b->status =
        tool_status_worse(b->status, tool_finding_report(b->t->ctx, &f));
}

#if EXO_WITH_LLVM
static ToolStatus make_ptx(Translate *t)
{
    StrBuf summary = { 0 };
    certificate_summary(&t->cert, &summary);
    LlvmOptions options = { .arch = t->arch, .summary = strbuf_text(&summary) };
    bool ok = llvm_emit_kernels(t->ctx, t->m, (unsigned)t->kernels.len,
                                t->kernels.data, &options,
                                t->form == FORM_llvm ? &t->llvm : NULL,
                                t->form == FORM_llvm ? NULL : &t->ptx);
    strbuf_free(&summary);
    if (!ok || t->form == FORM_llvm)
        return ok ? TOOL_done : TOOL_wrong;
    certificate_add_text(&t->cert, "ptx", strbuf_text(&t->ptx), t->ptx.len);
    ReadBack back = { t, TOOL_done };
    tool_readback(t->ctx, t->m, strbuf_text(&t->ptx), read_back, &back);
    return allow_unknown(t, back.status);
}
#else
static ToolStatus make_ptx(Translate *t)
{
    (void)t;
    return missing("built without LLVM, which --to=llvm, ptx, cubin and c of "
                   "a program with kernels need");
}
#endif

static void note_registers(Translate *t)
{
    for (size_t i = 0; i < t->ptxas.kernels.len; i++)
        for (size_t k = 0; k < t->cert.kernels.len; k++)
            if (!strcmp(t->ptxas.kernels.data[i].name,
                        t->cert.kernels.data[k].name))
                t->cert.kernels.data[k].registers =
                    t->ptxas.kernels.data[i].registers;
}

/* What the assembler made of it, where a program can show that. */
static ToolStatus read_sass(Translate *t)
{
    StrBuf sass = { 0 };
    const char *why;
    ReadBack back = { t, TOOL_done };
    if (sass_of_cubin(t->ctx, t->cubin.data, t->cubin.len, &sass, &why))
        tool_sass(t->ctx, t->m, strbuf_text(&sass), read_back, &back);
    else
        tool_not_run(t->m, "check-async/sass", why, read_back, &back);
    strbuf_free(&sass);
    return allow_unknown(t, back.status);
}

static ToolStatus assemble(Translate *t)
{
    const char *chosen = options_value(t->options, "--ptxas", NULL);
    const char *ptxas = ptxas_find(t->ctx, chosen);
    if (!ptxas)
        return TOOL_missing;
    if (!ptxas_run(t->ctx, ptxas, t->arch, strbuf_text(&t->ptx), t->ptx.len,
                   &t->cubin, &t->ptxas))
        return TOOL_wrong;
    t->assembled = true;
    certificate_add_text(&t->cert, "cubin", t->cubin.data, t->cubin.len);
    note_registers(t);
    bool ok = ptxas_gate(t->ctx, &t->ptxas);
    certificate_add_finding(
        &t->cert, (PassFinding){ .check = "ptxas-gate",
                                 .text = "this target",
                                 .verdict = ok ? PASS_proved : PASS_refuted });
    return ok ? read_sass(t) : TOOL_wrong;
}

/* PTX, and the cubin where the form or --gate asks for it. */
static ToolStatus make_code(Translate *t)
{
    if (t->form < FORM_llvm)
        return TOOL_done;
    t->cert.arch = t->arch;
    ToolStatus status = gather_kernels(t);
    if (status != TOOL_done || !t->kernels.len)
        return status;
    status = make_ptx(t);
    bool gate = t->form >= FORM_cubin || options_has(t->options, "--gate") ||
                options_has(t->options, "--report");
    if (status != TOOL_done || t->form == FORM_llvm)
        return status;
    if (gate)
        return assemble(t);
    ReadBack back = { t, TOOL_done };
    tool_not_run(t->m, "check-async/sass", "the PTX is not assembled",
                 read_back, &back);
    return status;
}

/* ---- writing ------------------------------------------------------------- */

static bool write_text(Translate *t, const StrBuf *s)
{
    return output_write(t->ctx, t->out_path, strbuf_text(s), s->len);
}

/* `dir/gemm.c` and `dir/gemm` both give dir/gemm.h and dir/gemm.c. */
static bool write_c(Translate *t)
{
    Arena *arena = ctx_arena(t->ctx);
    const char *path = t->out_path ? t->out_path : "exo.c";
    size_t n = strlen(path);
    if (n > 2 && (!strcmp(path + n - 2, ".c") || !strcmp(path + n - 2, ".h")))
        n -= 2;
    const char *base = arena_strndup(arena, path, n);
    const char *slash = strrchr(base, '/');
    CImage image = { .data = t->cubin.data, .size = t->cubin.len };
    COptions options = { .stem = slash ? slash + 1 : base,
                         .arch = t->arch,
                         .n_images = t->kernels.len ? 1 : 0,
                         .images = &image,
                         .dispatch = t->dispatch };
    StrBuf header = { 0 }, source = { 0 };
    bool ok = c_print_library(t->ctx, t->m, &options, &header, &source) &&
              output_write(t->ctx, arena_printf(arena, "%s.h", base),
                           strbuf_text(&header), header.len) &&
              output_write(t->ctx, arena_printf(arena, "%s.c", base),
                           strbuf_text(&source), source.len);
    certificate_add_text(&t->cert, "h", strbuf_text(&header), header.len);
    certificate_add_text(&t->cert, "c", strbuf_text(&source), source.len);
    strbuf_free(&header);
    strbuf_free(&source);
    return ok;
}

/* As .exo or .eir. */
static bool write_program(Translate *t)
{
    StrBuf s = { 0 };
    bool ok = true;
    if (t->form == FORM_exo)
        ok = exo_print(t->m, &s);
    else
        eir_print(t->m, NULL, &s);
    ok = ok && write_text(t, &s);
    strbuf_free(&s);
    return ok;
}

static bool write_certificate(Translate *t)
{
    const char *path = options_value(t->options, "--emit-certificate", NULL);
    if (!path)
        return true;
    StrBuf s = { 0 };
    t->cert.sizes = options_joined(t->options, "--size");
    certificate_print(&t->cert, &s);
    bool ok = output_write(t->ctx, path, strbuf_text(&s), s.len);
    strbuf_free(&s);
    return ok;
}

static bool write_form(Translate *t)
{
    switch (t->form) {
    case FORM_llvm:
        return write_text(t, &t->llvm);
    case FORM_ptx:
        return write_text(t, &t->ptx);
    case FORM_cubin:
        return write_text(t, &t->cubin);
    case FORM_c:
        return write_c(t);
    default:
        return write_program(t);
    }
}

static void print_report(Translate *t)
{
    if (!options_has(t->options, "--report"))
        return;
    StrBuf s = { 0 };
    for (size_t i = 0; i < t->kernels.len; i++)
        report_kernel(t->kernels.data[i], t->assembled ? &t->ptxas : NULL, &s);
    fputs(strbuf_text(&s), stderr);
    strbuf_free(&s);
}

/* ---- the command line ---------------------------------------------------- */

/* What this build or version does not have. */
static ToolStatus check_available(Translate *t)
{
    const Options *o = t->options;
    if (!diag_format_available(t->format))
        return missing("--diagnostics=json: built without jansson");
    if (options_has(o, "--emit-certificate") && !certificate_available())
        return missing("--emit-certificate: built without jansson");
    return TOOL_done;
}

static ToolStatus read_options(Translate *t)
{
    static const char *const names[] = { "eir", "exo",   "llvm",
                                         "ptx", "cubin", "c" };
    const Options *o = t->options;
    const char *to = options_value(o, "--to", NULL);
    if (!to)
        return options_usage(o, "expected --to=eir, exo, llvm, ptx, cubin or "
                                "c");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(to, names[i]))
            t->form = (Form)i;
    if (options_has(o, "--level") && t->form > FORM_exo)
        return options_usage(o, "--level goes with --to=eir and --to=exo");
    if (!strcmp(options_value(o, "--diagnostics", "text"), "json"))
        t->format = DIAG_json;
    t->arch = options_value(o, "--arch", "sm_90a");
    if (strcmp(t->arch, "sm_90a"))
        return options_usage(o, "--arch: expected sm_90a, found '%s'", t->arch);
    t->out_path = options_value(o, "-o", NULL);
    if (t->form == FORM_c && (!t->out_path || !strcmp(t->out_path, "-")))
        return options_usage(o, "--to=c writes two files: name them by -o");
    int64_t most = options_int(o, "--max-errors", 20);
    ctx_set_max_errors(t->ctx, most > 1000000 ? 0 : (unsigned)most);
    return check_available(t);
}

static ToolStatus read_program(Translate *t, const char *path)
{
    if (!dispatch_is_table(path)) {
        t->m = input_read(t->ctx, t->options, path);
    } else if (t->form != FORM_c) {
        return options_usage(t->options,
                             "a table of kernels (.json) goes with --to=c");
    } else if (!EXO_WITH_JSON) {
        return missing("tables of kernels: built without jansson");
    } else {
        t->m = dispatch_read(t->ctx, t->options, path, &t->dispatch);
    }
    return t->m ? TOOL_done : TOOL_wrong;
}

static ToolStatus translate(Translate *t)
{
    ToolStatus status = read_options(t);
    if (status != TOOL_done)
        return status;
    const char *path = options_file(t->options);
    if (!path)
        return TOOL_usage;
    status = read_program(t, path);
    if (status != TOOL_done)
        return status;
    status = check_sizes(t->ctx, t->m, t->options);
    if (status != TOOL_done)
        return status;
    tool_warn(t->ctx, t->m, t->options);
    status = bring_to_level(t);
    if (status == TOOL_done)
        status = make_code(t);
    status =
        tool_status_worse(status, tool_warnings_status(t->ctx, t->options));
    if (status == TOOL_done)
        print_report(t);
    if (status == TOOL_done && !(write_form(t) && write_certificate(t)))
        status = TOOL_wrong;
    return status;
}

int main(int argc, char **argv)
{
    Options options;
    int given = options_parse("translate", argc, argv, &options);
    if (given >= 0)
        return given;
    memory_keep();
    Translate t = { .options = &options, .ctx = ctx_new() };
    t.cert.ctx = t.ctx;
    t.cert.scheduled = options.scheduled;
    ToolStatus status = translate(&t);
    diag_print_new(t.ctx, &t.printed, t.format);
    diag_print_rest(t.ctx, t.format);
    strbuf_free(&t.llvm);
    strbuf_free(&t.ptx);
    strbuf_free(&t.cubin);
    module_free(t.m);
    if (t.inputs.source)
        module_free(t.inputs.source);
    ctx_free(t.ctx);
    options_free(&options);
    return status;
}
