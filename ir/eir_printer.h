/* The printer's state and its parts, shared by ir/eir_print.c (ops, modules)
 * and ir/eir_print_expr.c (names, types, literals, index expressions). Nobody
 * else includes it. */
#ifndef EXO_IR_EIR_PRINTER_H
#define EXO_IR_EIR_PRINTER_H

#include "ir/eir.h"
#include "ir/name_map.h"

typedef struct EirPrinter {
    const Module *m;
    EirPrintOptions options;
    StrBuf *out;
    Arena *scratch;
    NameMap *taken;           /* names in the scopes open now -> EirTaken */
    VEC(const char *) scope;  /* those names, in order */
    unsigned next_number;     /* of unnamed values */
    const char **value_names; /* by Value.id; NULL: not met yet */
    const char **var_names;   /* by VarId */
    uint32_t *var_order;      /* by VarId: in order of the text, from 1 */
    unsigned n_vars, next_order;
    unsigned indent;
    uint32_t loc_file; /* of `source` */
    const Op *target;  /* eir_print_op: where it begins and ends in out */
    size_t target_from, target_to;
} EirPrinter;

void eir_printer_init(EirPrinter *pr, const Module *m,
                      const EirPrintOptions *options, StrBuf *out);
void eir_printer_done(EirPrinter *pr);

size_t eir_print_scope(const EirPrinter *pr);
void eir_print_scope_end(EirPrinter *pr, size_t mark);
/* Names a value or a variable that is defined here and prints it. */
void eir_print_def_value(EirPrinter *pr, const Value *v);
void eir_print_def_var(EirPrinter *pr, VarId v);
void eir_print_value(EirPrinter *pr, const Value *v);

void eir_print_index(EirPrinter *pr, const Affine *e);
void eir_print_index_list(EirPrinter *pr, unsigned n, const Affine *const *e);
void eir_print_cond(EirPrinter *pr, const Cond *c);
void eir_print_access(EirPrinter *pr, const Access *a);
/* The type with the extents, ring and guard of v. */
void eir_print_type_of(EirPrinter *pr, const Value *v);
void eir_print_attr_value(EirPrinter *pr, const Attr *a);

#endif
