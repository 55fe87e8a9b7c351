/* Synchronisation statements: fences, arrivals, waits.
 *
 * How many hardware arrivals an Arrive costs is chosen here. A collective of
 * whole warps arrives once a warp: its lanes meet (bar.warp.sync orders their
 * accesses before it with those of the lane after it, PTX ISA, bar.warp.sync),
 * then one elected lane arrives, with release. Parts of warps, and arrivals on
 * behalf of cp.async, arrive by thread. The meeting is left out where the
 * other lanes of these warps never touch memory in the role.
 *
 * A hand-over from the generic to the async proxy needs fence.proxy.async on
 * the way from one access to the other (PTX ISA, memory consistency model,
 * proxies): every writing thread executes it before it arrives, and where what
 * is written by cp.async arrives by itself, the waiter after its wait. */
#include "ir/limits.h"
#include "passes/lower/lower.h"

#include <string.h>

/* ---- timelines ----------------------------------------------------------- */

static bool within(const char *a, const char *b)
{
    const SyncTimeline *sub = sync_timeline_find(a);
    const SyncTimeline *super = sync_timeline_find(b);
    return sub && super && sync_timeline_includes(super, sub);
}

static bool sees_async_proxy(const char *second)
{
    return !within(second, "cuda_in_order");
}

/* ---- preparation --------------------------------------------------------- */

typedef struct BarrierUse {
    bool by_warp;        /* every Arrive is by whole warps */
    bool to_async_proxy; /* an Await hands over to the async proxy */
    int64_t by_warp_count, by_thread_count;
    const Op *arrive; /* NULL: there is none */
} BarrierUse;

static bool is_cp_async(const char *first)
{
    return within(first, "Sm80_cp_async") && !within(first, "cuda_in_order");
}

static BarrierUse *use_of(Lower *L, const Value *barrier)
{
    BarrierUse *use = ptr_map_get(&L->barrier_uses, barrier);
    if (use)
        return use;
    use = ARENA_NEW(L->scratch, BarrierUse);
    ptr_map_put(L->scratch, &L->barrier_uses, barrier, use);
    return use;
}

static void note_arrive(Lower *L, Op *op, const ParSync *s)
{
    BarrierUse *use = use_of(L, s->barrier);
    const ThreadSet *t = par_threads(L->pi, op);
    if (!t)
        return;
    bool by_warp =
        t->warp_aligned && !is_cp_async(op_attr_str(op, "first", ""));
    use->by_warp = use->arrive ? use->by_warp && by_warp : by_warp;
    use->by_warp_count = s->threads / 32 * s->source_ctas;
    use->by_thread_count = s->threads * s->source_ctas;
    use->arrive = op;
}

static bool note_use(Op *op, void *user)
{
    Lower *L = user;
    const ParSync *s = par_sync(L->pi, op);
    if (s && s->barrier && op->code == OP_par_arrive)
        note_arrive(L, op, s);
    if (s && s->barrier && op->code == OP_par_await &&
        sees_async_proxy(op_attr_str(op, "second", "")))
        use_of(L, s->barrier)->to_async_proxy = true;
    return true;
}

int64_t mbarrier_count(Lower *L, const Value *barrier)
{
    BarrierUse use = *use_of(L, barrier);
    int64_t n = use.by_warp ? use.by_warp_count : use.by_thread_count;
    if (n < 1)
        lower_error(L, barrier->def->loc, "barrier",
                    "barrier '%s' has no Arrive that could complete a phase",
                    barrier->name);
    n += LOWER_WRONG(L, "count-plus") - LOWER_WRONG(L, "count-minus");
    return n < 1 ? 1 : n;
}

/* ---- scope of barriers between CTAs -------------------------------------- */

typedef struct Traffic {
    ValueVec written;
    bool shared; /* a tensor that is written is accessed, generically */
    bool second_pass;
} Traffic;

static void note_traffic(Lower *L, Op *op, const OpAccess *a, void *user)
{
    Traffic *t = user;
    const Mem *mem = lower_mem(L, a->access->base);
    Value *root = value_root(a->access->base);
    if ((a->flags & ACC_SYNC) || !mem || mem->family != MEMF_global ||
        root->type->kind == TK_map || lower_by_elected_lane(L, op))
        return;
    bool written = false;
    for (size_t i = 0; i < t->written.len && !written; i++)
        written = t->written.data[i] == root;
    t->shared |= t->second_pass && written;
    if (!t->second_pass && !written && (a->flags & ACC_WRITE))
        VEC_PUSH(L->scratch, &t->written, root);
}

/* Does one CTA's thread access what another has in shared memory? */
static bool reaches_peers(Lower *L, const Op *op)
{
    const Instr *in = op->code == OP_par_instr && !lower_by_elected_lane(L, op)
                          ? op_instr(L->m, op)
                          : NULL;
    for (unsigned i = 0; in && i < in->n_params; i++) {
        const Mem *mem = op->operands[i].kind == OPND_access
                             ? lower_mem(L, op->operands[i].u.access->base)
                             : NULL;
        if (mem && mem->family == MEMF_shared && in->params[i].n_distributed)
            return true;
    }
    return false;
}

static void walk_all(Lower *L, Block *b, Traffic *t)
{
    for (Op *op = b->first; op; op = op->next) {
        OpAccessVec accesses = { 0 };
        t->shared |= reaches_peers(L, op);
        op_accesses(L->m, op, L->scratch, &accesses);
        for (size_t i = 0; i < accesses.len; i++)
            note_traffic(L, op, &accesses.data[i], t);
        for (unsigned i = 0; i < op->n_blocks; i++)
            walk_all(L, op->blocks[i], t);
    }
}

/* Can threads of several CTAs hand each other memory by ordinary accesses:
 * global memory, or shared memory that an instruction reads in other CTAs? Only
 * then must a barrier between CTAs release and acquire beyond the CTA; copies
 * by the async proxy complete through mbarriers and groups of their own. */
static void find_traffic(Lower *L)
{
    Traffic t = { 0 };
    walk_all(L, L->dev->body, &t);
    t.second_pass = true;
    walk_all(L, L->dev->body, &t);
    L->cluster_release = t.shared;
    L->global_writes = t.written.len > 0;
}

/* Without ordinary writes to global memory only shared memory changes hands
 * between the proxies. */
static void emit_fence_proxy(Lower *L)
{
    if (LOWER_WRONG(L, "no-proxy-fence"))
        return;
    Op *op = lower_emit(L, OP_async_fence_proxy, 0, 0, 0);
    if (!L->global_writes)
        op_set_str(L->m, op, "space", "shared");
}

bool sync_between_ctas(const ParSync *s)
{
    return s->n_xor > 1 || s->source_ctas > 1;
}

static void set_scope(Lower *L, Op *op, const ParSync *s)
{
    if (sync_between_ctas(s) && L->cluster_release)
        op_set_str(L->m, op, "scope", "cluster");
}

/* ---- named barriers ------------------------------------------------------ */

static NamedBarrier *named_barrier(Lower *L, const ThreadSet *t)
{
    for (size_t i = 0; i < L->named.len; i++) {
        NamedBarrier *n = &L->named.data[i];
        if (n->cover_lo == t->cover_lo && n->cover_hi == t->cover_hi &&
            n->n_warps == t->n_warps)
            return n;
    }
    return NULL;
}

static bool wants_named_barrier(const ThreadSet *t)
{
    return (t->kind == THREADS_warpgroup || t->kind == THREADS_warps) &&
           t->warp_aligned && t->n_warps > 1;
}

static bool is_wgmma_fence(const Op *op)
{
    return !strcmp(op_attr_str(op, "first", ""), "wgmma_fence_1");
}

static bool assign_named(Op *op, void *user)
{
    Lower *L = user;
    if (op->code != OP_par_fence || is_wgmma_fence(op))
        return true;
    const ThreadSet *t = par_threads(L->pi, op);
    if (!t || !wants_named_barrier(t) || named_barrier(L, t))
        return true;
    int64_t next = 1;
    for (size_t i = 0; i < L->named.len; i++) {
        const NamedBarrier *n = &L->named.data[i];
        next += (n->cover_hi - n->cover_lo) / n->n_warps;
    }
    NamedBarrier made = { t->cover_lo, t->cover_hi, t->n_warps, next };
    VEC_PUSH(L->scratch, &L->named, made);
    if (next + (t->cover_hi - t->cover_lo) / t->n_warps > NAMED_BARRIERS)
        lower_error(L, op->loc, "named-barrier",
                    "this Fence would need more than the %d named barriers "
                    "that a CTA has beside barrier 0",
                    NAMED_BARRIERS - 1);
    return !L->failed;
}

bool sync_prepare(Lower *L)
{
    op_walk(L->dev->op, assign_named, L);
    L->barrier_uses = (PtrMap){ 0 };
    op_walk(L->dev->op, note_use, L);
    find_traffic(L);
    exit_prepare(L);
    return !L->failed;
}

/* ---- Fence --------------------------------------------------------------- */

static void emit_named_barrier(Lower *L, const ThreadSet *t)
{
    ExprCtx *x = L->m->exprs;
    const NamedBarrier *n = named_barrier(L, t);
    const Affine *which = affine_floordiv(
        x, affine_add_const(x, t->warp_lo, -t->cover_lo), t->n_warps);
    int64_t fixed = 0;
    bool constant = affine_is_const(which, &fixed);
    Op *op = lower_emit(L, OP_async_barrier_cta_sync, constant ? 0 : 1, 0, 0);
    op_set_int(L->m, op, "id", n->id + (constant ? fixed : 0));
    op_set_int(L->m, op, "threads", 32 * t->n_warps);
    if (!constant)
        op->operands[0] = opnd_index(which);
}

static void emit_cta_wide(Lower *L)
{
    Op *op = lower_emit(L, OP_async_barrier_cta_sync, 0, 0, 0);
    op_set_int(L->m, op, "id", 0);
    op_set_int(L->m, op, "threads", L->dev->block_dim);
}

static void emit_thread_sync(Lower *L, Op *op, const ThreadSet *t)
{
    if (t->kind == THREADS_one || LOWER_WRONG(L, "no-fence"))
        return;
    if (t->kind == THREADS_warp)
        lower_emit(L, OP_async_warp_sync, 0, 0, 0);
    else if (t->kind == THREADS_cta)
        emit_cta_wide(L);
    else if (t->kind == THREADS_cluster) {
        lower_emit(L, OP_async_barrier_cluster_arrive, 0, 0, 0);
        lower_emit(L, OP_async_barrier_cluster_wait, 0, 0, 0);
    } else if (wants_named_barrier(t))
        emit_named_barrier(L, t);
    else
        lower_error(L, op->loc, "unit",
                    "Fence collective unit matched no known case: %lld "
                    "threads that are no contiguous, aligned set of warps, "
                    "no CTA and no cluster",
                    (long long)t->threads);
}

/* Fragments that other instructions than wgmma may have written are passed
 * through, so that they are written before the fence. */
static void lower_wgmma_fence(Lower *L)
{
    FragPtrVec frags = { 0 };
    for (size_t i = 0; i < L->frags.len; i++) {
        Frag *f = L->frags.data[i];
        bool written = f->value && f->live->kind == COND_true &&
                       !f->never_written && f->value->def &&
                       f->value->def->code == OP_async_frag_insert;
        if (written)
            VEC_PUSH(L->scratch, &frags, f);
    }
    unsigned n = (unsigned)frags.len;
    Op *op = lower_emit(L, OP_async_wgmma_fence, n, n, 0);
    for (unsigned i = 0; i < n; i++) {
        Frag *f = frags.data[i];
        op->operands[i] = opnd_value(f->value);
        frag_set(L, f, op_set_result(L->m, op, i, f->type, NULL));
    }
}

void lower_fence(Lower *L, Op *op)
{
    const char *first = op_attr_str(op, "first", "");
    const char *second = op_attr_str(op, "second", "");
    const ThreadSet *t = par_threads(L->pi, op);
    if (!t) {
        lower_error(L, op->loc, "lowering", "this Fence was not analysed");
        return;
    }
    if (is_wgmma_fence(op)) {
        lower_wgmma_fence(L);
        return;
    }
    if (!within(first, "cuda_in_order")) {
        if (!within(first, "Sm80_generic")) {
            lower_error(L, op->loc, "timeline",
                        "Fence first sync-tl %s not supported (we allow "
                        "Sm80_generic)",
                        first);
            return;
        }
        if (!LOWER_WRONG(L, "no-cp-wait"))
            lower_emit(L, OP_async_cp_async_wait_all, 0, 0, 0);
    }
    bool proxy = !within(first, "cuda_temporal") && sees_async_proxy(second);
    if (proxy)
        emit_fence_proxy(L);
    emit_thread_sync(L, op, t);
}

/* ---- Arrive -------------------------------------------------------------- */

/* The barrier element of this CTA: the home expression, distributed dimensions
 * dropped, its ring dimension as a ring. */
Access *lower_barrier(Lower *L, const ParSync *s)
{
    Value *object = smem_object(L, s->barrier)->object;
    Access *a = access_new(L->m, object);
    for (unsigned i = s->n_dist; i < s->barrier->type->rank; i++) {
        AccessDim *d = &a->dims[i - s->n_dist];
        if ((int)i == s->barrier->ring_dim)
            *d = ring_dim(L, s->barrier, s->home[i]);
        else
            *d = (AccessDim){ .kind = DIM_point,
                              .lo = lower_index(L, s->home[i]) };
    }
    return a;
}

void lower_cta_xor(Lower *L, Op *op, const ParSync *s)
{
    if (s->n_xor == 1 && s->xors[0] == 0)
        return;
    if (LOWER_WRONG(L, "mask-narrow"))
        return;
    Param *items = ARENA_ARRAY(L->scratch, Param, s->n_xor);
    for (unsigned i = 0; i < s->n_xor; i++)
        items[i] = (Param){ .kind = PARAM_int, .i = s->xors[i] };
    if (LOWER_WRONG(L, "mask-wide"))
        items[s->n_xor - 1].i += L->dev->cluster_dim;
    op_set_param(
        L->m, op, "cta_xor",
        &(Param){ .kind = PARAM_tuple, .n = s->n_xor, .items = items });
}

static bool quiet_warps(Lower *L, const ThreadSet *t)
{
    return t->warp_aligned && !warps_touch_memory(L, t->cover_lo, t->cover_hi);
}

static void arrive_mbarrier(Lower *L, Op *op, const ParSync *s,
                            const ThreadSet *t)
{
    const char *first = op_attr_str(op, "first", "");
    Access *a = lower_barrier(L, s);
    if (is_cp_async(first)) {
        lower_emit(L, OP_async_cp_async_mbarrier_arrive, 1, 0, 0)->operands[0] =
            opnd_access(a);
        return;
    }
    BarrierUse use = *use_of(L, s->barrier);
    if (use.to_async_proxy && !within(first, "cuda_temporal"))
        emit_fence_proxy(L);
    Block *outer = L->out;
    if (use.by_warp) {
        if (!quiet_warps(L, t) && !LOWER_WRONG(L, "no-warp-sync"))
            lower_emit(L, OP_async_warp_sync, 0, 0, 0);
        L->out = lower_elect(L);
    }
    Op *arrive = lower_emit(L, OP_async_mbarrier_arrive, 1, 0, 0);
    arrive->operands[0] = opnd_access(a);
    lower_cta_xor(L, arrive, s);
    set_scope(L, arrive, s);
    L->out = outer;
}

void lower_arrive(Lower *L, Op *op)
{
    const ParSync *s = par_sync(L->pi, op);
    const ThreadSet *t = par_threads(L->pi, op);
    if (!s || !t) {
        lower_error(L, op->loc, "lowering", "this Arrive was not analysed");
        return;
    }
    Block *outer = L->out;
    switch (s->mechanism->barrier) {
    case BARRIER_mbarrier:
        arrive_mbarrier(L, op, s, t);
        break;
    case BARRIER_cp_async_group:
        lower_emit(L, OP_async_cp_async_commit_group, 0, 0, 0);
        break;
    case BARRIER_bulk_group:
        L->out = lower_elect(L);
        lower_emit(L, OP_async_bulk_commit_group, 0, 0, 0);
        L->out = outer;
        break;
    case BARRIER_wgmma_group:
        lower_emit(L, OP_async_wgmma_commit_group, 0, 0, 0);
        flight_commit(L);
        break;
    case BARRIER_cluster:
        lower_emit(L, OP_async_barrier_cluster_arrive, 0, 0, 0);
        break;
    case BARRIER_none:
        lower_error(L, op->loc, "barrier", "'%s' is not a barrier mechanism",
                    s->mechanism->ref->name);
    }
}

/* ---- Await --------------------------------------------------------------- */

static void await_mbarrier(Lower *L, Op *op, const ParSync *s,
                           const ThreadSet *t)
{
    const char *second = op_attr_str(op, "second", "");
    Access *a = lower_barrier(L, s);
    Block *outer = L->out;
    if (LOWER_WRONG(L, "no-wait"))
        return;
    for (unsigned i = 0; i < a->rank && LOWER_WRONG(L, "wait-before"); i++)
        a->dims[i].delta -= a->dims[i].kind == DIM_ring;
    if (quiet_warps(L, t))
        L->out = lower_elect(L);
    Op *wait = lower_emit(L, OP_async_mbarrier_wait, 1, 0, 0);
    wait->operands[0] = opnd_access(a);
    BarrierUse use = *use_of(L, s->barrier);
    const ParSync *from = use.arrive ? par_sync(L->pi, use.arrive) : NULL;
    if (from)
        set_scope(L, wait, from);
    const char *first = use.arrive ? op_attr_str(use.arrive, "first", "") : "";
    if (sees_async_proxy(second) && is_cp_async(first))
        emit_fence_proxy(L);
    L->out = outer;
}

/* Fragments whose wgmma is complete once at most n groups are pending: all that
 * are committed when n is 0; otherwise those of this straight-line stretch with
 * more than n commits after them. */
static bool completes(const Lower *L, const Frag *f, int64_t n)
{
    if (!f->flight.in_flight || !f->value || f->flight.uncommitted)
        return false;
    if (n == 0)
        return true;
    return f->flight_block == L->out &&
           (int64_t)(L->commits - f->flight_commit) > n;
}

static void await_wgmma(Lower *L, int64_t n)
{
    FragPtrVec frags = { 0 };
    for (size_t i = 0; i < L->frags.len; i++)
        if (completes(L, L->frags.data[i], n))
            VEC_PUSH(L->scratch, &frags, L->frags.data[i]);
    unsigned k = (unsigned)frags.len;
    Op *wait = lower_emit(L, OP_async_wgmma_wait_group, k, k, 0);
    op_set_int(L->m, wait, "n", LOWER_WRONG(L, "group-plus") ? n + 1 : n);
    for (unsigned i = 0; i < k; i++) {
        Frag *f = frags.data[i];
        wait->operands[i] = opnd_value(f->value);
        f->value = op_set_result(L->m, wait, i, f->type, NULL);
        f->flight.in_flight = false;
    }
}

static void await_bulk(Lower *L, Op *op, const ThreadSet *t, int64_t n)
{
    Block *outer = L->out;
    L->out = lower_elect(L);
    Op *wait = lower_emit(L, OP_async_bulk_wait_group, 0, 0, 0);
    op_set_int(L->m, wait, "n", LOWER_WRONG(L, "bulk-plus") ? n + 1 : n);
    if (barrier_awaits_reads(BARRIER_bulk_group,
                             sync_timeline_find(op_attr_str(op, "second", ""))))
        op_set_bool(L->m, wait, "read", true);
    L->out = outer;
    if (!quiet_warps(L, t))
        lower_emit(L, OP_async_warp_sync, 0, 0, 0);
}

void lower_await(Lower *L, Op *op)
{
    const ParSync *s = par_sync(L->pi, op);
    const ThreadSet *t = par_threads(L->pi, op);
    int64_t n = op_attr_int(op, "n", 0);
    if (!s || !t) {
        lower_error(L, op->loc, "lowering", "this Await was not analysed");
        return;
    }
    switch (s->mechanism->barrier) {
    case BARRIER_mbarrier:
        await_mbarrier(L, op, s, t);
        break;
    case BARRIER_cp_async_group:
        op_set_int(L->m, lower_emit(L, OP_async_cp_async_wait_group, 0, 0, 0),
                   "n", LOWER_WRONG(L, "no-cp-wait") ? n + 1 : n);
        break;
    case BARRIER_bulk_group:
        await_bulk(L, op, t, n);
        break;
    case BARRIER_wgmma_group:
        await_wgmma(L, n);
        break;
    case BARRIER_cluster:
        lower_emit(L, OP_async_barrier_cluster_wait, 0, 0, 0);
        break;
    case BARRIER_none:
        lower_error(L, op->loc, "barrier", "'%s' is not a barrier mechanism",
                    s->mechanism->ref->name);
    }
}
