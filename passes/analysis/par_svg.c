/* The thread map of a statement as SVG. For every thread of a cluster the
 * guard and the thread iterators around the statement are evaluated at its
 * cta, warp and lane; nothing is known here of how they were derived. */
#include "passes/analysis/par_svg.h"

#include <string.h>

enum {
    CELL = 18,    /* pixels of a lane */
    MARGIN = 48,  /* left of a CTA, for the names of warps */
    HEADER = 56,  /* above the first CTA */
    CTA_GAP = 28, /* above each CTA */
    LANES = 32,
    ITERS_MAX = 32,
    HUE_STEP = 67 /* degrees from one value to the next; prime to 360 */
};

typedef struct Map {
    const Module *m;
    const ParDevice *dev;
    const Cond *guard;
    unsigned n_iters; /* outermost first */
    const Op *loops[ITERS_MAX];
    const Affine *iters[ITERS_MAX];
    unsigned hue; /* the iterator that gives the colour */
} Map;

/* ---- evaluation --------------------------------------------------------- */

typedef struct Place {
    const ParDevice *dev;
    int64_t cta, warp, lane;
} Place;

static bool place_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Place *p = env->user;
    if (atom->kind != ATOM_var)
        return false;
    if (atom->var == p->dev->cta)
        *out = p->cta;
    else if (atom->var == p->dev->warp)
        *out = p->warp;
    else if (atom->var == p->dev->lane)
        *out = p->lane;
    else
        return false;
    return true;
}

static bool takes_part(const Map *map, Place *p)
{
    Env env = { place_value, p };
    bool in = true;
    return !map->guard || (cond_eval(map->guard, &env, &in) && in);
}

static int64_t iter_at(const Map *map, unsigned i, Place *p)
{
    Env env = { place_value, p };
    int64_t v = 0;
    return affine_eval(map->iters[i], &env, &v) ? v : -1;
}

/* ---- what to draw ------------------------------------------------------- */

static bool is_thread_loop(const Op *op)
{
    return op->code == OP_ctl_for &&
           !strcmp(op_attr_str(op, "mode", "seq"), "threads");
}

static void find_iters(Map *map, const ParInfo *pi, const Op *op)
{
    const Op *up = op_parent(op);
    if (up && up->code != OP_par_device)
        find_iters(map, pi, up);
    const Affine *iter = is_thread_loop(op) ? par_iter(pi, op) : NULL;
    if (!iter || map->n_iters == ITERS_MAX)
        return;
    map->loops[map->n_iters] = op;
    map->iters[map->n_iters++] = iter;
}

static const char *iter_name(const Map *map, unsigned i)
{
    VarId v = map->loops[i]->blocks[0]->args[0].var;
    const char *name = var_get(map->m->exprs, v)->name;
    return name ? name : "?";
}

/* The outermost iterator that is no constant, or the last. */
static unsigned find_hue(const Map *map)
{
    for (unsigned i = 0; i < map->n_iters; i++)
        if (!affine_is_const(map->iters[i], NULL))
            return i;
    return map->n_iters ? map->n_iters - 1 : 0;
}

/* ---- drawing ------------------------------------------------------------ */

static void draw_cell(const Map *map, Place *p, int64_t x, int64_t y,
                      StrBuf *out)
{
    bool in = takes_part(map, p);
    strbuf_addf(out, "<g><title>cta %lld, warp %lld, lane %lld",
                (long long)p->cta, (long long)p->warp, (long long)p->lane);
    for (unsigned i = 0; in && i < map->n_iters; i++)
        strbuf_addf(out, ", %s = %lld", iter_name(map, i),
                    (long long)iter_at(map, i, p));
    strbuf_addf(out,
                "%s</title><rect x=\"%lld\" y=\"%lld\" width=\"%d\" "
                "height=\"%d\" fill=\"",
                in ? "" : ": does not execute it", (long long)x, (long long)y,
                CELL - 1, CELL - 1);
    if (!in) {
        strbuf_add(out, "#ddd\"/></g>\n");
        return;
    }
    if (!map->n_iters) {
        strbuf_add(out, "hsl(210,70%,75%)\"/></g>\n");
        return;
    }
    int64_t inner = iter_at(map, map->n_iters - 1, p);
    int64_t hue = iter_at(map, map->hue, p) * HUE_STEP % 360;
    int64_t light = 65 + (inner % 4) * 6;
    strbuf_addf(out,
                "hsl(%lld,70%%,%lld%%)\"/><text x=\"%lld\" y=\"%lld\">%lld"
                "</text></g>\n",
                (long long)hue, (long long)light, (long long)x + CELL / 2,
                (long long)y + 12, (long long)inner);
}

static void draw_cta(const Map *map, int64_t cta, int64_t y, StrBuf *out)
{
    int64_t n_warps = map->dev->block_dim / LANES;
    strbuf_addf(out,
                "<text class=\"name\" x=\"4\" y=\"%lld\">CTA %lld</text>\n",
                (long long)y - 6, (long long)cta);
    for (int64_t w = 0; w < n_warps; w++) {
        int64_t top = y + w * CELL;
        strbuf_addf(
            out, "<text class=\"name\" x=\"4\" y=\"%lld\">warp %lld</text>\n",
            (long long)top + 12, (long long)w);
        for (int64_t lane = 0; lane < LANES; lane++) {
            Place p = { map->dev, cta, w, lane };
            draw_cell(map, &p, MARGIN + lane * CELL, top, out);
        }
    }
}

static void draw_head(const Map *map, const Op *op, int64_t height, StrBuf *out)
{
    strbuf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                "height=\"%lld\">\n",
                2 * MARGIN + LANES * CELL, (long long)height);
    strbuf_add(out, "<style>text{font:9px sans-serif;text-anchor:middle}"
                    ".name{text-anchor:start}</style>\n");
    strbuf_addf(out,
                "<text class=\"name\" x=\"4\" y=\"16\">line %u: %lld CTAs of "
                "%lld threads</text>\n",
                op->loc.line, (long long)map->dev->cluster_dim,
                (long long)map->dev->block_dim);
    strbuf_add(out, "<text class=\"name\" x=\"4\" y=\"30\">");
    if (map->n_iters)
        strbuf_addf(out, "colour: %s; number: %s", iter_name(map, map->hue),
                    iter_name(map, map->n_iters - 1));
    else
        strbuf_add(out, "no thread loop around it");
    strbuf_add(out, "; grey: does not execute it</text>\n");
}

bool par_svg(const ParInfo *pi, const Module *m, const Op *op, StrBuf *out)
{
    Map map = { .m = m, .dev = par_device(pi, op) };
    bool body = is_thread_loop(op) || op->code == OP_par_warps;
    const ThreadSet *s = body ? par_body_threads(pi, op) : par_threads(pi, op);
    if (!map.dev || !s)
        return false;
    map.guard = s->guard;
    find_iters(&map, pi, op);
    map.hue = find_hue(&map);
    int64_t cta_height = map.dev->block_dim / LANES * CELL + CTA_GAP;
    draw_head(&map, op, HEADER + map.dev->cluster_dim * cta_height, out);
    for (int64_t cta = 0; cta < map.dev->cluster_dim; cta++)
        draw_cta(&map, cta, HEADER + cta * cta_height, out);
    strbuf_add(out, "</svg>\n");
    return true;
}
