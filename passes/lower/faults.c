/* All that lowering refuses in a procedure, for check-par.
 *
 * Lowering stops at its first fault, since what it would emit behind it makes
 * no sense. So it is tried again without the op at fault and those that use its
 * result, until it succeeds or finds nothing new. Each try works on a clone;
 * ops of two clones correspond by their number in the procedure. */
#include "passes/lower/lower.h"

#include <string.h>

enum { MOST_FAULTS = 20 };

typedef struct Ops {
    Arena *arena;
    VEC(Op *) list;
} Ops;

static bool number_op(Op *op, void *user)
{
    Ops *ops = user;
    VEC_PUSH(ops->arena, &ops->list, op);
    return true;
}

static Op *same_proc(const Module *m, const Op *proc, const Module *clone)
{
    Op *at = clone->body->first;
    for (const Op *o = m->body->first; o != proc; o = o->next)
        at = at->next;
    return at;
}

static bool uses(const Op *op, const Value *v)
{
    for (unsigned i = 0; i < op->n_operands; i++)
        if ((op->operands[i].kind == OPND_value &&
             op->operands[i].u.value == v) ||
            (op->operands[i].kind == OPND_access &&
             op->operands[i].u.access->base == v))
            return true;
    return false;
}

/* Takes ops->list[k] out, and what uses its results: such ops stand behind
 * it. */
static void take_out(const Ops *ops, size_t k)
{
    Op *op = ops->list.data[k];
    if (!op->parent)
        return;
    op_detach(op);
    for (unsigned i = 0; i < op->n_results; i++)
        for (size_t n = k + 1; n < ops->list.len; n++)
            if (uses(ops->list.data[n], op->results[i]))
                take_out(ops, n);
}

/* One try on a clone of m. Where it fails, *at is the number of the op at
 * fault, 0 where it is none that could be left out; *code is that of the
 * error. */
static bool try_once(Ctx *ctx, const Module *m, const Op *proc, Arena *arena,
                     size_t *at, const char **code)
{
    Module *clone = module_clone(m);
    Op *work = same_proc(m, proc, clone);
    Ops ops = { .arena = arena };
    op_walk(work, number_op, &ops);
    LowerFault fault = { 0 };
    bool ok = lower_one_proc(ctx, clone, work, &fault);
    *code = fault.code;
    *at = ops.list.len;
    while (--*at > 0)
        if (ops.list.data[*at] == fault.at)
            break;
    module_free(clone);
    return ok;
}

bool lower_par_to_async_try(Ctx *ctx, const Module *m, const Op *proc,
                            const char *except)
{
    Arena *arena = arena_new();
    Module *rest = module_clone(m);
    Op *left = same_proc(m, proc, rest);
    bool fine = true;
    for (unsigned n = 0; n < MOST_FAULTS; n++) {
        CtxMark mark = ctx_mark(ctx);
        const char *code;
        size_t at;
        if (try_once(ctx, rest, left, arena, &at, &code)) {
            if (n > 0) /* remarks on what is left of the program */
                ctx_rollback(ctx, mark);
            break;
        }
        if (!code && n == 0)
            panic("lowering fails without a report");
        if (!code)
            break; /* without what was taken out it makes no sense */
        if (!strcmp(code, except))
            ctx_rollback(ctx, mark);
        else
            fine = false;
        if (at == 0)
            break;
        Ops ops = { .arena = arena };
        op_walk(left, number_op, &ops);
        take_out(&ops, at);
    }
    module_free(rest);
    arena_free(arena);
    return fine;
}
