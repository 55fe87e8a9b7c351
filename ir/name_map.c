/* Open addressing with linear probing, grown at three quarters full. A name
 * that was taken out keeps its slot. */
#include "ir/name_map.h"

typedef struct Slot {
    const char *name;
    void *what;
} Slot;

struct NameMap {
    Arena *arena;
    Slot *slots;
    size_t n_slots, used;
};

static Slot *slot_of(Slot *slots, size_t n, const char *name)
{
    uintptr_t p = (uintptr_t)name;
    size_t i = hash_word(HASH_SEED, (uint64_t)p) & (n - 1);
    while (slots[i].name && slots[i].name != name)
        i = (i + 1) & (n - 1);
    return &slots[i];
}

NameMap *name_map_new(Arena *a)
{
    NameMap *map = ARENA_NEW(a, NameMap);
    map->arena = a;
    map->n_slots = 64;
    map->slots = ARENA_ARRAY(a, Slot, map->n_slots);
    return map;
}

void *name_map_get(const NameMap *map, const char *interned)
{
    return slot_of(map->slots, map->n_slots, interned)->what;
}

static void map_grow(NameMap *map)
{
    size_t n = map->n_slots * 2;
    Slot *slots = ARENA_ARRAY(map->arena, Slot, n);
    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i].name)
            *slot_of(slots, n, map->slots[i].name) = map->slots[i];
    map->slots = slots;
    map->n_slots = n;
}

void name_map_set(NameMap *map, const char *interned, void *what)
{
    if (map->used * 4 >= map->n_slots * 3)
        map_grow(map);
    Slot *s = slot_of(map->slots, map->n_slots, interned);
    if (!s->name)
        map->used++;
    *s = (Slot){ interned, what };
}
