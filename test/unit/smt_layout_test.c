/* Bit-vectors: questions and answers; and that the descriptors of wgmma and the
 * swizzles, as bits of addresses, are those of PTX by rows: in rows of 128, 64
 * or 32 bytes the 16-byte chunk c of row r stands in place c xor (r mod 8),
 * c xor (r / 2 mod 4) or c xor (r / 4 mod 2). Proved for every swizzle, major
 * and offset of a sub-tile, for all elements and starts. */
#include "passes/wgmma_layout.h"
#include "verify/smt/smt.h"

#include <criterion/criterion.h>

typedef struct Bits {
    Smt *smt;
    Arena *a;
    Prover *p;
} Bits;

static Bits open_bits(void)
{
    Bits b = { smt_new(&(SmtOptions){ 0 }), arena_new(), NULL };
    cr_assert(b.smt);
    b.p = prover_chain(b.a, prover_layer1(b.a), smt_prover(b.smt));
    return b;
}

static void close_bits(Bits *b)
{
    smt_free(b->smt);
    arena_free(b->a);
}

static const BitTerm *plus(Bits *b, const BitTerm *x, const BitTerm *y)
{
    return bits_make(b->a, BIT_add, x, y);
}

static const BitTerm *with(Bits *b, BitOp op, const BitTerm *x, uint64_t c)
{
    return bits_with(b->a, op, x, c);
}

/* base + row * span + (byte with its chunk in the place of this row) */
static const BitTerm *by_rows(Bits *b, unsigned span, const BitTerm *base,
                              const BitTerm *row, const BitTerm *byte)
{
    unsigned shift = span == 128 ? 0 : span == 64 ? 1 : 2;
    const BitTerm *place =
        with(b, BIT_and, with(b, BIT_shr, row, shift), span / 16 - 1);
    const BitTerm *moved =
        bits_make(b->a, BIT_xor, byte, with(b, BIT_mul, place, 16));
    return plus(b, plus(b, base, with(b, BIT_mul, row, span)), moved);
}

static const unsigned spans[] = { 128, 64, 32 };

/* k innermost: mn x k from byte `sub` of its rows on. */
static void k_major(Bits *b, unsigned span, unsigned bytes, unsigned sub,
                    uint64_t at)
{
    WgmmaOperand o = { .span = span, .stride = 8 * span, .leading = 16 };
    uint64_t d = wgmma_descriptor(&o, 0), values[3];
    TileBytes tile = wgmma_tile(d, false, bytes);
    BitVar vars[3] = { { "r", 256 },
                       { "k", (span - sub) / bytes },
                       { "start", 128 } };
    const BitTerm *r = bits_var(b->a, 0), *k = bits_var(b->a, 1);
    const BitTerm *base =
        with(b, BIT_add, with(b, BIT_mul, bits_var(b->a, 2), 1024), at);
    const BitTerm *byte = with(b, BIT_add, with(b, BIT_mul, k, bytes), sub);
    BitQuery q = { .left = swizzled_bits(b->a, wgmma_span(d),
                                         plus(b, tile_bits(b->a, &tile, r, k),
                                              with(b, BIT_add, base, sub))),
                   .right = by_rows(b, span, base, r, byte),
                   .n_vars = 3,
                   .vars = vars };
    ProveAnswer answer = prove_bits_equal(b->p, &q, values);
    bool aligned = at % (8 * span) == 0;
    cr_expect(answer == (aligned ? PROVE_yes : PROVE_no),
              "span %u, %u bytes, from %u, at %u: %d", span, bytes, sub,
              (unsigned)at, (int)answer);
    if (answer == PROVE_no)
        cr_expect(bits_eval(q.left, values) != bits_eval(q.right, values));
}

Test(smt_layout, every_swizzle_and_sub_tile_k_major)
{
    Bits b = open_bits();
    for (size_t s = 0; s < 3; s++)
        for (unsigned bytes = 1; bytes <= 4; bytes *= 2)
            for (unsigned sub = 0; sub < spans[s]; sub += 16)
                k_major(&b, spans[s], bytes, sub, 0);
    close_bits(&b);
}

/* The rows of an operand that begins amid a swizzle's 8 rows are elsewhere. */
Test(smt_layout, starts_within_a_swizzle)
{
    Bits b = open_bits();
    for (size_t s = 0; s < 3; s++) {
        k_major(&b, spans[s], 2, 0, 128);
        k_major(&b, spans[s], 2, 0, 256);
        k_major(&b, spans[s], 2, 0, 512);
    }
    close_bits(&b);
}

/* mn innermost: 64 elements of 16 bits a row, k rows from `first` on. */
Test(smt_layout, every_sub_tile_mn_major)
{
    Bits b = open_bits();
    WgmmaOperand o = {
        .span = 128, .stride = 1024, .leading = 8192, .transposed = true
    };
    uint64_t d = wgmma_descriptor(&o, 0), values[3];
    TileBytes tile = wgmma_tile(d, true, 2);
    BitVar vars[3] = { { "r", 256 }, { "k", 16 }, { "start", 64 } };
    const BitTerm *r = bits_var(b.a, 0), *k = bits_var(b.a, 1);
    for (unsigned first = 0; first < 64; first += 4) {
        const BitTerm *base = with(&b, BIT_mul, bits_var(b.a, 2), 1024);
        const BitTerm *group = with(&b, BIT_mul, with(&b, BIT_shr, r, 6), 8192);
        const BitTerm *byte = with(&b, BIT_mul, with(&b, BIT_and, r, 63), 2);
        const BitTerm *start = with(&b, BIT_add, base, 128 * first);
        BitQuery q = { .left = swizzled_bits(
                           b.a, wgmma_span(d),
                           plus(&b, tile_bits(b.a, &tile, r, k), start)),
                       .right = by_rows(&b, 128, plus(&b, base, group),
                                        with(&b, BIT_add, k, first), byte),
                       .n_vars = 3,
                       .vars = vars };
        cr_expect(prove_bits_equal(b.p, &q, values) == PROVE_yes, "%u", first);
    }
    close_bits(&b);
}

/* A start behind 256 KiB leaves the descriptor's field; the rank that stands in
 * the addresses of a CTA of a cluster does not reach it. */
Test(smt_layout, descriptor_field)
{
    Bits b = open_bits();
    WgmmaOperand o = { .span = 128, .stride = 1024, .leading = 16 };
    for (int i = 0; i < 2; i++) {
        BitVar vars[2] = { { "start", i ? 16385 : 16384 }, { "cta", 16 } };
        uint64_t values[2] = { 0 };
        const BitTerm *steps = with(&b, BIT_mul, bits_var(b.a, 0), 16);
        const BitTerm *field =
            with(&b, BIT_and, with(&b, BIT_shr, steps, 4), 0x3fff);
        const BitTerm *memory =
            with(&b, BIT_mul, bits_var(b.a, 1), UINT64_C(1) << CTA_ADDRESS);
        BitQuery q = { .left = wgmma_descriptor_bits(b.a, &o, 0, memory, steps),
                       .right =
                           with(&b, BIT_add, field, wgmma_descriptor(&o, 0)),
                       .n_vars = 2,
                       .vars = vars };
        cr_expect(prove_bits_equal(b.p, &q, values) ==
                  (i ? PROVE_no : PROVE_yes));
        cr_expect(values[0] == (i ? 16384 : 0));
    }
    close_bits(&b);
}

/* Without a solver nobody knows. */
Test(smt_layout, nobody_to_ask)
{
    Arena *a = arena_new();
    uint64_t values[1];
    BitVar vars[1] = { { "x", 8 } };
    BitQuery q = { .left = bits_var(a, 0),
                   .right = bits_with(a, BIT_and, bits_var(a, 0), 7),
                   .n_vars = 1,
                   .vars = vars };
    cr_expect(prove_bits_equal(NULL, &q, values) == PROVE_unknown);
    cr_expect(prove_bits_equal(prover_layer1(a), &q, values) == PROVE_unknown);
    cr_expect(prove_bits_equal(prover_absent(a, "none"), &q, values) ==
              PROVE_unknown);
    arena_free(a);
}
