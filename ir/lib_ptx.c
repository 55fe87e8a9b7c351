/* The PTX of an instance: each ptx clause's text, its {..} put in.
 *
 * `{p}` is a runtime parameter (address, value or the one register), `{p[3]}`
 * its register 3, `{p.regs}` all its registers with commas; any other
 * expression is a literal over the template parameters. `{{` and `}}` are
 * braces. */
#include "ir/lib_entry.h"

#include <stdlib.h>
#include <string.h>

typedef VEC(PtxPiece) Pieces;

/* The number of the runtime parameter, or -1. */
static int param_number(const Op *body, ExprCtx *x, const char *name)
{
    const Block *block = body->blocks[0];
    for (unsigned i = 0; i < block->n_args; i++) {
        const BlockArg *a = &block->args[i];
        const char *n = a->value ? a->value->name : var_get(x, a->var)->name;
        if (strcmp(n, name) == 0)
            return (int)i;
    }
    return -1;
}

static bool operand_piece(Build *b, const Op *body, const AstExpr *e,
                          PtxPiece *out, bool *is_operand)
{
    const AstExpr *base = e;
    if ((e->kind == AST_index && e->n == 2) ||
        (e->kind == AST_attr && strcmp(e->name, "regs") == 0))
        base = e->args[0];
    int n = base->kind == AST_name ? param_number(body, b->x, base->name) : -1;
    *is_operand = n >= 0;
    if (n < 0)
        return true;
    *out = (PtxPiece){ .param = (unsigned)n,
                       .reg = e->kind == AST_attr ? -2 : -1 };
    return e->kind != AST_index ||
           build_const_int(b, e->args[1], "register", &out->reg);
}

/* What stands between braces. */
static bool brace_piece(Build *b, const Op *body, const AstExpr *at,
                        const char *text, size_t n, StrBuf *literal,
                        Pieces *pieces)
{
    bool is_operand;
    PtxPiece piece;
    Param p;
    Arena *keep = ctx_arena(b->ctx);
    AstExpr *e = exo_syntax_expr(b->ctx, b->arena, at->loc, text, n);
    if (!e || !operand_piece(b, body, e, &piece, &is_operand))
        return false;
    if (!is_operand) {
        if (!build_const(b, e, &p))
            return false;
        if (p.kind == PARAM_str)
            strbuf_add(literal, p.s);
        else if (p.kind == PARAM_type)
            strbuf_add(literal, scalar_info((ScalarType)p.i)->ptx
                                    ? scalar_info((ScalarType)p.i)->ptx
                                    : "none");
        else
            param_print(literal, &p);
        return true;
    }
    if (literal->len) {
        PtxPiece before = { .text = ctx_intern(b->ctx, strbuf_text(literal)),
                            .reg = -1 };
        VEC_PUSH(keep, pieces, before);
        literal->len = 0;
        literal->data[0] = 0;
    }
    VEC_PUSH(keep, pieces, piece);
    return true;
}

static bool read_text(Build *b, const Op *body, const AstExpr *at,
                      StrBuf *literal, Pieces *pieces)
{
    for (const char *p = at->name; *p; p++) {
        if ((*p == '{' || *p == '}') && p[1] == *p) {
            strbuf_addc(literal, *p++);
            continue;
        }
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        if (*p == '}' || (*p == '{' && !end)) {
            build_error(b, at->loc, "instr",
                        "unpaired brace in PTX text: "
                        "write {{ or }} for a brace");
            return false;
        }
        if (*p != '{') {
            strbuf_addc(literal, *p);
            continue;
        }
        if (!brace_piece(b, body, at, p + 1, (size_t)(end - p - 1), literal,
                         pieces))
            return false;
        p = end;
    }
    return true;
}

static bool take_alternative(Build *b, const Op *body, const AstClause *c,
                             Ptx *out)
{
    Pieces pieces = { 0 };
    StrBuf literal = { 0 };
    Arena *keep = ctx_arena(b->ctx);
    if (!c->head || c->head->kind != AST_name || c->n != 1 ||
        c->values[0]->kind != AST_str) {
        build_error(b, c->loc, "instr",
                    "clause 'ptx' expects a target, then "
                    "the text: ptx sm_80: \"..\"");
        return false;
    }
    bool ok = read_text(b, body, c->values[0], &literal, &pieces);
    if (ok && literal.len) {
        PtxPiece rest = { .text = ctx_intern(b->ctx, strbuf_text(&literal)),
                          .reg = -1 };
        VEC_PUSH(keep, &pieces, rest);
    }
    strbuf_free(&literal);
    *out = (Ptx){ .arch = c->head->name,
                  .n = (unsigned)pieces.len,
                  .pieces = pieces.data };
    return ok;
}

bool instr_ptx(Build *b, const Entry *e, const Op *body, unsigned *n,
               const Ptx **out)
{
    VEC(Ptx) all = { 0 };
    for (const AstClause *c = entry_clause(e->decl, "ptx", NULL); c;
         c = entry_clause(e->decl, "ptx", c)) {
        bool holds = true;
        Ptx ptx;
        if (c->guard && !build_const_bool(b, c->guard, &holds))
            return false;
        if (!holds)
            continue;
        if (!take_alternative(b, body, c, &ptx))
            return false;
        VEC_PUSH(ctx_arena(b->ctx), &all, ptx);
    }
    *n = (unsigned)all.len;
    *out = all.data;
    return true;
}

/* The number of a target; its last letter says nothing of what came before. */
static long arch_number(const char *arch)
{
    return arch && !strncmp(arch, "sm_", 3) ? strtol(arch + 3, NULL, 10) : 0;
}

const Ptx *instr_ptx_for(const Instr *in, const char *arch)
{
    for (unsigned i = 0; i < in->n_ptx; i++)
        if (arch_number(in->ptx[i].arch) <= arch_number(arch))
            return &in->ptx[i];
    return NULL;
}
