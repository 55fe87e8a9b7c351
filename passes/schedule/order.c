/* Rewrites that change the order in which statements run: interchange, fission,
 * fusion, and loops put around or taken away. Each is shown from the effects of
 * the statements that change places (passes/schedule/effects.h). */
#include "passes/schedule/ops.h"

static const Affine *lo_of(const Op *loop)
{
    return loop->operands[0].u.index;
}

static const Affine *hi_of(const Op *loop)
{
    return loop->operands[1].u.index;
}

/* A variable with the range of a loop's own. */
static VarId twin(Sched *s, const Op *loop)
{
    ExprCtx *x = s->m->exprs;
    const Var *v = var_get(x, sched_loop_var(loop));
    VarId w = var_new(x, arena_printf(s->arena, "%s'", v->name), VAR_iter);
    var_set_bounds(x, w, lo_of(loop), hi_of(loop));
    return w;
}

/* ---- reorder_loops ----------------------------------------------------- */

/* May (i, j) and (i', j') change places for all i < i', j' < j? */
static bool iterations_commute(Sched *s, Op *outer, Op *inner, Loc loc)
{
    ExprCtx *x = s->m->exprs;
    EffectVec now = { 0 }, later = { 0 };
    VarId vars[2] = { sched_loop_var(outer), sched_loop_var(inner) };
    VarId i2 = twin(s, outer), j2 = twin(s, inner);
    const Affine *to[2] = { affine_var(x, i2), affine_var(x, j2) };
    effects_of_block(s, inner->blocks[0], &now);
    if (!effects_renamed(s, &now, outer->parent, 2, vars, to, &later))
        return false;
    Facts *f = prove_facts_in(s->arena, s->m, inner, 0);
    facts_assume_var(f, i2);
    facts_assume_var(f, j2);
    facts_assume(f, cond_cmp(x, CMP_lt, affine_var(x, vars[0]), to[0]));
    facts_assume(f, cond_cmp(x, CMP_lt, to[1], affine_var(x, vars[1])));
    return effects_commute(s, f, &now, &later, loc,
                           "the loops cannot be interchanged");
}

/* Makes the sole statement below outer the one around it: the two op
 * structures change places, the body stays below. */
static void interchange(Sched *s, Op *outer, Op *inner)
{
    Block *body = inner->blocks[0];
    op_detach(inner);
    Op *place = outer->next;
    Block *b = outer->parent;
    op_detach(outer);
    for (Op *op = body->first, *next; op; op = next) {
        next = op->next;
        op_detach(op);
        block_append(outer->blocks[0], op);
    }
    block_append(body, outer);
    if (place)
        op_insert_before(place, inner);
    else
        block_append(b, inner);
    Edit e = { EDIT_wrap, outer->sid, inner->sid };
    VEC_PUSH(s->log->arena, &s->log->edits, e);
}

static bool bounds_free(Sched *s, const Op *outer, const Op *inner, Loc loc)
{
    VarId v = sched_loop_var(outer);
    if (!affine_uses(lo_of(inner), v) && !affine_uses(hi_of(inner), v))
        return true;
    return sched_fail(s, loc,
                      "the bounds of '%s' use '%s', which is not in "
                      "scope outside '%s'",
                      sched_stmt_text(s, inner), var_get(s->m->exprs, v)->name,
                      sched_stmt_text(s, outer));
}

bool sched_reorder_loops(Sched *s, const SchedArg *a)
{
    Op *outer = a[0].at.first, *inner = sole_stmt(outer->blocks[0]);
    if (!inner || inner->code != OP_ctl_for)
        return sched_fail(s, a[0].loc, "'%s' does not hold one loop alone",
                          sched_stmt_text(s, outer));
    if (!bounds_free(s, outer, inner, a[0].loc) ||
        !iterations_commute(s, outer, inner, a[0].loc))
        return false;
    interchange(s, outer, inner);
    return true;
}

/* ---- lift_scope -------------------------------------------------------- */

static bool is_scope(const Op *op)
{
    return op->code == OP_ctl_for || op->code == OP_ctl_if ||
           op->code == OP_par_warps;
}

/* A condition that the statements around it may change is not moved. */
static bool cond_is_steady(Sched *s, const Op *branch, const Op *around,
                           Loc loc)
{
    EffectVec e = { 0 };
    Op *op = (Op *)around;
    effects_of(s, op, op, &e);
    for (size_t i = 0; i < e.len; i++) {
        if (!e.data[i].field || e.data[i].op != branch)
            continue;
        for (size_t k = 0; k < e.len; k++)
            if (e.data[k].field == e.data[i].field &&
                (e.data[k].flags & ACC_WRITE))
                return sched_fail(
                    s, loc, "the condition reads %s, which '%s' writes",
                    e.data[i].field, sched_stmt_text(s, e.data[k].op));
    }
    return true;
}

/* What moves outward must not depend on what it moves over. An if goes over
 * one with an else too (copy_around). */
static bool lift_checks(Sched *s, Op *outer, Op *inner, Loc loc)
{
    if (inner->code == OP_ctl_for) {
        if (outer->code == OP_ctl_for)
            return bounds_free(s, outer, inner, loc) &&
                   iterations_commute(s, outer, inner, loc);
        if (outer->code == OP_ctl_if && outer->n_blocks > 1)
            return sched_fail(s, loc, "the if around has an else");
        return outer->code != OP_ctl_if || cond_is_steady(s, outer, inner, loc);
    }
    if (inner->code != OP_ctl_if)
        return true;
    if (outer->code == OP_ctl_for &&
        cond_uses(inner->operands[0].u.cond, sched_loop_var(outer)))
        return sched_fail(s, loc,
                          "the condition uses '%s', which is not in "
                          "scope outside '%s'",
                          var_get(s->m->exprs, sched_loop_var(outer))->name,
                          sched_stmt_text(s, outer));
    return cond_is_steady(s, inner, outer, loc);
}

/* Room for the else that an if does not have. */
static Block *add_else(Sched *s, Op *branch)
{
    Block **both = ARENA_ARRAY(s->m->arena, Block *, 2);
    both[0] = branch->blocks[0];
    both[1] = block_new(s->m, branch);
    branch->blocks = both;
    branch->n_blocks = 2;
    return both[1];
}

/* The else of the lifted if: the scope around again, around its else, and with
 * a copy of the else of its own. */
static void copy_around(Sched *s, Op *outer, Op *inner)
{
    Block *body = outer->blocks[0];
    CloneMap *map = clone_map_new(s->m, s->m);
    Op *again = op_new(s->m, outer->code, outer->loc, outer->n_operands, 0,
                       outer->n_blocks);
    for (unsigned i = 0; i < outer->n_operands; i++)
        again->operands[i] = outer->operands[i];
    for (unsigned i = 0; i < outer->n_attrs; i++)
        op_set_attr(s->m, again, outer->attrs[i]);
    if (body->n_args) {
        VarId v = sched_loop_var(outer);
        const Var *var = var_get(s->m->exprs, v);
        VarId w = block_add_var(s->m, again->blocks[0], var->name, VAR_iter);
        var_set_bounds(s->m->exprs, w, lo_of(outer), hi_of(outer));
        clone_map_index(map, v, affine_var(s->m->exprs, w));
    }
    if (inner->n_blocks > 1)
        block_clone_into(map, inner->blocks[1], again->blocks[0]);
    else
        block_append(again->blocks[0],
                     op_new(s->m, OP_ctl_pass, inner->loc, 0, 0, 0));
    if (outer->n_blocks > 1)
        block_clone_into(map, outer->blocks[1], again->blocks[1]);
    Block *no =
        inner->n_blocks > 1 ? block_new(s->m, inner) : add_else(s, inner);
    block_append(no, again);
    inner->blocks[1] = no;
}

bool sched_lift_scope(Sched *s, const SchedArg *a)
{
    Op *inner = a[0].at.first, *outer = op_parent(inner);
    if (!is_scope(inner))
        return sched_fail(s, a[0].loc, "'%s' is no loop, if or warps block",
                          sched_stmt_text(s, inner));
    if (!outer || !is_scope(outer))
        return sched_fail(s, a[0].loc,
                          "there is no loop, if or warps block "
                          "around '%s'",
                          sched_stmt_text(s, inner));
    if (sole_stmt(outer->blocks[0]) != inner)
        return sched_fail(s, a[0].loc, "'%s' does not stand alone in '%s'",
                          sched_stmt_text(s, inner), sched_stmt_text(s, outer));
    if (!lift_checks(s, outer, inner, a[0].loc))
        return false;
    if (inner->code == OP_ctl_if &&
        (inner->n_blocks > 1 || outer->n_blocks > 1))
        copy_around(s, outer, inner);
    interchange(s, outer, inner);
    return true;
}

/* ---- fission ----------------------------------------------------------- */

/* Splits the scope around a gap in two: what is before, what is behind. */
static bool split_checks(Sched *s, Op *scope, Op *last, Loc loc)
{
    ExprCtx *x = s->m->exprs;
    Op *next = stmt_next(last), *end = block_last_stmt(last->parent);
    EffectVec before = { 0 }, behind = { 0 }, later = { 0 };
    if (sched_escapes(s, block_first_stmt(last->parent), last))
        return sched_fail(s, loc,
                          "what is defined before the gap is used "
                          "behind it: lift the allocation first");
    effects_of(s, block_first_stmt(last->parent), last, &before);
    effects_of(s, next, end, &behind);
    if (scope->code == OP_ctl_if)
        return cond_is_steady(s, scope, scope, loc);
    if (scope->code != OP_ctl_for)
        return true;
    VarId v = sched_loop_var(scope), w;
    Facts *f = sched_facts_later(s, scope, &w);
    const Affine *to = affine_var(x, w);
    if (!effects_renamed(s, &before, scope->parent, 1, &v, &to, &later))
        return false;
    return effects_commute(s, f, &behind, &later, loc,
                           "the loop cannot be split here");
}

/* The second scope, holding what stands behind last. */
static bool split_scope(Sched *s, Op *scope, Op *last, Op **second)
{
    ExprCtx *x = s->m->exprs;
    Op *copy = op_new(s->m, scope->code, scope->loc, scope->n_operands, 0, 1);
    for (unsigned i = 0; i < scope->n_operands; i++)
        copy->operands[i] = scope->operands[i];
    for (unsigned i = 0; i < scope->n_attrs; i++)
        op_set_attr(s->m, copy, scope->attrs[i]);
    VarId v = 0, w = 0;
    if (scope->code == OP_ctl_for) {
        v = sched_loop_var(scope);
        w = block_add_var(s->m, copy->blocks[0], var_get(x, v)->name, VAR_iter);
        var_set_bounds(x, w, lo_of(scope), hi_of(scope));
    }
    for (Op *op = stmt_next(last), *next; op; op = next) {
        next = stmt_next(op);
        edit_move_into(s->log, copy->blocks[0], op);
    }
    edit_insert_after(s->log, scope, copy);
    *second = copy;
    return !v || sched_subst(s, copy->blocks[0], v, affine_var(x, w));
}

static bool can_split(const Op *scope)
{
    return scope && is_scope(scope) &&
           !(scope->code == OP_ctl_if && scope->n_blocks > 1);
}

/* Splits the scope around the gap behind *last; *last is then the scope. */
static bool fission_once(Sched *s, Op **last, Loc loc)
{
    Op *scope = op_parent(*last), *second;
    if (!can_split(scope))
        return sched_fail(s, loc,
                          "the gap is in no loop, warps block or if "
                          "without an else");
    if (!stmt_next(*last)) {
        *last = scope;
        return true;
    }
    if (!split_checks(s, scope, *last, loc) ||
        !split_scope(s, scope, *last, &second))
        return false;
    *last = scope;
    return true;
}

/* The statement before the gap. */
static Op *gap_last(Sched *s, const SchedArg *a)
{
    Op *last = a->at.after ? a->at.last : stmt_prev(a->at.first);
    if (last && stmt_next(last))
        return last;
    sched_fail(s, a->loc,
               "the gap has nothing on one side: there is nothing "
               "to split");
    return NULL;
}

bool sched_fission(Sched *s, const SchedArg *a)
{
    Op *last = gap_last(s, &a[0]);
    if (!last)
        return false;
    if (a[1].i < 1)
        return sched_fail(s, a[1].loc, "n_lifts is positive");
    for (int64_t i = 0; i < a[1].i; i++)
        if (!fission_once(s, &last, a[0].loc))
            return false;
    s->result = last->sid;
    return true;
}

bool sched_autofission(Sched *s, const SchedArg *a)
{
    Op *last = gap_last(s, &a[0]);
    if (!last || !fission_once(s, &last, a[0].loc))
        return false;
    while (can_split(op_parent(last))) {
        CtxMark mark = ctx_mark(s->ctx);
        if (!fission_once(s, &last, a[0].loc)) {
            ctx_rollback(s->ctx, mark);
            break;
        }
    }
    s->result = last->sid;
    return true;
}

/* ---- fuse -------------------------------------------------------------- */

static bool fuse_loops(Sched *s, Op *first, Op *second, Loc loc)
{
    ExprCtx *x = s->m->exprs;
    Facts *outside = prove_facts_at(s->arena, s->m, first);
    if (!sched_prove(s, outside,
                     cond_cmp(x, CMP_eq, lo_of(first), lo_of(second)), loc,
                     "the loops do not start together") ||
        !sched_prove(s, outside,
                     cond_cmp(x, CMP_eq, hi_of(first), hi_of(second)), loc,
                     "the loops do not end together"))
        return false;
    if (!loop_modes_equal(first, second))
        return sched_fail(s, loc, "the loops have different modes");
    EffectVec one = { 0 }, two = { 0 }, later = { 0 };
    VarId v = sched_loop_var(first), w;
    Facts *f = sched_facts_later(s, first, &w);
    const Affine *to = affine_var(x, w);
    if (!sched_subst(s, second->blocks[0], sched_loop_var(second),
                     affine_var(x, v)))
        return false;
    effects_of_block(s, first->blocks[0], &one);
    effects_of_block(s, second->blocks[0], &two);
    if (!effects_renamed(s, &one, first->parent, 1, &v, &to, &later))
        return false;
    return effects_commute(s, f, &two, &later, loc,
                           "the loops cannot be fused");
}

bool sched_fuse(Sched *s, const SchedArg *a)
{
    Op *first = a[0].at.first, *second = a[1].at.first;
    if (stmt_next(first) != second || first->code != second->code ||
        !can_split(first) || !can_split(second))
        return sched_fail(s, a[1].loc,
                          "expected two loops, warps blocks or "
                          "ifs without else side by side");
    if (first->code == OP_ctl_for) {
        if (!fuse_loops(s, first, second, a[1].loc))
            return false;
    } else if (first->code == OP_ctl_if) {
        if (first->operands[0].u.cond != second->operands[0].u.cond)
            return sched_fail(s, a[1].loc, "the conditions differ");
        EffectVec e = { 0 };
        effects_of(s, first, second, &e);
        if (!cond_is_steady(s, second, first, a[1].loc))
            return false;
        for (size_t i = 0; i < e.len; i++)
            if (e.data[i].field && (e.data[i].flags & ACC_WRITE))
                return sched_fail(s, a[1].loc,
                                  "configuration is written in "
                                  "between");
    } else if (!loop_modes_equal(first, second)) {
        return sched_fail(s, a[1].loc, "the blocks are of different warps");
    }
    for (Op *op = block_first_stmt(second->blocks[0]), *next; op; op = next) {
        next = stmt_next(op);
        edit_move_into(s->log, first->blocks[0], op);
    }
    edit_erase(s->log, second);
    return true;
}

/* ---- remove_loop, add_loop --------------------------------------------- */

bool sched_remove_loop(Sched *s, const SchedArg *a)
{
    ExprCtx *x = s->m->exprs;
    Op *loop = a[0].at.first;
    EffectVec e = { 0 };
    if (block_uses_var(loop->blocks[0], sched_loop_var(loop)))
        return sched_fail(s, a[0].loc, "the body uses '%s'",
                          var_get(x, sched_loop_var(loop))->name);
    Facts *f = prove_facts_at(s->arena, s->m, loop);
    if (!sched_prove(s, f, cond_cmp(x, CMP_lt, lo_of(loop), hi_of(loop)),
                     a[0].loc, "the loop may have no trip"))
        return false;
    effects_of_block(s, loop->blocks[0], &e);
    if (!effects_idempotent(s, f, &e, loop->blocks[0], a[0].loc,
                            "the body is not idempotent"))
        return false;
    edit_unwrap(s->log, loop, loop->blocks[0]);
    s->result = 0;
    return true;
}

bool sched_add_loop(Sched *s, const SchedArg *a)
{
    ExprCtx *x = s->m->exprs;
    Op *first = a[0].at.first, *last = a[0].at.last;
    const Affine *hi = sched_index(s, first, a[2].loc, a[2].s);
    Facts *f = prove_facts_at(s->arena, s->m, first);
    EffectVec e = { 0 };
    VarId v;
    if (!hi)
        return false;
    if (sched_escapes(s, first, last))
        return sched_fail(s, a[0].loc,
                          "what the block defines is used behind "
                          "it");
    if (!sched_prove(s, f, cond_cmp(x, CMP_gt, hi, affine_const(x, 0)),
                     a[2].loc, "the loop may have no trip"))
        return false;
    effects_of(s, first, last, &e);
    if (!a[3].i && !effects_idempotent(s, f, &e, first->parent, a[0].loc,
                                       "the block is not idempotent"))
        return false;
    Op *loop = sched_loop(s, NULL, a[1].s, affine_const(x, 0), hi, &v);
    edit_wrap(s->log, first, last, loop);
    if (a[3].i) {
        Op *guard = op_new(s->m, OP_ctl_if, first->loc, 1, 0, 1);
        guard->operands[0] = opnd_cond(
            cond_cmp(x, CMP_eq, affine_var(x, v), affine_const(x, 0)));
        edit_wrap(s->log, first, last, guard);
    }
    s->result = loop->sid;
    return true;
}

/* ---- eliminate_dead_code, reorder_stmts -------------------------------- */

static void erase_or_pass(Sched *s, Op *op)
{
    if (!stmt_prev(op) && !stmt_next(op))
        edit_insert_after(s->log, op,
                          op_new(s->m, OP_ctl_pass, op->loc, 0, 0, 0));
    edit_erase(s->log, op);
    s->result = 0;
}

static bool dead_loop(Sched *s, Op *loop, const Facts *f, Loc loc)
{
    ExprCtx *x = s->m->exprs;
    if (!sched_prove(s, f, cond_cmp(x, CMP_le, hi_of(loop), lo_of(loop)), loc,
                     "the loop may have a trip"))
        return false;
    erase_or_pass(s, loop);
    return true;
}

bool sched_eliminate_dead_code(Sched *s, const SchedArg *a)
{
    Op *op = a[0].at.first;
    Facts *f = prove_facts_at(s->arena, s->m, op);
    if (op->code == OP_ctl_for)
        return dead_loop(s, op, f, a[0].loc);
    if (op->code != OP_ctl_if)
        return sched_fail(s, a[0].loc, "expected a loop or an if");
    const Cond *c = op->operands[0].u.cond;
    if (sched_implied(s, f, c)) {
        edit_unwrap(s->log, op, op->blocks[0]);
        s->result = 0;
        return true;
    }
    if (!sched_prove(s, f, cond_not(s->m->exprs, c), a[0].loc,
                     "the condition %s is neither always true nor always "
                     "false",
                     sched_cond_text(s, c)))
        return false;
    if (op->n_blocks > 1)
        edit_unwrap(s->log, op, op->blocks[1]);
    else
        erase_or_pass(s, op);
    s->result = 0;
    return true;
}

/* The statement behind the block goes before it. */
bool sched_reorder_stmts(Sched *s, const SchedArg *a)
{
    Op *first = a[0].at.first, *last = a[0].at.last;
    Op *next = a[1].given ? a[1].at.last : stmt_next(last);
    Op *from = stmt_next(last);
    if (!next || (a[1].given && a[1].at.first != from))
        return sched_fail(s, a[0].loc,
                          "there is no statement behind it to "
                          "change places with");
    for (Op *op = stmt_first(first); op; op = op == last ? NULL : op->next)
        for (unsigned i = 0; i < op->n_results; i++)
            for (Op *use = stmt_first(from); use;
                 use = use == next ? NULL : use->next)
                if (op_uses_value(use, op->results[i]))
                    return sched_fail(
                        s, a[0].loc, "'%s' uses what '%s' defines",
                        sched_stmt_text(s, use), sched_stmt_text(s, op));
    EffectVec one = { 0 }, two = { 0 };
    effects_of(s, first, last, &one);
    effects_of(s, from, next, &two);
    Facts *f = prove_facts_at(s->arena, s->m, first);
    if (!effects_commute(s, f, &one, &two, a[0].loc,
                         "the statements do not commute"))
        return false;
    for (Op *op = from, *after; op; op = after) {
        after = op == next ? NULL : stmt_next(op);
        edit_move_before(s->log, first, op);
    }
    return true;
}
