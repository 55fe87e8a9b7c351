/* The walk over a device function: opens a scope for each block with the tiling
 * of the threads that execute it, and has every allocation and use of device
 * memory deduced in program order. */
#include "passes/analysis/par_internal.h"

#include <string.h>

Diag *par_error(ParInfo *pi, const Op *op, const char *code, const char *fmt,
                ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(pi->m->arena, fmt, ap);
    va_end(ap);
    pi->ok = false;
    return diag_error(pi->ctx, op->loc, code, "%s", text);
}

static void walk_block(ParInfo *pi, Block *b, Scope *s);

static const char *mode_of(const Op *op)
{
    return op_attr_str(op, "mode", "seq");
}

/* ---- scopes ------------------------------------------------------------- */

Scope *par_scope(const ParInfo *pi, const Op *op)
{
    return op->parent ? ptr_map_get(&pi->scopes, op->parent) : NULL;
}

Op *par_loop_of_var(const Op *op, VarId v)
{
    for (Op *p = op_parent(op); p; p = op_parent(p))
        if (p->code == OP_ctl_for && p->blocks[0]->n_args &&
            p->blocks[0]->args[0].var == v)
            return p;
    return NULL;
}

static Scope *scope_copy(ParInfo *pi, const Scope *s)
{
    Scope *out = ARENA_NEW(pi->m->arena, Scope);
    *out = *s;
    out->set = NULL;
    return out;
}

/* ---- thread loops ------------------------------------------------------- */

/* The number of tiles; false after an error. */
static bool loop_bounds(ParInfo *pi, Op *op, int64_t *hi)
{
    int64_t lo;
    if (affine_is_const(op->operands[0].u.index, &lo) && lo == 0 &&
        affine_is_const(op->operands[1].u.index, hi) && *hi >= 1)
        return true;
    const char *name = var_get(pi->m->exprs, op->blocks[0]->args[0].var)->name;
    Diag *d = par_error(pi, op, "threads",
                        "expected literal int value 0 for "
                        "lo and a positive literal int value for hi of %s "
                        "loop, found %s",
                        name ? name : "_", par_text_loop(pi->m, op));
    diag_fix(pi->ctx, d,
             "rewrite the bounds with simplify, or make it a seq "
             "loop");
    return false;
}

static bool derive(ParInfo *pi, Op *op, Scope *s, TileRequest *r,
                   const UnitRef *ref, LoopFacts *f)
{
    const Unit *u = lib_unit(pi->m->lib, op->loc, ref);
    if (!u) {
        pi->ok = false;
        return false;
    }
    const char *why = NULL;
    const Cond *guard;
    unsigned before = s->tc->next_serial;
    r->unit = shape_of_unit(s->tc, u, &why);
    const Tiling *t =
        r->unit ? tiling_derive(s->tc, s->tiling, r, &guard, &f->iter, &why)
                : NULL;
    if (!t) {
        StrBuf b = { 0 };
        tiling_print(&b, s->tiling);
        Diag *d =
            par_error(pi, op, "unit", "%s: %s (unit %s)",
                      par_text_loop(pi->m, op), why, par_text_unit(pi->m, ref));
        diag_note(pi->ctx, d, op->loc, "the threads here: %s", strbuf_text(&b));
        strbuf_free(&b);
        return false;
    }
    s->tiling = t;
    if (s->tc->next_serial > before)
        f->serial = s->tc->next_serial;
    f->guard = f->guard ? cond_and(pi->m->exprs, f->guard, guard) : guard;
    return true;
}

static void keep_pitch(const Tiling *t, LoopFacts *f)
{
    for (unsigned i = 0; i < t->n; i++)
        for (unsigned k = 0; k < t->dims[i].n_ops; k++)
            if (f->serial && t->dims[i].ops[k].serial == f->serial)
                f->pitch = t->dims[i].ops[k].pitch;
}

static void walk_threads(ParInfo *pi, Op *op, Scope *outer)
{
    const Attr *unit = op_attr(op, "unit");
    TileRequest r = { .by = op, .iter = op->blocks[0]->args[0].var };
    if (!loop_bounds(pi, op, &r.hi))
        return;
    const UnitRef *ref = unit && unit->kind == ATTR_unit
                             ? unit->unit
                             : unitref_get(pi->ctx, 1, "cuda_thread", 0, NULL);
    Scope *s = scope_copy(pi, outer);
    LoopFacts *f = ARENA_NEW(pi->m->arena, LoopFacts);
    f->tile_count = r.hi;
    if (!derive(pi, op, s, &r, ref, f))
        return;
    keep_pitch(s->tiling, f);
    s->guard = cond_and(pi->m->exprs, outer->guard, f->guard);
    ptr_map_put(pi->m->arena, &pi->loops, op, f);
    walk_block(pi, op->blocks[0], s);
}

/* ---- CudaWarps ---------------------------------------------------------- */

/* lo and hi as written; false after an error. */
static bool warps_range(ParInfo *pi, Op *op, const int64_t *whole, int64_t *lo,
                        int64_t *hi)
{
    const char *keys[2] = { "lo", "hi" };
    int64_t *out[2] = { lo, hi };
    for (unsigned i = 0; i < 2; i++) {
        const Param *p = op_attr_param(op, keys[i]);
        bool given = p && p->kind != PARAM_none;
        if (given && p->kind == PARAM_int) {
            *out[i] = p->i;
        } else if (given) {
            par_error(pi, op, "warps", "%s: %s must be an int",
                      par_text_loop(pi->m, op), keys[i]);
            return false;
        } else if (whole) {
            *out[i] = i ? *whole : 0;
        } else {
            Diag *d = par_error(pi, op, "warps",
                                "nested CudaWarps must "
                                "define lo and hi explicitly: %s lacks %s ",
                                par_text_loop(pi->m, op), keys[i]);
            diag_fix(pi->ctx, d,
                     "write CudaWarps(lo, hi), counted from the "
                     "first warp of this scope");
            return false;
        }
    }
    if (*lo >= 0 && *lo < *hi)
        return true;
    par_error(pi, op, "warps",
              "%s: expected 0 <= lo < hi, found lo %lld and "
              "hi %lld",
              par_text_loop(pi->m, op), (long long)*lo, (long long)*hi);
    return false;
}

static const ParRole *role_by_name(const ParDevice *dev, const char *name)
{
    for (unsigned i = 0; name && i < dev->n_roles; i++)
        if (!strcmp(dev->roles[i].name, name))
            return &dev->roles[i];
    return NULL;
}

static const char *role_names(ParInfo *pi, const ParDevice *dev)
{
    StrBuf b = { 0 };
    for (unsigned i = 0; i < dev->n_roles; i++)
        strbuf_addf(&b, "%s'%s'", i ? ", " : "", dev->roles[i].name);
    const char *text = arena_strdup(pi->m->arena, strbuf_text(&b));
    strbuf_free(&b);
    return text;
}

/* Goes to the named warps at the top: to their range in the CTA. */
static bool enter_role(ParInfo *pi, Op *op, Scope *s, LoopFacts *f,
                       int64_t *count)
{
    const char *name = op_attr_str(op, "name", NULL);
    const ParRole *role = role_by_name(s->dev, name);
    if (!role) {
        par_error(pi, op, "warps",
                  "top-level CudaWarps must provide valid "
                  "warp name: found %s, expected one of %s",
                  name ? name : "None", role_names(pi, s->dev));
        return false;
    }
    const char *why;
    const UnitRef *cta =
        unitref_get(pi->ctx, 1, "cuda_agnostic_intact_cta", 0, NULL);
    if (!par_matches_unit(pi, op, cta, &why)) {
        par_error(pi, op, "warps",
                  "%s requires CTA not to be subdivided by "
                  "parent cuda_threads loop: %s",
                  par_text_loop(pi->m, op), why);
        return false;
    }
    TileRequest r = {
        .by = op, .lo = role->lo, .hi = role->hi, .specialise = true
    };
    s->role = role->name;
    *count = role->hi - role->lo;
    if (role->lo == 0 && 32 * role->hi == s->dev->block_dim)
        return true;
    return derive(pi, op, s, &r, unitref_get(pi->ctx, 1, "cuda_warp", 0, NULL),
                  f);
}

static bool check_nested_name(ParInfo *pi, Op *op, const Scope *s)
{
    const char *name = op_attr_str(op, "name", NULL);
    if (!name || (s->role && !strcmp(name, s->role)))
        return true;
    par_error(pi, op, "warps",
              "nested CudaWarps cannot change warp name from "
              "%s to %s",
              s->role ? s->role : "None", name);
    return false;
}

static bool enter_warps(ParInfo *pi, Op *op, Scope *s, LoopFacts *f)
{
    TileRequest r = { .by = op, .specialise = true };
    int64_t count = 0;
    bool top = !s->in_warps;
    if (top ? !enter_role(pi, op, s, f, &count) : !check_nested_name(pi, op, s))
        return false;
    if (!warps_range(pi, op, top ? &count : NULL, &r.lo, &r.hi))
        return false;
    if (top && r.hi > count) {
        par_error(pi, op, "warps",
                  "%s is out-of-range: '%s' has %lld warps, "
                  "found hi %lld",
                  par_text_loop(pi->m, op), s->role, (long long)count,
                  (long long)r.hi);
        return false;
    }
    s->in_warps = true;
    if (top && r.lo == 0 && r.hi == count)
        return true;
    return derive(pi, op, s, &r, unitref_get(pi->ctx, 1, "cuda_warp", 0, NULL),
                  f);
}

static void walk_warps(ParInfo *pi, Op *op, Scope *outer)
{
    Scope *s = scope_copy(pi, outer);
    LoopFacts *f = ARENA_NEW(pi->m->arena, LoopFacts);
    f->tile_count = 1;
    f->guard = cond_bool(pi->m->exprs, true);
    if (!enter_warps(pi, op, s, f))
        return;
    s->guard = cond_and(pi->m->exprs, outer->guard, f->guard);
    ptr_map_put(pi->m->arena, &pi->loops, op, f);
    walk_block(pi, op->blocks[0], s);
}

/* ---- statements --------------------------------------------------------- */

static void use_one(ParInfo *pi, Op *op, Scope *s, const Instr *in,
                    unsigned operand)
{
    const Access *a = access_compose(pi->m, op->operands[operand].u.access);
    AllocFacts *alloc = ptr_map_get(&pi->allocs, a->base);
    if (!alloc)
        return;
    DistUse u = { .op = op, .scope = s, .access = a };
    if (in && operand < in->n_params) {
        u.n_units = in->params[operand].n_distributed;
        u.units = in->params[operand].distributed_units;
    }
    if (!par_dist_use(pi, alloc, &u, NULL, NULL))
        pi->ok = false;
}

static void walk_uses(ParInfo *pi, Op *op, Scope *s)
{
    const Instr *in = NULL;
    if (op->code == OP_par_instr) {
        in = op_instr(pi->m, op);
        if (!in) {
            pi->ok = false;
            return;
        }
    }
    unsigned n = op->n_operands;
    if (op->code == OP_par_instr && op_attr_int(op, "trailing", 0) && n) {
        par_sync_analyze(pi, op, s);
        n--;
    }
    for (unsigned i = 0; i < n; i++)
        if (op->operands[i].kind == OPND_access)
            use_one(pi, op, s, in, i);
}

static void walk_loop(ParInfo *pi, Op *op, Scope *s)
{
    const char *mode = mode_of(op);
    if (!strcmp(mode, "threads")) {
        walk_threads(pi, op, s);
    } else if (!strcmp(mode, "seq")) {
        walk_block(pi, op->blocks[0], s);
    } else if (!strcmp(mode, "tasks")) {
        par_error(pi, op, "tasks",
                  "Invalid cuda_tasks: %s must stand "
                  "directly under CudaDeviceFunction, perfectly nested",
                  par_text_loop(pi->m, op));
    } else {
        par_error(pi, op, "loop", "unexpected loop mode %s in %s", mode,
                  par_text_loop(pi->m, op));
    }
}

static void walk_op(ParInfo *pi, Op *op, Scope *s)
{
    switch (op->code) {
    case OP_ctl_for:
        walk_loop(pi, op, s);
        return;
    case OP_par_warps:
        walk_warps(pi, op, s);
        return;
    case OP_par_device:
        par_error(pi, op, "scope",
                  "CudaDeviceFunction(blockDim=%lld) requires "
                  "cpu_basic_device, not cuda_basic_device",
                  (long long)op_attr_int(op, "blockDim", s->dev->block_dim));
        return;
    case OP_mem_alloc:
        par_dist_alloc(pi, op, s);
        return;
    case OP_mem_window:
        return; /* a window looks; its uses are seen on the allocation */
    case OP_par_arrive:
    case OP_par_await:
        par_sync_analyze(pi, op, s);
        return;
    default:
        break;
    }
    walk_uses(pi, op, s);
    for (unsigned i = 0; i < op->n_blocks; i++)
        walk_block(pi, op->blocks[i], s);
}

static void walk_block(ParInfo *pi, Block *b, Scope *s)
{
    ptr_map_put(pi->m->arena, &pi->scopes, b, s);
    for (Op *op = b->first; op; op = op->next)
        walk_op(pi, op, s);
}

/* ---- devices ------------------------------------------------------------ */

static TilingCtx *tiling_ctx(ParInfo *pi, const ParDevice *d)
{
    TilingCtx *tc = ARENA_NEW(pi->m->arena, TilingCtx);
    *tc = (TilingCtx){ .arena = pi->m->arena,
                       .exprs = pi->m->exprs,
                       .block_dim = d->block_dim,
                       .cluster_dim = d->cluster_dim };
    return tc;
}

static void analyze_device(ParInfo *pi, Op *op)
{
    if (!pi->m->lib) {
        par_error(pi, op, "unit", "no library of units is loaded");
        return;
    }
    ParDevice *d = par_device_read(pi, op);
    if (!d)
        return;
    ptr_map_put(pi->m->arena, &pi->devices, op, d);
    Scope *s = ARENA_NEW(pi->m->arena, Scope);
    s->dev = d;
    s->tc = tiling_ctx(pi, d);
    s->tiling = tiling_top(s->tc, affine_var(pi->m->exprs, d->cta), d->thread);
    s->in_warps = d->n_roles == 1;
    s->role = d->n_roles == 1 && *d->roles[0].name ? d->roles[0].name : NULL;
    s->guard = cond_bool(pi->m->exprs, true);
    ptr_map_put(pi->m->arena, &pi->scopes, op->blocks[0], s);
    for (unsigned i = 0; i + 1 < d->n_tasks; i++)
        ptr_map_put(pi->m->arena, &pi->scopes, d->tasks[i]->blocks[0], s);
    walk_block(pi, d->body, s);
}

static bool find_devices(Op *op, void *user)
{
    if (op->code != OP_par_device)
        return true;
    analyze_device(user, op);
    return false;
}

ParInfo *par_analyze(Ctx *ctx, Module *m, Op *root)
{
    ParInfo *pi = ARENA_NEW(m->arena, ParInfo);
    pi->ctx = ctx;
    pi->m = m;
    pi->ok = true;
    if (root)
        op_walk(root, find_devices, pi);
    else
        block_walk(m->body, find_devices, pi);
    return pi;
}

/* ---- answers ------------------------------------------------------------ */

bool par_ok(const ParInfo *pi)
{
    return pi->ok;
}

const ParDevice *par_device(const ParInfo *pi, const Op *op)
{
    for (; op; op = op_parent(op))
        if (op->code == OP_par_device)
            return ptr_map_get(&pi->devices, op);
    return NULL;
}

const Affine *par_iter(const ParInfo *pi, const Op *loop)
{
    const LoopFacts *f = ptr_map_get(&pi->loops, loop);
    return f && loop->code == OP_ctl_for ? f->iter : NULL;
}

const Cond *par_guard(const ParInfo *pi, const Op *loop_or_warps)
{
    const LoopFacts *f = ptr_map_get(&pi->loops, loop_or_warps);
    return f ? f->guard : NULL;
}

const ThreadSet *par_threads(const ParInfo *pi, const Op *op)
{
    Scope *s = par_scope(pi, op);
    return s ? par_thread_set((ParInfo *)pi, s) : NULL;
}

const ThreadSet *par_body_threads(const ParInfo *pi, const Op *op)
{
    Scope *s = op->n_blocks ? ptr_map_get(&pi->scopes, op->blocks[0]) : NULL;
    return s ? par_thread_set((ParInfo *)pi, s) : NULL;
}

bool par_matches_unit(ParInfo *pi, const Op *op, const UnitRef *unit,
                      const char **why)
{
    Scope *s = par_scope(pi, op);
    const Unit *u = s ? lib_unit(pi->m->lib, op->loc, unit) : NULL;
    *why = "not executed by threads of a device function";
    const Shape *shape = u ? shape_of_unit(s->tc, u, why) : NULL;
    return shape && tiling_matches(s->tc, s->tiling, shape, why);
}

const ParAlloc *par_alloc(const ParInfo *pi, const Value *v)
{
    const AllocFacts *a = ptr_map_get(&pi->allocs, v);
    return a ? &a->pub : NULL;
}

const ParSync *par_sync(const ParInfo *pi, const Op *op)
{
    return ptr_map_get(&pi->syncs, op);
}

int64_t par_mbarrier_count(const ParInfo *pi, const Value *barrier)
{
    const BarrierFacts *b = ptr_map_get(&pi->barriers, barrier);
    return b ? b->count : 0;
}
