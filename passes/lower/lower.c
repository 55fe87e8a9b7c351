/* Driver of the lowering, and what its files share.
 *
 *   proc { host.. par.device { tasks { BODY } } host.. }
 *     -> async.kernel { shared memory; mbarrier init; per role:
 *            setmaxnreg; rings; async.tasks { BODY as the role runs it } }
 *        host.proc { checks; tensor maps; host..; host.launch }
 *
 * Requires a module that par_analyze accepts. */
#include "passes/lower/lower.h"

#include "passes/abi.h"

#include <string.h>

Diag *lower_error(Lower *L, Loc loc, const char *code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = arena_vprintf(L->scratch, fmt, ap);
    va_end(ap);
    if (!L->failed)
        L->fault.code = code;
    L->failed = true;
    return diag_error(L->ctx, loc, code, "%s", text);
}

/* ---- emission ------------------------------------------------------------ */

Op *lower_emit(Lower *L, OpCode code, unsigned n_operands, unsigned n_results,
               unsigned n_blocks)
{
    Loc loc = L->stmt ? L->stmt->loc : L->dev->op->loc;
    Op *op = op_new(L->m, code, loc, n_operands, n_results, n_blocks);
    if (L->stmt) {
        op->origin.sid = L->stmt->sid;
        op->origin.n = (unsigned)L->iters.len;
        op->origin.iters = arena_memdup(L->m->arena, L->iters.data,
                                        L->iters.len * sizeof *L->iters.data);
    }
    block_append(L->out, op);
    return op;
}

Block *lower_elect(Lower *L)
{
    Op *last = L->out->last;
    if (last && last->code == OP_async_elect)
        return last->blocks[0];
    return lower_emit(L, OP_async_elect, 0, 0, 1)->blocks[0];
}

const Mem *lower_mem(Lower *L, const Value *v)
{
    const Value *root = value_root((Value *)v);
    if (!root->type->mem)
        return NULL;
    return lib_mem_find(L->m->lib, root->type->mem);
}

bool lower_in_registers(Lower *L, const Value *v)
{
    const Mem *mem = lower_mem(L, v);
    return mem && mem->family == MEMF_register;
}

static void report_overflow(Lower *L)
{
    lower_error(L, L->stmt ? L->stmt->loc : (Loc){ 0 }, "overflow",
                "an index expression leaves 64 bits");
}

const Affine *lower_index(Lower *L, const Affine *e)
{
    const Affine *k = clone_index(L->map, e);
    if (!k)
        report_overflow(L);
    return k ? k : affine_const(L->m->exprs, 0);
}

const Cond *lower_cond(Lower *L, const Cond *c)
{
    const Cond *k = clone_cond(L->map, c);
    if (c && !k)
        report_overflow(L);
    return role_simplify(L, k);
}

bool cond_holds(ExprCtx *x, const Cond *c)
{
    int64_t lo, hi;
    switch (c->kind) {
    case COND_true:
        return true;
    case COND_false:
        return false;
    case COND_ge0:
        return affine_min(x, c->expr, &lo) && lo >= 0;
    case COND_eq0:
        return affine_min(x, c->expr, &lo) && affine_max(x, c->expr, &hi) &&
               lo == 0 && hi == 0;
    case COND_and:
        return cond_holds(x, c->lhs) && cond_holds(x, c->rhs);
    case COND_or:
        return cond_holds(x, c->lhs) || cond_holds(x, c->rhs);
    case COND_not:
        return c->lhs->kind == COND_ge0
                   ? affine_max(x, c->lhs->expr, &hi) && hi < 0
                   : false;
    }
    return false;
}

/* A stand-in for `warp` whose bounds are the role's. */
static const Affine *role_warp(Lower *L)
{
    ExprCtx *x = L->m->exprs;
    VarId v = var_new(x, "warp", VAR_coord);
    var_set_bounds(x, v, affine_const(x, L->role->lo),
                   affine_const(x, L->role->hi));
    return affine_var(x, v);
}

static const Cond *fold(Lower *L, const Cond *c, const Subst *s)
{
    ExprCtx *x = L->m->exprs;
    switch (c->kind) {
    case COND_and:
    case COND_or: {
        const Cond *lhs = fold(L, c->lhs, s);
        const Cond *rhs = fold(L, c->rhs, s);
        return c->kind == COND_and ? cond_and(x, lhs, rhs)
                                   : cond_or(x, lhs, rhs);
    }
    case COND_not:
        return cond_not(x, fold(L, c->lhs, s));
    default:
        break;
    }
    const Cond *here = cond_subst(x, c, s);
    if (!here)
        return c;
    if (cond_holds(x, here))
        return cond_bool(x, true);
    return cond_holds(x, cond_not(x, here)) ? cond_bool(x, false) : c;
}

const Cond *role_simplify(Lower *L, const Cond *c)
{
    if (!c)
        return cond_bool(L->m->exprs, true);
    VarId from[] = { L->dev->warp };
    const Affine *to[] = { role_warp(L) };
    Subst s = { .n = 1, .var = from, .to = to };
    return fold(L, c, &s);
}

/* ---- accesses ------------------------------------------------------------ */

static Value *kernel_base(Lower *L, Value *root)
{
    SmemObject *object = smem_object(L, root);
    return object ? object->object : clone_map_get(L->map, root);
}

Access *lower_access(Lower *L, const Access *a)
{
    const Access *at = access_compose(L->m, a);
    Value *root = at->base;
    const ParAlloc *alloc = par_alloc(L->pi, root);
    unsigned skip = alloc ? alloc->n_dist : 0;
    Access *out = access_new(L->m, kernel_base(L, root));
    for (unsigned i = skip; i < at->rank; i++) {
        const AccessDim *d = &at->dims[i];
        AccessDim *o = &out->dims[i - skip];
        if ((int)i == root->ring_dim && alloc) {
            *o = ring_dim(L, root, d->lo);
            continue;
        }
        o->kind = d->kind;
        o->lo = lower_index(L, d->lo);
        if (d->kind == DIM_interval)
            o->len = lower_index(L, d->len);
    }
    return out;
}

/* ---- what a role executes ------------------------------------------------ */

bool role_executes(Lower *L, const Op *op)
{
    if (op->code == OP_par_warps) {
        const ThreadSet *t = par_body_threads(L->pi, op);
        return !t || !t->role || !strcmp(t->role, L->role->name);
    }
    return true;
}

void role_walk_accesses(Lower *L, Block *b, AccessFn fn, void *user)
{
    for (Op *op = b->first; op; op = op->next) {
        if (!role_executes(L, op))
            continue;
        OpAccessVec accesses = { 0 };
        op_accesses(L->m, op, L->scratch, &accesses);
        for (size_t i = 0; i < accesses.len; i++)
            fn(L, op, &accesses.data[i], user);
        for (unsigned i = 0; i < op->n_blocks; i++)
            role_walk_accesses(L, op->blocks[i], fn, user);
    }
}

/* TMA copies touch memory through one lane and the copy engine only. */
bool lower_by_elected_lane(Lower *L, const Op *op)
{
    if (op->code != OP_par_instr)
        return false;
    const Instr *in = op_instr(L->m, op);
    return in && in->hook && !strncmp(in->hook, "tma_", 4);
}

static void touch_access(Lower *L, Op *op, const OpAccess *a, void *user)
{
    TouchingWarps *t = user;
    if ((a->flags & ACC_SYNC) || lower_by_elected_lane(L, op))
        return;
    const ThreadSet *set = par_threads(L->pi, op);
    if (!set || (set->cover_lo < t->hi && t->lo < set->cover_hi))
        t->touch = true;
}

bool warps_touch_memory(Lower *L, int64_t lo, int64_t hi)
{
    for (size_t i = 0; i < L->touching.len; i++)
        if (L->touching.data[i].lo == lo && L->touching.data[i].hi == hi)
            return L->touching.data[i].touch;
    TouchingWarps t = { lo, hi, false };
    role_walk_accesses(L, L->dev->body, touch_access, &t);
    VEC_PUSH(L->scratch, &L->touching, t);
    return t.touch;
}

/* ---- the kernel ---------------------------------------------------------- */

static void add_coordinate(Lower *L, VarId var)
{
    Block *b = L->kernel->blocks[0];
    block_add_known_var(L->m, b, var);
}

/* Parameters: what the device function uses of the host. */
static void kernel_params(Lower *L)
{
    ExprCtx *x = L->m->exprs;
    Block *b = L->kernel->blocks[0];
    L->base_map = clone_map_new(L->m, L->m);
    L->map = L->base_map;
    for (size_t i = 0; i < L->captures.len; i++) {
        const Capture *c = &L->captures.data[i];
        if (!c->value) {
            const Var *from = var_get(x, c->var);
            VarKind kind = from->kind == VAR_iter ? VAR_index : from->kind;
            VarId v = block_add_var(L->m, b, from->name, kind);
            const Affine *lo = kind == VAR_size ? affine_const(x, 1) : NULL;
            var_set_bounds(x, v, lo, NULL);
            clone_map_index(L->map, c->var, affine_var(x, v));
        }
    }
    for (size_t i = 0; i < L->captures.len; i++) {
        const Capture *c = &L->captures.data[i];
        if (!c->value)
            continue;
        Value *v = block_add_value(L->m, b, c->value->type, c->value->name);
        for (unsigned d = 0; d < v->type->rank; d++)
            v->shape[d] = lower_index(L, c->value->shape[d]);
        clone_map_value(L->map, c->value, v);
    }
    add_coordinate(L, L->dev->cta);
    add_coordinate(L, L->dev->warp);
    add_coordinate(L, L->dev->lane);
}

static void emit_cluster_barrier(Lower *L)
{
    lower_emit(L, OP_async_barrier_cluster_arrive, 0, 0, 0);
    lower_emit(L, OP_async_barrier_cluster_wait, 0, 0, 0);
}

/* All that the CTAs have done before is to initialise mbarriers. */
static void emit_entry_barrier(Lower *L)
{
    Op *arrive = lower_emit(L, OP_async_barrier_cluster_arrive, 0, 0, 0);
    op_set_bool(L->m, arrive, "relaxed", true);
    lower_emit(L, OP_async_barrier_cluster_wait, 0, 0, 0);
}

static void emit_cta_barrier(Lower *L)
{
    Op *op = lower_emit(L, OP_async_barrier_cta_sync, 0, 0, 0);
    op_set_int(L->m, op, "id", 0);
    op_set_int(L->m, op, "threads", L->dev->block_dim);
}

/* One thread initialises the mbarriers, makes that visible to the cluster and
 * to the async proxy; then nobody touches them before all have met, of the
 * cluster where its CTAs signal each other's. */
static void kernel_setup(Lower *L)
{
    ExprCtx *x = L->m->exprs;
    bool any = false;
    for (size_t i = 0; i < L->smem.objects.len; i++)
        any |= L->smem.objects.data[i].source->type->kind == TK_barrier;
    if (any) {
        Block *outer = L->out;
        L->setup = lower_emit(L, OP_ctl_if, 1, 0, 1);
        L->setup->operands[0] =
            opnd_cond(cond_cmp(x, CMP_eq, L->dev->thread, affine_const(x, 0)));
        L->out = L->setup->blocks[0];
        for (size_t i = 0; i < L->smem.objects.len; i++) {
            SmemObject *o = &L->smem.objects.data[i];
            if (o->source->type->kind == TK_barrier)
                lower_emit(L, OP_async_mbarrier_init, 1, 0, 0)->operands[0] =
                    opnd_value(o->object);
        }
        if (!LOWER_WRONG(L, "no-init-fence")) {
            lower_emit(L, OP_async_fence_mbarrier_init, 0, 0, 0);
            op_set_str(L->m, lower_emit(L, OP_async_fence_proxy, 0, 0, 0),
                       "space", "shared");
        }
        L->out = outer;
    }
    if (LOWER_WRONG(L, "no-entry-barrier"))
        return;
    if (L->ctas_signal)
        emit_entry_barrier(L);
    else if (any)
        emit_cta_barrier(L);
}

/* The first copy through each tensor map would wait for it otherwise. */
static void prefetch_maps(Lower *L)
{
    ExprCtx *x = L->m->exprs;
    const Block *b = L->kernel->blocks[0];
    Block *outer = L->out;
    Op *once = NULL;
    for (unsigned i = 0; i < b->n_args; i++) {
        Value *v = b->args[i].value;
        if (!v || v->type->kind != TK_map)
            continue;
        if (!once) {
            once = lower_emit(L, OP_ctl_if, 1, 0, 1);
            once->operands[0] = opnd_cond(
                cond_cmp(x, CMP_eq, L->dev->thread, affine_const(x, 0)));
            L->out = once->blocks[0];
        }
        lower_emit(L, OP_async_prefetch_tensormap, 1, 0, 0)->operands[0] =
            opnd_value(v);
    }
    L->out = outer;
}

/* Behind the wait comes everything that touches global memory. The grid that
 * follows may be launched from there on: its CTAs take the place of those of
 * this grid that end, and wait in their turn. */
static void kernel_dependence(Lower *L)
{
    if (!L->dev->dependent_launch)
        return;
    op_set_bool(L->m, L->kernel, "programmatic_dependent_launch", true);
    if (!LOWER_WRONG(L, "no-grid-wait") && !LOWER_WRONG(L, "late-grid-wait"))
        lower_emit(L, OP_async_griddepcontrol_wait, 0, 0, 0);
    lower_emit(L, OP_async_griddepcontrol_launch_dependents, 0, 0, 0);
}

static void role_registers(Lower *L)
{
    int64_t n = L->role->reg_dec ? L->role->reg_dec : L->role->reg_inc;
    if (!n)
        return;
    Op *op = lower_emit(L, OP_async_setmaxnreg, 0, 0, 0);
    op_set_str(L->m, op, "action", L->role->reg_dec ? "dec" : "inc");
    op_set_int(L->m, op, "count", LOWER_WRONG(L, "registers") ? n + 8 : n);
}

/* A ring value at position 0 for each group the role uses. */
static void role_rings(Lower *L, Value **rings)
{
    for (size_t g = 0; g < L->groups.len; g++) {
        if (!L->groups.data[g].used)
            continue;
        Op *op = lower_emit(L, OP_async_ring_init, 0, 1, 0);
        op_set_int(L->m, op, "position", 0);
        rings[g] = op_set_result(
            L->m, op, 0, type_ring(L->ctx, L->groups.data[g].depth), "ring");
    }
}

/* The persistent loop, without its body; its block becomes L->out. */
static Op *role_task_loop(Lower *L, Value **rings, unsigned n_rings)
{
    unsigned n = L->dev->n_tasks;
    Op *tasks = lower_emit(L, OP_async_tasks, 2 * n + n_rings, n_rings, 1);
    op_set_int(L->m, tasks, "rank", n);
    if (n >= 2 && op_attr(L->dev->tasks[n - 2], "group"))
        op_set_int(L->m, tasks, "group",
                   op_attr_int(L->dev->tasks[n - 2], "group", 1));
    Block *b = tasks->blocks[0];
    for (unsigned i = 0; i < n; i++) {
        Op *loop = L->dev->tasks[i];
        const Affine *lo = lower_index(L, loop->operands[0].u.index);
        const Affine *hi = lower_index(L, loop->operands[1].u.index);
        tasks->operands[2 * i] = opnd_index(lo);
        tasks->operands[2 * i + 1] = opnd_index(hi);
        VarId from = loop->blocks[0]->args[0].var;
        VarId v =
            block_add_var(L->m, b, var_get(L->m->exprs, from)->name, VAR_iter);
        var_set_bounds(L->m->exprs, v, lo, hi);
        const Affine *iter = affine_var(L->m->exprs, v);
        clone_map_index(L->map, from, iter);
        VEC_PUSH(L->scratch, &L->iters, iter);
    }
    unsigned at = 2 * n;
    for (size_t g = 0; g < L->groups.len; g++) {
        if (!L->groups.data[g].used)
            continue;
        tasks->operands[at++] = opnd_value(rings[g]);
        Value *ring = block_add_value(L->m, b, rings[g]->type, "ring");
        RingCursor c = { (unsigned)g, affine_const(L->m->exprs, 0), ring };
        VEC_PUSH(L->scratch, &L->cursors, c);
    }
    L->out = b;
    return tasks;
}

/* The rings at the next task's start, and the loop's results. */
static void role_task_end(Lower *L, Op *tasks, unsigned n_rings)
{
    L->stmt = NULL;
    Value **next = ARENA_ARRAY(L->scratch, Value *, n_rings);
    unsigned at = 0;
    for (size_t g = 0; g < L->groups.len; g++)
        if (L->groups.data[g].used)
            next[at++] =
                ring_at(L, (unsigned)g,
                        LOWER_WRONG(L, "ring-reset")
                            ? affine_const(L->m->exprs, 0)
                            : lower_index(L, L->groups.data[g].per_task));
    Op *yield = lower_emit(L, OP_ctl_yield, n_rings, 0, 0);
    for (unsigned i = 0; i < n_rings; i++) {
        yield->operands[i] = opnd_value(next[i]);
        op_set_result(L->m, tasks, i, next[i]->type, NULL);
    }
}

static void lower_role(Lower *L, const ParRole *role)
{
    L->role = role;
    L->map = clone_map_copy(L->base_map);
    L->frags.len = 0;
    L->frag_lists = (PtrMap){ 0 };
    L->touching.len = 0;
    L->cursors.len = 0;
    L->iters.len = 0;
    L->commits = 0;
    L->stmt = NULL;
    Block *outer = L->out;
    if (L->dev->n_roles > 1) {
        Op *op = lower_emit(L, OP_async_role, 0, 0, 1);
        op_set_str(L->m, op, "name", role->name);
        op_set_int(L->m, op, "lo", role->lo);
        op_set_int(L->m, op, "hi", role->hi);
        L->out = op->blocks[0];
    }
    role_registers(L);
    ring_mark_used(L);
    unsigned n_rings = 0;
    for (size_t g = 0; g < L->groups.len; g++)
        n_rings += L->groups.data[g].used;
    Value **rings = ARENA_ARRAY(L->scratch, Value *, L->groups.len + 1);
    role_rings(L, rings);
    Block *whole = L->out;
    Op *tasks = role_task_loop(L, rings, n_rings);
    lower_role_body(L, L->dev->body);
    role_task_end(L, tasks, n_rings);
    L->out = whole;
    exit_role(L, tasks);
    lower_free_loops(whole);
    lower_early(L, tasks);
    L->out = outer;
}

/* The parameters have a place in the kernel's calling convention. */
static void check_abi(Lower *L)
{
    AbiParamVec params = { 0 };
    if (L->failed || kernel_abi(L->ctx, L->kernel, L->scratch, &params))
        return;
    L->failed = true;
    L->fault.code = "abi";
}

static const char *kernel_name(Lower *L, const Op *proc, unsigned k)
{
    const char *name = op_attr_str(proc, "name", "proc");
    return arena_printf(L->scratch, "%s_kernel%u", name, k);
}

/* Of a device function, in the procedure's variables. */
static void note_task_count(Lower *L)
{
    ExprCtx *x = L->m->exprs;
    const Affine *n = affine_const(x, 1);
    for (unsigned i = 0; i < L->dev->n_tasks; i++) {
        const Op *loop = L->dev->tasks[i];
        const Affine *trips =
            affine_sub(x, loop->operands[1].u.index, loop->operands[0].u.index);
        n = affine_mul(x, n, trips);
    }
    if (n)
        VEC_PUSH(L->scratch, &L->task_counts, n);
}

static bool lower_device(Lower *L, Op *proc, Op *device, unsigned k)
{
    L->dev = par_device(L->pi, device);
    if (!L->dev) {
        lower_error(L, device->loc, "lowering",
                    "this device function could not be analysed");
        return false;
    }
    L->fault.at = device;
    L->captures.len = 0;
    L->smem.objects.len = 0;
    L->groups.len = 0;
    L->named.len = 0;
    L->setup = NULL;
    L->stmt = NULL;
    L->role = &L->dev->roles[0];
    host_captures(L);
    note_task_count(L);
    L->kernel = op_new(L->m, OP_async_kernel, device->loc, 0, 0, 1);
    op_set_str(L->m, L->kernel, "name", kernel_name(L, proc, k));
    op_set_str(L->m, L->kernel, "proc", op_attr_str(proc, "name", ""));
    op_set_int(L->m, L->kernel, "blockDim", L->dev->block_dim);
    op_set_int(L->m, L->kernel, "clusterDim", L->dev->cluster_dim);
    op_set_int(L->m, L->kernel, "blocks_per_sm", L->dev->blocks_per_sm);
    kernel_params(L);
    check_abi(L);
    ring_collect(L);
    frag_prepare(L);
    if (L->failed || !sync_prepare(L) || !smem_layout(L))
        return false;
    op_set_int(L->m, L->kernel, "smem_bytes", L->smem.bytes);
    L->out = L->kernel->blocks[0];
    smem_emit(L);
    prefetch_maps(L);
    kernel_setup(L);
    kernel_dependence(L);
    for (unsigned i = 0; i < L->dev->n_roles; i++)
        lower_role(L, &L->dev->roles[i]);
    L->stmt = NULL;
    if (L->dev->dependent_launch && LOWER_WRONG(L, "late-grid-wait"))
        lower_emit(L, OP_async_griddepcontrol_wait, 0, 0, 0);
    if (L->meets_at_exit)
        emit_cluster_barrier(L);
    block_append(L->m->body, L->kernel);
    return !L->failed;
}

typedef struct Devices {
    Arena *arena;
    VEC(Op *) found;
} Devices;

static bool collect_device(Op *op, void *user)
{
    Devices *d = user;
    if (op->code != OP_par_device)
        return true;
    VEC_PUSH(d->arena, &d->found, op);
    return false;
}

/* An access to a window of a tensor map is one to the map. */
static bool see_map(Op *op, void *user)
{
    Lower *L = user;
    for (unsigned i = 0; i < op->n_operands; i++) {
        Operand *o = &op->operands[i];
        if (o->kind == OPND_access && o->u.access->base->type->kind == TK_map)
            *o = opnd_access((Access *)access_compose(L->m, o->u.access));
    }
    return true;
}

static void lower_proc(Lower *L, Op *proc)
{
    L->task_counts.len = 0;
    Devices d = { .arena = L->scratch };
    op_walk(proc, collect_device, &d);
    if (d.found.len == 0) {
        diag_remark(L->ctx, proc->loc, "lowering",
                    "procedure '%s' has no device function: left as it is",
                    op_attr_str(proc, "name", ""));
        return;
    }
    op_walk(proc, see_map, L);
    for (size_t i = 0; i < d.found.len && !L->failed; i++) {
        if (!lower_device(L, proc, d.found.data[i], (unsigned)i))
            return;
        host_launch(L, d.found.data[i]);
    }
    L->fault.at = NULL;
    if (!L->failed)
        host_outline(L, proc);
}

static Lower *lower_begin(Ctx *ctx, Module *m, Arena *scratch,
                          const char *inject)
{
    Lower *L = ARENA_NEW(m->arena, Lower);
#ifdef EXO_INJECT
    L->inject = inject;
#else
    (void)inject;
#endif
    L->ctx = ctx;
    L->m = m;
    L->scratch = scratch;
    return L;
}

static bool lower_module(Ctx *ctx, Module *m, const char *inject)
{
    Lower *L = lower_begin(ctx, m, arena_new(), inject);
    unsigned errors = ctx_error_count(ctx);
    L->pi = par_analyze(ctx, m, NULL);
    if (!par_ok(L->pi))
        L->failed = true;
    for (Op *op = m->body->first, *next; op && !L->failed; op = next) {
        next = op->next;
        if (op->code == OP_ctl_proc)
            lower_proc(L, op);
    }
    if (L->failed && ctx_error_count(ctx) == errors)
        diag_error(ctx, (Loc){ 0 }, "lowering",
                   "the module could not be lowered");
    arena_free(L->scratch);
    return !L->failed;
}

bool lower_par_to_async(Ctx *ctx, Module *m)
{
    return lower_module(ctx, m, "");
}

Lower *lower_layout(Ctx *ctx, Module *m, ParInfo *pi, Op *device, Arena *arena)
{
    Lower *L = lower_begin(ctx, m, arena, "");
    L->pi = pi;
    L->dev = par_device(pi, device);
    CtxMark mark = ctx_mark(ctx);
    bool fits = L->dev && smem_layout(L);
    ctx_rollback(ctx, mark);
    return fits ? L : NULL;
}

bool lower_one_proc(Ctx *ctx, Module *m, Op *proc, LowerFault *fault)
{
    Lower *L = lower_begin(ctx, m, arena_new(), "");
    CtxMark mark = ctx_mark(ctx);
    L->pi = par_analyze(ctx, m, proc);
    ctx_rollback(ctx, mark);
    if (!par_ok(L->pi))
        L->failed = true;
    else
        lower_proc(L, proc);
    bool ok = !L->failed;
    *fault = L->fault;
    arena_free(L->scratch);
    return ok;
}

#ifdef EXO_INJECT
bool lower_par_to_async_wrong(Ctx *ctx, Module *m, const char *rule)
{
    return lower_module(ctx, m, rule);
}
#endif
