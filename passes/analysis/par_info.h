/* What is known of each statement, allocation and barrier of a device function
 * at the par level: who executes it, how it is spread over threads, what it
 * synchronises with. check-par reports what par_analyze finds wrong; lowering
 * reads the answers.
 *
 * Everything is an index expression or condition over three coordinates that
 * the analysis makes for each par.device: cta (rank in the cluster), warp (in
 * the CTA), lane. Thread in the CTA: 32 * warp + lane.
 *
 * A ParInfo belongs to the module's arena and is valid until the module is
 * edited. Keep it: each call of par_analyze makes new coordinates. Questions
 * about an op or value that no device function holds answer NULL. */
#ifndef EXO_PASSES_ANALYSIS_PAR_INFO_H
#define EXO_PASSES_ANALYSIS_PAR_INFO_H

#include "ir/lib.h"

typedef struct ParInfo ParInfo;

/* Analyses every par.device at or below root (a proc, a device, or NULL: the
 * whole module). Faults are reported to ctx; a statement that could not be
 * analysed has no answers. Never NULL. */
ParInfo *par_analyze(Ctx *ctx, Module *m, Op *root);
/* No fault was found. */
bool par_ok(const ParInfo *pi);

/* ---- device functions --------------------------------------------------- */

/* An entry of warp_config: warps [lo, hi) of each CTA. */
typedef struct ParRole {
    const char *name; /* "" where only blockDim is given */
    int64_t lo, hi;
    int64_t reg_dec, reg_inc; /* setmaxnreg; 0: none */
} ParRole;

typedef struct ParDevice {
    Op *op;
    VarId cta, warp, lane;
    const Affine *thread; /* 32 * warp + lane */
    int64_t block_dim, cluster_dim, blocks_per_sm;
    bool no_shutdown_sync; /* unsafe_no_shutdown_cluster_sync */
    bool dependent_launch; /* programmatic_dependent_launch */
    unsigned n_roles;      /* at least 1 */
    const ParRole *roles;
    unsigned n_tasks; /* task loops, outermost first */
    Op *const *tasks;
    Block *body; /* of the innermost task loop */
} ParDevice;

/* The device function that holds op (or is it). */
const ParDevice *par_device(const ParInfo *pi, const Op *op);

/* ---- (a) thread loops and CudaWarps ------------------------------------- */

/* The iterator of a thread loop for the executing thread: a constant where
 * there is one tile, else in terms of the coarsest coordinates that give it,
 * such as (warp - 4) floordiv 4. */
const Affine *par_iter(const ParInfo *pi, const Op *loop);
/* Which of the threads that execute the loop or CudaWarps itself execute its
 * body; cond_true: all. */
const Cond *par_guard(const ParInfo *pi, const Op *loop_or_warps);

/* ---- (b) who executes a statement --------------------------------------- */

/* The first of these that fits. */
typedef enum ThreadsKind {
    THREADS_one,       /* a single thread */
    THREADS_warp,      /* exactly one warp (also when it is the whole CTA) */
    THREADS_warpgroup, /* 4 warps, the first a multiple of 4; not a whole CTA */
    THREADS_cta,       /* one whole CTA */
    THREADS_cluster,   /* all CTAs, clusterDim > 1 */
    THREADS_warps,     /* several whole warps, contiguous, inside one CTA */
    THREADS_ctas,      /* several whole CTAs, not all */
    THREADS_other      /* parts of warps, gaps, parts of several CTAs */
} ThreadsKind;

/* The collective to which the executing thread belongs. */
typedef struct ThreadSet {
    ThreadsKind kind;
    int64_t threads;       /* of the collective, in all its CTAs */
    int64_t ctas;          /* CTAs it spans */
    int64_t per_cta;       /* threads in each of them */
    bool contiguous;       /* in each CTA, threads [first, first + per_cta) */
    bool warp_aligned;     /* contiguous, and begins and ends with a warp */
    const Affine *first;   /* when contiguous: in the CTA */
    const Affine *warp_lo; /* when warp_aligned: warps [warp_lo, + n_warps) */
    int64_t n_warps;
    /* Warps of a CTA that can execute the statement in any of its collectives:
     * [cover_lo, cover_hi). */
    int64_t cover_lo, cover_hi;
    const char *role;  /* the named warps around it, or NULL: outside of them */
    const Cond *guard; /* all guards around it: the threads that execute it */
} ThreadSet;

/* Of the collective that executes op, and of the one that executes the blocks
 * of a loop, CudaWarps or device. */
const ThreadSet *par_threads(const ParInfo *pi, const Op *op);
const ThreadSet *par_body_threads(const ParInfo *pi, const Op *op);

/* Is the collective that executes op exactly one of this unit, aligned as the
 * unit must be? When not, *why says what differs. */
bool par_matches_unit(ParInfo *pi, const Op *op, const UnitRef *unit,
                      const char **why);

/* ---- (c) allocations ---------------------------------------------------- */

/* A leading dimension that is spread over threads. */
typedef struct ParDist {
    int64_t tile_count; /* == the extent */
    int64_t pitch;    /* threads of the cluster from one to the next; 0: one */
    bool across_ctas; /* pitch is a multiple of blockDim (or 0) */
    const Affine *value; /* position of the executing thread, as at first use */
} ParDist;

typedef struct ParAlloc {
    Value *value;
    Op *op;          /* mem.alloc */
    const Mem *mem;  /* or mechanism */
    unsigned n_dist; /* R: an access drops its first R dimensions */
    const ParDist *dist;
    unsigned n_shard; /* what remains: value->shape from R on */
    const Affine *const *shard;
    bool used;
    Op *first_use; /* the first that was understood; NULL: n_dist is 0 */
} ParAlloc;

/* Of a tensor or barrier allocated in a device function; a window has none. */
const ParAlloc *par_alloc(const ParInfo *pi, const Value *v);

/* ---- (d) Arrive, Await, trailing barriers ------------------------------- */

typedef struct ParSync {
    Value *barrier;
    const Mem *mechanism;
    /* Per dimension the point that all expressions agree on (NULL: an
     * argument's interval, on a distributed dimension). */
    const Affine *const *home;
    unsigned n_dist; /* as of the barrier's ParAlloc */
    /* The barriers it concerns are those of the CTAs cta xor x, x in this list,
     * ascending, with 0: {0} where there is no multicast. */
    unsigned n_xor;
    const int64_t *xors;
    /* Arrive: threads of one CTA that execute it, and CTAs whose Arrives meet
     * on one barrier. An mbarrier's count is their product. */
    int64_t threads, source_ctas;
} ParSync;

/* Of par.arrive, par.await, and of par.instr with a trailing barrier. */
const ParSync *par_sync(const ParInfo *pi, const Op *op);
/* The arrivals that complete a phase of this mbarrier: threads * source_ctas
 * of its Arrives, which agree. */
int64_t par_mbarrier_count(const ParInfo *pi, const Value *barrier);

#endif
