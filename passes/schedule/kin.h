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
    KIN_copy,         /* proc is a copy of other */
    KIN_rename,       /* proc is now called other */
    KIN_breaks,       /* callers of proc see a difference from here on */
    KIN_modulo,       /* proc is its equals' equal but for the field other */
    KIN_reassociates, /* a floating sum of proc got another order */
    KIN_rounds        /* a floating value of proc is rounded otherwise */
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

/* In what two equal procedures may differ all the same. */
typedef struct KinDifference {
    KinFields fields; /* of the configuration, after a call */
    bool reassociates, rounds;
} KinDifference;

void kin_note(KinLog *log, KinKind kind, const char *proc, const char *other);
/* Do both come from one, nothing that callers see changed in between? out, in
 * arena, receives what may differ. */
bool kin_equal(const KinLog *log, Arena *arena, const char *a, const char *b,
               KinDifference *out);

#endif
