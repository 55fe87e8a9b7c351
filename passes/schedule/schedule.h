/* Scheduling: rewrites of one procedure, each proved to keep its meaning.
 *
 * A schedule is a text, a step a line (passes/schedule/run.c has the syntax).
 * A step names an operator, a row of schedule.def, whose function gets its
 * arguments resolved by the row's signature. It works on a clone of the module
 * that takes the module's place when it succeeds, so a step that fails leaves
 * everything as it was and says why through sched_fail.
 *
 * An operator asks the Prover for what it relies on. `unknown` refuses.
 * Synchronisation statements have no sequential meaning: loops over threads
 * and tasks count as sequential here, sync-check is to be run again after. */
#ifndef EXO_PASSES_SCHEDULE_SCHEDULE_H
#define EXO_PASSES_SCHEDULE_SCHEDULE_H

#include "ir/edit.h"
#include "ir/exo.h"
#include "ir/exo_build.h"
#include "passes/prove.h"
#include "passes/schedule/kin.h"

/* ---- running ----------------------------------------------------------- */

typedef struct SchedParam {
    const char *name, *value;
} SchedParam;

typedef struct SchedOptions {
    struct Prover *prover;
    const ProverStats *layer1; /* of its first layer, for the record, or NULL */
    const SchedParam *params;  /* values of $P */
    unsigned n_params;
    const char *proc; /* the procedure; NULL: the only public one */
    /* Told each step before it is tried, for saved questions; or NULL. */
    void (*about)(void *user, const char *step);
    void *user;
} SchedOptions;

/* One step that was taken, for the record. */
typedef struct SchedRecord {
    const char *text; /* as understood, $P put in */
    Loc loc;
    const char *proc;      /* that it was taken on */
    const char *then;      /* its name after the step; NULL: it is gone */
    const char *made;      /* a procedure made of it or of a part, or NULL */
    unsigned asked;        /* questions to the prover */
    unsigned asked_solver; /* of these, those that its first layer left open */
    bool reassociates;     /* a floating sum got another order */
    bool rounds;           /* a floating value is rounded otherwise */
} SchedRecord;

typedef struct SchedResult {
    VEC(SchedRecord) steps;
} SchedResult;

/* Where a procedure of the result comes from, and the steps on that way. */
typedef struct SchedOrigin {
    const char *proc, *from;
    VEC(const SchedRecord *) steps;
} SchedOrigin;
typedef VEC(SchedOrigin) SchedOriginVec;

/* One for each procedure that steps were taken on and that is still there. */
void sched_origins(Arena *arena, const SchedResult *r, SchedOriginVec *out);

/* Runs the schedule in source `file` on *m, which becomes the result. False
 * after a report: *m is then the module before the failing step, which the
 * report prints. Each procedure's comment says what it came from. result may
 * be NULL; it lives in the Ctx. */
bool schedule_run(Ctx *ctx, Module **m, uint32_t file, const SchedOptions *o,
                  SchedResult *result);

/* ---- operators --------------------------------------------------------- */

/* Consecutive statements of one block; a gap when `gap`: before first, or, if
 * `after`, after last. */
typedef struct Cursor {
    Op *first, *last;
    bool after;
} Cursor;

/* An argument as its signature says; `text` is always what was written. */
typedef struct SchedArg {
    bool given;
    Loc loc;
    const char *text;
    Cursor at;
    int64_t i;
    const char *s; /* a word: a name, a literal, an expression */
} SchedArg;

typedef struct Sched {
    Ctx *ctx;
    Module *m; /* the clone that the step works on */
    Op *proc;  /* NULL after the step that took it out of the module */
    Op *under; /* below which cursors are looked for, or NULL */
    Prover *prover;
    Arena *arena; /* of this step */
    EditLog *log;
    KinLog *kin;
    ExoListing *listing;       /* sched_listing fills it; NULL after an edit */
    Loc loc;                   /* of the step */
    bool reassociates, rounds; /* as in the record */
    const char *made; /* a procedure that the step added, for the record */
    uint32_t result;  /* the sid that `name = ..` binds; else the cursor's */
} Sched;

typedef bool SchedFn(Sched *s, const SchedArg *a);

/* A row of schedule.def. Signature: `kind:label` for each argument in order,
 * `kind:label=default` for those that may be left out or given as label=value.
 * Kinds: stmt, loop, alloc, block, gap (cursors); int, bool; name, text. */
typedef struct SchedOp {
    const char *name;
    SchedFn *run;
    const char *signature;
    const char *doc, *before, *after;
} SchedOp;

/* What other schedulers call otherwise, or offer without a proof. */
typedef struct SchedOther {
    const char *name, *write, *why;
} SchedOther;

const SchedOp *sched_op_find(const char *name);
const SchedOther *sched_other_find(const char *name); /* or NULL */
const SchedOp *sched_op_at(unsigned i);               /* NULL past the last */
/* Every operator with its arguments, before and after, as docs have them. */
void sched_list_print(StrBuf *out);
/* The same for one name; false: there is no such. */
bool sched_op_print(const char *name, StrBuf *out);

/* Reports why the step does not apply; answers false. */
bool sched_fail(Sched *s, Loc loc, const char *fmt, ...) EXO_PRINTF(3, 4);

/* ---- texts in the scope of a statement --------------------------------- */

/* The procedure as it prints now. NULL after a report. */
const ExoListing *sched_listing(Sched *s);
/* A build whose names are those visible just before `at` (inside: at the start
 * of its block 0), by the names of the listing. */
bool sched_scope(Sched *s, Op *at, bool inside, Build *b);
const Affine *sched_index(Sched *s, Op *at, Loc loc, const char *text);
const Cond *sched_cond(Sched *s, Op *at, Loc loc, const char *text);
/* An access with points and intervals, missing dimensions whole. */
Access *sched_access(Sched *s, Op *at, Loc loc, const char *text);
const MemRef *sched_mem(Sched *s, Loc loc, const char *text);
/* The statement of `text` in a block of its own, its names resolved at `at`;
 * NULL after a report. */
Op *sched_stmt(Sched *s, Op *at, Loc loc, const char *text);
/* A name as a user would have to write it, for messages. */
const char *sched_value_name(Sched *s, const Value *v);
const char *sched_index_text(Sched *s, const Affine *e);
const char *sched_cond_text(Sched *s, const Cond *c);
const char *sched_stmt_text(Sched *s, const Op *op);
/* The tensor parameter of a name, or NULL after a report. */
Value *sched_tensor_param(Sched *s, Loc loc, const char *name);

/* ---- proofs ------------------------------------------------------------ */

/* Is c implied by the facts? Else reports `what` with the witness or the
 * reason, and answers false. NULL c (an overflow) is not implied. */
bool sched_prove(Sched *s, const Facts *f, const Cond *c, Loc loc,
                 const char *fmt, ...) EXO_PRINTF(5, 6);
/* Is the access within its base's extents? Else reports. */
bool sched_access_fits(Sched *s, const Facts *f, const Access *a, Loc loc);
/* An extent of v that is not shown to be 0 or more, or NULL. */
const Affine *sched_negative_extent(Sched *s, const Facts *f, const Value *v);
/* The same as sched_prove without a report. */
bool sched_implied(Sched *s, const Facts *f, const Cond *c);

/* ---- shared by operators ----------------------------------------------- */

/* A detached constant of value 0. */
Op *sched_zero(Sched *s, ScalarType t);

/* A new loop like `like` (mode, unit, pragma; NULL: seq) over [lo, hi), with a
 * fresh variable. Its block is empty. */
Op *sched_loop(Sched *s, const Op *like, const char *name, const Affine *lo,
               const Affine *hi, VarId *v);
VarId sched_loop_var(const Op *loop);
/* What holds in a trip of the loop and of a later one, with a new variable. */
Facts *sched_facts_later(Sched *s, Op *loop, VarId *later);
/* Rewrites all ops of a block by v := e. False after a report (overflow). */
bool sched_subst(Sched *s, Block *b, VarId v, const Affine *e);
/* Does op, its body included, use the variable? */
bool op_uses_var(Op *op, VarId v);
bool block_uses_var(Block *b, VarId v);
/* Is v used by op or below it? As base, value or guard. */
bool op_uses_value(Op *op, const Value *v);
/* The uses of v in the procedure: the number, and the first. */
unsigned sched_uses(Sched *s, const Value *v, Op **first);
/* Does op, which uses a buffer, read or write single elements of it? Reports
 * at loc where it does not. */
bool sched_by_element(Sched *s, const Op *op, Loc loc);
/* Is v, or a window of it, used by op or below it? */
bool op_reaches(Op *op, const Value *v);
/* The statement in `in` that reads a stride of v or of a window of it, itself
 * or in what it calls, as preconditions do, where those of the first `changed`
 * dimensions change; NULL: there is none. */
Op *sched_stride_reader(Sched *s, Op *in, const Value *v, unsigned changed);
/* Does an index expression of the procedure read a stride of v? */
bool sched_uses_stride(Sched *s, const Value *v);
/* The statement whose value op helps to make; op itself when it is one. */
Op *sched_stmt_of(Op *op);
/* A loop whose block holds one statement without own values: that statement. */
Op *sole_stmt(const Block *b);
/* Appends a clone of block `from` to `to` with v := e. */
bool sched_clone_into(Sched *s, const Block *from, Block *to, VarId v,
                      const Affine *e);

#endif
