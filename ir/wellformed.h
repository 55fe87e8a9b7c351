/* Is a module well-formed? Structure only: operands and results by the rows of
 * ir/ops.def, types, ranks, attributes that must be there, definitions before
 * uses and in their scope, what blocks yield, names. Nothing that needs a
 * proof and nothing about units, timelines or protocols: those are checks.
 *
 * Run after every parse and between passes. */
#ifndef EXO_IR_WELLFORMED_H
#define EXO_IR_WELLFORMED_H

#include "ir/ir.h"

/* Reports every fault at its op, which the message names. `pass` is the pass
 * that made the module, or NULL when a user wrote it; a fault is then ours
 * (code "internal") or theirs (code "wellformed"). */
bool module_wellformed(const Module *m, const char *pass);

#endif
