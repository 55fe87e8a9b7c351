/* Running a host.proc, wherever its kernels run.
 *
 * The interpreter runs the procedure's loops, ifs and index expressions, and
 * the host ops are read here once: argument checks, tensor maps, allocations,
 * and the operands of copies, fills and launches. What these do is up to the
 * caller: the machine model works on the tensors themselves, exo-run on their
 * copies in a GPU's memory. */
#ifndef EXO_VERIFY_HOST_RUN_H
#define EXO_VERIFY_HOST_RUN_H

#include "verify/interp.h"

/* One argument of a launch, by the kernel's block argument. */
typedef struct HostArg {
    int64_t value; /* of a control variable */
    View view;     /* of a tensor, window or map */
} HostArg;

/* A launch's arguments, for expressions in the kernel's parameters: the `user`
 * of an Env whose `value` is host_given_value. */
typedef struct HostGiven {
    const Block *kernel; /* its body */
    const HostArg *args;
    unsigned n;
} HostGiven;

/* Each answers false after a diagnostic; interp_fault makes one at op. */
typedef struct HostActions {
    void *user;
    /* t was made by host.alloc and lives until the run ends. May be NULL. */
    bool (*alloc)(void *user, const Op *op, Tensor *t);
    /* Elements of one type; from NULL: zero. The shapes are the caller's to
     * compare. */
    bool (*copy)(void *user, Interp *in, Scope *s, const Op *op, const View *to,
                 const View *from);
    /* n arguments, as many as the kernel takes beside its coordinates. */
    bool (*launch)(void *user, const Op *op, const Op *kernel,
                   const HostArg *args, unsigned n);
} HostActions;

/* The value of a control parameter; false for what is none. */
bool host_given_value(const Env *env, const Atom *atom, int64_t *out);

/* The most tasks that one of the kernel's task loops has in this launch;
 * INT64_MAX where it has no such loop or its bounds are not known. */
int64_t host_launch_tasks(const Op *kernel, const HostArg *args, unsigned n);

/* Runs host (a host.proc of m) on n arguments. False after a fault. */
bool host_run(Module *m, const Op *host, const ProcArg *args, unsigned n,
              const HostActions *actions);

#endif
