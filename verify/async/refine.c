/* What a synchronous op writes is gathered by lane until the op is over and its
 * origin is evaluated; an effect remembers the instances of the lanes that
 * started it, and what it writes later counts for them. */
#include "verify/async/refine.h"

#include "verify/async/key_table.h"
#include "verify/async/program.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 32 };

/* Instances of the lanes that started an effect. */
typedef struct Owner {
    uint32_t first;  /* of the lowest lane */
    uint32_t *lanes; /* of all, where there are several; else NULL */
} Owner;

/* What the op that a warp is executing did. */
typedef struct Pending {
    const Op *op;
    uint32_t lanes;  /* that wrote */
    uint64_t effect; /* that it started, or 0 */
    Digest by[LANES];
    LooseSums loose[LANES];
} Pending;

struct Refine {
    Program program;
    bool any;          /* an op was for an instance */
    KeyTable executed; /* lanes, by what is behind an instance's first */
    int64_t launch;    /* launches that began */
    int64_t block_dim;
    VEC(Owner) owners; /* by effect */
    Pending pending;
    const Op *unclaimed;       /* wrote memory for no statement */
    VEC(const Tensor *) added; /* tensors that bulk copies add to */
    RefineResult result;
};

Refine *refine_new(Arena *arena, Ctx *ctx, Module *m, const Op *proc,
                   struct Turns *turns)
{
    Refine *r = ARENA_NEW(arena, Refine);
    program_init(&r->program, arena, ctx, m, proc, turns);
    return r;
}

void refine_program(Refine *r, const ProcArg *args, unsigned n)
{
    program_run(&r->program, args, n);
    r->result.open = r->program.open;
    r->result.value_open = r->program.value_open;
    r->result.value_bad |= r->program.wrong;
}

void refine_free(Refine *r)
{
    program_free(&r->program);
}

/* ---- faults -------------------------------------------------------------- */

/* What a report rests on may be wrong itself. */
static void note_hints(Ctx *ctx, Diag *d, Loc loc)
{
    diag_note(ctx, d, loc,
              "which op is for which instance is what the origins say: where "
              "one is wrong, and the op right, correct the origin; without any "
              "in the text the results alone are compared");
}

static void fault(Refine *r, Loc loc, const char *code, const char *what,
                  const Op *stmt, const int64_t *iters, unsigned n)
{
    Ctx *ctx = r->program.ctx;
    StrBuf at = { 0 };
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(&at, "%s%lld", i ? ", " : "", (long long)iters[i]);
    Diag *d =
        diag_error(ctx, loc, code, "%s: the instance (%s) of a statement %s",
                   code, strbuf_text(&at), what);
    if (stmt)
        diag_note(ctx, d, stmt->loc, "the statement is here");
    note_hints(ctx, d, loc);
    strbuf_free(&at);
}

static void fault_cover(Refine *r, Loc loc, const char *what, const Op *stmt,
                        const int64_t *iters, unsigned n)
{
    if (!r->result.cover_bad)
        fault(r, loc, "X-COVER", what, stmt, iters, n);
    r->result.cover_bad = true;
}

/* ---- the lowered program's run ------------------------------------------- */

/* Ops that carry out a statement, not those that only prepare it. */
static bool carries_out(const Op *op)
{
    switch (op->code) {
    case OP_mem_store:
    case OP_mem_reduce:
    case OP_async_instr:
    case OP_async_tile_store:
    case OP_async_bulk_tensor_load:
    case OP_async_bulk_copy:
    case OP_async_bulk_tensor_store:
    case OP_async_bulk_tensor_reduce:
    case OP_async_mbarrier_arrive:
    case OP_async_mbarrier_wait:
    case OP_async_cp_async_mbarrier_arrive:
    case OP_async_cp_async_commit_group:
    case OP_async_cp_async_wait_group:
    case OP_async_bulk_commit_group:
    case OP_async_bulk_wait_group:
    case OP_async_wgmma_commit_group:
    case OP_async_wgmma_wait_group:
    case OP_async_barrier_cluster_arrive:
    case OP_async_barrier_cluster_wait:
        return true;
    default:
        return false;
    }
}

static bool allows_all(Refine *r, const MachineEvent *e, uint32_t lanes,
                       const int64_t *iters, unsigned n)
{
    int64_t first = e->agent.cta * r->block_dim + LANES * e->agent.warp;
    for (uint32_t left = lanes; left; left &= left - 1)
        if (!program_allows(&r->program, e->op->origin.sid,
                            first + __builtin_ctz(left), iters, n))
            return false;
    return true;
}

/* The lanes of the warp that executed its op for the instance: most have one
 * warp and op alone. */
static uint32_t *executed_lanes(Refine *r, uint32_t number,
                                const MachineEvent *e)
{
    const MachineAgent *a = &e->agent;
    Executed *first = &program_at(&r->program, number)->first;
    bool fresh;
    if (!first->op)
        *first = (Executed){ e->op, a->cta, a->warp, 0 };
    if (first->op == e->op && first->cta == a->cta && first->warp == a->warp)
        return &first->lanes;
    uint64_t key = hash_word(HASH_SEED, number);
    key = hash_word(key, (uint64_t)(uintptr_t)e->op);
    key = hash_word(key, (uint64_t)a->cta << 32 | a->warp);
    return key_table_at(r->program.arena, &r->executed, key ? key : 1, &fresh);
}

/* The instance that these lanes execute op for, or NO_INSTANCE. */
static uint32_t take(Refine *r, const MachineEvent *e, uint32_t lanes,
                     const int64_t *iters, unsigned n)
{
    Program *p = &r->program;
    uint32_t sid = e->op->origin.sid;
    uint32_t at = program_instance(p, r->launch - 1, sid, iters, n);
    const Op *stmt = p->stmts[sid].op;
    if (at == NO_INSTANCE) {
        fault_cover(r, e->op->loc, "is executed, but the program has none",
                    stmt, iters, n);
        return NO_INSTANCE;
    }
    program_at(p, at)->by = e->op;
    r->any = true;
    if (!allows_all(r, e, lanes, iters, n))
        fault_cover(r, e->op->loc,
                    "is executed by a thread that the loops over threads "
                    "around it do not give it to",
                    stmt, iters, n);
    uint32_t *mask = executed_lanes(r, at, e);
    if (*mask & lanes)
        fault_cover(r, e->op->loc, "is executed twice by one thread", stmt,
                    iters, n);
    *mask |= lanes;
    return at;
}

static void own_effect(Refine *r, const uint32_t *instance, uint32_t lanes)
{
    Owner o = { .first = instance[__builtin_ctz(lanes)] };
    if (lanes & (lanes - 1))
        o.lanes =
            arena_memdup(r->program.arena, instance, LANES * sizeof *instance);
    while (r->owners.len < r->pending.effect)
        VEC_PUSH(r->program.arena, &r->owners, (Owner){ .first = NO_INSTANCE });
    r->owners.data[r->pending.effect - 1] = o;
}

/* Of lanes, the first and those behind it that have its iterators, up to one
 * that has others. */
static uint32_t same_iters(uint32_t lanes, int64_t iters[][MAX_ITERS],
                           unsigned n)
{
    const int64_t *first = iters[__builtin_ctz(lanes)];
    uint32_t left = lanes;
    while (left &&
           !memcmp(iters[__builtin_ctz(left)], first, n * sizeof *first))
        left &= left - 1;
    return lanes & ~left;
}

/* The i-th iterator of each lane that takes part. */
static bool eval_lanes(const MachineEvent *e, const Affine *iter, unsigned i,
                       int64_t iters[][MAX_ITERS])
{
    bool varies = machine_varies(e, iter);
    int64_t x = 0;
    for (uint32_t left = e->agent.lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if ((varies || left == e->agent.lanes) && !machine_eval(e, iter, l, &x))
            return false;
        iters[l][i] = x;
    }
    return true;
}

/* The instance of each lane, NO_INSTANCE for lanes that do not take part. False
 * when the origin has no value. */
static bool find_instances(Refine *r, const MachineEvent *e, uint32_t *instance)
{
    const Origin *o = &e->op->origin;
    int64_t iters[LANES][MAX_ITERS];
    for (unsigned l = 0; l < LANES; l++)
        instance[l] = NO_INSTANCE;
    for (unsigned i = 0; i < o->n; i++)
        if (!eval_lanes(e, o->iters[i], i, iters))
            return false;
    for (uint32_t left = e->agent.lanes, same; left; left &= ~same) {
        unsigned first = (unsigned)__builtin_ctz(left);
        same = same_iters(left, iters, o->n);
        uint32_t at = take(r, e, same, iters[first], o->n);
        for (uint32_t l = same; l; l &= l - 1)
            instance[__builtin_ctz(l)] = at;
    }
    return true;
}

static void pending_begin(Pending *p, const Op *op)
{
    p->op = op;
    p->lanes = 0;
    p->effect = 0;
}

/* What the lane writes by the op. */
static Digest *pending_digest(Refine *r, Pending *p, unsigned lane)
{
    if (!(p->lanes >> lane & 1)) {
        p->loose[lane] = (LooseSums){ 0 };
        p->by[lane] =
            (Digest){ .loose = r->program.reorders ? &p->loose[lane] : NULL };
    }
    p->lanes |= 1u << lane;
    return &p->by[lane];
}

/* An op with an origin is over: what it did is for these instances. */
static void op_event(Refine *r, const MachineEvent *e)
{
    const Origin *o = &e->op->origin;
    Pending *p = &r->pending;
    uint32_t instance[LANES];
    if (!program_stmt(&r->program, o->sid) || !carries_out(e->op) ||
        o->n > MAX_ITERS || !find_instances(r, e, instance) || p->op != e->op)
        return;
    for (uint32_t left = p->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (instance[l] != NO_INSTANCE)
            digest_join(&program_at(&r->program, instance[l])->does, &p->by[l]);
    }
    if (p->effect)
        own_effect(r, instance, e->agent.lanes);
    pending_begin(p, NULL);
}

/* The op that is executed now; what one before left belongs to nobody. */
static Pending *pending_of(Refine *r, const MachineEvent *e)
{
    Pending *p = &r->pending;
    if (p->op == e->op)
        return p;
    if (p->lanes)
        r->unclaimed = p->op;
    pending_begin(p, e->op);
    return p;
}

static bool is_added(const Refine *r, const Tensor *t)
{
    for (size_t i = 0; i < r->added.len; i++)
        if (r->added.data[i] == t)
            return true;
    return false;
}

static Digest *digest_of(Refine *r, const MachineEvent *e)
{
    unsigned lane = (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31);
    if (!e->effect)
        return pending_digest(r, pending_of(r, e), lane);
    const Owner *o =
        e->effect <= r->owners.len ? &r->owners.data[e->effect - 1] : NULL;
    uint32_t i = !o ? NO_INSTANCE : o->lanes ? o->lanes[lane] : o->first;
    if (i == NO_INSTANCE)
        r->unclaimed = e->op;
    return i == NO_INSTANCE ? NULL : &program_at(&r->program, i)->does;
}

static void write_event(Refine *r, const MachineEvent *e)
{
    bool adds =
        e->op->code == OP_async_bulk_tensor_reduce || op_is_atomic(e->op);
    int64_t size = e->tensor ? 1 : scalar_info(e->elem)->bytes;
    int64_t place = e->tensor ? e->offset : -1;
    Digest *d = digest_of(r, e);
    if (adds && e->tensor && !is_added(r, e->tensor))
        VEC_PUSH(r->program.arena, &r->added, e->tensor);
    if (d && !e->n_spans)
        digest_add(d, e->elem, adds ? NULL : e->bytes, e->length / size, place);
    for (size_t i = 0; d && i < e->n_spans; i++) {
        const MachineSpan *s = &e->spans[i];
        digest_add(d, e->elem, adds ? NULL : e->bytes + s->offset,
                   s->length / size, place);
    }
}

uint32_t refine_wants(void)
{
    return 1u << MEV_launch | 1u << MEV_op | 1u << MEV_write | 1u << MEV_issue;
}

void refine_event(Refine *r, const MachineEvent *e)
{
    if (e->kind == MEV_launch) {
        r->launch++;
        r->owners.len = 0;
        r->block_dim = op_attr_int(e->op, "blockDim", 0);
    }
    if (r->result.open || r->result.cover_bad)
        return;
    if (e->kind == MEV_op)
        op_event(r, e);
    else if (e->kind == MEV_write)
        write_event(r, e);
    else if (e->kind == MEV_issue)
        pending_of(r, e)->effect = e->effect;
}

/* ---- the end ------------------------------------------------------------- */

static void end_instances(Refine *r)
{
    if (!r->any && r->program.n_instances)
        r->result.open = "no op of the lowered program names its statement";
    for (uint32_t i = 0;
         i < r->program.n_instances && !r->result.open && !r->result.cover_bad;
         i++) {
        const Instance *x = program_at(&r->program, i);
        int64_t iters[MAX_ITERS];
        if (!x->by)
            fault_cover(r, r->program.stmts[x->sid].op->loc,
                        "is not carried out by the lowered program", NULL,
                        iters, program_iters(&r->program, i, iters));
    }
    if (r->unclaimed && !r->result.open && !r->result.cover_bad) {
        r->result.cover_bad = true;
        Loc loc = r->unclaimed->loc;
        note_hints(r->program.ctx,
                   diag_error(r->program.ctx, loc, "X-COVER",
                              "X-COVER: this op writes memory for no statement "
                              "of the program"),
                   loc);
    }
}

static void end_writes(Refine *r)
{
    for (uint32_t i = 0; i < r->program.n_instances; i++) {
        const Instance *x = program_at(&r->program, i);
        const Op *stmt = r->program.stmts[x->sid].op;
        int64_t iters[MAX_ITERS];
        char what[160];
        if (r->program.stmts[x->sid].partial || digest_same(&x->says, &x->does))
            continue;
        if (x->says.n == x->does.n)
            snprintf(what, sizeof what,
                     "writes other values, or elsewhere, than the program");
        else
            snprintf(what, sizeof what,
                     "writes %lld elements, but %lld in the program",
                     (long long)x->does.n, (long long)x->says.n);
        fault(r, x->by->loc, "X-VALUE", what, stmt, iters,
              program_iters(&r->program, i, iters));
        r->result.value_bad = true;
        return;
    }
}

static void end_results(Refine *r, const ProcArg *args, unsigned n, Loc host)
{
    for (unsigned i = 0; i < n && !r->result.value_bad; i++) {
        const Tensor *t = args[i].tensor;
        int64_t at = t ? values_differ(t, r->program.results[i],
                                       r->program.reorders || is_added(r, t))
                       : -1;
        if (at < 0)
            continue;
        StrBuf name = { 0 };
        tensor_print_element(&name, t, at);
        diag_error(r->program.ctx, host, "X-VALUE",
                   "X-VALUE: %s ends as %.9g, and in the program as %.9g",
                   strbuf_text(&name), tensor_get(t, at),
                   tensor_get(r->program.results[i], at));
        strbuf_free(&name);
        r->result.value_bad = true;
    }
}

void refine_end(Refine *r, const ProcArg *args, unsigned n, Loc host)
{
    end_instances(r);
    if (!r->result.open && !r->result.cover_bad)
        end_writes(r);
    if (!r->result.value_open)
        end_results(r, args, n, host);
}

RefineResult refine_result(const Refine *r)
{
    return r->result;
}
