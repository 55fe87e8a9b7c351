/* Lowering from par to async: every device function becomes a kernel as each
 * of its warps executes it, what is left of the procedure a host.proc.
 *
 * lower_par_to_async is the pass; the rest of this header is shared by the
 * files of this folder. The rules, with their sources, are in docs/lowering.md.
 *
 * A Role is one entry of the warp configuration; the device's task body is
 * walked once per role, emitting what that role executes. Control variables
 * and values of the source are renamed through the role's CloneMap: thread
 * iterators become expressions over the coordinates (cta, warp, lane), loop
 * iterators the new loop's variable or, unrolled, a constant. */
#ifndef EXO_PASSES_LOWER_LOWER_H
#define EXO_PASSES_LOWER_LOWER_H

#include "passes/analysis/par_info.h"
#include "passes/analysis/ptr_map.h"

struct Prover;

/* Replaces each procedure that has device functions by a host.proc and
 * kernels; others are left, with a remark. False after an error: the module
 * is then not to be used. */
bool lower_par_to_async(Ctx *ctx, Module *m);

/* Reports all that lowering this procedure of m would refuse, one fault a
 * statement and 20 at most, but none with the code `except`; m stays as it is.
 * False after an error. For check-par, once the analysis has found nothing.
 * faults.c. */
bool lower_par_to_async_try(Ctx *ctx, const Module *m, const Op *proc,
                            const char *except);
/* Where and why lowering stopped. */
typedef struct LowerFault {
    const Op *at;     /* the innermost op; NULL: none of the procedure's */
    const char *code; /* of the error; NULL: the analysis refuses it */
} LowerFault;
/* Lowers one procedure of m, which is not to be used afterwards. */
bool lower_one_proc(Ctx *ctx, Module *m, Op *proc, LowerFault *fault);

/* A build for testing check-async can break one rule of the lowering by name;
 * in every other build nothing is broken. */
#ifdef EXO_INJECT
#include <string.h>
bool lower_par_to_async_wrong(Ctx *ctx, Module *m, const char *rule);
#define LOWER_WRONG(L, rule) (!strcmp((L)->inject, rule))
#else
#define LOWER_WRONG(L, rule) false
#endif

/* ---- shared memory: smem.c ----------------------------------------------- */

typedef struct SmemObject {
    Value *source; /* the par allocation: a tensor or an mbarrier array */
    Value *object; /* what stands for it in the kernel */
    const Mem *mem;
    int64_t offset, bytes, align;
    unsigned live_lo, live_hi; /* positions in the device function */
    bool persistent;
} SmemObject;

typedef struct SmemLayout {
    VEC(SmemObject) objects;
    int64_t bytes; /* of the whole dynamic block */
} SmemLayout;

/* ---- registers: frag.c --------------------------------------------------- */

/* What wgmma may still do to a fragment: flight.c. */
typedef struct Flight {
    bool in_flight;   /* a wgmma that writes it was not waited for */
    bool uncommitted; /* .. and belongs to no group yet */
} Flight;

/* The state of one register tensor (or one of its tiles) while a role is
 * emitted. Its contents are `value` where `live` holds, and zero elsewhere;
 * undefined while never_written. */
typedef struct Frag {
    Value *source; /* the par allocation */
    int64_t tile;  /* index among the allocation's tiles */
    const Type *type;
    Value *value; /* NULL while live is false everywhere */
    const Cond *live;
    bool never_written;
    Flight flight;
    const Block *flight_block;
    unsigned flight_commit; /* commits emitted before that wgmma */
} Frag;

typedef VEC(Frag *) FragPtrVec;
typedef VEC(Value *) ValueVec;

/* ---- rings: ring.c ------------------------------------------------------- */

/* Rings that advance alike share one carried counter: same depth, and the same
 * number of positions consumed by a task. */
typedef struct RingGroup {
    int64_t depth;
    const Affine *per_task; /* in the source's variables */
    bool used;              /* by the role being emitted */
} RingGroup;

/* A ring value that stands at logical position `at` of the current task. */
typedef struct RingCursor {
    unsigned group;
    const Affine *at; /* in the kernel's variables */
    Value *ring;
} RingCursor;

/* Something of the host that the device function uses. */
typedef struct Capture {
    VarId var;      /* a control variable, or */
    Value *value;   /* a tensor, window or map */
    Access *access; /* how the launch names it */
} Capture;

/* A named barrier's ids for the collectives of one shape. */
typedef struct NamedBarrier {
    int64_t cover_lo, cover_hi, n_warps;
    int64_t id; /* the first of (cover_hi - cover_lo) / n_warps ids */
} NamedBarrier;

/* An mbarrier that other CTAs signal: warp `warp` awaits its first `elements`
 * elements of the next task before the CTA ends. exit.c. */
typedef struct ExitWait {
    const Value *barrier;
    int64_t elements, warp;
} ExitWait;

/* Whether warps of the role touch memory lane by lane. */
typedef struct TouchingWarps {
    int64_t lo, hi;
    bool touch;
} TouchingWarps;

/* ---- the lowering's state ------------------------------------------------ */

typedef struct Lower {
#ifdef EXO_INJECT
    const char *inject; /* the rule that is broken, or "" */
#endif
    Ctx *ctx;
    Module *m;
    Arena *scratch;
    ParInfo *pi;
    bool failed;
    VEC(const Affine *) task_counts; /* of the procedure's devices */

    /* one device function at a time */
    const ParDevice *dev;
    Op *kernel;
    CloneMap *base_map; /* parameters of the kernel */
    VEC(Capture) captures;
    SmemLayout smem;
    VEC(RingGroup) groups;
    VEC(NamedBarrier) named;
    PtrMap barrier_uses;   /* sync.c: by barrier */
    PtrMap inner_dims;     /* frag.c: by allocation in registers */
    bool global_writes;    /* ordinary code writes global memory */
    bool cluster_release;  /* barriers between CTAs release to the cluster */
    bool ctas_signal;      /* an mbarrier is signalled by other CTAs */
    VEC(ExitWait) at_exit; /* what is awaited before a CTA ends, or */
    bool meets_at_exit;    /* the cluster meets instead */
    Op *setup; /* the ctl.if in which mbarriers are initialised, or NULL */

    /* one role at a time */
    const ParRole *role;
    CloneMap *map;
    Block *out; /* where ops are appended */
    FragPtrVec frags;
    PtrMap frag_lists; /* by allocation: its FragPtrVec, of those in frags */
    VEC(TouchingWarps) touching; /* answers of warps_touch_memory */
    VEC(RingCursor) cursors;
    VEC(const Affine *) iters; /* enclosing iterators, kernel's variables */
    Op *stmt;                  /* being lowered: origin of what is emitted */
    LowerFault fault;          /* its op: the innermost that is lowered */
    unsigned commits; /* wgmma groups that are certainly committed so far */
} Lower;

/* Reports an error at the statement being lowered and marks failure. */
Diag *lower_error(Lower *L, Loc loc, const char *code, const char *fmt, ...)
    EXO_PRINTF(4, 5);

/* ---- emission helpers: lower.c ------------------------------------------- */

/* A new op at the end of L->out, with the current statement's origin. */
Op *lower_emit(Lower *L, OpCode code, unsigned n_operands, unsigned n_results,
               unsigned n_blocks);
/* The block of an async.elect at the end of L->out; an elect that is already
 * the last op is continued. */
Block *lower_elect(Lower *L);
const Mem *lower_mem(Lower *L, const Value *v);
bool lower_in_registers(Lower *L, const Value *v);
/* Kernel's form of the source's expression. */
const Affine *lower_index(Lower *L, const Affine *e);
const Cond *lower_cond(Lower *L, const Cond *c);
/* c with what the role's warp range decides folded. */
const Cond *role_simplify(Lower *L, const Cond *c);
/* Is the condition implied by the bounds of the variables in it? */
bool cond_holds(ExprCtx *x, const Cond *c);

/* An access to shared or global memory in the kernel's terms: windows composed,
 * distributed dimensions dropped, rings as cursors. */
Access *lower_access(Lower *L, const Access *a);

/* Does the role execute any part of op? */
bool role_executes(Lower *L, const Op *op);
/* Calls fn for every access of the ops at or below op that the role
 * executes. */
typedef void (*AccessFn)(Lower *L, Op *op, const OpAccess *a, void *user);
void role_walk_accesses(Lower *L, Block *b, AccessFn fn, void *user);
/* Is op a bulk copy, issued by one lane for the copy engine? */
bool lower_by_elected_lane(Lower *L, const Op *op);
/* Do the warps [lo, hi) of the role touch memory lane by lane anywhere, other
 * than through an elected lane? */
bool warps_touch_memory(Lower *L, int64_t lo, int64_t hi);

/* ---- flights: flight.c --------------------------------------------------- */

/* Does the role commit or await wgmma in the block? */
bool flight_changes(Lower *L, Block *b);
/* What the block leaves of source's flight where it begins as f. */
Flight flight_after(Lower *L, Block *b, const Value *source, Flight f);
/* One of the two. */
Flight flight_either(Flight a, Flight b);
/* A commit group of wgmma is closed. */
void flight_commit(Lower *L);

/* ---- statements: stmt.c -------------------------------------------------- */

void lower_role_body(Lower *L, Block *b);

/* ---- per file ------------------------------------------------------------ */

/* Puts guards around the loops in b that do nothing without them. guards.c */
void lower_free_loops(Block *b);
/* Has the thread of L->setup begin the ring that the role's tasks begin with,
 * if it may, behind what it has done there. The first role for which this is
 * done is the only one. early.c */
void lower_early(Lower *L, Op *tasks);

bool smem_layout(Lower *L);
SmemObject *smem_object(Lower *L, const Value *source);
/* The layout alone, of a device function that pi has analysed: a Lower for
 * smem_object, in the arena. NULL where it does not fit, without a report. */
Lower *lower_layout(Ctx *ctx, Module *m, ParInfo *pi, Op *device, Arena *arena);
void smem_emit(Lower *L); /* allocations into the kernel's block */

void ring_collect(Lower *L);              /* groups of the device function */
int ring_group(Lower *L, const Value *v); /* -1: no ring */
/* Elements of a barrier that count as arrived at first. */
int64_t ring_pre_arrive(Lower *L, const Value *v);
/* Makes the dimension of `a` that is the ring: position `e` (source's
 * variables) of v's ring. */
AccessDim ring_dim(Lower *L, const Value *v, const Affine *e);
/* Marks the groups that the role uses. */
void ring_mark_used(Lower *L);
/* For each group whose position in the body of this loop moves with its
 * iterator, what the position has beside the iterator (kernel's variables, no
 * constant); NULL for the others. */
void ring_loop_groups(Lower *L, Op *loop, const Affine **from);
Value *ring_advance(Lower *L, Value *ring, const Affine *by);
Value *ring_at(Lower *L, unsigned group, const Affine *at);

/* What instructions take of each tensor in registers; call once for a device
 * function, before registers are asked for. */
void frag_prepare(Lower *L);
/* What an access takes of a fragment: n slots from `slot` on. */
typedef struct FragPart {
    Frag *frag;
    int64_t slot, n;
} FragPart;
/* False after an error. */
bool frag_part(Lower *L, const Access *a, Loc loc, FragPart *part);
/* A fragment of just these slots; undefined where they are not read. */
Value *frag_part_value(Lower *L, const FragPart *part, bool read);
void frag_part_set(Lower *L, const FragPart *part, Value *v);
/* The register at the part's first slot, read and written. */
Value *frag_part_slot(Lower *L, const FragPart *part);
void frag_part_put(Lower *L, const FragPart *part, Value *v);
/* The fragment and first slot alone; NULL after an error. */
Frag *frag_get(Lower *L, const Access *a, Loc loc, int64_t *slot);
/* The value, made whole: zeros where it is not live. */
Value *frag_force(Lower *L, Frag *f);
void frag_set(Lower *L, Frag *f, Value *v);
void frag_load(Lower *L, Op *load);
void frag_store(Lower *L, Op *store);
/* Its value as it is, undefined where there is none yet. */
Value *frag_value(Lower *L, Frag *f);
void frag_set_zero(Lower *L, Frag *f);
/* A new scope of the allocation: nothing is written yet. */
void frag_reset(Lower *L, const Value *source);
/* No wgmma in flight writes it; else an error at loc. */
bool frag_ready(Lower *L, Frag *f, Loc loc);
/* All tiles of a source allocation. */
void frag_tiles(Lower *L, Value *source, FragPtrVec *out);
/* All tiles older than the block whose value the role changes in it: that it
 * writes, or that are in flight where it commits or awaits wgmma. */
void frag_written(Lower *L, Block *b, FragPtrVec *out);

bool sync_prepare(Lower *L); /* named barrier ids, mbarrier counts */
/* Does it concern mbarriers of several CTAs? */
bool sync_between_ctas(const ParSync *s);
int64_t mbarrier_count(Lower *L, const Value *barrier);
void lower_fence(Lower *L, Op *op);
void lower_arrive(Lower *L, Op *op);
void lower_await(Lower *L, Op *op);
/* The element of the barrier that a statement names, in this CTA. */
Access *lower_barrier(Lower *L, const ParSync *s);
/* Gives op the list of target CTAs when it is not just its own. */
void lower_cta_xor(Lower *L, Op *op, const ParSync *s);

/* Finds the mbarriers that other CTAs signal, and how the kernel ends. */
void exit_prepare(Lower *L);
/* What the role awaits behind its last task. */
void exit_role(Lower *L, const Op *tasks);

void lower_instr(Lower *L, Op *op);
/* Whether the instance has what its hook takes for granted; an error, false. */
bool hook_fits(Lower *L, const Op *op, const Instr *in);

void host_launch(Lower *L, Op *device); /* remembers the launch */
bool host_outline(Lower *L, Op *proc);
void host_captures(Lower *L);

#endif
