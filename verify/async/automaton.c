/* States are made as the kernel's ops are gone through; a set of them is found
 * by its states. */
#include "verify/async/automaton.h"

#include <string.h>

/* On `letter` to `to`, or for nothing to `free[]`. State 0 is none. */
typedef struct State {
    unsigned letter, to, free[2];
} State;

typedef struct Set {
    unsigned n;
    const unsigned *states;
    unsigned *next; /* by letter: a set's number + 1, 0: not asked yet */
} Set;

struct Automaton {
    Arena *a;
    AutomatonSource source;
    VEC(State) states;
    VEC(Set) sets;
    unsigned end;
    int64_t *count; /* by letter */
};

static unsigned new_state(Automaton *n)
{
    VEC_PUSH(n->a, &n->states, ((State){ 0 }));
    return (unsigned)n->states.len - 1;
}

static void link_free(Automaton *n, unsigned from, unsigned to)
{
    State *s = &n->states.data[from];
    s->free[s->free[0] ? 1 : 0] = to;
}

static unsigned add_letter(Automaton *n, const Letter *l, unsigned at)
{
    const AutomatonSource *from = &n->source;
    Reading as = { .letter = l->id };
    if (from->read)
        as = from->read(from->user, l->id);
    if (!as.letter)
        return at;
    unsigned to = new_state(n), after = to;
    n->states.data[at].letter = as.letter;
    n->states.data[at].to = to;
    if (as.optional)
        link_free(n, at, to);
    if (l->repeats) {
        n->states.data[to].letter = as.letter;
        n->states.data[to].to = to;
        after = new_state(n);
        link_free(n, to, after);
    }
    n->count[as.letter] += l->count;
    return after;
}

static unsigned add_letters(Automaton *n, const Op *op, unsigned at)
{
    LetterVec v = { 0 };
    letters_of_op(n->source.letters, n->source.m, op, &v);
    for (size_t i = 0; i < v.len; i++)
        at = add_letter(n, &v.data[i], at);
    return at;
}

static unsigned add_block(Automaton *n, const Block *b, unsigned at);

static unsigned add_branches(Automaton *n, const Op *op, unsigned at, Truth t)
{
    bool has_else = op->n_blocks > 1;
    if (t == TRUTH_yes)
        return add_block(n, op->blocks[0], at);
    if (t == TRUTH_no)
        return has_else ? add_block(n, op->blocks[1], at) : at;
    unsigned in = new_state(n), out = new_state(n);
    unsigned other = has_else ? new_state(n) : out;
    link_free(n, at, in);
    link_free(n, at, other);
    link_free(n, add_block(n, op->blocks[0], in), out);
    if (has_else)
        link_free(n, add_block(n, op->blocks[1], other), out);
    return out;
}

static unsigned add_loop(Automaton *n, const Op *op, unsigned at)
{
    unsigned head = new_state(n), in = new_state(n), out = new_state(n);
    link_free(n, at, head);
    link_free(n, head, in);
    link_free(n, head, out);
    link_free(n, add_block(n, op->blocks[0], in), head);
    return out;
}

static bool find_letter(Op *op, void *user)
{
    bool *found = user;
    *found |= letters_know(op->code);
    return !*found;
}

static unsigned add_op(Automaton *n, const Op *op, unsigned at)
{
    bool found = false;
    op_walk((Op *)(uintptr_t)op, find_letter, &found);
    if (!found)
        return at;
    switch (op->code) {
    case OP_ctl_if:
    case OP_async_role:
        return add_branches(n, op, at, thread_enters(op, n->source.at));
    case OP_async_elect:
        return add_branches(n, op, add_letters(n, op, at),
                            thread_enters(op, n->source.at));
    case OP_ctl_for:
    case OP_async_tasks:
        return add_loop(n, op, at);
    default:
        return add_letters(n, op, at);
    }
}

static unsigned add_block(Automaton *n, const Block *b, unsigned at)
{
    for (const Op *op = b->first; op; op = op->next)
        at = add_op(n, op, at);
    return at;
}

/* ---- sets of states ------------------------------------------------------ */

static void close_over(const Automaton *n, unsigned s, uint8_t *in)
{
    if (!s || in[s])
        return;
    in[s] = 1;
    close_over(n, n->states.data[s].free[0], in);
    close_over(n, n->states.data[s].free[1], in);
}

static unsigned set_number(Automaton *n, const uint8_t *in)
{
    Set s = { .states = ARENA_ARRAY(n->a, unsigned, n->states.len) };
    unsigned *states = (unsigned *)(uintptr_t)s.states;
    for (unsigned i = 1; i < n->states.len; i++)
        if (in[i])
            states[s.n++] = i;
    for (size_t i = 0; i < n->sets.len; i++)
        if (n->sets.data[i].n == s.n &&
            !memcmp(n->sets.data[i].states, states, s.n * sizeof *states))
            return (unsigned)i;
    s.next = ARENA_ARRAY(n->a, unsigned, n->source.max_letters);
    VEC_PUSH(n->a, &n->sets, s);
    return (unsigned)n->sets.len - 1;
}

unsigned automaton_after(Automaton *n, unsigned set, unsigned letter)
{
    unsigned *next = &n->sets.data[set].next[letter];
    if (*next)
        return *next - 1;
    uint8_t *in = ARENA_ARRAY(n->a, uint8_t, n->states.len);
    for (unsigned i = 0; i < n->sets.data[set].n; i++) {
        const State *s = &n->states.data[n->sets.data[set].states[i]];
        if (s->letter == letter)
            close_over(n, s->to, in);
    }
    unsigned to = set_number(n, in);
    n->sets.data[set].next[letter] = to + 1;
    return to;
}

unsigned automaton_join(Automaton *n, unsigned set, unsigned other)
{
    if (set == other || automaton_is_empty(n, other))
        return set;
    uint8_t *in = ARENA_ARRAY(n->a, uint8_t, n->states.len);
    for (unsigned i = 0; i < n->sets.data[set].n; i++)
        in[n->sets.data[set].states[i]] = 1;
    for (unsigned i = 0; i < n->sets.data[other].n; i++)
        in[n->sets.data[other].states[i]] = 1;
    return set_number(n, in);
}

bool automaton_includes(const Automaton *n, unsigned set, unsigned other)
{
    const Set *s = &n->sets.data[set], *part = &n->sets.data[other];
    if (part->n > s->n)
        return false;
    for (unsigned i = 0, at = 0; i < part->n; i++, at++) {
        while (at < s->n && s->states[at] < part->states[i])
            at++;
        if (at == s->n || s->states[at] != part->states[i])
            return false;
    }
    return true;
}

bool automaton_is_empty(const Automaton *n, unsigned set)
{
    return !n->sets.data[set].n;
}

bool automaton_can_end(const Automaton *n, unsigned set)
{
    const Set *s = &n->sets.data[set];
    for (unsigned i = 0; i < s->n; i++)
        if (s->states[i] == n->end)
            return true;
    return false;
}

const unsigned *automaton_expects(Automaton *n, unsigned set,
                                  unsigned *n_letters)
{
    const Set *s = &n->sets.data[set];
    unsigned *letters = ARENA_ARRAY(n->a, unsigned, s->n + 1);
    *n_letters = 0;
    for (unsigned i = 0; i < s->n; i++) {
        unsigned letter = n->states.data[s->states[i]].letter;
        bool again = !letter;
        for (unsigned j = 0; j < *n_letters; j++)
            again |= letters[j] == letter;
        if (!again)
            letters[(*n_letters)++] = letter;
    }
    return letters;
}

int64_t automaton_count(const Automaton *n, unsigned letter)
{
    return n->count[letter];
}

Automaton *automaton_new(Arena *a, const AutomatonSource *source)
{
    Automaton *n = ARENA_NEW(a, Automaton);
    *n = (Automaton){ .a = a, .source = *source };
    n->count = ARENA_ARRAY(a, int64_t, source->max_letters);
    new_state(n); /* none */
    n->end = add_block(n, source->kernel->blocks[0], new_state(n));
    uint8_t *in = ARENA_ARRAY(a, uint8_t, n->states.len);
    close_over(n, 1, in);
    set_number(n, in);
    return n;
}
