/* A grid that may start before the grids ahead of it in the stream have ended
 * (programmatic dependent launch): behind griddepcontrol.wait they have, and
 * what they wrote is visible. So every thread touches global memory behind its
 * own wait; and some thread waits in any case, so that the grid does not end
 * before those ahead of it, for which alone the next grid waits.
 *
 * dependent_event watches this in a run, a part of the races; dependent_ptx
 * looks for accesses that the PTX has ahead of the wait, a part of the
 * read-back, which compares no ordinary loads otherwise. */
#ifndef EXO_VERIFY_ASYNC_DEPENDENT_H
#define EXO_VERIFY_ASYNC_DEPENDENT_H

#include "verify/async/run.h"
#include "verify/ptx/ptx.h"

/* Is it launched so? */
bool dependent_launch(const Op *kernel);

/* The next event of a run, after the order took it. Faults: race_fault. */
void dependent_event(AsyncRun *r, const MachineEvent *e);

/* The first instruction that touches global memory and can be reached without
 * a wait, or NULL. *certain: the kernel waits where all threads do, so that
 * there is no way around it. */
const PtxInstr *dependent_ptx(Arena *a, const Op *kernel, const PtxKernel *ptx,
                              bool *certain);

#endif
