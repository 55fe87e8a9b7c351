/* The IR's data structures: arenas, interning, editing, windows, copies. */
#include "ir/eir.h"
#include "ir/ir.h"
#include "ir/sem.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Fixture {
    Ctx *ctx;
    Module *m;
} Fixture;

static Fixture fixture_new(void)
{
    Ctx *ctx = ctx_new();
    return (Fixture){ ctx, module_new(ctx) };
}

static void fixture_free(Fixture f)
{
    module_free(f.m);
    ctx_free(f.ctx);
}

static const Affine *num(Fixture f, int64_t n)
{
    return affine_const(f.m->exprs, n);
}

/* proc @p(%N: size, %x: f32[N, 64]) with a loop over N. */
static Op *small_proc(Fixture f)
{
    Op *proc = op_new(f.m, OP_ctl_proc, (Loc){ 0 }, 0, 0, 1);
    op_set_str(f.m, proc, "name", "p");
    block_append(f.m->body, proc);
    Block *b = proc->blocks[0];
    VarId n = block_add_var(f.m, b, "N", VAR_size);
    const MemRef *mem = memref_get(f.ctx, "DRAM", 0, NULL);
    Value *x = block_add_value(
        f.m, b, type_tensor(f.ctx, TK_tensor, TY_f32, 2, mem), "x");
    x->shape[0] = affine_var(f.m->exprs, n);
    x->shape[1] = num(f, 64);
    Op *loop = op_new(f.m, OP_ctl_for, (Loc){ 0 }, 2, 0, 1);
    loop->operands[0] = opnd_index(num(f, 0));
    loop->operands[1] = opnd_index(affine_var(f.m->exprs, n));
    VarId i = block_add_var(f.m, loop->blocks[0], "i", VAR_iter);
    block_append(b, loop);
    Op *load = op_new(f.m, OP_mem_load, (Loc){ 0 }, 1, 1, 0);
    Access *a = access_new(f.m, x);
    a->dims[0] = (AccessDim){ .lo = affine_var(f.m->exprs, i) };
    a->dims[1] = (AccessDim){ .lo = num(f, 3) };
    load->operands[0] = opnd_access(a);
    op_set_result(f.m, load, 0, type_scalar(f.ctx, TY_f32), NULL);
    block_append(loop->blocks[0], load);
    return proc;
}

Test(ir, arena_gives_zeroed_separate_memory)
{
    Arena *a = arena_new();
    unsigned char *big = arena_alloc(a, 1 << 20);
    unsigned char *small = arena_alloc(a, 10);
    memset(big, 7, 1 << 20);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(small[i], 0);
    VEC(int) v = { 0 };
    for (int i = 0; i < 1000; i++)
        VEC_PUSH(a, &v, i);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(v.data[i], i);
    arena_free(a);
}

Test(ir, equal_types_are_one)
{
    Fixture f = fixture_new();
    Param p = { .kind = PARAM_int, .i = 128 };
    const MemRef *a = memref_get(f.ctx, "Sm90_SmemSwizzled", 1, &p);
    const MemRef *b = memref_get(f.ctx, "Sm90_SmemSwizzled", 1, &p);
    p.i = 64;
    const MemRef *c = memref_get(f.ctx, "Sm90_SmemSwizzled", 1, &p);
    cr_assert_eq(a, b);
    cr_assert_neq(a, c);
    cr_assert_eq(type_tensor(f.ctx, TK_tensor, TY_bf16, 2, a),
                 type_tensor(f.ctx, TK_tensor, TY_bf16, 2, b));
    cr_assert_neq(type_tensor(f.ctx, TK_tensor, TY_bf16, 2, a),
                  type_tensor(f.ctx, TK_tensor, TY_f16, 2, a));
    StrBuf text = { 0 };
    memref_print(&text, a, true);
    cr_assert_str_eq(strbuf_text(&text), "Sm90_SmemSwizzled(128, )");
    strbuf_free(&text);
    fixture_free(f);
}

Test(ir, asking_for_what_is_there_takes_no_memory)
{
    Fixture f = fixture_new();
    Param p[12];
    for (int i = 0; i < 12; i++)
        p[i] = (Param){ .kind = PARAM_int, .name = "p", .i = i };
    const Param *few = param_intern(f.ctx, 2, p);
    const Param *many = param_intern(f.ctx, 12, p);
    size_t bytes = arena_bytes(ctx_arena(f.ctx));
    for (int i = 0; i < 10000; i++) {
        cr_assert_eq(param_intern(f.ctx, 2, p), few);
        cr_assert_eq(param_intern(f.ctx, 12, p), many);
    }
    cr_assert_eq(arena_bytes(ctx_arena(f.ctx)), bytes);
    p[11].i = 12;
    cr_assert_neq(param_intern(f.ctx, 12, p), many);
    fixture_free(f);
}

Test(ir, every_row_is_complete)
{
    for (int c = OP_none + 1; c < OP_count; c++) {
        const OpInfo *row = op_info((OpCode)c);
        cr_assert(row->dialect && row->name && row->operands && row->attrs);
        cr_assert(row->doc && strlen(row->doc) > 4, "%s has no doc", row->name);
        StrBuf name = { 0 };
        eir_op_name((OpCode)c, &name);
        bool dotted = strchr(strbuf_text(&name), '.') != NULL;
        cr_assert(!dotted || op_code_from_name(strbuf_text(&name)) == (OpCode)c,
                  "%s", strbuf_text(&name));
        strbuf_free(&name);
    }
    cr_assert_eq(op_code_from_name("mem.nothing"), OP_none);
    cr_assert_eq(op_code_from_name("nodot"), OP_none);
}

Test(ir, ops_move_between_places)
{
    Fixture f = fixture_new();
    Block *b = f.m->body;
    Op *ops[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = op_new(f.m, OP_ctl_pass, (Loc){ 0 }, 0, 0, 0);
        block_append(b, ops[i]);
    }
    op_detach(ops[1]);
    cr_assert_eq(ops[0]->next, ops[2]);
    op_insert_before(ops[0], ops[1]);
    cr_assert_eq(b->first, ops[1]);
    op_detach(ops[2]);
    op_insert_after(ops[0], ops[2]);
    cr_assert_eq(b->last, ops[2]);
    cr_assert_neq(ops[0]->sid, ops[1]->sid);
    fixture_free(f);
}

Test(ir, windows_compose_to_their_root)
{
    Fixture f = fixture_new();
    Op *proc = small_proc(f);
    Value *x = proc->blocks[0]->args[1].value;
    Op *w = op_new(f.m, OP_mem_window, (Loc){ 0 }, 1, 1, 0);
    Access *a = access_new(f.m, x);
    a->dims[0] = (AccessDim){ .kind = DIM_point, .lo = num(f, 5) };
    a->dims[1] =
        (AccessDim){ .kind = DIM_interval, .lo = num(f, 8), .len = num(f, 16) };
    w->operands[0] = opnd_access(a);
    Value *v = op_set_result(
        f.m, w, 0, type_tensor(f.ctx, TK_window, TY_f32, 1, x->type->mem), "w");
    v->shape[0] = num(f, 16);
    block_append(proc->blocks[0], w);
    Access *inner = access_new(f.m, v);
    inner->dims[0] = (AccessDim){ .kind = DIM_point, .lo = num(f, 2) };
    const Access *root = access_compose(f.m, inner);
    cr_assert_eq(root->base, x);
    cr_assert_eq(root->dims[0].lo, num(f, 5));
    cr_assert_eq(root->dims[1].lo, num(f, 10));
    cr_assert_eq(root->dims[1].kind, DIM_point);
    cr_assert_eq(value_root(v), x);
    fixture_free(f);
}

Test(ir, a_clone_stands_alone)
{
    Fixture f = fixture_new();
    Op *proc = small_proc(f);
    Module *copy = module_clone(f.m);
    module_free(f.m);
    Op *p = module_symbol(copy, "p");
    cr_assert(p);
    cr_assert_neq(p, proc);
    Op *loop = p->blocks[0]->first;
    Op *load = loop->blocks[0]->first;
    Access *a = load->operands[0].u.access;
    cr_assert_eq(a->base, p->blocks[0]->args[1].value);
    VarId v;
    cr_assert(affine_is_var(a->dims[0].lo, &v));
    cr_assert_eq(v, loop->blocks[0]->args[0].var);
    cr_assert(affine_is_var(a->base->shape[0], &v));
    cr_assert_eq(v, p->blocks[0]->args[0].var);
    module_free(copy);
    ctx_free(f.ctx);
}

/* proc @<name>() that calls another. */
static Op *calling_proc(Fixture f, const char *name, const char *callee)
{
    Op *proc = op_new(f.m, OP_ctl_proc, (Loc){ 0 }, 0, 0, 1);
    op_set_str(f.m, proc, "name", name);
    Op *call = op_new(f.m, OP_ctl_call, (Loc){ 0 }, 0, 0, 0);
    op_set_str(f.m, call, "callee", callee);
    block_append(proc->blocks[0], call);
    block_append(f.m->body, proc);
    return proc;
}

Test(ir, a_part_has_what_it_names_and_nothing_else)
{
    Fixture f = fixture_new();
    Op *outer = calling_proc(f, "outer", "inner");
    calling_proc(f, "other", "p");
    calling_proc(f, "inner", "p");
    Op *p = small_proc(f), *copy = NULL;
    uint32_t loop = p->blocks[0]->first->sid;
    Module *part = module_part(f.m, outer, &copy);
    cr_assert_eq(var_count(part->exprs), var_count(f.m->exprs));
    cr_assert_eq(part->next_sid, f.m->next_sid);
    Op *alone_copy = NULL;
    Module *alone = module_part(f.m, p, &alone_copy);
    module_free(f.m);
    cr_assert_eq(module_symbol(part, "outer"), copy);
    cr_assert_eq(part->body->first, copy);
    cr_assert_str_eq(op_attr_str(copy->next, "name", ""), "inner");
    cr_assert_eq(part->body->last, copy->next->next);
    cr_assert_null(module_symbol(part, "other"));
    cr_assert_eq(module_symbol(part, "p")->blocks[0]->first->sid, loop);
    cr_assert_eq(alone->body->first, alone_copy);
    cr_assert_eq(alone->body->last, alone_copy);
    module_free(alone);
    module_free(part);
    ctx_free(f.ctx);
}

Test(ir, a_copy_can_put_a_constant_for_the_iterator)
{
    Fixture f = fixture_new();
    Op *proc = small_proc(f);
    Op *loop = proc->blocks[0]->first;
    CloneMap *cm = clone_map_new(f.m, f.m);
    clone_map_index(cm, loop->blocks[0]->args[0].var, num(f, 7));
    Op *copy = op_clone(cm, loop->blocks[0]->first);
    cr_assert_eq(copy->operands[0].u.access->dims[0].lo, num(f, 7));
    cr_assert_neq(copy->results[0], loop->blocks[0]->first->results[0]);
    fixture_free(f);
}

Test(ir, accesses_say_what_is_read_and_written)
{
    Fixture f = fixture_new();
    Op *proc = small_proc(f);
    Op *load = proc->blocks[0]->first->blocks[0]->first;
    OpAccessVec out = { 0 };
    op_accesses(f.m, load, f.m->arena, &out);
    cr_assert_eq(out.len, 1u);
    cr_assert_eq(out.data[0].flags, (unsigned)ACC_READ);
    fixture_free(f);
}

Test(ir, errors_past_the_limit_are_counted)
{
    Ctx *ctx = ctx_new();
    ctx_set_max_errors(ctx, 2);
    for (int i = 0; i < 5; i++)
        diag_error(ctx, (Loc){ 0 }, "test", "error %d", i);
    unsigned kept = 0;
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        kept++;
    cr_assert_eq(kept, 2u);
    cr_assert_eq(ctx_error_count(ctx), 5u);
    ctx_free(ctx);
}

Test(ir, a_diagnostic_shows_its_line_and_caret)
{
    Ctx *ctx = ctx_new();
    uint32_t file = ctx_add_source(ctx, "a.exo", "one\ntwo three\n", 14);
    Diag *d = diag_error(ctx, (Loc){ file, 2, 5 }, "syntax", "expected x");
    diag_note(ctx, d, (Loc){ file, 1, 1 }, "begins here");
    diag_fix(ctx, d, "write x");
    StrBuf out = { 0 };
    diag_render(ctx, d, &out);
    cr_assert_str_eq(strbuf_text(&out), "a.exo:2:5: error: expected x\n"
                                        "  two three\n"
                                        "      ^\n"
                                        "  help: write x\n"
                                        "a.exo:1:1: note: begins here\n"
                                        "  one\n"
                                        "  ^\n");
    strbuf_free(&out);
    ctx_free(ctx);
}
