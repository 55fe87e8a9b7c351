/* check-par: are the annotations of a procedure ones that can be carried out?
 *
 * Who executes what (units, tilings, warps), where memory may be touched, how
 * it is spread over threads, how barriers, fences and rings are used, and what
 * the hardware cannot do. It says nothing of races: that is sync-check's. */
#ifndef EXO_VERIFY_CHECK_PAR_H
#define EXO_VERIFY_CHECK_PAR_H

#include "ir/limits.h"
#include "verify/check.h"

#define CHECK_PAR_VERSION 1

/* Reports every fault to ctx; proved for all sizes, or refuted. The module is
 * not changed but for the coordinates that the analysis adds to its index
 * expressions. */
CheckResult check_par(Ctx *ctx, Module *m, Op *proc);

#endif
