/* The fixed text of the functions that choose among GEMMs, in which @ stands
 * for the function's name. Used by c_dispatch.c alone. */
#ifndef EXO_CODEGEN_C_DISPATCH_TEXT_H
#define EXO_CODEGEN_C_DISPATCH_TEXT_H

/* Of the header: the arguments, the functions. */
extern const char c_dispatch_declarations[];
extern const char c_dispatch_arguments[];
/* Of the source, in this order, the tables behind the first. */
extern const char c_dispatch_types[];
extern const char c_dispatch_cost[];
extern const char c_dispatch_choose[];
extern const char c_dispatch_find[];
extern const char c_dispatch_refuse[];
extern const char c_dispatch_strides[];
extern const char c_dispatch_run[];
extern const char c_dispatch_functions[];

#endif
