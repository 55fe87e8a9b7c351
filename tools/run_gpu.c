/* Runs on a GPU: verify/host_run.h runs the host procedure; each tensor of
 * device memory has a device copy, on which copies and launches work; the
 * kernels come from PTX that was made elsewhere for the same calling
 * convention. */
#include "tools/run.h"

#include "passes/abi.h"
#include "runtime/cuda.h"
#include "verify/host_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_ROUNDS = 30 };

/* A host tensor and its device memory, which lasts as long as the launches may
 * be repeated; a tensor of host.alloc lasts while the host's work runs. */
typedef struct Mirror {
    const Tensor *host;
    CudaPtr device;
    struct Mirror *next;
} Mirror;

/* A launch, kept to be repeated for timing. */
typedef struct Launch {
    CudaLaunch launch;
    CudaParam *params;
    int n;
    struct Launch *next;
} Launch;

typedef struct Gpu {
    Run *r;
    Arena *arena;
    Cuda *cuda;
    CudaModule *module;
    const char *ptx;
    Mirror *mirrors;
    Launch *launches, **end;
    CudaError err;
} Gpu;

static bool fail_cuda(Gpu *g, Loc loc)
{
    diag_error(g->r->ctx, loc, "cuda", "%s", g->err.text);
    return false;
}

/* ---- device memory ------------------------------------------------------- */

static bool on_device(const Value *v)
{
    const MemRef *mem = v->type->mem;
    return mem && strcmp(mem->name, "DRAM") &&
           strcmp(mem->name, "CudaGridConstant");
}

static Mirror *find_mirror(const Gpu *g, const Tensor *t)
{
    Mirror *m = g->mirrors;
    while (m && m->host != t)
        m = m->next;
    return m;
}

static bool add_mirror(Gpu *g, const Tensor *t)
{
    Mirror *m = ARENA_NEW(g->arena, Mirror);
    size_t bytes = (size_t)t->count * t->elem_bytes;
    m->host = t;
    m->next = g->mirrors;
    g->mirrors = m;
    return cuda_alloc(g->cuda, bytes, &m->device, &g->err) &&
           cuda_copy_in(g->cuda, m->device, t->bytes, bytes, &g->err);
}

static bool make_mirrors(Gpu *g, const ProcArg *args)
{
    const Block *b = g->r->host->blocks[0];
    for (unsigned i = 0; i < g->r->n; i++)
        if (args[i].tensor && on_device(b->args[i].value) &&
            !add_mirror(g, args[i].tensor))
            return fail_cuda(g, g->r->proc->loc);
    return true;
}

static bool copy_results(Gpu *g, const ProcArg *args)
{
    for (unsigned i = 0; i < g->r->n; i++) {
        Tensor *t = args[i].tensor;
        Mirror *m = t ? find_mirror(g, t) : NULL;
        if (!m || g->r->args[i].use == RUN_input)
            continue;
        if (!cuda_copy_out(g->cuda, t->bytes, m->device,
                           (size_t)t->count * t->elem_bytes, &g->err))
            return fail_cuda(g, g->r->proc->loc);
        tensor_set_written(t);
    }
    return true;
}

static void free_gpu(Gpu *g)
{
    CudaError ignored;
    for (Mirror *m = g->mirrors; m && g->cuda; m = m->next)
        cuda_free(g->cuda, m->device, &ignored);
    if (g->module)
        cuda_module_unload(g->module);
    cuda_close(g->cuda);
    arena_free(g->arena);
}

/* ---- PTX ----------------------------------------------------------------- */

/* The kernel's line `// exo-abi: HASH NAME` must be there with its hash. */
static bool check_abi(Gpu *g, const Op *op, const Op *kernel)
{
    const char *name = op_attr_str(kernel, "name", "");
    const char *tag = "// exo-abi: ";
    uint64_t hash = kernel_abi_hash(g->r->ctx, kernel);
    for (const char *p = strstr(g->ptx, tag); p; p = strstr(p + 1, tag)) {
        char *end;
        uint64_t found = strtoull(p + strlen(tag), &end, 16);
        size_t n = strlen(name);
        if (*end != ' ' || strncmp(end + 1, name, n) ||
            (end[1 + n] && !strchr("\r\n", end[1 + n])))
            continue;
        if (found == hash)
            return true;
        diag_error(g->r->ctx, op->loc, "abi",
                   "the PTX holds another form of kernel '%s' (exo-abi "
                   "%016llx, expected %016llx): make it again from this file",
                   name, (unsigned long long)found, (unsigned long long)hash);
        return false;
    }
    diag_error(g->r->ctx, op->loc, "abi",
               "the PTX has no line '// exo-abi: %016llx %s': make it from "
               "this file with exo-translate --to=ptx",
               (unsigned long long)hash, name);
    return false;
}

/* ---- launches ------------------------------------------------------------ */

static CudaPtr view_address(const Gpu *g, const View *v)
{
    const Mirror *m = find_mirror(g, v->tensor);
    return m ? m->device + (uint64_t)(v->offset * v->tensor->elem_bytes) : 0;
}

static unsigned char *view_bytes(const View *v)
{
    return v->tensor->bytes + v->offset * v->tensor->elem_bytes;
}

static bool encode_map(Gpu *g, const Value *param, const View *v, void *out)
{
    const MemRef *mem = param->type->mem;
    CudaTensorMapSpec spec = { .type = v->tensor->elem,
                               .rank = (int)v->rank,
                               .base = view_address(g, v),
                               .l2_promotion = 128 };
    CudaTensorMap map;
    if (!mem || mem->n_params != v->rank + 1 ||
        v->rank > CUDA_TENSOR_RANK_MAX) {
        snprintf(g->err.text, sizeof g->err.text,
                 "a tensor map needs a swizzle and a box of its rank");
        return false;
    }
    spec.tf32 = lib_rounds_tf32(g->r->m->lib, mem);
    spec.swizzle = (int)mem->params[0].i;
    for (unsigned d = 0; d < v->rank; d++) {
        unsigned from = v->rank - 1 - d;
        spec.dims[d] = (uint64_t)v->extent[from];
        spec.strides[d] = (uint64_t)(v->stride[from] * v->tensor->elem_bytes);
        spec.box[d] = (uint32_t)mem->params[1 + from].i;
    }
    if (!cuda_tensor_map_encode(g->cuda, &spec, &map, &g->err))
        return false;
    memcpy(out, &map, sizeof map);
    return true;
}

static bool fill_param(Gpu *g, const Op *kernel, const AbiParam *p,
                       const HostArg *a, void *out)
{
    int32_t word;
    uint64_t address;
    switch (p->kind) {
    case ABI_control:
    case ABI_stride:
        word = (int32_t)(p->kind == ABI_control ? a->value
                                                : a->view.stride[p->dim]);
        memcpy(out, &word, sizeof word);
        return true;
    case ABI_pointer:
        address = view_address(g, &a->view);
        memcpy(out, &address, sizeof address);
        return true;
    case ABI_scalar:
    case ABI_array:
        memcpy(out, view_bytes(&a->view), p->bytes);
        return true;
    case ABI_map:
        return encode_map(g, kernel->blocks[0]->args[p->arg].value, &a->view,
                          out);
    }
    return false;
}

/* What --clusters says, else as many as fit and the tasks need. */
static bool count_clusters(Gpu *g, int64_t tasks, const CudaLaunch *c, int *out)
{
    if (options_has(g->r->o, "--clusters")) {
        *out = (int)options_int(g->r->o, "--clusters", 1);
        return true;
    }
    if (!cuda_max_clusters(g->cuda, c, out, &g->err))
        return false;
    *out = cuda_even_clusters(g->cuda, c, *out, tasks);
    return true;
}

static bool set_grid(Gpu *g, const Op *kernel, int64_t tasks, Launch *l)
{
    CudaLaunch *c = &l->launch;
    int clusters = 0;
    c->block[0] = (unsigned)op_attr_int(kernel, "blockDim", 32);
    c->cluster[0] = (unsigned)op_attr_int(kernel, "clusterDim", 1);
    c->dependent = op_attr_int(kernel, "programmatic_dependent_launch", 0) != 0;
    c->shared_bytes = (size_t)op_attr_int(kernel, "smem_bytes", 0);
    if (!cuda_module_function(g->module, op_attr_str(kernel, "name", ""),
                              &c->fn, &g->err) ||
        !cuda_function_set_shared(g->cuda, &c->fn, c->shared_bytes, &g->err) ||
        !count_clusters(g, tasks, c, &clusters))
        return false;
    c->grid[0] = (unsigned)clusters * c->cluster[0];
    return true;
}

static bool gpu_launch(void *user, const Op *op, const Op *kernel,
                       const HostArg *args, unsigned n)
{
    Gpu *g = user;
    AbiParamVec list = { 0 };
    Launch *l = ARENA_NEW(g->arena, Launch);
    if (!kernel_abi(g->r->ctx, kernel, g->arena, &list) ||
        !check_abi(g, op, kernel))
        return false;
    l->n = (int)list.len;
    l->params = ARENA_ARRAY(g->arena, CudaParam, list.len + 1);
    for (size_t i = 0; i < list.len; i++) {
        const AbiParam *p = &list.data[i];
        void *data = arena_alloc(g->arena, p->bytes);
        if (!fill_param(g, kernel, p, &args[p->arg], data))
            return fail_cuda(g, op->loc);
        l->params[i] = (CudaParam){ data, p->bytes };
    }
    if (!set_grid(g, kernel, host_launch_tasks(kernel, args, n), l) ||
        !cuda_launch(g->cuda, &l->launch, l->params, l->n, &g->err))
        return fail_cuda(g, op->loc);
    *g->end = l;
    g->end = &l->next;
    return true;
}

/* ---- the host's work ----------------------------------------------------- */

static bool gpu_alloc(void *user, const Op *op, Tensor *t)
{
    Gpu *g = user;
    return add_mirror(g, t) || fail_cuda(g, op->loc);
}

/* Elements of a dense view; -1 when it is not dense. */
static int64_t dense_count(const View *v)
{
    int64_t n = 1;
    for (unsigned d = v->rank; d-- > 0;) {
        if (v->extent[d] > 1 && v->stride[d] != n)
            return -1;
        n *= v->extent[d];
    }
    return n;
}

static bool gpu_copy(void *user, Interp *in, Scope *s, const Op *op,
                     const View *to, const View *from)
{
    Gpu *g = user;
    CudaStream stream = { NULL };
    int64_t n = dense_count(to);
    if (n < 0 || (from && n != dense_count(from)))
        return interp_fault(in, s, op, "shape",
                            "copies and fills on a GPU need dense sides of "
                            "one size");
    size_t bytes = (size_t)n * to->tensor->elem_bytes;
    CudaPtr d = view_address(g, to), e = from ? view_address(g, from) : 0;
    unsigned char *host = view_bytes(to);
    bool ok;
    if (!from)
        ok = cuda_memset(g->cuda, d, 0, bytes, stream, &g->err);
    else if (d && e)
        ok = cuda_copy_device(g->cuda, d, e, bytes, stream, &g->err);
    else if (d)
        ok = cuda_copy_in(g->cuda, d, view_bytes(from), bytes, &g->err);
    else if (e)
        ok = cuda_copy_out(g->cuda, host, e, bytes, &g->err);
    else
        ok = memmove(host, view_bytes(from), bytes) != NULL;
    return ok || fail_cuda(g, op->loc);
}

ToolStatus run_gpu_probe(Run *r)
{
    Gpu g = { .r = r, .arena = arena_new() };
    bool ok = cuda_open(NULL, 0, &g.cuda, &g.err) || fail_cuda(&g, (Loc){ 0 });
    free_gpu(&g);
    return ok ? TOOL_done : TOOL_missing;
}

/* ---- the run ------------------------------------------------------------- */

static ToolStatus open_gpu(Gpu *g)
{
    uint32_t file =
        ctx_read_source(g->r->ctx, options_value(g->r->o, "--ptx", ""));
    size_t n;
    if (!file)
        return TOOL_wrong;
    g->ptx = ctx_source_text(g->r->ctx, file, &n);
    if (!cuda_open(NULL, 0, &g->cuda, &g->err)) {
        fail_cuda(g, (Loc){ 0 });
        return TOOL_missing;
    }
    if (!cuda_module_load_ptx(g->cuda, g->ptx, &g->module, &g->err)) {
        fail_cuda(g, (Loc){ 0 });
        return TOOL_wrong;
    }
    return TOOL_done;
}

static bool bench_body(void *user, CudaStream stream, CudaError *err)
{
    Gpu *g = user;
    for (Launch *l = g->launches; l; l = l->next) {
        CudaLaunch c = l->launch;
        c.stream = stream;
        if (!cuda_launch(g->cuda, &c, l->params, l->n, err))
            return false;
    }
    return true;
}

static ToolStatus bench(Gpu *g)
{
    float ms[BENCH_ROUNDS], least;
    if (!cuda_bench(g->cuda, BENCH_ROUNDS, bench_body, g, ms, &g->err)) {
        fail_cuda(g, g->r->proc->loc);
        return TOOL_wrong;
    }
    least = ms[0];
    for (int i = 1; i < BENCH_ROUNDS; i++)
        least = ms[i] < least ? ms[i] : least;
    printf("time: %.4f ms, the mean of the middle half of %d rounds; least "
           "%.4f ms; on %s\n",
           cuda_middle_mean(ms, BENCH_ROUNDS), BENCH_ROUNDS, (double)least,
           cuda_device(g->cuda)->name);
    return TOOL_done;
}

static ToolStatus run_host(Gpu *g, ProcArg *args)
{
    HostActions actions = {
        .user = g, .alloc = gpu_alloc, .copy = gpu_copy, .launch = gpu_launch
    };
    bool ok = make_mirrors(g, args) &&
              host_run(g->r->lowered, g->r->host, args, g->r->n, &actions);
    if (ok && !cuda_sync(g->cuda, &g->err))
        ok = fail_cuda(g, g->r->proc->loc);
    return ok && copy_results(g, args) ? TOOL_done : TOOL_wrong;
}

static ToolStatus run_and_compare(Gpu *g, ProcArg *args)
{
    Run *r = g->r;
    Reference ref = { 0 };
    ToolStatus s = run_host(g, args);
    if (!s && options_has(r->o, "--check")) {
        s = run_reference(r, &ref);
        s = s ? s : run_compare(r, &ref, args, "gpu");
        run_free_args(r, ref.args);
    }
    if (!s && options_has(r->o, "--bench"))
        s = bench(g);
    if (s)
        return s;
    run_print_outputs(r, args);
    return run_write_outputs(r, args);
}

ToolStatus run_gpu(Run *r)
{
    ToolStatus s = run_lower(r);
    if (s)
        return s;
    Gpu g = { .r = r, .arena = arena_new() };
    g.end = &g.launches;
    ProcArg *args = run_copy_args(r);
    s = open_gpu(&g);
    s = s ? s : run_and_compare(&g, args);
    free_gpu(&g);
    run_free_args(r, args);
    return s;
}
