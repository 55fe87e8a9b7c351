/* Tensors in C: address, offset and strides as text.
 *
 * A window is its root's address with an offset and some of its strides, so
 * that it costs no code. Offsets are in elements; that they fit 64 bits is
 * seen to on entry, where a tensor of 2^47 bytes or more is refused. */
#include "codegen/c_emit.h"

#include <string.h>

bool c_is_device(const Type *t)
{
    const char *mem = t->mem ? t->mem->name : "DRAM";
    return !strcmp(mem, "CudaGmemLinear");
}

const char *c_elem_type(ScalarType t)
{
    const char *name = scalar_info(t)->c_type;
    return name ? name : "void";
}

CValue *c_value(CPrinter *p, const Value *v)
{
    return &p->values[v->id];
}

const char **c_dense_strides(CPrinter *p, const Value *v)
{
    unsigned rank = v->type->rank;
    const char **strides = ARENA_ARRAY(p->arena, const char *, rank + 1);
    const char *stride = "1";
    for (unsigned i = rank; i-- > 0;) {
        strides[i] = stride;
        if (i)
            stride = c_times(p, stride, c_index(p, v->shape[i]));
    }
    return strides;
}

const char *c_offset(CPrinter *p, const Access *a)
{
    const CValue *base = c_value(p, a->base);
    const char *offset = base->offset;
    for (unsigned i = 0; i < a->rank; i++)
        offset = c_plus(
            p, offset, c_times(p, c_index(p, a->dims[i].lo), base->strides[i]));
    return offset;
}

const char *c_address(CPrinter *p, const Access *a)
{
    const char *offset = c_offset(p, a);
    const char *name = c_value(p, a->base)->name;
    int bytes = scalar_type_bytes(a->base->type->elem);
    if (!offset)
        return name;
    if (bytes == 1)
        return c_text(p, "%s + (uint64_t)(%s)", name, offset);
    return c_text(p, "%s + %du * (uint64_t)(%s)", name, bytes, offset);
}

const char *c_element(CPrinter *p, const Access *a)
{
    const CValue *base = c_value(p, a->base);
    if (base->by_value)
        return base->name;
    const char *offset = c_offset(p, a);
    return c_text(p, "%s[%s]", base->name, offset ? offset : "0");
}

bool c_window(CPrinter *p, const Op *op)
{
    const Access *a = op->operands[0].u.access;
    const CValue *base = c_value(p, a->base);
    CValue *w = c_value(p, op->results[0]);
    *w = *base;
    if (base->kind == CV_map)
        return true;
    if (base->kind != CV_tensor)
        return c_refuse(p, op, "'mem.window' of '%s' has no form in C",
                        a->base->name ? a->base->name : "?");
    unsigned k = 0;
    w->offset = c_offset(p, a);
    w->strides = ARENA_ARRAY(p->arena, const char *, a->rank + 1);
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            w->strides[k++] = base->strides[i];
    return true;
}

/* ---- what is written ------------------------------------------------ */

typedef struct Search {
    CPrinter *p;
    const Value *target;
    bool found;
} Search;

static const Value *root_of(const Value *v)
{
    while (v->def && (v->def->code == OP_mem_window ||
                      v->def->code == OP_host_tensor_map))
        v = v->def->operands[0].u.access->base;
    return v;
}

static const Value *operand_root(const Operand *o)
{
    if (o->kind == OPND_access)
        return root_of(o->u.access->base);
    return o->kind == OPND_value ? root_of(o->u.value) : NULL;
}

/* The callee's parameter for operand i of a call or launch. */
static bool callee_writes(CPrinter *p, const Op *op, const char *key,
                          unsigned i)
{
    const Op *callee = module_symbol(p->m, op_attr_str(op, key, ""));
    if (!callee || !callee->n_blocks || i >= callee->blocks[0]->n_args ||
        !callee->blocks[0]->args[i].value || p->depth > 32)
        return true;
    p->depth++;
    bool writes =
        c_writes(p, callee->blocks[0], callee->blocks[0]->args[i].value);
    p->depth--;
    return writes;
}

static bool operand_is_written(CPrinter *p, const Op *op, unsigned i)
{
    if (op->code == OP_host_launch)
        return callee_writes(p, op, "kernel", i);
    if (op->code == OP_ctl_call)
        return callee_writes(p, op, "callee", i);
    if (op->operands[i].kind != OPND_access)
        return false;
    OpAccessVec accesses = { 0 };
    op_accesses(p->m, op, p->arena, &accesses);
    for (size_t k = 0; k < accesses.len; k++)
        if (accesses.data[k].operand == i)
            return (accesses.data[k].flags & ACC_WRITE) != 0;
    return false;
}

static bool find_write(Op *op, void *user)
{
    Search *s = user;
    if (op->code == OP_mem_window)
        return true;
    for (unsigned i = 0; i < op->n_operands && !s->found; i++)
        s->found = operand_root(&op->operands[i]) == s->target &&
                   operand_is_written(s->p, op, i);
    return !s->found;
}

bool c_writes(CPrinter *p, const Block *b, const Value *v)
{
    Search s = { p, v, false };
    block_walk((Block *)b, find_write, &s);
    return s.found;
}
