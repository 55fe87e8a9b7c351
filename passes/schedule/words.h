/* Lines of a schedule as words: comments, quotes, `key=value`, steps. */
#ifndef EXO_PASSES_SCHEDULE_WORDS_H
#define EXO_PASSES_SCHEDULE_WORDS_H

#include "passes/schedule/cursor.h"

typedef struct Step {
    Loc loc;
    const char *bind; /* name = .., or NULL */
    const SchedOp *op;
    unsigned n;
    SchedText args[SCHED_MAX_ARGS];
} Step;

/* The end of the word at p: a blank outside quotes and brackets. */
const char *word_end(const char *p);
/* The n bytes at line without their comment (# after a blank, outside quotes)
 * and without blanks at the end. */
char *line_without_comment(Arena *arena, const char *line, size_t n);
/* `[name =] op arg .. key=value`; false after a report at loc's line. */
bool step_parse(Ctx *ctx, Arena *arena, Loc loc, const char *text, Step *out);

#endif
