/* Scalar arithmetic on the host: the vocabulary of ir/sem.h over doubles.
 *
 * Every data type's values are exact in a double, so a value of any type is
 * held as one (SemVal.f). Each primitive rounds to its type once; integers
 * wrap. The interpreter, the machine model and constant folding use it, so
 * that all have the same arithmetic by construction. */
#ifndef EXO_IR_VALUES_H
#define EXO_IR_VALUES_H

#include "ir/sem.h"

/* A vocabulary over SemVal.f; stateless, may be copied. */
Sem values_sem(void);

/* x rounded (floating types) or wrapped (integers) to t. */
double value_round(ScalarType t, double x);
/* The cast from one type to another. */
double value_convert(ScalarType to, ScalarType from, double x);
/* The meaning of x += a * b: fused for f32 and f64, else two roundings. */
double value_fma(ScalarType t, double a, double b, double x);
double value_add(ScalarType t, double a, double b);
/* The value of an arith.const op. */
double value_const(const Op *op);
/* An arith op on its operands' values; const and cast included. */
double value_arith(Sem *s, const Op *op, const double *operands);
/* Name, as `%x` or `%7`, for messages. */
void value_print_name(StrBuf *out, const Value *v);

#endif
