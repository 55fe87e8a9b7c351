/* Barriers, fences, register reallocation and bulk copies as inline PTX, one
 * instruction an op (mbarrier.init: one an object; arrive: one a CTA). */
#include "codegen/llvm_emit.h"

#include "ir/cache_hint.h"

#include <string.h>

#define MAX_CTAS 16

/* ---- ops without run-time operands --------------------------------------- */

static const char *plain_ptx(const Op *op)
{
    switch (op->code) {
    case OP_async_fence_mbarrier_init:
        return "fence.mbarrier_init.release.cluster;";
    case OP_async_fence_proxy:
        return strcmp(op_attr_str(op, "space", ""), "shared")
                   ? "fence.proxy.async;"
                   : "fence.proxy.async.shared::cta;";
    case OP_async_warp_sync:
        return "bar.warp.sync 0xffffffff;";
    case OP_async_barrier_cluster_arrive:
        return op_attr_int(op, "relaxed", 0)
                   ? "barrier.cluster.arrive.relaxed.aligned;"
                   : "barrier.cluster.arrive.release.aligned;";
    case OP_async_barrier_cluster_wait:
        return "barrier.cluster.wait.acquire.aligned;";
    case OP_async_griddepcontrol_wait:
        return "griddepcontrol.wait;";
    case OP_async_griddepcontrol_launch_dependents:
        return "griddepcontrol.launch_dependents;";
    case OP_async_bulk_commit_group:
        return "cp.async.bulk.commit_group;";
    case OP_async_cp_async_commit_group:
        return "cp.async.commit_group;";
    case OP_async_cp_async_wait_all:
        return "cp.async.wait_all;";
    case OP_async_wgmma_commit_group:
        return "wgmma.commit_group.sync.aligned;";
    default:
        return NULL;
    }
}

static bool emit_wait_group(Emit *e, const Op *op)
{
    int64_t n = op_attr_int(op, "n", -1);
    if (n < 0 || n > 63)
        return emit_error(e, op,
                          "must wait for 0 to 63 groups, but has n = "
                          "%lld",
                          (long long)n);
    if (op->code == OP_async_cp_async_wait_group)
        emit_ptx(e, "cp.async.wait_group %lld;", (long long)n);
    else
        emit_ptx(e, "cp.async.bulk.wait_group%s %lld;",
                 op_attr_int(op, "read", 0) ? ".read" : "", (long long)n);
    return true;
}

static bool emit_setmaxnreg(Emit *e, const Op *op)
{
    int64_t count = op_attr_int(op, "count", 0);
    const char *action = op_attr_str(op, "action", "");
    bool is_inc = action[0] == 'i';
    if (count < 24 || count > 256 || count % 8)
        return emit_error(e, op,
                          "must have a count of 24 to 256 in steps of "
                          "8, but has %lld",
                          (long long)count);
    emit_ptx(e, "setmaxnreg.%s.sync.aligned.u32 %lld;", is_inc ? "inc" : "dec",
             (long long)count);
    return true;
}

/* barrier.cta.sync and barrier.cta.arrive. */
static bool emit_cta_barrier(Emit *e, const Op *op)
{
    const char *name =
        op->code == OP_async_barrier_cta_sync ? "sync" : "arrive";
    int64_t id = op_attr_int(op, "id", -1);
    int64_t threads = op_attr_int(op, "threads", 0);
    if (id < 0 || id > 15 || threads < 32 || threads > 1024 || threads % 32)
        return emit_error(e, op,
                          "must have an id of 0 to 15 and whole warps, "
                          "but has id %lld and %lld threads",
                          (long long)id, (long long)threads);
    if (op->n_operands == 0) {
        emit_ptx(e, "barrier.cta.%s %lld, %lld;", name, (long long)id,
                 (long long)threads);
        return true;
    }
    const Affine *plus =
        affine_add_const(e->m->exprs, op->operands[0].u.index, id);
    LLVMValueRef v = plus ? emit_index(e, op, plus, 32) : NULL;
    if (!v)
        return false;
    Asm a = asm_new(e);
    unsigned in = asm_in(&a, "r", v);
    strbuf_addf(&a.text, "barrier.cta.%s $%u, %lld;", name, in,
                (long long)threads);
    asm_call(&a, ASM_EFFECT);
    return true;
}

/* ---- mbarriers ----------------------------------------------------------- */

static LLVMValueRef mbarrier_addr(Emit *e, const Op *op, const Access *a)
{
    SharedAddr addr;
    return emit_shared_addr(e, op, a, &addr) ? emit_shared_i32(e, &addr) : NULL;
}

static bool emit_mbarrier_init(Emit *e, const Op *op)
{
    const Value *bar = op->operands[0].u.value;
    const Op *def = bar->def;
    if (!def || def->code != OP_async_mbarrier_alloc)
        return emit_error(e, op, "must name an async.mbarrier.alloc");
    int64_t count = op_attr_int(def, "count", 0);
    int64_t offset = op_attr_int(def, "offset", 0), n = 1;
    for (unsigned i = 0; i < bar->type->rank; i++) {
        int64_t extent;
        if (!bar->shape || !affine_is_const(bar->shape[i], &extent) ||
            extent < 1 || n * extent > 4096)
            return emit_error(e, op,
                              "must have constant extents, at most "
                              "4096 objects in all");
        n *= extent;
    }
    for (int64_t i = 0; i < n; i++) {
        SharedAddr addr = { .constant = offset + 8 * i };
        Asm a = asm_new(e);
        unsigned at = asm_in(&a, "r", emit_shared_i32(e, &addr));
        strbuf_addf(&a.text, "mbarrier.init.shared::cta.b64 [$%u], %lld;", at,
                    (long long)count);
        asm_call(&a, ASM_EFFECT);
    }
    return true;
}

/* The ring whose slot the access names: it says which phase is meant. */
static const AccessDim *ring_dim(const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_ring)
            return &a->dims[i];
    return NULL;
}

/* CTA scope is the default of PTX; the wider one costs a fence of the whole
 * GPU, so that lowering asks for it only where it is needed. */
static bool is_cluster_scope(const Op *op)
{
    return !strcmp(op_attr_str(op, "scope", "cta"), "cluster");
}

static bool emit_mbarrier_wait(Emit *e, const Op *op)
{
    const Access *access = op->operands[0].u.access;
    const AccessDim *ring = ring_dim(access);
    LLVMValueRef at[2];
    if (!ring)
        return emit_error(e, op,
                          "must name an object by a ring, whose parity "
                          "says which phase is awaited");
    LLVMValueRef addr = mbarrier_addr(e, op, access);
    if (!addr || !emit_ring_at(e, op, ring->ring, ring->delta, at))
        return false;
    Asm a = asm_new(e);
    unsigned where = asm_in(&a, "r", addr);
    unsigned parity = asm_in(&a, "r", at[1]);
    strbuf_addf(&a.text,
                "{\n\t.reg .pred P;\nWAIT:\n\t"
                "mbarrier.try_wait.parity%s.shared::cta.b64 P, [$%u], $%u;\n\t"
                "@P bra DONE;\n\tbra WAIT;\nDONE:\n\t}",
                is_cluster_scope(op) ? ".acquire.cluster" : "", where, parity);
    asm_call(&a, ASM_EFFECT);
    return true;
}

static LLVMValueRef peer_cta(Emit *e, int64_t x)
{
    LLVMValueRef cta = e->vars[e->cta].value;
    return LLVMBuildXor(e->b, cta, emit_i32(e, x), "");
}

static void arrive_at(Emit *e, LLVMValueRef addr, int64_t x, bool cluster)
{
    Asm a = asm_new(e);
    if (x == 0) {
        unsigned at = asm_in(&a, "r", addr);
        strbuf_addf(&a.text, "mbarrier.arrive.shared::cta.b64 _, [$%u];", at);
        asm_call(&a, ASM_EFFECT);
        return;
    }
    unsigned at = asm_in(&a, "r", emit_mapa(e, addr, peer_cta(e, x)));
    strbuf_addf(&a.text, "mbarrier.arrive%s.shared::cluster.b64 _, [$%u];",
                cluster ? ".release.cluster" : "", at);
    asm_call(&a, ASM_EFFECT);
}

static bool emit_mbarrier_arrive(Emit *e, const Op *op)
{
    int64_t xors[MAX_CTAS] = { 0 };
    unsigned n = emit_attr_ints(op, "cta_xor", xors, MAX_CTAS);
    LLVMValueRef addr = mbarrier_addr(e, op, op->operands[0].u.access);
    if (!addr)
        return false;
    for (unsigned i = 0; i < (n ? n : 1); i++)
        arrive_at(e, addr, xors[i], is_cluster_scope(op));
    return true;
}

static bool emit_expect_tx(Emit *e, const Op *op)
{
    int64_t bytes = op_attr_int(op, "bytes", -1);
    if (bytes < 0 || bytes >= 1 << 20)
        return emit_error(e, op,
                          "must expect 0 to 2^20 - 1 bytes, but has "
                          "%lld",
                          (long long)bytes);
    LLVMValueRef addr = mbarrier_addr(e, op, op->operands[0].u.access);
    if (!addr)
        return false;
    Asm a = asm_new(e);
    unsigned at = asm_in(&a, "r", addr);
    strbuf_addf(&a.text,
                "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 "
                "[$%u], %lld;",
                at, (long long)bytes);
    asm_call(&a, ASM_EFFECT);
    return true;
}

static bool emit_cp_async_arrive(Emit *e, const Op *op)
{
    LLVMValueRef addr = mbarrier_addr(e, op, op->operands[0].u.access);
    if (!addr)
        return false;
    Asm a = asm_new(e);
    unsigned at = asm_in(&a, "r", addr);
    strbuf_addf(&a.text,
                "cp.async.mbarrier.arrive.noinc.shared::cta.b64 "
                "[$%u];",
                at);
    asm_call(&a, ASM_EFFECT);
    return true;
}

bool emit_sync(Emit *e, Op *op)
{
    const char *ptx = plain_ptx(op);
    if (ptx) {
        emit_ptx(e, "%s", ptx);
        return true;
    }
    switch (op->code) {
    case OP_async_bulk_wait_group:
    case OP_async_cp_async_wait_group:
        return emit_wait_group(e, op);
    case OP_async_setmaxnreg:
        return emit_setmaxnreg(e, op);
    case OP_async_barrier_cta_sync:
    case OP_async_barrier_cta_arrive:
        return emit_cta_barrier(e, op);
    case OP_async_mbarrier_init:
        return emit_mbarrier_init(e, op);
    case OP_async_mbarrier_wait:
        return emit_mbarrier_wait(e, op);
    case OP_async_mbarrier_arrive:
        return emit_mbarrier_arrive(e, op);
    case OP_async_mbarrier_expect_tx:
        return emit_expect_tx(e, op);
    case OP_async_cp_async_mbarrier_arrive:
        return emit_cp_async_arrive(e, op);
    default:
        return emit_error(e, op, "has no place in a kernel");
    }
}

/* ---- bulk tensor copies -------------------------------------------------- */

/* `[map, {coordinates, least significant first}]`, its inputs added to a. */
static bool add_map_operand(Emit *e, const Op *op, const Access *access, Asm *a)
{
    const Access *on_map = access_compose(e->m, access);
    const EmitValue *map = emit_value(e, on_map->base);
    if (on_map->base->type->kind != TK_map || map->n != 1)
        return emit_error(e, op,
                          "needs a tensor map that is a parameter of "
                          "the kernel");
    if (on_map->rank < 1 || on_map->rank > 5)
        return emit_error(e, op, "needs a tensor map of 1 to 5 dimensions");
    strbuf_addf(&a->text, "[$%u, {", asm_in(a, "l", map->parts[0]));
    for (unsigned i = on_map->rank; i-- > 0;) {
        const AccessDim *d = &on_map->dims[i];
        if (d->kind == DIM_ring)
            return emit_error(e, op, "indexes a tensor map by a ring");
        LLVMValueRef v = emit_index(e, op, d->lo, 32);
        if (!v)
            return false;
        strbuf_addf(&a->text, "%s$%u", i + 1 < on_map->rank ? ", " : "",
                    asm_in(a, "r", v));
    }
    strbuf_add(&a->text, "}]");
    return true;
}

bool emit_prefetch(Emit *e, const Op *op)
{
    const EmitValue *map = emit_value(e, op->operands[0].u.value);
    if (map->n != 1)
        return emit_error(e, op,
                          "needs a tensor map that is a parameter of "
                          "the kernel");
    Asm a = asm_new(e);
    strbuf_addf(&a.text, "prefetch.tensormap [$%u];",
                asm_in(&a, "l", map->parts[0]));
    asm_call(&a, ASM_EFFECT);
    return true;
}

static bool add_smem_operand(Emit *e, const Op *op, const Access *access,
                             Asm *a)
{
    SharedAddr addr;
    if (!emit_shared_addr(e, op, access, &addr))
        return false;
    unsigned at = asm_in(a, "r", emit_shared_i32(e, &addr));
    strbuf_addf(&a->text, "[$%u]", at);
    return true;
}

/* The qualifier of a copy with a hint. */
static const char *hint_word(const Op *op)
{
    return op_attr(op, "cache_hint") ? ".L2::cache_hint" : "";
}

/* The policy, last of the operands: an immediate. */
static void add_hint(const Op *op, Asm *a)
{
    int64_t policy;
    if (cache_hint_policy(op_attr_str(op, "cache_hint", ""), &policy))
        strbuf_addf(&a->text, ", %lld", (long long)policy);
}

/* The CTAs cta xor x of the list as a mask; constant where it is one set for
 * every cta of the cluster. */
static LLVMValueRef multicast_mask(Emit *e, const int64_t *xors, unsigned n)
{
    int64_t size = op_attr_int(e->kernel, "clusterDim", 1);
    int64_t first = 0;
    bool is_same = true;
    for (int64_t c = 0; c < size && c < MAX_CTAS; c++) {
        int64_t mask = 0;
        for (unsigned i = 0; i < n; i++)
            mask |= INT64_C(1) << ((c ^ xors[i]) & (MAX_CTAS - 1));
        first = c == 0 ? mask : first;
        is_same = is_same && mask == first;
    }
    if (is_same)
        return LLVMConstInt(e->i16, (uint64_t)first, false);
    LLVMValueRef mask = emit_i32(e, 0);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef peer = peer_cta(e, xors[i]);
        LLVMValueRef bit = LLVMBuildShl(e->b, emit_i32(e, 1), peer, "");
        mask = LLVMBuildOr(e->b, mask, bit, "");
    }
    return LLVMBuildTrunc(e->b, mask, e->i16, "");
}

static bool emit_bulk_load(Emit *e, const Op *op)
{
    const Access *map = op->operands[1].u.access;
    int64_t xors[MAX_CTAS];
    unsigned n = emit_attr_ints(op, "cta_xor", xors, MAX_CTAS);
    bool is_multicast = n > 0 && !(n == 1 && xors[0] == 0);
    LLVMValueRef bar = mbarrier_addr(e, op, op->operands[2].u.access);
    if (!bar)
        return false;
    Asm a = asm_new(e);
    strbuf_addf(&a.text,
                "cp.async.bulk.tensor.%ud.shared::cluster.global.tile"
                ".mbarrier::complete_tx::bytes%s%s ",
                access_compose(e->m, map)->rank,
                is_multicast ? ".multicast::cluster" : "", hint_word(op));
    bool ok = add_smem_operand(e, op, op->operands[0].u.access, &a);
    strbuf_add(&a.text, ", ");
    if (!ok || !add_map_operand(e, op, map, &a)) {
        asm_drop(&a);
        return false;
    }
    strbuf_addf(&a.text, ", [$%u]", asm_in(&a, "r", bar));
    if (is_multicast) {
        LLVMValueRef mask = multicast_mask(e, xors, n);
        strbuf_addf(&a.text, ", $%u", asm_in(&a, "h", mask));
    }
    add_hint(op, &a);
    strbuf_addc(&a.text, ';');
    asm_call(&a, ASM_EFFECT);
    return true;
}

static bool emit_bulk_store(Emit *e, const Op *op)
{
    const Access *map = op->operands[0].u.access;
    unsigned rank = access_compose(e->m, map)->rank;
    Asm a = asm_new(e);
    if (op->code == OP_async_bulk_tensor_store)
        strbuf_addf(&a.text,
                    "cp.async.bulk.tensor.%ud.global.shared::cta.tile"
                    ".bulk_group%s ",
                    rank, hint_word(op));
    else
        strbuf_addf(&a.text,
                    "cp.reduce.async.bulk.tensor.%ud.global"
                    ".shared::cta.%s.tile.bulk_group%s ",
                    rank, op_attr_str(op, "op", "add"), hint_word(op));
    bool ok = add_map_operand(e, op, map, &a);
    strbuf_add(&a.text, ", ");
    if (!ok || !add_smem_operand(e, op, op->operands[1].u.access, &a)) {
        asm_drop(&a);
        return false;
    }
    add_hint(op, &a);
    strbuf_addc(&a.text, ';');
    asm_call(&a, ASM_EFFECT);
    return true;
}

/* PTX ISA, "cp.async.bulk": bytes as they lie, from this CTA to another. */
static bool emit_bulk_copy(Emit *e, const Op *op)
{
    SharedAddr to, from;
    LLVMValueRef bar = mbarrier_addr(e, op, op->operands[2].u.access);
    LLVMValueRef cta = emit_index(e, op, op->operands[3].u.index, 32);
    int64_t bytes = access_bytes(op->operands[1].u.access);
    if (!bar || !cta ||
        !emit_shared_addr(e, op, op->operands[0].u.access, &to) ||
        !emit_shared_addr(e, op, op->operands[1].u.access, &from))
        return false;
    if (bytes <= 0 || bytes % 16)
        return emit_error(e, op, "must move a constant multiple of 16 bytes");
    Asm a = asm_new(e);
    unsigned dst = asm_in(&a, "r", emit_mapa(e, emit_shared_i32(e, &to), cta));
    unsigned src = asm_in(&a, "r", emit_shared_i32(e, &from));
    unsigned at = asm_in(&a, "r", emit_mapa(e, bar, cta));
    strbuf_addf(&a.text,
                "cp.async.bulk.shared::cluster.shared::cta"
                ".mbarrier::complete_tx::bytes [$%u], [$%u], %lld, [$%u];",
                dst, src, (long long)bytes, at);
    asm_call(&a, ASM_EFFECT);
    return true;
}

bool emit_copy(Emit *e, Op *op)
{
    return op->code == OP_async_bulk_tensor_load ? emit_bulk_load(e, op)
           : op->code == OP_async_bulk_copy      ? emit_bulk_copy(e, op)
                                                 : emit_bulk_store(e, op);
}
