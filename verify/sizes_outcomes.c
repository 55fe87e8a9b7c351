/* Sizes at which the conditions of a program have each of their outcomes.
 *
 * An expression that a condition compares with zero is below it, on it or
 * above it. The prover finds the least sizes for each of these, under what
 * holds at the condition; and once more with steps that follow and with trips
 * in all loops, since what a skipped statement leaves undone shows later; and
 * for each two of the first expressions, all pairs of these. What one of the
 * sets has already is not sought. */
#include "verify/sizes_impl.h"

#include <string.h>

/* Expressions of one program, and those of which pairs are sought. */
enum { MOST_EXPRS = 32, MOST_PAIRED = 12 };

typedef struct Compared {
    Op *op;
    const Affine *expr;
} Compared;

typedef struct Outcomes {
    Chooser *c;
    Prover *prover;
    SizeSets *out;
    const int64_t *base;
    int64_t trips; /* that a loop should have for all its phases */
    Op *op;        /* being looked at */
    Compared compared[MOST_EXPRS];
    unsigned n;
    bool too_many;
} Outcomes;

/* ---- the expressions ----------------------------------------------------- */

/* Do sizes decide it: is one in it, or a loop whose trips they decide? */
static bool is_sized(const Chooser *c, const Affine *e)
{
    for (unsigned i = 0; i < c->set.n; i++)
        if (affine_uses(e, c->set.vars[i]))
            return true;
    for (unsigned i = 0; i < c->n_loops; i++)
        if (affine_uses(e, c->loops[i].var))
            return true;
    return false;
}

static void note_expr(const Affine *e, void *user)
{
    Outcomes *o = user;
    for (unsigned i = 0; i < o->n; i++)
        if (o->compared[i].expr == e &&
            op_parent(o->compared[i].op) == op_parent(o->op))
            return;
    if (!is_sized(o->c, e))
        return;
    if (o->n == MOST_EXPRS)
        o->too_many = true;
    else
        o->compared[o->n++] = (Compared){ o->op, e };
}

static bool note_if(Op *op, void *user)
{
    Outcomes *o = user;
    o->op = op;
    if (op->code == OP_ctl_if)
        cond_walk_exprs(op->operands[0].u.cond, note_expr, o);
    return true;
}

/* ---- one outcome --------------------------------------------------------- */

static const Cond *outcome(const Outcomes *o, const Affine *e, CmpOp cmp)
{
    ExprCtx *x = o->c->m->exprs;
    return cond_cmp(x, cmp, e, affine_const(x, 0));
}

static bool can_hold(const Outcomes *o, const Facts *f, const Cond *c)
{
    return prove_satisfiable(o->prover, f, c).answer == PROVE_yes;
}

/* Does one of the sets have it? */
static bool is_covered(const Outcomes *o, const Facts *f, const Cond *cond)
{
    ExprCtx *x = o->c->m->exprs;
    for (size_t k = 0; k < o->out->len; k++) {
        const SizeSet *set = &o->out->data[k];
        Facts *at = facts_copy(o->c->arena, f);
        for (unsigned i = 0; i < set->n; i++)
            facts_assume(at, cond_cmp(x, CMP_eq, affine_var(x, set->vars[i]),
                                      affine_const(x, set->values[i])));
        if (can_hold(o, at, cond))
            return true;
    }
    return false;
}

static void add_where_it_can(const Outcomes *o, const Facts *f,
                             const Cond **cond, const Cond *more)
{
    const Cond *both = cond_and(o->c->m->exprs, *cond, more);
    if (both && can_hold(o, f, both))
        *cond = both;
}

/* The condition, and as far as it can be so: so many steps follow it in the
 * loops around op, and all loops have trips for all phases. */
static const Cond *with_steps(const Outcomes *o, const Op *op, const Facts *f,
                              const Cond *cond)
{
    ExprCtx *x = o->c->m->exprs;
    for (op = op_parent(op); op; op = op_parent(op)) {
        if (op->code != OP_ctl_for ||
            strcmp(op_attr_str(op, "mode", "seq"), "seq"))
            continue;
        const Affine *left =
            affine_sub(x, op->operands[1].u.index,
                       affine_var(x, op->blocks[0]->args[0].var));
        add_where_it_can(o, f, &cond,
                         cond_cmp(x, CMP_gt, left, affine_const(x, o->trips)));
    }
    for (unsigned i = 0; i < o->c->n_loops; i++) {
        const SizeLoop *l = &o->c->loops[i];
        int64_t trips = l->tasks ? 1 : o->trips;
        add_where_it_can(o, f, &cond,
                         cond_cmp(x, CMP_ge, affine_sub(x, l->hi, l->lo),
                                  affine_const(x, trips)));
    }
    return cond;
}

static void seek(Outcomes *o, const Op *op, const Facts *f, const Cond *cond)
{
    Proof p = prove_satisfiable(o->prover, f, cond);
    bool found = p.answer == PROVE_no || is_covered(o, f, cond) ||
                 (p.answer == PROVE_yes &&
                  sizes_least(o->c, o->prover, f, cond, o->base, o->out));
    if (!found && !o->out->beyond)
        o->out->beyond = arena_printf(
            o->c->arena, "the condition of line %u %s: give sizes",
            op->loc.line,
            p.answer == PROVE_yes
                ? "changes its outcome at sizes alone that are not run"
                : "has outcomes that are not known to be met");
    if (p.answer != PROVE_yes)
        return;
    cond = with_steps(o, op, f, cond);
    if (!is_covered(o, f, cond))
        sizes_least(o->c, o->prover, f, cond, o->base, o->out);
}

static const CmpOp sides[] = { CMP_eq, CMP_lt, CMP_gt };

static void seek_pair(Outcomes *o, const Compared *a, const Compared *b)
{
    ExprCtx *x = o->c->m->exprs;
    Facts *f =
        facts_copy(o->c->arena, prove_facts_at(o->c->arena, o->c->m, a->op));
    const Facts *g = prove_facts_at(o->c->arena, o->c->m, b->op);
    for (size_t i = 0; i < g->conds.len; i++)
        facts_assume(f, g->conds.data[i]);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < 3; k++) {
            const Cond *cond = cond_and(x, outcome(o, a->expr, sides[i]),
                                        outcome(o, b->expr, sides[k]));
            if (!can_hold(o, f, cond))
                continue;
            cond = with_steps(o, b->op, f, cond);
            if (!is_covered(o, f, cond))
                sizes_least(o->c, o->prover, f, cond, o->base, o->out);
        }
}

void sizes_outcomes(Chooser *c, Prover *prover, int64_t trips, SizeSets *out)
{
    int64_t *base =
        arena_memdup(c->arena, c->values, (c->set.n + 1) * sizeof *base);
    Outcomes o = {
        .c = c, .prover = prover, .out = out, .base = base, .trips = trips
    };
    op_walk((Op *)c->proc, note_if, &o);
    for (unsigned i = 0; i < o.n; i++)
        for (unsigned k = 0; k < 3; k++)
            seek(&o, o.compared[i].op,
                 prove_facts_at(c->arena, c->m, o.compared[i].op),
                 outcome(&o, o.compared[i].expr, sides[k]));
    unsigned paired = o.n < MOST_PAIRED ? o.n : MOST_PAIRED;
    for (unsigned i = 0; i < paired; i++)
        for (unsigned k = 0; k < i; k++)
            seek_pair(&o, &o.compared[k], &o.compared[i]);
    if (o.too_many && !out->beyond)
        out->beyond = "there are too many conditions on sizes to take each of "
                      "them through its outcomes: give sizes";
    chooser_load(c, base);
}
