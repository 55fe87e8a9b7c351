/* What the files of the Z3 layer share. Internal to verify/smt/. */
#ifndef EXO_VERIFY_SMT_SMT_IMPL_H
#define EXO_VERIFY_SMT_SMT_IMPL_H

#include "verify/smt/smt.h"

#include <z3.h>

struct Smt {
    Prover prover; /* first: smt_prover casts back */
    Z3_context z3;
    Z3_sort int_sort;
    Arena *arena;
    unsigned rlimit, counted;
    const char *version;
    SmtStats stats;
};

/* The limit on resources, and what else each solver gets. */
void smt_set_parameters(Smt *smt, Z3_solver solver);
/* The resources that the last question took; adds them up. */
unsigned smt_count_resources(Smt *smt, Z3_solver solver);

/* ---- verify/smt/smt_bits.c ---------------------------------------------- */

ProveAnswer smt_bits_equal(Prover *self, const BitQuery *q, uint64_t *values);

#endif
