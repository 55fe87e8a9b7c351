/* Reading a program for a tool: the libraries, the file, its imports. */
#ifndef EXO_TOOLS_INPUT_H
#define EXO_TOOLS_INPUT_H

#include "ir/lib.h"
#include "tools/options.h"

/* The folder of shared files beside the program, `<exe dir>/../share/exo`; in
 * the Ctx's arena. Holds lib/ and kernels/. */
const char *input_share_dir(Ctx *ctx, const Options *o);

/* The libraries that every file sees; NULL after errors. One a run. */
Lib *input_library(Ctx *ctx, const Options *o);

/* Is FILE .exo text? By --input, otherwise by the ending: `.exo` is, anything
 * else is .eir. */
bool input_is_exo(const Options *o, const char *path);

/* The module of a registered source, read by its language with its imports and
 * found well-formed; NULL after errors. */
GIVES Module *input_module(Ctx *ctx, const Options *o, uint32_t file,
                           bool is_exo, Lib *lib);

/* All of the above for the one file of a command line: NULL after errors. */
GIVES Module *input_read(Ctx *ctx, const Options *o, const char *path);

/* Is op a procedure that a tool takes when none is named: of a file's own, not
 * starting with `_`? */
bool proc_is_public(const Op *op);

#endif
