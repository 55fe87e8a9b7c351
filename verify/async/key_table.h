/* Numbers by 64-bit keys. Used by the parts of check-async for what has a key
 * of its own: a hash, an address. */
#ifndef EXO_VERIFY_ASYNC_KEY_TABLE_H
#define EXO_VERIFY_ASYNC_KEY_TABLE_H

#include "ir/support.h"

/* A set of 64-bit keys (not 0) with a number each. */
typedef struct KeyTable {
    uint64_t *keys; /* 0: free */
    uint32_t *at;
    size_t n, cap;
} KeyTable;

/* The number of the key, which is 0 and *fresh when it was not there. Valid
 * until the next call. */
uint32_t *key_table_at(Arena *arena, KeyTable *t, uint64_t key, bool *fresh);

#endif
