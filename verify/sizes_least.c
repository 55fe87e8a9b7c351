/* The least sizes at which a condition can hold, as the prover finds them. */
#include "verify/sizes_impl.h"

/* Parameters of every kind are at most `most` from zero. */
static Facts *within(Chooser *c, const Facts *f, int64_t most)
{
    ExprCtx *x = c->m->exprs;
    Facts *small = facts_copy(c->arena, f);
    for (unsigned i = 0; i < c->set.n; i++) {
        const Affine *v = affine_var(x, c->set.vars[i]);
        facts_assume(small, cond_cmp(x, CMP_le, v, affine_const(x, most)));
        facts_assume(small, cond_cmp(x, CMP_ge, v, affine_const(x, -most)));
    }
    return small;
}

static bool holds_within(Chooser *c, Prover *prover, const Facts *f,
                         const Cond *cond, int64_t most, Proof *p)
{
    Proof found = prove_satisfiable(prover, within(c, f, most), cond);
    if (found.answer == PROVE_yes)
        *p = found;
    return found.answer == PROVE_yes;
}

/* The parameters as the assignment has them, pinned; the others mended. */
static bool load_proof(Chooser *c, const Proof *p, const int64_t *base)
{
    chooser_load(c, base);
    for (unsigned i = 0; i < c->set.n; i++)
        for (unsigned k = 0; k < p->n_values; k++)
            if (p->values[k].atom->kind == ATOM_var &&
                p->values[k].atom->var == c->set.vars[i]) {
                c->values[i] = p->values[k].value;
                c->pinned[i] = true;
            }
    bool ok = chooser_mend(c);
    for (unsigned i = 0; i < c->set.n; i++)
        c->pinned[i] = false;
    return ok;
}

bool sizes_least(Chooser *c, Prover *prover, const Facts *f, const Cond *cond,
                 const int64_t *base, SizeSets *out)
{
    Proof p;
    int64_t most = 1;
    while (!holds_within(c, prover, f, cond, most, &p))
        if ((most *= 2) > SIZE_MOST)
            return false;
    for (int64_t less = most / 2; most - less > 1;) {
        int64_t mid = less + (most - less) / 2;
        if (holds_within(c, prover, f, cond, mid, &p))
            most = mid;
        else
            less = mid;
    }
    return load_proof(c, &p, base) && chooser_add(c, out);
}
