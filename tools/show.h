/* What the par analysis knows, shown: annotated .exo, a drawing, sentences. */
#ifndef EXO_TOOLS_SHOW_H
#define EXO_TOOLS_SHOW_H

#include "ir/ir.h"
#include "tools/options.h"

/* m as .exo with a comment beside each statement; false after errors. */
bool show_annotated(Ctx *ctx, Module *m, StrBuf *out);
/* Puts derived.* attributes on m where the analysis finds no fault (else it
 * leaves m as it is); false where m has some that say something else. */
bool show_derived(Ctx *ctx, Module *m);
/* The thread map of the statement at a line, as SVG; false after errors. */
bool show_svg(Ctx *ctx, Module *m, int64_t line, StrBuf *out);
/* Sentences about the statement at a line. What is known is appended also when
 * the analysis found faults, which are reported; false then. */
bool show_explained(Ctx *ctx, Module *m, int64_t line, StrBuf *out);

#endif
