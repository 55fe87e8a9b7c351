/* Made contents for tensors: values that are a pure function of a seed and the
 * element's index, and the poison that marks outputs before a run.
 *
 * Called by exo-run for inputs, and by tests and benchmarks that must make the
 * same values elsewhere. No state, no libm: the same bytes on every host, and
 * any part of a tensor can be made alone. */
#ifndef EXO_RUNTIME_FILL_H
#define EXO_RUNTIME_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/scalar.h"

/* FILL_INTS: integers from -4 to 4, each as likely; 0 to 8 for unsigned types
 * and bool (0 and 1 there); powers of two 2^-4 to 2^4 for e8m0. Sums of
 * products of them stay exact in f32 for a long time.
 * FILL_NORMAL: mean 0, variance 1, bell-shaped: a sum of 12 uniform numbers,
 * within -6 .. 6. Integer types and e8m0 are filled as by FILL_INTS. */
typedef enum FillKind { FILL_INTS, FILL_NORMAL } FillKind;

/* "ints" or "normal"; false for other names. */
bool fill_kind_from_name(const char *name, FillKind *out);

/* 64 well-mixed bits for an index (SplitMix64's mixing of a counter). */
uint64_t fill_bits(uint64_t seed, uint64_t index);

/* A seed of its own for each tensor of a run, from the run's seed and the
 * tensor's name. */
uint64_t fill_seed(uint64_t seed, const char *name);

/* Element `index`, before it is rounded to `type`. */
double fill_value(FillKind kind, ScalarType type, uint64_t seed,
                  uint64_t index);

/* Writes elements `first` to `first + count - 1` at `out`. */
void fill_range(FillKind kind, ScalarType type, uint64_t seed, uint64_t first,
                size_t count, void *out);

/* Writes `count` elements of poison: the bits `poison_bits` of the type. */
void fill_poison(ScalarType type, size_t count, void *out);

/* How many of `count` elements are still poison; `*first` is the index of the
 * first (or `count`). Always 0 for types whose poison may be a real value
 * (integers, e8m0), and for control types, which have none. */
size_t fill_count_poison(ScalarType type, size_t count, const void *data,
                         size_t *first);

#endif
