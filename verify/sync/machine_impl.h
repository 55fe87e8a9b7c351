/* What the parts of the state machine share: its data, and the functions of
 * its files. Included by verify/sync alone.
 *
 * A cell holds a handle; a handle has a state and stands for all cells that
 * are in it. Cells of a ring that hold none are in the state in which they
 * were allocated, which depends on their place alone.
 *
 * What is alive decides how much memory there is, not what was run: elements
 * of barriers are known by numbers that are used again (bars.c), so that the
 * states of one step are those of another, and states that nothing refers to
 * are left behind (room.c). */
#ifndef EXO_VERIFY_SYNC_MACHINE_IMPL_H
#define EXO_VERIFY_SYNC_MACHINE_IMPL_H

#include "verify/sync/machine.h"
#include "verify/sync/memo.h"

typedef uint32_t HandleId; /* 0: an untouched cell */

typedef struct Handle {
    StateId state;
    HandleId forward; /* 0: it is itself */
    uint64_t count;   /* cells that hold it or what it took over */
} Handle;

/* A handle that synchronisation may change, with what its state says of that;
 * one that was taken over or that no cell holds stays until it is looked at. */
typedef struct Live {
    HandleId handle;
    uint32_t witness; /* of the state */
    uint64_t pends;
} Live;

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
    Arena *arena; /* of what follows; kept for the next allocation */
    int64_t room; /* elements for which there is memory */
    int64_t cells[SYNC_MAX_RANK];
    int64_t n_cells;
    HandleId *dense;
    Sparse *sparse;
    size_t n_sparse, cap_sparse;
    /* A barrier's elements. */
    int64_t n_bars;
    BarId *bars; /* numbers; 0: it has none now */
    BarId turn;  /* ring: the first of the numbers kept for it */
    int64_t n_turn;
    uint32_t *arrives, *awaits;
    uint32_t *reached; /* Arrives whose multicast reached the element */
    uint32_t *base;    /* Arrives that pending counts leave out */
} Instance;

/* Whose number it is, and whether an Await may still name it. */
typedef struct BarOwner {
    bool used, buried, astray; /* astray: of no element any more */
    bool reserved;             /* for elements of one barrier */
    SyncElement element;
} BarOwner;

/* Of what is remembered, at most. */
enum {
    SYNC_STEPS = 1 << 17,
    SYNC_CHANGES = 1 << 12,
    SYNC_CHANGED = 1 << 18,
    SYNC_MOST_PEND = 256
};

typedef struct ChangeName ChangeName;

typedef struct Machine {
    SyncMachine pub;
    Arena *arena;
    SyncRun *run;
    int64_t **grains;
    RecordTable *records;
    Instance *instances;
    VEC(Handle) handles;
    VEC(Live) live;
    VEC(HandleId) by_state; /* handle of a state, by StateId */
    VEC(RecordImage) images;
    VEC(uint32_t) stamps;
    uint32_t stamp;
    VEC(HandleId) changed;
    VEC(StateId) changed_to;
    VEC(RecordId) scratch;
    VEC(BarOwner) owners; /* by BarId */
    BarId lowest;         /* no smaller number is free */
    unsigned n_buried;
    VEC(BarFate) fates; /* by BarId; none but while things settle */
    Memo steps; /* what an access makes of a state, by node and threads */
    ChangeName *names;
    uint32_t n_names;
    Memo made; /* what a change makes of one, by its number */
    const SyncEvent *event;
    unsigned generation; /* of state numbers: room_make changes them */
    size_t room_at;      /* bytes of states at which to make room */
} Machine;

/* ---- cells.c ------------------------------------------------------------ */

/* The state behind a handle, 0 of none. */
StateId handle_state(Machine *m, HandleId h);
void cell_set(Machine *m, HandleId *cell, StateId s);
/* The handle may be changed from now on. */
void handle_watch(Machine *m, HandleId h, StateId s);
/* The handle h is in another state from now on. */
void handle_attach(Machine *m, HandleId h, StateId to);
/* The state is that of no handle any more. */
void handle_detach(Machine *m, StateId s);
/* The cell of global memory at these coordinates. NULL: there is no room. */
Sparse *sparse_cell(Machine *m, unsigned tensor, const int64_t *at);
/* False: it has too many cells. */
bool instance_open(Machine *m, unsigned tensor, const int64_t *extents);
/* The handle that h is known as now. */
HandleId handle_find(Machine *m, HandleId h);
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
/* Checks the ring of a tensor that has just been opened. False: its guard is
 * too short, by the element *lacking, or smaller than the ring, which stops
 * the run. */
bool ring_open(Machine *m, unsigned tensor, int64_t *lacking);
/* The state in which an element of a ring begins: waiting for the barriers of
 * the slot's last release, to be freed by the next. */
StateId ring_state(Machine *m, unsigned tensor, const int64_t *at);
/* The element of the guard whose Arrive releases that of a ring; false: there
 * is none. */
bool ring_release(const Machine *m, unsigned tensor, const int64_t *at,
                  SyncElement *out);
/* Gives all cells that wait from their beginning for an element of a barrier
 * a handle, so that an Await of it reaches them. */
void ring_wake(Machine *m, unsigned barrier, int64_t flat);
/* After an Arrive on an element: one that it released takes part in nothing
 * any more, and records forget it. */
void ring_bury(Machine *m, unsigned barrier, int64_t flat);

/* ---- bars.c ------------------------------------------------------------- */

/* Keeps numbers for a ring's elements; call when it is opened. */
void bars_reserve(Machine *m, unsigned barrier);
/* The number of an element: one that is free if it has none. */
BarId bar_of(Machine *m, unsigned barrier, int64_t flat);
/* False: no live barrier has the element. */
bool barrier_find(const Machine *m, BarId bar, SyncElement *out);
/* Nobody will name the element any more. */
void bar_bury(Machine *m, unsigned barrier, int64_t flat);
/* Arrivals on an element that pending counts are to be compared with. */
int64_t bar_count(const Instance *in, int64_t flat);
/* Call after an Arrive on the element: now and then makes records forget
 * what was buried, and old arrivals. */
void bars_sweep(Machine *m, unsigned barrier, int64_t flat);
/* The barrier is no more: nor is what waits for its elements. */
void bars_end(Machine *m, unsigned barrier);
/* All elements for which `moves` says so are so much further on. */
void bars_move(Machine *m, unsigned barrier, int64_t by,
               bool (*moves)(SyncElement e, void *user), void *user);

/* ---- changes.c ---------------------------------------------------------- */

/* What a synchronising event does to all records. */
typedef enum ChangeKind {
    CHANGE_fence,
    CHANGE_arrive,
    CHANGE_await,
    CHANGE_await_reads, /* of reads alone */
    CHANGE_settle       /* as m->fates says */
} ChangeKind;

typedef struct Change {
    ChangeKind kind;
    ThreadsId c;
    const SyncTimeline *l1, *l2;
    unsigned n;
    const BarId *targets; /* awaits: one; settle: what the fates are */
    uint32_t count;
    int64_t limit;
} Change;

void changes_open(Machine *m);
/* Changes the states behind all live handles at once. Fails the run where there
 * is no room for them. */
void change_all(Machine *m, const Change *c);

/* ---- room.c ------------------------------------------------------------- */

/* Are so many bytes more within what the run may use? Fails it if not. */
bool room_for(Machine *m, uint64_t bytes);
/* Leaves behind the states that no cell is in, where there are many. False:
 * the run uses too much even so, and has failed. */
bool room_make(Machine *m);

#endif
