/* The first part of sync-check: what a par program does to memory and
 * barriers.
 *
 * sync_program_build reads a procedure once and gives a tree per device
 * function: loops, guards, thread loops, accesses with their timelines and
 * flags, allocations, synchronisation, all as index expressions; what cannot
 * race is left out (SyncTensor.checked). A SyncRun instantiates the tree of
 * one task at concrete sizes and feeds a SyncSink with events in program
 * order, every loop being run sequentially, thread loops too, their threads
 * narrowed to one tile at a time. Sinks are the state machine, the oracle of
 * the tests and the search for deadlocks.
 *
 * A program lives in the arena it was made in and refers to the module. */
#ifndef EXO_VERIFY_SYNC_EVENTS_H
#define EXO_VERIFY_SYNC_EVENTS_H

#include "passes/analysis/par_info.h"
#include "verify/sync/threads.h"

/* ---- the program -------------------------------------------------------- */

typedef enum SyncSpace {
    SYNC_global,
    SYNC_shared,
    SYNC_register,
    SYNC_barrier
} SyncSpace;

/* A tensor or barrier, or the tensor behind windows and tensor maps. */
typedef struct SyncTensor {
    Value *value;
    const Mem *mem;
    SyncSpace space;
    unsigned index;
    bool checked;  /* accesses to it are followed */
    uint32_t mask; /* timelines that its records may hold */
    /* Whole clusters allocate it: its free looks at every thread. */
    bool whole_cluster;
    unsigned guard;      /* ring: index of the barrier that guards it */
    unsigned n_patterns; /* barrier: expressions of its Arrives, and in each */
    const uint32_t *patterns; /* the dimensions that are intervals, as bits */
    int64_t source_ctas;      /* barrier: Arrives that complete one element */
    int64_t most_left;        /* barrier: the most that an Await leaves out */
} SyncTensor;

/* A part of a tensor. */
typedef struct SyncExpr {
    unsigned tensor;
    unsigned rank;
    const Affine **lo, **len;           /* len NULL: a point */
    const Affine **clip_lo, **clip_len; /* of a tensor map; or NULL */
} SyncExpr;

typedef enum SyncNodeKind {
    SYNC_loop,    /* var in [lo, hi): body */
    SYNC_threads, /* a thread loop: var in [0, hi), one tile each */
    SYNC_warps,   /* the threads that satisfy guard: body */
    SYNC_if,      /* cond: body, else orelse */
    SYNC_access,
    SYNC_alloc, /* lives to the end of the list: then freed */
    SYNC_fence,
    SYNC_arrive,
    SYNC_await
} SyncNodeKind;

enum {
    SYNC_MUTATE = 1u << 0,
    SYNC_WRITE_ONLY = 1u << 1,   /* needs no value that was there before */
    SYNC_CONVERGENT = 1u << 2,   /* made by all its threads at once */
    SYNC_OUT_OF_ORDER = 1u << 3, /* complete only when waited for */
    SYNC_ATOMIC = 1u << 4        /* a reduction that may meet its like */
};

typedef struct SyncNode SyncNode;
struct SyncNode {
    SyncNodeKind kind;
    unsigned id; /* from 1, in the order of the text */
    Op *op;
    SyncNode *next, *body, *orelse;
    VarId var;
    const Affine *lo, *hi; /* bounds */
    const Affine *iter;    /* threads: the tile, by coordinates */
    const Cond *cond;      /* if: condition; threads, warps: guard */
    unsigned tensor;       /* alloc, access, arrive, await */
    unsigned n_exprs;      /* access: 1; arrive, await: barrier expressions */
    const SyncExpr *exprs;
    unsigned n_trailing;
    const SyncExpr *trailing;
    unsigned n_spread; /* leading intervals of the access and of trailing that
                          name the same CTAs: each CTA's part reports to its
                          own barrier */
    bool scattered;    /* each CTA's threads access its part alone, of which an
                          equal part of the next interval reports to each of
                          trailing's barriers */
    unsigned flags;
    uint32_t initial, extended; /* timelines: bit number, mask */
    const SyncTimeline *first, *second;
    int64_t n;
};

/* One device function. */
typedef struct SyncDevice {
    const ParDevice *par;
    Op *op;
    unsigned n_tasks; /* task loops, outermost first */
    const VarId *task_vars;
    const Affine **task_lo, **task_hi;
    SyncNode *body;
} SyncDevice;

typedef struct SyncProgram {
    Module *m;
    Op *proc;
    Arena *arena;
    const ParInfo *par;
    unsigned n_tensors;
    SyncTensor *tensors;
    unsigned n_devices;
    SyncDevice *devices;
    unsigned n_nodes;
    /* Why nothing can be said of the program: with the place; or NULL. */
    const char *unknown;
} SyncProgram;

/* NULL after faults of the par analysis, which are reported. */
SyncProgram *sync_program_build(Ctx *ctx, Module *m, Op *proc, Arena *arena);

/* ---- events ------------------------------------------------------------- */

typedef struct SyncEvent {
    const SyncNode *node; /* SYNC_alloc: see `is_free` */
    bool is_free;
    ThreadsId threads;
    /* Of an access, clipped and not empty: [lo, hi) per dimension; of an
     * allocation the extents in hi. */
    const int64_t *lo, *hi;
    /* Elements of a barrier by row-major number: Await and Arrive's own, and
     * all that an Arrive or a trailing barrier reaches, ascending. */
    int64_t home;
    unsigned n_targets;
    const int64_t *targets;
    unsigned barrier; /* tensor of home and targets */
} SyncEvent;

/* A loop at the beginning of a trip. */
typedef struct SyncTrip {
    const SyncNode *node;
    int64_t first, end, trip;
    uint64_t events; /* made before the loop */
    void *user;      /* the sink's, NULL at first */
} SyncTrip;

typedef struct SyncSink SyncSink;
struct SyncSink {
    /* False stops the run. */
    bool (*event)(SyncSink *self, const SyncEvent *e);
    /* Called before each trip of a loop, if not NULL. May raise t->trip, up to
     * t->end: it takes the trips in between upon itself. */
    void (*trip)(SyncSink *self, SyncTrip *t);
    /* Called where t->user is set, when the loop has ended or the run stops. */
    void (*left)(SyncSink *self, SyncTrip *t);
};

enum { SYNC_STEP_WORK = 4 };

/* A device function at concrete sizes. vars is indexed by VarId and holds the
 * sizes and host iterators; the run writes task and loop variables there. */
typedef struct SyncRun SyncRun;
struct SyncRun {
    const SyncProgram *program;
    const SyncDevice *device;
    Arena *arena; /* for what the run keeps: thread sets, extents */
    ThreadPool *pool;
    int64_t *vars;
    bool *known;
    int64_t **extents;             /* by tensor: evaluated when allocated */
    int64_t **grains;              /* of sync_grains, once they were asked */
    struct SyncNodeSets *sets;     /* by node: threads of each tile */
    uint64_t n_events, max_events; /* the most that a run may make */
    /* What the run costs beside, in words of states that are looked at; a
     * statement that is come to is SYNC_STEP_WORK of them. */
    uint64_t work, most_work;
    uint64_t most_bytes; /* that it may use; 0: any number */
    /* Of states, from which on those that are no more are left behind; 0: as
     * many as make it worth while. */
    uint64_t least_bytes;
    bool eager; /* look for steady loops where little is to be gained, too */
    bool every_step; /* take no loop for steady */
    /* Why the run stopped other than by its sink: a value that is not known,
     * an overflow, too many events. NULL: it did not. */
    const char *failed;
    ThreadsId threads;
    SyncSink *sink;
};

SyncRun *sync_run_new(Arena *arena, const SyncProgram *p, const SyncDevice *d,
                      int64_t *vars, bool *known);
/* The task whose variables are set in vars. False when the sink or the run
 * stopped. */
bool sync_run_task(SyncRun *run, SyncSink *sink);
/* Values at this point of a run; false when not known. */
bool sync_run_eval(const SyncRun *run, const Affine *e, int64_t *out);
/* May so many bytes be taken where so many of `most` (0: of any number) are
 * used? */
bool sync_has_room(uint64_t most, uint64_t used, uint64_t bytes);
/* Why a run fails that may not. */
const char *sync_no_room(Arena *arena, uint64_t most);
/* Row-major number of an element of a barrier with these extents. */
int64_t sync_flat(unsigned rank, const int64_t *extents, const int64_t *index);

#endif
