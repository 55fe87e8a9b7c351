/* Descriptors, and reading them as the hardware does. */
#include "passes/wgmma_layout.h"

int64_t shared_stride(const Value *base, unsigned d)
{
    bool is_barrier = base->type->kind == TK_mbarrier;
    int64_t stride = is_barrier ? 8 : scalar_type_bytes(base->type->elem);
    for (unsigned i = d + 1; i < base->type->rank; i++) {
        int64_t extent;
        if (!base->shape || !affine_is_const(base->shape[i], &extent))
            return -1;
        stride *= extent;
    }
    return stride;
}

static bool interval_len(const AccessDim *d, int64_t *len)
{
    return d->kind == DIM_interval && affine_is_const(d->len, len);
}

WgmmaFault wgmma_operand(Module *m, const Access *access, int64_t mn, int64_t k,
                         WgmmaOperand *out, int64_t len[2])
{
    const Access *a = access_compose(m, access);
    if (a->rank < 2 || !interval_len(&a->dims[a->rank - 2], &len[0]) ||
        !interval_len(&a->dims[a->rank - 1], &len[1]))
        return WGMMA_no_intervals;
    *out = (WgmmaOperand){ .access = a, .elem = a->base->type->elem };
    out->transposed = !(len[0] == mn && len[1] == k);
    if (out->transposed && !(len[0] == k && len[1] == 64 && mn % 64 == 0))
        return WGMMA_shape;
    int64_t middle = shared_stride(a->base, a->rank - 2);
    const Mem *mem = lib_mem_find(m->lib, a->base->type->mem);
    if (!mem || !mem->swizzle || middle != (int64_t)mem->swizzle)
        return WGMMA_swizzle;
    out->span = mem->swizzle;
    out->stride = 8 * middle;
    out->leading = 16;
    if (out->transposed)
        out->leading = a->rank > 2 ? shared_stride(a->base, a->rank - 3) : 16;
    return WGMMA_fits;
}

uint64_t wgmma_descriptor(const WgmmaOperand *o, int64_t address)
{
    uint64_t kind = o->span == 128 ? 1 : o->span == 64 ? 2 : 3;
    uint64_t fixed = kind << 62 | (uint64_t)(o->stride >> 4) << 32 |
                     (uint64_t)(o->leading >> 4) << 16;
    return fixed + (uint64_t)(address >> 4);
}

int64_t wgmma_element(uint64_t d, bool transposed, unsigned bytes, int64_t r,
                      int64_t k)
{
    int64_t start = (int64_t)(d & 0x3fff) << 4;
    int64_t leading = (int64_t)(d >> 16 & 0x3fff) << 4;
    int64_t stride = (int64_t)(d >> 32 & 0x3fff) << 4;
    unsigned kind = (unsigned)(d >> 62);
    int64_t span = kind == 1 ? 128 : kind == 2 ? 64 : kind == 3 ? 32 : 16;
    if (!transposed)
        return start + r / 8 * stride + r % 8 * span + k * bytes;
    return start + r / 64 * leading + k / 8 * stride + k % 8 * span +
           r % 64 * bytes;
}

int64_t swizzled_address(unsigned span, int64_t address)
{
    int64_t mask = span == 128 ? 0x70 : span == 64 ? 0x30 : span == 32 ? 16 : 0;
    return address ^ ((address >> 3) & mask);
}
