/* Open addressing; a table is at most half full. */
#include "verify/async/key_table.h"

static size_t slot_of(const KeyTable *t, uint64_t key)
{
    size_t i = (size_t)key & (t->cap - 1);
    while (t->keys[i] && t->keys[i] != key)
        i = (i + 1) & (t->cap - 1);
    return i;
}

static void grow(Arena *arena, KeyTable *t)
{
    KeyTable old = *t;
    t->cap = old.cap ? 2 * old.cap : 1024;
    t->keys = ARENA_ARRAY(arena, uint64_t, t->cap);
    t->at = ARENA_ARRAY(arena, uint32_t, t->cap);
    for (size_t i = 0; i < old.cap; i++)
        if (old.keys[i]) {
            size_t s = slot_of(t, old.keys[i]);
            t->keys[s] = old.keys[i];
            t->at[s] = old.at[i];
        }
}

uint32_t *key_table_at(Arena *arena, KeyTable *t, uint64_t key, bool *fresh)
{
    if (2 * t->n >= t->cap)
        grow(arena, t);
    size_t s = slot_of(t, key);
    *fresh = !t->keys[s];
    t->n += *fresh;
    t->keys[s] = key;
    return &t->at[s];
}
