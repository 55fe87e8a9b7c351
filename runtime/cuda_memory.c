/* Device memory, streams and events: thin calls whose errors say how many bytes
 * were asked for. */
#include "runtime/cuda.h"
#include "runtime/cuda_internal.h"

/* Adds what was asked for to the message of a failed call. */
static bool with_bytes(bool ok, CudaError *err, const char *what, size_t bytes)
{
    if (!ok)
        cuda_error_append(err, "%s %zu bytes", what, bytes);
    return ok;
}

static CUstream stream_handle(CudaStream stream)
{
    return (CUstream)stream.handle;
}

bool cuda_alloc(Cuda *cuda, size_t bytes, CudaPtr *out, CudaError *err)
{
    CUdeviceptr ptr = 0;
    *out = 0;
    if (bytes == 0)
        return true;
    bool ok = CUDA_CALL(cuda, err, MemAlloc, &ptr, bytes);
    *out = ptr;
    return with_bytes(ok, err, "allocating", bytes);
}

bool cuda_free(Cuda *cuda, CudaPtr ptr, CudaError *err)
{
    return ptr == 0 || CUDA_CALL(cuda, err, MemFree, ptr);
}

bool cuda_alloc_async(Cuda *cuda, size_t bytes, CudaStream stream, CudaPtr *out,
                      CudaError *err)
{
    CUdeviceptr ptr = 0;
    *out = 0;
    if (bytes == 0)
        return true;
    bool ok =
        CUDA_CALL(cuda, err, MemAllocAsync, &ptr, bytes, stream_handle(stream));
    *out = ptr;
    return with_bytes(ok, err, "allocating", bytes);
}

bool cuda_free_async(Cuda *cuda, CudaPtr ptr, CudaStream stream, CudaError *err)
{
    return ptr == 0 ||
           CUDA_CALL(cuda, err, MemFreeAsync, ptr, stream_handle(stream));
}

bool cuda_copy_in(Cuda *cuda, CudaPtr to, const void *from, size_t bytes,
                  CudaError *err)
{
    return bytes == 0 ||
           with_bytes(CUDA_CALL(cuda, err, MemcpyHtoD, to, from, bytes), err,
                      "copying to the device", bytes);
}

bool cuda_copy_out(Cuda *cuda, void *to, CudaPtr from, size_t bytes,
                   CudaError *err)
{
    return bytes == 0 ||
           with_bytes(CUDA_CALL(cuda, err, MemcpyDtoH, to, from, bytes), err,
                      "copying from the device", bytes);
}

bool cuda_copy_device(Cuda *cuda, CudaPtr to, CudaPtr from, size_t bytes,
                      CudaStream stream, CudaError *err)
{
    return bytes == 0 ||
           with_bytes(CUDA_CALL(cuda, err, MemcpyDtoDAsync, to, from, bytes,
                                stream_handle(stream)),
                      err, "copying on the device", bytes);
}

bool cuda_memset(Cuda *cuda, CudaPtr ptr, unsigned char value, size_t bytes,
                 CudaStream stream, CudaError *err)
{
    return bytes == 0 ||
           with_bytes(CUDA_CALL(cuda, err, MemsetD8Async, ptr, value, bytes,
                                stream_handle(stream)),
                      err, "filling", bytes);
}

bool cuda_stream_create(Cuda *cuda, CudaStream *out, CudaError *err)
{
    CUstream stream = NULL;
    bool ok =
        CUDA_CALL(cuda, err, StreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    out->handle = stream;
    return ok;
}

void cuda_stream_destroy(Cuda *cuda, CudaStream stream)
{
    if (stream.handle)
        cuda->StreamDestroy(stream_handle(stream));
}

bool cuda_stream_sync(Cuda *cuda, CudaStream stream, CudaError *err)
{
    return CUDA_CALL(cuda, err, StreamSynchronize, stream_handle(stream));
}

bool cuda_event_create(Cuda *cuda, CudaEvent *out, CudaError *err)
{
    CUevent event = NULL;
    bool ok = CUDA_CALL(cuda, err, EventCreate, &event, CU_EVENT_DEFAULT);
    out->handle = event;
    return ok;
}

void cuda_event_destroy(Cuda *cuda, CudaEvent event)
{
    if (event.handle)
        cuda->EventDestroy((CUevent)event.handle);
}

bool cuda_event_record(Cuda *cuda, CudaEvent event, CudaStream stream,
                       CudaError *err)
{
    return CUDA_CALL(cuda, err, EventRecord, (CUevent)event.handle,
                     stream_handle(stream));
}

bool cuda_event_elapsed(Cuda *cuda, CudaEvent start, CudaEvent stop, float *ms,
                        CudaError *err)
{
    return CUDA_CALL(cuda, err, EventSynchronize, (CUevent)stop.handle) &&
           CUDA_CALL(cuda, err, EventElapsedTime, ms, (CUevent)start.handle,
                     (CUevent)stop.handle);
}
