/* The .eir lexer: one pass over the bytes, one token at a time.
 *
 * Blanks and `//` comments separate tokens; lines that start with `//#` are
 * kept with the token that follows. Names are interned. */
#include "ir/eir_lex.h"

#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c)
{
    return is_alpha(c) || is_digit(c);
}

static char byte_at(const EirLexer *lx, size_t at)
{
    return at < lx->n ? lx->text[at] : '\0';
}

static void new_line(EirLexer *lx)
{
    lx->at++;
    lx->line++;
    lx->line_start = lx->at;
    lx->line_fresh = true;
}

static size_t line_end(const EirLexer *lx, size_t at)
{
    const char *end = memchr(lx->text + at, '\n', lx->n - at);
    return end ? (size_t)(end - lx->text) : lx->n;
}

/* Adds a line that begins with `//#`, without that and one blank. */
static void keep_comment(const EirLexer *lx, size_t end, StrBuf *kept)
{
    size_t at = lx->at + 3;
    if (at < end && lx->text[at] == ' ')
        at++;
    if (kept->data)
        strbuf_addc(kept, '\n');
    strbuf_addn(kept, lx->text + at, end - at);
}

/* Skips blanks and comments; gathers `//#` lines into `kept`. */
static void skip_blank(EirLexer *lx, StrBuf *kept)
{
    while (lx->at < lx->n) {
        char c = lx->text[lx->at];
        if (c == '\n') {
            new_line(lx);
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lx->at++;
        } else if (c == '/' && byte_at(lx, lx->at + 1) == '/') {
            size_t end = line_end(lx, lx->at);
            if (lx->line_fresh && byte_at(lx, lx->at + 2) == '#')
                keep_comment(lx, end, kept);
            lx->at = end;
        } else {
            return;
        }
    }
}

static void bad(EirLexer *lx, const char *what)
{
    lx->tok.kind = EIR_bad;
    lx->tok.text = what;
}

/* Letters, digits and, between words, dots. */
static const char *lex_name(EirLexer *lx, bool dots)
{
    size_t from = lx->at;
    while (is_word(byte_at(lx, lx->at)) ||
           (dots && byte_at(lx, lx->at) == '.' && lx->at > from &&
            is_alpha(byte_at(lx, lx->at + 1))))
        lx->at++;
    return ctx_intern_n(lx->ctx, lx->text + from, lx->at - from);
}

static void lex_sigil(EirLexer *lx, EirTok kind, bool dots)
{
    lx->at++;
    if (!is_word(byte_at(lx, lx->at))) {
        bad(lx, "a sigil without a name");
        return;
    }
    lx->tok.kind = kind;
    lx->tok.text = lex_name(lx, dots);
}

/* Reads decimal digits; false when they pass 64 bits. */
static bool lex_digits(EirLexer *lx, uint64_t *out)
{
    uint64_t u = 0;
    bool fits = true;
    for (; is_digit(byte_at(lx, lx->at)); lx->at++) {
        unsigned d = (unsigned)(lx->text[lx->at] - '0');
        if (u > (UINT64_MAX - d) / 10)
            fits = false;
        else
            u = u * 10 + d;
    }
    *out = u;
    return fits;
}

static bool at_exponent(const EirLexer *lx)
{
    char c = byte_at(lx, lx->at), d = byte_at(lx, lx->at + 1);
    if (c != 'e' && c != 'E')
        return false;
    return is_digit(d) ||
           ((d == '+' || d == '-') && is_digit(byte_at(lx, lx->at + 2)));
}

static void lex_fraction(EirLexer *lx, size_t from)
{
    if (byte_at(lx, lx->at) == '.')
        lx->at++;
    while (is_digit(byte_at(lx, lx->at)))
        lx->at++;
    if (at_exponent(lx)) {
        lx->at += 2;
        while (is_digit(byte_at(lx, lx->at)))
            lx->at++;
    }
    size_t n = lx->at - from;
    char digits[400];
    if (n >= sizeof digits) {
        bad(lx, "a number of more than 400 characters");
        return;
    }
    memcpy(digits, lx->text + from, n);
    digits[n] = '\0';
    lx->tok.kind = EIR_float;
    lx->tok.f = strtod(digits, NULL);
}

static void lex_number(EirLexer *lx)
{
    size_t from = lx->at;
    lx->tok.kind = EIR_int;
    bool fits = lex_digits(lx, &lx->tok.u);
    bool fraction =
        byte_at(lx, lx->at) == '.' && !is_alpha(byte_at(lx, lx->at + 1));
    if (fraction || at_exponent(lx))
        lex_fraction(lx, from);
    else if (!fits)
        bad(lx, "an integer of more than 64 bits");
    else if (is_alpha(byte_at(lx, lx->at)))
        bad(lx, "a number that runs into a name");
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* One escape, `at` behind the backslash; false when there is no such one. */
static bool lex_escape(EirLexer *lx, StrBuf *out)
{
    char c = byte_at(lx, lx->at++);
    switch (c) {
    case 'n':
        strbuf_addc(out, '\n');
        return true;
    case 't':
        strbuf_addc(out, '\t');
        return true;
    case '\\':
    case '\'':
    case '"':
        strbuf_addc(out, c);
        return true;
    case 'x': {
        int hi = hex_value(byte_at(lx, lx->at));
        int lo = hex_value(byte_at(lx, lx->at + 1));
        if (hi < 0 || lo < 0 || hi + lo == 0)
            return false;
        lx->at += 2;
        strbuf_addc(out, (char)(hi * 16 + lo));
        return true;
    }
    default:
        return false;
    }
}

static void lex_string(EirLexer *lx)
{
    char quote = lx->text[lx->at++];
    StrBuf s = { 0 };
    const char *fault = NULL;
    for (;;) {
        char c = byte_at(lx, lx->at);
        if (lx->at >= lx->n || c == '\n') {
            fault = "a string without its closing quote";
            break;
        }
        lx->at++;
        if (c == quote)
            break;
        if (c == '\\') {
            if (!lex_escape(lx, &s) && !fault)
                fault = "an unknown escape in a string "
                        "(known: \\n \\t \\\\ \\' \\\" \\xhh)";
        } else if (c == '\0') {
            fault = "a zero byte in a string";
        } else {
            strbuf_addc(&s, c);
        }
    }
    lx->tok.kind = EIR_string;
    lx->tok.text = ctx_intern_n(lx->ctx, strbuf_text(&s), s.len);
    if (fault)
        bad(lx, fault);
    strbuf_free(&s);
}

/* The lines that begin with a bar, each without it and one blank after it. */
static void lex_raw(EirLexer *lx)
{
    StrBuf s = { 0 };
    for (;;) {
        size_t at = lx->at + 1, end = line_end(lx, lx->at);
        if (at < end && lx->text[at] == ' ')
            at++;
        strbuf_addn(&s, lx->text + at, end - at);
        strbuf_addc(&s, '\n');
        lx->at = end;
        size_t next = end;
        while (next < lx->n &&
               (lx->text[next] == ' ' || lx->text[next] == '\t' || next == end))
            next++;
        if (byte_at(lx, next) != '|')
            break;
        new_line(lx);
        lx->at = next;
    }
    lx->tok.kind = EIR_raw;
    lx->tok.text = ctx_intern_n(lx->ctx, s.data, s.len);
    strbuf_free(&s);
}

static EirTok punct_kind(char c, char d, size_t *n)
{
    static const struct {
        char text[3];
        EirTok kind;
    } puncts[] = {
        { "+:", EIR_interval }, { "->", EIR_arrow }, { ">>", EIR_shift },
        { "<=", EIR_le },       { ">=", EIR_ge },    { "==", EIR_eq },
        { "!=", EIR_ne },       { "(", EIR_lparen }, { ")", EIR_rparen },
        { "{", EIR_lbrace },    { "}", EIR_rbrace }, { "[", EIR_lbracket },
        { "]", EIR_rbracket },  { "<", EIR_lt },     { ">", EIR_gt },
        { ",", EIR_comma },     { ":", EIR_colon },  { "=", EIR_assign },
        { "+", EIR_plus },      { "-", EIR_minus },  { "*", EIR_star },
    };
    for (size_t i = 0; i < sizeof puncts / sizeof *puncts; i++) {
        const char *p = puncts[i].text;
        if (p[0] == c && (!p[1] || p[1] == d)) {
            *n = p[1] ? 2 : 1;
            return puncts[i].kind;
        }
    }
    return EIR_bad;
}

static void lex_punct(EirLexer *lx)
{
    size_t n = 1;
    lx->tok.kind = punct_kind(lx->text[lx->at], byte_at(lx, lx->at + 1), &n);
    if (lx->tok.kind == EIR_bad)
        bad(lx, "a byte that begins no token");
    lx->at += n;
}

void eir_lex_next(EirLexer *lx)
{
    StrBuf kept = { 0 };
    skip_blank(lx, &kept);
    lx->tok = (EirToken){
        .loc = { lx->file, lx->line, (uint32_t)(lx->at - lx->line_start + 1) },
        .first = lx->line_fresh,
        .comment = kept.data ? ctx_intern(lx->ctx, kept.data) : NULL,
    };
    strbuf_free(&kept);
    if (lx->at >= lx->n) {
        lx->tok.kind = EIR_eof;
        return;
    }
    bool fresh = lx->line_fresh;
    lx->line_fresh = false;
    char c = lx->text[lx->at];
    if (is_alpha(c)) {
        lx->tok.kind = EIR_ident;
        lx->tok.text = lex_name(lx, true);
    } else if (is_digit(c)) {
        lex_number(lx);
    } else if (c == '%') {
        lex_sigil(lx, EIR_value, false);
    } else if (c == '@') {
        lex_sigil(lx, EIR_symbol, false);
    } else if (c == '\'' || c == '"') {
        lex_string(lx);
    } else if (c == '#' && is_digit(byte_at(lx, lx->at + 1))) {
        lx->at++;
        lx->tok.kind = EIR_sid;
        if (!lex_digits(lx, &lx->tok.u) || lx->tok.u > UINT32_MAX)
            bad(lx, "a statement number of more than 32 bits");
    } else if (c == '|' && fresh) {
        lex_raw(lx);
    } else {
        lex_punct(lx);
    }
}

void eir_lex_init(EirLexer *lx, Ctx *ctx, uint32_t file)
{
    *lx = (EirLexer){ .ctx = ctx, .file = file, .line = 1, .line_fresh = true };
    lx->text = ctx_source_text(ctx, file, &lx->n);
    eir_lex_next(lx);
}

const char *eir_tok_name(EirTok kind)
{
    static const char *const names[] = {
        [EIR_eof] = "end of file",  [EIR_bad] = "a token",
        [EIR_ident] = "a name",     [EIR_value] = "a %value",
        [EIR_symbol] = "a @symbol", [EIR_sid] = "a #statement number",
        [EIR_int] = "an integer",   [EIR_float] = "a number",
        [EIR_string] = "a string",  [EIR_raw] = "lines of library text",
        [EIR_lparen] = "'('",       [EIR_rparen] = "')'",
        [EIR_lbrace] = "'{'",       [EIR_rbrace] = "'}'",
        [EIR_lbracket] = "'['",     [EIR_rbracket] = "']'",
        [EIR_lt] = "'<'",           [EIR_gt] = "'>'",
        [EIR_comma] = "','",        [EIR_colon] = "':'",
        [EIR_assign] = "'='",       [EIR_plus] = "'+'",
        [EIR_minus] = "'-'",        [EIR_star] = "'*'",
        [EIR_interval] = "'+:'",    [EIR_arrow] = "'->'",
        [EIR_shift] = "'>>'",       [EIR_le] = "'<='",
        [EIR_ge] = "'>='",          [EIR_eq] = "'=='",
        [EIR_ne] = "'!='",
    };
    return names[kind];
}

void eir_tok_describe(const EirLexer *lx, const EirToken *t, StrBuf *out)
{
    switch (t->kind) {
    case EIR_ident:
        strbuf_addf(out, "'%.60s'", t->text);
        return;
    case EIR_value:
        strbuf_addf(out, "'%%%.60s'", t->text);
        return;
    case EIR_symbol:
        strbuf_addf(out, "'@%.60s'", t->text);
        return;
    case EIR_sid:
        strbuf_addf(out, "'#%llu'", (unsigned long long)t->u);
        return;
    case EIR_int:
        strbuf_addf(out, "'%llu'", (unsigned long long)t->u);
        return;
    case EIR_float:
        strbuf_addf(out, "'%g'", t->f);
        return;
    default:
        (void)lx;
        strbuf_add(out, eir_tok_name(t->kind));
    }
}
