/* What SSA values hold in a warp: scalars as 32 lanes, fragments shared by
 * count, ring positions. A move under a mask keeps the other lanes. */
#include "verify/machine/machine_internal.h"

#include "verify/fma.h"

#include <stdlib.h>
#include <string.h>

double *warp_lanes(Warp *w, const Value *v)
{
    Machine *mc = w->machine;
    WarpVal *x = &w->vals[v->id];
    if (x->lanes)
        return x->lanes;
    if (mc->free_lanes.len) {
        x->lanes = mc->free_lanes.data[--mc->free_lanes.len].x;
        memset(x->lanes, 0, WARP_LANES * sizeof *x->lanes);
    } else {
        x->lanes = ARENA_ARRAY(mc->arena, double, WARP_LANES);
    }
    return x->lanes;
}

void warp_drop_lanes(Warp *w, const Op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Value *v = op->operands[i].u.value;
        if (op->operands[i].kind != OPND_value || !w->vals[v->id].lanes ||
            !kernel_ends(w->machine->k, op, v))
            continue;
        FreeLanes free = { w->vals[v->id].lanes };
        VEC_PUSH(w->machine->arena, &w->machine->free_lanes, free);
        w->vals[v->id].lanes = NULL;
    }
}

Frag *frag_new(Machine *mc, int64_t n)
{
    Frag **at = &mc->free_frags;
    while (*at && (*at)->n != n)
        at = &(*at)->next;
    Frag *f = *at;
    if (f) {
        *at = f->next;
    } else {
        f = ARENA_NEW(mc->arena, Frag);
        f->n = n;
        f->live = ARENA_ARRAY(mc->arena, uint32_t, n);
        f->x = ARENA_ARRAY(mc->arena, double, n *WARP_LANES);
    }
    memset(f->live, 0, (size_t)n * sizeof *f->live);
    f->refs = 1;
    f->was_d = false;
    f->packed = false;
    f->next = NULL;
    return f;
}

void frag_drop(Machine *mc, Frag *f)
{
    if (!f || --f->refs > 0)
        return;
    f->next = mc->free_frags;
    mc->free_frags = f;
}

void frag_settle(Frag *f)
{
    if (!f || !f->packed)
        return;
    size_t stride = fma_padded((size_t)f->map->cols);
    const float nan = scalar_f32_from_bits(0x7fffffffu);
    f->packed = false;
    int64_t i = 0;
    for (const float *row = f->tile; i < f->map->n; row += stride)
        for (int64_t c = 0; c < f->map->cols; c++, i++) {
            int64_t slot = f->map->slot[i];
            float x = row[c] == row[c] ? row[c] : nan;
            f->live[slot] |= 1u << f->map->lane[i];
            f->x[slot * WARP_LANES + f->map->lane[i]] = (double)x;
        }
}

void warp_set_frag(Warp *w, const Value *v, Frag *f)
{
    WarpVal *x = &w->vals[v->id];
    frag_drop(w->machine, x->frag);
    x->frag = f;
    x->flight = 0;
    x->unfenced = false;
}

static void move_frag(Warp *w, const WarpVal *from, WarpVal *to, uint32_t lanes,
                      bool whole)
{
    if (!from->frag)
        return;
    if (whole || !to->frag) {
        from->frag->refs++;
        frag_drop(w->machine, to->frag);
        to->frag = from->frag;
        to->flight = from->flight;
        to->unfenced = from->unfenced;
        return;
    }
    frag_settle(from->frag);
    frag_settle(to->frag);
    Frag *f = frag_new(w->machine, from->frag->n);
    for (int64_t s = 0; s < f->n; s++) {
        f->live[s] =
            (from->frag->live[s] & lanes) | (to->frag->live[s] & ~lanes);
        for (unsigned l = 0; l < WARP_LANES; l++)
            f->x[s * WARP_LANES + l] =
                (lanes >> l & 1 ? from->frag : to->frag)->x[s * WARP_LANES + l];
    }
    if (from->flight > to->flight)
        to->flight = from->flight;
    to->unfenced = to->unfenced || from->unfenced;
    frag_drop(w->machine, to->frag);
    to->frag = f;
}

bool warp_move(Warp *w, const Value *from, const Value *to, uint32_t lanes,
               bool whole)
{
    const WarpVal *f = &w->vals[from->id];
    WarpVal *t = &w->vals[to->id];
    if (from == to)
        return true;
    switch (from->type->kind) {
    case TK_scalar: {
        const double *x = warp_lanes(w, from);
        double *y = warp_lanes(w, to);
        FOR_LANES(l, lanes) y[l] = x[l];
        return true;
    }
    case TK_frag:
        move_frag(w, f, t, lanes, whole);
        return true;
    case TK_ring:
        if (!whole && t->position != f->position)
            return false;
        t->position = f->position;
        return true;
    default:
        return false;
    }
}
