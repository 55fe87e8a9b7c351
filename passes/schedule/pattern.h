/* Patterns that name statements and values in the text of a procedure.
 *
 * A pattern is a statement of .exo with wildcards; it is compared with the
 * syntax of each statement as it prints. `_` stands for any expression, as the
 * last argument or index for any number of them, and for a name.
 *
 *     for i in _         a loop, by its name; `i` alone also names it
 *     acc[_] += _        a reduction; acc = _ an assignment to any element
 *     x: _               an allocation
 *     if k < K, if _     by condition
 *     f(_)               a call, with or without a trailing barrier
 *     with CudaWarps(_)  a block of warps */
#ifndef EXO_PASSES_SCHEDULE_PATTERN_H
#define EXO_PASSES_SCHEDULE_PATTERN_H

#include "passes/schedule/schedule.h"

typedef VEC(Op *) OpVec;
typedef VEC(Value *) ValueVec;

/* The statements below `under` (NULL: of the procedure) that match, in order.
 * False after a report: the pattern is not one. */
bool pattern_find(Sched *s, const Op *under, Loc loc, const char *pattern,
                  OpVec *out);
/* The values of a statement whose text matches an expression pattern. */
bool pattern_values(Sched *s, const Op *stmt, Loc loc, const char *pattern,
                    ValueVec *out);
bool ast_matches(const AstExpr *pattern, const AstExpr *e);

#endif
