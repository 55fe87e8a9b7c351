/* What an op touches, and accesses through windows seen on their root. */
#include "ir/lib.h"

#include <string.h>

/* The mem.window op that made v, unless v is the tensor map itself. */
static const Op *window_def(const Value *v)
{
    if (!v->def || v->def->code != OP_mem_window)
        return NULL;
    const Value *base = v->def->operands[0].u.access->base;
    if (v->type->kind == TK_map && base->type->kind != TK_map)
        return NULL;
    return v->def;
}

Value *value_root(Value *v)
{
    for (const Op *w = window_def(v); w; w = window_def(v))
        v = w->operands[0].u.access->base;
    return v;
}

/* inner seen through the window access w: the k-th interval of w is inner's
 * dimension k. */
static Access *compose_one(Module *m, const Access *w, const Access *inner)
{
    Access *out = access_new(m, w->base);
    unsigned k = 0;
    for (unsigned i = 0; i < w->rank; i++) {
        out->dims[i] = w->dims[i];
        if (w->dims[i].kind != DIM_interval)
            continue;
        if (k >= inner->rank)
            panic("access_compose: window rank does not match");
        const AccessDim *d = &inner->dims[k++];
        out->dims[i].kind = d->kind;
        out->dims[i].lo = affine_add(m->exprs, w->dims[i].lo, d->lo);
        out->dims[i].len = d->len;
    }
    return out;
}

int64_t access_bytes(const Access *a)
{
    int64_t n = scalar_type_bytes(a->base->type->elem), len;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval &&
            (!affine_is_const(a->dims[i].len, &len) || len < 0 ||
             __builtin_mul_overflow(n, len, &n)))
            return -1;
    return n;
}

const Access *access_compose(Module *m, const Access *a)
{
    for (const Op *w = window_def(a->base); w; w = window_def(a->base))
        a = compose_one(m, w->operands[0].u.access, a);
    return a;
}

const Access *access_behind_map(Module *m, const Access *a)
{
    const Op *map = a->base->def;
    if (a->base->type->kind != TK_map || !map || map->code != OP_mem_window)
        return NULL;
    return compose_one(m, map->operands[0].u.access, a);
}

static unsigned instr_flags(const Instr *in, const Op *op, unsigned i)
{
    if (i >= (in ? in->n_params : 0))
        return op_attr_int(op, "trailing", 0) ? ACC_SYNC : ACC_READ | ACC_WRITE;
    return in->params[i].flags;
}

static unsigned access_flags(const Op *op, const Instr *in, unsigned i)
{
    switch (op->code) {
    case OP_mem_load:
    case OP_async_cluster_load:
        return ACC_READ;
    case OP_mem_store:
    case OP_async_tile_store:
    case OP_host_memset:
        return ACC_WRITE;
    case OP_mem_reduce:
        return ACC_READ | ACC_WRITE | ACC_REDUCE;
    case OP_par_arrive:
    case OP_par_await:
    case OP_async_mbarrier_wait:
    case OP_async_mbarrier_arrive:
    case OP_async_mbarrier_expect_tx:
    case OP_async_cp_async_mbarrier_arrive:
        return ACC_SYNC;
    case OP_async_bulk_tensor_load:
    case OP_async_bulk_copy:
        return i == 0 ? ACC_WRITE : i == 1 ? ACC_READ : ACC_SYNC;
    case OP_async_bulk_tensor_store:
    case OP_host_copy:
        return i == 0 ? ACC_WRITE : ACC_READ;
    case OP_async_bulk_tensor_reduce:
        return i == 0 ? ACC_READ | ACC_WRITE | ACC_REDUCE : ACC_READ;
    case OP_async_wgmma_mma_async:
        return ACC_READ;
    case OP_par_instr:
    case OP_async_instr:
        return instr_flags(in, op, i);
    case OP_ctl_call:
    case OP_host_launch:
        return ACC_READ | ACC_WRITE;
    default:
        return 0; /* a window looks, it does not touch */
    }
}

void op_accesses(const Module *m, const Op *op, Arena *arena, OpAccessVec *out)
{
    const Instr *in = NULL;
    if (op->code == OP_par_instr || op->code == OP_async_instr)
        in = op_instr(m, op);
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (op->operands[i].kind != OPND_access)
            continue;
        unsigned flags = access_flags(op, in, i);
        if (flags) {
            OpAccess a = { op->operands[i].u.access, flags, i };
            VEC_PUSH(arena, out, a);
        }
    }
}
