/* The checks of verify/ as passes: what a tool injects into its manager. */
#ifndef EXO_TOOLS_CHECKS_H
#define EXO_TOOLS_CHECKS_H

#include "passes/pass.h"
#include "tools/options.h"

/* The checks this build has; the others answer `not run`. */
const PassCheck *tool_checks(unsigned *n);
/* The same for one procedure, public or not; NULL: every public one. */
const PassCheck *tool_checks_of(Arena *arena, const char *proc, unsigned *n);
/* `check-par @saxpy: proved [all sizes]`. */
void tool_finding_print(StrBuf *out, const PassFinding *f);
/* A remark for each finding; the status that they call for. */
ToolStatus tool_findings_report(Ctx *ctx, const PassManager *pm);

#endif
