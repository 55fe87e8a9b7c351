/* Reading one .exo file: its syntax, its imports and entries, its procedures.
 */
#include "ir/exo.h"

#include "ir/exo_build.h"
#include "ir/lib_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One file's reading. Declarations of imported files come first. */
typedef struct Reading {
    Ctx *ctx;
    Arena *arena;
    const ExoOptions *opt;
    VEC(AstDecl *) decls;
    VEC(const char *) imported; /* real paths, so that each is read once */
    VEC(const char *) open; /* of the file that is read, and who imports it */
    Op **procs;             /* hash table by interned name */
    size_t n_slots;
    bool ok;
} Reading;

/* ---- imports ----------------------------------------------------------- */

static bool readable(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f)
        fclose(f);
    return f != NULL;
}

/* The path of an imported file: beside the importing one, then in the folders.
 */
static const char *find_import(Reading *r, uint32_t file, const char *name)
{
    const char *from = ctx_source_name(r->ctx, file);
    const char *slash = strrchr(from, '/');
    const char *path = name;
    if (*name != '/' && slash)
        path =
            arena_printf(r->arena, "%.*s/%s", (int)(slash - from), from, name);
    if (readable(path) || *name == '/')
        return readable(path) ? path : NULL;
    for (unsigned i = 0; r->opt && i < r->opt->n_import_dirs; i++) {
        path = arena_printf(r->arena, "%s/%s", r->opt->import_dirs[i], name);
        if (readable(path))
            return path;
    }
    return NULL;
}

static const char *real_path(Reading *r, const char *path)
{
    char *real = realpath(path, NULL);
    const char *kept = arena_strdup(r->arena, real ? real : path);
    free(real);
    return kept;
}

static void read_file(Reading *r, uint32_t file, bool imported);

/* Is the file one that is being read? An error then. */
static bool is_cycle(Reading *r, const AstDecl *d, const char *real)
{
    size_t i = 0;
    while (i < r->open.len && strcmp(r->open.data[i], real) != 0)
        i++;
    if (i == r->open.len)
        return false;
    Diag *e = diag_error(r->ctx, d->loc, "import",
                         i + 1 == r->open.len
                             ? "'%s' imports itself"
                             : "'%s' imports itself, through this file",
                         d->name);
    diag_fix(r->ctx, e, "put what both need into a file of its own");
    r->ok = false;
    return true;
}

static void read_import(Reading *r, const AstDecl *d)
{
    const char *path = find_import(r, d->loc.file, d->name);
    if (!path) {
        Diag *e =
            diag_error(r->ctx, d->loc, "import", "cannot find '%s'", d->name);
        diag_note(r->ctx, e, (Loc){ 0 },
                  "looked in the file's own folder and "
                  "%u others",
                  r->opt ? r->opt->n_import_dirs : 0);
        diag_fix(r->ctx, e, "give its folder with -I or EXO_PATH");
        r->ok = false;
        return;
    }
    const char *real = real_path(r, path);
    if (is_cycle(r, d, real))
        return;
    for (size_t i = 0; i < r->imported.len; i++)
        if (strcmp(r->imported.data[i], real) == 0)
            return;
    VEC_PUSH(r->arena, &r->imported, real);
    uint32_t file = ctx_read_source(r->ctx, path);
    if (file)
        read_file(r, file, true);
    else
        r->ok = false;
}

static void read_file(Reading *r, uint32_t file, bool imported)
{
    bool ok;
    VEC_PUSH(r->arena, &r->open, real_path(r, ctx_source_name(r->ctx, file)));
    AstDecl *d = exo_syntax(r->ctx, r->arena, file, &ok);
    r->ok &= ok;
    for (; d; d = d->next) {
        d->imported |= imported;
        if (d->kind == AST_import && !d->broken)
            read_import(r, d);
        else if (!d->broken)
            VEC_PUSH(r->arena, &r->decls, d);
    }
    r->open.len--;
}

/* ---- procedures -------------------------------------------------------- */

static size_t proc_slot(const Reading *r, const char *name)
{
    uint64_t h = hash_word(HASH_SEED, (uint64_t)(uintptr_t)name);
    size_t i = (h ^ h >> 29) & (r->n_slots - 1);
    while (r->procs[i] && op_attr_str(r->procs[i], "name", NULL) != name)
        i = (i + 1) & (r->n_slots - 1);
    return i;
}

static Op *find_proc(Build *b, const char *name)
{
    Reading *r = b->user;
    return r->procs[proc_slot(r, name)];
}

static void build_procs(Reading *r, Build *b)
{
    for (r->n_slots = 16; r->n_slots < 2 * r->decls.len; r->n_slots *= 2)
        ;
    r->procs = ARENA_ARRAY(r->arena, Op *, r->n_slots);
    b->proc = find_proc;
    b->user = r;
    for (size_t i = 0; i < r->decls.len; i++) {
        const AstDecl *d = r->decls.data[i];
        if (d->kind != AST_proc)
            continue;
        if (find_proc(b, d->name)) {
            build_error(b, d->loc, "name", "procedure '%s' is defined twice",
                        d->name);
            continue;
        }
        Op *op = build_proc(b, d->name, d->loc, d->params, d->body);
        op->comment = d->comment;
        if (d->imported)
            op_set_bool(b->m, op, "imported", true);
        r->procs[proc_slot(r, d->name)] = op;
    }
}

/* ---- the file ---------------------------------------------------------- */

static void free_arena(void *arena)
{
    arena_free(arena);
}

/* The library on top of lib when the file has entries of its own, whose syntax
 * then lives on. */
static Lib *own_entries(Reading *r, Lib *lib)
{
    Lib *own = NULL;
    for (size_t i = 0; i < r->decls.len; i++) {
        const AstDecl *d = r->decls.data[i];
        if (d->kind == AST_proc)
            continue;
        if (!own) {
            own = lib_child(lib, r->ctx);
            ctx_at_free(r->ctx, free_arena, r->arena);
        }
        r->ok &= lib_add_decl(own, d, d->imported, false);
    }
    if (own && r->ok)
        r->ok = lib_check_entries(own);
    return own;
}

Module *exo_parse(Ctx *ctx, uint32_t file, Lib *lib, const ExoOptions *opt)
{
    Reading r = { .ctx = ctx, .arena = arena_new(), .opt = opt, .ok = true };
    unsigned errors = ctx_error_count(ctx);
    Build b;
    read_file(&r, file, false);
    Lib *own = own_entries(&r, lib);
    Module *m = module_new(ctx);
    m->lib = own ? own : lib;
    build_init(&b, m, m->lib, r.arena);
    build_procs(&r, &b);
    bool ok = r.ok && !b.failed && ctx_error_count(ctx) == errors;
    if (!own)
        arena_free(r.arena);
    if (ok)
        return m;
    module_free(m);
    return NULL;
}
