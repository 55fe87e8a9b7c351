/* Loops whose state repeats.
 *
 * At the beginning of trips the state of the machine is written down, with all
 * that moves from trip to trip (moves.h) moved back. Where two are equal, the
 * trips in between do the same again and again, and so do all that follow up
 * to where a condition changes: they are not run, and the state after them is
 * made from the one at hand (docs/semantics.md, "Steady loops"). */
#ifndef EXO_VERIFY_SYNC_STEADY_H
#define EXO_VERIFY_SYNC_STEADY_H

#include "verify/sync/machine_impl.h"

/* Called at the beginning of every trip: may raise t->trip. */
void steady_trip(Machine *m, SyncTrip *t);
/* Called where t->user is set, when the loop is left. */
void steady_left(SyncTrip *t);

#endif
