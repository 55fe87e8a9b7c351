/* Copies of a warp that go element by element: register tiles and vectors from
 * and to memory, and memory to memory.
 *
 * Each register of a tile is one load or store, whose index is an expression
 * of the lane. Of an element that several lanes have, the first one stores. In
 * a copy between memories the lanes take neighbours. */
#include "passes/lower/tile.h"

enum { MAX_INTERVALS = 3 };

/* The tile argument and the window on the other side. */
typedef struct TileCopy {
    Lower *L;
    Op *op;
    const Instr *in;
    Frag *frag;
    const Mem *mem;
    Spread spread;
    const Access *window;
    ScalarType window_elem;
    bool transposed;
} TileCopy;

static bool open_copy(TileCopy *c, Lower *L, Op *op, const Instr *in,
                      const char *tile, const char *window)
{
    unsigned t = instr_param(in, tile), w = instr_param(in, window);
    const Access *a = op->operands[t].u.access;
    int64_t slot;
    c->L = L;
    c->op = op;
    c->in = in;
    c->mem = lower_mem(L, a->base);
    c->frag = frag_get(L, a, op->loc, &slot);
    if (!c->frag || !frag_ready(L, c->frag, op->loc))
        return false;
    if (!spread_of(L, c->mem, &c->spread)) {
        lower_error(L, op->loc, "instruction",
                    "'%s' copies a register tile, but the memory of '%s' "
                    "states no map of elements to threads that fills the "
                    "registers of a warp",
                    in->name, in->params[t].name);
        return false;
    }
    c->window = lower_access(L, op->operands[w].u.access);
    c->window_elem = in->params[w].elem;
    return true;
}

/* The window's element (row, col): at one interval (row), at two (row, col), or
 * (col, row) when transposed, at three (col / inner, row, col % inner). */
static Access *window_element(Lower *L, const Access *window, const Affine *row,
                              const Affine *col, bool transposed)
{
    ExprCtx *x = L->m->exprs;
    Access *a = access_new(L->m, window->base);
    AccessDim *at[MAX_INTERVALS];
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++) {
        a->dims[i] = window->dims[i];
        if (a->dims[i].kind == DIM_interval && n < MAX_INTERVALS)
            at[n++] = &a->dims[i];
    }
    const Affine *index[MAX_INTERVALS] = { transposed ? col : row,
                                           transposed ? row : col, NULL };
    int64_t inner;
    if (n == 3 && affine_is_const(at[2]->len, &inner)) {
        index[0] = affine_floordiv(x, col, inner);
        index[1] = row;
        index[2] = affine_mod(x, col, inner);
    }
    for (unsigned i = 0; i < n; i++)
        *at[i] = (AccessDim){ .kind = DIM_point,
                              .lo = affine_add(x, at[i]->lo, index[i]) };
    return a;
}

static Access *slot_access(const TileCopy *c, int64_t slot)
{
    const LaneElements *e = &c->spread.slots[slot];
    const Affine *row = spread_index(c->L, e, 0);
    const Affine *col = spread_index(c->L, e, 1);
    if (row && col)
        return window_element(c->L, c->window, row, col, c->transposed);
    lower_error(c->L, c->op->loc, "instruction",
                "the map of memory '%s' is no sum of multiples of the lane's "
                "bits, which element-wise copies need",
                c->mem->ref->name);
    return NULL;
}

static Value *cast_to(Lower *L, Value *v, ScalarType elem)
{
    if (v->type->elem == elem)
        return v;
    Op *op = lower_emit(L, OP_arith_cast, 1, 1, 0);
    op->operands[0] = opnd_value(v);
    return op_set_result(L->m, op, 0, type_scalar(L->ctx, elem), NULL);
}

/* flags: of the parameter, ACC_REDUCE and ACC_ATOMIC. */
static void emit_store(Lower *L, Access *a, Value *v, unsigned flags)
{
    Op *store = lower_emit(L, flags & ACC_REDUCE ? OP_mem_reduce : OP_mem_store,
                           2, 0, 0);
    store->operands[0] = opnd_access(a);
    store->operands[1] = opnd_value(v);
    if (flags & ACC_ATOMIC)
        op_set_bool(L->m, store, "atomic", true);
}

static Value *emit_load(Lower *L, Access *a, ScalarType elem)
{
    Op *load = lower_emit(L, OP_mem_load, 1, 1, 0);
    load->operands[0] = opnd_access(a);
    return op_set_result(L->m, load, 0, type_scalar(L->ctx, elem), NULL);
}

/* ---- registers to memory ------------------------------------------------- */

/* A block for the lanes that have the first copy of their elements. */
static Block *first_copies(const TileCopy *c)
{
    Lower *L = c->L;
    ExprCtx *x = L->m->exprs;
    if (c->mem->n_copies == 1)
        return L->out;
    const Affine *copy = affine_mod(
        x, affine_floordiv(x, affine_var(x, L->dev->lane), c->mem->copy_pitch),
        c->mem->n_copies);
    Op *only = lower_emit(L, OP_ctl_if, 1, 0, 1);
    only->operands[0] =
        opnd_cond(cond_cmp(x, CMP_eq, copy, affine_const(x, 0)));
    return only->blocks[0];
}

static void store_elements(Lower *L, Op *op, const Instr *in, bool transposed)
{
    TileCopy c = { .transposed = transposed };
    if (!open_copy(&c, L, op, in, "src", "dst"))
        return;
    unsigned flags = in->params[instr_param(in, "dst")].flags;
    frag_force(L, c.frag);
    Block *outer = L->out;
    L->out = first_copies(&c);
    for (int64_t slot = 0; slot < c.spread.n_slots; slot++) {
        FragPart part = { c.frag, slot, 1 };
        Access *a = slot_access(&c, slot);
        if (!a)
            break;
        Value *v = cast_to(L, frag_part_slot(L, &part), c.window_elem);
        emit_store(L, a, v, flags);
    }
    L->out = outer;
}

void lower_tile_store_elements(Lower *L, Op *op, const Instr *in)
{
    store_elements(L, op, in, false);
}

void lower_tile_store_transposed(Lower *L, Op *op, const Instr *in)
{
    store_elements(L, op, in, true);
}

/* ---- memory to registers ------------------------------------------------- */

void lower_tile_load(Lower *L, Op *op, const Instr *in)
{
    TileCopy c = { .transposed = false };
    if (!open_copy(&c, L, op, in, "dst", "src"))
        return;
    for (int64_t slot = 0; slot < c.spread.n_slots; slot++) {
        FragPart part = { c.frag, slot, 1 };
        Access *a = slot_access(&c, slot);
        if (!a)
            return;
        Value *v = emit_load(L, a, c.window_elem);
        frag_part_put(L, &part, cast_to(L, v, c.frag->type->elem));
    }
}

/* ---- memory to memory ---------------------------------------------------- */

void lower_warp_copy(Lower *L, Op *op, const Instr *in)
{
    ExprCtx *x = L->m->exprs;
    unsigned dst = instr_param(in, "dst"), src = instr_param(in, "src");
    const Access *to = lower_access(L, op->operands[dst].u.access);
    const Access *from = lower_access(L, op->operands[src].u.access);
    const int64_t *shape = in->params[dst].shape;
    int64_t elements = shape[0] * shape[1];
    if (elements % SPREAD_LANES) {
        lower_error(L, op->loc, "instruction",
                    "'%s' copies by the lanes of a warp, expected a multiple "
                    "of 32 elements, found %lld",
                    in->name, (long long)elements);
        return;
    }
    for (int64_t part = 0; part < elements; part += SPREAD_LANES) {
        const Affine *e =
            affine_add_const(x, affine_var(x, L->dev->lane), part);
        const Affine *row = affine_floordiv(x, e, shape[1]);
        const Affine *col = affine_mod(x, e, shape[1]);
        Value *v = emit_load(L, window_element(L, from, row, col, false),
                             in->params[src].elem);
        emit_store(L, window_element(L, to, row, col, false),
                   cast_to(L, v, in->params[dst].elem), in->params[dst].flags);
    }
}

/* ---- sums over a cluster ------------------------------------------------- */

enum {
    QUAD = 4,      /* elements of 32 bits that one load takes */
    MAX_LOADS = 16 /* of a lane, under way together: 64 registers */
};

/* One instance of Sm90_cluster_reduce_f32: dst[c, i, j] is the sum over d of
 * src[d, pitch * c + i, j], CTA c's part of it in c's shared memory. */
typedef struct ClusterSum {
    Lower *L;
    int64_t n_cta, stride, rows, cols;
    const Affine *first; /* the group's CTA 0 */
    const Affine *row0;  /* this CTA's first row in src */
    const Access *src, *dst;
    ScalarType elem; /* of dst, and its parameter's flags */
    unsigned flags;
} ClusterSum;

/* The four elements from (row, col) on, as CTA d of the group has them. */
static Op *load_quad(const ClusterSum *s, const Affine *row, const Affine *col,
                     int64_t d)
{
    Lower *L = s->L;
    ExprCtx *x = L->m->exprs;
    Access *a = window_element(L, s->src, row, col, false);
    a->dims[a->rank - 1].kind = DIM_interval;
    a->dims[a->rank - 1].len = affine_const(x, QUAD);
    Op *load = lower_emit(L, OP_async_cluster_load, 2, QUAD, 0);
    load->operands[0] = opnd_access(a);
    load->operands[1] =
        opnd_index(affine_add_const(x, s->first, d * s->stride));
    for (unsigned i = 0; i < QUAD; i++)
        op_set_result(L->m, load, i, type_scalar(L->ctx, TY_f32), NULL);
    return load;
}

static Value *emit_sum(Lower *L, Value *a, Value *b)
{
    Op *add = lower_emit(L, OP_arith_add, 2, 1, 0);
    add->operands[0] = opnd_value(a);
    add->operands[1] = opnd_value(b);
    return op_set_result(L->m, add, 0, a->type, NULL);
}

static Value *emit_zero(Lower *L)
{
    Op *zero = lower_emit(L, OP_arith_const, 0, 1, 0);
    op_set_param(L->m, zero, "value", &(Param){ .kind = PARAM_float });
    return op_set_result(L->m, zero, 0, type_scalar(L->ctx, TY_f32), NULL);
}

/* The sums of a lane's quad `part`, from all CTAs. */
typedef struct QuadLoads {
    const Affine *row, *col;
    Op *loads[MAX_LOADS];
} QuadLoads;

static void load_quads(const ClusterSum *s, int64_t part, QuadLoads *q)
{
    Lower *L = s->L;
    ExprCtx *x = L->m->exprs;
    const Affine *e = affine_add_const(x, affine_var(x, L->dev->lane), part);
    q->row = affine_floordiv(x, e, s->cols / QUAD);
    q->col = affine_scale(x, affine_mod(x, e, s->cols / QUAD), QUAD);
    for (int64_t d = 0; d < s->n_cta; d++)
        q->loads[d] = load_quad(s, affine_add(x, q->row, s->row0), q->col, d);
}

/* In the order of the body, from zero on. */
static void store_sums(const ClusterSum *s, const QuadLoads *q)
{
    Lower *L = s->L;
    for (unsigned i = 0; i < QUAD; i++) {
        Value *sum = emit_zero(L);
        for (int64_t d = 0; d < s->n_cta; d++)
            sum = emit_sum(L, sum, q->loads[d]->results[i]);
        const Affine *col = affine_add_const(L->m->exprs, q->col, i);
        emit_store(L, window_element(L, s->dst, q->row, col, false),
                   cast_to(L, sum, s->elem), s->flags);
    }
}

static bool fits_lanes(Lower *L, Op *op, const Instr *in, const ClusterSum *s)
{
    if (s->n_cta <= MAX_LOADS && s->cols % QUAD == 0 &&
        in->params[instr_param(in, "src")].elem == TY_f32)
        return true;
    lower_error(L, op->loc, "instruction",
                "'%s' adds rows of f32 of %d CTAs at most by the lanes of a "
                "warp, four elements a lane; expected columns in fours, found "
                "%lld x %lld",
                in->name, MAX_LOADS, (long long)s->rows, (long long)s->cols);
    return false;
}

/* Each lane's of the quads first to end; as many loads as MAX_LOADS are under
 * way together. */
static void sum_quads(const ClusterSum *s, int64_t first, int64_t end)
{
    int64_t most = MAX_LOADS / s->n_cta;
    QuadLoads *q = ARENA_ARRAY(s->L->scratch, QuadLoads, most);
    while (first < end) {
        int64_t n = 0;
        for (; n < most && first < end; n++, first += SPREAD_LANES)
            load_quads(s, first, &q[n]);
        for (int64_t i = 0; i < n; i++)
            store_sums(s, &q[i]);
    }
}

/* The last few quads are those of as many lanes. */
static void sum_last_quads(const ClusterSum *s, int64_t first, int64_t end)
{
    Lower *L = s->L;
    ExprCtx *x = L->m->exprs;
    Op *only = lower_emit(L, OP_ctl_if, 1, 0, 1);
    only->operands[0] = opnd_cond(cond_cmp(
        x, CMP_lt, affine_var(x, L->dev->lane), affine_const(x, end - first)));
    Block *outer = L->out;
    L->out = only->blocks[0];
    sum_quads(s, first, end);
    L->out = outer;
}

void lower_cluster_reduce(Lower *L, Op *op, const Instr *in)
{
    ExprCtx *x = L->m->exprs;
    unsigned dst = instr_param(in, "dst"), src = instr_param(in, "src");
    int64_t stride = instr_targ_int(in, "cta_stride");
    int64_t n_cta = instr_targ_int(in, "ncta");
    const Affine *cta = affine_var(x, L->dev->cta);
    const Affine *which = affine_mod(x, affine_floordiv(x, cta, stride), n_cta);
    ClusterSum s = {
        .L = L,
        .n_cta = n_cta,
        .stride = stride,
        .rows = in->params[dst].shape[1],
        .cols = in->params[dst].shape[2],
        .first = affine_sub(x, cta, affine_scale(x, which, stride)),
        .row0 = affine_scale(x, which, instr_targ_int(in, "pitch")),
        .src = lower_access(L, op->operands[src].u.access),
        .dst = lower_access(L, op->operands[dst].u.access),
        .elem = in->params[dst].elem,
        .flags = in->params[dst].flags,
    };
    if (!fits_lanes(L, op, in, &s))
        return;
    int64_t quads = s.rows * s.cols / QUAD;
    int64_t whole = quads / SPREAD_LANES * SPREAD_LANES;
    sum_quads(&s, 0, whole);
    if (whole < quads)
        sum_last_quads(&s, whole, quads);
}
