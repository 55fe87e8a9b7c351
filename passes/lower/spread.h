/* Where the elements of a warp's register tile are: which element each register
 * of each lane holds, by the memory's map. Called by the hooks on register
 * tiles (tile_map.c, tile_reduce.c, tile_copy.c). */
#ifndef EXO_PASSES_LOWER_SPREAD_H
#define EXO_PASSES_LOWER_SPREAD_H

#include "passes/lower/lower.h"

enum { SPREAD_LANES = 32 };

/* The index of an element of a tile of one or two dimensions. */
typedef struct Element {
    int64_t at[2]; /* at[1] is 0 in one dimension */
} Element;

/* What each lane wants, or has. */
typedef struct LaneElements {
    Element of[SPREAD_LANES];
} LaneElements;

typedef struct Spread {
    unsigned rank;
    int64_t n_slots;
    LaneElements *slots; /* what the lanes have in each slot */
} Spread;

/* The spread of a memory's tile. False, without a report, where its map does
 * not put an element into each register of each lane. */
bool spread_of(Lower *L, const Mem *mem, Spread *out);
/* Index d of the slot's element as an expression of the lane, or NULL: then it
 * is no sum of multiples of the lane's bits. */
const Affine *spread_index(Lower *L, const LaneElements *e, unsigned d);
bool lane_elements_equal(const LaneElements *a, const LaneElements *b);

/* Reads slot `slot` of a tile, for spread_gather. */
typedef Value *(*SlotFn)(Lower *L, int64_t slot, void *user);
/* For each lane the element that it wants: its own register where it has it,
 * else by shuffles. NULL, without a report, where the lanes to ask are no sum
 * of multiples of the lane's bits or an element is not there. */
Value *spread_gather(Lower *L, const Spread *s, const LaneElements *want,
                     SlotFn read, void *user);
/* The value that lane `from`, an expression of the lane, has. */
Value *spread_shuffle(Lower *L, Value *v, const Affine *from);

#endif
