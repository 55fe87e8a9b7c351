/* Which instructions of SASS carry out which letters of a kernel, by rows, and
 * what the assembler may make of them. It makes more than one of some: it tries
 * a wait once before the loop, it elects again on the way out of a collective.
 * Which they are was measured on the kernels that ship, with ptxas 13.0. Used
 * by sass.h and sass_order.h. */
#ifndef EXO_VERIFY_ASYNC_SASS_ROWS_H
#define EXO_VERIFY_ASYNC_SASS_ROWS_H

#include "ir/support.h"

enum { SASS_STEMS = 4, SASS_ROWS = 29 };

enum {
    SASS_MORE = 1,     /* more of them */
    SASS_MERGED = 2,   /* fewer, but one */
    SASS_ONCE = 4,     /* for a warp, without the branch that elected a lane */
    SASS_TWICE = 8,    /* two of them everywhere */
    SASS_FREELY = 16,  /* at other places among those that synchronise */
    SASS_AGAIN = 32,   /* until it holds */
    SASS_SKIPPED = 64, /* not in a launch without clusters */
};

/* Beginnings of letters' names and of mnemonics that carry them out. */
typedef struct SassRow {
    const char *letters[SASS_STEMS], *sass[SASS_STEMS];
    unsigned may_be;
} SassRow;

extern const SassRow sass_rows[SASS_ROWS];

/* -1: none. */
int sass_row_of_letter(const char *name);
int sass_row_of_op(const char *mnemonic);

#endif
