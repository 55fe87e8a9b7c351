/* Tensor maps: what cuTensorMapEncodeTiled and the copies take, said at the
 * line that makes the map (CUDA Driver API, "Tensor Map Object Management":
 * rank 1 to 5, box extents 1 to 256, inner box bytes a multiple of 16 and at
 * most the swizzle span). */
#include "verify/check_par_internal.h"

#define MAX_MAP_RANK 5
#define MAX_BOX 256

/* swizzle and box of a map's memory; false when they are no integers. */
static bool map_params(const MemRef *ref, int64_t *swizzle, const Param **box,
                       unsigned *n)
{
    if (!ref || ref->n_params < 1)
        return false;
    for (unsigned i = 0; i < ref->n_params; i++)
        if (ref->params[i].kind != PARAM_int)
            return false;
    *swizzle = ref->params[0].i;
    *box = ref->params + 1;
    *n = ref->n_params - 1;
    return true;
}

static void map_error(ParCheck *c, const Op *at, const Value *v,
                      const char *text)
{
    pc_error(c, at, "tensor-map", "%s: %s: %s", par_text_value(v),
             par_text_mem(c->m, v->type->mem), text);
}

static bool check_inner(ParCheck *c, const Op *at, const Value *v,
                        int64_t swizzle, int64_t inner)
{
    int64_t bytes = inner * scalar_type_bytes(v->type->elem);
    if (swizzle ? bytes == swizzle : bytes % 16 == 0)
        return true;
    map_error(c, at, v,
              swizzle ? arena_printf(c->m->arena,
                                     "the last box entry is %lld "
                                     "bytes, the swizzle spans %lld",
                                     (long long)bytes, (long long)swizzle)
                      : arena_printf(c->m->arena,
                                     "the last box entry is %lld "
                                     "bytes, which must be a multiple of 16",
                                     (long long)bytes));
    return false;
}

/* A map's own parameters against its type. */
static bool check_params(ParCheck *c, const Op *at, const Value *v)
{
    int64_t swizzle;
    const Param *box;
    unsigned n;
    Arena *a = c->m->arena;
    if (!map_params(v->type->mem, &swizzle, &box, &n)) {
        map_error(c, at, v, "expected a swizzle and box extents, all ints");
        return false;
    }
    if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128) {
        map_error(c, at, v, "the swizzle must be 0, 32, 64 or 128");
        return false;
    }
    if (n < 1 || n > MAX_MAP_RANK || n != v->type->rank) {
        map_error(c, at, v,
                  arena_printf(a,
                               "the window has %u dimensions, the box %u; "
                               "both must be the same, from 1 to %d",
                               v->type->rank, n, MAX_MAP_RANK));
        return false;
    }
    for (unsigned i = 0; i < n; i++)
        if (box[i].i < 1 || box[i].i > MAX_BOX) {
            map_error(c, at, v,
                      arena_printf(a, "box extent %lld is not from 1 to %d",
                                   (long long)box[i].i, MAX_BOX));
            return false;
        }
    if (scalar_info(v->type->elem)->tensor_map < 0) {
        map_error(c, at, v,
                  arena_printf(a,
                               "no tensor map holds elements of "
                               "type %s",
                               scalar_type_name(v->type->elem)));
        return false;
    }
    return check_inner(c, at, v, swizzle, box[n - 1].i);
}

/* The window statement that makes a map. */
static void check_source(ParCheck *c, const Op *op)
{
    const Access *a = op->operands[0].u.access;
    const Value *v = op->results[0];
    const Mem *mem = pc_mem(c, a->base);
    if (mem && mem->family != MEMF_global) {
        Diag *d = pc_error(c, op, "tensor-map",
                           "%s: a tensor map needs a "
                           "window of CudaGmemLinear, %s is in %s",
                           par_text_value(v), par_text_value(a->base),
                           par_text_mem(c->m, mem->ref));
        diag_fix(c->ctx, d, "copy the tensor to CudaGmemLinear first");
        return;
    }
    if (!check_params(c, op, v) || !a->rank)
        return;
    int64_t extent;
    const AccessDim *last = &a->dims[a->rank - 1];
    if (last->kind != DIM_interval &&
        !(affine_is_const(a->base->shape[a->rank - 1], &extent) && extent == 1))
        map_error(c, op, v,
                  "the last dimension must be an interval: the "
                  "innermost stride of a tensor map is 1");
}

/* A box that a copy takes: points only where the box is 1. */
static void check_box_access(ParCheck *c, const Op *op, const Access *access)
{
    const Access *a = access_compose(c->m, access);
    int64_t swizzle;
    const Param *box;
    unsigned n;
    if (a->base->type->kind != TK_map ||
        !map_params(a->base->type->mem, &swizzle, &box, &n) || n != a->rank)
        return;
    for (unsigned i = 0; i < n; i++)
        if (a->dims[i].kind == DIM_point && box[i].i != 1)
            pc_error(c, op, "tensor-map",
                     "%s: idx[%u] is a point, but the box "
                     "of %s has %lld there",
                     par_text_access(c->m, a), i,
                     par_text_mem(c->m, a->base->type->mem),
                     (long long)box[i].i);
}

static bool check_op(Op *op, void *user)
{
    ParCheck *c = user;
    if (op->code == OP_mem_window && op->results[0]->type->kind == TK_map &&
        op->operands[0].u.access->base->type->kind != TK_map)
        check_source(c, op);
    if (op->code == OP_par_instr)
        for (unsigned i = 0; i < op->n_operands; i++)
            if (op->operands[i].kind == OPND_access)
                check_box_access(c, op, op->operands[i].u.access);
    return true;
}

void check_par_maps(ParCheck *c)
{
    const Block *params = c->proc->blocks[0];
    for (unsigned i = 0; i < params->n_args; i++) {
        const Value *v = params->args[i].value;
        if (v && v->type->kind == TK_map)
            check_params(c, c->proc, v);
    }
    op_walk(c->proc, check_op, c);
}
