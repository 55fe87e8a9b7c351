/* The sizes that are derived from a program, and what they are said to cover;
 * every set keeps the asserts. */
#include "ir/exo.h"
#include "ir/lib.h"
#include "verify/sizes.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Row {
    const char *params, *body; /* of `def p(..)` */
    const char *phases;        /* expected; NULL: no sizes can be found */
} Row;

#define RING                                                            \
    "    with CudaDeviceFunction(blockDim=32):\n"                       \
    "        for b in cuda_tasks(0, (M + 31) / 32):\n"                  \
    "            for k in seq(0, N - 1):\n"                             \
    "                s: f32[3, 32] @ CudaSmemLinear\n"                  \
    "                for t in cuda_threads(0, 32, unit=cuda_thread):\n" \
    "                    s[k % 3, t] = 1.0\n"                           \
    "                Fence(cuda_in_order, cuda_in_order)\n"

static const Row rows[] = {
    /* a depth of three by a modulus; a trip count of 0 is allowed */
    { "M: size, N: size", RING,
      "b: 1, 2, 3 tasks, whole and ragged; k: 0, 1, 2, 3, 4, 7, 8 trips" },
    /* N is M: k follows b, and its short loops cannot be had */
    { "M: size, N: size", "    assert N == M\n" RING,
      "b: 1, 2, 3 tasks, whole and ragged; k: 0, 1, 2, 3, 4, 7, 32, 63 "
      "trips" },
    /* where a condition on the loop changes, and with steps that follow */
    { "M: size, N: size",
      "    with CudaDeviceFunction(blockDim=32):\n"
      "        for b in cuda_tasks(0, M):\n"
      "            for k in seq(0, N):\n"
      "                if k != 20 and k % 32 < 31 and b < 9:\n"
      "                    Fence(cuda_in_order, cuda_in_order)\n",
      "b: 1, 2, 3, 9, 10 tasks; k: 1, 2, 3, 4, 21, 24, 25, 31, 34, 35 trips" },
    /* up to where tasks come to the places of others */
    { "M: size, y: f32[M] @ CudaGmemLinear",
      "    with CudaDeviceFunction(blockDim=32):\n"
      "        for b in cuda_tasks(0, M):\n"
      "            for t in cuda_threads(0, 1, unit=cuda_thread):\n"
      "                y[b % 40] = 1.0\n"
      "                y[b - 2 * b / 33] = 1.0\n",
      "b: 1, 2, 3, 18, 41 tasks" },
    /* up to where strides of a task and a loop meet */
    { "M: size, N: size, y: f32[7 * M + 3 * N] @ CudaGmemLinear",
      "    with CudaDeviceFunction(blockDim=32):\n"
      "        for b in cuda_tasks(0, M):\n"
      "            for t in cuda_threads(0, 1, unit=cuda_thread):\n"
      "                for i in seq(0, N):\n"
      "                    y[7 * b + 3 * i] = 1.0\n",
      "b: 1, 2, 3, 4 tasks; i: 1, 2, 3, 8 trips" },
    /* the loop's trips are fixed */
    { "M: size, y: f32[M + 100] @ CudaGmemLinear",
      "    with CudaDeviceFunction(blockDim=32):\n"
      "        for b in cuda_tasks(0, M):\n"
      "            for t in cuda_threads(0, 1, unit=cuda_thread):\n"
      "                for i in seq(0, 5):\n"
      "                    y[b + 10 * i] = 1.0\n",
      "b: 1, 2, 3, 11 tasks" },
    /* not where an assert keeps them apart */
    { "M: size, N: size, y: f32[7 * M + N] @ CudaGmemLinear",
      "    assert N <= 7\n"
      "    with CudaDeviceFunction(blockDim=32):\n"
      "        for b in cuda_tasks(0, M):\n"
      "            for t in cuda_threads(0, 1, unit=cuda_thread):\n"
      "                for i in seq(0, N):\n"
      "                    y[7 * b + i] = 1.0\n",
      "b: 1, 2, 3 tasks; i: 1, 2, 3, 4 trips" },
    /* up to the next task that a condition lets through to the same place */
    { "M: size, y: f32[M] @ CudaGmemLinear",
      "    with CudaDeviceFunction(blockDim=32):\n"
      "        for b in cuda_tasks(0, M):\n"
      "            for t in cuda_threads(0, 1, unit=cuda_thread):\n"
      "                if b % 4 == 0:\n"
      "                    y[b / 8 % 3] = 1.0\n",
      "b: 1, 2, 3, 5 tasks" },
    /* a loop within a loop or a task, by as many as those make it */
    { "M: size, N: size",
      "    with CudaDeviceFunction(blockDim=32):\n"
      "        for b in cuda_tasks(0, M):\n"
      "            for k in seq(0, b + 1):\n"
      "                if k != 6:\n"
      "                    Fence(cuda_in_order, cuda_in_order)\n"
      "            for i in seq(0, N):\n"
      "                for j in seq(i, N):\n"
      "                    if j != 8:\n"
      "                        Fence(cuda_in_order, cuda_in_order)\n",
      "b: 1, 2, 3, 7, 8, 10, 11 tasks; k: 1, 2, 3, 7, 8, 10, 11 trips; i: 1, "
      "2, 3, 4, 9, 12, 13 trips; j: 1, 2, 3, 4, 9, 12, 13 trips" },
    /* to where a loop is not entered, and to where a place is another */
    { "M: size",
      "    with CudaDeviceFunction(blockDim=32):\n"
      "        for b in cuda_tasks(0, 1):\n"
      "            s: f32[64] @ CudaSmemLinear\n"
      "            for k in seq(0, M):\n"
      "                for j in seq(M / 20, 1):\n"
      "                    Fence(cuda_in_order, cuda_in_order)\n"
      "                for t in cuda_threads(0, 32, unit=cuda_thread):\n"
      "                    s[t] = 1.0\n"
      "                for t in cuda_threads(0, 32, unit=cuda_thread):\n"
      "                    s[t + k / 30] = 1.0\n",
      "k: 1, 2, 3, 4, 20, 31, 34 trips; j: 0, 1 trips, ragged" },
    /* no ragged tiles */
    { "M: size, N: size", "    assert M % 32 == 0\n" RING,
      "b: 1, 2, 3 tasks; k: 0, 1, 2, 3, 4, 7, 8 trips" },
    /* nothing keeps this assert */
    { "M: size, N: size", "    assert M == N + 1\n    assert M == N\n" RING,
      NULL },
};

static void check_row(const Row *row)
{
    Ctx *ctx = ctx_new();
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    StrBuf text = { 0 }, phases = { 0 };
    strbuf_addf(&text, "def p(%s):\n%s", row->params, row->body);
    uint32_t file = ctx_add_source(ctx, "p.exo", text.data, text.len);
    Module *m = exo_parse(ctx, file, lib, NULL);
    SizeSets sets = { 0 };
    Arena *arena = arena_new();
    if (m) {
        const Op *proc = module_symbol(m, "p");
        sizes_derive(arena, m, proc, prover_layer1(arena), &sets);
        for (size_t i = 0; i < sets.len; i++)
            cr_assert_null(sizes_broken(proc, &sets.data[i]), "%s", text.data);
        sizes_print_phases(&phases, m, proc, &sets, sets.len);
    }
    cr_assert_eq(sets.len > 0, row->phases != NULL, "%s", text.data);
    if (row->phases)
        cr_assert_str_eq(strbuf_text(&phases), row->phases, "%s%s", text.data,
                         strbuf_text(&phases));
    arena_free(arena);
    strbuf_free(&text);
    strbuf_free(&phases);
    if (m)
        module_free(m);
    ctx_free(ctx);
}

Test(sync_sizes, phases)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}

/* A few sets follow the same asserts. */
Test(sync_sizes, a_few_keep_the_asserts)
{
    Ctx *ctx = ctx_new();
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    StrBuf text = { 0 };
    strbuf_add(&text, "def p(M: size, N: size):\n    assert M == N\n" RING);
    uint32_t file = ctx_add_source(ctx, "p.exo", text.data, text.len);
    Module *m = exo_parse(ctx, file, lib, NULL);
    cr_assert(m);
    Arena *arena = arena_new();
    SizeSet sets[SIZE_SETS];
    unsigned n =
        sizes_choose(arena, m, module_symbol(m, "p"), NULL, NULL, sets);
    cr_assert_gt(n, 1);
    for (unsigned i = 0; i < n; i++)
        cr_assert_null(sizes_broken(module_symbol(m, "p"), &sets[i]));
    arena_free(arena);
    strbuf_free(&text);
    module_free(m);
    ctx_free(ctx);
}

/* A prover whose every answer takes long. */
static Proof satisfiable_slowly(Prover *self, const Facts *f, const Cond *c)
{
    (void)self;
    Proof p = prove_satisfiable(prover_layer1(f->arena), f, c);
    p.effort = UINT64_C(1000000000);
    return p;
}

Test(sync_sizes, too_much_to_ask)
{
    const char *text = "def p(M: size):\n"
                       "    with CudaDeviceFunction(blockDim=32):\n"
                       "        for b in cuda_tasks(0, 1):\n"
                       "            for k in seq(0, M):\n"
                       "                if k != 6 and M % 7 != 3:\n"
                       "                    Fence(cuda_in_order, "
                       "cuda_in_order)\n";
    Ctx *ctx = ctx_new();
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    uint32_t file = ctx_add_source(ctx, "p.exo", text, strlen(text));
    Module *m = exo_parse(ctx, file, lib, NULL);
    cr_assert_not_null(m);
    Arena *arena = arena_new();
    Prover slow = { .name = "slow", .satisfiable = satisfiable_slowly };
    Prover *provers[] = { prover_layer1(arena), &slow };
    for (int i = 0; i < 2; i++) {
        SizeSets sets = { 0 };
        sizes_derive(arena, m, module_symbol(m, "p"), provers[i], &sets);
        cr_assert_gt(sets.len, 0);
        cr_assert_eq(sets.beyond != NULL, i == 1);
        cr_assert(!i || strstr(sets.beyond, "too much to ask"));
    }
    arena_free(arena);
    if (m)
        module_free(m);
    ctx_free(ctx);
}
