/* Register tensors become fragments, SSA values of a thread's registers.
 *
 * A plain register array is one fragment whose slots are its elements; an
 * array of register tiles is a fragment a tile. Indices must be constant once
 * loops are unrolled. A fragment may be zero without a value: a wgmma then
 * ignores its accumulator (scale-d false) instead of reading zeros, which
 * ptxas would answer with serialisation (its note C7515). Where zero-ness
 * depends on a loop's first iteration it is a condition. */
#include "passes/lower/lower.h"

#include "ir/eir.h"

#include <string.h>

static const Cond *truth(Lower *L, bool b)
{
    return cond_bool(L->m->exprs, b);
}

/* The constant index of a register dimension. */
static bool constant_index(Lower *L, const Affine *e, Loc loc, int64_t *out)
{
    const Affine *k = lower_index(L, e);
    if (affine_is_const(k, out))
        return true;
    Diag *d = lower_error(L, loc, "register-index",
                          "a register tensor is indexed by a value that is "
                          "not constant when the loops around it are unrolled");
    diag_fix(L->ctx, d,
             "index registers by constants and by iterators of "
             "sequential loops with constant bounds");
    return false;
}

/* Product of the shard's extents in [from, to); 0 after an error. */
static int64_t shard_count(Lower *L, const ParAlloc *a, unsigned from,
                           unsigned to)
{
    int64_t n = 1, extent;
    for (unsigned i = from; i < to; i++) {
        if (!affine_is_const(a->shard[i], &extent) || extent <= 0 ||
            n > EIR_MAX_FRAG / extent) {
            lower_error(L, a->op->loc, "registers",
                        "register tensor '%s' requires constant shape of at "
                        "most %d elements a thread",
                        a->value->name, EIR_MAX_FRAG);
            return 0;
        }
        n *= extent;
    }
    return n;
}

/* What instructions take of a plain tensor in registers. */
typedef struct InnerDims {
    unsigned most; /* trailing intervals in such an argument */
} InnerDims;

static void note_taken(Lower *L, const Access *at)
{
    const ParAlloc *a = par_alloc(L->pi, at->base);
    unsigned n = 0;
    if (!a || !a->mem)
        return;
    while (n < a->n_shard && at->dims[at->rank - 1 - n].kind == DIM_interval)
        n++;
    InnerDims *d = ptr_map_get(&L->inner_dims, at->base);
    if (!d) {
        d = ARENA_NEW(L->scratch, InnerDims);
        ptr_map_put(L->scratch, &L->inner_dims, at->base, d);
    }
    d->most = n > d->most ? n : d->most;
}

static bool note_inner(Op *op, void *user)
{
    Lower *L = user;
    for (unsigned i = 0; op->code == OP_par_instr && i < op->n_operands; i++)
        if (op->operands[i].kind == OPND_access)
            note_taken(L, access_compose(L->m, op->operands[i].u.access));
    return true;
}

void frag_prepare(Lower *L)
{
    L->inner_dims = (PtrMap){ 0 };
    op_walk(L->dev->op, note_inner, L);
}

/* How many trailing dimensions one fragment holds: the tile of a register tile,
 * what instructions take of a plain array at once, all of it when none does. */
static unsigned inner_dims(Lower *L, const ParAlloc *a)
{
    if (a->mem->map_slot)
        return a->mem->packed;
    const InnerDims *d = ptr_map_get(&L->inner_dims, a->value);
    return d ? d->most : a->n_shard;
}

/* The fragments that there are of an allocation. */
static FragPtrVec *frags_of(Lower *L, const Value *source)
{
    FragPtrVec *list = ptr_map_get(&L->frag_lists, source);
    if (list)
        return list;
    list = ARENA_NEW(L->scratch, FragPtrVec);
    ptr_map_put(L->scratch, &L->frag_lists, source, list);
    return list;
}

static Frag *frag_make(Lower *L, const ParAlloc *a, int64_t tile)
{
    FragPtrVec *list = frags_of(L, a->value);
    for (size_t i = 0; i < list->len; i++)
        if (list->data[i]->tile == tile)
            return list->data[i];
    const Mem *mem = a->mem;
    unsigned inner = inner_dims(L, a);
    int64_t n = mem->map_slot
                    ? mem->n_slots
                    : shard_count(L, a, a->n_shard - inner, a->n_shard);
    Frag *f = ARENA_NEW(L->scratch, Frag);
    f->source = a->value;
    f->tile = tile;
    f->type = type_frag(L->ctx, a->value->type->elem, n ? n : 1,
                        mem->packed ? mem->ref : NULL);
    f->live = truth(L, true);
    f->never_written = true;
    VEC_PUSH(L->scratch, &L->frags, f);
    VEC_PUSH(L->scratch, list, f);
    return f;
}

/* The row-major position of a's indices in the shard's dimensions [from, to),
 * all constant; false after an error. */
static bool flat_index(Lower *L, const ParAlloc *a, const Access *at,
                       unsigned from, unsigned to, Loc loc, int64_t *flat)
{
    *flat = 0;
    for (unsigned i = from; i < to; i++) {
        int64_t extent, index;
        if (!affine_is_const(a->shard[i], &extent) ||
            !constant_index(L, at->dims[a->n_dist + i].lo, loc, &index))
            return false;
        if (index < 0 || index >= extent) {
            lower_error(L, loc, "bounds",
                        "index %lld of register tensor '%s' is outside its "
                        "extent %lld",
                        (long long)index, at->base->name, (long long)extent);
            return false;
        }
        *flat = *flat * extent + index;
    }
    return true;
}

/* The slots of the fragment's dimensions [from, n_shard) that the access takes:
 * points, then intervals, of which only the first may be less than all, so that
 * the slots follow each other. */
static bool inner_slots(Lower *L, const ParAlloc *a, const Access *at,
                        unsigned from, Loc loc, FragPart *part)
{
    unsigned i = from;
    while (i < a->n_shard && at->dims[a->n_dist + i].kind == DIM_point)
        i++;
    if (!flat_index(L, a, at, from, i, loc, &part->slot))
        return false;
    part->n = 1;
    for (unsigned first = i; i < a->n_shard; i++) {
        const AccessDim *d = &at->dims[a->n_dist + i];
        int64_t extent, lo = 0, len = 1;
        bool known = affine_is_const(a->shard[i], &extent) &&
                     d->kind == DIM_interval &&
                     affine_is_const(lower_index(L, d->lo), &lo) &&
                     affine_is_const(lower_index(L, d->len), &len);
        if (!known || (i > first && (lo != 0 || len != extent))) {
            lower_error(L, loc, "registers",
                        "an instruction takes registers of '%s' that do not "
                        "follow each other",
                        at->base->name);
            return false;
        }
        part->slot = part->slot * extent + lo;
        part->n *= len;
    }
    return true;
}

bool frag_part(Lower *L, const Access *access, Loc loc, FragPart *part)
{
    const Access *at = access_compose(L->m, access);
    const ParAlloc *a = par_alloc(L->pi, at->base);
    if (!a || !a->mem)
        return false;
    unsigned outer = a->n_shard - inner_dims(L, a);
    int64_t tile;
    if (!flat_index(L, a, at, 0, outer, loc, &tile))
        return false;
    if (!a->mem->map_slot) {
        if (!inner_slots(L, a, at, outer, loc, part))
            return false;
        part->frag = frag_make(L, a, tile);
    } else {
        part->frag = frag_make(L, a, tile);
        part->slot = 0;
        part->n = part->frag->type->n;
    }
    return true;
}

Frag *frag_get(Lower *L, const Access *access, Loc loc, int64_t *slot)
{
    FragPart part;
    if (!frag_part(L, access, loc, &part))
        return NULL;
    *slot = part.slot;
    return part.frag;
}

void frag_tiles(Lower *L, Value *source, FragPtrVec *out)
{
    const ParAlloc *a = par_alloc(L->pi, source);
    if (!a || !a->mem || !a->first_use)
        return;
    int64_t n = shard_count(L, a, 0, a->n_shard - inner_dims(L, a));
    for (int64_t tile = 0; tile < n; tile++)
        VEC_PUSH(L->scratch, out, frag_make(L, a, tile));
}

static Value *emit_frag(Lower *L, OpCode code, const Type *type)
{
    Op *op = lower_emit(L, code, 0, 1, 0);
    return op_set_result(L->m, op, 0, type, NULL);
}

Value *frag_value(Lower *L, Frag *f)
{
    return f->value ? f->value : emit_frag(L, OP_async_frag_undef, f->type);
}

static Value *zero_or(Lower *L, Frag *f)
{
    Op *op = lower_emit(L, OP_ctl_if, 1, 1, 2);
    op->operands[0] = opnd_cond(f->live);
    Block *outer = L->out;
    for (unsigned i = 0; i < 2; i++) {
        L->out = op->blocks[i];
        Value *v = i == 0 ? frag_value(L, f)
                          : emit_frag(L, OP_async_frag_zero, f->type);
        lower_emit(L, OP_ctl_yield, 1, 0, 0)->operands[0] = opnd_value(v);
    }
    L->out = outer;
    return op_set_result(L->m, op, 0, f->type, NULL);
}

Value *frag_force(Lower *L, Frag *f)
{
    Value *v;
    if (f->live->kind == COND_false)
        v = emit_frag(L, OP_async_frag_zero, f->type);
    else if (f->live->kind == COND_true)
        v = frag_value(L, f);
    else
        v = zero_or(L, f);
    f->value = v;
    f->live = truth(L, true);
    return v;
}

void frag_set(Lower *L, Frag *f, Value *v)
{
    f->value = v;
    f->live = truth(L, true);
    f->never_written = false;
}

void frag_set_zero(Lower *L, Frag *f)
{
    f->value = NULL;
    f->live = truth(L, false);
    f->never_written = false;
    f->flight = (Flight){ 0 };
}

void frag_reset(Lower *L, const Value *source)
{
    for (size_t i = 0; i < L->frags.len; i++) {
        Frag *f = L->frags.data[i];
        if (f->source != source)
            continue;
        f->value = NULL;
        f->live = truth(L, true);
        f->never_written = true;
        f->flight = (Flight){ 0 };
    }
}

bool frag_ready(Lower *L, Frag *f, Loc loc)
{
    if (!f->flight.in_flight)
        return true;
    Diag *d = lower_error(L, loc, "wgmma-register",
                          "registers of '%s' are used while a wgmma that "
                          "writes them may be in flight",
                          f->source->name);
    diag_fix(L->ctx, d,
             "await its commit group first: Await(group, "
             "cuda_in_order, 0)");
    return false;
}

static Value *extract(Lower *L, Frag *f, int64_t slot)
{
    Value *whole = frag_force(L, f);
    Op *op = lower_emit(L, OP_async_frag_extract, 1, 1, 0);
    op->operands[0] = opnd_value(whole);
    op_set_int(L->m, op, "slot", slot);
    return op_set_result(L->m, op, 0, type_scalar(L->ctx, f->type->elem), NULL);
}

static void insert(Lower *L, Frag *f, int64_t slot, Value *v)
{
    Value *whole = frag_force(L, f);
    Op *op = lower_emit(L, OP_async_frag_insert, 2, 1, 0);
    op->operands[0] = opnd_value(whole);
    op->operands[1] = opnd_value(v);
    op_set_int(L->m, op, "slot", slot);
    frag_set(L, f, op_set_result(L->m, op, 0, f->type, NULL));
}

Value *frag_part_slot(Lower *L, const FragPart *part)
{
    return extract(L, part->frag, part->slot);
}

void frag_part_put(Lower *L, const FragPart *part, Value *v)
{
    insert(L, part->frag, part->slot, v);
}

Value *frag_part_value(Lower *L, const FragPart *part, bool read)
{
    Frag *f = part->frag;
    if (part->n == f->type->n)
        return read ? frag_force(L, f) : frag_value(L, f);
    const Type *type = type_frag(L->ctx, f->type->elem, part->n, f->type->mem);
    Value *v = emit_frag(L, OP_async_frag_undef, type);
    for (int64_t i = 0; read && i < part->n; i++) {
        Value *x = extract(L, f, part->slot + i);
        Op *op = lower_emit(L, OP_async_frag_insert, 2, 1, 0);
        op_set_int(L->m, op, "slot", i);
        op->operands[0] = opnd_value(v);
        op->operands[1] = opnd_value(x);
        v = op_set_result(L->m, op, 0, type, NULL);
    }
    return v;
}

void frag_part_set(Lower *L, const FragPart *part, Value *v)
{
    Frag *f = part->frag;
    if (part->n == f->type->n) {
        frag_set(L, f, v);
        return;
    }
    for (int64_t i = 0; i < part->n; i++) {
        Op *op = lower_emit(L, OP_async_frag_extract, 1, 1, 0);
        op->operands[0] = opnd_value(v);
        op_set_int(L->m, op, "slot", i);
        insert(L, f, part->slot + i,
               op_set_result(L->m, op, 0, type_scalar(L->ctx, f->type->elem),
                             NULL));
    }
}

void frag_load(Lower *L, Op *load)
{
    int64_t slot;
    Frag *f = frag_get(L, load->operands[0].u.access, load->loc, &slot);
    if (f && frag_ready(L, f, load->loc))
        clone_map_value(L->map, load->results[0], extract(L, f, slot));
    else
        clone_map_value(L->map, load->results[0], load->results[0]);
}

/* x += v, x += v * w on a register. */
static Value *combined(Lower *L, const Op *op, Frag *f, int64_t slot)
{
    Value *old = extract(L, f, slot);
    bool fused = op->n_operands == 3;
    Op *sum =
        lower_emit(L, fused ? OP_arith_fma : OP_arith_add, fused ? 3 : 2, 1, 0);
    unsigned at = 0;
    for (unsigned i = 1; i < op->n_operands; i++)
        sum->operands[at++] =
            opnd_value(clone_map_get(L->map, op->operands[i].u.value));
    sum->operands[at] = opnd_value(old);
    return op_set_result(L->m, sum, 0, old->type, NULL);
}

void frag_store(Lower *L, Op *op)
{
    int64_t slot;
    Frag *f = frag_get(L, op->operands[0].u.access, op->loc, &slot);
    if (!f || !frag_ready(L, f, op->loc))
        return;
    Value *v = op->code == OP_mem_reduce
                   ? combined(L, op, f, slot)
                   : clone_map_get(L->map, op->operands[1].u.value);
    insert(L, f, slot, v);
}

static bool has_source(const ValueVec *sources, const Value *v)
{
    for (size_t i = 0; i < sources->len; i++)
        if (sources->data[i] == v)
            return true;
    return false;
}

static void note_written(Lower *L, Op *op, const OpAccess *a, void *user)
{
    (void)op;
    ValueVec *out = user;
    Value *root = value_root(a->access->base);
    if (!(a->flags & ACC_WRITE) || !lower_in_registers(L, root))
        return;
    if (!has_source(out, root))
        VEC_PUSH(L->scratch, out, root);
}

/* Is v allocated at or below b? */
static bool allocated_in(const Value *v, const Block *b)
{
    for (const Op *op = v->def; op; op = op_parent(op))
        if (op->parent == b)
            return true;
    return false;
}

void frag_written(Lower *L, Block *b, FragPtrVec *out)
{
    ValueVec sources = { 0 };
    role_walk_accesses(L, b, note_written, &sources);
    for (size_t i = 0; i < sources.len; i++)
        if (!allocated_in(sources.data[i], b))
            frag_tiles(L, sources.data[i], out);
    bool flights = flight_changes(L, b);
    for (size_t i = 0; i < L->frags.len && flights; i++) {
        Frag *f = L->frags.data[i];
        if (f->flight.in_flight && !has_source(&sources, f->source))
            VEC_PUSH(L->scratch, out, f);
    }
}
