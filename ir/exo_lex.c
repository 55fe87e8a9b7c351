/* The lexer of .exo: bytes to tokens, with Python's lines and indentation.
 *
 * A logical line ends at a newline outside brackets; a change of indentation
 * gives indent and dedent tokens. Blank lines and comments give none; the text
 * of comments is kept aside until the parser takes it for the statement that
 * follows. A line that can only start a statement ends a bracket that was
 * never closed, so that one missing `)` does not swallow the file. */
#include "ir/exo_ast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const keywords[] = {
    "def", "for", "in",  "if",    "elif",   "else", "with", "assert", "pass",
    "and", "or",  "not", "class", "import", "None", "True", "False"
};

/* Words that never stand at the start of a line inside brackets. */
static const char *const line_starters[] = { "def",    "for",   "with",
                                             "assert", "class", "import",
                                             "instr",  "memory" };

static bool is_name_start(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(int c)
{
    return is_name_start(c) || is_digit(c);
}

static Loc loc_at(const Lexer *lx, const char *p)
{
    return (Loc){ lx->file, lx->line, (uint32_t)(p - lx->line_start) + 1 };
}

static Diag *lex_error(Lexer *lx, const char *p, const char *message)
{
    lx->n_errors++;
    return diag_error(lx->ctx, loc_at(lx, p), "syntax", "%s", message);
}

void lexer_init(Lexer *lx, Ctx *ctx, Arena *arena, uint32_t file)
{
    size_t n;
    const char *text = ctx_source_text(ctx, file, &n);
    *lx = (Lexer){ .ctx = ctx,
                   .arena = arena,
                   .file = file,
                   .text = text,
                   .p = text,
                   .end = text + n,
                   .line_start = text,
                   .line = 1,
                   .at_line_start = true };
    VEC_PUSH(arena, &lx->indents, 0);
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        lx->p += 3;
    if (n > EXO_SOURCE_MAX) {
        Diag *d = lex_error(lx, text, "the file is too large");
        diag_note(ctx, d, (Loc){ 0, 0, 0 },
                  "expected at most %d bytes, found %zu", EXO_SOURCE_MAX, n);
        lx->p = lx->end;
    }
}

void lexer_done(Lexer *lx)
{
    strbuf_free(&lx->comment);
}

const char *lexer_take_comment(Lexer *lx)
{
    if (lx->comment.len == 0)
        return NULL;
    const char *s = ctx_intern_n(lx->ctx, lx->comment.data, lx->comment.len);
    lx->comment.len = 0;
    lx->comment.data[0] = 0;
    return s;
}

/* At a `#`: keeps the comment's text and stands at the end of the line. */
static void take_comment(Lexer *lx)
{
    const char *p = lx->p + 1;
    if (p < lx->end && *p == ' ')
        p++;
    const char *q = p;
    while (q < lx->end && *q != '\n')
        q++;
    lx->p = q;
    while (q > p && (q[-1] == ' ' || q[-1] == '\t' || q[-1] == '\r'))
        q--;
    if (memchr(p, 0, (size_t)(q - p)))
        return;
    if (lx->comment.len)
        strbuf_addc(&lx->comment, '\n');
    if (q > p)
        strbuf_addn(&lx->comment, p, (size_t)(q - p));
    else if (lx->comment.len == 0)
        strbuf_addc(&lx->comment, ' ');
}

static void next_line(Lexer *lx)
{
    lx->p++;
    lx->line++;
    lx->line_start = lx->p;
}

/* Spaces at the start of a line; a tab among them is an error. */
static unsigned measure_indent(Lexer *lx)
{
    const char *start = lx->p;
    bool tab = false;
    while (lx->p < lx->end &&
           (*lx->p == ' ' || *lx->p == '\t' || *lx->p == '\r')) {
        if (*lx->p == '\t' && !tab) {
            tab = true;
            start = lx->p;
        }
        lx->p++;
    }
    bool blank = lx->p == lx->end || *lx->p == '\n' || *lx->p == '#';
    if (tab && !blank) {
        Diag *d = lex_error(lx, start, "tab in indentation, expected spaces");
        diag_fix(lx->ctx, d, "indent with spaces only");
    }
    return (unsigned)(lx->p - lx->line_start);
}

/* Skips blank lines and comments to the first token of a line and compares its
 * indentation. True when *tok is an indent. */
static bool start_line(Lexer *lx, Tok *tok)
{
    unsigned column;
    for (;;) {
        column = measure_indent(lx);
        if (lx->p == lx->end) {
            column = 0;
            break;
        }
        if (*lx->p == '#')
            take_comment(lx);
        if (lx->p < lx->end && *lx->p == '\n') {
            next_line(lx);
            continue;
        }
        if (lx->p < lx->end)
            break;
    }
    lx->at_line_start = lx->p == lx->end;
    unsigned top = lx->indents.data[lx->indents.len - 1];
    if (column > top) {
        VEC_PUSH(lx->arena, &lx->indents, column);
        *tok = (Tok){ .kind = TOK_indent,
                      .loc = loc_at(lx, lx->p),
                      .text = lx->p };
        return true;
    }
    while (column < lx->indents.data[lx->indents.len - 1]) {
        lx->indents.len--;
        lx->dedents++;
    }
    if (column != lx->indents.data[lx->indents.len - 1]) {
        Diag *d = lex_error(lx, lx->p, "unindent matches no outer indentation");
        diag_fix(lx->ctx, d, "align it with the block it belongs to");
        VEC_PUSH(lx->arena, &lx->indents, column);
        lx->dedents--;
    }
    return false;
}

/* Inside brackets, at the start of a line: does a statement begin here? */
static bool starts_statement(const Lexer *lx)
{
    const char *p = lx->p;
    while (p < lx->end && *p == ' ')
        p++;
    for (size_t i = 0; i < sizeof line_starters / sizeof *line_starters; i++) {
        size_t n = strlen(line_starters[i]);
        if ((size_t)(lx->end - p) > n && memcmp(p, line_starters[i], n) == 0 &&
            p[n] == ' ')
            return true;
    }
    return false;
}

static Tok lex_name(Lexer *lx, Tok tok)
{
    while (lx->p < lx->end && is_name_char((unsigned char)*lx->p))
        lx->p++;
    tok.len = (size_t)(lx->p - tok.text);
    tok.s = ctx_intern_n(lx->ctx, tok.text, tok.len);
    tok.kind = TOK_name;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(tok.s, keywords[i]) == 0)
            tok.kind = TOK_keyword;
    return tok;
}

/* Digits, and a fraction or exponent for a float; `1..5` is a range. */
static Tok lex_number(Lexer *lx, Tok tok)
{
    const char *p = lx->p, *end = lx->end;
    bool is_float = false;
    while (p < end && is_digit((unsigned char)*p))
        p++;
    if (p < end && *p == '.' && !(p + 1 < end && p[1] == '.')) {
        is_float = true;
        p++;
        while (p < end && is_digit((unsigned char)*p))
            p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        if (q < end && (*q == '+' || *q == '-'))
            q++;
        if (q < end && is_digit((unsigned char)*q)) {
            is_float = true;
            while (q < end && is_digit((unsigned char)*q))
                q++;
            p = q;
        }
    }
    const char *tail = p;
    while (p < end && is_name_char((unsigned char)*p))
        p++;
    lx->p = p;
    tok.len = (size_t)(p - tok.text);
    tok.kind = is_float ? TOK_float : TOK_int;
    if (tail != p) {
        Diag *d = lex_error(lx, tok.text, "a number runs into a name");
        diag_fix(lx->ctx, d, "put a space or an operator between them");
        return tok;
    }
    char *digits = arena_strndup(lx->arena, tok.text, tok.len);
    errno = 0;
    if (is_float) {
        tok.f = strtod(digits, NULL);
        if (isinf(tok.f))
            lex_error(lx, tok.text, "float literal out of range of f64");
    } else {
        tok.i = strtoll(digits, NULL, 10);
        tok.f = (double)tok.i;
        if (errno == ERANGE)
            lex_error(lx, tok.text, "integer literal does not fit 64 bits");
    }
    return tok;
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte that the escape at lx->p means; stands at its last character. */
static char escaped(Lexer *lx)
{
    const char *p = ++lx->p;
    if (*p == 'x' && lx->end - p > 2 && hex_digit(p[1]) >= 0 &&
        hex_digit(p[2]) >= 0) {
        lx->p += 2;
        return (char)(hex_digit(p[1]) * 16 + hex_digit(p[2]));
    }
    return *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
}

static Tok lex_string(Lexer *lx, Tok tok)
{
    char quote = *lx->p++;
    StrBuf b = { 0 };
    while (lx->p < lx->end && *lx->p != quote && *lx->p != '\n') {
        if (*lx->p == '\\' && lx->p + 1 < lx->end && lx->p[1] != '\n')
            strbuf_addc(&b, escaped(lx));
        else
            strbuf_addc(&b, *lx->p);
        lx->p++;
    }
    if (lx->p == lx->end || *lx->p == '\n') {
        Diag *d = lex_error(lx, tok.text, "string without its closing quote");
        diag_fix(lx->ctx, d, "close it with %c on the same line", quote);
    } else {
        lx->p++;
    }
    if (b.len && memchr(b.data, 0, b.len))
        lex_error(lx, tok.text, "zero byte in a string");
    tok.kind = TOK_str;
    tok.s = ctx_intern_n(lx->ctx, strbuf_text(&b), b.len);
    tok.len = (size_t)(lx->p - tok.text);
    strbuf_free(&b);
    return tok;
}

static void count_bracket(Lexer *lx, Loc loc, char c)
{
    if (c == '(' || c == '[' || c == '{') {
        if (lx->brackets++ == 0)
            lx->bracket_loc = loc;
    } else if ((c == ')' || c == ']' || c == '}') && lx->brackets > 0) {
        lx->brackets--;
    }
}

/* An operator, or false after a report on bytes that start no token. */
static bool lex_op(Lexer *lx, Tok *tok)
{
    static const int pairs[] = { XOP_shift, XOP_le,         XOP_ge,   XOP_eq,
                                 XOP_ne,    XOP_add_assign, XOP_range };
    size_t left = (size_t)(lx->end - lx->p);
    tok->kind = TOK_op;
    tok->len = 1;
    tok->op = (unsigned char)*lx->p;
    if (left >= 3 && memcmp(lx->p, "...", 3) == 0) {
        tok->op = XOP_pack;
        tok->len = 3;
    } else if (left >= 2) {
        int two = EXO_OP2((unsigned char)lx->p[0], (unsigned char)lx->p[1]);
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            if (two == pairs[i]) {
                tok->op = two;
                tok->len = 2;
            }
    }
    if (tok->len == 1 && !strchr("()[]{},:.=<>+-*/%@~", *lx->p)) {
        const char *start = lx->p;
        while (lx->p < lx->end &&
               ((unsigned char)*lx->p >= 0x80 || (unsigned char)*lx->p < ' ') &&
               *lx->p != '\n')
            lx->p++;
        if (lx->p == start)
            lx->p++;
        unsigned char c = (unsigned char)*start;
        lx->n_errors++;
        diag_error(lx->ctx, loc_at(lx, start), "syntax",
                   c >= ' ' && c < 0x7f ? "unexpected character '%c'"
                                        : "unexpected byte 0x%02x",
                   c);
        return false;
    }
    count_bracket(lx, tok->loc, *lx->p);
    lx->p += tok->len;
    return true;
}

/* Over a newline inside brackets; false when the brackets were given up. */
static bool continue_line(Lexer *lx)
{
    next_line(lx);
    if (!starts_statement(lx))
        return true;
    if (!lx->recovering) {
        lx->n_errors++;
        Diag *d = diag_error(lx->ctx, lx->bracket_loc, "syntax",
                             "bracket is never closed");
        diag_note(lx->ctx, d, loc_at(lx, lx->p), "a statement begins here");
    }
    lx->brackets = 0;
    lx->at_line_start = true;
    return false;
}

/* Over blanks, comments and continued lines. True when a newline token is due.
 */
static bool skip_blanks(Lexer *lx)
{
    while (lx->p < lx->end) {
        char c = *lx->p;
        if (c == ' ' || c == '\t' || c == '\r') {
            lx->p++;
        } else if (c == '#') {
            take_comment(lx);
        } else if (c == '\\' && lx->p + 1 < lx->end && lx->p[1] == '\n') {
            lx->p++;
            next_line(lx);
        } else if (c != '\n') {
            return false;
        } else if (lx->brackets == 0) {
            return true;
        } else if (!continue_line(lx)) {
            return true;
        }
    }
    return false;
}

static Tok end_token(Lexer *lx)
{
    Tok tok = { .kind = TOK_end, .loc = loc_at(lx, lx->end), .text = lx->end };
    if (lx->brackets && !lx->recovering) {
        lx->n_errors++;
        diag_error(lx->ctx, lx->bracket_loc, "syntax",
                   "bracket is never closed");
    }
    lx->brackets = 0;
    if (!lx->at_line_start) {
        lx->at_line_start = true;
        tok.kind = TOK_newline;
    } else if (lx->indents.len > 1) {
        lx->indents.len--;
        tok.kind = TOK_dedent;
    }
    return tok;
}

Tok lexer_next(Lexer *lx)
{
    Tok tok = { .kind = TOK_end };
    for (;;) {
        if (lx->n_errors > EXO_ERRORS_MAX)
            lx->p = lx->end;
        if (lx->at_line_start && lx->p < lx->end && start_line(lx, &tok))
            return tok;
        if (lx->dedents) {
            lx->dedents--;
            return (Tok){ .kind = TOK_dedent,
                          .loc = loc_at(lx, lx->p),
                          .text = lx->p };
        }
        if (lx->p == lx->end)
            return end_token(lx);
        bool given_up = false;
        if (skip_blanks(lx)) {
            given_up = lx->at_line_start;
            tok = (Tok){ .kind = TOK_newline,
                         .loc = loc_at(lx, lx->p),
                         .text = lx->p };
            if (!given_up)
                next_line(lx);
            lx->at_line_start = true;
            return tok;
        }
        if (lx->p == lx->end)
            continue;
        tok = (Tok){ .loc = loc_at(lx, lx->p), .text = lx->p };
        unsigned char c = (unsigned char)*lx->p;
        if (is_name_start(c))
            return lex_name(lx, tok);
        if (is_digit(c) || (c == '.' && lx->p + 1 < lx->end &&
                            is_digit((unsigned char)lx->p[1])))
            return lex_number(lx, tok);
        if (c == '"' || c == '\'')
            return lex_string(lx, tok);
        if (lex_op(lx, &tok))
            return tok;
    }
}
