/* The interpreter: what a program means, what it refuses, and that the native
 * nests give the same bits as the plain way. */
#include "verify/interp.h"

#include "ir_build.h"

#include <criterion/criterion.h>
#include <string.h>

static Maker maker(void)
{
    Ctx *ctx = ctx_new();
    Maker k = { .ctx = ctx, .m = module_new(ctx) };
    return k;
}

static bool has_error(Maker *k, const char *text)
{
    StrBuf all = { 0 };
    for (const Diag *d = ctx_diags(k->ctx); d; d = d->next)
        diag_render(k->ctx, d, &all);
    bool found = strstr(strbuf_text(&all), text) != NULL;
    if (!found)
        cr_log_warn("%s", strbuf_text(&all));
    strbuf_free(&all);
    return found;
}

static bool run(Maker *k, Op *proc, const ProcArg *args, unsigned n, bool plain)
{
    Interp *in = interp_new(k->m);
    bool ok = interp_run(in, proc, args, n, &(InterpOptions){ .plain = plain });
    interp_free(in);
    return ok;
}

static Tensor *numbers(ScalarType t, int64_t rows, int64_t cols, int seed)
{
    int64_t extent[2] = { rows, cols };
    Tensor *x = tensor_new("t", t, 2, extent);
    for (int64_t i = 0; i < x->count; i++)
        tensor_set(x, i, (double)((i * 7 + seed * 3) % 9 - 4) + 0.25 * seed);
    return x;
}

/* def p(N: size, y: f32[N], x: f32[N]): for i: y[i] = x[i + shift] */
static Op *make_copy(Maker *k, int64_t shift)
{
    Op *p = mk_symbol(k, OP_ctl_proc, "p");
    VarId n = block_add_var(k->m, k->b, "N", VAR_size), i;
    Value *y =
        block_add_value(k->m, k->b, mk_tensor(k, TY_f32, 1, "DRAM"), "y");
    Value *x =
        block_add_value(k->m, k->b, mk_tensor(k, TY_f32, 1, "DRAM"), "x");
    mk_shape(y, mk_v(k, n), NULL);
    mk_shape(x, mk_v(k, n), NULL);
    mk_for(k, "i", mk_c(k, 0), mk_v(k, n), &i);
    mk_store(k, mk_at(k, y, mk_v(k, i), NULL),
             mk_load(k, mk_at(k, x, mk_lin(k, 1, i, shift), NULL)));
    return p;
}

Test(interp, copies)
{
    Maker k = maker();
    Op *p = make_copy(&k, 0);
    Tensor *y = tensor_new("y", TY_f32, 1, (int64_t[]){ 20 });
    Tensor *x = tensor_new("x", TY_f32, 1, (int64_t[]){ 20 });
    for (int i = 0; i < 20; i++)
        tensor_set(x, i, i);
    ProcArg args[3] = { { .value = 20 }, { .tensor = y }, { .tensor = x } };
    cr_assert(run(&k, p, args, 3, false));
    cr_assert_eq(tensor_get(y, 19), 19.0);
}

Test(interp, refuses_out_of_bounds)
{
    Maker k = maker();
    Op *p = make_copy(&k, 1);
    Tensor *y = tensor_new("y", TY_f32, 1, (int64_t[]){ 20 });
    Tensor *x = tensor_new("x", TY_f32, 1, (int64_t[]){ 20 });
    tensor_set_written(x);
    ProcArg args[3] = { { .value = 20 }, { .tensor = y }, { .tensor = x } };
    cr_assert_not(run(&k, p, args, 3, false));
    cr_assert(has_error(&k, "index 20 of dimension 0 is outside 'x'"));
    cr_assert(has_error(&k, "i = 19"));
}

Test(interp, refuses_poison)
{
    Maker k = maker();
    Op *p = make_copy(&k, 0);
    Tensor *y = tensor_new("y", TY_f32, 1, (int64_t[]){ 20 });
    Tensor *x = tensor_new("x", TY_f32, 1, (int64_t[]){ 20 });
    tensor_set_written(x);
    x->written[7] = 0;
    ProcArg args[3] = { { .value = 20 }, { .tensor = y }, { .tensor = x } };
    cr_assert_not(run(&k, p, args, 3, false));
    cr_assert(has_error(&k, "reads x[7], which was never written"));
}

Test(interp, refuses_bad_size_and_shape)
{
    Maker k = maker();
    Op *p = make_copy(&k, 0);
    Tensor *y = tensor_new("y", TY_f32, 1, (int64_t[]){ 20 });
    ProcArg args[3] = { { .value = 0 }, { .tensor = y }, { .tensor = y } };
    cr_assert_not(run(&k, p, args, 3, false));
    cr_assert(has_error(&k, "a size is at least 1"));
    args[0].value = 21;
    cr_assert_not(run(&k, p, args, 3, false));
    cr_assert(has_error(&k, "extent 0 should be 21"));
}

Test(interp, checks_asserts)
{
    Maker k = maker();
    Op *p = mk_symbol(&k, OP_ctl_proc, "p");
    VarId n = block_add_var(k.m, k.b, "N", VAR_size);
    Op *a = mk_op(&k, OP_ctl_assert, 1, 0, 0);
    a->operands[0] = opnd_cond(cond_cmp(k.m->exprs, CMP_eq,
                                        affine_mod(k.m->exprs, mk_v(&k, n), 8),
                                        mk_c(&k, 0)));
    ProcArg arg = { .value = 16 };
    cr_assert(run(&k, p, &arg, 1, false));
    arg.value = 17;
    cr_assert_not(run(&k, p, &arg, 1, false));
    cr_assert(has_error(&k, "this assert does not hold"));
}

/* C[M, N] += A[M, K] B[N, K]^T with A and B of another type. */
static Op *make_gemm(Maker *k, ScalarType in)
{
    Op *p = mk_symbol(k, OP_ctl_proc, "gemm");
    VarId n[3], v[3];
    const char *names[3] = { "M", "N", "K" };
    for (int i = 0; i < 3; i++)
        n[i] = block_add_var(k->m, k->b, names[i], VAR_size);
    Value *a = block_add_value(k->m, k->b, mk_tensor(k, in, 2, "DRAM"), "A");
    Value *b = block_add_value(k->m, k->b, mk_tensor(k, in, 2, "DRAM"), "B");
    Value *c =
        block_add_value(k->m, k->b, mk_tensor(k, TY_f32, 2, "DRAM"), "C");
    mk_shape(a, mk_v(k, n[0]), mk_v(k, n[2]));
    mk_shape(b, mk_v(k, n[1]), mk_v(k, n[2]));
    mk_shape(c, mk_v(k, n[0]), mk_v(k, n[1]));
    for (int i = 0; i < 3; i++)
        mk_for(k, names[i], mk_c(k, 0), mk_v(k, n[i]), &v[i]);
    Value *x = mk_load(k, mk_at(k, a, mk_v(k, v[0]), mk_v(k, v[2])));
    Value *y = mk_load(k, mk_at(k, b, mk_v(k, v[1]), mk_v(k, v[2])));
    if (in != TY_f32) {
        x = mk_cast(k, TY_f32, x);
        y = mk_cast(k, TY_f32, y);
    }
    mk_fma(k, mk_at(k, c, mk_v(k, v[0]), mk_v(k, v[1])), x, y);
    return p;
}

static void compare_gemm(ScalarType in, int64_t m, int64_t n, int64_t depth)
{
    Maker k = maker();
    Op *p = make_gemm(&k, in);
    Tensor *a = numbers(in, m, depth, 1), *b = numbers(in, n, depth, 2);
    for (int64_t i = 0; i < a->count; i++)
        tensor_set(a, i, tensor_get(a, i) / 3.0);
    Tensor *c = numbers(TY_f32, m, n, 3), *d = tensor_copy(c);
    ProcArg args[6] = { { .value = m },  { .value = n },  { .value = depth },
                        { .tensor = a }, { .tensor = b }, { .tensor = c } };
    cr_assert(run(&k, p, args, 6, false));
    args[5].tensor = d;
    cr_assert(run(&k, p, args, 6, true));
    cr_assert(memcmp(c->bytes, d->bytes, (size_t)(c->count * 4)) == 0);
}

Test(nest, contraction_is_the_plain_one)
{
    compare_gemm(TY_bf16, 7, 35, 19);
    compare_gemm(TY_f32, 33, 1, 40);
    compare_gemm(TY_f16, 4, 16, 1);
    compare_gemm(TY_e4m3, 1, 1, 64);
}

Test(nest, contraction_steps_back_on_poison)
{
    Maker k = maker();
    Op *p = make_gemm(&k, TY_f32);
    Tensor *a = numbers(TY_f32, 4, 4, 1), *b = numbers(TY_f32, 4, 4, 2);
    Tensor *c = numbers(TY_f32, 4, 4, 3);
    b->written[5] = 0;
    ProcArg args[6] = { { .value = 4 },  { .value = 4 },  { .value = 4 },
                        { .tensor = a }, { .tensor = b }, { .tensor = c } };
    cr_assert_not(run(&k, p, args, 6, false));
    cr_assert(has_error(&k, "which was never written"));
    cr_assert(has_error(&k, "M = 0, N = 1, K = 1"));
}

/* A box of a tensor map that hangs over the edge: zeros come in, nothing goes
 * out. load: dst[8, 8] = map window at (4, 4) of src[6, 6]. */
static void map_box(bool plain, bool load)
{
    Maker k = maker();
    Op *p = mk_symbol(&k, OP_ctl_proc, "box");
    Value *small =
        block_add_value(k.m, k.b, mk_tensor(&k, TY_f32, 2, "DRAM"), "small");
    Value *big =
        block_add_value(k.m, k.b, mk_tensor(&k, TY_f32, 2, "DRAM"), "big");
    VarId i, j;
    mk_shape(small, mk_c(&k, 6), mk_c(&k, 6));
    mk_shape(big, mk_c(&k, 8), mk_c(&k, 8));
    const Type *map =
        type_tensor(k.ctx, TK_map, TY_f32, 2, mk_map_mem(&k, 0, 8, 8));
    Op *w = mk_op(&k, OP_mem_window, 1, 1, 0);
    w->operands[0] = mk_box(&k, small, mk_c(&k, 0), 6, mk_c(&k, 0), 6);
    Value *whole = op_set_result(k.m, w, 0, map, "map");
    mk_shape(whole, mk_c(&k, 6), mk_c(&k, 6));
    Op *w2 = mk_op(&k, OP_mem_window, 1, 1, 0);
    w2->operands[0] = mk_box(&k, whole, mk_c(&k, 4), 8, mk_c(&k, 4), 8);
    Value *part = op_set_result(k.m, w2, 0, map, "part");
    mk_shape(part, mk_c(&k, 8), mk_c(&k, 8));
    mk_for(&k, "i", mk_c(&k, 0), mk_c(&k, 8), &i);
    mk_for(&k, "j", mk_c(&k, 0), mk_c(&k, 8), &j);
    Operand inner = mk_at(&k, part, mk_v(&k, i), mk_v(&k, j));
    Operand outer = mk_at(&k, big, mk_v(&k, i), mk_v(&k, j));
    mk_store(&k, load ? outer : inner, mk_load(&k, load ? inner : outer));
    Tensor *s = numbers(TY_f32, 6, 6, 1), *b = numbers(TY_f32, 8, 8, 2);
    Tensor *old = tensor_copy(s);
    ProcArg args[2] = { { .tensor = s }, { .tensor = b } };
    cr_assert(run(&k, p, args, 2, plain));
    for (int64_t r = 0; r < 8; r++)
        for (int64_t c = 0; c < 8; c++) {
            bool in = r < 2 && c < 2;
            if (load)
                cr_assert_eq(tensor_get(b, 8 * r + c),
                             in ? tensor_get(s, 6 * (r + 4) + c + 4) : 0.0);
            else if (in)
                cr_assert_eq(tensor_get(s, 6 * (r + 4) + c + 4),
                             tensor_get(b, 8 * r + c));
        }
    cr_assert_eq(tensor_get(s, 0), tensor_get(old, 0));
}

Test(interp, map_windows_read_zero_outside)
{
    map_box(true, true);
    map_box(false, true);
}

Test(interp, map_windows_drop_writes_outside)
{
    map_box(true, false);
    map_box(false, false);
}

Test(interp, a_window_of_a_plain_tensor_must_stay_inside)
{
    Maker k = maker();
    Op *p = mk_symbol(&k, OP_ctl_proc, "w");
    Value *x = block_add_value(k.m, k.b, mk_tensor(&k, TY_f32, 2, "DRAM"), "x");
    mk_shape(x, mk_c(&k, 4), mk_c(&k, 4));
    Op *w = mk_op(&k, OP_mem_window, 1, 1, 0);
    w->operands[0] = mk_box(&k, x, mk_c(&k, 2), 3, mk_c(&k, 0), 4);
    op_set_result(k.m, w, 0, type_tensor(k.ctx, TK_window, TY_f32, 2, NULL),
                  "w");
    ProcArg arg = { .tensor = numbers(TY_f32, 4, 4, 1) };
    cr_assert_not(run(&k, p, &arg, 1, false));
    cr_assert(has_error(&k, "interval [2, 5) of dimension 0 leaves 'x'"));
}

Test(interp, samples_tasks)
{
    Maker k = maker();
    Op *p = mk_symbol(&k, OP_ctl_proc, "tasks");
    Value *x = block_add_value(k.m, k.b, mk_tensor(&k, TY_f32, 1, "DRAM"), "x");
    VarId i;
    mk_shape(x, mk_c(&k, 10), NULL);
    Op *loop = mk_for(&k, "i", mk_c(&k, 0), mk_c(&k, 10), &i);
    op_set_str(k.m, loop, "mode", "tasks");
    mk_store(&k, mk_at(&k, x, mk_v(&k, i), NULL), mk_const(&k, TY_f32, 1.0));
    ProcArg arg = { .tensor = tensor_new("x", TY_f32, 1, (int64_t[]){ 10 }) };
    bool sample[10] = { [3] = true };
    Interp *in = interp_new(k.m);
    cr_assert(interp_run(
        in, p, &arg, 1,
        &(InterpOptions){ .sample = sample, .n_sample = 10, .plain = true }));
    cr_assert_eq(interp_task_count(in), 10);
    for (int e = 0; e < 10; e++)
        cr_assert_eq(arg.tensor->written[e], e == 3);
    interp_free(in);
}
