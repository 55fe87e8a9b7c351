/* Where instructions find their operands. A tensor copy reads and writes one
 * dense run of bytes (PTX ISA, "Tensor copy", 128-byte aligned); a wgmma
 * descriptor has rows of the swizzle's span and columns side by side, from a
 * multiple of 16 bytes (PTX ISA, "Matrix descriptor"); what a thread moves at
 * once begins at a multiple of its bytes, in shared and global memory. */
#include "verify/check_par_internal.h"

#include <string.h>

/* An argument in shared memory on its allocation, strides in elements of the
 * CTA's shard; or one in a dense global tensor. */
typedef struct Tile {
    const Op *op;
    const Instr *instr;
    const InstrParam *param;
    const Mem *mem;
    const Access *access;
    unsigned first; /* dimensions before it are spread over CTAs */
    int64_t *stride;
    int64_t bytes; /* of an element */
} Tile;

static bool shard_strides(ParCheck *c, Tile *t)
{
    const Value *v = t->access->base;
    t->stride = ARENA_ARRAY(c->m->arena, int64_t, v->type->rank);
    int64_t run = 1;
    for (unsigned i = v->type->rank; i-- > t->first;) {
        int64_t n = v->ring_depth;
        t->stride[i] = run;
        if (i == t->first)
            break;
        if (((int)i != v->ring_dim && !affine_is_const(v->shape[i], &n)) ||
            n < 1 || n > INT32_MAX || run > INT32_MAX)
            return false; /* reported with the allocation */
        run *= n;
    }
    return true;
}

static bool is_interval(const Tile *t, unsigned i, int64_t *len)
{
    return t->access->dims[i].kind == DIM_interval &&
           affine_is_const(t->access->dims[i].len, len);
}

/* ---- alignment ---------------------------------------------------------- */

/* Bytes from the start of a slot; NULL on overflow. */
static const Affine *byte_offset(ParCheck *c, const Tile *t)
{
    ExprCtx *x = c->m->exprs;
    const Affine *sum = affine_const(x, 0);
    for (unsigned i = t->first; i < t->access->rank; i++)
        if ((int)i != t->access->base->ring_dim)
            sum = affine_add(x, sum,
                             affine_scale(x, t->access->dims[i].lo,
                                          t->stride[i] * t->bytes));
    return sum;
}

/* Is it misaligned for certain, whatever the variables are? */
static bool is_misaligned(const Affine *offset, int64_t alignment)
{
    if (!offset)
        return false;
    for (uint32_t i = 0; i < offset->n_terms; i++)
        if (offset->terms[i].coef % alignment)
            return false;
    return offset->constant % alignment != 0;
}

static void check_alignment(ParCheck *c, const Tile *t, int64_t alignment)
{
    if (!is_misaligned(byte_offset(c, t), alignment))
        return;
    pc_error(c, t->op, "layout",
             "argument %s of %s: %s does not begin at a multiple of %lld "
             "bytes of %s",
             t->param->name, t->instr->name, par_text_access(c->m, t->access),
             (long long)alignment, par_text_value(t->access->base));
}

/* ---- tensor copies ------------------------------------------------------ */

static void check_dense(ParCheck *c, const Tile *t)
{
    int64_t run = 1, len;
    for (unsigned i = t->access->rank; i-- > t->first;) {
        if (!is_interval(t, i, &len) || len == 1)
            continue;
        if (t->stride[i] != run) {
            Diag *d = pc_error(c, t->op, "layout",
                               "argument %s of %s: %s is not dense: idx[%u] "
                               "advances by %lld elements, expected %lld",
                               t->param->name, t->instr->name,
                               par_text_access(c->m, t->access), i,
                               (long long)t->stride[i], (long long)run);
            diag_fix(c->ctx, d,
                     "give the tile whole inner dimensions: put it in the "
                     "last dimensions of %s",
                     par_text_value(t->access->base));
            return;
        }
        run *= len;
    }
    check_alignment(c, t, 128);
}

/* ---- wgmma -------------------------------------------------------------- */

static void check_rows(ParCheck *c, const Tile *t)
{
    int64_t want[2] = { 1, t->mem->swizzle / t->bytes }, len;
    unsigned n = 0;
    for (unsigned i = t->access->rank; i-- > t->first && n < 2;) {
        if (!is_interval(t, i, &len))
            continue;
        if (t->stride[i] != want[n]) {
            pc_error(c, t->op, "layout",
                     "argument %s of %s: Expected element strides of the tile "
                     "(%lld, 1), found %lld at idx[%u] of %s",
                     t->param->name, t->instr->name, (long long)want[1],
                     (long long)t->stride[i], i,
                     par_text_access(c->m, t->access));
            return;
        }
        n++;
    }
    check_alignment(c, t, 16);
}

/* ---- the walk ----------------------------------------------------------- */

/* Is it known where the argument's elements lie? */
static bool find_tile(ParCheck *c, Tile *t)
{
    const Value *v = t->access->base;
    const ParAlloc *a = par_alloc(c->pi, v);
    t->mem = pc_mem(c, t->access->base);
    t->bytes = scalar_type_bytes(v->type->elem);
    if (!t->mem || !t->bytes || !t->access->rank)
        return false;
    if (t->mem->family == MEMF_shared
            ? !a || !a->first_use
            : t->mem->family != MEMF_global || v->type->kind != TK_tensor)
        return false;
    t->first = a ? a->n_dist : 0;
    return shard_strides(c, t);
}

static void check_tile(ParCheck *c, Tile *t, int64_t piece)
{
    if (!find_tile(c, t))
        return;
    if (piece)
        check_alignment(c, t, piece);
    if (t->mem->family != MEMF_shared)
        return;
    if (!strncmp(t->instr->timeline, "tma_", 4))
        check_dense(c, t);
    else if (!strncmp(t->instr->timeline, "wgmma_", 6) && t->mem->swizzle)
        check_rows(c, t);
}

static bool check_op(Op *op, void *user)
{
    ParCheck *c = user;
    const Instr *in = op->code == OP_par_instr ? op_instr(c->m, op) : NULL;
    for (unsigned i = 0; in && i < in->n_params && i < op->n_operands; i++) {
        if (op->operands[i].kind != OPND_access)
            continue;
        Tile t = { .op = op, .instr = in, .param = &in->params[i] };
        t.access = access_compose(c->m, op->operands[i].u.access);
        check_tile(c, &t, instr_piece(c->m->lib, in, i));
    }
    return true;
}

void check_par_layouts(ParCheck *c)
{
    op_walk(c->proc, check_op, c);
}
