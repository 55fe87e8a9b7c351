/* The second part of sync-check: the abstract machine that consumes the events
 * of one task and stops at the first hazard (docs/semantics.md, "sync-check").
 *
 * Memory is kept in boxes: along each dimension the program's accesses begin
 * and end at multiples of a grain, so a cell of that size is touched as a
 * whole or not at all. Cells hold handles of interned states; synchronisation
 * changes the states behind the handles, whose number is that of the
 * different situations alive, not that of cells.
 *
 * A task starts on global memory that all earlier work is visible on: what
 * other tasks touch is the business of tasks.h. */
#ifndef EXO_VERIFY_SYNC_MACHINE_H
#define EXO_VERIFY_SYNC_MACHINE_H

#include "verify/sync/events.h"
#include "verify/sync/records.h"

typedef enum SyncFaultKind {
    FAULT_none,
    FAULT_raw,
    FAULT_war,
    FAULT_waw,
    FAULT_use_after_free,
    FAULT_use_before_alloc,
    FAULT_free_missing_sync,
    FAULT_free_missing_arrive,
    FAULT_arrived_twice,
    FAULT_awaited_twice,
    FAULT_trailing_after_arrive,
    FAULT_arrive_count, /* at the free of a barrier */
    FAULT_await_count,
    FAULT_guard_too_short, /* a ring's guard lacks the freeing element */
    FAULT_deadlock,
    FAULT_tasks_raw,
    FAULT_tasks_war,
    FAULT_tasks_waw
} SyncFaultKind;

enum { SYNC_MAX_RANK = 16 };

/* An element of a barrier. */
typedef struct SyncElement {
    unsigned tensor;
    int64_t flat;
} SyncElement;

enum { SYNC_REPORTED = 4 };

typedef struct SyncFault {
    SyncFaultKind kind;
    const SyncNode *node; /* the statement at fault */
    unsigned tensor;
    unsigned rank;
    int64_t element[SYNC_MAX_RANK];
    ThreadsId threads; /* who executes it */
    uint32_t quals;    /* timelines that would permit it */
    VisFlag flag;      /* what is asked of the record */
    bool convergent;
    Record record; /* what was not visible; kinds up to free_missing_arrive */
    /* Elements that its completion is reported to, the first of them, and the
     * one that releases it, if any. */
    unsigned n_reported, n_releases;
    SyncElement reported[SYNC_REPORTED], release;
    int64_t count; /* arrivals or awaits found */
} SyncFault;

/* Kinds of touching, of cells of global memory. */
enum { TOUCH_read = 1, TOUCH_write = 2, TOUCH_atomic = 4 };

typedef struct SyncTouch {
    unsigned tensor;
    int64_t at[SYNC_MAX_RANK]; /* cell coordinates */
    unsigned how;
    const SyncNode *reader, *writer; /* the last ones */
} SyncTouch;

/* A loop with many trips. */
typedef struct SyncLoop {
    const SyncNode *node;
    int64_t trips;
    int64_t from, period; /* steady from that trip on; period 0: not shown */
    bool every;           /* all trips were run, at least once */
} SyncLoop;

typedef struct SyncMachine {
    SyncSink sink; /* its events go here */
    SyncFault fault;
    /* An Await came before an Arrive on its element, in program order: only
     * then can threads wait for each other. */
    bool early;
    VEC(SyncLoop) loops;
    uint64_t n_syncs; /* fences, arrivals and awaits that it was given */
} SyncMachine;

/* Grains by tensor and dimension for the sizes of the run: rank entries each.
 * */
int64_t **sync_grains(Arena *arena, const SyncRun *run);

SyncMachine *sync_machine_new(Arena *arena, SyncRun *run, int64_t **grains);
/* Calls fn for every cell of global memory that was touched. */
void sync_machine_touched(const SyncMachine *m,
                          void (*fn)(const SyncTouch *t, void *user),
                          void *user);

#endif
