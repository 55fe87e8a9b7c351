/* Address equality, by bit-vectors: two parties give every element of a box or
 * operand one address, at every possible start. Parties are the view (an
 * object's dense order behind its memory's swizzle), the copy engine (its box
 * dense from the start, behind the map's swizzle) and wgmma (its descriptor,
 * into which code generation has added the start). Equal terms are equal; the
 * others are asked of the prover. No rule of alignment is asked for where the
 * addresses agree.
 *
 * Where the prover does not know bit-vectors all values are gone through: an
 * address matters to the swizzle by its residue modulo 1024, so that of the
 * starts those residues will do. */
#include "verify/async/layout.h"

#include "ir/limits.h"
#include "passes/wgmma_layout.h"
#include "verify/async/budget.h"
#include "verify/async/fault.h"

#include <string.h>

enum { PERIOD = 1024, WINDOW = 1 << 18, MAX_DIMS = 8 };

typedef struct LayoutCheck {
    Ctx *ctx;
    Module *m;
    Prover *prover;
    Arena *arena; /* of terms */
    bool bad;
    bool enumerated;  /* the prover was of no use */
    const char *open; /* why something could not be decided */
} LayoutCheck;

static void fault(LayoutCheck *c, const Op *op, const char *code,
                  const char *fmt, ...) EXO_PRINTF(4, 5);

static void fault(LayoutCheck *c, const Op *op, const char *code,
                  const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    async_vfault(c->ctx, op, code, fmt, ap);
    va_end(ap);
    c->bad = true;
}

/* ---- starts -------------------------------------------------------------- */

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
        int64_t stride = shared_stride(a->base, d), bytes;
        if (stride < 0)
            return false;
        if (a->dims[d].kind == DIM_ring) {
            if (a->base->ring_depth > 1)
                out->step = int_gcd(out->step, stride);
            continue;
        }
        const Affine *lo = a->dims[d].lo;
        if (__builtin_mul_overflow(lo->constant, stride, &bytes) ||
            __builtin_add_overflow(out->at, bytes, &out->at))
            return false;
        for (uint32_t i = 0; i < lo->n_terms; i++) {
            if (__builtin_mul_overflow(lo->terms[i].coef, stride, &bytes))
                return false;
            out->step = int_gcd(out->step, bytes);
        }
    }
    /* the run-time part makes up for a negative constant */
    if (out->at < 0)
        out->at = int_mod(out->at, PERIOD);
    return true;
}

static unsigned span_of(const LayoutCheck *c, const Value *v)
{
    const Mem *mem = lib_mem_find(c->m->lib, v->type->mem);
    return mem ? mem->swizzle : 0;
}

/* How many starts there are in shared memory. */
static uint64_t starts(const Start *s)
{
    int64_t room = WINDOW - s->at;
    return room <= s->step ? 1 : (uint64_t)((room + s->step - 1) / s->step);
}

/* The run-time part of a start: variable i counts its steps. */
static const BitTerm *start_steps(LayoutCheck *c, const Start *s, unsigned i)
{
    return bits_with(c->arena, BIT_mul, bits_var(c->arena, i),
                     (uint64_t)s->step);
}

/* ---- questions ----------------------------------------------------------- */

static bool same_term(const BitTerm *x, const BitTerm *y)
{
    if (x == y)
        return true;
    if (x->op != y->op || x->c != y->c)
        return false;
    return !x->a || (same_term(x->a, y->a) && same_term(x->b, y->b));
}

/* Goes through all values; those at which the sides differ are left. */
static ProveAnswer enumerate(const BitQuery *q, uint64_t *values)
{
    memset(values, 0, q->n_vars * sizeof *values);
    for (;;) {
        if (bits_eval(q->left, values) != bits_eval(q->right, values))
            return PROVE_no;
        unsigned i = 0;
        while (i < q->n_vars && ++values[i] == q->vars[i].below)
            values[i++] = 0;
        if (i == q->n_vars)
            return PROVE_yes;
    }
}

/* Are the sides equal for all values of the variables, of which the last counts
 * the steps of start s? by_residue: the start matters by its residue alone. */
static bool equal_bits(LayoutCheck *c, BitQuery q, const Start *s, BitVar *vars,
                       uint64_t *values, bool by_residue)
{
    if (same_term(q.left, q.right))
        return true;
    vars[q.n_vars - 1] = (BitVar){ "start", starts(s) };
    q.vars = vars;
    ProveAnswer answer = prove_bits_equal(c->prover, &q, values);
    if (answer == PROVE_unknown) {
        uint64_t residues = (uint64_t)(PERIOD / s->step);
        c->enumerated = true;
        if (by_residue && vars[q.n_vars - 1].below > residues)
            vars[q.n_vars - 1].below = residues;
        answer = enumerate(&q, values);
    }
    return answer == PROVE_yes;
}

/* ---- wgmma --------------------------------------------------------------- */

/* The object's dense order. */
static TileBytes view_tile(const WgmmaOperand *o)
{
    const Value *base = o->access->base;
    unsigned rank = o->access->rank;
    int64_t inner = shared_stride(base, rank - 1);
    int64_t middle = shared_stride(base, rank - 2);
    if (!o->transposed)
        return (TileBytes){ 3, 8 * middle, middle, 8 * inner, inner };
    int64_t outer = rank > 2 ? shared_stride(base, rank - 3) : 0;
    return (TileBytes){ 6, outer, inner, 8 * middle, middle };
}

/* Does the sum that code generation makes stay in the descriptor's field, in
 * each CTA of a cluster, whose rank stands in its addresses? */
static bool descriptor_holds(LayoutCheck *c, const WgmmaOperand *o,
                             const Start *s)
{
    Arena *a = c->arena;
    BitVar vars[2] = { { "cta", CTAS_A_CLUSTER } };
    uint64_t values[2];
    const BitTerm *steps = start_steps(c, s, 1);
    const BitTerm *memory =
        bits_with(a, BIT_mul, bits_var(a, 0), UINT64_C(1) << CTA_ADDRESS);
    const BitTerm *start = bits_with(a, BIT_add, steps, (uint64_t)s->at);
    const BitTerm *field =
        bits_with(a, BIT_and, bits_with(a, BIT_shr, start, 4), 0x3fff);
    return equal_bits(
        c,
        (BitQuery){ .left = wgmma_descriptor_bits(a, o, s->at, memory, steps),
                    .right =
                        bits_with(a, BIT_add, field, wgmma_descriptor(o, 0)),
                    .n_vars = 2 },
        s, vars, values, false);
}

/* The first element found whose addresses differ for some start. */
static bool operand_differs(LayoutCheck *c, const WgmmaOperand *o,
                            const Start *s, int64_t mn, int64_t k,
                            int64_t *bad_r, int64_t *bad_k)
{
    Arena *a = c->arena;
    uint64_t d = wgmma_descriptor(o, 0), values[3] = { 0 };
    unsigned bytes = (unsigned)scalar_type_bytes(o->elem);
    BitVar vars[3] = { { "r", (uint64_t)mn }, { "k", (uint64_t)k }, { 0 } };
    TileBytes view = view_tile(o), hard = wgmma_tile(d, o->transposed, bytes);
    const BitTerm *r = bits_var(a, 0), *i = bits_var(a, 1);
    const BitTerm *start =
        bits_with(a, BIT_add, start_steps(c, s, 2), (uint64_t)s->at);
    const BitTerm *by_view =
        bits_make(a, BIT_add, tile_bits(a, &view, r, i), start);
    const BitTerm *by_wgmma =
        bits_make(a, BIT_add, tile_bits(a, &hard, r, i), start);
    BitQuery q = { .left = swizzled_bits(a, o->span, by_view),
                   .right = swizzled_bits(a, wgmma_span(d), by_wgmma),
                   .n_vars = 3 };
    bool same =
        descriptor_holds(c, o, s) && equal_bits(c, q, s, vars, values, true);
    *bad_r = (int64_t)values[0];
    *bad_k = (int64_t)values[1];
    return !same;
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
        fault(c, op, "W-SHAPE",
              "the last two dimensions of operand %c are no "
              "intervals",
              "DAB"[i]);
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
        fault(c, op, "M-ALIGN",
              "operand %c may begin at a byte that is no "
              "multiple of 16",
              "DAB"[i]);
    else if (operand_differs(c, &w, &s, mn, k, &r, &e))
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
    bool rounds;   /* what is loaded, to tf32 */
} Box;

static bool box_of(const LayoutCheck *c, const Value *map, Box *b)
{
    const MemRef *ref = map->type->mem;
    if (!ref || ref->n_params < 2 || ref->n_params > MAX_DIMS)
        return false;
    *b = (Box){ .span = (unsigned)ref->params[0].i,
                .rank = ref->n_params - 1,
                .bytes = scalar_type_bytes(map->type->elem) };
    for (unsigned d = 0; d < b->rank; d++)
        b->len[d] = ref->params[1 + d].i;
    b->rounds = lib_rounds_tf32(c->m->lib, ref);
    return true;
}

/* Answers whether it may be walked. */
static bool check_box(LayoutCheck *c, const Op *op, const Box *b)
{
    for (unsigned d = 0; d < b->rank; d++)
        if (b->len[d] < 1 || b->len[d] > 256) {
            fault(c, op, "M-BOX",
                  "a box has 1 to 256 elements in each dimension, found %lld",
                  (long long)b->len[d]);
            return false;
        }
    int64_t row = b->len[b->rank - 1] * b->bytes;
    if (row % 16)
        fault(c, op, "M-BOX",
              "the rows of a box are a multiple of 16 bytes, found %lld",
              (long long)row);
    if (b->span && row > b->span)
        fault(c, op, "M-BOX",
              "the rows of a box are at most as wide as the swizzle, %u "
              "bytes, found %lld",
              b->span, (long long)row);
    return true;
}

/* Intervals of the shared side longer than one element, outermost first. */
static unsigned shared_dims(const Access *a, int64_t *len, int64_t *stride)
{
    unsigned n = 0;
    int64_t all = 1;
    for (unsigned d = 0; d < a->rank; d++) {
        int64_t l;
        if (a->dims[d].kind != DIM_interval)
            continue;
        if (!affine_is_const(a->dims[d].len, &l) || n == MAX_DIMS || l < 1 ||
            l > WINDOW / all)
            return MAX_DIMS + 1;
        all *= l;
        if (l == 1)
            continue;
        len[n] = l;
        stride[n++] = shared_stride(a->base, d);
    }
    return n;
}

/* The element's offset in the object and in the dense box, a variable a
 * dimension. */
static void box_terms(LayoutCheck *c, unsigned n, const int64_t *len,
                      const int64_t *stride, int64_t bytes,
                      const BitTerm *out[2])
{
    Arena *a = c->arena;
    int64_t dense = bytes;
    out[0] = out[1] = bits_const(a, 0);
    for (unsigned d = n; d-- > 0; dense *= len[d]) {
        const BitTerm *v = bits_var(a, d);
        out[0] = bits_make(a, BIT_add, out[0],
                           bits_with(a, BIT_mul, v, (uint64_t)stride[d]));
        out[1] = bits_make(a, BIT_add, out[1],
                           bits_with(a, BIT_mul, v, (uint64_t)dense));
    }
}

/* Is byte *at of the box, or one behind it, elsewhere than in the object? */
static bool box_differs(LayoutCheck *c, const Box *b, unsigned span, unsigned n,
                        const int64_t *len, const int64_t *stride,
                        const Start *s, int64_t *at)
{
    Arena *a = c->arena;
    BitVar vars[MAX_DIMS + 1] = { 0 };
    uint64_t values[MAX_DIMS + 1] = { 0 };
    const BitTerm *offset[2];
    int64_t total = b->bytes, dense = b->bytes;
    for (unsigned d = 0; d < b->rank; d++)
        total *= b->len[d];
    for (unsigned d = n; d-- > 0; dense *= len[d])
        vars[d] = (BitVar){ "i", (uint64_t)len[d] };
    *at = dense < total ? dense : total;
    if (dense != total)
        return true;
    box_terms(c, n, len, stride, b->bytes, offset);
    const BitTerm *start =
        bits_with(a, BIT_add, start_steps(c, s, n), (uint64_t)s->at);
    for (int i = 0; i < 2; i++)
        offset[i] = bits_make(a, BIT_add, offset[i], start);
    BitQuery q = { .left = swizzled_bits(a, span, offset[0]),
                   .right = swizzled_bits(a, b->span, offset[1]),
                   .n_vars = n + 1 };
    bool same = equal_bits(c, q, s, vars, values, true);
    *at = 0;
    dense = b->bytes;
    for (unsigned d = n; d-- > 0; dense *= len[d])
        *at += (int64_t)values[d] * dense;
    return !same;
}

static void check_copy(LayoutCheck *c, const Op *op, const Access *shared,
                       const Value *map)
{
    const Access *a = access_compose(c->m, shared);
    int64_t len[MAX_DIMS], stride[MAX_DIMS], at;
    Box b;
    Start s;
    while (map->def && map->def->code == OP_mem_window)
        map = map->def->operands[0].u.access->base;
    unsigned n = shared_dims(a, len, stride);
    if (!box_of(c, map, &b) || !start_of(a, &s) || n > MAX_DIMS) {
        c->open = "a copy's box or object has no constant extents";
        return;
    }
    if (!check_box(c, op, &b))
        return;
    if (s.at % 128 || s.step % 128)
        fault(c, op, "M-ALIGN",
              "a copy may begin at a byte that is no multiple of 128");
    unsigned span = span_of(c, a->base);
    if (box_differs(c, &b, span, n, len, stride, &s, &at))
        fault(c, op, "M-SWZ",
              "byte %lld of the box is elsewhere for the tensor map (swizzle "
              "%u) than for '%s' (swizzle %u)",
              (long long)at, b.span, a->base->name ? a->base->name : "", span);
}

/* Bytes that lie together and whole patterns of the swizzle, so that they mean
 * the same wherever they are put. */
static void check_side(LayoutCheck *c, const Op *op, const Access *side)
{
    const Access *a = access_compose(c->m, side);
    int64_t len[MAX_DIMS], stride[MAX_DIMS];
    int64_t total = scalar_type_bytes(a->base->type->elem);
    Start s;
    unsigned n = shared_dims(a, len, stride), span = span_of(c, a->base);
    if (n > MAX_DIMS || !start_of(a, &s)) {
        c->open = "a copy's object has no constant extents";
        return;
    }
    for (unsigned d = n; d-- > 0; total *= len[d])
        if (stride[d] != total) {
            fault(c, op, "M-BOX", "a side of the copy is not dense");
            return;
        }
    int64_t unit = span ? 8 * (int64_t)span : 16;
    if (s.at % unit || s.step % unit || total % unit)
        fault(c, op, span ? "M-SWZ" : "M-ALIGN",
              "a copy of %lld bytes may begin at byte %lld of %lld",
              (long long)total, (long long)(s.at % unit), (long long)unit);
}

static void check_sides(LayoutCheck *c, const Op *op)
{
    const Access *to = op->operands[0].u.access;
    const Access *from = op->operands[1].u.access;
    check_side(c, op, to);
    check_side(c, op, from);
    unsigned a = span_of(c, access_compose(c->m, to)->base);
    unsigned b = span_of(c, access_compose(c->m, from)->base);
    if (a != b)
        fault(c, op, "M-SWZ",
              "bytes of a memory with swizzle %u are copied to one with %u", b,
              a);
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
            !box_of(c, given, &made) || !box_of(c, taken, &want))
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
        else if (made.rounds != want.rounds)
            fault(c, launch, "M-ROUND",
                  "loads through '%s' %s as the host makes it, the kernel's "
                  "%s",
                  taken->name ? taken->name : "",
                  made.rounds ? "round to tf32" : "copy",
                  want.rounds ? "round" : "do not");
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
    case OP_async_bulk_copy:
        check_sides(c, op);
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

CheckResult check_async_layout(Ctx *ctx, Module *m, const Op *host,
                               Prover *prover)
{
    LayoutCheck c = { .ctx = ctx, .m = m, .prover = prover };
    c.arena = arena_new();
    for (Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel &&
            kernel_is_launched(host, op_attr_str(op, "name", "")))
            op_walk(op, visit, &c);
    op_walk((Op *)host, visit, &c);
    arena_free(c.arena);
    CheckResult r = { .verdict = VERDICT_proved, .scope = "all sizes" };
    if (c.bad)
        r.verdict = VERDICT_refuted;
    else if (c.open)
        r = (CheckResult){ .verdict = VERDICT_unknown, .reason = c.open };
    else if (c.enumerated)
        r.scope = "all sizes, by enumeration";
    return r;
}
