/* Recognises native loop nests and keeps their plans by loop.
 *
 *   for i: for j: for k:              loops[0..2], rectangular
 *       %a = mem.load A[..]           chain[0].load
 *       %c = arith.cast %a            chain[0].steps[0]
 *       %b = mem.load B[..]           chain[1].load
 *       mem.reduce D[..], %c, %b      sink
 *
 * Every op of the innermost block must belong to the sink's chains, so that
 * nothing is skipped. */
#include "verify/nest_internal.h"

#include "ir/values.h"

#include <stdlib.h>
#include <string.h>

/* ---- recognition --------------------------------------------------------- */

static bool uses_loops(const Nest *n, const Affine *e)
{
    for (unsigned l = 0; l < n->n_loops; l++)
        if (affine_uses(e, n->vars[l]))
            return true;
    return false;
}

/* Descends through loops that hold nothing but a loop. Task loops are counted
 * one by one and stay out. */
static const Block *find_loops(Nest *n, const Op *loop)
{
    for (;;) {
        if (n->n_loops == NEST_LOOPS || loop->n_results ||
            uses_loops(n, loop->operands[0].u.index) ||
            uses_loops(n, loop->operands[1].u.index))
            return NULL;
        const char *mode = op_attr_str(loop, "mode", "seq");
        if (!strcmp(mode, "tasks"))
            return NULL;
        const Block *b = loop->blocks[0];
        n->loops[n->n_loops] = loop;
        n->vars[n->n_loops++] = b->args[0].var;
        if (!b->first)
            return NULL;
        if (b->first != b->last || b->first->code != OP_ctl_for)
            return b;
        loop = b->first;
    }
}

/* A cast of a floating type to one that has all its values changes none. */
static bool keeps_value(const Op *step)
{
    ScalarType to = step->results[0]->type->elem;
    const ScalarInfo *from = scalar_info(step->operands[0].u.value->type->elem);
    return step->code == OP_arith_cast && from->kind == SK_FLOAT &&
           (to == TY_f32 || to == TY_f64) &&
           from->bytes < scalar_info(to)->bytes;
}

/* Follows v back to a load or a constant; counts the ops that it passes. */
static bool find_chain(const Block *b, const Value *v, NestChain *c,
                       unsigned *seen)
{
    const Op *steps[NEST_STEPS];
    unsigned n = 0;
    if (v->type->kind != TK_scalar)
        return false;
    while (v->def && v->def->parent == b &&
           (v->def->code == OP_arith_cast || op_has(v->def, OPT_TF32))) {
        if (n == NEST_STEPS)
            return false;
        if (!keeps_value(v->def))
            steps[n++] = v->def;
        v = v->def->operands[0].u.value;
        ++*seen;
    }
    for (unsigned i = 0; i < n; i++)
        c->steps[i] = steps[n - 1 - i];
    c->n_steps = n;
    if (!v->def || v->def->parent != b) {
        c->outside = v;
        return true;
    }
    ++*seen;
    if (v->def->code == OP_arith_const)
        c->constant = value_const(v->def);
    else if (v->def->code == OP_mem_load)
        c->load = v->def;
    else
        return false;
    return true;
}

/* Each term of an index may use one loop's variable only. */
static bool find_uses(Arena *arena, const Nest *n, const Access *a,
                      NestAccess *out)
{
    out->access = a;
    out->uses = ARENA_ARRAY(arena, uint32_t, a->rank);
    for (unsigned d = 0; d < a->rank; d++) {
        const Affine *e = a->dims[d].lo;
        if (a->dims[d].kind != DIM_point)
            return false;
        for (uint32_t t = 0; t < e->n_terms; t++) {
            Affine one = { .n_terms = 1, .terms = &e->terms[t] };
            unsigned count = 0;
            for (unsigned l = 0; l < n->n_loops; l++)
                if (affine_uses(&one, n->vars[l])) {
                    out->uses[d] |= 1u << l;
                    count++;
                }
            if (count > 1)
                return false;
        }
    }
    return true;
}

static NestKind find_kind(Arena *arena, Nest *n, const Block *b)
{
    const Op *sink = b->last;
    unsigned seen = 1, total = 0, n_chains = 1;
    for (const Op *op = b->first; op; op = op->next)
        total++;
    if (sink->code == OP_mem_reduce && sink->n_operands == 3)
        n_chains = 2;
    else if (sink->code != OP_mem_store)
        return NEST_none;
    n->sink = sink;
    for (unsigned i = 0; i < n_chains; i++)
        if (!find_chain(b, sink->operands[1 + i].u.value, &n->chain[i], &seen))
            return NEST_none;
    if (seen != total ||
        !find_uses(arena, n, sink->operands[0].u.access, &n->to))
        return NEST_none;
    for (unsigned i = 0; i < n_chains; i++) {
        const Op *load = n->chain[i].load;
        if (!load && n_chains == 2)
            return NEST_none;
        if (load &&
            !find_uses(arena, n, load->operands[0].u.access, &n->from[i]))
            return NEST_none;
    }
    if (n_chains == 1)
        return NEST_copy;
    ScalarType t = n->to.access->base->type->elem;
    return t == TY_f32 || t == TY_f64 ? NEST_contraction : NEST_none;
}

Nest *nest_recognise(Arena *arena, const Op *loop)
{
    Nest *n = ARENA_NEW(arena, Nest);
    const Block *b = find_loops(n, loop);
    n->kind = b ? find_kind(arena, n, b) : NEST_none;
    return n;
}

/* ---- plans by loop ------------------------------------------------------- */

struct NestCache {
    Arena *arena, *scratch;
    size_t n, cap; /* cap: a power of two */
    const Op **keys;
    Nest **plans;
};

GIVES NestCache *nest_cache_new(void)
{
    NestCache *c = calloc(1, sizeof *c);
    if (!c)
        panic("nest_cache_new: out of memory");
    c->arena = arena_new();
    c->scratch = arena_new();
    return c;
}

void nest_cache_free(TAKES NestCache *c)
{
    arena_free(c->arena);
    arena_free(c->scratch);
    free(c);
}

static size_t find_place(const NestCache *c, const Op *op)
{
    size_t i =
        (size_t)(hash_word(HASH_SEED, (uint64_t)(uintptr_t)op)) & (c->cap - 1);
    while (c->keys[i] && c->keys[i] != op)
        i = (i + 1) & (c->cap - 1);
    return i;
}

static void grow(NestCache *c)
{
    NestCache old = *c;
    c->cap = old.cap ? 2 * old.cap : 64;
    c->keys = ARENA_ARRAY(c->arena, const Op *, c->cap);
    c->plans = ARENA_ARRAY(c->arena, Nest *, c->cap);
    for (size_t i = 0; i < old.cap; i++)
        if (old.keys[i]) {
            size_t at = find_place(c, old.keys[i]);
            c->keys[at] = old.keys[i];
            c->plans[at] = old.plans[i];
        }
}

static const Nest *find_plan(NestCache *c, const Op *loop)
{
    if (2 * c->n >= c->cap)
        grow(c);
    size_t at = find_place(c, loop);
    if (!c->keys[at]) {
        c->keys[at] = loop;
        c->plans[at] = nest_recognise(c->arena, loop);
        c->n++;
    }
    return c->plans[at];
}

/* ---- numbers of an access ------------------------------------------------ */

typedef struct DimRange {
    int64_t lo, hi; /* both inclusive */
} DimRange;

static bool quiet_index(Scope *env, const Affine *e, int64_t *out);

static bool quiet_atom(Scope *env, const Atom *a, int64_t *out)
{
    int64_t x;
    if (a->kind == ATOM_var) {
        *out = env->vars[a->var];
        return true;
    }
    if (a->kind == ATOM_opaque || !quiet_index(env, a->arg, &x))
        return false;
    int64_t q = x / a->divisor, r = x % a->divisor;
    if (r < 0) {
        q--;
        r += a->divisor;
    }
    *out = a->kind == ATOM_floordiv ? q : r;
    return true;
}

/* An index without opaque atoms; false on those and on overflow. */
static bool quiet_index(Scope *env, const Affine *e, int64_t *out)
{
    int64_t sum = e->constant;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        int64_t x;
        if (!quiet_atom(env, e->terms[i].atom, &x) ||
            __builtin_mul_overflow(x, e->terms[i].coef, &x) ||
            __builtin_add_overflow(sum, x, &sum))
            return false;
    }
    *out = sum;
    return true;
}

/* A dimension of the view against its extent, or against the map's. */
typedef struct DimBounds {
    int64_t shift, extent;
    bool checked, map;
} DimBounds;

static DimBounds dim_bounds(const View *v, unsigned d)
{
    DimBounds b = { .extent = v->extent[d], .checked = true };
    for (unsigned k = 0; v->is_map && k < v->map_rank; k++)
        if (v->map_dim[k] == (int)d)
            return (DimBounds){ .shift = v->map_lo[k],
                                .extent = v->map_extent[k],
                                .map = true };
    return b;
}

typedef struct WalkState {
    Scope *env;
    const Nest *nest;
    const NestTrips *trips;
    const View *view;
    Arena *scratch;
    NestWalk *out;
} WalkState;

/* Adds dimension d's share of loop l to the tables. */
static bool walk_loop(WalkState *w, const Affine *e, unsigned d, unsigned l,
                      int64_t at_lo, bool alone, DimRange *range)
{
    int64_t n = w->trips->n[l], min = 0, max = 0;
    DimBounds b = dim_bounds(w->view, d);
    NestWalk *out = w->out;
    VarId v = w->nest->vars[l];
    if (!out->step[l])
        out->step[l] = ARENA_ARRAY(w->scratch, int64_t, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t x;
        w->env->vars[v] = w->trips->lo[l] + i;
        if (!quiet_index(w->env, e, &x))
            return false;
        int64_t delta = x - at_lo;
        min = delta < min ? delta : min;
        max = delta > max ? delta : max;
        out->step[l][i] += delta * w->view->stride[d];
        int64_t in_map = b.shift + x;
        if (b.map && alone && (in_map < 0 || in_map >= b.extent)) {
            if (!out->inside[l]) {
                out->inside[l] = ARENA_ARRAY(w->scratch, unsigned char, n);
                memset(out->inside[l], 1, (size_t)n);
            }
            out->inside[l][i] = 0;
        }
    }
    w->env->vars[v] = w->trips->lo[l];
    range->lo += min;
    range->hi += max;
    return true;
}

static bool walk_dim(WalkState *w, const NestAccess *a, unsigned d)
{
    const Affine *e = a->access->dims[d].lo;
    int64_t at_lo;
    uint32_t uses = a->uses[d];
    bool alone = (uses & (uses - 1)) == 0;
    if (!quiet_index(w->env, e, &at_lo))
        return false;
    DimRange r = { at_lo, at_lo };
    w->out->base += at_lo * w->view->stride[d];
    for (unsigned l = 0; l < w->nest->n_loops; l++)
        if ((uses >> l & 1) && !walk_loop(w, e, d, l, at_lo, alone, &r))
            return false;
    DimBounds b = dim_bounds(w->view, d);
    if (!w->view->is_map_root && (r.lo < 0 || r.hi >= w->view->extent[d]))
        return false;
    if (!b.map || (r.lo + b.shift >= 0 && r.hi + b.shift < b.extent))
        return true;
    if (!uses)
        w->out->outside = true;
    return alone;
}

static void find_linear(const NestTrips *trips, NestWalk *out, unsigned l)
{
    const int64_t *s = out->step[l];
    int64_t n = trips->n[l], pitch = n > 1 && s ? s[1] : 0;
    out->linear[l] = true;
    out->pitch[l] = pitch;
    for (int64_t i = 0; s && i < n; i++)
        out->linear[l] = out->linear[l] && s[i] == i * pitch;
}

bool nest_walk(Interp *in, Scope *env, const Nest *nest, const NestTrips *trips,
               const NestAccess *a, Arena *scratch, NestWalk *out)
{
    (void)in;
    const View *v = scope_slot(env, a->access->base)->view;
    if (!v || v->rank != a->access->rank)
        return false;
    *out = (NestWalk){ .tensor = v->tensor, .base = v->offset };
    WalkState w = { env, nest, trips, v, scratch, out };
    for (unsigned k = 0; v->is_map && k < v->map_rank; k++)
        if (v->map_dim[k] < 0 &&
            (v->map_lo[k] < 0 || v->map_lo[k] >= v->map_extent[k]))
            out->outside = true;
    for (unsigned d = 0; d < v->rank; d++)
        if (!walk_dim(&w, a, d))
            return false;
    for (unsigned l = 0; l < nest->n_loops; l++)
        find_linear(trips, out, l);
    return true;
}

double nest_apply(const NestChain *c, double x)
{
    Sem sem = values_sem();
    for (unsigned i = 0; i < c->n_steps; i++)
        x = value_arith(&sem, c->steps[i], &x);
    return x;
}

/* ---- running ------------------------------------------------------------- */

/* The trips of the loops; false when there are none or few, or when a bound
 * cannot be computed here. */
static bool find_trips(Scope *env, const Nest *nest, NestTrips *t)
{
    double total = 1.0;
    for (unsigned l = 0; l < nest->n_loops; l++) {
        int64_t hi;
        const Op *op = nest->loops[l];
        if (!quiet_index(env, op->operands[0].u.index, &t->lo[l]) ||
            !quiet_index(env, op->operands[1].u.index, &hi) || hi <= t->lo[l] ||
            hi - t->lo[l] > INT32_MAX)
            return false;
        t->n[l] = hi - t->lo[l];
        total *= (double)t->n[l];
    }
    return total >= 8.0;
}

bool nest_run(Interp *in, Scope *env, const Op *loop)
{
    const Nest *nest = find_plan(in->nests, loop);
    NestTrips trips;
    if (nest->kind == NEST_none || !find_trips(env, nest, &trips))
        return false;
    for (unsigned l = 0; l < nest->n_loops; l++)
        env->vars[nest->vars[l]] = trips.lo[l];
    Arena *scratch = arena_new();
    bool ok = nest->kind == NEST_copy
                  ? nest_run_copy(in, env, nest, &trips, scratch)
                  : nest_run_contraction(in, env, nest, &trips, scratch);
    arena_free(scratch);
    return ok;
}
