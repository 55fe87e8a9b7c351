/* Is this an instruction of PTX, as far as its form says? By the mnemonic's
 * first word, how many operands it takes, and the type that arithmetic ends in.
 * Another's PTX may use any instruction of the ISA for sm_90a, so the table is
 * of all of them, not of those that code generation emits. */
#ifndef EXO_VERIFY_PTX_KNOWN_H
#define EXO_VERIFY_PTX_KNOWN_H

#include "verify/ptx/ptx.h"

/* Why it is none, or NULL. */
const char *ptx_malformed(const PtxInstr *in);
/* Is the name one of a register that is there without a declaration? */
bool ptx_special_register(const char *name);

#endif
