/* Instantiating the tree of a task at concrete sizes: loops are run in program
 * order and each statement becomes an event. */
#include "verify/sync/events.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 16 };

/* The threads that a thread loop or CudaWarps selects: by tile. */
struct SyncNodeSets {
    bool made;
    int64_t n;
    ThreadsId *tiles;
};

/* ---- values ------------------------------------------------------------- */

static bool atom_value(const Env *env, const Atom *atom, int64_t *out)
{
    const SyncRun *run = env->user;
    if (atom->kind != ATOM_var || !run->known[atom->var])
        return false;
    *out = run->vars[atom->var];
    return true;
}

bool sync_run_eval(const SyncRun *run, const Affine *e, int64_t *out)
{
    int64_t sum = e->constant;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        const Term *t = &e->terms[i];
        int64_t v;
        if (t->atom->kind != ATOM_var || !run->known[t->atom->var]) {
            Env env = { atom_value, (void *)run };
            return affine_eval(e, &env, out);
        }
        if (__builtin_mul_overflow(t->coef, run->vars[t->atom->var], &v) ||
            __builtin_add_overflow(sum, v, &sum))
            return false;
    }
    *out = sum;
    return true;
}

static bool fail(SyncRun *run, const char *why)
{
    if (!run->failed)
        run->failed = why;
    return false;
}

static bool eval(SyncRun *run, const Affine *e, int64_t *out)
{
    return (e && sync_run_eval(run, e, out)) ||
           fail(run, "control depends on a value that is not known here");
}

static bool eval_cond(SyncRun *run, const Cond *c, bool *out)
{
    Env env = { atom_value, run };
    return (c && cond_eval(c, &env, out)) ||
           fail(run, "control depends on a value that is not known here");
}

static bool eval_extents(SyncRun *run, unsigned tensor)
{
    const Value *v = run->program->tensors[tensor].value;
    for (unsigned i = 0; i < v->type->rank; i++)
        if (!eval(run, v->shape[i], &run->extents[tensor][i]))
            return false;
    return true;
}

bool sync_has_room(uint64_t most, uint64_t used, uint64_t bytes)
{
    return !most || (bytes <= most && used <= most - bytes);
}

const char *sync_no_room(Arena *arena, uint64_t most)
{
    return arena_printf(arena,
                        "more than %llu MiB of memory would be needed at these "
                        "sizes; sync-check{max-mib=N} gives it more",
                        (unsigned long long)(most >> 20));
}

int64_t sync_flat(unsigned rank, const int64_t *extents, const int64_t *index)
{
    int64_t flat = 0;
    for (unsigned i = 0; i < rank; i++)
        flat = flat * extents[i] + index[i];
    return flat;
}

/* ---- threads ------------------------------------------------------------ */

static void set_thread(SyncRun *run, int64_t t)
{
    const ParDevice *par = run->device->par;
    int64_t local = t % par->block_dim;
    run->vars[par->cta] = t / par->block_dim;
    run->vars[par->warp] = local / 32;
    run->vars[par->lane] = local % 32;
}

/* The tile of the thread, 0 for CudaWarps; -1: none. */
static bool tile_of(SyncRun *run, const SyncNode *n, int64_t thread,
                    int64_t *tile)
{
    bool in = true;
    set_thread(run, thread);
    *tile = 0;
    if (n->cond && !eval_cond(run, n->cond, &in))
        return false;
    if (in && n->iter && !eval(run, n->iter, tile))
        return false;
    if (!in)
        *tile = -1;
    return true;
}

static struct SyncNodeSets *node_sets(SyncRun *run, const SyncNode *n)
{
    struct SyncNodeSets *s = &run->sets[n->id];
    if (s->made)
        return s;
    s->n = 1;
    if (n->kind == SYNC_threads && !eval(run, n->hi, &s->n))
        return NULL;
    unsigned threads = thread_pool_size(run->pool);
    size_t words = (threads + 63) / 64;
    uint64_t *bits =
        ARENA_ARRAY(run->arena, uint64_t, words * (size_t)(s->n + 1));
    for (unsigned t = 0; t < threads; t++) {
        int64_t tile;
        if (!tile_of(run, n, t, &tile))
            return NULL;
        if (tile >= 0 && tile < s->n)
            bits[(size_t)tile * words + t / 64] |= UINT64_C(1) << (t % 64);
    }
    s->tiles = ARENA_ARRAY(run->arena, ThreadsId, s->n);
    for (int64_t i = 0; i < s->n; i++)
        s->tiles[i] = threads_intern(run->pool, bits + (size_t)i * words);
    s->made = true;
    return s;
}

/* ---- events ------------------------------------------------------------- */

static bool send(SyncRun *run, SyncEvent *e)
{
    e->threads = run->threads;
    if (++run->n_events > run->max_events)
        return fail(run, "too many statements at these sizes");
    return run->sink->event(run->sink, e);
}

static bool dim_range(SyncRun *run, const SyncExpr *x, unsigned i, int64_t *lo,
                      int64_t *hi)
{
    int64_t len = 1;
    if (!eval(run, x->lo[i], lo) || (x->len[i] && !eval(run, x->len[i], &len)))
        return false;
    if (__builtin_add_overflow(*lo, len, hi))
        return fail(run, "an index overflows");
    return true;
}

/* [lo, hi) inside the tensor and the tensor map; *some: anything is left. */
static bool expr_box(SyncRun *run, const SyncExpr *x, int64_t *lo, int64_t *hi,
                     bool *some)
{
    const int64_t *extents = run->extents[x->tensor];
    *some = true;
    for (unsigned i = 0; i < x->rank; i++) {
        int64_t least = 0, most = extents[i], a, b;
        if (!dim_range(run, x, i, &lo[i], &hi[i]))
            return false;
        if (x->clip_lo) {
            if (!eval(run, x->clip_lo[i], &a) || !eval(run, x->clip_len[i], &b))
                return false;
            least = a > least ? a : least;
            most = a + b < most ? a + b : most;
        }
        lo[i] = lo[i] < least ? least : lo[i];
        hi[i] = hi[i] > most ? most : hi[i];
        *some = *some && lo[i] < hi[i];
    }
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Adds the elements of a barrier within a box. */
static bool add_box(SyncRun *run, unsigned tensor, unsigned rank,
                    const int64_t *lo, const int64_t *hi, int64_t *targets,
                    unsigned *n, unsigned most)
{
    int64_t at[MAX_RANK];
    memcpy(at, lo, sizeof at);
    for (;;) {
        if (*n == most)
            return fail(run, "a multicast reaches too many barriers");
        targets[(*n)++] = sync_flat(rank, run->extents[tensor], at);
        unsigned i = rank;
        while (i-- > 0 && ++at[i] == hi[i])
            at[i] = lo[i];
        if (i == UINT32_MAX)
            return true;
    }
}

/* Adds the elements of one barrier expression, intervals being whole. */
static bool add_targets(SyncRun *run, const SyncExpr *x, int64_t *targets,
                        unsigned *n, unsigned most)
{
    int64_t lo[MAX_RANK], hi[MAX_RANK];
    bool some;
    if (!expr_box(run, x, lo, hi, &some) || !some)
        return run->failed == NULL;
    return add_box(run, x->tensor, x->rank, lo, hi, targets, n, most);
}

/* All elements that the expressions reach, each once. */
static bool find_targets(SyncRun *run, const SyncExpr *x, unsigned n_exprs,
                         int64_t *targets, unsigned most, unsigned *n)
{
    *n = 0;
    for (unsigned k = 0; k < n_exprs; k++)
        if (!add_targets(run, &x[k], targets, n, most))
            return false;
    qsort(targets, *n, sizeof *targets, compare_ids);
    unsigned kept = 0;
    for (unsigned i = 0; i < *n; i++)
        if (!kept || targets[kept - 1] != targets[i])
            targets[kept++] = targets[i];
    *n = kept;
    return true;
}

enum { MAX_TARGETS = 256 };

/* A dimension of an access and one of its trailing barrier that name the same
 * CTAs. */
typedef struct SpreadDim {
    unsigned access, barrier;
    int64_t lo, hi;
} SpreadDim;

static unsigned interval_after(const SyncExpr *x, unsigned i)
{
    while (i < x->rank && !x->len[i])
        i++;
    return i;
}

/* An access that is spread over CTAs, the part of each by itself. The boxes
 * are those of the whole. */
static bool run_parts(SyncRun *run, const SyncNode *n, SyncEvent *e,
                      int64_t *lo, int64_t *hi)
{
    const SyncExpr *bar = n->trailing;
    int64_t to_lo[MAX_RANK], to_hi[MAX_RANK], targets[MAX_TARGETS];
    SpreadDim dims[MAX_RANK];
    bool some;
    if (!expr_box(run, bar, to_lo, to_hi, &some) || !some)
        return run->failed == NULL;
    unsigned a = 0, b = 0;
    for (unsigned k = 0; k < n->n_spread; k++, a++, b++) {
        a = interval_after(n->exprs, a);
        b = interval_after(bar, b);
        if (a == n->exprs->rank || b == bar->rank)
            return fail(run, "a spread argument has too few intervals");
        dims[k] = (SpreadDim){ a, b, lo[a], hi[a] };
        lo[a] = to_lo[b] = dims[k].lo;
        hi[a] = to_hi[b] = dims[k].lo + 1;
    }
    e->targets = targets;
    for (;;) {
        e->n_targets = 0;
        if (!add_box(run, bar->tensor, bar->rank, to_lo, to_hi, targets,
                     &e->n_targets, MAX_TARGETS) ||
            !send(run, e))
            return false;
        unsigned k = n->n_spread;
        while (k-- > 0) {
            const SpreadDim *d = &dims[k];
            bool wrap = ++lo[d->access] == d->hi;
            if (wrap)
                lo[d->access] = d->lo;
            to_lo[d->barrier] = lo[d->access];
            hi[d->access] = to_hi[d->barrier] = lo[d->access] + 1;
            if (!wrap)
                break;
        }
        if (k == UINT32_MAX)
            return true;
    }
}

enum { MAX_CLUSTER = 16 * 1024 }; /* threads */

/* The threads of `all` in the k-th CTA that has any of them. */
static ThreadsId of_cta(SyncRun *run, ThreadsId all, int64_t k)
{
    int64_t block_dim = run->device->par->block_dim;
    unsigned n = thread_pool_size(run->pool), first = 0;
    const uint64_t *words = threads_words(run->pool, all);
    uint64_t bits[MAX_CLUSTER / 64] = { 0 };
    bool any = false;
    for (unsigned t = 0; t < n; t++) {
        if (t / block_dim != first / block_dim) {
            k -= any;
            any = false;
            first = t;
        }
        bool in = words[t / 64] >> t % 64 & 1;
        any |= in;
        if (in && k == 0)
            bits[t / 64] |= UINT64_C(1) << t % 64;
    }
    return threads_intern(run->pool, bits);
}

/* What the threads of each CTA access in their CTA, cut into a part for each
 * barrier, by itself. */
static bool run_scattered(SyncRun *run, const SyncNode *n, SyncEvent *e,
                          int64_t *lo, int64_t *hi)
{
    const SyncExpr *x = n->exprs, *bar = n->trailing;
    int64_t to_lo[MAX_RANK], to_hi[MAX_RANK], targets[MAX_TARGETS];
    bool some;
    if (!expr_box(run, bar, to_lo, to_hi, &some) || !some)
        return run->failed == NULL;
    unsigned a = interval_after(x, 0), b = interval_after(bar, 0);
    unsigned cut = interval_after(x, a + 1);
    if (cut >= x->rank || b == bar->rank)
        return fail(run, "a scattered argument has too few intervals");
    int64_t ctas = hi[a] - lo[a], parts = to_hi[b] - to_lo[b];
    int64_t first = lo[a], row = lo[cut], at = to_lo[b];
    int64_t rows = (hi[cut] - lo[cut]) / parts;
    ThreadsId all = run->threads;
    bool ok = true;
    e->targets = targets;
    for (int64_t i = 0; i < ctas * parts && ok; i++) {
        run->threads = of_cta(run, all, i / parts);
        lo[a] = first + i / parts;
        hi[a] = lo[a] + 1;
        lo[cut] = row + i % parts * rows;
        hi[cut] = lo[cut] + rows;
        to_lo[b] = at + i % parts;
        to_hi[b] = to_lo[b] + 1;
        e->n_targets = 0;
        ok = add_box(run, bar->tensor, bar->rank, to_lo, to_hi, targets,
                     &e->n_targets, MAX_TARGETS) &&
             send(run, e);
    }
    run->threads = all;
    return ok;
}

static bool run_access(SyncRun *run, const SyncNode *n)
{
    int64_t lo[MAX_RANK], hi[MAX_RANK], targets[MAX_TARGETS];
    SyncEvent e = { .node = n, .lo = lo, .hi = hi, .targets = targets };
    bool some;
    if (n->exprs->rank > MAX_RANK)
        return fail(run, "a tensor has more than 16 dimensions");
    if (!expr_box(run, n->exprs, lo, hi, &some))
        return false;
    if (!n->n_trailing)
        return !some || send(run, &e);
    e.barrier = n->trailing->tensor;
    if (n->scattered)
        return !some || run_scattered(run, n, &e, lo, hi);
    if (n->n_spread)
        return !some || run_parts(run, n, &e, lo, hi);
    if (!find_targets(run, n->trailing, n->n_trailing, targets, MAX_TARGETS,
                      &e.n_targets))
        return false;
    return !some || send(run, &e);
}

/* The point on which all expressions agree. */
static bool find_home(SyncRun *run, const SyncNode *n, int64_t *home,
                      bool *some)
{
    int64_t at[MAX_RANK];
    unsigned rank = n->exprs->rank;
    *some = true;
    for (unsigned i = 0; i < rank; i++) {
        const Affine *point = NULL;
        for (unsigned k = 0; k < n->n_exprs && !point; k++)
            if (!n->exprs[k].len[i])
                point = n->exprs[k].lo[i];
        point = point ? point : n->exprs[0].lo[i];
        if (!eval(run, point, &at[i]))
            return false;
        *some = *some && at[i] >= 0 && at[i] < run->extents[n->tensor][i];
    }
    *home = *some ? sync_flat(rank, run->extents[n->tensor], at) : 0;
    return true;
}

static bool run_sync(SyncRun *run, const SyncNode *n)
{
    int64_t targets[MAX_TARGETS];
    SyncEvent e = { .node = n, .targets = targets, .barrier = n->tensor };
    bool some = true;
    if (n->kind != SYNC_fence) {
        if (n->exprs->rank > MAX_RANK)
            return fail(run, "a barrier has more than 16 dimensions");
        if (!find_home(run, n, &e.home, &some))
            return false;
        if (!some)
            return fail(run, "a barrier is indexed outside of its extents");
        if (!find_targets(run, n->exprs, n->n_exprs, targets, MAX_TARGETS,
                          &e.n_targets))
            return false;
    }
    return send(run, &e);
}

/* ---- control ------------------------------------------------------------ */

static bool run_list(SyncRun *run, const SyncNode *n);

static bool run_alloc(SyncRun *run, const SyncNode *n)
{
    SyncEvent e = { .node = n };
    if (!eval_extents(run, n->tensor))
        return false;
    e.hi = run->extents[n->tensor];
    /* What follows in the list is what the allocation outlives. */
    return send(run, &e) && run_list(run, n->next) &&
           (e.is_free = true, send(run, &e));
}

static bool run_trips(SyncRun *run, const SyncNode *n, SyncTrip *t)
{
    for (; t->trip < t->end; t->trip++) {
        if (run->sink->trip)
            run->sink->trip(run->sink, t);
        if (t->trip >= t->end)
            break;
        run->vars[n->var] = t->trip;
        if (++run->n_events > run->max_events)
            return fail(run, "too many statements at these sizes");
        if (!run_list(run, n->body))
            return false;
    }
    return true;
}

static bool run_loop(SyncRun *run, const SyncNode *n)
{
    int64_t lo = 0, hi = 0;
    if (!eval(run, n->lo, &lo) || !eval(run, n->hi, &hi))
        return false;
    SyncTrip t = {
        .node = n, .first = lo, .end = hi, .trip = lo, .events = run->n_events
    };
    run->known[n->var] = true;
    bool ok = run_trips(run, n, &t);
    if (t.user)
        run->sink->left(run->sink, &t);
    return ok;
}

static bool run_threads(SyncRun *run, const SyncNode *n)
{
    struct SyncNodeSets *s = node_sets(run, n);
    if (!s)
        return false;
    ThreadsId outer = run->threads;
    if (n->var)
        run->known[n->var] = true;
    for (int64_t i = 0; i < s->n; i++) {
        run->threads = threads_and(run->pool, outer, s->tiles[i]);
        if (n->var)
            run->vars[n->var] = i;
        if (run->threads && !run_list(run, n->body))
            return false;
    }
    run->threads = outer;
    return true;
}

static bool run_if(SyncRun *run, const SyncNode *n)
{
    bool holds = false;
    return eval_cond(run, n->cond, &holds) &&
           run_list(run, holds ? n->body : n->orelse);
}

static bool run_node(SyncRun *run, const SyncNode *n)
{
    run->work += SYNC_STEP_WORK;
    if (run->work > run->most_work)
        return fail(run, "too much work at these sizes");
    switch (n->kind) {
    case SYNC_loop:
        return run_loop(run, n);
    case SYNC_threads:
    case SYNC_warps:
        return run_threads(run, n);
    case SYNC_if:
        return run_if(run, n);
    case SYNC_access:
        return run_access(run, n);
    default:
        return run_sync(run, n);
    }
}

static bool run_list(SyncRun *run, const SyncNode *n)
{
    for (; n; n = n->next) {
        if (n->kind == SYNC_alloc)
            return run_alloc(run, n);
        if (!run_node(run, n))
            return false;
    }
    return true;
}

/* ---- runs --------------------------------------------------------------- */

SyncRun *sync_run_new(Arena *arena, const SyncProgram *p, const SyncDevice *d,
                      int64_t *vars, bool *known)
{
    SyncRun *run = ARENA_NEW(arena, SyncRun);
    *run = (SyncRun){ .program = p,
                      .device = d,
                      .arena = arena,
                      .vars = vars,
                      .known = known,
                      .max_events = UINT64_MAX,
                      .most_work = UINT64_MAX };
    unsigned threads = (unsigned)(d->par->block_dim * d->par->cluster_dim);
    run->pool = thread_pool_new(arena, threads);
    run->sets = ARENA_ARRAY(arena, struct SyncNodeSets, p->n_nodes + 1);
    run->extents = ARENA_ARRAY(arena, int64_t *, p->n_tensors);
    known[d->par->cta] = known[d->par->warp] = known[d->par->lane] = true;
    for (unsigned i = 0; i < p->n_tensors; i++) {
        const Value *v = p->tensors[i].value;
        run->extents[i] = ARENA_ARRAY(arena, int64_t, v->type->rank);
        if (p->tensors[i].space == SYNC_global && p->tensors[i].checked)
            eval_extents(run, i);
    }
    return run;
}

bool sync_run_task(SyncRun *run, SyncSink *sink)
{
    run->sink = sink;
    run->threads = threads_all(run->pool);
    return !run->failed && run_list(run, run->device->body);
}
