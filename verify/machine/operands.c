/* What the tensor core reads: A and B of a wgmma, from shared memory or
 * registers, as packed f32 arrays.
 *
 * All warps of a warpgroup, and of others that work on the same columns, read
 * one B. What was fetched is kept until its bytes are written, so that the next
 * warp only tells of its reads. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"
#include "verify/fma.h"

#include <string.h>

/* A warp may go ahead of the others by the depth of a ring, some steps each. */
enum { KEPT = 64 };

/* A B that was fetched. */
typedef struct KeptB {
    const Op *op; /* NULL: none */
    const Cta *cta;
    int64_t base;   /* of the operand: its first element */
    int64_t lo, hi; /* its bytes are in between */
    SpanVec spans;
    float *b;
    size_t room; /* floats of b */
} KeptB;

struct MmaFetch {
    KeptB kept[KEPT];
    unsigned next;  /* to be replaced */
    int64_t lo, hi; /* the bytes of all are in between */
    SpanVec spans;  /* of A */
};

/* ---- spans --------------------------------------------------------------- */

/* `count` elements side by side to out[0], out[step], .., of f32 what the
 * tensor core takes of them. */
static void decode(ScalarType t, const unsigned char *p, size_t count,
                   float *out, size_t step)
{
    scalar_load_floats(t, p, count, out, step);
    for (size_t i = 0; t == TY_f32 && i < count; i++)
        out[i * step] = scalar_tf32_truncate(out[i * step]);
}

/* The engine reads n bytes at an address behind the swizzle. */
static bool read_span(Machine *mc, Effect *e, const MmaOperand *o, int64_t at,
                      int64_t n, SpanVec *spans)
{
    const Cta *cta = e->warp->cta;
    if (memchr(cta->written + at, 0, (size_t)n)) {
        StrBuf name = { 0 };
        value_print_name(&name, o->obj->value);
        machine_fail(mc, e->warp, ALL_LANES, e->op, "poison",
                     "reads '%s' at shared byte %lld of cta %u, which was "
                     "never written",
                     strbuf_text(&name), (long long)at, cta->rank);
        strbuf_free(&name);
        return false;
    }
    spans_add(mc->arena, spans, at, n);
    return check_proxy(mc, e->warp, ALL_LANES, e->op, cta, at, (size_t)n);
}

/* `count` elements that are side by side before the swizzle, which keeps 16
 * bytes together; two such chunks that are neighbours behind it are one access.
 */
static bool fetch_row(Machine *mc, Effect *e, const MmaOperand *o,
                      int64_t element, int64_t count, float *out, size_t step,
                      SpanVec *spans)
{
    const unsigned char *smem = e->warp->cta->smem;
    int64_t size = o->obj->elem_bytes;
    int64_t byte = o->obj->offset + element * size, left = count * size;
    while (left > 0) {
        int64_t at = shared_address(o->obj->swizzle, byte);
        int64_t n = 16 - byte % 16, first = at;
        n = n < left ? n : left;
        decode(o->obj->elem, smem + at, (size_t)(n / size), out, step);
        out += (size_t)(n / size) * step;
        byte += n;
        left -= n;
        int64_t next = shared_address(o->obj->swizzle, byte);
        if (left >= 16 && n == 16 && (next == at + 16 || next == at - 16)) {
            decode(o->obj->elem, smem + next, (size_t)(16 / size), out, step);
            out += (size_t)(16 / size) * step;
            first = next < at ? next : at;
            byte += 16;
            left -= 16;
            n = 32;
        }
        if (!read_span(mc, e, o, first, n, spans))
            return false;
    }
    return true;
}

static int64_t operand_base(const MmaOperand *o)
{
    int64_t at = 0;
    for (unsigned d = 0; d < o->obj->rank; d++)
        at += o->index[d] * o->obj->stride[d];
    return at;
}

/* ---- A ------------------------------------------------------------------- */

/* The type of the values that A has in registers. */
static ScalarType a_type(const Effect *e)
{
    return e->op->operands[1].kind == OPND_value
               ? e->op->operands[1].u.value->type->elem
               : e->a.obj->elem;
}

/* Registers of A from a_slot on, as a 16 x k tile in the hardware's order:
 * lane 4 r + c holds, for row half h and column half g, consecutive elements
 * of row r + 8 h. */
static bool gather_a_frag(Machine *mc, Effect *e, float *a)
{
    int64_t pair = e->k / 8;
    ScalarType t = a_type(e);
    for (int64_t r = 0; r < MMA_WARP_ROWS; r++)
        for (int64_t c = 0; c < e->k; c++) {
            unsigned lane = (unsigned)(4 * (r % 8) + c / pair % 4);
            int64_t slot = e->a_slot + c % pair + pair * (r / 8) +
                           2 * pair * (c / (4 * pair));
            if (slot >= e->a.frag->n || !(e->a.frag->live[slot] >> lane & 1))
                return machine_fail(mc, e->warp, 1u << lane, e->op, "poison",
                                    "reads register %lld of A, which was never "
                                    "written",
                                    (long long)slot);
            double x = e->a.frag->x[slot * WARP_LANES + lane];
            a[r * e->k + c] =
                t == TY_f32 ? scalar_tf32_truncate((float)x) : (float)x;
        }
    return true;
}

/* The warp's 16 rows of A in shared memory. */
static bool gather_a_shared(Machine *mc, Effect *e, float *a, SpanVec *spans)
{
    const int64_t *stride = e->a.obj->stride;
    int64_t s0 = stride[e->a.dim[0]], s1 = stride[e->a.dim[1]];
    int64_t row = e->a.transposed ? s1 : s0, col = e->a.transposed ? s0 : s1;
    int64_t base =
        operand_base(&e->a) + e->warp->index % 4 * MMA_WARP_ROWS * row;
    if (row == 1 && col != 1) {
        for (int64_t c = 0; c < e->k; c++)
            if (!fetch_row(mc, e, &e->a, base + c * col, MMA_WARP_ROWS, &a[c],
                           (size_t)e->k, spans))
                return false;
        return true;
    }
    for (int64_t r = 0; r < MMA_WARP_ROWS; r++)
        for (int64_t c = 0; c < e->k; c += col == 1 ? e->k : 1)
            if (!fetch_row(mc, e, &e->a, base + r * row + c * col,
                           col == 1 ? e->k : 1, &a[r * e->k + c], 1, spans))
                return false;
    return true;
}

static struct MmaFetch *fetch_of(Machine *mc)
{
    if (!mc->fetch)
        mc->fetch = ARENA_NEW(mc->arena, struct MmaFetch);
    return mc->fetch;
}

bool mma_gather_a(Machine *mc, Effect *e, float *a)
{
    if (e->a.frag)
        return gather_a_frag(mc, e, a);
    SpanVec *spans = &fetch_of(mc)->spans;
    spans->len = 0;
    bool ok = gather_a_shared(mc, e, a, spans);
    engine_reads(mc, e, e->a.obj, spans->data, spans->len);
    return ok;
}

/* ---- B ------------------------------------------------------------------- */

static bool fetch_b(Machine *mc, Effect *e, KeptB *kept)
{
    const int64_t *stride = e->b.obj->stride;
    bool t = e->b.transposed;
    int64_t outer = t ? stride[e->b.dim[0]] : 0;
    int64_t col = stride[e->b.dim[t ? 2 : 0]], row = stride[e->b.dim[1]];
    bool by_col = col == 1 && row != 1; /* columns are side by side */
    int64_t run = row == 1 ? e->k : 1, wide = by_col ? FMA_PANEL : 1;
    size_t size = fma_padded((size_t)e->n) * (size_t)e->k;
    if (kept->room < size)
        kept->b = ARENA_ARRAY(mc->arena, float, size);
    kept->room = kept->room < size ? size : kept->room;
    memset(kept->b, 0, size * sizeof *kept->b);
    for (int64_t n = 0; n < e->n; n += wide)
        for (int64_t k = 0; k < e->k; k += run) {
            int64_t at = kept->base + k * row +
                         (t ? n / 64 * outer + n % 64 * col : n * col);
            int64_t count = wide < e->n - n ? wide : e->n - n;
            float *to =
                &kept->b[fma_b_index((size_t)e->k, (size_t)k, (size_t)n)];
            if (!fetch_row(mc, e, &e->b, at, by_col ? count : run, to,
                           by_col ? 1 : FMA_PANEL, &kept->spans))
                return false;
        }
    return true;
}

static KeptB *find_b(struct MmaFetch *f, const Effect *e, int64_t base)
{
    for (unsigned i = 0; i < KEPT; i++)
        if (f->kept[i].op == e->op && f->kept[i].cta == e->warp->cta &&
            f->kept[i].base == base)
            return &f->kept[i];
    return NULL;
}

static void note_bytes(struct MmaFetch *f, KeptB *kept)
{
    kept->lo = INT64_MAX;
    kept->hi = 0;
    for (size_t i = 0; i < kept->spans.len; i++) {
        const MachineSpan *s = &kept->spans.data[i];
        int64_t end = s->offset + s->length;
        kept->lo = s->offset < kept->lo ? s->offset : kept->lo;
        kept->hi = end > kept->hi ? end : kept->hi;
    }
    f->lo = f->hi && f->lo < kept->lo ? f->lo : kept->lo;
    f->hi = f->hi > kept->hi ? f->hi : kept->hi;
}

const float *mma_gather_b(Machine *mc, Effect *e)
{
    struct MmaFetch *f = fetch_of(mc);
    int64_t base = operand_base(&e->b);
    KeptB *kept = find_b(f, e, base);
    bool ok = true;
    if (!kept) {
        kept = &f->kept[f->next++ % KEPT];
        kept->base = base;
        kept->spans.len = 0;
        ok = fetch_b(mc, e, kept);
        kept->op = ok ? e->op : NULL;
        kept->cta = e->warp->cta;
        note_bytes(f, kept);
    }
    engine_reads(mc, e, e->b.obj, kept->spans.data, kept->spans.len);
    return ok ? kept->b : NULL;
}

void mma_forget(Machine *mc, const Cta *cta, int64_t at, int64_t n)
{
    struct MmaFetch *f = mc->fetch;
    if (!f || at >= f->hi || at + n <= f->lo)
        return;
    for (unsigned i = 0; i < KEPT; i++) {
        KeptB *k = &f->kept[i];
        if (k->cta == cta && at < k->hi && k->lo < at + n)
            k->op = NULL;
    }
}
