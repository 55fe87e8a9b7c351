/* Physical registers to webs: the definitions that flow into one use. */
#ifndef EXO_VERIFY_SASS_WEBS_H
#define EXO_VERIFY_SASS_WEBS_H

#include "verify/ptx/ptx.h"

/* The instructions of k use registers 1 .. n_regs, of which the first
 * n_physical are defined again and again, the others at most once and before
 * their use in the text. Renames all of them, in arguments and guards, so that
 * a register is a web, and sets k's registers. Two definitions that reach no
 * common use are two webs. */
void webs_rename(Arena *a, PtxKernel *k, unsigned n_physical);

#endif
