/* The checks of verify/ as passes: what a tool injects into its manager. */
#ifndef EXO_TOOLS_CHECKS_H
#define EXO_TOOLS_CHECKS_H

#include "passes/pass.h"
#include "tools/options.h"

/* What checks are told besides the module. They keep a pointer to it. */
typedef struct CheckInputs {
    const char *proc;  /* one procedure, public or not; NULL: each public one */
    const char *sizes; /* as --size gives them, or NULL: derived ones */
    /* The program that the module was lowered from, or at par the lowered form
     * that someone else made; NULL: none. */
    Module *source, *lowered;
    uint32_t ptx;     /* its source text; 0: none */
    bool ptx_follows; /* it is made later: nothing is said of it */
    /* Assembles PTX and appends its SASS; false and *why where that cannot be
     * done here, or with an error and *refused where the assembler does not
     * take the PTX. NULL: not in this tool. */
    bool (*sass)(Ctx *ctx, const char *ptx, size_t n, StrBuf *out,
                 const char **why, bool *refused);
} CheckInputs;

/* The checks this build has; the others answer `not run`. */
const PassCheck *tool_checks(unsigned *n);
const PassCheck *tool_checks_of(Arena *arena, const CheckInputs *in,
                                unsigned *n);
/* A text made of a lowered program against its kernels: PTX, SASS. One finding
 * a host.proc, fn(user, finding). */
typedef void ToolFindingFn(void *user, PassFinding f);
void tool_readback(Ctx *ctx, const Module *m, const char *ptx,
                   ToolFindingFn *fn, void *user);
void tool_sass(Ctx *ctx, const Module *m, const char *sass, ToolFindingFn *fn,
               void *user);
/* Says the same of each: the check was not run. */
void tool_not_run(const Module *m, const char *check, const char *reason,
                  ToolFindingFn *fn, void *user);
/* `check-par @saxpy: proved [all sizes]`. */
void tool_finding_print(StrBuf *out, const PassFinding *f);
/* A remark for each finding; the status that they call for. */
ToolStatus tool_finding_report(Ctx *ctx, const PassFinding *f);
ToolStatus tool_findings_report(Ctx *ctx, const PassManager *pm);

/* Has the procedure a control parameter of this name? */
bool proc_has_parameter(const Module *m, const Op *proc, const char *name);

#endif
