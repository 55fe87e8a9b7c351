/* Warnings on request, and warnings as errors. */
#include "tools/warn.h"

#include "tools/input.h"
#include "verify/warn.h"

#include <string.h>

void tool_warn(Ctx *ctx, Module *m, const Options *o)
{
    if (!options_has(o, "-W"))
        return;
    for (Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_ctl_proc && proc_is_public(op))
            warn_proc(ctx, m, op);
}

ToolStatus tool_warnings_status(Ctx *ctx, const Options *o)
{
    unsigned n = 0;
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        n += d->severity == SEV_warning;
    if (!n || strcmp(options_value(o, "-W", ""), "error") != 0)
        return TOOL_done;
    diag_error(ctx, (Loc){ 0 }, "warning", "%u %s, which -Werror takes as %s",
               n, n == 1 ? "warning" : "warnings",
               n == 1 ? "an error" : "errors");
    return TOOL_wrong;
}
