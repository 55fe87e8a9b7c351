/* The .eir parser: ops, blocks, modules. Recursive descent; only blocks and
 * brackets recurse, to EIR_MAX_NESTING.
 *
 * A head (results, op, operands, attributes, types, origin, location) is read
 * whole before its op is made, so that statements are numbered in pre-order;
 * then its blocks are read. After an error the names that the op would have
 * defined are marked broken, what belongs to the op is skipped, and reading
 * goes on with the next op. */
#include "ir/eir.h"

#include "ir/eir_parser.h"
#include "ir/eir_types.h"
#include "ir/lib_entry.h"

#include <string.h>

typedef struct ResultName {
    const char *name;
    Loc loc;
} ResultName;
typedef VEC(ResultName) ResultNameVec;
typedef VEC(EirTyped) TypedVec;

/* Everything of an op but its blocks. */
typedef struct Head {
    Loc loc;
    OpCode code;
    const char *comment;
    ResultNameVec results;
    EirOperandVec operands;
    EirAttrVec attrs;
    TypedVec types;
    Origin origin;
} Head;

/* A name that a block argument gets when the block is made. */
typedef struct ArgName {
    const char *name;
    Loc loc;
} ArgName;
typedef VEC(ArgName) ArgNameVec;

static bool parse_ops(EirParser *p, Block *b);

/* ---- recovery ------------------------------------------------------------ */

static void skip_all(EirParser *p)
{
    p->lx.at = p->lx.n;
    eir_lex_next(&p->lx);
}

/* Skips an op in which an error was met: from its start, so that the braces it
 * opened are known, past the error to a token that begins a line outside them
 * or to the brace that ends the block. */
static void recover(EirParser *p, const EirLexer *start)
{
    size_t reached = p->lx.at;
    unsigned depth = start->tok.kind == EIR_lbrace;
    if (p->n_errors > EIR_MAX_ERRORS)
        skip_all(p);
    if (p->lx.tok.kind == EIR_eof)
        return;
    p->lx = *start;
    eir_lex_next(&p->lx);
    for (; p->lx.tok.kind != EIR_eof; eir_lex_next(&p->lx)) {
        EirTok kind = p->lx.tok.kind;
        bool past = p->lx.at >= reached && depth == 0;
        if (past &&
            (kind == EIR_rbrace ||
             (p->lx.tok.first && (kind == EIR_ident || kind == EIR_value))))
            return;
        if (kind == EIR_lbrace)
            depth++;
        else if (kind == EIR_rbrace && depth > 0)
            depth--;
    }
}

static void define_broken(EirParser *p, const ResultNameVec *names)
{
    for (size_t i = 0; i < names->len; i++)
        if (!name_map_get(p->names, names->data[i].name))
            eir_define(p, names->data[i].name, names->data[i].loc, NULL, 0);
}

/* ---- heads --------------------------------------------------------------- */

static bool parse_result_names(EirParser *p, ResultNameVec *out)
{
    if (p->lx.tok.kind != EIR_value)
        return true;
    do {
        ResultName r = { p->lx.tok.text, p->lx.tok.loc };
        if (!eir_list_room(p, r.loc, out->len) || !eir_expect(p, EIR_value))
            return false;
        VEC_PUSH(p->scratch, out, r);
    } while (eir_accept(p, EIR_comma));
    return eir_expect(p, EIR_assign);
}

/* Is `{` the start of attributes, not of a block? */
static bool at_attrs(const EirParser *p)
{
    if (p->lx.tok.kind != EIR_lbrace)
        return false;
    EirLexer ahead = p->lx;
    eir_lex_next(&ahead);
    if (ahead.tok.kind != EIR_ident)
        return false;
    eir_lex_next(&ahead);
    return ahead.tok.kind == EIR_assign;
}

static void add_attr(EirParser *p, Head *h, Attr attr)
{
    attr.key = ctx_intern(p->ctx, attr.key);
    VEC_PUSH(p->scratch, &h->attrs, attr);
}

static void add_param(EirParser *p, Head *h, const char *key, Param value)
{
    add_attr(p, h,
             (Attr){ .key = key,
                     .kind = ATTR_param,
                     .param = param_intern(p->ctx, 1, &value) });
}

static void add_str(EirParser *p, Head *h, const char *key, const char *s)
{
    add_param(p, h, key, (Param){ .kind = PARAM_str, .s = s });
}

static bool parse_attrs(EirParser *p, Head *h)
{
    if (!at_attrs(p))
        return true;
    eir_lex_next(&p->lx);
    do {
        Attr attr = { .key = p->lx.tok.text };
        Loc loc = p->lx.tok.loc;
        if (!eir_list_room(p, loc, h->attrs.len) || !eir_expect(p, EIR_ident) ||
            !eir_expect(p, EIR_assign))
            return false;
        for (size_t i = 0; i < h->attrs.len; i++)
            if (h->attrs.data[i].key == attr.key)
                return eir_error(p, loc, "a second attribute '%.60s'",
                                 attr.key);
        if (!eir_parse_attr_value(p, &attr))
            return false;
        add_attr(p, h, attr);
    } while (eir_accept(p, EIR_comma));
    return eir_expect(p, EIR_rbrace);
}

static bool parse_operands(EirParser *p, Head *h, EirTok close)
{
    while (p->lx.tok.kind != close) {
        Operand o;
        if (!eir_list_room(p, p->lx.tok.loc, h->operands.len) ||
            !eir_parse_operand(p, &o))
            return false;
        VEC_PUSH(p->scratch, &h->operands, o);
        if (!eir_accept(p, EIR_comma))
            break;
    }
    return true;
}

/* Does an operand list start here? It does so on the op's own line. */
static bool at_operands(const EirParser *p)
{
    if (p->lx.tok.first)
        return false;
    switch (p->lx.tok.kind) {
    case EIR_eof:
    case EIR_lbrace:
    case EIR_rbrace:
    case EIR_colon:
    case EIR_arrow:
        return false;
    case EIR_ident:
        return !eir_at_word(p, "origin") && !eir_at_word(p, "loc");
    default:
        return true;
    }
}

static bool parse_types(EirParser *p, Head *h)
{
    do {
        EirTyped t;
        if (!eir_list_room(p, p->lx.tok.loc, h->types.len) ||
            !eir_parse_type(p, &t))
            return false;
        VEC_PUSH(p->scratch, &h->types, t);
    } while (eir_accept(p, EIR_comma));
    return true;
}

/* origin(#12) or origin(#12, [a, b]) */
static bool parse_origin(EirParser *p, Head *h)
{
    if (!eir_accept_word(p, "origin"))
        return true;
    if (!eir_expect(p, EIR_lparen))
        return false;
    h->origin.sid = (uint32_t)p->lx.tok.u;
    if (!eir_expect(p, EIR_sid))
        return false;
    EirAffineVec v = { 0 };
    if (eir_accept(p, EIR_comma) && !eir_parse_index_list(p, &v))
        return false;
    h->origin.n = (unsigned)v.len;
    h->origin.iters = arena_memdup(p->m->arena, v.data, v.len * sizeof *v.data);
    return eir_expect(p, EIR_rparen);
}

/* The file number of a source named in the text; each is registered once. */
static uint32_t source_file(EirParser *p, const char *name)
{
    uint32_t *known = name_map_get(p->sources, name);
    if (!known) {
        known = ARENA_NEW(p->scratch, uint32_t);
        *known = ctx_add_source(p->ctx, name, "", 0);
        name_map_set(p->sources, name, known);
    }
    return *known;
}

static bool parse_loc_number(EirParser *p, uint32_t *out)
{
    if (p->lx.tok.kind == EIR_int && p->lx.tok.u <= UINT32_MAX) {
        *out = (uint32_t)p->lx.tok.u;
        eir_lex_next(&p->lx);
        return true;
    }
    return eir_expected(p, "a line or column number");
}

/* loc(3:5) or loc("other.exo":3:5) */
static bool parse_loc(EirParser *p, Head *h)
{
    if (p->sourced)
        h->loc = (Loc){ 0 };
    if (!eir_accept_word(p, "loc"))
        return true;
    if (!eir_expect(p, EIR_lparen))
        return false;
    h->loc.file = p->loc_file;
    if (p->lx.tok.kind == EIR_string) {
        h->loc.file = source_file(p, p->lx.tok.text);
        eir_lex_next(&p->lx);
        if (!eir_expect(p, EIR_colon))
            return false;
    }
    return parse_loc_number(p, &h->loc.line) && eir_expect(p, EIR_colon) &&
           parse_loc_number(p, &h->loc.col) && eir_expect(p, EIR_rparen);
}

/* What follows the operands: attributes, types, origin, location. */
static bool parse_tail(EirParser *p, Head *h)
{
    if (!parse_attrs(p, h))
        return false;
    if (eir_accept(p, EIR_colon) && !parse_types(p, h))
        return false;
    return parse_origin(p, h) && parse_loc(p, h);
}

/* ---- making the op ------------------------------------------------------- */

/* For messages. */
static const char *op_text(EirParser *p, OpCode code)
{
    StrBuf s = { 0 };
    eir_op_name(code, &s);
    const char *text = arena_strdup(p->scratch, s.data);
    strbuf_free(&s);
    return text;
}

static void set_extents(EirParser *p, Value *v, const EirTyped *t)
{
    (void)p;
    v->shape = t->shape;
    v->ring_dim = t->ring_dim;
    v->ring_depth = t->ring_depth;
    v->ring_guard = t->guard;
}

static bool set_results(EirParser *p, const Head *h, Op *op)
{
    if (h->types.len && h->types.len != h->results.len)
        return eir_error(p, h->loc, "'%s' op has %zu results, found %zu types",
                         op_text(p, h->code), h->results.len, h->types.len);
    for (unsigned i = 0; i < op->n_results; i++) {
        const EirTyped *t = h->types.len ? &h->types.data[i] : NULL;
        const Type *type = t ? t->type : eir_implied_type(p->ctx, op, i);
        if (!type)
            return eir_error(p, h->loc,
                             "'%s' op needs the type of its result, as in "
                             "': f32'",
                             op_text(p, h->code));
        const char *kept = eir_kept_name(h->results.data[i].name);
        Value *v = op_set_result(p->m, op, i, type, kept);
        if (t)
            set_extents(p, v, t);
        for (unsigned d = 0; !t && d < type->rank; d++)
            v->shape[d] = eir_implied_extent(op, i, d);
    }
    return true;
}

/* A name that is taken is an error, but not one to skip the op for. */
static bool define_results(EirParser *p, const ResultNameVec *names, Op *op)
{
    for (unsigned i = 0; i < op->n_results; i++)
        eir_define(p, names->data[i].name, names->data[i].loc, op->results[i],
                   0);
    return true;
}

/* The op, in its block; its results are typed and not yet visible. */
static Op *make_op(EirParser *p, Head *h, Block *into, unsigned n_blocks)
{
    const OpInfo *row = op_info(h->code);
    if (row->n_results >= 0 && h->results.len != (size_t)row->n_results) {
        eir_error(p, h->loc, "'%s' op has %d results, found %zu names",
                  op_text(p, h->code), row->n_results, h->results.len);
        return NULL;
    }
    Op *op = op_new(p->m, h->code, h->loc, (unsigned)h->operands.len,
                    (unsigned)h->results.len, n_blocks);
    if (op->n_operands)
        memcpy(op->operands, h->operands.data,
               op->n_operands * sizeof *op->operands);
    op->n_attrs = (unsigned)h->attrs.len;
    op->attrs = arena_memdup(p->m->arena, h->attrs.data,
                             op->n_attrs * sizeof *op->attrs);
    op->origin = h->origin;
    op->comment = h->comment;
    if (!set_results(p, h, op))
        return NULL;
    block_append(into, op);
    return op;
}

/* `{`, the ops, `}`, in a scope of its own that the caller has opened. */
static bool parse_braced(EirParser *p, Block *b)
{
    return eir_expect(p, EIR_lbrace) && parse_ops(p, b) &&
           eir_expect(p, EIR_rbrace);
}

/* ---- block arguments ----------------------------------------------------- */

static const struct {
    const char *word;
    VarKind kind;
} var_kinds[] = { { "size", VAR_size }, { "index", VAR_index },
                  { "int", VAR_int },   { "bool", VAR_bool },
                  { "iter", VAR_iter }, { "coord", VAR_coord } };

static bool accept_var_kind(EirParser *p, VarKind *out)
{
    for (size_t i = 0; i < sizeof var_kinds / sizeof *var_kinds; i++)
        if (eir_accept_word(p, var_kinds[i].word)) {
            *out = var_kinds[i].kind;
            return true;
        }
    return false;
}

static const char *var_name(const char *name)
{
    return eir_kept_name(name) ? name : "v";
}

/* %name: kind or %name: type */
static bool parse_parameter(EirParser *p, Block *b)
{
    EirToken tok = p->lx.tok;
    VarKind kind;
    if (!eir_expect(p, EIR_value) || !eir_expect(p, EIR_colon))
        return false;
    if (accept_var_kind(p, &kind)) {
        VarId var = block_add_var(p->m, b, var_name(tok.text), kind);
        return eir_define(p, tok.text, tok.loc, NULL, var);
    }
    EirTyped t;
    if (!eir_parse_type(p, &t))
        return false;
    Value *v = block_add_value(p->m, b, t.type, eir_kept_name(tok.text));
    set_extents(p, v, &t);
    return eir_define(p, tok.text, tok.loc, v, 0);
}

static bool parse_parameters(EirParser *p, Block *b)
{
    if (!eir_expect(p, EIR_lparen))
        return false;
    while (p->lx.tok.kind != EIR_rparen) {
        if (!eir_list_room(p, p->lx.tok.loc, b->n_args) ||
            !parse_parameter(p, b))
            return false;
        if (!eir_accept(p, EIR_comma))
            break;
    }
    return eir_expect(p, EIR_rparen);
}

/* %name in [lo, hi) */
static bool parse_range(EirParser *p, Head *h, ArgNameVec *vars)
{
    ArgName arg = { p->lx.tok.text, p->lx.tok.loc };
    const Affine *lo, *hi;
    if (!eir_list_room(p, arg.loc, vars->len) || !eir_expect(p, EIR_value))
        return false;
    if (!eir_accept_word(p, "in"))
        return eir_expected(p, "'in'");
    if (!eir_expect(p, EIR_lbracket) || !(lo = eir_parse_index(p)) ||
        !eir_expect(p, EIR_comma) || !(hi = eir_parse_index(p)) ||
        !eir_expect(p, EIR_rparen))
        return false;
    VEC_PUSH(p->scratch, vars, arg);
    VEC_PUSH(p->scratch, &h->operands, opnd_index(lo));
    VEC_PUSH(p->scratch, &h->operands, opnd_index(hi));
    return true;
}

/* iter(%a = %init, ..) */
static bool parse_carried(EirParser *p, Head *h, ArgNameVec *names)
{
    if (!eir_accept_word(p, "iter"))
        return true;
    if (!eir_expect(p, EIR_lparen))
        return false;
    do {
        ArgName arg = { p->lx.tok.text, p->lx.tok.loc };
        if (!eir_list_room(p, arg.loc, names->len) ||
            !eir_expect(p, EIR_value) || !eir_expect(p, EIR_assign))
            return false;
        Operand o;
        Loc loc = p->lx.tok.loc;
        if (!eir_parse_operand(p, &o))
            return false;
        if (o.kind != OPND_value)
            return eir_error(p, loc,
                             "a loop carries values, no accesses or "
                             "expressions");
        VEC_PUSH(p->scratch, names, arg);
        VEC_PUSH(p->scratch, &h->operands, o);
    } while (eir_accept(p, EIR_comma));
    return eir_expect(p, EIR_rparen);
}

/* Makes a loop's arguments: the variables with their bounds, what it carries
 * with the types of the initial values. */
static bool add_loop_args(EirParser *p, Op *op, const ArgNameVec *vars,
                          VarKind kind, const ArgNameVec *carried)
{
    Block *b = op->blocks[0];
    bool ok = true;
    unsigned first = eir_first_carried(op);
    for (unsigned i = 0; i < vars->len; i++) {
        const ArgName *a = &vars->data[i];
        VarId v = block_add_var(p->m, b, var_name(a->name), kind);
        if (2 * i < first)
            var_set_bounds(p->m->exprs, v, op->operands[2 * i].u.index,
                           op->operands[2 * i + 1].u.index);
        else
            var_set_bounds(p->m->exprs, v, affine_const(p->m->exprs, 0), NULL);
        ok &= eir_define(p, a->name, a->loc, NULL, v);
    }
    for (size_t i = 0; i < carried->len; i++) {
        const ArgName *a = &carried->data[i];
        const Value *init = op->operands[first + i].u.value;
        Value *v = block_add_value(p->m, b, init->type, eir_kept_name(a->name));
        for (unsigned d = 0; d < init->type->rank; d++)
            v->shape[d] = init->shape[d];
        ok &= eir_define(p, a->name, a->loc, v, 0);
    }
    return ok;
}

/* ---- ops with a syntax of their own -------------------------------------- */

/* mode = tasks, mode = threads(unit) */
static bool parse_mode(EirParser *p, Head *h)
{
    if (!eir_accept_word(p, "mode"))
        return true;
    if (!eir_expect(p, EIR_assign))
        return false;
    const char *mode = p->lx.tok.text;
    if (!eir_expect(p, EIR_ident))
        return false;
    add_str(p, h, "mode", mode);
    if (!eir_accept(p, EIR_lparen))
        return true;
    const UnitRef *unit = eir_parse_unitref(p);
    if (!unit || !eir_expect(p, EIR_rparen))
        return false;
    add_attr(p, h, (Attr){ .key = "unit", .kind = ATTR_unit, .unit = unit });
    return true;
}

/* round %r */
static bool parse_round(EirParser *p, Head *h, ArgNameVec *vars)
{
    if (h->code != OP_async_tasks || !eir_accept_word(p, "round"))
        return true;
    ArgName arg = { p->lx.tok.text, p->lx.tok.loc };
    if (!eir_expect(p, EIR_value))
        return false;
    VEC_PUSH(p->scratch, vars, arg);
    add_param(p, h, "rounds", (Param){ .kind = PARAM_bool, .i = 1 });
    return true;
}

/* The variables, what is carried, the rest of the head, the block. */
static bool parse_loop(EirParser *p, Head *h, Block *into)
{
    ArgNameVec vars = { 0 }, carried = { 0 };
    VarKind kind = h->code == OP_ctl_for ? VAR_iter : VAR_coord;
    do {
        if (!parse_range(p, h, &vars))
            return false;
    } while (h->code == OP_async_tasks && eir_accept(p, EIR_comma));
    if (h->code == OP_async_tasks)
        add_param(p, h, "rank",
                  (Param){ .kind = PARAM_int, .i = (int64_t)vars.len });
    if (!parse_round(p, h, &vars) || !parse_mode(p, h) ||
        !parse_carried(p, h, &carried) || !parse_tail(p, h))
        return false;
    if (carried.len != h->results.len)
        return eir_error(p, h->loc,
                         "a loop that carries %zu values has so many results, "
                         "found %zu names",
                         carried.len, h->results.len);
    Op *op = make_op(p, h, into, 1);
    if (!op)
        return false;
    ResultNameVec results = h->results;
    size_t mark = eir_scope_open(p);
    bool ok = add_loop_args(p, op, &vars, kind, &carried) &&
              parse_braced(p, op->blocks[0]);
    eir_scope_close(p, mark);
    return ok && define_results(p, &results, op);
}

static Block *add_block(EirParser *p, Op *op)
{
    Block **blocks = ARENA_ARRAY(p->m->arena, Block *, op->n_blocks + 1);
    memcpy(blocks, op->blocks, op->n_blocks * sizeof *blocks);
    blocks[op->n_blocks] = block_new(p->m, op);
    op->blocks = blocks;
    return blocks[op->n_blocks++];
}

static bool parse_scoped(EirParser *p, Block *b)
{
    size_t mark = eir_scope_open(p);
    bool ok = parse_braced(p, b);
    eir_scope_close(p, mark);
    return ok;
}

/* ctl.if cond [-> types] tail { .. } [else { .. }] */
static bool parse_if(EirParser *p, Head *h, Block *into)
{
    const Cond *c = eir_parse_cond(p);
    if (!c)
        return false;
    VEC_PUSH(p->scratch, &h->operands, opnd_cond(c));
    if (eir_accept(p, EIR_arrow) && !parse_types(p, h))
        return false;
    if (!parse_tail(p, h))
        return false;
    Op *op = make_op(p, h, into, 1);
    if (!op || !parse_scoped(p, op->blocks[0]))
        return false;
    if (eir_accept_word(p, "else") && !parse_scoped(p, add_block(p, op)))
        return false;
    return define_results(p, &h->results, op);
}

/* @callee [<targs>] (operands) [>> trailing] */
static bool parse_call(EirParser *p, Head *h)
{
    add_str(p, h, eir_callee_key(h->code), p->lx.tok.text);
    eir_lex_next(&p->lx);
    if (eir_accept(p, EIR_lt)) {
        EirParamVec targs = { 0 };
        if (!eir_parse_params(p, EIR_gt, &targs))
            return false;
        add_param(p, h, "targs",
                  (Param){ .kind = PARAM_tuple,
                           .n = (unsigned)targs.len,
                           .items = targs.data });
    }
    if (!eir_expect(p, EIR_lparen) || !parse_operands(p, h, EIR_rparen) ||
        !eir_expect(p, EIR_rparen))
        return false;
    if (eir_accept(p, EIR_shift)) {
        Operand o;
        if (!eir_parse_operand(p, &o))
            return false;
        VEC_PUSH(p->scratch, &h->operands, o);
        add_param(p, h, "trailing", (Param){ .kind = PARAM_int, .i = 1 });
    }
    return true;
}

static bool parse_generic(EirParser *p, Head *h, Block *into)
{
    const OpInfo *row = op_info(h->code);
    bool call = eir_callee_key(h->code) && p->lx.tok.kind == EIR_symbol;
    if (call ? !parse_call(p, h)
             : at_operands(p) && !parse_operands(p, h, EIR_lbrace))
        return false;
    if (!parse_tail(p, h))
        return false;
    unsigned n_blocks = row->n_blocks > 0 ? (unsigned)row->n_blocks : 0;
    Op *op = make_op(p, h, into, n_blocks);
    if (!op)
        return false;
    for (unsigned i = 0; i < n_blocks; i++)
        if (!parse_scoped(p, op->blocks[i]))
            return false;
    return define_results(p, &h->results, op);
}

/* After its results and name. */
static bool parse_op_rest(EirParser *p, Head *h, Block *into)
{
    if (op_info(h->code)->traits & OPT_SYMBOL) {
        return eir_error(p, h->loc, "'%s' op stands at the top level only",
                         op_text(p, h->code));
    }
    switch (h->code) {
    case OP_ctl_for:
    case OP_async_tasks:
        return parse_loop(p, h, into);
    case OP_ctl_if:
        return parse_if(p, h, into);
    default:
        return parse_generic(p, h, into);
    }
}

static bool parse_op(EirParser *p, Head *h, Block *into)
{
    h->comment = p->lx.tok.comment;
    if (!parse_result_names(p, &h->results))
        return false;
    h->loc = p->lx.tok.loc;
    if (p->lx.tok.kind != EIR_ident)
        return eir_expected(p, "an op");
    const char *name = p->lx.tok.text;
    h->code = op_code_from_name(name);
    eir_lex_next(&p->lx);
    if (h->code == OP_none)
        return eir_error(p, h->loc, "no op '%.60s'", name);
    return parse_op_rest(p, h, into);
}

/* Ops up to `}` or the end of the text. */
static bool parse_ops(EirParser *p, Block *b)
{
    if (!eir_enter(p, p->lx.tok.loc))
        return false;
    while (p->lx.tok.kind != EIR_rbrace && p->lx.tok.kind != EIR_eof) {
        Head h = { 0 };
        EirLexer start = p->lx;
        size_t mark = eir_scope_open(p);
        if (parse_op(p, &h, b))
            continue;
        eir_scope_close(p, mark);
        define_broken(p, &h.results);
        recover(p, &start);
    }
    eir_leave(p);
    return true;
}

/* ---- the top level ------------------------------------------------------- */

/* The coordinates of a kernel are its last three variables. */
static void bound_coords(EirParser *p, Op *op)
{
    ExprCtx *x = p->m->exprs;
    int64_t threads = op_attr_int(op, "blockDim", 0);
    int64_t extent[3] = { op_attr_int(op, "clusterDim", 0), threads / 32, 32 };
    Block *b = op->blocks[0];
    unsigned k = 3;
    for (unsigned i = b->n_args; i-- > 0 && k > 0;) {
        VarId v = b->args[i].var;
        if (!v || var_get(x, v)->kind != VAR_coord)
            return;
        if (extent[--k] > 0)
            var_set_bounds(x, v, affine_const(x, 0),
                           affine_const(x, extent[k]));
    }
}

static bool parse_symbol_op(EirParser *p, Head *h)
{
    const char *name = p->lx.tok.text;
    if (!eir_expect(p, EIR_symbol))
        return false;
    add_str(p, h, "name", name);
    Op *op = op_new(p->m, h->code, h->loc, 0, 0, 1);
    block_append(p->m->body, op);
    op->comment = h->comment;
    if (!parse_parameters(p, op->blocks[0]) || !parse_tail(p, h))
        return false;
    op->loc = h->loc;
    op->n_attrs = (unsigned)h->attrs.len;
    op->attrs = arena_memdup(p->m->arena, h->attrs.data,
                             op->n_attrs * sizeof *op->attrs);
    if (h->code == OP_async_kernel)
        bound_coords(p, op);
    return parse_braced(p, op->blocks[0]);
}

static bool parse_import(EirParser *p)
{
    Module *m = p->m;
    const char *path = p->lx.tok.text;
    if (!eir_list_room(p, p->lx.tok.loc, m->n_imports) ||
        !eir_expect(p, EIR_string))
        return false;
    const char **imports =
        ARENA_ARRAY(m->arena, const char *, m->n_imports + 1);
    if (m->n_imports)
        memcpy(imports, m->imports, m->n_imports * sizeof *imports);
    imports[m->n_imports++] = path;
    m->imports = imports;
    return true;
}

static bool parse_source(EirParser *p)
{
    const char *name = p->lx.tok.text;
    if (!eir_expect(p, EIR_string))
        return false;
    p->loc_file = source_file(p, name);
    p->sourced = true;
    return true;
}

/* The file's own library entries: .exo text behind bars. It is registered
 * under the file's name with as many empty lines above it, so that its faults
 * are shown at their lines. */
static bool parse_library(EirParser *p)
{
    Loc loc = p->lx.tok.loc;
    const char *text = p->lx.tok.text;
    if (!eir_expect(p, EIR_raw))
        return false;
    if (!p->lib)
        return eir_error(p, loc, "library entries cannot stand here");
    StrBuf s = { 0 };
    for (uint32_t line = 1; line < loc.line; line++)
        strbuf_addc(&s, '\n');
    strbuf_add(&s, text);
    uint32_t file = ctx_add_source(p->ctx, ctx_source_name(p->ctx, p->lx.file),
                                   strbuf_text(&s), s.len);
    strbuf_free(&s);
    p->m->lib = lib_child(p->lib, p->ctx);
    if (!lib_load_text(p->m->lib, file, true) || !lib_check_entries(p->m->lib))
        p->n_errors++;
    return true;
}

static bool parse_top(EirParser *p, bool *library)
{
    Head h = { .comment = p->lx.tok.comment, .loc = p->lx.tok.loc };
    if (eir_accept_word(p, "import"))
        return parse_import(p);
    if (eir_accept_word(p, "source"))
        return parse_source(p);
    if (eir_accept_word(p, "library")) {
        if (*library)
            return eir_error(p, h.loc, "a second library section");
        *library = true;
        return parse_library(p);
    }
    if (eir_accept_word(p, "proc"))
        h.code = OP_ctl_proc;
    else if (eir_accept_word(p, "async.kernel"))
        h.code = OP_async_kernel;
    else if (eir_accept_word(p, "host.proc"))
        h.code = OP_host_proc;
    else
        return eir_expected(p, "proc, async.kernel, host.proc, import, "
                               "source or library");
    size_t mark = eir_scope_open(p);
    bool ok = parse_symbol_op(p, &h);
    eir_scope_close(p, mark);
    return ok;
}

/* After an error between top-level ops: to a line that starts one. */
static void recover_top(EirParser *p)
{
    static const char *const starts[] = { "proc",   "async.kernel", "host.proc",
                                          "import", "source",       "library" };
    for (; p->lx.tok.kind != EIR_eof; eir_lex_next(&p->lx))
        for (size_t i = 0; p->lx.tok.first && i < 6; i++)
            if (eir_at_word(p, starts[i]))
                return;
}

/* op_code_from_name by interned name. */
static NameMap *opcode_map(EirParser *p)
{
    NameMap *map = name_map_new(p->scratch);
    for (int c = OP_none + 1; c < OP_count; c++)
        name_map_set(map, ctx_intern(p->ctx, op_text(p, (OpCode)c)),
                     (void *)(uintptr_t)c);
    return map;
}

Module *eir_parse(Ctx *ctx, uint32_t file, Lib *lib)
{
    EirParser p = { .ctx = ctx, .lib = lib, .scratch = arena_new() };
    p.m = module_new(ctx);
    p.m->lib = lib;
    p.names = name_map_new(p.scratch);
    p.sources = name_map_new(p.scratch);
    p.opcodes = opcode_map(&p);
    eir_lex_init(&p.lx, ctx, file);
    bool library = false;
    while (p.lx.tok.kind != EIR_eof)
        if (!parse_top(&p, &library)) {
            p.depth = 0;
            recover_top(&p);
        }
    bool ok = p.n_errors == 0;
    arena_free(p.scratch);
    if (ok)
        return p.m;
    module_free(p.m);
    return NULL;
}
