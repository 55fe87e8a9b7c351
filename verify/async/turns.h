/* What the runs have seen of the places where a text changes its mind.
 *
 * check-async runs at a few sizes. What it says stands for others only where a
 * text does nothing there that no run has shown: a branch that is entered from
 * k = 100 on, a loop that begins at 1000, a quotient that is 0 up to then. Such
 * a place is a turn; it has been seen when the runs took it both ways:
 *
 *   a block         entered
 *   a loop          entered, and passed by (as a comparison of its bounds); of
 *                   a kernel, with as many trips as take its slots round twice
 *   a comparison    true, and false, where it decides the condition that it is
 *                   a part of; in a loop of a kernel the same warp must come
 *                   to it again after each, in another round of that loop with
 *                   no round of a loop around it in between, for what was left
 *                   out may be missed by the next round alone
 *   a quotient, and that behind a remainder, in an index or a comparison: two
 *                   values
 *   a loop's variable in a block of an if that computes with it, and each of
 *   tasks that are run once: two values
 *   a place in an object of a kernel, where facts do not show at once that it
 *   is within: outside, which no right text is at any sizes
 *   a product of variables in an index of the lowered text: never, as it can
 *       vanish at any sizes, unless the program has such products too
 *
 * Turns are those of the lowered kernels, of the host code around them, and of
 * the par program. A turn that was not seen may have no other side: turns_next
 * asks a prover. What is left is looked for at other sizes (turns_reach), or
 * makes the verdict unknown. */
#ifndef EXO_VERIFY_ASYNC_TURNS_H
#define EXO_VERIFY_ASYNC_TURNS_H

#include "passes/prove.h"
#include "verify/sizes.h"

typedef enum TurnKind {
    TURN_block,    /* op is the first of one */
    TURN_ge0,      /* e >= 0 */
    TURN_eq0,      /* e == 0 */
    TURN_quotient, /* e floordiv divisor; by 1: e itself */
    TURN_trips,    /* e >= 0: a loop has as many trips as show all of it */
    TURN_within,   /* e >= 0, or a place is outside of its object */
    TURN_product   /* e has other values, for all that is known */
} TurnKind;

/* A loop around a comparison that must be come to again. */
typedef struct TurnLoop {
    const Op *op;
    unsigned from, to; /* its variables among the turn's */
    int64_t delay; /* rounds behind which a slot may come again, at least 1 */
} TurnLoop;

enum { TURN_LOOPS = 4 };

typedef struct TextTurn {
    TurnKind kind;
    Module *m;
    const Op *op;
    const Affine *e;
    int64_t divisor;
    const Cond *whole, *part; /* the condition, and the comparison in it */
    bool by_lane;             /* differs between lanes of a warp */
    const Op *loop; /* of a comparison that must be come to again: the loop that
                       makes it another one, or the innermost; else NULL */
    unsigned dim;   /* .. of its variables */
    unsigned n_loops, n_round;
    TurnLoop loops[TURN_LOOPS]; /* that loop, and those around it */
    const Affine **round; /* the variables of all of these, and further out */
    /* In which of the loops it must be come to again after it was false, and
     * true (n_loops: in none), and in how many rounds behind. */
    unsigned level[2];
    int64_t need[2];
    bool hopeless;  /* not seen where it was looked for, or cannot be, .. */
    unsigned known; /* .. when so much of it was */
    unsigned at;    /* in the list */
} TextTurn;

typedef struct Turns Turns;

/* Turns of host, a host.proc of m, of the kernels that it launches, and of proc
 * of module `of` (NULL: none). In the arena, but for what two processes share:
 * turns_free. NULL: there is no memory to share. */
Turns *turns_new(Arena *arena, Module *m, const Op *host, Module *of,
                 const Op *proc);
void turns_free(Turns *t);
/* From now on this process is the second of two that see the same turns. */
void turns_aside(Turns *t);

/* The value of e in a lane where op stands; false: it has none. */
typedef bool TurnValue(void *user, const Affine *e, unsigned lane,
                       int64_t *out);
/* A kernel begins: no warp has come to anything. */
void turns_begin(Turns *t);
/* Is there one to be seen at op? */
bool turns_at(Turns *t, const Op *op);
/* Lanes of a warp come to op, or have been there; outside of kernels the warp
 * does not matter. */
void turns_see(Turns *t, const Op *op, uint64_t warp, uint32_t lanes,
               TurnValue *value, void *user);
/* Sees those of proc, the host or the program, that stand around its kernels,
 * at the sizes of a run. */
void turns_around(Turns *t, const Op *proc, const SizeSet *sizes);

/* The first turn that was not seen, is not hopeless, and for all that the
 * prover knows has another side; NULL: there is none. */
TextTurn *turns_next(Turns *t, Prover *prover);
/* Has it been seen by now? */
bool turn_seen(const Turns *t, const TextTurn *turn);
/* The first hopeless one, or NULL. */
const TextTurn *turns_hopeless(const Turns *t);
/* `%k < 100 is never false`, with the place. */
void turn_print(StrBuf *out, const Turns *t, const TextTurn *turn);

/* Sizes at which the turn may be seen, the cheapest found, within what a run
 * may cost: one parameter of the n sets, or of the least sizes, moved up until
 * intervals say that it may. False: none were found. In the arena. */
bool turns_reach(const Turns *t, const TextTurn *turn, Arena *arena,
                 const SizeSet *sets, unsigned n, SizeSet *out);
/* Sizes with as much to do as the first of the sets, but for those that turn a
 * comparison of sizes alone the other way, which are as in another set: of the
 * first such comparison from *at on that has none among the sets. Moves *at
 * there. False: there are none. In the arena. */
bool turns_widen(const Turns *t, unsigned *at, Arena *arena,
                 const SizeSet *sets, unsigned n, SizeSet *out);
/* How much of it was seen; more when more was. */
unsigned turn_progress(const Turns *t, const TextTurn *turn);
/* It is not looked for again, unless more of it is seen by the way. */
void turn_give_up(const Turns *t, TextTurn *turn);

#endif
