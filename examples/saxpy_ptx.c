/* Runs the PTX that exo makes of kernels/saxpy.exo through the CUDA driver, with
 * nothing of exo linked in.
 *
 *   exo-translate kernels/saxpy.exo --to=ptx -o saxpy.ptx
 *   cc -o example examples/saxpy_ptx.c -lcuda
 *   ./example saxpy.ptx
 *
 * The parameters of a kernel are those of its procedure: sizes as 32-bit
 * integers, tensors as addresses, windows as an address and 32-bit strides in
 * elements, scalars by value, tensor maps by value. The PTX is compiled for the
 * device when it is loaded. Blocks take tasks until none is left, so that any
 * grid computes the same; as many blocks as run at once are best. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What is needed of the driver; with the CUDA toolkit, #include <cuda.h>. */
typedef unsigned long long CUdeviceptr;
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuModuleLoadDataEx(void **module, const void *image, unsigned n_options,
                       int *options, void **values);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
                                                int threads, size_t shared);
int cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
int cuMemFree_v2(CUdeviceptr ptr);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
typedef struct LaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    void *stream, *attributes;
    unsigned n_attributes;
} LaunchConfig;
int cuLaunchKernelEx(const LaunchConfig *config, void *function,
                     void **params, void **extra);

enum { N = 1000, THREADS = 256, MULTIPROCESSOR_COUNT = 16 };

/* The file with a zero behind it, or NULL. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (file && text && fread(text, 1, (1 << 20) - 1, file) == 0)
        text[0] = '\0';
    if (file)
        fclose(file);
    return text;
}

static int launch(void *function, int device, CUdeviceptr x, CUdeviceptr y)
{
    int processors, blocks;
    uint32_t n = N;
    float a = 2.0f;
    void *params[] = { &n, &a, &x, &y };
    if (cuDeviceGetAttribute(&processors, MULTIPROCESSOR_COUNT, device) ||
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, THREADS,
                                                    0))
        return 1;
    LaunchConfig config = {
        .grid = { (unsigned)(processors * blocks), 1, 1 },
        .block = { THREADS, 1, 1 },
    };
    return cuLaunchKernelEx(&config, function, params, NULL);
}

int main(int argc, char **argv)
{
    static float x[N], y[N];
    CUdeviceptr dx, dy;
    void *context, *module, *function;
    int device;
    char *ptx = argc == 2 ? read_text(argv[1]) : NULL;
    if (!ptx) {
        fprintf(stderr, "usage: %s saxpy.ptx\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    if (cuInit(0) || cuDeviceGet(&device, 0) ||
        cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context)) {
        fprintf(stderr, "no GPU\n");
        return 1;
    }
    if (cuModuleLoadDataEx(&module, ptx, 0, NULL, NULL) ||
        cuModuleGetFunction(&function, module, "saxpy_kernel0")) {
        fprintf(stderr, "%s: no PTX with a kernel saxpy_kernel0 for this "
                        "device\n", argv[1]);
        return 1;
    }
    if (cuMemAlloc_v2(&dx, sizeof x) || cuMemAlloc_v2(&dy, sizeof y) ||
        cuMemcpyHtoD_v2(dx, x, sizeof x) || cuMemcpyHtoD_v2(dy, y, sizeof y) ||
        launch(function, device, dx, dy) || cuMemcpyDtoH_v2(y, dy, sizeof y)) {
        fprintf(stderr, "the launch failed\n");
        return 1;
    }
    printf("y[10] = %g\n", (double)y[10]);
    cuMemFree_v2(dx);
    cuMemFree_v2(dy);
    free(ptx);
    return 0;
}
