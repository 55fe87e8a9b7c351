/* Descriptors, and reading them as the hardware does. */
#include "passes/wgmma_layout.h"

int64_t shared_stride(const Value *base, unsigned d)
{
    bool is_barrier = base->type->kind == TK_mbarrier;
    int64_t stride = is_barrier ? 8 : scalar_type_bytes(base->type->elem);
    for (unsigned i = d + 1; i < base->type->rank; i++) {
        int64_t extent;
        if (!base->shape || !affine_is_const(base->shape[i], &extent) ||
            __builtin_mul_overflow(stride, extent, &stride))
            return -1;
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

const BitTerm *wgmma_descriptor_bits(Arena *a, const WgmmaOperand *o,
                                     int64_t address, const BitTerm *memory,
                                     const BitTerm *more)
{
    const BitTerm *own = bits_with(a, BIT_and, memory, WGMMA_ADDRESS_MASK);
    const BitTerm *start = bits_make(a, BIT_add, own, more);
    const BitTerm *sixteenths = bits_with(a, BIT_shr, start, 4);
    return bits_with(a, BIT_add, sixteenths, wgmma_descriptor(o, address));
}

unsigned wgmma_span(uint64_t d)
{
    unsigned kind = (unsigned)(d >> 62);
    return kind == 1 ? 128 : kind == 2 ? 64 : kind == 3 ? 32 : 16;
}

TileBytes wgmma_tile(uint64_t d, bool transposed, unsigned bytes)
{
    int64_t leading = (int64_t)(d >> 16 & 0x3fff) << 4;
    int64_t stride = (int64_t)(d >> 32 & 0x3fff) << 4;
    int64_t span = wgmma_span(d);
    if (!transposed)
        return (TileBytes){ 3, stride, span, 8 * bytes, bytes };
    return (TileBytes){ 6, leading, bytes, stride, span };
}

/* high * (x >> bits) + low * (x mod 2^bits) */
static const BitTerm *split_bits(Arena *a, const BitTerm *x, unsigned bits,
                                 int64_t high, int64_t low)
{
    const BitTerm *above = bits_with(a, BIT_shr, x, bits);
    const BitTerm *below = bits_with(a, BIT_and, x, (UINT64_C(1) << bits) - 1);
    return bits_make(a, BIT_add, bits_with(a, BIT_mul, above, (uint64_t)high),
                     bits_with(a, BIT_mul, below, (uint64_t)low));
}

const BitTerm *tile_bits(Arena *a, const TileBytes *t, const BitTerm *r,
                         const BitTerm *k)
{
    return bits_make(a, BIT_add,
                     split_bits(a, r, t->r_bits, t->r_high, t->r_low),
                     split_bits(a, k, 3, t->k_high, t->k_low));
}

const BitTerm *swizzled_bits(Arena *a, unsigned span, const BitTerm *address)
{
    uint64_t mask = span == 128  ? 0x70
                    : span == 64 ? 0x30
                    : span == 32 ? 0x10
                                 : 0;
    if (!mask)
        return address;
    const BitTerm *row = bits_with(a, BIT_shr, address, 3);
    return bits_make(a, BIT_xor, address, bits_with(a, BIT_and, row, mask));
}
