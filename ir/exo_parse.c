/* Statements of .exo, and the parser's token handling.
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

bool parser_at_name(const ExoParser *p, const char *word)
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

/* Both comments, either of which may be NULL. */
static const char *comments_of(ExoParser *p, const char *a, const char *b)
{
    return a && b ? ctx_intern(p->ctx, arena_printf(p->arena, "%s\n%s", a, b))
                  : (a ? a : b);
}

/* A comment at the end of the line joins those above the statement. */
static void join_comment(ExoParser *p)
{
    const char *more = lexer_take_comment(&p->lx);
    if (more && p->comment)
        *p->comment = comments_of(p, *p->comment, more);
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

bool parser_given_up(const ExoParser *p)
{
    return p->n_errors > EXO_ERRORS_MAX || p->lx.n_errors > EXO_ERRORS_MAX;
}

static AstStmt *parse_stmts(ExoParser *p);

AstStmt *parse_indented(ExoParser *p)
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
    if (block && p->tok.kind == TOK_indent && !parser_given_up(p))
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

/* The block of an else. Comments before it and in its line, which has no
 * statement of its own, go to the first of the block. */
static AstStmt *parse_else_block(ExoParser *p)
{
    const char *comment = lexer_take_comment(&p->lx);
    p->comment = &comment;
    AstStmt *first = parse_block(p, "else");
    p->comment = NULL;
    if (first)
        first->comment = comments_of(p, comment, first->comment);
    return first;
}

/* else or elif after the block of s. */
static void parse_else(ExoParser *p, AstStmt *s)
{
    unsigned depth = p->depth;
    for (;;) {
        Loc loc = p->tok.loc;
        if (parser_take_keyword(p, "else")) {
            s->orelse = parse_else_block(p);
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
        inner->comment = lexer_take_comment(&p->lx);
        p->comment = &inner->comment;
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
    if (ok && s->kind == AST_with && parser_at_name(p, "as")) {
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

AstStmt *parse_one_stmt(ExoParser *p)
{
    AstStmt *s = parse_stmt(p);
    if (!p->bad && p->tok.kind != TOK_end)
        parser_error(p, p->tok.loc, "expected one statement, found %s",
                     parser_found(p));
    return s;
}

/* Statements up to the end of the block. Broken ones are dropped. */
static AstStmt *parse_stmts(ExoParser *p)
{
    AstStmt *first = NULL, **tail = &first;
    bool any_bad = false;
    while (p->tok.kind != TOK_dedent && p->tok.kind != TOK_end &&
           !parser_given_up(p)) {
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
