/* Arrays in .npy files (NumPy's format, versions 1.0 to 3.0): read and written
 * by exo-run for --in and --out. Little endian and row-major; element types
 * f2 f4 f8 i1 i4 i8 u1 u2 b1. bf16 travels as u2 and the 8-bit floats as u1, as
 * NumPy has no names for them.
 *
 * The reader takes any bytes: a header that is cut short, lies about lengths or
 * is not the dictionary NumPy writes is an error with a message. Functions that
 * can fail return false and then have filled `err`. */
#ifndef EXO_RUNTIME_NPY_H
#define EXO_RUNTIME_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/scalar.h"

enum { NPY_RANK_MAX = 64 }; /* as NumPy */

typedef struct NpyError {
    char text[512];
} NpyError;

/* An array. `data` lies in `file`, which npy_free frees. */
typedef struct NpyArray {
    char dtype[4]; /* kind and bytes: "f4" */
    int item_bytes;
    int rank;
    int64_t shape[NPY_RANK_MAX];
    size_t count; /* elements; 1 when the rank is 0 */
    const void *data;
    void *file; /* NULL after npy_parse */
} NpyArray;

/* Reads the array in the file at `path`. */
bool npy_read(const char *path, NpyArray *out, NpyError *err);

/* Reads the array in `size` bytes of memory; `out` points into them. */
bool npy_parse(const void *bytes, size_t size, NpyArray *out, NpyError *err);

/* Frees what npy_read made; an array of npy_parse is left alone. */
void npy_free(NpyArray *array);

/* Whether the array can stand for a tensor of that type and shape; the message
 * says what was expected and what was found. */
bool npy_matches(const NpyArray *array, ScalarType type, int rank,
                 const int64_t *shape, NpyError *err);

/* Writes a tensor. A file is written beside `path` and renamed when whole; what
 * is no regular file (a pipe, /dev/null) is written in place. R and shapes that
 * are negative or too large are refused. */
bool npy_write(const char *path, ScalarType type, int rank,
               const int64_t *shape, const void *data, NpyError *err);

#endif
