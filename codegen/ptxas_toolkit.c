/* A temporary folder for each run. */
#include "codegen/ptxas_toolkit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- finding ------------------------------------------------------------- */

bool toolkit_is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           access(path, X_OK) == 0;
}

static const char *in_folder(Ctx *ctx, const char *name, const char *folder,
                             size_t n)
{
    const char *path = arena_printf(ctx_arena(ctx), "%.*s/%s", n ? (int)n : 1,
                                    n ? folder : ".", name);
    return toolkit_is_program(path) ? path : NULL;
}

static const char *on_path(Ctx *ctx, const char *name)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        const char *found = in_folder(ctx, name, at, n);
        if (found)
            return found;
        at += n + (at[n] == ':');
    }
    return NULL;
}

const char *toolkit_find(Ctx *ctx, const char *name)
{
    const char *found = on_path(ctx, name), *home = getenv("CUDA_HOME");
    if (!found && home && *home) {
        const char *bin = arena_printf(ctx_arena(ctx), "%s/bin", home);
        found = in_folder(ctx, name, bin, strlen(bin));
    }
    if (!found)
        found = in_folder(ctx, name, "/usr/local/cuda/bin", 19);
    return found;
}

/* ---- running ------------------------------------------------------------- */

static bool write_file(const char *path, const char *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool ok = !n || fwrite(data, 1, n, f) == n;
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
 * one, then the program. */
static void run_child(const char *program, char *const *args,
                      const char *folder, int out)
{
    if (dup2(out, 1) >= 0 && dup2(out, 2) >= 0 && chdir(folder) == 0)
        execv(program, args);
    kill(getpid(), SIGKILL);
}

/* Its exit status, or -1 when it could not be run. */
static int run_in(const char *program, char *const *args, const char *folder,
                  StrBuf *said)
{
    int ends[2], status = 0;
    if (pipe(ends))
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_child(program, args, folder, ends[1]);
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

/* With its input there. */
static int run_with(Ctx *ctx, const ToolkitRun *run, const char *folder,
                    StrBuf *said, StrBuf *made, const char **why)
{
    Arena *arena = ctx_arena(ctx);
    const char *output = run->output;
    int status = run_in(absolute(ctx, run->program), run->args, folder, said);
    *why = "could not be run";
    if (status == 0 && output && made &&
        !read_file(arena_printf(arena, "%s/%s", folder, output), made)) {
        *why = arena_printf(arena, "left no %s", output);
        return -1;
    }
    return status;
}

int toolkit_run(Ctx *ctx, const ToolkitRun *run, StrBuf *said, StrBuf *made,
                const char **why)
{
    Arena *arena = ctx_arena(ctx);
    const char *tmp = getenv("TMPDIR");
    char *folder =
        arena_printf(arena, "%s/exo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        *why = arena_printf(arena, "finds no temporary folder '%s': %s", folder,
                            strerror(errno));
        return -1;
    }
    const char *input = arena_printf(arena, "%s/%s", folder, run->input);
    int status = -1;
    if (write_file(input, run->data, run->n))
        status = run_with(ctx, run, folder, said, made, why);
    else
        *why = arena_printf(arena, "cannot be given '%s': %s", input,
                            strerror(errno));
    unlink(input);
    if (run->output)
        unlink(arena_printf(arena, "%s/%s", folder, run->output));
    rmdir(folder);
    return status;
}
