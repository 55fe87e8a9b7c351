/* Comparing a result with what it should be, for exo-run --check and the
 * kernel tests.
 *
 * Two values agree outright when both are NaN, or when they are equal, which
 * takes -0 and 0 as the same. Under the exact rule every element must agree
 * outright. Under the tolerant rule the norm of the difference must be small
 * beside the norm of the expected values, and each difference small beside the
 * largest expected magnitude; where one side is not finite, the other must
 * agree outright. A poisoned element of the result never agrees. */
#ifndef EXO_RUNTIME_COMPARE_H
#define EXO_RUNTIME_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/scalar.h"
#include "ir/support.h"

typedef struct CompareRule {
    bool exact;     /* the limits below are then not read */
    double norm;    /* |got - want| <= norm * |want|, Euclidean */
    double element; /* |got[i] - want[i]| <= element * max |want| */
} CompareRule;

enum { COMPARE_SHOWN = 8 };

typedef struct CompareResult {
    bool ok;
    size_t count;
    size_t mismatches;     /* elements that break the rule */
    size_t poisoned;       /* of these, never written */
    double norm_ratio;     /* over the finite pairs; 0 when nothing differs */
    double largest_error;  /* absolute, over the finite pairs */
    double largest_wanted; /* magnitude, over the finite pairs */
    CompareRule rule;
    size_t shown; /* entries of `first` */
    struct {
        size_t index;
        double got, want;
        bool poisoned;
    } first[COMPARE_SHOWN];
} CompareResult;

/* Compares `count` elements; the two sides may differ in type, so that a f64
 * reference serves any result. */
void compare_buffers(ScalarType got_type, const void *got, ScalarType want_type,
                     const void *want, size_t count, CompareRule rule,
                     CompareResult *out);

/* Appends what was found: one line when it agrees, else a summary and the first
 * mismatches, a line each, by their coordinates in `shape` (row-major). Every
 * line ends with a newline. */
void compare_describe(const CompareResult *result, const char *name, int rank,
                      const int64_t *shape, StrBuf *text);

#endif
