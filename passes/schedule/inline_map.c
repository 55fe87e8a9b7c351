/* What a tensor map means, written out.
 *
 *     x = a_map[i]                 if i < N:
 *                                      x = a_map[i]
 *                                  else:
 *                                      x = 0.0
 *     c_map[i] = x                 if i < N:
 *                                      c_map[i] = x
 *
 * Outside its tensor a map reads zero and is not written. Under its guard an
 * access stays within, so that the tensor can take the map's place. What the
 * bounds already say is not asked again. */
#include "passes/schedule/ops.h"

typedef struct MapWalk {
    Sched *s;
    const Value *map;
    Loc loc;
    VEC(const Op *) seen;
    Op *next; /* an access that has not been seen */
} MapWalk;

static bool was_seen(const MapWalk *w, const Op *op)
{
    for (size_t i = 0; i < w->seen.len; i++)
        if (w->seen.data[i] == op)
            return true;
    return false;
}

static bool note_map_use(Sched *s, Op *op, Access *a, void *user)
{
    MapWalk *w = user;
    (void)a;
    if (!was_seen(w, op))
        w->next = op;
    return sched_by_element(s, op, w->loc);
}

static unsigned place_in_block(const Op *op)
{
    unsigned n = 0;
    for (op = op->prev; op; op = op->prev)
        n++;
    return n;
}

static Op *op_in_block(const Block *b, unsigned place)
{
    Op *op = b->first;
    while (place--)
        op = op->next;
    return op;
}

/* The else of a guard around a read: the statement again, with zero. */
static void read_zero(Sched *s, Op *guard, const Op *load)
{
    unsigned place = place_in_block(load);
    Block *b = guard->blocks[1];
    block_clone_into(clone_map_new(s->m, s->m), guard->blocks[0], b);
    Op *copy = op_in_block(b, place);
    Op *zero = sched_zero(s, load->results[0]->type->elem);
    op_insert_before(copy, zero);
    block_replace_value(b, copy->results[0], zero->results[0]);
    op_detach(copy);
}

static bool guard_access(MapWalk *w, Op *op)
{
    Sched *s = w->s;
    Op *stmt = sched_stmt_of(op);
    Facts *f = prove_facts_at(s->arena, s->m, stmt);
    const Cond *in = sched_bounds_left(s, f, op->operands[0].u.access);
    bool load = op->code == OP_mem_load;
    VEC_PUSH(s->arena, &w->seen, op);
    if (!in)
        return sched_fail(s, w->loc, "a condition passes 64 bits");
    if (in->kind == COND_true)
        return true;
    Op *guard = op_new(s->m, OP_ctl_if, stmt->loc, 1, 0, load ? 2 : 1);
    guard->operands[0] = opnd_cond(in);
    edit_wrap(s->log, stmt, stmt, guard);
    if (load)
        read_zero(s, guard, op);
    return true;
}

bool sched_guard_map(Sched *s, const Value *map, Loc loc)
{
    MapWalk w = { .s = s, .map = map, .loc = loc };
    do {
        w.next = NULL;
        if (!sched_each_access(s, map, note_map_use, &w))
            return false;
    } while (w.next && guard_access(&w, w.next));
    return !w.next;
}
