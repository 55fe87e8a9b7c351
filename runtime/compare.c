/* Two passes over the elements: the first finds the largest expected magnitude
 * and the norms, the second counts what breaks the rule, which is relative to
 * that magnitude. Norms are of values scaled by the largest magnitude, so that
 * no square overflows or vanishes. */
#include "runtime/compare.h"

#include <inttypes.h>
#include <math.h>

typedef struct Side {
    ScalarType type;
    const unsigned char *data;
    size_t bytes;
} Side;

static Side side_of(ScalarType type, const void *data)
{
    return (Side){ type, data, (size_t)scalar_type_bytes(type) };
}

static double value_at(const Side *s, size_t i)
{
    return scalar_decode(s->type, s->data + i * s->bytes);
}

static bool poison_at(const Side *s, size_t i)
{
    return scalar_type_is_float(s->type) && s->type != TY_e8m0 &&
           scalar_is_poison(s->type, s->data + i * s->bytes);
}

static bool agree_outright(double got, double want)
{
    return got == want || (got != got && want != want);
}

/* Fills the largest magnitudes over the finite pairs. */
static void find_largest(const Side *got, const Side *want, CompareResult *r)
{
    for (size_t i = 0; i < r->count; i++) {
        double g = value_at(got, i), w = value_at(want, i);
        if (!isfinite(g) || !isfinite(w))
            continue;
        r->largest_wanted = fmax(r->largest_wanted, fabs(w));
        r->largest_error = fmax(r->largest_error, fabs(g - w));
    }
}

/* The ratio of the norms; infinite when nothing but zeros was expected and
 * something else came. */
static double find_norm_ratio(const Side *got, const Side *want,
                              const CompareResult *r)
{
    double error = 0, wanted = 0;
    if (r->largest_error == 0)
        return 0;
    if (r->largest_wanted == 0)
        return INFINITY;
    for (size_t i = 0; i < r->count; i++) {
        double g = value_at(got, i), w = value_at(want, i);
        if (!isfinite(g) || !isfinite(w))
            continue;
        double e = (g - w) / r->largest_error, v = w / r->largest_wanted;
        error += e * e;
        wanted += v * v;
    }
    return sqrt(error / wanted) * (r->largest_error / r->largest_wanted);
}

static void note_mismatch(CompareResult *r, size_t i, double got, double want,
                          bool poisoned)
{
    r->mismatches++;
    r->poisoned += poisoned;
    if (r->shown == COMPARE_SHOWN)
        return;
    r->first[r->shown].index = i;
    r->first[r->shown].got = got;
    r->first[r->shown].want = want;
    r->first[r->shown++].poisoned = poisoned;
}

void compare_buffers(ScalarType got_type, const void *got, ScalarType want_type,
                     const void *want, size_t count, CompareRule rule,
                     CompareResult *out)
{
    Side g = side_of(got_type, got), w = side_of(want_type, want);
    *out = (CompareResult){ .count = count, .rule = rule };
    find_largest(&g, &w, out);
    out->norm_ratio = find_norm_ratio(&g, &w, out);
    double limit = rule.exact ? -1 : rule.element * out->largest_wanted;
    for (size_t i = 0; i < count; i++) {
        double a = value_at(&g, i), b = value_at(&w, i);
        bool poisoned = poison_at(&g, i);
        bool finite = isfinite(a) && isfinite(b);
        bool fits = agree_outright(a, b) || (finite && fabs(a - b) <= limit);
        if (poisoned || !fits)
            note_mismatch(out, i, a, b, poisoned);
    }
    out->ok =
        out->mismatches == 0 && (rule.exact || out->norm_ratio <= rule.norm);
}

/* "[3, 17]" for element `index` of a row-major tensor, "" for a scalar. */
static void add_coordinates(StrBuf *text, size_t index, int rank,
                            const int64_t *shape)
{
    for (int d = 0; d < rank; d++) {
        size_t below = 1;
        for (int e = d + 1; e < rank; e++)
            below *= (size_t)shape[e];
        strbuf_addf(text, "%s%zu", d ? ", " : "[", index / below);
        index %= below;
    }
    strbuf_add(text, rank ? "]" : "");
}

void compare_describe(const CompareResult *r, const char *name, int rank,
                      const int64_t *shape, StrBuf *text)
{
    if (r->ok && r->largest_error == 0) {
        strbuf_addf(text, "%s: %zu elements agree exactly\n", name, r->count);
        return;
    }
    strbuf_addf(text, "%s: %zu of %zu elements %s", name,
                r->ok ? r->count : r->mismatches, r->count,
                r->ok ? "agree" : "disagree");
    if (r->poisoned)
        strbuf_addf(text, ", %zu never written", r->poisoned);
    strbuf_addf(text, "; relative norm of the error %.3g", r->norm_ratio);
    if (!r->rule.exact)
        strbuf_addf(text, " (limit %.3g)", r->rule.norm);
    strbuf_addf(text, ", largest error %.3g at largest value %.3g",
                r->largest_error, r->largest_wanted);
    if (!r->rule.exact)
        strbuf_addf(text, " (limit %.3g)", r->rule.element * r->largest_wanted);
    strbuf_addc(text, '\n');
    for (size_t k = 0; k < r->shown; k++) {
        strbuf_addf(text, "  %s", name);
        add_coordinates(text, r->first[k].index, rank, shape);
        if (r->first[k].poisoned)
            strbuf_addf(text, " was never written, expected %.9g\n",
                        r->first[k].want);
        else
            strbuf_addf(text, " is %.9g, expected %.9g\n", r->first[k].got,
                        r->first[k].want);
    }
    if (r->mismatches > r->shown)
        strbuf_addf(text, "  and %zu more\n", r->mismatches - r->shown);
}
