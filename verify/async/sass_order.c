/* The flow of SASS is walked (walk.h) with the sets of states of the kernel's
 * automaton, whose letters are rows. What a guard may skip may have been done
 * or not on every way: the assembler puts one condition into guards and
 * branches, of which a way may take some so and others so. What comes again, or
 * more often than in the kernel, leaves the kernel where it was, too. */
#include "verify/async/sass_order.h"

#include "verify/async/sass_rows.h"
#include "verify/async/walk.h"

#include <string.h>

enum { MOST_PLACES = 1000000 };

typedef struct Ordering {
    Arena *a;
    const SassOrder *source;
    const Coords *at;
    const uint8_t *can;
    Automaton *n;
    uint32_t *instr; /* by step of the flow: of SASS, + 1 */
    const char *fault;
    bool stop;
} Ordering;

/* Bulk copies are started for a warp, by whichever lane is looked at. */
static bool is_ordered(const Ordering *o, int r)
{
    unsigned may_be = r < 0 ? SASS_FREELY : sass_rows[r].may_be;
    return !(may_be & SASS_FREELY) && !(may_be & SASS_ONCE && o->at->value[2]);
}

static Reading read_letter(void *user, unsigned letter)
{
    const Ordering *o = user;
    int r = sass_row_of_letter(letter_name(o->source->letters, letter));
    if (!is_ordered(o, r))
        return (Reading){ 0 };
    return (Reading){ (unsigned)r + 1, sass_rows[r].may_be & SASS_SKIPPED };
}

static void fault(Ordering *o, const SassInstr *in, unsigned set,
                  const char *what)
{
    StrBuf text = { 0 };
    unsigned n;
    const unsigned *letters = automaton_expects(o->n, set, &n);
    strbuf_addf(&text, "%04llx: %s%s comes where the kernel has ",
                (unsigned long long)in->address, in->op, what);
    for (unsigned i = 0; i < n && i < 4; i++)
        strbuf_addf(&text, "%s'%s'", i ? ", " : "",
                    sass_rows[letters[i] - 1].letters[0]);
    if (automaton_can_end(o->n, set))
        strbuf_addf(&text, "%sits end", n ? " or " : "");
    strbuf_addf(&text, "; %s", thread_text(o->a, o->source->kernel, o->at));
    o->fault = arena_strdup(o->a, strbuf_text(&text));
    o->stop = true;
    strbuf_free(&text);
}

/* step: of the flow. */
static void take(Ordering *o, uint32_t step, const SassInstr *in, int r,
                 bool runs, unsigned *set)
{
    unsigned to = automaton_after(o->n, *set, (unsigned)r + 1);
    unsigned again = SASS_AGAIN | SASS_MORE | SASS_TWICE;
    bool more = sass_rows[r].may_be & again;
    if (runs && !more && automaton_is_empty(o->n, to))
        fault(o, in, *set, "");
    else if (more || o->can[step] & PTX_CAN_SKIP)
        *set = automaton_join(o->n, *set, to);
    else
        *set = to;
}

static bool step(void *user, uint32_t i, bool runs, unsigned *set,
                 uint32_t *next)
{
    Ordering *o = user;
    (void)next;
    if (!o->instr[i])
        return true;
    uint32_t at = o->instr[i] - 1;
    const SassInstr *in = &o->source->code->instrs[at];
    if (is_ordered(o, o->source->row[at]))
        take(o, i, in, o->source->row[at], runs, set);
    bool returns = !strncmp(in->op, "RET", 3); /* behind the call */
    if (runs && !returns && !o->stop && o->source->code->flow.instrs[i].ends &&
        !automaton_can_end(o->n, *set))
        fault(o, in, *set, " of the thread");
    return !o->stop;
}

const char *sass_order(Arena *a, const SassOrder *source, Coords *at,
                       const uint8_t *can)
{
    Ordering o = { .a = a, .source = source, .at = at, .can = can };
    AutomatonSource kernel = { .letters = source->letters,
                               .m = source->m,
                               .kernel = source->kernel,
                               .at = at,
                               .max_letters = SASS_ROWS + 1,
                               .read = read_letter,
                               .user = &o };
    const SassKernel *code = source->code;
    o.instr = ARENA_ARRAY(a, uint32_t, code->flow.n_instrs + 1);
    for (uint32_t i = 0; i < code->n_instrs; i++)
        o.instr[code->instrs[i].step] = i + 1;
    o.n = automaton_new(a, &kernel);
    if (!walk_code(a, o.n, &code->flow, can, MOST_PLACES, step, &o, &o.stop))
        return "there are too many ways through the code to compare its order";
    return o.fault;
}
