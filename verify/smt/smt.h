/* The second prover layer, on Z3.
 *
 * One Smt a run holds the one Z3 context; each question gets a fresh simple
 * solver and a bound on Z3's own count of resources, never on time, so that an
 * answer repeats. Where Z3 finds a model it is evaluated in every condition
 * before it is believed. A tool chains the prover behind layer 1:
 *
 *     Smt *smt = smt_new(&(SmtOptions){ 0 });
 *     Prover *p = prover_chain(arena, prover_layer1(arena), smt_prover(smt));
 *
 * Floor division and remainder by literals are Z3's, products are nonlinear,
 * strides and configuration reads are integer constants. */
#ifndef EXO_VERIFY_SMT_SMT_H
#define EXO_VERIFY_SMT_SMT_H

#include "passes/prove.h"

typedef struct Smt Smt;

typedef struct SmtOptions {
    unsigned rlimit; /* per question; 0: SMT_RLIMIT */
} SmtOptions;

enum { SMT_RLIMIT = 2000000 };

typedef struct SmtStats {
    unsigned long queries, sat, unsat, unknown;
    unsigned long limited; /* of the unknown: out of resources */
    unsigned long rlimit;  /* resources spent in all */
} SmtStats;

/* NULL when Z3 gives no context. */
GIVES Smt *smt_new(const SmtOptions *options);
void smt_free(TAKES Smt *smt);
/* Belongs to smt. */
Prover *smt_prover(Smt *smt);
const SmtStats *smt_stats(const Smt *smt);
/* Z3's version, as 4.8.12. Valid until smt_free. */
const char *smt_version(const Smt *smt);

#endif
