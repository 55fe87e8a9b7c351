/* What the manager does with passes that fail, that break the module, that
 * require checks, and with derived attributes. */
#include "ir/eir.h"
#include "ir/wellformed.h"
#include "passes/pass.h"

#include <criterion/criterion.h>
#include <string.h>

static const char program[] = "proc @f(%n: size, %x: tensor<f32, DRAM>[%n]) {\n"
                              "  %0 = mem.load %x[0]\n"
                              "  mem.store %x[1], %0\n"
                              "}\n";

typedef struct Fixture {
    Ctx *ctx;
    Module *m;
    PassManager pm;
    Pipeline pipeline;
    int checks_run;
    PassVerdict verdict;
} Fixture;

static Fixture fixture(void)
{
    Fixture f = { .ctx = ctx_new() };
    uint32_t file = ctx_add_source(f.ctx, "t.eir", program, sizeof program - 1);
    f.m = eir_parse(f.ctx, file, NULL);
    cr_assert(f.m && module_wellformed(f.m, NULL));
    f.pm = (PassManager){ .ctx = f.ctx, .verify_each = true };
    return f;
}

static void done(Fixture *f)
{
    module_free(f->m);
    ctx_free(f->ctx);
}

static void add(Fixture *f, const PassInfo *pass)
{
    PassRun run = { .pass = pass };
    VEC_PUSH(ctx_arena(f->ctx), &f->pipeline.runs, run);
}

static bool run(Fixture *f)
{
    return pipeline_run(&f->pm, &f->pipeline, &f->m);
}

static Op *first_op(const Module *m)
{
    return m->body->first->blocks[0]->first;
}

static bool erase_store(PassCtx *pc, Module *m)
{
    (void)pc;
    op_detach(first_op(m)->next);
    return true;
}

static bool erase_then_fail(PassCtx *pc, Module *m)
{
    op_detach(first_op(m));
    diag_error(pc->ctx, (Loc){ 0 }, "test", "no good");
    return false;
}

static bool fail_silently(PassCtx *pc, Module *m)
{
    (void)pc;
    (void)m;
    return false;
}

static bool use_before_definition(PassCtx *pc, Module *m)
{
    (void)pc;
    Op *load = first_op(m), *store = load->next;
    op_detach(load);
    op_insert_after(store, load);
    return true;
}

static const PassInfo erasing = { .name = "erase",
                                  .run = erase_store,
                                  .options = "",
                                  .requires = "",
                                  .preserves = "" };

Test(pass_manager, a_result_takes_the_place_of_the_module)
{
    Fixture f = fixture();
    Module *before = f.m;
    add(&f, &erasing);
    cr_expect(run(&f));
    cr_expect(f.m != before);
    cr_expect(first_op(f.m)->next == NULL);
    done(&f);
}

Test(pass_manager, a_failed_pass_leaves_the_module)
{
    static const PassInfo pass = { .name = "fails",
                                   .run = erase_then_fail,
                                   .options = "",
                                   .requires = "",
                                   .preserves = "" };
    Fixture f = fixture();
    add(&f, &erasing);
    add(&f, &pass);
    cr_expect(!run(&f));
    cr_expect_eq(f.pm.failed, 1u);
    cr_expect(first_op(f.m)->code == OP_mem_load);
    cr_expect(module_wellformed(f.m, NULL));
    done(&f);
}

Test(pass_manager, a_pass_that_fails_without_a_word_is_our_fault)
{
    static const PassInfo pass = { .name = "silent",
                                   .run = fail_silently,
                                   .options = "",
                                   .requires = "",
                                   .preserves = "" };
    Fixture f = fixture();
    add(&f, &pass);
    cr_expect(!run(&f));
    cr_expect_str_eq(ctx_diags(f.ctx)->code, "internal");
    cr_expect(strstr(ctx_diags(f.ctx)->message, "'silent'"));
    done(&f);
}

Test(pass_manager, a_malformed_result_is_refused_and_names_the_pass)
{
    static const PassInfo pass = { .name = "breaks",
                                   .run = use_before_definition,
                                   .options = "",
                                   .requires = "",
                                   .preserves = "" };
    Fixture f = fixture();
    add(&f, &pass);
    cr_expect(!run(&f));
    cr_expect_str_eq(ctx_diags(f.ctx)->code, "internal");
    cr_expect_str_eq(ctx_diags(f.ctx)->message,
                     "after pass 'breaks': 'mem.store' op uses value 2, which "
                     "is not defined before it");
    cr_expect(module_wellformed(f.m, NULL), "the module before is kept");
    ctx_clear_diags(f.ctx);
    f.pm.verify_each = false;
    cr_expect(run(&f), "verification can be turned off");
    done(&f);
}

/* ---- checks that passes require ------------------------------------------ */

static void count_check(PassCtx *pc, Module *m, void *user)
{
    Fixture *f = user;
    (void)m;
    f->checks_run++;
    pass_finding(pc, (PassFinding){ "check-par", "f", f->verdict, NULL });
}

static const PassInfo needs_check = { .name = "needs",
                                      .run = erase_store,
                                      .options = "",
                                      .requires = "check-par",
                                      .preserves = "" };

static void give_check(Fixture *f, PassCheck *check, PassVerdict verdict)
{
    *check = (PassCheck){ "check-par", count_check, f };
    f->verdict = verdict;
    f->pm.checks = check;
    f->pm.n_checks = 1;
}

Test(pass_manager, a_required_check_runs_before_the_pass)
{
    Fixture f = fixture();
    PassCheck check;
    give_check(&f, &check, PASS_proved);
    add(&f, &needs_check);
    cr_expect(run(&f));
    cr_expect_eq(f.checks_run, 1);
    cr_expect_eq(f.pm.findings.len, 1u);
    done(&f);
}

static void report_from_here(PassCtx *pc, Module *m, void *user)
{
    char proc[] = "f", text[] = "all sizes";
    (void)m;
    (void)user;
    pass_finding(pc, (PassFinding){ "check-par", proc, PASS_proved, text });
    proc[0] = text[0] = '?';
}

Test(pass_manager, a_finding_keeps_its_texts)
{
    Fixture f = fixture();
    PassCheck check = { "check-par", report_from_here, NULL };
    f.pm.checks = &check;
    f.pm.n_checks = 1;
    add(&f, pass_find("check-par"));
    cr_expect(run(&f));
    cr_assert_eq(f.pm.findings.len, 1u);
    cr_expect_str_eq(f.pm.findings.data[0].proc, "f");
    cr_expect_str_eq(f.pm.findings.data[0].text, "all sizes");
    done(&f);
}

Test(pass_manager, a_check_that_ran_is_not_repeated)
{
    Fixture f = fixture();
    PassCheck check;
    give_check(&f, &check, PASS_proved);
    add(&f, pass_find("check-par"));
    add(&f, &needs_check);
    cr_expect(run(&f));
    cr_expect_eq(f.checks_run, 1);
    done(&f);
}

Test(pass_manager, a_change_makes_a_check_stale)
{
    static const PassInfo nothing = { .name = "cse",
                                      .options = "",
                                      .requires = "check-par",
                                      .preserves = "",
                                      .run = erase_store };
    Fixture f = fixture();
    PassCheck check;
    give_check(&f, &check, PASS_proved);
    add(&f, pass_find("check-par"));
    add(&f, pass_find("canonicalize"));
    add(&f, &nothing);
    cr_expect(run(&f));
    cr_expect_eq(f.checks_run, 2);
    done(&f);
}

Test(pass_manager, a_refuted_requirement_stops_the_pass)
{
    Fixture f = fixture();
    PassCheck check;
    give_check(&f, &check, PASS_refuted);
    add(&f, &needs_check);
    cr_expect(!run(&f));
    cr_expect(first_op(f.m)->next != NULL, "the pass did not run");
    done(&f);
}

Test(pass_manager, an_undecided_requirement_does_not)
{
    Fixture f = fixture();
    PassCheck check;
    give_check(&f, &check, PASS_unknown);
    add(&f, &needs_check);
    cr_expect(run(&f));
    done(&f);
}

Test(pass_manager, an_absent_check_says_so)
{
    Fixture f = fixture();
    add(&f, pass_find("check-async"));
    cr_expect(run(&f));
    cr_assert_eq(f.pm.findings.len, 1u);
    cr_expect_eq(f.pm.findings.data[0].verdict, PASS_not_run);
    done(&f);
}

/* ---- derived attributes -------------------------------------------------- */

static bool derive(PassCtx *pc, Module *m)
{
    (void)pc;
    op_set_int(m, first_op(m), "derived.offset", 4);
    return true;
}

static const PassInfo derives = { .name = "derive",
                                  .run = derive,
                                  .options = "",
                                  .requires = "",
                                  .preserves = "derived" };

Test(pass_manager, derived_attributes_last_while_they_are_preserved)
{
    Fixture f = fixture();
    add(&f, &derives);
    add(&f, pass_find("cse"));
    cr_expect(run(&f));
    cr_expect_eq(op_attr_int(first_op(f.m), "derived.offset", 0), 4);
    done(&f);
}

Test(pass_manager, other_passes_drop_them)
{
    Fixture f = fixture();
    add(&f, &derives);
    add(&f, pass_find("canonicalize"));
    cr_expect(run(&f));
    cr_expect_null(op_attr(first_op(f.m), "derived.offset"));
    done(&f);
}

/* ---- rows ---------------------------------------------------------------- */

Test(pass_manager, rows_are_complete)
{
    const PassInfo *p;
    for (unsigned i = 0; (p = pass_at(i)); i++) {
        cr_expect(p->name && *p->name);
        cr_expect(p->doc && *p->doc, "%s", p->name);
        cr_expect(p->options && p->requires && p->preserves, "%s", p->name);
        cr_expect_eq(pass_find(p->name), p, "%s is there twice", p->name);
        cr_expect(p->run || !strcmp(p->preserves, "all"),
                  "%s is a check and changes nothing", p->name);
    }
}

Test(pass_manager, default_pipelines_parse)
{
    static const char *const forms[] = { "seq", "par", "lower", "async" };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        Ctx *ctx = ctx_new();
        Pipeline p = { 0 };
        cr_expect(pipeline_parse(ctx, pipeline_default(forms[i]), &p));
        cr_expect(p.runs.len > 0);
        ctx_free(ctx);
    }
    cr_expect_null(pipeline_default("none"));
}
