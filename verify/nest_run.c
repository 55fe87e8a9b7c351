/* Runs recognised nests on tables of positions.
 *
 * A copy walks the loops in order. A contraction sorts its loops into those of
 * the result that only the first factor uses (rows), only the second (columns),
 * both (batch), and those that are summed over; gathers the operands into
 * packed arrays, multiplies (verify/fma.h), and scatters. Gathering checks
 * everything, so that nothing is changed before the nest is sure to succeed. */
#include "verify/nest_internal.h"

#include "verify/fma.h"

#include <string.h>

/* ---- copies -------------------------------------------------------------- */

typedef struct Copy {
    const Nest *nest;
    const NestTrips *trips;
    NestWalk to, from;
    const NestChain *chain;
    bool has_load, raw; /* raw: bytes as they are */
    double value;       /* without a load: after the chain */
} Copy;

static int64_t step_of(const NestWalk *w, unsigned l, int64_t i)
{
    return w->step[l] ? w->step[l][i] : 0;
}

static bool inside_of(const NestWalk *w, unsigned l, int64_t i)
{
    return !w->inside[l] || w->inside[l][i];
}

static bool copy_element(const Copy *c, int64_t to, int64_t from, bool in_map)
{
    Tensor *d = c->to.tensor;
    const Tensor *s = c->from.tensor;
    if (!c->has_load) {
        tensor_set(d, to, c->value);
        return true;
    }
    if (!in_map) {
        tensor_set(d, to, nest_apply(c->chain, 0.0));
        return true;
    }
    if (!s->written[from])
        return false;
    if (!c->raw) {
        tensor_set(d, to, nest_apply(c->chain, tensor_get(s, from)));
        return true;
    }
    memcpy(d->bytes + to * d->elem_bytes, s->bytes + from * s->elem_bytes,
           d->elem_bytes);
    d->written[to] = 1;
    return true;
}

/* A whole row of raw elements that lie side by side on both sides. */
static bool copy_row(const Copy *c, unsigned l, int64_t to, int64_t from,
                     bool *done)
{
    int64_t n = c->trips->n[l];
    *done = c->has_load && c->raw && c->to.linear[l] && c->from.linear[l] &&
            c->to.pitch[l] == 1 && c->from.pitch[l] == 1 && !c->to.inside[l] &&
            !c->from.inside[l];
    if (!*done)
        return true;
    Tensor *d = c->to.tensor;
    const Tensor *s = c->from.tensor;
    if (memchr(s->written + from, 0, (size_t)n))
        return false;
    memcpy(d->bytes + to * d->elem_bytes, s->bytes + from * s->elem_bytes,
           (size_t)n * d->elem_bytes);
    memset(d->written + to, 1, (size_t)n);
    return true;
}

static bool copy_level(const Copy *c, unsigned l, int64_t to, int64_t from,
                       bool in_to, bool in_from)
{
    bool last = l + 1 == c->nest->n_loops, done = false;
    if (last && in_to && in_from && !copy_row(c, l, to, from, &done))
        return false;
    if (done)
        return true;
    for (int64_t i = 0; i < c->trips->n[l]; i++) {
        bool t = in_to && inside_of(&c->to, l, i);
        bool f = in_from && inside_of(&c->from, l, i);
        int64_t nt = to + step_of(&c->to, l, i);
        int64_t nf = from + step_of(&c->from, l, i);
        if (!last && !copy_level(c, l + 1, nt, nf, t, f))
            return false;
        if (last && t && !copy_element(c, nt, nf, f))
            return false;
    }
    return true;
}

bool nest_run_copy(Interp *in, Scope *env, const Nest *nest,
                   const NestTrips *trips, Arena *scratch)
{
    Copy c = { .nest = nest, .trips = trips, .chain = &nest->chain[0] };
    c.has_load = c.chain->load != NULL;
    if (!nest_walk(in, env, nest, trips, &nest->to, scratch, &c.to))
        return false;
    if (c.has_load) {
        if (!nest_walk(in, env, nest, trips, &nest->from[0], scratch,
                       &c.from) ||
            c.from.tensor == c.to.tensor)
            return false;
        c.raw = !c.chain->n_steps && c.from.tensor->elem == c.to.tensor->elem;
    } else {
        double x = c.chain->outside ? scope_slot(env, c.chain->outside)->f
                                    : c.chain->constant;
        c.value = nest_apply(c.chain, x);
    }
    return copy_level(&c, 0, c.to.base, c.from.base, !c.to.outside,
                      !c.from.outside);
}

/* ---- contractions -------------------------------------------------------- */

typedef enum Role { ROLE_batch, ROLE_row, ROLE_col, ROLE_sum, ROLE_count } Role;

/* Positions that the loops of one role add, in the loops' order. */
typedef struct Table {
    size_t n;
    int64_t *to, *from[2];
} Table;

typedef struct Contraction {
    const Nest *nest;
    const NestTrips *trips;
    NestWalk to, from[2];
    Role role[NEST_LOOPS];
    Table table[ROLE_count];
    Arena *scratch;
} Contraction;

static bool walk_moves(const Contraction *c, const NestWalk *w, unsigned l)
{
    return w->step[l] && c->trips->n[l] > 1;
}

static void find_roles(Contraction *c)
{
    for (unsigned l = 0; l < c->nest->n_loops; l++) {
        bool d = walk_moves(c, &c->to, l);
        bool a = walk_moves(c, &c->from[0], l);
        bool b = walk_moves(c, &c->from[1], l);
        c->role[l] = !d       ? ROLE_sum
                     : a && b ? ROLE_batch
                     : b      ? ROLE_col
                              : ROLE_row;
    }
}

/* Whether different iterations of the result's loops meet different elements:
 * sorted by pitch, each loop must step over all that the smaller ones reach. */
static bool result_is_injective(const Contraction *c)
{
    bool used[NEST_LOOPS] = { 0 };
    int64_t reach = 0;
    for (;;) {
        int best = -1;
        for (unsigned l = 0; l < c->nest->n_loops; l++) {
            if (c->role[l] == ROLE_sum || used[l])
                continue;
            if (!c->to.linear[l] || c->to.pitch[l] <= 0)
                return false;
            if (best < 0 || c->to.pitch[l] < c->to.pitch[best])
                best = (int)l;
        }
        if (best < 0)
            return true;
        if (c->to.pitch[best] <= reach)
            return false;
        used[best] = true;
        reach += c->to.pitch[best] * (c->trips->n[best] - 1);
    }
}

static bool make_table(Contraction *c, Role role)
{
    Table *t = &c->table[role];
    t->n = 1;
    for (unsigned l = 0; l < c->nest->n_loops; l++)
        if (c->role[l] == role)
            t->n *= (size_t)c->trips->n[l];
    if (t->n > (size_t)1 << 28)
        return false;
    t->to = ARENA_ARRAY(c->scratch, int64_t, t->n);
    t->from[0] = ARENA_ARRAY(c->scratch, int64_t, t->n);
    t->from[1] = ARENA_ARRAY(c->scratch, int64_t, t->n);
    size_t block = t->n;
    for (unsigned l = 0; l < c->nest->n_loops; l++) {
        if (c->role[l] != role)
            continue;
        size_t trips = (size_t)c->trips->n[l];
        block /= trips;
        for (size_t k = 0; k < t->n; k++) {
            int64_t i = (int64_t)(k / block % trips);
            t->to[k] += step_of(&c->to, l, i);
            t->from[0][k] += step_of(&c->from[0], l, i);
            t->from[1][k] += step_of(&c->from[1], l, i);
        }
    }
    return true;
}

/* One factor's element, or false when it was never written. */
static bool fetch(const Contraction *c, unsigned f, int64_t at, double *out)
{
    const Tensor *t = c->from[f].tensor;
    const NestChain *chain = &c->nest->chain[f];
    if (!t->written[at])
        return false;
    *out = tensor_get(t, at);
    if (chain->n_steps)
        *out = nest_apply(chain, *out);
    return true;
}

/* Packs and multiplies one batch in type T. `row` is the factor that has the
 * rows: 0, or 1 where they were swapped. */
#define CONTRACT(T, multiply)                                                 \
    static bool gather_##T(const Contraction *c, size_t batch, unsigned row,  \
                           T *a, T *b, T *d)                                  \
    {                                                                         \
        const Table *rows = &c->table[row ? ROLE_col : ROLE_row];             \
        const Table *cols = &c->table[row ? ROLE_row : ROLE_col];             \
        const Table *sum = &c->table[ROLE_sum], *bt = &c->table[ROLE_batch];  \
        const NestWalk *fa = &c->from[row], *fb = &c->from[1 - row];          \
        int64_t a0 = fa->base + bt->from[row][batch];                         \
        int64_t b0 = fb->base + bt->from[1 - row][batch];                     \
        int64_t d0 = c->to.base + bt->to[batch];                              \
        double x;                                                             \
        for (size_t i = 0; i < rows->n; i++)                                  \
            for (size_t r = 0; r < sum->n; r++) {                             \
                if (!fetch(c, row,                                            \
                           a0 + rows->from[row][i] + sum->from[row][r], &x))  \
                    return false;                                             \
                a[i * sum->n + r] = (T)x;                                     \
            }                                                                 \
        for (size_t j = 0; j < cols->n; j++)                                  \
            for (size_t r = 0; r < sum->n; r++) {                             \
                if (!fetch(c, 1 - row,                                        \
                           b0 + cols->from[1 - row][j] +                      \
                               sum->from[1 - row][r],                         \
                           &x))                                               \
                    return false;                                             \
                b[fma_b_index(sum->n, r, j)] = (T)x;                          \
            }                                                                 \
        for (size_t i = 0; i < rows->n; i++)                                  \
            for (size_t j = 0; j < cols->n; j++) {                            \
                int64_t at = d0 + rows->to[i] + cols->to[j];                  \
                if (!c->to.tensor->written[at])                               \
                    return false;                                             \
                d[i * fma_padded(cols->n) + j] =                              \
                    (T)tensor_get(c->to.tensor, at);                          \
            }                                                                 \
        return true;                                                          \
    }                                                                         \
    static bool contract_##T(const Contraction *c)                            \
    {                                                                         \
        unsigned row = c->table[ROLE_col].n == 1 && c->table[ROLE_row].n > 1; \
        const Table *rows = &c->table[row ? ROLE_col : ROLE_row];             \
        const Table *cols = &c->table[row ? ROLE_row : ROLE_col];             \
        size_t depth = c->table[ROLE_sum].n, wide = fma_padded(cols->n);      \
        size_t batches = c->table[ROLE_batch].n, size = rows->n * wide;       \
        T *a = ARENA_ARRAY(c->scratch, T, rows->n * depth);                   \
        T *b = ARENA_ARRAY(c->scratch, T, wide * depth);                      \
        T *d = ARENA_ARRAY(c->scratch, T, size * batches);                    \
        for (size_t k = 0; k < batches; k++) {                                \
            if (!gather_##T(c, k, row, a, b, d + k * size))                   \
                return false;                                                 \
            multiply(rows->n, cols->n, depth, a, b, d + k * size);            \
        }                                                                     \
        for (size_t k = 0; k < batches; k++)                                  \
            for (size_t i = 0; i < rows->n; i++)                              \
                for (size_t j = 0; j < cols->n; j++)                          \
                    tensor_set(c->to.tensor,                                  \
                               c->to.base + c->table[ROLE_batch].to[k] +      \
                                   rows->to[i] + cols->to[j],                 \
                               (double)d[k * size + i * wide + j]);           \
        return true;                                                          \
    }

CONTRACT(float, fma_f32)
CONTRACT(double, fma_f64)

bool nest_run_contraction(Interp *in, Scope *env, const Nest *nest,
                          const NestTrips *trips, Arena *scratch)
{
    Contraction c = { .nest = nest, .trips = trips, .scratch = scratch };
    if (!nest_walk(in, env, nest, trips, &nest->to, scratch, &c.to) ||
        c.to.outside)
        return false;
    for (unsigned f = 0; f < 2; f++)
        if (!nest_walk(in, env, nest, trips, &nest->from[f], scratch,
                       &c.from[f]) ||
            c.from[f].outside || c.from[f].tensor == c.to.tensor)
            return false;
    for (unsigned l = 0; l < nest->n_loops; l++)
        if (c.to.inside[l] || c.from[0].inside[l] || c.from[1].inside[l])
            return false;
    find_roles(&c);
    if (!result_is_injective(&c))
        return false;
    for (int r = 0; r < ROLE_count; r++)
        if (!make_table(&c, (Role)r))
            return false;
    return c.to.tensor->elem == TY_f32 ? contract_float(&c)
                                       : contract_double(&c);
}
