/* Scalar types and the bits of their values.
 *
 * The table of types is scalar_types.def. Every layer that needs a value of a
 * type (interpreter, machine model, constant folding, fills, .npy files, test
 * oracles) goes through this header, so that each conversion has one rounding
 * and one NaN rule:
 *
 * - To a float type with sign: to nearest, ties to even, in one step from the
 *   exact value, subnormals kept. Above the largest finite value f16, bf16,
 *   f32 and f64 become infinity; e4m3 and e5m2 become the largest finite value,
 *   infinity included. This is PTX `cvt.rn.f16.f32`, `cvt.rn.bf16.f32` and
 *   `cvt.rn.satfinite.e4m3x2.f32` / `.e5m2x2.f32` (PTX ISA, section "cvt").
 * - To e8m0: the sign is dropped and the value rounded up to a power of two,
 *   clamped to 2^-127 .. 2^127; zero becomes 2^-127. This is PTX
 *   `cvt.rp.satfinite.ue8m0x2.f32`. Upward, because a scale that is too small
 *   would overflow the values divided by it. Infinity becomes 2^127.
 * - Any NaN becomes the type's one canonical NaN (positive, `nan_bits`): PTX's
 *   0x7fff for f16 and bf16, 0x7fffffff for f32, 0x7f for e4m3 and e5m2, 0xff
 *   for e8m0; for f64 0x7ff8000000000000. Hosts differ in sign and payload of
 *   the NaN an operation makes, so that results would not be the same bytes.
 * - Float to integer: towards zero, clamped to the type's range; NaN gives 0
 *   (PTX `cvt.rzi` from f32). Integer to integer wraps.
 *
 * Values are held as `double`, which is exact for every type, or as `int64_t`
 * for integers. Sum, difference, product and quotient of values of one float
 * type, computed in double and then encoded, are rounded right: double has more
 * than twice the digits of f32 (p >= 2q + 2), and in f64 there is one rounding.
 * That does not hold for a fused multiply-add: use `scalar_fma`.
 *
 * All functions are pure, and total on every bit pattern. Memory is little
 * endian on every target of the compiler; bytes here are in memory order. */
#ifndef EXO_IR_SCALAR_H
#define EXO_IR_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum ScalarType {
    TY_none,
#define SCALAR(id, ...) TY_##id,
#include "ir/scalar_types.def"
#undef SCALAR
    TY_COUNT
} ScalarType;

typedef enum ScalarKind {
    SK_NONE,
    SK_GENERIC,
    SK_FLOAT,
    SK_SINT,
    SK_UINT,
    SK_CONTROL
} ScalarKind;

/* One row of scalar_types.def. */
typedef struct ScalarInfo {
    const char *name;
    ScalarKind kind;
    int bytes;    /* in memory; 0 for R */
    int exp_bits; /* float types only, as are the next eight */
    int man_bits; /* stored, without the hidden one */
    int bias;
    uint64_t max_bits;    /* largest finite value */
    uint64_t nan_bits;    /* canonical NaN */
    uint64_t poison_bits; /* marks memory never written; integers have one too.
                             A NaN, the canonical one only for e8m0 */
    bool has_sign;
    bool has_inf;
    bool saturates;     /* overflow gives max_bits, not infinity */
    const char *npy;    /* element type in a .npy header */
    const char *ptx;    /* suffix in PTX; NULL for control types and R */
    const char *c_type; /* type that holds the bits in C */
    int tensor_map;     /* CUtensorMapDataType, -1 when there is none */
    const char *tensor_map_name; /* after CU_TENSOR_MAP_DATA_TYPE_ */
    const char *doc;
} ScalarInfo;

/* CUtensorMapDataType TFLOAT32: f32 that a load rounds with scalar_tf32_rn. */
enum { SCALAR_TENSOR_MAP_TF32 = 11 };

/* The row of `type`; for TY_none and numbers outside the table a row of kind
 * SK_NONE that is named "none". Never NULL. */
const ScalarInfo *scalar_info(ScalarType type);

/* The type that is printed `name` (`len` bytes), or TY_none. */
ScalarType scalar_type_from_name(const char *name, size_t len);

/* The printed name. */
const char *scalar_type_name(ScalarType type);

/* Bytes of one element in memory. */
int scalar_type_bytes(ScalarType type);

/* Claims about the kind. Data types are those a tensor may have: all but the
 * control types; R is one. */
bool scalar_type_is_float(ScalarType type);
bool scalar_type_is_int(ScalarType type);
bool scalar_type_is_control(ScalarType type);
bool scalar_type_is_data(ScalarType type);

/* The value of the element at `bits`. Integers up to 32 bits, control types
 * up to 53; NaN for R. */
double scalar_decode(ScalarType type, const void *bits);

/* Writes `value` at `bits` by the rules above. R: writes nothing. */
void scalar_encode(ScalarType type, double value, void *bits);

/* The same for integer values. A float element decodes by the float to integer
 * rule, at 64 bits; to a float element the integer is rounded once. */
int64_t scalar_decode_int(ScalarType type, const void *bits);
void scalar_encode_int(ScalarType type, int64_t value, void *bits);

/* Raw bits of an element, zero-extended, and back. */
uint64_t scalar_load_bits(ScalarType type, const void *bits);
void scalar_store_bits(ScalarType type, uint64_t value, void *bits);

/* `value` rounded to `type`. */
double scalar_round(ScalarType type, double value);

/* `value` wrapped to the integer type `type`; a bool is 0 or 1; other types
 * leave it. */
int64_t scalar_wrap(ScalarType type, int64_t value);

/* a * b + c for three values of `type`, rounded once. Integer types wrap. */
double scalar_fma(ScalarType type, double a, double b, double c);

/* Whether the bits at `bits` are the type's poison pattern. For types without
 * a NaN to spare (integers, e8m0) a real value may look the same. */
bool scalar_is_poison(ScalarType type, const void *bits);

/* f32 to tf32, 10 bits of mantissa, to nearest and ties away from zero: PTX
 * `cvt.rna.tf32.f32`. May overflow to infinity; NaN becomes canonical. */
float scalar_tf32_rna(float x);

/* The same with ties to even: PTX `cvt.rn.tf32.f32`, and what a tensor map of
 * type CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 does to what is loaded through it
 * (measured on an H200: ties, overflow, denormals kept; the NaN it makes of any
 * is 0x7fffe000, while cvt and we have the canonical one). */
float scalar_tf32_rn(float x);

/* Bits of a f32. */
static inline uint32_t scalar_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* The f32 with these bits. */
static inline float scalar_f32_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* f32 to tf32 by clearing the low 13 bits: what wgmma with .tf32 operands does
 * to raw f32 ("will truncate lower 13 bits of the 32-bit input data", PTX ISA,
 * section "wgmma.mma_async"). A NaN stays one here, also when its payload is in
 * those bits. */
static inline float scalar_tf32_truncate(float x)
{
    uint32_t u = scalar_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return scalar_f32_from_bits(0x7fffffffu);
    return scalar_f32_from_bits(u & ~0x1fffu);
}

/* Fast path: bf16 bits to f32, the same value as scalar_decode. */
static inline float scalar_bf16_to_f32(uint16_t bits)
{
    return scalar_f32_from_bits((uint32_t)bits << 16);
}

/* Fast path: f32 to bf16 bits, the same bits as scalar_encode. */
static inline uint16_t scalar_bf16_from_f32(float x)
{
    uint32_t u = scalar_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/* Fast path: f16 bits to f32, the same value as scalar_decode. Shifts the
 * fields into place and mends the exponent by an exact multiplication with
 * 2^112, which also normalises subnormals. */
static inline float scalar_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t rest = (uint32_t)(bits & 0x7fffu) << 13;
    if (rest >= 0x0f800000u)
        return scalar_f32_from_bits(sign | 0x70000000u | rest);
    return scalar_f32_from_bits(
        sign | scalar_f32_bits(scalar_f32_from_bits(rest) * 0x1p112f));
}

/* Fast path: e5m2 bits to f32, the same value as scalar_decode: they are the
 * upper half of an f16. */
static inline float scalar_e5m2_to_f32(uint8_t bits)
{
    return scalar_f16_to_f32((uint16_t)(bits << 8));
}

/* Fast path: e4m3 bits to f32, the same value as scalar_decode; as f16, but for
 * the one NaN. */
static inline float scalar_e4m3_to_f32(uint8_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x80u) << 24;
    uint32_t rest = (uint32_t)(bits & 0x7fu) << 20;
    if (rest == UINT32_C(0x7f) << 20)
        return scalar_f32_from_bits(0x7fffffffu);
    return scalar_f32_from_bits(
        sign | scalar_f32_bits(scalar_f32_from_bits(rest) * 0x1p120f));
}

/* n values that are side by side to out[0], out[step], .. A value that the
 * target does not hold is rounded to it. */
void scalar_load_floats(ScalarType type, const void *bits, size_t n, float *out,
                        size_t step);
void scalar_load_doubles(ScalarType type, const void *bits, size_t n,
                         double *out, size_t step);

/* The same value as scalar_decode, by the fast paths where there is one. */
static inline double scalar_load(ScalarType type, const void *bits)
{
    float f;
    uint16_t h;
    switch (type) {
    case TY_f32:
        memcpy(&f, bits, sizeof f);
        return (double)f;
    case TY_bf16:
        memcpy(&h, bits, sizeof h);
        return (double)scalar_bf16_to_f32(h);
    case TY_f16:
        memcpy(&h, bits, sizeof h);
        return (double)scalar_f16_to_f32(h);
    case TY_e4m3:
        return (double)scalar_e4m3_to_f32(*(const uint8_t *)bits);
    case TY_e5m2:
        return (double)scalar_e5m2_to_f32(*(const uint8_t *)bits);
    default:
        return scalar_decode(type, bits);
    }
}

#endif
