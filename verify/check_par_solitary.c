/* Barriers with one hidden hardware counter: commit groups and cluster sync.
 * Of each kind one is live at a time, with all dimensions spread over threads;
 * a cluster-wide Fence uses the counter of cluster sync.
 *
 * A barrier is live from its allocation to the last statement of that block
 * that uses it, all that is inside that statement included. */
#include "verify/check_par_internal.h"

typedef struct Live {
    const Op *alloc, *last;
    const Mem *mem;
    struct Live *outer;
} Live;

static bool is_solitary(BarrierKind kind)
{
    return kind == BARRIER_cp_async_group || kind == BARRIER_bulk_group ||
           kind == BARRIER_wgmma_group || kind == BARRIER_cluster;
}

static const Live *find_kind(const Live *live, BarrierKind kind)
{
    for (; live; live = live->outer)
        if (live->mem->barrier == kind)
            return live;
    return NULL;
}

static void check_extents(ParCheck *c, const Op *op, const Mem *mem)
{
    const ParAlloc *a = par_alloc(c->pi, op->results[0]);
    for (unsigned i = a ? a->n_dist : op->results[0]->type->rank;
         i < op->results[0]->type->rank; i++) {
        int64_t n;
        if (affine_is_const(op->results[0]->shape[i], &n) && n == 1)
            continue;
        if (!a->first_use)
            return;
        pc_error(c, op, "barrier",
                 "%s: %s expected all dimensions to be "
                 "distributed, dimension %u is %s and is not",
                 par_text_value(op->results[0]), par_text_mem(c->m, mem->ref),
                 i, par_text_affine(c->m, op->results[0]->shape[i]));
        return;
    }
}

static void check_alone(ParCheck *c, const Op *op, const Mem *mem,
                        const Live *live)
{
    const Live *other = find_kind(live, mem->barrier);
    if (!other)
        return;
    Diag *d = pc_error(c, op, "barrier",
                       "%s and %s are live together: %s has "
                       "one hidden counter",
                       par_text_value(op->results[0]),
                       par_text_value(other->alloc->results[0]),
                       par_text_mem(c->m, mem->ref));
    diag_note(c->ctx, d, other->alloc->loc, "%s is allocated here",
              par_text_value(other->alloc->results[0]));
    diag_fix(c->ctx, d,
             "await the first before the second is allocated, or "
             "use one barrier for both");
}

static void check_cluster_fence(ParCheck *c, const Op *op, const Live *live)
{
    const ThreadSet *t = par_threads(c->pi, op);
    const Live *other = find_kind(live, BARRIER_cluster);
    if (!other || !t || t->kind != THREADS_cluster)
        return;
    Diag *d = pc_error(c, op, "fence",
                       "a Fence of the whole cluster while %s "
                       "(%s) is live: both use the cluster's one barrier",
                       par_text_value(other->alloc->results[0]),
                       par_text_mem(c->m, other->mem->ref));
    diag_note(c->ctx, d, other->alloc->loc, "%s is allocated here",
              par_text_value(other->alloc->results[0]));
}

static void walk(ParCheck *c, const Block *b, Live *live)
{
    Live *outer = live;
    for (Op *op = b->first; op; op = op->next) {
        const Mem *mem =
            op->code == OP_mem_alloc ? pc_mem(c, op->results[0]) : NULL;
        if (mem && is_solitary(mem->barrier)) {
            check_extents(c, op, mem);
            check_alone(c, op, mem, live);
            Live *l = ARENA_NEW(c->m->arena, Live);
            *l = (Live){ op, pc_last_use(op), mem, live };
            live = l;
        }
        if (op->code == OP_par_fence)
            check_cluster_fence(c, op, live);
        for (unsigned i = 0; i < op->n_blocks; i++)
            walk(c, op->blocks[i], live);
        Live **at = &live;
        while (*at && *at != outer) {
            if ((*at)->last == op)
                *at = (*at)->outer;
            else
                at = &(*at)->outer;
        }
    }
}

static bool walk_device(Op *op, void *user)
{
    if (op->code != OP_par_device)
        return true;
    walk(user, op->blocks[0], NULL);
    return false;
}

void check_par_solitary(ParCheck *c)
{
    op_walk(c->proc, walk_device, c);
}
