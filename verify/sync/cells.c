/* Cells and the handles they hold. A handle that takes over another's state is
 * found through `forward`, by paths that are cut short on the way. */
#include "verify/sync/machine_impl.h"

#include <string.h>

enum { MOST_CELLS = 1 << 26 };

/* ---- handles ------------------------------------------------------------ */

HandleId handle_find(Machine *m, HandleId h)
{
    HandleId root = h;
    while (m->handles.data[root].forward)
        root = m->handles.data[root].forward;
    while (m->handles.data[h].forward) {
        HandleId next = m->handles.data[h].forward;
        m->handles.data[h].forward = root == h ? 0 : root;
        h = next;
    }
    return root;
}

static HandleId *slot_of_state(Machine *m, StateId s)
{
    while (m->by_state.len <= s)
        VEC_PUSH(m->arena, &m->by_state, 0);
    return &m->by_state.data[s];
}

void handle_watch(Machine *m, HandleId h, StateId id)
{
    const State *s = state_get(m->records, id);
    VEC_PUSH(m->arena, &m->live, ((Live){ h, s->witness, s->pends }));
}

static HandleId handle_of(Machine *m, StateId s)
{
    HandleId *slot = slot_of_state(m, s);
    if (*slot)
        return *slot;
    HandleId h = (HandleId)m->handles.len;
    *slot = h;
    VEC_PUSH(m->arena, &m->handles, ((Handle){ .state = s }));
    handle_watch(m, h, s);
    return h;
}

StateId handle_state(Machine *m, HandleId h)
{
    return h ? m->handles.data[handle_find(m, h)].state : 0;
}

void cell_set(Machine *m, HandleId *cell, StateId s)
{
    HandleId old = *cell ? handle_find(m, *cell) : 0;
    HandleId h = s ? handle_of(m, s) : 0;
    if (old)
        m->handles.data[old].count--;
    if (h)
        m->handles.data[h].count++;
    *cell = h;
}

void handle_attach(Machine *m, HandleId h, StateId to)
{
    HandleId *slot = slot_of_state(m, to);
    if (!*slot) {
        *slot = h;
        m->handles.data[h].state = to;
        return;
    }
    m->handles.data[*slot].count += m->handles.data[h].count;
    m->handles.data[h].forward = *slot;
}

void handle_detach(Machine *m, StateId s)
{
    *slot_of_state(m, s) = 0;
}

/* ---- cells -------------------------------------------------------------- */

/* False: there is no room. */
static bool sparse_grow(Machine *m, Instance *in)
{
    Sparse *old = in->sparse;
    Arena *arena = in->arena;
    size_t cap = in->cap_sparse, most = cap ? 2 * cap : 64;
    if (!room_for(m, most * sizeof *old))
        return false;
    in->cap_sparse = most;
    in->arena = arena_child(m->arena);
    in->sparse = ARENA_ARRAY(in->arena, Sparse, in->cap_sparse);
    for (size_t i = 0; i < cap; i++) {
        if (!old[i].key)
            continue;
        size_t k = hash_word(HASH_SEED, (uint64_t)old[i].key);
        while (in->sparse[k & (in->cap_sparse - 1)].key)
            k++;
        in->sparse[k & (in->cap_sparse - 1)] = old[i];
    }
    arena_free(arena);
    return true;
}

Sparse *sparse_cell(Machine *m, unsigned tensor, const int64_t *at)
{
    Instance *in = &m->instances[tensor];
    unsigned rank = tensor_rank(m, tensor);
    int64_t key = sync_flat(rank, in->cells, at) + 1;
    if (4 * in->n_sparse >= 3 * in->cap_sparse && !sparse_grow(m, in))
        return NULL;
    size_t k = hash_word(HASH_SEED, (uint64_t)key);
    for (;; k++) {
        Sparse *s = &in->sparse[k & (in->cap_sparse - 1)];
        if (s->key == key)
            return s;
        if (s->key)
            continue;
        s->key = key;
        in->n_sparse++;
        return s;
    }
}

/* Memory for all cells, those of the allocation before it if they are enough.
 */
static bool open_dense(Machine *m, Instance *in, bool barrier)
{
    int64_t n = in->n_cells;
    size_t each = sizeof *in->dense + (barrier ? 5 * sizeof *in->bars : 0);
    if (!in->arena || n > in->room) {
        arena_free(in->arena);
        in->arena = NULL;
        if (!room_for(m, (uint64_t)n * each))
            return false;
        in->arena = arena_child(m->arena);
        in->room = n;
        in->dense = arena_alloc(in->arena, (size_t)n * each);
    } else if (n) {
        memset(in->dense, 0, (size_t)n * each);
    }
    if (!barrier)
        return true;
    in->bars = in->dense + n;
    in->arrives = in->bars + n;
    in->awaits = in->arrives + n;
    in->reached = in->awaits + n;
    in->base = in->reached + n;
    return true;
}

bool instance_open(Machine *m, unsigned tensor, const int64_t *extents)
{
    const SyncTensor *t = &m->run->program->tensors[tensor];
    Instance *in = &m->instances[tensor];
    *in = (Instance){ .live = true,
                      .n_cells = 1,
                      .arena = in->arena,
                      .room = in->room,
                      .dense = in->dense,
                      .turn = in->turn,
                      .n_turn = in->n_turn };
    for (unsigned i = 0; i < t->value->type->rank; i++) {
        int64_t g = m->grains[tensor][i];
        in->cells[i] = extents[i] > 0 ? (extents[i] + g - 1) / g : 0;
        if (__builtin_mul_overflow(in->n_cells, in->cells[i], &in->n_cells) ||
            (t->space != SYNC_global && in->n_cells > MOST_CELLS)) {
            m->run->failed = "a tensor is too large at these sizes";
            return false;
        }
    }
    return t->space == SYNC_global ||
           open_dense(m, in, t->space == SYNC_barrier);
}

void instance_unflat(const Machine *m, unsigned tensor, int64_t flat,
                     int64_t *at)
{
    const Instance *in = &m->instances[tensor];
    for (unsigned i = tensor_rank(m, tensor); i-- > 0;) {
        at[i] = in->cells[i] ? flat % in->cells[i] : 0;
        flat = in->cells[i] ? flat / in->cells[i] : 0;
    }
}

int64_t instance_stride(const Machine *m, unsigned tensor, unsigned dim)
{
    int64_t stride = 1;
    for (unsigned i = dim + 1; i < tensor_rank(m, tensor); i++)
        stride *= m->instances[tensor].cells[i];
    return stride;
}
