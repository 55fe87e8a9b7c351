/* Reads PTX back and holds it against the kernels that it was made from.
 *
 * Each op that synchronises, copies or is collective is there as often as the
 * kernel has it, in its entry: nothing was duplicated, sunk or dropped on the
 * way. No local memory, no generic access, the version and target that the
 * instructions need, and the parameters of this kernel (`// exo-abi:`). */
#ifndef EXO_VERIFY_ASYNC_READBACK_H
#define EXO_VERIFY_ASYNC_READBACK_H

#include "verify/check.h"

/* What an op becomes: text that its instruction has and no other's. Past the
 * last: code OP_none. Also for the tests of code generation. */
typedef struct PtxStem {
    OpCode code;
    const char *stem;
} PtxStem;
const PtxStem *ptx_stem_at(unsigned i);
/* How many instructions one op is. */
int64_t ptx_instructions(const Op *op);

/* Every kernel that host launches, against the PTX of n bytes; `file` is its
 * source for locations, or 0. Faults go to ctx. */
CheckResult check_readback(Ctx *ctx, const Module *m, const Op *host,
                           uint32_t file, const char *ptx, size_t n);

#endif
