/* What exo-check asks and how it answers. */
#include "tools/check_report.h"

#include "tools/checks.h"
#include "tools/input.h"

#include <stdio.h>
#include <string.h>

ToolStatus check_missing(const Options *o, const char *part)
{
    fprintf(stderr, "exo-%s: %s is not part of this build\n", o->tool, part);
    return TOOL_missing;
}

/* Is this one of the procedures that are asked about? */
static bool is_asked(const Options *o, const Op *op)
{
    const char *name = options_value(o, "--proc", NULL);
    if (!name)
        return proc_is_public(op) || op->code == OP_host_proc;
    return (op->code == OP_ctl_proc || op->code == OP_host_proc) &&
           !strcmp(op_attr_str(op, "name", ""), name);
}

/* ---- sizes -------------------------------------------------------------- */

typedef struct Sizes {
    Arena *arena;
    const Module *m;
    const Options *options;
    const Op *proc; /* whose asserts are evaluated */
    VEC(PassOption) given;
    const char *bad; /* a name that is no parameter */
} Sizes;

static bool add_size(const char *name, size_t n, int64_t value, void *user)
{
    Sizes *s = user;
    PassOption p = { .key = arena_strndup(s->arena, name, n) };
    p.value = (Param){ .kind = PARAM_int, .i = value };
    VEC_PUSH(s->arena, &s->given, p);
    for (const Op *op = s->m->body->first; op; op = op->next)
        if (is_asked(s->options, op) && proc_has_parameter(s->m, op, p.key))
            return true;
    s->bad = p.key;
    return false;
}

static bool size_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Sizes *s = env->user;
    if (atom->kind != ATOM_var)
        return false;
    const char *name = var_get(s->m->exprs, atom->var)->name;
    for (size_t i = 0; i < s->given.len; i++)
        if (name && !strcmp(s->given.data[i].key, name)) {
            *out = s->given.data[i].value.i;
            return true;
        }
    return false;
}

/* A size of 0, or an assert that the sizes break. */
static bool sizes_fit(Ctx *ctx, Sizes *s, const char *text)
{
    Env env = { size_value, s };
    bool ok = true;
    for (const Op *op = s->proc->blocks[0]->first; op; op = op->next) {
        bool holds;
        if (op->code != OP_ctl_assert ||
            !cond_eval(op->operands[0].u.cond, &env, &holds) || holds)
            continue;
        diag_error(ctx, op->loc, "precondition",
                   "the sizes %s break this assert of %s", text,
                   op_attr_str(s->proc, "name", "_"));
        ok = false;
    }
    for (size_t i = 0; i < s->given.len; i++)
        if (s->given.data[i].value.i < 1 &&
            proc_has_parameter(s->m, s->proc, s->given.data[i].key)) {
            diag_error(ctx, s->proc->loc, "size",
                       "the size %s must be positive, found %lld",
                       s->given.data[i].key,
                       (long long)s->given.data[i].value.i);
            ok = false;
        }
    return ok;
}

ToolStatus check_sizes(Ctx *ctx, const Module *m, const Options *o)
{
    const char *text = options_joined(o, "--size");
    if (!text)
        return TOOL_done;
    Sizes s = { .arena = ctx_arena(ctx), .m = m, .options = o };
    if (!options_sizes(text, add_size, &s))
        return s.bad
                   ? options_usage(o,
                                   "--size: no procedure that is checked "
                                   "has a parameter %s",
                                   s.bad)
                   : options_usage(o, "--size takes M=1,N=2, found '%s'", text);
    bool ok = true;
    for (const Op *op = m->body->first; op; op = op->next) {
        s.proc = op;
        if (is_asked(o, op))
            ok &= sizes_fit(ctx, &s, text);
    }
    return ok ? TOOL_done : TOOL_wrong;
}

/* ---- side inputs -------------------------------------------------------- */

ToolStatus check_side_inputs(Ctx *ctx, const Options *o, CheckInputs *out)
{
    *out = (CheckInputs){ .proc = options_value(o, "--proc", NULL),
                          .sizes = options_joined(o, "--size") };
    const char *lowered = options_value(o, "--lowered", NULL);
    const char *ptx = options_value(o, "--ptx", NULL);
    if (lowered && !(out->lowered = input_read(ctx, o, lowered)))
        return TOOL_wrong;
    if (ptx && !(out->ptx = ctx_read_source(ctx, ptx)))
        return TOOL_wrong;
    return TOOL_done;
}

void check_inputs_free(CheckInputs *in)
{
    if (in->lowered)
        module_free(in->lowered);
}

/* ---- the pipeline ------------------------------------------------------- */

const char *check_sync_pass(Arena *a, const Options *o)
{
    const char *sizes = options_joined(o, "--size");
    if (!sizes || !*sizes)
        return "sync-check";
    char *text = arena_printf(a, "sync-check{%s}", sizes);
    for (char *at = text; *at; at++)
        if (*at == ',')
            *at = ' ';
    return text;
}

const char *check_pipeline(Arena *a, const Options *o, const char *level)
{
    if (!strcmp(level, "seq"))
        return "check-seq";
    if (!strcmp(level, "par"))
        return arena_printf(a, "check-seq,check-par,%s,check-async",
                            check_sync_pass(a, o));
    return "check-async";
}

/* ---- the report --------------------------------------------------------- */

static ToolStatus status_of(const Options *o, const PassFinding *f)
{
    bool all = options_has(o, "--require");
    switch (f->verdict) {
    case PASS_refuted:
        return TOOL_wrong;
    case PASS_unknown:
        return TOOL_undecided;
    case PASS_proved:
        return all && f->text && strcmp(f->text, "all sizes") ? TOOL_undecided
                                                              : TOOL_done;
    default:
        return TOOL_done; /* what was not run says nothing either way */
    }
}

static void print_finding(Ctx *ctx, const PassFinding *f, DiagFormat format,
                          StrBuf *out)
{
    StrBuf line = { 0 };
    tool_finding_print(&line, f);
    if (format == DIAG_text) {
        strbuf_addf(out, "%s\n", strbuf_text(&line));
    } else {
        Diag d = { .severity = SEV_remark, .code = f->check };
        d.message = strbuf_text(&line);
        d.witness = f->verdict == PASS_refuted ? f->text : NULL;
        diag_print(ctx, &d, format, out);
    }
    strbuf_free(&line);
}

ToolStatus check_report_print(Ctx *ctx, const Options *o, const PassManager *pm,
                              DiagFormat format, StrBuf *out)
{
    const char *proc = options_value(o, "--proc", NULL);
    ToolStatus status = TOOL_done;
    for (size_t i = 0; i < pm->findings.len; i++) {
        const PassFinding *f = &pm->findings.data[i];
        if (proc && f->proc && strcmp(f->proc, proc))
            continue;
        print_finding(ctx, f, format, out);
        status = tool_status_worse(status, status_of(o, f));
    }
    return status;
}
