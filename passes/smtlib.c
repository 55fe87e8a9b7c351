/* Conditions as terms over Int. Divisors are positive literals, for which div
 * and mod of SMT-LIB are floor division and its remainder. Variables, strides
 * and configuration reads are constants, told apart by the atom's number. */
#include "passes/smtlib.h"

#include <inttypes.h>

typedef struct Script {
    const Facts *facts;
    StrBuf *out;
    Arena *arena;
    VEC(const Atom *) seen;
} Script;

/* ---- symbols ------------------------------------------------------------ */

/* A quoted symbol holds neither bars nor backslashes. */
static void print_name(Script *s, const char *name)
{
    for (; name && *name; name++)
        strbuf_addc(s->out, *name == '|' || *name == '\\' ? '_' : *name);
}

static void print_symbol(Script *s, const Atom *a)
{
    strbuf_addc(s->out, '|');
    if (a->kind == ATOM_var)
        print_name(s, var_get(s->facts->exprs, a->var)->name);
    else if (a->opaque == OPAQUE_config)
        print_name(s, a->name);
    else
        strbuf_addf(s->out, "stride %u of ", a->dim);
    strbuf_addf(s->out, " %" PRIu32 "|", a->order);
}

static void declare_affine(Script *s, const Affine *e);

static void declare_atom(Script *s, const Atom *a)
{
    if (a->kind == ATOM_floordiv || a->kind == ATOM_mod) {
        declare_affine(s, a->arg);
        return;
    }
    if (a->kind == ATOM_opaque && a->opaque == OPAQUE_product) {
        declare_affine(s, a->lhs);
        declare_affine(s, a->rhs);
        return;
    }
    for (size_t i = 0; i < s->seen.len; i++)
        if (s->seen.data[i] == a)
            return;
    VEC_PUSH(s->arena, &s->seen, a);
    strbuf_add(s->out, "(declare-const ");
    print_symbol(s, a);
    strbuf_add(s->out, " Int)\n");
}

static void declare_affine(Script *s, const Affine *e)
{
    for (uint32_t i = 0; i < e->n_terms; i++)
        declare_atom(s, e->terms[i].atom);
}

static void declare_cond(Script *s, const Cond *c)
{
    if (c->expr)
        declare_affine(s, c->expr);
    if (c->lhs)
        declare_cond(s, c->lhs);
    if (c->rhs)
        declare_cond(s, c->rhs);
}

/* ---- terms -------------------------------------------------------------- */

static void print_int(Script *s, int64_t i)
{
    if (i < 0)
        strbuf_addf(s->out, "(- %" PRIu64 ")", -(uint64_t)i);
    else
        strbuf_addf(s->out, "%" PRId64, i);
}

static void print_affine(Script *s, const Affine *e);

static void print_atom(Script *s, const Atom *a)
{
    bool product = a->kind == ATOM_opaque && a->opaque == OPAQUE_product;
    if (a->kind == ATOM_var || (a->kind == ATOM_opaque && !product)) {
        print_symbol(s, a);
        return;
    }
    strbuf_add(s->out, product                    ? "(* "
                       : a->kind == ATOM_floordiv ? "(div "
                                                  : "(mod ");
    print_affine(s, product ? a->lhs : a->arg);
    strbuf_addc(s->out, ' ');
    if (product)
        print_affine(s, a->rhs);
    else
        print_int(s, a->divisor);
    strbuf_addc(s->out, ')');
}

static void print_affine(Script *s, const Affine *e)
{
    if (e->n_terms)
        strbuf_add(s->out, "(+ ");
    print_int(s, e->constant);
    for (uint32_t i = 0; i < e->n_terms; i++) {
        strbuf_add(s->out, " (* ");
        print_int(s, e->terms[i].coef);
        strbuf_addc(s->out, ' ');
        print_atom(s, e->terms[i].atom);
        strbuf_addc(s->out, ')');
    }
    if (e->n_terms)
        strbuf_addc(s->out, ')');
}

static void print_cond(Script *s, const Cond *c)
{
    switch (c->kind) {
    case COND_false:
    case COND_true:
        strbuf_add(s->out, c->kind == COND_true ? "true" : "false");
        return;
    case COND_ge0:
    case COND_eq0:
        strbuf_add(s->out, c->kind == COND_ge0 ? "(>= " : "(= ");
        print_affine(s, c->expr);
        strbuf_add(s->out, " 0)");
        return;
    case COND_not:
        strbuf_add(s->out, "(not ");
        print_cond(s, c->lhs);
        break;
    case COND_and:
    case COND_or:
        strbuf_add(s->out, c->kind == COND_and ? "(and " : "(or ");
        print_cond(s, c->lhs);
        strbuf_addc(s->out, ' ');
        print_cond(s, c->rhs);
        break;
    }
    strbuf_addc(s->out, ')');
}

bool smtlib_print(StrBuf *out, const Facts *f, const Cond *c)
{
    Facts scratch = *f;
    CondVec conds = { 0 };
    Script s = { .facts = f, .out = out, .arena = arena_new() };
    scratch.arena = s.arena;
    bool complete = facts_closure(&scratch, c, &conds);
    strbuf_add(out, "(set-logic ALL)\n");
    if (!complete)
        strbuf_add(out,
                   "; some of what holds passes 64 bits and is not here\n");
    for (size_t i = 0; i < conds.len; i++)
        declare_cond(&s, conds.data[i]);
    for (size_t i = 0; i < conds.len; i++) {
        strbuf_add(out, "(assert ");
        print_cond(&s, conds.data[i]);
        strbuf_add(out, ")\n");
    }
    strbuf_add(out, "(check-sat)\n");
    arena_free(s.arena);
    return complete;
}
