/* What a program says about its sizes, and a few of them. Each parameter has a
 * step, the smallest value that keeps the conditions on it alone; a loop gets
 * a number of trips by bisection over multiples of the step. */
#include "verify/sizes_impl.h"

#include "ir/lib.h"

#include <string.h>

/* CHOSEN_MODULUS: of which checks that are expensive see all phases. */
enum {
    CHOSEN_MODULUS = 16,
    FIRST_VALUES = 256,
    MAX_STEP = 4096,
    MAX_MEND = 4096,
    MAX_MODULUS = SIZE_DEPTH
};

static bool size_value(const Env *env, const Atom *atom, int64_t *out)
{
    const SizeSet *s = env->user;
    for (unsigned i = 0; atom->kind == ATOM_var && i < s->n; i++)
        if (s->vars[i] == atom->var) {
            *out = s->values[i];
            return true;
        }
    return false;
}

Env sizes_env(const SizeSet *s)
{
    return (Env){ .value = size_value, .user = (void *)s };
}

/* A bool is 1 or not; the search for sizes may have gone beyond. */
void sizes_print(StrBuf *out, const Module *m, const SizeSet *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        const Var *v = var_get(m->exprs, s->vars[i]);
        int64_t n = s->values[i];
        strbuf_addf(out, "%s%s=%lld", i ? ", " : "", v->name,
                    (long long)(v->kind == VAR_bool ? n == 1 : n));
    }
}

SizeSet sizes_of(Arena *arena, const Op *proc)
{
    const Block *b = proc->blocks[0];
    VarId *vars = ARENA_ARRAY(arena, VarId, b->n_args + 1);
    SizeSet out = { .vars = vars,
                    .values = ARENA_ARRAY(arena, int64_t, b->n_args + 1) };
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value)
            vars[out.n++] = b->args[i].var;
    return out;
}

bool sizes_equal(const SizeSet *a, const SizeSet *b)
{
    return !a->n || !memcmp(a->values, b->values, a->n * sizeof *a->values);
}

static const Cond *condition(const Op *op)
{
    bool is = op->code == OP_ctl_assert || op->code == OP_host_check;
    return is ? op->operands[0].u.cond : NULL;
}

const Op *sizes_broken(const Op *proc, const SizeSet *s)
{
    Env env = sizes_env(s);
    for (const Op *op = proc->blocks[0]->first; op; op = op->next) {
        bool holds;
        const Cond *c = condition(op);
        if (c && cond_eval(c, &env, &holds) && !holds)
            return op;
    }
    return NULL;
}

/* ---- what the program says ----------------------------------------------- */

static void note_depth(Chooser *c, const Value *v)
{
    if (v->ring_depth > c->depth)
        c->depth = v->ring_depth;
    if (v->type->kind == TK_ring && v->type->n > c->depth)
        c->depth = v->type->n;
}

bool chooser_decides(const Chooser *c, const Affine *e)
{
    for (unsigned i = 0; e && i < c->set.n; i++)
        if (affine_uses(e, c->set.vars[i]))
            return true;
    for (size_t i = 0; e && i < c->sized.len; i++)
        if (affine_uses(e, c->sized.data[i]))
            return true;
    return false;
}

/* An Await that leaves n arrivals out. */
static void note_outstanding(Chooser *c, int64_t n)
{
    n = n < 0 ? -n - 1 : n;
    if (n >= c->modulus)
        c->modulus = n < SIZE_DEPTH ? n + 1 : SIZE_DEPTH;
}

/* Is e counted by a sequential loop that sizes decide? */
static bool counts_trips(const Chooser *c, const Affine *e)
{
    for (unsigned i = 0; i < c->n_loops; i++)
        if (!c->loops[i].tasks && affine_uses(e, c->loops[i].var))
            return true;
    return false;
}

/* The moduli by which a program cycles through slots itself. */
static void note_moduli(Chooser *c, const Access *a)
{
    const Mem *mem = a->base->type->mem
                         ? lib_mem_find(c->of->lib, a->base->type->mem)
                         : NULL;
    if (!mem || mem->family != MEMF_shared)
        return;
    for (unsigned i = 0; i < a->rank; i++)
        for (uint32_t k = 0; a->dims[i].lo && k < a->dims[i].lo->n_terms; k++) {
            const Atom *atom = a->dims[i].lo->terms[k].atom;
            if (atom->kind == ATOM_mod && atom->divisor > c->modulus &&
                atom->divisor <= MAX_MODULUS && counts_trips(c, atom->arg))
                c->modulus = atom->divisor;
        }
}

/* NULL where it is not in terms of proc's parameters. */
static const Affine *in_proc(Chooser *c, const Affine *e)
{
    int64_t any;
    if (c->copy) {
        Env env = sizes_env(c->ones);
        return affine_eval(e, &env, &any) ? clone_index(c->copy, e) : NULL;
    }
    const Affine *to[SIZE_MAPPED];
    for (unsigned i = 0; i < c->n_map; i++)
        to[i] = affine_var(c->m->exprs, c->to[i]);
    Subst s = { .n = c->n_map, .var = c->from, .to = to };
    return c->n_map ? affine_subst(c->m->exprs, e, &s) : e;
}

bool size_loop_uses(const SizeLoop *l, VarId v)
{
    return affine_uses(l->lo, v) || affine_uses(l->hi, v);
}

/* A bound in terms of the loops around it, where these make it greatest or
 * least. Those of another module are left. */
static const Affine *at_end(const Chooser *c, const Affine *e, bool greatest)
{
    if (!e || c->copy)
        return e;
    for (unsigned i = c->n_loops; i-- > 0;) {
        const SizeLoop *l = &c->loops[i];
        bool last = (affine_coef(e, l->var) >= 0) == greatest;
        if (!affine_uses(e, l->var))
            continue;
        const Affine *to =
            last ? affine_add_const(c->m->exprs, l->hi, -1) : l->lo;
        Subst s = { .n = 1, .var = &l->var, .to = &to };
        e = to ? affine_subst(c->m->exprs, e, &s) : e;
        if (!e)
            return NULL;
    }
    return e;
}

static bool has_tasks(const Op *op)
{
    return op->code == OP_ctl_for &&
           !strcmp(op_attr_str(op, "mode", "seq"), "tasks");
}

/* How many loops over tasks are around it. */
static unsigned tasks_around(const Op *op)
{
    unsigned n = 0;
    while ((op = op_parent(op)))
        n += has_tasks(op);
    return n;
}

/* Dimension `dim` of a loop; rank: which of the tasks' dimensions it is. */
static void note_loop(Chooser *c, const Op *op, unsigned dim, bool tasks,
                      unsigned rank)
{
    const Affine *lo = in_proc(c, op->operands[2 * dim].u.index);
    const Affine *hi = in_proc(c, op->operands[2 * dim + 1].u.index);
    SizeLoop l = { .lo = at_end(c, lo, false),
                   .hi = at_end(c, hi, true),
                   .tasks = tasks,
                   .rank = rank };
    bool any = false;
    l.var = op->blocks[0]->args[dim].var;
    if (chooser_decides(c, lo) || chooser_decides(c, hi))
        VEC_PUSH(c->arena, &c->sized, l.var);
    if (c->n_loops == SIZE_LOOPS || !l.lo || !l.hi)
        return;
    for (unsigned i = 0; i < c->set.n; i++)
        any = any || size_loop_uses(&l, c->set.vars[i]);
    if (any)
        c->loops[c->n_loops++] = l;
}

static bool note_op(Op *op, void *user)
{
    Chooser *c = user;
    for (unsigned i = 0; i < op->n_results; i++)
        note_depth(c, op->results[i]);
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i].kind == OPND_access)
            note_moduli(c, op->operands[i].u.access);
    if (op->code == OP_par_await)
        note_outstanding(c, op_attr_int(op, "n", 0));
    if (op->code == OP_ctl_for) {
        note_loop(c, op, 0, has_tasks(op),
                  has_tasks(op) ? tasks_around(op) : 0);
    } else if (op->code == OP_async_tasks) {
        for (unsigned d = 0; d < (unsigned)op_attr_int(op, "rank", 0); d++)
            note_loop(c, op, d, true, d);
    }
    return true;
}

/* The launched kernel with its parameters seen as those of the launch. */
static void note_launch(Chooser *c, const Op *launch)
{
    Op *k = module_symbol(c->m, op_attr_str(launch, "kernel", ""));
    if (!k || k->code != OP_async_kernel)
        return;
    c->n_map = 0;
    for (unsigned i = 0; i < launch->n_operands && i < k->blocks[0]->n_args;
         i++) {
        VarId v;
        if (launch->operands[i].kind == OPND_index && c->n_map < SIZE_MAPPED &&
            affine_is_var(launch->operands[i].u.index, &v)) {
            c->from[c->n_map] = k->blocks[0]->args[i].var;
            c->to[c->n_map++] = v;
        }
    }
    op_walk(k, note_op, c);
    c->n_map = 0;
}

static bool note_launches(Op *op, void *user)
{
    if (op->code == OP_host_launch)
        note_launch(user, op);
    return true;
}

static bool fits_alone(const Chooser *c, unsigned i, int64_t v)
{
    SizeSet one = { .n = 1, .vars = &c->set.vars[i], .values = &v };
    return !sizes_broken(c->proc, &one);
}

static void find_steps(Chooser *c)
{
    for (unsigned i = 0; i < c->set.n; i++) {
        int64_t s = 1;
        while (s <= MAX_STEP &&
               !(fits_alone(c, i, s) && fits_alone(c, i, 2 * s)))
            s++;
        c->step[i] = s <= MAX_STEP ? s : 1;
    }
}

/* The loops, rings and moduli of `program` in place of proc's own. */
static void look_at(Chooser *c, Module *of, const Op *program)
{
    SizeSet set = sizes_of(c->arena, program);
    int64_t *ones = ARENA_ARRAY(c->arena, int64_t, set.n + 1);
    if (set.n != c->set.n)
        return;
    c->n_loops = 0;
    c->depth = 1;
    c->modulus = 0;
    c->of = of;
    c->copy = clone_map_new(c->m, of);
    for (unsigned i = 0; i < set.n; i++) {
        ones[i] = 1;
        clone_map_index(c->copy, set.vars[i],
                        affine_var(c->m->exprs, c->set.vars[i]));
    }
    set.values = ones;
    c->ones = &set;
    op_walk((Op *)program, note_op, c);
    c->ones = NULL;
}

Chooser *chooser_new(Arena *arena, Module *m, const Op *proc)
{
    Chooser *c = ARENA_NEW(arena, Chooser);
    *c = (Chooser){ .arena = arena, .m = m, .of = m, .proc = proc, .depth = 1 };
    c->set = sizes_of(arena, proc);
    c->values = ARENA_ARRAY(arena, int64_t, c->set.n + 1);
    c->set.values = c->values;
    c->step = ARENA_ARRAY(arena, int64_t, c->set.n + 1);
    c->pinned = ARENA_ARRAY(arena, bool, c->set.n + 1);
    op_walk((Op *)proc, note_op, c);
    op_walk((Op *)proc, note_launches, c);
    find_steps(c);
    return c;
}

/* ---- trying ------------------------------------------------------------- */

int64_t chooser_trips(const Chooser *c, const SizeLoop *l)
{
    Env env = sizes_env(&c->set);
    int64_t lo, hi;
    if (!affine_eval(l->lo, &env, &lo) || !affine_eval(l->hi, &env, &hi))
        return -1;
    return hi > lo ? hi - lo : 0;
}

/* Of the first multiples of its step: trips need not grow with a parameter
 * (`M % 7`). */
static bool set_few_trips(Chooser *c, unsigned i, const SizeLoop *l, int64_t n)
{
    for (int64_t k = 1; k <= FIRST_VALUES; k++) {
        c->values[i] = k * c->step[i];
        if (chooser_trips(c, l) == n)
            return true;
    }
    return false;
}

bool chooser_set_trips(Chooser *c, unsigned i, const SizeLoop *l, int64_t n)
{
    if (set_few_trips(c, i, l, n))
        return true;
    int64_t lo = 1, hi = SIZE_MOST / c->step[i];
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        c->values[i] = mid * c->step[i];
        int64_t found = chooser_trips(c, l);
        if (found < 0)
            return false;
        if (found >= n)
            hi = mid;
        else
            lo = mid + 1;
    }
    c->values[i] = lo * c->step[i];
    return chooser_trips(c, l) == n;
}

/* A value of parameter i that keeps this condition; smaller ones first. */
static bool mend_one(Chooser *c, unsigned i, const Cond *cond)
{
    Env env = sizes_env(&c->set);
    int64_t old = c->values[i];
    for (int64_t k = 0; k < MAX_MEND; k++) {
        bool holds;
        c->values[i] = k < old ? old - k : k + 1;
        if (cond_eval(cond, &env, &holds) && holds)
            return true;
    }
    c->values[i] = old;
    return false;
}

bool chooser_mend(Chooser *c)
{
    const Op *broken = NULL;
    for (unsigned round = 0; round < 4; round++) {
        broken = sizes_broken(c->proc, &c->set);
        if (!broken)
            return true;
        bool mended = false;
        for (unsigned i = 0; i < c->set.n && !mended; i++)
            mended = !c->pinned[i] &&
                     cond_uses(condition(broken), c->set.vars[i]) &&
                     mend_one(c, i, condition(broken));
        if (!mended)
            return false;
    }
    return !sizes_broken(c->proc, &c->set);
}

SizeSet chooser_keep(const Chooser *c)
{
    SizeSet s = c->set;
    s.values = arena_memdup(c->arena, c->values, c->set.n * sizeof *c->values);
    return s;
}

/* ---- a few sets ---------------------------------------------------------- */

/* Trips of sequential loops, of the first, second and further dimensions of
 * tasks, and of tasks with one dimension that sizes decide; with as little as
 * possible in the last one of them; or as much
 * (tiles: of parameters that no sequential loop depends on; full: of those that
 * the second dimension does not depend on, and of tiles a step less), or
 * one step less than that where there is one trip (wide). */
typedef struct Wish {
    int64_t seq, first, second, third, alone;
    bool full, tiles, wide, whole;
} Wish;

/* Of the n-th loop. */
static int64_t wanted(const Chooser *c, const Wish *w, unsigned n)
{
    const SizeLoop *l = &c->loops[n];
    if (!l->tasks)
        return w->seq;
    if (l->rank)
        return l->rank == 1 ? w->second : w->third;
    do
        n++;
    while (n < c->n_loops && !c->loops[n].tasks);
    return n < c->n_loops && c->loops[n].rank ? w->first : w->alone;
}

/* Does parameter i at value v give each loop the trips that it has at `from`,
 * and, when `one`, no more than one? */
static bool same_trips(Chooser *c, unsigned i, int64_t from, int64_t v,
                       bool one)
{
    for (unsigned n = 0; n < c->n_loops; n++) {
        const SizeLoop *l = &c->loops[n];
        if (!size_loop_uses(l, c->set.vars[i]))
            continue;
        c->values[i] = from;
        int64_t trips = chooser_trips(c, l);
        c->values[i] = v;
        if (chooser_trips(c, l) != trips || (one && trips > 1))
            return false;
    }
    return true;
}

/* The most that parameter i can be without another trip of any loop; the least
 * where that has no end. */
static int64_t fill_trips(Chooser *c, unsigned i, int64_t least, bool one)
{
    int64_t lo = 0, hi = MAX_STEP;
    if (same_trips(c, i, least, least + hi * c->step[i], one))
        return least;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (same_trips(c, i, least, least + mid * c->step[i], one))
            lo = mid;
        else
            hi = mid;
    }
    return least + lo * c->step[i];
}

static bool has_steps(const Chooser *c, VarId v)
{
    for (unsigned n = 0; n < c->n_loops; n++)
        if (!c->loops[n].tasks && size_loop_uses(&c->loops[n], v))
            return true;
    return false;
}

/* Does the second task dimension depend on it? */
static bool is_second(const Chooser *c, VarId v)
{
    for (unsigned n = 0; n < c->n_loops; n++)
        if (c->loops[n].rank == 1 && size_loop_uses(&c->loops[n], v))
            return true;
    return false;
}

/* The greatest that a loop asks for; such a parameter is pinned. */
static void choose(Chooser *c, unsigned i, const Wish *w)
{
    int64_t best = c->step[i];
    c->pinned[i] = false;
    for (unsigned n = 0; n < c->n_loops; n++) {
        const SizeLoop *l = &c->loops[n];
        if (!size_loop_uses(l, c->set.vars[i]))
            continue;
        c->values[i] = c->step[i];
        if (chooser_trips(c, l) < 0)
            continue;
        c->pinned[i] = true;
        chooser_set_trips(c, i, l, wanted(c, w, n));
        if (c->values[i] < SIZE_MOST / 2 && c->values[i] > best)
            best = c->values[i];
    }
    int64_t most = fill_trips(c, i, best, w->wide);
    bool tiles = !has_steps(c, c->set.vars[i]);
    if ((w->wide || (w->full && tiles)) && most > best)
        most -= c->step[i];
    bool filled = w->wide || w->whole || (w->tiles && tiles) ||
                  (w->full && !is_second(c, c->set.vars[i]));
    c->values[i] = filled ? most : best;
}

static unsigned add_set(Chooser *c, const Wish *w, SizeSet *out, unsigned n)
{
    for (unsigned i = 0; i < c->set.n; i++)
        c->values[i] = c->step[i];
    for (unsigned i = 0; i < c->set.n; i++)
        choose(c, i, w);
    if (!chooser_mend(c)) {
        memset(c->pinned, 0, c->set.n * sizeof *c->pinned);
        if (!chooser_mend(c))
            return n;
    }
    for (unsigned i = 0; i < n; i++)
        if (sizes_equal(&out[i], &c->set))
            return n;
    out[n] = chooser_keep(c);
    return n + 1;
}

/* Has every sequential loop the same trips with both? */
static bool same_steps(Chooser *c, const SizeSet *a, const SizeSet *b)
{
    Env of_a = sizes_env(a), of_b = sizes_env(b);
    for (unsigned n = 0; n < c->n_loops; n++) {
        const SizeLoop *l = &c->loops[n];
        int64_t x[2], y[2];
        if (!l->tasks &&
            (!affine_eval(l->lo, &of_a, &x[0]) ||
             !affine_eval(l->hi, &of_a, &x[1]) ||
             !affine_eval(l->lo, &of_b, &y[0]) ||
             !affine_eval(l->hi, &of_b, &y[1]) || x[1] - x[0] != y[1] - y[0]))
            return false;
    }
    return true;
}

static bool has_task_grid(const Chooser *c)
{
    for (unsigned n = 0; n < c->n_loops; n++)
        if (c->loops[n].rank)
            return true;
    return false;
}

unsigned sizes_choose(Arena *arena, Module *m, const Op *proc, Module *of,
                      const Op *program, SizeSet *out)
{
    Chooser *c = chooser_new(arena, m, proc);
    if (program)
        look_at(c, of, program);
    int64_t modulus = c->modulus < CHOSEN_MODULUS ? c->modulus : CHOSEN_MODULUS;
    int64_t depth = modulus > c->depth ? modulus : c->depth;
    bool grid = has_task_grid(c); /* then `full` has four tasks */
    Wish all = { 2 * depth + 1, 2, 1, 1, 3, .wide = true };
    Wish one = { 1, 1, 2, 2, 1, .tiles = true };
    Wish full = { depth > 1 ? depth : 2, 2, 2, 1, 2, .full = true };
    Wish whole = { 1, 1, 2, 2, 2, .whole = true };
    unsigned n = add_set(c, &all, out, 0);
    n = add_set(c, &one, out, n);
    n = add_set(c, &full, out, n);
    if (n < 3 && grid) {
        all.first = 3;
        return add_set(c, &all, out, n);
    }
    if (n < 3)
        return n;
    if (!same_steps(c, &out[0], &out[2]))
        return add_set(c, &whole, out, n);
    if (grid) { /* no most trips: one task for them */
        all.first = 1;
        add_set(c, &all, out, 0);
    }
    /* nothing new in one dimension of tasks; and one that is cut */
    Wish least = { 1, 1, 1, 1, 1, .full = false };
    return add_set(c, &least, out, grid ? n : n - 1);
}
