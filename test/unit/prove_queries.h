/* Questions for provers: rows with the answer that each layer owes, and random
 * ones whose answers are held against all assignments of a small world. Used
 * by prove_test.c for layer 1 and smt_test.c for Z3. */
#ifndef EXO_TEST_UNIT_PROVE_QUERIES_H
#define EXO_TEST_UNIT_PROVE_QUERIES_H

#include "passes/prove.h"
#include "test/unit/expr_reader.h"

#include <stdio.h>

/* ---- rows ---------------------------------------------------------------- */

/* N, M, K sizes; b < (N + 127) / 128; t < 128; tm < (M + 255) / 256; c, e < 2;
 * i < 128; kk < (K + 63) / 64; w < 4; k, l, m any; p a boolean. */
static inline ExprCtx *query_context(void)
{
    static const struct {
        const char *name;
        VarKind kind;
        const char *lo, *hi;
    } vars[] = {
        { "N", VAR_size, NULL, NULL },
        { "M", VAR_size, NULL, NULL },
        { "K", VAR_size, NULL, NULL },
        { "b", VAR_iter, "0", "(N + 127) / 128" },
        { "t", VAR_iter, "0", "128" },
        { "tm", VAR_iter, "0", "(M + 255) / 256" },
        { "c", VAR_iter, "0", "2" },
        { "e", VAR_iter, "0", "2" },
        { "i", VAR_iter, "0", "128" },
        { "kk", VAR_iter, "0", "(K + 63) / 64" },
        { "w", VAR_coord, "0", "4" },
        { "k", VAR_int, NULL, NULL },
        { "l", VAR_index, NULL, NULL },
        { "m", VAR_int, NULL, NULL },
        { "p", VAR_bool, NULL, NULL },
        { "r", VAR_iter, "0", "M" },
        { "s", VAR_iter, "0", "N" },
        { "j", VAR_iter, "t", "128" },
    };
    ExprCtx *x = expr_ctx_new();
    for (size_t i = 0; i < sizeof vars / sizeof *vars; i++) {
        VarId v = var_new(x, vars[i].name, vars[i].kind);
        if (vars[i].lo)
            var_set_bounds(x, v, E(x, vars[i].lo), E(x, vars[i].hi));
    }
    return x;
}

enum { QUERY_FACTS = 4 };

typedef struct QueryRow {
    const char *facts[QUERY_FACTS]; /* up to the first NULL */
    const char *goal;
    /* Is goal implied by the facts? Another version of Z3 may know more. */
    ProveAnswer layer1, z3;
} QueryRow;

#define Y PROVE_yes
#define N_ PROVE_no
#define U PROVE_unknown

static const QueryRow query_rows[] = {
    /* guards and tiles */
    { { 0 }, "128 * b + t < N", N_, N_ },
    { { 0 }, "128 * b + t < N + 127", Y, Y },
    { { 0 }, "128 * b + t >= 0", Y, Y },
    { { "128 * b + t < N" }, "128 * b + t < N", Y, Y },
    { { "128 * b + t < N" }, "128 * b < N", Y, Y },
    { { "128 * b + t < N" }, "128 * b + t + 1 < N", N_, N_ },
    { { "128 * c + 256 * tm + i < M" }, "128 * c + 256 * tm + i < M", Y, Y },
    { { "M % 256 == 0" }, "128 * c + 256 * tm + i < M", Y, Y },
    { { "M % 128 == 0" }, "128 * c + 256 * tm + i < M", N_, N_ },
    { { "256 * tm + 128 * c < M", "M % 128 == 0" },
      "128 * c + 256 * tm + i < M",
      Y,
      Y },
    { { "128 * c + 256 * tm + 127 < M" }, "128 * c + 256 * tm + i < M", Y, Y },
    /* trip counts */
    { { 0 }, "(K + 63) / 64 >= 1", Y, Y },
    { { 0 }, "(K + 63) / 64 >= 2", N_, N_ },
    { { "K > 64" }, "(K + 63) / 64 >= 2", Y, Y },
    { { 0 }, "64 * kk < K", Y, Y },
    { { 0 }, "kk + 1 <= (K + 63) / 64", Y, Y },
    { { "K % 64 == 0" }, "64 * kk + 63 < K", Y, Y },
    { { "K % 32 == 0" }, "64 * kk + 63 < K", N_, N_ },
    { { "K % 64 == 0" }, "(K + 63) / 64 == K / 64", Y, Y },
    { { 0 }, "(K + 63) / 64 == K / 64", N_, N_ },
    /* equalities */
    { { 0 }, "k + 3 - 1 == k + 2", Y, Y },
    { { "M == N" }, "M + 1 == N + 1", Y, Y },
    { { "M == N" }, "r < N", Y, Y },
    { { 0 }, "r < N", N_, N_ },
    { { "k == l", "l == m" }, "k == m", Y, Y },
    { { "k != l", "l != m" }, "k != m", N_, N_ },
    { { "k == 2 * l" }, "k % 2 == 0", Y, Y },
    { { "k == 2 * l" }, "k % 4 == 0", N_, N_ },
    { { "3 * k == 5 * l", "0 < k", "k < 10" }, "k == 5", Y, Y },
    { { "3 * k == 5 * l", "0 <= k", "k < 10" }, "k == 5", N_, N_ },
    { { "6 * k + 10 * l == 15 * m" }, "m % 2 == 0", Y, Y },
    /* divisibility */
    { { "M % 8 == 0" }, "M >= 8", Y, Y },
    { { "M % 8 == 0" }, "M % 4 == 0", Y, Y },
    { { "M % 8 == 0" }, "M % 16 == 0", N_, N_ },
    { { "M % 8 == 0", "M % 12 == 0" }, "M % 24 == 0", Y, Y },
    { { "M % 8 == 0", "M % 12 == 0" }, "M % 48 == 0", N_, N_ },
    { { "k % 4 == 1" }, "k / 4 == (k + 2) / 4", Y, Y },
    { { "k % 4 == 2" }, "k / 4 == (k + 2) / 4", N_, N_ },
    { { "stride(?, 0) % 8 == 0" }, "(stride(?, 0) * 2) % 16 == 0", Y, Y },
    { { "stride(?, 0) % 8 == 0" }, "stride(?, 1) % 8 == 0", N_, N_ },
    { { 0 }, "k - k % 4 == 4 * (k / 4)", Y, Y },
    { { 0 }, "(k + 4) % 4 == k % 4", Y, Y },
    { { 0 }, "(k + 3) / 4 <= k / 4 + 1", Y, Y },
    { { 0 }, "(k + 5) / 4 <= k / 4 + 1", N_, N_ },
    { { 0 }, "k / 3 / 5 == k / 15", Y, Y },
    { { 0 }, "k / 4 + l / 4 <= (k + l) / 4", Y, Y },
    { { 0 }, "k / 4 + l / 4 == (k + l) / 4", N_, N_ },
    /* differences between variables */
    { { "k < l", "l < m" }, "k + 2 <= m", Y, Y },
    { { "k < l", "l < m" }, "k + 3 <= m", N_, N_ },
    { { 0 }, "j >= t", Y, Y },
    { { 0 }, "j - t < 128", Y, Y },
    { { 0 }, "j > t", N_, N_ },
    { { "t >= 100" }, "j >= 100", Y, Y },
    { { "2 * k < 2 * l + 1" }, "k <= l", Y, Y },
    { { "2 * k + 3 * l >= 7", "k <= 1" }, "l >= 2", Y, Y },
    /* cases */
    { { "c == 0 or e == 0" }, "c + e < 2", Y, Y },
    { { "c != 0" }, "c == 1", Y, Y },
    { { "c != e" }, "c + e == 1", Y, Y },
    { { 0 }, "c == e", N_, N_ },
    { { "not (k < 3 and l < 3)", "k < 3" }, "l >= 3", Y, Y },
    { { "k < 3 or l < 3", "k + l > 10" }, "k > 7 or l > 7", Y, Y },
    { { "k < 3 or l < 3" }, "k < 3", N_, N_ },
    { { 0 }, "p == 0 or p == 1", Y, Y },
    { { 0 }, "w == 0 or w == 1 or w == 2 or w == 3", Y, Y },
    { { 0 }, "w == 0 or w == 1 or w == 3", N_, N_ },
    { { 0 }, "k < 5 and k > 3", N_, N_ },
    { { "k == 4" }, "k < 5 and k > 3", Y, Y },
    /* facts that cannot hold imply anything */
    { { "N < 1" }, "k == 0", Y, Y },
    { { "k < l", "l < k" }, "M == 7", Y, Y },
    { { "2 * k == 2 * l + 1" }, "M == 7", Y, Y },
    /* products */
    { { 0 }, "N * M >= M", Y, Y },
    { { 0 }, "N * M >= N + M - 1", Y, U },
    { { 0 }, "N * M > M", N_, N_ },
    { { 0 }, "r * N + s < M * N", Y, U },
    { { 0 }, "r * N + s <= M * N - 2", N_, N_ },
    { { 0 }, "k * k >= 0", U, Y },
    /* configuration */
    { { "Cfg.n == 4" }, "Cfg.n * 2 == 8", Y, Y },
    { { 0 }, "Cfg.n == 4", N_, N_ },
    /* gaps that only divide over the integers */
    { { "27 <= 11 * k + 13 * l", "11 * k + 13 * l <= 45", "7 * k - 9 * l <= 4",
        "7 * k - 9 * l >= -10" },
      "k < l",
      U,
      Y },
};

#undef Y
#undef N_
#undef U

enum { QUERY_ROWS = sizeof query_rows / sizeof *query_rows };

/* Does the assignment of p meet all that f says, and c? */
static inline bool witness_holds(const Facts *f, const Cond *c, const Proof *p)
{
    CondVec all = { 0 };
    Env env = proof_env(p);
    bool holds = facts_closure(f, c, &all);
    for (size_t i = 0; i < all.len && holds; i++)
        holds = cond_eval(all.data[i], &env, &holds) && holds;
    return holds;
}

static inline void check_rows(Prover *prover, bool z3)
{
    ExprCtx *x = query_context();
    Arena *arena = arena_new();
    for (size_t i = 0; i < QUERY_ROWS; i++) {
        const QueryRow *row = &query_rows[i];
        Facts *f = facts_new(arena, x);
        for (int k = 0; k < QUERY_FACTS && row->facts[k]; k++)
            facts_assume(f, C(x, row->facts[k]));
        const Cond *goal = C(x, row->goal);
        Proof p = prove_implied(prover, f, goal);
        ProveAnswer owed = z3 ? row->z3 : row->layer1;
        bool better = z3 && owed == PROVE_unknown && p.answer == row->layer1;
        cr_expect(p.answer == owed || better, "row %zu, '%s': answer %d (%s)",
                  i, row->goal, (int)p.answer, p.reason ? p.reason : "");
        cr_expect((p.answer == PROVE_unknown) == (p.reason != NULL));
        if (p.answer == PROVE_no)
            cr_expect(witness_holds(f, cond_not(x, goal), &p),
                      "row %zu: the witness does not hold", i);
    }
    arena_free(arena);
    expr_ctx_free(x);
}

/* ---- random questions ---------------------------------------------------- */

typedef struct QueryRng {
    uint64_t state;
} QueryRng;

static inline int64_t query_random(QueryRng *r, int64_t lo, int64_t hi)
{
    r->state = r->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return lo + (int64_t)((r->state >> 33) % (uint64_t)(hi - lo + 1));
}

/* Random text: an expression over the world's variables. */
static inline void random_sum(StrBuf *b, QueryRng *r, int depth)
{
    static const char *const names[] = { "i", "j", "n", "k" };
    int terms = (int)query_random(r, 1, 3);
    for (int t = 0; t < terms; t++) {
        strbuf_add(b, t ? (query_random(r, 0, 2) ? " + " : " - ") : "");
        switch (query_random(r, 0, depth > 0 ? 6 : 2)) {
        case 0:
            strbuf_addf(b, "%d", (int)query_random(r, 0, 12));
            break;
        case 1:
            strbuf_addf(b, "%d * ", (int)query_random(r, 1, 6));
            /* fall through */
        case 2:
        case 3:
            strbuf_add(b, names[query_random(r, 0, 3)]);
            break;
        default:
            strbuf_add(b, "(");
            random_sum(b, r, depth - 1);
            strbuf_addf(b, ") %s %d", query_random(r, 0, 1) ? "/" : "%",
                        (int)query_random(r, 1, 6));
            break;
        }
    }
    if (depth > 1 && query_random(r, 0, 9) == 0)
        strbuf_addf(b, " + %s * %s", names[query_random(r, 0, 3)],
                    names[query_random(r, 0, 3)]);
}

static inline void random_cond(StrBuf *b, QueryRng *r, int depth)
{
    static const char *const ops[] = { "<", "<=", ">", ">=", "==", "!=" };
    if (depth > 0 && query_random(r, 0, 2) == 0) {
        strbuf_add(b, query_random(r, 0, 3) ? "(" : "not (");
        random_cond(b, r, depth - 1);
        strbuf_add(b, query_random(r, 0, 1) ? ") and (" : ") or (");
        random_cond(b, r, depth - 1);
        strbuf_add(b, ")");
        return;
    }
    random_sum(b, r, 2);
    strbuf_addf(b, " %s ", ops[query_random(r, 0, 5)]);
    random_sum(b, r, query_random(r, 0, 1) ? 2 : 0);
}

/* i in [lo, lo + width); j in [i - 1, i + 3); 1 <= n, k any: the facts bound
 * them where `closed`, else only the enumeration does. */
typedef struct QueryWorld {
    ExprCtx *x;
    Facts *facts;
    const Cond *question;
    int64_t lo, width;
    bool closed;
    char *text;
} QueryWorld;

enum { WORLD_N = 6, WORLD_K = 7 };

static inline QueryWorld world_query(Arena *arena, QueryRng *r)
{
    QueryWorld w = { .x = expr_ctx_new() };
    VarId i = var_new(w.x, "i", VAR_iter), j = var_new(w.x, "j", VAR_iter);
    var_new(w.x, "n", VAR_size);
    var_new(w.x, "k", VAR_int);
    w.lo = query_random(r, -5, 5);
    w.width = query_random(r, 1, 6);
    w.closed = query_random(r, 0, 2) > 0;
    w.facts = facts_new(arena, w.x);
    var_set_bounds(w.x, i, affine_const(w.x, w.lo),
                   affine_const(w.x, w.lo + w.width));
    var_set_bounds(w.x, j, E(w.x, "i - 1"), E(w.x, "i + 3"));
    StrBuf all = { 0 }, b = { 0 };
    if (w.closed) {
        facts_assume(w.facts, C(w.x, "n <= 6"));
        facts_assume(w.facts, C(w.x, "k >= -7 and k <= 7"));
    }
    for (int64_t n = query_random(r, 0, 3); n >= 0; n--) {
        strbuf_free(&b);
        random_cond(&b, r, n ? 1 : 2);
        strbuf_addf(&all, "%s%s", strbuf_text(&b), n ? "; " : "");
        const Cond *c = C(w.x, strbuf_text(&b));
        if (n)
            facts_assume(w.facts, c);
        else
            w.question = c;
    }
    strbuf_free(&b);
    w.text = all.data;
    return w;
}

static inline bool world_value(const Env *env, const Atom *atom, int64_t *out)
{
    if (atom->kind != ATOM_var)
        return false;
    *out = ((const int64_t *)env->user)[atom->var - 1];
    return true;
}

/* Do facts and question hold for these values? The bounds are enumerated. */
static inline bool world_holds(const QueryWorld *w, int64_t *v)
{
    Env env = { world_value, v };
    bool holds = true;
    for (size_t n = 0; n < w->facts->conds.len && holds; n++)
        cr_assert(cond_eval(w->facts->conds.data[n], &env, &holds));
    if (holds)
        cr_assert(cond_eval(w->question, &env, &holds));
    return holds;
}

static inline bool world_satisfiable(const QueryWorld *w)
{
    int64_t v[4];
    for (v[0] = w->lo; v[0] < w->lo + w->width; v[0]++)
        for (v[1] = v[0] - 1; v[1] < v[0] + 3; v[1]++)
            for (v[2] = 1; v[2] <= WORLD_N; v[2]++)
                for (v[3] = -WORLD_K; v[3] <= WORLD_K; v[3]++)
                    if (world_holds(w, v))
                        return true;
    return false;
}

/* Asks `count` random questions of one or two provers; a wrong yes or no
 * fails, as does leaving more than `spare` per cent of them open. */
static inline void check_random(Prover *a, Prover *b, uint64_t seed,
                                unsigned count, unsigned spare)
{
    QueryRng r = { seed };
    unsigned open = 0;
    for (unsigned n = 0; n < count; n++) {
        Arena *arena = arena_new();
        QueryWorld w = world_query(arena, &r);
        bool truth = world_satisfiable(&w);
        Prover *provers[] = { a, b };
        ProveAnswer said[2] = { PROVE_unknown, PROVE_unknown };
        for (int i = 0; i < 2 && provers[i]; i++) {
            Proof p = prove_satisfiable(provers[i], w.facts, w.question);
            said[i] = p.answer;
            cr_assert(!truth || p.answer != PROVE_no,
                      "question %u, %s: wrong no: %s", n, provers[i]->name,
                      w.text);
            cr_assert(truth || !w.closed || p.answer != PROVE_yes,
                      "question %u, %s: wrong yes: %s", n, provers[i]->name,
                      w.text);
            cr_assert(p.answer != PROVE_yes ||
                          witness_holds(w.facts, w.question, &p),
                      "question %u, %s: wrong witness: %s", n, provers[i]->name,
                      w.text);
        }
        cr_assert(said[0] == PROVE_unknown || said[1] == PROVE_unknown ||
                      said[0] == said[1],
                  "question %u: the provers differ: %s", n, w.text);
        open += said[0] == PROVE_unknown;
        free(w.text);
        arena_free(arena);
        expr_ctx_free(w.x);
    }
    cr_expect(open * 100 <= count * spare, "%u of %u questions left open", open,
              count);
}

/* ---- random questions with large numbers --------------------------------- */

/* A value for every variable of query_context, within its bounds: false where
 * a range is empty. */
static inline bool sample_values(ExprCtx *x, QueryRng *r, int64_t *v)
{
    Env env = { world_value, v };
    for (VarId id = 1; id <= var_count(x); id++) {
        const Var *var = var_get(x, id);
        int64_t lo = -300, hi = 301;
        if (var->kind == VAR_size)
            lo = 1, hi = query_random(r, 0, 1) ? 20 : 2000;
        if (var->kind == VAR_bool)
            lo = 0, hi = 2;
        if (var->lo)
            cr_assert(affine_eval(var->lo, &env, &lo) &&
                      affine_eval(var->hi, &env, &hi));
        if (lo >= hi)
            return false;
        v[id - 1] = query_random(r, lo, hi - 1);
        if (query_random(r, 0, 3) == 0)
            v[id - 1] = query_random(r, 0, 1) ? lo : hi - 1;
    }
    return true;
}

static inline void tile_sum(StrBuf *b, QueryRng *r, bool nested)
{
    static const char *const parts[] = {
        "128 * b", "t",   "256 * tm", "128 * c", "i",  "64 * kk", "N",
        "M",       "K",   "8 * k",    "j",       "w",  "32 * w",  "l",
        "2 * c",   "128", "64",       "1",       "63", "7"
    };
    static const int divisors[] = { 8, 32, 64, 128, 256, 96 };
    for (int64_t n = query_random(r, 0, 2); n >= 0; n--) {
        if (nested && query_random(r, 0, 2) == 0) {
            strbuf_add(b, "(");
            tile_sum(b, r, false);
            strbuf_addf(b, ") %s %d", query_random(r, 0, 1) ? "/" : "%",
                        divisors[query_random(r, 0, 5)]);
        } else {
            strbuf_add(b, parts[query_random(r, 0, 19)]);
        }
        strbuf_add(b, n ? (query_random(r, 0, 3) ? " + " : " - ") : "");
    }
}

static inline const Cond *tile_cond(ExprCtx *x, QueryRng *r, StrBuf *text)
{
    static const char *const ops[] = { "<", "<=", ">=", "==", "!=" };
    StrBuf b = { 0 };
    tile_sum(&b, r, true);
    strbuf_addf(&b, " %s ", ops[query_random(r, 0, 4)]);
    tile_sum(&b, r, true);
    strbuf_addf(text, "%s; ", b.data);
    const Cond *c = C(x, b.data);
    strbuf_free(&b);
    return c;
}

/* Implications between tile-sized expressions: no sample contradicts a yes,
 * and every no has a witness. */
static inline void check_sampled(Prover *prover, uint64_t seed, unsigned count)
{
    QueryRng r = { seed };
    ExprCtx *x = query_context();
    unsigned yes = 0;
    for (unsigned n = 0; n < count; n++) {
        Arena *arena = arena_new();
        Facts *f = facts_new(arena, x);
        StrBuf text = { 0 };
        for (int64_t k = query_random(&r, 0, 2); k > 0; k--)
            facts_assume(f, tile_cond(x, &r, &text));
        const Cond *goal = tile_cond(x, &r, &text);
        Proof p = prove_implied(prover, f, goal);
        int64_t v[32];
        Env env = { world_value, v };
        for (int k = 0; k < 200 && p.answer == PROVE_yes; k++) {
            bool holds = sample_values(x, &r, v);
            for (size_t i = 0; i < f->conds.len && holds; i++)
                cr_assert(cond_eval(f->conds.data[i], &env, &holds));
            if (holds)
                cr_assert(cond_eval(goal, &env, &holds) && holds,
                          "question %u: wrong yes: %s", n, text.data);
        }
        yes += p.answer == PROVE_yes;
        if (p.answer == PROVE_no)
            cr_assert(witness_holds(f, cond_not(x, goal), &p),
                      "question %u: wrong witness: %s", n, text.data);
        strbuf_free(&text);
        arena_free(arena);
    }
    cr_expect(yes * 10 > count, "only %u of %u proved", yes, count);
    expr_ctx_free(x);
}

static inline unsigned query_count(unsigned n)
{
    return getenv("EXO_LONG") ? 20 * n : n;
}

#endif
