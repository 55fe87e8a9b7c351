/* What the files of the par analysis share; nobody else includes it. */
#ifndef EXO_PASSES_ANALYSIS_PAR_INTERNAL_H
#define EXO_PASSES_ANALYSIS_PAR_INTERNAL_H

#include "passes/analysis/par_info.h"
#include "passes/analysis/par_text.h"
#include "passes/analysis/ptr_map.h"
#include "passes/analysis/tiling.h"

/* The collective that executes the ops of a block. */
typedef struct Scope {
    const ParDevice *dev;
    TilingCtx *tc;
    const Tiling *tiling;
    const char *role; /* named warps, or NULL */
    bool in_warps;    /* a CudaWarps here counts as nested */
    const Cond *guard;
    ThreadSet *set; /* made on demand */
} Scope;

/* A thread loop or CudaWarps. */
typedef struct LoopFacts {
    const Affine *iter;
    const Cond *guard;
    unsigned serial; /* of its tile op; 0: trivial */
    int64_t tile_count, pitch;
} LoopFacts;

/* An allocation with what later uses must agree with. */
typedef struct AllocFacts {
    ParAlloc pub;
    const UnitRef *native;
    unsigned depth;       /* tree depth where it is allocated */
    const Tiling *tiling; /* completed, at the first use */
    const Access *first_access;
} AllocFacts;

typedef struct BarrierFacts {
    int64_t count; /* of the first Arrive; 0: none seen */
    Op *first_arrive;
} BarrierFacts;

struct ParInfo {
    Ctx *ctx;
    Module *m;
    bool ok;
    PtrMap devices;  /* par.device -> ParDevice */
    PtrMap scopes;   /* Block -> Scope */
    PtrMap loops;    /* Op -> LoopFacts */
    PtrMap allocs;   /* Value -> AllocFacts */
    PtrMap syncs;    /* Op -> ParSync */
    PtrMap barriers; /* Value -> BarrierFacts */
};

Scope *par_scope(const ParInfo *pi, const Op *op);
/* The loop whose iterator v is, of any mode, enclosing op; NULL: none. */
Op *par_loop_of_var(const Op *op, VarId v);

/* An error; marks the analysis as failed. */
Diag *par_error(ParInfo *pi, const Op *op, const char *code, const char *fmt,
                ...) EXO_PRINTF(4, 5);

/* par_device.c: attributes and task loops; NULL after an error that leaves
 * nothing to analyse. */
ParDevice *par_device_read(ParInfo *pi, Op *op);

/* par_threads.c */
ThreadSet *par_thread_set(ParInfo *pi, Scope *s);

/* par_dist.c */
void par_dist_alloc(ParInfo *pi, Op *op, Scope *s);
/* One use of an allocation. dims: the access on the allocation itself; the
 * first n_units intervals are spread by those units. */
typedef struct DistUse {
    Op *op;
    Scope *scope;
    const Access *access;
    unsigned n_units;
    const UnitRef *const *units;
} DistUse;
/* What each dimension of a use is spread by: filled up to R. */
typedef struct DistIter {
    int64_t tile_count, pitch;
    const Affine *value;
    bool synthetic;
} DistIter;
/* False after an error. *n and *iters (in the arena) when they are asked. */
bool par_dist_use(ParInfo *pi, AllocFacts *a, const DistUse *u, unsigned *n,
                  const DistIter **iters);

/* par_sync.c */
void par_sync_analyze(ParInfo *pi, Op *op, Scope *s);

#endif
