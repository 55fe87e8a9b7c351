/* A CUDA driver without a device, for tests: it has the symbols of libcuda.so.1
 * that the runtime and generated C call, records each call as a line of text,
 * and answers success.
 *
 * Device memory is host memory, so copies and fills are real, and they are
 * checked against what was allocated; fresh memory holds 0xCD. Kernels do
 * nothing. PTX is accepted when it has a `.version` line, and a kernel is found
 * when the text has an `.entry` of its name; a binary image has any kernel.
 * Tests steer it through libcuda_stub.h; a program that has it linked in sets
 * CUDA_STUB_LOG to a file that gets the lines, CUDA_STUB_FAIL=cuName:code to
 * make one function fail, and CUDA_STUB_DEVICES to a number of devices. */
#include "test/stub/libcuda_stub.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    ALLOCATIONS_MAX = 1024,
    PARAMS_MAX = 64,
    DEVICES_MAX = 8,
    DURATIONS_MAX = 16
};

struct CUmod_st {
    char *ptx; /* NULL for a binary image */
};
struct CUfunc_st {
    char name[256];
};
struct CUstream_st {
    int unused;
};
struct CUevent_st {
    int time;
};
struct CUctx_st {
    int unused;
};

static struct {
    bool initialized;
    char log[1 << 20];
    size_t log_used;
    char fail_name[64];
    int fail_skip, fail_code;
    struct {
        char *ptr;
        size_t bytes;
    } allocations[ALLOCATIONS_MAX];
    size_t param_sizes[PARAMS_MAX];
    int param_count; /* -1: not told */
    struct CUfunc_st functions[64];
    int function_count;
    int time;
    struct {
        char kernel[256];
        int ms;
    } durations[DURATIONS_MAX];
    int duration_count;
    bool capturing;
    int late;
    struct CUctx_st contexts[DEVICES_MAX];
} stub = { .param_count = -1 };

/* Guards `stub`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local CUcontext current;

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    { CUDA_SUCCESS, "CUDA_SUCCESS", "no error" },
    { CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE",
      "invalid argument" },
    { CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED",
      "initialization error" },
    { CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE",
      "no CUDA-capable device is detected" },
    { CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX",
      "a PTX JIT compilation failed" },
    { CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED",
      "operation not supported" },
};

/* --- Control ------------------------------------------------------------ */

EXPORT CudaStubFail cuda_stub_fail;
EXPORT CudaStubLog cuda_stub_log;
EXPORT CudaStubParams cuda_stub_params;
EXPORT CudaStubLive cuda_stub_live;
EXPORT CudaStubTakes cuda_stub_takes;
EXPORT CudaStubCapture cuda_stub_capture;
EXPORT CudaStubLate cuda_stub_late;

void cuda_stub_fail(const char *name, int skip, int code)
{
    snprintf(stub.fail_name, sizeof stub.fail_name, "%s", name);
    stub.fail_skip = skip;
    stub.fail_code = code;
}

const char *cuda_stub_log(void)
{
    return stub.log;
}

void cuda_stub_params(const size_t *sizes, int count)
{
    stub.param_count = count < PARAMS_MAX ? count : PARAMS_MAX;
    memcpy(stub.param_sizes, sizes, (size_t)stub.param_count * sizeof *sizes);
}

int cuda_stub_live(void)
{
    int live = 0;
    for (int i = 0; i < ALLOCATIONS_MAX; i++)
        live += stub.allocations[i].ptr != NULL;
    return live;
}

void cuda_stub_takes(const char *kernel, int ms)
{
    int i = 0;
    while (i < stub.duration_count && strcmp(stub.durations[i].kernel, kernel))
        i++;
    if (i == DURATIONS_MAX)
        return;
    stub.duration_count += i == stub.duration_count;
    snprintf(stub.durations[i].kernel, sizeof stub.durations[i].kernel, "%s",
             kernel);
    stub.durations[i].ms = ms;
}

void cuda_stub_capture(int capturing)
{
    stub.capturing = capturing != 0;
}

void cuda_stub_late(int n)
{
    stub.late = n;
}

/* --- Recording ---------------------------------------------------------- */

static void write_line(const char *line)
{
    const char *path = getenv("CUDA_STUB_LOG");
    size_t room = sizeof stub.log - stub.log_used;
    int n = snprintf(stub.log + stub.log_used, room, "%s\n", line);
    stub.log_used += (size_t)n < room ? (size_t)n : 0;
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", line);
        fclose(file);
    }
}

/* The rule of the environment, read when the driver is initialized. */
static void read_environment(void)
{
    const char *rule = getenv("CUDA_STUB_FAIL");
    const char *colon = rule ? strchr(rule, ':') : NULL;
    char name[64];
    if (!colon || (size_t)(colon - rule) >= sizeof name)
        return;
    memcpy(name, rule, (size_t)(colon - rule));
    name[colon - rule] = '\0';
    cuda_stub_fail(name, 0, atoi(colon + 1));
}

/* Records a call; answers the code that it is told to fail with, an error
 * before cuInit, or success. */
static CUresult record_line(const char *line)
{
    write_line(line);
    size_t n = strcspn(line, " ");
    bool is_init = n == 6 && strncmp(line, "cuInit", 6) == 0;
    if (is_init && !stub.initialized)
        read_environment();
    if (strlen(stub.fail_name) == n && strncmp(line, stub.fail_name, n) == 0 &&
        stub.fail_skip-- == 0) {
        stub.fail_name[0] = '\0';
        return stub.fail_code;
    }
    if (is_init)
        stub.initialized = true;
    return stub.initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/* The same for a call written as `cuName arguments`. */
static CUresult record(const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    CUresult code = record_line(line);
    pthread_mutex_unlock(&lock);
    return code;
}

/* --- Memory of the device ----------------------------------------------- */

static int find_allocation(const void *ptr)
{
    for (int i = 0; i < ALLOCATIONS_MAX; i++)
        if (stub.allocations[i].ptr == ptr)
            return i;
    return -1;
}

static CUresult allocate_unlocked(CUdeviceptr *ptr, size_t bytes)
{
    int slot = find_allocation(NULL);
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (slot < 0 || bytes > (size_t)1 << 30)
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(p, 0xcd, bytes);
    stub.allocations[slot].ptr = p;
    stub.allocations[slot].bytes = bytes;
    *ptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *ptr, size_t bytes)
{
    pthread_mutex_lock(&lock);
    CUresult code = allocate_unlocked(ptr, bytes);
    pthread_mutex_unlock(&lock);
    return code;
}

static CUresult release_unlocked(CUdeviceptr ptr)
{
    int slot = ptr ? find_allocation((void *)(uintptr_t)ptr) : -1;
    if (slot < 0)
        return CUDA_ERROR_INVALID_VALUE;
    free(stub.allocations[slot].ptr);
    stub.allocations[slot].ptr = NULL;
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr ptr)
{
    pthread_mutex_lock(&lock);
    CUresult code = release_unlocked(ptr);
    pthread_mutex_unlock(&lock);
    return code;
}

/* The bytes at `ptr` if all of them are allocated, else NULL. */
static char *device_range(CUdeviceptr ptr, size_t bytes)
{
    for (int i = 0; i < ALLOCATIONS_MAX; i++) {
        char *start = stub.allocations[i].ptr;
        size_t offset = (size_t)(ptr - (uintptr_t)start);
        if (start && offset <= stub.allocations[i].bytes &&
            bytes <= stub.allocations[i].bytes - offset)
            return start + offset;
    }
    return NULL;
}

#define CHECK(recorded)              \
    do {                             \
        CUresult code_ = (recorded); \
        if (code_ != CUDA_SUCCESS)   \
            return code_;            \
    } while (0)

#define CUDA_FUNCTION(field, symbol, params) \
    EXPORT CUresult stub_##field params __asm__(symbol);
#define CUDA_OPTIONAL CUDA_FUNCTION
#include "runtime/cuda_functions.def"
/* What printed C calls and the runtime does not. */
CUDA_FUNCTION(MemsetD2D8Async, "cuMemsetD2D8Async",
              (CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width,
               size_t height, CUstream stream))
CUDA_FUNCTION(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext * context))
CUDA_FUNCTION(CtxGetId, "cuCtxGetId",
              (CUcontext context, unsigned long long *id))
CUDA_FUNCTION(CtxGetDevice, "cuCtxGetDevice", (CUdevice * device))
CUDA_FUNCTION(MemPoolCreate, "cuMemPoolCreate",
              (void **pool, const void *properties))
CUDA_FUNCTION(MemPoolSetAttribute, "cuMemPoolSetAttribute",
              (void *pool, int attribute, void *value))
CUDA_FUNCTION(MemPoolDestroy, "cuMemPoolDestroy", (void *pool))
CUDA_FUNCTION(MemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",
              (CUdeviceptr * ptr, size_t bytes, void *pool, CUstream stream))
CUDA_FUNCTION(EventQuery, "cuEventQuery", (CUevent event))
CUDA_FUNCTION(StreamIsCapturing, "cuStreamIsCapturing",
              (CUstream stream, int *status))
CUDA_FUNCTION(ThreadExchangeStreamCaptureMode,
              "cuThreadExchangeStreamCaptureMode", (int *mode))
CUDA_FUNCTION(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",
              (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))
CUDA_FUNCTION(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",
              (void *to, CUdeviceptr from, size_t bytes, CUstream stream))
#undef CUDA_FUNCTION
#undef CUDA_OPTIONAL

/* --- The driver: device ------------------------------------------------- */

CUresult stub_Init(unsigned flags)
{
    return record("cuInit flags=%u", flags);
}

CUresult stub_DriverGetVersion(int *version)
{
    *version = 13000;
    return record("cuDriverGetVersion");
}

CUresult stub_GetErrorName(CUresult code, const char **name)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code) {
            *name = errors[i].name;
            return CUDA_SUCCESS;
        }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult stub_GetErrorString(CUresult code, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code) {
            *text = errors[i].text;
            return CUDA_SUCCESS;
        }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult stub_DeviceGetCount(int *count)
{
    const char *devices = getenv("CUDA_STUB_DEVICES");
    *count = devices ? atoi(devices) : 1;
    return record("cuDeviceGetCount");
}

CUresult stub_DeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return record("cuDeviceGet ordinal=%d", ordinal);
}

CUresult stub_DeviceGetName(char *name, int len, CUdevice device)
{
    snprintf(name, (size_t)len, "stub device %d", device);
    return record("cuDeviceGetName");
}

CUresult stub_DeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                 CUdevice device)
{
    static const int rows[][2] = {
        { CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000 },
        { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132 },
        { CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
        { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472 },
        { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448 },
    };
    (void)device;
    CHECK(record("cuDeviceGetAttribute %d", attribute));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i][0] == attribute) {
            *value = rows[i][1];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult stub_DeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return record("cuDeviceTotalMem");
}

CUresult stub_DevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (device < 0 || device >= DEVICES_MAX)
        return CUDA_ERROR_INVALID_DEVICE;
    *context = &stub.contexts[device];
    return record("cuDevicePrimaryCtxRetain device=%d", device);
}

CUresult stub_DevicePrimaryCtxRelease(CUdevice device)
{
    return record("cuDevicePrimaryCtxRelease device=%d", device);
}

CUresult stub_CtxSetCurrent(CUcontext context)
{
    current = context;
    return record("cuCtxSetCurrent %s", context ? "primary" : "none");
}

CUresult stub_CtxGetCurrent(CUcontext *context)
{
    *context = current;
    return record("cuCtxGetCurrent");
}

CUresult stub_CtxGetId(CUcontext context, unsigned long long *id)
{
    *id = 1 + (unsigned long long)(context - stub.contexts);
    return record("cuCtxGetId");
}

CUresult stub_CtxGetDevice(CUdevice *device)
{
    CHECK(record("cuCtxGetDevice"));
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = (CUdevice)(current - stub.contexts);
    return CUDA_SUCCESS;
}

CUresult stub_CtxSynchronize(void)
{
    return record("cuCtxSynchronize");
}

/* --- The driver: modules ------------------------------------------------ */

/* Writes the assembler's text into the buffer of the option `which`. */
static void write_jit_log(CUjit_option which, const char *text, unsigned count,
                          const CUjit_option *options, void **values)
{
    for (unsigned i = 0; i + 1 < count; i++)
        if (options[i] == which)
            snprintf(values[i], (size_t)(uintptr_t)values[i + 1], "%s", text);
}

CUresult stub_ModuleLoadDataEx(CUmodule *module, const void *image,
                               unsigned option_count, CUjit_option *options,
                               void **values)
{
    const char *text = image;
    bool binary = memcmp(image, "\177ELF", 4) == 0 ||
                  memcmp(image, "\x50\xed\x55\xba", 4) == 0;
    CHECK(record("cuModuleLoadDataEx %s", binary ? "binary" : "ptx"));
    if (!binary && !strstr(text, ".version")) {
        write_jit_log(CU_JIT_ERROR_LOG_BUFFER,
                      "ptxas fatal : Missing .version directive\n",
                      option_count, options, values);
        return CUDA_ERROR_INVALID_PTX;
    }
    write_jit_log(CU_JIT_INFO_LOG_BUFFER, "ptxas info : 0 bytes gmem\n",
                  option_count, options, values);
    *module = calloc(1, sizeof **module);
    (*module)->ptx = binary ? NULL : strdup(text);
    return CUDA_SUCCESS;
}

CUresult stub_ModuleUnload(CUmodule module)
{
    CHECK(record("cuModuleUnload"));
    free(module->ptx);
    free(module);
    return CUDA_SUCCESS;
}

/* Whether the PTX has an entry of that name. */
static bool has_entry(const char *ptx, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = ptx; (p = strstr(p, ".entry")); p++) {
        const char *found = p + 6 + strspn(p + 6, " \t\n");
        if (strncmp(found, name, n) == 0 && strcspn(found, " \t\n(") == n)
            return true;
    }
    return false;
}

CUresult stub_ModuleGetFunction(CUfunction *function, CUmodule module,
                                const char *name)
{
    CHECK(record("cuModuleGetFunction %s", name));
    pthread_mutex_lock(&lock);
    bool found = (!module->ptx || has_entry(module->ptx, name)) &&
                 stub.function_count < 64;
    if (found)
        *function = &stub.functions[stub.function_count++];
    pthread_mutex_unlock(&lock);
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    return CUDA_SUCCESS;
}

CUresult stub_FuncGetAttribute(int *value, CUfunction_attribute attribute,
                               CUfunction function)
{
    static const int rows[][2] = {
        { CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
        { CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1024 },
        { CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 0 },
        { CU_FUNC_ATTRIBUTE_NUM_REGS, 168 },
    };
    CHECK(record("cuFuncGetAttribute %s %d", function->name, attribute));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i][0] == attribute) {
            *value = rows[i][1];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult stub_FuncSetAttribute(CUfunction function,
                               CUfunction_attribute attribute, int value)
{
    return record("cuFuncSetAttribute %s %d=%d", function->name, attribute,
                  value);
}

CUresult stub_FuncGetParamInfo(CUfunction function, size_t index,
                               size_t *offset, size_t *bytes)
{
    CHECK(record("cuFuncGetParamInfo %s %zu", function->name, index));
    if (stub.param_count < 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (index >= (size_t)stub.param_count)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    *bytes = stub.param_sizes[index];
    return CUDA_SUCCESS;
}

/* --- The driver: memory ------------------------------------------------- */

CUresult stub_MemAlloc(CUdeviceptr *ptr, size_t bytes)
{
    CHECK(record("cuMemAlloc bytes=%zu", bytes));
    return allocate(ptr, bytes);
}

CUresult stub_MemFree(CUdeviceptr ptr)
{
    CHECK(record("cuMemFree"));
    return release(ptr);
}

CUresult stub_MemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
    CHECK(record("cuMemAllocAsync bytes=%zu stream=%s", bytes,
                 stream ? "own" : "default"));
    return allocate(ptr, bytes);
}

/* A pool is some memory of the host, of which nothing is used. */
CUresult stub_MemPoolCreate(void **pool, const void *properties)
{
    const int *of = properties;
    CHECK(record("cuMemPoolCreate device=%d", of[3]));
    *pool = calloc(1, 1);
    return CUDA_SUCCESS;
}

CUresult stub_MemPoolSetAttribute(void *pool, int attribute, void *value)
{
    (void)pool;
    return record("cuMemPoolSetAttribute %d=%llu", attribute,
                  *(unsigned long long *)value);
}

CUresult stub_MemPoolDestroy(void *pool)
{
    CHECK(record("cuMemPoolDestroy"));
    free(pool);
    return CUDA_SUCCESS;
}

CUresult stub_MemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes, void *pool,
                                    CUstream stream)
{
    CHECK(record("cuMemAllocFromPoolAsync bytes=%zu stream=%s", bytes,
                 stream ? "own" : "default"));
    return pool ? allocate(ptr, bytes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult stub_MemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
    CHECK(record("cuMemFreeAsync stream=%s", stream ? "own" : "default"));
    return release(ptr);
}

CUresult stub_MemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    CHECK(record("cuMemcpyHtoD bytes=%zu", bytes));
    char *p = device_range(to, bytes);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(p, from, bytes);
    return CUDA_SUCCESS;
}

CUresult stub_MemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    CHECK(record("cuMemcpyDtoH bytes=%zu", bytes));
    const char *p = device_range(from, bytes);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(to, p, bytes);
    return CUDA_SUCCESS;
}

CUresult stub_MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream stream)
{
    CHECK(record("cuMemcpyHtoDAsync bytes=%zu stream=%s", bytes,
                 stream ? "own" : "default"));
    char *p = device_range(to, bytes);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(p, from, bytes);
    return CUDA_SUCCESS;
}

CUresult stub_MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                              CUstream stream)
{
    CHECK(record("cuMemcpyDtoHAsync bytes=%zu stream=%s", bytes,
                 stream ? "own" : "default"));
    const char *p = device_range(from, bytes);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(to, p, bytes);
    return CUDA_SUCCESS;
}

CUresult stub_MemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream)
{
    CHECK(record("cuMemcpyDtoDAsync bytes=%zu stream=%s", bytes,
                 stream ? "own" : "default"));
    char *p = device_range(to, bytes);
    const char *q = device_range(from, bytes);
    if (!p || !q)
        return CUDA_ERROR_INVALID_VALUE;
    memmove(p, q, bytes);
    return CUDA_SUCCESS;
}

CUresult stub_MemsetD8Async(CUdeviceptr ptr, unsigned char value, size_t count,
                            CUstream stream)
{
    CHECK(record("cuMemsetD8Async value=%u bytes=%zu stream=%s", value, count,
                 stream ? "own" : "default"));
    char *p = device_range(ptr, count);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memset(p, value, count);
    return CUDA_SUCCESS;
}

CUresult stub_MemsetD2D8Async(CUdeviceptr ptr, size_t pitch,
                              unsigned char value, size_t width, size_t height,
                              CUstream stream)
{
    CHECK(record("cuMemsetD2D8Async value=%u pitch=%zu bytes=%zu rows=%zu "
                 "stream=%s",
                 value, pitch, width, height, stream ? "own" : "default"));
    for (size_t i = 0; i < height; i++) {
        char *p = device_range(ptr + i * pitch, width);
        if (!p)
            return CUDA_ERROR_INVALID_VALUE;
        memset(p, value, width);
    }
    return CUDA_SUCCESS;
}

/* --- The driver: streams and events ------------------------------------- */

CUresult stub_StreamCreate(CUstream *stream, unsigned flags)
{
    CHECK(record("cuStreamCreate flags=%u", flags));
    *stream = calloc(1, sizeof **stream);
    return CUDA_SUCCESS;
}

CUresult stub_StreamDestroy(CUstream stream)
{
    CHECK(record("cuStreamDestroy"));
    free(stream);
    return CUDA_SUCCESS;
}

CUresult stub_StreamSynchronize(CUstream stream)
{
    return record("cuStreamSynchronize stream=%s", stream ? "own" : "default");
}

CUresult stub_StreamIsCapturing(CUstream stream, int *status)
{
    *status = stub.capturing;
    return record("cuStreamIsCapturing stream=%s", stream ? "own" : "default");
}

CUresult stub_ThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int current_mode;
    int before = current_mode;
    CHECK(record("cuThreadExchangeStreamCaptureMode %d", *mode));
    current_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult stub_EventCreate(CUevent *event, unsigned flags)
{
    CHECK(record("cuEventCreate flags=%u", flags));
    *event = calloc(1, sizeof **event);
    return CUDA_SUCCESS;
}

CUresult stub_EventDestroy(CUevent event)
{
    CHECK(record("cuEventDestroy"));
    free(event);
    return CUDA_SUCCESS;
}

CUresult stub_EventRecord(CUevent event, CUstream stream)
{
    event->time = stub.time++;
    return record("cuEventRecord stream=%s", stream ? "own" : "default");
}

CUresult stub_EventQuery(CUevent event)
{
    (void)event;
    CHECK(record("cuEventQuery"));
    return stub.late-- > 0 ? CUDA_SUCCESS : 600; /* not ready */
}

CUresult stub_EventSynchronize(CUevent event)
{
    (void)event;
    return record("cuEventSynchronize");
}

/* A launch takes what cuda_stub_takes said, or one millisecond, and nothing
 * else takes any. */
CUresult stub_EventElapsedTime(float *ms, CUevent start, CUevent end)
{
    *ms = (float)(end->time - start->time - 1);
    return record("cuEventElapsedTime");
}

/* --- The driver: tensor maps and launches ------------------------------- */

CUresult stub_TensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *base,
    const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
    const uint32_t *element_strides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "cuTensorMapEncodeTiled type=%d rank=%u interleave=%d "
                     "swizzle=%d promotion=%d fill=%d",
                     type, rank, interleave, swizzle, promotion, fill);
    for (uint32_t d = 0; d < rank && d < 5; d++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      " dim=%llu stride=%llu box=%u step=%u",
                      (unsigned long long)dims[d],
                      d ? (unsigned long long)strides[d - 1] : 0, box[d],
                      element_strides[d]);
    CHECK(record("%s", text));
    if ((uintptr_t)map % 64 != 0 || (uintptr_t)base % 16 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0xab, sizeof *map);
    return CUDA_SUCCESS;
}

/* The cluster attribute as text, "1,1,1" when there is none, and whether the
 * kernel may start before the one ahead of it ends. */
static void attributes_text(const CUlaunchConfig *config, char *text,
                            size_t size)
{
    unsigned x = 1, y = 1, z = 1;
    bool dependent = false;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            x = a->value.clusterDim.x;
            y = a->value.clusterDim.y;
            z = a->value.clusterDim.z;
        } else if (a->id ==
                   CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            dependent = a->value.programmaticStreamSerializationAllowed == 1;
    }
    snprintf(text, size, "%u,%u,%u%s", x, y, z, dependent ? " dependent" : "");
}

CUresult stub_OccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                         const CUlaunchConfig *config)
{
    char cluster[64];
    attributes_text(config, cluster, sizeof cluster);
    *clusters = config->sharedMemBytes > 232448 ? 0 : 66;
    return record("cuOccupancyMaxActiveClusters %s grid=%u,%u,%u cluster=%s",
                  function->name, config->gridDimX, config->gridDimY,
                  config->gridDimZ, cluster);
}

CUresult stub_OccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                        CUfunction function,
                                                        int threads,
                                                        size_t shared_bytes)
{
    *blocks = shared_bytes > 232448 ? 0 : shared_bytes > 115712 ? 1 : 2;
    return record("cuOccupancyMaxActiveBlocksPerMultiprocessor %s threads=%d "
                  "shared=%zu",
                  function->name, threads, shared_bytes);
}

static int duration_of(const char *kernel)
{
    for (int i = 0; i < stub.duration_count; i++)
        if (strcmp(stub.durations[i].kernel, kernel) == 0)
            return stub.durations[i].ms;
    return 1;
}

CUresult stub_LaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                             void **params, void **extra)
{
    char cluster[64], text[512];
    int known = stub.param_count < 0 ? 0 : stub.param_count;
    (void)extra;
    attributes_text(config, cluster, sizeof cluster);
    int n =
        snprintf(text, sizeof text,
                 "cuLaunchKernelEx %s grid=%u,%u,%u block=%u,%u,%u "
                 "cluster=%s attributes=%u shared=%u stream=%s",
                 function->name, config->gridDimX, config->gridDimY,
                 config->gridDimZ, config->blockDimX, config->blockDimY,
                 config->blockDimZ, cluster, config->numAttrs,
                 config->sharedMemBytes, config->hStream ? "own" : "default");
    for (int i = 0; i < known && n < (int)sizeof text - 32; i++) {
        uint64_t value = 0;
        size_t size = stub.param_sizes[i];
        memcpy(&value, params[i], size < 8 ? size : 8);
        n += snprintf(text + n, sizeof text - (size_t)n, " %llx",
                      (unsigned long long)value);
    }
    stub.time += duration_of(function->name);
    return record("%s", text);
}
