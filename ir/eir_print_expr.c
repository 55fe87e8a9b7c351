/* The .eir printer's pieces: names, types, literals, index expressions and
 * conditions.
 *
 * The text of an expression does not depend on the order in which a module
 * came to be made: variables go by their order in the text, other atoms by
 * their own text, so that a printed module that is read back prints the same.
 * A sum shows its positive terms first; a comparison has no term with a minus
 * on either side. */
#include "ir/eir_printer.h"

#include <string.h>

/* ---- names --------------------------------------------------------------- */

typedef struct EirTaken {
    unsigned next_suffix;
} EirTaken;

void eir_printer_init(EirPrinter *pr, const Module *m,
                      const EirPrintOptions *options, StrBuf *out)
{
    *pr = (EirPrinter){ .m = m, .out = out, .scratch = arena_new() };
    if (options)
        pr->options = *options;
    pr->taken = name_map_new(pr->scratch);
    pr->n_vars = var_count(m->exprs) + 1;
    pr->value_names = ARENA_ARRAY(pr->scratch, const char *, m->next_value);
    pr->var_names = ARENA_ARRAY(pr->scratch, const char *, pr->n_vars);
    pr->var_order = ARENA_ARRAY(pr->scratch, uint32_t, pr->n_vars);
}

void eir_printer_done(EirPrinter *pr)
{
    arena_free(pr->scratch);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

/* The name with every other character made an underscore, never a number. */
static const char *sanitised(EirPrinter *pr, const char *name)
{
    size_t n = strlen(name);
    char *s = arena_alloc(pr->scratch, n + 2);
    char *at = s;
    if (!n || !name[strspn(name, "0123456789")])
        *at++ = 'v';
    for (size_t i = 0; i < n; i++)
        *at++ = is_word(name[i]) ? name[i] : '_';
    return ctx_intern(pr->m->ctx, s);
}

static void take(EirPrinter *pr, const char *name)
{
    name_map_set(pr->taken, name, ARENA_NEW(pr->scratch, EirTaken));
    VEC_PUSH(pr->scratch, &pr->scope, name);
}

/* A name that is free in the scopes open now, and taken from here on. */
static const char *fresh_name(EirPrinter *pr, const char *wanted)
{
    if (!wanted)
        return ctx_intern(pr->m->ctx,
                          arena_printf(pr->scratch, "%u", pr->next_number++));
    const char *base = sanitised(pr, wanted), *name = base;
    EirTaken *t = name_map_get(pr->taken, base);
    while (name_map_get(pr->taken, name))
        name = ctx_intern(pr->m->ctx, arena_printf(pr->scratch, "%s_%u", base,
                                                   ++t->next_suffix));
    take(pr, name);
    return name;
}

size_t eir_print_scope(const EirPrinter *pr)
{
    return pr->scope.len;
}

void eir_print_scope_end(EirPrinter *pr, size_t mark)
{
    while (pr->scope.len > mark)
        name_map_set(pr->taken, pr->scope.data[--pr->scope.len], NULL);
}

static const char *value_name(EirPrinter *pr, const Value *v)
{
    if (!v)
        return "<none>";
    const char *name =
        v->id < pr->m->next_value ? pr->value_names[v->id] : NULL;
    return name ? name
                : arena_printf(pr->scratch, "<undefined value %u>", v->id);
}

static const char *var_name(EirPrinter *pr, VarId v)
{
    const char *name = v < pr->n_vars ? pr->var_names[v] : NULL;
    return name ? name : arena_printf(pr->scratch, "<undefined var %u>", v);
}

void eir_print_def_value(EirPrinter *pr, const Value *v)
{
    if (v && v->id < pr->m->next_value)
        pr->value_names[v->id] = fresh_name(pr, v->name);
    eir_print_value(pr, v);
}

void eir_print_def_var(EirPrinter *pr, VarId v)
{
    if (v && v < pr->n_vars) {
        pr->var_names[v] = fresh_name(pr, var_get(pr->m->exprs, v)->name);
        pr->var_order[v] = ++pr->next_order;
    }
    strbuf_addf(pr->out, "%%%s", var_name(pr, v));
}

void eir_print_value(EirPrinter *pr, const Value *v)
{
    strbuf_addf(pr->out, "%%%s", value_name(pr, v));
}

/* ---- index expressions --------------------------------------------------- */

/* A term made ready: what it is sorted by, and how its atom prints. */
typedef struct TextTerm {
    int64_t coef;
    uint32_t order;   /* of a variable; other atoms come after */
    const char *text; /* of the atom */
    bool simple;      /* the text stands as a factor without brackets */
    bool scales;      /* it does so after a coefficient */
} TextTerm;

static void sum_text(EirPrinter *pr, StrBuf *s, const Affine *e, bool factor);

static const char *keep_text(EirPrinter *pr, StrBuf *s)
{
    const char *kept = arena_strndup(pr->scratch, strbuf_text(s), s->len);
    strbuf_free(s);
    return kept;
}

static bool term_before(const TextTerm *a, const TextTerm *b)
{
    if (a->order != b->order)
        return a->order < b->order;
    return strcmp(a->text, b->text) < 0;
}

static void sort_terms(TextTerm *t, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        TextTerm x = t[i];
        unsigned k = i;
        for (; k > 0 && term_before(&x, &t[k - 1]); k--)
            t[k] = t[k - 1];
        t[k] = x;
    }
}

static void collect_factors(const Affine *e, const Affine **out, unsigned *n,
                            unsigned room)
{
    if (e->n_terms == 1 && e->constant == 0 && e->terms[0].coef == 1) {
        const Atom *a = e->terms[0].atom;
        if (a->kind == ATOM_opaque && a->opaque == OPAQUE_product) {
            collect_factors(a->lhs, out, n, room);
            collect_factors(a->rhs, out, n, room);
            return;
        }
    }
    if (*n < room)
        out[*n] = e;
    ++*n;
}

static TextTerm atom_text(EirPrinter *pr, const Atom *a);

/* The factors of a product, each as it stands in it, in their order. */
static void product_text(EirPrinter *pr, StrBuf *s, const Atom *a)
{
    const Affine *e[2] = { a->lhs, a->rhs };
    unsigned n = 0;
    for (int i = 0; i < 2; i++)
        collect_factors(e[i], NULL, &n, 0);
    const Affine **factors = ARENA_ARRAY(pr->scratch, const Affine *, n);
    TextTerm *t = ARENA_ARRAY(pr->scratch, TextTerm, n);
    unsigned room = n;
    n = 0;
    for (int i = 0; i < 2; i++)
        collect_factors(e[i], factors, &n, room);
    for (unsigned i = 0; i < n; i++) {
        StrBuf f = { 0 };
        VarId v;
        sum_text(pr, &f, factors[i], true);
        t[i].order = affine_is_var(factors[i], &v) && v < pr->n_vars
                         ? pr->var_order[v]
                         : UINT32_MAX;
        t[i].text = keep_text(pr, &f);
    }
    sort_terms(t, n);
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(s, "%s%s", i ? " * " : "", t[i].text);
}

static TextTerm atom_text(EirPrinter *pr, const Atom *a)
{
    TextTerm t = { .coef = 1, .order = UINT32_MAX };
    StrBuf s = { 0 };
    if (a->kind == ATOM_var) {
        if (a->var < pr->n_vars && pr->var_order[a->var])
            t.order = pr->var_order[a->var];
        strbuf_addf(&s, "%%%s", var_name(pr, a->var));
        t.simple = true;
    } else if (a->kind == ATOM_opaque && a->opaque == OPAQUE_stride) {
        strbuf_addf(&s, "stride(%%%s, %u)", value_name(pr, a->ref), a->dim);
        t.simple = true;
    } else if (a->kind == ATOM_opaque && a->opaque == OPAQUE_config) {
        strbuf_add(&s, a->name);
        t.simple = true;
    } else if (a->kind == ATOM_opaque) {
        product_text(pr, &s, a);
        t.scales = true;
    } else {
        sum_text(pr, &s, a->arg, true);
        strbuf_addf(&s, " %s %lld",
                    a->kind == ATOM_floordiv ? "floordiv" : "mod",
                    (long long)a->divisor);
    }
    t.text = keep_text(pr, &s);
    return t;
}

static TextTerm *text_terms(EirPrinter *pr, const Affine *e)
{
    TextTerm *t = ARENA_ARRAY(pr->scratch, TextTerm, e->n_terms);
    for (uint32_t i = 0; i < e->n_terms; i++) {
        t[i] = atom_text(pr, e->terms[i].atom);
        t[i].coef = e->terms[i].coef;
    }
    sort_terms(t, e->n_terms);
    return t;
}

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* One part of a sum with the sign that joins it. */
static void add_part(StrBuf *s, bool first, bool minus, const TextTerm *t,
                     uint64_t number)
{
    strbuf_add(s, first ? (minus ? "-" : "") : minus ? " - " : " + ");
    if (!t) {
        strbuf_addf(s, "%llu", (unsigned long long)number);
        return;
    }
    if (number == 1 && !(first && minus)) {
        strbuf_add(s, t->text);
        return;
    }
    if (number != 1)
        strbuf_addf(s, "%llu * ", (unsigned long long)number);
    strbuf_addf(s, t->simple || t->scales ? "%s" : "(%s)", t->text);
}

/* The terms and the constant, each times `sign`, but only those terms that
 * are then positive when `positive`; 0 when there is nothing. */
static void add_side(StrBuf *s, const TextTerm *t, unsigned n, int sign,
                     bool positive, int64_t constant)
{
    bool first = true;
    for (int minus = 0; minus <= !positive; minus++) {
        if (minus && first && constant > 0) {
            add_part(s, true, false, NULL, magnitude(constant));
            constant = 0;
            first = false;
        }
        for (unsigned i = 0; i < n; i++) {
            if ((t[i].coef < 0) != ((sign < 0) != (minus == 1)))
                continue;
            add_part(s, first, minus, &t[i], magnitude(t[i].coef));
            first = false;
        }
    }
    if (constant || first)
        add_part(s, first, constant < 0, NULL, magnitude(constant));
}

static bool is_simple(const Affine *e, const TextTerm *t)
{
    if (e->n_terms == 0)
        return e->constant >= 0;
    return e->n_terms == 1 && e->constant == 0 && t[0].coef == 1 && t[0].simple;
}

static void sum_text(EirPrinter *pr, StrBuf *s, const Affine *e, bool factor)
{
    if (!e) {
        strbuf_add(s, "<none>");
        return;
    }
    TextTerm *t = text_terms(pr, e);
    bool brackets = factor && !is_simple(e, t);
    if (brackets)
        strbuf_addc(s, '(');
    add_side(s, t, e->n_terms, 1, false, e->constant);
    if (brackets)
        strbuf_addc(s, ')');
}

void eir_print_index(EirPrinter *pr, const Affine *e)
{
    sum_text(pr, pr->out, e, false);
}

void eir_print_index_list(EirPrinter *pr, unsigned n, const Affine *const *e)
{
    strbuf_addc(pr->out, '[');
    for (unsigned i = 0; i < n; i++) {
        if (i)
            strbuf_add(pr->out, ", ");
        eir_print_index(pr, e[i]);
    }
    strbuf_addc(pr->out, ']');
}

/* ---- conditions ---------------------------------------------------------- */

/* e >= 0: all on one side as `positive >= -c` or `negative < c + 1`, otherwise
 * as `negative < positive`, or `<=` with the constant where it is positive. */
static void ge0_text(EirPrinter *pr, StrBuf *s, const Affine *e)
{
    TextTerm *t = text_terms(pr, e);
    unsigned n = e->n_terms, n_negative = 0;
    for (unsigned i = 0; i < n; i++)
        n_negative += t[i].coef < 0;
    int64_t c = e->constant;
    if (n_negative == 0) {
        add_side(s, t, n, 1, true, 0);
        strbuf_addf(s, " >= %lld", -(long long)c);
    } else if (n_negative == n && c < INT64_MAX) {
        add_side(s, t, n, -1, true, 0);
        strbuf_addf(s, " < %lld", (long long)c + 1);
    } else if (c == -1) {
        add_side(s, t, n, -1, true, 0);
        strbuf_add(s, " < ");
        add_side(s, t, n, 1, true, 0);
    } else {
        add_side(s, t, n, -1, true, c < 0 ? -c : 0);
        strbuf_add(s, " <= ");
        add_side(s, t, n, 1, true, c < 0 ? 0 : c);
    }
}

/* e == 0 or e != 0; the first term stands on the left. */
static void eq0_text(EirPrinter *pr, StrBuf *s, const Affine *e,
                     const char *relation)
{
    TextTerm *t = text_terms(pr, e);
    int sign = e->n_terms && t[0].coef < 0 ? -1 : 1;
    add_side(s, t, e->n_terms, sign, true, 0);
    strbuf_addf(s, " %s ", relation);
    add_side(s, t, e->n_terms, -sign, true,
             sign < 0 ? e->constant : -e->constant);
}

enum { PREC_OR, PREC_AND, PREC_NOT };

static void cond_text(EirPrinter *pr, StrBuf *s, const Cond *c, int prec)
{
    if (!c) {
        strbuf_add(s, "<none>");
        return;
    }
    int own = c->kind == COND_or ? PREC_OR : PREC_AND;
    bool joined = c->kind == COND_or || c->kind == COND_and;
    bool brackets = joined && own < prec;
    if (brackets)
        strbuf_addc(s, '(');
    if (joined) {
        cond_text(pr, s, c->lhs, own);
        strbuf_add(s, own == PREC_OR ? " or " : " and ");
        cond_text(pr, s, c->rhs, own + 1);
    } else if (c->kind == COND_ge0) {
        ge0_text(pr, s, c->expr);
    } else if (c->kind == COND_eq0) {
        eq0_text(pr, s, c->expr, "==");
    } else if (c->kind == COND_not && c->lhs->kind == COND_eq0) {
        eq0_text(pr, s, c->lhs->expr, "!=");
    } else if (c->kind == COND_not) {
        strbuf_add(s, "not ");
        cond_text(pr, s, c->lhs, PREC_NOT);
    } else {
        strbuf_add(s, c->kind == COND_true ? "true" : "false");
    }
    if (brackets)
        strbuf_addc(s, ')');
}

void eir_print_cond(EirPrinter *pr, const Cond *c)
{
    cond_text(pr, pr->out, c, PREC_OR);
}

/* ---- accesses, types, attributes ----------------------------------------- */

void eir_print_access(EirPrinter *pr, const Access *a)
{
    eir_print_value(pr, a->base);
    strbuf_addc(pr->out, '[');
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        if (i)
            strbuf_add(pr->out, ", ");
        if (d->kind == DIM_ring) {
            strbuf_add(pr->out, "ring(");
            eir_print_value(pr, d->ring);
            if (d->delta)
                strbuf_addf(pr->out, ", %lld", (long long)d->delta);
            strbuf_addc(pr->out, ')');
            continue;
        }
        eir_print_index(pr, d->lo);
        if (d->kind == DIM_interval) {
            strbuf_add(pr->out, " +: ");
            eir_print_index(pr, d->len);
        }
    }
    strbuf_addc(pr->out, ']');
}

static void print_shape(EirPrinter *pr, const Value *v)
{
    if (v->type->rank)
        strbuf_addc(pr->out, '[');
    for (unsigned i = 0; i < v->type->rank; i++) {
        if (i)
            strbuf_add(pr->out, ", ");
        eir_print_index(pr, v->shape[i]);
        if (v->ring_dim == (int)i)
            strbuf_addf(pr->out, " ring %lld", (long long)v->ring_depth);
    }
    if (v->type->rank)
        strbuf_addc(pr->out, ']');
    if (v->ring_guard) {
        strbuf_add(pr->out, " guarded ");
        eir_print_value(pr, v->ring_guard);
    }
}

static void print_elem_mem(EirPrinter *pr, const char *word, const Type *t)
{
    strbuf_addf(pr->out, "%s<%s", word, scalar_type_name(t->elem));
    if (t->kind == TK_frag)
        strbuf_addf(pr->out, ", %lld", (long long)t->n);
    if (t->mem) {
        strbuf_add(pr->out, ", ");
        memref_print(pr->out, t->mem, false);
    }
    strbuf_addc(pr->out, '>');
}

void eir_print_type_of(EirPrinter *pr, const Value *v)
{
    const Type *t = v->type;
    switch (t->kind) {
    case TK_scalar:
        strbuf_add(pr->out, scalar_type_name(t->elem));
        return;
    case TK_tensor:
        print_elem_mem(pr, "tensor", t);
        break;
    case TK_window:
        print_elem_mem(pr, "window", t);
        break;
    case TK_map:
        print_elem_mem(pr, "map", t);
        break;
    case TK_frag:
        print_elem_mem(pr, "frag", t);
        return;
    case TK_barrier:
        strbuf_add(pr->out, "barrier<");
        memref_print(pr->out, t->mem, false);
        strbuf_addc(pr->out, '>');
        break;
    case TK_mbarrier:
        strbuf_add(pr->out, "mbarrier");
        break;
    case TK_ring:
        strbuf_addf(pr->out, "ring<%lld>", (long long)t->n);
        return;
    }
    print_shape(pr, v);
}

void eir_print_attr_value(EirPrinter *pr, const Attr *a)
{
    switch (a->kind) {
    case ATTR_param:
        param_print(pr->out, a->param);
        return;
    case ATTR_mem:
        strbuf_add(pr->out, "mem(");
        memref_print(pr->out, a->mem, false);
        break;
    case ATTR_unit:
        strbuf_add(pr->out, "unit(");
        unitref_print(pr->out, a->unit);
        break;
    case ATTR_index:
        strbuf_add(pr->out, "index(");
        eir_print_index(pr, a->index);
        break;
    case ATTR_indices:
        eir_print_index_list(pr, a->n, a->indices);
        return;
    }
    strbuf_addc(pr->out, ')');
}
