/* Instructions on register tiles of a warp, as the hooks of the same names.
 * Called from lower_instr. */
#ifndef EXO_PASSES_LOWER_TILE_H
#define EXO_PASSES_LOWER_TILE_H

#include "passes/lower/spread.h"

/* ---- the hooks ----------------------------------------------------------- */

/* Repeats the innermost block of the instance's body for each register of the
 * tile that it writes. */
void lower_tile_map(Lower *L, Op *op, const Instr *in);
/* Folds the elements of a tile into a vector along rows or columns. */
void lower_tile_reduce(Lower *L, Op *op, const Instr *in);
/* A tile from and to memory, element by element. */
void lower_tile_load(Lower *L, Op *op, const Instr *in);
void lower_tile_store_elements(Lower *L, Op *op, const Instr *in);
void lower_tile_store_transposed(Lower *L, Op *op, const Instr *in);
/* Memory to memory by the lanes of a warp. */
void lower_warp_copy(Lower *L, Op *op, const Instr *in);
/* Sums over the CTAs of a cluster, read from the shared memory of each. */
void lower_cluster_reduce(Lower *L, Op *op, const Instr *in);

/* ---- the body of such an instruction: tile_body.c ------------------------ */

/* What a data parameter of the body stands for. */
typedef struct TileArg {
    const Value *param;
    Frag *frag; /* NULL: a scalar */
    Spread spread;
    Value *scalar;
} TileArg;

/* Index d of an element: the variable of loop[d] and a constant. */
typedef struct TileIndex {
    unsigned loop[2];
    int64_t offset[2];
} TileIndex;

/* A nest of one or two loops over elements, whose innermost block writes one
 * element of one parameter. The hook says what its loads give. */
typedef struct TileBody TileBody;
struct TileBody {
    Lower *L;
    Op *op;
    const Instr *in;
    const Block *inner;
    unsigned depth; /* of the nest */
    VarId loops[2];
    CloneMap *map; /* body to kernel; the hook maps the loops' variables */
    unsigned n;
    TileArg *args; /* by parameter; all zero for an index */
    TileArg *dst;
    TileIndex dst_index;
    Value *current; /* what dst's element is by now, NULL: as it was */
    /* A load of a tile; NULL after an error. */
    Value *(*load)(TileBody *t, TileArg *arg, const TileIndex *index);
    int64_t slot;        /* of dst, that is being emitted */
    const char *purpose; /* for errors: what the body is not */
};

/* Fills t from the call; false after an error. */
bool tile_body_open(TileBody *t, Lower *L, Op *op, const Instr *in);
/* The parameter that an access of the body takes an element of, and which; NULL
 * where it is no such access. */
TileArg *tile_body_arg(TileBody *t, const Access *a, TileIndex *index);
/* Emits the innermost block once; false after an error. */
bool tile_body_emit(TileBody *t);
/* The slot's register of a fragment, for spread_gather. */
Value *tile_read_slot(Lower *L, int64_t slot, void *frag);
/* An error at the call: the body is not what the hook is for. Always false. */
bool tile_body_refuse(TileBody *t);

#endif
