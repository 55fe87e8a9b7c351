/* Runs on a GPU: the host procedure is run by the interpreter with the host ops
 * here, each tensor of device memory having a device copy; the kernels come
 * from PTX that was made elsewhere for the same calling convention. */
#include "tools/run.h"

#include "passes/abi.h"
#include "runtime/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BENCH_ROUNDS = 30 };

/* A host tensor and its device memory. */
typedef struct Mirror {
    Tensor *host;
    CudaPtr device;
    bool owned; /* the host side too: made by host.alloc */
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

static bool add_mirror(Gpu *g, Tensor *t, bool owned)
{
    Mirror *m = ARENA_NEW(g->arena, Mirror);
    size_t bytes = (size_t)t->count * t->elem_bytes;
    m->host = t;
    m->owned = owned;
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
            !add_mirror(g, args[i].tensor, false))
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
    for (Mirror *m = g->mirrors; m; m = m->next) {
        if (g->cuda)
            cuda_free(g->cuda, m->device, &ignored);
        if (m->owned)
            tensor_free(m->host);
    }
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

typedef struct Actual {
    int64_t value;
    View view;
} Actual;

static CudaPtr view_address(const Gpu *g, const View *v)
{
    const Mirror *m = find_mirror(g, v->tensor);
    return m ? m->device + (uint64_t)(v->offset * v->tensor->elem_bytes) : 0;
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
                       const Actual *a, void *out)
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
        memcpy(out,
               a->view.tensor->bytes +
                   a->view.offset * a->view.tensor->elem_bytes,
               p->bytes);
        return true;
    case ABI_map:
        return encode_map(g, kernel->blocks[0]->args[p->arg].value, &a->view,
                          out);
    }
    return false;
}

static bool set_grid(Gpu *g, const Op *kernel, Launch *l)
{
    CudaLaunch *c = &l->launch;
    int clusters = 0;
    c->block[0] = (unsigned)op_attr_int(kernel, "blockDim", 32);
    c->cluster[0] = (unsigned)op_attr_int(kernel, "clusterDim", 1);
    c->shared_bytes = (size_t)op_attr_int(kernel, "smem_bytes", 0);
    if (!cuda_module_function(g->module, op_attr_str(kernel, "name", ""),
                              &c->fn, &g->err) ||
        !cuda_function_set_shared(g->cuda, &c->fn, c->shared_bytes, &g->err))
        return false;
    if (options_has(g->r->o, "--clusters"))
        clusters = (int)options_int(g->r->o, "--clusters", 1);
    else if (!cuda_max_clusters(g->cuda, c, &clusters, &g->err))
        return false;
    c->grid[0] = (unsigned)clusters * c->cluster[0];
    return true;
}

static bool launch_kernel(Gpu *g, const Op *op, const Op *kernel,
                          const Actual *actuals)
{
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
        if (!fill_param(g, kernel, p, &actuals[p->arg], data))
            return fail_cuda(g, op->loc);
        l->params[i] = (CudaParam){ data, p->bytes };
    }
    if (!set_grid(g, kernel, l) ||
        !cuda_launch(g->cuda, &l->launch, l->params, l->n, &g->err))
        return fail_cuda(g, op->loc);
    *g->end = l;
    g->end = &l->next;
    return true;
}

static bool host_launch(Gpu *g, Interp *in, Scope *s, const Op *op)
{
    const Op *kernel =
        module_symbol(g->r->lowered, op_attr_str(op, "kernel", ""));
    Actual *a = ARENA_ARRAY(g->arena, Actual, op->n_operands + 1);
    if (!kernel || kernel->code != OP_async_kernel ||
        kernel->blocks[0]->n_args != op->n_operands + ABI_N_COORDS)
        return interp_fault(in, s, op, "call",
                            "there is no kernel that takes "
                            "these arguments");
    for (unsigned i = 0; i < op->n_operands; i++) {
        bool ok, c = false;
        switch (op->operands[i].kind) {
        case OPND_index:
            ok = interp_operand_index(in, s, op, i, &a[i].value);
            break;
        case OPND_cond:
            ok = interp_operand_cond(in, s, op, i, &c);
            a[i].value = c;
            break;
        default:
            ok = interp_operand_view(in, s, op, i, &a[i].view);
        }
        if (!ok)
            return false;
    }
    return launch_kernel(g, op, kernel, a);
}

/* ---- the other host ops -------------------------------------------------- */

static bool host_check(Interp *in, Scope *s, const Op *op)
{
    bool ok;
    if (!interp_operand_cond(in, s, op, 0, &ok))
        return false;
    return ok ||
           interp_fault(in, s, op, "precondition",
                        op_attr_str(op, "message", "an argument check failed"));
}

static bool host_map(Interp *in, Scope *s, const Op *op)
{
    View v;
    if (!interp_operand_view(in, s, op, 0, &v))
        return false;
    view_make_map(&v);
    interp_set_result(in, s, op, &v);
    return true;
}

static bool host_alloc(Gpu *g, Interp *in, Scope *s, const Op *op)
{
    int64_t extent[TENSOR_MAX_RANK];
    const Value *v = op->results[0];
    if (!interp_value_extents(in, s, op, v, extent))
        return false;
    Tensor *t = tensor_new(v->name, v->type->elem, v->type->rank, extent);
    if (!t)
        return interp_fault(in, s, op, "size",
                            "cannot allocate this tensor: "
                            "an extent is negative, or it is too large");
    if (!add_mirror(g, t, true))
        return fail_cuda(g, op->loc);
    View w = view_of(t);
    interp_set_result(in, s, op, &w);
    return true;
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

static bool host_copy(Gpu *g, Interp *in, Scope *s, const Op *op, bool fill)
{
    View to, from = { 0 };
    CudaStream stream = { NULL };
    if (!interp_operand_view(in, s, op, 0, &to) ||
        (!fill && !interp_operand_view(in, s, op, 1, &from)))
        return false;
    int64_t n = dense_count(&to);
    if (n < 0 || (!fill && n != dense_count(&from)))
        return interp_fault(in, s, op, "shape",
                            "copies and fills on a GPU need dense sides of "
                            "one size");
    size_t bytes = (size_t)n * to.tensor->elem_bytes;
    CudaPtr d = view_address(g, &to);
    unsigned char *host = to.tensor->bytes + to.offset * to.tensor->elem_bytes;
    bool ok;
    if (fill) {
        ok = cuda_memset(g->cuda, d, 0, bytes, stream, &g->err);
    } else {
        CudaPtr e = view_address(g, &from);
        const unsigned char *source =
            from.tensor->bytes + from.offset * from.tensor->elem_bytes;
        ok = d && e ? cuda_copy_device(g->cuda, d, e, bytes, stream, &g->err)
             : d    ? cuda_copy_in(g->cuda, d, source, bytes, &g->err)
             : e    ? cuda_copy_out(g->cuda, host, e, bytes, &g->err)
                    : memmove(host, source, bytes) != NULL;
    }
    return ok || fail_cuda(g, op->loc);
}

static bool host_op(void *user, Interp *in, Scope *s, const Op *op)
{
    Gpu *g = user;
    switch (op->code) {
    case OP_host_check:
        return host_check(in, s, op);
    case OP_host_align_check:
        return true;
    case OP_host_tensor_map:
        return host_map(in, s, op);
    case OP_host_alloc:
        return host_alloc(g, in, s, op);
    case OP_host_copy:
    case OP_host_memset:
        return host_copy(g, in, s, op, op->code == OP_host_memset);
    case OP_host_launch:
        return host_launch(g, in, s, op);
    default:
        return interp_fault(in, s, op, "level",
                            "this op has no meaning on the host");
    }
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
    Interp *in = interp_new(g->r->lowered);
    InterpOptions o = { .hook = host_op, .hook_user = g };
    bool ok =
        make_mirrors(g, args) && interp_run(in, g->r->host, args, g->r->n, &o);
    interp_free(in);
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
