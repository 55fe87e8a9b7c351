/* Scalar statements of host code in C. */
#include "codegen/c_emit.h"

bool c_scalar_op(CPrinter *p, const Op *op)
{
    return c_refuse(p, op, "'%s.%s' has no form in C",
                    op_info(op->code)->dialect, op_info(op->code)->name);
}

void c_scalar_print(CPrinter *p, StrBuf *out)
{
    (void)p, (void)out;
}
