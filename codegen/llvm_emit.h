/* What the files of the LLVM printer share: the state of one run and the
 * functions that print one kind of op each. Internal to codegen/.
 *
 * Every function that prints returns false after a diagnostic; NULL stands for
 * false where a value is expected. No two builder calls are nested in one
 * call: C leaves the order of arguments open, and the output must not. */
#ifndef EXO_CODEGEN_LLVM_EMIT_H
#define EXO_CODEGEN_LLVM_EMIT_H

#include "codegen/llvm.h"
#include "ir/lib.h"
#include "passes/abi.h"

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

/* The registers that stand for a value: a scalar is 1, a ring 2 (slot and
 * parity), a fragment its registers, 16- and 8-bit elements packed into words
 * where they fill them. Memory has none. */
typedef struct EmitValue {
    unsigned n;
    LLVMValueRef *parts;
} EmitValue;

/* lo <= value <= hi. */
typedef struct Range {
    int64_t lo, hi;
} Range;

typedef struct EmitVar {
    LLVMValueRef value; /* i32 where the range fits it, else i64; NULL: unset */
    Range range;
} EmitVar;

typedef struct Emit {
    Ctx *ctx;
    Module *m;
    Arena *arena;
    const LlvmOptions *options;

    LLVMContextRef lc;
    LLVMModuleRef lm;
    LLVMBuilderRef b;
    LLVMDIBuilderRef di;
    LLVMTypeRef void_type, i1, i8, i16, i32, i64, ptr;

    Op *kernel;
    LLVMValueRef fn;
    LLVMMetadataRef scope; /* the kernel's DISubprogram */
    uint32_t scope_file;
    LLVMValueRef smem;      /* the dynamic shared memory, or NULL */
    LLVMValueRef smem_base; /* its address, i32 */
    VarId cta;
    EmitValue *values; /* by Value id */
    EmitVar *vars;     /* by VarId */
    unsigned n_values, n_vars;
    EmitValue yield; /* of the last ctl.yield, flattened */
    struct TaskSpace
        *first_task; /* that was found ahead, or NULL: llvm_ctl.c */
} Emit;

/* ---- codegen/llvm_build.c: small things --------------------------------- */

LLVMTypeRef emit_scalar_type(Emit *e, ScalarType t);
unsigned emit_type_parts(const Type *t);
LLVMTypeRef emit_part_type(Emit *e, const Type *t);
/* Whether a fragment's elements share 32-bit words. */
bool frag_is_packed(const Type *t);
LLVMValueRef emit_i32(Emit *e, int64_t c);
LLVMValueRef emit_i64(Emit *e, int64_t c);
EmitValue *emit_value(Emit *e, const Value *v);
void emit_set_value(Emit *e, const Value *v, unsigned n,
                    const LLVMValueRef *parts);
/* Calls LLVM intrinsic `name`, overloaded by the n_types types. */
LLVMValueRef emit_intrinsic(Emit *e, const char *name, unsigned n_types,
                            LLVMTypeRef *types, unsigned n, LLVMValueRef *args);
/* A diagnostic of this printer at op. Always false. */
bool emit_error(Emit *e, const Op *op, const char *fmt, ...) EXO_PRINTF(3, 4);
/* The integers of a tuple or integer attribute; 0 when it is absent. */
unsigned emit_attr_ints(const Op *op, const char *key, int64_t *out,
                        unsigned max);

/* Inline PTX under construction: text and constraints grow side by side.
 * Outputs are added first, then the inputs tied to them, then the rest. */
typedef struct Asm {
    Emit *e;
    StrBuf text, constraints;
    VEC(LLVMTypeRef) outs;
    VEC(LLVMValueRef) args;
} Asm;

enum {
    ASM_EFFECT = 1u << 0, /* side effect: never moved, copied or merged */
    ASM_ALONE = 1u << 1   /* one of the thread alone, which may be copied */
};

Asm asm_new(Emit *e);
/* Each returns the number by which the text names the operand ($n). */
unsigned asm_out(Asm *a, const char *letter, LLVMTypeRef type);
unsigned asm_in(Asm *a, const char *letter, LLVMValueRef v);
unsigned asm_tied(Asm *a, unsigned out, LLVMValueRef v);
/* Builds the call and drops the text. With one output its value, with several
 * a struct of them. */
LLVMValueRef asm_call(Asm *a, unsigned flags);
/* Frees the text of one that is not called. */
void asm_drop(Asm *a);
/* One line of PTX without operands. */
void emit_ptx(Emit *e, const char *fmt, ...) EXO_PRINTF(2, 3);

/* ---- codegen/llvm_index.c: index expressions and conditions -------------- */

Range index_range(Emit *e, const Affine *a);
bool range_fits_i32(Range r);
/* The value in so many bits (32 or 64), modulo 2^bits. */
LLVMValueRef emit_index(Emit *e, const Op *op, const Affine *a, unsigned bits);
/* In 32 bits where its range fits, else in 64. */
LLVMValueRef emit_index_auto(Emit *e, const Op *op, const Affine *a);
LLVMValueRef emit_cond(Emit *e, const Op *op, const Cond *c); /* i1 */
void emit_set_var(Emit *e, VarId v, Range range, LLVMValueRef value);

/* ---- codegen/llvm_sem.c: scalars ----------------------------------------- */

LLVMValueRef emit_constant(Emit *e, ScalarType t, double value);
LLVMValueRef emit_convert(Emit *e, ScalarType to, ScalarType from,
                          LLVMValueRef v);
/* op is an arith row; NULL after a diagnostic. */
bool emit_arith(Emit *e, const Op *op);
LLVMValueRef emit_prim_add(Emit *e, ScalarType t, LLVMValueRef a,
                           LLVMValueRef b);
LLVMValueRef emit_prim_fma(Emit *e, ScalarType t, LLVMValueRef a,
                           LLVMValueRef b, LLVMValueRef c);

/* ---- codegen/llvm_cvt.c: bits of floats ---------------------------------- */

bool scalar_is_fp8(ScalarType t);
LLVMValueRef emit_to_f32(Emit *e, ScalarType from, LLVMValueRef v);
LLVMValueRef emit_from_f32(Emit *e, ScalarType to, LLVMValueRef v);
/* Two f32 as a pair of `to` (16 or 8 bits each) in an i32 or i16, lo first. */
LLVMValueRef emit_pack2(Emit *e, ScalarType to, LLVMValueRef lo,
                        LLVMValueRef hi);

/* ---- codegen/llvm_mem.c: memory ------------------------------------------ */

/* An address in shared memory: base + dyn + constant, before swizzling. */
typedef struct SharedAddr {
    LLVMValueRef dyn; /* i32 or NULL */
    int64_t constant;
    unsigned swizzle; /* bytes of span, 0: none */
} SharedAddr;

const Mem *emit_mem(Emit *e, const Type *t);
bool emit_is_shared(Emit *e, const Access *a);
bool emit_shared_addr(Emit *e, const Op *op, const Access *a, SharedAddr *out);
/* The address as an i32, not swizzled. */
LLVMValueRef emit_shared_i32(Emit *e, const SharedAddr *a);
LLVMValueRef emit_swizzle(Emit *e, LLVMValueRef addr, unsigned swizzle);
/* Byte distance between neighbours along dimension d of base, or -1. */
int64_t emit_shared_stride(const Value *base, unsigned d);
/* A pointer to the element (address space 1, 3 or 101). */
LLVMValueRef emit_pointer(Emit *e, const Op *op, const Access *a);
bool emit_load(Emit *e, Op *op);
bool emit_store(Emit *e, Op *op);
bool emit_reduce(Emit *e, Op *op);
/* The address in the cluster's window of what is at addr in CTA cta. PTX ISA,
 * "mapa". */
LLVMValueRef emit_mapa(Emit *e, LLVMValueRef addr, LLVMValueRef cta);
/* Neighbours in the shared memory of a CTA of the cluster. */
bool emit_cluster_load(Emit *e, Op *op);

/* ---- codegen/llvm_ctl.c: control, fragments, rings ----------------------- */

bool emit_block(Emit *e, Block *b);
bool emit_for(Emit *e, Op *op);
bool emit_if(Emit *e, Op *op);
bool emit_tasks(Emit *e, Op *op);
bool emit_role(Emit *e, Op *op);
bool emit_elect(Emit *e, Op *op);
bool emit_ring_init(Emit *e, Op *op);
bool emit_ring_advance(Emit *e, Op *op);
/* Slot and parity of the ring so many positions on. */
bool emit_ring_at(Emit *e, const Op *op, const Value *ring, int64_t delta,
                  LLVMValueRef out[2]);
bool emit_frag(Emit *e, Op *op);
/* The element in a slot of a fragment. */
LLVMValueRef emit_frag_get(Emit *e, const Type *t, const EmitValue *ev,
                           int64_t slot);

/* ---- codegen/llvm_sync.c: barriers, copies ------------------------------- */

bool emit_sync(Emit *e, Op *op);
bool emit_copy(Emit *e, Op *op);
bool emit_prefetch(Emit *e, const Op *op);

/* ---- codegen/llvm_mma.c: tensor cores ------------------------------------ */

bool emit_wgmma(Emit *e, Op *op);
bool emit_tile_store(Emit *e, Op *op);

/* ---- codegen/llvm_instr.c: instructions by their entry, shuffles --------- */

/* Is the instruction over when the next of its thread begins, and does no other
 * thread take part? Then it may be copied. */
bool instr_is_alone(const Instr *in);
bool emit_instr(Emit *e, Op *op);
bool emit_shfl(Emit *e, Op *op);

#endif
