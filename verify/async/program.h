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
#include "verify/async/values.h"
#include "verify/interp.h"

struct Turns;

enum { MAX_ITERS = 16 };
#define NO_INSTANCE UINT32_MAX

/* A set of 64-bit keys (not 0) with a number each. */
typedef struct KeyTable {
    uint64_t *keys; /* 0: free */
    uint32_t *at;
    size_t n, cap;
} KeyTable;

/* The number of the key, which is 0 and *fresh when it was not there. Valid
 * until the next call. */
uint32_t *key_table_at(Arena *arena, KeyTable *t, uint64_t key, bool *fresh);

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
    bool partial;     /* it may write a part of what it names */
    ThreadIter *threads;
    const ParDevice *device;
    const Cond *guard;
    ThreadPlace *places; /* by thread of a cluster */
} Stmt;

typedef struct Instance {
    uint32_t sid, n;
    int64_t iters[MAX_ITERS];
    bool done;         /* by the lowered program */
    Digest says, does; /* what is written by the program, and by the run */
    const Op *by;      /* an op that carries it out */
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
    VEC(Instance) instances;
    KeyTable known;
    uint64_t launch; /* device functions that ran */
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
uint64_t program_key(uint64_t launch, uint32_t sid, const int64_t *iters,
                     unsigned n);
/* The number of the instance with this key, or NO_INSTANCE. */
uint32_t program_instance(const Program *p, uint64_t key);
/* May a thread of a cluster (numbered through its CTAs) execute the statement
 * with these iterators, by the loops over threads around it? */
bool program_allows(Program *p, uint32_t sid, int64_t thread,
                    const int64_t *iters, unsigned n);

#endif
