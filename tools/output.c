/* Output files: a temporary one in the target's folder, then rename. */
#include "tools/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool failed(Ctx *ctx, const char *path)
{
    diag_error(ctx, (Loc){ 0 }, "file", "cannot write '%s': %s", path,
               strerror(errno));
    return false;
}

static bool write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        data += done;
        n -= (size_t)done;
    }
    return true;
}

static bool write_in_place(Ctx *ctx, const char *path, const char *data,
                           size_t n)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return failed(ctx, path);
    bool ok = write_all(fd, data, n);
    if (close(fd) != 0 || !ok)
        return failed(ctx, path);
    return true;
}

/* The mode a new file gets, or the one the old file has. */
static mode_t target_mode(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return st.st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* The file that a link leads to, or the path itself. */
static const char *link_target(Ctx *ctx, const char *path)
{
    char *real = realpath(path, NULL);
    const char *kept = real ? arena_strdup(ctx_arena(ctx), real) : path;
    free(real);
    return kept;
}

static bool write_and_rename(Ctx *ctx, const char *path, const char *data,
                             size_t n)
{
    size_t len = strlen(path);
    char *beside = arena_alloc(ctx_arena(ctx), len + 8);
    memcpy(beside, path, len);
    memcpy(beside + len, ".XXXXXX", 8);
    int fd = mkstemp(beside);
    if (fd < 0)
        return failed(ctx, path);
    bool ok = write_all(fd, data, n) && fchmod(fd, target_mode(path)) == 0;
    ok &= close(fd) == 0;
    if (ok && rename(beside, path) == 0)
        return true;
    int why = errno;
    unlink(beside);
    errno = why;
    return failed(ctx, path);
}

bool output_write(Ctx *ctx, const char *path, const char *data, size_t n)
{
    struct stat st;
    if (!path || !strcmp(path, "-")) {
        fflush(stdout);
        return write_all(STDOUT_FILENO, data, n) ||
               failed(ctx, "standard output");
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return write_in_place(ctx, path, data, n);
    return write_and_rename(ctx, link_target(ctx, path), data, n);
}

bool output_flush(Ctx *ctx)
{
    bool before = ferror(stdout);
    return (fflush(stdout) == 0 && !before) || failed(ctx, "standard output");
}
