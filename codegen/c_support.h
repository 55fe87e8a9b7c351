/* The pieces of fixed text of the C printer. Internal to codegen/. */
#ifndef EXO_CODEGEN_C_SUPPORT_H
#define EXO_CODEGEN_C_SUPPORT_H

#include "codegen/c_emit.h"

/* A piece of C, printed when one of the needs is there; needs 0: always. A row
 * without text ends a list. */
typedef struct CPiece {
    uint32_t needs;
    const char *text;
} CPiece;

extern const CPiece c_check_pieces[];   /* c_support.c */
extern const CPiece c_driver_pieces[];  /* c_support_driver.c: types */
extern const CPiece c_context_pieces[]; /* after symbols, images, kernels */

#endif
