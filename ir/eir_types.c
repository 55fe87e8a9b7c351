/* The rules by which result types follow from operands, one switch. */
#include "ir/eir_types.h"

unsigned eir_first_carried(const Op *op)
{
    if (op->code == OP_ctl_for)
        return 2;
    if (op->code != OP_async_tasks)
        return 0;
    int64_t rank = op_attr_int(op, "rank", 0);
    return rank > 0 && rank <= op->n_operands / 2 ? 2 * (unsigned)rank : 0;
}

unsigned eir_loop_vars(const Op *op)
{
    return eir_first_carried(op) / 2 + (op_attr_int(op, "rounds", 0) != 0);
}

const char *eir_callee_key(OpCode code)
{
    switch (code) {
    case OP_ctl_call:
    case OP_par_instr:
    case OP_async_instr:
        return "callee";
    case OP_host_launch:
        return "kernel";
    default:
        return NULL;
    }
}

static const Value *operand_value(const Op *op, unsigned i)
{
    if (i >= op->n_operands || op->operands[i].kind != OPND_value)
        return NULL;
    return op->operands[i].u.value;
}

static const Access *operand_access(const Op *op, unsigned i)
{
    if (i >= op->n_operands || op->operands[i].kind != OPND_access)
        return NULL;
    return op->operands[i].u.access;
}

/* The operand whose type and shape result i has, or NULL. */
static const Value *same_as(const Op *op, unsigned i)
{
    switch (op->code) {
    case OP_ctl_for:
    case OP_async_tasks:
        return operand_value(op, eir_first_carried(op) + i);
    case OP_async_ring_advance:
    case OP_async_frag_insert:
    case OP_async_shfl_sync:
    case OP_async_wgmma_mma_async:
        return operand_value(op, 0);
    case OP_async_wgmma_fence:
    case OP_async_wgmma_wait_group:
        return operand_value(op, i);
    case OP_arith_const:
    case OP_arith_cast:
        return NULL;
    default:
        return op_info(op->code)->dialect == op_info(OP_arith_add)->dialect
                   ? operand_value(op, 0)
                   : NULL;
    }
}

static const Type *window_type(Ctx *ctx, const Access *a)
{
    const Type *base = a->base->type;
    if (base->kind != TK_tensor && base->kind != TK_window &&
        base->kind != TK_map)
        return NULL;
    unsigned rank = 0;
    for (unsigned d = 0; d < a->rank; d++)
        rank += a->dims[d].kind == DIM_interval;
    TypeKind kind = base->kind == TK_map ? TK_map : TK_window;
    return type_tensor(ctx, kind, base->elem, rank, base->mem);
}

const Type *eir_implied_type(Ctx *ctx, const Op *op, unsigned i)
{
    const Value *v = same_as(op, i);
    if (v)
        return v->type;
    const Access *a = operand_access(op, 0);
    if ((op->code == OP_mem_load || op->code == OP_async_cluster_load) && a &&
        a->base->type->elem != TY_none)
        return type_scalar(ctx, a->base->type->elem);
    if (op->code == OP_mem_window && a)
        return window_type(ctx, a);
    v = operand_value(op, 0);
    if (op->code == OP_async_frag_extract && v && v->type->kind == TK_frag)
        return type_scalar(ctx, v->type->elem);
    return NULL;
}

const Affine *eir_implied_extent(const Op *op, unsigned i, unsigned d)
{
    const Value *v = same_as(op, i);
    if (v)
        return d < v->type->rank ? v->shape[d] : NULL;
    const Access *a = operand_access(op, 0);
    for (unsigned k = 0; a && k < a->rank; k++)
        if (a->dims[k].kind == DIM_interval && d-- == 0)
            return a->dims[k].len;
    return NULL;
}
