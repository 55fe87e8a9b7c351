/* What the text leaves out: result types that follow from the operands. The
 * parser fills them in, the printer leaves them out, by the same rule. */
#ifndef EXO_IR_EIR_TYPES_H
#define EXO_IR_EIR_TYPES_H

#include "ir/ir.h"

/* The type of result i that the operands imply, or NULL when it must be
 * written. Makes no assumption that op is well-formed. */
const Type *eir_implied_type(Ctx *ctx, const Op *op, unsigned i);
/* Extent d of a result whose type is implied. */
const Affine *eir_implied_extent(const Op *op, unsigned i, unsigned d);
/* The first operand that a region op carries: 2 for ctl.for. */
unsigned eir_first_carried(const Op *op);
/* How many variables the block of a loop begins with: of ctl.for 1, of
 * async.tasks one a task variable, and one where it counts rounds. */
unsigned eir_loop_vars(const Op *op);
/* The attribute that the text writes as @symbol before the operands, "callee"
 * or "kernel", or NULL. Such ops take operands of any kind. */
const char *eir_callee_key(OpCode code);

#endif
