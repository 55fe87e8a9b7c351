/* strip-annotations: from par to seq, by erasing.
 *
 *     with CudaDeviceFunction, CudaWarps      their bodies
 *     for i in cuda_threads(0, n, unit=..)    for i in seq(0, n)
 *     Fence, Arrive, Await, barriers          nothing
 *     @ CudaSmemLinear, rings, guards         DRAM, the logical extents
 *     instr(..) >> barrier                    its body, with `expand`
 *
 * Windows made with a tensor map stay what they are: what lies outside the
 * tensor reads as zero, and that is part of the sequential meaning. Without
 * `expand` the calls of instructions stay, and with them the memories, which
 * they prescribe. */
#include "passes/pass.h"

#include "ir/lib.h"
#include "passes/rewrite.h"

typedef struct Strip {
    PassCtx *pc;
    Module *m;
    const MemRef *dram;
    bool expand, failed;
} Strip;

static void strip_block(Strip *s, Block *b);

static void strip_value(Strip *s, Value *v)
{
    const Type *t = v->type;
    v->ring_dim = -1;
    v->ring_depth = 0;
    v->ring_guard = NULL;
    if (s->expand && (t->kind == TK_tensor || t->kind == TK_window))
        v->type = type_tensor(s->m->ctx, t->kind, t->elem, t->rank, s->dram);
}

static void strip_values(Strip *s, Op *op)
{
    for (unsigned i = 0; i < op->n_results; i++)
        strip_value(s, op->results[i]);
    for (unsigned i = 0; i < op->n_blocks; i++)
        for (unsigned k = 0; k < op->blocks[i]->n_args; k++)
            if (op->blocks[i]->args[k].value)
                strip_value(s, op->blocks[i]->args[k].value);
}

/* Drops the trailing barrier, then puts the body in place. */
static void strip_instr(Strip *s, Op *op)
{
    if (op_attr_int(op, "trailing", 0) && op->n_operands > 0) {
        op->n_operands--;
        op_remove_attr(op, "trailing");
    }
    if (!s->expand)
        return;
    const Instr *in = op_instr(s->m, op);
    if (!in || !call_inline(s->m, op, op->n_operands, in->module, in->body)) {
        s->failed = true;
        return;
    }
    op_detach(op);
    pass_count(s->pc, "instructions expanded", 1);
}

static bool is_sync(const Op *op)
{
    return op->code == OP_par_fence || op->code == OP_par_arrive ||
           op->code == OP_par_await ||
           (op->code == OP_mem_alloc &&
            op->results[0]->type->kind == TK_barrier);
}

static void strip_op(Strip *s, Op *op)
{
    if (is_sync(op)) {
        op_detach(op);
        pass_count(s->pc, "synchronisation erased", 1);
        return;
    }
    strip_values(s, op);
    for (unsigned i = 0; i < op->n_blocks; i++)
        strip_block(s, op->blocks[i]);
    switch (op->code) {
    case OP_par_device:
    case OP_par_warps:
        block_splice_before(op, op->blocks[0]);
        op_detach(op);
        break;
    case OP_ctl_for:
        op_remove_attr(op, "mode");
        op_remove_attr(op, "unit");
        break;
    case OP_par_instr:
        strip_instr(s, op);
        break;
    default:
        break;
    }
}

static void strip_block(Strip *s, Block *b)
{
    for (Op *op = b->first, *next; op && !s->failed; op = next) {
        next = op->next;
        strip_op(s, op);
    }
}

/* Windows put in front of expanded bodies come after the walk over values. */
static bool strip_late(Op *op, void *user)
{
    strip_values(user, op);
    return true;
}

bool pass_strip_annotations(PassCtx *pc, Module *m)
{
    Strip s = { .pc = pc,
                .m = m,
                .dram = memref_get(pc->ctx, "DRAM", 0, NULL),
                .expand = pass_option_bool(pc, "expand") };
    for (Op *op = m->body->first; op && !s.failed; op = op->next)
        if (op->code == OP_ctl_proc) {
            strip_op(&s, op);
            op_walk(op, strip_late, &s);
        } else {
            diag_remark(pc->ctx, op->loc, "strip-annotations",
                        "'@%s' is left as it is: no procedure of level par",
                        op_attr_str(op, "name", ""));
        }
    return !s.failed;
}
