/* Short hands for building IR in tests. A Maker appends to one block. */
#ifndef EXO_TEST_IR_BUILD_H
#define EXO_TEST_IR_BUILD_H

#include "ir/lib.h"

typedef struct Maker {
    Ctx *ctx;
    Module *m;
    Block *b;
} Maker;

static inline const Affine *mk_c(Maker *k, int64_t c)
{
    return affine_const(k->m->exprs, c);
}

static inline const Affine *mk_v(Maker *k, VarId v)
{
    return affine_var(k->m->exprs, v);
}

/* a * x + c */
static inline const Affine *mk_lin(Maker *k, int64_t a, VarId v, int64_t c)
{
    ExprCtx *x = k->m->exprs;
    return affine_add_const(x, affine_scale(x, affine_var(x, v), a), c);
}

static inline const Affine *mk_add(Maker *k, const Affine *a, const Affine *b)
{
    return affine_add(k->m->exprs, a, b);
}

static inline const MemRef *mk_mem(Maker *k, const char *name)
{
    return memref_get(k->ctx, name, 0, NULL);
}

static inline const MemRef *mk_map_mem(Maker *k, int64_t swizzle, int64_t rows,
                                       int64_t cols)
{
    Param p[3] = { { .kind = PARAM_int, .i = swizzle },
                   { .kind = PARAM_int, .i = rows },
                   { .kind = PARAM_int, .i = cols } };
    return memref_get(k->ctx, "Sm90_tensorMap", 3, p);
}

static inline const Type *mk_tensor(Maker *k, ScalarType t, unsigned rank,
                                    const char *mem)
{
    return type_tensor(k->ctx, TK_tensor, t, rank, mk_mem(k, mem));
}

static inline Op *mk_op(Maker *k, OpCode code, unsigned n_operands,
                        unsigned n_results, unsigned n_blocks)
{
    Op *op = op_new(k->m, code, (Loc){ 0 }, n_operands, n_results, n_blocks);
    block_append(k->b, op);
    return op;
}

/* A top-level op with a name; the maker then stands in its block. */
static inline Op *mk_symbol(Maker *k, OpCode code, const char *name)
{
    k->b = k->m->body;
    Op *op = mk_op(k, code, 0, 0, 1);
    op_set_str(k->m, op, "name", name);
    k->b = op->blocks[0];
    return op;
}

static inline void mk_shape(Value *v, const Affine *a, const Affine *b)
{
    if (v->type->rank > 0)
        v->shape[0] = a;
    if (v->type->rank > 1)
        v->shape[1] = b;
}

/* An access of up to three points. */
static inline Operand mk_at(Maker *k, Value *v, const Affine *i,
                            const Affine *j)
{
    Access *a = access_new(k->m, v);
    if (a->rank > 0)
        a->dims[0] = (AccessDim){ .kind = DIM_point, .lo = i };
    if (a->rank > 1)
        a->dims[1] = (AccessDim){ .kind = DIM_point, .lo = j };
    return opnd_access(a);
}

/* An access of two intervals. */
static inline Operand mk_box(Maker *k, Value *v, const Affine *i, int64_t ni,
                             const Affine *j, int64_t nj)
{
    Access *a = access_new(k->m, v);
    a->dims[0] =
        (AccessDim){ .kind = DIM_interval, .lo = i, .len = mk_c(k, ni) };
    a->dims[1] =
        (AccessDim){ .kind = DIM_interval, .lo = j, .len = mk_c(k, nj) };
    return opnd_access(a);
}

static inline Value *mk_load(Maker *k, Operand at)
{
    Op *op = mk_op(k, OP_mem_load, 1, 1, 0);
    op->operands[0] = at;
    return op_set_result(
        k->m, op, 0, type_scalar(k->ctx, at.u.access->base->type->elem), NULL);
}

static inline Value *mk_const(Maker *k, ScalarType t, double x)
{
    Param p = { .kind = PARAM_float, .f = x };
    Op *op = mk_op(k, OP_arith_const, 0, 1, 0);
    op_set_param(k->m, op, "value", &p);
    return op_set_result(k->m, op, 0, type_scalar(k->ctx, t), NULL);
}

static inline Value *mk_cast(Maker *k, ScalarType t, Value *v)
{
    Op *op = mk_op(k, OP_arith_cast, 1, 1, 0);
    op->operands[0] = opnd_value(v);
    return op_set_result(k->m, op, 0, type_scalar(k->ctx, t), NULL);
}

static inline Op *mk_store(Maker *k, Operand at, Value *v)
{
    Op *op = mk_op(k, OP_mem_store, 2, 0, 0);
    op->operands[0] = at;
    op->operands[1] = opnd_value(v);
    return op;
}

static inline Op *mk_fma(Maker *k, Operand at, Value *a, Value *b)
{
    Op *op = mk_op(k, OP_mem_reduce, 3, 0, 0);
    op->operands[0] = at;
    op->operands[1] = opnd_value(a);
    op->operands[2] = opnd_value(b);
    return op;
}

/* A loop; the maker then stands in its body. */
static inline Op *mk_for(Maker *k, const char *name, const Affine *lo,
                         const Affine *hi, VarId *var)
{
    Op *op = mk_op(k, OP_ctl_for, 2, 0, 1);
    op->operands[0] = opnd_index(lo);
    op->operands[1] = opnd_index(hi);
    k->b = op->blocks[0];
    *var = block_add_var(k->m, k->b, name, VAR_iter);
    return op;
}

static inline void mk_end(Maker *k)
{
    k->b = k->b->parent->parent;
}

#endif
