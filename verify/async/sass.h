/* Holds what the assembler made of a kernel against the kernel.
 *
 * SASS as nvdisasm or cuobjdump print it. Counts over a whole kernel: the
 * hardware's instruction for each barrier, copy, wgmma and fence, no local
 * memory, no generic access. */
#ifndef EXO_VERIFY_ASYNC_SASS_H
#define EXO_VERIFY_ASYNC_SASS_H

#include "verify/check.h"

/* Every kernel that host launches, against the n bytes. Refuted where less is
 * there than in the kernel, or where an instruction may not be there; unknown
 * where the assembler has doubled one. Faults go to ctx. */
CheckResult check_sass(Ctx *ctx, const Module *m, const Op *host,
                       const char *text, size_t n);

#endif
