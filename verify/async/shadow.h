/* What happened to a piece of memory: its last write, and the reads since.
 *
 * Pieces with the same history share one state by reference count: a tile that
 * a copy writes and every warp reads has one state, or a few, however large it
 * is. races.c says what an access makes of a state. */
#ifndef EXO_VERIFY_ASYNC_SHADOW_H
#define EXO_VERIFY_ASYNC_SHADOW_H

#include "verify/async/order.h"

typedef struct Read {
    Stamp stamp;
    unsigned cluster;
    struct Read *next;
} Read;

typedef struct State {
    uint32_t refs;
    unsigned cluster; /* of the write */
    Stamp write;      /* op NULL: none */
    Read *reads;
    struct State *next; /* free list */
} State;

typedef struct StatePool {
    Arena *arena;
    State *states;
    Read *reads;
} StatePool;

/* A state of its own with the contents of `from`; NULL: nothing happened. */
State *state_copy(StatePool *p, const State *from);
State *state_keep(State *s); /* one more reference; NULL is fine */
void state_drop(StatePool *p, State *s);
/* Of a state that nobody shares. */
void state_add_read(StatePool *p, State *s, const Stamp *by, unsigned cluster);
void state_set_write(StatePool *p, State *s, const Stamp *by, unsigned cluster);

#endif
