/* Programs of the CUDA toolkit: where they are, running them. No shell is
 * involved. Internal to codegen/. */
#ifndef EXO_CODEGEN_PTXAS_TOOLKIT_H
#define EXO_CODEGEN_PTXAS_TOOLKIT_H

#include "ir/diag.h"

bool toolkit_is_program(const char *path);
/* `name` on PATH, in CUDA_HOME/bin, in /usr/local/cuda/bin, or NULL. In the
 * Ctx's arena. */
const char *toolkit_find(Ctx *ctx, const char *name);

/* Runs program in a new temporary folder in which `input` is a file of these n
 * bytes, and reads the file `output` that it leaves there (NULL: none) into
 * made (NULL: not wanted). args: as execv takes them. `said` gets both of its
 * output streams. Its exit status; -1 and *why when it could not be run or left
 * no output. */
typedef struct ToolkitRun {
    const char *program;
    char *const *args;
    const char *input, *data;
    size_t n;
    const char *output;
} ToolkitRun;
int toolkit_run(Ctx *ctx, const ToolkitRun *run, StrBuf *said, StrBuf *made,
                const char **why);

#endif
