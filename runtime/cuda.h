/* A CUDA device through the driver, which is loaded when it is asked for.
 *
 * Called by exo-run and by the benchmarks. Nothing here links against CUDA: the
 * driver library is opened with dlopen, so one binary serves machines with and
 * without a GPU. Every function that can fail returns false and then has filled
 * `err` with one message: which driver function, the driver's name and text
 * for the result, and what the call was about. Nothing is printed.
 *
 * A `Cuda` belongs to the thread that opened it. Objects made from it (modules,
 * streams, events, memory) are released before cuda_close, which releases the
 * device's primary context. Work is queued on a `CudaStream`; {NULL} is the
 * default stream. A fault of a kernel is reported by the next call that waits
 * for it. */
#ifndef EXO_RUNTIME_CUDA_H
#define EXO_RUNTIME_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/scalar.h"

typedef struct Cuda Cuda;
typedef struct CudaModule CudaModule;
typedef uint64_t CudaPtr;

/* What went wrong: the driver's code (0 when the runtime itself refused) and a
 * message, cut to fit. */
typedef struct CudaError {
    int code;
    char text[8192];
} CudaError;

typedef struct CudaDevice {
    char name[128];
    int driver_version; /* 1000 * major + 10 * minor of CUDA */
    int major, minor;   /* compute capability */
    int sm_count;
    int clock_khz;
    size_t shared_per_block; /* most that a kernel may opt into */
    size_t shared_per_sm;
    size_t l2_bytes;
    size_t memory_bytes;
} CudaDevice;

typedef struct CudaStream {
    void *handle;
} CudaStream;

typedef struct CudaEvent {
    void *handle;
} CudaEvent;

/* A kernel, with what the driver knows of it. Valid while its module is. */
typedef struct CudaFunction {
    void *handle;
    char name[256];
    int registers;           /* a thread */
    int local_bytes;         /* a thread: spills and stack */
    int static_shared_bytes; /* a block */
    int max_threads;         /* a block */
} CudaFunction;

/* --- Device ------------------------------------------------------------- */

/* Opens device number `ordinal`. `library` is the driver's file; NULL takes
 * the environment variable EXO_CUDA_LIBRARY, or libcuda.so.1. Fails with a
 * message when there is no driver, when it is too old, or no device. */
bool cuda_open(const char *library, int ordinal, Cuda **out, CudaError *err);

/* Releases everything that `cuda` owns; NULL is allowed. */
void cuda_close(Cuda *cuda);

/* The device's properties; valid until cuda_close. */
const CudaDevice *cuda_device(const Cuda *cuda);

/* Waits for all work of the device. */
bool cuda_sync(Cuda *cuda, CudaError *err);

/* --- Modules ------------------------------------------------------------ */

/* Loads PTX text (NUL at the end). When the driver's assembler refuses it the
 * message contains the assembler's log. */
bool cuda_module_load_ptx(Cuda *cuda, const char *ptx, CudaModule **out,
                          CudaError *err);

/* Loads a cubin or fat binary of `size` bytes. */
bool cuda_module_load_cubin(Cuda *cuda, const void *image, size_t size,
                            CudaModule **out, CudaError *err);

/* What the driver's assembler said of a module that it loaded; may be "". */
const char *cuda_module_log(const CudaModule *module);

void cuda_module_unload(CudaModule *module);

/* Finds the kernel `name`. */
bool cuda_module_function(CudaModule *module, const char *name,
                          CudaFunction *out, CudaError *err);

/* Allows `fn` that many bytes of dynamic shared memory. Refuses, with both
 * figures, more than the device has. */
bool cuda_function_set_shared(Cuda *cuda, const CudaFunction *fn, size_t bytes,
                              CudaError *err);

/* --- Memory, streams, events -------------------------------------------- */

/* Device memory, aligned to 256 bytes; 0 bytes give the pointer 0. */
bool cuda_alloc(Cuda *cuda, size_t bytes, CudaPtr *out, CudaError *err);
bool cuda_free(Cuda *cuda, CudaPtr ptr, CudaError *err);

/* The same in the order of a stream. */
bool cuda_alloc_async(Cuda *cuda, size_t bytes, CudaStream stream, CudaPtr *out,
                      CudaError *err);
bool cuda_free_async(Cuda *cuda, CudaPtr ptr, CudaStream stream,
                     CudaError *err);

/* Host to device and back; return when the copy is done. They wait for the
 * default stream, not for streams of cuda_stream_create. */
bool cuda_copy_in(Cuda *cuda, CudaPtr to, const void *from, size_t bytes,
                  CudaError *err);
bool cuda_copy_out(Cuda *cuda, void *to, CudaPtr from, size_t bytes,
                   CudaError *err);

/* Queue a copy on the device, or a fill with one byte. */
bool cuda_copy_device(Cuda *cuda, CudaPtr to, CudaPtr from, size_t bytes,
                      CudaStream stream, CudaError *err);
bool cuda_memset(Cuda *cuda, CudaPtr ptr, unsigned char value, size_t bytes,
                 CudaStream stream, CudaError *err);

/* A stream that does not wait for the default stream. */
bool cuda_stream_create(Cuda *cuda, CudaStream *out, CudaError *err);
void cuda_stream_destroy(Cuda *cuda, CudaStream stream);
bool cuda_stream_sync(Cuda *cuda, CudaStream stream, CudaError *err);

bool cuda_event_create(Cuda *cuda, CudaEvent *out, CudaError *err);
void cuda_event_destroy(Cuda *cuda, CudaEvent event);
bool cuda_event_record(Cuda *cuda, CudaEvent event, CudaStream stream,
                       CudaError *err);

/* Waits for `stop`, then gives the milliseconds between the two. */
bool cuda_event_elapsed(Cuda *cuda, CudaEvent start, CudaEvent stop, float *ms,
                        CudaError *err);

/* --- Tensor maps -------------------------------------------------------- */

enum { CUDA_TENSOR_RANK_MAX = 5 };

/* A tiled tensor map without interleave. Dimension 0 is the innermost, whose
 * elements are adjacent. Fields left 0 are the driver's defaults. */
typedef struct CudaTensorMapSpec {
    ScalarType type;
    bool tf32; /* f32 rounded to tf32 on the way in */
    int rank;
    CudaPtr base;
    uint64_t dims[CUDA_TENSOR_RANK_MAX];    /* elements */
    uint64_t strides[CUDA_TENSOR_RANK_MAX]; /* bytes; [0] is not read */
    uint32_t box[CUDA_TENSOR_RANK_MAX];     /* elements */
    int swizzle;                            /* bytes: 0, 32, 64, 128 */
    int l2_promotion;                       /* bytes: 0, 64, 128, 256 */
} CudaTensorMapSpec;

/* The object a kernel takes as a parameter. */
typedef struct CudaTensorMap {
    _Alignas(64) unsigned char bytes[128];
} CudaTensorMap;

/* Whether the documented rules of cuTensorMapEncodeTiled hold; names the first
 * that does not, with the value found. Needs no device. */
bool cuda_tensor_map_check(const CudaTensorMapSpec *spec, CudaError *err);

/* Checks `spec` and encodes it. */
bool cuda_tensor_map_encode(Cuda *cuda, const CudaTensorMapSpec *spec,
                            CudaTensorMap *out, CudaError *err);

/* --- Launch and time ---------------------------------------------------- */

/* One launch. `cluster` all 0 or 1 means no cluster. A dependent kernel waits
 * itself for the grids before it in the stream, and may start before their end
 * (programmatic dependent launch). */
typedef struct CudaLaunch {
    CudaFunction fn;
    unsigned grid[3], block[3], cluster[3]; /* 0 counts as 1 */
    size_t shared_bytes; /* dynamic; set by cuda_function_set_shared */
    CudaStream stream;
    bool dependent;
} CudaLaunch;

/* One kernel argument: the bytes at `data` are copied by the launch. */
typedef struct CudaParam {
    const void *data;
    size_t size;
} CudaParam;

/* Queues the kernel. Where the driver can tell (CUDA 12.4), number and sizes
 * of the arguments are compared with the kernel's parameters first. */
bool cuda_launch(Cuda *cuda, const CudaLaunch *launch, const CudaParam *params,
                 int param_count, CudaError *err);

/* How many clusters (blocks when there is no cluster) of this launch the
 * device runs at once; at least 1, or an error that says none fits. */
bool cuda_max_clusters(Cuda *cuda, const CudaLaunch *launch, int *out,
                       CudaError *err);

/* How many of the `fit` clusters that run at once a persistent kernel should
 * start for so many tasks, cluster c of n taking the tasks c, c + n, ..: no
 * more than there are tasks (but 1), and of the others only as many as keep
 * the number of rounds. A cluster without a task in the last round makes
 * nothing faster, and takes power from those that have one. All are started
 * where blocks share a multiprocessor, on which fewer would lie unevenly, and
 * where more than an eighth would be left out, which a kernel that memory
 * limits may need. tasks: INT64_MAX when not known. The printed C has the same
 * rule, exo_even_clusters in codegen/c_support_driver.c. */
int cuda_even_clusters(const Cuda *cuda, const CudaLaunch *launch, int fit,
                       int64_t tasks);

/* Queues a write of twice the L2's size, so that what follows starts with none
 * of its data cached. */
bool cuda_flush_l2(Cuda *cuda, CudaStream stream, CudaError *err);

/* Queues the work to be timed on `stream`. */
typedef bool CudaBenchBody(void *user, CudaStream stream, CudaError *err);

/* Runs `body` `rounds` times, with the L2 flushed before each, and writes the
 * milliseconds of each round to `ms`. One untimed round goes first. */
bool cuda_bench(Cuda *cuda, int rounds, CudaBenchBody *body, void *user,
                float *ms, CudaError *err);

/* Mean of the middle half of `count` times; 0 when there are none. */
double cuda_middle_mean(const float *ms, int count);

#endif
