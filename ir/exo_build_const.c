/* Literals: what can be known while reading.
 *
 * Template parameters of entries are bound to literals, so that one evaluator
 * serves template arguments of calls, memory parameters, where clauses and the
 * sizes in an entry's body. */
#include "ir/exo_build.h"

#include <string.h>

/* ---- packs ------------------------------------------------------------- */

static AstExpr *literal(Build *b, const AstExpr *at, const Param *p)
{
    AstExpr *e = ARENA_NEW(b->arena, AstExpr);
    *e = (AstExpr){ .loc = at->loc, .height = 1, .i = p->i, .f = p->f };
    switch (p->kind) {
    case PARAM_int:
        e->kind = AST_int;
        e->f = (double)p->i;
        break;
    case PARAM_float:
        e->kind = AST_float;
        break;
    case PARAM_bool:
        e->kind = AST_bool;
        break;
    case PARAM_str:
        e->kind = AST_str;
        e->name = p->s;
        break;
    case PARAM_type:
        e->kind = AST_name;
        e->name = ctx_intern(b->ctx, scalar_type_name((ScalarType)p->i));
        break;
    case PARAM_none:
        e->kind = AST_none;
        break;
    case PARAM_tuple:
        e->kind = AST_tuple;
        e->n = p->n;
        e->args = ARENA_ARRAY(b->arena, AstExpr *, p->n);
        for (unsigned i = 0; i < p->n; i++)
            e->args[i] = literal(b, at, &p->items[i]);
        break;
    }
    return e;
}

typedef VEC(const AstExpr *) ExprVec;

/* name... : the items of a tuple, or name0, name1, .. as far as bound. */
static bool spread_pack(Build *b, const AstExpr *e, ExprVec *out)
{
    Binding *t = build_find(b, e->name);
    if (t && t->kind == BIND_param && t->param.kind == PARAM_tuple) {
        for (unsigned i = 0; i < t->param.n; i++)
            VEC_PUSH(b->arena, out, literal(b, e, &t->param.items[i]));
        return true;
    }
    for (unsigned i = 0;; i++) {
        const char *name =
            ctx_intern(b->ctx, arena_printf(b->arena, "%s%u", e->name, i));
        if (!build_find(b, name)) {
            if (i == 0)
                build_error(b, e->loc, "name",
                            "'%s...' spreads nothing: there "
                            "is no %s0 and no tuple %s",
                            e->name, e->name, e->name);
            return i > 0;
        }
        AstExpr *item = ARENA_NEW(b->arena, AstExpr);
        *item = (AstExpr){
            .kind = AST_name, .loc = e->loc, .height = 1, .name = name
        };
        VEC_PUSH(b->arena, out, item);
    }
}

bool build_spread(Build *b, unsigned n, AstExpr *const *args, unsigned *out_n,
                  const AstExpr *const **out)
{
    ExprVec items = { 0 };
    bool packs = false;
    for (unsigned i = 0; i < n; i++)
        packs |= args[i]->kind == AST_pack;
    if (!packs) {
        *out_n = n;
        *out = (const AstExpr *const *)args;
        return true;
    }
    for (unsigned i = 0; i < n; i++) {
        if (args[i]->kind != AST_pack) {
            VEC_PUSH(b->arena, &items, args[i]);
        } else if (!b->in_entry) {
            build_error(b, args[i]->loc, "syntax",
                        "'%s...' is for entries of "
                        "libraries only",
                        args[i]->name);
            return false;
        } else if (!spread_pack(b, args[i], &items)) {
            return false;
        }
    }
    *out_n = (unsigned)items.len;
    *out = items.data;
    return true;
}

/* ---- literals ---------------------------------------------------------- */

static bool const_error(Build *b, const AstExpr *e, const char *why)
{
    build_error(b, e->loc, "type", "expected a literal, found %s", why);
    return false;
}

static bool const_name(Build *b, const AstExpr *e, Param *out)
{
    Binding *t = build_find(b, e->name);
    if (t && t->kind == BIND_param) {
        *out = t->param;
        return true;
    }
    if (t && t->kind == BIND_broken)
        return false;
    if (t) {
        build_error(b, e->loc, "type",
                    "expected a literal, found the variable "
                    "'%s'",
                    e->name);
        return false;
    }
    ScalarType s = scalar_type_from_name(e->name, strlen(e->name));
    if (s == TY_none) {
        build_error(b, e->loc, "name",
                    "unknown name '%s' where a literal is "
                    "expected",
                    e->name);
        return false;
    }
    *out = (Param){ .kind = PARAM_type, .i = s };
    return true;
}

static bool const_tuple(Build *b, const AstExpr *e, Param *out)
{
    unsigned n;
    const AstExpr *const *items;
    if (!build_spread(b, e->n, e->args, &n, &items))
        return false;
    Param *p = ARENA_ARRAY(b->arena, Param, n);
    for (unsigned i = 0; i < n; i++)
        if (!build_const(b, items[i], &p[i]))
            return false;
    *out = (Param){ .kind = PARAM_tuple, .n = n, .items = p };
    return true;
}

static bool is_number(const Param *p)
{
    return p->kind == PARAM_int || p->kind == PARAM_float ||
           p->kind == PARAM_bool;
}

static double number(const Param *p)
{
    return p->kind == PARAM_float ? p->f : (double)p->i;
}

static int64_t floordiv(int64_t a, int64_t c)
{
    return a / c - (a % c < 0);
}

static bool int_arith(Build *b, const AstExpr *e, int64_t x, int64_t y,
                      int64_t *out)
{
    bool overflow = false;
    if ((e->op == '/' || e->op == '%') && y <= 0) {
        build_error(b, e->loc, "type",
                    "expected a positive divisor, found "
                    "%lld",
                    (long long)y);
        return false;
    }
    switch (e->op) {
    case '+':
        overflow = __builtin_add_overflow(x, y, out);
        break;
    case '-':
        overflow = __builtin_sub_overflow(x, y, out);
        break;
    case '*':
        overflow = __builtin_mul_overflow(x, y, out);
        break;
    case '/':
        *out = floordiv(x, y);
        break;
    default:
        *out = x - y * floordiv(x, y);
        break;
    }
    if (overflow)
        build_error(b, e->loc, "type", "integer does not fit 64 bits");
    return !overflow;
}

static bool const_arith(Build *b, const AstExpr *e, const Param *x,
                        const Param *y, Param *out)
{
    if (!is_number(x) || !is_number(y))
        return const_error(b, e, "arithmetic on what is no number");
    if (x->kind != PARAM_float && y->kind != PARAM_float) {
        out->kind = PARAM_int;
        return int_arith(b, e, x->i, y->i, &out->i);
    }
    double l = number(x), r = number(y);
    if (e->op == '%')
        return const_error(b, e, "'%' on a float");
    out->kind = PARAM_float;
    out->f = e->op == '+'   ? l + r
             : e->op == '-' ? l - r
             : e->op == '*' ? l * r
                            : l / r;
    return true;
}

static bool same_literal(const Param *a, const Param *b)
{
    Param x = *a, y = *b;
    x.name = y.name = NULL;
    if (x.kind != y.kind && is_number(&x) && is_number(&y))
        return number(&x) == number(&y);
    return param_equal(&x, &y);
}

static bool const_compare(Build *b, const AstExpr *e, const Param *x,
                          const Param *y, bool *out)
{
    if (e->op == XOP_in) {
        if (y->kind != PARAM_tuple)
            return const_error(b, e, "'in' with no set");
        *out = false;
        for (unsigned i = 0; i < y->n; i++)
            *out |= same_literal(x, &y->items[i]);
        return true;
    }
    if (e->op == XOP_eq || e->op == XOP_ne) {
        *out = same_literal(x, y) == (e->op == XOP_eq);
        return true;
    }
    if (!is_number(x) || !is_number(y))
        return const_error(b, e, "an order of what is no number");
    double l = number(x), r = number(y);
    *out = e->op == '<'      ? l < r
           : e->op == '>'    ? l > r
           : e->op == XOP_le ? l <= r
                             : l >= r;
    return true;
}

/* lo..hi, both included, as a tuple. */
static bool const_range(Build *b, const AstExpr *e, const Param *x,
                        const Param *y, Param *out)
{
    if (x->kind != PARAM_int || y->kind != PARAM_int || y->i < x->i ||
        y->i - x->i > 4096)
        return const_error(b, e, "a range that is empty or too long");
    unsigned n = (unsigned)(y->i - x->i + 1);
    Param *p = ARENA_ARRAY(b->arena, Param, n);
    for (unsigned i = 0; i < n; i++)
        p[i] = (Param){ .kind = PARAM_int, .i = x->i + i };
    *out = (Param){ .kind = PARAM_tuple, .n = n, .items = p };
    return true;
}

static bool const_binary(Build *b, const AstExpr *e, Param *out)
{
    Param x, y;
    bool truth = false;
    if (e->op == XOP_and || e->op == XOP_or) {
        if (!build_const_bool(b, e->args[0], &truth))
            return false;
        if (truth == (e->op == XOP_and) &&
            !build_const_bool(b, e->args[1], &truth))
            return false;
        *out = (Param){ .kind = PARAM_bool, .i = truth };
        return true;
    }
    if (!build_const(b, e->args[0], &x) || !build_const(b, e->args[1], &y))
        return false;
    *out = (Param){ .kind = PARAM_bool };
    switch (e->op) {
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
        return const_arith(b, e, &x, &y, out);
    case XOP_range:
        return const_range(b, e, &x, &y, out);
    case '<':
    case '>':
    case XOP_le:
    case XOP_ge:
    case XOP_eq:
    case XOP_ne:
    case XOP_in:
        if (!const_compare(b, e, &x, &y, &truth))
            return false;
        out->i = truth;
        return true;
    default:
        return const_error(b, e, "an operator that literals do not have");
    }
}

static bool const_unary(Build *b, const AstExpr *e, Param *out)
{
    bool truth;
    if (e->op == XOP_not) {
        if (!build_const_bool(b, e->args[0], &truth))
            return false;
        *out = (Param){ .kind = PARAM_bool, .i = !truth };
        return true;
    }
    if (!build_const(b, e->args[0], out))
        return false;
    if (out->kind == PARAM_float && e->op == '-')
        out->f = -out->f;
    else if (out->kind == PARAM_int && out->i > INT64_MIN)
        out->i = e->op == '-' ? -out->i : ~out->i;
    else
        return const_error(b, e, "a sign before what is no number");
    return true;
}

/* box is items with 1s put between them. */
static bool inserts_ones(const Param *box, const Param *items)
{
    unsigned k = 0;
    for (unsigned i = 0; i < box->n; i++) {
        if (k < items->n && same_literal(&box->items[i], &items->items[k]))
            k++;
        else if (box->items[i].kind != PARAM_int || box->items[i].i != 1)
            return false;
    }
    return k == items->n;
}

/* The functions that entries may call on literals. */
static bool const_call(Build *b, const AstExpr *e, Param *out)
{
    const char *f = ast_callee(e);
    Param args = { 0 };
    AstExpr list = {
        .kind = AST_tuple, .loc = e->loc, .n = e->n - 1, .args = e->args + 1
    };
    if (!f)
        return const_error(b, e, "a call");
    if (!const_tuple(b, &list, &args))
        return false;
    const Param *a = args.items;
    out->kind = PARAM_int;
    if ((!strcmp(f, "bytes") || !strcmp(f, "bits")) && args.n == 1 &&
        a->kind == PARAM_type) {
        out->i = scalar_type_bytes((ScalarType)a->i) * (f[1] == 'i' ? 8 : 1);
        return true;
    }
    if (!strcmp(f, "len") && args.n == 1 && a->kind == PARAM_tuple) {
        out->i = a->n;
        return true;
    }
    if (!strcmp(f, "product") && args.n == 1 && a->kind == PARAM_tuple) {
        out->i = 1;
        for (unsigned i = 0; i < a->n; i++) {
            if (a->items[i].kind != PARAM_int)
                return const_error(b, e, "product of what is no integer");
            if (__builtin_mul_overflow(out->i, a->items[i].i, &out->i))
                return const_error(b, e, "a product beyond 64 bits");
        }
        return true;
    }
    if (!strcmp(f, "inserts_ones") && args.n == 2 && a[0].kind == PARAM_tuple &&
        a[1].kind == PARAM_tuple) {
        *out = (Param){ .kind = PARAM_bool, .i = inserts_ones(&a[0], &a[1]) };
        return true;
    }
    if (!strcmp(f, "divide_first") && args.n == 2 && a[0].kind == PARAM_tuple &&
        a[0].n > 0 && a[0].items->kind == PARAM_int && a[1].kind == PARAM_int &&
        a[1].i > 0) {
        Param *items =
            arena_memdup(b->arena, a[0].items, a[0].n * sizeof *items);
        items->i = floordiv(items->i, a[1].i);
        *out = (Param){ .kind = PARAM_tuple, .n = a[0].n, .items = items };
        return true;
    }
    build_error(b, e->loc, "type", "no function '%s' of %u such literals", f,
                args.n);
    return false;
}

bool build_const(Build *b, const AstExpr *e, Param *out)
{
    bool truth;
    *out = (Param){ .kind = PARAM_none };
    switch (e->kind) {
    case AST_int:
        *out = (Param){ .kind = PARAM_int, .i = e->i };
        return true;
    case AST_float:
        *out = (Param){ .kind = PARAM_float, .f = e->f };
        return true;
    case AST_str:
        *out = (Param){ .kind = PARAM_str, .s = e->name };
        return true;
    case AST_bool:
        *out = (Param){ .kind = PARAM_bool, .i = e->i };
        return true;
    case AST_none:
        return true;
    case AST_name:
        return const_name(b, e, out);
    case AST_unary:
        return const_unary(b, e, out);
    case AST_binary:
        return const_binary(b, e, out);
    case AST_tuple:
    case AST_list:
    case AST_set:
        return const_tuple(b, e, out);
    case AST_call:
        return const_call(b, e, out);
    case AST_choice:
        if (!build_const_bool(b, e->args[1], &truth))
            return false;
        return build_const(b, e->args[truth ? 0 : 2], out);
    default:
        return const_error(b, e, "an expression that is none");
    }
}

bool build_const_bool(Build *b, const AstExpr *e, bool *out)
{
    Param p;
    if (!build_const(b, e, &p))
        return false;
    if (p.kind != PARAM_bool) {
        build_error(b, e->loc, "type",
                    "expected True, False or a condition "
                    "of literals, found no truth value");
        return false;
    }
    *out = p.i != 0;
    return true;
}

const char *build_param_text(Build *b, const Param *p)
{
    StrBuf text = { 0 };
    param_print(&text, p);
    const char *s = arena_strdup(b->arena, strbuf_text(&text));
    strbuf_free(&text);
    return s;
}

bool build_const_int(Build *b, const AstExpr *e, const char *what, int64_t *out)
{
    Param p;
    if (!build_const(b, e, &p))
        return false;
    if (p.kind != PARAM_int) {
        build_error(b, e->loc, "type", "%s: expected an int literal, found %s",
                    what, build_param_text(b, &p));
        return false;
    }
    *out = p.i;
    return true;
}

ScalarType build_scalar_type(Build *b, const AstExpr *e)
{
    if (e->kind != AST_name)
        return TY_none;
    Binding *t = build_find(b, e->name);
    if (t && t->kind == BIND_param && t->param.kind == PARAM_type)
        return (ScalarType)t->param.i;
    return scalar_type_from_name(e->name, strlen(e->name));
}
