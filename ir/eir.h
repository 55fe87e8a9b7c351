/* The .eir text: reading and printing modules of any level.
 *
 * The grammar is docs/eir.md. eir_print writes one fixed layout, eir_parse
 * reads it back to an equal module (up to locations, exactly with `locs`).
 * Used by the tools, by tests and by the pass manager's dumps. */
#ifndef EXO_IR_EIR_H
#define EXO_IR_EIR_H

#include "ir/ir.h"

/* Nesting of blocks, of expressions and of tuples beyond this is refused. */
#define EIR_MAX_NESTING 1000
/* Terms of one index expression or condition beyond this are refused. */
#define EIR_MAX_TERMS 4000
/* Elements of a fragment: a thread has no more registers. */
#define EIR_MAX_FRAG 1024

/* Reads a registered source (ir/diag.h). `lib` may be NULL: then the text may
 * not hold library entries of its own. Syntax and names are checked here, the
 * rest by module_wellformed (ir/wellformed.h), which the caller runs. NULL
 * after errors, all of them reported. The module belongs to the caller. */
GIVES Module *eir_parse(Ctx *ctx, uint32_t file, Lib *lib);

typedef struct EirPrintOptions {
    bool locs;    /* a `loc(..)` on each op, `source` at the top */
    bool derived; /* show attributes named derived.* */
} EirPrintOptions;

/* Appends the module's text. `options` may be NULL: all off. Prints modules
 * that are not well-formed too, as far as they go. */
void eir_print(const Module *m, const EirPrintOptions *options, StrBuf *out);
/* Appends one op with what is below it, as it stands in its module. */
void eir_print_op(const Module *m, const Op *op, StrBuf *out);
/* The name by which the text calls an op: "async.mbarrier.wait". */
void eir_op_name(OpCode code, StrBuf *out);

#endif
