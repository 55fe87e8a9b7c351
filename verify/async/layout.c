/* Address equality, decided for every element of an operand and for every start
 * that is possible: an address matters to the swizzle by its residue modulo
 * 1024, the run-time part of a start is a sum of multiples of known strides, so
 * that its residues can all be gone through. Nothing is sampled, and no rule of
 * alignment is asked for where the addresses agree.
 *
 * Three parties: the view (an object's dense order behind its memory's
 * swizzle), the copy engine (its box dense from the start, behind the map's
 * swizzle) and wgmma (its descriptor). */
#include "verify/async/layout.h"

#include "passes/wgmma_layout.h"
#include "verify/async/budget.h"

#include <string.h>

enum { PERIOD = 1024, MAX_DIMS = 8 };

typedef struct LayoutCheck {
    Ctx *ctx;
    Module *m;
    bool bad;
    const char *open; /* why something could not be decided */
} LayoutCheck;

static void fault(LayoutCheck *c, const Op *op, const char *code,
                  const char *fmt, ...) EXO_PRINTF(4, 5);

static void fault(LayoutCheck *c, const Op *op, const char *code,
                  const char *fmt, ...)
{
    StrBuf text = { 0 };
    const OpInfo *i = op_info(op->code);
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    diag_error(c->ctx, op->loc, code, "'%s.%s': %s: %s", i->dialect,
               i->text ? i->text : i->name, code, strbuf_text(&text));
    strbuf_free(&text);
    c->bad = true;
}

/* ---- starts -------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* Byte offset of an access's first element: at + a multiple of step. */
typedef struct Start {
    int64_t at, step;
} Start;

static bool start_of(const Access *a, Start *out)
{
    const Op *def = a->base->def;
    if (!def || !op_attr(def, "offset"))
        return false;
    *out = (Start){ op_attr_int(def, "offset", 0), PERIOD };
    for (unsigned d = 0; d < a->rank; d++) {
        int64_t stride = shared_stride(a->base, d);
        if (stride < 0)
            return false;
        if (a->dims[d].kind == DIM_ring) {
            out->step = gcd(out->step, stride);
            continue;
        }
        const Affine *lo = a->dims[d].lo;
        out->at += lo->constant * stride;
        for (uint32_t i = 0; i < lo->n_terms; i++)
            out->step = gcd(out->step, lo->terms[i].coef * stride);
    }
    /* the run-time part makes up for a negative constant */
    while (out->at < 0)
        out->at += PERIOD;
    return true;
}

static unsigned span_of(const LayoutCheck *c, const Value *v)
{
    const Mem *mem = lib_mem_find(c->m->lib, v->type->mem);
    return mem ? mem->swizzle : 0;
}

/* ---- wgmma --------------------------------------------------------------- */

/* Offset of element (r, k) in the object's dense order. */
static int64_t view_offset(const WgmmaOperand *o, int64_t r, int64_t k)
{
    const Value *base = o->access->base;
    unsigned rank = o->access->rank;
    int64_t inner = shared_stride(base, rank - 1);
    int64_t middle = shared_stride(base, rank - 2);
    if (!o->transposed)
        return r * middle + k * inner;
    int64_t outer = rank > 2 ? shared_stride(base, rank - 3) : 0;
    return r / 64 * outer + k * middle + r % 64 * inner;
}

/* The first element whose addresses differ for some start. */
static bool operand_differs(const WgmmaOperand *o, uint64_t descriptor,
                            const Start *s, int64_t mn, int64_t k,
                            int64_t *bad_r, int64_t *bad_k)
{
    unsigned bytes = (unsigned)scalar_type_bytes(o->elem);
    unsigned kind = (unsigned)(descriptor >> 62);
    unsigned span = kind == 1 ? 128 : kind == 2 ? 64 : kind == 3 ? 32 : 0;
    int64_t lost = s->at - ((int64_t)(descriptor & 0x3fff) << 4);
    for (int64_t r = 0; r < mn; r++)
        for (int64_t i = 0; i < k; i++) {
            int64_t view = s->at + view_offset(o, r, i);
            int64_t hard =
                wgmma_element(descriptor, o->transposed, bytes, r, i);
            *bad_r = r;
            *bad_k = i;
            if (view == hard && span == o->span)
                continue;
            for (int64_t x = 0; x < PERIOD; x += s->step)
                if (swizzled_address(o->span, view + x) !=
                    swizzled_address(span, hard + x))
                    return true;
        }
    return lost != 0;
}

static void check_operand(LayoutCheck *c, const Op *op, unsigned i, int64_t mn)
{
    const Operand *o = &op->operands[i];
    int64_t k = op_attr_int(op, "k", 0), len[2], r = 0, e = 0;
    WgmmaOperand w;
    Start s;
    if (o->kind != OPND_access)
        return;
    switch (wgmma_operand(c->m, o->u.access, mn, k, &w, len)) {
    case WGMMA_no_intervals:
        fault(c, op, "W-SHAPE", "the last two dimensions of operand %c are no "
              "intervals", "DAB"[i]);
        return;
    case WGMMA_shape:
        fault(c, op, "W-SHAPE",
              "operand %c must be %lld x %lld, or of %lld x 64, but is %lld x "
              "%lld",
              "DAB"[i], (long long)mn, (long long)k, (long long)k,
              (long long)len[0], (long long)len[1]);
        return;
    case WGMMA_swizzle:
        fault(c, op, "M-SWZ",
              "the rows of operand %c are not as wide as the swizzle of its "
              "memory",
              "DAB"[i]);
        return;
    case WGMMA_fits:
        break;
    }
    if (!start_of(w.access, &s)) {
        c->open = "an operand of wgmma is no object with constant extents";
        return;
    }
    if (s.at % 16 || s.step % 16)
        fault(c, op, "M-ALIGN", "operand %c may begin at a byte that is no "
              "multiple of 16", "DAB"[i]);
    else if (operand_differs(&w, wgmma_descriptor(&w, s.at), &s, mn, k, &r, &e))
        fault(c, op, "M-SWZ",
              "element (%lld, %lld) of operand %c is not where the matrix "
              "descriptor says",
              (long long)r, (long long)e, "DAB"[i]);
}

/* ---- copies -------------------------------------------------------------- */

typedef struct Box {
    unsigned span, rank;
    int64_t len[MAX_DIMS];
    int64_t bytes; /* of an element */
} Box;

static bool box_of(const Value *map, Box *b)
{
    const MemRef *ref = map->type->mem;
    if (!ref || ref->n_params < 2 || ref->n_params > MAX_DIMS)
        return false;
    *b = (Box){ .span = (unsigned)ref->params[0].i,
                .rank = ref->n_params - 1,
                .bytes = scalar_type_bytes(map->type->elem) };
    for (unsigned d = 0; d < b->rank; d++)
        b->len[d] = ref->params[1 + d].i;
    return true;
}

static void check_box(LayoutCheck *c, const Op *op, const Box *b)
{
    int64_t row = b->len[b->rank - 1] * b->bytes;
    for (unsigned d = 0; d < b->rank; d++)
        if (b->len[d] < 1 || b->len[d] > 256)
            fault(c, op, "M-BOX",
                  "a box has 1 to 256 elements in each dimension, found %lld",
                  (long long)b->len[d]);
    if (row % 16)
        fault(c, op, "M-BOX",
              "the rows of a box are a multiple of 16 bytes, found %lld",
              (long long)row);
    if (b->span && row > b->span)
        fault(c, op, "M-BOX",
              "the rows of a box are at most as wide as the swizzle, %u "
              "bytes, found %lld",
              b->span, (long long)row);
}

/* Intervals of the shared side longer than one element, outermost first. */
static unsigned shared_dims(const Access *a, int64_t *len, int64_t *stride)
{
    unsigned n = 0;
    for (unsigned d = 0; d < a->rank; d++) {
        int64_t l;
        if (a->dims[d].kind != DIM_interval)
            continue;
        if (!affine_is_const(a->dims[d].len, &l) || n == MAX_DIMS)
            return MAX_DIMS + 1;
        if (l == 1)
            continue;
        len[n] = l;
        stride[n++] = shared_stride(a->base, d);
    }
    return n;
}

/* Chunk i of the dense box, in the object's dense order. */
static int64_t chunk_offset(int64_t i, unsigned n, const int64_t *len,
                            const int64_t *stride, int64_t bytes)
{
    int64_t e = i / bytes, at = 0;
    for (unsigned d = n; d-- > 0;) {
        at += e % len[d] * stride[d];
        e /= len[d];
    }
    return at;
}

static void check_copy(LayoutCheck *c, const Op *op, const Access *shared,
                       const Value *map)
{
    const Access *a = access_compose(c->m, shared);
    int64_t len[MAX_DIMS], stride[MAX_DIMS], total;
    Box b;
    Start s;
    while (map->def && map->def->code == OP_mem_window)
        map = map->def->operands[0].u.access->base;
    unsigned n = shared_dims(a, len, stride);
    if (!box_of(map, &b) || !start_of(a, &s) || n > MAX_DIMS) {
        c->open = "a copy's box or object has no constant extents";
        return;
    }
    check_box(c, op, &b);
    if (s.at % 128 || s.step % 128)
        fault(c, op, "M-ALIGN",
              "a copy may begin at a byte that is no multiple of 128");
    total = b.bytes;
    for (unsigned d = 0; d < b.rank; d++)
        total *= b.len[d];
    unsigned span = span_of(c, a->base);
    for (int64_t i = 0; i < total; i += 16) {
        int64_t view = chunk_offset(i, n, len, stride, b.bytes) + s.at;
        if (view == s.at + i && span == b.span)
            continue;
        for (int64_t x = 0; x < PERIOD; x += s.step)
            if (swizzled_address(span, view + x) !=
                swizzled_address(b.span, s.at + i + x)) {
                fault(c, op, "M-SWZ",
                      "byte %lld of the box is elsewhere for the tensor map "
                      "(swizzle %u) than for '%s' (swizzle %u)",
                      (long long)i, b.span, a->base->name ? a->base->name : "",
                      span);
                return;
            }
    }
}

/* ---- launches ------------------------------------------------------------ */

/* The host makes each map as the kernel takes it. */
static void check_launch(LayoutCheck *c, const Op *launch)
{
    const Op *k = module_symbol(c->m, op_attr_str(launch, "kernel", ""));
    for (unsigned i = 0; k && i < launch->n_operands; i++) {
        const Operand *o = &launch->operands[i];
        const Value *taken = k->blocks[0]->args[i].value;
        const Value *given = o->kind == OPND_access  ? o->u.access->base
                             : o->kind == OPND_value ? o->u.value
                                                     : NULL;
        Box made, want;
        if (!given || !taken || taken->type->kind != TK_map ||
            !box_of(given, &made) || !box_of(taken, &want))
            continue;
        if (made.rank != want.rank || made.bytes != want.bytes ||
            memcmp(made.len, want.len, sizeof made.len))
            fault(c, launch, "M-BOX",
                  "the host makes '%s' with another box than the kernel's",
                  taken->name ? taken->name : "");
        else if (made.span != want.span)
            fault(c, launch, "M-SWZ",
                  "the host makes '%s' with swizzle %u, the kernel has %u",
                  taken->name ? taken->name : "", made.span, want.span);
    }
}

/* ---- the walk ------------------------------------------------------------ */

static bool visit(Op *op, void *user)
{
    LayoutCheck *c = user;
    const Operand *o = op->operands;
    switch (op->code) {
    case OP_host_launch:
        check_launch(c, op);
        break;
    case OP_async_wgmma_mma_async:
        check_operand(c, op, 1, 64);
        check_operand(c, op, 2, op_attr_int(op, "n", 0));
        break;
    case OP_async_bulk_tensor_load:
        check_copy(c, op, o[0].u.access, o[1].u.access->base);
        break;
    case OP_async_bulk_tensor_store:
    case OP_async_bulk_tensor_reduce:
        check_copy(c, op, o[1].u.access, o[0].u.access->base);
        break;
    default:
        break;
    }
    return !c->bad;
}

CheckResult check_async_layout(Ctx *ctx, Module *m, const Op *host)
{
    LayoutCheck c = { .ctx = ctx, .m = m };
    for (Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel &&
            kernel_is_launched(host, op_attr_str(op, "name", "")))
            op_walk(op, visit, &c);
    op_walk((Op *)host, visit, &c);
    CheckResult r = { .verdict = VERDICT_proved, .scope = "all sizes" };
    if (c.bad)
        r.verdict = VERDICT_refuted;
    else if (c.open)
        r = (CheckResult){ .verdict = VERDICT_unknown, .reason = c.open };
    return r;
}
