/* Rules and checks are conditions over the parameters of the host procedure;
 * what is not the same condition is asked of the prover. */
#include "verify/async/arguments.h"

#include "passes/host_rules.h"
#include "verify/async/fault.h"

#include <string.h>

typedef struct Arguments {
    Ctx *ctx;
    Module *m;
    const Op *host;
    Prover *prover;
    Arena *arena;
    HostRules all; /* of the whole procedure, the program's asserts too */
    size_t n_top;  /* of them of the procedure by itself */
    Facts *known;  /* all of them */
    bool judges;   /* .. and all that it takes is known */
    bool bad;
    const char *open; /* why it is not decided, or NULL */
} Arguments;

/* ---- what stands before -------------------------------------------------- */

typedef void SeenCheck(void *user, const Op *check);

/* Calls fn for each check that was made when `at` is come to. */
static void checks_before(const Op *at, SeenCheck *fn, void *user)
{
    for (; at && !op_has(at, OPT_SYMBOL); at = op_parent(at))
        for (const Op *op = at->prev; op; op = op->prev)
            if (op->code == OP_host_check || op->code == OP_host_align_check)
                fn(user, op);
}

typedef struct Before {
    const HostRule *rule;
    Facts *facts;
    bool same; /* the rule itself is among them */
} Before;

static void note_check(void *user, const Op *check)
{
    Before *b = user;
    if (check->code == OP_host_check) {
        const Cond *c = check->operands[0].u.cond;
        b->same = b->same || c == b->rule->cond;
        facts_assume(b->facts, c);
        return;
    }
    b->same = b->same || (check->operands[0].u.value == b->rule->tensor &&
                          op_attr_int(check, "bytes", 1) % b->rule->bytes == 0);
}

/* ---- rules --------------------------------------------------------------- */

static void note_open(Arguments *a, const char *what, const char *why)
{
    if (!a->open)
        a->open = ctx_intern(
            a->ctx, arena_printf(a->arena, "%s is not decided: %s", what, why));
}

/* The rule holds where `at` is come to. */
static void demand(Arguments *a, const Op *at, const HostRule *rule)
{
    Before b = { rule, facts_new(a->arena, a->m->exprs), false };
    checks_before(at, note_check, &b);
    if (b.same || a->bad)
        return;
    Proof p = { .answer = PROVE_no };
    if (rule->cond && !rule->stated)
        p = prove_implied(a->prover, b.facts, rule->cond);
    if (p.answer == PROVE_unknown)
        note_open(a, rule->message, p.reason);
    if (p.answer != PROVE_no)
        return;
    async_fault(a->ctx, at, "H-CHECK",
                "no check before this makes sure of what it needs: %s",
                rule->message);
    a->bad = true;
}

/* What a launch or a map asks for by itself, and before a launch what the
 * procedure asks for. */
static bool demand_here(Op *op, void *user)
{
    Arguments *a = user;
    const Op *k = op->code == OP_host_launch
                      ? module_symbol(a->m, op_attr_str(op, "kernel", ""))
                      : NULL;
    HostRules here = { .arena = a->arena, .m = a->m };
    if (op->code == OP_host_tensor_map)
        host_rules_map(&here, op->operands[0].u.access);
    for (size_t i = 0; k && i < a->n_top; i++)
        demand(a, op, &a->all.rules.data[i]);
    if (k && k->code == OP_async_kernel) {
        host_rules_launch_tasks(&here, op, k);
        host_rules_pieces(&here, op, k);
    }
    for (size_t i = 0; i < here.rules.len; i++) {
        demand(a, op, &here.rules.data[i]);
        VEC_PUSH(a->arena, &a->all.rules, here.rules.data[i]);
    }
    return true;
}

/* ---- the program's asserts ----------------------------------------------- */

/* False where the procedures differ in their parameters. */
static bool take_asserts(Arguments *a, AsyncSource source)
{
    const Block *from = source.proc->blocks[0], *to = a->host->blocks[0];
    CloneMap *map = clone_map_new(a->m, source.m);
    if (from->n_args != to->n_args)
        return false;
    for (unsigned i = 0; i < to->n_args; i++) {
        if (!from->args[i].value != !to->args[i].value)
            return false;
        if (to->args[i].value)
            clone_map_value(map, from->args[i].value, to->args[i].value);
        else
            clone_map_index(map, from->args[i].var,
                            affine_var(a->m->exprs, to->args[i].var));
    }
    for (const Op *op = from->first; op; op = op->next)
        if (op->code == OP_ctl_assert) {
            HostRule rule = { .cond = clone_cond(map, op->operands[0].u.cond),
                              .message = "an assert of the program" };
            if (rule.cond && rule.cond->kind != COND_true)
                VEC_PUSH(a->arena, &a->all.rules, rule);
        }
    return true;
}

/* ---- checks -------------------------------------------------------------- */

static void refuse(Arguments *a, const Op *check, const char *why)
{
    if (!a->bad)
        async_fault(a->ctx, check, "H-CHECK",
                    "this refuses arguments that the program takes: %s", why);
    a->bad = true;
}

static void judge_align(Arguments *a, const Op *check)
{
    const Value *v = check->operands[0].u.value;
    int64_t bytes = op_attr_int(check, "bytes", 1);
    int64_t most = (int64_t)scalar_type_bytes(v->type->elem);
    for (size_t i = 0; i < a->all.rules.len; i++) {
        const HostRule *r = &a->all.rules.data[i];
        most = r->tensor == v && r->bytes > most ? r->bytes : most;
    }
    if (bytes > most)
        refuse(a, check,
               arena_printf(a->arena, "multiples of %lld bytes are enough",
                            (long long)most));
}

static void judge_condition(Arguments *a, const Op *check)
{
    const Cond *c = check->operands[0].u.cond;
    StrBuf witness = { 0 };
    for (size_t i = 0; i < a->all.rules.len; i++)
        if (a->all.rules.data[i].cond == c)
            return;
    Proof p = prove_implied(a->prover, a->known, c);
    if (p.answer == PROVE_unknown)
        note_open(a, op_attr_str(check, "message", "a check"), p.reason);
    if (p.answer == PROVE_no) {
        proof_witness(&witness, a->m->exprs, &p, NULL);
        refuse(a, check, strbuf_text(&witness));
        strbuf_free(&witness);
    }
}

static bool judge(Op *op, void *user)
{
    Arguments *a = user;
    if (op->code == OP_host_align_check)
        judge_align(a, op);
    else if (op->code == OP_host_check && a->judges)
        judge_condition(a, op);
    return !a->bad;
}

/* ---- all ----------------------------------------------------------------- */

static void take_rules(Arguments *a)
{
    const Block *b = a->host->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value)
            host_rules_strides(&a->all, b->args[i].value);
        else
            host_rules_control(&a->all, b->args[i].var);
}

CheckResult check_async_arguments(Ctx *ctx, Module *m, const Op *host,
                                  AsyncSource source, Prover *prover)
{
    Arena *arena = arena_new();
    Arguments a = { .ctx = ctx,
                    .m = m,
                    .host = host,
                    .prover = prover ? prover : prover_layer1(arena),
                    .arena = arena,
                    .all = { .arena = arena, .m = m } };
    take_rules(&a);
    if (source.proc)
        a.judges = take_asserts(&a, source);
    a.n_top = a.all.rules.len;
    op_walk((Op *)host, demand_here, &a);
    a.known = facts_new(arena, m->exprs);
    for (size_t i = 0; i < a.all.rules.len; i++)
        if (a.all.rules.data[i].cond)
            facts_assume(a.known, a.all.rules.data[i].cond);
    if (!a.bad)
        op_walk((Op *)host, judge, &a);
    arena_free(arena);
    CheckResult r = { .verdict = VERDICT_proved, .scope = "all sizes" };
    if (a.bad)
        r = (CheckResult){ .verdict = VERDICT_refuted };
    else if (a.open)
        r = (CheckResult){ .verdict = VERDICT_unknown, .reason = a.open };
    return r;
}
