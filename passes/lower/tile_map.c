/* Element-wise instructions on register tiles.
 *
 * The body writes element (r, c) of one tile from the elements (r, c) of
 * others, or those a constant further on, from vectors at r or c, and from
 * scalars. Each register of the written tile is a copy of the innermost block.
 * Where its lane has what is read, in one register for all lanes, that is all;
 * elsewhere the lanes ask each other by shuffles: so do copies between tiles of
 * different maps. */
#include "passes/lower/tile.h"

#include "passes/analysis/par_text.h"

/* The elements that the lanes read of a tile while they write t->slot. */
static void wanted(const TileBody *t, const TileIndex *index, unsigned rank,
                   LaneElements *out)
{
    const LaneElements *dst = &t->dst->spread.slots[t->slot];
    *out = (LaneElements){ 0 };
    for (unsigned l = 0; l < SPREAD_LANES; l++)
        for (unsigned d = 0; d < rank; d++)
            out->of[l].at[d] =
                dst->of[l].at[index->loop[d] == t->dst_index.loop[0] ? 0 : 1] +
                index->offset[d];
}

static Value *load_element(TileBody *t, TileArg *arg, const TileIndex *index)
{
    LaneElements want;
    wanted(t, index, arg->spread.rank, &want);
    Value *v =
        spread_gather(t->L, &arg->spread, &want, tile_read_slot, arg->frag);
    if (!v)
        lower_error(t->L, t->op->loc, "instruction",
                    "'%s': the tiles %s and %s are spread over the threads in "
                    "ways that shuffles cannot bring together",
                    t->in->name, par_text_value(t->dst->frag->source),
                    par_text_value(arg->frag->source));
    return v;
}

/* The loops' variables as the indices of the element in t->slot. */
static bool map_loops(TileBody *t)
{
    const LaneElements *e = &t->dst->spread.slots[t->slot];
    for (unsigned d = 0; d < t->depth; d++) {
        const Affine *index = spread_index(t->L, e, d);
        if (!index)
            return tile_body_refuse(t);
        clone_map_index(t->map, t->loops[t->dst_index.loop[d]], index);
    }
    return true;
}

void lower_tile_map(Lower *L, Op *op, const Instr *in)
{
    TileBody t = { .load = load_element, .purpose = "element-wise" };
    if (!tile_body_open(&t, L, op, in))
        return;
    if (t.dst->spread.rank != t.depth ||
        (t.depth == 2 && t.dst_index.loop[0] == t.dst_index.loop[1])) {
        tile_body_refuse(&t);
        return;
    }
    for (t.slot = 0; t.slot < t.dst->spread.n_slots; t.slot++) {
        t.current = NULL;
        if (!map_loops(&t) || !tile_body_emit(&t))
            return;
        if (t.current)
            frag_part_put(L, &(FragPart){ t.dst->frag, t.slot, 1 }, t.current);
    }
}
