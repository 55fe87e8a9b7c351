/* Register tiles as tables: the element in each register of each lane.
 *
 * A memory's map says where an element is; here it is turned round, for all
 * elements, so that a hook can ask what a register holds and compare whole
 * tiles. Expressions of the lane are made from the tables again: an index is a
 * sum of multiples of the lane's five bits, or has no expression. */
#include "passes/lower/spread.h"

enum { LANE_BITS = 5 };

/* ---- tables -------------------------------------------------------------- */

static bool index_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Element *e = env->user;
    if (atom->kind != ATOM_var || atom->var < 1 || atom->var > 2)
        return false;
    *out = e->at[atom->var - 1];
    return true;
}

/* Enters element e, in all its copies; false where it finds no place. */
static bool put_element(const Mem *mem, Element e, Spread *s, uint32_t *filled)
{
    Env env = { .value = index_value, .user = &e };
    int64_t lane, slot;
    if (!affine_eval(mem->map_thread, &env, &lane) ||
        !affine_eval(mem->map_slot, &env, &slot) || slot < 0 ||
        slot >= s->n_slots)
        return false;
    for (int64_t i = 0; i < mem->n_copies; i++, lane += mem->copy_pitch) {
        if (lane < 0 || lane >= SPREAD_LANES || filled[slot] >> lane & 1)
            return false;
        s->slots[slot].of[lane] = e;
        filled[slot] |= 1u << lane;
    }
    return true;
}

bool spread_of(Lower *L, const Mem *mem, Spread *out)
{
    if (!mem || !mem->map_slot || !mem->packed_shape || mem->packed < 1 ||
        mem->packed > 2 || mem->n_slots < 1)
        return false;
    int64_t rows = mem->packed_shape[0];
    int64_t cols = mem->packed == 2 ? mem->packed_shape[1] : 1;
    uint32_t *filled = ARENA_ARRAY(L->scratch, uint32_t, mem->n_slots);
    *out = (Spread){ mem->packed, mem->n_slots,
                     ARENA_ARRAY(L->scratch, LaneElements, mem->n_slots) };
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            if (!put_element(mem, (Element){ { r, c } }, out, filled))
                return false;
    for (int64_t slot = 0; slot < mem->n_slots; slot++)
        if (filled[slot] != UINT32_MAX)
            return false;
    return true;
}

static bool element_equal(Element a, Element b)
{
    return a.at[0] == b.at[0] && a.at[1] == b.at[1];
}

bool lane_elements_equal(const LaneElements *a, const LaneElements *b)
{
    for (unsigned l = 0; l < SPREAD_LANES; l++)
        if (!element_equal(a->of[l], b->of[l]))
            return false;
    return true;
}

/* ---- expressions of the lane --------------------------------------------- */

/* The expression whose value in lane l is x[l], or NULL. Bits whose factors
 * double from one to the next are one term. */
static const Affine *lane_expr(Lower *L, const int64_t *x)
{
    ExprCtx *exprs = L->m->exprs;
    int64_t factor[LANE_BITS];
    for (unsigned b = 0; b < LANE_BITS; b++)
        factor[b] = x[1u << b] - x[0];
    for (unsigned l = 0; l < SPREAD_LANES; l++) {
        int64_t sum = x[0];
        for (unsigned b = 0; b < LANE_BITS; b++)
            sum += (l >> b & 1) * factor[b];
        if (sum != x[l])
            return NULL;
    }
    const Affine *lane = affine_var(exprs, L->dev->lane);
    const Affine *sum = affine_const(exprs, x[0]);
    for (unsigned b = 0, end; b < LANE_BITS; b = end) {
        end = b + 1;
        while (end < LANE_BITS && factor[end] == 2 * factor[end - 1])
            end++;
        const Affine *bits = affine_floordiv(exprs, lane, (int64_t)1 << b);
        if (end < LANE_BITS)
            bits = affine_mod(exprs, bits, (int64_t)1 << (end - b));
        sum = affine_add(exprs, sum, affine_scale(exprs, bits, factor[b]));
    }
    return sum;
}

const Affine *spread_index(Lower *L, const LaneElements *e, unsigned d)
{
    int64_t x[SPREAD_LANES];
    for (unsigned l = 0; l < SPREAD_LANES; l++)
        x[l] = e->of[l].at[d];
    return lane_expr(L, x);
}

/* ---- elements of other lanes --------------------------------------------- */

/* Where each lane finds what it wants. */
typedef struct Sources {
    int64_t lane[SPREAD_LANES], slot[SPREAD_LANES];
} Sources;

/* The first lane and slot with the element. */
static bool find_element(const Spread *s, Element e, int64_t *lane,
                         int64_t *slot)
{
    for (*slot = 0; *slot < s->n_slots; ++*slot)
        for (*lane = 0; *lane < SPREAD_LANES; ++*lane)
            if (element_equal(s->slots[*slot].of[*lane], e))
                return true;
    return false;
}

Value *spread_shuffle(Lower *L, Value *v, const Affine *from)
{
    Op *op = lower_emit(L, OP_async_shfl_sync, 2, 1, 0);
    op->operands[0] = opnd_value(v);
    op->operands[1] = opnd_index(from);
    return op_set_result(L->m, op, 0, v->type, NULL);
}

/* a where the condition holds, else b. */
static Value *choose(Lower *L, const Cond *c, Value *a, Value *b)
{
    Value *v[2] = { a, b };
    Op *op = lower_emit(L, OP_ctl_if, 1, 1, 2);
    op->operands[0] = opnd_cond(c);
    Block *outer = L->out;
    for (unsigned i = 0; i < 2; i++) {
        L->out = op->blocks[i];
        lower_emit(L, OP_ctl_yield, 1, 0, 0)->operands[0] = opnd_value(v[i]);
    }
    L->out = outer;
    return op_set_result(L->m, op, 0, a->type, NULL);
}

/* Each slot that is a source is sent once; a lane chooses among them. */
static Value *gather_by_shuffles(Lower *L, const Spread *s, const Sources *src,
                                 SlotFn read, void *user)
{
    const Affine *from = lane_expr(L, src->lane);
    const Affine *which = lane_expr(L, src->slot);
    Value *result = NULL;
    for (int64_t slot = 0; from && which && slot < s->n_slots; slot++) {
        bool used = false;
        for (unsigned l = 0; l < SPREAD_LANES; l++)
            used = used || src->slot[l] == slot;
        if (!used)
            continue;
        Value *sent = spread_shuffle(L, read(L, slot, user), from);
        const Affine *k = affine_const(L->m->exprs, slot);
        result = result ? choose(L, cond_cmp(L->m->exprs, CMP_eq, which, k),
                                 sent, result)
                        : sent;
    }
    return result;
}

Value *spread_gather(Lower *L, const Spread *s, const LaneElements *want,
                     SlotFn read, void *user)
{
    Sources src;
    for (int64_t slot = 0; slot < s->n_slots; slot++)
        if (lane_elements_equal(&s->slots[slot], want))
            return read(L, slot, user);
    for (unsigned l = 0; l < SPREAD_LANES; l++)
        if (!find_element(s, want->of[l], &src.lane[l], &src.slot[l]))
            return NULL;
    return gather_by_shuffles(L, s, &src, read, user);
}
