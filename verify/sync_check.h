/* sync-check: does a program, run in parallel with its asynchronous
 * instructions, compute what it computes when read sequentially?
 *
 * Decided at concrete sizes by the abstract machine of docs/semantics.md
 * ("sync-check"), which also finds what can never go on. Hazards are reported
 * with both accesses, the element, the threads, the iterators, and the
 * synchronisation that came nearest to ordering them. */
#ifndef EXO_VERIFY_SYNC_CHECK_H
#define EXO_VERIFY_SYNC_CHECK_H

#include "verify/check.h"

#define SYNC_CHECK_VERSION 1

typedef struct SyncSize {
    const char *name;
    int64_t value;
} SyncSize;

/* At the sizes given, or, with none, at sizes derived from the program; the
 * scope says which. Faults go to ctx. Adds coordinates to the module's index
 * expressions and nothing else. */
CheckResult sync_check(Ctx *ctx, Module *m, Op *proc, unsigned n_sizes,
                       const SyncSize *sizes);

#endif
