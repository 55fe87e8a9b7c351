/* The .exo text: programs and library entries, read and printed.
 *
 * Grammar and examples: docs/language.md. Reading is two steps: text to syntax
 * (ir/exo_ast.h), then syntax to ops (ir/exo_build.h); entries of libraries
 * stay syntax until ir/lib.h instantiates them. Both steps report through diag
 * and recover at the next statement, so a file gives many errors at once.
 *
 * Codes of the errors: "syntax" (the text is no program), "name" (unknown or
 * defined twice), "type" (wrong kind, type, rank, count), "timeline",
 * "barrier", "memory", "unit", "device" (CudaDeviceFunction and CudaWarps),
 * "loop", "instr", "import". */
#ifndef EXO_IR_EXO_H
#define EXO_IR_EXO_H

#include "ir/ir.h"

typedef struct ExoOptions {
    /* Folders that `import` looks into after the importing file's own. */
    const char *const *import_dirs;
    unsigned n_import_dirs;
} ExoOptions;

/* The module of one file, or NULL and at least one error. lib is what the file
 * sees without an import; NULL means an empty one. A file with entries or
 * imports of its own gets a library on top of lib: m->lib. opt may be NULL. */
GIVES Module *exo_parse(Ctx *ctx, uint32_t file, Lib *lib,
                        const ExoOptions *opt);

/* Appends the module in one fixed layout: 4 spaces, 79 columns where brackets
 * allow it, entries first, each procedure after a blank line. What is printed
 * reads back and prints as the same text. False, with an error, for what .exo
 * cannot say (kernels of level async, loops that carry values). */
bool exo_print(const Module *m, StrBuf *out);

/* Comments put at the end of a statement's last line (of a for, if or with: of
 * its header's). note() appends one line without its end, or nothing. */
typedef struct ExoNotes {
    void (*note)(void *user, const Op *stmt, StrBuf *out);
    void *user;
} ExoNotes;

/* exo_print with such comments; what is printed still reads back. */
bool exo_print_noted(const Module *m, const ExoNotes *notes, StrBuf *out);

/* A place in a procedure's text: a statement from its first byte; the bytes up
 * to the next mark are its own (of a for, if or with: its header). */
typedef struct ExoMark {
    const Op *op; /* NULL: an else, or a variable put in by the printer */
    size_t at, end;
} ExoMark;

/* The text of a value inside a statement. */
typedef struct ExoValueText {
    Value *value;
    const Op *stmt;
    const char *text;
} ExoValueText;

/* A procedure as it prints, and what stands where in it. Names are those of the
 * text: of values by id, of variables by VarId, NULL where nothing is named. */
typedef struct ExoListing {
    const char *text;
    VEC(ExoMark) marks;
    VEC(ExoValueText) values;
    const char *const *value_names, *const *var_names;
    unsigned n_values_named, n_vars_named; /* room of the two */
} ExoListing;

/* False, with an error, for what .exo cannot say. All is in the arena. */
bool exo_list_proc(const Module *m, const Op *proc, Arena *arena,
                   ExoListing *out);

#endif
