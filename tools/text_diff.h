/* The difference of two texts, line by line, in the unified form. */
#ifndef EXO_TOOLS_TEXT_DIFF_H
#define EXO_TOOLS_TEXT_DIFF_H

#include "ir/support.h"

/* Appends hunks (`@@ -a,b +c,d @@`, three lines around) that make b of a;
 * nothing when they are equal. */
void text_diff(const char *a, const char *b, StrBuf *out);

#endif
