/* Lines from a terminal, with editing, history and completion where libedit is
 * in the build; from a pipe or file as they are. */
#ifndef EXO_TOOLS_LINE_READER_H
#define EXO_TOOLS_LINE_READER_H

#include "ir/support.h"

typedef VEC(const char *) WordVec;

/* Appends what a word that begins so may become, in `arena`. line: what stands
 * before the word. */
typedef void LineWordsFn(void *user, const char *line, const char *word,
                         Arena *arena, WordVec *out);

typedef struct LineReader LineReader;

/* Reads standard input. words may be NULL. */
GIVES LineReader *line_reader_new(LineWordsFn *words, void *user);
void line_reader_free(TAKES LineReader *r);
/* Is somebody there to see prompts? */
bool line_reader_is_terminal(const LineReader *r);
/* The next line without its end, after the prompt where somebody sees it; NULL
 * at the end. Valid until the next call. */
const char *line_reader_next(LineReader *r, const char *prompt);

#endif
