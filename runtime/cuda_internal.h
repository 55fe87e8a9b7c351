/* What the files of runtime/cuda_*.c share: the open driver and the way a
 * driver result becomes a message. Private to runtime/. */
#ifndef EXO_RUNTIME_CUDA_INTERNAL_H
#define EXO_RUNTIME_CUDA_INTERNAL_H

#include "runtime/cuda.h"
#include "runtime/cuda_abi.h"

struct Cuda {
    void *library; /* from dlopen */
    CUdevice device;
    CUcontext context;
    CudaDevice properties;
    CUdeviceptr flush_buffer; /* 0 until cuda_flush_l2 */
#define CUDA_FUNCTION(field, symbol, params) CUresult(*field) params;
#define CUDA_OPTIONAL(field, symbol, params) CUresult(*field) params;
#include "runtime/cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_OPTIONAL
};

struct CudaModule {
    Cuda *cuda;
    CUmodule handle;
    char log[8192];
};

/* Writes a message of the runtime itself; returns false. */
bool cuda_refuse(CudaError *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* True for CUDA_SUCCESS; otherwise writes `function`, the driver's name and
 * text for `code` and returns false. */
bool cuda_succeeded(const Cuda *cuda, CudaError *err, const char *function,
                    CUresult code);

/* Appends ": " and more to a message. */
void cuda_error_append(CudaError *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Calls a driver function and turns its result into true, or false with a
 * message. */
#define CUDA_CALL(cuda, err, field, ...) \
    cuda_succeeded((cuda), (err), "cu" #field, (cuda)->field(__VA_ARGS__))

#endif
