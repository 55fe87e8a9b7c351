/* exo-opt --interactive: steps of a schedule from a terminal or a pipe. */
#ifndef EXO_TOOLS_INTERACTIVE_H
#define EXO_TOOLS_INTERACTIVE_H

#include "tools/options.h"

#include "ir/ir.h"

/* Reads steps and commands from standard input until it ends or says quit, each
 * tried on *m, which becomes the result. Faults are printed and change nothing.
 * Shows everything on standard output. */
ToolStatus interactive_run(Ctx *ctx, const Options *o, Module **m);

#endif
