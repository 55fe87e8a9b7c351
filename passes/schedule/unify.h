/* A loop nest against the body of an instruction's instance or of a procedure.
 *
 * Parameters are unknown windows: a parameter's index e against an index f of
 * the nest gives the window's start f - e, which must not use the nest's own
 * iterators. Sizes and indices are unknown numbers: one that stands alone, or
 * with known ones, against an expression of the nest is solved by it; in an
 * index of a window it is solved as if the window began at 0. Where a window
 * may lie in several dimensions of its base, they are tried one by one, later
 * dimensions first. What does not fit is remembered by how far the
 * comparison got; the farthest is told. */
#ifndef EXO_PASSES_SCHEDULE_UNIFY_H
#define EXO_PASSES_SCHEDULE_UNIFY_H

#include "passes/schedule/ops.h"

#include "ir/lib.h"

enum { UNIFY_MAX_RANK = 16, UNIFY_MAX_PARAMS = 32 };

typedef struct Window {
    Value *base;                      /* NULL: not met yet */
    int dim[UNIFY_MAX_RANK];          /* parameter dimension -> base's */
    const Affine *lo[UNIFY_MAX_RANK]; /* by base dimension */
    bool whole[UNIFY_MAX_RANK];       /* by base dimension */
} Window;

typedef struct Unify {
    Sched *s;
    const Instr *in; /* NULL: a procedure */
    const Block *params;
    ExprCtx *exprs; /* of the body */
    CloneMap *map;  /* the body's names -> the nest's */
    Window windows[UNIFY_MAX_PARAMS];
    const Affine *numbers[UNIFY_MAX_PARAMS]; /* sizes and indices found */
    VEC(VarId) inner;                        /* iterators of the nest so far */
    /* Which of its possible placements in the base each window takes. */
    unsigned placement[UNIFY_MAX_PARAMS];
    unsigned passing; /* placements still to be passed over */
    unsigned
        opened[UNIFY_MAX_PARAMS]; /* parameters in the order they were met */
    unsigned n_opened;
    bool unplaced; /* the last one that was met has no such placement */
    unsigned matched, best;
    const char *mismatch;
    const Facts *facts;
} Unify;

/* Compares the nest first .. before end with the parameters' block. numbers may
 * hold what is given (unify_give). False: mismatch says why. */
bool unify_nest(Unify *u, const Op *first, const Op *end);
/* Says what parameter i, a size or index, is. */
void unify_give(Unify *u, unsigned i, const Affine *e);
/* The body's expression in the nest's names; NULL while it has a number that
 * is not found. */
const Affine *unify_index(Unify *u, const Affine *e);
/* If e is unknown only in a number that stands in it with coefficient 1 or -1,
 * finds it so that e equals `to`. Whatever happens, unify_index tells. */
void unify_solve(Unify *u, const Affine *e, const Affine *to);
/* The number of trips of a loop, when it is a number. */
bool unify_trips(const Op *loop, int64_t *n);

#endif
