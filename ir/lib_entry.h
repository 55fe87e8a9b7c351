/* The inside of a library: entries as syntax, and what was made of them.
 *
 * A Lib holds entries in order, found by name; one on top of another (parent)
 * hides the other's entries of the same name. Everything lives in the Ctx's
 * arena; bodies of instances live in the Lib's module, freed with the Ctx. */
#ifndef EXO_IR_LIB_ENTRY_H
#define EXO_IR_LIB_ENTRY_H

#include "ir/exo_ast.h"
#include "ir/exo_build.h"
#include "ir/lib.h"

typedef struct Entry {
    const char *name; /* a family's member: with its number */
    AstDeclKind kind;
    const AstDecl *decl;
    Lib *home;
    bool is_member; /* decl->var stands for `member` */
    Param member;   /* an int or a string */
    bool imported;
} Entry;

/* What was made for a key (an interned MemRef, UnitRef or instance key), so
 * that it is made once. Refused ones are not remembered: each use reports. */
typedef struct Made {
    const void *key, *thing;
} Made;
typedef struct MadeTable {
    Made *slots;
    size_t n_slots, n;
} MadeTable;

struct Lib {
    Ctx *ctx;
    Lib *parent;
    bool is_file;   /* holds what a file and its imports define */
    unsigned depth; /* of memories being made, against circles */
    Module *module; /* made on demand */
    VEC(Entry *) entries;
    Entry **slots;
    size_t n_slots;
    MadeTable mems, units, instrs;
};

const void *made_find(const MadeTable *t, const void *key);
void made_add(Lib *lib, MadeTable *t, const void *key, const void *thing);

/* A library on top of another, for a file with entries of its own. */
Lib *lib_child(Lib *parent, Ctx *ctx);
/* The entry of that kind and name, here or below. AST_proc: of any kind. */
Entry *lib_find(const Lib *lib, AstDeclKind kind, const char *name);
/* Adds a declaration's entries; false and an error on a duplicate (unless
 * override) or a family without its rank. */
bool lib_add_decl(Lib *lib, const AstDecl *d, bool imported, bool override);
/* Every instruction, memory, unit and configuration once, for its errors. */
bool lib_check_entries(Lib *lib);
/* The entry's name of that kind (AST_proc: any) which name was most likely
 * meant to be, or NULL when none is near. */
const char *lib_suggest(const Lib *lib, AstDeclKind kind, const char *name);
/* `unknown memory 'X'`, or that X is not supported and why. */
const char *lib_unknown_text(Ctx *ctx, const char *what, const char *name);
/* Adds "did you mean .." to d, or else the given advice; nothing where the name
 * stands for what is not supported. */
void lib_fix_name(const Lib *lib, Diag *d, AstDeclKind kind, const char *name,
                  const char *otherwise);
/* The type of Config.field, TY_none when there is none. lib may be NULL. */
ScalarType lib_config_field(const Lib *lib, const char *config,
                            const char *field);
/* The clause of that key, or NULL; each with the same key in turn by `after`.
 */
const AstClause *entry_clause(const AstDecl *d, const char *key,
                              const AstClause *after);
/* Sets flags and write_only of each parameter from the body. */
void instr_footprint(Module *m, const Op *body, unsigned n, InstrParam *params);
/* The alternatives of the ptx clauses whose guard holds; false after a report.
 */
bool instr_ptx(Build *b, const Entry *e, const Op *body, unsigned *n,
               const Ptx **out);
/* A build over the entry's template parameters, bound to what is given (by
 * position or name, defaults put in); args receives them in the entry's order.
 * what names the entry in messages. False after a report. */
bool entry_open(Build *b, Arena *arena, Lib *lib, Loc loc, const Entry *e,
                unsigned n, const Param *given, unsigned *n_args,
                const Param **args);
/* Checks the where clauses; a broken one is reported at loc, with the values.
 */
bool entry_where(Build *b, Loc loc, const Entry *e, unsigned n_args,
                 const Param *args);
/* Appends the text of the entries that are in no library, as .exo: those of a
 * file, and of what was put on top of it. */
void lib_own_text(const Lib *lib, StrBuf *out);

#endif
