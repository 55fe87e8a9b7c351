/* The code around kernels holds no data and few ops, so it is walked here at
 * the sizes of a run instead of being watched: ifs and loops as the sizes have
 * them, each op shown to the turns. */
#include "verify/async/turns_impl.h"

enum { MOST_TRIPS = 10000 };

typedef struct Loop {
    const struct Loop *outer;
    VarId var;
    int64_t at;
} Loop;

typedef struct Walk {
    Turns *t;
    SizeSet sizes;
    const Loop *loop;
} Walk;

static bool atom_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Walk *w = env->user;
    if (atom->kind != ATOM_var)
        return false;
    for (const Loop *l = w->loop; l; l = l->outer)
        if (l->var == atom->var) {
            *out = l->at;
            return true;
        }
    Env sizes = sizes_env(&w->sizes);
    return sizes.value(&sizes, atom, out);
}

static Env env_of(Walk *w)
{
    return (Env){ .value = atom_value, .user = w };
}

static bool value_here(void *user, const Affine *e, unsigned lane, int64_t *out)
{
    Env env = env_of(user);
    (void)lane;
    return affine_eval(e, &env, out);
}

static void walk_block(Walk *w, const Block *b);

static void walk_loop(Walk *w, const Op *op)
{
    int64_t lo, hi;
    Env env = env_of(w);
    Loop here = { w->loop, op->blocks[0]->args[0].var, 0 };
    if (!affine_eval(op->operands[0].u.index, &env, &lo) ||
        !affine_eval(op->operands[1].u.index, &env, &hi))
        return;
    hi = hi - lo > MOST_TRIPS ? lo + MOST_TRIPS : hi;
    for (here.at = lo; here.at < hi; here.at++) {
        w->loop = &here;
        walk_block(w, op->blocks[0]);
        w->loop = here.outer;
    }
}

static void walk_if(Walk *w, const Op *op)
{
    bool holds;
    Env env = env_of(w);
    if (!cond_eval(op->operands[0].u.cond, &env, &holds))
        return;
    if (holds || op->n_blocks > 1)
        walk_block(w, op->blocks[holds ? 0 : 1]);
}

static void walk_block(Walk *w, const Block *b)
{
    for (const Op *op = b->first; op; op = op->next) {
        if (turns_at(w->t, op))
            turns_see(w->t, op, 0, 1, value_here, w);
        if (op->code == OP_ctl_for)
            walk_loop(w, op);
        else if (op->code == OP_ctl_if)
            walk_if(w, op);
    }
}

void turns_around(Turns *t, const Op *proc, const SizeSet *sizes)
{
    Arena *arena = arena_new();
    Walk w = { .t = t, .sizes = sizes_of(arena, proc) };
    if (w.sizes.n == sizes->n) {
        w.sizes.values = sizes->values;
        walk_block(&w, proc->blocks[0]);
    }
    arena_free(arena);
}
