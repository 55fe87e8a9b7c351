/* The checks of verify/ as passes: what a tool injects into its manager. */
#ifndef EXO_TOOLS_CHECKS_H
#define EXO_TOOLS_CHECKS_H

#include "passes/pass.h"
#include "tools/options.h"

/* What checks are told besides the module. They keep a pointer to it. */
typedef struct CheckInputs {
    const char *proc; /* one procedure, public or not; NULL: each public one */
    const char *sizes; /* as --size gives them, or NULL: derived ones */
    /* The program that the module was lowered from, or at par the lowered form
     * that someone else made; NULL: none. */
    Module *source, *lowered;
    uint32_t ptx; /* its source text; 0: none */
} CheckInputs;

/* The checks this build has; the others answer `not run`. */
const PassCheck *tool_checks(unsigned *n);
const PassCheck *tool_checks_of(Arena *arena, const CheckInputs *in,
                                unsigned *n);
/* The PTX of a lowered program against its kernels, one finding a host.proc:
 * fn(user, finding). */
void tool_readback(Ctx *ctx, const Module *m, const char *ptx, size_t n,
                   void (*fn)(void *user, PassFinding f), void *user);
/* `check-par @saxpy: proved [all sizes]`. */
void tool_finding_print(StrBuf *out, const PassFinding *f);
/* A remark for each finding; the status that they call for. */
ToolStatus tool_findings_report(Ctx *ctx, const PassManager *pm);

#endif
