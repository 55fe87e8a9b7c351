/* Registers, shared memory by buffer, occupancy.
 *
 * The limits are those of compute capability 9.0 (CUDA C++ programming guide,
 * "Features and technical specifications"): 65536 registers, given to warps in
 * blocks of 256; 233472 bytes of shared memory, of which each CTA takes 1024
 * for the system; 2048 threads and 32 CTAs. */
#include "tools/report.h"

#include <string.h>

typedef struct Buffers {
    StrBuf *out;
} Buffers;

static int64_t buffer_bytes(const Value *v)
{
    int64_t bytes =
        v->type->kind == TK_mbarrier ? 8 : scalar_type_bytes(v->type->elem);
    for (unsigned i = 0; i < v->type->rank; i++) {
        int64_t extent;
        if (!v->shape || !affine_is_const(v->shape[i], &extent))
            return -1;
        bytes *= extent;
    }
    return bytes;
}

static bool add_buffer(Op *op, void *user)
{
    Buffers *b = user;
    if (op->code != OP_mem_alloc && op->code != OP_async_mbarrier_alloc)
        return true;
    const Value *v = op->results[0];
    strbuf_addf(
        b->out, "  %lld bytes at %lld: %s%s\n", (long long)buffer_bytes(v),
        (long long)op_attr_int(op, "offset", -1), v->name ? v->name : "?",
        op->code == OP_mem_alloc ? "" : " (mbarriers)");
    return true;
}

static const PtxasKernel *find_kernel(const PtxasReport *r, const char *name)
{
    for (size_t i = 0; r && i < r->kernels.len; i++)
        if (!strcmp(r->kernels.data[i].name, name))
            return &r->kernels.data[i];
    return NULL;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t ctas_that_fit(const Op *kernel, const PtxasKernel *k)
{
    int64_t threads = op_attr_int(kernel, "blockDim", 32);
    int64_t smem = op_attr_int(kernel, "smem_bytes", 0);
    int64_t warps = (threads + 31) / 32;
    int64_t n = least(32, 2048 / (32 * warps));
    n = least(n, 233472 / (smem + 1024));
    if (k && k->registers > 0) {
        int64_t a_warp = (k->registers * 32 + 255) / 256 * 256;
        n = least(n, 65536 / a_warp / warps);
    }
    return n;
}

void report_kernel(Op *kernel, const PtxasReport *ptxas, StrBuf *out)
{
    const char *name = op_attr_str(kernel, "name", "");
    const PtxasKernel *k = find_kernel(ptxas, name);
    strbuf_addf(out, "kernel %s\n", name);
    strbuf_addf(out, "  threads: %lld in %lld CTAs a cluster\n",
                (long long)op_attr_int(kernel, "blockDim", 0),
                (long long)op_attr_int(kernel, "clusterDim", 1));
    if (k)
        strbuf_addf(out,
                    "  registers: %lld a thread at entry, %lld bytes "
                    "spilled\n",
                    (long long)k->registers,
                    (long long)(k->spill_stores + k->spill_loads));
    strbuf_addf(out, "  shared memory: %lld bytes\n",
                (long long)op_attr_int(kernel, "smem_bytes", 0));
    Buffers b = { out };
    op_walk(kernel, add_buffer, &b);
    strbuf_addf(out, "  CTAs on a multiprocessor: %lld\n",
                (long long)ctas_that_fit(kernel, k));
}
