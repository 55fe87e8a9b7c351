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

static bool in_row(const NestWalk *w, unsigned l)
{
    return w->linear[l] && w->pitch[l] == 1;
}

/* Elements that lie side by side, and raw ones on both sides, all of them
 * inside of the source's map or none. */
static bool copy_run(const Copy *c, int64_t to, int64_t from, int64_t n,
                     bool in_map)
{
    Tensor *d = c->to.tensor;
    const Tensor *s = c->from.tensor;
    if (!c->has_load || !in_map) {
        tensor_fill(d, to, n, c->has_load ? 0.0 : c->value);
        return true;
    }
    if (memchr(s->written + from, 0, (size_t)n))
        return false;
    memcpy(d->bytes + to * d->elem_bytes, s->bytes + from * s->elem_bytes,
           (size_t)n * d->elem_bytes);
    memset(d->written + to, 1, (size_t)n);
    return true;
}

/* From the i-th trip on, how many are inside of both maps as it is. */
static int64_t run_length(const Copy *c, unsigned l, int64_t i)
{
    int64_t n = c->trips->n[l], end = i + 1;
    if (!c->to.inside[l] && !c->from.inside[l])
        return n - i;
    while (end < n && inside_of(&c->to, l, end) == inside_of(&c->to, l, i) &&
           inside_of(&c->from, l, end) == inside_of(&c->from, l, i))
        end++;
    return end - i;
}

/* The innermost loop, in runs where its elements lie side by side. */
static bool copy_last(const Copy *c, unsigned l, int64_t to, int64_t from,
                      bool in_to, bool in_from)
{
    bool rows =
        in_row(&c->to, l) && (!c->has_load || (c->raw && in_row(&c->from, l)));
    for (int64_t i = 0, run = 1; i < c->trips->n[l]; i += run) {
        bool f = in_from && inside_of(&c->from, l, i);
        int64_t nt = to + step_of(&c->to, l, i);
        int64_t nf = from + step_of(&c->from, l, i);
        run = rows ? run_length(c, l, i) : 1;
        if (!in_to || !inside_of(&c->to, l, i))
            continue;
        if (rows ? !copy_run(c, nt, nf, run, f) : !copy_element(c, nt, nf, f))
            return false;
    }
    return true;
}

static bool copy_level(const Copy *c, unsigned l, int64_t to, int64_t from,
                       bool in_to, bool in_from)
{
    if (l + 1 == c->nest->n_loops)
        return copy_last(c, l, to, from, in_to, in_from);
    for (int64_t i = 0; i < c->trips->n[l]; i++) {
        bool t = in_to && inside_of(&c->to, l, i);
        bool f = in_from && inside_of(&c->from, l, i);
        if (!copy_level(c, l + 1, to + step_of(&c->to, l, i),
                        from + step_of(&c->from, l, i), t, f))
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

/* Are the positions 0, 1, 2, ..? */
static bool side_by_side(const int64_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != (int64_t)i)
            return false;
    return true;
}

/* What the tensor core takes of f32. */
static bool is_tf32(const NestChain *c)
{
    return c->n_steps == 1 && c->steps[0]->code == OP_arith_tf32;
}

/* Rows in type T.
 *   load_row: n elements of t at `at` + place[..], to out[0], out[step], ..;
 *       run: they lie side by side. False when one was never written.
 *   fetch: a factor's row, through its chain, which takes doubles: values that
 *       T does not hold go to it one by one
 *   store_row: a row of the result, which is of type T; NaN is canonical */
#define ROWS(T)                                                                \
    static bool load_row_##T(const Tensor *t, int64_t at,                      \
                             const int64_t *place, size_t n, bool run, T *out, \
                             size_t step)                                      \
    {                                                                          \
        if (run) {                                                             \
            if (memchr(t->written + at, 0, n))                                 \
                return false;                                                  \
            scalar_load_##T##s(t->elem, t->bytes + at * t->elem_bytes, n, out, \
                               step);                                          \
            return true;                                                       \
        }                                                                      \
        for (size_t i = 0; i < n; i++) {                                       \
            if (!t->written[at + place[i]])                                    \
                return false;                                                  \
            out[i * step] = (T)tensor_get(t, at + place[i]);                   \
        }                                                                      \
        return true;                                                           \
    }                                                                          \
    static bool fetch_##T(const Contraction *c, unsigned f, int64_t at,        \
                          bool run, T *out, size_t step)                       \
    {                                                                          \
        const Table *sum = &c->table[ROLE_sum];                                \
        const NestChain *chain = &c->nest->chain[f];                           \
        const Tensor *t = c->from[f].tensor;                                   \
        bool held = scalar_info(t->elem)->kind == SK_FLOAT &&                  \
                    t->elem_bytes <= sizeof(T);                                \
        if (!load_row_##T(t, at, sum->from[f], sum->n, run, out, step))        \
            return false;                                                      \
        if (held && is_tf32(chain)) {                                          \
            for (size_t i = 0; i < sum->n; i++)                                \
                out[i * step] = (T)scalar_tf32_truncate((float)out[i * step]); \
            return true;                                                       \
        }                                                                      \
        for (size_t i = 0; chain->n_steps && i < sum->n; i++) {                \
            double x = held ? (double)out[i * step]                            \
                            : tensor_get(t, at + sum->from[f][i]);             \
            out[i * step] = (T)nest_apply(chain, x);                           \
        }                                                                      \
        return true;                                                           \
    }                                                                          \
    static void store_row_##T(Tensor *t, int64_t at, const int64_t *place,     \
                              size_t n, bool run, const T *row)                \
    {                                                                          \
        for (size_t i = 0; i < n; i++)                                         \
            if (!run || row[i] != row[i])                                      \
                tensor_set(t, at + place[i], (double)row[i]);                  \
            else                                                               \
                memcpy(t->bytes + (at + (int64_t)i) * (int64_t)sizeof(T),      \
                       &row[i], sizeof(T));                                    \
        if (run)                                                               \
            memset(t->written + at, 1, n);                                     \
    }

ROWS(float)
ROWS(double)

/* Packs and multiplies one batch in type T. `row` is the factor that has the
 * rows: 0, or 1 where they were swapped. */
#define CONTRACT(T, multiply)                                                 \
    static bool gather_##T(const Contraction *c, size_t batch, unsigned row,  \
                           bool run, T *a, T *b, T *d)                        \
    {                                                                         \
        const Table *rows = &c->table[row ? ROLE_col : ROLE_row];             \
        const Table *cols = &c->table[row ? ROLE_row : ROLE_col];             \
        const Table *sum = &c->table[ROLE_sum], *bt = &c->table[ROLE_batch];  \
        int64_t a0 = c->from[row].base + bt->from[row][batch];                \
        int64_t b0 = c->from[1 - row].base + bt->from[1 - row][batch];        \
        int64_t d0 = c->to.base + bt->to[batch];                              \
        bool a_run = side_by_side(sum->from[row], sum->n);                    \
        bool b_run = side_by_side(sum->from[1 - row], sum->n);                \
        for (size_t i = 0; i < rows->n; i++)                                  \
            if (!fetch_##T(c, row, a0 + rows->from[row][i], a_run,            \
                           a + i * sum->n, 1) ||                              \
                !load_row_##T(c->to.tensor, d0 + rows->to[i], cols->to,       \
                              cols->n, run, d + i * fma_padded(cols->n), 1))  \
                return false;                                                 \
        for (size_t j = 0; j < cols->n; j++)                                  \
            if (!fetch_##T(c, 1 - row, b0 + cols->from[1 - row][j], b_run,    \
                           &b[fma_b_index(sum->n, 0, j)], FMA_PANEL))         \
                return false;                                                 \
        return true;                                                          \
    }                                                                         \
    static bool contract_##T(const Contraction *c)                            \
    {                                                                         \
        unsigned row = c->table[ROLE_col].n == 1 && c->table[ROLE_row].n > 1; \
        const Table *rows = &c->table[row ? ROLE_col : ROLE_row];             \
        const Table *cols = &c->table[row ? ROLE_row : ROLE_col];             \
        size_t depth = c->table[ROLE_sum].n, wide = fma_padded(cols->n);      \
        size_t batches = c->table[ROLE_batch].n, size = rows->n * wide;       \
        bool run = side_by_side(cols->to, cols->n);                           \
        T *a = ARENA_ARRAY(c->scratch, T, rows->n * depth);                   \
        T *b = ARENA_ARRAY(c->scratch, T, wide * depth);                      \
        T *d = ARENA_ARRAY(c->scratch, T, size * batches);                    \
        for (size_t k = 0; k < batches; k++) {                                \
            if (!gather_##T(c, k, row, run, a, b, d + k * size))              \
                return false;                                                 \
            multiply(rows->n, cols->n, depth, a, b, d + k * size);            \
        }                                                                     \
        for (size_t k = 0; k < batches; k++)                                  \
            for (size_t i = 0; i < rows->n; i++)                              \
                store_row_##T(                                                \
                    c->to.tensor,                                             \
                    c->to.base + c->table[ROLE_batch].to[k] + rows->to[i],    \
                    cols->to, cols->n, run, d + k * size + i * wide);         \
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
