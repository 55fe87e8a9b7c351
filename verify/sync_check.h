/* sync-check: does a program, run in parallel with its asynchronous
 * instructions, compute what it computes when read sequentially?
 *
 * Decided at concrete sizes by the abstract machine of docs/semantics.md
 * ("sync-check"), which also finds what can never go on. Hazards are reported
 * with both accesses, the element, the threads, the iterators, and the
 * synchronisation that came nearest to ordering them. */
#ifndef EXO_VERIFY_SYNC_CHECK_H
#define EXO_VERIFY_SYNC_CHECK_H

#include "passes/prove.h"
#include "verify/check.h"

#define SYNC_CHECK_VERSION 1

typedef struct SyncSize {
    const char *name;
    int64_t value;
} SyncSize;

/* What is asked. */
typedef struct SyncAsk {
    unsigned n_sizes; /* 0: sizes derived from the program */
    const SyncSize *sizes;
    Prover *prover;    /* of places of tasks; NULL: the first layer */
    bool every_step;   /* run all steps of loops that are steady, too */
    uint64_t most_mib; /* memory that may be used; 0: SYNC_MOST_MIB */
} SyncAsk;

#define SYNC_MOST_MIB 1000

/* What was run for the answer. */
typedef struct SyncCost {
    uint64_t statements; /* steps of loops among them */
    uint64_t syncs;      /* fences, arrivals and awaits */
} SyncCost;

/* The scope says which sizes. Faults go to ctx, costs are added to *cost, if
 * not NULL. Adds coordinates to the module's index expressions and nothing
 * else. */
CheckResult sync_check(Ctx *ctx, Module *m, Op *proc, const SyncAsk *ask,
                       SyncCost *cost);

#endif
