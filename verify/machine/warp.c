/* A warp as a resumable walk over structured IR.
 *
 * Each block that the warp is in has a frame with the lanes that run it. Loops
 * and ifs push frames; a block's end asks its owner what comes next. Conditions
 * and bounds that differ between lanes narrow the mask, and the lanes meet
 * again at the end of the op, as structured code does on the hardware. */
#include "verify/machine/machine_internal.h"

#include "ir/eir_types.h"
#include "ir/task_order.h"

#include <stdlib.h>
#include <string.h>

/* ---- frames -------------------------------------------------------------- */

static Frame *push_frame(Warp *w, const Block *b, const Op *owner,
                         uint32_t mask, uint32_t entry)
{
    if (w->depth == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 16;
        w->frames = realloc(w->frames, w->cap * sizeof *w->frames);
        if (!w->frames)
            panic("push_frame: out of memory");
    }
    Frame *f = &w->frames[w->depth++];
    *f = (Frame){
        .block = b, .owner = owner, .at = b->first, .mask = mask, .entry = entry
    };
    return f;
}

static bool fail(Warp *w, const Op *op, const char *what)
{
    return machine_fail(w->machine, w, 0, op, "machine", "%s", what);
}

/* Moves yields to the owner's results or block arguments, as if at once. */
static bool move_yields(Warp *w, const Op *yield, Value *const *to, unsigned n,
                        uint32_t lanes, bool whole)
{
    Machine *mc = w->machine;
    double few[4][WARP_LANES], (*lane)[WARP_LANES] = few;
    WarpVal few_vals[4], *tmp = few_vals;
    if (n > 4) {
        lane = malloc(n * sizeof *lane);
        tmp = malloc(n * sizeof *tmp);
        if (!lane || !tmp)
            panic("move_yields: out of memory");
    }
    bool ok = true;
    for (unsigned i = 0; i < n; i++) {
        const Value *v = yield->operands[i].u.value;
        tmp[i] = w->vals[v->id];
        if (v->type->kind == TK_scalar)
            memcpy(lane[i], warp_lanes(w, v), sizeof *lane);
        if (tmp[i].frag)
            tmp[i].frag->refs++;
    }
    for (unsigned i = 0; i < n && ok; i++) {
        const Value *v = yield->operands[i].u.value;
        WarpVal *slot = &w->vals[v->id], saved = *slot;
        double *keep = slot->lanes;
        *slot = tmp[i];
        slot->lanes = v->type->kind == TK_scalar ? lane[i] : keep;
        /* the destination may be this very value: read through tmp */
        if (to[i] == v) {
            *slot = saved;
            if (v->type->kind == TK_scalar)
                FOR_LANES(l, lanes) keep[l] = lane[i][l];
            continue;
        }
        ok = warp_move(w, v, to[i], lanes, whole);
        *slot = saved;
    }
    for (unsigned i = 0; i < n; i++)
        frag_drop(mc, tmp[i].frag);
    if (tmp != few_vals) {
        free(tmp);
        free(lane);
    }
    return ok || fail(w, yield,
                      "carries a ring at different positions in "
                      "different lanes");
}

static Value *const *block_values(const Block *b, unsigned first, unsigned n,
                                  Value **out)
{
    for (unsigned i = 0; i < n; i++)
        out[i] = b->args[first + i].value;
    return out;
}

/* yields of f's block into the block's own arguments from `first` on. */
static bool carry(Warp *w, const Frame *f, unsigned first, uint32_t lanes)
{
    unsigned n = f->owner->n_results;
    const Op *y = f->block->last;
    if (!n)
        return true;
    if (!y || y->code != OP_ctl_yield || y->n_operands != n)
        return fail(w, f->owner,
                    "the body must end in a ctl.yield of the "
                    "values that the op carries");
    Value *few[8], **to = n <= 8 ? few : malloc(n * sizeof *to);
    if (!to)
        panic("carry: out of memory");
    bool ok = move_yields(w, y, block_values(f->block, first, n, to), n, lanes,
                          lanes == f->entry);
    if (to != few)
        free(to);
    return ok;
}

/* Initial values into block arguments, or arguments into results. */
static bool move_list(Warp *w, const Op *op, unsigned first_operand,
                      unsigned first_arg, uint32_t mask, bool to_results)
{
    const Block *b = op->blocks[0];
    for (unsigned i = 0; i < op->n_results; i++) {
        const Value *arg = b->args[first_arg + i].value;
        const Value *init = op->operands[first_operand + i].u.value;
        if (!(to_results ? warp_move(w, arg, op->results[i], mask, true)
                         : warp_move(w, init, arg, mask, true)))
            return fail(w, op, "carries a value that a loop cannot carry");
    }
    return true;
}

/* ---- loops --------------------------------------------------------------- */

static int64_t *lane_var(Warp *w, VarId v)
{
    if (!w->lane_vars[v])
        w->lane_vars[v] = ARENA_ARRAY(w->machine->arena, int64_t, WARP_LANES);
    return w->lane_vars[v];
}

/* Starts the next iteration of a ctl.for; false when there is none. */
static bool for_next(Warp *w, Frame *f)
{
    VarId v = f->block->args[0].var;
    if (!f->lane_lo) {
        w->vars[v] = f->i;
        return f->i < f->hi;
    }
    uint32_t mask = 0;
    int64_t *x = lane_var(w, v);
    FOR_LANES(l, f->entry)
    {
        x[l] = f->lane_lo[l] + f->i;
        if (x[l] < f->lane_hi[l])
            mask |= 1u << l;
    }
    f->mask = mask;
    return mask != 0;
}

static bool for_bounds(Warp *w, const Op *op, Frame *f)
{
    const Affine *lo = op->operands[0].u.index, *hi = op->operands[1].u.index;
    unsigned first = (unsigned)__builtin_ctz(f->mask);
    const Kernel *k = w->machine->k;
    if (!kernel_varies(k, lo) && !kernel_varies(k, hi))
        return warp_index(w, op, lo, first, &f->i) &&
               warp_index(w, op, hi, first, &f->hi);
    f->lane_lo = ARENA_ARRAY(w->machine->arena, int64_t, WARP_LANES);
    f->lane_hi = ARENA_ARRAY(w->machine->arena, int64_t, WARP_LANES);
    FOR_LANES(l, f->mask)
    if (!warp_index(w, op, lo, l, &f->lane_lo[l]) ||
        !warp_index(w, op, hi, l, &f->lane_hi[l]))
        return false;
    return true;
}

static Step enter_for(Warp *w, const Op *op, uint32_t mask)
{
    Frame start = { .mask = mask };
    if (!for_bounds(w, op, &start) || !move_list(w, op, 2, 1, mask, false))
        return STEP_failed;
    Frame *f = push_frame(w, op->blocks[0], op, mask, mask);
    f->i = start.i;
    f->hi = start.hi;
    f->lane_lo = start.lane_lo;
    f->lane_hi = start.lane_hi;
    if (for_next(w, f))
        return STEP_pushed;
    w->depth--;
    return move_list(w, op, 2, 1, mask, true) ? STEP_next : STEP_failed;
}

static bool end_for(Warp *w, Frame *f)
{
    if (!carry(w, f, 1, f->mask))
        return false;
    f->i++;
    f->at = f->block->first;
    if (for_next(w, f))
        return true;
    const Op *op = f->owner;
    uint32_t entry = f->entry;
    w->depth--;
    return move_list(w, op, 2, 1, entry, true);
}

/* Puts task number f->i into the task variables; false past the last. */
static bool tasks_next(Warp *w, Frame *f)
{
    unsigned rank = (unsigned)op_attr_int(f->owner, "rank", 0);
    int64_t lo[MAX_TASK_LOOPS], extent[MAX_TASK_LOOPS], at[MAX_TASK_LOOPS];
    const Operand *bounds = f->owner->operands;
    if (f->i >= f->hi)
        return false;
    for (unsigned d = 0; d < rank; d++) {
        warp_index(w, f->owner, bounds[2 * d].u.index, 0, &lo[d]);
        warp_index(w, f->owner, bounds[2 * d + 1].u.index, 0, &extent[d]);
        extent[d] -= lo[d];
    }
    task_order_at(rank, extent, op_attr_int(f->owner, "group", 0), f->i, at);
    for (unsigned d = 0; d < rank; d++)
        w->vars[f->block->args[d].var] = lo[d] + at[d];
    if (eir_loop_vars(f->owner) > rank)
        w->vars[f->block->args[rank].var] =
            (f->i - w->cluster->index) / f->step;
    return true;
}

static Step enter_tasks(Warp *w, const Op *op, uint32_t mask)
{
    unsigned rank = (unsigned)op_attr_int(op, "rank", 0);
    int64_t total = 1;
    unsigned n_vars = eir_loop_vars(op);
    if (op->n_operands < 2 * rank || op->blocks[0]->n_args < n_vars) {
        fail(w, op, "two bounds for each task variable are needed");
        return STEP_failed;
    }
    for (unsigned d = 0; d < rank; d++) {
        int64_t lo, hi;
        if (!warp_index(w, op, op->operands[2 * d].u.index, 0, &lo) ||
            !warp_index(w, op, op->operands[2 * d + 1].u.index, 0, &hi))
            return STEP_failed;
        if (__builtin_mul_overflow(total, hi > lo ? hi - lo : 0, &total)) {
            fail(w, op, "more tasks than 64 bits can count");
            return STEP_failed;
        }
    }
    if (!move_list(w, op, 2 * rank, n_vars, mask, false))
        return STEP_failed;
    Frame *f = push_frame(w, op->blocks[0], op, mask, mask);
    f->i = w->cluster->index;
    f->step = w->machine->n_clusters;
    f->hi = total;
    if (op_attr_int(op, "once", 0) && total > f->step)
        f->hi = f->step;
    if (tasks_next(w, f))
        return STEP_pushed;
    w->depth--;
    return move_list(w, op, 2 * rank, n_vars, mask, true) ? STEP_next
                                                          : STEP_failed;
}

static bool end_tasks(Warp *w, Frame *f)
{
    unsigned n_vars = eir_loop_vars(f->owner);
    if (!carry(w, f, n_vars, f->mask))
        return false;
    f->i += f->step;
    f->at = f->block->first;
    if (tasks_next(w, f))
        return true;
    const Op *op = f->owner;
    uint32_t entry = f->entry;
    w->depth--;
    return move_list(w, op, eir_first_carried(op), n_vars, entry, true);
}

/* ---- if, role, elect ----------------------------------------------------- */

static Step enter_if(Warp *w, const Op *op, uint32_t mask)
{
    const Cond *c = op->operands[0].u.cond;
    uint32_t yes = 0;
    bool b = false;
    if (!cond_varies(w->machine->k, c)) {
        if (!warp_cond(w, op, c, (unsigned)__builtin_ctz(mask), &b))
            return STEP_failed;
        yes = b ? mask : 0;
    } else {
        FOR_LANES(l, mask)
        {
            if (!warp_cond(w, op, c, l, &b))
                return STEP_failed;
            yes |= (uint32_t)b << l;
        }
    }
    uint32_t no = op->n_blocks > 1 ? mask & ~yes : 0;
    if (!yes && !no)
        return STEP_next;
    Frame *f = push_frame(w, op->blocks[yes ? 0 : 1], op, yes ? yes : no, mask);
    f->other = yes ? no : 0;
    return STEP_pushed;
}

static bool end_if(Warp *w, Frame *f)
{
    const Op *op = f->owner, *y = f->block->last;
    if (op->n_results) {
        if (!y || y->code != OP_ctl_yield || y->n_operands != op->n_results)
            return fail(w, op,
                        "both blocks must end in a ctl.yield of the "
                        "results");
        if (!move_yields(w, y, op->results, op->n_results, f->mask, !f->merged))
            return false;
    }
    if (!f->other) {
        w->depth--;
        return true;
    }
    f->block = op->blocks[1];
    f->at = f->block->first;
    f->mask = f->other;
    f->other = 0;
    f->merged = true;
    return true;
}

static Step enter_role(Warp *w, const Op *op, uint32_t mask)
{
    int64_t lo = op_attr_int(op, "lo", 0), hi = op_attr_int(op, "hi", 0);
    if ((int64_t)w->index < lo || (int64_t)w->index >= hi)
        return STEP_next;
    w->role = op_attr_str(op, "name", "");
    MachineEvent e = { .kind = MEV_role,
                       .op = op,
                       .why = w->role,
                       .agent = warp_agent(w, AGENT_warp, mask) };
    machine_emit(w->machine, &e);
    push_frame(w, op->blocks[0], op, mask, mask);
    return STEP_pushed;
}

/* The same lane each time, of which no more is known: the highest, which what
 * picks lanes by their number seldom means, or one by the seed. */
static Step enter_elect(Warp *w, const Op *op, uint32_t mask)
{
    const MachineOptions *o = w->machine->options;
    unsigned from = o->canonical ? 31 : (unsigned)(o->seed % 32);
    uint32_t there = mask >> from ? mask >> from << from : mask;
    push_frame(w, op->blocks[0], op, there & -there, mask);
    return STEP_pushed;
}

static bool end_block(Warp *w)
{
    Frame *f = &w->frames[w->depth - 1];
    switch (f->owner->code) {
    case OP_ctl_for:
        return end_for(w, f);
    case OP_async_tasks:
        return end_tasks(w, f);
    case OP_ctl_if:
        return end_if(w, f);
    default:
        w->depth--;
        return true;
    }
}

/* ---- ops ----------------------------------------------------------------- */

static Step exec_other(Warp *w, const Op *op, uint32_t mask)
{
    const char *dialect = op_info(op->code)->dialect;
    if (!strcmp(dialect, "arith"))
        return exec_memory(w, op, mask);
    if (!strcmp(dialect, "async"))
        return exec_sync(w, op, mask);
    fail(w, op, "is not an op of the async level");
    return STEP_failed;
}

static Step exec(Warp *w, const Op *op, uint32_t mask)
{
    if (op_has(op, OPT_COLLECTIVE) && mask != ALL_LANES) {
        machine_fail(w->machine, w, mask, op, "machine",
                     "all 32 lanes of the warp must take part, but some do "
                     "not come here");
        return STEP_failed;
    }
    switch (op->code) {
    case OP_ctl_for:
        return enter_for(w, op, mask);
    case OP_ctl_if:
        return enter_if(w, op, mask);
    case OP_ctl_pass:
    case OP_ctl_yield:
        return STEP_next;
    case OP_async_tasks:
        return enter_tasks(w, op, mask);
    case OP_async_role:
        return enter_role(w, op, mask);
    case OP_async_elect:
        return enter_elect(w, op, mask);
    case OP_mem_load:
    case OP_mem_store:
    case OP_mem_reduce:
    case OP_mem_alloc:
    case OP_mem_window:
    case OP_async_frag_undef:
    case OP_async_frag_zero:
    case OP_async_frag_extract:
    case OP_async_frag_insert:
    case OP_async_shfl_sync:
    case OP_async_tile_store:
    case OP_async_cluster_load:
        return exec_memory(w, op, mask);
    case OP_async_bulk_tensor_load:
    case OP_async_bulk_copy:
    case OP_async_bulk_tensor_store:
    case OP_async_bulk_tensor_reduce:
        return exec_copy(w, op, mask);
    case OP_async_wgmma_fence:
    case OP_async_wgmma_mma_async:
    case OP_async_wgmma_commit_group:
    case OP_async_wgmma_wait_group:
        return exec_wgmma(w, op, mask);
    case OP_async_instr:
        return exec_instr(w, op, mask);
    default:
        return exec_other(w, op, mask);
    }
}

/* Whether another agent could tell that the warp passed this op. */
static bool is_visible(const Op *op)
{
    return op_has(op, OPT_SYNC) || op->code == OP_mem_store ||
           op->code == OP_mem_load || op->code == OP_mem_reduce ||
           op->code == OP_async_tile_store || op->code == OP_async_cluster_load;
}

static void wake(Warp *w)
{
    if (!w->wait.kind)
        return;
    MachineEvent e = { .kind = MEV_wake,
                       .op = w->wait.op,
                       .agent = warp_agent(w, AGENT_warp, w->wait.lanes) };
    w->wait.kind = WAIT_none;
    machine_emit(w->machine, &e);
}

static void finish(Warp *w)
{
    MachineEvent e = { .kind = MEV_exit,
                       .op = w->machine->k->op,
                       .agent = warp_agent(w, AGENT_warp, ALL_LANES) };
    w->done = true;
    w->cluster->live--;
    w->cta->live--;
    machine_emit(w->machine, &e);
}

/* Barriers of threads tell their own steps, with what they know more. */
static void emit_step(Warp *w, const Op *op, uint32_t mask)
{
    if (op->code == OP_async_barrier_cta_sync ||
        op->code == OP_async_barrier_cta_arrive ||
        op->code == OP_async_barrier_cluster_arrive ||
        op->code == OP_async_barrier_cluster_wait)
        return;
    MachineEvent e = { .kind = MEV_step,
                       .op = op,
                       .agent = warp_agent(w, AGENT_warp, mask) };
    machine_emit(w->machine, &e);
}

bool machine_eval(const MachineEvent *ev, const Affine *e, unsigned lane,
                  int64_t *out)
{
    return warp_index(ev->warp, ev->op, e, lane, out);
}

bool machine_varies(const MachineEvent *ev, const Affine *e)
{
    const Warp *w = ev->warp;
    return kernel_varies(w->machine->k, e);
}

static void emit_op(Warp *w, MachineEventKind kind, const Op *op, uint32_t mask)
{
    if (!(w->machine->wants >> kind & 1))
        return;
    MachineEvent e = { .kind = kind,
                       .op = op,
                       .warp = w,
                       .agent = warp_agent(w, AGENT_warp, mask) };
    machine_emit(w->machine, &e);
}

bool warp_run(Warp *w, unsigned long budget)
{
    wake(w);
    while (w->depth) {
        Frame *f = &w->frames[w->depth - 1];
        const Op *op = f->at;
        if (!op) {
            if (!end_block(w))
                return false;
            continue;
        }
        f->at = op->next;
        unsigned depth = w->depth;
        uint32_t mask = f->mask;
        if (!machine_spend(w->machine, 1))
            return false;
        emit_op(w, MEV_come, op, mask);
        Step s = exec(w, op, mask);
        if (s == STEP_failed || w->machine->failed)
            return false;
        if (s == STEP_blocked) {
            w->frames[depth - 1].at = op;
            w->wait.op = op;
            w->wait.since = w->machine->time;
            MachineEvent e = { .kind = MEV_wait,
                               .op = op,
                               .agent = warp_agent(w, AGENT_warp, mask) };
            machine_emit(w->machine, &e);
            return true;
        }
        if (s == STEP_next && op_has(op, OPT_SYNC))
            emit_step(w, op, mask);
        if (s == STEP_next && op->origin.sid)
            emit_op(w, MEV_op, op, mask);
        if (is_visible(op) && --budget == 0)
            return true;
    }
    finish(w);
    return true;
}

void warp_start(Warp *w)
{
    const Kernel *k = w->machine->k;
    push_frame(w, k->block, k->op, ALL_LANES, ALL_LANES);
    int64_t *lane = lane_var(w, k->lane);
    for (unsigned l = 0; l < WARP_LANES; l++)
        lane[l] = l;
    w->vars[k->cta] = w->cta->rank;
    w->vars[k->warp] = w->index;
}
