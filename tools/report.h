/* exo-translate --report: what a kernel takes of a multiprocessor. */
#ifndef EXO_TOOLS_REPORT_H
#define EXO_TOOLS_REPORT_H

#include "codegen/ptxas.h"
#include "ir/ir.h"

/* Appends registers (where ptxas ran: NULL otherwise), shared memory by buffer
 * and how many CTAs fit at once. */
void report_kernel(Op *kernel, const PtxasReport *ptxas, StrBuf *out);

#endif
