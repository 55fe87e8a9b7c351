/* inline: bodies of called procedures in place of the calls.
 *
 *     ctl.call @f(%N, %x[0 +: %N])      the body of @f, its N being %N, its
 *                                       tensor %x or a window of it
 *
 * Callees are inlined before their callers, so each body is copied finished.
 * A procedure that reaches itself keeps its calls, with a remark. Parameters
 * are proved at the calls by check-seq, so a callee's asserts are dropped. */
#include "passes/pass.h"

#include "ir/name_map.h"
#include "passes/rewrite.h"

/* Copying on, the calls of calls may grow without end: 2 to the n bodies. */
#define MAX_COPIED 2000000

typedef enum Mark { MARK_new, MARK_open, MARK_done } Mark;

typedef struct Proc {
    Op *op;
    Mark mark;
    bool called; /* still, after inlining */
    int64_t size;
} Proc;

typedef struct Inline {
    PassCtx *pc;
    Module *m;
    NameMap *procs; /* -> Proc */
    int64_t copied;
    bool failed;
} Inline;

static bool inline_proc(Inline *in, Proc *p);

static Proc *callee_of(Inline *in, const Op *call)
{
    const char *name = op_attr_str(call, "callee", "");
    return name_map_get(in->procs, ctx_intern(in->pc->ctx, name));
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
    diag_remark(in->pc->ctx, call->loc, "inline", "call of '@%s' is kept: %s",
                op_attr_str(call, "callee", ""), why);
}

static bool passes_condition(const Op *call)
{
    for (unsigned i = 0; i < call->n_operands; i++)
        if (call->operands[i].kind == OPND_cond)
            return true;
    return false;
}

static void inline_call(Inline *in, Op *call)
{
    Proc *callee = callee_of(in, call);
    if (!callee)
        return;
    if (!inline_proc(in, callee)) {
        keep_call(in, call, callee, "the procedure reaches itself");
        return;
    }
    if (passes_condition(call)) {
        keep_call(in, call, callee, "it passes a condition as a bool");
        return;
    }
    in->copied += callee->size;
    if (in->copied > MAX_COPIED) {
        diag_error(in->pc->ctx, call->loc, "inline",
                   "inlining copies more than %d ops", MAX_COPIED);
        in->failed = true;
        return;
    }
    if (!call_inline(in->m, call, call->n_operands, in->m, callee->op)) {
        in->failed = true;
        return;
    }
    op_detach(call);
    pass_count(in->pc, "calls inlined", 1);
}

static void inline_block(Inline *in, Block *b)
{
    for (Op *op = b->first, *next; op && !in->failed; op = next) {
        next = op->next;
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

static bool may_go(const Inline *in, const Op *op)
{
    return !pass_option_bool(in->pc, "keep") &&
           (*op_attr_str(op, "name", "") == '_' ||
            op_attr_int(op, "imported", 0));
}

bool pass_inline(PassCtx *pc, Module *m)
{
    Inline in = { .pc = pc, .m = m, .procs = name_map_new(pc->scratch) };
    for (Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_ctl_proc) {
            Proc *p = ARENA_NEW(pc->scratch, Proc);
            p->op = op;
            const char *name = op_attr_str(op, "name", "");
            name_map_set(in.procs, ctx_intern(pc->ctx, name), p);
        }
    for (Op *op = m->body->first; op && !in.failed; op = op->next)
        if (op->code == OP_ctl_proc) {
            const char *name = op_attr_str(op, "name", "");
            inline_proc(&in, name_map_get(in.procs, ctx_intern(pc->ctx, name)));
        } else {
            for (unsigned i = 0; i < op->n_blocks; i++)
                inline_block(&in, op->blocks[i]);
        }
    for (Op *op = m->body->first, *next; op; op = next) {
        next = op->next;
        const char *name = op_attr_str(op, "name", "");
        Proc *p = name_map_get(in.procs, ctx_intern(pc->ctx, name));
        if (p && p->op == op && !p->called && may_go(&in, op))
            op_detach(op);
    }
    return !in.failed;
}
