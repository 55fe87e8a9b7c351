/* The kernel as an automaton of one thread: an op's letters in a row, a branch
 * where the thread does not decide its condition, a loop any number of times.
 * The PTX is walked with the set of states that the kernel can be in, by what
 * was done so far; a set is made once, and a place of the PTX is walked once
 * with each.
 *
 * Threads for which the same conditions hold on both sides are looked at once.
 * Every thread is: roles need no mark in the text. Of a warp that elects a
 * lane, it is lane 0 on both sides. */
#include "verify/async/paths.h"

#include "verify/async/letters.h"
#include "verify/async/threads.h"

#include <string.h>

#define NO_INSTR UINT32_MAX

/* ---- the automaton ------------------------------------------------------- */

/* On `letter` to `to`, or for nothing to `free[]`. State 0 is none. */
typedef struct State {
    unsigned letter, to, free[2];
} State;

typedef struct Set {
    unsigned n;
    const unsigned *states;
    unsigned *next; /* by letter: a set's number + 1, 0: not asked yet */
} Set;

typedef struct Automaton {
    Arena *a;
    Alphabet *letters;
    const Module *m;
    Coords *at;
    VEC(State) states;
    VEC(Set) sets;
    unsigned end;
    int64_t *count; /* by letter */
    unsigned max_letters;
} Automaton;

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

static unsigned add_letters(Automaton *n, const Op *op, unsigned at)
{
    LetterVec v = { 0 };
    letters_of_op(n->letters, n->m, op, &v);
    for (size_t i = 0; i < v.len; i++) {
        unsigned to = new_state(n), after = to;
        n->states.data[at].letter = v.data[i].id;
        n->states.data[at].to = to;
        if (v.data[i].repeats) {
            n->states.data[to].letter = v.data[i].id;
            n->states.data[to].to = to;
            after = new_state(n);
            link_free(n, to, after);
        }
        n->count[v.data[i].id] += v.data[i].count;
        at = after;
    }
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
        return add_branches(n, op, at, thread_enters(op, n->at));
    case OP_async_elect:
        return add_branches(n, op, add_letters(n, op, at),
                            thread_enters(op, n->at));
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
    s.next = ARENA_ARRAY(n->a, unsigned, n->max_letters);
    VEC_PUSH(n->a, &n->sets, s);
    return (unsigned)n->sets.len - 1;
}

/* The set after that letter; an empty one where it cannot come. */
static unsigned set_after(Automaton *n, unsigned set, unsigned letter)
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
    *next = to + 1;
    return to;
}

static bool set_has(const Automaton *n, unsigned set, unsigned state)
{
    const Set *s = &n->sets.data[set];
    for (unsigned i = 0; i < s->n; i++)
        if (s->states[i] == state)
            return true;
    return false;
}

static Automaton *automaton_new(Arena *a, Alphabet *letters, const Module *m,
                                const Op *kernel, Coords *at, unsigned max)
{
    Automaton *n = ARENA_NEW(a, Automaton);
    *n = (Automaton){ .a = a, .letters = letters, .m = m, .at = at };
    n->max_letters = max;
    n->count = ARENA_ARRAY(a, int64_t, max);
    new_state(n); /* none */
    n->end = add_block(n, kernel->blocks[0], new_state(n));
    uint8_t *in = ARENA_ARRAY(a, uint8_t, n->states.len);
    close_over(n, 1, in);
    set_number(n, in);
    return n;
}

/* ---- the walk through the PTX -------------------------------------------- */

typedef struct Place {
    uint32_t instr;
    unsigned set;
} Place;

typedef struct Paths {
    Arena *a;
    const Module *m;
    const Op *kernel;
    const PtxKernel *ptx;
    Alphabet letters;
    const Letter *of; /* by instruction */
    const uint8_t *is_target;
    Automaton *n;
    const uint8_t *can;
    VEC(Place) todo;
    VEC(unsigned) * walked; /* by target: the sets */
    const Coords *at;
    PathFault fault;
} Paths;

static void fault(Paths *p, uint32_t line, const char *code, const char *fmt,
                  ...) EXO_PRINTF(4, 5);

static void fault(Paths *p, uint32_t line, const char *code, const char *fmt,
                  ...)
{
    if (p->fault.code)
        return;
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(p->a, fmt, ap);
    va_end(ap);
    p->fault.code = code;
    p->fault.line = line;
    p->fault.text =
        arena_printf(p->a, "%s; %s", what, thread_text(p->a, p->kernel, p->at));
}

/* What the kernel may do there, in words. */
static const char *expected(const Paths *p, unsigned set)
{
    StrBuf text = { 0 };
    const Set *s = &p->n->sets.data[set];
    unsigned n = 0;
    for (unsigned i = 0; i < s->n; i++) {
        unsigned letter = p->n->states.data[s->states[i]].letter;
        bool again = false;
        for (unsigned j = 0; j < i; j++)
            again |= p->n->states.data[s->states[j]].letter == letter;
        if (letter && !again && n++ < 4)
            strbuf_addf(&text, "%s'%s'", n > 1 ? ", " : "",
                        letter_name(&p->letters, letter));
    }
    if (set_has(p->n, set, p->n->end))
        strbuf_addf(&text, "%sits end", n ? " or " : "");
    const char *out = arena_strdup(p->a, strbuf_text(&text));
    strbuf_free(&text);
    return out;
}

/* The set after instruction i was executed; false after a fault. */
static bool take(Paths *p, uint32_t i, unsigned *set)
{
    const Letter *l = &p->of[i];
    if (!l->id)
        return true;
    unsigned to = set_after(p->n, *set, l->id);
    if (!p->n->sets.data[to].n) {
        fault(p, p->ptx->instrs[i].line, "PTX-ORDER",
              "'%s' comes where the kernel has %s",
              letter_name(&p->letters, l->id), expected(p, *set));
        return false;
    }
    *set = to;
    return true;
}

/* Behind a wait stands the branch on its predicate, which goes back to it until
 * it holds. The instruction where it then goes on; NO_INSTR: it does not. */
static uint32_t behind_wait(const Paths *p, uint32_t i)
{
    const PtxInstr *wait = &p->ptx->instrs[i], *branch = wait + 1;
    if (i + 2 >= p->ptx->n_instrs || !wait->n_args || wait->guard ||
        wait->args[0].kind != PTX_reg || branch->n_targets != 1 ||
        branch->guard != wait->args[0].reg)
        return NO_INSTR;
    uint32_t holds = branch->guard_not ? i + 2 : branch->targets[0];
    uint32_t not_yet = branch->guard_not ? branch->targets[0] : i + 2;
    for (int hops = 0; hops < 8 && not_yet < p->ptx->n_instrs; hops++) {
        const PtxInstr *in = &p->ptx->instrs[not_yet];
        if (not_yet == i)
            return holds;
        if (in->n_targets != 1 || in->guard)
            break;
        not_yet = in->targets[0];
    }
    return NO_INSTR;
}

static void go_to(Paths *p, uint32_t instr, unsigned set)
{
    Place place = { instr, set };
    if (p->is_target[instr]) {
        for (size_t i = 0; i < p->walked[instr].len; i++)
            if (p->walked[instr].data[i] == set)
                return;
        VEC_PUSH(p->a, &p->walked[instr], set);
    }
    VEC_PUSH(p->a, &p->todo, place);
}

/* One instruction; where control goes on is put on the list. */
static void step(Paths *p, Place at)
{
    const PtxInstr *in = &p->ptx->instrs[at.instr];
    uint8_t can = p->can[at.instr];
    if (can & PTX_CAN_SKIP)
        go_to(p, at.instr + 1, at.set);
    if (!(can & PTX_CAN_RUN) || !take(p, at.instr, &at.set))
        return;
    if (p->of[at.instr].is_wait) {
        uint32_t on = behind_wait(p, at.instr);
        if (on == NO_INSTR)
            fault(p, in->line, "PTX-ORDER",
                  "'%s' is not repeated until its predicate holds", in->op);
        else
            go_to(p, on, at.set);
        return;
    }
    if (in->ends && !set_has(p->n, at.set, p->n->end))
        fault(p, in->line, "PTX-ORDER",
              "the thread ends where the kernel has %s", expected(p, at.set));
    for (unsigned i = 0; i < in->n_targets; i++)
        go_to(p, in->targets[i], at.set);
    if (!in->branches && !in->ends)
        go_to(p, at.instr + 1, at.set);
}

static void walk(Paths *p)
{
    p->todo.len = 0;
    for (uint32_t i = 0; i < p->ptx->n_instrs; i++)
        p->walked[i].len = 0;
    go_to(p, 0, 0);
    while (p->todo.len && !p->fault.code)
        step(p, p->todo.data[--p->todo.len]);
}

/* ---- counts -------------------------------------------------------------- */

static void compare_counts(Paths *p)
{
    int64_t *count = ARENA_ARRAY(p->a, int64_t, p->letters.names.len + 1);
    uint32_t last[2] = { p->ptx->line, 0 };
    for (uint32_t i = 0; i < p->ptx->n_instrs; i++)
        if (p->can[i] & PTX_CAN_RUN)
            count[p->of[i].id] += p->of[i].count;
    for (unsigned l = 1; l <= p->letters.names.len; l++) {
        int64_t want = p->n->count[l];
        for (uint32_t i = 0; i < p->ptx->n_instrs; i++)
            if (p->of[i].id == l && p->can[i] & PTX_CAN_RUN)
                last[1] = p->ptx->instrs[i].line;
        if (count[l] != want)
            fault(p, count[l] ? last[1] : last[0], "PTX-COUNT",
                  "%lld of '%s' in its way, but the kernel has %lld",
                  (long long)count[l], letter_name(&p->letters, l),
                  (long long)want);
    }
}

/* ---- all threads --------------------------------------------------------- */

static bool add_op_letters(Op *op, void *user)
{
    Paths *p = user;
    LetterVec v = { 0 };
    letters_of_op(&p->letters, p->m, op, &v);
    return true;
}

/* Every letter of both sides, so that their number is known. */
static void prepare(Paths *p)
{
    unsigned n = p->ptx->n_instrs;
    Letter *of = ARENA_ARRAY(p->a, Letter, n);
    uint8_t *is_target = ARENA_ARRAY(p->a, uint8_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        of[i] = letter_of_instr(&p->letters, &p->ptx->instrs[i]);
        for (unsigned t = 0; t < p->ptx->instrs[i].n_targets; t++)
            is_target[p->ptx->instrs[i].targets[t]] = 1;
    }
    op_walk((Op *)p->kernel, add_op_letters, p);
    p->of = of;
    p->is_target = is_target;
    p->walked = arena_alloc(p->a, (n + 1) * sizeof *p->walked);
}

static bool compare_thread(void *user, Coords *at, const uint8_t *can,
                           bool sure)
{
    Paths *p = user;
    p->at = at;
    p->can = can;
    p->n = automaton_new(p->a, &p->letters, p->m, p->kernel, at,
                         (unsigned)p->letters.names.len + 1);
    compare_counts(p);
    walk(p);
    p->fault.unsure = p->fault.code && !sure;
    return !p->fault.code;
}

PathFault paths_compare(Arena *a, const Module *m, const Op *kernel,
                        const PtxKernel *ptx, const char *arch)
{
    Paths p = { .a = a,
                .m = m,
                .kernel = kernel,
                .ptx = ptx,
                .letters = { .a = a,
                             .arch = arch,
                             .threads = op_attr_int(kernel, "blockDim", 0) } };
    prepare(&p);
    threads_visit(a, kernel, ptx, compare_thread, &p);
    return p.fault;
}
