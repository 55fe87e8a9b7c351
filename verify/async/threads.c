/* Conditions on cta, warp and lane are evaluated on the one side, constants
 * propagated from them on the other (ptx_run). */
#include "verify/async/threads.h"

#include "ir/limits.h"

#include <string.h>

static bool coord_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Coords *c = env->user;
    for (unsigned i = 0; atom->kind == ATOM_var && i < ABI_N_COORDS; i++)
        if (atom->var == c->var[i]) {
            *out = c->value[i];
            return true;
        }
    return false;
}

static Truth truth_of(const Cond *c, Coords *at)
{
    Env env = { coord_value, at };
    Truth lhs, rhs;
    int64_t v;
    switch (c->kind) {
    case COND_false:
    case COND_true:
        return c->kind == COND_true ? TRUTH_yes : TRUTH_no;
    case COND_ge0:
    case COND_eq0:
        if (!affine_eval(c->expr, &env, &v))
            return TRUTH_open;
        return (c->kind == COND_ge0 ? v >= 0 : v == 0) ? TRUTH_yes : TRUTH_no;
    case COND_not:
        lhs = truth_of(c->lhs, at);
        return lhs == TRUTH_open ? lhs : lhs == TRUTH_no ? TRUTH_yes : TRUTH_no;
    case COND_and:
    case COND_or:
        break;
    }
    Truth decides = c->kind == COND_and ? TRUTH_no : TRUTH_yes;
    lhs = truth_of(c->lhs, at);
    rhs = truth_of(c->rhs, at);
    if (lhs == decides || rhs == decides)
        return decides;
    return lhs == TRUTH_open ? lhs : rhs;
}

Truth thread_enters(const Op *op, Coords *at)
{
    if (op->code == OP_ctl_if)
        return truth_of(op->operands[0].u.cond, at);
    if (op->code == OP_async_elect)
        return at->value[2] == 0 ? TRUTH_yes : TRUTH_no;
    int64_t lo = op_attr_int(op, "lo", 0), hi = op_attr_int(op, "hi", 0);
    return at->value[1] >= lo && at->value[1] < hi ? TRUTH_yes : TRUTH_no;
}

static const char *role_of(const Op *kernel, int64_t warp)
{
    for (const Op *op = kernel->blocks[0]->first; op; op = op->next)
        if (op->code == OP_async_role && warp >= op_attr_int(op, "lo", 0) &&
            warp < op_attr_int(op, "hi", 0))
            return op_attr_str(op, "name", "");
    return NULL;
}

const char *thread_text(Arena *a, const Op *kernel, const Coords *at)
{
    const char *role = role_of(kernel, at->value[1]);
    return arena_printf(a, "thread: cta = %lld, warp = %lld%s%s%s, lane = %lld",
                        (long long)at->value[0], (long long)at->value[1],
                        role ? " (role '" : "", role ? role : "",
                        role ? "')" : "", (long long)at->value[2]);
}

/* ---- all threads --------------------------------------------------------- */

/* A thread by what it decides on both sides. */
typedef struct Kind {
    const uint8_t *truths, *can;
} Kind;

typedef struct BranchOps {
    Arena *a;
    VEC(const Op *) ops;
} BranchOps;

static bool find_branch(Op *op, void *user)
{
    BranchOps *b = user;
    if (op->code == OP_ctl_if || op->code == OP_async_role ||
        op->code == OP_async_elect)
        VEC_PUSH(b->a, &b->ops, op);
    return true;
}

static bool is_known(const Kind *kinds, size_t n, const Kind *k, size_t truths,
                     size_t instrs)
{
    for (size_t i = 0; i < n; i++)
        if (!memcmp(kinds[i].truths, k->truths, truths) &&
            !memcmp(kinds[i].can, k->can, instrs))
            return true;
    return false;
}

bool threads_visit(Arena *a, const Op *kernel, const PtxKernel *ptx,
                   ThreadFn *fn, void *user)
{
    const Block *body = kernel->blocks[0];
    PtxThread t = { .block_dim = op_attr_int(kernel, "blockDim", 0),
                    .cluster_dim = op_attr_int(kernel, "clusterDim", 1) };
    if (t.block_dim < 1 || t.block_dim > THREADS_A_CTA || t.cluster_dim < 1 ||
        t.cluster_dim > CTAS_A_CLUSTER || body->n_args < ABI_N_COORDS)
        return false;
    Coords at;
    BranchOps b = { .a = a };
    VEC(Kind) kinds = { 0 };
    for (unsigned i = 0; i < ABI_N_COORDS; i++)
        at.var[i] = body->args[body->n_args - ABI_N_COORDS + i].var;
    op_walk((Op *)(uintptr_t)kernel, find_branch, &b);
    PtxPlan *plan = ptx_plan(a, ptx);
    uint8_t *truths = ARENA_ARRAY(a, uint8_t, b.ops.len + 1);
    uint8_t *can = ARENA_ARRAY(a, uint8_t, ptx->n_instrs + 1);
    int64_t n = t.block_dim * t.cluster_dim;
    for (int64_t i = 0; i < n; i++) {
        t.cta = at.value[0] = i / t.block_dim;
        t.warp = at.value[1] = i % t.block_dim / 32;
        t.lane = at.value[2] = i % 32;
        bool sure = ptx_run(plan, &t, can);
        for (size_t j = 0; j < b.ops.len; j++)
            truths[j] = (uint8_t)thread_enters(b.ops.data[j], &at);
        Kind kind = { truths, can };
        if (is_known(kinds.data, kinds.len, &kind, b.ops.len, ptx->n_instrs))
            continue;
        kind.truths = arena_memdup(a, truths, b.ops.len + 1);
        kind.can = arena_memdup(a, can, ptx->n_instrs + 1);
        VEC_PUSH(a, &kinds, kind);
        if (!fn(user, &at, kind.can, sure))
            break;
    }
    return true;
}
