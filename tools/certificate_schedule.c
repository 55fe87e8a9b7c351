/* Schedules in certificates. */
#include "tools/certificate_schedule.h"

#if EXO_WITH_JSON

static json_t *json_step(const SchedRecord *r)
{
    json_t *j = json_object();
    json_object_set_new(j, "step", json_string(r->text));
    json_object_set_new(j, "questions", json_integer(r->asked));
    json_object_set_new(j, "by_solver", json_integer(r->asked_solver));
    if (r->reassociates)
        json_object_set_new(j, "reassociates", json_true());
    if (r->rounds)
        json_object_set_new(j, "rounds", json_true());
    return j;
}

static json_t *json_origin(const SchedOrigin *o)
{
    json_t *j = json_object(), *steps = json_array();
    for (size_t i = 0; i < o->steps.len; i++)
        json_array_append_new(steps, json_step(o->steps.data[i]));
    json_object_set_new(j, "from", json_string(o->from));
    json_object_set_new(j, "steps", steps);
    return j;
}

json_t *certificate_schedule(const ToolScheduled *s)
{
    json_t *j = json_object(), *procs = json_object();
    for (size_t i = 0; i < s->origins.len; i++)
        json_object_set_new(procs, s->origins.data[i].proc,
                            json_origin(&s->origins.data[i]));
    json_object_set_new(j, "before_sha256", json_string(s->before));
    json_object_set_new(j, "procedures", procs);
    return j;
}

/* Which step differs first, or how many there are. */
static const char *describe(Arena *arena, const char *name, const json_t *said,
                            const json_t *again)
{
    const json_t *a = json_object_get(said, "steps");
    const json_t *b = json_object_get(again, "steps");
    const char *from = json_string_value(json_object_get(said, "from"));
    size_t n = json_array_size(a);
    for (size_t i = 0; again && i < n; i++)
        if (!json_equal(json_array_get(a, i), json_array_get(b, i)))
            return arena_printf(arena, "schedule @%s step %zu of %zu", name,
                                i + 1, n);
    return arena_printf(arena, "schedule @%s: %zu steps from @%s", name, n,
                        from ? from : "?");
}

void certificate_schedule_compare(const json_t *said, const json_t *again,
                                  void (*claim)(void *user, const char *what,
                                                bool holds),
                                  void *user)
{
    Arena *arena = arena_new();
    json_t *here = json_object_get(again, "procedures");
    json_t *there = json_object_get(said, "procedures"), *proc;
    const char *name;
    claim(user, "schedule: the program before",
          json_equal(json_object_get(said, "before_sha256"),
                     json_object_get(again, "before_sha256")));
    json_object_foreach(there, name, proc)
    {
        json_t *made = json_object_get(here, name);
        claim(user, describe(arena, name, proc, made), json_equal(proc, made));
    }
    json_object_foreach(here, name, proc)
    {
        if (!json_object_get(there, name))
            claim(user,
                  arena_printf(arena, "schedule @%s, which it does not have",
                               name),
                  false);
    }
    arena_free(arena);
}

#endif
