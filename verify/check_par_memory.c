/* What an allocation may look like: constant shapes on the device, packed
 * dimensions, managed rings and their guards. */
#include "verify/check_par_internal.h"

/* ---- shapes ------------------------------------------------------------- */

static bool is_const_dim(const Value *v, unsigned i, int64_t *out)
{
    return affine_is_const(v->shape[i], out);
}

/* From dimension `first` up to the packed ones, which check_packed looks at. */
static void check_constant_shape(ParCheck *c, const Op *op, const Value *v,
                                 const Mem *mem, unsigned first)
{
    for (unsigned i = first; i + mem->packed < v->type->rank; i++) {
        int64_t n;
        if ((int)i == v->ring_dim || is_const_dim(v, i, &n))
            continue;
        Diag *d = pc_error(c, op, "memory",
                           "%s: %s requires constant shape, "
                           "found %s",
                           par_text_value(v), par_text_mem(c->m, mem->ref),
                           par_text_shape(c->m, v, first));
        diag_fix(c->ctx, d,
                 "use a literal extent, or make the dimension a "
                 "managed ring buffer");
        return;
    }
}

static void check_packed(ParCheck *c, const Op *op, const Value *v,
                         const Mem *mem)
{
    if (v->type->rank < mem->packed) {
        pc_error(c, op, "memory",
                 "%s: %s must be at least %u-dimensional, "
                 "found %u dimensions",
                 par_text_value(v), par_text_mem(c->m, mem->ref), mem->packed,
                 v->type->rank);
        return;
    }
    unsigned first = v->type->rank - mem->packed;
    for (unsigned i = 0; i < mem->packed; i++) {
        int64_t n;
        if (!is_const_dim(v, first + i, &n)) {
            pc_error(c, op, "memory",
                     "%s: Required constant packed tensor "
                     "shape for %s, found %s",
                     par_text_value(v), par_text_mem(c->m, mem->ref),
                     par_text_shape(c->m, v, first));
            return;
        }
        if (mem->packed_shape && n != mem->packed_shape[i]) {
            pc_error(c, op, "memory",
                     "%s: packed tensor shape not supported "
                     "by %s: expected %lld for its %s dimension, found %lld",
                     par_text_value(v), par_text_mem(c->m, mem->ref),
                     (long long)mem->packed_shape[i],
                     i + 1 == mem->packed ? "last" : "next to last",
                     (long long)n);
            return;
        }
    }
}

/* The packed part is as large as the memory says. */
static void check_fills(ParCheck *c, const Op *op, const Value *v,
                        const Mem *mem)
{
    int64_t one = 8 * scalar_type_bytes(v->type->elem), bits = one, n;
    if (!mem->fills || v->type->rank < mem->packed || mem->fills % one)
        return;
    unsigned first = v->type->rank - mem->packed;
    for (unsigned i = first; i < v->type->rank; i++) {
        if (!is_const_dim(v, i, &n) || n < 1)
            return;
        bits = n > mem->fills ? INT32_MAX : bits * n;
    }
    if (bits == mem->fills)
        return;
    Diag *d = pc_error(c, op, "memory",
                       "%s: packed tensor shape not supported by %s: %s of %s "
                       "do not fill %u bits",
                       par_text_value(v), par_text_mem(c->m, mem->ref),
                       par_text_shape(c->m, v, first),
                       scalar_type_name(v->type->elem), mem->fills);
    diag_fix(c->ctx, d, "let the last dimension be %lld",
             (long long)(mem->fills / one));
}

static void check_elem(ParCheck *c, const Op *op, const Value *v,
                       const Mem *mem)
{
    if (!mem_holds(mem, v->type->elem))
        pc_error(c, op, "memory", "%s: %s does not hold elements of type %s",
                 par_text_value(v), par_text_mem(c->m, mem->ref),
                 scalar_type_name(v->type->elem));
}

/* ---- managed rings ------------------------------------------------------ */

static void check_guard(ParCheck *c, const Op *op, const Value *v)
{
    const Value *g = v->ring_guard;
    const char *name = par_text_value(v);
    if (!g) {
        Diag *d = pc_error(c, op, "ring",
                           "managed ring buffer %s must say "
                           ".ring_guarded_by(barrier)",
                           name);
        diag_fix(c->ctx, d,
                 "name the barrier that says when a slot may be "
                 "written again");
        return;
    }
    if (g->type->kind != TK_barrier)
        pc_error(c, op, "ring",
                 "%s: ring_guarded_by requires barrier type, "
                 "%s is none",
                 name, par_text_value(g));
    else if (g->type->rank > v->type->rank)
        pc_error(c, op, "ring",
                 "%s: its guard %s has more dimensions, %u "
                 "against %u",
                 name, par_text_value(g), g->type->rank, v->type->rank);
    else if (g->ring_dim != v->ring_dim)
        pc_error(c, op, "ring",
                 "%s: its guard %s has the managed ring buffer "
                 "dimension at index %d, not %d",
                 name, par_text_value(g), g->ring_dim, v->ring_dim);
}

static void check_barrier_ring(ParCheck *c, const Op *op, const Value *v,
                               const Mem *mem, unsigned n_dist)
{
    if (v->ring_guard)
        pc_error(c, op, "ring", "barrier %s must not say .ring_guarded_by",
                 par_text_value(v));
    if (mem->barrier != BARRIER_mbarrier)
        return;
    if (v->ring_dim < 0 || (unsigned)v->ring_dim < n_dist) {
        Diag *d = pc_error(c, op, "ring",
                           "%s: %s: missing (non-distributed) "
                           "managed ring buffer dimension (@ ring_buffer_by)",
                           par_text_value(v), par_text_mem(c->m, mem->ref));
        diag_fix(c->ctx, d,
                 "write one extent as `n @ (ring_buffer_by("
                 "depth=d))`, d = 1 for a single slot");
    } else if (mem->pre_arrive > v->ring_depth) {
        pc_error(c, op, "ring", "%s: pre-arrive %lld exceeds ring_depth %lld",
                 par_text_value(v), (long long)mem->pre_arrive,
                 (long long)v->ring_depth);
    }
}

static void check_ring(ParCheck *c, const Op *op, const Value *v,
                       const Mem *mem)
{
    const ParAlloc *a = par_alloc(c->pi, v);
    unsigned n_dist = a ? a->n_dist : 0;
    if (v->ring_dim >= 0 && v->ring_depth < 1)
        pc_error(c, op, "ring",
                 "%s: Expected ring_buffer_by.depth > 0, found "
                 "%lld",
                 par_text_value(v), (long long)v->ring_depth);
    if (mem->family == MEMF_barrier) {
        check_barrier_ring(c, op, v, mem, n_dist);
        return;
    }
    if (v->ring_dim < 0) {
        if (v->ring_guard)
            pc_error(c, op, "ring",
                     "%s says .ring_guarded_by but has no "
                     "managed ring buffer dimension",
                     par_text_value(v));
        return;
    }
    check_guard(c, op, v);
    if ((unsigned)v->ring_dim < n_dist)
        pc_error(c, op, "ring",
                 "%s: the managed ring buffer dimension is "
                 "distributed over threads",
                 par_text_value(v));
}

/* A window keeps what is spread over threads as it is. */
static void check_window(ParCheck *c, const Op *op)
{
    const Access *root = access_compose(c->m, op->operands[0].u.access);
    const ParAlloc *a = par_alloc(c->pi, root->base);
    for (unsigned i = 0; a && i < a->n_dist; i++) {
        if (root->dims[i].kind != DIM_interval)
            continue;
        Diag *d = pc_error(c, op, "distribution",
                           "window %s: no interval may stand on distributed "
                           "dimension idx[%u] of %s",
                           par_text_value(op->results[0]), i,
                           par_text_access(c->m, root));
        diag_fix(c->ctx, d, "index it by the thread iterator");
        return;
    }
}

/* ---- the walk over allocations ------------------------------------------ */

/* A memory without a native unit stands for others in instruction parameters:
 * nothing says whose a tensor in it is. */
static bool check_concrete(ParCheck *c, const Op *op, const Mem *mem)
{
    if (mem->native_unit ||
        (mem->family != MEMF_shared && mem->family != MEMF_register &&
         mem->family != MEMF_barrier))
        return true;
    Diag *d =
        pc_error(c, op, "memory",
                 "%s: nothing can be allocated in %s, which has no "
                 "native unit",
                 par_text_value(op->results[0]), par_text_mem(c->m, mem->ref));
    diag_fix(c->ctx, d, "name a memory that says `unit U`");
    return false;
}

static void check_device_alloc(ParCheck *c, Op *op, const Mem *mem)
{
    if (!check_concrete(c, op, mem))
        return;
    const Value *v = op->results[0];
    const ParAlloc *a = par_alloc(c->pi, v);
    if (a && a->used && !a->first_use)
        return; /* its distribution is not known: that was reported */
    check_ring(c, op, v, mem);
    check_constant_shape(c, op, v, mem, a ? a->n_dist : 0);
    if (a && !a->used)
        diag_warning(c->ctx, op->loc, "memory", "%s is never used",
                     par_text_value(v));
}

/* The memory of v, which the analysis of device code did not look at; NULL
 * after an error, or where no library is loaded. */
static const Mem *known_mem(ParCheck *c, const Op *at, Value *v)
{
    const MemRef *ref = v->type->mem;
    const Mem *mem = pc_mem(c, v);
    if (mem || !ref || !c->m->lib)
        return mem;
    mem = lib_mem(c->m->lib, at->loc, ref);
    c->ok = c->ok && mem;
    return mem;
}

static bool check_alloc(Op *op, void *user)
{
    ParCheck *c = user;
    if (op->code == OP_mem_window) {
        Value *w = op->results[0];
        const Mem *mem = w->type->kind == TK_map ? pc_mem(c, w) : NULL;
        check_window(c, op);
        if (mem)
            check_elem(c, op, w, mem);
    }
    if (op->code != OP_mem_alloc)
        return true;
    const Value *v = op->results[0];
    const Mem *mem = pc_on_device(op) ? pc_mem(c, op->results[0])
                                      : known_mem(c, op, op->results[0]);
    if (!mem)
        return true;
    if ((v->type->kind == TK_barrier) != (mem->family == MEMF_barrier)) {
        pc_error(c, op, "memory", "%s: %s is %s", par_text_value(v),
                 par_text_mem(c->m, mem->ref),
                 mem->family == MEMF_barrier ? "a barrier mechanism, not a "
                                               "memory of data"
                                             : "no barrier mechanism");
        return true;
    }
    check_packed(c, op, v, mem);
    check_fills(c, op, v, mem);
    check_elem(c, op, v, mem);
    if (pc_on_device(op))
        check_device_alloc(c, op, mem);
    else if (v->ring_dim >= 0)
        pc_error(c, op, "ring",
                 "%s: a managed ring buffer is not allowed in a "
                 "scope using cpu_in_order",
                 par_text_value(v));
    else if (mem->family == MEMF_grid_constant)
        check_constant_shape(c, op, v, mem, 0);
    return true;
}

/* Memories are known; a grid constant is copied into a kernel's parameters. */
static void check_params(ParCheck *c)
{
    const Block *params = c->proc->blocks[0];
    for (unsigned i = 0; i < params->n_args; i++) {
        Value *v = params->args[i].value;
        const Mem *mem = v ? known_mem(c, c->proc, v) : NULL;
        if (mem && mem->family == MEMF_grid_constant)
            check_constant_shape(c, c->proc, v, mem, 0);
    }
}

void check_par_memories(ParCheck *c)
{
    check_params(c);
    op_walk(c->proc, check_alloc, c);
}
