/* One walk over each kernel with the warps that can be where an op stands, and
 * whether lanes have parted there. Registers are a pool: what warpgroups hold
 * after their setmaxnreg must not be more than the launch gave all of them. */
#include "verify/async/budget.h"
#include "ir/limits.h"

#include "ir/lib.h"
#include "verify/async/fault.h"

#include <string.h>

enum {
    SMEM_MAX = SHARED_MEMORY_LIMIT,
    REGISTERS = REGISTERS_A_MULTIPROCESSOR,
    WARPGROUP = 4,
    NAMED_MAX = NAMED_BARRIERS,
    MAX_WARPS = 32,
    MAX_OBJECTS = 256
};

/* A stretch of shared memory that belongs to one value. */
typedef struct Stretch {
    const Op *op;
    int64_t lo, hi;
    bool barrier;
} Stretch;

typedef struct Budget {
    Ctx *ctx;
    Module *m;
    const Op *kernel;
    VarId warp, lane;
    bool bad;
    int64_t n_warps, n_ctas;
    int64_t each;               /* the most a thread is launched with */
    int64_t regs[MAX_WARPS];    /* after setmaxnreg; 0: as launched */
    bool asked[MAX_WARPS];      /* setmaxnreg, and no barrier since */
    int64_t threads[NAMED_MAX]; /* of a named barrier; 0: not used */
    Stretch stretches[MAX_OBJECTS];
    unsigned n_stretches;
    bool reads_peers;                    /* shared memory of other CTAs */
    const Value *signalled[MAX_OBJECTS]; /* mbarriers, by other CTAs' threads */
    unsigned n_signalled;
} Budget;

static Diag *fault(Budget *b, const Op *op, const char *code, const char *fmt,
                   ...) EXO_PRINTF(4, 5);

static Diag *fault(Budget *b, const Op *op, const char *code, const char *fmt,
                   ...)
{
    va_list ap;
    va_start(ap, fmt);
    Diag *d = async_vfault(b->ctx, op, code, fmt, ap);
    va_end(ap);
    b->bad = true;
    return d;
}

/* ---- shared memory ------------------------------------------------------- */

/* Of a size that no kernel has: one more byte than that. */
static int64_t value_elements(const Value *v)
{
    int64_t n = 1, extent;
    for (unsigned d = 0; d < v->type->rank; d++)
        if (__builtin_mul_overflow(
                n, affine_is_const(v->shape[d], &extent) ? extent : 0, &n) ||
            n < 0 || n > SMEM_MAX)
            return SMEM_MAX + 1;
    return n;
}

static void add_stretch(Budget *b, const Op *op, int64_t lo, int64_t bytes,
                        bool barrier)
{
    int64_t all = op_attr_int(b->kernel, "smem_bytes", 0);
    if (lo < 0 || lo > all || bytes > all - lo) {
        fault(b, op, "M-BASE",
              "%lld bytes from byte %lld on are not within the kernel's %lld "
              "bytes of shared memory",
              (long long)bytes, (long long)lo, (long long)all);
        return;
    }
    if (b->n_stretches < MAX_OBJECTS)
        b->stretches[b->n_stretches++] =
            (Stretch){ op, lo, lo + bytes, barrier };
}

static void check_alloc(Budget *b, const Op *op)
{
    const Value *v = op->results[0];
    int64_t offset = op_attr_int(op, "offset", -1);
    if (!op_attr(op, "offset"))
        return;
    int64_t size = scalar_type_bytes(v->type->elem);
    add_stretch(b, op, offset, value_elements(v) * size, false);
    if (size > 0 && offset % size)
        fault(b, op, "M-ALIGN",
              "elements of %lld bytes must begin at a multiple of them",
              (long long)size);
}

static void check_mbarriers(Budget *b, const Op *op)
{
    int64_t offset = op_attr_int(op, "offset", -1);
    int64_t count = op_attr_int(op, "count", 0);
    add_stretch(b, op, offset, 8 * value_elements(op->results[0]), true);
    if (offset % 8)
        fault(b, op, "M-ALIGN",
              "an mbarrier is at a multiple of 8 bytes, "
              "found offset %lld",
              (long long)offset);
    if (count < 1 || count >= 1 << 20)
        fault(b, op, "B-COUNT",
              "the count of an mbarrier is from 1 to 2^20 - 1, found %lld",
              (long long)count);
}

/* mbarriers live through the kernel: nothing else may have their bytes. */
static void check_overlaps(Budget *b)
{
    for (unsigned i = 0; i < b->n_stretches; i++)
        for (unsigned k = i + 1; k < b->n_stretches; k++) {
            const Stretch *x = &b->stretches[i], *y = &b->stretches[k];
            if (!(x->barrier || y->barrier) || x->hi <= y->lo || y->hi <= x->lo)
                continue;
            Diag *d = fault(b, y->op, "B-LIFE",
                            "bytes %lld to %lld of shared memory also belong "
                            "to another object, and one of the two is an "
                            "mbarrier",
                            (long long)(y->lo > x->lo ? y->lo : x->lo),
                            (long long)(y->hi < x->hi ? y->hi : x->hi));
            diag_note(b->ctx, d, x->op->loc, "the other object is here");
        }
}

/* ---- who is here --------------------------------------------------------- */

/* A warp that an op can be reached by, as far as the text tells. */
typedef struct Here {
    int64_t lo, hi;
    bool parted;       /* lanes of a warp may be apart */
    bool warps_parted; /* warps of a warpgroup may be apart */
    const Op *why;
} Here;

static bool varies_by_lane(const Budget *b, const Affine *e)
{
    return affine_uses(e, b->lane);
}

/* May it be at least 0 for one lane of a warp and not for another? Not where
 * all but the lane, which counts for c each, moves by multiples of 32 c, and
 * the 32 lanes lie between two of these: 32 * %warp + %lane < 64. */
static bool parts_lanes(const Budget *b, const Affine *e)
{
    int64_t c = affine_coef(e, b->lane);
    ExprCtx *exprs = b->m->exprs;
    const Affine *rest = affine_sub(
        exprs, e, affine_scale(exprs, affine_var(exprs, b->lane), c));
    if (!c || c > INT32_MAX || c < INT32_MIN || !rest ||
        varies_by_lane(b, rest))
        return varies_by_lane(b, e);
    int64_t step = 32 * (c < 0 ? -c : c);
    for (uint32_t i = 0; i < rest->n_terms; i++)
        if (rest->terms[i].coef % step)
            return true;
    int64_t first = int_mod(rest->constant, step);
    return int_floordiv(first + 31 * c, step) != int_floordiv(first, step);
}

/* May lanes of one warp find the condition different? */
static bool is_by_lane(const Budget *b, const Cond *c)
{
    int64_t lo, hi;
    if (c->kind != COND_ge0 && c->kind != COND_eq0)
        return (c->lhs && is_by_lane(b, c->lhs)) ||
               (c->rhs && is_by_lane(b, c->rhs));
    if (affine_max(b->m->exprs, c->expr, &hi) && hi < 0)
        return false;
    if (!affine_min(b->m->exprs, c->expr, &lo))
        lo = INT64_MIN;
    return c->kind == COND_eq0 ? lo <= 0 && varies_by_lane(b, c->expr)
                               : lo < 0 && parts_lanes(b, c->expr);
}

typedef struct WarpEnv {
    VarId warp;
    int64_t value;
    VarId lane; /* any, where all are alike; 0: they are not */
} WarpEnv;

static bool warp_value(const Env *env, const Atom *atom, int64_t *out)
{
    const WarpEnv *w = env->user;
    if (atom->kind != ATOM_var ||
        (atom->var != w->warp && (!w->lane || atom->var != w->lane)))
        return false;
    *out = atom->var == w->warp ? w->value : 0;
    return true;
}

/* Warps that a condition lets through whose lanes it does not tell apart. */
static void narrow(const Budget *b, const Cond *c, bool yes, Here *h)
{
    int64_t lo = h->hi, hi = h->lo;
    VarId lane = is_by_lane(b, c) ? 0 : b->lane;
    if (c->kind == COND_and && yes) {
        narrow(b, c->lhs, true, h);
        narrow(b, c->rhs, true, h);
        return;
    }
    for (int64_t w = h->lo; w < h->hi; w++) {
        WarpEnv we = { b->warp, w, lane };
        Env env = { warp_value, &we };
        bool holds;
        if (cond_eval(c, &env, &holds) && holds != yes)
            continue;
        lo = w < lo ? w : lo;
        hi = w + 1 > hi ? w + 1 : hi;
    }
    h->lo = lo;
    h->hi = hi > lo ? hi : lo;
}

/* Does the condition tell warps of one warpgroup apart? */
static bool parts_warps(const Budget *b, const Cond *c, const Here *h)
{
    VarId lane = is_by_lane(b, c) ? 0 : b->lane;
    for (int64_t w = h->lo; w < h->hi; w++) {
        WarpEnv we = { b->warp, w, lane };
        WarpEnv first = { b->warp, w - w % WARPGROUP, lane };
        Env env = { warp_value, &we }, env0 = { warp_value, &first };
        bool x, y;
        if (first.value >= h->lo && cond_eval(c, &env, &x) &&
            cond_eval(c, &env0, &y) && x != y)
            return true;
    }
    return false;
}

/* ---- ops ----------------------------------------------------------------- */

static void check_collective(Budget *b, const Op *op, const Here *h)
{
    if (!op_has(op, OPT_COLLECTIVE) || !h->parted)
        return;
    Diag *d = fault(b, op, "C-CONV",
                    "all lanes of the warp must execute it together, but they "
                    "may be apart here");
    diag_note(b->ctx, d, h->why->loc, "the lanes part here");
}

static bool of_warpgroup(const Op *op)
{
    return op->code == OP_async_setmaxnreg ||
           op->code == OP_async_wgmma_mma_async ||
           op->code == OP_async_wgmma_fence ||
           op->code == OP_async_wgmma_commit_group ||
           op->code == OP_async_wgmma_wait_group;
}

static void check_warpgroup(Budget *b, const Op *op, const Here *h)
{
    if (!of_warpgroup(op) || h->lo >= h->hi)
        return;
    if (h->lo % WARPGROUP || h->hi % WARPGROUP || h->warps_parted)
        fault(b, op, "C-CONV",
              "all four warps of a warpgroup must execute it, but warps %lld "
              "to %lld come here%s",
              (long long)h->lo, (long long)h->hi - 1,
              h->warps_parted ? ", not all of them" : "");
}

/* A warpgroup meets between two of its setmaxnreg: PTX asks for it. What the
 * assembler launches a kernel with may be less than what there is room for. */
static void check_setmaxnreg(Budget *b, const Op *op, const Here *h)
{
    int64_t count = op_attr_int(op, "count", 0);
    if (count % 8 || count < 24 || count > 256) {
        fault(b, op, "R-POOL",
              "the number of registers is a multiple of 8 from 24 to 256, "
              "found %lld",
              (long long)count);
        return;
    }
    if (h->lo < h->hi && h->lo < MAX_WARPS && b->asked[h->lo])
        fault(b, op, "R-POOL",
              "the warpgroup has executed one before and has not met at a "
              "barrier since");
    bool more = !strcmp(op_attr_str(op, "action", ""), "inc");
    for (int64_t w = h->lo; w < h->hi && w < MAX_WARPS; w++) {
        int64_t most = b->regs[w] ? b->regs[w] : b->each;
        if (more ? count < b->regs[w] : count > most) {
            fault(b, op, "R-POOL",
                  "%s to %lld registers, but warp %lld holds %lld",
                  more ? "an increase" : "a decrease", (long long)count,
                  (long long)w, (long long)most);
            return;
        }
        b->regs[w] = count;
        b->asked[w] = true;
    }
}

static void meet(Budget *b, const Here *h)
{
    for (int64_t w = h->lo; w < h->hi && w < MAX_WARPS; w++)
        b->asked[w] = false;
}

static void check_named(Budget *b, const Op *op, const Here *h)
{
    int64_t id = op_attr_int(op, "id", -1);
    int64_t threads = op_attr_int(op, "threads", 0);
    if (id < 0 || id >= NAMED_MAX)
        fault(b, op, "C-ID", "named barriers are 0 to 15, found %lld",
              (long long)id);
    if (threads < 32 || threads % 32 || threads > 32 * b->n_warps)
        fault(b, op, "C-ID",
              "a barrier takes a multiple of 32 threads up to the block's "
              "%lld, found %lld",
              32 * (long long)b->n_warps, (long long)threads);
    if (id < 0 || id >= NAMED_MAX || op->n_operands)
        return;
    if (b->threads[id] && b->threads[id] != threads)
        fault(b, op, "C-ID",
              "barrier %lld takes %lld threads here and %lld elsewhere",
              (long long)id, (long long)threads, (long long)b->threads[id]);
    b->threads[id] = threads;
    (void)h;
}

static void check_targets(Budget *b, const Op *op)
{
    const Param *list = op_attr_param(op, "cta_xor");
    unsigned n = !list ? 0 : list->kind == PARAM_tuple ? list->n : 1;
    uint64_t seen = 0;
    for (unsigned i = 0; i < n; i++) {
        int64_t x = list->kind == PARAM_tuple ? list->items[i].i : list->i;
        if (x < 0 || x >= b->n_ctas)
            fault(b, op, "CL-MASK",
                  "cta xor %lld leads out of a cluster of %lld", (long long)x,
                  (long long)b->n_ctas);
        else if (seen >> x & 1)
            fault(b, op, "CL-MASK", "names cta xor %lld twice", (long long)x);
        else
            seen |= UINT64_C(1) << x;
    }
}

/* ---- scopes -------------------------------------------------------------- */

static bool leads_out(const Op *op)
{
    const Param *list = op_attr_param(op, "cta_xor");
    for (unsigned i = 0; list && list->kind == PARAM_tuple && i < list->n; i++)
        if (list->items[i].i != 0)
            return true;
    return list && list->kind != PARAM_tuple && list->i != 0;
}

static bool is_signalled(const Budget *b, const Value *barrier)
{
    for (unsigned i = 0; i < b->n_signalled; i++)
        if (b->signalled[i] == barrier)
            return true;
    return false;
}

static bool note_peers(Op *op, void *user)
{
    Budget *b = user;
    b->reads_peers |= op->code == OP_async_cluster_load;
    if (op->code != OP_async_mbarrier_arrive || !leads_out(op))
        return true;
    const Value *barrier = value_root(op->operands[0].u.access->base);
    if (!is_signalled(b, barrier) && b->n_signalled < MAX_OBJECTS)
        b->signalled[b->n_signalled++] = barrier;
    return true;
}

/* What a CTA's threads wrote to its shared memory is read by others: barriers
 * between CTAs must show it to the cluster (PTX ISA, memory consistency model:
 * release and acquire order within their scope). */
static void check_scope(Budget *b, const Op *op)
{
    if (b->reads_peers &&
        is_signalled(b, value_root(op->operands[0].u.access->base)) &&
        strcmp(op_attr_str(op, "scope", "cta"), "cluster") != 0)
        fault(b, op, "CL-SCOPE",
              "the kernel reads shared memory of other CTAs, and this barrier "
              "between CTAs has the scope of one: expected scope = 'cluster'");
}

/* ---- wgmma shapes -------------------------------------------------------- */

/* Intervals of more than one element. */
static unsigned intervals(const Access *a, int64_t *len)
{
    unsigned n = 0;
    for (unsigned d = 0; d < a->rank; d++) {
        int64_t l;
        if (a->dims[d].kind != DIM_interval ||
            !affine_is_const(a->dims[d].len, &l))
            continue;
        if (n == 3)
            return 4;
        len[n++] = l;
    }
    return n;
}

static void check_shape(Budget *b, const Op *op)
{
    int64_t n = op_attr_int(op, "n", 0), k = op_attr_int(op, "k", 0);
    const Operand *o = &op->operands[2];
    if (n < 8 || n > 256 || n % 8)
        fault(b, op, "W-SHAPE",
              "n is a multiple of 8 from 8 to 256, found %lld", (long long)n);
    if (o->kind != OPND_access)
        return;
    int64_t bytes = scalar_type_bytes(o->u.access->base->type->elem);
    if (bytes < 1 || k != 32 / bytes)
        fault(b, op, "W-SHAPE",
              "one instruction takes 32 bytes of k, found %lld elements of "
              "%lld bytes",
              (long long)k, (long long)bytes);
    int64_t len[4];
    unsigned dims = intervals(access_compose(b->m, o->u.access), len);
    bool mn_major = dims == 3 && n % 64 == 0 && len[0] == n / 64 && len[1] == k;
    if (mn_major && bytes != 2)
        fault(b, op, "W-MAJOR",
              "B with n innermost needs elements of 16 bits, found %lld bytes",
              (long long)bytes);
}

/* ---- the walk ------------------------------------------------------------ */

static void walk(Budget *b, const Block *block, Here h);

static void walk_blocks(Budget *b, const Op *op, Here h)
{
    Here inner = h;
    switch (op->code) {
    case OP_async_role:
        inner.lo = op_attr_int(op, "lo", 0);
        inner.hi = op_attr_int(op, "hi", 0);
        inner.lo = inner.lo > h.lo ? inner.lo : h.lo;
        inner.hi = inner.hi < h.hi ? inner.hi : h.hi;
        break;
    case OP_async_elect:
        inner.parted = true;
        inner.why = op;
        break;
    case OP_ctl_for:
        if (varies_by_lane(b, op->operands[0].u.index) ||
            varies_by_lane(b, op->operands[1].u.index)) {
            inner.parted = true;
            inner.why = op;
        }
        break;
    default:
        break;
    }
    for (unsigned i = 0; i < op->n_blocks; i++) {
        Here at = inner;
        if (op->code == OP_ctl_if) {
            const Cond *c = op->operands[0].u.cond;
            if (is_by_lane(b, c) && !at.parted) {
                at.parted = true;
                at.why = op;
            }
            narrow(b, c, i == 0, &at);
            at.warps_parted |= parts_warps(b, c, &at);
        }
        walk(b, op->blocks[i], at);
    }
}

static void visit(Budget *b, const Op *op, const Here *h)
{
    check_collective(b, op, h);
    check_warpgroup(b, op, h);
    check_targets(b, op);
    switch (op->code) {
    case OP_mem_alloc:
        check_alloc(b, op);
        return;
    case OP_async_mbarrier_alloc:
        check_mbarriers(b, op);
        return;
    case OP_async_mbarrier_arrive:
    case OP_async_mbarrier_wait:
        check_scope(b, op);
        return;
    case OP_async_setmaxnreg:
        check_setmaxnreg(b, op, h);
        return;
    case OP_async_barrier_cta_sync:
        check_named(b, op, h);
        meet(b, h);
        return;
    case OP_async_barrier_cta_arrive:
        check_named(b, op, h);
        return;
    case OP_async_barrier_cluster_wait:
        meet(b, h);
        return;
    case OP_async_wgmma_mma_async:
        check_shape(b, op);
        return;
    default:
        return;
    }
}

static void walk(Budget *b, const Block *block, Here h)
{
    for (const Op *op = block->first; op; op = op->next) {
        visit(b, op, &h);
        walk_blocks(b, op, h);
    }
}

/* ---- registers ----------------------------------------------------------- */

static void check_pool(Budget *b)
{
    int64_t used = 0, each = b->each;
    bool any = false;
    for (int64_t w = 0; w < b->n_warps; w++) {
        any |= b->regs[w] != 0;
        used += 32 * (b->regs[w] ? b->regs[w] : each);
    }
    if (any && used > 32 * b->n_warps * each)
        fault(b, b->kernel, "R-POOL",
              "warps hold %lld registers after setmaxnreg, but the launch "
              "gives %lld threads %lld each, %lld in all: an increase would "
              "never be granted",
              (long long)used, 32 * (long long)b->n_warps, (long long)each,
              32 * (long long)(b->n_warps * each));
}

static int64_t launched_registers(const Budget *b)
{
    int64_t blocks = op_attr_int(b->kernel, "blocks_per_sm", 1);
    int64_t room = REGISTERS / (32 * b->n_warps);
    int64_t each = room / (blocks > 0 ? blocks : 1);
    return (each < 255 ? each : 255) / 8 * 8;
}

static bool check_attrs(Budget *b)
{
    const Op *k = b->kernel;
    int64_t dim = op_attr_int(k, "blockDim", 0);
    int64_t smem = op_attr_int(k, "smem_bytes", -1);
    b->n_ctas = op_attr_int(k, "clusterDim", 0);
    b->n_warps = dim / 32;
    if (dim < 32 || dim > 1024 || dim % 32)
        fault(b, k, "C-CONV",
              "blockDim is a multiple of 32 up to 1024, found "
              "%lld",
              (long long)dim);
    if (b->n_ctas < 1 || b->n_ctas > 16)
        fault(b, k, "CL-MASK", "clusterDim is from 1 to 16, found %lld",
              (long long)b->n_ctas);
    if (smem < 0 || smem > SMEM_MAX)
        fault(b, k, "M-BASE", "shared memory is at most %d bytes, found %lld",
              SMEM_MAX, (long long)smem);
    return !b->bad;
}

static bool check_kernel(Ctx *ctx, Module *m, const Op *kernel)
{
    const Block *body = kernel->blocks[0];
    if (body->n_args < 3)
        return true; /* well-formedness refuses it */
    Budget b = { .ctx = ctx,
                 .m = m,
                 .kernel = kernel,
                 .warp = body->args[body->n_args - 2].var,
                 .lane = body->args[body->n_args - 1].var };
    if (!check_attrs(&b))
        return false;
    b.each = launched_registers(&b);
    op_walk((Op *)kernel, note_peers, &b);
    walk(&b, body, (Here){ .hi = b.n_warps });
    check_overlaps(&b);
    check_pool(&b);
    return !b.bad;
}

typedef struct LaunchOf {
    const char *name;
    bool found;
} LaunchOf;

static bool is_launch_of(Op *op, void *user)
{
    LaunchOf *l = user;
    l->found |= op->code == OP_host_launch &&
                !strcmp(op_attr_str(op, "kernel", ""), l->name);
    return true;
}

bool kernel_is_launched(const Op *host, const char *name)
{
    LaunchOf l = { name, false };
    op_walk((Op *)host, is_launch_of, &l);
    return l.found;
}

CheckResult check_async_budget(Ctx *ctx, Module *m, const Op *host)
{
    CheckResult r = { .verdict = VERDICT_proved, .scope = "all sizes" };
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel &&
            kernel_is_launched(host, op_attr_str(op, "name", "")) &&
            !check_kernel(ctx, m, op))
            r.verdict = VERDICT_refuted;
    return r;
}
