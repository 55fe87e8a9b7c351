/* Expressions of .exo: precedence climbing over Python's operators.
 *
 * From weak to strong: choice, or, and, not, comparisons and `in`, `..`, `>>`,
 * + -, * / % @, unary - ~, and calls, indexing and attributes. Types, memory
 * annotations and ring annotations are expressions too (`@` binds like `*`):
 * the builder tells them apart. */
#include "ir/exo_ast.h"

#include <string.h>

AstExpr *ast_new(ExoParser *p, AstKind kind, Loc loc, unsigned n)
{
    AstExpr *e = ARENA_NEW(p->arena, AstExpr);
    e->kind = kind;
    e->loc = loc;
    e->height = 1;
    e->n = n;
    e->args = ARENA_ARRAY(p->arena, AstExpr *, n);
    return e;
}

/* Sets the height from the operands; an expression too high is an error. */
static AstExpr *finish(ExoParser *p, AstExpr *e)
{
    for (unsigned i = 0; i < e->n; i++)
        if (e->args[i] && e->args[i]->height >= e->height)
            e->height = e->args[i]->height + 1;
    if (e->height <= EXO_NEST_MAX)
        return e;
    parser_error(p, e->loc, "expression nested deeper than %d", EXO_NEST_MAX);
    return NULL;
}

static AstExpr *binary(ExoParser *p, int op, Loc loc, AstExpr *a, AstExpr *b)
{
    if (!a || !b)
        return NULL;
    AstExpr *e = ast_new(p, AST_binary, loc, 2);
    e->op = op;
    e->args[0] = a;
    e->args[1] = b;
    return finish(p, e);
}

/* One level deeper, or an error. */
static bool enter(ExoParser *p)
{
    if (p->depth < EXO_NEST_MAX) {
        p->depth++;
        return true;
    }
    parser_error(p, p->tok.loc, "nested deeper than %d", EXO_NEST_MAX);
    return false;
}

/* A list item: an expression, with keywords `name = e`, with slices `a:b`. */
static AstExpr *parse_item(ExoParser *p, bool slices, bool keywords)
{
    Loc loc = p->tok.loc;
    AstExpr *e = NULL;
    if (!(slices && parser_at(p, ':'))) {
        e = parse_expr(p);
        if (!e)
            return NULL;
    }
    if (e && keywords && e->kind == AST_name && parser_take(p, '=')) {
        AstExpr *kw = ast_new(p, AST_keyword, loc, 1);
        kw->name = e->name;
        kw->args[0] = parse_expr(p);
        return kw->args[0] ? finish(p, kw) : NULL;
    }
    if (!slices || !parser_take(p, ':'))
        return e;
    AstExpr *slice = ast_new(p, AST_slice, loc, 2);
    slice->args[0] = e;
    if (!parser_at(p, ',') && !parser_at(p, ']')) {
        slice->args[1] = parse_expr(p);
        if (!slice->args[1])
            return NULL;
    }
    if (parser_at(p, ':')) {
        parser_error(p, p->tok.loc, "a slice has no step");
        return NULL;
    }
    return finish(p, slice);
}

static const char *closing_text(int close)
{
    return close == ')' ? ")" : close == ']' ? "]" : "}";
}

/* The items of parse_list; *comma tells whether one ended the list. */
static bool list_items(ExoParser *p, int close, bool slices, bool keywords,
                       unsigned *n, AstExpr ***out, bool *comma)
{
    VEC(AstExpr *) items = { 0 };
    *comma = false;
    while (!parser_at(p, close)) {
        AstExpr *e = parse_item(p, slices, keywords);
        if (!e)
            return false;
        VEC_PUSH(p->arena, &items, e);
        *comma = parser_take(p, ',');
        if (!*comma && !parser_at(p, close)) {
            parser_error(p, p->tok.loc, "expected , or %s, found %s",
                         closing_text(close), parser_found(p));
            return false;
        }
    }
    parser_advance(p);
    *n = (unsigned)items.len;
    *out = items.data;
    return true;
}

bool parse_list(ExoParser *p, int close, bool slices, bool keywords,
                unsigned *n, AstExpr ***out)
{
    bool comma;
    if (!enter(p))
        return false;
    bool ok = list_items(p, close, slices, keywords, n, out, &comma);
    p->depth--;
    return ok;
}

/* `(`, taken: a bracketed expression, or a tuple when there is a comma. */
static AstExpr *parse_paren(ExoParser *p, Loc loc)
{
    AstExpr *e = ast_new(p, AST_tuple, loc, 0);
    bool comma;
    if (!enter(p))
        return NULL;
    bool ok = list_items(p, ')', false, false, &e->n, &e->args, &comma);
    p->depth--;
    if (!ok)
        return NULL;
    if (e->n == 1 && !comma && e->args[0]->kind != AST_pack)
        return e->args[0];
    return finish(p, e);
}

static AstExpr *parse_bracketed(ExoParser *p, AstKind kind, int close, Loc loc)
{
    AstExpr *e = ast_new(p, kind, loc, 0);
    if (!parse_list(p, close, false, false, &e->n, &e->args))
        return NULL;
    return finish(p, e);
}

/* Adjacent strings are one string. */
static AstExpr *parse_string(ExoParser *p)
{
    AstExpr *e = ast_new(p, AST_str, p->tok.loc, 0);
    e->name = p->tok.s;
    parser_advance(p);
    if (p->tok.kind != TOK_str)
        return e;
    StrBuf b = { 0 };
    strbuf_add(&b, e->name);
    while (p->tok.kind == TOK_str) {
        strbuf_add(&b, p->tok.s);
        parser_advance(p);
    }
    e->name = ctx_intern_n(p->ctx, b.data ? b.data : "", b.len);
    strbuf_free(&b);
    return e;
}

static AstExpr *parse_keyword(ExoParser *p)
{
    static const struct {
        const char *word;
        AstKind kind;
        int64_t i;
    } words[] = { { "None", AST_none, 0 },
                  { "True", AST_bool, 1 },
                  { "False", AST_bool, 0 } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!parser_at_keyword(p, words[i].word))
            continue;
        AstExpr *e = ast_new(p, words[i].kind, p->tok.loc, 0);
        e->i = words[i].i;
        parser_advance(p);
        return e;
    }
    parser_error(p, p->tok.loc, "expected an expression, found %s",
                 parser_found(p));
    return NULL;
}

static AstExpr *parse_atom(ExoParser *p)
{
    Loc loc = p->tok.loc;
    AstExpr *e;
    switch (p->tok.kind) {
    case TOK_int:
    case TOK_float:
        e = ast_new(p, p->tok.kind == TOK_int ? AST_int : AST_float, loc, 0);
        e->i = p->tok.i;
        e->f = p->tok.f;
        parser_advance(p);
        return e;
    case TOK_str:
        return parse_string(p);
    case TOK_name:
        e = ast_new(p, AST_name, loc, 0);
        e->name = p->tok.s;
        parser_advance(p);
        if (parser_take(p, XOP_pack))
            e->kind = AST_pack;
        return e;
    case TOK_keyword:
        return parse_keyword(p);
    default:
        break;
    }
    if (parser_take(p, '('))
        return parse_paren(p, loc);
    if (parser_take(p, '['))
        return parse_bracketed(p, AST_list, ']', loc);
    if (parser_take(p, '{'))
        return parse_bracketed(p, AST_set, '}', loc);
    parser_error(p, loc, "expected an expression, found %s", parser_found(p));
    return NULL;
}

/* e(..) or e[..]: the opening bracket is taken. */
static AstExpr *parse_arguments(ExoParser *p, AstExpr *e, bool call)
{
    unsigned n;
    AstExpr **items;
    if (!parse_list(p, call ? ')' : ']', !call, call, &n, &items))
        return NULL;
    if (!call && n == 0) {
        parser_error(p, e->loc, "expected an index between [ and ]");
        return NULL;
    }
    AstExpr *r = ast_new(p, call ? AST_call : AST_index, e->loc, n + 1);
    r->args[0] = e;
    if (n)
        memcpy(r->args + 1, items, n * sizeof *items);
    return finish(p, r);
}

static AstExpr *parse_postfix(ExoParser *p)
{
    AstExpr *e = parse_atom(p);
    while (e) {
        if (parser_take(p, '(')) {
            e = parse_arguments(p, e, true);
        } else if (parser_take(p, '[')) {
            e = parse_arguments(p, e, false);
        } else if (parser_take(p, '.')) {
            if (p->tok.kind != TOK_name) {
                parser_error(p, p->tok.loc,
                             "expected a name after '.', found "
                             "%s",
                             parser_found(p));
                return NULL;
            }
            AstExpr *r = ast_new(p, AST_attr, e->loc, 1);
            r->args[0] = e;
            r->name = p->tok.s;
            parser_advance(p);
            e = finish(p, r);
        } else {
            break;
        }
    }
    return e;
}

static AstExpr *parse_unary(ExoParser *p)
{
    int op = parser_at(p, '-') ? '-' : parser_at(p, '~') ? '~' : 0;
    if (!op)
        return parse_postfix(p);
    AstExpr *e = ast_new(p, AST_unary, p->tok.loc, 1);
    e->op = op;
    parser_advance(p);
    if (!enter(p))
        return NULL;
    e->args[0] = parse_unary(p);
    p->depth--;
    return e->args[0] ? finish(p, e) : NULL;
}

/* The binary operators of the levels below comparisons, weakest first. */
static const int levels[4][4] = {
    { XOP_range }, { XOP_shift }, { '+', '-' }, { '*', '/', '%', '@' }
};

static int operator_of(const ExoParser *p, const int *ops)
{
    for (int i = 0; i < 4 && ops[i]; i++)
        if (parser_at(p, ops[i]))
            return ops[i];
    return 0;
}

static AstExpr *parse_level(ExoParser *p, int level)
{
    if (level == 4)
        return parse_unary(p);
    AstExpr *a = parse_level(p, level + 1);
    int op;
    while (a && (op = operator_of(p, levels[level])) != 0) {
        Loc loc = p->tok.loc;
        parser_advance(p);
        AstExpr *b = parse_level(p, level + 1);
        a = binary(p, op, loc, a, b);
    }
    return a;
}

static int comparison_of(const ExoParser *p)
{
    static const int ops[] = { '<', '>', XOP_le, XOP_ge, XOP_eq, XOP_ne };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (parser_at(p, ops[i]))
            return ops[i];
    return parser_at_keyword(p, "in") ? XOP_in : 0;
}

static AstExpr *parse_comparison(ExoParser *p)
{
    AstExpr *a = parse_level(p, 0);
    int op = a ? comparison_of(p) : 0;
    if (!op)
        return a;
    Loc loc = p->tok.loc;
    parser_advance(p);
    AstExpr *b = parse_level(p, 0);
    a = binary(p, op, loc, a, b);
    if (a && comparison_of(p)) {
        Diag *d = parser_error(p, p->tok.loc, "comparisons do not chain");
        if (d)
            diag_fix(p->ctx, d, "join two comparisons with and");
        return NULL;
    }
    return a;
}

static AstExpr *parse_not(ExoParser *p)
{
    Loc loc = p->tok.loc;
    if (!parser_take_keyword(p, "not"))
        return parse_comparison(p);
    if (!enter(p))
        return NULL;
    AstExpr *e = ast_new(p, AST_unary, loc, 1);
    e->op = XOP_not;
    e->args[0] = parse_not(p);
    p->depth--;
    return e->args[0] ? finish(p, e) : NULL;
}

static AstExpr *parse_and(ExoParser *p)
{
    AstExpr *a = parse_not(p);
    Loc loc = p->tok.loc;
    while (a && parser_take_keyword(p, "and")) {
        AstExpr *b = parse_not(p);
        a = binary(p, XOP_and, loc, a, b);
        loc = p->tok.loc;
    }
    return a;
}

static AstExpr *parse_or(ExoParser *p)
{
    AstExpr *a = parse_and(p);
    Loc loc = p->tok.loc;
    while (a && parser_take_keyword(p, "or")) {
        AstExpr *b = parse_and(p);
        a = binary(p, XOP_or, loc, a, b);
        loc = p->tok.loc;
    }
    return a;
}

AstExpr *parse_expr(ExoParser *p)
{
    if (!enter(p))
        return NULL;
    AstExpr *a = parse_or(p);
    Loc loc = p->tok.loc;
    if (a && parser_take_keyword(p, "if")) {
        AstExpr *e = ast_new(p, AST_choice, loc, 3);
        e->args[0] = a;
        e->args[1] = parse_or(p);
        if (e->args[1] && !parser_take_keyword(p, "else"))
            parser_error(p, p->tok.loc, "expected else, found %s",
                         parser_found(p));
        e->args[2] = e->args[1] && !p->bad ? parse_expr(p) : NULL;
        a = e->args[2] ? finish(p, e) : NULL;
    }
    p->depth--;
    return a;
}
