/* Two places for a key, the later one first. States that follow each other are
 * side by side for the same what and of, as they are asked for. A run that is
 * short has a small table: few pages to clear and to look at. */
#include "verify/sync/memo.h"

#include <string.h>

enum { LEAST = 1 << 10 };

static MemoEntry *place_of(const Memo *m, MemoKey key)
{
    uint64_t hash =
        ((uint64_t)key.of << 32 | key.what) * UINT64_C(0x9e3779b97f4a7c15);
    return &m->entries[2 * ((hash >> 32) + key.from) & (m->n - 2)];
}

static void put(Memo *m, MemoEntry x)
{
    MemoEntry *at = place_of(m, x.key);
    m->filled += !at[1].key.what;
    at[1] = at[0];
    at[0] = x;
}

static void grow(Memo *m)
{
    const MemoEntry *old = m->entries;
    size_t n = m->n;
    m->n = 4 * n;
    m->filled = 0;
    m->entries = ARENA_ARRAY(m->arena, MemoEntry, m->n);
    while (n-- > 0)
        if (old[n].key.what)
            put(m, old[n]);
}

void memo_open(Memo *m, Arena *arena, size_t most)
{
    *m = (Memo){ .arena = arena, .n = LEAST, .most = most };
    m->entries = ARENA_ARRAY(arena, MemoEntry, m->n);
}

void memo_forget(Memo *m)
{
    memset(m->entries, 0, m->n * sizeof *m->entries);
    m->filled = 0;
}

bool memo_find(const Memo *m, MemoKey key, StateId *to)
{
    const MemoEntry *at = place_of(m, key);
    for (unsigned i = 0; i < 2; i++)
        if (at[i].key.from == key.from && at[i].key.what == key.what &&
            at[i].key.of == key.of) {
            *to = at[i].to;
            return true;
        }
    return false;
}

void memo_put(Memo *m, MemoKey key, StateId to)
{
    if (m->filled > m->n / 2 && 4 * m->n <= m->most)
        grow(m);
    put(m, (MemoEntry){ key, to });
}
