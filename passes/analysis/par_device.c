/* The device function itself: its attributes, its warps by name, and the shape
 * of its task loops (docs/checks.md, "Device functions"). */
#include "ir/limits.h"
#include "ir/task_order.h"
#include "passes/analysis/par_internal.h"

#include <ctype.h>
#include <string.h>

/* ---- dimensions --------------------------------------------------------- */

static bool read_block_dim(ParInfo *pi, Op *op, int64_t *out)
{
    const Param *p = op_attr_param(op, "blockDim");
    if (!p || p->kind != PARAM_int || p->i < 1 || p->i % 32) {
        par_error(pi, op, "device",
                  "blockDim must be a positive multiple of "
                  "32, found %s",
                  par_text_param(pi->m, p));
        return false;
    }
    *out = p->i;
    return true;
}

static bool read_cluster_dim(ParInfo *pi, Op *op, int64_t *out)
{
    *out = 1;
    if (!op_attr(op, "clusterDim"))
        return true;
    const Param *p = op_attr_param(op, "clusterDim");
    if (!p || p->kind != PARAM_int || p->i < 1 || (p->i & (p->i - 1))) {
        par_error(pi, op, "device",
                  "clusterDim must be a power of two, found "
                  "%s",
                  par_text_param(pi->m, p));
        return false;
    }
    *out = p->i;
    return true;
}

static bool check_limits(ParInfo *pi, Op *op, const ParDevice *d)
{
    if (d->block_dim > THREADS_A_CTA) {
        par_error(pi, op, "device", "blockDim must be at most %d, found %lld",
                  THREADS_A_CTA, (long long)d->block_dim);
        return false;
    }
    if (d->cluster_dim > CTAS_A_CLUSTER) {
        par_error(pi, op, "device",
                  "clusterDim must be at most %d, found "
                  "%lld",
                  CTAS_A_CLUSTER, (long long)d->cluster_dim);
        return false;
    }
    const Param *p = op_attr_param(op, "blocks_per_sm");
    if (p &&
        (p->kind != PARAM_int || p->i < 1 || p->i > CTAS_A_MULTIPROCESSOR)) {
        par_error(pi, op, "device", "blocks_per_sm must be an int from 1 to %d",
                  CTAS_A_MULTIPROCESSOR);
        return false;
    }
    if (!p || p->i * d->block_dim <= THREADS_A_MULTIPROCESSOR)
        return true;
    Diag *e =
        par_error(pi, op, "device",
                  "blocks_per_sm=%lld with blockDim=%lld asks for %lld "
                  "threads of a multiprocessor, which has %d",
                  (long long)p->i, (long long)d->block_dim,
                  (long long)(p->i * d->block_dim), THREADS_A_MULTIPROCESSOR);
    diag_fix(pi->ctx, e, "blocks_per_sm of at most %lld",
             (long long)(THREADS_A_MULTIPROCESSOR / d->block_dim));
    return false;
}

static bool read_choice(ParInfo *pi, Op *op, const char *key, bool *out)
{
    const Param *p = op_attr_param(op, key);
    *out = p && p->i != 0;
    if (!op_attr(op, key) || (p && p->kind == PARAM_bool))
        return true;
    par_error(pi, op, "device", "%s must be True or False, found %s", key,
              par_text_param(pi->m, p));
    return false;
}

/* ---- warp_config -------------------------------------------------------- */

static bool is_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

/* A register count or None. */
static bool read_regs(ParInfo *pi, Op *op, const Param *p, const char *role,
                      int64_t *out)
{
    *out = 0;
    if (p->kind == PARAM_none)
        return true;
    if (p->kind != PARAM_int || p->i % 8 || p->i < 24 || p->i > 256) {
        Diag *d = par_error(pi, op, "device",
                            "setmaxnreg of warps '%s' must "
                            "be a multiple of 8 in [24, 256], found %s",
                            role, par_text_param(pi->m, p));
        diag_fix(pi->ctx, d, "choose a multiple of 8 from 24 to 256");
        return false;
    }
    *out = p->i;
    return true;
}

static bool read_role(ParInfo *pi, Op *op, const Param *p, int64_t first,
                      ParRole *r)
{
    if (p->kind != PARAM_tuple || p->n != 4 || p->items[0].kind != PARAM_str) {
        par_error(pi, op, "device",
                  "warp_config must be a list of "
                  "CudaWarpConfig(name, count, setmaxnreg_dec, "
                  "setmaxnreg_inc)");
        return false;
    }
    r->name = p->items[0].s;
    if (!is_name(r->name)) {
        par_error(pi, op, "device", "warp name '%s' must be an identifier",
                  r->name);
        return false;
    }
    const Param *count = &p->items[1];
    if (count->kind != PARAM_int || count->i < 1 ||
        count->i > THREADS_A_CTA / 32) {
        par_error(pi, op, "device",
                  "count of warps '%s' must be an int from "
                  "1 to %d",
                  r->name, THREADS_A_CTA / 32);
        return false;
    }
    r->lo = first;
    r->hi = first + count->i;
    if (!read_regs(pi, op, &p->items[2], r->name, &r->reg_dec) ||
        !read_regs(pi, op, &p->items[3], r->name, &r->reg_inc))
        return false;
    if (r->reg_dec && r->reg_inc) {
        par_error(pi, op, "device",
                  "warps '%s' must not have both "
                  "setmaxnreg_dec and setmaxnreg_inc",
                  r->name);
        return false;
    }
    return true;
}

static bool read_roles(ParInfo *pi, Op *op, ParDevice *d)
{
    const Param *config = op_attr_param(op, "warp_config");
    if (!config || config->kind != PARAM_tuple || !config->n) {
        par_error(pi, op, "device",
                  "warp_config must be a list of "
                  "CudaWarpConfig, not empty");
        return false;
    }
    ParRole *roles = ARENA_ARRAY(pi->m->arena, ParRole, config->n);
    int64_t warps = 0;
    for (unsigned i = 0; i < config->n; i++) {
        if (!read_role(pi, op, &config->items[i], warps, &roles[i]))
            return false;
        warps = roles[i].hi;
        for (unsigned k = 0; k < i; k++)
            if (!strcmp(roles[k].name, roles[i].name)) {
                par_error(pi, op, "device",
                          "duplicate warp name '%s' in "
                          "warp_config",
                          roles[i].name);
                return false;
            }
    }
    d->n_roles = config->n;
    d->roles = roles;
    d->block_dim = 32 * warps;
    return true;
}

/* ---- setmaxnreg --------------------------------------------------------- */

/* The request at a warp: dec as a negative count; 0: none. */
static int64_t request_at(const ParDevice *d, int64_t warp, const ParRole **r)
{
    for (unsigned i = 0; i < d->n_roles; i++)
        if (warp >= d->roles[i].lo && warp < d->roles[i].hi) {
            *r = &d->roles[i];
            return (*r)->reg_inc ? (*r)->reg_inc : -(*r)->reg_dec;
        }
    panic("request_at: warp %lld is outside of the CTA", (long long)warp);
}

static bool check_uniform(ParInfo *pi, Op *op, const ParDevice *d)
{
    const ParRole *first, *other;
    for (int64_t w = 0; w < d->block_dim / 32; w++) {
        int64_t from = w - w % 4, to = from + 3;
        int64_t want = request_at(d, from, &first);
        if (request_at(d, w, &other) == want)
            continue;
        Diag *e =
            par_error(pi, op, "device",
                      "setmaxnreg must be the same for "
                      "the 4 warps of an aligned warpgroup: warps '%s' "
                      "and '%s' share warps %lld to %lld",
                      first->name, other->name, (long long)from, (long long)to);
        diag_fix(pi->ctx, e,
                 "give warps counts that are multiples of 4, or "
                 "the same setmaxnreg");
        return false;
    }
    return true;
}

static bool check_directions(ParInfo *pi, Op *op, const ParDevice *d)
{
    for (unsigned i = 0; i < d->n_roles; i++)
        for (unsigned k = 0; k < d->n_roles; k++)
            if (d->roles[i].reg_dec &&
                d->roles[i].reg_dec == d->roles[k].reg_inc) {
                par_error(pi, op, "device",
                          "setmaxnreg count %lld must not be "
                          "used for both dec (warps '%s') and inc (warps "
                          "'%s')",
                          (long long)d->roles[i].reg_dec, d->roles[i].name,
                          d->roles[k].name);
                return false;
            }
    return true;
}

/* The registers with which a CTA starts must cover what its warpgroups ask
 * for, or the last increase waits for ever. */
static bool check_pool(ParInfo *pi, Op *op, const ParDevice *d)
{
    int64_t groups = d->block_dim / 128;
    int64_t each =
        REGISTERS_A_MULTIPROCESSOR / (d->block_dim * d->blocks_per_sm) / 8 * 8;
    each = each > 255 ? 255 : each;
    int64_t sum = 0;
    for (int64_t g = 0; g < groups; g++) {
        const ParRole *r;
        int64_t want = request_at(d, 4 * g, &r);
        sum += want ? (want < 0 ? -want : want) : each;
    }
    int64_t pool = groups * each, excess = sum - pool;
    if (excess <= 0)
        return true;
    Diag *e = par_error(pi, op, "device",
                        "setmaxnreg asks for %lld registers "
                        "of 128 threads each, but %lld warpgroups start with "
                        "%lld: the register pool is too small",
                        (long long)sum, (long long)groups, (long long)pool);
    diag_fix(pi->ctx, e,
             "lower a setmaxnreg_inc or setmaxnreg_dec by %lld in "
             "all",
             (long long)excess);
    return false;
}

static bool check_setmaxnreg(ParInfo *pi, Op *op, const ParDevice *d)
{
    bool used = false;
    for (unsigned i = 0; i < d->n_roles; i++)
        used = used || d->roles[i].reg_dec || d->roles[i].reg_inc;
    if (!used)
        return true;
    if (d->block_dim % 128) {
        par_error(pi, op, "device",
                  "setmaxnreg needs blockDim %% 128 == 0, "
                  "found %lld threads",
                  (long long)d->block_dim);
        return false;
    }
    return check_uniform(pi, op, d) && check_directions(pi, op, d) &&
           check_pool(pi, op, d);
}

/* ---- task loops --------------------------------------------------------- */

static bool is_task_loop(const Op *op)
{
    return op->code == OP_ctl_for &&
           !strcmp(op_attr_str(op, "mode", "seq"), "tasks");
}

static void tasks_error(ParInfo *pi, const Op *at, const char *text)
{
    Diag *d = par_error(pi, at, "tasks", "Invalid cuda_tasks: %s", text);
    diag_fix(pi->ctx, d,
             "make the body of CudaDeviceFunction one cuda_tasks "
             "loop, and that of each but the innermost one cuda_tasks loop");
}

static bool block_has_tasks(const Block *b)
{
    for (const Op *op = b->first; op; op = op->next)
        if (is_task_loop(op))
            return true;
    return false;
}

/* The only op of the block when that is a task loop. */
static Op *only_task_loop(ParInfo *pi, Op *parent, Block *b)
{
    if (!b->first) {
        tasks_error(pi, parent, "expected a cuda_tasks loop, found nothing");
        return NULL;
    }
    if (b->first != b->last) {
        Op *other = is_task_loop(b->first) ? b->first->next : b->first;
        tasks_error(pi, other, "a statement stands beside a cuda_tasks loop");
        return NULL;
    }
    if (!is_task_loop(b->first)) {
        tasks_error(pi, b->first, "expected a cuda_tasks loop");
        return NULL;
    }
    return b->first;
}

static bool loop_uses(const Op *loop, VarId v)
{
    return affine_uses(loop->operands[0].u.index, v) ||
           affine_uses(loop->operands[1].u.index, v);
}

static const char *iter_name(ParInfo *pi, const Op *loop)
{
    const char *n = var_get(pi->m->exprs, loop->blocks[0]->args[0].var)->name;
    return n ? n : "_";
}

static bool check_task_iter(ParInfo *pi, Op *loop, Op *const *outer, unsigned n)
{
    const char *name = iter_name(pi, loop);
    for (unsigned i = 0; i < n; i++) {
        const char *other = iter_name(pi, outer[i]);
        if (loop_uses(loop, outer[i]->blocks[0]->args[0].var)) {
            par_error(pi, loop, "tasks",
                      "Invalid cuda_tasks: the bounds of "
                      "`for %s` use the %s iterator; the tasks must be a box",
                      name, other);
            return false;
        }
        if (!strcmp(name, other)) {
            par_error(pi, loop, "tasks",
                      "Invalid cuda_tasks: iterator name "
                      "%s is used twice",
                      name);
            return false;
        }
    }
    return true;
}

/* Tasks are grouped in the last two dimensions. */
static bool check_task_groups(ParInfo *pi, const ParDevice *d)
{
    for (unsigned i = 0; i < d->n_tasks; i++) {
        if (!op_attr(d->tasks[i], "group") || i + 2 == d->n_tasks)
            continue;
        Diag *e = par_error(pi, d->tasks[i], "tasks",
                            "Invalid cuda_tasks: `for %s` has a group, but is "
                            "not the loop around the innermost task loop",
                            iter_name(pi, d->tasks[i]));
        diag_fix(pi->ctx, e,
                 "a group orders the tasks of two loops: give it to the "
                 "second cuda_tasks loop from inside");
        return false;
    }
    return true;
}

static bool read_tasks(ParInfo *pi, Op *op, ParDevice *d)
{
    unsigned depth = 0;
    for (Block *b = op->blocks[0]; b->first && is_task_loop(b->first);
         b = b->first->blocks[0])
        depth++;
    Op **loops = ARENA_ARRAY(pi->m->arena, Op *, depth + 1);
    Block *b = op->blocks[0];
    Op *parent = op;
    do {
        Op *loop = only_task_loop(pi, parent, b);
        if (!loop || !check_task_iter(pi, loop, loops, d->n_tasks))
            return false;
        if (d->n_tasks == MAX_TASK_LOOPS) {
            par_error(pi, loop, "tasks",
                      "Invalid cuda_tasks: more than %d loops", MAX_TASK_LOOPS);
            return false;
        }
        loops[d->n_tasks++] = loop;
        parent = loop;
        b = loop->blocks[0];
    } while (block_has_tasks(b));
    d->tasks = loops;
    d->body = b;
    return check_task_groups(pi, d);
}

/* ---- the whole ---------------------------------------------------------- */

static bool read_dims(ParInfo *pi, Op *op, ParDevice *d)
{
    bool dim = op_attr(op, "blockDim"), config = op_attr(op, "warp_config");
    if (dim == config) {
        par_error(pi, op, "device",
                  "CudaDeviceFunction needs exactly one of "
                  "blockDim and warp_config, found %s",
                  dim ? "both" : "neither");
        return false;
    }
    if (!read_cluster_dim(pi, op, &d->cluster_dim))
        return false;
    if (config)
        return read_roles(pi, op, d);
    if (!read_block_dim(pi, op, &d->block_dim))
        return false;
    ParRole *all = ARENA_NEW(pi->m->arena, ParRole);
    *all = (ParRole){ .name = "", .hi = d->block_dim / 32 };
    d->n_roles = 1;
    d->roles = all;
    return true;
}

static VarId coordinate(ExprCtx *x, const char *name, int64_t n)
{
    VarId v = var_new(x, name, VAR_coord);
    var_set_bounds(x, v, affine_const(x, 0), affine_const(x, n));
    return v;
}

static void make_coordinates(ParInfo *pi, ParDevice *d)
{
    ExprCtx *x = pi->m->exprs;
    d->cta = coordinate(x, "cta", d->cluster_dim);
    d->warp = coordinate(x, "warp", d->block_dim / 32);
    d->lane = coordinate(x, "lane", 32);
    d->thread = affine_add(x, affine_scale(x, affine_var(x, d->warp), 32),
                           affine_var(x, d->lane));
}

ParDevice *par_device_read(ParInfo *pi, Op *op)
{
    ParDevice *d = ARENA_NEW(pi->m->arena, ParDevice);
    d->op = op;
    if (!read_dims(pi, op, d) || !check_limits(pi, op, d))
        return NULL;
    d->blocks_per_sm = op_attr_int(op, "blocks_per_sm", 1);
    if (!read_choice(pi, op, "unsafe_no_shutdown_cluster_sync",
                     &d->no_shutdown_sync) ||
        !read_choice(pi, op, "programmatic_dependent_launch",
                     &d->dependent_launch))
        return NULL;
    if (!check_setmaxnreg(pi, op, d) || !read_tasks(pi, op, d))
        return NULL;
    make_coordinates(pi, d);
    return d;
}
