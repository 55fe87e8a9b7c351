/* Which procedures mean the same because one was made of the other.
 *
 * A schedule's run keeps a log of what bears on it: copies, renames, steps that
 * change what callers see. Every other step keeps a procedure's meaning, so a
 * copy stays its original's equal, whatever was done to either, up to the
 * configuration fields that some steps write. The log only grows, so a step
 * that fails or is undone is taken back by its length. */
#ifndef EXO_PASSES_SCHEDULE_KIN_H
#define EXO_PASSES_SCHEDULE_KIN_H

#include "ir/ir.h"

typedef enum KinKind {
    KIN_copy,   /* proc is a copy of other */
    KIN_rename, /* proc is now called other */
    KIN_breaks, /* callers of proc see a difference from here on */
    KIN_modulo  /* proc is its equals' equal but for the field other */
} KinKind;

typedef struct KinNote {
    KinKind kind;
    const char *proc, *other; /* interned */
} KinNote;

typedef struct KinLog {
    Arena *arena;
    VEC(KinNote) notes;
} KinLog;

typedef VEC(const char *) KinFields;

void kin_note(KinLog *log, KinKind kind, const char *proc, const char *other);
/* Do both come from one, nothing that callers see changed in between? fields
 * receives, in arena, those that may differ after a call. */
bool kin_equal(const KinLog *log, Arena *arena, const char *a, const char *b,
               KinFields *fields);

#endif
