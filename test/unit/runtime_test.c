/* The CUDA runtime against the test driver (test/stub): what it calls, in which
 * order, with which arguments, and what its messages say. */
#include "runtime/cuda.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_abi.h"
#include "test/stub/libcuda_stub.h"

static const char stub_path[] = EXO_BINARY_DIR "/test/stub/libcuda.so.1";

static const char ptx[] = ".version 8.0\n.target sm_90a\n"
                          ".visible .entry gemm(.param .u64 a) { ret; }\n"
                          ".visible .entry gemm_tail() { ret; }\n";

static CudaError err;

static Cuda *open_stub(void)
{
    Cuda *cuda = NULL;
    cr_assert(cuda_open(stub_path, 0, &cuda, &err), "%s", err.text);
    return cuda;
}

/* A control function of the test driver. */
static void stub_symbol(const char *name, void *function)
{
    void *library = dlopen(stub_path, RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    cr_assert_not_null(found, "%s", name);
    memcpy(function, &found, sizeof found);
}

static const char *stub_log(void)
{
    CudaStubLog *log = NULL;
    stub_symbol("cuda_stub_log", &log);
    return log();
}

static void stub_fail(const char *name, int skip, int code)
{
    CudaStubFail *fail = NULL;
    stub_symbol("cuda_stub_fail", &fail);
    fail(name, skip, code);
}

static void assert_logged(const char *text)
{
    cr_assert(strstr(stub_log(), text), "'%s' not in\n%s", text, stub_log());
}

static void assert_message(const char *text)
{
    cr_assert(strstr(err.text, text), "'%s' not in '%s'", text, err.text);
}

static CudaFunction load_kernel(Cuda *cuda, CudaModule **module)
{
    CudaFunction fn;
    cr_assert(cuda_module_load_ptx(cuda, ptx, module, &err), "%s", err.text);
    cr_assert(cuda_module_function(*module, "gemm", &fn, &err));
    return fn;
}

Test(runtime, no_driver_is_an_error_with_its_reason)
{
    Cuda *cuda = NULL;
    cr_assert_not(cuda_open("/nonexistent/libcuda.so", 0, &cuda, &err));
    cr_assert_null(cuda);
    assert_message("no CUDA driver: /nonexistent/libcuda.so");
}

Test(runtime, a_library_that_is_no_driver_is_named)
{
    Cuda *cuda = NULL;
    cr_assert_not(cuda_open("libm.so.6", 0, &cuda, &err));
    assert_message("libm.so.6 has no function cuInit");
}

Test(runtime, the_environment_names_the_driver)
{
    Cuda *cuda = NULL;
    setenv("EXO_CUDA_LIBRARY", stub_path, 1);
    cr_assert(cuda_open(NULL, 0, &cuda, &err), "%s", err.text);
    cuda_close(cuda);
    setenv("EXO_CUDA_LIBRARY", "/nonexistent/driver", 1);
    cr_assert_not(cuda_open(NULL, 0, &cuda, &err));
    assert_message("/nonexistent/driver");
}

Test(runtime, no_device)
{
    Cuda *cuda = NULL;
    setenv("CUDA_STUB_DEVICES", "0", 1);
    cr_assert_not(cuda_open(stub_path, 0, &cuda, &err));
    assert_message("sees no device");
    setenv("CUDA_STUB_DEVICES", "2", 1);
    cr_assert_not(cuda_open(stub_path, 2, &cuda, &err));
    assert_message("no CUDA device 2: the driver sees 2");
    cr_assert_not(cuda_open(stub_path, -1, &cuda, &err));
    stub_fail("cuInit", 0, CUDA_ERROR_NO_DEVICE);
    cr_assert_not(cuda_open(stub_path, 0, &cuda, &err));
    cr_assert_str_eq(err.text, "cuInit: CUDA_ERROR_NO_DEVICE (100): "
                               "no CUDA-capable device is detected");
    cr_assert_eq(err.code, CUDA_ERROR_NO_DEVICE);
}

Test(runtime, unknown_codes_are_printed)
{
    Cuda *cuda = NULL;
    cuda_close(open_stub());
    stub_fail("cuDeviceGet", 0, 12345);
    cr_assert_not(cuda_open(stub_path, 0, &cuda, &err));
    cr_assert_str_eq(err.text, "cuDeviceGet: unknown CUDA error (12345): "
                               "no description");
}

Test(runtime, properties)
{
    Cuda *cuda = open_stub();
    const CudaDevice *d = cuda_device(cuda);
    cr_assert_str_eq(d->name, "stub device 0");
    cr_assert_eq(d->sm_count, 132);
    cr_assert_eq(d->major, 9);
    cr_assert_eq(d->minor, 0);
    cr_assert_eq(d->shared_per_block, 232448);
    cr_assert_eq(d->shared_per_sm, 233472);
    cr_assert_eq(d->l2_bytes, 1 << 20);
    cr_assert_eq(d->driver_version, 13000);
    cuda_close(cuda);
    assert_logged("cuCtxSetCurrent none\ncuDevicePrimaryCtxRelease device=0");
}

Test(runtime, open_lets_go_of_the_context_when_a_later_step_fails)
{
    Cuda *cuda = open_stub();
    cuda_close(cuda);
    size_t before = strlen(stub_log());
    stub_fail("cuDeviceTotalMem", 0, CUDA_ERROR_INVALID_VALUE);
    cr_assert_not(cuda_open(stub_path, 0, &cuda, &err));
    assert_message("cuDeviceTotalMem: CUDA_ERROR_INVALID_VALUE");
    cr_assert(strstr(stub_log() + before, "cuDevicePrimaryCtxRelease"));
}

Test(runtime, ptx_is_loaded_and_refused_with_the_log)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    cr_assert(cuda_module_load_ptx(cuda, ptx, &module, &err));
    cr_assert_str_eq(cuda_module_log(module), "ptxas info : 0 bytes gmem");
    cuda_module_unload(module);
    cr_assert_not(cuda_module_load_ptx(cuda, "nonsense", &module, &err));
    cr_assert_null(module);
    cr_assert_str_eq(err.text,
                     "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): a PTX "
                     "JIT compilation failed: ptxas fatal : Missing .version "
                     "directive");
    cuda_close(cuda);
}

Test(runtime, a_cubin_must_be_whole)
{
    unsigned char elf[256] = "\177ELF\2\1";
    unsigned char fat[64] = "\x50\xed\x55\xba";
    CudaModule *module = NULL;
    Cuda *cuda = open_stub();
    elf[40] = 64;     /* section table at 64 */
    elf[58] = 64;     /* 64 bytes an entry */
    elf[60] = 3;      /* 3 entries: up to 256 */
    fat[8] = 64 - 16; /* bytes after the header */
    cr_assert(cuda_module_load_cubin(cuda, elf, 256, &module, &err));
    cuda_module_unload(module);
    cr_assert_not(cuda_module_load_cubin(cuda, elf, 255, &module, &err));
    assert_message("expected a cubin or a fat binary, found 255 bytes");
    cr_assert(cuda_module_load_cubin(cuda, fat, 64, &module, &err));
    cuda_module_unload(module);
    cr_assert_not(cuda_module_load_cubin(cuda, fat, 63, &module, &err));
    cr_assert_not(cuda_module_load_cubin(cuda, ptx, sizeof ptx, &module, &err));
    cr_assert_not(cuda_module_load_cubin(cuda, "", 0, &module, &err));
    memset(elf + 40, 0xff, 8);
    cr_assert_not(cuda_module_load_cubin(cuda, elf, 256, &module, &err));
    cuda_close(cuda);
}

Test(runtime, functions_are_found_by_their_whole_name)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    CudaFunction fn = load_kernel(cuda, &module);
    cr_assert_str_eq(fn.name, "gemm");
    cr_assert_eq(fn.registers, 168);
    cr_assert_eq(fn.local_bytes, 0);
    cr_assert_eq(fn.static_shared_bytes, 1024);
    cr_assert_eq(fn.max_threads, 1024);
    cr_assert_not(cuda_module_function(module, "gem", &fn, &err));
    assert_message("CUDA_ERROR_NOT_FOUND");
    assert_message("kernel 'gem'");
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime, shared_memory_is_bounded_by_the_device)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    CudaFunction fn = load_kernel(cuda, &module);
    cr_assert(cuda_function_set_shared(cuda, &fn, 232448 - 1024, &err));
    assert_logged("cuFuncSetAttribute gemm 8=231424\n");
    cr_assert_not(cuda_function_set_shared(cuda, &fn, 232448 - 1023, &err));
    assert_message("needs 232449 bytes of shared memory");
    assert_message("at most 232448");
    cr_assert_not(cuda_function_set_shared(cuda, &fn, SIZE_MAX, &err));
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime, memory_goes_there_and_back)
{
    Cuda *cuda = open_stub();
    CudaStubLive *live = NULL;
    CudaPtr a = 1, b = 1, none = 1;
    unsigned char in[100], out[100] = { 0 };
    stub_symbol("cuda_stub_live", &live);
    for (int i = 0; i < 100; i++)
        in[i] = (unsigned char)i;
    cr_assert(cuda_alloc(cuda, 100, &a, &err));
    cr_assert(cuda_alloc_async(cuda, 100, (CudaStream){ NULL }, &b, &err));
    cr_assert(cuda_alloc(cuda, 0, &none, &err));
    cr_assert_eq(none, 0);
    cr_assert_eq(live(), 2);
    cr_assert(cuda_copy_in(cuda, a, in, 100, &err));
    cr_assert(cuda_memset(cuda, b, 7, 100, (CudaStream){ NULL }, &err));
    cr_assert(
        cuda_copy_device(cuda, b + 10, a, 50, (CudaStream){ NULL }, &err));
    cr_assert(cuda_copy_out(cuda, out, b, 100, &err));
    cr_assert_eq(out[9], 7);
    cr_assert_eq(out[10], 0);
    cr_assert_eq(out[59], 49);
    cr_assert_eq(out[60], 7);
    cr_assert_not(cuda_copy_out(cuda, out, b + 1, 100, &err));
    assert_message("copying from the device 100 bytes");
    cr_assert(cuda_free(cuda, a, &err));
    cr_assert(cuda_free_async(cuda, b, (CudaStream){ NULL }, &err));
    cr_assert(cuda_free(cuda, 0, &err));
    cr_assert_eq(live(), 0);
    cr_assert_not(cuda_free(cuda, a, &err));
    cuda_close(cuda);
}

Test(runtime, out_of_memory_says_how_much)
{
    Cuda *cuda = open_stub();
    CudaPtr p = 1;
    cr_assert_not(cuda_alloc(cuda, (size_t)1 << 40, &p, &err));
    cr_assert_eq(p, 0);
    cr_assert_str_eq(err.text, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out "
                               "of memory: allocating 1099511627776 bytes");
    cuda_close(cuda);
}

static const CudaTensorMapSpec good_map = {
    .type = TY_bf16,
    .rank = 2,
    .base = 1 << 20,
    .dims = { 800, 960 },
    .strides = { 0, 1600 },
    .box = { 64, 128 },
    .swizzle = 128,
    .l2_promotion = 256,
};

Test(runtime, tensor_map_reaches_the_driver)
{
    Cuda *cuda = open_stub();
    CudaTensorMap map;
    cr_assert(cuda_tensor_map_encode(cuda, &good_map, &map, &err));
    cr_assert_eq((uintptr_t)&map % 64, 0);
    cr_assert_eq(map.bytes[0], 0xab);
    cr_assert_eq(map.bytes[127], 0xab);
    assert_logged("cuTensorMapEncodeTiled type=9 rank=2 interleave=0 swizzle=3 "
                  "promotion=3 fill=0 dim=800 stride=0 box=64 step=1 dim=960 "
                  "stride=1600 box=128 step=1\n");
    CudaTensorMapSpec tf32 = good_map;
    tf32.type = TY_f32;
    tf32.tf32 = true;
    tf32.box[0] = 32;
    tf32.l2_promotion = 0;
    cr_assert(cuda_tensor_map_encode(cuda, &tf32, &map, &err));
    assert_logged("type=11 rank=2 interleave=0 swizzle=3 promotion=0");
    cuda_close(cuda);
}

/* The good map with one change is refused with that text. */
#define REFUSED(text, change)                                    \
    do {                                                         \
        CudaTensorMapSpec m = good_map;                          \
        m.change;                                                \
        cr_assert_not(cuda_tensor_map_check(&m, &err), #change); \
        assert_message(text);                                    \
    } while (0)

Test(runtime, tensor_map_rules_are_named)
{
    cr_assert(cuda_tensor_map_check(&good_map, &err));
    REFUSED("cannot hold elements of type i8", type = TY_i8);
    REFUSED("cannot hold elements of type R", type = TY_R);
    REFUSED("a tf32 tensor map has type f32, not bf16", tf32 = true);
    REFUSED("rank 1 to 5, not 6", rank = 6);
    REFUSED("rank 1 to 5, not 0", rank = 0);
    REFUSED("multiple of 16, but is 0x100008", base = (1 << 20) + 8);
    REFUSED("multiple of 16, but is 0x0", base = 0);
    REFUSED("dimension 1 of a tensor map has 1 to 2^32", dims[1] = 0);
    REFUSED("not 4294967297", dims[0] = 4294967297u);
    REFUSED("dimension 1 of a tensor map's box", box[1] = 257);
    REFUSED("1 to 256 elements, not 0", box[0] = 0);
    REFUSED("stride of dimension 1", strides[1] = 1608);
    REFUSED("not 1099511627776", strides[1] = (uint64_t)1 << 40);
    REFUSED("multiple of 16 bytes, not 120", box[0] = 60);
    REFUSED("at most its swizzle of 64 bytes, not 128", swizzle = 64);
    REFUSED("0, 32, 64 or 128 bytes, not 16", swizzle = 16);
    REFUSED("0, 64, 128 or 256 bytes, not 32", l2_promotion = 32);
}

Test(runtime, launch_without_a_cluster_has_no_attribute)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    CudaLaunch launch = { .fn = load_kernel(cuda, &module),
                          .grid = { 7 },
                          .block = { 128 },
                          .cluster = { 1, 1, 1 },
                          .shared_bytes = 2048 };
    uint64_t pointer = 0x1234;
    CudaParam params[] = { { &pointer, 8 } };
    cr_assert(cuda_launch(cuda, &launch, params, 1, &err), "%s", err.text);
    assert_logged("cuLaunchKernelEx gemm grid=7,1,1 block=128,1,1 "
                  "cluster=1,1,1 attributes=0 shared=2048 stream=default\n");
    launch.fn.max_threads = 96;
    cr_assert_not(cuda_launch(cuda, &launch, params, 1, &err));
    assert_message("at most 96 threads a block, not 128");
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime, launch_of_a_dependent_kernel_says_so)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    CudaLaunch launch = { .fn = load_kernel(cuda, &module),
                          .grid = { 8 },
                          .block = { 128 },
                          .dependent = true };
    cr_assert(cuda_launch(cuda, &launch, NULL, 0, &err), "%s", err.text);
    assert_logged("cluster=1,1,1 dependent attributes=1 ");
    launch.cluster[0] = 2;
    cr_assert(cuda_launch(cuda, &launch, NULL, 0, &err), "%s", err.text);
    assert_logged("cluster=2,1,1 dependent attributes=2 ");
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime, launch_passes_cluster_and_arguments)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    CudaStubParams *tell = NULL;
    CudaLaunch launch = { .fn = load_kernel(cuda, &module),
                          .grid = { 132 },
                          .block = { 384 },
                          .cluster = { 2 } };
    uint64_t pointer = 0x1234;
    uint32_t number = 77;
    CudaParam params[] = { { &pointer, 8 }, { &number, 4 } };
    stub_symbol("cuda_stub_params", &tell);
    tell((size_t[]){ 8, 4 }, 2);
    cr_assert(cuda_launch(cuda, &launch, params, 2, &err), "%s", err.text);
    assert_logged("block=384,1,1 cluster=2,1,1 attributes=1 shared=0 "
                  "stream=default 1234 4d\n");
    tell((size_t[]){ 8 }, 1);
    cr_assert_not(cuda_launch(cuda, &launch, params, 2, &err));
    assert_message("has 1 parameters, fewer than the 2 arguments given");
    tell((size_t[]){ 8, 8 }, 2);
    cr_assert_not(cuda_launch(cuda, &launch, params, 2, &err));
    assert_message("parameter 1 of kernel 'gemm' has 8 bytes, but the argument "
                   "has 4");
    launch.grid[0] = 131;
    cr_assert_not(cuda_launch(cuda, &launch, params, 2, &err));
    assert_message("grid of 131 blocks in dimension 0 is no multiple of the "
                   "cluster's 2");
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime, large_clusters_are_asked_for)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    CudaLaunch launch = { .fn = load_kernel(cuda, &module),
                          .grid = { 16 },
                          .block = { 128 },
                          .cluster = { 8 } };
    cr_assert(cuda_launch(cuda, &launch, NULL, 0, &err));
    cr_assert_null(strstr(stub_log(), "cuFuncSetAttribute"));
    launch.cluster[0] = 16;
    cr_assert(cuda_launch(cuda, &launch, NULL, 0, &err));
    assert_logged("cuFuncSetAttribute gemm 14=1\ncuLaunchKernelEx");
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime, a_failed_launch_names_the_kernel)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    CudaLaunch launch = { .fn = load_kernel(cuda, &module) };
    stub_fail("cuLaunchKernelEx", 1, CUDA_ERROR_INVALID_VALUE);
    cr_assert(cuda_launch(cuda, &launch, NULL, 0, &err));
    cr_assert_not(cuda_launch(cuda, &launch, NULL, 0, &err));
    cr_assert_str_eq(err.text, "cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE "
                               "(1): invalid argument: kernel 'gemm'");
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime, max_clusters)
{
    Cuda *cuda = open_stub();
    CudaModule *module = NULL;
    CudaLaunch launch = { .fn = load_kernel(cuda, &module),
                          .block = { 384 },
                          .cluster = { 2 },
                          .shared_bytes = 200000 };
    int n = 0;
    cr_assert(cuda_max_clusters(cuda, &launch, &n, &err));
    cr_assert_eq(n, 66);
    assert_logged("cuOccupancyMaxActiveClusters gemm grid=2,1,1 cluster=2,1,1");
    launch.cluster[0] = 0;
    cr_assert(cuda_max_clusters(cuda, &launch, &n, &err));
    cr_assert_eq(n, 132);
    assert_logged("PerMultiprocessor gemm threads=384 shared=200000");
    launch.shared_bytes = 100000;
    cr_assert(cuda_max_clusters(cuda, &launch, &n, &err));
    cr_assert_eq(n, 2 * 132);
    launch.shared_bytes = 240000;
    cr_assert_not(cuda_max_clusters(cuda, &launch, &n, &err));
    assert_message("does not fit on stub device 0: 1 blocks a cluster, 384 "
                   "threads and 240000 bytes");
    cuda_module_unload(module);
    cuda_close(cuda);
}

/* On 132 multiprocessors. */
Test(runtime, no_more_clusters_than_the_rounds_need)
{
    static const struct {
        int fit, blocks;
        int64_t tasks;
        int even;
    } rows
        [] = {
            { 132, 1, 0, 1 },
            { 132, 1, 1, 1 },
            { 132, 1, 131, 131 },
            { 132, 1, 132, 132 },
            { 132, 1, 133, 132 }, /* 67 would leave out half */
            { 132, 1, 230, 132 }, /* 115 */
            { 132, 1, 231, 116 }, /* seven eighths are 115.5 */
            { 132, 1, 264, 132 },
            { 132, 1, 512, 128 },
            { 132, 1, INT64_MAX, 132 },
            { 264, 1, 1024, 264 }, /* two a multiprocessor */
            { 264, 1, 200, 200 },
            { 66, 2, 256, 64 },
            { 66, 2, 1024, 64 },
            { 66, 2, 60, 60 },
            { 66, 4, 256, 66 },
            { 15, 8, 28, 14 },
            { 15, 8, 26, 15 }, /* 13 */
            { 1, 1, 512, 1 },
        };
    Cuda *cuda = open_stub();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CudaLaunch launch = { .cluster = { (unsigned)rows[i].blocks } };
        cr_expect_eq(
            cuda_even_clusters(cuda, &launch, rows[i].fit, rows[i].tasks),
            rows[i].even, "row %zu", i);
    }
    cuda_close(cuda);
}

typedef struct Work {
    Cuda *cuda;
    CudaLaunch launch;
    int calls, fail_at;
} Work;

static bool launch_body(void *user, CudaStream stream, CudaError *e)
{
    Work *w = user;
    w->launch.stream = stream;
    if (w->calls++ == w->fail_at) {
        strcpy(e->text, "body failed");
        return false;
    }
    return cuda_launch(w->cuda, &w->launch, NULL, 0, e);
}

static int count_in_log(const char *text)
{
    int n = 0;
    for (const char *p = stub_log(); (p = strstr(p, text)); p++)
        n++;
    return n;
}

Test(runtime, bench_times_each_round_and_flushes_before_it)
{
    CudaModule *module = NULL;
    Work work = { .cuda = open_stub(), .fail_at = -1 };
    float ms[5] = { 0 };
    work.launch.fn = load_kernel(work.cuda, &module);
    cr_assert(cuda_bench(work.cuda, 5, launch_body, &work, ms, &err), "%s",
              err.text);
    cr_assert_eq(work.calls, 6);
    for (int i = 0; i < 5; i++)
        cr_assert_float_eq(ms[i], 1.0f, 0);
    cr_assert_eq(count_in_log("cuMemsetD8Async value=0 bytes=2097152"), 6);
    cr_assert_eq(count_in_log("cuMemAlloc "), 1);
    cr_assert_eq(count_in_log("cuEventCreate"), 10);
    cr_assert_eq(count_in_log("cuEventDestroy"), 10);
    cr_assert_eq(count_in_log("cuStreamDestroy"), 1);
    cuda_module_unload(module);
    cuda_close(work.cuda);
    assert_logged("cuMemFree\ncuCtxSetCurrent none");
}

Test(runtime, bench_stops_at_a_failure_and_cleans_up)
{
    CudaModule *module = NULL;
    Work work = { .cuda = open_stub(), .fail_at = 3 };
    float ms[5];
    work.launch.fn = load_kernel(work.cuda, &module);
    cr_assert_not(cuda_bench(work.cuda, 5, launch_body, &work, ms, &err));
    cr_assert_str_eq(err.text, "body failed");
    cr_assert_eq(work.calls, 4);
    cr_assert_eq(count_in_log("cuEventDestroy"), 10);
    cr_assert_not(cuda_bench(work.cuda, 0, launch_body, &work, ms, &err));
    assert_message("1 round or more, not 0");
    cuda_module_unload(module);
    cuda_close(work.cuda);
}

Test(runtime, middle_mean_leaves_the_outer_quarters)
{
    float ms[] = { 100, 3, 1, 4, 2, 5, 0, 6 };
    cr_assert_float_eq(cuda_middle_mean(ms, 8), 3.5, 1e-12);
    cr_assert_float_eq(cuda_middle_mean(ms, 1), 100, 1e-12);
    cr_assert_float_eq(cuda_middle_mean(ms, 0), 0, 0);
}
