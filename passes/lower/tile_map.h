/* Element-wise instructions on register tiles: the hook `tile_map`. Called from
 * lower_instr. */
#ifndef EXO_PASSES_LOWER_TILE_MAP_H
#define EXO_PASSES_LOWER_TILE_MAP_H

#include "passes/lower/lower.h"

/* Repeats the innermost block of the instance's body for each register of the
 * tiles that op names; an error where it is not element-wise. */
void lower_tile_map(Lower *L, Op *op, const Instr *in);

#endif
