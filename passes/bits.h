/* Terms over bit-vectors of 64 bits: what an address is made of.
 *
 * A question is whether two terms are equal for all values of their variables,
 * each below a bound. A Prover whose `bits_equal` is not NULL can be asked
 * (verify/smt/). Terms live in the arena they were made in. */
#ifndef EXO_PASSES_BITS_H
#define EXO_PASSES_BITS_H

#include "ir/support.h"

typedef enum BitOp {
    BIT_const, /* c */
    BIT_var,   /* the c-th variable */
    BIT_add,
    BIT_mul,
    BIT_and,
    BIT_xor,
    BIT_shr /* a by the constant b, zeros come in */
} BitOp;

typedef struct BitTerm BitTerm;
struct BitTerm {
    BitOp op;
    uint64_t c;
    const BitTerm *a, *b;
};

typedef struct BitVar {
    const char *name;
    uint64_t below;
} BitVar;

typedef struct BitQuery {
    const BitTerm *left, *right;
    unsigned n_vars;
    const BitVar *vars;
} BitQuery;

const BitTerm *bits_const(Arena *a, uint64_t c);
const BitTerm *bits_var(Arena *a, unsigned i);
const BitTerm *bits_make(Arena *a, BitOp op, const BitTerm *x,
                         const BitTerm *y);
/* With a constant on the right. */
const BitTerm *bits_with(Arena *a, BitOp op, const BitTerm *x, uint64_t c);
uint64_t bits_eval(const BitTerm *t, const uint64_t *values);

#endif
