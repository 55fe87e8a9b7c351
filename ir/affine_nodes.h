/* The insides of an ExprCtx, shared by ir/affine*.c and ir/cond.c only: the
 * nodes behind the public structs, and the tables that intern them.
 *
 * Sums are limited to EXPR_MAX_TERMS terms, products to EXPR_MAX_FACTORS
 * factors and nesting to EXPR_MAX_DEPTH; past a limit a constructor answers
 * NULL as for an overflow, so that no input drives the C stack or the memory
 * of one expression without bound. INT64_MIN counts as an overflow too: every
 * number that is kept has a negative that can be written. */
#ifndef EXO_IR_AFFINE_NODES_H
#define EXO_IR_AFFINE_NODES_H

#include "ir/affine.h"

enum { EXPR_MAX_TERMS = 512, EXPR_MAX_FACTORS = 32, EXPR_MAX_DEPTH = 2000 };

/* Both ends inclusive, each known or not. */
typedef struct Range {
    bool has_lo, has_hi;
    int64_t lo, hi;
} Range;

typedef struct AffineNode {
    Affine pub;
    uint32_t depth; /* 0: a constant; else 1 + the deepest atom's */
} AffineNode;

typedef struct AtomNode {
    Atom pub;
    uint32_t depth;
    const Affine *self; /* 1 * this atom */
    uint64_t epoch;     /* of the ExprCtx when range was computed */
    Range range;
} AtomNode;

typedef struct CondNode {
    Cond pub;
    uint32_t depth;
} CondNode;

typedef struct VarNode {
    Var pub;
    const Affine *self;
    Range range;
} VarNode;

/* Open addressing over the hashes of interned nodes. */
typedef struct InternTable {
    void **slot;
    uint64_t *hash;
    size_t len, cap;
} InternTable;

struct ExprCtx {
    Arena *arena;
    InternTable affines, atoms, conds;
    VEC(VarNode *) vars;         /* vars.data[id - 1] */
    uint64_t epoch;              /* counts the changes of variables' bounds */
    Term buffer[EXPR_MAX_TERMS]; /* of one sum while it is made */
};

/* The node equal to `key` under same(), or NULL; then *hash is where
 * intern_put is to put it. */
void *intern_find(const InternTable *t, uint64_t hash, const void *key,
                  bool (*same)(const void *node, const void *key));
void intern_put(Arena *arena, InternTable *t, uint64_t hash, void *node);

/* Checked 64-bit arithmetic; false on an overflow. */
bool int_add(int64_t a, int64_t b, int64_t *out);
bool int_mul(int64_t a, int64_t b, int64_t *out);

/* The sum a + k * b before atoms are recombined, or NULL. */
const Affine *affine_merge(ExprCtx *x, const Affine *a, const Affine *b,
                           int64_t k);
/* The terms of a whose coefficients g > 0 divides, divided by it, and the
 * constant's quotient; or the other terms and the constant's remainder. */
const Affine *affine_multiples(ExprCtx *x, const Affine *a, int64_t g);
const Affine *affine_rest(ExprCtx *x, const Affine *a, int64_t g);
/* The sum that is one given atom. Depth and order are filled in. */
const Affine *affine_atom(ExprCtx *x, const Atom *key);
/* Bounds by interval arithmetic, refined by putting symbolic bounds of
 * variables in. */
Range affine_range(ExprCtx *x, const Affine *a);
uint32_t affine_depth(const Affine *a);

#endif
