/* Scalar types: literal values, then every 8- and 16-bit format against a slow
 * reference. The reference knows a format by its widths only: it decodes with
 * ldexp, and rounds by comparing with the midpoints of neighbouring values,
 * which are exact in a double. */
#include "ir/scalar.h"

#include <criterion/criterion.h>
#include <math.h>

/* A format as the reference sees it: its widths, the magnitudes that are
 * infinity and the first NaN (0: none), and what overflow gives. */
typedef struct Format {
    ScalarType type;
    int exp_bits, man_bits;
    unsigned max, infinity, nan, overflow;
} Format;

static const Format formats[] = {
    { TY_f16, 5, 10, 0x7bff, 0x7c00, 0x7fff, 0x7c00 },
    { TY_bf16, 8, 7, 0x7f7f, 0x7f80, 0x7fff, 0x7f80 },
    { TY_e4m3, 4, 3, 0x7e, 0, 0x7f, 0x7e },
    { TY_e5m2, 5, 2, 0x7b, 0x7c, 0x7f, 0x7b },
};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static unsigned encode(ScalarType type, double value)
{
    unsigned char bits[8] = { 0 };
    scalar_encode(type, value, bits);
    return (unsigned)scalar_load_bits(type, bits);
}

static double decode(ScalarType type, uint64_t raw)
{
    unsigned char bits[8];
    scalar_store_bits(type, raw, bits);
    return scalar_decode(type, bits);
}

/* Value of a magnitude; the caller has excluded infinity and NaN. */
static double reference_decode(const Format *f, unsigned magnitude)
{
    int bias = (1 << (f->exp_bits - 1)) - 1;
    int field = (int)(magnitude >> f->man_bits);
    unsigned man = magnitude & ((1u << f->man_bits) - 1);
    if (field == 0)
        return ldexp(man, 1 - bias - f->man_bits);
    return ldexp(man + (1u << f->man_bits), field - bias - f->man_bits);
}

/* Magnitude nearest to x >= 0 by walking up the values. */
static unsigned reference_encode(const Format *f, double x)
{
    for (unsigned m = 0; m < f->max; m++) {
        double low = reference_decode(f, m);
        double high = reference_decode(f, m + 1);
        double middle = low + (high - low) / 2;
        if (x < middle || (x == middle && m % 2 == 0))
            return m;
    }
    double last = reference_decode(f, f->max);
    double before = reference_decode(f, f->max - 1);
    return x < last + (last - before) / 2 ? f->max : f->overflow;
}

Test(scalar, names_round_trip_and_others_are_refused)
{
    for (int t = TY_none + 1; t < TY_COUNT; t++) {
        const char *name = scalar_type_name((ScalarType)t);
        cr_assert_eq(scalar_type_from_name(name, strlen(name)), (ScalarType)t);
    }
    cr_assert_eq(scalar_type_from_name("bf16x", 4), TY_bf16);
    cr_assert_eq(scalar_type_from_name("bf16x", 5), TY_none);
    cr_assert_eq(scalar_type_from_name("bf", 2), TY_none);
    cr_assert_eq(scalar_type_from_name("", 0), TY_none);
    cr_assert_eq(scalar_type_from_name("none", 4), TY_none);
}

Test(scalar, rows_are_complete)
{
    for (int t = TY_none + 1; t < TY_COUNT; t++) {
        const ScalarInfo *s = scalar_info((ScalarType)t);
        cr_assert_neq(s->kind, SK_NONE, "%s", s->name);
        cr_assert_not_null(s->doc, "%s", s->name);
        cr_assert_eq(s->tensor_map >= 0, s->tensor_map_name != NULL, "%s",
                     s->name);
        if (t == TY_R)
            continue;
        cr_assert_gt(s->bytes, 0, "%s", s->name);
        cr_assert_not_null(s->npy, "%s", s->name);
        cr_assert_not_null(s->c_type, "%s", s->name);
        cr_assert_eq(s->kind == SK_CONTROL, s->ptx == NULL, "%s", s->name);
        if (s->kind == SK_FLOAT)
            cr_assert_eq(s->has_sign + s->exp_bits + s->man_bits, 8 * s->bytes,
                         "%s", s->name);
    }
}

Test(scalar, kinds)
{
    cr_assert(scalar_type_is_float(TY_e8m0));
    cr_assert_not(scalar_type_is_float(TY_i32));
    cr_assert(scalar_type_is_int(TY_ui8));
    cr_assert_not(scalar_type_is_int(TY_index));
    cr_assert(scalar_type_is_control(TY_stride));
    cr_assert_not(scalar_type_is_control(TY_i32));
    cr_assert(scalar_type_is_data(TY_R));
    cr_assert_not(scalar_type_is_data(TY_size));
    cr_assert_not(scalar_type_is_data(TY_none));
    cr_assert_eq(scalar_info((ScalarType)999)->kind, SK_NONE);
    cr_assert_eq(scalar_info((ScalarType)-1)->kind, SK_NONE);
}

static const struct {
    ScalarType type;
    double value;
    unsigned bits;
} literals[] = {
    { TY_f16, 1.0, 0x3c00 },
    { TY_f16, -2.0, 0xc000 },
    { TY_f16, 65504.0, 0x7bff },
    { TY_f16, 65519.99, 0x7bff },
    { TY_f16, 65520.0, 0x7c00 },
    { TY_f16, 0x1p-24, 0x0001 },
    { TY_f16, 0x1p-25, 0x0000 },
    { TY_f16, 0x1.8p-25, 0x0001 },
    { TY_f16, 0x1.ffcp-15, 0x0400 },
    { TY_f16, -0.0, 0x8000 },
    { TY_f16, 1.0 / 3.0, 0x3555 },
    /* Through f32 this would become a tie and go down to even. */
    { TY_f16, 1.0 + 0x1p-11 + 0x1p-40, 0x3c01 },
    { TY_bf16, 1.0 + 0x1p-8 + 0x1p-40, 0x3f81 },
    { TY_bf16, 1.0 + 0x1p-8, 0x3f80 },
    { TY_bf16, 3.140625, 0x4049 },
    { TY_bf16, 0x1p-133, 0x0001 },
    { TY_bf16, 0x1.fep127, 0x7f7f },
    { TY_bf16, 0x1.ffp127, 0x7f80 },
    { TY_bf16, -1e300, 0xff80 },
    { TY_e4m3, 448.0, 0x7e },
    { TY_e4m3, 464.0, 0x7e },
    { TY_e4m3, 1e9, 0x7e },
    { TY_e4m3, -INFINITY, 0xfe },
    { TY_e4m3, 0x1p-9, 0x01 },
    { TY_e4m3, 0x1p-10, 0x00 },
    { TY_e4m3, 1.0625, 0x38 },
    { TY_e4m3, 1.1875, 0x3a },
    { TY_e5m2, 57344.0, 0x7b },
    { TY_e5m2, INFINITY, 0x7b },
    { TY_e5m2, -1.0, 0xbc },
    { TY_e5m2, 0x1p-16, 0x01 },
    { TY_e8m0, 1.0, 0x7f },
    { TY_e8m0, 1.0000001, 0x80 },
    { TY_e8m0, -3.0, 0x81 },
    { TY_e8m0, 0.0, 0x00 },
    { TY_e8m0, 0x1p-140, 0x00 },
    { TY_e8m0, 0x1p127, 0xfe },
    { TY_e8m0, INFINITY, 0xfe },
    { TY_f32, 16777217.0, 0x4b800000 },
    { TY_f32, 0x1p-149, 0x00000001 },
    { TY_f32, 0x1p-150, 0x00000000 },
    { TY_f32, 0x1.ffffffp127, 0x7f800000 },
    { TY_i8, 127.9, 127 },
    { TY_i8, 300.0, 127 },
    { TY_i8, -300.0, 0x80 },
    { TY_ui8, -1.0, 0 },
    { TY_ui16, 70000.0, 0xffff },
    { TY_i32, -1.9, 0xffffffff },
    { TY_i32, 1e20, 0x7fffffff },
    { TY_bool, 0.5, 1 },
};

Test(scalar, literal_values)
{
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
        unsigned got = encode(literals[i].type, literals[i].value);
        cr_assert_eq(got, literals[i].bits, "%s %a: %#x, not %#x",
                     scalar_type_name(literals[i].type), literals[i].value, got,
                     literals[i].bits);
    }
}

Test(scalar, nan_is_canonical_and_zero_as_an_integer)
{
    static const struct {
        ScalarType type;
        unsigned bits;
    } rows[] = { { TY_f16, 0x7fff },     { TY_bf16, 0x7fff },
                 { TY_f32, 0x7fffffff }, { TY_e4m3, 0x7f },
                 { TY_e5m2, 0x7f },      { TY_e8m0, 0xff },
                 { TY_i8, 0 },           { TY_i32, 0 },
                 { TY_bool, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_eq(encode(rows[i].type, NAN), rows[i].bits);
        cr_assert_eq(encode(rows[i].type, -NAN), rows[i].bits);
    }
    unsigned char bits[8];
    scalar_encode(TY_f64, -NAN, bits);
    cr_assert_eq(scalar_load_bits(TY_f64, bits), 0x7ff8000000000000u);
}

Test(scalar, bytes_are_little_endian)
{
    unsigned char bits[8];
    scalar_encode(TY_f32, 1.0, bits);
    cr_assert_arr_eq(bits, ((unsigned char[]){ 0, 0, 0x80, 0x3f }), 4);
    scalar_encode_int(TY_i32, -2, bits);
    cr_assert_arr_eq(bits, ((unsigned char[]){ 0xfe, 255, 255, 255 }), 4);
}

Test(scalar, every_pattern_decodes_as_the_reference_and_encodes_back)
{
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const Format *f = &formats[i];
        unsigned sign = 1u << (f->exp_bits + f->man_bits);
        for (unsigned raw = 0; raw < 2 * sign; raw++) {
            unsigned m = raw & (sign - 1);
            double got = decode(f->type, raw);
            if (m <= f->max) {
                double want = reference_decode(f, m);
                cr_assert_eq(got, raw & sign ? -want : want);
                cr_assert_eq(!!signbit(got), !!(raw & sign));
                cr_assert_eq(encode(f->type, got), raw);
            } else if (f->infinity && m == f->infinity) {
                cr_assert_eq(got, raw & sign ? -INFINITY : INFINITY);
            } else {
                cr_assert(isnan(got));
                cr_assert_eq(encode(f->type, got), f->nan);
            }
        }
    }
}

/* Around every midpoint between neighbours: below, at and above it. Rounding
 * is monotone, so this settles it for every double. */
Test(scalar, rounding_is_right_at_every_midpoint)
{
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const Format *f = &formats[i];
        unsigned sign = 1u << (f->exp_bits + f->man_bits);
        for (unsigned m = 0; m < f->max; m++) {
            double low = reference_decode(f, m);
            double high = reference_decode(f, m + 1);
            double middle = low + (high - low) / 2;
            unsigned even = m % 2 ? m + 1 : m;
            cr_assert_eq(encode(f->type, middle), even);
            cr_assert_eq(encode(f->type, -middle), even | sign);
            cr_assert_eq(encode(f->type, nextafter(middle, 0)), m);
            cr_assert_eq(encode(f->type, nextafter(middle, INFINITY)), m + 1);
            cr_assert_eq(encode(f->type, nextafter(low, INFINITY)), m);
            cr_assert_eq(encode(f->type, nextafter(high, 0)), m + 1);
        }
    }
}

Test(scalar, random_values_round_as_the_reference_and_monotonically)
{
    uint64_t seed = 1;
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const Format *f = &formats[i];
        int tries = f->man_bits + f->exp_bits > 8 ? 60 : 4000;
        double top = 2 * reference_decode(f, f->max);
        double previous = 0;
        for (int n = 0; n < tries; n++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            double unit = ldexp((double)(seed >> 11), -53);
            double x = top * pow(unit, 1 + n % 40);
            unsigned got = encode(f->type, x);
            cr_assert_eq(got, reference_encode(f, x), "%a", x);
            unsigned before = encode(f->type, previous);
            cr_assert(x < previous ? got <= before : got >= before);
            previous = x;
        }
    }
}

Test(scalar, e8m0_is_a_power_of_two_rounded_up)
{
    for (unsigned raw = 0; raw < 255; raw++) {
        double value = ldexp(1, (int)raw - 127);
        cr_assert_eq(decode(TY_e8m0, raw), value);
        cr_assert_eq(encode(TY_e8m0, value), raw);
        cr_assert_eq(encode(TY_e8m0, -value), raw);
        cr_assert_eq(encode(TY_e8m0, nextafter(value, 0)), raw);
        cr_assert_eq(encode(TY_e8m0, nextafter(value, INFINITY)),
                     raw < 254 ? raw + 1 : 254);
    }
    cr_assert(isnan(decode(TY_e8m0, 255)));
}

Test(scalar, f32_rounds_as_the_c_cast)
{
    uint64_t seed = 7;
    for (int n = 0; n < 200000; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = seed ^ seed >> 29;
        bits = (bits & ~((uint64_t)0x7ff << 52)) | (uint64_t)(860 + seed % 300)
                                                       << 52;
        double x;
        memcpy(&x, &bits, sizeof x);
        cr_assert_eq(encode(TY_f32, x), scalar_f32_bits((float)x), "%a", x);
        cr_assert_eq(decode(TY_f32, scalar_f32_bits((float)x)), (float)x);
    }
}

Test(scalar, f64_is_kept)
{
    static const double rows[] = { 0.1,       -0.0,
                                   0x1p-1074, 0x1.fffffffffffffp1023,
                                   -INFINITY, 0x1.fffffffffffffp-1022 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double got = scalar_round(TY_f64, rows[i]);
        cr_assert_eq(memcmp(&got, &rows[i], sizeof got), 0, "%a", rows[i]);
    }
}

Test(scalar, fast_paths_agree_with_the_general_ones)
{
    for (unsigned raw = 0; raw < 0x10000; raw++) {
        float h = scalar_f16_to_f32((uint16_t)raw);
        float b = scalar_bf16_to_f32((uint16_t)raw);
        double want_h = decode(TY_f16, raw), want_b = decode(TY_bf16, raw);
        cr_assert(h == want_h || (isnan(h) && isnan(want_h)), "%#x", raw);
        cr_assert(b == want_b || (isnan(b) && isnan(want_b)), "%#x", raw);
        for (unsigned low = 0; low < 5; low++) {
            static const unsigned tails[] = { 0, 1, 0x7fff, 0x8000, 0x8001 };
            float x = scalar_f32_from_bits(raw << 16 | tails[low]);
            cr_assert_eq(scalar_bf16_from_f32(x), encode(TY_bf16, x));
        }
    }
}

Test(scalar, loads_agree_with_decoding)
{
    static const ScalarType types[] = { TY_e4m3, TY_e5m2, TY_e8m0, TY_i8,
                                        TY_ui8,  TY_f16,  TY_bf16 };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (unsigned raw = 0; raw < 0x10000; raw++) {
            uint32_t bits = raw;
            double got = scalar_load(types[t], &bits);
            double want = scalar_decode(types[t], &bits);
            cr_assert(memcmp(&got, &want, sizeof got) == 0 ||
                          (isnan(got) && isnan(want)),
                      "%s %#x: %g, not %g", scalar_info(types[t])->name, raw,
                      got, want);
        }
    for (unsigned raw = 0; raw < 0x10000; raw++) {
        uint32_t bits = raw << 16 | raw;
        double got = scalar_load(TY_f32, &bits);
        double want = scalar_decode(TY_f32, &bits);
        cr_assert(got == want || (isnan(got) && isnan(want)), "%#x", bits);
    }
}

Test(scalar, many_are_loaded_like_one)
{
    static const ScalarType types[] = { TY_e4m3, TY_e5m2, TY_i8,  TY_bf16,
                                        TY_f16,  TY_f32,  TY_f64, TY_i32 };
    double stored[7] = { 0.5, -1.75, 3.0, -0.0, 96.0, 1.0, -2.0 };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        size_t size = (size_t)scalar_type_bytes(types[t]);
        unsigned char bits[7 * 8];
        float f[14] = { 0 };
        double d[14] = { 0 };
        for (size_t i = 0; i < 7; i++)
            scalar_encode(types[t], stored[i], bits + i * size);
        scalar_load_floats(types[t], bits, 7, f, 2);
        scalar_load_doubles(types[t], bits, 7, d, 2);
        for (size_t i = 0; i < 7; i++) {
            double want = scalar_decode(types[t], bits + i * size);
            cr_assert_eq(f[2 * i], (float)want);
            cr_assert_eq(d[2 * i], want);
            cr_assert_eq(f[2 * i + 1], 0.0f);
            cr_assert_eq(d[2 * i + 1], 0.0);
        }
    }
}

Test(scalar, integers_wrap)
{
    cr_assert_eq(scalar_wrap(TY_i8, 128), -128);
    cr_assert_eq(scalar_wrap(TY_i8, -129), 127);
    cr_assert_eq(scalar_wrap(TY_ui8, -1), 255);
    cr_assert_eq(scalar_wrap(TY_ui16, 65536 + 7), 7);
    cr_assert_eq(scalar_wrap(TY_i32, INT64_C(0x80000000)), INT32_MIN);
    cr_assert_eq(scalar_wrap(TY_index, INT64_MIN), INT64_MIN);
    cr_assert_eq(scalar_wrap(TY_bool, 6), 1);
}

Test(scalar, every_8_and_16_bit_integer_goes_round)
{
    static const ScalarType types[] = { TY_i8, TY_ui8, TY_ui16 };
    for (int i = 0; i < 3; i++) {
        unsigned count = types[i] == TY_ui16 ? 65536 : 256;
        for (unsigned raw = 0; raw < count; raw++) {
            int want =
                types[i] == TY_i8 && raw > 127 ? (int)raw - 256 : (int)raw;
            unsigned char bits[8];
            scalar_store_bits(types[i], raw, bits);
            cr_assert_eq(scalar_decode(types[i], bits), want);
            cr_assert_eq(scalar_decode_int(types[i], bits), want);
            scalar_encode_int(types[i], want, bits);
            cr_assert_eq(scalar_load_bits(types[i], bits), raw);
            cr_assert_eq(encode(types[i], want), raw);
        }
    }
}

Test(scalar, integers_reach_float_types_with_one_rounding)
{
    unsigned char bits[8];
    /* A double would round this to the tie 2^60 + 2^52, then to even. */
    scalar_encode_int(TY_bf16, ((int64_t)1 << 60) + ((int64_t)1 << 52) + 1,
                      bits);
    cr_assert_eq(scalar_load_bits(TY_bf16, bits), 0x5d81);
    scalar_encode_int(TY_f32, INT64_MIN, bits);
    cr_assert_eq(scalar_load_bits(TY_f32, bits), 0xdf000000);
    scalar_encode_int(TY_e4m3, -500, bits);
    cr_assert_eq(scalar_load_bits(TY_e4m3, bits), 0xfe);
    scalar_encode(TY_f64, 1e300, bits);
    cr_assert_eq(scalar_decode_int(TY_f64, bits), INT64_MAX);
}

/* e5m2 values are multiples of 2^-16 below 2^16: the exact result of a fused
 * multiply-add is an integer multiple of 2^-32 that an int64_t nearly holds;
 * the large half of the range is left out. */
Test(scalar, fma_of_e5m2_is_the_exact_result_rounded)
{
    for (unsigned a = 0; a < 0x60; a++)
        for (unsigned b = 0; b < 0x60; b++)
            for (unsigned c = 0; c < 0x60; c += 1 + (a ^ b) % 7) {
                double x = decode(TY_e5m2, a), y = decode(TY_e5m2, b);
                double z = -decode(TY_e5m2, c);
                int64_t p = (int64_t)ldexp(x, 16) * (int64_t)ldexp(y, 16);
                int64_t sum = p + (int64_t)ldexp(z, 32);
                double want = scalar_round(TY_e5m2, ldexp((double)sum, -32));
                cr_assert_eq(scalar_fma(TY_e5m2, x, y, z), want);
            }
}

Test(scalar, fma_rounds_once)
{
    /* The products 0x1.83 and 0x1.89 lie midway between bf16 values; the
     * addend is far below the digits of a double and decides the tie. */
    cr_assert_eq(scalar_fma(TY_bf16, 1.5, 0x1.02p0, 0.0), 0x1.84p0);
    cr_assert_eq(scalar_fma(TY_bf16, 1.5, 0x1.02p0, -0x1p-100), 0x1.82p0);
    cr_assert_eq(scalar_fma(TY_bf16, 1.5, 0x1.06p0, 0.0), 0x1.88p0);
    cr_assert_eq(scalar_fma(TY_bf16, 1.5, 0x1.06p0, 0x1p-100), 0x1.8ap0);
    cr_assert_eq(scalar_fma(TY_bf16, -1.5, 0x1.06p0, -0x1p-100), -0x1.8ap0);
    cr_assert_eq(scalar_fma(TY_bf16, -1.5, 0x1.06p0, 0x1p-100), -0x1.88p0);
    /* f16: (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20. */
    cr_assert_eq(scalar_fma(TY_f16, 0x1.004p0, 0x1.004p0, -1.0),
                 scalar_round(TY_f16, 0x1p-9 + 0x1p-20));
    cr_assert_eq(scalar_fma(TY_f32, 0x1.001p0, 0x1.001p0, -1.0), 0x1.0008p-11);
    cr_assert_eq(scalar_fma(TY_f64, 0x1.0000001p0, 0x1.0000001p0, -1.0),
                 0x1.00000008p-27);
    cr_assert(isnan(scalar_fma(TY_f16, INFINITY, 0.0, 1.0)));
    cr_assert_eq(scalar_fma(TY_f16, -INFINITY, 1.0, 1.0), -INFINITY);
    cr_assert_eq(scalar_fma(TY_i8, 16.0, 16.0, 5.0), 5.0);
    cr_assert_eq(scalar_fma(TY_i32, 65536.0, 65536.0, -1.0), -1.0);
}

Test(scalar, tf32)
{
    static const struct {
        uint32_t in, rna, rn, truncated;
    } rows[] = {
        { 0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000 },
        { 0x3f800fff, 0x3f800000, 0x3f800000, 0x3f800000 },
        { 0x3f801000, 0x3f802000, 0x3f800000, 0x3f800000 },
        { 0x3f801001, 0x3f802000, 0x3f802000, 0x3f800000 },
        { 0x3f803000, 0x3f804000, 0x3f804000, 0x3f802000 },
        { 0xbf801000, 0xbf802000, 0xbf800000, 0xbf800000 },
        { 0x7f7fefff, 0x7f7fe000, 0x7f7fe000, 0x7f7fe000 },
        { 0x7f7ff000, 0x7f800000, 0x7f800000, 0x7f7fe000 },
        { 0x7f7fffff, 0x7f800000, 0x7f800000, 0x7f7fe000 },
        { 0x00001000, 0x00002000, 0x00000000, 0x00000000 },
        { 0x00001001, 0x00002000, 0x00002000, 0x00000000 },
        { 0x007ff000, 0x00800000, 0x00800000, 0x007fe000 },
        { 0x80000000, 0x80000000, 0x80000000, 0x80000000 },
        { 0x7f800000, 0x7f800000, 0x7f800000, 0x7f800000 },
        { 0xff800000, 0xff800000, 0xff800000, 0xff800000 },
        { 0x7f800001, 0x7fffffff, 0x7fffffff, 0x7fffffff },
        { 0xffc00000, 0x7fffffff, 0x7fffffff, 0x7fffffff },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float x = scalar_f32_from_bits(rows[i].in);
        cr_assert_eq(scalar_f32_bits(scalar_tf32_rna(x)), rows[i].rna);
        cr_assert_eq(scalar_f32_bits(scalar_tf32_rn(x)), rows[i].rn);
        cr_assert_eq(scalar_f32_bits(scalar_tf32_truncate(x)),
                     rows[i].truncated);
    }
}

Test(scalar, poison_is_seen_and_is_no_number)
{
    unsigned char bits[8];
    for (int t = TY_none + 1; t < TY_COUNT; t++) {
        ScalarType type = (ScalarType)t;
        if (scalar_info(type)->poison_bits == 0)
            continue;
        scalar_store_bits(type, scalar_info(type)->poison_bits, bits);
        cr_assert(scalar_is_poison(type, bits));
        if (scalar_type_is_float(type))
            cr_assert(isnan(scalar_decode(type, bits)));
        if (type != TY_e8m0) {
            scalar_encode(type, NAN, bits);
            cr_assert_not(scalar_is_poison(type, bits));
        }
    }
}
