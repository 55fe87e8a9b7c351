/* Spellings of what a message names, as the .exo text has them. Texts live in
 * the module's arena. */
#ifndef EXO_PASSES_ANALYSIS_PAR_TEXT_H
#define EXO_PASSES_ANALYSIS_PAR_TEXT_H

#include "ir/ir.h"
#include "passes/prove.h"

const char *par_text_affine(Module *m, const Affine *e);
const char *par_text_cond(Module *m, const Cond *c);
/* `N = 5, k = 2`: the values that show a proof's answer. */
const char *par_text_proof(Module *m, const Proof *p);
const char *par_text_access(Module *m, const Access *a);
/* `[3, M / 4]`: the extents from the first-th on. */
const char *par_text_shape(Module *m, const Value *v, unsigned first);
const char *par_text_unit(Module *m, const UnitRef *u);
const char *par_text_mem(Module *m, const MemRef *mem);
const char *par_text_value(const Value *v);
const char *par_text_param(Module *m, const Param *p);
/* `for w in cuda_threads(0, 4, unit=cuda_warp)`, `CudaWarps(0, 1)`. */
const char *par_text_loop(Module *m, const Op *op);

#endif
