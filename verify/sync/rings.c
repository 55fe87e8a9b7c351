/* Barriers and the rings that they guard. An element of a ring gets a handle
 * when it is accessed or when an Await reaches what it waits for: until then
 * nothing can change it, since it has no signatures to be witnessed by. */
#include "verify/sync/machine_impl.h"

#include <string.h>

bool barrier_is_one_shot(const SyncTensor *t)
{
    return t->mem->barrier == BARRIER_mbarrier ||
           t->mem->barrier == BARRIER_cluster;
}

static int64_t pre_arrived(const SyncTensor *t)
{
    return t->value->ring_dim >= 0 && t->mem->pre_arrive > 0
               ? t->mem->pre_arrive
               : 0;
}

void barrier_open(Machine *m, unsigned tensor)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    Instance *in = &m->instances[tensor];
    in->n_bars = in->n_cells;
    bars_reserve(m, tensor);
    if (!pre_arrived(t))
        return;
    int64_t inner = instance_stride(m, tensor, (unsigned)t->value->ring_dim);
    int64_t extent = in->cells[t->value->ring_dim];
    for (int64_t i = 0; i < in->n_bars; i++) {
        if (i / inner % extent >= pre_arrived(t))
            continue;
        in->arrives[i] = 1;
        in->reached[i] = (uint32_t)(t->source_ctas > 0 ? t->source_ctas : 1);
    }
}

/* ---- what a ring element waits for -------------------------------------- */

static unsigned add_pend(Pend *out, unsigned n, BarId bar)
{
    unsigned i = n;
    for (unsigned k = 0; k < n; k++)
        if (out[k].bar == bar)
            return n;
    if (n == SYNC_MOST_PEND)
        return n;
    for (; i && out[i - 1].bar > bar; i--)
        out[i] = out[i - 1];
    out[i] = (Pend){ bar, 0 };
    return n + 1;
}

/* All elements of the guard that an Arrive with home `at` reaches, ascending:
 * for each of its expressions those that agree with it where it has points.
 * An element reaches those by which it is reached. */
static unsigned multicast_group(Machine *m, unsigned guard, const int64_t *at,
                                Pend *out)
{
    const SyncTensor *t = &m->run->program->tensors[guard];
    const Instance *in = &m->instances[guard];
    unsigned rank = t->value->type->rank, n = 0;
    for (unsigned k = 0; k < t->n_patterns; k++) {
        int64_t to[SYNC_MAX_RANK];
        unsigned i = 0;
        for (unsigned d = 0; d < rank; d++)
            to[d] = t->patterns[k] >> d & 1 ? 0 : at[d];
        while (i != UINT32_MAX) {
            int64_t flat = sync_flat(rank, in->cells, to);
            n = add_pend(out, n, bar_of(m, guard, flat));
            i = rank;
            while (i-- > 0) {
                if (!(t->patterns[k] >> i & 1))
                    continue;
                if (++to[i] < in->cells[i])
                    break;
                to[i] = 0;
            }
        }
    }
    return n;
}

/* The guard's element by so many along the ring after the one at `at`; -1:
 * there is none. */
static int64_t neighbour(const Machine *m, unsigned tensor, const int64_t *at,
                         int64_t by)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    const Instance *bars = &m->instances[t->guard];
    int64_t to[SYNC_MAX_RANK];
    memcpy(to, at, sizeof to);
    int64_t *k = &to[t->value->ring_dim];
    *k += by;
    if (*k < 0 || *k >= bars->cells[t->value->ring_dim])
        return -1;
    return sync_flat(tensor_rank(m, t->guard), bars->cells, to);
}

static BarId neighbour_bar(Machine *m, unsigned tensor, const int64_t *at,
                           int64_t by)
{
    int64_t flat = neighbour(m, tensor, at, by);
    return flat < 0 ? 0
                    : bar_of(m, m->run->program->tensors[tensor].guard, flat);
}

bool ring_release(const Machine *m, unsigned tensor, const int64_t *at,
                  SyncElement *out)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    int64_t flat = m->instances[tensor].ring
                       ? neighbour(m, tensor, at, t->value->ring_depth)
                       : -1;
    *out = (SyncElement){ t->guard, flat };
    return flat >= 0;
}

StateId ring_state(Machine *m, unsigned tensor, const int64_t *at)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    int64_t depth = t->value->ring_depth;
    Pend pend[SYNC_MOST_PEND];
    Record r = { .pend = pend, .mask = t->mask };
    r.free_bar = neighbour_bar(m, tensor, at, depth);
    if (t->guard != tensor) {
        r.n_pend = multicast_group(m, t->guard, at, pend);
    } else {
        BarId before = neighbour_bar(m, tensor, at, -depth);
        pend[0] = (Pend){ before, 0 };
        r.n_pend = before ? 1 : 0;
    }
    if (r.free_bar)
        r.flags = REC_BEFORE_ALLOC;
    RecordId id = r.n_pend ? record_intern(m->records, &r) : 0;
    return state_intern(m->records, r.free_bar, 0, NULL, id ? 1 : 0, &id);
}

/* ---- opening ------------------------------------------------------------ */

static bool is_ring(const Machine *m, unsigned tensor)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    const SyncTensor *g = &m->run->program->tensors[t->guard];
    return t->value->ring_dim >= 0 && g->space == SYNC_barrier &&
           g->value->type->rank <= t->value->type->rank &&
           (t->space == SYNC_barrier ? t->checked : t->guard != tensor) &&
           m->instances[t->guard].live;
}

bool ring_open(Machine *m, unsigned tensor, int64_t *lacking)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    Instance *in = &m->instances[tensor];
    const Instance *guard = &m->instances[t->guard];
    in->ring = is_ring(m, tensor);
    if (!in->ring || t->guard == tensor || !in->n_cells)
        return true;
    for (unsigned i = 0; i < tensor_rank(m, t->guard); i++)
        if ((int)i != t->value->ring_dim && in->cells[i] > guard->cells[i]) {
            m->run->failed = "a ring's guard is smaller than the ring";
            return false;
        }
    int64_t depth = t->value->ring_depth;
    int64_t most = guard->cells[t->value->ring_dim];
    if (in->cells[t->value->ring_dim] + depth <= most)
        return true;
    *lacking = most > depth ? most : depth;
    return false;
}

/* ---- waking and burying ------------------------------------------------- */

/* The cells of a ring element. */
static void wake(Machine *m, unsigned tensor, const int64_t *lead)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    Instance *in = &m->instances[tensor];
    unsigned n = tensor_rank(m, t->guard), rank = tensor_rank(m, tensor);
    int64_t at[SYNC_MAX_RANK] = { 0 }, inner = 1;
    for (unsigned i = 0; i < n; i++) {
        if (lead[i] >= in->cells[i])
            return;
        at[i] = lead[i];
    }
    for (unsigned i = n; i < rank; i++)
        inner *= in->cells[i];
    int64_t first = sync_flat(rank, in->cells, at);
    StateId s = 0;
    for (int64_t i = first; i < first + inner; i++) {
        if (in->dense[i])
            continue;
        s = s ? s : ring_state(m, tensor, at);
        cell_set(m, &in->dense[i], s);
    }
}

void ring_wake(Machine *m, unsigned barrier, int64_t flat)
{
    const SyncProgram *p = m->run->program;
    int64_t home[SYNC_MAX_RANK] = { 0 }, at[SYNC_MAX_RANK] = { 0 };
    Pend group[SYNC_MOST_PEND];
    unsigned n = 0;
    instance_unflat(m, barrier, flat, home);
    for (unsigned i = 0; i < p->n_tensors; i++) {
        if (p->tensors[i].guard != barrier || !m->instances[i].live ||
            !m->instances[i].ring)
            continue;
        if (i == barrier) {
            memcpy(at, home, sizeof at);
            at[p->tensors[i].value->ring_dim] +=
                p->tensors[i].value->ring_depth;
            wake(m, i, at);
            continue;
        }
        n = n ? n : multicast_group(m, barrier, home, group);
        for (unsigned k = 0; k < n; k++) {
            SyncElement e;
            barrier_find(m, group[k].bar, &e);
            instance_unflat(m, barrier, e.flat, at);
            wake(m, i, at);
        }
    }
}

void ring_bury(Machine *m, unsigned barrier, int64_t flat)
{
    const SyncTensor *t = &m->run->program->tensors[barrier];
    Instance *in = &m->instances[barrier];
    if (!in->ring)
        return;
    int64_t at[SYNC_MAX_RANK] = { 0 };
    instance_unflat(m, barrier, flat, at);
    int64_t old = neighbour(m, barrier, at, -t->value->ring_depth);
    if (old >= 0 && state_is_freed(m->records, handle_state(m, in->dense[old])))
        bar_bury(m, barrier, old);
}
