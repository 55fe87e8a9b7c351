/* The six edits that rewrites of a schedule are made of, and their journal.
 *
 * A statement is moved together with the ops that make its values: those
 * between it and the statement before. Its sid stays through moves, wraps and
 * changes of its expressions; a copy has a sid of its own. The journal lists
 * what was done to which sid, so that a name given to a statement before an
 * edit still finds it afterwards, or learns that it was erased.
 *
 * The journal belongs to who runs the rewrites and outlives the module: a step
 * works on a clone in which the sids are the same. */
#ifndef EXO_IR_EDIT_H
#define EXO_IR_EDIT_H

#include "ir/ir.h"

typedef enum EditKind {
    EDIT_insert, /* the statement is new, before `at` (0: at a block's end) */
    EDIT_erase,
    EDIT_move,   /* now before `at` (0: at a block's end) */
    EDIT_wrap,   /* now directly in `at` */
    EDIT_unwrap, /* gone; what it held begins with `at` (0: held nothing) */
    EDIT_replace /* its operands, attributes or results changed */
} EditKind;

typedef struct Edit {
    EditKind kind;
    uint32_t sid, at;
} Edit;

typedef struct EditLog {
    Arena *arena;
    VEC(Edit) edits;
} EditLog;

/* The first of the ops that make the values of a statement, or itself. */
Op *stmt_first(Op *stmt);
/* The statement before or after op in its block, or NULL. */
Op *stmt_prev(Op *stmt);
Op *stmt_next(Op *stmt);
/* The first or last statement of a block, or NULL. */
Op *block_first_stmt(const Block *b);
Op *block_last_stmt(const Block *b);

/* op is detached, or stands with its value run in a block of its own. */
void edit_insert_before(EditLog *log, Op *at, Op *op);
void edit_insert_after(EditLog *log, Op *at, Op *op);
void edit_append(EditLog *log, Block *b, Op *op);
/* Takes a statement and its value run out, with all that is below it. */
void edit_erase(EditLog *log, Op *stmt);
void edit_move_before(EditLog *log, Op *at, Op *stmt);
void edit_move_after(EditLog *log, Op *at, Op *stmt);
void edit_move_into(EditLog *log, Block *b, Op *stmt); /* to its end */
/* Puts outer, detached, in the place of the statements first .. last of one
 * block, which go to the end of outer's block 0. */
void edit_wrap(EditLog *log, Op *first, Op *last, Op *outer);
/* Puts the ops of block b of stmt in stmt's place. */
void edit_unwrap(EditLog *log, Op *stmt, Block *b);
/* Takes stmt out, in whose place statements from `first` on (NULL: none) were
 * put; they stand for it. */
void edit_became(EditLog *log, Op *stmt, const Op *first);
/* To be called when an op's expressions were changed in place. */
void edit_replace(EditLog *log, const Op *stmt);

/* Completes the journal from number `from` on, where a rewrite made `after` of
 * `before` (two modules of the same sids) without saying all it did: who is
 * gone is noted as unwrapped to what it held, or erased; who is new as
 * inserted. */
void edit_complete(EditLog *log, size_t from, const Module *before,
                   const Module *after);
/* The sid by which `sid` is known after the edits from number `from` on; 0
 * when it was erased. */
uint32_t edit_forward(const EditLog *log, size_t from, uint32_t sid);
const char *edit_kind_name(EditKind kind);

#endif
