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
    int64_t value;    /* of a control variable */
    Tensor *tensor;   /* of a tensor; the caller's */
    const View *view; /* instead of tensor: a window of one */
} ProcArg;

typedef struct Interp Interp;
typedef struct Scope Scope;

/* Runs an op that has no sequential meaning (those of host.proc), with the
 * functions below; false after a diagnostic. */
typedef bool InterpHook(void *user, Interp *in, Scope *scope, const Op *op);

/* Looks at an op of the procedure after it ran, where it stands. */
/* False stops the run, which fails without a report. */
typedef bool InterpWatch(void *user, Interp *in, Scope *scope, const Op *op);

typedef struct InterpOptions {
    bool plain;       /* no native nests: for testing them */
    InterpHook *hook; /* NULL: such ops are refused */
    void *hook_user;
    /* Called for statements whose number is set in `watched`. Loops around
     * them must be set too: such loops do not run natively. */
    InterpWatch *watch;
    void *watch_user;
    const bool *watched; /* by sid */
    /* Run only some device tasks: task t (in order of execution) where
     * sample[t] is set; beyond n_sample none. NULL: all. */
    const bool *sample;
    int64_t n_sample;
} InterpOptions;

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
/* For hooks: operand i of op as it stands, and a tensor result. */
bool interp_operand_index(Interp *in, Scope *scope, const Op *op, unsigned i,
                          int64_t *out);
bool interp_operand_cond(Interp *in, Scope *scope, const Op *op, unsigned i,
                         bool *out);
/* Of an access, or of a value that is a tensor, window or map. */
bool interp_operand_view(Interp *in, Scope *scope, const Op *op, unsigned i,
                         View *out);
/* The extents of v where op stands; extent has TENSOR_MAX_RANK places. */
bool interp_value_extents(Interp *in, Scope *scope, const Op *op,
                          const Value *v, int64_t *extent);
/* The value that a control variable has there. */
int64_t interp_var(const Scope *scope, VarId var);
void interp_set_result(Interp *in, Scope *scope, const Op *op, const View *v);
/* A fault at op with the values around it; answers false. */
bool interp_fault(Interp *in, Scope *scope, const Op *op, const char *code,
                  const char *message);
/* Device tasks that the last run met, whether run or not. */
int64_t interp_task_count(const Interp *in);
/* Task loops that it met, a nest as one. The tasks of one nest depend on none
 * of its others; those of a later one may need what all of an earlier wrote. */
int64_t interp_task_nests(const Interp *in);

/* The arguments' shapes from the values of the control variables: evaluates
 * extent d of parameter number `arg`. False and a diagnostic when it cannot. */
bool interp_param_extents(Module *m, const Op *proc, unsigned arg,
                          const ProcArg *args, int64_t *extent);

/* A rough estimate of a run's work, in units of one plainly interpreted op;
 * native nests count a fiftieth. Loops count their trips with outer iterators
 * at their first value. Needs only control values in args. */
double interp_estimate(Module *m, const Op *proc, const ProcArg *args);

#endif
