/* The lines of a schedule file. */
#ifndef EXO_PASSES_SCHEDULE_RUN_H
#define EXO_PASSES_SCHEDULE_RUN_H

#include "ir/diag.h"

typedef bool SchedLineFn(void *user, Loc loc, const char *line);

/* Calls fn for each line that says something: joined where `\` ends it, without
 * comment and blanks at its ends, loc where it begins; until fn answers false,
 * which is then the answer. */
bool schedule_lines(Ctx *ctx, uint32_t file, SchedLineFn *fn, void *user);

#endif
