/* Sizes at which two tasks come to one place of global memory.
 *
 * Tasks run at once, and nothing orders two of them. So for each two accesses
 * to one tensor, one of which is no read, the prover is asked whether two
 * different tasks can come to one element: under what holds at both, the
 * second with twins of all variables of the device function. Where they never
 * do, that is so at all sizes. Where they may, the least sizes at which they
 * do are sought and run: the machine says whether it is a fault. */
#include "verify/sizes_impl.h"

#include "ir/lib.h"

enum { MOST_MEETINGS = 4 };
/* Accesses of one device function, and questions of it. */
enum { MOST_PLACES = 4096, MOST_QUESTIONS = 1 << 14 };

/* An access to global memory, on its root, and what holds there. */
typedef struct Place {
    Op *op;
    const Access *access;
    unsigned flags;
    const Facts *facts;
} Place;

typedef struct Meetings {
    Chooser *c;
    Prover *prover;
    SizeSets *out;
    Op *device;
    VEC(Place) places;
    CloneMap *twins; /* of the variables in the device function */
    bool has_tasks;
    unsigned n_sets, n_questions;
} Meetings;

/* ---- places -------------------------------------------------------------- */

static bool is_tasks(const Op *op)
{
    return op->code == OP_ctl_for &&
           !strcmp(op_attr_str(op, "mode", "seq"), "tasks");
}

static bool is_global(const Meetings *t, const Value *v)
{
    const Mem *mem =
        v->type->mem ? lib_mem_find(t->c->m->lib, v->type->mem) : NULL;
    return mem && mem->family == MEMF_global;
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
    t->has_tasks = t->has_tasks || is_tasks(op);
    if (op->code == OP_mem_window)
        return true;
    op_accesses(t->c->m, op, arena, &all);
    for (size_t i = 0; i < all.len; i++) {
        const Access *a = all.data[i].access;
        if ((all.data[i].flags & ACC_SYNC) ||
            !is_global(t, value_root(a->base)))
            continue;
        Place p = { op, access_compose(t->c->m, a), all.data[i].flags,
                    prove_facts_at(arena, t->c->m, op) };
        if (p.access)
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
        if (!is_tasks(op))
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

static Facts *both_facts(Meetings *t, const Place *a, const Place *b)
{
    Facts *f = facts_copy(t->c->arena, a->facts);
    f->incomplete = f->incomplete || b->facts->incomplete;
    for (size_t i = 0; i < b->facts->conds.len; i++)
        facts_assume(f, clone_cond(t->twins, b->facts->conds.data[i]));
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
    facts_assume(f, in_bounds(t, a->access));
    facts_assume(f, in_bounds(t, twin));
    Proof p = prove_satisfiable(t->prover, f, meet);
    if (p.answer == PROVE_unknown)
        beyond(t, a, b, "not known");
    else if (p.answer == PROVE_yes && t->n_sets < MOST_MEETINGS &&
             !add_least(t, f, meet, base))
        beyond(t, a, b, "known of sizes alone that are not run");
}

static void ask_all(Meetings *t)
{
    int64_t *base = arena_memdup(t->c->arena, t->c->values,
                                 (t->c->set.n + 1) * sizeof *base);
    t->n_questions = 0;
    if (t->has_tasks && t->places.len <= MOST_PLACES)
        for (size_t i = 0; i < t->places.len; i++)
            for (size_t k = 0; k <= i; k++)
                ask(t, &t->places.data[i], &t->places.data[k], base);
    chooser_load(t->c, base);
    if (t->has_tasks && !t->out->beyond &&
        (t->places.len > MOST_PLACES || t->n_questions > MOST_QUESTIONS))
        t->out->beyond = "global memory is accessed in too many places to ask "
                         "whether two tasks come to one of them: give sizes";
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
