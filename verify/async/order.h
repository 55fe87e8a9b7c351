/* Happens-before over one run of the machine.
 *
 * Agents are the lanes of a cluster's warps, the tensor core as each warp uses
 * it, the copies and cp.async of each lane, and each mbarrier, which stands for
 * the bulk loads that it counts. An agent's work bears its epoch; a Clock says
 * up to which epoch of each agent all work is known to be before. What a lane
 * knows grows at waits and barriers; an effect knows what its issuers knew.
 *
 * A Clock has three rows: `known` is plain order; `shared` and `global` are
 * order through a proxy fence of the agent that did the work, which the async
 * proxy needs to see what the generic one wrote (global: not kept where
 * ordinary code writes no global memory). The fence counts when the writing
 * thread executed it before it released: the stronger of the readings of the
 * memory model, and what hardware documentation asks of code.
 *
 * Order consumes the machine's events of synchronisation; protocol.c and
 * races.c ask it. Nothing here is freed singly. */
#ifndef EXO_VERIFY_ASYNC_ORDER_H
#define EXO_VERIFY_ASYNC_ORDER_H

#include "ir/ir.h"
#include "verify/machine/machine.h"

enum { ORDER_LANES = 32, ORDER_NAMED = 16 };
#define ORDER_NOBODY UINT32_MAX

typedef struct Clock {
    uint32_t *known, *shared, *global; /* global: or NULL */
} Clock;

/* Work of one agent: a lane (base + bit of mask, for each bit: any of them may
 * have done it), or an engine (mask 0). */
typedef struct Stamp {
    uint32_t agent, epoch, mask;
    bool async_proxy;
    bool adds;           /* into global memory, by the copy engine */
    const Value *object; /* of shared memory, or NULL */
    const Op *op;
} Stamp;

/* What an effect's issuers knew; several effects may share one. */
typedef struct Snapshot {
    Clock clock;
    unsigned users;        /* effects under way, and a warp's `meet_of` */
    struct Snapshot *next; /* free list */
} Snapshot;

typedef struct OrderEffect {
    const Op *op;
    MachineAgent agent;
    Snapshot *before;   /* NULL when the effect is over */
    uint32_t own_epoch; /* of the issuing warp */
    uint32_t seq;       /* of the engine; cp.async: see seqs */
    uint32_t *seqs;     /* by lane, or NULL */
    uint32_t *waited;   /* by lane: its own cp.async that are over, or NULL */
} OrderEffect;

typedef struct Arrival {
    uint32_t lane, epoch;
} Arrival;

typedef VEC(Arrival) ArrivalVec;

/* What the rings' numbering says should happen in one phase. */
typedef struct Turn {
    int64_t turn, arrivals, expected, issued;
} Turn;

typedef struct OrderBar OrderBar;

typedef VEC(OrderBar *) OrderBarVec;

/* One mbarrier object. */
struct OrderBar {
    uint32_t agent; /* 0: never initialised */
    int64_t count, phase;
    uint32_t init_lane, init_epoch, fence_epoch; /* fence_epoch 0: no fence */
    bool init_fenced;                            /* by fence.mbarrier_init */
    int64_t shown_phase; /* of the cluster barrier, arrived at relaxed after
                            that; -1: none */
    Clock acc;           /* all arrivals so far, and completed phases */
    Clock done[2];       /* acc when phase p completed, by p & 1 */
    /* Of this phase, the one before and the one before that; open: bytes or
     * cp.async took part. */
    ArrivalVec arrivals[3];
    bool open[3];
    ArrivalVec expects;          /* of this phase */
    ArrivalVec waiters;          /* passes of the phase before */
    int64_t expected, delivered; /* bytes of this phase */
    VEC(Turn) turns;             /* kept by protocol.c */
};

typedef struct OrderMeet {
    bool used;
    int64_t generation, threads, arrived;
    uint32_t agent;
    Clock acc[2];        /* by generation & 1 */
    unsigned waiting[2]; /* warps that have not gone on yet */
} OrderMeet;

/* An arrival or a copy at an mbarrier of another CTA. */
typedef struct Signal {
    Arrival by;    /* epoch 0: a copy */
    Arrival phase; /* that it is part of */
} Signal;
typedef VEC(Signal) SignalVec;

/* Groups of one lane's copies, or of one warp's wgmma. */
typedef struct OrderGroups {
    uint32_t seq;       /* of the last that was issued */
    uint32_t agent;     /* until complete; 0: none yet */
    uint32_t read;      /* bulk stores: until their source was read */
    VEC(uint32_t) ends; /* seq at each commit */
} OrderGroups;

/* Lanes of a warp mostly know the same. While they are `joined`, all have the
 * rows of its first lane; what a lane knows of itself is then not in them (its
 * work up to the warp's epoch, its fences in `fenced`). */
typedef struct OrderCluster {
    Clock *lane, *own; /* by lane: the rows that it has, and its own ones */
    bool *joined;      /* by warp */
    uint32_t *fenced_shared, *fenced_global; /* by lane: epoch of its fence */
    uint32_t *epoch;                         /* by warp */
    uint32_t *version;  /* by warp: of what its lanes know */
    uint32_t *cached;   /* version of .. */
    Snapshot **meet_of; /* .. what all lanes know */
    OrderGroups *tensor, *bulk, *cp;
    OrderBar **bars;       /* by CTA, by offset / 8 */
    OrderBarVec *inited;   /* by CTA: that were initialised, .. */
    OrderBarVec *unfenced; /* .. and no fence.mbarrier_init since */
    OrderMeet *named;      /* 16 a CTA */
    Clock *named_acc;      /* by warp: of the use that it waits for */
    Clock cluster_acc[2];
    int64_t cluster_phase;
    int64_t *waited; /* by warp: the cluster barrier's last phase; -1: none */
    uint32_t n_agents, cap;
    Clock *at_exit;    /* by CTA: what its ended warps knew */
    SignalVec *remote; /* by CTA: what other CTAs do to its mbarriers,
                                but what a barrier of the cluster showed */
} OrderCluster;

typedef struct Order {
    Arena *arena;
    const Op *kernel;
    unsigned n_clusters, n_ctas, n_warps; /* warps of a CTA */
    uint32_t n_lanes;                     /* of a cluster */
    uint32_t cap;                         /* agents that there can be */
    size_t n_bars;                        /* places in a CTA */
    bool writes_global;                   /* by ordinary code */
    OrderCluster *clusters;
    VEC(OrderEffect) effects; /* by number - 1 */
    Snapshot *free_snapshots;
    VEC(Clock) free_clocks;
} Order;

/* Takes one event; before it, protocol.c looks at what is known. */
void order_event(Order *o, const MachineEvent *e);

OrderCluster *order_cluster(Order *o, const MachineAgent *a);
uint32_t order_warp(const Order *o, const MachineAgent *a);
uint32_t order_lane(const Order *o, const MachineAgent *a, unsigned lane);
/* The object, made when it is not there yet. */
OrderBar *order_bar(Order *o, const MachineAgent *a, unsigned cta,
                    int64_t offset);
const OrderEffect *order_effect(const Order *o, uint64_t number);
/* Is all that the stamp stands for before what the clock's owner does next? */
bool clock_knows(const Clock *c, const Stamp *s);
/* Has a relaxed arrival at the cluster barrier shown the event's warp that the
 * mbarrier is initialised? */
bool order_shown(const Order *o, const MachineEvent *e, const OrderBar *b);
/* Did phase p of the object complete, for one that knows c? It knows what lane
 * `own` did (ORDER_NOBODY: none). */
bool order_phase_known(const OrderBar *b, const Clock *c, int64_t p,
                       uint32_t own);
/* The stamp of a memory access event. */
Stamp order_stamp(Order *o, const MachineEvent *e);

#define FOR_MASK(l, mask)                      \
    for (unsigned l = 0; l < ORDER_LANES; l++) \
        if ((mask) >> l & 1)

#endif
