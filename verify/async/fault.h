/* How check-async names an op in an error: `'async.setmaxnreg': R-POOL: ..`. */
#ifndef EXO_VERIFY_ASYNC_FAULT_H
#define EXO_VERIFY_ASYNC_FAULT_H

#include "ir/ir.h"

/* Reports an error at op with a code of verify/hazards.def. */
Diag *async_vfault(Ctx *ctx, const Op *op, const char *code, const char *fmt,
                   va_list ap);
Diag *async_fault(Ctx *ctx, const Op *op, const char *code, const char *fmt,
                  ...) EXO_PRINTF(4, 5);

#endif
