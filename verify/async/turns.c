/* Turns are listed by a walk, each behind the op at which it can be evaluated.
 * What was seen lies in memory that is shared with the process beside this one,
 * which has entries of its own. */
#include "verify/async/turns_impl.h"

#include "verify/aside.h"
#include "verify/async/key_table.h"
#include "verify/sizes_impl.h"

#include <string.h>

/* ---- launches ------------------------------------------------------------ */

typedef struct LaunchSearch {
    const char *kernel;
    const Op *found; /* the first */
    unsigned n;
} LaunchSearch;

static bool find_launch(Op *op, void *user)
{
    LaunchSearch *s = user;
    if (op->code != OP_host_launch ||
        strcmp(op_attr_str(op, "kernel", ""), s->kernel) != 0)
        return true;
    s->found = s->n++ ? s->found : op;
    return true;
}

static LaunchSearch launches_of(const Turns *t, const Op *op)
{
    const Op *k = op_enclosing((Op *)op, OP_async_kernel);
    LaunchSearch s = { k ? op_attr_str(k, "name", "") : "", NULL, 0 };
    if (k)
        op_walk((Op *)t->host, find_launch, &s);
    return s;
}

const Op *turns_launch(const Turns *t, const Op *op)
{
    return launches_of(t, op).found;
}

/* ---- conditions ---------------------------------------------------------- */

static bool is_in(const Cond *part, const Cond *c)
{
    return c && (c == part || is_in(part, c->lhs) || is_in(part, c->rhs));
}

const Cond *turn_operand(const Cond *c, const Cond *part, const Cond **other,
                         bool *want)
{
    *other = NULL;
    if (c == part || (c->kind != COND_and && c->kind != COND_or))
        return c == part ? NULL : c->lhs;
    bool left = is_in(part, c->lhs);
    *other = left ? c->rhs : c->lhs;
    *want = c->kind == COND_and;
    return left ? c->lhs : c->rhs;
}

/* ---- the list ------------------------------------------------------------ */

typedef struct Collect {
    Turns *t;
    Module *m;
    VarId lane; /* 0: of no kernel */
} Collect;

static TurnPlace *place_of(Turns *t, const Op *op)
{
    bool fresh;
    uint32_t *at =
        key_table_at(t->arena, t->by_op, (uint64_t)(uintptr_t)op, &fresh);
    if (fresh) {
        VEC_PUSH(t->arena, &t->places, (TurnPlace){ 0 });
        *at = (uint32_t)t->places.len - 1;
    }
    return &t->places.data[*at];
}

static bool is_known(const TurnPlace *p, const TextTurn *x)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->turns[i]->kind == x->kind && p->turns[i]->e == x->e &&
            p->turns[i]->divisor == x->divisor &&
            p->turns[i]->whole == x->whole)
            return true;
    return false;
}

typedef struct VarUse {
    const Collect *c;
    const Op *op;
    bool by_lane;
} VarUse;

static void uses_lane(VarId v, void *user);

/* Do the bounds of a loop around op whose variable is v differ by lane? */
static bool loop_by_lane(const Collect *c, const Op *op, VarId v)
{
    for (const Op *o = op_parent(op); o; o = op_parent(o)) {
        if (o->code != OP_ctl_for || o->blocks[0]->args[0].var != v)
            continue;
        VarUse u = { c, o, false };
        affine_walk_vars(o->operands[0].u.index, uses_lane, &u);
        affine_walk_vars(o->operands[1].u.index, uses_lane, &u);
        return u.by_lane;
    }
    return false;
}

static void uses_lane(VarId v, void *user)
{
    VarUse *u = user;
    u->by_lane = u->by_lane || v == u->c->lane || loop_by_lane(u->c, u->op, v);
}

static bool is_constant(Collect *c, const TextTurn *x)
{
    int64_t lo, hi;
    if (x->kind == TURN_block || !affine_min(c->m->exprs, x->e, &lo) ||
        !affine_max(c->m->exprs, x->e, &hi))
        return false;
    if (x->kind == TURN_ge0 || x->kind == TURN_trips)
        return lo >= 0 || hi < 0;
    if (x->kind == TURN_eq0)
        return lo > 0 || hi < 0 || (lo == 0 && hi == 0);
    return int_floordiv(lo, x->divisor) == int_floordiv(hi, x->divisor);
}

typedef struct LoopUse {
    TextTurn *x;
    const Op *loop;
} LoopUse;

/* Is the variable one of the loop's? */
static void uses_loop(VarId v, void *user)
{
    LoopUse *u = user;
    const Block *b = u->loop->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value && b->args[i].var == v) {
            u->x->loop = u->loop;
            u->x->dim = i;
        }
}

/* Tasks that are run once have no other round. */
static bool has_rounds(const Op *op)
{
    return op->code == OP_ctl_for ||
           (op->code == OP_async_tasks && !op_attr_int(op, "once", 0));
}

static void add_variables(Collect *c, TextTurn *x, const Op *loop)
{
    const Block *b = loop->blocks[0];
    if (!has_rounds(loop))
        return;
    const Affine **all =
        ARENA_ARRAY(c->t->arena, const Affine *, x->n_round + b->n_args + 1);
    if (x->n_round)
        memcpy(all, x->round, x->n_round * sizeof *all);
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value)
            all[x->n_round++] = affine_var(c->m->exprs, b->args[i].var);
    x->round = all;
}

/* Is e made of variables of loops and of threads alone? */
static bool has_no_sizes(const Collect *c, const Affine *e)
{
    for (uint32_t i = 0; i < e->n_terms; i++) {
        const Atom *a = e->terms[i].atom;
        bool divides = a->kind == ATOM_floordiv || a->kind == ATOM_mod;
        VarKind kind = VAR_size;
        if (a->kind == ATOM_var)
            kind = var_get(c->m->exprs, a->var)->kind;
        if (divides ? !has_no_sizes(c, a->arg)
                    : kind != VAR_iter && kind != VAR_coord)
            return false;
    }
    return true;
}

/* Is e the same, and come to in as many rounds, at all sizes? Then each run has
 * shown what follows either side. */
static bool same_in_runs(const Collect *c, const Affine *e, const Op *loop)
{
    for (const Op *o = loop; o && o->code != OP_async_kernel; o = op_parent(o))
        for (unsigned i = 0; i < o->n_operands; i++)
            if ((o->code == OP_ctl_for || o->code == OP_async_tasks) &&
                o->operands[i].kind == OPND_index &&
                !has_no_sizes(c, o->operands[i].u.index))
                return false;
    return has_no_sizes(c, e);
}

/* Behind how many rounds a slot may come again: of the deepest ring that goes
 * from round to round, or by the modulus that counts slots. Of tasks the next
 * one may have it, since a task moves its rings on by more than one. */
static int64_t delay_of(const Turns *t, const Op *loop)
{
    const Block *b = loop->blocks[0];
    int64_t depth = t->modulus > 1 ? t->modulus : 1;
    for (unsigned i = 0; i < b->n_args; i++) {
        const Value *v = b->args[i].value;
        if (v && v->type->kind == TK_ring && v->type->n > depth)
            depth = v->type->n;
    }
    return loop->code == OP_ctl_for ? depth : 1;
}

/* The loop around a comparison of a kernel that it is to be come to again in:
 * the innermost whose variable it has, else the innermost. */
static void find_loop(Collect *c, TextTurn *x)
{
    const Op *innermost = NULL;
    for (const Op *o = op_parent(x->op);
         o && o->code != OP_async_kernel && !x->loop; o = op_parent(o)) {
        if (!has_rounds(o))
            continue;
        innermost = innermost ? innermost : o;
        LoopUse u = { x, o };
        affine_walk_vars(x->e, uses_loop, &u);
    }
    x->loop = x->loop ? x->loop : innermost;
    if (same_in_runs(c, x->e, x->loop))
        x->loop = NULL;
    for (const Op *o = x->loop; o && o->code != OP_async_kernel;
         o = op_parent(o)) {
        unsigned from = x->n_round;
        add_variables(c, x, o);
        if (x->n_round > from && x->n_loops < TURN_LOOPS)
            x->loops[x->n_loops++] =
                (TurnLoop){ o, from, x->n_round, delay_of(c->t, o) };
    }
    for (unsigned v = 0; v < 2; v++)
        x->need[v] = x->n_loops ? x->loops[0].delay : 0;
}

static void add(Collect *c, TextTurn x)
{
    Turns *t = c->t;
    if (is_constant(c, &x))
        return;
    TurnPlace *p = place_of(t, x.op);
    if (is_known(p, &x))
        return;
    if (x.e && c->lane) {
        VarUse u = { c, x.op, false };
        affine_walk_vars(x.e, uses_lane, &u);
        x.by_lane = u.by_lane;
        if (x.kind == TURN_ge0 || x.kind == TURN_eq0)
            find_loop(c, &x);
    }
    x.m = c->m;
    x.at = (unsigned)t->all.len;
    TextTurn *own = arena_memdup(t->arena, &x, sizeof x);
    VEC_PUSH(t->arena, &t->all, own);
    TextTurn **turns = ARENA_ARRAY(t->arena, TextTurn *, p->n + 1);
    if (p->n)
        memcpy(turns, p->turns, p->n * sizeof *turns);
    turns[p->n++] = own;
    p->turns = turns;
    p->left = p->n;
}

static void add_quotients(Collect *c, const Op *at, const Affine *e)
{
    for (uint32_t i = 0; e && i < e->n_terms; i++) {
        const Atom *a = e->terms[i].atom;
        if (a->kind == ATOM_floordiv || a->kind == ATOM_mod) {
            add(c, (TextTurn){ .kind = TURN_quotient,
                               .op = at,
                               .e = a->arg,
                               .divisor = a->divisor });
            add_quotients(c, at, a->arg);
        }
        add_quotients(c, at, a->lhs);
        add_quotients(c, at, a->rhs);
    }
}

static void add_comparisons(Collect *c, const Op *at, const Cond *whole,
                            const Cond *cond)
{
    if (!cond || cond->kind == COND_true || cond->kind == COND_false)
        return;
    if (cond->kind == COND_ge0 || cond->kind == COND_eq0) {
        add(c, (TextTurn){ .kind = cond->kind == COND_ge0 ? TURN_ge0 : TURN_eq0,
                           .op = at,
                           .e = cond->expr,
                           .whole = whole,
                           .part = cond });
        add_quotients(c, at, cond->expr);
        return;
    }
    add_comparisons(c, at, whole, cond->lhs);
    add_comparisons(c, at, whole, cond->rhs);
}

static void add_operands(Collect *c, const Op *at, const Op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_cond)
            add_comparisons(c, at, o->u.cond, o->u.cond);
        else if (o->kind == OPND_index)
            add_quotients(c, at, o->u.index);
        else if (o->kind == OPND_access)
            for (unsigned d = 0; d < o->u.access->rank; d++) {
                add_quotients(c, at, o->u.access->dims[d].lo);
                add_quotients(c, at, o->u.access->dims[d].len);
            }
    }
}

/* Loops and tasks that may have nothing to do: whether they have; and whether
 * they have much. */
static void add_trips(Collect *c, const Op *op)
{
    unsigned n = op->code == OP_ctl_for ? 1
                 : op->code == OP_async_tasks
                     ? (unsigned)op_attr_int(op, "rank", 0)
                     : 0;
    for (unsigned d = 0; d < n && 2 * d + 1 < op->n_operands; d++) {
        const Affine *trips =
            affine_sub(c->m->exprs, op->operands[2 * d + 1].u.index,
                       op->operands[2 * d].u.index);
        const Affine *more = affine_add_const(c->m->exprs, trips, -1);
        const Affine *round =
            affine_add_const(c->m->exprs, trips, -2 * delay_of(c->t, op));
        if (more)
            add(c, (TextTurn){ .kind = TURN_ge0, .op = op, .e = more });
        if (round)
            add(c, (TextTurn){ .kind = TURN_trips, .op = op, .e = round });
    }
}

static void note_used(VarId v, void *user)
{
    ((bool *)user)[v] = true;
}

static bool note_operands(Op *op, void *user)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_index)
            affine_walk_vars(o->u.index, note_used, user);
        else if (o->kind == OPND_cond)
            cond_walk_vars(o->u.cond, note_used, user);
        for (unsigned d = 0; o->kind == OPND_access && d < o->u.access->rank;
             d++) {
            affine_walk_vars(o->u.access->dims[d].lo, note_used, user);
            if (o->u.access->dims[d].len)
                affine_walk_vars(o->u.access->dims[d].len, note_used, user);
        }
    }
    return true;
}

/* In a block of an if, which `at` stands at the beginning of: the variables of
 * loops around it that something there is computed with. */
static void add_varied(Collect *c, const Op *at, const Block *block)
{
    bool *used = ARENA_ARRAY(c->t->arena, bool, var_count(c->m->exprs) + 1);
    for (Op *op = block->first; op; op = op->next)
        op_walk(op, note_operands, used);
    for (const Op *o = block->parent; o && !op_has(o, OPT_SYMBOL);
         o = op_parent(o)) {
        bool loops = o->code == OP_async_tasks ||
                     (o->code == OP_ctl_for &&
                      strcmp(op_attr_str(o, "mode", "seq"), "threads") != 0);
        for (unsigned d = 0; loops && d < o->blocks[0]->n_args; d++) {
            const BlockArg *v = &o->blocks[0]->args[d];
            if (!v->value && used[v->var])
                add(c, (TextTurn){ .kind = TURN_quotient,
                                   .op = at,
                                   .e = affine_var(c->m->exprs, v->var),
                                   .divisor = 1 });
        }
    }
}

/* Tasks that are a cluster's first: that there are several. */
static void add_first_tasks(Collect *c, const Op *op)
{
    if (op->code != OP_async_tasks || !op_attr_int(op, "once", 0))
        return;
    for (unsigned d = 0; d < (unsigned)op_attr_int(op, "rank", 0); d++)
        add(c, (TextTurn){
                   .kind = TURN_quotient,
                   .op = op->blocks[0]->first,
                   .e = affine_var(c->m->exprs, op->blocks[0]->args[d].var),
                   .divisor = 1 });
}

static bool collect_kernel(Op *op, void *user)
{
    Collect *c = user;
    if (op->code == OP_async_kernel)
        return true;
    if (op == op->parent->first && op->parent->parent->code != OP_async_kernel)
        add(c, (TextTurn){ .kind = TURN_block, .op = op });
    if (op == op->parent->first && op->parent->parent->code == OP_ctl_if)
        add_varied(c, op, op->parent);
    add_operands(c, op, op);
    add_trips(c, op);
    add_first_tasks(c, op);
    return true;
}

static bool collect_launch(Op *op, void *user)
{
    Collect *c = user;
    Op *k = op->code == OP_host_launch
                ? module_symbol(c->m, op_attr_str(op, "kernel", ""))
                : NULL;
    if (!k || k->code != OP_async_kernel || turns_launch(c->t, k) != op)
        return true;
    const Block *b = k->blocks[0];
    c->lane = b->n_args ? b->args[b->n_args - 1].var : 0;
    op_walk(k, collect_kernel, c);
    return true;
}

/* Around kernels. What is asked of arguments is not control. */
static bool collect_around(Op *op, void *user)
{
    Collect *c = user;
    if (op_has(op, OPT_SYMBOL))
        return true;
    if (op == op->parent->first && !op_has(op_parent(op), OPT_SYMBOL))
        add(c, (TextTurn){ .kind = TURN_block, .op = op });
    if (op->code != OP_host_check && op->code != OP_ctl_assert)
        add_operands(c, op, op);
    return op->code != OP_par_device;
}

/* Statements alone are watched; other ops are seen at the next one. */
static bool collect_program(Op *op, void *user)
{
    Collect *c = user;
    const Op *at = op;
    while (at && !at->sid)
        at = at->next;
    if (!at || !op_enclosing(op, OP_par_device))
        return true;
    add_operands(c, at, op);
    if (op == op->parent->first && op_parent(op)->code == OP_ctl_if)
        add_varied(c, at, op->parent);
    return true;
}

static void note(Seen *s, int64_t v)
{
    s->lo = s->any && s->lo < v ? s->lo : v;
    s->hi = s->any && s->hi > v ? s->hi : v;
    s->any = true;
}

Turns *turns_new(Arena *arena, Module *m, const Op *host, Module *of,
                 const Op *proc)
{
    Turns *t = ARENA_NEW(arena, Turns);
    *t = (Turns){ .arena = arena,
                  .m = m,
                  .host = host,
                  .modulus = chooser_new(arena, m, host)->modulus };
    t->by_op = ARENA_NEW(arena, KeyTable);
    t->last = ARENA_NEW(arena, KeyTable);
    Collect c = { .t = t, .m = m };
    op_walk((Op *)host, collect_around, &c);
    op_walk((Op *)host, collect_launch, &c);
    c = (Collect){ .t = t, .m = of };
    if (proc) {
        op_walk((Op *)proc, collect_around, &c);
        op_walk((Op *)proc, collect_program, &c);
    }
    turns_products(t, of, proc);
    turns_bounds(t);
    t->n_shared = 2 * (t->all.len + 1) * sizeof(Seen);
    t->seen[0] = aside_share(t->n_shared);
    t->seen[1] = t->seen[0] ? t->seen[0] + t->all.len + 1 : NULL;
    for (size_t i = 0; t->seen[0] && i < t->all.len; i++)
        if (t->all.data[i]->kind == TURN_within)
            note(&t->seen[0][i], 1);
    return t->seen[0] ? t : NULL;
}

void turns_free(Turns *t)
{
    if (t)
        aside_unshare(t->seen[0], t->n_shared);
}

void turns_aside(Turns *t)
{
    t->side = 1;
}

/* ---- seeing -------------------------------------------------------------- */

static bool seen_together(const Turns *t, const TextTurn *x, int64_t *lo,
                          int64_t *hi)
{
    bool any = false;
    for (unsigned k = 0; k < 2; k++) {
        const Seen *s = &t->seen[k][x->at];
        if (!s->any)
            continue;
        *lo = any && *lo < s->lo ? *lo : s->lo;
        *hi = any && *hi > s->hi ? *hi : s->hi;
        any = true;
    }
    return any;
}

bool turn_side(const Turns *t, const TextTurn *x, int64_t *value)
{
    int64_t hi;
    return seen_together(t, x, value, &hi);
}

bool turn_any(const Turns *t, const TextTurn *x)
{
    int64_t value;
    return turn_side(t, x, &value);
}

bool turn_both_ways(const Turns *t, const TextTurn *x)
{
    int64_t lo = 0, hi = 0;
    return seen_together(t, x, &lo, &hi) && lo != hi;
}

bool turn_side_seen(const Turns *t, const TextTurn *x, bool value)
{
    int64_t lo = 0, hi = 0;
    return seen_together(t, x, &lo, &hi) && lo <= value && hi >= value;
}

/* Is what s has enough of what comes behind the comparison where it is so? */
static bool is_followed(const Seen *s, const TextTurn *x, bool value)
{
    unsigned level = x->level[value];
    return level >= x->n_loops || s->after[level][value] >= x->need[value];
}

bool turn_side_done(const Turns *t, const TextTurn *x, bool value)
{
    return turn_side_seen(t, x, value) &&
           (is_followed(&t->seen[0][x->at], x, value) ||
            is_followed(&t->seen[1][x->at], x, value));
}

const TurnLoop *turn_loop(const Turns *t, const TextTurn *x)
{
    for (unsigned v = 0; v < 2; v++)
        if (!turn_side_done(t, x, v) && x->level[v] < x->n_loops)
            return &x->loops[x->level[v]];
    return NULL;
}

bool turn_seen(const Turns *t, const TextTurn *x)
{
    if (x->kind == TURN_block)
        return turn_any(t, x);
    if (x->kind == TURN_trips)
        return turn_side_seen(t, x, true);
    return turn_both_ways(t, x) && (!x->loop || (turn_side_done(t, x, false) &&
                                                 turn_side_done(t, x, true)));
}

unsigned turn_progress(const Turns *t, const TextTurn *x)
{
    return turn_any(t, x) + turn_both_ways(t, x) + turn_side_done(t, x, false) +
           turn_side_done(t, x, true);
}

typedef struct LaneValue {
    TurnValue *value;
    void *user;
    unsigned lane;
} LaneValue;

static bool value_of(const TextTurn *x, const LaneValue *at, int64_t *out)
{
    if (x->kind == TURN_block) {
        *out = 0;
        return true;
    }
    if (!at->value(at->user, x->e, at->lane, out))
        return false;
    *out = x->kind == TURN_ge0 || x->kind == TURN_trips ? *out >= 0
           : x->kind == TURN_eq0                        ? *out == 0
                                 : int_floordiv(*out, x->divisor);
    return true;
}

static bool holds(const LaneValue *at, const Cond *c)
{
    int64_t v;
    switch (c->kind) {
    case COND_and:
        return holds(at, c->lhs) && holds(at, c->rhs);
    case COND_or:
        return holds(at, c->lhs) || holds(at, c->rhs);
    case COND_not:
        return !holds(at, c->lhs);
    case COND_ge0:
    case COND_eq0:
        return at->value(at->user, c->expr, at->lane, &v) &&
               (c->kind == COND_ge0 ? v >= 0 : v == 0);
    default:
        return c->kind == COND_true;
    }
}

/* Would the condition be another one if the comparison were? */
static bool decides(const TextTurn *x, const LaneValue *at)
{
    const Cond *other;
    bool want = true;
    for (const Cond *c = x->whole; c;) {
        c = turn_operand(c, x->part, &other, &want);
        if (other && holds(at, other) != want)
            return false;
    }
    return true;
}

/* Which rounds of its loops it is in: out[i] of loop i and of what is around
 * it. */
static void rounds_of(const TextTurn *x, const LaneValue *at, uint64_t *out)
{
    uint64_t h = HASH_SEED;
    int64_t v;
    unsigned i = x->n_round, level = x->n_loops;
    while (true) {
        unsigned from = level ? x->loops[level - 1].to : 0;
        while (i > from)
            if (at->value(at->user, x->round[--i], at->lane, &v))
                h = hash_word(h, (uint64_t)v);
        out[level] = h;
        if (!level--)
            return;
    }
}

static LastRound *last_round(Turns *t, const TextTurn *x, uint64_t warp)
{
    bool fresh;
    uint64_t key = (uint64_t)x->at << 32 | (warp + 1);
    uint32_t *place = key_table_at(t->arena, t->last, key, &fresh);
    if (fresh) {
        VEC_PUSH(t->arena, &t->rounds, ((LastRound){ 0 }));
        *place = (uint32_t)t->rounds.len;
    }
    return &t->rounds.data[*place - 1];
}

/* The warp comes to the comparison, which is `now` here: of loop `level`, in
 * the round that it came to it last, in another one, or another time. */
static void note_round(LastRound *last, Seen *s, unsigned level, bool within,
                       bool same, unsigned now)
{
    int64_t *since = last->since[level], *after = s->after[level];
    for (unsigned v = 0; v < 2; v++) {
        since[v] = within ? since[v] + (since[v] && !same) : 0;
        if (!since[v])
            since[v] = now >> v & 1;
        if (since[v] - 1 > after[v])
            after[v] = since[v] - 1;
    }
}

static void note_rounds(Turns *t, const TextTurn *x, uint64_t warp,
                        const LaneValue *at, unsigned now)
{
    LastRound *last = last_round(t, x, warp);
    uint64_t here[TURN_LOOPS + 1];
    rounds_of(x, at, here);
    for (unsigned i = 0; i < x->n_loops; i++)
        note_round(last, &t->seen[t->side][x->at], i,
                   last->launch == t->launch &&
                       last->round[i + 1] == here[i + 1],
                   last->round[i] == here[i], now);
    memcpy(last->round, here, (x->n_loops + 1) * sizeof *here);
    last->launch = t->launch;
}

/* Answers whether this process has seen it. */
static bool see(Turns *t, const TextTurn *x, uint64_t warp, uint32_t lanes,
                TurnValue *value, void *user)
{
    Seen *s = &t->seen[t->side][x->at];
    uint32_t now = 0;
    LaneValue first = { value, user,
                        (unsigned)__builtin_ctz(lanes | 1u << 31) };
    for (; lanes; lanes &= lanes - 1) {
        int64_t v;
        LaneValue at = { value, user, (unsigned)__builtin_ctz(lanes) };
        if (decides(x, &at) && value_of(x, &at, &v)) {
            note(s, v);
            now |= x->loop ? 1u << (v != 0) : 0;
        }
        if (!x->by_lane || (x->loop ? now == 3 : s->lo != s->hi))
            break;
    }
    if (x->loop)
        note_rounds(t, x, warp, &first, now);
    return s->any &&
           (x->kind == TURN_block || s->lo != s->hi ||
            (x->kind == TURN_trips && s->hi == 1)) &&
           is_followed(s, x, false) && is_followed(s, x, true);
}

void turns_begin(Turns *t)
{
    t->launch++;
}

bool turns_at(Turns *t, const Op *op)
{
    return place_of(t, op)->left > 0;
}

void turns_see(Turns *t, const Op *op, uint64_t warp, uint32_t lanes,
               TurnValue *value, void *user)
{
    TurnPlace *p = place_of(t, op);
    for (unsigned i = 0; i < p->left;) {
        TextTurn *x = p->turns[i];
        if (see(t, x, warp, lanes, value, user)) {
            p->turns[i] = p->turns[--p->left];
            p->turns[p->left] = x;
        } else {
            i++;
        }
    }
}

/* ---- what is left -------------------------------------------------------- */

/* Questions of the prover; behind them every turn may have another side. */
enum { MOST_ASKED = 64 };

bool turn_is_lowered(const Turns *t, const TextTurn *x)
{
    return x->m == t->m && op_enclosing((Op *)x->op, OP_async_kernel);
}

/* Control variables of the host that a launch hands on as they are. */
typedef struct HandedOn {
    unsigned n;
    VarId *from;
    const Affine **to;
    bool all; /* none was met that is not among them */
} HandedOn;

static void note_handed_on(VarId v, void *user)
{
    HandedOn *h = user;
    bool found = false;
    for (unsigned i = 0; i < h->n; i++)
        found = found || h->from[i] == v;
    h->all = h->all && found;
}

/* A condition of the host, if it speaks of what is handed on alone. */
static void assume_handed_on(Facts *f, HandedOn *h, const Cond *c)
{
    Subst s = { .n = h->n, .var = h->from, .to = h->to };
    h->all = c != NULL;
    if (c)
        cond_walk_vars(c, note_handed_on, h);
    if (h->all)
        facts_assume(f, cond_subst(f->exprs, c, &s));
}

/* The host's loops and ifs around a launch. */
static void assume_around(Facts *f, HandedOn *h, const Op *launch)
{
    const Block *in = launch->parent;
    for (const Op *op = op_parent(launch); op && !op_has(op, OPT_SYMBOL);
         in = op->parent, op = op_parent(op)) {
        if (op->code == OP_ctl_for) {
            const Affine *v = affine_var(f->exprs, op->blocks[0]->args[0].var);
            assume_handed_on(
                f, h, cond_cmp(f->exprs, CMP_ge, v, op->operands[0].u.index));
            assume_handed_on(
                f, h, cond_cmp(f->exprs, CMP_lt, v, op->operands[1].u.index));
        } else if (op->code == OP_ctl_if) {
            const Cond *c = op->operands[0].u.cond;
            assume_handed_on(f, h,
                             in == op->blocks[0] ? c : cond_not(f->exprs, c));
        }
    }
}

/* What the host has checked, of the kernel's parameters. */
static void assume_checks(Facts *f, const Turns *t, const Op *launch,
                          const Block *kernel)
{
    HandedOn h = { .from = ARENA_ARRAY(f->arena, VarId, launch->n_operands + 1),
                   .to = ARENA_ARRAY(f->arena, const Affine *,
                                     launch->n_operands + 1) };
    for (unsigned i = 0; i < launch->n_operands && i < kernel->n_args; i++)
        if (launch->operands[i].kind == OPND_index && !kernel->args[i].value &&
            affine_is_var(launch->operands[i].u.index, &h.from[h.n]))
            h.to[h.n++] = affine_var(f->exprs, kernel->args[i].var);
    for (const Op *op = t->host->blocks[0]->first; op; op = op->next)
        if (op->code == OP_host_check)
            assume_handed_on(f, &h, op->operands[0].u.cond);
    assume_around(f, &h, launch);
}

static const Cond *seen_side(const TextTurn *x, ExprCtx *exprs, int64_t v)
{
    const Affine *zero = affine_const(exprs, 0);
    CmpOp op = x->kind == TURN_eq0 ? v ? CMP_eq : CMP_ne : v ? CMP_ge : CMP_lt;
    if (x->kind == TURN_quotient)
        return cond_cmp(exprs, CMP_eq, affine_floordiv(exprs, x->e, x->divisor),
                        affine_const(exprs, v));
    return cond_cmp(exprs, op, x->e, zero);
}

/* Where the comparison decides. */
static void assume_decides(Facts *f, const TextTurn *x)
{
    const Cond *other;
    bool want = true;
    for (const Cond *c = x->whole; c;) {
        c = turn_operand(c, x->part, &other, &want);
        if (other)
            facts_assume(f, want ? other : cond_not(f->exprs, other));
    }
}

/* What holds where the turn stands. */
static Facts *facts_of(const Turns *t, const TextTurn *x, Arena *arena)
{
    Facts *f = prove_facts_at(arena, x->m, (Op *)x->op);
    LaunchSearch s = launches_of(t, x->op);
    if (s.n == 1)
        assume_checks(f, t, s.found,
                      op_enclosing((Op *)x->op, OP_async_kernel)->blocks[0]);
    return f;
}

/* Does the comparison hold wherever it decides, or nowhere there? */
static bool is_settled(const TextTurn *x, const Facts *f, Prover *prover)
{
    for (int64_t v = 0; v < 2 && x->part; v++)
        if (prove_implied(prover, f, seen_side(x, f->exprs, v)).answer ==
            PROVE_yes)
            return true;
    return false;
}

/* Is it for all that is known that the turn has another side? */
static bool may_turn(const Turns *t, const TextTurn *x, Prover *prover)
{
    int64_t v;
    bool any = turn_side(t, x, &v);
    Arena *arena = arena_new();
    Facts *f = facts_of(t, x, arena);
    assume_decides(f, x);
    Proof p = any ? prove_implied(prover, f, seen_side(x, f->exprs, v))
                  : prove_satisfiable(prover, f, cond_bool(f->exprs, true));
    bool fixed = p.answer == (any ? PROVE_yes : PROVE_no) ||
                 (!any && is_settled(x, f, prover));
    arena_free(arena);
    return !fixed;
}

/* Variables of a round, and those of another one. */
typedef struct Renaming {
    ExprCtx *exprs;
    Arena *arena;
    Subst s;
    VarId *from;
    const Affine **to;
} Renaming;

static void rename_var(Renaming *r, VarId v)
{
    Var old = *var_get(r->exprs, v);
    VarId fresh = var_new(r->exprs, old.name, old.kind);
    r->from[r->s.n] = v;
    r->to[r->s.n++] = affine_var(r->exprs, fresh);
    var_set_bounds(r->exprs, fresh,
                   old.lo ? affine_subst(r->exprs, old.lo, &r->s) : NULL,
                   old.hi ? affine_subst(r->exprs, old.hi, &r->s) : NULL);
}

/* The loop's, those of loops within, and the lane. */
static void rename_round(Renaming *r, const TextTurn *x, const Op *loop)
{
    const Block *k = op_enclosing((Op *)x->op, OP_async_kernel)->blocks[0];
    VEC(const Op *) around = { 0 };
    unsigned n_vars = 1;
    const Op *o = x->op;
    do {
        o = op_parent(o);
        n_vars += o->blocks[0]->n_args;
        VEC_PUSH(r->arena, &around, o);
    } while (o != loop);
    r->from = ARENA_ARRAY(r->arena, VarId, n_vars);
    r->to = ARENA_ARRAY(r->arena, const Affine *, n_vars);
    r->s = (Subst){ .var = r->from, .to = r->to };
    rename_var(r, k->args[k->n_args - 1].var);
    for (size_t n = around.len; n-- > 0;) {
        const Block *b = around.data[n]->blocks[0];
        for (unsigned i = 0; i < b->n_args; i++)
            if (!b->args[i].value)
                rename_var(r, b->args[i].var);
    }
}

/* Can the warp come to the turn, after it was so where it decides, so many
 * rounds of the loop later? A task that comes later in the same CTA, in
 * whatever bands, is later by one of its variables. */
static bool may_come_after(const Turns *t, const TextTurn *x, int64_t side,
                           const TurnLoop *loop, int64_t need, Prover *prover)
{
    Arena *arena = arena_new();
    Facts *here = facts_of(t, x, arena), *f = facts_copy(arena, here);
    Renaming r = { .exprs = f->exprs, .arena = arena };
    const Cond *later = cond_bool(f->exprs, false);
    rename_round(&r, x, loop->op);
    for (size_t i = 0; i < here->conds.len; i++)
        facts_assume(f, cond_subst(f->exprs, here->conds.data[i], &r.s));
    assume_decides(f, x);
    facts_assume(f, seen_side(x, f->exprs, side));
    for (unsigned d = loop->from; d < loop->to && later; d++)
        later =
            cond_or(f->exprs, later,
                    cond_cmp(f->exprs, CMP_ge,
                             affine_subst(f->exprs, x->round[d], &r.s),
                             affine_add_const(f->exprs, x->round[d], need)));
    bool may = prove_satisfiable(prover, f, later).answer != PROVE_no;
    arena_free(arena);
    return may;
}

/* What is behind the comparison where it is so: in fewer rounds where no size
 * has as many, and then in the next loop. */
static void settle_side(Turns *t, TextTurn *x, bool v, Prover *prover)
{
    while (!turn_side_done(t, x, v) && t->n_asked++ < MOST_ASKED) {
        const TurnLoop *loop = &x->loops[x->level[v]];
        if (may_come_after(t, x, v, loop, x->need[v], prover))
            return;
        if (x->need[v] > 1)
            x->need[v] = 1;
        else if (++x->level[v] < x->n_loops)
            x->need[v] = x->loops[x->level[v]].delay;
    }
}

/* Is there a side left after which it may be come to again? */
static bool may_come_again(Turns *t, TextTurn *x, Prover *prover)
{
    for (unsigned v = 0; v < 2 && turn_both_ways(t, x); v++)
        settle_side(t, x, v, prover);
    return !turn_seen(t, x);
}

/* Was the block around it never entered, which is to be told instead? */
static bool within_unseen(Turns *t, const TextTurn *x)
{
    if (x->kind == TURN_block || !turn_is_lowered(t, x))
        return false;
    const TurnPlace *p = place_of(t, x->op->parent->first);
    for (unsigned i = 0; i < p->n; i++)
        if (p->turns[i]->kind == TURN_block)
            return !turn_seen(t, p->turns[i]);
    return false;
}

/* Was it given up, and no more seen of it since? */
static bool is_hopeless(const Turns *t, const TextTurn *x)
{
    return x->hopeless && x->known == turn_progress(t, x);
}

TextTurn *turns_next(Turns *t, Prover *prover)
{
    for (size_t i = 0; i < t->all.len; i++) {
        TextTurn *x = t->all.data[i];
        Seen *s = &t->seen[t->side][x->at];
        if (is_hopeless(t, x) || turn_seen(t, x) || within_unseen(t, x))
            continue;
        if (t->n_asked++ >= MOST_ASKED || may_turn(t, x, prover)) {
            if (!x->loop || may_come_again(t, x, prover))
                return x;
            continue;
        }
        note(s, INT64_MIN);
        note(s, INT64_MAX);
        x->level[0] = x->level[1] = x->n_loops;
    }
    return NULL;
}

void turn_give_up(const Turns *t, TextTurn *x)
{
    x->hopeless = true;
    x->known = turn_progress(t, x);
}

const TextTurn *turns_hopeless(const Turns *t)
{
    for (size_t i = 0; i < t->all.len; i++)
        if (t->all.data[i]->hopeless && !turn_seen(t, t->all.data[i]))
            return t->all.data[i];
    return NULL;
}

void turn_print(StrBuf *out, const Turns *t, const TextTurn *x)
{
    int64_t v = 0;
    ExprCtx *exprs = x->m->exprs;
    bool any = turn_side(t, x, &v);
    if (x->kind == TURN_product) {
        strbuf_add(out, "a part of ");
        affine_print(out, exprs, x->e, NULL, 0);
        strbuf_add(out, " may vanish: it multiplies variables, which the "
                        "program does not");
    } else if (x->kind == TURN_within) {
        cond_print(out, exprs, seen_side(x, exprs, v), NULL, 0);
        strbuf_add(out, " holds, or a place would be outside of its object; "
                        "for all sizes it is not known");
    } else if (x->kind == TURN_block) {
        strbuf_add(out, "this is never executed");
    } else if (!any && x->part) {
        cond_print(out, exprs, x->part, NULL, 0);
        strbuf_add(out, " never decides");
    } else if (!any) {
        strbuf_add(out, "this is never executed");
    } else if (x->kind == TURN_quotient && x->divisor == 1) {
        affine_print(out, exprs, x->e, NULL, 0);
        strbuf_addf(out, " is always %lld here", (long long)v);
    } else if (x->loop && turn_both_ways(t, x)) {
        bool side = turn_side_done(t, x, false);
        strbuf_add(out, "nothing comes again after ");
        cond_print(out, exprs, seen_side(x, exprs, side), NULL, 0);
    } else if (x->kind == TURN_quotient) {
        strbuf_add(out, "(");
        affine_print(out, exprs, x->e, NULL, 0);
        strbuf_addf(out, ") floordiv %lld is always %lld",
                    (long long)x->divisor, (long long)v);
    } else {
        cond_print(out, exprs, seen_side(x, exprs, v), NULL, 0);
        strbuf_add(out, " always holds");
    }
    strbuf_addf(out, " (%s:%u)", ctx_source_name(t->m->ctx, x->op->loc.file),
                x->op->loc.line);
}
