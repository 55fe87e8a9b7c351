/* Reads PTX back and holds it against the kernels that it was made from.
 *
 * Each thread, of whatever role, does what it does in the kernel: the ops that
 * synchronise, copy or are collective are there as often, and in the order
 * that the kernel has them. No local memory, no generic access, the version
 * and target that the instructions need, and the parameters of this kernel
 * (`// exo-abi:`). */
#ifndef EXO_VERIFY_ASYNC_READBACK_H
#define EXO_VERIFY_ASYNC_READBACK_H

#include "verify/check.h"

/* Every kernel that host launches (NULL: every one), against the PTX;
 * `file` is its source for locations, or 0. Faults go to ctx. */
CheckResult check_readback(Ctx *ctx, const Module *m, const Op *host,
                           uint32_t file, const char *ptx);

#endif
