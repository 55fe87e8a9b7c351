/* async.instr: the PTX of a library entry with its operands put in.
 *
 * A memory operand is its address (32 bits in shared memory, swizzled; 64 in
 * global), an index its value in 32 bits, a register operand its registers:
 * those of a packed memory without a map are words of 32 bits, whatever they
 * hold.
 * Registers that the entry writes are outputs, tied to inputs unless every
 * element is written first. */
#include "codegen/llvm_emit.h"

#include <string.h>

/* The numbers of one operand's registers in the text: first, how many. */
typedef struct Place {
    unsigned first, n;
} Place;

static const char *letter_of(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMFloatTypeKind:
        return "f";
    case LLVMDoubleTypeKind:
        return "d";
    case LLVMPointerTypeKind:
        return "l";
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type) == 64   ? "l"
               : LLVMGetIntTypeWidth(type) == 32 ? "r"
                                                 : "h";
    default:
        return "h";
    }
}

/* PTX has no 8-bit registers: a byte travels in 16 bits. */
static bool is_byte(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind &&
           LLVMGetIntTypeWidth(type) == 8;
}

/* Are the operand's registers words, although they hold floats? */
static bool holds_words(Emit *e, const Type *t)
{
    const Mem *mem = emit_mem(e, t);
    return t->elem == TY_f32 && mem && mem->packed && !mem->map_slot;
}

static bool is_written(const Instr *in, const Op *op, unsigned i)
{
    return op->operands[i].kind == OPND_value &&
           (in->params[i].flags & (ACC_WRITE | ACC_REDUCE)) != 0;
}

static bool add_outputs(Emit *e, const Op *op, const Instr *in, Asm *a,
                        Place *place)
{
    unsigned n_written = 0;
    for (unsigned i = 0; i < in->n_params; i++) {
        if (!is_written(in, op, i))
            continue;
        const Type *t = op->operands[i].u.value->type;
        LLVMTypeRef type = emit_part_type(e, t);
        type = is_byte(type) ? e->i16 : holds_words(e, t) ? e->i32 : type;
        place[i].n = emit_type_parts(t);
        for (unsigned k = 0; k < place[i].n; k++) {
            unsigned at = asm_out(a, letter_of(type), type);
            place[i].first = k == 0 ? at : place[i].first;
        }
        n_written++;
    }
    if (n_written != op->n_results)
        return emit_error(e, op,
                          "must have a result for each register "
                          "operand written, %u, but has %u",
                          n_written, op->n_results);
    return true;
}

static LLVMValueRef address_operand(Emit *e, const Op *op, const Access *a)
{
    SharedAddr addr;
    if (!emit_is_shared(e, a))
        return emit_pointer(e, op, a);
    if (!emit_shared_addr(e, op, a, &addr))
        return NULL;
    LLVMValueRef v = emit_shared_i32(e, &addr);
    return emit_swizzle(e, v, addr.swizzle);
}

static LLVMValueRef single_operand(Emit *e, const Op *op, const Operand *o)
{
    LLVMValueRef v;
    switch (o->kind) {
    case OPND_access:
        return address_operand(e, op, o->u.access);
    case OPND_index:
        return emit_index(e, op, o->u.index, 32);
    case OPND_cond:
        v = emit_cond(e, op, o->u.cond);
        return v ? LLVMBuildZExt(e->b, v, e->i32, "") : NULL;
    default:
        return NULL;
    }
}

/* A register as the asm takes it, and back. */
static LLVMValueRef to_asm(Emit *e, const Type *t, LLVMValueRef v)
{
    if (holds_words(e, t))
        return LLVMBuildBitCast(e->b, v, e->i32, "");
    return is_byte(LLVMTypeOf(v)) ? LLVMBuildZExt(e->b, v, e->i16, "") : v;
}

static LLVMValueRef from_asm(Emit *e, const Type *t, LLVMValueRef v)
{
    LLVMTypeRef type = emit_part_type(e, t);
    if (holds_words(e, t))
        return LLVMBuildBitCast(e->b, v, type, "");
    return is_byte(type) ? LLVMBuildTrunc(e->b, v, type, "") : v;
}

static void add_register_inputs(Emit *e, const Op *op, const Instr *in,
                                unsigned i, Asm *a, Place *place)
{
    const EmitValue *ev = emit_value(e, op->operands[i].u.value);
    bool written = is_written(in, op, i);
    if (written && in->params[i].write_only)
        return;
    for (unsigned k = 0; k < ev->n; k++) {
        LLVMValueRef v = to_asm(e, op->operands[i].u.value->type, ev->parts[k]);
        if (written) {
            asm_tied(a, place[i].first + k, v);
            continue;
        }
        unsigned at = asm_in(a, letter_of(LLVMTypeOf(v)), v);
        place[i].first = k == 0 ? at : place[i].first;
        place[i].n = ev->n;
    }
}

static bool add_inputs(Emit *e, const Op *op, const Instr *in, Asm *a,
                       Place *place)
{
    for (unsigned i = 0; i < in->n_params; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_value) {
            add_register_inputs(e, op, in, i, a, place);
            continue;
        }
        LLVMValueRef v = single_operand(e, op, o);
        if (!v)
            return false;
        unsigned at = asm_in(a, letter_of(LLVMTypeOf(v)), v);
        place[i] = (Place){ at, 1 };
    }
    return true;
}

/* Literal text: a dollar would name an operand. */
static void add_literal(StrBuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '$')
            strbuf_addc(out, '$');
        strbuf_addc(out, *text);
    }
}

static bool add_text(Emit *e, const Op *op, const Instr *in, const Ptx *ptx,
                     const Place *place, StrBuf *out)
{
    for (unsigned i = 0; i < ptx->n; i++) {
        const PtxPiece *piece = &ptx->pieces[i];
        if (piece->text) {
            add_literal(out, piece->text);
            continue;
        }
        const Place *p = &place[piece->param];
        int64_t from = piece->reg < 0 ? 0 : piece->reg;
        int64_t n = piece->reg == -2 ? p->n : 1;
        if (from + n > p->n)
            return emit_error(e, op,
                              "of '%s': its PTX names register %lld of "
                              "'%s', which has %u",
                              in->name, (long long)from,
                              in->params[piece->param].name, p->n);
        for (int64_t k = 0; k < n; k++)
            strbuf_addf(out, "%s$%lld", k ? ", " : "",
                        (long long)(p->first + from + k));
    }
    return true;
}

static void take_results(Emit *e, const Op *op, const Instr *in,
                         const Place *place, LLVMValueRef call)
{
    unsigned result = 0;
    bool is_struct = LLVMGetTypeKind(LLVMTypeOf(call)) == LLVMStructTypeKind;
    for (unsigned i = 0; i < in->n_params; i++) {
        if (!is_written(in, op, i))
            continue;
        const Type *t = op->operands[i].u.value->type;
        LLVMValueRef *parts =
            ARENA_ARRAY(e->arena, LLVMValueRef, place[i].n + 1);
        for (unsigned k = 0; k < place[i].n; k++) {
            unsigned at = place[i].first + k;
            LLVMValueRef v =
                is_struct ? LLVMBuildExtractValue(e->b, call, at, "") : call;
            parts[k] = from_asm(e, t, v);
        }
        emit_set_value(e, op->results[result++], place[i].n, parts);
    }
}

bool instr_is_alone(const Instr *in)
{
    return in && in->unit && in->unit->scale == 1 &&
           !strcmp(in->unit->name, "cuda_thread") &&
           !strcmp(in->timeline, "cuda_in_order_instr");
}

bool emit_instr(Emit *e, Op *op)
{
    const Instr *in = op_instr(e->m, op);
    if (!in)
        return emit_error(e, op, "calls an unknown instruction '%s'",
                          op_attr_str(op, "callee", "?"));
    if (op->n_operands != in->n_params)
        return emit_error(e, op, "of '%s' must have %u operands, but has %u",
                          in->name, in->n_params, op->n_operands);
    const Ptx *ptx =
        instr_ptx_for(in, e->options->arch ? e->options->arch : "sm_90a");
    if (!ptx)
        return emit_error(e, op, "of '%s' has no PTX for this target",
                          in->name);
    Place *place = ARENA_ARRAY(e->arena, Place, in->n_params + 1);
    Asm a = asm_new(e);
    if (!add_outputs(e, op, in, &a, place) ||
        !add_inputs(e, op, in, &a, place) ||
        !add_text(e, op, in, ptx, place, &a.text)) {
        asm_drop(&a);
        return false;
    }
    LLVMValueRef call =
        asm_call(&a, ASM_EFFECT | (instr_is_alone(in) ? ASM_ALONE : 0));
    take_results(e, op, in, place, call);
    return true;
}

/* ---- shuffles ------------------------------------------------------------ */

/* A shuffle moves 32 bits: others are widened and cut again. */
bool emit_shfl(Emit *e, Op *op)
{
    const Value *from = op->operands[0].u.value;
    unsigned bits = 8 * (unsigned)scalar_type_bytes(from->type->elem);
    const EmitValue *ev = emit_value(e, from);
    if (ev->n != 1 || bits > 32)
        return emit_error(e, op, "moves a scalar of at most 32 bits");
    LLVMTypeRef type = LLVMTypeOf(ev->parts[0]);
    LLVMTypeRef word = LLVMIntTypeInContext(e->lc, bits);
    LLVMValueRef v = LLVMBuildBitCast(e->b, ev->parts[0], word, "");
    LLVMValueRef lane = emit_index(e, op, op->operands[1].u.index, 32);
    if (!lane)
        return false;
    LLVMValueRef args[4] = { emit_i32(e, -1),
                             LLVMBuildZExt(e->b, v, e->i32, ""), lane,
                             emit_i32(e, 31) };
    v = emit_intrinsic(e, "llvm.nvvm.shfl.sync.idx.i32", 0, NULL, 4, args);
    v = LLVMBuildTrunc(e->b, v, word, "");
    v = LLVMBuildBitCast(e->b, v, type, "");
    emit_set_value(e, op->results[0], 1, &v);
    return true;
}
