/* Open addressing with linear probing, at most half full. */
#include "passes/analysis/ptr_map.h"

static size_t slot_of(const PtrMap *m, const void *key)
{
    size_t i = (size_t)hash_word(HASH_SEED, (uintptr_t)key) & (m->cap - 1);
    while (m->keys[i] && m->keys[i] != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void *ptr_map_get(const PtrMap *m, const void *key)
{
    if (!m->cap || !key)
        return NULL;
    return m->values[slot_of(m, key)];
}

static void grow(Arena *a, PtrMap *m)
{
    PtrMap old = *m;
    m->cap = old.cap ? 2 * old.cap : 64;
    m->keys = ARENA_ARRAY(a, const void *, m->cap);
    m->values = ARENA_ARRAY(a, void *, m->cap);
    for (size_t i = 0; i < old.cap; i++) {
        if (!old.keys[i])
            continue;
        size_t at = slot_of(m, old.keys[i]);
        m->keys[at] = old.keys[i];
        m->values[at] = old.values[i];
    }
}

void ptr_map_put(Arena *a, PtrMap *m, const void *key, void *value)
{
    if (2 * (m->len + 1) > m->cap)
        grow(a, m);
    size_t at = slot_of(m, key);
    if (!m->keys[at])
        m->len++;
    m->keys[at] = key;
    m->values[at] = value;
}
