/* The printed C of every shipped kernel on a GPU: integer data, so that each
 * sum is exact, against the host's result; outputs poisoned before, and what
 * lies behind them looked at after. Ends with status 1 when something is wrong,
 * 77 when there is no GPU. Linked with the real driver and ir/scalar.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_simt_f32.h"
#include "gemm_sm90_bf16.h"
#include "gemm_sm90_f16.h"
#include "gemm_sm90_tf32.h"
#include "host_work.h"
#include "hoststeps.h"
#include "ir/scalar.h"
#include "saxpy.h"
#include "transpose.h"

typedef unsigned long long CUdeviceptr;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
int cuMemFree_v2(CUdeviceptr ptr);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);

enum { GUARD = 4096, POISON = 0xb5 };

static int failures, checks;

static void verdict(const char *what, const int64_t size[3], const char *fault)
{
    checks++;
    failures += fault != NULL;
    printf("%s: %s %lld %lld %lld%s%s\n", fault ? "FAILED" : "ok", what,
           (long long)size[0], (long long)size[1], (long long)size[2],
           fault ? ": " : "", fault ? fault : "");
}

/* A tensor of the host with its copy on the GPU, a guard behind it. */
typedef struct Tensor {
    ScalarType type;
    int64_t n;
    size_t bytes;
    unsigned char *host;
    CUdeviceptr device;
} Tensor;

static Tensor tensor_new(ScalarType type, int64_t n, uint64_t seed)
{
    Tensor t = { .type = type, .n = n };
    size_t element = (size_t)scalar_type_bytes(type);
    t.bytes = (size_t)n * element;
    t.host = malloc(t.bytes + GUARD);
    if (!t.host || cuMemAlloc_v2(&t.device, t.bytes + GUARD)) {
        fprintf(stderr, "no memory\n");
        abort();
    }
    memset(t.host, POISON, t.bytes + GUARD);
    for (int64_t i = 0; i < n && seed; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        scalar_encode(type, (double)((int64_t)(seed >> 40) % 9 - 4),
                      t.host + (size_t)i * element);
    }
    cuMemcpyHtoD_v2(t.device, t.host, t.bytes + GUARD);
    return t;
}

static void tensor_free(Tensor *t)
{
    cuMemFree_v2(t->device);
    free(t->host);
}

static double at(const Tensor *t, int64_t i)
{
    return scalar_decode(
        t->type, t->host + (size_t)i * (size_t)scalar_type_bytes(t->type));
}

static void *address(const Tensor *t)
{
    return (void *)(uintptr_t)t->device;
}

/* Copies t back; what is wrong with it, or NULL. */
static const char *compare(Tensor *t, const double *expected)
{
    if (cuMemcpyDtoH_v2(t->host, t->device, t->bytes + GUARD))
        return "the kernel failed";
    for (int64_t i = 0; i < t->n; i++)
        if (at(t, i) != scalar_round(t->type, expected[i]))
            return "a wrong element";
    for (size_t i = 0; i < GUARD; i++)
        if (t->host[t->bytes + i] != POISON)
            return "wrote behind the tensor";
    return NULL;
}

static void check_saxpy(int64_t n)
{
    Tensor x = tensor_new(TY_f32, n, 1), y = tensor_new(TY_f32, n, 2);
    double *expected = malloc((size_t)n * sizeof *expected);
    for (int64_t i = 0; i < n; i++)
        expected[i] = 3 * at(&x, i) + at(&y, i);
    int status = saxpy(n, 3.0f, address(&x), address(&y), NULL);
    verdict("saxpy", (int64_t[]){ n, 0, 0 },
            status ? saxpy_last_error() : compare(&y, expected));
    free(expected);
    tensor_free(&x);
    tensor_free(&y);
}

static void check_transpose(int64_t m, int64_t n)
{
    Tensor x = tensor_new(TY_f32, m * n, 3), y = tensor_new(TY_f32, m * n, 0);
    double *expected = malloc((size_t)(m * n) * sizeof *expected);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            expected[j * m + i] = at(&x, i * n + j);
    int status = transpose(m, n, address(&x), address(&y), NULL);
    verdict("transpose", (int64_t[]){ m, n, 0 },
            status ? transpose_last_error() : compare(&y, expected));
    free(expected);
    tensor_free(&x);
    tensor_free(&y);
}

/* x, a window of every second element, gets 3 (s g[k] + h), h a copy of it. */
static void check_host_work(int64_t n)
{
    static const float g[4] = { 1, 2, 3, 4 };
    Tensor x = tensor_new(TY_f32, 2 * n, 6), h = tensor_new(TY_f32, n, 7);
    double *expected = malloc((size_t)(2 * n) * sizeof *expected);
    const char *fault = NULL;
    float ends = 0;
    for (int64_t i = 0; i < 2 * n; i++)
        expected[i] = at(&x, i) + (i % 2 ? 0 : 3 * (2 * 3 + at(&h, i / 2)));
    if (host_work(n, 2, true, 2.0f, g, address(&x), 2, (float *)h.host, &ends,
                  NULL))
        fault = host_work_last_error();
    for (int64_t i = 0; i < n && !fault; i++)
        fault = at(&h, i) == expected[2 * i] ? NULL : "a wrong element of h";
    if (!fault && (double)ends != expected[0] + expected[2 * n - 2])
        fault = "a wrong sum on the host";
    verdict("host_work", (int64_t[]){ n, 0, 0 },
            fault ? fault : compare(&x, expected));
    free(expected);
    tensor_free(&x);
    tensor_free(&h);
}

/* What hoststeps leaves in x, from h as it was. */
static void expect_hoststeps(int64_t n, int64_t k_end, const Tensor *h,
                             double *expected)
{
    double *sum = calloc((size_t)n, sizeof *sum);
    for (int64_t k = 0; k < k_end; k++)
        for (int64_t i = 0; i < n; i++) {
            double row = at(h, k * n + i);
            if (k % 2 == 0)
                sum[i] += (double)(k + 1) * 2 * row;
            else if (n > 64)
                row = 0;
            expected[k * n + i] = sum[i] - row;
        }
    free(sum);
}

static void check_hoststeps(int64_t n, int64_t k)
{
    Tensor x = tensor_new(TY_f32, k * n, 0), h = tensor_new(TY_f32, k * n, 8);
    Tensor top = tensor_new(TY_f32, k, 0);
    double *expected = malloc((size_t)(k * n) * sizeof *expected);
    const char *fault = NULL;
    expect_hoststeps(n, k, &h, expected);
    if (hoststeps(n, k, address(&x), (float *)h.host, (float *)top.host, NULL))
        fault = hoststeps_last_error();
    for (int64_t i = 0; i < k * n && !fault; i++)
        fault = at(&h, i) == expected[i] ? NULL : "a wrong element of h";
    for (int64_t i = 0; i < k && !fault; i++)
        if (at(&top, i) != expected[i * n] + expected[i * n + n - 1])
            fault = "a wrong sum on the host";
    verdict("hoststeps", (int64_t[]){ n, k, 0 },
            fault ? fault : compare(&x, expected));
    free(expected);
    tensor_free(&x);
    tensor_free(&h);
    tensor_free(&top);
}

typedef int GemmFn(int64_t m, int64_t n, int64_t k, const void *a,
                   const void *b, void *c, void *stream);

/* C = A B^T in type t. */
static void check_gemm(const char *name, GemmFn *fn, const char *(*error)(void),
                       ScalarType t, const int64_t size[3])
{
    int64_t m = size[0], n = size[1], k = size[2];
    Tensor a = tensor_new(t, m * k, 4), b = tensor_new(t, n * k, 5);
    Tensor c = tensor_new(t, m * n, 0);
    double *expected = calloc((size_t)(m * n), sizeof *expected);
    double *da = malloc((size_t)(m * k) * sizeof *da);
    double *db = malloc((size_t)(n * k) * sizeof *db);
    for (int64_t i = 0; i < m * k; i++)
        da[i] = at(&a, i);
    for (int64_t r = 0; r < k; r++)
        for (int64_t j = 0; j < n; j++)
            db[r * n + j] = at(&b, j * k + r);
    for (int64_t i = 0; i < m; i++)
        for (int64_t r = 0; r < k; r++)
            for (int64_t j = 0; j < n; j++)
                expected[i * n + j] += da[i * k + r] * db[r * n + j];
    int status = fn(m, n, k, address(&a), address(&b), address(&c), NULL);
    verdict(name, size, status ? error() : compare(&c, expected));
    free(expected);
    free(da);
    free(db);
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&c);
}

int main(void)
{
    static const int64_t shapes[][3] = {
        { 8, 8, 8 },       { 128, 256, 64 },  { 264, 520, 200 },
        { 512, 512, 768 }, { 1000, 72, 264 }, { 1544, 1288, 320 },
    };
    void *context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
        cuCtxSetCurrent(context)) {
        printf("no GPU\n");
        return 77;
    }
    check_saxpy(1);
    check_saxpy(1000);
    check_saxpy((1 << 20) + 3);
    check_host_work(1);
    check_host_work(100001);
    check_hoststeps(5, 1);
    check_hoststeps(64, 2);
    check_hoststeps(1000, 5);
    check_transpose(1, 1);
    check_transpose(70, 45);
    check_transpose(1000, 513);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_gemm("gemm_simt_f32", gemm_simt_f32, gemm_simt_f32_last_error,
                   TY_f32, shapes[i]);
        check_gemm("gemm_sm90_bf16", gemm_sm90_bf16, gemm_sm90_bf16_last_error,
                   TY_bf16, shapes[i]);
        check_gemm("gemm_sm90_f16", gemm_sm90_f16, gemm_sm90_f16_last_error,
                   TY_f16, shapes[i]);
        check_gemm("gemm_sm90_tf32", gemm_sm90_tf32, gemm_sm90_tf32_last_error,
                   TY_f32, shapes[i]);
    }
    printf("%d of %d right\n", checks - failures, checks);
    return failures != 0;
}
