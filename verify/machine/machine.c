/* Launches: makes clusters, runs the schedule, and reports faults; around it
 * the host procedure, which the interpreter runs with the host ops here. */
#include "verify/machine/machine.h"

#include "ir/values.h"
#include "verify/machine/kernel.h"

#include <stdlib.h>
#include <string.h>

/* ---- faults and events --------------------------------------------------- */

void print_op_name(StrBuf *out, const Op *op)
{
    const OpInfo *i = op_info(op->code);
    strbuf_addf(out, "%s.%s", i->dialect, i->text ? i->text : i->name);
}

void print_iterators(StrBuf *out, const Warp *w)
{
    const ExprCtx *x = w->machine->m->exprs;
    for (unsigned d = 0; d < w->depth; d++) {
        const Frame *f = &w->frames[d];
        if (f->owner->code != OP_ctl_for && f->owner->code != OP_async_tasks)
            continue;
        for (unsigned i = 0; i < f->block->n_args; i++)
            if (!f->block->args[i].value && !f->lane_lo)
                strbuf_addf(out, ", %s = %lld",
                            var_get(x, f->block->args[i].var)->name,
                            (long long)w->vars[f->block->args[i].var]);
    }
}

static void add_lanes(StrBuf *out, uint32_t lanes)
{
    if (!lanes || lanes == ALL_LANES)
        return;
    unsigned first = (unsigned)__builtin_ctz(lanes);
    if (lanes & (lanes - 1))
        strbuf_addf(out, ", lanes 0x%x", (unsigned)lanes);
    else
        strbuf_addf(out, ", lane = %u", first);
}

const char *machine_class(const Machine *mc, const Op *op, const char *code)
{
    const MachineOptions *o = mc->options;
    return o->classify ? o->classify(o->classify_user, op, code) : code;
}

bool machine_fail(Machine *mc, const Warp *w, uint32_t lanes, const Op *op,
                  const char *code, const char *fmt, ...)
{
    StrBuf text = { 0 }, at = { 0 }, name = { 0 };
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    print_op_name(&name, op);
    const char *class = machine_class(mc, op, code);
    bool plain = !strcmp(class, code);
    Diag *d =
        diag_error(mc->ctx, op->loc, class, "'%s': %s%s%s", strbuf_text(&name),
                   plain ? "" : class, plain ? "" : ": ", strbuf_text(&text));
    if (w) {
        strbuf_addf(&at, "cluster = %u, cta = %u, warp = %u", w->cluster->index,
                    w->cta->rank, w->index);
        add_lanes(&at, lanes);
        if (w->role)
            strbuf_addf(&at, ", role %s", w->role);
        if (mc->stepping)
            strbuf_add(&at, mc->stepping->iterators);
        else
            print_iterators(&at, w);
        diag_witness(mc->ctx, d, "%s", strbuf_text(&at));
    }
    strbuf_free(&text);
    strbuf_free(&at);
    strbuf_free(&name);
    mc->failed = true;
    return false;
}

void machine_emit(Machine *mc, MachineEvent *e)
{
    if (!(mc->wants >> e->kind & 1))
        return;
    e->time = mc->time;
    for (unsigned i = 0; i < mc->options->n_observers; i++) {
        MachineObserver *o = mc->options->observers[i];
        if (o->wants >> e->kind & 1)
            o->event(o, e);
    }
}

MachineAgent warp_agent(const Warp *w, MachineAgentKind kind, uint32_t lanes)
{
    return (MachineAgent){ .kind = kind,
                           .cluster = w->cluster->index,
                           .cta = w->cta->rank,
                           .warp = w->index,
                           .lanes = lanes };
}

uint64_t machine_random(Machine *mc)
{
    uint64_t z = mc->rng += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

enum { WARP_LIMIT = 2048 };

/* ---- clusters ------------------------------------------------------------ */

static void make_warp(Machine *mc, Cluster *cl, Cta *cta, unsigned i)
{
    Warp *w = &cta->warps[i];
    w->machine = mc;
    w->cluster = cl;
    w->cta = cta;
    w->index = i;
    w->mma_unfenced = true;
    w->priority = machine_random(mc);
    w->vars = ARENA_ARRAY(mc->arena, int64_t, mc->k->n_vars);
    w->lane_vars = ARENA_ARRAY(mc->arena, int64_t *, mc->k->n_vars);
    w->vals = ARENA_ARRAY(mc->arena, WarpVal, mc->k->n_values);
}

static void make_clusters(Machine *mc, const int64_t *params, unsigned n)
{
    Kernel *k = mc->k;
    mc->clusters = ARENA_ARRAY(mc->arena, Cluster, mc->n_clusters);
    for (unsigned c = 0; c < mc->n_clusters; c++) {
        Cluster *cl = &mc->clusters[c];
        cl->index = c;
        cl->live = k->cluster_dim * k->n_warps;
        cl->ctas = ARENA_ARRAY(mc->arena, Cta, k->cluster_dim);
        for (unsigned r = 0; r < k->cluster_dim; r++) {
            Cta *cta = &cl->ctas[r];
            size_t bytes = (size_t)k->smem_bytes + 1024;
            cta->cluster = cl;
            cta->rank = r;
            cta->live = k->n_warps;
            cta->smem = ARENA_ARRAY(mc->arena, unsigned char, bytes);
            cta->written = ARENA_ARRAY(mc->arena, unsigned char, bytes);
            cta->generic = ARENA_ARRAY(mc->arena, unsigned char, bytes);
            memset(cta->smem, 0xa5, bytes);
            cta->bars = ARENA_ARRAY(mc->arena, Mbar, bytes / 8);
            cta->warps = ARENA_ARRAY(mc->arena, Warp, k->n_warps);
            for (unsigned i = 0; i < k->n_warps; i++) {
                Warp *w = &cta->warps[i];
                make_warp(mc, cl, cta, i);
                for (unsigned a = 0; a < n; a++)
                    if (!k->block->args[a].value)
                        w->vars[k->block->args[a].var] = params[a];
                warp_start(w);
            }
        }
    }
}

/* All that runs at once must fit a host's memory and patience. */
static bool check_room(Machine *mc)
{
    int64_t warps = mc->n_clusters * mc->k->cluster_dim * mc->k->n_warps;
    if (warps <= WARP_LIMIT)
        return true;
    diag_error(mc->ctx, mc->k->op->loc, "machine",
               "%u clusters are %lld warps at once, and the machine model runs "
               "up to %d; take fewer clusters",
               mc->n_clusters, (long long)warps, WARP_LIMIT);
    return false;
}

static void free_machine(Machine *mc)
{
    while (mc->effects.len)
        effect_finish(mc, mc->effects.data[0].effect);
    for (unsigned c = 0; mc->clusters && c < mc->n_clusters; c++)
        for (unsigned r = 0; r < mc->k->cluster_dim; r++)
            for (unsigned i = 0; i < mc->k->n_warps; i++) {
                Warp *w = &mc->clusters[c].ctas[r].warps[i];
                free(w->frames);
                for (size_t v = 0; v < mc->k->n_values; v++)
                    tensor_free(w->vals[v].local);
            }
    interp_free(mc->interp);
    arena_free(mc->arena);
}

bool machine_spend(Machine *mc, uint64_t ops)
{
    bool *spent = mc->options->spent;
    bool ok = *mc->ops_left >= ops && !(spent && *spent);
    *mc->ops_left -= ok ? ops : 0;
    if (!ok && spent)
        *spent = true;
    mc->failed = mc->failed || !ok;
    return ok;
}

enum { LAUNCH_OPS = 1000 };

static bool launch(Module *m, const Op *kernel, const HostArg *args, unsigned n,
                   const MachineOptions *options, uint64_t salt,
                   uint64_t *ops_left)
{
    Machine mc = { .m = m,
                   .ctx = m->ctx,
                   .arena = arena_new(),
                   .options = options,
                   .ops_left = ops_left,
                   .rng = options->seed * 0x2545f491 + salt,
                   .n_clusters =
                       options->clusters > 0 ? (unsigned)options->clusters : 1,
                   .interp = interp_new(m),
                   .sem = values_sem() };
    int64_t *values = ARENA_ARRAY(mc.arena, int64_t, n);
    for (unsigned i = 0; i < n; i++)
        values[i] = args[i].value;
    for (unsigned i = 0; i < options->n_observers; i++)
        mc.wants |= options->observers[i]->wants;
    static const unsigned lazy[4] = { 0, 128, 224, 252 };
    static const unsigned long turns[4] = { 1, 3, 16, 0 };
    mc.laziness = lazy[machine_random(&mc) % 4];
    mc.quantum = turns[machine_random(&mc) % 4];
    mc.by_priority = machine_random(&mc) % 4 != 0;
    if (machine_spend(&mc, LAUNCH_OPS))
        mc.k = kernel_prepare(m, mc.arena, kernel, args, n);
    int64_t tasks = mc.k ? host_launch_tasks(kernel, args, n) : INT64_MAX;
    if (tasks < mc.n_clusters)
        mc.n_clusters = tasks > 1 ? (unsigned)tasks : 1;
    bool ok = mc.k != NULL && check_room(&mc);
    if (ok) {
        MachineEvent e = { .kind = MEV_launch,
                           .op = kernel,
                           .length = mc.n_clusters };
        machine_emit(&mc, &e);
        make_clusters(&mc, values, n);
        ok = machine_schedule(&mc) && !mc.failed;
    }
    mc.wants = 0;
    free_machine(&mc);
    return ok;
}

/* ---- the host ------------------------------------------------------------ */

typedef struct Host {
    Module *m;
    const MachineOptions *options;
    uint64_t launches, ops_left;
} Host;

/* Element by element; those outside of a map are left out. */
static bool host_copy(void *user, Interp *in, Scope *s, const Op *op,
                      const View *to, const View *from)
{
    int64_t index[TENSOR_MAX_RANK] = { 0 }, n = 1;
    unsigned bad;
    (void)user;
    for (unsigned d = 0; d < to->rank; d++) {
        n *= to->extent[d];
        if (from &&
            (from->rank != to->rank || from->extent[d] != to->extent[d]))
            return interp_fault(in, s, op, "shape",
                                "the sides of a copy have different shapes");
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t a = view_element(to, index, &bad);
        int64_t b = from ? view_element(from, index, &bad) : 0;
        Tensor *t = to->tensor;
        if (a >= 0 && b >= 0) {
            unsigned char *p = t->bytes + a * t->elem_bytes;
            if (from) {
                memcpy(p, from->tensor->bytes + b * t->elem_bytes,
                       t->elem_bytes);
                t->written[a] = from->tensor->written[b];
            } else {
                memset(p, 0, t->elem_bytes);
                t->written[a] = 1;
            }
        }
        for (unsigned d = to->rank; d-- > 0 && ++index[d] == to->extent[d];)
            index[d] = 0;
    }
    return true;
}

static bool host_launch(void *user, const Op *op, const Op *kernel,
                        const HostArg *args, unsigned n)
{
    Host *h = user;
    (void)op;
    return launch(h->m, kernel, args, n, h->options, ++h->launches,
                  &h->ops_left);
}

bool machine_run(Module *m, const Op *host, const ProcArg *args, unsigned n,
                 const MachineOptions *options)
{
    Host h = { .m = m,
               .options = options,
               .ops_left = options->most_ops ? options->most_ops : UINT64_MAX };
    HostActions actions = { .user = &h,
                            .copy = host_copy,
                            .launch = host_launch };
    return host_run(m, host, args, n, &actions);
}
