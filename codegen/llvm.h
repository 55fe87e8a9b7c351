/* Kernels as LLVM IR and as PTX, through LLVM's C API.
 *
 * An async.kernel is printed almost op for op: structured control becomes
 * branches and phis, fragments become scalar SSA values, rings a slot and a
 * parity, async ops inline PTX. Nothing is decided here that changes which
 * synchronisation happens or how often: loops that hold any are marked not to
 * unroll and each collective of the IR is one instruction of the PTX.
 *
 * Called by tools. Built only where LLVM is (EXO_WITH_LLVM). */
#ifndef EXO_CODEGEN_LLVM_H
#define EXO_CODEGEN_LLVM_H

#include "ir/ir.h"

typedef struct LlvmOptions {
    const char *arch;    /* NULL: "sm_90a" */
    const char *summary; /* one line for the PTX's head, or NULL */
    bool no_lines;       /* no .loc: line information of the source */
} LlvmOptions;

/* Prints the kernels (async.kernel ops of m) as one LLVM module, verifies it
 * and appends to `ir` its text before optimisation, to `ptx` the PTX after;
 * either may be NULL. Interns index expressions in m. The bytes depend on
 * m and options only. False and diagnostics when an op has no code here, or
 * LLVM refuses (its message is quoted). */
bool llvm_emit_kernels(Ctx *ctx, Module *m, unsigned n, Op *const *kernels,
                       const LlvmOptions *options, StrBuf *ir, StrBuf *ptx);

#endif
