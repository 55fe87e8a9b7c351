/* A map from pointers to pointers, in an arena: the analyses key their answers
 * by op, block or value. A zeroed PtrMap is an empty one; nothing is
 * removed. */
#ifndef EXO_PASSES_ANALYSIS_PTR_MAP_H
#define EXO_PASSES_ANALYSIS_PTR_MAP_H

#include "ir/support.h"

typedef struct PtrMap {
    const void **keys;
    void **values;
    size_t cap, len;
} PtrMap;

/* NULL when absent. */
void *ptr_map_get(const PtrMap *m, const void *key);
/* Replaces what was there. The key is not NULL. */
void ptr_map_put(Arena *a, PtrMap *m, const void *key, void *value);

#endif
