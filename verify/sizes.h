/* Sizes at which a program is run when nobody gives any.
 *
 * Small sizes that between them take each loop through the phases it has: no
 * more trips than needed, one trip, as many as a ring is deep, and twice that
 * and one; tensors whose last tile is ragged; one task, several tasks of one
 * cluster. Everything comes from the program: loop bounds, ring depths, asserts
 * and host checks. Used by sync-check on a ctl.proc and by check-async on a
 * host.proc with its kernels, so that both speak of the same sizes. */
#ifndef EXO_VERIFY_SIZES_H
#define EXO_VERIFY_SIZES_H

#include "ir/ir.h"

/* A value for each control parameter of a procedure, in their order. */
typedef struct SizeSet {
    unsigned n;
    const VarId *vars;
    const int64_t *values;
} SizeSet;

enum { SIZE_SETS = 3 };

/* Writes up to SIZE_SETS sets that are all different and keep the asserts or
 * checks of proc; answers how many. 0: none was found. One empty set for a
 * procedure without control parameters. Everything in the arena. */
unsigned sizes_choose(Arena *arena, Module *m, const Op *proc, SizeSet *out);
/* Do the values keep the asserts and checks of proc that they decide? */
bool sizes_fit(const Module *m, const Op *proc, const SizeSet *s);
/* `M=64, N=8`, in the order of the parameters. */
void sizes_print(StrBuf *out, const Module *m, const SizeSet *s);
/* The set as values of variables, for affine_eval. user: the SizeSet. */
Env sizes_env(const SizeSet *s);

#endif
