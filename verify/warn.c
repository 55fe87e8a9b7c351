/* Warnings in two walks over a procedure. The first counts how each tensor and
 * window is used; the second looks at each statement with these counts: empty
 * loops and bodies, conditions that never hold, synchronisation that is
 * repeated at once, assignments of a variable to itself, tensors that nobody
 * reads or writes, rings with idle slots, tasks that do the same. Last, what
 * the par analysis of a device function tells: warps at no statement, fences
 * that do nothing. */
#include "verify/warn.h"

#include "passes/analysis/par_info.h"
#include "passes/analysis/par_text.h"
#include "passes/lower/lower.h"

#include <string.h>

typedef struct Warn {
    Ctx *ctx;
    Module *m;
    Arena *arena;
    bool *used, *read, *written; /* by Value.id */
} Warn;

/* ---- how values are used ------------------------------------------------ */

/* What op, a statement, reads and writes through an access: += and a copy of a
 * window do not read, through a tensor map both may be done. */
static void note_accesses(Warn *w, const Op *op)
{
    OpAccessVec accesses = { 0 };
    op_accesses(w->m, op, w->arena, &accesses);
    for (size_t i = 0; i < accesses.len; i++) {
        unsigned root = value_root(accesses.data[i].access->base)->id;
        unsigned flags = accesses.data[i].flags;
        if ((flags & ACC_READ) && op->code != OP_mem_reduce)
            w->read[root] = true;
        if (flags & (ACC_WRITE | ACC_REDUCE))
            w->written[root] = true;
    }
    if (op->code == OP_mem_window && op->results[0]->type->kind == TK_map) {
        unsigned root = value_root(op->operands[0].u.access->base)->id;
        w->read[root] = w->written[root] = true;
    }
}

static bool note_uses(Op *op, void *user)
{
    Warn *w = user;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i].kind == OPND_access)
            w->used[op->operands[i].u.access->base->id] = true;
    note_accesses(w, op);
    return true;
}

/* ---- equal statements --------------------------------------------------- */

static bool access_same(const Access *a, const Access *b)
{
    if (a->base != b->base || a->rank != b->rank)
        return false;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind != b->dims[i].kind ||
            a->dims[i].lo != b->dims[i].lo || a->dims[i].len != b->dims[i].len)
            return false;
    return true;
}

static bool operand_same(const Operand *a, const Operand *b)
{
    return a->kind == OPND_access && b->kind == OPND_access &&
           access_same(a->u.access, b->u.access);
}

/* Two Fences or two Awaits with the same operands and timelines. */
static bool sync_same(const Op *a, const Op *b)
{
    if (a->code != b->code || a->n_operands != b->n_operands)
        return false;
    for (unsigned i = 0; i < a->n_operands; i++)
        if (!operand_same(&a->operands[i], &b->operands[i]))
            return false;
    return !strcmp(op_attr_str(a, "first", ""), op_attr_str(b, "first", "")) &&
           !strcmp(op_attr_str(a, "second", ""),
                   op_attr_str(b, "second", "")) &&
           op_attr_int(a, "n", 0) == op_attr_int(b, "n", 0);
}

/* ---- statements --------------------------------------------------------- */

static const Op *next_stmt(const Op *op)
{
    do
        op = op->next;
    while (op && !op_has(op, OPT_STMT));
    return op;
}

/* Holds b no statement but pass? */
static bool block_idle(const Block *b)
{
    for (const Op *op = b->first; op; op = op->next)
        if (op_has(op, OPT_STMT) && op->code != OP_ctl_pass)
            return false;
    return true;
}

static void warn_body(Warn *w, const Op *op)
{
    for (unsigned i = 0; i < op->n_blocks; i++)
        if (!block_idle(op->blocks[i]))
            return;
    Diag *d =
        diag_warning(w->ctx, op->loc, "empty-body", "the body does nothing");
    diag_fix(w->ctx, d, "remove the statement");
}

typedef struct VarSearch {
    VarId var;
    bool found;
} VarSearch;

static bool access_uses(const Access *a, VarId v)
{
    for (unsigned i = 0; i < a->rank; i++)
        if (affine_uses(a->dims[i].lo, v) || affine_uses(a->dims[i].len, v))
            return true;
    return false;
}

static bool operand_uses(const Operand *o, VarId v)
{
    switch (o->kind) {
    case OPND_access:
        return access_uses(o->u.access, v);
    case OPND_index:
        return affine_uses(o->u.index, v);
    case OPND_cond:
        return cond_uses(o->u.cond, v);
    default:
        return false;
    }
}

static bool find_var(Op *op, void *user)
{
    VarSearch *s = user;
    for (unsigned i = 0; i < op->n_operands && !s->found; i++)
        s->found = operand_uses(&op->operands[i], s->var);
    for (unsigned r = 0; r < op->n_results && !s->found; r++)
        for (unsigned i = 0; i < op->results[r]->type->rank; i++)
            s->found |= affine_uses(op->results[r]->shape[i], s->var);
    return !s->found;
}

/* All tasks of a loop whose iterator nobody reads do the same. */
static void warn_tasks(Warn *w, const Op *op)
{
    int64_t lo, hi;
    VarSearch s = { op->blocks[0]->args[0].var, false };
    bool one = affine_is_const(op->operands[0].u.index, &lo) &&
               affine_is_const(op->operands[1].u.index, &hi) && hi - lo <= 1;
    if (one || strcmp(op_attr_str(op, "mode", "seq"), "tasks") != 0)
        return;
    block_walk(op->blocks[0], find_var, &s);
    if (s.found)
        return;
    Diag *d = diag_warning(w->ctx, op->loc, "same-tasks",
                           "every task does the same: %s is used nowhere",
                           var_get(w->m->exprs, s.var)->name);
    diag_fix(w->ctx, d, "index by it, or make one task");
}

static void warn_loop(Warn *w, const Op *op)
{
    int64_t lo, hi;
    if (affine_is_const(op->operands[0].u.index, &lo) &&
        affine_is_const(op->operands[1].u.index, &hi) && lo >= hi) {
        diag_warning(w->ctx, op->loc, "empty-loop",
                     "the loop has no iterations: it goes from %lld to %lld",
                     (long long)lo, (long long)hi);
        return;
    }
    warn_body(w, op);
    warn_tasks(w, op);
}

static void warn_sync(Warn *w, const Op *op)
{
    const Op *next = next_stmt(op);
    if (!next || !sync_same(op, next))
        return;
    Diag *d = diag_warning(w->ctx, next->loc, "repeated-sync",
                           "this waits again for what the statement before "
                           "it has waited for");
    diag_note(w->ctx, d, op->loc, "waited for here");
}

static void warn_store(Warn *w, const Op *op)
{
    const Op *load =
        op->operands[1].kind == OPND_value ? op->operands[1].u.value->def : 0;
    if (load && load->code == OP_mem_load &&
        operand_same(&load->operands[0], &op->operands[0]))
        diag_warning(w->ctx, op->loc, "self-assign", "%s is assigned to itself",
                     par_text_access(w->m, op->operands[0].u.access));
}

static void warn_ring(Warn *w, const Op *op)
{
    const Value *v = op->results[0];
    int64_t n;
    if (v->ring_dim < 0 || !affine_is_const(v->shape[v->ring_dim], &n) ||
        n >= v->ring_depth)
        return;
    Diag *d = diag_warning(
        w->ctx, op->loc, "idle-slots", "%s has %lld slots for %lld elements",
        par_text_value(v), (long long)v->ring_depth, (long long)n);
    diag_fix(w->ctx, d, "make the ring no deeper than its extent");
}

/* What is used nowhere in CUDA code check-par says already. */
static void warn_value(Warn *w, const Op *op)
{
    const Value *v = op->results[0];
    bool window = op->code == OP_mem_window;
    if (!window)
        warn_ring(w, op);
    if (v->type->kind == TK_barrier || (!window && !w->used[v->id]))
        return;
    if (window && !w->used[v->id])
        diag_warning(w->ctx, op->loc, "unused-window", "%s is never used",
                     par_text_value(v));
    else if (!window && !w->read[v->id])
        diag_warning(w->ctx, op->loc, "never-read",
                     "%s is written, but never read", par_text_value(v));
    else if (!window && !w->written[v->id])
        diag_warning(w->ctx, op->loc, "never-written",
                     "%s is read, but never written", par_text_value(v));
}

/* The bounds of the iterators and sizes in it rule it out. */
static void warn_if(Warn *w, const Op *op)
{
    ExprCtx *x = w->m->exprs;
    const Cond *not = cond_not(x, op->operands[0].u.cond);
    warn_body(w, op);
    if (!not || !cond_holds(x, not ))
        return;
    diag_warning(w->ctx, op->loc, "never-true", "the condition %s never holds",
                 par_text_cond(w->m, op->operands[0].u.cond));
}

static bool warn_stmt(Op *op, void *user)
{
    Warn *w = user;
    switch (op->code) {
    case OP_ctl_for:
        if (op->n_operands == 2)
            warn_loop(w, op);
        break;
    case OP_ctl_if:
        warn_if(w, op);
        break;
    case OP_par_fence:
    case OP_par_await:
        warn_sync(w, op);
        break;
    case OP_mem_store:
        warn_store(w, op);
        break;
    case OP_mem_alloc:
    case OP_mem_window:
        warn_value(w, op);
        break;
    default:
        break;
    }
    return true;
}

/* ---- warps that never work ---------------------------------------------- */

typedef struct Cover {
    const ParInfo *pi;
    bool works[33]; /* by warp */
} Cover;

static bool cover_stmt(Op *op, void *user)
{
    Cover *c = user;
    const ThreadSet *s = NULL;
    bool leaf = op->n_blocks == 0 && op_has(op, OPT_STMT);
    if (leaf && op->code != OP_mem_alloc && op->code != OP_mem_window &&
        op->code != OP_ctl_pass)
        s = par_threads(c->pi, op);
    for (int64_t w = s ? s->cover_lo : 0; s && w < s->cover_hi && w < 32; w++)
        c->works[w] = true;
    return true;
}

typedef struct Fences {
    Warn *w;
    const ParInfo *pi;
} Fences;

/* A thread need not wait for its own ordinary accesses. */
static bool warn_fence(Op *op, void *user)
{
    Fences *f = user;
    if (op->code != OP_par_fence)
        return true;
    const ThreadSet *t = par_threads(f->pi, op);
    const SyncTimeline *all = sync_timeline_find("cuda_in_order");
    const SyncTimeline *first =
        sync_timeline_find(op_attr_str(op, "first", ""));
    const SyncTimeline *second =
        sync_timeline_find(op_attr_str(op, "second", ""));
    if (!t || t->kind != THREADS_one || !first || !second ||
        !sync_timeline_includes(all, first) ||
        !sync_timeline_includes(all, second))
        return true;
    Diag *d = diag_warning(f->w->ctx, op->loc, "idle-fence",
                           "a Fence by one thread among its own ordinary "
                           "accesses does nothing");
    diag_fix(f->w->ctx, d, "let all threads that exchange data execute it");
    return true;
}

static bool warn_device(Op *op, void *user)
{
    Warn *w = user;
    Cover c = { 0 };
    if (op->code != OP_par_device)
        return true;
    CtxMark mark = ctx_mark(w->ctx);
    c.pi = par_analyze(w->ctx, w->m, op);
    ctx_rollback(w->ctx, mark);
    const ParDevice *d = par_device(c.pi, op);
    if (!par_ok(c.pi) || !d)
        return false;
    op_walk(op, warn_fence, &(Fences){ w, c.pi });
    if (op_attr(op, "warp_config"))
        return false;
    op_walk(op, cover_stmt, &c);
    int64_t first = 0, n = d->block_dim / 32;
    while (first < n && c.works[first])
        first++;
    if (first < n) {
        Diag *warning = diag_warning(
            w->ctx, op->loc, "idle-warps",
            "warp %lld of the %lld of blockDim=%lld executes no statement",
            (long long)first, (long long)n, (long long)d->block_dim);
        diag_fix(w->ctx, warning, "use fewer threads, or give it work");
    }
    return false;
}

void warn_proc(Ctx *ctx, Module *m, Op *proc)
{
    Warn w = { .ctx = ctx, .m = m, .arena = arena_new() };
    w.used = ARENA_ARRAY(w.arena, bool, m->next_value);
    w.read = ARENA_ARRAY(w.arena, bool, m->next_value);
    w.written = ARENA_ARRAY(w.arena, bool, m->next_value);
    op_walk(proc, note_uses, &w);
    op_walk(proc, warn_stmt, &w);
    op_walk(proc, warn_device, &w);
    arena_free(w.arena);
}
