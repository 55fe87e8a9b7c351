/* The machine model: what the async level does on a GPU, without one.
 *
 * Runs a host.proc and the kernels it launches. Several clusters run at once;
 * each CTA has its shared memory in bytes with a mask of what was written, its
 * mbarriers with arrivals, bytes and phase, and warps that execute the
 * structured IR as vectors of 32 lanes. Copies and tensor-core work are pending
 * effects: they read their source, write their destination and signal in steps
 * of their own, late and out of order, as the scheduler picks. Nothing else in
 * the compiler knows what an mbarrier does, except code generation.
 *
 * Faults are diagnostics: a read of shared memory, global memory or a register
 * that was never written, an access out of bounds, a misuse of a barrier, a
 * deadlock (with who waits for what). Observers see each event, so that checks
 * and the trace attach without the core knowing them. */
#ifndef EXO_VERIFY_MACHINE_MACHINE_H
#define EXO_VERIFY_MACHINE_MACHINE_H

#include "verify/interp.h"

typedef enum MachineAgentKind {
    AGENT_warp,     /* lanes of a warp */
    AGENT_copy,     /* the bulk-copy engine */
    AGENT_cp_async, /* a thread's cp.async */
    AGENT_tensor    /* the tensor core, for one warp */
} MachineAgentKind;

typedef struct MachineAgent {
    MachineAgentKind kind;
    unsigned cluster, cta, warp; /* cta: rank in the cluster */
    uint32_t lanes;
} MachineAgent;

#define MACHINE_NO_TURN INT64_MIN

typedef enum MachineEventKind {
    MEV_read,
    MEV_write,   /* memory: see below */
    MEV_issue,   /* an effect was started: effect */
    MEV_finish,  /* .. and is over */
    MEV_phase,   /* an mbarrier's phase completed: cta, offset, phase */
    MEV_wait,    /* a warp starts to wait at op */
    MEV_wake,    /* .. and goes on */
    MEV_role,    /* a warp enters a role: why is its name */
    MEV_exit,    /* a warp's kernel ends */
    MEV_come,    /* lanes come to an op: machine_eval */
    MEV_op,      /* lanes executed an op that has an origin: machine_eval */
    MEV_launch,  /* a kernel (op) begins on `length` clusters */
    MEV_init,    /* an mbarrier was initialised: cta, offset, length: count */
    MEV_arrive,  /* one arrival on an mbarrier: cta, offset, phase; effect: of
                   the cp.async arrival that made it, or 0 */
    MEV_expect,  /* the phase waits for `length` more bytes */
    MEV_deliver, /* a copy (effect) counted `length` bytes in the phase */
    MEV_target,  /* a copy (effect) was started that will write to `cta` and
                   count `length` bytes on the mbarrier at offset */
    MEV_pass,    /* lanes go on after a wait: they saw this phase complete */
    MEV_meet,    /* a warp comes to named barrier `offset` for `length` threads,
                   in generation `phase` */
    MEV_step,    /* a warp is past an op that synchronises: op, lanes; of a
                   named or the cluster barrier: offset, phase */
    MEV_KINDS
} MachineEventKind;

/* Bytes of shared memory. */
typedef struct MachineSpan {
    int64_t offset, length;
} MachineSpan;

typedef struct MachineEvent {
    MachineEventKind kind;
    uint64_t time; /* steps of the scheduler */
    const Op *op;
    MachineAgent agent;
    /* read, write: shared bytes of CTA `cta` of agent.cluster when tensor is
     * NULL (where they are, behind the swizzle), else elements of a global
     * tensor. */
    const Tensor *tensor;
    const Value *object; /* shared memory: through which it is accessed */
    unsigned cta;
    int64_t offset, length;
    const MachineSpan *spans; /* of shared memory, .. */
    size_t n_spans; /* .. where an access has several; offset is 0 then. Else
                       0: offset and length say it */
    const unsigned char *bytes; /* what is at offset: after a write */
    ScalarType elem;            /* of its elements */
    bool async_proxy;
    int64_t phase;
    int64_t turn; /* arrive, expect, target, pass: the phase that the ring
                     means; MACHINE_NO_TURN without one */
    int64_t bar;  /* of a load or send: offset of the mbarrier that counts it */
    unsigned bar_cta; /* send: whose that is */
    uint64_t effect;
    const char *why; /* role: its name */
    void *warp;      /* come, op: for machine_eval */
} MachineEvent;

typedef struct MachineObserver MachineObserver;
struct MachineObserver {
    uint32_t wants; /* bit 1 << kind for each kind it is called for */
    void (*event)(MachineObserver *self, const MachineEvent *e);
};

typedef struct MachineOptions {
    int64_t clusters; /* how many run at once, but no more than there are tasks;
                         0: 1 */
    bool canonical;   /* engines as late as allowed, warps in turn */
    uint64_t seed;    /* otherwise: of the random schedule */
    /* Ops that warps may execute, a launch being a thousand; 0: any number. A
     * run that takes more sets *spent. Where it is set, by an observer too, the
     * run fails without a report. */
    uint64_t most_ops;
    bool *spent;
    /* The class of a fault by its code, or NULL: codes as they are. */
    const char *(*classify)(void *user, const Op *op, const char *code);
    void *classify_user;
    unsigned n_observers;
    MachineObserver *const *observers;
} MachineOptions;

/* The value of e in a lane of an MEV_op's or MEV_come's warp; false where it
 * has none. */
bool machine_eval(const MachineEvent *ev, const Affine *e, unsigned lane,
                  int64_t *out);

/* Does it differ between lanes there? */
bool machine_varies(const MachineEvent *ev, const Affine *e);

/* Runs host (a host.proc of m) on n arguments, one for each of its block's.
 * False after a fault. */
bool machine_run(Module *m, const Op *host, const ProcArg *args, unsigned n,
                 const MachineOptions *options);

#endif
