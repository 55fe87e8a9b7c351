/* In a run each lane's wait is noted; copies are held against it where they are
 * started, ordinary accesses where they happen. In the PTX the instructions are
 * marked that control reaches from the entry without passing an unguarded
 * griddepcontrol.wait. */
#include "verify/async/dependent.h"

#include "ir/lib.h"

#include <string.h>

bool dependent_launch(const Op *kernel)
{
    return op_attr_int(kernel, "programmatic_dependent_launch", 0) != 0;
}

/* ---- a run --------------------------------------------------------------- */

static void begin_launch(AsyncRun *r, const MachineEvent *e)
{
    const Order *o = &r->order;
    size_t n = (size_t)o->n_clusters * o->n_ctas * o->n_warps;
    r->dependent = (Dependent){ .running = (unsigned)n };
    if (dependent_launch(e->op))
        r->dependent.waited = ARENA_ARRAY(r->order.arena, uint32_t, n + 1);
}

static uint32_t *waited_of(AsyncRun *r, const MachineAgent *a)
{
    const Order *o = &r->order;
    return &r->dependent
                .waited[a->cluster * o->n_ctas * o->n_warps + order_warp(o, a)];
}

/* Parameters and registers are no memory that another grid writes. */
static bool touches_global(AsyncRun *r, const Op *op)
{
    OpAccessVec v = { 0 };
    op_accesses(r->m, op, r->order.arena, &v);
    for (size_t i = 0; i < v.len; i++) {
        const Type *t = value_root(v.data[i].access->base)->type;
        const Mem *mem = t->mem ? lib_mem_find(r->m->lib, t->mem) : NULL;
        if (t->kind == TK_map ||
            (mem && (mem->family == MEMF_global || mem->family == MEMF_map)))
            return true;
    }
    return false;
}

static void check_access(AsyncRun *r, const MachineEvent *e)
{
    if (!(e->agent.lanes & ~*waited_of(r, &e->agent)) ||
        !touches_global(r, e->op))
        return;
    race_fault(r, e, NULL, "G-WAIT",
               "touches global memory, but a thread of warp %u of cta %u that "
               "does has not executed griddepcontrol.wait: a grid before this "
               "one may still write it",
               e->agent.warp, e->agent.cta);
}

static void check_end(AsyncRun *r, const MachineEvent *e)
{
    Dependent *d = &r->dependent;
    if (--d->running || d->any)
        return;
    race_fault(r, e, NULL, "G-WAIT",
               "ends without griddepcontrol.wait in any thread: the next grid "
               "waits for this one alone, and those before it may still run");
}

void dependent_event(AsyncRun *r, const MachineEvent *e)
{
    if (e->kind == MEV_launch)
        begin_launch(r, e);
    if (!r->dependent.waited)
        return;
    switch (e->kind) {
    case MEV_read:
    case MEV_write:
        if (e->agent.kind == AGENT_warp && e->tensor)
            check_access(r, e);
        return;
    case MEV_issue:
        if (e->agent.kind != AGENT_tensor)
            check_access(r, e);
        return;
    case MEV_step:
        if (e->op->code == OP_async_griddepcontrol_wait) {
            *waited_of(r, &e->agent) |= e->agent.lanes;
            r->dependent.any = true;
        }
        return;
    case MEV_exit:
        check_end(r, e);
        return;
    default:
        return;
    }
}

/* ---- the PTX ------------------------------------------------------------- */

static bool is_wait(const PtxInstr *in)
{
    return !in->guard && !strcmp(in->op, "griddepcontrol.wait");
}

/* cp.async without bulk names the space it reads: .shared.global. */
static bool is_global_access(const PtxInstr *in)
{
    return strstr(in->op, ".global") != NULL;
}

const PtxInstr *dependent_ptx(Arena *a, const Op *kernel, const PtxKernel *ptx,
                              bool *certain)
{
    bool *seen = ARENA_ARRAY(a, bool, ptx->n_instrs + 1);
    VEC(uint32_t) todo = { 0 };
    const PtxInstr *first = NULL;
    *certain = false;
    for (const Op *op = kernel->blocks[0]->first; op; op = op->next)
        *certain |= op->code == OP_async_griddepcontrol_wait;
    if (ptx->n_instrs)
        VEC_PUSH(a, &todo, 0);
    while (todo.len) {
        uint32_t i = todo.data[--todo.len];
        if (i >= ptx->n_instrs || seen[i] || is_wait(&ptx->instrs[i]))
            continue;
        const PtxInstr *in = &ptx->instrs[i];
        seen[i] = true;
        if (is_global_access(in) && (!first || in->line < first->line))
            first = in;
        for (unsigned k = 0; k < in->n_targets; k++)
            VEC_PUSH(a, &todo, in->targets[k]);
        if (in->guard || (!in->ends && !in->branches))
            VEC_PUSH(a, &todo, i + 1);
    }
    return first;
}
