/* Functions of one f32 for the LLVM printer: see the table in llvm_math.c.
 * Internal to codegen/. */
#ifndef EXO_CODEGEN_LLVM_MATH_H
#define EXO_CODEGEN_LLVM_MATH_H

#include "codegen/llvm_emit.h"

LLVMValueRef math_exp(Emit *e, LLVMValueRef x);
LLVMValueRef math_exp2(Emit *e, LLVMValueRef x);
LLVMValueRef math_sigmoid(Emit *e, LLVMValueRef x);
LLVMValueRef math_log(Emit *e, LLVMValueRef x);
LLVMValueRef math_log2(Emit *e, LLVMValueRef x);
LLVMValueRef math_sin(Emit *e, LLVMValueRef x);

#endif
