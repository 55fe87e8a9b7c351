/* .npy files. Layout: "\x93NUMPY", major and minor version, the header's length
 * (2 bytes in version 1, 4 from version 2), the header, the elements. The
 * header is a Python dictionary with the keys descr, fortran_order and shape,
 * filled up with spaces so that the elements start at a multiple of 64.
 *
 * The header is read by a small scanner over [at, end) that never looks past
 * its end; every length is checked before it is used. */
#include "runtime/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool refuse(NpyError *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(NpyError *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return false;
}

/* --- Reading ------------------------------------------------------------ */

typedef struct Scanner {
    const char *start, *at, *end;
    NpyError *err;
} Scanner;

static bool expected(const Scanner *s, const char *what)
{
    size_t offset = (size_t)(s->at - s->start);
    if (s->at == s->end)
        return refuse(s->err, "npy header: expected %s, found its end", what);
    return refuse(s->err, "npy header: expected %s at byte %zu, found 0x%02x",
                  what, offset, (unsigned)(unsigned char)*s->at);
}

static void skip_space(Scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n'))
        s->at++;
}

/* Takes `c` and the space before it, if it is next. */
static bool take(Scanner *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

/* Takes the word `text`, if it is next. */
static bool take_word(Scanner *s, const char *text)
{
    size_t n = strlen(text);
    skip_space(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0)
        return false;
    s->at += n;
    return true;
}

/* A quoted string without escapes, shorter than `size`. */
static bool read_string(Scanner *s, char *out, size_t size)
{
    skip_space(s);
    char quote = s->at < s->end ? *s->at : '\0';
    if (quote != '\'' && quote != '"')
        return expected(s, "a string");
    const char *first = s->at + 1;
    const char *last = memchr(first, quote, (size_t)(s->end - first));
    size_t n = last ? (size_t)(last - first) : size;
    if (n >= size)
        return expected(s, "a short string");
    memcpy(out, first, n);
    out[n] = '\0';
    s->at = last + 1;
    return true;
}

static bool read_extent(Scanner *s, int64_t *out)
{
    int64_t value = 0;
    skip_space(s);
    const char *first = s->at;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        int digit = *s->at - '0';
        if (value > (INT64_MAX - digit) / 10)
            return refuse(s->err, "npy header: an extent is too large");
        value = 10 * value + digit;
    }
    *out = value;
    return s->at > first || expected(s, "an extent");
}

/* A tuple of extents: (), (3,), (3, 4). */
static bool read_shape(Scanner *s, NpyArray *a)
{
    if (!take(s, '('))
        return expected(s, "'(' of the shape");
    a->rank = 0;
    while (!take(s, ')')) {
        if (a->rank == NPY_RANK_MAX)
            return refuse(s->err, "npy header: more than %d dimensions",
                          NPY_RANK_MAX);
        if (!read_extent(s, &a->shape[a->rank++]))
            return false;
        if (!take(s, ',') && (s->at == s->end || *s->at != ')'))
            return expected(s, "',' or ')' in the shape");
    }
    return true;
}

static bool read_descr(Scanner *s, NpyArray *a)
{
    static const char *const known[] = { "f2", "f4", "f8", "i1", "i4",
                                         "i8", "u1", "u2", "b1" };
    char descr[16];
    if (!read_string(s, descr, sizeof descr))
        return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        int bytes = known[i][1] - '0';
        bool order = descr[0] == '<' || descr[0] == '=' ||
                     (bytes == 1 && descr[0] == '|');
        if (order && strcmp(descr + 1, known[i]) == 0) {
            memcpy(a->dtype, known[i], 3);
            a->item_bytes = bytes;
            return true;
        }
    }
    return refuse(s->err,
                  "npy element type '%s' is not among <f2 <f4 <f8 |i1 <i4 <i8 "
                  "|u1 <u2 |b1",
                  descr);
}

static bool read_order(Scanner *s, bool *fortran)
{
    *fortran = take_word(s, "True");
    return *fortran || take_word(s, "False") || expected(s, "True or False");
}

/* The dictionary; each key once, in any order. */
static bool read_header(Scanner *s, NpyArray *a)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    bool seen[3] = { false, false, false }, fortran = false;
    if (!take(s, '{'))
        return expected(s, "'{'");
    while (!take(s, '}')) {
        char key[16];
        int k = 0;
        if (!read_string(s, key, sizeof key))
            return false;
        while (k < 3 && strcmp(key, keys[k]) != 0)
            k++;
        if (k == 3 || seen[k])
            return refuse(s->err, "npy header: key '%s' is %s", key,
                          k == 3 ? "unknown" : "there twice");
        seen[k] = true;
        if (!take(s, ':'))
            return expected(s, "':'");
        if (!(k == 0   ? read_descr(s, a)
              : k == 1 ? read_order(s, &fortran)
                       : read_shape(s, a)))
            return false;
        if (!take(s, ',') && (s->at == s->end || *s->at != '}'))
            return expected(s, "',' or '}'");
    }
    for (int k = 0; k < 3; k++)
        if (!seen[k])
            return refuse(s->err, "npy header: key '%s' is missing", keys[k]);
    if (fortran && a->rank > 1)
        return refuse(s->err, "the npy array is in Fortran order; save it in C "
                              "order (numpy.ascontiguousarray)");
    return true;
}

/* Number of elements, or false when their bytes exceed a size_t. */
static bool count_elements(int rank, const int64_t *shape, int item_bytes,
                           size_t *out)
{
    size_t count = 1, limit = SIZE_MAX / 2 / (size_t)item_bytes;
    bool empty = false;
    for (int d = 0; d < rank; d++) {
        empty |= shape[d] == 0;
        if (shape[d] < 0)
            return false;
    }
    for (int d = 0; d < rank && !empty; d++) {
        if ((uint64_t)shape[d] > limit / count)
            return false;
        count *= (size_t)shape[d];
    }
    *out = empty ? 0 : count;
    return true;
}

/* Where the header lies. */
static bool find_header(const unsigned char *p, size_t size, Scanner *s,
                        NpyError *err)
{
    if (size < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return refuse(err, "not an npy file: its first bytes are not "
                           "\\x93NUMPY and a version");
    if (p[6] < 1 || p[6] > 3)
        return refuse(err, "npy version %d.%d is not known: expected 1 to 3",
                      p[6], p[7]);
    size_t start = p[6] == 1 ? 10 : 12;
    size_t length = (size_t)p[8] | (size_t)p[9] << 8;
    if (size >= start && start == 12)
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (size < start || length > size - start)
        return refuse(err, "the npy file ends inside its header: %zu bytes",
                      size);
    s->start = s->at = (const char *)p + start;
    s->end = s->start + length;
    s->err = err;
    return true;
}

bool npy_parse(const void *bytes, size_t size, NpyArray *out, NpyError *err)
{
    Scanner s = { .err = err };
    *out = (NpyArray){ 0 };
    if (!find_header(bytes, size, &s, err) || !read_header(&s, out))
        return false;
    skip_space(&s);
    if (s.at != s.end)
        return expected(&s, "the end of the header");
    if (!count_elements(out->rank, out->shape, out->item_bytes, &out->count))
        return refuse(err, "the npy array is too large");
    size_t have = size - (size_t)(s.end - (const char *)bytes);
    size_t want = out->count * (size_t)out->item_bytes;
    if (have != want)
        return refuse(err,
                      "the npy file holds %zu bytes of elements, but its "
                      "header says %zu",
                      have, want);
    out->data = s.end;
    return true;
}

/* The whole of `file`, or NULL. */
static unsigned char *read_all(FILE *file, size_t *size)
{
    size_t used = 0, room = 1 << 16;
    unsigned char *bytes = malloc(room);
    while (bytes) {
        size_t n = fread(bytes + used, 1, room - used, file);
        used += n;
        if (n == 0)
            break;
        if (used < room)
            continue;
        room *= 2;
        unsigned char *more = realloc(bytes, room);
        if (!more)
            free(bytes);
        bytes = more;
    }
    *size = used;
    return bytes;
}

bool npy_read(const char *path, NpyArray *out, NpyError *err)
{
    size_t size = 0;
    *out = (NpyArray){ 0 };
    FILE *file = fopen(path, "rb");
    if (!file)
        return refuse(err, "cannot open '%s': %s", path, strerror(errno));
    unsigned char *bytes = read_all(file, &size);
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    if (failed || !bytes) {
        free(bytes);
        return refuse(err, "cannot read '%s': %s", path,
                      strerror(failed ? failed : ENOMEM));
    }
    if (!npy_parse(bytes, size, out, err)) {
        free(bytes);
        return false;
    }
    out->file = bytes;
    return true;
}

void npy_free(NpyArray *array)
{
    free(array->file);
    *array = (NpyArray){ 0 };
}

/* A shape as NumPy prints it. */
static void print_shape(char *text, size_t size, int rank, const int64_t *shape)
{
    size_t n = (size_t)snprintf(text, size, "(");
    for (int d = 0; d < rank && n < size; d++)
        n += (size_t)snprintf(text + n, size - n, "%s%" PRId64, d ? ", " : "",
                              shape[d]);
    if (n < size)
        snprintf(text + n, size - n, rank == 1 ? ",)" : ")");
}

bool npy_matches(const NpyArray *array, ScalarType type, int rank,
                 const int64_t *shape, NpyError *err)
{
    const char *npy = scalar_info(type)->npy;
    char want[128], found[128];
    if (!npy || strcmp(npy + 1, array->dtype) != 0)
        return refuse(err,
                      "expected npy elements %s for type %s, found elements %s",
                      npy ? npy + 1 : "of a known type", scalar_type_name(type),
                      array->dtype);
    bool same = rank == array->rank;
    for (int d = 0; same && d < rank; d++)
        same = shape[d] == array->shape[d];
    if (same)
        return true;
    print_shape(want, sizeof want, rank, shape);
    print_shape(found, sizeof found, array->rank, array->shape);
    return refuse(err, "expected an npy array of shape %s, found %s", want,
                  found);
}

/* --- Writing ------------------------------------------------------------ */

/* Room for the preamble, the keys and 64 extents of 19 digits. */
enum { HEADER_MAX = 2048 };

/* The whole header, preamble included; returns its length. */
static size_t make_header(char *out, ScalarType type, int rank,
                          const int64_t *shape)
{
    int n = snprintf(out + 10, HEADER_MAX - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     scalar_info(type)->npy);
    for (int d = 0; d < rank; d++)
        n += snprintf(out + 10 + n, (size_t)(HEADER_MAX - 10 - n), "%s%" PRId64,
                      d ? ", " : "", shape[d]);
    n += snprintf(out + 10 + n, (size_t)(HEADER_MAX - 10 - n), "%s), }",
                  rank == 1 ? "," : "");
    while ((10 + n + 1) % 64 != 0)
        out[10 + n++] = ' ';
    out[10 + n++] = '\n';
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (char)(n & 0xff);
    out[9] = (char)(n >> 8);
    return (size_t)n + 10;
}

/* Writes both parts to `path`; errno tells why it failed. */
static bool write_parts(const char *path, const void *header, size_t header_n,
                        const void *data, size_t data_n)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    bool ok = fwrite(header, 1, header_n, file) == header_n &&
              fwrite(data, 1, data_n, file) == data_n;
    return (fclose(file) == 0) && ok;
}

/* Writes beside `path` and renames, or in place what is no regular file. */
static bool replace_file(const char *path, const void *header, size_t header_n,
                         const void *data, size_t data_n)
{
    static const char suffix[] = ".part";
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return write_parts(path, header, header_n, data, data_n);
    char *beside = malloc(strlen(path) + sizeof suffix);
    if (!beside)
        return false;
    sprintf(beside, "%s%s", path, suffix);
    bool ok = write_parts(beside, header, header_n, data, data_n) &&
              rename(beside, path) == 0;
    int saved = errno;
    if (!ok)
        remove(beside);
    errno = saved;
    free(beside);
    return ok;
}

bool npy_write(const char *path, ScalarType type, int rank,
               const int64_t *shape, const void *data, NpyError *err)
{
    char header[HEADER_MAX];
    size_t count = 0;
    int bytes = scalar_type_bytes(type);
    if (bytes == 0)
        return refuse(err, "type %s has no npy form", scalar_type_name(type));
    if (rank < 0 || rank > NPY_RANK_MAX ||
        !count_elements(rank, shape, bytes, &count))
        return refuse(err, "an npy file cannot hold that shape");
    size_t n = make_header(header, type, rank, shape);
    if (!replace_file(path, header, n, data, count * (size_t)bytes))
        return refuse(err, "cannot write '%s': %s", path, strerror(errno));
    return true;
}
