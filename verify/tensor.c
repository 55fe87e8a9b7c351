/* Storage with a written mask, and windows of it. */
#include "verify/tensor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes that every host has: most tensors are smaller, and it is not asked. */
#define ALWAYS_THERE ((double)(1 << 20))

/* Would this many elements leave the memory that the host has? An allocation
 * that the kernel grants and cannot keep would end the process. */
static bool too_large(int64_t count, unsigned elem_bytes)
{
    double bytes = (double)count * (elem_bytes + 1);
    if (bytes <= ALWAYS_THERE)
        return false;
    double pages = (double)sysconf(_SC_PHYS_PAGES);
    return pages > 0 && bytes > pages * (double)sysconf(_SC_PAGESIZE);
}

static bool tensor_layout(Tensor *t, const int64_t *extent)
{
    int64_t count = 1;
    for (unsigned d = t->rank; d-- > 0;) {
        if (extent[d] < 0)
            return false;
        t->extent[d] = extent[d];
        t->stride[d] = count;
        if (__builtin_mul_overflow(count, extent[d], &count))
            return false;
    }
    t->count = count;
    return count <= INT64_MAX / 16;
}

GIVES Tensor *tensor_new(const char *name, ScalarType elem, unsigned rank,
                         const int64_t *extent)
{
    if (rank > TENSOR_MAX_RANK)
        return NULL;
    Tensor *t = calloc(1, sizeof *t);
    if (!t)
        panic("tensor_new: out of memory");
    t->name = name;
    t->elem = elem;
    t->elem_bytes = (unsigned)scalar_type_bytes(elem);
    t->rank = rank;
    if (!tensor_layout(t, extent) || too_large(t->count, t->elem_bytes)) {
        free(t);
        return NULL;
    }
    t->bytes = malloc((size_t)t->count * t->elem_bytes + 16);
    t->written = malloc((size_t)t->count + 16);
    if (!t->bytes || !t->written) {
        tensor_free(t);
        return NULL;
    }
    tensor_poison(t);
    return t;
}

GIVES Tensor *tensor_copy(const Tensor *t)
{
    Tensor *c = tensor_new(t->name, t->elem, t->rank, t->extent);
    if (!c)
        panic("tensor_copy: out of memory");
    memcpy(c->bytes, t->bytes, (size_t)t->count * t->elem_bytes);
    memcpy(c->written, t->written, (size_t)t->count);
    return c;
}

void tensor_free(TAKES Tensor *t)
{
    if (!t)
        return;
    free(t->bytes);
    free(t->written);
    free(t);
}

/* All bytes are as the first `done` of them. */
static void repeat(unsigned char *bytes, size_t done, size_t all)
{
    for (size_t n; done < all; done += n) {
        n = done < all - done ? done : all - done;
        memcpy(bytes + done, bytes, n);
    }
}

void tensor_poison(Tensor *t)
{
    uint64_t poison = scalar_info(t->elem)->poison_bits;
    size_t done = t->count ? t->elem_bytes : 0;
    memcpy(t->bytes, &poison, done);
    repeat(t->bytes, done, (size_t)t->count * t->elem_bytes);
    memset(t->written, 0, (size_t)t->count);
}

void tensor_set_written(Tensor *t)
{
    memset(t->written, 1, (size_t)t->count);
}

double tensor_get(const Tensor *t, int64_t element)
{
    return scalar_load(t->elem, t->bytes + element * t->elem_bytes);
}

void tensor_set(Tensor *t, int64_t element, double value)
{
    scalar_encode(t->elem, value, t->bytes + element * t->elem_bytes);
    t->written[element] = 1;
}

void tensor_fill(Tensor *t, int64_t first, int64_t n, double value)
{
    unsigned char *bytes = t->bytes + first * t->elem_bytes;
    if (n < 1)
        return;
    scalar_encode(t->elem, value, bytes);
    repeat(bytes, t->elem_bytes, (size_t)n * t->elem_bytes);
    memset(t->written + first, 1, (size_t)n);
}

void tensor_print_element(StrBuf *out, const Tensor *t, int64_t element)
{
    strbuf_add(out, t->name ? t->name : "?");
    if (!t->rank)
        return;
    strbuf_addc(out, '[');
    for (unsigned d = 0; d < t->rank; d++) {
        int64_t i = t->stride[d] ? element / t->stride[d] : 0;
        element -= i * t->stride[d];
        strbuf_addf(out, "%s%lld", d ? ", " : "", (long long)i);
    }
    strbuf_addc(out, ']');
}

View view_of(Tensor *t)
{
    View v = { .tensor = t, .rank = t->rank };
    for (unsigned d = 0; d < t->rank; d++) {
        v.extent[d] = t->extent[d];
        v.stride[d] = t->stride[d];
    }
    return v;
}

void view_make_map(View *v)
{
    v->is_map = v->is_map_root = true;
    v->map_rank = v->rank;
    for (unsigned d = 0; d < v->rank; d++) {
        v->map_extent[d] = v->extent[d];
        v->map_lo[d] = 0;
        v->map_dim[d] = (int)d;
    }
}

static void view_window_map(const View *v, const ViewDim *dims,
                            const int *new_dim, View *out)
{
    for (unsigned d = 0; d < v->map_rank; d++) {
        int old = v->map_dim[d];
        out->map_extent[d] = v->map_extent[d];
        out->map_lo[d] = v->map_lo[d] + (old >= 0 ? dims[old].lo : 0);
        out->map_dim[d] = old >= 0 ? new_dim[old] : -1;
    }
    out->is_map = true;
    out->map_rank = v->map_rank;
}

bool view_window(const View *v, const ViewDim *dims, View *out, unsigned *bad)
{
    int new_dim[TENSOR_MAX_RANK];
    *out = (View){ .tensor = v->tensor, .offset = v->offset };
    for (unsigned d = 0; d < v->rank; d++) {
        int64_t len = dims[d].interval ? dims[d].len : 1;
        bool inside =
            dims[d].lo >= 0 && len >= 0 && dims[d].lo <= v->extent[d] - len;
        if (!inside && !v->is_map_root) {
            *bad = d;
            return false;
        }
        out->offset += dims[d].lo * v->stride[d];
        new_dim[d] = dims[d].interval ? (int)out->rank : -1;
        if (dims[d].interval) {
            out->extent[out->rank] = len;
            out->stride[out->rank++] = v->stride[d];
        }
    }
    if (v->is_map)
        view_window_map(v, dims, new_dim, out);
    return true;
}

int64_t view_element(const View *v, const int64_t *index, unsigned *bad)
{
    int64_t at = v->offset;
    for (unsigned d = 0; d < v->rank; d++) {
        if ((index[d] < 0 || index[d] >= v->extent[d]) && !v->is_map_root) {
            *bad = d;
            return VIEW_OUT_OF_BOUNDS;
        }
        at += index[d] * v->stride[d];
    }
    if (v->is_map)
        for (unsigned d = 0; d < v->map_rank; d++) {
            int64_t i = v->map_lo[d];
            if (v->map_dim[d] >= 0)
                i += index[v->map_dim[d]];
            if (i < 0 || i >= v->map_extent[d])
                return VIEW_OUTSIDE_MAP;
        }
    return at;
}

int64_t view_run(const View *v, const int64_t *index, int64_t n)
{
    unsigned last = v->rank - 1;
    if (!v->rank || v->stride[last] != 1)
        return 1;
    int64_t run = v->is_map_root ? n : v->extent[last] - index[last];
    for (unsigned d = 0; v->is_map && d < v->map_rank; d++) {
        if (v->map_dim[d] != (int)last)
            continue;
        int64_t i = v->map_lo[d] + index[last];
        int64_t left = i < 0                  ? -i
                       : i < v->map_extent[d] ? v->map_extent[d] - i
                                              : n;
        run = left < run ? left : run;
    }
    return run < 1 ? 1 : run < n ? run : n;
}
