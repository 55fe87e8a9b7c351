/* Which lane and register of a warp holds an element of a tile, and the store
 * of a tile from registers to shared memory. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"

#include <string.h>

/* ---- tile maps ----------------------------------------------------------- */

static bool map_value(const struct Env *env, const Atom *atom, int64_t *out)
{
    const int64_t *index = env->user;
    if (atom->kind != ATOM_var)
        return false;
    *out = index[atom->var];
    return true;
}

static bool fill_map(TileMap *map, const Mem *mem)
{
    int64_t index[8] = { 0 };
    Env env = { .value = map_value, .user = index };
    for (int64_t e = 0; e < map->n; e++) {
        int64_t rest = e, lane, slot;
        for (unsigned d = mem->packed; d-- > 0;) {
            index[d + 1] = rest % mem->packed_shape[d];
            rest /= mem->packed_shape[d];
        }
        if (!affine_eval(mem->map_thread, &env, &lane) ||
            !affine_eval(mem->map_slot, &env, &slot) || lane < 0 ||
            lane >= WARP_LANES || slot < 0 || slot >= mem->n_slots)
            return false;
        map->lane[e] = (unsigned char)lane;
        map->slot[e] = (int32_t)slot;
    }
    return true;
}

static TileMap *make_map(Machine *mc, const MemRef *ref)
{
    const Mem *mem = mc->m->lib && ref ? lib_mem_find(mc->m->lib, ref) : NULL;
    if (!mem || !mem->map_thread || !mem->map_slot || !mem->packed_shape ||
        !mem->packed || mem->packed > 6)
        return NULL;
    TileMap *map = ARENA_NEW(mc->arena, TileMap);
    map->ref = ref;
    map->n = 1;
    map->slots = mem->n_slots;
    for (unsigned d = 0; d < mem->packed; d++)
        map->n *= mem->packed_shape[d];
    map->cols = mem->packed_shape[mem->packed - 1];
    map->rows = map->cols ? map->n / map->cols : 0;
    map->lane = ARENA_ARRAY(mc->arena, unsigned char, map->n);
    map->slot = ARENA_ARRAY(mc->arena, int32_t, map->n);
    return fill_map(map, mem) ? map : NULL;
}

const TileMap *tile_map(Machine *mc, const Warp *w, const Op *op,
                        const MemRef *ref)
{
    for (const TileMap *t = mc->tile_maps; t; t = t->next)
        if (t->ref == ref)
            return t;
    TileMap *map = make_map(mc, ref);
    if (!map) {
        machine_fail(mc, w, 0, op, "machine",
                     "the memory '%s' of the fragment has no map from elements "
                     "to a warp's registers",
                     ref ? ref->name : "none");
        return NULL;
    }
    map->next = mc->tile_maps;
    mc->tile_maps = map;
    return map;
}

/* ---- the tile store ------------------------------------------------------ */

typedef struct TileTarget {
    const MemObj *obj;
    int64_t index[TENSOR_MAX_RANK];
    int dim[3]; /* outer columns (or -1), rows, inner columns of the tile */
    int64_t inner;
} TileTarget;

static bool tile_target(Warp *w, const Op *op, TileTarget *t)
{
    const Access *a = kernel_access(w->machine->k, op->operands[0].u.access);
    int dims[TENSOR_MAX_RANK];
    unsigned n = 0;
    t->obj = warp_access(w, op, a, 0, t->index, NULL);
    if (!t->obj)
        return false;
    for (unsigned d = 0; d < a->rank; d++)
        if (a->dims[d].kind == DIM_interval)
            dims[n++] = (int)d;
    bool transposed = op_attr_int(op, "transposed", 0);
    if (transposed && n == 2) {
        int columns = dims[0];
        dims[0] = dims[1];
        dims[1] = columns;
    }
    if (n < 2 || n > (transposed ? 2 : 3) ||
        !affine_is_const(a->dims[dims[n - 1]].len, &t->inner) || t->inner < 1)
        return machine_fail(w->machine, w, ALL_LANES, op, "machine",
                            "the access must have the intervals (outer "
                            "columns, rows, columns) or (rows, columns), "
                            "transposed (columns, rows)");
    int64_t rows;
    if (!affine_is_const(a->dims[dims[n - 2]].len, &rows) ||
        rows != op_attr_int(op, "rows", 0))
        return machine_fail(w->machine, w, ALL_LANES, op, "bounds",
                            "the access must have as many rows as are "
                            "stored");
    int64_t outer = 1;
    if ((n == 3 && !affine_is_const(a->dims[dims[0]].len, &outer)) ||
        outer * t->inner != op_attr_int(op, "cols", 0))
        return machine_fail(w->machine, w, ALL_LANES, op, "bounds",
                            "the access must have as many columns as are "
                            "stored");
    t->dim[0] = n == 3 ? dims[0] : -1;
    t->dim[1] = dims[n - 2];
    t->dim[2] = dims[n - 1];
    return true;
}

typedef struct TileStore {
    Warp *w;
    const Op *op;
    const TileMap *map;
    const Frag *frag;
    TileTarget to;
} TileStore;

/* How many of n elements from `index` on along dimension `last` are inside a
 * shared object. */
static int64_t fits_shared(const MemObj *o, const int64_t *index, int last,
                           int64_t n)
{
    if (o->space != SPACE_shared)
        return 0;
    for (int d = 0; d < (int)o->rank; d++)
        if (index[d] < 0 || index[d] >= o->extent[d])
            return 0;
    int64_t left = o->extent[last] - index[last];
    return left < n ? left : n;
}

static void target_index(const TileTarget *t, int64_t r, int64_t c,
                         int64_t *index)
{
    memcpy(index, t->index, sizeof t->index);
    if (t->dim[0] >= 0)
        index[t->dim[0]] += c / t->inner;
    index[t->dim[1]] += r;
    index[t->dim[2]] += t->dim[0] >= 0 ? c % t->inner : c;
}

/* Row r, n elements from column c on, which are side by side. */
static bool store_run(const TileStore *s, int64_t r, int64_t c, int64_t n)
{
    Warp *w = s->w;
    Machine *mc = w->machine;
    const TileTarget *t = &s->to;
    const MemObj *o = t->obj;
    ScalarType from = s->op->operands[1].u.value->type->elem;
    int64_t col0 = op_attr_int(s->op, "col0", 0);
    int64_t e = r * s->map->cols + col0 + c, index[TENSOR_MAX_RANK];
    target_index(t, r, c, index);
    int64_t inside = fits_shared(o, index, t->dim[2], n);
    int64_t byte = o->offset, step = o->stride[t->dim[2]] * o->elem_bytes;
    for (unsigned d = 0; d < o->rank; d++)
        byte += index[d] * o->stride[d] * o->elem_bytes;
    if (inside)
        mma_forget(mc, w->cta, byte / 128 * 128, inside * step + 256);
    for (int64_t i = 0; i < n; i++, e++, byte += step, index[t->dim[2]]++) {
        unsigned lane = s->map->lane[e];
        int64_t slot = s->map->slot[e];
        if (slot >= s->frag->n || !(s->frag->live[slot] >> lane & 1))
            return machine_fail(mc, w, 1u << lane, s->op, "poison",
                                "stores element (%lld, %lld) of a tile, which "
                                "was never written",
                                (long long)r, (long long)(col0 + c + i));
        double x =
            value_convert(o->elem, from, s->frag->x[slot * WARP_LANES + lane]);
        if (i < inside) {
            int64_t at = shared_address(o->swizzle, byte);
            shared_store(w->cta, o, at, x);
            spans_add(mc->arena, &mc->lane_spans[lane], at, o->elem_bytes);
            continue;
        }
        Place p;
        if (!place_at(w, s->op, o, index, lane, &p))
            return false;
        place_write(w, &p, x);
        place_event(w, s->op, &p, 1u << lane, true);
    }
    return true;
}

static bool store_tile(const TileStore *s)
{
    const Op *op = s->op;
    const TileMap *map = s->map;
    int64_t rows = op_attr_int(op, "rows", 0),
            cols = op_attr_int(op, "cols", 0);
    int64_t col0 = op_attr_int(op, "col0", 0);
    int64_t run = s->to.dim[0] >= 0 ? s->to.inner : cols;
    bool ok = true;
    if (rows != map->rows || col0 < 0 || cols < 1 || col0 + cols > map->cols)
        return machine_fail(s->w->machine, s->w, ALL_LANES, op, "bounds",
                            "rows and columns leave the %lld x %lld tile",
                            (long long)map->rows, (long long)map->cols);
    for (int64_t r = 0; ok && r < rows; r++)
        for (int64_t c = 0; ok && c < cols; c += run)
            ok = store_run(s, r, c, run);
    for (unsigned l = 0; l < WARP_LANES; l++)
        lane_spans_event(s->w, op, s->to.obj, s->w->cta, l, true);
    return ok;
}

Step exec_tile_store(Warp *w, const Op *op, uint32_t mask)
{
    const Value *v = op->operands[1].u.value;
    TileStore s = { .w = w, .op = op };
    if (!frag_readable(w, op, 1, mask) || !tile_target(w, op, &s.to))
        return STEP_failed;
    s.map = tile_map(w->machine, w, op, v->type->mem);
    s.frag = w->vals[v->id].frag;
    return s.map && store_tile(&s) ? STEP_next : STEP_failed;
}
