/* Random inputs, digests of what is written, and the comparison of results. */
#include "verify/async/values.h"

#include <math.h>
#include <string.h>

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return z ^ (z >> 32);
}

enum { STEPS = 127, FINE = 4, KINDS = 2 * FINE * STEPS };

/* One of KINDS values: k / 32 with 0 < |k| < 128; in wide types a little more,
 * which rounding to tf32 takes away. Whole numbers in types that have no
 * others. */
static double made_value(ScalarType t, unsigned i)
{
    double k = 1.0 + (double)(i % STEPS), sign = i / STEPS % 2 ? -1.0 : 1.0;
    if (scalar_type_is_int(t))
        return t == TY_bool ? (double)(i % 2) : k;
    if (t == TY_e8m0)
        return ldexp(1.0, (int)(i % 5) - 2);
    double fine = t == TY_f32 || t == TY_f64 ? ldexp(1.0, -20) : 0.0;
    return sign * (k / 32.0 + fine * (double)(1 + i / STEPS / 2));
}

void values_fill(Tensor *t, uint64_t seed)
{
    unsigned char made[KINDS][sizeof(double)];
    size_t size = t->elem_bytes;
    for (unsigned i = 0; i < KINDS; i++)
        scalar_encode(t->elem, made_value(t->elem, i), made[i]);
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t x = mix(mix(seed + 1) + (uint64_t)i);
        memcpy(t->bytes + i * (int64_t)size, made[x % KINDS], size);
    }
    tensor_set_written(t);
}

static inline uint64_t bits_at(const unsigned char *p, unsigned bytes)
{
    uint64_t x = 0;
    uint32_t four;
    uint16_t two;
    switch (bytes) {
    case 1:
        return *p;
    case 2:
        memcpy(&two, p, 2);
        return two;
    case 4:
        memcpy(&four, p, 4);
        return four;
    default:
        memcpy(&x, p, bytes);
        return x;
    }
}

/* Of n elements; bytes NULL: without their values. Called with a constant size,
 * since most of the time of a digest goes here. */
static inline __attribute__((always_inline)) uint64_t
sum_of(const unsigned char *bytes, unsigned size, int64_t n, uint64_t where,
       uint64_t step)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++, where += step) {
        uint64_t x = bytes ? bits_at(bytes + i * size, size) : 0;
        sum += mix(x + 1 + where * UINT64_C(0x9e3779b97f4a7c15));
    }
    return sum;
}

/* How far apart two values of the type next to each other are, near 1. */
static double grain(ScalarType t)
{
    return scalar_type_is_int(t) ? 1.0 : ldexp(1.0, -scalar_info(t)->man_bits);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void add_loose(Digest *d, double x, double grain, uint64_t where)
{
    double weight = 0.5 + (double)(mix(where) >> 11) * 0x1p-53;
    if (!isfinite(x)) {
        d->sum += mix(where + (isnan(x) ? 1 : x > 0.0 ? 2 : 3));
        return;
    }
    d->loose->total += weight * x;
    d->loose->size += fabs(weight * x);
    d->loose->slack = larger(d->loose->slack, grain * larger(1.0, fabs(x)));
}

enum { AT_ONCE = 64 };

static void digest_loose(Digest *d, ScalarType t, const unsigned char *bytes,
                         int64_t n, uint64_t where, uint64_t step)
{
    double x[AT_ONCE], of_type = grain(t);
    size_t size = (size_t)scalar_info(t)->bytes;
    for (int64_t some; n > 0; n -= some, bytes += (size_t)some * size) {
        some = n < AT_ONCE ? n : AT_ONCE;
        scalar_load_doubles(t, bytes, (size_t)some, x, 1);
        for (int64_t i = 0; i < some; i++, where += step)
            add_loose(d, x[i], of_type, where);
    }
}

void digest_add(Digest *d, ScalarType t, const unsigned char *bytes, int64_t n,
                int64_t place)
{
    unsigned size = (unsigned)scalar_info(t)->bytes;
    uint64_t where = place < 0 ? 0 : (uint64_t)place + 1;
    uint64_t step = place < 0 ? 0 : 1;
    d->n += n;
    if (d->loose && bytes) {
        digest_loose(d, t, bytes, n, where, step);
        return;
    }
    switch (size) {
    case 1:
        d->sum += sum_of(bytes, 1, n, where, step);
        return;
    case 2:
        d->sum += sum_of(bytes, 2, n, where, step);
        return;
    case 4:
        d->sum += sum_of(bytes, 4, n, where, step);
        return;
    default:
        d->sum += sum_of(bytes, size, n, where, step);
    }
}

void digest_join(Digest *d, const Digest *more)
{
    d->sum += more->sum;
    d->n += more->n;
    if (!d->loose)
        return;
    d->loose->total += more->loose->total;
    d->loose->size += more->loose->size;
    d->loose->slack = larger(d->loose->slack, more->loose->slack);
}

static bool sums_same(const LooseSums *a, const LooseSums *b)
{
    double slack =
        4.0 * larger(a->slack, b->slack) + ldexp(a->size + b->size + 1.0, -16);
    return fabs(a->total - b->total) <= slack;
}

bool digest_same(const Digest *a, const Digest *b)
{
    return a->sum == b->sum && a->n == b->n &&
           (!a->loose || sums_same(a->loose, b->loose));
}

void digest_view(Digest *d, const View *v, bool values, bool places)
{
    int64_t index[TENSOR_MAX_RANK] = { 0 }, n = 1, run;
    unsigned bad = 0, inner = v->rank ? v->rank - 1 : 0;
    const Tensor *t = v->tensor;
    for (unsigned i = 0; i < v->rank; i++)
        n *= v->extent[i];
    for (int64_t i = 0; i < n; i += run) {
        int64_t at = view_element(v, index, &bad);
        run = view_run(v, index, v->rank ? v->extent[inner] - index[inner] : 1);
        if (at >= 0)
            digest_add(d, t->elem,
                       values ? t->bytes + at * t->elem_bytes : NULL, run,
                       places ? at : -1);
        if (v->rank)
            index[inner] += run - 1;
        for (unsigned k = v->rank; k-- > 0 && ++index[k] == v->extent[k];)
            index[k] = 0;
    }
}

int64_t values_differ(const Tensor *a, const Tensor *b, bool close)
{
    size_t size = a->elem_bytes;
    if (!memcmp(a->bytes, b->bytes, (size_t)a->count * size))
        return -1;
    for (int64_t i = 0; i < a->count; i++) {
        if (!memcmp(a->bytes + i * (int64_t)size, b->bytes + i * (int64_t)size,
                    size))
            continue;
        double x = tensor_get(a, i), y = tensor_get(b, i);
        double slack = ldexp(1.0, -12) + 2.0 * grain(a->elem);
        if (!close || !(fabs(x - y) <= slack * (fabs(x) + fabs(y) + 1.0)))
            return i;
    }
    return -1;
}
