/* The kernels: four rows by one panel at a time. On x86-64 with FMA the f32
 * kernel uses its vectors; elsewhere the C library's fma, which is slower and
 * gives the same bits. */
#include "verify/fma.h"

#include <math.h>

static void panel_f32(size_t rows, size_t depth, size_t stride, const float *a,
                      const float *b, float *d)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t r = 0; r < depth; r++)
            for (size_t j = 0; j < FMA_PANEL; j++)
                d[i * stride + j] = fmaf(a[i * depth + r], b[r * FMA_PANEL + j],
                                         d[i * stride + j]);
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2,fma"))) static void
rows4_avx(size_t depth, size_t stride, const float *a, const float *b, float *d)
{
    __m256 acc[4][2];
    for (int i = 0; i < 4; i++) {
        acc[i][0] = _mm256_loadu_ps(d + (size_t)i * stride);
        acc[i][1] = _mm256_loadu_ps(d + (size_t)i * stride + 8);
    }
    for (size_t r = 0; r < depth; r++, b += FMA_PANEL) {
        __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
        for (int i = 0; i < 4; i++) {
            __m256 x = _mm256_broadcast_ss(a + (size_t)i * depth + r);
            acc[i][0] = _mm256_fmadd_ps(x, b0, acc[i][0]);
            acc[i][1] = _mm256_fmadd_ps(x, b1, acc[i][1]);
        }
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(d + (size_t)i * stride, acc[i][0]);
        _mm256_storeu_ps(d + (size_t)i * stride + 8, acc[i][1]);
    }
}

__attribute__((target("avx2,fma"))) static void
rows1_avx(size_t depth, const float *a, const float *b, float *d)
{
    __m256 acc0 = _mm256_loadu_ps(d), acc1 = _mm256_loadu_ps(d + 8);
    for (size_t r = 0; r < depth; r++, b += FMA_PANEL) {
        __m256 x = _mm256_broadcast_ss(a + r);
        acc0 = _mm256_fmadd_ps(x, _mm256_loadu_ps(b), acc0);
        acc1 = _mm256_fmadd_ps(x, _mm256_loadu_ps(b + 8), acc1);
    }
    _mm256_storeu_ps(d, acc0);
    _mm256_storeu_ps(d + 8, acc1);
}

static void panel_any(size_t rows, size_t depth, size_t stride, const float *a,
                      const float *b, float *d)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        panel_f32(rows, depth, stride, a, b, d);
        return;
    }
    size_t i = 0;
    for (; i + 4 <= rows; i += 4)
        rows4_avx(depth, stride, a + i * depth, b, d + i * stride);
    for (; i < rows; i++)
        rows1_avx(depth, a + i * depth, b, d + i * stride);
}
#else
#define panel_any panel_f32
#endif

void fma_f32(size_t rows, size_t cols, size_t depth, const float *a,
             const float *b, float *d)
{
    size_t stride = fma_padded(cols);
    for (size_t j = 0; j < stride; j += FMA_PANEL)
        panel_any(rows, depth, stride, a, b + j * depth, d + j);
}

void fma_f64(size_t rows, size_t cols, size_t depth, const double *a,
             const double *b, double *d)
{
    size_t stride = fma_padded(cols);
    for (size_t i = 0; i < rows; i++)
        for (size_t r = 0; r < depth; r++)
            for (size_t j = 0; j < cols; j++)
                d[i * stride + j] =
                    fma(a[i * depth + r], b[fma_b_index(depth, r, j)],
                        d[i * stride + j]);
}
