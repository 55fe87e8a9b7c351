/* What an instruction's body does to its parameters.
 *
 * Reads, writes and reductions come from op_accesses. A parameter is reduced
 * into when sums are all that touches it, for only then do two calls change
 * places. It is write-only when nothing reads it and one store covers it: its
 * indices are distinct iterators that run over the whole of each dimension, and
 * no condition stands above it. */
#include "ir/lib_entry.h"

typedef struct Walk {
    Module *m;
    Arena *arena;
    const Op *body;
    unsigned n;
    InstrParam *params;
    bool *covered, *otherwise; /* otherwise: touched by more than sums */
} Walk;

/* The loop of the body whose iterator v is, or NULL. */
static const Op *loop_of(const Op *op, VarId v)
{
    for (op = op_parent(op); op; op = op_parent(op))
        if (op->code == OP_ctl_for && op->blocks[0]->n_args &&
            op->blocks[0]->args[0].var == v)
            return op;
    return NULL;
}

static bool runs_over(const Op *op, const AccessDim *dim, const Affine *extent)
{
    VarId v;
    if (dim->kind != DIM_point || !affine_is_var(dim->lo, &v))
        return false;
    const Op *loop = loop_of(op, v);
    int64_t lo;
    return loop && affine_is_const(loop->operands[0].u.index, &lo) && lo == 0 &&
           loop->operands[1].u.index == extent;
}

static bool covers(const Op *op, const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++) {
        if (!runs_over(op, &a->dims[i], a->base->shape[i]))
            return false;
        for (unsigned k = 0; k < i; k++)
            if (a->dims[k].lo == a->dims[i].lo)
                return false;
    }
    for (const Op *up = op_parent(op); up; up = op_parent(up))
        if (up->code == OP_ctl_if)
            return false;
    return true;
}

static bool visit(Op *op, void *user)
{
    Walk *w = user;
    OpAccessVec found = { 0 };
    op_accesses(w->m, op, w->arena, &found);
    for (size_t i = 0; i < found.len; i++) {
        const OpAccess *f = &found.data[i];
        const Value *root = value_root(f->access->base);
        if (root->owner != w->body->blocks[0] || root->index >= w->n)
            continue;
        w->params[root->index].flags |= f->flags;
        if (!(f->flags & ACC_REDUCE))
            w->otherwise[root->index] = true;
        if (op->code == OP_mem_store && f->access->base == root &&
            covers(op, f->access))
            w->covered[root->index] = true;
    }
    return true;
}

void instr_footprint(Module *m, const Op *body, unsigned n, InstrParam *params)
{
    Arena *arena = arena_new();
    Walk w = { .m = m,
               .arena = arena,
               .body = body,
               .n = n,
               .params = params,
               .covered = ARENA_ARRAY(arena, bool, n + 1),
               .otherwise = ARENA_ARRAY(arena, bool, n + 1) };
    block_walk(body->blocks[0], visit, &w);
    for (unsigned i = 0; i < n; i++)
        if (w.otherwise[i])
            params[i].flags &= ~(unsigned)ACC_REDUCE;
    for (unsigned i = 0; i < n; i++)
        params[i].write_only = w.covered[i] && params[i].flags == ACC_WRITE;
    arena_free(arena);
}
