/* check-async as a pass. */
#ifndef EXO_TOOLS_CHECKS_ASYNC_H
#define EXO_TOOLS_CHECKS_ASYNC_H

#include "tools/checks.h"
#include "verify/check.h"

/* user: CheckInputs or NULL. A lowered module is checked as it is; of one at
 * par, what user brings as lowered, or a lowered copy. */
PassCheckFn run_check_async;
PassFinding to_pass_finding(const CheckResult *r);

#endif
