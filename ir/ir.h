/* The IR: modules of ops with operands, results, attributes and blocks.
 *
 * One structure serves the three levels (seq, par, async); the dialects arith,
 * mem, ctl, par, async and host are rows in ir/ops.def. Control stays
 * structured: an op owns zero or more blocks, there are no branches.
 *
 * Two worlds meet in an op's operands. Data are Values (scalars, tensors,
 * barriers, fragments, rings), each defined once by an op or a block. Control
 * variables (sizes, iterators, coordinates) are VarIds; index expressions and
 * conditions over them are interned (ir/affine.h), never values. An Operand is
 * a value, an access to part of a tensor, an index expression or a condition,
 * in the order in which the row's signature and the text give them.
 *
 * Ownership: the module's arena owns ops, blocks, values, accesses; the Ctx
 * owns types, parameter lists and strings (interned: compare pointers). An op
 * belongs to its block, a block to its op. Nothing is freed singly. */
#ifndef EXO_IR_IR_H
#define EXO_IR_IR_H

#include "ir/affine.h"
#include "ir/diag.h"
#include "ir/scalar.h"

typedef struct Module Module;
typedef struct Op Op;
typedef struct Block Block;
typedef struct Value Value;
typedef struct Lib Lib; /* instruction, memory and unit entries: ir/lib.h */

/* ---- literal parameters: of memories, units, instructions ---------------- */

typedef enum ParamKind {
    PARAM_none,
    PARAM_int,
    PARAM_float,
    PARAM_bool,
    PARAM_str,
    PARAM_type,
    PARAM_tuple
} ParamKind;

/* A literal; interned as a whole by param_intern. */
typedef struct Param {
    ParamKind kind;
    const char *name; /* keyword in a named list, or NULL; interned */
    int64_t i;        /* int, bool; ScalarType for PARAM_type */
    double f;
    const char *s; /* interned */
    unsigned n;
    const struct Param *items; /* PARAM_tuple */
} Param;

/* A memory with its parameters, as Sm90_SmemSwizzled(128). Interned. */
typedef struct MemRef {
    const char *name;
    unsigned n_params;
    const Param *params;
} MemRef;

/* A collective unit, as 2 * cuda_cta_in_cluster_strided(1). Interned. */
typedef struct UnitRef {
    int64_t scale; /* 1 where none is written */
    const char *name;
    unsigned n_params;
    const Param *params;
} UnitRef;

/* ---- types --------------------------------------------------------------- */

typedef enum TypeKind {
    TK_scalar,  /* a number of type elem */
    TK_tensor,  /* elem, mem; rank 0 is a variable in memory */
    TK_window,  /* a view of a tensor: strides not those of its shape */
    TK_barrier, /* mem is the mechanism; par level */
    TK_map,     /* a tensor-map window: mem is Sm90_tensorMap(swizzle, box..) */
    TK_mbarrier, /* async: an array of mbarrier objects */
    TK_ring,     /* async: slot and parity of a ring of `depth` */
    TK_frag      /* async: a thread's n registers of elem; mem gives the map
                   element -> (thread, slot), NULL for a plain array */
} TypeKind;

typedef struct Type {
    TypeKind kind;
    ScalarType elem;
    unsigned rank;
    const MemRef *mem;
    int64_t n; /* frag: registers per thread; ring: depth */
} Type;

const Type *type_scalar(Ctx *ctx, ScalarType elem);
const Type *type_tensor(Ctx *ctx, TypeKind kind, ScalarType elem, unsigned rank,
                        const MemRef *mem); /* tensor, window, map */
const Type *type_barrier(Ctx *ctx, unsigned rank, const MemRef *mechanism);
const Type *type_mbarrier(Ctx *ctx, unsigned rank);
const Type *type_ring(Ctx *ctx, int64_t depth);
const Type *type_frag(Ctx *ctx, ScalarType elem, int64_t n, const MemRef *mem);
const MemRef *memref_get(Ctx *ctx, const char *name, unsigned n,
                         const Param *params);
const UnitRef *unitref_get(Ctx *ctx, int64_t scale, const char *name,
                           unsigned n, const Param *params);
/* Interns a parameter and all it holds. */
const Param *param_intern(Ctx *ctx, unsigned n, const Param *params);
bool param_equal(const Param *a, const Param *b); /* names included */
/* The parameter of a list by keyword, or NULL. */
const Param *param_find(unsigned n, const Param *params, const char *name);
/* Printed as in .exo: 4, 'row', bf16, (128, 64), None, True. */
void param_print(StrBuf *out, const Param *p);
/* Base name and parameter tuple: `CudaSmemLinear`, `Sm90_SmemSwizzled(128)`;
 * exo: with the printed form's trailing comma, `Sm90_SmemSwizzled(128, )`. */
void memref_print(StrBuf *out, const MemRef *m, bool exo);
void unitref_print(StrBuf *out, const UnitRef *u);

/* ---- values -------------------------------------------------------------- */

/* Extents of a tensor, window, map or barrier: on its value. */
struct Value {
    const Type *type;
    const char *name;     /* as written, or NULL: numbered by the printer */
    Op *def;              /* the op whose result it is, or NULL */
    Block *owner;         /* the block whose argument it is, or NULL */
    unsigned index;       /* result or argument number */
    unsigned id;          /* numbered in the module from 1 */
    const Affine **shape; /* type->rank extents */
    int ring_dim;         /* -1: no managed ring dimension */
    int64_t ring_depth;   /* of ring_dim */
    Value *ring_guard;    /* .ring_guarded_by, or NULL */
};

/* ---- accesses ------------------------------------------------------------ */

typedef enum DimKind {
    DIM_point,    /* lo */
    DIM_interval, /* [lo, lo + len) */
    DIM_ring      /* async: the slot of `ring`, `delta` positions on */
} DimKind;

typedef struct AccessDim {
    DimKind kind;
    const Affine *lo, *len;
    Value *ring;
    int64_t delta;
} AccessDim;

typedef struct Access {
    Value *base;
    unsigned rank; /* == base->type->rank */
    AccessDim *dims;
} Access;

/* ---- ops ----------------------------------------------------------------- */

typedef enum OpCode {
    OP_none,
#define OP(dialect, name, ...) OP_##dialect##_##name,
#include "ir/ops.def"
#undef OP
    OP_count
} OpCode;

typedef enum OperandKind {
    OPND_value,
    OPND_access,
    OPND_index,
    OPND_cond
} OperandKind;

typedef struct Operand {
    OperandKind kind;
    union {
        Value *value;
        Access *access;
        const Affine *index;
        const Cond *cond;
    } u;
} Operand;

typedef enum AttrKind {
    ATTR_param, /* any literal: int, bool, string, type, tuple */
    ATTR_mem,
    ATTR_unit,
    ATTR_index,
    ATTR_indices /* a list of index expressions */
} AttrKind;

typedef struct Attr {
    const char *key; /* interned */
    AttrKind kind;
    const Param *param;
    const MemRef *mem;
    const UnitRef *unit;
    const Affine *index;
    unsigned n;
    const Affine **indices;
} Attr;

/* Where an async op comes from: the statement it claims to implement and that
 * statement's iterators, outermost first, as expressions of this kernel. An
 * untrusted hint. sid 0: none. */
typedef struct Origin {
    uint32_t sid;
    unsigned n;
    const Affine **iters;
} Origin;

struct Op {
    OpCode code;
    uint32_t sid; /* statements: stable through in-place edits; else 0 */
    Loc loc;
    unsigned n_operands, n_results, n_blocks, n_attrs;
    Operand *operands;
    Value **results;
    Block **blocks;
    Attr *attrs;
    Origin origin;
    const char *comment; /* comment lines above it in .exo, or NULL */
    Block *parent;
    Op *prev, *next;
};

/* One entry of a block's argument list: a value, or a control variable. */
typedef struct BlockArg {
    Value *value; /* NULL: a control variable */
    VarId var;
} BlockArg;

struct Block {
    Op *parent; /* NULL: the module's body */
    Op *first, *last;
    unsigned n_args;
    BlockArg *args;
    /* Assumptions of a procedure live in it as ctl.assert ops. */
};

struct Module {
    Ctx *ctx;
    Arena *arena;
    ExprCtx *exprs;
    Block *body;
    Lib *lib; /* entries visible here: libraries, imports, the file's own */
    uint32_t next_sid;
    unsigned next_value;
    const char **imports; /* as written in the file */
    unsigned n_imports;
};

GIVES Module *module_new(Ctx *ctx);
void module_free(TAKES Module *m);
/* A deep copy in the same Ctx with its own ExprCtx; sids are kept. */
GIVES Module *module_clone(const Module *m);
/* .. of an op of its top level and of those that this one names, directly or
 * not: what a check of it can look at. *copy: the op there. */
GIVES Module *module_part(const Module *m, const Op *op, Op **copy);

/* ---- making and editing -------------------------------------------------- */

/* A detached op with room for its operands, results and blocks (blocks are
 * made, results are not typed yet). Statements get a fresh sid. */
Op *op_new(Module *m, OpCode code, Loc loc, unsigned n_operands,
           unsigned n_results, unsigned n_blocks);
Value *op_set_result(Module *m, Op *op, unsigned i, const Type *type,
                     const char *name);
void op_resize_operands(Module *m, Op *op, unsigned n);
Block *block_new(Module *m, Op *parent);
Value *block_add_value(Module *m, Block *b, const Type *type, const char *name);
VarId block_add_var(Module *m, Block *b, const char *name, VarKind kind);
/* The same for a variable that exists already and is defined nowhere yet. */
void block_add_known_var(Module *m, Block *b, VarId var);
void block_append(Block *b, Op *op);
void op_insert_before(Op *at, Op *op);
void op_insert_after(Op *at, Op *op);
/* Takes the op out of its block; it may be put back elsewhere. */
void op_detach(Op *op);
Access *access_new(Module *m, Value *base);

Operand opnd_value(Value *v);
Operand opnd_access(Access *a);
Operand opnd_index(const Affine *e);
Operand opnd_cond(const Cond *c);

/* Attributes, by key; getters answer NULL or `otherwise` when absent. */
const Attr *op_attr(const Op *op, const char *key);
/* Is it a key of a derived.* attribute, whose rules are in
 * passes/lower/derived.h? Any op may have one. */
bool attr_is_derived(const char *key);
/* Is the key in this list of an OpInfo? */
bool attr_in_row(const char *keys, const char *key);
int64_t op_attr_int(const Op *op, const char *key, int64_t otherwise);
const char *op_attr_str(const Op *op, const char *key, const char *otherwise);
const Param *op_attr_param(const Op *op, const char *key);
void op_set_attr(Module *m, Op *op, Attr attr); /* replaces; copies the key */
void op_set_int(Module *m, Op *op, const char *key, int64_t v);
void op_set_str(Module *m, Op *op, const char *key, const char *s);
/* A mem.reduce that may meet its like without order. */
bool op_is_atomic(const Op *op);
void op_set_bool(Module *m, Op *op, const char *key, bool b);
void op_set_param(Module *m, Op *op, const char *key, const Param *p);
void op_remove_attr(Op *op, const char *key);

/* Every use of `from` in ops at or below b, accesses included, becomes `to`. */
void block_replace_value(Block *b, Value *from, Value *to);
/* Copies op (with all below it) into m. The map carries values and variables
 * already copied and receives those defined inside; anything absent from it
 * is kept as it is when m is op's own module, and is a broken invariant
 * otherwise. Copies get fresh sids. */
typedef struct CloneMap CloneMap;
CloneMap *clone_map_new(Module *to, Module *from);
void clone_map_value(CloneMap *cm, const Value *from, Value *to);
void clone_map_index(CloneMap *cm, VarId from, const Affine *to);
Value *clone_map_get(const CloneMap *cm, const Value *from);
CloneMap *clone_map_copy(const CloneMap *cm); /* may then grow by itself */
Op *op_clone(CloneMap *cm, const Op *op);
const Affine *clone_index(CloneMap *cm, const Affine *e);
const Cond *clone_cond(CloneMap *cm, const Cond *c);
Access *clone_access(CloneMap *cm, const Access *a);
/* op_clone of every op of `from`, appended to `to`. */
void block_clone_into(CloneMap *cm, const Block *from, Block *to);

/* Calls fn on op and on every op below it, outer before inner; fn may answer
 * false to skip what is below. fn may detach the op it was given. */
void op_walk(Op *op, bool (*fn)(Op *, void *), void *user);
void block_walk(Block *b, bool (*fn)(Op *, void *), void *user);
/* Does an op behind this one, or in such a one's blocks, use a result of it? */
bool op_used_behind(const Op *op);
/* The op whose block holds op, or NULL at the top. */
Op *op_parent(const Op *op);
/* The nearest enclosing op of this code, op itself included, or NULL. */
Op *op_enclosing(Op *op, OpCode code);
/* The top-level op (proc, kernel, host.proc) named so, or NULL. */
Op *module_symbol(const Module *m, const char *name);

/* ---- rows ---------------------------------------------------------------- */

enum {
    OPT_PURE = 1u << 0, /* no effect: dead when its results are unused */
    OPT_COMMUTES = 1u << 1,
    OPT_STMT = 1u << 2, /* a statement: has a sid */
    OPT_TERMINATOR = 1u << 3,
    OPT_SYNC = 1u << 4,       /* synchronises or is collective: never moved */
    OPT_COLLECTIVE = 1u << 5, /* async: all lanes of the warp take part */
    OPT_SYMBOL = 1u << 6,     /* a top-level op with attribute `name` */
    OPT_APPROX = 1u << 7,     /* a target may round its result otherwise */
    OPT_TF32 = 1u << 8        /* rounds an f32 to tf32, zero to zero */
};

struct Sem;
typedef struct OpInfo {
    const char *dialect, *name; /* "arith", "add" */
    const char *text; /* the name as .eir writes it, with PTX's dots: NULL
                         where it is `name` */
    /* One letter an operand: v value, a access, i index, c condition; a letter
     * followed by `*` repeats 0 or more times (last of its kind in a row), by
     * `?` may be absent. */
    const char *operands;
    int n_results; /* -1: any number */
    int n_blocks;  /* -1: 1 or 2 */
    unsigned traits;
    /* Keys in the order they are printed; `!` marks one that must be there. */
    const char *attrs;
    const char *doc;
} OpInfo;

const OpInfo *op_info(OpCode code);
/* By the name as .eir writes it: "async.mbarrier.wait"; OP_none: unknown. */
OpCode op_code_from_name(const char *dialect_dot_name);
static inline bool op_has(const Op *op, unsigned trait)
{
    return (op_info(op->code)->traits & trait) != 0;
}

/* ---- accesses of an op --------------------------------------------------- */

enum {
    ACC_READ = 1u << 0,
    ACC_WRITE = 1u << 1,
    ACC_REDUCE = 1u << 2, /* reads and writes, commuting with its like */
    ACC_SYNC = 1u << 3,   /* a barrier, not data */
    ACC_ATOMIC = 1u << 4  /* a reduction that may meet its like, unordered */
};
typedef struct OpAccess {
    const Access *access;
    unsigned flags;
    unsigned operand; /* its operand's number */
} OpAccess;
/* The only way an analysis sees memory. Appends to out (in `arena`). */
typedef VEC(OpAccess) OpAccessVec;
void op_accesses(const Module *m, const Op *op, Arena *arena, OpAccessVec *out);
/* The access through a window expressed on the tensor that owns the storage
 * (or on the map or parameter that stands for it). */
const Access *access_compose(Module *m, const Access *a);
/* Of all that it names; -1: its intervals are not constant, or too long. */
int64_t access_bytes(const Access *a);
/* The access through a tensor map expressed on what the map was made of; NULL
 * where its base is no map that is made in the procedure. Nothing says here
 * that a box may reach out of the map. */
const Access *access_behind_map(Module *m, const Access *a);
/* The allocation, parameter or map at the root of v's windows. */
Value *value_root(Value *v);

#endif
