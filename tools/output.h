/* Writing what a tool makes: a regular file whole or not at all, anything else
 * in place. */
#ifndef EXO_TOOLS_OUTPUT_H
#define EXO_TOOLS_OUTPUT_H

#include "ir/diag.h"

/* Writes n bytes to path; NULL or "-" is standard output. A regular file, or
 * one that is not there yet, is written beside its target and renamed. False
 * and an error when it cannot be written. */
bool output_write(Ctx *ctx, const char *path, const char *data, size_t n);

/* Writes out what was printed to stdout; false and an error when some of it
 * could not be written. */
bool output_flush(Ctx *ctx);

#endif
