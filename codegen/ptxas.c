/* Runs ptxas in a temporary folder of its own and reads its verbose output:
 *
 *   ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async ..
 *   ptxas info    : Compiling entry function 'k' for 'sm_90a'
 *   ptxas info    : Function properties for k
 *       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *   ptxas info    : Used 168 registers, used 1 barriers, 16 bytes smem, .. */
#include "codegen/ptxas.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const Loc nowhere;

/* ---- finding it ---------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           access(path, X_OK) == 0;
}

static const char *in_folder(Ctx *ctx, const char *folder, size_t n)
{
    Arena *arena = ctx_arena(ctx);
    const char *path =
        n ? arena_printf(arena, "%.*s/ptxas", (int)n, folder) : "./ptxas";
    return is_program(path) ? path : NULL;
}

static const char *on_path(Ctx *ctx)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        const char *found = in_folder(ctx, at, n);
        if (found)
            return found;
        at += n + (at[n] == ':');
    }
    return NULL;
}

const char *ptxas_find(Ctx *ctx, const char *chosen)
{
    const char *from = chosen ? "--ptxas" : "EXO_PTXAS";
    const char *path = chosen ? chosen : getenv("EXO_PTXAS");
    if (path && *path) {
        if (is_program(path))
            return path;
        diag_error(ctx, nowhere, "ptxas",
                   "%s names '%s', which is no program "
                   "that can be run",
                   from, path);
        return NULL;
    }
    const char *found = on_path(ctx), *home = getenv("CUDA_HOME");
    if (!found && home && *home) {
        const char *bin = arena_printf(ctx_arena(ctx), "%s/bin", home);
        found = in_folder(ctx, bin, strlen(bin));
    }
    if (!found)
        found = in_folder(ctx, "/usr/local/cuda/bin", 19);
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

static bool write_file(const char *path, const char *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool ok = fwrite(data, 1, n, f) == n;
    return fclose(f) == 0 && ok;
}

static bool read_file(const char *path, StrBuf *out)
{
    char part[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        strbuf_addn(out, part, n);
    bool ok = !ferror(f);
    fclose(f);
    return ok;
}

static void read_all(int fd, StrBuf *out)
{
    char part[4096];
    for (;;) {
        ssize_t n = read(fd, part, sizeof part);
        if (n > 0)
            strbuf_addn(out, part, (size_t)n);
        else if (n == 0 || errno != EINTR)
            return;
    }
}

/* In the child: both outputs to the pipe, the temporary folder as the current
 * one, then ptxas. */
static void run_child(const char *ptxas, const char *arch, const char *folder,
                      int out)
{
    char option[64];
    snprintf(option, sizeof option, "-arch=%s", arch);
    char *args[] = { (char *)"ptxas",
                     option,
                     (char *)"-v",
                     (char *)"kernel.ptx",
                     (char *)"-o",
                     (char *)"kernel.cubin",
                     NULL };
    if (dup2(out, 1) >= 0 && dup2(out, 2) >= 0 && chdir(folder) == 0)
        execv(ptxas, args);
    kill(getpid(), SIGKILL);
}

/* Exit status of ptxas, or -1 when it could not be run. */
static int run_in(const char *ptxas, const char *arch, const char *folder,
                  StrBuf *said)
{
    int ends[2], status = 0;
    if (pipe(ends))
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_child(ptxas, arch, folder, ends[1]);
    close(ends[1]);
    if (child > 0)
        read_all(ends[0], said);
    close(ends[0]);
    if (child < 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* An absolute path: the child changes its folder. */
static const char *absolute(Ctx *ctx, const char *path)
{
    char here[4096];
    if (*path == '/' || !getcwd(here, sizeof here))
        return path;
    return arena_printf(ctx_arena(ctx), "%s/%s", here, path);
}

static bool assemble(Ctx *ctx, const char *ptxas, const char *arch,
                     const char *folder, StrBuf *cubin, PtxasReport *out)
{
    StrBuf said = { 0 };
    int status = run_in(absolute(ctx, ptxas), arch, folder, &said);
    ptxas_parse(ctx, strbuf_text(&said), out);
    if (status != 0)
        diag_error(ctx, nowhere, "ptxas", "%s %s: %s", ptxas,
                   status < 0 ? "could not be run" : "refuses the PTX",
                   said.len ? said.data : "it says nothing");
    strbuf_free(&said);
    if (status != 0 || !cubin)
        return status == 0;
    const char *path = arena_printf(ctx_arena(ctx), "%s/kernel.cubin", folder);
    if (read_file(path, cubin))
        return true;
    diag_error(ctx, nowhere, "ptxas", "%s left no cubin", ptxas);
    return false;
}

bool ptxas_run(Ctx *ctx, const char *ptxas, const char *arch, const char *ptx,
               size_t n, StrBuf *cubin, PtxasReport *out)
{
    Arena *arena = ctx_arena(ctx);
    const char *tmp = getenv("TMPDIR");
    char *folder =
        arena_printf(arena, "%s/exo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        diag_error(ctx, nowhere, "ptxas", "no temporary folder '%s': %s",
                   folder, strerror(errno));
        return false;
    }
    const char *source = arena_printf(arena, "%s/kernel.ptx", folder);
    bool ok = write_file(source, ptx, n);
    if (ok)
        ok = assemble(ctx, ptxas, arch, folder, cubin, out);
    else
        diag_error(ctx, nowhere, "ptxas", "cannot write '%s': %s", source,
                   strerror(errno));
    unlink(source);
    unlink(arena_printf(arena, "%s/kernel.cubin", folder));
    rmdir(folder);
    return ok;
}
