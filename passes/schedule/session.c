/* The state of a session and the lines that move it on.
 *
 * Each step works on a clone, which takes the module's place when the step
 * succeeded and left it well-formed. Before a line the module and the lengths
 * of all logs are set down, so that going back is putting them in place again;
 * going forward again takes the line anew. */
#include "passes/schedule/session.h"

#include "ir/exo_build.h"
#include "ir/wellformed.h"
#include "passes/schedule/pattern.h"
#include "passes/schedule/run.h"
#include "passes/schedule/words.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_INCLUDES = 32, MAX_REPEAT = 1000, MAX_STEPS = 20000 };

/* All that a line may change. The logs only grow, so their lengths do. */
typedef struct State {
    Module *m;
    const char *proc;
    size_t edits, notes, names, params, steps;
} State;

typedef struct Taken {
    const char *line;
    State before; /* owns its module */
} Taken;

struct SchedSession {
    Ctx *ctx;
    Module **m;
    const SchedOptions *o;
    bool undo;
    const char *proc;
    Arena *arena;
    EditLog log;
    KinLog kin;
    SchedNameVec names;
    VEC(SchedParam) params;
    VEC(SchedParam) iters; /* of the `each` around the line */
    bool *meant; /* of the options' parameters: those that a line names */
    SchedResult result;
    VEC(Taken) taken;
    VEC(const char *) undone;
    Module *kept;       /* the state before the line has it: not to be freed */
    const char *under;  /* the name below which steps look, or NULL */
    size_t first_param; /* of the file, or of those around it */
    unsigned depth, n_steps;
};

static bool run_error(SchedSession *r, Loc loc, const char *fmt, ...)
    EXO_PRINTF(3, 4);
static bool run_error(SchedSession *r, Loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_error(r->ctx, loc, "schedule", "%s", arena_vprintf(r->arena, fmt, ap));
    va_end(ap);
    return false;
}

/* ---- the procedure ----------------------------------------------------- */

static bool is_public(const Op *op)
{
    return op->code == OP_ctl_proc && *op_attr_str(op, "name", "_") != '_' &&
           !op_attr_int(op, "imported", 0);
}

/* The name of the only public procedure, or NULL. */
static const char *only_proc(const Module *m)
{
    const char *name = NULL;
    for (const Op *op = m->body->first; op; op = op->next) {
        if (!is_public(op))
            continue;
        if (name)
            return NULL;
        name = op_attr_str(op, "name", "");
    }
    return name;
}

static bool find_proc(SchedSession *r, Loc loc)
{
    if (r->proc)
        return module_symbol(*r->m, r->proc) ||
               run_error(r, loc, "there is no procedure '%s'", r->proc);
    r->proc = only_proc(*r->m);
    for (const Op *op = (*r->m)->body->first; op && !r->proc; op = op->next)
        if (is_public(op))
            return run_error(r, loc,
                             "there are several procedures: name one by a "
                             "line `proc NAME`");
    return r->proc || run_error(r, loc, "there is no procedure to schedule");
}

/* ---- parameters -------------------------------------------------------- */

static const char *param_value(const SchedSession *r, const char *name)
{
    for (size_t i = r->iters.len; i-- > 0;)
        if (!strcmp(r->iters.data[i].name, name))
            return r->iters.data[i].value;
    for (unsigned i = 0; i < r->o->n_params; i++)
        if (!strcmp(r->o->params[i].name, name))
            return r->o->params[i].value;
    for (size_t i = r->params.len; i-- > 0;)
        if (!strcmp(r->params.data[i].name, name))
            return r->params.data[i].value;
    return NULL;
}

static void note_meant(SchedSession *r, const char *name)
{
    for (unsigned i = 0; i < r->o->n_params; i++)
        r->meant[i] |= !strcmp(r->o->params[i].name, name);
}

static size_t name_length(const char *p)
{
    return strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                     "0123456789");
}

/* The parameters that a line names, whether or not it will be run. */
static void note_line(SchedSession *r, const char *line)
{
    while ((line = strchr(line, '$'))) {
        size_t n = name_length(++line);
        note_meant(r, arena_strndup(r->arena, line, n));
        line += n;
    }
}

bool sched_session_params_meant(SchedSession *r)
{
    bool all = true;
    for (unsigned i = 0; i < r->o->n_params; i++)
        if (!r->meant[i])
            all = run_error(r, (Loc){ 0 },
                            "--param %s=%s: the schedule has no parameter $%s",
                            r->o->params[i].name, r->o->params[i].value,
                            r->o->params[i].name);
    return all;
}

/* The element type of a tensor parameter. */
static bool ask_type(Sched *s, Loc loc, const char *name, StrBuf *out)
{
    const Value *v = sched_tensor_param(s, loc, name);
    if (v)
        strbuf_add(out, scalar_type_name(v->type->elem));
    return v != NULL;
}

/* How many statements match a pattern. */
static bool ask_count(Sched *s, Loc loc, const char *pattern, StrBuf *out)
{
    OpVec found = { 0 };
    if (!sched_listing(s) ||
        !pattern_find(s, s->under, loc, sched_unquote(s, pattern), &found))
        return false;
    strbuf_addf(out, "%zu", found.len);
    return true;
}

/* What `$(lo CURSOR)` and its like stand for. */
static bool ask(SchedSession *r, Sched *s, Loc loc, const char *q, StrBuf *out)
{
    const char *after = word_end(q);
    const char *what = arena_strndup(r->arena, q, (size_t)(after - q));
    after += strspn(after, " ");
    const char *end = word_end(after);
    const char *cursor = arena_strndup(r->arena, after, (size_t)(end - after));
    Cursor c;
    if (!strcmp(what, "type"))
        return ask_type(s, loc, cursor, out);
    if (!strcmp(what, "count"))
        return ask_count(s, loc, cursor, out);
    if (!cursor_read(s, &r->names, loc, cursor, &c))
        return false;
    bool lo = !strcmp(what, "lo");
    if ((lo || !strcmp(what, "hi")) && c.first->code == OP_ctl_for) {
        strbuf_addf(out, "(%s)",
                    sched_index_text(s, c.first->operands[!lo].u.index));
        return true;
    }
    long k = strtol(end, NULL, 10);
    if (!strcmp(what, "dim") && c.first->code == OP_mem_alloc && k >= 0 &&
        k < (long)c.first->results[0]->type->rank) {
        strbuf_addf(out, "(%s)",
                    sched_index_text(s, c.first->results[0]->shape[k]));
        return true;
    }
    return run_error(r, loc,
                     "expected $(lo LOOP), $(hi LOOP), $(dim ALLOC k), "
                     "$(type PARAMETER) or $(count PATTERN), found '$(%s)'",
                     q);
}

/* The value of a constant expression. */
static bool constant(SchedSession *r, Sched *s, Loc loc, const char *text,
                     Param *out)
{
    Build b;
    AstExpr *e = exo_syntax_expr(r->ctx, s->arena, loc, text, strlen(text));
    if (!e)
        return false;
    build_init(&b, s->m, s->m->lib, s->arena);
    return build_const(&b, e, out);
}

static bool expand(SchedSession *r, Sched *s, Loc loc, const char *line,
                   StrBuf *out);

/* The first error since the mark, or NULL. */
static Diag *error_since(const SchedSession *r, CtxMark mark)
{
    const Diag *d = ctx_diags_since(r->ctx, mark);
    while (d && d->severity != SEV_error)
        d = d->next;
    return (Diag *)d;
}

/* On the report of a constant that has no value: how it is written. */
static void note_constant(SchedSession *r, CtxMark mark, const char *raw,
                          const char *text)
{
    Diag *d = error_since(r, mark);
    if (d && strcmp(raw, text))
        diag_note(r->ctx, d, (Loc){ 0 }, "in `%s`, here `%s`", raw, text);
}

/* What `$[EXPR]` stands for: a text without its quotes. */
static bool calculate(SchedSession *r, Sched *s, Loc loc, const char *q,
                      StrBuf *out)
{
    StrBuf text = { 0 };
    Param value;
    CtxMark mark = ctx_mark(r->ctx);
    bool ok = expand(r, s, loc, q, &text);
    if (ok && !constant(r, s, loc, strbuf_text(&text), &value)) {
        note_constant(r, mark, q, strbuf_text(&text));
        ok = false;
    }
    strbuf_free(&text);
    if (ok && value.kind == PARAM_str)
        strbuf_add(out, value.s);
    else if (ok)
        param_print(out, &value);
    return ok;
}

/* What stands in the bracket that opens at p; *end is behind it. */
static const char *bracketed(SchedSession *r, const char *p, const char **end)
{
    const char close = *p == '(' ? ')' : ']';
    size_t n = 0;
    for (int depth = 0; p[n]; n++)
        if ((depth += (p[n] == *p) - (p[n] == close)) == 0)
            break;
    *end = p + n + (p[n] != 0);
    return arena_strndup(r->arena, p + 1, n ? n - 1 : 0);
}

/* Puts values in place of $P, $(..) and $[..]. */
static bool expand(SchedSession *r, Sched *s, Loc loc, const char *line,
                   StrBuf *out)
{
    for (const char *p = line; *p;) {
        if (*p != '$') {
            strbuf_addc(out, *p++);
            continue;
        }
        if (p[1] == '(' || p[1] == '[') {
            bool question = p[1] == '(';
            const char *q = bracketed(r, p + 1, &p);
            if (!(question ? ask : calculate)(r, s, loc, q, out))
                return false;
            continue;
        }
        size_t n = name_length(p + 1);
        const char *name = arena_strndup(r->arena, p + 1, n);
        const char *value = param_value(r, name);
        if (!value)
            return run_error(r, loc,
                             "the parameter $%s has no value: give it "
                             "with --param %s=..",
                             name, name);
        strbuf_add(out, value);
        p += 1 + n;
    }
    return true;
}

/* ---- one step ---------------------------------------------------------- */

static Sched open_step(SchedSession *r, Loc loc, Arena *arena, Module *m)
{
    Sched s = { .ctx = r->ctx,
                .m = m,
                .proc = module_symbol(m, r->proc),
                .prover = r->o->prover,
                .arena = arena,
                .log = &r->log,
                .kin = &r->kin,
                .loc = loc };
    if (r->under)
        s.under = cursor_named(&s, &r->names, r->under);
    return s;
}

/* How much was asked before a step. */
typedef struct Asked {
    unsigned long all, open;
} Asked;

static Asked asked_so_far(const SchedSession *r)
{
    const ProverStats *first = r->o->layer1;
    return (Asked){ r->o->prover->stats.queries, first ? first->unknown : 0 };
}

static void record(SchedSession *r, const Sched *s, const char *text,
                   Asked before)
{
    Asked now = asked_so_far(r);
    const char *name =
        s->proc ? ctx_intern(r->ctx, op_attr_str(s->proc, "name", "")) : NULL;
    SchedRecord rec = { .text = text,
                        .loc = s->loc,
                        .proc = r->proc,
                        .then = name,
                        .made = s->made,
                        .asked = (unsigned)(now.all - before.all),
                        .asked_solver = (unsigned)(now.open - before.open),
                        .reassociates = s->reassociates,
                        .rounds = s->rounds };
    VEC_PUSH(ctx_arena(r->ctx), &r->result.steps, rec);
    r->proc = name;
    if (name && s->reassociates)
        kin_note(&r->kin, KIN_reassociates, name, NULL);
    if (name && s->rounds)
        kin_note(&r->kin, KIN_rounds, name, NULL);
}

static void bind_result(SchedSession *r, const Step *step, uint32_t sid)
{
    SchedName n = { step->bind, sid, r->log.edits.len };
    if (step->bind && sid)
        VEC_PUSH(r->arena, &r->names, n);
}

/* A line as a step. */
typedef struct StepText {
    const char *text; /* with values in place */
    bool is_step;     /* of a known operator, or not known to be none */
} StepText;

/* Runs the line as a step on a clone. */
static bool run_step(SchedSession *r, Loc loc, const char *line, StepText *t)
{
    Arena *arena = arena_new();
    Module *clone = module_clone(*r->m);
    Sched s = open_step(r, loc, arena, clone);
    SchedArg args[SCHED_MAX_ARGS];
    StrBuf text = { 0 };
    Step step;
    size_t edits = r->log.edits.len, notes = r->kin.notes.len;
    Asked asked = asked_so_far(r);
    unsigned errors = ctx_error_count(r->ctx);
    bool ok = expand(r, &s, loc, line, &text);
    const char *plain = ctx_intern(r->ctx, ok ? strbuf_text(&text) : line);
    t->text =
        r->under ? arena_printf(ctx_arena(r->ctx), "in %s: %s", r->under, plain)
                 : plain;
    if (r->o->about)
        r->o->about(r->o->user, t->text);
    t->is_step = !ok || step_parse(r->ctx, r->arena, loc, plain, &step);
    ok = ok && t->is_step &&
         (!r->under || s.under ||
          run_error(r, loc, "the statement named '%s' was erased", r->under)) &&
         sched_args_read(&s, &r->names, step.op, step.n, step.args, args);
    if (ok) {
        s.result = args[0].at.first ? args[0].at.first->sid : 0;
        ok = step.op->run(&s, args) && ctx_error_count(r->ctx) == errors &&
             module_wellformed(clone, step.op->name);
    }
    if (ok) {
        edit_complete(&r->log, edits, *r->m, clone);
        record(r, &s, t->text, asked);
        bind_result(r, &step, s.result);
        if (*r->m != r->kept)
            module_free(*r->m);
        *r->m = clone;
    } else {
        r->log.edits.len = edits;
        r->kin.notes.len = notes;
        module_free(clone);
    }
    strbuf_free(&text);
    arena_free(arena);
    return ok;
}

/* The procedure before a failing step, on the report. */
static void show_before(SchedSession *r, Diag *d, const char *text)
{
    Arena *arena = arena_new();
    ExoListing l;
    const Op *proc = module_symbol(*r->m, r->proc);
    CtxMark mark = ctx_mark(r->ctx);
    if (proc && exo_list_proc(*r->m, proc, arena, &l)) {
        diag_note(r->ctx, d, (Loc){ 0 }, "the procedure before this step:\n%s",
                  l.text);
        diag_note(r->ctx, d, (Loc){ 0 }, "the step: %s", text);
    } else {
        ctx_rollback(r->ctx, mark);
    }
    arena_free(arena);
}

static bool run_repeat(SchedSession *r, Loc loc, const char *line)
{
    StepText t;
    for (unsigned i = 0; i < MAX_REPEAT; i++) {
        CtxMark mark = ctx_mark(r->ctx);
        if (!run_step(r, loc, line, &t)) {
            if (!t.is_step)
                return false;
            ctx_rollback(r->ctx, mark);
            return true;
        }
    }
    return run_error(r, loc, "the step still applies after %d times",
                     MAX_REPEAT);
}

static bool run_line(SchedSession *r, Loc loc, const char *line)
{
    StepText t;
    CtxMark mark = ctx_mark(r->ctx);
    if (++r->n_steps > MAX_STEPS)
        return run_error(r, loc, "more than %d steps", MAX_STEPS);
    if (!find_proc(r, loc))
        return false;
    if (!strncmp(line, "repeat ", 7))
        return run_repeat(r, loc, line + 7);
    bool may_fail = !strncmp(line, "try ", 4);
    if (run_step(r, loc, may_fail ? line + 4 : line, &t))
        return true;
    if (may_fail && t.is_step) {
        ctx_rollback(r->ctx, mark);
        return true;
    }
    Diag *d = error_since(r, mark);
    if (d && !r->undo)
        show_before(r, d, t.text);
    return false;
}

/* ---- any line ----------------------------------------------------------- */

static bool run_any(SchedSession *r, Loc loc, const char *line);

/* A line of an included file. */
static bool take_part(void *session, Loc loc, const char *line)
{
    return run_any(session, loc, line);
}

/* The text with the values that it has in the program as it now is, or NULL. */
static const char *expanded_now(SchedSession *r, Loc loc, const char *text,
                                size_t n)
{
    if (!memchr(text, '$', n))
        return arena_strndup(r->arena, text, n);
    if (!find_proc(r, loc))
        return NULL;
    Arena *arena = arena_new();
    Sched s = open_step(r, loc, arena, *r->m);
    StrBuf out = { 0 };
    const char *result = NULL;
    if (expand(r, &s, loc, arena_strndup(arena, text, n), &out))
        result = arena_strdup(r->arena, strbuf_text(&out));
    strbuf_free(&out);
    arena_free(arena);
    return result;
}

/* The values that an include gives to parameters of its file. */
static bool take_values(SchedSession *r, Loc loc, const char *p)
{
    while (*(p += strspn(p, " "))) {
        const char *end = word_end(p);
        size_t n = name_length(p);
        if (!n || p[n] != '=')
            return run_error(r, loc,
                             "expected include \"FILE\" NAME=VALUE .., found "
                             "'%s'",
                             p);
        const char *from = p + n + 1;
        bool quoted = *from == '`' && end > from + 1;
        const char *value = expanded_now(r, loc, from + quoted,
                                         (size_t)(end - from) - 2 * quoted);
        SchedParam v = { arena_strndup(r->arena, p, n), value };
        if (!value)
            return false;
        VEC_PUSH(r->arena, &r->iters, v);
        p = end;
    }
    return true;
}

/* Runs the lines of a file. Where values are given, its parameters end with
 * it. */
static bool run_file(SchedSession *r, Loc loc, const char *path,
                     const char *values)
{
    size_t iters = r->iters.len, params = r->params.len;
    size_t first = r->first_param;
    bool own = *values != '\0';
    uint32_t file = ctx_read_source(r->ctx, path);
    r->first_param = own ? params : first;
    r->depth++;
    bool ok = file && take_values(r, loc, values) &&
              schedule_lines(r->ctx, file, take_part, r);
    r->depth--;
    r->first_param = first;
    r->iters.len = iters;
    if (own)
        r->params.len = params;
    return ok;
}

static bool run_include(SchedSession *r, Loc loc, const char *arg)
{
    const char *end = *arg == '"' ? strchr(arg + 1, '"') : NULL;
    size_t n = end ? (size_t)(end + 1 - arg) : 0;
    if (n < 3)
        return run_error(r, loc, "expected include \"FILE\"");
    const char *from = ctx_source_name(r->ctx, loc.file);
    const char *slash = strrchr(from, '/');
    int dir = slash && arg[1] != '/' ? (int)(slash - from) + 1 : 0;
    const char *path =
        arena_printf(r->arena, "%.*s%.*s", dir, from, (int)n - 2, arg + 1);
    if (r->depth >= MAX_INCLUDES)
        return run_error(r, loc, "includes nest deeper than %d", MAX_INCLUDES);
    return run_file(r, loc, path, arg + n + strspn(arg + n, " "));
}

static bool run_param(SchedSession *r, Loc loc, const char *arg)
{
    size_t n = strcspn(arg, " =");
    const char *value = arg + n + strspn(arg + n, " ");
    if (!n || *value != '=')
        return run_error(r, loc, "expected param NAME = VALUE");
    value += 1 + strspn(value + 1, " ");
    const char *text = expanded_now(r, loc, value, strlen(value));
    SchedParam p = { arena_strndup(r->arena, arg, n), text };
    for (size_t i = r->first_param; i < r->params.len; i++)
        if (!strcmp(r->params.data[i].name, p.name))
            return run_error(r, loc,
                             "the parameter %s has the default '%s' already",
                             p.name, r->params.data[i].value);
    note_meant(r, p.name);
    VEC_PUSH(r->arena, &r->params, p);
    return text != NULL;
}

/* Where the `: STEP` of `when` and `each` begins, or NULL. */
static const char *behind_colon(const char *p)
{
    char quote = 0;
    for (int depth = 0; *p; p++) {
        if (quote)
            quote = *p == quote ? 0 : quote;
        else if (*p == '`' || *p == '"')
            quote = *p;
        else if (strchr("([{", *p))
            depth++;
        else if (strchr(")]}", *p))
            depth--;
        else if (*p == ':' && depth == 0)
            return p;
    }
    return NULL;
}

/* A value that a line's head bears, seen in the program as it now is. */
static bool head_value(SchedSession *r, Loc loc, const char *text, size_t n,
                       ParamKind kind, Param *out)
{
    CtxMark mark = ctx_mark(r->ctx);
    const char *expr = expanded_now(r, loc, text, n);
    if (!expr || !find_proc(r, loc))
        return false;
    Arena *arena = arena_new();
    Sched s = open_step(r, loc, arena, *r->m);
    bool ok = constant(r, &s, loc, expr, out);
    if (ok && out->kind != kind)
        ok =
            run_error(r, loc, "expected %s, found '%s'",
                      kind == PARAM_bool ? "a comparison" : "an integer", expr);
    if (!ok)
        note_constant(r, mark, arena_strndup(arena, text, n), expr);
    arena_free(arena);
    return ok;
}

static bool run_when(SchedSession *r, Loc loc, const char *arg)
{
    const char *colon = behind_colon(arg);
    Param yes;
    if (!colon)
        return run_error(r, loc, "expected when CONDITION: STEP");
    if (!head_value(r, loc, arg, (size_t)(colon - arg), PARAM_bool, &yes))
        return false;
    return !yes.i || run_any(r, loc, colon + 1 + strspn(colon + 1, " "));
}

/* `require CONDITION: "TEXT"`: the text is the error where the condition does
 * not hold. */
static bool run_require(SchedSession *r, Loc loc, const char *arg)
{
    const char *colon = behind_colon(arg);
    const char *text = colon ? colon + 1 + strspn(colon + 1, " ") : "";
    size_t n = strlen(text), head = colon ? (size_t)(colon - arg) : 0;
    CtxMark mark = ctx_mark(r->ctx);
    Param holds;
    if (n < 3 || *text != '"' || strchr(text + 1, '"') != text + n - 1)
        return run_error(r, loc, "expected require CONDITION: \"TEXT\"");
    if (!head_value(r, loc, arg, head, PARAM_bool, &holds))
        return false;
    if (holds.i)
        return true;
    const char *why = expanded_now(r, loc, text + 1, n - 2);
    const char *found = why ? expanded_now(r, loc, arg, head) : NULL;
    if (!found)
        return false;
    run_error(r, loc, "%s", why);
    diag_note(r->ctx, error_since(r, mark), (Loc){ 0 },
              "the schedule requires `%.*s`, here `%s`", (int)head, arg, found);
    return false;
}

static bool run_each(SchedSession *r, Loc loc, const char *arg)
{
    const char *colon = behind_colon(arg), *in = strstr(arg, " in ");
    const char *dots = in ? strstr(in, "..") : NULL;
    Param lo, hi;
    if (!colon || !dots || dots > colon)
        return run_error(r, loc, "expected each NAME in LO..HI: STEP");
    if (!head_value(r, loc, in + 4, (size_t)(dots - in - 4), PARAM_int, &lo) ||
        !head_value(r, loc, dots + 2, (size_t)(colon - dots - 2), PARAM_int,
                    &hi))
        return false;
    size_t outer = r->iters.len;
    const char *name = arena_strndup(r->arena, arg, (size_t)(in - arg));
    bool ok = true;
    for (int64_t i = lo.i; i < hi.i && ok; i++) {
        SchedParam p = { name, arena_printf(r->arena, "%lld", (long long)i) };
        VEC_PUSH(r->arena, &r->iters, p);
        ok = ++r->n_steps <= MAX_STEPS
                 ? run_any(r, loc, colon + 1 + strspn(colon + 1, " "))
                 : run_error(r, loc, "more than %d steps", MAX_STEPS);
        r->iters.len = outer;
    }
    return ok;
}

/* `in NAME: LINE`, whose cursors are looked for below the statement. */
static bool run_in(SchedSession *r, Loc loc, const char *arg)
{
    const char *colon = behind_colon(arg), *around = r->under;
    const char *head =
        colon ? expanded_now(r, loc, arg, (size_t)(colon - arg)) : "";
    if (!head)
        return false;
    if (!*head || head[name_length(head)])
        return run_error(r, loc,
                         "expected in NAME: STEP, NAME that of a statement");
    const char *name = ctx_intern(r->ctx, head);
    size_t k = 0;
    while (k < r->names.len && r->names.data[k].name != name)
        k++;
    if (k == r->names.len)
        return run_error(r, loc, "no step was named '%s'", name);
    r->under = name;
    bool ok = run_any(r, loc, colon + 1 + strspn(colon + 1, " "));
    r->under = around;
    return ok;
}

static bool run_any(SchedSession *r, Loc loc, const char *line)
{
    note_line(r, line);
    if (!strncmp(line, "in ", 3))
        return run_in(r, loc, line + 3);
    if (!strncmp(line, "when ", 5))
        return run_when(r, loc, line + 5);
    if (!strncmp(line, "each ", 5))
        return run_each(r, loc, line + 5);
    if (!strncmp(line, "require ", 8))
        return run_require(r, loc, line + 8 + strspn(line + 8, " "));
    if (!strncmp(line, "include ", 8))
        return run_include(r, loc, line + 8 + strspn(line + 8, " "));
    if (!strncmp(line, "param ", 6))
        return run_param(r, loc, line + 6 + strspn(line + 6, " "));
    if (!strncmp(line, "proc ", 5)) {
        r->proc = ctx_intern(r->ctx, line + 5 + strspn(line + 5, " "));
        return find_proc(r, loc);
    }
    return run_line(r, loc, line);
}

/* ---- going back and forth ----------------------------------------------- */

static State state_now(const SchedSession *r)
{
    return (State){ .m = *r->m,
                    .proc = r->proc,
                    .edits = r->log.edits.len,
                    .notes = r->kin.notes.len,
                    .names = r->names.len,
                    .params = r->params.len,
                    .steps = r->result.steps.len };
}

static void go_back(SchedSession *r, const State *to)
{
    if (*r->m != to->m)
        module_free(*r->m);
    *r->m = to->m;
    r->proc = to->proc;
    r->log.edits.len = to->edits;
    r->kin.notes.len = to->notes;
    r->names.len = to->names;
    r->params.len = to->params;
    r->result.steps.len = to->steps;
}

/* The line on top of a state that can be gone back to. */
static bool take_line(SchedSession *r, Loc loc, const char *line)
{
    Taken t = { arena_strdup(r->arena, line), state_now(r) };
    r->kept = t.before.m;
    if (!run_any(r, loc, line)) {
        go_back(r, &t.before);
        return false;
    }
    /* A line without a step leaves the module: the state gets its own. */
    if (*r->m == t.before.m)
        *r->m = module_clone(t.before.m);
    VEC_PUSH(r->arena, &r->taken, t);
    return true;
}

bool sched_session_line(SchedSession *r, Loc loc, const char *line)
{
    if (!r->undo)
        return run_any(r, loc, line);
    if (!take_line(r, loc, line))
        return false;
    r->undone.len = 0;
    return true;
}

bool sched_session_undo(SchedSession *r)
{
    if (!r->taken.len)
        return false;
    Taken t = r->taken.data[--r->taken.len];
    go_back(r, &t.before);
    VEC_PUSH(r->arena, &r->undone, t.line);
    return true;
}

bool sched_session_redo(SchedSession *r)
{
    if (!r->undone.len)
        return false;
    return take_line(r, (Loc){ 0 }, r->undone.data[--r->undone.len]);
}

const char *sched_session_taken(const SchedSession *r, unsigned i)
{
    return i < r->taken.len ? r->taken.data[i].line : NULL;
}

/* ---- what is there ------------------------------------------------------ */

const Op *sched_session_proc(const SchedSession *r)
{
    CtxMark mark = ctx_mark(r->ctx);
    const char *name = r->proc ? r->proc : only_proc(*r->m);
    ctx_rollback(r->ctx, mark);
    return name ? module_symbol(*r->m, name) : NULL;
}

const SchedResult *sched_session_result(const SchedSession *r)
{
    return &r->result;
}

void sched_session_names(SchedSession *r,
                         void (*fn)(const char *name, void *user), void *user)
{
    Arena *arena = arena_new();
    const Op *proc = sched_session_proc(r);
    ExoListing l;
    CtxMark mark = ctx_mark(r->ctx);
    for (size_t i = 0; i < r->names.len; i++)
        fn(r->names.data[i].name, user);
    if (proc && exo_list_proc(*r->m, proc, arena, &l))
        for (size_t i = 0; i < l.marks.len; i++) {
            const Op *op = l.marks.data[i].op;
            const char *name = NULL;
            if (op && op->code == OP_ctl_for)
                name = l.var_names[sched_loop_var(op)];
            else if (op && op->code == OP_mem_alloc)
                name = l.value_names[op->results[0]->id];
            if (name)
                fn(arena_printf(arena, "`%s`", name), user);
        }
    ctx_rollback(r->ctx, mark);
    arena_free(arena);
}

void sched_session_note_origins(SchedSession *r, const char *schedule)
{
    SchedOriginVec all = { 0 };
    sched_origins(r->arena, &r->result, &all);
    for (size_t i = 0; i < all.len; i++) {
        const SchedOrigin *o = &all.data[i];
        Op *proc = module_symbol(*r->m, o->proc);
        if (!proc)
            continue;
        const char *old = proc->comment ? proc->comment : "";
        proc->comment = ctx_intern(
            r->ctx,
            arena_printf(r->arena, "%s%sscheduled from %s by %s, %zu step%s",
                         old, *old ? "\n" : "", o->from, schedule, o->steps.len,
                         o->steps.len == 1 ? "" : "s"));
    }
}

/* ---- life --------------------------------------------------------------- */

SchedSession *sched_session_new(Ctx *ctx, Module **m, const SchedOptions *o,
                                bool undo)
{
    Arena *arena = arena_new();
    SchedSession *r = ARENA_NEW(arena, SchedSession);
    *r = (SchedSession){ .ctx = ctx,
                         .m = m,
                         .o = o,
                         .undo = undo,
                         .proc = o->proc ? ctx_intern(ctx, o->proc) : NULL,
                         .arena = arena };
    r->log.arena = r->kin.arena = arena;
    r->meant = ARENA_ARRAY(arena, bool, o->n_params + 1);
    return r;
}

void sched_session_free(SchedSession *r)
{
    for (size_t i = 0; r && i < r->taken.len; i++)
        module_free(r->taken.data[i].before.m);
    if (r)
        arena_free(r->arena);
}
