/* The assembler as a gate: finds ptxas, runs it on PTX and reads what it says.
 *
 * Called by exo-translate. Needs no LLVM. No shell is involved, and the
 * messages do not depend on where temporary files lie. */
#ifndef EXO_CODEGEN_PTXAS_H
#define EXO_CODEGEN_PTXAS_H

#include "ir/diag.h"

/* What ptxas says of one kernel. */
typedef struct PtxasKernel {
    const char *name;
    int64_t registers, barriers, smem; /* smem: static, bytes */
    int64_t stack, spill_stores, spill_loads;
} PtxasKernel;

/* A note with a code in C7500 .. C7599: what ptxas did to wgmma or setmaxnreg
 * that the program did not ask for. */
typedef struct PtxasNote {
    const char *code; /* "C7515" */
    const char *text; /* the whole line, without "ptxas info : " */
} PtxasNote;

typedef struct PtxasReport {
    VEC(PtxasKernel) kernels;
    VEC(PtxasNote) notes;
} PtxasReport;

/* The program: `chosen` (--ptxas), else EXO_PTXAS, else ptxas on PATH, in
 * CUDA_HOME/bin, in /usr/local/cuda/bin. NULL and an error that says where was
 * looked. In the Ctx's arena. */
const char *ptxas_find(Ctx *ctx, const char *chosen);

/* EXO_PTXAS or where else it is looked for; NULL without a word. */
const char *ptxas_look(Ctx *ctx);

/* Assembles the PTX for `arch`, appends the cubin (NULL: not wanted) and fills
 * the report (strings in the Ctx's arena). False and errors when ptxas cannot
 * be run or refuses; its messages are quoted. */
bool ptxas_run(Ctx *ctx, const char *ptxas, const char *arch, const char *ptx,
               size_t n, StrBuf *cubin, PtxasReport *out);

/* Reads ptxas's output; ptxas_run does that itself. For tests. */
void ptxas_parse(Ctx *ctx, const char *text, PtxasReport *out);

/* An error for each spill, stack frame, serialised wgmma and dropped
 * setmaxnreg, naming kernel and note; a warning for other C75xx notes. False
 * when there was an error. */
bool ptxas_gate(Ctx *ctx, const PtxasReport *report);

/* A program that shows what a cubin holds: EXO_CUOBJDUMP, else nvdisasm or
 * cuobjdump where ptxas is looked for. NULL where there is none. */
const char *disassembler_find(Ctx *ctx);
/* Appends the cubin's SASS as that program prints it; false and *why (in the
 * Ctx's arena) where it does not. */
bool disassemble(Ctx *ctx, const char *program, const char *cubin, size_t n,
                 StrBuf *sass, const char **why);

#endif
