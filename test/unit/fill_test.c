/* Fills: fixed bits, ranges, moments, independence of parts and of names, and
 * poison. Comparison: both rules, special values, and the text. */
#include "runtime/fill.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "runtime/compare.h"

static const CompareRule exact = { .exact = true };

Test(fill, names)
{
    FillKind kind = FILL_NORMAL;
    cr_assert(fill_kind_from_name("ints", &kind));
    cr_assert_eq(kind, FILL_INTS);
    cr_assert(fill_kind_from_name("normal", &kind));
    cr_assert_eq(kind, FILL_NORMAL);
    cr_assert_not(fill_kind_from_name("int", &kind));
    cr_assert_not(fill_kind_from_name("", &kind));
}

/* SplitMix64 from state 0 starts with 0xe220a8397b1dcdaf. With the mixed seed
 * at 0 the counter must walk that sequence. */
Test(fill, bits_are_splitmix64)
{
    uint64_t zero = 0 - 0x9e3779b97f4a7c15u;
    cr_assert_eq(fill_bits(zero, 0), 0xe220a8397b1dcdafu);
    cr_assert_eq(fill_bits(zero, 1), 0x6e789e6aa1b965f4u);
    cr_assert_eq(fill_bits(zero, 2), 0x06c45d188009454fu);
    cr_assert_neq(fill_bits(1, 0), fill_bits(2, 0));
}

Test(fill, seeds_differ_by_name_and_seed)
{
    cr_assert_eq(fill_seed(1, "A"), fill_seed(1, "A"));
    cr_assert_neq(fill_seed(1, "A"), fill_seed(1, "B"));
    cr_assert_neq(fill_seed(1, "A"), fill_seed(2, "A"));
    cr_assert_neq(fill_seed(1, "AB"), fill_seed(1, "BA"));
}

/* Lowest and highest value, and how often each of nine integers comes. */
Test(fill, ints_are_evenly_minus_4_to_4)
{
    static const ScalarType types[] = { TY_f16, TY_bf16, TY_f32,  TY_f64,
                                        TY_i8,  TY_i32,  TY_e4m3, TY_e5m2 };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        int seen[9] = { 0 };
        for (uint64_t i = 0; i < 9000; i++) {
            double v = fill_value(FILL_INTS, types[t], 5, i);
            cr_assert(v >= -4 && v <= 4 && v == rint(v));
            cr_assert_eq(scalar_round(types[t], v), v);
            seen[(int)v + 4]++;
        }
        for (int k = 0; k < 9; k++)
            cr_assert(seen[k] > 850 && seen[k] < 1150, "%d", seen[k]);
    }
}

Test(fill, types_without_negatives)
{
    bool high = false;
    for (uint64_t i = 0; i < 1000; i++) {
        double u = fill_value(FILL_INTS, TY_ui8, 5, i);
        double e = fill_value(FILL_INTS, TY_e8m0, 5, i);
        double b = fill_value(FILL_NORMAL, TY_bool, 5, i);
        cr_assert(u >= 0 && u <= 8);
        cr_assert(e >= 0.0625 && e <= 16);
        cr_assert_eq(scalar_round(TY_e8m0, e), e);
        cr_assert(b == 0 || b == 1);
        cr_assert_eq(fill_value(FILL_NORMAL, TY_ui8, 5, i), u);
        high |= u == 8;
    }
    cr_assert(high);
}

Test(fill, normal_has_the_moments)
{
    enum { N = 200000 };
    double sum = 0, square = 0, fourth = 0, neighbour = 0, last = 0;
    for (uint64_t i = 0; i < N; i++) {
        double v = fill_value(FILL_NORMAL, TY_f32, 9, i);
        cr_assert(v >= -6 && v <= 6);
        sum += v;
        square += v * v;
        fourth += v * v * v * v;
        neighbour += v * last;
        last = v;
    }
    cr_assert(fabs(sum / N) < 0.01);
    cr_assert(fabs(square / N - 1) < 0.02);
    cr_assert(fabs(fourth / N - 2.9) < 0.1);
    cr_assert(fabs(neighbour / N) < 0.01);
}

Test(fill, a_part_is_the_same_as_in_the_whole)
{
    unsigned char whole[64 * 2], part[16 * 2];
    fill_range(FILL_NORMAL, TY_bf16, 3, 0, 64, whole);
    fill_range(FILL_NORMAL, TY_bf16, 3, 40, 16, part);
    cr_assert_eq(memcmp(whole + 80, part, sizeof part), 0);
    fill_range(FILL_NORMAL, TY_bf16, 4, 40, 16, part);
    cr_assert_neq(memcmp(whole + 80, part, sizeof part), 0);
}

/* The bytes must be the same on every host: worked out apart, once. */
Test(fill, bytes_are_fixed)
{
    static const uint16_t ints[] = { 0xbf80, 0x4080, 0xc080, 0x4000 };
    static const float normals[] = { 0x1.737p-3f, 0x1.0b6cp-2f };
    uint16_t bits[4];
    float values[2];
    fill_range(FILL_INTS, TY_bf16, 1, 0, 4, bits);
    fill_range(FILL_NORMAL, TY_f32, 1, 0, 2, values);
    cr_assert_eq(memcmp(bits, ints, sizeof bits), 0);
    cr_assert_eq(memcmp(values, normals, sizeof values), 0);
}

Test(fill, poison_is_counted)
{
    unsigned char data[10 * 8];
    size_t first = 0;
    for (int t = TY_none + 1; t < TY_COUNT; t++) {
        ScalarType type = (ScalarType)t;
        bool counted = scalar_type_is_float(type) && type != TY_e8m0;
        int bytes = scalar_type_bytes(type);
        fill_poison(type, 10, data);
        cr_assert_eq(fill_count_poison(type, 10, data, &first),
                     counted ? 10 : 0);
        cr_assert_eq(first, counted ? 0 : 10);
        scalar_encode(type, 1.0, data);
        scalar_encode(type, NAN, data + bytes);
        cr_assert_eq(fill_count_poison(type, 10, data, &first),
                     counted ? 8 : 0);
        cr_assert_eq(first, counted ? 2 : 10);
    }
}

static void assert_text(const CompareResult *r, int rank, const int64_t *shape,
                        const char *want)
{
    StrBuf text = { 0 };
    compare_describe(r, "C", rank, shape, &text);
    cr_assert_str_eq(strbuf_text(&text), want);
    strbuf_free(&text);
}

Test(compare, exact_takes_zeros_and_nans_as_equal)
{
    float got[] = { 1, -0.0f, NAN, INFINITY },
          want[] = { 1, 0, -NAN, INFINITY };
    CompareResult r;
    compare_buffers(TY_f32, got, TY_f32, want, 4, exact, &r);
    cr_assert(r.ok);
    assert_text(&r, 1, (int64_t[]){ 4 }, "C: 4 elements agree exactly\n");
    got[3] = -INFINITY;
    compare_buffers(TY_f32, got, TY_f32, want, 4, exact, &r);
    cr_assert_not(r.ok);
    cr_assert_eq(r.mismatches, 1);
    got[3] = INFINITY;
    got[0] = 0x1.000002p0f;
    compare_buffers(TY_f32, got, TY_f32, want, 4, exact, &r);
    cr_assert_not(r.ok);
    got[0] = NAN;
    compare_buffers(TY_f32, got, TY_f32, want, 4, exact, &r);
    cr_assert_not(r.ok);
}

Test(compare, first_mismatches_are_shown_by_coordinates)
{
    int32_t got[24], want[24];
    CompareResult r;
    for (int i = 0; i < 24; i++)
        got[i] = want[i] = i;
    got[5] = -1;
    got[23] = 0;
    compare_buffers(TY_i32, got, TY_i32, want, 24, exact, &r);
    cr_assert_not(r.ok);
    assert_text(&r, 3, (int64_t[]){ 2, 3, 4 },
                "C: 2 of 24 elements disagree; relative norm of the error "
                "0.361, largest error 23 at largest value 23\n"
                "  C[0, 1, 1] is -1, expected 5\n"
                "  C[1, 2, 3] is 0, expected 23\n");
    for (int i = 0; i < 24; i++)
        got[i] = 100;
    compare_buffers(TY_i32, got, TY_i32, want, 24, exact, &r);
    cr_assert_eq(r.mismatches, 24);
    cr_assert_eq(r.shown, COMPARE_SHOWN);
    cr_assert_eq(r.first[7].index, 7);
}

Test(compare, poison_never_agrees)
{
    float got[2], want[2];
    CompareResult r;
    fill_poison(TY_f32, 2, got);
    fill_poison(TY_f32, 2, want);
    got[0] = want[0] = 3;
    compare_buffers(TY_f32, got, TY_f32, want, 2, exact, &r);
    cr_assert_not(r.ok);
    cr_assert_eq(r.poisoned, 1);
    want[1] = 2;
    compare_buffers(TY_f32, got, TY_f32, want, 2,
                    (CompareRule){ .norm = 9, .element = 9 }, &r);
    cr_assert_not(r.ok);
    assert_text(&r, 1, (int64_t[]){ 2 },
                "C: 1 of 2 elements disagree, 1 never written; relative norm "
                "of the error 0 (limit 9), largest error 0 at largest value 3 "
                "(limit 27)\n"
                "  C[1] was never written, expected 2\n");
}

Test(compare, tolerance_has_two_limits)
{
    double want[] = { 1, 2, 3, 4 };
    float got[] = { 1, 2, 3, 4.04f };
    CompareRule rule = { .norm = 0.01, .element = 0.011 };
    CompareResult r;
    compare_buffers(TY_f32, got, TY_f64, want, 4, rule, &r);
    cr_assert(r.ok);
    cr_assert_float_eq(r.norm_ratio, 0.04 / sqrt(30), 1e-6);
    cr_assert_float_eq(r.largest_error, 0.04, 1e-6);
    cr_assert_eq(r.largest_wanted, 4);
    rule.element = 0.009;
    compare_buffers(TY_f32, got, TY_f64, want, 4, rule, &r);
    cr_assert_not(r.ok);
    cr_assert_eq(r.mismatches, 1);
    cr_assert_eq(r.first[0].index, 3);
    rule = (CompareRule){ .norm = 0.007, .element = 1 };
    compare_buffers(TY_f32, got, TY_f64, want, 4, rule, &r);
    cr_assert_not(r.ok);
    cr_assert_eq(r.mismatches, 0);
}

Test(compare, tolerance_does_not_forgive_the_infinite)
{
    float want[] = { 1, INFINITY, NAN, 1 }, got[] = { 1, INFINITY, NAN, 1 };
    CompareRule rule = { .norm = 10, .element = 10 };
    CompareResult r;
    compare_buffers(TY_f32, got, TY_f32, want, 4, rule, &r);
    cr_assert(r.ok);
    got[0] = INFINITY;
    got[1] = 1;
    got[2] = 1;
    got[3] = NAN;
    compare_buffers(TY_f32, got, TY_f32, want, 4, rule, &r);
    cr_assert_not(r.ok);
    cr_assert_eq(r.mismatches, 4);
}

Test(compare, zeros_expected)
{
    double want[] = { 0, 0 }, got[] = { 0, 1e-300 };
    CompareResult r;
    CompareRule rule = { .norm = 1e-3, .element = 1e-3 };
    compare_buffers(TY_f64, got, TY_f64, want, 2, rule, &r);
    cr_assert_not(r.ok);
    got[1] = 0;
    compare_buffers(TY_f64, got, TY_f64, want, 2, rule, &r);
    cr_assert(r.ok);
    compare_buffers(TY_f64, got, TY_f64, want, 0, rule, &r);
    cr_assert(r.ok);
}
