/* Sets for all phases: a base with few trips, and from it one parameter after
 * the other at the values that its loops ask for. */
#include "verify/sizes_impl.h"

#include <string.h>

enum { MOST_SETS = 32, MOST_DEPTH = 8, TRIES = 64 };
enum { MOST_TURNS = 8 };

/* A value of a parameter at which a condition changes its outcome, what else
 * stands in it being 0. */
typedef struct Border {
    unsigned param;
    int64_t at;
} Border;

/* Iterations of loops at which a condition changes its outcome, or tasks come
 * to the places of others. */
typedef struct Turns {
    Border border[MOST_TURNS];
    unsigned n_borders;
    const Chooser *c;
    unsigned n;
    const SizeLoop *loop[MOST_TURNS];
    int64_t at[MOST_TURNS];
} Turns;

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
    return depth > MOST_DEPTH ? MOST_DEPTH : depth;
}

/* ---- turns --------------------------------------------------------------- */

/* Where the loop over v takes a condition on e to its other outcome, as far as
 * this term says; -1: nowhere. */
static int64_t turn_of(const Affine *e, const Term *t, VarId v)
{
    const Atom *a = t->atom;
    bool later = (e->constant < 0) != (t->coef < 0);
    int64_t times = later ? -(e->constant / t->coef) : -1;
    if (a->kind == ATOM_var)
        return a->var == v ? times : -1;
    if (a->kind == ATOM_opaque || !affine_uses(a->arg, v))
        return -1;
    int64_t step = affine_coef(a->arg, v);
    int64_t round = step > 1 ? a->divisor / step : a->divisor;
    return a->kind == ATOM_mod      ? round - 1
           : times > SIZE_MOST_TURN ? -1
                                    : (times + 1) * round;
}

static void add_turn(Turns *t, const SizeLoop *l, int64_t at)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->loop[i] == l && t->at[i] == at)
            return;
    if (at < 0 || at > SIZE_MOST_TURN || t->n == MOST_TURNS)
        return;
    t->loop[t->n] = l;
    t->at[t->n++] = at;
}

static void add_border(Turns *t, unsigned param, int64_t at)
{
    const Chooser *c = t->c;
    int64_t most = SIZE_MOST;
    for (unsigned k = 0; k < c->n_loops; k++)
        if (size_loop_uses(&c->loops[k], c->set.vars[param]))
            most = SIZE_MOST_TURN;
    for (unsigned i = 0; i < t->n_borders; i++)
        if (t->border[i].param == param && t->border[i].at == at)
            return;
    bool is_bool = var_get(c->m->exprs, c->set.vars[param])->kind == VAR_bool;
    if (at >= (is_bool ? 1 : 2) && at <= most && t->n_borders < MOST_TURNS)
        t->border[t->n_borders++] = (Border){ param, at };
}

/* `K > 100`, `m < K - 100`, `flag`; not `m < K`, which loops decide. */
static void note_borders(Turns *t, const Affine *e)
{
    for (unsigned i = 0; i < t->c->set.n; i++) {
        int64_t coef = affine_coef(e, t->c->set.vars[i]);
        if (coef && (e->constant < 0) != (coef < 0) && e->constant != INT64_MIN)
            add_border(t, i, -(e->constant / coef));
    }
}

static void note_turns(const Affine *e, void *user)
{
    Turns *t = user;
    note_borders(t, e);
    for (unsigned i = 0; i < t->c->set.n; i++)
        if (affine_uses(e, t->c->set.vars[i]))
            return;
    for (unsigned k = 0; k < t->c->n_loops; k++)
        for (uint32_t i = 0; i < e->n_terms; i++)
            add_turn(t, &t->c->loops[k],
                     turn_of(e, &e->terms[i], t->c->loops[k].var));
}

/* Where tasks come back to a place, or leave one out, as places are counted by
 * the modulus or quotient of an index. */
static void note_places(Turns *t, const Affine *e)
{
    for (uint32_t i = 0; e && i < e->n_terms; i++) {
        const Atom *a = e->terms[i].atom;
        if (a->kind != ATOM_mod && a->kind != ATOM_floordiv)
            continue;
        for (unsigned k = 0; k < t->c->n_loops; k++) {
            const SizeLoop *l = &t->c->loops[k];
            int64_t step = affine_coef(a->arg, l->var);
            if (l->tasks && step > 0)
                add_turn(t, l, (a->divisor + step - 1) / step - 1);
        }
    }
}

static bool note_turn(Op *op, void *user)
{
    if (op->code == OP_ctl_if)
        cond_walk_exprs(op->operands[0].u.cond, note_turns, user);
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (op->operands[i].kind != OPND_access)
            continue;
        const Access *a = op->operands[i].u.access;
        for (unsigned k = 0; k < a->rank; k++)
            note_places(user, a->dims[k].lo);
    }
    return true;
}

/* The loop comes to the iteration of the turn, and one further,
 * where it has not been there with up to `most` trips. */
static void try_turn(Chooser *c, unsigned i, const Turns *t, unsigned k,
                     int64_t most, const int64_t *base, SizeSets *out)
{
    const SizeLoop *l = t->loop[k];
    Env env = sizes_env(&c->set);
    int64_t lo;
    chooser_load(c, base);
    if (!affine_eval(l->lo, &env, &lo))
        return;
    for (int64_t n = t->at[k] - lo + 1; n <= t->at[k] - lo + 2; n++)
        if (n > most)
            try_trips(c, i, l, n, false, base, out);
}

/* A parameter just below the border, on it and just above: a bool at both
 * values, a size from 1 on. */
static void try_border(Chooser *c, const Border *b, const int64_t *base,
                       SizeSets *out)
{
    VarKind kind = var_get(c->m->exprs, c->set.vars[b->param])->kind;
    int64_t least = kind == VAR_size ? 1 : 0;
    int64_t last = kind == VAR_bool ? 1 : b->at + 2;
    for (int64_t v = b->at - 1; v <= last; v++) {
        if (v < least || v % c->step[b->param])
            continue;
        chooser_load(c, base);
        c->values[b->param] = v;
        c->pinned[b->param] = true;
        bool ok = chooser_mend(c);
        c->pinned[b->param] = false;
        if (ok)
            chooser_add(c, out);
    }
}

/* ---- all phases ---------------------------------------------------------- */

static void vary(Chooser *c, unsigned i, const Turns *turns,
                 const int64_t *base, SizeSets *out)
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
    for (unsigned k = 0; k < turns->n; k++)
        if (size_loop_uses(turns->loop[k], c->set.vars[i]))
            try_turn(c, i, turns, k, turns->loop[k]->tasks ? 3 : 2 * depth + 1,
                     base, out);
}

void sizes_derive(Arena *arena, Module *m, const Op *proc, SizeSets *out)
{
    Chooser *c = chooser_new(arena, m, proc);
    Turns turns = { .c = c };
    op_walk((Op *)proc, note_turn, &turns);
    int64_t *base = ARENA_ARRAY(arena, int64_t, c->set.n + 1);
    find_base(c, base, 2, depth_of(c) + 1, false);
    if (!sizes_broken(proc, &c->set))
        chooser_add(c, out);
    find_base(c, base, 1, 2, true);
    if (!sizes_broken(proc, &c->set))
        chooser_add(c, out);
    sizes_meet(c, base, out);
    for (unsigned i = 0; i < c->set.n; i++)
        vary(c, i, &turns, base, out);
    find_base(c, base, 2, depth_of(c) + 1, false);
    for (unsigned i = 0; i < turns.n_borders; i++)
        try_border(c, &turns.border[i], base, out);
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
