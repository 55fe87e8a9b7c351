/* Rules are conditions over the host's variables. Those of a kernel's pieces
 * are found in the kernel's terms first: of the index along each dimension,
 * what varies within a launch counts by the divisor that all its steps have,
 * what does not (sizes) stays as it is. Conditions that cannot hold are left
 * out where divisors are not all that is known of an index. */
#include "passes/host_rules.h"

#include "passes/abi.h"

#include <string.h>

enum { MAP_ALIGN = 16 };

/* ---- the list ------------------------------------------------------------ */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static void add(HostRules *r, HostRule rule)
{
    for (size_t i = 0; i < r->rules.len; i++) {
        HostRule *old = &r->rules.data[i];
        if (old->tensor == rule.tensor && old->bytes == rule.bytes &&
            old->cond == rule.cond && same_text(old->argument, rule.argument))
            return;
    }
    VEC_PUSH(r->arena, &r->rules, rule);
}

static void add_cond(HostRules *r, const Cond *cond, const char *argument,
                     const char *message)
{
    if (cond)
        add(r, (HostRule){
                   .cond = cond, .argument = argument, .message = message });
}

static const char *name_of(const Value *v)
{
    return v->name ? v->name : "tensor";
}

static void add_align(HostRules *r, const Value *v, int64_t bytes)
{
    add(r, (HostRule){ .tensor = v,
                       .bytes = bytes,
                       .argument = name_of(v),
                       .message = arena_printf(r->arena,
                                               "the address of %s must be a "
                                               "multiple of %lld bytes",
                                               name_of(v), (long long)bytes) });
}

/* ---- controls, strides, tasks -------------------------------------------- */

void host_rules_control(HostRules *r, VarId v)
{
    ExprCtx *x = r->m->exprs;
    const Var *var = var_get(x, v);
    const Affine *e = affine_var(x, v);
    const Affine *limit = affine_const(x, ABI_CONTROL_LIMIT);
    if (var->kind == VAR_bool)
        return;
    /* Stated though a size is known to be at least 1: this is where that
     * becomes true. */
    if (var->kind == VAR_size)
        add(r,
            (HostRule){ .cond = cond_cmp(x, CMP_ge, affine_add_const(x, e, -1),
                                         affine_const(x, 0)),
                        .stated = true,
                        .argument = var->name,
                        .message = arena_printf(
                            r->arena, "%s must be at least 1", var->name) });
    add_cond(r, cond_cmp(x, CMP_le, e, limit), var->name,
             arena_printf(r->arena, "%s must be at most %lld", var->name,
                          (long long)ABI_CONTROL_LIMIT));
    if (var->kind != VAR_size)
        add_cond(r, cond_cmp(x, CMP_ge, e, affine_neg(x, limit)), var->name,
                 arena_printf(r->arena, "%s must be at least %lld", var->name,
                              (long long)-ABI_CONTROL_LIMIT));
}

void host_rules_strides(HostRules *r, const Value *v)
{
    ExprCtx *x = r->m->exprs;
    const Affine *limit = affine_const(x, ABI_CONTROL_LIMIT);
    for (unsigned d = 0; v->type->kind == TK_window && d < v->type->rank; d++) {
        const Affine *s = affine_stride(x, v, d);
        add_cond(r,
                 cond_and(x, cond_cmp(x, CMP_ge, s, affine_neg(x, limit)),
                          cond_cmp(x, CMP_le, s, limit)),
                 name_of(v),
                 arena_printf(r->arena,
                              "the stride of dimension %u of %s must be within "
                              "%lld elements",
                              d, name_of(v), (long long)ABI_CONTROL_LIMIT));
    }
}

void host_rules_tasks(HostRules *r, const Affine *count)
{
    ExprCtx *x = r->m->exprs;
    add_cond(r, cond_cmp(x, CMP_le, count, affine_const(x, INT32_MAX)), NULL,
             "the sizes give more than 2147483647 tasks");
}

/* ---- tensor maps --------------------------------------------------------- */

/* Elements from one position of dimension d to the next. */
static const Affine *stride_of(Module *m, const Value *v, unsigned d)
{
    ExprCtx *x = m->exprs;
    if (v->type->kind == TK_window)
        return affine_stride(x, v, d);
    const Affine *s = affine_const(x, 1);
    for (unsigned i = v->type->rank; i-- > d + 1;)
        s = affine_mul(x, s, v->shape[i]);
    return s;
}

static const Cond *multiple_of(ExprCtx *x, const Affine *elements,
                               ScalarType elem, int64_t unit)
{
    const Affine *bytes =
        affine_scale(x, elements, (int64_t)scalar_type_bytes(elem));
    const Affine *rest = affine_mod(x, bytes, unit);
    return rest ? cond_cmp(x, CMP_eq, rest, affine_const(x, 0)) : NULL;
}

static const char *stride_text(HostRules *r, const Value *v, unsigned d,
                               int64_t bytes)
{
    return arena_printf(r->arena,
                        "the stride of dimension %u of %s must be a multiple "
                        "of %lld bytes",
                        d, name_of(v), (long long)bytes);
}

static const char *begin_text(HostRules *r, const Value *v, int64_t bytes)
{
    return arena_printf(r->arena,
                        "the part of %s that is copied must begin at a "
                        "multiple of %lld bytes",
                        name_of(v), (long long)bytes);
}

/* What a window's first element is at. */
static void add_begin(HostRules *r, const Access *a, ScalarType elem,
                      int64_t bytes)
{
    ExprCtx *x = r->m->exprs;
    const Affine *offset = affine_const(x, 0);
    for (unsigned d = 0; d < a->rank; d++)
        offset = affine_add(
            x, offset,
            affine_mul(x, a->dims[d].lo, stride_of(r->m, a->base, d)));
    add_cond(r, multiple_of(x, offset, elem, bytes), name_of(a->base),
             begin_text(r, a->base, bytes));
}

void host_rules_map(HostRules *r, const Access *window)
{
    ExprCtx *x = r->m->exprs;
    const Access *a = access_compose(r->m, window);
    const Value *v = a->base;
    ScalarType elem = v->type->elem;
    add_align(r, v, MAP_ALIGN);
    for (unsigned d = 0; d < v->type->rank; d++) {
        const Affine *s = stride_of(r->m, v, d);
        if (d + 1 < v->type->rank)
            add_cond(r, multiple_of(x, s, elem, MAP_ALIGN), name_of(v),
                     stride_text(r, v, d, MAP_ALIGN));
        else
            add_cond(r, cond_cmp(x, CMP_eq, s, affine_const(x, 1)), name_of(v),
                     arena_printf(r->arena,
                                  "the innermost stride of %s must "
                                  "be 1",
                                  name_of(v)));
    }
    add_begin(r, a, elem, MAP_ALIGN);
}

/* ---- what kernels ask for ------------------------------------------------ */

typedef struct Kernel {
    HostRules *r;
    const Op *launch;
    const Block *args;
    Subst to_host;
} Kernel;

/* The host's value behind a parameter of the kernel, NULL where it is none. */
static const Access *behind(const Kernel *k, const Value *v)
{
    for (unsigned i = 0; i < k->args->n_args && i < k->launch->n_operands; i++)
        if (k->args->args[i].value == v)
            return k->launch->operands[i].kind == OPND_access
                       ? access_compose(k->r->m,
                                        k->launch->operands[i].u.access)
                       : NULL;
    return NULL;
}

static bool enter_kernel(Kernel *k, HostRules *r, const Op *launch,
                         const Op *kernel)
{
    const Block *b = kernel->blocks[0];
    unsigned n = launch->n_operands;
    *k = (Kernel){ r, launch, b, { 0 } };
    VarId *var = ARENA_ARRAY(r->arena, VarId, n + 1);
    const Affine **to = ARENA_ARRAY(r->arena, const Affine *, n + 1);
    const void **from = ARENA_ARRAY(r->arena, const void *, n + 1);
    const void **ref = ARENA_ARRAY(r->arena, const void *, n + 1);
    k->to_host =
        (Subst){ .var = var, .to = to, .ref_from = from, .ref_to = ref };
    for (unsigned i = 0; i < n && i < b->n_args; i++) {
        const Operand *o = &launch->operands[i];
        if (!b->args[i].value && o->kind == OPND_index) {
            var[k->to_host.n] = b->args[i].var;
            to[k->to_host.n++] = o->u.index;
        } else if (b->args[i].value && o->kind == OPND_access) {
            from[k->to_host.n_refs] = b->args[i].value;
            ref[k->to_host.n_refs++] = o->u.access->base;
        }
    }
    return n + ABI_N_COORDS == b->n_args;
}

typedef struct Uniform {
    const Kernel *k;
    bool is;
} Uniform;

static void is_uniform(VarId v, void *user)
{
    Uniform *u = user;
    bool found = false;
    for (unsigned i = 0; i < u->k->to_host.n; i++)
        found = found || u->k->to_host.var[i] == v;
    u->is = u->is && found;
}

static const Affine *atom_alone(ExprCtx *x, const Atom *a)
{
    switch (a->kind) {
    case ATOM_var:
        return affine_var(x, a->var);
    case ATOM_floordiv:
        return affine_floordiv(x, a->arg, a->divisor);
    case ATOM_mod:
        return affine_mod(x, a->arg, a->divisor);
    case ATOM_opaque:
        break;
    }
    return a->opaque == OPAQUE_product  ? affine_mul(x, a->lhs, a->rhs)
           : a->opaque == OPAQUE_stride ? affine_stride(x, a->ref, a->dim)
                                        : affine_config(x, a->name);
}

/* Splits e into what a launch fixes and the divisor of what varies in it. */
static const Affine *split(const Kernel *k, const Affine *e, int64_t *step)
{
    ExprCtx *x = k->r->m->exprs;
    const Affine *fixed = affine_const(x, e->constant);
    *step = 0;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        const Affine *atom = atom_alone(x, e->terms[i].atom);
        Uniform u = { k, atom != NULL };
        if (atom)
            affine_walk_vars(atom, is_uniform, &u);
        if (u.is)
            fixed =
                affine_add(x, fixed, affine_scale(x, atom, e->terms[i].coef));
        else
            *step = int_gcd(*step, e->terms[i].coef);
    }
    return fixed;
}

/* A condition in the kernel's terms, unless divisors do not show that it can
 * hold. */
static void add_piece_cond(const Kernel *k, const Cond *cond, const Value *host,
                           const char *message)
{
    if (cond && cond->kind != COND_false && cond->kind != COND_true)
        add_cond(k->r, cond_subst(k->r->m->exprs, cond, &k->to_host),
                 name_of(host), message);
}

/* `bytes` of the kernel's argument are moved from the place that a names. */
static void add_piece(const Kernel *k, const Access *a, int64_t bytes)
{
    ExprCtx *x = k->r->m->exprs;
    const Access *host = behind(k, a->base);
    ScalarType elem = a->base->type->elem;
    const Affine *begin = affine_const(x, 0);
    if (!host || bytes <= (int64_t)scalar_type_bytes(elem))
        return;
    add_align(k->r, host->base, bytes);
    add_begin(k->r, host, elem, bytes);
    for (unsigned d = 0; d < a->rank; d++) {
        int64_t step;
        const Affine *stride = stride_of(k->r->m, a->base, d);
        const Affine *fixed = split(k, a->dims[d].lo, &step);
        begin = affine_add(x, begin, affine_mul(x, fixed, stride));
        add_piece_cond(
            k, multiple_of(x, affine_scale(x, stride, step), elem, bytes),
            host->base,
            step == 1 ? stride_text(k->r, host->base, d, bytes)
                      : begin_text(k->r, host->base, bytes));
    }
    add_piece_cond(k, multiple_of(x, begin, elem, bytes), host->base,
                   begin_text(k->r, host->base, bytes));
}

static bool find_pieces(Op *op, void *user)
{
    const Kernel *k = user;
    if (op->code != OP_async_instr)
        return true;
    const Instr *in = op_instr(k->r->m, op);
    for (unsigned i = 0; in && i < in->n_params && i < op->n_operands; i++) {
        int64_t bytes = instr_piece(k->r->m->lib, in, i);
        if (bytes && op->operands[i].kind == OPND_access)
            add_piece(k, access_compose(k->r->m, op->operands[i].u.access),
                      bytes);
    }
    return true;
}

void host_rules_pieces(HostRules *r, const Op *launch, const Op *kernel)
{
    Kernel k;
    if (enter_kernel(&k, r, launch, kernel))
        op_walk((Op *)kernel, find_pieces, &k);
}

static bool find_tasks(Op *op, void *user)
{
    const Kernel *k = user;
    ExprCtx *x = k->r->m->exprs;
    if (op->code != OP_async_tasks)
        return true;
    const Affine *n = affine_const(x, 1);
    for (unsigned d = 0; d < (unsigned)op_attr_int(op, "rank", 0); d++)
        n = affine_mul(x, n,
                       affine_sub(x, op->operands[2 * d + 1].u.index,
                                  op->operands[2 * d].u.index));
    host_rules_tasks(k->r, affine_subst(x, n, &k->to_host));
    return true;
}

void host_rules_launch_tasks(HostRules *r, const Op *launch, const Op *kernel)
{
    Kernel k;
    if (enter_kernel(&k, r, launch, kernel))
        op_walk((Op *)kernel, find_tasks, &k);
}
