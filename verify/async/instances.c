/* A node's places are moved to a larger array when a value comes for which
 * there is none; as iterators go up, that is at its end. */
#include "verify/async/instances.h"

#include <string.h>

/* Of the first places of a node, and places of one. */
#define LEAST_BYTES 16
#define MOST_PLACES ((uint64_t)1 << 26)

static size_t place_bytes(bool leaf)
{
    return leaf ? sizeof(uint32_t) : sizeof(InstanceNode *);
}

static char *places_of(const InstanceNode *node, bool leaf)
{
    return leaf ? (char *)node->at.numbers : (char *)node->at.below;
}

/* n places from the value `least` on, which are those that the node has and
 * maybe more. */
static void widen(Arena *arena, InstanceNode *node, int64_t least, uint32_t n,
                  bool leaf)
{
    size_t size = place_bytes(leaf);
    uint32_t skip = node->n ? (uint32_t)(node->least - least) : 0;
    if (n > node->room || skip) {
        uint32_t room = node->room ? 2 * node->room : LEAST_BYTES / size;
        room = n > room ? n : room;
        char *places = arena_alloc(arena, room * size);
        if (node->n)
            memcpy(places + skip * size, places_of(node, leaf), node->n * size);
        node->room = room;
        if (leaf)
            node->at.numbers = (uint32_t *)places;
        else
            node->at.below = (InstanceNode **)places;
    }
    node->least = least;
    node->n = n;
}

/* Has a place for the value; false: there would be too many. */
static bool reach(Arena *arena, InstanceNode *node, int64_t value, bool leaf)
{
    int64_t last = node->least + (int64_t)node->n - 1;
    if (!node->n)
        node->least = last = value;
    int64_t least = value < node->least ? value : node->least;
    uint64_t n = (uint64_t)(value > last ? value : last) - (uint64_t)least + 1;
    if (n - 1 >= MOST_PLACES)
        return false;
    if (n > node->n)
        widen(arena, node, least, (uint32_t)n, leaf);
    return true;
}

InstanceAdded instances_add(Arena *arena, InstanceTree *t, int64_t launch,
                            const int64_t *iters, uint32_t number)
{
    InstanceNode *node = &t->root;
    int64_t value = launch;
    for (unsigned i = 0; i < t->depth; i++) {
        if (!reach(arena, node, value, false))
            return INSTANCE_far;
        InstanceNode **below = &node->at.below[value - node->least];
        if (!*below)
            *below = ARENA_NEW(arena, InstanceNode);
        node = *below;
        value = iters[i];
    }
    if (!reach(arena, node, value, true))
        return INSTANCE_far;
    uint32_t *at = &node->at.numbers[value - node->least];
    if (*at)
        return INSTANCE_known;
    *at = number + 1;
    return INSTANCE_new;
}

static inline bool has_place(const InstanceNode *node, int64_t value)
{
    return (uint64_t)value - (uint64_t)node->least < node->n;
}

uint32_t instances_find(const InstanceTree *t, int64_t launch,
                        const int64_t *iters)
{
    const InstanceNode *node = &t->root;
    int64_t value = launch;
    for (unsigned i = 0; i < t->depth; i++) {
        node =
            has_place(node, value) ? node->at.below[value - node->least] : NULL;
        if (!node)
            return NO_INSTANCE;
        value = iters[i];
    }
    uint32_t number =
        has_place(node, value) ? node->at.numbers[value - node->least] : 0;
    return number ? number - 1 : NO_INSTANCE;
}

/* Below a node, with so many levels of nodes below it. */
static bool seek(const InstanceNode *node, unsigned levels, uint32_t number,
                 int64_t *values)
{
    for (uint32_t i = 0; i < node->n; i++) {
        values[0] = node->least + i;
        if (!levels ? node->at.numbers[i] == number + 1
                    : node->at.below[i] && seek(node->at.below[i], levels - 1,
                                                number, values + 1))
            return true;
    }
    return false;
}

bool instances_values(const InstanceTree *t, uint32_t number, int64_t *values)
{
    return seek(&t->root, t->depth, number, values);
}
