/* The C printer: texts it prints and refuses, and what the printed C computes
 * when it is compiled and loaded: index expressions and conditions against
 * their evaluation, scalar arithmetic against the interpreter's, host ops
 * against the test driver. The C compiler is the environment's CC or cc. */
#include "codegen/c_print.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/eir.h"
#include "ir/lib.h"
#include "ir/values.h"
#include "passes/abi.h"
#include "runtime/cuda.h"
#include "test/unit/ir_build.h"

static const char ptx[] = ".version 8.0\n.visible .entry k()\n";
static const CImage image = { NULL, ptx, sizeof ptx - 1, true };

typedef struct Printed {
    Ctx *ctx;
    Module *m;
    bool ok;
    StrBuf header, source;
} Printed;

static void print_module(Printed *p, const char *stem, unsigned n_images)
{
    COptions opt = {
        .stem = stem, .arch = "sm_90a", .n_images = n_images, .images = &image
    };
    p->ok = p->m && c_print_library(p->ctx, p->m, &opt, &p->header, &p->source);
}

static Printed print_text(const char *stem, const char *text, unsigned n_images)
{
    Printed p = { .ctx = ctx_new() };
    Lib *lib = lib_new(p.ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    uint32_t file = ctx_add_source(p.ctx, "test.eir", text, strlen(text));
    p.m = eir_parse(p.ctx, file, lib);
    print_module(&p, stem, n_images);
    return p;
}

static const char *diagnostics(const Printed *p)
{
    static StrBuf out;
    out.len = 0;
    for (const Diag *d = ctx_diags(p->ctx); d; d = d->next)
        diag_render(p->ctx, d, &out);
    return strbuf_text(&out);
}

static void expect_in(const StrBuf *text, const char *part)
{
    cr_expect(strstr(strbuf_text(text), part), "not there: %s\nin:\n%s", part,
              strbuf_text(text));
}

/* ---- compiling ------------------------------------------------------ */

static void write_file(const char *folder, const char *name, const char *suffix,
                       const StrBuf *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
    FILE *f = fopen(path, "w");
    cr_assert(f);
    fwrite(text->data, 1, text->len, f);
    cr_assert_eq(fclose(f), 0);
}

/* The library compiled without a warning, and loaded. */
static void *load(const Printed *p, const char *stem)
{
    char folder[] = EXO_BINARY_DIR "/test/c_print_XXXXXX";
    char command[2048], path[512];
    const char *cc = getenv("CC");
    cr_assert(p->ok, "%s", diagnostics(p));
    cr_assert(mkdtemp(folder));
    write_file(folder, stem, "h", &p->header);
    write_file(folder, stem, "c", &p->source);
    snprintf(path, sizeof path, "%s/lib.so", folder);
    snprintf(command, sizeof command,
             "cd '%s' && %s -std=c17 -Wall -Wextra -Wpedantic -Werror -O1 "
             "-fPIC -shared -o lib.so %s.c -lpthread -ldl -lm 2>&1",
             folder, cc ? cc : "cc", stem);
    cr_assert_eq(system(command), 0, "%s\n%s", command,
                 strbuf_text(&p->source));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
    return library;
}

/* The function of that name; `type` is a pointer to function. */
#define FUNCTION(type, var, library, name)          \
    type var;                                       \
    do {                                            \
        void *symbol_ = dlsym((library), (name));   \
        cr_assert(symbol_, "no symbol %s", (name)); \
        memcpy(&var, &symbol_, sizeof var);         \
    } while (0)

typedef const char *StringFn(void);
typedef int CondFn(int64_t a, int64_t b, int64_t n);
typedef int CastFn(int64_t n, const void *x, void *y);
typedef int OpFn(int64_t n, const void *a, const void *b, void *y);

/* ---- texts ---------------------------------------------------------- */

#define KERNEL_OF(cluster, bytes, more)                                     \
    "async.kernel @k(%n: size, %x: tensor<f32, CudaGmemLinear>[%n], "       \
    "%cta: coord, %warp: coord, %lane: coord) {proc = 'p', blockDim = 64, " \
    "clusterDim = " cluster ", blocks_per_sm = 1, smem_bytes = " bytes more \
    "} {\n"                                                                 \
    "  async.tasks %b in [0, %n) {\n"                                       \
    "    %0 = mem.load %x[%b]\n"                                            \
    "    ctl.yield\n"                                                       \
    "  }\n"                                                                 \
    "}\n"

#define KERNEL(more) KERNEL_OF("1", "0", more)

static const char kernel[] = KERNEL("");

static const char launches[] =
    "host.proc @p(%n: size, %x: tensor<f32, CudaGmemLinear>[%n]) {\n"
    "  host.launch @k(%n, %x[0 +: %n])\n}\n";

/* A library whose @p launches the kernel of that text. */
static Printed print_launch(const char *kernel_text)
{
    char text[2048];
    snprintf(text, sizeof text, "%s%s", kernel_text, launches);
    return print_text("p", text, 1);
}

Test(c_print, prints_a_launch)
{
    Printed p = print_launch(kernel);
    cr_assert(p.ok, "%s", diagnostics(&p));
    expect_in(&p.header, "int p(int64_t n, const void *x, void *stream);");
    expect_in(&p.header, "const char *p_last_error(void);");
    expect_in(&p.source, "exo_launch(call, 0, n, exo_params)");
    expect_in(&p.source, "{\"k\", 0, 64, 1, 0, false},");
    expect_in(&p.source, "#define EXO_RUNS_ON(cc) ((cc) == 90)");
}

Test(c_print, prints_the_launch_of_a_dependent_kernel)
{
    Printed p = print_launch(KERNEL(", programmatic_dependent_launch = True"));
    cr_assert(p.ok, "%s", diagnostics(&p));
    expect_in(&p.source, "{\"k\", 0, 64, 1, 0, true},");
    expect_in(&p.source, "EXO_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6,");
}

Test(c_print, names_are_those_of_c)
{
    Printed p = print_text(
        "my-lib",
        "proc @exp(%class: size, %stream: index, %int: tensor<f32, DRAM>["
        "%class], %i: tensor<i8, DRAM>[%class]) {\n"
        "  ctl.for %new in [0, %class) {\n    ctl.pass\n  }\n}\n"
        "proc @my_lib(%n: size) {\n  ctl.assert %n >= 4\n}\n",
        0);
    cr_assert(p.ok, "%s", diagnostics(&p));
    expect_in(&p.header, "#include <stdint.h>");
    expect_in(&p.header, "int my_lib_exp(int64_t class_1, int64_t stream, "
                         "const float *int_1, const int8_t *i);");
    expect_in(&p.header, "int my_lib(int64_t n);");
    expect_in(&p.source, "#include \"my-lib.h\"");
    expect_in(&p.source, "for (int64_t new_1 = 0; new_1 < class_1; new_1++)");
    cr_expect(!strstr(strbuf_text(&p.source), "dlopen"));
}

typedef struct Refusal {
    const char *text, *message;
} Refusal;

Test(c_print, refuses_what_c_cannot_say)
{
    static const Refusal rows[] = {
        { "proc @p(%x: tensor<f32, CudaSmemLinear>[4]) {\n}\n",
          "parameter 'x' of procedure 'p' is in CudaSmemLinear" },
        { "proc @p(%x: tensor<f32, CudaGmemLinear>[4]) {\n"
          "  %0 = mem.load %x[0]\n  mem.store %x[1], %0\n}\n",
          "not in the host's memory" },
        { "proc @p(%x: tensor<R, DRAM>[4]) {\n}\n", "has type R" },
        { "proc @load() {\n}\n", "which every printed library has itself" },
        { "proc @a() {\n}\nproc @p_a() {\n}\n", "would both be 'p_a' in C" },
        { "proc @p() {\n  par.device {blockDim = 32} {\n  }\n}\n",
          "'par.device' has no form in C; lower the procedure first" },
        { "host.proc @q() {\n}\nproc @p() {\n  ctl.call @q()\n}\n",
          "which needs a stream" },
        { "proc @p() {\n  ctl.call @q()\n}\n", "calls 'q'" },
        { "host.proc @p(%n: size) {\n  host.launch @k(%n)\n}\n",
          "launches 'k', which is no kernel" },
        { "host.proc @p(%x: tensor<f32, DRAM>[4]) {\n"
          "  host.memset %x[0 +: 4]\n}\n",
          "must be a tensor of the GPU" },
        { "", "no procedure" },
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        Printed p = print_text("p", rows[i].text, 0);
        cr_expect(!p.ok, "accepted: %s", rows[i].text);
        cr_expect(strstr(diagnostics(&p), rows[i].message),
                  "expected: %s\nfound: %s", rows[i].message, diagnostics(&p));
        cr_expect_eq(p.header.len + p.source.len, 0);
    }
}

Test(c_print, refuses_a_kernel_without_image)
{
    char text[2048];
    snprintf(text, sizeof text,
             "%shost.proc @p(%%n: size, %%x: tensor<f32, CudaGmemLinear>[%%n])"
             " {\n  host.launch @k(%%n, %%x[0 +: %%n])\n}\n",
             kernel);
    Printed p = print_text("p", text, 0);
    cr_expect(!p.ok);
    cr_expect(strstr(diagnostics(&p), "no PTX or cubin was given"));
}

Test(c_print, refuses_a_stem_that_is_no_name)
{
    static const char *const stems[] = { "", "1st", "a b", "a/b", "_a" };
    for (unsigned i = 0; i < sizeof stems / sizeof *stems; i++) {
        Printed p = print_text(stems[i], "proc @p() {\n}\n", 0);
        cr_expect(!p.ok, "accepted: '%s'", stems[i]);
    }
}

/* ---- index expressions ---------------------------------------------- */

enum { N_CONDS = 150, N_POINTS = 60 };

static uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

static int64_t random_int(uint64_t *state, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(random_next(state) % (uint64_t)(hi - lo + 1));
}

static const Affine *random_index(Maker *k, const VarId *v, uint64_t *state,
                                  int depth)
{
    ExprCtx *x = k->m->exprs;
    int64_t kind =
        depth == 0 ? random_int(state, 0, 1) : random_int(state, 0, 6);
    if (kind == 0)
        return mk_c(k, random_int(state, -20, 20));
    if (kind == 1)
        return mk_v(k, v[random_int(state, 0, 2)]);
    const Affine *a = random_index(k, v, state, depth - 1);
    if (kind == 2)
        return affine_scale(x, a, random_int(state, -9, 9));
    if (kind == 3)
        return affine_floordiv(x, a, random_int(state, 1, 12));
    if (kind == 4)
        return affine_mod(x, a, random_int(state, 1, 12));
    const Affine *b = random_index(k, v, state, depth - 1);
    return kind == 5 ? affine_add(x, a, b) : affine_mul(x, a, b);
}

static const Cond *random_cond(Maker *k, const VarId *v, uint64_t *state,
                               int depth)
{
    ExprCtx *x = k->m->exprs;
    if (depth > 0 && random_int(state, 0, 1)) {
        const Cond *a = random_cond(k, v, state, depth - 1);
        const Cond *b = random_cond(k, v, state, depth - 1);
        int64_t kind = random_int(state, 0, 2);
        return kind == 0   ? cond_and(x, a, b)
               : kind == 1 ? cond_or(x, a, b)
                           : cond_not(x, a);
    }
    const Affine *a = random_index(k, v, state, 4);
    const Affine *b = random_index(k, v, state, 2);
    return cond_cmp(x, (CmpOp)random_int(state, CMP_lt, CMP_ne), a, b);
}

typedef struct Point {
    VarId var[3];
    int64_t value[3];
} Point;

static bool point_value(const Env *env, const Atom *atom, int64_t *out)
{
    const Point *at = env->user;
    for (unsigned i = 0; i < 3; i++)
        if (atom->kind == ATOM_var && atom->var == at->var[i]) {
            *out = at->value[i];
            return true;
        }
    return false;
}

/* A procedure `cNNN` that asserts a random condition. */
static const Cond *make_cond(Maker *k, unsigned i, VarId *v, uint64_t *state)
{
    char name[16];
    Op *proc = op_new(k->m, OP_ctl_proc, (Loc){ 0 }, 0, 0, 1);
    snprintf(name, sizeof name, "c%u", i);
    op_set_str(k->m, proc, "name", name);
    block_append(k->m->body, proc);
    v[0] = block_add_var(k->m, proc->blocks[0], "a", VAR_index);
    v[1] = block_add_var(k->m, proc->blocks[0], "b", VAR_int);
    v[2] = block_add_var(k->m, proc->blocks[0], "n", VAR_size);
    var_set_bounds(k->m->exprs, v[2], mk_c(k, 1), NULL);
    const Cond *c = random_cond(k, v, state, 2);
    while (!c)
        c = random_cond(k, v, state, 2);
    Op *assert_op = op_new(k->m, OP_ctl_assert, (Loc){ 0 }, 1, 0, 0);
    assert_op->operands[0] = opnd_cond(c);
    block_append(proc->blocks[0], assert_op);
    return c;
}

static int64_t random_value(uint64_t *state, bool is_size)
{
    static const int64_t ends[] = { 1, 2, 1 << 30, (1 << 30) - 1 };
    int64_t x = random_int(state, 0, 3) ? random_int(state, 1, 40)
                                        : ends[random_int(state, 0, 3)];
    return is_size || random_int(state, 0, 1) ? x : -x;
}

Test(c_print, conditions_hold_where_their_evaluation_says)
{
    static VarId v[N_CONDS][3];
    static const Cond *conds[N_CONDS];
    uint64_t state = 42;
    unsigned n_overflows = 0;
    Printed p = { .ctx = ctx_new() };
    p.m = module_new(p.ctx);
    Maker k = { p.ctx, p.m, p.m->body };
    for (unsigned i = 0; i < N_CONDS; i++)
        conds[i] = make_cond(&k, i, v[i], &state);
    print_module(&p, "x", 0);
    void *library = load(&p, "x");
    FUNCTION(StringFn *, last_error, library, "x_last_error");
    for (unsigned i = 0; i < N_CONDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "x_c%u", i);
        FUNCTION(CondFn *, fn, library, name);
        for (unsigned j = 0; j < N_POINTS; j++) {
            Point at = { .var = { v[i][0], v[i][1], v[i][2] } };
            for (unsigned d = 0; d < 3; d++)
                at.value[d] = random_value(&state, d == 2);
            Env env = { point_value, &at };
            bool holds = false;
            bool known = cond_eval(conds[i], &env, &holds);
            int status = fn(at.value[0], at.value[1], at.value[2]);
            if (status && strstr(last_error(), "64 bits")) {
                n_overflows++;
                continue;
            }
            cr_expect(known && (status == 0) == holds,
                      "c%u at %lld %lld %lld: status %d", i,
                      (long long)at.value[0], (long long)at.value[1],
                      (long long)at.value[2], status);
        }
    }
    cr_expect(n_overflows > 0 && n_overflows < N_CONDS * N_POINTS / 4,
              "%u overflows", n_overflows);
}

/* ---- scalars -------------------------------------------------------- */

static const ScalarType data_types[] = {
    TY_f16, TY_bf16, TY_f32,  TY_f64,  TY_i8,   TY_i32,
    TY_ui8, TY_ui16, TY_e4m3, TY_e5m2, TY_e8m0,
};
enum { N_TYPES = sizeof data_types / sizeof *data_types, N_INPUTS = 65536 };

static const char *const two_operand_ops[] = {
    "add", "sub", "mul", "div", "fmaxf", "fminf",
};
enum { N_OPS = sizeof two_operand_ops / sizeof *two_operand_ops };

/* For each type: a cast from f64, a cast to each type, each operation, and the
 * reduce of a product. */
static void scalar_procs(StrBuf *out)
{
    for (unsigned i = 0; i < N_TYPES; i++) {
        const char *t = scalar_type_name(data_types[i]);
        for (unsigned j = 0; j < N_TYPES; j++) {
            const char *u = scalar_type_name(data_types[j]);
            strbuf_addf(out,
                        "proc @%s_to_%s(%%n: size, %%x: tensor<%s, DRAM>[%%n], "
                        "%%y: tensor<%s, DRAM>[%%n]) {\n"
                        "  ctl.for %%i in [0, %%n) {\n"
                        "    %%0 = mem.load %%x[%%i]\n",
                        t, u, t, u);
            if (i != j)
                strbuf_addf(out, "    %%1 = arith.cast %%0 : %s\n", u);
            strbuf_addf(out, "    mem.store %%y[%%i], %%%d\n  }\n}\n", i != j);
        }
        for (unsigned j = 0; j <= N_OPS; j++) {
            const char *op = j < N_OPS ? two_operand_ops[j] : "reduce";
            strbuf_addf(out,
                        "proc @%s_%s(%%n: size, %%a: tensor<%s, DRAM>[%%n], "
                        "%%b: tensor<%s, DRAM>[%%n], %%y: tensor<%s, "
                        "DRAM>[%%n]) {\n"
                        "  ctl.for %%i in [0, %%n) {\n"
                        "    %%0 = mem.load %%a[%%i]\n"
                        "    %%1 = mem.load %%b[%%i]\n",
                        t, op, t, t, t);
            if (j < N_OPS)
                strbuf_addf(out,
                            "    %%2 = arith.%s %%0, %%1\n"
                            "    mem.store %%y[%%i], %%2\n",
                            op);
            else
                strbuf_addf(out, "    mem.reduce %%y[%%i], %%0, %%1\n");
            strbuf_add(out, "  }\n}\n");
        }
    }
}

/* Every bit pattern of 8 and 16 bits; of wider types a mix of random bits and
 * values near one. */
static void fill_inputs(ScalarType t, uint64_t seed, void *out)
{
    int bytes = scalar_type_bytes(t);
    uint64_t state = seed;
    for (unsigned i = 0; i < N_INPUTS; i++) {
        uint64_t bits = bytes <= 2 && seed == 0
                            ? i
                            : random_next(&state) << 33 ^ random_next(&state);
        unsigned char *at = (unsigned char *)out + (size_t)i * (size_t)bytes;
        if (bytes > 2 && i % 2 && scalar_type_is_float(t))
            scalar_encode(t, (double)((int64_t)(bits % 2001) - 1000) / 16, at);
        else
            scalar_store_bits(t, bits, at);
    }
}

static double element(ScalarType t, const void *base, unsigned i)
{
    return scalar_decode(t, (const char *)base +
                                (size_t)i * (size_t)scalar_type_bytes(t));
}

static bool expect_element(const char *what, ScalarType t, const void *base,
                           unsigned i, double value)
{
    unsigned char bits[8] = { 0 };
    const char *at =
        (const char *)base + (size_t)i * (size_t)scalar_type_bytes(t);
    if (scalar_type_is_int(t))
        scalar_encode_int(t, (int64_t)value, bits);
    else
        scalar_encode(t, value, bits);
    bool same = memcmp(bits, at, (size_t)scalar_type_bytes(t)) == 0;
    cr_expect(same, "%s, element %u: found %llx, expected %llx", what, i,
              (unsigned long long)scalar_load_bits(t, at),
              (unsigned long long)scalar_load_bits(t, bits));
    return same;
}

static double buffers[4][N_INPUTS];

static void check_cast(void *library, ScalarType from, ScalarType to)
{
    char name[64];
    snprintf(name, sizeof name, "s_%s_to_%s", scalar_type_name(from),
             scalar_type_name(to));
    FUNCTION(CastFn *, fn, library, name);
    fill_inputs(from, 0, buffers[0]);
    cr_assert_eq(fn(N_INPUTS, buffers[0], buffers[1]), 0);
    bool same = true;
    for (unsigned i = 0; i < N_INPUTS && same; i++) {
        double x = element(from, buffers[0], i);
        same =
            expect_element(name, to, buffers[1], i, value_convert(to, from, x));
    }
}

static double two_operands(ScalarType t, unsigned op, double a, double b,
                           double old)
{
    char name[32];
    SemVal v[2] = { { .f = a }, { .f = b } };
    Sem s = values_sem();
    if (op == N_OPS)
        return value_fma(t, a, b, old);
    snprintf(name, sizeof name, "arith.%s", two_operand_ops[op]);
    return sem_apply(&s, op_code_from_name(name), t, v).f;
}

static void check_two(void *library, ScalarType t, unsigned op)
{
    char name[64];
    snprintf(name, sizeof name, "s_%s_%s", scalar_type_name(t),
             op < N_OPS ? two_operand_ops[op] : "reduce");
    FUNCTION(OpFn *, fn, library, name);
    fill_inputs(t, 0, buffers[0]);
    fill_inputs(t, 7, buffers[1]);
    fill_inputs(t, 8, buffers[2]);
    memcpy(buffers[3], buffers[2], sizeof buffers[2]);
    cr_assert_eq(fn(N_INPUTS, buffers[0], buffers[1], buffers[2]), 0);
    bool same = true;
    for (unsigned i = 0; i < N_INPUTS && same; i++) {
        double a = element(t, buffers[0], i), b = element(t, buffers[1], i);
        double old = element(t, buffers[3], i);
        same = expect_element(name, t, buffers[2], i,
                              two_operands(t, op, a, b, old));
    }
}

Test(c_print, scalars_are_the_interpreters)
{
    StrBuf text = { 0 };
    scalar_procs(&text);
    Printed p = print_text("s", strbuf_text(&text), 0);
    void *library = load(&p, "s");
    for (unsigned i = 0; i < N_TYPES; i++) {
        for (unsigned j = 0; j < N_TYPES; j++)
            check_cast(library, data_types[i], data_types[j]);
        for (unsigned j = 0; j <= N_OPS; j++)
            check_two(library, data_types[i], j);
    }
}

/* ---- host ops ------------------------------------------------------------ */

static const char host_ops[] =
    "async.kernel @k(%n: size, %b: bool, %w: window<f32, CudaGmemLinear>[%n, 4]"
    ", %g: tensor<i32, CudaGridConstant>[3], %cta: coord, %warp: coord, "
    "%lane: coord) {proc = 'p', blockDim = 64, clusterDim = 1, blocks_per_sm = "
    "1, smem_bytes = 65536} {\n}\n"
    "host.proc @inner(%n: size, %t: tensor<f32, CudaGmemLinear>[%n]) {\n"
    "  host.memset %t[0 +: %n]\n}\n"
    "host.proc @p(%n: size, %i: index, %flag: bool, "
    "%w: window<f32, CudaGmemLinear>[%n, 8], %h: tensor<f32, DRAM>[%n, 8], "
    "%g: tensor<i32, CudaGridConstant>[3], %out: tensor<f32, DRAM>) {\n"
    "  host.check %i floordiv 4 >= -2 {message = 'too small', argument = 'i'}"
    "\n"
    "  %v = mem.window %w[0 +: %n, 4 +: 4]\n"
    "  %t = host.alloc : tensor<f32, CudaGmemLinear>[%n, 8]\n"
    "  host.memset %t[0 +: %n, 0 +: 8]\n"
    "  host.copy %t[0 +: %n, 0 +: 8], %h[0 +: %n, 0 +: 8] {direction = 'htod'}"
    "\n"
    "  host.copy %h[0 +: %n, 0 +: 4], %t[0 +: %n, 4 +: 4] {direction = 'dtoh'}"
    "\n"
    "  ctl.for %j in [0, %n) {\n"
    "    %s = host.alloc : tensor<f32, CudaGmemLinear>[%n]\n"
    "    host.copy %s[0 +: %n], %t[0 +: %n, 3] {direction = 'dtod'}\n"
    "    ctl.if %j mod 2 == 0 {\n"
    "      ctl.call @inner(%j + 1, %s[0 +: %j + 1])\n"
    "    } else {\n"
    "      host.launch @k(%j + 1, %flag == 1, %v[0 +: %n, 0 +: 4], %g[0 +: 3])"
    "\n    }\n"
    "    %copy = host.alloc : tensor<f32, DRAM>[%n]\n"
    "    host.copy %copy[0 +: %n], %s[0 +: %n] {direction = 'dtoh'}\n"
    "    %last = mem.load %copy[%n - 1]\n"
    "    mem.reduce %out[], %last\n"
    "  }\n}\n";

typedef int HostOpsFn(int64_t n, int64_t i, bool flag, const void *w,
                      int64_t w_stride0, int64_t w_stride1, float *h,
                      const int32_t *g, float *out, void *stream);
typedef int InitFn(unsigned flags);
typedef int RetainFn(void **context, int device);
typedef int SetCurrentFn(void *context);
typedef void FailFn(const char *name, int skip, int code);
typedef int LiveFn(void);
typedef void ParamsFn(const size_t *sizes, int count);

/* The test driver, with the context of device 0 current. */
static void *open_driver(void)
{
    void *driver =
        dlopen(EXO_BINARY_DIR "/test/stub/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *context = NULL;
    cr_assert(driver, "%s", dlerror());
    FUNCTION(InitFn *, init, driver, "cuInit");
    FUNCTION(RetainFn *, retain, driver, "cuDevicePrimaryCtxRetain");
    FUNCTION(SetCurrentFn *, set_current, driver, "cuCtxSetCurrent");
    cr_assert_eq(init(0) | retain(&context, 0) | set_current(context), 0);
    return driver;
}

Test(c_print, host_ops_run)
{
    enum { N = 5 };
    static float h[N][8], w[N][16];
    static const int32_t g[3] = { 7, 8, 9 };
    static const size_t sizes[] = { 4, 4, 8, 4, 4, 12 };
    float out = 100;
    char text[sizeof host_ops + sizeof ptx];
    snprintf(text, sizeof text, "%s", host_ops);
    Printed p = print_text("h", text, 1);
    void *driver = open_driver();
    void *library = load(&p, "h");
    FUNCTION(StringFn *, log, driver, "cuda_stub_log");
    FUNCTION(FailFn *, fail, driver, "cuda_stub_fail");
    FUNCTION(LiveFn *, live, driver, "cuda_stub_live");
    FUNCTION(ParamsFn *, params, driver, "cuda_stub_params");
    FUNCTION(HostOpsFn *, fn, library, "h_p");
    FUNCTION(StringFn *, last_error, library, "h_last_error");
    params(sizes, 6);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < 8; j++)
            h[i][j] = (float)(10 * i + j);
    cr_assert_eq(fn(N, -8, true, w, 16, 1, h[0], g, &out, NULL), 0, "%s",
                 last_error());
    for (int i = 0; i < N; i++)
        for (int j = 0; j < 8; j++)
            cr_expect_eq(h[i][j], (float)(10 * i + (j < 4 ? j + 4 : j)));
    /* row 4 of column 3, but for j = 4, where it was cleared */
    cr_expect_eq(out, 100 + 4 * 43.0f);
    char launch[256];
    snprintf(launch, sizeof launch, "stream=default 2 1 %llx 10 1 800000007\n",
             (unsigned long long)(uintptr_t)&w[0][4]);
    cr_expect(strstr(log(), launch), "no %s in %s", launch, log());
    cr_expect_eq(live(), 0);

    cr_expect_eq(fn(N, -9, true, w, 16, 1, h[0], g, &out, NULL), 1);
    cr_expect(strstr(last_error(), "i: too small (i = -9)"), "%s",
              last_error());
    fail("cuMemcpyDtoDAsync", 7, 1);
    cr_expect_eq(fn(N, 0, true, w, 16, 1, h[0], g, &out, NULL), 6);
    cr_expect(strstr(last_error(), "cuMemcpyDtoDAsync"), "%s", last_error());
    cr_expect_eq(live(), 0);
}

/* ---- launches ------------------------------------------------------------ */

typedef int LaunchFn(int64_t n, const void *x, void *stream);

/* The printed C starts as many clusters as cuda_even_clusters says, of `fit`
 * of `blocks` that run at once. */
static void check_grids(const char *kernel_text, int fit, unsigned blocks)
{
    static float x[1];
    Printed p = print_launch(kernel_text);
    void *driver = open_driver();
    void *library = load(&p, "p");
    FUNCTION(StringFn *, log, driver, "cuda_stub_log");
    FUNCTION(LaunchFn *, fn, library, "p");
    Cuda *cuda = NULL;
    CudaError err;
    CudaLaunch launch = { .cluster = { blocks } };
    cr_assert(
        cuda_open(EXO_BINARY_DIR "/test/stub/libcuda.so.1", 0, &cuda, &err),
        "%s", err.text);
    for (int64_t n = 1; n <= 600; n++) {
        size_t before = strlen(log());
        unsigned grid;
        int even = cuda_even_clusters(cuda, &launch, fit, n);
        cr_assert_eq(fn(n, x, NULL), 0);
        const char *at = strstr(log() + before, "cuLaunchKernelEx k grid=");
        cr_assert(at && sscanf(at, "cuLaunchKernelEx k grid=%u,", &grid) == 1);
        cr_expect_eq(grid, (unsigned)even * blocks, "%d tasks: %u, not %u",
                     (int)n, grid, (unsigned)even * blocks);
    }
    cuda_close(cuda);
}

Test(c_print, grids_are_those_of_the_runtime)
{
    check_grids(KERNEL_OF("1", "131072", ""), 132, 1);
}

Test(c_print, grids_of_several_blocks_a_multiprocessor)
{
    check_grids(kernel, 264, 1);
}

Test(c_print, grids_of_clusters)
{
    check_grids(KERNEL_OF("2", "131072", ""), 66, 2);
}

Test(c_print, grids_of_several_clusters_a_multiprocessor)
{
    check_grids(KERNEL_OF("4", "0", ""), 66, 4);
}

/* ---- calls -------------------------------------------------------------- */

/* Names that the printed code uses itself, a window of a window, an element, a
 * bool and a temporary as arguments. */
static const char calls[] =
    "proc @fill(%m: size, %up: bool, %from: index, %w: window<f32, DRAM>[%m], "
    "%sum: tensor<f32, DRAM>) {\n"
    "  ctl.for %i in [0, %m) {\n"
    "    %0 = mem.load %sum[]\n"
    "    ctl.if %up == 1 and %i >= %from {\n"
    "      %1 = arith.const {value = 1.0} : f32\n"
    "      %2 = arith.add %0, %1\n"
    "      mem.store %sum[], %2\n"
    "      mem.store %w[%i], %2\n"
    "    }\n  }\n}\n"
    "proc @c(%status: size, %exp: tensor<f32, DRAM>[%status, 6, 4], "
    "%call: tensor<f32, DRAM>) {\n"
    "  %overflow = mem.alloc : tensor<f32, DRAM>\n"
    "  %0 = mem.load %call[]\n"
    "  mem.store %overflow[], %0\n"
    "  %box = mem.window %exp[1, 2 +: 3, 0 +: 4]\n"
    "  %dims = mem.window %box[0 +: 3, 1]\n"
    "  ctl.call @fill(3, %status >= 2, 1 - %status mod 2, %dims[0 +: 3], "
    "%overflow[])\n"
    "  ctl.call @fill(2, false, 0, %box[2, 2 +: 2], %call[])\n"
    "  %1 = mem.load %overflow[]\n"
    "  mem.store %exp[0, 0, 0], %1\n"
    "}\n";

typedef int CallsFn(int64_t status, float *exp, float *call);

Test(c_print, calls_pass_windows_and_scalars)
{
    static float x[2][6][4];
    float start = 10;
    Printed p = print_text("c", calls, 0);
    void *library = load(&p, "c");
    FUNCTION(CallsFn *, fn, library, "c");
    cr_assert_eq(fn(2, x[0][0], &start), 0);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 4; j++)
            cr_expect_eq(x[1][i][j],
                         j == 1 && (i == 3 || i == 4) ? (float)(i + 8) : 0.0f,
                         "%d %d", i, j);
    cr_expect_eq(x[0][0][0], 12.0f);
    expect_in(&p.header, "int c_fill(int64_t m, bool up, int64_t from, "
                         "float *w, int64_t w_stride0, float *sum);");
}
