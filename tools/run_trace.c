/* Collects events of the machine as trace events. */
#include "tools/run_trace.h"

#include "tools/output.h"

#include <stdlib.h>
#include <string.h>

#if EXO_WITH_JSON
#include <jansson.h>

struct RunTrace {
    MachineObserver base;
    const Module *m;
    json_t *events;
};

bool run_trace_available(void)
{
    return true;
}

static int process_of(const MachineAgent *a)
{
    return (int)(a->cluster * 16 + a->cta);
}

static void op_text(StrBuf *out, const RunTrace *t, const Op *op)
{
    const OpInfo *i = op_info(op->code);
    strbuf_addf(out, "%s.%s", i->dialect, i->text ? i->text : i->name);
    if (op->loc.line)
        strbuf_addf(out, " %s:%u", ctx_source_name(t->m->ctx, op->loc.file),
                    op->loc.line);
}

static json_t *add_event(RunTrace *t, const MachineEvent *e, const char *ph,
                         const char *name)
{
    json_t *j = json_pack("{s:s, s:s, s:I, s:i, s:i}", "ph", ph, "name", name,
                          "ts", (json_int_t)e->time, "pid",
                          process_of(&e->agent), "tid", (int)e->agent.warp);
    json_array_append_new(t->events, j);
    return j;
}

static void add_span(RunTrace *t, const MachineEvent *e, const char *ph,
                     const char *name)
{
    static const char *const engines[] = {
        [AGENT_warp] = "engine",
        [AGENT_copy] = "copy",
        [AGENT_cp_async] = "cp.async",
        [AGENT_tensor] = "tensor core",
    };
    bool mma = e->op->code == OP_async_wgmma_mma_async;
    bool bulk = e->op->code == OP_async_bulk_tensor_load ||
                e->op->code == OP_async_bulk_copy ||
                e->op->code == OP_async_bulk_tensor_store ||
                e->op->code == OP_async_bulk_tensor_reduce;
    const char *cat = engines[mma    ? AGENT_tensor
                              : bulk ? AGENT_copy
                                     : AGENT_cp_async];
    json_t *j = add_event(t, e, ph, name);
    json_object_set_new(j, "cat", json_string(cat));
    json_object_set_new(j, "id", json_integer((json_int_t)e->effect));
}

static void add_phase(RunTrace *t, const MachineEvent *e)
{
    StrBuf name = { 0 };
    strbuf_addf(&name, "mbarrier +%lld phase %lld", (long long)e->offset,
                (long long)e->phase);
    MachineEvent at = *e;
    at.agent.cta = e->cta;
    json_t *j = add_event(t, &at, "i", strbuf_text(&name));
    json_object_set_new(j, "s", json_string("p"));
    strbuf_free(&name);
}

static void add_role(RunTrace *t, const MachineEvent *e)
{
    StrBuf name = { 0 };
    strbuf_addf(&name, "warp %u (%s)", e->agent.warp, e->why);
    json_t *j = add_event(t, e, "M", "thread_name");
    json_object_set_new(j, "args",
                        json_pack("{s:s}", "name", strbuf_text(&name)));
    add_event(t, e, "B", e->why);
    strbuf_free(&name);
}

static void on_event(MachineObserver *self, const MachineEvent *e)
{
    RunTrace *t = (RunTrace *)self;
    StrBuf name = { 0 };
    op_text(&name, t, e->op);
    switch (e->kind) {
    case MEV_role:
        add_role(t, e);
        break;
    case MEV_exit:
        add_event(t, e, "i", "exit");
        break;
    case MEV_wait:
        add_event(t, e, "B", strbuf_text(&name));
        break;
    case MEV_wake:
        add_event(t, e, "E", strbuf_text(&name));
        break;
    case MEV_issue:
        add_span(t, e, "b", strbuf_text(&name));
        break;
    case MEV_finish:
        add_span(t, e, "e", strbuf_text(&name));
        break;
    case MEV_phase:
        add_phase(t, e);
        break;
    default:
        break;
    }
    strbuf_free(&name);
}

GIVES RunTrace *run_trace_new(const Module *m)
{
    RunTrace *t = calloc(1, sizeof *t);
    if (!t)
        panic("run_trace_new: out of memory");
    t->m = m;
    t->base.event = on_event;
    t->base.wants = 1u << MEV_role | 1u << MEV_exit | 1u << MEV_wait |
                    1u << MEV_wake | 1u << MEV_issue | 1u << MEV_finish |
                    1u << MEV_phase;
    t->events = json_array();
    return t;
}

MachineObserver *run_trace_observer(RunTrace *t)
{
    return &t->base;
}

bool run_trace_write(Ctx *ctx, TAKES RunTrace *t, const char *path)
{
    json_t *all = json_pack("{s:o, s:s}", "traceEvents", t->events,
                            "displayTimeUnit", "ms");
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    if (!text)
        panic("run_trace_write: out of memory");
    bool ok = output_write(ctx, path, text, strlen(text));
    free(text);
    json_decref(all);
    free(t);
    return ok;
}

#else

bool run_trace_available(void)
{
    return false;
}

GIVES RunTrace *run_trace_new(const Module *m)
{
    (void)m;
    return NULL;
}

MachineObserver *run_trace_observer(RunTrace *t)
{
    (void)t;
    return NULL;
}

bool run_trace_write(Ctx *ctx, TAKES RunTrace *t, const char *path)
{
    (void)ctx, (void)t, (void)path;
    return false;
}

#endif
