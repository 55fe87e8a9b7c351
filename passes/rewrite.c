/* Shared steps of the general passes. */
#include "passes/rewrite.h"

/* ---- substitution -------------------------------------------------------- */

static bool subst_index(CloneMap *cm, const Affine **e)
{
    if (!*e)
        return true;
    *e = clone_index(cm, *e);
    return *e != NULL;
}

static bool subst_access(CloneMap *cm, Access *a)
{
    bool ok = true;
    a->base = clone_map_get(cm, a->base);
    for (unsigned i = 0; i < a->rank; i++) {
        AccessDim *d = &a->dims[i];
        ok &= subst_index(cm, &d->lo) && subst_index(cm, &d->len);
        if (d->ring)
            d->ring = clone_map_get(cm, d->ring);
    }
    return ok;
}

static bool subst_operand(CloneMap *cm, Operand *o)
{
    switch (o->kind) {
    case OPND_value:
        o->u.value = clone_map_get(cm, o->u.value);
        return true;
    case OPND_access:
        return subst_access(cm, o->u.access);
    case OPND_index:
        return subst_index(cm, &o->u.index);
    default:
        o->u.cond = clone_cond(cm, o->u.cond);
        return o->u.cond != NULL;
    }
}

static bool subst_list(CloneMap *cm, Module *m, unsigned n,
                       const Affine ***list)
{
    if (!n)
        return true;
    const Affine **copy = arena_memdup(m->arena, *list, n * sizeof **list);
    bool ok = true;
    for (unsigned i = 0; i < n; i++)
        ok &= subst_index(cm, &copy[i]);
    *list = copy;
    return ok;
}

bool op_substitute(CloneMap *cm, Module *m, Op *op)
{
    bool ok = true;
    for (unsigned i = 0; i < op->n_operands; i++)
        ok &= subst_operand(cm, &op->operands[i]);
    for (unsigned i = 0; i < op->n_attrs; i++) {
        Attr *a = &op->attrs[i];
        if (a->kind == ATTR_index)
            ok &= subst_index(cm, &a->index);
        else if (a->kind == ATTR_indices)
            ok &= subst_list(cm, m, a->n, &a->indices);
    }
    return ok && subst_list(cm, m, op->origin.n, &op->origin.iters);
}

bool value_substitute(CloneMap *cm, Module *m, Value *v)
{
    if (v->ring_guard)
        v->ring_guard = clone_map_get(cm, v->ring_guard);
    return subst_list(cm, m, v->type->rank, &v->shape);
}

/* ---- blocks -------------------------------------------------------------- */

void block_splice_before(Op *at, Block *b)
{
    for (Op *op = b->first, *next; op; op = next) {
        next = op->next;
        op_detach(op);
        op_insert_before(at, op);
    }
}

Op *block_yield(const Block *b)
{
    return b->last && b->last->code == OP_ctl_yield ? b->last : NULL;
}

/* ---- conditions ---------------------------------------------------------- */

static Decided decide_ge0(ExprCtx *x, const Affine *e)
{
    int64_t bound;
    if (affine_min(x, e, &bound) && bound >= 0)
        return DECIDED_yes;
    return affine_max(x, e, &bound) && bound < 0 ? DECIDED_no : DECIDED_open;
}

static Decided decide_eq0(ExprCtx *x, const Affine *e)
{
    int64_t lo, hi;
    bool has_lo = affine_min(x, e, &lo), has_hi = affine_max(x, e, &hi);
    if ((has_lo && lo > 0) || (has_hi && hi < 0))
        return DECIDED_no;
    return has_lo && has_hi && lo == 0 && hi == 0 ? DECIDED_yes : DECIDED_open;
}

static Decided decide_not(Decided d)
{
    return d == DECIDED_open ? d : d == DECIDED_yes ? DECIDED_no : DECIDED_yes;
}

Decided cond_decide(ExprCtx *x, const Cond *c)
{
    Decided l, r;
    switch (c->kind) {
    case COND_true:
        return DECIDED_yes;
    case COND_false:
        return DECIDED_no;
    case COND_ge0:
        return decide_ge0(x, c->expr);
    case COND_eq0:
        return decide_eq0(x, c->expr);
    case COND_not:
        return decide_not(cond_decide(x, c->lhs));
    default:
        break;
    }
    l = cond_decide(x, c->lhs);
    r = cond_decide(x, c->rhs);
    Decided strong = c->kind == COND_and ? DECIDED_no : DECIDED_yes;
    if (l == strong || r == strong)
        return strong;
    return l == DECIDED_open || r == DECIDED_open ? DECIDED_open
                                                  : decide_not(strong);
}

/* ---- calls --------------------------------------------------------------- */

/* Does the access take all of its base? */
static bool access_is_whole(const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        int64_t lo;
        if (d->kind != DIM_interval || !affine_is_const(d->lo, &lo) || lo ||
            d->len != a->base->shape[i])
            return false;
    }
    return true;
}

static Value *window_of(Module *m, Op *call, const Access *a)
{
    unsigned rank = 0;
    for (unsigned i = 0; i < a->rank; i++)
        rank += a->dims[i].kind == DIM_interval;
    Op *w = op_new(m, OP_mem_window, call->loc, 1, 1, 0);
    Access *copy = access_new(m, a->base);
    for (unsigned i = 0; i < a->rank; i++)
        copy->dims[i] = a->dims[i];
    w->operands[0] = opnd_access(copy);
    const Type *t = a->base->type;
    TypeKind kind = t->kind == TK_map ? TK_map : TK_window;
    Value *v = op_set_result(
        m, w, 0, type_tensor(m->ctx, kind, t->elem, rank, t->mem), NULL);
    for (unsigned i = 0, k = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            v->shape[k++] = a->dims[i].len;
    op_insert_before(call, w);
    return v;
}

/* Lets a parameter stand for a tensor, unless its elements differ. */
static bool map_tensor(CloneMap *cm, Module *m, Op *call, unsigned i,
                       const Value *param, Value *v)
{
    ScalarType have = v->type->elem, want = param->type->elem;
    if (have != want) {
        diag_error(m->ctx, call->loc, "type",
                   "argument %u has elements %s, its parameter %s", i + 1,
                   scalar_type_name(have), scalar_type_name(want));
        return false;
    }
    clone_map_value(cm, param, v);
    return true;
}

/* What a bool argument is worth that is a constant or the name of a bool, which
 * is b == 1 as a condition; NULL of another condition. */
static const Affine *bool_value(ExprCtx *x, const Cond *c)
{
    const Affine *one = affine_const(x, 1);
    VarId v;
    if (c->kind == COND_true)
        return one;
    if (c->kind == COND_false)
        return affine_const(x, 0);
    if (c->kind != COND_eq0)
        return NULL;
    const Affine *either[] = { affine_add(x, c->expr, one),
                               affine_sub(x, one, c->expr) };
    for (int i = 0; i < 2; i++)
        if (affine_is_var(either[i], &v) && var_get(x, v)->kind == VAR_bool)
            return either[i];
    return NULL;
}

bool call_passes_condition(const Module *m, const Op *call)
{
    for (unsigned i = 0; i < call->n_operands; i++)
        if (call->operands[i].kind == OPND_cond &&
            !bool_value(m->exprs, call->operands[i].u.cond))
            return true;
    return false;
}

/* Lets a parameter stand for an argument. */
static bool map_argument(CloneMap *cm, Module *m, Op *call, unsigned i,
                         const BlockArg *param)
{
    const Operand *o = &call->operands[i];
    const Value *value = param->value;
    if (!value && o->kind == OPND_index) {
        clone_map_index(cm, param->var, o->u.index);
        return true;
    }
    const Affine *truth =
        !value && o->kind == OPND_cond ? bool_value(m->exprs, o->u.cond) : NULL;
    if (truth) {
        clone_map_index(cm, param->var, truth);
        return true;
    }
    if (value && o->kind == OPND_value)
        return map_tensor(cm, m, call, i, value, o->u.value);
    if (value && o->kind == OPND_access) {
        const Access *a = o->u.access;
        bool whole = a->rank == value->type->rank && access_is_whole(a);
        return map_tensor(cm, m, call, i, value,
                          whole ? a->base : window_of(m, call, a));
    }
    diag_error(m->ctx, call->loc, "inline",
               "argument %u cannot be put in place of its parameter", i + 1);
    return false;
}

bool call_inline(Module *m, Op *call, unsigned n_args, Module *from,
                 const Op *proc)
{
    CloneMap *cm = clone_map_new(m, from);
    const Block *body = proc->blocks[0];
    if (body->n_args != n_args) {
        diag_error(m->ctx, call->loc, "inline",
                   "the call has %u arguments, its body %u parameters", n_args,
                   body->n_args);
        return false;
    }
    for (unsigned i = 0; i < n_args; i++)
        if (!map_argument(cm, m, call, i, &body->args[i]))
            return false;
    for (const Op *op = body->first; op; op = op->next)
        if (op->code != OP_ctl_assert)
            op_insert_before(call, op_clone(cm, op));
    return true;
}
