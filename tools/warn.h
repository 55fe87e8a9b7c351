/* -W and -Werror. */
#ifndef EXO_TOOLS_WARN_H
#define EXO_TOOLS_WARN_H

#include "ir/ir.h"
#include "tools/options.h"

/* With -W: reports what is odd in the public procedures of m. */
void tool_warn(Ctx *ctx, Module *m, const Options *o);
/* TOOL_wrong, said as an error, when -Werror was given and anything has been
 * warned of since the context was made or cleared; TOOL_done otherwise. */
ToolStatus tool_warnings_status(Ctx *ctx, const Options *o);

#endif
