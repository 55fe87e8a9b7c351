/* The .exo printer: what prints, and that it reads back and prints the same.
 * Rows are whole files; `prints` are lines of the output, separated by |, or
 * NULL where it is the input itself. */
#include "ir/exo.h"

#include "ir/lib.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

typedef struct Row {
    const char *text, *prints;
} Row;

static Lib *library(Ctx *ctx)
{
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"), "lib/ does not load");
    return lib;
}

static void show(const Ctx *ctx, const char *text)
{
    StrBuf all = { 0 };
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        diag_render(ctx, d, &all);
    cr_expect(all.len == 0, "errors in\n%s\n%s", text, strbuf_text(&all));
    strbuf_free(&all);
}

/* text printed, or an empty string after a failure. */
static void print_text(Ctx *ctx, Lib *lib, const char *text, StrBuf *out)
{
    uint32_t file = ctx_add_source(ctx, "t.exo", text, strlen(text));
    Module *m = exo_parse(ctx, file, lib, NULL);
    if (m)
        cr_expect(exo_print(m, out));
    show(ctx, text);
    module_free(m);
}

/* Prints text, checks that the print is a fixpoint, and leaves it in out. */
static void check_fixpoint(const char *text, StrBuf *out)
{
    Ctx *ctx = ctx_new();
    Lib *lib = library(ctx);
    StrBuf again = { 0 };
    print_text(ctx, lib, text, out);
    cr_assert(out->len > 0, "nothing printed for\n%s", text);
    print_text(ctx, lib, strbuf_text(out), &again);
    cr_expect_str_eq(strbuf_text(out), strbuf_text(&again));
    strbuf_free(&again);
    ctx_free(ctx);
}

static void check_row(const Row *row)
{
    char part[300];
    StrBuf out = { 0 };
    check_fixpoint(row->text, &out);
    if (!row->prints)
        cr_expect_str_eq(strbuf_text(&out), row->text);
    for (const char *p = row->prints; p && *p;) {
        size_t n = strcspn(p, "|");
        snprintf(part, sizeof part, "%.*s", (int)n, p);
        cr_expect(strstr(strbuf_text(&out), part), "no '%s' in\n%s", part,
                  strbuf_text(&out));
        p += n + (p[n] != 0);
    }
    strbuf_free(&out);
}

static const Row rows[] = {
    /* what is in the layout already stays */
    { "def f(N: size, x: f32[N] @ DRAM):\n"
      "    assert N % 4 == 0\n"
      "    for i in seq(0, N):\n"
      "        x[i] = 2.0 * x[i] + 1.0\n",
      NULL },
    { "# above\n"
      "def f(n: index, b: bool, s: stride, x: [f32][4] @ DRAM):\n"
      "    # in the body\n"
      "    # two lines\n"
      "    x[0] = 1.0\n"
      "    if n >= 1 and b == 1:\n"
      "        x[1] = -1.5\n"
      "    else:\n"
      "        pass\n",
      NULL },
    { "def f(x: f32[8] @ DRAM):\n"
      "    for i in par(0, 8):\n"
      "        x[i] = 0.0\n"
      "    for i in seq(0, 8, pragma_unroll=4):\n"
      "        x[i] += x[i] * x[0]\n"
      "        x[i] += f32(x[i] * x[0])\n"
      "        x[i] += x[i] / (x[0] - (x[1] - x[2]))\n",
      NULL },
    { "def f(x: f32[8] @ DRAM, y: bf16[8] @ DRAM):\n"
      "    x[0] = y[0]\n"
      "    x[0] = f32(y[0]) + f32(bf16(0.5))\n"
      "    y[0] = x[0] + 0.1\n"
      "    x[1] = select(x[0], 0.0, inf, -x[1])\n"
      "    x[2] = fmaxf(sin(x[0]), -inf)\n",
      NULL },
    { "def f(c: i32 @ DRAM, d: i8[4] @ DRAM):\n"
      "    c = -7\n"
      "    d[0] = d[1] * 3 - 1\n",
      NULL },
    /* one layout for both of theirs */
    { "def f(N : size, x : f32[N, 4] @DRAM):\n"
      "  for i in seq(0, N):\n"
      "    x[i, 0] = 1  # after\n"
      "    w = x[i, 0:2]\n"
      "    w[1] = 2\n",
      "    for i in seq(0, N):\n        # after\n        x[i, 0] = 1.0\n|"
      "        w = x[i, 0:2]\n" },
    { "def f(x: f32[8]):\n"
      "    for i in seq(0, 8):\n"
      "        for i in seq(0, i + 1):\n"
      "            x[i] = 0.0\n"
      "    t: f32\n"
      "    t = 1\n"
      "    for i in seq(0, 2):\n"
      "        t: f32\n"
      "        t = 2\n",
      "x: f32[8] @ DRAM|for i_1 in seq(0, i + 1):|x[i_1] = 0.0|t_1: f32 @ "
      "DRAM" },
    { "def f(x: f32[8]):\n"
      "    if 0 <= 1:\n"
      "        x[0] = 1.0\n"
      "    elif not 2 > 3:\n"
      "        x[0] = 2.0\n",
      "if True:|else:\n" },
    { "def f(x: f32[4]):\n    x[0] = 1e-30 + 123456789.0 + 0.1\n",
      "1e-30 + 123456789.0 + 0.1" },
    /* device code */
    { "def f(x: f32[64] @ CudaGmemLinear):\n"
      "    with CudaDeviceFunction(warp_config=[CudaWarpConfig('a', 4, 40), "
      "CudaWarpConfig('b', 4)], clusterDim=2):\n"
      "        for t in cuda_tasks(0, 1):\n"
      "            with CudaWarps(name='a'):\n"
      "                pass\n"
      "            with CudaWarps(hi=2, lo=1, name='b'):\n"
      "                pass\n",
      "clusterDim=2|count=4, setmaxnreg_dec=40,|setmaxnreg_inc=None),|"
      "with CudaWarps(name='a'):|with CudaWarps(1, 2, name='b'):" },
    { "def f(K: size, x: f32[64] @ CudaGmemLinear):\n"
      "    with CudaDeviceFunction(blockDim=128):\n"
      "        for t in cuda_tasks(0, 1):\n"
      "            cg: barrier[4] @ Sm80_CommitGroup\n"
      "            b: barrier[2, K @ ring_buffer_by(4)] @ CudaMbarrier\n"
      "            s: f32[2, (2 + K @ (ring_buffer_by(depth=4))) @ "
      "ring_buffer_by(2)].ring_guarded_by(b) @ CudaSmemLinear\n"
      "            r: f32[128] @ CudaRmem\n"
      "            for k in cuda_threads(0, 4):\n"
      "                Arrive(Sm80_cp_async) >> cg[k]\n"
      "                Arrive(cuda_in_order, 1) >> b[:, 0] >> b[1, :]\n"
      "                Await(cg[k], cuda_in_order, ~0)\n",
      "K @ (ring_buffer_by(depth=4))] @ CudaMbarrier|"
      "(K + 2) @ (ring_buffer_by(depth=2))].ring_guarded_by(|"
      "r: f32[128] @ CudaRmemLinear|unit=cuda_thread|"
      "Arrive(Sm80_cp_async, 1) >> cg[k]|>> b[0:2, 0] >> b[1, 0:K]|, ~0)" },
    { "def f(x: f32[64, 64] @ CudaGmemLinear):\n"
      "    with CudaDeviceFunction(64):\n"
      "        for t in cuda_tasks(0, 1):\n"
      "            for k in cuda_threads(0, 2, "
      "unit=2*cuda_cta_in_cluster_strided(2)):\n"
      "                Fence(cuda_in_order, cuda_in_order)\n",
      "blockDim=64|unit=2 * cuda_cta_in_cluster_strided(2)" },
    /* the older name of the commit groups */
    { "def f(x: f32[64] @ CudaGmemLinear):\n"
      "    with CudaDeviceFunction(128):\n"
      "        for t in cuda_tasks(0, 1):\n"
      "            a: barrier[128] @ CudaCommitGroup\n"
      "            b: barrier @ CudaCommitGroup\n"
      "            c: barrier @ CudaCommitGroup\n"
      "            for k in cuda_threads(0, 128):\n"
      "                Arrive(Sm80_cp_async, 1) >> a[k]\n"
      "            Arrive(tma_to_gmem_async, 1) >> b\n"
      "            Arrive(wgmma_async, 1) >> c\n",
      "a: barrier[128] @ Sm80_CommitGroup|b: barrier @ Sm90_TmaCommitGroup|"
      "c: barrier @ Sm90_WgmmaCommitGroup" },
    /* calls, own entries, configurations */
    { "def g(n: size, v: [f32][n]):\n    v[0] = 1.0\n"
      "def f(N: size, x: f32[N, 8]):\n    g(8, x[0, :])\n    g(N, x[0:N, 1])\n",
      "g(8, x[0, 0:8])|g(N, x[0:N, 1])" },
    { "@config\nclass C:\n    gain: f32\n    n: index\n\n"
      "def f(x: f32[8] @ DRAM):\n"
      "    if C.n < 8:\n"
      "        C.gain = x[0]\n"
      "        x[0] = C.gain * 2.0\n",
      "@config\nclass C:\n    gain: f32|C.gain = x[0]|C.gain * 2.0" },
    { "# a pair of warps\nunit pair = CollUnit((blockDim, ), (64, ))\n"
      "memory Big[n: int]:\n    family shared\n    scalar read, write\n"
      "    quals ram\n\n\n"
      "def f(x: f32[4] @ CudaGmemLinear):\n"
      "    with CudaDeviceFunction(128):\n"
      "        for t in cuda_tasks(0, 1):\n"
      "            b: f32[4] @ Big(2)\n"
      "            for k in cuda_threads(0, 2, unit=pair):\n"
      "                pass\n",
      "# a pair of warps\nunit pair = CollUnit|memory Big[n: int]:|"
      "b: f32[4] @ Big(2, )|unit=pair" },
};

Test(exo_print, rows_read_back)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}

static void check_file(const char *dir, const char *name)
{
    char path[600];
    size_t n;
    StrBuf out = { 0 };
    Ctx *ctx = ctx_new();
    snprintf(path, sizeof path, "%s/%s", dir, name);
    uint32_t file = ctx_read_source(ctx, path);
    cr_assert(file);
    check_fixpoint(ctx_source_text(ctx, file, &n), &out);
    for (const char *s = strbuf_text(&out); *s;) {
        size_t len = strcspn(s, "\n");
        cr_expect(len <= 79 || *s == '#', "%s: %.*s", name, (int)len, s);
        s += len + (s[len] != 0);
    }
    strbuf_free(&out);
    ctx_free(ctx);
}

static int check_folder(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    cr_assert(d, "no folder %s", dir);
    for (struct dirent *f = readdir(d); f; f = readdir(d))
        if (strstr(f->d_name, ".exo")) {
            check_file(dir, f->d_name);
            n++;
        }
    closedir(d);
    return n;
}

Test(exo_print, examples_and_kernels_read_back)
{
    cr_expect(check_folder(EXO_SOURCE_DIR "/test/examples") >= 6);
    cr_expect(check_folder(EXO_SOURCE_DIR "/kernels") >= 6);
}

/* Both layouts of one program are the same program. */
Test(exo_print, both_layouts_are_one_program)
{
    static const char *const names[] = {
        EXO_SOURCE_DIR "/test/examples/gemm_bf16_one_cta.exo",
        EXO_SOURCE_DIR "/test/examples/gemm_bf16_one_cta.raw.exo"
    };
    StrBuf out[2] = { { 0 }, { 0 } };
    for (int i = 0; i < 2; i++) {
        size_t n;
        Ctx *ctx = ctx_new();
        uint32_t file = ctx_read_source(ctx, names[i]);
        check_fixpoint(ctx_source_text(ctx, file, &n), &out[i]);
        ctx_free(ctx);
    }
    cr_expect_str_eq(strstr(strbuf_text(&out[0]), "def "),
                     strstr(strbuf_text(&out[1]), "def "));
    strbuf_free(&out[0]);
    strbuf_free(&out[1]);
}

Test(exo_print, async_code_is_refused)
{
    Ctx *ctx = ctx_new();
    Module *m = module_new(ctx);
    Op *op = op_new(m, OP_async_kernel, (Loc){ 0 }, 0, 0, 1);
    op_set_str(m, op, "name", "k");
    block_append(m->body, op);
    StrBuf out = { 0 };
    cr_expect(!exo_print(m, &out));
    cr_expect_eq(ctx_error_count(ctx), 1);
    strbuf_free(&out);
    module_free(m);
    ctx_free(ctx);
}

/* A value that two statements use gets a variable, since the store between
 * them may change what it was loaded from. */
Test(exo_print, shared_value_gets_a_variable)
{
    static const char text[] = "def f(x: f32[4]):\n    x[0] = x[1]\n"
                               "    x[2] = x[1]\n";
    Ctx *ctx = ctx_new();
    Module *m = exo_parse(ctx, ctx_add_source(ctx, "t", text, strlen(text)),
                          NULL, NULL);
    cr_assert(m);
    Block *b = m->body->first->blocks[0];
    Op *first = b->first, *second = b->last;
    op_detach(second->prev);
    second->operands[1] = opnd_value(first->results[0]);
    StrBuf out = { 0 };
    cr_expect(exo_print(m, &out));
    cr_expect(strstr(strbuf_text(&out), "t: f32 @ DRAM\n    t = x[1]\n"
                                        "    x[0] = t\n    x[2] = t\n"),
              "%s", strbuf_text(&out));
    strbuf_free(&out);
    module_free(m);
    ctx_free(ctx);
}
