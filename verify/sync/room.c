/* Memory of a run. Equal contents have equal numbers only as long as they are
 * kept; what no cell is in need not be: the states of all cells are interned
 * anew, in another table, and the old one is dropped. */
#include "verify/sync/machine_impl.h"

/* States and handles below this are never worth the walk over all cells. */
enum { LEAST = 64 << 20 };

static uint64_t bytes_used(const Machine *m)
{
    uint64_t own = arena_bytes(m->arena);
    return m->arena == m->run->arena ? own : own + arena_bytes(m->run->arena);
}

bool room_for(Machine *m, uint64_t bytes)
{
    uint64_t most = m->run->most_bytes;
    if (sync_has_room(most, bytes_used(m), bytes))
        return true;
    m->run->failed = sync_no_room(m->run->arena, most);
    return false;
}

/* ---- states ------------------------------------------------------------- */

typedef struct Copying {
    Machine *m;
    RecordTable *to;
    Arena *arena;          /* of the maps */
    VEC(RecordId) records; /* by old number */
    VEC(HandleId) handles;
    VEC(Handle) made;
} Copying;

static RecordId copy_record(Copying *c, RecordId id)
{
    while (c->records.len <= id)
        VEC_PUSH(c->arena, &c->records, 0);
    RecordId *to = &c->records.data[id];
    if (!*to)
        *to = record_intern(c->to, record_get(c->m->records, id));
    return *to;
}

static StateId copy_state(Copying *c, StateId id)
{
    const State *s = state_get(c->m->records, id);
    unsigned n = s->n_reads + s->n_mutates;
    c->m->scratch.len = 0;
    for (unsigned i = 0; i < n; i++)
        VEC_PUSH(c->m->arena, &c->m->scratch, copy_record(c, s->records[i]));
    const RecordId *ids = c->m->scratch.data;
    return n ? state_intern(c->to, s->free_bar, s->n_reads, ids, s->n_mutates,
                            ids + s->n_reads)
             : state_intern(c->to, s->free_bar, 0, NULL, 0, NULL);
}

static void copy_cell(Copying *c, HandleId *cell)
{
    if (!*cell)
        return;
    HandleId from = handle_find(c->m, *cell);
    while (c->handles.len <= from)
        VEC_PUSH(c->arena, &c->handles, 0);
    HandleId *to = &c->handles.data[from];
    if (!*to) {
        *to = (HandleId)c->made.len + 1;
        Handle h = { .state = copy_state(c, c->m->handles.data[from].state) };
        VEC_PUSH(c->arena, &c->made, h);
    }
    c->made.data[*to - 1].count++;
    *cell = *to;
}

static void copy_instance(Copying *c, Instance *in)
{
    for (int64_t i = 0; in->dense && i < in->n_cells; i++)
        copy_cell(c, &in->dense[i]);
    for (size_t i = 0; i < in->cap_sparse; i++)
        if (in->sparse[i].key)
            copy_cell(c, &in->sparse[i].handle);
}

/* The machine has the new handles, and no other. */
static void take_over(Machine *m, const Copying *c)
{
    record_table_free(m->records);
    m->records = c->to;
    m->handles.len = 1;
    m->live.len = m->by_state.len = 0;
    m->images.len = m->stamps.len = 0;
    memo_forget(&m->steps);
    memo_forget(&m->made);
    for (size_t i = 0; i < c->made.len; i++) {
        VEC_PUSH(m->arena, &m->handles, c->made.data[i]);
        handle_watch(m, (HandleId)i + 1, c->made.data[i].state);
        handle_attach(m, (HandleId)i + 1, c->made.data[i].state);
    }
    m->generation++;
}

static void leave_behind(Machine *m)
{
    Copying c = { .m = m,
                  .to = record_table_new(m->arena, m->run->pool),
                  .arena = arena_child(m->arena) };
    for (unsigned i = 0; i < m->run->program->n_tensors; i++)
        if (m->instances[i].live)
            copy_instance(&c, &m->instances[i]);
    take_over(m, &c);
    arena_free(c.arena);
}

static size_t bytes_of_states(const Machine *m)
{
    return record_table_bytes(m->records) + 4 * m->handles.len * sizeof(Handle);
}

bool room_make(Machine *m)
{
    size_t least = m->run->least_bytes ? m->run->least_bytes : LEAST;
    if (bytes_of_states(m) > (m->room_at > least ? m->room_at : least)) {
        leave_behind(m);
        m->room_at = 2 * bytes_of_states(m);
    }
    return room_for(m, 0);
}
