/* Prover layer 1: what needs no solver.
 *
 * First by interval: a comparison whose expression stays on one side of 0 over
 * the variables' bounds is decided. Otherwise the facts and the question
 * become linear constraints over atoms (prove_linear.h). e mod c is written
 * e - c * (e floordiv c); each floordiv is an unknown q with
 * 0 <= e - c*q < c; a product is an unknown with the inequalities that bounds
 * of its factors give (McCormick), and with its other factor times the
 * symbolic bounds of a variable. Disjunctions and != are split into cases,
 * each of which is solved; all without a solution: no. A solution is evaluated
 * in every condition before it becomes a yes. */
#include "passes/prove.h"
#include "passes/prove_linear.h"

#include <stdlib.h>

enum {
    MAX_CASES = 150,       /* systems solved for one question */
    MAX_PRODUCT_DEPTH = 2, /* products made of products' bounds */
    MAX_CHECKS = 40        /* solutions evaluated for one system */
};

typedef struct Todo {
    const Cond *c;
    bool positive;
    const struct Todo *next;
} Todo;

typedef struct Query {
    Arena *arena;
    const Facts *facts;
    ExprCtx *x;
    CondVec conds; /* all that must hold */
    LinearSystem sys;
    const Atom *atoms[LINEAR_COLS]; /* of the system's unknowns */
    unsigned cases, checks;
    unsigned long effort; /* squares of the rows of the systems */
    bool large; /* some constraint was left out or a case not solved */
    bool cut;   /* cases were left out */
    bool nonlinear;
    Proof *out;
} Query;

/* ---- from expressions to rows -------------------------------------------- */

static bool madd(int64_t *sum, int64_t a, int64_t b)
{
    int64_t p;
    return !__builtin_mul_overflow(a, b, &p) &&
           !__builtin_add_overflow(*sum, p, sum) && *sum != INT64_MIN;
}

static bool linearise(Query *q, LinearRow *row, const Affine *a, int64_t k,
                      int depth);

/* Adds a >= 0 to the system; leaves it out when it does not fit. */
static void add_row(Query *q, const Affine *a, bool equal, int depth)
{
    LinearRow row = { .equal = equal };
    if (a && linearise(q, &row, a, 1, depth))
        VEC_PUSH(q->arena, &q->sys.rows, row);
    else
        q->large = true;
}

/* (l - a) * (r - b) >= 0 or its negative, for the product atom p = l * r. */
static void product_row(Query *q, const Affine *p, const Atom *atom, int64_t a,
                        int64_t b, int sign, int depth)
{
    const Affine *e = affine_sub(q->x, p, affine_scale(q->x, atom->lhs, b));
    e = affine_sub(q->x, e, affine_scale(q->x, atom->rhs, a));
    int64_t ab;
    if (__builtin_mul_overflow(a, b, &ab))
        return;
    e = affine_add_const(q->x, e, ab);
    add_row(q, affine_scale(q->x, e, sign), false, depth);
}

static void product_corners(Query *q, const Affine *p, const Atom *atom,
                            int depth)
{
    int64_t l[2], r[2];
    bool has_l[2] = { affine_min(q->x, atom->lhs, &l[0]),
                      affine_max(q->x, atom->lhs, &l[1]) };
    bool has_r[2] = { affine_min(q->x, atom->rhs, &r[0]),
                      affine_max(q->x, atom->rhs, &r[1]) };
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (has_l[i] && has_r[j])
                product_row(q, p, atom, l[i], r[j], i == j ? 1 : -1, depth);
}

/* For a factor v with symbolic bounds and another factor of known sign:
 * (v - lo) * other and (hi - 1 - v) * other are not negative. */
static void product_bounds(Query *q, const Affine *v, const Affine *other,
                           int depth)
{
    VarId id;
    int64_t least;
    if (!affine_is_var(v, &id) || !affine_min(q->x, other, &least) || least < 0)
        return;
    const Var *var = var_get(q->x, id);
    if (var->lo && !affine_is_const(var->lo, NULL))
        add_row(q, affine_mul(q->x, affine_sub(q->x, v, var->lo), other), false,
                depth);
    if (var->hi && !affine_is_const(var->hi, NULL)) {
        const Affine *gap = affine_sub(q->x, var->hi, v);
        gap = affine_add_const(q->x, gap, -1);
        add_row(q, affine_mul(q->x, gap, other), false, depth);
    }
}

/* What is known of a new unknown by what it is. */
static void define_atom(Query *q, const Atom *atom, int depth)
{
    Affine one = { .n_terms = 1, .terms = &(Term){ 1, atom } };
    const Affine *self = affine_add_const(q->x, &one, 0);
    if (atom->kind == ATOM_floordiv) {
        const Affine *rest = affine_sub(
            q->x, atom->arg, affine_scale(q->x, self, atom->divisor));
        const Affine *room =
            affine_sub(q->x, affine_const(q->x, atom->divisor - 1), rest);
        add_row(q, rest, false, depth);
        add_row(q, room, false, depth);
    }
    if (atom->kind != ATOM_opaque || atom->opaque != OPAQUE_product)
        return;
    LinearRow unused = { 0 };
    q->nonlinear = true;
    if (!linearise(q, &unused, atom->lhs, 1, depth) ||
        !linearise(q, &unused, atom->rhs, 1, depth))
        q->large = true;
    product_corners(q, self, atom, depth);
    if (depth >= MAX_PRODUCT_DEPTH)
        return;
    product_bounds(q, atom->lhs, atom->rhs, depth + 1);
    product_bounds(q, atom->rhs, atom->lhs, depth + 1);
}

/* The unknown of an atom; LINEAR_COLS where there is no room. Some columns
 * are left to the solver. */
static unsigned atom_column(Query *q, const Atom *atom, int depth)
{
    for (unsigned i = 0; i < q->sys.n_cols; i++)
        if (q->atoms[i] == atom)
            return i;
    if (q->sys.n_cols >= LINEAR_COLS - 8)
        return LINEAR_COLS;
    unsigned col = q->sys.n_cols++;
    q->atoms[col] = atom;
    define_atom(q, atom, depth);
    return col;
}

/* row += k * a; false on an overflow or without room. */
static bool linearise(Query *q, LinearRow *row, const Affine *a, int64_t k,
                      int depth)
{
    if (!a || !madd(&row->k[LINEAR_COLS], k, a->constant))
        return false;
    for (uint32_t i = 0; i < a->n_terms; i++) {
        const Atom *atom = a->terms[i].atom;
        int64_t c = 0;
        if (!madd(&c, k, a->terms[i].coef))
            return false;
        if (atom->kind != ATOM_mod) {
            unsigned col = atom_column(q, atom, depth);
            if (col == LINEAR_COLS || !madd(&row->k[col], c, 1))
                return false;
            continue;
        }
        int64_t less = 0;
        const Affine *quotient =
            affine_floordiv(q->x, atom->arg, atom->divisor);
        if (!madd(&less, -c, atom->divisor) ||
            !linearise(q, row, atom->arg, c, depth) ||
            !linearise(q, row, quotient, less, depth))
            return false;
    }
    return true;
}

/* ---- solutions ----------------------------------------------------------- */

static bool atom_is_free(const Atom *atom)
{
    return atom->kind == ATOM_var ||
           (atom->kind == ATOM_opaque && atom->opaque != OPAQUE_product);
}

static int by_order(const void *a, const void *b)
{
    const AtomValue *l = a, *r = b;
    return (l->atom->order > r->atom->order) -
           (l->atom->order < r->atom->order);
}

/* Takes a solution of the linear system if it is one of the conditions. */
static bool accept_values(const int64_t *values, void *user)
{
    Query *q = user;
    AtomValue list[LINEAR_COLS];
    Proof p = { .answer = PROVE_yes, .values = list };
    if (++q->checks > MAX_CHECKS)
        return false;
    for (unsigned i = 0; i < q->sys.n_cols; i++)
        if (atom_is_free(q->atoms[i]))
            list[p.n_values++] = (AtomValue){ q->atoms[i], values[i] };
    Env env = proof_env(&p);
    for (size_t i = 0; i < q->conds.len; i++) {
        bool holds = false;
        if (!cond_eval(q->conds.data[i], &env, &holds) || !holds)
            return false;
    }
    qsort(list, p.n_values, sizeof *list, by_order);
    p.values = arena_memdup(q->facts->arena, list, p.n_values * sizeof *list);
    *q->out = p;
    return true;
}

/* ---- cases --------------------------------------------------------------- */

/* The two halves of a disjunction (a != b: a > b and a < b). */
static void split_cases(Query *q, const Todo *or_, Todo half[2])
{
    const Cond *c = or_->c;
    half[0] = half[1] = (Todo){ NULL, or_->positive, NULL };
    if (c->kind == COND_eq0) {
        const Affine *zero = affine_const(q->x, 0);
        half[0].c = cond_cmp(q->x, CMP_gt, c->expr, zero);
        half[1].c = cond_cmp(q->x, CMP_lt, c->expr, zero);
        half[0].positive = half[1].positive = true;
    } else {
        half[0].c = c->lhs;
        half[1].c = c->rhs;
    }
}

static const Todo *todo_push(Query *q, const Todo *list, const Cond *c,
                             bool positive)
{
    Todo *t = ARENA_NEW(q->arena, Todo);
    *t = (Todo){ c, positive, list };
    return t;
}

/* Moves conjunctions into the system and disjunctions to *ors; false where
 * one of them is false. */
static bool take_conjunctions(Query *q, const Todo *todo, const Todo **ors)
{
    while (todo) {
        const Cond *c = todo->c;
        bool positive = todo->positive;
        todo = todo->next;
        switch (c->kind) {
        case COND_true:
        case COND_false:
            if ((c->kind == COND_true) != positive)
                return false;
            break;
        case COND_ge0:
            add_row(q, positive ? c->expr : cond_not(q->x, c)->expr, false, 0);
            break;
        case COND_not:
            todo = todo_push(q, todo, c->lhs, !positive);
            break;
        default:
            if (c->kind == COND_eq0 && positive) {
                add_row(q, c->expr, true, 0);
            } else if ((c->kind == COND_and) == positive &&
                       c->kind != COND_eq0) {
                todo = todo_push(q, todo, c->rhs, positive);
                todo = todo_push(q, todo, c->lhs, positive);
            } else {
                *ors = todo_push(q, *ors, c, positive);
            }
        }
    }
    return true;
}

/* Can the system, todo and ors hold together? True once a solution was taken;
 * otherwise q->cut and q->large tell whether that is certain. */
static bool solve_cases(Query *q, const Todo *todo, const Todo *ors)
{
    size_t mark = q->sys.rows.len;
    LinearAnswer answer = LINEAR_none;
    bool found = false;
    if (take_conjunctions(q, todo, &ors)) {
        q->checks = ors ? MAX_CHECKS - 4 : 0; /* the halves find better ones */
        if (q->cases++ >= MAX_CASES)
            answer = LINEAR_large;
        else
            answer = linear_solve(&q->sys, accept_values, q);
        q->effort += q->sys.rows.len * q->sys.rows.len;
    }
    if (answer == LINEAR_found) {
        found = true;
    } else if (answer == LINEAR_open && ors && q->cases < MAX_CASES) {
        Todo half[2];
        split_cases(q, ors, half);
        for (int i = 0; i < 2 && !found; i++)
            found = half[i].c ? solve_cases(q, &half[i], ors->next)
                              : (q->cut = true, false);
    } else if (answer != LINEAR_none) {
        q->cut = true;
        q->large |= answer == LINEAR_large;
    }
    q->sys.rows.len = mark;
    return found;
}

/* ---- the prover ---------------------------------------------------------- */

/* Is c (or, with positive false, its contrary) false by the intervals of its
 * expressions alone? */
static bool false_by_interval(ExprCtx *x, const Cond *c, bool positive)
{
    int64_t lo = 0, hi = 0;
    switch (c->kind) {
    case COND_true:
    case COND_false:
        return (c->kind == COND_false) == positive;
    case COND_ge0:
        return positive ? affine_max(x, c->expr, &hi) && hi < 0
                        : affine_min(x, c->expr, &lo) && lo >= 0;
    case COND_eq0:
        if (positive)
            return (affine_max(x, c->expr, &hi) && hi < 0) ||
                   (affine_min(x, c->expr, &lo) && lo > 0);
        return affine_max(x, c->expr, &hi) && hi <= 0 &&
               affine_min(x, c->expr, &lo) && lo >= 0;
    case COND_not:
        return false_by_interval(x, c->lhs, !positive);
    default:
        if ((c->kind == COND_and) == positive)
            return false_by_interval(x, c->lhs, positive) ||
                   false_by_interval(x, c->rhs, positive);
        return false_by_interval(x, c->lhs, positive) &&
               false_by_interval(x, c->rhs, positive);
    }
}

static const char *unknown_reason(const Query *q, bool complete)
{
    if (q->cases >= MAX_CASES)
        return "too many cases";
    if (q->large)
        return "too many constraints, or too large numbers";
    if (!complete)
        return "not all that holds here could be written down";
    return q->nonlinear ? "products of variables are not decided"
                        : "no proof and no counterexample was found";
}

/* Makes the unknowns of a condition, so that what defines them outlives the
 * cases. */
static void define_unknowns(Query *q, const Cond *c)
{
    if (!c)
        return;
    LinearRow unused = { 0 };
    if (c->expr && !linearise(q, &unused, c->expr, 1, 0))
        q->large = true;
    define_unknowns(q, c->lhs);
    define_unknowns(q, c->rhs);
}

static Proof layer1_satisfiable(Prover *self, const Facts *f, const Cond *c)
{
    (void)self;
    Proof out = { .answer = PROVE_no };
    if (false_by_interval(f->exprs, c, true))
        return out;
    Query q = { .arena = arena_new(), .facts = f, .x = f->exprs, .out = &out };
    q.sys.arena = q.arena;
    Facts scratch = *f;
    scratch.arena = q.arena;
    bool complete = facts_closure(&scratch, c, &q.conds);
    const Todo *todo = NULL;
    for (size_t i = 0; i < q.conds.len; i++)
        define_unknowns(&q, q.conds.data[i]);
    for (size_t i = q.conds.len; i-- > 0;)
        todo = todo_push(&q, todo, q.conds.data[i], true);
    bool found = solve_cases(&q, todo, NULL);
    if (found ? !complete : q.cut) {
        out = (Proof){ .answer = PROVE_unknown,
                       .reason = unknown_reason(&q, complete) };
    }
    out.effort = q.effort;
    arena_free(q.arena);
    return out;
}

Prover *prover_layer1(Arena *arena)
{
    Prover *p = ARENA_NEW(arena, Prover);
    p->name = "layer 1";
    p->satisfiable = layer1_satisfiable;
    return p;
}
