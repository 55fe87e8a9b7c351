/* Reading and rebuilding expressions: occurrence, substitution, import into
 * another context, evaluation. Recursion is bounded by EXPR_MAX_DEPTH. */
#include "ir/affine_nodes.h"

/* ---- questions ----------------------------------------------------------- */

bool affine_is_const(const Affine *a, int64_t *c)
{
    if (!a || a->n_terms)
        return false;
    if (c)
        *c = a->constant;
    return true;
}

bool affine_is_var(const Affine *a, VarId *v)
{
    if (!a || a->n_terms != 1 || a->constant != 0 || a->terms[0].coef != 1 ||
        a->terms[0].atom->kind != ATOM_var)
        return false;
    if (v)
        *v = a->terms[0].atom->var;
    return true;
}

int64_t affine_coef(const Affine *a, VarId v)
{
    for (uint32_t i = 0; a && i < a->n_terms; i++)
        if (a->terms[i].atom->kind == ATOM_var && a->terms[i].atom->var == v)
            return a->terms[i].coef;
    return 0;
}

bool affine_uses(const Affine *a, VarId v)
{
    for (uint32_t i = 0; a && i < a->n_terms; i++) {
        const Atom *atom = a->terms[i].atom;
        if (atom->kind == ATOM_var
                ? atom->var == v
                : affine_uses(atom->arg, v) || affine_uses(atom->lhs, v) ||
                      affine_uses(atom->rhs, v))
            return true;
    }
    return false;
}

bool cond_uses(const Cond *c, VarId v)
{
    return c && (affine_uses(c->expr, v) || cond_uses(c->lhs, v) ||
                 cond_uses(c->rhs, v));
}

void affine_walk_vars(const Affine *a, void (*fn)(VarId, void *), void *user)
{
    for (uint32_t i = 0; a && i < a->n_terms; i++) {
        const Atom *atom = a->terms[i].atom;
        if (atom->kind == ATOM_var) {
            fn(atom->var, user);
            continue;
        }
        affine_walk_vars(atom->arg, fn, user);
        affine_walk_vars(atom->lhs, fn, user);
        affine_walk_vars(atom->rhs, fn, user);
    }
}

void cond_walk_vars(const Cond *c, void (*fn)(VarId, void *), void *user)
{
    if (!c)
        return;
    affine_walk_vars(c->expr, fn, user);
    cond_walk_vars(c->lhs, fn, user);
    cond_walk_vars(c->rhs, fn, user);
}

void cond_walk_exprs(const Cond *c, void (*fn)(const Affine *, void *),
                     void *user)
{
    if (!c)
        return;
    if (c->expr)
        fn(c->expr, user);
    cond_walk_exprs(c->lhs, fn, user);
    cond_walk_exprs(c->rhs, fn, user);
}

/* ---- rebuilding ---------------------------------------------------------- */

/* How atoms are replaced while an expression is made again in x. */
typedef struct Rebuild Rebuild;
struct Rebuild {
    ExprCtx *x;
    const Affine *(*var)(const Rebuild *r, const Atom *atom);
    const void *(*ref)(const Rebuild *r, const void *ref);
    const Subst *subst;
    const VarId *map;
};

static const Affine *rebuild(const Rebuild *r, const Affine *a);

static const Affine *rebuild_atom(const Rebuild *r, const Atom *atom)
{
    if (atom->kind == ATOM_var)
        return r->var(r, atom);
    if (atom->kind == ATOM_floordiv)
        return affine_floordiv(r->x, rebuild(r, atom->arg), atom->divisor);
    if (atom->kind == ATOM_mod)
        return affine_mod(r->x, rebuild(r, atom->arg), atom->divisor);
    if (atom->opaque == OPAQUE_stride)
        return affine_stride(r->x, r->ref(r, atom->ref), atom->dim);
    if (atom->opaque == OPAQUE_config)
        return affine_config(r->x, atom->name);
    const Affine *lhs = rebuild(r, atom->lhs);
    return affine_mul(r->x, lhs, rebuild(r, atom->rhs));
}

static const Affine *rebuild(const Rebuild *r, const Affine *a)
{
    if (!a)
        return NULL;
    const Affine *sum = affine_const(r->x, a->constant);
    for (uint32_t i = 0; sum && i < a->n_terms; i++) {
        const Affine *t = rebuild_atom(r, a->terms[i].atom);
        sum = affine_add(r->x, sum, affine_scale(r->x, t, a->terms[i].coef));
    }
    return sum;
}

static const Cond *rebuild_cond(const Rebuild *r, const Cond *c)
{
    if (!c)
        return NULL;
    const Affine *zero = affine_const(r->x, 0);
    const Cond *lhs;
    switch (c->kind) {
    case COND_ge0:
        return cond_cmp(r->x, CMP_ge, rebuild(r, c->expr), zero);
    case COND_eq0:
        return cond_cmp(r->x, CMP_eq, rebuild(r, c->expr), zero);
    case COND_and:
        lhs = rebuild_cond(r, c->lhs);
        return cond_and(r->x, lhs, rebuild_cond(r, c->rhs));
    case COND_or:
        lhs = rebuild_cond(r, c->lhs);
        return cond_or(r->x, lhs, rebuild_cond(r, c->rhs));
    case COND_not:
        return cond_not(r->x, rebuild_cond(r, c->lhs));
    default:
        return cond_bool(r->x, c->kind == COND_true);
    }
}

static const Affine *subst_var(const Rebuild *r, const Atom *atom)
{
    for (unsigned i = 0; i < r->subst->n; i++)
        if (r->subst->var[i] == atom->var)
            return r->subst->to[i];
    return affine_var(r->x, atom->var);
}

static const void *subst_ref(const Rebuild *r, const void *ref)
{
    for (unsigned i = 0; i < r->subst->n_refs; i++)
        if (r->subst->ref_from[i] == ref)
            return r->subst->ref_to[i];
    return ref;
}

static const Affine *import_var(const Rebuild *r, const Atom *atom)
{
    VarId to = r->map[atom->var];
    return to ? affine_var(r->x, to) : NULL;
}

static const void *import_ref(const Rebuild *r, const void *ref)
{
    (void)r;
    return ref;
}

const Affine *affine_subst(ExprCtx *x, const Affine *a, const Subst *s)
{
    Rebuild r = { .x = x, .var = subst_var, .ref = subst_ref, .subst = s };
    return rebuild(&r, a);
}

const Cond *cond_subst(ExprCtx *x, const Cond *c, const Subst *s)
{
    Rebuild r = { .x = x, .var = subst_var, .ref = subst_ref, .subst = s };
    return rebuild_cond(&r, c);
}

const Affine *affine_import(ExprCtx *to, const Affine *a, const VarId *var_map)
{
    Rebuild r = {
        .x = to, .var = import_var, .ref = import_ref, .map = var_map
    };
    return rebuild(&r, a);
}

const Cond *cond_import(ExprCtx *to, const Cond *c, const VarId *var_map)
{
    Rebuild r = {
        .x = to, .var = import_var, .ref = import_ref, .map = var_map
    };
    return rebuild_cond(&r, c);
}

/* ---- evaluation ---------------------------------------------------------- */

static bool atom_eval(const Atom *atom, const Env *env, int64_t *out)
{
    int64_t l, r;
    switch (atom->kind) {
    case ATOM_floordiv:
    case ATOM_mod:
        if (!affine_eval(atom->arg, env, &l))
            return false;
        *out = atom->kind == ATOM_mod ? int_mod(l, atom->divisor)
                                      : int_floordiv(l, atom->divisor);
        return true;
    case ATOM_opaque:
        if (atom->opaque == OPAQUE_product)
            return affine_eval(atom->lhs, env, &l) &&
                   affine_eval(atom->rhs, env, &r) && int_mul(l, r, out);
        return env->value(env, atom, out);
    default:
        return env->value(env, atom, out);
    }
}

bool affine_eval(const Affine *a, const Env *env, int64_t *out)
{
    int64_t sum = a->constant;
    for (uint32_t i = 0; i < a->n_terms; i++) {
        int64_t v;
        if (!atom_eval(a->terms[i].atom, env, &v) ||
            !int_mul(v, a->terms[i].coef, &v) || !int_add(sum, v, &sum))
            return false;
    }
    *out = sum;
    return true;
}

bool cond_eval(const Cond *c, const Env *env, bool *out)
{
    int64_t v;
    bool l;
    switch (c->kind) {
    case COND_ge0:
    case COND_eq0:
        if (!affine_eval(c->expr, env, &v))
            return false;
        *out = c->kind == COND_ge0 ? v >= 0 : v == 0;
        return true;
    case COND_and:
    case COND_or:
        if (!cond_eval(c->lhs, env, &l))
            return false;
        *out = l;
        return l == (c->kind == COND_or) || cond_eval(c->rhs, env, out);
    case COND_not:
        if (!cond_eval(c->lhs, env, &l))
            return false;
        *out = !l;
        return true;
    default:
        *out = c->kind == COND_true;
        return true;
    }
}
