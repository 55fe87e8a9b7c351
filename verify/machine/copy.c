/* The bulk-copy engine, and effects in general.
 *
 * A load reads its box of the tensor map in one step (zeros outside the
 * tensor), then writes each destination CTA and counts the bytes on its
 * mbarrier, one destination a step. A store reads shared memory in one step and
 * writes what lies inside the tensor in another. Boxes are dense in shared
 * memory; the swizzle permutes their 16-byte chunks by absolute address. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"

#include <stdlib.h>
#include <string.h>

/* ---- effects ------------------------------------------------------------- */

/* A cp.async is one of its warp's until it is over. */
static void cp_enter(Effect *e)
{
    Warp *w = e->warp;
    e->older = w->cp_last;
    *(w->cp_last ? &w->cp_last->younger : &w->cp_first) = e;
    w->cp_last = e;
}

static void cp_leave(Effect *e)
{
    Warp *w = e->warp;
    *(e->older ? &e->older->younger : &w->cp_first) = e->younger;
    *(e->younger ? &e->younger->older : &w->cp_last) = e->older;
}

Effect *effect_new(Machine *mc, EffectKind kind, Warp *w, const Op *op,
                   uint32_t lanes)
{
    Effect *e = calloc(1, sizeof *e);
    if (!e)
        panic("effect_new: out of memory");
    e->kind = kind;
    e->number = ++mc->next_effect;
    e->op = op;
    e->warp = w;
    e->lanes = lanes;
    e->bar_at = -1;
    e->turn = MACHINE_NO_TURN;
    e->priority = machine_random(mc);
    StrBuf at = { 0 };
    print_iterators(&at, w);
    e->iterators = at.data ? at.data : calloc(1, 1);
    if (!e->iterators)
        panic("effect_new: out of memory");
    e->place = mc->effects.len;
    EffectRef ref = { e };
    VEC_PUSH(mc->arena, &mc->effects, ref);
    if (kind == EFFECT_cp_async)
        cp_enter(e);
    MachineEvent ev = { .kind = MEV_issue,
                        .op = op,
                        .effect = e->number,
                        .agent = warp_agent(w, AGENT_warp, lanes) };
    machine_emit(mc, &ev);
    return e;
}

static MachineAgentKind effect_agent(const Effect *e)
{
    return e->kind == EFFECT_mma ? AGENT_tensor
           : e->kind == EFFECT_cp_async || e->kind == EFFECT_cp_arrive
               ? AGENT_cp_async
               : AGENT_copy;
}

void effect_finish(Machine *mc, Effect *e)
{
    MachineEvent ev = { .kind = MEV_finish,
                        .op = e->op,
                        .effect = e->number,
                        .agent =
                            warp_agent(e->warp, effect_agent(e), e->lanes) };
    machine_emit(mc, &ev);
    Effect *last = mc->effects.data[--mc->effects.len].effect;
    mc->effects.data[e->place].effect = last;
    last->place = e->place;
    if (e->kind == EFFECT_cp_async)
        cp_leave(e);
    lane_calls_free(e);
    free(e->iterators);
    free(e->data);
    free(e->targets);
    free(e);
}

/* Are any of these bytes fresh from ordinary stores? */
static bool is_generic(const Cta *cta, int64_t at, int64_t n)
{
    return at < cta->generic_hi && at + n > cta->generic_lo &&
           memchr(cta->generic + at, 1, (size_t)n);
}

bool check_proxy(Machine *mc, const Warp *w, uint32_t lanes, const Op *op,
                 const Cta *cta, int64_t at, size_t n)
{
    if (!is_generic(cta, at, (int64_t)n))
        return true;
    return machine_fail(mc, w, lanes, op, "proxy",
                        "reads shared byte %lld of cta %u through the async "
                        "proxy, but it was written by ordinary stores and no "
                        "fence.proxy followed",
                        (long long)at, cta->rank);
}

static bool earlier_cp(const Effect *e)
{
    for (const Effect *o = e->warp->cp_first; o && o->number < e->number;
         o = o->younger)
        if (o->lanes & e->lanes)
            return true;
    return false;
}

bool effect_ready(const Effect *e)
{
    if (e->kind == EFFECT_mma)
        return e->warp->mma_first == e;
    return e->kind != EFFECT_cp_arrive || !earlier_cp(e);
}

static bool step(Machine *mc, Effect *e)
{
    switch (e->kind) {
    case EFFECT_load:
    case EFFECT_store:
    case EFFECT_send:
        return copy_step(mc, e);
    case EFFECT_mma:
        return mma_step(mc, e);
    case EFFECT_cp_async:
        return cp_async_step(mc, e);
    case EFFECT_cp_arrive: {
        Warp *w = e->warp;
        bool ok =
            mbar_arrive(mc, w, e->lanes, e->op, w->cta, e->bar_at, e->turn);
        effect_finish(mc, e);
        return ok;
    }
    }
    return false;
}

/* An event of e's engine on cta's shared memory, without its place. */
static MachineEvent shared_event(const Effect *e, const Cta *cta,
                                 const MemObj *obj, bool write)
{
    return (MachineEvent){ .kind = write ? MEV_write : MEV_read,
                           .op = e->op,
                           .effect = e->number,
                           .cta = cta->rank,
                           .object = obj->value,
                           .elem = obj->elem,
                           .bar = e->bar_at,
                           .bar_cta =
                               e->kind == EFFECT_send ? e->targets[0] : 0,
                           .async_proxy = true,
                           .agent =
                               warp_agent(e->warp, effect_agent(e), e->lanes) };
}

void engine_event(Machine *mc, const Effect *e, const Cta *cta,
                  const MemObj *obj, int64_t at, int64_t n, bool write)
{
    MachineEvent ev = shared_event(e, cta, obj, write);
    ev.offset = at;
    ev.length = n;
    ev.bytes = cta->smem + at;
    machine_emit(mc, &ev);
}

void engine_reads(Machine *mc, const Effect *e, const MemObj *obj,
                  const MachineSpan *spans, size_t n)
{
    MachineEvent ev = shared_event(e, e->warp->cta, obj, false);
    ev.spans = spans;
    ev.n_spans = n;
    if (n)
        machine_emit(mc, &ev);
}

bool effect_step(Machine *mc, Effect *e)
{
    mc->stepping = e;
    bool ok = step(mc, e);
    mc->stepping = NULL;
    return ok;
}

/* ---- issue --------------------------------------------------------------- */

static bool copy_fail(Warp *w, const Op *op, const char *what)
{
    return machine_fail(w->machine, w, 0, op, "copy", "%s", what);
}

static int64_t box_elements(const MemObj *map)
{
    int64_t n = 1;
    for (unsigned d = 0; d < map->box_rank; d++)
        n *= map->box[d];
    return n;
}

/* Where the map's box begins; its intervals must be the map's box. */
static bool resolve_map(Warp *w, const Op *op, const Access *a, unsigned lane,
                        Effect *e)
{
    int64_t index[TENSOR_MAX_RANK];
    a = kernel_access(w->machine->k, a);
    e->map = warp_access(w, op, a, lane, index, NULL);
    if (!e->map)
        return false;
    if (e->map->space != SPACE_map)
        return copy_fail(w, op, "the global side must be a tensor map");
    for (unsigned d = 0; d < e->map->box_rank; d++) {
        int64_t len = 1;
        if (a->dims[d].kind == DIM_interval &&
            !warp_index(w, op, a->dims[d].len, lane, &len))
            return false;
        if (len != e->map->box[d])
            return machine_fail(w->machine, w, 1u << lane, op, "copy",
                                "dimension %u of the access has %lld elements, "
                                "but the map's box has %lld",
                                d, (long long)len, (long long)e->map->box[d]);
        e->map_index[d] = index[d];
    }
    return true;
}

/* A shared side: the object, where the access begins in it, and how many
 * elements it has there, which must be dense. */
static bool resolve_dense(Warp *w, const Op *op, const Access *a, unsigned lane,
                          const MemObj **obj, int64_t *at, int64_t *elements)
{
    int64_t index[TENSOR_MAX_RANK], n = 1;
    a = kernel_access(w->machine->k, a);
    const MemObj *o = warp_access(w, op, a, lane, index, NULL);
    Place p;
    if (!o)
        return false;
    if (o->space != SPACE_shared)
        return copy_fail(w, op, "the shared side must be a shared object");
    if (!place_at(w, op, o, index, lane, &p))
        return false;
    for (unsigned d = o->rank; d-- > 0;) {
        int64_t len = 1;
        if (a->dims[d].kind == DIM_interval &&
            !warp_index(w, op, a->dims[d].len, lane, &len))
            return false;
        if (len > 1 && o->stride[d] != n)
            return copy_fail(w, op, "the shared side must be dense");
        if (index[d] + len > o->extent[d])
            return copy_fail(w, op, "the shared side leaves its object");
        n *= len;
    }
    *obj = o;
    *at = o->offset;
    for (unsigned d = 0; d < o->rank; d++)
        *at += index[d] * o->stride[d] * o->elem_bytes;
    *elements = n;
    return true;
}

static bool check_start(Warp *w, const Op *op, unsigned lane, int64_t at,
                        int64_t align)
{
    return at % align == 0 ||
           machine_fail(w->machine, w, 1u << lane, op, "copy",
                        "shared byte %lld is no multiple of %lld",
                        (long long)at, (long long)align);
}

/* It must be as large as the box. */
static bool resolve_shared(Warp *w, const Op *op, const Access *a,
                           unsigned lane, Effect *e)
{
    int64_t n;
    if (!resolve_dense(w, op, a, lane, &e->shared, &e->shared_at, &n))
        return false;
    if (e->shared->elem != e->map->elem)
        return copy_fail(w, op,
                         "the shared side must be a shared object of "
                         "the map's element type");
    if (n != box_elements(e->map))
        return machine_fail(w->machine, w, 1u << lane, op, "copy",
                            "the shared side has %lld elements, but the map's "
                            "box has %lld",
                            (long long)n, (long long)box_elements(e->map));
    return check_start(w, op, lane, e->shared_at, 128);
}

/* Both sides of a send: as many bytes, multiples of 16 (PTX, cp.async.bulk). */
static bool resolve_send(Warp *w, const Op *op, unsigned lane, Effect *e)
{
    int64_t n, given, rank;
    if (!resolve_dense(w, op, op->operands[0].u.access, lane, &e->to, &e->to_at,
                       &n) ||
        !resolve_dense(w, op, op->operands[1].u.access, lane, &e->shared,
                       &e->shared_at, &given) ||
        !warp_index(w, op, op->operands[3].u.index, lane, &rank))
        return false;
    if (rank < 0 || rank >= w->machine->k->cluster_dim)
        return machine_fail(w->machine, w, 1u << lane, op, "bounds",
                            "sends to CTA %lld of a cluster of %lld",
                            (long long)rank,
                            (long long)w->machine->k->cluster_dim);
    if (e->to->elem != e->shared->elem || n != given)
        return copy_fail(w, op,
                         "both sides must have as many elements of one type");
    e->bytes = n * e->to->elem_bytes;
    e->targets = calloc(1, sizeof *e->targets);
    if (!e->targets)
        panic("resolve_send: out of memory");
    e->targets[e->n_targets++] = (unsigned)rank;
    return check_start(w, op, lane, e->to_at, 16) &&
           check_start(w, op, lane, e->shared_at, 16) &&
           check_start(w, op, lane, e->bytes, 16);
}

static bool resolve_targets(Warp *w, const Op *op, Effect *e)
{
    unsigned n = 1;
    for (unsigned i = 0; i < n; i++) {
        Cta *cta = xor_target(w, op, i, &n);
        if (!cta)
            return false;
        if (!e->targets)
            e->targets = calloc(n, sizeof *e->targets);
        if (!e->targets)
            panic("resolve_targets: out of memory");
        e->targets[e->n_targets++] = cta->rank;
    }
    return true;
}

static int64_t copy_bytes(const Effect *e)
{
    return e->kind == EFFECT_send ? e->bytes
                                  : box_elements(e->map) * e->map->elem_bytes;
}

/* Tells where a load or a send that was started will end. */
static void target_events(Machine *mc, const Effect *e)
{
    for (unsigned i = 0; i < e->n_targets; i++) {
        MachineEvent ev = { .kind = MEV_target,
                            .op = e->op,
                            .effect = e->number,
                            .cta = e->targets[i],
                            .offset = e->bar_at,
                            .turn = e->turn,
                            .length = copy_bytes(e),
                            .agent =
                                warp_agent(e->warp, AGENT_warp, e->lanes) };
        machine_emit(mc, &ev);
    }
}

Step exec_copy(Warp *w, const Op *op, uint32_t mask)
{
    unsigned lane = (unsigned)__builtin_ctz(mask);
    bool load = op->code == OP_async_bulk_tensor_load;
    bool send = op->code == OP_async_bulk_copy;
    const Access *a = op->operands[0].u.access, *b = op->operands[1].u.access;
    if (mask & (mask - 1)) {
        copy_fail(w, op,
                  "one thread must start a copy, but several come "
                  "here");
        return STEP_failed;
    }
    Effect *e = effect_new(w->machine,
                           load   ? EFFECT_load
                           : send ? EFFECT_send
                                  : EFFECT_store,
                           w, op, mask);
    if (send ? !resolve_send(w, op, lane, e)
             : !resolve_map(w, op, load ? b : a, lane, e) ||
                   !resolve_shared(w, op, load ? a : b, lane, e))
        return STEP_failed;
    if (!load && !send && e->map->rounds_tf32) {
        copy_fail(w, op,
                  "writes through a tensor map that rounds what is loaded; "
                  "make another map of the tensor for stores");
        return STEP_failed;
    }
    if (!load && !send) {
        e->group[lane] = w->bulk.open[lane];
        e->add = op->code == OP_async_bulk_tensor_reduce;
        return STEP_next;
    }
    if (!mbar_offset(w, op, op->operands[2].u.access, lane, &e->bar_at,
                     &e->turn) ||
        (load && !resolve_targets(w, op, e)))
        return STEP_failed;
    target_events(w->machine, e);
    return STEP_next;
}

/* ---- the engine's steps -------------------------------------------------- */

/* Calls fn for runs of n elements of the box, from its i-th in row-major order
 * on, that lie side by side in storage from `at` on, or are all
 * VIEW_OUTSIDE_MAP. */
typedef bool BoxVisit(Machine *mc, Effect *e, int64_t i, int64_t n, int64_t at);

static bool box_walk(Machine *mc, Effect *e, BoxVisit *fn)
{
    const MemObj *m = e->map;
    int64_t index[TENSOR_MAX_RANK], step[BOX_RANK] = { 0 }, run;
    int64_t n = box_elements(m);
    unsigned bad, last = m->box_rank ? m->box_rank - 1 : 0;
    for (int64_t i = 0; i < n; i += run) {
        for (unsigned d = 0; d < m->box_rank; d++)
            index[d] = e->map_index[d] + step[d];
        run = view_run(&m->view, index,
                       m->box_rank ? m->box[last] - step[last] : 1);
        if (!fn(mc, e, i, run, view_element(&m->view, index, &bad)))
            return false;
        step[last] += run - 1;
        for (unsigned d = m->box_rank; d-- > 0 && ++step[d] == m->box[d];)
            step[d] = 0;
    }
    return true;
}

static void global_event(Machine *mc, const Effect *e, int64_t at, int64_t n,
                         bool write)
{
    const Tensor *t = e->map->view.tensor;
    MachineEvent ev = { .kind = write ? MEV_write : MEV_read,
                        .op = e->op,
                        .effect = e->number,
                        .tensor = t,
                        .offset = at,
                        .length = n,
                        .bytes = t->bytes + at * t->elem_bytes,
                        .elem = t->elem,
                        .bar = e->bar_at,
                        .async_proxy = true,
                        .agent = warp_agent(e->warp, AGENT_copy, e->lanes) };
    machine_emit(mc, &ev);
}

/* All n elements from `at` on have a value. */
static bool all_written(Machine *mc, Effect *e, int64_t at, int64_t n)
{
    const Tensor *t = e->map->view.tensor;
    const unsigned char *from = t->written + at;
    const unsigned char *hole = memchr(from, 0, (size_t)n);
    StrBuf name = { 0 };
    if (!hole)
        return true;
    tensor_print_element(&name, t, at + (hole - from));
    machine_fail(mc, e->warp, e->lanes, e->op, "poison",
                 "reads %s, which was never written", strbuf_text(&name));
    strbuf_free(&name);
    return false;
}

static bool read_run(Machine *mc, Effect *e, int64_t i, int64_t n, int64_t at)
{
    const Tensor *t = e->map->view.tensor;
    unsigned char *to = e->data + i * t->elem_bytes;
    size_t bytes = (size_t)n * t->elem_bytes;
    if (at == VIEW_OUTSIDE_MAP) {
        memset(to, 0, bytes);
        return true;
    }
    if (!all_written(mc, e, at, n))
        return false;
    global_event(mc, e, at, n, false);
    memcpy(to, t->bytes + at * t->elem_bytes, bytes);
    for (int64_t k = 0; e->map->rounds_tf32 && k < n; k++) {
        float x;
        memcpy(&x, to + k * (int64_t)sizeof x, sizeof x);
        x = scalar_tf32_rn(x);
        memcpy(to + k * (int64_t)sizeof x, &x, sizeof x);
    }
    return true;
}

static bool write_run(Machine *mc, Effect *e, int64_t i, int64_t n, int64_t at)
{
    Tensor *t = e->map->view.tensor;
    const unsigned char *from = e->data + i * t->elem_bytes;
    if (at == VIEW_OUTSIDE_MAP)
        return true;
    if (e->add && !all_written(mc, e, at, n))
        return false;
    if (e->add) {
        for (int64_t k = 0; k < n; k++)
            tensor_set(
                t, at + k,
                value_add(t->elem, tensor_get(t, at + k),
                          scalar_load(t->elem, from + k * t->elem_bytes)));
    } else {
        memcpy(t->bytes + at * t->elem_bytes, from, (size_t)n * t->elem_bytes);
        memset(t->written + at, 1, (size_t)n);
    }
    global_event(mc, e, at, n, true);
    return true;
}

/* Bytes of an object, in the order of a box with that swizzle. */
typedef struct SharedSide {
    const MemObj *obj;
    int64_t at, bytes;
    uint32_t swizzle;
} SharedSide;

/* Of a send they are as they lie. */
static SharedSide source_side(const Effect *e)
{
    return (SharedSide){ e->shared, e->shared_at, copy_bytes(e),
                         e->map ? e->map->box_swizzle : 0 };
}

/* The bytes where they are: whole rows of 128 bytes hold the same bytes with
 * and without the swizzle. */
static void side_event(Machine *mc, const Effect *e, const Cta *cta,
                       const SharedSide *s, bool write)
{
    if (!(mc->wants >> (write ? MEV_write : MEV_read) & 1))
        return;
    if (!s->swizzle || s->bytes % 128 == 0) {
        engine_event(mc, e, cta, s->obj, s->at, s->bytes, write);
        return;
    }
    for (int64_t i = 0; i < s->bytes; i += 16)
        engine_event(mc, e, cta, s->obj, shared_address(s->swizzle, s->at + i),
                     s->bytes - i < 16 ? s->bytes - i : 16, write);
}

/* Bytes that an engine wrote. */
static void mark_loaded(Cta *cta, int64_t at, int64_t n)
{
    memset(cta->written + at, 1, (size_t)n);
    memset(cta->generic + at, 0, (size_t)n);
}

static bool may_read(Machine *mc, const Effect *e, const Cta *cta, int64_t at,
                     int64_t n)
{
    if (!check_proxy(mc, e->warp, e->lanes, e->op, cta, at, (size_t)n))
        return false;
    return !memchr(cta->written + at, 0, (size_t)n) ||
           machine_fail(mc, e->warp, e->lanes, e->op, "poison",
                        "reads shared byte %lld of cta %u, which was never "
                        "written",
                        (long long)at, cta->rank);
}

/* A chunk nearly always has 16 bytes. */
static void copy_chunk(unsigned char *to, const unsigned char *from, int64_t n)
{
    if (n == 16)
        memcpy(to, from, 16);
    else
        memcpy(to, from, (size_t)n);
}

/* Moves the bytes between data and shared memory, chunk by chunk. What holds of
 * all of them is asked or said at once where the swizzle leaves them together.
 */
static bool move_shared(Machine *mc, Effect *e, Cta *cta, const SharedSide *s,
                        bool write)
{
    bool together = !s->swizzle || s->bytes % 128 == 0;
    bool clean = !write && together && !is_generic(cta, s->at, s->bytes) &&
                 !memchr(cta->written + s->at, 0, (size_t)s->bytes);
    if (write)
        mma_forget(mc, cta, s->at, (s->bytes + 127) / 128 * 128);
    if (write && together)
        mark_loaded(cta, s->at, s->bytes);
    for (int64_t i = 0; i < s->bytes; i += 16) {
        int64_t n = s->bytes - i < 16 ? s->bytes - i : 16;
        int64_t at = shared_address(s->swizzle, s->at + i);
        if (write && !together)
            mark_loaded(cta, at, n);
        if (!write && !clean && !may_read(mc, e, cta, at, n))
            return false;
        if (write)
            copy_chunk(cta->smem + at, e->data + i, n);
        else
            copy_chunk(e->data + i, cta->smem + at, n);
    }
    side_event(mc, e, cta, s, write);
    return true;
}

static void make_data(Effect *e)
{
    e->data = malloc((size_t)copy_bytes(e));
    if (!e->data)
        panic("bulk copy: out of memory");
}

/* Some target's part: written there, and counted. */
static bool deliver(Machine *mc, Effect *e, const SharedSide *to)
{
    unsigned i = (unsigned)(machine_random(mc) % e->n_targets);
    Cta *cta = &e->warp->cluster->ctas[e->targets[i]];
    if (!cta->live)
        return machine_fail(mc, e->warp, e->lanes, e->op, "exited",
                            "writes shared memory of cta %u, all of whose "
                            "warps have ended",
                            cta->rank);
    if (!cta->bars[e->bar_at / 8].fenced && cta->bars[e->bar_at / 8].ready)
        return machine_fail(mc, e->warp, e->lanes, e->op, "uninitialised",
                            "signals an mbarrier of cta %u whose "
                            "initialisation no fence made visible to the async "
                            "proxy",
                            cta->rank);
    if (!move_shared(mc, e, cta, to, true) ||
        !mbar_bytes(mc, e->warp, e->lanes, e->op, cta, e->bar_at, -to->bytes,
                    e->turn))
        return false;
    e->targets[i] = e->targets[--e->n_targets];
    if (!e->n_targets)
        effect_finish(mc, e);
    return true;
}

static bool load_step(Machine *mc, Effect *e)
{
    SharedSide to = source_side(e);
    if (e->data)
        return deliver(mc, e, &to);
    make_data(e);
    return box_walk(mc, e, read_run);
}

static bool send_step(Machine *mc, Effect *e)
{
    SharedSide from = source_side(e);
    SharedSide to = { e->to, e->to_at, from.bytes, 0 };
    if (e->data)
        return deliver(mc, e, &to);
    make_data(e);
    if (!e->warp->cta->live)
        return machine_fail(mc, e->warp, e->lanes, e->op, "exited",
                            "reads shared memory of its own cta, all of whose "
                            "warps have ended");
    return move_shared(mc, e, e->warp->cta, &from, false);
}

static bool store_step(Machine *mc, Effect *e)
{
    SharedSide from = source_side(e);
    if (!e->data) {
        make_data(e);
        e->source_read = true;
        return move_shared(mc, e, e->warp->cta, &from, false);
    }
    bool ok = box_walk(mc, e, write_run);
    effect_finish(mc, e);
    return ok;
}

bool copy_step(Machine *mc, Effect *e)
{
    return e->kind == EFFECT_load   ? load_step(mc, e)
           : e->kind == EFFECT_send ? send_step(mc, e)
                                    : store_step(mc, e);
}
