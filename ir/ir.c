/* Modules, ops, blocks and values: making, editing, walking. */
#include "ir/ir.h"

#include <string.h>

Module *module_new(Ctx *ctx)
{
    Arena *arena = arena_new();
    Module *m = ARENA_NEW(arena, Module);
    m->ctx = ctx;
    m->arena = arena;
    m->exprs = expr_ctx_new();
    m->body = ARENA_NEW(arena, Block);
    m->next_sid = 1;
    m->next_value = 1;
    return m;
}

void module_free(Module *m)
{
    if (!m)
        return;
    expr_ctx_free(m->exprs);
    arena_free(m->arena);
}

Op *op_new(Module *m, OpCode code, Loc loc, unsigned n_operands,
           unsigned n_results, unsigned n_blocks)
{
    Op *op = ARENA_NEW(m->arena, Op);
    op->code = code;
    op->loc = loc;
    op->n_operands = n_operands;
    op->operands = ARENA_ARRAY(m->arena, Operand, n_operands);
    op->n_results = n_results;
    op->results = ARENA_ARRAY(m->arena, Value *, n_results);
    op->n_blocks = n_blocks;
    op->blocks = ARENA_ARRAY(m->arena, Block *, n_blocks);
    for (unsigned i = 0; i < n_blocks; i++)
        op->blocks[i] = block_new(m, op);
    if (op_has(op, OPT_STMT))
        op->sid = m->next_sid++;
    return op;
}

static Value *value_new(Module *m, const Type *type, const char *name)
{
    Value *v = ARENA_NEW(m->arena, Value);
    v->type = type;
    v->name = name ? ctx_intern(m->ctx, name) : NULL;
    v->id = m->next_value++;
    v->shape = ARENA_ARRAY(m->arena, const Affine *, type->rank);
    v->ring_dim = -1;
    return v;
}

Value *op_set_result(Module *m, Op *op, unsigned i, const Type *type,
                     const char *name)
{
    Value *v = value_new(m, type, name);
    v->def = op;
    v->index = i;
    op->results[i] = v;
    return v;
}

void op_resize_operands(Module *m, Op *op, unsigned n)
{
    Operand *operands = ARENA_ARRAY(m->arena, Operand, n);
    unsigned keep = n < op->n_operands ? n : op->n_operands;
    memcpy(operands, op->operands, keep * sizeof *operands);
    op->operands = operands;
    op->n_operands = n;
}

Block *block_new(Module *m, Op *parent)
{
    Block *b = ARENA_NEW(m->arena, Block);
    b->parent = parent;
    return b;
}

static void block_add_arg(Module *m, Block *b, BlockArg arg)
{
    BlockArg *args = ARENA_ARRAY(m->arena, BlockArg, b->n_args + 1);
    if (b->n_args)
        memcpy(args, b->args, b->n_args * sizeof *args);
    args[b->n_args++] = arg;
    b->args = args;
}

Value *block_add_value(Module *m, Block *b, const Type *type, const char *name)
{
    Value *v = value_new(m, type, name);
    v->owner = b;
    v->index = b->n_args;
    block_add_arg(m, b, (BlockArg){ v, 0 });
    return v;
}

VarId block_add_var(Module *m, Block *b, const char *name, VarKind kind)
{
    VarId var = var_new(m->exprs, name, kind);
    block_add_arg(m, b, (BlockArg){ NULL, var });
    return var;
}

void block_add_known_var(Module *m, Block *b, VarId var)
{
    block_add_arg(m, b, (BlockArg){ NULL, var });
}

void block_append(Block *b, Op *op)
{
    op->parent = b;
    op->prev = b->last;
    op->next = NULL;
    if (b->last)
        b->last->next = op;
    else
        b->first = op;
    b->last = op;
}

void op_insert_before(Op *at, Op *op)
{
    Block *b = at->parent;
    op->parent = b;
    op->next = at;
    op->prev = at->prev;
    if (at->prev)
        at->prev->next = op;
    else
        b->first = op;
    at->prev = op;
}

void op_insert_after(Op *at, Op *op)
{
    if (at->next)
        op_insert_before(at->next, op);
    else
        block_append(at->parent, op);
}

void op_detach(Op *op)
{
    Block *b = op->parent;
    if (op->prev)
        op->prev->next = op->next;
    else
        b->first = op->next;
    if (op->next)
        op->next->prev = op->prev;
    else
        b->last = op->prev;
    op->parent = NULL;
    op->prev = op->next = NULL;
}

Access *access_new(Module *m, Value *base)
{
    Access *a = ARENA_NEW(m->arena, Access);
    a->base = base;
    a->rank = base->type->rank;
    a->dims = ARENA_ARRAY(m->arena, AccessDim, a->rank);
    return a;
}

Operand opnd_value(Value *v)
{
    return (Operand){ OPND_value, { .value = v } };
}

Operand opnd_access(Access *a)
{
    return (Operand){ OPND_access, { .access = a } };
}

Operand opnd_index(const Affine *e)
{
    return (Operand){ OPND_index, { .index = e } };
}

Operand opnd_cond(const Cond *c)
{
    return (Operand){ OPND_cond, { .cond = c } };
}

const Attr *op_attr(const Op *op, const char *key)
{
    for (unsigned i = 0; i < op->n_attrs; i++)
        if (!strcmp(op->attrs[i].key, key))
            return &op->attrs[i];
    return NULL;
}

const Param *op_attr_param(const Op *op, const char *key)
{
    const Attr *a = op_attr(op, key);
    return a && a->kind == ATTR_param ? a->param : NULL;
}

bool attr_is_derived(const char *key)
{
    return !strncmp(key, "derived.", 8);
}

bool attr_in_row(const char *keys, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = keys; at && *at;) {
        size_t len = strcspn(at, " !");
        if (len == n && !strncmp(at, key, n))
            return true;
        at += len;
        at += strspn(at, " !");
    }
    return false;
}

int64_t op_attr_int(const Op *op, const char *key, int64_t otherwise)
{
    const Param *p = op_attr_param(op, key);
    return p && (p->kind == PARAM_int || p->kind == PARAM_bool) ? p->i
                                                                : otherwise;
}

bool op_is_atomic(const Op *op)
{
    return op->code == OP_mem_reduce && op_attr_int(op, "atomic", 0);
}

const char *op_attr_str(const Op *op, const char *key, const char *otherwise)
{
    const Param *p = op_attr_param(op, key);
    return p && p->kind == PARAM_str ? p->s : otherwise;
}

void op_set_attr(Module *m, Op *op, Attr attr)
{
    attr.key = ctx_intern(m->ctx, attr.key);
    for (unsigned i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].key == attr.key) {
            op->attrs[i] = attr;
            return;
        }
    Attr *attrs = ARENA_ARRAY(m->arena, Attr, op->n_attrs + 1);
    if (op->n_attrs)
        memcpy(attrs, op->attrs, op->n_attrs * sizeof *attrs);
    attrs[op->n_attrs++] = attr;
    op->attrs = attrs;
}

void op_set_param(Module *m, Op *op, const char *key, const Param *p)
{
    op_set_attr(m, op,
                (Attr){ .key = key,
                        .kind = ATTR_param,
                        .param = param_intern(m->ctx, 1, p) });
}

void op_set_int(Module *m, Op *op, const char *key, int64_t v)
{
    op_set_param(m, op, key, &(Param){ .kind = PARAM_int, .i = v });
}

void op_set_str(Module *m, Op *op, const char *key, const char *s)
{
    op_set_param(m, op, key, &(Param){ .kind = PARAM_str, .s = s });
}

void op_set_bool(Module *m, Op *op, const char *key, bool b)
{
    op_set_param(m, op, key, &(Param){ .kind = PARAM_bool, .i = b });
}

void op_remove_attr(Op *op, const char *key)
{
    for (unsigned i = 0; i < op->n_attrs; i++)
        if (!strcmp(op->attrs[i].key, key)) {
            memmove(&op->attrs[i], &op->attrs[i + 1],
                    (op->n_attrs - i - 1) * sizeof *op->attrs);
            op->n_attrs--;
            return;
        }
}

void op_walk(Op *op, bool (*fn)(Op *, void *), void *user)
{
    if (!fn(op, user))
        return;
    for (unsigned i = 0; i < op->n_blocks; i++)
        block_walk(op->blocks[i], fn, user);
}

void block_walk(Block *b, bool (*fn)(Op *, void *), void *user)
{
    for (Op *op = b->first, *next; op; op = next) {
        next = op->next;
        op_walk(op, fn, user);
    }
}

static bool is_result(const Op *op, const Value *v)
{
    for (unsigned i = 0; i < op->n_results; i++)
        if (op->results[i] == v)
            return true;
    return false;
}

typedef struct Uses {
    const Op *of;
    bool found;
} Uses;

static bool find_use(Op *user, void *data)
{
    Uses *uses = data;
    for (unsigned i = 0; i < user->n_operands; i++) {
        const Operand *o = &user->operands[i];
        if (o->kind == OPND_value)
            uses->found |= is_result(uses->of, o->u.value);
        for (unsigned d = 0; o->kind == OPND_access && d < o->u.access->rank;
             d++)
            uses->found |= is_result(uses->of, o->u.access->dims[d].ring);
    }
    return !uses->found;
}

bool op_used_behind(const Op *op)
{
    Uses uses = { .of = op };
    for (Op *after = op->next; after && !uses.found; after = after->next)
        op_walk(after, find_use, &uses);
    return uses.found;
}

static void access_replace(Access *a, Value *from, Value *to)
{
    if (a->base == from)
        a->base = to;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].ring == from)
            a->dims[i].ring = to;
}

typedef struct Replacement {
    Value *from, *to;
} Replacement;

static bool replace_in_op(Op *op, void *user)
{
    const Replacement *r = user;
    for (unsigned i = 0; i < op->n_operands; i++) {
        Operand *o = &op->operands[i];
        if (o->kind == OPND_value && o->u.value == r->from)
            o->u.value = r->to;
        else if (o->kind == OPND_access)
            access_replace(o->u.access, r->from, r->to);
    }
    for (unsigned i = 0; i < op->n_results; i++)
        if (op->results[i]->ring_guard == r->from)
            op->results[i]->ring_guard = r->to;
    return true;
}

void block_replace_value(Block *b, Value *from, Value *to)
{
    Replacement r = { from, to };
    block_walk(b, replace_in_op, &r);
}

Op *op_parent(const Op *op)
{
    return op->parent ? op->parent->parent : NULL;
}

Op *op_enclosing(Op *op, OpCode code)
{
    while (op && op->code != code)
        op = op_parent(op);
    return op;
}

Op *module_symbol(const Module *m, const char *name)
{
    for (Op *op = m->body->first; op; op = op->next)
        if (op_has(op, OPT_SYMBOL) &&
            !strcmp(op_attr_str(op, "name", ""), name))
            return op;
    return NULL;
}
