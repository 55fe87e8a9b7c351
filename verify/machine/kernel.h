/* What is known of a kernel before it runs. Included by machine.c. */
#ifndef EXO_VERIFY_MACHINE_KERNEL_H
#define EXO_VERIFY_MACHINE_KERNEL_H

#include "verify/machine/machine_internal.h"

/* One argument of a launch, by the kernel's block argument. */
typedef struct LaunchArg {
    int64_t value;
    View view;
} LaunchArg;

/* Prepares op (an async.kernel) with its arguments; NULL and a diagnostic when
 * it is malformed. In the arena. */
Kernel *kernel_prepare(Module *m, Arena *arena, const Op *op,
                       const LaunchArg *args, unsigned n_args);

#endif
