/* Schedules from the command line: --schedule, --param, --save-queries. */
#include "tools/schedule.h"

#include "ir/eir.h"
#include "passes/pass.h"
#include "tools/sha256.h"

#include <stdio.h>
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

static void report_step(const char *proc, const SchedRecord *step)
{
    if (step->asked_solver)
        printf("schedule @%s: line %u rests on %u answers of the solver: %s\n",
               proc, step->loc.line, step->asked_solver, step->text);
    if (step->reassociates)
        printf("schedule @%s: line %u reassociates a floating sum: %s\n", proc,
               step->loc.line, step->text);
    if (step->rounds)
        printf("schedule @%s: line %u changes rounding: %s\n", proc,
               step->loc.line, step->text);
}

/* The chain of steps, each just proved again, and what they rested on. */
static void report_origin(const SchedOrigin *o)
{
    unsigned asked = 0, solver = 0;
    for (size_t i = 0; i < o->steps.len; i++) {
        asked += o->steps.data[i]->asked;
        solver += o->steps.data[i]->asked_solver;
    }
    printf("schedule @%s: proved [%zu step%s from @%s; %u questions, %u by the "
           "solver]\n",
           o->proc, o->steps.len, o->steps.len == 1 ? "" : "s", o->from, asked,
           solver);
    for (size_t i = 0; i < o->steps.len; i++)
        report_step(o->proc, o->steps.data[i]);
}

static void hash_before(const Module *m, ToolScheduled *out)
{
    StrBuf s = { 0 };
    eir_print(m, NULL, &s);
    sha256_hex(strbuf_text(&s), s.len, out->before);
    strbuf_free(&s);
}

static void about_step(void *prover, const char *step)
{
    tool_prover_about(prover, step);
}

bool tool_schedule_open(Ctx *ctx, const Options *o, ToolSchedule *ts)
{
    *ts = (ToolSchedule){ .arena = arena_new() };
    ts->prover = tool_prover_open(ts->arena, ctx, o);
    ts->options.prover = tool_prover(ts->prover);
    ts->options.layer1 = tool_prover_layer1(ts->prover);
    ts->options.about = about_step;
    ts->options.user = ts->prover;
    ts->options.params = read_params(ctx, o, &ts->options.n_params);
    if (ts->options.params)
        return true;
    tool_schedule_close(ts);
    return false;
}

void tool_schedule_close(ToolSchedule *ts)
{
    tool_prover_close(ts->prover);
    arena_free(ts->arena);
}

bool tool_schedule(Ctx *ctx, const Options *o, Module **m)
{
    const char *path = options_value(o, "--schedule", NULL);
    bool params = options_nth(o, "--param", 0);
    ToolSchedule ts;
    if (!path && params && !options_has(o, "--interactive")) {
        diag_error(ctx, (Loc){ 0 }, "schedule", "--param goes with --schedule");
        return false;
    }
    if (!path)
        return true;
    uint32_t file = ctx_read_source(ctx, path);
    if (!file || !tool_schedule_open(ctx, o, &ts))
        return false;
    SchedResult result = { 0 };
    ToolScheduled *done = o->scheduled;
    *done = (ToolScheduled){ .given = true };
    hash_before(*m, done);
    bool ok = schedule_run(ctx, m, file, &ts.options, &result);
    if (ok)
        module_drop_derived(*m);
    sched_origins(ctx_arena(ctx), &result, &done->origins);
    for (size_t i = 0; ok && !strcmp(o->tool, "check") && i < done->origins.len;
         i++)
        report_origin(&done->origins.data[i]);
    tool_schedule_close(&ts);
    return ok;
}
