/* Instances of instruction entries.
 *
 * An instance fixes the template parameters: its body is built as a ctl.proc in
 * the library's module with literals in their place, and what the other layers
 * ask (shapes, footprints, units, PTX) is read off once. */
#include "ir/lib_entry.h"

#include <string.h>

typedef struct Making {
    Build b;
    Lib *lib;
    Loc loc;
    const Entry *e;
    Instr *in;
    InstrParam *params;
    Arena *keep; /* the context's */
} Making;

static bool entry_error(Making *mk, const AstClause *c, const char *expected)
{
    build_error(&mk->b, c->loc, "instr", "%s: clause '%s' expects %s",
                mk->e->name, c->key, expected);
    return false;
}

/* ---- parameters -------------------------------------------------------- */

static void param_from(Making *mk, const BlockArg *a, InstrParam *p)
{
    if (!a->value) {
        p->name = ctx_intern(mk->lib->ctx,
                             var_get(mk->in->module->exprs, a->var)->name);
        p->is_index = true;
        p->elem = TY_index;
        return;
    }
    const Value *v = a->value;
    int64_t *shape = ARENA_ARRAY(mk->keep, int64_t, v->type->rank);
    p->name = v->name;
    p->elem = v->type->elem;
    p->rank = v->type->rank;
    p->mem = v->type->mem;
    p->shape = shape;
    p->bytes = scalar_type_bytes(p->elem);
    for (unsigned i = 0; i < p->rank; i++) {
        if (!affine_is_const(v->shape[i], &shape[i]))
            shape[i] = -1;
        if (shape[i] < 0 ||
            __builtin_mul_overflow(p->bytes, shape[i], &p->bytes))
            p->bytes = 0;
    }
}

static void take_params(Making *mk)
{
    const Block *body = mk->in->body->blocks[0];
    mk->in->n_params = body->n_args;
    mk->params = ARENA_ARRAY(mk->keep, InstrParam, body->n_args);
    mk->in->params = mk->params;
    for (unsigned i = 0; i < body->n_args; i++)
        param_from(mk, &body->args[i], &mk->params[i]);
    instr_footprint(mk->in->module, mk->in->body, body->n_args, mk->params);
}

/* ---- accesses, trailing barrier ---------------------------------------- */

static bool take_unit_list(Making *mk, unsigned n, AstExpr *const *items,
                           unsigned *out_n, const UnitRef *const **out)
{
    const UnitRef **units = ARENA_ARRAY(mk->keep, const UnitRef *, n);
    for (unsigned i = 0; i < n; i++) {
        units[i] = build_unit(&mk->b, items[i]);
        if (!units[i])
            return false;
    }
    *out_n = n;
    *out = units;
    return true;
}

/* What commutes with its like is a sum, and nothing else of the parameter. */
static bool take_atomic(Making *mk, const AstClause *c, InstrParam *p)
{
    if (p->flags != (ACC_READ | ACC_WRITE | ACC_REDUCE))
        return entry_error(mk, c,
                           "atomic of a parameter that the body only adds to");
    p->flags |= ACC_ATOMIC;
    return true;
}

static bool take_access_word(Making *mk, const AstClause *c, const AstExpr *e,
                             InstrParam *p)
{
    const char *word = ast_callee(e);
    if (word && e->kind == AST_name) {
        if (strcmp(word, "in_order") == 0)
            return true;
        if (strcmp(word, "out_of_order") == 0)
            return p->out_of_order = true;
        if (strcmp(word, "allow_out_of_bounds") == 0)
            return p->allow_out_of_bounds = true;
        if (strcmp(word, "scattered") == 0)
            return p->scattered = true;
        if (strcmp(word, "atomic") == 0)
            return take_atomic(mk, c, p);
    } else if (word && strcmp(word, "distributed") == 0) {
        return take_unit_list(mk, e->n - 1, e->args + 1, &p->n_distributed,
                              &p->distributed_units);
    }
    return entry_error(mk, c,
                       "in_order, out_of_order, allow_out_of_bounds, "
                       "scattered, atomic or distributed(unit, ..)");
}

static bool take_access(Making *mk, const AstClause *c)
{
    for (unsigned i = 0; i < mk->in->n_params; i++) {
        InstrParam *p = &mk->params[i];
        if (p->is_index || !c->head || c->head->kind != AST_name ||
            strcmp(p->name, c->head->name) != 0)
            continue;
        for (unsigned k = 0; k < c->n; k++)
            if (!take_access_word(mk, c, c->values[k], p))
                return false;
        return true;
    }
    return entry_error(mk, c, "the name of a data parameter");
}

static bool take_trailing(Making *mk, const AstClause *c)
{
    mk->in->trailing_mechanism = c->head ? build_mem(&mk->b, c->head) : NULL;
    return mk->in->trailing_mechanism &&
           take_unit_list(mk, c->n, c->values, &mk->in->n_trailing_units,
                          &mk->in->trailing_units);
}

static bool take_clause(Making *mk, const AstClause *c)
{
    const char *key = c->key;
    if (strcmp(key, "access") == 0)
        return take_access(mk, c);
    if (strcmp(key, "trailing") == 0)
        return take_trailing(mk, c);
    if (strcmp(key, "unit") == 0) {
        mk->in->unit = c->head ? build_unit(&mk->b, c->head) : NULL;
        return mk->in->unit != NULL;
    }
    if (strcmp(key, "timeline") == 0) {
        const char *name = c->head ? ast_callee(c->head) : NULL;
        if (!name || !instr_timeline_known(name))
            return false; /* reported when the entry was loaded */
        mk->in->timeline = name;
        mk->in->scope = strncmp(name, "cpu_", 4) == 0 ? "cpu" : "cuda";
        return true;
    }
    if (strcmp(key, "hook") == 0) {
        mk->in->hook = c->head ? ast_callee(c->head) : NULL;
        return mk->in->hook || entry_error(mk, c, "a name");
    }
    return true;
}

/* ---- the instance ------------------------------------------------------ */

static bool make_body(Making *mk)
{
    const AstClause *c = entry_clause(mk->e->decl, "body", NULL);
    if (!c) {
        build_error(&mk->b, mk->e->decl->loc, "instr", "instr '%s' has no body",
                    mk->e->name);
        return false;
    }
    mk->b.in_device = true;
    mk->in->module = mk->b.m;
    mk->in->body = build_proc(&mk->b, mk->e->name, mk->e->decl->loc,
                              mk->e->decl->params, c->body);
    return !mk->b.failed;
}

/* What is scattered is so over the CTAs of the trailing barrier. */
static bool check_scattered(Making *mk)
{
    for (unsigned i = 0; i < mk->in->n_params; i++) {
        const InstrParam *p = &mk->params[i];
        if (!p->scattered || (p->n_distributed == 1 && p->rank > 1 &&
                              mk->in->n_trailing_units == 1))
            continue;
        build_error(&mk->b, mk->e->decl->loc, "instr",
                    "%s: '%s' is scattered, which expects one distributed "
                    "unit, one of the trailing barrier, and a dimension to cut",
                    mk->e->name, p->name);
        return false;
    }
    return true;
}

static bool make_rest(Making *mk)
{
    take_params(mk);
    for (const AstClause *c = mk->e->decl->clauses; c; c = c->next)
        if (!take_clause(mk, c))
            return false;
    return check_scattered(mk) &&
           instr_ptx(&mk->b, mk->e, mk->in->body, &mk->in->n_ptx, &mk->in->ptx);
}

/* The instance for these arguments; NULL after a report. A body that was built
 * in vain leaves the module again. */
static const Instr *make(Making *mk, unsigned n_args, const Param *args)
{
    unsigned errors = ctx_error_count(mk->lib->ctx);
    Instr *in = ARENA_NEW(mk->keep, Instr);
    mk->in = in;
    in->name = mk->e->name;
    in->loc = mk->e->decl->loc;
    in->n_targs = n_args;
    in->targs = param_intern(mk->lib->ctx, n_args, args);
    if (!entry_where(&mk->b, mk->loc, mk->e, n_args, args))
        return NULL;
    bool ok = make_body(mk) && make_rest(mk);
    if (ok && ctx_error_count(mk->lib->ctx) == errors)
        return in;
    if (in->body)
        op_detach(in->body);
    return NULL;
}

/* What tells instances apart. */
typedef struct InstanceKey {
    const void *entry;
    const Param *args;
} InstanceKey;

static const void *instance_key(Lib *lib, const void *entry, unsigned n,
                                const Param *args)
{
    InstanceKey key;
    memset(&key, 0, sizeof key);
    key.entry = entry;
    key.args = param_intern(lib->ctx, n, args);
    return ctx_unique(lib->ctx, &key, sizeof key);
}

static const Instr *instance_of(Lib *lib, Loc loc, const Entry *e, unsigned n,
                                const Param *given)
{
    Making mk = { .lib = lib, .loc = loc, .e = e, .keep = ctx_arena(lib->ctx) };
    unsigned n_args;
    const Param *args;
    const Instr *in = NULL;
    Arena *arena = arena_new();
    if (entry_open(&mk.b, arena, lib, loc, e, n, given, &n_args, &args)) {
        const void *key = instance_key(lib, e->decl, n_args, args);
        key = e->is_member
                  ? ctx_unique(lib->ctx, &(InstanceKey){ e->name, key },
                               sizeof(InstanceKey))
                  : key;
        in = made_find(&lib->instrs, key);
        if (!in) {
            in = make(&mk, n_args, args);
            if (in)
                made_add(lib, &lib->instrs, key, in);
        }
    }
    arena_free(arena);
    return in;
}

const Instr *instr_instance(Lib *lib, Loc loc, const char *name,
                            unsigned n_targs, const Param *targs)
{
    const Entry *e = lib_find(lib, AST_instr, name);
    if (!e) {
        Diag *d = diag_error(lib->ctx, loc, "instr", "%s",
                             lib_unknown_text(lib->ctx, "instruction", name));
        lib_fix_name(lib, d, AST_instr, name,
                     "import the file that defines it");
        return NULL;
    }
    const void *key = instance_key(lib, e, n_targs, targs);
    const Instr *in = made_find(&lib->instrs, key);
    if (in)
        return in;
    in = instance_of(lib, loc, e, n_targs, targs);
    if (in)
        made_add(lib, &lib->instrs, key, in);
    return in;
}

bool lib_has_instr(const Lib *lib, const char *name)
{
    return lib_find(lib, AST_instr, name) != NULL;
}

int64_t instr_targ_int(const Instr *in, const char *name)
{
    const Param *p = param_find(in->n_targs, in->targs, name);
    if (!p || (p->kind != PARAM_int && p->kind != PARAM_bool))
        panic("instr_targ_int: %s has no int '%s'", in->name, name);
    return p->i;
}

unsigned instr_param(const Instr *in, const char *name)
{
    for (unsigned i = 0; i < in->n_params; i++)
        if (!strcmp(in->params[i].name, name))
            return i;
    panic("instruction '%s' has no parameter '%s'", in->name, name);
}

bool instr_reorders(const Instr *in)
{
    bool wide = false;
    for (unsigned i = 0; i < in->n_params; i++)
        wide = wide || ((in->params[i].flags & ACC_WRITE) &&
                        scalar_type_bytes(in->params[i].elem) >= 4);
    return wide && in->hook && !strcmp(in->hook, "tile_reduce");
}

int64_t instr_piece(const Lib *lib, const Instr *in, unsigned param)
{
    const InstrParam *p = &in->params[param];
    const Mem *mem =
        p->mem && !p->is_index ? lib_mem_find((Lib *)lib, p->mem) : NULL;
    return mem && mem->alignment && !mem->native_unit &&
                   p->bytes <= (int64_t)mem->alignment
               ? p->bytes
               : 0;
}

const Instr *op_instr(const Module *m, const Op *op)
{
    const char *callee = op_attr_str(op, "callee", NULL);
    const Param *targs = op_attr_param(op, "targs");
    if (!callee || !m->lib)
        return NULL;
    return instr_instance(m->lib, op->loc, callee, targs ? targs->n : 0,
                          targs ? targs->items : NULL);
}
