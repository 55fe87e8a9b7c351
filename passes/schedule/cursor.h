/* Arguments of a step: texts to cursors and literals.
 *
 *     cursor = part { '/' part } [ '..' part ] { '.' move }
 *     part   = NAME | `pattern` [ '#' k ]
 *     move   = parent | next | prev | first | last | body | before | after
 *            | begin | end
 *
 * NAME is what an earlier step was named. `/` looks below the part before; a
 * pattern without # must match exactly one statement, below s->under where that
 * is given. `a..b` is the statements from a to b of one block; body all those
 * of a block. before and after make a gap; begin and end those of a block. */
#ifndef EXO_PASSES_SCHEDULE_CURSOR_H
#define EXO_PASSES_SCHEDULE_CURSOR_H

#include "passes/schedule/schedule.h"

typedef struct SchedName {
    const char *name;
    uint32_t sid;
    size_t from; /* the first edit that came after it */
} SchedName;
typedef VEC(SchedName) SchedNameVec;

/* The statement that has the name, NULL where none has it or it was erased. */
Op *cursor_named(Sched *s, const SchedNameVec *names, const char *name);
/* Resolves a cursor's text; false after a report. */
bool cursor_read(Sched *s, const SchedNameVec *names, Loc loc, const char *text,
                 Cursor *out);
/* Matches the arguments of a step against the operator's signature. given and
 * keys: n texts, keys[i] NULL for positional ones. *out has one a signature
 * entry. */
typedef struct SchedText {
    const char *key, *text;
    Loc loc;
} SchedText;
bool sched_args_read(Sched *s, const SchedNameVec *names, const SchedOp *op,
                     unsigned n, const SchedText *given, SchedArg *out);
/* The statement with this sid in the procedure, or NULL. */
Op *sched_by_sid(Sched *s, uint32_t sid);
/* The text with `..` of its ends taken off. */
const char *sched_unquote(Sched *s, const char *text);

enum { SCHED_MAX_ARGS = 12 };

#endif
