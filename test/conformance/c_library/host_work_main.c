/* Checks of the C library printed from host_work.exo. The test driver's kernels
 * do nothing, so that h comes back as it went. */
#include "host_work.h"

#include "driver.h"

#define LAST_ERROR host_work_last_error

enum { N = 300 };
static float x[2 * N], h[N], ends;
static const float g[4] = { 1, 2, 3, 4 };

static int call(int64_t n, int64_t k, int64_t stride)
{
    return host_work(n, k, true, 0.5f, g, x, stride, h, &ends, NULL);
}

static void queues_its_work(void)
{
    use_device(0);
    for (int i = 0; i < N; i++)
        h[i] = (float)i;
    CHECK(call(N, 2, 2) == EXO_OK);
    CHECK(ends == (float)(N - 1));
    CHECK(log_count("cuMemAllocFromPoolAsync bytes=1200") == 1);
    CHECK(log_count("cuMemcpyHtoDAsync bytes=1200") == 1);
    CHECK(log_count("cuLaunchKernelEx host_work_kernel0 grid=2,1,1") == 3);
    CHECK(log_count("cuLaunchKernelEx host_work_kernel1 grid=3,1,1") == 1);
    CHECK(log_count("cuMemcpyDtoHAsync bytes=1200") == 1);
    CHECK(log_count("cuMemFreeAsync") == 1);
    CHECK(log_count("cuModuleLoadDataEx") == 1);
    CHECK(log_count("cuMemPoolCreate device=0") == 1);
    CHECK(log_count("cuMemPoolSetAttribute 4=67108864") == 1);
    CHECK(cuda_stub_live() == 0);
    CHECK(call(N, 2, 2) == EXO_OK);
    CHECK(log_count("cuMemPoolCreate") == 1);
    CHECK(log_count("cuMemAllocFromPoolAsync bytes=1200") == 2);
    CHECK(host_work_unload() == EXO_OK);
    CHECK(log_count("cuMemPoolDestroy") == 1);
}

static void refuses_arguments(void)
{
    use_device(0);
    CHECK_ERROR(call(N, 4, 2), EXO_ERROR_ARGUMENT, "k < 4 does not hold");
    CHECK_ERROR(call(N, -1, 2), EXO_ERROR_ARGUMENT, "(k = -1)");
    CHECK_ERROR(call(N, 2, INT64_C(1) << 31), EXO_ERROR_ARGUMENT,
                "stride 0 of x must be");
    CHECK_ERROR(host_work(N, 2, true, 0.5f, NULL, x, 1, h, &ends, NULL),
                EXO_ERROR_ARGUMENT, "g is NULL");
    CHECK_ERROR(host_work(N, 2, true, 0.5f, g, x, 1, h, NULL, NULL),
                EXO_ERROR_ARGUMENT, "ends is NULL");
    CHECK(log_count("cuMemAllocFromPoolAsync") == 0);
}

static void gives_back_what_it_took(void)
{
    use_device(0);
    cuda_stub_fail("cuLaunchKernelEx", 2, 719);
    CHECK_ERROR(call(N, 2, 2), EXO_ERROR_DRIVER, "cuLaunchKernelEx");
    CHECK(cuda_stub_live() == 0);
    host_work_unload();
    cuda_stub_fail("cuMemPoolCreate", 0, 801);
    CHECK_ERROR(call(N, 2, 2), EXO_ERROR_DRIVER, "cuMemPoolCreate");
    cuda_stub_fail("cuMemPoolSetAttribute", 0, 1);
    CHECK_ERROR(call(N, 2, 2), EXO_ERROR_DRIVER, "cuMemPoolSetAttribute");
    CHECK(log_count("cuMemPoolDestroy") == 2);
    cuda_stub_fail("cuMemAllocFromPoolAsync", 0, 2);
    CHECK_ERROR(call(N, 2, 2), EXO_ERROR_DRIVER, "OUT_OF_MEMORY");
    CHECK(cuda_stub_live() == 0);
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    if (!strcmp(wanted, "work"))
        queues_its_work();
    else if (!strcmp(wanted, "arguments"))
        refuses_arguments();
    else if (!strcmp(wanted, "failures"))
        gives_back_what_it_took();
    else
        CHECK(!"a group of that name");
    return failures != 0;
}
