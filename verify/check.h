/* Checks and their verdicts.
 *
 * A check answers one question about one procedure: proved for all sizes or for
 * some, refuted (the diagnostics say how), or unknown with a reason. What was
 * not run is said too: a certificate lists it. A check never answers proved
 * when it did not decide, and never refuses a right program.
 *
 * Faults are reported through diag with a code from verify/hazards.def. Results
 * live in the Ctx's arena. */
#ifndef EXO_VERIFY_CHECK_H
#define EXO_VERIFY_CHECK_H

#include "ir/ir.h"

typedef enum Verdict {
    VERDICT_proved,
    VERDICT_refuted,
    VERDICT_unknown,
    VERDICT_not_run
} Verdict;

/* proved, refuted, unknown, not run. */
const char *verdict_name(Verdict v);

typedef struct CheckResult {
    const char *check; /* check-seq, check-par, .. */
    const char *proc;
    Verdict verdict;
    const char *scope;   /* proved: "all sizes", or the sizes */
    const char *reason;  /* unknown, not run: why */
    const char *witness; /* refuted: values that show it, or NULL */
    unsigned version;    /* of the check's rules: in certificates */
} CheckResult;

/* `check-par: proved [all sizes]`, `check-seq: unknown: reason`. */
void check_result_print(StrBuf *out, const CheckResult *r);

/* One row of verify/hazards.def. */
typedef struct Hazard {
    const char *code, *group, *text;
} Hazard;

/* NULL for a code that is in no row. */
const Hazard *hazard_find(const char *code);
const Hazard *hazard_at(unsigned i); /* NULL past the last */

#endif
