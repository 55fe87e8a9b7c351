/* Expressions to ops: index expressions, conditions, accesses, data.
 *
 * Index expressions and conditions become interned expressions over control
 * variables. A data expression becomes loads and arith ops that stand before
 * the statement it belongs to. All operands of one operation have one type:
 * that of the first operand that has one, else what the context wants. */
#include "ir/exo_build.h"
#include "ir/lib_entry.h"

#include <stdio.h>
#include <string.h>

/* ---- names ------------------------------------------------------------- */

/* What the name is bound to; NULL after a report, or silently when broken. An
 * unknown name is reported once in its scope. */
static Binding *find_name(Build *b, const AstExpr *e)
{
    Binding *t = build_find(b, e->name);
    if (t && t->kind != BIND_broken)
        return t;
    b->failed = true;
    if (!t) {
        build_error(b, e->loc, "name", "unknown name '%s'", e->name);
        build_bind(b, e->name, e->loc, BIND_broken);
    }
    return NULL;
}

static Value *find_value(Build *b, const AstExpr *e, const char *what)
{
    if (e->kind != AST_name) {
        build_error(b, e->loc, "type", "expected %s by its name", what);
        return NULL;
    }
    Binding *t = find_name(b, e);
    if (t && t->kind != BIND_value) {
        Diag *d = build_error(b, e->loc, "type",
                              "expected %s, found the "
                              "control variable '%s'",
                              what, e->name);
        diag_note(b->ctx, d, t->loc, "defined here");
        return NULL;
    }
    return t ? t->value : NULL;
}

/* ---- index expressions ------------------------------------------------- */

static const Affine *index_done(Build *b, const AstExpr *e, const Affine *a)
{
    if (!a)
        build_error(b, e->loc, "type",
                    "index expression is too large: "
                    "expected one within 64 bits and 256 levels");
    return a;
}

static const Affine *index_name(Build *b, const AstExpr *e)
{
    Binding *t = find_name(b, e);
    if (!t)
        return NULL;
    if (t->kind == BIND_var)
        return affine_var(b->x, t->var);
    if (t->kind == BIND_param && t->param.kind == PARAM_int)
        return affine_const(b->x, t->param.i);
    Diag *d = build_error(b, e->loc, "type",
                          "expected a control variable in "
                          "an index expression, found '%s'",
                          e->name);
    diag_note(b->ctx, d, t->loc, "'%s' is data", e->name);
    return NULL;
}

/* stride(x, d), or a function of literals in an entry. */
static const Affine *index_call(Build *b, const AstExpr *e)
{
    const char *f = ast_callee(e);
    int64_t n;
    if (f && strcmp(f, "stride") == 0) {
        if (e->n != 3) {
            build_error(b, e->loc, "type",
                        "stride expects 2 arguments, found "
                        "%u",
                        e->n - 1);
            return NULL;
        }
        Value *v = find_value(b, e->args[1], "a tensor in stride");
        if (!v || !build_const_int(b, e->args[2], "stride", &n))
            return NULL;
        if (n < 0 || n >= v->type->rank) {
            build_error(b, e->args[2]->loc, "type",
                        "stride: expected a "
                        "dimension below %u of '%s', found %lld",
                        v->type->rank, e->args[1]->name, (long long)n);
            return NULL;
        }
        return affine_stride(b->x, v, (unsigned)n);
    }
    if (b->in_entry)
        return build_const_int(b, e, "index", &n) ? affine_const(b->x, n)
                                                  : NULL;
    build_error(b, e->loc, "type",
                "expected an index expression, found a call "
                "of '%s'",
                f ? f : "an expression");
    return NULL;
}

static const Affine *index_divide(Build *b, const AstExpr *e, const Affine *l,
                                  const Affine *r)
{
    int64_t c;
    if (!affine_is_const(r, &c) || c <= 0) {
        Diag *d = build_error(b, e->args[1]->loc, "type",
                              "'%c' in an index "
                              "expression expects a positive literal on its "
                              "right",
                              e->op);
        diag_fix(b->ctx, d,
                 "index arithmetic is quasi-affine: divide by a "
                 "literal above 0");
        return NULL;
    }
    return e->op == '/' ? affine_floordiv(b->x, l, c) : affine_mod(b->x, l, c);
}

static const Affine *index_binary(Build *b, const AstExpr *e)
{
    if (!strchr("+-*/%", e->op) || e->op > 127 || e->op < 32) {
        if (e->op == '@') /* an annotation on a part of an extent */
            return build_index(b, e->args[0]);
        build_error(b, e->loc, "type",
                    "expected an index expression, found a "
                    "condition");
        return NULL;
    }
    const Affine *l = build_index(b, e->args[0]);
    const Affine *r = build_index(b, e->args[1]);
    if (!l || !r)
        return NULL;
    switch (e->op) {
    case '+':
        return affine_add(b->x, l, r);
    case '-':
        return affine_sub(b->x, l, r);
    case '*':
        if (affine_is_const(l, NULL) || affine_is_const(r, NULL))
            return affine_mul(b->x, l, r);
        build_error(b, e->loc, "type",
                    "'*' in an index expression expects a "
                    "constant on one side: a product of two variables is not "
                    "quasi-affine");
        return NULL;
    default:
        return index_divide(b, e, l, r);
    }
}

/* Config.field as a control value, or NULL. */
static const Affine *index_config(Build *b, const AstExpr *e)
{
    const char *config = ast_callee(e->args[0]);
    ScalarType t = config ? lib_config_field(b->lib, config, e->name) : TY_none;
    if (t == TY_none || !scalar_type_is_control(t)) {
        build_error(b, e->loc, t ? "type" : "name",
                    "expected a control field "
                    "of a configuration, found '%s.%s'",
                    config ? config : "..", e->name);
        return NULL;
    }
    const char *full = arena_printf(b->arena, "%s.%s", config, e->name);
    return affine_config(b->x, ctx_intern(b->ctx, full));
}

/* x if c else y, decided while an entry is instantiated. */
static const Affine *index_choice(Build *b, const AstExpr *e)
{
    bool truth;
    if (!b->in_entry) {
        build_error(b, e->loc, "syntax",
                    "a choice is for entries of libraries "
                    "only");
        return NULL;
    }
    return build_const_bool(b, e->args[1], &truth)
               ? build_index(b, e->args[truth ? 0 : 2])
               : NULL;
}

const Affine *build_index(Build *b, const AstExpr *e)
{
    const Affine *a;
    bool failed = b->failed;
    b->failed = false;
    switch (e->kind) {
    case AST_int:
        a = affine_const(b->x, e->i);
        break;
    case AST_name:
        a = index_name(b, e);
        break;
    case AST_unary:
        a = e->op == '-' ? affine_neg(b->x, build_index(b, e->args[0])) : NULL;
        if (e->op != '-')
            build_error(b, e->loc, "type",
                        "expected an index expression, "
                        "found '%s'",
                        e->op == '~' ? "~" : "not");
        break;
    case AST_binary:
        a = index_binary(b, e);
        break;
    case AST_call:
        a = index_call(b, e);
        break;
    case AST_attr:
        a = index_config(b, e);
        break;
    case AST_choice:
        a = index_choice(b, e);
        break;
    case AST_index:
        a = NULL;
        build_error(b, e->loc, "type",
                    "expected an index expression, found an "
                    "element of a tensor");
        break;
    case AST_float:
        a = NULL;
        build_error(b, e->loc, "type",
                    "expected an index expression, found "
                    "the float %g",
                    e->f);
        break;
    default:
        a = NULL;
        build_error(b, e->loc, "type", "expected an index expression");
    }
    if (!a && !b->failed)
        index_done(b, e, NULL);
    b->failed |= failed;
    return a;
}

/* ---- conditions -------------------------------------------------------- */

static bool is_bool_name(Build *b, const AstExpr *e)
{
    Binding *t = e->kind == AST_name ? build_find(b, e->name) : NULL;
    if (t && t->kind == BIND_var)
        return var_get(b->x, t->var)->kind == VAR_bool;
    return t && t->kind == BIND_param && t->param.kind == PARAM_bool;
}

bool build_is_cond(Build *b, const AstExpr *e)
{
    if (e->kind == AST_bool || is_bool_name(b, e))
        return true;
    if (e->kind == AST_unary)
        return e->op == XOP_not;
    return e->kind == AST_binary &&
           (e->op < 32 || e->op == '<' || e->op == '>' || e->op == XOP_le ||
            e->op == XOP_ge || e->op == XOP_eq || e->op == XOP_ne);
}

static const Cond *cond_name(Build *b, const AstExpr *e)
{
    Binding *t = build_find(b, e->name);
    if (t->kind == BIND_param)
        return cond_bool(b->x, t->param.i != 0);
    return cond_cmp(b->x, CMP_eq, affine_var(b->x, t->var),
                    affine_const(b->x, 1));
}

static const Cond *cond_compare(Build *b, const AstExpr *e)
{
    CmpOp op = e->op == '<'      ? CMP_lt
               : e->op == '>'    ? CMP_gt
               : e->op == XOP_le ? CMP_le
               : e->op == XOP_ge ? CMP_ge
               : e->op == XOP_eq ? CMP_eq
                                 : CMP_ne;
    const Affine *l = build_index(b, e->args[0]);
    const Affine *r = build_index(b, e->args[1]);
    if (!l || !r)
        return NULL;
    const Cond *c = cond_cmp(b->x, op, l, r);
    if (!c)
        index_done(b, e, NULL);
    return c;
}

const Cond *build_cond(Build *b, const AstExpr *e)
{
    if (!build_is_cond(b, e)) {
        build_error(b, e->loc, "type",
                    "expected a condition: a comparison, "
                    "and, or, or a bool");
        return NULL;
    }
    if (e->kind == AST_bool)
        return cond_bool(b->x, e->i != 0);
    if (e->kind == AST_name)
        return cond_name(b, e);
    if (e->kind == AST_unary) {
        const Cond *c = build_cond(b, e->args[0]);
        return c ? cond_not(b->x, c) : NULL;
    }
    if (e->op != XOP_and && e->op != XOP_or && e->op != XOP_in)
        return cond_compare(b, e);
    if (e->op == XOP_in) {
        build_error(b, e->loc, "type", "'in' is for where clauses only");
        return NULL;
    }
    const Cond *l = build_cond(b, e->args[0]);
    const Cond *r = build_cond(b, e->args[1]);
    if (!l || !r)
        return NULL;
    return e->op == XOP_and ? cond_and(b->x, l, r) : cond_or(b->x, l, r);
}

/* ---- accesses ---------------------------------------------------------- */

static bool access_dim(Build *b, const AstExpr *e, const Affine *extent,
                       AccessDim *dim)
{
    if (e->kind != AST_slice) {
        dim->kind = DIM_point;
        dim->lo = build_index(b, e);
        return dim->lo != NULL;
    }
    dim->kind = DIM_interval;
    dim->lo = e->args[0] ? build_index(b, e->args[0]) : affine_const(b->x, 0);
    const Affine *hi = e->args[1] ? build_index(b, e->args[1]) : extent;
    if (!dim->lo || !hi)
        return false;
    dim->len = affine_sub(b->x, hi, dim->lo);
    return index_done(b, e, dim->len) != NULL;
}

static Access *access_of(Build *b, const AstExpr *e, Value *v, bool partial)
{
    unsigned n = 0;
    const AstExpr *const *idx = NULL;
    Access *a = access_new(b->m, v);
    if (e->kind == AST_index &&
        !build_spread(b, e->n - 1, e->args + 1, &n, &idx))
        return NULL;
    if (n > a->rank || (n < a->rank && !partial)) {
        build_error(b, e->loc, "type", "expected %u indices of '%s', found %u",
                    a->rank, v->name, n);
        return NULL;
    }
    bool ok = true;
    for (unsigned i = 0; i < a->rank; i++) {
        if (i < n) {
            ok &= access_dim(b, idx[i], v->shape[i], &a->dims[i]);
            continue;
        }
        a->dims[i] = (AccessDim){ .kind = DIM_interval,
                                  .lo = affine_const(b->x, 0),
                                  .len = v->shape[i] };
    }
    return ok ? a : NULL;
}

Access *build_access(Build *b, const AstExpr *e, bool partial)
{
    const AstExpr *base = e->kind == AST_index ? e->args[0] : e;
    Value *v = find_value(b, base, "a tensor");
    if (!v)
        return NULL;
    if (v->type->kind == TK_barrier) {
        build_error(b, e->loc, "type", "expected data, found the barrier '%s'",
                    v->name);
        return NULL;
    }
    return access_of(b, e, v, partial);
}

Access *build_barrier(Build *b, const AstExpr *e, const char *statement)
{
    const AstExpr *base = e->kind == AST_index ? e->args[0] : e;
    if (base->kind == AST_name) {
        Binding *t = build_find(b, base->name);
        if (t && t->kind != BIND_broken &&
            (t->kind != BIND_value || t->value->type->kind != TK_barrier)) {
            Diag *d = build_error(b, e->loc, "barrier",
                                  "%s requires barrier "
                                  "type, found '%s'",
                                  statement, base->name);
            diag_note(b->ctx, d, t->loc, "defined here");
            return NULL;
        }
    }
    Value *v = find_value(b, base, "a barrier");
    return v ? access_of(b, e, v, false) : NULL;
}

bool access_is_point(const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            return false;
    return true;
}

/* ---- data -------------------------------------------------------------- */

static bool extern_op(const char *name, OpCode *code, unsigned *arity)
{
    static const char *const hidden[] = { "const", "cast", "add", "sub",
                                          "mul",   "div",  "neg" };
    char full[32];
    if (strlen(name) > 20)
        return false;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (strcmp(name, hidden[i]) == 0)
            return false;
    snprintf(full, sizeof full, "arith.%s", name);
    *code = op_code_from_name(full);
    if (*code == OP_none)
        return false;
    *arity = (unsigned)strlen(op_info(*code)->operands);
    return true;
}

ScalarType build_data_type(Build *b, const AstExpr *e)
{
    Binding *t;
    ScalarType s = TY_none;
    switch (e->kind) {
    case AST_name:
        t = build_find(b, e->name);
        return t && t->kind == BIND_value ? t->value->type->elem : TY_none;
    case AST_index:
        return build_data_type(b, e->args[0]);
    case AST_unary:
        return build_data_type(b, e->args[0]);
    case AST_binary:
        s = build_data_type(b, e->args[0]);
        return s ? s : build_data_type(b, e->args[1]);
    case AST_call:
        s = build_scalar_type(b, e->args[0]);
        for (unsigned i = 1; i < e->n && !s; i++)
            s = build_data_type(b, e->args[i]);
        return s;
    case AST_attr:
        if (ast_callee(e->args[0]))
            s = lib_config_field(b->lib, ast_callee(e->args[0]), e->name);
        return s;
    default:
        return TY_none;
    }
}

static Value *data_op(Build *b, OpCode code, Loc loc, ScalarType t, unsigned n,
                      Value **v)
{
    Op *op = build_op(b, code, loc, n, 1, 0);
    for (unsigned i = 0; i < n; i++)
        op->operands[i] = opnd_value(v[i]);
    return op_set_result(b->m, op, 0, type_scalar(b->ctx, t), NULL);
}

static Value *data_const(Build *b, const AstExpr *e, ScalarType t, bool is_int,
                         int64_t i, double f)
{
    Param p = { .kind = PARAM_float, .f = f };
    if (scalar_type_is_int(t)) {
        if (!is_int || scalar_wrap(t, i) != i) {
            build_error(b, e->loc, "type", "literal %g is no value of %s", f,
                        scalar_type_name(t));
            return NULL;
        }
        p = (Param){ .kind = PARAM_int, .i = i };
    }
    Op *op = build_op(b, OP_arith_const, e->loc, 0, 1, 0);
    op_set_param(b->m, op, "value", &p);
    return op_set_result(b->m, op, 0, type_scalar(b->ctx, t), NULL);
}

Value *build_cast(Build *b, Loc loc, Value *v, ScalarType t)
{
    if (!v || v->type->elem == t)
        return v;
    return data_op(b, OP_arith_cast, loc, t, 1, &v);
}

/* v, when it has the type that its operation has. */
static Value *expect_type(Build *b, const AstExpr *e, Value *v, ScalarType t)
{
    if (!v || v->type->elem == t)
        return v;
    Diag *d = build_error(b, e->loc, "type",
                          "expected an operand of type %s, "
                          "found %s: the operands of one operation have one "
                          "type",
                          scalar_type_name(t), scalar_type_name(v->type->elem));
    diag_fix(b->ctx, d,
             "assign it to a variable of that type first, or write "
             "%s(..)",
             scalar_type_name(t));
    return NULL;
}

static Value *data_load(Build *b, const AstExpr *e)
{
    Access *a = build_access(b, e, true);
    if (!a)
        return NULL;
    if (!access_is_point(a)) {
        build_error(b, e->loc, "type",
                    "expected an element of '%s' (%u "
                    "indices), found a window or the whole tensor",
                    a->base->name, a->rank);
        return NULL;
    }
    Op *op = build_op(b, OP_mem_load, e->loc, 1, 1, 0);
    op->operands[0] = opnd_access(a);
    return op_set_result(b->m, op, 0, type_scalar(b->ctx, a->base->type->elem),
                         NULL);
}

static Value *data_name(Build *b, const AstExpr *e, ScalarType t)
{
    Binding *n = build_find(b, e->name);
    if (!n && strcmp(e->name, "inf") == 0 && scalar_type_is_float(t))
        return data_const(b, e, t, false, 0, 1.0 / 0.0);
    if (n && n->kind == BIND_param &&
        (n->param.kind == PARAM_int || n->param.kind == PARAM_float))
        return data_const(b, e, t, n->param.kind == PARAM_int, n->param.i,
                          n->param.kind == PARAM_int ? (double)n->param.i
                                                     : n->param.f);
    if (n && n->kind == BIND_var) {
        build_error(b, e->loc, "type",
                    "expected data, found the control "
                    "variable '%s'",
                    e->name);
        return NULL;
    }
    return expect_type(b, e, data_load(b, e), t);
}

static Value *data_config(Build *b, const AstExpr *e, ScalarType t)
{
    const char *config = ast_callee(e->args[0]);
    ScalarType s = config ? lib_config_field(b->lib, config, e->name) : TY_none;
    if (s == TY_none || !scalar_type_is_data(s)) {
        build_error(b, e->loc, "name",
                    "unknown data field '%s.%s' of a "
                    "configuration",
                    config ? config : "..", e->name);
        return NULL;
    }
    Op *op = build_op(b, OP_cfg_read, e->loc, 0, 1, 0);
    op_set_str(b->m, op, "field",
               arena_printf(b->arena, "%s.%s", config, e->name));
    Value *v = op_set_result(b->m, op, 0, type_scalar(b->ctx, s), NULL);
    return expect_type(b, e, v, t);
}

static Value *data_binary(Build *b, const AstExpr *e, ScalarType t)
{
    OpCode code = e->op == '+'   ? OP_arith_add
                  : e->op == '-' ? OP_arith_sub
                  : e->op == '*' ? OP_arith_mul
                  : e->op == '/' ? OP_arith_div
                                 : OP_none;
    if (code == OP_none) {
        build_error(b, e->loc, "type",
                    e->op == '%' ? "'%%' is not defined on data values"
                    : build_is_cond(b, e)
                        ? "expected data, found a condition: comparisons are "
                          "of control values only"
                        : "operator that data do not have");
        return NULL;
    }
    Value *v[2];
    v[0] = build_data(b, e->args[0], t);
    v[1] = build_data(b, e->args[1], t);
    return v[0] && v[1] ? data_op(b, code, e->loc, t, 2, v) : NULL;
}

/* type(e): an explicit cast. */
static Value *data_cast(Build *b, const AstExpr *e, ScalarType to, ScalarType t)
{
    if (e->n != 2 || !scalar_type_is_data(to)) {
        build_error(b, e->loc, "type",
                    "a cast expects a data type and 1 "
                    "argument, found %u",
                    e->n - 1);
        return NULL;
    }
    ScalarType from = build_data_type(b, e->args[1]);
    Value *v = build_data(b, e->args[1], from ? from : to);
    v = build_cast(b, e->loc, v, to);
    return expect_type(b, e, v, t);
}

static Value *data_call(Build *b, const AstExpr *e, ScalarType t)
{
    OpCode code;
    unsigned arity;
    Value *v[4];
    const char *f = ast_callee(e);
    ScalarType cast = build_scalar_type(b, e->args[0]);
    if (cast)
        return data_cast(b, e, cast, t);
    if (!f || !extern_op(f, &code, &arity)) {
        Diag *d = build_error(b, e->loc, "name", "unknown function '%s'",
                              f ? f : "of an expression");
        diag_note(b->ctx, d, (Loc){ 0 },
                  "known are sin, relu, sigmoid, sqrt, "
                  "expf, exp2f, logf, log2f, fabsf, fmaxf, fminf, select, "
                  "tf32, tf32_rn");
        return NULL;
    }
    if (e->n - 1 != arity) {
        build_error(b, e->loc, "type", "%s expects %u arguments, found %u", f,
                    arity, e->n - 1);
        return NULL;
    }
    if ((op_info(code)->traits & OPT_TF32) && t != TY_f32) {
        build_error(b, e->loc, "type", "%s expects f32, found %s", f,
                    scalar_type_name(t));
        return NULL;
    }
    bool ok = true;
    for (unsigned i = 0; i < arity; i++) {
        v[i] = build_data(b, e->args[i + 1], t);
        ok &= v[i] != NULL;
    }
    return ok ? data_op(b, code, e->loc, t, arity, v) : NULL;
}

static Value *data_unary(Build *b, const AstExpr *e, ScalarType t)
{
    const AstExpr *a = e->args[0];
    if (e->op != '-') {
        build_error(b, e->loc, "type", "operator that data do not have");
        return NULL;
    }
    if (a->kind == AST_int && a->i != INT64_MIN)
        return data_const(b, e, t, true, -a->i, (double)-a->i);
    if (a->kind == AST_float)
        return data_const(b, e, t, false, 0, -a->f);
    Value *v = build_data(b, a, t);
    return v ? data_op(b, OP_arith_neg, e->loc, t, 1, &v) : NULL;
}

Value *build_data(Build *b, const AstExpr *e, ScalarType t)
{
    switch (e->kind) {
    case AST_int:
    case AST_float:
        return data_const(b, e, t, e->kind == AST_int, e->i, e->f);
    case AST_name:
        return data_name(b, e, t);
    case AST_index:
        return expect_type(b, e, data_load(b, e), t);
    case AST_unary:
        return data_unary(b, e, t);
    case AST_binary:
        return data_binary(b, e, t);
    case AST_call:
        return data_call(b, e, t);
    case AST_attr:
        return data_config(b, e, t);
    default:
        build_error(b, e->loc, "type", "expected data");
        return NULL;
    }
}
