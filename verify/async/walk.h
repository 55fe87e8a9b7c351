/* Goes through code with the set of states that its kernel can be in
 * (automaton.h). From a place where ways meet it goes on with each set of which
 * it has not gone on with a part: what can be done with that can be done with
 * the set. Used by paths.h and sass_order.h. */
#ifndef EXO_VERIFY_ASYNC_WALK_H
#define EXO_VERIFY_ASYNC_WALK_H

#include "verify/async/automaton.h"

#define WALK_ON UINT32_MAX

/* Instruction i is executed, or skipped by its guard, with *set, which becomes
 * that behind it. *next: where control goes on then (WALK_ON: where the
 * instruction says). False: nowhere. */
typedef bool WalkStep(void *user, uint32_t i, bool runs, unsigned *set,
                      uint32_t *next);

/* Calls `step` for all that a thread can come to, which `can` says (ptx_run),
 * until *stop. False where there are more places than `most`. */
bool walk_code(Arena *a, const Automaton *n, const PtxKernel *k,
               const uint8_t *can, size_t most, WalkStep *step, void *user,
               const bool *stop);

#endif
