/* What a thread decides by its coordinates, of a kernel and of the code that
 * was made from it; and all threads of a cluster that differ in that.
 *
 * Every thread is looked at, so that roles need no mark in the code. Of a
 * warp that elects a lane, it is lane 0 on both sides. Used by paths.h and
 * sass.h. */
#ifndef EXO_VERIFY_ASYNC_THREADS_H
#define EXO_VERIFY_ASYNC_THREADS_H

#include "ir/ir.h"
#include "passes/abi.h"
#include "verify/ptx/ptx.h"

typedef enum Truth { TRUTH_no, TRUTH_yes, TRUTH_open } Truth;

typedef struct Coords {
    VarId var[ABI_N_COORDS]; /* cta, warp, lane */
    int64_t value[ABI_N_COORDS];
} Coords;

/* Does the thread enter the first block of a ctl.if, a role or an elect? */
Truth thread_enters(const Op *op, Coords *at);
/* "thread: cta = 0, warp = 4 (role 'math'), lane = 0" */
const char *thread_text(Arena *a, const Op *kernel, const Coords *at);

/* can: what ptx_run says of the thread; sure: its result. False: no more. */
typedef bool ThreadFn(void *user, Coords *at, const uint8_t *can, bool sure);

/* Calls fn for a thread of each kind, by what it decides on both sides. False
 * where the kernel's launch is none, which the budget refuses. */
bool threads_visit(Arena *a, const Op *kernel, const PtxKernel *ptx,
                   ThreadFn *fn, void *user);

#endif
