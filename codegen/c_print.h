/* Host code as a C library: a header and one C file.
 *
 * Prints every host.proc of a module as a function with the procedure's
 * parameters and a stream, around embedded kernels that it loads and launches
 * through the CUDA driver; and every ctl.proc, which has no device function, as
 * plain C. What the user of the library sees is docs/using-the-c-output.md.
 * Called by tools; knows neither LLVM nor CUDA. */
#ifndef EXO_CODEGEN_C_PRINT_H
#define EXO_CODEGEN_C_PRINT_H

#include "codegen/c_dispatch.h"
#include "ir/ir.h"

/* A PTX text or a cubin that holds one kernel, or all of them. */
typedef struct CImage {
    const char *kernel; /* NULL: every kernel that no other image names */
    const void *data;   /* stays the caller's */
    size_t size;        /* without a terminating zero */
    bool is_ptx;
} CImage;

typedef struct COptions {
    const char *stem; /* of the files' names: `gemm` for gemm.h and gemm.c */
    const char *arch; /* "sm_90a"; NULL: the kernels' attribute, else any */
    unsigned n_images;
    const CImage *images;
    /* A chooser among m's procedures, which are then its own, or NULL. */
    const Dispatch *dispatch;
} COptions;

/* Appends the header's text to `header` and the C file's to `source`. Interns
 * index expressions in m. The bytes depend on the module and the options only.
 * False and diagnostics when a name cannot be had in C, a kernel has no image,
 * or an op has no form in C. */
bool c_print_library(Ctx *ctx, const Module *m, const COptions *opt,
                     StrBuf *header, StrBuf *source);

#endif
