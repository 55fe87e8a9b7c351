/* What distinguishes the tasks of a device function: see tasks.h. */
#ifndef EXO_VERIFY_SYNC_SIGNATURE_H
#define EXO_VERIFY_SYNC_SIGNATURE_H

#include "verify/sync/machine.h"

typedef struct Signatures Signatures;

Signatures *signatures_new(Arena *arena, const SyncRun *run);
/* Coordinates and iterators are mixed: each task is a class of its own. */
bool signatures_mixed(const Signatures *s);
/* Numbers of a signature: the same for all tasks. */
unsigned signatures_length(const Signatures *s);
/* Of the task whose coordinates are given; false when something could not be
 * evaluated. */
bool signatures_of(Signatures *s, const int64_t *task, int64_t *out);
/* How far the task moves its accesses of a global tensor along a dimension. */
int64_t signatures_shift(const Signatures *s, const int64_t *task,
                         unsigned tensor, unsigned dim);

#endif
