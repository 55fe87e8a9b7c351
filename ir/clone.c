/* Deep copies of ops and modules, within a module or into another.
 *
 * A CloneMap carries what was copied so far: values, and control variables as
 * index expressions of the target (so that a copy can also substitute, as
 * unrolling does). Within one module unmapped names stand for themselves. */
#include "ir/ir.h"

#include <string.h>

typedef struct ValuePair {
    const Value *from;
    Value *to;
} ValuePair;

struct CloneMap {
    Module *to, *from;
    ValuePair *slots; /* open addressing on the value's id */
    size_t n, n_slots;
    const Affine **index; /* by VarId of from; NULL: not mapped */
    size_t n_index;
    bool keep_sids;
};

CloneMap *clone_map_new(Module *to, Module *from)
{
    CloneMap *cm = ARENA_NEW(to->arena, CloneMap);
    cm->to = to;
    cm->from = from;
    return cm;
}

CloneMap *clone_map_copy(const CloneMap *cm)
{
    CloneMap *copy = arena_memdup(cm->to->arena, cm, sizeof *cm);
    if (cm->n_slots)
        copy->slots = arena_memdup(cm->to->arena, cm->slots,
                                   cm->n_slots * sizeof *cm->slots);
    if (cm->n_index)
        copy->index = arena_memdup(cm->to->arena, cm->index,
                                   cm->n_index * sizeof *cm->index);
    return copy;
}

static ValuePair *slot_of(const CloneMap *cm, const Value *v)
{
    size_t at = (size_t)v->id * 2654435761u % cm->n_slots;
    while (cm->slots[at].from && cm->slots[at].from != v)
        at = (at + 1) % cm->n_slots;
    return &cm->slots[at];
}

void clone_map_value(CloneMap *cm, const Value *from, Value *to)
{
    if (2 * (cm->n + 1) > cm->n_slots) {
        ValuePair *old = cm->slots;
        size_t n_old = cm->n_slots;
        cm->n_slots = n_old ? 2 * n_old : 64;
        cm->slots = ARENA_ARRAY(cm->to->arena, ValuePair, cm->n_slots);
        for (size_t i = 0; i < n_old; i++)
            if (old[i].from)
                *slot_of(cm, old[i].from) = old[i];
    }
    ValuePair *s = slot_of(cm, from);
    cm->n += s->from == NULL;
    *s = (ValuePair){ from, to };
}

Value *clone_map_get(const CloneMap *cm, const Value *from)
{
    if (cm->n_slots) {
        ValuePair *s = slot_of(cm, from);
        if (s->from)
            return s->to;
    }
    if (cm->to != cm->from)
        panic("clone: value %u is not mapped", from->id);
    return (Value *)from;
}

void clone_map_index(CloneMap *cm, VarId from, const Affine *to)
{
    if (from >= cm->n_index) {
        size_t n = cm->n_index ? cm->n_index * 2 : 64;
        while (n <= from)
            n *= 2;
        const Affine **index = ARENA_ARRAY(cm->to->arena, const Affine *, n);
        if (cm->n_index)
            memcpy(index, cm->index, cm->n_index * sizeof *index);
        cm->index = index;
        cm->n_index = n;
    }
    cm->index[from] = to;
}

static const Affine *mapped_index(const CloneMap *cm, VarId v)
{
    return v < cm->n_index ? cm->index[v] : NULL;
}

/* Substitution in one module goes through Subst; into another module each
 * expression is rebuilt atom by atom. */
static const Affine *rebuild(CloneMap *cm, const Affine *e);

static const Affine *rebuild_atom(CloneMap *cm, const Atom *a)
{
    ExprCtx *x = cm->to->exprs;
    switch (a->kind) {
    case ATOM_var: {
        const Affine *to = mapped_index(cm, a->var);
        if (to)
            return to;
        if (cm->to != cm->from)
            panic("clone: variable %u is not mapped", a->var);
        return affine_var(x, a->var);
    }
    case ATOM_floordiv:
        return affine_floordiv(x, rebuild(cm, a->arg), a->divisor);
    case ATOM_mod:
        return affine_mod(x, rebuild(cm, a->arg), a->divisor);
    case ATOM_opaque:
        break;
    }
    switch (a->opaque) {
    case OPAQUE_stride:
        return affine_stride(x, clone_map_get(cm, a->ref), a->dim);
    case OPAQUE_config:
        return affine_config(x, a->name);
    case OPAQUE_product:
        break;
    }
    const Affine *lhs = rebuild(cm, a->lhs);
    return affine_mul(x, lhs, rebuild(cm, a->rhs));
}

static const Affine *rebuild(CloneMap *cm, const Affine *e)
{
    if (!e)
        return NULL;
    ExprCtx *x = cm->to->exprs;
    const Affine *sum = affine_const(x, e->constant);
    for (uint32_t i = 0; i < e->n_terms; i++) {
        const Affine *atom = rebuild_atom(cm, e->terms[i].atom);
        sum = affine_add(x, sum, affine_scale(x, atom, e->terms[i].coef));
    }
    return sum;
}

const Affine *clone_index(CloneMap *cm, const Affine *e)
{
    return rebuild(cm, e);
}

const Cond *clone_cond(CloneMap *cm, const Cond *c)
{
    ExprCtx *x = cm->to->exprs;
    if (!c)
        return NULL;
    switch (c->kind) {
    case COND_false:
    case COND_true:
        return cond_bool(x, c->kind == COND_true);
    case COND_ge0:
        return cond_cmp(x, CMP_ge, rebuild(cm, c->expr), affine_const(x, 0));
    case COND_eq0:
        return cond_cmp(x, CMP_eq, rebuild(cm, c->expr), affine_const(x, 0));
    case COND_not:
        return cond_not(x, clone_cond(cm, c->lhs));
    case COND_and:
    case COND_or:
        break;
    }
    const Cond *lhs = clone_cond(cm, c->lhs);
    const Cond *rhs = clone_cond(cm, c->rhs);
    return c->kind == COND_and ? cond_and(x, lhs, rhs) : cond_or(x, lhs, rhs);
}

Access *clone_access(CloneMap *cm, const Access *a)
{
    Access *b = access_new(cm->to, clone_map_get(cm, a->base));
    for (unsigned i = 0; i < a->rank; i++) {
        b->dims[i] = a->dims[i];
        b->dims[i].lo = clone_index(cm, a->dims[i].lo);
        b->dims[i].len = clone_index(cm, a->dims[i].len);
        if (a->dims[i].ring)
            b->dims[i].ring = clone_map_get(cm, a->dims[i].ring);
    }
    return b;
}

static Operand clone_operand(CloneMap *cm, const Operand *o)
{
    switch (o->kind) {
    case OPND_value:
        return opnd_value(clone_map_get(cm, o->u.value));
    case OPND_access:
        return opnd_access(clone_access(cm, o->u.access));
    case OPND_index:
        return opnd_index(clone_index(cm, o->u.index));
    case OPND_cond:
        return opnd_cond(clone_cond(cm, o->u.cond));
    }
    panic("clone: operand kind %d", (int)o->kind);
}

/* Extents, ring and guard of a copied value. */
static void clone_value_facts(CloneMap *cm, const Value *from, Value *to)
{
    for (unsigned i = 0; i < from->type->rank; i++)
        to->shape[i] = clone_index(cm, from->shape[i]);
    to->ring_dim = from->ring_dim;
    to->ring_depth = from->ring_depth;
    if (from->ring_guard)
        to->ring_guard = clone_map_get(cm, from->ring_guard);
    clone_map_value(cm, from, to);
}

static void clone_attr(CloneMap *cm, Op *to, const Attr *a)
{
    Attr b = *a;
    b.index = clone_index(cm, a->index);
    if (a->n) {
        b.indices = ARENA_ARRAY(cm->to->arena, const Affine *, a->n);
        for (unsigned i = 0; i < a->n; i++)
            b.indices[i] = clone_index(cm, a->indices[i]);
    }
    op_set_attr(cm->to, to, b);
}

static void clone_args(CloneMap *cm, const Block *from, Block *to)
{
    for (unsigned i = 0; i < from->n_args; i++) {
        const BlockArg *arg = &from->args[i];
        if (arg->value) {
            Value *v =
                block_add_value(cm->to, to, arg->value->type, arg->value->name);
            clone_value_facts(cm, arg->value, v);
            continue;
        }
        Var var = *var_get(cm->from->exprs, arg->var);
        VarId v = block_add_var(cm->to, to, var.name, var.kind);
        clone_map_index(cm, arg->var, affine_var(cm->to->exprs, v));
        const Affine *lo = clone_index(cm, var.lo);
        var_set_bounds(cm->to->exprs, v, lo, clone_index(cm, var.hi));
    }
}

Op *op_clone(CloneMap *cm, const Op *op)
{
    Module *m = cm->to;
    uint32_t sid = m->next_sid;
    Op *copy = op_new(m, op->code, op->loc, op->n_operands, op->n_results,
                      op->n_blocks);
    if (cm->keep_sids) {
        copy->sid = op->sid;
        m->next_sid = sid;
    }
    copy->comment = op->comment;
    for (unsigned i = 0; i < op->n_operands; i++)
        copy->operands[i] = clone_operand(cm, &op->operands[i]);
    for (unsigned i = 0; i < op->n_attrs; i++)
        clone_attr(cm, copy, &op->attrs[i]);
    copy->origin = op->origin;
    if (op->origin.n) {
        copy->origin.iters =
            ARENA_ARRAY(m->arena, const Affine *, op->origin.n);
        for (unsigned i = 0; i < op->origin.n; i++)
            copy->origin.iters[i] = clone_index(cm, op->origin.iters[i]);
    }
    for (unsigned i = 0; i < op->n_blocks; i++) {
        clone_args(cm, op->blocks[i], copy->blocks[i]);
        block_clone_into(cm, op->blocks[i], copy->blocks[i]);
    }
    for (unsigned i = 0; i < op->n_results; i++) {
        const Value *v = op->results[i];
        Value *w = op_set_result(m, copy, i, v->type, v->name);
        clone_value_facts(cm, v, w);
    }
    return copy;
}

void block_clone_into(CloneMap *cm, const Block *from, Block *to)
{
    for (const Op *op = from->first; op; op = op->next)
        block_append(to, op_clone(cm, op));
}

/* ---- modules ------------------------------------------------------------- */

/* A module for copies of ops of m. */
static CloneMap *clone_begin(const Module *m)
{
    Module *copy = module_new(m->ctx);
    copy->lib = m->lib;
    copy->n_imports = m->n_imports;
    copy->imports = arena_memdup(copy->arena, m->imports,
                                 m->n_imports * sizeof *m->imports);
    copy->next_sid = m->next_sid;
    CloneMap *cm = clone_map_new(copy, (Module *)m);
    cm->keep_sids = true;
    return cm;
}

Module *module_clone(const Module *m)
{
    CloneMap *cm = clone_begin(m);
    block_clone_into(cm, m->body, cm->to->body);
    return cm->to;
}

typedef struct Part {
    const Module *m;
    Arena *arena;
    VEC(const Op *) ops;
} Part;

static bool is_in_part(const Part *p, const Op *op)
{
    for (size_t i = 0; i < p->ops.len; i++)
        if (p->ops.data[i] == op)
            return true;
    return false;
}

/* Adds what the op calls or launches. */
static bool add_named(Op *op, void *user)
{
    static const char *const keys[] = { "callee", "kernel" };
    Part *p = user;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *name = op_attr_str(op, keys[i], NULL);
        const Op *named = name ? module_symbol(p->m, name) : NULL;
        if (named && !is_in_part(p, named))
            VEC_PUSH(p->arena, &p->ops, named);
    }
    return true;
}

Module *module_part(const Module *m, const Op *op, Op **copy)
{
    CloneMap *cm = clone_begin(m);
    Part p = { .m = m, .arena = arena_new() };
    VEC_PUSH(p.arena, &p.ops, op);
    for (size_t i = 0; i < p.ops.len; i++)
        op_walk((Op *)p.ops.data[i], add_named, &p);
    for (const Op *o = m->body->first; o; o = o->next)
        if (is_in_part(&p, o)) {
            block_append(cm->to->body, op_clone(cm, o));
            if (o == op)
                *copy = cm->to->body->last;
        }
    arena_free(p.arena);
    return cm->to;
}
