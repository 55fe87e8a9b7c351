/* Single statements and the values in them. Sums and products are rewritten by
 * the laws of exact arithmetic; where a floating value then rounds otherwise
 * the step is recorded as reassociating. */
#include "passes/schedule/ops.h"
#include "passes/schedule/pattern.h"

/* ---- values ------------------------------------------------------------ */

static Op *value_op(Sched *s, const SchedArg *stmt, const SchedArg *value)
{
    ValueVec found = { 0 };
    if (!pattern_values(s, stmt->at.first, value->loc, value->s, &found))
        return NULL;
    for (size_t i = 0; i < found.len; i++)
        if (found.data[i]->def)
            return found.data[i]->def;
    sched_fail(s, value->loc, "no value of '%s' is `%s`",
               sched_stmt_text(s, stmt->at.first), value->s);
    return NULL;
}

static bool is_sum_or_product(const Op *op)
{
    return op->code == OP_arith_add || op->code == OP_arith_mul;
}

/* A reduction by a product has its factors as operands behind the access. */
bool sched_commute_expr(Sched *s, const SchedArg *a)
{
    Op *stmt = a[0].at.first;
    bool of_reduction = !a[1].given;
    Op *op = of_reduction ? stmt : value_op(s, &a[0], &a[1]);
    if (!op)
        return false;
    if (of_reduction && (op->code != OP_mem_reduce || op->n_operands != 3))
        return sched_fail(s, a[0].loc,
                          "'%s' adds no product; expected `x += a * b`, or "
                          "which sum or product to commute",
                          sched_stmt_text(s, stmt));
    if (!of_reduction && !is_sum_or_product(op))
        return sched_fail(s, a[1].loc, "`%s` is no sum or product", a[1].s);
    Operand *left = &op->operands[of_reduction ? 1 : 0], swap = *left;
    left[0] = left[1];
    left[1] = swap;
    edit_replace(s->log, stmt);
    return true;
}

/* a + (b + c) -> (a + b) + c: the inner op becomes a + b. */
bool sched_left_reassociate_expr(Sched *s, const SchedArg *a)
{
    Op *op = value_op(s, &a[0], &a[1]);
    if (!op)
        return false;
    Value *right = is_sum_or_product(op) ? op->operands[1].u.value : NULL;
    if (!right || !right->def || right->def->code != op->code)
        return sched_fail(s, a[1].loc, "`%s` is not a + (b + c) or a * (b * c)",
                          a[1].s);
    Op *inner = op_new(s->m, op->code, op->loc, 2, 1, 0);
    inner->operands[0] = op->operands[0];
    inner->operands[1] = right->def->operands[0];
    Value *sum = op_set_result(s->m, inner, 0, right->type, NULL);
    op->operands[0] = opnd_value(sum);
    op->operands[1] = right->def->operands[1];
    op_insert_before(op, inner);
    if (!sched_uses(s, right, NULL))
        op_detach(right->def);
    s->reassociates |= !scalar_type_is_int(right->type->elem);
    edit_replace(s->log, a[0].at.first);
    return true;
}

/* ---- rewrite_expr ------------------------------------------------------ */

typedef struct IndexRewrite {
    const Affine *from, *to;
    unsigned n;
} IndexRewrite;

static void rewrite_one(IndexRewrite *r, const Affine **e)
{
    if (*e == r->from) {
        *e = r->to;
        r->n++;
    }
}

static void rewrite_op(IndexRewrite *r, Op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        Operand *o = &op->operands[i];
        if (o->kind == OPND_index)
            rewrite_one(r, &o->u.index);
        for (unsigned k = 0; o->kind == OPND_access && k < o->u.access->rank;
             k++)
            rewrite_one(r, &o->u.access->dims[k].lo);
    }
}

/* c with `from` replaced where it is a whole or a side of `and`, `or`. */
static const Cond *rewrite_part(ExprCtx *x, const Cond *c, const Cond *from,
                                const Cond *to)
{
    if (!c || c == from)
        return c ? to : NULL;
    if (c->kind != COND_and && c->kind != COND_or)
        return c;
    const Cond *l = rewrite_part(x, c->lhs, from, to);
    const Cond *r = rewrite_part(x, c->rhs, from, to);
    return c->kind == COND_and ? cond_and(x, l, r) : cond_or(x, l, r);
}

/* A condition, and one that holds exactly when it does. */
static bool rewrite_cond(Sched *s, Op *stmt, const SchedArg *a)
{
    ExprCtx *x = s->m->exprs;
    const Cond *from = sched_cond(s, stmt, a[1].loc, a[1].s);
    const Cond *to = from ? sched_cond(s, stmt, a[2].loc, a[2].s) : NULL;
    if (!to)
        return false;
    Facts *f = prove_facts_at(s->arena, s->m, stmt);
    const Cond *same = cond_and(x, cond_or(x, cond_not(x, from), to),
                                cond_or(x, from, cond_not(x, to)));
    if (!sched_prove(s, f, same, a[2].loc,
                     "%s is not shown to hold exactly when %s does",
                     sched_cond_text(s, to), sched_cond_text(s, from)))
        return false;
    const Cond *now = rewrite_part(x, stmt->operands[0].u.cond, from, to);
    if (now == stmt->operands[0].u.cond)
        return sched_fail(s, a[1].loc, "no part of '%s' is %s",
                          sched_stmt_text(s, stmt), sched_cond_text(s, from));
    stmt->operands[0] = opnd_cond(now);
    edit_replace(s->log, stmt);
    return true;
}

/* An index or bound of the statement, and one proved equal there. */
bool sched_rewrite_expr(Sched *s, const SchedArg *a)
{
    Op *stmt = a[0].at.first;
    if (stmt->code == OP_ctl_if)
        return rewrite_cond(s, stmt, a);
    IndexRewrite r = { .from = sched_index(s, stmt, a[1].loc, a[1].s) };
    r.to = r.from ? sched_index(s, stmt, a[2].loc, a[2].s) : NULL;
    if (!r.to)
        return false;
    Facts *f = prove_facts_at(s->arena, s->m, stmt);
    if (!sched_prove(s, f, cond_cmp(s->m->exprs, CMP_eq, r.from, r.to),
                     a[2].loc, "%s is not shown equal to %s",
                     sched_index_text(s, r.from), sched_index_text(s, r.to)))
        return false;
    for (Op *op = stmt_first(stmt); op; op = op == stmt ? NULL : op->next)
        rewrite_op(&r, op);
    if (!r.n)
        return sched_fail(s, a[1].loc, "no index of '%s' is %s",
                          sched_stmt_text(s, stmt),
                          sched_index_text(s, r.from));
    if (stmt->code == OP_ctl_for)
        var_set_bounds(s->m->exprs, sched_loop_var(stmt),
                       stmt->operands[0].u.index, stmt->operands[1].u.index);
    edit_replace(s->log, stmt);
    return true;
}

/* ---- merge_writes, split_write, fold_into_reduce ----------------------- */

static bool is_assign(const Op *op)
{
    return op && (op->code == OP_mem_store || op->code == OP_mem_reduce);
}

static bool same_element(Sched *s, const Facts *f, const Access *a,
                         const Access *b)
{
    bool same = a->base == b->base && a->rank == b->rank;
    for (unsigned i = 0; same && i < a->rank; i++)
        same =
            affine_equal(s->prover, f, a->dims[i].lo, b->dims[i].lo).answer ==
            PROVE_yes;
    return same;
}

/* The value of an assignment as one, a fused product made a product. */
static Value *value_of(Sched *s, Op *op)
{
    if (op->n_operands < 3)
        return op->operands[1].u.value;
    Op *mul = op_new(s->m, OP_arith_mul, op->loc, 2, 1, 0);
    mul->operands[0] = op->operands[1];
    mul->operands[1] = op->operands[2];
    op_insert_before(op, mul);
    return op_set_result(s->m, mul, 0, op->operands[1].u.value->type, NULL);
}

static bool is_zero(const Value *v)
{
    const Op *op = v->def;
    const Param *p =
        op && op->code == OP_arith_const ? op_attr_param(op, "value") : NULL;
    return p && (p->kind == PARAM_float ? p->f == 0 : p->i == 0);
}

/* v + w, which is w when v is zero. */
static Value *sum_of(Sched *s, Op *before, Value *v, Value *w)
{
    if (is_zero(v))
        return w;
    Op *add = op_new(s->m, OP_arith_add, before->loc, 2, 1, 0);
    add->operands[0] = opnd_value(v);
    add->operands[1] = opnd_value(w);
    op_insert_before(before, add);
    return op_set_result(s->m, add, 0, v->type, NULL);
}

/* Does the value run of a statement read what an assignment before writes? */
static bool run_reads(Sched *s, const Facts *f, Op *stmt, const Access *w,
                      Loc loc)
{
    for (Op *op = stmt_first(stmt); op != stmt; op = op->next) {
        if (op->code != OP_mem_load)
            continue;
        const Access *r = access_compose(s->m, op->operands[0].u.access);
        const Access *at = access_compose(s->m, w);
        if (effect_root(r->base) != effect_root(at->base))
            continue;
        if (r->base != at->base)
            return !sched_fail(s, loc, "'%s' may read what is written before",
                               sched_stmt_text(s, stmt));
        if (!sched_prove(
                s, f, cond_not(s->m->exprs, access_overlap(s->m->exprs, r, at)),
                loc, "'%s' may read what is written before",
                sched_stmt_text(s, stmt)))
            return true;
    }
    return false;
}

/* x = a; x = b -> x = b. x = a; x += b -> x = a + b. x += a; x += b -> x += a
 * + b. x += a; x = b -> x = b. */
bool sched_merge_writes(Sched *s, const SchedArg *a)
{
    Op *one = a[0].at.first, *two = stmt_next(one);
    if (!is_assign(one) || !is_assign(two))
        return sched_fail(s, a[0].loc, "expected two assignments side by side");
    Facts *f = prove_facts_at(s->arena, s->m, one);
    const Access *at = one->operands[0].u.access;
    if (!same_element(s, f, at, two->operands[0].u.access))
        return sched_fail(s, a[0].loc, "they do not assign to one element");
    if (run_reads(s, f, two, at, a[0].loc))
        return false;
    if (two->code == OP_mem_store) {
        edit_erase(s->log, one);
        s->result = two->sid;
        return true;
    }
    bool fused = one->n_operands == 3 || two->n_operands == 3;
    Value *v = value_of(s, one), *w = value_of(s, two);
    for (Op *op = stmt_first(one), *next; op != one; op = next) {
        next = op->next;
        op_detach(op);
        op_insert_before(two, op);
    }
    Value *sum = sum_of(s, two, v, w);
    bool floats = !scalar_type_is_int(sum->type->elem);
    s->reassociates |= one->code == OP_mem_reduce && floats;
    s->rounds |= fused && sum != w && floats;
    two->code = one->code;
    op_resize_operands(s->m, two, 2);
    two->operands[1] = opnd_value(sum);
    sched_drop_unused(s, two);
    edit_replace(s->log, two);
    edit_erase(s->log, one);
    s->result = two->sid;
    return true;
}

/* x = a + b -> x = a; x += b, and x += a + b -> x += a; x += b. */
bool sched_split_write(Sched *s, const SchedArg *a)
{
    Op *op = a[0].at.first;
    Op *sum = is_assign(op) && op->n_operands == 2
                  ? op->operands[1].u.value->def
                  : NULL;
    if (!sum || sum->code != OP_arith_add)
        return sched_fail(s, a[0].loc, "expected an assignment of a sum");
    Facts *f = prove_facts_at(s->arena, s->m, op);
    if (run_reads(s, f, op, op->operands[0].u.access, a[0].loc))
        return false;
    CloneMap *map = clone_map_new(s->m, s->m);
    Op *second = op_new(s->m, OP_mem_reduce, op->loc, 2, 0, 0);
    second->operands[0] =
        opnd_access(clone_access(map, op->operands[0].u.access));
    Op *place = op;
    for (Op *r = stmt_first(op); r != op; r = r->next) {
        Op *copy = op_clone(map, r);
        op_insert_after(place, copy);
        place = copy;
    }
    second->operands[1] =
        opnd_value(clone_map_get(map, sum->operands[1].u.value));
    op_insert_after(place, second);
    op->operands[1] = sum->operands[0];
    s->reassociates |= op->code == OP_mem_reduce &&
                       !scalar_type_is_int(sum->results[0]->type->elem);
    sched_drop_unused(s, op);
    sched_drop_unused(s, second);
    edit_replace(s->log, op);
    Edit e = { EDIT_insert, second->sid, 0 };
    VEC_PUSH(s->log->arena, &s->log->edits, e);
    return true;
}

/* Ops of a statement's run that nothing uses any more. */
void sched_drop_unused(Sched *s, Op *stmt)
{
    for (Op *op = stmt->prev, *prev; op && !op_has(op, OPT_STMT); op = prev) {
        prev = op->prev;
        if (op->n_results == 1 && !sched_uses(s, op->results[0], NULL))
            op_detach(op);
    }
}

static bool loads_element(Sched *s, const Facts *f, const Value *v,
                          const Access *at)
{
    return v->def && v->def->code == OP_mem_load &&
           same_element(s, f, v->def->operands[0].u.access, at);
}

/* x = x + e -> x += e. */
bool sched_fold_into_reduce(Sched *s, const SchedArg *a)
{
    Op *op = a[0].at.first;
    Op *sum = op->code == OP_mem_store ? op->operands[1].u.value->def : NULL;
    Facts *f = prove_facts_at(s->arena, s->m, op);
    if (!sum || sum->code != OP_arith_add)
        return sched_fail(s, a[0].loc, "expected x = x + e");
    const Access *at = op->operands[0].u.access;
    unsigned k = loads_element(s, f, sum->operands[0].u.value, at)   ? 1
                 : loads_element(s, f, sum->operands[1].u.value, at) ? 0
                                                                     : 2;
    if (k == 2)
        return sched_fail(s, a[0].loc,
                          "the sum does not contain what is "
                          "assigned to");
    op->code = OP_mem_reduce;
    op->operands[1] = sum->operands[k];
    sched_drop_unused(s, op);
    edit_replace(s->log, op);
    return true;
}

/* ---- inline_assign ----------------------------------------------------- */

/* x = e; S(x) -> S(e): the uses of x up to its next write get e, when nothing
 * in between writes what e reads and x is not used elsewhere. */
bool sched_inline_assign(Sched *s, const SchedArg *a)
{
    Op *op = a[0].at.first;
    if (op->code != OP_mem_store)
        return sched_fail(s, a[0].loc, "'%s' is no assignment",
                          sched_stmt_text(s, op));
    const Access *at = op->operands[0].u.access;
    Value *v = at->base;
    if (!v->def || v->def->code != OP_mem_alloc)
        return sched_fail(s, a[0].loc,
                          "%s is not allocated here: others may "
                          "read it",
                          sched_value_name(s, v));
    Facts *f = prove_facts_at(s->arena, s->m, op);
    EffectVec reads = { 0 }, between = { 0 };
    Op *first, *last = NULL;
    unsigned uses = sched_uses(s, v, &first), seen = 1;
    for (Op *u = op->next; u; u = u->next) {
        if (!op_uses_value(u, v))
            continue;
        if (u->code != OP_mem_load ||
            !same_element(s, f, u->operands[0].u.access, at))
            return sched_fail(s, a[0].loc, "'%s' uses %s otherwise",
                              sched_stmt_text(s, u), sched_value_name(s, v));
        seen++;
        last = u;
    }
    if (!last || uses != seen)
        return sched_fail(s, a[0].loc, "%s is used otherwise, or not at all",
                          sched_value_name(s, v));
    effects_of(s, op, op, &reads);
    while (last && !op_has(last, OPT_STMT))
        last = last->next;
    Op *behind = stmt_prev(last);
    if (behind != op)
        effects_of(s, stmt_next(op), behind, &between);
    if (!effects_commute(s, f, &reads, &between, a[0].loc,
                         "the value may change before it is used"))
        return false;
    for (Op *u = op->next, *next; u; u = next) {
        next = u->next;
        if (!op_uses_value(u, v))
            continue;
        CloneMap *map = clone_map_new(s->m, s->m);
        for (Op *r = stmt_first(op); r != op; r = r->next)
            op_insert_before(u, op_clone(map, r));
        block_replace_value(op->parent, u->results[0],
                            clone_map_get(map, op->operands[1].u.value));
        op_detach(u);
    }
    edit_erase(s->log, op);
    s->result = 0;
    return true;
}

/* ---- lift_reduce_constant ---------------------------------------------- */

/* May the factor be read behind the loop, which may have no trip? */
static bool factor_is_there(Sched *s, const Op *loop, const Op *def,
                            const Facts *f, Loc loc)
{
    const Cond *trip = cond_cmp(s->m->exprs, CMP_lt, loop->operands[0].u.index,
                                loop->operands[1].u.index);
    return def->code != OP_mem_load || sched_implied(s, f, trip) ||
           sched_read_fits(s, f, def->operands[0].u.access, loc);
}

/* x = 0; for i: x += c * e -> x = 0; for i: x += e; x = c * x. */
bool sched_lift_reduce_constant(Sched *s, const SchedArg *a)
{
    Op *zero = a[0].at.first, *loop = stmt_next(zero), *sum;
    if (zero->code != OP_mem_store || !loop || loop->code != OP_ctl_for)
        return sched_fail(s, a[0].loc, "expected x = 0.0 and a loop behind it");
    const Op *lit = zero->operands[1].u.value->def;
    const Param *p =
        lit && lit->code == OP_arith_const ? op_attr_param(lit, "value") : NULL;
    if (!p || p->i || (p->kind == PARAM_float && p->f != 0))
        return sched_fail(s, a[0].loc, "the sum does not start from 0");
    sum = block_first_stmt(loop->blocks[0]);
    const Access *at = zero->operands[0].u.access;
    Facts *f = prove_facts_at(s->arena, s->m, loop);
    if (!sum || sum != block_last_stmt(loop->blocks[0]) ||
        sum->code != OP_mem_reduce ||
        !same_element(s, f, at, sum->operands[0].u.access))
        return sched_fail(s, a[0].loc, "the loop does more than add to it");
    Op *mul = sum->n_operands == 3 ? NULL : sum->operands[1].u.value->def;
    if (!mul && sum->n_operands != 3)
        return sched_fail(s, a[0].loc, "what is added is no product");
    if (mul && mul->code != OP_arith_mul)
        return sched_fail(s, a[0].loc, "what is added is no product");
    Value *c = mul ? mul->operands[0].u.value : sum->operands[1].u.value;
    Value *e = mul ? mul->operands[1].u.value : sum->operands[2].u.value;
    Op *def = c->def;
    bool same = def && (def->code == OP_arith_const ||
                        (def->code == OP_mem_load &&
                         !op_uses_var(def, sched_loop_var(loop)) &&
                         effect_root(def->operands[0].u.access->base) !=
                             effect_root(at->base)));
    if (!same)
        return sched_fail(s, a[0].loc,
                          "the first factor is no literal or "
                          "element that stays the same");
    if (!factor_is_there(s, loop, def, f, a[0].loc) ||
        run_reads(s, prove_facts_at(s->arena, s->m, sum), sum, at, a[0].loc))
        return false;
    Block *run = block_new(s->m, NULL);
    CloneMap *map = clone_map_new(s->m, s->m);
    Op *factor = op_clone(map, def);
    Op *load = op_new(s->m, OP_mem_load, sum->loc, 1, 1, 0);
    load->operands[0] = opnd_access(clone_access(map, at));
    Value *x = op_set_result(s->m, load, 0, c->type, NULL);
    Op *times = op_new(s->m, OP_arith_mul, sum->loc, 2, 1, 0);
    times->operands[0] = opnd_value(factor->results[0]);
    times->operands[1] = opnd_value(x);
    Value *product = op_set_result(s->m, times, 0, c->type, NULL);
    Op *store = op_new(s->m, OP_mem_store, sum->loc, 2, 0, 0);
    store->operands[0] = opnd_access(clone_access(map, at));
    store->operands[1] = opnd_value(product);
    block_append(run, factor);
    block_append(run, load);
    block_append(run, times);
    block_append(run, store);
    op_resize_operands(s->m, sum, 2);
    sum->operands[1] = opnd_value(e);
    sched_drop_unused(s, sum);
    edit_insert_after(s->log, loop, store);
    s->reassociates |= !scalar_type_is_int(c->type->elem);
    return true;
}
