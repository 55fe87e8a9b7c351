/* Reductions of a register tile into a vector: of its rows or its columns.
 *
 * The body folds element (r, c) of the tile into element r (or c) of the
 * vector. First each lane folds the registers of the tile that go to the same
 * elements of the vector; then lanes whose parts go to the same elements
 * exchange them, one bit of the lane at a time, so that all of them end with
 * the whole; then it is folded into the vector's old element. The order is
 * another than the body's: the operation must be associative and commutative,
 * and sums are rounded in another order; where the type has 16 bits, each lane
 * takes the body's order instead, with a shuffle for each element.
 *
 *     row sum of 16 x 16 by the accumulator's map: lane 4 * g + t has 4
 *     elements of row g; 3 adds, then 2 shuffles (t xor 1, t xor 2) and adds */
#include "passes/lower/tile.h"

/* A part of the reduction: what the lanes folded so far, and where it goes. */
typedef struct Part {
    LaneElements to;
    Value *value;
    int64_t n; /* elements of the tile in it, in each lane */
} Part;

typedef struct Reduction {
    TileBody body;
    OpCode fold;
    TileArg *src;
    TileIndex src_index;
    int64_t n_parts;
    Part *parts;
} Reduction;

/* The loaded element that v is, as its parameter; NULL when it is none. */
static TileArg *loaded(Reduction *r, const Value *v, TileIndex *index)
{
    const Op *op = v->def;
    if (!op || op->code != OP_mem_load)
        return NULL;
    TileArg *arg = tile_body_arg(&r->body, op->operands[0].u.access, index);
    return arg && !index->offset[0] && !index->offset[1] ? arg : NULL;
}

/* Is the value an operation that may be folded in any order, of the vector's
 * element and the tile's? */
static bool is_combination(Reduction *r, const Op *op)
{
    TileIndex index;
    bool known =
        op && (op->code == OP_arith_fmaxf || op->code == OP_arith_fminf ||
               op->code == OP_arith_mul || op->code == OP_arith_add);
    if (!known)
        return false;
    r->fold = op->code;
    for (unsigned i = 0; i < 2; i++)
        if (loaded(r, op->operands[i].u.value, &index) == r->body.dst &&
            index.loop[0] == r->body.dst_index.loop[0]) {
            r->src = loaded(r, op->operands[1 - i].u.value, &r->src_index);
            return r->src && r->src != r->body.dst;
        }
    return false;
}

/* dst[r] = f(dst[r], src[r, c]), or dst[r] += src[r, c]. */
static bool is_fold(Reduction *r)
{
    TileBody *t = &r->body;
    const Op *last = t->inner->last;
    if (last->code == OP_mem_reduce && last->n_operands == 2) {
        r->fold = OP_arith_add;
        r->src = loaded(r, last->operands[1].u.value, &r->src_index);
    } else if (last->code != OP_mem_store ||
               !is_combination(r, last->operands[1].u.value->def)) {
        return false;
    }
    return t->depth == 2 && r->src && r->src->frag &&
           r->src->spread.rank == 2 && t->dst->spread.rank == 1 &&
           r->src_index.loop[0] != r->src_index.loop[1] &&
           r->src->frag->type->elem == t->dst->frag->type->elem;
}

/* a folded with b. */
static Value *fold(Reduction *r, Value *a, Value *b)
{
    Lower *L = r->body.L;
    Op *op = lower_emit(L, r->fold, 2, 1, 0);
    op->operands[0] = opnd_value(a);
    op->operands[1] = opnd_value(b);
    return op_set_result(L->m, op, 0, a->type, NULL);
}

/* The elements of the vector that the lanes' registers of a slot go to. */
static void targets(const Reduction *r, int64_t slot, LaneElements *out)
{
    const LaneElements *e = &r->src->spread.slots[slot];
    unsigned d = r->src_index.loop[0] == r->body.dst_index.loop[0] ? 0 : 1;
    *out = (LaneElements){ 0 };
    for (unsigned l = 0; l < SPREAD_LANES; l++)
        out->of[l].at[0] = e->of[l].at[d];
}

static Part *part_to(Reduction *r, const LaneElements *to)
{
    for (int64_t i = 0; i < r->n_parts; i++)
        if (lane_elements_equal(&r->parts[i].to, to))
            return &r->parts[i];
    r->parts[r->n_parts].to = *to;
    return &r->parts[r->n_parts++];
}

static void fold_registers(Reduction *r)
{
    const Spread *s = &r->src->spread;
    r->parts = ARENA_ARRAY(r->body.L->scratch, Part, s->n_slots);
    for (int64_t slot = 0; slot < s->n_slots; slot++) {
        LaneElements to;
        targets(r, slot, &to);
        Part *p = part_to(r, &to);
        Value *x =
            frag_part_slot(r->body.L, &(FragPart){ r->src->frag, slot, 1 });
        p->value = p->value ? fold(r, p->value, x) : x;
        p->n++;
    }
}

/* Do the lanes that differ in this bit have parts of the same elements? */
static bool is_shared(const Part *p, unsigned bit)
{
    for (unsigned l = 0; l < SPREAD_LANES; l++)
        if (p->to.of[l].at[0] != p->to.of[l ^ bit].at[0])
            return false;
    return true;
}

/* lane xor bit. */
static const Affine *other_lane(Lower *L, unsigned bit)
{
    ExprCtx *x = L->m->exprs;
    const Affine *lane = affine_var(x, L->dev->lane);
    const Affine *set = affine_mod(x, affine_floordiv(x, lane, bit), 2);
    return affine_add_const(
        x, affine_add(x, lane, affine_scale(x, set, -2 * (int64_t)bit)), bit);
}

/* Folds the lanes' parts; false where that is not the whole of `elements`. */
static bool fold_lanes(Reduction *r, Part *p, int64_t elements)
{
    for (unsigned bit = 1; bit < SPREAD_LANES; bit *= 2) {
        if (!is_shared(p, bit))
            continue;
        Value *other =
            spread_shuffle(r->body.L, p->value, other_lane(r->body.L, bit));
        p->value = fold(r, p->value, other);
        p->n *= 2;
    }
    return p->n == elements || tile_body_refuse(&r->body);
}

static Value *read_part(Lower *L, int64_t i, void *user)
{
    (void)L;
    return ((Reduction *)user)->parts[i].value;
}

/* Folds the parts into the vector. */
static bool fold_into_vector(Reduction *r)
{
    TileBody *t = &r->body;
    LaneElements *to = ARENA_ARRAY(t->L->scratch, LaneElements, r->n_parts);
    for (int64_t i = 0; i < r->n_parts; i++)
        to[i] = r->parts[i].to;
    Spread s = { 1, r->n_parts, to };
    for (int64_t slot = 0; slot < t->dst->spread.n_slots; slot++) {
        FragPart part = { t->dst->frag, slot, 1 };
        Value *x =
            spread_gather(t->L, &s, &t->dst->spread.slots[slot], read_part, r);
        if (!x)
            return tile_body_refuse(t);
        Value *old = frag_part_slot(t->L, &part);
        frag_part_put(t->L, &part, fold(r, old, x));
    }
    return true;
}

/* ---- in the body's order ------------------------------------------------- */

/* Sums and products of 16 bits are rounded so coarsely that another order gives
 * visibly other results. */
static bool order_matters(const Reduction *r)
{
    return (r->fold == OP_arith_add || r->fold == OP_arith_mul) &&
           scalar_type_bytes(r->body.dst->frag->type->elem) < 4;
}

/* Each lane folds all elements itself, asking for those that it has not. */
static bool fold_in_order(Reduction *r, int64_t n, unsigned across)
{
    TileBody *t = &r->body;
    for (int64_t slot = 0; slot < t->dst->spread.n_slots; slot++) {
        FragPart part = { t->dst->frag, slot, 1 };
        Value *v = frag_part_slot(t->L, &part);
        for (int64_t k = 0; k < n; k++) {
            LaneElements want = { 0 };
            for (unsigned l = 0; l < SPREAD_LANES; l++) {
                want.of[l].at[1 - across] =
                    t->dst->spread.slots[slot].of[l].at[0];
                want.of[l].at[across] = k;
            }
            Value *x = spread_gather(t->L, &r->src->spread, &want,
                                     tile_read_slot, r->src->frag);
            if (!x)
                return tile_body_refuse(t);
            v = fold(r, v, x);
        }
        frag_part_put(t->L, &part, v);
    }
    return true;
}

void lower_tile_reduce(Lower *L, Op *op, const Instr *in)
{
    Reduction r = { .body = { .purpose = "a reduction of a tile's rows or "
                                         "columns into a vector" } };
    if (!tile_body_open(&r.body, L, op, in))
        return;
    if (!is_fold(&r)) {
        tile_body_refuse(&r.body);
        return;
    }
    const int64_t *shape = lower_mem(L, r.src->frag->source)->packed_shape;
    unsigned across = r.src_index.loop[0] == r.body.dst_index.loop[0] ? 1 : 0;
    if (order_matters(&r)) {
        fold_in_order(&r, shape[across], across);
        return;
    }
    fold_registers(&r);
    for (int64_t i = 0; i < r.n_parts; i++)
        if (!fold_lanes(&r, &r.parts[i], shape[across]))
            return;
    fold_into_vector(&r);
}
