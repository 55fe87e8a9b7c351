/* The tensor core: wgmma as each of a warpgroup's warps issues it.
 *
 * A warp's part is 16 rows of the 64: it reads its rows of A and all of B when
 * the engine executes, in the order of issue, and adds products in ascending k
 * with fused roundings, as the instruction's body in the library does. The
 * accumulator is a new fragment that nothing else may read until the warp has
 * passed it through a wgmma.wait_group that covers its group. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"
#include "verify/fma.h"

#include <stdlib.h>
#include <string.h>

enum { MMA_ROWS = 64 };

/* ---- issue --------------------------------------------------------------- */

static bool mma_fail(Warp *w, const Op *op, const char *what)
{
    return machine_fail(w->machine, w, ALL_LANES, op, "wgmma", "%s", what);
}

/* Finds the intervals of a shared operand; those of length 1 in front of the
 * `want` last ones are points. */
static bool shared_operand(Warp *w, const Op *op, const Access *a,
                           MmaOperand *out, int64_t *len)
{
    unsigned n = 0;
    a = kernel_access(w->machine->k, a);
    out->obj = warp_access(w, op, a, 0, out->index, NULL);
    if (!out->obj)
        return false;
    if (out->obj->space != SPACE_shared)
        return mma_fail(w, op, "operands in memory must be shared objects");
    for (unsigned d = 0; d < a->rank; d++) {
        int64_t l = 1;
        bool interval = a->dims[d].kind == DIM_interval;
        if (interval && !warp_index(w, op, a->dims[d].len, 0, &l))
            return false;
        if (out->index[d] < 0 || l < 0 ||
            out->index[d] >= out->obj->extent[d] ||
            l > out->obj->extent[d] - out->index[d])
            return mma_fail(w, op, "an operand leaves its shared object");
        if (!interval)
            continue;
        if (n == 3)
            return mma_fail(w, op, "an operand has more than three intervals");
        out->dim[n] = (int)d;
        len[n++] = l;
    }
    out->n_dims = n;
    return true;
}

static bool resolve_a(Warp *w, const Op *op, Effect *e)
{
    int64_t len[3] = { 0 };
    if (op->operands[1].kind == OPND_value) {
        const WarpVal *v = &w->vals[op->operands[1].u.value->id];
        if (!v->frag)
            return mma_fail(w, op, "operand A is used before it was made");
        if (v->flight || v->unfenced)
            return mma_fail(w, op,
                            "registers of A were written since the last "
                            "wgmma.fence that they passed through");
        frag_settle(v->frag);
        e->a.frag = v->frag;
        v->frag->refs++;
        return true;
    }
    if (!shared_operand(w, op, op->operands[1].u.access, &e->a, len))
        return false;
    unsigned first = e->a.n_dims == 3 && len[0] == 1;
    e->a.dim[0] = e->a.dim[first];
    e->a.dim[1] = e->a.dim[first + 1];
    if (e->a.n_dims - first == 2 && len[first] == MMA_ROWS &&
        len[first + 1] == e->k)
        return true;
    e->a.transposed = true;
    return (e->a.n_dims - first == 2 && len[first] == e->k &&
            len[first + 1] == MMA_ROWS) ||
           mma_fail(w, op, "operand A must be 64 x k, or k x 64");
}

static bool resolve_b(Warp *w, const Op *op, Effect *e)
{
    int64_t len[3] = { 0 };
    if (op->operands[2].kind != OPND_access)
        return mma_fail(w, op, "operand B must be in shared memory");
    if (!shared_operand(w, op, op->operands[2].u.access, &e->b, len))
        return false;
    if (e->b.n_dims == 2)
        return (len[0] == e->n && len[1] == e->k) ||
               mma_fail(w, op, "operand B must be n x k, or n/64 x k x 64");
    e->b.transposed = true;
    return (e->b.n_dims == 3 && 64 * len[0] == e->n && len[1] == e->k &&
            len[2] == 64) ||
           mma_fail(w, op, "operand B must be n x k, or n/64 x k x 64");
}

static bool resolve_d(Warp *w, const Op *op, Effect *e)
{
    const Value *v = op->operands[0].u.value;
    const WarpVal *d = &w->vals[v->id];
    const TileMap *map = tile_map(w->machine, w, op, v->type->mem);
    if (!map)
        return false;
    if (map->rows != MMA_WARP_ROWS || map->cols != e->n)
        return mma_fail(w, op,
                        "the accumulator is not a tile of 16 x n a "
                        "warp");
    if (!d->frag)
        return mma_fail(w, op, "the accumulator is used before it was made");
    if (map->slots > d->frag->n)
        return mma_fail(w, op,
                        "the accumulator has fewer registers than its "
                        "tile");
    if (e->scale_d && d->unfenced)
        return mma_fail(w, op,
                        "registers of the accumulator were written "
                        "since the last wgmma.fence that they passed "
                        "through");
    e->d_in = d->frag;
    if (kernel_ends(w->machine->k, op, v))
        w->vals[v->id].frag = NULL;
    else
        d->frag->refs++;
    e->d_out = frag_new(w->machine, e->d_in->n);
    e->d_out->was_d = true;
    e->d_out->refs++;
    warp_set_frag(w, op->results[0], e->d_out);
    w->vals[op->results[0]->id].flight = w->mma_open + 1;
    return true;
}

static Step issue(Warp *w, const Op *op)
{
    Effect *e = effect_new(w->machine, EFFECT_mma, w, op, ALL_LANES);
    e->n = op_attr_int(op, "n", 0);
    e->k = op_attr_int(op, "k", 0);
    e->a_slot = op_attr_int(op, "a_slot", 0);
    e->group[0] = w->mma_open;
    if (e->n < 8 || e->n > MMA_MAX_N || e->n % 8 || e->k < 8 ||
        e->k > MMA_MAX_K) {
        mma_fail(w, op, "n must be a multiple of 8 up to 256, k from 8 to 32");
        return STEP_failed;
    }
    if (w->mma_unfenced) {
        mma_fail(w, op,
                 "no wgmma.fence since the start, or since other ops "
                 "touched the registers of an accumulator");
        return STEP_failed;
    }
    if (w->mma_last)
        w->mma_last->next = e;
    else
        w->mma_first = e;
    w->mma_last = e;
    w->mma_issued++;
    const Operand *scale = &op->operands[3];
    return warp_cond(w, op, scale->u.cond, 0, &e->scale_d) &&
                   resolve_a(w, op, e) && resolve_b(w, op, e) &&
                   resolve_d(w, op, e)
               ? STEP_next
               : STEP_failed;
}

/* Fragments pass through; clear says what the op settles about them. */
static void pass_through(Warp *w, const Op *op, bool fence)
{
    for (unsigned i = 0; i < op->n_operands && i < op->n_results; i++) {
        const Value *from = op->operands[i].u.value;
        warp_move(w, from, op->results[i], ALL_LANES, true);
        WarpVal *to = &w->vals[op->results[i]->id];
        if (fence)
            to->unfenced = false;
        else if (to->flight && to->flight - 1 < w->mma_retired)
            to->flight = 0;
    }
}

static Step wait_group(Warp *w, const Op *op)
{
    int64_t n = op_attr_int(op, "n", 0);
    if (w->mma_first && w->mma_first->group[0] < w->mma_open - n) {
        w->wait = (Wait){ .kind = WAIT_mma, .n = n, .lanes = ALL_LANES };
        return STEP_blocked;
    }
    if (w->mma_open - n > w->mma_retired)
        w->mma_retired = w->mma_open - n;
    pass_through(w, op, false);
    return STEP_next;
}

Step exec_wgmma(Warp *w, const Op *op, uint32_t mask)
{
    (void)mask;
    switch (op->code) {
    case OP_async_wgmma_mma_async:
        return issue(w, op);
    case OP_async_wgmma_fence:
        pass_through(w, op, true);
        w->mma_unfenced = false;
        return STEP_next;
    case OP_async_wgmma_commit_group:
        w->mma_open++;
        return STEP_next;
    default:
        return wait_group(w, op);
    }
}

/* ---- the engine ---------------------------------------------------------- */

/* Puts D's old contents, or zeros, into the tile of the new one. */
static bool gather_d(Machine *mc, Effect *e, const TileMap *map, size_t stride)
{
    Frag *in = e->d_in;
    float *d = e->d_out->tile;
    if (e->scale_d && in->packed && in->map == map && in->refs == 1) {
        e->d_out->tile = in->tile; /* nobody else will ask for it */
        in->tile = d;
        in->packed = false;
        return true;
    }
    if (e->scale_d && in->packed && in->map == map) {
        memcpy(d, in->tile, MMA_WARP_ROWS * stride * sizeof *d);
        return true;
    }
    memset(d, 0, MMA_WARP_ROWS * stride * sizeof *d);
    if (!e->scale_d)
        return true;
    frag_settle(in);
    for (int64_t i = 0; i < map->n; i++) {
        int64_t slot = map->slot[i];
        unsigned lane = map->lane[i];
        if (slot >= in->n || !(in->live[slot] >> lane & 1))
            return machine_fail(mc, e->warp, 1u << lane, e->op, "poison",
                                "adds to register %lld of the accumulator, "
                                "which was never written",
                                (long long)slot);
        d[(size_t)(i / map->cols) * stride + (size_t)(i % map->cols)] =
            (float)in->x[slot * WARP_LANES + lane];
    }
    return true;
}

/* Accumulation in a type other than f32: each product and sum is rounded. */
static void multiply_rounded(const Effect *e, ScalarType t, const float *a,
                             const float *b, float *d, size_t stride)
{
    size_t k = (size_t)e->k;
    for (size_t r = 0; r < MMA_WARP_ROWS; r++)
        for (size_t n = 0; n < (size_t)e->n; n++)
            for (size_t i = 0; i < k; i++)
                d[r * stride + n] = (float)value_fma(
                    t, (double)a[r * k + i], (double)b[fma_b_index(k, i, n)],
                    (double)d[r * stride + n]);
}

static bool multiply(Machine *mc, Effect *e)
{
    float a[MMA_WARP_ROWS * MMA_MAX_K];
    size_t stride = fma_padded((size_t)e->n);
    const Type *type = e->op->operands[0].u.value->type;
    const TileMap *map = tile_map(mc, e->warp, e->op, type->mem);
    if (!e->d_out->tile)
        e->d_out->tile =
            ARENA_ARRAY(mc->arena, float, MMA_WARP_ROWS *MMA_MAX_N);
    const float *b = map && mma_gather_a(mc, e, a) ? mma_gather_b(mc, e) : NULL;
    if (!b || !gather_d(mc, e, map, stride))
        return false;
    float *d = e->d_out->tile;
    if (type->elem == TY_f32)
        fma_f32(MMA_WARP_ROWS, (size_t)e->n, (size_t)e->k, a, b, d);
    else
        multiply_rounded(e, type->elem, a, b, d, stride);
    e->d_out->map = map;
    e->d_out->packed = true;
    return true;
}

bool mma_step(Machine *mc, Effect *e)
{
    Warp *w = e->warp;
    if (!multiply(mc, e))
        return false;
    w->mma_first = e->next;
    if (!w->mma_first)
        w->mma_last = NULL;
    frag_drop(mc, e->a.frag);
    frag_drop(mc, e->d_in);
    frag_drop(mc, e->d_out);
    effect_finish(mc, e);
    return true;
}
