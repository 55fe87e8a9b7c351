/* Runs ptxas in a temporary folder of its own and reads its verbose output:
 *
 *   ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async ..
 *   ptxas info    : Compiling entry function 'k' for 'sm_90a'
 *   ptxas info    : Function properties for k
 *       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *   ptxas info    : Used 168 registers, used 1 barriers, 16 bytes smem, .. */
#include "codegen/ptxas.h"

#include "codegen/ptxas_toolkit.h"

#include <stdlib.h>
#include <string.h>

static const Loc nowhere;

/* ---- finding it ---------------------------------------------------------- */

const char *ptxas_look(Ctx *ctx)
{
    const char *named = getenv("EXO_PTXAS");
    if (named && *named)
        return toolkit_is_program(named) ? named : NULL;
    return toolkit_find(ctx, "ptxas");
}

const char *ptxas_find(Ctx *ctx, const char *chosen)
{
    const char *from = chosen ? "--ptxas" : "EXO_PTXAS";
    const char *path = chosen ? chosen : getenv("EXO_PTXAS");
    if (path && *path) {
        if (toolkit_is_program(path))
            return path;
        diag_error(ctx, nowhere, "ptxas",
                   "%s names '%s', which is no program "
                   "that can be run",
                   from, path);
        return NULL;
    }
    const char *found = toolkit_find(ctx, "ptxas");
    if (!found)
        diag_fix(ctx,
                 diag_error(ctx, nowhere, "ptxas",
                            "no ptxas on PATH, in CUDA_HOME/bin or in "
                            "/usr/local/cuda/bin"),
                 "install the CUDA toolkit, or name the program with --ptxas "
                 "or EXO_PTXAS");
    return found;
}

/* ---- reading what it says ------------------------------------------------ */

/* The number before `word` in the line, or `otherwise`: "16 bytes smem". */
static int64_t number_before(const char *line, const char *word,
                             int64_t otherwise)
{
    const char *at = strstr(line, word);
    if (!at)
        return otherwise;
    while (at > line && at[-1] == ' ')
        at--;
    const char *from = at;
    while (from > line && from[-1] >= '0' && from[-1] <= '9')
        from--;
    return from == at ? otherwise : strtoll(from, NULL, 10);
}

static PtxasKernel *kernel_named(Ctx *ctx, PtxasReport *out, const char *name,
                                 size_t n)
{
    for (size_t i = 0; i < out->kernels.len; i++)
        if (strlen(out->kernels.data[i].name) == n &&
            !strncmp(out->kernels.data[i].name, name, n))
            return &out->kernels.data[i];
    PtxasKernel k = { .name = arena_strndup(ctx_arena(ctx), name, n) };
    VEC_PUSH(ctx_arena(ctx), &out->kernels, k);
    return &out->kernels.data[out->kernels.len - 1];
}

static void read_note(Ctx *ctx, const char *line, PtxasReport *out)
{
    const char *at = strstr(line, "(C75");
    if (!at || strlen(at) < 7 || at[6] != ')')
        return;
    PtxasNote note = { arena_strndup(ctx_arena(ctx), at + 1, 5),
                       arena_strdup(ctx_arena(ctx), at) };
    VEC_PUSH(ctx_arena(ctx), &out->notes, note);
}

/* One line; *current is the kernel that the lines are about. */
static void read_line(Ctx *ctx, const char *line, const char **current,
                      PtxasReport *out)
{
    static const char compiling[] = "Compiling entry function '";
    static const char properties[] = "Function properties for ";
    const char *at = strstr(line, compiling);
    if (at) {
        at += sizeof compiling - 1;
        *current = kernel_named(ctx, out, at, strcspn(at, "'"))->name;
    } else if ((at = strstr(line, properties))) {
        at += sizeof properties - 1;
        *current = kernel_named(ctx, out, at, strcspn(at, " \r"))->name;
    }
    read_note(ctx, line, out);
    if (!*current)
        return;
    PtxasKernel *k = kernel_named(ctx, out, *current, strlen(*current));
    k->stack = number_before(line, "bytes stack frame", k->stack);
    k->spill_stores =
        number_before(line, "bytes spill stores", k->spill_stores);
    k->spill_loads = number_before(line, "bytes spill loads", k->spill_loads);
    k->registers = number_before(line, "registers", k->registers);
    k->barriers = number_before(line, "barriers", k->barriers);
    k->smem = number_before(line, "bytes smem", k->smem);
}

void ptxas_parse(Ctx *ctx, const char *text, PtxasReport *out)
{
    const char *current = NULL;
    Arena *scratch = arena_new();
    while (*text) {
        size_t n = strcspn(text, "\n");
        read_line(ctx, arena_strndup(scratch, text, n), &current, out);
        text += n + (text[n] == '\n');
    }
    arena_free(scratch);
}

/* ---- the gate ------------------------------------------------------------ */

/* C7508 drops setmaxnreg; C7510 .. C7519 serialise wgmma, for one reason or
 * another. */
static bool is_fatal_note(const PtxasNote *note)
{
    return !strcmp(note->code, "C7508") || !strncmp(note->code, "C751", 4) ||
           strstr(note->text, "serialized");
}

bool ptxas_gate(Ctx *ctx, const PtxasReport *report)
{
    bool ok = true;
    for (size_t i = 0; i < report->kernels.len; i++) {
        const PtxasKernel *k = &report->kernels.data[i];
        if (!k->stack && !k->spill_stores && !k->spill_loads)
            continue;
        Diag *d = diag_error(
            ctx, nowhere, "gate",
            "kernel '%s' does not fit its registers: "
            "%lld bytes of stack, %lld stored and %lld loaded by spills",
            k->name, (long long)k->stack, (long long)k->spill_stores,
            (long long)k->spill_loads);
        diag_fix(ctx, d, "give its warps more registers, or less to hold");
        ok = false;
    }
    for (size_t i = 0; i < report->notes.len; i++) {
        const PtxasNote *note = &report->notes.data[i];
        if (!is_fatal_note(note)) {
            diag_warning(ctx, nowhere, "gate", "ptxas notes: %s", note->text);
            continue;
        }
        bool drops = !strcmp(note->code, "C7508");
        diag_error(ctx, nowhere, "gate", "ptxas %s: %s",
                   drops ? "ignores setmaxnreg" : "serialises wgmma",
                   note->text);
        ok = false;
    }
    return ok;
}

/* ---- running it ---------------------------------------------------------- */

bool ptxas_run(Ctx *ctx, const char *ptxas, const char *arch, const char *ptx,
               size_t n, StrBuf *cubin, PtxasReport *out)
{
    char *args[] = { (char *)"ptxas",
                     arena_printf(ctx_arena(ctx), "-arch=%s", arch),
                     (char *)"-v",
                     (char *)"kernel.ptx",
                     (char *)"-o",
                     (char *)"kernel.cubin",
                     NULL };
    ToolkitRun run = { .program = ptxas,
                       .args = args,
                       .input = "kernel.ptx",
                       .data = ptx,
                       .n = n,
                       .output = "kernel.cubin" };
    StrBuf said = { 0 };
    const char *why = NULL;
    int status = toolkit_run(ctx, &run, &said, cubin, &why);
    ptxas_parse(ctx, strbuf_text(&said), out);
    if (status)
        diag_error(ctx, nowhere, "ptxas", "%s %s: %s", ptxas,
                   status < 0 ? why : "refuses the PTX",
                   said.len ? said.data : "it says nothing");
    strbuf_free(&said);
    return status == 0;
}

/* ---- reading what it made ------------------------------------------------ */

const char *disassembler_find(Ctx *ctx)
{
    static const char *const names[] = { "nvdisasm", "cuobjdump" };
    const char *chosen = getenv("EXO_CUOBJDUMP");
    if (chosen && *chosen)
        return toolkit_is_program(chosen) ? chosen : NULL;
    const char *found = NULL;
    for (size_t i = 0; i < 2 && !found; i++)
        found = toolkit_find(ctx, names[i]);
    return found;
}

bool disassemble(Ctx *ctx, const char *program, const char *cubin, size_t n,
                 StrBuf *sass, const char **why)
{
    const char *name = strrchr(program, '/');
    bool is_dump = strstr(name ? name : program, "cuobjdump") != NULL;
    char *args[] = { (char *)(is_dump ? "cuobjdump" : "nvdisasm"),
                     (char *)(is_dump ? "-sass" : "-c"), (char *)"kernel.cubin",
                     NULL };
    ToolkitRun run = { .program = program,
                       .args = args,
                       .input = "kernel.cubin",
                       .data = cubin,
                       .n = n };
    int status = toolkit_run(ctx, &run, sass, NULL, why);
    if (status > 0)
        *why = arena_printf(ctx_arena(ctx), "%s refuses the cubin", program);
    else if (status < 0)
        *why = arena_printf(ctx_arena(ctx), "%s %s", program, *why);
    return status == 0;
}
