/* Holds what the assembler made of a kernel against the kernel.
 *
 * SASS as nvdisasm or cuobjdump print it. Counts, of the kernel and of each
 * thread of whatever role: the hardware's instruction for each barrier, copy,
 * wgmma and fence that it does; no local memory, no generic access. */
#ifndef EXO_VERIFY_ASYNC_SASS_H
#define EXO_VERIFY_ASYNC_SASS_H

#include "verify/check.h"
#include "verify/sass/sass.h"

/* Every kernel that host launches, against the text. Refuted where less is
 * there than in the kernel, or where a thread comes to less than it does, or
 * where an instruction may not be there; unknown where the kernel or a thread
 * has one too many that the assembler is not known to double. Where control
 * cannot be followed the scope says that counts are of the kernel alone. Faults
 * go to ctx. */
CheckResult check_sass(Ctx *ctx, const Module *m, const Op *host,
                       const SassText *text);

#endif
