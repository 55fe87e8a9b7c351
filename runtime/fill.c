/* Deterministic contents of tensors. A counter-based generator: the bits of an
 * element are the output function of SplitMix64 (Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators", 2014) at position `index` of the
 * sequence that starts at the mixed seed. Numbers are made with integers only
 * and scaled by powers of two, so that no library function rounds anything. */
#include "runtime/fill.h"

#include <string.h>

bool fill_kind_from_name(const char *name, FillKind *out)
{
    bool ints = strcmp(name, "ints") == 0;
    *out = ints ? FILL_INTS : FILL_NORMAL;
    return ints || strcmp(name, "normal") == 0;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t fill_bits(uint64_t seed, uint64_t index)
{
    return mix(mix(seed + 0x9e3779b97f4a7c15u) +
               (index + 1) * 0x9e3779b97f4a7c15u);
}

uint64_t fill_seed(uint64_t seed, const char *name)
{
    uint64_t h = mix(seed ^ 0x6a09e667f3bcc908u);
    for (; *name; name++)
        h = mix(h ^ (unsigned char)*name) + 0x9e3779b97f4a7c15u;
    return h;
}

/* One of 0 .. n - 1, from the upper half of 64 bits. */
static int pick(uint64_t bits, int n)
{
    return (int)((bits >> 32) * (uint64_t)n >> 32);
}

static double integer_value(ScalarType type, uint64_t bits)
{
    const ScalarInfo *t = scalar_info(type);
    int nine = pick(bits, 9);
    if (type == TY_bool)
        return pick(bits, 2);
    if (type == TY_e8m0)
        return nine < 4 ? 1.0 / (1 << (4 - nine)) : 1 << (nine - 4);
    return t->kind == SK_UINT ? nine : nine - 4;
}

/* Twelve uniform 16-bit numbers added up, less the mean of the sum. */
static double normal_value(uint64_t seed, uint64_t index)
{
    int64_t sum = 0;
    for (uint64_t draw = 0; draw < 3; draw++) {
        uint64_t bits = fill_bits(seed, 3 * index + draw);
        for (int part = 0; part < 4; part++)
            sum += (int64_t)(bits >> 16 * part & 0xffff);
    }
    return (double)(sum - 6 * 65535) / 65536;
}

double fill_value(FillKind kind, ScalarType type, uint64_t seed, uint64_t index)
{
    bool normal =
        kind == FILL_NORMAL && scalar_type_is_float(type) && type != TY_e8m0;
    if (normal)
        return normal_value(seed, index);
    return integer_value(type, fill_bits(seed, index));
}

void fill_range(FillKind kind, ScalarType type, uint64_t seed, uint64_t first,
                size_t count, void *out)
{
    unsigned char *p = out;
    size_t bytes = (size_t)scalar_type_bytes(type);
    for (size_t i = 0; i < count; i++)
        scalar_encode(type, fill_value(kind, type, seed, first + i),
                      p + i * bytes);
}

void fill_poison(ScalarType type, size_t count, void *out)
{
    unsigned char *p = out;
    size_t bytes = (size_t)scalar_type_bytes(type);
    for (size_t i = 0; i < count; i++)
        scalar_store_bits(type, scalar_info(type)->poison_bits, p + i * bytes);
}

size_t fill_count_poison(ScalarType type, size_t count, const void *data,
                         size_t *first)
{
    const unsigned char *p = data;
    size_t bytes = (size_t)scalar_type_bytes(type), found = 0;
    *first = count;
    if (!scalar_type_is_float(type) || type == TY_e8m0)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (scalar_is_poison(type, p + i * bytes)) {
            if (found++ == 0)
                *first = i;
        }
    return found;
}
