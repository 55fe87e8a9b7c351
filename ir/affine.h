/* Index expressions and conditions over control variables.
 *
 * Both kinds are interned in an ExprCtx (one a module): equal normal forms are
 * equal pointers, and nothing is ever freed before the ExprCtx. Expressions
 * refer to control variables by module-numbered ids, never to values.
 *
 * Normal form of an Affine: constant + sum of coefficient * atom, atoms in
 * ascending `order` (creation order, so printing is deterministic),
 * coefficients non-zero. An atom is a variable, floordiv(e, c), mod(e, c) with
 * a literal c > 0 (floor semantics: -1 floordiv 4 = -1, -1 mod 4 = 3), or an
 * opaque one: a stride, a configuration read, a product of two expressions.
 * The form is sound but not complete: different pointers may be equal
 * expressions; ask affine_equal (passes/prove.h) for more.
 *
 * Simplifications done on construction use the variables' bounds:
 *   (c*q + r) floordiv c -> q + r floordiv c for terms divisible by c;
 *   (g*e + r) floordiv (g*c) -> e floordiv c   where 0 <= r < g;
 *   (g*e + r) mod (g*c) -> g*(e mod c) + r     where 0 <= r < g;
 *   e floordiv c -> 0 and e mod c -> e         where 0 <= e < c;
 *   (e floordiv a) floordiv b -> e floordiv (a*b); c*(e floordiv c) + e mod c
 * -> e.
 *
 * Arithmetic is 64-bit and checked: an overflow gives NULL. Every constructor
 * maps NULL operands to NULL, so a chain needs one test at its end. */
#ifndef EXO_IR_AFFINE_H
#define EXO_IR_AFFINE_H

#include "ir/support.h"

/* ---- integers ------------------------------------------------------------ */

/* As floordiv and mod of expressions; c > 0. */
int64_t int_floordiv(int64_t a, int64_t c);
int64_t int_mod(int64_t a, int64_t c);
int64_t int_gcd(int64_t a, int64_t b); /* not negative */

/* ---- expressions --------------------------------------------------------- */

typedef struct ExprCtx ExprCtx;
typedef struct Affine Affine;
typedef struct Cond Cond;
typedef uint32_t VarId; /* 0: none */

typedef enum VarKind {
    VAR_size,  /* >= 1 */
    VAR_index, /* any integer */
    VAR_int,
    VAR_bool, /* 0 or 1 */
    VAR_iter, /* a loop's iterator */
    VAR_coord /* a thread or task coordinate of a kernel */
} VarKind;

typedef struct Var {
    const char *name; /* as written; printers make it unique in its scope */
    VarKind kind;
    const Affine *lo, *hi; /* lo <= v < hi; either may be NULL: not known */
} Var;

typedef enum AtomKind {
    ATOM_var,
    ATOM_floordiv,
    ATOM_mod,
    ATOM_opaque
} AtomKind;
typedef enum OpaqueKind {
    OPAQUE_stride, /* stride(ref, dim): ref is the tensor's Value */
    OPAQUE_config, /* Config.field: name */
    OPAQUE_product /* lhs * rhs, neither constant */
} OpaqueKind;

typedef struct Atom {
    AtomKind kind;
    uint32_t order;
    VarId var;         /* ATOM_var */
    const Affine *arg; /* floordiv, mod */
    int64_t divisor;   /* floordiv, mod: > 0 */
    OpaqueKind opaque; /* ATOM_opaque, and what its kind needs: */
    const void *ref;
    unsigned dim;
    const char *name;
    const Affine *lhs, *rhs;
} Atom;

typedef struct Term {
    int64_t coef;
    const Atom *atom;
} Term;

struct Affine {
    int64_t constant;
    uint32_t n_terms, id;
    const Term *terms;
};

typedef enum CondKind {
    COND_false,
    COND_true,
    COND_ge0, /* expr >= 0 */
    COND_eq0, /* expr == 0 */
    COND_and,
    COND_or,
    COND_not /* lhs, rhs; not: lhs */
} CondKind;

struct Cond {
    CondKind kind;
    uint32_t id;
    const Affine *expr;
    const Cond *lhs, *rhs;
};

typedef enum CmpOp { CMP_lt, CMP_le, CMP_gt, CMP_ge, CMP_eq, CMP_ne } CmpOp;

GIVES ExprCtx *expr_ctx_new(void);
void expr_ctx_free(TAKES ExprCtx *x);

/* Variables. The name is copied. Bounds may be set later, once. */
VarId var_new(ExprCtx *x, const char *name, VarKind kind);
void var_set_bounds(ExprCtx *x, VarId v, const Affine *lo, const Affine *hi);
const Var *var_get(const ExprCtx *x, VarId v);
unsigned var_count(const ExprCtx *x); /* ids are 1 .. var_count */

const Affine *affine_const(ExprCtx *x, int64_t c);
const Affine *affine_var(ExprCtx *x, VarId v);
const Affine *affine_add(ExprCtx *x, const Affine *a, const Affine *b);
const Affine *affine_sub(ExprCtx *x, const Affine *a, const Affine *b);
const Affine *affine_neg(ExprCtx *x, const Affine *a);
const Affine *affine_scale(ExprCtx *x, const Affine *a, int64_t c);
const Affine *affine_add_const(ExprCtx *x, const Affine *a, int64_t c);
/* Constant times expression, or an opaque product. */
const Affine *affine_mul(ExprCtx *x, const Affine *a, const Affine *b);
/* Requires c > 0. */
const Affine *affine_floordiv(ExprCtx *x, const Affine *a, int64_t c);
const Affine *affine_mod(ExprCtx *x, const Affine *a, int64_t c);
const Affine *affine_stride(ExprCtx *x, const void *tensor, unsigned dim);
const Affine *affine_config(ExprCtx *x, const char *name);

bool affine_is_const(const Affine *a, int64_t *c); /* c may be NULL */
bool affine_is_var(const Affine *a, VarId *v);     /* exactly one variable */
/* The coefficient of v as a direct term (not inside an atom). */
int64_t affine_coef(const Affine *a, VarId v);
/* Does v occur anywhere, inside atoms too? */
bool affine_uses(const Affine *a, VarId v);
bool cond_uses(const Cond *c, VarId v);
/* Calls fn for every variable that occurs, atoms included; may repeat. */
void affine_walk_vars(const Affine *a, void (*fn)(VarId, void *), void *user);
void cond_walk_vars(const Cond *c, void (*fn)(VarId, void *), void *user);
/* Calls fn for every expression that c compares with zero. */
void cond_walk_exprs(const Cond *c, void (*fn)(const Affine *, void *),
                     void *user);

/* Constant bounds of a by interval arithmetic over the variables' bounds:
 * lo <= a <= hi, both inclusive. Each returns false where there is none. */
bool affine_min(ExprCtx *x, const Affine *a, int64_t *lo);
bool affine_max(ExprCtx *x, const Affine *a, int64_t *hi);

/* A substitution: variable var[i] becomes to[i]; stride atoms of tensor
 * ref_from[i] become those of ref_to[i]. Rebuilt through the constructors. */
typedef struct Subst {
    unsigned n;
    const VarId *var;
    const Affine *const *to;
    unsigned n_refs;
    const void *const *ref_from;
    const void *const *ref_to;
} Subst;
const Affine *affine_subst(ExprCtx *x, const Affine *a, const Subst *s);
const Cond *cond_subst(ExprCtx *x, const Cond *c, const Subst *s);
/* The same expression in another ExprCtx: var_map[v] gives the variable there
 * (index 1 .. var_count of the source), or 0: an error, NULL. */
const Affine *affine_import(ExprCtx *to, const Affine *a, const VarId *var_map);
const Cond *cond_import(ExprCtx *to, const Cond *c, const VarId *var_map);

/* Values of variables and opaque atoms, for evaluation. value() answers for
 * ATOM_var and ATOM_opaque stride and config atoms (products are evaluated). */
typedef struct Env {
    bool (*value)(const struct Env *env, const Atom *atom, int64_t *out);
    void *user;
} Env;
/* False on an unknown atom or an overflow. */
bool affine_eval(const Affine *a, const Env *env, int64_t *out);
bool cond_eval(const Cond *c, const Env *env, bool *out);

const Cond *cond_bool(ExprCtx *x, bool b);
const Cond *cond_cmp(ExprCtx *x, CmpOp op, const Affine *a, const Affine *b);
const Cond *cond_and(ExprCtx *x, const Cond *a, const Cond *b);
const Cond *cond_or(ExprCtx *x, const Cond *a, const Cond *b);
const Cond *cond_not(ExprCtx *x, const Cond *a);

/* Printing. name() gives a variable's or tensor's spelling in this scope
 * (with its sigil); exo: `/` and `%` instead of `floordiv` and `mod`, and
 * names as in .exo. A compound expression printed at prec > 0 is bracketed.
 * Positive terms come first, in each half variables by rank and then other
 * atoms by their text; the constant is last. What is printed reads back as the
 * same pointer. With names NULL, variables print as `%name`. */
typedef struct ExprNames {
    const char *(*var)(const struct ExprNames *n, VarId v);
    const char *(*tensor)(const struct ExprNames *n, const void *value);
    void *user;
    bool exo;
    /* Where a variable is defined in the text that is printed: terms come in
     * ascending rank, so that a text read back prints the same although its
     * variables are numbered anew. NULL: by VarId. */
    uint32_t (*rank)(const struct ExprNames *n, VarId v);
} ExprNames;
void affine_print(StrBuf *out, const ExprCtx *x, const Affine *a,
                  const ExprNames *names, int prec);
void cond_print(StrBuf *out, const ExprCtx *x, const Cond *c,
                const ExprNames *names, int prec);

#endif
