/* A timeline of a machine run as Chrome trace JSON (chrome://tracing,
 * Perfetto): a process for each CTA, a thread for each warp with its role and
 * its waits, the engines' work as asynchronous spans, and mbarrier phases as
 * instants. Time is the scheduler's steps, shown as microseconds. */
#ifndef EXO_TOOLS_RUN_TRACE_H
#define EXO_TOOLS_RUN_TRACE_H

#include "verify/machine/machine.h"

typedef struct RunTrace RunTrace;

/* Can this build write traces? It needs jansson. */
bool run_trace_available(void);
/* NULL when it cannot. */
GIVES RunTrace *run_trace_new(const Module *m);
MachineObserver *run_trace_observer(RunTrace *t);
/* Writes what was observed and frees the trace. */
bool run_trace_write(Ctx *ctx, TAKES RunTrace *t, const char *path);

#endif
