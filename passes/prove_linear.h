/* Systems of linear constraints over integers, for the first prover layer. */
#ifndef EXO_PASSES_PROVE_LINEAR_H
#define EXO_PASSES_PROVE_LINEAR_H

#include "ir/support.h"

enum {
    LINEAR_COLS = 64,  /* unknowns, those that solving adds included */
    LINEAR_ROWS = 400, /* constraints at any time */
    LINEAR_TRIES = 300 /* values tried while looking for a solution */
};

/* sum of k[i] * unknown i, plus k[LINEAR_COLS]: >= 0, or == 0. */
typedef struct LinearRow {
    bool equal;
    int64_t k[LINEAR_COLS + 1];
} LinearRow;

typedef struct LinearSystem {
    Arena *arena;
    unsigned n_cols;
    VEC(LinearRow) rows;
} LinearSystem;

typedef enum LinearAnswer {
    LINEAR_none,  /* no integer solution: certain */
    LINEAR_found, /* one that accept() took */
    LINEAR_open,  /* neither was found */
    LINEAR_large  /* past a limit */
} LinearAnswer;

/* Leaves s as it is. accept is given values of the n_cols unknowns that meet
 * the constraints and may refuse them; NULL: only none or open is asked for. */
LinearAnswer linear_solve(const LinearSystem *s,
                          bool (*accept)(const int64_t *values, void *user),
                          void *user);

#endif
