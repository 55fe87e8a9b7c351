/* Each parameter is chosen by itself: its step is the smallest value that keeps
 * the conditions on it alone, and a loop whose bounds depend on one parameter
 * gets a number of trips by bisection over multiples of the step. */
#include "verify/sizes.h"

enum { MAX_LOOPS = 64, MAX_PARAMS = 32, MAX_STEP = 4096 };
#define MAX_SIZE (INT64_C(1) << 20)

typedef struct SizeLoop {
    const Affine *lo, *hi;
    bool tasks;
    unsigned rank; /* tasks: which dimension */
} SizeLoop;

typedef struct Chooser {
    Arena *arena;
    Module *m;
    const Op *proc;
    unsigned n;
    VarId *vars;
    int64_t *values;
    int64_t *step;
    SizeLoop loops[MAX_LOOPS];
    unsigned n_loops;
    int64_t depth;
    unsigned n_tasks; /* task dimensions met */
    /* a kernel's parameters in the launching procedure's terms */
    VarId from[MAX_PARAMS], to[MAX_PARAMS];
    unsigned n_map;
} Chooser;

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

void sizes_print(StrBuf *out, const Module *m, const SizeSet *s)
{
    for (unsigned i = 0; i < s->n; i++)
        strbuf_addf(out, "%s%s=%lld", i ? "," : "",
                    var_get(m->exprs, s->vars[i])->name,
                    (long long)s->values[i]);
}

static const Cond *condition(const Op *op)
{
    bool is = op->code == OP_ctl_assert || op->code == OP_host_check;
    return is ? op->operands[0].u.cond : NULL;
}

bool sizes_fit(const Module *m, const Op *proc, const SizeSet *s)
{
    Env env = sizes_env(s);
    (void)m;
    for (const Op *op = proc->blocks[0]->first; op; op = op->next) {
        bool holds;
        const Cond *c = condition(op);
        if (c && cond_eval(c, &env, &holds) && !holds)
            return false;
    }
    return true;
}

/* ---- what the program says ----------------------------------------------- */

static void note_depth(Chooser *c, const Value *v)
{
    if (v->ring_depth > c->depth)
        c->depth = v->ring_depth;
    if (v->type->kind == TK_ring && v->type->n > c->depth)
        c->depth = v->type->n;
}

static const Affine *in_proc(Chooser *c, const Affine *e)
{
    const Affine *to[MAX_PARAMS];
    for (unsigned i = 0; i < c->n_map; i++)
        to[i] = affine_var(c->m->exprs, c->to[i]);
    Subst s = { .n = c->n_map, .var = c->from, .to = to };
    return c->n_map ? affine_subst(c->m->exprs, e, &s) : e;
}

static void note_loop(Chooser *c, const Op *op, unsigned first, bool tasks)
{
    if (c->n_loops == MAX_LOOPS)
        return;
    SizeLoop l = { in_proc(c, op->operands[first].u.index),
                   in_proc(c, op->operands[first + 1].u.index), tasks, 0 };
    if (!l.lo || !l.hi)
        return;
    l.rank = tasks ? c->n_tasks++ : 0;
    c->loops[c->n_loops++] = l;
}

static bool note_op(Op *op, void *user)
{
    Chooser *c = user;
    for (unsigned i = 0; i < op->n_results; i++)
        note_depth(c, op->results[i]);
    if (op->code == OP_ctl_for) {
        const char *mode = op_attr_str(op, "mode", "seq");
        note_loop(c, op, 0, mode[0] == 't' && mode[1] == 'a');
    } else if (op->code == OP_async_tasks) {
        for (unsigned d = 0; d < (unsigned)op_attr_int(op, "rank", 0); d++)
            note_loop(c, op, 2 * d, true);
        c->n_tasks = 0;
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
    for (unsigned i = 0;
         i < launch->n_operands && i < k->blocks[0]->n_args; i++) {
        VarId v;
        if (launch->operands[i].kind == OPND_index && c->n_map < MAX_PARAMS &&
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
    Chooser *c = user;
    if (op->code == OP_host_launch)
        note_launch(c, op);
    return true;
}

/* ---- choosing ------------------------------------------------------------ */

static bool fits_alone(const Chooser *c, unsigned i, int64_t v)
{
    SizeSet one = { 1, &c->vars[i], &v };
    return sizes_fit(c->m, c->proc, &one);
}

static void find_steps(Chooser *c)
{
    for (unsigned i = 0; i < c->n; i++)
        for (int64_t s = MAX_STEP; s >= 1; s--)
            if (fits_alone(c, i, s) && fits_alone(c, i, 2 * s))
                c->step[i] = s;
}

/* Trips of a loop when parameter i is v: -1 when it depends on more. */
static int64_t trips(const Chooser *c, const SizeLoop *l, unsigned i, int64_t v)
{
    SizeSet one = { 1, &c->vars[i], &v };
    Env env = sizes_env(&one);
    int64_t lo, hi;
    if (!affine_uses(l->hi, c->vars[i]) && !affine_uses(l->lo, c->vars[i]))
        return -1;
    if (!affine_eval(l->lo, &env, &lo) || !affine_eval(l->hi, &env, &hi))
        return -1;
    return hi > lo ? hi - lo : 0;
}

/* The smallest multiple of the step that gives the loop `want` trips. */
static int64_t for_trips(const Chooser *c, const SizeLoop *l, unsigned i,
                         int64_t want)
{
    int64_t lo = 1, hi = MAX_SIZE / c->step[i];
    if (trips(c, l, i, hi * c->step[i]) < want)
        return c->step[i];
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (trips(c, l, i, mid * c->step[i]) >= want)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo * c->step[i];
}

/* Trips of sequential loops, and of the first and other task dimensions. */
typedef struct Wish {
    int64_t seq, first, other;
} Wish;

static int64_t choose(const Chooser *c, unsigned i, const Wish *w)
{
    int64_t best = c->step[i];
    for (unsigned n = 0; n < c->n_loops; n++) {
        const SizeLoop *l = &c->loops[n];
        int64_t want = !l->tasks ? w->seq : l->rank ? w->other : w->first;
        if (trips(c, l, i, c->step[i]) < 0)
            continue;
        int64_t v = for_trips(c, l, i, want);
        best = v > best ? v : best;
    }
    return best;
}

static bool same(const SizeSet *a, const SizeSet *b)
{
    for (unsigned i = 0; i < a->n; i++)
        if (a->values[i] != b->values[i])
            return false;
    return true;
}

static unsigned add_set(Chooser *c, const Wish *w, SizeSet *out, unsigned n)
{
    int64_t *values = ARENA_ARRAY(c->arena, int64_t, c->n + 1);
    for (unsigned i = 0; i < c->n; i++)
        values[i] = choose(c, i, w);
    SizeSet s = { c->n, c->vars, values };
    if (!sizes_fit(c->m, c->proc, &s))
        return n;
    for (unsigned i = 0; i < n; i++)
        if (same(&out[i], &s))
            return n;
    out[n] = s;
    return n + 1;
}

unsigned sizes_choose(Arena *arena, Module *m, const Op *proc, SizeSet *out)
{
    const Block *b = proc->blocks[0];
    Chooser *c = ARENA_NEW(arena, Chooser);
    *c = (Chooser){ .arena = arena, .m = m, .proc = proc, .depth = 1 };
    c->vars = ARENA_ARRAY(arena, VarId, b->n_args + 1);
    c->step = ARENA_ARRAY(arena, int64_t, b->n_args + 1);
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value) {
            c->step[c->n] = 1;
            c->vars[c->n++] = b->args[i].var;
        }
    op_walk((Op *)proc, note_op, c);
    op_walk((Op *)proc, note_launches, c);
    find_steps(c);
    Wish all = { 2 * c->depth + 1, 3, 1 };
    Wish one = { 1, 1, 2 };
    Wish full = { c->depth, 2, 1 };
    unsigned n = add_set(c, &all, out, 0);
    n = add_set(c, &one, out, n);
    return add_set(c, &full, out, n);
}
