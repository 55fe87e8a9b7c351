/* The arguments of CudaDeviceFunction(..) and CudaWarps(..).
 *
 * Both take Python's calling convention: positional ones first, then by
 * keyword. The limits that hold for any program (block and cluster sizes,
 * register counts) are checked here, where each argument has a place. */
#include "ir/exo_build.h"

#include <string.h>

enum { MAX_ARGS = 8 };

/* Sorts a call's arguments by the callee's parameter names. */
static bool sort_args(Build *b, const AstExpr *call, const char *const *names,
                      unsigned n, const AstExpr **out)
{
    const char *f = ast_callee(call);
    memset(out, 0, n * sizeof *out);
    for (unsigned i = 1; i < call->n; i++) {
        const AstExpr *e = call->args[i];
        unsigned k = i - 1;
        if (e->kind == AST_keyword)
            for (k = 0; k < n && strcmp(names[k], e->name) != 0; k++)
                ;
        if (k >= n) {
            build_error(b, e->loc, "device", "%s has no argument '%s'", f,
                        e->kind == AST_keyword
                            ? e->name
                            : arena_printf(b->arena, "number %u", i));
            return false;
        }
        if (out[k]) {
            build_error(b, e->loc, "device", "%s: '%s' is given twice", f,
                        names[k]);
            return false;
        }
        out[k] = e->kind == AST_keyword ? e->args[0] : e;
    }
    return true;
}

static bool int_arg(Build *b, const AstExpr *e, const char *name, int64_t *out)
{
    return !e || e->kind == AST_none || build_const_int(b, e, name, out);
}

static bool device_error(Build *b, const AstExpr *e, const char *rule,
                         int64_t found)
{
    build_error(b, e->loc, "device", "%s, found %lld", rule, (long long)found);
    return false;
}

/* ---- warp configurations ----------------------------------------------- */

typedef struct WarpConfig {
    const AstExpr *at;
    const char *name;
    int64_t count, dec, inc; /* dec, inc: -1 when None */
} WarpConfig;

static bool is_identifier(const char *s)
{
    if (!*s || (*s >= '0' && *s <= '9'))
        return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
              (*s >= '0' && *s <= '9') || *s == '_'))
            return false;
    return true;
}

static bool warp_registers(Build *b, const AstExpr *e, const char *name,
                           int64_t *out)
{
    *out = -1;
    if (!int_arg(b, e, name, out))
        return false;
    if (*out == -1 && (!e || e->kind == AST_none))
        return true;
    if (*out >= 24 && *out <= 256 && *out % 8 == 0)
        return true;
    build_error(b, e->loc, "device",
                "%s expects a multiple of 8 in [24, 256], "
                "found %lld",
                name, (long long)*out);
    return false;
}

static bool warp_config(Build *b, const AstExpr *e, WarpConfig *w)
{
    static const char *const names[] = { "name", "count", "setmaxnreg_dec",
                                         "setmaxnreg_inc" };
    const AstExpr *a[4];
    Param p;
    *w = (WarpConfig){ .at = e };
    if (e->kind != AST_call || !ast_callee(e) ||
        strcmp(ast_callee(e), "CudaWarpConfig") != 0) {
        build_error(b, e->loc, "device",
                    "expected CudaWarpConfig(name, count, "
                    "..) in warp_config");
        return false;
    }
    if (!sort_args(b, e, names, 4, a))
        return false;
    if (!a[0] || !a[1]) {
        build_error(b, e->loc, "device",
                    "CudaWarpConfig expects name and "
                    "count");
        return false;
    }
    if (!build_const(b, a[0], &p))
        return false;
    if (p.kind != PARAM_str || !is_identifier(p.s)) {
        build_error(b, a[0]->loc, "device",
                    "CudaWarpConfig: name expects an "
                    "identifier in quotes, found %s%s%s",
                    p.kind == PARAM_str ? "'" : "another literal",
                    p.kind == PARAM_str ? p.s : "",
                    p.kind == PARAM_str ? "'" : "");
        return false;
    }
    w->name = p.s;
    if (!build_const_int(b, a[1], "CudaWarpConfig.count", &w->count))
        return false;
    if (w->count <= 0)
        return device_error(b, a[1],
                            "CudaWarpConfig: count expects a positive "
                            "int",
                            w->count);
    return warp_registers(b, a[2], "setmaxnreg_dec", &w->dec) &&
           warp_registers(b, a[3], "setmaxnreg_inc", &w->inc);
}

/* Each aligned group of 4 warps asks for the same register count. */
static bool warps_agree(Build *b, const WarpConfig *w, unsigned n)
{
    int64_t total = 0;
    const WarpConfig *any = NULL;
    for (unsigned i = 0; i < n; i++) {
        total += w[i].count;
        if (w[i].dec >= 0 || w[i].inc >= 0)
            any = &w[i];
    }
    if (total > 32)
        return device_error(b, w->at, "warp_config: at most 32 warps", total);
    if (!any)
        return true;
    if (total % 4)
        return device_error(b, any->at, "setmaxnreg needs blockDim % 128 == 0",
                            32 * total);
    const WarpConfig *group = NULL;
    unsigned k = 0;
    int64_t left = w->count;
    for (int64_t warp = 0; warp < total; warp++, left--) {
        while (left == 0)
            left = w[++k].count;
        if (warp % 4 == 0)
            group = &w[k];
        if (group->dec != w[k].dec || group->inc != w[k].inc) {
            long long first = warp / 4 * 4;
            build_error(b, w[k].at->loc, "device",
                        "setmaxnreg: '%s' and '%s' share "
                        "a warpgroup (warps %lld to %lld), expected one "
                        "request for it",
                        group->name, w[k].name, first, first + 3);
            return false;
        }
    }
    return true;
}

static bool warps_distinct(Build *b, const WarpConfig *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++) {
            if (k < i && strcmp(w[i].name, w[k].name) == 0) {
                build_error(b, w[i].at->loc, "device",
                            "warp_config: duplicate name "
                            "'%s'",
                            w[i].name);
                return false;
            }
            if (w[i].dec >= 0 && w[i].dec == w[k].inc) {
                build_error(b, w[i].at->loc, "device",
                            "setmaxnreg %lld is used for "
                            "both dec and inc",
                            (long long)w[i].dec);
                return false;
            }
        }
    return true;
}

static Param number_or_none(int64_t n)
{
    return n < 0 ? (Param){ .kind = PARAM_none }
                 : (Param){ .kind = PARAM_int, .i = n };
}

static bool warp_configs(Build *b, Op *op, const AstExpr *list)
{
    if ((list->kind != AST_list && list->kind != AST_tuple) || list->n == 0 ||
        list->n > 32) {
        build_error(b, list->loc, "device",
                    "warp_config expects a list of 1 "
                    "to 32 CudaWarpConfig(..)");
        return false;
    }
    WarpConfig *w = ARENA_ARRAY(b->arena, WarpConfig, list->n);
    Param *items = ARENA_ARRAY(b->arena, Param, list->n);
    for (unsigned i = 0; i < list->n; i++) {
        if (!warp_config(b, list->args[i], &w[i]))
            return false;
        Param *p = ARENA_ARRAY(b->arena, Param, 4);
        p[0] = (Param){ .kind = PARAM_str, .s = w[i].name };
        p[1] = (Param){ .kind = PARAM_int, .i = w[i].count };
        p[2] = number_or_none(w[i].dec);
        p[3] = number_or_none(w[i].inc);
        items[i] = (Param){ .kind = PARAM_tuple, .n = 4, .items = p };
    }
    op_set_param(b->m, op, "warp_config",
                 &(Param){ .kind = PARAM_tuple, .n = list->n, .items = items });
    return warps_distinct(b, w, list->n) && warps_agree(b, w, list->n);
}

/* ---- with -------------------------------------------------------------- */

static bool device_sizes(Build *b, Op *op, const AstExpr *const *a)
{
    int64_t dim = 0, cluster = 1, blocks = 1;
    if (!int_arg(b, a[0], "blockDim", &dim) ||
        !int_arg(b, a[1], "clusterDim", &cluster) ||
        !int_arg(b, a[2], "blocks_per_sm", &blocks))
        return false;
    if (a[0] && (dim <= 0 || dim % 32 || dim > 1024))
        return device_error(b, a[0],
                            "blockDim expects a positive multiple of "
                            "32 up to 1024",
                            dim);
    if (cluster <= 0 || (cluster & (cluster - 1)))
        return device_error(b, a[1], "clusterDim expects a power of two",
                            cluster);
    if (blocks <= 0)
        return device_error(b, a[2], "blocks_per_sm expects a positive int",
                            blocks);
    if (a[0])
        op_set_int(b->m, op, "blockDim", dim);
    if (cluster != 1)
        op_set_int(b->m, op, "clusterDim", cluster);
    if (blocks != 1)
        op_set_int(b->m, op, "blocks_per_sm", blocks);
    return true;
}

static bool absent(const AstExpr *e)
{
    return !e || e->kind == AST_none;
}

bool build_device_attrs(Build *b, Op *op, const AstExpr *call)
{
    static const char *const names[] = { "blockDim",
                                         "clusterDim",
                                         "blocks_per_sm",
                                         "warp_config",
                                         "unsafe_no_shutdown_cluster_sync",
                                         "programmatic_dependent_launch" };
    const AstExpr *a[MAX_ARGS];
    if (!sort_args(b, call, names, 6, a))
        return false;
    if (absent(a[0]) == absent(a[3])) {
        build_error(b, call->loc, "device",
                    "CudaDeviceFunction expects exactly "
                    "one of blockDim and warp_config, found %s",
                    absent(a[0]) ? "neither" : "both");
        return false;
    }
    if (absent(a[0]))
        a[0] = NULL;
    if (!device_sizes(b, op, a))
        return false;
    if (!absent(a[3]) && !warp_configs(b, op, a[3]))
        return false;
    for (unsigned i = 4; i < 6; i++) {
        bool chosen = false;
        if (a[i] && !build_const_bool(b, a[i], &chosen))
            return false;
        if (chosen)
            op_set_bool(b->m, op, names[i], true);
    }
    return true;
}

bool build_warps_attrs(Build *b, Op *op, const AstExpr *call)
{
    static const char *const names[] = { "lo", "hi", "name" };
    const AstExpr *a[MAX_ARGS];
    Param p;
    if (!sort_args(b, call, names, 3, a))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (absent(a[i]))
            continue;
        if (!build_const(b, a[i], &p))
            return false;
        if (p.kind != (i == 2 ? PARAM_str : PARAM_int) || (i < 2 && p.i < 0)) {
            build_error(b, a[i]->loc, "device", "CudaWarps: %s expects %s",
                        names[i], i == 2 ? "a string" : "an int from 0 on");
            return false;
        }
        op_set_param(b->m, op, names[i], &p);
    }
    return true;
}
