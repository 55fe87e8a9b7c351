/* The calling convention of kernels: the block arguments of an async.kernel
 * flattened to the parameters of its PTX entry, and the hash of that list. */
#include "passes/abi.h"

#include "ir/limits.h"

#include <string.h>

static bool is_grid_constant(const Type *t)
{
    return t->mem && strcmp(t->mem->name, "CudaGridConstant") == 0;
}

static void push(Arena *arena, AbiParamVec *out, AbiKind kind, unsigned arg,
                 ScalarType elem, unsigned bytes, unsigned align)
{
    AbiParam p = { .kind = kind,
                   .arg = arg,
                   .elem = elem,
                   .bytes = bytes,
                   .align = align,
                   .count = 1 };
    VEC_PUSH(arena, out, p);
}

/* The number of elements of a tensor of constant extents, or -1. */
static int64_t constant_count(const Value *v)
{
    int64_t count = 1;
    for (unsigned i = 0; i < v->type->rank; i++) {
        int64_t extent;
        if (!v->shape || !affine_is_const(v->shape[i], &extent) || extent < 1 ||
            extent > 4096 || count > 4096)
            return -1;
        count *= extent;
    }
    return count > 4096 ? -1 : count;
}

static bool push_grid_constant(Ctx *ctx, const Op *kernel, Arena *arena,
                               unsigned arg, const Value *v, AbiParamVec *out)
{
    unsigned bytes = (unsigned)scalar_type_bytes(v->type->elem);
    if (v->type->rank == 0) {
        push(arena, out, ABI_scalar, arg, v->type->elem, bytes, bytes);
        return true;
    }
    int64_t count = constant_count(v);
    if (count < 0 || count * bytes > 3072) {
        diag_error(ctx, kernel->loc, "abi",
                   "'%s' of CudaGridConstant is a parameter of the kernel: it "
                   "must have constant extents and at most 3072 bytes",
                   v->name ? v->name : "?");
        return false;
    }
    push(arena, out, ABI_array, arg, v->type->elem, bytes * (unsigned)count,
         bytes);
    out->data[out->len - 1].count = count;
    return true;
}

static bool push_value(Ctx *ctx, const Op *kernel, Arena *arena, unsigned arg,
                       const Value *v, AbiParamVec *out)
{
    const Type *t = v->type;
    switch (t->kind) {
    case TK_map:
        push(arena, out, ABI_map, arg, t->elem, 128, 64);
        return true;
    case TK_tensor:
    case TK_window:
        if (is_grid_constant(t))
            return push_grid_constant(ctx, kernel, arena, arg, v, out);
        push(arena, out, ABI_pointer, arg, t->elem, 8, 8);
        for (unsigned i = 0; t->kind == TK_window && i < t->rank; i++) {
            push(arena, out, ABI_stride, arg, t->elem, 4, 4);
            out->data[out->len - 1].dim = i;
        }
        return true;
    default:
        diag_error(ctx, kernel->loc, "abi",
                   "'async.kernel' parameter '%s' must be a control variable, "
                   "a tensor, a window or a tensor map",
                   v->name ? v->name : "?");
        return false;
    }
}

/* Do the parameters have room, each at a multiple of its alignment? */
static bool check_size(Ctx *ctx, const Op *kernel, const AbiParamVec *params)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < params->len; i++) {
        const AbiParam *p = &params->data[i];
        bytes = (bytes + p->align - 1) / p->align * p->align + p->bytes;
    }
    if (bytes <= KERNEL_PARAMETER_BYTES)
        return true;
    diag_error(ctx, kernel->loc, "abi",
               "the parameters of this kernel take %llu bytes, at most %d "
               "there are",
               (unsigned long long)bytes, KERNEL_PARAMETER_BYTES);
    return false;
}

bool kernel_abi(Ctx *ctx, const Op *kernel, Arena *arena, AbiParamVec *out)
{
    const Block *b = kernel->n_blocks ? kernel->blocks[0] : NULL;
    if (!b || b->n_args < ABI_N_COORDS) {
        diag_error(ctx, kernel->loc, "abi",
                   "'async.kernel' must have the coordinates cta, warp and "
                   "lane as its last block arguments");
        return false;
    }
    bool ok = true;
    for (unsigned i = 0; i < b->n_args; i++) {
        const BlockArg *arg = &b->args[i];
        bool is_coord = i + ABI_N_COORDS >= b->n_args;
        if (is_coord && arg->value) {
            diag_error(ctx, kernel->loc, "abi",
                       "'async.kernel' must have the coordinates cta, warp "
                       "and lane as its last block arguments, but argument %u "
                       "is a value",
                       i);
            return false;
        }
        if (is_coord)
            continue;
        if (arg->value)
            ok = push_value(ctx, kernel, arena, i, arg->value, out) && ok;
        else
            push(arena, out, ABI_control, i, TY_none, 4, 4);
    }
    return ok && check_size(ctx, kernel, out);
}

static uint64_t hash_string(uint64_t h, const char *s)
{
    return hash_bytes(h, s, strlen(s) + 1);
}

uint64_t kernel_abi_hash(Ctx *ctx, const Op *kernel)
{
    Arena *arena = arena_new();
    AbiParamVec params = { 0 };
    uint64_t h = 0;
    static const char dependent[] = "programmatic_dependent_launch";
    if (kernel_abi(ctx, kernel, arena, &params)) {
        h = hash_string(HASH_SEED, op_attr_str(kernel, "name", ""));
        h = hash_u64(h, (uint64_t)op_attr_int(kernel, "blockDim", 0));
        h = hash_u64(h, (uint64_t)op_attr_int(kernel, "clusterDim", 0));
        h = hash_u64(h, (uint64_t)op_attr_int(kernel, "smem_bytes", 0));
        if (op_attr_int(kernel, dependent, 0))
            h = hash_string(h, dependent);
        for (size_t i = 0; i < params.len; i++) {
            const AbiParam *p = &params.data[i];
            h = hash_u64(h, p->kind);
            h = hash_u64(h, p->dim);
            h = hash_u64(h, p->bytes);
            h = hash_string(h, scalar_type_name(p->elem));
        }
    }
    arena_free(arena);
    return h;
}
