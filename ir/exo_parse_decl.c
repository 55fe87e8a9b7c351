/* Declarations of .exo: procedures, configurations, imports, entries.
 *
 * An entry's clauses are read without knowing what they mean: a keyword, an
 * expression or several, a guard behind `when`, values or a block behind `:`.
 * The library gives them their meaning. */
#include "ir/exo_ast.h"

#include <string.h>

/* ---- declarations ------------------------------------------------------ */

/* NAME [...] : type [= default], .. up to the closing bracket. */
static bool parse_params(ExoParser *p, int close, AstParam **out)
{
    while (!parser_take(p, close)) {
        if (p->tok.kind != TOK_name) {
            parser_error(p, p->tok.loc, "expected a parameter's name, found %s",
                         parser_found(p));
            return false;
        }
        AstParam *a = ARENA_NEW(p->arena, AstParam);
        a->name = p->tok.s;
        a->loc = p->tok.loc;
        parser_advance(p);
        a->pack = parser_take(p, XOP_pack);
        if (!parser_expect(p, ':', "the parameter's name"))
            return false;
        a->type = parse_expr(p);
        if (a->type && parser_take(p, '='))
            a->init = parse_expr(p);
        if (p->bad)
            return false;
        *out = a;
        out = &a->next;
        if (!parser_take(p, ',') && !parser_at(p, close)) {
            parser_error(p, p->tok.loc,
                         "expected , or %s after a parameter, "
                         "found %s",
                         close == ')' ? ")" : "]", parser_found(p));
            return false;
        }
    }
    return true;
}

static bool parse_decl_name(ExoParser *p, AstDecl *d, const char *after)
{
    if (p->tok.kind != TOK_name) {
        parser_error(p, p->tok.loc, "expected a name after %s, found %s", after,
                     parser_found(p));
        return false;
    }
    d->name = p->tok.s;
    d->loc = p->tok.loc;
    parser_advance(p);
    return true;
}

/* The `{n}suffix` of a family's name. */
static bool parse_family(ExoParser *p, AstDecl *d)
{
    if (!parser_take(p, '{'))
        return true;
    if (p->tok.kind != TOK_name) {
        parser_error(p, p->tok.loc,
                     "expected the family's variable after '{', "
                     "found %s",
                     parser_found(p));
        return false;
    }
    d->var = p->tok.s;
    d->suffix = "";
    parser_advance(p);
    if (!parser_expect(p, '}', "the family's variable"))
        return false;
    if (p->tok.kind == TOK_name && p->tok.text == p->last_end) {
        d->suffix = p->tok.s;
        parser_advance(p);
    }
    return true;
}

/* e or e, e, ..: several make a tuple. */
static AstExpr *parse_head(ExoParser *p)
{
    AstExpr *e = parse_expr(p);
    if (!e || !parser_at(p, ','))
        return e;
    VEC(AstExpr *) items = { 0 };
    VEC_PUSH(p->arena, &items, e);
    while (parser_take(p, ',')) {
        AstExpr *more = parse_expr(p);
        if (!more)
            return NULL;
        VEC_PUSH(p->arena, &items, more);
    }
    AstExpr *t = ast_new(p, AST_tuple, e->loc, (unsigned)items.len);
    memcpy(t->args, items.data, items.len * sizeof *items.data);
    t->height = EXO_NEST_MAX < e->height + 1 ? EXO_NEST_MAX : e->height + 1;
    return t;
}

/* What follows the ':' of a clause: values on the line, or a block. */
static void parse_clause_values(ExoParser *p, AstClause *c)
{
    if (p->tok.kind == TOK_newline) {
        parser_advance(p);
        if (p->tok.kind != TOK_indent) {
            parser_error(p, p->tok.loc,
                         "expected an indented block after %s:", c->key);
            return;
        }
        c->body = parse_indented(p);
        return;
    }
    VEC(AstExpr *) values = { 0 };
    do {
        AstExpr *e = parse_expr(p);
        if (!e)
            break;
        VEC_PUSH(p->arena, &values, e);
    } while (parser_take(p, ','));
    c->n = (unsigned)values.len;
    c->values = values.data;
    parser_expect_newline(p, "the clause");
}

static AstClause *parse_clause(ExoParser *p)
{
    AstClause *c = ARENA_NEW(p->arena, AstClause);
    c->loc = p->tok.loc;
    p->bad = false;
    p->comment = NULL;
    lexer_take_comment(&p->lx);
    if (p->tok.kind != TOK_name) {
        parser_error(p, p->tok.loc, "expected a clause of the entry, found %s",
                     parser_found(p));
    } else {
        c->key = p->tok.s;
        parser_advance(p);
        if (!parser_at(p, ':') && p->tok.kind != TOK_newline)
            c->head = parse_head(p);
        if (!p->bad && parser_at_name(p, "when")) {
            parser_advance(p);
            c->guard = parse_expr(p);
        }
        if (!p->bad && parser_take(p, ':'))
            parse_clause_values(p, c);
        else
            parser_expect_newline(p, "the clause");
    }
    if (p->bad)
        parser_recover(p, true);
    return c;
}

/* `:` and the indented clauses of an entry. */
static void parse_clauses(ExoParser *p, AstDecl *d)
{
    AstClause **tail = &d->clauses;
    if (!parser_expect(p, ':', "the entry's head") ||
        !parser_expect_newline(p, "':'")) {
        parser_recover(p, true);
        return;
    }
    if (p->tok.kind != TOK_indent) {
        parser_error(p, p->tok.loc, "expected the entry's clauses, found %s",
                     parser_found(p));
        return;
    }
    parser_advance(p);
    bool any_bad = false;
    while (p->tok.kind != TOK_dedent && p->tok.kind != TOK_end &&
           !parser_given_up(p)) {
        *tail = parse_clause(p);
        any_bad |= p->bad;
        tail = &(*tail)->next;
    }
    if (p->tok.kind == TOK_dedent)
        parser_advance(p);
    p->bad = any_bad;
}

static void parse_proc(ExoParser *p, AstDecl *d)
{
    d->kind = AST_proc;
    if (!parse_decl_name(p, d, "def") ||
        !parser_expect(p, '(', "the procedure's name") ||
        !parse_params(p, ')', &d->params)) {
        parser_recover(p, true);
        return;
    }
    d->body = parse_block(p, "the parameters");
}

static void parse_config(ExoParser *p, AstDecl *d)
{
    d->kind = AST_config;
    AstParam **tail = &d->params;
    if (!parse_decl_name(p, d, "class") ||
        !parser_expect(p, ':', "the configuration's name") ||
        !parser_expect_newline(p, "':'")) {
        parser_recover(p, true);
        return;
    }
    if (p->tok.kind != TOK_indent) {
        parser_error(p, p->tok.loc, "expected the configuration's fields");
        return;
    }
    AstStmt *s = parse_indented(p);
    for (; s; s = s->next) {
        if (s->kind != AST_alloc) {
            parser_error(p, s->loc, "expected a field, NAME: type");
            continue;
        }
        AstParam *a = ARENA_NEW(p->arena, AstParam);
        a->name = s->name;
        a->loc = s->loc;
        a->type = s->a;
        *tail = a;
        tail = &a->next;
    }
}

static void parse_entry(ExoParser *p, AstDecl *d, AstDeclKind kind)
{
    static const char *const words[] = {
        [AST_instr] = "instr", [AST_memory] = "memory", [AST_unit] = "unit"
    };
    d->kind = kind;
    bool ok = parse_decl_name(p, d, words[kind]);
    if (ok && kind == AST_instr)
        ok = parse_family(p, d);
    if (ok && parser_take(p, '['))
        ok = parse_params(p, ']', &d->tparams);
    if (ok && kind == AST_instr)
        ok = parser_expect(p, '(', "the instruction's name") &&
             parse_params(p, ')', &d->params);
    if (!ok) {
        parser_recover(p, true);
    } else if (kind == AST_unit) {
        if (parser_expect(p, '=', "the unit's name"))
            d->value = parse_expr(p);
        parser_expect_newline(p, "the unit");
        if (p->bad)
            parser_recover(p, true);
    } else {
        parse_clauses(p, d);
    }
}

static void parse_import(ExoParser *p, AstDecl *d)
{
    d->kind = AST_import;
    if (p->tok.kind != TOK_str) {
        Diag *e = parser_error(p, p->tok.loc,
                               "expected a file's name in "
                               "quotes after import, found %s",
                               parser_found(p));
        if (e)
            diag_fix(p->ctx, e, "write import \"mine.exo\"");
        parser_recover(p, true);
        return;
    }
    d->name = p->tok.s;
    parser_advance(p);
    parser_expect_newline(p, "import");
    if (p->bad)
        parser_recover(p, true);
}

/* @proc, @config, @imported: lines before a declaration. */
static void parse_decorators(ExoParser *p, AstDecl *d)
{
    while (parser_take(p, '@')) {
        bool known = parser_at_name(p, "proc") || parser_at_name(p, "config");
        if (parser_at_name(p, "imported"))
            known = d->imported = true;
        if (!known) {
            parser_error(p, p->tok.loc,
                         "expected @proc, @config or @imported, "
                         "found %s",
                         parser_found(p));
            parser_recover(p, true);
            return;
        }
        parser_advance(p);
        parser_expect_newline(p, "the decorator");
        if (p->bad)
            parser_recover(p, true);
    }
}

AstDecl *parse_decl(ExoParser *p)
{
    AstDecl *d = ARENA_NEW(p->arena, AstDecl);
    p->bad = false;
    d->loc = p->tok.loc;
    d->text = p->tok.text;
    d->comment = lexer_take_comment(&p->lx);
    p->comment = &d->comment;
    parse_decorators(p, d);
    if (p->bad)
        ;
    else if (parser_take_keyword(p, "def"))
        parse_proc(p, d);
    else if (parser_take_keyword(p, "class"))
        parse_config(p, d);
    else if (parser_take_keyword(p, "import"))
        parse_import(p, d);
    else if (parser_at_name(p, "instr"))
        parser_advance(p), parse_entry(p, d, AST_instr);
    else if (parser_at_name(p, "memory"))
        parser_advance(p), parse_entry(p, d, AST_memory);
    else if (parser_at_name(p, "unit"))
        parser_advance(p), parse_entry(p, d, AST_unit);
    else {
        parser_error(p, p->tok.loc,
                     "expected def, class, import, instr, "
                     "memory or unit, found %s",
                     parser_found(p));
        if (p->tok.kind == TOK_indent)
            parse_indented(p);
        else
            parser_recover(p, true);
        p->bad = true;
    }
    d->broken = p->bad;
    d->len = p->last_end > d->text ? (size_t)(p->last_end - d->text) : 0;
    return d;
}

AstDecl *exo_syntax(Ctx *ctx, Arena *arena, uint32_t file, bool *ok)
{
    ExoParser p = { .ctx = ctx, .arena = arena };
    AstDecl *first = NULL, **tail = &first;
    lexer_init(&p.lx, ctx, arena, file);
    p.last_end = p.lx.text;
    parser_advance(&p);
    while (p.tok.kind != TOK_end && !parser_given_up(&p)) {
        if (p.tok.kind == TOK_newline || p.tok.kind == TOK_dedent) {
            parser_advance(&p);
            continue;
        }
        *tail = parse_decl(&p);
        tail = &(*tail)->next;
    }
    *ok = p.n_errors == 0 && p.lx.n_errors == 0;
    lexer_done(&p.lx);
    return first;
}

static void open_text(ExoParser *p, Ctx *ctx, Arena *arena, Loc at,
                      const char *text, size_t n)
{
    const char *copy = arena_strndup(arena, text, n);
    *p = (ExoParser){ .ctx = ctx, .arena = arena };
    lexer_init(&p->lx, ctx, arena, at.file);
    p->lx.text = p->lx.p = p->lx.line_start = copy;
    p->lx.end = copy + n;
    p->lx.line = at.line;
    p->lx.at_line_start = false;
    p->last_end = copy;
    parser_advance(p);
}

AstStmt *exo_syntax_stmt(Ctx *ctx, Arena *arena, Loc at, const char *text)
{
    ExoParser p;
    open_text(&p, ctx, arena, at, text, strlen(text));
    AstStmt *s = parse_one_stmt(&p);
    lexer_done(&p.lx);
    return p.n_errors || p.lx.n_errors || p.bad ? NULL : s;
}

AstExpr *exo_syntax_expr(Ctx *ctx, Arena *arena, Loc at, const char *text,
                         size_t n)
{
    ExoParser p;
    open_text(&p, ctx, arena, at, text, n);
    AstExpr *e = parse_expr(&p);
    if (e)
        parser_expect_newline(&p, "the expression");
    lexer_done(&p.lx);
    return p.n_errors || p.lx.n_errors ? NULL : e;
}
