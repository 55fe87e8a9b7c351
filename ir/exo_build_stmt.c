/* Statements to ops, and procedures. */
#include "ir/exo_build.h"
#include "ir/lib_entry.h"

#include <string.h>

Op *build_op(Build *b, OpCode code, Loc loc, unsigned n_operands,
             unsigned n_results, unsigned n_blocks)
{
    Op *op = op_new(b->m, code, loc, n_operands, n_results, n_blocks);
    block_append(b->block, op);
    return op;
}

/* Runs the statements in a block of their own scope. */
static void build_into(Build *b, Block *block, const AstStmt *s)
{
    Block *outer = b->block;
    size_t mark = build_mark(b);
    b->block = block;
    build_stmts(b, s);
    b->block = outer;
    build_close(b, mark);
}

/* ---- loops ------------------------------------------------------------- */

static const struct {
    const char *word, *mode, *keyword;
} loop_modes[] = {
    { "seq", NULL, "pragma_unroll" },
    { "par", "par", NULL },
    { "cuda_tasks", "tasks", "group" },
    { "cuda_threads", "threads", "unit" },
};
enum { N_LOOP_MODES = sizeof loop_modes / sizeof *loop_modes };

/* A loop's header, its k-th when it is a nest. */
typedef struct LoopHeader {
    unsigned mode;
    const AstExpr *lo, *hi, *unit, *unroll, *group;
} LoopHeader;

static int find_mode(Build *b, const AstStmt *s)
{
    const char *word = ast_callee(s->a);
    for (int i = 0; s->a->kind == AST_call && word && i < N_LOOP_MODES; i++)
        if (strcmp(word, loop_modes[i].word) == 0)
            return i;
    Diag *d = build_error(b, s->a->loc, "loop", "unknown loop mode '%s'",
                          word ? word : "an expression");
    diag_note(b->ctx, d, (Loc){ 0 },
              "expected seq(lo, hi), par(lo, hi), "
              "cuda_tasks(lo, hi) or cuda_threads(lo, hi, unit=..)");
    return -1;
}

static bool loop_keyword(Build *b, const AstExpr *kw, LoopHeader *h)
{
    const char *known = loop_modes[h->mode].keyword;
    if (!known || strcmp(kw->name, known) != 0) {
        build_error(b, kw->loc, "loop", "loop mode %s has no argument '%s'",
                    loop_modes[h->mode].word, kw->name);
        return false;
    }
    if (strcmp(known, "unit") == 0)
        h->unit = kw->args[0];
    else if (strcmp(known, "group") == 0)
        h->group = kw->args[0];
    else
        h->unroll = kw->args[0];
    return true;
}

static bool loop_header(Build *b, const AstStmt *s, unsigned k, LoopHeader *h)
{
    *h = (LoopHeader){ 0 };
    int mode = find_mode(b, s);
    if (mode < 0)
        return false;
    h->mode = (unsigned)mode;
    unsigned positional = 0;
    for (unsigned i = 1; i < s->a->n; i++) {
        const AstExpr *e = s->a->args[i];
        if (e->kind == AST_keyword) {
            if (!loop_keyword(b, e, h))
                return false;
            continue;
        }
        if (e->kind == AST_pack) {
            unsigned n;
            const AstExpr *const *items;
            if (!build_spread(b, 1, &s->a->args[i], &n, &items) || k >= n)
                return false;
            e = items[k];
        }
        if (positional == 0)
            h->lo = e;
        else
            h->hi = e;
        positional++;
    }
    if (positional == 2)
        return true;
    build_error(b, s->a->loc, "loop",
                "loop mode %s expects 2 arguments lo, hi, "
                "found %u",
                loop_modes[mode].word, positional);
    return false;
}

/* A literal of at least `least`, or None, as an attribute. */
static bool loop_count(Build *b, Op *op, const char *key, const AstExpr *e,
                       int64_t least)
{
    Param p;
    if (!build_const(b, e, &p))
        return false;
    if (p.kind == PARAM_none)
        return true;
    if (p.kind != PARAM_int || p.i < least || p.i > INT32_MAX) {
        build_error(b, e->loc, "loop", "%s expects None%s or a positive int",
                    key, least ? "" : ", 0");
        return false;
    }
    op_set_param(b->m, op, key, &p);
    return true;
}

static bool loop_attrs(Build *b, Op *op, const LoopHeader *h)
{
    const char *mode = loop_modes[h->mode].mode;
    if (mode)
        op_set_str(b->m, op, "mode", mode);
    if (mode && strcmp(mode, "threads") == 0) {
        AstExpr thread = { .kind = AST_name,
                           .loc = op->loc,
                           .name = ctx_intern(b->ctx, "cuda_thread") };
        const UnitRef *u = build_unit(b, h->unit ? h->unit : &thread);
        if (!u)
            return false;
        op_set_attr(b->m, op,
                    (Attr){ .key = "unit", .kind = ATTR_unit, .unit = u });
    }
    return (!h->unroll || loop_count(b, op, "pragma_unroll", h->unroll, 0)) &&
           (!h->group || loop_count(b, op, "group", h->group, 1));
}

/* One loop; its body is built by the caller in op->blocks[0]. */
static Op *open_loop(Build *b, const AstStmt *s, const char *name, unsigned k)
{
    LoopHeader h;
    if (!loop_header(b, s, k, &h))
        return NULL;
    const Affine *lo = build_index(b, h.lo), *hi = build_index(b, h.hi);
    if (!lo || !hi)
        return NULL;
    Op *op = build_op(b, OP_ctl_for, s->loc, 2, 0, 1);
    op->operands[0] = opnd_index(lo);
    op->operands[1] = opnd_index(hi);
    if (!loop_attrs(b, op, &h))
        return NULL;
    VarId v = block_add_var(b->m, op->blocks[0], name, VAR_iter);
    var_set_bounds(b->x, v, lo, hi);
    build_bind(b, name, s->name_loc, BIND_var)->var = v;
    return op;
}

static unsigned nest_depth(Build *b, const AstStmt *s)
{
    unsigned n;
    const AstExpr *const *items;
    if (!b->in_entry || s->a->kind != AST_call) {
        build_error(b, s->loc, "syntax",
                    "'%s...' is for entries of libraries "
                    "only",
                    s->name);
        return 0;
    }
    for (unsigned i = 1; i < s->a->n; i++)
        if (s->a->args[i]->kind == AST_pack)
            return build_spread(b, 1, &s->a->args[i], &n, &items) ? n : 0;
    build_error(b, s->loc, "loop", "a nest of loops expects a range with ...");
    return 0;
}

/* The broken loop's body is built too, for its errors. */
static void build_broken_body(Build *b, const AstStmt *s, const char *name)
{
    size_t mark = build_mark(b);
    build_bind(b, name, s->name_loc, BIND_broken);
    build_into(b, block_new(b->m, NULL), s->body);
    build_close(b, mark);
}

static void build_for(Build *b, const AstStmt *s)
{
    Block *outer = b->block;
    size_t mark = build_mark(b);
    unsigned n = s->pack ? nest_depth(b, s) : 1;
    for (unsigned k = 0; k < n; k++) {
        const char *name = s->name;
        if (s->pack)
            name =
                ctx_intern(b->ctx, arena_printf(b->arena, "%s%u", s->name, k));
        Op *op = open_loop(b, s, name, k);
        if (!op) {
            b->failed = true;
            build_broken_body(b, s, name);
            n = 0;
            break;
        }
        if (k == 0)
            op->comment = s->comment;
        b->block = op->blocks[0];
    }
    if (n)
        build_into(b, b->block, s->body);
    b->block = outer;
    build_close(b, mark);
}

/* ---- with, if ---------------------------------------------------------- */

static void build_with(Build *b, const AstStmt *s)
{
    const char *what = s->a->kind == AST_call ? ast_callee(s->a) : NULL;
    bool device = what && strcmp(what, "CudaDeviceFunction") == 0;
    if (!device && !(what && strcmp(what, "CudaWarps") == 0)) {
        build_error(b, s->a->loc, "device",
                    "expected CudaDeviceFunction(..) "
                    "or CudaWarps(..) after with");
        build_into(b, block_new(b->m, NULL), s->body);
        return;
    }
    bool outer = b->in_device;
    Op *op =
        build_op(b, device ? OP_par_device : OP_par_warps, s->loc, 0, 0, 1);
    op->comment = s->comment;
    if (!(device ? build_device_attrs(b, op, s->a)
                 : build_warps_attrs(b, op, s->a)))
        b->failed = true;
    b->in_device = true;
    build_into(b, op->blocks[0], s->body);
    b->in_device = outer;
}

/* Only literals, template parameters and types: decided on instantiation. */
static bool is_static(Build *b, const AstExpr *e)
{
    if (!e)
        return true;
    if (e->kind == AST_name) {
        Binding *t = build_find(b, e->name);
        return t ? t->kind == BIND_param : build_scalar_type(b, e) != TY_none;
    }
    for (unsigned i = e->kind == AST_call ? 1 : 0; i < e->n; i++)
        if (!is_static(b, e->args[i]))
            return false;
    return true;
}

static void build_if(Build *b, const AstStmt *s)
{
    bool truth;
    if (b->in_entry && is_static(b, s->a)) {
        if (build_const_bool(b, s->a, &truth))
            build_into(b, b->block, truth ? s->body : s->orelse);
        return;
    }
    const Cond *c = build_cond(b, s->a);
    Op *op = op_new(b->m, OP_ctl_if, s->loc, 1, 0, s->orelse ? 2 : 1);
    op->comment = s->comment;
    if (c) {
        op->operands[0] = opnd_cond(c);
        block_append(b->block, op);
    }
    build_into(b, op->blocks[0], s->body);
    if (s->orelse)
        build_into(b, op->blocks[1], s->orelse);
}

/* ---- assertions, allocations, windows ---------------------------------- */

static void build_assert(Build *b, const AstStmt *s)
{
    const Block *block = b->block;
    bool top = block->parent && block->parent->code == OP_ctl_proc &&
               (!block->last || block->last->code == OP_ctl_assert);
    if (!top) {
        Diag *d = build_error(b, s->loc, "syntax",
                              "an assert stands at the "
                              "top of its procedure");
        diag_fix(b->ctx, d, "move it before the first statement");
        return;
    }
    const Cond *c = build_cond(b, s->a);
    if (!c)
        return;
    Op *op = build_op(b, OP_ctl_assert, s->loc, 1, 0, 0);
    op->operands[0] = opnd_cond(c);
    op->comment = s->comment;
}

static void set_shape(Value *v, const BuiltType *t)
{
    v->shape = t->shape;
    v->ring_dim = t->ring_dim;
    v->ring_depth = t->ring_depth;
    v->ring_guard = t->guard;
}

static void build_alloc(Build *b, const AstStmt *s)
{
    BuiltType t;
    bool ok = build_type(b, s->name, s->a, false, &t);
    if (!ok) {
        b->failed = true;
        build_bind(b, s->name, s->name_loc, BIND_broken);
        return;
    }
    Op *op = build_op(b, OP_mem_alloc, s->loc, 0, 1, 0);
    op->comment = s->comment;
    Value *v = op_set_result(b->m, op, 0, t.type, s->name);
    set_shape(v, &t);
    build_bind(b, s->name, s->name_loc, BIND_value)->value = v;
}

/* x[..] with an interval or fewer indices than dimensions. */
static bool is_window_expr(Build *b, const AstExpr *e)
{
    if (e->kind == AST_binary && e->op == '@')
        return true;
    if (e->kind != AST_index || e->args[0]->kind != AST_name)
        return false;
    for (unsigned i = 1; i < e->n; i++)
        if (e->args[i]->kind == AST_slice)
            return true;
        else if (e->args[i]->kind == AST_pack)
            return false;
    Binding *t = build_find(b, e->args[0]->name);
    return t && t->kind == BIND_value && t->value->type->rank > e->n - 1;
}

static unsigned interval_count(const Access *a)
{
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++)
        n += a->dims[i].kind == DIM_interval;
    return n;
}

/* The type of the window a; mem: of a special window, or NULL. */
static const Type *window_type(Build *b, const AstExpr *e, const Access *a,
                               const AstExpr *mem)
{
    const Type *base = a->base->type;
    unsigned rank = interval_count(a);
    if (!mem)
        return type_tensor(b->ctx, base->kind == TK_map ? TK_map : TK_window,
                           base->elem, rank, base->mem);
    const MemRef *ref = build_mem(b, mem);
    if (!ref)
        return NULL;
    const Mem *m = b->lib ? lib_mem_find(b->lib, ref) : NULL;
    if (m && m->family != MEMF_map) {
        build_error(b, mem->loc, "memory",
                    "expected a special window after "
                    "'@' of a window, found the memory %s",
                    ref->name);
        return NULL;
    }
    if (base->kind == TK_map && ref != base->mem) {
        build_error(b, mem->loc, "memory",
                    "expected the memory of the tensor map that this is a "
                    "window of, found %s: make another map of its tensor",
                    ref->name);
        return NULL;
    }
    if (ref->n_params != rank + 1) {
        build_error(b, e->loc, "memory",
                    "%s has a box of %u dimensions, "
                    "expected a window of as many, found %u",
                    ref->name, ref->n_params ? ref->n_params - 1 : 0, rank);
        return NULL;
    }
    return type_tensor(b->ctx, TK_map, base->elem, rank, ref);
}

static bool build_window(Build *b, const AstStmt *s)
{
    const AstExpr *e = s->b, *mem = NULL;
    if (e->kind == AST_binary && e->op == '@') {
        mem = e->args[1];
        e = e->args[0];
    }
    if (s->a->kind != AST_name) {
        build_error(b, s->a->loc, "type", "expected a plain name for a window");
        return false;
    }
    Access *a = build_access(b, e, true);
    const Type *type = a ? window_type(b, e, a, mem) : NULL;
    if (!type)
        return false;
    Op *op = build_op(b, OP_mem_window, s->loc, 1, 1, 0);
    op->comment = s->comment;
    op->operands[0] = opnd_access(a);
    Value *v = op_set_result(b->m, op, 0, type, s->a->name);
    unsigned k = 0;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            v->shape[k++] = a->dims[i].len;
    build_bind(b, s->a->name, s->a->loc, BIND_value)->value = v;
    return true;
}

/* ---- assignments ------------------------------------------------------- */

static bool build_config_write(Build *b, const AstStmt *s)
{
    const char *config = ast_callee(s->a->args[0]);
    ScalarType t =
        config ? lib_config_field(b->lib, config, s->a->name) : TY_none;
    if (t == TY_none || !scalar_type_is_data(t)) {
        build_error(b, s->a->loc, "name",
                    t == TY_none ? "unknown field '%s.%s' of a configuration"
                                 : "'%s.%s' is a control field, which callers "
                                   "set; only data fields are written",
                    config ? config : "..", s->a->name);
        return false;
    }
    ScalarType from = build_data_type(b, s->b);
    Value *v = build_data(b, s->b, from ? from : t);
    v = build_cast(b, s->loc, v, t);
    if (!v)
        return false;
    Op *op = build_op(b, OP_cfg_write, s->loc, 1, 0, 0);
    op->operands[0] = opnd_value(v);
    op_set_str(b->m, op, "field",
               arena_printf(b->arena, "%s.%s", config, s->a->name));
    op->comment = s->comment;
    return true;
}

/* The element that an assignment goes to. */
static Access *build_target(Build *b, const AstExpr *e)
{
    if (e->kind != AST_name && e->kind != AST_index) {
        build_error(b, e->loc, "syntax",
                    "expected a variable or an element "
                    "left of the assignment");
        return NULL;
    }
    Access *a = build_access(b, e, true);
    if (!a || access_is_point(a))
        return a;
    build_error(b, e->loc, "type",
                "expected %u indices of '%s' left of the "
                "assignment, found a window",
                a->rank, a->base->name);
    return NULL;
}

/* x += v * w keeps both factors when they have the target's type: it is a
 * fused multiply-add there. */
static bool build_assign(Build *b, const AstStmt *s)
{
    Access *a = build_target(b, s->a);
    if (!a)
        return false;
    ScalarType t = a->base->type->elem;
    ScalarType from = build_data_type(b, s->b);
    from = from ? from : t;
    bool fused = s->kind == AST_reduce && s->b->kind == AST_binary &&
                 s->b->op == '*' && from == t;
    Value *v, *w = NULL;
    if (fused) {
        v = build_data(b, s->b->args[0], t);
        w = build_data(b, s->b->args[1], t);
    } else {
        v = build_cast(b, s->loc, build_data(b, s->b, from), t);
    }
    if (!v || (fused && !w))
        return false;
    Op *op = build_op(b, s->kind == AST_reduce ? OP_mem_reduce : OP_mem_store,
                      s->loc, fused ? 3 : 2, 0, 0);
    op->operands[0] = opnd_access(a);
    op->operands[1] = opnd_value(v);
    if (fused)
        op->operands[2] = opnd_value(w);
    op->comment = s->comment;
    return true;
}

/* ---- dispatch ---------------------------------------------------------- */

static void build_stmt(Build *b, const AstStmt *s)
{
    bool ok = true;
    switch (s->kind) {
    case AST_for:
        build_for(b, s);
        break;
    case AST_if:
        build_if(b, s);
        break;
    case AST_with:
        build_with(b, s);
        break;
    case AST_assert:
        build_assert(b, s);
        break;
    case AST_pass:
        build_op(b, OP_ctl_pass, s->loc, 0, 0, 0)->comment = s->comment;
        break;
    case AST_alloc:
        build_alloc(b, s);
        break;
    case AST_assign:
        if (s->a->kind == AST_attr) {
            ok = build_config_write(b, s);
        } else if (is_window_expr(b, s->b)) {
            ok = build_window(b, s);
            if (!ok && s->a->kind == AST_name)
                build_bind(b, s->a->name, s->a->loc, BIND_broken);
        } else {
            ok = build_assign(b, s);
        }
        break;
    case AST_reduce:
        ok = build_assign(b, s);
        break;
    case AST_expr:
        ok = build_stmt_expr(b, s);
        break;
    }
    b->failed |= !ok;
}

void build_stmts(Build *b, const AstStmt *s)
{
    for (; s; s = s->next)
        build_stmt(b, s);
}

/* ---- procedures -------------------------------------------------------- */

static void build_param(Build *b, Block *body, const char *name,
                        const AstParam *a)
{
    BuiltType t;
    Binding *old = build_find(b, name);
    if (old && old->loc.file && old->kind != BIND_param)
        build_error(b, a->loc, "name", "parameter '%s' is defined twice", name);
    if (!build_type(b, name, a->type, true, &t)) {
        b->failed = true;
        build_bind(b, name, a->loc, BIND_broken);
    } else if (t.control) {
        VarId v = block_add_var(b->m, body, name, t.var_kind);
        build_bind(b, name, a->loc, BIND_var)->var = v;
    } else {
        Value *v = block_add_value(b->m, body, t.type, name);
        set_shape(v, &t);
        build_bind(b, name, a->loc, BIND_value)->value = v;
    }
}

/* The parameter, or name0, name1, .. for a pack of a family of ranks. */
static void build_params(Build *b, Block *body, const AstParam *a)
{
    for (; a; a = a->next) {
        if (!a->pack) {
            build_param(b, body, a->name, a);
            continue;
        }
        if (!b->rank) {
            build_error(b, a->loc, "syntax",
                        "'%s...' is for families of ranks only", a->name);
            continue;
        }
        for (int64_t k = 0; k < b->rank; k++)
            build_param(b, body,
                        ctx_intern(b->ctx, arena_printf(b->arena, "%s%d",
                                                        a->name, (int)k)),
                        a);
    }
}

Op *build_proc(Build *b, const char *name, Loc loc, const AstParam *params,
               const AstStmt *body)
{
    size_t mark = build_mark(b);
    Block *outer = b->block;
    Op *op = build_op(b, OP_ctl_proc, loc, 0, 0, 1);
    op_set_str(b->m, op, "name", name);
    build_params(b, op->blocks[0], params);
    build_into(b, op->blocks[0], body);
    b->block = outer;
    build_close(b, mark);
    if (b->commit_groups)
        build_commit_groups(b, op);
    b->commit_groups = false;
    return op;
}
