/* Passes, checks among them, and the manager that runs a pipeline of them.
 *
 * A pass is one function over a module; its row in passes/passes.def has its
 * name, options, what it requires and what it preserves (see
 * docs/adding-a-pass.md). A pass changes the module it is given and answers
 * false after reporting an error; the manager hands it a clone and swaps that
 * in only on success, so the module before is still there when a pass fails.
 *
 * Checks are passes that change nothing. They live in verify/, which passes/
 * never includes: a tool injects them as PassCheck functions. One that is in
 * no tool's hands answers `not run: reason`. */
#ifndef EXO_PASSES_PASS_H
#define EXO_PASSES_PASS_H

#include "ir/ir.h"

struct Prover;
typedef struct PassCtx PassCtx;
typedef struct PassManager PassManager;

/* ---- passes -------------------------------------------------------------- */

typedef bool PassFn(PassCtx *pc, Module *m);

/* A row of passes.def. */
typedef struct PassInfo {
    const char *name;
    PassFn *run; /* NULL: a check, injected */
    const char *doc;
    /* "key:type=default ..", type int, bool or str; "*:int" takes any other
     * key. "" for none. */
    const char *options;
    /* Checks, by name, that must not refute the module before: the manager
     * runs those that were injected and have not run since the last change. */
    const char *requires;
    /* "all": changes nothing. "derived": keeps derived.* attributes right;
     * after other passes the manager drops them. */
    const char *preserves;
    /* Is given the module with calls of what launches kernels in line
     * (passes/inline.h); one that is no check has the option `keep`. */
    bool in_line;
} PassInfo;

const PassInfo *pass_find(const char *name);
const PassInfo *pass_at(unsigned i); /* NULL past the last */
/* Every pass with its options, for --list-passes. */
void pass_list_print(StrBuf *out);

/* What a pass is given. */
struct PassCtx {
    Ctx *ctx;
    struct Prover *prover; /* passes/prove.h; may be NULL */
    Arena *scratch;        /* freed when the pass is over */
    const struct PassRun *run;
    PassManager *manager;
};

int64_t pass_option_int(const PassCtx *pc, const char *key);
bool pass_option_bool(const PassCtx *pc, const char *key);
const char *pass_option_str(const PassCtx *pc, const char *key);
/* Adds to a counter of --pass-statistics. */
void pass_count(PassCtx *pc, const char *what, int64_t n);

/* ---- checks -------------------------------------------------------------- */

typedef enum PassVerdict {
    PASS_proved,
    PASS_refuted,
    PASS_unknown,
    PASS_not_run
} PassVerdict;

/* One check of one procedure. Strings live as long as the Ctx. */
typedef struct PassFinding {
    const char *check, *proc; /* proc may be NULL */
    PassVerdict verdict;
    const char *text; /* scope, reason or witness; may be NULL */
} PassFinding;

/* Reports findings through pass_finding and faults through diag. */
typedef void PassCheckFn(PassCtx *pc, Module *m, void *user);

typedef struct PassCheck {
    const char *name;
    PassCheckFn *run;
    void *user;
} PassCheck;

/* Keeps copies of f's procedure and text, which may go with the module. */
void pass_finding(PassCtx *pc, PassFinding f);
const char *pass_verdict_name(PassVerdict v);

/* ---- pipelines ----------------------------------------------------------- */

typedef struct PassOption {
    const char *key;
    Param value; /* int, bool or str */
} PassOption;

/* A pass with its options as a pipeline names it. */
typedef struct PassRun {
    const PassInfo *pass;
    unsigned n_options; /* all of the row's, defaults put in, then the free */
    const PassOption *options;
} PassRun;

typedef struct Pipeline {
    VEC(PassRun) runs;
} Pipeline;

/* Appends what `text` names, `a,b{x=1 y=2}`; false and errors otherwise. The
 * pipeline lives in the Ctx's arena. */
bool pipeline_parse(Ctx *ctx, const char *text, Pipeline *out);
/* From run `first` on, as text that reads back. */
void pipeline_print(const Pipeline *p, unsigned first, StrBuf *out);
/* The pipelines by the form they lead to ("par", "async", ..), NULL for a name
 * that is none: passes/pipelines.c. */
const char *pipeline_default(const char *form);

/* ---- the manager --------------------------------------------------------- */

typedef struct PassCounter {
    const char *pass, *what;
    int64_t n;
} PassCounter;

typedef struct PassTime {
    const char *pass;
    double seconds;
} PassTime;

struct PassManager {
    /* Set by the tool. */
    Ctx *ctx;
    struct Prover *prover;
    const PassCheck *checks;
    unsigned n_checks;
    bool verify_each; /* well-formedness after every pass */
    /* Called with the module before and after each pass; may be NULL. */
    void (*before)(void *user, const PassRun *run, unsigned i, const Module *m);
    void (*after)(void *user, const PassRun *run, unsigned i, const Module *m);
    void *user;

    /* Filled by pipeline_run. */
    VEC(PassFinding) findings;
    VEC(PassCounter) counters;
    VEC(PassTime) times;
    VEC(const char *) fresh_checks;   /* ran since the last change */
    VEC(const char *) refuted_checks; /* those of them that refuted it */
    unsigned failed;                  /* the run that failed, if one did */
};

/* Runs the pipeline on *m, which becomes the result. False when a pass failed,
 * left a module that is not well-formed, or a check it requires refuted the
 * module: *m is then the module before that pass, pm->failed its number. A
 * check that refutes in its own right does not stop the pipeline. */
bool pipeline_run(PassManager *pm, const Pipeline *p, Module **m);

/* Did this check refute the module as it stands? */
bool pass_has_refuted(const PassManager *pm, const char *check);

/* Removes derived.* attributes everywhere. */
void module_drop_derived(Module *m);

/* ---- the general passes (rows of passes.def) ----------------------------- */

PassFn pass_canonicalize, pass_cse, pass_dce, pass_inline;
PassFn pass_strip_annotations;

#endif
