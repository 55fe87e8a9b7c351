/* check-seq as a whole, and how an answer of the prover becomes a verdict. */
#include "verify/check_seq_internal.h"

Diag *sc_error(SeqCheck *c, const Op *at, const char *code, const char *fmt,
               ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(c->m->arena, fmt, ap);
    va_end(ap);
    c->ok = false;
    return diag_error(c->ctx, at->loc, code, "%s", text);
}

void sc_answer(SeqCheck *c, const Op *at, const Proof *p, const char *code,
               const char *text)
{
    if (p->answer == PROVE_yes)
        return;
    if (p->answer == PROVE_no) {
        Diag *d = sc_error(c, at, code, "%s", text);
        const char *witness =
            arena_strdup(ctx_arena(c->ctx), par_text_proof(c->m, p));
        if (*witness)
            diag_witness(c->ctx, d, "%s", witness);
        if (!c->witness)
            c->witness = witness;
        return;
    }
    if (!c->unknown)
        c->unknown =
            arena_printf(ctx_arena(c->ctx), "line %u: %s (%s)", at->loc.line,
                         text, p->reason ? p->reason : "not decided");
}

void sc_require(SeqCheck *c, const Op *at, const Facts *f, const Cond *cond,
                const char *code, const char *fmt, ...)
{
    Proof p = prove_implied(c->prover, f, cond);
    if (p.answer == PROVE_yes)
        return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(c->m->arena, fmt, ap);
    va_end(ap);
    sc_answer(c, at, &p, code, text);
}

static bool check_calls(Op *op, void *user)
{
    if (op->code == OP_par_instr || op->code == OP_ctl_call)
        check_seq_call(user, op);
    return true;
}

/* ---- procedures that reach themselves ----------------------------------- */

typedef struct Reach {
    const Module *m;
    const Op *target;
    VEC(const Op *) seen;
    bool found;
} Reach;

static bool follow_call(Op *op, void *user)
{
    Reach *r = user;
    if (op->code != OP_ctl_call)
        return !r->found;
    const Op *callee = module_symbol(r->m, op_attr_str(op, "callee", ""));
    if (!callee)
        return true;
    if (callee == r->target)
        r->found = true;
    for (size_t i = 0; i < r->seen.len; i++)
        if (r->seen.data[i] == callee)
            return !r->found;
    VEC_PUSH(r->m->arena, &r->seen, callee);
    for (unsigned i = 0; i < callee->n_blocks && !r->found; i++)
        block_walk(callee->blocks[i], follow_call, r);
    return !r->found;
}

/* A call after which this procedure is called again. */
static bool check_circle(Op *op, void *user)
{
    SeqCheck *c = user;
    if (op->code != OP_ctl_call)
        return true;
    Reach r = { .m = c->m, .target = c->proc };
    follow_call(op, &r);
    const char *name = op_attr_str(c->proc, "name", "_");
    if (r.found)
        sc_error(c, op, "recursion",
                 "%s calls itself, through this call of %s; a procedure calls "
                 "only what does not call it",
                 name, op_attr_str(op, "callee", "_"));
    return !r.found;
}

CheckResult check_seq(Ctx *ctx, Module *m, Op *proc, Prover *prover)
{
    SeqCheck c = {
        .ctx = ctx, .m = m, .proc = proc, .prover = prover, .ok = true
    };
    op_walk(proc, check_circle, &c);
    check_seq_types(&c);
    check_seq_configs(&c);
    check_seq_bounds(&c, proc, &(BoundsScope){ 0 });
    op_walk(proc, check_calls, &c);
    return (CheckResult){
        .check = "check-seq",
        .proc = op_attr_str(proc, "name", "_"),
        .verdict = !c.ok       ? VERDICT_refuted
                   : c.unknown ? VERDICT_unknown
                               : VERDICT_proved,
        .scope = "all sizes",
        .reason = c.unknown,
        .witness = c.witness,
        .version = CHECK_SEQ_VERSION,
    };
}
