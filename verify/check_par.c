/* check-par as a whole: the analysis of the device functions, then each group
 * of rules over the procedure. All of them run, so that one run shows every
 * fault. Where there is none, what lowering alone would refuse is reported. */
#include "verify/check_par_internal.h"

#include "passes/lower/derived.h"
#include "passes/lower/lower.h"

#include <string.h>

Diag *pc_error(ParCheck *c, const Op *at, const char *code, const char *fmt,
               ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(c->m->arena, fmt, ap);
    va_end(ap);
    c->ok = false;
    return diag_error(c->ctx, at->loc, code, "%s", text);
}

bool pc_on_device(const Op *op)
{
    for (const Op *p = op_parent(op); p; p = op_parent(p))
        if (p->code == OP_par_device)
            return true;
    return false;
}

const Mem *pc_mem(const ParCheck *c, Value *v)
{
    const MemRef *ref = value_root(v)->type->mem;
    return ref && c->m->lib ? lib_mem_find(c->m->lib, ref) : NULL;
}

typedef struct UseSearch {
    const Value *v;
    bool found;
} UseSearch;

static bool find_use(Op *op, void *user)
{
    UseSearch *s = user;
    for (unsigned i = 0; i < op->n_operands && !s->found; i++)
        if (op->operands[i].kind == OPND_access &&
            value_root(op->operands[i].u.access->base) == s->v)
            s->found = true;
    return !s->found;
}

const Op *pc_last_use(const Op *alloc)
{
    const Op *last = alloc;
    for (Op *op = alloc->next; op; op = op->next) {
        UseSearch s = { alloc->results[0], false };
        op_walk(op, find_use, &s);
        if (s.found)
            last = op;
    }
    return last;
}

/* R has no size and no arithmetic of its own. */
static void check_generic(ParCheck *c, const Op *at, const Value *v)
{
    if (!v || v->type->elem != TY_R)
        return;
    Diag *d = pc_error(c, at, "type", "the type R of %s is not resolved",
                       par_text_value(v));
    diag_fix(c->ctx, d, "give %s a scalar type, such as f32",
             par_text_value(v));
}

static bool check_generics(Op *op, void *user)
{
    ParCheck *c = user;
    if (op->code == OP_mem_alloc)
        check_generic(c, op, op->results[0]);
    return true;
}

static bool find_device(Op *op, void *user)
{
    bool *found = user;
    *found |= op->code == OP_par_device;
    return !*found;
}

/* What only lowering finds out, it is asked: a procedure that passes is one
 * that is lowered. But registers touched before the wait for their wgmma are
 * a hazard, which sync-check finds and explains. */
static bool can_be_lowered(ParCheck *c)
{
    bool has_device = false;
    op_walk(c->proc, find_device, &has_device);
    return !has_device ||
           lower_par_to_async_try(c->ctx, c->m, c->proc, "wgmma-register");
}

CheckResult check_par(Ctx *ctx, Module *m, Op *proc)
{
    ParCheck c = { .ctx = ctx, .m = m, .proc = proc, .ok = true };
    c.pi = par_analyze(ctx, m, proc);
    const Block *params = proc->blocks[0];
    for (unsigned i = 0; i < params->n_args; i++)
        check_generic(&c, proc, params->args[i].value);
    op_walk(proc, check_generics, &c);
    check_par_scopes(&c);
    check_par_memories(&c);
    check_par_rings(&c);
    check_par_maps(&c);
    check_par_args(&c);
    check_par_layouts(&c);
    check_par_barriers(&c);
    check_par_syncs(&c);
    check_par_solitary(&c);
    bool ok = c.ok && par_ok(c.pi) && derived_check(ctx, m, c.pi, proc) &&
              can_be_lowered(&c);
    return (CheckResult){ .check = "check-par",
                          .proc = op_attr_str(proc, "name", "_"),
                          .verdict = ok ? VERDICT_proved : VERDICT_refuted,
                          .scope = "all sizes",
                          .version = CHECK_PAR_VERSION };
}
