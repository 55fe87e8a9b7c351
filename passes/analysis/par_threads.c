/* The collective of a scope as a set of threads, read off its tiling after it
 * has been refined so that each dimension lies within a CTA or across CTAs. */
#include "passes/analysis/par_internal.h"

/* What the dimensions inside a CTA come to. */
typedef struct CtaPart {
    int64_t threads, span; /* span: from first to last thread */
    int64_t lo, hi;        /* threads that any collective covers */
    int64_t alignment;     /* of the first thread: gcd of what it is made of */
    bool contiguous;
    const Affine *first;
} CtaPart;

/* A tile op counts once, also where it stands on both halves of a split. */
static bool seen_before(const Tiling *t, unsigned dim, const TileOp *op)
{
    for (unsigned i = 0; i < dim; i++)
        for (unsigned k = 0; k < t->dims[i].n_ops; k++)
            if (t->dims[i].ops[k].serial == op->serial)
                return true;
    return false;
}

static void add_dim(ParInfo *pi, const Tiling *t, unsigned i, CtaPart *p)
{
    const TileDim *d = &t->dims[i];
    int64_t box = tile_dim_box(d);
    p->threads *= box;
    p->span += (box - 1) * d->pitch;
    p->lo += tile_dim_offset(d) * d->pitch;
    for (unsigned k = 0; k < d->n_ops; k++) {
        const TileOp *op = &d->ops[k];
        p->first = affine_add(pi->m->exprs, p->first,
                              affine_scale(pi->m->exprs, op->start, d->pitch));
        p->alignment = int_gcd(p->alignment, op->offset * d->pitch);
        if (op->tile_count > 1)
            p->alignment = int_gcd(p->alignment, op->pitch);
        if (!seen_before(t, i, op))
            p->hi += op->pitch * (op->tile_count - 1);
    }
}

/* Whole dimensions inside, then one part, then single positions. */
static bool is_contiguous(const Tiling *t, int64_t block_dim)
{
    bool partial = false;
    for (unsigned i = t->n; i-- > 0;) {
        const TileDim *d = &t->dims[i];
        if (d->pitch >= block_dim)
            break;
        int64_t box = tile_dim_box(d);
        if (partial && box != 1)
            return false;
        partial = partial || box != d->extent;
    }
    return true;
}

static ThreadsKind kind_of(const ThreadSet *s, const CtaPart *p,
                           const ParDevice *dev)
{
    bool whole = s->per_cta == dev->block_dim;
    if (s->threads == 1)
        return THREADS_one;
    if (s->ctas > 1) {
        if (!whole)
            return THREADS_other;
        return s->ctas == dev->cluster_dim ? THREADS_cluster : THREADS_ctas;
    }
    if (s->warp_aligned && s->n_warps == 1)
        return THREADS_warp;
    if (whole)
        return THREADS_cta;
    if (s->warp_aligned && s->n_warps == 4 && p->alignment % 128 == 0)
        return THREADS_warpgroup;
    return s->warp_aligned ? THREADS_warps : THREADS_other;
}

static CtaPart cta_part(ParInfo *pi, const Tiling *t, int64_t block_dim,
                        int64_t *ctas)
{
    CtaPart p = { .threads = 1,
                  .span = 1,
                  .first = affine_const(pi->m->exprs, 0) };
    *ctas = 1;
    for (unsigned i = 0; i < t->n; i++) {
        if (t->dims[i].pitch >= block_dim)
            *ctas *= tile_dim_box(&t->dims[i]);
        else
            add_dim(pi, t, i, &p);
    }
    p.hi += p.lo + p.span;
    p.contiguous = is_contiguous(t, block_dim);
    return p;
}

ThreadSet *par_thread_set(ParInfo *pi, Scope *scope)
{
    if (scope->set)
        return scope->set;
    const ParDevice *dev = scope->dev;
    ThreadSet *s = ARENA_NEW(pi->m->arena, ThreadSet);
    CtaPart p = cta_part(pi, scope->tiling, dev->block_dim, &s->ctas);
    s->per_cta = p.threads;
    s->threads = p.threads * s->ctas;
    s->contiguous = p.contiguous;
    s->warp_aligned =
        p.contiguous && p.alignment % 32 == 0 && p.threads % 32 == 0;
    if (s->contiguous)
        s->first = p.first;
    if (s->warp_aligned) {
        s->warp_lo = affine_floordiv(pi->m->exprs, p.first, 32);
        s->n_warps = p.threads / 32;
    }
    s->cover_lo = p.lo / 32;
    s->cover_hi = (p.hi + 31) / 32;
    s->role = scope->role;
    s->guard = scope->guard;
    s->kind = kind_of(s, &p, dev);
    scope->set = s;
    return s;
}
