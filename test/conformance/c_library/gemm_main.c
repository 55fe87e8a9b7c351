/* Checks of the C library printed from a bf16 GEMM of parameters M, N, K, A, B,
 * C, beside another library in one program. GEMM is the procedure's name. */
#include GEMM_HEADER
#include "saxpy.h"

#include "driver.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define LAST_ERROR PASTE(GEMM, _last_error)

static _Alignas(16) char a[65536], b[65536], c[65536];

static void refuses_arguments(void)
{
    CHECK_ERROR(GEMM(0, 8, 8, a, b, c, NULL), EXO_ERROR_ARGUMENT, "M must be");
    CHECK_ERROR(GEMM(4, 8, 8, a, b, c, NULL), EXO_ERROR_ARGUMENT,
                "M % 8 == 0 does not hold (M = 4)");
    CHECK_ERROR(GEMM(8, 12, 8, a, b, c, NULL), EXO_ERROR_ARGUMENT, "N % 8");
    CHECK_ERROR(GEMM(8, 8, 9, a, b, c, NULL), EXO_ERROR_ARGUMENT, "K % 8");
    CHECK_ERROR(GEMM(8, 8, INT64_C(1) << 33, a, b, c, NULL), EXO_ERROR_ARGUMENT,
                "K must be");
    CHECK_ERROR(GEMM(1 << 30, 8, 1 << 30, a, b, c, NULL), EXO_ERROR_ARGUMENT,
                "A would have 2^47 bytes or more");
    CHECK_ERROR(GEMM(8, 8, 8, a + 8, b, c, NULL), EXO_ERROR_ARGUMENT,
                "address of A must be a multiple of 16");
    CHECK_ERROR(GEMM(8, 8, 8, a, b + 2, c, NULL), EXO_ERROR_ARGUMENT,
                "address of B must be a multiple of 16");
    CHECK_ERROR(GEMM(8, 8, 8, a, b, c + 1, NULL), EXO_ERROR_ARGUMENT,
                "address of C");
    CHECK_ERROR(GEMM(8, 8, 8, NULL, b, c, NULL), EXO_ERROR_ARGUMENT,
                "A is NULL");
    CHECK(log_count("cu") == 0);
}

static void launches(void)
{
    use_device(0);
    CHECK(GEMM(264, 520, 200, a, b, c, NULL) == EXO_OK);
    CHECK(strstr(cuda_stub_log(),
                 "cuTensorMapEncodeTiled type=9 rank=2 interleave=0 swizzle=3 "
                 "promotion=2 fill=0 dim=200 stride=0 box=64 step=1 dim=264 "
                 "stride=400 box=128 step=1"));
    CHECK(strstr(cuda_stub_log(), "dim=520 stride=0 box=64 step=1 dim=264 "
                                  "stride=1040 box=128 step=1"));
    CHECK(log_count("cuTensorMapEncodeTiled") == 3);
    /* 2 x 3 tiles of 256 x 256, a cluster of two blocks for each */
    CHECK(strstr(cuda_stub_log(), "grid=12,1,1 block=384,1,1 cluster=2,1,1"));
    CHECK(GEMM(8192, 8192, 64, a, b, c, NULL) == EXO_OK);
    /* 1024 tiles: 16 rounds of 66 clusters, or of 64 */
    CHECK(strstr(cuda_stub_log(), "grid=128,1,1 block=384,1,1 cluster=2,1,1"));
    CHECK(log_count("cuModuleLoadDataEx") == 1);
    CHECK(log_count("cuFuncSetAttribute") == 1);
}

/* Each library keeps its own modules and messages. */
static void lives_with_another(void)
{
    use_device(0);
    CHECK(saxpy(100, 1, a, b, NULL) == EXO_OK);
    CHECK(GEMM(64, 64, 64, a, b, c, NULL) == EXO_OK);
    CHECK(log_count("cuModuleLoadDataEx") == 2);
    CHECK(saxpy(0, 1, a, b, NULL) == EXO_ERROR_ARGUMENT);
    CHECK(strstr(saxpy_last_error(), "saxpy: N must be"));
    CHECK(LAST_ERROR()[0] == '\0');
    cuda_stub_fail("cuTensorMapEncodeTiled", 0, 1);
    CHECK_ERROR(GEMM(64, 64, 64, a, b, c, NULL), EXO_ERROR_DRIVER,
                "cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE");
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    if (!strcmp(wanted, "arguments"))
        refuses_arguments();
    else if (!strcmp(wanted, "launches"))
        launches();
    else if (!strcmp(wanted, "together"))
        lives_with_another();
    else
        CHECK(!"a group of that name");
    return failures != 0;
}
