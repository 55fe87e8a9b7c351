/* Tensors on the host: the storage that the interpreter, the machine model and
 * exo-run work on.
 *
 * A Tensor is row-major storage with one byte per element that tells whether
 * it was ever written. A View is a window of one: an offset, extents and
 * strides, and for a window made with a tensor map the place inside the map,
 * so that elements outside of it can be told (docs/semantics.md, "tensor
 * maps"). Views do not own their tensor. */
#ifndef EXO_VERIFY_TENSOR_H
#define EXO_VERIFY_TENSOR_H

#include "ir/scalar.h"
#include "ir/support.h"

/* More dimensions are refused with a diagnostic by whoever makes a view. */
enum { TENSOR_MAX_RANK = 16 };

typedef struct Tensor {
    const char *name; /* not owned */
    ScalarType elem;
    unsigned rank, elem_bytes;
    int64_t extent[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK];
    int64_t count; /* elements */
    unsigned char *bytes;
    unsigned char *written; /* 0 or 1, one an element */
} Tensor;

/* A poisoned row-major tensor; NULL when an extent is negative, there are too
 * many dimensions, or the bytes do not fit the address space or memory. */
GIVES Tensor *tensor_new(const char *name, ScalarType elem, unsigned rank,
                         const int64_t *extent);
GIVES Tensor *tensor_copy(const Tensor *t);
void tensor_free(TAKES Tensor *t); /* NULL is fine */
/* Makes t like new: the poison pattern everywhere, nothing written. */
void tensor_poison(Tensor *t);
/* Claims that every element has a value (after filling bytes directly). */
void tensor_set_written(Tensor *t);

/* Fast for the types that matter, else scalar_decode and scalar_encode. */
double tensor_get(const Tensor *t, int64_t element);
void tensor_set(Tensor *t, int64_t element, double value);
/* .. of n elements from the first on. */
void tensor_fill(Tensor *t, int64_t first, int64_t n, double value);

/* `name[i, j]` of the element at this storage position. */
void tensor_print_element(StrBuf *out, const Tensor *t, int64_t element);

typedef struct View {
    Tensor *tensor;
    unsigned rank;
    int64_t offset; /* storage position of index 0, 0, .. */
    int64_t extent[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK];
    /* A tensor-map window: index i of dimension map_dim[d] is map_lo[d] + i of
     * the map's dimension d; -1: fixed at map_lo[d]. The map's own window has
     * no extents of its own to keep to. */
    bool is_map, is_map_root;
    unsigned map_rank;
    int64_t map_extent[TENSOR_MAX_RANK], map_lo[TENSOR_MAX_RANK];
    int map_dim[TENSOR_MAX_RANK];
} View;

View view_of(Tensor *t);
/* The view as a tensor map's own window. */
void view_make_map(View *v);

/* One dimension of a window: a point, or `len` from lo. */
typedef struct ViewDim {
    bool interval;
    int64_t lo, len;
} ViewDim;

/* The window of v (v->rank dims). False when it leaves v, with *bad the
 * dimension; windows of maps may leave. */
bool view_window(const View *v, const ViewDim *dims, View *out, unsigned *bad);

enum { VIEW_OUTSIDE_MAP = -1, VIEW_OUT_OF_BOUNDS = -2 };
/* Storage position of an element, or one of the two above, with *bad the
 * dimension. */
int64_t view_element(const View *v, const int64_t *index, unsigned *bad);
/* How many elements, up to n, follow this one along the last dimension, itself
 * counted, that lie side by side in storage as it does, or outside of the map
 * as it does. At least 1. */
int64_t view_run(const View *v, const int64_t *index, int64_t n);

#endif
