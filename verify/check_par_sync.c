/* What synchronisation can be lowered to: which timelines each mechanism waits
 * for, and which threads can meet (docs/checks.md, "Synchronisation"). All
 * questions are inclusions of one timeline in another. */
#include "ir/limits.h"
#include "verify/check_par_internal.h"

#include <string.h>

typedef struct SyncCheck {
    ParCheck *c;
    const Op *op;
    const char *name; /* of the timeline in question */
    const SyncTimeline *tl;
    const char *what; /* "Fence", "Arrive on b (CudaMbarrier)" */
} SyncCheck;

/* Is the timeline within the named one? */
static bool within(const SyncCheck *s, const char *outer)
{
    const SyncTimeline *o = sync_timeline_find(outer);
    return o && s->tl && sync_timeline_includes(o, s->tl);
}

static void refuse(const SyncCheck *s, const char *which, const char *why)
{
    Diag *d = pc_error(s->c, s->op, "fence",
                       "%s: %s sync-tl %s not supported "
                       "(%s)",
                       s->what, which, s->name, why);
    diag_fix(s->c->ctx, d, "choose another timeline for the %s argument",
             !strcmp(which, "first") ? "first" : "second");
}

/* Looks the timeline up; false when it is unknown, or names nothing to wait
 * for. */
static bool read_timeline(SyncCheck *s, const char *key, const char *which)
{
    s->name = op_attr_str(s->op, key, "");
    s->tl = sync_timeline_find(s->name);
    if (!s->tl) {
        pc_error(s->c, s->op, "timeline", "%s: unknown %s sync-tl %s", s->what,
                 which, s->name);
        return false;
    }
    const char *why = lib_unsupported(s->name);
    if (why) {
        pc_error(s->c, s->op, "timeline", "%s: %s sync-tl %s not supported: %s",
                 s->what, which, s->name, why);
        return false;
    }
    if (!strcmp(which, "first") && !s->tl->full && !s->tl->temporal) {
        refuse(s, which, "it is empty");
        return false;
    }
    return true;
}

static bool is_wgmma(const char *name)
{
    return !strncmp(name, "wgmma", 5);
}

/* ---- the rules that Fence and cluster sync share ------------------------ */

static bool check_fence_first(const SyncCheck *s)
{
    if (within(s, "cuda_in_order") || within(s, "Sm80_generic"))
        return true;
    refuse(s, "first", "we allow Sm80_generic");
    return false;
}

static void check_fence_second(const SyncCheck *s)
{
    if (within(s, "cuda_in_order"))
        return;
    if (within(s, "Sm80_generic"))
        refuse(s, "second",
               "Sm80_cp_async not supported as second sync-tl; "
               "use cuda_in_order");
    else if (!within(s, "cuda_generic_and_async_proxy"))
        refuse(s, "second", "at most cuda_generic_and_async_proxy");
}

/* ---- Fence -------------------------------------------------------------- */

static void check_wgmma_fence(ParCheck *c, const Op *op)
{
    const char *second = op_attr_str(op, "second", "");
    if (strcmp(second, "wgmma_fence_2") != 0) {
        Diag *d = pc_error(c, op, "fence",
                           "wgmma fence needs second sync-tl "
                           "wgmma_fence_2, found %s",
                           second);
        diag_fix(c->ctx, d, "write Fence(wgmma_fence_1, wgmma_fence_2)");
    }
    const char *why;
    const ThreadSet *t = par_threads(c->pi, op);
    if (!t ||
        par_matches_unit(
            c->pi, op, unitref_get(c->ctx, 1, "cuda_warpgroup", 0, NULL), &why))
        return;
    Diag *d = pc_error(c, op, "fence",
                       "wgmma fence must be executed by a "
                       "warpgroup (128 threads), found %lld: %s",
                       (long long)t->threads, why);
    diag_fix(c->ctx, d,
             "put it in `for w in cuda_threads(0, n, "
             "unit=cuda_warpgroup)`");
}

static void check_fence_threads(ParCheck *c, const Op *op)
{
    const ThreadSet *t = par_threads(c->pi, op);
    if (!t || (t->kind != THREADS_other && t->kind != THREADS_ctas))
        return;
    Diag *d = pc_error(c, op, "fence",
                       "Fence collective unit matched no known "
                       "case: %lld threads of %lld CTAs%s",
                       (long long)t->threads, (long long)t->ctas,
                       t->kind == THREADS_ctas ? ""
                       : t->contiguous         ? ", not aligned to warps"
                                               : ", not contiguous");
    diag_fix(c->ctx, d,
             "a Fence is executed by one thread, by whole warps "
             "that are neighbours in one CTA, or by the whole cluster");
}

static void check_fence(ParCheck *c, const Op *op)
{
    SyncCheck first = { .c = c, .op = op, .what = "Fence" }, second = first;
    if (!strcmp(op_attr_str(op, "first", ""), "wgmma_fence_1")) {
        check_wgmma_fence(c, op);
        return;
    }
    check_fence_threads(c, op);
    if (read_timeline(&first, "first", "first") && check_fence_first(&first) &&
        read_timeline(&second, "second", "second") &&
        !within(&first, "cuda_temporal"))
        check_fence_second(&second);
}

/* ---- mbarriers ---------------------------------------------------------- */

static void check_mbarrier_arrive(const SyncCheck *s)
{
    if (within(s, "Sm80_cp_async")) {
        const ParSync *sync = par_sync(s->c->pi, s->op);
        if (sync && sync->n_xor > 1)
            pc_error(s->c, s->op, "fence",
                     "%s: an Arrive with Sm80_cp_async "
                     "must be within 1 CTA, this one reaches %u",
                     s->what, sync->n_xor);
        return;
    }
    if (within(s, "cuda_in_order"))
        return;
    if (within(s, "tma_to_smem_async"))
        refuse(s, "first",
               "use cuda_temporal, and add trailing barriers to "
               "TMA instrs");
    else
        refuse(s, "first",
               "an mbarrier waits for cuda_in_order or "
               "Sm80_cp_async");
}

static void check_mbarrier_await(const SyncCheck *s)
{
    if (within(s, "cuda_in_order") || within(s, "cuda_generic_and_async_proxy"))
        return;
    if (is_wgmma(s->name))
        refuse(s, "second", "consider cuda_generic_and_async_proxy");
    else if (within(s, "Sm80_generic"))
        refuse(s, "second", "use cuda_in_order");
    else
        refuse(s, "second", "at most cuda_generic_and_async_proxy");
}

/* ---- commit groups ------------------------------------------------------ */

typedef struct GroupRule {
    BarrierKind kind;
    const char *first, *mechanism, *second;
} GroupRule;

static const GroupRule group_rules[] = {
    { BARRIER_cp_async_group, "Sm80_cp_async", "Sm80_CommitGroup",
      "cuda_in_order" },
    { BARRIER_bulk_group, "tma_to_gmem_async", "Sm90_TmaCommitGroup",
      "cuda_generic_and_async_proxy" },
    { BARRIER_wgmma_group, "wgmma_async", "Sm90_WgmmaCommitGroup",
      "cuda_generic_and_async_proxy" },
};
enum { GROUP_RULES = sizeof group_rules / sizeof *group_rules };

static void check_group_arrive(const SyncCheck *s, const GroupRule *r)
{
    if (within(s, r->first))
        return;
    const char *other = "";
    for (unsigned i = 0; i < GROUP_RULES; i++)
        if (within(s, group_rules[i].first))
            other = arena_printf(s->c->m->arena,
                                 "; %s expects barrier "
                                 "mechanism %s",
                                 s->name, group_rules[i].mechanism);
    pc_error(s->c, s->op, "fence", "%s: wrong first sync-tl %s, expected %s%s",
             s->what, s->name, r->first, other);
}

static void check_group_await(const SyncCheck *s, const GroupRule *r)
{
    if (!within(s, r->second))
        pc_error(s->c, s->op, "fence",
                 "%s: wrong second sync-tl %s, expected "
                 "at most %s",
                 s->what, s->name, r->second);
}

/* ---- Arrive and Await --------------------------------------------------- */

static const GroupRule *rule_of(BarrierKind kind)
{
    for (unsigned i = 0; i < GROUP_RULES; i++)
        if (group_rules[i].kind == kind)
            return &group_rules[i];
    return NULL;
}

static void check_split(ParCheck *c, const Op *op)
{
    if (!op->n_operands || op->operands[0].kind != OPND_access)
        return;
    Value *v = op->operands[0].u.access->base;
    const Mem *mem = pc_mem(c, v);
    if (!mem || v->type->kind != TK_barrier)
        return;
    bool arrive = op->code == OP_par_arrive;
    SyncCheck s = { .c = c, .op = op };
    s.what = arena_printf(c->m->arena, "%s %s (%s)",
                          arrive ? "Arrive on" : "Await of", par_text_value(v),
                          par_text_mem(c->m, mem->ref));
    if (!read_timeline(&s, arrive ? "first" : "second",
                       arrive ? "first" : "second"))
        return;
    const GroupRule *r = rule_of(mem->barrier);
    if (r && arrive)
        check_group_arrive(&s, r);
    else if (r)
        check_group_await(&s, r);
    else if (mem->barrier == BARRIER_mbarrier && arrive)
        check_mbarrier_arrive(&s);
    else if (mem->barrier == BARRIER_mbarrier)
        check_mbarrier_await(&s);
    else if (mem->barrier == BARRIER_cluster && arrive)
        check_fence_first(&s);
    else if (mem->barrier == BARRIER_cluster)
        check_fence_second(&s);
}

static bool check_op(Op *op, void *user)
{
    ParCheck *c = user;
    if (!pc_on_device(op))
        return true;
    if (op->code == OP_par_fence)
        check_fence(c, op);
    else if (op->code == OP_par_arrive || op->code == OP_par_await)
        check_split(c, op);
    return true;
}

void check_par_syncs(ParCheck *c)
{
    op_walk(c->proc, check_op, c);
}
