/* Index expressions, conditions and accesses in the interpreter.
 *
 * Variables are looked up by number in the environment; sums are checked for
 * overflow. Accesses become storage positions (points) or views (windows), and
 * what leaves its tensor is reported here. */
#include "verify/interp_internal.h"

#include "ir/values.h"

#include <string.h>

static bool eval(Interp *in, Scope *env, const Affine *e, int64_t *out);

static bool eval_stride(Scope *env, const Atom *a, int64_t *out)
{
    const Value *v = a->ref;
    View *view = v->id < env->n_slots ? env->slots[v->id].view : NULL;
    if (!view || a->dim >= view->rank)
        return false;
    *out = view->stride[a->dim];
    return true;
}

static bool eval_opaque(Interp *in, Scope *env, const Atom *a, int64_t *out)
{
    int64_t l, r;
    switch (a->opaque) {
    case OPAQUE_stride:
        return eval_stride(env, a, out);
    case OPAQUE_config:
        for (ConfigField *f = in->config; f; f = f->next)
            if (!strcmp(f->field, a->name)) {
                *out = (int64_t)f->value;
                return true;
            }
        return false;
    case OPAQUE_product:
        return eval(in, env, a->lhs, &l) && eval(in, env, a->rhs, &r) &&
               !__builtin_mul_overflow(l, r, out);
    }
    return false;
}

static bool eval_atom(Interp *in, Scope *env, const Atom *a, int64_t *out)
{
    int64_t x;
    switch (a->kind) {
    case ATOM_var:
        *out = env->vars[a->var];
        return true;
    case ATOM_floordiv:
    case ATOM_mod:
        if (!eval(in, env, a->arg, &x))
            return false;
        int64_t q = x / a->divisor, r = x % a->divisor;
        if (r < 0) {
            q--;
            r += a->divisor;
        }
        *out = a->kind == ATOM_floordiv ? q : r;
        return true;
    case ATOM_opaque:
        return eval_opaque(in, env, a, out);
    }
    return false;
}

static bool eval(Interp *in, Scope *env, const Affine *e, int64_t *out)
{
    int64_t sum = e->constant;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        int64_t x;
        if (!eval_atom(in, env, e->terms[i].atom, &x) ||
            __builtin_mul_overflow(x, e->terms[i].coef, &x) ||
            __builtin_add_overflow(sum, x, &sum))
            return false;
    }
    *out = sum;
    return true;
}

bool interp_index(Interp *in, Scope *env, const Op *op, const Affine *e,
                  int64_t *out)
{
    if (eval(in, env, e, out))
        return true;
    return interp_fail(in, env, op, "index",
                       "an index expression cannot be evaluated: it overflows "
                       "64 bits, or reads a configuration field or stride "
                       "that has no value");
}

static bool eval_cond(Interp *in, Scope *env, const Cond *c, bool *out)
{
    int64_t x;
    bool l, r = false;
    switch (c->kind) {
    case COND_false:
    case COND_true:
        *out = c->kind == COND_true;
        return true;
    case COND_ge0:
    case COND_eq0:
        if (!eval(in, env, c->expr, &x))
            return false;
        *out = c->kind == COND_ge0 ? x >= 0 : x == 0;
        return true;
    case COND_not:
        if (!eval_cond(in, env, c->lhs, &l))
            return false;
        *out = !l;
        return true;
    case COND_and:
    case COND_or:
        if (!eval_cond(in, env, c->lhs, &l))
            return false;
        if (l == (c->kind == COND_or)) {
            *out = l;
            return true;
        }
        if (!eval_cond(in, env, c->rhs, &r))
            return false;
        *out = r;
        return true;
    }
    return false;
}

bool interp_cond(Interp *in, Scope *env, const Op *op, const Cond *c, bool *out)
{
    if (eval_cond(in, env, c, out))
        return true;
    return interp_fail(in, env, op, "index",
                       "a condition cannot be evaluated: it overflows 64 bits, "
                       "or reads a configuration field or stride that has no "
                       "value");
}

static const View *base_view(Interp *in, Scope *env, const Op *op,
                             const Access *a)
{
    Slot *s = scope_slot(env, a->base);
    if (s->view)
        return s->view;
    StrBuf name = { 0 };
    value_print_name(&name, a->base);
    interp_fail(in, env, op, "poison",
                "tensor '%s' is used before its "
                "definition ran",
                strbuf_text(&name));
    strbuf_free(&name);
    return NULL;
}

static void fail_bounds(Interp *in, Scope *env, const Op *op, const Access *a,
                        unsigned dim, int64_t lo, int64_t len, int64_t extent)
{
    StrBuf name = { 0 };
    value_print_name(&name, a->base);
    if (len == 1)
        interp_fail(in, env, op, "bounds",
                    "index %lld of dimension %u is outside '%s', whose extent "
                    "there is %lld",
                    (long long)lo, dim, strbuf_text(&name), (long long)extent);
    else
        interp_fail(in, env, op, "bounds",
                    "interval [%lld, %lld) of dimension %u leaves '%s', whose "
                    "extent there is %lld",
                    (long long)lo, (long long)lo + len, dim, strbuf_text(&name),
                    (long long)extent);
    strbuf_free(&name);
}

int64_t interp_element(Interp *in, Scope *env, const Op *op, const Access *a,
                       Tensor **tensor)
{
    const View *v = base_view(in, env, op, a);
    int64_t index[TENSOR_MAX_RANK];
    unsigned bad = 0;
    if (!v)
        return VIEW_OUT_OF_BOUNDS;
    for (unsigned d = 0; d < a->rank && d < TENSOR_MAX_RANK; d++)
        if (!interp_index(in, env, op, a->dims[d].lo, &index[d]))
            return VIEW_OUT_OF_BOUNDS;
    *tensor = v->tensor;
    int64_t e = view_element(v, index, &bad);
    if (e == VIEW_OUT_OF_BOUNDS)
        fail_bounds(in, env, op, a, bad, index[bad], 1, v->extent[bad]);
    return e;
}

bool interp_check_written(Interp *in, Scope *env, const Op *op, const Tensor *t,
                          int64_t element)
{
    if (t->written[element])
        return true;
    StrBuf text = { 0 };
    tensor_print_element(&text, t, element);
    interp_fail(in, env, op, "poison", "reads %s, which was never written",
                strbuf_text(&text));
    strbuf_free(&text);
    return false;
}

bool interp_window(Interp *in, Scope *env, const Op *op, const Access *a,
                   View *out)
{
    const View *v = base_view(in, env, op, a);
    ViewDim dims[TENSOR_MAX_RANK];
    unsigned bad = 0;
    if (!v)
        return false;
    for (unsigned d = 0; d < a->rank && d < TENSOR_MAX_RANK; d++) {
        dims[d] =
            (ViewDim){ .interval = a->dims[d].kind == DIM_interval, .len = 1 };
        if (!interp_index(in, env, op, a->dims[d].lo, &dims[d].lo))
            return false;
        if (dims[d].interval &&
            !interp_index(in, env, op, a->dims[d].len, &dims[d].len))
            return false;
    }
    if (view_window(v, dims, out, &bad))
        return true;
    fail_bounds(in, env, op, a, bad, dims[bad].lo, dims[bad].len,
                v->extent[bad]);
    return false;
}
