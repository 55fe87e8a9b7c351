/* Shared memory of a kernel: where each tensor and mbarrier array lies.
 *
 * Objects that live through all tasks come first: rings, then mbarriers, which
 * never share their bytes. The others are placed first fit, so that those
 * whose scopes do not overlap share memory; a scope lasts to the end of the
 * block that holds the allocation. A swizzled tile is aligned to its pattern,
 * 8 rows of the swizzle's span (the pattern depends on absolute addresses);
 * everything else to 128 bytes, which bulk tensor copies need (PTX ISA,
 * cp.async.bulk.tensor). The block itself starts at a multiple of 1024. */
#include "ir/limits.h"
#include "passes/lower/lower.h"

#include <string.h>

enum { SMEM_ALIGN = 128, MBARRIER_BYTES = 8 };

SmemObject *smem_object(Lower *L, const Value *source)
{
    for (size_t i = 0; i < L->smem.objects.len; i++)
        if (L->smem.objects.data[i].source == source)
            return &L->smem.objects.data[i];
    return NULL;
}

/* Elements of a CTA's part; 0 and an error where an extent is not constant. */
static int64_t shard_elements(Lower *L, const ParAlloc *a)
{
    int64_t n = 1;
    for (unsigned i = 0; i < a->n_shard; i++) {
        int64_t extent;
        bool ring = (int)(i + a->n_dist) == a->value->ring_dim;
        if (ring)
            extent = a->value->ring_depth;
        else if (!affine_is_const(a->shard[i], &extent)) {
            lower_error(L, a->op->loc, "shared-memory",
                        "dimension %u of '%s' requires constant shape",
                        i + a->n_dist, a->value->name);
            return 0;
        }
        if (extent <= 0 || n > SHARED_MEMORY_LIMIT / extent) {
            lower_error(L, a->op->loc, "shared-memory",
                        "'%s' does not fit in shared memory (%lld bytes)",
                        a->value->name, (long long)SHARED_MEMORY_LIMIT);
            return 0;
        }
        n *= extent;
    }
    return n;
}

static void add_object(Lower *L, const ParAlloc *a, unsigned lo)
{
    bool barrier = a->value->type->kind == TK_barrier;
    int64_t n = shard_elements(L, a);
    int64_t size = barrier ? MBARRIER_BYTES
                           : (int64_t)scalar_type_bytes(a->value->type->elem);
    SmemObject o = { .source = a->value,
                     .mem = a->mem,
                     .bytes = n * size,
                     .live_lo = lo,
                     .live_hi = lo };
    o.persistent = barrier || a->value->ring_dim >= 0 || a->mem->persistent;
    o.align = barrier ? MBARRIER_BYTES : SMEM_ALIGN;
    if (a->mem->swizzle)
        o.align = 8 * (int64_t)a->mem->swizzle;
    if ((int64_t)a->mem->alignment > o.align)
        o.align = a->mem->alignment;
    VEC_PUSH(L->scratch, &L->smem.objects, o);
}

static void number_block(Lower *L, Block *b, unsigned *at)
{
    VEC(size_t) mine = { 0 };
    for (Op *op = b->first; op; op = op->next) {
        ++*at;
        if (op->code == OP_mem_alloc) {
            const ParAlloc *a = par_alloc(L->pi, op->results[0]);
            bool shared = a && a->mem && a->first_use &&
                          (a->mem->family == MEMF_shared ||
                           a->mem->barrier == BARRIER_mbarrier);
            if (shared) {
                VEC_PUSH(L->scratch, &mine, L->smem.objects.len);
                add_object(L, a, *at);
            }
        }
        for (unsigned i = 0; i < op->n_blocks; i++)
            number_block(L, op->blocks[i], at);
    }
    for (size_t i = 0; i < mine.len; i++)
        L->smem.objects.data[mine.data[i]].live_hi = *at;
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* The lowest place above `base` that no placed, living object takes. */
static int64_t first_fit(Lower *L, size_t k, int64_t base)
{
    SmemObject *o = &L->smem.objects.data[k];
    int64_t at = round_up(base, o->align);
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < k; i++) {
            SmemObject *p = &L->smem.objects.data[i];
            if (p->persistent || p->live_hi < o->live_lo ||
                o->live_hi < p->live_lo || p->offset + p->bytes <= at ||
                at + o->bytes <= p->offset)
                continue;
            at = round_up(p->offset + p->bytes, o->align);
            moved = true;
        }
    }
    return at;
}

static void table_notes(Lower *L, Diag *d)
{
    for (size_t i = 0; i < L->smem.objects.len; i++) {
        SmemObject *o = &L->smem.objects.data[i];
        diag_note(L->ctx, d, o->source->def->loc,
                  "'%s': %lld bytes at offset %lld", o->source->name,
                  (long long)o->bytes, (long long)o->offset);
    }
}

/* As many CTAs as a multiprocessor is to hold must have room in it. */
static bool fits_multiprocessor(Lower *L)
{
    int64_t blocks = L->dev->blocks_per_sm;
    int64_t each = SHARED_MEMORY_A_MULTIPROCESSOR / blocks / 128 * 128 -
                   SHARED_MEMORY_TAKEN;
    if (L->smem.bytes <= each)
        return true;
    Diag *d = lower_error(L, L->dev->op->loc, "shared-memory",
                          "shared memory of a CTA: %lld bytes needed, but "
                          "with blocks_per_sm=%lld at most %lld there are",
                          (long long)L->smem.bytes, (long long)blocks,
                          (long long)each);
    diag_fix(L->ctx, d,
             "lower blocks_per_sm or a ring's depth, or stage less at a time");
    table_notes(L, d);
    return false;
}

bool smem_layout(Lower *L)
{
    unsigned at = 0;
    number_block(L, L->dev->body, &at);
    if (L->failed)
        return false;
    int64_t end = 0;
    for (int barriers = 0; barriers < 2; barriers++)
        for (size_t i = 0; i < L->smem.objects.len; i++) {
            SmemObject *o = &L->smem.objects.data[i];
            bool barrier = o->source->type->kind == TK_barrier;
            if (!o->persistent || barrier != (barriers == 1))
                continue;
            o->offset = round_up(end, o->align);
            end = o->offset + o->bytes;
        }
    int64_t base = end;
    for (size_t i = 0; i < L->smem.objects.len; i++) {
        SmemObject *o = &L->smem.objects.data[i];
        if (o->persistent)
            continue;
        o->offset = first_fit(L, i, base);
        if (o->offset + o->bytes > end)
            end = o->offset + o->bytes;
    }
    L->smem.bytes = end;
    if (end <= SHARED_MEMORY_LIMIT)
        return fits_multiprocessor(L);
    Diag *d = lower_error(L, L->dev->op->loc, "shared-memory",
                          "shared memory of a CTA: %lld bytes needed, at "
                          "most %d there are",
                          (long long)end, SHARED_MEMORY_LIMIT);
    diag_fix(L->ctx, d, "lower a ring's depth or stage less at a time");
    table_notes(L, d);
    return false;
}

static void emit_object(Lower *L, SmemObject *o)
{
    const Value *v = o->source;
    const ParAlloc *a = par_alloc(L->pi, v);
    unsigned rank = a->n_shard;
    bool barrier = v->type->kind == TK_barrier;
    const Type *type = barrier ? type_mbarrier(L->ctx, rank)
                               : type_tensor(L->ctx, TK_tensor, v->type->elem,
                                             rank, v->type->mem);
    Op *op = lower_emit(L, barrier ? OP_async_mbarrier_alloc : OP_mem_alloc, 0,
                        1, 0);
    op->loc = v->def->loc;
    op_set_int(L->m, op, "offset", o->offset);
    if (barrier)
        op_set_int(L->m, op, "count", mbarrier_count(L, v));
    o->object = op_set_result(L->m, op, 0, type, v->name);
    for (unsigned i = 0; i < rank; i++) {
        bool ring = (int)(i + a->n_dist) == v->ring_dim;
        o->object->shape[i] =
            ring ? affine_const(L->m->exprs, v->ring_depth) : a->shard[i];
        if (ring) {
            o->object->ring_dim = (int)i;
            o->object->ring_depth = v->ring_depth;
        }
    }
}

void smem_emit(Lower *L)
{
    for (size_t i = 0; i < L->smem.objects.len; i++)
        emit_object(L, &L->smem.objects.data[i]);
}
