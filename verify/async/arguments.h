/* Does the host check what it must, and nothing that the program allows?
 *
 * What it must is passes/host_rules.h with the program's asserts. Each rule
 * follows from the checks that stand before the launch or map that needs it;
 * each check follows from the rules, so that it refuses no arguments that the
 * program takes. Without the program checks of controls are not held against
 * anything. */
#ifndef EXO_VERIFY_ASYNC_ARGUMENTS_H
#define EXO_VERIFY_ASYNC_ARGUMENTS_H

#include "passes/prove.h"
#include "verify/check.h"
#include "verify/check_async.h"

/* Faults go to ctx with code H-CHECK. */
CheckResult check_async_arguments(Ctx *ctx, Module *m, const Op *host,
                                  AsyncSource source, Prover *prover);

#endif
