/* Names, expressions and lines of the .exo printer.
 *
 * A data value prints as the expression of the ops that made it. Literals have
 * no type in the text: they take that of the operation's first operand that has
 * one, so a literal of another type prints with an explicit cast, bf16(0.5). */
#include "ir/exo_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ------------------------------------------------------------- */

static bool is_keyword(const char *s)
{
    static const char *const words[] = { "def",   "for",    "in",    "if",
                                         "elif",  "else",   "with",  "assert",
                                         "pass",  "and",    "or",    "not",
                                         "class", "import", "None",  "True",
                                         "False", "while",  "return" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], s) == 0)
            return true;
    return false;
}

/* The name with what .exo does not allow in one replaced. */
static const char *clean_name(ExoPrinter *p, const char *name)
{
    if (!name || !*name)
        name = "t";
    char *s = arena_strdup(p->arena, name);
    for (char *c = s; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
              *c == '_' || (*c >= '0' && *c <= '9')))
            *c = '_';
    if (*s >= '0' && *s <= '9')
        s = arena_printf(p->arena, "t%s", s);
    return is_keyword(s) ? arena_printf(p->arena, "%s_", s) : s;
}

static const char *fresh_name(ExoPrinter *p, const char *wanted)
{
    const char *base = clean_name(p, wanted);
    const char *name = ctx_intern(p->m->ctx, base);
    for (unsigned i = 1; build_find(&p->names, name); i++)
        name = ctx_intern(p->m->ctx, arena_printf(p->arena, "%s_%u", base, i));
    build_bind(&p->names, name, (Loc){ 0 }, BIND_broken);
    return name;
}

const char *exo_name_value(ExoPrinter *p, const Value *v)
{
    return p->value_names[v->id] = fresh_name(p, v->name);
}

const char *exo_name_var(ExoPrinter *p, VarId v)
{
    p->var_ranks[v] = p->next_rank++;
    return p->var_names[v] = fresh_name(p, var_get(p->m->exprs, v)->name);
}

void exo_print_refuse(ExoPrinter *p, Loc loc, const char *what)
{
    if (p->ok) {
        Diag *d =
            diag_error(p->m->ctx, loc, "level", ".exo cannot say %s", what);
        diag_fix(p->m->ctx, d, "print .eir instead");
    }
    p->ok = false;
}

static const char *value_name(ExoPrinter *p, const Value *v)
{
    const char *name = p->value_names[v->id];
    if (name)
        return name;
    exo_print_refuse(p, v->def ? v->def->loc : (Loc){ 0 },
                     "a value used outside its scope");
    return "?";
}

/* ---- index expressions, accesses, literals ----------------------------- */

void exo_print_index(ExoPrinter *p, const Affine *e)
{
    affine_print(&p->line, p->m->exprs, e, &p->expr_names, 0);
}

void exo_print_cond(ExoPrinter *p, const Cond *c)
{
    if (c->kind == COND_true || c->kind == COND_false)
        strbuf_add(&p->line, c->kind == COND_true ? "True" : "False");
    else
        cond_print(&p->line, p->m->exprs, c, &p->expr_names, 0);
}

void exo_print_access(ExoPrinter *p, const Access *a)
{
    strbuf_add(&p->line, value_name(p, a->base));
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        strbuf_add(&p->line, i ? ", " : "[");
        if (d->kind == DIM_ring) {
            exo_print_refuse(p, (Loc){ 0 }, "a slot of a ring");
            break;
        }
        exo_print_index(p, d->lo);
        if (d->kind != DIM_interval)
            continue;
        const Affine *hi = affine_add(p->m->exprs, d->lo, d->len);
        strbuf_addc(&p->line, ':');
        if (hi)
            exo_print_index(p, hi);
    }
    if (a->rank)
        strbuf_addc(&p->line, ']');
}

void exo_print_param(ExoPrinter *p, const Param *param)
{
    Param bare = *param;
    bare.name = NULL;
    param_print(&p->line, &bare);
}

/* The shortest digits that read back as the same number. */
static void print_float(ExoPrinter *p, double f)
{
    char text[40];
    if (isnan(f) || isinf(f)) {
        strbuf_add(&p->line, isnan(f) ? "(inf - inf)" : f > 0 ? "inf" : "-inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, f);
        if (strtod(text, NULL) == f)
            break;
    }
    strbuf_add(&p->line, text);
    if (!strpbrk(text, ".e"))
        strbuf_add(&p->line, ".0");
}

/* ---- data -------------------------------------------------------------- */

/* Does the text of v have an operand with a type? */
static bool has_type(ExoPrinter *p, const Value *v)
{
    if (p->value_names[v->id] || !v->def)
        return true;
    const Op *op = v->def;
    if (op->code == OP_arith_const)
        return false;
    if (op->code == OP_mem_load || op->code == OP_arith_cast ||
        op->code == OP_cfg_read)
        return true;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i].kind == OPND_value &&
            has_type(p, op->operands[i].u.value))
            return true;
    return false;
}

static void print_const(ExoPrinter *p, const Op *op, ScalarType t)
{
    const Param *v = op_attr_param(op, "value");
    if (!v)
        exo_print_refuse(p, op->loc, "a literal without its value");
    else if (scalar_type_is_int(t))
        strbuf_addf(&p->line, "%lld",
                    (long long)(v->kind == PARAM_float ? (int64_t)v->f : v->i));
    else
        print_float(p, v->kind == PARAM_float ? v->f : (double)v->i);
}

enum { PREC_add = 1, PREC_mul, PREC_unary };

static void print_value(ExoPrinter *p, Value *v, int prec);

/* An operand whose place in the text says that it has type want. */
static void print_typed(ExoPrinter *p, Value *v, ScalarType want, int prec)
{
    if (has_type(p, v) || v->type->elem == want) {
        print_value(p, v, prec);
        return;
    }
    strbuf_addf(&p->line, "%s(", scalar_type_name(v->type->elem));
    print_value(p, v, 0);
    strbuf_addc(&p->line, ')');
}

static void print_infix(ExoPrinter *p, const Op *op, const char *sign, int own,
                        int prec)
{
    if (own < prec)
        strbuf_addc(&p->line, '(');
    print_value(p, op->operands[0].u.value, own);
    strbuf_add(&p->line, sign);
    print_value(p, op->operands[1].u.value, own + 1);
    if (own < prec)
        strbuf_addc(&p->line, ')');
}

static void print_call(ExoPrinter *p, const Op *op)
{
    strbuf_addf(&p->line, "%s(", op_info(op->code)->name);
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (i)
            strbuf_add(&p->line, ", ");
        print_value(p, op->operands[i].u.value, 0);
    }
    strbuf_addc(&p->line, ')');
}

static void print_op(ExoPrinter *p, const Op *op, ScalarType t, int prec)
{
    switch (op->code) {
    case OP_arith_const:
        print_const(p, op, t);
        return;
    case OP_mem_load:
        exo_print_access(p, op->operands[0].u.access);
        return;
    case OP_cfg_read:
        strbuf_add(&p->line, op_attr_str(op, "field", "?"));
        return;
    case OP_arith_cast:
        strbuf_addf(&p->line, "%s(", scalar_type_name(t));
        print_typed(p, op->operands[0].u.value, t, 0);
        strbuf_addc(&p->line, ')');
        return;
    case OP_arith_add:
        print_infix(p, op, " + ", PREC_add, prec);
        return;
    case OP_arith_sub:
        print_infix(p, op, " - ", PREC_add, prec);
        return;
    case OP_arith_mul:
        print_infix(p, op, " * ", PREC_mul, prec);
        return;
    case OP_arith_div:
        print_infix(p, op, " / ", PREC_mul, prec);
        return;
    case OP_arith_neg:
        strbuf_addc(&p->line, '-');
        print_value(p, op->operands[0].u.value, PREC_unary);
        return;
    default:
        if (strcmp(op_info(op->code)->dialect, "arith") == 0)
            print_call(p, op);
        else
            exo_print_refuse(p, op->loc, "this value");
        return;
    }
}

/* For the listing: the text that was printed for v since `at`. */
static void note_value(ExoPrinter *p, Value *v, size_t at)
{
    ExoValueText t = { v, p->stmt,
                       arena_strdup(p->arena, strbuf_text(&p->line) + at) };
    VEC_PUSH(p->arena, &p->listing->values, t);
}

static void print_value(ExoPrinter *p, Value *v, int prec)
{
    size_t at = p->line.len;
    if (p->value_names[v->id])
        strbuf_add(&p->line, p->value_names[v->id]);
    else if (v->def)
        print_op(p, v->def, v->type->elem, prec);
    else
        value_name(p, v);
    if (p->listing)
        note_value(p, v, at);
}

static bool is_made_by(ExoPrinter *p, const Value *v, OpCode code)
{
    return !p->value_names[v->id] && v->def && v->def->code == code;
}

void exo_print_data(ExoPrinter *p, Value *v, ScalarType want, bool cast)
{
    if (cast && is_made_by(p, v, OP_arith_cast)) {
        Value *from = v->def->operands[0].u.value;
        if (from->type->elem != want) {
            print_typed(p, from, want, 0);
            return;
        }
    }
    print_typed(p, v, want, 0);
}

void exo_print_product(ExoPrinter *p, Value *v, Value *w)
{
    print_value(p, v, PREC_mul);
    strbuf_add(&p->line, " * ");
    print_value(p, w, PREC_mul + 1);
}

void exo_print_addend(ExoPrinter *p, Value *v, ScalarType want)
{
    if (!is_made_by(p, v, OP_arith_mul) || v->type->elem != want) {
        exo_print_data(p, v, want, true);
        return;
    }
    strbuf_addf(&p->line, "%s(", scalar_type_name(want));
    print_value(p, v, 0);
    strbuf_addc(&p->line, ')');
}

/* ---- lines ------------------------------------------------------------- */

enum { COLUMNS = 79, STEP = 4 };

/* A place where a line may be broken: behind a comma or `(`, before `and`, `or`
 * or a sign, within brackets. */
typedef struct Break {
    size_t at;
    int cost; /* the depth in brackets; more for other places than commas */
} Break;

/* Which break leaves the most readable line of at most room bytes: the one in
 * the fewest brackets, and the last of those; when all come too late, the
 * first. depth carries over from line to line. */
static size_t break_after(const char *s, size_t room, int *depth)
{
    Break best = { 0, 0 };
    int at = *depth, best_depth = 0;
    char quote = 0;
    for (size_t i = 0; s[i]; i++) {
        char c = s[i];
        int cost = 0;
        if (quote) {
            if (c == '\\' && s[i + 1])
                i++;
            else if (c == quote)
                quote = 0;
            continue;
        }
        if (c == '\'' || c == '"')
            quote = c;
        at += (strchr("([{", c) != NULL) - (strchr(")]}", c) != NULL);
        if (at <= 0)
            continue;
        if (c == '(' && s[i + 1] != ')')
            cost = at + 500;
        else if (s[i + 1] != ' ' || s[i + 2] == ')')
            continue;
        else if (c == ',')
            cost = at;
        else if (!strncmp(s + i + 1, " and ", 5) ||
                 !strncmp(s + i + 1, " or ", 4))
            cost = at + 300;
        else if (s[i + 2] == '+' || s[i + 2] == '-')
            cost = at + 1000;
        if (!cost || (best.at && (i + 1 > room || cost > best.cost)))
            continue;
        best = (Break){ i + 1, cost };
        best_depth = at;
    }
    *depth = best_depth;
    return best.at;
}

static void add_indent(ExoPrinter *p, unsigned columns)
{
    for (unsigned i = 0; i < columns; i++)
        strbuf_addc(p->out, ' ');
}

/* The comment of the statement whose first line this is. */
static void add_note(ExoPrinter *p)
{
    const Op *op = p->noted;
    p->noted = NULL;
    if (!p->notes || !op)
        return;
    size_t at = p->out->len;
    strbuf_add(p->out, "  # ");
    size_t text = p->out->len;
    p->notes->note(p->notes->user, op, p->out);
    if (p->out->len == text) {
        p->out->len = at;
        p->out->data[at] = 0;
    }
}

void exo_print_line(ExoPrinter *p)
{
    const char *s = strbuf_text(&p->line);
    unsigned column = STEP * p->indent;
    int depth = 0;
    while (column + strlen(s) > COLUMNS) {
        size_t room = column < COLUMNS ? COLUMNS - column : 1;
        size_t n = break_after(s, room, &depth);
        if (!n)
            break;
        add_indent(p, column);
        strbuf_addn(p->out, s, n);
        strbuf_addc(p->out, '\n');
        s += n + (s[n] == ' ');
        column = STEP * (p->indent + 2);
    }
    add_indent(p, column);
    strbuf_add(p->out, s);
    add_note(p);
    strbuf_addc(p->out, '\n');
    p->line.len = 0;
    if (p->line.data)
        p->line.data[0] = 0;
}
