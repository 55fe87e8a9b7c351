/* Checks of the C library printed from hoststeps.exo: each allocation, copy,
 * fill and launch is made as often as its loops and ifs say, and given back,
 * also when one in the middle fails. The test driver's kernels do nothing, so
 * that h becomes what x was. */
#include "hoststeps.h"

#include "driver.h"

#define LAST_ERROR hoststeps_last_error

int cuMemAlloc_v2(unsigned long long *ptr, size_t bytes);
int cuMemFree_v2(unsigned long long ptr);
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes);

enum { N = 70, K = 3 };
static float start[K * N], h[K * N], top[K];

/* With a tensor x that holds `start`. */
static int call(int64_t n, int64_t k)
{
    unsigned long long x = 0;
    use_device(0);
    CHECK(cuMemAlloc_v2(&x, sizeof start) == 0);
    CHECK(cuMemcpyHtoD_v2(x, start, sizeof start) == 0);
    int status = hoststeps(n, k, (void *)(uintptr_t)x, h, top, NULL);
    CHECK(cuMemFree_v2(x) == 0);
    return status;
}

static void queues_its_work(void)
{
    for (int i = 0; i < K * N; i++)
        start[i] = (float)i;
    CHECK(call(N, K) == EXO_OK);
    CHECK(log_count("cuMemAllocFromPoolAsync bytes=280") == 1 + 3 + 2);
    CHECK(log_count("cuMemsetD8Async value=0 bytes=280") == 1 + 1);
    CHECK(log_count("cuMemcpyHtoDAsync bytes=280") == 3);
    CHECK(log_count("cuLaunchKernelEx hoststeps_kernel0 grid=2,1,1") == 2);
    CHECK(log_count("cuLaunchKernelEx hoststeps_kernel1 grid=3,1,1") == 1 + 3);
    CHECK(log_count("cuLaunchKernelEx hoststeps_kernel2 grid=3,1,1") == 3);
    CHECK(log_count("cuMemcpyDtoHAsync bytes=280") == 3);
    CHECK(log_count("cuMemFreeAsync") == 6);
    CHECK(!memcmp(start, h, sizeof h));
    for (int k = 0; k < K; k++)
        CHECK(top[k] == start[k * N] + start[k * N + N - 1]);
    CHECK(cuda_stub_live() == 0);
}

/* No fill of a row where N is at most 64. */
static void takes_the_other_branch(void)
{
    CHECK(call(64, 2) == EXO_OK);
    CHECK(log_count("cuMemsetD8Async") == 1);
    CHECK(log_count("cuLaunchKernelEx hoststeps_kernel0") == 1);
    CHECK(log_count("cuLaunchKernelEx hoststeps_kernel2") == 2);
    CHECK(cuda_stub_live() == 0);
}

static void gives_back_what_it_took(void)
{
    static const char *const calls[] = {
        "cuMemAllocFromPoolAsync", "cuMemsetD8Async",   "cuMemcpyHtoDAsync",
        "cuLaunchKernelEx",        "cuMemcpyDtoHAsync",
    };
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int skip = 0; skip < 2; skip++) {
            cuda_stub_fail(calls[i], skip, 719);
            CHECK_ERROR(call(N, K), EXO_ERROR_DRIVER, calls[i]);
            CHECK(cuda_stub_live() == 0);
        }
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    if (!strcmp(wanted, "work"))
        queues_its_work();
    else if (!strcmp(wanted, "branches"))
        takes_the_other_branch();
    else if (!strcmp(wanted, "failures"))
        gives_back_what_it_took();
    else
        CHECK(!"a group of that name");
    return failures != 0;
}
