/* The .eir text where lit cannot reach: modules that are made, not read, and
 * modules that are malformed. */
#include "ir/eir.h"
#include "ir/name_map.h"
#include "ir/wellformed.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Made {
    Ctx *ctx;
    Module *m;
    Op *proc;
    Block *body;
} Made;

static Made made(void)
{
    Made d = { .ctx = ctx_new() };
    d.m = module_new(d.ctx);
    d.proc = op_new(d.m, OP_ctl_proc, (Loc){ 0 }, 0, 0, 1);
    op_set_str(d.m, d.proc, "name", "f");
    d.body = d.proc->blocks[0];
    block_append(d.m->body, d.proc);
    return d;
}

static void done(Made *d)
{
    module_free(d->m);
    ctx_free(d->ctx);
}

static Op *append(Made *d, OpCode code, unsigned n_operands, unsigned n_results)
{
    Op *op = op_new(d->m, code, (Loc){ 0 }, n_operands, n_results, 0);
    block_append(d->body, op);
    return op;
}

static Op *constant(Made *d, ScalarType t)
{
    Op *op = append(d, OP_arith_const, 0, 1);
    op_set_result(d->m, op, 0, type_scalar(d->ctx, t), NULL);
    op_set_int(d->m, op, "value", 1);
    return op;
}

static char *printed(const Module *m, const EirPrintOptions *options)
{
    StrBuf s = { 0 };
    eir_print(m, options, &s);
    char *text = arena_strdup(ctx_arena(m->ctx), strbuf_text(&s));
    strbuf_free(&s);
    return text;
}

/* The module's text, read and printed again. */
static char *again(const Module *m, const EirPrintOptions *options)
{
    const char *text = printed(m, options);
    uint32_t file = ctx_add_source(m->ctx, "again", text, strlen(text));
    Module *back = eir_parse(m->ctx, file, NULL);
    cr_assert(back, "does not read back:\n%s", text);
    char *second = printed(back, options);
    module_free(back);
    return second;
}

static void expect_fault(Made *d, const char *text)
{
    cr_expect(!module_wellformed(d->m, NULL));
    const Diag *g = ctx_diags(d->ctx);
    cr_assert(g, "no fault, expected: %s", text);
    cr_expect(strstr(g->message, text), "expected: %s\nfound: %s", text,
              g->message);
}

/* ---- printing ------------------------------------------------------------ */

Test(eir, sums_go_by_the_text_not_by_history)
{
    Made d = made();
    ExprCtx *x = d.m->exprs;
    VarId late = var_new(x, "late", VAR_index);
    VarId early = block_add_var(d.m, d.body, "early", VAR_index);
    BlockArg args[2] = { { NULL, early }, { NULL, late } };
    d.body->args = args;
    d.body->n_args = 2;
    const Affine *a = affine_var(x, late), *b = affine_var(x, early);
    const Affine *q = affine_floordiv(x, a, 3);
    const Affine *e = affine_add(x, affine_add(x, a, q), affine_scale(x, b, 2));
    e = affine_add(x, e, affine_mul(x, a, b));
    append(&d, OP_ctl_assert, 1, 0)->operands[0] =
        opnd_cond(cond_cmp(x, CMP_le, e, affine_const(x, 7)));
    const char *text = printed(d.m, NULL);
    cr_expect(strstr(text, "2 * %early + %late + %early * %late + "
                           "%late floordiv 3 < 8"),
              "%s", text);
    cr_expect_str_eq(again(d.m, NULL), text);
    done(&d);
}

Test(eir, any_name_becomes_one)
{
    static const char *const names[] = { "a b",      "",    "7",  "x.y",
                                         "\xc3\xa9", "a b", "a_b" };
    Made d = made();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        block_add_var(d.m, d.body, names[i], VAR_size);
    const char *text = printed(d.m, NULL);
    cr_expect_str_eq(text, "proc @f(%a_b: size, %v: size, %v7: size, "
                           "%x_y: size, %__: size, %a_b_1: size, "
                           "%a_b_2: size) {\n}\n");
    cr_expect_str_eq(again(d.m, NULL), text);
    done(&d);
}

Test(eir, malformed_modules_print_too)
{
    Made d = made();
    Op *c = constant(&d, TY_f32);
    Op *neg = append(&d, OP_arith_neg, 1, 1);
    neg->operands[0] = opnd_value(c->results[0]);
    op_set_result(d.m, neg, 0, type_scalar(d.ctx, TY_f32), NULL);
    op_detach(c);
    cr_expect(strstr(printed(d.m, NULL), "arith.neg %<undefined value 1>"));
    done(&d);
}

Test(eir, one_op_is_printed_as_it_stands_in_its_module)
{
    Made d = made();
    constant(&d, TY_f32);
    Op *c = constant(&d, TY_f64);
    StrBuf s = { 0 };
    eir_print_op(d.m, c, &s);
    cr_expect_str_eq(s.data, "  %1 = arith.const {value = 1} : f64\n");
    strbuf_free(&s);
    done(&d);
}

Test(eir, derived_attributes_show_on_demand)
{
    Made d = made();
    op_set_int(d.m, constant(&d, TY_f32), "derived.depth", 3);
    cr_expect(!strstr(printed(d.m, NULL), "derived"));
    EirPrintOptions options = { .derived = true };
    cr_expect(strstr(printed(d.m, &options), "derived.depth = 3"));
    cr_expect_str_eq(again(d.m, &options), printed(d.m, &options));
    done(&d);
}

Test(eir, every_kind_of_attribute_reads_back)
{
    Made d = made();
    ExprCtx *x = d.m->exprs;
    VarId n = block_add_var(d.m, d.body, "n", VAR_size);
    Op *op = append(&d, OP_ctl_pass, 0, 0);
    const Affine *list[2] = { affine_var(x, n), affine_const(x, -1) };
    Param four = { .kind = PARAM_int, .i = 4 };
    op_set_attr(d.m, op,
                (Attr){ .key = "a", .kind = ATTR_index, .index = list[0] });
    op_set_attr(
        d.m, op,
        (Attr){ .key = "b", .kind = ATTR_indices, .n = 2, .indices = list });
    op_set_attr(d.m, op,
                (Attr){ .key = "c",
                        .kind = ATTR_mem,
                        .mem = memref_get(d.ctx, "M", 1, &four) });
    op_set_attr(d.m, op,
                (Attr){ .key = "d",
                        .kind = ATTR_unit,
                        .unit = unitref_get(d.ctx, 2, "u", 1, &four) });
    const char *text = printed(d.m, NULL);
    cr_expect(strstr(text, "ctl.pass {a = index(%n), b = [%n, -1], c = "
                           "mem(M(4)), d = unit(2 * u(4))}"),
              "%s", text);
    cr_expect_str_eq(again(d.m, NULL), text);
    done(&d);
}

/* ---- what only a pass can get wrong -------------------------------------- */

Test(wellformed, a_use_before_the_definition)
{
    Made d = made();
    Op *c = constant(&d, TY_f32);
    Op *neg = append(&d, OP_arith_neg, 1, 1);
    neg->operands[0] = opnd_value(c->results[0]);
    op_set_result(d.m, neg, 0, type_scalar(d.ctx, TY_f32), NULL);
    cr_expect(module_wellformed(d.m, NULL));
    op_detach(c);
    op_insert_after(neg, c);
    expect_fault(&d, "'arith.neg' op uses value 1, which is not defined");
    done(&d);
}

Test(wellformed, a_result_without_a_type)
{
    Made d = made();
    append(&d, OP_arith_const, 0, 1);
    expect_fault(&d, "'arith.const' op has a result without a type");
    done(&d);
}

Test(wellformed, a_value_defined_twice)
{
    Made d = made();
    Op *c = constant(&d, TY_f32);
    Op *e = constant(&d, TY_f32);
    e->results[0] = c->results[0];
    expect_fault(&d, "'arith.const' op defines value 1 twice");
    done(&d);
}

Test(wellformed, a_variable_out_of_its_scope)
{
    Made d = made();
    ExprCtx *x = d.m->exprs;
    VarId v = var_new(x, "gone", VAR_iter);
    append(&d, OP_ctl_assert, 1, 0)->operands[0] =
        opnd_cond(cond_cmp(x, CMP_lt, affine_var(x, v), affine_const(x, 4)));
    expect_fault(&d, "uses variable '%gone', which is not defined here");
    done(&d);
}

Test(wellformed, a_missing_expression)
{
    Made d = made();
    append(&d, OP_ctl_assert, 1, 0)->operands[0] = opnd_cond(NULL);
    expect_fault(&d, "'ctl.assert' op condition is missing");
    done(&d);
}

Test(wellformed, a_procedure_inside_another)
{
    Made d = made();
    Op *inner = op_new(d.m, OP_ctl_proc, (Loc){ 0 }, 0, 0, 1);
    op_set_str(d.m, inner, "name", "g");
    block_append(d.body, inner);
    expect_fault(&d, "'proc' op stands at the top level only");
    done(&d);
}

Test(wellformed, a_statement_outside_procedures)
{
    Made d = made();
    block_append(d.m->body, op_new(d.m, OP_ctl_pass, (Loc){ 0 }, 0, 0, 0));
    expect_fault(&d, "'ctl.pass' op is to stand in a procedure or kernel");
    done(&d);
}

Test(wellformed, a_wrong_number_of_blocks)
{
    Made d = made();
    constant(&d, TY_f32)->n_blocks = 0;
    Op *dev = op_new(d.m, OP_par_device, (Loc){ 0 }, 0, 0, 0);
    block_append(d.body, dev);
    expect_fault(&d, "'par.device' op has 0 blocks, expected 1");
    done(&d);
}

/* ---- name maps ----------------------------------------------------------- */

Test(name_map, keeps_what_was_set_while_it_grows)
{
    enum { N = 1000 };
    Arena *a = arena_new();
    NameMap *map = name_map_new(a);
    char *names = arena_alloc(a, N);
    for (int i = 0; i < N; i++)
        name_map_set(map, names + i, names + i);
    for (int i = 0; i < N; i += 2)
        name_map_set(map, names + i, NULL);
    for (int i = 0; i < N; i++)
        cr_assert_eq(name_map_get(map, names + i),
                     i % 2 ? (void *)(names + i) : NULL);
    arena_free(a);
}
