/* Shared by the files of the C printer: its state, names, expressions.
 *
 * A procedure's body is printed line by line into `out`. Everything that is
 * part of an expression is a C text in the arena. Control variables are C
 * variables of type int64_t; a tensor is the text of its address, of its
 * offset from it and of its strides, in elements, so that a window costs no
 * code. Helpers that a body needs are marked by CNeed and printed before it
 * (c_support.c), so that the file has no unused function.
 *
 * Each range is an interval of a control value in double: parameters are
 * within +-2^30 (checked on entry), so that nearly every expression is seen
 * not to overflow 64 bits; the others go through checked helpers. */
#ifndef EXO_CODEGEN_C_EMIT_H
#define EXO_CODEGEN_C_EMIT_H

#include "codegen/c_print.h"

/* What the pool of a library's temporaries keeps of what was given back, and
 * the most that a kernel which is chosen may take of it; printed C. */
#define C_POOL_BYTES "(UINT64_C(64) << 20)"

typedef enum CNeed {
    NEED_floordiv = 1u << 0,
    NEED_mod = 1u << 1,
    NEED_add = 1u << 2, /* noting an overflow */
    NEED_control = 1u << 3,
    NEED_pointer = 1u << 4,
    NEED_extent = 1u << 5,
    NEED_driver = 1u << 6,
    NEED_launch = 1u << 7,
    NEED_map = 1u << 8,
    NEED_alloc = 1u << 9,
    NEED_htod = 1u << 10,
    NEED_dtoh = 1u << 11,
    NEED_dtod = 1u << 12,
    NEED_memset = 1u << 13,
    NEED_sync = 1u << 14,
    NEED_host_alloc = 1u << 15,
    NEED_align = 1u << 16,
    NEED_limit = 1u << 17,
    NEED_mul = 1u << 18, /* noting an overflow */
    NEED_tune = 1u << 19 /* events, the device's name, is it captured? */
} CNeed;

typedef struct CRange {
    double lo, hi;
} CRange;

typedef enum CValueKind { CV_none, CV_scalar, CV_tensor, CV_map } CValueKind;

typedef struct CValue {
    CValueKind kind;
    const char *name;     /* a scalar, a map, a pointer, or a device address as
                         an unsigned integer */
    bool device;          /* a tensor in the GPU's memory */
    bool by_value;        /* a rank-0 parameter that is no pointer */
    const char *offset;   /* in elements; NULL: 0 */
    const char **strides; /* a dimension each */
    const char *argument; /* what messages call it */
} CValue;

/* A pointer variable of the function that its end gives back. */
typedef struct CAlloc {
    const char *name;
    bool device;
    const char *elem; /* C type of an element; host only */
} CAlloc;

/* One procedure as a C function. */
typedef struct CFunction {
    const Op *op;
    const char *api;       /* the exported name */
    const char *run;       /* the name of its body's function */
    const char *params;    /* "int64_t N, const void *x"; "" when none */
    const char *arguments; /* the same names, without types */
    const char *stream;    /* the stream parameter's name; NULL: none */
    bool is_host;
    const char *rules; /* lines of the header: what arguments must satisfy */
} CFunction;

typedef struct CPrinter {
    Ctx *ctx;
    const Module *m;
    const COptions *opt;
    Arena *arena;
    StrBuf *out;
    unsigned indent;
    bool failed;
    uint32_t needs;          /* CNeed */
    uint32_t scalars;        /* scalar helpers: c_scalar.c */
    const char *procedure;   /* its name as a C string literal */
    bool is_host;            /* printing a host.proc, not a ctl.proc */
    bool may_fail;           /* the body has a `goto done` */
    bool uses_call;          /* the body refers to its exo_call */
    bool has_calls;          /* some procedure calls another */
    bool touches_host;       /* some host.proc reads or writes host memory */
    bool has_overflow;       /* the body notes overflows */
    bool checked;            /* the expression being printed does */
    VEC(const char *) names; /* in scope */
    VEC(CAlloc) allocs;      /* of the function */
    VEC(CFunction) functions;
    VEC(const Cond *) known; /* checked at the top of this function */
    CFunction *function;     /* being printed */
    VEC(Op *) kernels;
    unsigned depth;        /* of nested calls followed by c_writes */
    const char **var_name; /* by VarId */
    CRange *var_range;     /* by VarId */
    CValue *values;        /* by Value id */
    bool *used;            /* by Value id: some op reads it */
    unsigned n_vars, n_values;
} CPrinter;

/* ---- text: c_names.c ------------------------------------------------ */

/* A line of the body, indented; the newline is added. */
void c_line(CPrinter *p, const char *fmt, ...) EXO_PRINTF(2, 3);
void c_open(CPrinter *p);  /* further lines one level deeper */
void c_close(CPrinter *p); /* and back, with a `}` */
const char *c_text(CPrinter *p, const char *fmt, ...) EXO_PRINTF(2, 3);
/* s as a C string literal, quotes included. */
const char *c_string(CPrinter *p, const char *s);
/* An error at op and p->failed. Returns false. */
bool c_refuse(CPrinter *p, const Op *op, const char *fmt, ...) EXO_PRINTF(3, 4);
/* The same of a configuration's field, `Config.field`. */
bool c_refuse_config(CPrinter *p, Loc at, const char *field);

/* s with what C identifiers cannot hold replaced by `_`. */
const char *c_identifier(CPrinter *p, const char *s);
/* A name like `wanted` that is free here, entered into the scope. */
const char *c_name(CPrinter *p, const char *wanted);
size_t c_scope(const CPrinter *p);
void c_scope_end(CPrinter *p, size_t scope);
/* Is it a word of C, C++ or the code that is printed? */
bool c_is_reserved(const char *name);
/* Is the identifier a function that C's library or compilers know? */
bool c_is_library_function(const char *name);

/* ---- index expressions: c_expr.c ------------------------------------ */

/* The text of e, an operand of `*`, in C; a local is made first where it may
 * overflow. */
const char *c_index(CPrinter *p, const Affine *e);
const char *c_condition(CPrinter *p, const Cond *c);
CRange c_range(CPrinter *p, const Affine *e);
/* Is the condition true for all values in their ranges? */
bool c_implied(CPrinter *p, const Cond *c);
/* sum and product of texts; NULL is 0 */
const char *c_plus(CPrinter *p, const char *a, const char *b);
const char *c_times(CPrinter *p, const char *a, const char *b);

/* ---- tensors: c_tensor.c -------------------------------------------- */

CValue *c_value(CPrinter *p, const Value *v);
/* Dense strides of the shape, the last 1. */
const char **c_dense_strides(CPrinter *p, const Value *v);
/* Enters the window that op (mem.window) makes. */
bool c_window(CPrinter *p, const Op *op);
/* Offset in elements of the access's first element, NULL: 0. */
const char *c_offset(CPrinter *p, const Access *a);
/* The device address of the access's first element. */
const char *c_address(CPrinter *p, const Access *a);
/* The host lvalue of the access's first element. */
const char *c_element(CPrinter *p, const Access *a);
bool c_is_device(const Type *t);
/* Is the value written by anything at or below the block? */
bool c_writes(CPrinter *p, const Block *b, const Value *v);
/* The C type of an element in memory. */
const char *c_elem_type(ScalarType t);

/* ---- statements ----------------------------------------------------- */

/* Prints a statement that leaves the function when the helper's call, which
 * answers a status, does not answer EXO_OK. c_block.c */
void c_try(CPrinter *p, const char *fmt, ...) EXO_PRINTF(2, 3);
/* The ops of a block, and the release of what it allocated. c_block.c */
bool c_block(CPrinter *p, const Block *b);
/* Enters a pointer variable that the function releases at its end. */
const char *c_alloc_name(CPrinter *p, const char *wanted, bool device);
bool c_host_op(CPrinter *p, const Op *op); /* c_host.c */
/* The leading ops of a procedure that only look at arguments: all checks
 * first, then the tensor maps. Answers the first op that is none of them. */
const Op *c_prologue(CPrinter *p, const Block *b);
/* An argument check: message, and the values of the variables in cond. */
bool c_check(CPrinter *p, const Cond *cond, const char *message,
             const char *argument);
bool c_alloc(CPrinter *p, const Op *op); /* host.alloc or mem.alloc */
void c_release(CPrinter *p, const CAlloc *a);
bool c_launch(CPrinter *p, const Op *op);    /* c_launch.c */
bool c_scalar_op(CPrinter *p, const Op *op); /* c_scalar.c */

/* ---- procedures: c_proc.c ------------------------------------------- */

CFunction *c_function(CPrinter *p, const char *procedure);
/* Names the parameters of f and enters their values and ranges. */
bool c_params(CPrinter *p, CFunction *f);
/* The body's function and the exported one around it. */
bool c_proc(CPrinter *p, CFunction *f, StrBuf *out);
/* The declaration of the body's function. */
const char *c_run_prototype(CPrinter *p, const CFunction *f);
/* The comment and prototype of the header. */
void c_prototype(CPrinter *p, const CFunction *f, StrBuf *out);

/* c_scalar.c: the helpers that p->scalars names. */
void c_scalar_print(CPrinter *p, StrBuf *out);

#endif
