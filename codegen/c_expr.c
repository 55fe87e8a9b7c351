/* Index expressions and conditions as C, in floor semantics and without
 * overflow.
 *
 * Each part is printed as plain C where the ranges of its variables show that
 * it stays below 2^62. Where they do not, it goes through helpers that note an
 * overflow in the local `overflow`, and the whole expression becomes a local
 * that is tested before it is used. Division is C's where its operand is seen
 * not to be negative. */
#include "codegen/c_emit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double safe_limit = 0x1p62;

static CRange range_of(double lo, double hi)
{
    return (CRange){ lo, hi };
}

static CRange range_product(CRange a, CRange b)
{
    double c[4] = { a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi };
    CRange r = { c[0], c[0] };
    for (unsigned i = 1; i < 4; i++) {
        r.lo = fmin(r.lo, c[i]);
        r.hi = fmax(r.hi, c[i]);
    }
    return r;
}

/* A window's strides are parameters; a dense tensor has less than 2^47 bytes.
 * Both are checked on entry. */
static CRange range_stride(const Atom *atom)
{
    const Value *v = atom->ref;
    if (v->type->kind == TK_tensor && atom->dim + 1 == v->type->rank)
        return range_of(1, 1);
    double limit = v->type->kind == TK_window && !v->def ? 0x1p30 : 0x1p47;
    return range_of(-limit, limit);
}

static CRange range_atom(CPrinter *p, const Atom *atom)
{
    switch (atom->kind) {
    case ATOM_var:
        return p->var_range[atom->var];
    case ATOM_mod:
        return range_of(0, (double)(atom->divisor - 1));
    case ATOM_floordiv: {
        CRange a = c_range(p, atom->arg);
        double d = (double)atom->divisor;
        return range_of(floor(a.lo / d), floor(a.hi / d));
    }
    case ATOM_opaque:
        break;
    }
    if (atom->opaque == OPAQUE_stride)
        return range_stride(atom);
    if (atom->opaque == OPAQUE_config)
        return range_of(-0x1p63, 0x1p63);
    return range_product(c_range(p, atom->lhs), c_range(p, atom->rhs));
}

CRange c_range(CPrinter *p, const Affine *e)
{
    CRange r = range_of((double)e->constant, (double)e->constant);
    for (uint32_t i = 0; i < e->n_terms; i++) {
        double coef = (double)e->terms[i].coef;
        CRange t = range_product(range_atom(p, e->terms[i].atom),
                                 range_of(coef, coef));
        r = range_of(r.lo + t.lo, r.hi + t.hi);
    }
    return r;
}

bool c_implied(CPrinter *p, const Cond *c)
{
    switch (c->kind) {
    case COND_true:
        return true;
    case COND_ge0:
        return c_range(p, c->expr).lo >= 0;
    case COND_and:
        return c_implied(p, c->lhs) && c_implied(p, c->rhs);
    case COND_or:
        return c_implied(p, c->lhs) || c_implied(p, c->rhs);
    case COND_eq0: {
        CRange r = c_range(p, c->expr);
        return r.lo == 0 && r.hi == 0;
    }
    default:
        return false;
    }
}

/* ---- printing ------------------------------------------------------- */

static const char *print_sum(CPrinter *p, const Affine *e, int sign);

static const char *literal(CPrinter *p, int64_t c)
{
    if (c == INT64_MIN)
        return "(-INT64_C(9223372036854775807) - 1)";
    if (c > INT32_MAX || c < -INT32_MAX)
        return c_text(p, "INT64_C(%" PRId64 ")", c);
    return c_text(p, "%" PRId64, c);
}

static const char *checked(CPrinter *p, CNeed need, const char *a,
                           const char *b)
{
    p->checked = true;
    p->needs |= need;
    return c_text(p, "exo_%s(&overflow, %s, %s)",
                  need == NEED_mul ? "mul" : "add", a, b);
}

static bool is_safe(CRange r)
{
    return r.lo > -safe_limit && r.hi < safe_limit;
}

static bool is_compound(const Affine *e)
{
    if (e->n_terms == 0)
        return e->constant < 0;
    return e->n_terms > 1 || e->constant || e->terms[0].coef != 1 ||
           (e->terms[0].atom->kind != ATOM_var);
}

static const char *operand(CPrinter *p, const Affine *e)
{
    const char *text = print_sum(p, e, 0);
    return is_compound(e) ? c_text(p, "(%s)", text) : text;
}

static const char *print_division(CPrinter *p, const Atom *atom)
{
    bool mod = atom->kind == ATOM_mod;
    const char *arg = operand(p, atom->arg);
    const char *divisor = literal(p, atom->divisor);
    if (c_range(p, atom->arg).lo >= 0)
        return c_text(p, "%s %s %s", arg, mod ? "%" : "/", divisor);
    p->needs |= mod ? NEED_mod : NEED_floordiv;
    return c_text(p, "exo_%s(%s, %s)", mod ? "mod" : "floordiv", arg, divisor);
}

static const char *print_product(CPrinter *p, const Atom *atom)
{
    const char *a = operand(p, atom->lhs);
    const char *b = operand(p, atom->rhs);
    if (is_safe(range_atom(p, atom)))
        return c_text(p, "%s * %s", a, b);
    return checked(p, NEED_mul, a, b);
}

static const char *print_stride(CPrinter *p, const Atom *atom)
{
    const Value *v = atom->ref;
    const CValue *cv = v->id < p->n_values ? &p->values[v->id] : NULL;
    if (!cv || cv->kind != CV_tensor || atom->dim >= v->type->rank) {
        diag_error(p->ctx, (Loc){ 0 }, "c-output",
                   "the stride of '%s' is used where C has no tensor of "
                   "that name",
                   v->name ? v->name : "?");
        p->failed = true;
        return "0";
    }
    return cv->strides[atom->dim];
}

static const char *print_atom(CPrinter *p, const Atom *atom)
{
    switch (atom->kind) {
    case ATOM_var:
        if (p->var_name[atom->var])
            return p->var_name[atom->var];
        break;
    case ATOM_floordiv:
    case ATOM_mod:
        return print_division(p, atom);
    case ATOM_opaque:
        if (atom->opaque == OPAQUE_product)
            return print_product(p, atom);
        if (atom->opaque == OPAQUE_stride)
            return print_stride(p, atom);
        c_refuse_config(p, (Loc){ 0 }, atom->name ? atom->name : "?");
        return "0";
    }
    diag_error(p->ctx, (Loc){ 0 }, "c-output",
               "the control variable '%s' is used outside its scope",
               var_get(p->m->exprs, atom->var)->name);
    p->failed = true;
    return "0";
}

/* Does the text of atom need brackets as a factor, or on the right of `-`? */
static bool atom_is_compound(CPrinter *p, const Atom *atom)
{
    if (atom->kind == ATOM_opaque)
        return atom->opaque == OPAQUE_stride;
    return atom->kind != ATOM_var && c_range(p, atom->arg).lo >= 0;
}

/* |coef| * atom */
static const char *print_term(CPrinter *p, int64_t coef, const Atom *atom)
{
    const char *text = print_atom(p, atom);
    if (coef == 1)
        return text;
    CRange r = range_product(range_atom(p, atom),
                             range_of((double)coef, (double)coef));
    if (!is_safe(r))
        return checked(p, NEED_mul, literal(p, coef), text);
    return c_text(p, atom_is_compound(p, atom) ? "%s * (%s)" : "%s * %s",
                  literal(p, coef), text);
}

/* The magnitudes of all terms added. */
static bool sum_is_safe(CPrinter *p, const Affine *e)
{
    double sum = fabs((double)e->constant);
    for (uint32_t i = 0; i < e->n_terms; i++) {
        CRange r = range_atom(p, e->terms[i].atom);
        double m = fmax(fabs(r.lo), fabs(r.hi));
        sum += fabs((double)e->terms[i].coef) * m;
    }
    return sum < safe_limit;
}

static const char *print_checked_sum(CPrinter *p, const Affine *e)
{
    const char *sum = e->constant ? literal(p, e->constant) : NULL;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        const char *t = print_term(p, e->terms[i].coef, e->terms[i].atom);
        sum = sum ? checked(p, NEED_add, sum, t) : t;
    }
    return sum ? sum : "0";
}

static void add_piece(CPrinter *p, const char **sum, bool minus,
                      const char *text)
{
    if (!*sum)
        *sum = c_text(p, "%s%s", minus ? "-" : "", text);
    else
        *sum = c_text(p, "%s %c %s", *sum, minus ? '-' : '+', text);
}

/* e; with sign 1 or -1 only what has that sign, times it: one side of a
 * comparison with 0. */
static const char *print_sum(CPrinter *p, const Affine *e, int sign)
{
    if (!sum_is_safe(p, e))
        return print_checked_sum(p, e);
    const char *sum = NULL;
    for (int pass = 1; pass >= -1; pass -= 2) {
        if (sign == -pass)
            continue;
        for (uint32_t i = 0; i < e->n_terms; i++) {
            int64_t coef = e->terms[i].coef;
            if ((coef > 0) != (pass > 0))
                continue;
            const char *t = print_term(p, pass * coef, e->terms[i].atom);
            bool minus = pass < 0 && sign == 0;
            if (minus && strpbrk(t, " ") && pass * coef == 1 &&
                atom_is_compound(p, e->terms[i].atom))
                t = c_text(p, "(%s)", t);
            add_piece(p, &sum, minus, t);
        }
    }
    int64_t k = sign < 0 ? -e->constant : e->constant;
    if (k && (sign == 0 || k > 0))
        add_piece(p, &sum, k < 0, literal(p, k < 0 ? -k : k));
    return sum ? sum : "0";
}

static const char *print_comparison(CPrinter *p, const Affine *e,
                                    const char *op)
{
    if (!sum_is_safe(p, e))
        return c_text(p, "%s %s 0", print_checked_sum(p, e), op);
    const char *left = print_sum(p, e, 1);
    const char *right = print_sum(p, e, -1);
    return c_text(p, "%s %s %s", left, op, right);
}

static const char *print_cond(CPrinter *p, const Cond *c)
{
    switch (c->kind) {
    case COND_false:
        return "false";
    case COND_true:
        return "true";
    case COND_ge0:
        return print_comparison(p, c->expr, ">=");
    case COND_eq0:
        return print_comparison(p, c->expr, "==");
    case COND_not:
        if (c->lhs->kind == COND_eq0)
            return print_comparison(p, c->lhs->expr, "!=");
        return c_text(p, "!(%s)", print_cond(p, c->lhs));
    case COND_and:
    case COND_or:
        break;
    }
    const char *left = print_cond(p, c->lhs);
    const char *right = print_cond(p, c->rhs);
    return c_text(p, "(%s) %s (%s)", left, c->kind == COND_and ? "&&" : "||",
                  right);
}

/* Makes the expression just printed a local when it may have overflowed, and
 * leaves the function when it did. */
static const char *settle(CPrinter *p, const char *type, const char *text)
{
    if (!p->checked)
        return text;
    const char *name = c_name(p, "t");
    p->checked = false;
    p->has_overflow = p->may_fail = true;
    p->needs |= NEED_limit;
    c_line(p, "const %s %s = %s;", type, name, text);
    c_line(p, "if (overflow) {");
    c_open(p);
    c_line(p, "status = exo_overflow(%s);", p->procedure);
    c_line(p, "goto done;");
    c_close(p);
    return name;
}

const char *c_index(CPrinter *p, const Affine *e)
{
    const char *text = settle(p, "int64_t", print_sum(p, e, 0));
    return is_compound(e) ? c_text(p, "(%s)", text) : text;
}

const char *c_condition(CPrinter *p, const Cond *c)
{
    return settle(p, "bool", print_cond(p, c));
}

const char *c_plus(CPrinter *p, const char *a, const char *b)
{
    if (!a || !strcmp(a, "0"))
        return b;
    if (!b || !strcmp(b, "0"))
        return a;
    return c_text(p, "%s + %s", a, b);
}

const char *c_times(CPrinter *p, const char *a, const char *b)
{
    if (!a || !b || !strcmp(a, "0") || !strcmp(b, "0"))
        return NULL;
    if (!strcmp(b, "1"))
        return a;
    return !strcmp(a, "1") ? b : c_text(p, "%s * %s", a, b);
}
