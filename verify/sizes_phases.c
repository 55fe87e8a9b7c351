/* Sets for all phases: a base with few trips, and from it one parameter after
 * the other at the values that its loops ask for. */
#include "verify/sizes_impl.h"

#include <string.h>

/* What questions about one program may cost, as provers count effort. */
#define MOST_ASKED UINT64_C(200000000)

enum { MOST_SETS = 96, TRIES = 64 };

bool chooser_add(Chooser *c, SizeSets *out)
{
    for (size_t i = 0; i < out->len; i++)
        if (sizes_equal(&out->data[i], &c->set))
            return true;
    if (out->len >= MOST_SETS)
        return false;
    VEC_PUSH(c->arena, out, chooser_keep(c));
    return true;
}

void chooser_load(Chooser *c, const int64_t *values)
{
    if (c->set.n)
        memcpy(c->values, values, c->set.n * sizeof *values);
}

/* The greatest value of parameter i that gives the loop n trips: its last tile
 * is whole. The least otherwise. */
static bool set_trips(Chooser *c, unsigned i, const SizeLoop *l, int64_t n,
                      bool whole)
{
    int64_t old = c->values[i];
    if (whole && chooser_set_trips(c, i, l, n + 1)) {
        c->values[i] -= c->step[i];
        if (c->values[i] > 0 && chooser_trips(c, l) == n)
            return true;
    }
    c->values[i] = old;
    return chooser_set_trips(c, i, l, n);
}

/* Parameter i at the value that gives the loop n trips, or the next ones that
 * the asserts allow. */
static void try_trips(Chooser *c, unsigned i, const SizeLoop *l, int64_t n,
                      bool whole, const int64_t *base, SizeSets *out)
{
    chooser_load(c, base);
    if (!set_trips(c, i, l, n, whole))
        return;
    int64_t from = c->values[i];
    for (int64_t k = 0; k < TRIES; k++) {
        chooser_load(c, base);
        c->values[i] = from + k * c->step[i];
        c->pinned[i] = true;
        bool ok = chooser_mend(c);
        c->pinned[i] = false;
        if (!ok)
            continue;
        chooser_add(c, out);
        return;
    }
}

/* Values with which task loops have so many tasks, and the others so many
 * trips. */
static void find_base(Chooser *c, int64_t *base, int64_t tasks, int64_t seq,
                      bool whole)
{
    for (unsigned i = 0; i < c->set.n; i++) {
        VarKind kind = var_get(c->m->exprs, c->set.vars[i])->kind;
        c->values[i] = kind == VAR_size   ? 2 * c->step[i]
                       : kind == VAR_bool ? 1
                                          : 0;
    }
    for (unsigned i = 0; i < c->set.n; i++)
        for (unsigned k = 0; k < c->n_loops; k++) {
            const SizeLoop *l = &c->loops[k];
            int64_t old = c->values[i];
            if (!size_loop_uses(l, c->set.vars[i]))
                continue;
            if (set_trips(c, i, l, l->tasks ? tasks : seq, whole && l->tasks))
                break;
            c->values[i] = old;
        }
    for (unsigned i = 0; i < c->set.n; i++)
        base[i] = c->values[i];
    if (chooser_mend(c))
        for (unsigned i = 0; i < c->set.n; i++)
            base[i] = c->values[i];
}

static int64_t depth_of(const Chooser *c)
{
    int64_t depth = c->modulus > c->depth ? c->modulus : c->depth;
    return depth > SIZE_DEPTH ? SIZE_DEPTH : depth;
}

/* ---- all phases ---------------------------------------------------------- */

static void vary(Chooser *c, unsigned i, const int64_t *base, SizeSets *out)
{
    int64_t depth = depth_of(c);
    int64_t seq[] = { 1, depth, depth + 1, 2 * depth + 1, depth - 1, 0 };
    for (unsigned k = 0; k < c->n_loops; k++) {
        const SizeLoop *l = &c->loops[k];
        if (!size_loop_uses(l, c->set.vars[i]))
            continue;
        for (int64_t n = 1; l->tasks && n <= 3; n++)
            try_trips(c, i, l, n, false, base, out);
        if (l->tasks) {
            try_trips(c, i, l, 2, true, base, out);
            continue;
        }
        for (unsigned j = 0; j < 6; j++)
            try_trips(c, i, l, seq[j], false, base, out);
        try_trips(c, i, l, depth, true, base, out);
    }
}

void sizes_derive(Arena *arena, Module *m, const Op *proc, Prover *prover,
                  SizeSets *out)
{
    Chooser *c = chooser_new(arena, m, proc);
    MeteredProver metered = prover_metered(prover, MOST_ASKED);
    int64_t *base = ARENA_ARRAY(arena, int64_t, c->set.n + 1);
    find_base(c, base, 2, depth_of(c) + 1, false);
    if (!sizes_broken(proc, &c->set))
        chooser_add(c, out);
    find_base(c, base, 1, 2, true);
    if (!sizes_broken(proc, &c->set))
        chooser_add(c, out);
    sizes_meet(c, &metered.base, out);
    for (unsigned i = 0; i < c->set.n; i++)
        vary(c, i, base, out);
    find_base(c, base, 2, depth_of(c) + 1, false);
    Seeker seeker = { .c = c,
                      .prover = &metered.base,
                      .out = out,
                      .base = arena_memdup(arena, c->values,
                                           (c->set.n + 1) * sizeof *base),
                      .trips = 2 * depth_of(c) + 1 };
    sizes_outcomes(&seeker);
    sizes_touch(&seeker);
    if (!metered.left)
        out->beyond = "what the sizes decide is too much to ask of the prover: "
                      "give sizes";
}

/* ---- what they cover ----------------------------------------------------- */

/* Is the last tile of the loop whole? *some: there are tiles. */
static bool is_whole(Chooser *c, const SizeLoop *l, bool *some)
{
    bool whole = true;
    int64_t n = chooser_trips(c, l);
    for (unsigned i = 0; i < c->set.n; i++) {
        if (!size_loop_uses(l, c->set.vars[i]))
            continue;
        c->values[i]++;
        bool more = chooser_trips(c, l) != n;
        c->values[i] -= 2;
        *some = *some || !more || chooser_trips(c, l) == n;
        c->values[i]++;
        whole = whole && more;
    }
    return whole;
}

static bool same_name(const Chooser *c, const SizeLoop *a, const SizeLoop *b)
{
    const char *x = var_get(c->m->exprs, a->var)->name;
    const char *y = var_get(c->m->exprs, b->var)->name;
    return a->tasks == b->tasks && x && y && !strcmp(x, y);
}

/* Trip counts up to this are told apart in the text. */
enum { MOST_TRIPS = 64 };

typedef struct Covered {
    uint64_t trips; /* as bits */
    bool ragged, whole;
} Covered;

static void cover(Chooser *c, const SizeLoop *l, const SizeSets *sets, size_t n,
                  Covered *out)
{
    for (size_t k = 0; k < n; k++) {
        chooser_load(c, sets->data[k].values);
        int64_t trips = chooser_trips(c, l);
        bool tiles = false;
        if (trips < 0)
            continue;
        if (trips < MOST_TRIPS)
            out->trips |= UINT64_C(1) << trips;
        bool whole = is_whole(c, l, &tiles);
        out->whole = out->whole || (tiles && whole);
        out->ragged = out->ragged || (tiles && !whole);
    }
}

static void print_loop(StrBuf *out, const Chooser *c, const SizeLoop *l,
                       const Covered *v)
{
    unsigned n = 0;
    const char *name = var_get(c->m->exprs, l->var)->name;
    strbuf_addf(out, "%s%s: ", out->len ? "; " : "", name ? name : "_");
    for (unsigned i = 0; i < MOST_TRIPS; i++)
        if (v->trips >> i & 1)
            strbuf_addf(out, "%s%u", n++ ? ", " : "", i);
    strbuf_addf(out, l->tasks ? " tasks" : " trips");
    if (v->ragged)
        strbuf_add(out, v->whole ? ", whole and ragged" : ", ragged");
}

void sizes_print_phases(StrBuf *out, Module *m, const Op *proc,
                        const SizeSets *sets, size_t n)
{
    Arena *arena = arena_new();
    Chooser *c = chooser_new(arena, m, proc);
    for (unsigned i = 0; i < c->n_loops; i++) {
        Covered v = { 0 };
        bool first = true;
        for (unsigned k = 0; k < i; k++)
            first = first && !same_name(c, &c->loops[k], &c->loops[i]);
        for (unsigned k = i; first && k < c->n_loops; k++)
            if (k == i || same_name(c, &c->loops[k], &c->loops[i]))
                cover(c, &c->loops[k], sets, n, &v);
        if (v.trips)
            print_loop(out, c, &c->loops[i], &v);
    }
    arena_free(arena);
}
