/* Is an entry complete? Asked of every entry when its text is loaded, so that
 * a library with an entry that lacks a timeline or an access does not load. */
#include "ir/lib_entry.h"

#include <string.h>

static const char *const instr_clauses[] = { "where",  "unit",     "timeline",
                                             "access", "trailing", "body",
                                             "ptx",    "hook",     "rank",
                                             NULL };
static const char *const memory_clauses[] = {
    "where",      "family", "unit",   "mutate",      "scalar",     "alignment",
    "layout",     "packed", "map",    "slots",       "copies",     "elements",
    "quals",      "is",     "same",   "sync_exempt", "persistent", "barrier",
    "pre_arrive", "fills",  "rounds", NULL
};

static bool known(const char *const *words, const char *key)
{
    for (; *words; words++)
        if (strcmp(*words, key) == 0)
            return true;
    return false;
}

static bool check_clauses(Lib *lib, const AstDecl *d, const char *const *words)
{
    bool ok = true;
    for (const AstClause *c = d->clauses; c; c = c->next) {
        if (known(words, c->key))
            continue;
        diag_error(lib->ctx, c->loc, "instr", "'%s' has an unknown clause '%s'",
                   d->name, c->key);
        ok = false;
    }
    return ok;
}

static bool lacks(Lib *lib, const AstDecl *d, const char *what)
{
    Diag *e = diag_error(lib->ctx, d->loc, "instr",
                         "instr '%s' does not load: "
                         "it has no %s",
                         d->name, what);
    diag_fix(lib->ctx, e,
             "every entry states unit, timeline, body, and the "
             "access of each data parameter");
    return false;
}

/* The scalar control types need no access. */
static bool is_control_param(const AstParam *a)
{
    return a->type->kind == AST_name &&
           scalar_type_is_control(
               scalar_type_from_name(a->type->name, strlen(a->type->name)));
}

static bool has_access(const AstDecl *d, const char *param)
{
    const AstClause *c = entry_clause(d, "access", NULL);
    while (c && !(c->head && c->head->kind == AST_name &&
                  strcmp(c->head->name, param) == 0))
        c = entry_clause(d, "access", c);
    return c != NULL;
}

static const char *timeline_of(const AstDecl *d)
{
    const AstClause *c = entry_clause(d, "timeline", NULL);
    return c && c->head ? ast_callee(c->head) : NULL;
}

static bool check_timeline(Lib *lib, const AstDecl *d)
{
    const AstClause *c = entry_clause(d, "timeline", NULL);
    const char *name = timeline_of(d);
    const char *why = name ? lib_unsupported(name) : NULL;
    if (!c || (name && instr_timeline_known(name) && !why))
        return true;
    if (why)
        diag_error(lib->ctx, c->loc, "instr",
                   "instr '%s' does not load: instruction timeline '%s' is "
                   "not supported: %s",
                   d->name, name, why);
    else
        diag_error(lib->ctx, c->loc, "instr",
                   "%s: clause 'timeline' expects an instruction timeline",
                   d->name);
    return false;
}

/* Does an instruction of this timeline do its accesses in order, unless it says
 * otherwise? */
static bool is_in_order(const AstDecl *d)
{
    const char *name = timeline_of(d);
    return !name || strncmp(name, "cpu_", 4) == 0 ||
           strcmp(name, "cuda_in_order_instr") == 0;
}

static bool says_order(const AstClause *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        const char *word = ast_callee(c->values[i]);
        if (word && (strcmp(word, "in_order") == 0 ||
                     strcmp(word, "out_of_order") == 0))
            return true;
    }
    return false;
}

/* Accesses of an asynchronous instruction say whether they are in order. */
static bool check_order(Lib *lib, const AstDecl *d)
{
    bool ok = true;
    if (is_in_order(d))
        return true;
    for (const AstClause *c = entry_clause(d, "access", NULL); c;
         c = entry_clause(d, "access", c)) {
        if (says_order(c))
            continue;
        diag_error(lib->ctx, c->loc, "instr",
                   "instr '%s' does not load: an access of its timeline says "
                   "in_order or out_of_order",
                   d->name);
        ok = false;
    }
    return ok;
}

static bool check_instr(Lib *lib, const AstDecl *d)
{
    static const char *const needed[] = { "unit", "timeline", "body" };
    bool ok = check_clauses(lib, d, instr_clauses);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!entry_clause(d, needed[i], NULL))
            ok = lacks(lib, d, needed[i]);
    for (const AstParam *a = d->params; a; a = a->next)
        if (!is_control_param(a) && !has_access(d, a->name)) {
            StrBuf what = { 0 };
            strbuf_addf(&what, "access of '%s'", a->name);
            ok = lacks(lib, d, strbuf_text(&what));
            strbuf_free(&what);
        }
    if (!entry_clause(d, "ptx", NULL) && !entry_clause(d, "hook", NULL))
        ok = lacks(lib, d, "ptx and no hook");
    ok = check_timeline(lib, d) && ok;
    return check_order(lib, d) && ok;
}

static bool check_config(Lib *lib, const AstDecl *d)
{
    bool ok = true;
    for (const AstParam *a = d->params; a; a = a->next) {
        ScalarType t =
            a->type->kind == AST_name
                ? scalar_type_from_name(a->type->name, strlen(a->type->name))
                : TY_none;
        if (t == TY_none || t == TY_R) {
            diag_error(lib->ctx, a->loc, "type",
                       "field '%s.%s' expects a "
                       "scalar type",
                       d->name, a->name);
            ok = false;
        }
    }
    return ok;
}

static bool check_entry(Lib *lib, const Entry *e)
{
    const AstDecl *d = e->decl;
    if (e->kind == AST_instr)
        return check_instr(lib, d);
    if (e->kind == AST_config)
        return check_config(lib, d);
    if (e->kind == AST_unit && !d->tparams)
        return lib_unit(lib, d->loc,
                        unitref_get(lib->ctx, 1, e->name, 0, NULL)) != NULL;
    if (e->kind != AST_memory)
        return true;
    bool ok = check_clauses(lib, d, memory_clauses);
    if (ok && !d->tparams)
        ok = lib_mem(lib, d->loc, memref_get(lib->ctx, e->name, 0, NULL));
    return ok;
}

bool lib_check_entries(Lib *lib)
{
    bool ok = true;
    const AstDecl *last = NULL;
    for (size_t i = 0; i < lib->entries.len; i++) {
        const Entry *e = lib->entries.data[i];
        if (e->decl != last)
            ok = check_entry(lib, e) && ok;
        last = e->decl;
    }
    return ok;
}
