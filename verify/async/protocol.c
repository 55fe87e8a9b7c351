/* The protocol of mbarriers and barriers, for all schedules, from one run.
 *
 * An event of the run is bound to the phase it was seen in when its agent
 * knows that the phase before is complete, and when the phase cannot end
 * without it: an arrival cannot be counted earlier, a copy's bytes neither, an
 * announcement comes before the last arrival, and a waiter sees the phase that
 * it saw here: not an older one of the same parity (it knows that the phase
 * between is over) nor the next but one (that one cannot end before the waiter
 * went on). docs/semantics.md has the argument. */
#include "verify/async/run.h"

#include <string.h>

/* Ordered after the initialisation, by a lane's or effect's clock. */
static bool knows_init(const Order *o, const MachineEvent *e, const OrderBar *b,
                       const Clock *c, uint32_t lane)
{
    return b->init_lane == lane || c->known[b->init_lane] >= b->init_epoch ||
           order_shown(o, e, b);
}

/* ---- causes -------------------------------------------------------------- */

static void cause(AsyncRun *r, const MachineEvent *e, const char *code,
                  const char *fmt, ...) EXO_PRINTF(4, 5);

static void cause(AsyncRun *r, const MachineEvent *e, const char *code,
                  const char *fmt, ...)
{
    if (r->cause.code)
        return;
    va_list ap;
    va_start(ap, fmt);
    r->cause = (Cause){ code, *e, arena_vprintf(ctx_arena(r->ctx), fmt, ap) };
    va_end(ap);
}

static Turn *turn_of(AsyncRun *r, OrderBar *b, int64_t turn)
{
    for (size_t i = b->turns.len; i-- > 0;)
        if (b->turns.data[i].turn == turn)
            return &b->turns.data[i];
    Turn t = { .turn = turn };
    VEC_PUSH(r->order.arena, &b->turns, t);
    return &b->turns.data[b->turns.len - 1];
}

/* Counts what the ring means for a phase: more arrivals than the count, or all
 * of them and more bytes on the way than were announced. */
static void count_turn(AsyncRun *r, const MachineEvent *e)
{
    if (e->turn == MACHINE_NO_TURN)
        return;
    OrderBar *b = order_bar(&r->order, &e->agent, e->cta, e->offset);
    if (!b->agent) {
        cause(r, e, e->cta == e->agent.cta ? "B-LIFE" : "CL-ENTRY",
              "an mbarrier of cta %u is used before it is initialised", e->cta);
        return;
    }
    Turn *t = turn_of(r, b, e->turn);
    t->arrivals += e->kind == MEV_arrive;
    t->expected += e->kind == MEV_expect ? e->length : 0;
    t->issued += e->kind == MEV_target ? e->length : 0;
    bool replaced = r->cause.code && !strcmp(r->cause.code, "B-TX");
    if (t->arrivals > b->count && replaced)
        r->cause.code = NULL; /* too few bytes by then, since it is too early */
    if (t->arrivals > b->count)
        cause(r, e, "B-COUNT",
              "%lld arrivals are meant for one phase of an mbarrier of cta "
              "%u, whose count is %lld",
              (long long)t->arrivals, e->cta, (long long)b->count);
    else if (t->arrivals == b->count && t->issued > t->expected)
        cause(r, e, "B-TX",
              "copies bring %lld bytes in one phase of an mbarrier of cta %u, "
              "but %lld were announced",
              (long long)t->issued, e->cta, (long long)t->expected);
    else if (e->kind == MEV_arrive && e->turn > e->phase)
        cause(r, e, "B-LAP",
              "an arrival that is meant for phase %lld is counted in phase "
              "%lld",
              (long long)e->turn, (long long)e->phase);
}

/* What would order the event's agent behind the initialisation. */
static const char *init_order(AsyncRun *r, const MachineEvent *e,
                              const OrderBar *b)
{
    Order *o = &r->order;
    bool met =
        order_cluster(o, &e->agent)->waited[order_warp(o, &e->agent)] >= 0;
    if (met && !b->init_fenced)
        return "a relaxed arrival at the cluster's barrier shows what "
               "async.fence.mbarrier_init follows, and none follows here";
    if (e->cta != e->agent.cta)
        return "a barrier of the cluster must come between";
    return "a barrier of threads must come between";
}

static void check_init(AsyncRun *r, const MachineEvent *e, const OrderBar *b,
                       const Clock *c, uint32_t lane)
{
    if (!b->agent || knows_init(&r->order, e, b, c, lane))
        return;
    protocol_fault(r, e, e->cta != e->agent.cta ? "CL-ENTRY" : "B-LIFE",
                   "uses an mbarrier of cta %u before its initialisation is "
                   "known to be over; %s",
                   e->cta, init_order(r, e, b));
}

static uint32_t first_lane(const Order *o, const MachineEvent *e)
{
    return order_lane(o, &e->agent,
                      (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31));
}

static const Clock *lane_clock(AsyncRun *r, const MachineEvent *e)
{
    Order *o = &r->order;
    return &order_cluster(o, &e->agent)->lane[first_lane(o, e)];
}

static void check_arrive(AsyncRun *r, const MachineEvent *e)
{
    Order *o = &r->order;
    const OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    const Clock *c = e->effect ? &order_effect(o, e->effect)->before->clock
                               : lane_clock(r, e);
    check_init(r, e, b, c, first_lane(o, e));
    if (!order_phase_known(b, c, e->phase - 1,
                           e->effect ? ORDER_NOBODY : first_lane(o, e)))
        protocol_fault(r, e, "B-LAP",
                       "arrives in phase %lld of an mbarrier of cta %u "
                       "without knowing that phase %lld is over, so that it "
                       "may be counted there; wait for that phase first",
                       (long long)e->phase, e->cta, (long long)e->phase - 1);
}

static void check_expect(AsyncRun *r, const MachineEvent *e)
{
    Order *o = &r->order;
    const OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    check_init(r, e, b, lane_clock(r, e), first_lane(o, e));
    if (!order_phase_known(b, lane_clock(r, e), e->phase - 1, first_lane(o, e)))
        protocol_fault(r, e, "B-TX",
                       "announces bytes in phase %lld of an mbarrier without "
                       "knowing that phase %lld is over",
                       (long long)e->phase, (long long)e->phase - 1);
}

/* A load was started: its bytes must count in the phase that is now. */
static void check_target(AsyncRun *r, const MachineEvent *e)
{
    Order *o = &r->order;
    const OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    const Clock *c = &order_effect(o, e->effect)->before->clock;
    bool remote = e->cta != e->agent.cta;
    CopyTarget t = { e->effect, e->cta, b->phase };
    VEC_PUSH(o->arena, &r->targets, t);
    if (b->agent &&
        (!b->fence_epoch ||
         (b->init_lane != first_lane(o, e) &&
          c->known[b->init_lane] < b->fence_epoch && !order_shown(o, e, b))))
        protocol_fault(r, e, remote ? "CL-ENTRY" : "B-LIFE",
                       "the copy engine may signal an mbarrier of cta %u "
                       "whose initialisation it need not see: no fence of the "
                       "initialising thread is ordered before",
                       e->cta);
    if (!order_phase_known(b, c, b->phase - 1, ORDER_NOBODY))
        protocol_fault(r, e, "B-TX",
                       "may deliver bytes to phase %lld of an mbarrier of cta "
                       "%u, instead of %lld: the phase before is not known to "
                       "be over",
                       (long long)b->phase - 1, e->cta, (long long)b->phase);
}

static void check_deliver(AsyncRun *r, const MachineEvent *e)
{
    for (size_t i = 0; i < r->targets.len; i++) {
        CopyTarget *t = &r->targets.data[i];
        if (t->effect != e->effect || t->cta != e->cta)
            continue;
        if (t->phase != e->phase)
            protocol_fault(r, e, "B-TX",
                           "delivers its bytes in phase %lld of an mbarrier "
                           "of cta %u, but was started in phase %lld, which "
                           "ended before: fewer bytes were announced than "
                           "arrive",
                           (long long)e->phase, e->cta, (long long)t->phase);
        *t = r->targets.data[--r->targets.len];
        return;
    }
}

/* Did the waiter arrive in this phase after its wait, by a cp.async arrival,
 * which tells nobody of it? */
static bool arrived_since(const OrderBar *b, const Arrival *waiter)
{
    for (size_t i = 0; i < b->arrivals[0].len; i++)
        if (b->arrivals[0].data[i].lane == waiter->lane &&
            b->arrivals[0].data[i].epoch > waiter->epoch)
            return true;
    return false;
}

static void check_phase(AsyncRun *r, const MachineEvent *e)
{
    const OrderBar *b = order_bar(&r->order, &e->agent, e->cta, e->offset);
    if (b->expected != b->delivered)
        protocol_fault(r, e, "B-TX",
                       "phase %lld of an mbarrier of cta %u ends after %lld "
                       "bytes, but %lld were announced for it",
                       (long long)e->phase, e->cta, (long long)b->delivered,
                       (long long)b->expected);
    for (size_t i = 0; i < b->expects.len; i++)
        if (b->acc.known[b->expects.data[i].lane] < b->expects.data[i].epoch)
            protocol_fault(r, e, "B-TX",
                           "phase %lld of an mbarrier of cta %u may end "
                           "before all its bytes are announced: no arrival "
                           "follows the announcement",
                           (long long)e->phase, e->cta);
    for (size_t i = 0; i < b->waiters.len; i++) {
        uint32_t lane = b->waiters.data[i].lane;
        if (b->acc.known[lane] < b->waiters.data[i].epoch &&
            !arrived_since(b, &b->waiters.data[i]))
            protocol_fault(r, e, "B-LAP",
                           "phase %lld of an mbarrier of cta %u may end while "
                           "warp %u of cta %u still waits for phase %lld: its "
                           "parity comes back and the wait does not end",
                           (long long)e->phase, e->cta,
                           lane / ORDER_LANES % r->order.n_warps,
                           lane / ORDER_LANES / r->order.n_warps,
                           (long long)e->phase - 1);
    }
}

static void check_pass(AsyncRun *r, const MachineEvent *e)
{
    Order *o = &r->order;
    const OrderBar *b = order_bar(o, &e->agent, e->cta, e->offset);
    OrderCluster *c = order_cluster(o, &e->agent);
    if (e->turn != e->phase)
        cause(r, e, "B-PHASE",
              "the ring means phase %lld, but the wait saw phase %lld of that "
              "parity",
              (long long)e->turn, (long long)e->phase);
    check_init(r, e, b, lane_clock(r, e), first_lane(o, e));
    FOR_MASK(l, e->agent.lanes)
    if (!order_phase_known(b, &c->lane[order_lane(o, &e->agent, l)],
                           e->phase - 1, order_lane(o, &e->agent, l))) {
        protocol_fault(r, e, "B-PHASE",
                       "waits for parity %lld and may go on with phase %lld "
                       "instead of %lld: that phase %lld is over is not known "
                       "here",
                       (long long)(e->phase & 1), (long long)e->phase - 2,
                       (long long)e->phase, (long long)e->phase - 1);
        return;
    }
}

static void check_meet(AsyncRun *r, const MachineEvent *e)
{
    Order *o = &r->order;
    OrderCluster *c = order_cluster(o, &e->agent);
    const OrderMeet *m =
        &c->named[e->agent.cta * ORDER_NAMED + (size_t)e->offset];
    if (e->phase < 1 || !m->used)
        return;
    FOR_MASK(l, e->agent.lanes)
    if ((int64_t)c->lane[order_lane(o, &e->agent, l)].known[m->agent] <
        e->phase) {
        protocol_fault(r, e, "C-ID",
                       "comes to named barrier %lld without knowing that its "
                       "use before is over, so that it may be counted there",
                       (long long)e->offset);
        return;
    }
}

/* At a CTA's end nobody may be counted at a barrier that did not open: who only
 * arrived there has not waited for it. */
static void check_left(AsyncRun *r, const MachineEvent *e)
{
    OrderCluster *c = order_cluster(&r->order, &e->agent);
    for (unsigned i = 0; i < ORDER_NAMED; i++) {
        const OrderMeet *m = &c->named[e->agent.cta * ORDER_NAMED + i];
        if (m->used && m->arrived % m->threads)
            protocol_fault(r, e, "B-COUNT",
                           "named barrier %u is left with %lld of its %lld "
                           "threads",
                           i, (long long)(m->arrived % m->threads),
                           (long long)m->threads);
    }
}

static void fault_exit(AsyncRun *r, const MachineEvent *e, const char *what)
{
    protocol_fault(r, e, "CL-EXIT",
                   "cta %u may end before %s of another cta of its cluster "
                   "reaches it; a wait for that phase, or a barrier of the "
                   "cluster, must come before the end",
                   e->agent.cta, what);
}

/* The last warp of a CTA ends: all that others did to it is over. */
static void check_exit(AsyncRun *r, const MachineEvent *e)
{
    Order *o = &r->order;
    OrderCluster *c = order_cluster(o, &e->agent);
    unsigned cta = e->agent.cta;
    if (!r->exited)
        r->exited = ARENA_ARRAY(o->arena, unsigned, o->n_clusters * o->n_ctas);
    if (++r->exited[e->agent.cluster * o->n_ctas + cta] < o->n_warps)
        return;
    check_left(r, e);
    const uint32_t *known = c->at_exit[cta].known;
    for (size_t i = 0; i < c->remote[cta].len; i++) {
        const Signal *s = &c->remote[cta].data[i];
        if (known[s->phase.lane] < s->phase.epoch) {
            fault_exit(r, e, s->by.epoch ? "an arrival" : "a copy");
            return;
        }
    }
}

void protocol_event(AsyncRun *r, const MachineEvent *e)
{
    switch (e->kind) {
    case MEV_arrive:
        count_turn(r, e);
        check_arrive(r, e);
        return;
    case MEV_expect:
        count_turn(r, e);
        check_expect(r, e);
        return;
    case MEV_target:
        count_turn(r, e);
        check_target(r, e);
        return;
    case MEV_deliver:
        check_deliver(r, e);
        return;
    case MEV_phase:
        check_phase(r, e);
        return;
    case MEV_pass:
        check_pass(r, e);
        return;
    case MEV_meet:
        check_meet(r, e);
        return;
    default:
        return;
    }
}

void protocol_after(AsyncRun *r, const MachineEvent *e)
{
    if (e->kind == MEV_exit)
        check_exit(r, e);
}
