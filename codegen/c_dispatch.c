/* Tables first, then the text of the chooser, in which @ stands for the
 * function's name. */
#include "codegen/c_dispatch.h"

#include <ctype.h>
#include <string.h>

/* Appends the text with the name for each @. */
static void add_named(StrBuf *out, const char *text, const char *name)
{
    for (; *text; text++) {
        if (*text == '@')
            strbuf_add(out, name);
        else
            strbuf_addc(out, *text);
    }
}

static void add_upper(StrBuf *out, const char *s)
{
    for (; *s; s++)
        strbuf_addc(out, (char)toupper((unsigned char)*s));
}

/* EXO_GEMM_BF16 */
static void add_constant(StrBuf *out, const Dispatch *d, const char *type)
{
    add_upper(out, d->function);
    strbuf_addc(out, '_');
    add_upper(out, type);
}

/* ---- the header --------------------------------------------------------- */

static const char text_declarations[] =
    "/* C[m, n] = A[m, k] B[n, k]^T by the kernel, or two for parts of C, that "
    "the\n"
    " * measured costs favour. Rows are lda, ldb and ldc elements apart; "
    "addresses and\n"
    " * rows are multiples of 16 bytes, n and k of the kernels' granules. "
    "Queued on the\n"
    " * stream, a CUstream. */\n"
    "int @(@_type type, int64_t m, int64_t n, int64_t k,\n"
    "    const void *a, int64_t lda, const void *b, int64_t ldb,\n"
    "    void *c, int64_t ldc, void *stream);\n"
    "\n"
    "/* \"bf16\" and the like; NULL for what is no type of the library. */\n"
    "const char *@_type_name(int type);\n"
    "\n"
    "/* Which kernels that would be: \"gemm_bf16_128x256\", or with a second "
    "one\n"
    " * \"gemm_bf16_128x256 rows 0:2048, gemm_bf16_64x64\". Cut to `size` "
    "bytes\n"
    " * with the terminating zero. */\n"
    "int @_choice(@_type type, int64_t m, int64_t n, int64_t k,\n"
    "    char *text, size_t size);\n";

static void print_header(const Dispatch *d, StrBuf *out)
{
    strbuf_addf(out,
                "\n#include <stddef.h>\n\n"
                "/* Element types; costs measured on %s. */\ntypedef enum {\n",
                d->device);
    for (unsigned i = 0; i < d->n_entries; i++) {
        strbuf_add(out, "    ");
        add_constant(out, d, d->entries[i].type);
        strbuf_addf(out, " = %u%s\n", i, i + 1 < d->n_entries ? "," : "");
    }
    add_named(out, "} @_type;\n\n", d->function);
    add_named(out, text_declarations, d->function);
}

/* ---- the tables --------------------------------------------------------- */

static const char text_types[] =
    "\ntypedef int @_run(int64_t, int64_t, int64_t, const void *, int64_t,\n"
    "                  int64_t, const void *, int64_t, int64_t, void *,\n"
    "                  int64_t, int64_t, void *);\n"
    "\n"
    "typedef struct @_kernel {\n"
    "    const char *name;\n"
    "    @_run *run;\n"
    "    int64_t rows, columns, cluster, step;\n"
    "    double one_wave[4], waves[4];\n"
    "} @_kernel;\n"
    "\n"
    "typedef struct @_shape {\n"
    "    int64_t m, n, k;\n"
    "    const @_kernel *kernel;\n"
    "} @_shape;\n"
    "\n"
    "typedef struct @_entry {\n"
    "    const char *type;\n"
    "    int64_t bytes_in, bytes_out;\n"
    "    unsigned n_kernels, n_shapes;\n"
    "    const @_kernel *kernels;\n"
    "    const @_shape *shapes;\n"
    "} @_entry;\n";

static void add_numbers(StrBuf *out, const double *x, unsigned n)
{
    strbuf_addc(out, '{');
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(out, "%s%.9g", i ? ", " : "", x[i]);
    strbuf_addc(out, '}');
}

static void print_kernels(const Dispatch *d, const DispatchEntry *e,
                          DispatchNameFn *name, void *user, StrBuf *out)
{
    strbuf_addf(out, "\nstatic const %s_kernel %s_kernels_%s[] = {\n",
                d->function, d->function, e->type);
    for (unsigned i = 0; i < e->n_kernels; i++) {
        const DispatchKernel *k = &e->kernels[i];
        strbuf_addf(out, "    {\"%s\", %s, %lld, %lld, %lld, %lld,\n     ",
                    k->name, name(user, k->name), (long long)k->rows,
                    (long long)k->columns, (long long)k->cluster,
                    (long long)k->step);
        add_numbers(out, k->one_wave, 4);
        strbuf_add(out, ", ");
        add_numbers(out, k->waves, 4);
        strbuf_add(out, "},\n");
    }
    strbuf_add(out, "};\n");
}

static void print_shapes(const Dispatch *d, const DispatchEntry *e, StrBuf *out)
{
    strbuf_addf(out, "\nstatic const %s_shape %s_shapes_%s[] = {\n",
                d->function, d->function, e->type);
    for (unsigned i = 0; i < e->n_shapes; i++) {
        const DispatchShape *s = &e->shapes[i];
        strbuf_addf(out, "    {%lld, %lld, %lld, &%s_kernels_%s[%u]},\n",
                    (long long)s->m, (long long)s->n, (long long)s->k,
                    d->function, e->type, s->kernel);
    }
    strbuf_add(out, "    {0, 0, 0, NULL}\n};\n");
}

static void print_entries(const Dispatch *d, StrBuf *out)
{
    strbuf_addf(out, "\nstatic const %s_entry %s_entries[] = {\n", d->function,
                d->function);
    for (unsigned i = 0; i < d->n_entries; i++) {
        const DispatchEntry *e = &d->entries[i];
        strbuf_addf(
            out,
            "    {\"%s\", %lld, %lld, %u, %u, %s_kernels_%s, %s_shapes_%s},\n",
            e->type, (long long)e->bytes_in, (long long)e->bytes_out,
            e->n_kernels, e->n_shapes, d->function, e->type, d->function,
            e->type);
    }
    strbuf_addf(
        out, "};\n\nenum { %s_n_entries = %u, %s_multiprocessors = %lld };\n",
        d->function, d->n_entries, d->function, (long long)d->multiprocessors);
}

/* ---- the chooser -------------------------------------------------------- */

static const char text_cost[] =
    "\n/* Up to two kernels: the first takes all of C but `rest` rows or "
    "columns. */\n"
    "typedef struct @_plan {\n"
    "    const @_kernel *first, *second;\n"
    "    int64_t at; /* where the second begins */\n"
    "    bool by_columns;\n"
    "    double cost;\n"
    "} @_plan;\n"
    "\n"
    "static int64_t @_parts(int64_t n, int64_t size)\n"
    "{\n"
    "    return (n + size - 1) / size;\n"
    "}\n"
    "\n"
    "static double @_cost(const @_entry *e, const @_kernel *x, int64_t m,\n"
    "                     int64_t n, int64_t k)\n"
    "{\n"
    "    double tiles = (double)@_parts(m, x->rows * x->cluster) *\n"
    "                   (double)@_parts(n, x->columns);\n"
    "    double slots = (double)(@_multiprocessors / x->cluster);\n"
    "    double steps = (double)@_parts(k, x->step);\n"
    "    double megabytes = 1e-6 * (((double)m + (double)n) * (double)k *\n"
    "                                   (double)e->bytes_in +\n"
    "                               (double)m * (double)n *\n"
    "                                   (double)e->bytes_out);\n"
    "    if (tiles <= slots)\n"
    "        return x->one_wave[0] + x->one_wave[1] * steps +\n"
    "               x->one_wave[2] * megabytes +\n"
    "               x->one_wave[3] * steps * tiles / slots;\n"
    "    double rounds = (double)(int64_t)((tiles + slots - 1) / slots);\n"
    "    return x->waves[0] + rounds * (x->waves[1] + x->waves[2] * steps) +\n"
    "           x->waves[3] * megabytes;\n"
    "}\n"
    "\n"
    "static @_plan @_best(const @_entry *e, int64_t m, int64_t n, int64_t k)\n"
    "{\n"
    "    @_plan best = {NULL, NULL, 0, false, 0};\n"
    "    for (unsigned i = 0; i < e->n_kernels; i++) {\n"
    "        double cost = @_cost(e, &e->kernels[i], m, n, k);\n"
    "        if (!best.first || cost < best.cost) {\n"
    "            best.first = &e->kernels[i];\n"
    "            best.cost = cost;\n"
    "        }\n"
    "    }\n"
    "    return best;\n"
    "}\n"
    "\n"
    "/* The best plan with x for whole waves of tiles, another for the rest. "
    "*/\n"
    "static void @_try_two(const @_entry *e, const @_kernel *x, int64_t m,\n"
    "                      int64_t n, int64_t k, bool by_columns,\n"
    "                      @_plan *best)\n"
    "{\n"
    "    int64_t along = by_columns ? x->columns : x->rows * x->cluster;\n"
    "    int64_t across = by_columns ? @_parts(m, x->rows * x->cluster)\n"
    "                                : @_parts(n, x->columns);\n"
    "    int64_t all = by_columns ? n : m, slots = @_multiprocessors / "
    "x->cluster;\n"
    "    int64_t rounds = @_parts(all, along) * across / slots;\n"
    "    int64_t at = rounds * slots / across * along;\n"
    "    if (rounds < 1 || at < 1 || at >= all)\n"
    "        return;\n"
    "    @_plan rest = by_columns ? @_best(e, m, n - at, k)\n"
    "                             : @_best(e, m - at, n, k);\n"
    "    double cost = rest.cost + (by_columns ? @_cost(e, x, m, at, k)\n"
    "                                          : @_cost(e, x, at, n, k));\n"
    "    if (cost < 0.97 * best->cost)\n"
    "        *best = (@_plan){x, rest.first, at, by_columns, cost};\n"
    "}\n"
    "\n"
    "static @_plan @_choose(const @_entry *e, int64_t m, int64_t n,\n"
    "                       int64_t k)\n"
    "{\n"
    "    for (unsigned i = 0; i < e->n_shapes; i++) {\n"
    "        const @_shape *s = &e->shapes[i];\n"
    "        if (s->m == m && s->n == n && s->k == k)\n"
    "            return (@_plan){s->kernel, NULL, 0, false, 0};\n"
    "    }\n"
    "    @_plan best = @_best(e, m, n, k);\n"
    "    for (unsigned i = 0; i < e->n_kernels; i++) {\n"
    "        @_try_two(e, &e->kernels[i], m, n, k, false, &best);\n"
    "        @_try_two(e, &e->kernels[i], m, n, k, true, &best);\n"
    "    }\n"
    "    return best;\n"
    "}\n";

static const char text_call[] =
    "\nstatic int @_refuse(int type, int64_t m, int64_t n, int64_t k)\n"
    "{\n"
    "    if (type < 0 || type >= @_n_entries)\n"
    "        return exo_fail(\"@\", EXO_ERROR_ARGUMENT,\n"
    "                        \"there is no element type %d\", type);\n"
    "    if (m < 1 || n < 1 || k < 1 || m > INT64_C(1) << 30 ||\n"
    "        n > INT64_C(1) << 30 || k > INT64_C(1) << 30)\n"
    "        return exo_fail(\"@\", EXO_ERROR_ARGUMENT,\n"
    "                        \"m, n and k must be 1 to 2^30\");\n"
    "    return EXO_OK;\n"
    "}\n"
    "\n"
    "int @(@_type type, int64_t m, int64_t n, int64_t k, const void *a,\n"
    "      int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc,\n"
    "      void *stream)\n"
    "{\n"
    "    int status = @_refuse((int)type, m, n, k);\n"
    "    if (status != EXO_OK)\n"
    "        return status;\n"
    "    const @_entry *e = &@_entries[type];\n"
    "    @_plan p = @_choose(e, m, n, k);\n"
    "    int64_t rows = p.second && !p.by_columns ? p.at : m;\n"
    "    int64_t columns = p.second && p.by_columns ? p.at : n;\n"
    "    status = p.first->run(rows, columns, k, a, lda, 1, b, ldb, 1, c, ldc, "
    "1,\n"
    "                          stream);\n"
    "    if (status != EXO_OK || !p.second)\n"
    "        return status;\n"
    "    if (p.by_columns)\n"
    "        return p.second->run(\n"
    "            m, n - p.at, k, a, lda, 1,\n"
    "            (const char *)b + p.at * ldb * e->bytes_in, ldb, 1,\n"
    "            (char *)c + p.at * e->bytes_out, ldc, 1, stream);\n"
    "    return p.second->run(m - p.at, n, k,\n"
    "                         (const char *)a + p.at * lda * e->bytes_in, lda, "
    "1,\n"
    "                         b, ldb, 1,\n"
    "                         (char *)c + p.at * ldc * e->bytes_out, ldc, 1,\n"
    "                         stream);\n"
    "}\n"
    "\n"
    "const char *@_type_name(int type)\n"
    "{\n"
    "    return type < 0 || type >= @_n_entries ? NULL : "
    "@_entries[type].type;\n"
    "}\n"
    "\n"
    "int @_choice(@_type type, int64_t m, int64_t n, int64_t k, char *text,\n"
    "             size_t size)\n"
    "{\n"
    "    int status = @_refuse((int)type, m, n, k);\n"
    "    if (status != EXO_OK)\n"
    "        return status;\n"
    "    @_plan p = @_choose(&@_entries[type], m, n, k);\n"
    "    if (p.second)\n"
    "        snprintf(text, size, \"%s %s 0:%lld, %s\", p.first->name,\n"
    "                 p.by_columns ? \"columns\" : \"rows\", (long long)p.at,\n"
    "                 p.second->name);\n"
    "    else\n"
    "        snprintf(text, size, \"%s\", p.first->name);\n"
    "    return EXO_OK;\n"
    "}\n\n";

void c_dispatch_print(const Dispatch *d, DispatchNameFn *name, void *user,
                      StrBuf *header, StrBuf *source)
{
    print_header(d, header);
    add_named(source, text_types, d->function);
    for (unsigned i = 0; i < d->n_entries; i++) {
        print_kernels(d, &d->entries[i], name, user, source);
        print_shapes(d, &d->entries[i], source);
    }
    print_entries(d, source);
    add_named(source, text_cost, d->function);
    add_named(source, text_call, d->function);
}
