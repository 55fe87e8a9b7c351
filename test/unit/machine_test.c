/* The machine model on kernels built by hand: a ring fed by tensor-map loads,
 * right and broken in each way that must be found. */
#include "verify/machine/machine.h"

#include "ir_build.h"

#include <criterion/criterion.h>
#include <string.h>

enum { ROWS = 4, COLS = 32, DEPTH = 2 };

typedef enum Fault {
    FAULT_none,
    FAULT_no_expect,
    FAULT_parity,
    FAULT_no_arrive,
    FAULT_no_wait,
    FAULT_no_init,
    FAULT_too_many,
    FAULT_row,
    FAULT_two_threads
} Fault;

typedef struct Pipe {
    Maker k;
    Op *host;
    Value *tile, *full, *empty, *map, *y;
    VarId lane, warp, n;
    Fault fault;
} Pipe;

static Value *mbarriers(Pipe *p, const char *name, int64_t offset,
                        int64_t count)
{
    Op *op = mk_op(&p->k, OP_async_mbarrier_alloc, 0, 1, 0);
    op_set_int(p->k.m, op, "offset", offset);
    op_set_int(p->k.m, op, "count", count);
    Value *v = op_set_result(p->k.m, op, 0, type_mbarrier(p->k.ctx, 1), name);
    v->shape[0] = mk_c(&p->k, DEPTH);
    return v;
}

static Operand ring_at(Pipe *p, Value *v, Value *ring)
{
    Access *a = access_new(p->k.m, v);
    a->dims[0] = (AccessDim){ .kind = DIM_ring, .ring = ring };
    return opnd_access(a);
}

static Op *sync_op(Pipe *p, OpCode code, Operand at)
{
    Op *op = mk_op(&p->k, code, 1, 0, 0);
    op->operands[0] = at;
    return op;
}

static Value *ring_init(Pipe *p, int64_t position)
{
    Op *op = mk_op(&p->k, OP_async_ring_init, 0, 1, 0);
    op_set_int(p->k.m, op, "position", position);
    return op_set_result(p->k.m, op, 0, type_ring(p->k.ctx, DEPTH), NULL);
}

static Value *ring_next(Pipe *p, Value *ring)
{
    Op *op = mk_op(&p->k, OP_async_ring_advance, 2, 1, 0);
    op->operands[0] = opnd_value(ring);
    op->operands[1] = opnd_index(mk_c(&p->k, 1));
    return op_set_result(p->k.m, op, 0, ring->type, NULL);
}

/* A loop over the tiles that carries two rings; stands in its body. */
static Op *ring_loop(Pipe *p, Value *a, Value *b, VarId *t, Value **ra,
                     Value **rb)
{
    Op *op = op_new(p->k.m, OP_ctl_for, (Loc){ 0 }, 4, 2, 1);
    block_append(p->k.b, op);
    op->operands[0] = opnd_index(mk_c(&p->k, 0));
    op->operands[1] = opnd_index(mk_v(&p->k, p->n));
    op->operands[2] = opnd_value(a);
    op->operands[3] = opnd_value(b);
    op_set_result(p->k.m, op, 0, a->type, NULL);
    op_set_result(p->k.m, op, 1, b->type, NULL);
    p->k.b = op->blocks[0];
    *t = block_add_var(p->k.m, p->k.b, "t", VAR_iter);
    *ra = block_add_value(p->k.m, p->k.b, a->type, NULL);
    *rb = block_add_value(p->k.m, p->k.b, b->type, NULL);
    return op;
}

static void end_loop(Pipe *p, Value *a, Value *b)
{
    Value *na = ring_next(p, a), *nb = ring_next(p, b);
    Op *y = mk_op(&p->k, OP_ctl_yield, 2, 0, 0);
    y->operands[0] = opnd_value(na);
    y->operands[1] = opnd_value(nb);
    mk_end(&p->k);
}

static void role(Pipe *p, const char *name, int64_t lo)
{
    Op *op = mk_op(&p->k, OP_async_role, 0, 0, 1);
    op_set_str(p->k.m, op, "name", name);
    op_set_int(p->k.m, op, "lo", lo);
    op_set_int(p->k.m, op, "hi", lo + 1);
    p->k.b = op->blocks[0];
}

static void elect(Pipe *p)
{
    p->k.b = mk_op(&p->k, OP_async_elect, 0, 0, 1)->blocks[0];
}

static void producer(Pipe *p)
{
    VarId t;
    Value *re, *rf;
    Value *e0 = ring_init(p, p->fault == FAULT_parity ? 0 : -DEPTH);
    ring_loop(p, e0, ring_init(p, 0), &t, &re, &rf);
    sync_op(p, OP_async_mbarrier_wait, ring_at(p, p->empty, re));
    if (p->fault != FAULT_two_threads)
        elect(p);
    if (p->fault != FAULT_no_expect) {
        Op *x =
            sync_op(p, OP_async_mbarrier_expect_tx, ring_at(p, p->full, rf));
        op_set_int(p->k.m, x, "bytes", ROWS * COLS * 4);
    }
    Op *load = mk_op(&p->k, OP_async_bulk_tensor_load, 3, 0, 0);
    Access *to = access_new(p->k.m, p->tile);
    to->dims[0] = (AccessDim){ .kind = DIM_ring, .ring = rf };
    to->dims[1] = (AccessDim){ .kind = DIM_interval,
                               .lo = mk_c(&p->k, 0),
                               .len = mk_c(&p->k, ROWS) };
    to->dims[2] = (AccessDim){ .kind = DIM_interval,
                               .lo = mk_c(&p->k, 0),
                               .len = mk_c(&p->k, COLS) };
    load->operands[0] = opnd_access(to);
    load->operands[1] = mk_box(&p->k, p->map, mk_lin(&p->k, ROWS, t, 0), ROWS,
                               mk_c(&p->k, 0), COLS);
    load->operands[2] = ring_at(p, p->full, rf);
    if (p->fault != FAULT_no_arrive)
        sync_op(p, OP_async_mbarrier_arrive, ring_at(p, p->full, rf));
    if (p->fault == FAULT_too_many)
        sync_op(p, OP_async_mbarrier_arrive, ring_at(p, p->full, rf));
    if (p->fault != FAULT_two_threads)
        mk_end(&p->k);
    end_loop(p, re, rf);
}

static void consumer(Pipe *p)
{
    VarId t;
    Value *re, *rf;
    Value *e0 = ring_init(p, 0);
    ring_loop(p, e0, ring_init(p, 0), &t, &re, &rf);
    if (p->fault != FAULT_no_wait)
        sync_op(p, OP_async_mbarrier_wait, ring_at(p, p->full, rf));
    for (int64_t r = 0; r < ROWS; r++) {
        Access *a = access_new(p->k.m, p->tile);
        a->dims[0] = (AccessDim){ .kind = DIM_ring, .ring = rf };
        a->dims[1] =
            (AccessDim){ .kind = DIM_point,
                         .lo =
                             mk_c(&p->k, r + (p->fault == FAULT_row ? 1 : 0)) };
        a->dims[2] =
            (AccessDim){ .kind = DIM_point, .lo = mk_v(&p->k, p->lane) };
        mk_store(
            &p->k,
            mk_at(&p->k, p->y, mk_lin(&p->k, ROWS, t, r), mk_v(&p->k, p->lane)),
            mk_load(&p->k, opnd_access(a)));
    }
    sync_op(p, OP_async_mbarrier_arrive, ring_at(p, p->empty, re));
    end_loop(p, re, rf);
}

static void shared_objects(Pipe *p)
{
    Maker *k = &p->k;
    Param span = { .kind = PARAM_int, .i = 128 };
    const MemRef *mem = memref_get(k->ctx, "Sm90_SmemSwizzled", 1, &span);
    Op *tile = mk_op(k, OP_mem_alloc, 0, 1, 0);
    op_set_int(k->m, tile, "offset", 0);
    p->tile = op_set_result(
        k->m, tile, 0, type_tensor(k->ctx, TK_tensor, TY_f32, 3, mem), "tile");
    p->tile->shape[0] = mk_c(k, DEPTH);
    p->tile->shape[1] = mk_c(k, ROWS);
    p->tile->shape[2] = mk_c(k, COLS);
    p->full = mbarriers(p, "full", 1024, 1);
    p->empty = mbarriers(p, "empty", 1040, 32);
}

static void setup(Pipe *p)
{
    Maker *k = &p->k;
    Op *first = mk_op(k, OP_ctl_if, 1, 0, 1);
    first->operands[0] =
        opnd_cond(cond_cmp(k->m->exprs, CMP_eq, mk_v(k, p->warp), mk_c(k, 0)));
    k->b = first->blocks[0];
    elect(p);
    if (p->fault != FAULT_no_init)
        sync_op(p, OP_async_mbarrier_init, opnd_value(p->full));
    sync_op(p, OP_async_mbarrier_init, opnd_value(p->empty));
    mk_op(k, OP_async_fence_mbarrier_init, 0, 0, 0);
    mk_end(k);
    mk_end(k);
    Op *sync = mk_op(k, OP_async_barrier_cta_sync, 0, 0, 0);
    op_set_int(k->m, sync, "id", 0);
    op_set_int(k->m, sync, "threads", 64);
}

static Pipe make_pipe(Fault fault)
{
    Pipe p = { .fault = fault };
    Maker *k = &p.k;
    k->ctx = ctx_new();
    k->m = module_new(k->ctx);
    const Type *map =
        type_tensor(k->ctx, TK_map, TY_f32, 2, mk_map_mem(k, 128, ROWS, COLS));
    Op *kernel = mk_symbol(k, OP_async_kernel, "pipe_kernel");
    op_set_int(k->m, kernel, "blockDim", 64);
    op_set_int(k->m, kernel, "clusterDim", 1);
    op_set_int(k->m, kernel, "blocks_per_sm", 1);
    op_set_int(k->m, kernel, "smem_bytes", 1056);
    p.n = block_add_var(k->m, k->b, "T", VAR_size);
    p.map = block_add_value(k->m, k->b, map, "map");
    p.y = block_add_value(k->m, k->b, mk_tensor(k, TY_f32, 2, "CudaGmemLinear"),
                          "y");
    mk_shape(p.map, mk_lin(k, ROWS, p.n, -1), mk_c(k, COLS));
    mk_shape(p.y, mk_lin(k, ROWS, p.n, 0), mk_c(k, COLS));
    block_add_var(k->m, k->b, "cta", VAR_coord);
    p.warp = block_add_var(k->m, k->b, "warp", VAR_coord);
    p.lane = block_add_var(k->m, k->b, "lane", VAR_coord);
    shared_objects(&p);
    setup(&p);
    role(&p, "producer", 0);
    producer(&p);
    mk_end(k);
    role(&p, "consumer", 1);
    consumer(&p);

    p.host = mk_symbol(k, OP_host_proc, "pipe");
    VarId n = block_add_var(k->m, k->b, "T", VAR_size);
    Value *x = block_add_value(k->m, k->b,
                               mk_tensor(k, TY_f32, 2, "CudaGmemLinear"), "x");
    Value *y = block_add_value(k->m, k->b,
                               mk_tensor(k, TY_f32, 2, "CudaGmemLinear"), "y");
    mk_shape(x, mk_lin(k, ROWS, n, -1), mk_c(k, COLS));
    mk_shape(y, mk_lin(k, ROWS, n, 0), mk_c(k, COLS));
    Op *make = mk_op(k, OP_host_tensor_map, 1, 1, 0);
    Access *all = access_new(k->m, x);
    for (unsigned d = 0; d < 2; d++)
        all->dims[d] = (AccessDim){ .kind = DIM_interval,
                                    .lo = mk_c(k, 0),
                                    .len = x->shape[d] };
    make->operands[0] = opnd_access(all);
    Value *m = op_set_result(k->m, make, 0, map, "map");
    Op *launch = mk_op(k, OP_host_launch, 3, 0, 0);
    op_set_str(k->m, launch, "kernel", "pipe_kernel");
    Access *out = access_new(k->m, y);
    for (unsigned d = 0; d < 2; d++)
        out->dims[d] = (AccessDim){ .kind = DIM_interval,
                                    .lo = mk_c(k, 0),
                                    .len = y->shape[d] };
    launch->operands[0] = opnd_index(mk_v(k, n));
    launch->operands[1] = opnd_value(m);
    launch->operands[2] = opnd_access(out);
    return p;
}

/* x has one row less than the tiles: the last row is zeros. */
static bool run_pipe(Pipe *p, int64_t tiles, const MachineOptions *o)
{
    int64_t ex[2] = { ROWS * tiles - 1, COLS }, ey[2] = { ROWS * tiles, COLS };
    Tensor *x = tensor_new("x", TY_f32, 2, ex);
    Tensor *y = tensor_new("y", TY_f32, 2, ey);
    for (int64_t i = 0; i < x->count; i++)
        tensor_set(x, i, (double)i);
    ProcArg args[3] = { { .value = tiles }, { .tensor = x }, { .tensor = y } };
    bool ok = machine_run(p->k.m, p->host, args, 3, o);
    for (int64_t i = 0; ok && i < y->count; i++)
        ok = y->written[i] &&
             tensor_get(y, i) == (i < x->count ? (double)i : 0.0);
    tensor_free(x);
    tensor_free(y);
    return ok;
}

static char *messages(Pipe *p)
{
    StrBuf all = { 0 };
    for (const Diag *d = ctx_diags(p->k.ctx); d; d = d->next)
        diag_render(p->k.ctx, d, &all);
    char *text = arena_strdup(ctx_arena(p->k.ctx), strbuf_text(&all));
    strbuf_free(&all);
    return text;
}

static const MachineOptions canonical = { .canonical = true };

Test(machine, runs_a_ring)
{
    Pipe p = make_pipe(FAULT_none);
    bool ok = run_pipe(&p, 5, &canonical);
    cr_assert(ok, "%s", messages(&p));
    for (uint64_t seed = 1; seed <= 30; seed++)
        cr_assert(run_pipe(&p, 5, &(MachineOptions){ .seed = seed }), "%s",
                  messages(&p));
}

static void refuses(Fault fault, const char *expected, const char *also)
{
    Pipe p = make_pipe(fault);
    cr_assert_not(run_pipe(&p, 5, &canonical));
    char *text = messages(&p);
    cr_assert(strstr(text, expected), "%s", text);
    cr_assert(!also || strstr(text, also), "%s", text);
}

Test(machine, finds_a_missing_expect_tx)
{
    refuses(FAULT_no_expect, "never written", NULL);
}

Test(machine, finds_a_wrong_parity)
{
    refuses(FAULT_parity, "deadlock in kernel 'pipe_kernel'",
            "empty[0] for parity 0: phase 0 (parity 0) is not complete, 32 of "
            "32 arrivals are missing");
}

Test(machine, finds_a_missing_arrive)
{
    refuses(FAULT_no_arrive, "deadlock in kernel 'pipe_kernel'",
            "warp 1 (consumer) at 'async.mbarrier.wait' waits for full[0]");
}

Test(machine, finds_a_missing_wait)
{
    refuses(FAULT_no_wait, "'mem.load': reads tile at shared byte",
            "role consumer, t = 0");
}

Test(machine, finds_an_mbarrier_that_was_not_initialised)
{
    refuses(FAULT_no_init, "was not initialised", NULL);
}

Test(machine, finds_too_many_arrivals)
{
    refuses(FAULT_too_many, "more often than its count of 1 in phase 0", NULL);
}

Test(machine, finds_an_index_out_of_bounds)
{
    refuses(FAULT_row, "index 4 of dimension 1 is outside 'tile'", NULL);
}

Test(machine, finds_a_copy_by_several_threads)
{
    refuses(FAULT_two_threads, "one thread must start a copy", NULL);
}

/* Counts what an observer sees. */
typedef struct Counter {
    MachineObserver base;
    unsigned n[MEV_KINDS];
} Counter;

static void count_event(MachineObserver *self, const MachineEvent *e)
{
    ((Counter *)self)->n[e->kind]++;
}

Test(machine, tells_observers)
{
    Pipe p = make_pipe(FAULT_none);
    Counter c = { .base = { .wants = ~0u, .event = count_event } };
    MachineObserver *list[1] = { &c.base };
    MachineOptions o = { .canonical = true,
                         .n_observers = 1,
                         .observers = list };
    cr_assert(run_pipe(&p, 5, &o));
    cr_assert_eq(c.n[MEV_issue], 5);
    cr_assert_eq(c.n[MEV_finish], 5);
    cr_assert_eq(c.n[MEV_phase], 10);
    cr_assert_eq(c.n[MEV_exit], 2);
    cr_assert_eq(c.n[MEV_role], 2);
    /* full: 5 arrivals and 5 deliveries; empty: 32 arrivals for each of 5;
     * each of the ten phases is waited for once; two warps meet. */
    cr_assert_eq(c.n[MEV_arrive], 5 + 32 * 5);
    cr_assert_eq(c.n[MEV_deliver], 5);
    cr_assert_eq(c.n[MEV_pass], 5 + 5);
    cr_assert_eq(c.n[MEV_meet], 2);
}
