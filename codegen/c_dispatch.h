/* Functions that choose among the GEMMs of a C library by what is asked for and
 * by shape.
 *
 * A table, as kernels/gemm/tune.py writes it, says what each kernel computes
 * and what it costs on a device. From it this prints declarations and
 * definitions that c_print_library puts behind the kernels' own functions:
 *
 *     int exo_gemm(exo_gemm_type type, int64_t m, int64_t n, int64_t k,
 *                  const void *a, int64_t lda, const void *b, int64_t ldb,
 *                  void *c, int64_t ldc, void *stream);
 *     int exo_gemm_ex(const exo_gemm_args *args);
 *
 * The first gives C[m, n] = A[m, k] B[n, k]^T, rows lda, ldb and ldc elements
 * apart; the second f(alpha * A B^T + beta * C + bias), of operands in either
 * layout, for one product or a batch. What is asked for picks the entry of the
 * table: exactly its type, layout, output, beta, bias and activation; an entry
 * with alpha serves alpha 1 where there is none without, and a batch goes
 * product by product where no entry takes batches. What no entry serves is
 * refused with a message that says what there is. Within the entry a shape that
 * was timed takes the kernel that was fastest; for others the costs decide,
 * between one kernel for all of C and two, where a second one takes the rows or
 * columns that would leave most of a wave of tiles idle.
 *
 * The library can tune itself, too: exo_gemm_tune times the plans that the
 * costs favour, and what it remembers, or reads from a file, goes before them
 * (c_dispatch_tune.c). */
#ifndef EXO_CODEGEN_C_DISPATCH_H
#define EXO_CODEGEN_C_DISPATCH_H

#include "ir/support.h"

/* What a parameter of a kernel's procedure is. Tensors are windows of rank 2,
 * or 3 in a batch, the first dimension being the product; the bias is a dense
 * vector of C's element type. */
typedef enum DispatchParam {
    DISPATCH_batch, /* L: size */
    DISPATCH_m,
    DISPATCH_n,
    DISPATCH_k,
    DISPATCH_w, /* W: size, the rows of whole tiles, of kernels with smaller
                 * ones below them */
    DISPATCH_a,
    DISPATCH_b,
    DISPATCH_c,
    DISPATCH_alpha,
    DISPATCH_beta,
    DISPATCH_bias,
    DISPATCH_n_params
} DispatchParam;

/* Units: rows and columns of C that a CTA computes, CTAs of a cluster below and
 * beside each other, columns of K of a step, CTAs that share the steps of a
 * tile, columns of K of a task, which adds to C where there are more, or whose
 * sums a second kernel adds up, so many at most (0: it adds to C), clusters
 * that run at once, and rows of the smaller tiles, half of the others', that
 * take what whole waves leave (0: there are none). Microseconds, with megabytes
 * (of A, B and C together), the share of the slots that are occupied, the
 * traffic (megabytes that the clusters read, what their CTAs share once), and
 * the part of it from operands whose rows are no multiple of 128 bytes, which
 * straddle cache lines, and what the sums of parts hold:
 *   tiles that run at once    one_wave[0] + [1] * steps + [2] * megabytes
 *                             + [3] * steps * occupied + [4] * straddled
 *                             + [5] * sums
 * where a CTA has steps / split steps,
 *   in several rounds         waves[0] + rounds * (waves[1] + [2] * steps)
 *                             (a round of smaller tiles is half of one)
 *                             + waves[3] * megabytes + [4] * traffic
 *                             + [5] * straddled + [6] * sums */
enum { DISPATCH_ONE_WAVE = 6, DISPATCH_WAVES = 7 };
typedef struct DispatchKernel {
    const char *name; /* the procedure */
    unsigned n_params;
    const DispatchParam *params; /* of the procedure */
    int64_t rows, columns, cluster, beside, step, split, part, sums, slots,
        half;
    double one_wave[DISPATCH_ONE_WAVE], waves[DISPATCH_WAVES];
} DispatchKernel;

/* A shape that was timed, and the index of the kernel that was fastest. */
typedef struct DispatchShape {
    int64_t m, n, k;
    unsigned kernel;
} DispatchShape;

typedef enum DispatchActivation {
    DISPATCH_none,
    DISPATCH_relu,
    DISPATCH_gelu, /* by tanh */
    DISPATCH_silu,
    DISPATCH_n_activations
} DispatchActivation;

/* The kernels of one element type, layout, output type and epilogue. */
typedef struct DispatchEntry {
    const char *type;     /* "bf16": exo_gemm's EXO_GEMM_BF16 */
    bool a_mn, b_mn;      /* A is [K, M], B is [K, N] */
    const char *element;  /* A's and B's element type in memory */
    const char *output;   /* C's element type: f32, bf16 or f16 */
    const char *epilogue; /* of the names, for messages; "" for none */
    bool batched, alpha, beta, bias;
    DispatchActivation activation;
    int64_t bytes_in, bytes_out;
    unsigned n_kernels, n_shapes;
    const DispatchKernel *kernels;
    const DispatchShape *shapes;
} DispatchEntry;

/* "relu" and the like; "" for none. */
const char *dispatch_activation_name(DispatchActivation a);

typedef struct Dispatch {
    const char *function; /* "exo_gemm"; prefix of its types and constants */
    const char *device;   /* on which the costs were measured */
    unsigned n_entries;
    const DispatchEntry *entries;
} Dispatch;

/* Can a library's function have the name? Not words of C, C++ or the code that
 * is printed, nor functions of C's library; of the names that begin with exo_,
 * which are the library's own, those with exo_gemm. */
bool c_dispatch_can_be_named(const char *function);

/* The name of a procedure's function in the library. */
typedef const char *DispatchNameFn(void *user, const char *proc);

/* Appends the declarations and the definitions. */
void c_dispatch_print(const Dispatch *d, DispatchNameFn *name, void *user,
                      StrBuf *header, StrBuf *source);

#endif
