/* The operators' functions, and what families of them share. */
#ifndef EXO_PASSES_SCHEDULE_OPS_H
#define EXO_PASSES_SCHEDULE_OPS_H

#include "passes/schedule/effects.h"
#include "passes/schedule/schedule.h"

#include <string.h>

#define SCHED_FN(fn) SchedFn fn;
/* loops.c */
SCHED_FN(sched_divide_loop)
SCHED_FN(sched_divide_with_recompute)
SCHED_FN(sched_mult_loops)
SCHED_FN(sched_cut_loop)
SCHED_FN(sched_shift_loop)
SCHED_FN(sched_extend_loop)
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
/* gpu.c */
SCHED_FN(sched_set_loop_mode)
SCHED_FN(sched_update_loop_mode)
SCHED_FN(sched_parallelize_loop)
SCHED_FN(sched_wrap_with_context)
SCHED_FN(sched_insert_fence)
SCHED_FN(sched_insert_arrive)
SCHED_FN(sched_insert_await)
SCHED_FN(sched_insert_barrier_alloc)
SCHED_FN(sched_insert_pass)
SCHED_FN(sched_insert_noop_call)
SCHED_FN(sched_delete_pass)
SCHED_FN(sched_set_trailing_barrier_expr)
SCHED_FN(sched_set_cache_hint)
SCHED_FN(sched_set_dim_size_annotation)
SCHED_FN(sched_set_ring_guarded_by)
SCHED_FN(sched_add_if)
/* remove_if.c, replace.c, make_instr.c */
SCHED_FN(sched_make_instr)
SCHED_FN(sched_remove_if)
SCHED_FN(sched_replace)
/* buffers.c */
SCHED_FN(sched_expand_dim)
SCHED_FN(sched_replicate_buffer)
SCHED_FN(sched_lift_alloc)
SCHED_FN(sched_autolift_alloc)
SCHED_FN(sched_sink_alloc)
SCHED_FN(sched_set_memory)
SCHED_FN(sched_resize_dim)
SCHED_FN(sched_divide_dim)
SCHED_FN(sched_mult_dim)
SCHED_FN(sched_rearrange_dim)
SCHED_FN(sched_unroll_buffer)
SCHED_FN(sched_delete_buffer)
SCHED_FN(sched_reuse_buffer)
SCHED_FN(sched_inline_window)
/* procs.c */
SCHED_FN(sched_rename)
SCHED_FN(sched_copy_proc)
SCHED_FN(sched_set_arg_memory)
SCHED_FN(sched_set_window)
SCHED_FN(sched_simplify)
SCHED_FN(sched_inline)
SCHED_FN(sched_call_eqv)
SCHED_FN(sched_add_assertion)
SCHED_FN(sched_partial_eval)
SCHED_FN(sched_extract_subproc)
SCHED_FN(sched_write_config)
SCHED_FN(sched_delete_config)
/* statements.c */
SCHED_FN(sched_commute_expr)
SCHED_FN(sched_left_reassociate_expr)
SCHED_FN(sched_rewrite_expr)
SCHED_FN(sched_merge_writes)
SCHED_FN(sched_split_write)
SCHED_FN(sched_fold_into_reduce)
SCHED_FN(sched_inline_assign)
SCHED_FN(sched_lift_reduce_constant)
/* stage.c */
SCHED_FN(sched_bind_expr)
SCHED_FN(sched_bind_config)
SCHED_FN(sched_set_precision)
SCHED_FN(sched_stage_window)
SCHED_FN(sched_stage_mem)
#undef SCHED_FN

/* Calls fn for each access by the name v (windows of it not looked through)
 * until it answers false. */
typedef bool SchedAccessFn(Sched *s, Op *op, Access *a, void *user);
bool sched_each_access(Sched *s, const Value *v, SchedAccessFn *fn, void *user);
/* resize_dim with fold: an index i of the dimension goes to slot (i - offset)
 * mod extent (fold.c). start: text of the window's start, or not given. */
bool sched_fold_dim(Sched *s, Op *alloc, unsigned dim, const SchedArg *extent,
                    const Affine *size, const Affine *offset,
                    const SchedArg *start);
/* What of "the element a lies within its base" does not follow from the facts:
 * true when all does. NULL beyond 64 bits. */
const Cond *sched_bounds_left(Sched *s, const Facts *f, const Access *a);
/* Puts each element of a tensor map that is read or written under the condition
 * that it lies in the tensor, with zero read elsewhere (inline_map.c). */
bool sched_guard_map(Sched *s, const Value *map, Loc loc);
/* Are mode, unit and unrolling the same? */
bool loop_modes_equal(const Op *a, const Op *b);
/* The same statements, up to the names of what they define, with index
 * expressions equal where the facts hold? */
bool sched_blocks_equal(Sched *s, const Facts *f, const Block *a,
                        const Block *b);
/* Do two procedures have equal parameters and bodies? */
bool sched_procs_equal(Sched *s, Op *a, Op *b);
/* Takes out the ops of a statement's value run that nothing uses. */
void sched_drop_unused(Sched *s, Op *stmt);
/* Does nothing in the procedure, which is not called, read Config.field? Else
 * reports. */
bool sched_config_unread(Sched *s, const char *field, Loc loc);
/* Is the procedure called nowhere in the module, so that its interface may
 * change? Else reports. */
bool sched_not_called(Sched *s, Loc loc);
/* Notes that the procedure now equals what it was but for Config.field. */
void sched_config_differs(Sched *s, const char *field);
/* Is something that first .. last define used behind last? */
bool sched_escapes(Sched *s, Op *first, Op *last);

#endif
