/* Values as fingerprints: what a run of the lowered program and the program
 * itself are given, and how what they write is compared.
 *
 * Inputs are random, so that an element read in place of another, an op in
 * place of another, or one too many shows in what is computed. They are small
 * multiples of a power of two: sums of products stay exact, whatever their
 * order, and a result still has more digits than a 16-bit type keeps, so that a
 * rounding that is missing shows too. */
#ifndef EXO_VERIFY_ASYNC_VALUES_H
#define EXO_VERIFY_ASYNC_VALUES_H

#include "verify/tensor.h"

/* Weighted sums of values that may differ by roundings. */
typedef struct LooseSums {
    double total, size; /* of the values, and of what they are at most */
    double slack;       /* what a few roundings may change */
} LooseSums;

/* A multiset of values, or of values at places: equal ones have equal digests,
 * different ones a chance of 2^-64. A loose one allows for roundings: it has
 * sums of the values, the caller's, and hashes of what is not finite alone. */
typedef struct Digest {
    uint64_t sum;
    int64_t n;
    LooseSums *loose; /* NULL: it is exact */
} Digest;

/* Gives every element a value of its own. */
void values_fill(Tensor *t, uint64_t seed);
/* Adds n elements that lie side by side; bytes NULL: values do not count. With
 * place >= 0 each counts together with its place, from there on. */
void digest_add(Digest *d, ScalarType t, const unsigned char *bytes, int64_t n,
                int64_t place);
/* Of two that are both loose, or both exact; so is digest_join. */
bool digest_same(const Digest *a, const Digest *b);
void digest_join(Digest *d, const Digest *more);
/* Adds the elements of a window, those of a map that lie inside its tensor;
 * places: storage positions count. */
void digest_view(Digest *d, const View *v, bool values, bool places);
/* The first element in which two tensors of one shape differ, or -1. close: by
 * more than another order of additions may round. */
int64_t values_differ(const Tensor *a, const Tensor *b, bool close);

#endif
