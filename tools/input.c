/* Libraries, files and imports, by the paths that docs/tools.md states. */
#include "tools/input.h"

#include "ir/eir.h"
#include "ir/exo.h"
#include "ir/lib_entry.h"
#include "ir/wellformed.h"
#include "tools/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef VEC(const char *) PathVec;

/* ---- folders ------------------------------------------------------------- */

/* The path of the running program; argv[0] where the system does not say. */
static const char *program_path(Ctx *ctx, const Options *o)
{
    enum { ROOM = 4096 };
    char *path = arena_alloc(ctx_arena(ctx), ROOM);
    ssize_t n = readlink("/proc/self/exe", path, ROOM - 1);
    return n > 0 ? path : o->program;
}

const char *input_share_dir(Ctx *ctx, const Options *o)
{
    const char *path = program_path(ctx, o), *slash = strrchr(path, '/');
    if (!slash)
        return "../share/exo";
    return arena_printf(ctx_arena(ctx), "%.*s/../share/exo",
                        (int)(slash - path), path);
}

static void add_env_paths(Ctx *ctx, PathVec *out)
{
    const char *at = getenv("EXO_PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        if (n)
            VEC_PUSH(ctx_arena(ctx), out, arena_strndup(ctx_arena(ctx), at, n));
        at += n + (at[n] == ':');
    }
}

/* -I, then EXO_PATH. */
static PathVec import_dirs(Ctx *ctx, const Options *o)
{
    PathVec dirs = { 0 };
    const char *dir;
    for (unsigned i = 0; (dir = options_nth(o, "-I", i)); i++)
        VEC_PUSH(ctx_arena(ctx), &dirs, dir);
    add_env_paths(ctx, &dirs);
    return dirs;
}

Lib *input_library(Ctx *ctx, const Options *o)
{
    Lib *lib = lib_new(ctx);
    const char *dir =
        arena_printf(ctx_arena(ctx), "%s/lib", input_share_dir(ctx, o));
    return lib_load_dir(lib, dir) ? lib : NULL;
}

bool input_is_exo(const Options *o, const char *path)
{
    const char *language = options_value(o, "--input", NULL);
    if (language)
        return !strcmp(language, "exo");
    size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".exo");
}

/* ---- imports of .eir ----------------------------------------------------- */

static bool readable(const char *path)
{
    return access(path, R_OK) == 0;
}

/* Beside the importing file, then in the folders; NULL when nowhere. */
static const char *find_import(Ctx *ctx, const PathVec *dirs, uint32_t file,
                               const char *name)
{
    Arena *a = ctx_arena(ctx);
    const char *from = ctx_source_name(ctx, file);
    const char *slash = strrchr(from, '/');
    const char *path = name;
    if (*name != '/' && slash)
        path = arena_printf(a, "%.*s/%s", (int)(slash - from), from, name);
    if (readable(path))
        return path;
    for (size_t i = 0; i < dirs->len && *name != '/'; i++) {
        path = arena_printf(a, "%s/%s", dirs->data[i], name);
        if (readable(path))
            return path;
    }
    return NULL;
}

static bool load_import(Ctx *ctx, const PathVec *dirs, uint32_t file, Module *m,
                        const char *name)
{
    const char *path = find_import(ctx, dirs, file, name);
    if (!path) {
        Diag *d = diag_error(ctx, (Loc){ file, 1, 1 }, "import",
                             "cannot find '%s'", name);
        diag_fix(ctx, d, "give its folder with -I or EXO_PATH");
        return false;
    }
    uint32_t text = ctx_read_source(ctx, path);
    return text && lib_load_text(m->lib, text, false);
}

/* Puts the entries of imported files into the module's own library, with which
 * they are printed: the import lines have then done their work. */
static bool load_imports(Ctx *ctx, const Options *o, uint32_t file, Module *m,
                         Lib *lib)
{
    PathVec dirs = import_dirs(ctx, o);
    bool ok = true;
    if (m->n_imports && m->lib == lib)
        m->lib = lib_child(lib, ctx);
    for (unsigned i = 0; i < m->n_imports; i++)
        ok &= load_import(ctx, &dirs, file, m, m->imports[i]);
    m->n_imports = 0;
    return ok;
}

/* ---- modules ------------------------------------------------------------- */

static Module *read_eir(Ctx *ctx, const Options *o, uint32_t file, Lib *lib)
{
    Module *m = eir_parse(ctx, file, lib);
    if (!m || load_imports(ctx, o, file, m, lib))
        return m;
    module_free(m);
    return NULL;
}

static Module *read_exo(Ctx *ctx, const Options *o, uint32_t file, Lib *lib)
{
    PathVec dirs = import_dirs(ctx, o);
    ExoOptions options = { .import_dirs = dirs.data,
                           .n_import_dirs = (unsigned)dirs.len };
    return exo_parse(ctx, file, lib, &options);
}

Module *input_module(Ctx *ctx, const Options *o, uint32_t file, bool is_exo,
                     Lib *lib)
{
    Module *m =
        is_exo ? read_exo(ctx, o, file, lib) : read_eir(ctx, o, file, lib);
    if (!m || (module_wellformed(m, NULL) && tool_schedule(ctx, o, &m)))
        return m;
    module_free(m);
    return NULL;
}

Module *input_read(Ctx *ctx, const Options *o, const char *path)
{
    Lib *lib = input_library(ctx, o);
    if (!lib)
        return NULL;
    uint32_t file = ctx_read_source(ctx, path);
    if (!file)
        return NULL;
    return input_module(ctx, o, file, input_is_exo(o, path), lib);
}

bool proc_is_public(const Op *op)
{
    return op->code == OP_ctl_proc && *op_attr_str(op, "name", "_") != '_' &&
           !op_attr_int(op, "imported", 0);
}
