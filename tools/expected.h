/* --verify-diagnostics: the comments of a test input that say what must be
 * reported where.
 *
 *     // expected-error@+1 {{text that the message contains}}
 *
 * Also expected-warning, -remark and -note; `@+N`, `@-N`, `@above`, `@below`,
 * none for the comment's own line, `@unknown` for a diagnostic without a
 * place. In .exo the same after `#`. */
#ifndef EXO_TOOLS_EXPECTED_H
#define EXO_TOOLS_EXPECTED_H

#include "ir/diag.h"

/* Holds what was reported against the source's comments. False, with what is
 * missing or not expected appended to out, when they differ. */
bool expected_match(const Ctx *ctx, uint32_t file, StrBuf *out);

#endif
