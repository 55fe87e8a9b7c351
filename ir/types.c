/* Interned types and literal parameters, and how they print.
 *
 * Everything goes through ctx_unique, which compares bytes: structures are
 * zeroed before they are filled, so that padding never tells two apart. */
#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

static Param param_clean(Ctx *ctx, const Param *p)
{
    Param q;
    memset(&q, 0, sizeof q);
    q.kind = p->kind;
    q.name = p->name ? ctx_intern(ctx, p->name) : NULL;
    switch (p->kind) {
    case PARAM_none:
        break;
    case PARAM_int:
    case PARAM_bool:
    case PARAM_type:
        q.i = p->i;
        break;
    case PARAM_float:
        q.f = p->f;
        break;
    case PARAM_str:
        q.s = ctx_intern(ctx, p->s);
        break;
    case PARAM_tuple:
        q.n = p->n;
        q.items = param_intern(ctx, p->n, p->items);
        break;
    }
    return q;
}

const Param *param_intern(Ctx *ctx, unsigned n, const Param *params)
{
    Param few[8];
    if (n == 0)
        return NULL;
    Arena *many = n > sizeof few / sizeof *few ? arena_new() : NULL;
    Param *clean = many ? ARENA_ARRAY(many, Param, n) : few;
    for (unsigned i = 0; i < n; i++) {
        Param q = param_clean(ctx, &params[i]);
        memcpy(&clean[i], &q, sizeof q);
    }
    const Param *one = ctx_unique(ctx, clean, n * sizeof *clean);
    arena_free(many);
    return one;
}

bool param_equal(const Param *a, const Param *b)
{
    if (a->kind != b->kind || a->n != b->n || a->i != b->i || a->f != b->f)
        return false;
    const char *an = a->name ? a->name : "", *bn = b->name ? b->name : "";
    if (strcmp(an, bn))
        return false;
    if (a->kind == PARAM_str && strcmp(a->s, b->s))
        return false;
    for (unsigned i = 0; a->kind == PARAM_tuple && i < a->n; i++)
        if (!param_equal(&a->items[i], &b->items[i]))
            return false;
    return true;
}

const Param *param_find(unsigned n, const Param *params, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (params[i].name && !strcmp(params[i].name, name))
            return &params[i];
    return NULL;
}

/* With as few digits as read back to the same number. */
static void float_print(StrBuf *out, double f)
{
    size_t at = out->len;
    for (int digits = 1; digits <= 17; digits++) {
        out->len = at;
        strbuf_addf(out, "%.*g", digits, f);
        if (digits == 17 || strtod(out->data + at, NULL) == f)
            break;
    }
    if (!strpbrk(out->data + at, ".einf"))
        strbuf_add(out, ".0");
}

/* A string in single quotes; quote, backslash and control bytes escaped. */
static void quoted_print(StrBuf *out, const char *s)
{
    strbuf_addc(out, '\'');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '\'' || c == '\\')
            strbuf_addf(out, "\\%c", c);
        else if (c < 32 || c == 127)
            strbuf_addf(out, "\\x%02x", c);
        else
            strbuf_addc(out, (char)c);
    }
    strbuf_addc(out, '\'');
}

static void tuple_print(StrBuf *out, unsigned n, const Param *items, bool exo)
{
    strbuf_addc(out, '(');
    for (unsigned i = 0; i < n; i++) {
        if (i)
            strbuf_add(out, ", ");
        param_print(out, &items[i]);
    }
    strbuf_add(out, n == 1 && exo ? ", )" : ")");
}

void param_print(StrBuf *out, const Param *p)
{
    if (p->name)
        strbuf_addf(out, "%s=", p->name);
    switch (p->kind) {
    case PARAM_none:
        strbuf_add(out, "None");
        break;
    case PARAM_int:
        strbuf_addf(out, "%lld", (long long)p->i);
        break;
    case PARAM_bool:
        strbuf_add(out, p->i ? "True" : "False");
        break;
    case PARAM_type:
        strbuf_add(out, scalar_type_name((ScalarType)p->i));
        break;
    case PARAM_float:
        float_print(out, p->f);
        break;
    case PARAM_str:
        quoted_print(out, p->s);
        break;
    case PARAM_tuple:
        tuple_print(out, p->n, p->items, true);
        break;
    }
}

void memref_print(StrBuf *out, const MemRef *m, bool exo)
{
    strbuf_add(out, m->name);
    if (m->n_params)
        tuple_print(out, m->n_params, m->params, exo);
}

void unitref_print(StrBuf *out, const UnitRef *u)
{
    if (u->scale != 1)
        strbuf_addf(out, "%lld * ", (long long)u->scale);
    strbuf_add(out, u->name);
    if (u->n_params)
        tuple_print(out, u->n_params, u->params, false);
}

const MemRef *memref_get(Ctx *ctx, const char *name, unsigned n,
                         const Param *params)
{
    MemRef m;
    memset(&m, 0, sizeof m);
    m.name = ctx_intern(ctx, name);
    m.n_params = n;
    m.params = param_intern(ctx, n, params);
    return ctx_unique(ctx, &m, sizeof m);
}

const UnitRef *unitref_get(Ctx *ctx, int64_t scale, const char *name,
                           unsigned n, const Param *params)
{
    UnitRef u;
    memset(&u, 0, sizeof u);
    u.scale = scale;
    u.name = ctx_intern(ctx, name);
    u.n_params = n;
    u.params = param_intern(ctx, n, params);
    return ctx_unique(ctx, &u, sizeof u);
}

static const Type *type_get(Ctx *ctx, TypeKind kind, ScalarType elem,
                            unsigned rank, const MemRef *mem, int64_t n)
{
    Type t;
    memset(&t, 0, sizeof t);
    t.kind = kind;
    t.elem = elem;
    t.rank = rank;
    t.mem = mem;
    t.n = n;
    return ctx_unique(ctx, &t, sizeof t);
}

const Type *type_scalar(Ctx *ctx, ScalarType elem)
{
    return type_get(ctx, TK_scalar, elem, 0, NULL, 0);
}

const Type *type_tensor(Ctx *ctx, TypeKind kind, ScalarType elem, unsigned rank,
                        const MemRef *mem)
{
    return type_get(ctx, kind, elem, rank, mem, 0);
}

const Type *type_barrier(Ctx *ctx, unsigned rank, const MemRef *mechanism)
{
    return type_get(ctx, TK_barrier, TY_none, rank, mechanism, 0);
}

const Type *type_mbarrier(Ctx *ctx, unsigned rank)
{
    return type_get(ctx, TK_mbarrier, TY_none, rank, NULL, 0);
}

const Type *type_ring(Ctx *ctx, int64_t depth)
{
    return type_get(ctx, TK_ring, TY_none, 0, NULL, depth);
}

const Type *type_frag(Ctx *ctx, ScalarType elem, int64_t n, const MemRef *mem)
{
    return type_get(ctx, TK_frag, elem, 0, mem, n);
}
