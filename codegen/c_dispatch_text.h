/* The fixed text of the functions that choose among GEMMs, in which @ stands
 * for the function's name and $ for that in capitals. Used by c_dispatch.c
 * alone. */
#ifndef EXO_CODEGEN_C_DISPATCH_TEXT_H
#define EXO_CODEGEN_C_DISPATCH_TEXT_H

/* Of the header: the arguments, the functions, those that tune. */
extern const char c_dispatch_arguments[];
extern const char c_dispatch_declarations[];
extern const char c_dispatch_tune_declarations[]; /* c_dispatch_tune.c */
/* Of the source, in this order, the tables behind the first. */
extern const char c_dispatch_types[];
extern const char c_dispatch_waves[];
extern const char c_dispatch_cost[];
extern const char c_dispatch_choose[];
extern const char c_dispatch_find[];
extern const char c_dispatch_refuse[];
extern const char c_dispatch_strides[];
extern const char c_dispatch_run_plan[];
extern const char c_dispatch_entry[];
/* c_dispatch_tune.c: what was tuned, the tuner, files */
extern const char c_dispatch_plan[];
extern const char c_dispatch_tuned[];
extern const char c_dispatch_remember[];
extern const char c_dispatch_trials[];
extern const char c_dispatch_candidates[];
extern const char c_dispatch_tune[];
extern const char c_dispatch_file[];
extern const char c_dispatch_load[];
/* c_dispatch_text.c again */
extern const char c_dispatch_run[];
extern const char c_dispatch_functions[];
extern const char c_dispatch_tune_functions[]; /* c_dispatch_tune.c */

#endif
