/* Does every path of a thread through the PTX do what a path through its
 * kernel does?
 *
 * For each thread of a cluster by itself, what both sides can do is a language
 * over the letters of letters.h. Each letter is there as often in the one
 * as in the other, and each path of the PTX is one of the kernel's, so that
 * nothing was duplicated, sunk, hoisted, dropped or moved to another role. */
#ifndef EXO_VERIFY_ASYNC_PATHS_H
#define EXO_VERIFY_ASYNC_PATHS_H

#include "ir/ir.h"
#include "verify/ptx/ptx.h"

typedef struct PathFault {
    const char *code; /* PTX-COUNT, PTX-ORDER; NULL: none was found */
    const char *text;
    uint32_t line; /* of the PTX */
    bool unsure;   /* a branch could not be followed: it may be none */
} PathFault;

/* The first fault. `arch` is the PTX's target. */
PathFault paths_compare(Arena *a, const Module *m, const Op *kernel,
                        const PtxKernel *ptx, const char *arch);

#endif
