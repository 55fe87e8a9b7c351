/* A program on the fast machine of sync-check and on the plain one: the same
 * fault at the same statement and element, or none. */
#ifndef EXO_TEST_SYNC_COMPARE_H
#define EXO_TEST_SYNC_COMPARE_H

#include "ir/exo.h"
#include "sync_plain.h"
#include "verify/sizes.h"
#include "verify/sync/deadlock.h"
#include "verify/sync/signature.h"

#include <criterion/criterion.h>

typedef struct Loaded {
    Ctx *ctx;
    Module *m;
    Arena *arena;
    SyncProgram *p;
} Loaded;

static Loaded load(Ctx *ctx, Lib *lib, uint32_t file)
{
    Loaded l = { .ctx = ctx, .arena = arena_new() };
    l.m = exo_parse(ctx, file, lib, NULL);
    for (Op *op = l.m ? l.m->body->first : NULL; op; op = op->next)
        if (op->code == OP_ctl_proc && !op_attr_int(op, "imported", 0))
            l.p = sync_program_build(ctx, l.m, op, l.arena);
    return l;
}

static void unload(Loaded *l)
{
    if (l->m)
        module_free(l->m);
    arena_free(l->arena);
    ctx_clear_diags(l->ctx);
}

typedef struct Counts {
    unsigned accepted, refused, skipped, steady;
} Counts;

static SyncRun *new_run(const Loaded *l, const SizeSet *sizes)
{
    unsigned n = var_count(l->m->exprs) + 1;
    int64_t *vars = ARENA_ARRAY(l->arena, int64_t, n);
    bool *known = ARENA_ARRAY(l->arena, bool, n);
    for (unsigned i = 0; i < sizes->n; i++) {
        vars[sizes->vars[i]] = sizes->values[i];
        known[sizes->vars[i]] = true;
    }
    return sync_run_new(l->arena, l->p, &l->p->devices[0], vars, known);
}

/* Where no Await is early, nothing waits for ever. */
static void compare_deadlock(const Loaded *l, SyncRun *run,
                             const SyncMachine *fast, const char *text)
{
    SyncFault f = { 0 };
    Deadlock *d = deadlock_new(l->arena, run);
    cr_assert(deadlock_free(d, &f) || fast->early, "stuck:\n%s", text);
}

enum {
    HOW_coarse = 1, /* cells stand for elements in the plain machine as well */
    HOW_eager = 2,  /* the fast one looks at every loop for its being steady */
    HOW_every_step = 4, /* .. at none */
    HOW_narrow = 8      /* .. leaves states behind whenever it can */
};

/* The first task on both machines. */
static void compare(const Loaded *l, const SizeSet *sizes, unsigned how,
                    Counts *counts, const char *text)
{
    SyncRun *run = new_run(l, sizes);
    bool coarse = how & HOW_coarse;
    run->eager = how & HOW_eager;
    run->every_step = how & HOW_every_step;
    run->least_bytes = how & HOW_narrow;
    int64_t **grains = sync_grains(l->arena, run);
    SyncMachine *fast = sync_machine_new(l->arena, run, grains);
    Plain *plain = plain_machine(l->arena, run, coarse ? grains : NULL);
    for (unsigned i = 0; i < run->device->n_tasks; i++) {
        run->vars[run->device->task_vars[i]] = 0;
        run->known[run->device->task_vars[i]] = true;
    }
    sync_run_task(run, &fast->sink);
    if (run->failed) {
        counts->skipped++;
        return;
    }
    sync_run_task(run, &plain->sink);
    bool refused = fast->fault.kind != FAULT_none;
    counts->refused += refused;
    counts->accepted += !refused;
    for (size_t i = 0; i < fast->loops.len; i++)
        counts->steady += fast->loops.data[i].period > 0;
    cr_assert_eq(refused, plain->fault, "fast %d, plain %d:\n%s", refused,
                 plain->fault, text);
    if (!refused) {
        compare_deadlock(l, run, fast, text);
        return;
    }
    cr_assert_eq(fast->fault.node, plain->node, "other statement:\n%s", text);
    cr_assert_eq(fast->fault.tensor, plain->tensor, "other tensor:\n%s", text);
    if (fast->fault.kind == FAULT_guard_too_short)
        return;
    int64_t at[SYNC_MAX_RANK] = { 0 };
    plain_unflat(plain, plain->tensor, plain->flat, at);
    for (unsigned i = 0; i < fast->fault.rank; i++)
        cr_assert_eq(fast->fault.element[i],
                     at[i] * plain_grain(plain, plain->tensor, i),
                     "other element:\n%s", text);
}

#endif
