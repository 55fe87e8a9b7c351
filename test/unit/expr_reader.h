/* Reads index expressions and conditions as ir/affine.h prints them, for tests:
 * a reader of its own, so that printing is not tested against itself. Unknown
 * names are configuration reads; `stride(?, 1)` is a stride of no tensor. Text
 * that cannot be read fails the test. */
#ifndef EXO_TEST_UNIT_EXPR_READER_H
#define EXO_TEST_UNIT_EXPR_READER_H

#include "ir/affine.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    ExprCtx *x;
    const char *at;
    bool exo;
} Reader;

static const Affine *read_sum(Reader *r);
static const Cond *read_or(Reader *r);

static bool accept(Reader *r, const char *word)
{
    while (*r->at == ' ')
        r->at++;
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static const Affine *read_name(Reader *r)
{
    char name[64];
    size_t n = strcspn(r->at, " ()+-*/%,");
    cr_assert(n > 0 && n < sizeof name, "name expected at '%s'", r->at);
    memcpy(name, r->at, n);
    name[n] = '\0';
    r->at += n;
    for (VarId v = 1; v <= var_count(r->x); v++)
        if (strcmp(var_get(r->x, v)->name, name) == 0)
            return affine_var(r->x, v);
    return affine_config(r->x, name);
}

static const Affine *read_factor(Reader *r)
{
    if (accept(r, "(")) {
        const Affine *e = read_sum(r);
        cr_assert(accept(r, ")"), "bracket expected at '%s'", r->at);
        return e;
    }
    if (accept(r, "-"))
        return affine_neg(r->x, read_factor(r));
    if (accept(r, "stride(?, ")) {
        unsigned long dim = strtoul(r->at, (char **)&r->at, 10);
        cr_assert(accept(r, ")"));
        return affine_stride(r->x, NULL, (unsigned)dim);
    }
    if (*r->at >= '0' && *r->at <= '9')
        return affine_const(r->x, strtoll(r->at, (char **)&r->at, 10));
    if (!r->exo)
        cr_assert(accept(r, "%"), "sigil expected at '%s'", r->at);
    return read_name(r);
}

static const Affine *read_product(Reader *r)
{
    const Affine *e = read_factor(r);
    for (;;) {
        if (accept(r, "*"))
            e = affine_mul(r->x, e, read_factor(r));
        else if (accept(r, r->exo ? "/" : "floordiv"))
            e = affine_floordiv(r->x, e, strtoll(r->at, (char **)&r->at, 10));
        else if (accept(r, r->exo ? "%" : "mod"))
            e = affine_mod(r->x, e, strtoll(r->at, (char **)&r->at, 10));
        else
            return e;
    }
}

static const Affine *read_sum(Reader *r)
{
    const Affine *e = read_product(r);
    for (;;) {
        if (accept(r, "+"))
            e = affine_add(r->x, e, read_product(r));
        else if (accept(r, "-"))
            e = affine_sub(r->x, e, read_product(r));
        else
            return e;
    }
}

/* A bracket may open a condition or an expression: the other one of the two
 * has no comparison behind its bracket. */
static bool opens_condition(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0)
            return false;
        if (strchr("<>=!", *at) || strncmp(at, "not ", 4) == 0)
            return true;
    }
    return false;
}

static const Cond *read_comparison(Reader *r)
{
    static const struct {
        const char *text;
        CmpOp op;
    } ops[] = { { "<=", CMP_le }, { ">=", CMP_ge }, { "==", CMP_eq },
                { "!=", CMP_ne }, { "<", CMP_lt },  { ">", CMP_gt } };
    if (accept(r, "not "))
        return cond_not(r->x, read_comparison(r));
    if (accept(r, "true"))
        return cond_bool(r->x, true);
    if (accept(r, "false"))
        return cond_bool(r->x, false);
    while (*r->at == ' ')
        r->at++;
    if (*r->at == '(' && opens_condition(r->at)) {
        r->at++;
        const Cond *c = read_or(r);
        cr_assert(accept(r, ")"));
        return c;
    }
    const Affine *lhs = read_sum(r);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (accept(r, ops[i].text))
            return cond_cmp(r->x, ops[i].op, lhs, read_sum(r));
    cr_assert_fail("comparison expected at '%s'", r->at);
    return NULL;
}

static const Cond *read_and(Reader *r)
{
    const Cond *c = read_comparison(r);
    while (accept(r, "and "))
        c = cond_and(r->x, c, read_comparison(r));
    return c;
}

static const Cond *read_or(Reader *r)
{
    const Cond *c = read_and(r);
    while (accept(r, "or "))
        c = cond_or(r->x, c, read_and(r));
    return c;
}

/* The expression or condition written as text, in .exo form. */
static inline const Affine *E(ExprCtx *x, const char *text)
{
    Reader r = { x, text, true };
    const Affine *e = read_sum(&r);
    cr_assert(*r.at == '\0', "unread: '%s'", r.at);
    return e;
}

static inline const Cond *C(ExprCtx *x, const char *text)
{
    Reader r = { x, text, true };
    const Cond *c = read_or(&r);
    cr_assert(*r.at == '\0', "unread: '%s'", r.at);
    return c;
}

#endif
