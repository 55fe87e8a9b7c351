/* Races: every two accesses to one byte, one of them a write, are ordered.
 *
 * Shared memory is watched in chunks of 32 bytes, each split into parts as
 * small as its accesses were, down to a byte; global memory by element, where
 * the kernel writes the tensor at all. A part has a state (shadow.h). An access
 * looks at what its agent knew when it was issued: a write by a thread is seen
 * by the async proxy only through a proxy fence of that thread, everything else
 * by plain order. What one access makes of one state is found once. */
#include "verify/async/run.h"

#include "ir/values.h"
#include "verify/async/shadow.h"

#include <string.h>

enum { CHUNK = 32, STEPS = 8 };

/* A chunk that is, or was, several parts of `size` bytes. */
typedef struct Split {
    unsigned size; /* CHUNK: it is one part again */
    unsigned room; /* for so many parts */
    State **parts;
} Split;

typedef struct Chunk {
    State *whole; /* when it is one part */
    Split *split; /* or NULL */
} Chunk;

typedef struct TensorShadow {
    const Tensor *tensor;
    State **parts; /* by element */
    struct TensorShadow *next;
} TensorShadow;

/* Who looks, with what it knew. */
typedef struct Viewer {
    const Clock *one;     /* of an effect; else NULL: lanes of a warp */
    uint32_t first, mask; /* lanes */
    uint32_t own_epoch;   /* of an effect: what its lane did before it */
    bool own;             /* .. its one lane's work counts */
    uint32_t cp, waited;  /* the lane's cp.async that it knows to be over */
} Viewer;

/* An access, which may come as several events with nothing in between, and what
 * it made of the states that it met. */
typedef struct Touch {
    MachineEvent event; /* op NULL: none */
    bool write;
    Viewer viewer;
    Stamp stamp;
    unsigned n;
    State *from[STEPS], *to[STEPS];
    State *written; /* what a write leaves */
} Touch;

struct Shadow {
    size_t n_chunks; /* of a CTA */
    Chunk *chunks;   /* by cluster, CTA, chunk */
    TensorShadow *tensors;
    StatePool pool;
    Touch touch;
};

/* ---- what is known ------------------------------------------------------- */

/* NULL: the clock has none, as nobody does such work. */
static uint32_t *row_of(const Clock *c, const Stamp *s, bool by_async,
                        bool global)
{
    bool crosses = by_async && !s->async_proxy;
    return !crosses ? c->known : global ? c->global : c->shared;
}

static bool row_knows(const uint32_t *row, const Stamp *s, uint32_t except,
                      uint32_t own_epoch)
{
    if (!row)
        return false;
    if (!s->mask)
        return row[s->agent] >= s->epoch;
    for (uint32_t m = s->mask; m; m &= m - 1) {
        uint32_t at = s->agent + (uint32_t)__builtin_ctz(m);
        if (row[at] < s->epoch && !(at == except && s->epoch <= own_epoch))
            return false;
    }
    return true;
}

static bool sees(AsyncRun *r, const MachineEvent *e, const Viewer *v,
                 const Stamp *s, bool proxy)
{
    bool global = e->tensor != NULL;
    bool by_async = proxy && e->async_proxy;
    if (v->one)
        return (v->cp && s->agent == v->cp && s->epoch <= v->waited) ||
               row_knows(row_of(v->one, s, by_async, global), s,
                         v->own ? v->first : UINT32_MAX,
                         by_async && !s->async_proxy ? 0 : v->own_epoch);
    const OrderCluster *c = order_cluster(&r->order, &e->agent);
    const Clock *lanes = c->lane;
    if (c->joined[v->first / ORDER_LANES] &&
        row_knows(lanes[v->first].known, s, UINT32_MAX, 0))
        return true;
    for (uint32_t m = v->mask; m; m &= m - 1) {
        uint32_t at = v->first + (uint32_t)__builtin_ctz(m);
        if (!row_knows(lanes[at].known, s, at, UINT32_MAX))
            return false;
    }
    return true;
}

static Viewer viewer(AsyncRun *r, const MachineEvent *e)
{
    Order *o = &r->order;
    Viewer v = { .first = order_lane(o, &e->agent, 0), .mask = e->agent.lanes };
    if (e->agent.kind == AGENT_warp)
        return v;
    const OrderEffect *x = order_effect(o, e->effect);
    v.one = &x->before->clock;
    v.own = (e->agent.lanes & (e->agent.lanes - 1)) == 0;
    v.first += v.own ? (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31) : 0;
    v.own_epoch = x->own_epoch;
    if (v.own && x->waited) {
        v.cp = order_cluster(o, &e->agent)->cp[v.first].agent;
        v.waited = x->waited[v.first % ORDER_LANES];
    }
    return v;
}

/* ---- faults -------------------------------------------------------------- */

static void describe(StrBuf *out, const AsyncRun *r, const Stamp *s)
{
    const OpInfo *i = op_info(s->op->code);
    const Order *o = &r->order;
    strbuf_addf(out, "'%s.%s'", i->dialect, i->text ? i->text : i->name);
    if (s->mask)
        strbuf_addf(out, " by warp %u of cta %u",
                    s->agent / ORDER_LANES % o->n_warps,
                    s->agent / ORDER_LANES / o->n_warps);
}

/* What e touches, and as what s did where that is something else. */
static void describe_place(StrBuf *out, const MachineEvent *e, const Stamp *s)
{
    if (e->tensor) {
        tensor_print_element(out, e->tensor, e->offset);
        return;
    }
    strbuf_addf(out, "shared byte %lld of cta %u", (long long)e->offset,
                e->cta);
    if (s->object == e->object || !s->object || !e->object)
        return;
    strbuf_add(out, " as '");
    value_print_name(out, e->object);
    strbuf_add(out, "' (as '");
    value_print_name(out, s->object);
    strbuf_add(out, "' before)");
}

/* Did the lanes of s wait for the copy behind e to have read its source? */
static bool read_alone_awaited(AsyncRun *r, const MachineEvent *e,
                               const Stamp *s)
{
    OrderCluster *c = order_cluster(&r->order, &e->agent);
    Stamp mine = order_stamp(&r->order, e);
    if (!mine.adds || !s->mask)
        return false;
    const Clock *lane = &c->lane[s->agent + (unsigned)__builtin_ctz(s->mask)];
    return lane->known[mine.agent + 1] >= mine.epoch;
}

/* Nothing orders two clusters: neither fences nor barriers reach across. */
static void fault_clusters(AsyncRun *r, const MachineEvent *e, const Stamp *s,
                           unsigned cluster, bool write, bool other_write)
{
    StrBuf who = { 0 }, what = { 0 };
    describe(&who, r, s);
    describe_place(&what, e, s);
    race_fault(r, e, s,
               !other_write ? "D-WAR"
               : write      ? "D-WAW"
                            : "D-RAW",
               "cluster %u %s %s, which cluster %u %s (%s); nothing orders two "
               "clusters, each with tasks of its own",
               e->agent.cluster, write ? "writes" : "reads", strbuf_text(&what),
               cluster, other_write ? "writes" : "reads", strbuf_text(&who));
    strbuf_free(&who);
    strbuf_free(&what);
}

static void fault(AsyncRun *r, const MachineEvent *e, const Viewer *v,
                  const Stamp *s, bool write, bool other_write)
{
    StrBuf who = { 0 }, what = { 0 };
    const char *code = !other_write ? "D-WAR" : write ? "D-WAW" : "D-RAW";
    const char *missing = "no wait or barrier orders them";
    /* in program order the other access is the second one */
    bool later = v->one && s->mask &&
                 s->agent / ORDER_LANES == v->first / ORDER_LANES &&
                 s->epoch > v->own_epoch;
    if (later && write && !other_write) {
        code = read_alone_awaited(r, e, s) ? "D-TEMPORAL" : "D-RAW";
        missing = "the read came after the effect was started, and before "
                  "anybody waited for it to have written";
    } else if (later && !write) {
        code = "D-WAR";
        missing = "the write came after the effect was started, and before "
                  "anybody waited for it to have read";
    } else if (sees(r, e, v, s, false)) {
        code = "D-PROXY";
        missing = "they are ordered, but the writing thread executed no "
                  "fence.proxy in between";
    } else if (s->op->code == OP_async_bulk_tensor_store ||
               s->op->code == OP_async_bulk_tensor_reduce) {
        Stamp read = *s;
        read.agent = s->agent + 1;
        if (other_write && sees(r, e, v, &read, false)) {
            code = "D-TEMPORAL";
            missing = "bulk.wait_group with read waits for the source to be "
                      "read, not for the write";
        }
    }
    if (s->object != e->object)
        code = "M-LIVE";
    describe(&who, r, s);
    describe_place(&what, e, s);
    race_fault(r, e, s, code, "%s %s, which %s %s; %s",
               write ? "writes" : "reads", strbuf_text(&what),
               strbuf_text(&who), other_write ? "writes" : "reads", missing);
    strbuf_free(&who);
    strbuf_free(&what);
}

/* ---- parts --------------------------------------------------------------- */

/* Additions by the copy engine commute, and atomic ones: they are kept beside
 * the reads. */
static bool is_add(const Stamp *s)
{
    return (s->op->code == OP_async_bulk_tensor_reduce && s->adds) ||
           op_is_atomic(s->op);
}

/* A read of what was written as another object, whose memory it shares. */
static void fault_dead(AsyncRun *r, const MachineEvent *e, const Stamp *s)
{
    StrBuf what = { 0 };
    describe_place(&what, e, s);
    race_fault(r, e, s, "M-LIVE",
               "reads %s, but what lived there was overwritten",
               strbuf_text(&what));
    strbuf_free(&what);
}

static void check(AsyncRun *r, const MachineEvent *e, const Touch *t,
                  const State *p)
{
    const Viewer *v = &t->viewer;
    unsigned own = e->agent.cluster;
    bool write = t->write, adds = write && is_add(&t->stamp);
    if (p->write.op && p->cluster != own)
        fault_clusters(r, e, &p->write, p->cluster, write, true);
    else if (p->write.op && !sees(r, e, v, &p->write, true))
        fault(r, e, v, &p->write, write, true);
    if (!write && p->write.op && p->write.object != e->object)
        fault_dead(r, e, &p->write);
    for (const Read *x = p->reads; x; x = x->next) {
        bool added = is_add(&x->stamp);
        if (!(write || added) || (adds && added))
            continue;
        if (x->cluster != own)
            fault_clusters(r, e, &x->stamp, x->cluster, write, added);
        else if (!sees(r, e, v, &x->stamp, added))
            fault(r, e, v, &x->stamp, write, added);
    }
}

/* What the access makes of a state that it has not met; takes the reference to
 * `from`. */
static State *next_state(AsyncRun *r, Touch *t, State *from)
{
    StatePool *pool = &r->shadow->pool;
    unsigned cluster = t->event.agent.cluster;
    if (t->write && !is_add(&t->stamp)) {
        if (!t->written) {
            t->written = state_copy(pool, NULL);
            state_set_write(pool, t->written, &t->stamp, cluster);
        }
        state_drop(pool, from);
        return state_keep(t->written);
    }
    State *to = from;
    if (!from || from->refs > 1) {
        to = state_copy(pool, from);
        state_drop(pool, from);
    }
    state_add_read(pool, to, &t->stamp, cluster);
    return to;
}

static void touch(AsyncRun *r, const MachineEvent *e, State **at)
{
    StatePool *pool = &r->shadow->pool;
    Touch *t = &r->shadow->touch;
    State *from = *at;
    for (unsigned i = 0; i < t->n; i++)
        if (t->from[i] == from) {
            *at = state_keep(t->to[i]);
            state_drop(pool, from);
            return;
        }
    if (from)
        check(r, e, t, from);
    bool met_again = !from || from->refs > 1;
    if (!met_again || t->n == STEPS) {
        *at = next_state(r, t, from);
        return;
    }
    t->from[t->n] = state_keep(from);
    *at = next_state(r, t, from);
    t->to[t->n++] = state_keep(*at);
}

static void forget(Shadow *sh)
{
    Touch *t = &sh->touch;
    for (unsigned i = 0; i < t->n; i++) {
        state_drop(&sh->pool, t->from[i]);
        state_drop(&sh->pool, t->to[i]);
    }
    state_drop(&sh->pool, t->written);
    t->event.op = NULL;
    t->n = 0;
    t->written = NULL;
}

void races_forget(AsyncRun *r)
{
    if (r->shadow && r->shadow->touch.event.op)
        forget(r->shadow);
}

static bool same_access(const MachineEvent *a, const MachineEvent *b)
{
    return a->op == b->op && a->kind == b->kind && a->effect == b->effect &&
           a->tensor == b->tensor && a->object == b->object &&
           a->cta == b->cta && a->bar == b->bar &&
           a->agent.kind == b->agent.kind &&
           a->agent.cluster == b->agent.cluster &&
           a->agent.cta == b->agent.cta && a->agent.warp == b->agent.warp &&
           a->agent.lanes == b->agent.lanes;
}

static void begin_access(AsyncRun *r, const MachineEvent *e)
{
    Touch *t = &r->shadow->touch;
    if (same_access(&t->event, e))
        return;
    forget(r->shadow);
    t->event = *e;
    t->write = e->kind == MEV_write;
    t->viewer = viewer(r, e);
    t->stamp = order_stamp(&r->order, e);
}

/* ---- shared memory ------------------------------------------------------- */

static unsigned size_of(const Chunk *c)
{
    return c->split ? c->split->size : CHUNK;
}

/* Parts of at most `size` bytes, which divides CHUNK. */
static void split(AsyncRun *r, Chunk *c, unsigned size)
{
    unsigned was = size_of(c);
    if (was <= size)
        return;
    if (!c->split) {
        c->split = ARENA_NEW(r->order.arena, Split);
        c->split->size = CHUNK;
    }
    StatePool *pool = &r->shadow->pool;
    Split *s = c->split;
    State *old[CHUNK];
    unsigned n = CHUNK / size, each = was / size;
    for (unsigned i = 0; i < CHUNK / was; i++)
        old[i] = was == CHUNK ? c->whole : s->parts[i];
    if (s->room < n)
        s->parts = ARENA_ARRAY(r->order.arena, State *, n);
    s->room = s->room < n ? n : s->room;
    for (unsigned i = 0; i < n; i++)
        s->parts[i] = state_keep(old[i / each]);
    for (unsigned i = 0; i < CHUNK / was; i++)
        state_drop(pool, old[i]);
    c->whole = NULL;
    s->size = size;
}

/* All of a split chunk is touched; after a write it is one part again. */
static void touch_all(AsyncRun *r, const MachineEvent *e, Chunk *c)
{
    bool joins = e->kind == MEV_write;
    Split *s = c->split;
    for (unsigned i = 0; i < CHUNK / s->size; i++)
        touch(r, e, &s->parts[i]);
    if (!joins)
        return;
    c->whole = s->parts[0];
    for (unsigned i = 1; i < CHUNK / s->size; i++)
        state_drop(&r->shadow->pool, s->parts[i]);
    s->size = CHUNK;
}

/* What the access has made of a state that it met, of whole chunks as far as
 * they are in it, n at most; how many they are. */
static int64_t touch_alike(Shadow *sh, Chunk *c, int64_t n)
{
    const Touch *t = &sh->touch;
    State *from = c->whole;
    unsigned at = 0;
    while (at < t->n && t->from[at] != from)
        at++;
    if (at == t->n)
        return 0;
    int64_t k = 0;
    for (; k < n && size_of(&c[k]) == CHUNK && c[k].whole == from; k++)
        c[k].whole = t->to[at];
    t->to[at]->refs += (uint32_t)k;
    if (from) /* the access itself keeps one */
        from->refs -= (uint32_t)k;
    return k;
}

static unsigned part_size(int64_t at, int64_t n)
{
    unsigned size = CHUNK;
    while (size > 1 && (at % size || n % size))
        size /= 2;
    return size;
}

static void shared_span(AsyncRun *r, const MachineEvent *e)
{
    Shadow *sh = r->shadow;
    Order *o = &r->order;
    Chunk *chunks =
        sh->chunks + (e->agent.cluster * o->n_ctas + e->cta) * sh->n_chunks;
    int64_t at = e->offset, end = e->offset + e->length;
    while (at < end) {
        int64_t stop = (at / CHUNK + 1) * CHUNK;
        int64_t n = (stop < end ? stop : end) - at;
        Chunk *c = &chunks[at / CHUNK];
        int64_t alike = n == CHUNK ? touch_alike(sh, c, (end - at) / CHUNK) : 0;
        at += alike * CHUNK;
        if (alike)
            continue;
        split(r, c, part_size(at % CHUNK, n));
        unsigned size = size_of(c);
        if (size == CHUNK)
            touch(r, e, &c->whole);
        else if (n == CHUNK)
            touch_all(r, e, c);
        else
            for (int64_t i = 0; i < n; i += size)
                touch(r, e, &c->split->parts[(at + i) % CHUNK / size]);
        at += n;
    }
}

static void shared_access(AsyncRun *r, const MachineEvent *e)
{
    MachineEvent one = *e;
    if (!e->n_spans)
        shared_span(r, e);
    for (size_t i = 0; i < e->n_spans; i++) {
        one.offset = e->spans[i].offset;
        one.length = e->spans[i].length;
        shared_span(r, &one);
    }
}

/* ---- global memory ------------------------------------------------------- */

static State **tensor_parts(AsyncRun *r, const Tensor *t)
{
    TensorShadow *x = r->shadow->tensors;
    while (x && x->tensor != t)
        x = x->next;
    if (x)
        return x->parts;
    x = ARENA_NEW(r->order.arena, TensorShadow);
    x->tensor = t;
    x->parts = ARENA_ARRAY(r->order.arena, State *, t->count);
    x->next = r->shadow->tensors;
    r->shadow->tensors = x;
    return x->parts;
}

static void global_access(AsyncRun *r, const MachineEvent *e)
{
    State **parts = tensor_parts(r, e->tensor);
    for (int64_t i = 0; i < e->length; i++)
        touch(r, e, &parts[e->offset + i]);
}

static bool is_quiet(const AsyncRun *r, const Tensor *t)
{
    for (unsigned i = 0; i < r->n_quiet; i++)
        if (r->quiet[i] == t)
            return true;
    return false;
}

void races_event(AsyncRun *r, const MachineEvent *e)
{
    if (e->kind == MEV_launch) {
        Order *o = &r->order;
        r->shadow = ARENA_NEW(o->arena, Shadow);
        r->shadow->pool.arena = o->arena;
        r->shadow->n_chunks =
            (size_t)op_attr_int(e->op, "smem_bytes", 0) / CHUNK + 64;
        r->shadow->chunks = ARENA_ARRAY(
            o->arena, Chunk, r->shadow->n_chunks * o->n_clusters * o->n_ctas);
        return;
    }
    if (r->races_bad || (e->tensor && is_quiet(r, e->tensor)))
        return;
    begin_access(r, e);
    if (e->tensor)
        global_access(r, e);
    else
        shared_access(r, e);
}
