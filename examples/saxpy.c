/* Calls the C library that exo prints for kernels/saxpy.exo.
 *
 *   exo-translate kernels/saxpy.exo --to=c -o saxpy.c
 *   cc -o example examples/saxpy.c saxpy.c -I. -lcuda -lpthread -ldl
 *   ./example
 *
 * The library works in the CUDA context that is current. This program makes
 * one through the driver; one that uses the runtime API has one after its
 * first call, and passes its device pointers and cudaStream_t as they are. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "saxpy.h"

/* What this program itself needs of the driver; with the CUDA toolkit,
 * #include <cuda.h> instead. */
typedef unsigned long long CUdeviceptr;
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
int cuMemFree_v2(CUdeviceptr ptr);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);

enum { N = 1000 };

static int open_device(void)
{
    void *context;
    int device;
    return cuInit(0) || cuDeviceGet(&device, 0) ||
           cuDevicePrimaryCtxRetain(&context, device) ||
           cuCtxSetCurrent(context);
}

int main(void)
{
    static float x[N], y[N];
    CUdeviceptr dx, dy;
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    if (open_device() || cuMemAlloc_v2(&dx, sizeof x) ||
        cuMemAlloc_v2(&dy, sizeof y) || cuMemcpyHtoD_v2(dx, x, sizeof x) ||
        cuMemcpyHtoD_v2(dy, y, sizeof y)) {
        fprintf(stderr, "no GPU, or no memory on it\n");
        return 1;
    }
    int status = saxpy(N, 2.0f, (const void *)(uintptr_t)dx,
                       (void *)(uintptr_t)dy, NULL);
    if (status != EXO_OK) {
        fprintf(stderr, "%s: %s\n", saxpy_error_string(status),
                saxpy_last_error());
        return 1;
    }
    if (cuMemcpyDtoH_v2(y, dy, sizeof y)) /* waits for the kernel */
        return 1;
    printf("y[10] = %g\n", (double)y[10]);
    cuMemFree_v2(dx);
    cuMemFree_v2(dy);
    return 0;
}
