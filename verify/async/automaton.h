/* What one thread of a kernel can do, as an automaton over letters.h: an op's
 * letters in a row, a branch where the thread does not decide its condition, a
 * loop any number of times.
 *
 * Code that was made from the kernel is walked with the set of states that the
 * kernel can be in, by what was done so far. A set is a number, 0 that of the
 * beginning; it is made once. Everything lives in the arena given. Used by
 * paths.h and sass_order.h. */
#ifndef EXO_VERIFY_ASYNC_AUTOMATON_H
#define EXO_VERIFY_ASYNC_AUTOMATON_H

#include "verify/async/letters.h"
#include "verify/async/threads.h"

/* How a letter of the kernel is read: as which one (LETTER_none: not at all),
 * and whether the code may leave it out. */
typedef struct Reading {
    unsigned letter;
    bool optional;
} Reading;

typedef Reading ReadLetter(void *user, unsigned letter);

typedef struct AutomatonSource {
    Alphabet *letters; /* has those of the kernel */
    const Module *m;
    const Op *kernel;
    Coords *at;           /* of the thread */
    unsigned max_letters; /* letters are below it, as they are read too */
    ReadLetter *read;     /* NULL: as they are */
    void *user;
} AutomatonSource;

typedef struct Automaton Automaton;

Automaton *automaton_new(Arena *a, const AutomatonSource *source);
/* How often the letter stands in what the thread can come to. */
int64_t automaton_count(const Automaton *n, unsigned letter);
/* The set after that letter; an empty one where it cannot come. */
unsigned automaton_after(Automaton *n, unsigned set, unsigned letter);
/* The states of both. */
unsigned automaton_join(Automaton *n, unsigned set, unsigned other);
/* Are all states of the other in the set? */
bool automaton_includes(const Automaton *n, unsigned set, unsigned other);
bool automaton_is_empty(const Automaton *n, unsigned set);
/* Can the kernel end there? */
bool automaton_can_end(const Automaton *n, unsigned set);
/* The letters that can come there, each once; *n_letters of them. */
const unsigned *automaton_expects(Automaton *n, unsigned set,
                                  unsigned *n_letters);

#endif
