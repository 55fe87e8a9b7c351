/* D += A B by fused multiply-adds, in ascending order of the summed index, on
 * packed host arrays: the native path of the interpreter's contractions and of
 * the machine model's tensor core. */
#ifndef EXO_VERIFY_FMA_H
#define EXO_VERIFY_FMA_H

#include <stddef.h>

enum { FMA_PANEL = 16 };

/* Columns rounded up to whole panels. */
static inline size_t fma_padded(size_t cols)
{
    return (cols + FMA_PANEL - 1) / FMA_PANEL * FMA_PANEL;
}

/* Where element (r, j) of B lies: panels of 16 columns, each row after row. */
static inline size_t fma_b_index(size_t depth, size_t r, size_t j)
{
    return (j / FMA_PANEL * depth + r) * FMA_PANEL + j % FMA_PANEL;
}

/* d: rows x fma_padded(cols), row-major; a: rows x depth, row-major; b: as
 * fma_b_index says, the padding set to anything finite. Each element of d is
 * rounded to its type at each step. */
void fma_f32(size_t rows, size_t cols, size_t depth, const float *a,
             const float *b, float *d);
void fma_f64(size_t rows, size_t cols, size_t depth, const double *a,
             const double *b, double *d);

#endif
