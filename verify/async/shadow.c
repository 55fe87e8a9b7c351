/* States and reads come from the arena and go back to free lists. */
#include "verify/async/shadow.h"

static Read *read_new(StatePool *p)
{
    Read *x = p->reads;
    if (!x)
        return ARENA_NEW(p->arena, Read);
    p->reads = x->next;
    return x;
}

static void drop_reads(StatePool *p, State *s)
{
    while (s->reads) {
        Read *x = s->reads;
        s->reads = x->next;
        x->next = p->reads;
        p->reads = x;
    }
}

State *state_copy(StatePool *p, const State *from)
{
    State *s = p->states;
    if (s)
        p->states = s->next;
    else
        s = ARENA_NEW(p->arena, State);
    *s = from ? *from : (State){ 0 };
    s->refs = 1;
    s->next = NULL;
    s->reads = NULL;
    Read **last = &s->reads;
    for (const Read *x = from ? from->reads : NULL; x; x = x->next) {
        Read *copy = read_new(p);
        *copy = (Read){ .stamp = x->stamp, .cluster = x->cluster };
        *last = copy;
        last = &copy->next;
    }
    return s;
}

State *state_keep(State *s)
{
    if (s)
        s->refs++;
    return s;
}

void state_drop(StatePool *p, State *s)
{
    if (!s || --s->refs)
        return;
    drop_reads(p, s);
    s->next = p->states;
    p->states = s;
}

void state_add_read(StatePool *p, State *s, const Stamp *by, unsigned cluster)
{
    for (Read *x = s->reads; x; x = x->next)
        if (x->stamp.agent == by->agent && x->cluster == cluster &&
            (x->stamp.mask == by->mask || x->stamp.epoch == by->epoch)) {
            uint32_t mask = x->stamp.mask | by->mask;
            x->stamp = *by;
            x->stamp.mask = mask;
            return;
        }
    Read *x = read_new(p);
    *x = (Read){ .stamp = *by, .cluster = cluster, .next = s->reads };
    s->reads = x;
}

void state_set_write(StatePool *p, State *s, const Stamp *by, unsigned cluster)
{
    drop_reads(p, s);
    s->write = *by;
    s->cluster = cluster;
}
