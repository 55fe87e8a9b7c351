/* .npy files: literal bytes, round trips, and headers that are wrong in every
 * way we could think of, each cut at every length. */
#include "runtime/npy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static NpyError err;

typedef struct File {
    unsigned char bytes[4096];
    size_t size;
} File;

/* A file with that header text and `data_size` bytes of elements 1, 2, 3.. */
static File make_file(int major, const char *header, size_t data_size)
{
    File f = { { 0 }, 0 };
    size_t n = strlen(header), start = major == 1 ? 10 : 12;
    memcpy(f.bytes, "\x93NUMPY", 6);
    f.bytes[6] = (unsigned char)major;
    f.bytes[8] = (unsigned char)n;
    f.bytes[9] = (unsigned char)(n >> 8);
    memcpy(f.bytes + start, header, n);
    for (size_t i = 0; i < data_size; i++)
        f.bytes[start + n + i] = (unsigned char)(i + 1);
    f.size = start + n + data_size;
    return f;
}

static void assert_refused(const File *f, const char *text)
{
    NpyArray a;
    cr_assert_not(npy_parse(f->bytes, f->size, &a, &err), "%s", text);
    cr_assert(strstr(err.text, text), "'%s' not in '%s'", text, err.text);
}

Test(npy, reads_both_versions)
{
    static const char header[] =
        "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }  \n";
    for (int major = 1; major <= 3; major++) {
        File f = make_file(major, header, 12);
        NpyArray a;
        cr_assert(npy_parse(f.bytes, f.size, &a, &err), "%s", err.text);
        cr_assert_str_eq(a.dtype, "u2");
        cr_assert_eq(a.item_bytes, 2);
        cr_assert_eq(a.rank, 2);
        cr_assert_eq(a.shape[0], 2);
        cr_assert_eq(a.shape[1], 3);
        cr_assert_eq(a.count, 6);
        cr_assert_eq(((const unsigned char *)a.data)[11], 12);
    }
}

static const struct {
    const char *header;
    size_t data;
    int rank;
} accepted[] = {
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, 0 },
    { "{'descr':'<f8','fortran_order':False,'shape':(2,)}", 16, 1 },
    { "{\"shape\": (0, 5), \"fortran_order\": False, \"descr\": \"|i1\"}", 0,
      2 },
    { "{'descr': '<f2', 'fortran_order': True, 'shape': (3,), }", 6, 1 },
    { "{'descr': '=i4', 'fortran_order': False, 'shape': (1, 1, 1), }", 4, 3 },
    { "{'descr': '|b1', 'fortran_order': False, 'shape': (3), }", 3, 1 },
    { "{'descr': '|u1', 'fortran_order': False,\n 'shape': ( 7 , ) }\n", 7, 1 },
    { "{'descr': '<f8', 'fortran_order': False, "
      "'shape': (9223372036854775807, 0), }",
      0, 2 },
};

Test(npy, accepts_what_numpy_writes)
{
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        File f = make_file(1, accepted[i].header, accepted[i].data);
        NpyArray a;
        cr_assert(npy_parse(f.bytes, f.size, &a, &err), "%s: %s",
                  accepted[i].header, err.text);
        cr_assert_eq(a.rank, accepted[i].rank);
        cr_assert_eq(a.count * (size_t)a.item_bytes, accepted[i].data);
    }
}

#define ORDER "'fortran_order': False, "

static const struct {
    const char *header, *message;
} refused[] = {
    { "", "expected '{', found its end" },
    { "[]", "expected '{' at byte 0, found 0x5b" },
    { "{}", "key 'descr' is missing" },
    { "{'descr': '<f4', 'shape': (4,)}", "key 'fortran_order' is missing" },
    { "{'descr': '<f4', " ORDER "}", "key 'shape' is missing" },
    { "{'descr': '>f4', " ORDER "'shape': (4,)}", "element type '>f4'" },
    { "{'descr': '|f4', " ORDER "'shape': (4,)}", "element type '|f4'" },
    { "{'descr': '<c8', " ORDER "'shape': (4,)}", "element type '<c8'" },
    { "{'descr': '<f4x', " ORDER "'shape': (4,)}", "element type '<f4x'" },
    { "{'descr': '', " ORDER "'shape': (4,)}", "element type ''" },
    { "{'descr': [('a', '<f4')], " ORDER "'shape': (4,)}",
      "expected a string" },
    { "{'descr': '<f4, ", "expected a short string" },
    { "{'descr': '<f4', 'descr': '<f4'}", "key 'descr' is there twice" },
    { "{'bogus': '<f4'}", "key 'bogus' is unknown" },
    { "{'descr' '<f4'}", "expected ':'" },
    { "{'descr': '<f4' " ORDER "}", "expected ',' or '}'" },
    { "{'fortran_order': Maybe}", "expected True or False" },
    { "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}",
      "Fortran order" },
    { "{'descr': '<f4', " ORDER "'shape': 4}", "expected '(' of the shape" },
    { "{'descr': '<f4', " ORDER "'shape': (-4,)}", "expected an extent" },
    { "{'descr': '<f4', " ORDER "'shape': (4 4)}", "expected ',' or ')'" },
    { "{'descr': '<f4', " ORDER "'shape': (4,", "expected an extent" },
    { "{'descr': '<f4', " ORDER "'shape': (9223372036854775808,)}",
      "an extent is too large" },
    { "{'descr': '<f4', " ORDER "'shape': (4294967296, 4294967296)}",
      "the npy array is too large" },
    { "{'descr': '<f8', " ORDER "'shape': (2305843009213693952,)}",
      "the npy array is too large" },
    { "{'descr': '<f4', " ORDER "'shape': (3,)}",
      "holds 16 bytes of elements, but its header says 12" },
    { "{'descr': '<f4', " ORDER "'shape': (5,)}",
      "holds 16 bytes of elements, but its header says 20" },
    { "{'descr': '<f4', " ORDER "'shape': (4,)} x",
      "expected the end of the header" },
};

Test(npy, refuses_with_a_reason)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        File f = make_file(1, refused[i].header, 16);
        assert_refused(&f, refused[i].message);
    }
}

Test(npy, refuses_too_many_dimensions)
{
    char header[1024] = "{'descr': '<f4', " ORDER "'shape': (";
    for (int i = 0; i < NPY_RANK_MAX + 1; i++)
        strcat(header, "1,");
    strcat(header, ")}");
    File f = make_file(1, header, 4);
    assert_refused(&f, "more than 64 dimensions");
}

Test(npy, refuses_other_files)
{
    File f = make_file(1, "{}", 0);
    f.bytes[6] = 4;
    assert_refused(&f, "npy version 4.0");
    f.bytes[6] = 0;
    assert_refused(&f, "npy version 0.0");
    f.bytes[0] = 'x';
    assert_refused(&f, "not an npy file");
    f = make_file(2, "{}", 0);
    f.bytes[11] = 0xff;
    assert_refused(&f, "ends inside its header");
}

/* The bytes are copied to an exact allocation, so that a sanitizer sees a read
 * past the end. */
Test(npy, every_truncation_and_every_changed_byte_is_survived)
{
    File f = make_file(
        2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", 16);
    for (size_t n = 0; n < f.size; n++) {
        NpyArray a;
        void *copy = malloc(n ? n : 1);
        memcpy(copy, f.bytes, n);
        cr_assert_not(npy_parse(copy, n, &a, &err), "%zu bytes", n);
        free(copy);
    }
    for (size_t i = 0; i < f.size; i++)
        for (int value = 0; value < 256; value += 3) {
            NpyArray a;
            unsigned char *copy = malloc(f.size);
            memcpy(copy, f.bytes, f.size);
            copy[i] = (unsigned char)value;
            if (npy_parse(copy, f.size, &a, &err))
                cr_assert_eq((const unsigned char *)a.data +
                                 a.count * (size_t)a.item_bytes,
                             copy + f.size);
            free(copy);
        }
}

static void temporary_path(char *path)
{
    strcpy(path, "/tmp/exo_npy_XXXXXX");
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
}

Test(npy, written_files_read_back)
{
    static const ScalarType types[] = { TY_f16,  TY_bf16, TY_f32,  TY_f64,
                                        TY_i8,   TY_i32,  TY_ui8,  TY_ui16,
                                        TY_e4m3, TY_bool, TY_index };
    unsigned char data[6 * 8];
    char path[64];
    temporary_path(path);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(5 * i);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int rank = 0; rank <= 3; rank++) {
            int64_t shape[3] = { rank > 0 ? 2 : 1, rank > 1 ? 3 : 1, 1 };
            NpyArray a;
            cr_assert(npy_write(path, types[t], rank, shape, data, &err), "%s",
                      err.text);
            cr_assert(npy_read(path, &a, &err), "%s", err.text);
            cr_assert(npy_matches(&a, types[t], rank, shape, &err), "%s",
                      err.text);
            cr_assert_eq(memcmp(a.data, data, a.count * (size_t)a.item_bytes),
                         0);
            cr_assert_eq(((const char *)a.data - (char *)a.file) % 64, 0);
            npy_free(&a);
        }
    remove(path);
}

Test(npy, a_written_header_is_what_numpy_writes)
{
    char path[64], bytes[256] = { 0 };
    int64_t shape[] = { 3 };
    temporary_path(path);
    cr_assert(npy_write(path, TY_bf16, 1, shape, "abcdef", &err));
    FILE *file = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    remove(path);
    cr_assert_eq(n, 128 + 6);
    cr_assert_eq(memcmp(bytes,
                        "\x93NUMPY\1\0\x76\0{'descr': '<u2', "
                        "'fortran_order': False, 'shape': (3,), }  ",
                        66),
                 0);
    cr_assert_eq(bytes[127], '\n');
    cr_assert_eq(memcmp(bytes + 128, "abcdef", 6), 0);
}

Test(npy, mismatches_say_both_sides)
{
    File f = make_file(1, "{'descr': '<u2', " ORDER "'shape': (2, 3)}", 12);
    int64_t right[] = { 2, 3 }, wrong[] = { 3, 2 };
    NpyArray a;
    cr_assert(npy_parse(f.bytes, f.size, &a, &err));
    cr_assert(npy_matches(&a, TY_bf16, 2, right, &err));
    cr_assert_not(npy_matches(&a, TY_f16, 2, right, &err));
    cr_assert_str_eq(err.text, "expected npy elements f2 for type f16, found "
                               "elements u2");
    cr_assert_not(npy_matches(&a, TY_ui16, 2, wrong, &err));
    cr_assert_str_eq(err.text, "expected an npy array of shape (3, 2), found "
                               "(2, 3)");
    cr_assert_not(npy_matches(&a, TY_ui16, 1, right, &err));
    cr_assert(strstr(err.text, "shape (2,), found (2, 3)"));
    cr_assert_not(npy_matches(&a, TY_R, 2, right, &err));
}

Test(npy, files_that_cannot_be)
{
    NpyArray a;
    int64_t shape[] = { -1 }, one[] = { 1 };
    cr_assert_not(npy_read("/nonexistent/a.npy", &a, &err));
    cr_assert(strstr(err.text, "cannot open '/nonexistent/a.npy'"));
    cr_assert_not(npy_read("/", &a, &err));
    cr_assert_not(
        npy_write("/nonexistent/a.npy", TY_f32, 1, one, "abcd", &err));
    cr_assert(strstr(err.text, "cannot write '/nonexistent/a.npy'"));
    cr_assert_not(npy_write("/tmp/unused.npy", TY_f32, 1, shape, "", &err));
    cr_assert_not(npy_write("/tmp/unused.npy", TY_R, 1, one, "", &err));
    cr_assert(npy_write("/dev/null", TY_f32, 1, one, "abcd", &err));
}
