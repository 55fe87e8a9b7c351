/* Counts of rows (sass_rows.h) are compared, of the kernel and of what each
 * thread can come to (threads.h, verify/sass/), and where a thread's are right
 * the order (sass_order.h). The assembler may lay out code as it likes: what is
 * missing refutes, what else differs leaves it open. */
#include "verify/async/sass.h"

#include "verify/async/budget.h"
#include "verify/async/sass_order.h"
#include "verify/async/sass_rows.h"

#include <string.h>

/* By row. */
typedef struct Counts {
    int64_t of[SASS_ROWS];
} Counts;

typedef struct Sass {
    Ctx *ctx;
    Arena *a; /* of a kernel */
    const Module *m;
    const Op *kernel;
    const char *name; /* the kernel's */
    Alphabet letters;
    SassKernel code;
    int8_t *row;        /* by instruction; -1: none */
    uint8_t *times;     /* what it counts for */
    Counts want, found; /* of the whole kernel */
    bool exact;         /* each thread comes to what it does, and no more */
    bool bad;
    const char *more;  /* what the kernel has more of, or elsewhere */
    const char *whole; /* why counts are of a kernel, not of each thread */
} Sass;

/* ---- the kernel ---------------------------------------------------------- */

static void count_op(Sass *s, const Op *op, Counts *c)
{
    LetterVec v = { 0 };
    letters_of_op(&s->letters, s->m, op, &v);
    for (size_t i = 0; i < v.len; i++) {
        int r = sass_row_of_letter(letter_name(&s->letters, v.data[i].id));
        if (r >= 0)
            c->of[r] += v.data[i].count;
    }
}

/* What the thread can come to; at NULL: all. */
static void count_block(Sass *s, const Block *b, Coords *at, Counts *c)
{
    for (const Op *op = b->first; op; op = op->next) {
        bool chooses =
            at && (op->code == OP_ctl_if || op->code == OP_async_role ||
                   op->code == OP_async_elect);
        Truth t = chooses ? thread_enters(op, at) : TRUTH_open;
        count_op(s, op, c);
        for (unsigned i = 0; i < op->n_blocks; i++)
            if (t == TRUTH_open || (t == TRUTH_yes) == (i == 0))
                count_block(s, op->blocks[i], at, c);
    }
}

/* ---- the code ------------------------------------------------------------ */

static void fault(Sass *s, const char *code, const char *fmt, ...)
    EXO_PRINTF(3, 4);

static void fault(Sass *s, const char *code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(ctx_arena(s->ctx), fmt, ap);
    va_end(ap);
    diag_error(s->ctx, (Loc){ 0 }, code, "SASS: %s: %s: %s", code, s->name,
               text);
    s->bad = true;
}

static bool is_one_of(const char *op, const char *stem)
{
    size_t n = strlen(stem);
    return !strncmp(op, stem, n) && (!op[n] || op[n] == '.');
}

static bool reads_other_ctas(Op *op, void *user)
{
    *(bool *)user |= op->code == OP_async_cluster_load;
    return true;
}

/* Local memory, and accesses that may be to any: a load from another CTA's
 * shared memory is such a one. */
static void check_memory(Sass *s)
{
    bool reads = false;
    op_walk((Op *)(uintptr_t)s->kernel, reads_other_ctas, &reads);
    for (uint32_t i = 0; i < s->code.n_instrs; i++) {
        const char *op = s->code.instrs[i].op;
        if (is_one_of(op, "LDL") || is_one_of(op, "STL"))
            fault(s, "SASS-MEMORY", "local memory is used: '%s'", op);
        else if ((is_one_of(op, "LD") && !reads) || is_one_of(op, "ST") ||
                 is_one_of(op, "ATOM"))
            fault(s, "SASS-MEMORY", "an access does not name its space: '%s'",
                  op);
    }
}

/* Instructions that stand for nothing of the kernel: the fence before an
 * mbarrier is made, and the barrier in the place of a cluster's, for a launch
 * without clusters. */
static bool is_own(const Sass *s, uint32_t i)
{
    const SassInstr *in = &s->code.instrs[i];
    if (is_one_of(in->op, "FENCE"))
        return i + 1 < s->code.n_instrs && is_one_of(in[1].op, "SYNCS.EXCH");
    if (!is_one_of(in->op, "BAR.SYNC") || i < 2 || in->n_operands != 1 ||
        !(is_one_of(in[-1].op, "BRA") || is_one_of(in[-1].op, "EXIT")))
        return false;
    return is_one_of(in[-2].op, "UCGABAR_WAIT") ||
           (i > 2 && is_one_of(in[-3].op, "UCGABAR_WAIT"));
}

enum { NEAR = 12 };

/* Is it a wait that is tried in a loop alone, not once before it? Loops behind
 * a first try are out of the way, and go back by a branch; one alone is left
 * at its end, or by an exit. */
static bool is_only_try(const Sass *s, uint32_t i)
{
    const SassInstr *in = &s->code.instrs[i];
    uint32_t k = 1, n = s->code.n_instrs - i;
    while (k < n && k < NEAR && !is_one_of(in[k].op, "BRA"))
        k++;
    if (!is_one_of(in->op, "SYNCS.PHASECHK") || k + 1 >= n || k == NEAR)
        return false;
    bool alone = in[k].guard ? !is_one_of(in[k + 1].op, "BRA")
                             : is_one_of(in[k - 1].op, "EXIT");
    return alone && in[k].target <= i && i - in[k].target < NEAR;
}

/* What a warp that has come apart does in the place of what the others do, up
 * to where it goes back, is not counted beside that. */
static void leave_out_apart(Sass *s)
{
    uint32_t n = s->code.n_instrs;
    for (uint32_t i = 0; i < n; i++) {
        const SassInstr *in = &s->code.instrs[i];
        uint32_t end = in->target;
        if (strncmp(in->op, "BRA.DIV", 7) || end <= i || end >= n)
            continue;
        while (end < n && (!is_one_of(s->code.instrs[end].op, "BRA") ||
                           s->code.instrs[end].guard))
            end++;
        if (end < n && s->code.instrs[end].target < in->target)
            memset(s->times + in->target, 0, end - in->target);
    }
}

static void classify(Sass *s)
{
    uint32_t n = s->code.n_instrs;
    s->row = ARENA_ARRAY(s->a, int8_t, n + 1);
    s->times = ARENA_ARRAY(s->a, uint8_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const char *op = s->code.instrs[i].op;
        s->row[i] = is_own(s, i) ? -1 : (int8_t)sass_row_of_op(op);
        s->times[i] = 1;
        if (is_one_of(op, "STSM"))
            s->times[i] = strstr(op, ".4") ? 4 : strstr(op, ".2") ? 2 : 1;
        else if (is_only_try(s, i))
            s->times[i] = 2;
    }
    leave_out_apart(s);
}

/* What can be executed; can NULL: all. */
static void count_code(const Sass *s, const uint8_t *can, Counts *c)
{
    for (uint32_t i = 0; i < s->code.n_instrs; i++)
        if (s->row[i] >= 0 &&
            (!can || can[s->code.instrs[i].step] & PTX_CAN_RUN))
            c->of[s->row[i]] += s->times[i];
}

/* ---- both ---------------------------------------------------------------- */

/* How often an instruction of the row stands for one of the kernel's. */
static int64_t times_of(const Sass *s, int r)
{
    bool twice =
        sass_rows[r].may_be & SASS_TWICE && s->found.of[r] == 2 * s->want.of[r];
    return twice ? 2 : 1;
}

/* The first row of which there is less than must be there, or SASS_ROWS; *more:
 * one of which there is more than may be, by those reasons. */
static int find_less(const Sass *s, const Counts *want, const Counts *found,
                     unsigned may_be, int *more)
{
    *more = SASS_ROWS;
    for (int r = 0; r < SASS_ROWS; r++) {
        int64_t all = want->of[r] * times_of(s, r), least = all;
        if (sass_rows[r].may_be & SASS_MERGED && least)
            least = 1;
        if (found->of[r] < least)
            return r;
        if (found->of[r] > all && !(sass_rows[r].may_be & may_be))
            *more = r;
    }
    return SASS_ROWS;
}

static const char *numbers(Sass *s, int r, const Counts *want,
                           const Counts *found)
{
    return arena_printf(ctx_arena(s->ctx), "%lld of %s for %lld of '%s'",
                        (long long)found->of[r], sass_rows[r].sass[0],
                        (long long)want->of[r], sass_rows[r].letters[0]);
}

/* A thread can come to more than it does. */
static void add_more(Sass *s, const char *what, const Coords *at, bool sure)
{
    const char **open = sure ? &s->more : &s->whole;
    if (*open)
        return;
    *open = arena_printf(ctx_arena(s->ctx), "%s: %s%s; %s", s->name, what,
                         sure ? "" : ", as an unknown instruction decides",
                         thread_text(s->a, s->kernel, at));
}

/* The thread's counts are right. */
static void compare_order(Sass *s, Coords *at, const uint8_t *can, bool sure)
{
    const SassOrder source = { &s->letters, s->m, s->kernel, &s->code, s->row };
    const char **open = sure ? &s->more : &s->whole;
    const char *fault = *open ? NULL : sass_order(s->a, &source, at, can);
    if (fault)
        *open = arena_printf(ctx_arena(s->ctx), "%s: %s", s->name, fault);
}

static bool compare_thread(void *user, Coords *at, const uint8_t *can,
                           bool sure)
{
    Sass *s = user;
    Counts want = { 0 }, found = { 0 };
    int more;
    unsigned may_be = at->value[2] ? SASS_MORE | SASS_ONCE : SASS_MORE;
    count_block(s, s->kernel->blocks[0], at, &want);
    count_code(s, can, &found);
    int less = find_less(s, &want, &found, may_be, &more);
    if (less < SASS_ROWS)
        fault(s, "SASS-COUNT", "%s; %s", numbers(s, less, &want, &found),
              thread_text(s->a, s->kernel, at));
    else if (more < SASS_ROWS)
        add_more(s, numbers(s, more, &want, &found), at, sure);
    else
        compare_order(s, at, can, sure);
    s->exact &= more == SASS_ROWS;
    return !s->bad;
}

/* The kernel's counts. Where each thread has its own, code that is there once
 * for two roles is not missing. */
static void compare_all(Sass *s)
{
    int more;
    int less = find_less(s, &s->want, &s->found, SASS_MORE, &more);
    if (less < SASS_ROWS && !s->exact && !s->bad)
        fault(s, "SASS-COUNT", "%s", numbers(s, less, &s->want, &s->found));
    else if (more < SASS_ROWS)
        s->more = arena_printf(ctx_arena(s->ctx), "%s has %s", s->name,
                               numbers(s, more, &s->want, &s->found));
}

static void compare(Sass *s)
{
    const char *why = NULL;
    s->want = s->found = (Counts){ 0 };
    s->exact = true;
    count_block(s, s->kernel->blocks[0], NULL, &s->want);
    count_code(s, NULL, &s->found);
    if (!sass_flow(s->a, &s->code, &why)) {
        s->whole = arena_printf(ctx_arena(s->ctx), "%s: %s", s->name, why);
        s->exact = false;
    } else if (!threads_visit(s->a, s->kernel, &s->code.flow, compare_thread,
                              s)) {
        s->exact = false;
    }
    compare_all(s);
}

static void check_kernel(Sass *s, const Op *kernel, const SassText *text)
{
    s->a = arena_new();
    s->kernel = kernel;
    s->name = op_attr_str(kernel, "name", "");
    s->letters = (Alphabet){ .a = s->a,
                             .arch = "sm_90a",
                             .threads = op_attr_int(kernel, "blockDim", 0) };
    if (sass_read(s->a, text, s->name, &s->code)) {
        check_memory(s);
        classify(s);
        compare(s);
    } else {
        fault(s, "SASS-COUNT", "there is no code of that name");
    }
    arena_free(s->a);
}

CheckResult check_sass(Ctx *ctx, const Module *m, const Op *host,
                       const SassText *text)
{
    Sass s = { .ctx = ctx, .m = m };
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel &&
            kernel_is_launched(host, op_attr_str(op, "name", "")))
            check_kernel(&s, op, text);
    CheckResult r = { .check = "check-async/sass",
                      .proc = op_attr_str(host, "name", "_"),
                      .verdict = s.bad    ? VERDICT_refuted
                                 : s.more ? VERDICT_unknown
                                          : VERDICT_proved,
                      .version = 3 };
    if (r.verdict == VERDICT_proved)
        r.scope = s.whole ? arena_printf(ctx_arena(ctx),
                                         "all sizes; counts of the kernel, not "
                                         "order and counts of each thread: %s",
                                         s.whole)
                          : "all sizes";
    else if (!s.bad)
        r.reason = s.more;
    return r;
}
