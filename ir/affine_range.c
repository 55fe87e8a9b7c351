/* Constant bounds of an expression.
 *
 * Plain interval arithmetic loses what terms have in common, so a bound is
 * refined by a chain of sound steps: the term of the latest variable with a
 * symbolic bound is replaced by that bound on the side that is asked for
 * (i < N makes i - N at most N - 1 - N), then c*d*(e floordiv d) by c*e or
 * c*(e - d + 1). The tightest interval along the chain is the answer.
 * Intervals of variables are kept with them, those of atoms until the bounds
 * of some variable change, so that no expression is looked at twice. */
#include "ir/affine_nodes.h"

enum { REFINE_STEPS = 24 };

static bool range_end(const Range *r, bool upper, int64_t *out)
{
    *out = upper ? r->hi : r->lo;
    return upper ? r->has_hi : r->has_lo;
}

static void range_tighten(Range *r, bool upper, int64_t v)
{
    if (upper && (!r->has_hi || v < r->hi)) {
        r->has_hi = true;
        r->hi = v;
    }
    if (!upper && (!r->has_lo || v > r->lo)) {
        r->has_lo = true;
        r->lo = v;
    }
}

static Range range_floordiv(Range e, int64_t c)
{
    return (Range){ e.has_lo, e.has_hi, e.has_lo ? int_floordiv(e.lo, c) : 0,
                    e.has_hi ? int_floordiv(e.hi, c) : 0 };
}

/* e mod c is e - k*c where e stays within one multiple of c, and otherwise
 * congruent to the constant of e modulo what divides c and all terms. */
static Range range_mod(const Affine *arg, Range e, int64_t c)
{
    if (e.has_lo && e.has_hi && int_floordiv(e.lo, c) == int_floordiv(e.hi, c))
        return (Range){ true, true, int_mod(e.lo, c), int_mod(e.hi, c) };
    int64_t g = c;
    for (uint32_t i = 0; i < arg->n_terms; i++)
        g = int_gcd(g, arg->terms[i].coef);
    int64_t first = int_mod(arg->constant, g);
    return (Range){ true, true, first, c - g + first };
}

static Range range_product(Range a, Range b)
{
    Range out = { 0 };
    int64_t p[4];
    if (a.has_lo && a.has_hi && b.has_lo && b.has_hi &&
        int_mul(a.lo, b.lo, &p[0]) && int_mul(a.lo, b.hi, &p[1]) &&
        int_mul(a.hi, b.lo, &p[2]) && int_mul(a.hi, b.hi, &p[3])) {
        out = (Range){ true, true, p[0], p[0] };
        for (int i = 1; i < 4; i++) {
            out.lo = p[i] < out.lo ? p[i] : out.lo;
            out.hi = p[i] > out.hi ? p[i] : out.hi;
        }
    } else if (a.has_lo && b.has_lo && a.lo >= 0 && b.lo >= 0 &&
               int_mul(a.lo, b.lo, &p[0])) {
        out = (Range){ .has_lo = true, .lo = p[0] };
    }
    return out;
}

static Range atom_range(ExprCtx *x, const Atom *atom)
{
    if (atom->kind == ATOM_var)
        return x->vars.data[atom->var - 1]->range;
    AtomNode *node = (AtomNode *)(uintptr_t)atom;
    if (node->epoch == x->epoch)
        return node->range;
    Range r = { 0 };
    if (atom->kind == ATOM_floordiv) {
        r = range_floordiv(affine_range(x, atom->arg), atom->divisor);
    } else if (atom->kind == ATOM_mod) {
        Range arg = affine_range(x, atom->arg);
        r = range_mod(atom->arg, arg, atom->divisor);
    } else if (atom->opaque == OPAQUE_product) {
        Range lhs = affine_range(x, atom->lhs);
        r = range_product(lhs, affine_range(x, atom->rhs));
    }
    node->epoch = x->epoch;
    node->range = r;
    return r;
}

/* One end of a's interval, from its atoms' alone. */
static bool interval_end(ExprCtx *x, const Affine *a, bool upper, int64_t *out)
{
    int64_t sum = a->constant;
    for (uint32_t i = 0; i < a->n_terms; i++) {
        Range r = atom_range(x, a->terms[i].atom);
        int64_t end;
        if (!range_end(&r, upper == (a->terms[i].coef > 0), &end) ||
            !int_mul(end, a->terms[i].coef, &end) || !int_add(sum, end, &sum))
            return false;
    }
    *out = sum;
    return true;
}

/* A bound of an atom that is not a constant, on the given side, such that
 * scale * atom <= (or >=) *bound * (*factor); NULL where there is none. */
static const Affine *atom_bound(ExprCtx *x, const Atom *atom, int64_t coef,
                                bool upper, int64_t *factor)
{
    const Affine *e = NULL;
    bool top = upper == (coef > 0);
    *factor = coef;
    if (atom->kind == ATOM_var) {
        const Var *v = var_get(x, atom->var);
        e = top ? affine_add_const(x, v->hi, -1) : v->lo;
    } else if (atom->kind == ATOM_floordiv && coef % atom->divisor == 0) {
        *factor = coef / atom->divisor;
        e = top ? atom->arg : affine_add_const(x, atom->arg, 1 - atom->divisor);
    }
    return e && e->n_terms ? e : NULL;
}

/* a with one term replaced by its bound: that of the latest variable, else of
 * the latest floordiv; NULL when no term has one. */
static const Affine *refine_step(ExprCtx *x, const Affine *a, bool upper)
{
    for (int vars = 1; vars >= 0; vars--)
        for (uint32_t i = a->n_terms; i-- > 0;) {
            const Atom *atom = a->terms[i].atom;
            int64_t coef = a->terms[i].coef, factor;
            if ((atom->kind == ATOM_var) != vars)
                continue;
            const Affine *e = atom_bound(x, atom, coef, upper, &factor);
            if (!e)
                continue;
            const Affine *self = ((const AtomNode *)atom)->self;
            const Affine *rest = affine_merge(x, a, self, -coef);
            return affine_merge(x, rest, e, factor);
        }
    return NULL;
}

static void range_refine(ExprCtx *x, const Affine *a, bool upper, Range *r)
{
    int64_t end;
    for (int i = 0; a && i <= REFINE_STEPS; i++) {
        if (interval_end(x, a, upper, &end))
            range_tighten(r, upper, end);
        if (a->n_terms < 2 && i > 0)
            return;
        a = refine_step(x, a, upper);
    }
}

Range affine_range(ExprCtx *x, const Affine *a)
{
    Range r = { 0 };
    range_refine(x, a, false, &r);
    range_refine(x, a, true, &r);
    return r;
}

bool affine_min(ExprCtx *x, const Affine *a, int64_t *lo)
{
    Range r = { 0 };
    range_refine(x, a, false, &r);
    return range_end(&r, false, lo);
}

bool affine_max(ExprCtx *x, const Affine *a, int64_t *hi)
{
    Range r = { 0 };
    range_refine(x, a, true, &r);
    return range_end(&r, true, hi);
}
