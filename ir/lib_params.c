/* Template parameters of entries: given ones matched, defaults put in, where
 * clauses checked. */
#include "ir/lib_entry.h"

#include <string.h>

static const struct {
    const char *word;
    ParamKind kind;
} kinds[] = { { "int", PARAM_int },   { "float", PARAM_float },
              { "bool", PARAM_bool }, { "str", PARAM_str },
              { "type", PARAM_type }, { "tuple", PARAM_tuple } };

static const char *kind_word(ParamKind kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return kinds[i].word;
    return "None";
}

static bool param_kind(Lib *lib, const AstParam *a, ParamKind *out)
{
    if (a->type->kind == AST_name)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strcmp(kinds[i].word, a->type->name) == 0) {
                *out = kinds[i].kind;
                return true;
            }
    diag_error(lib->ctx, a->loc, "instr",
               "template parameter '%s' expects the "
               "kind int, float, bool, str, type or tuple",
               a->name);
    return false;
}

/* A literal of the wrong kind that means one of the right kind. */
static Param adapt(Param p, ParamKind kind)
{
    if (kind == PARAM_type && p.kind == PARAM_str) {
        ScalarType t = scalar_type_from_name(p.s, strlen(p.s));
        if (t != TY_none)
            return (Param){ .kind = PARAM_type, .i = t };
    }
    if (kind == PARAM_float && p.kind == PARAM_int)
        return (Param){ .kind = PARAM_float, .f = (double)p.i };
    return p;
}

/* One template parameter being matched. */
typedef struct Match {
    Build *b;
    Lib *lib;
    Loc loc;
    const Entry *e;
    unsigned n_given;
    const Param *given;
    bool *used;
    unsigned n_positional, next_positional;
    VEC(Param) args;
} Match;

static Diag *match_error(Match *m, const char *fmt, const char *name)
{
    StrBuf text = { 0 };
    strbuf_addf(&text, "%s: ", m->e->name);
    strbuf_addf(&text, fmt, name);
    Diag *d =
        diag_error(m->lib->ctx, m->loc, "instr", "%s", strbuf_text(&text));
    diag_note(m->lib->ctx, d, m->e->decl->loc, "the entry is here");
    strbuf_free(&text);
    return d;
}

/* The given argument of that name, or the next positional one. */
static const Param *take_given(Match *m, const char *name)
{
    for (unsigned i = 0; i < m->n_given; i++)
        if (!m->used[i] && m->given[i].name &&
            strcmp(m->given[i].name, name) == 0) {
            m->used[i] = true;
            return &m->given[i];
        }
    while (m->next_positional < m->n_given) {
        unsigned i = m->next_positional++;
        if (!m->used[i] && !m->given[i].name) {
            m->used[i] = true;
            return &m->given[i];
        }
    }
    return NULL;
}

/* The type parameter T of an instruction may also be given through a runtime
 * parameter of that element type, as dst=f32: all such must agree. */
static bool type_through_params(Match *m, const char *name, Param *out,
                                bool *found)
{
    for (const AstParam *a = m->e->decl->params; a; a = a->next) {
        const AstExpr *t = a->type;
        while (t->kind == AST_binary || t->kind == AST_index)
            t = t->args[0];
        if (t->kind == AST_list && t->n == 1)
            t = t->args[0];
        if (t->kind != AST_name || t->name != name)
            continue;
        for (unsigned i = 0; i < m->n_given; i++) {
            if (!m->given[i].name || strcmp(m->given[i].name, a->name) != 0)
                continue;
            Param p = adapt(m->given[i], PARAM_type);
            m->used[i] = true;
            p.name = NULL;
            if (*found && (p.kind != out->kind || p.i != out->i)) {
                match_error(m,
                            "the precision of '%s' differs from that of the "
                            "other operands of its type",
                            a->name);
                return false;
            }
            *out = p;
            *found = true;
        }
    }
    return true;
}

static bool match_one(Match *m, const AstParam *a, const char *name)
{
    ParamKind kind;
    Param p = { 0 };
    bool found = false;
    if (!param_kind(m->lib, a, &kind))
        return false;
    const Param *given = take_given(m, name);
    if (given) {
        p = adapt(*given, kind);
        found = true;
    }
    if (kind == PARAM_type && !type_through_params(m, name, &p, &found))
        return false;
    if (!found && !a->init) {
        Diag *d = match_error(m, "the template argument '%s' is missing", name);
        diag_fix(m->lib->ctx, d, "write %s=.. in the call", name);
        return false;
    }
    if (!found && !build_const(m->b, a->init, &p))
        return false;
    if (p.kind != kind) {
        StrBuf text = { 0 };
        Param bare = p;
        bare.name = NULL;
        param_print(&text, &bare);
        diag_error(m->lib->ctx, m->loc, "instr",
                   "%s: the template argument "
                   "'%s' expects a literal of kind %s, found %s",
                   m->e->name, name, kind_word(kind), strbuf_text(&text));
        strbuf_free(&text);
        return false;
    }
    p.name = ctx_intern(m->lib->ctx, name);
    VEC_PUSH(m->b->arena, &m->args, p);
    build_bind_param(m->b, name, &p);
    return true;
}

/* name...: name0, name1, .. in a family of ranks; else the tuple of what
 * positional arguments are left. */
static bool match_pack(Match *m, const AstParam *a)
{
    if (m->e->is_member) {
        for (int64_t k = 0; k < m->b->rank; k++)
            if (!match_one(m, a,
                           arena_printf(m->b->arena, "%s%d", a->name, (int)k)))
                return false;
        return true;
    }
    VEC(Param) items = { 0 };
    const Param *given;
    while ((given = take_given(m, "")) != NULL)
        VEC_PUSH(m->b->arena, &items, *given);
    Param t = { .kind = PARAM_tuple,
                .n = (unsigned)items.len,
                .items = items.data };
    build_bind_param(m->b, a->name, &t);
    for (size_t i = 0; i < items.len; i++)
        VEC_PUSH(m->b->arena, &m->args, items.data[i]);
    return true;
}

static bool refuse_unused(Match *m)
{
    for (unsigned i = 0; i < m->n_given; i++) {
        if (m->used[i])
            continue;
        if (m->given[i].name)
            match_error(m, "there is no template argument '%s'",
                        m->given[i].name);
        else
            match_error(m, "more arguments than parameters%s", "");
        return false;
    }
    return true;
}

bool entry_open(Build *b, Arena *arena, Lib *lib, Loc loc, const Entry *e,
                unsigned n, const Param *given, unsigned *n_args,
                const Param **args)
{
    build_init(b, lib_module(e->home), lib, arena);
    b->in_entry = true;
    if (memcmp(&loc, &e->decl->loc, sizeof loc) != 0)
        b->wanted = loc;
    if (e->is_member) {
        build_bind_param(b, e->decl->var, &e->member);
        b->rank = e->member.kind == PARAM_int ? e->member.i : 0;
    }
    Match m = { .b = b,
                .lib = lib,
                .loc = loc,
                .e = e,
                .n_given = n,
                .given = given,
                .used = ARENA_ARRAY(arena, bool, n + 1) };
    for (const AstParam *a = e->decl->tparams; a; a = a->next)
        if (!(a->pack ? match_pack(&m, a) : match_one(&m, a, a->name)))
            return false;
    *n_args = (unsigned)m.args.len;
    *args = m.args.data;
    return refuse_unused(&m);
}

static void report_where(Build *b, Loc loc, const Entry *e, const AstClause *c,
                         unsigned n_args, const Param *args)
{
    const char *text = c->n && c->values[0]->kind == AST_str
                           ? c->values[0]->name
                           : "a condition of the entry does not hold";
    StrBuf given = { 0 };
    for (unsigned i = 0; i < n_args; i++) {
        if (i)
            strbuf_add(&given, ", ");
        Param p = args[i];
        if (p.name)
            strbuf_addf(&given, "%s=", p.name);
        p.name = NULL;
        param_print(&given, &p);
    }
    Diag *d =
        diag_error(b->ctx, loc, e->kind == AST_memory ? "memory" : "instr",
                   "%s: %s, found %s", e->name, text,
                   given.len ? strbuf_text(&given) : "no arguments");
    diag_note(b->ctx, d, c->loc, "required here");
    strbuf_free(&given);
}

bool entry_where(Build *b, Loc loc, const Entry *e, unsigned n_args,
                 const Param *args)
{
    bool holds;
    for (const AstClause *c = entry_clause(e->decl, "where", NULL); c;
         c = entry_clause(e->decl, "where", c)) {
        if (!c->head || !build_const_bool(b, c->head, &holds))
            return false;
        if (!holds) {
            report_where(b, loc, e, c, n_args, args);
            return false;
        }
    }
    return true;
}
