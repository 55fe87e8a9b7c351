/* Syntax of .exo: tokens, expressions, statements, declarations.
 *
 * Made by the parser, read by the builder (ir/exo_build.h) and by libraries
 * (ir/lib_entry.h). Nodes belong to the arena given to the parser; names and
 * strings are interned in the Ctx. The tree's height is bounded by
 * EXO_NEST_MAX, so that readers may recurse. */
#ifndef EXO_IR_EXO_AST_H
#define EXO_IR_EXO_AST_H

#include "ir/diag.h"

enum {
    EXO_NEST_MAX = 1000,      /* blocks, brackets, height of an expression */
    EXO_SOURCE_MAX = 8 << 20, /* bytes of one file */
    EXO_ERRORS_MAX = 200      /* of one file; then it is given up */
};

/* ---- tokens ------------------------------------------------------------ */

typedef enum TokKind {
    TOK_end,
    TOK_newline,
    TOK_indent,
    TOK_dedent,
    TOK_name,
    TOK_keyword,
    TOK_int,
    TOK_float,
    TOK_str,
    TOK_op
} TokKind;

/* Operators are their characters, packed: '+', OP2('>', '>'). */
#define EXO_OP2(a, b) ((a) << 8 | (b))
enum {
    XOP_shift = EXO_OP2('>', '>'),
    XOP_le = EXO_OP2('<', '='),
    XOP_ge = EXO_OP2('>', '='),
    XOP_eq = EXO_OP2('=', '='),
    XOP_ne = EXO_OP2('!', '='),
    XOP_add_assign = EXO_OP2('+', '='),
    XOP_range = EXO_OP2('.', '.'),
    XOP_pack = '.' << 16 | '.' << 8 | '.',
    /* keywords that are operators */
    XOP_and = 1,
    XOP_or,
    XOP_not,
    XOP_in
};

typedef struct Tok {
    TokKind kind;
    int op; /* TOK_op */
    Loc loc;
    const char *s;    /* name, keyword, string's contents; interned */
    const char *text; /* where it stands in the source */
    size_t len;
    int64_t i;
    double f;
} Tok;

typedef struct Lexer {
    Ctx *ctx;
    Arena *arena;
    uint32_t file;
    const char *text, *p, *end, *line_start;
    uint32_t line;
    unsigned brackets; /* open ones: newlines inside do not count */
    Loc bracket_loc;   /* of the outermost open one */
    VEC(unsigned) indents;
    unsigned dedents; /* still to be given */
    bool at_line_start;
    bool recovering; /* skipping a broken statement: open brackets are its */
    unsigned n_errors;
    StrBuf comment; /* comment lines since the last statement began */
} Lexer;

/* text must end in a zero byte at text[n]. */
void lexer_init(Lexer *lx, Ctx *ctx, Arena *arena, uint32_t file);
void lexer_done(Lexer *lx);
/* Reports what is no token and goes on behind it. */
Tok lexer_next(Lexer *lx);
/* The comment lines collected so far, interned, without `# `, or NULL; they
 * are then forgotten. */
const char *lexer_take_comment(Lexer *lx);

/* ---- expressions ------------------------------------------------------- */

typedef enum AstKind {
    AST_int,
    AST_float,
    AST_str,
    AST_name,
    AST_none,
    AST_bool,
    AST_unary,  /* op: - ~ not */
    AST_binary, /* op; also comparisons, and, or, in, @, >>, .. */
    AST_call,   /* args[0] called with the others */
    AST_index,  /* args[0] indexed by the others */
    AST_slice,  /* args[0] : args[1], each may be NULL */
    AST_tuple,
    AST_list,
    AST_set,
    AST_keyword, /* name = args[0], in calls */
    AST_attr,    /* args[0] . name */
    AST_choice,  /* args[0] if args[1] else args[2] */
    AST_pack     /* name... */
} AstKind;

typedef struct AstExpr AstExpr;
struct AstExpr {
    AstKind kind;
    int op;
    Loc loc;
    unsigned height, n;
    AstExpr **args;
    const char *name; /* name, string, keyword, attribute */
    int64_t i;
    double f;
};

/* ---- statements -------------------------------------------------------- */

typedef enum AstStmtKind {
    AST_for,    /* name in a: body; pack: a nest over name0, name1, .. */
    AST_if,     /* a: body, else orelse */
    AST_with,   /* a: body */
    AST_assert, /* a */
    AST_pass,
    AST_alloc,  /* name: a */
    AST_assign, /* a = b */
    AST_reduce, /* a += b */
    AST_expr    /* a */
} AstStmtKind;

typedef struct AstStmt AstStmt;
struct AstStmt {
    AstStmtKind kind;
    Loc loc, name_loc;
    const char *comment, *name;
    bool pack;
    AstExpr *a, *b;
    AstStmt *body, *orelse, *next;
};

/* ---- declarations ------------------------------------------------------ */

typedef enum AstDeclKind {
    AST_proc,
    AST_instr,
    AST_memory,
    AST_unit,
    AST_config,
    AST_import
} AstDeclKind;

typedef struct AstParam {
    const char *name;
    Loc loc;
    bool pack;
    AstExpr *type, *init; /* init: a default, or NULL */
    struct AstParam *next;
} AstParam;

/* A line of an entry: KEY head when guard: values, or KEY: body. */
typedef struct AstClause {
    const char *key;
    Loc loc;
    AstExpr *head, *guard;
    unsigned n;
    AstExpr **values;
    AstStmt *body;
    struct AstClause *next;
} AstClause;

typedef struct AstDecl AstDecl;
struct AstDecl {
    AstDeclKind kind;
    Loc loc;
    const char *name;         /* a family's: the part before {..} */
    const char *var, *suffix; /* NAME{var}suffix, or NULL */
    const char *comment;
    bool imported, broken; /* broken: had a syntax error */
    AstParam *tparams, *params;
    AstClause *clauses;
    AstStmt *body;
    AstExpr *value;   /* unit NAME = value; import's string */
    const char *text; /* from its first to behind its last byte, */
    size_t len;       /* in the source */
    AstDecl *next;
};

/* All declarations of a file in order, broken ones included; *ok tells whether
 * there was no error. */
AstDecl *exo_syntax(Ctx *ctx, Arena *arena, uint32_t file, bool *ok);

/* One expression from n bytes at text, which stand at `at` in a source; NULL
 * after a report. */
AstExpr *exo_syntax_expr(Ctx *ctx, Arena *arena, Loc at, const char *text,
                         size_t n);
/* One statement, its block below it; NULL after a report. */
AstStmt *exo_syntax_stmt(Ctx *ctx, Arena *arena, Loc at, const char *text);

/* ---- the parser's own parts -------------------------------------------- */

typedef struct ExoParser {
    Ctx *ctx;
    Arena *arena;
    Lexer lx;
    Tok tok;
    const char *last_end; /* of the last token taken, in the source */
    unsigned depth, n_errors;
    bool bad;             /* the current statement had an error */
    const char **comment; /* where a comment at the line's end goes */
} ExoParser;

/* The next token becomes p->tok. */
void parser_advance(ExoParser *p);
bool parser_at(const ExoParser *p, int op);
bool parser_at_keyword(const ExoParser *p, const char *word);
bool parser_at_name(const ExoParser *p, const char *word);
/* Were there so many errors that reading on helps nobody? */
bool parser_given_up(const ExoParser *p);
/* Takes the operator or word when it is next. */
bool parser_take(ExoParser *p, int op);
bool parser_take_keyword(ExoParser *p, const char *word);
/* Takes it or reports what was expected and found. */
bool parser_expect(ExoParser *p, int op, const char *after);
bool parser_expect_newline(ExoParser *p, const char *after);
/* One error a statement: later ones of the same statement are dropped and
 * answered with NULL. */
Diag *parser_error(ExoParser *p, Loc loc, const char *fmt, ...)
    EXO_PRINTF(3, 4);
/* The next token in words, for messages. */
const char *parser_found(const ExoParser *p);
/* Behind the end of the current logical line, and over a block indented below
 * it when `block`. */
void parser_recover(ExoParser *p, bool block);

/* An expression; NULL after an error. tuple: a comma makes a tuple. */
AstExpr *parse_expr(ExoParser *p);
/* expr (, expr)* up to the closing operator, which is taken. slices: a:b is
 * allowed; keywords: name=expr is. */
bool parse_list(ExoParser *p, int close, bool slices, bool keywords,
                unsigned *n, AstExpr ***out);
/* The statements from an indent token to its dedent. */
AstStmt *parse_indented(ExoParser *p);
/* NEWLINE INDENT statements DEDENT; NULL for an empty or broken one. */
AstStmt *parse_block(ExoParser *p, const char *after);
AstDecl *parse_decl(ExoParser *p);
/* One statement, and that nothing follows it. */
AstStmt *parse_one_stmt(ExoParser *p);

AstExpr *ast_new(ExoParser *p, AstKind kind, Loc loc, unsigned n);

#endif
