/* The assembler may lay out code as it likes, so that only counts are compared.
 * A row sums the letters of a kernel (letters.h) and the instructions that
 * carry them out. The assembler makes more than one of some: it tries a wait
 * once before the loop, it elects again on the way out of a collective. Which
 * they are was measured on the kernels that ship, with ptxas 13.0. */
#include "verify/async/sass.h"

#include "verify/async/budget.h"
#include "verify/async/letters.h"

#include <ctype.h>
#include <string.h>

enum { MAX_STEMS = 4 };

/* Beginnings of letters' names and of mnemonics that carry them out. */
typedef struct Row {
    const char *letters[MAX_STEMS], *sass[MAX_STEMS];
    bool may_be_more, may_be_merged;
} Row;

enum { MORE = true, MERGED = true };

static const Row rows[] = {
    { { "wgmma.mma_async" }, { "HGMMA", "IGMMA", "QGMMA", "BGMMA" }, 0, 0 },
    { { "wgmma.wait_group" }, { "WARPGROUP.DEPBAR" }, 0, 0 },
    { { "wgmma.fence" }, { "WARPGROUP.ARRIVE" }, 0, 0 },
    { { "mma." }, { "HMMA", "IMMA", "QMMA", "DMMA" }, MORE, 0 },
    { { "ldmatrix." }, { "LDSM" }, 0, 0 },
    { { "stmatrix" }, { "STSM" }, 0, 0 },
    { { "cp.async.bulk.tensor.load" }, { "UTMALDG" }, 0, 0 },
    { { "cp.async.bulk.tensor.store" }, { "UTMASTG" }, 0, 0 },
    { { "cp.reduce.async.bulk.tensor" }, { "UTMAREDG" }, 0, 0 },
    { { "cp.async.bulk.commit_group" }, { "UTMACMDFLUSH" }, 0, 0 },
    { { "cp.async.ca.", "cp.async.cg." }, { "LDGSTS" }, 0, 0 },
    { { "cp.async.commit_group" }, { "LDGDEPBAR" }, MORE, 0 },
    { { "cp.async.bulk.wait_group", "cp.async.wait_" }, { "DEPBAR" }, MORE, 0 },
    { { "cp.async.mbarrier.arrive" }, { "ARRIVES" }, 0, 0 },
    { { "mbarrier.init" }, { "SYNCS.EXCH" }, 0, 0 },
    { { "mbarrier.try_wait" }, { "SYNCS.PHASECHK" }, MORE, 0 },
    { { "mbarrier.expect_tx" },
      { "SYNCS.ARRIVE.TRANS64.RED.A0TR" },
      MORE,
      MERGED },
    { { "mbarrier.arrive" },
      { "SYNCS.ARRIVE.TRANS64.A1T0", "SYNCS.ARRIVE.TRANS64.RED.A1T0" },
      0,
      0 },
    { { "fence.proxy.async" }, { "FENCE.VIEW.ASYNC" }, MORE, 0 },
    { { "barrier.cta.sync" }, { "BAR.SYNC" }, MORE, 0 },
    { { "barrier.cta.arrive" }, { "BAR.ARV" }, 0, 0 },
    { { "barrier.cluster.arrive" }, { "UCGABAR_ARV" }, 0, 0 },
    { { "barrier.cluster.wait" }, { "UCGABAR_WAIT" }, 0, 0 },
    { { "setmaxnreg" }, { "USETMAXREG" }, 0, 0 },
    { { "elect.sync" }, { "ELECT" }, MORE, 0 },
};
enum { N_ROWS = sizeof rows / sizeof *rows };

typedef struct Sass {
    Ctx *ctx;
    const char *name; /* the kernel's */
    int64_t want[N_ROWS], found[N_ROWS];
    bool bad;
    const char *more;
} Sass;

static bool begins_with_one(const char *s, const char *const *stems)
{
    for (int i = 0; i < MAX_STEMS && stems[i]; i++)
        if (!strncmp(s, stems[i], strlen(stems[i])))
            return true;
    return false;
}

/* ---- the kernel ---------------------------------------------------------- */

typedef struct Wanted {
    Sass *s;
    const Module *m;
    Alphabet letters;
} Wanted;

static bool count_op(Op *op, void *user)
{
    Wanted *w = user;
    LetterVec v = { 0 };
    letters_of_op(&w->letters, w->m, op, &v);
    for (size_t i = 0; i < v.len; i++)
        for (int r = 0; r < N_ROWS; r++)
            if (begins_with_one(letter_name(&w->letters, v.data[i].id),
                                rows[r].letters))
                w->s->want[r] += v.data[i].count;
    return true;
}

/* ---- the text ------------------------------------------------------------ */

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

/* The mnemonic of a line, which has its address in a comment first and may have
 * a guard (@P0); NULL: there is none; *n long. */
static const char *mnemonic(const char *line, size_t *n)
{
    line += strspn(line, " \t");
    if (strncmp(line, "/*", 2) || !isxdigit((unsigned char)line[2]))
        return NULL;
    line += 2 + strspn(line + 2, "0123456789abcdefABCDEF");
    if (strncmp(line, "*/", 2))
        return NULL;
    line += 2 + strspn(line + 2, " \t{");
    if (*line == '@')
        line += strcspn(line, " \n");
    line += strspn(line, " ");
    *n = strcspn(line, " ;\n");
    return *n ? line : NULL;
}

/* Is the line the head of a kernel's code? Its name then, *n long. */
static const char *head(const char *line, size_t *n)
{
    static const char dump[] = "Function : ", section[] = ".text.";
    line += strspn(line, " \t");
    if (!strncmp(line, dump, sizeof dump - 1)) {
        line += sizeof dump - 1;
        *n = strcspn(line, " \r\n");
        return line;
    }
    if (strncmp(line, section, sizeof section - 1))
        return NULL;
    line += sizeof section - 1;
    *n = strcspn(line, ":\r\n");
    return line[*n] == ':' ? line : NULL;
}

static bool is_one_of(const char *op, const char *stem)
{
    size_t n = strlen(stem);
    return !strncmp(op, stem, n) && (!op[n] || op[n] == '.');
}

static void count_instr(Sass *s, const char *op)
{
    int64_t weight = 1;
    if (is_one_of(op, "STSM"))
        weight = strstr(op, ".4") ? 4 : strstr(op, ".2") ? 2 : 1;
    for (int r = 0; r < N_ROWS; r++)
        if (begins_with_one(op, rows[r].sass))
            s->found[r] += weight;
    if (is_one_of(op, "LDL") || is_one_of(op, "STL"))
        fault(s, "SASS-MEMORY", "local memory is used: '%s'", op);
    else if (is_one_of(op, "LD") || is_one_of(op, "ST") ||
             is_one_of(op, "ATOM"))
        fault(s, "SASS-MEMORY", "an access does not name its space: '%s'", op);
}

/* Counts what is in the kernel's part of the text; false: it has none. */
static bool read_kernel(Sass *s, const char *text)
{
    bool inside = false, there = false;
    char op[64];
    for (const char *line = text; line && *line;) {
        size_t n;
        const char *word = head(line, &n);
        if (word)
            inside = strlen(s->name) == n && !strncmp(word, s->name, n);
        there |= inside;
        word = inside ? mnemonic(line, &n) : NULL;
        if (word) {
            n = n < sizeof op ? n : sizeof op - 1;
            memcpy(op, word, n);
            op[n] = '\0';
            count_instr(s, op);
        }
        line = strchr(line, '\n');
        line += line ? 1 : 0;
    }
    return there;
}

static void compare(Sass *s)
{
    for (int r = 0; r < N_ROWS; r++) {
        int64_t want = s->want[r], found = s->found[r];
        int64_t least = rows[r].may_be_merged && want ? 1 : want;
        if (found < least)
            fault(s, "SASS-COUNT", "%lld of %s for %lld of '%s'",
                  (long long)found, rows[r].sass[0], (long long)want,
                  rows[r].letters[0]);
        else if (found > want && !rows[r].may_be_more)
            s->more = arena_printf(ctx_arena(s->ctx),
                                   "%s has %lld of %s for %lld of '%s'",
                                   s->name, (long long)found, rows[r].sass[0],
                                   (long long)want, rows[r].letters[0]);
    }
}

static void check_kernel(Sass *s, const Module *m, const Op *kernel,
                         const char *text)
{
    Wanted w = { .s = s, .m = m };
    w.letters.a = arena_new();
    w.letters.arch = "sm_90a";
    s->name = op_attr_str(kernel, "name", "");
    memset(s->want, 0, sizeof s->want);
    memset(s->found, 0, sizeof s->found);
    op_walk((Op *)(uintptr_t)kernel, count_op, &w);
    if (!read_kernel(s, text))
        fault(s, "SASS-COUNT", "there is no code of that name");
    else
        compare(s);
    arena_free(w.letters.a);
}

CheckResult check_sass(Ctx *ctx, const Module *m, const Op *host,
                       const char *text, size_t n)
{
    Sass s = { .ctx = ctx };
    const char *copy = arena_strndup(ctx_arena(ctx), text, n);
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel &&
            kernel_is_launched(host, op_attr_str(op, "name", "")))
            check_kernel(&s, m, op, copy);
    CheckResult r = { .check = "check-async/sass",
                      .proc = op_attr_str(host, "name", "_"),
                      .verdict = s.bad    ? VERDICT_refuted
                                 : s.more ? VERDICT_unknown
                                          : VERDICT_proved,
                      .version = 1 };
    if (r.verdict == VERDICT_proved)
        r.scope = "all sizes";
    else if (!s.bad)
        r.reason = s.more;
    return r;
}
