/* Scalar statements of host code: a reader of ir/arith.def that prints C.
 *
 * As in ir/values.c, a value of any type is a double, which holds it exactly;
 * a primitive is one operation in double, or in integers of 64 bits, and one
 * rounding to its type, so that printed C computes what the interpreter does.
 * A SemVal is the text of an expression without effects. NaNs become canonical
 * where they are stored. Contraction is switched off in the printed file. */
#include "codegen/c_emit.h"
#include "ir/sem.h"
#include "ir/values.h"

#include <math.h>
#include <string.h>

enum {
    SCALAR_any = 1 << 0,
    SCALAR_decode = 1 << 1,
    SCALAR_encode = 1 << 2,
    SCALAR_e8m0_decode = 1 << 3,
    SCALAR_e8m0_encode = 1 << 4,
    SCALAR_f32 = 1 << 5,
    SCALAR_f64 = 1 << 6,
    SCALAR_to_int = 1 << 7,
    SCALAR_pick = 1 << 8,
    SCALAR_tf32 = 1 << 9,
    SCALAR_div = 1 << 10,
    SCALAR_tf32_rn = 1 << 11
};

static void need(CPrinter *p, unsigned what)
{
    p->scalars |= what | SCALAR_any;
}

/* ---- memory and rounding -------------------------------------------- */

/* f16, bf16 and the 8-bit floats, whose bits are decoded and encoded. */
static bool is_small(ScalarType t)
{
    return scalar_type_is_float(t) && t != TY_f32 && t != TY_f64;
}

static const char *loaded(CPrinter *p, ScalarType t, const char *element)
{
    if (!is_small(t))
        return c_text(p, "(double)%s", element);
    need(p, t == TY_e8m0 ? SCALAR_e8m0_decode : SCALAR_decode);
    return c_text(p, "exo_load_%s(%s)", scalar_type_name(t), element);
}

static const char *stored(CPrinter *p, ScalarType t, const char *value)
{
    if (scalar_type_is_int(t))
        return c_text(p, "(%s)(%s)", c_elem_type(t), value);
    need(p, t == TY_f32    ? SCALAR_f32
            : t == TY_f64  ? SCALAR_f64
            : t == TY_e8m0 ? SCALAR_e8m0_encode
                           : SCALAR_encode);
    return c_text(p, "exo_store_%s(%s)", scalar_type_name(t), value);
}

static const char *wrapped(CPrinter *p, ScalarType t, const char *value)
{
    const ScalarInfo *info = scalar_info(t);
    return c_text(p, "(double)(%s)(uint%d_t)(uint64_t)(%s)", info->c_type,
                  8 * info->bytes, value);
}

static const char *rounded(CPrinter *p, ScalarType t, const char *value)
{
    if (scalar_type_is_int(t))
        return wrapped(p, t, c_text(p, "(int64_t)(%s)", value));
    if (t == TY_f64)
        return c_text(p, "(%s)", value);
    if (t == TY_f32)
        return c_text(p, "(double)(float)(%s)", value);
    return loaded(p, t, stored(p, t, value));
}

static const char *literal(CPrinter *p, double x)
{
    if (x != x)
        return "(double)NAN";
    if (isinf(x))
        return x < 0 ? "(-(double)INFINITY)" : "(double)INFINITY";
    const char *text = c_text(p, "%.17g", x);
    if (!strpbrk(text, ".e"))
        text = c_text(p, "%s.0", text);
    return x < 0 || signbit(x) ? c_text(p, "(%s)", text) : text;
}

static const char *converted(CPrinter *p, ScalarType to, ScalarType from,
                             const char *value)
{
    if (to == from)
        return value;
    if (!scalar_type_is_int(to) || scalar_type_is_int(from))
        return rounded(p, to, value);
    const ScalarInfo *info = scalar_info(to);
    int bits = 8 * info->bytes;
    bool sign = info->kind == SK_SINT;
    int64_t hi = (INT64_C(1) << (sign ? bits - 1 : bits)) - 1;
    need(p, SCALAR_to_int);
    return c_text(p, "exo_to_int(%s, %lld.0, %lld.0)", value,
                  (long long)(sign ? -hi - 1 : 0), (long long)hi);
}

/* ---- the vocabulary ------------------------------------------------- */

static const char *text_of(SemVal v)
{
    return v.p;
}

static SemVal sem_text(const char *text)
{
    return (SemVal){ .p = (void *)text };
}

/* One operation on doubles, or on 64-bit integers, and the rounding. */
static SemVal binary(Sem *s, ScalarType t, const SemVal *a, char op)
{
    CPrinter *p = s->user;
    const char *l = text_of(a[0]), *r = text_of(a[1]);
    if (!scalar_type_is_int(t))
        return sem_text(rounded(p, t, c_text(p, "%s %c %s", l, op, r)));
    return sem_text(
        wrapped(p, t, c_text(p, "(int64_t)%s %c (int64_t)%s", l, op, r)));
}

static SemVal unary(Sem *s, ScalarType t, const SemVal *a, const char *fn)
{
    CPrinter *p = s->user;
    need(p, 0);
    return sem_text(rounded(p, t, c_text(p, "%s(%s)", fn, text_of(a[0]))));
}

static SemVal prim_add(Sem *s, ScalarType t, const SemVal *a)
{
    return binary(s, t, a, '+');
}

static SemVal prim_sub(Sem *s, ScalarType t, const SemVal *a)
{
    return binary(s, t, a, '-');
}

static SemVal prim_mul(Sem *s, ScalarType t, const SemVal *a)
{
    return binary(s, t, a, '*');
}

static SemVal prim_div(Sem *s, ScalarType t, const SemVal *a)
{
    CPrinter *p = s->user;
    if (!scalar_type_is_int(t))
        return binary(s, t, a, '/');
    need(p, SCALAR_div);
    return sem_text(wrapped(
        p, t, c_text(p, "exo_div(%s, %s)", text_of(a[0]), text_of(a[1]))));
}

static SemVal prim_fma(Sem *s, ScalarType t, const SemVal *a)
{
    CPrinter *p = s->user;
    const char *x = text_of(a[0]), *y = text_of(a[1]), *z = text_of(a[2]);
    need(p, 0);
    if (t == TY_f32)
        return sem_text(c_text(p,
                               "(double)fmaf((float)%s, (float)%s, "
                               "(float)%s)",
                               x, y, z));
    if (t == TY_f64)
        return sem_text(c_text(p, "fma(%s, %s, %s)", x, y, z));
    const SemVal sum[2] = { prim_mul(s, t, a), a[2] };
    return prim_add(s, t, sum);
}

static SemVal prim_neg(Sem *s, ScalarType t, const SemVal *a)
{
    CPrinter *p = s->user;
    return sem_text(rounded(p, t, c_text(p, "-%s", text_of(a[0]))));
}

static SemVal prim_abs(Sem *s, ScalarType t, const SemVal *a)
{
    return unary(s, t, a, "fabs");
}

static SemVal prim_sin(Sem *s, ScalarType t, const SemVal *a)
{
    return unary(s, t, a, "sin");
}

static SemVal prim_sqrt(Sem *s, ScalarType t, const SemVal *a)
{
    return unary(s, t, a, "sqrt");
}

static SemVal prim_exp(Sem *s, ScalarType t, const SemVal *a)
{
    return unary(s, t, a, "exp");
}

static SemVal prim_exp2(Sem *s, ScalarType t, const SemVal *a)
{
    return unary(s, t, a, "exp2");
}

static SemVal prim_sigmoid(Sem *s, ScalarType t, const SemVal *a)
{
    CPrinter *p = s->user;
    const char *x = text_of(a[0]);
    return sem_text(
        rounded(p, t, c_text(p, "1.0 / (1.0 + exp(-(double)%s))", x)));
}

static SemVal prim_log(Sem *s, ScalarType t, const SemVal *a)
{
    return unary(s, t, a, "log");
}

static SemVal prim_log2(Sem *s, ScalarType t, const SemVal *a)
{
    return unary(s, t, a, "log2");
}

static SemVal pick(Sem *s, ScalarType t, const SemVal *a, const char *larger)
{
    CPrinter *p = s->user;
    need(p, SCALAR_pick);
    return sem_text(rounded(p, t,
                            c_text(p, "exo_pick(%s, %s, %s)", text_of(a[0]),
                                   text_of(a[1]), larger)));
}

static SemVal prim_max(Sem *s, ScalarType t, const SemVal *a)
{
    return pick(s, t, a, "true");
}

static SemVal prim_min(Sem *s, ScalarType t, const SemVal *a)
{
    return pick(s, t, a, "false");
}

static SemVal prim_tf32(Sem *s, ScalarType t, const SemVal *a)
{
    CPrinter *p = s->user;
    (void)t;
    need(p, SCALAR_tf32);
    return sem_text(c_text(p, "exo_tf32(%s)", text_of(a[0])));
}

static SemVal prim_tf32_rn(Sem *s, ScalarType t, const SemVal *a)
{
    CPrinter *p = s->user;
    (void)t;
    need(p, SCALAR_tf32_rn);
    return sem_text(c_text(p, "exo_tf32_rn(%s)", text_of(a[0])));
}

static SemVal prim_lt(Sem *s, ScalarType t, const SemVal *a)
{
    (void)t;
    return sem_text(c_text(s->user, "%s < %s", text_of(a[0]), text_of(a[1])));
}

static SemVal prim_choose(Sem *s, ScalarType t, const SemVal *a)
{
    (void)t;
    return sem_text(c_text(s->user, "(%s ? %s : %s)", text_of(a[0]),
                           text_of(a[1]), text_of(a[2])));
}

static SemVal make_constant(Sem *s, ScalarType t, double value)
{
    return sem_text(literal(s->user, value_round(t, value)));
}

static SemVal make_convert(Sem *s, ScalarType to, ScalarType from, SemVal a)
{
    return sem_text(converted(s->user, to, from, text_of(a)));
}

static Sem c_sem(CPrinter *p)
{
    Sem s = { .constant = make_constant, .convert = make_convert, .user = p };
#define X(prim, arity) s.prim = prim_##prim;
    SEM_PRIMS(X)
#undef X
    return s;
}

/* ---- statements ----------------------------------------------------- */

static bool host_access(CPrinter *p, const Op *op, const Access *a)
{
    const CValue *base = c_value(p, a->base);
    if (base->kind == CV_tensor && !base->device)
        return true;
    return c_refuse(p, op,
                    "'%s.%s' of '%s' has no form in C: the tensor is "
                    "not in the host's memory",
                    op_info(op->code)->dialect, op_info(op->code)->name,
                    a->base->name ? a->base->name : "?");
}

static bool define(CPrinter *p, const Op *op, const char *text)
{
    const Value *v = op->results[0];
    if (!p->used[v->id])
        return true;
    const char *name = c_name(p, v->name ? v->name : "v");
    *c_value(p, v) = (CValue){ .kind = CV_scalar, .name = name };
    c_line(p, "const double %s = %s;", name, text);
    return !p->failed;
}

static const char *operand(CPrinter *p, const Op *op, unsigned i)
{
    const Operand *o = &op->operands[i];
    const CValue *v = o->kind == OPND_value ? c_value(p, o->u.value) : NULL;
    if (v && v->kind == CV_scalar)
        return v->name;
    c_refuse(p, op, "'%s.%s' operand %u has no form in C",
             op_info(op->code)->dialect, op_info(op->code)->name, i);
    return "0.0";
}

static bool print_load(CPrinter *p, const Op *op)
{
    const Access *a = op->operands[0].u.access;
    return host_access(p, op, a) &&
           define(p, op, loaded(p, a->base->type->elem, c_element(p, a)));
}

/* x = v, x += v, or x = fma(v, w, x) */
static bool print_store(CPrinter *p, const Op *op)
{
    const Access *a = op->operands[0].u.access;
    if (!host_access(p, op, a))
        return false;
    ScalarType t = a->base->type->elem;
    Sem s = c_sem(p);
    const char *element = c_element(p, a);
    const char *value = operand(p, op, 1);
    if (op->code == OP_mem_reduce) {
        SemVal old = sem_text(loaded(p, t, element));
        SemVal v[3] = { sem_text(value), old, old };
        if (op->n_operands > 2)
            v[1] = sem_text(operand(p, op, 2));
        value = text_of(op->n_operands > 2 ? s.fma(&s, t, v) : s.add(&s, t, v));
    }
    c_line(p, "%s = %s;", element, stored(p, t, value));
    return !p->failed;
}

static bool print_arith(CPrinter *p, const Op *op)
{
    ScalarType t = op->results[0]->type->elem;
    if (!scalar_type_is_float(t) && !scalar_type_is_int(t))
        return c_refuse(p, op, "a value of type %s has no form in C",
                        scalar_type_name(t));
    if (op->code == OP_arith_const)
        return define(p, op, literal(p, value_const(op)));
    if (op->code == OP_arith_cast) {
        ScalarType from = op->operands[0].u.value->type->elem;
        return define(p, op, converted(p, t, from, operand(p, op, 0)));
    }
    SemVal v[4] = { { 0 } };
    for (unsigned i = 0; i < op->n_operands && i < 4; i++)
        v[i] = sem_text(operand(p, op, i));
    Sem s = c_sem(p);
    return !p->failed && define(p, op, text_of(sem_apply(&s, op->code, t, v)));
}

bool c_scalar_op(CPrinter *p, const Op *op)
{
    const OpInfo *row = op_info(op->code);
    switch (op->code) {
    case OP_mem_load:
        return print_load(p, op);
    case OP_mem_store:
    case OP_mem_reduce:
        return print_store(p, op);
    case OP_mem_alloc:
        return c_alloc(p, op);
    default:
        break;
    }
    if (!strcmp(row->dialect, "arith"))
        return print_arith(p, op);
    if (!strcmp(row->dialect, "par"))
        return c_refuse(p, op,
                        "'par.%s' has no form in C; lower the "
                        "procedure first (lower-par-to-async)",
                        row->name);
    if (!strcmp(row->dialect, "cfg"))
        return c_refuse_config(p, op->loc, op_attr_str(op, "field", "?"));
    return c_refuse(p, op, "'%s.%s' has no form in C", row->dialect, row->name);
}

/* ---- helpers of the printed file ------------------------------------ */

static const char text_f32[] = "static float exo_store_f32(double x)\n"
                               "{\n"
                               "    const uint32_t nan_bits = 0x7fffffff;\n"
                               "    float y = (float)x;\n"
                               "    if (x != x)\n"
                               "        memcpy(&y, &nan_bits, sizeof y);\n"
                               "    return y;\n"
                               "}\n\n";

static const char text_f64[] =
    "static double exo_store_f64(double x)\n"
    "{\n"
    "    const uint64_t nan_bits = UINT64_C(0x7ff8000000000000);\n"
    "    if (x != x)\n"
    "        memcpy(&x, &nan_bits, sizeof x);\n"
    "    return x;\n"
    "}\n\n";

static const char text_decode[] =
    "/* The value of a small float: exponent and mantissa bits, bias. */\n"
    "static double exo_decode(uint32_t bits, int exponent, int mantissa, int "
    "bias,\n"
    "                         bool has_inf)\n"
    "{\n"
    "    uint32_t ones = (1u << exponent) - 1, low = (1u << mantissa) - 1;\n"
    "    uint32_t e = bits >> mantissa & ones, m = bits & low;\n"
    "    double x;\n"
    "    if (e == ones && has_inf)\n"
    "        x = m ? (double)NAN : (double)INFINITY;\n"
    "    else if (e == ones && m == low)\n"
    "        x = (double)NAN;\n"
    "    else if (e == 0)\n"
    "        x = ldexp((double)m, 1 - bias - mantissa);\n"
    "    else\n"
    "        x = ldexp((double)(m + low + 1), (int)e - bias - mantissa);\n"
    "    return bits >> (exponent + mantissa) & 1 ? -x : x;\n"
    "}\n\n";

static const char text_encode[] =
    "/* To nearest, ties to even, once; beyond the largest value: infinity, "
    "or that\n"
    " * value where the type saturates. */\n"
    "static uint32_t exo_encode(double x, int exponent, int mantissa, int "
    "bias,\n"
    "                           uint32_t max_bits, uint32_t nan_bits,\n"
    "                           bool saturates)\n"
    "{\n"
    "    uint32_t bits, over = saturates ? max_bits : max_bits + 1;\n"
    "    uint32_t one = 1u << mantissa;\n"
    "    double a = fabs(x), r;\n"
    "    int e;\n"
    "    if (x != x)\n"
    "        return nan_bits;\n"
    "    frexp(a, &e);\n"
    "    e = a == 0 || e - 1 < 1 - bias ? 1 - bias : e - 1;\n"
    "    if (isinf(a) || e > bias + 1) {\n"
    "        bits = over;\n"
    "    } else {\n"
    "        r = nearbyint(ldexp(a, mantissa - e));\n"
    "        bits = (uint32_t)r;\n"
    "        if (bits >= one)\n"
    "            bits += (uint32_t)(e + bias - 1) << mantissa;\n"
    "        if (bits > max_bits)\n"
    "            bits = over;\n"
    "    }\n"
    "    return signbit(x) ? bits | 1u << (exponent + mantissa) : bits;\n"
    "}\n\n";

static const char text_e8m0_decode[] =
    "static double exo_load_e8m0(uint8_t bits)\n"
    "{\n"
    "    return bits == 255 ? (double)NAN : ldexp(1.0, bits - 127);\n"
    "}\n\n";

static const char text_e8m0_encode[] =
    "/* The sign dropped, up to a power of two. */\n"
    "static uint8_t exo_store_e8m0(double x)\n"
    "{\n"
    "    int e;\n"
    "    if (x != x)\n"
    "        return 255;\n"
    "    if (isinf(x))\n"
    "        return 254;\n"
    "    double m = frexp(fabs(x), &e);\n"
    "    e = m == 0.5 ? e - 1 : e;\n"
    "    if (m == 0 || e < -127)\n"
    "        return 0;\n"
    "    return (uint8_t)(e > 127 ? 254 : e + 127);\n"
    "}\n\n";

static const char text_to_int[] =
    "/* Towards zero, clamped; NaN is 0. */\n"
    "static double exo_to_int(double x, double lo, double hi)\n"
    "{\n"
    "    return x != x ? 0.0 : x <= lo ? lo : x >= hi ? hi : trunc(x);\n"
    "}\n\n";

static const char text_pick[] =
    "/* The larger or the smaller; a NaN loses to a number, -0 is below 0. */\n"
    "static double exo_pick(double a, double b, bool larger)\n"
    "{\n"
    "    if (a != a)\n"
    "        return b;\n"
    "    if (b != b)\n"
    "        return a;\n"
    "    if (a == b)\n"
    "        return (signbit(a) != 0) == larger ? b : a;\n"
    "    return (a > b) == larger ? a : b;\n"
    "}\n\n";

static const char text_tf32[] = "/* The low 13 bits of an f32 dropped. */\n"
                                "static double exo_tf32(double x)\n"
                                "{\n"
                                "    float f = (float)x;\n"
                                "    uint32_t bits;\n"
                                "    if (x != x)\n"
                                "        return x;\n"
                                "    memcpy(&bits, &f, sizeof bits);\n"
                                "    bits &= ~0x1fffu;\n"
                                "    memcpy(&f, &bits, sizeof f);\n"
                                "    return (double)f;\n"
                                "}\n\n";

static const char text_tf32_rn[] =
    "/* The nearest f32 without the low 13 bits, ties to even. */\n"
    "static double exo_tf32_rn(double x)\n"
    "{\n"
    "    float f = (float)x;\n"
    "    uint32_t bits;\n"
    "    if (x != x || isinf(x))\n"
    "        return x;\n"
    "    memcpy(&bits, &f, sizeof bits);\n"
    "    bits = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;\n"
    "    memcpy(&f, &bits, sizeof f);\n"
    "    return (double)f;\n"
    "}\n\n";

static const char text_div[] =
    "/* Truncating; x / 0 is 0. */\n"
    "static int64_t exo_div(double a, double b)\n"
    "{\n"
    "    return b == 0 ? 0 : (int64_t)a / (int64_t)b;\n"
    "}\n\n";

static const char text_contract[] =
    "/* x * y + z is fused only where fma says so. */\n"
    "#if defined(__clang__)\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#elif defined(__GNUC__)\n"
    "#pragma GCC optimize(\"fp-contract=off\")\n"
    "#endif\n\n";

/* The macros of a small type over exo_decode and exo_encode. */
static void print_small(CPrinter *p, ScalarType t, StrBuf *out)
{
    const ScalarInfo *i = scalar_info(t);
    if (p->scalars & SCALAR_decode)
        strbuf_addf(out,
                    "#define exo_load_%s(bits) \\\n"
                    "    exo_decode(bits, %d, %d, %d, %s)\n",
                    i->name, i->exp_bits, i->man_bits, i->bias,
                    i->has_inf ? "true" : "false");
    if (p->scalars & SCALAR_encode)
        strbuf_addf(out,
                    "#define exo_store_%s(x) \\\n"
                    "    ((%s)exo_encode(x, %d, %d, %d, 0x%llx, 0x%llx, "
                    "%s))\n",
                    i->name, i->c_type, i->exp_bits, i->man_bits, i->bias,
                    (unsigned long long)i->max_bits,
                    (unsigned long long)i->nan_bits,
                    i->saturates ? "true" : "false");
}

void c_scalar_print(CPrinter *p, StrBuf *out)
{
    static const struct {
        unsigned need;
        const char *text;
    } rows[] = {
        { SCALAR_any, text_contract },
        { SCALAR_f32, text_f32 },
        { SCALAR_f64, text_f64 },
        { SCALAR_decode, text_decode },
        { SCALAR_encode, text_encode },
        { SCALAR_e8m0_decode, text_e8m0_decode },
        { SCALAR_e8m0_encode, text_e8m0_encode },
        { SCALAR_to_int, text_to_int },
        { SCALAR_pick, text_pick },
        { SCALAR_tf32, text_tf32 },
        { SCALAR_tf32_rn, text_tf32_rn },
        { SCALAR_div, text_div },
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].need & p->scalars)
            strbuf_add(out, rows[i].text);
    if (!(p->scalars & (SCALAR_decode | SCALAR_encode)))
        return;
    for (int t = TY_none + 1; t < TY_COUNT; t++)
        if (is_small((ScalarType)t) && t != TY_e8m0)
            print_small(p, (ScalarType)t, out);
    strbuf_add(out, "\n");
}
