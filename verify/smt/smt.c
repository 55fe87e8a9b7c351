/* Conditions as Z3 terms, one solver a question, models checked. */
#include "verify/smt/smt_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Terms already made for the expressions, atoms and conditions of a question,
 * by open addressing. */
typedef struct TermMap {
    const void **key;
    Z3_ast *term;
    size_t len, cap;
} TermMap;

typedef struct Question {
    Smt *smt;
    const Facts *facts;
    Arena *arena;
    CondVec conds;
    TermMap terms;
    VEC(const Atom *) free; /* variables, strides, configuration reads */
} Question;

static void ignore_error(Z3_context z3, Z3_error_code code)
{
    (void)z3, (void)code; /* read by Z3_get_error_code where it matters */
}

/* ---- life ---------------------------------------------------------------- */

static Proof smt_satisfiable(Prover *self, const Facts *f, const Cond *c);

Smt *smt_new(const SmtOptions *options)
{
    Z3_config config = Z3_mk_config();
    Z3_context z3 = config ? Z3_mk_context(config) : NULL;
    if (config)
        Z3_del_config(config);
    if (!z3)
        return NULL;
    Z3_set_error_handler(z3, ignore_error);
    Arena *arena = arena_new();
    Smt *smt = ARENA_NEW(arena, Smt);
    unsigned major, minor, build, revision;
    Z3_get_version(&major, &minor, &build, &revision);
    smt->arena = arena;
    smt->z3 = z3;
    smt->int_sort = Z3_mk_int_sort(z3);
    smt->prover.name = "Z3";
    smt->prover.satisfiable = smt_satisfiable;
    smt->prover.bits_equal = smt_bits_equal;
    smt->rlimit = options->rlimit ? options->rlimit : SMT_RLIMIT;
    smt->version = arena_printf(arena, "%u.%u.%u", major, minor, build);
    return smt;
}

void smt_free(Smt *smt)
{
    if (!smt)
        return;
    Z3_del_context(smt->z3);
    arena_free(smt->arena);
}

Prover *smt_prover(Smt *smt)
{
    return &smt->prover;
}

const SmtStats *smt_stats(const Smt *smt)
{
    return &smt->stats;
}

const char *smt_version(const Smt *smt)
{
    return smt->version;
}

/* ---- terms --------------------------------------------------------------- */

static size_t map_place(const TermMap *map, const void *key)
{
    uint64_t h = ((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(h >> 20) & (map->cap - 1);
    while (map->key[i] && map->key[i] != key)
        i = (i + 1) & (map->cap - 1);
    return i;
}

static Z3_ast map_get(const TermMap *map, const void *key)
{
    if (!map->cap)
        return NULL;
    size_t i = map_place(map, key);
    return map->key[i] ? map->term[i] : NULL;
}

/* Keeps a term under key and answers it. */
static Z3_ast map_put(Question *q, const void *key, Z3_ast term)
{
    TermMap *map = &q->terms;
    if (2 * (map->len + 1) > map->cap) {
        TermMap old = *map;
        map->cap = old.cap ? 2 * old.cap : 64;
        map->key = ARENA_ARRAY(q->arena, const void *, map->cap);
        map->term = ARENA_ARRAY(q->arena, Z3_ast, map->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.key[i]) {
                size_t place = map_place(map, old.key[i]);
                map->key[place] = old.key[i];
                map->term[place] = old.term[i];
            }
    }
    size_t i = map_place(map, key);
    map->len += !map->key[i];
    map->key[i] = key;
    map->term[i] = term;
    return term;
}

static Z3_ast int_term(Question *q, int64_t v)
{
    return Z3_mk_int64(q->smt->z3, v, q->smt->int_sort);
}

/* The integer constant of a free atom, with a name to read. */
static Z3_ast free_term(Question *q, const Atom *atom)
{
    const char *base = "stride";
    if (atom->kind == ATOM_var)
        base = var_get(q->facts->exprs, atom->var)->name;
    else if (atom->opaque == OPAQUE_config)
        base = atom->name;
    const char *name = arena_printf(q->arena, "%s!%u", base, atom->order);
    Z3_symbol symbol = Z3_mk_string_symbol(q->smt->z3, name);
    VEC_PUSH(q->arena, &q->free, atom);
    return Z3_mk_const(q->smt->z3, symbol, q->smt->int_sort);
}

static Z3_ast affine_term(Question *q, const Affine *a);

static Z3_ast atom_term(Question *q, const Atom *atom)
{
    Z3_context z3 = q->smt->z3;
    Z3_ast term = map_get(&q->terms, atom), part[2];
    if (term)
        return term;
    if (atom->kind == ATOM_floordiv || atom->kind == ATOM_mod) {
        part[0] = affine_term(q, atom->arg);
        part[1] = int_term(q, atom->divisor);
        term = atom->kind == ATOM_mod ? Z3_mk_mod(z3, part[0], part[1])
                                      : Z3_mk_div(z3, part[0], part[1]);
    } else if (atom->kind == ATOM_opaque && atom->opaque == OPAQUE_product) {
        part[0] = affine_term(q, atom->lhs);
        part[1] = affine_term(q, atom->rhs);
        term = Z3_mk_mul(z3, 2, part);
    } else {
        term = free_term(q, atom);
    }
    return map_put(q, atom, term);
}

static Z3_ast affine_term(Question *q, const Affine *a)
{
    Z3_context z3 = q->smt->z3;
    Z3_ast known = map_get(&q->terms, a);
    if (known)
        return known;
    Z3_ast *sum = ARENA_ARRAY(q->arena, Z3_ast, a->n_terms + 1);
    for (uint32_t i = 0; i < a->n_terms; i++) {
        Z3_ast part[2];
        sum[i] = atom_term(q, a->terms[i].atom);
        if (a->terms[i].coef == 1)
            continue;
        part[0] = int_term(q, a->terms[i].coef);
        part[1] = sum[i];
        sum[i] = Z3_mk_mul(z3, 2, part);
    }
    unsigned n = a->n_terms;
    if (a->constant || n == 0)
        sum[n++] = int_term(q, a->constant);
    return map_put(q, a, n == 1 ? sum[0] : Z3_mk_add(z3, n, sum));
}

static Z3_ast cond_term(Question *q, const Cond *c)
{
    Z3_context z3 = q->smt->z3;
    Z3_ast term = map_get(&q->terms, c), part[2];
    if (term)
        return term;
    switch (c->kind) {
    case COND_ge0:
        part[0] = affine_term(q, c->expr);
        part[1] = int_term(q, 0);
        term = Z3_mk_ge(z3, part[0], part[1]);
        break;
    case COND_eq0:
        part[0] = affine_term(q, c->expr);
        part[1] = int_term(q, 0);
        term = Z3_mk_eq(z3, part[0], part[1]);
        break;
    case COND_and:
    case COND_or:
        part[0] = cond_term(q, c->lhs);
        part[1] = cond_term(q, c->rhs);
        term = c->kind == COND_and ? Z3_mk_and(z3, 2, part)
                                   : Z3_mk_or(z3, 2, part);
        break;
    case COND_not:
        part[0] = cond_term(q, c->lhs);
        term = Z3_mk_not(z3, part[0]);
        break;
    default:
        term = c->kind == COND_true ? Z3_mk_true(z3) : Z3_mk_false(z3);
    }
    return map_put(q, c, term);
}

/* ---- questions ----------------------------------------------------------- */

static Proof unknown(const Question *q, const char *why)
{
    return (Proof){ .answer = PROVE_unknown,
                    .reason = arena_printf(q->facts->arena, "Z3: %s", why) };
}

static int by_order(const void *a, const void *b)
{
    const AtomValue *l = a, *r = b;
    return (l->atom->order > r->atom->order) -
           (l->atom->order < r->atom->order);
}

/* The model's values, once they were seen to meet every condition. */
static Proof model_proof(Question *q, Z3_model model)
{
    Z3_context z3 = q->smt->z3;
    size_t n = q->free.len;
    AtomValue *list = ARENA_ARRAY(q->facts->arena, AtomValue, n);
    for (size_t i = 0; i < n; i++) {
        Z3_ast value = NULL, term = atom_term(q, q->free.data[i]);
        list[i].atom = q->free.data[i];
        if (!Z3_model_eval(z3, model, term, true, &value) ||
            !Z3_get_numeral_int64(z3, value, &list[i].value))
            return unknown(q, "the model does not fit in 64 bits");
    }
    qsort(list, n, sizeof *list, by_order);
    Proof p = { .answer = PROVE_yes, .n_values = (unsigned)n, .values = list };
    Env env = proof_env(&p);
    for (size_t i = 0; i < q->conds.len; i++) {
        bool holds = false;
        if (!cond_eval(q->conds.data[i], &env, &holds))
            return unknown(q, "the model overflows 64 bits");
        if (!holds)
            return unknown(q, "the model does not meet the conditions");
    }
    return p;
}

/* The resources that the last question took. Z3 counts them for the whole
 * context, in 32 bits. */
unsigned smt_count_resources(Smt *smt, Z3_solver solver)
{
    Z3_stats stats = Z3_solver_get_statistics(smt->z3, solver);
    unsigned count = smt->counted;
    if (!stats)
        return 0;
    Z3_stats_inc_ref(smt->z3, stats);
    for (unsigned i = 0; i < Z3_stats_size(smt->z3, stats); i++)
        if (Z3_stats_is_uint(smt->z3, stats, i) &&
            strcmp(Z3_stats_get_key(smt->z3, stats, i), "rlimit count") == 0)
            count = Z3_stats_get_uint_value(smt->z3, stats, i);
    Z3_stats_dec_ref(smt->z3, stats);
    unsigned spent = count - smt->counted;
    smt->counted = count;
    smt->stats.rlimit += spent;
    return spent;
}

/* The older of Z3's arithmetic solvers (2): the newer one (6, the default of
 * 4.8.12) has loops on products that do not count resources. */
void smt_set_parameters(Smt *smt, Z3_solver solver)
{
    Z3_params params = Z3_mk_params(smt->z3);
    Z3_params_inc_ref(smt->z3, params);
    Z3_params_set_uint(smt->z3, params,
                       Z3_mk_string_symbol(smt->z3, "arith.solver"), 2);
    Z3_params_set_uint(smt->z3, params, Z3_mk_string_symbol(smt->z3, "rlimit"),
                       smt->rlimit);
    Z3_solver_set_params(smt->z3, solver, params);
    Z3_params_dec_ref(smt->z3, params);
}

/* spent: what it took. */
static Proof solver_answer(Question *q, Z3_solver solver, bool complete,
                           unsigned *spent)
{
    Smt *smt = q->smt;
    Z3_lbool found = Z3_solver_check(smt->z3, solver);
    if (Z3_get_error_code(smt->z3) != Z3_OK)
        found = Z3_L_UNDEF;
    Proof p = { .answer = PROVE_no };
    *spent = smt_count_resources(smt, solver);
    if (found == Z3_L_TRUE) {
        smt->stats.sat++;
        if (!complete)
            return unknown(q, "not all that holds here could be written down");
        Z3_model model = Z3_solver_get_model(smt->z3, solver);
        if (!model)
            return unknown(q, "no model");
        Z3_model_inc_ref(smt->z3, model);
        p = model_proof(q, model);
        Z3_model_dec_ref(smt->z3, model);
    } else if (found == Z3_L_UNDEF) {
        const char *why = Z3_solver_get_reason_unknown(smt->z3, solver);
        bool limited = *spent >= smt->rlimit;
        smt->stats.unknown++;
        smt->stats.limited += limited;
        return unknown(q, limited ? "out of resources"
                                  : (why && *why ? why : "no answer"));
    } else {
        smt->stats.unsat++;
    }
    return p;
}

static Proof smt_satisfiable(Prover *self, const Facts *f, const Cond *c)
{
    Smt *smt = (Smt *)self;
    Question q = { .smt = smt, .facts = f, .arena = arena_new() };
    Facts scratch = *f;
    scratch.arena = q.arena;
    bool complete = facts_closure(&scratch, c, &q.conds);
    smt->stats.queries++;
    Z3_solver solver = Z3_mk_simple_solver(smt->z3);
    Z3_solver_inc_ref(smt->z3, solver);
    smt_set_parameters(smt, solver);
    for (size_t i = 0; i < q.conds.len; i++)
        Z3_solver_assert(smt->z3, solver, cond_term(&q, q.conds.data[i]));
    unsigned spent;
    Proof p = solver_answer(&q, solver, complete, &spent);
    p.effort = spent;
    Z3_solver_dec_ref(smt->z3, solver);
    arena_free(q.arena);
    return p;
}
