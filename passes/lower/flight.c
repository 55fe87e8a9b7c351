/* Which accumulators wgmma may still be writing. A wgmma puts its fragment in
 * flight; an Arrive on the commit group commits it, an Await of the group that
 * leaves none outstanding completes what was committed. The lowering follows
 * this op by op (Frag); what a region leaves is found here on the source, for
 * a loop's body begins as it may end:
 *
 *     for k:  Await(group, .., 0)      acc is in flight from the second trip
 *             wgmma(acc); Arrive       on: the Await must take it
 */
#include "passes/lower/lower.h"

#include <string.h>

/* Is op an Arrive or Await on a commit group of wgmma? */
static bool is_group_op(Lower *L, Op *op, OpCode code)
{
    const ParSync *s = op->code == code ? par_sync(L->pi, op) : NULL;
    return s && s->mechanism->barrier == BARRIER_wgmma_group;
}

bool flight_changes(Lower *L, Block *b)
{
    for (Op *op = b->first; op; op = op->next) {
        if (!role_executes(L, op))
            continue;
        if (is_group_op(L, op, OP_par_arrive) ||
            is_group_op(L, op, OP_par_await))
            return true;
        for (unsigned i = 0; i < op->n_blocks; i++)
            if (flight_changes(L, op->blocks[i]))
                return true;
    }
    return false;
}

/* A wgmma or the zero that another one begins from. */
static void after_instr(Lower *L, Op *op, const Value *source, Flight *f)
{
    const Instr *in = op_instr(L->m, op);
    OpAccessVec accesses = { 0 };
    bool writes = false;
    op_accesses(L->m, op, L->scratch, &accesses);
    for (size_t i = 0; i < accesses.len; i++)
        writes |= (accesses.data[i].flags & ACC_WRITE) &&
                  value_root(accesses.data[i].access->base) == source;
    if (writes && in && in->hook && !strcmp(in->hook, "wgmma"))
        *f = (Flight){ true, true };
    if (writes && in && in->hook && !strcmp(in->hook, "wgmma_zero"))
        *f = (Flight){ false, false };
}

/* Does the region's first block run wherever op does, for those whom it
 * concerns? */
static bool runs_always(Lower *L, const Op *op)
{
    if (op->code != OP_ctl_for)
        return op->code == OP_par_warps;
    const Cond *ran = cond_cmp(L->m->exprs, CMP_gt, op->operands[1].u.index,
                               op->operands[0].u.index);
    return !strcmp(op_attr_str(op, "mode", "seq"), "threads") ||
           cond_holds(L->m->exprs, ran);
}

Flight flight_either(Flight a, Flight b)
{
    return (Flight){ a.in_flight || b.in_flight,
                     a.uncommitted || b.uncommitted };
}

/* A loop's body begins as op is come to, or as it ends. */
static Flight after_region(Lower *L, Op *op, const Value *source, Flight f)
{
    Flight out = f;
    if (op->code == OP_ctl_for)
        f = flight_either(f, flight_after(L, op->blocks[0], source, f));
    if (op->code == OP_ctl_if && op->n_blocks == 2)
        out = flight_after(L, op->blocks[1], source, f);
    f = flight_after(L, op->blocks[0], source, f);
    return runs_always(L, op) ? f : flight_either(out, f);
}

static Flight after_op(Lower *L, Op *op, const Value *source, Flight f)
{
    if (op->code == OP_par_instr)
        after_instr(L, op, source, &f);
    else if (is_group_op(L, op, OP_par_arrive))
        f.uncommitted = false;
    else if (is_group_op(L, op, OP_par_await))
        f.in_flight &= f.uncommitted || op_attr_int(op, "n", 0) != 0;
    else if (op->n_blocks)
        f = after_region(L, op, source, f);
    return f;
}

Flight flight_after(Lower *L, Block *b, const Value *source, Flight f)
{
    for (Op *op = b->first; op; op = op->next)
        if (role_executes(L, op))
            f = after_op(L, op, source, f);
    return f;
}

void flight_commit(Lower *L)
{
    L->commits++;
    for (size_t i = 0; i < L->frags.len; i++)
        L->frags.data[i]->flight.uncommitted = false;
}
