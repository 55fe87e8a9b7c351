/* Looks for sizes at which something holds that no set shows yet. */
#include "verify/sizes_impl.h"

#include <string.h>

/* ---- a prover with a budget ---------------------------------------------- */

/* What a question costs beside what it takes a solver: for each condition. */
enum { ASKED = 50 };

static Proof metered_satisfiable(Prover *self, const Facts *f, const Cond *c)
{
    MeteredProver *m = (MeteredProver *)self;
    if (!m->left)
        return (Proof){ .reason = "too many questions" };
    Proof p = prove_satisfiable(m->inner, f, c);
    uint64_t cost = ASKED * (1 + f->conds.len) + p.effort;
    m->left -= cost < m->left ? cost : m->left;
    return p;
}

MeteredProver prover_metered(Prover *inner, uint64_t most)
{
    return (MeteredProver){ .base = { .name = inner->name,
                                      .satisfiable = metered_satisfiable },
                            .inner = inner,
                            .left = most };
}

/* ---- what holds ---------------------------------------------------------- */

bool seek_can_hold(const Seeker *s, const Facts *f, const Cond *cond)
{
    return prove_satisfiable(s->prover, f, cond).answer == PROVE_yes;
}

/* Does one of the sets have it? */
static bool is_covered(const Seeker *s, const Facts *f, const Cond *cond)
{
    ExprCtx *x = s->c->m->exprs;
    for (size_t k = 0; k < s->out->len; k++) {
        const SizeSet *set = &s->out->data[k];
        Env env = sizes_env(set);
        bool holds;
        if (cond && cond_eval(cond, &env, &holds) && !holds)
            continue;
        Facts *at = facts_copy(s->c->arena, f);
        for (unsigned i = 0; i < set->n; i++)
            facts_assume(at, cond_cmp(x, CMP_eq, affine_var(x, set->vars[i]),
                                      affine_const(x, set->values[i])));
        if (seek_can_hold(s, at, cond))
            return true;
    }
    return false;
}

static void add_where_it_can(const Seeker *s, const Facts *f, const Cond **cond,
                             const Cond *more)
{
    const Cond *both = cond_and(s->c->m->exprs, *cond, more);
    if (both && seek_can_hold(s, f, both))
        *cond = both;
}

/* The condition, and as far as it can be so: so many steps follow it in the
 * loops around op, and all loops have trips for all phases. */
static const Cond *with_steps(const Seeker *s, const Op *op, const Facts *f,
                              const Cond *cond)
{
    ExprCtx *x = s->c->m->exprs;
    for (op = op_parent(op); op; op = op_parent(op)) {
        if (op->code != OP_ctl_for ||
            strcmp(op_attr_str(op, "mode", "seq"), "seq"))
            continue;
        const Affine *left =
            affine_sub(x, op->operands[1].u.index,
                       affine_var(x, op->blocks[0]->args[0].var));
        add_where_it_can(s, f, &cond,
                         cond_cmp(x, CMP_gt, left, affine_const(x, s->trips)));
    }
    for (unsigned i = 0; i < s->c->n_loops; i++) {
        const SizeLoop *l = &s->c->loops[i];
        int64_t trips = l->tasks ? 1 : s->trips;
        add_where_it_can(s, f, &cond,
                         cond_cmp(x, CMP_ge, affine_sub(x, l->hi, l->lo),
                                  affine_const(x, trips)));
    }
    return cond;
}

void seek_steps(const Seeker *s, const Op *op, const Facts *f, const Cond *cond)
{
    cond = with_steps(s, op, f, cond);
    if (!is_covered(s, f, cond))
        sizes_least(s->c, s->prover, f, cond, s->base, s->out);
}

void seek_at(const Seeker *s, const Op *op, const Facts *f, const Cond *cond,
             const char *what)
{
    Proof p = prove_satisfiable(s->prover, f, cond);
    bool found = p.answer == PROVE_no || is_covered(s, f, cond) ||
                 (p.answer == PROVE_yes &&
                  sizes_least(s->c, s->prover, f, cond, s->base, s->out));
    if (!found && !s->out->beyond)
        s->out->beyond = arena_printf(
            s->c->arena, "%s of line %u %s: give sizes", what, op->loc.line,
            p.answer == PROVE_yes
                ? "changes its outcome at sizes alone that are not run"
                : "has outcomes that are not known to be met");
    if (p.answer == PROVE_yes)
        seek_steps(s, op, f, cond);
}
