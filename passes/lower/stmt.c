/* Statements of a role: loops, ifs, thread loops, assignments.
 *
 *   for t in cuda_threads(..): S   ->  [if guard] S with t an expression of the
 *                                      coordinates
 *   for k in seq(..): S            ->  S unrolled where k indexes registers;
 *                                      else ctl.for, carrying the fragments
 *                                      that S writes and the rings that k moves
 *   with CudaWarps(..): S          ->  [if guard] S, or nothing in another role
 */
#include "passes/lower/lower.h"

#include <string.h>

enum { UNROLL_LIMIT = 4096 };

static void lower_block(Lower *L, Block *b);

/* ---- ifs ----------------------------------------------------------------- */

typedef struct IfArm {
    Block *source; /* NULL: nothing happens */
    Block *block;
    Frag *after; /* a copy of each fragment's state, as the arm leaves it */
} IfArm;

static void lower_arm(Lower *L, IfArm *arm, const FragPtrVec *frags)
{
    Frag *before = ARENA_ARRAY(L->scratch, Frag, frags->len);
    for (size_t i = 0; i < frags->len; i++)
        before[i] = *frags->data[i];
    size_t n_cursors = L->cursors.len;
    unsigned commits = L->commits;
    Block *outer = L->out;
    L->out = arm->block;
    if (arm->source)
        lower_block(L, arm->source);
    L->out = outer;
    L->commits = commits;
    L->cursors.len = n_cursors;
    arm->after = ARENA_ARRAY(L->scratch, Frag, frags->len);
    for (size_t i = 0; i < frags->len; i++) {
        arm->after[i] = *frags->data[i];
        *frags->data[i] = before[i];
    }
}

/* The arm's value of fragment i, whole unless both arms leave the same
 * condition. */
static void yield_arm(Lower *L, IfArm *arm, const FragPtrVec *frags,
                      const bool *whole)
{
    Block *outer = L->out;
    L->out = arm->block;
    Value **v = ARENA_ARRAY(L->scratch, Value *, frags->len);
    for (size_t i = 0; i < frags->len; i++)
        v[i] = whole[i] ? frag_force(L, &arm->after[i])
                        : frag_value(L, &arm->after[i]);
    Op *yield = lower_emit(L, OP_ctl_yield, (unsigned)frags->len, 0, 0);
    for (size_t i = 0; i < frags->len; i++)
        yield->operands[i] = opnd_value(v[i]);
    L->out = outer;
}

static void merge_frag(Frag *f, const Frag *a, const Frag *b)
{
    f->live = a->live;
    f->never_written = a->never_written && b->never_written;
    f->flight = flight_either(a->flight, b->flight);
    f->flight_block = NULL;
}

static bool only_pure(const Block *b)
{
    for (const Op *op = b->first; op; op = op->next)
        if (!op_has(op, OPT_PURE) && op->code != OP_ctl_yield &&
            op->code != OP_mem_load)
            return false;
    return true;
}

/* Drops a loop or if that turned out to do nothing for this role. */
static void drop_if_idle(Op *op)
{
    bool idle = op->n_results == 0;
    for (unsigned i = 0; i < op->n_blocks; i++)
        idle = idle && only_pure(op->blocks[i]);
    if (idle)
        op_detach(op);
}

static void lower_if(Lower *L, const Cond *cond, Block *then, Block *otherwise)
{
    if (LOWER_WRONG(L, "no-guard"))
        cond = cond_bool(L->m->exprs, true);
    if (cond->kind == COND_true || cond->kind == COND_false) {
        Block *taken = cond->kind == COND_true ? then : otherwise;
        if (taken)
            lower_block(L, taken);
        return;
    }
    FragPtrVec frags = { 0 };
    frag_written(L, then, &frags);
    if (otherwise) {
        FragPtrVec more = { 0 };
        frag_written(L, otherwise, &more);
        for (size_t i = 0; i < more.len; i++) {
            bool known = false;
            for (size_t j = 0; j < frags.len; j++)
                known |= frags.data[j] == more.data[i];
            if (!known)
                VEC_PUSH(L->scratch, &frags, more.data[i]);
        }
    }
    unsigned n = (unsigned)frags.len;
    Op *op = lower_emit(L, OP_ctl_if, 1, n, otherwise || n ? 2 : 1);
    op->operands[0] = opnd_cond(cond);
    IfArm arms[2] = { { then, op->blocks[0], NULL },
                      { otherwise, NULL, NULL } };
    lower_arm(L, &arms[0], &frags);
    if (op->n_blocks == 1) {
        drop_if_idle(op);
        return;
    }
    arms[1].block = op->blocks[1];
    lower_arm(L, &arms[1], &frags);
    if (n == 0) {
        drop_if_idle(op);
        return;
    }
    bool *whole = ARENA_ARRAY(L->scratch, bool, n);
    for (unsigned i = 0; i < n; i++)
        whole[i] = arms[0].after[i].live != arms[1].after[i].live;
    yield_arm(L, &arms[0], &frags, whole);
    yield_arm(L, &arms[1], &frags, whole);
    for (unsigned i = 0; i < n; i++) {
        Frag *f = frags.data[i];
        merge_frag(f, &arms[0].after[i], &arms[1].after[i]);
        f->value = op_set_result(L->m, op, i, f->type, NULL);
    }
}

/* ---- loops --------------------------------------------------------------- */

typedef struct Indexing {
    VarId iter;
    bool found;
} Indexing;

static void find_register_index(Lower *L, Op *op, const OpAccess *a, void *user)
{
    (void)op;
    Indexing *ix = user;
    const Access *at = access_compose(L->m, a->access);
    if (!lower_in_registers(L, at->base))
        return;
    const ParAlloc *alloc = par_alloc(L->pi, at->base);
    for (unsigned i = alloc ? alloc->n_dist : 0; i < at->rank; i++)
        if (affine_uses(at->dims[i].lo, ix->iter))
            ix->found = true;
}

static bool must_unroll(Lower *L, Op *loop)
{
    Indexing ix = { loop->blocks[0]->args[0].var, false };
    role_walk_accesses(L, loop->blocks[0], find_register_index, &ix);
    return ix.found;
}

static bool asked_to_unroll(const Op *loop, int64_t trips)
{
    const Param *p = op_attr_param(loop, "pragma_unroll");
    return p && p->kind == PARAM_int && (p->i == 0 || p->i >= trips);
}

static void unroll(Lower *L, Op *loop, int64_t lo, int64_t hi)
{
    VarId v = loop->blocks[0]->args[0].var;
    size_t depth = L->iters.len;
    for (int64_t i = lo; i < hi && !L->failed; i++) {
        const Affine *at = affine_const(L->m->exprs, i);
        clone_map_index(L->map, v, at);
        VEC_PUSH(L->scratch, &L->iters, at);
        lower_block(L, loop->blocks[0]);
        L->iters.len = depth;
    }
}

/* What a loop carries, and where each stands. */
typedef struct Carried {
    FragPtrVec frags;
    const Cond **live_before;
    Flight *flight_before;
    VEC(RingCursor) rings; /* as the iterator is 0 */
    VEC(Value *) init;
} Carried;

/* A loop that begins at another value in each lane carries no ring: the lanes
 * would carry different positions. */
static void carry_into(Lower *L, Op *source, const Affine *lo, Carried *c)
{
    bool together = !affine_uses(lo, L->dev->lane);
    const Affine **from =
        ARENA_ARRAY(L->scratch, const Affine *, L->groups.len + 1);
    frag_written(L, source->blocks[0], &c->frags);
    c->live_before = ARENA_ARRAY(L->scratch, const Cond *, c->frags.len);
    c->flight_before = ARENA_ARRAY(L->scratch, Flight, c->frags.len);
    for (size_t i = 0; i < c->frags.len; i++) {
        c->live_before[i] = c->frags.data[i]->live;
        c->flight_before[i] = c->frags.data[i]->flight;
        VEC_PUSH(L->scratch, &c->init, frag_value(L, c->frags.data[i]));
    }
    ring_loop_groups(L, source, from);
    for (size_t g = 0; g < L->groups.len; g++) {
        if (!together || !from[g] || !L->groups.data[g].used)
            continue;
        const Affine *at = affine_add(L->m->exprs, lo, from[g]);
        RingCursor ring = { (unsigned)g, from[g], ring_at(L, (unsigned)g, at) };
        VEC_PUSH(L->scratch, &c->rings, ring);
        VEC_PUSH(L->scratch, &c->init, ring.ring);
    }
}

/* The body's view of what is carried: `first` tells whether an earlier
 * iteration ran. */
static void carry_enter(Lower *L, Op *source, Op *loop, const Carried *c,
                        const Affine *iter, const Affine *lo)
{
    ExprCtx *x = L->m->exprs;
    Block *b = loop->blocks[0];
    const Cond *later = cond_cmp(x, CMP_gt, iter, lo);
    for (size_t i = 0; i < c->frags.len; i++) {
        Frag *f = c->frags.data[i];
        f->value = block_add_value(L->m, b, f->type, NULL);
        f->live = cond_or(x, c->live_before[i], later);
        Flight end = flight_after(L, source->blocks[0], f->source, f->flight);
        f->flight = flight_either(f->flight, end);
    }
    for (size_t i = 0; i < c->rings.len; i++) {
        RingCursor cursor = c->rings.data[i];
        cursor.at = affine_add(x, iter, cursor.at);
        cursor.ring = block_add_value(L->m, b, cursor.ring->type, "ring");
        VEC_PUSH(L->scratch, &L->cursors, cursor);
    }
}

static void carry_yield(Lower *L, const Carried *c, const Affine *iter)
{
    unsigned n = (unsigned)c->init.len;
    Value **v = ARENA_ARRAY(L->scratch, Value *, n);
    for (size_t i = 0; i < c->frags.len; i++)
        v[i] = frag_force(L, c->frags.data[i]);
    const Affine *next = affine_add_const(L->m->exprs, iter, 1);
    for (size_t i = 0; i < c->rings.len; i++)
        v[c->frags.len + i] =
            ring_at(L, c->rings.data[i].group,
                    affine_add(L->m->exprs, next, c->rings.data[i].at));
    Op *yield = lower_emit(L, OP_ctl_yield, n, 0, 0);
    for (unsigned i = 0; i < n; i++)
        yield->operands[i] = opnd_value(v[i]);
}

static void carry_leave(Lower *L, Op *loop, const Carried *c, const Affine *lo,
                        const Affine *hi)
{
    ExprCtx *x = L->m->exprs;
    const Cond *ran = cond_cmp(x, CMP_gt, hi, lo);
    if (cond_holds(x, ran))
        ran = cond_bool(x, true);
    for (size_t i = 0; i < c->init.len; i++)
        op_set_result(L->m, loop, (unsigned)i, c->init.data[i]->type, NULL);
    for (size_t i = 0; i < c->frags.len; i++) {
        Frag *f = c->frags.data[i];
        f->value = loop->results[i];
        f->live = cond_or(x, c->live_before[i], ran);
        if (ran->kind != COND_true)
            f->flight = flight_either(f->flight, c->flight_before[i]);
        f->flight_block = NULL;
    }
}

static bool carried_unused(const Carried *c)
{
    return c->frags.len == 0;
}

/* What the back end is asked to unroll, it is asked of the lowered loop. */
static void keep_unroll(Lower *L, const Op *source, Op *loop)
{
    const Param *p = op_attr_param(source, "pragma_unroll");
    if (p)
        op_set_param(L->m, loop, "pragma_unroll", p);
}

static void emit_loop(Lower *L, Op *source, const Affine *lo, const Affine *hi)
{
    ExprCtx *x = L->m->exprs;
    Carried c = { 0 };
    carry_into(L, source, lo, &c);
    unsigned n = (unsigned)c.init.len;
    Op *loop = lower_emit(L, OP_ctl_for, 2 + n, n, 1);
    loop->operands[0] = opnd_index(lo);
    loop->operands[1] = opnd_index(hi);
    for (unsigned i = 0; i < n; i++)
        loop->operands[2 + i] = opnd_value(c.init.data[i]);
    VarId from = source->blocks[0]->args[0].var;
    keep_unroll(L, source, loop);
    Block *b = loop->blocks[0], *outer = L->out;
    VarId v = block_add_var(L->m, b, var_get(x, from)->name, VAR_iter);
    var_set_bounds(x, v, lo, hi);
    const Affine *iter = affine_var(x, v);
    clone_map_index(L->map, from, iter);
    size_t depth = L->iters.len, n_cursors = L->cursors.len;
    VEC_PUSH(L->scratch, &L->iters, iter);
    carry_enter(L, source, loop, &c, iter, lo);
    unsigned commits = L->commits;
    L->out = b;
    lower_block(L, source->blocks[0]);
    L->commits = commits;
    if (n)
        carry_yield(L, &c, iter);
    L->out = outer;
    L->iters.len = depth;
    L->cursors.len = n_cursors;
    carry_leave(L, loop, &c, lo, hi);
    if (carried_unused(&c) && only_pure(b))
        op_detach(loop);
}

static void lower_loop(Lower *L, Op *op)
{
    const Affine *lo = lower_index(L, op->operands[0].u.index);
    const Affine *hi = lower_index(L, op->operands[1].u.index);
    int64_t from, to;
    bool constant = affine_is_const(lo, &from) && affine_is_const(hi, &to);
    bool must = must_unroll(L, op);
    if (must && !constant) {
        Diag *d =
            lower_error(L, op->loc, "register-index",
                        "iterator '%s' indexes registers, but the "
                        "bounds of its loop are not constant",
                        var_get(L->m->exprs, op->blocks[0]->args[0].var)->name);
        diag_fix(L->ctx, d,
                 "give the loop constant bounds, so that it can "
                 "be unrolled");
        return;
    }
    if (constant && (must || asked_to_unroll(op, to - from))) {
        if (to - from > UNROLL_LIMIT)
            lower_error(L, op->loc, "register-index",
                        "unrolling this loop gives %lld copies; the limit is "
                        "%d",
                        (long long)(to - from), (int)UNROLL_LIMIT);
        else
            unroll(L, op, from, to);
        return;
    }
    emit_loop(L, op, lo, hi);
}

static void lower_thread_loop(Lower *L, Op *op)
{
    const Affine *iter = par_iter(L->pi, op);
    if (!iter) {
        lower_error(L, op->loc, "lowering", "this loop was not analysed");
        return;
    }
    clone_map_index(L->map, op->blocks[0]->args[0].var, iter);
    size_t depth = L->iters.len;
    VEC_PUSH(L->scratch, &L->iters, iter);
    lower_if(L, role_simplify(L, par_guard(L->pi, op)), op->blocks[0], NULL);
    L->iters.len = depth;
}

static void lower_for(Lower *L, Op *op)
{
    const char *mode = op_attr_str(op, "mode", "seq");
    if (!strcmp(mode, "threads"))
        lower_thread_loop(L, op);
    else if (!strcmp(mode, "seq"))
        lower_loop(L, op);
    else
        lower_error(L, op->loc, "lowering",
                    "unexpected loop mode %s in CUDA "
                    "code",
                    mode);
}

/* ---- assignments --------------------------------------------------------- */

static void lower_load(Lower *L, Op *op)
{
    if (lower_in_registers(L, op->operands[0].u.access->base)) {
        frag_load(L, op);
        return;
    }
    Access *a = lower_access(L, op->operands[0].u.access);
    Op *load = lower_emit(L, OP_mem_load, 1, 1, 0);
    load->operands[0] = opnd_access(a);
    clone_map_value(L->map, op->results[0],
                    op_set_result(L->m, load, 0, op->results[0]->type, NULL));
}

static void lower_store(Lower *L, Op *op)
{
    if (lower_in_registers(L, op->operands[0].u.access->base)) {
        frag_store(L, op);
        return;
    }
    Access *a = lower_access(L, op->operands[0].u.access);
    Op *store = lower_emit(L, op->code, op->n_operands, 0, 0);
    store->operands[0] = opnd_access(a);
    for (unsigned i = 1; i < op->n_operands; i++)
        store->operands[i] =
            opnd_value(clone_map_get(L->map, op->operands[i].u.value));
}

static void lower_pure(Lower *L, Op *op)
{
    Op *copy = op_clone(L->map, op);
    copy->origin.sid = 0;
    block_append(L->out, copy);
}

static void lower_alloc(Lower *L, Op *op)
{
    if (lower_in_registers(L, op->results[0]))
        frag_reset(L, op->results[0]);
}

static void lower_op(Lower *L, Op *op)
{
    switch (op->code) {
    case OP_ctl_for:
        lower_for(L, op);
        break;
    case OP_ctl_if:
        lower_if(L, lower_cond(L, op->operands[0].u.cond), op->blocks[0],
                 op->n_blocks > 1 ? op->blocks[1] : NULL);
        break;
    case OP_par_warps:
        lower_if(L, role_simplify(L, par_guard(L->pi, op)), op->blocks[0],
                 NULL);
        break;
    case OP_mem_alloc:
        lower_alloc(L, op);
        break;
    case OP_mem_window:
    case OP_ctl_pass:
        break;
    case OP_mem_load:
        lower_load(L, op);
        break;
    case OP_mem_store:
    case OP_mem_reduce:
        lower_store(L, op);
        break;
    case OP_par_fence:
        lower_fence(L, op);
        break;
    case OP_par_arrive:
        lower_arrive(L, op);
        break;
    case OP_par_await:
        lower_await(L, op);
        break;
    case OP_par_instr:
        lower_instr(L, op);
        break;
    case OP_ctl_call:
        lower_error(L, op->loc, "lowering",
                    "procedure '%s' is called from CUDA code; inline it first",
                    op_attr_str(op, "callee", ""));
        break;
    default:
        if (op_has(op, OPT_PURE))
            lower_pure(L, op);
        else
            lower_error(L, op->loc, "lowering",
                        "'%s.%s' cannot be used in CUDA code",
                        op_info(op->code)->dialect, op_info(op->code)->name);
    }
}

static void lower_block(Lower *L, Block *b)
{
    for (Op *op = b->first; op && !L->failed; op = op->next) {
        if (!role_executes(L, op))
            continue;
        Op *outer = L->stmt;
        const Op *at = L->fault.at;
        if (op->sid)
            L->stmt = op;
        L->fault.at = op;
        lower_op(L, op);
        L->stmt = outer;
        if (!L->failed)
            L->fault.at = at;
    }
}

void lower_role_body(Lower *L, Block *b)
{
    lower_block(L, b);
}
