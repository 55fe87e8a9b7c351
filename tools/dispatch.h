/* Tables of tuned kernels: `exo-translate tuned.json --to=c`.
 *
 * The table (docs/using-the-c-output.md has its form) names .exo files beside
 * itself, a procedure of each, and what it costs. Their module is what is
 * translated; the C printer adds the function that chooses. Tables are written
 * by kernels/gemm/tune.py. */
#ifndef EXO_TOOLS_DISPATCH_H
#define EXO_TOOLS_DISPATCH_H

#include "codegen/c_dispatch.h"
#include "tools/input.h"

/* Is FILE such a table? By its ending, `.json`. */
bool dispatch_is_table(const char *path);

/* Reads the table and the kernels it names; NULL after errors. The table lives
 * in the Ctx's arena. */
GIVES Module *dispatch_read(Ctx *ctx, const Options *o, const char *path,
                            const Dispatch **table);

#endif
