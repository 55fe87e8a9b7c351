/* A drawing of which threads execute a statement (exo-opt --emit=svg). */
#ifndef EXO_PASSES_ANALYSIS_PAR_SVG_H
#define EXO_PASSES_ANALYSIS_PAR_SVG_H

#include "passes/analysis/par_info.h"

/* Appends an SVG document: a block for each CTA of the cluster, a row for each
 * warp, a cell for each lane. Threads that do not execute op are grey; the
 * others show the innermost thread iterator around it, in the hue of the
 * outermost that differs. Of a thread loop or CudaWarps it is the body that is
 * drawn. False where nothing is known of op. */
bool par_svg(const ParInfo *pi, const Module *m, const Op *op, StrBuf *out);

#endif
