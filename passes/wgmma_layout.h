/* How wgmma finds an operand in shared memory: one answer for the code that
 * builds the matrix descriptor and for the check that reads it.
 *
 * A descriptor (PTX ISA, "matrix descriptor format") names a start address and
 * two byte distances. With k innermost ("K-major") element (r, k) of mn x k is
 * at start + r / 8 * stride + r mod 8 * span + k; with mn innermost it is at
 * start + mn / 64 * leading + k / 8 * stride + k mod 8 * span + mn mod 64. The
 * swizzle then permutes the 16-byte chunks of each 8 rows by the address. */
#ifndef EXO_PASSES_WGMMA_LAYOUT_H
#define EXO_PASSES_WGMMA_LAYOUT_H

#include "ir/lib.h"
#include "passes/bits.h"

typedef struct WgmmaOperand {
    const Access *access; /* on the root */
    bool transposed;      /* M- or N-major */
    ScalarType elem;
    unsigned span;           /* of the swizzle, bytes: 128, 64, 32 */
    int64_t leading, stride; /* byte distances of the descriptor */
} WgmmaOperand;

typedef enum WgmmaFault {
    WGMMA_fits,
    WGMMA_no_intervals, /* the last two dimensions are no intervals */
    WGMMA_shape,        /* .. or not mn x k, nor k x 64 */
    WGMMA_swizzle       /* rows that are not as wide as the swizzle */
} WgmmaFault;

/* Classifies an operand of mn x k elements: its last two dimensions are (mn, k)
 * or, transposed, (k, 64), before which comes one of mn / 64. len receives the
 * two lengths where there are any. */
WgmmaFault wgmma_operand(Module *m, const Access *a, int64_t mn, int64_t k,
                         WgmmaOperand *out, int64_t len[2]);
/* Bits 0..13 address / 16, 16..29 leading / 16, 32..45 stride / 16, 62..63
 * swizzle: 1, 2, 3 for 128, 64, 32 bytes. */
uint64_t wgmma_descriptor(const WgmmaOperand *o, int64_t address);
/* The bits of a shared address that count: in a cluster those from CTA_ADDRESS
 * on name the CTA, which in a descriptor would change the leading distance. */
#define WGMMA_ADDRESS_MASK 0x3ffffu
#define CTA_ADDRESS 24
/* The same with parts that are known when the kernel runs, as code generation
 * adds them: where the CTA's shared memory is, and a distance from there. */
const BitTerm *wgmma_descriptor_bits(Arena *a, const WgmmaOperand *o,
                                     int64_t address, const BitTerm *memory,
                                     const BitTerm *more);

/* Element (r, k) of a tile, in bytes from its start: r is split at 2^r_bits, k
 * at 8. */
typedef struct TileBytes {
    unsigned r_bits;
    int64_t r_high, r_low, k_high, k_low;
} TileBytes;
/* Where the hardware looks for it by this descriptor, before the swizzle, by
 * the rules above. */
TileBytes wgmma_tile(uint64_t descriptor, bool transposed, unsigned bytes);
/* The bytes that its swizzle spans; 16: it has none. */
unsigned wgmma_span(uint64_t descriptor);
const BitTerm *tile_bits(Arena *a, const TileBytes *t, const BitTerm *r,
                         const BitTerm *k);
/* The address behind the swizzle of that span (0: none). */
const BitTerm *swizzled_bits(Arena *a, unsigned span, const BitTerm *address);
/* Bytes from one index of dimension d to the next; -1: not constant. */
int64_t shared_stride(const Value *base, unsigned d);

#endif
