/* Statements are found by a walk, instances by the interpreter's watch. */
#include "verify/async/program.h"

#include "verify/async/turns.h"

#include <string.h>

enum { MAX_INSTANCES = 4000000, MAX_WATCHED = 5 * MAX_INSTANCES };
enum { BLOCK = 256 }; /* instances */

uint32_t program_instance(const Program *p, int64_t launch, uint32_t sid,
                          const int64_t *iters, unsigned n)
{
    const InstanceTree *t = &p->stmts[sid].instances;
    return n == t->depth ? instances_find(t, launch, iters) : NO_INSTANCE;
}

Instance *program_at(const Program *p, uint32_t number)
{
    return &p->blocks.data[number / BLOCK][number % BLOCK];
}

unsigned program_iters(const Program *p, uint32_t number,
                       int64_t iters[MAX_ITERS])
{
    const Stmt *s = &p->stmts[program_at(p, number)->sid];
    int64_t values[MAX_ITERS + 1] = { 0 };
    instances_values(&s->instances, number, values);
    memcpy(iters, values + 1, s->n * sizeof *iters);
    return s->n;
}

const Stmt *program_stmt(const Program *p, uint32_t sid)
{
    return sid < p->n_sids && p->stmts[sid].op ? &p->stmts[sid] : NULL;
}

/* ---- the statements ------------------------------------------------------ */

typedef struct Search {
    Program *p;
    const ParInfo *par; /* NULL: it does not hold */
} Search;

static const Mem *mem_of(const Program *p, const Value *v)
{
    const Value *root = value_root((Value *)v);
    return p->m->lib && root->type->mem
               ? lib_mem_find(p->m->lib, root->type->mem)
               : NULL;
}

static bool is_map(const Value *v)
{
    return v->type->kind == TK_map ||
           value_root((Value *)v)->type->kind == TK_map;
}

static bool is_global(const Program *p, const Value *v)
{
    const Mem *mem = mem_of(p, v);
    return is_map(v) || (mem && mem->family == MEMF_global);
}

static bool is_shared(const Program *p, const Value *v)
{
    const Mem *mem = mem_of(p, v);
    return mem && mem->family == MEMF_shared;
}

static bool find_if(Op *op, void *user)
{
    bool *found = user;
    *found = *found || op->code == OP_ctl_if;
    return !*found;
}

static bool is_partial(const Program *p, const Op *op)
{
    const Instr *in = op->code == OP_par_instr ? op_instr(p->m, op) : NULL;
    bool found = false;
    if (in && in->body)
        op_walk((Op *)in->body, find_if, &found);
    return found;
}

static void find_writes(const Program *p, const Op *op, Stmt *s)
{
    OpAccessVec v = { 0 };
    op_accesses(p->m, op, p->arena, &v);
    s->writes = ARENA_ARRAY(p->arena, OpAccess, v.len + 1);
    s->global = ARENA_ARRAY(p->arena, bool, v.len + 1);
    for (size_t i = 0; i < v.len; i++) {
        const OpAccess *a = &v.data[i];
        bool global = is_global(p, a->access->base);
        if (!(a->flags & (ACC_WRITE | ACC_REDUCE)) || a->flags & ACC_SYNC ||
            !(global || is_shared(p, a->access->base)))
            continue;
        s->global[s->n_writes] = global;
        s->writes[s->n_writes++] = *a;
    }
}

/* Lists the loops between op and its device function, and has all around it
 * watched. False when they are too many. */
static bool find_loops(Search *f, const Op *op, Stmt *s)
{
    const Op *loops[MAX_ITERS];
    bool inside = true;
    for (const Op *o = op_parent(op); o; o = op_parent(o)) {
        if (o->sid)
            f->p->watched[o->sid] = true;
        inside = inside && o->code != OP_par_device;
        if (!inside || o->code != OP_ctl_for)
            continue;
        if (s->n == MAX_ITERS)
            return false;
        loops[s->n++] = o;
    }
    s->vars = ARENA_ARRAY(f->p->arena, VarId, s->n + 1);
    s->threads = ARENA_ARRAY(f->p->arena, ThreadIter, s->n + 1);
    for (unsigned i = 0; i < s->n; i++) {
        const Op *loop = loops[s->n - 1 - i];
        const Affine *at = f->par ? par_iter(f->par, loop) : NULL;
        s->vars[i] = loop->blocks[0]->args[0].var;
        if (at)
            s->threads[s->n_threads++] = (ThreadIter){ i, at };
    }
    return true;
}

static void find_threads(Search *f, const Op *op, Stmt *s)
{
    const ThreadSet *t = f->par ? par_threads(f->par, op) : NULL;
    if (!t)
        return;
    s->guard = t->guard;
    s->device = par_device(f->par, op);
    s->places = ARENA_ARRAY(f->p->arena, ThreadPlace,
                            s->device->block_dim * s->device->cluster_dim);
}

static bool note_stmt(Op *op, void *user)
{
    Search *f = user;
    Program *p = f->p;
    Stmt s = { .op = op }, around = { 0 };
    const Instr *in = op->code == OP_par_instr ? op_instr(p->m, op) : NULL;
    p->reorders = p->reorders || (in && instr_reorders(in));
    if (!op->sid)
        return true;
    if (p->turns && turns_at(p->turns, op))
        p->watched[op->sid] = find_loops(f, op, &around);
    if (op->code == OP_mem_store || op->code == OP_mem_reduce ||
        op->code == OP_par_instr)
        find_writes(p, op, &s);
    if (!s.n_writes && op->code != OP_par_arrive && op->code != OP_par_await)
        return true;
    s.partial = is_partial(p, op);
    if (!find_loops(f, op, &s)) {
        p->open = "too many loops are nested";
        return true;
    }
    find_threads(f, op, &s);
    s.instances.depth = s.n;
    p->watched[op->sid] = true;
    p->stmts[op->sid] = s;
    return true;
}

static bool note_device(Op *op, void *user)
{
    if (op->code != OP_par_device)
        return true;
    op_walk(op, note_stmt, user);
    return false;
}

void program_init(Program *p, Arena *arena, Ctx *ctx, Module *m, const Op *proc,
                  struct Turns *turns)
{
    *p = (Program){
        .arena = arena, .ctx = ctx, .m = m, .proc = proc, .turns = turns
    };
    CtxMark mark = ctx_mark(ctx);
    const ParInfo *par = par_analyze(ctx, m, (Op *)proc);
    ctx_rollback(ctx, mark);
    p->n_sids = m->next_sid + 1;
    p->stmts = ARENA_ARRAY(arena, Stmt, p->n_sids);
    p->watched = ARENA_ARRAY(arena, bool, p->n_sids);
    Search f = { p, par_ok(par) ? par : NULL };
    op_walk((Op *)proc, note_device, &f);
}

/* ---- threads ------------------------------------------------------------- */

typedef struct ThreadEnv {
    const ParDevice *device;
    int64_t thread;
} ThreadEnv;

static bool thread_value(const Env *env, const Atom *atom, int64_t *out)
{
    const ThreadEnv *t = env->user;
    const ParDevice *d = t->device;
    if (atom->kind != ATOM_var)
        return false;
    if (atom->var == d->cta)
        *out = t->thread / d->block_dim;
    else if (atom->var == d->warp)
        *out = t->thread % d->block_dim / 32;
    else if (atom->var == d->lane)
        *out = t->thread % 32;
    else
        return false;
    return true;
}

/* Places are the same in every instance: they are found once. */
static const ThreadPlace *place_of(Program *p, const Stmt *s, int64_t thread)
{
    ThreadPlace *at = &s->places[thread];
    if (at->known)
        return at;
    ThreadEnv t = { s->device, thread };
    Env env = { thread_value, &t };
    bool holds = true;
    at->known = true;
    at->iters = ARENA_ARRAY(p->arena, int64_t, s->n_threads + 1);
    at->takes_part = !s->guard || !cond_eval(s->guard, &env, &holds) || holds;
    for (unsigned i = 0; i < s->n_threads; i++)
        if (!affine_eval(s->threads[i].value, &env, &at->iters[i]))
            at->takes_part = false;
    return at;
}

bool program_allows(Program *p, uint32_t sid, int64_t thread,
                    const int64_t *iters, unsigned n)
{
    const Stmt *s = &p->stmts[sid];
    if (!s->places)
        return true;
    if (thread >= s->device->block_dim * s->device->cluster_dim)
        return false;
    const ThreadPlace *at = place_of(p, s, thread);
    for (unsigned i = 0; i < s->n_threads; i++)
        if (s->threads[i].at < n && at->iters[i] != iters[s->threads[i].at])
            return false;
    return at->takes_part;
}

/* ---- the run ------------------------------------------------------------- */

/* Atomic additions commute: their sums depend on the order. */
static bool counts_values(const OpAccess *a)
{
    return !(a->flags & ACC_ATOMIC);
}

/* Is the instance that stands there a new one? Numbers it. */
static bool number_instance(Program *p, const Scope *at, Stmt *s)
{
    int64_t iters[MAX_ITERS];
    for (unsigned i = 0; i < s->n; i++)
        iters[i] = interp_var(at, s->vars[i]);
    InstanceAdded added = INSTANCE_far;
    if (p->n_instances < MAX_INSTANCES)
        added = instances_add(p->arena, &s->instances, p->launch, iters,
                              p->n_instances);
    if (added == INSTANCE_far)
        p->open = "the program has too many statement instances";
    return added == INSTANCE_new;
}

static Instance *next_instance(Program *p, const Stmt *s)
{
    if (p->n_instances % BLOCK == 0)
        VEC_PUSH(p->arena, &p->blocks, ARENA_ARRAY(p->arena, Instance, BLOCK));
    Instance *x = program_at(p, p->n_instances++);
    x->sid = s->op->sid;
    if (p->reorders) {
        x->says.loose = ARENA_NEW(p->arena, LooseSums);
        x->does.loose = ARENA_NEW(p->arena, LooseSums);
    }
    return x;
}

static void add_instance(Program *p, Interp *in, Scope *at, Stmt *s)
{
    if (!number_instance(p, at, s))
        return;
    Instance *x = next_instance(p, s);
    for (unsigned i = 0; i < s->n_writes; i++) {
        const OpAccess *a = &s->writes[i];
        View v;
        if (interp_operand_view(in, at, s->op, a->operand, &v))
            digest_view(&x->says, &v, counts_values(a), s->global[i]);
    }
}

static bool var_in_scope(const Env *env, const Atom *atom, int64_t *out)
{
    if (atom->kind != ATOM_var)
        return false;
    *out = interp_var(env->user, atom->var);
    return true;
}

static bool value_in_scope(void *user, const Affine *e, unsigned lane,
                           int64_t *out)
{
    Env env = { var_in_scope, user };
    (void)lane;
    return affine_eval(e, &env, out);
}

static bool watch(void *user, Interp *in, Scope *at, const Op *op)
{
    Program *p = user;
    p->n_watched++;
    if (p->turns)
        turns_see(p->turns, op, 0, 1, value_in_scope, at);
    if (op->code == OP_par_device)
        p->launch++;
    else if (p->stmts[op->sid].op && !p->open)
        add_instance(p, in, at, &p->stmts[op->sid]);
    return p->n_watched <= MAX_WATCHED;
}

void program_run(Program *p, const ProcArg *args, unsigned n)
{
    ProcArg *own = ARENA_ARRAY(p->arena, ProcArg, n + 1);
    InterpOptions o = { .watch = watch,
                        .watch_user = p,
                        .watched = p->watched };
    CtxMark mark = ctx_mark(p->ctx);
    Interp *in = interp_new(p->m);
    p->results = ARENA_ARRAY(p->arena, Tensor *, n + 1);
    p->n_args = n;
    for (unsigned i = 0; i < n; i++) {
        own[i] = args[i];
        if (args[i].tensor)
            own[i].tensor = p->results[i] = tensor_copy(args[i].tensor);
    }
    if (!interp_run(in, p->proc, own, n, &o)) {
        const Diag *why = ctx_diags_since(p->ctx, mark);
        p->wrong = why && !strcmp(why->code, "poison");
        p->open = p->value_open =
            p->n_watched > MAX_WATCHED
                ? "the program takes too many steps: give small sizes"
                : "the program itself does not run at these sizes";
    }
    interp_free(in);
    if (!p->wrong)
        ctx_rollback(p->ctx, mark);
}

void program_free(Program *p)
{
    for (unsigned i = 0; i < p->n_args; i++)
        tensor_free(p->results[i]);
}
