/* What holds at a place: collected from the ops around it, and closed under
 * the bounds of the variables that occur. */
#include "passes/prove.h"

#include <string.h>

Facts *facts_new(Arena *arena, ExprCtx *x)
{
    Facts *f = ARENA_NEW(arena, Facts);
    f->arena = arena;
    f->exprs = x;
    return f;
}

Facts *facts_copy(Arena *arena, const Facts *f)
{
    Facts *copy = facts_new(arena, f->exprs);
    copy->incomplete = f->incomplete;
    copy->about = f->about;
    for (size_t i = 0; i < f->conds.len; i++)
        VEC_PUSH(arena, &copy->conds, f->conds.data[i]);
    return copy;
}

void facts_assume(Facts *f, const Cond *c)
{
    if (!c)
        f->incomplete = true;
    else if (c->kind != COND_true)
        VEC_PUSH(f->arena, &f->conds, c);
}

/* Adds lo <= v < hi to a list, for the ends that are known. */
static bool push_range(Arena *arena, CondVec *out, ExprCtx *x, VarId v,
                       const Affine *lo, const Affine *hi)
{
    const Affine *var = affine_var(x, v);
    const Cond *c;
    if (lo) {
        if (!(c = cond_cmp(x, CMP_ge, var, lo)))
            return false;
        VEC_PUSH(arena, out, c);
    }
    if (hi) {
        if (!(c = cond_cmp(x, CMP_lt, var, hi)))
            return false;
        VEC_PUSH(arena, out, c);
    }
    return true;
}

/* Adds what a variable's kind and bounds say of it. */
static bool push_var(Arena *arena, CondVec *out, ExprCtx *x, VarId v)
{
    const Var *info = var_get(x, v);
    const Affine *zero = affine_const(x, 0), *one = affine_const(x, 1);
    if (info->kind == VAR_size)
        push_range(arena, out, x, v, one, NULL);
    if (info->kind == VAR_bool)
        push_range(arena, out, x, v, zero, affine_const(x, 2));
    return push_range(arena, out, x, v, info->lo, info->hi);
}

void facts_assume_var(Facts *f, VarId v)
{
    if (!push_var(f->arena, &f->conds, f->exprs, v))
        f->incomplete = true;
}

/* ---- closure ------------------------------------------------------------- */

/* A set of pointers, by open addressing. */
typedef struct PtrSet {
    Arena *arena;
    const void **slot;
    size_t len, cap;
} PtrSet;

/* False when p was there already. */
static bool set_add(PtrSet *s, const void *p)
{
    if (2 * (s->len + 1) > s->cap) {
        PtrSet old = *s;
        s->cap = old.cap ? 2 * old.cap : 64;
        s->len = 0;
        s->slot = ARENA_ARRAY(s->arena, const void *, s->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.slot[i])
                set_add(s, old.slot[i]);
    }
    size_t i =
        (size_t)(((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) &
        (s->cap - 1);
    for (; s->slot[i]; i = (i + 1) & (s->cap - 1))
        if (s->slot[i] == p)
            return false;
    s->slot[i] = p;
    s->len++;
    return true;
}

typedef struct Closure {
    const Facts *facts;
    CondVec *out;
    PtrSet seen;
    bool complete;
} Closure;

static void close_affine(Closure *cl, const Affine *a)
{
    if (!a || !set_add(&cl->seen, a))
        return;
    for (uint32_t i = 0; i < a->n_terms; i++) {
        const Atom *atom = a->terms[i].atom;
        const Facts *f = cl->facts;
        if (!set_add(&cl->seen, atom))
            continue;
        close_affine(cl, atom->arg);
        close_affine(cl, atom->lhs);
        close_affine(cl, atom->rhs);
        if (atom->kind == ATOM_var &&
            !push_var(f->arena, cl->out, f->exprs, atom->var))
            cl->complete = false;
        const Cond *more =
            atom->kind == ATOM_opaque && f->about ? f->about(f, atom) : NULL;
        if (more)
            VEC_PUSH(f->arena, cl->out, more);
    }
}

static void close_cond(Closure *cl, const Cond *c)
{
    if (!c || !set_add(&cl->seen, c))
        return;
    close_affine(cl, c->expr);
    close_cond(cl, c->lhs);
    close_cond(cl, c->rhs);
}

bool facts_closure(const Facts *f, const Cond *c, CondVec *out)
{
    Closure cl = { f, out, { f->arena, NULL, 0, 0 }, !f->incomplete };
    CondVec all = { 0 };
    PtrSet added = { f->arena, NULL, 0, 0 };
    if (c)
        VEC_PUSH(f->arena, out, c);
    for (size_t i = 0; i < f->conds.len; i++)
        VEC_PUSH(f->arena, out, f->conds.data[i]);
    for (size_t i = 0; i < out->len; i++) {
        close_cond(&cl, out->data[i]);
        if (set_add(&added, out->data[i]))
            VEC_PUSH(f->arena, &all, out->data[i]);
    }
    *out = all;
    return cl.complete;
}

/* ---- places -------------------------------------------------------------- */

static bool is_write_of(Op *op, void *user)
{
    const char **field = user;
    if (op->code == OP_cfg_write && *field &&
        strcmp(op_attr_str(op, "field", ""), *field) == 0)
        *field = NULL;
    return *field != NULL;
}

static bool affine_is_stable(const Module *m, const Affine *a)
{
    for (uint32_t i = 0; a && i < a->n_terms; i++) {
        const Atom *atom = a->terms[i].atom;
        if (!affine_is_stable(m, atom->arg) ||
            !affine_is_stable(m, atom->lhs) || !affine_is_stable(m, atom->rhs))
            return false;
        if (atom->kind != ATOM_opaque || atom->opaque != OPAQUE_config)
            continue;
        const char *field = atom->name;
        block_walk(m->body, is_write_of, &field);
        if (!field)
            return false;
    }
    return true;
}

/* Does c hold later if it holds once? Not where it reads configuration state
 * that the module writes. */
static bool cond_is_stable(const Module *m, const Cond *c)
{
    return !c || (affine_is_stable(m, c->expr) && cond_is_stable(m, c->lhs) &&
                  cond_is_stable(m, c->rhs));
}

static void assume_stable(Facts *f, const Module *m, const Cond *c)
{
    if (c && !cond_is_stable(m, c))
        f->incomplete = true;
    else
        facts_assume(f, c);
}

static void assume_range(Facts *f, VarId v, const Affine *lo, const Affine *hi)
{
    if (!push_range(f->arena, &f->conds, f->exprs, v, lo, hi))
        f->incomplete = true;
}

/* The i-th control variable among a block's arguments, or 0. */
static VarId block_var(const Block *b, unsigned i)
{
    for (unsigned k = 0; k < b->n_args; k++)
        if (!b->args[k].value && i-- == 0)
            return b->args[k].var;
    return 0;
}

/* The warp coordinate of the kernel around op: the last but one of its
 * variables; 0 outside kernels. */
static VarId warp_var(Op *op)
{
    Op *kernel = op_enclosing(op, OP_async_kernel);
    if (!kernel || kernel->blocks[0]->n_args < 2)
        return 0;
    const Block *b = kernel->blocks[0];
    return b->args[b->n_args - 2].value ? 0 : b->args[b->n_args - 2].var;
}

static void assume_role(Facts *f, Op *role)
{
    VarId warp = warp_var(role);
    if (warp)
        assume_range(f, warp,
                     affine_const(f->exprs, op_attr_int(role, "lo", 0)),
                     affine_const(f->exprs, op_attr_int(role, "hi", 0)));
}

/* Parameters are in scope; checks at the top of the block hold below them. */
static void assume_symbol(Facts *f, const Module *m, const Op *symbol,
                          const Op *until)
{
    const Block *b = symbol->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value)
            facts_assume_var(f, b->args[i].var);
    for (const Op *op = b->first; op && op != until; op = op->next) {
        if (op->code == OP_ctl_assert || op->code == OP_host_check)
            assume_stable(f, m, op->operands[0].u.cond);
        else if (!op_has(op, OPT_PURE))
            break;
    }
}

/* What entering block i of op adds; `until` is the op looked at, when it is
 * in that block. */
static void assume_entry(Facts *f, Module *m, Op *op, unsigned i,
                         const Op *until)
{
    const Block *b = op->blocks[i];
    unsigned rank;
    switch (op->code) {
    case OP_ctl_for:
        if (block_var(b, 0))
            assume_range(f, block_var(b, 0), op->operands[0].u.index,
                         op->operands[1].u.index);
        break;
    case OP_ctl_if:
        assume_stable(f, m,
                      i == 0 ? op->operands[0].u.cond
                             : cond_not(f->exprs, op->operands[0].u.cond));
        break;
    case OP_async_tasks:
        rank = (unsigned)op_attr_int(op, "rank", 0);
        for (unsigned k = 0; k < rank && 2 * k + 1 < op->n_operands; k++)
            if (block_var(b, k))
                assume_range(f, block_var(b, k), op->operands[2 * k].u.index,
                             op->operands[2 * k + 1].u.index);
        break;
    case OP_async_role:
        assume_role(f, op);
        break;
    default:
        if (op_has(op, OPT_SYMBOL))
            assume_symbol(f, m, op, until);
    }
}

/* The extents behind dim multiplied: the stride of a dense tensor. */
static const Cond *dense_stride(const Facts *f, const Atom *atom)
{
    const Value *v = atom->ref;
    if (atom->opaque != OPAQUE_stride || !v || v->type->kind != TK_tensor ||
        atom->dim >= v->type->rank || !v->shape)
        return NULL;
    const Affine *product = affine_const(f->exprs, 1);
    for (unsigned i = atom->dim + 1; i < v->type->rank; i++)
        product = affine_mul(f->exprs, product, v->shape[i]);
    return cond_cmp(f->exprs, CMP_eq, affine_stride(f->exprs, v, atom->dim),
                    product);
}

static unsigned block_number(const Block *b)
{
    for (unsigned i = 0; i < b->parent->n_blocks; i++)
        if (b->parent->blocks[i] == b)
            return i;
    panic("a block is not among its parent's");
}

/* Enters the blocks around `op`, outermost first. Nesting is bounded by the
 * parsers. */
static void assume_around(Facts *f, Module *m, const Op *op)
{
    if (!op->parent || !op->parent->parent)
        return;
    Op *outer = op->parent->parent;
    assume_around(f, m, outer);
    assume_entry(f, m, outer, block_number(op->parent), op);
}

Facts *prove_facts_at(Arena *arena, Module *m, Op *op)
{
    Facts *f = facts_new(arena, m->exprs);
    f->about = dense_stride;
    assume_around(f, m, op);
    return f;
}

Facts *prove_facts_in(Arena *arena, Module *m, Op *op, unsigned block)
{
    Facts *f = prove_facts_at(arena, m, op);
    assume_entry(f, m, op, block, NULL);
    return f;
}
