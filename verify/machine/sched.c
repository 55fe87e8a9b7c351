/* Picks what goes next: a warp that can run, or an engine's effect.
 *
 * Canonical: warps in turn, each until it blocks; an effect, the youngest, only
 * when no warp can run, so that engines are as late as allowed. Seeded: three
 * of four seeds give warps and effects random priorities, which change now and
 * then, and always take the highest, so that one agent may fall far behind the
 * others (Burckhardt et al., "A randomized scheduler with probabilistic
 * guarantees of finding bugs"); the rest pick at random, with a laziness of the
 * engines and a length of the warps' turns of the seed's own. When nothing can
 * go on and warps are left it is a deadlock, and each waiter is told. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"

#include <string.h>

/* ---- deadlock ------------------------------------------------------------ */

static void describe_mbar(StrBuf *out, const Wait *x)
{
    const Mbar *b = x->bar;
    value_print_name(out, b->array);
    strbuf_addf(out,
                "[%lld] for parity %lld: phase %lld (parity %lld) is "
                "not complete, %lld of %lld arrivals are missing and %lld "
                "bytes outstanding",
                (long long)b->element, (long long)x->parity,
                (long long)b->phase, (long long)(b->phase & 1),
                (long long)b->pending, (long long)b->count,
                (long long)b->bytes);
}

static void describe_wait(StrBuf *out, const Warp *w)
{
    const Wait *x = &w->wait;
    switch (x->kind) {
    case WAIT_mbarrier:
        describe_mbar(out, x);
        return;
    case WAIT_named:
        strbuf_addf(out,
                    "named barrier %lld, where %lld of %lld threads "
                    "have arrived",
                    (long long)x->id, (long long)w->cta->named[x->id].arrived,
                    (long long)w->cta->named[x->id].threads);
        return;
    case WAIT_cluster:
        strbuf_addf(out,
                    "the cluster barrier, where %lld of %lld warps have "
                    "arrived",
                    (long long)w->cluster->arrived,
                    (long long)w->cluster->live);
        return;
    default:
        strbuf_add(out, "its copies or wgmma groups");
    }
}

/* Warps of one CTA that wait at the same op are told together. */
static void note_waiters(Machine *mc, Diag *d, const Cta *cta)
{
    const Kernel *k = mc->k;
    for (unsigned i = 0; i < k->n_warps;) {
        const Warp *w = &cta->warps[i];
        unsigned first = i++;
        if (w->done || !w->wait.kind)
            continue;
        while (i < k->n_warps && !cta->warps[i].done &&
               cta->warps[i].wait.kind == w->wait.kind &&
               cta->warps[i].wait.op == w->wait.op &&
               cta->warps[i].wait.bar == w->wait.bar)
            i++;
        StrBuf what = { 0 }, name = { 0 }, warps = { 0 };
        describe_wait(&what, w);
        print_op_name(&name, w->wait.op);
        strbuf_addf(&warps, i - first > 1 ? "warps %u to %u" : "warp %u", first,
                    i - 1);
        diag_note(mc->ctx, d, w->wait.op->loc,
                  "cluster %u cta %u %s%s%s%s at '%s' wait%s for %s",
                  cta->cluster->index, cta->rank, strbuf_text(&warps),
                  w->role ? " (" : "", w->role ? w->role : "",
                  w->role ? ")" : "", strbuf_text(&name),
                  i - first > 1 ? "" : "s", strbuf_text(&what));
        strbuf_free(&what);
        strbuf_free(&name);
        strbuf_free(&warps);
    }
}

static bool fail_deadlock(Machine *mc)
{
    const char *class = machine_class(mc, mc->k->op, "deadlock");
    bool plain = !strcmp(class, "deadlock");
    Diag *d = diag_error(mc->ctx, mc->k->op->loc, class,
                         "%s%sdeadlock in kernel '%s': no warp can go on and "
                         "no copy or wgmma is under way",
                         plain ? "" : class, plain ? "" : ": ",
                         op_attr_str(mc->k->op, "name", "?"));
    mc->failed = true;
    for (unsigned c = 0; c < mc->n_clusters; c++)
        for (unsigned r = 0; r < mc->k->cluster_dim; r++)
            note_waiters(mc, d, &mc->clusters[c].ctas[r]);
    return false;
}

/* ---- the end of a kernel ------------------------------------------------- */

static bool check_end(Machine *mc)
{
    for (size_t i = 0; i < mc->effects.len; i++) {
        Effect *e = mc->effects.data[i].effect;
        if (e->kind != EFFECT_store || !e->source_read)
            return machine_fail(mc, e->warp, e->lanes, e->op, "unfinished",
                                "is still under way when the kernel ends; "
                                "wait for it before its shared memory or "
                                "registers go away");
    }
    for (unsigned c = 0; c < mc->n_clusters; c++)
        for (unsigned r = 0; r < mc->k->cluster_dim; r++)
            for (unsigned i = 0; i < mc->k->n_warps; i++) {
                const Warp *ws = mc->clusters[c].ctas[r].warps;
                const Warp *w = &ws[i], *lead = &ws[i - i % 4];
                if (w->mma_issued != lead->mma_issued)
                    return machine_fail(mc, w, ALL_LANES, mc->k->op, "wgmma",
                                        "the four warps of a warpgroup issued "
                                        "different numbers of wgmma");
            }
    return true;
}

/* ---- picking ------------------------------------------------------------- */

typedef struct Candidates {
    Warp **warps;
    unsigned n, live;
} Candidates;

static void find_warps(Machine *mc, Candidates *out)
{
    out->n = out->live = 0;
    for (unsigned c = 0; c < mc->n_clusters; c++)
        for (unsigned r = 0; r < mc->k->cluster_dim; r++)
            for (unsigned i = 0; i < mc->k->n_warps; i++) {
                Warp *w = &mc->clusters[c].ctas[r].warps[i];
                out->live += !w->done;
                if (!w->done && wait_ready(w))
                    out->warps[out->n++] = w;
            }
}

static Effect *youngest_effect(const Machine *mc)
{
    Effect *best = NULL;
    for (size_t i = 0; i < mc->effects.len; i++) {
        Effect *e = mc->effects.data[i].effect;
        if (effect_ready(e) && (!best || e->number > best->number))
            best = e;
    }
    return best;
}

static Effect *random_effect(Machine *mc)
{
    size_t n = mc->effects.len;
    size_t at = n ? (size_t)(machine_random(mc) % n) : 0;
    for (size_t i = 0; i < n; i++) {
        Effect *e = mc->effects.data[(at + i) % n].effect;
        if (effect_ready(e))
            return e;
    }
    return NULL;
}

static Effect *pick_effect(Machine *mc, unsigned n_warps)
{
    if (mc->options->canonical)
        return n_warps ? NULL : youngest_effect(mc);
    if (n_warps && machine_random(mc) % 256 < mc->laziness)
        return NULL;
    return random_effect(mc);
}

/* By priority: the warp or effect to take; lowers one of them at times. */
static Effect *pick_by_priority(Machine *mc, const Candidates *c, Warp **warp)
{
    Effect *best = NULL;
    *warp = NULL;
    for (unsigned i = 0; i < c->n; i++)
        if (!*warp || c->warps[i]->priority > (*warp)->priority)
            *warp = c->warps[i];
    for (size_t i = 0; i < mc->effects.len; i++) {
        Effect *e = mc->effects.data[i].effect;
        if (effect_ready(e) && (!best || e->priority > best->priority))
            best = e;
    }
    if (best && *warp && best->priority < (*warp)->priority)
        best = NULL;
    if (mc->time >= mc->next_change) {
        uint64_t *p = best    ? &best->priority
                      : *warp ? &(*warp)->priority
                              : NULL;
        if (p)
            *p = machine_random(mc);
        mc->next_change = mc->time + 1 + machine_random(mc) % 64;
    }
    return best;
}

bool machine_schedule(Machine *mc)
{
    size_t all =
        (size_t)mc->n_clusters * (size_t)mc->k->cluster_dim * mc->k->n_warps;
    Candidates c = { .warps = ARENA_ARRAY(mc->arena, Warp *, all) };
    bool ended = false;
    for (;;) {
        mc->time++;
        find_warps(mc, &c);
        if (!c.live && !ended && !check_end(mc))
            return false;
        ended = !c.live;
        bool canonical = mc->options->canonical;
        Warp *w =
            c.n ? c.warps[canonical ? 0 : machine_random(mc) % c.n] : NULL;
        Effect *e = !canonical && mc->by_priority ? pick_by_priority(mc, &c, &w)
                                                  : pick_effect(mc, c.n);
        if (e) {
            if (!effect_step(mc, e) || mc->failed)
                return false;
            continue;
        }
        if (!c.live)
            return true;
        if (!c.n)
            return fail_deadlock(mc);
        if (!warp_run(w, canonical ? 0 : mc->quantum) || mc->failed)
            return false;
    }
}
