/* Warnings: what is legal, but surely not meant (-W of the tools).
 *
 * Only what is certain without sizes or a prover is warned of. A warning never
 * changes a verdict. */
#ifndef EXO_VERIFY_WARN_H
#define EXO_VERIFY_WARN_H

#include "ir/ir.h"

/* Reports to ctx what is odd in a procedure of level seq or par, by the codes
 * of group "warn" in verify/hazards.def. Faults of the par analysis, which it
 * asks for the warps that never work, are not reported. */
void warn_proc(Ctx *ctx, Module *m, Op *proc);

#endif
