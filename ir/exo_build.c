/* What a build stands on: names in scope, errors, memories and units by name.
 *
 * A name's hash slot holds its innermost binding; closing a scope puts the
 * outer one back. */
#include "ir/exo_build.h"

#include <string.h>

void build_init(Build *b, Module *m, Lib *lib, Arena *arena)
{
    *b = (Build){ .ctx = m->ctx,
                  .m = m,
                  .x = m->exprs,
                  .lib = lib,
                  .arena = arena,
                  .block = m->body };
}

/* ---- names ------------------------------------------------------------- */

static size_t slot_of(const Build *b, const char *name)
{
    uint64_t h = hash_word(HASH_SEED, (uint64_t)(uintptr_t)name);
    h ^= h >> 29;
    size_t i = h & (b->n_slots - 1);
    while (b->slots[i] && b->slots[i]->name != name)
        i = (i + 1) & (b->n_slots - 1);
    return i;
}

static void grow_names(Build *b)
{
    size_t n = b->n_slots;
    Binding **old = b->slots;
    b->n_slots = n ? 2 * n : 64;
    b->slots = ARENA_ARRAY(b->arena, Binding *, b->n_slots);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            b->slots[slot_of(b, old[i]->name)] = old[i];
}

Binding *build_bind(Build *b, const char *name, Loc loc, BindKind kind)
{
    if (2 * (b->n_names + 1) > b->n_slots)
        grow_names(b);
    Binding *e = ARENA_NEW(b->arena, Binding);
    size_t i = slot_of(b, name);
    *e = (Binding){
        .kind = kind, .name = name, .loc = loc, .outer = b->slots[i]
    };
    b->n_names += !b->slots[i];
    b->slots[i] = e;
    VEC_PUSH(b->arena, &b->live, e);
    return e;
}

size_t build_mark(const Build *b)
{
    return b->live.len;
}

/* A closed name keeps its slot, with an unbound entry, so that probing works.
 */
void build_close(Build *b, size_t mark)
{
    while (b->live.len > mark) {
        Binding *e = b->live.data[--b->live.len];
        if (e->outer)
            b->slots[slot_of(b, e->name)] = e->outer;
        else
            e->kind = BIND_none;
    }
}

Binding *build_find(Build *b, const char *name)
{
    if (!b->n_slots)
        return NULL;
    Binding *e = b->slots[slot_of(b, name)];
    return e && e->kind != BIND_none ? e : NULL;
}

void build_bind_param(Build *b, const char *name, const Param *value)
{
    Binding *e =
        build_bind(b, ctx_intern(b->ctx, name), (Loc){ 0 }, BIND_param);
    e->param = *value;
    e->param.name = NULL;
}

Loc build_place(const Build *b, Loc loc)
{
    return b->wanted.line && b->wanted.file != loc.file ? b->wanted : loc;
}

Diag *build_error(Build *b, Loc loc, const char *code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *message = arena_vprintf(b->arena, fmt, ap);
    va_end(ap);
    b->failed = true;
    Loc place = build_place(b, loc);
    Diag *d = diag_error(b->ctx, place, code, "%s", message);
    if (place.file != loc.file)
        diag_note(b->ctx, d, loc, "found in this entry");
    else if (b->wanted.line)
        diag_note(b->ctx, d, b->wanted, "wanted here");
    return d;
}

const char *ast_callee(const AstExpr *e)
{
    if (e->kind == AST_call)
        e = e->args[0];
    return e->kind == AST_name ? e->name : NULL;
}

/* ---- memories and units ------------------------------------------------ */

/* The arguments of NAME(..) as literals, keywords kept as their names. */
static bool literal_args(Build *b, const AstExpr *e, unsigned *n,
                         const Param **out)
{
    const AstExpr *const *args;
    *n = 0;
    *out = NULL;
    if (e->kind != AST_call)
        return true;
    if (!build_spread(b, e->n - 1, e->args + 1, n, &args))
        return false;
    Param *p = ARENA_ARRAY(b->arena, Param, *n);
    for (unsigned i = 0; i < *n; i++) {
        bool named = args[i]->kind == AST_keyword;
        if (!build_const(b, named ? args[i]->args[0] : args[i], &p[i]))
            return false;
        p[i].name = named ? args[i]->name : NULL;
    }
    *out = p;
    return true;
}

const MemRef *build_mem(Build *b, const AstExpr *e)
{
    bool truth;
    unsigned n;
    const Param *params;
    if (e->kind == AST_choice && b->in_entry)
        return build_const_bool(b, e->args[1], &truth)
                   ? build_mem(b, e->args[truth ? 0 : 2])
                   : NULL;
    const char *name = ast_callee(e);
    if (!name) {
        build_error(b, e->loc, "memory", "expected a memory after '@'");
        return NULL;
    }
    if (!literal_args(b, e, &n, &params))
        return NULL;
    const MemRef *ref = memref_get(b->ctx, name, n, params);
    if (!b->lib)
        return ref;
    unsigned errors = ctx_error_count(b->ctx);
    const Mem *mem = lib_mem(b->lib, build_place(b, e->loc), ref);
    b->failed |= ctx_error_count(b->ctx) != errors;
    return mem ? mem->ref : NULL;
}

static const UnitRef *unit_named(Build *b, const AstExpr *e, int64_t scale)
{
    unsigned n;
    const Param *params;
    const char *name = ast_callee(e);
    if (!name) {
        build_error(b, e->loc, "unit", "expected a collective unit");
        return NULL;
    }
    if (!literal_args(b, e, &n, &params))
        return NULL;
    const UnitRef *ref = unitref_get(b->ctx, scale, name, n, params);
    if (!b->lib)
        return ref;
    unsigned errors = ctx_error_count(b->ctx);
    const Unit *unit = lib_unit(b->lib, build_place(b, e->loc), ref);
    b->failed |= ctx_error_count(b->ctx) != errors;
    return unit ? unit->ref : NULL;
}

const UnitRef *build_unit(Build *b, const AstExpr *e)
{
    Param scale;
    if (e->kind != AST_binary || e->op != '*')
        return unit_named(b, e, 1);
    if (!build_const(b, e->args[0], &scale))
        return NULL;
    if (scale.kind != PARAM_int || scale.i < 1) {
        build_error(b, e->loc, "unit",
                    "expected a positive int before '*' of "
                    "a unit, found %s",
                    build_param_text(b, &scale));
        return NULL;
    }
    return unit_named(b, e->args[1], scale.i);
}
