/* The older name CudaCommitGroup: one mechanism where now there are three.
 *
 * Which one is meant shows in the timeline of the barrier's Arrive. Barriers
 * get the new mechanism once the procedure is built, so that nothing behind
 * the parser knows the older name. */
#include "ir/exo_build.h"

#include <string.h>

static const struct {
    const char *first, *mechanism;
} groups[] = {
    { "Sm80_cp_async", "Sm80_CommitGroup" },
    { "tma_to_gmem_async", "Sm90_TmaCommitGroup" },
    { "wgmma_async", "Sm90_WgmmaCommitGroup" },
};

static bool is_any_group(const Value *v)
{
    return v->type->kind == TK_barrier && v->type->mem &&
           strcmp(v->type->mem->name, BUILD_ANY_COMMIT_GROUP) == 0;
}

static void resolve(Build *b, Value *v, const Op *arrive)
{
    const char *first = op_attr_str(arrive, "first", "");
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (strcmp(groups[i].first, first) != 0)
            continue;
        const MemRef *ref = memref_get(b->ctx, groups[i].mechanism, 0, NULL);
        const Mem *mem = b->lib ? lib_mem(b->lib, arrive->loc, ref) : NULL;
        v->type = type_barrier(b->ctx, v->type->rank, mem ? mem->ref : ref);
        b->failed |= b->lib && !mem;
        return;
    }
}

static bool see_arrive(Op *op, void *user)
{
    for (unsigned i = 0; op->code == OP_par_arrive && i < op->n_operands; i++) {
        Value *v = op->operands[i].u.access->base;
        if (is_any_group(v))
            resolve(user, v, op);
    }
    return true;
}

static bool see_alloc(Op *op, void *user)
{
    if (op->code == OP_mem_alloc && is_any_group(op->results[0])) {
        Diag *d = build_error(user, op->loc, "barrier",
                              "nothing tells which commit group '%s' is: "
                              "expected an Arrive of Sm80_cp_async, "
                              "tma_to_gmem_async or wgmma_async on it",
                              op->results[0]->name);
        diag_fix(((Build *)user)->ctx, d,
                 "write Sm80_CommitGroup, Sm90_TmaCommitGroup or "
                 "Sm90_WgmmaCommitGroup");
    }
    return true;
}

void build_commit_groups(Build *b, Op *proc)
{
    op_walk(proc, see_arrive, b);
    op_walk(proc, see_alloc, b);
}
