/* Calls by which host code launches kernels.
 *
 * A procedure with device functions becomes a host.proc of its own, which
 * other host code does not call. So what is checked and lowered at level par
 * has such calls in line: the pass manager sees to it for the passes whose row
 * says so. */
#ifndef EXO_PASSES_INLINE_H
#define EXO_PASSES_INLINE_H

#include "ir/ir.h"

/* Does op, a procedure or a call, have a device function, or call what has one,
 * directly or not? */
bool op_launches(const Module *m, const Op *op);

/* A clone of m with the bodies of those callees in place of the host's calls,
 * for the caller to free; NULL where there is no such call, or putting them in
 * line would copy without end. Calls that cannot be put in line stay, of which
 * nothing is reported: check-par refuses them. Callees that are private or
 * imported and then called nowhere are erased unless `keep`: each is checked
 * and lowered where it was called. */
Module *inline_launches(Ctx *ctx, Module *m, bool keep);

#endif
