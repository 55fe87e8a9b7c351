/* The par analysis in words. A note is a list of facts on one line; an
 * explanation says the same facts, and those around the statement, as
 * sentences. Both read ParInfo alone, so they cannot say anything that
 * lowering does not act on. */
#include "passes/analysis/par_words.h"

#include "passes/analysis/par_text.h"

#include <string.h>

/* ---- parts of sentences ------------------------------------------------- */

static void add_index(StrBuf *out, Module *m, const Affine *e)
{
    strbuf_add(out, par_text_affine(m, e));
}

static void add_cond(StrBuf *out, Module *m, const Cond *c)
{
    strbuf_add(out, par_text_cond(m, c));
}

static void add_count(StrBuf *out, int64_t n, const char *one, const char *many)
{
    strbuf_addf(out, "%lld %s", (long long)n, n == 1 ? one : many);
}

/* " 4", " 4 to 11", " 4 * (warp / 4) and the 3 after it". */
static void add_range(StrBuf *out, Module *m, const Affine *lo, int64_t n)
{
    int64_t c;
    strbuf_addc(out, ' ');
    add_index(out, m, lo);
    if (n > 1 && affine_is_const(lo, &c))
        strbuf_addf(out, " to %lld", (long long)(c + n - 1));
    else if (n > 1)
        strbuf_addf(out, " and the %lld after it", (long long)(n - 1));
}

/* "one warp: warp 1", "64 threads: threads 32 to 95". */
static void add_threads(StrBuf *out, Module *m, const ThreadSet *s)
{
    switch (s->kind) {
    case THREADS_one:
        strbuf_add(out, "one thread");
        break;
    case THREADS_warp:
        strbuf_add(out, "one warp");
        break;
    case THREADS_warpgroup:
        strbuf_add(out, "one warpgroup");
        break;
    case THREADS_cta:
        strbuf_addf(out, "one CTA of %lld threads", (long long)s->threads);
        break;
    case THREADS_cluster:
        strbuf_addf(out, "the cluster of %lld CTAs of %lld threads",
                    (long long)s->ctas, (long long)s->per_cta);
        break;
    case THREADS_warps:
        add_count(out, s->n_warps, "warp", "warps");
        break;
    case THREADS_ctas:
        add_count(out, s->ctas, "CTA", "CTAs");
        break;
    case THREADS_other:
        add_count(out, s->threads, "thread", "threads");
        if (s->ctas > 1)
            strbuf_addf(out, " in %lld CTAs", (long long)s->ctas);
        break;
    }
    bool whole = s->kind == THREADS_cta || s->kind == THREADS_cluster ||
                 s->kind == THREADS_ctas;
    if (whole)
        return;
    strbuf_add(out, ":");
    if (s->warp_aligned) {
        strbuf_add(out, s->n_warps > 1 ? " warps" : " warp");
        add_range(out, m, s->warp_lo, s->n_warps);
    } else if (s->contiguous) {
        strbuf_add(out, s->per_cta > 1 ? " threads" : " thread");
        add_range(out, m, s->first, s->per_cta);
    } else {
        strbuf_add(out, " not contiguous");
    }
}

static bool is_thread_loop(const Op *op)
{
    return op->code == OP_ctl_for &&
           !strcmp(op_attr_str(op, "mode", "seq"), "threads");
}

static bool restricts(const Cond *c)
{
    return c && c->kind != COND_true;
}

/* ---- allocations and barriers ------------------------------------------- */

static void add_dist(StrBuf *out, Module *m, const ParDist *d, unsigned i)
{
    strbuf_addf(out, "dim %u over ", i);
    if (d->tile_count == 1)
        strbuf_add(out, "1 tile");
    else
        strbuf_addf(out, "%lld %s, %lld %s apart", (long long)d->tile_count,
                    d->across_ctas ? "CTAs" : "tiles", (long long)d->pitch,
                    d->pitch == 1 ? "thread" : "threads");
    if (d->value) {
        strbuf_add(out, ", at ");
        add_index(out, m, d->value);
    }
}

static void add_shard(StrBuf *out, Module *m, const ParAlloc *a)
{
    strbuf_addf(out, "%s", a->n_shard ? "[" : "one");
    for (unsigned i = 0; i < a->n_shard; i++) {
        strbuf_add(out, i ? ", " : "");
        add_index(out, m, a->shard[i]);
    }
    strbuf_add(out, a->n_shard ? "]" : "");
    if (a->mem && a->mem->native_unit) {
        strbuf_add(out, " per ");
        unitref_print(out, a->mem->native_unit);
    }
}

static void add_alloc(StrBuf *out, Module *m, const ParAlloc *a)
{
    for (unsigned i = 0; i < a->n_dist; i++) {
        add_dist(out, m, &a->dist[i], i);
        strbuf_add(out, "; ");
    }
    add_shard(out, m, a);
    if (!a->used)
        strbuf_add(out, "; unused");
}

static void add_sync(StrBuf *out, const ParSync *s)
{
    if (s->n_xor > 1) {
        strbuf_add(out, "; on the barriers of CTAs cta xor {");
        for (unsigned i = 0; i < s->n_xor; i++)
            strbuf_addf(out, "%s%lld", i ? ", " : "", (long long)s->xors[i]);
        strbuf_add(out, "}");
    }
    if (s->source_ctas > 1)
        strbuf_addf(out, "; Arrives of %lld CTAs meet",
                    (long long)s->source_ctas);
}

/* ---- a line ------------------------------------------------------------- */

static void add_loop(StrBuf *out, const ParInfo *pi, Module *m, const Op *op)
{
    const Affine *iter = is_thread_loop(op) ? par_iter(pi, op) : NULL;
    const Cond *guard = par_guard(pi, op);
    if (iter) {
        strbuf_addf(out, "; %s = ",
                    var_get(m->exprs, op->blocks[0]->args[0].var)->name);
        add_index(out, m, iter);
    }
    if (restricts(guard)) {
        strbuf_add(out, "; if ");
        add_cond(out, m, guard);
    }
}

void par_note(const ParInfo *pi, Module *m, const Op *op, StrBuf *out)
{
    const ThreadSet *s = par_threads(pi, op);
    const ParAlloc *a =
        op->code == OP_mem_alloc ? par_alloc(pi, op->results[0]) : NULL;
    const ParSync *sync = par_sync(pi, op);
    if (a) {
        add_alloc(out, m, a);
        return;
    }
    if (!s)
        return;
    add_threads(out, m, s);
    if (s->role && *s->role)
        strbuf_addf(out, " (%s)", s->role);
    if (is_thread_loop(op) || op->code == OP_par_warps)
        add_loop(out, pi, m, op);
    if (sync)
        add_sync(out, sync);
}

/* ---- sentences ---------------------------------------------------------- */

static void explain_device(StrBuf *out, const ParDevice *d)
{
    strbuf_addf(out,
                "The device function has clusters of %lld CTAs of %lld "
                "threads (%lld warps).\n",
                (long long)d->cluster_dim, (long long)d->block_dim,
                (long long)(d->block_dim / 32));
}

/* The loops over threads and the CudaWarps around op, outermost first. */
static void explain_around(StrBuf *out, const ParInfo *pi, Module *m,
                           const Op *op)
{
    const Op *up = op_parent(op);
    if (!up || up->code == OP_par_device)
        return;
    explain_around(out, pi, m, up);
    bool warps = up->code == OP_par_warps;
    const ThreadSet *s =
        warps || is_thread_loop(up) ? par_body_threads(pi, up) : NULL;
    if (!s)
        return;
    const Affine *iter = warps ? NULL : par_iter(pi, up);
    if (iter) {
        strbuf_addf(out, "Around it, %s = ",
                    var_get(m->exprs, up->blocks[0]->args[0].var)->name);
        add_index(out, m, iter);
    } else {
        strbuf_add(out, "Around it, CudaWarps");
    }
    strbuf_add(out, " leaves ");
    add_threads(out, m, s);
    if (restricts(par_guard(pi, up))) {
        strbuf_add(out, "; threads take part if ");
        add_cond(out, m, par_guard(pi, up));
    }
    strbuf_add(out, ".\n");
}

static void explain_threads(StrBuf *out, Module *m, const ThreadSet *s)
{
    strbuf_add(out, "It is executed by ");
    add_threads(out, m, s);
    strbuf_add(out, ".\n");
    if (restricts(s->guard)) {
        strbuf_add(out, "The threads that execute it are those where ");
        add_cond(out, m, s->guard);
        strbuf_add(out, ".\n");
    }
}

static void explain_alloc(StrBuf *out, Module *m, const ParAlloc *a)
{
    const char *name = par_text_value(a->value);
    if (!a->used) {
        strbuf_addf(out, "%s is never used.\n", name);
        return;
    }
    for (unsigned i = 0; i < a->n_dist; i++) {
        strbuf_addf(out, "%s is spread: ", name);
        add_dist(out, m, &a->dist[i], i);
        strbuf_add(out, ".\n");
    }
    strbuf_addf(out, "What one owner of %s holds: ", name);
    add_shard(out, m, a);
    strbuf_add(out, ".\n");
}

static void explain_sync(StrBuf *out, const ParSync *s)
{
    strbuf_addf(out, "It concerns barrier %s (%s)", par_text_value(s->barrier),
                s->mechanism->ref->name);
    add_sync(out, s);
    strbuf_add(out, ".\n");
}

static void explain_body(StrBuf *out, const ParInfo *pi, Module *m,
                         const Op *op)
{
    const ThreadSet *s = par_body_threads(pi, op);
    const Affine *iter = is_thread_loop(op) ? par_iter(pi, op) : NULL;
    if (iter) {
        strbuf_addf(out, "Its iterator %s is ",
                    var_get(m->exprs, op->blocks[0]->args[0].var)->name);
        add_index(out, m, iter);
        strbuf_add(out, ".\n");
    }
    if (s && (is_thread_loop(op) || op->code == OP_par_warps)) {
        strbuf_add(out, "Each iteration of its body is executed by ");
        add_threads(out, m, s);
        strbuf_add(out, ".\n");
    }
}

bool par_explain(const ParInfo *pi, Module *m, const Op *op, StrBuf *out)
{
    const ParDevice *d = par_device(pi, op);
    const ThreadSet *s = par_threads(pi, op);
    const ParAlloc *a =
        op->code == OP_mem_alloc ? par_alloc(pi, op->results[0]) : NULL;
    if (!d)
        return false;
    explain_device(out, d);
    if (!s)
        return true;
    explain_around(out, pi, m, op);
    explain_threads(out, m, s);
    if (op->n_blocks)
        explain_body(out, pi, m, op);
    if (a)
        explain_alloc(out, m, a);
    if (par_sync(pi, op))
        explain_sync(out, par_sync(pi, op));
    return true;
}
