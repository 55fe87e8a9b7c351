/* How the body of a loop moves from trip to trip.
 *
 * Where all index expressions of a body change by constants when the loop's
 * variable grows by a period, no condition on it changes its outcome and no
 * access is clipped, the statements of a trip are those of the trip a period
 * earlier, moved: each tensor and barrier by a constant along one dimension,
 * or not at all. */
#ifndef EXO_VERIFY_SYNC_MOVES_H
#define EXO_VERIFY_SYNC_MOVES_H

#include "verify/sync/events.h"

/* What becomes of one tensor. */
typedef struct Move {
    bool touched; /* the body accesses it, or wakes elements of it */
    unsigned dim;
    int64_t by;  /* elements of the tensor in a period; 0: it stays */
    int64_t low; /* least index along dim from trip `lo` on */
} Move;

typedef struct Moves {
    int64_t period;
    int64_t lo, hi; /* trips of which the above holds */
    Move *tensors;
} Moves;

/* Of the loop's trips [lo, hi), as the variables outside of it are now and
 * with these grains. False where it is not shown of trips in the middle. */
bool moves_find(Arena *arena, const SyncRun *run, const SyncNode *loop,
                int64_t lo, int64_t hi, Moves *out);

#endif
