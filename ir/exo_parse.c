/* Statements and declarations of .exo, and the parser's token handling.
 *
 * Recursive descent with one token of look-ahead. A statement reports one
 * error, then the parser goes on at the next line; the block below a broken
 * header is still parsed, for its own errors. */
#include "ir/exo_ast.h"

#include <string.h>

/* ---- tokens ------------------------------------------------------------ */

void parser_advance(ExoParser *p)
{
    if (p->tok.kind >= TOK_name)
        p->last_end = p->tok.text + p->tok.len;
    p->tok = lexer_next(&p->lx);
}

bool parser_at(const ExoParser *p, int op)
{
    return p->tok.kind == TOK_op && p->tok.op == op;
}

bool parser_at_keyword(const ExoParser *p, const char *word)
{
    return p->tok.kind == TOK_keyword && strcmp(p->tok.s, word) == 0;
}

static bool at_name(const ExoParser *p, const char *word)
{
    return p->tok.kind == TOK_name && strcmp(p->tok.s, word) == 0;
}

bool parser_take(ExoParser *p, int op)
{
    if (!parser_at(p, op))
        return false;
    parser_advance(p);
    return true;
}

bool parser_take_keyword(ExoParser *p, const char *word)
{
    if (!parser_at_keyword(p, word))
        return false;
    parser_advance(p);
    return true;
}

const char *parser_found(const ExoParser *p)
{
    const Tok *t = &p->tok;
    switch (t->kind) {
    case TOK_end:
        return "the end of the file";
    case TOK_newline:
        return "the end of the line";
    case TOK_indent:
        return "deeper indentation";
    case TOK_dedent:
        return "the end of the block";
    default: {
        int n = t->len > 40 ? 40 : (int)t->len;
        return arena_printf(p->arena, "'%.*s'", n, t->text);
    }
    }
}

Diag *parser_error(ExoParser *p, Loc loc, const char *fmt, ...)
{
    if (p->bad)
        return NULL;
    p->bad = true;
    p->n_errors++;
    va_list ap;
    va_start(ap, fmt);
    const char *message = arena_vprintf(p->arena, fmt, ap);
    va_end(ap);
    Diag *d = diag_error(p->ctx, loc, "syntax", "%s", message);
    if (p->lx.brackets && p->lx.bracket_loc.line < loc.line)
        diag_note(p->ctx, d, p->lx.bracket_loc,
                  "inside the bracket that opens "
                  "here");
    return d;
}

static const char *op_text(ExoParser *p, int op)
{
    char text[4] = { 0 };
    int n = 0;
    for (int shift = 16; shift >= 0; shift -= 8)
        if (op >> shift & 0xff)
            text[n++] = (char)(op >> shift & 0xff);
    return arena_strdup(p->arena, text);
}

bool parser_expect(ExoParser *p, int op, const char *after)
{
    if (parser_take(p, op))
        return true;
    parser_error(p, p->tok.loc, "expected '%s' after %s, found %s",
                 op_text(p, op), after, parser_found(p));
    return false;
}

/* A comment at the end of the line joins those above the statement. */
static void join_comment(ExoParser *p)
{
    const char *more = lexer_take_comment(&p->lx);
    if (!more || !p->comment)
        return;
    const char *old = *p->comment;
    *p->comment = ctx_intern(
        p->ctx, old ? arena_printf(p->arena, "%s\n%s", old, more) : more);
}

bool parser_expect_newline(ExoParser *p, const char *after)
{
    if (p->bad)
        return false;
    if (p->tok.kind == TOK_newline) {
        join_comment(p);
        parser_advance(p);
        return true;
    }
    if (p->tok.kind == TOK_end)
        return true;
    parser_error(p, p->tok.loc,
                 "expected the end of the line after %s, found "
                 "%s",
                 after, parser_found(p));
    return false;
}

static bool given_up(const ExoParser *p)
{
    return p->n_errors > EXO_ERRORS_MAX || p->lx.n_errors > EXO_ERRORS_MAX;
}

static AstStmt *parse_stmts(ExoParser *p);

/* The indented lines at an indent token. */
static AstStmt *parse_indented(ExoParser *p)
{
    if (p->depth >= EXO_NEST_MAX) {
        p->bad = false;
        parser_error(p, p->tok.loc, "nested deeper than %d", EXO_NEST_MAX);
        p->n_errors += EXO_ERRORS_MAX;
        return NULL;
    }
    parser_advance(p);
    p->depth++;
    AstStmt *s = parse_stmts(p);
    p->depth--;
    if (p->tok.kind == TOK_dedent)
        parser_advance(p);
    return s;
}

void parser_recover(ExoParser *p, bool block)
{
    p->lx.recovering = true;
    while (p->tok.kind != TOK_newline && p->tok.kind != TOK_end &&
           p->tok.kind != TOK_dedent && p->tok.kind != TOK_indent)
        parser_advance(p);
    p->lx.recovering = false;
    if (p->tok.kind == TOK_newline)
        parser_advance(p);
    lexer_take_comment(&p->lx);
    if (block && p->tok.kind == TOK_indent && !given_up(p))
        parse_indented(p);
    p->bad = true;
}

AstStmt *parse_block(ExoParser *p, const char *after)
{
    if (!parser_expect(p, ':', after) || !parser_expect_newline(p, "':'")) {
        parser_recover(p, true);
        return NULL;
    }
    if (p->tok.kind != TOK_indent) {
        parser_error(p, p->tok.loc,
                     "expected an indented block after %s, "
                     "found %s",
                     after, parser_found(p));
        return NULL;
    }
    return parse_indented(p);
}

/* ---- statements -------------------------------------------------------- */

static AstStmt *stmt_new(ExoParser *p, AstStmtKind kind, Loc loc)
{
    AstStmt *s = ARENA_NEW(p->arena, AstStmt);
    s->kind = kind;
    s->loc = loc;
    return s;
}

static bool parse_for_header(ExoParser *p, AstStmt *s)
{
    if (p->tok.kind != TOK_name) {
        parser_error(p, p->tok.loc,
                     "expected an iterator's name after for, "
                     "found %s",
                     parser_found(p));
        return false;
    }
    s->name = p->tok.s;
    s->name_loc = p->tok.loc;
    parser_advance(p);
    s->pack = parser_take(p, XOP_pack);
    if (!parser_take_keyword(p, "in")) {
        parser_error(p, p->tok.loc, "expected in after the iterator, found %s",
                     parser_found(p));
        return false;
    }
    s->a = parse_expr(p);
    return s->a != NULL;
}

/* else or elif after the block of s. */
static void parse_else(ExoParser *p, AstStmt *s)
{
    unsigned depth = p->depth;
    for (;;) {
        Loc loc = p->tok.loc;
        if (parser_take_keyword(p, "else")) {
            s->orelse = parse_block(p, "else");
            break;
        }
        if (!parser_take_keyword(p, "elif"))
            break;
        if (p->depth >= EXO_NEST_MAX) {
            parser_error(p, loc, "nested deeper than %d", EXO_NEST_MAX);
            p->n_errors += EXO_ERRORS_MAX;
            break;
        }
        p->depth++;
        AstStmt *inner = stmt_new(p, AST_if, loc);
        inner->a = parse_expr(p);
        if (!inner->a) {
            parser_recover(p, true);
            break;
        }
        inner->body = parse_block(p, "the condition");
        s->orelse = inner;
        s = inner;
    }
    p->depth = depth;
}

/* for, if and with: the keyword is taken. */
static void parse_compound(ExoParser *p, AstStmt *s)
{
    bool ok;
    if (s->kind == AST_for) {
        ok = parse_for_header(p, s);
    } else {
        s->a = parse_expr(p);
        ok = s->a != NULL;
    }
    if (ok && s->kind == AST_with && parser_at(p, ',')) {
        parser_error(p, p->tok.loc, "expected 1 withitem, found more");
        ok = false;
    }
    if (ok && s->kind == AST_with && at_name(p, "as")) {
        parser_error(p, p->tok.loc, "with binds no name, found 'as'");
        ok = false;
    }
    if (!ok) {
        parser_recover(p, true);
        return;
    }
    s->body = parse_block(p, s->kind == AST_for  ? "the loop's range"
                             : s->kind == AST_if ? "the condition"
                                                 : "with");
    if (s->kind == AST_if)
        parse_else(p, s);
}

/* An assignment, allocation, call or synchronisation. */
static void parse_simple(ExoParser *p, AstStmt *s)
{
    s->a = parse_expr(p);
    if (!s->a)
        return;
    s->name_loc = s->a->loc;
    if (parser_take(p, '=')) {
        s->kind = AST_assign;
    } else if (parser_take(p, XOP_add_assign)) {
        s->kind = AST_reduce;
    } else if (parser_take(p, ':')) {
        if (s->a->kind != AST_name) {
            parser_error(p, s->a->loc,
                         "expected a plain name before ':' of an "
                         "allocation");
            return;
        }
        s->kind = AST_alloc;
        s->name = s->a->name;
        s->a = parse_expr(p);
    } else {
        s->kind = AST_expr;
    }
    if (s->kind == AST_assign || s->kind == AST_reduce) {
        s->b = parse_expr(p);
        if (s->b && parser_at(p, '='))
            parser_error(p, p->tok.loc, "assignments do not chain");
    }
    parser_expect_newline(p, "the statement");
}

/* Words that begin what .exo does not have, with what to write instead. */
static bool refuse_python(ExoParser *p)
{
    static const struct {
        const char *word, *fix;
    } words[] = {
        { "while", "write for i in seq(lo, hi)" },
        { "return", "a procedure writes its results to its tensors" },
        { "def", "procedures stand at the top of the file" },
        { "class", "configurations stand at the top of the file" },
        { "import", "imports stand at the top of the file" },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (p->tok.kind > TOK_keyword || p->tok.kind < TOK_name ||
            strcmp(p->tok.s, words[i].word) != 0)
            continue;
        if (p->tok.kind == TOK_name && p->lx.p < p->lx.end &&
            (*p->lx.p == '[' || *p->lx.p == ':'))
            return false;
        Diag *d = parser_error(p, p->tok.loc,
                               "expected a statement, found "
                               "'%s'",
                               words[i].word);
        if (d)
            diag_fix(p->ctx, d, "%s", words[i].fix);
        return true;
    }
    return false;
}

static AstStmt *parse_stmt(ExoParser *p)
{
    static const struct {
        const char *word;
        AstStmtKind kind;
    } words[] = { { "for", AST_for },
                  { "if", AST_if },
                  { "with", AST_with },
                  { "assert", AST_assert },
                  { "pass", AST_pass } };
    AstStmt *s = stmt_new(p, AST_expr, p->tok.loc);
    s->comment = lexer_take_comment(&p->lx);
    p->comment = &s->comment;
    p->bad = false;
    if (p->tok.kind == TOK_indent) {
        parser_error(p, p->tok.loc, "unexpected indentation");
        parse_indented(p);
        p->bad = true;
        return s;
    }
    if (refuse_python(p)) {
        parser_recover(p, true);
        return s;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!parser_take_keyword(p, words[i].word))
            continue;
        s->kind = words[i].kind;
        if (s->kind <= AST_with) {
            parse_compound(p, s);
            return s;
        }
        if (s->kind == AST_assert) {
            s->a = parse_expr(p);
            if (s->a && parser_take(p, ','))
                parse_expr(p);
        }
        parser_expect_newline(p, words[i].word);
        if (p->bad)
            parser_recover(p, false);
        return s;
    }
    parse_simple(p, s);
    if (p->bad)
        parser_recover(p, true);
    return s;
}

/* Statements up to the end of the block. Broken ones are dropped. */
static AstStmt *parse_stmts(ExoParser *p)
{
    AstStmt *first = NULL, **tail = &first;
    bool any_bad = false;
    while (p->tok.kind != TOK_dedent && p->tok.kind != TOK_end &&
           !given_up(p)) {
        AstStmt *s = parse_stmt(p);
        any_bad |= p->bad;
        p->comment = NULL;
        if (!p->bad) {
            *tail = s;
            tail = &s->next;
        }
    }
    p->bad = any_bad;
    return first;
}

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
        if (!p->bad && at_name(p, "when")) {
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
           !given_up(p)) {
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
        bool known = at_name(p, "proc") || at_name(p, "config");
        if (at_name(p, "imported"))
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
    else if (at_name(p, "instr"))
        parser_advance(p), parse_entry(p, d, AST_instr);
    else if (at_name(p, "memory"))
        parser_advance(p), parse_entry(p, d, AST_memory);
    else if (at_name(p, "unit"))
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
    while (p.tok.kind != TOK_end && !given_up(&p)) {
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

AstExpr *exo_syntax_expr(Ctx *ctx, Arena *arena, Loc at, const char *text,
                         size_t n)
{
    ExoParser p = { .ctx = ctx, .arena = arena };
    const char *copy = arena_strndup(arena, text, n);
    lexer_init(&p.lx, ctx, arena, at.file);
    p.lx.text = p.lx.p = p.lx.line_start = copy;
    p.lx.end = copy + n;
    p.lx.line = at.line;
    p.lx.at_line_start = false;
    p.last_end = copy;
    parser_advance(&p);
    AstExpr *e = parse_expr(&p);
    if (e)
        parser_expect_newline(&p, "the expression");
    lexer_done(&p.lx);
    return p.n_errors || p.lx.n_errors ? NULL : e;
}
