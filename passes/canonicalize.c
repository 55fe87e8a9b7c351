/* canonicalize: one walk in the order of the text that simplifies each op.
 *
 *     ctl.for %i in [3, 4) { S(%i) }          S(3)
 *     ctl.if 0 < 1 { S } else { T }           S
 *     ctl.if a { ctl.if b { S } }             ctl.if a and b { S }
 *     ctl.if a { }                            -
 *     arith.add 1.0, 2.0                      arith.const {value = 3.0}
 *
 * What was replaced so far is in a substitution that every op met later goes
 * through, so that index expressions are made again with what is known of
 * their variables. Loops over threads and tasks keep their shape, whatever
 * their trip count: it says who executes. Functions whose last digits depend
 * on a C library (sin, exp, log and what is made of them) are not folded. */
#include "passes/pass.h"

#include "ir/values.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct Canon {
    PassCtx *pc;
    Module *m;
    CloneMap *map;
    Sem sem;
    bool overflow;
} Canon;

static void canon_block(Canon *c, Block *b);

static void replace_value(Canon *c, const Value *from, Value *to)
{
    clone_map_value(c->map, from, to);
}

/* ---- arith --------------------------------------------------------------- */

static bool can_fold(OpCode code)
{
    return code != OP_arith_const && !(op_info(code)->traits & OPT_APPROX) &&
           !strcmp(op_info(code)->dialect, "arith");
}

/* The op's operands when all are constants. */
static bool constant_operands(const Op *op, double out[4])
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Op *def = op->operands[i].u.value->def;
        if (i >= 4 || !def || def->code != OP_arith_const)
            return false;
        out[i] = value_const(def);
    }
    return op->n_operands > 0;
}

static void make_constant(Canon *c, Op *op, double x)
{
    bool is_int = scalar_type_is_int(op->results[0]->type->elem);
    op->code = OP_arith_const;
    op->n_operands = 0;
    op->n_attrs = 0;
    Param p = { .kind = is_int ? PARAM_int : PARAM_float,
                .i = is_int ? (int64_t)x : 0,
                .f = is_int ? 0 : x };
    op_set_param(c->m, op, "value", &p);
    pass_count(c->pc, "ops folded", 1);
}

static void canon_arith(Canon *c, Op *op)
{
    double operands[4];
    const Type *t = op->results[0]->type;
    if (op->code == OP_arith_cast && op->operands[0].u.value->type == t) {
        replace_value(c, op->results[0], op->operands[0].u.value);
        op_detach(op);
        return;
    }
    if (!constant_operands(op, operands))
        return;
    double x = value_arith(&c->sem, op, operands);
    if (x == x)
        make_constant(c, op, x);
}

/* ---- ifs ----------------------------------------------------------------- */

static bool block_is_empty(const Block *b)
{
    for (const Op *op = b->first; op; op = op->next)
        if (op->code != OP_ctl_pass)
            return false;
    return true;
}

/* Puts a block's ops in the op's place; its yield gives the results. */
static void unwrap(Canon *c, Op *op, Block *b)
{
    Op *yield = block_yield(b);
    for (unsigned i = 0; yield && i < op->n_results; i++)
        replace_value(c, op->results[i], yield->operands[i].u.value);
    if (yield)
        op_detach(yield);
    block_splice_before(op, b);
    op_detach(op);
}

static void decide_if(Canon *c, Op *op, bool holds)
{
    pass_count(c->pc, "ifs decided", 1);
    if (!holds && op->n_blocks == 1) {
        op_detach(op);
        return;
    }
    Block *b = op->blocks[holds ? 0 : 1];
    canon_block(c, b);
    unwrap(c, op, b);
}

/* The only op of a block, when it is an if without an else or results. */
static Op *inner_if(const Block *b)
{
    Op *op = b->first;
    return op && op == b->last && op->code == OP_ctl_if && op->n_blocks == 1 &&
                   op->n_results == 0
               ? op
               : NULL;
}

static void simplify_if(Canon *c, Op *op)
{
    ExprCtx *x = c->m->exprs;
    if (op->n_results)
        return;
    if (op->n_blocks == 2 && block_is_empty(op->blocks[1]))
        op->n_blocks = 1;
    if (op->n_blocks == 1 && block_is_empty(op->blocks[0])) {
        op_detach(op);
        pass_count(c->pc, "empty ifs erased", 1);
        return;
    }
    if (op->n_blocks == 2 && block_is_empty(op->blocks[0])) {
        const Cond *no = cond_not(x, op->operands[0].u.cond);
        if (no) {
            op->operands[0] = opnd_cond(no);
            op->blocks[0] = op->blocks[1];
            op->n_blocks = 1;
        }
    }
    Op *inner = op->n_blocks == 1 ? inner_if(op->blocks[0]) : NULL;
    const Cond *both =
        inner ? cond_and(x, op->operands[0].u.cond, inner->operands[0].u.cond)
              : NULL;
    if (both) {
        op->operands[0] = opnd_cond(both);
        block_splice_before(inner, inner->blocks[0]);
        op_detach(inner);
        pass_count(c->pc, "nested ifs merged", 1);
    }
}

static void canon_if(Canon *c, Op *op)
{
    Decided d = cond_decide(c->m->exprs, op->operands[0].u.cond);
    if (d != DECIDED_open) {
        decide_if(c, op, d == DECIDED_yes);
        return;
    }
    for (unsigned i = 0; i < op->n_blocks; i++)
        canon_block(c, op->blocks[i]);
    simplify_if(c, op);
}

/* ---- loops --------------------------------------------------------------- */

/* Does the loop only say how often, not who? */
static bool is_plain(const Op *op)
{
    const char *mode = op_attr_str(op, "mode", "seq");
    return !strcmp(mode, "seq") || !strcmp(mode, "par");
}

static void erase_loop(Canon *c, Op *op)
{
    for (unsigned i = 0; i < op->n_results; i++)
        replace_value(c, op->results[i], op->operands[2 + i].u.value);
    op_detach(op);
    pass_count(c->pc, "loops unwrapped", 1);
}

static void unwrap_single(Canon *c, Op *op)
{
    Block *b = op->blocks[0];
    clone_map_index(c->map, b->args[0].var, op->operands[0].u.index);
    for (unsigned i = 1; i < b->n_args; i++)
        replace_value(c, b->args[i].value, op->operands[1 + i].u.value);
    canon_block(c, b);
    unwrap(c, op, b);
    pass_count(c->pc, "loops unwrapped", 1);
}

static void refresh_bounds(Canon *c, VarId v, const Op *op, unsigned i)
{
    const Affine *lo = op->operands[i].u.index;
    const Affine *hi = op->operands[i + 1].u.index;
    const Var *var = var_get(c->m->exprs, v);
    if (var->lo != lo || var->hi != hi)
        var_set_bounds(c->m->exprs, v, lo, hi);
}

static void canon_for(Canon *c, Op *op)
{
    ExprCtx *x = c->m->exprs;
    const Affine *trip =
        affine_sub(x, op->operands[1].u.index, op->operands[0].u.index);
    int64_t n;
    if (trip && is_plain(op) && affine_max(x, trip, &n) && n <= 0) {
        erase_loop(c, op);
        return;
    }
    if (trip && is_plain(op) && affine_is_const(trip, &n) && n == 1) {
        unwrap_single(c, op);
        return;
    }
    refresh_bounds(c, op->blocks[0]->args[0].var, op, 0);
    canon_block(c, op->blocks[0]);
    if (is_plain(op) && !op->n_results && block_is_empty(op->blocks[0])) {
        op_detach(op);
        pass_count(c->pc, "loops unwrapped", 1);
    }
}

/* ---- the walk ------------------------------------------------------------ */

static void canon_values(Canon *c, Op *op)
{
    for (unsigned i = 0; i < op->n_results; i++)
        c->overflow |= !value_substitute(c->map, c->m, op->results[i]);
    for (unsigned i = 0; i < op->n_blocks; i++)
        for (unsigned k = 0; k < op->blocks[i]->n_args; k++) {
            Value *v = op->blocks[i]->args[k].value;
            if (v)
                c->overflow |= !value_substitute(c->map, c->m, v);
        }
}

/* A condition that an op other than an if takes. */
static void decide_operands(Canon *c, Op *op)
{
    ExprCtx *x = c->m->exprs;
    for (unsigned i = 0; i < op->n_operands; i++) {
        Operand *o = &op->operands[i];
        if (o->kind != OPND_cond)
            continue;
        Decided d = cond_decide(x, o->u.cond);
        if (d != DECIDED_open)
            o->u.cond = cond_bool(x, d == DECIDED_yes);
    }
}

static void canon_op(Canon *c, Op *op)
{
    if (!op_substitute(c->map, c->m, op)) {
        c->overflow = true;
        return;
    }
    canon_values(c, op);
    if (op->code == OP_ctl_if) {
        canon_if(c, op);
    } else if (op->code == OP_ctl_for) {
        canon_for(c, op);
    } else if (can_fold(op->code)) {
        canon_arith(c, op);
    } else {
        if (op->code != OP_ctl_assert && op->code != OP_host_check)
            decide_operands(c, op);
        for (unsigned i = 0; i < op->n_blocks; i++)
            canon_block(c, op->blocks[i]);
    }
}

/* A ctl.pass beside other ops says nothing. */
static void drop_passes(Block *b)
{
    for (Op *op = b->first, *next; op; op = next) {
        next = op->next;
        if (op->code == OP_ctl_pass && b->first != b->last)
            op_detach(op);
    }
}

static void canon_block(Canon *c, Block *b)
{
    for (Op *op = b->first, *next; op && !c->overflow; op = next) {
        next = op->next;
        canon_op(c, op);
    }
    drop_passes(b);
}

bool pass_canonicalize(PassCtx *pc, Module *m)
{
    Canon c = {
        .pc = pc, .m = m, .map = clone_map_new(m, m), .sem = values_sem()
    };
    canon_block(&c, m->body);
    if (c.overflow)
        diag_error(pc->ctx, (Loc){ 0 }, "overflow",
                   "canonicalize: an index expression passes 64 bits");
    return !c.overflow;
}
