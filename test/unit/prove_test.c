/* Prover layer 1: rows, random questions against enumeration and samples,
 * facts at a place, the questions made of others, and chains. */
#include "passes/prove.h"
#include "test/unit/prove_queries.h"

#include <criterion/criterion.h>

Test(prove, rows)
{
    Arena *arena = arena_new();
    Prover *p = prover_layer1(arena);
    check_rows(p, false);
    cr_expect(p->stats.queries == QUERY_ROWS);
    cr_expect(p->stats.yes + p->stats.no + p->stats.unknown == QUERY_ROWS);
    arena_free(arena);
}

/* What stays open are products of variables. */
Test(prove, random_questions)
{
    Arena *arena = arena_new();
    check_random(prover_layer1(arena), NULL, 1, query_count(3000), 8);
    arena_free(arena);
}

Test(prove, random_tiles)
{
    Arena *arena = arena_new();
    check_sampled(prover_layer1(arena), 5, query_count(2000));
    arena_free(arena);
}

/* ---- the questions made of others ---------------------------------------- */

typedef struct Fixture {
    Arena *arena;
    ExprCtx *x;
    Facts *facts;
    Prover *prover;
} Fixture;

static Fixture fixture(void)
{
    Fixture t = { .arena = arena_new(), .x = query_context() };
    t.facts = facts_new(t.arena, t.x);
    t.prover = prover_layer1(t.arena);
    return t;
}

static void fixture_free(Fixture *t)
{
    arena_free(t->arena);
    expr_ctx_free(t->x);
}

Test(prove, questions)
{
    Fixture t = fixture();
    const Affine *zero = E(t.x, "0");
    cr_expect(affine_equal(t.prover, t.facts, E(t.x, "k"),
                           E(t.x, "4 * (k / 4) + k % 4"))
                  .answer == PROVE_yes);
    cr_expect(affine_equal(t.prover, t.facts, E(t.x, "k"), zero).answer ==
              PROVE_no);
    cr_expect(
        prove_divisible(t.prover, t.facts, E(t.x, "8 * k + 16"), 8).answer ==
        PROVE_yes);
    cr_expect(prove_divisible(t.prover, t.facts, E(t.x, "4 * k"), 8).answer ==
              PROVE_no);
    cr_expect(prove_within(t.prover, t.facts, E(t.x, "128 * c"), E(t.x, "128"),
                           E(t.x, "256"))
                  .answer == PROVE_yes);
    cr_expect(prove_within(t.prover, t.facts, E(t.x, "128 * c"), E(t.x, "129"),
                           E(t.x, "256"))
                  .answer == PROVE_no);
    cr_expect(prove_within(t.prover, t.facts, E(t.x, "c - 1"), E(t.x, "1"),
                           E(t.x, "256"))
                  .answer == PROVE_no);
    cr_expect(prove_satisfiable(t.prover, t.facts, C(t.x, "k == 3")).answer ==
              PROVE_yes);
    cr_expect(prove_satisfiable(t.prover, t.facts, C(t.x, "w == 4")).answer ==
              PROVE_no);
    fixture_free(&t);
}

Test(prove, disjoint_accesses)
{
    static const struct {
        const char *a[2], *b[2]; /* `lo` or `lo : len` per dimension */
        ProveAnswer answer;
    } rows[] = {
        { { "k", "l" }, { "k", "l" }, PROVE_no },
        { { "k", "l" }, { "k + 1", "l" }, PROVE_yes },
        { { "k", "t" }, { "l", "t + 128" }, PROVE_yes },
        { { "k", "t" }, { "l", "j" }, PROVE_no },
        { { "0 : 64", "l" }, { "64 : 64", "l" }, PROVE_yes },
        { { "0 : 65", "l" }, { "64 : 64", "l" }, PROVE_no },
        { { "128 * c : 128", "l" }, { "256 + 128 * e : 128", "l" }, PROVE_yes },
        { { "128 * c : 128", "l" }, { "128 * e : 128", "l" }, PROVE_no },
        { { "k : 0", "l" }, { "k : 9", "l" }, PROVE_yes },
        { { "128 * c : 128", "l" }, { "128 * c + t", "l" }, PROVE_no },
        { { "128 * c : 128", "l" }, { "128 * c - 1 - t", "l" }, PROVE_yes },
    };
    Fixture t = fixture();
    Value base = { .index = 0 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AccessDim dims[2][2];
        for (int s = 0; s < 2; s++)
            for (int d = 0; d < 2; d++) {
                char text[64];
                const char *in = s ? rows[i].b[d] : rows[i].a[d];
                const char *colon = strstr(in, " : ");
                size_t n = colon ? (size_t)(colon - in) : strlen(in);
                memcpy(text, in, n);
                text[n] = '\0';
                dims[s][d] =
                    (AccessDim){ .kind = DIM_point, .lo = E(t.x, text) };
                if (!colon)
                    continue;
                dims[s][d].kind = DIM_interval;
                dims[s][d].len = E(t.x, colon + 3);
            }
        Access a = { &base, 2, dims[0] }, b = { &base, 2, dims[1] };
        Proof p = prove_disjoint(t.prover, t.facts, &a, &b);
        cr_expect(p.answer == rows[i].answer, "row %zu: %d", i, (int)p.answer);
        if (p.answer == PROVE_no)
            cr_expect(witness_holds(t.facts, access_overlap(t.x, &a, &b), &p));
        Proof q = prove_disjoint(t.prover, t.facts, &b, &a);
        cr_expect(q.answer == p.answer);
    }
    AccessDim ring = { .kind = DIM_ring };
    Access a = { &base, 1, &ring };
    cr_expect(prove_disjoint(t.prover, t.facts, &a, &a).answer == PROVE_no);
    fixture_free(&t);
}

Test(prove, witness_text)
{
    Fixture t = fixture();
    StrBuf b = { 0 };
    facts_assume(t.facts, C(t.x, "k == 7 and l == k - 1"));
    Proof p = prove_implied(t.prover, t.facts, C(t.x, "k < l"));
    ExprNames names = { .exo = true };
    proof_witness(&b, t.x, &p, &names);
    cr_expect_str_eq(strbuf_text(&b), "k = 7, l = 6");
    strbuf_free(&b);
    fixture_free(&t);
}

Test(prove, overflow_and_incomplete_facts_are_unknown)
{
    Fixture t = fixture();
    cr_expect(prove_implied(t.prover, t.facts, NULL).answer == PROVE_unknown);
    cr_expect(affine_equal(t.prover, t.facts, NULL, E(t.x, "k")).answer ==
              PROVE_unknown);
    facts_assume(t.facts, NULL);
    cr_expect(t.facts->incomplete);
    Proof p = prove_implied(t.prover, t.facts, C(t.x, "k == 3"));
    cr_expect(p.answer == PROVE_unknown && p.reason);
    cr_expect(prove_implied(t.prover, t.facts, C(t.x, "w < 4")).answer ==
              PROVE_yes);
    cr_expect(facts_copy(t.arena, t.facts)->incomplete);
    /* coefficients that leave 64 bits when combined */
    Facts *f = facts_new(t.arena, t.x);
    facts_assume(f, C(t.x, "4611686018427387901 * k + 3 * l == 1"));
    facts_assume(f, C(t.x, "4611686018427387893 * l + 5 * m == 2"));
    p = prove_implied(t.prover, f, C(t.x, "k + 7 * m < 4000000000000000037"));
    cr_expect(p.answer != PROVE_yes);
    fixture_free(&t);
}

Test(prove, many_facts_and_cases_end_unknown)
{
    Fixture t = fixture();
    const Cond *all = cond_bool(t.x, true);
    for (int i = 0; i < 300; i++) {
        const Affine *v = affine_var(t.x, var_new(t.x, "v", VAR_int));
        const Affine *k = affine_scale(t.x, E(t.x, "k"), i + 2);
        facts_assume(t.facts, cond_cmp(t.x, CMP_lt, k, v));
        all = cond_and(t.x, all, cond_cmp(t.x, CMP_ne, v, E(t.x, "l")));
    }
    facts_assume(t.facts, all);
    Proof p = prove_implied(t.prover, t.facts, C(t.x, "k == m"));
    cr_expect(p.answer == PROVE_unknown && p.reason);
    /* what follows from a part of them is still found by interval */
    cr_expect(prove_implied(t.prover, t.facts, C(t.x, "t < 128")).answer ==
              PROVE_yes);
    fixture_free(&t);
}

static Proof always_yes(Prover *self, const Facts *f, const Cond *c)
{
    (void)self, (void)f, (void)c;
    return (Proof){ .answer = PROVE_yes };
}

Test(prove, chain_asks_the_second_only_where_the_first_is_open)
{
    Fixture t = fixture();
    Prover second = { .name = "yes", .satisfiable = always_yes };
    Prover *p = prover_chain(t.arena, t.prover, &second);
    cr_expect(prove_satisfiable(p, t.facts, C(t.x, "w == 4")).answer ==
              PROVE_no);
    cr_expect(second.stats.queries == 0);
    cr_expect(prove_satisfiable(p, t.facts, C(t.x, "k * k < 0")).answer ==
              PROVE_yes);
    cr_expect(second.stats.queries == 1 && p->stats.queries == 2);
    Prover *none = prover_absent(t.arena, "built without Z3");
    p = prover_chain(t.arena, t.prover, none);
    Proof open = prove_satisfiable(p, t.facts, C(t.x, "k * k < 0"));
    cr_expect(open.answer == PROVE_unknown);
    cr_expect_str_eq(open.reason, "built without Z3");
    fixture_free(&t);
}

/* ---- facts at a place ---------------------------------------------------- */

static Block *enter(Op *op, unsigned i)
{
    return op->blocks[i];
}

static Op *append(Module *m, Block *b, OpCode code, unsigned n_operands,
                  unsigned n_blocks)
{
    Op *op = op_new(m, code, (Loc){ 0, 0, 0 }, n_operands, 0, n_blocks);
    block_append(b, op);
    return op;
}

/* proc(N: size, A: tensor [N, 4, 8]):
 *     assert N % 8 == 0
 *     first
 *     for i in [0, N):
 *         if i + 4 < N:  then   else:  otherwise */
typedef struct Program {
    Ctx *ctx;
    Module *m;
    Arena *arena;
    Prover *prover;
    Op *assert_, *first, *loop, *branch, *then, *otherwise;
    Value *a;
} Program;

static Program program(const char *precondition, const char *condition)
{
    Program p = { .ctx = ctx_new(), .arena = arena_new() };
    p.m = module_new(p.ctx);
    p.prover = prover_layer1(p.arena);
    ExprCtx *x = p.m->exprs;
    Op *proc = append(p.m, p.m->body, OP_ctl_proc, 0, 1);
    op_set_str(p.m, proc, "name", "f");
    Block *body = enter(proc, 0);
    VarId n = block_add_var(p.m, body, "N", VAR_size);
    const Type *type = type_tensor(p.ctx, TK_tensor, TY_f32, 3,
                                   memref_get(p.ctx, "DRAM", 0, NULL));
    p.a = block_add_value(p.m, body, type, "A");
    p.a->shape = ARENA_ARRAY(p.m->arena, const Affine *, 3);
    p.a->shape[0] = affine_var(x, n);
    p.a->shape[1] = affine_const(x, 4);
    p.a->shape[2] = affine_const(x, 8);
    p.assert_ = append(p.m, body, OP_ctl_assert, 1, 0);
    p.assert_->operands[0] = opnd_cond(C(x, precondition));
    p.first = append(p.m, body, OP_ctl_pass, 0, 0);
    p.loop = append(p.m, body, OP_ctl_for, 2, 1);
    p.loop->operands[0] = opnd_index(affine_const(x, 0));
    p.loop->operands[1] = opnd_index(affine_var(x, n));
    block_add_var(p.m, enter(p.loop, 0), "i", VAR_iter);
    p.branch = append(p.m, enter(p.loop, 0), OP_ctl_if, 1, 2);
    p.branch->operands[0] = opnd_cond(C(x, condition));
    p.then = append(p.m, enter(p.branch, 0), OP_ctl_pass, 0, 0);
    p.otherwise = append(p.m, enter(p.branch, 1), OP_ctl_pass, 0, 0);
    return p;
}

static void program_free(Program *p)
{
    module_free(p->m);
    ctx_free(p->ctx);
    arena_free(p->arena);
}

static ProveAnswer holds_at(Program *p, Op *op, const char *goal)
{
    Facts *f = prove_facts_at(p->arena, p->m, op);
    return prove_implied(p->prover, f, C(p->m->exprs, goal)).answer;
}

Test(prove, facts_at_a_place)
{
    Program p = program("N % 8 == 0", "i + 4 < N");
    cr_expect(holds_at(&p, p.then, "i + 4 < N") == PROVE_yes);
    cr_expect(holds_at(&p, p.then, "i + 5 < N") == PROVE_no);
    cr_expect(holds_at(&p, p.otherwise, "i >= N - 4") == PROVE_yes);
    cr_expect(holds_at(&p, p.otherwise, "i + 4 < N") == PROVE_no);
    cr_expect(holds_at(&p, p.branch, "i < N and i >= 0") == PROVE_yes);
    cr_expect(holds_at(&p, p.branch, "i + 4 < N") == PROVE_no);
    cr_expect(holds_at(&p, p.loop, "i < N") == PROVE_no);
    cr_expect(holds_at(&p, p.first, "N >= 8") == PROVE_yes);
    cr_expect(holds_at(&p, p.then, "N >= 8") == PROVE_yes);
    cr_expect(holds_at(&p, p.assert_, "N >= 8") == PROVE_no);
    cr_expect(holds_at(&p, p.assert_, "N >= 1") == PROVE_yes);
    Facts *f = prove_facts_in(p.arena, p.m, p.loop, 0);
    cr_expect(prove_implied(p.prover, f, C(p.m->exprs, "i < N")).answer ==
              PROVE_yes);
    program_free(&p);
}

Test(prove, dense_tensors_have_known_strides)
{
    Program p = program("N % 8 == 0", "i + 4 < N");
    static const int64_t stride[] = { 32, 8, 1 };
    Facts *f = prove_facts_at(p.arena, p.m, p.first);
    for (unsigned d = 0; d < 3; d++) {
        const Affine *s = affine_stride(p.m->exprs, p.a, d);
        cr_expect(
            affine_equal(p.prover, f, s, affine_const(p.m->exprs, stride[d]))
                .answer == PROVE_yes);
    }
    program_free(&p);
}

Test(prove, written_configuration_gives_no_facts)
{
    Program p = program("N % 8 == 0", "Cfg.n == i");
    cr_expect(holds_at(&p, p.then, "Cfg.n < N") == PROVE_yes);
    Op *write = append(p.m, p.then->parent, OP_cfg_write, 0, 0);
    op_set_str(p.m, write, "field", "Cfg.n");
    cr_expect(holds_at(&p, p.then, "Cfg.n < N") == PROVE_unknown);
    op_set_str(p.m, write, "field", "Cfg.other");
    cr_expect(holds_at(&p, p.then, "Cfg.n < N") == PROVE_yes);
    program_free(&p);
}
