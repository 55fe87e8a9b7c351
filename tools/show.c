/* Showing the par analysis. A line names the last statement of the file's own
 * procedures that begins at or before it, in the procedure that holds it, so
 * that any line of a broken call means the call. */
#include "tools/show.h"

#include "ir/exo.h"
#include "passes/analysis/par_svg.h"
#include "passes/analysis/par_words.h"
#include "passes/lower/derived.h"

/* ---- statements by line ------------------------------------------------- */

typedef struct LineSearch {
    int64_t line;
    Op *best;
} LineSearch;

static bool find_line(Op *op, void *user)
{
    LineSearch *s = user;
    bool before = op->loc.line && op->loc.line <= s->line;
    if (before && op_has(op, OPT_STMT) &&
        (!s->best || op->loc.line > s->best->loc.line))
        s->best = op;
    return true;
}

/* The statement at the line, or NULL after an error. */
static Op *statement_at(Ctx *ctx, Module *m, int64_t line)
{
    LineSearch s = { .line = line };
    Op *proc = NULL;
    for (Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_ctl_proc && !op_attr_int(op, "imported", 0) &&
            op->loc.line && op->loc.line <= line &&
            (!proc || op->loc.line > proc->loc.line))
            proc = op;
    for (unsigned i = 0; proc && i < proc->n_blocks; i++)
        block_walk(proc->blocks[i], find_line, &s);
    size_t n, lines = 1;
    const char *text = ctx_source_text(ctx, s.best ? s.best->loc.file : 0, &n);
    for (size_t i = 0; i + 1 < n; i++)
        lines += text[i] == '\n';
    if (s.best && (size_t)line <= lines)
        return s.best;
    if (s.best)
        diag_error(ctx, (Loc){ 0 }, "line",
                   "no statement stands at line %lld: %s has %zu lines",
                   (long long)line, ctx_source_name(ctx, s.best->loc.file),
                   lines);
    else
        diag_error(ctx, (Loc){ 0 }, "line", "no statement stands at line %lld",
                   (long long)line);
    return NULL;
}

/* ---- showing ------------------------------------------------------------ */

typedef struct Notes {
    Module *m;
    ParInfo *pi;
} Notes;

static void note(void *user, const Op *stmt, StrBuf *out)
{
    const Notes *n = user;
    par_note(n->pi, n->m, stmt, out);
}

bool show_annotated(Ctx *ctx, Module *m, StrBuf *out)
{
    Notes n = { m, par_analyze(ctx, m, NULL) };
    ExoNotes notes = { note, &n };
    return par_ok(n.pi) && exo_print_noted(m, &notes, out);
}

bool show_derived(Ctx *ctx, Module *m)
{
    CtxMark mark = ctx_mark(ctx);
    ParInfo *pi = par_analyze(ctx, m, NULL);
    ctx_rollback(ctx, mark);
    bool ok = true;
    for (Op *op = m->body->first; op && par_ok(pi); op = op->next)
        if (op->code == OP_ctl_proc) {
            ok &= derived_check(ctx, m, pi, op);
            derived_write(ctx, m, pi, op);
        }
    return ok;
}

static bool not_on_device(Ctx *ctx, const Op *op)
{
    Diag *d = diag_error(ctx, op->loc, "line",
                         "nothing is known of the threads of this statement");
    diag_fix(ctx, d, "name a statement of a task of a CudaDeviceFunction");
    return false;
}

bool show_svg(Ctx *ctx, Module *m, int64_t line, StrBuf *out)
{
    Op *op = statement_at(ctx, m, line);
    if (!op)
        return false;
    ParInfo *pi = par_analyze(ctx, m, NULL);
    if (!par_ok(pi))
        return false;
    return par_svg(pi, m, op, out) || not_on_device(ctx, op);
}

bool show_explained(Ctx *ctx, Module *m, int64_t line, StrBuf *out)
{
    Op *op = statement_at(ctx, m, line);
    if (!op)
        return false;
    ParInfo *pi = par_analyze(ctx, m, NULL);
    strbuf_addf(out, "line %u:\n", op->loc.line);
    if (!par_explain(pi, m, op, out))
        return par_ok(pi) && not_on_device(ctx, op);
    return par_ok(pi);
}
