/* Instances are kept as hashes of (launch, statement, iterators) in
 * open-addressed tables. What a synchronous op writes is gathered by lane until
 * the op is over and its origin is evaluated; an effect remembers the instances
 * of the lanes that started it, and what it writes later counts for them. */
#include "verify/async/refine.h"

#include "ir/lib.h"
#include "verify/async/values.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ITERS = 16, MAX_INSTANCES = 4000000, LANES = 32 };
#define NO_INSTANCE UINT32_MAX

typedef struct Instance {
    uint32_t sid, n;
    int64_t iters[MAX_ITERS];
    bool done;
    bool partial; /* the statement may write a part of what it names */
    Digest says, does; /* what is written by the program, and by the run */
    const Op *by;
} Instance;

typedef struct Table {
    uint64_t *keys; /* 0: free */
    uint32_t *at;   /* of its instance */
    size_t n, cap;
} Table;

/* A statement that is looked at. */
typedef struct Stmt {
    const Op *op;       /* NULL: it is not */
    VarId *vars;        /* iterators from its device function in */
    unsigned n, n_writes;
    OpAccess *writes;   /* of shared and global memory */
    bool partial;
} Stmt;

/* Instances of the lanes that started an effect. */
typedef struct Owner {
    uint32_t first;   /* of the lowest lane */
    uint32_t *lanes;  /* of all, where there are several; else NULL */
} Owner;

/* What the op that a warp is executing wrote, by lane. */
typedef struct Pending {
    const Op *op;
    uint32_t lanes;
    Digest by[LANES];
    uint64_t effect; /* that it started, or 0 */
} Pending;

struct Refine {
    Arena *arena;
    Ctx *ctx;
    Module *m;
    const Op *proc;
    VEC(Instance) instances;
    Table known, executed;
    Stmt *stmts; /* by sid */
    bool *watched;
    uint32_t n_sids;
    uint64_t launch; /* number of the device function, or launch */
    Tensor **results; /* the program's arguments after it ran */
    unsigned n_args;
    VEC(Owner) owners; /* by effect */
    Pending pending;
    const Op *unclaimed; /* wrote memory for no statement */
    const Tensor *added[8]; /* tensors that bulk copies add to */
    unsigned n_added;
    RefineResult result;
};

/* ---- tables -------------------------------------------------------------- */

static size_t slot_of(const Table *t, uint64_t key)
{
    size_t i = (size_t)key & (t->cap - 1);
    while (t->keys[i] && t->keys[i] != key)
        i = (i + 1) & (t->cap - 1);
    return i;
}

/* False when the key is there already. */
static bool table_add(Arena *arena, Table *t, uint64_t key, uint32_t at)
{
    if (2 * t->n >= t->cap) {
        Table old = *t;
        t->cap = old.cap ? 2 * old.cap : 1024;
        t->keys = ARENA_ARRAY(arena, uint64_t, t->cap);
        t->at = ARENA_ARRAY(arena, uint32_t, t->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.keys[i]) {
                size_t s = slot_of(t, old.keys[i]);
                t->keys[s] = old.keys[i];
                t->at[s] = old.at[i];
            }
    }
    size_t s = slot_of(t, key);
    if (t->keys[s])
        return false;
    t->keys[s] = key;
    t->at[s] = at;
    t->n++;
    return true;
}

static uint64_t key_of(uint64_t launch, uint32_t sid, const int64_t *iters,
                       unsigned n)
{
    uint64_t h = hash_u64(hash_u64(HASH_SEED, launch), sid);
    for (unsigned i = 0; i < n; i++)
        h = hash_u64(h, (uint64_t)iters[i]);
    return h ? h : 1;
}

/* ---- the statements ------------------------------------------------------ */

static bool in_memory(const Refine *r, const Value *v)
{
    const Value *root = value_root((Value *)v);
    const Mem *mem = r->m->lib && root->type->mem
                         ? lib_mem_find(r->m->lib, root->type->mem)
                         : NULL;
    return root->type->kind == TK_map || v->type->kind == TK_map ||
           (mem && (mem->family == MEMF_shared || mem->family == MEMF_global));
}

static bool find_if(Op *op, void *user)
{
    bool *found = user;
    *found = *found || op->code == OP_ctl_if;
    return !*found;
}

static bool is_partial(const Refine *r, const Op *op)
{
    const Instr *in = op->code == OP_par_instr ? op_instr(r->m, op) : NULL;
    bool found = false;
    if (in && in->body)
        op_walk((Op *)in->body, find_if, &found);
    return found;
}

static void find_writes(Refine *r, const Op *op, Stmt *s)
{
    OpAccessVec v = { 0 };
    op_accesses(r->m, op, r->arena, &v);
    s->writes = ARENA_ARRAY(r->arena, OpAccess, v.len);
    for (size_t i = 0; i < v.len; i++)
        if ((v.data[i].flags & (ACC_WRITE | ACC_REDUCE)) &&
            !(v.data[i].flags & ACC_SYNC) &&
            in_memory(r, v.data[i].access->base))
            s->writes[s->n_writes++] = v.data[i];
}

/* Marks the loops around op, and lists those inside its device function. */
static void find_loops(Refine *r, const Op *op, Stmt *s)
{
    bool inside = true;
    s->vars = ARENA_ARRAY(r->arena, VarId, MAX_ITERS);
    for (const Op *p = op_parent(op); p; p = op_parent(p)) {
        r->watched[p->sid] |= p->sid != 0;
        inside = inside && p->code != OP_par_device;
        if (!inside || p->code != OP_ctl_for)
            continue;
        if (s->n == MAX_ITERS) {
            r->result.open = "too many loops are nested";
            return;
        }
        memmove(s->vars + 1, s->vars, s->n++ * sizeof *s->vars);
        s->vars[0] = p->blocks[0]->args[0].var;
    }
}

static bool note_stmt(Op *op, void *user)
{
    Refine *r = user;
    Stmt s = { .op = op };
    if (!op->sid)
        return true;
    if (op->code == OP_mem_store || op->code == OP_mem_reduce ||
        op->code == OP_par_instr)
        find_writes(r, op, &s);
    if (!s.n_writes && op->code != OP_par_arrive && op->code != OP_par_await)
        return true;
    s.partial = is_partial(r, op);
    find_loops(r, op, &s);
    r->watched[op->sid] = true;
    r->stmts[op->sid] = s;
    return true;
}

static bool note_device(Op *op, void *user)
{
    if (op->code != OP_par_device)
        return true;
    op_walk(op, note_stmt, user);
    return false;
}

Refine *refine_new(Arena *arena, Ctx *ctx, Module *m, const Op *proc)
{
    Refine *r = ARENA_NEW(arena, Refine);
    *r = (Refine){ .arena = arena, .ctx = ctx, .m = m, .proc = proc };
    r->n_sids = m->next_sid + 1;
    r->stmts = ARENA_ARRAY(arena, Stmt, r->n_sids);
    r->watched = ARENA_ARRAY(arena, bool, r->n_sids);
    op_walk((Op *)proc, note_device, r);
    return r;
}

/* ---- the program's run --------------------------------------------------- */

/* Additions through a tensor map commute: their sums depend on the order. */
static bool counts_values(const OpAccess *a)
{
    return !(a->flags & ACC_REDUCE) || a->access->base->type->kind != TK_map;
}

static bool is_global(const Refine *r, const OpAccess *a)
{
    const Value *root = value_root(a->access->base);
    const Mem *mem = r->m->lib && root->type->mem
                         ? lib_mem_find(r->m->lib, root->type->mem)
                         : NULL;
    return a->access->base->type->kind == TK_map ||
           root->type->kind == TK_map || (mem && mem->family == MEMF_global);
}

static void add_instance(Refine *r, Interp *in, Scope *at, const Stmt *s)
{
    Instance x = { .sid = s->op->sid, .n = s->n, .partial = s->partial };
    if (r->instances.len == MAX_INSTANCES) {
        r->result.open = "the program has too many statement instances";
        return;
    }
    for (unsigned i = 0; i < s->n; i++)
        x.iters[i] = interp_var(at, s->vars[i]);
    for (unsigned i = 0; i < s->n_writes; i++) {
        const OpAccess *a = &s->writes[i];
        View v;
        if (interp_operand_view(in, at, s->op, a->operand, &v))
            digest_view(&x.says, &v, counts_values(a), is_global(r, a));
    }
    uint64_t key = key_of(r->launch, x.sid, x.iters, x.n);
    if (table_add(r->arena, &r->known, key, (uint32_t)r->instances.len))
        VEC_PUSH(r->arena, &r->instances, x);
}

static void watch(void *user, Interp *in, Scope *at, const Op *op)
{
    Refine *r = user;
    if (op->code == OP_par_device)
        r->launch++;
    else if (r->stmts[op->sid].op && !r->result.open)
        add_instance(r, in, at, &r->stmts[op->sid]);
}

void refine_program(Refine *r, const ProcArg *args, unsigned n)
{
    ProcArg *own = ARENA_ARRAY(r->arena, ProcArg, n + 1);
    InterpOptions o = { .watch = watch,
                        .watch_user = r,
                        .watched = r->watched };
    CtxMark mark = ctx_mark(r->ctx);
    Interp *in = interp_new(r->m);
    r->results = ARENA_ARRAY(r->arena, Tensor *, n + 1);
    r->n_args = n;
    for (unsigned i = 0; i < n; i++) {
        own[i] = args[i];
        if (args[i].tensor)
            own[i].tensor = r->results[i] = tensor_copy(args[i].tensor);
    }
    if (!interp_run(in, r->proc, own, n, &o))
        r->result.open = r->result.value_open =
            "the program itself does not run at these sizes";
    interp_free(in);
    ctx_rollback(r->ctx, mark);
    r->launch = 0;
}

void refine_free(Refine *r)
{
    for (unsigned i = 0; i < r->n_args; i++)
        tensor_free(r->results[i]);
}

/* ---- faults -------------------------------------------------------------- */

static void fault(Refine *r, Loc loc, const char *code, const char *what,
                  const Op *stmt, const int64_t *iters, unsigned n)
{
    StrBuf at = { 0 };
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(&at, "%s%lld", i ? ", " : "", (long long)iters[i]);
    Diag *d = diag_error(r->ctx, loc, code,
                         "%s: the instance (%s) of a statement %s", code,
                         strbuf_text(&at), what);
    if (stmt)
        diag_note(r->ctx, d, stmt->loc, "the statement is here");
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

/* The instance that a lane executes op for, or NO_INSTANCE. */
static uint32_t take(Refine *r, const MachineEvent *e, unsigned lane,
                     const int64_t *iters, unsigned n)
{
    const Op *stmt = r->stmts[e->op->origin.sid].op;
    uint64_t key = key_of(r->launch - 1, e->op->origin.sid, iters, n);
    size_t s = r->known.cap ? slot_of(&r->known, key) : 0;
    if (!r->known.cap || !r->known.keys[s]) {
        fault_cover(r, e->op->loc, "is executed, but the program has none",
                    stmt, iters, n);
        return NO_INSTANCE;
    }
    Instance *x = &r->instances.data[r->known.at[s]];
    x->done = true;
    x->by = e->op;
    uint64_t again = hash_u64(key, (uint64_t)(uintptr_t)e->op);
    again = hash_u64(again, (uint64_t)e->agent.cta << 32 |
                                (uint64_t)e->agent.warp << 8 | lane);
    if (!table_add(r->arena, &r->executed, again ? again : 1, 0))
        fault_cover(r, e->op->loc, "is executed twice by one thread", stmt,
                    iters, n);
    return r->known.at[s];
}

static void own_effect(Refine *r, const uint32_t *instance, uint32_t lanes)
{
    Owner o = { .first = instance[__builtin_ctz(lanes)] };
    if (lanes & (lanes - 1))
        o.lanes = arena_memdup(r->arena, instance, LANES * sizeof *instance);
    while (r->owners.len < r->pending.effect)
        VEC_PUSH(r->arena, &r->owners, (Owner){ .first = NO_INSTANCE });
    r->owners.data[r->pending.effect - 1] = o;
}

/* An op with an origin is over: what it did is for these instances. */
static void op_event(Refine *r, const MachineEvent *e)
{
    const Origin *o = &e->op->origin;
    Pending *p = &r->pending;
    uint32_t instance[LANES];
    int64_t iters[MAX_ITERS];
    if (o->sid >= r->n_sids || !r->stmts[o->sid].op || !carries_out(e->op) ||
        o->n > MAX_ITERS)
        return;
    for (unsigned l = 0; l < LANES; l++) {
        instance[l] = NO_INSTANCE;
        if (!(e->agent.lanes >> l & 1))
            continue;
        for (unsigned i = 0; i < o->n; i++)
            if (!machine_eval(e, o->iters[i], l, &iters[i]))
                return;
        instance[l] = take(r, e, l, iters, o->n);
    }
    if (p->op != e->op)
        return;
    for (unsigned l = 0; l < LANES; l++)
        if (p->lanes >> l & 1 && instance[l] != NO_INSTANCE)
            digest_join(&r->instances.data[instance[l]].does, &p->by[l]);
    if (p->effect)
        own_effect(r, instance, e->agent.lanes);
    *p = (Pending){ 0 };
}

/* The op that is executed now; what one before left belongs to nobody. */
static Pending *pending_of(Refine *r, const MachineEvent *e)
{
    Pending *p = &r->pending;
    if (p->op == e->op)
        return p;
    if (p->lanes)
        r->unclaimed = p->op;
    *p = (Pending){ .op = e->op };
    return p;
}

static void note_added(Refine *r, const Tensor *t)
{
    for (unsigned i = 0; i < r->n_added; i++)
        if (r->added[i] == t)
            return;
    if (r->n_added < sizeof r->added / sizeof *r->added)
        r->added[r->n_added++] = t;
}

static Digest *digest_of(Refine *r, const MachineEvent *e)
{
    unsigned lane = (unsigned)__builtin_ctz(e->agent.lanes | 1u << 31);
    if (!e->effect) {
        Pending *p = pending_of(r, e);
        p->lanes |= 1u << lane;
        return &p->by[lane];
    }
    const Owner *o = e->effect <= r->owners.len
                         ? &r->owners.data[e->effect - 1]
                         : NULL;
    uint32_t i = !o ? NO_INSTANCE : o->lanes ? o->lanes[lane] : o->first;
    if (i == NO_INSTANCE)
        r->unclaimed = e->op;
    return i == NO_INSTANCE ? NULL : &r->instances.data[i].does;
}

static void write_event(Refine *r, const MachineEvent *e)
{
    bool adds = e->op->code == OP_async_bulk_tensor_reduce;
    Digest *d = digest_of(r, e);
    if (adds)
        note_added(r, e->tensor);
    if (d)
        digest_add(d, adds ? NULL : e->bytes, e->elem_bytes,
                   e->tensor ? e->length : e->length / e->elem_bytes,
                   e->tensor ? e->offset : -1);
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
    if (!r->executed.n && r->instances.len)
        r->result.open = "no op of the lowered program names its statement";
    for (size_t i = 0;
         i < r->instances.len && !r->result.open && !r->result.cover_bad;
         i++) {
        const Instance *x = &r->instances.data[i];
        if (!x->done)
            fault_cover(r, r->stmts[x->sid].op->loc,
                        "is not carried out by the lowered program", NULL,
                        x->iters, x->n);
    }
    if (r->unclaimed && !r->result.open && !r->result.cover_bad) {
        r->result.cover_bad = true;
        diag_error(r->ctx, r->unclaimed->loc, "X-COVER",
                   "X-COVER: this op writes memory for no statement of the "
                   "program");
    }
}

static void end_writes(Refine *r)
{
    for (size_t i = 0; i < r->instances.len; i++) {
        const Instance *x = &r->instances.data[i];
        const Op *stmt = r->stmts[x->sid].op;
        char what[160];
        if (x->partial ||
            (x->says.sum == x->does.sum && x->says.n == x->does.n))
            continue;
        if (x->says.n == x->does.n)
            snprintf(what, sizeof what,
                     "writes other values, or elsewhere, than the program");
        else
            snprintf(what, sizeof what,
                     "writes %lld elements, but %lld in the program",
                     (long long)x->does.n, (long long)x->says.n);
        fault(r, x->by->loc, "X-VALUE", what, stmt, x->iters, x->n);
        r->result.value_bad = true;
        return;
    }
}

static bool is_added(const Refine *r, const Tensor *t)
{
    for (unsigned i = 0; i < r->n_added; i++)
        if (r->added[i] == t)
            return true;
    return false;
}

static void end_results(Refine *r, const ProcArg *args, unsigned n, Loc host)
{
    for (unsigned i = 0; i < n && !r->result.value_bad; i++) {
        const Tensor *t = args[i].tensor;
        int64_t at = t ? values_differ(t, r->results[i], is_added(r, t)) : -1;
        if (at < 0)
            continue;
        StrBuf name = { 0 };
        tensor_print_element(&name, t, at);
        diag_error(r->ctx, host, "X-VALUE",
                   "X-VALUE: %s ends as %.9g, and in the program as %.9g",
                   strbuf_text(&name), tensor_get(t, at),
                   tensor_get(r->results[i], at));
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
