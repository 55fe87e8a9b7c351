/* One element, one address: tensor map, shared-memory view and wgmma
 * descriptor of a buffer agree. */
#ifndef EXO_VERIFY_ASYNC_LAYOUT_H
#define EXO_VERIFY_ASYNC_LAYOUT_H

#include "passes/prove.h"
#include "verify/check.h"

/* Every kernel that host launches. The prover may be NULL; where it does not
 * know bit-vectors the scope says that all values were gone through. Faults go
 * to ctx. */
CheckResult check_async_layout(Ctx *ctx, Module *m, const Op *host,
                               Prover *prover);

#endif
