/* The scalar ops: a reader of ir/arith.def that builds LLVM IR.
 *
 * f32 and f64 are computed as they are. f16, bf16 and the 8-bit types are
 * widened to f32 and rounded back after each primitive, which gives the right
 * result of that primitive: f32 has more than twice their digits. No
 * fast-math flag is ever set; a fused multiply-add is built only for `fma` at
 * f32 and f64. */
#include "codegen/llvm_math.h"
#include "ir/sem.h"

typedef struct Reader {
    Emit *e;
    const Op *op;
    bool failed;
} Reader;

typedef LLVMValueRef (*FloatOp)(Emit *e, const LLVMValueRef *v);

static LLVMValueRef call_n(Emit *e, const char *name, unsigned n,
                           const LLVMValueRef *v)
{
    LLVMValueRef args[3];
    for (unsigned i = 0; i < n; i++)
        args[i] = v[i];
    LLVMTypeRef type = LLVMTypeOf(v[0]);
    return emit_intrinsic(e, name, 1, &type, n, args);
}

static LLVMValueRef float_add(Emit *e, const LLVMValueRef *v)
{
    return LLVMBuildFAdd(e->b, v[0], v[1], "");
}

static LLVMValueRef float_sub(Emit *e, const LLVMValueRef *v)
{
    return LLVMBuildFSub(e->b, v[0], v[1], "");
}

static LLVMValueRef float_mul(Emit *e, const LLVMValueRef *v)
{
    return LLVMBuildFMul(e->b, v[0], v[1], "");
}

static LLVMValueRef float_div(Emit *e, const LLVMValueRef *v)
{
    return LLVMBuildFDiv(e->b, v[0], v[1], "");
}

static LLVMValueRef float_fma(Emit *e, const LLVMValueRef *v)
{
    return call_n(e, "llvm.fma", 3, v);
}

static LLVMValueRef float_neg(Emit *e, const LLVMValueRef *v)
{
    return LLVMBuildFNeg(e->b, v[0], "");
}

static LLVMValueRef float_abs(Emit *e, const LLVMValueRef *v)
{
    return call_n(e, "llvm.fabs", 1, v);
}

static LLVMValueRef float_sqrt(Emit *e, const LLVMValueRef *v)
{
    return call_n(e, "llvm.sqrt", 1, v);
}

static LLVMValueRef float_max(Emit *e, const LLVMValueRef *v)
{
    return call_n(e, "llvm.maxnum", 2, v);
}

static LLVMValueRef float_min(Emit *e, const LLVMValueRef *v)
{
    return call_n(e, "llvm.minnum", 2, v);
}

/* fn on n operands of float type t: as they are, or through f32. */
static LLVMValueRef in_float(Emit *e, ScalarType t, FloatOp fn, unsigned n,
                             const LLVMValueRef *v)
{
    if (t == TY_f32 || t == TY_f64)
        return fn(e, v);
    LLVMValueRef wide[3];
    for (unsigned i = 0; i < n; i++)
        wide[i] = emit_to_f32(e, t, v[i]);
    LLVMValueRef result = fn(e, wide);
    return emit_from_f32(e, t, result);
}

static bool is_signed(ScalarType t)
{
    return scalar_info(t)->kind == SK_SINT;
}

/* Truncating; x / 0 is 0, and the least value by -1 wraps to itself. */
static LLVMValueRef int_div(Emit *e, ScalarType t, LLVMValueRef a,
                            LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef zero = LLVMConstNull(type);
    LLVMValueRef one = LLVMConstInt(type, 1, false);
    LLVMValueRef is_zero = LLVMBuildICmp(e->b, LLVMIntEQ, b, zero, "");
    LLVMValueRef is_special = is_zero, special = zero;
    if (is_signed(t)) {
        LLVMValueRef minus_one = LLVMConstAllOnes(type);
        LLVMValueRef is_minus =
            LLVMBuildICmp(e->b, LLVMIntEQ, b, minus_one, "");
        LLVMValueRef negated = LLVMBuildNeg(e->b, a, "");
        special = LLVMBuildSelect(e->b, is_minus, negated, zero, "");
        is_special = LLVMBuildOr(e->b, is_zero, is_minus, "");
    }
    LLVMValueRef safe = LLVMBuildSelect(e->b, is_special, one, b, "");
    LLVMValueRef q = is_signed(t) ? LLVMBuildSDiv(e->b, a, safe, "")
                                  : LLVMBuildUDiv(e->b, a, safe, "");
    return LLVMBuildSelect(e->b, is_special, special, q, "");
}

static LLVMValueRef values_of(const SemVal *a, unsigned n, LLVMValueRef *v)
{
    for (unsigned i = 0; i < n; i++)
        v[i] = a[i].p;
    return v[0];
}

static SemVal sem_value(LLVMValueRef v)
{
    return (SemVal){ .p = v };
}

/* Defines a primitive: `fn` for floats, the statement for integers, in which
 * v holds the operands. */
#define PRIMITIVE(prim, arity, fn, integer)                          \
    static SemVal llvm_##prim(Sem *s, ScalarType t, const SemVal *a) \
    {                                                                \
        Emit *e = ((Reader *)s->user)->e;                            \
        LLVMValueRef v[arity];                                       \
        values_of(a, arity, v);                                      \
        if (scalar_type_is_float(t))                                 \
            return sem_value(in_float(e, t, fn, arity, v));          \
        return sem_value(integer);                                   \
    }

static LLVMValueRef int_extreme(Emit *e, ScalarType t, bool want_max,
                                const LLVMValueRef *v)
{
    const char *name = want_max ? (is_signed(t) ? "llvm.smax" : "llvm.umax")
                                : (is_signed(t) ? "llvm.smin" : "llvm.umin");
    return call_n(e, name, 2, v);
}

static LLVMValueRef int_abs(Emit *e, ScalarType t, LLVMValueRef v)
{
    if (!is_signed(t))
        return v;
    LLVMValueRef args[2] = { v, LLVMConstInt(e->i1, 0, false) };
    LLVMTypeRef type = LLVMTypeOf(v);
    return emit_intrinsic(e, "llvm.abs", 1, &type, 2, args);
}

PRIMITIVE(add, 2, float_add, LLVMBuildAdd(e->b, v[0], v[1], ""))
PRIMITIVE(sub, 2, float_sub, LLVMBuildSub(e->b, v[0], v[1], ""))
PRIMITIVE(mul, 2, float_mul, LLVMBuildMul(e->b, v[0], v[1], ""))
PRIMITIVE(div, 2, float_div, int_div(e, t, v[0], v[1]))
PRIMITIVE(neg, 1, float_neg, LLVMBuildNeg(e->b, v[0], ""))
PRIMITIVE(abs, 1, float_abs, int_abs(e, t, v[0]))
PRIMITIVE(max, 2, float_max, int_extreme(e, t, true, v))
PRIMITIVE(min, 2, float_min, int_extreme(e, t, false, v))

static SemVal llvm_fma(Sem *s, ScalarType t, const SemVal *a)
{
    Emit *e = ((Reader *)s->user)->e;
    LLVMValueRef v[3];
    values_of(a, 3, v);
    return sem_value(emit_prim_fma(e, t, v[0], v[1], v[2]));
}

static SemVal no_code(Sem *s, ScalarType t)
{
    Reader *r = s->user;
    if (!r->failed)
        emit_error(r->e, r->op,
                   "has no device code at type %s: expected a "
                   "float of at most 32 bits",
                   scalar_type_name(t));
    r->failed = true;
    return sem_value(LLVMGetUndef(emit_scalar_type(r->e, t)));
}

static SemVal through_f32(Sem *s, ScalarType t, const SemVal *a,
                          LLVMValueRef (*fn)(Emit *, LLVMValueRef))
{
    Emit *e = ((Reader *)s->user)->e;
    if (!scalar_type_is_float(t) || t == TY_f64)
        return no_code(s, t);
    LLVMValueRef wide = emit_to_f32(e, t, a[0].p);
    LLVMValueRef result = fn(e, wide);
    return sem_value(emit_from_f32(e, t, result));
}

#define THROUGH_F32(prim, fn)                                        \
    static SemVal llvm_##prim(Sem *s, ScalarType t, const SemVal *a) \
    {                                                                \
        return through_f32(s, t, a, fn);                             \
    }

/* The float of these bits, without the low 13; of a NaN v the canonical one. */
static LLVMValueRef drop_low_bits(Emit *e, LLVMValueRef v, LLVMValueRef bits)
{
    LLVMTypeRef f32 = emit_scalar_type(e, TY_f32);
    LLVMValueRef cut = LLVMBuildAnd(e->b, bits, emit_i32(e, ~0x1fff), "");
    LLVMValueRef is_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, v, v, "");
    cut = LLVMBuildSelect(e->b, is_nan, emit_i32(e, 0x7fffffff), cut, "");
    return LLVMBuildBitCast(e->b, cut, f32, "");
}

static LLVMValueRef truncate_tf32(Emit *e, LLVMValueRef v)
{
    return drop_low_bits(e, v, LLVMBuildBitCast(e->b, v, e->i32, ""));
}

/* Half of the last place that stays, or where that is even a little less, is
 * added, which leaves an infinity as it is. */
static LLVMValueRef round_tf32(Emit *e, LLVMValueRef v)
{
    LLVMValueRef bits = LLVMBuildBitCast(e->b, v, e->i32, "");
    LLVMValueRef odd =
        LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, bits, emit_i32(e, 13), ""),
                     emit_i32(e, 1), "");
    LLVMValueRef half = LLVMBuildAdd(e->b, odd, emit_i32(e, 0xfff), "");
    return drop_low_bits(e, v, LLVMBuildAdd(e->b, bits, half, ""));
}

THROUGH_F32(sin, math_sin)
THROUGH_F32(exp, math_exp)
THROUGH_F32(exp2, math_exp2)
THROUGH_F32(log, math_log)
THROUGH_F32(log2, math_log2)
THROUGH_F32(sigmoid, math_sigmoid)
THROUGH_F32(tf32, truncate_tf32)
THROUGH_F32(tf32_rn, round_tf32)

static SemVal llvm_sqrt(Sem *s, ScalarType t, const SemVal *a)
{
    Emit *e = ((Reader *)s->user)->e;
    LLVMValueRef v = a[0].p;
    if (!scalar_type_is_float(t))
        return no_code(s, t);
    return sem_value(in_float(e, t, float_sqrt, 1, &v));
}

static SemVal llvm_lt(Sem *s, ScalarType t, const SemVal *a)
{
    Emit *e = ((Reader *)s->user)->e;
    LLVMValueRef x = a[0].p, y = a[1].p;
    if (!scalar_type_is_float(t))
        return sem_value(LLVMBuildICmp(
            e->b, is_signed(t) ? LLVMIntSLT : LLVMIntULT, x, y, ""));
    if (t != TY_f64) {
        x = emit_to_f32(e, t, x);
        y = emit_to_f32(e, t, y);
    }
    return sem_value(LLVMBuildFCmp(e->b, LLVMRealOLT, x, y, ""));
}

static SemVal llvm_choose(Sem *s, ScalarType t, const SemVal *a)
{
    (void)t;
    Emit *e = ((Reader *)s->user)->e;
    return sem_value(LLVMBuildSelect(e->b, a[0].p, a[1].p, a[2].p, ""));
}

static SemVal llvm_constant(Sem *s, ScalarType t, double value)
{
    return sem_value(emit_constant(((Reader *)s->user)->e, t, value));
}

static SemVal llvm_convert(Sem *s, ScalarType to, ScalarType from, SemVal a)
{
    return sem_value(emit_convert(((Reader *)s->user)->e, to, from, a.p));
}

LLVMValueRef emit_constant(Emit *e, ScalarType t, double value)
{
    unsigned char bytes[8] = { 0 };
    scalar_encode(t, value, bytes);
    uint64_t bits = scalar_load_bits(t, bytes);
    unsigned width = 8 * (unsigned)scalar_type_bytes(t);
    LLVMValueRef v =
        LLVMConstInt(LLVMIntTypeInContext(e->lc, width), bits, false);
    return LLVMConstBitCast(v, emit_scalar_type(e, t));
}

LLVMValueRef emit_prim_add(Emit *e, ScalarType t, LLVMValueRef a,
                           LLVMValueRef b)
{
    LLVMValueRef v[2] = { a, b };
    return scalar_type_is_float(t) ? in_float(e, t, float_add, 2, v)
                                   : LLVMBuildAdd(e->b, a, b, "");
}

LLVMValueRef emit_prim_fma(Emit *e, ScalarType t, LLVMValueRef a,
                           LLVMValueRef b, LLVMValueRef c)
{
    LLVMValueRef v[3] = { a, b, c };
    if (t == TY_f32 || t == TY_f64)
        return float_fma(e, v);
    LLVMValueRef product = scalar_type_is_float(t)
                               ? in_float(e, t, float_mul, 2, v)
                               : LLVMBuildMul(e->b, a, b, "");
    return emit_prim_add(e, t, product, c);
}

static bool emit_literal(Emit *e, const Op *op, ScalarType t)
{
    const Param *p = op_attr_param(op, "value");
    double value;
    if (p && p->kind == PARAM_int)
        value = (double)p->i;
    else if (p && p->kind == PARAM_float)
        value = p->f;
    else
        return emit_error(e, op, "must have a number as its value");
    LLVMValueRef v = emit_constant(e, t, value);
    emit_set_value(e, op->results[0], 1, &v);
    return true;
}

/* The operands of op as LLVM values; false when one is no scalar. */
static bool gather(Emit *e, const Op *op, SemVal *out)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (op->operands[i].kind != OPND_value)
            return emit_error(e, op, "operand %u must be a scalar", i);
        const EmitValue *ev = emit_value(e, op->operands[i].u.value);
        if (ev->n != 1)
            return emit_error(e, op, "operand %u must be a scalar", i);
        out[i] = sem_value(ev->parts[0]);
    }
    return true;
}

bool emit_arith(Emit *e, const Op *op)
{
    ScalarType t = op->results[0]->type->elem;
    SemVal operands[4], result;
    if (op->code == OP_arith_const)
        return emit_literal(e, op, t);
    if (op->n_operands > 4 || !gather(e, op, operands))
        return false;
    Reader reader = { .e = e, .op = op };
    Sem sem = { .constant = llvm_constant,
                .convert = llvm_convert,
#define X(prim, arity) .prim = llvm_##prim,
                SEM_PRIMS(X)
#undef X
                    .user = &reader };
    if (op->code == OP_arith_cast)
        result = llvm_convert(&sem, t, op->operands[0].u.value->type->elem,
                              operands[0]);
    else
        result = sem_apply(&sem, op->code, t, operands);
    LLVMValueRef v = result.p;
    emit_set_value(e, op->results[0], 1, &v);
    return !reader.failed;
}
