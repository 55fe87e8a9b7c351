/* A function that chooses among the GEMMs of a C library by shape.
 *
 * A table, as kernels/gemm/tune.py writes it, says what each kernel costs on a
 * device. From it this prints a declaration and a definition that
 * c_print_library puts behind the kernels' own functions:
 *
 *     int exo_gemm(exo_gemm_type type, int64_t m, int64_t n, int64_t k,
 *                  const void *a, int64_t lda, const void *b, int64_t ldb,
 *                  void *c, int64_t ldc, void *stream);
 *
 * The product is C[m, n] = A[m, k] B[n, k]^T, rows lda, ldb and ldc elements
 * apart. A shape that was timed takes the kernel that was fastest; for others
 * the costs decide, between one kernel for all of C and two, where a second one
 * takes the rows or columns that would leave most of a wave of tiles idle. */
#ifndef EXO_CODEGEN_C_DISPATCH_H
#define EXO_CODEGEN_C_DISPATCH_H

#include "ir/support.h"

/* Units: rows and columns of C that a CTA computes, CTAs of a cluster, columns
 * of K of a step. Microseconds, with megabytes (of A, B and C together) and the
 * share of the multiprocessors that are occupied:
 *   tiles that run at once    one_wave[0] + [1] * steps + [2] * megabytes
 *                                         + [3] * steps * occupied
 *   in several rounds         waves[0] + rounds * (waves[1] + [2] * steps)
 *                                      + waves[3] * megabytes */
typedef struct DispatchKernel {
    const char *name; /* the procedure: (M, N, K, A, B, C), windows of rank 2 */
    int64_t rows, columns, cluster, step;
    double one_wave[4], waves[4];
} DispatchKernel;

/* A shape that was timed, and the index of the kernel that was fastest. */
typedef struct DispatchShape {
    int64_t m, n, k;
    unsigned kernel;
} DispatchShape;

/* The kernels of one element type. */
typedef struct DispatchEntry {
    const char *type; /* "bf16": exo_gemm's EXO_GEMM_BF16 */
    int64_t bytes_in, bytes_out;
    unsigned n_kernels, n_shapes;
    const DispatchKernel *kernels;
    const DispatchShape *shapes;
} DispatchEntry;

typedef struct Dispatch {
    const char *function; /* "exo_gemm"; prefix of its types and constants */
    const char *device;   /* on which the costs were measured */
    int64_t multiprocessors;
    unsigned n_entries;
    const DispatchEntry *entries;
} Dispatch;

/* The name of a procedure's function in the library. */
typedef const char *DispatchNameFn(void *user, const char *proc);

/* Appends the declarations and the definitions. */
void c_dispatch_print(const Dispatch *d, DispatchNameFn *name, void *user,
                      StrBuf *header, StrBuf *source);

#endif
