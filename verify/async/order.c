/* Clocks and how events move them. Releases join a lane's clock into that of a
 * barrier and begin a new epoch of its warp; acquires join back. */
#include "verify/async/order.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 };

/* ---- clocks -------------------------------------------------------------- */

static Clock clock_new(Order *o, uint32_t cap)
{
    size_t n = cap, kept = o->writes_global ? 3 : 2;
    uint32_t *rows = ARENA_ARRAY(o->arena, uint32_t, kept * n);
    return (Clock){ rows, rows + n, o->writes_global ? rows + 2 * n : NULL };
}

/* Entries from `from` on. */
static void clock_clear(Clock *c, uint32_t from, uint32_t cap)
{
    size_t n = (cap - from) * sizeof *c->known;
    memset(c->known + from, 0, n);
    memset(c->shared + from, 0, n);
    if (c->global)
        memset(c->global + from, 0, n);
}

/* Rows are whole blocks, so that these loops become vector code. Epochs stay
 * below 2^31. */
static inline __attribute__((always_inline)) void
join_blocks(uint32_t *restrict to, const uint32_t *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += BLOCK, to += BLOCK, from += BLOCK)
        for (unsigned k = 0; k < BLOCK; k++)
            to[k] = (int32_t)to[k] > (int32_t)from[k] ? to[k] : from[k];
}

#if defined(__x86_64__)
/* One instruction for the larger of each two. */
__attribute__((target("avx2"))) static void
join_avx2(uint32_t *restrict to, const uint32_t *restrict from, uint32_t n)
{
    join_blocks(to, from, n);
}

static void row_join(uint32_t *to, const uint32_t *from, uint32_t n)
{
    if (__builtin_cpu_supports("avx2"))
        join_avx2(to, from, n);
    else
        join_blocks(to, from, n);
}
#else
#define row_join join_blocks
#endif

static void clock_join(Clock *to, const Clock *from, uint32_t n)
{
    row_join(to->known, from->known, n);
    row_join(to->shared, from->shared, n);
    if (to->global)
        row_join(to->global, from->global, n);
}

static void clock_copy(Clock *to, const Clock *from, uint32_t n)
{
    memcpy(to->known, from->known, n * sizeof *to->known);
    memcpy(to->shared, from->shared, n * sizeof *to->shared);
    if (to->global)
        memcpy(to->global, from->global, n * sizeof *to->global);
}

static void row_meet(uint32_t *restrict to, const uint32_t *restrict from,
                     uint32_t n)
{
    for (uint32_t i = 0; i < n; i += BLOCK, to += BLOCK, from += BLOCK)
        for (unsigned k = 0; k < BLOCK; k++)
            to[k] = (int32_t)to[k] < (int32_t)from[k] ? to[k] : from[k];
}

static void clock_meet(Clock *to, const Clock *from, uint32_t n)
{
    row_meet(to->known, from->known, n);
    row_meet(to->shared, from->shared, n);
    if (to->global)
        row_meet(to->global, from->global, n);
}

/* An engine's completion: no proxy stands between. */
static void clock_raise(Clock *c, uint32_t agent, uint32_t epoch)
{
    uint32_t *rows[3] = { c->known, c->shared, c->global };
    for (int i = 0; i < 3 && rows[i]; i++)
        rows[i][agent] = rows[i][agent] > epoch ? rows[i][agent] : epoch;
}

bool clock_knows(const Clock *c, const Stamp *s)
{
    if (!s->mask)
        return c->known[s->agent] >= s->epoch;
    FOR_MASK(l, s->mask)
    if (c->known[s->agent + l] < s->epoch)
        return false;
    return true;
}

/* ---- places -------------------------------------------------------------- */

OrderCluster *order_cluster(Order *o, const MachineAgent *a)
{
    return &o->clusters[a->cluster];
}

uint32_t order_warp(const Order *o, const MachineAgent *a)
{
    return a->cta * o->n_warps + a->warp;
}

uint32_t order_lane(const Order *o, const MachineAgent *a, unsigned lane)
{
    return order_warp(o, a) * ORDER_LANES + lane;
}

OrderBar *order_bar(Order *o, const MachineAgent *a, unsigned cta,
                    int64_t offset)
{
    OrderCluster *c = order_cluster(o, a);
    OrderBar **at = &c->bars[cta * o->n_bars + (size_t)offset / 8];
    if (!*at) {
        *at = ARENA_NEW(o->arena, OrderBar);
        (*at)->acc = clock_new(o, c->cap);
        (*at)->done[0] = clock_new(o, c->cap);
        (*at)->done[1] = clock_new(o, c->cap);
    }
    return *at;
}

const OrderEffect *order_effect(const Order *o, uint64_t number)
{
    return &o->effects.data[number - 1];
}

static uint32_t new_agent(OrderCluster *c)
{
    if (c->n_agents == c->cap)
        panic("order: more agents than there can be");
    return c->n_agents++;
}

bool order_phase_known(const OrderBar *b, const Clock *c, int64_t p,
                       uint32_t own)
{
    if (p < 0 || (b->agent && (int64_t)c->known[b->agent] >= p + 1))
        return true;
    int64_t age = b->phase - p;
    if (age < 1 || age > 2 || b->open[age])
        return false;
    const ArrivalVec *v = &b->arrivals[age];
    for (size_t i = 0; i < v->len; i++)
        if (v->data[i].lane != own &&
            c->known[v->data[i].lane] < v->data[i].epoch)
            return false;
    return v->len > 0;
}

/* ---- the beginning ------------------------------------------------------- */

/* All lanes of warp w have the rows of its first, which know what each does. */
static void join_lanes(Order *o, OrderCluster *c, uint32_t w)
{
    uint32_t first = w * ORDER_LANES;
    c->lane[first] = c->own[first];
    for (uint32_t at = first + 1; at < first + ORDER_LANES; at++) {
        c->lane[at] = c->own[first];
        if (c->own[at].known)
            VEC_PUSH(o->arena, &o->free_clocks, c->own[at]);
        c->own[at] = (Clock){ 0 };
    }
    c->joined[w] = true;
}

static void make_cluster(Order *o, OrderCluster *c)
{
    size_t warps = (size_t)o->n_ctas * o->n_warps;
    *c = (OrderCluster){ .n_agents = o->n_lanes + 1, .cap = o->cap };
    c->lane = ARENA_ARRAY(o->arena, Clock, o->n_lanes);
    c->own = ARENA_ARRAY(o->arena, Clock, o->n_lanes);
    c->joined = ARENA_ARRAY(o->arena, bool, warps);
    c->fenced_shared = ARENA_ARRAY(o->arena, uint32_t, o->n_lanes);
    c->fenced_global = ARENA_ARRAY(o->arena, uint32_t, o->n_lanes);
    for (uint32_t w = 0; w < warps; w++) {
        c->own[w * ORDER_LANES] = clock_new(o, c->cap);
        join_lanes(o, c, w);
    }
    c->epoch = ARENA_ARRAY(o->arena, uint32_t, warps);
    c->version = ARENA_ARRAY(o->arena, uint32_t, warps);
    c->cached = ARENA_ARRAY(o->arena, uint32_t, warps);
    c->meet_of = ARENA_ARRAY(o->arena, Snapshot *, warps);
    for (size_t i = 0; i < warps; i++)
        c->epoch[i] = c->version[i] = 1;
    c->tensor = ARENA_ARRAY(o->arena, OrderGroups, warps);
    c->bulk = ARENA_ARRAY(o->arena, OrderGroups, o->n_lanes);
    c->cp = ARENA_ARRAY(o->arena, OrderGroups, o->n_lanes);
    c->bars = ARENA_ARRAY(o->arena, OrderBar *, o->n_ctas * o->n_bars);
    c->inited = ARENA_ARRAY(o->arena, OrderBarVec, o->n_ctas);
    c->unfenced = ARENA_ARRAY(o->arena, OrderBarVec, o->n_ctas);
    c->named =
        ARENA_ARRAY(o->arena, OrderMeet, (size_t)o->n_ctas * ORDER_NAMED);
    c->named_acc = ARENA_ARRAY(o->arena, Clock, warps);
    c->cluster_acc[0] = clock_new(o, c->cap);
    c->cluster_acc[1] = clock_new(o, c->cap);
    c->cluster_phase = -1;
    c->waited = ARENA_ARRAY(o->arena, int64_t, warps);
    for (size_t i = 0; i < warps; i++)
        c->waited[i] = -1;
    c->at_exit = ARENA_ARRAY(o->arena, Clock, o->n_ctas);
    c->remote = ARENA_ARRAY(o->arena, SignalVec, o->n_ctas);
    for (unsigned i = 0; i < o->n_ctas; i++)
        c->at_exit[i] = clock_new(o, c->cap);
}

typedef struct Count {
    const Block *params; /* of the kernel: global memory is among them */
    int64_t bars;
    bool copies, scattered, cp_async, writes_global;
} Count;

/* The ops by which ordinary code writes memory. */
static bool may_write(const Op *op)
{
    return op->code == OP_mem_store || op->code == OP_mem_reduce ||
           op->code == OP_async_instr || op->code == OP_async_tile_store;
}

static bool count_op(Op *op, void *user)
{
    Count *n = user;
    if (op->code == OP_async_mbarrier_alloc) {
        int64_t all = 1, extent;
        const Value *v = op->results[0];
        for (unsigned d = 0; d < v->type->rank; d++)
            all *= affine_is_const(v->shape[d], &extent) ? extent : 0;
        n->bars += all;
    }
    if (op->code == OP_async_bulk_tensor_store ||
        op->code == OP_async_bulk_tensor_reduce) {
        n->copies = true;
        n->scattered |= !op_enclosing(op, OP_async_elect);
    }
    n->cp_async |= op->code == OP_async_instr;
    for (unsigned i = 0; may_write(op) && i < op->n_operands; i++)
        n->writes_global |=
            op->operands[i].kind == OPND_access &&
            value_root(op->operands[i].u.access->base)->owner == n->params;
    return true;
}

/* Room for every agent that a cluster can have: lanes, the tensor core of each
 * warp, mbarriers, named barriers, and the engines of lanes, which are one lane
 * a warp where all copies are issued by an elected one. */
static uint32_t agent_room(const Order *o, const Count *n)
{
    uint32_t warps = o->n_lanes / ORDER_LANES;
    return o->n_lanes + 2 + warps +
           (ORDER_NAMED + (uint32_t)n->bars) * o->n_ctas +
           (n->copies ? 2 * (n->scattered ? o->n_lanes : warps) : 0) +
           (n->cp_async ? o->n_lanes : 0);
}

static void launch(Order *o, const MachineEvent *e)
{
    Arena *arena = o->arena;
    *o = (Order){ .arena = arena, .kernel = e->op };
    o->n_clusters = (unsigned)e->length;
    o->n_ctas = (unsigned)op_attr_int(e->op, "clusterDim", 1);
    o->n_warps = (unsigned)op_attr_int(e->op, "blockDim", 32) / ORDER_LANES;
    o->n_lanes = o->n_ctas * o->n_warps * ORDER_LANES;
    o->n_bars = (size_t)op_attr_int(e->op, "smem_bytes", 0) / 8 + 1;
    Count n = { .params = e->op->blocks[0] };
    op_walk((Op *)e->op, count_op, &n);
    o->writes_global = n.writes_global;
    o->cap = (agent_room(o, &n) + BLOCK - 1) / BLOCK * BLOCK;
    o->clusters = ARENA_ARRAY(arena, OrderCluster, o->n_clusters);
    for (unsigned i = 0; i < o->n_clusters; i++)
        make_cluster(o, &o->clusters[i]);
}

/* ---- warps --------------------------------------------------------------- */

static void raise_to(uint32_t *at, uint32_t epoch)
{
    *at = *at > epoch ? *at : epoch;
}

/* Puts into c what a lane knows of itself. */
static void add_own(const OrderCluster *k, Clock *c, uint32_t at)
{
    raise_to(&c->known[at], k->epoch[at / ORDER_LANES]);
    raise_to(&c->shared[at], k->fenced_shared[at]);
    if (c->global)
        raise_to(&c->global[at], k->fenced_global[at]);
}

/* Rows that nobody has, as far as there are agents for the caller to fill. */
static Clock clock_again(Order *o, const OrderCluster *c)
{
    if (!o->free_clocks.len)
        return clock_new(o, c->cap);
    Clock out = o->free_clocks.data[--o->free_clocks.len];
    clock_clear(&out, c->n_agents, c->cap);
    return out;
}

/* From now on each lane of the warp has rows of its own. */
static void part_lanes(Order *o, const MachineAgent *a)
{
    OrderCluster *c = order_cluster(o, a);
    uint32_t w = order_warp(o, a), first = w * ORDER_LANES;
    if (!c->joined[w])
        return;
    c->joined[w] = false;
    for (uint32_t at = first + 1; at < first + ORDER_LANES; at++) {
        c->lane[at] = c->own[at] = clock_again(o, c);
        clock_copy(&c->lane[at], &c->lane[first], c->n_agents);
    }
    for (uint32_t at = first; at < first + ORDER_LANES; at++)
        add_own(c, &c->lane[at], at);
}

/* The work so far of a lane is in its own clock. */
static Clock *settled(Order *o, const MachineAgent *a, unsigned lane)
{
    OrderCluster *c = order_cluster(o, a);
    uint32_t at = order_lane(o, a, lane);
    part_lanes(o, a);
    c->lane[at].known[at] = c->epoch[order_warp(o, a)];
    return &c->lane[at];
}

static void tick(Order *o, const MachineAgent *a)
{
    order_cluster(o, a)->epoch[order_warp(o, a)]++;
}

static bool is_joined(Order *o, const MachineAgent *a)
{
    return order_cluster(o, a)->joined[order_warp(o, a)];
}

static void release(Order *o, const MachineAgent *a, uint32_t lanes, Clock *to)
{
    OrderCluster *c = order_cluster(o, a);
    if (!is_joined(o, a)) {
        FOR_MASK(l, lanes) clock_join(to, settled(o, a, l), c->n_agents);
        return;
    }
    clock_join(to, &c->lane[order_lane(o, a, 0)], c->n_agents);
    FOR_MASK(l, lanes) add_own(c, to, order_lane(o, a, l));
}

static void acquire(Order *o, const MachineAgent *a, uint32_t lanes,
                    const Clock *from)
{
    OrderCluster *c = order_cluster(o, a);
    c->version[order_warp(o, a)]++;
    if (lanes == UINT32_MAX && is_joined(o, a)) {
        clock_join(&c->lane[order_lane(o, a, 0)], from, c->n_agents);
        return;
    }
    part_lanes(o, a);
    FOR_MASK(l, lanes)
    clock_join(&c->lane[order_lane(o, a, l)], from, c->n_agents);
}

static void warp_sync(Order *o, const MachineAgent *a)
{
    OrderCluster *c = order_cluster(o, a);
    uint32_t w = order_warp(o, a);
    c->version[w]++;
    if (a->lanes == UINT32_MAX && is_joined(o, a)) {
        FOR_MASK(l, a->lanes)
        add_own(c, &c->lane[order_lane(o, a, 0)], order_lane(o, a, l));
        return;
    }
    unsigned lowest = (unsigned)__builtin_ctz(a->lanes | 1u << 31);
    uint32_t others = a->lanes & ~(1u << lowest);
    Clock *first = settled(o, a, lowest);
    release(o, a, others, first);
    if (a->lanes == UINT32_MAX) {
        join_lanes(o, c, w);
        return;
    }
    FOR_MASK(l, others)
    clock_copy(&c->lane[order_lane(o, a, l)], first, c->n_agents);
}

/* What every lane of the mask knows. */
static void meet_lanes(Order *o, const MachineAgent *a, Clock *out)
{
    OrderCluster *c = order_cluster(o, a);
    bool first = true;
    if (is_joined(o, a)) {
        clock_copy(out, &c->lane[order_lane(o, a, 0)], c->n_agents);
        if (!(a->lanes & (a->lanes - 1))) /* one knows of itself, too */
            FOR_MASK(l, a->lanes) add_own(c, out, order_lane(o, a, l));
        return;
    }
    FOR_MASK(l, a->lanes)
    {
        Clock *from = settled(o, a, l);
        if (first)
            clock_copy(out, from, c->n_agents);
        else
            clock_meet(out, from, c->n_agents);
        first = false;
    }
}

static void snapshot_drop(Order *o, Snapshot *s)
{
    if (!s || --s->users)
        return;
    s->next = o->free_snapshots;
    o->free_snapshots = s;
}

/* Rows of a snapshot that was used before are cleared where meet_lanes does not
 * write them. */
static Snapshot *snapshot_new(Order *o, const OrderCluster *c)
{
    Snapshot *s = o->free_snapshots;
    if (!s) {
        s = ARENA_NEW(o->arena, Snapshot);
        s->clock = clock_new(o, c->cap);
    } else {
        o->free_snapshots = s->next;
        clock_clear(&s->clock, c->n_agents, c->cap);
    }
    s->users = 1;
    return s;
}

/* For one more user. */
static Snapshot *snapshot(Order *o, const MachineAgent *a)
{
    OrderCluster *c = order_cluster(o, a);
    uint32_t w = order_warp(o, a);
    bool all = a->lanes == UINT32_MAX;
    if (!all || c->cached[w] != c->version[w]) {
        Snapshot *s = snapshot_new(o, c);
        meet_lanes(o, a, &s->clock);
        if (!all)
            return s;
        snapshot_drop(o, c->meet_of[w]);
        c->cached[w] = c->version[w];
        c->meet_of[w] = s;
    }
    c->meet_of[w]->users++;
    return c->meet_of[w];
}

/* ---- effects and groups -------------------------------------------------- */

static uint32_t next_seq(OrderCluster *c, OrderGroups *g, bool reads)
{
    if (!g->agent) {
        g->agent = new_agent(c);
        g->read = reads ? new_agent(c) : 0; /* agent + 1 */
    }
    return ++g->seq;
}

static void issue(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderEffect x = { .op = e->op, .agent = e->agent };
    uint32_t w = order_warp(o, &e->agent);
    x.own_epoch = c->epoch[w];
    x.before = snapshot(o, &e->agent);
    unsigned lane = (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31);
    uint32_t at = order_lane(o, &e->agent, lane);
    if (e->op->code == OP_async_wgmma_mma_async) {
        x.seq = next_seq(c, &c->tensor[w], false);
    } else if (e->op->code == OP_async_bulk_tensor_store ||
               e->op->code == OP_async_bulk_tensor_reduce) {
        x.seq = next_seq(c, &c->bulk[at], true);
    } else if (e->op->code == OP_async_cp_async_mbarrier_arrive) {
        x.seq = c->cp[at].seq;
    } else if (e->op->code == OP_async_instr) {
        x.seqs = ARENA_ARRAY(o->arena, uint32_t, ORDER_LANES);
        x.waited = ARENA_ARRAY(o->arena, uint32_t, ORDER_LANES);
        FOR_MASK(l, e->agent.lanes)
        {
            uint32_t i = order_lane(o, &e->agent, l);
            x.seqs[l] = next_seq(c, &c->cp[i], false);
            x.waited[l] = c->lane[i].known[c->cp[i].agent];
        }
    }
    while (o->effects.len < e->effect)
        VEC_PUSH(o->arena, &o->effects, (OrderEffect){ 0 });
    o->effects.data[e->effect - 1] = x;
    tick(o, &e->agent);
}

/* Nobody asks any more what the issuers knew. */
static void finish(Order *o, const MachineEvent *e)
{
    OrderEffect *x = &o->effects.data[e->effect - 1];
    snapshot_drop(o, x->before);
    x->before = NULL;
}

/* All but the last n groups are complete, for one lane's clock. */
static void wait_groups(const OrderGroups *g, int64_t n, bool read, Clock *c)
{
    int64_t left = (int64_t)g->ends.len - n;
    if (!g->agent || left <= 0)
        return;
    uint32_t seq = g->ends.data[left - 1];
    if (g->read)
        clock_raise(c, g->read, seq);
    if (!read)
        clock_raise(c, g->agent, seq);
}

static void lanes_commit(Order *o, const MachineEvent *e, OrderGroups *of)
{
    FOR_MASK(l, e->agent.lanes)
    {
        OrderGroups *g = &of[order_lane(o, &e->agent, l)];
        VEC_PUSH(o->arena, &g->ends, g->seq);
    }
}

static void lanes_wait(Order *o, const MachineEvent *e, OrderGroups *of,
                       bool read)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    int64_t n = op_attr_int(e->op, "n", 0);
    FOR_MASK(l, e->agent.lanes)
    {
        uint32_t at = order_lane(o, &e->agent, l);
        if (of[at].agent && (int64_t)of[at].ends.len > n) {
            part_lanes(o, &e->agent);
            wait_groups(&of[at], n, read, &c->lane[at]);
        }
    }
    c->version[order_warp(o, &e->agent)]++;
}

static void tensor_step(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    uint32_t w = order_warp(o, &e->agent);
    OrderGroups *g = &c->tensor[w];
    if (e->op->code == OP_async_wgmma_commit_group) {
        VEC_PUSH(o->arena, &g->ends, g->seq);
        return;
    }
    uint32_t lanes = e->agent.lanes;
    if (lanes == UINT32_MAX && c->joined[w])
        lanes = 1; /* for all */
    else
        part_lanes(o, &e->agent);
    FOR_MASK(l, lanes)
    wait_groups(g, op_attr_int(e->op, "n", 0), false,
                &c->lane[order_lane(o, &e->agent, l)]);
    c->version[w]++;
}

static void cp_wait_all(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    FOR_MASK(l, e->agent.lanes)
    {
        uint32_t at = order_lane(o, &e->agent, l);
        if (c->cp[at].agent) {
            part_lanes(o, &e->agent);
            clock_raise(&c->lane[at], c->cp[at].agent, c->cp[at].seq);
        }
    }
    c->version[order_warp(o, &e->agent)]++;
}

/* ---- fences -------------------------------------------------------------- */

/* A thread's own stores, and those of its cp.async that it waited for, are seen
 * by the async proxy of whoever is ordered behind. */
static void fence_proxy(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    bool shared_only = op_attr(e->op, "space") != NULL;
    uint32_t epoch = c->epoch[order_warp(o, &e->agent)];
    FOR_MASK(l, e->agent.lanes)
    {
        uint32_t at = order_lane(o, &e->agent, l), cp = c->cp[at].agent;
        c->fenced_shared[at] = epoch;
        if (!shared_only)
            c->fenced_global[at] = epoch;
        if (is_joined(o, &e->agent) && !cp)
            continue;
        Clock *k = settled(o, &e->agent, l);
        add_own(c, k, at);
        if (cp)
            k->shared[cp] = k->known[cp];
        if (cp && !shared_only && k->global)
            k->global[cp] = k->known[cp];
    }
    c->version[order_warp(o, &e->agent)]++;
}

static bool is_initialiser(const Order *o, const MachineEvent *e,
                           const OrderBar *b)
{
    FOR_MASK(l, e->agent.lanes)
    if (b->init_lane == order_lane(o, &e->agent, l))
        return true;
    return false;
}

/* Either fence shows the copy engine the objects that its thread initialised
 * before; who arrives relaxed shows others those before fence.mbarrier_init. */
static void fence_init(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderBarVec *v = &c->unfenced[e->agent.cta];
    bool is_full = e->op->code == OP_async_fence_mbarrier_init;
    size_t left = 0;
    for (size_t i = 0; i < v->len; i++) {
        OrderBar *b = v->data[i];
        bool is_own = is_initialiser(o, e, b);
        if (is_own && !b->fence_epoch)
            b->fence_epoch = c->epoch[order_warp(o, &e->agent)];
        if (is_own && is_full)
            b->init_fenced = true;
        else
            v->data[left++] = b;
    }
    v->len = left;
}

/* Those that arrive relaxed at the cluster's barrier show these objects. */
static void show_inits(Order *o, const MachineEvent *e)
{
    const OrderBarVec *v = &order_cluster(o, &e->agent)->inited[e->agent.cta];
    for (size_t i = 0; i < v->len; i++) {
        OrderBar *b = v->data[i];
        if (b->init_fenced && b->shown_phase < 0 && is_initialiser(o, e, b))
            b->shown_phase = e->phase;
    }
}

bool order_shown(const Order *o, const MachineEvent *e, const OrderBar *b)
{
    const OrderCluster *c = order_cluster((Order *)o, &e->agent);
    return b->shown_phase >= 0 &&
           c->waited[order_warp(o, &e->agent)] >= b->shown_phase;
}

/* ---- barriers of threads ------------------------------------------------- */

static void named_meet(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderMeet *m = &c->named[e->agent.cta * ORDER_NAMED + (size_t)e->offset];
    Clock *acc = &m->acc[e->phase & 1];
    if (!m->used) {
        m->acc[0] = clock_new(o, c->cap);
        m->acc[1] = clock_new(o, c->cap);
        m->agent = new_agent(c);
    }
    if (!m->used || m->generation != e->phase) {
        m->generation = e->phase;
        m->arrived = 0;
        if (m->waiting[e->phase & 1]) /* two uses ago: they keep theirs */
            *acc = clock_new(o, c->cap);
        m->waiting[e->phase & 1] = 0;
        clock_clear(acc, 0, c->cap);
        acc->known[m->agent] = (uint32_t)e->phase + 1;
    }
    m->used = true;
    m->threads = e->length;
    m->arrived += ORDER_LANES;
    if (e->op->code == OP_async_barrier_cta_sync) {
        m->waiting[e->phase & 1]++;
        c->named_acc[order_warp(o, &e->agent)] = *acc;
    }
    release(o, &e->agent, e->agent.lanes, acc);
}

static void named_pass(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderMeet *m = &c->named[e->agent.cta * ORDER_NAMED + (size_t)e->offset];
    if (m->generation - e->phase < 2)
        m->waiting[e->phase & 1]--;
    uint32_t w = order_warp(o, &e->agent);
    if (e->agent.lanes == UINT32_MAX) { /* it holds all that they knew */
        join_lanes(o, c, w);
        clock_copy(&c->lane[w * ORDER_LANES], &c->named_acc[w], c->n_agents);
        c->version[w]++;
        return;
    }
    acquire(o, &e->agent, e->agent.lanes, &c->named_acc[w]);
}

static void cluster_arrive(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    Clock *acc = &c->cluster_acc[e->phase & 1];
    if (e->phase > c->cluster_phase) {
        c->cluster_phase = e->phase;
        clock_clear(acc, 0, c->cap);
    }
    if (op_attr_int(e->op, "relaxed", 0))
        show_inits(o, e);
    else
        release(o, &e->agent, e->agent.lanes, acc);
}

/* Arrivals at this CTA's mbarriers from before a release are over for it. */
static void cluster_wait(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    const Clock *acc = &c->cluster_acc[e->phase & 1];
    SignalVec *v = &c->remote[e->agent.cta];
    size_t left = 0;
    for (size_t i = 0; i < v->len; i++) {
        Signal s = v->data[i];
        if (!s.by.epoch || acc->known[s.by.lane] < s.by.epoch)
            v->data[left++] = s;
    }
    v->len = left;
    acquire(o, &e->agent, e->agent.lanes, acc);
    c->waited[order_warp(o, &e->agent)] = e->phase;
}

static void step(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    switch (e->op->code) {
    case OP_async_warp_sync:
        warp_sync(o, &e->agent);
        break;
    case OP_async_fence_proxy:
        fence_proxy(o, e);
        fence_init(o, e);
        break;
    case OP_async_fence_mbarrier_init:
        fence_init(o, e);
        break;
    case OP_async_barrier_cta_sync:
        named_pass(o, e);
        return;
    case OP_async_barrier_cluster_arrive:
        cluster_arrive(o, e);
        break;
    case OP_async_barrier_cluster_wait:
        cluster_wait(o, e);
        return;
    case OP_async_bulk_commit_group:
        lanes_commit(o, e, c->bulk);
        return;
    case OP_async_bulk_wait_group: {
        const Param *read = op_attr_param(e->op, "read");
        lanes_wait(o, e, c->bulk, read && read->i);
        return;
    }
    case OP_async_cp_async_commit_group:
        lanes_commit(o, e, c->cp);
        return;
    case OP_async_cp_async_wait_group:
        lanes_wait(o, e, c->cp, false);
        return;
    case OP_async_cp_async_wait_all:
        cp_wait_all(o, e);
        return;
    case OP_async_wgmma_commit_group:
    case OP_async_wgmma_wait_group:
        tensor_step(o, e);
        return;
    default:
        return;
    }
    tick(o, &e->agent);
}

/* ---- mbarriers ----------------------------------------------------------- */

static void bar_init(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    unsigned lane = (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31);
    if (!b->agent) {
        b->agent = new_agent(c);
        VEC_PUSH(o->arena, &c->inited[e->cta], b);
    }
    b->count = e->length;
    b->init_lane = order_lane(o, &e->agent, lane);
    b->init_epoch = c->epoch[order_warp(o, &e->agent)];
    b->fence_epoch = 0;
    VEC_PUSH(o->arena, &c->unfenced[e->cta], b);
    b->init_fenced = false;
    b->shown_phase = -1;
}

/* cp.async.mbarrier.arrive tells of the thread's cp.async and of what it had
 * waited for. It releases nothing that the thread did itself. */
static void cp_arrive(const Order *o, OrderCluster *c, OrderBar *b, uint32_t at,
                      const OrderEffect *x)
{
    Clock *acc = &b->acc;
    uint32_t known = acc->known[at], shared = acc->shared[at];
    uint32_t global = acc->global ? acc->global[at] : 0;
    clock_join(acc, &x->before->clock, c->n_agents);
    acc->known[at] = known;
    acc->shared[at] = shared;
    if (acc->global)
        acc->global[at] = global;
    if (c->cp[at].agent) {
        uint32_t *cp = &acc->known[c->cp[at].agent];
        *cp = *cp > x->seq ? *cp : x->seq;
    }
    b->open[0] = true;
    VEC_PUSH(o->arena, &b->arrivals[0], ((Arrival){ at, x->own_epoch }));
}

/* CTA `cta` may not end before that phase of b, if it is between CTAs. */
static void note_remote(Order *o, const MachineEvent *e, unsigned cta,
                        const OrderBar *b, Arrival by)
{
    Signal s = { by, { b->agent, (uint32_t)e->phase + 1 } };
    if (e->cta != e->agent.cta)
        VEC_PUSH(o->arena, &order_cluster(o, &e->agent)->remote[cta], s);
}

static void bar_arrive(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    unsigned lane = (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31);
    uint32_t at = order_lane(o, &e->agent, lane);
    if (e->effect) {
        cp_arrive(o, c, b, at, order_effect(o, e->effect));
        return;
    }
    release(o, &e->agent, e->agent.lanes, &b->acc);
    Arrival a = { at, c->epoch[order_warp(o, &e->agent)] };
    VEC_PUSH(o->arena, &b->arrivals[0], a);
    note_remote(o, e, e->cta, b, a);
    tick(o, &e->agent);
}

static void bar_expect(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    unsigned lane = (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31);
    Arrival a = { order_lane(o, &e->agent, lane),
                  c->epoch[order_warp(o, &e->agent)] };
    VEC_PUSH(o->arena, &b->expects, a);
    b->expected += e->length;
    b->open[0] = true;
    tick(o, &e->agent);
}

static void bar_deliver(Order *o, const MachineEvent *e)
{
    OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    b->delivered += e->length;
    b->open[0] = true;
    note_remote(o, e, e->cta, b, (Arrival){ 0 });
    if (e->op->code == OP_async_bulk_copy) /* it reads the sender's memory */
        note_remote(o, e, e->agent.cta, b, (Arrival){ 0 });
}

static void bar_phase(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    clock_raise(&b->acc, b->agent, (uint32_t)e->phase + 1);
    clock_copy(&b->done[e->phase & 1], &b->acc, c->n_agents);
    ArrivalVec oldest = b->arrivals[2];
    b->arrivals[2] = b->arrivals[1];
    b->arrivals[1] = b->arrivals[0];
    b->arrivals[0] = oldest;
    b->arrivals[0].len = 0;
    b->open[2] = b->open[1];
    b->open[1] = b->open[0];
    b->open[0] = false;
    b->waiters.len = 0;
    b->expects.len = 0;
    b->expected = b->delivered = 0;
    b->phase = e->phase + 1;
}

static void bar_pass(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    if (e->phase >= 0)
        acquire(o, &e->agent, e->agent.lanes, &b->done[e->phase & 1]);
    FOR_MASK(l, e->agent.lanes)
    {
        Arrival a = { order_lane(o, &e->agent, l),
                      c->epoch[order_warp(o, &e->agent)] };
        VEC_PUSH(o->arena, &b->waiters, a);
    }
    tick(o, &e->agent);
}

static void warp_exit(Order *o, const MachineEvent *e)
{
    release(o, &e->agent, e->agent.lanes,
            &order_cluster(o, &e->agent)->at_exit[e->agent.cta]);
}

void order_event(Order *o, const MachineEvent *e)
{
    switch (e->kind) {
    case MEV_launch:
        launch(o, e);
        return;
    case MEV_issue:
        issue(o, e);
        return;
    case MEV_finish:
        finish(o, e);
        return;
    case MEV_init:
        bar_init(o, e);
        return;
    case MEV_arrive:
        bar_arrive(o, e);
        return;
    case MEV_expect:
        bar_expect(o, e);
        return;
    case MEV_deliver:
        bar_deliver(o, e);
        return;
    case MEV_phase:
        bar_phase(o, e);
        return;
    case MEV_pass:
        bar_pass(o, e);
        return;
    case MEV_meet:
        named_meet(o, e);
        tick(o, &e->agent);
        return;
    case MEV_step:
        step(o, e);
        return;
    case MEV_exit:
        warp_exit(o, e);
        return;
    default:
        return;
    }
}

/* ---- accesses ------------------------------------------------------------ */

Stamp order_stamp(Order *o, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(o, &e->agent);
    Stamp s = { .async_proxy = e->async_proxy,
                .op = e->op,
                .object = e->object };
    uint32_t w = order_warp(o, &e->agent);
    unsigned lane = (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31);
    if (e->agent.kind == AGENT_warp) {
        s.agent = w * ORDER_LANES;
        s.mask = e->agent.lanes;
        s.epoch = c->epoch[w];
        return s;
    }
    const OrderEffect *x = order_effect(o, e->effect);
    uint32_t at = order_lane(o, &e->agent, lane);
    s.epoch = x->seq;
    if (e->agent.kind == AGENT_tensor) {
        s.agent = c->tensor[w].agent;
    } else if (e->agent.kind == AGENT_cp_async) {
        s.agent = c->cp[at].agent;
        s.epoch = x->seqs ? x->seqs[lane] : x->seq;
    } else if (e->op->code == OP_async_bulk_copy) {
        OrderBar *b = order_bar(o, &e->agent, e->bar_cta, e->bar);
        s.agent = b->agent;
        s.epoch = (uint32_t)b->phase + 1;
    } else if (e->op->code == OP_async_bulk_tensor_load) {
        unsigned cta = e->tensor ? e->agent.cta : e->cta;
        OrderBar *b = order_bar(o, &e->agent, cta, e->bar);
        s.agent = b->agent;
        s.epoch = (uint32_t)b->phase + 1;
    } else {
        s.adds = e->tensor != NULL;
        s.agent = e->kind == MEV_read && !e->tensor ? c->bulk[at].read
                                                    : c->bulk[at].agent;
    }
    return s;
}
