/* The questions, each reduced to "can these hold together?", and provers made
 * of other provers. The first layer itself is in prove_layer1.c. */
#include "passes/prove.h"

#include <inttypes.h>

/* ---- answers ------------------------------------------------------------- */

static Proof unknown(const char *reason)
{
    return (Proof){ .answer = PROVE_unknown, .reason = reason };
}

static Proof overflowed(void)
{
    return unknown("an expression is too large for 64 bits");
}

void proof_witness(StrBuf *out, const ExprCtx *x, const Proof *p,
                   const ExprNames *names)
{
    for (unsigned i = 0; i < p->n_values; i++) {
        const Atom *atom = p->values[i].atom;
        Affine one = { .n_terms = 1, .terms = &(Term){ 1, atom } };
        strbuf_add(out, i ? ", " : "");
        affine_print(out, x, &one, names, 0);
        strbuf_addf(out, " = %" PRId64, p->values[i].value);
    }
}

static bool value_in_proof(const Env *env, const Atom *atom, int64_t *out)
{
    const Proof *p = env->user;
    for (unsigned i = 0; i < p->n_values; i++)
        if (p->values[i].atom == atom) {
            *out = p->values[i].value;
            return true;
        }
    return false;
}

Env proof_env(const Proof *p)
{
    return (Env){ value_in_proof, (void *)(uintptr_t)p };
}

/* ---- provers ------------------------------------------------------------- */

typedef struct Chain {
    Prover prover;
    Prover *first, *second;
} Chain;

static Proof chain_satisfiable(Prover *self, const Facts *f, const Cond *c)
{
    Chain *chain = (Chain *)self;
    Proof p = prove_satisfiable(chain->first, f, c);
    if (p.answer != PROVE_unknown)
        return p;
    Proof second = prove_satisfiable(chain->second, f, c);
    second.effort += p.effort;
    return second;
}

static ProveAnswer chain_bits_equal(Prover *self, const BitQuery *q,
                                    uint64_t *values)
{
    Chain *chain = (Chain *)self;
    ProveAnswer answer = prove_bits_equal(chain->first, q, values);
    return answer == PROVE_unknown ? prove_bits_equal(chain->second, q, values)
                                   : answer;
}

Prover *prover_chain(Arena *arena, Prover *first, Prover *second)
{
    Chain *chain = ARENA_NEW(arena, Chain);
    chain->prover.name = "chain";
    chain->prover.satisfiable = chain_satisfiable;
    chain->prover.bits_equal = chain_bits_equal;
    chain->first = first;
    chain->second = second;
    return &chain->prover;
}

typedef struct Absent {
    Prover prover;
    const char *reason;
} Absent;

static Proof absent_satisfiable(Prover *self, const Facts *f, const Cond *c)
{
    (void)f, (void)c;
    return unknown(((Absent *)self)->reason);
}

Prover *prover_absent(Arena *arena, const char *reason)
{
    Absent *absent = ARENA_NEW(arena, Absent);
    absent->prover.name = "absent";
    absent->prover.satisfiable = absent_satisfiable;
    absent->reason = arena_strdup(arena, reason);
    return &absent->prover;
}

/* ---- questions ----------------------------------------------------------- */

ProveAnswer prove_bits_equal(Prover *p, const BitQuery *q, uint64_t *values)
{
    return p && p->bits_equal ? p->bits_equal(p, q, values) : PROVE_unknown;
}

Proof prove_satisfiable(Prover *p, const Facts *f, const Cond *c)
{
    if (!c)
        return overflowed();
    Proof proof = p->satisfiable(p, f, c);
    p->stats.queries++;
    p->stats.yes += proof.answer == PROVE_yes;
    p->stats.no += proof.answer == PROVE_no;
    p->stats.unknown += proof.answer == PROVE_unknown;
    return proof;
}

/* A condition holds everywhere where its contrary holds nowhere. */
static Proof contrary(Proof p)
{
    if (p.answer != PROVE_unknown)
        p.answer = p.answer == PROVE_yes ? PROVE_no : PROVE_yes;
    return p;
}

Proof prove_implied(Prover *p, const Facts *f, const Cond *c)
{
    return contrary(prove_satisfiable(p, f, cond_not(f->exprs, c)));
}

Proof affine_equal(Prover *p, const Facts *f, const Affine *a, const Affine *b)
{
    return prove_implied(p, f, cond_cmp(f->exprs, CMP_eq, a, b));
}

Proof prove_divisible(Prover *p, const Facts *f, const Affine *e, int64_t n)
{
    const Affine *rest = affine_mod(f->exprs, e, n), *zero;
    zero = affine_const(f->exprs, 0);
    return prove_implied(p, f, cond_cmp(f->exprs, CMP_eq, rest, zero));
}

Proof prove_within(Prover *p, const Facts *f, const Affine *lo,
                   const Affine *len, const Affine *extent)
{
    ExprCtx *x = f->exprs;
    const Cond *above = cond_cmp(x, CMP_ge, lo, affine_const(x, 0));
    const Cond *below = cond_cmp(x, CMP_le, affine_add(x, lo, len), extent);
    return prove_implied(p, f, cond_and(x, above, below));
}

/* One dimension's part of an overlap. */
static const Cond *dim_overlap(ExprCtx *x, const AccessDim *a,
                               const AccessDim *b)
{
    const Affine *one = affine_const(x, 1);
    const Affine *a_len = a->kind == DIM_interval ? a->len : one;
    const Affine *b_len = b->kind == DIM_interval ? b->len : one;
    if (a->kind == DIM_ring || b->kind == DIM_ring)
        return cond_bool(x, true);
    if (a->kind == DIM_point && b->kind == DIM_point)
        return cond_cmp(x, CMP_eq, a->lo, b->lo);
    const Affine *a_end = affine_add(x, a->lo, a_len);
    const Affine *b_end = affine_add(x, b->lo, b_len);
    const Cond *c = cond_cmp(x, CMP_lt, a->lo, b_end);
    c = cond_and(x, c, cond_cmp(x, CMP_lt, b->lo, a_end));
    c = cond_and(x, c, cond_cmp(x, CMP_ge, a_len, one));
    return cond_and(x, c, cond_cmp(x, CMP_ge, b_len, one));
}

const Cond *access_overlap(ExprCtx *x, const Access *a, const Access *b)
{
    if (a->base != b->base)
        panic("access_overlap: two bases");
    const Cond *c = cond_bool(x, true);
    for (unsigned i = 0; i < a->rank; i++)
        c = cond_and(x, c, dim_overlap(x, &a->dims[i], &b->dims[i]));
    return c;
}

Proof prove_disjoint(Prover *p, const Facts *f, const Access *a,
                     const Access *b)
{
    return contrary(prove_satisfiable(p, f, access_overlap(f->exprs, a, b)));
}
