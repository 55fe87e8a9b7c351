/* Edits take a statement's values along, and the journal finds it again. */
#include "ir/edit.h"

#include <criterion/criterion.h>

typedef struct Fixture {
    Ctx *ctx;
    Module *m;
    EditLog log;
    Op *a, *b, *c; /* stores in the module's body, each with a literal */
} Fixture;

static Op *store(Fixture *f, Value *x)
{
    Op *lit = op_new(f->m, OP_arith_const, (Loc){ 0 }, 0, 1, 0);
    Op *op = op_new(f->m, OP_mem_store, (Loc){ 0 }, 2, 0, 0);
    op->operands[0] = opnd_access(access_new(f->m, x));
    op->operands[1] = opnd_value(
        op_set_result(f->m, lit, 0, type_scalar(f->ctx, TY_f32), NULL));
    block_append(f->m->body, lit);
    block_append(f->m->body, op);
    return op;
}

static Fixture fixture_new(void)
{
    Fixture f = { .ctx = ctx_new() };
    f.m = module_new(f.ctx);
    f.log.arena = f.m->arena;
    Op *alloc = op_new(f.m, OP_mem_alloc, (Loc){ 0 }, 0, 1, 0);
    const Type *t = type_tensor(f.ctx, TK_tensor, TY_f32, 0, NULL);
    Value *x = op_set_result(f.m, alloc, 0, t, "x");
    block_append(f.m->body, alloc);
    f.a = store(&f, x);
    f.b = store(&f, x);
    f.c = store(&f, x);
    return f;
}

static void fixture_free(Fixture *f)
{
    module_free(f->m);
    ctx_free(f->ctx);
}

Test(edit, statements_of_a_block)
{
    Fixture f = fixture_new();
    cr_expect(stmt_next(f.a) == f.b);
    cr_expect(stmt_prev(f.b) == f.a);
    cr_expect(stmt_first(f.b) == f.b->prev);
    cr_expect(block_last_stmt(f.m->body) == f.c);
    cr_expect(block_first_stmt(f.m->body)->code == OP_mem_alloc);
    fixture_free(&f);
}

Test(edit, a_move_takes_the_values_along)
{
    Fixture f = fixture_new();
    Op *value = f.c->prev;
    edit_move_before(&f.log, f.a, f.c);
    cr_expect(f.c->prev == value);
    cr_expect(stmt_next(f.c) == f.a);
    cr_expect(stmt_next(f.b) == NULL);
    edit_move_after(&f.log, f.b, f.c);
    cr_expect(f.c->prev == value && stmt_prev(f.c) == f.b);
    cr_expect_eq(edit_forward(&f.log, 0, f.c->sid), f.c->sid);
    fixture_free(&f);
}

Test(edit, an_erased_statement_is_not_found)
{
    Fixture f = fixture_new();
    size_t later;
    edit_erase(&f.log, f.b);
    later = f.log.edits.len;
    cr_expect(stmt_next(f.a) == f.c);
    cr_expect_eq(edit_forward(&f.log, 0, f.b->sid), 0);
    cr_expect_eq(edit_forward(&f.log, later, f.b->sid), f.b->sid);
    cr_expect_eq(edit_forward(&f.log, 0, f.a->sid), f.a->sid);
    fixture_free(&f);
}

Test(edit, wrap_and_unwrap)
{
    Fixture f = fixture_new();
    Op *outer = op_new(f.m, OP_par_warps, (Loc){ 0 }, 0, 0, 1);
    edit_wrap(&f.log, f.a, f.b, outer);
    cr_expect(op_parent(f.a) == outer && op_parent(f.b) == outer);
    cr_expect(stmt_next(outer) == f.c);
    cr_expect(block_last_stmt(outer->blocks[0]) == f.b);
    edit_unwrap(&f.log, outer, outer->blocks[0]);
    cr_expect(stmt_next(f.a) == f.b && stmt_next(f.b) == f.c);
    cr_expect_eq(edit_forward(&f.log, 0, outer->sid), f.a->sid);
    cr_expect_str_eq(edit_kind_name(f.log.edits.data[0].kind), "insert");
    fixture_free(&f);
}

Test(edit, the_journal_is_completed_from_what_is_there)
{
    Fixture f = fixture_new();
    Op *outer = op_new(f.m, OP_par_warps, (Loc){ 0 }, 0, 0, 1);
    edit_wrap(&f.log, f.a, f.b, outer);
    Module *before = module_clone(f.m);
    size_t from = f.log.edits.len;
    op_detach(f.a);
    op_detach(f.b);
    op_detach(outer);
    op_insert_before(f.c, f.b);
    Op *more = op_new(f.m, OP_ctl_pass, (Loc){ 0 }, 0, 0, 0);
    block_append(f.m->body, more);
    edit_complete(&f.log, from, before, f.m);
    cr_expect_eq(edit_forward(&f.log, from, outer->sid), f.b->sid);
    cr_expect_eq(edit_forward(&f.log, from, f.a->sid), 0);
    cr_expect_eq(edit_forward(&f.log, from, f.c->sid), f.c->sid);
    const Edit *last = &f.log.edits.data[f.log.edits.len - 1];
    cr_expect(last->kind == EDIT_insert && last->sid == more->sid);
    size_t n = f.log.edits.len;
    edit_complete(&f.log, from, before, f.m);
    cr_expect_eq(f.log.edits.len, n, "what was said is not said again");
    module_free(before);
    fixture_free(&f);
}
