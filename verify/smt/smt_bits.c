/* Equality of terms over bit-vectors: Z3 looks for values at which they differ,
 * which are evaluated before they are believed. */
#include "verify/smt/smt_impl.h"

enum { WIDTH = 64 };

typedef struct BitsQuestion {
    Smt *smt;
    Z3_sort sort;
    const BitQuery *q;
} BitsQuestion;

static Z3_ast constant(const BitsQuestion *b, uint64_t c)
{
    return Z3_mk_unsigned_int64(b->smt->z3, c, b->sort);
}

static Z3_ast variable(const BitsQuestion *b, unsigned i)
{
    Z3_symbol name = Z3_mk_int_symbol(b->smt->z3, (int)i);
    return Z3_mk_const(b->smt->z3, name, b->sort);
}

static Z3_ast term(const BitsQuestion *b, const BitTerm *t)
{
    Z3_context z3 = b->smt->z3;
    if (t->op == BIT_const)
        return constant(b, t->c);
    if (t->op == BIT_var)
        return variable(b, (unsigned)t->c);
    Z3_ast x = term(b, t->a), y = term(b, t->b);
    switch (t->op) {
    case BIT_add:
        return Z3_mk_bvadd(z3, x, y);
    case BIT_mul:
        return Z3_mk_bvmul(z3, x, y);
    case BIT_and:
        return Z3_mk_bvand(z3, x, y);
    case BIT_xor:
        return Z3_mk_bvxor(z3, x, y);
    case BIT_shr:
        return Z3_mk_bvlshr(z3, x, y);
    case BIT_const:
    case BIT_var:
        break;
    }
    return x;
}

/* Do the model's values show that the sides differ? */
static bool take_model(const BitsQuestion *b, Z3_solver solver,
                       uint64_t *values)
{
    Z3_context z3 = b->smt->z3;
    Z3_model model = Z3_solver_get_model(z3, solver);
    bool ok = model != NULL;
    if (!model)
        return false;
    Z3_model_inc_ref(z3, model);
    for (unsigned i = 0; i < b->q->n_vars && ok; i++) {
        Z3_ast value = NULL;
        ok = Z3_model_eval(z3, model, variable(b, i), true, &value) &&
             Z3_get_numeral_uint64(z3, value, &values[i]) &&
             values[i] < b->q->vars[i].below;
    }
    Z3_model_dec_ref(z3, model);
    return ok &&
           bits_eval(b->q->left, values) != bits_eval(b->q->right, values);
}

ProveAnswer smt_bits_equal(Prover *self, const BitQuery *q, uint64_t *values)
{
    Smt *smt = (Smt *)self;
    Z3_context z3 = smt->z3;
    BitsQuestion b = { smt, Z3_mk_bv_sort(z3, WIDTH), q };
    ProveAnswer answer = PROVE_unknown;
    Z3_solver solver = Z3_mk_simple_solver(z3);
    Z3_solver_inc_ref(z3, solver);
    smt_set_parameters(smt, solver);
    for (unsigned i = 0; i < q->n_vars; i++)
        Z3_solver_assert(
            z3, solver,
            Z3_mk_bvult(z3, variable(&b, i), constant(&b, q->vars[i].below)));
    Z3_ast equal = Z3_mk_eq(z3, term(&b, q->left), term(&b, q->right));
    Z3_solver_assert(z3, solver, Z3_mk_not(z3, equal));
    Z3_lbool found = Z3_solver_check(z3, solver);
    smt->stats.queries++;
    smt_count_resources(smt, solver);
    if (found == Z3_L_FALSE && Z3_get_error_code(z3) == Z3_OK)
        answer = PROVE_yes;
    else if (found == Z3_L_TRUE && take_model(&b, solver, values))
        answer = PROVE_no;
    smt->stats.unsat += answer == PROVE_yes;
    smt->stats.sat += answer == PROVE_no;
    smt->stats.unknown += answer == PROVE_unknown;
    Z3_solver_dec_ref(z3, solver);
    return answer;
}
