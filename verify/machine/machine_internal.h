/* The machine's state. Only verify/machine includes this.
 *
 *   Machine: one launch: kernel, clusters, effects, scheduler
 *   Kernel:  what is known of an async.kernel before it runs
 *   Cluster > Cta > Warp: warps hold frames, one for each block they are in
 *   Effect:  work of an engine under way
 *
 * A warp executes one op at a time in warp_step; an op that cannot go on yet
 * leaves a Wait and is tried again when wait_ready answers true. */
#ifndef EXO_VERIFY_MACHINE_MACHINE_INTERNAL_H
#define EXO_VERIFY_MACHINE_MACHINE_INTERNAL_H

#include "ir/limits.h"
#include "ir/sem.h"
#include "verify/machine/machine.h"

enum { WARP_LANES = 32, BOX_RANK = 5 };
enum { MMA_WARP_ROWS = 16, MMA_MAX_N = 256, MMA_MAX_K = 32 };
#define ALL_LANES UINT32_C(0xffffffff)
#define FOR_LANES(l, mask)                    \
    for (unsigned l = 0; l < WARP_LANES; l++) \
        if ((mask) >> l & 1)

typedef struct Machine Machine;
typedef struct Kernel Kernel;
typedef struct Cluster Cluster;
typedef struct Cta Cta;
typedef struct Warp Warp;
typedef struct Effect Effect;

/* ---- memory -------------------------------------------------------------- */

typedef enum Space {
    SPACE_none,
    SPACE_shared,
    SPACE_global,
    SPACE_map,
    SPACE_local,
    SPACE_mbarrier
} Space;

/* What a tensor-like value of the kernel stands for. */
typedef struct MemObj {
    Space space;
    const Value *value;
    ScalarType elem;
    unsigned elem_bytes, rank;
    int64_t extent[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK]; /* elements */
    int64_t offset;        /* shared, mbarrier: bytes */
    uint32_t swizzle;      /* shared: 0x70, 0x30, 0x10 or 0 */
    int64_t count;         /* mbarrier: arrivals of a phase */
    View view;             /* global, map */
    int64_t box[BOX_RANK]; /* map */
    unsigned box_rank;
    uint32_t box_swizzle;
    bool rounds_tf32; /* map: what is loaded */
} MemObj;

/* One element, resolved. */
typedef struct Place {
    const MemObj *obj;
    Cta *cta;       /* shared */
    Tensor *tensor; /* global, map, local */
    int64_t at;     /* shared: first byte; else the element */
    bool outside;   /* of the map's tensor */
} Place;

typedef VEC(MachineSpan) SpanVec;

typedef struct Mbar {
    int64_t count;      /* arrivals a phase needs */
    int64_t pending;    /* of them still missing */
    int64_t bytes;      /* expected and not delivered */
    int64_t phase;      /* number of the current phase */
    bool ready;         /* initialised */
    const Value *array; /* for messages */
    int64_t element;
    bool fenced; /* its initialisation was made visible to the async proxy */
} Mbar;

typedef struct Named {
    int64_t threads, arrived; /* 0: idle */
    uint64_t generation;
} Named;

/* ---- values -------------------------------------------------------------- */

/* A warp's registers of one fragment; shared between values that are equal. */
typedef struct Frag {
    int refs;
    bool was_d; /* an accumulator of wgmma */
    int64_t n;
    uint32_t *live; /* lanes that hold a value, by slot */
    double *x;      /* n rows of 32 lanes */
    /* The same contents as a 16 x n tile, as wgmma leaves them, but for the
     * bits of NaN; while `packed` live and x are not up to date: frag_settle
     * makes them so. */
    float *tile;
    const struct TileMap *map;
    bool packed;
    struct Frag *next; /* free list */
} Frag;

/* What an SSA value holds in one warp, by its type. */
typedef struct WarpVal {
    double *lanes;    /* scalar */
    Frag *frag;       /* fragment */
    int64_t flight;   /* .. written by wgmma group flight - 1; 0: none */
    bool unfenced;    /* .. written by other ops since the last wgmma.fence */
    int64_t position; /* ring */
    Tensor *local;    /* register tensor, lane first */
} WarpVal;

/* ---- warps --------------------------------------------------------------- */

typedef struct Frame {
    const Block *block;
    const Op *owner, *at;       /* at: next op, NULL at the block's end */
    uint32_t mask;              /* lanes that run the block */
    uint32_t entry;             /* lanes that entered the owner */
    uint32_t other;             /* ctl.if: lanes for the second block */
    bool merged;                /* ctl.if: one block gave its results already */
    int64_t i, hi, step;        /* loops: current, end; tasks: linear number */
    int64_t *lane_lo, *lane_hi; /* loops with bounds of the lane, or NULL */
} Frame;

typedef enum WaitKind {
    WAIT_none,
    WAIT_mbarrier,
    WAIT_named,
    WAIT_cluster,
    WAIT_bulk,
    WAIT_bulk_read,
    WAIT_cp_async,
    WAIT_mma
} WaitKind;

typedef struct Wait {
    WaitKind kind;
    const Op *op;
    Mbar *bar;
    int64_t parity;
    int64_t n;
    uint32_t lanes;
    uint64_t generation;
    int64_t id;
    uint64_t since;
} Wait;

/* Groups of one lane: bulk copies, or cp.async. */
typedef struct LaneGroups {
    int64_t open[WARP_LANES]; /* number of the group being filled */
    bool filled[WARP_LANES];  /* it holds something */
} LaneGroups;

struct Warp {
    Machine *machine;
    Cluster *cluster;
    Cta *cta;
    unsigned index; /* in the CTA */
    bool done;
    Frame *frames;
    unsigned depth, cap;
    int64_t *vars;       /* by VarId */
    int64_t **lane_vars; /* by VarId: values of lanes, or NULL */
    WarpVal *vals;       /* by Value.id */
    Wait wait;
    const char *role;
    LaneGroups bulk, cp;
    int64_t mma_open;    /* number of the group being filled */
    int64_t mma_retired; /* groups below it are known complete */
    int64_t mma_issued;  /* instructions, to compare a warpgroup's warps */
    Effect *mma_first, *mma_last;
    Effect *cp_first, *cp_last; /* cp.async that are not over, oldest first */
    bool mma_unfenced; /* registers of an accumulator were touched since the
                          last wgmma.fence, or there was none */
    bool cluster_arrived;
    int64_t cluster_phase;
    bool named_arrived;
    uint64_t priority; /* of the schedule */
};

struct Cta {
    Cluster *cluster;
    unsigned rank;
    unsigned char *smem, *written; /* one byte each a byte */
    unsigned char *generic; /* bytes that the generic proxy wrote since the last
                               fence.proxy of the CTA: */
    int64_t generic_lo, generic_hi; /* .. all within these; equal: none */
    Mbar *bars;                     /* by offset / 8 */
    int64_t due_lo, due_hi; /* of them, where some were initialised since the
                               last fence; equal: none */
    Named named[NAMED_BARRIERS];
    Warp *warps;
    unsigned live; /* warps that have not ended */
};

/* Makes the range lo .. hi, empty where both are equal, hold `at` and the n - 1
 * places after it. */
static inline void range_add(int64_t *lo, int64_t *hi, int64_t at, int64_t n)
{
    bool empty = *lo == *hi;
    *lo = empty || at < *lo ? at : *lo;
    *hi = empty || at + n > *hi ? at + n : *hi;
}

struct Cluster {
    unsigned index;
    Cta *ctas;
    int64_t arrived, phase; /* cluster barrier, in warps */
    int64_t live;           /* warps that have not ended */
};

/* ---- effects ------------------------------------------------------------- */

typedef enum EffectKind {
    EFFECT_load,      /* tensor map to shared memory of some CTAs */
    EFFECT_store,     /* shared memory to tensor map, or reduce into it */
    EFFECT_send,      /* shared memory to that of a CTA of the cluster */
    EFFECT_cp_async,  /* an instruction's body, for some lanes */
    EFFECT_cp_arrive, /* an mbarrier arrival after the lanes' cp.async */
    EFFECT_mma
} EffectKind;

/* Rows x depth of shared memory, as wgmma reads it. */
typedef struct MmaOperand {
    const MemObj *obj;
    int64_t index[TENSOR_MAX_RANK]; /* of its first element */
    int dim[3];                     /* intervals: dims of obj */
    unsigned n_dims;
    bool transposed; /* A: k x 64; B: n/64 x k x 64 */
    Frag *frag;      /* A in registers */
} MmaOperand;

struct Effect {
    EffectKind kind;
    uint64_t number;
    const Op *op;
    Warp *warp;
    uint32_t lanes;
    unsigned stage;
    int64_t group[WARP_LANES]; /* of each lane; mma: [0] */
    bool source_read;
    uint64_t priority; /* of the schedule */
    size_t place;      /* in the machine's list */
    char *iterators;   /* of the warp when it issued it: for messages */
    /* copies */
    const MemObj *map;
    int64_t map_index[BOX_RANK];
    const MemObj *shared, *to; /* to: send */
    int64_t shared_at, to_at;  /* un-swizzled byte offset of the box in it */
    int64_t bytes;             /* send */
    unsigned n_targets;
    unsigned *targets; /* CTA ranks still to be written */
    int64_t bar_at;    /* offset of the mbarrier; -1: none */
    int64_t turn;      /* .. and the phase that its ring means */
    unsigned char *data, *data_written;
    double *values;
    bool add;
    /* cp.async */
    const Instr *instr;
    struct LaneCall *calls;  /* by lane */
    Effect *older, *younger; /* of the warp's */
    /* mma */
    Frag *d_in, *d_out;
    MmaOperand a, b;
    int64_t n, k, a_slot;
    bool scale_d;
    Effect *next; /* of the warp */
};

typedef struct EffectRef {
    Effect *effect;
} EffectRef;

/* ---- kernel and machine -------------------------------------------------- */

typedef struct FreeLanes {
    double *x; /* of no value now */
} FreeLanes;

/* The last op in the text that takes a value, and how often it does. */
typedef struct LastUse {
    const Op *op;
    unsigned n;
} LastUse;

struct Kernel {
    Module *m;
    const Op *op;
    const Block *block;
    unsigned n_warps;
    int64_t block_dim, cluster_dim, smem_bytes;
    VarId cta, warp, lane;
    size_t n_vars, n_values;
    bool *varying; /* by VarId: differs between lanes of a warp */
    LastUse *uses; /* by Value.id */
    MemObj **objs; /* by Value.id */
    struct AccessMap *composed;
};

struct Machine {
    Module *m;
    Ctx *ctx;
    Arena *arena;
    Kernel *k;
    const MachineOptions *options;
    uint64_t rng;
    uint64_t *ops_left; /* of all launches */
    bool by_priority;
    unsigned laziness; /* of 256: how seldom an engine goes first */
    unsigned long quantum;
    uint64_t next_change; /* time of the next change of priorities */
    uint64_t time, next_effect;
    unsigned n_clusters;
    Cluster *clusters;
    VEC(EffectRef) effects;
    Frag *free_frags;
    VEC(FreeLanes) free_lanes;
    struct TileMap *tile_maps;
    struct MmaFetch *fetch;         /* operands.c; NULL: nothing was fetched */
    SpanVec lane_spans[WARP_LANES]; /* that an op touches, by lane */
    Interp *interp;
    Sem sem;
    bool failed;
    Effect *stepping; /* the effect that an engine works on now */
    uint32_t wants;   /* events that somebody listens to */
};

/* ---- faults and events (sched.c, machine.c) ------------------------------ */

/* False, and the machine has failed: more ops than it may execute. */
bool machine_spend(Machine *mc, uint64_t ops);

/* A diagnostic at op: "'async.x': ..", with the warp's place as witness. */
bool machine_fail(Machine *mc, const Warp *w, uint32_t lanes, const Op *op,
                  const char *code, const char *fmt, ...) EXO_PRINTF(6, 7);
/* The code of a fault as whoever runs the machine wants it. */
const char *machine_class(const Machine *mc, const Op *op, const char *code);
void machine_emit(Machine *mc, MachineEvent *e);
MachineAgent warp_agent(const Warp *w, MachineAgentKind kind, uint32_t lanes);
/* Bytes [at, at + n) of cta's shared memory, which belong to obj, were touched
 * by an engine. */
void engine_event(Machine *mc, const Effect *e, const Cta *cta,
                  const MemObj *obj, int64_t at, int64_t n, bool write);
/* Spans of it were read. */
void engine_reads(Machine *mc, const Effect *e, const MemObj *obj,
                  const MachineSpan *spans, size_t n);
uint64_t machine_random(Machine *mc);
/* `, k = 3` for each loop that the warp is in. */
void print_iterators(StrBuf *out, const Warp *w);
void print_op_name(StrBuf *out, const Op *op);

/* ---- places (place.c) ---------------------------------------------------- */

bool kernel_varies(const Kernel *k, const Affine *e);
bool access_varies(const Kernel *k, const Access *a);
/* The access on its root object. */
const Access *kernel_access(const Kernel *k, const Access *a);
bool warp_index(Warp *w, const Op *op, const Affine *e, unsigned lane,
                int64_t *out);
bool warp_cond(Warp *w, const Op *op, const Cond *c, unsigned lane, bool *out);
bool cond_varies(const Kernel *k, const Cond *c);
/* Is op, which takes v, the last that does until v is made anew? */
bool kernel_ends(const Kernel *k, const Op *op, const Value *v);
/* The object and the index of the access's first element (ring slots put in);
 * turn receives how often the ring was filled before, when there is one. */
const MemObj *warp_access(Warp *w, const Op *op, const Access *a, unsigned lane,
                          int64_t *index, int64_t *turn);
/* The same for one lane after the other: what does not vary between them is
 * found for the first. Begins as zeros. */
typedef struct LaneAccess {
    const MemObj *obj;
    const Access *access;
    bool varies[TENSOR_MAX_RANK];
    int64_t index[TENSOR_MAX_RANK];
} LaneAccess;
bool lane_access(Warp *w, const Op *op, const Access *a, unsigned lane,
                 LaneAccess *x);
bool place_at(Warp *w, const Op *op, const MemObj *obj, const int64_t *index,
              unsigned lane, Place *out);
bool place_read(Warp *w, const Op *op, const Place *p, unsigned lane,
                double *out);
void place_write(Warp *w, const Place *p, double x);
bool place_written(const Place *p);
int64_t shared_address(uint32_t swizzle, int64_t offset);
/* An ordinary store of an element of o at byte `at`; who calls it tells
 * mma_forget. */
void shared_store(Cta *cta, const MemObj *o, int64_t at, double x);
void place_event(Warp *w, const Op *op, const Place *p, uint32_t lanes,
                 bool write);
/* Bytes [at, at + n), joined to the span before where they follow it. */
void spans_add(Arena *arena, SpanVec *spans, int64_t at, int64_t n);
/* What is in the machine's spans of this lane is an access by it to o in cta's
 * memory; they are empty afterwards. */
void lane_spans_event(Warp *w, const Op *op, const MemObj *o, const Cta *cta,
                      unsigned lane, bool write);

/* ---- values (values are by warp: warp.c) --------------------------------- */

double *warp_lanes(Warp *w, const Value *v); /* made when absent */
/* After op: the lanes of operands that nothing takes any more are free. Few
 * values are alive at once, and an unrolled kernel has thousands. */
void warp_drop_lanes(Warp *w, const Op *op);
Frag *frag_new(Machine *mc, int64_t n);
void frag_drop(Machine *mc, Frag *f);
void frag_settle(Frag *f);
void warp_set_frag(Warp *w, const Value *v, Frag *f); /* takes the ref */
/* The fragment operand `i` may be read by other ops than wgmma. */
bool frag_readable(Warp *w, const Op *op, unsigned i, uint32_t mask);
/* Copies from into to for the lanes; whole: nothing of to is kept. */
bool warp_move(Warp *w, const Value *from, const Value *to, uint32_t lanes,
               bool whole);

typedef enum Step { STEP_next, STEP_pushed, STEP_blocked, STEP_failed } Step;
/* Runs ops until the warp blocks, ends, or `budget` visible ops are done. */
bool warp_run(Warp *w, unsigned long budget);
void warp_start(Warp *w);
bool wait_ready(const Warp *w);

/* ---- ops ----------------------------------------------------------------- */

Step exec_memory(Warp *w, const Op *op, uint32_t mask); /* mem, arith, frag */
Step exec_tile_store(Warp *w, const Op *op, uint32_t mask);
Step exec_sync(Warp *w, const Op *op, uint32_t mask); /* barriers, groups */
Step exec_copy(Warp *w, const Op *op, uint32_t mask); /* bulk copies */
Step exec_wgmma(Warp *w, const Op *op, uint32_t mask);
Step exec_instr(Warp *w, const Op *op, uint32_t mask);

/* The CTA that entry i of attribute cta_xor names (the own one when there is no
 * attribute), *n the number of entries; NULL and a diagnostic when there is no
 * such CTA. */
Cta *xor_target(Warp *w, const Op *op, unsigned i, unsigned *n);
/* The byte offset of the mbarrier that an access means, and its ring's turn. */
bool mbar_offset(Warp *w, const Op *op, const Access *a, unsigned lane,
                 int64_t *offset, int64_t *turn);
bool mbar_arrive(Machine *mc, const Warp *w, uint32_t lanes, const Op *op,
                 Cta *cta, int64_t offset, int64_t turn);
bool mbar_bytes(Machine *mc, const Warp *w, uint32_t lanes, const Op *op,
                Cta *cta, int64_t offset, int64_t bytes, int64_t turn);

Effect *effect_new(Machine *mc, EffectKind kind, Warp *w, const Op *op,
                   uint32_t lanes);
/* Bytes that the async proxy reads must not be fresh from the generic one. */
bool check_proxy(Machine *mc, const Warp *w, uint32_t lanes, const Op *op,
                 const Cta *cta, int64_t at, size_t n);
bool effect_ready(const Effect *e);
bool effect_step(Machine *mc, Effect *e); /* may free e */
void effect_finish(Machine *mc, Effect *e);
bool copy_step(Machine *mc, Effect *e);
bool mma_step(Machine *mc, Effect *e);
/* The warp's rows of A, row-major, as f32; false after a fault. */
bool mma_gather_a(Machine *mc, Effect *e, float *a);
/* B as fma_f32 takes it, until shared memory is written; NULL after a fault. */
const float *mma_gather_b(Machine *mc, Effect *e);
/* n bytes at `at` of cta's shared memory are written. */
void mma_forget(Machine *mc, const Cta *cta, int64_t at, int64_t n);
bool cp_async_step(Machine *mc, Effect *e);
void lane_calls_free(Effect *e);

/* The tile map of a register memory: element (row-major over the packed
 * dimensions) to lane and slot; NULL and a diagnostic when it has none. */
typedef struct TileMap {
    const MemRef *ref;
    int64_t n, rows, cols; /* rows x cols of a 2-d tile; n in all */
    int64_t slots;         /* registers of a lane */
    unsigned char *lane;
    int32_t *slot;
    struct TileMap *next;
} TileMap;
const TileMap *tile_map(Machine *mc, const Warp *w, const Op *op,
                        const MemRef *ref);

bool machine_schedule(Machine *mc);

#endif
