/* Calls and synchronisation: Fence, Arrive, Await, instructions, procedures. */
#include "ir/exo_build.h"

#include "ir/lib_entry.h"

#include <string.h>

/* A statement `call >> barrier >> ..` taken apart. */
typedef struct Call {
    const AstExpr *call;
    const char *callee;
    Loc loc;
    unsigned n_args, n_barriers;
    const AstExpr *const *args;
    const AstExpr **barriers;
} Call;

/* ---- synchronisation --------------------------------------------------- */

/* A timeline's name without `_instr`, when that is a synchronisation timeline.
 */
static const char *sync_hint(Build *b, const char *name)
{
    size_t n = strlen(name);
    if (n > 6 && strcmp(name + n - 6, "_instr") == 0) {
        const char *stem = arena_strndup(b->arena, name, n - 6);
        if (sync_timeline_find(stem))
            return stem;
    }
    return NULL;
}

static const char *timeline(Build *b, const Call *c, unsigned i)
{
    const AstExpr *e = c->args[i];
    if (e->kind == AST_name && sync_timeline_find(e->name))
        return e->name;
    if (e->kind != AST_name) {
        build_error(
            b, e->loc, "timeline",
            "%s: expected a synchronisation "
            "timeline, found %s%s%s",
            c->callee, e->kind == AST_str ? "the string '" : "an expression",
            e->kind == AST_str ? e->name : "", e->kind == AST_str ? "'" : "");
        return NULL;
    }
    const char *hint = lib_unsupported(e->name) ? NULL : sync_hint(b, e->name);
    if (hint)
        build_error(b, e->loc, "timeline",
                    "%s: '%s' is an instruction "
                    "timeline, did you mean %s?",
                    c->callee, e->name, hint);
    else
        build_error(
            b, e->loc, "timeline", "%s: %s", c->callee,
            lib_unknown_text(b->ctx, "synchronisation timeline", e->name));
    return NULL;
}

/* Checks the number of arguments, and that none is a keyword. */
static bool sync_args(Build *b, const Call *c, unsigned least, unsigned most)
{
    for (unsigned i = 0; i < c->n_args; i++)
        if (c->args[i]->kind == AST_keyword) {
            build_error(b, c->args[i]->loc, "type",
                        "%s takes no keyword "
                        "argument, found '%s'",
                        c->callee, c->args[i]->name);
            return false;
        }
    if (c->n_args >= least && c->n_args <= most)
        return true;
    const char *range = least == most
                            ? arena_printf(b->arena, "%u", least)
                            : arena_printf(b->arena, "%u or %u", least, most);
    build_error(b, c->loc, "type", "%s expects %s arguments, found %u",
                c->callee, range, c->n_args);
    return false;
}

static bool no_barriers(Build *b, const Call *c)
{
    if (!c->n_barriers)
        return true;
    build_error(b, c->barriers[0]->loc, "syntax",
                "%s does not take '>>' and a "
                "barrier: only Arrive and calls of instructions do",
                c->callee);
    return false;
}

static Op *build_fence(Build *b, const Call *c)
{
    if (!no_barriers(b, c) || !sync_args(b, c, 2, 2))
        return NULL;
    const char *first = timeline(b, c, 0), *second = timeline(b, c, 1);
    if (!first || !second)
        return NULL;
    Op *op = build_op(b, OP_par_fence, c->loc, 0, 0, 0);
    op_set_str(b->m, op, "first", first);
    op_set_str(b->m, op, "second", second);
    return op;
}

static Op *build_arrive(Build *b, const Call *c)
{
    if (!sync_args(b, c, 1, 2))
        return NULL;
    const char *first = timeline(b, c, 0);
    if (!first)
        return NULL;
    if (c->n_args == 2 && (c->args[1]->kind != AST_int || c->args[1]->i != 1)) {
        const AstExpr *e = c->args[1];
        build_error(
            b, e->loc, "barrier", "Need N = 1: Arrive expects N=1, found %s",
            e->kind == AST_int ? arena_printf(b->arena, "%lld", (long long)e->i)
                               : "an expression");
        return NULL;
    }
    Access **at = ARENA_ARRAY(b->arena, Access *, c->n_barriers);
    bool ok = true;
    for (unsigned i = 0; i < c->n_barriers; i++) {
        at[i] = build_barrier(b, c->barriers[i], "Arrive");
        ok &= at[i] != NULL;
    }
    if (!ok)
        return NULL;
    Op *op = build_op(b, OP_par_arrive, c->loc, c->n_barriers, 0, 0);
    op_set_str(b->m, op, "first", first);
    op_set_int(b->m, op, "n", 1);
    for (unsigned i = 0; i < c->n_barriers; i++)
        op->operands[i] = opnd_access(at[i]);
    return op;
}

/* The count of Await: an int literal, `~n` for -n - 1, or negative. */
static bool await_count(Build *b, const AstExpr *e, int64_t *n)
{
    const AstExpr *a = e->kind == AST_unary ? e->args[0] : e;
    if (a->kind == AST_int && (e == a || e->op == '~' || e->op == '-')) {
        *n = e == a ? a->i : e->op == '~' ? ~a->i : -a->i;
        return true;
    }
    const char *found = a->kind == AST_float
                            ? arena_printf(b->arena, "%g", a->f)
                        : a->kind == AST_name ? a->name
                                              : "an expression";
    build_error(b, e->loc, "barrier",
                "Await expects an int literal N as its "
                "third argument, found %s",
                found);
    return false;
}

static Op *build_await(Build *b, const Call *c)
{
    int64_t n;
    if (!no_barriers(b, c) || !sync_args(b, c, 3, 3))
        return NULL;
    Access *at = build_barrier(b, c->args[0], "Await");
    const char *second = timeline(b, c, 1);
    if (!await_count(b, c->args[2], &n) || !at || !second)
        return NULL;
    Op *op = build_op(b, OP_par_await, c->loc, 1, 0, 0);
    op->operands[0] = opnd_access(at);
    op_set_str(b->m, op, "second", second);
    op_set_int(b->m, op, "n", n);
    return op;
}

/* ---- arguments --------------------------------------------------------- */

static bool names_data(Build *b, const AstExpr *e)
{
    if (e->kind == AST_index)
        e = e->args[0];
    Binding *t = e->kind == AST_name ? build_find(b, e->name) : NULL;
    return t && t->kind == BIND_value;
}

static bool build_argument(Build *b, const AstExpr *e, Operand *out)
{
    if (e->kind == AST_binary && e->op == '@') {
        build_error(b, e->loc, "memory",
                    "Can only create SpecialWindow as part "
                    "of WindowStmt, found one as an argument");
        return false;
    }
    if (e->kind == AST_index || names_data(b, e)) {
        Access *a = build_access(b, e, true);
        *out = opnd_access(a);
        return a != NULL;
    }
    if (build_is_cond(b, e)) {
        const Cond *c = build_cond(b, e);
        *out = opnd_cond(c);
        return c != NULL;
    }
    if (e->kind == AST_float || build_data_type(b, e) != TY_none) {
        Diag *d = build_error(b, e->loc, "type",
                              "an argument that is data "
                              "must be a variable, an element or a window");
        diag_fix(b->ctx, d, "assign the value to a variable first");
        return false;
    }
    const Affine *i = build_index(b, e);
    *out = opnd_index(i);
    return i != NULL;
}

static bool build_arguments(Build *b, unsigned n, const AstExpr *const *args,
                            Operand *out)
{
    bool ok = true;
    for (unsigned i = 0; i < n; i++)
        ok &= build_argument(b, args[i], &out[i]);
    return ok;
}

static bool argument_count(Build *b, const Call *c, unsigned n, unsigned want)
{
    if (n == want)
        return true;
    build_error(b, c->loc, "type", "%s expects %u arguments, found %u",
                c->callee, want, n);
    return false;
}

/* ---- instructions ------------------------------------------------------ */

/* The template arguments name=literal behind the first n arguments. */
static bool template_args(Build *b, const Call *c, unsigned n, Param *out)
{
    for (unsigned i = n; i < c->n_args; i++) {
        const AstExpr *e = c->args[i];
        if (e->kind != AST_keyword) {
            build_error(b, e->loc, "syntax",
                        "%s: a positional argument stands "
                        "behind name=value",
                        c->callee);
            return false;
        }
        if (!build_const(b, e->args[0], &out[i - n]))
            return false;
        out[i - n].name = e->name;
        for (unsigned k = n; k < i; k++)
            if (c->args[k]->name == e->name) {
                build_error(b, e->loc, "instr",
                            "%s: argument '%s' is given "
                            "twice",
                            c->callee, e->name);
                return false;
            }
    }
    return true;
}

/* Do kind and rank of each argument suit the parameter? */
static bool suit_params(Build *b, const Call *c, const Instr *in,
                        const Operand *ops)
{
    for (unsigned i = 0; i < in->n_params; i++) {
        const InstrParam *p = &in->params[i];
        if (p->is_index != (ops[i].kind == OPND_index)) {
            build_error(b, c->args[i]->loc, "type", "%s: expected %s for '%s'",
                        c->callee, p->is_index ? "an index expression" : "data",
                        p->name);
            return false;
        }
    }
    return true;
}

static Op *build_instr(Build *b, const Call *c)
{
    unsigned n = 0;
    while (n < c->n_args && c->args[n]->kind != AST_keyword)
        n++;
    unsigned n_targs = c->n_args - n;
    Param *targs = ARENA_ARRAY(b->arena, Param, n_targs);
    Operand *ops = ARENA_ARRAY(b->arena, Operand, n + 1);
    if (!template_args(b, c, n, targs) || !build_arguments(b, n, c->args, ops))
        return NULL;
    if (b->lib) {
        const Instr *in =
            instr_instance(b->lib, c->loc, c->callee, n_targs, targs);
        if (!in) {
            b->failed = true;
            return NULL;
        }
        if (!argument_count(b, c, n, in->n_params) ||
            !suit_params(b, c, in, ops))
            return NULL;
    }
    if (c->n_barriers > 1) {
        build_error(b, c->barriers[1]->loc, "syntax",
                    "a call cannot have more "
                    "than 1 trailing barrier expr");
        return NULL;
    }
    if (c->n_barriers) {
        Access *a = build_barrier(b, c->barriers[0], "a trailing barrier");
        if (!a)
            return NULL;
        ops[n] = opnd_access(a);
    }
    Op *op = build_op(b, OP_par_instr, c->loc, n + c->n_barriers, 0, 0);
    memcpy(op->operands, ops, (n + c->n_barriers) * sizeof *ops);
    op_set_str(b->m, op, "callee", c->callee);
    if (n_targs)
        op_set_param(
            b->m, op, "targs",
            &(Param){ .kind = PARAM_tuple, .n = n_targs, .items = targs });
    if (c->n_barriers)
        op_set_int(b->m, op, "trailing", 1);
    return op;
}

/* ---- procedures -------------------------------------------------------- */

static bool suit_callee(Build *b, const Call *c, const Op *callee,
                        const Operand *ops)
{
    const Block *body = callee->blocks[0];
    for (unsigned i = 0; i < body->n_args; i++) {
        const BlockArg *a = &body->args[i];
        bool data = ops[i].kind == OPND_access;
        bool truth = ops[i].kind == OPND_cond;
        bool want_bool = !a->value && var_get(b->x, a->var)->kind == VAR_bool;
        if (data != (a->value != NULL) || (!data && truth != want_bool)) {
            build_error(b, c->args[i]->loc, "type",
                        "%s: argument %u: expected "
                        "%s",
                        c->callee, i + 1,
                        a->value    ? "data"
                        : want_bool ? "a condition"
                                    : "an index "
                                      "expression");
            return false;
        }
    }
    return true;
}

static Op *build_call(Build *b, const Call *c, Op *callee)
{
    Operand *ops = ARENA_ARRAY(b->arena, Operand, c->n_args);
    for (unsigned i = 0; i < c->n_args; i++)
        if (c->args[i]->kind == AST_keyword) {
            build_error(b, c->args[i]->loc, "type",
                        "%s is a procedure: it "
                        "takes no keyword argument, found '%s'",
                        c->callee, c->args[i]->name);
            return NULL;
        }
    if (c->n_barriers) {
        build_error(b, c->barriers[0]->loc, "syntax",
                    "%s is a procedure and "
                    "does not take trailing barrier expression '>>'",
                    c->callee);
        return NULL;
    }
    if (!argument_count(b, c, c->n_args, callee->blocks[0]->n_args) ||
        !build_arguments(b, c->n_args, c->args, ops) ||
        !suit_callee(b, c, callee, ops))
        return NULL;
    Op *op = build_op(b, OP_ctl_call, c->loc, c->n_args, 0, 0);
    memcpy(op->operands, ops, c->n_args * sizeof *ops);
    op_set_str(b->m, op, "callee", c->callee);
    return op;
}

/* ---- the statement ----------------------------------------------------- */

/* Takes `call >> b >> b` apart; false after a report. */
static bool take_call(Build *b, const AstExpr *e, Call *c)
{
    unsigned n = 0;
    const AstExpr *base = e;
    for (; base->kind == AST_binary && base->op == XOP_shift; n++)
        base = base->args[0];
    *c = (Call){ .call = base,
                 .loc = base->loc,
                 .n_barriers = n,
                 .barriers = ARENA_ARRAY(b->arena, const AstExpr *, n) };
    for (base = e; n > 0; base = base->args[0])
        c->barriers[--n] = base->args[1];
    c->callee = ast_callee(c->call);
    if (c->call->kind == AST_call && c->callee)
        return build_spread(b, c->call->n - 1, c->call->args + 1, &c->n_args,
                            &c->args);
    Diag *d = build_error(b, e->loc, "syntax",
                          "expected a statement, found "
                          "an expression: '>>' may follow only Arrive and the "
                          "call of an instruction");
    diag_fix(b->ctx, d, "write x = .., x += .., or a call f(..)");
    return false;
}

static void unknown_callee(Build *b, const Call *c)
{
    Diag *d = build_error(
        b, c->loc, "name", "%s",
        lib_unknown_text(b->ctx, "procedure or instruction", c->callee));
    lib_fix_name(b->lib, d, AST_instr, c->callee,
                 "define it above, or import the file that has it");
}

bool build_stmt_expr(Build *b, const AstStmt *s)
{
    Call c;
    if (!take_call(b, s->a, &c))
        return false;
    Op *op = NULL, *callee;
    if (strcmp(c.callee, "Fence") == 0) {
        op = build_fence(b, &c);
    } else if (strcmp(c.callee, "Arrive") == 0) {
        op = build_arrive(b, &c);
    } else if (strcmp(c.callee, "Await") == 0) {
        op = build_await(b, &c);
    } else if (strcmp(c.callee, "free") == 0 && c.n_args == 1) {
        return true;
    } else if (b->proc && (callee = b->proc(b, c.callee)) != NULL) {
        op = build_call(b, &c, callee);
    } else if (!b->lib || lib_has_instr(b->lib, c.callee)) {
        op = build_instr(b, &c);
    } else {
        unknown_callee(b, &c);
    }
    if (op)
        op->comment = s->comment;
    return op != NULL;
}
