/* All tasks of a device function at concrete sizes.
 *
 * Tasks run on threads of their own and share global memory only, so each is
 * run by itself and what they touch of global memory is compared. Tasks whose
 * signature is the same do the same up to a translation of global memory, and
 * one of them is run: the signature holds, of all that depends on a task's
 * coordinates, the outcome where it is the same in all iterations, else the
 * part that the coordinates contribute. Where coordinates and iterators are
 * mixed under a division, every task is run. */
#ifndef EXO_VERIFY_SYNC_TASKS_H
#define EXO_VERIFY_SYNC_TASKS_H

#include "verify/sync/machine.h"

typedef struct SyncOutcome {
    const char *unknown; /* why it was not decided, or NULL */
    SyncFault fault;     /* FAULT_none: proved */
    /* The task at fault, and for conflicts of tasks the one before it. */
    int64_t task[SYNC_MAX_RANK], other[SYNC_MAX_RANK];
    const SyncNode *other_node;
    /* Deadlock: the statements that wait for each other, in words. */
    const char *cycle;
    uint64_t n_tasks, n_classes, n_events, n_syncs;
    /* Of loops with many trips, in all tasks that were run: each once. */
    VEC(SyncLoop) loops;
    Arena *kept; /* of what `fault` refers to: free it last; or NULL */
} SyncOutcome;

/* run->vars holds sizes and host iterators. */
void sync_tasks_check(Arena *arena, SyncRun *run, SyncOutcome *out);

#endif
