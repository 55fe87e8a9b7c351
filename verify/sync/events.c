/* Building the tree: a first walk over the procedure finds its tensors and how
 * they are touched, a second one makes the nodes of each device function.
 *
 * Left out is what cannot race: tensors that nobody writes, memories that are
 * exempt, and registers that only ordinary code touches, since check-par gives
 * each shard to one native unit. Loops and guards around nothing vanish. */
#include "verify/sync/events.h"

#include "passes/analysis/ptr_map.h"

#include <string.h>

/* What the first walk sees of a tensor. */
typedef struct Seen {
    SyncTensor *tensor;
    bool written, asynchronous;
} Seen;

typedef struct Build {
    Ctx *ctx;
    SyncProgram *p;
    PtrMap seen; /* Value -> Seen */
    VEC(SyncTensor *) tensors;
    unsigned n_nodes;
} Build;

typedef struct List {
    SyncNode *first, **end;
} List;

static void give_up(Build *b, const Op *op, const char *why)
{
    if (!b->p->unknown)
        b->p->unknown = arena_printf(
            ctx_arena(b->ctx), "%s (%s:%u)", why,
            op->loc.file ? ctx_source_name(b->ctx, op->loc.file) : "?",
            op->loc.line);
}

/* ---- tensors ------------------------------------------------------------ */

static SyncSpace space_of(const Mem *mem)
{
    switch (mem->family) {
    case MEMF_shared:
        return SYNC_shared;
    case MEMF_register:
        return SYNC_register;
    case MEMF_barrier:
        return SYNC_barrier;
    default:
        return SYNC_global;
    }
}

static void add_tensor(Build *b, Value *v)
{
    const Mem *mem =
        v->type->mem ? lib_mem_find(b->p->m->lib, v->type->mem) : NULL;
    if (!mem || ptr_map_get(&b->seen, v))
        return;
    Seen *s = ARENA_NEW(b->p->arena, Seen);
    SyncTensor *t = ARENA_NEW(b->p->arena, SyncTensor);
    if (v->type->rank > 15 && !b->p->unknown)
        b->p->unknown = "a tensor has more than 15 dimensions";
    *t = (SyncTensor){ .value = v,
                       .mem = mem,
                       .space = space_of(mem),
                       .index = (unsigned)b->tensors.len };
    t->mask = mem->qual_family ? qual_family_mask(mem->qual_family) : 0;
    s->tensor = t;
    VEC_PUSH(b->p->arena, &b->tensors, t);
    ptr_map_put(b->p->arena, &b->seen, v, s);
}

/* The window op that made v, tensor maps included. */
static const Op *window_of(const Value *v)
{
    return v->def && v->def->code == OP_mem_window ? v->def : NULL;
}

static Value *storage_of(Value *v)
{
    for (const Op *w = window_of(v); w; w = window_of(v))
        v = w->operands[0].u.access->base;
    return v;
}

static Seen *seen_of(Build *b, Value *v)
{
    return ptr_map_get(&b->seen, storage_of(v));
}

/* ---- the first walk ----------------------------------------------------- */

static const char *timeline_of(const Module *m, const Op *op)
{
    if (op->code != OP_par_instr)
        return "cuda_in_order_instr";
    const Instr *in = op_instr(m, op);
    return in ? in->timeline : "cuda_in_order_instr";
}

static void note_access(Build *b, const Op *op, const OpAccess *a)
{
    Seen *s = seen_of(b, a->access->base);
    if (!s || (a->flags & ACC_SYNC))
        return;
    s->written = s->written || (a->flags & (ACC_WRITE | ACC_REDUCE));
    uint32_t initial, extended;
    if (s->tensor->space == SYNC_register && s->tensor->mem->qual_family &&
        qual_family_lookup(s->tensor->mem->qual_family,
                           timeline_of(b->p->m, op), &initial, &extended) &&
        strcmp(qual_timeline((unsigned)__builtin_ctz(initial))->name,
               "cuda_in_order_rmem") != 0)
        s->asynchronous = true;
}

/* The multicast pattern of a barrier's first Arrive. */
static void note_arrive(Build *b, const Op *op)
{
    if (!op->n_operands || op->operands[0].kind != OPND_access)
        return;
    Seen *s = seen_of(b, op->operands[0].u.access->base);
    const ParSync *sync = par_sync(b->p->par, op);
    if (!s || s->tensor->n_patterns)
        return;
    uint32_t *patterns = ARENA_ARRAY(b->p->arena, uint32_t, op->n_operands);
    for (unsigned k = 0; k < op->n_operands; k++) {
        const Access *a = op->operands[k].u.access;
        for (unsigned i = 0; i < a->rank && i < 32; i++)
            if (a->dims[i].kind == DIM_interval)
                patterns[k] |= 1u << i;
    }
    s->tensor->n_patterns = op->n_operands;
    s->tensor->patterns = patterns;
    s->tensor->source_ctas = sync ? sync->source_ctas : 1;
}

/* What the barrier's Awaits leave outstanding. */
static void note_await(Build *b, const Op *op)
{
    Seen *s = op->n_operands && op->operands[0].kind == OPND_access
                  ? seen_of(b, op->operands[0].u.access->base)
                  : NULL;
    int64_t n = op_attr_int(op, "n", 0);
    if (s && n > s->tensor->most_left)
        s->tensor->most_left = n;
}

static bool is_par_loop(const Op *op)
{
    return op->code == OP_ctl_for &&
           !strcmp(op_attr_str(op, "mode", "seq"), "par");
}

static bool first_walk(Op *op, void *user)
{
    Build *b = user;
    if (op->code == OP_mem_alloc)
        add_tensor(b, op->results[0]);
    if (op->code == OP_ctl_call)
        give_up(b, op, "a call of a procedure is not followed: inline it");
    if (is_par_loop(op))
        give_up(b, op, "a par loop of the host is not decided");
    if (op->code == OP_par_arrive)
        note_arrive(b, op);
    if (op->code == OP_par_await)
        note_await(b, op);
    OpAccessVec accesses = { 0 };
    op_accesses(b->p->m, op, b->p->arena, &accesses);
    for (size_t i = 0; i < accesses.len; i++)
        note_access(b, op, &accesses.data[i]);
    return true;
}

static void decide_tensors(Build *b)
{
    SyncProgram *p = b->p;
    p->n_tensors = (unsigned)b->tensors.len;
    p->tensors = ARENA_ARRAY(p->arena, SyncTensor, p->n_tensors);
    for (unsigned i = 0; i < p->n_tensors; i++) {
        SyncTensor *t = b->tensors.data[i];
        Seen *s = ptr_map_get(&b->seen, t->value);
        t->checked = !t->mem->sync_exempt && s->written;
        if (t->space == SYNC_register)
            t->checked = t->checked && s->asynchronous;
        if (t->space == SYNC_barrier)
            t->checked = t->mem->barrier == BARRIER_mbarrier;
        Seen *g =
            t->value->ring_guard ? seen_of(b, t->value->ring_guard) : NULL;
        t->guard = g ? g->tensor->index : i;
        const Op *def = t->value->def;
        const ParDevice *dev = def ? par_device(p->par, def) : NULL;
        const ThreadSet *set = dev ? par_threads(p->par, def) : NULL;
        t->whole_cluster =
            set && set->threads == dev->block_dim * dev->cluster_dim;
        p->tensors[i] = *t;
        s->tensor = &p->tensors[i];
    }
}

/* ---- expressions -------------------------------------------------------- */

/* The expression on the base of window w of what e says of the window. */
static SyncExpr through_window(Build *b, const Op *w, const SyncExpr *e)
{
    const Access *a = w->operands[0].u.access;
    Arena *arena = b->p->arena;
    ExprCtx *x = b->p->m->exprs;
    bool map =
        w->results[0]->type->kind == TK_map && a->base->type->kind != TK_map;
    SyncExpr out = { .rank = a->rank };
    out.lo = ARENA_ARRAY(arena, const Affine *, a->rank);
    out.len = ARENA_ARRAY(arena, const Affine *, a->rank);
    if (map || e->clip_lo) {
        out.clip_lo = ARENA_ARRAY(arena, const Affine *, a->rank);
        out.clip_len = ARENA_ARRAY(arena, const Affine *, a->rank);
    }
    unsigned k = 0;
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        bool inner = d->kind == DIM_interval && k < e->rank;
        out.lo[i] = inner ? affine_add(x, d->lo, e->lo[k]) : d->lo;
        out.len[i] = inner ? e->len[k] : d->len;
        if (map) {
            out.clip_lo[i] = d->lo;
            out.clip_len[i] = d->len ? d->len : affine_const(x, 1);
        } else if (e->clip_lo && inner) {
            out.clip_lo[i] = affine_add(x, d->lo, e->clip_lo[k]);
            out.clip_len[i] = e->clip_len[k];
        } else if (e->clip_lo) {
            out.clip_lo[i] = d->lo;
            out.clip_len[i] = affine_const(x, 1);
        }
        k += d->kind == DIM_interval;
    }
    return out;
}

/* False where the storage is none that is followed. */
static bool expr_of(Build *b, const Access *a, SyncExpr *out)
{
    Arena *arena = b->p->arena;
    SyncExpr e = { .rank = a->rank };
    e.lo = ARENA_ARRAY(arena, const Affine *, a->rank);
    e.len = ARENA_ARRAY(arena, const Affine *, a->rank);
    for (unsigned i = 0; i < a->rank; i++) {
        e.lo[i] = a->dims[i].lo;
        e.len[i] = a->dims[i].kind == DIM_interval ? a->dims[i].len : NULL;
    }
    Value *v = a->base;
    for (const Op *w = window_of(v); w; w = window_of(v)) {
        e = through_window(b, w, &e);
        v = w->operands[0].u.access->base;
    }
    Seen *s = ptr_map_get(&b->seen, v);
    if (!s)
        return false;
    e.tensor = s->tensor->index;
    *out = e;
    return true;
}

/* ---- nodes -------------------------------------------------------------- */

static void build_block(Build *b, Block *block, List *list);

static SyncNode *add_node(Build *b, List *list, SyncNodeKind kind, Op *op)
{
    SyncNode *n = ARENA_NEW(b->p->arena, SyncNode);
    n->kind = kind;
    n->op = op;
    n->id = ++b->n_nodes;
    *list->end = n;
    list->end = &n->next;
    return n;
}

static SyncNode *build_body(Build *b, Block *block)
{
    List list = { 0 };
    list.end = &list.first;
    build_block(b, block, &list);
    return list.first;
}

/* A node with a body is kept where the body holds anything. */
static void add_scope(Build *b, List *list, SyncNodeKind kind, Op *op,
                      const SyncNode *from)
{
    SyncNode *body = build_body(b, op->blocks[0]);
    SyncNode *orelse = op->code == OP_ctl_if && op->n_blocks > 1
                           ? build_body(b, op->blocks[1])
                           : NULL;
    if (!body && !orelse)
        return;
    SyncNode *n = add_node(b, list, kind, op);
    n->var = from->var;
    n->lo = from->lo;
    n->hi = from->hi;
    n->iter = from->iter;
    n->cond = from->cond;
    n->body = body;
    n->orelse = orelse;
}

static void build_loop(Build *b, Op *op, List *list)
{
    SyncNode n = { .var = op->blocks[0]->args[0].var,
                   .lo = op->operands[0].u.index,
                   .hi = op->operands[1].u.index };
    bool threads = !strcmp(op_attr_str(op, "mode", "seq"), "threads");
    if (threads) {
        n.iter = par_iter(b->p->par, op);
        n.cond = par_guard(b->p->par, op);
    }
    add_scope(b, list, threads ? SYNC_threads : SYNC_loop, op, &n);
}

static const SyncTimeline *timeline_named(const Op *op, const char *key)
{
    return sync_timeline_find(op_attr_str(op, key, ""));
}

static const SyncExpr *exprs_of(Build *b, const Op *op, unsigned first,
                                unsigned n)
{
    SyncExpr *out = ARENA_ARRAY(b->p->arena, SyncExpr, n);
    for (unsigned i = 0; i < n; i++)
        if (op->operands[first + i].kind != OPND_access ||
            !expr_of(b, op->operands[first + i].u.access, &out[i]))
            return NULL;
    return out;
}

static void build_sync(Build *b, Op *op, List *list)
{
    bool fence = op->code == OP_par_fence;
    const SyncExpr *exprs = exprs_of(b, op, 0, op->n_operands);
    if (!fence && (!op->n_operands || !exprs))
        return;
    SyncNode *n = add_node(b, list,
                           fence                       ? SYNC_fence
                           : op->code == OP_par_arrive ? SYNC_arrive
                                                       : SYNC_await,
                           op);
    n->first = timeline_named(op, "first");
    n->second = timeline_named(op, "second");
    n->n = op_attr_int(op, "n", 0);
    n->n_exprs = op->n_operands;
    n->exprs = exprs;
    n->tensor = fence ? 0 : exprs[0].tensor;
}

/* ---- accesses ----------------------------------------------------------- */

static SyncNode *build_access(Build *b, Op *op, List *list, const Access *a,
                              unsigned flags)
{
    SyncExpr *e = ARENA_NEW(b->p->arena, SyncExpr);
    if (!expr_of(b, a, e) || !b->p->tensors[e->tensor].checked)
        return NULL;
    const Mem *mem = b->p->tensors[e->tensor].mem;
    uint32_t initial, extended;
    if (!mem->qual_family ||
        !qual_family_lookup(mem->qual_family, timeline_of(b->p->m, op),
                            &initial, &extended)) {
        give_up(b, op, "an access has no timeline");
        return NULL;
    }
    SyncNode *n = add_node(b, list, SYNC_access, op);
    n->tensor = e->tensor;
    n->n_exprs = 1;
    n->exprs = e;
    n->flags = flags;
    n->initial = (uint32_t)__builtin_ctz(initial);
    n->extended = extended;
    return n;
}

static unsigned param_flags(const InstrParam *p)
{
    unsigned flags = 0;
    if (p->flags & (ACC_WRITE | ACC_REDUCE))
        flags |= SYNC_MUTATE;
    if (p->write_only)
        flags |= SYNC_WRITE_ONLY;
    if (p->out_of_order)
        flags |= SYNC_OUT_OF_ORDER;
    if (p->flags & ACC_ATOMIC)
        flags |= SYNC_ATOMIC;
    return flags;
}

static void build_operand(Build *b, Op *op, List *list, const Instr *in,
                          unsigned i)
{
    SyncNode *n = build_access(b, op, list, op->operands[i].u.access,
                               param_flags(&in->params[i]));
    if (!n)
        return;
    if (qual_timeline(n->initial)->convergent)
        n->flags |= SYNC_CONVERGENT;
    if (!op_attr_int(op, "trailing", 0))
        return;
    n->trailing = exprs_of(b, op, op->n_operands - 1, 1);
    n->n_trailing = n->trailing ? 1 : 0;
    if (in->params[i].n_distributed == in->n_trailing_units)
        n->n_spread = in->n_trailing_units;
    n->scattered = n->n_spread && in->params[i].scattered;
}

/* What is read comes before what is written. */
static void build_instr(Build *b, Op *op, List *list)
{
    const Instr *in = op_instr(b->p->m, op);
    if (!in)
        return;
    for (unsigned writes = 0; writes < 2; writes++)
        for (unsigned i = 0; i < in->n_params && i < op->n_operands; i++) {
            bool w = in->params[i].flags & (ACC_WRITE | ACC_REDUCE);
            if (op->operands[i].kind == OPND_access && w == (writes == 1))
                build_operand(b, op, list, in, i);
        }
}

static void build_alloc(Build *b, Op *op, List *list)
{
    Seen *s = ptr_map_get(&b->seen, op->results[0]);
    if (!s || (!s->tensor->checked && s->tensor->space != SYNC_barrier))
        return;
    SyncNode *n = add_node(b, list, SYNC_alloc, op);
    n->tensor = s->tensor->index;
}

static void build_op(Build *b, Op *op, List *list)
{
    SyncNode from = { 0 };
    switch (op->code) {
    case OP_ctl_for:
        build_loop(b, op, list);
        break;
    case OP_ctl_if:
        from.cond = op->operands[0].u.cond;
        add_scope(b, list, SYNC_if, op, &from);
        break;
    case OP_par_warps:
        from.cond = par_guard(b->p->par, op);
        add_scope(b, list, SYNC_warps, op, &from);
        break;
    case OP_mem_alloc:
        build_alloc(b, op, list);
        break;
    case OP_mem_load:
        build_access(b, op, list, op->operands[0].u.access, 0);
        break;
    case OP_mem_store:
        build_access(b, op, list, op->operands[0].u.access,
                     SYNC_MUTATE | SYNC_WRITE_ONLY | SYNC_CONVERGENT);
        break;
    case OP_mem_reduce:
        build_access(b, op, list, op->operands[0].u.access,
                     SYNC_MUTATE | SYNC_CONVERGENT);
        break;
    case OP_par_instr:
        build_instr(b, op, list);
        break;
    case OP_par_fence:
    case OP_par_arrive:
    case OP_par_await:
        build_sync(b, op, list);
        break;
    default:
        break;
    }
}

static void build_block(Build *b, Block *block, List *list)
{
    for (Op *op = block->first; op; op = op->next)
        build_op(b, op, list);
}

/* ---- devices ------------------------------------------------------------ */

static bool count_device(Op *op, void *user)
{
    *(unsigned *)user += op->code == OP_par_device;
    return op->code != OP_par_device;
}

static void build_device(Build *b, Op *op)
{
    const ParDevice *par = par_device(b->p->par, op);
    if (!par)
        return;
    Arena *arena = b->p->arena;
    SyncDevice *d = &b->p->devices[b->p->n_devices++];
    VarId *vars = ARENA_ARRAY(arena, VarId, par->n_tasks);
    d->par = par;
    d->op = op;
    d->n_tasks = par->n_tasks;
    d->task_vars = vars;
    d->task_lo = ARENA_ARRAY(arena, const Affine *, par->n_tasks);
    d->task_hi = ARENA_ARRAY(arena, const Affine *, par->n_tasks);
    for (unsigned i = 0; i < par->n_tasks; i++) {
        vars[i] = par->tasks[i]->blocks[0]->args[0].var;
        d->task_lo[i] = par->tasks[i]->operands[0].u.index;
        d->task_hi[i] = par->tasks[i]->operands[1].u.index;
    }
    d->body = build_body(b, par->body);
}

static bool second_walk(Op *op, void *user)
{
    if (op->code != OP_par_device)
        return true;
    build_device(user, op);
    return false;
}

SyncProgram *sync_program_build(Ctx *ctx, Module *m, Op *proc, Arena *arena)
{
    SyncProgram *p = ARENA_NEW(arena, SyncProgram);
    *p = (SyncProgram){ .m = m, .proc = proc, .arena = arena };
    unsigned n_devices = 0;
    op_walk(proc, count_device, &n_devices);
    if (!n_devices)
        return p;
    p->par = par_analyze(ctx, m, proc);
    if (!par_ok(p->par))
        return NULL;
    Build b = { .ctx = ctx, .p = p };
    for (unsigned i = 0; i < proc->blocks[0]->n_args; i++)
        if (proc->blocks[0]->args[i].value)
            add_tensor(&b, proc->blocks[0]->args[i].value);
    op_walk(proc, first_walk, &b);
    decide_tensors(&b);
    p->devices = ARENA_ARRAY(arena, SyncDevice, n_devices);
    op_walk(proc, second_walk, &b);
    p->n_nodes = b.n_nodes;
    return p;
}
