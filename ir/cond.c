/* Interned conditions.
 *
 * A comparison is brought to e >= 0 or e == 0 and divided by the common
 * divisor of its coefficients (2*i - 7 >= 0 is i - 4 >= 0; 2*i - 7 == 0 is
 * false); an equality's first coefficient is positive. Comparisons of
 * constants are decided, bounds of variables are not used, so that a condition
 * stays what its author wrote. `not` goes into >= and cancels itself; `and`
 * and `or` drop constants and a repeated operand, and keep their order. */
#include "ir/affine_nodes.h"

static bool cond_same(const void *node, const void *key)
{
    const Cond *a = node, *b = key;
    return a->kind == b->kind && a->expr == b->expr && a->lhs == b->lhs &&
           a->rhs == b->rhs;
}

static const Cond *cond_intern(ExprCtx *x, CondKind kind, const Affine *expr,
                               const Cond *lhs, const Cond *rhs)
{
    Cond key = { .kind = kind, .expr = expr, .lhs = lhs, .rhs = rhs };
    uint64_t h = hash_word(HASH_SEED, kind);
    h = hash_word(h, expr ? expr->id : 0);
    h = hash_word(h, lhs ? lhs->id : 0);
    h = hash_word(h, rhs ? rhs->id : 0);
    h ^= h >> 31;
    CondNode *node = intern_find(&x->conds, h, &key, cond_same);
    if (node)
        return &node->pub;
    uint32_t depth = 0;
    if (lhs)
        depth = ((const CondNode *)lhs)->depth + 1;
    if (rhs && ((const CondNode *)rhs)->depth >= depth)
        depth = ((const CondNode *)rhs)->depth + 1;
    if (depth > EXPR_MAX_DEPTH)
        return NULL;
    node = ARENA_NEW(x->arena, CondNode);
    node->pub = key;
    node->pub.id = (uint32_t)x->conds.len + 1;
    node->depth = depth;
    intern_put(x->arena, &x->conds, h, node);
    return &node->pub;
}

const Cond *cond_bool(ExprCtx *x, bool b)
{
    return cond_intern(x, b ? COND_true : COND_false, NULL, NULL, NULL);
}

/* The common divisor of the coefficients, 0 for a constant. */
static int64_t affine_content(const Affine *e)
{
    int64_t g = 0;
    for (uint32_t i = 0; i < e->n_terms; i++)
        g = int_gcd(g, e->terms[i].coef);
    return g;
}

static const Cond *cond_ge0(ExprCtx *x, const Affine *e)
{
    if (!e)
        return NULL;
    if (e->n_terms == 0)
        return cond_bool(x, e->constant >= 0);
    return cond_intern(x, COND_ge0, affine_multiples(x, e, affine_content(e)),
                       NULL, NULL);
}

static const Cond *cond_eq0(ExprCtx *x, const Affine *e)
{
    if (!e)
        return NULL;
    if (e->n_terms == 0)
        return cond_bool(x, e->constant == 0);
    int64_t g = affine_content(e);
    if (e->constant % g != 0)
        return cond_bool(x, false);
    e = affine_multiples(x, e, g);
    if (e->terms[0].coef < 0)
        e = affine_neg(x, e);
    return cond_intern(x, COND_eq0, e, NULL, NULL);
}

const Cond *cond_cmp(ExprCtx *x, CmpOp op, const Affine *a, const Affine *b)
{
    switch (op) {
    case CMP_lt:
        return cond_ge0(x, affine_add_const(x, affine_sub(x, b, a), -1));
    case CMP_le:
        return cond_ge0(x, affine_sub(x, b, a));
    case CMP_gt:
        return cond_cmp(x, CMP_lt, b, a);
    case CMP_ge:
        return cond_cmp(x, CMP_le, b, a);
    case CMP_eq:
        return cond_eq0(x, affine_sub(x, a, b));
    default:
        return cond_not(x, cond_eq0(x, affine_sub(x, a, b)));
    }
}

const Cond *cond_and(ExprCtx *x, const Cond *a, const Cond *b)
{
    if (!a || !b)
        return NULL;
    if (a == b || a->kind == COND_false || b->kind == COND_true)
        return a;
    if (a->kind == COND_true || b->kind == COND_false)
        return b;
    return cond_intern(x, COND_and, NULL, a, b);
}

const Cond *cond_or(ExprCtx *x, const Cond *a, const Cond *b)
{
    if (!a || !b)
        return NULL;
    if (a == b || a->kind == COND_true || b->kind == COND_false)
        return a;
    if (a->kind == COND_false || b->kind == COND_true)
        return b;
    return cond_intern(x, COND_or, NULL, a, b);
}

const Cond *cond_not(ExprCtx *x, const Cond *a)
{
    if (!a)
        return NULL;
    switch (a->kind) {
    case COND_false:
    case COND_true:
        return cond_bool(x, a->kind == COND_false);
    case COND_not:
        return a->lhs;
    case COND_ge0:
        return cond_ge0(x, affine_add_const(x, affine_neg(x, a->expr), -1));
    default:
        return cond_intern(x, COND_not, NULL, a, NULL);
    }
}
