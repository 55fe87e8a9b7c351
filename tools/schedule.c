/* Schedules from the command line: --schedule, --param, --save-queries. */
#include "tools/schedule.h"

#include "passes/schedule/schedule.h"
#include "tools/prover.h"

#include <string.h>

/* P=V of every --param. */
static const SchedParam *read_params(Ctx *ctx, const Options *o, unsigned *n)
{
    const char *text;
    *n = 0;
    while (options_nth(o, "--param", *n))
        ++*n;
    SchedParam *params = ARENA_ARRAY(ctx_arena(ctx), SchedParam, *n);
    for (unsigned i = 0; i < *n; i++) {
        text = options_nth(o, "--param", i);
        size_t len = strcspn(text, "=");
        params[i].name = ctx_intern_n(ctx, text, len);
        params[i].value = text[len] ? text + len + 1 : NULL;
        if (params[i].value)
            continue;
        diag_error(ctx, (Loc){ 0 }, "schedule",
                   "--param: expected P=V, found '%s'", text);
        return NULL;
    }
    return params;
}

bool tool_schedule(Ctx *ctx, const Options *o, Module **m)
{
    const char *path = options_value(o, "--schedule", NULL);
    if (!path && options_nth(o, "--param", 0))
        diag_error(ctx, (Loc){ 0 }, "schedule", "--param goes with --schedule");
    if (!path)
        return !options_nth(o, "--param", 0);
    SchedOptions so = { .save_queries =
                            options_value(o, "--save-queries", NULL) };
    so.params = read_params(ctx, o, &so.n_params);
    uint32_t file = so.params ? ctx_read_source(ctx, path) : 0;
    if (!file)
        return false;
    Arena *arena = arena_new();
    ToolProver *prover = tool_prover_open(arena);
    so.prover = tool_prover(prover);
    bool ok = schedule_run(ctx, m, file, &so, NULL);
    tool_prover_close(prover);
    arena_free(arena);
    return ok;
}
