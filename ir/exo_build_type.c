/* Declared types: `f32[M, 32] @ CudaSmemLinear` and what may hang on them.
 *
 * A declaration is an expression: an element type, extents (each perhaps with
 * `@ ring_buffer_by(depth)`), `.ring_guarded_by(b)`, and behind the last `@`
 * the memory or barrier mechanism. */
#include "ir/exo_build.h"

#include <string.h>

typedef struct Decl {
    const AstExpr *elem, *mem, *guard;
    unsigned n;
    const AstExpr *const *dims;
    bool window;
} Decl;

/* Takes the declaration apart; false after a report. */
static bool take_apart(Build *b, const AstExpr *e, Decl *d)
{
    memset(d, 0, sizeof *d);
    if (e->kind == AST_binary && e->op == '@') {
        d->mem = e->args[1];
        e = e->args[0];
    }
    if (e->kind == AST_call && e->args[0]->kind == AST_attr &&
        strcmp(e->args[0]->name, "ring_guarded_by") == 0) {
        if (e->n != 2) {
            build_error(b, e->loc, "type",
                        "ring_guarded_by expects 1 "
                        "argument, found %u",
                        e->n - 1);
            return false;
        }
        d->guard = e->args[1];
        e = e->args[0]->args[0];
    }
    if (e->kind == AST_index) {
        if (!build_spread(b, e->n - 1, e->args + 1, &d->n, &d->dims))
            return false;
        e = e->args[0];
    }
    if (e->kind == AST_list && e->n == 1 && d->n > 0) {
        d->window = true;
        e = e->args[0];
    }
    d->elem = e;
    if (e->kind == AST_name)
        return true;
    Diag *error = build_error(b, e->loc, "type", "expected a type");
    diag_fix(b->ctx, error, "write f32, f32[M, N] or [f32][M, N]");
    return false;
}

/* The depth of ring_buffer_by(4) or ring_buffer_by(depth=4). */
static bool ring_depth(Build *b, const AstExpr *e, int64_t *depth)
{
    const AstExpr *arg = e->n == 2 ? e->args[1] : NULL;
    if (arg && arg->kind == AST_keyword)
        arg = strcmp(arg->name, "depth") == 0 ? arg->args[0] : NULL;
    if (!arg) {
        build_error(b, e->loc, "type",
                    "ring_buffer_by expects one argument, "
                    "depth");
        return false;
    }
    if (!build_const_int(b, arg, "ring_buffer_by.depth", depth))
        return false;
    if (*depth > 0)
        return true;
    build_error(b, arg->loc, "type",
                "Expected ring_buffer_by.depth > 0, found "
                "%lld",
                (long long)*depth);
    return false;
}

/* A ring_buffer_by on a part of an extent, which nothing is made of: the text
 * `n + 1 @ (ring_buffer_by(2))` reads as n + (1 @ ..). */
static const AstExpr *annotated_part(const AstExpr *e)
{
    for (unsigned i = 0; i < e->n; i++) {
        const AstExpr *a = e->args[i];
        if (!a)
            continue;
        const char *callee = a->kind == AST_binary && a->op == '@'
                                 ? ast_callee(a->args[1])
                                 : NULL;
        if (callee && !strcmp(callee, "ring_buffer_by"))
            return a;
        const AstExpr *inner = annotated_part(a);
        if (inner)
            return inner;
    }
    return NULL;
}

static void warn_dropped(Build *b, const char *name, const AstExpr *e)
{
    const AstExpr *part = annotated_part(e);
    if (!part)
        return;
    Diag *d = diag_warning(b->ctx, part->loc, "dropped-ring",
                           "ring_buffer_by stands on a part of an extent of "
                           "%s: it is dropped",
                           name);
    diag_fix(b->ctx, d, "put the whole extent in brackets in front of the @");
}

/* One extent. An annotation that is no ring names a unit and means nothing. In
 * an entry `_` is whatever extent the argument has. */
static bool take_extent(Build *b, const char *name, const AstExpr *e,
                        unsigned i, BuiltType *out)
{
    if (e->kind == AST_binary && e->op == '@') {
        const AstExpr *note = e->args[1];
        const char *callee = ast_callee(note);
        if (callee && strcmp(callee, "ring_buffer_by") == 0) {
            if (out->ring_dim >= 0) {
                build_error(b, note->loc, "type",
                            "multiple managed ring "
                            "buffer dimensions in %s",
                            name);
                return false;
            }
            out->ring_dim = (int)i;
            if (!ring_depth(b, note, &out->ring_depth))
                return false;
        } else if (!build_unit(b, note)) {
            return false;
        }
        e = e->args[0];
    } else {
        warn_dropped(b, name, e);
    }
    if (b->in_entry && e->kind == AST_name && strcmp(e->name, "_") == 0)
        out->shape[i] = affine_var(
            b->x,
            var_new(b->x, arena_printf(b->arena, "%s_extent", name), VAR_size));
    else
        out->shape[i] = build_index(b, e);
    return out->shape[i] != NULL;
}

static bool take_shape(Build *b, const char *name, const Decl *d,
                       BuiltType *out)
{
    bool ok = true;
    out->rank = d->n;
    out->shape = ARENA_ARRAY(b->m->arena, const Affine *, d->n);
    for (unsigned i = 0; i < d->n; i++) {
        if (d->dims[i]->kind == AST_slice) {
            build_error(b, d->dims[i]->loc, "type",
                        "expected an extent of "
                        "'%s', found an interval",
                        name);
            ok = false;
            continue;
        }
        ok &= take_extent(b, name, d->dims[i], i, out);
        int64_t n;
        if (out->shape[i] && affine_is_const(out->shape[i], &n) && n <= 0) {
            build_error(b, d->dims[i]->loc, "type",
                        "expected a positive "
                        "extent of '%s', found %lld",
                        name, (long long)n);
            ok = false;
        }
    }
    if (ok && out->ring_dim >= 0 && !b->in_device) {
        build_error(b, d->elem->loc, "type",
                    "'%s' has a managed ring buffer "
                    "dimension outside CUDA code",
                    name);
        return false;
    }
    return ok;
}

static bool control_type(Build *b, const char *name, const Decl *d,
                         ScalarType t, bool param, BuiltType *out)
{
    static const VarKind kinds[] = { [TY_size] = VAR_size,
                                     [TY_index] = VAR_index,
                                     [TY_bool] = VAR_bool,
                                     [TY_stride] = VAR_int };
    out->control = true;
    if (!param || d->n || d->guard) {
        build_error(b, d->elem->loc, "type",
                    "'%s': the control type %s is for "
                    "parameters, without extents",
                    name, scalar_type_name(t));
        return false;
    }
    if (t == TY_int) {
        build_error(b, d->elem->loc, "type",
                    "'%s': int is no parameter type, "
                    "expected size, index, bool or stride",
                    name);
        return false;
    }
    out->var_kind = kinds[t];
    return true;
}

/* The mechanism after `@`. CudaCommitGroup, an older name of three, is left for
 * build_commit_groups. */
static const MemRef *mechanism(Build *b, const Decl *d)
{
    if (d->mem->kind != AST_name ||
        strcmp(d->mem->name, BUILD_ANY_COMMIT_GROUP) != 0)
        return build_mem(b, d->mem);
    b->commit_groups = true;
    return memref_get(b->ctx, BUILD_ANY_COMMIT_GROUP, 0, NULL);
}

static bool barrier_type(Build *b, const char *name, const Decl *d, bool param,
                         BuiltType *out)
{
    const MemRef *ref = d->mem ? mechanism(b, d) : NULL;
    if (d->mem && !ref)
        return false;
    if (param || d->guard || !ref || d->window) {
        build_error(
            b, d->elem->loc, "barrier",
            param       ? "'%s': a barrier mechanism is rejected on a parameter"
            : d->guard  ? "barrier '%s' cannot be ring_guarded_by "
                          "another"
            : d->window ? "barrier '%s' cannot be a window"
                        : "barrier '%s' requires a BarrierMechanism after '@'",
            name);
        return false;
    }
    const Mem *mem = b->lib ? lib_mem_find(b->lib, ref) : NULL;
    if (mem && mem->family != MEMF_barrier) {
        build_error(b, d->mem->loc, "barrier",
                    "barrier '%s' requires a "
                    "BarrierMechanism, found the memory %s",
                    name, ref->name);
        return false;
    }
    out->type = type_barrier(b->ctx, d->n, ref);
    return true;
}

/* The memory of data, DRAM when none is written. */
static const MemRef *data_mem(Build *b, const char *name, const Decl *d,
                              bool param, TypeKind *kind)
{
    AstExpr dram = { .kind = AST_name,
                     .loc = d->elem->loc,
                     .name = ctx_intern(b->ctx, "DRAM") };
    const AstExpr *at = d->mem ? d->mem : &dram;
    const MemRef *ref = build_mem(b, at);
    const Mem *mem = ref && b->lib ? lib_mem_find(b->lib, ref) : NULL;
    if (!mem)
        return ref;
    if (mem->family == MEMF_barrier) {
        build_error(b, at->loc, "memory",
                    "'%s' requires a Memory, found the "
                    "barrier mechanism %s",
                    name, ref->name);
        return NULL;
    }
    if (mem->family == MEMF_map) {
        *kind = TK_map;
        if (!param) {
            build_error(b, at->loc, "memory",
                        "Can only create SpecialWindow "
                        "as part of WindowStmt, found %s of '%s'",
                        ref->name, name);
            return NULL;
        }
    }
    return ref;
}

static bool take_guard(Build *b, const Decl *d, BuiltType *out)
{
    if (!d->guard)
        return true;
    if (d->guard->kind != AST_name) {
        build_error(b, d->guard->loc, "barrier",
                    "ring_guarded_by expects a "
                    "barrier's name without indices");
        return false;
    }
    Binding *t = build_find(b, d->guard->name);
    if (!t || t->kind != BIND_value || t->value->type->kind != TK_barrier) {
        if (!t || t->kind != BIND_broken)
            build_error(b, d->guard->loc, t ? "barrier" : "name",
                        "ring_guarded_by requires barrier type, found '%s'",
                        d->guard->name);
        return false;
    }
    out->guard = t->value;
    return true;
}

bool build_type(Build *b, const char *name, const AstExpr *e, bool param,
                BuiltType *out)
{
    Decl d;
    *out = (BuiltType){ .ring_dim = -1 };
    if (!take_apart(b, e, &d))
        return false;
    bool barrier = strcmp(d.elem->name, "barrier") == 0;
    ScalarType t = barrier ? TY_none : build_scalar_type(b, d.elem);
    if (!barrier && t == TY_none) {
        Diag *error = build_error(b, d.elem->loc, "type",
                                  "unknown type '%s' "
                                  "of '%s'",
                                  d.elem->name, name);
        diag_note(b->ctx, error, (Loc){ 0 },
                  "types are R, f16, bf16, f32, f64, "
                  "i8, i32, ui8, ui16, e4m3, e5m2, e8m0, size, index, bool, "
                  "stride, barrier");
        return false;
    }
    if (!barrier && scalar_type_is_control(t))
        return control_type(b, name, &d, t, param, out);
    bool ok = take_shape(b, name, &d, out);
    if (barrier)
        return barrier_type(b, name, &d, param, out) && ok;
    TypeKind kind = d.window ? TK_window : TK_tensor;
    const MemRef *mem = data_mem(b, name, &d, param, &kind);
    if (d.window && !param) {
        build_error(b, d.elem->loc, "type",
                    "'%s': a window type is for "
                    "parameters",
                    name);
        return false;
    }
    ok &= take_guard(b, &d, out);
    if (!mem || !ok)
        return false;
    out->type = type_tensor(b->ctx, kind, t, d.n, mem);
    return true;
}
