/* Questions about index expressions, answered yes, no or unknown.
 *
 * Everybody who needs "is this index below that extent here?" asks a Prover.
 * A Prover is one function, "can these conditions hold together?", behind
 * which layers hide: layer 1 (here, no solver, always there) and, injected by
 * a tool through prover_chain, layer 2 on Z3 (verify/smt/smt.h).
 *
 *     Facts *f = prove_facts_at(arena, m, op);
 *     Proof p = prove_implied(prover, f, cond_cmp(x, CMP_lt, index, extent));
 *     if (p.answer == PROVE_no) .. proof_witness(&p, ..) ..
 *
 * Yes and no are certain. Every `no` to an implication and every `yes` to
 * satisfiability bears an assignment that was evaluated in all the facts and
 * in the question; what was not found either way is unknown, with a reason.
 *
 * The variables of a question range over their bounds in the ExprCtx (sizes
 * are at least 1), whether or not they are in the facts. Strides and
 * configuration reads may be any integer unless a fact says more. */
#ifndef EXO_PASSES_PROVE_H
#define EXO_PASSES_PROVE_H

#include "ir/ir.h"
#include "passes/bits.h"

/* ---- facts --------------------------------------------------------------- */

typedef VEC(const Cond *) CondVec;

/* What holds at a place. Lives in the arena it was made in. */
typedef struct Facts Facts;
struct Facts {
    Arena *arena;
    ExprCtx *exprs;
    CondVec conds;
    /* More is true here than could be written down: refutations are off. */
    bool incomplete;
    /* What is known of an opaque atom, or NULL; asked for those that occur.
     * The hook itself may be NULL. */
    const Cond *(*about)(const Facts *f, const Atom *atom);
};

Facts *facts_new(Arena *arena, ExprCtx *x);
Facts *facts_copy(Arena *arena, const Facts *f);
/* Adds a condition; NULL (one that overflowed) makes the facts incomplete. */
void facts_assume(Facts *f, const Cond *c);
/* Adds that a variable is in scope, so that its range is not empty. */
void facts_assume_var(Facts *f, VarId v);
/* All that holds where op stands: ranges of the enclosing loops and tasks,
 * conditions of the enclosing ifs (negated in the second block), warps of the
 * enclosing role, asserts of the procedure (those above op if op is one of
 * them), strides of dense tensors. Operands of a loop are evaluated outside
 * it: its own range is not among its facts. Use facts_in for its body. */
Facts *prove_facts_at(Arena *arena, Module *m, Op *op);
/* All that holds at the start of block i of op. */
Facts *prove_facts_in(Arena *arena, Module *m, Op *op, unsigned block);
/* Appends to out: the facts, c unless NULL, the bounds of every variable and
 * what is known of every opaque atom that occurs in them, and so on until
 * nothing new occurs. False where some of it overflowed. For provers. */
bool facts_closure(const Facts *f, const Cond *c, CondVec *out);

/* ---- answers ------------------------------------------------------------- */

typedef enum ProveAnswer { PROVE_unknown, PROVE_yes, PROVE_no } ProveAnswer;

/* The value of a variable, stride or configuration read. */
typedef struct AtomValue {
    const Atom *atom;
    int64_t value;
} AtomValue;

typedef struct Proof {
    ProveAnswer answer;
    const char *reason; /* of unknown; else NULL */
    /* An assignment that shows the answer, by ascending atom order: a
     * counterexample, or a model. In the facts' arena. */
    unsigned n_values;
    const AtomValue *values;
    unsigned long effort; /* about what it took, as Z3 counts resources */
} Proof;

/* `N = 5, i = 4`, in the order of the assignment. */
void proof_witness(StrBuf *out, const ExprCtx *x, const Proof *p,
                   const ExprNames *names);
/* The assignment as an environment for affine_eval. */
Env proof_env(const Proof *p);

/* ---- provers ------------------------------------------------------------- */

typedef struct ProverStats {
    unsigned long queries, yes, no, unknown; /* of satisfiable() */
} ProverStats;

/* A prover; implementations put it first in a struct of theirs. */
typedef struct Prover Prover;
struct Prover {
    const char *name;
    /* Can c hold together with the facts? c is not NULL. */
    Proof (*satisfiable)(Prover *self, const Facts *f, const Cond *c);
    /* Are both sides of q equal for all values? NULL: it does not know
     * bit-vectors. Call prove_bits_equal. */
    ProveAnswer (*bits_equal)(Prover *self, const BitQuery *q,
                              uint64_t *values);
    ProverStats stats; /* counted by prove_satisfiable */
};

/* Layer 1: interval arithmetic, then linear integer constraints over the
 * atoms (equalities substituted, common divisors, Fourier-Motzkin). */
Prover *prover_layer1(Arena *arena);
/* Asks second what first leaves unknown. Either may be shared. */
Prover *prover_chain(Arena *arena, Prover *first, Prover *second);
/* Answers unknown for that reason: `built without Z3`. */
Prover *prover_absent(Arena *arena, const char *reason);

/* ---- questions ----------------------------------------------------------- */

/* Of `no`, values[n_vars] at which the sides differ. */
ProveAnswer prove_bits_equal(Prover *p, const BitQuery *q, uint64_t *values);
/* NULL conditions and expressions (overflows) give unknown. */
Proof prove_satisfiable(Prover *p, const Facts *f, const Cond *c);
/* Does c hold wherever the facts do? */
Proof prove_implied(Prover *p, const Facts *f, const Cond *c);
/* Is a == b wherever the facts hold? */
Proof affine_equal(Prover *p, const Facts *f, const Affine *a, const Affine *b);
/* Is e a multiple of n > 0? */
Proof prove_divisible(Prover *p, const Facts *f, const Affine *e, int64_t n);
/* Is 0 <= lo and lo + len <= extent? */
Proof prove_within(Prover *p, const Facts *f, const Affine *lo,
                   const Affine *len, const Affine *extent);
/* Do two accesses of one base never touch the same element? A point is one
 * element; a ring dimension separates nothing; an empty interval touches
 * nothing. */
Proof prove_disjoint(Prover *p, const Facts *f, const Access *a,
                     const Access *b);
/* The condition under which they do touch a common element. */
const Cond *access_overlap(ExprCtx *x, const Access *a, const Access *b);

#endif
