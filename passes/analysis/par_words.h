/* The answers of the par analysis in words: a comment beside a statement
 * (exo-opt --annotate=tilings) and sentences about it (exo-check --explain). */
#ifndef EXO_PASSES_ANALYSIS_PAR_WORDS_H
#define EXO_PASSES_ANALYSIS_PAR_WORDS_H

#include "passes/analysis/par_info.h"

/* Appends one line without its end: which threads execute op, what the
 * iterator of a thread loop is, where each dimension of an allocation lives,
 * which barriers are meant. Nothing where nothing is known (host code). */
void par_note(const ParInfo *pi, Module *m, const Op *op, StrBuf *out);

/* Appends sentences, a line each. False where nothing is known. */
bool par_explain(const ParInfo *pi, Module *m, const Op *op, StrBuf *out);

#endif
