/* The vocabulary in which scalar ops are given their meaning (ir/arith.def).
 *
 * A reader (interpreter, machine, LLVM builder, C printer, Z3) fills a Sem with
 * one function per primitive and one for constants and conversions, then calls
 * sem_apply with an opcode: the row does the rest. SemVal is whatever the
 * reader needs: bits, a handle, an index. The list is an X-macro, so that a
 * reader that lacks a primitive does not compile. */
#ifndef EXO_IR_SEM_H
#define EXO_IR_SEM_H

#include "ir/ir.h"

typedef union SemVal {
    uint64_t bits;
    double f;
    void *p;
} SemVal;

/* X(primitive, arity). Corner cases: docs/semantics.md. */
#define SEM_PRIMS(X)                                                       \
    X(add, 2)                                                              \
    X(sub, 2)                                                              \
    X(mul, 2) X(div, 2) X(fma, 3) X(neg, 1) X(abs, 1) X(sin, 1) X(sqrt, 1) \
        X(exp, 1) X(exp2, 1) X(log, 1) X(log2, 1) X(sigmoid, 1) X(max, 2)  \
            X(min, 2) X(tf32, 1) X(tf32_rn, 1)                             \
                X(lt, 2) /* a truth value, only for choose */              \
        X(choose, 3)     /* truth value, then, else */

typedef struct Sem Sem;
struct Sem {
    SemVal (*constant)(Sem *s, ScalarType t, double value);
    SemVal (*convert)(Sem *s, ScalarType to, ScalarType from, SemVal a);
#define X(prim, arity) SemVal (*prim)(Sem * s, ScalarType t, const SemVal *a);
    SEM_PRIMS(X)
#undef X
    void *user;
};

/* The meaning of op (an arith row other than const and cast) at type t. */
SemVal sem_apply(Sem *s, OpCode op, ScalarType t, const SemVal *operands);

#endif
