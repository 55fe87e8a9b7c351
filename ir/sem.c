/* Runs the meaning rows of ir/arith.def against a reader's vocabulary. */
#include "ir/sem.h"

#define P(prim, ...) s->prim(s, t, (const SemVal[]){ __VA_ARGS__ })
#define A (v[0])
#define B (v[1])
#define C (v[2])
#define D (v[3])

static SemVal sem_relu(Sem *s, ScalarType t, SemVal a)
{
    SemVal zero = s->constant(s, t, 0.0);
    SemVal positive = P(lt, zero, a);
    return P(choose, positive, a, zero);
}

static SemVal sem_select(Sem *s, ScalarType t, SemVal x, SemVal bound,
                         SemVal then, SemVal otherwise)
{
    SemVal below = P(lt, x, bound);
    return P(choose, below, then, otherwise);
}

#define ARITH(name, meaning, ...)                                       \
    static SemVal meaning_##name(Sem *s, ScalarType t, const SemVal *v) \
    {                                                                   \
        (void)s, (void)t, (void)v;                                      \
        meaning;                                                        \
    }
#include "ir/arith.def"
#undef ARITH

SemVal sem_apply(Sem *s, OpCode op, ScalarType t, const SemVal *operands)
{
    switch ((int)op) {
#define ARITH(name, meaning, ...) \
    case OP_arith_##name:         \
        return meaning_##name(s, t, operands);
#include "ir/arith.def"
#undef ARITH
    default:
        panic("sem_apply: op %d has no meaning row", (int)op);
    }
}
