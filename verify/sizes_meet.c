/* Sizes at which two tasks come to one place of global memory, or two accesses
 * of one task to one place of memory.
 *
 * Tasks run at once, and nothing orders two of them. So for each two accesses
 * to one tensor, one of which is no read, the prover is asked whether two
 * different tasks can come to one element: under what holds at both, the
 * second with twins of all variables of the device function. Where they never
 * do, that is so at all sizes. Where they may, the least sizes at which they
 * do are sought and run: the machine says whether it is a fault.
 *
 * Within a task, what lies between two accesses to memory may order them. But
 * where sizes decide whether they come to one element (`s[t]` and
 * `s[t + M / 100]`), some sets must have that they do: in the same iteration,
 * or in any, and by different threads. */
#include "verify/sizes_impl.h"

#include "ir/lib.h"

enum { MOST_MEETINGS = 4 };
/* Accesses of one device function, and questions of it. */
enum { MOST_PLACES = 4096, MOST_QUESTIONS = 1 << 14 };

/* An access to memory, on its root, and what holds there. */
typedef struct Place {
    Op *op;
    const Access *access;
    unsigned flags;
    const Facts *facts;
    const Cond *in; /* the map's part of the tensor */
} Place;

typedef struct Meetings {
    Chooser *c;
    Prover *prover;
    SizeSets *out;
    const Seeker *seeker; /* of one task's accesses; NULL: of two tasks */
    Op *device;
    VEC(Place) places;
    CloneMap *twins; /* of the variables in the device function */
    bool has_tasks;
    unsigned n_sets, n_questions;
} Meetings;

/* ---- places -------------------------------------------------------------- */

static bool is_loop(const Op *op, const char *mode)
{
    return op->code == OP_ctl_for &&
           !strcmp(op_attr_str(op, "mode", "seq"), mode);
}

static bool is_looked_at(const Meetings *t, const Value *v)
{
    const Mem *mem =
        v->type->mem ? lib_mem_find(t->c->m->lib, v->type->mem) : NULL;
    return mem && (mem->family == MEMF_global ||
                   (t->seeker && mem->family == MEMF_shared));
}

/* A place of the tensor, not of what a box takes beyond it. */
static const Cond *in_bounds(Meetings *t, const Access *a)
{
    ExprCtx *x = t->c->m->exprs;
    const Cond *in = cond_bool(x, true);
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        in = cond_and(x, in, cond_cmp(x, CMP_lt, d->lo, a->base->shape[i]));
        if (d->kind == DIM_interval)
            in = cond_and(x, in,
                          cond_cmp(x, CMP_gt, affine_add(x, d->lo, d->len),
                                   affine_const(x, 0)));
    }
    return in;
}

/* The access on the tensor behind its windows and maps. */
static void see_through(Meetings *t, Place *p)
{
    ExprCtx *x = t->c->m->exprs;
    const Access *a = access_compose(t->c->m, p->access), *behind;
    p->in = cond_bool(x, true);
    while ((behind = access_behind_map(t->c->m, a))) {
        p->in = cond_and(x, p->in, in_bounds(t, a));
        a = access_compose(t->c->m, behind);
    }
    p->access = a;
}

static void make_twin(Meetings *t, const Op *loop)
{
    ExprCtx *x = t->c->m->exprs;
    const Block *b = loop->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++) {
        if (b->args[i].value)
            continue;
        VarId v = b->args[i].var;
        const char *name =
            arena_printf(t->c->arena, "%s'", var_get(x, v)->name);
        clone_map_index(t->twins, v, affine_var(x, var_new(x, name, VAR_iter)));
    }
}

static bool collect(Op *op, void *user)
{
    Meetings *t = user;
    Arena *arena = t->c->arena;
    OpAccessVec all = { 0 };
    if (op->code == OP_ctl_for)
        make_twin(t, op);
    t->has_tasks = t->has_tasks || is_loop(op, "tasks");
    if (op->code == OP_mem_window)
        return true;
    op_accesses(t->c->m, op, arena, &all);
    for (size_t i = 0; i < all.len; i++) {
        Place p = { .op = op,
                    .access = all.data[i].access,
                    .flags = all.data[i].flags };
        see_through(t, &p);
        if ((p.flags & ACC_SYNC) || !is_looked_at(t, p.access->base))
            continue;
        p.facts = prove_facts_at(arena, t->c->m, op);
        VEC_PUSH(arena, &t->places, p);
    }
    return true;
}

/* ---- questions ----------------------------------------------------------- */

/* May they stand side by side in any case: reads, or additions that are made
 * to meet. */
static bool are_friends(const Place *a, const Place *b)
{
    unsigned writes = ACC_WRITE | ACC_REDUCE;
    return (!(a->flags & writes) && !(b->flags & writes)) ||
           (a->flags & b->flags & ACC_ATOMIC);
}

/* Two tasks: the second op's loops of tasks are at other places of the nest.
 * Those of another nest are others anyway. */
static const Cond *are_two(Meetings *t, const Place *a, const Place *b)
{
    ExprCtx *x = t->c->m->exprs;
    const Cond *two = cond_bool(x, false);
    for (const Op *op = op_parent(b->op); op && op != t->device;
         op = op_parent(op)) {
        if (!is_loop(op, "tasks"))
            continue;
        const Affine *v = affine_var(x, op->blocks[0]->args[0].var);
        const Op *of = op_parent(a->op);
        while (of && of != op)
            of = op_parent(of);
        if (!of)
            return cond_bool(x, true);
        two = cond_or(x, two, cond_cmp(x, CMP_ne, v, clone_index(t->twins, v)));
    }
    return two;
}

static Facts *both_facts(Meetings *t, const Place *a, const Place *b)
{
    Facts *f = facts_copy(t->c->arena, a->facts);
    f->incomplete = f->incomplete || b->facts->incomplete;
    for (size_t i = 0; i < b->facts->conds.len; i++)
        facts_assume(f, clone_cond(t->twins, b->facts->conds.data[i]));
    facts_assume(f, a->in);
    facts_assume(f, clone_cond(t->twins, b->in));
    facts_assume(f, in_bounds(t, a->access));
    facts_assume(f, in_bounds(t, clone_access(t->twins, b->access)));
    return f;
}

/* ---- answers ------------------------------------------------------------- */

/* Adds the least sizes at which they meet. */
static bool add_least(Meetings *t, const Facts *f, const Cond *meet,
                      const int64_t *base)
{
    size_t n = t->out->len;
    if (!sizes_least(t->c, t->prover, f, meet, base, t->out))
        return false;
    if (t->out->len == n)
        return false;
    t->out->needed = t->out->len;
    t->out->data[n].meets = true;
    t->n_sets++;
    return true;
}

static void beyond(Meetings *t, const Place *a, const Place *b, const char *why)
{
    if (!t->out->beyond)
        t->out->beyond = arena_printf(
            t->c->arena,
            "whether two tasks come to one place of %s, by lines %u and %u, is "
            "%s: give sizes",
            a->access->base->name ? a->access->base->name : "a tensor",
            a->op->loc.line, b->op->loc.line, why);
}

static void ask(Meetings *t, const Place *a, const Place *b,
                const int64_t *base)
{
    ExprCtx *x = t->c->m->exprs;
    if (a->access->base != b->access->base || are_friends(a, b))
        return;
    const Access *twin = clone_access(t->twins, b->access);
    const Cond *meet =
        cond_and(x, are_two(t, a, b), access_overlap(x, a->access, twin));
    if (meet == cond_bool(x, false) || t->n_questions++ >= MOST_QUESTIONS)
        return;
    Facts *f = both_facts(t, a, b);
    Proof p = prove_satisfiable(t->prover, f, meet);
    if (p.answer == PROVE_unknown)
        beyond(t, a, b, "not known");
    else if (p.answer == PROVE_yes && t->n_sets < MOST_MEETINGS &&
             !add_least(t, f, meet, base))
        beyond(t, a, b, "known of sizes alone that are not run");
}

/* ---- within a task ------------------------------------------------------- */

enum { MOST_NESTED = 16 };

/* The loops of this mode around op, the innermost first. */
static unsigned loops_around(const Meetings *t, const Op *op, const char *mode,
                             const Op **out)
{
    unsigned n = 0;
    for (op = op_parent(op); op && op != t->device; op = op_parent(op))
        if (is_loop(op, mode) && n < MOST_NESTED)
            out[n++] = op;
    return n;
}

/* The loops of this mode around both are at the same iteration. */
static const Cond *are_in_step(Meetings *t, const Place *a, const Place *b,
                               const char *mode)
{
    ExprCtx *x = t->c->m->exprs;
    const Op *of_a[MOST_NESTED], *of_b[MOST_NESTED];
    unsigned n = loops_around(t, a->op, mode, of_a);
    unsigned m = loops_around(t, b->op, mode, of_b);
    const Cond *same = cond_bool(x, true);
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < m; k++) {
            const Affine *v = affine_var(x, of_a[i]->blocks[0]->args[0].var);
            if (of_a[i] == of_b[k])
                same = cond_and(
                    x, same, cond_cmp(x, CMP_eq, v, clone_index(t->twins, v)));
        }
    return same;
}

/* By other threads, as the iterators of nests of one form say. */
static const Cond *are_apart(Meetings *t, const Place *a, const Place *b)
{
    ExprCtx *x = t->c->m->exprs;
    const Op *of_a[MOST_NESTED], *of_b[MOST_NESTED];
    unsigned n = loops_around(t, a->op, "threads", of_a);
    unsigned m = loops_around(t, b->op, "threads", of_b);
    const Cond *apart = cond_bool(x, n != m);
    for (unsigned i = 0; n == m && i < n; i++) {
        const Affine *v = affine_var(x, of_a[i]->blocks[0]->args[0].var);
        const Affine *w = affine_var(x, of_b[i]->blocks[0]->args[0].var);
        apart =
            cond_or(x, apart, cond_cmp(x, CMP_ne, v, clone_index(t->twins, w)));
    }
    return apart;
}

static bool is_decided(const Meetings *t, const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++)
        if (chooser_decides(t->c, a->dims[i].lo) ||
            chooser_decides(t->c, a->dims[i].len))
            return true;
    return false;
}

static void ask_within(Meetings *t, const Place *a, const Place *b)
{
    ExprCtx *x = t->c->m->exprs;
    unsigned writes = ACC_WRITE | ACC_REDUCE;
    if (a->access->base != b->access->base ||
        !((a->flags | b->flags) & writes) ||
        !(is_decided(t, a->access) || is_decided(t, b->access)) ||
        t->n_questions++ >= MOST_QUESTIONS)
        return;
    Facts *f = both_facts(t, a, b);
    facts_assume(f, are_in_step(t, a, b, "tasks"));
    const Cond *meet =
        access_overlap(x, a->access, clone_access(t->twins, b->access));
    const Cond *in_step = are_in_step(t, a, b, "seq");
    const Cond *apart = are_apart(t, a, b);
    const Cond *cases[] = { cond_and(x, in_step, apart), apart, in_step };
    for (unsigned i = 0; i < 3; i++)
        seek_at(t->seeker, a->op, f, cond_and(x, meet, cases[i]),
                "the place in memory");
}

/* ---- device functions ---------------------------------------------------- */

static void ask_all(Meetings *t)
{
    int64_t *base = arena_memdup(t->c->arena, t->c->values,
                                 (t->c->set.n + 1) * sizeof *base);
    bool few = t->places.len <= MOST_PLACES;
    t->n_questions = 0;
    for (size_t i = 0; few && i < t->places.len; i++)
        for (size_t k = 0; k <= i; k++)
            if (t->seeker)
                ask_within(t, &t->places.data[i], &t->places.data[k]);
            else if (t->has_tasks)
                ask(t, &t->places.data[i], &t->places.data[k], base);
    chooser_load(t->c, base);
    if ((t->seeker || t->has_tasks) && !t->out->beyond &&
        (!few || t->n_questions > MOST_QUESTIONS))
        t->out->beyond =
            t->seeker
                ? "memory is accessed in too many places to ask which "
                  "of them the sizes bring together: give sizes"
                : "global memory is accessed in too many places to ask whether "
                  "two tasks come to one of them: give sizes";
}

static bool ask_device(Op *op, void *user)
{
    Meetings *t = user;
    if (op->code != OP_par_device)
        return true;
    t->device = op;
    t->places.len = 0;
    t->has_tasks = false;
    t->twins = clone_map_new(t->c->m, t->c->m);
    op_walk(op, collect, t);
    ask_all(t);
    return true;
}

void sizes_meet(Chooser *c, Prover *prover, SizeSets *out)
{
    Meetings t = { .c = c, .prover = prover, .out = out };
    op_walk((Op *)c->proc, ask_device, &t);
}

void sizes_touch(const Seeker *s)
{
    Meetings t = { .c = s->c, .prover = s->prover, .out = s->out, .seeker = s };
    op_walk((Op *)s->c->proc, ask_device, &t);
}
