/* Tokens of the .eir text. Used by ir/eir_parse*.c only.
 *
 * The lexer never reports: a fault is a token of kind EIR_bad whose `text` says
 * what is wrong, reported by the parser when it gets there. So a parser may
 * copy the lexer and read ahead. */
#ifndef EXO_IR_EIR_LEX_H
#define EXO_IR_EIR_LEX_H

#include "ir/diag.h"

typedef enum EirTok {
    EIR_eof,
    EIR_bad,
    EIR_ident,  /* name or dialect.op: text */
    EIR_value,  /* %name: text without the sigil */
    EIR_symbol, /* @name: text without the sigil */
    EIR_sid,    /* #12: u */
    EIR_int,    /* u */
    EIR_float,  /* f */
    EIR_string, /* text, decoded */
    EIR_raw,    /* lines that begin with `|`: text, without the bars */
    EIR_lparen,
    EIR_rparen,
    EIR_lbrace,
    EIR_rbrace,
    EIR_lbracket,
    EIR_rbracket,
    EIR_lt,
    EIR_gt,
    EIR_comma,
    EIR_colon,
    EIR_assign,
    EIR_plus,
    EIR_minus,
    EIR_star,
    EIR_interval, /* +: */
    EIR_arrow,    /* -> */
    EIR_shift,    /* >> */
    EIR_le,
    EIR_ge,
    EIR_eq,
    EIR_ne
} EirTok;

typedef struct EirToken {
    EirTok kind;
    Loc loc;
    bool first;       /* nothing but blanks before it on its line */
    const char *text; /* interned */
    uint64_t u;
    double f;
    const char *comment; /* the `//#` lines just above, or NULL */
} EirToken;

typedef struct EirLexer {
    Ctx *ctx;
    uint32_t file;
    const char *text;
    size_t n, at, line_start;
    uint32_t line;
    bool line_fresh; /* no token on this line yet */
    EirToken tok;    /* the current token */
} EirLexer;

/* Starts at the first token of the source. */
void eir_lex_init(EirLexer *lx, Ctx *ctx, uint32_t file);
/* Moves to the next token; stays at EIR_eof. */
void eir_lex_next(EirLexer *lx);
/* How a token is named in "found ..": `'%x'`, `end of file`. */
void eir_tok_describe(const EirLexer *lx, const EirToken *t, StrBuf *out);
/* How a kind is named in "expected ..". */
const char *eir_tok_name(EirTok kind);

#endif
