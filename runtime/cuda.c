/* Opening the driver and the device, and the messages of driver errors.
 *
 * The driver's functions are looked up by the rows of cuda_functions.def into
 * the fields of `Cuda` of the same name. A row the library lacks is an error
 * that names the symbol. Failures on the way close what was opened. */
#include "runtime/cuda.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_internal.h"

static const char default_library[] = "libcuda.so.1";

bool cuda_refuse(CudaError *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->code = 0;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return false;
}

void cuda_error_append(CudaError *err, const char *format, ...)
{
    size_t used = strlen(err->text);
    va_list args;
    va_start(args, format);
    int n = snprintf(err->text + used, sizeof err->text - used, ": ");
    if (used + (size_t)n < sizeof err->text)
        vsnprintf(err->text + used + n, sizeof err->text - used - (size_t)n,
                  format, args);
    va_end(args);
}

bool cuda_succeeded(const Cuda *cuda, CudaError *err, const char *function,
                    CUresult code)
{
    if (code == CUDA_SUCCESS)
        return true;
    const char *name = NULL, *text = NULL;
    if (cuda->GetErrorName(code, &name) != CUDA_SUCCESS || !name)
        name = "unknown CUDA error";
    if (cuda->GetErrorString(code, &text) != CUDA_SUCCESS || !text)
        text = "no description";
    cuda_refuse(err, "%s: %s (%d): %s", function, name, (int)code, text);
    err->code = code;
    return false;
}

/* Looks `symbol` up into the function pointer at `field`. POSIX gives the
 * function as an object pointer of the same size, hence the copy of bytes. */
static bool find_symbol(void *library, const char *symbol, void *field)
{
    void *found = dlsym(library, symbol);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

/* Fills the function fields; false with the first required one missing. */
static bool find_functions(Cuda *cuda, const char *file, CudaError *err)
{
    const char *missing = NULL;
#define CUDA_FUNCTION(field, symbol, params)                           \
    if (!find_symbol(cuda->library, symbol, &cuda->field) && !missing) \
        missing = symbol;
#define CUDA_OPTIONAL(field, symbol, params) \
    find_symbol(cuda->library, symbol, &cuda->field);
#include "runtime/cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_OPTIONAL
    if (missing)
        return cuda_refuse(err,
                           "%s has no function %s: it is no CUDA driver, or "
                           "one older than CUDA 12.0",
                           file, missing);
    return true;
}

/* Opens the driver's library. It stays mapped after cuda_close: threads of a
 * driver may outlive the handle. */
static bool open_library(Cuda *cuda, const char *file, CudaError *err)
{
    if (!file)
        file = getenv("EXO_CUDA_LIBRARY");
    if (!file || !*file)
        file = default_library;
    cuda->library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!cuda->library)
        return cuda_refuse(err, "no CUDA driver: %s", dlerror());
    return find_functions(cuda, file, err);
}

static bool open_device(Cuda *cuda, int ordinal, CudaError *err)
{
    int count = 0;
    if (!CUDA_CALL(cuda, err, Init, 0) ||
        !CUDA_CALL(cuda, err, DeviceGetCount, &count))
        return false;
    if (count == 0)
        return cuda_refuse(err, "the CUDA driver sees no device");
    if (ordinal < 0 || ordinal >= count)
        return cuda_refuse(err, "no CUDA device %d: the driver sees %d",
                           ordinal, count);
    if (!CUDA_CALL(cuda, err, DeviceGet, &cuda->device, ordinal) ||
        !CUDA_CALL(cuda, err, DevicePrimaryCtxRetain, &cuda->context,
                   cuda->device))
        return false;
    return CUDA_CALL(cuda, err, CtxSetCurrent, cuda->context);
}

/* One attribute as a size. */
static bool size_attribute(Cuda *cuda, CUdevice_attribute attribute,
                           size_t *out, CudaError *err)
{
    int value = 0;
    if (!CUDA_CALL(cuda, err, DeviceGetAttribute, &value, attribute,
                   cuda->device))
        return false;
    *out = value < 0 ? 0 : (size_t)value;
    return true;
}

static bool read_properties(Cuda *cuda, CudaError *err)
{
    CudaDevice *p = &cuda->properties;
    CUdevice device = cuda->device;
    const struct {
        CUdevice_attribute attribute;
        int *field;
    } rows[] = {
        { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &p->sm_count },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &p->major },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &p->minor },
        { CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &p->clock_khz },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!CUDA_CALL(cuda, err, DeviceGetAttribute, rows[i].field,
                       rows[i].attribute, device))
            return false;
    return size_attribute(cuda,
                          CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                          &p->shared_per_block, err) &&
           size_attribute(
               cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
               &p->shared_per_sm, err) &&
           size_attribute(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &p->l2_bytes,
                          err) &&
           CUDA_CALL(cuda, err, DeviceTotalMem, &p->memory_bytes, device) &&
           CUDA_CALL(cuda, err, DeviceGetName, p->name, (int)sizeof p->name,
                     device) &&
           CUDA_CALL(cuda, err, DriverGetVersion, &p->driver_version);
}

bool cuda_open(const char *library, int ordinal, Cuda **out, CudaError *err)
{
    *out = NULL;
    Cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return cuda_refuse(err, "out of memory");
    if (!open_library(cuda, library, err) || !open_device(cuda, ordinal, err) ||
        !read_properties(cuda, err)) {
        cuda_close(cuda);
        return false;
    }
    *out = cuda;
    return true;
}

void cuda_close(Cuda *cuda)
{
    if (!cuda)
        return;
    if (cuda->flush_buffer)
        cuda->MemFree(cuda->flush_buffer);
    if (cuda->context) {
        cuda->CtxSetCurrent(NULL);
        cuda->DevicePrimaryCtxRelease(cuda->device);
    }
    if (cuda->library)
        dlclose(cuda->library);
    free(cuda);
}

const CudaDevice *cuda_device(const Cuda *cuda)
{
    return &cuda->properties;
}

bool cuda_sync(Cuda *cuda, CudaError *err)
{
    return cuda_succeeded(cuda, err, "cuCtxSynchronize",
                          cuda->CtxSynchronize());
}
