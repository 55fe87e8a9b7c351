/* Syntax to ops: the second step of reading .exo, and how entries get bodies.
 *
 * A Build makes ops in one module. Names resolve lexically: a name is bound to
 * a value, a control variable, or (in entries) a template parameter, whose
 * literal takes the place of the name. Functions answer NULL or false after
 * reporting an error; a name whose definition failed is bound as broken, and
 * its uses fail without a report. */
#ifndef EXO_IR_EXO_BUILD_H
#define EXO_IR_EXO_BUILD_H

#include "ir/exo_ast.h"
#include "ir/lib.h"

typedef enum BindKind {
    BIND_none,
    BIND_value,
    BIND_var,
    BIND_param,
    BIND_broken
} BindKind;

typedef struct Binding {
    BindKind kind;
    const char *name;
    Loc loc;
    Value *value;
    VarId var;
    Param param;
    struct Binding *outer; /* what it shadows */
} Binding;

typedef struct Build {
    Ctx *ctx;
    Module *m;
    ExprCtx *x;
    Lib *lib;
    Arena *arena;    /* for what lives as long as the build */
    Binding **slots; /* hash table by interned name */
    size_t n_slots, n_names;
    VEC(Binding *) live; /* in order of definition: closes scopes */
    Block *block;        /* where ops go */
    bool failed;
    bool in_entry; /* packs, bytes() and the like are allowed */
    Loc wanted;    /* what asks for the entry; no line: its own definition */
    bool in_device;
    bool commit_groups; /* some barrier is a BUILD_ANY_COMMIT_GROUP */
    int64_t rank; /* of the family's member: how long its packs are; or 0 */
    /* Procedures of this file seen so far, by name: a symbol op each. */
    Op *(*proc)(struct Build *b, const char *name);
    void *user;
} Build;

void build_init(Build *b, Module *m, Lib *lib, Arena *arena);

/* ---- names ------------------------------------------------------------- */

size_t build_mark(const Build *b);
/* Forgets the names bound since the mark. */
void build_close(Build *b, size_t mark);
Binding *build_find(Build *b, const char *name); /* NULL: not bound */
Binding *build_bind(Build *b, const char *name, Loc loc, BindKind kind);
void build_bind_param(Build *b, const char *name, const Param *value);
/* Where to report a fault at loc: in an entry of another file than what asks
 * for it, such as the library, at what asks. */
Loc build_place(const Build *b, Loc loc);
/* Reports at build_place, with a note that says where the other place is. */
Diag *build_error(Build *b, Loc loc, const char *code, const char *fmt, ...)
    EXO_PRINTF(4, 5);

/* ---- literals, memories, units ----------------------------------------- */

/* A literal as text, for messages. */
const char *build_param_text(Build *b, const Param *p);
/* The value of an expression over literals and template parameters. */
bool build_const(Build *b, const AstExpr *e, Param *out);
/* The same, and of one kind; what names the thing in the message. */
bool build_const_int(Build *b, const AstExpr *e, const char *what,
                     int64_t *out);
bool build_const_bool(Build *b, const AstExpr *e, bool *out);
/* The list with `name...` and tuples followed by `...` spread out. */
bool build_spread(Build *b, unsigned n, AstExpr *const *args, unsigned *out_n,
                  const AstExpr *const **out);
/* A memory as written, its defaults put in when the library knows it. */
const MemRef *build_mem(Build *b, const AstExpr *e);
const UnitRef *build_unit(Build *b, const AstExpr *e);
/* A scalar type by name or template parameter; TY_none when it is none. */
ScalarType build_scalar_type(Build *b, const AstExpr *e);

/* ---- index expressions, conditions, accesses, data --------------------- */

const Affine *build_index(Build *b, const AstExpr *e);
const Cond *build_cond(Build *b, const AstExpr *e);
bool build_is_cond(Build *b, const AstExpr *e);
/* name or name[..]. Missing trailing indices are whole dimensions when
 * `partial`, else their count is an error. */
Access *build_access(Build *b, const AstExpr *e, bool partial);
/* An access whose dimensions are all points. */
bool access_is_point(const Access *a);
/* The value of a data expression, as ops before the statement to come; literals
 * take type t. */
Value *build_data(Build *b, const AstExpr *e, ScalarType t);
/* The type that e's first operand with a type has, or TY_none. */
ScalarType build_data_type(Build *b, const AstExpr *e);
Value *build_cast(Build *b, Loc loc, Value *v, ScalarType t);
/* An access to the barrier of one barrier expression. */
Access *build_barrier(Build *b, const AstExpr *e, const char *statement);
/* A call `name(..)` or a name: the name, else NULL. */
const char *ast_callee(const AstExpr *e);

/* ---- statements, types, procedures ------------------------------------- */

Op *build_op(Build *b, OpCode code, Loc loc, unsigned n_operands,
             unsigned n_results, unsigned n_blocks);
void build_stmts(Build *b, const AstStmt *s);
bool build_stmt_expr(Build *b, const AstStmt *s); /* calls and sync */
/* A declared type, spread over value and type. */
typedef struct BuiltType {
    bool control;
    VarKind var_kind;
    const Type *type;
    unsigned rank;
    const Affine **shape;
    int ring_dim;
    int64_t ring_depth;
    Value *guard;
} BuiltType;
bool build_type(Build *b, const char *name, const AstExpr *e, bool param,
                BuiltType *out);
/* The older name of the three commit groups. */
#define BUILD_ANY_COMMIT_GROUP "CudaCommitGroup"
/* Gives each barrier of that name in the procedure the mechanism that the first
 * timeline of its Arrive belongs to. */
void build_commit_groups(Build *b, Op *proc);
/* ctl.proc with parameters and body, appended to the module. */
Op *build_proc(Build *b, const char *name, Loc loc, const AstParam *params,
               const AstStmt *body);

/* One fault of with CudaDeviceFunction(..) or CudaWarps(..): false after a
 * report. */
bool build_device_attrs(Build *b, Op *op, const AstExpr *call);
bool build_warps_attrs(Build *b, Op *op, const AstExpr *call);

#endif
