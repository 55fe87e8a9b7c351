/* Scalars, loads and stores of lanes, and fragments. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"

#include <math.h>
#include <string.h>

/* ---- scalars ------------------------------------------------------------- */

static Step exec_arith(Warp *w, const Op *op, uint32_t mask)
{
    static const double zeros[WARP_LANES];
    const double *in[4] = { zeros, zeros, zeros, zeros };
    for (unsigned i = 0; i < op->n_operands && i < 4; i++)
        in[i] = warp_lanes(w, op->operands[i].u.value);
    double *out = warp_lanes(w, op->results[0]);
    ScalarType t = op->results[0]->type->elem;
    if (op->code == OP_arith_const) {
        double x = value_const(op);
        FOR_LANES(l, mask) out[l] = x;
        return STEP_next;
    }
    if (op->code == OP_arith_fma) {
        FOR_LANES(l, mask) out[l] = value_fma(t, in[0][l], in[1][l], in[2][l]);
        return STEP_next;
    }
    if (op->code == OP_arith_add) {
        FOR_LANES(l, mask) out[l] = value_add(t, in[0][l], in[1][l]);
        return STEP_next;
    }
    FOR_LANES(l, mask)
    {
        double v[4] = { 0 };
        for (unsigned i = 0; i < 4; i++)
            v[i] = in[i][l];
        out[l] = value_arith(&w->machine->sem, op, v);
    }
    return STEP_next;
}

/* ---- lanes and memory ---------------------------------------------------- */

static bool lane_place(Warp *w, const Op *op, unsigned lane, LaneAccess *x,
                       Place *out)
{
    return lane_access(w, op, op->operands[0].u.access, lane, x) &&
           place_at(w, op, x->obj, x->index, lane, out);
}

/* One place for all lanes, where the access does not depend on the lane. */
static bool is_uniform(Warp *w, const Op *op)
{
    const Kernel *k = w->machine->k;
    const Access *a = kernel_access(k, op->operands[0].u.access);
    const MemObj *o = k->objs[a->base->id];
    return o && o->space != SPACE_local && !access_varies(k, a);
}

static Step exec_load(Warp *w, const Op *op, uint32_t mask)
{
    double *out = warp_lanes(w, op->results[0]);
    LaneAccess at = { 0 };
    Place p;
    if (is_uniform(w, op)) {
        unsigned first = (unsigned)__builtin_ctz(mask);
        double x;
        if (!lane_place(w, op, first, &at, &p) ||
            !place_read(w, op, &p, first, &x))
            return STEP_failed;
        place_event(w, op, &p, mask, false);
        FOR_LANES(l, mask) out[l] = x;
        return STEP_next;
    }
    FOR_LANES(l, mask)
    {
        if (!lane_place(w, op, l, &at, &p) ||
            !place_read(w, op, &p, l, &out[l]))
            return STEP_failed;
        place_event(w, op, &p, 1u << l, false);
    }
    return STEP_next;
}

/* The CTA of the warp's cluster whose memory the lane asks for; NULL and a
 * diagnostic where there is none, or it has ended. */
static Cta *peer_of(Warp *w, const Op *op, unsigned lane)
{
    int64_t rank;
    if (!warp_index(w, op, op->operands[1].u.index, lane, &rank))
        return NULL;
    if (rank < 0 || rank >= w->machine->k->cluster_dim) {
        machine_fail(w->machine, w, 1u << lane, op, "bounds",
                     "reads shared memory of CTA %lld of a cluster of %lld",
                     (long long)rank, (long long)w->machine->k->cluster_dim);
        return NULL;
    }
    Cta *cta = &w->cluster->ctas[rank];
    if (!cta->live) {
        machine_fail(w->machine, w, 1u << lane, op, "exited",
                     "reads shared memory of CTA %lld, which has ended",
                     (long long)rank);
        return NULL;
    }
    return cta;
}

static bool load_neighbours(Warp *w, const Op *op, unsigned lane, LaneAccess *x)
{
    int64_t index[TENSOR_MAX_RANK];
    if (!lane_access(w, op, op->operands[0].u.access, lane, x))
        return false;
    const MemObj *o = x->obj;
    Cta *cta = peer_of(w, op, lane);
    SpanVec *spans = &w->machine->lane_spans[lane];
    Place p;
    if (!cta)
        return false;
    if (o->space != SPACE_shared)
        return machine_fail(w->machine, w, 1u << lane, op, "machine",
                            "loads from what is no shared memory");
    memcpy(index, x->index, sizeof index);
    for (unsigned i = 0; i < op->n_results; i++) {
        if (!place_at(w, op, o, index, lane, &p))
            return false;
        p.cta = cta;
        if (i == 0 && p.at % ((int64_t)o->elem_bytes * op->n_results))
            return machine_fail(w->machine, w, 1u << lane, op, "align",
                                "begins at byte %lld of shared memory, which "
                                "is no multiple of what it loads at once",
                                (long long)p.at);
        if (!place_read(w, op, &p, lane, &warp_lanes(w, op->results[i])[lane]))
            return false;
        spans_add(w->machine->arena, spans, p.at, o->elem_bytes);
        index[o->rank - 1]++;
    }
    lane_spans_event(w, op, o, cta, lane, false);
    return true;
}

static Step exec_cluster_load(Warp *w, const Op *op, uint32_t mask)
{
    LaneAccess at = { 0 };
    FOR_LANES(l, mask)
    if (!load_neighbours(w, op, l, &at))
        return STEP_failed;
    return STEP_next;
}

static Step exec_store(Warp *w, const Op *op, uint32_t mask)
{
    const double *v = warp_lanes(w, op->operands[1].u.value);
    LaneAccess at = { 0 };
    FOR_LANES(l, mask)
    {
        Place p;
        if (!lane_place(w, op, l, &at, &p))
            return STEP_failed;
        place_write(w, &p, v[l]);
        place_event(w, op, &p, 1u << l, true);
    }
    return STEP_next;
}

static Step exec_reduce(Warp *w, const Op *op, uint32_t mask)
{
    const double *a = warp_lanes(w, op->operands[1].u.value);
    const double *b =
        op->n_operands == 3 ? warp_lanes(w, op->operands[2].u.value) : NULL;
    LaneAccess at = { 0 };
    FOR_LANES(l, mask)
    {
        Place p;
        double x;
        if (!lane_place(w, op, l, &at, &p))
            return STEP_failed;
        if (p.outside)
            continue;
        if (!place_read(w, op, &p, l, &x))
            return STEP_failed;
        ScalarType t = p.obj->elem;
        x = b ? value_fma(t, a[l], b[l], x) : value_add(t, x, a[l]);
        place_write(w, &p, x);
        place_event(w, op, &p, 1u << l, true);
    }
    return STEP_next;
}

/* A register tensor is made, or emptied for the lanes that come here again. */
static Step exec_alloc(Warp *w, const Op *op, uint32_t mask)
{
    const MemObj *o = w->machine->k->objs[op->results[0]->id];
    if (o->space != SPACE_local)
        return STEP_next;
    WarpVal *v = &w->vals[op->results[0]->id];
    int64_t extent[TENSOR_MAX_RANK + 1] = { WARP_LANES };
    if (o->rank + 1 > TENSOR_MAX_RANK)
        return STEP_failed;
    memcpy(extent + 1, o->extent, o->rank * sizeof *extent);
    if (!v->local)
        v->local =
            tensor_new(op->results[0]->name, o->elem, o->rank + 1, extent);
    if (!v->local) {
        machine_fail(w->machine, w, mask, op, "size",
                     "a register tensor that does not fit memory");
        return STEP_failed;
    }
    int64_t n = v->local->stride[0];
    FOR_LANES(l, mask) memset(v->local->written + l * n, 0, (size_t)n);
    return STEP_next;
}

/* ---- fragments ----------------------------------------------------------- */

static Step exec_frag_new(Warp *w, const Op *op, uint32_t mask)
{
    const Value *v = op->results[0];
    Frag *f = frag_new(w->machine, v->type->n);
    if (op->code == OP_async_frag_zero) {
        memset(f->x, 0, (size_t)f->n * WARP_LANES * sizeof *f->x);
        for (int64_t s = 0; s < f->n; s++)
            f->live[s] = mask;
    }
    warp_set_frag(w, v, f);
    return STEP_next;
}

static Step fail_frag(Warp *w, uint32_t lanes, const Op *op, const char *code,
                      const char *what, int64_t slot)
{
    machine_fail(w->machine, w, lanes, op, code, what, (long long)slot);
    return STEP_failed;
}

bool frag_readable(Warp *w, const Op *op, unsigned i, uint32_t mask)
{
    const Value *v = op->operands[i].u.value;
    const WarpVal *x = &w->vals[v->id];
    if (!x->frag)
        return machine_fail(w->machine, w, mask, op, "poison",
                            "a fragment is used before it was made");
    if (x->flight)
        return machine_fail(w->machine, w, mask, op, "in-flight",
                            "reads an accumulator that wgmma may still be "
                            "writing; pass it through a wgmma.wait_group "
                            "first");
    frag_settle(x->frag);
    w->mma_unfenced = w->mma_unfenced || x->frag->was_d;
    return true;
}

static Step exec_frag_extract(Warp *w, const Op *op, uint32_t mask)
{
    int64_t slot = op_attr_int(op, "slot", -1);
    if (!frag_readable(w, op, 0, mask))
        return STEP_failed;
    const Frag *f = w->vals[op->operands[0].u.value->id].frag;
    if (slot < 0 || slot >= f->n)
        return fail_frag(w, mask, op, "bounds",
                         "no register %lld in the "
                         "fragment",
                         slot);
    if (mask & ~f->live[slot])
        return fail_frag(w, mask & ~f->live[slot], op, "poison",
                         "reads register %lld of a fragment, which was never "
                         "written",
                         slot);
    double *out = warp_lanes(w, op->results[0]);
    FOR_LANES(l, mask) out[l] = f->x[slot * WARP_LANES + l];
    return STEP_next;
}

/* A fragment with the contents of v's that op, which takes it, may change: the
 * same one where nothing else has it and v is done with. */
static Frag *frag_to_change(Warp *w, const Op *op, const Value *v)
{
    WarpVal *from = &w->vals[v->id];
    Frag *f = from->frag;
    if (f->refs == 1 && kernel_ends(w->machine->k, op, v)) {
        from->frag = NULL;
        f->was_d = false;
        return f;
    }
    Frag *g = frag_new(w->machine, f->n);
    memcpy(g->live, f->live, (size_t)f->n * sizeof *f->live);
    memcpy(g->x, f->x, (size_t)f->n * WARP_LANES * sizeof *f->x);
    return g;
}

static Step exec_frag_insert(Warp *w, const Op *op, uint32_t mask)
{
    int64_t slot = op_attr_int(op, "slot", -1);
    if (!frag_readable(w, op, 0, mask))
        return STEP_failed;
    const Value *v = op->operands[0].u.value;
    int64_t n = w->vals[v->id].frag->n;
    if (slot < 0 || slot >= n)
        return fail_frag(w, mask, op, "bounds",
                         "no register %lld in the "
                         "fragment",
                         slot);
    const double *x = warp_lanes(w, op->operands[1].u.value);
    Frag *g = frag_to_change(w, op, v);
    g->live[slot] |= mask;
    FOR_LANES(l, mask) g->x[slot * WARP_LANES + l] = x[l];
    warp_set_frag(w, op->results[0], g);
    w->vals[op->results[0]->id].unfenced = true;
    return STEP_next;
}

/* Each lane takes the value of the lane that its index names. */
static Step exec_shfl(Warp *w, const Op *op, uint32_t mask)
{
    const double *x = warp_lanes(w, op->operands[0].u.value);
    double *out = warp_lanes(w, op->results[0]);
    FOR_LANES(l, mask)
    {
        int64_t from;
        if (!warp_index(w, op, op->operands[1].u.index, l, &from))
            return STEP_failed;
        if (from < 0 || from >= WARP_LANES) {
            machine_fail(w->machine, w, 1u << l, op, "bounds",
                         "a shuffle asks lane %lld of a warp", (long long)from);
            return STEP_failed;
        }
        out[l] = x[from];
    }
    return STEP_next;
}

static Step exec(Warp *w, const Op *op, uint32_t mask)
{
    switch (op->code) {
    case OP_mem_load:
        return exec_load(w, op, mask);
    case OP_async_cluster_load:
        return exec_cluster_load(w, op, mask);
    case OP_mem_store:
        return exec_store(w, op, mask);
    case OP_mem_reduce:
        return exec_reduce(w, op, mask);
    case OP_mem_alloc:
        return exec_alloc(w, op, mask);
    case OP_mem_window:
        return STEP_next;
    case OP_async_frag_undef:
    case OP_async_frag_zero:
        return exec_frag_new(w, op, mask);
    case OP_async_frag_extract:
        return exec_frag_extract(w, op, mask);
    case OP_async_frag_insert:
        return exec_frag_insert(w, op, mask);
    case OP_async_shfl_sync:
        return exec_shfl(w, op, mask);
    case OP_async_tile_store:
        return exec_tile_store(w, op, mask);
    default:
        return exec_arith(w, op, mask);
    }
}

Step exec_memory(Warp *w, const Op *op, uint32_t mask)
{
    Step step = exec(w, op, mask);
    if (step == STEP_next)
        warp_drop_lanes(w, op);
    return step;
}
