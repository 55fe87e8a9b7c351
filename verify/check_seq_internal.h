/* What the files of check-seq share; nobody else includes it. */
#ifndef EXO_VERIFY_CHECK_SEQ_INTERNAL_H
#define EXO_VERIFY_CHECK_SEQ_INTERNAL_H

#include "ir/lib.h"
#include "passes/analysis/par_text.h"
#include "verify/check_seq.h"

typedef struct SeqCheck {
    Ctx *ctx;
    Module *m;
    Op *proc;
    Prover *prover;
    bool ok;
    const char *unknown; /* the first reason, or NULL */
    const char *witness; /* the first witness, or NULL */
    unsigned depth;      /* of calls looked into */
} SeqCheck;

Diag *sc_error(SeqCheck *c, const Op *at, const char *code, const char *fmt,
               ...) EXO_PRINTF(4, 5);

/* Asks whether cond holds where the facts do. When it does not, reports code
 * and text with the witness; when that is unknown, notes the reason. */
void sc_require(SeqCheck *c, const Op *at, const Facts *f, const Cond *cond,
                const char *code, const char *fmt, ...) EXO_PRINTF(6, 7);
/* The same for a proof that was asked for already. */
void sc_answer(SeqCheck *c, const Op *at, const Proof *p, const char *code,
               const char *text);

/* check_seq_types.c */
void check_seq_types(SeqCheck *c);

/* check_seq_bounds.c: every access at or below op; `spared` are roots whose
 * accesses may run out of bounds. at: where faults are reported, NULL: at the
 * access itself. */
typedef struct BoundsScope {
    const Op *at;
    const char *in_call; /* callee, or NULL */
    const Facts *extra;  /* facts beside those of the place, or NULL */
    unsigned n_spared;
    Value *const *spared;
} BoundsScope;
void check_seq_bounds(SeqCheck *c, Op *op, const BoundsScope *s);

/* check_seq_config.c: every write of configuration state. */
void check_seq_configs(SeqCheck *c);

/* check_seq_call.c: one par.instr or ctl.call. */
void check_seq_call(SeqCheck *c, Op *op);

#endif
