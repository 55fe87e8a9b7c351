/* The parts of exo-check behind its main: sizes, side inputs, the pipeline of a
 * level, the report. */
#ifndef EXO_TOOLS_CHECK_REPORT_H
#define EXO_TOOLS_CHECK_REPORT_H

#include "passes/pass.h"
#include "tools/checks.h"
#include "tools/diag_print.h"
#include "tools/options.h"

/* Says that a part is not in this build; answers TOOL_missing. */
ToolStatus check_missing(const Options *o, const char *part);
/* --size: every name is a control parameter of a procedure that is checked,
 * and the procedure's asserts hold where the sizes decide them. */
ToolStatus check_sizes(Ctx *ctx, const Module *m, const Options *o);
/* Reads --proc, --size, --lowered and --ptx; check_inputs_free ends it. */
ToolStatus check_side_inputs(Ctx *ctx, const Options *o, CheckInputs *out);
void check_inputs_free(CheckInputs *in);
/* --certificate: does it speak of this program, and do the checks say again
 * what it says, and nothing else? Prints a line for each of its claims. With
 * in's PTX, that of the certificate, it is read back too. *m may be lowered.
 * In check_certificate.c. */
ToolStatus check_certificate(Ctx *ctx, Module **m, const Options *o,
                             const CheckInputs *in);
/* sync-check{M=128 N=256} from --size=M=128,N=256. */
const char *check_sync_pass(Arena *a, const Options *o);
/* The checks of a level as pipeline text, --size put in; NULL for a level that
 * is none. */
const char *check_pipeline(Arena *a, const Options *o, const char *level);
/* Appends a line for each finding on a procedure that was asked for; answers
 * the status that the verdicts call for. */
ToolStatus check_report_print(Ctx *ctx, const Options *o, const PassManager *pm,
                              DiagFormat format, StrBuf *out);

#endif
