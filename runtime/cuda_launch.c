/* Launching kernels, how many fit at once, and timing them.
 *
 * A cluster is a launch attribute that is given only when it has two blocks or
 * more, so that kernels without clusters run on any device. Times are taken by
 * events around each round, and read after all rounds are queued, so that
 * nothing waits between rounds. */
#include "runtime/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_internal.h"

static unsigned at_least_one(unsigned x)
{
    return x ? x : 1;
}

static unsigned cluster_blocks(const CudaLaunch *l)
{
    return at_least_one(l->cluster[0]) * at_least_one(l->cluster[1]) *
           at_least_one(l->cluster[2]);
}

static unsigned block_threads(const CudaLaunch *l)
{
    return at_least_one(l->block[0]) * at_least_one(l->block[1]) *
           at_least_one(l->block[2]);
}

enum { MAX_ATTRIBUTES = 2 };

/* Room for one more attribute of the launch. */
static CUlaunchAttribute *add_attribute(CUlaunchConfig *config,
                                        CUlaunchAttributeID id)
{
    CUlaunchAttribute *a = &config->attrs[config->numAttrs++];
    memset(a, 0, sizeof *a);
    a->id = id;
    return a;
}

/* The driver's form of a launch; `attributes` is room for MAX_ATTRIBUTES. */
static CUlaunchConfig launch_config(const CudaLaunch *l,
                                    CUlaunchAttribute *attributes)
{
    CUlaunchConfig config = {
        .gridDimX = at_least_one(l->grid[0]),
        .gridDimY = at_least_one(l->grid[1]),
        .gridDimZ = at_least_one(l->grid[2]),
        .blockDimX = at_least_one(l->block[0]),
        .blockDimY = at_least_one(l->block[1]),
        .blockDimZ = at_least_one(l->block[2]),
        .sharedMemBytes = (unsigned)l->shared_bytes,
        .hStream = (CUstream)l->stream.handle,
        .attrs = attributes,
    };
    if (cluster_blocks(l) >= 2) {
        CUlaunchAttribute *a =
            add_attribute(&config, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        a->value.clusterDim.x = at_least_one(l->cluster[0]);
        a->value.clusterDim.y = at_least_one(l->cluster[1]);
        a->value.clusterDim.z = at_least_one(l->cluster[2]);
    }
    if (l->dependent)
        add_attribute(&config,
                      CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            ->value.programmaticStreamSerializationAllowed = 1;
    return config;
}

/* Rules of a launch that the driver would answer with "invalid argument". */
static bool check_launch(const CudaLaunch *l, CudaError *err)
{
    for (int d = 0; d < 3; d++)
        if (at_least_one(l->grid[d]) % at_least_one(l->cluster[d]) != 0)
            return cuda_refuse(err,
                               "kernel '%s': the grid of %u blocks in "
                               "dimension %d is no multiple of the cluster's "
                               "%u",
                               l->fn.name, l->grid[d], d, l->cluster[d]);
    if (l->fn.max_threads && block_threads(l) > (unsigned)l->fn.max_threads)
        return cuda_refuse(err,
                           "kernel '%s' takes at most %d threads a block, "
                           "not %u",
                           l->fn.name, l->fn.max_threads, block_threads(l));
    return true;
}

/* More than 8 blocks a cluster must be asked for. */
static bool allow_cluster(Cuda *cuda, const CudaLaunch *l, CudaError *err)
{
    return cluster_blocks(l) <= 8 ||
           CUDA_CALL(cuda, err, FuncSetAttribute, (CUfunction)l->fn.handle,
                     CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
}

/* Compares the arguments with the kernel's parameters, if the driver can say
 * them: index i answers its size, an index past the end "invalid value", and a
 * driver that cannot say something else. It is not asked about more indices
 * than there are arguments: tools that watch API errors would report the
 * answer (the abi hash tells a kernel with more parameters). */
static bool check_params(const Cuda *cuda, const CudaLaunch *l,
                         const CudaParam *params, int count, CudaError *err)
{
    if (!cuda->FuncGetParamInfo)
        return true;
    for (int i = 0; i < count; i++) {
        size_t offset = 0, size = 0;
        CUresult code = cuda->FuncGetParamInfo((CUfunction)l->fn.handle,
                                               (size_t)i, &offset, &size);
        if (code == CUDA_ERROR_INVALID_VALUE)
            return cuda_refuse(err,
                               "kernel '%s' has %d parameters, fewer than the "
                               "%d arguments given",
                               l->fn.name, i, count);
        if (code != CUDA_SUCCESS)
            return true;
        if (size != params[i].size)
            return cuda_refuse(err,
                               "parameter %d of kernel '%s' has %zu bytes, "
                               "but the argument has %zu",
                               i, l->fn.name, size, params[i].size);
    }
    return true;
}

bool cuda_launch(Cuda *cuda, const CudaLaunch *launch, const CudaParam *params,
                 int param_count, CudaError *err)
{
    if (!check_launch(launch, err) ||
        !check_params(cuda, launch, params, param_count, err) ||
        !allow_cluster(cuda, launch, err))
        return false;
    void **pointers = calloc((size_t)param_count + 1, sizeof *pointers);
    if (!pointers)
        return cuda_refuse(err, "out of memory");
    for (int i = 0; i < param_count; i++)
        pointers[i] = (void *)params[i].data;
    CUlaunchAttribute attributes[MAX_ATTRIBUTES];
    CUlaunchConfig config = launch_config(launch, attributes);
    bool ok = CUDA_CALL(cuda, err, LaunchKernelEx, &config,
                        (CUfunction)launch->fn.handle, pointers, NULL);
    if (!ok)
        cuda_error_append(err, "kernel '%s'", launch->fn.name);
    free(pointers);
    return ok;
}

bool cuda_max_clusters(Cuda *cuda, const CudaLaunch *launch, int *out,
                       CudaError *err)
{
    CUlaunchAttribute attributes[MAX_ATTRIBUTES];
    CudaLaunch one = *launch;
    CUfunction fn = (CUfunction)launch->fn.handle;
    int n = 0;
    bool ok;
    *out = 0;
    if (cluster_blocks(launch) < 2) {
        ok = CUDA_CALL(cuda, err, OccupancyMaxActiveBlocksPerMultiprocessor, &n,
                       fn, (int)block_threads(launch), launch->shared_bytes);
        n *= cuda->properties.sm_count;
    } else {
        memcpy(one.grid, launch->cluster, sizeof one.grid);
        CUlaunchConfig config = launch_config(&one, attributes);
        ok = allow_cluster(cuda, launch, err) &&
             CUDA_CALL(cuda, err, OccupancyMaxActiveClusters, &n, fn, &config);
    }
    if (!ok)
        return false;
    if (n < 1)
        return cuda_refuse(err,
                           "kernel '%s' does not fit on %s: %u blocks a "
                           "cluster, %u threads and %zu bytes of shared "
                           "memory a block",
                           launch->fn.name, cuda->properties.name,
                           cluster_blocks(launch), block_threads(launch),
                           launch->shared_bytes);
    *out = n;
    return true;
}

int cuda_even_clusters(const Cuda *cuda, const CudaLaunch *launch, int fit,
                       int64_t tasks)
{
    int64_t blocks = (int64_t)fit * cluster_blocks(launch), rounds, even;
    if (tasks < fit)
        return tasks > 1 ? (int)tasks : 1;
    rounds = (tasks - 1) / fit + 1;
    even = (tasks - 1) / rounds + 1;
    return blocks <= cuda->properties.sm_count && 8 * even >= 7 * (int64_t)fit
               ? (int)even
               : fit;
}

bool cuda_flush_l2(Cuda *cuda, CudaStream stream, CudaError *err)
{
    size_t bytes = 2 * cuda->properties.l2_bytes;
    if (bytes == 0)
        return true;
    if (!cuda->flush_buffer &&
        !CUDA_CALL(cuda, err, MemAlloc, &cuda->flush_buffer, bytes))
        return false;
    return CUDA_CALL(cuda, err, MemsetD8Async, cuda->flush_buffer, 0, bytes,
                     (CUstream)stream.handle);
}

/* A round: flush, then the body between two events. */
static bool bench_round(Cuda *cuda, CudaBenchBody *body, void *user,
                        CudaStream stream, const CudaEvent *pair,
                        CudaError *err)
{
    return cuda_flush_l2(cuda, stream, err) &&
           cuda_event_record(cuda, pair[0], stream, err) &&
           body(user, stream, err) &&
           cuda_event_record(cuda, pair[1], stream, err);
}

static bool bench_all(Cuda *cuda, int rounds, CudaBenchBody *body, void *user,
                      CudaStream stream, CudaEvent *events, float *ms,
                      CudaError *err)
{
    for (int i = 0; i < 2 * rounds; i++)
        if (!cuda_event_create(cuda, &events[i], err))
            return false;
    if (!bench_round(cuda, body, user, stream, events, err) ||
        !cuda_stream_sync(cuda, stream, err))
        return false;
    for (int i = 0; i < rounds; i++)
        if (!bench_round(cuda, body, user, stream, events + 2 * i, err))
            return false;
    for (int i = 0; i < rounds; i++)
        if (!cuda_event_elapsed(cuda, events[2 * i], events[2 * i + 1], &ms[i],
                                err))
            return false;
    return true;
}

bool cuda_bench(Cuda *cuda, int rounds, CudaBenchBody *body, void *user,
                float *ms, CudaError *err)
{
    CudaStream stream = { NULL };
    if (rounds < 1)
        return cuda_refuse(err, "a benchmark has 1 round or more, not %d",
                           rounds);
    CudaEvent *events = calloc(2 * (size_t)rounds, sizeof *events);
    if (!events)
        return cuda_refuse(err, "out of memory");
    bool ok = cuda_stream_create(cuda, &stream, err) &&
              bench_all(cuda, rounds, body, user, stream, events, ms, err);
    for (int i = 0; i < 2 * rounds; i++)
        cuda_event_destroy(cuda, events[i]);
    cuda_stream_destroy(cuda, stream);
    free(events);
    return ok;
}

static int compare_times(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double cuda_middle_mean(const float *ms, int count)
{
    if (count < 1)
        return 0;
    float *sorted = malloc((size_t)count * sizeof *sorted);
    if (!sorted)
        return 0;
    memcpy(sorted, ms, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_times);
    int first = count / 4, last = count - count / 4;
    double sum = 0;
    for (int i = first; i < last; i++)
        sum += sorted[i];
    free(sorted);
    return sum / (last - first);
}
