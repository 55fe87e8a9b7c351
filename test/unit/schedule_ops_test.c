/* Every operator that schedulers of this language are known for is a row of
 * schedule.def, or a row that says what to write instead. */
#include "passes/schedule/schedule.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const gpu[] = {
    "set_loop_mode",
    "update_loop_mode",
    "parallelize_loop",
    "wrap_with_context",
    "insert_fence",
    "insert_arrive",
    "insert_await",
    "insert_barrier_alloc",
    "set_trailing_barrier_expr",
    "set_dim_size_annotation",
    "set_ring_guarded_by",
    "set_cache_hint",
    "add_if",
    "unsafe_remove_if",
    "set_memory",
    "set_precision",
    "replace",
};

static const char *const primitives[] = {
    "simplify",
    "rename",
    "make_instr",
    "insert_pass",
    "delete_pass",
    "insert_noop_call",
    "reorder_stmts",
    "commute_expr",
    "left_reassociate_expr",
    "rewrite_expr",
    "bind_expr",
    "extract_subproc",
    "inline",
    "replace",
    "call_eqv",
    "set_precision",
    "set_window",
    "set_memory",
    "bind_config",
    "write_config",
    "delete_config",
    "resize_dim",
    "expand_dim",
    "rearrange_dim",
    "divide_dim",
    "mult_dim",
    "unroll_buffer",
    "lift_alloc",
    "sink_alloc",
    "autolift_alloc",
    "delete_buffer",
    "reuse_buffer",
    "inline_window",
    "stage_mem",
    "divide_loop",
    "divide_with_recompute",
    "mult_loops",
    "join_loops",
    "cut_loop",
    "shift_loop",
    "reorder_loops",
    "lift_scope",
    "merge_writes",
    "split_write",
    "fold_into_reduce",
    "inline_assign",
    "lift_reduce_constant",
    "fission",
    "autofission",
    "fuse",
    "remove_loop",
    "add_loop",
    "unroll_loop",
    "eliminate_dead_code",
    "specialize",
    "add_unsafe_guard",
};

static const char *const helpers[] = {
    "repeat",  "replace_all", "replace_once", "call_site_mem_aware_replace",
    "lift_if",
};

/* Beyond the field's: adding an assertion, fixing a size. */
static const char *const more[] = {
    "add_assertion",
    "partial_eval",
};

static void expect_all(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cr_expect(sched_op_find(names[i]) || sched_other_find(names[i]),
                  "%s is neither offered nor explained", names[i]);
}

#define EXPECT_ALL(names) expect_all(names, sizeof(names) / sizeof *(names))

Test(schedule_ops, every_name_is_offered_or_explained)
{
    EXPECT_ALL(gpu);
    EXPECT_ALL(primitives);
    EXPECT_ALL(helpers);
    EXPECT_ALL(more);
}

Test(schedule_ops, every_row_is_whole_and_found_by_its_name)
{
    const SchedOp *op;
    for (unsigned i = 0; (op = sched_op_at(i)); i++) {
        cr_expect_eq(sched_op_find(op->name), op);
        cr_expect_null(sched_other_find(op->name));
        cr_expect(op->run && op->signature && op->doc && op->before &&
                      op->after,
                  "%s lacks a field", op->name);
    }
}

Test(schedule_ops, what_to_write_instead_is_offered)
{
    for (size_t i = 0; i < sizeof gpu / sizeof *gpu; i++) {
        const SchedOther *o = sched_other_find(gpu[i]);
        cr_expect(!o || sched_op_find(o->write), "%s", gpu[i]);
    }
    cr_expect(sched_op_find(sched_other_find("add_unsafe_guard")->write));
    cr_expect_null(sched_op_find("unsafe_remove_if"));
    cr_expect_null(sched_op_find("add_unsafe_guard"));
    cr_expect_null(sched_other_find("no_such_operator"));
}

Test(schedule_ops, the_list_shows_both)
{
    StrBuf out = { 0 };
    sched_list_print(&out);
    cr_expect(strstr(strbuf_text(&out), "divide_loop loop:loop int:by"));
    cr_expect(strstr(strbuf_text(&out), "unsafe_remove_if: write remove_if"));
    strbuf_free(&out);
}
