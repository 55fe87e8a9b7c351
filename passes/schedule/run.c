/* Schedule files: a step a line.
 *
 *     # a comment
 *     param TILE_M = 128           a parameter with its default
 *     include "other.sched"        beside this file
 *     proc gemm                    the procedure; else the only public one
 *     [name =] op CURSOR arg .. key=value
 *     try op ..                    a step that may fail
 *     repeat op ..                 as often as it applies
 *
 * `$P` stands for a parameter's value; `$(lo CURSOR)`, `$(hi CURSOR)` for a
 * loop's bounds and `$(dim CURSOR k)` for an extent of an allocation, in the
 * program as it then is. Arguments are separated by blanks; back-quotes,
 * quotes and brackets hold blanks together. `\` at a line's end continues it.
 *
 * Each step works on a clone, which takes the module's place when the step
 * succeeded and left it well-formed. */
#include "passes/schedule/cursor.h"

#include "ir/wellformed.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_INCLUDES = 32, MAX_REPEAT = 1000, MAX_STEPS = 20000 };

typedef struct Run {
    Ctx *ctx;
    Module **m;
    const SchedOptions *o;
    SchedResult *result;
    const char *proc;
    Arena *arena; /* of the whole run */
    EditLog log;
    KinLog kin;
    SchedNameVec names;
    VEC(SchedParam) params;
    unsigned depth, n_steps, n_taken;
    const char *from; /* the first procedure scheduled, as it was named */
} Run;

static bool run_error(Run *r, Loc loc, const char *fmt, ...) EXO_PRINTF(3, 4);
static bool run_error(Run *r, Loc loc, const char *fmt, ...)
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

static bool find_proc(Run *r, Loc loc)
{
    const Op *found = NULL;
    if (r->proc)
        return module_symbol(*r->m, r->proc) ||
               run_error(r, loc, "there is no procedure '%s'", r->proc);
    for (const Op *op = (*r->m)->body->first; op; op = op->next) {
        if (!is_public(op))
            continue;
        if (found)
            return run_error(r, loc,
                             "there are several procedures: name one "
                             "by a line `proc NAME`");
        found = op;
    }
    if (!found)
        return run_error(r, loc, "there is no procedure to schedule");
    r->proc = op_attr_str(found, "name", "");
    return true;
}

/* ---- lines to words ---------------------------------------------------- */

/* The end of the word at p: a blank outside quotes and brackets. */
static const char *word_end(const char *p)
{
    int depth = 0;
    char quote = 0;
    for (; *p; p++) {
        if (quote) {
            quote = *p == quote ? 0 : quote;
        } else if (*p == '`' || *p == '"' || *p == '\'') {
            quote = *p;
        } else if (strchr("([{", *p)) {
            depth++;
        } else if (strchr(")]}", *p)) {
            depth--;
        } else if (depth <= 0 && (*p == ' ' || *p == '\t')) {
            break;
        }
    }
    return p;
}

/* The line without its comment: # after a blank, outside quotes. */
static char *without_comment(Arena *arena, const char *line, size_t n)
{
    char *s = arena_strndup(arena, line, n);
    char quote = 0;
    size_t len = 0;
    for (; s[len]; len++) {
        char c = s[len];
        if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '`' || c == '"')
            quote = c;
        else if (c == '#' && (!len || strchr(" \t", s[len - 1])))
            break;
    }
    while (len && strchr(" \t\r", s[len - 1]))
        len--;
    s[len] = 0;
    return s;
}

/* `key=` before a value, where key is a plain word. */
static size_t key_length(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz_0123456789");
    return n && word[n] == '=' && word[n + 1] != '=' ? n : 0;
}

/* ---- parameters -------------------------------------------------------- */

static const char *param_value(const Run *r, const char *name)
{
    for (unsigned i = 0; i < r->o->n_params; i++)
        if (!strcmp(r->o->params[i].name, name))
            return r->o->params[i].value;
    for (size_t i = r->params.len; i-- > 0;)
        if (!strcmp(r->params.data[i].name, name))
            return r->params.data[i].value;
    return NULL;
}

/* What `$(lo CURSOR)` and its like stand for. */
static bool ask(Run *r, Sched *s, Loc loc, const char *q, StrBuf *out)
{
    const char *after = word_end(q);
    const char *what = arena_strndup(r->arena, q, (size_t)(after - q));
    after += strspn(after, " ");
    const char *end = word_end(after);
    const char *cursor = arena_strndup(r->arena, after, (size_t)(end - after));
    Cursor c;
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
                     "expected $(lo LOOP), $(hi LOOP) or $(dim ALLOC k)"
                     ", found '$(%s)'",
                     q);
}

/* Puts values in place of $P and $(..). */
static bool expand(Run *r, Sched *s, Loc loc, const char *line, StrBuf *out)
{
    for (const char *p = line; *p;) {
        if (*p != '$') {
            strbuf_addc(out, *p++);
            continue;
        }
        if (p[1] == '(') {
            size_t n = 0;
            for (int depth = 0; p[1 + n]; n++)
                if ((depth += (p[1 + n] == '(') - (p[1 + n] == ')')) == 0)
                    break;
            if (!ask(r, s, loc, arena_strndup(r->arena, p + 2, n ? n - 1 : 0),
                     out))
                return false;
            p += 2 + n;
            continue;
        }
        size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                                 "TUVWXYZ_0123456789");
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

typedef struct Step {
    Loc loc;
    const char *bind; /* name = .., or NULL */
    const SchedOp *op;
    unsigned n;
    SchedText args[SCHED_MAX_ARGS];
} Step;

static void unknown_op(Run *r, Loc loc, const char *name)
{
    const SchedOther *other = sched_other_find(name);
    Diag *d = diag_error(r->ctx, loc, "schedule", "no operator '%s'", name);
    if (other)
        diag_fix(r->ctx, d, "write %s: %s", other->write, other->why);
    else
        diag_fix(r->ctx, d, "exo-opt --list-schedule-ops lists them");
}

static bool parse_step(Run *r, Loc loc, const char *text, Step *out)
{
    *out = (Step){ .loc = loc };
    const char *p = text + strspn(text, " \t");
    const char *end = word_end(p), *after = end + strspn(end, " \t");
    if (*after == '=' && after[1] != '=') {
        out->bind = ctx_intern_n(r->ctx, p, (size_t)(end - p));
        p = after + 1 + strspn(after + 1, " \t");
        end = word_end(p);
    }
    const char *name = arena_strndup(r->arena, p, (size_t)(end - p));
    out->op = sched_op_find(name);
    if (!out->op) {
        loc.col = (uint32_t)(p - text + 1);
        unknown_op(r, loc, name);
        return false;
    }
    for (p = end + strspn(end, " \t"); *p; p = end + strspn(end, " \t")) {
        end = word_end(p);
        if (out->n == SCHED_MAX_ARGS)
            return run_error(r, loc, "more than %d arguments", SCHED_MAX_ARGS);
        SchedText *t = &out->args[out->n++];
        size_t key = key_length(p);
        t->loc = (Loc){ loc.file, loc.line, (uint32_t)(p - text + 1) };
        if (key) {
            t->key = arena_strndup(r->arena, p, key);
            p += key + 1;
        }
        t->text = arena_strndup(r->arena, p, (size_t)(end - p));
    }
    return true;
}

static Sched open_step(Run *r, Loc loc, Arena *arena, Module *m)
{
    return (Sched){ .ctx = r->ctx,
                    .m = m,
                    .proc = module_symbol(m, r->proc),
                    .prover = r->o->prover,
                    .arena = arena,
                    .log = &r->log,
                    .kin = &r->kin,
                    .loc = loc,
                    .save_queries = r->o->save_queries };
}

/* How much was asked before a step. */
typedef struct Asked {
    unsigned long all, open;
} Asked;

static Asked asked_so_far(const Run *r)
{
    const ProverStats *first = r->o->layer1;
    return (Asked){ r->o->prover->stats.queries, first ? first->unknown : 0 };
}

static void record(Run *r, const Sched *s, const char *text, Asked before)
{
    Asked now = asked_so_far(r);
    SchedRecord rec = { .text = ctx_intern(r->ctx, text),
                        .loc = s->loc,
                        .asked = (unsigned)(now.all - before.all),
                        .asked_solver = (unsigned)(now.open - before.open),
                        .reassociates = s->reassociates,
                        .rounds = s->rounds };
    r->n_taken++;
    if (r->result)
        VEC_PUSH(ctx_arena(r->ctx), &r->result->steps, rec);
}

static void bind_result(Run *r, const Step *step, uint32_t sid)
{
    SchedName n = { step->bind, sid, r->log.edits.len };
    if (step->bind && sid)
        VEC_PUSH(r->arena, &r->names, n);
}

/* Runs the text as a step on a clone. */
static bool run_step(Run *r, Loc loc, const char *line, const char **expanded)
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
    *expanded = ctx_intern(r->ctx, strbuf_text(&text));
    ok = ok && parse_step(r, loc, *expanded, &step) &&
         sched_args_read(&s, &r->names, step.op, step.n, step.args, args);
    if (ok) {
        s.result = args[0].at.first ? args[0].at.first->sid : 0;
        ok = step.op->run(&s, args) && ctx_error_count(r->ctx) == errors &&
             module_wellformed(clone, step.op->name);
    }
    if (ok) {
        record(r, &s, *expanded, asked);
        r->proc =
            s.proc ? ctx_intern(r->ctx, op_attr_str(s.proc, "name", "")) : NULL;
        bind_result(r, &step, s.result);
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
static void show_before(Run *r, Diag *d, const char *text)
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

static bool run_repeat(Run *r, Loc loc, const char *line)
{
    const char *text;
    for (unsigned i = 0; i < MAX_REPEAT; i++) {
        CtxMark mark = ctx_mark(r->ctx);
        if (!run_step(r, loc, line, &text)) {
            ctx_rollback(r->ctx, mark);
            return true;
        }
    }
    return run_error(r, loc, "the step still applies after %d times",
                     MAX_REPEAT);
}

static bool run_line(Run *r, Loc loc, const char *line)
{
    const char *text = line;
    CtxMark mark = ctx_mark(r->ctx);
    if (++r->n_steps > MAX_STEPS)
        return run_error(r, loc, "more than %d steps", MAX_STEPS);
    if (!find_proc(r, loc))
        return false;
    if (!r->from)
        r->from = r->proc;
    if (!strncmp(line, "repeat ", 7))
        return run_repeat(r, loc, line + 7);
    bool may_fail = !strncmp(line, "try ", 4);
    if (run_step(r, loc, may_fail ? line + 4 : line, &text))
        return true;
    if (may_fail) {
        ctx_rollback(r->ctx, mark);
        return true;
    }
    const Diag *d = ctx_diags_since(r->ctx, mark);
    while (d && d->severity != SEV_error)
        d = d->next;
    if (d)
        show_before(r, (Diag *)d, text);
    return false;
}

/* ---- files ------------------------------------------------------------- */

static bool run_file(Run *r, uint32_t file);

static bool run_include(Run *r, Loc loc, const char *arg)
{
    size_t n = strlen(arg);
    if (n < 3 || *arg != '"' || arg[n - 1] != '"')
        return run_error(r, loc, "expected include \"FILE\"");
    const char *from = ctx_source_name(r->ctx, loc.file);
    const char *slash = strrchr(from, '/');
    int dir = slash && arg[1] != '/' ? (int)(slash - from) + 1 : 0;
    const char *path =
        arena_printf(r->arena, "%.*s%.*s", dir, from, (int)n - 2, arg + 1);
    if (r->depth >= MAX_INCLUDES)
        return run_error(r, loc, "includes nest deeper than %d", MAX_INCLUDES);
    uint32_t file = ctx_read_source(r->ctx, path);
    return file && run_file(r, file);
}

static bool run_param(Run *r, Loc loc, const char *arg)
{
    size_t n = strcspn(arg, " =");
    const char *value = arg + n + strspn(arg + n, " ");
    if (!n || *value != '=')
        return run_error(r, loc, "expected param NAME = VALUE");
    value += 1 + strspn(value + 1, " ");
    SchedParam p = { arena_strndup(r->arena, arg, n), value };
    VEC_PUSH(r->arena, &r->params, p);
    return true;
}

static bool run_any(Run *r, Loc loc, const char *line)
{
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

static bool run_file(Run *r, uint32_t file)
{
    size_t n, at = 0;
    const char *text = ctx_source_text(r->ctx, file, &n);
    StrBuf line = { 0 };
    bool ok = true;
    r->depth++;
    Loc loc = { file, 0, 1 };
    for (uint32_t number = 1; at < n && ok; number++) {
        const char *nl = memchr(text + at, '\n', n - at);
        size_t end = nl ? (size_t)(nl - text) : n;
        const char *part = without_comment(r->arena, text + at, end - at);
        at = end + 1;
        if (!line.len)
            loc.line = number;
        size_t len = strlen(part);
        bool more = len && part[len - 1] == '\\';
        strbuf_addn(&line, part, more ? len - 1 : len);
        if (more && at < n)
            continue;
        const char *whole = arena_strdup(r->arena, strbuf_text(&line));
        line.len = 0;
        if (line.data)
            *line.data = 0;
        whole += strspn(whole, " \t");
        if (*whole)
            ok = run_any(r, loc, whole);
    }
    strbuf_free(&line);
    r->depth--;
    return ok;
}

/* The procedure's comment says what it came from, by what, in how many steps.
 */
static void note_origin(Run *r, uint32_t file)
{
    Op *proc = r->proc ? module_symbol(*r->m, r->proc) : NULL;
    const char *path = ctx_source_name(r->ctx, file);
    const char *slash = strrchr(path, '/');
    if (!proc)
        return;
    const char *old = proc->comment ? proc->comment : "";
    proc->comment = ctx_intern(
        r->ctx,
        arena_printf(r->arena, "%s%sscheduled from %s by %s, %u step%s", old,
                     *old ? "\n" : "", r->from, slash ? slash + 1 : path,
                     r->n_taken, r->n_taken == 1 ? "" : "s"));
}

bool schedule_run(Ctx *ctx, Module **m, uint32_t file, const SchedOptions *o,
                  SchedResult *result)
{
    Run r = { .ctx = ctx,
              .m = m,
              .o = o,
              .result = result,
              .proc = o->proc,
              .arena = arena_new() };
    r.log.arena = r.kin.arena = r.arena;
    bool ok = run_file(&r, file);
    if (ok && r.n_taken)
        note_origin(&r, file);
    if (result) {
        result->from = r.from;
        result->proc = r.proc;
    }
    arena_free(r.arena);
    return ok;
}
