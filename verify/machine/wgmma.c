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

enum { WARP_ROWS = 16, MMA_ROWS = 64, MMA_MAX_N = 256, MMA_MAX_K = 32 };

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
    if (map->rows != WARP_ROWS || map->cols != e->n)
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
    d->frag->refs++;
    e->d_out = frag_new(w->machine, d->frag->n);
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

/* `count` elements side by side to out[0], out[step], .., of f32 what the
 * tensor core takes of them. */
static void decode(ScalarType t, const unsigned char *p, size_t count,
                   float *out, size_t step)
{
    scalar_load_floats(t, p, count, out, step);
    for (size_t i = 0; t == TY_f32 && i < count; i++)
        out[i * step] = scalar_tf32_truncate(out[i * step]);
}

/* The engine reads `bytes` bytes at an address behind the swizzle. */
static bool read_span(Machine *mc, Effect *e, const MmaOperand *o, int64_t at,
                      size_t bytes)
{
    const Cta *cta = e->warp->cta;
    if (memchr(cta->written + at, 0, bytes)) {
        StrBuf name = { 0 };
        value_print_name(&name, o->obj->value);
        machine_fail(mc, e->warp, ALL_LANES, e->op, "poison",
                     "reads '%s' at shared byte %lld of cta %u, which was "
                     "never written",
                     strbuf_text(&name), (long long)at, cta->rank);
        strbuf_free(&name);
        return false;
    }
    if (mc->wants >> MEV_read & 1)
        engine_event(mc, e, cta, o->obj, at, (int64_t)bytes, false);
    return check_proxy(mc, e->warp, ALL_LANES, e->op, cta, at, bytes);
}

/* `count` elements that are side by side before the swizzle, which keeps 16
 * bytes together; two such chunks that are neighbours behind it are one access.
 */
static bool fetch_row(Machine *mc, Effect *e, const MmaOperand *o,
                      int64_t element, int64_t count, float *out, size_t step)
{
    const unsigned char *smem = e->warp->cta->smem;
    int64_t size = o->obj->elem_bytes;
    int64_t byte = o->obj->offset + element * size, left = count * size;
    while (left > 0) {
        int64_t at = shared_address(o->obj->swizzle, byte);
        int64_t n = 16 - byte % 16, first = at;
        n = n < left ? n : left;
        decode(o->obj->elem, smem + at, (size_t)(n / size), out, step);
        out += (size_t)(n / size) * step;
        byte += n;
        left -= n;
        int64_t next = shared_address(o->obj->swizzle, byte);
        if (left >= 16 && n == 16 && (next == at + 16 || next == at - 16)) {
            decode(o->obj->elem, smem + next, (size_t)(16 / size), out, step);
            out += (size_t)(16 / size) * step;
            first = next < at ? next : at;
            byte += 16;
            left -= 16;
            n = 32;
        }
        if (!read_span(mc, e, o, first, (size_t)n))
            return false;
    }
    return true;
}

static int64_t operand_base(const MmaOperand *o)
{
    int64_t at = 0;
    for (unsigned d = 0; d < o->obj->rank; d++)
        at += o->index[d] * o->obj->stride[d];
    return at;
}

/* The type of the values that A has in registers. */
static ScalarType a_type(const Effect *e)
{
    return e->op->operands[1].kind == OPND_value
               ? e->op->operands[1].u.value->type->elem
               : e->a.obj->elem;
}

/* Registers of A from a_slot on, as a 16 x k tile in the hardware's order:
 * lane 4 r + c holds, for row half h and column half g, consecutive elements
 * of row r + 8 h. */
static bool gather_a_frag(Machine *mc, Effect *e, float *a)
{
    int64_t pair = e->k / 8;
    ScalarType t = a_type(e);
    for (int64_t r = 0; r < WARP_ROWS; r++)
        for (int64_t c = 0; c < e->k; c++) {
            unsigned lane = (unsigned)(4 * (r % 8) + c / pair % 4);
            int64_t slot = e->a_slot + c % pair + pair * (r / 8) +
                           2 * pair * (c / (4 * pair));
            if (slot >= e->a.frag->n || !(e->a.frag->live[slot] >> lane & 1))
                return machine_fail(mc, e->warp, 1u << lane, e->op, "poison",
                                    "reads register %lld of A, which was never "
                                    "written",
                                    (long long)slot);
            double x = e->a.frag->x[slot * WARP_LANES + lane];
            a[r * e->k + c] =
                t == TY_f32 ? scalar_tf32_truncate((float)x) : (float)x;
        }
    return true;
}

static bool gather_a(Machine *mc, Effect *e, float *a)
{
    if (e->a.frag)
        return gather_a_frag(mc, e, a);
    const int64_t *stride = e->a.obj->stride;
    int64_t s0 = stride[e->a.dim[0]], s1 = stride[e->a.dim[1]];
    int64_t row = e->a.transposed ? s1 : s0, col = e->a.transposed ? s0 : s1;
    int64_t base = operand_base(&e->a) + e->warp->index % 4 * WARP_ROWS * row;
    if (row == 1 && col != 1) {
        for (int64_t c = 0; c < e->k; c++)
            if (!fetch_row(mc, e, &e->a, base + c * col, WARP_ROWS, &a[c],
                           (size_t)e->k))
                return false;
        return true;
    }
    for (int64_t r = 0; r < WARP_ROWS; r++)
        for (int64_t c = 0; c < e->k; c += col == 1 ? e->k : 1)
            if (!fetch_row(mc, e, &e->a, base + r * row + c * col,
                           col == 1 ? e->k : 1, &a[r * e->k + c], 1))
                return false;
    return true;
}

static bool gather_b(Machine *mc, Effect *e, float *b)
{
    const int64_t *stride = e->b.obj->stride;
    bool t = e->b.transposed;
    int64_t outer = t ? stride[e->b.dim[0]] : 0;
    int64_t col = stride[e->b.dim[t ? 2 : 0]], row = stride[e->b.dim[1]];
    int64_t base = operand_base(&e->b);
    bool by_col = col == 1 && row != 1; /* columns are side by side */
    int64_t run = row == 1 ? e->k : 1, wide = by_col ? FMA_PANEL : 1;
    for (int64_t n = 0; n < e->n; n += wide)
        for (int64_t k = 0; k < e->k; k += run) {
            int64_t at =
                base + k * row + (t ? n / 64 * outer + n % 64 * col : n * col);
            int64_t count = wide < e->n - n ? wide : e->n - n;
            if (!fetch_row(mc, e, &e->b, at, by_col ? count : run,
                           &b[fma_b_index((size_t)e->k, (size_t)k, (size_t)n)],
                           by_col ? 1 : FMA_PANEL))
                return false;
        }
    return true;
}

static bool gather_d(Machine *mc, Effect *e, const TileMap *map, float *d,
                     size_t stride)
{
    if (e->scale_d && e->d_in->packed && e->d_in->map == map) {
        memcpy(d, e->d_in->tile, WARP_ROWS * stride * sizeof *d);
        return true;
    }
    memset(d, 0, WARP_ROWS * stride * sizeof *d);
    if (!e->scale_d)
        return true;
    frag_settle(e->d_in);
    for (int64_t i = 0; i < map->n; i++) {
        int64_t slot = map->slot[i];
        unsigned lane = map->lane[i];
        if (slot >= e->d_in->n || !(e->d_in->live[slot] >> lane & 1))
            return machine_fail(mc, e->warp, 1u << lane, e->op, "poison",
                                "adds to register %lld of the accumulator, "
                                "which was never written",
                                (long long)slot);
        d[(size_t)(i / map->cols) * stride + (size_t)(i % map->cols)] =
            (float)e->d_in->x[slot * WARP_LANES + lane];
    }
    return true;
}

/* Accumulation in a type other than f32: each product and sum is rounded. */
static void multiply_rounded(const Effect *e, ScalarType t, const float *a,
                             const float *b, float *d, size_t stride)
{
    size_t k = (size_t)e->k;
    for (size_t r = 0; r < WARP_ROWS; r++)
        for (size_t n = 0; n < (size_t)e->n; n++)
            for (size_t i = 0; i < k; i++)
                d[r * stride + n] = (float)value_fma(
                    t, (double)a[r * k + i], (double)b[fma_b_index(k, i, n)],
                    (double)d[r * stride + n]);
}

static bool multiply(Machine *mc, Effect *e)
{
    float a[WARP_ROWS * MMA_MAX_K], b[MMA_MAX_N * MMA_MAX_K];
    size_t stride = fma_padded((size_t)e->n);
    const Type *type = e->op->operands[0].u.value->type;
    const TileMap *map = tile_map(mc, e->warp, e->op, type->mem);
    memset(b, 0, stride * (size_t)e->k * sizeof *b);
    if (!e->d_out->tile)
        e->d_out->tile = ARENA_ARRAY(mc->arena, float, WARP_ROWS *MMA_MAX_N);
    float *d = e->d_out->tile;
    if (!map || !gather_a(mc, e, a) || !gather_b(mc, e, b) ||
        !gather_d(mc, e, map, d, stride))
        return false;
    if (type->elem == TY_f32)
        fma_f32(WARP_ROWS, (size_t)e->n, (size_t)e->k, a, b, d);
    else
        multiply_rounded(e, type->elem, a, b, d, stride);
    for (size_t i = 0; i < WARP_ROWS * stride; i++)
        d[i] = d[i] == d[i] ? d[i] : scalar_f32_from_bits(0x7fffffffu);
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
