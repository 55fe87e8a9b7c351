/* Does the lowered program do what the par program says?
 *
 * Both are run on the same inputs, whose values are random (values.h). What
 * they compute must be the same bits. And statement by statement, by the
 * origins that the lowered ops claim: an origin names a statement and the
 * values of its iterators, an instance. Every instance of a statement that
 * writes shared or global memory, arrives or waits is carried out, no thread
 * executes one op twice for an instance, and what all its ops write for it
 * together are the elements that the statement writes: as many, with the same
 * values, in global memory at the same places. */
#ifndef EXO_VERIFY_ASYNC_REFINE_H
#define EXO_VERIFY_ASYNC_REFINE_H

#include "verify/machine/machine.h"

typedef struct Refine Refine;
struct Turns;

/* For proc, a ctl.proc of the par module m, whose run is seen by turns unless
 * NULL. In the arena, but for what refine_free gives back. */
Refine *refine_new(Arena *arena, Ctx *ctx, Module *m, const Op *proc,
                   struct Turns *turns);
/* Runs the program on copies of the arguments and keeps what it does. */
void refine_program(Refine *r, const ProcArg *args, unsigned n);
/* The events that refine_event takes, as an observer's `wants`. */
uint32_t refine_wants(void);
/* Looks at the lowered program's run; reports an instance that is none, or
 * comes twice. */
void refine_event(Refine *r, const MachineEvent *e);
/* After a run that came to its end: holds what was done, and the arguments as
 * they are now, against the program, and reports the first difference. */
void refine_end(Refine *r, const ProcArg *args, unsigned n, Loc host);
void refine_free(Refine *r);

typedef struct RefineResult {
    bool cover_bad;   /* an instance is missing, unknown, or comes twice */
    bool value_bad;   /* something else is written than the program writes */
    const char *open; /* why instances are not decided, or NULL */
    const char *value_open; /* .. and values */
} RefineResult;
RefineResult refine_result(const Refine *r);

#endif
