/* Memory: addresses, loads, stores, reductions.
 *
 * Global memory is address space 1: the parameter's pointer plus an element
 * offset in 64 bits, sum of index times stride, where the strides of a dense
 * tensor are products of its later extents and those of a window are
 * parameters. Shared memory is one array (address space 3); an object's
 * address in it is 32-bit arithmetic with a constant part kept apart, so that
 * neighbours share the rest. In swizzled memory the physical address is
 * a xor ((a >> 3) & m), m = 0x70, 0x30, 0x10 for spans of 128, 64, 32 bytes. */
#include "codegen/llvm_emit.h"
#include "passes/wgmma_layout.h"

#include <string.h>

const Mem *emit_mem(Emit *e, const Type *t)
{
    return t->mem && e->m->lib ? lib_mem_find(e->m->lib, t->mem) : NULL;
}

static bool is_shared_value(const Value *v)
{
    return v->def && v->def->code == OP_mem_alloc;
}

bool emit_is_shared(Emit *e, const Access *a)
{
    (void)e;
    return is_shared_value(value_root(a->base));
}

int64_t emit_shared_stride(const Value *base, unsigned d)
{
    return shared_stride(base, d);
}

static void add_dyn(Emit *e, SharedAddr *out, LLVMValueRef v)
{
    out->dyn = out->dyn ? LLVMBuildAdd(e->b, out->dyn, v, "") : v;
}

/* Adds index times stride, its constant apart. */
static bool add_index(Emit *e, const Op *op, const Affine *index,
                      int64_t stride, SharedAddr *out)
{
    const Affine *rest = affine_add_const(e->m->exprs, index, -index->constant);
    if (!rest)
        return emit_error(e, op, "has an index that overflows");
    out->constant += index->constant * stride;
    if (affine_is_const(rest, NULL))
        return true;
    LLVMValueRef v = emit_index(e, op, rest, 32);
    if (!v)
        return false;
    v = LLVMBuildMul(e->b, v, emit_i32(e, stride), "");
    add_dyn(e, out, v);
    return true;
}

static bool add_dim(Emit *e, const Op *op, const AccessDim *d, int64_t stride,
                    SharedAddr *out)
{
    if (d->kind != DIM_ring)
        return add_index(e, op, d->lo, stride, out);
    LLVMValueRef at[2];
    if (!emit_ring_at(e, op, d->ring, d->delta, at))
        return false;
    LLVMValueRef v = LLVMBuildMul(e->b, at[0], emit_i32(e, stride), "");
    add_dyn(e, out, v);
    return true;
}

bool emit_shared_addr(Emit *e, const Op *op, const Access *access,
                      SharedAddr *out)
{
    const Access *a = access_compose(e->m, access);
    const Op *def = a->base->def;
    *out = (SharedAddr){ 0 };
    if (!def ||
        (def->code != OP_mem_alloc && def->code != OP_async_mbarrier_alloc))
        return emit_error(e, op, "needs an object in shared memory");
    int64_t offset = op_attr_int(def, "offset", -1);
    offset = offset < 0 ? op_attr_int(def, "derived.offset", -1) : offset;
    if (offset < 0)
        return emit_error(e, op,
                          "uses an object in shared memory that has no "
                          "offset");
    const Mem *mem = emit_mem(e, a->base->type);
    out->swizzle = mem ? mem->swizzle : 0;
    out->constant = offset;
    for (unsigned i = 0; i < a->rank; i++) {
        int64_t stride = emit_shared_stride(a->base, i);
        if (stride < 0)
            return emit_error(e, op,
                              "uses an object in shared memory whose "
                              "extents are not constant");
        if (!add_dim(e, op, &a->dims[i], stride, out))
            return false;
    }
    return true;
}

LLVMValueRef emit_shared_i32(Emit *e, const SharedAddr *a)
{
    LLVMValueRef v =
        LLVMBuildAdd(e->b, e->smem_base, emit_i32(e, a->constant), "");
    return a->dyn ? LLVMBuildAdd(e->b, a->dyn, v, "") : v;
}

LLVMValueRef emit_swizzle(Emit *e, LLVMValueRef addr, unsigned swizzle)
{
    if (!swizzle)
        return addr;
    int64_t mask = (swizzle / 16 - 1) << 4;
    LLVMValueRef high = LLVMBuildLShr(e->b, addr, emit_i32(e, 3), "");
    high = LLVMBuildAnd(e->b, high, emit_i32(e, mask), "");
    return LLVMBuildXor(e->b, addr, high, "");
}

static LLVMValueRef shared_pointer(Emit *e, const Op *op, const Access *a)
{
    SharedAddr addr;
    if (!emit_shared_addr(e, op, a, &addr))
        return NULL;
    if (addr.swizzle) {
        LLVMTypeRef type = LLVMPointerTypeInContext(e->lc, 3);
        LLVMValueRef v = emit_shared_i32(e, &addr);
        v = emit_swizzle(e, v, addr.swizzle);
        return LLVMBuildIntToPtr(e->b, v, type, "");
    }
    LLVMValueRef offset = emit_i32(e, addr.constant);
    LLVMValueRef p = LLVMBuildGEP2(e->b, e->i8, e->smem, &offset, 1, "");
    return addr.dyn ? LLVMBuildGEP2(e->b, e->i8, p, &addr.dyn, 1, "") : p;
}

/* Stride of dimension d of a parameter, in elements, i64; the part `parts[0]`
 * is its pointer. */
static LLVMValueRef global_stride(Emit *e, const Op *op, const Value *v,
                                  unsigned d)
{
    const Affine *s = affine_stride(e->m->exprs, v, d);
    if (v->type->kind == TK_window)
        return emit_index(e, op, s, 64);
    LLVMValueRef product = NULL;
    for (unsigned i = d + 1; i < v->type->rank; i++) {
        LLVMValueRef extent = emit_index(e, op, v->shape[i], 64);
        if (!extent)
            return NULL;
        product = product ? LLVMBuildNSWMul(e->b, product, extent, "") : extent;
    }
    return product ? product : emit_i64(e, 1);
}

static LLVMValueRef element_offset(Emit *e, const Op *op, const Access *a)
{
    LLVMValueRef sum = NULL;
    for (unsigned i = 0; i < a->rank; i++) {
        if (a->dims[i].kind == DIM_ring) {
            emit_error(e, op, "indexes global memory by a ring");
            return NULL;
        }
        LLVMValueRef index = emit_index_auto(e, op, a->dims[i].lo);
        LLVMValueRef stride = index ? global_stride(e, op, a->base, i) : NULL;
        if (!stride)
            return NULL;
        if (LLVMTypeOf(index) != e->i64)
            index = LLVMBuildSExt(e->b, index, e->i64, "");
        index = LLVMBuildNSWMul(e->b, index, stride, "");
        sum = sum ? LLVMBuildNSWAdd(e->b, sum, index, "") : index;
    }
    return sum ? sum : emit_i64(e, 0);
}

LLVMValueRef emit_pointer(Emit *e, const Op *op, const Access *access)
{
    const Access *a = access_compose(e->m, access);
    if (is_shared_value(a->base))
        return shared_pointer(e, op, a);
    const EmitValue *ev = emit_value(e, a->base);
    if (ev->n == 0 ||
        LLVMGetTypeKind(LLVMTypeOf(ev->parts[0])) != LLVMPointerTypeKind) {
        emit_error(e, op,
                   "accesses a tensor that is neither a parameter of "
                   "the kernel in memory nor in shared memory");
        return NULL;
    }
    LLVMValueRef offset = element_offset(e, op, a);
    if (!offset)
        return NULL;
    LLVMTypeRef type = emit_scalar_type(e, a->base->type->elem);
    return LLVMBuildInBoundsGEP2(e->b, type, ev->parts[0], &offset, 1, "");
}

/* A scalar parameter of CudaGridConstant is a value, not memory. */
static LLVMValueRef grid_constant(Emit *e, const Access *a)
{
    const EmitValue *ev = emit_value(e, a->base);
    return a->rank == 0 && ev->n == 1 && !is_shared_value(a->base) &&
                   LLVMGetTypeKind(LLVMTypeOf(ev->parts[0])) !=
                       LLVMPointerTypeKind
               ? ev->parts[0]
               : NULL;
}

static LLVMValueRef load_at(Emit *e, LLVMValueRef p, ScalarType t)
{
    LLVMValueRef v = LLVMBuildLoad2(e->b, emit_scalar_type(e, t), p, "");
    LLVMSetAlignment(v, (unsigned)scalar_type_bytes(t));
    return v;
}

static void store_at(Emit *e, LLVMValueRef p, ScalarType t, LLVMValueRef v)
{
    LLVMValueRef s = LLVMBuildStore(e->b, v, p);
    LLVMSetAlignment(s, (unsigned)scalar_type_bytes(t));
}

bool emit_load(Emit *e, Op *op)
{
    const Access *a = op->operands[0].u.access;
    LLVMValueRef v = grid_constant(e, a);
    if (!v) {
        LLVMValueRef p = emit_pointer(e, op, a);
        if (!p)
            return false;
        v = load_at(e, p, a->base->type->elem);
    }
    emit_set_value(e, op->results[0], 1, &v);
    return true;
}

/* The scalar that operand i of op is, or NULL after a diagnostic. */
static LLVMValueRef scalar_operand(Emit *e, const Op *op, unsigned i)
{
    const Operand *o = &op->operands[i];
    const EmitValue *ev =
        o->kind == OPND_value ? emit_value(e, o->u.value) : NULL;
    if (ev && ev->n == 1)
        return ev->parts[0];
    emit_error(e, op, "operand %u must be a scalar", i);
    return NULL;
}

static LLVMValueRef writable_pointer(Emit *e, const Op *op, const Access *a)
{
    if (grid_constant(e, a)) {
        emit_error(e, op, "writes to a parameter of CudaGridConstant");
        return NULL;
    }
    return emit_pointer(e, op, a);
}

bool emit_store(Emit *e, Op *op)
{
    const Access *a = op->operands[0].u.access;
    LLVMValueRef v = scalar_operand(e, op, 1);
    LLVMValueRef p = v ? writable_pointer(e, op, a) : NULL;
    if (!p)
        return false;
    store_at(e, p, a->base->type->elem, v);
    return true;
}

/* PTX ISA, "red": the result of the addition is not asked for. */
static bool emit_atomic_add(Emit *e, const Op *op, LLVMValueRef p, ScalarType t,
                            LLVMValueRef v)
{
    bool is_int = t == TY_i32;
    if (op->n_operands != 2 || (!is_int && t != TY_f32 && t != TY_f64))
        return emit_error(e, op,
                          "adds atomically one value of f32, f64 or i32");
    LLVMBuildAtomicRMW(e->b,
                       is_int ? LLVMAtomicRMWBinOpAdd : LLVMAtomicRMWBinOpFAdd,
                       p, v, LLVMAtomicOrderingMonotonic, false);
    return true;
}

bool emit_reduce(Emit *e, Op *op)
{
    const Access *a = op->operands[0].u.access;
    ScalarType t = a->base->type->elem;
    LLVMValueRef v = scalar_operand(e, op, 1);
    LLVMValueRef p = v ? writable_pointer(e, op, a) : NULL;
    if (!p)
        return false;
    if (op_is_atomic(op))
        return emit_atomic_add(e, op, p, t, v);
    LLVMValueRef old = load_at(e, p, t);
    LLVMValueRef sum;
    if (op->n_operands > 2) {
        LLVMValueRef w = scalar_operand(e, op, 2);
        if (!w)
            return false;
        sum = emit_prim_fma(e, t, v, w, old);
    } else {
        sum = emit_prim_add(e, t, old, v);
    }
    store_at(e, p, t, sum);
    return true;
}

LLVMValueRef emit_mapa(Emit *e, LLVMValueRef addr, LLVMValueRef cta)
{
    Asm map = asm_new(e);
    unsigned to = asm_out(&map, "r", e->i32);
    unsigned local = asm_in(&map, "r", addr), rank = asm_in(&map, "r", cta);
    strbuf_addf(&map.text, "mapa.shared::cluster.u32 $%u, $%u, $%u;", to, local,
                rank);
    return asm_call(&map, 0);
}

/* PTX ISA, "ld": the address of the same place in another CTA, and the load
 * from there. Barriers of the cluster order it, so it is not moved. */
bool emit_cluster_load(Emit *e, Op *op)
{
    const Access *a = op->operands[0].u.access;
    SharedAddr addr;
    if (!emit_is_shared(e, a))
        return emit_error(e, op, "loads from what is no shared memory");
    LLVMValueRef cta = emit_index(e, op, op->operands[1].u.index, 32);
    if (!cta || !emit_shared_addr(e, op, a, &addr))
        return false;
    LLVMValueRef at = emit_shared_i32(e, &addr);
    at = emit_swizzle(e, at, addr.swizzle);
    LLVMTypeRef type = emit_scalar_type(e, a->base->type->elem);
    Asm load = asm_new(e);
    LLVMValueRef peer = emit_mapa(e, at, cta);
    unsigned n = op->n_results;
    for (unsigned i = 0; i < n; i++)
        asm_out(&load, type == e->i32 ? "r" : "f", type);
    unsigned from = asm_in(&load, "r", peer);
    strbuf_addf(&load.text, "ld.shared::cluster%s.%s ",
                n == 4   ? ".v4"
                : n == 2 ? ".v2"
                         : "",
                scalar_info(a->base->type->elem)->ptx);
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(&load.text, "%s$%u", i ? ", " : n > 1 ? "{" : "", i);
    strbuf_addf(&load.text, "%s, [$%u];", n > 1 ? "}" : "", from);
    LLVMValueRef got = asm_call(&load, ASM_EFFECT);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef v = n > 1 ? LLVMBuildExtractValue(e->b, got, i, "") : got;
        emit_set_value(e, op->results[i], 1, &v);
    }
    return true;
}
