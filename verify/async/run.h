/* One run of the machine under the eyes of check-async: what protocol.c and
 * races.c share. The driver (check_async.c) makes it, machine_run feeds it. */
#ifndef EXO_VERIFY_ASYNC_RUN_H
#define EXO_VERIFY_ASYNC_RUN_H

#include "verify/async/order.h"

typedef struct Shadow Shadow;

/* A copy under way, and the phase its bytes were meant for. */
typedef struct CopyTarget {
    uint64_t effect;
    unsigned cta;
    int64_t phase;
} CopyTarget;

/* The first event that was not as the rings number it: what is behind a fault,
 * where there is one. It alone refutes nothing. */
typedef struct Cause {
    const char *code; /* NULL: none */
    MachineEvent event;
    const char *text;
} Cause;

/* Who executed griddepcontrol.wait in this launch: see dependent.h. */
typedef struct Dependent {
    uint32_t *waited; /* lanes, by cluster and warp; NULL: none needs to */
    bool any;
    unsigned running; /* warps that have not ended */
} Dependent;

typedef struct AsyncRun {
    MachineObserver base;
    Order order;
    Ctx *ctx;
    Module *m;
    const char *sizes; /* for witnesses */
    bool *too_much;    /* set: the run is to stop */
    /* Global tensors that the kernel only reads. */
    const Tensor **quiet;
    unsigned n_quiet;
    VEC(CopyTarget) targets;
    Cause cause;
    Shadow *shadow;
    struct Turns *turns;   /* that the run sees, or NULL */
    struct Refine *refine; /* NULL: no program to compare with */
    unsigned *exited;      /* warps, by cluster and CTA */
    Dependent dependent;
    bool protocol_bad, races_bad;
} AsyncRun;

/* An error at op with the place as witness, unless the part has one already;
 * marks the part as refuted. other: the other access, or NULL. */
void protocol_fault(AsyncRun *r, const MachineEvent *e, const char *code,
                    const char *fmt, ...) EXO_PRINTF(4, 5);
void race_fault(AsyncRun *r, const MachineEvent *e, const Stamp *other,
                const char *code, const char *fmt, ...) EXO_PRINTF(5, 6);

/* Looks at an event before the order takes it. */
void protocol_event(AsyncRun *r, const MachineEvent *e);
/* .. and after. */
void protocol_after(AsyncRun *r, const MachineEvent *e);
/* Reads and writes. */
void races_event(AsyncRun *r, const MachineEvent *e);
/* What agents know has changed. */
void races_forget(AsyncRun *r);

#endif
