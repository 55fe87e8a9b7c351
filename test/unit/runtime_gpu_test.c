/* The CUDA runtime on a real device of compute capability 9.0, skipped where
 * there is none: a plain launch, a cluster launch, a tensor map read by the
 * bulk copy engine, faults, and times. The kernels are PTX in this file. */
#include "runtime/cuda.h"

#include <criterion/criterion.h>
#include <string.h>

static CudaError err;

#define HEADER ".version 8.0\n.target sm_90a\n.address_size 64\n"

/* out[i] = 2 * in[i] for one block. */
static const char scale_ptx[] = HEADER
    ".visible .entry scale(.param .u64 out, .param .u64 in, .param .f32 by) {\n"
    ".reg .b64 %o, %i, %d; .reg .b32 %t; .reg .f32 %v, %b;\n"
    "ld.param.u64 %o, [out]; ld.param.u64 %i, [in]; ld.param.f32 %b, [by];\n"
    "mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4;\n"
    "add.u64 %o, %o, %d; add.u64 %i, %i, %d;\n"
    "ld.global.f32 %v, [%i]; mul.f32 %v, %v, %b; st.global.f32 [%o], %v;\n"
    "ret; }\n";

/* out[block] = rank of the block in its cluster. */
static const char ranks_ptx[] =
    HEADER ".visible .entry ranks(.param .u64 out) {\n"
           ".reg .b64 %o, %d; .reg .b32 %c, %r;\n"
           "ld.param.u64 %o, [out]; mov.u32 %c, %ctaid.x;\n"
           "mul.wide.u32 %d, %c, 4; add.u64 %o, %o, %d;\n"
           "mov.u32 %r, %cluster_ctarank; st.global.u32 [%o], %r; ret; }\n";

/* Copies the box of 16 x 8 f32 at (x, y) to out, with 128 threads. */
static const char tile_ptx[] = HEADER
    ".visible .entry tile(.param .align 64 .b8 map[128], .param .u64 out,\n"
    ".param .u32 x, .param .u32 y) {\n"
    ".shared .align 128 .b8 box[512]; .shared .align 8 .b64 full;\n"
    ".reg .pred %p, %q; .reg .b32 %t, %b, %f, %x, %y, %a;\n"
    ".reg .b64 %m, %o, %d, %s; .reg .f32 %v;\n"
    "mov.u32 %t, %tid.x; mov.u32 %b, box; mov.u32 %f, full;\n"
    "ld.param.u32 %x, [x]; ld.param.u32 %y, [y]; ld.param.u64 %o, [out];\n"
    "mov.b64 %m, map; cvta.param.u64 %m, %m;\n"
    "setp.ne.u32 %p, %t, 0; @%p bra READY;\n"
    "mbarrier.init.shared::cta.b64 [%f], 1;\n"
    "fence.proxy.async.shared::cta;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 %s, [%f], 512;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier"
    "::complete_tx::bytes [%b], [%m, {%x, %y}], [%f];\n"
    "READY: bar.sync 0;\n"
    "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %q, [%f], 0;\n"
    "@!%q bra WAIT;\n"
    "mad.lo.u32 %a, %t, 4, %b; ld.shared.f32 %v, [%a];\n"
    "mul.wide.u32 %d, %t, 4; add.u64 %o, %o, %d; st.global.f32 [%o], %v;\n"
    "ret; }\n";

/* Writes to address 16. */
static const char fault_ptx[] =
    HEADER ".visible .entry fault() {\n"
           ".reg .b64 %a; mov.u64 %a, 16; st.global.u64 [%a], %a; ret; }\n";

/* The device, or the test is skipped with the reason. */
static Cuda *open_device(void)
{
    Cuda *cuda = NULL;
    if (!cuda_open(NULL, 0, &cuda, &err))
        cr_skip_test("no GPU: %s", err.text);
    if (cuda_device(cuda)->major != 9)
        cr_skip_test("needs compute capability 9.0, found %d.%d",
                     cuda_device(cuda)->major, cuda_device(cuda)->minor);
    return cuda;
}

static CudaFunction load(Cuda *cuda, const char *ptx, const char *name,
                         CudaModule **module)
{
    CudaFunction fn;
    cr_assert(cuda_module_load_ptx(cuda, ptx, module, &err), "%s", err.text);
    cr_assert(cuda_module_function(*module, name, &fn, &err), "%s", err.text);
    return fn;
}

#define OK(call) cr_assert((call), "%s", err.text)

Test(runtime_gpu, a_kernel_runs_and_wrong_arguments_are_refused)
{
    Cuda *cuda = open_device();
    CudaModule *module = NULL;
    CudaPtr in, out;
    float a[64], b[64] = { 0 }, by = 2;
    CudaLaunch launch = { .fn = load(cuda, scale_ptx, "scale", &module),
                          .grid = { 1 },
                          .block = { 64 } };
    CudaParam params[] = { { &out, 8 }, { &in, 8 }, { &by, 4 } };
    for (int i = 0; i < 64; i++)
        a[i] = (float)i;
    OK(cuda_alloc(cuda, sizeof a, &in, &err));
    OK(cuda_alloc(cuda, sizeof b, &out, &err));
    OK(cuda_copy_in(cuda, in, a, sizeof a, &err));
    OK(cuda_launch(cuda, &launch, params, 3, &err));
    OK(cuda_copy_out(cuda, b, out, sizeof b, &err));
    for (int i = 0; i < 64; i++)
        cr_assert_float_eq(b[i], 2.0f * (float)i, 0);
    if (cuda_device(cuda)->driver_version >= 12040) {
        cr_assert_not(cuda_launch(cuda, &launch, params, 2, &err));
        params[2].size = 8;
        cr_assert_not(cuda_launch(cuda, &launch, params, 3, &err));
    }
    OK(cuda_free(cuda, in, &err));
    OK(cuda_free(cuda, out, &err));
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime_gpu, bad_ptx_comes_back_with_the_assemblers_words)
{
    Cuda *cuda = open_device();
    CudaModule *module = NULL;
    cr_assert_not(cuda_module_load_ptx(cuda, HEADER "bogus", &module, &err));
    cr_assert(strstr(err.text, "CUDA_ERROR_INVALID_PTX"), "%s", err.text);
    cr_assert(strstr(err.text, "ptxas"), "%s", err.text);
    cuda_close(cuda);
}

Test(runtime_gpu, blocks_of_a_cluster_know_their_ranks)
{
    Cuda *cuda = open_device();
    CudaModule *module = NULL;
    CudaPtr out;
    uint32_t ranks[8];
    int clusters = 0;
    CudaLaunch launch = { .fn = load(cuda, ranks_ptx, "ranks", &module),
                          .grid = { 8 },
                          .block = { 32 },
                          .cluster = { 4 } };
    CudaParam params[] = { { &out, 8 } };
    OK(cuda_alloc(cuda, sizeof ranks, &out, &err));
    OK(cuda_launch(cuda, &launch, params, 1, &err));
    OK(cuda_copy_out(cuda, ranks, out, sizeof ranks, &err));
    for (uint32_t i = 0; i < 8; i++)
        cr_assert_eq(ranks[i], i % 4);
    OK(cuda_function_set_shared(cuda, &launch.fn, 200000, &err));
    launch.shared_bytes = 200000;
    OK(cuda_max_clusters(cuda, &launch, &clusters, &err));
    cr_assert(clusters > 0 && 4 * clusters <= cuda_device(cuda)->sm_count);
    OK(cuda_free(cuda, out, &err));
    cuda_module_unload(module);
    cuda_close(cuda);
}

/* A box that hangs over both edges: outside is zero. */
Test(runtime_gpu, a_tensor_map_reads_the_right_box)
{
    enum { ROWS = 20, COLUMNS = 24 };
    Cuda *cuda = open_device();
    CudaModule *module = NULL;
    CudaPtr in, out;
    CudaTensorMap map;
    float a[ROWS * COLUMNS], b[8 * 16];
    uint32_t x = 16, y = 15;
    CudaLaunch launch = { .fn = load(cuda, tile_ptx, "tile", &module),
                          .grid = { 1 },
                          .block = { 128 } };
    CudaParam params[] = { { &map, 128 }, { &out, 8 }, { &x, 4 }, { &y, 4 } };
    for (int i = 0; i < ROWS * COLUMNS; i++)
        a[i] = (float)(i + 1);
    OK(cuda_alloc(cuda, sizeof a, &in, &err));
    OK(cuda_alloc(cuda, sizeof b, &out, &err));
    OK(cuda_copy_in(cuda, in, a, sizeof a, &err));
    CudaTensorMapSpec spec = { .type = TY_f32,
                               .rank = 2,
                               .base = in,
                               .dims = { COLUMNS, ROWS },
                               .strides = { 0, COLUMNS * 4 },
                               .box = { 16, 8 },
                               .l2_promotion = 128 };
    OK(cuda_tensor_map_encode(cuda, &spec, &map, &err));
    OK(cuda_launch(cuda, &launch, params, 4, &err));
    OK(cuda_copy_out(cuda, b, out, sizeof b, &err));
    for (uint32_t r = 0; r < 8; r++)
        for (uint32_t c = 0; c < 16; c++) {
            bool inside = y + r < ROWS && x + c < COLUMNS;
            float want = inside ? a[(y + r) * COLUMNS + x + c] : 0;
            cr_assert_float_eq(b[r * 16 + c], want, 0, "%u %u", r, c);
        }
    OK(cuda_free(cuda, in, &err));
    OK(cuda_free(cuda, out, &err));
    cuda_module_unload(module);
    cuda_close(cuda);
}

Test(runtime_gpu, a_fault_is_reported_by_the_next_wait)
{
    Cuda *cuda = open_device();
    CudaModule *module = NULL;
    CudaLaunch launch = { .fn = load(cuda, fault_ptx, "fault", &module) };
    OK(cuda_launch(cuda, &launch, NULL, 0, &err));
    cr_assert_not(cuda_sync(cuda, &err));
    cr_assert(strstr(err.text, "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"),
              "%s", err.text);
    cuda_module_unload(module);
    cuda_close(cuda);
}

typedef struct Work {
    Cuda *cuda;
    CudaLaunch launch;
    CudaPtr data;
} Work;

static bool scale_body(void *user, CudaStream stream, CudaError *e)
{
    Work *w = user;
    float by = 1;
    CudaParam params[] = { { &w->data, 8 }, { &w->data, 8 }, { &by, 4 } };
    w->launch.stream = stream;
    return cuda_launch(w->cuda, &w->launch, params, 3, e);
}

Test(runtime_gpu, every_round_takes_time)
{
    CudaModule *module = NULL;
    Work work = { .cuda = open_device() };
    float ms[10] = { 0 };
    work.launch =
        (CudaLaunch){ .fn = load(work.cuda, scale_ptx, "scale", &module),
                      .block = { 64 } };
    OK(cuda_alloc(work.cuda, 256, &work.data, &err));
    OK(cuda_memset(work.cuda, work.data, 0, 256, (CudaStream){ NULL }, &err));
    OK(cuda_bench(work.cuda, 10, scale_body, &work, ms, &err));
    for (int i = 0; i < 10; i++)
        cr_assert(ms[i] > 0);
    OK(cuda_free(work.cuda, work.data, &err));
    cuda_module_unload(module);
    cuda_close(work.cuda);
}
