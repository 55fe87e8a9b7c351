/* A question answered in another process, beside this one.
 *
 * Runs at different sizes share nothing but what they read, so that the second
 * core of a machine can take some of them. The other process is a copy of this
 * one and gives back yes or no; whoever wants more asks again here. */
#ifndef EXO_VERIFY_ASYNC_ASIDE_H
#define EXO_VERIFY_ASYNC_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Zeroed memory that both processes see; NULL: there is none. */
void *aside_share(size_t n);
void aside_unshare(void *p, size_t n);
/* Begins fn(user) there; 0 where there is no second core or no process. */
pid_t aside_start(bool (*fn)(void *user), void *user);
/* Waits for the answer; false also when the process came to no end. */
bool aside_answer(pid_t pid);
/* Ends it without an answer. */
void aside_drop(pid_t pid);

#endif
