/* Work that is done in another process, beside this one.
 *
 * Runs at different sizes share nothing but what they read, so that the second
 * core of a machine can take some of them. The other process is a copy of this
 * one and says of each whether there is anything to say about it; if there is,
 * it is done again here, so that what is said does not depend on who was
 * faster. Used by sync-check and check-async. */
#ifndef EXO_VERIFY_ASIDE_H
#define EXO_VERIFY_ASIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory that both processes see; NULL: there is none. */
void *aside_share(size_t n);
void aside_unshare(void *p, size_t n);

/* A list of things to do, all of which can be done by themselves. */
typedef struct AsideList {
    unsigned n;
    /* Does the i-th one here; false: the rest needs not be done. */
    bool (*here)(void *user, unsigned i);
    /* .. in the other process; false: there is something to say about it. */
    bool (*beside)(void *user, unsigned i);
    void *user;
} AsideList;

/* Does what is on the list: here from the front on, and beside from the back,
 * as long as nothing is to be said there. Answers how many were done here, the
 * first ones; the others, unless one of these ended the list, were done beside
 * and nothing is to be said about them. */
unsigned aside_each(const AsideList *list);

#endif
