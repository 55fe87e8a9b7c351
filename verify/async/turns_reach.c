/* Sizes at which a turn may be seen, by intervals.
 *
 * At given sizes each variable of a kernel or of the program lies in an
 * interval: a parameter is a point, a coordinate is within its launch, a loop's
 * variable between its bounds. So does every expression, and a turn can be seen
 * only where its interval has the other side and every condition and loop
 * around it lets somebody in. What must be come to again is not to be in the
 * last round of its loop. One parameter after the other is moved up until that
 * is so. The run says whether it was. */
#include "verify/async/turns_impl.h"

#include "verify/sizes_impl.h"

#include <string.h>

enum { MAX_LINEAR = 2048, MAX_MENDED = 64 };
#define SIZE_RANGE (INT64_C(1) << 40)
/* Bounds of a run: executions of ops by warps, and elements of arguments. */
#define MOST_WORK 4e6
#define MOST_ELEMENTS 5e6

typedef struct Range {
    bool known;
    int64_t lo, hi;
} Range;

/* Sizes being tried. */
typedef struct Reach {
    const Turns *t;
    const TextTurn *turn;
    const Op *launch; /* of the kernel, or NULL */
    const SizeSet *set;
    Range *vars;          /* by VarId of the turn's module */
    uint64_t left;        /* work that may still be done */
    const TurnLoop *loop; /* in which it is to be come to again, or NULL, .. */
    int64_t rounds;       /* .. with so many rounds behind it, .. */
    unsigned dim;         /* .. by this one of its variables */
} Reach;

/* ---- intervals ----------------------------------------------------------- */

static Range range_of(const Reach *r, const Affine *e);

static Range point(int64_t v)
{
    return (Range){ true, v, v };
}

static Range range_product(Range a, Range b)
{
    int64_t x[4];
    Range out = { a.known && b.known, 0, 0 };
    if (!out.known || __builtin_mul_overflow(a.lo, b.lo, &x[0]) ||
        __builtin_mul_overflow(a.lo, b.hi, &x[1]) ||
        __builtin_mul_overflow(a.hi, b.lo, &x[2]) ||
        __builtin_mul_overflow(a.hi, b.hi, &x[3]))
        return (Range){ 0 };
    out.lo = out.hi = x[0];
    for (unsigned i = 1; i < 4; i++) {
        out.lo = x[i] < out.lo ? x[i] : out.lo;
        out.hi = x[i] > out.hi ? x[i] : out.hi;
    }
    return out;
}

static Range range_of_atom(const Reach *r, const Atom *a)
{
    if (a->kind == ATOM_var)
        return r->vars[a->var];
    if (a->kind == ATOM_opaque)
        return a->opaque == OPAQUE_product
                   ? range_product(range_of(r, a->lhs), range_of(r, a->rhs))
                   : (Range){ 0 };
    Range x = range_of(r, a->arg);
    int64_t lo = int_floordiv(x.lo, a->divisor);
    int64_t hi = int_floordiv(x.hi, a->divisor);
    if (a->kind == ATOM_floordiv)
        return (Range){ x.known, lo, hi };
    if (lo != hi)
        return (Range){ x.known, 0, a->divisor - 1 };
    return (Range){ x.known, int_mod(x.lo, a->divisor),
                    int_mod(x.hi, a->divisor) };
}

static Range range_of(const Reach *r, const Affine *e)
{
    Range sum = { true, e->constant, e->constant };
    for (uint32_t i = 0; i < e->n_terms && sum.known; i++) {
        int64_t c = e->terms[i].coef;
        Range x = range_product(range_of_atom(r, e->terms[i].atom),
                                (Range){ true, c, c });
        sum.known = x.known && !__builtin_add_overflow(sum.lo, x.lo, &sum.lo) &&
                    !__builtin_add_overflow(sum.hi, x.hi, &sum.hi);
    }
    return sum;
}

/* May c be `want`? Where nothing is known it may. */
static bool may_be(const Reach *r, const Cond *c, bool want)
{
    if (c->kind == COND_not)
        return may_be(r, c->lhs, !want);
    if (c->kind == COND_and || c->kind == COND_or) {
        bool l = may_be(r, c->lhs, want), k = may_be(r, c->rhs, want);
        return want == (c->kind == COND_and) ? l && k : l || k;
    }
    if (c->kind == COND_true || c->kind == COND_false)
        return want == (c->kind == COND_true);
    Range x = range_of(r, c->expr);
    if (!x.known)
        return true;
    if (c->kind == COND_ge0)
        return want ? x.hi >= 0 : x.lo < 0;
    return want ? x.lo <= 0 && x.hi >= 0 : x.lo != 0 || x.hi != 0;
}

/* ---- variables ----------------------------------------------------------- */

/* Of tasks that are counted, so many as one cluster would count. */
static void enter_rounds(Reach *r, const Op *op, unsigned n)
{
    if (eir_loop_vars(op) <= n)
        return;
    Range count = point(1);
    for (unsigned d = 0; d < n; d++) {
        Range v = r->vars[op->blocks[0]->args[d].var];
        v.hi += v.known;
        count =
            range_product(count, (Range){ v.known, v.hi > v.lo, v.hi - v.lo });
    }
    if (count.known && r->loop && op == r->loop->op && n == r->dim)
        count.hi -= r->rounds;
    r->vars[op->blocks[0]->args[n].var] =
        (Range){ count.known, 0, count.hi - count.known };
}

/* The variables of a loop or of tasks; false: nobody enters. */
static bool enter_loop(Reach *r, const Op *op, unsigned n)
{
    bool some = true;
    for (unsigned d = 0; d < n && 2 * d + 1 < op->n_operands; d++) {
        Range lo = range_of(r, op->operands[2 * d].u.index);
        Range hi = range_of(r, op->operands[2 * d + 1].u.index);
        bool known = lo.known && hi.known;
        if (known && r->loop && op == r->loop->op && d == r->dim)
            hi.hi -= r->rounds;
        r->vars[op->blocks[0]->args[d].var] =
            (Range){ known, lo.lo, hi.hi - known };
        some = some && (!known || lo.lo < hi.hi);
    }
    enter_rounds(r, op, n);
    return some;
}

static unsigned loop_rank(const Op *op)
{
    return op->code == OP_ctl_for       ? 1
           : op->code == OP_async_tasks ? (unsigned)op_attr_int(op, "rank", 0)
                                        : 0;
}

/* A variable of e lies where sign * e + more >= 0 leaves it. */
static void narrow_by(Reach *r, const Affine *e, int64_t sign, int64_t more)
{
    for (uint32_t i = 0; i < e->n_terms; i++) {
        if (e->terms[i].atom->kind != ATOM_var)
            continue;
        Range *v = &r->vars[e->terms[i].atom->var], whole = *v;
        int64_t a = sign * e->terms[i].coef;
        *v = (Range){ true, 0, 0 };
        Range rest = range_product(range_of(r, e), point(sign));
        *v = whole;
        if (!whole.known || !rest.known || rest.hi > SIZE_RANGE ||
            rest.hi < -SIZE_RANGE)
            continue;
        int64_t end = int_floordiv(rest.hi + more, a > 0 ? a : -a);
        if (a > 0 && -end > v->lo && -end <= v->hi)
            v->lo = -end;
        else if (a < 0 && end < v->hi && end >= v->lo)
            v->hi = end;
    }
}

/* What the condition says of variables one by one. */
static void narrow(Reach *r, const Cond *c, bool want)
{
    if (c->kind == COND_not) {
        narrow(r, c->lhs, !want);
    } else if (c->kind == COND_and || c->kind == COND_or) {
        if (want != (c->kind == COND_and))
            return;
        narrow(r, c->lhs, want);
        narrow(r, c->rhs, want);
    } else if (c->kind == COND_ge0) {
        narrow_by(r, c->expr, want ? 1 : -1, want ? 0 : -1);
    } else if (c->kind == COND_eq0 && want) {
        narrow_by(r, c->expr, 1, 0);
        narrow_by(r, c->expr, -1, 0);
    }
}

/* Goes from the outermost op around `block` in to it; false: nobody does. */
static bool enter(Reach *r, const Block *block)
{
    const Op *op = block->parent;
    if (!op || op_has(op, OPT_SYMBOL))
        return true;
    if (!enter(r, op->parent))
        return false;
    if (op->code == OP_ctl_if) {
        bool want = block == op->blocks[0];
        if (!may_be(r, op->operands[0].u.cond, want))
            return false;
        narrow(r, op->operands[0].u.cond, want);
        return true;
    }
    return enter_loop(r, op, loop_rank(op));
}

/* The sizes, as the host's parameters. */
static void set_sizes(Reach *r, const Block *host)
{
    for (unsigned i = 0, n = 0; i < host->n_args; i++)
        if (!host->args[i].value && n < r->set->n)
            r->vars[host->args[i].var] = point(r->set->values[n++]);
}

static void set_parameters(Reach *r)
{
    Env env = sizes_env(r->set);
    const Op *of = r->turn->op;
    while (of && !op_has(of, OPT_SYMBOL))
        of = op_parent(of);
    const Block *b = of->blocks[0];
    unsigned coords = b->n_args;
    set_sizes(r, r->launch ? r->t->host->blocks[0] : b);
    for (unsigned i = 0; i < b->n_args; i++) {
        int64_t v;
        if (b->args[i].value)
            continue;
        if (r->launch && i < r->launch->n_operands &&
            r->launch->operands[i].kind == OPND_index &&
            affine_eval(r->launch->operands[i].u.index, &env, &v))
            r->vars[b->args[i].var] = point(v);
        coords = i;
    }
    if (!r->launch || coords + 1 < 3)
        return;
    int64_t most[] = { op_attr_int(of, "clusterDim", 1),
                       op_attr_int(of, "blockDim", 32) / 32, 32 };
    for (unsigned k = 0; k < 3; k++)
        r->vars[b->args[coords - 2 + k].var] = (Range){ true, 0, most[k] - 1 };
}

/* ---- the turn ------------------------------------------------------------ */

static bool may_decide(const Reach *r)
{
    const Cond *other;
    bool want = true;
    for (const Cond *c = r->turn->whole; c;) {
        c = turn_operand(c, r->turn->part, &other, &want);
        if (other && !may_be(r, other, want))
            return false;
    }
    return true;
}

/* Is there more to be seen of the comparison where it is so? First the side
 * that was not seen, then what is to come behind either. */
static bool wanted(const Reach *r, bool side)
{
    return turn_both_ways(r->t, r->turn) ? !turn_side_done(r->t, r->turn, side)
                                         : !turn_side_seen(r->t, r->turn, side);
}

static bool shows(const Reach *r)
{
    const TextTurn *x = r->turn;
    int64_t v;
    if (!may_decide(r))
        return false;
    if (x->kind == TURN_block)
        return true;
    Range e = range_of(r, x->e);
    if (x->kind == TURN_trips)
        return e.known && e.hi >= 0;
    if (!turn_side(r->t, x, &v))
        return true;
    if (!e.known)
        return false;
    if (x->kind == TURN_ge0 || x->kind == TURN_within)
        return (e.lo < 0 && wanted(r, false)) || (e.hi >= 0 && wanted(r, true));
    if (x->kind == TURN_eq0)
        return ((e.lo != 0 || e.hi != 0) && wanted(r, false)) ||
               (e.lo <= 0 && e.hi >= 0 && wanted(r, true));
    return int_floordiv(e.lo, x->divisor) != v ||
           int_floordiv(e.hi, x->divisor) != v;
}

/* Work of a search, in pairs of sizes that are looked at. */
#define MOST_REACH (UINT64_C(1) << 22)

static void look_at(Reach *r, const SizeSet *set)
{
    r->set = set;
    memset(r->vars, 0, (var_count(r->turn->m->exprs) + 1) * sizeof *r->vars);
    set_parameters(r);
}

static bool try_sizes(Reach *r, const SizeSet *set)
{
    uint64_t work = (uint64_t)(set->n + 1) * (set->n + 1);
    if (r->left < work)
        return false;
    r->left -= work;
    look_at(r, set);
    return (!r->launch || enter(r, r->launch->parent)) &&
           enter(r, r->turn->op->parent) && shows(r);
}

/* ---- what a run costs ---------------------------------------------------- */

static double op_work(const Op *op)
{
    if (op->code == OP_async_wgmma_mma_async)
        return (double)(op_attr_int(op, "n", 8) * op_attr_int(op, "k", 8)) /
               16.0;
    return op->code == OP_async_instr ? 64.0 : 2.0;
}

static double block_work(Reach *r, const Block *b)
{
    double sum = 0.0;
    for (const Op *op = b->first; op; op = op->next) {
        unsigned n = loop_rank(op);
        double trips = enter_loop(r, op, n) ? 1.0 : 0.0;
        for (unsigned d = 0; d < n; d++) {
            Range v = r->vars[op->blocks[0]->args[d].var];
            trips *= v.known ? (double)(v.hi - v.lo + 1) : 1.0;
        }
        sum += op_work(op);
        for (unsigned i = 0; i < op->n_blocks && trips > 0.0; i++)
            sum += trips * block_work(r, op->blocks[i]);
    }
    return sum;
}

static double elements(const Turns *t, const SizeSet *set)
{
    Env env = sizes_env(set);
    const Block *b = t->host->blocks[0];
    double sum = 0.0;
    for (unsigned i = 0; i < b->n_args; i++) {
        const Value *v = b->args[i].value;
        double n = 1.0;
        int64_t extent;
        for (unsigned d = 0; v && d < v->type->rank; d++)
            n *= affine_eval(v->shape[d], &env, &extent) ? (double)extent : 1.0;
        sum += n;
    }
    return sum;
}

typedef struct CostSearch {
    const Turns *t;
    const SizeSet *set;
    double sum;
} CostSearch;

static bool add_launch(Op *op, void *user)
{
    CostSearch *s = user;
    const Op *k = op->code == OP_host_launch
                      ? module_symbol(s->t->m, op_attr_str(op, "kernel", ""))
                      : NULL;
    if (!k || !k->blocks[0]->first)
        return true;
    Arena *arena = arena_new();
    TextTurn any = { .m = s->t->m, .op = k->blocks[0]->first };
    Reach r = { .t = s->t,
                .turn = &any,
                .launch = op,
                .set = s->set,
                .vars =
                    ARENA_ARRAY(arena, Range, var_count(any.m->exprs) + 1) };
    set_parameters(&r);
    s->sum += block_work(&r, k->blocks[0]) *
              (double)(op_attr_int(k, "clusterDim", 1) *
                       (op_attr_int(k, "blockDim", 32) / 32));
    arena_free(arena);
    return true;
}

/* Of the run as a part of what may be spent. */
static double cost_of(const Turns *t, const SizeSet *set)
{
    CostSearch s = { t, set, 0.0 };
    op_walk((Op *)t->host, add_launch, &s);
    double much = elements(t, set) / MOST_ELEMENTS;
    return s.sum / MOST_WORK > much ? s.sum / MOST_WORK : much;
}

/* ---- the search ---------------------------------------------------------- */

/* The least multiple of the step of parameter i from its value on that shows
 * the turn: one by one, then in ever greater steps. */
static bool move_up(Chooser *c, Reach *r, unsigned i, int64_t from)
{
    int64_t step = c->step[i], v = from;
    for (unsigned k = 0; v < SIZE_MOST; k++) {
        c->values[i] = v;
        if (try_sizes(r, &c->set))
            break;
        v += k < MAX_LINEAR ? step : (v / step / 4 + 1) * step;
    }
    if (v >= SIZE_MOST)
        return false;
    int64_t lo = v - (v / step / 4 + 1) * step;
    for (lo = lo > from ? lo : from; lo < v && v - from > MAX_LINEAR * step;) {
        int64_t mid = lo + (v - lo) / 2 / step * step;
        c->values[i] = mid;
        if (try_sizes(r, &c->set))
            v = mid;
        else
            lo = mid + step;
    }
    c->values[i] = v;
    return try_sizes(r, &c->set);
}

/* The first multiple from there on that shows the turn once the others are
 * moved as the asserts want it. */
static bool move_up_mended(Chooser *c, Reach *r, unsigned i,
                           const SizeSet *from)
{
    for (int64_t k = 1; k <= MAX_MENDED; k++) {
        memcpy(c->values, from->values, c->set.n * sizeof *c->values);
        c->values[i] += k * c->step[i];
        c->pinned[i] = true;
        if (c->values[i] < SIZE_MOST && chooser_mend(c) &&
            try_sizes(r, &c->set))
            return true;
    }
    return false;
}

/* The cheapest from one of the sets; false: there are none. */
static bool reach_from(Chooser *c, Reach *r, const SizeSet *from, unsigned n,
                       SizeSet *out)
{
    double best = 1.0;
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < c->set.n; i++) {
            const int64_t *v = from[k].values;
            memcpy(c->values, v, c->set.n * sizeof *v);
            memset(c->pinned, 0, c->set.n * sizeof *c->pinned);
            /* what its intervals alone show was not shown there */
            int64_t least = v[i] + (try_sizes(r, &from[k]) ? c->step[i] : 0);
            if (!move_up(c, r, i, least) && !move_up_mended(c, r, i, &from[k]))
                continue;
            c->pinned[i] = true;
            double cost = chooser_mend(c) ? cost_of(r->t, &c->set) : 1.0;
            if (cost >= best)
                continue;
            best = cost;
            *out = chooser_keep(c);
        }
    return best < 1.0;
}

/* The least of all sizes. */
static bool least_sizes(Chooser *c, SizeSet *out)
{
    for (unsigned i = 0; i < c->set.n; i++)
        c->values[i] = c->step[i];
    bool ok = chooser_mend(c);
    if (ok)
        *out = chooser_keep(c);
    return ok;
}

/* The sizes of whole tiles among the first sets: the second, or where it is
 * cut in other loops, the fourth. */
static const SizeSet *of_whole_tiles(const SizeSet *from, unsigned n)
{
    bool whole = n > 4;
    for (unsigned i = 0; whole && i < from[1].n; i++)
        whole = from[3].values[i] >= from[1].values[i];
    return whole ? &from[3] : &from[1];
}

/* What must be come to again is best followed by as many rounds as a slot takes
 * to come again, else by a whole one before the last, which may have little to
 * do; and at sizes of whole tiles, those of the second set, where a round does
 * most. Of tasks, the rounds may be those of another variable. */
static bool reach_again(Chooser *c, Reach *r, const SizeSet *from, unsigned n,
                        SizeSet *out)
{
    unsigned n_dims = r->loop->to - r->loop->from;
    unsigned first = r->loop->op == r->turn->loop ? r->turn->dim : 0;
    int64_t most = r->loop->delay > 1 ? r->loop->delay + 2 : 2;
    for (unsigned i = 0; i < n_dims; i++) {
        r->dim = (first + i) % n_dims;
        for (r->rounds = most; r->rounds > 0;
             r->rounds = r->rounds > 2 ? 2 : r->rounds - 1) {
            r->left = MOST_REACH;
            if ((n > 1 && reach_from(c, r, of_whole_tiles(from, n), 1, out)) ||
                reach_from(c, r, from, n, out))
                return true;
        }
    }
    r->left = MOST_REACH;
    return !turn_both_ways(r->t, r->turn) && reach_from(c, r, from, n, out);
}

static Reach reach_of(const Turns *t, const TextTurn *turn, Arena *arena)
{
    return (Reach){ .t = t,
                    .turn = turn,
                    .launch = turns_launch(t, turn->op),
                    .left = MOST_REACH,
                    .loop = turn_loop(t, turn),
                    .vars = ARENA_ARRAY(arena, Range,
                                        var_count(turn->m->exprs) + 1) };
}

bool turns_reach(const Turns *t, const TextTurn *turn, Arena *arena,
                 const SizeSet *sets, unsigned n, SizeSet *out)
{
    Chooser *c = chooser_new(arena, t->m, t->host);
    SizeSet *from = ARENA_ARRAY(arena, SizeSet, n + 1);
    Reach r = reach_of(t, turn, arena);
    if (n)
        memcpy(from, sets, n * sizeof *sets);
    n += least_sizes(c, &from[n]);
    return r.loop ? reach_again(c, &r, from, n, out)
                  : reach_from(c, &r, from, n, out);
}

/* ---- sides with much to do ----------------------------------------------- */

/* Is the comparison one of sizes alone, and what is it at these? */
static bool is_fixed(Reach *r, const SizeSet *set, bool *side)
{
    look_at(r, set);
    Range e = range_of(r, r->turn->e);
    *side = r->turn->kind == TURN_ge0 ? e.lo >= 0 : e.lo == 0;
    return e.known && e.lo == e.hi;
}

/* Moves each of the sizes to what it is in `wide`, where the comparison stays
 * as it is and the asserts hold. False: none can be moved, or it costs much. */
static bool widen(Chooser *c, Reach *r, const SizeSet *from,
                  const SizeSet *wide, SizeSet *out)
{
    bool side, now, moved = false;
    is_fixed(r, from, &side);
    chooser_load(c, from->values);
    for (unsigned i = 0; i < c->set.n; i++) {
        int64_t old = c->values[i];
        c->values[i] = wide->values[i];
        if (!is_fixed(r, &c->set, &now) || now != side ||
            sizes_broken(r->t->host, &c->set))
            c->values[i] = old;
        moved = moved || c->values[i] != old;
    }
    *out = chooser_keep(c);
    return moved && cost_of(r->t, out) < 1.0;
}

static bool is_among(const SizeSet *set, const SizeSet *sets, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (sizes_equal(set, &sets[i]))
            return true;
    return false;
}

bool turns_widen(const Turns *t, unsigned *at, Arena *arena,
                 const SizeSet *sets, unsigned n, SizeSet *out)
{
    Chooser *c = chooser_new(arena, t->m, t->host);
    for (; *at < t->all.len; ++*at) {
        const TextTurn *x = t->all.data[*at];
        Reach r = reach_of(t, x, arena);
        bool side, wide;
        if (!x->part || x->m != t->m || !n || !is_fixed(&r, &sets[0], &wide))
            continue;
        for (unsigned k = 1; k < n; k++)
            if (is_fixed(&r, &sets[k], &side) && side != wide) {
                if (widen(c, &r, &sets[k], &sets[0], out) &&
                    !is_among(out, sets, n))
                    return true;
                break;
            }
    }
    return false;
}
