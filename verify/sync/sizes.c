/* Deriving sizes: the trip counts of loops as functions of one size at a time,
 * inverted by search, and the asserts mended by moving values upwards. */
#include "verify/sync/sizes.h"

#include <string.h>

enum { MOST_SIZE = 1 << 16, MOST_MEND = 4096, MOST_VECTORS = 24 };

/* A loop whose trip count depends on sizes. */
typedef struct Trips {
    const Affine *lo, *hi;
    bool tasks;
} Trips;

typedef struct Derive {
    Arena *arena;
    const SyncProgram *p;
    SyncSizes *out;
    int64_t *values; /* being tried, by parameter */
    bool *pinned;
    VEC(Trips) loops;
} Derive;

SyncParams sync_params(Arena *arena, const SyncProgram *p)
{
    const Block *b = p->proc->blocks[0];
    VarId *vars = ARENA_ARRAY(arena, VarId, b->n_args);
    SyncParams out = { 0, vars };
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value)
            vars[out.n++] = b->args[i].var;
    return out;
}

/* ---- values ------------------------------------------------------------- */

typedef struct Values {
    const SyncParams *params;
    const int64_t *values;
} Values;

static bool atom_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Values *v = env->user;
    for (unsigned i = 0; atom->kind == ATOM_var && i < v->params->n; i++)
        if (v->params->vars[i] == atom->var) {
            *out = v->values[i];
            return true;
        }
    return false;
}

bool sync_sizes_fit(const SyncProgram *p, const SyncParams *params,
                    const int64_t *values, const Op **op)
{
    Values v = { params, values };
    Env env = { atom_value, &v };
    for (const Op *a = p->proc->blocks[0]->first; a; a = a->next) {
        bool holds;
        if (a->code != OP_ctl_assert ||
            !cond_eval(a->operands[0].u.cond, &env, &holds) || holds)
            continue;
        if (op)
            *op = a;
        return false;
    }
    return true;
}

void sync_sizes_print(StrBuf *out, const SyncProgram *p,
                      const SyncParams *params, const int64_t *values)
{
    for (unsigned i = 0; i < params->n; i++)
        strbuf_addf(out, "%s%s=%lld", i ? ", " : "",
                    var_get(p->m->exprs, params->vars[i])->name,
                    (long long)values[i]);
}

/* ---- loops -------------------------------------------------------------- */

static void add_loop(Derive *d, const Affine *lo, const Affine *hi, bool tasks)
{
    Trips t = { lo, hi, tasks };
    VEC_PUSH(d->arena, &d->loops, t);
}

static void add_loops(Derive *d, const SyncNode *n)
{
    for (; n; n = n->next) {
        if (n->kind == SYNC_loop)
            add_loop(d, n->lo, n->hi, false);
        add_loops(d, n->body);
        add_loops(d, n->orelse);
    }
}

/* Trips of the loop at the values tried; false where they are not known. */
static bool trips(const Derive *d, const Trips *t, int64_t *out)
{
    Values v = { &d->out->params, d->values };
    Env env = { atom_value, &v };
    int64_t lo, hi;
    if (!affine_eval(t->lo, &env, &lo) || !affine_eval(t->hi, &env, &hi))
        return false;
    *out = hi > lo ? hi - lo : 0;
    return true;
}

static bool loop_uses(const Trips *t, VarId v)
{
    return affine_uses(t->lo, v) || affine_uses(t->hi, v);
}

/* ---- vectors ------------------------------------------------------------ */

/* Moves parameters that are not pinned until the asserts hold. */
static bool mend(Derive *d)
{
    const SyncParams *params = &d->out->params;
    const Op *broken = NULL;
    for (unsigned round = 0; round < 4; round++) {
        if (sync_sizes_fit(d->p, params, d->values, &broken))
            return true;
        bool mended = false;
        for (unsigned i = 0; i < params->n && !mended; i++) {
            Values v = { params, d->values };
            Env env = { atom_value, &v };
            int64_t old = d->values[i];
            if (d->pinned[i] ||
                !cond_uses(broken->operands[0].u.cond, params->vars[i]))
                continue;
            for (int64_t k = 0; k < MOST_MEND && !mended; k++) {
                d->values[i] = k < old ? old - k : k + 1;
                mended = cond_eval(broken->operands[0].u.cond, &env, &mended) &&
                         mended;
            }
            if (!mended)
                d->values[i] = old;
        }
        if (!mended)
            return false;
    }
    return sync_sizes_fit(d->p, params, d->values, NULL);
}

/* The same for values that are wished for: each moves up first, as far as a
 * tile edge is ragged. */
static bool mend_upwards(Derive *d)
{
    const SyncParams *params = &d->out->params;
    const Op *broken = NULL;
    for (unsigned i = 0; i < params->n; i++) {
        int64_t old = d->values[i];
        for (int64_t k = 0; k < 64; k++) {
            if (sync_sizes_fit(d->p, params, d->values, &broken))
                return true;
            if (!cond_uses(broken->operands[0].u.cond, params->vars[i]))
                break;
            d->values[i] = old + k + 1;
        }
        if (!sync_sizes_fit(d->p, params, d->values, &broken) &&
            cond_uses(broken->operands[0].u.cond, params->vars[i]))
            d->values[i] = old;
    }
    return mend(d);
}

static void add_vector(Derive *d)
{
    const SyncParams *params = &d->out->params;
    if (d->out->vectors.len >= MOST_VECTORS)
        return;
    for (size_t i = 0; i < d->out->vectors.len; i++)
        if (!memcmp(d->out->vectors.data[i], d->values,
                    params->n * sizeof *d->values))
            return;
    VEC_PUSH(d->arena, &d->out->vectors,
             (const int64_t *)arena_memdup(d->arena, d->values,
                                           params->n * sizeof *d->values));
}

/* The least value of parameter i from which on the loop has n trips. */
static bool value_for_trips(Derive *d, unsigned i, const Trips *t, int64_t n)
{
    int64_t lo = 1, hi = MOST_SIZE, found;
    while (lo < hi) {
        d->values[i] = lo + (hi - lo) / 2;
        if (!trips(d, t, &found))
            return false;
        if (found >= n)
            hi = d->values[i];
        else
            lo = d->values[i] + 1;
    }
    d->values[i] = lo;
    return trips(d, t, &found) && found == n;
}

/* Tries parameter i at the value that gives the loop n trips, or the next ones
 * that the asserts allow. */
static void try_trips(Derive *d, unsigned i, const Trips *t, int64_t n,
                      bool add, const int64_t *base)
{
    unsigned n_params = d->out->params.n;
    memcpy(d->values, base, n_params * sizeof *d->values);
    if (!value_for_trips(d, i, t, n))
        return;
    int64_t from = d->values[i];
    for (int64_t k = 0; k < 64; k++) {
        memcpy(d->values, base, n_params * sizeof *d->values);
        d->values[i] = from + k;
        d->pinned[i] = true;
        bool ok = mend(d);
        d->pinned[i] = false;
        if (!ok)
            continue;
        if (add)
            add_vector(d);
        return;
    }
}

/* A value of parameter i that gives the loop n trips: the least one, or for
 * n == 1 of a task loop the greatest, which is a whole tile. */
static bool good_value(Derive *d, unsigned i, const Trips *t, int64_t n)
{
    int64_t old = d->values[i], found;
    if (t->tasks && n == 1 && value_for_trips(d, i, t, 2)) {
        d->values[i]--;
        if (trips(d, t, &found) && found == 1)
            return true;
    }
    d->values[i] = old;
    return value_for_trips(d, i, t, n);
}

/* All parameters at once: task loops and the others so many trips each. */
static void find_base(Derive *d, int64_t *base, int64_t tasks, int64_t seq)
{
    const SyncParams *params = &d->out->params;
    for (unsigned i = 0; i < params->n; i++) {
        VarKind kind = var_get(d->p->m->exprs, params->vars[i])->kind;
        base[i] = kind == VAR_size ? 2 : kind == VAR_bool ? 1 : 0;
    }
    for (unsigned i = 0; i < params->n; i++)
        for (size_t k = 0; k < d->loops.len; k++) {
            const Trips *t = &d->loops.data[k];
            if (!loop_uses(t, params->vars[i]))
                continue;
            memcpy(d->values, base, params->n * sizeof *base);
            if (good_value(d, i, t, t->tasks ? tasks : seq)) {
                memcpy(base, d->values, params->n * sizeof *base);
                break;
            }
        }
    memcpy(d->values, base, params->n * sizeof *base);
    if (mend_upwards(d))
        memcpy(base, d->values, params->n * sizeof *base);
}

static int64_t depth_of(const SyncProgram *p)
{
    return p->depth < 1 ? 1 : p->depth > 8 ? 8 : p->depth;
}

static void vary(Derive *d, unsigned i, const int64_t *base)
{
    int64_t depth = depth_of(d->p);
    int64_t seq[] = { 0, 1, depth - 1, depth, depth + 1, 2 * depth + 1 };
    int64_t tasks[] = { 1, 2, 3 };
    for (size_t k = 0; k < d->loops.len; k++) {
        const Trips *t = &d->loops.data[k];
        if (!loop_uses(t, d->out->params.vars[i]))
            continue;
        unsigned n = t->tasks ? 3 : 6;
        for (unsigned j = 0; j < n; j++)
            if (t->tasks || seq[j] >= 0)
                try_trips(d, i, t, t->tasks ? tasks[j] : seq[j], true, base);
    }
}

void sync_sizes_derive(Arena *arena, const SyncProgram *p, SyncSizes *out)
{
    Derive d = { .arena = arena, .p = p, .out = out };
    out->params = sync_params(arena, p);
    unsigned n = out->params.n;
    d.values = ARENA_ARRAY(arena, int64_t, n);
    d.pinned = ARENA_ARRAY(arena, bool, n);
    int64_t *base = ARENA_ARRAY(arena, int64_t, n);
    for (unsigned i = 0; i < p->n_devices; i++) {
        const SyncDevice *dev = &p->devices[i];
        for (unsigned k = 0; k < dev->n_tasks; k++)
            add_loop(&d, dev->task_lo[k], dev->task_hi[k], true);
        add_loops(&d, dev->body);
    }
    int64_t depth = depth_of(p);
    find_base(&d, base, 2, depth + 1);
    if (sync_sizes_fit(p, &out->params, d.values, NULL))
        add_vector(&d);
    find_base(&d, base, 1, 2);
    if (sync_sizes_fit(p, &out->params, d.values, NULL))
        add_vector(&d);
    for (unsigned i = 0; i < n; i++)
        vary(&d, i, base);
}
