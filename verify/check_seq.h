/* check-seq: does a procedure, read sequentially, mean something?
 *
 * Types and literals, every access within its tensor, sizes positive, and at
 * calls: shapes equal, preconditions met, no aliasing of what is written.
 * Bodies of instructions are looked at where they are called. Synchronisation
 * is transparent. What the prover cannot decide makes the verdict unknown. */
#ifndef EXO_VERIFY_CHECK_SEQ_H
#define EXO_VERIFY_CHECK_SEQ_H

#include "passes/prove.h"
#include "verify/check.h"

#define CHECK_SEQ_VERSION 1

/* Faults go to ctx, with a witness where the prover has one. Adds variables to
 * the module's index expressions and nothing else. */
CheckResult check_seq(Ctx *ctx, Module *m, Op *proc, Prover *prover);

#endif
