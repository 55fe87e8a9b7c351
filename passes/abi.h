/* How a kernel takes its parameters: one answer for its PTX, for the host code
 * and C that launch it, and for the loader that must not mix them up.
 *
 * Parameters of the PTX entry, in order of the async.kernel's block arguments
 * (its last three, the coordinates cta, warp and lane, are no parameters):
 *
 *   control variable      one .u32: the value, in -2^30 .. 2^30 (a bool 0 or 1)
 *   tensor                one .u64: the device address of its first element
 *   window                the same, then one .u32 a dimension: the stride in
 *                         elements, outermost first, in -2^30 .. 2^30
 *   CudaGridConstant      rank 0: the element's bits, in its size;
 *                         else the elements by value, row-major, dense
 *   tensor map            128 bytes, aligned to 64
 *
 * A launch gives exactly `smem_bytes` of dynamic shared memory (the kernel asks
 * for alignment to 1024, and has no other shared memory), blockDim threads in
 * x, and clusterDim blocks of x a cluster; the grid is a multiple of
 * clusterDim. The host checks, since index arithmetic relies on it, that
 * controls and strides are within the limit above, and that no async.tasks
 * has 2^31 tasks or more. */
#ifndef EXO_PASSES_ABI_H
#define EXO_PASSES_ABI_H

#include "ir/ir.h"

#define ABI_CONTROL_LIMIT (INT64_C(1) << 30)
#define ABI_N_COORDS 3u

typedef enum AbiKind {
    ABI_control,
    ABI_pointer,
    ABI_stride,
    ABI_scalar,
    ABI_array,
    ABI_map
} AbiKind;

typedef struct AbiParam {
    AbiKind kind;
    unsigned arg;    /* the kernel's block argument it belongs to */
    unsigned dim;    /* ABI_stride: of this dimension */
    ScalarType elem; /* of a tensor; TY_none for a control variable */
    int64_t count;   /* ABI_array: elements */
    unsigned bytes, align;
} AbiParam;
typedef VEC(AbiParam) AbiParamVec;

/* The parameters of an async.kernel, appended to out (in `arena`). False and
 * a diagnostic when one has no place in this convention. */
bool kernel_abi(Ctx *ctx, const Op *kernel, Arena *arena, AbiParamVec *out);

/* Hash over the kernel's name, its parameters with their types, blockDim,
 * clusterDim, smem_bytes, and whether it is launched as a dependent: PTX that
 * does not wait must not be. PTX repeats it as `// exo-abi: %016llx NAME`. 0
 * for a kernel that has no convention. */
uint64_t kernel_abi_hash(Ctx *ctx, const Op *kernel);

#endif
