/* Which procedure came of which, read off the record of the steps. */
#include "passes/schedule/schedule.h"

static SchedOrigin *origin_of(SchedOriginVec *list, const char *proc)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->data[i].proc == proc)
            return &list->data[i];
    return NULL;
}

static SchedOrigin *add_origin(Arena *arena, SchedOriginVec *list,
                               const char *proc, const SchedOrigin *of)
{
    SchedOrigin o = { .proc = proc, .from = of ? of->from : proc };
    for (size_t i = 0; of && i < of->steps.len; i++)
        VEC_PUSH(arena, &o.steps, of->steps.data[i]);
    VEC_PUSH(arena, list, o);
    return &list->data[list->len - 1];
}

void sched_origins(Arena *arena, const SchedResult *r, SchedOriginVec *out)
{
    for (size_t i = 0; i < r->steps.len; i++) {
        const SchedRecord *step = &r->steps.data[i];
        SchedOrigin *o = origin_of(out, step->proc);
        if (!o)
            o = add_origin(arena, out, step->proc, NULL);
        VEC_PUSH(arena, &o->steps, step);
        o->proc = step->then;
        SchedOrigin of = *o;
        if (step->made)
            add_origin(arena, out, step->made, &of);
    }
    size_t n = 0;
    for (size_t i = 0; i < out->len; i++)
        if (out->data[i].proc)
            out->data[n++] = out->data[i];
    out->len = n;
}
