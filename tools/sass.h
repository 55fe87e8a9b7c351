/* The SASS of PTX and of a cubin, by the programs of the CUDA toolkit: for the
 * tools that link codegen/. */
#ifndef EXO_TOOLS_SASS_H
#define EXO_TOOLS_SASS_H

#include "ir/diag.h"

/* Appends it. False and *why, without a diagnostic, where a program is not
 * there; diagnostics where ptxas refuses. */
bool sass_of_cubin(Ctx *ctx, const char *cubin, size_t n, StrBuf *out,
                   const char **why);
/* *refused: ptxas does. */
bool sass_of_ptx(Ctx *ctx, const char *ptx, size_t n, StrBuf *out,
                 const char **why, bool *refused);

#endif
