/* The first copies start before the CTA meets.
 *
 * A warp that keeps a ring filled can do nothing before the mbarriers are
 * initialised, the threads have met and its registers are given back; a short
 * kernel spends a fifth of its time on the way there. But the first round of a
 * ring waits for nobody, so that the thread which initialises the mbarriers may
 * begin it as soon as they are:
 *
 *   if w == 0 { elect {
 *     initialise
 *     tasks once { for k in [0, steps) { if k < n { wait, copy, arrive } } }
 *   } }
 *   meet
 *   tasks round r { for k in [0, n) { if steps * r + k >= steps { .. } } }
 *
 * with `steps` the places of the ring. That is done for the first loop which a
 * warp comes to in a task, if one lane executes it, and it does nothing but
 * await places that count as free in the first round, copy into them within the
 * CTA and arrive. The waits are kept: they see that the places are free. */
#include "passes/lower/lower.h"

#include <string.h>

/* The loop found, and around it the tasks. */
typedef struct Early {
    Lower *L;
    Op *tasks, *loop;
    int64_t warp, steps;
} Early;

/* ---- what may start early ------------------------------------------------ */

/* The ring of the loop's that the access stands in, or NULL; its depth limits
 * the steps, `ahead` is how far behind the loop's position it stands. */
static const Value *ring_of(Early *e, const Access *a, int64_t *ahead)
{
    const Value *ring = NULL;
    for (unsigned d = 0; d < a->rank; d++) {
        const AccessDim *dim = &a->dims[d];
        if (dim->kind != DIM_ring)
            continue;
        if (ring || dim->ring->owner != e->loop->blocks[0])
            return NULL;
        ring = dim->ring;
        *ahead = -dim->delta;
        if (ring->type->n < e->steps)
            e->steps = ring->type->n;
    }
    return ring;
}

static bool at_place(Early *e, const Access *a)
{
    int64_t ahead;
    return ring_of(e, a, &ahead) && ahead == 0;
}

/* A place of another round than the first is asked for by the first steps. */
static bool awaits_free(Early *e, const Access *a)
{
    int64_t ahead;
    if (!ring_of(e, a, &ahead) || ahead <= 0)
        return false;
    if (ahead < e->steps)
        e->steps = ahead;
    return true;
}

static bool is_kept(const Op *op)
{
    return op->code == OP_async_ring_advance || op->code == OP_ctl_yield;
}

/* Ops of a step; a wait among them, or nothing says that a place is free. */
static bool step_fits(Early *e, bool *waits)
{
    *waits = false;
    for (const Op *op = e->loop->blocks[0]->first; op; op = op->next) {
        if (is_kept(op))
            continue;
        if (op_attr(op, "cta_xor"))
            return false;
        switch (op->code) {
        case OP_async_mbarrier_wait:
            if (!awaits_free(e, op->operands[0].u.access))
                return false;
            *waits = true;
            break;
        case OP_async_mbarrier_expect_tx:
        case OP_async_mbarrier_arrive:
        case OP_async_bulk_tensor_load:
            if (!at_place(e, op->operands[0].u.access))
                return false;
            break;
        default:
            return false;
        }
    }
    return true;
}

/* The ring that a task begins with, number i of the loop's: its place among the
 * tasks' arguments, or -1. It must begin at position 0. */
static int task_ring(const Early *e, unsigned i)
{
    const Value *init = e->loop->operands[2 + i].u.value;
    const Op *tasks = e->tasks;
    unsigned n = (unsigned)op_attr_int(tasks, "rank", 0);
    if (init->owner != tasks->blocks[0])
        return -1;
    const Op *def = tasks->operands[n + init->index].u.value->def;
    bool at_start = def && def->code == OP_async_ring_init &&
                    op_attr_int(def, "position", 1) == 0;
    return at_start ? (int)init->index : -1;
}

static bool loop_fits(Early *e)
{
    int64_t lo;
    bool waits;
    const Block *b = e->loop->blocks[0];
    e->steps = INT64_MAX;
    if (!affine_is_const(e->loop->operands[0].u.index, &lo) || lo ||
        !step_fits(e, &waits) || !waits)
        return false;
    for (unsigned i = 0; i + 1 < b->n_args; i++)
        if (b->args[i + 1].value->type->kind != TK_ring || task_ring(e, i) < 0)
            return false;
    return true;
}

/* The warp of the role that alone meets the condition, or -1. */
static int64_t only_warp(const Lower *L, const Cond *c)
{
    int64_t found = -1;
    for (int64_t w = L->role->lo; w < L->role->hi; w++) {
        const Affine *to = affine_const(L->m->exprs, w);
        Subst s = { .n = 1, .var = &L->dev->warp, .to = &to };
        const Cond *at = cond_subst(L->m->exprs, c, &s);
        if (at->kind == COND_false)
            continue;
        if (at->kind != COND_true || found >= 0)
            return -1;
        found = w;
    }
    return found;
}

/* Goes through guards to the loop of one lane that a task begins with. */
static bool find_loop(Early *e, Op *op)
{
    bool elected = false;
    e->warp = e->L->role->hi - e->L->role->lo == 1 ? e->L->role->lo : -1;
    for (; op; op = op->blocks[0]->first) {
        if (op->code == OP_ctl_for) {
            e->loop = op;
            return elected && e->warp >= 0 && loop_fits(e);
        }
        if (op->code == OP_ctl_if && op->n_blocks == 1 && e->warp < 0 &&
            (e->warp = only_warp(e->L, op->operands[0].u.cond)) >= 0)
            continue;
        if (op->code == OP_async_elect)
            elected = true;
        else
            return false;
    }
    return false;
}

typedef struct MapUse {
    const Value *map;
    bool found;
} MapUse;

static bool find_map(Op *op, void *user)
{
    MapUse *use = user;
    if (op->code == OP_async_bulk_tensor_load)
        use->found |= op->operands[1].u.access->base == use->map;
    return !use->found;
}

static bool reads_map(const Op *loop, const Value *map)
{
    MapUse use = { map, false };
    op_walk((Op *)loop, find_map, &use);
    return use.found;
}

/* ---- the copies ---------------------------------------------------------- */

/* Puts what the loop's steps do under a condition. */
static void guard_steps(Lower *L, Op *loop, const Cond *c)
{
    Op *first = loop->blocks[0]->first;
    Op *guard = op_new(L->m, OP_ctl_if, loop->loc, 1, 0, 1);
    guard->operands[0] = opnd_cond(c);
    op_insert_before(first, guard);
    for (Op *op = first, *next; op; op = next) {
        next = op->next;
        if (is_kept(op))
            continue;
        op_detach(op);
        block_append(guard->blocks[0], op);
    }
}

/* `tasks once` over the same tasks; its block becomes L->out. */
static void emit_first_task(Early *e, CloneMap *cm)
{
    Lower *L = e->L;
    ExprCtx *x = L->m->exprs;
    const Op *from = e->tasks;
    unsigned n = (unsigned)op_attr_int(from, "rank", 0);
    Op *tasks = lower_emit(L, OP_async_tasks, 2 * n, 0, 1);
    op_set_int(L->m, tasks, "rank", n);
    if (op_attr(from, "group"))
        op_set_int(L->m, tasks, "group", op_attr_int(from, "group", 1));
    op_set_bool(L->m, tasks, "once", true);
    for (unsigned i = 0; i < n; i++) {
        VarId was = from->blocks[0]->args[i].var;
        VarId v = block_add_var(L->m, tasks->blocks[0], var_get(x, was)->name,
                                VAR_iter);
        tasks->operands[2 * i] = from->operands[2 * i];
        tasks->operands[2 * i + 1] = from->operands[2 * i + 1];
        var_set_bounds(x, v, from->operands[2 * i].u.index,
                       from->operands[2 * i + 1].u.index);
        clone_map_index(cm, was, affine_var(x, v));
    }
    L->out = tasks->blocks[0];
}

/* The loop's first steps, as many as there are. */
static void emit_steps(Early *e, CloneMap *cm)
{
    Lower *L = e->L;
    ExprCtx *x = L->m->exprs;
    int64_t n, steps = e->steps + LOWER_WRONG(L, "early-too-many");
    const Block *old = e->loop->blocks[0];
    for (unsigned i = 1; i < old->n_args; i++) {
        Op *op = lower_emit(L, OP_async_ring_init, 0, 1, 0);
        op_set_int(L->m, op, "position", 0);
        clone_map_value(
            cm, e->loop->operands[1 + i].u.value,
            op_set_result(L->m, op, 0, old->args[i].value->type, "ring"));
    }
    Op *loop = op_clone(cm, e->loop);
    block_append(L->out, loop);
    const Affine *trips = loop->operands[1].u.index;
    bool constant = affine_is_const(trips, &n);
    if (constant && n <= steps)
        return;
    VarId k = loop->blocks[0]->args[0].var;
    loop->operands[1] = opnd_index(affine_const(x, steps));
    var_set_bounds(x, k, affine_const(x, 0), affine_const(x, steps));
    if (!constant)
        guard_steps(L, loop, cond_cmp(x, CMP_lt, affine_var(x, k), trips));
}

/* ---- what is left for the warp ------------------------------------------- */

/* The variable that counts a cluster's tasks, behind those of the task. */
static const Affine *count_rounds(Early *e)
{
    Lower *L = e->L;
    Block *b = e->tasks->blocks[0];
    unsigned n = (unsigned)op_attr_int(e->tasks, "rank", 0);
    VarId r = block_add_var(L->m, b, "round", VAR_iter);
    var_set_bounds(L->m->exprs, r, affine_const(L->m->exprs, 0), NULL);
    BlockArg arg = b->args[b->n_args - 1];
    memmove(b->args + n + 1, b->args + n,
            (b->n_args - 1 - n) * sizeof *b->args);
    b->args[n] = arg;
    for (unsigned i = n + 1; i < b->n_args; i++)
        b->args[i].value->index = i;
    op_set_bool(L->m, e->tasks, "rounds", true);
    return affine_var(L->m->exprs, r);
}

/* Each step but those that were early. */
static void skip_steps(Early *e)
{
    ExprCtx *x = e->L->m->exprs;
    const Affine *k = affine_var(x, e->loop->blocks[0]->args[0].var);
    const Affine *at =
        affine_add(x, affine_scale(x, count_rounds(e), e->steps), k);
    if (!LOWER_WRONG(e->L, "early-twice"))
        guard_steps(e->L, e->loop,
                    cond_cmp(x, CMP_ge, at, affine_const(x, e->steps)));
}

/* Maps that are copied through at once need no prefetch, others can wait. */
static void move_prefetches(Lower *L, const Op *loop)
{
    for (Op *once = L->kernel->blocks[0]->first, *next; once; once = next) {
        next = once->next;
        Op *op = once->code == OP_ctl_if ? once->blocks[0]->first : NULL;
        if (!op || op->code != OP_async_prefetch_tensormap)
            continue;
        for (Op *after; op; op = after) {
            after = op->next;
            op_detach(op);
            if (!reads_map(loop, op->operands[0].u.value))
                block_append(L->out, op);
        }
        op_detach(once);
    }
}

/* The lane that copies initialises too: an elected one of the loop's warp, as
 * copies of a lane that is picked by its number are issued lane by lane. */
static Block *elect_setup(Early *e)
{
    Lower *L = e->L;
    ExprCtx *x = L->m->exprs;
    Op *first = L->setup->blocks[0]->first;
    Op *elect = op_new(L->m, OP_async_elect, L->setup->loc, 0, 0, 1);
    L->setup->operands[0] = opnd_cond(cond_cmp(
        x, CMP_eq, affine_var(x, L->dev->warp), affine_const(x, e->warp)));
    op_insert_before(first, elect);
    for (Op *op = first, *next; op; op = next) {
        next = op->next;
        op_detach(op);
        block_append(elect->blocks[0], op);
    }
    return elect->blocks[0];
}

static void start_early(Early *e)
{
    Lower *L = e->L;
    Block *outer = L->out;
    CloneMap *cm = clone_map_new(L->m, L->m);
    L->stmt = NULL;
    L->out = elect_setup(e);
    if (L->dev->dependent_launch && !LOWER_WRONG(L, "no-grid-wait") &&
        !LOWER_WRONG(L, "late-grid-wait"))
        lower_emit(L, OP_async_griddepcontrol_wait, 0, 0, 0);
    emit_first_task(e, cm);
    emit_steps(e, cm);
    skip_steps(e);
    move_prefetches(L, e->loop);
    L->out = outer;
}

void lower_early(Lower *L, Op *tasks)
{
    Early e = { .L = L, .tasks = tasks };
    if (!L->setup || L->ctas_signal || !find_loop(&e, tasks->blocks[0]->first))
        return;
    start_early(&e);
    L->setup = NULL;
}
