/* Index expressions and conditions as integer arithmetic.
 *
 * Ranges come from the calling convention (passes/abi.h: controls are within
 * +-2^30), the coordinates and the loops. An expression whose range fits 32
 * bits is computed in 32, otherwise in 64; a sum may wrap on the way, since
 * that is harmless modulo 2^bits, but the argument of a division is always
 * computed in bits that hold it. floordiv and mod by a power of two are a
 * shift and a mask whatever the sign; by another divisor they are unsigned
 * where the argument cannot be negative, and corrected signed ones elsewhere.
 */
#include "codegen/llvm_emit.h"

#define RANGE_MAX (INT64_C(1) << 62)

static int64_t clamp(int64_t x)
{
    return x > RANGE_MAX ? RANGE_MAX : x < -RANGE_MAX ? -RANGE_MAX : x;
}

static int64_t sat_add(int64_t a, int64_t b)
{
    return clamp(clamp(a) + clamp(b));
}

static int64_t sat_mul(int64_t a, int64_t b)
{
    int64_t r;
    if (!__builtin_mul_overflow(a, b, &r))
        return clamp(r);
    return (a < 0) == (b < 0) ? RANGE_MAX : -RANGE_MAX;
}

static Range range_mul(Range a, Range b)
{
    int64_t p[4] = { sat_mul(a.lo, b.lo), sat_mul(a.lo, b.hi),
                     sat_mul(a.hi, b.lo), sat_mul(a.hi, b.hi) };
    Range r = { p[0], p[0] };
    for (int i = 1; i < 4; i++) {
        r.lo = p[i] < r.lo ? p[i] : r.lo;
        r.hi = p[i] > r.hi ? p[i] : r.hi;
    }
    return r;
}

static Range atom_range(Emit *e, const Atom *atom)
{
    Range arg;
    switch (atom->kind) {
    case ATOM_var:
        return e->vars[atom->var].range;
    case ATOM_floordiv:
        arg = index_range(e, atom->arg);
        return (Range){ int_floordiv(arg.lo, atom->divisor),
                        int_floordiv(arg.hi, atom->divisor) };
    case ATOM_mod:
        return (Range){ 0, atom->divisor - 1 };
    default:
        if (atom->opaque == OPAQUE_product) {
            Range lhs = index_range(e, atom->lhs);
            return range_mul(lhs, index_range(e, atom->rhs));
        }
        return (Range){ -ABI_CONTROL_LIMIT, ABI_CONTROL_LIMIT };
    }
}

Range index_range(Emit *e, const Affine *a)
{
    Range r = { clamp(a->constant), clamp(a->constant) };
    for (uint32_t i = 0; i < a->n_terms; i++) {
        Range coef = { a->terms[i].coef, a->terms[i].coef };
        Range t = range_mul(coef, atom_range(e, a->terms[i].atom));
        r.lo = sat_add(r.lo, t.lo);
        r.hi = sat_add(r.hi, t.hi);
    }
    return r;
}

bool range_fits_i32(Range r)
{
    return r.lo >= INT32_MIN && r.hi <= INT32_MAX;
}

static bool range_fits(Range r, unsigned bits)
{
    return bits == 32 ? range_fits_i32(r)
                      : r.lo > -RANGE_MAX && r.hi < RANGE_MAX;
}

static LLVMTypeRef int_type(Emit *e, unsigned bits)
{
    return bits == 32 ? e->i32 : e->i64;
}

static LLVMValueRef int_const(Emit *e, int64_t c, unsigned bits)
{
    return bits == 32 ? emit_i32(e, c) : emit_i64(e, c);
}

static LLVMValueRef resize(Emit *e, LLVMValueRef v, unsigned bits)
{
    unsigned have = LLVMGetIntTypeWidth(LLVMTypeOf(v));
    if (have == bits)
        return v;
    return have < bits ? LLVMBuildSExt(e->b, v, int_type(e, bits), "")
                       : LLVMBuildTrunc(e->b, v, int_type(e, bits), "");
}

static bool is_power_of_two(int64_t c)
{
    return (c & (c - 1)) == 0;
}

static unsigned log_two(int64_t c)
{
    unsigned n = 0;
    while (c > 1) {
        c >>= 1;
        n++;
    }
    return n;
}

/* floor(v / d) or v mod d for a d that is no power of two, v of any sign: the
 * truncated quotient and remainder, mended where the remainder is negative. */
static LLVMValueRef floor_signed(Emit *e, LLVMValueRef v, LLVMValueRef d,
                                 bool want_mod)
{
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(v));
    LLVMValueRef rem = LLVMBuildSRem(e->b, v, d, "");
    LLVMValueRef below = LLVMBuildICmp(e->b, LLVMIntSLT, rem, zero, "");
    if (want_mod) {
        LLVMValueRef mended = LLVMBuildAdd(e->b, rem, d, "");
        return LLVMBuildSelect(e->b, below, mended, rem, "");
    }
    LLVMValueRef quotient = LLVMBuildSDiv(e->b, v, d, "");
    LLVMValueRef one = LLVMBuildSExt(e->b, below, LLVMTypeOf(v), "");
    return LLVMBuildAdd(e->b, quotient, one, "");
}

static LLVMValueRef emit_division(Emit *e, const Op *op, const Atom *atom)
{
    Range range = index_range(e, atom->arg);
    bool want_mod = atom->kind == ATOM_mod;
    bool is_wide = !range_fits_i32(range) || atom->divisor > INT32_MAX;
    unsigned bits = is_wide ? 64 : 32;
    LLVMValueRef v = emit_index(e, op, atom->arg, bits);
    if (!v)
        return NULL;
    if (is_power_of_two(atom->divisor)) {
        if (want_mod)
            return LLVMBuildAnd(e->b, v, int_const(e, atom->divisor - 1, bits),
                                "");
        LLVMValueRef by = int_const(e, log_two(atom->divisor), bits);
        return range.lo >= 0 ? LLVMBuildLShr(e->b, v, by, "")
                             : LLVMBuildAShr(e->b, v, by, "");
    }
    LLVMValueRef d = int_const(e, atom->divisor, bits);
    if (range.lo < 0)
        return floor_signed(e, v, d, want_mod);
    return want_mod ? LLVMBuildURem(e->b, v, d, "")
                    : LLVMBuildUDiv(e->b, v, d, "");
}

/* A stride of a window parameter is one of its parts (after the pointer); that
 * of a dense tensor is the product of the later extents. */
static LLVMValueRef emit_stride(Emit *e, const Op *op, const Atom *atom,
                                unsigned bits)
{
    const Value *v = atom->ref;
    const EmitValue *ev = emit_value(e, v);
    if (v->type->kind == TK_window && ev->n == v->type->rank + 1)
        return resize(e, ev->parts[1 + atom->dim], bits);
    if (v->type->kind != TK_tensor || !v->shape || v->def) {
        emit_error(e, op, "uses a stride that the kernel does not receive");
        return NULL;
    }
    LLVMValueRef product = int_const(e, 1, bits);
    for (unsigned d = atom->dim + 1; d < v->type->rank; d++) {
        LLVMValueRef extent = emit_index(e, op, v->shape[d], bits);
        if (!extent)
            return NULL;
        product = LLVMBuildMul(e->b, product, extent, "");
    }
    return product;
}

static LLVMValueRef emit_atom(Emit *e, const Op *op, const Atom *atom,
                              unsigned bits)
{
    LLVMValueRef lhs, rhs;
    switch (atom->kind) {
    case ATOM_var:
        if (!e->vars[atom->var].value) {
            const Var *var = var_get(e->m->exprs, atom->var);
            emit_error(e, op, "uses '%s', which is not defined here",
                       var->name);
            return NULL;
        }
        return resize(e, e->vars[atom->var].value, bits);
    case ATOM_floordiv:
    case ATOM_mod:
        lhs = emit_division(e, op, atom);
        return lhs ? resize(e, lhs, bits) : NULL;
    default:
        break;
    }
    switch (atom->opaque) {
    case OPAQUE_product:
        lhs = emit_index(e, op, atom->lhs, bits);
        rhs = lhs ? emit_index(e, op, atom->rhs, bits) : NULL;
        return rhs ? LLVMBuildMul(e->b, lhs, rhs, "") : NULL;
    case OPAQUE_stride:
        return emit_stride(e, op, atom, bits);
    default:
        emit_error(e, op,
                   "reads the configuration field '%s', which a kernel "
                   "does not receive",
                   atom->name);
        return NULL;
    }
}

LLVMValueRef emit_index(Emit *e, const Op *op, const Affine *a, unsigned bits)
{
    LLVMValueRef sum = NULL;
    Range range = { 0, 0 };
    for (uint32_t i = 0; i < a->n_terms; i++) {
        const Term *term = &a->terms[i];
        LLVMValueRef v = emit_atom(e, op, term->atom, bits);
        if (!v)
            return NULL;
        Range coef = { term->coef, term->coef };
        Range product = range_mul(coef, atom_range(e, term->atom));
        LLVMValueRef by = int_const(e, term->coef, bits);
        if (term->coef != 1)
            v = range_fits(product, bits) ? LLVMBuildNSWMul(e->b, v, by, "")
                                          : LLVMBuildMul(e->b, v, by, "");
        range.lo = sat_add(range.lo, product.lo);
        range.hi = sat_add(range.hi, product.hi);
        if (!sum)
            sum = v;
        else
            sum = range_fits(range, bits) ? LLVMBuildNSWAdd(e->b, sum, v, "")
                                          : LLVMBuildAdd(e->b, sum, v, "");
    }
    LLVMValueRef constant = int_const(e, a->constant, bits);
    if (!sum)
        return constant;
    if (a->constant == 0)
        return sum;
    return range_fits(index_range(e, a), bits) && range_fits(range, bits)
               ? LLVMBuildNSWAdd(e->b, sum, constant, "")
               : LLVMBuildAdd(e->b, sum, constant, "");
}

LLVMValueRef emit_index_auto(Emit *e, const Op *op, const Affine *a)
{
    unsigned bits = range_fits_i32(index_range(e, a)) ? 32 : 64;
    return emit_index(e, op, a, bits);
}

LLVMValueRef emit_cond(Emit *e, const Op *op, const Cond *c)
{
    LLVMValueRef lhs, rhs;
    switch (c->kind) {
    case COND_false:
    case COND_true:
        return LLVMConstInt(e->i1, c->kind == COND_true, false);
    case COND_ge0:
    case COND_eq0:
        lhs = emit_index_auto(e, op, c->expr);
        if (!lhs)
            return NULL;
        rhs = LLVMConstNull(LLVMTypeOf(lhs));
        return LLVMBuildICmp(e->b, c->kind == COND_ge0 ? LLVMIntSGE : LLVMIntEQ,
                             lhs, rhs, "");
    case COND_not:
        lhs = emit_cond(e, op, c->lhs);
        return lhs ? LLVMBuildNot(e->b, lhs, "") : NULL;
    default:
        break;
    }
    lhs = emit_cond(e, op, c->lhs);
    rhs = lhs ? emit_cond(e, op, c->rhs) : NULL;
    if (!rhs)
        return NULL;
    return c->kind == COND_and ? LLVMBuildAnd(e->b, lhs, rhs, "")
                               : LLVMBuildOr(e->b, lhs, rhs, "");
}

void emit_set_var(Emit *e, VarId v, Range range, LLVMValueRef value)
{
    if (v >= e->n_vars)
        panic("emit_set_var: variable %u is not of this module", v);
    unsigned bits = range_fits_i32(range) ? 32 : 64;
    e->vars[v].range = range;
    e->vars[v].value = resize(e, value, bits);
}
