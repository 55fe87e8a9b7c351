/* Steps taken one after another on a module, and taken back.
 *
 * schedule_run drives a session from a file, a tool may drive one from a
 * terminal. Each line of a schedule (passes/schedule/run.c has their syntax) is
 * taken whole or not at all; each that was taken can be undone. */
#ifndef EXO_PASSES_SCHEDULE_SESSION_H
#define EXO_PASSES_SCHEDULE_SESSION_H

#include "passes/schedule/schedule.h"

typedef struct SchedSession SchedSession;

/* On *m, which becomes the result of each line. undo: keep what was before each
 * line, in memory. */
GIVES SchedSession *sched_session_new(Ctx *ctx, Module **m,
                                      const SchedOptions *o, bool undo);
void sched_session_free(TAKES SchedSession *s);

/* One line, joined and without its comment. False after a report; *m is then as
 * before the line, except with undo off and an include, whose steps before the
 * one that failed stay taken. */
bool sched_session_line(SchedSession *s, Loc loc, const char *line);
/* Did a line so far name each parameter that the options give a value? Else
 * reports. */
bool sched_session_params_meant(SchedSession *s);
/* Takes the last line back, or takes the last line that was taken back again.
 * False: there is none. */
bool sched_session_undo(SchedSession *s);
bool sched_session_redo(SchedSession *s);
/* The i-th line that is taken now; NULL past the last. Needs undo. */
const char *sched_session_taken(const SchedSession *s, unsigned i);

/* The procedure that the next step is for, as it is now; NULL: none is named
 * and there are several, or none. */
const Op *sched_session_proc(const SchedSession *s);
/* The record so far. Valid until the next line. */
const SchedResult *sched_session_result(const SchedSession *s);
/* Calls fn for each name that a step may use: those given by `name = ..`, and
 * in back-quotes those of loops and allocations. */
void sched_session_names(SchedSession *s,
                         void (*fn)(const char *name, void *user), void *user);
/* Appends to each procedure's comment where it came from. schedule: the file's
 * name. */
void sched_session_note_origins(SchedSession *s, const char *schedule);

#endif
