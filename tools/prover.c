/* Layer 1 chained with a layer 2 that starts Z3 when it is first asked. */
#include "tools/prover.h"

#if EXO_WITH_Z3
#include "verify/smt/smt.h"
#endif

struct ToolProver {
    Prover late; /* first: the chain hands it to late_satisfiable */
    Prover *layer1, *chain;
#if EXO_WITH_Z3
    Smt *smt;
#endif
};

#if EXO_WITH_Z3
static Proof late_satisfiable(Prover *self, const Facts *f, const Cond *c)
{
    ToolProver *tp = (ToolProver *)self;
    if (!tp->smt)
        tp->smt = smt_new(&(SmtOptions){ 0 });
    if (!tp->smt)
        return (Proof){ .reason = "Z3 gives no context" };
    return prove_satisfiable(smt_prover(tp->smt), f, c);
}

static Prover *layer2(ToolProver *tp, Arena *arena)
{
    (void)arena;
    tp->late = (Prover){ .name = "z3", .satisfiable = late_satisfiable };
    return &tp->late;
}
#else
static Prover *layer2(ToolProver *tp, Arena *arena)
{
    (void)tp;
    return prover_absent(arena, "built without Z3");
}
#endif

ToolProver *tool_prover_open(Arena *arena)
{
    ToolProver *tp = ARENA_NEW(arena, ToolProver);
    tp->layer1 = prover_layer1(arena);
    tp->chain = prover_chain(arena, tp->layer1, layer2(tp, arena));
    return tp;
}

Prover *tool_prover(ToolProver *tp)
{
    return tp->chain;
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
