/* check-async: is a lowered program right by itself?
 *
 * Looks at a host.proc and the kernels that it launches, whoever wrote them.
 * Each part is a verdict of its own:
 *
 *   protocol    mbarriers, groups, barriers of threads, clusters (a run)
 *   races       happens-before, proxies included (the same run)
 *   layout      one map of elements to addresses for map, view, descriptor
 *   budget      shared memory, registers, barriers, shapes (the text alone)
 *   arguments   what the host checks before a launch (the text alone)
 *   instances   each instance of a statement once, by origins (the same run)
 *   refinement  the values that instances write, and the results (the same run)
 *
 * Runs are at the sizes given, or at those of verify/sizes.h. */
#ifndef EXO_VERIFY_CHECK_ASYNC_H
#define EXO_VERIFY_CHECK_ASYNC_H

#include "passes/prove.h"
#include "verify/check.h"
#include "verify/sizes.h"

#define CHECK_ASYNC_VERSION 5

/* Work of the program, as interp_estimate counts it, at the sizes of a run: a
 * GEMM of 2048 cubed takes some ten seconds and most of a GiB. */
#define CHECK_ASYNC_MOST_WORK 2e8

enum {
    ASYNC_protocol,
    ASYNC_races,
    ASYNC_layout,
    ASYNC_budget,
    ASYNC_arguments,
    ASYNC_instances,
    ASYNC_refinement,
    ASYNC_PARTS
};

/* The program that a lowered one claims to be; proc NULL: none is known. */
typedef struct AsyncSource {
    Module *m;
    const Op *proc; /* ctl.proc */
} AsyncSource;

/* Checks host (a host.proc of m); sizes and prover (for layout) may be NULL.
 * Faults go to ctx. Adds variables to the modules' index expressions and
 * nothing else. */
void check_async(Ctx *ctx, Module *m, const Op *host, const SizeSet *sizes,
                 AsyncSource source, Prover *prover,
                 CheckResult out[ASYNC_PARTS]);

#endif
