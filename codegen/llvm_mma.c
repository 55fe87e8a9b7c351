/* Tensor cores: wgmma on fragments of scalar registers, and the store of a
 * register tile to shared memory.
 *
 * A wgmma takes its accumulators as outputs tied to inputs, so that they stay
 * in their registers from the first instruction to the wait. Where scale_d is
 * constantly false there are no inputs at all.
 *
 * A matrix descriptor (PTX ISA, "matrix descriptor format") is the address
 * without its last 4 bits, the byte distances between neighbouring groups, and
 * the swizzle. In a cluster the address is first freed of the CTA's rank, which
 * would run into the distances. The part of the address that is known at
 * compile time is added to the constant half, so that a chain of steps shares
 * one run-time part. */
#include "codegen/llvm_emit.h"
#include "passes/wgmma_layout.h"

#include <stdio.h>

#define MAX_REGS 256

/* ---- register order ------------------------------------------------------ */

typedef struct TileEnv {
    Env env;
    int64_t row, col;
} TileEnv;

static bool tile_value(const Env *env, const Atom *atom, int64_t *out)
{
    const TileEnv *t = env->user;
    if (atom->kind != ATOM_var || atom->var < 1 || atom->var > 2)
        return false;
    *out = atom->var == 1 ? t->row : t->col;
    return true;
}

static bool tile_slot(const Mem *mem, int64_t row, int64_t col, int64_t lane,
                      int64_t *slot)
{
    TileEnv t = { .row = row, .col = col };
    int64_t thread;
    t.env = (Env){ tile_value, &t };
    return affine_eval(mem->map_thread, &t.env, &thread) &&
           affine_eval(mem->map_slot, &t.env, slot) && thread == lane;
}

/* Neighbouring columns that a lane has, in accumulators and in stmatrix. */
enum { PAIR = 2 };

/* Element i of a lane in the order that wgmma, mma and stmatrix use: `run`
 * neighbouring columns a lane, of rows r and r + 8, then the same 4 * run
 * columns further on. */
static void fragment_element(int64_t i, int64_t run, int64_t lane, int64_t *row,
                             int64_t *col)
{
    *row = lane / 4 + 8 * (i / run % 2);
    *col = 4 * run * (i / (2 * run)) + run * (lane % 4) + i % run;
}

/* The slot of each of the n elements in that order. A fragment of no memory is
 * in it; one of a register tile is asked, for every lane. */
static bool slot_order(Emit *e, const Op *op, const Type *t, int64_t run,
                       int64_t *slot)
{
    const Mem *mem = emit_mem(e, t);
    if (t->n > MAX_REGS)
        return emit_error(e, op, "has a fragment of more than %d elements",
                          MAX_REGS);
    for (int64_t i = 0; i < t->n; i++)
        slot[i] = i;
    if (!t->mem)
        return true;
    if (!mem || !mem->map_thread || !mem->map_slot)
        return emit_error(e, op,
                          "needs a register tile that says which "
                          "thread holds which element, but has %s",
                          t->mem->name);
    for (int64_t lane = 0; lane < 32; lane++)
        for (int64_t i = 0; i < t->n; i++) {
            int64_t row, col, at;
            fragment_element(i, run, lane, &row, &col);
            if (!tile_slot(mem, row, col, lane, &at) || at < 0 || at >= t->n ||
                (lane > 0 && at != slot[i]))
                return emit_error(e, op,
                                  "needs a register tile with the "
                                  "tensor core's order of elements, which "
                                  "%s has not",
                                  t->mem->name);
            slot[i] = at;
        }
    return true;
}

/* The words of a fragment in that order: of packed elements, pairs or fours
 * must stay together. */
static bool word_order(Emit *e, const Op *op, const Type *t, int64_t run,
                       unsigned *word)
{
    int64_t slot[MAX_REGS];
    if (!slot_order(e, op, t, run, slot))
        return false;
    int64_t per = frag_is_packed(t) ? 4 / scalar_type_bytes(t->elem) : 1;
    for (int64_t i = 0; i < t->n; i++) {
        if (slot[i] % per != i % per ||
            slot[i] / per != slot[i - i % per] / per)
            return emit_error(e, op,
                              "needs neighbouring elements in one "
                              "register");
        word[i / per] = (unsigned)(slot[i] / per);
    }
    return true;
}

/* ---- descriptors --------------------------------------------------------- */

static bool interval_len(const AccessDim *d, int64_t *len)
{
    return d->kind == DIM_interval && affine_is_const(d->len, len);
}

/* Classifies an operand of mn x k. */
static bool classify(Emit *e, const Op *op, const Access *access, int64_t mn,
                     int64_t k, WgmmaOperand *out)
{
    int64_t len[2];
    switch (wgmma_operand(e->m, access, mn, k, out, len)) {
    case WGMMA_no_intervals:
        return emit_error(e, op,
                          "needs an operand whose last two dimensions "
                          "are intervals");
    case WGMMA_shape:
        return emit_error(e, op,
                          "needs an operand of %lld x %lld, or of "
                          "%lld x 64, but has %lld x %lld",
                          (long long)mn, (long long)k, (long long)k,
                          (long long)len[0], (long long)len[1]);
    case WGMMA_swizzle:
        return emit_error(e, op,
                          "needs an operand in swizzled shared memory "
                          "whose rows have the width of the swizzle");
    case WGMMA_fits:
        break;
    }
    return true;
}

static LLVMValueRef descriptor(Emit *e, const Op *op, const WgmmaOperand *o)
{
    SharedAddr addr;
    if (!emit_shared_addr(e, op, o->access, &addr))
        return NULL;
    if (addr.constant % 16) {
        emit_error(e, op, "needs an operand aligned to 16 bytes");
        return NULL;
    }
    uint64_t fixed = wgmma_descriptor(o, addr.constant);
    LLVMValueRef dyn = e->smem_base;
    if (op_attr_int(e->kernel, "clusterDim", 1) > 1)
        dyn = LLVMBuildAnd(e->b, dyn, emit_i32(e, WGMMA_ADDRESS_MASK), "");
    if (addr.dyn)
        dyn = LLVMBuildAdd(e->b, dyn, addr.dyn, "");
    dyn = LLVMBuildLShr(e->b, dyn, emit_i32(e, 4), "");
    dyn = LLVMBuildZExt(e->b, dyn, e->i64, "");
    return LLVMBuildAdd(e->b, dyn, emit_i64(e, (int64_t)fixed), "");
}

/* ---- wgmma --------------------------------------------------------------- */

/* The fragments of op's operands from `first` on pass through one asm, so that
 * nothing of them moves across it. */
static bool pass_through(Emit *e, const Op *op, const char *ptx)
{
    Asm a = asm_new(e);
    unsigned n = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Value *v = op->operands[i].u.value;
        if (v->type->kind != TK_frag || i >= op->n_results) {
            asm_drop(&a);
            return emit_error(e, op, "must give back each fragment it takes");
        }
        LLVMTypeRef type = emit_part_type(e, v->type);
        const char *letter = type == e->i32 ? "r" : "f";
        for (unsigned k = 0; k < emit_value(e, v)->n; k++, n++)
            asm_out(&a, letter, type);
    }
    unsigned out = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const EmitValue *ev = emit_value(e, op->operands[i].u.value);
        for (unsigned k = 0; k < ev->n; k++)
            asm_tied(&a, out++, ev->parts[k]);
    }
    strbuf_add(&a.text, ptx);
    LLVMValueRef result = asm_call(&a, ASM_EFFECT);
    out = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        unsigned parts = emit_value(e, op->operands[i].u.value)->n;
        LLVMValueRef *regs = ARENA_ARRAY(e->arena, LLVMValueRef, parts + 1);
        for (unsigned k = 0; k < parts; k++, out++)
            regs[k] =
                n == 1 ? result : LLVMBuildExtractValue(e->b, result, out, "");
        emit_set_value(e, op->results[i], parts, regs);
    }
    return true;
}

static const char *wgmma_type(ScalarType t)
{
    return t == TY_f32 ? "tf32" : scalar_info(t)->ptx;
}

static void add_register_list(Asm *a, unsigned first, unsigned n)
{
    strbuf_addc(&a->text, '{');
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(&a->text, "%s$%u", i ? ", " : "", first + i);
    strbuf_addc(&a->text, '}');
}

/* Everything that one wgmma needs, before its text is written. */
typedef struct Wgmma {
    int64_t n, k;
    const Type *d_type;
    const EmitValue *d;
    unsigned d_word[MAX_REGS];
    ScalarType a_type, b_type;
    const EmitValue *a_regs; /* NULL: a_desc */
    unsigned a_word[MAX_REGS], a_first, n_a;
    LLVMValueRef a_desc, b_desc;
    bool a_transposed, b_transposed;
    const Cond *scale;
} Wgmma;

static bool read_a(Emit *e, const Op *op, Wgmma *w)
{
    const Operand *o = &op->operands[1];
    WgmmaOperand two;
    if (o->kind == OPND_access) {
        w->a_type = o->u.access->base->type->elem;
        if (!classify(e, op, o->u.access, 64, w->k, &two))
            return false;
        w->a_transposed = two.transposed;
        w->a_desc = descriptor(e, op, &two);
        return w->a_desc != NULL;
    }
    const Type *t = o->kind == OPND_value ? o->u.value->type : NULL;
    if (!t || t->kind != TK_frag || (!frag_is_packed(t) && t->elem != TY_f32))
        return emit_error(e, op,
                          "needs A in shared memory or in a fragment "
                          "of f32, 16- or 8-bit elements");
    int64_t first = op_attr_int(op, "a_slot", 0);
    int64_t per = 4 / scalar_type_bytes(t->elem);
    w->a_type = t->elem;
    w->a_regs = emit_value(e, o->u.value);
    w->a_first = (unsigned)(first / per);
    w->n_a = 4;
    if (first % per || w->a_first + w->n_a > w->a_regs->n)
        return emit_error(e, op, "has no registers from slot %lld on",
                          (long long)first);
    return word_order(e, op, t, per, w->a_word);
}

static bool read_wgmma(Emit *e, const Op *op, Wgmma *w)
{
    WgmmaOperand two;
    w->n = op_attr_int(op, "n", 0);
    w->k = op_attr_int(op, "k", 0);
    const Value *d = op->operands[0].u.value;
    w->d_type = d->type;
    w->d = emit_value(e, d);
    w->scale = op->operands[3].u.cond;
    if (d->type->kind != TK_frag || d->type->n != w->n / 2 || w->n % 8 ||
        w->n < 8 || w->n > 256 ||
        (d->type->elem != TY_f32 && d->type->elem != TY_f16))
        return emit_error(e, op,
                          "needs an accumulator of n / 2 registers of "
                          "f32 or f16 and an n of 8 to 256 in steps of 8, but "
                          "has n = %lld and %lld registers",
                          (long long)w->n, (long long)d->type->n);
    if (!word_order(e, op, d->type, PAIR, w->d_word) || !read_a(e, op, w))
        return false;
    const Access *b = op->operands[2].u.access;
    w->b_type = b->base->type->elem;
    if (w->k * scalar_type_bytes(w->b_type) != 32)
        return emit_error(e, op, "needs a k of 32 bytes, but has %lld",
                          (long long)w->k);
    if (!classify(e, op, b, w->n, w->k, &two))
        return false;
    w->b_transposed = two.transposed;
    if ((w->a_transposed || w->b_transposed) &&
        scalar_type_bytes(w->b_type) != 2)
        return emit_error(e, op,
                          "takes an M- or N-major operand only of "
                          "16-bit elements");
    w->b_desc = descriptor(e, op, &two);
    return w->b_desc != NULL;
}

static void add_wgmma_text(Wgmma *w, Asm *a, unsigned n_d, unsigned a_at,
                           unsigned b_at, const char *scale)
{
    strbuf_addf(&a->text, "{\n\t.reg .pred P;\n\tsetp.ne.b32 P, %s, 0;\n\t",
                scale);
    strbuf_addf(
        &a->text, "wgmma.mma_async.sync.aligned.m64n%lldk%lld.%s.%s.%s ",
        (long long)w->n, (long long)w->k, scalar_info(w->d_type->elem)->ptx,
        wgmma_type(w->a_type), wgmma_type(w->b_type));
    add_register_list(a, 0, n_d);
    strbuf_add(&a->text, ", ");
    if (w->a_regs)
        add_register_list(a, a_at, w->n_a);
    else
        strbuf_addf(&a->text, "$%u", a_at);
    strbuf_addf(&a->text, ", $%u, P, 1, 1", b_at);
    if (scalar_type_bytes(w->b_type) == 2) {
        if (!w->a_regs)
            strbuf_addf(&a->text, ", %d", w->a_transposed);
        strbuf_addf(&a->text, ", %d", w->b_transposed);
    }
    strbuf_add(&a->text, ";\n\t}");
}

static bool emit_mma(Emit *e, const Op *op)
{
    Wgmma *w = ARENA_NEW(e->arena, Wgmma);
    if (!read_wgmma(e, op, w))
        return false;
    unsigned n = w->d->n;
    LLVMTypeRef type = emit_part_type(e, w->d_type);
    LLVMValueRef scale = NULL;
    if (w->scale->kind != COND_true && w->scale->kind != COND_false) {
        scale = emit_cond(e, op, w->scale);
        if (!scale)
            return false;
        scale = LLVMBuildZExt(e->b, scale, e->i32, "");
    }
    Asm a = asm_new(e);
    for (unsigned i = 0; i < n; i++)
        asm_out(&a, type == e->i32 ? "r" : "f", type);
    for (unsigned i = 0; i < n && w->scale->kind != COND_false; i++)
        asm_tied(&a, i, w->d->parts[w->d_word[i]]);
    unsigned a_at = 0;
    if (w->a_desc)
        a_at = asm_in(&a, "l", w->a_desc);
    for (unsigned i = 0; w->a_regs && i < w->n_a; i++) {
        LLVMValueRef r = w->a_regs->parts[w->a_word[w->a_first + i]];
        unsigned at = asm_in(&a, "r", LLVMBuildBitCast(e->b, r, e->i32, ""));
        a_at = i == 0 ? at : a_at;
    }
    unsigned b_at = asm_in(&a, "l", w->b_desc);
    char text[16];
    if (scale)
        snprintf(text, sizeof text, "$%u", asm_in(&a, "r", scale));
    else
        snprintf(text, sizeof text, "%d", w->scale->kind == COND_true);
    add_wgmma_text(w, &a, n, a_at, b_at, text);
    LLVMValueRef result = asm_call(&a, ASM_EFFECT);
    LLVMValueRef *parts = ARENA_ARRAY(e->arena, LLVMValueRef, n);
    for (unsigned i = 0; i < n; i++)
        parts[w->d_word[i]] = LLVMBuildExtractValue(e->b, result, i, "");
    emit_set_value(e, op->results[0], n, parts);
    return true;
}

bool emit_wgmma(Emit *e, Op *op)
{
    char text[64];
    if (op->code == OP_async_wgmma_mma_async)
        return emit_mma(e, op);
    if (op->code == OP_async_wgmma_fence)
        return pass_through(e, op, "wgmma.fence.sync.aligned;");
    int64_t n = op_attr_int(op, "n", -1);
    if (n < 0 || n > 7)
        return emit_error(e, op,
                          "must wait for 0 to 7 groups, but has n = "
                          "%lld",
                          (long long)n);
    snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %lld;",
             (long long)n);
    return pass_through(e, op, text);
}

/* ---- register tile to shared memory -------------------------------------- */

/* A store under way: destination, its layout, and the lane. */
typedef struct TileStore {
    const Op *op;
    SharedAddr base;
    const Type *t;
    const EmitValue *regs;
    int64_t slot[MAX_REGS];
    ScalarType to;
    int64_t col0, inner; /* inner: columns side by side in a row */
    int64_t row_bytes, outer_bytes;
    bool transposed; /* a column of the tile is a row of the destination */
    LLVMValueRef lane;
} TileStore;

/* Are the last two dimensions what is stored, a place for each of 16 rows? */
static bool read_extents(Emit *e, const Op *op, const Access *a, TileStore *s)
{
    int64_t rows, inner, cols = op_attr_int(op, "cols", 0);
    if (a->rank < 2 || !interval_len(&a->dims[a->rank - 2], &rows) ||
        !interval_len(&a->dims[a->rank - 1], &inner) ||
        (s->transposed ? inner : rows) != 16)
        return emit_error(e, op,
                          "needs a destination whose last two "
                          "dimensions are intervals, of 16 %s",
                          s->transposed ? "columns" : "rows");
    s->inner = inner;
    if (s->transposed)
        return (rows == cols && scalar_type_bytes(s->to) > 1) ||
               emit_error(e, op,
                          "needs a destination of %lld rows of elements of "
                          "16 or 32 bits",
                          (long long)cols);
    if (inner % 8 || cols % inner ||
        (cols > inner &&
         (a->rank < 3 || a->dims[a->rank - 3].kind != DIM_interval)))
        return emit_error(e, op,
                          "needs a destination of %lld columns in "
                          "groups of a multiple of 8",
                          (long long)cols);
    return true;
}

static bool read_layout(Emit *e, const Op *op, const Access *a, TileStore *s)
{
    int64_t bytes = scalar_type_bytes(s->to);
    if (!read_extents(e, op, a, s))
        return false;
    s->row_bytes = emit_shared_stride(a->base, a->rank - 2);
    s->outer_bytes = a->rank > 2 ? emit_shared_stride(a->base, a->rank - 3) : 0;
    if (s->base.swizzle && s->row_bytes != (int64_t)s->base.swizzle)
        return emit_error(e, op,
                          "needs rows of the width of the swizzle, but "
                          "has %lld bytes",
                          (long long)s->row_bytes);
    if (s->base.swizzle && s->inner * bytes > s->row_bytes)
        return emit_error(e, op, "has rows wider than the swizzle");
    return true;
}

static bool read_tile_store(Emit *e, const Op *op, TileStore *s)
{
    const Access *a = access_compose(e->m, op->operands[0].u.access);
    const Value *v = op->operands[1].u.value;
    int64_t cols = op_attr_int(op, "cols", 0);
    s->op = op;
    s->t = v->type;
    s->regs = emit_value(e, v);
    s->to = a->base->type->elem;
    s->col0 = op_attr_int(op, "col0", 0);
    s->transposed = op_attr_int(op, "transposed", 0);
    Block *args = e->kernel->blocks[0];
    s->lane = e->vars[args->args[args->n_args - 1].var].value;
    if (v->type->kind != TK_frag || op_attr_int(op, "rows", 0) != 16 ||
        s->col0 < 0 || s->col0 % 8 || cols < 8 || cols % 8 ||
        (s->col0 + cols) / 2 > v->type->n)
        return emit_error(e, op,
                          "needs 16 rows of a register tile and whole "
                          "groups of 8 of its columns");
    if (!scalar_type_is_float(s->to) || s->to == TY_f64 || s->to == TY_e8m0 ||
        !scalar_type_is_float(v->type->elem) || v->type->elem == TY_f64)
        return emit_error(e, op, "converts floats of at most 32 bits only");
    return slot_order(e, op, v->type, PAIR, s->slot) &&
           emit_shared_addr(e, op, a, &s->base) && read_layout(e, op, a, s);
}

/* The physical address of (row, column c + col) where c is a constant that is
 * a multiple of 8 and col (below 16, NULL: 0) does not leave the group. */
static LLVMValueRef tile_addr(Emit *e, TileStore *s, LLVMValueRef row,
                              LLVMValueRef col, int64_t c)
{
    int64_t bytes = scalar_type_bytes(s->to);
    SharedAddr at = s->base;
    at.constant += c / s->inner * s->outer_bytes + c % s->inner * bytes;
    LLVMValueRef by = LLVMBuildMul(e->b, row, emit_i32(e, s->row_bytes), "");
    if (col) {
        LLVMValueRef in_row = LLVMBuildMul(e->b, col, emit_i32(e, bytes), "");
        by = LLVMBuildAdd(e->b, by, in_row, "");
    }
    at.dyn = at.dyn ? LLVMBuildAdd(e->b, at.dyn, by, "") : by;
    LLVMValueRef addr = emit_shared_i32(e, &at);
    return emit_swizzle(e, addr, at.swizzle);
}

/* Transposed: that of column c of the tile and of `col` more, at place `row` of
 * it. Eight columns are a period of the swizzle, so c stays outside of it. */
static LLVMValueRef transposed_addr(Emit *e, TileStore *s, LLVMValueRef row,
                                    LLVMValueRef col, int64_t c)
{
    SharedAddr at = s->base;
    LLVMValueRef by = LLVMBuildMul(e->b, col, emit_i32(e, s->row_bytes), "");
    LLVMValueRef in_row =
        LLVMBuildMul(e->b, row, emit_i32(e, scalar_type_bytes(s->to)), "");
    by = LLVMBuildAdd(e->b, by, in_row, "");
    at.dyn = at.dyn ? LLVMBuildAdd(e->b, at.dyn, by, "") : by;
    LLVMValueRef addr = emit_swizzle(e, emit_shared_i32(e, &at), at.swizzle);
    return LLVMBuildAdd(e->b, addr, emit_i32(e, c * s->row_bytes), "");
}

/* The lane's element i, as f32. */
static LLVMValueRef element(Emit *e, TileStore *s, int64_t i)
{
    LLVMValueRef v = emit_frag_get(e, s->t, s->regs, s->slot[i]);
    return emit_to_f32(e, s->t->elem, v);
}

/* The pair of columns of half h (rows, rows + 8) of 8-column block b: a word
 * of the fragment where that holds it as it shall be stored. */
static LLVMValueRef packed_pair(Emit *e, TileStore *s, int64_t block, int h)
{
    int64_t i = 4 * block + 2 * h, slot = s->slot[i];
    bool is_word = s->t->elem == s->to && scalar_type_bytes(s->to) == 2 &&
                   frag_is_packed(s->t) && slot % 2 == 0 &&
                   s->slot[i + 1] == slot + 1;
    if (is_word)
        return s->regs->parts[slot / 2];
    LLVMValueRef lo = element(e, s, i);
    LLVMValueRef hi = element(e, s, i + 1);
    return emit_pack2(e, s->to, lo, hi);
}

/* The address that a lane gives of n matrices from column c on: lane l that of
 * row l mod 16, of block l / 16. Transposed: of column l mod 8 of that block,
 * at its first or second eight rows. */
static LLVMValueRef matrix_addr(Emit *e, TileStore *s, int64_t c, unsigned n)
{
    LLVMValueRef half = LLVMBuildLShr(e->b, s->lane, emit_i32(e, 4), "");
    LLVMValueRef col = LLVMBuildMul(e->b, half, emit_i32(e, 8), "");
    if (s->transposed) {
        LLVMValueRef row = LLVMBuildAnd(e->b, s->lane, emit_i32(e, 8), "");
        LLVMValueRef in = LLVMBuildAnd(e->b, s->lane, emit_i32(e, 7), "");
        return transposed_addr(e, s, row,
                               n == 4 ? LLVMBuildOr(e->b, col, in, "") : in, c);
    }
    LLVMValueRef row = LLVMBuildAnd(e->b, s->lane, emit_i32(e, 15), "");
    return tile_addr(e, s, row, n == 4 ? col : NULL, c);
}

/* 16-bit elements: matrices of 8 x 8, n of them (4: two blocks of columns, 2:
 * one). */
static void store_matrices(Emit *e, TileStore *s, int64_t c, unsigned n)
{
    LLVMValueRef addr = matrix_addr(e, s, c, n);
    Asm a = asm_new(e);
    unsigned at = asm_in(&a, "r", addr);
    for (unsigned i = 0; i < n; i++) {
        int64_t block = (s->col0 + c) / 8 + i / 2;
        LLVMValueRef pair = packed_pair(e, s, block, i % 2);
        asm_in(&a, "r", pair);
    }
    strbuf_addf(&a.text, "stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [$%u], ",
                n, s->transposed ? ".trans" : "", at);
    add_register_list(&a, at + 1, n);
    strbuf_addc(&a.text, ';');
    asm_call(&a, ASM_EFFECT);
}

/* Other sizes: each lane stores its pairs, rows lane / 4 and that plus 8. */
static void store_pairs(Emit *e, TileStore *s, int64_t c)
{
    LLVMValueRef quad = LLVMBuildLShr(e->b, s->lane, emit_i32(e, 2), "");
    LLVMValueRef three = LLVMBuildAnd(e->b, s->lane, emit_i32(e, 3), "");
    LLVMValueRef col = LLVMBuildMul(e->b, three, emit_i32(e, 2), "");
    int64_t block = (s->col0 + c) / 8;
    for (int h = 0; h < 2; h++) {
        LLVMValueRef row = LLVMBuildAdd(e->b, quad, emit_i32(e, 8 * h), "");
        Asm a = asm_new(e);
        unsigned at = asm_in(&a, "r", tile_addr(e, s, row, col, c));
        if (s->to == TY_f32) {
            asm_in(&a, "f", element(e, s, 4 * block + 2 * h));
            asm_in(&a, "f", element(e, s, 4 * block + 2 * h + 1));
            strbuf_addf(&a.text, "st.shared.v2.f32 [$%u], {$%u, $%u};", at,
                        at + 1, at + 2);
        } else {
            asm_in(&a, "h", packed_pair(e, s, block, h));
            strbuf_addf(&a.text, "st.shared.b16 [$%u], $%u;", at, at + 1);
        }
        asm_call(&a, ASM_EFFECT);
    }
}

/* Transposed, 32 bits: each lane stores its elements one by one. */
static void store_words(Emit *e, TileStore *s, int64_t c)
{
    LLVMValueRef quad = LLVMBuildLShr(e->b, s->lane, emit_i32(e, 2), "");
    LLVMValueRef three = LLVMBuildAnd(e->b, s->lane, emit_i32(e, 3), "");
    LLVMValueRef pair = LLVMBuildMul(e->b, three, emit_i32(e, 2), "");
    for (int i = 0; i < 4; i++) {
        LLVMValueRef row =
            LLVMBuildAdd(e->b, quad, emit_i32(e, 8 * (i / 2)), "");
        LLVMValueRef col = LLVMBuildAdd(e->b, pair, emit_i32(e, i % 2), "");
        Asm a = asm_new(e);
        unsigned at = asm_in(&a, "r", transposed_addr(e, s, row, col, c));
        asm_in(&a, "f", element(e, s, 4 * ((s->col0 + c) / 8) + i));
        strbuf_addf(&a.text, "st.shared.f32 [$%u], $%u;", at, at + 1);
        asm_call(&a, ASM_EFFECT);
    }
}

bool emit_tile_store(Emit *e, Op *op)
{
    TileStore *s = ARENA_NEW(e->arena, TileStore);
    if (!read_tile_store(e, op, s))
        return false;
    int64_t cols = op_attr_int(op, "cols", 0);
    bool has_16_bits = scalar_type_bytes(s->to) == 2;
    for (int64_t c = 0; c < cols;) {
        bool is_wide = has_16_bits && c + 16 <= cols && s->inner % 16 == 0;
        if (has_16_bits)
            store_matrices(e, s, c, is_wide ? 4 : 2);
        else if (s->transposed)
            store_words(e, s, c);
        else
            store_pairs(e, s, c);
        c += is_wide ? 16 : 8;
    }
    return true;
}
