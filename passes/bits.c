/* Making and evaluating terms; who decides about them is verify/smt/bits.c. */
#include "passes/bits.h"

const BitTerm *bits_const(Arena *a, uint64_t c)
{
    BitTerm *t = ARENA_NEW(a, BitTerm);
    t->c = c;
    return t;
}

const BitTerm *bits_var(Arena *a, unsigned i)
{
    BitTerm *t = ARENA_NEW(a, BitTerm);
    *t = (BitTerm){ .op = BIT_var, .c = i };
    return t;
}

const BitTerm *bits_make(Arena *a, BitOp op, const BitTerm *x, const BitTerm *y)
{
    BitTerm *t = ARENA_NEW(a, BitTerm);
    *t = (BitTerm){ .op = op, .a = x, .b = y };
    return t;
}

const BitTerm *bits_with(Arena *a, BitOp op, const BitTerm *x, uint64_t c)
{
    return bits_make(a, op, x, bits_const(a, c));
}

uint64_t bits_eval(const BitTerm *t, const uint64_t *values)
{
    if (t->op == BIT_const)
        return t->c;
    if (t->op == BIT_var)
        return values[t->c];
    uint64_t x = bits_eval(t->a, values), y = bits_eval(t->b, values);
    switch (t->op) {
    case BIT_add:
        return x + y;
    case BIT_mul:
        return x * y;
    case BIT_and:
        return x & y;
    case BIT_xor:
        return x ^ y;
    case BIT_shr:
        return y < 64 ? x >> y : 0;
    case BIT_const:
    case BIT_var:
        break;
    }
    return 0;
}
