/* Diagnostics of sync-check. */
#ifndef EXO_VERIFY_SYNC_REPORT_H
#define EXO_VERIFY_SYNC_REPORT_H

#include "verify/sync/tasks.h"

/* Reports out->fault to ctx; run is the one that found it, whose task is run
 * again to look at the element. sizes: `M=.., N=..`. Returns the witness. */
const char *sync_report(Ctx *ctx, SyncRun *run, const SyncOutcome *out,
                        const char *sizes);

#endif
