/* A question to a prover as SMT-LIB 2, for any solver that reads it. */
#ifndef EXO_PASSES_SMTLIB_H
#define EXO_PASSES_SMTLIB_H

#include "passes/prove.h"

/* Appends a script that asks whether c can hold together with the facts and the
 * bounds of every variable: sat or unsat. False, and a comment in the script,
 * where part of that passes 64 bits and is left out: sat then says nothing. */
bool smtlib_print(StrBuf *out, const Facts *f, const Cond *c);

#endif
