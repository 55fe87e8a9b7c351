/* The operators' functions, and what families of them share. */
#ifndef EXO_PASSES_SCHEDULE_OPS_H
#define EXO_PASSES_SCHEDULE_OPS_H

#include "passes/schedule/effects.h"
#include "passes/schedule/schedule.h"

#include <string.h>

#define SCHED_FN(fn) SchedFn fn;
/* loops.c */
SCHED_FN(sched_divide_loop)
SCHED_FN(sched_mult_loops)
SCHED_FN(sched_cut_loop)
SCHED_FN(sched_shift_loop)
SCHED_FN(sched_join_loops)
SCHED_FN(sched_unroll_loop)
SCHED_FN(sched_specialize)
/* order.c */
SCHED_FN(sched_reorder_loops)
SCHED_FN(sched_lift_scope)
SCHED_FN(sched_fission)
SCHED_FN(sched_autofission)
SCHED_FN(sched_fuse)
SCHED_FN(sched_remove_loop)
SCHED_FN(sched_add_loop)
SCHED_FN(sched_eliminate_dead_code)
SCHED_FN(sched_reorder_stmts)
#undef SCHED_FN

/* Are mode, unit and unrolling the same? */
bool loop_modes_equal(const Op *a, const Op *b);
/* The same statements, up to the names of what they define, with index
 * expressions equal where the facts hold? */
bool sched_blocks_equal(Sched *s, const Facts *f, const Block *a,
                        const Block *b);
/* Is something that first .. last define used behind last? */
bool sched_escapes(Sched *s, Op *first, Op *last);

#endif
