/* Instruction calls: a hook where the entry names one, else its PTX.
 *
 * A hook turns one call into async ops. It reads the instance for everything
 * it needs; no instruction is known by name here, only hooks are. */
#include "passes/lower/lower.h"
#include "passes/lower/tile.h"

#include "ir/cache_hint.h"

#include <string.h>

typedef void (*HookFn)(Lower *L, Op *op, const Instr *in);

static Access *arg_access(Lower *L, const Op *op, unsigned i)
{
    return lower_access(L, op->operands[i].u.access);
}

/* ---- bulk tensor copies -------------------------------------------------- */

/* The box's extents: intervals as they are, a point is one element. */
static void points_to_intervals(Lower *L, Access *a)
{
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_point) {
            a->dims[i].kind = DIM_interval;
            a->dims[i].len = affine_const(L->m->exprs, 1);
        }
}

static AccessDim *first_interval(Access *a)
{
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            return &a->dims[i];
    panic("a copy without an interval");
}

/* A rule that is broken: a box begins a row further. */
static void move_first(Lower *L, Access *a, bool wrong)
{
    AccessDim *d = first_interval(a);
    if (wrong)
        d->lo = affine_add_const(L->m->exprs, d->lo, 1);
}

/* Narrows the first interval of a to part `which` of n. */
static void take_part(Lower *L, Access *a, const Affine *which, int64_t n)
{
    ExprCtx *x = L->m->exprs;
    AccessDim *d = first_interval(a);
    int64_t len;
    if (!affine_is_const(d->len, &len))
        panic("a multicast of no constant size");
    d->lo = affine_add(x, d->lo, affine_scale(x, which, len / n));
    d->len = affine_const(x, len / n);
}

/* The entry's template parameter cache_hint, where it has one. */
static void take_cache_hint(Lower *L, Op *copy, const Instr *in)
{
    int64_t policy;
    const Param *hint = param_find(in->n_targs, in->targs, "cache_hint");
    if (!hint || !hint->s || !strcmp(hint->s, CACHE_HINT_NONE))
        return;
    if (cache_hint_policy(hint->s, &policy))
        op_set_str(L->m, copy, "cache_hint", hint->s);
    else
        lower_error(L, copy->loc, "instruction",
                    "'%s' has the cache_hint '%s', which is no eviction "
                    "priority of PTX such as 'evict_first'",
                    in->name, hint->s);
}

static const ParSync *trailing_sync(Lower *L, Op *op, const Instr *in)
{
    const ParSync *s = par_sync(L->pi, op);
    if (!s)
        lower_error(L, op->loc, "barrier", "'%s' needs a trailing barrier",
                    in->name);
    return s;
}

/* What the CTA's own mbarrier is to count. */
static void emit_expect(Lower *L, Access *bar, int64_t bytes)
{
    Op *expect = lower_emit(L, OP_async_mbarrier_expect_tx, 1, 0, 0);
    expect->operands[0] = opnd_access(bar);
    op_set_int(L->m, expect, "bytes",
               LOWER_WRONG(L, "bytes") ? bytes / 2 : bytes);
}

/* This CTA's number among the n that stand cta_stride apart. */
static const Affine *rank_in_group(Lower *L, const Instr *in, int64_t n)
{
    ExprCtx *x = L->m->exprs;
    int64_t stride = instr_targ_int(in, "cta_stride");
    const Affine *cta = affine_var(x, L->dev->cta);
    return affine_mod(x, affine_floordiv(x, cta, stride), n);
}

static bool note_rounding(Op *op, void *user)
{
    bool *rounds = user;
    *rounds |= op->code == OP_arith_tf32_rn;
    return true;
}

/* What is loaded is what the body says: rounded where the map rounds. */
static bool rounds_as_map(Lower *L, const Op *op, const Instr *in,
                          const Access *from)
{
    const MemRef *ref = value_root(from->base)->type->mem;
    bool map = lib_rounds_tf32(L->m->lib, ref), body = false;
    op_walk(in->body, note_rounding, &body);
    if (map != body)
        lower_error(L, op->loc, "instruction",
                    "the body of '%s' %s, but a load through its tensor map %s",
                    in->name, body ? "rounds with tf32_rn" : "copies",
                    map ? "rounds" : "does not");
    return map == body;
}

static void emit_load(Lower *L, Op *op, const Instr *in, int64_t n_cta)
{
    unsigned dst = instr_param(in, "dst"), src = instr_param(in, "src");
    const ParSync *s = trailing_sync(L, op, in);
    if (!s)
        return;
    Access *to = arg_access(L, op, dst), *from = arg_access(L, op, src);
    if (n_cta > 1) {
        const Affine *which = rank_in_group(L, in, n_cta);
        take_part(L, to, which, n_cta);
        take_part(L, from, which, n_cta);
    }
    if (!rounds_as_map(L, op, in, from))
        return;
    points_to_intervals(L, from);
    move_first(L, from, LOWER_WRONG(L, "load-rows"));
    Access *bar = lower_barrier(L, s);
    Block *outer = L->out;
    L->out = lower_elect(L);
    emit_expect(L, bar, in->params[dst].bytes / n_cta);
    Op *load = lower_emit(L, OP_async_bulk_tensor_load, 3, 0, 0);
    load->operands[0] = opnd_access(to);
    load->operands[1] = opnd_access(from);
    load->operands[2] = opnd_access(lower_barrier(L, s));
    lower_cta_xor(L, load, s);
    take_cache_hint(L, load, in);
    L->out = outer;
}

static void hook_tma_load(Lower *L, Op *op, const Instr *in)
{
    emit_load(L, op, in, 1);
}

static void hook_tma_load_multicast(Lower *L, Op *op, const Instr *in)
{
    emit_load(L, op, in, instr_targ_int(in, "ncta"));
}

/* To each CTA of the group its rows, this CTA's own last. */
static void emit_sends(Lower *L, Op *op, const Instr *in, const ParSync *s,
                       int64_t n)
{
    ExprCtx *x = L->m->exprs;
    const Affine *own = rank_in_group(L, in, n);
    for (int64_t k = 1; k <= n; k++) {
        const Affine *other = affine_mod(x, affine_add_const(x, own, k), n);
        const Affine *away = affine_scale(x, affine_sub(x, other, own),
                                          instr_targ_int(in, "cta_stride"));
        Access *to = arg_access(L, op, instr_param(in, "dst"));
        Access *from = arg_access(L, op, instr_param(in, "src"));
        take_part(L, to, own, n);
        take_part(L, from, other, n);
        move_first(L, from, LOWER_WRONG(L, "load-rows"));
        Op *copy = lower_emit(L, OP_async_bulk_copy, 4, 0, 0);
        copy->operands[0] = opnd_access(to);
        copy->operands[1] = opnd_access(from);
        copy->operands[2] = opnd_access(lower_barrier(L, s));
        copy->operands[3] =
            opnd_index(affine_add(x, affine_var(x, L->dev->cta), away));
    }
}

static void hook_tma_scatter(Lower *L, Op *op, const Instr *in)
{
    int64_t n = instr_targ_int(in, "ncta");
    const ParSync *s = trailing_sync(L, op, in);
    if (!s)
        return;
    Access *bar = lower_barrier(L, s);
    Block *outer = L->out;
    L->out = lower_elect(L);
    emit_expect(L, bar, in->params[instr_param(in, "dst")].bytes / n);
    emit_sends(L, op, in, s, n);
    L->out = outer;
}

static Op *emit_bulk_out(Lower *L, Op *op, const Instr *in, OpCode code)
{
    Access *to = arg_access(L, op, instr_param(in, "dst"));
    Access *from = arg_access(L, op, instr_param(in, "src"));
    points_to_intervals(L, to);
    move_first(L, to, LOWER_WRONG(L, "store-rows"));
    Block *outer = L->out;
    L->out = lower_elect(L);
    Op *store = lower_emit(L, code, 2, 0, 0);
    store->operands[0] = opnd_access(to);
    store->operands[1] = opnd_access(from);
    L->out = outer;
    return store;
}

static void hook_tma_store(Lower *L, Op *op, const Instr *in)
{
    take_cache_hint(L, emit_bulk_out(L, op, in, OP_async_bulk_tensor_store),
                    in);
}

static void hook_tma_reduce_add(Lower *L, Op *op, const Instr *in)
{
    Op *store = emit_bulk_out(L, op, in, OP_async_bulk_tensor_reduce);
    op_set_str(L->m, store, "op", "add");
    take_cache_hint(L, store, in);
}

/* ---- wgmma --------------------------------------------------------------- */

enum { WGMMA_K_BYTES = 32 }; /* of K in one instruction: PTX ISA, wgmma */

static Frag *frag_arg(Lower *L, Op *op, unsigned i)
{
    int64_t slot;
    return frag_get(L, op->operands[i].u.access, op->loc, &slot);
}

static void hook_wgmma_zero(Lower *L, Op *op, const Instr *in)
{
    Frag *f = frag_arg(L, op, instr_param(in, "D"));
    if (f)
        frag_set_zero(L, f);
}

/* The interval that runs along K: the last of a K-major operand (rank 2 in
 * intervals, `other` being the extent across), else the one before it. */
static AccessDim *k_dim(Access *a, int64_t k)
{
    AccessDim *last = NULL, *before = NULL;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval) {
            before = last;
            last = &a->dims[i];
        }
    int64_t len;
    if (last && affine_is_const(last->len, &len) && len == k)
        return last;
    return before;
}

static Operand wgmma_a(Lower *L, Op *op, const Instr *in, int64_t step,
                       int64_t k, bool transposed)
{
    unsigned i = instr_param(in, "A");
    if (lower_in_registers(L, op->operands[i].u.access->base)) {
        Frag *f = frag_arg(L, op, i);
        return opnd_value(f ? frag_force(L, f) : NULL);
    }
    Access *a = arg_access(L, op, i);
    int64_t all = instr_targ_int(in, "K");
    AccessDim *d = transposed ? first_interval(a) : k_dim(a, all);
    d->lo = affine_add_const(L->m->exprs, d->lo, step * k);
    d->len = affine_const(L->m->exprs, k);
    return opnd_access(a);
}

static Operand wgmma_b(Lower *L, Op *op, const Instr *in, int64_t step,
                       int64_t k, bool transposed)
{
    Access *b = arg_access(L, op, instr_param(in, "B"));
    int64_t all = instr_targ_int(in, "K");
    AccessDim *d = k_dim(b, all);
    if (transposed) {
        unsigned seen = 0;
        for (unsigned i = 0; i < b->rank; i++)
            if (b->dims[i].kind == DIM_interval && seen++ == 1)
                d = &b->dims[i];
    }
    d->lo = affine_add_const(L->m->exprs, d->lo, step * k);
    d->len = affine_const(L->m->exprs, k);
    return opnd_access(b);
}

static int64_t wgmma_n(const Instr *in)
{
    for (unsigned i = 0; i < in->n_targs; i++) {
        const Param *p = &in->targs[i];
        if (p->kind == PARAM_int && !strcmp(p->name, "N"))
            return p->i;
        if (p->kind == PARAM_int && !strcmp(p->name, "N64") && p->i < 64)
            return 64 * p->i;
    }
    return 0;
}

static void hook_wgmma(Lower *L, Op *op, const Instr *in)
{
    Frag *d = frag_arg(L, op, instr_param(in, "D"));
    if (!d)
        return;
    const InstrParam *a = &in->params[instr_param(in, "A")];
    const InstrParam *b = &in->params[instr_param(in, "B")];
    int64_t k = WGMMA_K_BYTES / (int64_t)scalar_type_bytes(b->elem);
    int64_t steps = instr_targ_int(in, "K") / k, n = wgmma_n(in);
    bool a_regs = lower_in_registers(
        L, op->operands[instr_param(in, "A")].u.access->base);
    if (steps < 1 || n < 1) {
        lower_error(L, op->loc, "instruction",
                    "'%s' lowers by wgmma, which needs K of %lld or more and "
                    "a template parameter N or N64",
                    in->name, (long long)k);
        return;
    }
    bool a_across = !a_regs && a->rank == 2 && a->shape[1] == 64 &&
                    a->shape[0] == steps * k && strstr(in->name, "_col_");
    for (int64_t s = 0; s < steps; s++) {
        Value *before = frag_value(L, d);
        const Cond *scale =
            LOWER_WRONG(L, "scale-d") ? cond_bool(L->m->exprs, false) : d->live;
        Operand from_a = wgmma_a(L, op, in, s, k, a_across);
        int64_t step = LOWER_WRONG(L, "k-step") ? 0 : s;
        Operand from_b = wgmma_b(L, op, in, step, k, b->rank == 3);
        if (L->failed)
            return;
        Op *mma = lower_emit(L, OP_async_wgmma_mma_async, 4, 1, 0);
        mma->operands[0] = opnd_value(before);
        mma->operands[1] = from_a;
        mma->operands[2] = from_b;
        mma->operands[3] = opnd_cond(scale);
        op_set_int(L->m, mma, "n", n);
        op_set_int(L->m, mma, "k", k);
        if (a_regs)
            op_set_int(L->m, mma, "a_slot", s * k / 2);
        frag_set(L, d, op_set_result(L->m, mma, 0, d->type, NULL));
        d->flight = (Flight){ true, true };
        d->flight_block = L->out;
        d->flight_commit = L->commits;
    }
}

/* ---- register tiles ------------------------------------------------------ */

/* Does one async.tile.store do it? */
static bool is_tile_store(ScalarType to, int64_t rows)
{
    return rows == 16 && scalar_type_is_float(to) && to != TY_e8m0;
}

/* The tile in `src` from column col0, if there is one, on; NULL after a
 * report. */
static Op *emit_tile_store(Lower *L, Op *op, const Instr *in, int64_t rows,
                           int64_t cols)
{
    const Param *col0 = param_find(in->n_targs, in->targs, "col0");
    Frag *f = frag_arg(L, op, instr_param(in, "src"));
    if (!f || !frag_ready(L, f, op->loc))
        return NULL;
    Access *a = arg_access(L, op, instr_param(in, "dst"));
    Value *v = frag_force(L, f);
    Op *store = lower_emit(L, OP_async_tile_store, 2, 0, 0);
    store->operands[0] = opnd_access(a);
    store->operands[1] = opnd_value(v);
    op_set_int(L->m, store, "rows", rows);
    op_set_int(L->m, store, "cols", cols);
    op_set_int(L->m, store, "col0",
               col0 && !LOWER_WRONG(L, "col0") ? col0->i : 0);
    return store;
}

static void hook_tile_store(Lower *L, Op *op, const Instr *in)
{
    unsigned dst = instr_param(in, "dst");
    const InstrParam *to = &in->params[dst];
    int64_t cols = to->rank == 3 ? to->shape[0] * to->shape[2] : to->shape[1];
    int64_t rows = to->rank == 3 ? to->shape[1] : to->shape[0];
    const Param *col0 = param_find(in->n_targs, in->targs, "col0");
    if (!col0 && !is_tile_store(to->elem, rows)) {
        lower_tile_store_elements(L, op, in);
        return;
    }
    emit_tile_store(L, op, in, rows, cols);
}

static void hook_tile_store_cols_transposed(Lower *L, Op *op, const Instr *in)
{
    const int64_t *shape = in->params[instr_param(in, "dst")].shape;
    Op *store = emit_tile_store(L, op, in, shape[1], shape[0]);
    if (store)
        op_set_bool(L->m, store, "transposed", true);
}

/* ---- by PTX -------------------------------------------------------------- */

static Value *register_arg(Lower *L, Op *op, unsigned i, bool read)
{
    FragPart part;
    if (!frag_part(L, op->operands[i].u.access, op->loc, &part) ||
        !frag_ready(L, part.frag, op->loc))
        return NULL;
    return frag_part_value(L, &part, read);
}

static Op *lower_by_ptx(Lower *L, Op *op, const Instr *in)
{
    unsigned n_written = 0;
    Operand *operands = ARENA_ARRAY(L->scratch, Operand, in->n_params);
    unsigned *written = ARENA_ARRAY(L->scratch, unsigned, in->n_params);
    for (unsigned i = 0; i < in->n_params; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_index)
            operands[i] = opnd_index(lower_index(L, o->u.index));
        else if (o->kind == OPND_cond)
            operands[i] = opnd_cond(lower_cond(L, o->u.cond));
        else if (o->kind == OPND_value)
            operands[i] = opnd_value(clone_map_get(L->map, o->u.value));
        else if (lower_in_registers(L, o->u.access->base)) {
            unsigned flags = in->params[i].flags;
            operands[i] =
                opnd_value(register_arg(L, op, i, !in->params[i].write_only));
            if (flags & ACC_WRITE)
                written[n_written++] = i;
        } else
            operands[i] = opnd_access(lower_access(L, o->u.access));
    }
    if (L->failed)
        return NULL;
    Op *call = lower_emit(L, OP_async_instr, in->n_params, n_written, 0);
    for (unsigned i = 0; i < in->n_params; i++)
        call->operands[i] = operands[i];
    op_set_attr(L->m, call, *op_attr(op, "callee"));
    if (op_attr(op, "targs"))
        op_set_attr(L->m, call, *op_attr(op, "targs"));
    for (unsigned i = 0; i < n_written; i++) {
        FragPart part;
        const Type *type = operands[written[i]].u.value->type;
        Value *v = op_set_result(L->m, call, i, type, NULL);
        if (frag_part(L, op->operands[written[i]].u.access, op->loc, &part))
            frag_part_set(L, &part, v);
    }
    return call;
}

/* ---- ldmatrix ------------------------------------------------------------ */

/* Lane 8 * q + r of ldmatrix.x4 gives the address of row r of matrix q (PTX
 * ISA, ldmatrix): the window's corner moves with the lane. Matrices stand
 * row-major in the window; operand 'A' takes them column by column, as mma
 * wants them. */
static void hook_ldmatrix(Lower *L, Op *op, const Instr *in)
{
    ExprCtx *x = L->m->exprs;
    unsigned src = instr_param(in, "src");
    int64_t n0 = instr_targ_int(in, "nmat0"), n1 = instr_targ_int(in, "nmat1");
    const Param *operand = param_find(in->n_targs, in->targs, "operand");
    bool by_column = operand && operand->s && !strcmp(operand->s, "A");
    const Affine *lane = affine_var(x, L->dev->lane);
    const Affine *q = affine_floordiv(x, lane, 8);
    const Affine *slow = affine_floordiv(x, q, by_column ? n0 : n1);
    const Affine *fast = affine_mod(x, q, by_column ? n0 : n1);
    const Affine *row = affine_add(
        x, affine_scale(x, by_column ? fast : slow, 8), affine_mod(x, lane, 8));
    int64_t width = in->params[src].shape[1] / n1;
    const Affine *col = affine_scale(x, by_column ? slow : fast, width);
    Op *call = lower_by_ptx(L, op, in);
    if (!call)
        return;
    AccessDim *rows = NULL, *cols = NULL;
    const Operand *from = &call->operands[src];
    Access *a = from->kind == OPND_access ? from->u.access : NULL;
    for (unsigned i = 0; a && i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval) {
            rows = rows ? rows : &a->dims[i];
            cols = &a->dims[i];
        }
    if (!rows || rows == cols) {
        lower_error(L, op->loc, "instruction",
                    "'%s' lowers by ldmatrix, which needs 'src' to be rows "
                    "and columns of a tensor in shared memory",
                    in->name);
        return;
    }
    rows->lo = affine_add(x, rows->lo, row);
    cols->lo = affine_add(x, cols->lo, col);
}

static const struct {
    const char *name;
    HookFn fn;
} hooks[] = {
    { "tma_load", hook_tma_load },
    { "tma_load_multicast", hook_tma_load_multicast },
    { "tma_scatter", hook_tma_scatter },
    { "tma_store", hook_tma_store },
    { "tma_reduce_add", hook_tma_reduce_add },
    { "wgmma", hook_wgmma },
    { "wgmma_zero", hook_wgmma_zero },
    { "tile_store", hook_tile_store },
    { "tile_store_cols_transposed", hook_tile_store_cols_transposed },
    { "tile_store_elements", lower_tile_store_elements },
    { "tile_store_transposed", lower_tile_store_transposed },
    { "tile_load", lower_tile_load },
    { "tile_map", lower_tile_map },
    { "tile_reduce", lower_tile_reduce },
    { "warp_copy", lower_warp_copy },
    { "cluster_reduce", lower_cluster_reduce },
    { "ldmatrix", hook_ldmatrix },
};

void lower_instr(Lower *L, Op *op)
{
    const Instr *in = op_instr(L->m, op);
    if (!in) {
        L->failed = true;
        L->fault.code = "instruction";
        return;
    }
    if (!in->hook) {
        if (in->n_ptx)
            lower_by_ptx(L, op, in);
        else
            lower_error(L, op->loc, "instruction",
                        "instruction '%s' has neither PTX nor a lowering hook",
                        in->name);
        return;
    }
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        if (!strcmp(hooks[i].name, in->hook)) {
            if (hook_fits(L, op, in))
                hooks[i].fn(L, op, in);
            return;
        }
    lower_error(L, op->loc, "instruction",
                "instruction '%s' asks for the lowering hook '%s', which does "
                "not exist",
                in->name, in->hook);
}
