/* How the CTAs of a cluster end. None may leave while another can still arrive
 * at one of its mbarriers or copy to its shared memory.
 *
 * A wait that sees a phase complete has seen all arrivals and copies which that
 * phase counts. So a CTA may end once it has waited for every phase at which
 * others signal. Where each task awaits all elements of a barrier but the last
 * P, those that count as arrived in the next task, it is enough to await these
 * behind the last task, and nobody meets. A release at the barrier of the
 * cluster would do as well, but waits for the L2 cache; it remains for barriers
 * that are used otherwise. */
#include "passes/lower/lower.h"

#include <string.h>

static void add_signalled(Lower *L, Block *b)
{
    for (Op *op = b->first; op; op = op->next) {
        const ParSync *s = par_sync(L->pi, op);
        bool known = !s || !sync_between_ctas(s);
        for (size_t i = 0; i < L->at_exit.len && !known; i++)
            known = L->at_exit.data[i].barrier == s->barrier;
        if (!known)
            VEC_PUSH(L->scratch, &L->at_exit,
                     ((ExitWait){ .barrier = s->barrier }));
        for (unsigned i = 0; i < op->n_blocks; i++)
            add_signalled(L, op->blocks[i]);
    }
}

/* ---- what a task awaits -------------------------------------------------- */

/* Elements [lo, hi) of a ring. */
typedef struct Span {
    const Affine *lo, *hi;
} Span;

typedef struct Awaited {
    Lower *L;
    const Value *barrier;
    int64_t warp_lo, warp_hi;
    VEC(Span) spans; /* that these warps await */
} Awaited;

/* The elements `at`, or those of the loop whose iterator it is, if each task
 * executes op for all of them. */
static bool span_of(const Lower *L, const Op *op, const Affine *at, Span *out)
{
    ExprCtx *x = L->m->exprs;
    bool constant = affine_is_const(at, &(int64_t){ 0 }), found = constant;
    *out = (Span){ at, affine_add_const(x, at, 1) };
    for (const Op *in = op_parent(op); in != L->dev->op; in = op_parent(in)) {
        if (in->code != OP_ctl_for) {
            if (in->code != OP_par_warps)
                return false;
            continue;
        }
        if (strcmp(op_attr_str(in, "mode", "seq"), "seq"))
            continue;
        if (found || at != affine_var(x, in->blocks[0]->args[0].var))
            return false;
        *out = (Span){ in->operands[0].u.index, in->operands[1].u.index };
        found = true;
    }
    return found;
}

/* By the same warps in every CTA. */
static bool everywhere(const Lower *L, const ThreadSet *t)
{
    return t && t->ctas == 1 && t->warp_aligned &&
           t->n_warps == t->cover_hi - t->cover_lo &&
           !cond_uses(t->guard, L->dev->cta);
}

static bool note_await(Op *op, void *user)
{
    Awaited *a = user;
    const ParSync *s = par_sync(a->L->pi, op);
    const ThreadSet *t = par_threads(a->L->pi, op);
    Span span;
    if (op->code == OP_par_await && s && s->barrier == a->barrier &&
        everywhere(a->L, t) && t->cover_lo == a->warp_lo &&
        t->cover_hi == a->warp_hi &&
        span_of(a->L, op, s->home[a->barrier->ring_dim], &span))
        VEC_PUSH(a->L->scratch, &a->spans, span);
    return true;
}

/* Are the spans, one after the other, the elements [0, end)? */
static bool spans_reach(const Awaited *a, const Affine *end)
{
    const Affine *at = affine_const(a->L->m->exprs, 0);
    for (size_t i = 0; i < a->spans.len && at != end; i++)
        for (size_t k = 0; k < a->spans.len; k++)
            if (a->spans.data[k].lo == at) {
                at = a->spans.data[k].hi;
                break;
            }
    return at == end;
}

/* Has a CTA one ring of this barrier? */
static bool one_ring(const Lower *L, const Value *b)
{
    const ParAlloc *p = par_alloc(L->pi, b);
    int64_t n;
    for (unsigned i = p ? p->n_dist : 0; i < b->type->rank; i++)
        if ((int)i != b->ring_dim &&
            (!affine_is_const(b->shape[i], &n) || n != 1))
            return false;
    return p && b->ring_dim >= (int)p->n_dist;
}

typedef struct Choice {
    Lower *L;
    ExitWait *wait;
} Choice;

/* Do the warps that execute op await all of its barrier but the last elements?
 * Then one of them may await these. */
static bool try_await(Op *op, void *user)
{
    const Choice *c = user;
    Lower *L = c->L;
    ExitWait *w = c->wait;
    const ParSync *s = par_sync(L->pi, op);
    const ThreadSet *t = par_threads(L->pi, op);
    if (w->warp >= 0 || op->code != OP_par_await || !s || !t ||
        s->barrier != w->barrier)
        return true;
    Awaited a = { .L = L,
                  .barrier = s->barrier,
                  .warp_lo = t->cover_lo,
                  .warp_hi = t->cover_hi };
    op_walk(L->dev->op, note_await, &a);
    const Affine *extent = s->barrier->shape[s->barrier->ring_dim];
    if (spans_reach(&a, affine_add_const(L->m->exprs, extent, -w->elements)))
        w->warp = t->cover_lo;
    return true;
}

/* Whether waits for its last elements are enough, and whose. */
static bool choose_wait(Lower *L, ExitWait *w)
{
    w->warp = -1;
    if (!one_ring(L, w->barrier))
        return false;
    w->elements = ring_pre_arrive(L, w->barrier);
    if (w->elements <= w->barrier->ring_depth)
        op_walk(L->dev->op, try_await, &(Choice){ L, w });
    return w->warp >= 0;
}

void exit_prepare(Lower *L)
{
    L->at_exit.len = 0;
    add_signalled(L, L->dev->body);
    L->ctas_signal = L->at_exit.len > 0;
    L->meets_at_exit = false;
    for (size_t i = 0; i < L->at_exit.len; i++)
        L->meets_at_exit |= !choose_wait(L, &L->at_exit.data[i]);
    if (L->dev->no_shutdown_sync || LOWER_WRONG(L, "no-exit-wait"))
        L->at_exit.len = 0;
    L->meets_at_exit &= L->at_exit.len > 0;
}

/* ---- emission ------------------------------------------------------------ */

/* One lane of a warp awaits what the next task would find arrived. */
static void emit_wait(Lower *L, const ExitWait *w)
{
    ExprCtx *x = L->m->exprs;
    const Affine *zero = affine_const(x, 0);
    unsigned n_dist = par_alloc(L->pi, w->barrier)->n_dist;
    Block *outer = L->out;
    if (L->role->hi - L->role->lo > 1) {
        Op *one = lower_emit(L, OP_ctl_if, 1, 0, 1);
        one->operands[0] = opnd_cond(cond_cmp(
            x, CMP_eq, affine_var(x, L->dev->warp), affine_const(x, w->warp)));
        L->out = one->blocks[0];
    }
    L->out = lower_elect(L);
    for (int64_t i = 0; i < w->elements; i++) {
        Access *a = access_new(L->m, smem_object(L, w->barrier)->object);
        for (unsigned d = 0; d < a->rank; d++)
            a->dims[d] = (int)(d + n_dist) == w->barrier->ring_dim
                             ? ring_dim(L, w->barrier, affine_const(x, i))
                             : (AccessDim){ .kind = DIM_point, .lo = zero };
        Op *wait = lower_emit(L, OP_async_mbarrier_wait, 1, 0, 0);
        wait->operands[0] = opnd_access(a);
    }
    L->out = outer;
}

void exit_role(Lower *L, const Op *tasks)
{
    if (L->meets_at_exit)
        return;
    unsigned at = 0;
    L->cursors.len = 0;
    for (size_t g = 0; g < L->groups.len; g++) {
        if (!L->groups.data[g].used)
            continue;
        RingCursor c = { (unsigned)g, affine_const(L->m->exprs, 0),
                         tasks->results[at++] };
        VEC_PUSH(L->scratch, &L->cursors, c);
    }
    for (size_t i = 0; i < L->at_exit.len; i++) {
        const ExitWait *w = &L->at_exit.data[i];
        if (w->elements && w->warp >= L->role->lo && w->warp < L->role->hi)
            emit_wait(L, w);
    }
}
