/* Can the threads of a task always go on?
 *
 * What enables a synchronising statement is monotone: an element of a barrier
 * that is complete stays complete, a meeting of threads that all have reached
 * is never undone, and no thread's way depends on data. So all maximal
 * executions execute the same statements, and one of them decides for every
 * schedule (docs/semantics.md, "Deadlock"). It is made here by letting every
 * group of threads go on as far as it can. */
#ifndef EXO_VERIFY_SYNC_DEADLOCK_H
#define EXO_VERIFY_SYNC_DEADLOCK_H

#include "verify/sync/machine.h"

typedef struct Deadlock Deadlock;

Deadlock *deadlock_new(Arena *arena, SyncRun *run);
/* Runs the task that the run's variables name. When some threads are stuck,
 * says false and puts a statement that waits in *fault; true too where the run
 * itself failed, which run->failed tells. Once a Deadlock. */
bool deadlock_free(Deadlock *d, SyncFault *fault);
/* The statements that wait, each with its threads and for what. */
void deadlock_print(const Deadlock *d, StrBuf *out);

#endif
