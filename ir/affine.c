/* Interned sums of terms: tables, variables, addition, products.
 *
 * A sum is built in the context's one buffer, then looked up by its constant,
 * coefficients and atoms, so that equal sums are equal pointers. Adding two
 * sums merges their ascending term lists, then recombines c*(e floordiv c) +
 * e mod c into e. Products are multiplied out, so that an opaque product is
 * always one of atoms, nested to the left in atom order. Division and
 * remainder are in affine_div.c, intervals in affine_range.c. */
#include "ir/affine.h"

#include "ir/affine_nodes.h"

#include <stdlib.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------- */

bool int_add(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out) && *out != INT64_MIN;
}

bool int_mul(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out) && *out != INT64_MIN;
}

int64_t int_floordiv(int64_t a, int64_t c)
{
    return a / c - (a % c < 0);
}

int64_t int_mod(int64_t a, int64_t c)
{
    return a % c < 0 ? a % c + c : a % c;
}

int64_t int_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* ---- interning ----------------------------------------------------------- */

void *intern_find(const InternTable *t, uint64_t hash, const void *key,
                  bool (*same)(const void *node, const void *key))
{
    if (!t->cap)
        return NULL;
    for (size_t i = hash & (t->cap - 1); t->slot[i]; i = (i + 1) & (t->cap - 1))
        if (t->hash[i] == hash && same(t->slot[i], key))
            return t->slot[i];
    return NULL;
}

static void intern_place(InternTable *t, uint64_t hash, void *node)
{
    size_t i = hash & (t->cap - 1);
    while (t->slot[i])
        i = (i + 1) & (t->cap - 1);
    t->slot[i] = node;
    t->hash[i] = hash;
}

void intern_put(Arena *arena, InternTable *t, uint64_t hash, void *node)
{
    if (2 * (t->len + 1) > t->cap) {
        InternTable old = *t;
        t->cap = old.cap ? 2 * old.cap : 64;
        t->slot = ARENA_ARRAY(arena, void *, t->cap);
        t->hash = ARENA_ARRAY(arena, uint64_t, t->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.slot[i])
                intern_place(t, old.hash[i], old.slot[i]);
    }
    intern_place(t, hash, node);
    t->len++;
}

/* Spreads FNV's weak low bits. */
static uint64_t hash_mixed(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static bool affine_same(const void *node, const void *key)
{
    const Affine *a = node, *b = key;
    if (a->constant != b->constant || a->n_terms != b->n_terms)
        return false;
    for (uint32_t i = 0; i < a->n_terms; i++)
        if (a->terms[i].coef != b->terms[i].coef ||
            a->terms[i].atom != b->terms[i].atom)
            return false;
    return true;
}

/* The interned sum of ascending terms with coefficients other than 0. */
static const Affine *affine_intern(ExprCtx *x, int64_t constant,
                                   const Term *terms, uint32_t n)
{
    uint64_t h = hash_word(HASH_SEED, (uint64_t)constant);
    uint32_t depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        h = hash_word(h, (uint64_t)terms[i].coef);
        h = hash_word(h, terms[i].atom->order);
        uint32_t d = ((const AtomNode *)terms[i].atom)->depth;
        depth = d > depth ? d : depth;
    }
    h = hash_mixed(h);
    Affine key = { .constant = constant, .n_terms = n, .terms = terms };
    AffineNode *node = intern_find(&x->affines, h, &key, affine_same);
    if (node)
        return &node->pub;
    if (depth > EXPR_MAX_DEPTH)
        return NULL;
    node = ARENA_NEW(x->arena, AffineNode);
    node->pub = key;
    node->pub.id = (uint32_t)x->affines.len + 1;
    node->pub.terms = arena_memdup(x->arena, terms, n * sizeof *terms);
    node->depth = depth;
    intern_put(x->arena, &x->affines, h, node);
    return &node->pub;
}

uint32_t affine_depth(const Affine *a)
{
    return ((const AffineNode *)a)->depth;
}

static bool atom_same(const void *node, const void *key)
{
    const Atom *a = node, *b = key;
    return a->kind == b->kind && a->var == b->var && a->arg == b->arg &&
           a->divisor == b->divisor && a->opaque == b->opaque &&
           a->ref == b->ref && a->dim == b->dim && a->lhs == b->lhs &&
           a->rhs == b->rhs && !a->name == !b->name &&
           (!a->name || strcmp(a->name, b->name) == 0);
}

static uint64_t atom_hash(const Atom *a)
{
    uint64_t h = hash_word(HASH_SEED, a->kind);
    h = hash_word(h, a->var);
    h = hash_word(h, a->arg ? a->arg->id : 0);
    h = hash_word(h, (uint64_t)a->divisor);
    h = hash_word(h, a->opaque);
    h = hash_word(h, (uint64_t)(uintptr_t)a->ref);
    h = hash_word(h, a->dim);
    h = hash_word(h, a->lhs ? a->lhs->id : 0);
    h = hash_word(h, a->rhs ? a->rhs->id : 0);
    if (a->name)
        h = hash_bytes(h, a->name, strlen(a->name));
    return hash_mixed(h);
}

/* One more than the deepest expression in a. */
static uint32_t atom_depth(const Atom *a)
{
    const Affine *parts[] = { a->arg, a->lhs, a->rhs };
    uint32_t depth = 0;
    for (int i = 0; i < 3; i++)
        if (parts[i] && affine_depth(parts[i]) > depth)
            depth = affine_depth(parts[i]);
    return depth + 1;
}

const Affine *affine_atom(ExprCtx *x, const Atom *key)
{
    uint64_t h = atom_hash(key);
    AtomNode *node = intern_find(&x->atoms, h, key, atom_same);
    if (node)
        return node->self;
    uint32_t depth = atom_depth(key);
    if (depth > EXPR_MAX_DEPTH)
        return NULL;
    node = ARENA_NEW(x->arena, AtomNode);
    node->pub = *key;
    node->pub.order = (uint32_t)x->atoms.len + 1;
    if (key->name)
        node->pub.name = arena_strdup(x->arena, key->name);
    node->depth = depth;
    intern_put(x->arena, &x->atoms, h, node);
    Term term = { 1, &node->pub };
    node->self = affine_intern(x, 0, &term, 1);
    return node->self;
}

/* ---- context and variables ----------------------------------------------- */

ExprCtx *expr_ctx_new(void)
{
    ExprCtx *x = calloc(1, sizeof *x);
    if (!x)
        panic("out of memory");
    x->arena = arena_new();
    x->epoch = 1;
    return x;
}

void expr_ctx_free(ExprCtx *x)
{
    if (!x)
        return;
    arena_free(x->arena);
    free(x);
}

VarId var_new(ExprCtx *x, const char *name, VarKind kind)
{
    VarNode *v = ARENA_NEW(x->arena, VarNode);
    v->pub.name = arena_strdup(x->arena, name);
    v->pub.kind = kind;
    if (kind == VAR_size)
        v->range = (Range){ .has_lo = true, .lo = 1 };
    if (kind == VAR_bool)
        v->range = (Range){ .has_lo = true, .has_hi = true, .hi = 1 };
    VEC_PUSH(x->arena, &x->vars, v);
    Atom key = { .kind = ATOM_var, .var = (VarId)x->vars.len };
    v->self = affine_atom(x, &key);
    return key.var;
}

void var_set_bounds(ExprCtx *x, VarId v, const Affine *lo, const Affine *hi)
{
    if (v == 0 || v > x->vars.len)
        panic("var_set_bounds: no variable %u", (unsigned)v);
    VarNode *node = x->vars.data[v - 1];
    int64_t n;
    node->pub.lo = lo;
    node->pub.hi = hi;
    if (affine_min(x, lo, &n) && (!node->range.has_lo || n > node->range.lo)) {
        node->range.has_lo = true;
        node->range.lo = n;
    }
    if (affine_max(x, hi, &n) && int_add(n, -1, &n) &&
        (!node->range.has_hi || n < node->range.hi)) {
        node->range.has_hi = true;
        node->range.hi = n;
    }
    x->epoch++;
}

const Var *var_get(const ExprCtx *x, VarId v)
{
    if (v == 0 || v > x->vars.len)
        panic("var_get: no variable %u", (unsigned)v);
    return &x->vars.data[v - 1]->pub;
}

unsigned var_count(const ExprCtx *x)
{
    return (unsigned)x->vars.len;
}

/* ---- sums ---------------------------------------------------------------- */

const Affine *affine_const(ExprCtx *x, int64_t c)
{
    return c == INT64_MIN ? NULL : affine_intern(x, c, NULL, 0);
}

const Affine *affine_var(ExprCtx *x, VarId v)
{
    if (v == 0 || v > x->vars.len)
        panic("affine_var: no variable %u", (unsigned)v);
    return x->vars.data[v - 1]->self;
}

const Affine *affine_merge(ExprCtx *x, const Affine *a, const Affine *b,
                           int64_t k)
{
    int64_t constant, scaled;
    if (!a || !b || !int_mul(b->constant, k, &scaled) ||
        !int_add(a->constant, scaled, &constant))
        return NULL;
    uint32_t i = 0, j = 0, n = 0;
    while (i < a->n_terms || j < b->n_terms) {
        bool from_a = j == b->n_terms ||
                      (i < a->n_terms &&
                       a->terms[i].atom->order <= b->terms[j].atom->order);
        bool from_b = i == a->n_terms ||
                      (j < b->n_terms &&
                       b->terms[j].atom->order <= a->terms[i].atom->order);
        Term t = { 0, from_a ? a->terms[i].atom : b->terms[j].atom };
        if (from_b && !int_mul(b->terms[j].coef, k, &t.coef))
            return NULL;
        if (from_a && !int_add(t.coef, a->terms[i].coef, &t.coef))
            return NULL;
        i += from_a;
        j += from_b;
        if (t.coef == 0)
            continue;
        if (n == EXPR_MAX_TERMS)
            return NULL;
        x->buffer[n++] = t;
    }
    return affine_intern(x, constant, x->buffer, n);
}

const Affine *affine_multiples(ExprCtx *x, const Affine *a, int64_t g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_terms; i++)
        if (a->terms[i].coef % g == 0)
            x->buffer[n++] = (Term){ a->terms[i].coef / g, a->terms[i].atom };
    return affine_intern(x, int_floordiv(a->constant, g), x->buffer, n);
}

const Affine *affine_rest(ExprCtx *x, const Affine *a, int64_t g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_terms; i++)
        if (a->terms[i].coef % g != 0)
            x->buffer[n++] = a->terms[i];
    return affine_intern(x, int_mod(a->constant, g), x->buffer, n);
}

static bool affine_has_kind(const Affine *a, AtomKind kind)
{
    for (uint32_t i = 0; i < a->n_terms; i++)
        if (a->terms[i].atom->kind == kind)
            return true;
    return false;
}

static int64_t affine_atom_coef(const Affine *a, const Atom *atom)
{
    for (uint32_t i = 0; i < a->n_terms; i++)
        if (a->terms[i].atom == atom)
            return a->terms[i].coef;
    return 0;
}

/* Replaces k*c*(e floordiv c) + k*(e mod c) by k*e as long as there is such a
 * pair. Each step takes two atoms out and brings in only what was inside. */
static const Affine *affine_recombine(ExprCtx *x, const Affine *a)
{
    if (!a || !affine_has_kind(a, ATOM_mod) ||
        !affine_has_kind(a, ATOM_floordiv))
        return a;
    for (uint32_t i = 0; i < a->n_terms; i++) {
        const Atom *mod = a->terms[i].atom;
        int64_t k = a->terms[i].coef, wanted;
        if (mod->kind != ATOM_mod || !int_mul(k, mod->divisor, &wanted))
            continue;
        const Affine *q = affine_floordiv(x, mod->arg, mod->divisor);
        if (!q || q->n_terms != 1 || q->constant != 0 ||
            q->terms[0].coef != 1 ||
            affine_atom_coef(a, q->terms[0].atom) != wanted)
            continue;
        const Affine *e = affine_merge(x, a, ((const AtomNode *)mod)->self, -k);
        e = affine_merge(x, e, q, -wanted);
        e = affine_merge(x, e, mod->arg, k);
        return e ? affine_recombine(x, e) : a;
    }
    return a;
}

const Affine *affine_add(ExprCtx *x, const Affine *a, const Affine *b)
{
    return affine_recombine(x, affine_merge(x, a, b, 1));
}

const Affine *affine_sub(ExprCtx *x, const Affine *a, const Affine *b)
{
    return affine_recombine(x, affine_merge(x, a, b, -1));
}

const Affine *affine_neg(ExprCtx *x, const Affine *a)
{
    return affine_scale(x, a, -1);
}

const Affine *affine_scale(ExprCtx *x, const Affine *a, int64_t c)
{
    if (c == INT64_MIN)
        return NULL;
    return affine_merge(x, affine_const(x, 0), a, c);
}

const Affine *affine_add_const(ExprCtx *x, const Affine *a, int64_t c)
{
    int64_t constant;
    if (!a || !int_add(a->constant, c, &constant))
        return NULL;
    return affine_intern(x, constant, a->terms, a->n_terms);
}

/* ---- opaque atoms -------------------------------------------------------- */

/* The factors of an atom: itself, or those of a product. */
static bool atom_factors(const Atom *atom, const Atom **out, unsigned *n)
{
    for (; atom->kind == ATOM_opaque && atom->opaque == OPAQUE_product;
         atom = atom->lhs->terms[0].atom) {
        if (*n >= EXPR_MAX_FACTORS)
            return false;
        out[(*n)++] = atom->rhs->terms[0].atom;
    }
    if (*n >= EXPR_MAX_FACTORS)
        return false;
    out[(*n)++] = atom;
    return true;
}

static int atom_by_order(const void *a, const void *b)
{
    const Atom *const *l = a, *const *r = b;
    return ((*l)->order > (*r)->order) - ((*l)->order < (*r)->order);
}

/* The product of two atoms: its factors in atom order, nested to the left. */
static const Affine *atom_product(ExprCtx *x, const Atom *a, const Atom *b)
{
    const Atom *factor[EXPR_MAX_FACTORS];
    unsigned n = 0;
    if (!atom_factors(a, factor, &n) || !atom_factors(b, factor, &n))
        return NULL;
    qsort(factor, n, sizeof *factor, atom_by_order);
    const Affine *product = ((const AtomNode *)factor[0])->self;
    for (unsigned i = 1; product && i < n; i++) {
        Atom key = { .kind = ATOM_opaque,
                     .opaque = OPAQUE_product,
                     .lhs = product,
                     .rhs = ((const AtomNode *)factor[i])->self };
        product = affine_atom(x, &key);
    }
    return product;
}

const Affine *affine_mul(ExprCtx *x, const Affine *a, const Affine *b)
{
    if (!a || !b)
        return NULL;
    if (a->n_terms == 0)
        return affine_scale(x, b, a->constant);
    if (b->n_terms == 0)
        return affine_scale(x, a, b->constant);
    if ((size_t)a->n_terms * b->n_terms > EXPR_MAX_TERMS)
        return NULL;
    const Affine *sum = affine_scale(x, b, a->constant);
    for (uint32_t i = 0; i < a->n_terms; i++) {
        const Term *t = &a->terms[i];
        int64_t k;
        if (!int_mul(t->coef, b->constant, &k))
            return NULL;
        sum = affine_merge(x, sum, ((const AtomNode *)t->atom)->self, k);
        for (uint32_t j = 0; j < b->n_terms; j++) {
            if (!int_mul(t->coef, b->terms[j].coef, &k))
                return NULL;
            const Affine *p = atom_product(x, t->atom, b->terms[j].atom);
            sum = affine_merge(x, sum, p, k);
        }
    }
    return affine_recombine(x, sum);
}

const Affine *affine_stride(ExprCtx *x, const void *tensor, unsigned dim)
{
    Atom key = {
        .kind = ATOM_opaque, .opaque = OPAQUE_stride, .ref = tensor, .dim = dim
    };
    return affine_atom(x, &key);
}

const Affine *affine_config(ExprCtx *x, const char *name)
{
    Atom key = { .kind = ATOM_opaque, .opaque = OPAQUE_config, .name = name };
    return affine_atom(x, &key);
}
