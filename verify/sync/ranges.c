/* Interval arithmetic over index expressions. */
#include "verify/sync/ranges.h"

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool product_range(const Range *vars, const Atom *a, Range *out)
{
    Range x, y;
    int64_t at[4];
    if (a->opaque != OPAQUE_product || !range_of(vars, a->lhs, &x) ||
        !range_of(vars, a->rhs, &y) ||
        __builtin_mul_overflow(x.lo, y.lo, &at[0]) ||
        __builtin_mul_overflow(x.lo, y.hi, &at[1]) ||
        __builtin_mul_overflow(x.hi, y.lo, &at[2]) ||
        __builtin_mul_overflow(x.hi, y.hi, &at[3]))
        return false;
    *out = (Range){ true, at[0], at[0] };
    for (unsigned i = 1; i < 4; i++) {
        out->lo = at[i] < out->lo ? at[i] : out->lo;
        out->hi = at[i] > out->hi ? at[i] : out->hi;
    }
    return true;
}

static bool atom_range(const Range *vars, const Atom *a, Range *out)
{
    Range x;
    if (a->kind == ATOM_var) {
        *out = vars[a->var];
        return out->known;
    }
    if (a->kind == ATOM_opaque)
        return product_range(vars, a, out);
    if (!range_of(vars, a->arg, &x))
        return false;
    int64_t lo = floor_div(x.lo, a->divisor), hi = floor_div(x.hi, a->divisor);
    if (a->kind == ATOM_floordiv)
        *out = (Range){ true, lo, hi };
    else if (lo == hi)
        *out = (Range){ true, x.lo - lo * a->divisor, x.hi - hi * a->divisor };
    else
        *out = (Range){ true, 0, a->divisor - 1 };
    return true;
}

bool range_of(const Range *vars, const Affine *e, Range *out)
{
    *out = (Range){ true, e->constant, e->constant };
    for (uint32_t i = 0; i < e->n_terms; i++) {
        Range x;
        int64_t c = e->terms[i].coef, a, b;
        if (!atom_range(vars, e->terms[i].atom, &x) ||
            __builtin_mul_overflow(c, c < 0 ? x.hi : x.lo, &a) ||
            __builtin_mul_overflow(c, c < 0 ? x.lo : x.hi, &b) ||
            __builtin_add_overflow(out->lo, a, &out->lo) ||
            __builtin_add_overflow(out->hi, b, &out->hi))
            return false;
    }
    return true;
}

bool range_of_loop(const Range *vars, const Affine *lo, const Affine *hi,
                   Range *out)
{
    Range first = { true, 0, 0 }, end;
    if ((lo && !range_of(vars, lo, &first)) || !range_of(vars, hi, &end))
        return false;
    *out = (Range){ true, first.lo, end.hi > first.lo ? end.hi - 1 : first.lo };
    return true;
}
