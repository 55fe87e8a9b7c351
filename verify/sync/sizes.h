/* Sizes at which sync-check tries a program when none are given.
 *
 * From the bounds of its loops: for each size, values that give the loops
 * which depend on it 0, 1, depth - 1, depth, depth + 1 and 2 * depth + 1
 * trips (depth: the deepest ring), and task loops one task and several, with
 * an edge that is ragged where the asserts allow it. One size is varied at a
 * time, the others stay at a value with some trips. Every vector satisfies
 * the asserts. */
#ifndef EXO_VERIFY_SYNC_SIZES_H
#define EXO_VERIFY_SYNC_SIZES_H

#include "verify/sync/events.h"

/* The control parameters of a procedure, in order. */
typedef struct SyncParams {
    unsigned n;
    const VarId *vars;
} SyncParams;

SyncParams sync_params(Arena *arena, const SyncProgram *p);

typedef struct SyncSizes {
    SyncParams params;
    VEC(const int64_t *) vectors; /* values by parameter */
} SyncSizes;

void sync_sizes_derive(Arena *arena, const SyncProgram *p, SyncSizes *out);
/* Do these values satisfy the asserts? Those that speak of strides or of what
 * is not known are passed over. *op: the one that is broken. */
bool sync_sizes_fit(const SyncProgram *p, const SyncParams *params,
                    const int64_t *values, const Op **op);
/* `M=128, N=256` */
void sync_sizes_print(StrBuf *out, const SyncProgram *p,
                      const SyncParams *params, const int64_t *values);

#endif
