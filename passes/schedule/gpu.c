/* Annotations: loop modes, device and warps blocks, synchronisation, barriers,
 * rings. None of it changes what a program computes, so nothing is to be
 * proved; whether it is right on a GPU is for check-par and sync-check. */
#include "passes/schedule/ops.h"

#include "ir/cache_hint.h"
#include "ir/lib_entry.h"

#include <stdlib.h>

/* ---- loop modes -------------------------------------------------------- */

static bool set_unit(Sched *s, Op *loop, const SchedArg *a)
{
    Build b;
    AstExpr *e = exo_syntax_expr(s->ctx, s->arena, a->loc, a->s, strlen(a->s));
    if (!e)
        return false;
    build_init(&b, s->m, s->m->lib, s->arena);
    const UnitRef *u = build_unit(&b, e);
    if (u)
        op_set_attr(s->m, loop,
                    (Attr){ .key = "unit", .kind = ATTR_unit, .unit = u });
    return u != NULL;
}

/* A number of at least `least`, or None, as an attribute. */
static bool set_count(Sched *s, Op *loop, const char *key, const SchedArg *a,
                      long least)
{
    char *end;
    long n = strtol(a->s, &end, 10);
    if (!strcmp(a->s, "None")) {
        op_remove_attr(loop, key);
        return true;
    }
    if (end == a->s || *end || n < least || n > INT32_MAX)
        return sched_fail(s, a->loc, "%s is None%s or a positive number", key,
                          least ? "" : ", 0");
    op_set_int(s->m, loop, key, n);
    return true;
}

static bool mode_fields(Sched *s, Op *loop, const SchedArg *unit,
                        const SchedArg *unroll, const SchedArg *group)
{
    const char *mode = op_attr_str(loop, "mode", "seq");
    if (unit->given && strcmp(mode, "threads") != 0)
        return sched_fail(s, unit->loc, "a loop of mode %s has no unit", mode);
    if (unroll->given && strcmp(mode, "seq") != 0)
        return sched_fail(s, unroll->loc,
                          "a loop of mode %s has no pragma_unroll", mode);
    if (group->given && strcmp(mode, "tasks") != 0)
        return sched_fail(s, group->loc, "a loop of mode %s has no group",
                          mode);
    edit_replace(s->log, loop);
    return (!unit->given || set_unit(s, loop, unit)) &&
           (!unroll->given || set_count(s, loop, "pragma_unroll", unroll, 0)) &&
           (!group->given || set_count(s, loop, "group", group, 1));
}

static void clear_mode(Op *loop)
{
    op_remove_attr(loop, "mode");
    op_remove_attr(loop, "unit");
    op_remove_attr(loop, "group");
}

bool sched_parallelize_loop(Sched *s, const SchedArg *a)
{
    Op *loop = a[0].at.first;
    clear_mode(loop);
    op_remove_attr(loop, "pragma_unroll");
    op_set_str(s->m, loop, "mode", "par");
    edit_replace(s->log, loop);
    return true;
}

bool sched_set_loop_mode(Sched *s, const SchedArg *a)
{
    static const char *const words[] = { "seq", "par", "cuda_tasks",
                                         "cuda_threads" };
    static const char *const modes[] = { NULL, "par", "tasks", "threads" };
    Op *loop = a[0].at.first;
    SchedArg unit = a[2];
    unsigned i = 0;
    while (i < 4 && strcmp(words[i], a[1].s) != 0)
        i++;
    if (i == 4)
        return sched_fail(s, a[1].loc,
                          "a mode is seq, par, cuda_tasks or "
                          "cuda_threads, found '%s'",
                          a[1].s);
    clear_mode(loop);
    if (i > 0)
        op_remove_attr(loop, "pragma_unroll");
    if (modes[i])
        op_set_str(s->m, loop, "mode", modes[i]);
    if (i == 3 && !unit.given) {
        unit.given = true;
        unit.s = "cuda_thread";
    }
    return mode_fields(s, loop, &unit, &a[3], &a[4]);
}

bool sched_update_loop_mode(Sched *s, const SchedArg *a)
{
    return mode_fields(s, a[0].at.first, &a[1], &a[2], &a[3]);
}

/* ---- blocks ------------------------------------------------------------ */

bool sched_wrap_with_context(Sched *s, const SchedArg *a)
{
    Op *first = a[0].at.first, *last = a[0].at.last;
    if (sched_escapes(s, first, last))
        return sched_fail(s, a[0].loc,
                          "what the block defines is used behind "
                          "it");
    const char *text = arena_printf(s->arena, "with %s:\n    pass\n", a[1].s);
    Op *with = sched_stmt(s, first, a[1].loc, text);
    if (!with)
        return false;
    op_detach(with);
    op_detach(with->blocks[0]->first);
    edit_wrap(s->log, first, last, with);
    s->result = with->sid;
    return true;
}

/* ---- statements at a gap ----------------------------------------------- */

/* Builds a statement in the scope of a gap and puts it there. */
static bool insert_text(Sched *s, const SchedArg *gap, Loc loc,
                        const char *text)
{
    Op *mark = op_new(s->m, OP_ctl_pass, s->loc, 0, 0, 0);
    if (gap->at.after)
        op_insert_after(gap->at.last, mark);
    else
        op_insert_before(stmt_first(gap->at.first), mark);
    Op *op = sched_stmt(s, mark, loc, text);
    if (op) {
        edit_insert_before(s->log, mark, op);
        s->result = op->sid;
    }
    op_detach(mark);
    return op != NULL;
}

bool sched_insert_fence(Sched *s, const SchedArg *a)
{
    return insert_text(s, &a[0], a[1].loc,
                       arena_printf(s->arena, "Fence(%s, %s)", a[1].s, a[2].s));
}

bool sched_insert_arrive(Sched *s, const SchedArg *a)
{
    return insert_text(s, &a[0], a[2].loc,
                       arena_printf(s->arena, "Arrive(%s, %lld) >> %s", a[1].s,
                                    (long long)a[3].i, a[2].s));
}

bool sched_insert_await(Sched *s, const SchedArg *a)
{
    return insert_text(
        s, &a[0], a[1].loc,
        arena_printf(s->arena, "Await(%s, %s, %s)", a[1].s, a[2].s, a[3].s));
}

bool sched_insert_barrier_alloc(Sched *s, const SchedArg *a)
{
    if (strncmp(a[2].s, "barrier", 7) != 0)
        return sched_fail(s, a[2].loc,
                          "expected a barrier type, as "
                          "barrier[2] @ CudaMbarrier");
    return insert_text(s, &a[0], a[2].loc,
                       arena_printf(s->arena, "%s: %s", a[1].s, a[2].s));
}

bool sched_insert_pass(Sched *s, const SchedArg *a)
{
    return insert_text(s, &a[0], a[0].loc, "pass");
}

/* May the call be made: are sizes positive and windows within bounds? */
static bool noop_fits(Sched *s, Op *call, const Op *callee, Loc loc)
{
    ExprCtx *x = s->m->exprs;
    Facts *f = prove_facts_at(s->arena, s->m, call);
    for (unsigned i = 0; i < call->n_operands; i++) {
        const Operand *o = &call->operands[i];
        VarId v = callee->blocks[0]->args[i].var;
        if (o->kind == OPND_access &&
            !sched_access_fits(s, f, o->u.access, loc))
            return false;
        if (o->kind == OPND_index && var_get(x, v)->kind == VAR_size &&
            !sched_prove(s, f,
                         cond_cmp(x, CMP_ge, o->u.index, affine_const(x, 1)),
                         loc, "the size %s may be less than 1",
                         sched_index_text(s, o->u.index)))
            return false;
    }
    return true;
}

/* A call of a procedure that does nothing. */
bool sched_insert_noop_call(Sched *s, const SchedArg *a)
{
    if (!insert_text(s, &a[0], a[1].loc, a[1].s))
        return false;
    Op *call = NULL;
    for (Op *op = block_first_stmt(a[0].at.first->parent); op;
         op = stmt_next(op))
        if (op->sid == s->result)
            call = op;
    const Op *callee =
        call && call->code == OP_ctl_call
            ? module_symbol(s->m, op_attr_str(call, "callee", ""))
            : NULL;
    const Op *body = callee ? callee->blocks[0]->first : NULL;
    while (body && body->code == OP_ctl_pass)
        body = body->next;
    if (!callee || body)
        return sched_fail(s, a[1].loc,
                          "'%s' is no call of a procedure whose body is pass "
                          "alone",
                          a[1].s);
    return noop_fits(s, call, callee, a[1].loc);
}

bool sched_delete_pass(Sched *s, const SchedArg *a)
{
    Op *op = a[0].at.first;
    if (op->code != OP_ctl_pass)
        return sched_fail(s, a[0].loc, "expected a pass");
    if (!stmt_prev(op) && !stmt_next(op))
        return sched_fail(s, a[0].loc, "the pass stands alone in its block");
    edit_erase(s->log, op);
    s->result = 0;
    return true;
}

/* ---- trailing barriers, rings ------------------------------------------ */

bool sched_set_trailing_barrier_expr(Sched *s, const SchedArg *a)
{
    Op *call = a[0].at.first;
    Build b;
    if (call->code != OP_par_instr)
        return sched_fail(s, a[0].loc, "'%s' is no call of an instruction",
                          sched_stmt_text(s, call));
    bool had = op_attr_int(call, "trailing", 0) != 0;
    unsigned n = call->n_operands - had;
    edit_replace(s->log, call);
    op_remove_attr(call, "trailing");
    op_resize_operands(s->m, call, n);
    if (!strcmp(a[1].s, "None"))
        return true;
    AstExpr *e =
        exo_syntax_expr(s->ctx, s->arena, a[1].loc, a[1].s, strlen(a[1].s));
    if (!e || !sched_scope(s, call, false, &b))
        return false;
    Access *bar = build_barrier(&b, e, "a trailing barrier");
    if (!bar)
        return false;
    op_resize_operands(s->m, call, n + 1);
    call->operands[n] = opnd_access(bar);
    op_set_int(s->m, call, "trailing", 1);
    return true;
}

/* The call's template arguments but cache_hint, with that for `hint` unless it
 * is none. */
static Param with_hint(Sched *s, const Op *call, const char *hint)
{
    const Param *old = op_attr_param(call, "targs");
    unsigned n_old = old ? old->n : 0, n = 0;
    Param *items = ARENA_ARRAY(s->arena, Param, n_old + 1);
    for (unsigned i = 0; i < n_old; i++)
        if (strcmp(old->items[i].name, "cache_hint") != 0)
            items[n++] = old->items[i];
    if (strcmp(hint, CACHE_HINT_NONE) != 0)
        items[n++] = (Param){ .kind = PARAM_str,
                              .name = ctx_intern(s->ctx, "cache_hint"),
                              .s = ctx_intern(s->ctx, hint) };
    return (Param){ .kind = PARAM_tuple, .n = n, .items = items };
}

bool sched_set_cache_hint(Sched *s, const SchedArg *a)
{
    Op *call = a[0].at.first;
    const Instr *in = call->code == OP_par_instr ? op_instr(s->m, call) : NULL;
    if (!in || !param_find(in->n_targs, in->targs, "cache_hint"))
        return sched_fail(s, a[0].loc,
                          "'%s' is no copy that takes a cache hint",
                          sched_stmt_text(s, call));
    Param targs = with_hint(s, call, a[1].s);
    if (!instr_instance(s->m->lib, a[1].loc, op_attr_str(call, "callee", ""),
                        targs.n, targs.items))
        return false;
    edit_replace(s->log, call);
    op_set_param(s->m, call, "targs", &targs);
    return true;
}

/* depth 0 takes the annotation away. */
bool sched_set_dim_size_annotation(Sched *s, const SchedArg *a)
{
    Value *v = a[0].at.first->results[0];
    if (a[1].i < 0 || a[1].i >= (int64_t)v->type->rank)
        return sched_fail(s, a[1].loc, "'%s' has no dimension %lld",
                          sched_value_name(s, v), (long long)a[1].i);
    if (a[2].i < 0)
        return sched_fail(s, a[2].loc, "a depth is positive, or 0 for none");
    v->ring_dim = a[2].i ? (int)a[1].i : -1;
    v->ring_depth = a[2].i;
    edit_replace(s->log, a[0].at.first);
    return true;
}

bool sched_set_ring_guarded_by(Sched *s, const SchedArg *a)
{
    Value *v = a[0].at.first->results[0];
    Build b;
    edit_replace(s->log, a[0].at.first);
    v->ring_guard = NULL;
    if (!strcmp(a[1].s, "None"))
        return true;
    if (!sched_scope(s, a[0].at.first, false, &b))
        return false;
    Binding *t = build_find(&b, ctx_intern(s->ctx, a[1].s));
    if (!t || t->kind != BIND_value || t->value->type->kind != TK_barrier)
        return sched_fail(s, a[1].loc,
                          "no barrier '%s' is known where '%s' is allocated",
                          a[1].s, sched_value_name(s, v));
    v->ring_guard = t->value;
    return true;
}

/* ---- add_if ------------------------------------------------------------ */

/* Under a condition may stand what does nothing, and what runs anyway. */
bool sched_add_if(Sched *s, const SchedArg *a)
{
    Op *first = a[0].at.first, *last = a[0].at.last;
    const Cond *c = sched_cond(s, first, a[1].loc, a[1].s);
    EffectVec e = { 0 };
    if (!c)
        return false;
    if (sched_escapes(s, first, last))
        return sched_fail(s, a[0].loc,
                          "what the block defines is used behind "
                          "it");
    effects_of(s, first, last, &e);
    const Effect *does = NULL;
    for (size_t i = 0; i < e.len; i++)
        if (e.data[i].flags & ACC_WRITE)
            does = &e.data[i];
    Facts *f = prove_facts_at(s->arena, s->m, first);
    if (does &&
        !sched_prove(s, f, c, a[1].loc,
                     "'%s' writes, and the condition %s does not "
                     "always hold",
                     sched_stmt_text(s, does->op), sched_cond_text(s, c)))
        return false;
    Op *guard = op_new(s->m, OP_ctl_if, first->loc, 1, 0, 1);
    guard->operands[0] = opnd_cond(c);
    edit_wrap(s->log, first, last, guard);
    s->result = guard->sid;
    return true;
}
