/* The functions that PTX has no exact instruction for, in f32; f16, bf16 and
 * the 8-bit types go through f32. No table is loaded and no libdevice is
 * linked. What is computed, and its error against the exact value:
 *
 *   exp    x = t ln 2 + r, t integer; ex2.approx(r log2 e) 2^t    3 ulp
 *   exp2   x = t + r, t integer; ex2.approx(r) 2^t                3 ulp
 *   sigmoid  rcp.approx(1 + exp(-x)), scaled down where the
 *          sum is large                                          5 ulp
 *   log    x = m 2^k, m in [sqrt 1/2, sqrt 2);
 *          k ln 2 + 2 atanh((m - 1) / (m + 1)) by its series      1 ulp
 *   log2   the same, times log2 e                                 2 ulp
 *   sin    in f64: x - q pi/2 with pi/2 in two pieces, then the
 *          series of sine or cosine                               1 ulp for
 *                                                     |x| below 2^50
 *
 * Zeros, infinities and NaN as in C. Subnormal results are kept. */
#include "codegen/llvm_math.h"

static LLVMValueRef f32_const(Emit *e, double c)
{
    return LLVMConstReal(emit_scalar_type(e, TY_f32), c);
}

static LLVMValueRef f64_const(Emit *e, double c)
{
    return LLVMConstReal(emit_scalar_type(e, TY_f64), c);
}

static LLVMValueRef call_unary(Emit *e, const char *name, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return emit_intrinsic(e, name, 1, &type, 1, &x);
}

static LLVMValueRef fma3(Emit *e, LLVMValueRef a, LLVMValueRef b,
                         LLVMValueRef c)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef v[3] = { a, b, c };
    return emit_intrinsic(e, "llvm.fma", 1, &type, 3, v);
}

static LLVMValueRef ex2_approx(Emit *e, LLVMValueRef x)
{
    return emit_intrinsic(e, "llvm.nvvm.ex2.approx.f", 0, NULL, 1, &x);
}

/* x between lo and hi; a NaN stays. */
static LLVMValueRef clamp(Emit *e, LLVMValueRef x, double lo, double hi)
{
    LLVMValueRef least = f32_const(e, lo), most = f32_const(e, hi);
    LLVMValueRef below = LLVMBuildFCmp(e->b, LLVMRealOLT, x, least, "");
    x = LLVMBuildSelect(e->b, below, least, x, "");
    LLVMValueRef above = LLVMBuildFCmp(e->b, LLVMRealOGT, x, most, "");
    return LLVMBuildSelect(e->b, above, most, x, "");
}

/* 2^t for an i32 t in -126 .. 127. */
static LLVMValueRef power_of_two(Emit *e, LLVMValueRef t)
{
    LLVMValueRef field = LLVMBuildAdd(e->b, t, emit_i32(e, 127), "");
    field = LLVMBuildShl(e->b, field, emit_i32(e, 23), "");
    return LLVMBuildBitCast(e->b, field, emit_scalar_type(e, TY_f32), "");
}

/* y 2^t in two steps, so that results below the normal range round once. */
static LLVMValueRef scale_by(Emit *e, LLVMValueRef y, LLVMValueRef t)
{
    LLVMTypeRef types[2] = { e->i32, LLVMTypeOf(t) };
    LLVMValueRef k = emit_intrinsic(e, "llvm.fptosi.sat", 2, types, 1, &t);
    LLVMValueRef half = LLVMBuildAShr(e->b, k, emit_i32(e, 1), "");
    LLVMValueRef rest = LLVMBuildSub(e->b, k, half, "");
    LLVMValueRef first = power_of_two(e, half);
    LLVMValueRef second = power_of_two(e, rest);
    y = LLVMBuildFMul(e->b, y, first, "");
    return LLVMBuildFMul(e->b, y, second, "");
}

LLVMValueRef math_exp2(Emit *e, LLVMValueRef x)
{
    x = clamp(e, x, -152.0, 130.0);
    LLVMValueRef t = call_unary(e, "llvm.rint", x);
    LLVMValueRef r = LLVMBuildFSub(e->b, x, t, "");
    LLVMValueRef y = ex2_approx(e, r);
    return scale_by(e, y, t);
}

LLVMValueRef math_exp(Emit *e, LLVMValueRef x)
{
    x = clamp(e, x, -105.0, 90.0);
    LLVMValueRef log2e = f32_const(e, 0x1.715476p+0);
    LLVMValueRef scaled = LLVMBuildFMul(e->b, x, log2e, "");
    LLVMValueRef t = call_unary(e, "llvm.rint", scaled);
    LLVMValueRef r = fma3(e, t, f32_const(e, -0x1.62e4p-1), x);
    r = fma3(e, t, f32_const(e, -0x1.7f7d1cp-20), r);
    r = LLVMBuildFMul(e->b, r, log2e, "");
    LLVMValueRef y = ex2_approx(e, r);
    return scale_by(e, y, t);
}

/* The reciprocal instruction takes a result below the normal range as 0; the
 * sum is then scaled down, and the result after it. */
LLVMValueRef math_sigmoid(Emit *e, LLVMValueRef x)
{
    LLVMValueRef one = f32_const(e, 1.0);
    LLVMValueRef power = math_exp(e, LLVMBuildFNeg(e->b, x, ""));
    LLVMValueRef sum = LLVMBuildFAdd(e->b, one, power, "");
    LLVMValueRef large =
        LLVMBuildFCmp(e->b, LLVMRealOGT, sum, f32_const(e, 0x1p100), "");
    LLVMValueRef scale =
        LLVMBuildSelect(e->b, large, f32_const(e, 0x1p-64), one, "");
    LLVMValueRef scaled = LLVMBuildFMul(e->b, sum, scale, "");
    LLVMValueRef y =
        emit_intrinsic(e, "llvm.nvvm.rcp.approx.ftz.f", 0, NULL, 1, &scaled);
    return LLVMBuildFMul(e->b, y, scale, "");
}

/* c[0] + z (c[1] + z (..)). */
static LLVMValueRef polynomial(Emit *e, LLVMValueRef z, const double *c,
                               unsigned n)
{
    LLVMTypeRef type = LLVMTypeOf(z);
    LLVMValueRef sum = LLVMConstReal(type, c[n - 1]);
    for (unsigned i = n - 1; i-- > 0;)
        sum = fma3(e, sum, z, LLVMConstReal(type, c[i]));
    return sum;
}

/* For finite x > 0: its logarithm is k ln 2 + *log_m. */
static LLVMValueRef log_parts(Emit *e, LLVMValueRef x, LLVMValueRef *log_m)
{
    static const double atanh_series[] = { 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9,
                                           2.0 / 11 };
    LLVMTypeRef f32 = emit_scalar_type(e, TY_f32);
    LLVMValueRef least = f32_const(e, 0x1p-126);
    LLVMValueRef is_sub = LLVMBuildFCmp(e->b, LLVMRealOLT, x, least, "");
    LLVMValueRef up = LLVMBuildFMul(e->b, x, f32_const(e, 0x1p23), "");
    x = LLVMBuildSelect(e->b, is_sub, up, x, "");
    LLVMValueRef bias =
        LLVMBuildSelect(e->b, is_sub, emit_i32(e, -23), emit_i32(e, 0), "");
    LLVMValueRef bits = LLVMBuildBitCast(e->b, x, e->i32, "");
    LLVMValueRef from_root =
        LLVMBuildSub(e->b, bits, emit_i32(e, 0x3f3504f3), "");
    LLVMValueRef k = LLVMBuildAShr(e->b, from_root, emit_i32(e, 23), "");
    LLVMValueRef shift = LLVMBuildShl(e->b, k, emit_i32(e, 23), "");
    LLVMValueRef m_bits = LLVMBuildSub(e->b, bits, shift, "");
    LLVMValueRef m = LLVMBuildBitCast(e->b, m_bits, f32, "");
    LLVMValueRef f = LLVMBuildFSub(e->b, m, f32_const(e, 1.0), "");
    LLVMValueRef sum = LLVMBuildFAdd(e->b, f, f32_const(e, 2.0), "");
    LLVMValueRef s = LLVMBuildFDiv(e->b, f, sum, "");
    LLVMValueRef z = LLVMBuildFMul(e->b, s, s, "");
    LLVMValueRef series = polynomial(e, z, atanh_series, 5);
    LLVMValueRef tail = LLVMBuildFMul(e->b, z, series, "");
    LLVMValueRef minus_s = LLVMBuildFNeg(e->b, s, "");
    LLVMValueRef rest = LLVMBuildFMul(e->b, minus_s, f, "");
    rest = fma3(e, s, tail, rest);
    *log_m = LLVMBuildFAdd(e->b, f, rest, "");
    k = LLVMBuildAdd(e->b, k, bias, "");
    return LLVMBuildSIToFP(e->b, k, f32, "");
}

/* What log gives for x that is not finite and positive, else `result`. */
static LLVMValueRef log_special(Emit *e, LLVMValueRef x, LLVMValueRef result)
{
    LLVMValueRef zero = f32_const(e, 0.0);
    LLVMValueRef inf = f32_const(e, __builtin_inf());
    LLVMValueRef minus_inf = f32_const(e, -__builtin_inf());
    LLVMValueRef nan = f32_const(e, __builtin_nan(""));
    LLVMValueRef is_inf = LLVMBuildFCmp(e->b, LLVMRealOEQ, x, inf, "");
    result = LLVMBuildSelect(e->b, is_inf, inf, result, "");
    LLVMValueRef is_zero = LLVMBuildFCmp(e->b, LLVMRealOEQ, x, zero, "");
    result = LLVMBuildSelect(e->b, is_zero, minus_inf, result, "");
    LLVMValueRef is_bad = LLVMBuildFCmp(e->b, LLVMRealULT, x, zero, "");
    return LLVMBuildSelect(e->b, is_bad, nan, result, "");
}

LLVMValueRef math_log(Emit *e, LLVMValueRef x)
{
    LLVMValueRef log_m;
    LLVMValueRef k = log_parts(e, x, &log_m);
    LLVMValueRef low = fma3(e, k, f32_const(e, 0x1.7f7d1cp-20), log_m);
    LLVMValueRef sum = fma3(e, k, f32_const(e, 0x1.62e4p-1), low);
    return log_special(e, x, sum);
}

LLVMValueRef math_log2(Emit *e, LLVMValueRef x)
{
    LLVMValueRef log_m;
    LLVMValueRef k = log_parts(e, x, &log_m);
    LLVMValueRef sum = fma3(e, log_m, f32_const(e, 0x1.715476p+0), k);
    return log_special(e, x, sum);
}

LLVMValueRef math_sin(Emit *e, LLVMValueRef x)
{
    static const double sine[] = { 1.0,         -1.0 / 6,     1.0 / 120,
                                   -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800 };
    static const double cosine[] = {
        1.0,         -1.0 / 2,       1.0 / 24,       -1.0 / 720,
        1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600
    };
    LLVMTypeRef f64 = emit_scalar_type(e, TY_f64);
    LLVMValueRef d = LLVMBuildFPExt(e->b, x, f64, "");
    LLVMValueRef scaled =
        LLVMBuildFMul(e->b, d, f64_const(e, 0x1.45f306dc9c883p-1), "");
    LLVMValueRef q = call_unary(e, "llvm.rint", scaled);
    LLVMValueRef r = fma3(e, q, f64_const(e, -0x1.921fb54442d18p+0), d);
    r = fma3(e, q, f64_const(e, -0x1.1a62633145c07p-54), r);
    LLVMTypeRef types[2] = { e->i64, f64 };
    LLVMValueRef n = emit_intrinsic(e, "llvm.fptosi.sat", 2, types, 1, &q);
    LLVMValueRef z = LLVMBuildFMul(e->b, r, r, "");
    LLVMValueRef s = polynomial(e, z, sine, 6);
    s = LLVMBuildFMul(e->b, s, r, "");
    LLVMValueRef c = polynomial(e, z, cosine, 7);
    LLVMValueRef odd = LLVMBuildTrunc(e->b, n, e->i1, "");
    LLVMValueRef y = LLVMBuildSelect(e->b, odd, c, s, "");
    LLVMValueRef two = LLVMBuildAnd(e->b, n, emit_i64(e, 2), "");
    LLVMValueRef flip = LLVMBuildICmp(e->b, LLVMIntNE, two, emit_i64(e, 0), "");
    LLVMValueRef minus = LLVMBuildFNeg(e->b, y, "");
    y = LLVMBuildSelect(e->b, flip, minus, y, "");
    LLVMValueRef result =
        LLVMBuildFPTrunc(e->b, y, emit_scalar_type(e, TY_f32), "");
    LLVMValueRef is_zero =
        LLVMBuildFCmp(e->b, LLVMRealOEQ, x, f32_const(e, 0.0), "");
    return LLVMBuildSelect(e->b, is_zero, x, result, "");
}
