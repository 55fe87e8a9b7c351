/* Plans of native loop nests: shared by the recogniser (nest.c) and what runs
 * them (nest_run.c). */
#ifndef EXO_VERIFY_NEST_INTERNAL_H
#define EXO_VERIFY_NEST_INTERNAL_H

#include "verify/nest.h"

enum { NEST_LOOPS = 12, NEST_STEPS = 6 };

typedef enum NestKind { NEST_none, NEST_copy, NEST_contraction } NestKind;

/* A value in the innermost block: a load, or a value from outside the nest or
 * a constant, then casts and tf32 roundings, without those that change no
 * value. */
typedef struct NestChain {
    const Op *load;       /* NULL: a value */
    const Value *outside; /* NULL: the constant */
    double constant;
    unsigned n_steps;
    const Op *steps[NEST_STEPS]; /* in order of application */
} NestChain;

/* How an access's dimensions use the loops. */
typedef struct NestAccess {
    const Access *access;
    uint32_t *uses; /* by dimension: bit l set where loop l's variable occurs */
} NestAccess;

typedef struct Nest {
    NestKind kind;
    unsigned n_loops;
    const Op *loops[NEST_LOOPS];
    VarId vars[NEST_LOOPS];
    const Op *sink; /* mem.store or mem.reduce */
    NestChain chain[2];
    NestAccess to, from[2];
} Nest;

/* The plan for the nest that starts at loop, with kind NEST_none when it has
 * none of the two shapes. In the arena. */
Nest *nest_recognise(Arena *arena, const Op *loop);

/* An access with its numbers: where it goes at the loops' first iteration, and
 * what each loop's iterations add. */
typedef struct NestWalk {
    Tensor *tensor;
    int64_t base;
    int64_t *step[NEST_LOOPS];         /* by iteration; NULL: adds nothing */
    unsigned char *inside[NEST_LOOPS]; /* maps: 0 where outside; NULL: inside */
    bool linear[NEST_LOOPS];           /* step[i] == i * pitch */
    int64_t pitch[NEST_LOOPS];
    bool outside; /* some dimension without a loop is outside the map */
} NestWalk;

typedef struct NestTrips {
    int64_t lo[NEST_LOOPS], n[NEST_LOOPS];
} NestTrips;

/* Evaluates an access over the whole nest; false where it cannot, or where it
 * would leave its tensor. Tables are in `scratch`. */
bool nest_walk(Interp *in, Scope *env, const Nest *nest, const NestTrips *trips,
               const NestAccess *a, Arena *scratch, NestWalk *out);
double nest_apply(const NestChain *c, double x);

bool nest_run_copy(Interp *in, Scope *env, const Nest *nest,
                   const NestTrips *trips, Arena *scratch);
bool nest_run_contraction(Interp *in, Scope *env, const Nest *nest,
                          const NestTrips *trips, Arena *scratch);

#endif
