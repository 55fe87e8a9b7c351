/* Layer 1 chained with a layer 2 that starts Z3 when it is first asked, behind
 * a prover that saves questions where the user wants that. */
#include "tools/prover.h"

#include "passes/smtlib.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#if EXO_WITH_Z3
#include "verify/smt/smt.h"
#endif

/* Asks the chain, and writes questions to a folder. */
typedef struct Saver {
    Prover prover; /* first: its function gets it */
    Prover *chain;
    Ctx *ctx;
    const char *dir, *about;
    bool all, broken; /* broken: a file could not be written, which was said */
    unsigned n;
} Saver;

struct ToolProver {
    Prover late; /* first: the chain hands it to late_satisfiable */
    Prover *layer1, *chain;
    Saver saver;
    unsigned rlimit;
#if EXO_WITH_Z3
    Smt *smt;
#endif
};

#if EXO_WITH_Z3
static Smt *late_smt(ToolProver *tp)
{
    if (!tp->smt)
        tp->smt = smt_new(&(SmtOptions){ .rlimit = tp->rlimit });
    return tp->smt;
}

static Proof late_satisfiable(Prover *self, const Facts *f, const Cond *c)
{
    Smt *smt = late_smt((ToolProver *)self);
    if (!smt)
        return (Proof){ .reason = "Z3 gives no context" };
    return prove_satisfiable(smt_prover(smt), f, c);
}

static ProveAnswer late_bits_equal(Prover *self, const BitQuery *q,
                                   uint64_t *values)
{
    ToolProver *tp = (ToolProver *)self;
    Smt *smt = late_smt(tp);
    return smt ? prove_bits_equal(smt_prover(smt), q, values) : PROVE_unknown;
}

static Prover *layer2(ToolProver *tp, Arena *arena)
{
    (void)arena;
    tp->late = (Prover){ .name = "z3",
                         .satisfiable = late_satisfiable,
                         .bits_equal = late_bits_equal };
    return &tp->late;
}
#else
static Prover *layer2(ToolProver *tp, Arena *arena)
{
    (void)tp;
    return prover_absent(arena, "built without Z3");
}
#endif

/* ---- saving questions ---------------------------------------------------- */

static FILE *next_file(Saver *sv)
{
    enum { MOST = 1000000 };
    char path[4096];
    FILE *file = NULL;
    while (!file && sv->n < MOST) {
        snprintf(path, sizeof path, "%s/%06u.smt2", sv->dir, ++sv->n);
        file = fopen(path, "wx");
        if (!file && errno != EEXIST)
            break;
    }
    if (!file && !sv->broken)
        diag_warning(sv->ctx, (Loc){ 0 }, "file", "cannot write '%s': %s", path,
                     strerror(errno));
    sv->broken = !file;
    return file;
}

static void save(Saver *sv, const Facts *f, const Cond *c, const Proof *p)
{
    FILE *file = next_file(sv);
    StrBuf s = { 0 };
    if (!file)
        return;
    if (sv->about)
        strbuf_addf(&s, "; asked for: %s\n", sv->about);
    strbuf_addf(&s, "; answer: %s%s%s\n",
                p->answer == PROVE_yes  ? "sat"
                : p->answer == PROVE_no ? "unsat"
                                        : "unknown",
                p->reason ? ", " : "", p->reason ? p->reason : "");
    smtlib_print(&s, f, c);
    fputs(strbuf_text(&s), file);
    fclose(file);
    strbuf_free(&s);
}

static Proof saver_satisfiable(Prover *self, const Facts *f, const Cond *c)
{
    Saver *sv = (Saver *)self;
    Proof p = prove_satisfiable(sv->chain, f, c);
    if (sv->all || p.answer == PROVE_unknown)
        save(sv, f, c, &p);
    return p;
}

/* Bit-vectors are not saved: they are always decided. */
static ProveAnswer saver_bits_equal(Prover *self, const BitQuery *q,
                                    uint64_t *values)
{
    return prove_bits_equal(((Saver *)self)->chain, q, values);
}

/* ---- the prover of a tool ------------------------------------------------ */

static void open_saver(ToolProver *tp, Ctx *ctx, const Options *o)
{
    Saver *sv = &tp->saver;
    sv->dir = options_value(o, "--save-queries", NULL);
    sv->ctx = ctx;
    sv->chain = tp->chain;
    sv->all = !strcmp(options_value(o, "--save-queries-of", "unknown"), "all");
    sv->prover = (Prover){ .name = tp->chain->name,
                           .satisfiable = saver_satisfiable,
                           .bits_equal = saver_bits_equal };
    if (sv->dir && mkdir(sv->dir, 0777) != 0 && errno != EEXIST)
        diag_warning(ctx, (Loc){ 0 }, "file", "cannot make '%s': %s", sv->dir,
                     strerror(errno));
}

ToolProver *tool_prover_open(Arena *arena, Ctx *ctx, const Options *o)
{
    enum { MOST = 2000000000 };
    ToolProver *tp = ARENA_NEW(arena, ToolProver);
    int64_t limit = options_int(o, "--solver-limit", 0);
    tp->rlimit = limit > MOST ? MOST : (unsigned)limit;
    tp->layer1 = prover_layer1(arena);
    tp->chain = prover_chain(arena, tp->layer1, layer2(tp, arena));
    open_saver(tp, ctx, o);
    return tp;
}

Prover *tool_prover(ToolProver *tp)
{
    return tp->saver.dir ? &tp->saver.prover : tp->chain;
}

void tool_prover_about(ToolProver *tp, const char *what)
{
    tp->saver.about = what;
}

const ProverStats *tool_prover_layer1(const ToolProver *tp)
{
    return &tp->layer1->stats;
}

void tool_prover_report(const ToolProver *tp, StrBuf *out)
{
    const ProverStats *s = &tp->layer1->stats;
    strbuf_addf(out, "prover: layer 1: %lu questions, %lu unknown\n",
                s->queries, s->unknown);
#if EXO_WITH_Z3
    if (tp->smt) {
        const SmtStats *z = smt_stats(tp->smt);
        strbuf_addf(out, "prover: Z3 %s: %lu questions, %lu unknown\n",
                    smt_version(tp->smt), z->queries, z->unknown);
    }
#endif
}

void tool_prover_close(ToolProver *tp)
{
#if EXO_WITH_Z3
    smt_free(tp->smt);
    tp->smt = NULL;
#else
    (void)tp;
#endif
}
