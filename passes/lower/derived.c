/* derived.* attributes. The facts about one op are listed once, as literals;
 * writing sets them, checking compares them with those that the op has. */
#include "passes/lower/derived.h"

#include "passes/analysis/par_text.h"
#include "passes/lower/lower.h"

#include <string.h>

enum { FACTS = 8 };

typedef struct Derived {
    Ctx *ctx;
    Module *m;
    ParInfo *pi;
    Lower *layout; /* of the device function at hand, or NULL: there is none */
    Arena *scratch;
    unsigned n; /* facts about the op at hand */
    struct {
        const char *key;
        Param value;
    } facts[FACTS];
    bool ok;
} Derived;

static void add(Derived *d, const char *key, Param value)
{
    if (d->n == FACTS)
        panic("derived: more than %d facts of an op", FACTS);
    d->facts[d->n].key = key;
    d->facts[d->n++].value = value;
}

static Param number(int64_t i)
{
    return (Param){ .kind = PARAM_int, .i = i };
}

static Param tuple(unsigned n, const Param *items)
{
    return (Param){ .kind = PARAM_tuple, .n = n, .items = items };
}

static void add_text(Derived *d, const char *key, const char *text)
{
    add(d, key, (Param){ .kind = PARAM_str, .s = ctx_intern(d->ctx, text) });
}

/* ---- the facts ----------------------------------------------------------- */

static void scope_facts(Derived *d, const Op *op)
{
    const ThreadSet *t = par_body_threads(d->pi, op);
    if (!t)
        return;
    Param *p = ARENA_ARRAY(d->scratch, Param, 2);
    p[0] = number(t->threads);
    p[1] = number(t->ctas);
    add(d, "derived.threads", tuple(2, p));
    if (op->code == OP_par_device)
        return;
    const Affine *iter = par_iter(d->pi, op);
    if (iter)
        add_text(d, "derived.iter", par_text_affine(d->m, iter));
    const Cond *guard = par_guard(d->pi, op);
    if (guard && guard != cond_bool(d->m->exprs, true))
        add_text(d, "derived.guard", par_text_cond(d->m, guard));
}

static void add_dist(Derived *d, const ParAlloc *a)
{
    Param *dims = ARENA_ARRAY(d->scratch, Param, a->n_dist);
    for (unsigned i = 0; i < a->n_dist; i++) {
        Param *p = ARENA_ARRAY(d->scratch, Param, 2);
        p[0] = number(a->dist[i].tile_count);
        p[1] = number(a->dist[i].pitch);
        dims[i] = tuple(2, p);
    }
    if (a->n_dist)
        add(d, "derived.dist", tuple(a->n_dist, dims));
}

static void add_shard(Derived *d, const ParAlloc *a)
{
    Param *dims = ARENA_ARRAY(d->scratch, Param, a->n_shard);
    for (unsigned i = 0; i < a->n_shard; i++) {
        int64_t n = a->value->ring_depth;
        if ((int)(i + a->n_dist) != a->value->ring_dim &&
            !affine_is_const(a->shard[i], &n))
            return;
        dims[i] = number(n);
    }
    if (a->n_shard)
        add(d, "derived.shard", tuple(a->n_shard, dims));
}

static void alloc_facts(Derived *d, const Op *op)
{
    const ParAlloc *a = par_alloc(d->pi, op->results[0]);
    if (!a || !a->first_use)
        return;
    add_dist(d, a);
    add_shard(d, a);
    const SmemObject *o = d->layout ? smem_object(d->layout, a->value) : NULL;
    if (o)
        add(d, "derived.offset", number(o->offset));
    if (a->mem && a->mem->barrier == BARRIER_mbarrier)
        add(d, "derived.count", number(par_mbarrier_count(d->pi, a->value)));
}

/* The first expression that has the home's point in this dimension. */
static int64_t point_of(const Op *op, const ParSync *s, unsigned dim)
{
    int64_t k = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind != OPND_access)
            continue;
        const AccessDim *at = &o->u.access->dims[dim];
        if (at->kind == DIM_point && at->lo == s->home[dim])
            return k;
        k++;
    }
    return -1;
}

static void sync_facts(Derived *d, const Op *op)
{
    const ParSync *s = par_sync(d->pi, op);
    if (!s)
        return;
    unsigned rank = s->barrier->type->rank;
    Param *home = ARENA_ARRAY(d->scratch, Param, rank);
    for (unsigned i = 0; i < rank; i++)
        home[i] = number(point_of(op, s, i));
    if (rank)
        add(d, "derived.home", tuple(rank, home));
    if (op->code != OP_par_arrive || s->n_xor < 2)
        return;
    Param *ctas = ARENA_ARRAY(d->scratch, Param, s->n_xor);
    for (unsigned i = 0; i < s->n_xor; i++)
        ctas[i] = number(s->xors[i]);
    add(d, "derived.ctas", tuple(s->n_xor, ctas));
}

static void op_facts(Derived *d, Op *op)
{
    d->n = 0;
    if (op->code == OP_par_device) {
        d->layout = lower_layout(d->ctx, d->m, d->pi, op, d->scratch);
        scope_facts(d, op);
    } else if (op->code == OP_ctl_for || op->code == OP_par_warps)
        scope_facts(d, op);
    else if (op->code == OP_mem_alloc)
        alloc_facts(d, op);
    else if (op->code == OP_par_arrive || op->code == OP_par_await)
        sync_facts(d, op);
}

/* ---- writing and comparing ----------------------------------------------- */

static bool write_op(Op *op, void *user)
{
    Derived *d = user;
    for (unsigned i = op->n_attrs; i-- > 0;)
        if (attr_is_derived(op->attrs[i].key))
            op_remove_attr(op, op->attrs[i].key);
    op_facts(d, op);
    for (unsigned i = 0; i < d->n; i++)
        op_set_param(d->m, op, d->facts[i].key, &d->facts[i].value);
    return true;
}

static void compare(Derived *d, const Op *op, const Attr *attr)
{
    for (unsigned i = 0; i < d->n; i++) {
        if (strcmp(d->facts[i].key, attr->key))
            continue;
        if (attr->kind == ATTR_param &&
            param_equal(attr->param, &d->facts[i].value))
            return;
        d->ok = false;
        Diag *g = diag_error(d->ctx, op->loc, "derived",
                             "%s is to be %s, as the analysis finds", attr->key,
                             par_text_param(d->m, &d->facts[i].value));
        diag_fix(d->ctx, g, "leave it out: it is found out again");
        return;
    }
    d->ok = false;
    diag_error(d->ctx, op->loc, "derived",
               "the analysis finds nothing for %s here", attr->key);
}

static bool compare_op(Op *op, void *user)
{
    Derived *d = user;
    op_facts(d, op);
    for (unsigned i = 0; i < op->n_attrs; i++)
        if (attr_is_derived(op->attrs[i].key))
            compare(d, op, &op->attrs[i]);
    return true;
}

static bool find_derived(Op *op, void *user)
{
    bool *found = user;
    for (unsigned i = 0; i < op->n_attrs; i++)
        *found |= attr_is_derived(op->attrs[i].key);
    return !*found;
}

static bool each_op(Ctx *ctx, Module *m, ParInfo *pi, Op *root,
                    bool (*fn)(Op *, void *))
{
    Derived d = { .ctx = ctx, .m = m, .pi = pi, .ok = true };
    d.scratch = arena_new();
    op_walk(root, fn, &d);
    arena_free(d.scratch);
    return d.ok;
}

void derived_write(Ctx *ctx, Module *m, ParInfo *pi, Op *root)
{
    each_op(ctx, m, pi, root, write_op);
}

bool derived_check(Ctx *ctx, Module *m, ParInfo *pi, Op *root)
{
    bool found = false;
    op_walk(root, find_derived, &found);
    return !found || each_op(ctx, m, pi, root, compare_op);
}
