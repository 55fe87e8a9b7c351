/* Sizes at which the conditions and loops of a program have each of their
 * outcomes.
 *
 * An expression that a condition compares with zero is below it, on it or
 * above it; the condition holds or not; a loop is entered or not. The prover
 * finds the least sizes for each of these, under what holds there; and once
 * more with steps that follow and with trips in all loops, since what a skipped
 * statement leaves undone shows later; and for each two of the first
 * expressions, all pairs of these; and such that as many statements as can be
 * at once fail to synchronise. What one of the sets has already is not
 * sought. */
#include "verify/sizes_impl.h"

#include <string.h>

/* Expressions of one program, those of which pairs are sought, and guards that
 * are made to skip together. */
enum { MOST_EXPRS = 32, MOST_PAIRED = 12, MOST_GUARDS = 24 };

typedef struct Compared {
    Op *op;
    const Affine *expr;
} Compared;

/* A condition or a loop that decides whether something is synchronised, or
 * whether something is touched. */
typedef struct Guard {
    Op *op;
    const Cond *loose; /* then it is not, or then it is */
    bool mixed;        /* it decides both */
} Guard;

typedef struct Outcomes {
    const Seeker *s;
    Op *op; /* being looked at */
    Compared compared[MOST_EXPRS];
    unsigned n;
    Guard guards[MOST_GUARDS];
    unsigned n_guards;
    bool too_many;
} Outcomes;

static Facts *facts_at(const Outcomes *o, Op *op)
{
    return prove_facts_at(o->s->c->arena, o->s->c->m, op);
}

/* ---- what a block does --------------------------------------------------- */

typedef struct Doings {
    const Module *m;
    Arena *arena;
    bool syncs, touches;
} Doings;

static bool note_doing(Op *op, void *user)
{
    Doings *d = user;
    OpAccessVec all = { 0 };
    if (op->code == OP_par_fence || op->code == OP_par_arrive ||
        op->code == OP_par_await) {
        d->syncs = true;
        return true;
    }
    op_accesses(d->m, op, d->arena, &all);
    d->touches = d->touches || all.len;
    return true;
}

static Doings doings(const Outcomes *o, const Op *op, unsigned block)
{
    Doings d = { .m = o->s->c->m, .arena = o->s->c->arena };
    const Block *b = block < op->n_blocks ? op->blocks[block] : NULL;
    for (Op *in = b ? b->first : NULL; in; in = in->next)
        op_walk(in, note_doing, &d);
    return d;
}

/* ---- the expressions and guards ------------------------------------------ */

static void note_expr(const Affine *e, void *user)
{
    Outcomes *o = user;
    for (unsigned i = 0; i < o->n; i++)
        if (o->compared[i].expr == e &&
            op_parent(o->compared[i].op) == op_parent(o->op))
            return;
    if (!chooser_decides(o->s->c, e))
        return;
    if (o->n == MOST_EXPRS)
        o->too_many = true;
    else
        o->compared[o->n++] = (Compared){ o->op, e };
}

/* Where op's first block is entered under cond. */
static void note_guard(Outcomes *o, Op *op, const Cond *cond)
{
    ExprCtx *x = o->s->c->m->exprs;
    Doings in = doings(o, op, 0), other = doings(o, op, 1);
    const Cond *loose = NULL;
    bool mixed = (in.syncs ? in : other).touches;
    if (in.syncs != other.syncs && (!mixed || op->code == OP_ctl_if))
        loose = in.syncs ? cond_not(x, cond) : cond;
    else if (!in.syncs && !other.syncs && in.touches != other.touches)
        loose = in.touches ? cond : cond_not(x, cond);
    if (loose && o->n_guards == MOST_GUARDS)
        o->too_many = true;
    else if (loose)
        o->guards[o->n_guards++] =
            (Guard){ op, loose, mixed && (in.syncs || other.syncs) };
}

static void count_expr(const Affine *e, void *user)
{
    unsigned *n = user;
    *n += e != NULL;
}

/* Both outcomes of what is more than one comparison. */
static void seek_whole(Outcomes *o, Op *op, const Cond *cond, const char *what)
{
    Facts *f = facts_at(o, op);
    seek_at(o->s, op, f, cond, what);
    seek_at(o->s, op, f, cond_not(o->s->c->m->exprs, cond), what);
}

static void note_if(Outcomes *o, Op *op)
{
    const Cond *cond = op->operands[0].u.cond;
    unsigned n_exprs = 0, before = o->n;
    cond_walk_exprs(cond, count_expr, &n_exprs);
    cond_walk_exprs(cond, note_expr, o);
    if (o->n == before)
        return;
    note_guard(o, op, cond);
    if (n_exprs > 1)
        seek_whole(o, op, cond, "the condition");
}

static void note_for(Outcomes *o, Op *op)
{
    ExprCtx *x = o->s->c->m->exprs;
    const Affine *trips =
        affine_sub(x, op->operands[1].u.index, op->operands[0].u.index);
    if (strcmp(op_attr_str(op, "mode", "seq"), "seq") || !trips ||
        !chooser_decides(o->s->c, trips))
        return;
    const Cond *some = cond_cmp(x, CMP_gt, trips, affine_const(x, 0));
    note_guard(o, op, some);
    seek_whole(o, op, some, "the loop");
}

static bool note_op(Op *op, void *user)
{
    Outcomes *o = user;
    o->op = op;
    if (op->code == OP_ctl_if)
        note_if(o, op);
    else if (op->code == OP_ctl_for)
        note_for(o, op);
    return true;
}

/* ---- outcomes ------------------------------------------------------------ */

static const Cond *outcome(const Outcomes *o, const Affine *e, CmpOp cmp)
{
    ExprCtx *x = o->s->c->m->exprs;
    return cond_cmp(x, cmp, e, affine_const(x, 0));
}

static void assume_all(Facts *f, const Facts *more)
{
    for (size_t i = 0; i < more->conds.len; i++)
        facts_assume(f, more->conds.data[i]);
}

static const CmpOp sides[] = { CMP_eq, CMP_lt, CMP_gt };

static void seek_sides(const Outcomes *o, const Compared *a)
{
    Facts *f = facts_at(o, a->op);
    for (unsigned k = 0; k < 3; k++)
        seek_at(o->s, a->op, f, outcome(o, a->expr, sides[k]), "the condition");
}

static void seek_pair(const Outcomes *o, const Compared *a, const Compared *b)
{
    ExprCtx *x = o->s->c->m->exprs;
    Facts *f = facts_at(o, a->op);
    assume_all(f, facts_at(o, b->op));
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < 3; k++) {
            const Cond *cond = cond_and(x, outcome(o, a->expr, sides[i]),
                                        outcome(o, b->expr, sides[k]));
            if (seek_can_hold(o->s, f, cond))
                seek_steps(o->s, b->op, f, cond);
        }
}

/* The innermost loop of steps around both. */
static const Op *loop_around(const Op *a, const Op *b)
{
    for (a = op_parent(a); a; a = op_parent(a)) {
        const Op *of = op_parent(b);
        while (of && of != a)
            of = op_parent(of);
        if (of && a->code == OP_ctl_for &&
            !strcmp(op_attr_str(a, "mode", "seq"), "seq"))
            return a;
    }
    return NULL;
}

/* Which guards are to be loose with one: those too that keep something from
 * being touched then; those before it in a loop one step later, as they follow
 * it. */
typedef struct Together {
    bool mixed, next;
} Together;

/* Guard k is loose with guard i: added to the condition and the facts. */
static void join_guard(const Outcomes *o, unsigned i, unsigned k, bool next,
                       const Cond **cond, Facts **f)
{
    ExprCtx *x = o->s->c->m->exprs;
    const Guard *g = &o->guards[k];
    const Op *loop = next && k < i ? loop_around(o->guards[i].op, g->op) : NULL;
    VarId v = loop ? loop->blocks[0]->args[0].var : 0;
    const Affine *later =
        loop ? affine_add_const(x, affine_var(x, v), 1) : NULL;
    Subst step = { .n = loop ? 1 : 0, .var = &v, .to = &later };
    Facts *both = facts_copy(o->s->c->arena, *f);
    const Facts *more = facts_at(o, g->op);
    for (size_t n = 0; n < more->conds.len; n++)
        facts_assume(both, cond_subst(x, more->conds.data[n], &step));
    const Cond *all = cond_and(x, *cond, cond_subst(x, g->loose, &step));
    if (!all || !seek_can_hold(o->s, both, all))
        return;
    *cond = all;
    *f = both;
}

/* Guard i is loose, and as many others as can be at the same time. */
static void seek_loose(const Outcomes *o, unsigned i, Together with)
{
    Facts *f = facts_at(o, o->guards[i].op);
    const Cond *cond = o->guards[i].loose;
    if (!seek_can_hold(o->s, f, cond))
        return;
    for (unsigned k = 0; k < o->n_guards; k++)
        if (k != i && (with.mixed || !o->guards[k].mixed))
            join_guard(o, i, k, with.next, &cond, &f);
    seek_steps(o->s, o->guards[i].op, f, cond);
}

static bool any_mixed(const Outcomes *o)
{
    bool any = false;
    for (unsigned i = 0; i < o->n_guards; i++)
        any = any || o->guards[i].mixed;
    return any;
}

void sizes_outcomes(const Seeker *s)
{
    Outcomes o = { .s = s };
    op_walk((Op *)s->c->proc, note_op, &o);
    for (unsigned i = 0; i < o.n; i++)
        seek_sides(&o, &o.compared[i]);
    for (unsigned i = 0; i < o.n_guards; i++) {
        bool mixed = o.guards[i].mixed;
        seek_loose(&o, i, (Together){ .mixed = mixed });
        seek_loose(&o, i, (Together){ .mixed = mixed, .next = true });
        if (!mixed && any_mixed(&o))
            seek_loose(&o, i, (Together){ .mixed = true });
    }
    unsigned paired = o.n < MOST_PAIRED ? o.n : MOST_PAIRED;
    for (unsigned i = 0; i < paired; i++)
        for (unsigned k = 0; k < i; k++)
            seek_pair(&o, &o.compared[k], &o.compared[i]);
    if (o.too_many && !s->out->beyond)
        s->out->beyond = "there are too many conditions on sizes to take each "
                         "of them through its outcomes: give sizes";
    chooser_load(s->c, s->base);
}
