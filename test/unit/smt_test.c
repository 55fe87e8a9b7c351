/* Prover layer 2 on Z3: rows, agreement with layer 1 and with enumeration,
 * limits. */
#include "test/unit/prove_queries.h"
#include "verify/smt/smt.h"

#include <criterion/criterion.h>

Test(smt, rows)
{
    Smt *smt = smt_new(&(SmtOptions){ 0 });
    check_rows(smt_prover(smt), true);
    const SmtStats *stats = smt_stats(smt);
    cr_expect(stats->queries == QUERY_ROWS);
    cr_expect(stats->sat + stats->unsat + stats->unknown == QUERY_ROWS);
    cr_expect(stats->rlimit > 0);
    cr_expect_str_eq(smt_prover(smt)->name, "Z3");
    cr_expect(smt_version(smt)[0] >= '4');
    smt_free(smt);
}

Test(smt, random_questions_agree_with_layer_1)
{
    Arena *arena = arena_new();
    Smt *smt = smt_new(&(SmtOptions){ 0 });
    check_random(smt_prover(smt), prover_layer1(arena), 2, query_count(600), 5);
    smt_free(smt);
    arena_free(arena);
}

Test(smt, random_tiles)
{
    Smt *smt = smt_new(&(SmtOptions){ 0 });
    check_sampled(smt_prover(smt), 6, query_count(300));
    smt_free(smt);
}

Test(smt, closes_what_layer_1_leaves_open)
{
    ExprCtx *x = query_context();
    Arena *arena = arena_new();
    Facts *f = facts_new(arena, x);
    Smt *smt = smt_new(&(SmtOptions){ 0 });
    Prover *first = prover_layer1(arena);
    Prover *p = prover_chain(arena, first, smt_prover(smt));
    cr_expect(prove_implied(first, f, C(x, "k * k >= 0")).answer ==
              PROVE_unknown);
    cr_expect(prove_implied(p, f, C(x, "k * k >= 0")).answer == PROVE_yes);
    cr_expect(smt_stats(smt)->queries == 1);
    cr_expect(prove_implied(p, f, C(x, "w < 4")).answer == PROVE_yes);
    cr_expect(smt_stats(smt)->queries == 1);
    smt_free(smt);
    arena_free(arena);
    expr_ctx_free(x);
}

Test(smt, limited_and_incomplete_questions_are_unknown)
{
    ExprCtx *x = query_context();
    Arena *arena = arena_new();
    Facts *f = facts_new(arena, x);
    Smt *smt = smt_new(&(SmtOptions){ .rlimit = 100 });
    Proof p = prove_satisfiable(
        smt_prover(smt), f,
        C(x, "(k + l) / 7 + (l + m) % 5 == k % 11 and k % 13 == l % 17"));
    cr_expect(p.answer == PROVE_unknown && strstr(p.reason, "Z3: "));
    cr_expect(smt_stats(smt)->limited == 1, "%s", p.reason);
    smt_free(smt);
    smt = smt_new(&(SmtOptions){ 0 });
    facts_assume(f, NULL);
    p = prove_satisfiable(smt_prover(smt), f, C(x, "k == 3"));
    cr_expect(p.answer == PROVE_unknown && p.reason);
    p = prove_satisfiable(smt_prover(smt), f, C(x, "w == 4"));
    cr_expect(p.answer == PROVE_no);
    smt_free(smt);
    arena_free(arena);
    expr_ctx_free(x);
}
