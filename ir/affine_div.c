/* floordiv and mod of a sum by a literal.
 *
 * Terms that the divisor divides are taken out first, so that what remains has
 * a constant in [0, c). It is then a constant where its interval lies within
 * one multiple of c; else the largest g that divides c and splits it into
 * g*e + r with 0 <= r < g makes the divisor smaller; else nested atoms are
 * merged; else it is an atom. Each rule answers through the constructors, so
 * that building an atom's argument again gives the same atom. */
#include "ir/affine_nodes.h"

/* Does r's interval lie in [k * c, (k + 1) * c)? */
static bool range_quotient(ExprCtx *x, const Affine *r, int64_t c, int64_t *k)
{
    Range range = affine_range(x, r);
    if (!range.has_lo || !range.has_hi)
        return false;
    *k = int_floordiv(range.lo, c);
    return int_floordiv(range.hi, c) == *k;
}

/* r as g * e + rest with 0 <= rest < g. */
typedef struct Split {
    int64_t g; /* 0: there is none */
    const Affine *e, *rest;
} Split;

/* The split by the largest g > 1 that is the common divisor of c and some
 * coefficient of r. */
static Split split_by_divisor(ExprCtx *x, const Affine *r, int64_t c)
{
    for (int64_t limit = c;;) {
        int64_t g = 1, k, shift;
        for (uint32_t i = 0; i < r->n_terms; i++) {
            int64_t common = int_gcd(r->terms[i].coef, c);
            if (common > g && common < limit)
                g = common;
        }
        if (g == 1)
            return (Split){ 0 };
        const Affine *rest = affine_rest(x, r, g);
        if (rest && range_quotient(x, rest, g, &k) && int_mul(k, -g, &shift))
            return (Split){ g,
                            affine_add_const(x, affine_multiples(x, r, g), k),
                            affine_add_const(x, rest, shift) };
        limit = g;
    }
}

static const Affine *division_atom(ExprCtx *x, AtomKind kind, const Affine *r,
                                   int64_t c)
{
    Atom key = { .kind = kind, .arg = r, .divisor = c };
    return affine_atom(x, &key);
}

/* (e floordiv a + k) floordiv c is (e + a * k) floordiv (a * c). */
static const Affine *nested_floordiv(ExprCtx *x, const Affine *r, int64_t c)
{
    int64_t shift, divisor;
    if (r->n_terms != 1 || r->terms[0].coef != 1)
        return NULL;
    const Atom *inner = r->terms[0].atom;
    if (inner->kind != ATOM_floordiv || !int_mul(inner->divisor, c, &divisor) ||
        !int_mul(inner->divisor, r->constant, &shift))
        return NULL;
    const Affine *e = affine_add_const(x, inner->arg, shift);
    return affine_floordiv(x, e, divisor);
}

const Affine *affine_floordiv(ExprCtx *x, const Affine *a, int64_t c)
{
    int64_t k;
    if (c <= 0)
        panic("affine_floordiv: divisor %lld", (long long)c);
    if (!a || c == 1)
        return a;
    const Affine *q = affine_multiples(x, a, c);
    const Affine *r = affine_rest(x, a, c);
    if (!q || !r)
        return NULL;
    if (range_quotient(x, r, c, &k))
        return affine_add_const(x, q, k);
    Split split = split_by_divisor(x, r, c);
    if (split.g)
        return affine_add(x, q, affine_floordiv(x, split.e, c / split.g));
    const Affine *nested = nested_floordiv(x, r, c);
    if (nested)
        return affine_add(x, q, nested);
    return affine_add(x, q, division_atom(x, ATOM_floordiv, r, c));
}

/* t * (e mod a) may be replaced by t * e under mod c where c divides t * a. */
static const Affine *nested_mod(ExprCtx *x, const Affine *r, int64_t c)
{
    for (uint32_t i = 0; i < r->n_terms; i++) {
        const Atom *inner = r->terms[i].atom;
        int64_t t = r->terms[i].coef, period;
        if (inner->kind != ATOM_mod || !int_mul(t, inner->divisor, &period) ||
            period % c != 0)
            continue;
        const Affine *self = ((const AtomNode *)inner)->self;
        const Affine *e = affine_merge(x, r, self, -t);
        e = affine_add(x, e, affine_scale(x, inner->arg, t));
        return e ? affine_mod(x, e, c) : NULL;
    }
    return NULL;
}

const Affine *affine_mod(ExprCtx *x, const Affine *a, int64_t c)
{
    int64_t k;
    if (c <= 0)
        panic("affine_mod: divisor %lld", (long long)c);
    if (!a)
        return NULL;
    const Affine *r = affine_rest(x, a, c);
    if (!r)
        return NULL;
    if (range_quotient(x, r, c, &k)) {
        int64_t shift;
        return int_mul(k, -c, &shift) ? affine_add_const(x, r, shift) : NULL;
    }
    Split split = split_by_divisor(x, r, c);
    if (split.g) {
        const Affine *e = affine_mod(x, split.e, c / split.g);
        return affine_add(x, affine_scale(x, e, split.g), split.rest);
    }
    const Affine *nested = nested_mod(x, r, c);
    return nested ? nested : division_atom(x, ATOM_mod, r, c);
}
