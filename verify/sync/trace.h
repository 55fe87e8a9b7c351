/* A task once more, with an eye on the element of a fault: which statements
 * touched it, and which synchronised around that. */
#ifndef EXO_VERIFY_SYNC_TRACE_H
#define EXO_VERIFY_SYNC_TRACE_H

#include "verify/sync/tasks.h"

/* How near a synchronisation comes: to be preferred in this order. */
typedef enum SyncNear {
    NEAR_side,    /* by threads of one of the two */
    NEAR_between, /* by threads of both, after the first */
    NEAR_element, /* an Await of the barrier to which the first reports */
    NEAR_release  /* the Arrive that gives its slot back */
} SyncNear;

/* One execution of a statement. */
typedef struct SyncMoment {
    const SyncNode *node; /* NULL: none */
    ThreadsId threads;
    uint64_t at; /* number of the event */
    int64_t home;
    unsigned n; /* iterators, outermost first */
    VarId vars[SYNC_MAX_RANK];
    int64_t values[SYNC_MAX_RANK];
} SyncMoment;

typedef struct SyncTrace {
    SyncMoment now;     /* the statement at fault */
    SyncMoment before;  /* what made the record that is not visible */
    SyncMoment nearest; /* synchronisation that came nearest */
    SyncNear near;      /* what it is */
} SyncTrace;

void sync_trace(Arena *arena, SyncRun *run, const SyncOutcome *out,
                SyncTrace *trace);
/* `tm = 0, k = 4` */
void sync_moment_print(StrBuf *out, const ExprCtx *x, const SyncMoment *m);

#endif
