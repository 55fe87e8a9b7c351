/* What an index expression can be, from what its variables can be. Bounds are
 * safe, not always the least. */
#ifndef EXO_VERIFY_SYNC_RANGES_H
#define EXO_VERIFY_SYNC_RANGES_H

#include "ir/affine.h"

typedef struct Range {
    bool known;
    int64_t lo, hi; /* inclusive */
} Range;

/* vars: by VarId. False where a variable is not known, or on overflow. */
bool range_of(const Range *vars, const Affine *e, Range *out);
/* The variable of a loop over [lo, hi), lo NULL being 0; its first value where
 * the loop may not run at all. */
bool range_of_loop(const Range *vars, const Affine *lo, const Affine *hi,
                   Range *out);

#endif
