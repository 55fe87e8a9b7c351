/* Printing diagnostics for a tool: text, or one JSON object a line by
 * docs/diagnostics.schema.json. */
#ifndef EXO_TOOLS_DIAG_PRINT_H
#define EXO_TOOLS_DIAG_PRINT_H

#include "ir/diag.h"

typedef enum DiagFormat { DIAG_text, DIAG_json } DiagFormat;

/* Can this build print the format? JSON needs jansson: without it a tool says
 * so and exits with TOOL_missing. */
bool diag_format_available(DiagFormat format);
/* Appends one diagnostic with its notes. */
void diag_print(const Ctx *ctx, const Diag *d, DiagFormat format, StrBuf *out);
/* Prints to standard error what was reported since the last call (`last`, NULL
 * at first, is moved on). */
void diag_print_new(const Ctx *ctx, const Diag **last, DiagFormat format);
/* Says, at the end of a run and in text only, how many errors were counted but
 * not kept because of --max-errors. */
void diag_print_rest(const Ctx *ctx, DiagFormat format);

#endif
