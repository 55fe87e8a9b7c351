/* Does every path of a thread through SASS do what synchronises, copies and
 * multiplies in the order of a path through its kernel?
 *
 * By rows of sass_rows.h, so not which mbarrier or which tile. The assembler
 * may try again what it must wait for, and add fences and barriers; what it
 * moves freely is not looked at. */
#ifndef EXO_VERIFY_ASYNC_SASS_ORDER_H
#define EXO_VERIFY_ASYNC_SASS_ORDER_H

#include "verify/async/automaton.h"
#include "verify/sass/sass.h"

typedef struct SassOrder {
    Alphabet *letters;
    const Module *m;
    const Op *kernel;
    const SassKernel *code; /* with its flow */
    const int8_t *row;      /* by instruction of SASS; -1: none */
} SassOrder;

/* What comes where it should not, for the thread with these coordinates, to
 * which `can` belongs (ptx_run); NULL: nothing does. */
const char *sass_order(Arena *a, const SassOrder *source, Coords *at,
                       const uint8_t *can);

#endif
