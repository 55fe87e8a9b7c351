/* Integer constraints by elimination, in the manner of the Omega test (Pugh,
 * "The Omega test: a fast and practical integer programming algorithm for
 * dependence analysis", 1991), without its dark shadow.
 *
 * Every row is divided by the common divisor of its coefficients and the
 * constant rounded down, which makes it tighter over the integers. Equalities
 * are solved for an unknown with coefficient 1 (after adding unknowns until
 * there is one) and substituted. Then unknowns are eliminated one by one by
 * combining each lower with each upper bound. What contradicts itself then has
 * no solution. Otherwise values are put in backwards, within the bounds that
 * the rows of each unknown leave, with a little backtracking: elimination is
 * exact over the rationals only, so this may fail. */
#include "passes/prove_linear.h"

#include "ir/affine.h"

#include <string.h>

enum {
    CONST = LINEAR_COLS,
    MAX_BOUNDS = 100, /* of one unknown: at most 2500 combinations */
    INEXACT_COST = 20
};

/* How an unknown went: by equality, or by bounds. */
typedef struct Elimination {
    unsigned col;
    unsigned n_rows;
    LinearRow *rows;
} Elimination;

typedef struct Solver {
    Arena *arena;
    unsigned n_cols;
    LinearRow *rows;
    unsigned n_rows;
    bool contradiction, large;
    Elimination done[LINEAR_COLS];
    unsigned n_done;
    int64_t value[LINEAR_COLS];
    unsigned tries;
    bool (*accept)(const int64_t *values, void *user);
    void *user;
} Solver;

static bool checked_madd(int64_t *sum, int64_t a, int64_t b)
{
    int64_t p;
    return !__builtin_mul_overflow(a, b, &p) &&
           !__builtin_add_overflow(*sum, p, sum) && *sum != INT64_MIN;
}

/* ---- rows ---------------------------------------------------------------- */

/* Divides by the common divisor. False for a row that says nothing; a row
 * that cannot hold sets the contradiction. */
static bool row_normalise(Solver *s, LinearRow *r)
{
    int64_t g = 0;
    for (unsigned i = 0; i < s->n_cols && g != 1; i++)
        g = int_gcd(g, r->k[i]);
    if (g == 0) {
        bool holds = r->equal ? r->k[CONST] == 0 : r->k[CONST] >= 0;
        s->contradiction |= !holds;
        return false;
    }
    if (g == 1)
        return true;
    if (r->equal && r->k[CONST] % g != 0) {
        s->contradiction = true;
        return false;
    }
    for (unsigned i = 0; i < s->n_cols; i++)
        r->k[i] /= g;
    r->k[CONST] = int_floordiv(r->k[CONST], g);
    return true;
}

/* Keeps a row, unless one with its coefficients is at least as tight. */
static void row_add(Solver *s, LinearRow *r)
{
    if (!row_normalise(s, r))
        return;
    for (unsigned i = 0; i < s->n_rows && !r->equal; i++) {
        LinearRow *old = &s->rows[i];
        if (old->equal || memcmp(old->k, r->k, CONST * sizeof *r->k) != 0)
            continue;
        if (r->k[CONST] < old->k[CONST])
            old->k[CONST] = r->k[CONST];
        return;
    }
    if (s->n_rows == LINEAR_ROWS)
        s->large = true;
    else
        s->rows[s->n_rows++] = *r;
}

/* out = a * x + b * y; false on an overflow. */
static bool row_combine(LinearRow *out, int64_t a, const LinearRow *x,
                        int64_t b, const LinearRow *y)
{
    for (unsigned i = 0; i <= CONST; i++) {
        out->k[i] = 0;
        if (!checked_madd(&out->k[i], a, x->k[i]) ||
            !checked_madd(&out->k[i], b, y->k[i]))
            return false;
    }
    return true;
}

/* Two inequalities that leave no room between them are an equality. */
static void find_equalities(Solver *s)
{
    for (unsigned i = 0; i < s->n_rows; i++)
        for (unsigned j = i + 1; j < s->n_rows && !s->rows[i].equal; j++) {
            LinearRow *a = &s->rows[i], *b = &s->rows[j];
            bool opposite = !b->equal;
            for (unsigned k = 0; k <= CONST && opposite; k++)
                opposite = a->k[k] == -b->k[k];
            if (opposite)
                a->equal = true;
        }
}

/* ---- equalities ---------------------------------------------------------- */

static void record(Solver *s, unsigned col, const LinearRow *rows, unsigned n)
{
    s->done[s->n_done].col = col;
    s->done[s->n_done].n_rows = n;
    s->done[s->n_done++].rows = arena_memdup(s->arena, rows, n * sizeof *rows);
}

/* Takes unknown col, whose coefficient in eq is 1 or -1, out of all rows. */
static void substitute(Solver *s, LinearRow eq, unsigned col)
{
    unsigned n = s->n_rows;
    record(s, col, &eq, 1);
    s->n_rows = 0;
    for (unsigned i = 0; i < n; i++) {
        LinearRow r = s->rows[i], sum = { .equal = r.equal };
        if (r.k[col] == 0)
            sum = r;
        else if (!row_combine(&sum, 1, &r, -r.k[col] * eq.k[col], &eq))
            continue;
        row_add(s, &sum);
    }
}

/* a reduced into [-m/2, m/2). */
static int64_t mod_hat(int64_t a, int64_t m)
{
    int64_t r = a - m * int_floordiv(a, m);
    return 2 * r >= m ? r - m : r;
}

/* Adds an unknown that makes a smaller equality with a coefficient of -1 at
 * col: with m = |a_col| + 1 all coefficients taken mod_hat m sum to m times an
 * integer. False where there is no room. */
static bool add_unknown(Solver *s, const LinearRow *eq, unsigned col)
{
    int64_t a = eq->k[col], m = (a < 0 ? -a : a) + 1;
    LinearRow r = { .equal = true };
    if (s->n_cols == LINEAR_COLS || m > INT32_MAX)
        return false;
    for (unsigned i = 0; i <= CONST; i++)
        r.k[i] = mod_hat(eq->k[i], m);
    r.k[s->n_cols++] = m;
    substitute(s, r, col);
    return true;
}

/* The coefficient nearest to 0 of row r, or n_cols. */
static unsigned smallest_coef(const Solver *s, const LinearRow *r)
{
    unsigned best = s->n_cols;
    int64_t least = INT64_MAX;
    for (unsigned i = 0; i < s->n_cols; i++) {
        int64_t size = r->k[i] < 0 ? -r->k[i] : r->k[i];
        if (size && size < least) {
            least = size;
            best = i;
        }
    }
    return best;
}

static void split_equality(Solver *s, unsigned i)
{
    LinearRow down = { .equal = false };
    s->rows[i].equal = false;
    for (unsigned k = 0; k <= CONST; k++)
        down.k[k] = -s->rows[i].k[k];
    row_add(s, &down);
}

/* Solves for one unknown; false when no equality is left. */
static bool solve_equality(Solver *s)
{
    unsigned row = s->n_rows, col = 0;
    int64_t least = INT64_MAX;
    for (unsigned i = 0; i < s->n_rows && least > 1; i++) {
        unsigned c =
            s->rows[i].equal ? smallest_coef(s, &s->rows[i]) : s->n_cols;
        if (c == s->n_cols)
            continue;
        int64_t size = s->rows[i].k[c] < 0 ? -s->rows[i].k[c] : s->rows[i].k[c];
        if (size < least) {
            least = size;
            row = i;
            col = c;
        }
    }
    if (row == s->n_rows)
        return false;
    LinearRow eq = s->rows[row];
    if (least == 1) {
        s->rows[row] = s->rows[--s->n_rows];
        substitute(s, eq, col);
    } else if (!add_unknown(s, &eq, col)) {
        split_equality(s, row);
    }
    return true;
}

/* ---- inequalities -------------------------------------------------------- */

/* The unknown whose elimination makes the fewest rows, or n_cols. One with a
 * coefficient of 1 in all its lower or all its upper bounds comes first: that
 * elimination is exact over the integers too. */
static unsigned cheapest_unknown(const Solver *s)
{
    unsigned best = s->n_cols;
    long least = 0;
    for (unsigned c = 0; c < s->n_cols; c++) {
        long lower = 0, upper = 0;
        bool lower_exact = true, upper_exact = true;
        for (unsigned i = 0; i < s->n_rows; i++) {
            int64_t k = s->rows[i].k[c];
            lower += k > 0;
            upper += k < 0;
            lower_exact &= k <= 1;
            upper_exact &= k >= -1;
        }
        long cost = lower * upper - lower - upper;
        cost += lower_exact || upper_exact ? 0 : INEXACT_COST;
        if (lower + upper && (best == s->n_cols || cost < least)) {
            best = c;
            least = cost;
        }
    }
    return best;
}

static void combine_bounds(Solver *s, unsigned col, const LinearRow *bounds,
                           unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < n && !s->large; j++) {
            int64_t lower = bounds[i].k[col], upper = -bounds[j].k[col];
            if (lower <= 0 || upper <= 0)
                continue;
            int64_t g = int_gcd(lower, upper);
            LinearRow r = { .equal = false };
            if (row_combine(&r, upper / g, &bounds[i], lower / g, &bounds[j]))
                row_add(s, &r);
        }
}

static void eliminate(Solver *s, unsigned col)
{
    unsigned kept = 0, n = 0;
    LinearRow *bounds = ARENA_ARRAY(s->arena, LinearRow, s->n_rows);
    for (unsigned i = 0; i < s->n_rows; i++) {
        if (s->rows[i].k[col])
            bounds[n++] = s->rows[i];
        else
            s->rows[kept++] = s->rows[i];
    }
    s->n_rows = kept;
    record(s, col, bounds, n);
    if (n > MAX_BOUNDS)
        s->large = true;
    combine_bounds(s, col, bounds, n);
}

/* ---- solutions ----------------------------------------------------------- */

typedef struct Interval {
    bool has_lo, has_hi;
    int64_t lo, hi;
} Interval;

/* What row r says of unknown col, given the values of the others. */
static bool bound_of(const Solver *s, const LinearRow *r, unsigned col,
                     Interval *in)
{
    int64_t rest = r->k[CONST], a = r->k[col];
    for (unsigned i = 0; i < s->n_cols; i++)
        if (i != col && !checked_madd(&rest, r->k[i], s->value[i]))
            return false;
    if (a > 0 || r->equal) { /* a is 1 or -1 in an equality */
        int64_t lo = r->equal ? -rest * a : -int_floordiv(rest, a);
        if (!in->has_lo || lo > in->lo)
            in->lo = lo;
        in->has_lo = true;
    }
    if (a < 0 || r->equal) {
        int64_t hi = r->equal ? -rest * a : int_floordiv(rest, -a);
        if (!in->has_hi || hi < in->hi)
            in->hi = hi;
        in->has_hi = true;
    }
    return true;
}

/* The n-th value worth trying in an interval: from its ends inwards. */
static bool candidate(const Interval *in, unsigned n, int64_t *out)
{
    bool fixed = in->has_lo && in->has_hi && in->lo == in->hi;
    if (n >= (fixed ? 1 : 6))
        return false;
    if (!in->has_lo && !in->has_hi) {
        *out = n % 2 ? (n + 1) / 2 : -(int64_t)(n / 2);
        return true;
    }
    bool from_lo = in->has_lo && (!in->has_hi || n % 2 == 0);
    int64_t step = in->has_lo && in->has_hi ? n / 2 : n;
    if (__builtin_add_overflow(from_lo ? in->lo : in->hi,
                               from_lo ? step : -step, out))
        return false;
    return (!in->has_lo || *out >= in->lo) && (!in->has_hi || *out <= in->hi);
}

/* Gives values to the unknowns done[0 .. n) that meet their rows. Recursion
 * is bounded by the number of unknowns. */
static bool assign(Solver *s, unsigned n)
{
    if (n == 0)
        return s->accept(s->value, s->user);
    const Elimination *e = &s->done[n - 1];
    Interval in = { 0 };
    s->value[e->col] = 0;
    for (unsigned i = 0; i < e->n_rows; i++)
        if (!bound_of(s, &e->rows[i], e->col, &in))
            return false;
    int64_t v;
    for (unsigned i = 0; candidate(&in, i, &v); i++) {
        if (s->tries == LINEAR_TRIES)
            return false;
        s->tries++;
        s->value[e->col] = v;
        if (assign(s, n - 1))
            return true;
    }
    return false;
}

/* Unknowns that no row was left to bound are free. */
static void record_free(Solver *s)
{
    bool gone[LINEAR_COLS] = { 0 };
    for (unsigned i = 0; i < s->n_done; i++)
        gone[s->done[i].col] = true;
    for (unsigned c = 0; c < s->n_cols; c++)
        if (!gone[c])
            record(s, c, NULL, 0);
}

static LinearAnswer solve(Solver *s)
{
    bool more = true;
    find_equalities(s);
    while (more && !s->contradiction && !s->large)
        more = solve_equality(s);
    for (;;) {
        if (s->contradiction)
            return LINEAR_none;
        if (s->large)
            return LINEAR_large;
        unsigned col = cheapest_unknown(s);
        if (col == s->n_cols)
            break;
        eliminate(s, col);
    }
    record_free(s);
    return s->accept && assign(s, s->n_done) ? LINEAR_found : LINEAR_open;
}

LinearAnswer linear_solve(const LinearSystem *system,
                          bool (*accept)(const int64_t *values, void *user),
                          void *user)
{
    if (system->rows.len > 2 * LINEAR_ROWS)
        return LINEAR_large;
    Arena *arena = arena_new();
    Solver *s = ARENA_NEW(arena, Solver);
    s->arena = arena;
    s->n_cols = system->n_cols;
    s->accept = accept;
    s->user = user;
    s->rows = ARENA_ARRAY(arena, LinearRow, LINEAR_ROWS);
    for (size_t i = 0; i < system->rows.len; i++) {
        LinearRow r = system->rows.data[i];
        row_add(s, &r);
    }
    LinearAnswer answer = solve(s);
    arena_free(arena);
    return answer;
}
