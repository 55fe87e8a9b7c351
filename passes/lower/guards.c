/* Guards leave loops.
 *
 * A warp that keeps a ring of tiles filled does so by one lane, step by step:
 *
 *   for k { if w < 1 { elect { wait, copy, arrive } }, advance }
 *
 * Every step would find that lane anew, and the other warps and lanes count
 * along. Where nothing else in the loop has an effect, and what it carries is
 * not asked for behind it, the guards go around it:
 *
 *   if w < 1 { elect { for k { wait, copy, arrive, advance } } }
 *
 * Any lane may be the elected one, so that both do the same. */
#include "passes/lower/lower.h"

/* The op of b that alone has an effect, or takes all lanes of a warp; NULL. */
static Op *only_effect(const Block *b)
{
    Op *found = NULL;
    for (Op *op = b->first; op; op = op->next) {
        if ((op_has(op, OPT_PURE) && !op_has(op, OPT_COLLECTIVE)) ||
            op->code == OP_ctl_yield)
            continue;
        if (found)
            return NULL;
        found = op;
    }
    return found;
}

/* ---- what stays in a loop ------------------------------------------------ */

static bool is_guard(const Op *op, VarId iterator)
{
    if (op->code == OP_async_elect)
        return true;
    return op->code == OP_ctl_if && op->n_blocks == 1 && op->n_results == 0 &&
           !cond_uses(op->operands[0].u.cond, iterator);
}

/* ---- the move ------------------------------------------------------------ */

static void put_around(Op *guard, Op *loop)
{
    Block *inside = guard->blocks[0];
    while (inside->first) {
        Op *op = inside->first;
        op_detach(op);
        op_insert_before(guard, op);
    }
    op_detach(guard);
    op_insert_before(loop, guard);
    op_detach(loop);
    block_append(inside, loop);
    guard->origin = loop->origin;
}

static void free_loop(Op *loop)
{
    const Block *body = loop->blocks[0];
    Op *guard;
    if (op_used_behind(loop))
        return;
    while ((guard = only_effect(body)) && is_guard(guard, body->args[0].var))
        put_around(guard, loop);
}

void lower_free_loops(Block *b)
{
    for (Op *op = b->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->n_blocks; i++)
            lower_free_loops(op->blocks[i]);
        if (op->code == OP_ctl_for)
            free_loop(op);
    }
}
