/* The state of module_wellformed, shared by ir/wellformed.c (what is visible,
 * rows, the walk) and ir/wellformed_op.c (the rules of single ops). Nobody else
 * includes it. */
#ifndef EXO_IR_WELLFORMED_INTERNAL_H
#define EXO_IR_WELLFORMED_INTERNAL_H

#include "ir/ir.h"
#include "ir/name_map.h"

typedef struct Wellformed {
    const Module *m;
    const char *pass;
    Arena *scratch;
    NameMap *symbols;    /* -> Op */
    bool *values, *vars; /* visible now, by id */
    unsigned n_values, n_vars;
    VEC(const Value *) value_scope;
    VEC(VarId) var_scope;
    const Op *op; /* being checked */
    bool ok;
} Wellformed;

/* Reports a fault of the op being checked; answers false. */
bool wf_fault(Wellformed *w, const char *fmt, ...) EXO_PRINTF(2, 3);
/* For messages; in the scratch arena. */
const char *wf_value_label(Wellformed *w, const Value *v);
const char *wf_type_label(Wellformed *w, const Type *t);

/* The rules of w->op beyond its row, which it follows. */
bool wf_op_rules_ok(Wellformed *w);
/* Does a block of w->op yield what its results are? */
bool wf_yields_ok(Wellformed *w, const Block *b);

#endif
