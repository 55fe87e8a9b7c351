/* Index expressions and conditions as text, for .eir and .exo.
 *
 * The order of terms depends on what is printed only, not on the order in
 * which this context met the atoms: positive terms before negative ones, and
 * among each, variables by rank before other atoms by their text. Comparisons
 * put negative terms on the other side: e >= 0 prints as `a < b + c` with the
 * constant on the left when it is negative, `a <= b + c` otherwise, `b >= c`
 * where there is no left side and `a < c` where there is no right one. */
#include "ir/affine_nodes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Printer {
    const ExprCtx *x;
    const ExprNames *names;
} Printer;

/* A term or factor with its text and place. */
typedef struct Piece {
    int64_t coef;
    uint32_t rank; /* of a variable; UINT32_MAX for other atoms */
    StrBuf text;
} Piece;

static void print_affine(StrBuf *out, const Printer *p, const Affine *a,
                         int prec);

static bool printer_exo(const Printer *p)
{
    return p->names && p->names->exo;
}

static void print_var(StrBuf *out, const Printer *p, VarId v)
{
    if (p->names && p->names->var)
        strbuf_add(out, p->names->var(p->names, v));
    else
        strbuf_addf(out, "%s%s", printer_exo(p) ? "" : "%",
                    var_get(p->x, v)->name);
}

static void print_stride(StrBuf *out, const Printer *p, const Atom *atom)
{
    const char *name = p->names && p->names->tensor
                           ? p->names->tensor(p->names, atom->ref)
                           : "?";
    strbuf_addf(out, "stride(%s, %u)", name, atom->dim);
}

static int piece_order(const void *a, const void *b)
{
    const Piece *l = a, *r = b;
    if ((l->coef > 0) != (r->coef > 0))
        return l->coef > 0 ? -1 : 1;
    if (l->rank != r->rank)
        return l->rank < r->rank ? -1 : 1;
    return strcmp(strbuf_text(&l->text), strbuf_text(&r->text));
}

static uint32_t atom_rank(const Printer *p, const Atom *atom)
{
    if (atom->kind != ATOM_var)
        return UINT32_MAX;
    return p->names && p->names->rank ? p->names->rank(p->names, atom->var)
                                      : atom->var;
}

static void print_atom(StrBuf *out, const Printer *p, const Atom *atom,
                       int prec);

/* The factors of a product in print order. */
static void print_product(StrBuf *out, const Printer *p, const Atom *atom)
{
    Piece piece[EXPR_MAX_FACTORS] = { 0 };
    unsigned n = 0;
    for (bool more = true; more && n < EXPR_MAX_FACTORS; n++) {
        more = atom->kind == ATOM_opaque && atom->opaque == OPAQUE_product;
        const Atom *factor = more ? atom->rhs->terms[0].atom : atom;
        piece[n].coef = 1;
        piece[n].rank = atom_rank(p, factor);
        print_atom(&piece[n].text, p, factor, 1);
        if (more)
            atom = atom->lhs->terms[0].atom;
    }
    qsort(piece, n, sizeof *piece, piece_order);
    for (unsigned i = 0; i < n; i++) {
        strbuf_add(out, i ? " * " : "");
        strbuf_add(out, strbuf_text(&piece[i].text));
        strbuf_free(&piece[i].text);
    }
}

/* prec 0: alone; 1: a factor; a product needs no brackets behind a
 * coefficient, which is prec 2. */
static void print_atom(StrBuf *out, const Printer *p, const Atom *atom,
                       int prec)
{
    bool division = atom->kind == ATOM_floordiv || atom->kind == ATOM_mod;
    bool product = atom->kind == ATOM_opaque && atom->opaque == OPAQUE_product;
    bool brackets = (division && prec > 0) || (product && prec == 1);
    if (brackets)
        strbuf_addc(out, '(');
    if (division) {
        bool mod = atom->kind == ATOM_mod;
        print_affine(out, p, atom->arg, 1);
        strbuf_addf(out, " %s %" PRId64,
                    printer_exo(p) ? (mod ? "%" : "/")
                                   : (mod ? "mod" : "floordiv"),
                    atom->divisor);
    } else if (atom->kind == ATOM_var) {
        print_var(out, p, atom->var);
    } else if (product) {
        print_product(out, p, atom);
    } else if (atom->opaque == OPAQUE_stride) {
        print_stride(out, p, atom);
    } else {
        strbuf_add(out, atom->name);
    }
    if (brackets)
        strbuf_addc(out, ')');
}

/* Prints sign * (the terms of a whose coefficient has that sign, and
 * constant): one side of a comparison, or with sign 0 all terms as they are.
 * The pieces are those of a, in order. */
static void print_side(StrBuf *out, const Piece *piece, uint32_t n, int sign,
                       int64_t constant)
{
    bool first = true;
    for (uint32_t i = 0; i < n; i++) {
        int64_t coef = piece[i].coef;
        if (sign && (coef > 0) != (sign > 0))
            continue;
        coef = sign < 0 ? -coef : coef;
        if (first)
            strbuf_add(out, coef < 0 ? "-" : "");
        else
            strbuf_add(out, coef < 0 ? " - " : " + ");
        coef = coef < 0 ? -coef : coef;
        if (coef != 1)
            strbuf_addf(out, "%" PRId64 " * ", coef);
        strbuf_add(out, strbuf_text(&piece[i].text));
        first = false;
    }
    if (first)
        strbuf_addf(out, "%" PRId64, constant);
    else if (constant)
        strbuf_addf(out, " %c %" PRId64, constant < 0 ? '-' : '+',
                    constant < 0 ? -constant : constant);
}

/* The terms of a with their texts, in print order. */
static Piece *pieces_of(const Printer *p, const Affine *a)
{
    Piece *piece = calloc(a->n_terms + 1, sizeof *piece);
    if (!piece)
        panic("out of memory");
    for (uint32_t i = 0; i < a->n_terms; i++) {
        int64_t coef = a->terms[i].coef;
        piece[i].coef = coef;
        piece[i].rank = atom_rank(p, a->terms[i].atom);
        print_atom(&piece[i].text, p, a->terms[i].atom, coef == 1 ? 0 : 2);
    }
    qsort(piece, a->n_terms, sizeof *piece, piece_order);
    return piece;
}

static void pieces_free(Piece *piece, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        strbuf_free(&piece[i].text);
    free(piece);
}

/* Is a one name or one non-negative number? */
static bool affine_is_simple(const Affine *a)
{
    if (a->n_terms == 0)
        return a->constant >= 0;
    const Atom *atom = a->terms[0].atom;
    return a->n_terms == 1 && a->constant == 0 && a->terms[0].coef == 1 &&
           (atom->kind == ATOM_var ||
            (atom->kind == ATOM_opaque && atom->opaque != OPAQUE_product));
}

static void print_affine(StrBuf *out, const Printer *p, const Affine *a,
                         int prec)
{
    bool brackets = prec > 0 && !affine_is_simple(a);
    if (brackets)
        strbuf_addc(out, '(');
    Piece *piece = pieces_of(p, a);
    print_side(out, piece, a->n_terms, 0, a->constant);
    pieces_free(piece, a->n_terms);
    if (brackets)
        strbuf_addc(out, ')');
}

void affine_print(StrBuf *out, const ExprCtx *x, const Affine *a,
                  const ExprNames *names, int prec)
{
    Printer p = { x, names };
    print_affine(out, &p, a, prec);
}

/* ---- conditions ---------------------------------------------------------- */

static void print_ge0(StrBuf *out, const Piece *piece, const Affine *e)
{
    bool right = piece[0].coef > 0;
    bool left = piece[e->n_terms - 1].coef < 0;
    int64_t k = e->constant;
    if (!left) {
        print_side(out, piece, e->n_terms, 1, 0);
        strbuf_addf(out, " >= %" PRId64, -k);
    } else if (!right) {
        bool top = k == INT64_MAX;
        print_side(out, piece, e->n_terms, -1, 0);
        strbuf_addf(out, " %s %" PRId64, top ? "<=" : "<", top ? k : k + 1);
    } else {
        print_side(out, piece, e->n_terms, -1, k < 0 ? -k - 1 : 0);
        strbuf_add(out, k < 0 ? " < " : " <= ");
        print_side(out, piece, e->n_terms, 1, k < 0 ? 0 : k);
    }
}

/* The side that bears the first atom stands left. */
static void print_equality(StrBuf *out, Piece *piece, const Affine *e,
                           const char *op)
{
    uint32_t n = e->n_terms, first = 0;
    for (uint32_t i = 1; i < n; i++) {
        Piece a = piece[i], b = piece[first];
        a.coef = b.coef = 1;
        first = piece_order(&a, &b) < 0 ? i : first;
    }
    int sign = piece[first].coef > 0 ? 1 : -1;
    int64_t k = sign * e->constant;
    bool both = piece[0].coef > 0 && piece[n - 1].coef < 0;
    print_side(out, piece, n, sign, both && k > 0 ? k : 0);
    strbuf_addf(out, " %s ", op);
    print_side(out, piece, n, -sign, both && k > 0 ? 0 : -k);
}

static void print_comparison(StrBuf *out, const Printer *p, const Cond *c,
                             const char *equality)
{
    Piece *piece = pieces_of(p, c->expr);
    if (c->kind == COND_ge0)
        print_ge0(out, piece, c->expr);
    else
        print_equality(out, piece, c->expr, equality);
    pieces_free(piece, c->expr->n_terms);
}

/* Binding: or 0, and 1, not 2, comparisons 3. */
static int cond_level(const Cond *c)
{
    switch (c->kind) {
    case COND_or:
        return 0;
    case COND_and:
        return 1;
    case COND_not:
        return c->lhs->kind == COND_eq0 ? 3 : 2;
    default:
        return 3;
    }
}

static void print_cond(StrBuf *out, const Printer *p, const Cond *c, int level)
{
    bool brackets = cond_level(c) < level;
    int own = cond_level(c);
    if (brackets)
        strbuf_addc(out, '(');
    if (c->kind == COND_true || c->kind == COND_false) {
        bool yes = c->kind == COND_true;
        strbuf_add(out, printer_exo(p) ? (yes ? "True" : "False")
                                       : (yes ? "true" : "false"));
    } else if (c->kind == COND_and || c->kind == COND_or) {
        print_cond(out, p, c->lhs, own);
        strbuf_add(out, c->kind == COND_and ? " and " : " or ");
        print_cond(out, p, c->rhs, own + 1);
    } else if (c->kind == COND_not && own == 2) {
        strbuf_add(out, "not ");
        print_cond(out, p, c->lhs, own);
    } else if (c->kind == COND_not) {
        print_comparison(out, p, c->lhs, "!=");
    } else {
        print_comparison(out, p, c, "==");
    }
    if (brackets)
        strbuf_addc(out, ')');
}

void cond_print(StrBuf *out, const ExprCtx *x, const Cond *c,
                const ExprNames *names, int prec)
{
    Printer p = { x, names };
    bool constant = c->kind == COND_true || c->kind == COND_false;
    print_cond(out, &p, c, prec > 0 && !constant ? 4 : 0);
}
