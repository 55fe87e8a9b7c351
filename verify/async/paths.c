/* The PTX is walked (walk.h) with the sets of states of the kernel's automaton
 * (automaton.h).
 *
 * Threads for which the same conditions hold on both sides are looked at once.
 * Every thread is: roles need no mark in the text. Of a warp that elects a
 * lane, it is lane 0 on both sides. */
#include "verify/async/paths.h"

#include "verify/async/automaton.h"
#include "verify/async/walk.h"

#include <string.h>

/* ---- the walk through the PTX -------------------------------------------- */

typedef struct Paths {
    Arena *a;
    const Module *m;
    const Op *kernel;
    const PtxKernel *ptx;
    Alphabet letters;
    const Letter *of; /* by instruction */
    Automaton *n;
    const uint8_t *can;
    const Coords *at;
    PathFault fault;
    bool stop; /* there is a fault */
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
    p->stop = true;
    p->fault.code = code;
    p->fault.line = line;
    p->fault.text =
        arena_printf(p->a, "%s; %s", what, thread_text(p->a, p->kernel, p->at));
}

/* What the kernel may do there, in words. */
static const char *expected(const Paths *p, unsigned set)
{
    StrBuf text = { 0 };
    unsigned n;
    const unsigned *letters = automaton_expects(p->n, set, &n);
    for (unsigned i = 0; i < n && i < 4; i++)
        strbuf_addf(&text, "%s'%s'", i ? ", " : "",
                    letter_name(&p->letters, letters[i]));
    if (automaton_can_end(p->n, set))
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
    unsigned to = automaton_after(p->n, *set, l->id);
    if (automaton_is_empty(p->n, to)) {
        fault(p, p->ptx->instrs[i].line, "PTX-ORDER",
              "'%s' comes where the kernel has %s",
              letter_name(&p->letters, l->id), expected(p, *set));
        return false;
    }
    *set = to;
    return true;
}

/* Behind a wait stands the branch on its predicate, which goes back to it until
 * it holds. The instruction where it then goes on; WALK_ON: it does not. */
static uint32_t behind_wait(const Paths *p, uint32_t i)
{
    const PtxInstr *wait = &p->ptx->instrs[i], *branch = wait + 1;
    if (i + 2 >= p->ptx->n_instrs || !wait->n_args || wait->guard ||
        wait->args[0].kind != PTX_reg || branch->n_targets != 1 ||
        branch->guard != wait->args[0].reg)
        return WALK_ON;
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
    return WALK_ON;
}

static bool step(void *user, uint32_t i, bool runs, unsigned *set,
                 uint32_t *next)
{
    Paths *p = user;
    const PtxInstr *in = &p->ptx->instrs[i];
    if (!runs)
        return true;
    if (!take(p, i, set))
        return false;
    if (p->of[i].is_wait) {
        *next = behind_wait(p, i);
        if (*next == WALK_ON)
            fault(p, in->line, "PTX-ORDER",
                  "'%s' is not repeated until its predicate holds", in->op);
    }
    if (in->ends && !automaton_can_end(p->n, *set))
        fault(p, in->line, "PTX-ORDER",
              "the thread ends where the kernel has %s", expected(p, *set));
    return !p->stop;
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
        int64_t want = automaton_count(p->n, l);
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
    for (uint32_t i = 0; i < n; i++)
        of[i] = letter_of_instr(&p->letters, &p->ptx->instrs[i]);
    op_walk((Op *)p->kernel, add_op_letters, p);
    p->of = of;
}

static bool compare_thread(void *user, Coords *at, const uint8_t *can,
                           bool sure)
{
    Paths *p = user;
    p->at = at;
    p->can = can;
    AutomatonSource source = { .letters = &p->letters,
                               .m = p->m,
                               .kernel = p->kernel,
                               .at = at,
                               .max_letters =
                                   (unsigned)p->letters.names.len + 1 };
    p->n = automaton_new(p->a, &source);
    compare_counts(p);
    walk_code(p->a, p->n, p->ptx, can, SIZE_MAX, step, p, &p->stop);
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
