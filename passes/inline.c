/* inline: bodies of called procedures in place of the calls.
 *
 *     ctl.call @f(%N, %x[0 +: %N])      the body of @f, its N being %N, its
 *                                       tensor %x or a window of it
 *
 * Callees are inlined before their callers, so each body is copied finished.
 * A procedure that reaches itself keeps its calls, with a remark. Parameters
 * are proved at the calls by check-seq, so a callee's asserts are dropped.
 *
 * inline_launches does the same to those calls alone by which host code
 * launches kernels. */
#include "passes/inline.h"

#include "ir/lib.h"
#include "ir/name_map.h"
#include "ir/values.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/* Copying on, the calls of calls may grow without end: 2 to the n bodies. */
#define MAX_COPIED 2000000

typedef enum Mark { MARK_new, MARK_open, MARK_done } Mark;

typedef struct Proc {
    Op *op;
    Mark mark;
    bool called;  /* still, after inlining */
    bool inlined; /* where it was called */
    int64_t size;
} Proc;

typedef struct Inline {
    PassCtx *pc; /* NULL: only what launches is inlined */
    Ctx *ctx;
    Arena *scratch;
    Module *m;
    NameMap *procs;          /* -> Proc */
    int64_t copied, n_calls; /* ops copied, calls inlined */
    bool failed;
} Inline;

/* ---- what launches ------------------------------------------------------- */

typedef struct Launches {
    const Module *m;
    Arena *arena;
    VEC(const Op *) seen; /* procedures, each looked into once */
    bool found;
} Launches;

static bool find_launch(Op *op, void *user)
{
    Launches *l = user;
    l->found |= op->code == OP_par_device;
    Op *callee = op->code == OP_ctl_call
                     ? module_symbol(l->m, op_attr_str(op, "callee", ""))
                     : NULL;
    for (size_t i = 0; i < l->seen.len && callee; i++)
        callee = l->seen.data[i] == callee ? NULL : callee;
    if (callee && !l->found) {
        VEC_PUSH(l->arena, &l->seen, callee);
        op_walk(callee, find_launch, l);
    }
    return !l->found;
}

bool op_launches(const Module *m, const Op *op)
{
    Launches l = { .m = m, .arena = arena_new() };
    op_walk((Op *)op, find_launch, &l);
    arena_free(l.arena);
    return l.found;
}

/* ---- calls --------------------------------------------------------------- */

static bool inline_proc(Inline *in, Proc *p);

static Proc *callee_of(Inline *in, const Op *call)
{
    const char *name = op_attr_str(call, "callee", "");
    return name_map_get(in->procs, ctx_intern(in->ctx, name));
}

static bool count_ops(Op *op, void *user)
{
    (void)op;
    ++*(int64_t *)user;
    return true;
}

static void keep_call(Inline *in, Op *call, Proc *callee, const char *why)
{
    callee->called = true;
    diag_remark(in->ctx, call->loc, "inline", "call of '@%s' is kept: %s",
                op_attr_str(call, "callee", ""), why);
}

/* Do the tensors lie in memory that their parameters allow? check-par says so
 * of the call where not. */
static bool memories_suit(const Module *m, const Op *call, const Op *callee)
{
    const Block *params = callee->blocks[0];
    for (unsigned i = 0; i < call->n_operands && i < params->n_args; i++) {
        const Value *v = params->args[i].value;
        const MemRef *want = v ? v->type->mem : NULL;
        if (!want || call->operands[i].kind != OPND_access || !m->lib)
            continue;
        Value *given = call->operands[i].u.access->base;
        const MemRef *found = value_root(given)->type->mem;
        if (found && !mem_is_a(m->lib, found, want))
            return false;
    }
    return true;
}

static void inline_call(Inline *in, Op *call)
{
    Proc *callee = callee_of(in, call);
    if (!callee || (!in->pc && !op_launches(in->m, call)))
        return;
    if (!inline_proc(in, callee)) {
        keep_call(in, call, callee, "the procedure reaches itself");
        return;
    }
    if (call_passes_condition(in->m, call)) {
        keep_call(in, call, callee, "it passes a condition as a bool");
        return;
    }
    if (!in->pc && !memories_suit(in->m, call, callee->op)) {
        callee->called = true;
        return;
    }
    in->copied += callee->size;
    if (in->copied > MAX_COPIED) {
        diag_error(in->ctx, call->loc, "inline",
                   "inlining copies more than %d ops", MAX_COPIED);
        in->failed = true;
        return;
    }
    if (!call_inline(in->m, call, call->n_operands, in->m, callee->op)) {
        in->failed = true;
        return;
    }
    op_detach(call);
    callee->inlined = true;
    in->n_calls++;
}

static void inline_block(Inline *in, Block *b)
{
    for (Op *op = b->first, *next; op && !in->failed; op = next) {
        next = op->next;
        if (!in->pc && op->code == OP_par_device)
            continue;
        for (unsigned i = 0; i < op->n_blocks; i++)
            inline_block(in, op->blocks[i]);
        if (op->code == OP_ctl_call)
            inline_call(in, op);
    }
}

/* False when the procedure is being inlined into: the call closes a circle. */
static bool inline_proc(Inline *in, Proc *p)
{
    if (p->mark == MARK_open)
        return false;
    if (p->mark == MARK_new) {
        p->mark = MARK_open;
        inline_block(in, p->op->blocks[0]);
        p->mark = MARK_done;
        op_walk(p->op, count_ops, &p->size);
    }
    return true;
}

/* ---- modules ------------------------------------------------------------- */

static void inline_module(Inline *in)
{
    in->procs = name_map_new(in->scratch);
    for (Op *op = in->m->body->first; op; op = op->next)
        if (op->code == OP_ctl_proc) {
            Proc *p = ARENA_NEW(in->scratch, Proc);
            p->op = op;
            const char *name = op_attr_str(op, "name", "");
            name_map_set(in->procs, ctx_intern(in->ctx, name), p);
        }
    for (Op *op = in->m->body->first; op && !in->failed; op = op->next)
        if (op->code == OP_ctl_proc) {
            const char *name = op_attr_str(op, "name", "");
            inline_proc(in, name_map_get(in->procs, ctx_intern(in->ctx, name)));
        } else {
            for (unsigned i = 0; i < op->n_blocks; i++)
                inline_block(in, op->blocks[i]);
        }
}

/* Erases procedures that nobody can ask for and nobody calls: of those that are
 * private or imported, all, or those alone that were put in line. */
static void erase_uncalled(Inline *in, bool all)
{
    for (Op *op = in->m->body->first, *next; op; op = next) {
        next = op->next;
        const char *name = op_attr_str(op, "name", "");
        Proc *p = name_map_get(in->procs, ctx_intern(in->ctx, name));
        if (p && p->op == op && !p->called && (all || p->inlined) &&
            (*name == '_' || op_attr_int(op, "imported", 0)))
            op_detach(op);
    }
}

bool pass_inline(PassCtx *pc, Module *m)
{
    Inline in = { .pc = pc, .ctx = pc->ctx, .scratch = pc->scratch, .m = m };
    inline_module(&in);
    if (in.n_calls)
        pass_count(pc, "calls inlined", in.n_calls);
    if (!pass_option_bool(pc, "keep"))
        erase_uncalled(&in, true);
    return !in.failed;
}

static bool find_launching_call(Op *op, void *user)
{
    Inline *in = user;
    if (op->code == OP_ctl_call && op_launches(in->m, op))
        in->n_calls++;
    return op->code != OP_par_device && !in->n_calls;
}

Module *inline_launches(Ctx *ctx, Module *m, bool keep)
{
    Inline in = { .ctx = ctx, .m = m };
    block_walk(m->body, find_launching_call, &in);
    if (!in.n_calls)
        return NULL;
    CtxMark mark = ctx_mark(ctx);
    in.scratch = arena_new();
    in.m = module_clone(m);
    inline_module(&in);
    if (!keep)
        erase_uncalled(&in, false);
    arena_free(in.scratch);
    ctx_rollback(ctx, mark);
    if (!in.failed)
        return in.m;
    module_free(in.m);
    return NULL;
}
