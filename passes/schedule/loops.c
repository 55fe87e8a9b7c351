/* Splitting, joining and shifting loops: rewrites of ranges. What runs, and in
 * what order, stays the same, so only the arithmetic is to be proved. */
#include "passes/schedule/ops.h"

#include "ir/exo_build.h"

/* ---- shared ------------------------------------------------------------ */

static const Affine *lo_of(const Op *loop)
{
    return loop->operands[0].u.index;
}

static const Affine *hi_of(const Op *loop)
{
    return loop->operands[1].u.index;
}

/* Moves the statements of a block to the end of another. */
static void move_all(Block *from, Block *to)
{
    for (Op *op = from->first, *next; op; op = next) {
        next = op->next;
        op_detach(op);
        block_append(to, op);
    }
}

/* Rewrites the loop in place: it keeps its sid and body, gets a new range and
 * a fresh variable, in which the old one is `as`. */
static bool set_range(Sched *s, Op *loop, const char *name, const Affine *lo,
                      const Affine *hi, VarId v, const Affine *as)
{
    ExprCtx *x = s->m->exprs;
    Block *b = loop->blocks[0];
    VarId old = sched_loop_var(loop);
    if (!lo || !hi)
        return sched_fail(s, s->loc, "a bound passes 64 bits");
    (void)name;
    loop->operands[0] = opnd_index(lo);
    loop->operands[1] = opnd_index(hi);
    b->args = ARENA_ARRAY(s->m->arena, BlockArg, 1);
    b->args[0] = (BlockArg){ NULL, v };
    var_set_bounds(x, v, lo, hi);
    edit_replace(s->log, loop);
    return sched_subst(s, b, old, as);
}

static VarId fresh(Sched *s, const char *name)
{
    return var_new(s->m->exprs, name, VAR_iter);
}

static const char *var_name(Sched *s, const Op *loop)
{
    return var_get(s->m->exprs, sched_loop_var(loop))->name;
}

static bool starts_at_zero(Sched *s, const Op *loop, Loc loc)
{
    int64_t lo;
    if (affine_is_const(lo_of(loop), &lo) && lo == 0)
        return true;
    return sched_fail(s, loc, "'%s' does not start at 0: shift_loop it first",
                      sched_stmt_text(s, loop));
}

/* May trips be repeated, in any order? They may when one twice is one once, and
 * two change places. */
static bool trips_repeat(Sched *s, Op *loop, Loc loc)
{
    VarId v = sched_loop_var(loop), w;
    Facts *f = sched_facts_later(s, loop, &w);
    const Affine *to = affine_var(s->m->exprs, w);
    EffectVec now = { 0 }, later = { 0 };
    effects_of_block(s, loop->blocks[0], &now);
    return effects_idempotent(s, prove_facts_in(s->arena, s->m, loop, 0), &now,
                              loop->blocks[0], loc,
                              "the body is not idempotent") &&
           effects_renamed(s, &now, loop->parent, 1, &v, &to, &later) &&
           effects_commute(s, f, &now, &later, loc,
                           "a trip cannot be repeated after another");
}

/* ---- divide_loop ------------------------------------------------------- */

typedef struct Divide {
    Sched *s;
    Op *loop;
    int64_t q;
    const char *outer, *inner;
    Loc loc;
    const Affine *width;  /* trips of the inner loop where they are not q */
    int64_t trips, early; /* of the outer loop, when the last begins early */
} Divide;

/* Puts the loop's body into an inner loop below it; the loop becomes the outer
 * one of n trips, q apart, but the last by what it begins early. *whole is the
 * old variable in the new ones. */
static bool divide_main(Divide *d, const Affine *n, Op **inner,
                        const Affine **whole)
{
    Sched *s = d->s;
    ExprCtx *x = s->m->exprs;
    VarId vo = fresh(s, d->outer), vi;
    const Affine *zero = affine_const(x, 0);
    if (!n) {
        sched_fail(s, d->loc, "the number of trips passes 64 bits");
        return false;
    }
    const Affine *width = d->width ? d->width : affine_const(x, d->q);
    var_set_bounds(x, vo, zero, n);
    *inner = sched_loop(s, d->loop, d->inner, zero, width, &vi);
    *whole = affine_add(x, affine_scale(x, affine_var(x, vo), d->q),
                        affine_var(x, vi));
    if (d->early) {
        const Affine *last = affine_floordiv(
            x, affine_add_const(x, affine_var(x, vo), 1), d->trips);
        *whole = affine_sub(x, *whole, affine_scale(x, last, d->early));
    }
    move_all(d->loop->blocks[0], (*inner)->blocks[0]);
    edit_append(s->log, d->loop->blocks[0], *inner);
    VarId old = sched_loop_var(d->loop);
    return set_range(s, d->loop, d->outer, zero, n, vo, affine_var(x, old)) &&
           sched_subst(s, (*inner)->blocks[0], old, *whole);
}

static bool divide_guard(Divide *d)
{
    Sched *s = d->s;
    ExprCtx *x = s->m->exprs;
    const Affine *n = hi_of(d->loop), *whole;
    Facts *f = prove_facts_at(s->arena, s->m, d->loop);
    bool exact = prove_divisible(s->prover, f, n, d->q).answer == PROVE_yes;
    const Affine *up =
        affine_floordiv(x, affine_add_const(x, n, exact ? 0 : d->q - 1), d->q);
    Op *inner;
    if (!divide_main(d, up, &inner, &whole))
        return false;
    if (exact)
        return true;
    const Cond *c = cond_cmp(x, CMP_lt, whole, n);
    if (!c)
        return sched_fail(s, d->loc, "the guard passes 64 bits");
    Op *guard = op_new(s->m, OP_ctl_if, d->loop->loc, 1, 0, 1);
    guard->operands[0] = opnd_cond(c);
    move_all(inner->blocks[0], guard->blocks[0]);
    edit_append(s->log, inner->blocks[0], guard);
    return true;
}

static bool divide_perfect(Divide *d)
{
    Sched *s = d->s;
    ExprCtx *x = s->m->exprs;
    const Affine *n = hi_of(d->loop), *whole;
    Facts *f = prove_facts_at(s->arena, s->m, d->loop);
    Op *inner;
    const Cond *exact =
        cond_cmp(x, CMP_eq, affine_mod(x, n, d->q), affine_const(x, 0));
    return sched_prove(s, f, exact, d->loc,
                       "%lld does not divide the trips %s of '%s'",
                       (long long)d->q, sched_index_text(s, n),
                       sched_stmt_text(s, d->loop)) &&
           divide_main(d, affine_floordiv(x, n, d->q), &inner, &whole);
}

/* The remaining n mod q trips as a loop behind, under `if` when guarded. */
static bool divide_cut(Divide *d, bool guarded)
{
    Sched *s = d->s;
    ExprCtx *x = s->m->exprs;
    const Affine *n = hi_of(d->loop), *zero = affine_const(x, 0), *whole;
    const Affine *rest = affine_mod(x, n, d->q);
    const Affine *full = affine_floordiv(x, n, d->q);
    VarId v;
    Facts *f = prove_facts_at(s->arena, s->m, d->loop);
    if (!rest || !full)
        return sched_fail(s, d->loc, "the bounds pass 64 bits");
    if (!sched_prove(s, f, cond_cmp(x, CMP_ge, n, zero), d->loc,
                     "the loop may end before it starts, and its rest would "
                     "run"))
        return false;
    Op *tail = sched_loop(s, d->loop, d->inner, zero, rest, &v), *inner;
    const Affine *at =
        affine_add(x, affine_scale(x, full, d->q), affine_var(x, v));
    if (!sched_clone_into(s, d->loop->blocks[0], tail->blocks[0],
                          sched_loop_var(d->loop), at) ||
        !divide_main(d, full, &inner, &whole))
        return false;
    edit_insert_after(s->log, d->loop, tail);
    if (!guarded)
        return true;
    Op *guard = op_new(s->m, OP_ctl_if, d->loop->loc, 1, 0, 1);
    guard->operands[0] = opnd_cond(cond_cmp(x, CMP_gt, rest, zero));
    edit_wrap(s->log, tail, tail, guard);
    return true;
}

/* Trip io + 1 = trips alone has (io + 1) / trips = 1. */
static bool divide_overlap(Divide *d)
{
    Sched *s = d->s;
    const Affine *whole;
    int64_t n;
    Op *inner;
    if (!affine_is_const(hi_of(d->loop), &n) || n < d->q)
        return sched_fail(s, d->loc,
                          "'%s' has no literal number of trips, or fewer than "
                          "%lld",
                          sched_stmt_text(s, d->loop), (long long)d->q);
    d->trips = n / d->q + (n % d->q != 0);
    d->early = d->trips * d->q - n;
    return (!d->early || trips_repeat(s, d->loop, d->loc)) &&
           divide_main(d, affine_const(s->m->exprs, d->trips), &inner, &whole);
}

bool sched_divide_loop(Sched *s, const SchedArg *a)
{
    Divide d = { .s = s,
                 .loop = a[0].at.first,
                 .q = a[1].i,
                 .outer = a[2].s,
                 .inner = a[3].s,
                 .loc = a[0].loc };
    if (d.q < 1)
        return sched_fail(s, a[1].loc, "expected a positive number, found %lld",
                          (long long)d.q);
    if (!starts_at_zero(s, d.loop, a[0].loc))
        return false;
    if (!strcmp(a[4].s, "guard"))
        return divide_guard(&d);
    if (!strcmp(a[4].s, "perfect"))
        return divide_perfect(&d);
    if (!strcmp(a[4].s, "cut") || !strcmp(a[4].s, "cut_and_guard"))
        return divide_cut(&d, a[4].s[3] != 0);
    if (!strcmp(a[4].s, "overlap"))
        return divide_overlap(&d);
    return sched_fail(s, a[4].loc,
                      "tail is guard, cut, cut_and_guard, perfect or overlap, "
                      "found '%s'",
                      a[4].s);
}

/* ---- divide_with_recompute --------------------------------------------- */

/* Trip io runs q * io and all that follow, one more than the rest n - q * trips
 * leaves, so that the last ends at n. */
bool sched_divide_with_recompute(Sched *s, const SchedArg *a)
{
    Divide d = { .s = s,
                 .loop = a[0].at.first,
                 .q = a[2].i,
                 .outer = a[3].s,
                 .inner = a[4].s,
                 .loc = a[0].loc };
    ExprCtx *x = s->m->exprs;
    const Affine *trips = sched_index(s, d.loop, a[1].loc, a[1].s), *whole;
    if (!trips || !starts_at_zero(s, d.loop, a[0].loc))
        return false;
    if (d.q < 1)
        return sched_fail(s, a[2].loc, "expected a positive number, found %lld",
                          (long long)d.q);
    Facts *f = prove_facts_at(s->arena, s->m, d.loop);
    const Affine *rest =
        affine_sub(x, hi_of(d.loop), affine_scale(x, trips, d.q));
    Op *inner;
    d.width = affine_add_const(x, rest, d.q);
    if (!d.width)
        return sched_fail(s, a[1].loc, "the bounds pass 64 bits");
    return sched_prove(s, f, cond_cmp(x, CMP_ge, rest, affine_const(x, 0)),
                       a[1].loc, "%s times %lld may pass the trips %s",
                       sched_index_text(s, trips), (long long)d.q,
                       sched_index_text(s, hi_of(d.loop))) &&
           sched_prove(s, f, cond_cmp(x, CMP_ge, trips, affine_const(x, 1)),
                       a[1].loc, "there may be no trip") &&
           trips_repeat(s, d.loop, a[0].loc) &&
           divide_main(&d, trips, &inner, &whole);
}

/* ---- mult_loops -------------------------------------------------------- */

static Op *perfect_inner(Sched *s, Op *outer, Loc loc)
{
    Op *inner = sole_stmt(outer->blocks[0]);
    if (inner && inner->code == OP_ctl_for)
        return inner;
    sched_fail(s, loc, "'%s' does not hold one loop alone",
               sched_stmt_text(s, outer));
    return NULL;
}

bool sched_mult_loops(Sched *s, const SchedArg *a)
{
    ExprCtx *x = s->m->exprs;
    Op *outer = a[0].at.first, *inner = perfect_inner(s, outer, a[0].loc);
    int64_t c;
    if (!inner || !starts_at_zero(s, outer, a[0].loc) ||
        !starts_at_zero(s, inner, a[0].loc))
        return false;
    if (!affine_is_const(hi_of(inner), &c) || c < 1)
        return sched_fail(s, a[0].loc,
                          "the inner bound %s is no positive "
                          "number",
                          sched_index_text(s, hi_of(inner)));
    const Affine *n = affine_scale(x, hi_of(outer), c);
    if (!n)
        return sched_fail(s, a[0].loc, "the number of trips passes 64 bits");
    VarId v = fresh(s, a[1].s), vo = sched_loop_var(outer);
    VarId vi = sched_loop_var(inner);
    var_set_bounds(x, v, affine_const(x, 0), n);
    const Affine *e = affine_var(x, v);
    edit_unwrap(s->log, inner, inner->blocks[0]);
    return set_range(s, outer, a[1].s, affine_const(x, 0), n, v,
                     affine_floordiv(x, e, c)) &&
           sched_subst(s, outer->blocks[0], vi, affine_mod(x, e, c)) &&
           (vo != v);
}

/* ---- cut_loop, shift_loop, extend_loop, join_loops ---------------------- */

bool sched_cut_loop(Sched *s, const SchedArg *a)
{
    ExprCtx *x = s->m->exprs;
    Op *loop = a[0].at.first;
    const Affine *lo = lo_of(loop), *hi = hi_of(loop);
    const Affine *cut = sched_index(s, loop, a[1].loc, a[1].s);
    Facts *f = prove_facts_at(s->arena, s->m, loop);
    if (!cut)
        return false;
    if (!sched_prove(s, f, cond_cmp(x, CMP_le, lo, cut), a[1].loc,
                     "the cut %s may lie before the loop's start",
                     sched_index_text(s, cut)) ||
        !sched_prove(s, f, cond_cmp(x, CMP_le, cut, hi), a[1].loc,
                     "the cut %s may lie behind the loop's end",
                     sched_index_text(s, cut)))
        return false;
    VarId v2, v1 = fresh(s, var_name(s, loop));
    Op *second = sched_loop(s, loop, var_name(s, loop), cut, hi, &v2);
    if (!sched_clone_into(s, loop->blocks[0], second->blocks[0],
                          sched_loop_var(loop), affine_var(x, v2)))
        return false;
    edit_insert_after(s->log, loop, second);
    return set_range(s, loop, NULL, lo, cut, v1, affine_var(x, v1));
}

bool sched_shift_loop(Sched *s, const SchedArg *a)
{
    ExprCtx *x = s->m->exprs;
    Op *loop = a[0].at.first;
    const Affine *to = sched_index(s, loop, a[1].loc, a[1].s);
    if (!to)
        return false;
    Facts *f = prove_facts_at(s->arena, s->m, loop);
    if (!sched_prove(s, f, cond_cmp(x, CMP_ge, to, affine_const(x, 0)),
                     a[1].loc, "the new start %s may be negative",
                     sched_index_text(s, to)))
        return false;
    const Affine *by = affine_sub(x, to, lo_of(loop));
    const Affine *hi = affine_add(x, hi_of(loop), by);
    VarId v = fresh(s, var_name(s, loop));
    if (!by || !hi)
        return sched_fail(s, a[1].loc, "a bound passes 64 bits");
    var_set_bounds(x, v, to, hi);
    return set_range(s, loop, NULL, to, hi, v,
                     affine_sub(x, affine_var(x, v), by));
}

/* The body under the part of the old range that the new one does not imply. */
static bool guard_range(Sched *s, Op *loop, const Affine *lo, const Affine *hi)
{
    ExprCtx *x = s->m->exprs;
    const Affine *v = affine_var(x, sched_loop_var(loop));
    const Cond *in = cond_bool(x, true);
    if (lo != lo_of(loop))
        in = cond_and(x, in, cond_cmp(x, CMP_ge, v, lo));
    if (hi != hi_of(loop))
        in = cond_and(x, in, cond_cmp(x, CMP_lt, v, hi));
    if (!in)
        return sched_fail(s, s->loc, "a condition passes 64 bits");
    if (in->kind == COND_true)
        return true;
    Op *guard = op_new(s->m, OP_ctl_if, loop->loc, 1, 0, 1);
    guard->operands[0] = opnd_cond(in);
    edit_wrap(s->log, block_first_stmt(loop->blocks[0]),
              block_last_stmt(loop->blocks[0]), guard);
    return true;
}

bool sched_extend_loop(Sched *s, const SchedArg *a)
{
    ExprCtx *x = s->m->exprs;
    Op *loop = a[0].at.first;
    const Affine *old_lo = lo_of(loop), *old_hi = hi_of(loop);
    const Affine *lo = sched_index(s, loop, a[1].loc, a[1].s);
    const Affine *hi = lo ? sched_index(s, loop, a[2].loc, a[2].s) : NULL;
    if (!hi)
        return false;
    Facts *f = prove_facts_at(s->arena, s->m, loop);
    if (!sched_prove(s, f, cond_cmp(x, CMP_ge, lo, affine_const(x, 0)),
                     a[1].loc, "the new start %s may be negative",
                     sched_index_text(s, lo)) ||
        !sched_prove(s, f, cond_cmp(x, CMP_le, lo, old_lo), a[1].loc,
                     "the new start %s may lie behind the old one",
                     sched_index_text(s, lo)) ||
        !sched_prove(s, f, cond_cmp(x, CMP_ge, hi, old_hi), a[2].loc,
                     "the new end %s may lie before the old one",
                     sched_index_text(s, hi)))
        return false;
    VarId v = fresh(s, var_name(s, loop));
    return set_range(s, loop, NULL, lo, hi, v, affine_var(x, v)) &&
           guard_range(s, loop, old_lo, old_hi);
}

bool sched_join_loops(Sched *s, const SchedArg *a)
{
    ExprCtx *x = s->m->exprs;
    Op *first = a[0].at.first, *second = a[1].at.first;
    if (stmt_next(first) != second || stmt_first(second) != second)
        return sched_fail(s, a[1].loc, "the loops do not stand side by side");
    if (!loop_modes_equal(first, second))
        return sched_fail(s, a[1].loc, "the loops have different modes");
    Facts *f = prove_facts_at(s->arena, s->m, first);
    if (!sched_prove(s, f, cond_cmp(x, CMP_eq, hi_of(first), lo_of(second)),
                     a[1].loc,
                     "the second loop does not start where the "
                     "first ends") ||
        !sched_prove(s, f, cond_cmp(x, CMP_le, lo_of(first), hi_of(first)),
                     a[0].loc, "the first loop may end before it starts") ||
        !sched_prove(s, f, cond_cmp(x, CMP_le, lo_of(second), hi_of(second)),
                     a[1].loc, "the second loop may end before it starts"))
        return false;
    VarId v = fresh(s, var_name(s, first));
    var_set_bounds(x, v, lo_of(first), hi_of(second));
    const Affine *e = affine_var(x, v);
    if (!sched_subst(s, second->blocks[0], sched_loop_var(second), e) ||
        !set_range(s, first, NULL, lo_of(first), hi_of(second), v, e))
        return false;
    if (!sched_blocks_equal(s, f, first->blocks[0], second->blocks[0]))
        return sched_fail(s, a[1].loc, "the bodies differ");
    edit_erase(s->log, second);
    return true;
}

/* ---- unroll_loop, add_loop, specialize --------------------------------- */

bool sched_unroll_loop(Sched *s, const SchedArg *a)
{
    enum { MAX_TRIPS = 4096 };
    Op *loop = a[0].at.first;
    int64_t lo, hi;
    if (!affine_is_const(lo_of(loop), &lo) ||
        !affine_is_const(hi_of(loop), &hi))
        return sched_fail(s, a[0].loc, "the bounds of '%s' are no numbers",
                          sched_stmt_text(s, loop));
    if (hi - lo > MAX_TRIPS)
        return sched_fail(s, a[0].loc, "more than %d trips", MAX_TRIPS);
    Block *all = block_new(s->m, NULL);
    for (int64_t i = lo; i < hi; i++)
        if (!sched_clone_into(s, loop->blocks[0], all, sched_loop_var(loop),
                              affine_const(s->m->exprs, i)))
            return false;
    if (hi <= lo)
        block_append(all, op_new(s->m, OP_ctl_pass, loop->loc, 0, 0, 0));
    edit_unwrap(s->log, loop, all);
    s->result = 0;
    return true;
}

bool sched_specialize(Sched *s, const SchedArg *a)
{
    Op *first = a[0].at.first, *last = a[0].at.last;
    const Cond *c = sched_cond(s, first, a[1].loc, a[1].s);
    if (!c)
        return false;
    if (sched_escapes(s, first, last))
        return sched_fail(s, a[0].loc,
                          "what the block allocates is used "
                          "behind it");
    Op *branch = op_new(s->m, OP_ctl_if, first->loc, 1, 0, 2);
    branch->operands[0] = opnd_cond(c);
    edit_wrap(s->log, first, last, branch);
    block_clone_into(clone_map_new(s->m, s->m), branch->blocks[0],
                     branch->blocks[1]);
    s->result = branch->sid;
    return true;
}
