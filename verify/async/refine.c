/* Instances are kept as hashes of (statement, iterators) in open-addressed
 * tables, with the values of each for messages. */
#include "verify/async/refine.h"

#include "ir/lib.h"

#include <string.h>

enum { MAX_ITERS = 16, MAX_INSTANCES = 4000000 };

typedef struct Instance {
    uint32_t sid, n;
    int64_t iters[MAX_ITERS];
    bool done;
} Instance;

typedef struct Table {
    uint64_t *keys; /* 0: free */
    uint32_t *at;   /* of its instance */
    size_t n, cap;
} Table;

struct Refine {
    Arena *arena;
    Ctx *ctx;
    Module *m;
    const SizeSet *sizes;
    VEC(Instance) instances;
    Table known, executed;
    const Op **by_sid; /* statements that are looked at */
    uint32_t n_sids;
    VarId vars[MAX_ITERS]; /* of the walk */
    int64_t values[MAX_ITERS];
    unsigned depth;
    bool in_device; /* the walk is inside a device function */
    bool bad;
    const char *open;
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

static uint64_t key_of(uint32_t sid, const int64_t *iters, unsigned n)
{
    uint64_t h = hash_u64(HASH_SEED, sid);
    for (unsigned i = 0; i < n; i++)
        h = hash_u64(h, (uint64_t)iters[i]);
    return h ? h : 1;
}

/* ---- the par program's instances ----------------------------------------- */

static bool walk_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Refine *r = env->user;
    if (atom->kind != ATOM_var)
        return false;
    for (unsigned i = r->depth; i-- > 0;)
        if (r->vars[i] == atom->var) {
            *out = r->values[i];
            return true;
        }
    Env sizes = sizes_env(r->sizes);
    return sizes.value(&sizes, atom, out);
}

static bool in_memory(const Refine *r, const Value *v)
{
    const Value *root = value_root((Value *)v);
    const Mem *mem = r->m->lib && root->type->mem
                         ? lib_mem_find(r->m->lib, root->type->mem)
                         : NULL;
    return root->type->kind == TK_map || v->type->kind == TK_map ||
           (mem && (mem->family == MEMF_shared || mem->family == MEMF_global));
}

/* Statements whose instances must be found again. */
static bool is_looked_at(const Refine *r, const Op *op)
{
    OpAccessVec v = { 0 };
    if (op->code == OP_par_arrive || op->code == OP_par_await)
        return true;
    if (op->code != OP_mem_store && op->code != OP_mem_reduce &&
        op->code != OP_par_instr)
        return false;
    op_accesses(r->m, op, r->arena, &v);
    for (size_t i = 0; i < v.len; i++)
        if ((v.data[i].flags & (ACC_WRITE | ACC_REDUCE)) &&
            !(v.data[i].flags & ACC_SYNC) &&
            in_memory(r, v.data[i].access->base))
            return true;
    return false;
}

static void add_instance(Refine *r, const Op *op)
{
    Instance x = { .sid = op->sid, .n = r->depth };
    memcpy(x.iters, r->values, r->depth * sizeof *x.iters);
    if (r->instances.len == MAX_INSTANCES) {
        r->open = "the program has too many statement instances";
        return;
    }
    uint64_t key = key_of(op->sid, x.iters, x.n);
    if (table_add(r->arena, &r->known, key, (uint32_t)r->instances.len))
        VEC_PUSH(r->arena, &r->instances, x);
}

static void walk(Refine *r, const Block *b);

static bool find_device(Op *op, void *user)
{
    bool *found = user;
    *found = *found || op->code == OP_par_device;
    return !*found;
}

/* A loop of the host around a device function: an origin names iterators of the
 * device function only, so that its launches cannot be told apart. */
static bool launches_again(const Refine *r, const Op *loop)
{
    bool found = false;
    if (!r->in_device)
        op_walk((Op *)loop, find_device, &found);
    return found;
}

static void walk_for(Refine *r, const Op *op)
{
    Env env = { walk_value, r };
    int64_t lo, hi;
    if (launches_again(r, op)) {
        r->open = "a loop of the host launches the kernel again";
        return;
    }
    if (r->depth == MAX_ITERS ||
        !affine_eval(op->operands[0].u.index, &env, &lo) ||
        !affine_eval(op->operands[1].u.index, &env, &hi)) {
        r->open = "a loop's bounds cannot be evaluated";
        return;
    }
    unsigned at = r->depth++;
    r->vars[at] = op->blocks[0]->args[0].var;
    for (int64_t i = lo; i < hi && !r->open; i++) {
        r->values[at] = i;
        walk(r, op->blocks[0]);
    }
    r->depth--;
}

static void walk_if(Refine *r, const Op *op)
{
    Env env = { walk_value, r };
    bool holds;
    if (!cond_eval(op->operands[0].u.cond, &env, &holds)) {
        r->open = "a condition cannot be evaluated";
        return;
    }
    if (holds)
        walk(r, op->blocks[0]);
    else if (op->n_blocks > 1)
        walk(r, op->blocks[1]);
}

static void walk(Refine *r, const Block *b)
{
    for (const Op *op = b->first; op && !r->open; op = op->next) {
        if (op->code == OP_ctl_for)
            walk_for(r, op);
        else if (op->code == OP_ctl_if)
            walk_if(r, op);
        else if (op->sid < r->n_sids && r->by_sid[op->sid])
            add_instance(r, op);
        else {
            bool outside = r->in_device;
            r->in_device = outside || op->code == OP_par_device;
            for (unsigned i = 0; i < op->n_blocks; i++)
                walk(r, op->blocks[i]);
            r->in_device = outside;
        }
    }
}

static bool note_sid(Op *op, void *user)
{
    Refine *r = user;
    if (op->sid && op->sid < r->n_sids && is_looked_at(r, op))
        r->by_sid[op->sid] = op;
    return true;
}

static bool note_device(Op *op, void *user)
{
    if (op->code != OP_par_device)
        return true;
    op_walk(op, note_sid, user);
    return false;
}

Refine *refine_new(Arena *arena, Ctx *ctx, Module *m, const Op *proc,
                   const SizeSet *sizes)
{
    Refine *r = ARENA_NEW(arena, Refine);
    *r = (Refine){ .arena = arena, .ctx = ctx, .m = m, .sizes = sizes };
    r->n_sids = m->next_sid + 1;
    r->by_sid = ARENA_ARRAY(arena, const Op *, r->n_sids);
    op_walk((Op *)proc, note_device, r);
    walk(r, proc->blocks[0]);
    return r;
}

/* ---- the run's ----------------------------------------------------------- */

static void fault(Refine *r, Loc loc, const char *what, const Op *stmt,
                  const int64_t *iters, unsigned n)
{
    StrBuf at = { 0 };
    if (r->bad)
        return;
    r->bad = true;
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(&at, "%s%lld", i ? ", " : "", (long long)iters[i]);
    Diag *d = diag_error(r->ctx, loc, "X-COVER",
                         "X-COVER: the instance (%s) of a statement %s",
                         strbuf_text(&at), what);
    if (stmt)
        diag_note(r->ctx, d, stmt->loc, "the statement is here");
    strbuf_free(&at);
}

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

static void take(Refine *r, const MachineEvent *e, unsigned lane,
                 const int64_t *iters, unsigned n)
{
    const Op *stmt = r->by_sid[e->op->origin.sid];
    uint64_t key = key_of(e->op->origin.sid, iters, n);
    size_t s = r->known.cap ? slot_of(&r->known, key) : 0;
    if (!r->known.cap || !r->known.keys[s]) {
        fault(r, e->op->loc, "is executed, but the program has none", stmt,
              iters, n);
        return;
    }
    r->instances.data[r->known.at[s]].done = true;
    uint64_t again = hash_u64(key, (uint64_t)(uintptr_t)e->op);
    again = hash_u64(again, (uint64_t)e->agent.cta << 32 |
                                (uint64_t)e->agent.warp << 8 | lane);
    if (!table_add(r->arena, &r->executed, again ? again : 1, 0))
        fault(r, e->op->loc, "is executed twice by one thread", stmt, iters, n);
}

void refine_event(Refine *r, const MachineEvent *e)
{
    const Origin *o = &e->op->origin;
    if (r->open || r->bad || o->sid >= r->n_sids || !r->by_sid[o->sid] ||
        !carries_out(e->op) || o->n > MAX_ITERS)
        return;
    for (unsigned l = 0; l < 32; l++) {
        int64_t iters[MAX_ITERS];
        if (!(e->agent.lanes >> l & 1))
            continue;
        for (unsigned i = 0; i < o->n; i++)
            if (!machine_eval(e, o->iters[i], l, &iters[i]))
                return;
        take(r, e, l, iters, o->n);
    }
}

bool refine_end(Refine *r)
{
    for (size_t i = 0; i < r->instances.len && !r->open; i++) {
        const Instance *x = &r->instances.data[i];
        const Op *stmt = r->by_sid[x->sid];
        if (!x->done)
            fault(r, stmt->loc, "is not carried out by the lowered program",
                  NULL, x->iters, x->n);
    }
    return !r->bad;
}

const char *refine_open(const Refine *r)
{
    return r->open;
}
