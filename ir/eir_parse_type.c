/* The .eir parser's pieces: literals, memories, units, attributes, types. */
#include "ir/eir_parser.h"

#include <math.h>
#include <string.h>

/* ---- literals ------------------------------------------------------------ */

bool eir_parse_int(EirParser *p, int64_t *out)
{
    bool minus = eir_accept(p, EIR_minus);
    uint64_t u = p->lx.tok.u;
    if (p->lx.tok.kind != EIR_int)
        return eir_expected(p, "an integer");
    if (u > (uint64_t)INT64_MAX + minus)
        return eir_error(p, p->lx.tok.loc, "an integer of more than 64 bits");
    *out = minus ? (int64_t)(0 - u) : (int64_t)u;
    eir_lex_next(&p->lx);
    return true;
}

static bool literal_number(EirParser *p, Param *out)
{
    EirLexer ahead = p->lx;
    bool minus = ahead.tok.kind == EIR_minus;
    if (minus)
        eir_lex_next(&ahead);
    bool inf = ahead.tok.kind == EIR_ident && !strcmp(ahead.tok.text, "inf");
    bool nan = ahead.tok.kind == EIR_ident && !strcmp(ahead.tok.text, "nan");
    if (ahead.tok.kind == EIR_float || inf || nan) {
        double f = inf ? (double)INFINITY : nan ? (double)NAN : ahead.tok.f;
        out->kind = PARAM_float;
        out->f = minus ? -f : f;
        eir_lex_next(&ahead);
        p->lx = ahead;
        return true;
    }
    out->kind = PARAM_int;
    return eir_parse_int(p, &out->i);
}

static bool literal_word(EirParser *p, Param *out)
{
    const char *s = p->lx.tok.text;
    if (!strcmp(s, "None")) {
        out->kind = PARAM_none;
    } else if (!strcmp(s, "True") || !strcmp(s, "False")) {
        out->kind = PARAM_bool;
        out->i = *s == 'T';
    } else {
        out->kind = PARAM_type;
        out->i = (int64_t)scalar_type_from_name(s, strlen(s));
        if (out->i == TY_none)
            return eir_expected(p, "a literal");
    }
    eir_lex_next(&p->lx);
    return true;
}

static bool literal_tuple(EirParser *p, Param *out)
{
    EirParamVec items = { 0 };
    Loc loc = p->lx.tok.loc;
    eir_lex_next(&p->lx);
    if (!eir_enter(p, loc))
        return false;
    bool ok = eir_parse_params(p, EIR_rparen, &items);
    eir_leave(p);
    out->kind = PARAM_tuple;
    out->n = (unsigned)items.len;
    out->items = items.data;
    return ok;
}

bool eir_parse_literal(EirParser *p, Param *out)
{
    memset(out, 0, sizeof *out);
    switch (p->lx.tok.kind) {
    case EIR_lparen:
        return literal_tuple(p, out);
    case EIR_string:
        out->kind = PARAM_str;
        out->s = p->lx.tok.text;
        eir_lex_next(&p->lx);
        return true;
    case EIR_int:
    case EIR_float:
    case EIR_minus:
        return literal_number(p, out);
    case EIR_ident:
        if (eir_at_word(p, "inf") || eir_at_word(p, "nan"))
            return literal_number(p, out);
        return literal_word(p, out);
    default:
        return eir_expected(p, "a literal");
    }
}

/* [name =] literal */
static bool parse_param(EirParser *p, Param *out)
{
    const char *name = NULL;
    if (p->lx.tok.kind == EIR_ident) {
        EirLexer ahead = p->lx;
        eir_lex_next(&ahead);
        if (ahead.tok.kind == EIR_assign) {
            name = p->lx.tok.text;
            eir_lex_next(&ahead);
            p->lx = ahead;
        }
    }
    bool ok = eir_parse_literal(p, out);
    out->name = name;
    return ok;
}

bool eir_parse_params(EirParser *p, EirTok close, EirParamVec *out)
{
    while (p->lx.tok.kind != close) {
        Param item;
        if (!eir_list_room(p, p->lx.tok.loc, out->len) ||
            !parse_param(p, &item))
            return false;
        VEC_PUSH(p->scratch, out, item);
        if (!eir_accept(p, EIR_comma))
            break;
    }
    return eir_expect(p, close);
}

/* NAME or NAME(params), for memories and units. */
static bool parse_named(EirParser *p, const char *what, const char **name,
                        EirParamVec *params)
{
    if (p->lx.tok.kind != EIR_ident)
        return eir_expected(p, what);
    *name = p->lx.tok.text;
    eir_lex_next(&p->lx);
    return !eir_accept(p, EIR_lparen) ||
           eir_parse_params(p, EIR_rparen, params);
}

const MemRef *eir_parse_memref(EirParser *p)
{
    const char *name = NULL;
    EirParamVec params = { 0 };
    if (!parse_named(p, "a memory", &name, &params))
        return NULL;
    return memref_get(p->ctx, name, (unsigned)params.len, params.data);
}

const UnitRef *eir_parse_unitref(EirParser *p)
{
    const char *name = NULL;
    EirParamVec params = { 0 };
    int64_t scale = 1;
    if (p->lx.tok.kind == EIR_int || p->lx.tok.kind == EIR_minus)
        if (!eir_parse_int(p, &scale) || !eir_expect(p, EIR_star))
            return NULL;
    if (!parse_named(p, "a unit", &name, &params))
        return NULL;
    return unitref_get(p->ctx, scale, name, (unsigned)params.len, params.data);
}

static const Affine **keep_indices(EirParser *p, const EirAffineVec *v)
{
    return arena_memdup(p->m->arena, v->data, v->len * sizeof *v->data);
}

bool eir_parse_attr_value(EirParser *p, Attr *out)
{
    if (p->lx.tok.kind == EIR_lbracket) {
        EirAffineVec v = { 0 };
        if (!eir_parse_index_list(p, &v))
            return false;
        out->kind = ATTR_indices;
        out->n = (unsigned)v.len;
        out->indices = keep_indices(p, &v);
        return true;
    }
    if (eir_at_wrapped(p, "mem")) {
        out->kind = ATTR_mem;
        return eir_skip_wrapped(p) && (out->mem = eir_parse_memref(p)) &&
               eir_expect(p, EIR_rparen);
    }
    if (eir_at_wrapped(p, "unit")) {
        out->kind = ATTR_unit;
        return eir_skip_wrapped(p) && (out->unit = eir_parse_unitref(p)) &&
               eir_expect(p, EIR_rparen);
    }
    if (eir_at_wrapped(p, "index")) {
        out->kind = ATTR_index;
        return eir_skip_wrapped(p) && (out->index = eir_parse_index(p)) &&
               eir_expect(p, EIR_rparen);
    }
    Param literal;
    if (!eir_parse_literal(p, &literal))
        return false;
    out->kind = ATTR_param;
    out->param = param_intern(p->ctx, 1, &literal);
    return true;
}

/* ---- types --------------------------------------------------------------- */

/* `[a, b ring depth, ..]`, absent for rank 0. */
static bool parse_shape(EirParser *p, EirTyped *out, unsigned *rank)
{
    EirAffineVec v = { 0 };
    if (eir_accept(p, EIR_lbracket)) {
        while (p->lx.tok.kind != EIR_rbracket) {
            Loc loc = p->lx.tok.loc;
            const Affine *e = NULL;
            if (!eir_list_room(p, loc, v.len) || !(e = eir_parse_index(p)))
                return false;
            if (eir_accept_word(p, "ring")) {
                if (out->ring_dim >= 0)
                    return eir_error(p, loc, "a second ring dimension");
                out->ring_dim = (int)v.len;
                if (!eir_parse_int(p, &out->ring_depth))
                    return false;
            }
            VEC_PUSH(p->scratch, &v, e);
            if (!eir_accept(p, EIR_comma))
                break;
        }
        if (!eir_expect(p, EIR_rbracket))
            return false;
    }
    out->shape = keep_indices(p, &v);
    *rank = (unsigned)v.len;
    return !eir_accept_word(p, "guarded") || (out->guard = eir_parse_value(p));
}

static bool parse_elem(EirParser *p, ScalarType *out)
{
    if (p->lx.tok.kind == EIR_ident)
        *out = scalar_type_from_name(p->lx.tok.text, strlen(p->lx.tok.text));
    else
        *out = TY_none;
    if (*out == TY_none)
        return eir_expected(p, "a type");
    eir_lex_next(&p->lx);
    return true;
}

static bool parse_optional_mem(EirParser *p, const MemRef **out)
{
    *out = NULL;
    return !eir_accept(p, EIR_comma) || (*out = eir_parse_memref(p));
}

static bool parse_tensor_type(EirParser *p, TypeKind kind, EirTyped *out)
{
    ScalarType elem = TY_none;
    const MemRef *mem = NULL;
    unsigned rank = 0;
    if (!eir_expect(p, EIR_lt) || !parse_elem(p, &elem) ||
        !parse_optional_mem(p, &mem) || !eir_expect(p, EIR_gt) ||
        !parse_shape(p, out, &rank))
        return false;
    out->type = type_tensor(p->ctx, kind, elem, rank, mem);
    return true;
}

static bool parse_barrier_type(EirParser *p, EirTyped *out)
{
    const MemRef *mem = NULL;
    unsigned rank = 0;
    if (!eir_expect(p, EIR_lt) || !(mem = eir_parse_memref(p)) ||
        !eir_expect(p, EIR_gt) || !parse_shape(p, out, &rank))
        return false;
    out->type = type_barrier(p->ctx, rank, mem);
    return true;
}

static bool parse_frag_type(EirParser *p, EirTyped *out)
{
    ScalarType elem = TY_none;
    const MemRef *mem = NULL;
    int64_t n = 0;
    if (!eir_expect(p, EIR_lt) || !parse_elem(p, &elem) ||
        !eir_expect(p, EIR_comma) || !eir_parse_int(p, &n) ||
        !parse_optional_mem(p, &mem) || !eir_expect(p, EIR_gt))
        return false;
    out->type = type_frag(p->ctx, elem, n, mem);
    return true;
}

static bool parse_ring_type(EirParser *p, EirTyped *out)
{
    int64_t depth = 0;
    if (!eir_expect(p, EIR_lt) || !eir_parse_int(p, &depth) ||
        !eir_expect(p, EIR_gt))
        return false;
    out->type = type_ring(p->ctx, depth);
    return true;
}

bool eir_parse_type(EirParser *p, EirTyped *out)
{
    *out = (EirTyped){ .ring_dim = -1 };
    unsigned rank = 0;
    ScalarType elem = TY_none;
    if (eir_accept_word(p, "tensor"))
        return parse_tensor_type(p, TK_tensor, out);
    if (eir_accept_word(p, "window"))
        return parse_tensor_type(p, TK_window, out);
    if (eir_accept_word(p, "map"))
        return parse_tensor_type(p, TK_map, out);
    if (eir_accept_word(p, "barrier"))
        return parse_barrier_type(p, out);
    if (eir_accept_word(p, "frag"))
        return parse_frag_type(p, out);
    if (eir_accept_word(p, "ring"))
        return parse_ring_type(p, out);
    if (eir_accept_word(p, "mbarrier")) {
        if (!parse_shape(p, out, &rank))
            return false;
        out->type = type_mbarrier(p->ctx, rank);
        return true;
    }
    if (!parse_elem(p, &elem))
        return false;
    out->type = type_scalar(p->ctx, elem);
    return true;
}
