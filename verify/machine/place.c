/* Index expressions in a warp, and where an access leads: shared bytes behind
 * their swizzle, global elements, register tensors. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"

#include <string.h>

/* ---- index expressions --------------------------------------------------- */

static bool eval(const Warp *w, const Affine *e, unsigned lane, int64_t *out);

static bool eval_atom(const Warp *w, const Atom *a, unsigned lane, int64_t *out)
{
    int64_t x, y;
    switch (a->kind) {
    case ATOM_var:
        *out =
            w->lane_vars[a->var] ? w->lane_vars[a->var][lane] : w->vars[a->var];
        return true;
    case ATOM_floordiv:
    case ATOM_mod:
        if (!eval(w, a->arg, lane, &x))
            return false;
        int64_t q = x / a->divisor, r = x % a->divisor;
        if (r < 0) {
            q--;
            r += a->divisor;
        }
        *out = a->kind == ATOM_floordiv ? q : r;
        return true;
    case ATOM_opaque:
        break;
    }
    if (a->opaque == OPAQUE_product)
        return eval(w, a->lhs, lane, &x) && eval(w, a->rhs, lane, &y) &&
               !__builtin_mul_overflow(x, y, out);
    if (a->opaque != OPAQUE_stride)
        return false;
    const MemObj *o = w->machine->k->objs[((const Value *)a->ref)->id];
    if (!o || a->dim >= o->rank)
        return false;
    *out = o->stride[a->dim];
    return true;
}

static bool eval(const Warp *w, const Affine *e, unsigned lane, int64_t *out)
{
    int64_t sum = e->constant;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        int64_t x;
        if (!eval_atom(w, e->terms[i].atom, lane, &x) ||
            __builtin_mul_overflow(x, e->terms[i].coef, &x) ||
            __builtin_add_overflow(sum, x, &sum))
            return false;
    }
    *out = sum;
    return true;
}

bool warp_index(Warp *w, const Op *op, const Affine *e, unsigned lane,
                int64_t *out)
{
    if (eval(w, e, lane, out))
        return true;
    return machine_fail(w->machine, w, 1u << lane, op, "index",
                        "an index expression cannot be evaluated: it "
                        "overflows 64 bits, or reads what a kernel cannot "
                        "know");
}

static bool eval_cond(const Warp *w, const Cond *c, unsigned lane, bool *out)
{
    int64_t x;
    bool l;
    switch (c->kind) {
    case COND_false:
    case COND_true:
        *out = c->kind == COND_true;
        return true;
    case COND_ge0:
    case COND_eq0:
        if (!eval(w, c->expr, lane, &x))
            return false;
        *out = c->kind == COND_ge0 ? x >= 0 : x == 0;
        return true;
    case COND_not:
        if (!eval_cond(w, c->lhs, lane, &l))
            return false;
        *out = !l;
        return true;
    case COND_and:
    case COND_or:
        if (!eval_cond(w, c->lhs, lane, &l))
            return false;
        if (l != (c->kind == COND_or))
            return eval_cond(w, c->rhs, lane, out);
        *out = l;
        return true;
    }
    return false;
}

bool warp_cond(Warp *w, const Op *op, const Cond *c, unsigned lane, bool *out)
{
    if (eval_cond(w, c, lane, out))
        return true;
    return machine_fail(w->machine, w, 1u << lane, op, "index",
                        "a condition cannot be evaluated: it overflows 64 "
                        "bits, or reads what a kernel cannot know");
}

/* ---- accesses ------------------------------------------------------------ */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool ring_index(Warp *w, const AccessDim *d, int64_t *index,
                       int64_t *turn)
{
    int64_t depth = d->ring->type->n;
    int64_t p = w->vals[d->ring->id].position + d->delta;
    if (depth < 1)
        return false;
    int64_t round = floor_div(p, depth);
    *index = p - round * depth;
    if (turn)
        *turn = round;
    return true;
}

const MemObj *warp_access(Warp *w, const Op *op, const Access *a, unsigned lane,
                          int64_t *index, int64_t *turn)
{
    a = kernel_access(w->machine->k, a);
    const MemObj *o = w->machine->k->objs[a->base->id];
    if (!o || o->rank != a->rank) {
        StrBuf name = { 0 };
        value_print_name(&name, a->base);
        machine_fail(w->machine, w, 1u << lane, op, "machine",
                     "'%s' is nothing that a kernel can access",
                     strbuf_text(&name));
        strbuf_free(&name);
        return NULL;
    }
    for (unsigned d = 0; d < a->rank; d++) {
        const AccessDim *dim = &a->dims[d];
        if (dim->kind != DIM_ring) {
            if (!warp_index(w, op, dim->lo, lane, &index[d]))
                return NULL;
        } else if (!ring_index(w, dim, &index[d], turn)) {
            machine_fail(w->machine, w, 1u << lane, op, "machine",
                         "a ring without a depth");
            return NULL;
        }
    }
    return o;
}

bool lane_access(Warp *w, const Op *op, const Access *a, unsigned lane,
                 LaneAccess *x)
{
    const Kernel *k = w->machine->k;
    if (!x->obj) {
        x->access = kernel_access(k, a);
        x->obj = warp_access(w, op, a, lane, x->index, NULL);
        for (unsigned d = 0; x->obj && d < x->access->rank; d++)
            x->varies[d] = x->access->dims[d].kind != DIM_ring &&
                           kernel_varies(k, x->access->dims[d].lo);
        return x->obj != NULL;
    }
    for (unsigned d = 0; d < x->access->rank; d++)
        if (x->varies[d] &&
            !warp_index(w, op, x->access->dims[d].lo, lane, &x->index[d]))
            return false;
    return true;
}

int64_t shared_address(uint32_t swizzle, int64_t offset)
{
    return offset ^ ((offset >> 3) & (int64_t)swizzle);
}

static bool fail_bounds(Warp *w, const Op *op, const MemObj *o,
                        const int64_t *index, unsigned bad, unsigned lane)
{
    StrBuf name = { 0 };
    value_print_name(&name, o->value);
    machine_fail(w->machine, w, 1u << lane, op, "bounds",
                 "index %lld of dimension %u is outside '%s', whose extent "
                 "there is %lld",
                 (long long)index[bad], bad, strbuf_text(&name),
                 (long long)o->extent[bad]);
    strbuf_free(&name);
    return false;
}

static bool inside(const MemObj *o, const int64_t *index, unsigned *bad)
{
    for (unsigned d = 0; d < o->rank; d++)
        if (index[d] < 0 || index[d] >= o->extent[d]) {
            *bad = d;
            return false;
        }
    return true;
}

bool place_at(Warp *w, const Op *op, const MemObj *o, const int64_t *index,
              unsigned lane, Place *out)
{
    unsigned bad = 0;
    *out = (Place){ .obj = o };
    if (o->space == SPACE_global || o->space == SPACE_map) {
        out->tensor = o->view.tensor;
        out->at = view_element(&o->view, index, &bad);
        out->outside = out->at == VIEW_OUTSIDE_MAP;
        if (out->at == VIEW_OUT_OF_BOUNDS)
            return fail_bounds(w, op, o, index, bad, lane);
        return true;
    }
    if (!inside(o, index, &bad))
        return fail_bounds(w, op, o, index, bad, lane);
    int64_t at = 0;
    for (unsigned d = 0; d < o->rank; d++)
        at += index[d] * o->stride[d];
    if (o->space == SPACE_local) {
        out->tensor = w->vals[o->value->id].local;
        if (!out->tensor)
            return machine_fail(w->machine, w, 1u << lane, op, "poison",
                                "a register tensor is used before its "
                                "allocation ran");
        out->at = (int64_t)lane * out->tensor->stride[0] + at;
        return true;
    }
    out->cta = w->cta;
    out->at = shared_address(o->swizzle, o->offset + at * o->elem_bytes);
    return true;
}

bool place_written(const Place *p)
{
    if (p->tensor)
        return p->outside || p->tensor->written[p->at];
    return !memchr(p->cta->written + p->at, 0, p->obj->elem_bytes);
}

static bool fail_poison(Warp *w, const Op *op, const Place *p, unsigned lane)
{
    StrBuf text = { 0 };
    if (p->tensor && p->obj->space != SPACE_local) {
        tensor_print_element(&text, p->tensor, p->at);
    } else {
        value_print_name(&text, p->obj->value);
        if (p->cta)
            strbuf_addf(&text, " at shared byte %lld of cta %u",
                        (long long)p->at, p->cta->rank);
    }
    machine_fail(w->machine, w, 1u << lane, op, "poison",
                 "reads %s, which was never written", strbuf_text(&text));
    strbuf_free(&text);
    return false;
}

void place_event(Warp *w, const Op *op, const Place *p, uint32_t lanes,
                 bool write)
{
    MachineEventKind kind = write ? MEV_write : MEV_read;
    if (!(w->machine->wants >> kind & 1) || p->outside ||
        p->obj->space == SPACE_local)
        return;
    MachineEvent e = { .kind = kind,
                       .op = op,
                       .tensor = p->tensor,
                       .object = p->tensor ? NULL : p->obj->value,
                       .cta = p->cta ? p->cta->rank : 0,
                       .offset = p->at,
                       .length = p->tensor ? 1 : p->obj->elem_bytes,
                       .bytes = p->tensor ? p->tensor->bytes +
                                                p->at * p->obj->elem_bytes
                                          : p->cta->smem + p->at,
                       .elem = p->obj->elem,
                       .agent = warp_agent(w, AGENT_warp, lanes) };
    if (w->machine->stepping) {
        e.effect = w->machine->stepping->number;
        e.agent.kind = AGENT_cp_async;
    }
    machine_emit(w->machine, &e);
}

void spans_add(Arena *arena, SpanVec *spans, int64_t at, int64_t n)
{
    MachineSpan *last = spans->len ? &spans->data[spans->len - 1] : NULL;
    if (last && last->offset + last->length == at)
        last->length += n;
    else
        VEC_PUSH(arena, spans, ((MachineSpan){ at, n }));
}

void lane_spans_event(Warp *w, const Op *op, const MemObj *o, const Cta *cta,
                      unsigned lane, bool write)
{
    SpanVec *spans = &w->machine->lane_spans[lane];
    MachineEvent e = { .kind = write ? MEV_write : MEV_read,
                       .op = op,
                       .object = o->value,
                       .cta = cta->rank,
                       .spans = spans->data,
                       .n_spans = spans->len,
                       .bytes = cta->smem,
                       .elem = o->elem,
                       .agent = warp_agent(w, AGENT_warp, 1u << lane) };
    if (spans->len)
        machine_emit(w->machine, &e);
    spans->len = 0;
}

bool place_read(Warp *w, const Op *op, const Place *p, unsigned lane,
                double *out)
{
    if (!place_written(p))
        return fail_poison(w, op, p, lane);
    if (p->outside)
        *out = 0.0;
    else if (p->tensor)
        *out = tensor_get(p->tensor, p->at);
    else
        *out = scalar_load(p->obj->elem, p->cta->smem + p->at);
    return true;
}

/* n ones; a call of memset is too much for the usual ones. */
static void mark(unsigned char *at, unsigned n)
{
    switch (n) {
    case 2:
        memset(at, 1, 2);
        return;
    case 4:
        memset(at, 1, 4);
        return;
    default:
        memset(at, 1, n);
    }
}

void shared_store(Cta *cta, const MemObj *o, int64_t at, double x)
{
    scalar_encode(o->elem, x, cta->smem + at);
    mark(cta->written + at, o->elem_bytes);
    mark(cta->generic + at, o->elem_bytes);
    range_add(&cta->generic_lo, &cta->generic_hi, at, o->elem_bytes);
}

void place_write(Warp *w, const Place *p, double x)
{
    if (p->outside)
        return;
    if (p->tensor) {
        tensor_set(p->tensor, p->at, x);
        return;
    }
    mma_forget(w->machine, p->cta, p->at, p->obj->elem_bytes);
    shared_store(p->cta, p->obj, p->at, x);
}
