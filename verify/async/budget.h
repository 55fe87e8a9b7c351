/* What a kernel may use and who may execute what, from its text alone. */
#ifndef EXO_VERIFY_ASYNC_BUDGET_H
#define EXO_VERIFY_ASYNC_BUDGET_H

#include "verify/check.h"

/* Every kernel that host launches: shared memory and mbarriers in place,
 * registers, named barriers, multicast targets, operand shapes, collectives
 * under conditions that all lanes agree on. Faults go to ctx. */
CheckResult check_async_budget(Ctx *ctx, Module *m, const Op *host);
/* Does host launch a kernel of this name? */
bool kernel_is_launched(const Op *host, const char *name);

#endif
