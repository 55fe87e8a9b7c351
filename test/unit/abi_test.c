/* The calling convention: the list of parameters, and what the hash tells
 * apart. */
#include "ir/eir.h"
#include "passes/abi.h"

#include <criterion/criterion.h>
#include <string.h>

#define COORDS "%cta: coord, %warp: coord, %lane: coord"
#define KERNEL(name, params, threads, smem)                          \
    "async.kernel @" name "(" params COORDS ") {blockDim = " threads \
    ", clusterDim = 1, blocks_per_sm = 1, smem_bytes = " smem "} {\n}\n"

static Op *kernel_of(Ctx *ctx, const char *text, Module **m)
{
    uint32_t file = ctx_add_source(ctx, "test.eir", text, strlen(text));
    *m = eir_parse(ctx, file, NULL);
    cr_assert(*m && (*m)->body->first);
    return (*m)->body->first;
}

static uint64_t hash_of(const char *text)
{
    Ctx *ctx = ctx_new();
    Module *m;
    Op *kernel = kernel_of(ctx, text, &m);
    uint64_t h = kernel_abi_hash(ctx, kernel);
    module_free(m);
    ctx_free(ctx);
    return h;
}

Test(abi, parameters_in_order)
{
    static const struct {
        AbiKind kind;
        unsigned arg, bytes, align;
    } want[] = {
        { ABI_control, 0, 4, 4 }, { ABI_pointer, 1, 8, 8 },
        { ABI_pointer, 2, 8, 8 }, { ABI_stride, 2, 4, 4 },
        { ABI_stride, 2, 4, 4 },  { ABI_scalar, 3, 2, 2 },
        { ABI_array, 4, 24, 4 },  { ABI_map, 5, 128, 64 },
    };
    Ctx *ctx = ctx_new();
    Arena *arena = arena_new();
    Module *m;
    AbiParamVec got = { 0 };
    Op *kernel =
        kernel_of(ctx,
                  KERNEL("k",
                         "%N: size, %x: tensor<f32, CudaGmemLinear>[%N], "
                         "%w: window<f32, CudaGmemLinear>[%N, 4], "
                         "%a: tensor<bf16, CudaGridConstant>, "
                         "%b: tensor<f32, CudaGridConstant>[2, 3], "
                         "%t: map<f32, Sm90_tensorMap(0, 8)>[%N], ",
                         "64", "0"),
                  &m);
    cr_assert(kernel_abi(ctx, kernel, arena, &got));
    cr_assert_eq(got.len, sizeof want / sizeof *want);
    for (size_t i = 0; i < got.len; i++) {
        cr_expect_eq(got.data[i].kind, want[i].kind, "parameter %zu", i);
        cr_expect_eq(got.data[i].arg, want[i].arg, "parameter %zu", i);
        cr_expect_eq(got.data[i].bytes, want[i].bytes, "parameter %zu", i);
        cr_expect_eq(got.data[i].align, want[i].align, "parameter %zu", i);
    }
    cr_expect_eq(got.data[4].dim, 1);
    cr_expect_eq(got.data[6].count, 6);
    module_free(m);
    arena_free(arena);
    ctx_free(ctx);
}

Test(abi, hash_tells_kernels_apart)
{
    const char *texts[] = {
        KERNEL("k", "%N: size, ", "64", "0"),
        KERNEL("j", "%N: size, ", "64", "0"),
        KERNEL("k", "%N: size, ", "128", "0"),
        KERNEL("k", "%N: size, ", "64", "1024"),
        KERNEL("k", "%N: size, ", "64",
               "0, programmatic_dependent_launch = True"),
        KERNEL("k", "%N: size, %M: size, ", "64", "0"),
        KERNEL("k", "%N: size, %x: tensor<f32, CudaGmemLinear>[%N], ", "64",
               "0"),
        KERNEL("k", "%N: size, %x: tensor<bf16, CudaGmemLinear>[%N], ", "64",
               "0"),
        KERNEL("k", "%N: size, %x: window<f32, CudaGmemLinear>[%N], ", "64",
               "0"),
    };
    enum { N = sizeof texts / sizeof *texts };
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            cr_expect_neq(hash_of(texts[i]), hash_of(texts[j]), "%d and %d", i,
                          j);
    /* Names of parameters do not matter. */
    cr_expect_eq(hash_of(KERNEL("k", "%N: size, ", "64", "0")),
                 hash_of(KERNEL("k", "%Q: size, ", "64", "0")));
}

/* A grid constant of unknown extent cannot be passed by value. */
Test(abi, refused)
{
    Ctx *ctx = ctx_new();
    Arena *arena = arena_new();
    Module *m;
    AbiParamVec got = { 0 };
    Op *kernel = kernel_of(
        ctx,
        KERNEL("k", "%N: size, %b: tensor<f32, CudaGridConstant>[%N], ", "64",
               "0"),
        &m);
    cr_expect_not(kernel_abi(ctx, kernel, arena, &got));
    cr_assert_eq(ctx_error_count(ctx), 1);
    cr_expect(strstr(ctx_diags(ctx)->message, "constant extents"));
    cr_expect_eq(kernel_abi_hash(ctx, kernel), 0);
    module_free(m);
    arena_free(arena);
    ctx_free(ctx);
}
