/* Domain completion: what tiling.c stands on; nobody else includes it. */
#ifndef EXO_PASSES_ANALYSIS_DOMAIN_H
#define EXO_PASSES_ANALYSIS_DOMAIN_H

#include "passes/analysis/tiling.h"

/* A failure text; answers NULL so that callers can return it. */
void *domain_fail(TilingCtx *tc, const char **why, const char *fmt, ...)
    EXO_PRINTF(3, 4);

/* An empty tiling with room for so many dimensions. */
Tiling *tiling_new(TilingCtx *tc, unsigned depth, unsigned room);
void tile_dim_push(TilingCtx *tc, TileDim *d, TileOp op);

/* Each dimension of which the unit takes a part becomes two: which part, and
 * the part. */
const Shape *shape_align(TilingCtx *tc, const Shape *s, const char **why);

/* Thread pitches at which dimensions end: ascending, from 1 to the number of
 * threads, once they are a chain. */
typedef struct Cuts {
    unsigned n;
    int64_t *at;
} Cuts;

int64_t tiling_extent(const void *tiling, unsigned i);
int64_t shape_extent(const void *shape, unsigned i);
/* Adds the cuts of a domain of n dimensions. */
void cuts_add(Cuts *c, unsigned n, int64_t (*extent)(const void *, unsigned),
              const void *of);
/* Sorts, removes repetitions, and demands that each divides the next. */
bool cuts_chain(TilingCtx *tc, Cuts *c, const char **why);
/* Splits every dimension of t at the cuts inside it. */
Tiling *tiling_refine(TilingCtx *tc, const Tiling *t, const Cuts *c,
                      const char **why);

/* Refines t and s to one domain. A unit of fewer threads than there are gets an
 * outer dimension with the box entry outer_box. */
bool domain_complete(TilingCtx *tc, const Tiling *t, const Shape *s,
                     int64_t outer_box, Tiling **t_out, Shape **s_out,
                     const char **why);

#endif
