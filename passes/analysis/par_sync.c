/* Arrive, Await and trailing barriers: the home expression, who takes part, and
 * which CTAs' barriers a multicast reaches (docs/checks.md, "Barriers"). */
#include "passes/analysis/par_internal.h"

#include <string.h>

/* One synchronising op under analysis. */
typedef struct SyncUse {
    ParInfo *pi;
    Op *op;
    Scope *scope;
    AllocFacts *alloc;
    unsigned n; /* barrier expressions */
    const Access **exprs;
    const char *what; /* "Arrive", "Await", "trailing barrier" */
    const Access *home;
    unsigned n_units;
    const UnitRef *const *units;
    const DistIter *iters;
    ParSync *out;
} SyncUse;

static const char *mechanism_text(const SyncUse *u)
{
    return par_text_mem(u->pi->m, u->alloc->pub.value->type->mem);
}

/* ---- home expression ---------------------------------------------------- */

static bool same_barrier(SyncUse *u)
{
    for (unsigned i = 1; i < u->n; i++)
        if (u->exprs[i]->base != u->exprs[0]->base) {
            par_error(u->pi, u->op, "barrier",
                      "%s names different barrier "
                      "variables: %s and %s",
                      u->what, par_text_value(u->exprs[0]->base),
                      par_text_value(u->exprs[i]->base));
            return false;
        }
    return true;
}

static bool has_interval(const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            return true;
    return false;
}

static bool may_multicast(SyncUse *u)
{
    bool any = false;
    for (unsigned i = 0; i < u->n; i++)
        any = any || has_interval(u->exprs[i]);
    if (!any || (u->op->code == OP_par_arrive &&
                 u->alloc->pub.mem->barrier == BARRIER_mbarrier))
        return true;
    Diag *d = par_error(u->pi, u->op, "barrier",
                        "Unsupported multicast: %s of "
                        "%s must be a point, not an interval, in %s",
                        u->what, mechanism_text(u),
                        par_text_access(u->pi->m, u->exprs[0]));
    diag_fix(u->pi->ctx, d, "index every dimension of %s by a point",
             par_text_value(u->alloc->pub.value));
    return false;
}

/* The point of dimension i on which the expressions agree. */
static bool home_point(SyncUse *u, unsigned i, AccessDim *out)
{
    out->lo = NULL;
    for (unsigned k = 0; k < u->n; k++) {
        const AccessDim *d = &u->exprs[k]->dims[i];
        if (d->kind != DIM_point)
            continue;
        if (!out->lo) {
            *out = *d;
        } else if (out->lo != d->lo) {
            par_error(u->pi, u->op, "barrier",
                      "%s of %s: mismatched points, "
                      "idx[%u] is %s and %s",
                      u->what, par_text_value(u->alloc->pub.value), i,
                      par_text_affine(u->pi->m, out->lo),
                      par_text_affine(u->pi->m, d->lo));
            return false;
        }
    }
    if (out->lo)
        return true;
    Diag *d = par_error(u->pi, u->op, "barrier",
                        "%s of %s: idx[%u] must in "
                        "one expression be a point, not an interval",
                        u->what, par_text_value(u->alloc->pub.value), i);
    diag_fix(u->pi->ctx, d,
             "name the collective's own element, as in `>> "
             "b[m, :] >> b[:, n]`");
    return false;
}

/* An interval of a multicast must be the whole dimension. */
static bool whole_intervals(SyncUse *u, const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *d = &a->dims[i];
        int64_t lo;
        if (d->kind != DIM_interval || (affine_is_const(d->lo, &lo) &&
                                        lo == 0 && d->len == a->base->shape[i]))
            continue;
        par_error(u->pi, u->op, "barrier",
                  "%s: expected idx[%u]=0:%s, found "
                  "%s",
                  u->what, i, par_text_affine(u->pi->m, a->base->shape[i]),
                  par_text_access(u->pi->m, a));
        return false;
    }
    return true;
}

static bool find_home(SyncUse *u)
{
    Access *home = access_new(u->pi->m, u->exprs[0]->base);
    for (unsigned i = 0; i < home->rank; i++)
        if (!home_point(u, i, &home->dims[i]))
            return false;
    for (unsigned k = 0; k < u->n; k++)
        if (!whole_intervals(u, u->exprs[k]))
            return false;
    u->home = home;
    return true;
}

/* ---- convergence -------------------------------------------------------- */

static bool is_thread_loop(const Op *op)
{
    return op->code == OP_ctl_for &&
           !strcmp(op_attr_str(op, "mode", "seq"), "threads");
}

/* Does the condition come out the same for every iteration of loop and of the
 * thread loops inside it that hold op? */
static bool is_uniform(const Op *op, const Op *loop, const Cond *c)
{
    for (const Op *p = op_parent(op); p; p = op_parent(p)) {
        if (is_thread_loop(p) && cond_uses(c, p->blocks[0]->args[0].var))
            return false;
        if (p == loop)
            break;
    }
    return true;
}

/* Between the loop that gives a multicast iterator and the op, every CTA must
 * take the same way. */
static bool check_convergence(SyncUse *u, unsigned i)
{
    VarId v;
    if (!affine_is_var(u->home->dims[i].lo, &v))
        return true;
    Op *loop = par_loop_of_var(u->op, v);
    for (Op *p = op_parent(u->op); p && p != loop; p = op_parent(p)) {
        bool bad = p->code == OP_ctl_if
                       ? !is_uniform(p, loop, p->operands[0].u.cond)
                       : p->code == OP_ctl_for && !is_thread_loop(p);
        if (!bad)
            continue;
        const char *by = p->code == OP_ctl_if ? "an if that differs by CTA"
                                              : par_text_loop(u->pi->m, p);
        Diag *d = par_error(u->pi, u->op, "barrier",
                            "multicasted %s fails "
                            "convergence requirement due to %s",
                            par_text_affine(u->pi->m, u->home->dims[i].lo), by);
        diag_note(u->pi->ctx, d, p->loc, "it stands here");
        diag_fix(u->pi->ctx, d, "move it outside of the loop over CTAs");
        return false;
    }
    return true;
}

static bool is_multicast_dim(const SyncUse *u, unsigned i)
{
    for (unsigned k = 0; k < u->n; k++)
        if (u->exprs[k]->dims[i].kind == DIM_interval)
            return true;
    return false;
}

/* `0:1` on a dimension of 1 is no multicast, wherever it stands. */
static bool check_multicast_dims(SyncUse *u)
{
    for (unsigned i = 0; i < u->exprs[0]->rank; i++) {
        int64_t extent;
        const Affine *shape = u->exprs[0]->base->shape[i];
        if (!is_multicast_dim(u, i) ||
            (affine_is_const(shape, &extent) && extent == 1))
            continue;
        if (i >= u->out->n_dist) {
            Diag *d = par_error(u->pi, u->op, "barrier",
                                "Cannot multicast on "
                                "non-distributed dimension %u of %s (cannot "
                                "multicast within one CTA)",
                                i, par_text_value(u->alloc->pub.value));
            diag_fix(u->pi->ctx, d, "index it by a point");
            return false;
        }
        if (u->home && !check_convergence(u, i))
            return false;
    }
    return true;
}

/* ---- CTAs reached ------------------------------------------------------- */

static bool is_power_of_2(int64_t x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

/* Adds to the mask (bit x: cta xor x) what one expression reaches. */
static bool reach(SyncUse *u, const Access *a, uint32_t *mask)
{
    uint32_t reached = 1;
    int64_t block_dim = u->scope->dev->block_dim;
    for (unsigned i = 0; i < u->out->n_dist; i++) {
        const DistIter *it = &u->iters[i];
        if (a->dims[i].kind != DIM_interval || it->tile_count < 2)
            continue;
        int64_t pitch = it->pitch / block_dim;
        if (it->pitch % block_dim || !is_power_of_2(pitch) ||
            !is_power_of_2(it->tile_count)) {
            par_error(u->pi, u->op, "barrier",
                      "cannot multicast %s over %lld "
                      "CTAs %lld threads apart: both must be powers of two "
                      "of CTAs",
                      par_text_access(u->pi->m, a), (long long)it->tile_count,
                      (long long)it->pitch);
            return false;
        }
        uint32_t wider = 0;
        for (int64_t k = 0; k < it->tile_count; k++)
            wider |= reached << (k * pitch);
        reached = wider;
    }
    *mask |= reached;
    return true;
}

static bool find_targets(SyncUse *u)
{
    uint32_t mask = 1;
    for (unsigned k = 0; k < u->n; k++)
        if (!reach(u, u->exprs[k], &mask))
            return false;
    int64_t *xors = ARENA_ARRAY(u->pi->m->arena, int64_t, 32);
    for (int64_t x = 0; x < 32; x++)
        if (mask >> x & 1)
            xors[u->out->n_xor++] = x;
    u->out->xors = xors;
    return true;
}

/* ---- who takes part ----------------------------------------------------- */

static bool check_unit(SyncUse *u)
{
    const UnitRef *ref = u->alloc->native;
    if (u->alloc->pub.mem->barrier == BARRIER_mbarrier)
        ref = unitref_get(u->pi->ctx, 1, "cuda_agnostic_sub_cta", 0, NULL);
    const char *why;
    if (!ref || par_matches_unit(u->pi, u->op, ref, &why))
        return true;
    par_error(u->pi, u->op, "unit",
              "%s of %s requires %s: %s; executed by "
              "%lld threads",
              u->what, mechanism_text(u), par_text_unit(u->pi->m, ref), why,
              (long long)tiling_threads(u->scope->tiling));
    return false;
}

static bool check_count(SyncUse *u)
{
    if (u->alloc->pub.mem->barrier != BARRIER_mbarrier)
        return true;
    int64_t count = u->out->threads * u->out->source_ctas;
    BarrierFacts *b = ptr_map_get(&u->pi->barriers, u->out->barrier);
    if (!b) {
        b = ARENA_NEW(u->pi->m->arena, BarrierFacts);
        *b = (BarrierFacts){ count, u->op };
        ptr_map_put(u->pi->m->arena, &u->pi->barriers, u->out->barrier, b);
    }
    if (b->count == count)
        return true;
    Diag *d = par_error(u->pi, u->op, "barrier",
                        "inconsistent thread count: "
                        "%lld arrivals here on %s, %lld at the first Arrive",
                        (long long)count, par_text_value(u->out->barrier),
                        (long long)b->count);
    diag_note(u->pi->ctx, d, b->first_arrive->loc, "the first Arrive");
    return false;
}

/* ---- the three forms ---------------------------------------------------- */

/* Is it one element: a point, or an interval of one? */
static bool is_single(const AccessDim *d)
{
    int64_t len;
    return d->kind == DIM_point || (d->kind == DIM_interval &&
                                    affine_is_const(d->len, &len) && len == 1);
}

static void keep_home(SyncUse *u)
{
    const Access *a = u->home ? u->home : u->exprs[0];
    const Affine **home = ARENA_ARRAY(u->pi->m->arena, const Affine *, a->rank);
    for (unsigned i = 0; i < a->rank; i++)
        home[i] = is_single(&a->dims[i]) ? a->dims[i].lo : NULL;
    u->out->home = home;
}

static bool analyze(SyncUse *u)
{
    ParInfo *pi = u->pi;
    bool trailing = u->op->code == OP_par_instr;
    if (!trailing && (!same_barrier(u) || !may_multicast(u) || !find_home(u)))
        return false;
    DistUse use = { .op = u->op,
                    .scope = u->scope,
                    .access = trailing ? u->exprs[0] : u->home,
                    .n_units = u->n_units,
                    .units = u->units };
    if (!par_dist_use(pi, u->alloc, &use, &u->out->n_dist, &u->iters) ||
        !check_multicast_dims(u) || !find_targets(u))
        return false;
    keep_home(u);
    if (trailing)
        return true;
    u->out->threads = par_thread_set(pi, u->scope)->per_cta;
    u->out->source_ctas = u->out->n_xor;
    return check_unit(u) && (u->op->code != OP_par_arrive || check_count(u));
}

static unsigned count_intervals(const Access *a)
{
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++)
        n += a->dims[i].kind == DIM_interval;
    return n;
}

/* The trailing barrier of an instruction call. */
static bool read_trailing(SyncUse *u)
{
    const Instr *in = op_instr(u->pi->m, u->op);
    if (!in)
        return false;
    u->what = "trailing barrier";
    u->n_units = in->n_trailing_units;
    u->units = in->trailing_units;
    unsigned found = count_intervals(u->exprs[0]);
    if (!in->trailing_mechanism || found == u->n_units)
        return true;
    par_error(u->pi, u->op, "barrier",
              "#intervals in barrier %s wrong: %s "
              "takes %u, found %u",
              par_text_access(u->pi->m, u->exprs[0]), in->name, u->n_units,
              found);
    return false;
}

void par_sync_analyze(ParInfo *pi, Op *op, Scope *s)
{
    unsigned first = op->code == OP_par_instr ? op->n_operands - 1 : 0;
    SyncUse u = { .pi = pi, .op = op, .scope = s };
    u.what = op->code == OP_par_await ? "Await" : "Arrive";
    u.n = op->n_operands - first;
    u.exprs = ARENA_ARRAY(pi->m->arena, const Access *, u.n);
    for (unsigned i = 0; i < u.n; i++) {
        if (op->operands[first + i].kind != OPND_access)
            return;
        u.exprs[i] = op->operands[first + i].u.access;
    }
    if (!u.n) {
        par_error(pi, op, "barrier",
                  "Arrive: missing >> trailing barrier exprs");
        return;
    }
    u.alloc = ptr_map_get(&pi->allocs, u.exprs[0]->base);
    if (!u.alloc)
        return;
    u.alloc->pub.used = true;
    u.out = ARENA_NEW(pi->m->arena, ParSync);
    u.out->barrier = u.exprs[0]->base;
    u.out->mechanism = u.alloc->pub.mem;
    if (op->code == OP_par_instr && !read_trailing(&u))
        return;
    if (analyze(&u))
        ptr_map_put(pi->m->arena, &pi->syncs, op, u.out);
    else
        pi->ok = false;
}
