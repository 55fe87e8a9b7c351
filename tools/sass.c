/* ptxas, then a disassembler. */
#include "tools/sass.h"

#include "codegen/ptxas.h"

bool sass_of_cubin(Ctx *ctx, const char *cubin, size_t n, StrBuf *out,
                   const char **why)
{
    const char *program = disassembler_find(ctx);
    *why = "no nvdisasm or cuobjdump is found";
    return program && disassemble(ctx, program, cubin, n, out, why);
}

bool sass_of_ptx(Ctx *ctx, const char *ptx, size_t n, StrBuf *out,
                 const char **why, bool *refused)
{
    StrBuf cubin = { 0 };
    PtxasReport report = { 0 };
    const char *ptxas = ptxas_look(ctx);
    *why = ptxas ? "ptxas refuses the PTX" : "no ptxas is found";
    bool taken =
        ptxas && ptxas_run(ctx, ptxas, "sm_90a", ptx, n, &cubin, &report);
    bool ok = taken && sass_of_cubin(ctx, cubin.data, cubin.len, out, why);
    *refused = ptxas && !taken;
    strbuf_free(&cubin);
    return ok;
}
