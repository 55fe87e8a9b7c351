/* How each barrier is used over the whole procedure: it has an Arrive and an
 * Await, all Arrives agree, all Awaits agree (docs/checks.md,
 * "Barriers"). */
#include "verify/check_par_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct BarrierUse {
    const Op *arrive, *await; /* the first of each */
} BarrierUse;

typedef struct Uses {
    ParCheck *c;
    PtrMap map; /* Value -> BarrierUse */
} Uses;

static BarrierUse *use_of(Uses *u, const Value *v)
{
    BarrierUse *b = ptr_map_get(&u->map, v);
    if (!b) {
        b = ARENA_NEW(u->c->m->arena, BarrierUse);
        ptr_map_put(u->c->m->arena, &u->map, v, b);
    }
    return b;
}

static void report_pair(ParCheck *c, const Op *op, const Op *first,
                        const char *text)
{
    Diag *d = pc_error(c, op, "barrier", "%s", text);
    diag_note(c->ctx, d, first->loc, "the first is here");
}

/* ---- agreement ---------------------------------------------------------- */

static void check_same_timeline(ParCheck *c, const Op *op, const Op *first,
                                const char *key, const char *what,
                                const Value *v)
{
    const char *a = op_attr_str(op, key, "");
    const char *b = op_attr_str(first, key, "");
    if (strcmp(a, b) != 0)
        report_pair(c, op, first,
                    arena_printf(c->m->arena,
                                 "incompatible sync-tl: %s(%s) "
                                 "on %s, previous %s has %s",
                                 what, a, par_text_value(v), what, b));
}

static int compare_masks(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Per barrier expression the dimensions that are intervals, sorted, each once:
 * which barriers are reached, whatever the order of writing. */
static unsigned multicast_pattern(ParCheck *c, const Op *op, uint64_t **out)
{
    uint64_t *masks = ARENA_ARRAY(c->m->arena, uint64_t, op->n_operands);
    for (unsigned k = 0; k < op->n_operands; k++) {
        const Access *a = op->operands[k].u.access;
        for (unsigned i = 0; i < a->rank && i < 64; i++)
            masks[k] |= (uint64_t)(a->dims[i].kind == DIM_interval) << i;
    }
    qsort(masks, op->n_operands, sizeof *masks, compare_masks);
    unsigned n = 0;
    for (unsigned k = 0; k < op->n_operands; k++)
        if (!n || masks[n - 1] != masks[k])
            masks[n++] = masks[k];
    *out = masks;
    return n;
}

static void check_same_multicast(ParCheck *c, const Op *op, const Op *first,
                                 const Value *v)
{
    uint64_t *a, *b;
    unsigned n = multicast_pattern(c, op, &a);
    if (n != multicast_pattern(c, first, &b) ||
        memcmp(a, b, n * sizeof *a) != 0)
        report_pair(
            c, op, first,
            arena_printf(c->m->arena,
                         "incompatible multicasts on %s: "
                         "%s here and %s at the first Arrive",
                         par_text_value(v),
                         par_text_access(c->m, op->operands[0].u.access),
                         par_text_access(c->m, first->operands[0].u.access)));
}

/* ---- one statement ------------------------------------------------------ */

static bool names_barriers(ParCheck *c, const Op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i].kind != OPND_access ||
            op->operands[i].u.access->base->type->kind != TK_barrier) {
            pc_error(c, op, "barrier", "%s requires barrier type",
                     op->code == OP_par_arrive ? "Arrive" : "Await");
            return false;
        }
    return op->n_operands > 0;
}

static void see_arrive(Uses *u, const Op *op)
{
    if (!names_barriers(u->c, op))
        return;
    const Value *v = op->operands[0].u.access->base;
    BarrierUse *b = use_of(u, v);
    if (op_attr_int(op, "n", 1) != 1)
        pc_error(u->c, op, "barrier",
                 "Arrive on %s: Need N = 1 (N=1), found "
                 "%lld",
                 par_text_value(v), (long long)op_attr_int(op, "n", 1));
    if (!b->arrive) {
        b->arrive = op;
        return;
    }
    check_same_timeline(u->c, op, b->arrive, "first", "Arrive", v);
    check_same_multicast(u->c, op, b->arrive, v);
}

static void check_await_n(ParCheck *c, const Op *op, const Value *v)
{
    const Mem *mem = pc_mem(c, (Value *)v);
    int64_t n = op_attr_int(op, "n", 0);
    if (!mem)
        return;
    bool once =
        mem->barrier == BARRIER_mbarrier || mem->barrier == BARRIER_cluster;
    if (once ? n == 0 : n >= 0)
        return;
    pc_error(c, op, "barrier", "Await of %s: %s requires N %s 0, found %s%lld",
             par_text_value(v), par_text_mem(c->m, mem->ref),
             once ? "=" : ">=", n < 0 ? "~" : "", (long long)(n < 0 ? ~n : n));
}

static void see_await(Uses *u, const Op *op)
{
    if (!names_barriers(u->c, op))
        return;
    const Value *v = op->operands[0].u.access->base;
    BarrierUse *b = use_of(u, v);
    check_await_n(u->c, op, v);
    if (b->await)
        check_same_timeline(u->c, op, b->await, "second", "Await", v);
    else
        b->await = op;
}

/* An element that the barrier does not have, for certain. Where that depends on
 * sizes, sync-check says it at some. */
static void check_bounds(ParCheck *c, Op *op, const Access *a)
{
    Facts *f = prove_facts_at(c->m->arena, c->m, op);
    const Affine *one = affine_const(c->m->exprs, 1);
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        Proof p = prove_within(prover_layer1(c->m->arena), f, d->lo,
                               d->kind == DIM_point ? one : d->len,
                               a->base->shape[i]);
        if (p.answer != PROVE_no)
            continue;
        Diag *e = pc_error(c, op, "bounds",
                           "%s is out of bounds: idx[%u] must be within 0 and "
                           "%s",
                           par_text_access(c->m, a), i,
                           par_text_affine(c->m, a->base->shape[i]));
        const char *witness = par_text_proof(c->m, &p);
        if (*witness)
            diag_witness(c->ctx, e, "%s", witness);
    }
}

static bool see_op(Op *op, void *user)
{
    Uses *u = user;
    if (op->code == OP_par_arrive)
        see_arrive(u, op);
    else if (op->code == OP_par_await)
        see_await(u, op);
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i].kind == OPND_access &&
            op->operands[i].u.access->base->type->kind == TK_barrier)
            check_bounds(u->c, op, op->operands[i].u.access);
    return true;
}

/* ---- completeness ------------------------------------------------------- */

static bool check_complete(Op *op, void *user)
{
    Uses *u = user;
    if (op->code != OP_mem_alloc || op->results[0]->type->kind != TK_barrier)
        return true;
    const Value *v = op->results[0];
    BarrierUse *b = use_of(u, v);
    if (b->arrive && b->await)
        return true;
    Diag *d = pc_error(u->c, op, "barrier", "barrier %s: missing %s%s%s",
                       par_text_value(v), b->arrive ? "" : "Arrive(...)",
                       b->arrive || b->await ? "" : ", missing ",
                       b->await ? "" : "Await(...)");
    diag_fix(u->c->ctx, d, "add it, or delete the barrier");
    return true;
}

void check_par_barriers(ParCheck *c)
{
    Uses u = { .c = c };
    op_walk(c->proc, see_op, &u);
    op_walk(c->proc, check_complete, &u);
}
