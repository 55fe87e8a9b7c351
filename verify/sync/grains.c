/* How finely each tensor must be cut: along a dimension, the greatest common
 * divisor of where all accesses may begin and end. */
#include "verify/sync/machine.h"

typedef struct Grains {
    const SyncRun *run;
    int64_t **out;
} Grains;

/* Of all values that e may take, what is known now being fixed. */
static int64_t grain_of(const SyncRun *run, const Affine *e)
{
    int64_t constant = e->constant, g = 0;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        Term t = { 1, e->terms[i].atom };
        Affine one = { .n_terms = 1, .terms = &t };
        int64_t v;
        if (!sync_run_eval(run, &one, &v) ||
            __builtin_mul_overflow(v, e->terms[i].coef, &v) ||
            __builtin_add_overflow(constant, v, &constant))
            g = int_gcd(g, e->terms[i].coef);
    }
    return int_gcd(g, constant);
}

static int64_t clip_grain(const SyncRun *run, const SyncExpr *x, unsigned i,
                          int64_t g)
{
    int64_t lo, len, extent = run->extents[x->tensor][i];
    if (!sync_run_eval(run, x->clip_lo[i], &lo) ||
        !sync_run_eval(run, x->clip_len[i], &len))
        return 1;
    return lo + len == extent ? int_gcd(g, lo)
                              : int_gcd(int_gcd(g, lo), lo + len);
}

/* The parts into which a scattered interval falls. */
static int64_t part_of(const Grains *gs, const SyncNode *n, int64_t len)
{
    for (unsigned i = 0; i < n->trailing->rank; i++) {
        int64_t parts;
        if (n->trailing->len[i])
            return sync_run_eval(gs->run, n->trailing->len[i], &parts) &&
                           parts > 0 && len % parts == 0
                       ? len / parts
                       : 1;
    }
    return len;
}

/* Intervals that are spread are taken element by element, a scattered one by
 * its parts. */
static void add_expr(Grains *gs, const SyncNode *n)
{
    const SyncExpr *x = n->exprs;
    unsigned n_single = n->n_spread;
    bool scattered = n->scattered;
    for (unsigned i = 0; i < x->rank; i++) {
        int64_t g = gs->out[x->tensor][i];
        bool single = !x->len[i] || n_single > 0;
        n_single -= x->len[i] && n_single > 0;
        g = int_gcd(g, grain_of(gs->run, x->lo[i]));
        int64_t len = single ? 1 : grain_of(gs->run, x->len[i]);
        if (!single && scattered) {
            len = part_of(gs, n, len);
            scattered = false;
        }
        g = int_gcd(g, len);
        if (x->clip_lo)
            g = clip_grain(gs->run, x, i, g);
        gs->out[x->tensor][i] = g;
    }
}

static void add_nodes(Grains *gs, const SyncNode *n)
{
    for (; n; n = n->next) {
        if (n->kind == SYNC_access)
            add_expr(gs, n);
        add_nodes(gs, n->body);
        add_nodes(gs, n->orelse);
    }
}

int64_t **sync_grains(Arena *arena, const SyncRun *run)
{
    const SyncProgram *p = run->program;
    Grains gs = { run, ARENA_ARRAY(arena, int64_t *, p->n_tensors) };
    for (unsigned i = 0; i < p->n_tensors; i++)
        gs.out[i] =
            ARENA_ARRAY(arena, int64_t, p->tensors[i].value->type->rank);
    add_nodes(&gs, run->device->body);
    for (unsigned i = 0; i < p->n_tensors; i++) {
        const SyncTensor *t = &p->tensors[i];
        const SyncTensor *guard = &p->tensors[t->guard];
        bool ring = t->value->ring_dim >= 0 && guard->space == SYNC_barrier;
        for (unsigned k = 0; k < t->value->type->rank; k++)
            if (!gs.out[i][k] || t->space == SYNC_barrier ||
                (ring && k < guard->value->type->rank))
                gs.out[i][k] = 1;
    }
    return gs.out;
}
