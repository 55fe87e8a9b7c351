/* The par program as check-async's refinement sees it: the instances of its
 * statements at given arguments, what each writes, which threads may execute
 * it, and what the arguments are in the end.
 *
 * An instance is a statement with the values of its iterators, in one launch of
 * its device function. Those of every statement that writes shared or global
 * memory, arrives or waits are listed, in order, by a run of the interpreter.
 * refine.c holds a run of the lowered program against them. */
#ifndef EXO_VERIFY_ASYNC_PROGRAM_H
#define EXO_VERIFY_ASYNC_PROGRAM_H

#include "passes/analysis/par_info.h"
#include "verify/async/instances.h"
#include "verify/async/values.h"
#include "verify/interp.h"

struct Turns;

enum { MAX_ITERS = 16 };

/* A thread loop around a statement. */
typedef struct ThreadIter {
    unsigned at; /* which of the statement's iterators */
    const Affine *value;
} ThreadIter;

/* Where a thread stands in the loops over threads. */
typedef struct ThreadPlace {
    bool known, takes_part;
    int64_t *iters; /* one a ThreadIter */
} ThreadPlace;

/* A statement that is looked at. */
typedef struct Stmt {
    const Op *op; /* NULL: it is not */
    VarId *vars;  /* iterators from its device function in */
    unsigned n, n_writes, n_threads;
    OpAccess *writes; /* of shared and global memory */
    bool *global;     /* .. those of global */
    bool partial;     /* it may write a part of what it names */
    ThreadIter *threads;
    const ParDevice *device;
    const Cond *guard;
    ThreadPlace *places; /* by thread of a cluster */
    InstanceTree instances;
} Stmt;

/* A warp that executes an op for an instance, and lanes of it. */
typedef struct Executed {
    const Op *op;
    uint32_t cta, warp, lanes;
} Executed;

typedef struct Instance {
    uint32_t sid;
    Digest says, does; /* what is written by the program, and by the run */
    const Op *by;      /* the last op that carries it out; NULL: none does */
    Executed first;    /* that carried it out */
} Instance;

typedef struct Program {
    Arena *arena;
    Ctx *ctx;
    Module *m;
    const Op *proc;
    Stmt *stmts; /* by sid */
    bool *watched;
    uint32_t n_sids;
    bool reorders; /* a lowering adds in another order: values are compared
                      within roundings */
    VEC(Instance *) blocks; /* of instances, by number */
    uint32_t n_instances;
    int64_t launch; /* device functions that ran */
    uint64_t n_watched;
    Tensor **results; /* the arguments after the run */
    unsigned n_args;
    struct Turns *turns;    /* that the run sees, or NULL */
    const char *open;       /* why the instances are not known, or NULL */
    const char *value_open; /* .. and the results */
    bool wrong; /* read sequentially it reads what was never written, which is
                   reported */
} Program;

/* Reads proc, a ctl.proc of the par module m; in the arena. Its runs are seen
 * by turns, unless NULL. */
void program_init(Program *p, Arena *arena, Ctx *ctx, Module *m, const Op *proc,
                  struct Turns *turns);
/* Runs it on copies of the arguments. */
void program_run(Program *p, const ProcArg *args, unsigned n);
/* Gives the copies back. */
void program_free(Program *p);

/* The statement, when it is one that is looked at. */
const Stmt *program_stmt(const Program *p, uint32_t sid);
/* The number of the statement's instance with n iterators, or NO_INSTANCE. */
uint32_t program_instance(const Program *p, int64_t launch, uint32_t sid,
                          const int64_t *iters, unsigned n);
Instance *program_at(const Program *p, uint32_t number);
/* Writes the iterators of an instance; answers how many. */
unsigned program_iters(const Program *p, uint32_t number,
                       int64_t iters[MAX_ITERS]);
/* May a thread of a cluster (numbered through its CTAs) execute the statement
 * with these iterators, by the loops over threads around it? */
bool program_allows(Program *p, uint32_t sid, int64_t thread,
                    const int64_t *iters, unsigned n);

#endif
