/* The order in which the clusters of a kernel take its tasks.
 *
 * The tasks of a device function are a box of iterations. They are numbered
 * with the last dimension fastest, unless the loop before the last has a group:
 * then that dimension is cut into bands of `group` iterations, the last one
 * perhaps shorter, and within a band it is the fastest one. Tasks that run at
 * once then touch few rows and few columns of what two operands share, which
 * keeps both in the L2 cache. The machine model asks here; code generation
 * makes the same division of the task's number (codegen/llvm_ctl.c). */
#ifndef EXO_IR_TASK_ORDER_H
#define EXO_IR_TASK_ORDER_H

#include <stdint.h>

/* The most task loops that a device function has. */
enum { MAX_TASK_LOOPS = 8 };

/* Where task number t of the box extent[0 .. rank) lies, 0 <= t < the product
 * of the extents; group is 0 where there is none. */
void task_order_at(unsigned rank, const int64_t *extent, int64_t group,
                   int64_t t, int64_t *at);

#endif
