/* Does the lowered program do what the par program says, by the origins that
 * its ops claim?
 *
 * An origin names a statement and the values of its iterators: an instance. At
 * given sizes the instances of every par statement that writes shared or global
 * memory, arrives or waits are listed by walking its loops; the instances that
 * the run executed are listed by evaluating the origins. Both lists must be the
 * same, and no thread may execute one op twice for one instance. */
#ifndef EXO_VERIFY_ASYNC_REFINE_H
#define EXO_VERIFY_ASYNC_REFINE_H

#include "verify/machine/machine.h"
#include "verify/sizes.h"

typedef struct Refine Refine;

/* Lists the instances of proc (a ctl.proc of the par module m) at these sizes,
 * in the order of its control parameters. In the arena. */
Refine *refine_new(Arena *arena, Ctx *ctx, Module *m, const Op *proc,
                   const SizeSet *sizes);
/* Takes an MEV_op; reports an instance that is none, or comes twice. */
void refine_event(Refine *r, const MachineEvent *e);
/* Reports instances that were not executed; false after any report. */
bool refine_end(Refine *r);
/* Why nothing can be said, or NULL. */
const char *refine_open(const Refine *r);

#endif
