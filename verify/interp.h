/* The interpreter: the meaning of a procedure.
 *
 * Runs a ctl.proc at seq, or at par read sequentially: loop modes are plain
 * loops, device and warps blocks are blocks, synchronisation does nothing, an
 * instruction does what its library body says. docs/semantics.md states the
 * rules; every other reader of the IR is compared with this one.
 *
 * Faults of the program (an access out of bounds, an element read that was
 * never written, a failed assert) are diagnostics with the statement's place,
 * the values of the loops around it and the element; the run then stops.
 *
 * Loop nests that only copy, or that only multiply and add, run natively
 * (verify/nest.h); the results are the same bits as those of the plain way. */
#ifndef EXO_VERIFY_INTERP_H
#define EXO_VERIFY_INTERP_H

#include "ir/lib.h"
#include "verify/tensor.h"

/* One argument of a procedure, by position. */
typedef struct ProcArg {
    int64_t value; /* of a control variable */
    Tensor *tensor; /* of a tensor; the caller's */
    const View *view; /* instead of tensor: a window of one */
} ProcArg;

typedef struct InterpOptions {
    bool plain; /* no native nests: for testing them */
    /* Run only some device tasks: task t (in order of execution) where
     * sample[t] is set; beyond n_sample none. NULL: all. */
    const bool *sample;
    int64_t n_sample;
} InterpOptions;

typedef struct Interp Interp;

/* An interpreter for procedures of m. It keeps storage between runs; free it
 * before m. */
GIVES Interp *interp_new(Module *m);
void interp_free(TAKES Interp *in);
/* Runs proc (a ctl.proc of in's module or of a library) on n arguments, one for
 * each of its block's. False after a fault. */
bool interp_run(Interp *in, const Op *proc, const ProcArg *args, unsigned n,
                const InterpOptions *options);
/* Runs an instruction's body; `at` is the op that calls it, for messages. */
bool interp_run_instr(Interp *in, const Instr *instr, const ProcArg *args,
                      unsigned n, const Op *at);
/* Device tasks that the last run met, whether run or not. */
int64_t interp_task_count(const Interp *in);

/* The arguments' shapes from the values of the control variables: evaluates
 * extent d of parameter number `arg`. False and a diagnostic when it cannot. */
bool interp_param_extents(Module *m, const Op *proc, unsigned arg,
                          const ProcArg *args, int64_t *extent);

/* A rough count of scalar operations that a run would make, saturating. Loops
 * count their trips with outer iterators at their first value. *tasks: device
 * tasks. Needs only control values in args. */
double interp_estimate(Module *m, const Op *proc, const ProcArg *args,
                       double *tasks);

#endif
