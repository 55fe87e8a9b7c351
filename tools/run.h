/* What exo-run's files share: a program, its arguments, and runs of it at one
 * level. */
#ifndef EXO_TOOLS_RUN_H
#define EXO_TOOLS_RUN_H

#include "tools/options.h"
#include "verify/interp.h"

/* How a run uses a parameter. Outputs are only written: they are poisoned. */
typedef enum RunUse { RUN_input, RUN_output, RUN_both } RunUse;

typedef struct RunArg {
    const char *name;
    bool is_tensor;
    int64_t value;
    Tensor *tensor; /* as made, never changed */
    RunUse use;
} RunArg;

typedef struct Run {
    Ctx *ctx;
    const Options *o;
    Module *m;       /* as read */
    Op *proc;        /* ctl.proc, or host.proc of an async file */
    Module *lowered; /* async form, or NULL; m itself for an async file */
    Op *host;        /* its host.proc */
    unsigned n;
    RunArg *args; /* by the procedure's block arguments */
    bool exact;   /* integers: results must be the same bits */
    uint64_t seed;
} Run;

/* ---- arguments: run_args.c ----------------------------------------------- */

/* Makes the arguments from --size, --arg, --in, --fill, --seed. */
ToolStatus run_make_args(Run *r);
/* Fresh copies of the tensors, as a run takes them; freed by run_free_args. */
GIVES ProcArg *run_copy_args(const Run *r);
void run_free_args(const Run *r, TAKES ProcArg *args);
/* --out: writes the tensors of args to their files. */
ToolStatus run_write_outputs(const Run *r, const ProcArg *args);
/* One line for each output: type, shape, checksum of the bytes. */
void run_print_outputs(const Run *r, const ProcArg *args);

/* ---- running and comparing: run_levels.c --------------------------------- */

/* Puts the async form into r->lowered and r->host. */
ToolStatus run_lower(Run *r);
ToolStatus run_seq(Run *r);
ToolStatus run_async(Run *r);
ToolStatus run_gpu(Run *r); /* run_gpu.c */
/* Is there a GPU? Asked before large inputs are made. */
ToolStatus run_gpu_probe(Run *r);

/* The sequential result to compare with. Above a budget of work only some
 * tasks are run, and only what they changed is compared. */
typedef struct Reference {
    const char *name; /* "seq" */
    ProcArg *args;
    int64_t tasks, run; /* of them; tasks 0: all was run */
} Reference;
ToolStatus run_reference(Run *r, Reference *out);
/* Holds got against the reference; reports what differs. `where` says which
 * run it was. Prints a line when all agrees. */
ToolStatus run_compare(const Run *r, const Reference *ref, const ProcArg *got,
                       const char *where);

#endif
