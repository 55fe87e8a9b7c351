/* Index expressions and conditions: rows of literal expectations, then random
 * trees. A tree is evaluated node by node here and through the normal form
 * there, for every value of its variables within their bounds; its bounds,
 * substitutions, imports and printed text (read by expr_reader.h) are
 * held against that. EXO_LONG in the environment makes the counts larger. */
#include "ir/affine.h"
#include "test/unit/expr_reader.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *text_of(const ExprCtx *x, const Affine *e, bool exo)
{
    ExprNames names = { .exo = exo };
    StrBuf b = { 0 };
    affine_print(&b, x, e, &names, 0);
    return b.data;
}

static char *cond_text(const ExprCtx *x, const Cond *c, bool exo)
{
    ExprNames names = { .exo = exo };
    StrBuf b = { 0 };
    cond_print(&b, x, c, &names, 0);
    return b.data;
}

/* The variables of the rows: N, M sizes; b < (N + 127) / 128; t < 128; i < N;
 * w < 4; k any; p a boolean; i <= j < i + 8; N - 3 <= s < N + M;
 * 1 <= u < 8. */
static ExprCtx *row_context(void)
{
    static const struct {
        const char *name;
        VarKind kind;
        const char *lo, *hi;
    } vars[] = {
        { "N", VAR_size, NULL, NULL },
        { "M", VAR_size, NULL, NULL },
        { "b", VAR_iter, "0", "(N + 127) / 128" },
        { "t", VAR_iter, "0", "128" },
        { "i", VAR_iter, "0", "N" },
        { "w", VAR_coord, "0", "4" },
        { "k", VAR_int, NULL, NULL },
        { "p", VAR_bool, NULL, NULL },
        { "j", VAR_iter, "i", "i + 8" },
        { "s", VAR_iter, "N - 3", "N + M" },
        { "u", VAR_iter, "1", "8" },
    };
    ExprCtx *x = expr_ctx_new();
    for (size_t i = 0; i < sizeof vars / sizeof *vars; i++) {
        VarId v = var_new(x, vars[i].name, vars[i].kind);
        if (vars[i].lo)
            var_set_bounds(x, v, E(x, vars[i].lo), E(x, vars[i].hi));
    }
    return x;
}

/* ---- rows ---------------------------------------------------------------- */

Test(affine, prints_in_normal_form)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "0", "0" },
        { "3 - 5", "-2" },
        { "t + 128 * b", "128 * b + t" },
        { "N - i - 1", "N - i - 1" },
        { "i - N", "i - N" },
        { "i + i - 2 * i", "0" },
        { "-i", "-i" },
        { "-2 * i + 5", "-2 * i + 5" },
        { "(127 + N) / 128", "(N + 127) / 128" },
        { "(N - 1) / 128", "(N + 127) / 128 - 1" },
        { "(4 * k) / 4", "k" },
        { "(4 * k + 3) / 4", "k" },
        { "(4 * k + 5) / 4", "k + 1" },
        { "(4 * k - 1) / 4", "k - 1" },
        { "(4 * k + 7) % 4", "3" },
        { "(8 * k + 4) / 16", "k / 2" },
        { "(8 * k + 4) % 16", "8 * (k % 2) + 4" },
        { "(128 * b + t) / 128", "b" },
        { "(128 * b + t) % 128", "t" },
        { "(128 * b + t) / 64", "2 * b + t / 64" },
        { "(128 * b + t) % 64", "t % 64" },
        { "(128 * b + t) / 256", "b / 2" },
        { "(128 * b + t) % 256", "t + 128 * (b % 2)" },
        { "t / 128", "0" },
        { "t % 128", "t" },
        { "(t - 128) / 128", "-1" },
        { "(t + 256) % 128", "t" },
        { "(-t - 1) / 128", "-1" },
        { "(-t - 1) % 128", "-t + 127" },
        { "(8 * k - u) / 16", "(k + 1) / 2 - 1" },
        { "(8 * k - u) % 16", "8 * ((k + 1) % 2) - u + 8" },
        { "(8 * k + u) / 16", "k / 2" },
        { "(8 * k + u + 4) / 16", "(8 * k + u + 4) / 16" },
        { "k / 4 / 8", "k / 32" },
        { "(k / 4 + 3) / 8", "(k + 12) / 32" },
        { "k % 12 % 4", "k % 4" },
        { "k % 4 % 12", "k % 4" },
        { "(3 * (k % 8) + 1) % 4", "(3 * k + 1) % 4" },
        { "4 * (k / 4) + k % 4", "k" },
        { "12 * (k / 4) + 3 * (k % 4)", "3 * k" },
        { "4 * (k / 4) - k % 4", "4 * (k / 4) - (k % 4)" },
        { "4 * (k / 8) + k / 2 % 4", "k / 2" },
        { "k / 1", "k" },
        { "k % 1", "0" },
        { "(N - i) * 2 - N", "N - 2 * i" },
        { "N * M", "N * M" },
        { "M * N - N * M", "0" },
        { "(N + 1) * (M - 2)", "M + N * M - 2 * N - 2" },
        { "3 * N * M * N", "3 * N * N * M" },
        { "-(N * M)", "-N * M" },
        { "(k / 2) * N", "N * (k / 2)" },
        { "(N * M + 7) / 8", "(N * M + 7) / 8" },
        { "8 * N * M / 8", "N * M" },
        { "stride(?, 1) * 2 + k", "k + 2 * stride(?, 1)" },
        { "Cfg.src + 1", "Cfg.src + 1" },
        { "p / 2", "0" },
    };
    ExprCtx *x = row_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Affine *e = E(x, rows[i].in);
        char *text = text_of(x, e, true);
        cr_expect_str_eq(text, rows[i].out, "%s: expected %s, got %s",
                         rows[i].in, rows[i].out, text);
        cr_expect(E(x, rows[i].out) == e, "%s", rows[i].in);
        free(text);
    }
    expr_ctx_free(x);
}

Test(affine, prints_fixed_layouts)
{
    static const struct {
        const char *in, *eir, *exo;
    } rows[] = {
        { "t + 128 * b", "128 * %b + %t", "128 * b + t" },
        { "(127 + N) / 128", "(%N + 127) floordiv 128", "(N + 127) / 128" },
        { "k % 4 * 8 - 3", "8 * (%k mod 4) - 3", "8 * (k % 4) - 3" },
        { "-(k % 4)", "-(%k mod 4)", "-(k % 4)" },
        { "M * (k / 2)", "%M * (%k floordiv 2)", "M * (k / 2)" },
        { "(3 * M * N + 1) / 4", "(3 * %N * %M + 1) floordiv 4",
          "(3 * N * M + 1) / 4" },
        { "N * M % 4", "(%N * %M) mod 4", "(N * M) % 4" },
        { "1 - k", "-%k + 1", "-k + 1" },
    };
    ExprCtx *x = row_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Affine *e = E(x, rows[i].in);
        char *eir = text_of(x, e, false), *exo = text_of(x, e, true);
        cr_expect_str_eq(eir, rows[i].eir);
        cr_expect_str_eq(exo, rows[i].exo);
        free(eir);
        free(exo);
    }
    expr_ctx_free(x);
}

Test(affine, prints_conditions)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "128 * b + t < N", "128 * b + t < N" },
        { "N > 128 * b + t", "128 * b + t < N" },
        { "N - 1 >= i", "i < N" },
        { "i + 3 < N", "i + 3 < N" },
        { "i <= N + 2", "i <= N + 2" },
        { "i - 2 <= N", "i <= N + 2" },
        { "N >= 4", "N >= 4" },
        { "N > 3", "N >= 4" },
        { "k < -3", "k < -3" },
        { "t < 128", "t < 128" },
        { "2 * t < 127", "t < 64" },
        { "0 < 1", "True" },
        { "2 * k == 7", "False" },
        { "2 * k != 7", "True" },
        { "4 * k == 4 * i + 8", "i + 2 == k" },
        { "N % 8 == 0", "N % 8 == 0" },
        { "64 == M", "M == 64" },
        { "k + 5 != N", "N != k + 5" },
        { "not (i < N)", "N <= i" },
        { "not (i == N)", "N != i" },
        { "not (not (i == N))", "N == i" },
        { "i < N and k < N or k == 3", "i < N and k < N or k == 3" },
        { "i < N and (k < N or k == 3)", "i < N and (k < N or k == 3)" },
        { "not (i < N and k < N)", "not (i < N and k < N)" },
        { "i < N and i < N", "i < N" },
        { "i < N and 1 < 0", "False" },
        { "i < N or 1 < 0", "i < N" },
        { "i < N and (k < N and k < M)", "i < N and (k < N and k < M)" },
    };
    ExprCtx *x = row_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = cond_text(x, C(x, rows[i].in), true);
        cr_expect_str_eq(text, rows[i].out, "%s: %s", rows[i].in, text);
        free(text);
    }
    expr_ctx_free(x);
}

#define NO INT64_MIN

Test(affine, bounds)
{
    static const struct {
        const char *in;
        int64_t lo, hi; /* NO: not known */
    } rows[] = {
        { "7", 7, 7 },
        { "N", 1, NO },
        { "k", NO, NO },
        { "t", 0, 127 },
        { "p", 0, 1 },
        { "3 - 2 * t", -251, 3 },
        { "i - N", NO, -1 },
        { "N - i", 1, NO },
        { "j - i", 0, 7 },
        { "j - N", NO, 6 },
        { "128 * b + t - N", NO, 126 },
        { "s - N", -3, NO },
        { "k % 8", 0, 7 },
        { "(2 * k) % 8", 0, 6 },
        { "(4 * k + 1) % 6", 1, 5 },
        { "k % 8 - t", -127, 7 },
        { "(t + 3) / 4", 0, 32 },
        { "128 * ((N + 127) / 128) - N", 0, 127 },
        { "N - 128 * (N / 128)", 0, 127 },
        { "t * w", 0, 381 },
        { "N * M", 1, NO },
    };
    ExprCtx *x = row_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t lo = 0, hi = 0;
        const Affine *e = E(x, rows[i].in);
        bool has_lo = affine_min(x, e, &lo), has_hi = affine_max(x, e, &hi);
        cr_expect(has_lo == (rows[i].lo != NO) && (!has_lo || lo == rows[i].lo),
                  "%s: lower bound %lld", rows[i].in, (long long)lo);
        cr_expect(has_hi == (rows[i].hi != NO) && (!has_hi || hi == rows[i].hi),
                  "%s: upper bound %lld", rows[i].in, (long long)hi);
    }
    expr_ctx_free(x);
}

Test(affine, questions)
{
    ExprCtx *x = row_context();
    VarId n = 1, t = 4, k = 7, v = 0;
    int64_t c = 0;
    cr_expect(affine_is_const(E(x, "3 + 4"), &c) && c == 7);
    cr_expect(!affine_is_const(E(x, "k"), &c));
    cr_expect(affine_is_var(E(x, "t"), &v) && v == t);
    cr_expect(!affine_is_var(E(x, "2 * t"), &v));
    cr_expect(!affine_is_var(E(x, "t + 1"), &v));
    cr_expect(affine_coef(E(x, "3 * k - t"), k) == 3);
    cr_expect(affine_coef(E(x, "k % 4"), k) == 0);
    cr_expect(affine_uses(E(x, "1 + k % 4 * N"), k));
    cr_expect(!affine_uses(E(x, "1 + k % 4 * N"), t));
    cr_expect(cond_uses(C(x, "not (k < 2 and t == N)"), n));
    cr_expect(!cond_uses(C(x, "k < 2 and t == N"), 2));
    expr_ctx_free(x);
}

static bool row_value(const Env *env, const Atom *atom, int64_t *out)
{
    if (atom->kind == ATOM_opaque)
        return false;
    *out = ((const int64_t *)env->user)[atom->var];
    return true;
}

Test(affine, evaluates_with_floor_and_overflow)
{
    ExprCtx *x = row_context();
    int64_t value[16] = { 0 }, out = 0;
    Env env = { row_value, value };
    value[7] = -1;
    cr_expect(affine_eval(E(x, "k / 4"), &env, &out) && out == -1);
    cr_expect(affine_eval(E(x, "k % 4"), &env, &out) && out == 3);
    value[7] = INT64_MAX;
    cr_expect(!affine_eval(E(x, "2 * k"), &env, &out));
    cr_expect(!affine_eval(E(x, "k + 1"), &env, &out));
    cr_expect(!affine_eval(E(x, "Cfg.a"), &env, &out));
    expr_ctx_free(x);
}

Test(affine, overflow_and_null_give_null)
{
    ExprCtx *x = row_context();
    const Affine *big = affine_const(x, INT64_MAX), *k = E(x, "k");
    const Affine *most = affine_scale(x, k, INT64_MAX);
    cr_expect(affine_const(x, INT64_MIN) == NULL);
    cr_expect(affine_add_const(x, big, 1) == NULL);
    cr_expect(affine_add(x, big, big) == NULL);
    cr_expect(affine_sub(x, affine_neg(x, big), affine_const(x, 1)) == NULL);
    cr_expect(affine_add(x, most, k) == NULL);
    cr_expect(affine_sub(x, most, k) != NULL);
    cr_expect(affine_scale(x, most, 2) == NULL);
    cr_expect(affine_mul(x, most, E(x, "2 * N")) == NULL);
    cr_expect(affine_add(x, NULL, k) == NULL);
    cr_expect(affine_floordiv(x, NULL, 3) == NULL);
    cr_expect(affine_mod(x, NULL, 3) == NULL);
    cr_expect(affine_mul(x, k, NULL) == NULL);
    cr_expect(cond_cmp(x, CMP_lt, NULL, k) == NULL);
    cr_expect(cond_and(x, C(x, "k < 3"), NULL) == NULL);
    cr_expect(cond_not(x, NULL) == NULL);
    /* divisors whose product overflows stay nested */
    const Affine *e = affine_floordiv(x, k, INT64_MAX);
    cr_expect(affine_floordiv(x, e, INT64_MAX) != NULL);
    expr_ctx_free(x);
}

Test(affine, size_limits_give_null_not_a_crash)
{
    ExprCtx *x = expr_ctx_new();
    VarId k = var_new(x, "k", VAR_int);
    const Affine *e = affine_var(x, k);
    const Cond *c = cond_cmp(x, CMP_eq, e, affine_const(x, 0));
    const Cond *all = c;
    for (int i = 0; e && i < 1000000; i++) {
        e = affine_add(x, affine_mod(x, e, 1000 + i % 7), affine_var(x, k));
        e = affine_floordiv(x, affine_scale(x, e, 3), 1009);
    }
    cr_expect(e == NULL);
    for (int i = 0; all && i < 1000000; i++) {
        const Affine *bound = affine_const(x, i);
        c = cond_cmp(x, CMP_lt, affine_var(x, k), bound);
        all = i % 2 ? cond_and(x, all, c) : cond_or(x, all, c);
    }
    cr_expect(all == NULL);
    e = affine_const(x, 0);
    for (int i = 0; e && i < 100000; i++)
        e = affine_add(x, e, affine_var(x, var_new(x, "v", VAR_int)));
    cr_expect(e == NULL);
    e = affine_var(x, k);
    for (int i = 0; e && i < 1000; i++)
        e = affine_mul(x, e, affine_var(x, k));
    cr_expect(e == NULL);
    expr_ctx_free(x);
}

Test(affine, bounds_that_name_themselves_end)
{
    ExprCtx *x = expr_ctx_new();
    VarId a = var_new(x, "a", VAR_iter), b = var_new(x, "b", VAR_iter);
    const Affine *va = affine_var(x, a), *vb = affine_var(x, b);
    int64_t n;
    var_set_bounds(x, a, affine_add_const(x, vb, -1), affine_add(x, vb, vb));
    var_set_bounds(x, b, va, affine_add_const(x, va, 1));
    cr_expect(!affine_max(x, affine_sub(x, va, affine_const(x, 3)), &n));
    expr_ctx_free(x);
}

/* ---- random trees -------------------------------------------------------- */

typedef struct Rng {
    uint64_t state;
} Rng;

static uint32_t rng_next(Rng *r)
{
    r->state = r->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(r->state >> 33);
}

static int64_t rng_in(Rng *r, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(rng_next(r) % (uint64_t)(hi - lo + 1));
}

static unsigned rounds(unsigned n)
{
    return getenv("EXO_LONG") ? 20 * n : n;
}

typedef enum TreeOp {
    TREE_const,
    TREE_var,
    TREE_add,
    TREE_sub,
    TREE_scale,
    TREE_div,
    TREE_mod,
    TREE_mul
} TreeOp;

enum { TREE_NODES = 64, TREE_VARS = 4 };

/* Nodes refer to earlier ones; the last is the root. */
typedef struct Tree {
    struct {
        TreeOp op;
        int64_t c;
        int l, r;
    } node[TREE_NODES];
    int n;
} Tree;

static int tree_grow(Tree *t, Rng *r, int depth)
{
    TreeOp op = depth <= 0 ? (TreeOp)rng_in(r, TREE_const, TREE_var)
                           : (TreeOp)rng_in(r, TREE_const, TREE_mul);
    if (op == TREE_mul && rng_in(r, 0, 3))
        op = TREE_add;
    if (t->n > TREE_NODES - 16)
        op = TREE_var;
    int64_t c = op == TREE_var     ? rng_in(r, 1, TREE_VARS)
                : op == TREE_scale ? rng_in(r, -8, 8)
                : op == TREE_const ? rng_in(r, -20, 20)
                                   : rng_in(r, 1, 16);
    if (op == TREE_scale && rng_in(r, 0, 1))
        c = (int64_t)1 << rng_in(r, 0, 4);
    if ((op == TREE_div || op == TREE_mod) && rng_in(r, 0, 1))
        c = (int64_t)1 << rng_in(r, 1, 5);
    int lhs = op >= TREE_add ? tree_grow(t, r, depth - 1) : 0;
    bool two = op == TREE_add || op == TREE_sub || op == TREE_mul;
    int rhs = two ? tree_grow(t, r, depth - 1) : 0;
    t->node[t->n].op = op;
    t->node[t->n].c = c;
    t->node[t->n].l = lhs;
    t->node[t->n].r = rhs;
    return t->n++;
}

static int64_t floor_div(int64_t a, int64_t c)
{
    int64_t q = 0;
    while (q * c > a)
        q -= (q * c - a + c - 1) / c;
    return q + (a - q * c) / c;
}

static int64_t tree_eval(const Tree *t, const int64_t *value)
{
    int64_t v[TREE_NODES] = { 0 };
    for (int i = 0; i < t->n; i++) {
        int64_t l = v[t->node[i].l], r = v[t->node[i].r], c = t->node[i].c;
        switch (t->node[i].op) {
        case TREE_const:
            v[i] = c;
            break;
        case TREE_var:
            v[i] = value[c];
            break;
        case TREE_add:
            v[i] = l + r;
            break;
        case TREE_sub:
            v[i] = l - r;
            break;
        case TREE_scale:
            v[i] = l * c;
            break;
        case TREE_div:
            v[i] = floor_div(l, c);
            break;
        case TREE_mod:
            v[i] = l - c * floor_div(l, c);
            break;
        case TREE_mul:
            v[i] = l * r;
            break;
        }
    }
    return v[t->n - 1];
}

static const Affine *tree_build(ExprCtx *x, const Tree *t)
{
    const Affine *v[TREE_NODES] = { 0 };
    for (int i = 0; i < t->n; i++) {
        const Affine *l = v[t->node[i].l], *r = v[t->node[i].r];
        int64_t c = t->node[i].c;
        switch (t->node[i].op) {
        case TREE_const:
            v[i] = affine_const(x, c);
            break;
        case TREE_var:
            v[i] = affine_var(x, (VarId)c);
            break;
        case TREE_add:
            v[i] = affine_add(x, l, r);
            break;
        case TREE_sub:
            v[i] = affine_sub(x, l, r);
            break;
        case TREE_scale:
            v[i] = affine_scale(x, l, c);
            break;
        case TREE_div:
            v[i] = affine_floordiv(x, l, c);
            break;
        case TREE_mod:
            v[i] = affine_mod(x, l, c);
            break;
        case TREE_mul:
            v[i] = affine_mul(x, l, r);
            break;
        }
    }
    return v[t->n - 1];
}

/* Four variables: a in a random interval; b bounded by a; c a size up to 3
 * (its upper bound unknown to the context); d in [0, 2^n). */
typedef struct World {
    ExprCtx *x;
    int64_t a_lo, a_hi, b_shift, d_hi;
    int64_t value[TREE_VARS + 1];
} World;

static World world_new(Rng *r)
{
    World w = { .x = expr_ctx_new() };
    VarId a = var_new(w.x, "a", VAR_iter), b = var_new(w.x, "b", VAR_iter);
    var_new(w.x, "c", VAR_size);
    VarId d = var_new(w.x, "d", VAR_coord);
    w.a_lo = rng_in(r, -6, 2);
    w.a_hi = w.a_lo + rng_in(r, 1, 7);
    w.b_shift = rng_in(r, 1, 4);
    w.d_hi = (int64_t)1 << rng_in(r, 0, 3);
    var_set_bounds(w.x, a, affine_const(w.x, w.a_lo),
                   affine_const(w.x, w.a_hi));
    var_set_bounds(w.x, b, affine_neg(w.x, affine_var(w.x, a)),
                   affine_add_const(w.x, affine_var(w.x, a), w.b_shift));
    var_set_bounds(w.x, d, affine_const(w.x, 0), affine_const(w.x, w.d_hi));
    return w;
}

/* The next assignment within the bounds; the first when value[0] is 0. */
static bool world_next(World *w)
{
    int64_t *v = w->value;
    if (!v[0]) {
        v[0] = 1;
        v[1] = w->a_lo;
        v[2] = -v[1];
        v[3] = 1;
        v[4] = 0;
        if (v[2] < v[1] + w->b_shift)
            return true;
    } else if (++v[4] < w->d_hi || (v[4] = 0, ++v[3] <= 3)) {
        return true;
    }
    v[3] = 1;
    v[4] = 0;
    for (v[2]++; v[2] >= v[1] + w->b_shift; v[2] = -v[1])
        if (++v[1] >= w->a_hi)
            return v[0] = 0, false;
        else if (-v[1] < v[1] + w->b_shift)
            return v[2] = -v[1], true;
    return true;
}

Test(affine, random_trees_keep_their_values_and_bounds)
{
    Rng r = { 20240601 };
    for (unsigned n = 0; n < rounds(6000); n++) {
        World w = world_new(&r);
        Tree t = { .n = 0 };
        tree_grow(&t, &r, 5);
        const Affine *e = tree_build(w.x, &t);
        cr_assert(e != NULL);
        int64_t lo, hi, got;
        bool has_lo = affine_min(w.x, e, &lo), has_hi = affine_max(w.x, e, &hi);
        Env env = { row_value, w.value };
        while (world_next(&w)) {
            int64_t want = tree_eval(&t, w.value);
            char *text = NULL;
            cr_assert(affine_eval(e, &env, &got) && got == want,
                      "round %u: %s is %lld, not %lld", n,
                      (text = text_of(w.x, e, true)), (long long)got,
                      (long long)want);
            cr_assert(!has_lo || lo <= want, "round %u: minimum", n);
            cr_assert(!has_hi || hi >= want, "round %u: maximum", n);
            free(text);
        }
        expr_ctx_free(w.x);
    }
}

Test(affine, random_trees_print_and_read_back)
{
    Rng r = { 77 };
    for (unsigned n = 0; n < rounds(6000); n++) {
        World w = world_new(&r);
        Tree t = { .n = 0 };
        tree_grow(&t, &r, 5);
        const Affine *e = tree_build(w.x, &t);
        for (int exo = 0; exo < 2; exo++) {
            char *text = text_of(w.x, e, exo);
            Reader reader = { w.x, text, exo };
            const Affine *back = read_sum(&reader);
            cr_assert(back == e, "round %u: %s reads back as %s", n, text,
                      text_of(w.x, back, exo));
            free(text);
        }
        expr_ctx_free(w.x);
    }
}

static uint32_t reversed_rank(const ExprNames *n, VarId v)
{
    return n->user ? TREE_VARS + 1 - v : v;
}

/* Imports into a context with the variables in reverse, and back. */
Test(affine, random_trees_import_and_print_alike)
{
    Rng r = { 4242 };
    VarId reverse[TREE_VARS + 1] = { 0, 4, 3, 2, 1 };
    VarId missing[TREE_VARS + 1] = { 0, 4, 3, 0, 1 };
    for (unsigned n = 0; n < rounds(3000); n++) {
        World w = world_new(&r);
        Tree t = { .n = 0 };
        tree_grow(&t, &r, 4);
        const Affine *e = tree_build(w.x, &t);
        ExprCtx *y = expr_ctx_new();
        for (int i = TREE_VARS; i > 0; i--)
            var_new(y, var_get(w.x, (VarId)i)->name, VAR_int);
        const Affine *there = affine_import(y, e, reverse);
        ExprNames here = { .exo = true, .rank = reversed_rank };
        ExprNames other = { .exo = true, .rank = reversed_rank, .user = &r };
        StrBuf a = { 0 }, b = { 0 };
        affine_print(&a, w.x, e, &here, 0);
        affine_print(&b, y, there, &other, 0);
        cr_assert_str_eq(strbuf_text(&a), strbuf_text(&b));
        cr_assert(affine_import(w.x, there, reverse) == e, "round %u: %s", n,
                  a.data);
        cr_assert((affine_import(y, e, missing) == NULL) == affine_uses(e, 3));
        strbuf_free(&a);
        strbuf_free(&b);
        expr_ctx_free(y);
        expr_ctx_free(w.x);
    }
}

Test(affine, random_substitutions_commute_with_evaluation)
{
    Rng r = { 99 };
    for (unsigned n = 0; n < rounds(2000); n++) {
        ExprCtx *x = expr_ctx_new();
        for (int i = 1; i <= TREE_VARS; i++)
            var_new(x, (const char[]){ (char)('a' + i - 1), 0 }, VAR_int);
        Tree t[3] = { 0 };
        const Affine *e[3];
        for (int i = 0; i < 3; i++) {
            tree_grow(&t[i], &r, 3);
            e[i] = tree_build(x, &t[i]);
        }
        VarId from[] = { 1, 3 };
        Subst s = { .n = 2, .var = from, .to = e };
        const Affine *got = affine_subst(x, e[2], &s);
        for (int i = 0; i < 40; i++) {
            int64_t value[TREE_VARS + 1], inner[TREE_VARS + 1], v;
            for (int k = 0; k <= TREE_VARS; k++)
                inner[k] = value[k] = rng_in(&r, -9, 9);
            inner[1] = tree_eval(&t[0], value);
            inner[3] = tree_eval(&t[1], value);
            Env env = { row_value, value };
            cr_assert(affine_eval(got, &env, &v));
            cr_assert_eq(v, tree_eval(&t[2], inner), "round %u", n);
        }
        expr_ctx_free(x);
    }
}

Test(affine, substitutes_tensors_of_strides)
{
    ExprCtx *x = expr_ctx_new();
    int a, b, c;
    const void *from[] = { &a }, *to[] = { &b };
    Subst s = { .n_refs = 1, .ref_from = from, .ref_to = to };
    const Affine *e =
        affine_add(x, affine_stride(x, &a, 1),
                   affine_floordiv(x, affine_stride(x, &c, 0), 8));
    const Affine *want =
        affine_add(x, affine_stride(x, &b, 1),
                   affine_floordiv(x, affine_stride(x, &c, 0), 8));
    cr_expect(affine_subst(x, e, &s) == want);
    cr_expect(affine_stride(x, &a, 1) != affine_stride(x, &a, 0));
    expr_ctx_free(x);
}

/* Random conditions: value, printing, import. */
static const Cond *cond_grow(World *w, Rng *r, int depth, bool *value)
{
    int kind = depth <= 0 ? 0 : (int)rng_in(r, 0, 4);
    bool a = false, b = false;
    if (kind <= 1) {
        Tree t[2] = { 0 };
        const Affine *e[2];
        for (int i = 0; i < 2; i++) {
            tree_grow(&t[i], r, 2);
            e[i] = tree_build(w->x, &t[i]);
        }
        int64_t l = tree_eval(&t[0], w->value), g = tree_eval(&t[1], w->value);
        CmpOp op = (CmpOp)rng_in(r, CMP_lt, CMP_ne);
        bool holds[] = { l<g, l <= g, l> g, l >= g, l == g, l != g };
        *value = holds[op];
        return cond_cmp(w->x, op, e[0], e[1]);
    }
    const Cond *lhs = cond_grow(w, r, depth - 1, &a);
    if (kind == 2) {
        *value = !a;
        return cond_not(w->x, lhs);
    }
    const Cond *rhs = cond_grow(w, r, depth - 1, &b);
    *value = kind == 3 ? a && b : a || b;
    return kind == 3 ? cond_and(w->x, lhs, rhs) : cond_or(w->x, lhs, rhs);
}

Test(affine, random_conditions)
{
    Rng r = { 31337 };
    VarId same[TREE_VARS + 1] = { 0, 1, 2, 3, 4 };
    for (unsigned n = 0; n < rounds(4000); n++) {
        World w = world_new(&r);
        if (!world_next(&w)) {
            expr_ctx_free(w.x);
            continue;
        }
        for (int64_t skip = rng_in(&r, 0, 40); skip > 0; skip--)
            if (!world_next(&w))
                cr_assert(world_next(&w));
        bool want = false, got = false;
        const Cond *c = cond_grow(&w, &r, 3, &want);
        Env env = { row_value, w.value };
        char *text = cond_text(w.x, c, true);
        cr_assert(cond_eval(c, &env, &got) && got == want, "round %u: %s", n,
                  text);
        Reader reader = { w.x, text, true };
        if (!strstr(text, "True") && !strstr(text, "False"))
            cr_assert(read_or(&reader) == c, "round %u: %s", n, text);
        cr_assert(cond_import(w.x, c, same) == c);
        cr_assert(cond_not(w.x, cond_not(w.x, c)) == c);
        free(text);
        expr_ctx_free(w.x);
    }
}
