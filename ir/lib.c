/* Libraries: their entries by name, folders and texts read into them. */
#include "ir/exo.h"
#include "ir/lib_entry.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

Lib *lib_child(Lib *parent, Ctx *ctx)
{
    Lib *lib = ARENA_NEW(ctx_arena(ctx), Lib);
    lib->ctx = ctx;
    lib->parent = parent;
    lib->is_file = true;
    return lib;
}

Lib *lib_new(Ctx *ctx)
{
    Lib *lib = lib_child(NULL, ctx);
    lib->is_file = false;
    return lib;
}

Ctx *lib_ctx(Lib *lib)
{
    return lib->ctx;
}

static void free_module(void *m)
{
    module_free(m);
}

Module *lib_module(Lib *lib)
{
    if (!lib->module) {
        lib->module = module_new(lib->ctx);
        lib->module->lib = lib;
        ctx_at_free(lib->ctx, free_module, lib->module);
    }
    return lib->module;
}

/* ---- names ------------------------------------------------------------- */

static size_t slot_of(const Lib *lib, AstDeclKind kind, const char *name)
{
    uint64_t h = hash_word(HASH_SEED, (uint64_t)(uintptr_t)name);
    size_t i = (h ^ h >> 29) & (lib->n_slots - 1);
    while (lib->slots[i] && (lib->slots[i]->name != name ||
                             (kind != AST_proc && lib->slots[i]->kind != kind)))
        i = (i + 1) & (lib->n_slots - 1);
    return i;
}

Entry *lib_find(const Lib *lib, AstDeclKind kind, const char *name)
{
    name = lib ? ctx_intern(lib->ctx, name) : NULL;
    for (; lib; lib = lib->parent) {
        Entry *e = lib->n_slots ? lib->slots[slot_of(lib, kind, name)] : NULL;
        if (e)
            return e;
    }
    return NULL;
}

static void grow(Lib *lib)
{
    Arena *arena = ctx_arena(lib->ctx);
    lib->n_slots = lib->n_slots ? 2 * lib->n_slots : 64;
    lib->slots = ARENA_ARRAY(arena, Entry *, lib->n_slots);
    for (size_t i = 0; i < lib->entries.len; i++) {
        Entry *e = lib->entries.data[i];
        lib->slots[slot_of(lib, e->kind, e->name)] = e;
    }
}

static bool add_entry(Lib *lib, Entry e, bool override)
{
    if (2 * (lib->entries.len + 1) > lib->n_slots)
        grow(lib);
    size_t i = slot_of(lib, e.kind, e.name);
    if (lib->slots[i] && !override) {
        Diag *d = diag_error(lib->ctx, e.decl->loc, "name",
                             "'%s' is defined "
                             "twice",
                             e.name);
        diag_note(lib->ctx, d, lib->slots[i]->decl->loc, "first here");
        return false;
    }
    if (lib->slots[i]) {
        *lib->slots[i] = e;
        return true;
    }
    Entry *new_entry = ARENA_NEW(ctx_arena(lib->ctx), Entry);
    *new_entry = e;
    lib->slots[i] = new_entry;
    VEC_PUSH(ctx_arena(lib->ctx), &lib->entries, new_entry);
    return true;
}

const AstClause *entry_clause(const AstDecl *d, const char *key,
                              const AstClause *after)
{
    const AstClause *c = after ? after->next : d->clauses;
    while (c && (!c->key || strcmp(c->key, key) != 0))
        c = c->next;
    return c;
}

/* ---- what was made ----------------------------------------------------- */

static size_t made_slot(const MadeTable *t, const void *key)
{
    uint64_t h = hash_word(HASH_SEED, (uint64_t)(uintptr_t)key);
    size_t i = (h ^ h >> 29) & (t->n_slots - 1);
    while (t->slots[i].key && t->slots[i].key != key)
        i = (i + 1) & (t->n_slots - 1);
    return i;
}

const void *made_find(const MadeTable *t, const void *key)
{
    return t->n_slots ? t->slots[made_slot(t, key)].thing : NULL;
}

void made_add(Lib *lib, MadeTable *t, const void *key, const void *thing)
{
    if (2 * (t->n + 1) > t->n_slots) {
        MadeTable old = *t;
        t->n_slots = old.n_slots ? 2 * old.n_slots : 32;
        t->slots = ARENA_ARRAY(ctx_arena(lib->ctx), Made, t->n_slots);
        for (size_t i = 0; i < old.n_slots; i++)
            if (old.slots[i].key)
                t->slots[made_slot(t, old.slots[i].key)] = old.slots[i];
    }
    t->slots[made_slot(t, key)] = (Made){ key, thing };
    t->n++;
}

/* ---- families ---------------------------------------------------------- */

/* A number that a pack may be as long as, or a word. */
static bool is_member_name(const Param *p)
{
    if (p->kind == PARAM_int)
        return p->i >= 0 && p->i <= 256;
    if (p->kind != PARAM_str || !*p->s)
        return false;
    return strspn(p->s, "abcdefghijklmnopqrstuvwxyz_0123456789") ==
           strlen(p->s);
}

/* The members of `rank n in 1..5` or `rank op in {'add', 'sub'}`. */
static bool family_ranks(Lib *lib, const AstDecl *d, Param *out)
{
    const AstClause *c = entry_clause(d, "rank", NULL);
    const AstExpr *e = c ? c->head : NULL;
    bool ok = e && e->kind == AST_binary && e->op == XOP_in &&
              e->args[0]->kind == AST_name && e->args[0]->name == d->var;
    if (ok) {
        Build b;
        Arena *arena = arena_new();
        build_init(&b, lib_module(lib), lib, arena);
        ok = build_const(&b, e->args[1], out) && out->kind == PARAM_tuple;
        for (unsigned i = 0; ok && i < out->n; i++)
            ok = is_member_name(&out->items[i]);
        if (ok)
            *out = *param_intern(lib->ctx, 1, out);
        arena_free(arena);
    }
    if (!ok) {
        Diag *e2 = diag_error(lib->ctx, d->loc, "instr",
                              "family '%s{%s}' "
                              "without its ranks",
                              d->name, d->var);
        diag_fix(lib->ctx, e2, "write rank %s in 1..5 as a clause", d->var);
    }
    return ok;
}

static bool add_family(Lib *lib, const AstDecl *d, Entry e, bool override)
{
    Param ranks;
    bool ok = family_ranks(lib, d, &ranks);
    e.is_member = true;
    for (unsigned i = 0; ok && i < ranks.n; i++) {
        StrBuf name = { 0 };
        e.member = ranks.items[i];
        if (e.member.kind == PARAM_int)
            strbuf_addf(&name, "%s%lld%s", d->name, (long long)e.member.i,
                        d->suffix);
        else
            strbuf_addf(&name, "%s%s%s", d->name, e.member.s, d->suffix);
        e.name = ctx_intern(lib->ctx, strbuf_text(&name));
        strbuf_free(&name);
        ok = add_entry(lib, e, override);
    }
    return ok;
}

bool lib_add_decl(Lib *lib, const AstDecl *d, bool imported, bool override)
{
    Entry e = { .name = d->name,
                .kind = d->kind,
                .decl = d,
                .home = lib,
                .imported = imported };
    return d->var ? add_family(lib, d, e, override)
                  : add_entry(lib, e, override);
}

/* ---- texts ------------------------------------------------------------- */

static void free_arena(void *arena)
{
    arena_free(arena);
}

bool lib_load_text(Lib *lib, uint32_t file, bool override)
{
    bool ok;
    Arena *arena = arena_new();
    ctx_at_free(lib->ctx, free_arena, arena);
    unsigned errors = ctx_error_count(lib->ctx);
    for (AstDecl *d = exo_syntax(lib->ctx, arena, file, &ok); d; d = d->next) {
        if (d->broken)
            continue;
        if (d->kind == AST_proc || d->kind == AST_import) {
            Diag *e = diag_error(lib->ctx, d->loc, "instr",
                                 "expected entries "
                                 "in a library, found a procedure or import");
            diag_fix(lib->ctx, e, "put it in a file that imports the library");
            continue;
        }
        lib_add_decl(lib, d, false, override);
    }
    return ok && ctx_error_count(lib->ctx) == errors;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool ends_in_exo(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && name[0] != '.' && strcmp(name + n - 4, ".exo") == 0;
}

bool lib_load_dir(Lib *lib, const char *dir)
{
    DIR *d = opendir(dir);
    if (!d) {
        diag_error(lib->ctx, (Loc){ 0 }, "file",
                   "cannot open the library "
                   "folder '%s'",
                   dir);
        return false;
    }
    Arena *arena = arena_new();
    VEC(char *) paths = { 0 };
    for (struct dirent *f = readdir(d); f; f = readdir(d))
        if (ends_in_exo(f->d_name))
            VEC_PUSH(arena, &paths,
                     arena_printf(arena, "%s/%s", dir, f->d_name));
    closedir(d);
    if (paths.len)
        qsort(paths.data, paths.len, sizeof *paths.data, by_name);
    bool ok = true;
    for (size_t i = 0; i < paths.len; i++) {
        uint32_t file = ctx_read_source(lib->ctx, paths.data[i]);
        ok = file && lib_load_text(lib, file, false) && ok;
    }
    arena_free(arena);
    return lib_check_entries(lib) && ok;
}

/* ---- listings ---------------------------------------------------------- */

static const char *kind_name(AstDeclKind kind)
{
    return kind == AST_instr    ? "instr"
           : kind == AST_memory ? "memory"
           : kind == AST_unit   ? "unit"
                                : "config";
}

void lib_list(const Lib *lib,
              void (*fn)(const char *kind, const char *name, void *user),
              void *user)
{
    for (; lib; lib = lib->parent)
        for (size_t i = 0; i < lib->entries.len; i++)
            fn(kind_name(lib->entries.data[i]->kind),
               lib->entries.data[i]->name, user);
}

/* One declaration's text, as written, without blanks at its lines' ends. */
static void add_text(StrBuf *out, const AstDecl *d)
{
    if (d->comment && strcmp(d->comment, " ") != 0) {
        const char *p = d->comment;
        while (*p) {
            size_t n = strcspn(p, "\n");
            strbuf_add(out, "# ");
            strbuf_addn(out, p, n);
            strbuf_addc(out, '\n');
            p += n + (p[n] != 0);
        }
    }
    if (d->imported && d->kind == AST_proc)
        strbuf_add(out, "@imported\n");
    const char *p = d->text, *end = d->text + d->len;
    while (p < end) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        const char *stop = line ? line : end;
        const char *next = line ? line + 1 : end;
        while (stop > p &&
               (stop[-1] == ' ' || stop[-1] == '\r' || stop[-1] == '\t'))
            stop--;
        strbuf_addn(out, p, (size_t)(stop - p));
        strbuf_addc(out, '\n');
        p = next;
    }
}

void lib_own_text(const Lib *lib, StrBuf *out)
{
    const AstDecl *last = NULL;
    if (!lib || !lib->is_file)
        return;
    lib_own_text(lib->parent, out);
    for (size_t i = 0; i < lib->entries.len; i++) {
        const AstDecl *d = lib->entries.data[i]->decl;
        if (d == last)
            continue;
        if (out->len)
            strbuf_addc(out, '\n');
        add_text(out, d);
        last = d;
    }
}

/* ---- configurations ---------------------------------------------------- */

ScalarType lib_config_field(const Lib *lib, const char *config,
                            const char *field)
{
    const Entry *e = lib_find(lib, AST_config, config);
    for (const AstParam *a = e ? e->decl->params : NULL; a; a = a->next)
        if (strcmp(a->name, field) == 0 && a->type->kind == AST_name)
            return scalar_type_from_name(a->type->name, strlen(a->type->name));
    return TY_none;
}
