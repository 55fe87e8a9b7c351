/* What a state becomes by something that has a number: a change, an access of
 * threads. It is a function of the state's contents alone, so what was found
 * once is remembered, in a table that forgets what is old where it is full.
 *
 * Used by changes.c and machine.c. Lives in the arena given. */
#ifndef EXO_VERIFY_SYNC_MEMO_H
#define EXO_VERIFY_SYNC_MEMO_H

#include "verify/sync/records.h"

/* By `what`, which is never 0, and `of`. */
typedef struct MemoKey {
    StateId from;
    uint32_t what, of;
} MemoKey;

typedef struct MemoEntry {
    MemoKey key; /* of nothing where what is 0 */
    StateId to;
} MemoEntry;

typedef struct Memo {
    Arena *arena;
    MemoEntry *entries;
    size_t n, filled, most;
} Memo;

/* `most` entries, a power of two, are never exceeded. */
void memo_open(Memo *m, Arena *arena, size_t most);
void memo_forget(Memo *m);
bool memo_find(const Memo *m, MemoKey key, StateId *to);
void memo_put(Memo *m, MemoKey key, StateId to);

#endif
