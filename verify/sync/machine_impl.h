/* What the parts of the state machine share: its data, and the functions of
 * cells.c and rings.c. Included by verify/sync alone.
 *
 * A cell holds a handle; a handle has a state and stands for all cells that
 * are in it. Cells of a ring that hold none are in the state in which they
 * were allocated, which depends on their place alone. */
#ifndef EXO_VERIFY_SYNC_MACHINE_IMPL_H
#define EXO_VERIFY_SYNC_MACHINE_IMPL_H

#include "verify/sync/machine.h"

typedef uint32_t HandleId; /* 0: an untouched cell */

typedef struct Handle {
    StateId state;
    HandleId forward; /* 0: it is itself */
    uint64_t count;   /* cells that hold it or what it took over */
} Handle;

/* How a cell of global memory was touched, and by which nodes last. */
typedef struct CellUse {
    const SyncNode *reader, *writer;
    unsigned how; /* TOUCH_read .. */
} CellUse;

/* A cell of global memory. There are many of them: its coordinates are in its
 * key. */
typedef struct Sparse {
    int64_t key; /* row-major number of the cell plus 1; 0: free */
    HandleId handle;
    CellUse use;
} Sparse;

/* A live allocation, or a tensor of global memory. */
typedef struct Instance {
    bool live, ring;
    int64_t cells[SYNC_MAX_RANK];
    int64_t n_cells;
    HandleId *dense;
    Sparse *sparse;
    size_t n_sparse, cap_sparse;
    /* A barrier's elements: their numbers begin at bar_base. */
    BarId bar_base;
    int64_t n_bars;
    uint32_t *arrives, *awaits;
    uint32_t *reached; /* Arrives whose multicast reached the element */
} Instance;

/* What an access makes of a state: remembered, contents never change. */
typedef struct SyncStep {
    StateId from, to;
    uint32_t node;
    ThreadsId threads;
} SyncStep;

enum { SYNC_STEPS = 1 << 15, SYNC_MOST_PEND = 256 };

typedef struct Machine {
    SyncMachine pub;
    Arena *arena;
    SyncRun *run;
    int64_t **grains;
    RecordTable *records;
    Instance *instances;
    VEC(Handle) handles;
    VEC(HandleId) live;     /* that synchronisation may change */
    VEC(HandleId) inert;    /* that only the end of a barrier may change */
    VEC(HandleId) by_state; /* handle of a state, by StateId */
    VEC(RecordImage) images;
    VEC(uint32_t) stamps;
    uint32_t stamp;
    VEC(HandleId) changed;
    VEC(StateId) changed_to;
    VEC(RecordId) scratch;
    BarId next_bar;
    SyncStep *steps;
    const SyncEvent *event;
} Machine;

/* ---- cells.c ------------------------------------------------------------ */

/* The state behind a handle, 0 of none. */
StateId handle_state(Machine *m, HandleId h);
void cell_set(Machine *m, HandleId *cell, StateId s);
/* The handle h is in another state from now on. */
void handle_attach(Machine *m, HandleId h, StateId to);
/* The state is that of no handle any more. */
void handle_detach(Machine *m, StateId s);
/* The cell of global memory at these coordinates. Too many: the run fails. */
Sparse *sparse_cell(Machine *m, unsigned tensor, const int64_t *at);
/* False: it has too many cells. */
bool instance_open(Machine *m, unsigned tensor, const int64_t *extents);
/* Cell coordinates of a row-major number. */
void instance_unflat(const Machine *m, unsigned tensor, int64_t flat,
                     int64_t *at);
/* Row-major distance of neighbours along a dimension. */
int64_t instance_stride(const Machine *m, unsigned tensor, unsigned dim);
static inline unsigned tensor_rank(const Machine *m, unsigned tensor)
{
    return m->run->program->tensors[tensor].value->type->rank;
}

/* ---- rings.c ------------------------------------------------------------ */

/* Does an Arrive on an element, and for some an Await, happen once? */
bool barrier_is_one_shot(const SyncTensor *t);
void barrier_open(Machine *m, unsigned tensor);
/* False: no live barrier has the element. */
bool barrier_find(const Machine *m, BarId bar, SyncElement *out);
/* For so many elements along a ring after the last there are numbers that
 * nothing has. */
int64_t barrier_margin(const SyncTensor *t);
/* Checks the ring of a tensor that has just been opened. False: its guard is
 * too short, by the element *lacking, or smaller than the ring, which stops
 * the run. */
bool ring_open(Machine *m, unsigned tensor, int64_t *lacking);
/* The state in which an element of a ring begins: waiting for the barriers of
 * the slot's last release, to be freed by the next. */
StateId ring_state(Machine *m, unsigned tensor, const int64_t *at);
/* Gives all cells that wait from their beginning for an element of a barrier
 * a handle, so that an Await of it reaches them. */
void ring_wake(Machine *m, unsigned barrier, int64_t flat);
/* After an Arrive on an element: one that it released takes part in nothing
 * any more, and records forget it. */
void ring_bury(Machine *m, unsigned barrier, int64_t flat);

#endif
