/* The parts of the .exo printer. */
#ifndef EXO_IR_EXO_PRINT_H
#define EXO_IR_EXO_PRINT_H

#include "ir/exo.h"
#include "ir/exo_build.h"

typedef struct ExoPrinter {
    const Module *m;
    StrBuf *out;
    StrBuf line; /* the statement being made */
    unsigned indent;
    Arena *arena;
    Build names;              /* its table of live names */
    const char **value_names; /* by Value.id; NULL: none yet */
    bool *shared;           /* by Value.id: printed as a variable of its own */
    const char **var_names; /* by VarId */
    uint32_t *var_ranks;    /* order of definition in the text */
    uint32_t next_rank;
    ExprNames expr_names;
    bool in_device, ok;
    ExoListing *listing;   /* what to note marks in, or NULL */
    const Op *stmt;        /* the statement being printed, for the listing */
    const ExoNotes *notes; /* comments beside statements, or NULL */
    const Op *noted;       /* the statement whose comment comes next */
} ExoPrinter;

/* A name for it that no live definition has; scopes close by build_close. */
const char *exo_name_value(ExoPrinter *p, const Value *v);
const char *exo_name_var(ExoPrinter *p, VarId v);
/* Reports that .exo cannot say this; once a module. */
void exo_print_refuse(ExoPrinter *p, Loc loc, const char *what);
/* Onto p->line: */
void exo_print_index(ExoPrinter *p, const Affine *e);
void exo_print_cond(ExoPrinter *p, const Cond *c);
void exo_print_access(ExoPrinter *p, const Access *a);
void exo_print_param(ExoPrinter *p, const Param *param);
/* v where a value of type want is expected: v of that type, or any type when
 * `cast` (an assignment casts). */
void exo_print_data(ExoPrinter *p, Value *v, ScalarType want, bool cast);
/* v * w, and v alone so that it does not read as a product. */
void exo_print_product(ExoPrinter *p, Value *v, Value *w);
void exo_print_addend(ExoPrinter *p, Value *v, ScalarType want);
/* Writes p->line at the current indentation, broken within brackets when it is
 * longer than 79 columns, and empties it. */
void exo_print_line(ExoPrinter *p);

#endif
