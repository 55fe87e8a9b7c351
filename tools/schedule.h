/* --schedule: the schedule that the command line names, applied to a module
 * that was just read. */
#ifndef EXO_TOOLS_SCHEDULE_H
#define EXO_TOOLS_SCHEDULE_H

#include "tools/options.h"

#include "passes/schedule/schedule.h"
#include "tools/prover.h"

/* What schedules are run with, by the command line. */
typedef struct ToolSchedule {
    SchedOptions options;
    Arena *arena;
    ToolProver *prover;
} ToolSchedule;

/* What --schedule did, for a certificate. In the Ctx's arena. */
typedef struct ToolScheduled {
    bool given;
    char before[65]; /* the hash of the program before its steps, as .eir */
    SchedOriginVec origins;
} ToolScheduled;

/* False after a report; else tool_schedule_close is to be called. */
bool tool_schedule_open(Ctx *ctx, const Options *o, ToolSchedule *ts);
void tool_schedule_close(ToolSchedule *ts);

/* True, with *m unchanged, when no schedule is given. False after a report. */
bool tool_schedule(Ctx *ctx, const Options *o, Module **m);

#endif
