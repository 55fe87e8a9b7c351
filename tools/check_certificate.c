/* Validating a certificate: what it says is made again from the program, at the
 * sizes that it names, and compared, claim by claim; and what was found here
 * must be among its claims, or among what it says was not run. A hash of a text
 * that is not at hand (PTX, cubin) is named as not compared. */
#include "tools/check_report.h"

#include "tools/certificate.h"
#include "tools/certificate_schedule.h"
#include "tools/checks.h"
#include "tools/input.h"
#include "tools/output.h"
#include "tools/prover.h"

#if EXO_WITH_JSON
#include "tools/json_file.h"

#include <string.h>

typedef struct Claims {
    Ctx *ctx;
    const Options *options;
    json_t *root;
    CheckInputs inputs;
    Certificate again; /* made from the program */
    StrBuf out;
    bool ok;
} Claims;

EXO_PRINTF(3, 4)
static void claim(Claims *c, bool holds, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    strbuf_add(&c->out, "certificate: ");
    strbuf_vaddf(&c->out, fmt, ap);
    strbuf_add(&c->out, holds ? ": confirmed\n" : ": refuted\n");
    va_end(ap);
    c->ok = c->ok && holds;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

/* ---- making it again ---------------------------------------------------- */

static void see_module(void *user, const PassRun *run, unsigned i,
                       const Module *m)
{
    Claims *c = user;
    (void)run;
    (void)i;
    certificate_add_module(&c->again, m);
}

static void add_file(Claims *c, const char *name, const char *option)
{
    const char *path = options_value(c->options, option, NULL);
    uint32_t file = path ? ctx_read_source(c->ctx, path) : 0;
    size_t n;
    const char *text = file ? ctx_source_text(c->ctx, file, &n) : NULL;
    if (text)
        certificate_add_text(&c->again, name, text, n);
}

/* The levels below the program's own are only made when they are claimed. */
static ToolStatus make_again(Claims *c, Module **m)
{
    bool lowered = json_object_get(json_object_get(c->root, "sha256"), "async");
    const char *level = module_level(*m);
    Pipeline p = { 0 };
    certificate_add_module(&c->again, *m);
    const char *text = check_pipeline(ctx_arena(c->ctx), c->options, level);
    if (lowered && !strcmp(level, "par"))
        text = arena_printf(ctx_arena(c->ctx), "%s,lower-par-to-async", text);
    if (!text || !pipeline_parse(c->ctx, text, &p))
        return TOOL_usage;
    PassManager pm = { .ctx = c->ctx, .after = see_module, .user = c };
    ToolProver *prover =
        tool_prover_open(ctx_arena(c->ctx), c->ctx, c->options);
    pm.prover = tool_prover(prover);
    pm.checks = tool_checks_of(ctx_arena(c->ctx), &c->inputs, &pm.n_checks);
    bool ok = pipeline_run(&pm, &p, m);
    tool_prover_close(prover);
    certificate_add_findings(&c->again, &pm);
    for (const Op *op = (*m)->body->first; op; op = op->next)
        if (op->code == OP_async_kernel)
            certificate_add_kernel(&c->again, op);
    add_file(c, "ptx", "--ptx");
    return ok ? TOOL_done : TOOL_wrong;
}

/* ---- comparing ---------------------------------------------------------- */

static const CertText *text_named(const Claims *c, const char *name)
{
    for (size_t i = 0; i < c->again.texts.len; i++)
        if (!strcmp(c->again.texts.data[i].name, name))
            return &c->again.texts.data[i];
    return NULL;
}

static void compare_hashes(Claims *c)
{
    const char *name;
    json_t *hash;
    json_object_foreach(json_object_get(c->root, "sha256"), name, hash)
    {
        const CertText *t = text_named(c, name);
        const char *said = json_string_value(hash);
        if (t)
            claim(c, said && !strcmp(said, t->sha256), "text %s", name);
        else
            strbuf_addf(&c->out,
                        "certificate: text %s: not compared, it is "
                        "not given\n",
                        name);
    }
    for (size_t i = 0; i < c->again.texts.len; i++) {
        name = c->again.texts.data[i].name;
        if (!json_object_get(json_object_get(c->root, "sha256"), name))
            claim(c, false, "text %s, which it does not have", name);
    }
}

static bool same_finding(const json_t *said, const PassFinding *f)
{
    const char *text = f->text ? f->text : "all sizes";
    return !strcmp(text_at(said, "check"), f->check) &&
           !strcmp(text_at(said, "procedure"), f->proc ? f->proc : "") &&
           !strcmp(text_at(said, "verdict"), pass_verdict_name(f->verdict)) &&
           (f->verdict != PASS_proved || !strcmp(text_at(said, "scope"), text));
}

/* A check that this tool has no part in is not compared. */
static bool is_known(const Claims *c, const char *check)
{
    for (size_t i = 0; i < c->again.findings.len; i++)
        if (!strcmp(c->again.findings.data[i].check, check) &&
            c->again.findings.data[i].verdict != PASS_not_run)
            return true;
    return false;
}

static void compare_checks(Claims *c)
{
    size_t i;
    json_t *said;
    json_array_foreach(json_object_get(c->root, "checks"), i, said)
    {
        const char *check = text_at(said, "check");
        if (!is_known(c, check)) {
            strbuf_addf(&c->out,
                        "certificate: %s: not compared, it was not "
                        "run here\n",
                        check);
            continue;
        }
        bool found = false;
        for (size_t k = 0; k < c->again.findings.len; k++)
            found = found || same_finding(said, &c->again.findings.data[k]);
        claim(c, found, "%s @%s %s", check, text_at(said, "procedure"),
              text_at(said, "verdict"));
    }
}

/* ---- what it leaves out -------------------------------------------------- */

/* Is the check among those not run, itself or the one that it is a part of? */
static bool says_not_run(const Claims *c, const char *check)
{
    const json_t *not_run = json_object_get(c->root, "not_run");
    const char *whole =
        arena_strndup(ctx_arena(c->ctx), check, strcspn(check, "/"));
    return json_object_get(not_run, check) || json_object_get(not_run, whole);
}

static bool says_anything(const Claims *c, const PassFinding *f)
{
    size_t i;
    json_t *said;
    json_array_foreach(json_object_get(c->root, "checks"), i, said)
    {
        if (!strcmp(text_at(said, "check"), f->check) &&
            !strcmp(text_at(said, "procedure"), f->proc ? f->proc : ""))
            return true;
    }
    return says_not_run(c, f->check);
}

static void compare_omitted(Claims *c)
{
    for (size_t i = 0; i < c->again.findings.len; i++) {
        const PassFinding *f = &c->again.findings.data[i];
        if (f->verdict != PASS_not_run && !says_anything(c, f))
            claim(c, false, "%s @%s, of which it says nothing", f->check,
                  f->proc ? f->proc : "");
    }
}

/* ---- kernels, assumptions ------------------------------------------------ */

/* Without the registers, which only the assembler knows. */
static bool same_kernel(const json_t *said, const json_t *again)
{
    json_t *copy = json_deep_copy(said);
    json_object_del(copy, "registers");
    bool same = again && json_equal(copy, again);
    json_decref(copy);
    return same;
}

/* Code was made of every kernel, where it was made. */
static void compare_kernels(Claims *c, const json_t *again)
{
    json_t *said = json_object_get(c->root, "kernels");
    bool made = json_object_get(json_object_get(c->root, "sha256"), "ptx");
    const char *name;
    json_t *k;
    json_object_foreach(said, name, k) claim(
        c, same_kernel(k, json_object_get(again, name)), "kernel %s", name);
    json_object_foreach((json_t *)again, name,
                        k) if (made && !json_object_get(said, name))
        claim(c, false, "kernel %s, of which it says nothing", name);
}

static void compare_rest(Claims *c)
{
    StrBuf text = { 0 };
    certificate_print(&c->again, &text);
    json_t *again = json_loads(strbuf_text(&text), 0, NULL);
    compare_kernels(c, json_object_get(again, "kernels"));
    claim(c,
          json_equal(json_object_get(c->root, "assumptions"),
                     json_object_get(again, "assumptions")),
          "assumptions");
    json_decref(again);
    strbuf_free(&text);
}

/* ---- the schedule, the compiler ------------------------------------------ */

static void claim_of_schedule(void *user, const char *what, bool holds)
{
    claim(user, holds, "%s", what);
}

/* The steps were taken again when the program was read. */
static void compare_schedule(Claims *c)
{
    const json_t *said = json_object_get(c->root, "schedule");
    if (said && !c->options->scheduled->given) {
        strbuf_add(&c->out, "certificate: schedule: not compared, --schedule "
                            "is not given\n");
    } else if (said) {
        json_t *again = certificate_schedule(c->options->scheduled);
        certificate_schedule_compare(said, again, claim_of_schedule, c);
        json_decref(again);
    } else if (c->options->scheduled->given) {
        claim(c, false, "schedule: steps, which it does not have");
    }
}

static void compare_compiler(Claims *c)
{
    const char *said = text_at(c->root, "compiler");
    if (strcmp(said, EXO_VERSION))
        claim(c, false, "compiler %s, this is %s", said, EXO_VERSION);
}

/* ---- the whole ---------------------------------------------------------- */

/* What does not have the form of a certificate, or NULL. */
static const char *misformed(const json_t *root)
{
    const json_t *checks = json_object_get(root, "checks");
    if (strcmp(text_at(root, "version"), "1"))
        return "a certificate of version 1";
    if (!json_is_object(json_object_get(root, "sha256")))
        return "an object 'sha256' of hashes by text";
    if (!json_is_object(json_object_get(root, "kernels")))
        return "an object 'kernels' of kernels by name";
    if (!json_is_object(json_object_get(root, "not_run")))
        return "an object 'not_run' of reasons by check";
    if (!json_is_array(checks))
        return "an array 'checks' of verdicts";
    for (size_t i = 0; i < json_array_size(checks); i++)
        if (!*text_at(json_array_get(checks, i), "check"))
            return "an object with a 'check' in each place of 'checks'";
    return NULL;
}

static json_t *read_certificate(Ctx *ctx, const char *path)
{
    uint32_t file;
    json_t *root = json_file_read(ctx, path, "certificate", &file);
    const char *expected = root ? misformed(root) : NULL;
    if (!expected)
        return root;
    diag_error(ctx, (Loc){ file, 1, 1 }, "certificate", "expected %s",
               expected);
    json_decref(root);
    return NULL;
}

ToolStatus check_certificate(Ctx *ctx, Module **m, const Options *o,
                             const CheckInputs *in)
{
    Claims c = {
        .ctx = ctx, .options = o, .again = { .ctx = ctx }, .ok = true
    };
    c.inputs = (CheckInputs){ .ptx = in->ptx, .sass = in->sass };
    c.root = read_certificate(ctx, options_value(o, "--certificate", ""));
    if (!c.root)
        return TOOL_wrong;
    Options with_sizes = *o;
    const char *sizes = text_at(c.root, "sizes");
    if (*sizes && !options_has(o, "--size")) {
        options_give(&with_sizes, "--size", sizes);
        c.options = &with_sizes;
    }
    ToolStatus status = make_again(&c, m);
    if (status != TOOL_usage) {
        compare_compiler(&c);
        compare_schedule(&c);
        compare_hashes(&c);
        compare_checks(&c);
        compare_omitted(&c);
        compare_rest(&c);
        strbuf_addf(&c.out, "certificate: %s\n",
                    c.ok ? "confirmed" : "refuted");
        if (!output_write(ctx, options_value(o, "-o", NULL),
                          strbuf_text(&c.out), c.out.len))
            c.ok = false;
    }
    if (!c.ok)
        status = tool_status_worse(status, TOOL_wrong);
    strbuf_free(&c.out);
    json_decref(c.root);
    return status;
}

#else

ToolStatus check_certificate(Ctx *ctx, Module **m, const Options *o,
                             const CheckInputs *in)
{
    (void)ctx;
    (void)m;
    (void)in;
    return check_missing(o, "reading certificates");
}

#endif
