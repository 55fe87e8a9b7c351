/* Questions as SMT-LIB: Z3 reads each script, and answers as it does when the
 * question comes through the API. */
#include "passes/smtlib.h"
#include "test/unit/prove_queries.h"
#include "verify/smt/smt.h"

#include <criterion/criterion.h>
#include <string.h>
#include <z3.h>

/* What Z3 says to a script, with a bound on its resources. */
static const char *eval_script(Z3_context z3, const char *script)
{
    StrBuf s = { 0 };
    strbuf_addf(&s, "(reset)(set-option :rlimit %d)%s", SMT_RLIMIT, script);
    const char *answer = Z3_eval_smtlib2_string(z3, strbuf_text(&s));
    strbuf_free(&s);
    return answer;
}

Test(smtlib, z3_reads_every_question)
{
    ExprCtx *x = query_context();
    Arena *arena = arena_new();
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    unsigned decided = 0;
    for (size_t i = 0; i < QUERY_ROWS; i++) {
        const QueryRow *row = &query_rows[i];
        Facts *f = facts_new(arena, x);
        StrBuf script = { 0 };
        for (int k = 0; k < QUERY_FACTS && row->facts[k]; k++)
            facts_assume(f, C(x, row->facts[k]));
        cr_expect(smtlib_print(&script, f, cond_not(x, C(x, row->goal))));
        const char *answer = eval_script(z3, strbuf_text(&script));
        bool yes = !strncmp(answer, "unsat", 5),
             no = !strncmp(answer, "sat", 3);
        cr_expect(yes || no || !strncmp(answer, "unknown", 7),
                  "row %zu: %s\n%s", i, answer, strbuf_text(&script));
        if (row->z3 != PROVE_unknown && (yes || no))
            cr_expect_eq(yes, row->z3 == PROVE_yes, "row %zu: %s\n%s", i,
                         answer, strbuf_text(&script));
        decided += yes || no;
        strbuf_free(&script);
    }
    cr_expect(decided + 8 >= QUERY_ROWS, "only %u rows were decided", decided);
    Z3_del_context(z3);
    Z3_del_config(config);
    arena_free(arena);
    expr_ctx_free(x);
}

Test(smtlib, names_are_quoted_and_told_apart)
{
    ExprCtx *x = expr_ctx_new();
    Arena *arena = arena_new();
    StrBuf script = { 0 };
    VarId a = var_new(x, "i'", VAR_index), b = var_new(x, "i'", VAR_index);
    Facts *f = facts_new(arena, x);
    const Cond *c = cond_and(
        x, cond_cmp(x, CMP_lt, affine_var(x, a), affine_var(x, b)),
        cond_cmp(x, CMP_eq, affine_config(x, "C.f"), affine_const(x, -5)));
    cr_expect(smtlib_print(&script, f, c));
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    const char *answer = eval_script(z3, strbuf_text(&script));
    cr_expect(!strncmp(answer, "sat", 3), "%s\n%s", answer,
              strbuf_text(&script));
    Z3_del_context(z3);
    Z3_del_config(config);
    strbuf_free(&script);
    arena_free(arena);
    expr_ctx_free(x);
}

Test(smtlib, what_is_left_out_is_said)
{
    ExprCtx *x = query_context();
    Arena *arena = arena_new();
    StrBuf script = { 0 };
    Facts *f = facts_new(arena, x);
    facts_assume(f, NULL);
    cr_expect(!smtlib_print(&script, f, C(x, "k == 3")));
    cr_expect(strstr(strbuf_text(&script), "passes 64 bits"));
    strbuf_free(&script);
    arena_free(arena);
    expr_ctx_free(x);
}
