/* The table of passes, pipelines as text, and running them.
 *
 * Each pass that changes something gets a clone of the module; the clone takes
 * the module's place when the pass succeeded and left it well-formed. Checks
 * run on the module itself, or on a clone with the calls in line by which host
 * code launches kernels. */
#include "passes/pass.h"

#include "ir/wellformed.h"
#include "passes/inline.h"
#include "passes/lower/lower.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool pass_lower_par_to_async(PassCtx *pc, Module *m)
{
#ifdef EXO_INJECT
    return lower_par_to_async_wrong(pc->ctx, m, pass_option_str(pc, "inject"));
#else
    return lower_par_to_async(pc->ctx, m);
#endif
}

static const PassInfo passes[] = {
#define PASS(...) { __VA_ARGS__ },
#include "passes/passes.def"
#undef PASS
};
enum { N_PASSES = sizeof passes / sizeof *passes };

const PassInfo *pass_find(const char *name)
{
    for (int i = 0; i < N_PASSES; i++)
        if (!strcmp(passes[i].name, name))
            return &passes[i];
    return NULL;
}

const PassInfo *pass_at(unsigned i)
{
    return i < N_PASSES ? &passes[i] : NULL;
}

void pass_list_print(StrBuf *out)
{
    for (int i = 0; i < N_PASSES; i++) {
        const PassInfo *p = &passes[i];
        strbuf_add(out, p->name);
        if (*p->options)
            strbuf_addf(out, "{%s}", p->options);
        strbuf_addf(out, "\n    %s\n", p->doc);
        if (*p->requires)
            strbuf_addf(out, "    requires: %s\n", p->requires);
        if (*p->preserves)
            strbuf_addf(out, "    preserves: %s\n", p->preserves);
    }
}

const char *pass_verdict_name(PassVerdict v)
{
    static const char *const names[] = { "proved", "refuted", "unknown",
                                         "not run" };
    return names[v];
}

/* ---- options of rows ----------------------------------------------------- */

/* One `key:type=default` of a row. */
typedef struct OptionSpec {
    const char *key;
    ParamKind kind;
    Param otherwise;
} OptionSpec;

static void spec_value(Ctx *ctx, OptionSpec *spec, const char *s, size_t n)
{
    const char *text = ctx_intern_n(ctx, s, n);
    spec->otherwise = (Param){ .kind = spec->kind, .s = "" };
    if (spec->kind == PARAM_int)
        spec->otherwise.i = strtoll(text, NULL, 10);
    else if (spec->kind == PARAM_bool)
        spec->otherwise.i = !strcmp(text, "true");
    else
        spec->otherwise.s = text;
}

/* Reads the next spec of a row's text and moves on. */
static bool spec_next(Ctx *ctx, const char **at, OptionSpec *out)
{
    *at += strspn(*at, " ");
    if (!**at)
        return false;
    size_t key = strcspn(*at, ":");
    out->key = ctx_intern_n(ctx, *at, key);
    const char *type = *at + key + 1;
    size_t n = strcspn(type, "= ");
    out->kind = !strncmp(type, "int", n)    ? PARAM_int
                : !strncmp(type, "bool", n) ? PARAM_bool
                                            : PARAM_str;
    const char *value = type + n + (type[n] == '=');
    size_t len = strcspn(value, " ");
    spec_value(ctx, out, value, len);
    *at = value + len;
    return true;
}

static bool spec_find(Ctx *ctx, const PassInfo *pass, const char *key,
                      OptionSpec *out)
{
    for (const char *at = pass->options; spec_next(ctx, &at, out);)
        if (!strcmp(out->key, key) || !strcmp(out->key, "*"))
            return true;
    return false;
}

static const Param *run_option(const PassCtx *pc, const char *key,
                               ParamKind kind)
{
    for (unsigned i = 0; i < pc->run->n_options; i++)
        if (!strcmp(pc->run->options[i].key, key) &&
            pc->run->options[i].value.kind == kind)
            return &pc->run->options[i].value;
    panic("pass '%s' has no option '%s'", pc->run->pass->name, key);
}

int64_t pass_option_int(const PassCtx *pc, const char *key)
{
    return run_option(pc, key, PARAM_int)->i;
}

bool pass_option_bool(const PassCtx *pc, const char *key)
{
    return run_option(pc, key, PARAM_bool)->i != 0;
}

const char *pass_option_str(const PassCtx *pc, const char *key)
{
    return run_option(pc, key, PARAM_str)->s;
}

/* ---- pipelines as text --------------------------------------------------- */

typedef VEC(PassOption) OptionVec;

typedef struct PipelineText {
    Ctx *ctx;
    uint32_t file;
    const char *text, *at;
} PipelineText;

static Loc text_loc(const PipelineText *t, const char *at)
{
    return (Loc){ t->file, 1, (uint32_t)(at - t->text + 1) };
}

static void skip_blank(PipelineText *t)
{
    t->at += strspn(t->at, " \t\n");
}

/* The characters of a pass name or an option's value. */
static const char *text_word(PipelineText *t)
{
    skip_blank(t);
    size_t n = strcspn(t->at, ",{}= \t\n");
    const char *word = ctx_intern_n(t->ctx, t->at, n);
    t->at += n;
    return word;
}

static bool option_value(PipelineText *t, const OptionSpec *spec,
                         const char *key, Param *out)
{
    const char *from = t->at, *word = text_word(t);
    char *end = NULL;
    errno = 0;
    *out = (Param){ .kind = spec->kind, .s = word };
    if (spec->kind == PARAM_int) {
        out->i = strtoll(word, &end, 10);
        if (*word && !*end && !errno)
            return true;
    } else if (spec->kind == PARAM_bool) {
        out->i = !strcmp(word, "true") || !strcmp(word, "1");
        if (out->i || !strcmp(word, "false") || !strcmp(word, "0"))
            return true;
    } else {
        return true;
    }
    diag_error(t->ctx, text_loc(t, from), "pipeline",
               "option '%s' is to be %s, found '%s'", key,
               spec->kind != PARAM_int ? "true or false"
               : errno                 ? "an integer of 64 bits"
                                       : "an integer",
               word);
    return false;
}

static void option_set(Arena *a, OptionVec *v, const char *key, Param value)
{
    for (size_t i = 0; i < v->len; i++)
        if (v->data[i].key == key) {
            v->data[i].value = value;
            return;
        }
    PassOption o = { key, value };
    VEC_PUSH(a, v, o);
}

static bool is_among(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* key=value, separated by blanks, up to `}`. */
static bool parse_options(PipelineText *t, const PassInfo *pass, OptionVec *out)
{
    VEC(const char *) given = { 0 };
    for (skip_blank(t); *t->at && *t->at != '}'; skip_blank(t)) {
        const char *from = t->at, *key = text_word(t);
        OptionSpec spec;
        if (!*key || *t->at != '=') {
            diag_error(t->ctx, text_loc(t, from), "pipeline",
                       "expected key=value in the options of '%s'", pass->name);
            return false;
        }
        t->at++;
        if (is_among(given.data, given.len, key)) {
            diag_error(t->ctx, text_loc(t, from), "pipeline",
                       "option '%s' of '%s' is given twice", key, pass->name);
            return false;
        }
        VEC_PUSH(ctx_arena(t->ctx), &given, key);
        if (!spec_find(t->ctx, pass, key, &spec)) {
            Diag *d =
                diag_error(t->ctx, text_loc(t, from), "pipeline",
                           "pass '%s' has no option '%s'", pass->name, key);
            diag_fix(t->ctx, d, "its options: %s",
                     *pass->options ? pass->options : "none");
            return false;
        }
        Param value;
        if (!option_value(t, &spec, key, &value))
            return false;
        option_set(ctx_arena(t->ctx), out, key, value);
    }
    if (*t->at == '}') {
        t->at++;
        return true;
    }
    diag_error(t->ctx, text_loc(t, t->at), "pipeline",
               "expected '}' after the options of '%s'", pass->name);
    return false;
}

static bool parse_run(PipelineText *t, Pipeline *out)
{
    Arena *a = ctx_arena(t->ctx);
    skip_blank(t);
    const char *from = t->at, *name = text_word(t);
    const PassInfo *pass = pass_find(name);
    if (!pass) {
        Diag *d = diag_error(t->ctx, text_loc(t, from), "pipeline",
                             "no pass '%s'", name);
        diag_fix(t->ctx, d, "exo-opt --list-passes lists them");
        return false;
    }
    OptionVec options = { 0 };
    OptionSpec spec;
    for (const char *at = pass->options; spec_next(t->ctx, &at, &spec);)
        if (strcmp(spec.key, "*") != 0)
            option_set(a, &options, spec.key, spec.otherwise);
    skip_blank(t);
    if (*t->at == '{') {
        t->at++;
        if (!parse_options(t, pass, &options))
            return false;
    }
    PassRun run = { pass, (unsigned)options.len, options.data };
    VEC_PUSH(a, &out->runs, run);
    return true;
}

bool pipeline_parse(Ctx *ctx, const char *text, Pipeline *out)
{
    PipelineText t = { .ctx = ctx };
    t.file = ctx_add_source(ctx, "<pass-pipeline>", text, strlen(text));
    t.text = t.at = text;
    skip_blank(&t);
    if (!*t.at)
        return true;
    for (;;) {
        if (!parse_run(&t, out))
            return false;
        skip_blank(&t);
        if (!*t.at)
            return true;
        if (*t.at != ',') {
            diag_error(ctx, text_loc(&t, t.at), "pipeline",
                       "expected ',' between passes");
            return false;
        }
        t.at++;
    }
}

static void option_print(const PassOption *o, StrBuf *out)
{
    strbuf_addf(out, "%s=", o->key);
    if (o->value.kind == PARAM_int)
        strbuf_addf(out, "%lld", (long long)o->value.i);
    else if (o->value.kind == PARAM_bool)
        strbuf_add(out, o->value.i ? "true" : "false");
    else
        strbuf_add(out, o->value.s);
}

void pipeline_print(const Pipeline *p, unsigned first, StrBuf *out)
{
    for (size_t i = first; i < p->runs.len; i++) {
        const PassRun *r = &p->runs.data[i];
        strbuf_addf(out, "%s%s", i > first ? "," : "", r->pass->name);
        for (unsigned k = 0; k < r->n_options; k++) {
            strbuf_add(out, k ? " " : "{");
            option_print(&r->options[k], out);
        }
        if (r->n_options)
            strbuf_add(out, "}");
    }
}

/* ---- running ------------------------------------------------------------- */

void pass_count(PassCtx *pc, const char *what, int64_t n)
{
    PassManager *pm = pc->manager;
    if (!pm)
        return;
    const char *pass = pc->run->pass->name;
    for (size_t i = 0; i < pm->counters.len; i++)
        if (pm->counters.data[i].pass == pass &&
            !strcmp(pm->counters.data[i].what, what)) {
            pm->counters.data[i].n += n;
            return;
        }
    PassCounter c = { pass, what, n };
    VEC_PUSH(ctx_arena(pc->ctx), &pm->counters, c);
}

void pass_finding(PassCtx *pc, PassFinding f)
{
    if (!pc->manager)
        return;
    f.proc = f.proc ? ctx_intern(pc->ctx, f.proc) : NULL;
    f.text = f.text ? ctx_intern(pc->ctx, f.text) : NULL;
    VEC_PUSH(ctx_arena(pc->ctx), &pc->manager->findings, f);
}

static bool drop_derived(Op *op, void *user)
{
    (void)user;
    for (unsigned i = op->n_attrs; i-- > 0;)
        if (attr_is_derived(op->attrs[i].key))
            op_remove_attr(op, op->attrs[i].key);
    return true;
}

void module_drop_derived(Module *m)
{
    block_walk(m->body, drop_derived, NULL);
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (; *list; list += strspn(list, " ")) {
        size_t n = strcspn(list, " ");
        if (n == len && !strncmp(list, word, n))
            return true;
        list += n;
    }
    return false;
}

static const PassCheck *check_of(const PassManager *pm, const char *name)
{
    for (unsigned i = 0; i < pm->n_checks; i++)
        if (!strcmp(pm->checks[i].name, name))
            return &pm->checks[i];
    return NULL;
}

static bool is_fresh(const PassManager *pm, const char *check)
{
    return is_among(pm->fresh_checks.data, pm->fresh_checks.len, check);
}

bool pass_has_refuted(const PassManager *pm, const char *check)
{
    return is_among(pm->refuted_checks.data, pm->refuted_checks.len, check);
}

/* Runs a check; false when it refuted something or reported an error. */
static bool run_check(PassManager *pm, const PassRun *run, Module *m)
{
    Arena *scratch = arena_new();
    PassCtx pc = { pm->ctx, pm->prover, scratch, run, pm };
    const PassCheck *check = check_of(pm, run->pass->name);
    unsigned errors = ctx_error_count(pm->ctx);
    size_t first = pm->findings.len;
    Module *own = run->pass->in_line ? inline_launches(pm->ctx, m, true) : NULL;
    if (check)
        check->run(&pc, own ? own : m, check->user);
    else
        pass_finding(&pc, (PassFinding){ run->pass->name, NULL, PASS_not_run,
                                         "it does not exist yet" });
    if (own)
        module_free(own);
    arena_free(scratch);
    VEC_PUSH(ctx_arena(pm->ctx), &pm->fresh_checks, run->pass->name);
    bool ok = ctx_error_count(pm->ctx) == errors;
    for (size_t i = first; i < pm->findings.len; i++)
        ok &= pm->findings.data[i].verdict != PASS_refuted;
    if (!ok)
        VEC_PUSH(ctx_arena(pm->ctx), &pm->refuted_checks, run->pass->name);
    return ok;
}

/* The checks that a pass requires and that the tool has, unless they ran. */
static bool run_required(PassManager *pm, const PassRun *run, Module *m)
{
    for (const char *at = run->pass->requires; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        const char *name = ctx_intern_n(pm->ctx, at, n);
        at += n;
        const PassRun check = { .pass = pass_find(name) };
        if (!check.pass)
            panic("pass '%s' requires '%s', which is no check", run->pass->name,
                  name);
        if (pass_has_refuted(pm, name) ||
            (check_of(pm, name) && !is_fresh(pm, name) &&
             !run_check(pm, &check, m)))
            return false;
    }
    return true;
}

static bool run_pass(PassManager *pm, const PassRun *run, Module **m)
{
    Arena *scratch = arena_new();
    PassCtx pc = { pm->ctx, pm->prover, scratch, run, pm };
    Module *clone =
        run->pass->in_line
            ? inline_launches(pm->ctx, *m, pass_option_bool(&pc, "keep"))
            : NULL;
    if (!clone)
        clone = module_clone(*m);
    unsigned errors = ctx_error_count(pm->ctx);
    bool ok = run->pass->run(&pc, clone);
    arena_free(scratch);
    if (!ok && ctx_error_count(pm->ctx) == errors)
        diag_error(pm->ctx, (Loc){ 0 }, "internal",
                   "pass '%s' failed without saying why", run->pass->name);
    if (ok && !has_word(run->pass->preserves, "derived"))
        module_drop_derived(clone);
    if (ok && pm->verify_each)
        ok = module_wellformed(clone, run->pass->name);
    module_free(ok ? *m : clone);
    if (ok)
        *m = clone;
    pm->fresh_checks.len = pm->refuted_checks.len = 0;
    return ok;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run_one(PassManager *pm, const PassRun *run, Module **m)
{
    if (run->pass->run)
        return run_required(pm, run, *m) && run_pass(pm, run, m);
    run_check(pm, run, *m);
    return true;
}

bool pipeline_run(PassManager *pm, const Pipeline *p, Module **m)
{
    for (unsigned i = 0; i < p->runs.len; i++) {
        const PassRun *run = &p->runs.data[i];
        if (pm->before)
            pm->before(pm->user, run, i, *m);
        double start = now();
        bool ok = run_one(pm, run, m);
        PassTime t = { run->pass->name, now() - start };
        VEC_PUSH(ctx_arena(pm->ctx), &pm->times, t);
        if (!ok) {
            pm->failed = i;
            return false;
        }
        if (pm->after)
            pm->after(pm->user, run, i, *m);
    }
    return true;
}
