/* Sizes at which a program is run when nobody gives any.
 *
 * Small sizes that between them take each loop through the phases it has.
 * Everything comes from the program: loop bounds, ring depths, asserts and host
 * checks. Used by sync-check on a ctl.proc and by check-async on a host.proc
 * with its kernels. */
#ifndef EXO_VERIFY_SIZES_H
#define EXO_VERIFY_SIZES_H

#include "passes/prove.h"

/* A value for each control parameter of a procedure, in their order. */
typedef struct SizeSet {
    unsigned n;
    const VarId *vars;
    const int64_t *values;
    bool meets; /* two tasks may come to one place of global memory here */
} SizeSet;

typedef struct SizeSets {
    SizeSet *data;
    size_t len, cap;
    size_t needed;      /* the first ones: without them nothing is proved */
    const char *beyond; /* why no sets show all; NULL: they do */
} SizeSets;

enum { SIZE_SETS = 4 };

/* A few sets, for checks that are expensive: no more trips than needed, one
 * trip, as many as a ring is deep, and twice that and one; last tiles with one
 * step in them, all steps but one, and all; one task, three of one cluster, or
 * where tasks have two dimensions two of one cluster with the most trips and
 * two along each dimension, which are four; of three dimensions so the first
 * two, and the other two; and two tasks of one cluster with one trip, all
 * tiles whole, so that nothing of the steps comes between the tasks. Writes up
 * to SIZE_SETS sets that are all different and keep the asserts or checks of
 * proc; answers how many. 0: none was found. One empty set for a procedure
 * without control parameters. Where proc was lowered from a program (of module
 * `of`; else NULL), the loops and rings are the program's: a text that differs
 * from it does not choose where it is looked at. Everything in the arena. */
unsigned sizes_choose(Arena *arena, Module *m, const Op *proc, Module *of,
                      const Op *program, SizeSet *out);
/* Sets for all phases: for each parameter in turn, values that give the loops
 * which depend on it 0, 1, depth - 1, depth, depth + 1 and 2 depth + 1 trips
 * (depth: that of the deepest ring, or the modulus by which slots of shared
 * memory are counted), and task loops one task, two and three, with last
 * tiles that are whole and ragged; the others stay at a value with some trips.
 * And those with which conditions on sizes and loops have each outcome
 * (`k != 77`, `K > 100`, a bool) and loops are entered or not, those at which
 * two tasks come to one place of global memory, and those at which two accesses
 * come to one place of shared memory, as far as the prover finds any;
 * out->beyond where it does not know. Adds sets that are all different and keep
 * the asserts. */
void sizes_derive(Arena *arena, Module *m, const Op *proc, Prover *prover,
                  SizeSets *out);
/* What the first n sets take the loops through:
 * `tm: 1, 2 tasks; k: 0, 1, 4 trips; whole and ragged tiles`. */
void sizes_print_phases(StrBuf *out, Module *m, const Op *proc,
                        const SizeSets *sets, size_t n);

/* The parameters of proc, all with value 0, in the arena. */
SizeSet sizes_of(Arena *arena, const Op *proc);
/* The first assert or check of proc that the values break, of those that they
 * decide; NULL: none. */
const Op *sizes_broken(const Op *proc, const SizeSet *s);
/* `M=64, N=8`, in the order of the parameters. */
void sizes_print(StrBuf *out, const Module *m, const SizeSet *s);
/* The set as values of variables, for affine_eval. user: the SizeSet. */
Env sizes_env(const SizeSet *s);

#endif
