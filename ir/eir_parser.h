/* The parser's state and its parts, shared by ir/eir_parse.c (ops, blocks,
 * modules), ir/eir_parse_expr.c (names, expressions, accesses) and
 * ir/eir_parse_type.c (literals, attributes, types). Nobody else includes it.
 *
 * Every function reports its own errors; false or NULL means it did. The
 * caller then gives up its op and goes on with the next one. */
#ifndef EXO_IR_EIR_PARSER_H
#define EXO_IR_EIR_PARSER_H

#include "ir/eir.h"
#include "ir/eir_lex.h"
#include "ir/name_map.h"

/* After so many errors no more are reported and reading stops. */
#define EIR_MAX_ERRORS 500

/* What a %name stands for in the scopes open now. */
typedef struct EirBinding {
    const char *name;
    Value *value; /* or */
    VarId var;    /* or neither: its definition was wrong, say no more */
    Loc loc;
} EirBinding;

typedef VEC(const Affine *) EirAffineVec;
typedef VEC(Operand) EirOperandVec;
typedef VEC(Attr) EirAttrVec;
typedef VEC(Param) EirParamVec;

typedef struct EirParser {
    EirLexer lx;
    Ctx *ctx;
    Module *m;
    Lib *lib;
    Arena *scratch;   /* freed when the parse ends */
    NameMap *names;   /* -> EirBinding */
    NameMap *opcodes; /* text of an op -> OpCode */
    VEC(EirBinding *) scope;
    EirAffineVec terms;   /* a stack: see the sums */
    unsigned depth;       /* of nesting, all kinds together */
    unsigned n_primaries; /* of the expression being read */
    unsigned n_errors;
    bool sourced;      /* the text gives locations: `source` was read */
    uint32_t loc_file; /* of loc(line:col) */
    NameMap *sources;  /* file name -> uint32_t * */
} EirParser;

/* A type as written, with what stands on the value. */
typedef struct EirTyped {
    const Type *type;
    const Affine **shape; /* type->rank of them */
    int ring_dim;
    int64_t ring_depth;
    Value *guard;
} EirTyped;

/* ---- tokens -------------------------------------------------------------- */

/* Reports at loc, counts. */
bool eir_error(EirParser *p, Loc loc, const char *fmt, ...) EXO_PRINTF(3, 4);
/* "expected WHAT, found .." at the current token. */
bool eir_expected(EirParser *p, const char *what);
bool eir_accept(EirParser *p, EirTok kind);
bool eir_expect(EirParser *p, EirTok kind);
bool eir_at_word(const EirParser *p, const char *word);
bool eir_accept_word(EirParser *p, const char *word);
/* Is the word here and a parenthesis after it, as in `mem(..)`? */
bool eir_at_wrapped(const EirParser *p, const char *word);
/* Goes past both. */
bool eir_skip_wrapped(EirParser *p);
/* Goes one level down; false past the limit. */
bool eir_enter(EirParser *p, Loc loc);
void eir_leave(EirParser *p);
/* False, with an error, when a list of n is at its limit. */
bool eir_list_room(EirParser *p, Loc loc, size_t n);

/* ---- names --------------------------------------------------------------- */

/* The binding of a %name, or NULL when it is unknown (reported) or broken. */
EirBinding *eir_lookup(EirParser *p, const EirToken *tok);
/* Binds a name in the scope open now; reports when it is taken. */
bool eir_define(EirParser *p, const char *name, Loc loc, Value *v, VarId var);
size_t eir_scope_open(const EirParser *p);
void eir_scope_close(EirParser *p, size_t mark);
/* The name a value or variable keeps: NULL for one that is all digits. */
const char *eir_kept_name(const char *name);

/* ---- pieces -------------------------------------------------------------- */

bool eir_parse_int(EirParser *p, int64_t *out);
bool eir_parse_literal(EirParser *p, Param *out);
/* After `open` up to and with `close`; into the scratch vector. */
bool eir_parse_params(EirParser *p, EirTok close, EirParamVec *out);
const MemRef *eir_parse_memref(EirParser *p);
const UnitRef *eir_parse_unitref(EirParser *p);
bool eir_parse_attr_value(EirParser *p, Attr *out);
bool eir_parse_type(EirParser *p, EirTyped *out);
const Affine *eir_parse_index(EirParser *p);
const Cond *eir_parse_cond(EirParser *p);
/* `[a, b, ..]` of index expressions. */
bool eir_parse_index_list(EirParser *p, EirAffineVec *out);
/* The value that a %name must stand for, or NULL. */
Value *eir_parse_value(EirParser *p);
/* A value, an access, an index expression or a condition. */
bool eir_parse_operand(EirParser *p, Operand *out);

#endif
