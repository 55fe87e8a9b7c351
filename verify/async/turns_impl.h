/* Shared by turns.c, turns_bounds.c, turns_products.c and turns_reach.c. */
#ifndef EXO_VERIFY_ASYNC_TURNS_IMPL_H
#define EXO_VERIFY_ASYNC_TURNS_IMPL_H

#include "ir/eir_types.h"
#include "verify/async/turns.h"

/* What was seen of one turn: the least and greatest value, and of a comparison
 * in how many rounds of each of its loops a warp came to it again after it was
 * false, and true. */
typedef struct Seen {
    bool any;
    int64_t lo, hi;
    int64_t after[TURN_LOOPS][2];
} Seen;

/* When a warp came to a comparison last: in which launch, in which round of
 * each of its loops and what is around them; and the rounds of each since it
 * was false, and true, that one included. */
typedef struct LastRound {
    unsigned launch;
    uint64_t round[TURN_LOOPS + 1];
    int64_t since[TURN_LOOPS][2];
} LastRound;

/* The turns of one op: those not yet seen first. */
typedef struct TurnPlace {
    unsigned n, left;
    TextTurn **turns;
} TurnPlace;

struct Turns {
    Arena *arena;
    Module *m;
    const Op *host;
    VEC(TextTurn *) all;
    VEC(TurnPlace) places;
    struct KeyTable *by_op;
    struct KeyTable *last; /* by turn and warp: place in rounds, + 1 */
    VEC(LastRound) rounds;
    unsigned launch; /* that runs: its number */
    int64_t modulus; /* by which slots of shared memory are counted, or 0 */
    unsigned n_asked;
    unsigned side;   /* which process this is */
    Seen *seen[2];   /* by turn: what each process saw; shared */
    size_t n_shared; /* bytes */
};

/* Where c is not part: the operand of c that part is in; the other one must be
 * *want for part to decide c. NULL: c is part. */
const Cond *turn_operand(const Cond *c, const Cond *part, const Cond **other,
                         bool *want);
/* The first launch of the kernel around op, or NULL. */
const Op *turns_launch(const Turns *t, const Op *op);
/* Is it of a kernel, not of the program? */
bool turn_is_lowered(const Turns *t, const TextTurn *turn);
/* Of one that was seen one way: the value there. False: not at all. */
bool turn_side(const Turns *t, const TextTurn *turn, int64_t *value);
/* Was it seen both ways, if not come to again after each? */
bool turn_both_ways(const Turns *t, const TextTurn *turn);
/* Was it seen to be so? */
bool turn_side_seen(const Turns *t, const TextTurn *turn, bool value);
/* Is nothing more to be seen of the comparison where it is so? */
bool turn_side_done(const Turns *t, const TextTurn *turn, bool value);
/* The loop in which it is to be come to again next, or NULL. */
const TurnLoop *turn_loop(const Turns *t, const TextTurn *turn);
/* Adds each index of host and its kernels that multiplies more variables than
 * any of proc does (NULL: two are too many), as hopeless. */
void turns_products(Turns *t, Module *of, const Op *proc);
/* Adds what must hold for the places in what kernels allocate to be within. */
void turns_bounds(Turns *t);

#endif
