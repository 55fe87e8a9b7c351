/* SASS as nvdisasm or cuobjdump print it: a kernel's instructions, and its
 * control flow in the terms of PTX, so that ptx_run says which of them a thread
 * can execute.
 *
 * What decides roles is integer arithmetic on the thread's number: those
 * instructions are translated (translate.c), every other one gives results that
 * are open. Physical registers are renamed to what flows together (webs.c).
 * Everything lives in the arena given. Used by verify/async/sass.h. */
#ifndef EXO_VERIFY_SASS_SASS_H
#define EXO_VERIFY_SASS_SASS_H

#include "verify/ptx/ptx.h"

enum { SASS_MAX_OPERANDS = 12 };

typedef struct SassInstr {
    const char *op;    /* the mnemonic with all that it ends in */
    const char *guard; /* "P0", "!UP1"; NULL: none */
    unsigned n_operands;
    const char *operands[SASS_MAX_OPERANDS];
    uint32_t line; /* in the text, from 1 */
    uint64_t address;
    const char *label; /* an operand that is one; NULL: none */
    uint32_t target;   /* the instruction there, or UINT32_MAX */
    uint32_t step;     /* the instruction of `flow` that stands for it */
} SassInstr;

typedef struct SassKernel {
    uint32_t n_instrs;
    SassInstr *instrs;
    PtxKernel flow;
} SassKernel;

/* A line of a text at which a kernel's code begins; it ends at the next. */
typedef struct SassHead {
    const char *line, *name;
    size_t n; /* the name's length */
    uint32_t number;
} SassHead;

/* A text, which may be of many kernels, with its heads. */
typedef struct SassText {
    VEC(SassHead) heads;
} SassText;

/* Keeps pointers into the text. */
SassText *sass_text(Arena *a, const char *text);

/* The kernel's part of the text; false: it has none. */
bool sass_read(Arena *a, const SassText *text, const char *name,
               SassKernel *out);

/* Fills out->flow and the steps. False, and *why, where control may go
 * elsewhere than the text says. */
bool sass_flow(Arena *a, SassKernel *k, const char **why);

#endif
