/* Certificates as JSON through jansson, and their one-line form.
 *
 * A check that is known (a row of passes.def without a function, or the gate)
 * and has no finding stands under `not_run`, by name, as does one whose
 * finding says so. */
#include "tools/certificate.h"

#include "ir/eir.h"
#include "passes/abi.h"
#include "tools/certificate_schedule.h"
#include "tools/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GATE "ptxas-gate"

/* ---- levels -------------------------------------------------------------- */

static bool in_host_memory(const Value *v)
{
    return !v || !v->type->mem || !strcmp(v->type->mem->name, "DRAM");
}

/* What only a program at par has: an op, a loop mode, a memory. */
static bool is_annotated(const Op *op)
{
    bool par_op = !strcmp(op_info(op->code)->dialect, "par");
    if ((par_op && op->code != OP_par_instr) ||
        strcmp(op_attr_str(op, "mode", "seq"), "seq"))
        return true;
    for (unsigned i = 0; i < op->n_results; i++)
        if (!in_host_memory(op->results[i]))
            return true;
    for (unsigned i = 0; op->code == OP_ctl_proc && i < op->blocks[0]->n_args;
         i++)
        if (!in_host_memory(op->blocks[0]->args[i].value))
            return true;
    return false;
}

static bool find_annotation(Op *op, void *user)
{
    bool *found = user;
    *found = *found || is_annotated(op);
    return !*found;
}

const char *module_level(const Module *m)
{
    bool annotated = false;
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel || op->code == OP_host_proc)
            return "async";
    block_walk(m->body, find_annotation, &annotated);
    return annotated ? "par" : "seq";
}

/* ---- filling ------------------------------------------------------------- */

void certificate_add_text(Certificate *c, const char *name, const char *text,
                          size_t n)
{
    CertText t = { .name = name };
    sha256_hex(text, n, t.sha256);
    VEC_PUSH(ctx_arena(c->ctx), &c->texts, t);
}

void certificate_add_module(Certificate *c, const Module *m)
{
    const char *level = module_level(m);
    for (size_t i = 0; i < c->texts.len; i++)
        if (!strcmp(c->texts.data[i].name, level))
            return;
    StrBuf s = { 0 };
    eir_print(m, NULL, &s);
    certificate_add_text(c, level, strbuf_text(&s), s.len);
    strbuf_free(&s);
}

void certificate_add_finding(Certificate *c, PassFinding f)
{
    VEC_PUSH(ctx_arena(c->ctx), &c->findings, f);
}

void certificate_add_findings(Certificate *c, const PassManager *pm)
{
    for (size_t i = 0; i < pm->findings.len; i++)
        certificate_add_finding(c, pm->findings.data[i]);
}

void certificate_add_kernel(Certificate *c, const Op *kernel)
{
    CertKernel k = { .name = op_attr_str(kernel, "name", ""),
                     .abi = kernel_abi_hash(c->ctx, kernel),
                     .smem_bytes = op_attr_int(kernel, "smem_bytes", 0),
                     .registers = -1 };
    VEC_PUSH(ctx_arena(c->ctx), &c->kernels, k);
}

/* ---- which checks there are ---------------------------------------------- */

/* The i-th check that is known, or NULL past the last. */
static const char *known_check(unsigned i)
{
    const PassInfo *p;
    for (unsigned at = 0; (p = pass_at(at)); at++)
        if (!p->run && i-- == 0)
            return p->name;
    return i == 0 ? GATE : NULL;
}

/* Is the finding of that check, or of a part of it (check-async/races)? */
static bool is_of(const PassFinding *f, const char *check)
{
    size_t n = strlen(check);
    return !strncmp(f->check, check, n) && (!f->check[n] || f->check[n] == '/');
}

/* The worst verdict of a check; PASS_not_run where it has none. */
static PassVerdict verdict_of(const Certificate *c, const char *check)
{
    static const int badness[] = { [PASS_not_run] = 0,
                                   [PASS_proved] = 1,
                                   [PASS_unknown] = 2,
                                   [PASS_refuted] = 3 };
    PassVerdict worst = PASS_not_run;
    for (size_t i = 0; i < c->findings.len; i++) {
        const PassFinding *f = &c->findings.data[i];
        if (is_of(f, check) && badness[f->verdict] > badness[worst])
            worst = f->verdict;
    }
    return worst;
}

void certificate_summary(const Certificate *c, StrBuf *out)
{
    const char *check;
    const char *between = "";
    for (unsigned i = 0; (check = known_check(i)); i++) {
        PassVerdict v = verdict_of(c, check);
        if (v == PASS_not_run)
            continue;
        strbuf_addf(out, "%s%s %s", between, check, pass_verdict_name(v));
        between = ", ";
    }
    between = out->len ? "; not run: " : "not run: ";
    for (unsigned i = 0; (check = known_check(i)); i++) {
        if (verdict_of(c, check) != PASS_not_run || !strcmp(check, GATE))
            continue;
        strbuf_addf(out, "%s%s", between, check);
        between = ", ";
    }
}

/* ---- JSON ---------------------------------------------------------------- */

#if EXO_WITH_JSON
#include <jansson.h>

bool certificate_available(void)
{
    return true;
}

static void set_text(json_t *object, const char *key, const char *s)
{
    if (s)
        json_object_set_new(object, key, json_string(s));
}

/* What a finding's text is, by its verdict. */
static const char *text_key(PassVerdict v)
{
    return v == PASS_proved    ? "scope"
           : v == PASS_refuted ? "witness"
                               : "reason";
}

static json_t *json_findings(const Certificate *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->findings.len; i++) {
        const PassFinding *f = &c->findings.data[i];
        if (f->verdict == PASS_not_run)
            continue;
        json_t *j = json_object();
        const char *text = f->text;
        if (!text && f->verdict == PASS_proved)
            text = "all sizes";
        set_text(j, "check", f->check);
        set_text(j, "procedure", f->proc);
        set_text(j, "verdict", pass_verdict_name(f->verdict));
        set_text(j, text_key(f->verdict), text);
        json_array_append_new(list, j);
    }
    return list;
}

static const char *reason_not_run(const Certificate *c, const char *check)
{
    for (size_t i = 0; i < c->findings.len; i++) {
        const PassFinding *f = &c->findings.data[i];
        if (!strcmp(f->check, check) && f->verdict == PASS_not_run && f->text)
            return f->text;
    }
    return "not asked for";
}

static json_t *json_not_run(const Certificate *c)
{
    json_t *object = json_object();
    const char *check;
    for (unsigned i = 0; (check = known_check(i)); i++)
        if (verdict_of(c, check) == PASS_not_run)
            set_text(object, check, reason_not_run(c, check));
    for (size_t i = 0; i < c->findings.len; i++)
        if (c->findings.data[i].verdict == PASS_not_run)
            set_text(object, c->findings.data[i].check,
                     c->findings.data[i].text);
    return object;
}

static json_t *json_kernels(const Certificate *c)
{
    json_t *object = json_object();
    for (size_t i = 0; i < c->kernels.len; i++) {
        const CertKernel *k = &c->kernels.data[i];
        json_t *j = json_object();
        char abi[32];
        snprintf(abi, sizeof abi, "%016llx", (unsigned long long)k->abi);
        set_text(j, "abi", abi);
        json_object_set_new(j, "smem_bytes", json_integer(k->smem_bytes));
        if (k->registers >= 0)
            json_object_set_new(j, "registers", json_integer(k->registers));
        json_object_set_new(object, k->name, j);
    }
    return object;
}

static json_t *json_hashes(const Certificate *c)
{
    json_t *object = json_object();
    for (size_t i = 0; i < c->texts.len; i++)
        set_text(object, c->texts.data[i].name, c->texts.data[i].sha256);
    return object;
}

/* What the verdicts take for granted. */
static json_t *json_assumptions(void)
{
    static const char *const list[] = {
        "the host checks of the generated library, or checks like them, hold",
        "floating-point equality is up to what docs/semantics.md states",
    };
    json_t *array = json_array();
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        json_array_append_new(array, json_string(list[i]));
    return array;
}

void certificate_print(const Certificate *c, StrBuf *out)
{
    json_t *root = json_object();
    set_text(root, "version", "1");
    set_text(root, "compiler", EXO_VERSION);
    set_text(root, "arch", c->arch);
    json_object_set_new(root, "assumptions", json_assumptions());
    json_object_set_new(root, "checks", json_findings(c));
    json_object_set_new(root, "not_run", json_not_run(c));
    json_object_set_new(root, "kernels", json_kernels(c));
    json_object_set_new(root, "sha256", json_hashes(c));
    if (c->sizes)
        set_text(root, "sizes", c->sizes);
    if (c->scheduled && c->scheduled->given)
        json_object_set_new(root, "schedule",
                            certificate_schedule(c->scheduled));
    char *text = json_dumps(root, JSON_SORT_KEYS | JSON_INDENT(2));
    if (text)
        strbuf_addf(out, "%s\n", text);
    free(text);
    json_decref(root);
}

#else

bool certificate_available(void)
{
    return false;
}

void certificate_print(const Certificate *c, StrBuf *out)
{
    (void)c;
    (void)out;
}

#endif
