/* mbarriers, named and cluster barriers, rings, and groups of bulk copies and
 * cp.async as a thread counts them. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"

#include <string.h>

/* ---- mbarriers ----------------------------------------------------------- */

static Mbar *mbar_at(Machine *mc, const Warp *w, const Op *op, Cta *cta,
                     int64_t offset)
{
    Mbar *b = &cta->bars[offset / 8];
    if (!cta->live && cta != w->cta) {
        machine_fail(mc, w, 0, op, "exited",
                     "signals an mbarrier of cta %u, all of whose warps have "
                     "ended",
                     cta->rank);
        return NULL;
    }
    if (b->ready)
        return b;
    machine_fail(mc, w, 0, op, "uninitialised",
                 "the mbarrier at shared byte %lld of cta %u was not "
                 "initialised",
                 (long long)offset, cta->rank);
    return NULL;
}

static void mbar_name(StrBuf *out, const Mbar *b)
{
    value_print_name(out, b->array);
    strbuf_addf(out, "[%lld]", (long long)b->element);
}

/* Completes the phase when nothing is missing. */
static void mbar_settle(Machine *mc, const Warp *w, const Op *op, Cta *cta,
                        int64_t offset, Mbar *b)
{
    if (b->pending || b->bytes)
        return;
    MachineEvent e = { .kind = MEV_phase,
                       .op = op,
                       .cta = cta->rank,
                       .offset = offset,
                       .phase = b->phase,
                       .agent = warp_agent(w, AGENT_warp, 0) };
    e.agent.cluster = cta->cluster->index;
    b->phase++;
    b->pending = b->count;
    machine_emit(mc, &e);
}

static bool fail_arrivals(Machine *mc, const Warp *w, const Op *op,
                          const Cta *cta, const Mbar *b)
{
    StrBuf name = { 0 };
    mbar_name(&name, b);
    machine_fail(mc, w, 0, op, "mbarrier",
                 "arrives on '%s' of cta %u more often than its count of %lld "
                 "in phase %lld, which still waits for %lld bytes",
                 strbuf_text(&name), cta->rank, (long long)b->count,
                 (long long)b->phase, (long long)b->bytes);
    strbuf_free(&name);
    return false;
}

static void mbar_event(Machine *mc, const Warp *w, MachineEventKind kind,
                       uint32_t lanes, const Op *op, const Cta *cta,
                       int64_t offset, int64_t length, int64_t turn)
{
    MachineEvent e = { .kind = kind,
                       .turn = turn,
                       .op = op,
                       .cta = cta->rank,
                       .offset = offset,
                       .length = length,
                       .phase = cta->bars[offset / 8].phase,
                       .effect = mc->stepping ? mc->stepping->number : 0,
                       .agent = warp_agent(w, AGENT_warp, lanes) };
    machine_emit(mc, &e);
}

bool mbar_arrive(Machine *mc, const Warp *w, uint32_t lanes, const Op *op,
                 Cta *cta, int64_t offset, int64_t turn)
{
    Mbar *b = mbar_at(mc, w, op, cta, offset);
    if (!b)
        return false;
    mbar_event(mc, w, MEV_arrive, lanes, op, cta, offset, 1, turn);
    if (!b->pending)
        return fail_arrivals(mc, w, op, cta, b);
    b->pending--;
    mbar_settle(mc, w, op, cta, offset, b);
    return true;
}

bool mbar_bytes(Machine *mc, const Warp *w, uint32_t lanes, const Op *op,
                Cta *cta, int64_t offset, int64_t bytes, int64_t turn)
{
    Mbar *b = mbar_at(mc, w, op, cta, offset);
    if (!b)
        return false;
    mbar_event(mc, w, bytes < 0 ? MEV_deliver : MEV_expect, lanes, op, cta,
               offset, bytes < 0 ? -bytes : bytes, turn);
    b->bytes += bytes;
    if (b->bytes < -(1 << 20) || b->bytes >= 1 << 20)
        return machine_fail(mc, w, 0, op, "mbarrier",
                            "the bytes that an mbarrier of cta %u waits for "
                            "leave the hardware's range of 2^20 - 1",
                            cta->rank);
    if (bytes < 0)
        mbar_settle(mc, w, op, cta, offset, b);
    return true;
}

/* The byte offset of the mbarrier that an access means, and its ring's turn. */
bool mbar_offset(Warp *w, const Op *op, const Access *a, unsigned lane,
                 int64_t *offset, int64_t *turn)
{
    int64_t index[TENSOR_MAX_RANK], at = 0;
    const MemObj *o = warp_access(w, op, a, lane, index, turn);
    if (!o)
        return false;
    if (o->space != SPACE_mbarrier)
        return machine_fail(w->machine, w, 1u << lane, op, "machine",
                            "the operand is no array of mbarriers");
    for (unsigned d = 0; d < o->rank; d++) {
        if (index[d] < 0 || index[d] >= o->extent[d])
            return machine_fail(w->machine, w, 1u << lane, op, "bounds",
                                "index %lld of dimension %u is outside the "
                                "mbarrier array",
                                (long long)index[d], d);
        at += index[d] * o->stride[d];
    }
    *offset = o->offset + 8 * at;
    return true;
}

static Step exec_mbar_init(Warp *w, const Op *op, uint32_t mask)
{
    const MemObj *o = w->machine->k->objs[op->operands[0].u.value->id];
    if (!o || o->space != SPACE_mbarrier || (mask & (mask - 1))) {
        machine_fail(w->machine, w, mask, op, "mbarrier",
                     "one thread must initialise an array of mbarriers");
        return STEP_failed;
    }
    int64_t n = 1, first = o->offset / 8;
    for (unsigned d = 0; d < o->rank; d++)
        n *= o->extent[d];
    for (int64_t i = 0; i < n; i++) {
        if (w->cta->bars[first + i].ready) {
            machine_fail(w->machine, w, mask, op, "mbarrier",
                         "an mbarrier is initialised once, but this one was "
                         "before");
            return STEP_failed;
        }
        w->cta->bars[first + i] = (Mbar){ .count = o->count,
                                          .pending = o->count,
                                          .ready = true,
                                          .array = o->value,
                                          .element = i };
        mbar_event(w->machine, w, MEV_init, mask, op, w->cta, o->offset + 8 * i,
                   o->count, MACHINE_NO_TURN);
    }
    range_add(&w->cta->due_lo, &w->cta->due_hi, first, n);
    return STEP_next;
}

static void pass_event(Warp *w, const Op *op, uint32_t lanes, int64_t offset,
                       int64_t turn)
{
    MachineEvent e = { .kind = MEV_pass,
                       .op = op,
                       .cta = w->cta->rank,
                       .offset = offset,
                       .phase = w->cta->bars[offset / 8].phase - 1,
                       .turn = turn,
                       .agent = warp_agent(w, AGENT_warp, lanes) };
    machine_emit(w->machine, &e);
}

/* The object that a lane waits for, or NULL after a diagnostic. */
static Mbar *waited(Warp *w, const Op *op, unsigned lane, uint32_t mask,
                    int64_t *offset, int64_t *turn)
{
    *offset = 0;
    *turn = MACHINE_NO_TURN;
    if (!mbar_offset(w, op, op->operands[0].u.access, lane, offset, turn))
        return NULL;
    Mbar *b = mbar_at(w->machine, w, op, w->cta, *offset);
    if (b && *turn == MACHINE_NO_TURN) {
        machine_fail(w->machine, w, mask, op, "mbarrier",
                     "waits without a ring to take the parity from");
        return NULL;
    }
    return b;
}

static Step exec_mbar_wait(Warp *w, const Op *op, uint32_t mask)
{
    const Access *a = op->operands[0].u.access;
    bool varies = access_varies(w->machine->k, kernel_access(w->machine->k, a));
    for (int pass = 0; pass < 2; pass++)
        FOR_LANES(l, mask)
        {
            int64_t offset, turn;
            Mbar *b = waited(w, op, l, mask, &offset, &turn);
            if (!b)
                return STEP_failed;
            if (!pass && (b->phase & 1) == (turn & 1)) {
                w->wait = (Wait){ .kind = WAIT_mbarrier,
                                  .bar = b,
                                  .parity = turn & 1,
                                  .lanes = mask };
                return STEP_blocked;
            }
            if (pass)
                pass_event(w, op, varies ? 1u << l : mask, offset, turn);
            if (!varies)
                break;
        }
    return STEP_next;
}

/* CTA ranks of attribute cta_xor; the own rank when it is absent. */
Cta *xor_target(Warp *w, const Op *op, unsigned i, unsigned *n)
{
    const Param *list = op_attr_param(op, "cta_xor");
    int64_t x = 0;
    *n = 1;
    if (list && list->kind == PARAM_tuple && list->n) {
        *n = list->n;
        x = list->items[i].i;
    } else if (list) {
        x = list->i;
    }
    int64_t rank = (int64_t)w->cta->rank ^ x;
    if (rank < 0 || rank >= w->machine->k->cluster_dim) {
        machine_fail(w->machine, w, 0, op, "machine",
                     "cta_xor %lld leads out of the cluster", (long long)x);
        return NULL;
    }
    return &w->cluster->ctas[rank];
}

static Step exec_mbar_arrive(Warp *w, const Op *op, uint32_t mask)
{
    const Access *a = op->operands[0].u.access;
    unsigned n = 1;
    FOR_LANES(l, mask)
    {
        int64_t offset = 0, turn = MACHINE_NO_TURN;
        if (!mbar_offset(w, op, a, l, &offset, &turn))
            return STEP_failed;
        for (unsigned i = 0; i < n; i++) {
            Cta *cta = xor_target(w, op, i, &n);
            if (!cta ||
                !mbar_arrive(w->machine, w, 1u << l, op, cta, offset, turn))
                return STEP_failed;
        }
    }
    return STEP_next;
}

static Step exec_expect_tx(Warp *w, const Op *op, uint32_t mask)
{
    int64_t bytes = op_attr_int(op, "bytes", 0), offset = 0;
    int64_t turn = MACHINE_NO_TURN;
    FOR_LANES(l, mask)
    if (!mbar_offset(w, op, op->operands[0].u.access, l, &offset, &turn) ||
        !mbar_bytes(w->machine, w, 1u << l, op, w->cta, offset, bytes, turn))
        return STEP_failed;
    return STEP_next;
}

/* ---- barriers of threads ------------------------------------------------- */

static void step_event(Warp *w, const Op *op, int64_t id, uint64_t phase)
{
    MachineEvent e = { .kind = MEV_step,
                       .op = op,
                       .offset = id,
                       .phase = (int64_t)phase,
                       .agent = warp_agent(w, AGENT_warp, ALL_LANES) };
    machine_emit(w->machine, &e);
}

static Step pass_named(Warp *w, const Op *op, int64_t id, uint64_t use)
{
    step_event(w, op, id, use);
    return STEP_next;
}

/* One that only arrives is past the barrier at once. */
static Step exec_named(Warp *w, const Op *op)
{
    bool waits = op->code == OP_async_barrier_cta_sync;
    int64_t id = op_attr_int(op, "id", -1), more = 0;
    int64_t threads = op_attr_int(op, "threads", 0);
    if (op->n_operands && !warp_index(w, op, op->operands[0].u.index, 0, &more))
        return STEP_failed;
    id += more;
    if (id < 0 || id >= NAMED_BARRIERS || threads < 32 || threads % 32) {
        machine_fail(w->machine, w, ALL_LANES, op, "machine",
                     "named barriers are 0 to 15 and take a multiple of 32 "
                     "threads; these are %lld and %lld",
                     (long long)id, (long long)threads);
        return STEP_failed;
    }
    Named *b = &w->cta->named[id];
    if (w->named_arrived) {
        w->named_arrived = false;
        return pass_named(w, op, id, w->wait.generation);
    }
    if (b->arrived && b->threads != threads) {
        machine_fail(w->machine, w, ALL_LANES, op, "machine",
                     "barrier %lld is used for %lld threads while others "
                     "wait there for %lld",
                     (long long)id, (long long)threads, (long long)b->threads);
        return STEP_failed;
    }
    b->threads = threads;
    b->arrived += WARP_LANES;
    MachineEvent e = { .kind = MEV_meet,
                       .op = op,
                       .offset = id,
                       .length = threads,
                       .phase = (int64_t)b->generation,
                       .agent = warp_agent(w, AGENT_warp, ALL_LANES) };
    machine_emit(w->machine, &e);
    bool opens = b->arrived == threads;
    if (opens)
        b->arrived = 0;
    uint64_t use = opens ? b->generation++ : b->generation;
    if (!waits)
        return STEP_next;
    if (opens)
        return pass_named(w, op, id, use);
    w->named_arrived = true;
    w->wait = (Wait){ .kind = WAIT_named,
                      .id = id,
                      .lanes = ALL_LANES,
                      .generation = b->generation };
    return STEP_blocked;
}

static Step exec_cluster_arrive(Warp *w, const Op *op)
{
    if (w->cluster_arrived) {
        machine_fail(w->machine, w, ALL_LANES, op, "machine",
                     "arrives at the cluster barrier twice without waiting "
                     "in between");
        return STEP_failed;
    }
    w->cluster_arrived = true;
    w->cluster_phase = w->cluster->phase;
    w->cluster->arrived++;
    step_event(w, op, 0, (uint64_t)w->cluster_phase);
    return STEP_next;
}

static void cluster_settle(Cluster *c)
{
    if (c->arrived && c->arrived >= c->live) {
        c->arrived = 0;
        c->phase++;
    }
}

static Step exec_cluster_wait(Warp *w, const Op *op)
{
    if (!w->cluster_arrived) {
        machine_fail(w->machine, w, ALL_LANES, op, "machine",
                     "waits at the cluster barrier without having arrived");
        return STEP_failed;
    }
    cluster_settle(w->cluster);
    if (w->cluster->phase > w->cluster_phase) {
        w->cluster_arrived = false;
        step_event(w, op, 0, (uint64_t)w->cluster_phase);
        return STEP_next;
    }
    w->wait = (Wait){ .kind = WAIT_cluster, .lanes = ALL_LANES };
    return STEP_blocked;
}

/* ---- groups -------------------------------------------------------------- */

static void commit(LaneGroups *g, uint32_t mask)
{
    FOR_LANES(l, mask) g->open[l]++;
}

/* Effects of this warp of one of two kinds that a lane's group count still
 * waits for. */
static bool groups_pending(const Warp *w, WaitKind kind, int64_t n,
                           uint32_t lanes)
{
    const Machine *mc = w->machine;
    bool cp = kind == WAIT_cp_async;
    const LaneGroups *g = cp ? &w->cp : &w->bulk;
    for (size_t i = 0; i < mc->effects.len; i++) {
        const Effect *e = mc->effects.data[i].effect;
        if (e->warp != w ||
            (cp ? e->kind != EFFECT_cp_async : e->kind != EFFECT_store))
            continue;
        if (kind == WAIT_bulk_read && e->source_read)
            continue;
        FOR_LANES(l, e->lanes & lanes)
        if (n < 0 || e->group[l] < g->open[l] - n)
            return true;
    }
    return false;
}

static Step wait_groups(Warp *w, uint32_t mask, WaitKind kind, int64_t n)
{
    if (!groups_pending(w, kind, n, mask))
        return STEP_next;
    w->wait = (Wait){ .kind = kind, .n = n, .lanes = mask };
    return STEP_blocked;
}

/* Both fences show initialised mbarriers to the async proxy. A proxy fence by
 * any warp of the CTA also settles what was stored before it: lenient, as only
 * the storing threads' or their successors' counts, but a fence that is missing
 * altogether is found. */
static void fence(Cta *cta, bool proxy)
{
    if (proxy) {
        memset(cta->generic + cta->generic_lo, 0,
               (size_t)(cta->generic_hi - cta->generic_lo));
        cta->generic_lo = cta->generic_hi = 0;
    }
    for (int64_t i = cta->due_lo; i < cta->due_hi; i++)
        cta->bars[i].fenced = cta->bars[i].ready;
    cta->due_lo = cta->due_hi = 0;
}

static bool attr_true(const Op *op, const char *key)
{
    const Param *p = op_attr_param(op, key);
    return p && p->i;
}

/* ---- waiting ------------------------------------------------------------- */

bool wait_ready(const Warp *w)
{
    const Wait *x = &w->wait;
    switch (x->kind) {
    case WAIT_none:
        return true;
    case WAIT_mbarrier:
        return (x->bar->phase & 1) != x->parity;
    case WAIT_named:
        return w->cta->named[x->id].generation != x->generation;
    case WAIT_cluster:
        cluster_settle(w->cluster);
        return w->cluster->phase > w->cluster_phase;
    case WAIT_bulk:
    case WAIT_bulk_read:
    case WAIT_cp_async:
        return !groups_pending(w, x->kind, x->n, x->lanes);
    case WAIT_mma:
        return !w->mma_first || w->mma_first->group[0] >= w->mma_open - x->n;
    }
    return true;
}

static Step exec_cp_arrive(Warp *w, const Op *op, uint32_t mask)
{
    FOR_LANES(l, mask)
    {
        int64_t offset = 0, turn = MACHINE_NO_TURN;
        if (!mbar_offset(w, op, op->operands[0].u.access, l, &offset, &turn))
            return STEP_failed;
        Effect *e = effect_new(w->machine, EFFECT_cp_arrive, w, op, 1u << l);
        e->bar_at = offset;
        e->turn = turn;
    }
    return STEP_next;
}

/* A warp has one position in a ring: all lanes advance alike. */
static Step exec_ring(Warp *w, const Op *op, uint32_t mask)
{
    int64_t by = 0, first = 0;
    WarpVal *out = &w->vals[op->results[0]->id];
    if (op->code == OP_async_ring_init) {
        out->position = op_attr_int(op, "position", 0);
        return STEP_next;
    }
    const Affine *e = op->operands[1].u.index;
    uint32_t lanes = kernel_varies(w->machine->k, e) ? mask : mask & -mask;
    FOR_LANES(l, lanes)
    {
        if (!warp_index(w, op, e, l, &by))
            return STEP_failed;
        first = l == (unsigned)__builtin_ctz(lanes) ? by : first;
        if (by == first)
            continue;
        machine_fail(w->machine, w, l, op, "machine",
                     "advances a ring by another amount in each lane");
        return STEP_failed;
    }
    out->position = w->vals[op->operands[0].u.value->id].position + by;
    return STEP_next;
}

Step exec_sync(Warp *w, const Op *op, uint32_t mask)
{
    switch (op->code) {
    case OP_async_ring_init:
    case OP_async_ring_advance:
        return exec_ring(w, op, mask);
    case OP_async_mbarrier_init:
        return exec_mbar_init(w, op, mask);
    case OP_async_mbarrier_wait:
        return exec_mbar_wait(w, op, mask);
    case OP_async_mbarrier_arrive:
        return exec_mbar_arrive(w, op, mask);
    case OP_async_mbarrier_expect_tx:
        return exec_expect_tx(w, op, mask);
    case OP_async_cp_async_mbarrier_arrive:
        return exec_cp_arrive(w, op, mask);
    case OP_async_barrier_cta_sync:
    case OP_async_barrier_cta_arrive:
        return exec_named(w, op);
    case OP_async_barrier_cluster_arrive:
        return exec_cluster_arrive(w, op);
    case OP_async_barrier_cluster_wait:
        return exec_cluster_wait(w, op);
    case OP_async_bulk_commit_group:
        commit(&w->bulk, mask);
        return STEP_next;
    case OP_async_cp_async_commit_group:
        commit(&w->cp, mask);
        return STEP_next;
    case OP_async_bulk_wait_group:
        return wait_groups(w, mask,
                           attr_true(op, "read") ? WAIT_bulk_read : WAIT_bulk,
                           op_attr_int(op, "n", 0));
    case OP_async_cp_async_wait_group:
        return wait_groups(w, mask, WAIT_cp_async, op_attr_int(op, "n", 0));
    case OP_async_cp_async_wait_all:
        return wait_groups(w, mask, WAIT_cp_async, -1);
    case OP_async_fence_mbarrier_init:
    case OP_async_fence_proxy:
        fence(w->cta, op->code == OP_async_fence_proxy);
        return STEP_next;
    case OP_async_griddepcontrol_wait:
    case OP_async_griddepcontrol_launch_dependents:
    case OP_async_mbarrier_alloc:
    case OP_async_prefetch_tensormap:
    case OP_async_setmaxnreg:
    case OP_async_warp_sync:
        return STEP_next;
    default:
        break;
    }
    machine_fail(w->machine, w, mask, op, "machine",
                 "has no meaning inside a kernel");
    return STEP_failed;
}
