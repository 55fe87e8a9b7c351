/* derived.* attributes: what the par analysis and the layout of shared memory
 * find out, on the ops of device functions that it is about.
 *
 *   derived.threads  loop, CudaWarps, device: who executes the body, as
 *                    (threads of the collective, CTAs it spans)
 *   derived.iter     thread loop: its iterator, over cta, warp and lane
 *   derived.guard    thread loop, CudaWarps: who goes on, unless all do
 *   derived.dist     allocation: its distributed dimensions, as ((tiles,
 *                    threads from one to the next), ..)
 *   derived.shard    allocation: the extents of the rest, a ring's its depth
 *   derived.offset   shared memory, mbarriers: the byte where it begins
 *   derived.count    mbarrier: the threads whose Arrives complete a phase
 *   derived.home     Arrive, Await: for each dimension the number of the
 *                    expression that gives the home's point
 *   derived.ctas     Arrive: it reaches the CTAs cta xor x, for these x
 *
 * They are absent from what people write, and dropped by passes that do not say
 * that they preserve them. Where a text has them they are found out again and
 * compared. */
#ifndef EXO_PASSES_LOWER_DERIVED_H
#define EXO_PASSES_LOWER_DERIVED_H

#include "passes/analysis/par_info.h"

/* Writes the attributes of every op at or below root, in place of those that it
 * has; pi is the analysis of m, or of that part. For exo-opt's
 * --print-derived. */
void derived_write(Ctx *ctx, Module *m, ParInfo *pi, Op *root);

/* Reports (code "derived") the attributes at or below root that say something
 * else than what is found out. For check-par. */
bool derived_check(Ctx *ctx, Module *m, ParInfo *pi, Op *root);

#endif
