/* Collective units and tilings: which threads execute a statement.
 *
 * The threads of a cluster are seen as a cuboid, its *domain*: extents, outer
 * first, whose product is the number of threads. A Shape is a unit evaluated at
 * one blockDim and clusterDim: a domain and, per dimension, how many threads
 * of it belong to one collective. A Tiling is the state of a scope: the domain
 * refined so far and, per dimension, the loops and warp ranges that narrowed
 * it, outermost first. Tilings are values: each operation gives a new one in
 * the arena and leaves its input alone.
 *
 * Positions are index expressions over the coordinates of the device function
 * (cta, warp, lane), so that a loop's iterator comes out as an expression of
 * them. Failures are texts, not diagnostics: the caller knows the statement.
 * The rules are those of docs/checks.md, "Collectives". */
#ifndef EXO_PASSES_ANALYSIS_TILING_H
#define EXO_PASSES_ANALYSIS_TILING_H

#include "ir/lib.h"

/* A box entry that says nothing about its dimension. */
#define BOX_ANY ((int64_t)-1)

/* A unit at one blockDim and clusterDim. */
typedef struct Shape {
    unsigned n;
    int64_t *domain, *box; /* box: BOX_ANY, or at least 1 */
    bool partial;          /* from a unit: the domain may cover one CTA only */
} Shape;

/* What unit completion says of a dimension. */
typedef enum DimLabel {
    LABEL_none,
    LABEL_agnostic, /* the unit says nothing */
    LABEL_intact,   /* the unit needs all of it */
    LABEL_subdiv    /* the unit needs one position of it */
} DimLabel;

/* One loop or warp range on one dimension. An op whose box is smaller than a
 * later split stands on both halves, with the same iterator. */
typedef struct TileOp {
    const Op *by;    /* the loop or CudaWarps; NULL: an argument's interval */
    VarId iter;      /* 0: CudaWarps, or an argument's interval */
    unsigned serial; /* identity: equal on both halves of a split */
    int64_t offset, box, tile_count;
    int64_t pitch;       /* threads from one tile to the next; 0: one tile */
    unsigned depth;      /* tree depth of the scope it opens */
    const Affine *value; /* the tile of the executing thread */
    const Affine *start; /* where its box begins in the box before */
} TileOp;

typedef struct TileDim {
    int64_t extent, pitch; /* pitch: product of the extents to its right */
    const Affine *intra;   /* position within the current box */
    unsigned n_ops;
    TileOp *ops;
    DimLabel label;
} TileDim;

typedef struct Tiling {
    unsigned depth; /* of the scope's tree */
    unsigned n;
    TileDim *dims;
} Tiling;

/* Where tilings are made. */
typedef struct TilingCtx {
    Arena *arena;
    ExprCtx *exprs;
    int64_t block_dim, cluster_dim;
    unsigned next_serial;
} TilingCtx;

/* NULL and a text in *why (in the arena) on failure, here and below. */
const Shape *shape_of_unit(TilingCtx *tc, const Unit *u, const char **why);

/* The tiling of a device function's tasks: (blockDim), or (clusterDim,
 * blockDim) when there are several CTAs, all of it. */
const Tiling *tiling_top(TilingCtx *tc, const Affine *cta,
                         const Affine *thread);

/* Threads left on a dimension, where they begin, and on all of them. */
int64_t tile_dim_box(const TileDim *d);
int64_t tile_dim_offset(const TileDim *d);
int64_t tiling_threads(const Tiling *t);
/* Linear offset of the collective whose iterators are all 0. */
int64_t tiling_offset(const Tiling *t);

/* A loop of `count` tiles of a unit (by, iter), or the range [lo, hi) of units
 * (iter 0). *guard: which threads of the old collective take part; *value: the
 * iterator. */
typedef struct TileRequest {
    const Shape *unit;
    const Op *by;
    VarId iter;
    int64_t lo, hi;
    bool specialise;
} TileRequest;
const Tiling *tiling_derive(TilingCtx *tc, const Tiling *t,
                            const TileRequest *r, const Cond **guard,
                            const Affine **value, const char **why);

/* The tiling refined for a unit, its dimensions labelled. */
const Tiling *tiling_complete(TilingCtx *tc, const Tiling *t, const Shape *unit,
                              const char **why);

/* Is the collective exactly one of this unit, aligned as it must be? When not,
 * *why says what differs. */
bool tiling_matches(TilingCtx *tc, const Tiling *t, const Shape *unit,
                    const char **why);

/* Two completed tilings: the same collectives? subdiv_only looks at the
 * dimensions labelled subdiv alone. */
bool tiling_same_base(TilingCtx *tc, const Tiling *a, const Tiling *b,
                      bool subdiv_only, const char **why);

/* `domain=(256), box=(32)`. */
void tiling_print(StrBuf *out, const Tiling *t);
void shape_print(StrBuf *out, const Shape *s);

#endif
