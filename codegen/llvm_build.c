/* Types, constants, values and inline PTX for the LLVM printer. */
#include "codegen/llvm_emit.h"

#include <stdio.h>
#include <string.h>

LLVMTypeRef emit_scalar_type(Emit *e, ScalarType t)
{
    switch (t) {
    case TY_f16:
        return LLVMHalfTypeInContext(e->lc);
    case TY_bf16:
        return LLVMBFloatTypeInContext(e->lc);
    case TY_f32:
        return LLVMFloatTypeInContext(e->lc);
    case TY_f64:
        return LLVMDoubleTypeInContext(e->lc);
    default:
        return LLVMIntTypeInContext(e->lc, 8 * (unsigned)scalar_type_bytes(t));
    }
}

bool frag_is_packed(const Type *t)
{
    int64_t bytes = scalar_type_bytes(t->elem);
    return t->kind == TK_frag && bytes < 4 && t->n * bytes % 4 == 0;
}

unsigned emit_type_parts(const Type *t)
{
    switch (t->kind) {
    case TK_scalar:
        return 1;
    case TK_ring:
        return 2;
    case TK_frag:
        return (unsigned)(frag_is_packed(t)
                              ? t->n * scalar_type_bytes(t->elem) / 4
                              : t->n);
    default:
        return 0;
    }
}

LLVMTypeRef emit_part_type(Emit *e, const Type *t)
{
    if (t->kind == TK_ring || frag_is_packed(t))
        return e->i32;
    return emit_scalar_type(e, t->elem);
}

LLVMValueRef emit_i32(Emit *e, int64_t c)
{
    return LLVMConstInt(e->i32, (uint32_t)c, false);
}

LLVMValueRef emit_i64(Emit *e, int64_t c)
{
    return LLVMConstInt(e->i64, (uint64_t)c, false);
}

EmitValue *emit_value(Emit *e, const Value *v)
{
    if (v->id >= e->n_values)
        panic("emit_value: value %u is not of this module", v->id);
    return &e->values[v->id];
}

void emit_set_value(Emit *e, const Value *v, unsigned n,
                    const LLVMValueRef *parts)
{
    EmitValue *ev = emit_value(e, v);
    ev->n = n;
    ev->parts = arena_memdup(e->arena, parts, n * sizeof *parts);
}

LLVMValueRef emit_intrinsic(Emit *e, const char *name, unsigned n_types,
                            LLVMTypeRef *types, unsigned n, LLVMValueRef *args)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id)
        panic("emit_intrinsic: LLVM has no '%s'", name);
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(e->lm, id, types, n_types);
    LLVMTypeRef type = LLVMIntrinsicGetType(e->lc, id, types, n_types);
    return LLVMBuildCall2(e->b, type, fn, args, n, "");
}

bool emit_error(Emit *e, const Op *op, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = arena_vprintf(e->arena, fmt, ap);
    va_end(ap);
    const OpInfo *info = op_info(op->code);
    diag_error(e->ctx, op->loc, "codegen", "'%s.%s' %s", info->dialect,
               info->text ? info->text : info->name, text);
    return false;
}

unsigned emit_attr_ints(const Op *op, const char *key, int64_t *out,
                        unsigned max)
{
    const Param *p = op_attr_param(op, key);
    if (!p)
        return 0;
    if (p->kind == PARAM_int) {
        out[0] = p->i;
        return 1;
    }
    unsigned n = 0;
    for (unsigned i = 0; p->kind == PARAM_tuple && i < p->n && n < max; i++)
        if (p->items[i].kind == PARAM_int)
            out[n++] = p->items[i].i;
    return n;
}

Asm asm_new(Emit *e)
{
    return (Asm){ .e = e };
}

static void add_constraint(Asm *a, const char *prefix, const char *letter)
{
    if (a->constraints.len)
        strbuf_addc(&a->constraints, ',');
    strbuf_addf(&a->constraints, "%s%s", prefix, letter);
}

unsigned asm_out(Asm *a, const char *letter, LLVMTypeRef type)
{
    if (a->args.len)
        panic("asm_out: outputs come before inputs");
    add_constraint(a, "=", letter);
    VEC_PUSH(a->e->arena, &a->outs, type);
    return (unsigned)a->outs.len - 1;
}

unsigned asm_in(Asm *a, const char *letter, LLVMValueRef v)
{
    add_constraint(a, "", letter);
    VEC_PUSH(a->e->arena, &a->args, v);
    return (unsigned)(a->outs.len + a->args.len) - 1;
}

unsigned asm_tied(Asm *a, unsigned out, LLVMValueRef v)
{
    char number[16];
    snprintf(number, sizeof number, "%u", out);
    return asm_in(a, number, v);
}

static void add_call_attribute(Emit *e, LLVMValueRef call, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAttributeRef attr = LLVMCreateEnumAttribute(e->lc, kind, 0);
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, attr);
}

static LLVMTypeRef result_type(Asm *a)
{
    if (a->outs.len == 0)
        return a->e->void_type;
    if (a->outs.len == 1)
        return a->outs.data[0];
    return LLVMStructTypeInContext(a->e->lc, a->outs.data,
                                   (unsigned)a->outs.len, false);
}

LLVMValueRef asm_call(Asm *a, unsigned flags)
{
    Emit *e = a->e;
    bool effect = (flags & ASM_EFFECT) != 0;
    if (effect)
        add_constraint(a, "~", "{memory}");
    unsigned n = (unsigned)a->args.len;
    LLVMTypeRef *types = ARENA_ARRAY(e->arena, LLVMTypeRef, n + 1);
    for (unsigned i = 0; i < n; i++)
        types[i] = LLVMTypeOf(a->args.data[i]);
    LLVMTypeRef type = LLVMFunctionType(result_type(a), types, n, false);
    LLVMValueRef fn = LLVMGetInlineAsm(
        type, strbuf_text(&a->text), a->text.len, strbuf_text(&a->constraints),
        a->constraints.len, effect, false, LLVMInlineAsmDialectATT, false);
    LLVMValueRef call = LLVMBuildCall2(e->b, type, fn, a->args.data, n, "");
    add_call_attribute(e, call, "nounwind");
    if (effect && !(flags & ASM_ALONE)) {
        add_call_attribute(e, call, "convergent");
        add_call_attribute(e, call, "noduplicate");
    }
    if (effect) {
        add_call_attribute(e, call, "nomerge");
    } else {
        add_call_attribute(e, call, "willreturn");
    }
    asm_drop(a);
    return call;
}

void asm_drop(Asm *a)
{
    strbuf_free(&a->text);
    strbuf_free(&a->constraints);
}

void emit_ptx(Emit *e, const char *fmt, ...)
{
    Asm a = asm_new(e);
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&a.text, fmt, ap);
    va_end(ap);
    asm_call(&a, ASM_EFFECT);
}
