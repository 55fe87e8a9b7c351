/* Control, rings and fragments.
 *
 * A loop is a header with the iterator and the carried registers as phis, a
 * body and an exit; what a fragment or a ring is made of is carried register
 * by register. A loop whose body synchronises must run as written: it is
 * marked not to unroll, as is every loop for which the source asks nothing.
 *
 *   preheader -> header: i = phi, carried = phi; i < hi ? body : exit
 *   body .. latch -> header */
#include "codegen/llvm_emit.h"

#include "ir/eir.h"
#include "ir/eir_types.h"
#include "ir/task_order.h"

#include <string.h>

static LLVMBasicBlockRef new_block(Emit *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->lc, e->fn, name);
}

/* ---- carried values ------------------------------------------------------ */

/* The registers of the n operands of op from `first` on, side by side. */
static bool flatten(Emit *e, const Op *op, unsigned first, unsigned n,
                    EmitValue *out)
{
    VEC(LLVMValueRef) parts = { 0 };
    for (unsigned i = first; i < first + n; i++) {
        if (op->operands[i].kind != OPND_value)
            return emit_error(e, op, "operand %u must be a value", i);
        const Value *v = op->operands[i].u.value;
        const EmitValue *ev = emit_value(e, v);
        if (ev->n == 0 || ev->n != emit_type_parts(v->type))
            return emit_error(e, op,
                              "operand %u must be a scalar, a ring or "
                              "a fragment",
                              i);
        for (unsigned k = 0; k < ev->n; k++)
            VEC_PUSH(e->arena, &parts, ev->parts[k]);
    }
    out->n = (unsigned)parts.len;
    out->parts = parts.data;
    return true;
}

/* One register more. */
static void add_part(Emit *e, EmitValue *flat, LLVMValueRef v)
{
    LLVMValueRef *parts = ARENA_ARRAY(e->arena, LLVMValueRef, flat->n + 1);
    if (flat->n)
        memcpy(parts, flat->parts, flat->n * sizeof *parts);
    parts[flat->n++] = v;
    flat->parts = parts;
}

/* Gives value v the next registers of a flattened list. */
static void unflatten(Emit *e, const Value *v, const EmitValue *flat,
                      unsigned *at)
{
    unsigned n = emit_type_parts(v->type);
    if (*at + n > flat->n)
        panic("unflatten: a list of registers is too short");
    emit_set_value(e, v, n, flat->parts + *at);
    *at += n;
}

static EmitValue make_phis(Emit *e, const EmitValue *init,
                           LLVMBasicBlockRef from)
{
    EmitValue phis = { init->n, ARENA_ARRAY(e->arena, LLVMValueRef, init->n) };
    for (unsigned i = 0; i < init->n; i++) {
        LLVMValueRef v = init->parts[i];
        phis.parts[i] = LLVMBuildPhi(e->b, LLVMTypeOf(v), "");
        LLVMAddIncoming(phis.parts[i], &v, &from, 1);
    }
    return phis;
}

static bool close_phis(Emit *e, const Op *op, const EmitValue *phis,
                       const EmitValue *next, LLVMBasicBlockRef from)
{
    if (phis->n != next->n)
        return emit_error(e, op, "carries %u registers but yields %u", phis->n,
                          next->n);
    for (unsigned i = 0; i < phis->n; i++) {
        if (LLVMTypeOf(phis->parts[i]) != LLVMTypeOf(next->parts[i]))
            return emit_error(e, op,
                              "yields a value of another type than it "
                              "carries");
        LLVMAddIncoming(phis->parts[i], &next->parts[i], &from, 1);
    }
    return true;
}

/* ---- loops --------------------------------------------------------------- */

static LLVMMetadataRef string_node(Emit *e, const char *name, int64_t count)
{
    LLVMMetadataRef parts[2] = {
        LLVMMDStringInContext2(e->lc, name, strlen(name)), NULL
    };
    if (count >= 0)
        parts[1] = LLVMValueAsMetadata(emit_i32(e, count));
    return LLVMMDNodeInContext2(e->lc, parts, count >= 0 ? 2 : 1);
}

typedef struct SyncSearch {
    const Emit *e;
    bool found;
} SyncSearch;

static bool find_sync(Op *op, void *user)
{
    SyncSearch *s = user;
    s->found |=
        op_has(op, OPT_SYNC | OPT_COLLECTIVE) &&
        !(op->code == OP_async_instr && instr_is_alone(op_instr(s->e->m, op)));
    return !s->found;
}

/* The loop node of a back edge; its first operand is itself. */
static void set_loop_metadata(Emit *e, Op *op, LLVMValueRef branch)
{
    SyncSearch sync = { e, false };
    block_walk(op->blocks[0], find_sync, &sync);
    const Param *unroll = op_attr_param(op, "pragma_unroll");
    bool may = unroll && unroll->kind == PARAM_int && !sync.found;
    LLVMMetadataRef what =
        !may             ? string_node(e, "llvm.loop.unroll.disable", -1)
        : unroll->i == 0 ? string_node(e, "llvm.loop.unroll.full", -1)
        : unroll->i == 1 ? string_node(e, "llvm.loop.unroll.disable", -1)
                         : string_node(e, "llvm.loop.unroll.count", unroll->i);
    LLVMMetadataRef self = LLVMTemporaryMDNode(e->lc, NULL, 0);
    LLVMMetadataRef parts[2] = { self, what };
    LLVMMetadataRef node = LLVMMDNodeInContext2(e->lc, parts, 2);
    LLVMMetadataReplaceAllUsesWith(self, node);
    unsigned kind = LLVMGetMDKindIDInContext(e->lc, "llvm.loop", 9);
    LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(e->lc, node));
}

/* A loop under construction: i runs from lo by step while below hi. */
typedef struct Loop {
    LLVMBasicBlockRef header, body, exit;
    LLVMValueRef i;
    EmitValue phis;
} Loop;

static Loop loop_open(Emit *e, LLVMValueRef lo, LLVMValueRef hi, bool is_signed,
                      const EmitValue *init)
{
    Loop l = { .header = new_block(e, "loop"),
               .body = new_block(e, "body"),
               .exit = new_block(e, "done") };
    LLVMBasicBlockRef from = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, l.header);
    LLVMPositionBuilderAtEnd(e->b, l.header);
    l.i = LLVMBuildPhi(e->b, LLVMTypeOf(lo), "");
    LLVMAddIncoming(l.i, &lo, &from, 1);
    l.phis = make_phis(e, init, from);
    LLVMValueRef more =
        LLVMBuildICmp(e->b, is_signed ? LLVMIntSLT : LLVMIntULT, l.i, hi, "");
    LLVMBuildCondBr(e->b, more, l.body, l.exit);
    LLVMPositionBuilderAtEnd(e->b, l.body);
    return l;
}

static bool loop_close(Emit *e, Op *op, Loop *l, LLVMValueRef step,
                       bool is_signed, const EmitValue *next)
{
    LLVMValueRef i = is_signed ? LLVMBuildNSWAdd(e->b, l->i, step, "")
                               : LLVMBuildNUWAdd(e->b, l->i, step, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    LLVMAddIncoming(l->i, &i, &latch, 1);
    if (!close_phis(e, op, &l->phis, next, latch))
        return false;
    LLVMValueRef branch = LLVMBuildBr(e->b, l->header);
    set_loop_metadata(e, op, branch);
    LLVMPositionBuilderAtEnd(e->b, l->exit);
    return true;
}

/* Gives the block's value arguments the carried registers. */
static void bind_arguments(Emit *e, const Block *b, const EmitValue *flat)
{
    unsigned at = 0;
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value)
            unflatten(e, b->args[i].value, flat, &at);
}

static void bind_results(Emit *e, const Op *op, const EmitValue *flat)
{
    unsigned at = 0;
    for (unsigned i = 0; i < op->n_results; i++)
        unflatten(e, op->results[i], flat, &at);
}

/* Prints the body and answers what it yields (nothing without a yield). */
static bool emit_body(Emit *e, Block *b, EmitValue *yield)
{
    e->yield = (EmitValue){ 0 };
    if (!emit_block(e, b))
        return false;
    *yield = e->yield;
    e->yield = (EmitValue){ 0 };
    return true;
}

/* Where all that a loop does stands under `i < n`, the same n each round, and
 * nothing asks for what it carries, it ends at n: the bound, or NULL. */
static const Affine *ends_early(Emit *e, const Op *loop)
{
    ExprCtx *x = e->m->exprs;
    VarId i = loop->blocks[0]->args[0].var;
    const Op *guard = NULL;
    for (const Op *op = loop->blocks[0]->first; op; op = op->next) {
        if (op_has(op, OPT_PURE) || op->code == OP_ctl_yield)
            continue;
        if (guard || op->code != OP_ctl_if || op->n_blocks != 1)
            return NULL;
        guard = op;
    }
    const Cond *c = guard ? guard->operands[0].u.cond : NULL;
    if (!c || c->kind != COND_ge0 || affine_coef(c->expr, i) != -1)
        return NULL;
    const Affine *n = affine_add(x, c->expr, affine_var(x, i));
    n = affine_add_const(x, n, 1);
    return !n || affine_uses(n, i) || op_used_behind(loop) ? NULL : n;
}

bool emit_for(Emit *e, Op *op)
{
    const Affine *lo = op->operands[0].u.index;
    const Affine *hi = op->operands[1].u.index;
    const Block *b = op->blocks[0];
    EmitValue init, next;
    if (b->n_args == 0 || b->args[0].value)
        return emit_error(e, op, "must have its iterator as first argument");
    if (op_attr(op, "mode") && strcmp(op_attr_str(op, "mode", ""), "seq"))
        return emit_error(e, op, "of mode '%s' must have been lowered",
                          op_attr_str(op, "mode", ""));
    if (!flatten(e, op, 2, op->n_operands - 2, &init))
        return false;
    Range range = { index_range(e, lo).lo, index_range(e, hi).hi };
    unsigned bits = range_fits_i32(range) ? 32 : 64;
    LLVMValueRef first = emit_index(e, op, lo, bits);
    LLVMValueRef end = first ? emit_index(e, op, hi, bits) : NULL;
    const Affine *early = ends_early(e, op);
    if (end && early && range_fits_i32(index_range(e, early)) && bits == 32) {
        LLVMValueRef ends[2] = { end, emit_index(e, op, early, bits) };
        LLVMTypeRef type = LLVMTypeOf(end);
        end =
            ends[1] ? emit_intrinsic(e, "llvm.smin", 1, &type, 2, ends) : NULL;
    }
    if (!end)
        return false;
    Loop loop = loop_open(e, first, end, true, &init);
    if (range.hi > range.lo)
        range.hi--;
    emit_set_var(e, b->args[0].var, range, loop.i);
    bind_arguments(e, b, &loop.phis);
    if (!emit_body(e, op->blocks[0], &next))
        return false;
    LLVMValueRef one = LLVMConstInt(LLVMTypeOf(loop.i), 1, false);
    if (!loop_close(e, op, &loop, one, true, &next))
        return false;
    bind_results(e, op, &loop.phis);
    return true;
}

static LLVMValueRef special_register(Emit *e, const char *name)
{
    return emit_intrinsic(e, name, 0, NULL, 0, NULL);
}

/* blockIdx.x or gridDim.x, in clusters. */
static LLVMValueRef in_clusters(Emit *e, const char *name)
{
    LLVMValueRef v = special_register(e, name);
    int64_t n = op_attr_int(e->kernel, "clusterDim", 1);
    return n == 1 ? v : LLVMBuildUDiv(e->b, v, emit_i32(e, n), "");
}

/* Splits number n by d: the rest, and the quotient in *n. */
static LLVMValueRef split_number(Emit *e, LLVMValueRef *n, LLVMValueRef d)
{
    LLVMValueRef rest = LLVMBuildURem(e->b, *n, d, "");
    *n = LLVMBuildUDiv(e->b, *n, d, "");
    return rest;
}

/* The last two coordinates of task number *i, in bands of the former
 * (ir/task_order.h); *i becomes the number in the dimensions before them. */
static void group_coordinates(Emit *e, int64_t group, bool outermost,
                              LLVMValueRef *i, LLVMValueRef rows,
                              LLVMValueRef columns, LLVMValueRef *at)
{
    LLVMValueRef plane = *i, height = emit_i32(e, group);
    if (!outermost)
        plane = split_number(e, i, LLVMBuildMul(e->b, rows, columns, ""));
    LLVMValueRef band_tasks = LLVMBuildMul(e->b, columns, height, "");
    LLVMValueRef in_band = split_number(e, &plane, band_tasks);
    LLVMValueRef first = LLVMBuildMul(e->b, plane, height, "");
    LLVMTypeRef type = e->i32;
    LLVMValueRef least[2] = { LLVMBuildSub(e->b, rows, first, ""), height };
    height = emit_intrinsic(e, "llvm.umin", 1, &type, 2, least);
    at[0] = LLVMBuildAdd(e->b, first, split_number(e, &in_band, height), "");
    at[1] = in_band;
}

/* The tasks of an op: their box, how many, and the first of the cluster. */
typedef struct TaskSpace {
    const Op *op;
    LLVMValueRef lo[MAX_TASK_LOOPS], extent[MAX_TASK_LOOPS], total, first;
    LLVMValueRef at[MAX_TASK_LOOPS]; /* of `once`: where the first lies */
} TaskSpace;

/* Where task number i lies, counted from lo. */
static void task_coordinates(Emit *e, const TaskSpace *s, LLVMValueRef i,
                             LLVMValueRef *at)
{
    unsigned rank = (unsigned)op_attr_int(s->op, "rank", 0), left = rank;
    int64_t group = op_attr_int(s->op, "group", 0);
    if (group) {
        left -= 2;
        group_coordinates(e, group, left == 0, &i, s->extent[left],
                          s->extent[left + 1], &at[left]);
    }
    for (unsigned d = left; d-- > 0;)
        at[d] = d > 0 ? split_number(e, &i, s->extent[d]) : i;
}

static void bind_task(Emit *e, const TaskSpace *s, const LLVMValueRef *at)
{
    const Op *op = s->op;
    for (unsigned d = 0; d < (unsigned)op_attr_int(op, "rank", 0); d++) {
        LLVMValueRef v = LLVMBuildAdd(e->b, at[d], s->lo[d], "");
        Range range = { index_range(e, op->operands[2 * d].u.index).lo,
                        index_range(e, op->operands[2 * d + 1].u.index).hi -
                            1 };
        range.lo = range.lo < INT32_MIN ? INT32_MIN : range.lo;
        range.hi = range.hi > INT32_MAX ? INT32_MAX : range.hi;
        emit_set_var(e, op->blocks[0]->args[d].var, range, v);
    }
}

static LLVMValueRef at_least(Emit *e, LLVMValueRef v, int64_t least)
{
    LLVMTypeRef type = e->i32;
    LLVMValueRef args[2] = { v, emit_i32(e, least) };
    return emit_intrinsic(e, "llvm.smax", 1, &type, 2, args);
}

static bool task_space(Emit *e, Op *op, TaskSpace *s)
{
    unsigned rank = (unsigned)op_attr_int(op, "rank", 0);
    const Block *b = op->blocks[0];
    if (rank == 0 || rank > MAX_TASK_LOOPS || 2 * rank > op->n_operands ||
        b->n_args < eir_loop_vars(op))
        return emit_error(e, op,
                          "must have 1 to %d task variables, each with "
                          "its bounds",
                          MAX_TASK_LOOPS);
    *s = (TaskSpace){ .op = op };
    for (unsigned d = 0; d < rank; d++) {
        const Affine *from = op->operands[2 * d].u.index;
        const Affine *to = op->operands[2 * d + 1].u.index;
        const Affine *n = affine_sub(e->m->exprs, to, from);
        s->lo[d] = emit_index(e, op, from, 32);
        LLVMValueRef v = s->lo[d] && n ? emit_index(e, op, n, 32) : NULL;
        if (!v || b->args[d].value)
            return emit_error(e, op,
                              "must have control variables with "
                              "bounds as its first arguments");
        s->extent[d] = index_range(e, n).lo < 0 ? at_least(e, v, 0) : v;
        s->total = s->total ? LLVMBuildNUWMul(e->b, s->total, s->extent[d], "")
                            : s->extent[d];
    }
    s->first = in_clusters(e, "llvm.nvvm.read.ptx.sreg.ctaid.x");
    return true;
}

/* The first of tasks that are run `once` is looked for where the block begins
 * that they stand in: the divisions take long, and what comes before the tasks
 * need not wait for them. The PTX assembler mixes the two; the moves keep LLVM
 * from taking the divisions back. Every cluster has a first task, as no launch
 * has more clusters than tasks. */
static bool find_first_task(Emit *e, Block *b)
{
    Op *op = b->first;
    while (op && !(op->code == OP_async_tasks && op_attr_int(op, "once", 0)))
        op = op->next;
    if (!op)
        return true;
    TaskSpace *s = ARENA_NEW(e->arena, TaskSpace);
    if (!task_space(e, op, s))
        return false;
    TaskSpace some = *s;
    unsigned rank = (unsigned)op_attr_int(op, "rank", 0);
    for (unsigned d = 1; d < rank; d++)
        some.extent[d] = at_least(e, s->extent[d], 1);
    task_coordinates(e, &some, s->first, s->at);
    for (unsigned d = 0; d < rank; d++) {
        Asm a = asm_new(e);
        unsigned to = asm_out(&a, "r", e->i32);
        unsigned from = asm_in(&a, "r", s->at[d]);
        strbuf_addf(&a.text, "mov.b32 $%u, $%u;", to, from);
        s->at[d] = asm_call(&a, ASM_EFFECT);
    }
    e->first_task = s;
    return true;
}

bool emit_tasks(Emit *e, Op *op)
{
    unsigned first = eir_first_carried(op), n_vars = eir_loop_vars(op);
    const Block *b = op->blocks[0];
    EmitValue init, next;
    TaskSpace s;
    bool found = e->first_task && e->first_task->op == op;
    if (found)
        s = *e->first_task;
    else if (!task_space(e, op, &s))
        return false;
    if (!flatten(e, op, first, op->n_operands - first, &init))
        return false;
    LLVMValueRef step =
        op_attr_int(op, "once", 0)
            ? s.total
            : in_clusters(e, "llvm.nvvm.read.ptx.sreg.nctaid.x");
    bool counts = 2 * n_vars > first;
    if (counts)
        add_part(e, &init, emit_i32(e, 0));
    Loop loop = loop_open(e, s.first, s.total, false, &init);
    if (!found)
        task_coordinates(e, &s, loop.i, s.at);
    bind_task(e, &s, s.at);
    LLVMValueRef round = counts ? loop.phis.parts[init.n - 1] : NULL;
    if (counts)
        emit_set_var(e, b->args[n_vars - 1].var, (Range){ 0, INT32_MAX - 1 },
                     round);
    bind_arguments(e, b, &loop.phis);
    if (!emit_body(e, op->blocks[0], &next))
        return false;
    if (counts)
        add_part(e, &next, LLVMBuildNUWAdd(e->b, round, emit_i32(e, 1), ""));
    if (!loop_close(e, op, &loop, step, false, &next))
        return false;
    bind_results(e, op, &loop.phis);
    return true;
}

/* ---- branches ------------------------------------------------------------ */

/* Runs b where cond holds; nothing comes out of it. */
static bool emit_guarded(Emit *e, LLVMValueRef cond, Block *b)
{
    LLVMBasicBlockRef then = new_block(e, "then");
    LLVMBasicBlockRef end = new_block(e, "end");
    LLVMBuildCondBr(e->b, cond, then, end);
    LLVMPositionBuilderAtEnd(e->b, then);
    if (!emit_block(e, b))
        return false;
    LLVMBuildBr(e->b, end);
    LLVMPositionBuilderAtEnd(e->b, end);
    return true;
}

bool emit_if(Emit *e, Op *op)
{
    LLVMValueRef cond = emit_cond(e, op, op->operands[0].u.cond);
    if (!cond)
        return false;
    if (op->n_blocks == 1)
        return emit_guarded(e, cond, op->blocks[0]);
    LLVMBasicBlockRef side[2] = { new_block(e, "then"), new_block(e, "else") };
    LLVMBasicBlockRef end = new_block(e, "end");
    EmitValue yield[2];
    LLVMBuildCondBr(e->b, cond, side[0], side[1]);
    for (int i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(e->b, side[i]);
        if (!emit_body(e, op->blocks[i], &yield[i]))
            return false;
        side[i] = LLVMGetInsertBlock(e->b);
        LLVMBuildBr(e->b, end);
    }
    LLVMPositionBuilderAtEnd(e->b, end);
    if (op->n_results == 0)
        return true;
    EmitValue phis = make_phis(e, &yield[0], side[0]);
    if (!close_phis(e, op, &phis, &yield[1], side[1]))
        return false;
    bind_results(e, op, &phis);
    return true;
}

bool emit_role(Emit *e, Op *op)
{
    Block *args = e->kernel->blocks[0];
    VarId warp = args->args[args->n_args - 2].var;
    LLVMValueRef w = e->vars[warp].value;
    LLVMValueRef lo = emit_i32(e, op_attr_int(op, "lo", 0));
    LLVMValueRef n =
        emit_i32(e, op_attr_int(op, "hi", 0) - op_attr_int(op, "lo", 0));
    LLVMValueRef from = LLVMBuildSub(e->b, w, lo, "");
    LLVMValueRef is_in = LLVMBuildICmp(e->b, LLVMIntULT, from, n, "");
    return emit_guarded(e, is_in, op->blocks[0]);
}

bool emit_elect(Emit *e, Op *op)
{
    Asm a = asm_new(e);
    unsigned out = asm_out(&a, "b", e->i1);
    strbuf_addf(&a.text, "elect.sync _|$%u, 0xffffffff;", out);
    LLVMValueRef is_elected = asm_call(&a, ASM_EFFECT);
    return emit_guarded(e, is_elected, op->blocks[0]);
}

/* ---- rings --------------------------------------------------------------- */

static int64_t floor_mod(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

/* (slot, parity) moved on by a constant 0 < n < depth; `flips` turns more. */
static void ring_step(Emit *e, int64_t depth, int64_t n, int64_t flips,
                      const LLVMValueRef in[2], LLVMValueRef out[2])
{
    LLVMValueRef slot = in[0], parity = in[1];
    if (n) {
        LLVMValueRef next = LLVMBuildNUWAdd(e->b, slot, emit_i32(e, n), "");
        LLVMValueRef end = emit_i32(e, depth);
        LLVMValueRef wraps = LLVMBuildICmp(e->b, LLVMIntUGE, next, end, "");
        LLVMValueRef back = LLVMBuildSub(e->b, next, end, "");
        slot = LLVMBuildSelect(e->b, wraps, back, next, "");
        LLVMValueRef turn = LLVMBuildZExt(e->b, wraps, e->i32, "");
        parity = LLVMBuildXor(e->b, parity, turn, "");
    }
    if (flips & 1)
        parity = LLVMBuildXor(e->b, parity, emit_i32(e, 1), "");
    out[0] = slot;
    out[1] = parity;
}

/* By a run-time n: slot + n split by depth, the argument kept positive. */
static void ring_jump(Emit *e, int64_t depth, LLVMValueRef n,
                      const LLVMValueRef in[2], LLVMValueRef out[2])
{
    LLVMValueRef d = emit_i32(e, depth);
    LLVMValueRef at = LLVMBuildAdd(e->b, in[0], n, "");
    LLVMValueRef zero = emit_i32(e, 0);
    LLVMValueRef rem = LLVMBuildSRem(e->b, at, d, "");
    LLVMValueRef turns = LLVMBuildSDiv(e->b, at, d, "");
    LLVMValueRef below = LLVMBuildICmp(e->b, LLVMIntSLT, rem, zero, "");
    LLVMValueRef mended = LLVMBuildAdd(e->b, rem, d, "");
    out[0] = LLVMBuildSelect(e->b, below, mended, rem, "");
    LLVMValueRef less = LLVMBuildZExt(e->b, below, e->i32, "");
    turns = LLVMBuildSub(e->b, turns, less, "");
    turns = LLVMBuildAnd(e->b, turns, emit_i32(e, 1), "");
    out[1] = LLVMBuildXor(e->b, in[1], turns, "");
}

static void ring_by_const(Emit *e, int64_t depth, int64_t n,
                          const LLVMValueRef in[2], LLVMValueRef out[2])
{
    int64_t rest = floor_mod(n, depth);
    ring_step(e, depth, rest, (n - rest) / depth, in, out);
}

bool emit_ring_at(Emit *e, const Op *op, const Value *ring, int64_t delta,
                  LLVMValueRef out[2])
{
    const EmitValue *ev = emit_value(e, ring);
    if (ring->type->kind != TK_ring || ring->type->n < 1 || ev->n != 2)
        return emit_error(e, op, "indexes by a value that is no ring");
    ring_by_const(e, ring->type->n, delta, ev->parts, out);
    return true;
}

bool emit_ring_init(Emit *e, Op *op)
{
    const Attr *position = op_attr(op, "position");
    int64_t depth = op->results[0]->type->n, c;
    LLVMValueRef parts[2] = { emit_i32(e, 0), emit_i32(e, 0) };
    if (depth < 1)
        return emit_error(e, op, "must have a depth of 1 or more");
    if (!position)
        return emit_error(e, op, "must have a position");
    if (position->kind == ATTR_param) {
        c = op_attr_int(op, "position", 0);
    } else if (!affine_is_const(position->index, &c)) {
        LLVMValueRef n = emit_index(e, op, position->index, 32);
        if (!n)
            return false;
        ring_jump(e, depth, n, parts, parts);
        emit_set_value(e, op->results[0], 2, parts);
        return true;
    }
    int64_t slot = floor_mod(c, depth);
    parts[0] = emit_i32(e, slot);
    parts[1] = emit_i32(e, ((c - slot) / depth) & 1);
    emit_set_value(e, op->results[0], 2, parts);
    return true;
}

bool emit_ring_advance(Emit *e, Op *op)
{
    const Value *ring = op->operands[0].u.value;
    const Affine *by = op->operands[1].u.index;
    LLVMValueRef parts[2];
    int64_t c = 0;
    bool is_const = affine_is_const(by, &c);
    if (!emit_ring_at(e, op, ring, is_const ? c : 0, parts))
        return false;
    if (!is_const) {
        LLVMValueRef n = emit_index(e, op, by, 32);
        if (!n)
            return false;
        ring_jump(e, ring->type->n, n, parts, parts);
    }
    emit_set_value(e, op->results[0], 2, parts);
    return true;
}

/* ---- fragments ----------------------------------------------------------- */

/* Where slot s of a packed fragment is: its word and the shift in it. */
static unsigned word_of(const Type *t, int64_t slot, LLVMValueRef *shift,
                        Emit *e)
{
    int64_t bytes = scalar_type_bytes(t->elem);
    *shift = emit_i32(e, slot * bytes % 4 * 8);
    return (unsigned)(slot * bytes / 4);
}

LLVMValueRef emit_frag_get(Emit *e, const Type *t, const EmitValue *ev,
                           int64_t slot)
{
    LLVMValueRef shift;
    if (!frag_is_packed(t))
        return ev->parts[slot];
    unsigned w = word_of(t, slot, &shift, e);
    unsigned bits = 8 * (unsigned)scalar_type_bytes(t->elem);
    LLVMValueRef v = LLVMBuildLShr(e->b, ev->parts[w], shift, "");
    v = LLVMBuildTrunc(e->b, v, LLVMIntTypeInContext(e->lc, bits), "");
    return LLVMBuildBitCast(e->b, v, emit_scalar_type(e, t->elem), "");
}

static void frag_put(Emit *e, const Type *t, LLVMValueRef *parts, int64_t slot,
                     LLVMValueRef v)
{
    LLVMValueRef shift;
    if (!frag_is_packed(t)) {
        parts[slot] = v;
        return;
    }
    unsigned w = word_of(t, slot, &shift, e);
    unsigned bits = 8 * (unsigned)scalar_type_bytes(t->elem);
    uint32_t ones = (uint32_t)((UINT64_C(1) << bits) - 1);
    uint32_t mask = ones << LLVMConstIntGetZExtValue(shift);
    v = LLVMBuildBitCast(e->b, v, LLVMIntTypeInContext(e->lc, bits), "");
    v = LLVMBuildZExt(e->b, v, e->i32, "");
    v = LLVMBuildShl(e->b, v, shift, "");
    LLVMValueRef kept = LLVMBuildAnd(e->b, parts[w], emit_i32(e, ~mask), "");
    parts[w] = LLVMBuildOr(e->b, kept, v, "");
}

static bool frag_constant(Emit *e, const Op *op)
{
    const Type *t = op->results[0]->type;
    unsigned n = emit_type_parts(t);
    LLVMTypeRef type = emit_part_type(e, t);
    LLVMValueRef fill = op->code == OP_async_frag_zero ? LLVMConstNull(type)
                                                       : LLVMGetPoison(type);
    LLVMValueRef *parts = ARENA_ARRAY(e->arena, LLVMValueRef, n + 1);
    for (unsigned i = 0; i < n; i++)
        parts[i] = fill;
    emit_set_value(e, op->results[0], n, parts);
    return true;
}

/* A packed word of which nothing was written must not be poison when one
 * element is inserted: the other elements are arbitrary, not contagious. */
static void freeze_word(Emit *e, const Type *t, EmitValue *to, int64_t slot)
{
    LLVMValueRef shift;
    if (!frag_is_packed(t))
        return;
    unsigned w = word_of(t, slot, &shift, e);
    if (LLVMIsPoison(to->parts[w]))
        to->parts[w] = LLVMConstNull(e->i32);
}

bool emit_frag(Emit *e, Op *op)
{
    if (op->code == OP_async_frag_zero || op->code == OP_async_frag_undef)
        return frag_constant(e, op);
    const Value *frag = op->operands[0].u.value;
    const Type *t = frag->type;
    const EmitValue *ev = emit_value(e, frag);
    int64_t slot = op_attr_int(op, "slot", -1);
    if (t->kind != TK_frag || slot < 0 || slot >= t->n ||
        ev->n != emit_type_parts(t))
        return emit_error(e, op,
                          "must name a slot below %lld of a fragment, "
                          "but names %lld",
                          (long long)t->n, (long long)slot);
    if (op->code == OP_async_frag_extract) {
        LLVMValueRef v = emit_frag_get(e, t, ev, slot);
        emit_set_value(e, op->results[0], 1, &v);
        return true;
    }
    const EmitValue *scalar = emit_value(e, op->operands[1].u.value);
    if (scalar->n != 1)
        return emit_error(e, op, "inserts a value that is no scalar");
    emit_set_value(e, op->results[0], ev->n, ev->parts);
    EmitValue *to = emit_value(e, op->results[0]);
    freeze_word(e, t, to, slot);
    frag_put(e, t, to->parts, slot, scalar->parts[0]);
    return true;
}

/* ---- blocks -------------------------------------------------------------- */

static void set_location(Emit *e, const Op *op)
{
    if (!e->di || !op->loc.line)
        return;
    LLVMMetadataRef scope = e->scope;
    if (op->loc.file != e->scope_file)
        return;
    LLVMMetadataRef at = LLVMDIBuilderCreateDebugLocation(
        e->lc, op->loc.line, op->loc.col, scope, NULL);
    LLVMSetCurrentDebugLocation2(e->b, at);
}

static bool emit_op(Emit *e, Op *op)
{
    switch (op->code) {
    case OP_ctl_for:
        return emit_for(e, op);
    case OP_ctl_if:
        return emit_if(e, op);
    case OP_ctl_yield:
        return flatten(e, op, 0, op->n_operands, &e->yield);
    case OP_ctl_pass:
    case OP_ctl_assert:
    case OP_mem_alloc:
    case OP_mem_window:
    case OP_async_mbarrier_alloc:
        return true;
    case OP_mem_load:
        return emit_load(e, op);
    case OP_mem_store:
        return emit_store(e, op);
    case OP_mem_reduce:
        return emit_reduce(e, op);
    case OP_async_tasks:
        return emit_tasks(e, op);
    case OP_async_role:
        return emit_role(e, op);
    case OP_async_elect:
        return emit_elect(e, op);
    case OP_async_ring_init:
        return emit_ring_init(e, op);
    case OP_async_ring_advance:
        return emit_ring_advance(e, op);
    case OP_async_frag_undef:
    case OP_async_frag_zero:
    case OP_async_frag_extract:
    case OP_async_frag_insert:
        return emit_frag(e, op);
    case OP_async_prefetch_tensormap:
        return emit_prefetch(e, op);
    case OP_async_bulk_tensor_load:
    case OP_async_bulk_copy:
    case OP_async_bulk_tensor_store:
    case OP_async_bulk_tensor_reduce:
        return emit_copy(e, op);
    case OP_async_wgmma_fence:
    case OP_async_wgmma_mma_async:
    case OP_async_wgmma_wait_group:
        return emit_wgmma(e, op);
    case OP_async_cluster_load:
        return emit_cluster_load(e, op);
    case OP_async_tile_store:
        return emit_tile_store(e, op);
    case OP_async_shfl_sync:
        return emit_shfl(e, op);
    case OP_async_instr:
        return emit_instr(e, op);
    default:
        break;
    }
    const char *dialect = op_info(op->code)->dialect;
    if (strcmp(dialect, "arith") == 0)
        return emit_arith(e, op);
    if (strcmp(dialect, "async") == 0)
        return emit_sync(e, op);
    return emit_error(e, op, "has no place in a kernel");
}

/* No thread has more registers than that. */
static bool check_results(Emit *e, const Op *op)
{
    for (unsigned i = 0; i < op->n_results; i++) {
        const Type *t = op->results[i]->type;
        if (t->kind == TK_frag && (t->n < 1 || t->n > EIR_MAX_FRAG))
            return emit_error(e, op,
                              "must have fragments of 1 to %d elements, but "
                              "has one of %lld",
                              EIR_MAX_FRAG, (long long)t->n);
    }
    return true;
}

bool emit_block(Emit *e, Block *b)
{
    if (!find_first_task(e, b))
        return false;
    for (Op *op = b->first; op; op = op->next) {
        set_location(e, op);
        if (!check_results(e, op) || !emit_op(e, op))
            return false;
    }
    return true;
}
