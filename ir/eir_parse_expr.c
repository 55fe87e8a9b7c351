/* The .eir parser's pieces: names and scopes, index expressions and conditions,
 * accesses.
 *
 * Index expressions and conditions are one grammar: a parenthesis may hold
 * either, so each step gives one of the two and the caller says which it
 * wants. Sums are added up in pairs, so that n terms cost n log n. */
#include "ir/eir_parser.h"

#include <string.h>

#define EIR_MAX_LIST 4096

/* ---- tokens -------------------------------------------------------------- */

bool eir_error(EirParser *p, Loc loc, const char *fmt, ...)
{
    if (p->n_errors++ >= EIR_MAX_ERRORS)
        return false;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(p->scratch, fmt, ap);
    va_end(ap);
    diag_error(p->ctx, loc, "syntax", "%s", text);
    return false;
}

bool eir_expected(EirParser *p, const char *what)
{
    if (p->lx.tok.kind == EIR_bad)
        return eir_error(p, p->lx.tok.loc, "expected %s, found %s", what,
                         p->lx.tok.text);
    StrBuf found = { 0 };
    eir_tok_describe(&p->lx, &p->lx.tok, &found);
    eir_error(p, p->lx.tok.loc, "expected %s, found %s", what,
              strbuf_text(&found));
    strbuf_free(&found);
    return false;
}

bool eir_accept(EirParser *p, EirTok kind)
{
    if (p->lx.tok.kind != kind)
        return false;
    eir_lex_next(&p->lx);
    return true;
}

bool eir_expect(EirParser *p, EirTok kind)
{
    return eir_accept(p, kind) || eir_expected(p, eir_tok_name(kind));
}

bool eir_at_word(const EirParser *p, const char *word)
{
    return p->lx.tok.kind == EIR_ident && !strcmp(p->lx.tok.text, word);
}

bool eir_accept_word(EirParser *p, const char *word)
{
    if (!eir_at_word(p, word))
        return false;
    eir_lex_next(&p->lx);
    return true;
}

bool eir_enter(EirParser *p, Loc loc)
{
    if (p->depth >= EIR_MAX_NESTING)
        return eir_error(p, loc, "nesting deeper than %d", EIR_MAX_NESTING);
    p->depth++;
    return true;
}

void eir_leave(EirParser *p)
{
    p->depth--;
}

bool eir_list_room(EirParser *p, Loc loc, size_t n)
{
    return n < EIR_MAX_LIST ||
           eir_error(p, loc, "a list of more than %d", EIR_MAX_LIST);
}

bool eir_at_wrapped(const EirParser *p, const char *word)
{
    if (!eir_at_word(p, word))
        return false;
    EirLexer ahead = p->lx;
    eir_lex_next(&ahead);
    return ahead.tok.kind == EIR_lparen;
}

bool eir_skip_wrapped(EirParser *p)
{
    eir_lex_next(&p->lx);
    return eir_expect(p, EIR_lparen);
}

/* ---- names --------------------------------------------------------------- */

EirBinding *eir_lookup(EirParser *p, const EirToken *tok)
{
    EirBinding *b = name_map_get(p->names, tok->text);
    if (!b) {
        eir_error(p, tok->loc, "'%%%.60s' is not defined here", tok->text);
        return NULL;
    }
    if (!b->value && !b->var) {
        p->n_errors++;
        return NULL;
    }
    return b;
}

bool eir_define(EirParser *p, const char *name, Loc loc, Value *v, VarId var)
{
    EirBinding *old = name_map_get(p->names, name);
    if (old && (old->value || old->var)) {
        if (p->n_errors++ >= EIR_MAX_ERRORS)
            return false;
        Diag *d = diag_error(p->ctx, loc, "syntax",
                             "'%%%.60s' is defined already", name);
        diag_note(p->ctx, d, old->loc, "its first definition");
        diag_fix(p->ctx, d, "give one of the two another name");
        return false;
    }
    EirBinding *b = ARENA_NEW(p->scratch, EirBinding);
    *b = (EirBinding){ name, v, var, loc };
    name_map_set(p->names, name, b);
    VEC_PUSH(p->scratch, &p->scope, b);
    return true;
}

size_t eir_scope_open(const EirParser *p)
{
    return p->scope.len;
}

void eir_scope_close(EirParser *p, size_t mark)
{
    while (p->scope.len > mark)
        name_map_set(p->names, p->scope.data[--p->scope.len]->name, NULL);
}

const char *eir_kept_name(const char *name)
{
    return name[strspn(name, "0123456789")] ? name : NULL;
}

/* ---- index expressions and conditions ------------------------------------ */

typedef struct Expr {
    const Affine *index; /* one of the two */
    const Cond *cond;
    Loc loc;
} Expr;

static bool parse_or(EirParser *p, Expr *out);

static bool want_index(EirParser *p, const Expr *e)
{
    return e->index ||
           eir_error(p, e->loc,
                     "expected an index expression, found a condition");
}

static bool want_cond(EirParser *p, const Expr *e)
{
    return e->cond ||
           eir_error(p, e->loc,
                     "expected a condition, found an index expression");
}

/* Takes the result of a constructor, NULL when 64 bits were passed. */
static bool set_index(EirParser *p, Expr *e, const Affine *a)
{
    e->index = a;
    return a || eir_error(p, e->loc, "the index expression passes 64 bits");
}

static bool parse_stride(EirParser *p, Expr *out)
{
    eir_lex_next(&p->lx);
    if (!eir_expect(p, EIR_lparen))
        return false;
    EirToken tok = p->lx.tok;
    int64_t dim = 0;
    if (!eir_expect(p, EIR_value) || !eir_expect(p, EIR_comma))
        return false;
    EirBinding *b = eir_lookup(p, &tok);
    Loc at = p->lx.tok.loc;
    if (!b || !eir_parse_int(p, &dim) || !eir_expect(p, EIR_rparen))
        return false;
    if (!b->value)
        return eir_error(p, tok.loc, "'%%%.60s' is no tensor", tok.text);
    if (dim < 0 || dim >= (int64_t)b->value->type->rank)
        return eir_error(p, at,
                         "'%%%.60s' has %u dimensions, no dimension %lld",
                         tok.text, b->value->type->rank, (long long)dim);
    return set_index(p, out,
                     affine_stride(p->m->exprs, b->value, (unsigned)dim));
}

static bool parse_variable(EirParser *p, Expr *out)
{
    EirToken tok = p->lx.tok;
    eir_lex_next(&p->lx);
    EirBinding *b = eir_lookup(p, &tok);
    if (!b)
        return false;
    if (!b->var)
        return eir_error(p, tok.loc,
                         "'%%%.60s' is a value, not a control variable",
                         tok.text);
    return set_index(p, out, affine_var(p->m->exprs, b->var));
}

static bool parse_word(EirParser *p, Expr *out)
{
    const char *s = p->lx.tok.text;
    if (!strcmp(s, "stride"))
        return parse_stride(p, out);
    if (!strcmp(s, "true") || !strcmp(s, "false")) {
        out->cond = cond_bool(p->m->exprs, *s == 't');
    } else if (strchr(s, '.')) {
        if (!set_index(p, out, affine_config(p->m->exprs, s)))
            return false;
    } else {
        return eir_expected(p, "an expression");
    }
    eir_lex_next(&p->lx);
    return true;
}

static bool parse_primary(EirParser *p, Expr *out)
{
    out->loc = p->lx.tok.loc;
    if (p->n_primaries++ >= EIR_MAX_TERMS)
        return eir_error(p, out->loc, "an expression of more than %d terms",
                         EIR_MAX_TERMS);
    switch (p->lx.tok.kind) {
    case EIR_int: {
        int64_t c = 0;
        return eir_parse_int(p, &c) &&
               set_index(p, out, affine_const(p->m->exprs, c));
    }
    case EIR_value:
        return parse_variable(p, out);
    case EIR_ident:
        return parse_word(p, out);
    case EIR_lparen: {
        eir_lex_next(&p->lx);
        if (!eir_enter(p, out->loc))
            return false;
        bool ok = parse_or(p, out) && eir_expect(p, EIR_rparen);
        eir_leave(p);
        return ok;
    }
    default:
        return eir_expected(p, "an expression");
    }
}

/* `-` binds to what follows; the least integer needs its sign. */
static bool parse_unary(EirParser *p, Expr *out)
{
    Loc loc = p->lx.tok.loc;
    if (p->lx.tok.kind != EIR_minus)
        return parse_primary(p, out);
    EirLexer ahead = p->lx;
    eir_lex_next(&ahead);
    if (ahead.tok.kind == EIR_int) {
        int64_t c = 0;
        out->loc = loc;
        return eir_parse_int(p, &c) &&
               set_index(p, out, affine_const(p->m->exprs, c));
    }
    p->lx = ahead;
    return parse_primary(p, out) && want_index(p, out) &&
           set_index(p, out, affine_neg(p->m->exprs, out->index));
}

static bool parse_divisor(EirParser *p, int64_t *out)
{
    Loc loc = p->lx.tok.loc;
    if (p->lx.tok.kind != EIR_int)
        return eir_expected(p, "a literal divisor");
    if (!eir_parse_int(p, out))
        return false;
    return *out > 0 || eir_error(p, loc, "the divisor must be positive");
}

static bool parse_product(EirParser *p, Expr *out)
{
    ExprCtx *x = p->m->exprs;
    if (!parse_unary(p, out))
        return false;
    for (;;) {
        bool star = p->lx.tok.kind == EIR_star;
        bool div = eir_at_word(p, "floordiv");
        if (!star && !div && !eir_at_word(p, "mod"))
            return true;
        if (!want_index(p, out))
            return false;
        eir_lex_next(&p->lx);
        const Affine *r;
        if (star) {
            Expr rhs = { 0 };
            if (!parse_unary(p, &rhs) || !want_index(p, &rhs))
                return false;
            r = affine_mul(x, out->index, rhs.index);
        } else {
            int64_t c = 1;
            if (!parse_divisor(p, &c))
                return false;
            r = div ? affine_floordiv(x, out->index, c)
                    : affine_mod(x, out->index, c);
        }
        if (!set_index(p, out, r))
            return false;
    }
}

/* Adds up the terms pushed since `base`. */
static const Affine *add_terms(EirParser *p, size_t base)
{
    const Affine **t = p->terms.data + base;
    size_t n = p->terms.len - base;
    while (n > 1) {
        for (size_t i = 0; i < n / 2; i++)
            t[i] = affine_add(p->m->exprs, t[2 * i], t[2 * i + 1]);
        if (n % 2)
            t[n / 2] = t[n - 1];
        n = n / 2 + n % 2;
    }
    return t[0];
}

static bool parse_sum(EirParser *p, Expr *out)
{
    if (!parse_product(p, out))
        return false;
    if (p->lx.tok.kind != EIR_plus && p->lx.tok.kind != EIR_minus)
        return true;
    size_t base = p->terms.len;
    bool minus = false;
    Expr term = *out;
    for (;;) {
        const Affine *t = term.index;
        if (!want_index(p, &term))
            break;
        VEC_PUSH(p->scratch, &p->terms, minus ? affine_neg(p->m->exprs, t) : t);
        minus = p->lx.tok.kind == EIR_minus;
        if (!minus && p->lx.tok.kind != EIR_plus) {
            const Affine *sum = add_terms(p, base);
            p->terms.len = base;
            return set_index(p, out, sum);
        }
        eir_lex_next(&p->lx);
        term = (Expr){ 0 };
        if (!parse_product(p, &term))
            break;
    }
    p->terms.len = base;
    return false;
}

static bool comparison(EirTok kind, CmpOp *op)
{
    switch (kind) {
    case EIR_lt:
        *op = CMP_lt;
        return true;
    case EIR_le:
        *op = CMP_le;
        return true;
    case EIR_gt:
        *op = CMP_gt;
        return true;
    case EIR_ge:
        *op = CMP_ge;
        return true;
    case EIR_eq:
        *op = CMP_eq;
        return true;
    case EIR_ne:
        *op = CMP_ne;
        return true;
    default:
        return false;
    }
}

static bool set_cond(EirParser *p, Expr *e, const Cond *c)
{
    e->index = NULL;
    e->cond = c;
    return c || eir_error(p, e->loc, "the condition passes 64 bits");
}

static bool parse_comparison(EirParser *p, Expr *out)
{
    CmpOp op;
    if (!parse_sum(p, out))
        return false;
    if (!comparison(p->lx.tok.kind, &op))
        return true;
    eir_lex_next(&p->lx);
    Expr rhs = { 0 };
    if (!want_index(p, out) || !parse_sum(p, &rhs) || !want_index(p, &rhs))
        return false;
    return set_cond(p, out, cond_cmp(p->m->exprs, op, out->index, rhs.index));
}

static bool parse_not(EirParser *p, Expr *out)
{
    Loc loc = p->lx.tok.loc;
    if (!eir_accept_word(p, "not"))
        return parse_comparison(p, out);
    if (!eir_enter(p, loc))
        return false;
    bool ok = parse_not(p, out) && want_cond(p, out) &&
              set_cond(p, out, cond_not(p->m->exprs, out->cond));
    eir_leave(p);
    return ok;
}

static bool parse_and(EirParser *p, Expr *out)
{
    if (!parse_not(p, out))
        return false;
    while (eir_accept_word(p, "and")) {
        Expr rhs = { 0 };
        if (!want_cond(p, out) || !parse_not(p, &rhs) || !want_cond(p, &rhs))
            return false;
        if (!set_cond(p, out, cond_and(p->m->exprs, out->cond, rhs.cond)))
            return false;
    }
    return true;
}

static bool parse_or(EirParser *p, Expr *out)
{
    if (!parse_and(p, out))
        return false;
    while (eir_accept_word(p, "or")) {
        Expr rhs = { 0 };
        if (!want_cond(p, out) || !parse_and(p, &rhs) || !want_cond(p, &rhs))
            return false;
        if (!set_cond(p, out, cond_or(p->m->exprs, out->cond, rhs.cond)))
            return false;
    }
    return true;
}

const Affine *eir_parse_index(EirParser *p)
{
    Expr e = { 0 };
    p->n_primaries = 0;
    return parse_or(p, &e) && want_index(p, &e) ? e.index : NULL;
}

const Cond *eir_parse_cond(EirParser *p)
{
    Expr e = { 0 };
    p->n_primaries = 0;
    return parse_or(p, &e) && want_cond(p, &e) ? e.cond : NULL;
}

bool eir_parse_index_list(EirParser *p, EirAffineVec *out)
{
    if (!eir_expect(p, EIR_lbracket))
        return false;
    while (p->lx.tok.kind != EIR_rbracket) {
        if (!eir_list_room(p, p->lx.tok.loc, out->len))
            return false;
        const Affine *e = eir_parse_index(p);
        if (!e)
            return false;
        VEC_PUSH(p->scratch, out, e);
        if (!eir_accept(p, EIR_comma))
            break;
    }
    return eir_expect(p, EIR_rbracket);
}

/* ---- accesses and operands ----------------------------------------------- */

Value *eir_parse_value(EirParser *p)
{
    EirToken tok = p->lx.tok;
    if (!eir_expect(p, EIR_value))
        return NULL;
    EirBinding *b = eir_lookup(p, &tok);
    if (b && !b->value)
        eir_error(p, tok.loc, "'%%%.60s' is a control variable, not a value",
                  tok.text);
    return b ? b->value : NULL;
}

/* ring(%r) or ring(%r, delta) */
static bool parse_ring_dim(EirParser *p, AccessDim *out)
{
    out->kind = DIM_ring;
    if (!eir_skip_wrapped(p) || !(out->ring = eir_parse_value(p)))
        return false;
    if (eir_accept(p, EIR_comma) && !eir_parse_int(p, &out->delta))
        return false;
    return eir_expect(p, EIR_rparen);
}

static bool parse_dim(EirParser *p, AccessDim *out)
{
    memset(out, 0, sizeof *out);
    if (eir_at_wrapped(p, "ring"))
        return parse_ring_dim(p, out);
    out->kind = DIM_point;
    out->lo = eir_parse_index(p);
    if (out->lo && eir_accept(p, EIR_interval)) {
        out->kind = DIM_interval;
        out->len = eir_parse_index(p);
        return out->len != NULL;
    }
    return out->lo != NULL;
}

/* From `[` on. */
static Access *parse_access(EirParser *p, Value *base, const EirToken *name)
{
    Access *a = access_new(p->m, base);
    unsigned n = 0;
    eir_lex_next(&p->lx);
    while (p->lx.tok.kind != EIR_rbracket) {
        AccessDim dim;
        if (!eir_list_room(p, p->lx.tok.loc, n) || !parse_dim(p, &dim))
            return NULL;
        if (n < a->rank)
            a->dims[n] = dim;
        n++;
        if (!eir_accept(p, EIR_comma))
            break;
    }
    if (!eir_expect(p, EIR_rbracket))
        return NULL;
    if (n == a->rank)
        return a;
    eir_error(p, name->loc, "'%%%.60s' has %u dimensions, found %u indices",
              name->text, a->rank, n);
    return NULL;
}

bool eir_parse_operand(EirParser *p, Operand *out)
{
    EirToken tok = p->lx.tok;
    EirBinding *b = NULL;
    if (tok.kind == EIR_value) {
        b = eir_lookup(p, &tok);
        if (!b)
            return false;
    }
    if (b && b->value) {
        eir_lex_next(&p->lx);
        if (p->lx.tok.kind != EIR_lbracket) {
            *out = opnd_value(b->value);
            return true;
        }
        Access *a = parse_access(p, b->value, &tok);
        if (a)
            *out = opnd_access(a);
        return a != NULL;
    }
    Expr e = { 0 };
    p->n_primaries = 0;
    if (!parse_or(p, &e))
        return false;
    *out = e.index ? opnd_index(e.index) : opnd_cond(e.cond);
    return true;
}
