/* Conversions between the float types, by the rules of ir/scalar.h.
 *
 * f16 and bf16 are LLVM's; e4m3 and e5m2 are bytes converted by PTX's cvt in
 * pairs, one half unused; e8m0 is a byte converted with integer operations.
 * Everything small goes through f32, which holds it exactly. From f64 to a
 * type that PTX does not reach in one step the value is first rounded to odd
 * in f32: two more digits than needed and a sticky last one, so that the
 * second rounding is right. */
#include "codegen/llvm_emit.h"

bool scalar_is_fp8(ScalarType t)
{
    return t == TY_e4m3 || t == TY_e5m2;
}

static LLVMValueRef f32_type_cast(Emit *e, LLVMValueRef bits)
{
    return LLVMBuildBitCast(e->b, bits, emit_scalar_type(e, TY_f32), "");
}

static LLVMValueRef fp8_to_f32(Emit *e, ScalarType from, LLVMValueRef v)
{
    Asm a = asm_new(e);
    unsigned out = asm_out(&a, "r", e->i32);
    LLVMValueRef wide = LLVMBuildZExt(e->b, v, e->i16, "");
    unsigned in = asm_in(&a, "h", wide);
    strbuf_addf(&a.text, "cvt.rn.f16x2.%sx2 $%u, $%u;", scalar_info(from)->ptx,
                out, in);
    LLVMValueRef pair = asm_call(&a, 0);
    LLVMValueRef low = LLVMBuildTrunc(e->b, pair, e->i16, "");
    LLVMValueRef half =
        LLVMBuildBitCast(e->b, low, emit_scalar_type(e, TY_f16), "");
    return LLVMBuildFPExt(e->b, half, emit_scalar_type(e, TY_f32), "");
}

/* 2^(b - 127): the exponent field, but 0 is subnormal and 255 a NaN. */
static LLVMValueRef e8m0_to_f32(Emit *e, LLVMValueRef v)
{
    LLVMValueRef b = LLVMBuildZExt(e->b, v, e->i32, "");
    LLVMValueRef field = LLVMBuildShl(e->b, b, emit_i32(e, 23), "");
    LLVMValueRef is_zero =
        LLVMBuildICmp(e->b, LLVMIntEQ, b, emit_i32(e, 0), "");
    LLVMValueRef is_nan =
        LLVMBuildICmp(e->b, LLVMIntEQ, b, emit_i32(e, 255), "");
    field = LLVMBuildSelect(e->b, is_zero, emit_i32(e, 0x400000), field, "");
    field = LLVMBuildSelect(e->b, is_nan, emit_i32(e, 0x7fffffff), field, "");
    return f32_type_cast(e, field);
}

LLVMValueRef emit_to_f32(Emit *e, ScalarType from, LLVMValueRef v)
{
    if (from == TY_f32)
        return v;
    if (scalar_is_fp8(from))
        return fp8_to_f32(e, from, v);
    if (from == TY_e8m0)
        return e8m0_to_f32(e, v);
    return LLVMBuildFPExt(e->b, v, emit_scalar_type(e, TY_f32), "");
}

/* Rounded up to a power of two, the sign dropped, clamped; NaN is 0xff. */
static LLVMValueRef f32_to_e8m0(Emit *e, LLVMValueRef v)
{
    LLVMValueRef bits = LLVMBuildBitCast(e->b, v, e->i32, "");
    bits = LLVMBuildAnd(e->b, bits, emit_i32(e, 0x7fffffff), "");
    LLVMValueRef up = LLVMBuildAdd(e->b, bits, emit_i32(e, 0x7fffff), "");
    up = LLVMBuildLShr(e->b, up, emit_i32(e, 23), "");
    LLVMValueRef is_least =
        LLVMBuildICmp(e->b, LLVMIntULE, bits, emit_i32(e, 0x400000), "");
    up = LLVMBuildSelect(e->b, is_least, emit_i32(e, 0), up, "");
    LLVMValueRef is_above =
        LLVMBuildICmp(e->b, LLVMIntUGT, up, emit_i32(e, 254), "");
    up = LLVMBuildSelect(e->b, is_above, emit_i32(e, 254), up, "");
    LLVMValueRef is_nan =
        LLVMBuildICmp(e->b, LLVMIntUGT, bits, emit_i32(e, 0x7f800000), "");
    up = LLVMBuildSelect(e->b, is_nan, emit_i32(e, 255), up, "");
    return LLVMBuildTrunc(e->b, up, e->i8, "");
}

LLVMValueRef emit_from_f32(Emit *e, ScalarType to, LLVMValueRef v)
{
    if (to == TY_f32)
        return v;
    if (to == TY_e8m0)
        return f32_to_e8m0(e, v);
    if (scalar_is_fp8(to)) {
        LLVMValueRef zero = LLVMConstNull(emit_scalar_type(e, TY_f32));
        LLVMValueRef pair = emit_pack2(e, to, v, zero);
        return LLVMBuildTrunc(e->b, pair, e->i8, "");
    }
    return LLVMBuildFPTrunc(e->b, v, emit_scalar_type(e, to), "");
}

LLVMValueRef emit_pack2(Emit *e, ScalarType to, LLVMValueRef lo,
                        LLVMValueRef hi)
{
    if (scalar_is_fp8(to)) {
        Asm a = asm_new(e);
        unsigned out = asm_out(&a, "h", e->i16);
        unsigned upper = asm_in(&a, "f", hi);
        unsigned lower = asm_in(&a, "f", lo);
        strbuf_addf(&a.text, "cvt.rn.satfinite.%sx2.f32 $%u, $%u, $%u;",
                    scalar_info(to)->ptx, out, upper, lower);
        return asm_call(&a, 0);
    }
    LLVMValueRef pair[2] = { hi, lo };
    LLVMValueRef v = emit_intrinsic(
        e, to == TY_f16 ? "llvm.nvvm.ff2f16x2.rn" : "llvm.nvvm.ff2bf16x2.rn", 0,
        NULL, 2, pair);
    return LLVMBuildBitCast(e->b, v, e->i32, "");
}

/* v (f64) in f32, towards zero, the last digit set where that lost any. */
static LLVMValueRef f64_to_odd_f32(Emit *e, LLVMValueRef v)
{
    LLVMTypeRef f64 = emit_scalar_type(e, TY_f64);
    LLVMValueRef cut = emit_intrinsic(e, "llvm.nvvm.d2f.rz", 0, NULL, 1, &v);
    LLVMValueRef back = LLVMBuildFPExt(e->b, cut, f64, "");
    LLVMValueRef lost = LLVMBuildFCmp(e->b, LLVMRealONE, back, v, "");
    LLVMValueRef sticky = LLVMBuildZExt(e->b, lost, e->i32, "");
    LLVMValueRef bits = LLVMBuildBitCast(e->b, cut, e->i32, "");
    bits = LLVMBuildOr(e->b, bits, sticky, "");
    return f32_type_cast(e, bits);
}

static LLVMValueRef f64_to_float(Emit *e, ScalarType to, LLVMValueRef v)
{
    if (to == TY_f32 || to == TY_f16)
        return LLVMBuildFPTrunc(e->b, v, emit_scalar_type(e, to), "");
    LLVMValueRef odd = f64_to_odd_f32(e, v);
    return emit_from_f32(e, to, odd);
}

static LLVMValueRef float_to_float(Emit *e, ScalarType to, ScalarType from,
                                   LLVMValueRef v)
{
    if (from == TY_f64)
        return f64_to_float(e, to, v);
    LLVMValueRef f = emit_to_f32(e, from, v);
    if (to == TY_f64)
        return LLVMBuildFPExt(e->b, f, emit_scalar_type(e, TY_f64), "");
    return emit_from_f32(e, to, f);
}

static LLVMValueRef int_to_float(Emit *e, ScalarType to, ScalarType from,
                                 LLVMValueRef v)
{
    bool is_signed = scalar_info(from)->kind == SK_SINT;
    bool is_direct = to == TY_f32 || to == TY_f64;
    ScalarType through = is_direct ? to : TY_f64;
    LLVMTypeRef type = emit_scalar_type(e, through);
    LLVMValueRef f = is_signed ? LLVMBuildSIToFP(e->b, v, type, "")
                               : LLVMBuildUIToFP(e->b, v, type, "");
    return is_direct ? f : f64_to_float(e, to, f);
}

static LLVMValueRef float_to_int(Emit *e, ScalarType to, ScalarType from,
                                 LLVMValueRef v)
{
    LLVMValueRef f = from == TY_f64 ? v : emit_to_f32(e, from, v);
    bool is_signed = scalar_info(to)->kind == SK_SINT;
    LLVMTypeRef types[2] = { emit_scalar_type(e, to), LLVMTypeOf(f) };
    return emit_intrinsic(e, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat",
                          2, types, 1, &f);
}

static LLVMValueRef int_to_int(Emit *e, ScalarType to, ScalarType from,
                               LLVMValueRef v)
{
    int wide = scalar_type_bytes(to), narrow = scalar_type_bytes(from);
    LLVMTypeRef type = emit_scalar_type(e, to);
    if (wide == narrow)
        return v;
    if (wide < narrow)
        return LLVMBuildTrunc(e->b, v, type, "");
    return scalar_info(from)->kind == SK_SINT
               ? LLVMBuildSExt(e->b, v, type, "")
               : LLVMBuildZExt(e->b, v, type, "");
}

LLVMValueRef emit_convert(Emit *e, ScalarType to, ScalarType from,
                          LLVMValueRef v)
{
    if (to == from)
        return v;
    if (scalar_type_is_float(from))
        return scalar_type_is_float(to) ? float_to_float(e, to, from, v)
                                        : float_to_int(e, to, from, v);
    return scalar_type_is_float(to) ? int_to_float(e, to, from, v)
                                    : int_to_int(e, to, from, v);
}
