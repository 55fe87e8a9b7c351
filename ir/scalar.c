/* Bits of scalar values: decoding, and encoding with one rounding.
 *
 * A value to be encoded is first written exactly as sign and sig * 2^exp with a
 * 64-bit sig, from a double or an int64_t. `round_magnitude` then cuts sig to
 * the digits that the type has at that magnitude, which yields exponent and
 * mantissa fields as one number: rounding up past the last mantissa carries
 * into the exponent, and past the last subnormal into the first normal, as IEEE
 * encodings are made to. Nothing goes through f32 on the way to a narrow type.
 *
 * The fused multiply-add of a type of at most 16 bits: the product of two such
 * values is exact in a double. The sum is rounded to odd (when inexact, the
 * neighbour with an odd last digit is taken), after which a second rounding to
 * at most 51 digits gives what one rounding of the exact sum would (Boldo and
 * Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
#include "ir/scalar.h"

#include <math.h>

static const ScalarInfo scalar_table[TY_COUNT] = {
    [TY_none] = { .name = "none",
                  .tensor_map = -1,
                  .doc = "Not a scalar type." },
#define SCALAR(id, ...) [TY_##id] = { .name = #id, __VA_ARGS__ },
#include "ir/scalar_types.def"
#undef SCALAR
};

const ScalarInfo *scalar_info(ScalarType type)
{
    bool known = (unsigned)type < TY_COUNT;
    return &scalar_table[known ? type : TY_none];
}

ScalarType scalar_type_from_name(const char *name, size_t len)
{
    for (int t = TY_none + 1; t < TY_COUNT; t++) {
        const char *row = scalar_table[t].name;
        if (strlen(row) == len && memcmp(row, name, len) == 0)
            return (ScalarType)t;
    }
    return TY_none;
}

const char *scalar_type_name(ScalarType type)
{
    return scalar_info(type)->name;
}

int scalar_type_bytes(ScalarType type)
{
    return scalar_info(type)->bytes;
}

bool scalar_type_is_float(ScalarType type)
{
    return scalar_info(type)->kind == SK_FLOAT;
}

bool scalar_type_is_int(ScalarType type)
{
    ScalarKind kind = scalar_info(type)->kind;
    return kind == SK_SINT || kind == SK_UINT;
}

bool scalar_type_is_control(ScalarType type)
{
    return scalar_info(type)->kind == SK_CONTROL;
}

bool scalar_type_is_data(ScalarType type)
{
    ScalarKind kind = scalar_info(type)->kind;
    return kind != SK_NONE && kind != SK_CONTROL;
}

uint64_t scalar_load_bits(ScalarType type, const void *bits)
{
    const unsigned char *p = bits;
    uint64_t v = 0;
    for (int i = scalar_info(type)->bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

void scalar_store_bits(ScalarType type, uint64_t value, void *bits)
{
    unsigned char *p = bits;
    int n = scalar_info(type)->bytes;
    for (int i = 0; i < n; i++, value >>= 8)
        p[i] = (unsigned char)value;
}

static uint64_t double_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double double_from_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* x divided by 2^shift, to nearest with ties to even; 0 < shift. */
static uint64_t shift_right_rne(uint64_t x, int shift)
{
    if (shift > 64)
        return 0;
    uint64_t quotient = shift == 64 ? 0 : x >> shift;
    uint64_t rest = shift == 64 ? x : x & (((uint64_t)1 << shift) - 1);
    uint64_t half = (uint64_t)1 << (shift - 1);
    bool up = rest > half || (rest == half && (quotient & 1));
    return quotient + up;
}

/* Exponent and mantissa fields of sig * 2^exp in the type, sig not zero. */
static uint64_t round_magnitude(const ScalarInfo *t, uint64_t sig, int exp)
{
    int zeros = __builtin_clzll(sig);
    int top = exp + 63 - zeros;
    int lowest = 1 - t->bias;
    int below = top < lowest ? lowest - top : 0;
    uint64_t q = shift_right_rne(sig << zeros, 63 - t->man_bits + below);
    uint64_t bits = q;
    if (below == 0)
        bits += (uint64_t)(top - lowest) << t->man_bits;
    if (bits > t->max_bits)
        return t->max_bits + (t->saturates ? 0 : 1);
    return bits;
}

/* The power of two at or above sig * 2^exp, clamped, as e8m0 bits. */
static uint64_t round_up_e8m0(const ScalarInfo *t, uint64_t sig, int exp)
{
    int zeros = __builtin_clzll(sig);
    int top = exp + 63 - zeros;
    bool exact = sig << zeros << 1 == 0;
    int64_t bits = (int64_t)top + t->bias + (exact ? 0 : 1);
    if (bits < 0)
        return 0;
    return (uint64_t)bits > t->max_bits ? t->max_bits : (uint64_t)bits;
}

/* Bits of the number (-1)^negative * sig * 2^exp in a float type. */
static uint64_t encode_exact(const ScalarInfo *t, bool negative, uint64_t sig,
                             int exp)
{
    if (!t->has_sign)
        return sig == 0 ? 0 : round_up_e8m0(t, sig, exp);
    uint64_t bits = sig == 0 ? 0 : round_magnitude(t, sig, exp);
    return bits | (uint64_t)negative << (t->exp_bits + t->man_bits);
}

/* Bits of infinity, or of what stands for it where there is none. */
static uint64_t encode_infinity(const ScalarInfo *t, bool negative)
{
    uint64_t bits = t->max_bits + (t->saturates ? 0 : 1);
    if (negative && t->has_sign)
        bits |= (uint64_t)1 << (t->exp_bits + t->man_bits);
    return bits;
}

/* Bits of a double in a float type. */
static uint64_t encode_float(const ScalarInfo *t, double value)
{
    uint64_t u = double_bits(value);
    bool negative = u >> 63;
    int field = (int)(u >> 52 & 0x7ff);
    uint64_t man = u & 0xfffffffffffffu;
    if (field == 0x7ff)
        return man ? t->nan_bits : encode_infinity(t, negative);
    if (field == 0)
        return encode_exact(t, negative, man, -1074);
    return encode_exact(t, negative, man | (uint64_t)1 << 52, field - 1075);
}

/* 2^n for -1022 <= n <= 1023. */
static double power_of_two(int n)
{
    return double_from_bits((uint64_t)(n + 1023) << 52);
}

/* The value of bits of a float type of at most 32 bits. */
static double decode_float(const ScalarInfo *t, uint64_t bits)
{
    uint64_t all = ((uint64_t)1 << (t->exp_bits + t->man_bits)) - 1;
    uint64_t magnitude = bits & all;
    uint64_t sign = bits & ~all ? (uint64_t)1 << 63 : 0;
    uint64_t man = magnitude & (((uint64_t)1 << t->man_bits) - 1);
    int field = (int)(magnitude >> t->man_bits);
    if (magnitude > t->max_bits) {
        bool is_inf = t->has_inf && magnitude == t->max_bits + 1;
        return is_inf ? double_from_bits(sign | (uint64_t)0x7ff << 52) : NAN;
    }
    if (!t->has_sign)
        return power_of_two(field - t->bias);
    if (field == 0) {
        double least = power_of_two(1 - t->bias - t->man_bits);
        return double_from_bits(sign | double_bits((double)man * least));
    }
    return double_from_bits(sign | (uint64_t)(field - t->bias + 1023) << 52 |
                            man << (52 - t->man_bits));
}

double scalar_decode(ScalarType type, const void *bits)
{
    const ScalarInfo *t = scalar_info(type);
    if (t->kind == SK_NONE || t->kind == SK_GENERIC)
        return NAN;
    if (t->kind != SK_FLOAT)
        return (double)scalar_decode_int(type, bits);
    uint64_t raw = scalar_load_bits(type, bits);
    return type == TY_f64 ? double_from_bits(raw) : decode_float(t, raw);
}

#define LOAD_AS(t, T)                                          \
    case t:                                                    \
        for (size_t i = 0; i < n; i++, p += size, out += step) \
            *out = (T)scalar_load(t, p);                       \
        return

#define LOAD_MANY(name, T)                                         \
    void name(ScalarType type, const void *bits, size_t n, T *out, \
              size_t step)                                         \
    {                                                              \
        const unsigned char *p = bits;                             \
        size_t size = (size_t)scalar_type_bytes(type);             \
        switch (type) {                                            \
            LOAD_AS(TY_f32, T);                                    \
            LOAD_AS(TY_bf16, T);                                   \
            LOAD_AS(TY_f16, T);                                    \
            LOAD_AS(TY_e4m3, T);                                   \
            LOAD_AS(TY_e5m2, T);                                   \
        default:                                                   \
            for (size_t i = 0; i < n; i++, p += size, out += step) \
                *out = (T)scalar_decode(type, p);                  \
        }                                                          \
    }

LOAD_MANY(scalar_load_floats, float)
LOAD_MANY(scalar_load_doubles, double)

#undef LOAD_MANY
#undef LOAD_AS

/* Lowest and highest value of an integer or control type. */
static int64_t int_lowest(const ScalarInfo *t)
{
    if (t->kind == SK_UINT || t->bytes == 0)
        return 0;
    return t->bytes == 8 ? INT64_MIN : -((int64_t)1 << (8 * t->bytes - 1));
}

static int64_t int_highest(const ScalarInfo *t)
{
    if (t->kind == SK_UINT)
        return ((int64_t)1 << (8 * t->bytes)) - 1;
    return -(int_lowest(t) + 1);
}

/* Towards zero, clamped to the type's range, NaN to 0. */
static int64_t int_from_double(double value, int64_t lowest, int64_t highest)
{
    if (value != value)
        return 0;
    if (value <= (double)lowest)
        return lowest;
    if (value >= (double)highest)
        return highest;
    return (int64_t)value;
}

void scalar_encode(ScalarType type, double value, void *bits)
{
    const ScalarInfo *t = scalar_info(type);
    if (t->kind == SK_NONE || t->kind == SK_GENERIC)
        return;
    if (type == TY_f32 && value == value) { /* the machine's own conversion */
        float f = (float)value;
        memcpy(bits, &f, sizeof f);
    } else if (type == TY_bf16 && (double)(float)value == value) {
        uint16_t u = scalar_bf16_from_f32((float)value);
        memcpy(bits, &u, sizeof u);
    } else if (t->kind == SK_FLOAT)
        scalar_store_bits(type, encode_float(t, value), bits);
    else if (type == TY_bool)
        scalar_encode_int(type, value != 0 && value == value, bits);
    else
        scalar_encode_int(
            type, int_from_double(value, int_lowest(t), int_highest(t)), bits);
}

int64_t scalar_decode_int(ScalarType type, const void *bits)
{
    const ScalarInfo *t = scalar_info(type);
    if (t->kind == SK_NONE || t->kind == SK_GENERIC)
        return 0;
    if (t->kind == SK_FLOAT)
        return int_from_double(scalar_decode(type, bits), INT64_MIN, INT64_MAX);
    return scalar_wrap(type, (int64_t)scalar_load_bits(type, bits));
}

void scalar_encode_int(ScalarType type, int64_t value, void *bits)
{
    const ScalarInfo *t = scalar_info(type);
    uint64_t raw = (uint64_t)scalar_wrap(type, value);
    if (t->kind == SK_FLOAT) {
        uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        raw = encode_exact(t, value < 0, magnitude, 0);
    }
    scalar_store_bits(type, raw, bits);
}

double scalar_round(ScalarType type, double value)
{
    unsigned char bits[8];
    scalar_encode(type, value, bits);
    return scalar_decode(type, bits);
}

int64_t scalar_wrap(ScalarType type, int64_t value)
{
    const ScalarInfo *t = scalar_info(type);
    if (type == TY_bool)
        return value != 0;
    if ((t->kind != SK_SINT && t->kind != SK_UINT) || t->bytes == 8)
        return value;
    uint64_t span = (uint64_t)1 << (8 * t->bytes);
    uint64_t low = (uint64_t)value & (span - 1);
    bool negative = t->kind == SK_SINT && low >= span / 2;
    return negative ? (int64_t)low - (int64_t)span : (int64_t)low;
}

/* x + y rounded to odd: the exact sum where it is a double, else the one of
 * its two neighbours that has an odd last digit. The error of the rounded sum
 * is found by Knuth's two-sum. */
static double add_to_odd(double x, double y)
{
    double sum = x + y;
    double y_part = sum - x;
    double x_part = sum - y_part;
    double error = (x - x_part) + (y - y_part);
    uint64_t u = double_bits(sum);
    if (!(error != 0) || error != error || (u & 1))
        return sum;
    bool away_from_zero = (error > 0) == (sum > 0);
    return double_from_bits(away_from_zero ? u + 1 : u - 1);
}

double scalar_fma(ScalarType type, double a, double b, double c)
{
    const ScalarInfo *t = scalar_info(type);
    if (type == TY_f64)
        return scalar_round(type, fma(a, b, c));
    if (type == TY_f32)
        return scalar_round(type, fmaf((float)a, (float)b, (float)c));
    if (t->kind == SK_FLOAT)
        return scalar_round(type, add_to_odd(a * b, c));
    uint64_t x = (uint64_t)int_from_double(a, INT64_MIN, INT64_MAX);
    uint64_t y = (uint64_t)int_from_double(b, INT64_MIN, INT64_MAX);
    uint64_t z = (uint64_t)int_from_double(c, INT64_MIN, INT64_MAX);
    return (double)scalar_wrap(type, (int64_t)(x * y + z));
}

bool scalar_is_poison(ScalarType type, const void *bits)
{
    const ScalarInfo *t = scalar_info(type);
    return t->poison_bits != 0 &&
           scalar_load_bits(type, bits) == t->poison_bits;
}

/* x with half of a tf32's last place, or a little less, added. */
static float tf32_nearest(float x, bool ties_to_even)
{
    uint32_t u = scalar_f32_bits(x);
    uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return scalar_f32_from_bits(0x7fffffffu);
    if (magnitude == 0x7f800000u)
        return x;
    uint32_t half = ties_to_even ? 0xfffu + (u >> 13 & 1) : 0x1000u;
    return scalar_f32_from_bits((u + half) & ~0x1fffu);
}

float scalar_tf32_rna(float x)
{
    return tf32_nearest(x, false);
}

float scalar_tf32_rn(float x)
{
    return tf32_nearest(x, true);
}
