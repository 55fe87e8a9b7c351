/* What is known of a kernel before it runs. Included by machine.c. */
#ifndef EXO_VERIFY_MACHINE_KERNEL_H
#define EXO_VERIFY_MACHINE_KERNEL_H

#include "verify/host_run.h"
#include "verify/machine/machine_internal.h"

/* Prepares op (an async.kernel) with its arguments; NULL and a diagnostic when
 * it is malformed. In the arena. */
Kernel *kernel_prepare(Module *m, Arena *arena, const Op *op,
                       const HostArg *args, unsigned n_args);

#endif
