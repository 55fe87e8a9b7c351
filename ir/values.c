/* The Sem vocabulary over doubles.
 *
 * A double has more than twice the digits of f32, f16 and bf16, so one
 * operation in double followed by one rounding is right; fma is taken from
 * ir/scalar.h, which rounds once. Integers go through int64_t. */
#include "ir/values.h"

#include <math.h>

double value_round(ScalarType t, double x)
{
    if (t == TY_f32) {
        float f = (float)x;
        return f == f ? (double)f : scalar_round(TY_f32, x);
    }
    if (scalar_type_is_int(t))
        return (double)scalar_wrap(t, (int64_t)x);
    return scalar_round(t, x);
}

static double wrap(ScalarType t, int64_t x)
{
    return (double)scalar_wrap(t, x);
}

double value_convert(ScalarType to, ScalarType from, double x)
{
    if (to == from)
        return x;
    unsigned char bits[8] = { 0 };
    if (scalar_type_is_int(to)) {
        if (scalar_type_is_int(from))
            return wrap(to, (int64_t)x);
        scalar_encode(to, x, bits);
        return (double)scalar_decode_int(to, bits);
    }
    return value_round(to, x);
}

double value_add(ScalarType t, double a, double b)
{
    if (scalar_type_is_int(t))
        return wrap(t, (int64_t)a + (int64_t)b);
    return value_round(t, a + b);
}

static double value_mul(ScalarType t, double a, double b)
{
    if (scalar_type_is_int(t))
        return wrap(t, (int64_t)a * (int64_t)b);
    return value_round(t, a * b);
}

double value_fma(ScalarType t, double a, double b, double x)
{
    if (t == TY_f32) {
        float r = fmaf((float)a, (float)b, (float)x);
        return r == r ? (double)r : scalar_round(TY_f32, (double)r);
    }
    if (t == TY_f64)
        return scalar_fma(t, a, b, x);
    return value_add(t, value_mul(t, a, b), x);
}

static double value_div(ScalarType t, double a, double b)
{
    if (!scalar_type_is_int(t))
        return value_round(t, a / b);
    return b == 0 ? 0.0 : wrap(t, (int64_t)a / (int64_t)b);
}

static double value_neg(ScalarType t, double a)
{
    return scalar_type_is_int(t) ? wrap(t, -(int64_t)a) : value_round(t, -a);
}

static double value_pick(double a, double b, bool first)
{
    if (a != a)
        return b;
    if (b != b)
        return a;
    if (a == b)
        return (signbit(a) != 0) == first ? b : a;
    return (a > b) == first ? a : b;
}

static double value_tf32(double a)
{
    return (double)scalar_tf32_truncate((float)a);
}

static double value_tf32_rn(double a)
{
    return (double)scalar_tf32_rn((float)a);
}

#define UNARY(name, expr)                                            \
    static SemVal prim_##name(Sem *s, ScalarType t, const SemVal *v) \
    {                                                                \
        (void)s, (void)t;                                            \
        double a = v[0].f;                                           \
        return (SemVal){ .f = (expr) };                              \
    }
#define BINARY(name, expr)                                           \
    static SemVal prim_##name(Sem *s, ScalarType t, const SemVal *v) \
    {                                                                \
        (void)s, (void)t;                                            \
        double a = v[0].f, b = v[1].f;                               \
        return (SemVal){ .f = (expr) };                              \
    }

BINARY(add, value_add(t, a, b))
BINARY(sub, scalar_type_is_int(t) ? wrap(t, (int64_t)a - (int64_t)b)
                                  : value_round(t, a - b))
BINARY(mul, value_mul(t, a, b))
BINARY(div, value_div(t, a, b))
UNARY(neg, value_neg(t, a))
UNARY(abs, scalar_type_is_int(t) ? wrap(t, (int64_t)fabs(a))
                                 : value_round(t, fabs(a)))
UNARY(sin, value_round(t, sin(a)))
UNARY(sqrt, value_round(t, sqrt(a)))
UNARY(exp, value_round(t, exp(a)))
UNARY(exp2, value_round(t, exp2(a)))
UNARY(log, value_round(t, log(a)))
UNARY(log2, value_round(t, log2(a)))
UNARY(sigmoid, value_round(t, 1.0 / (1.0 + exp(-a))))
BINARY(max, value_round(t, value_pick(a, b, true)))
BINARY(min, value_round(t, value_pick(a, b, false)))
UNARY(tf32, value_tf32(a))
UNARY(tf32_rn, value_tf32_rn(a))
BINARY(lt, a < b ? 1.0 : 0.0)

static SemVal prim_fma(Sem *s, ScalarType t, const SemVal *v)
{
    (void)s;
    return (SemVal){ .f = value_fma(t, v[0].f, v[1].f, v[2].f) };
}

static SemVal prim_choose(Sem *s, ScalarType t, const SemVal *v)
{
    (void)s, (void)t;
    return v[0].f != 0.0 ? v[1] : v[2];
}

static SemVal make_constant(Sem *s, ScalarType t, double value)
{
    (void)s;
    return (SemVal){ .f = value_round(t, value) };
}

static SemVal make_convert(Sem *s, ScalarType to, ScalarType from, SemVal a)
{
    (void)s;
    return (SemVal){ .f = value_convert(to, from, a.f) };
}

Sem values_sem(void)
{
    Sem s = { .constant = make_constant, .convert = make_convert };
#define X(prim, arity) s.prim = prim_##prim;
    SEM_PRIMS(X)
#undef X
    return s;
}

double value_const(const Op *op)
{
    const Param *p = op_attr_param(op, "value");
    if (!p)
        return 0.0;
    double x = p->kind == PARAM_float ? p->f : (double)p->i;
    return value_round(op->results[0]->type->elem, x);
}

double value_arith(Sem *s, const Op *op, const double *operands)
{
    SemVal v[4] = { { 0 } };
    if (op->code == OP_arith_const)
        return value_const(op);
    ScalarType t = op->results[0]->type->elem;
    if (op->code == OP_arith_cast)
        return value_convert(t, op->operands[0].u.value->type->elem,
                             operands[0]);
    for (unsigned i = 0; i < op->n_operands && i < 4; i++)
        v[i].f = operands[i];
    return sem_apply(s, op->code, t, v).f;
}

void value_print_name(StrBuf *out, const Value *v)
{
    if (v->name)
        strbuf_add(out, v->name);
    else
        strbuf_addf(out, "%%%u", v->id);
}
