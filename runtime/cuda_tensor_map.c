/* Tensor maps: the documented rules of cuTensorMapEncodeTiled, checked one by
 * one because the driver answers every breach with the same "invalid argument",
 * and the encoding. */
#include "runtime/cuda.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/cuda_internal.h"

/* The driver's number for a width of swizzle or of L2 promotion: the place of
 * `bytes` in `widths`, or -1. */
static int width_number(const int widths[4], int bytes)
{
    for (int i = 0; i < 4; i++)
        if (widths[i] == bytes)
            return i;
    return -1;
}

static int swizzle_number(int bytes)
{
    static const int widths[4] = { 0, 32, 64, 128 };
    return width_number(widths, bytes);
}

static int promotion_number(int bytes)
{
    static const int widths[4] = { 0, 64, 128, 256 };
    return width_number(widths, bytes);
}

static bool check_type(const CudaTensorMapSpec *spec, CudaError *err)
{
    const ScalarInfo *type = scalar_info(spec->type);
    if (type->tensor_map < 0)
        return cuda_refuse(err, "a tensor map cannot hold elements of type %s",
                           type->name);
    if (spec->tf32 && spec->type != TY_f32)
        return cuda_refuse(err, "a tf32 tensor map has type f32, not %s",
                           type->name);
    if (spec->rank < 1 || spec->rank > CUDA_TENSOR_RANK_MAX)
        return cuda_refuse(err, "a tensor map has rank 1 to 5, not %d",
                           spec->rank);
    if (spec->base == 0 || spec->base % 16 != 0)
        return cuda_refuse(err,
                           "the base of a tensor map is a multiple of 16, but "
                           "is 0x%" PRIx64,
                           spec->base);
    return true;
}

/* Extent, stride and box of one dimension. */
static bool check_dimension(const CudaTensorMapSpec *spec, int d,
                            CudaError *err)
{
    uint64_t extent = spec->dims[d], stride = spec->strides[d];
    uint32_t box = spec->box[d];
    if (extent < 1 || extent > (uint64_t)1 << 32)
        return cuda_refuse(err,
                           "dimension %d of a tensor map has 1 to 2^32 "
                           "elements, not %" PRIu64,
                           d, extent);
    if (box < 1 || box > 256)
        return cuda_refuse(err,
                           "dimension %d of a tensor map's box has 1 to 256 "
                           "elements, not %" PRIu32,
                           d, box);
    if (d == 0)
        return true;
    if (stride % 16 != 0 || stride >= (uint64_t)1 << 40)
        return cuda_refuse(err,
                           "the stride of dimension %d of a tensor map is a "
                           "multiple of 16 bytes below 2^40, not %" PRIu64,
                           d, stride);
    return true;
}

static bool check_row(const CudaTensorMapSpec *spec, CudaError *err)
{
    uint64_t row = spec->box[0] * (uint64_t)scalar_type_bytes(spec->type);
    if (row % 16 != 0)
        return cuda_refuse(err,
                           "the innermost dimension of a tensor map's box is "
                           "a multiple of 16 bytes, not %" PRIu64,
                           row);
    if (swizzle_number(spec->swizzle) < 0)
        return cuda_refuse(err,
                           "a tensor map's swizzle is 0, 32, 64 or 128 bytes, "
                           "not %d",
                           spec->swizzle);
    if (spec->swizzle && row > (uint64_t)spec->swizzle)
        return cuda_refuse(err,
                           "the innermost dimension of a tensor map's box is "
                           "at most its swizzle of %d bytes, not %" PRIu64,
                           spec->swizzle, row);
    if (promotion_number(spec->l2_promotion) < 0)
        return cuda_refuse(err,
                           "a tensor map's L2 promotion is 0, 64, 128 or 256 "
                           "bytes, not %d",
                           spec->l2_promotion);
    return true;
}

bool cuda_tensor_map_check(const CudaTensorMapSpec *spec, CudaError *err)
{
    if (!check_type(spec, err))
        return false;
    for (int d = 0; d < spec->rank; d++)
        if (!check_dimension(spec, d, err))
            return false;
    return check_row(spec, err);
}

bool cuda_tensor_map_encode(Cuda *cuda, const CudaTensorMapSpec *spec,
                            CudaTensorMap *out, CudaError *err)
{
    static const uint32_t ones[CUDA_TENSOR_RANK_MAX] = { 1, 1, 1, 1, 1 };
    if (!cuda_tensor_map_check(spec, err))
        return false;
    CUtensorMap map = { { 0 } };
    CUtensorMapDataType type = spec->tf32 ? SCALAR_TENSOR_MAP_TF32
                                          : scalar_info(spec->type)->tensor_map;
    if (!CUDA_CALL(cuda, err, TensorMapEncodeTiled, &map, type,
                   (uint32_t)spec->rank, (void *)(uintptr_t)spec->base,
                   spec->dims, spec->strides + 1, spec->box, ones,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_number(spec->swizzle),
                   promotion_number(spec->l2_promotion),
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
        return false;
    memcpy(out->bytes, &map, sizeof out->bytes);
    return true;
}
