/* --schedule: the schedule that the command line names, applied to a module
 * that was just read. */
#ifndef EXO_TOOLS_SCHEDULE_H
#define EXO_TOOLS_SCHEDULE_H

#include "tools/options.h"

#include "ir/ir.h"

/* True, with *m unchanged, when no schedule is given. False after a report. */
bool tool_schedule(Ctx *ctx, const Options *o, Module **m);

#endif
