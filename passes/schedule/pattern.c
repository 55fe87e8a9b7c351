/* Matching by syntax: the pattern and the statement's own text are parsed by
 * the same parser and compared node by node. */
#include "passes/schedule/pattern.h"

#include <string.h>

/* ---- syntax ------------------------------------------------------------ */

static bool is_wild(const AstExpr *e)
{
    return e && e->kind == AST_name && !strcmp(e->name, "_");
}

static bool same_name(const char *pattern, const char *name)
{
    return pattern == name ||
           (pattern && name &&
            (!strcmp(pattern, "_") || !strcmp(pattern, name)));
}

/* A wildcard at the end stands for all that is left. */
static bool args_match(const AstExpr *p, const AstExpr *e)
{
    unsigned i = 0;
    for (; i < p->n; i++) {
        if (i > 0 && i + 1 == p->n && is_wild(p->args[i]))
            return true;
        if (i >= e->n || !ast_matches(p->args[i], e->args[i]))
            return false;
    }
    return i == e->n;
}

bool ast_matches(const AstExpr *p, const AstExpr *e)
{
    if (!p || !e)
        return !p && !e;
    if (is_wild(p))
        return true;
    if (p->kind != e->kind || p->op != e->op)
        return false;
    switch (p->kind) {
    case AST_int:
    case AST_bool:
        return p->i == e->i;
    case AST_float:
        return p->f == e->f;
    case AST_slice:
        return ast_matches(p->args[0], e->args[0]) &&
               ast_matches(p->args[1], e->args[1]);
    default:
        break;
    }
    if ((p->name || e->name) && !same_name(p->name, e->name))
        return false;
    return args_match(p, e);
}

/* A bare name on the left also means any element of it. */
static bool target_matches(const AstExpr *p, const AstExpr *e)
{
    if (p->kind == AST_name && e->kind == AST_index)
        e = e->args[0];
    return ast_matches(p, e);
}

/* A call without trailing barriers also means one with them. */
static bool call_matches(const AstExpr *p, const AstExpr *e)
{
    bool bare = !(p->kind == AST_binary && p->op == XOP_shift);
    while (bare && e->kind == AST_binary && e->op == XOP_shift)
        e = e->args[0];
    return ast_matches(p, e);
}

static bool stmt_matches(const AstStmt *p, const AstStmt *s)
{
    if (p->kind == AST_expr && p->a && p->a->kind == AST_name)
        return (s->kind == AST_for || s->kind == AST_alloc) &&
               same_name(p->a->name, s->name);
    if (p->kind != s->kind)
        return false;
    switch (p->kind) {
    case AST_for:
    case AST_alloc:
        return same_name(p->name, s->name) && ast_matches(p->a, s->a);
    case AST_assign:
    case AST_reduce:
        return target_matches(p->a, s->a) && ast_matches(p->b, s->b);
    case AST_expr:
        return call_matches(p->a, s->a);
    case AST_pass:
        return true;
    default:
        return ast_matches(p->a, s->a);
    }
}

/* ---- texts to syntax --------------------------------------------------- */

static bool starts_with(const char *s, const char *word)
{
    size_t n = strlen(word);
    return !strncmp(s, word, n) && (s[n] == ' ' || s[n] == '(');
}

/* The statement of a text, a block put below a header. */
static AstStmt *syntax_of(Sched *s, Loc loc, const char *text, size_t n)
{
    static const char *const headers[] = { "for", "if", "with" };
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    while (n && *text == ' ')
        text++, n--;
    const char *one = arena_strndup(s->arena, text, n);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (starts_with(one, headers[i]))
            one = arena_printf(s->arena, "%s%s\n    pass\n", one,
                               n && text[n - 1] == ':' ? "" : ":");
    return exo_syntax_stmt(s->ctx, s->arena, loc, one);
}

/* The statement's own text ends before the comment lines of the next. */
static size_t mark_length(const char *text, size_t at, size_t end)
{
    size_t n = 0, line = at;
    while (line < end) {
        const char *nl = memchr(text + line, '\n', end - line);
        size_t next = nl ? (size_t)(nl - text) + 1 : end;
        size_t first = line + strspn(text + line, " ");
        if (text[first] == '#')
            break;
        n = next - at;
        line = next;
    }
    return n;
}

static bool is_below(const Op *op, const Op *under)
{
    for (op = op_parent(op); op; op = op_parent(op))
        if (op == under)
            return true;
    return false;
}

bool pattern_find(Sched *s, const Op *under, Loc loc, const char *pattern,
                  OpVec *out)
{
    const ExoListing *l = sched_listing(s);
    AstStmt *p = l ? syntax_of(s, loc, pattern, strlen(pattern)) : NULL;
    if (!p)
        return false;
    for (size_t i = 0; i < l->marks.len; i++) {
        const ExoMark *k = &l->marks.data[i];
        if (!k->op || (under && !is_below(k->op, under)))
            continue;
        size_t n = mark_length(l->text, k->at, k->end);
        CtxMark mark = ctx_mark(s->ctx);
        AstStmt *t = syntax_of(s, loc, l->text + k->at, n);
        if (!t)
            ctx_rollback(s->ctx, mark);
        if (t && stmt_matches(p, t))
            VEC_PUSH(s->arena, out, (Op *)k->op);
    }
    return true;
}

bool pattern_values(Sched *s, const Op *stmt, Loc loc, const char *pattern,
                    ValueVec *out)
{
    const ExoListing *l = sched_listing(s);
    AstExpr *p =
        l ? exo_syntax_expr(s->ctx, s->arena, loc, pattern, strlen(pattern))
          : NULL;
    if (!p)
        return false;
    for (size_t i = 0; i < l->values.len; i++) {
        const ExoValueText *v = &l->values.data[i];
        if (v->stmt != stmt)
            continue;
        CtxMark mark = ctx_mark(s->ctx);
        AstExpr *e =
            exo_syntax_expr(s->ctx, s->arena, loc, v->text, strlen(v->text));
        if (!e)
            ctx_rollback(s->ctx, mark);
        if (e && ast_matches(p, e))
            VEC_PUSH(s->arena, out, v->value);
    }
    return true;
}
