/* The .exo front end: what it accepts reads back from its own print as the same
 * text; what it refuses gets an error of the right code that names the fault.
 * Rows give a whole file, the body of a host procedure, or the body of a task.
 */
#include "ir/exo.h"

#include "ir/lib.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef enum Frame { FILE_TEXT, HOST, TASK } Frame;

typedef struct Refused {
    Frame frame;
    const char *code;  /* of one of the errors */
    const char *parts; /* what its message contains, separated by | */
    const char *text;
} Refused;

static const char *const heads[] = {
    [FILE_TEXT] = "",
    [HOST] = "def g(n: size, v: [f32][n]):\n"
             "    v[0] = 1.0\n"
             "def f(N: size, flag: bool, i: index, x: f32[N, 16], y: f32[N],\n"
             "      z: bf16[N], s: f32, g1: f32[N, 16] @ CudaGmemLinear):\n",
    [TASK] = "def f(N: size, x: f32[N, 64] @ CudaGmemLinear):\n"
             "    m = x[0:N, 0:64] @ Sm90_tensorMap(128, 64, 32)\n"
             "    with CudaDeviceFunction(blockDim=128):\n"
             "        for t in cuda_tasks(0, N):\n"
             "            bar: barrier[4, 2] @ CudaMbarrierPreArrive(0, )\n"
             "            cg: barrier @ Sm80_CommitGroup\n"
             "            s: f32[64, 32] @ CudaSmemLinear\n"
             "            w: f32[64, 32] @ Sm90_SmemSwizzled(128, )\n"
             "            r: f32[128] @ CudaRmem\n",
};
static const unsigned indents[] = { 0, 4, 12 };

/* The row's text in its frame, each line indented. */
static void frame_text(StrBuf *out, Frame frame, const char *text)
{
    strbuf_add(out, heads[frame]);
    while (*text) {
        size_t n = strcspn(text, "\n");
        for (unsigned i = 0; n && i < indents[frame]; i++)
            strbuf_addc(out, ' ');
        strbuf_addn(out, text, n);
        strbuf_addc(out, '\n');
        text += n + (text[n] != 0);
    }
}

static Module *parse(Ctx *ctx, Lib *lib, const char *text, size_t n)
{
    return exo_parse(ctx, ctx_add_source(ctx, "t.exo", text, n), lib, NULL);
}

static Lib *library(Ctx *ctx)
{
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"), "lib/ does not load");
    return lib;
}

static bool has_parts(const char *message, const char *parts)
{
    char part[200];
    while (*parts) {
        size_t n = strcspn(parts, "|");
        snprintf(part, sizeof part, "%.*s", (int)n, parts);
        if (!strstr(message, part))
            return false;
        parts += n + (parts[n] != 0);
    }
    return true;
}

static void render_all(const Ctx *ctx, StrBuf *out)
{
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        diag_render(ctx, d, out);
}

static void check_refused(const Refused *row)
{
    Ctx *ctx = ctx_new();
    Lib *lib = library(ctx);
    StrBuf text = { 0 }, all = { 0 };
    frame_text(&text, row->frame, row->text);
    Module *m = parse(ctx, lib, text.data ? text.data : "", text.len);
    cr_expect(m == NULL, "accepted:\n%s", row->text);
    bool found = false;
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        if (d->severity == SEV_error && !strcmp(d->code, row->code) &&
            has_parts(d->message, row->parts) && d->loc.file)
            found = true;
    render_all(ctx, &all);
    cr_expect(found, "no error '%s' with '%s' for:\n%s\ngot:\n%s", row->code,
              row->parts, row->text, strbuf_text(&all));
    strbuf_free(&text);
    strbuf_free(&all);
    module_free(m);
    ctx_free(ctx);
}

static const Refused syntax_rows[] = {
    { FILE_TEXT, "syntax", "expected def|'foo'", "foo" },
    { FILE_TEXT, "syntax", "expected a name after def",
      "def (x: f32):\n    pass" },
    { FILE_TEXT, "syntax", "expected '('", "def f:\n    pass" },
    { FILE_TEXT, "syntax", "expected , or )",
      "def f(x: f32 y: f32):\n    pass" },
    { FILE_TEXT, "syntax", "expected ':'|parameter", "def f(x):\n    pass" },
    { FILE_TEXT, "syntax", "expected ':'", "def f(x: f32)\n    pass" },
    { FILE_TEXT, "syntax", "expected an indented block",
      "def f(x: f32):\npass" },
    { FILE_TEXT, "syntax", "expected an indented block", "def f(x: f32):" },
    { FILE_TEXT, "syntax", "bracket is never closed", "def f(x: f32" },
    { FILE_TEXT, "syntax", "expected an expression, found 'pass'",
      "def f(x: f32[4,:\n    pass\ndef g(x: f32):\n    pass" },
    { FILE_TEXT, "syntax", "bracket is never closed",
      "def f(x: f32[4,\ndef g(x: f32):\n    pass" },
    { FILE_TEXT, "syntax", "tab in indentation", "def f(x: f32):\n\tx = 1.0" },
    { FILE_TEXT, "syntax", "unindent matches no outer",
      "def f(x: f32):\n    if True:\n        x = 1.0\n      x = 2.0" },
    { FILE_TEXT, "syntax", "unexpected indentation",
      "def f(x: f32):\n    x = 1.0\n        x = 2.0" },
    { FILE_TEXT, "syntax", "unexpected character '$'",
      "def f(x: f32$):\n    pass" },
    { FILE_TEXT, "syntax", "unexpected byte 0xff",
      "def f(x: f32\xff):\n    pass" },
    { FILE_TEXT, "syntax", "unexpected character '`'", "`" },
    { FILE_TEXT, "syntax", "string without its closing quote",
      "import \"a.exo" },
    { FILE_TEXT, "syntax", "expected a file's name in quotes", "import a" },
    { FILE_TEXT, "import", "cannot find 'nowhere.exo'",
      "import \"nowhere.exo\"" },
    { FILE_TEXT, "syntax", "expected @proc", "@jit\ndef f(x: f32):\n    pass" },
    { FILE_TEXT, "name", "procedure 'f' is defined twice",
      "def f(x: f32):\n    pass\ndef f(x: f32):\n    pass" },
    { FILE_TEXT, "name", "parameter 'x' is defined twice",
      "def f(x: f32, x: f32):\n    pass" },
    { FILE_TEXT, "syntax", "expected 1 withitem",
      "def f(x: f32):\n    with CudaWarps(0, 1), CudaWarps(0, 1):\n        "
      "pass" },
    { HOST, "syntax", "with binds no name",
      "with CudaWarps(0, 1) as w:\n    pass" },
    { HOST, "syntax", "a number runs into a name", "y[0] = 2x" },
    { HOST, "syntax", "does not fit 64 bits", "y[99999999999999999999] = 1.0" },
    { HOST, "syntax", "out of range of f64", "y[0] = 1e999" },
    { HOST, "syntax", "expected an expression", "y[0] = " },
    { HOST, "syntax", "expected an expression|'*'", "y[0] = * 2.0" },
    { HOST, "syntax", "comparisons do not chain", "if 0 <= i < 4:\n    pass" },
    { HOST, "syntax", "assignments do not chain", "y[0] = y[1] = 2.0" },
    { HOST, "syntax", "expected the end of the line", "y[0] = 1.0 2.0" },
    { HOST, "syntax", "expected an iterator's name",
      "for 3 in seq(0, 4):\n    pass" },
    { HOST, "syntax", "expected in after the iterator",
      "for k seq(0, 4):\n    pass" },
    { HOST, "syntax", "a slice has no step", "q = x[0:4:2, 0]" },
    { HOST, "syntax", "expected an index", "y[] = 1.0" },
    { HOST, "syntax", "expected a statement|'while'", "while True:\n    pass" },
    { HOST, "syntax", "expected a statement|'return'", "return x" },
    { HOST, "syntax", "expected a statement|'def'",
      "def h(x: f32):\n    pass" },
    { HOST, "syntax", "expected an expression|'else'", "else:\n    pass" },
    { HOST, "syntax", "expected a plain name", "y[0]: f32" },
    { HOST, "syntax", "left of the assignment", "1 = 2" },
    { HOST, "syntax", "for entries of libraries only",
      "for k... in seq(0, 4):\n    pass" },
    { HOST, "syntax", "an assert stands at the top",
      "y[0] = 1.0\nassert N > 1" },
    { HOST, "syntax", "an assert stands at the top",
      "for k in seq(0, 4):\n    assert N > 1" },
};

static const Refused name_rows[] = {
    { HOST, "name", "unknown name 'q'", "y[0] = q" },
    { HOST, "name", "unknown name 'k'",
      "for k in seq(0, 4):\n    pass\ny[k] = 1.0" },
    { HOST, "name", "unknown name 't'",
      "if i > 0:\n    t: f32\n    t = 1.0\ny[0] = t" },
    { HOST, "name", "unknown procedure or instruction 'h'", "h(y)" },
    { HOST, "name", "unknown procedure or instruction 'f'",
      "f(N, flag, i, x, y, z, s, g1)" },
    { HOST, "name", "unknown function 'tanh'", "y[0] = tanh(y[1])" },
    { HOST, "name", "unknown data field 'Cfg.a'", "y[0] = Cfg.a" },
    { HOST, "type", "unknown type 'f128'", "t: f128" },
    { HOST, "type", "control type size", "t: size" },
    { HOST, "type", "a window type is for parameters", "t: [f32][4]" },
    { HOST, "type", "positive extent|found 0", "t: f32[0]" },
    { HOST, "type", "found an interval", "t: f32[0:4]" },
    { FILE_TEXT, "type", "int is no parameter type",
      "def f(n: int):\n    pass" },
    { HOST, "type", "expected 2 indices|'x'|found", "x[0] = 1.0" },
    { HOST, "type", "expected 2 indices of 'x', found 3", "x[0, 1, 2] = 1.0" },
    { HOST, "type", "found a window or the whole tensor",
      "y[0] = x[0, 0:4] + 1.0" },
    { HOST, "type", "positive literal", "y[i / N] = 1.0" },
    { HOST, "type", "positive literal", "y[i % 0] = 1.0" },
    { HOST, "type", "positive literal", "y[i / -2] = 1.0" },
    { HOST, "type", "not quasi-affine", "y[i * N] = 1.0" },
    { HOST, "type", "found the float 1.5", "y[1.5] = 1.0" },
    { HOST, "type", "an element of a tensor", "y[y[0]] = 1.0" },
    { HOST, "type", "found 's'", "y[s] = 1.0" },
    { HOST, "type", "found a condition", "y[i < 2] = 1.0" },
    { HOST, "type", "found a call of 'sin'", "y[sin(1)] = 1.0" },
    { HOST, "type", "index expression is too large",
      "y[9000000000000000000 + 9000000000000000000] = 1.0" },
    { HOST, "type", "found the control variable 'i'", "y[0] = i" },
    { HOST, "type", "'%' is not defined on data", "y[0] = y[1] % y[2]" },
    { HOST, "type", "comparisons are of control values", "y[0] = y[1] < y[2]" },
    { HOST, "type", "expected an operand of type f32, found bf16",
      "y[0] = y[1] + z[0]" },
    { HOST, "type", "expected an operand of type f32, found bf16",
      "y[0] = fmaxf(y[1], z[0])" },
    { HOST, "type", "fmaxf expects 2 arguments, found 1",
      "y[0] = fmaxf(y[1])" },
    { HOST, "type", "select expects 4 arguments", "y[0] = select(y[1], y[2])" },
    { HOST, "type", "tf32 expects f32, found bf16", "z[0] = tf32(z[1])" },
    { HOST, "type", "tf32_rn expects f32, found bf16", "z[0] = tf32_rn(z[1])" },
    { HOST, "type", "a cast expects", "y[0] = f32(y[1], y[2])" },
    { HOST, "type", "no value of i8", "c: i8\nc = 300" },
    { HOST, "type", "no value of i32", "c: i32\nc = 2.5" },
    { HOST, "type", "expected a condition", "if i:\n    pass" },
    { HOST, "type", "expected a control variable",
      "if y[0] > 1.0:\n    pass"
      "\nif s > 1:\n    pass" },
    { HOST, "type", "stride expects 2 arguments",
      "if stride(y) == 1:\n    pass" },
    { HOST, "type", "a dimension below 1", "if stride(y, 1) == 1:\n    pass" },
    { HOST, "type", "found the control variable 'i'", "q = i[0:4]" },
    { HOST, "type", "expected a plain name for a window", "y[0] = x[0, 0:4]" },
    { HOST, "type", "g expects 2 arguments, found 1", "g(N)" },
    { HOST, "type", "argument 1: expected an index", "g(y, N)" },
    { HOST, "type", "argument 2: expected data", "g(N, N)" },
    { HOST, "type", "must be a variable, an element or a window", "g(N, 2.0)" },
    { HOST, "type", "takes no keyword argument|'n'", "g(n=N, v=y)" },
    { HOST, "syntax", "does not take trailing barrier expression",
      "g(N, y) >> y" },
    { HOST, "type", "outside CUDA code",
      "t: f32[N @ ring_buffer_by(2)] @ CudaSmemLinear" },
};

static const Refused loop_rows[] = {
    { HOST, "loop", "unknown loop mode 'range'",
      "for k in range(0, 4):\n    pass" },
    { HOST, "loop", "unknown loop mode 'cuda_blocks'",
      "for k in cuda_blocks(0, 4):\n    pass" },
    { HOST, "loop", "unknown loop mode", "for k in N:\n    pass" },
    { HOST, "loop", "expects 2 arguments lo, hi, found 1",
      "for k in seq(4):\n    pass" },
    { HOST, "loop", "has no argument 'step'",
      "for k in seq(0, 4, step=2):\n    pass" },
    { HOST, "loop", "has no argument 'unit'",
      "for k in seq(0, 4, unit=cuda_warp):\n    pass" },
    { HOST, "loop", "pragma_unroll expects",
      "for k in seq(0, 4, pragma_unroll=-1):\n    pass" },
    { TASK, "unit", "unknown collective unit 'cuda_wrap'",
      "for k in cuda_threads(0, 4, unit=cuda_wrap):\n    pass" },
    { TASK, "unit", "cannot be scaled|quadpair",
      "for k in cuda_threads(0, 4, unit=4 * cuda_quadpair):\n    pass" },
    { TASK, "unit", "positive int|0",
      "for k in cuda_threads(0, 4, unit=0 * cuda_thread):\n    pass" },
    { TASK, "unit", "positive int|-2",
      "for k in cuda_threads(0, 4, unit=-2 * cuda_thread):\n    pass" },
    { TASK, "unit", "positive int|2.5",
      "for k in cuda_threads(0, 4, unit=2.5 * cuda_thread):\n    pass" },
    { TASK, "instr", "cuda_cta_in_cluster_strided|'s' is missing",
      "for k in cuda_threads(0, 4, unit=cuda_cta_in_cluster_strided):\n    "
      "pass" },
};

#define DEVICE(args) "with CudaDeviceFunction(" args "):\n    pass"
#define CONFIG(list) DEVICE("warp_config=[" list "]")
static const Refused device_rows[] = {
    { HOST, "device", "blockDim|positive multiple of 32|-64",
      DEVICE("blockDim=-64") },
    { HOST, "device", "positive multiple of 32", DEVICE("blockDim=0") },
    { HOST, "device", "positive multiple of 32", DEVICE("blockDim=1") },
    { HOST, "type", "expected an int literal, found 0.5",
      DEVICE("blockDim=0.5") },
    { HOST, "device", "exactly one of blockDim and warp_config|neither",
      DEVICE("") },
    { HOST, "device", "exactly one|both",
      DEVICE("blockDim=32, warp_config=[CudaWarpConfig('a', 1)]") },
    { HOST, "device", "clusterDim expects a power of two, found 0",
      DEVICE("blockDim=32, clusterDim=0") },
    { HOST, "device", "power of two, found -2",
      DEVICE("blockDim=32, clusterDim=-2") },
    { HOST, "device", "power of two, found 3",
      DEVICE("blockDim=32, clusterDim=3") },
    { HOST, "device", "blocks_per_sm expects",
      DEVICE("blockDim=32, blocks_per_sm=0") },
    { HOST, "device", "has no argument 'threads'", DEVICE("threads=32") },
    { HOST, "device", "'blockDim' is given twice", DEVICE("32, blockDim=32") },
    { HOST, "device", "warp_config expects a list", CONFIG("") },
    { HOST, "device", "expected CudaWarpConfig", CONFIG("4") },
    { HOST, "device", "expects name and count", CONFIG("CudaWarpConfig('a')") },
    { HOST, "device", "duplicate name 'a'",
      CONFIG("CudaWarpConfig('a', 1), CudaWarpConfig('a', 1)") },
    { HOST, "device", "identifier in quotes|'a b'",
      CONFIG("CudaWarpConfig('a b', 1)") },
    { HOST, "device", "identifier in quotes|'1a'",
      CONFIG("CudaWarpConfig('1a', 1)") },
    { HOST, "device", "identifier in quotes|''",
      CONFIG("CudaWarpConfig('', 1)") },
    { HOST, "device", "count expects a positive int",
      CONFIG("CudaWarpConfig('a', 0)") },
    { HOST, "device", "multiple of 8 in [24, 256], found 16",
      CONFIG("CudaWarpConfig('a', 4, setmaxnreg_dec=16)") },
    { HOST, "device", "multiple of 8 in [24, 256], found 100",
      CONFIG("CudaWarpConfig('a', 4, setmaxnreg_inc=100)") },
    { HOST, "device", "multiple of 8 in [24, 256], found 320",
      CONFIG("CudaWarpConfig('a', 4, setmaxnreg_inc=320)") },
    { HOST, "device", "blockDim % 128 == 0, found 320",
      CONFIG("CudaWarpConfig('a', 10, setmaxnreg_inc=200)") },
    { HOST, "device", "share a warpgroup",
      CONFIG("CudaWarpConfig('a', 2, setmaxnreg_dec=40), CudaWarpConfig('b', "
             "2)") },
    { HOST, "device", "40 is used for both dec and inc",
      CONFIG("CudaWarpConfig('a', 4, setmaxnreg_dec=40), "
             "CudaWarpConfig('b', 4, setmaxnreg_inc=40)") },
    { HOST, "device", "expected CudaDeviceFunction",
      "with open(1):\n    pass" },
    { TASK, "device", "CudaWarps: lo expects an int",
      "with CudaWarps('a', 1):\n    pass" },
    { TASK, "device", "CudaWarps: name expects a string",
      "with CudaWarps(name=1):\n    pass" },
    { TASK, "device", "has no argument 'count'",
      "with CudaWarps(count=1):\n    pass" },
};

static const Refused memory_rows[] = {
    { HOST, "memory", "unknown memory 'Dram'", "t: f32 @ Dram" },
    { HOST, "memory", "expected a memory", "t: f32 @ 3" },
    { HOST, "memory", "requires a Memory|CudaMbarrier",
      "t: f32 @ CudaMbarrier" },
    { HOST, "memory", "swizzle of shared memory|48",
      "t: f32[4] @ Sm90_SmemSwizzled(48, )" },
    { HOST, "instr", "more arguments than parameters",
      "t: f32[4] @ Sm90_SmemSwizzled(64, 2)" },
    { HOST, "instr", "'s' is missing", "t: f32[4] @ Sm90_SmemSwizzled" },
    { HOST, "instr", "'s' expects a literal of kind int",
      "t: f32[4] @ Sm90_SmemSwizzled('a')" },
    { HOST, "memory", "multiple of 8 up to 256|N=264",
      "t: f32[16, 264] @ Sm90_TkRmemTileD(264, )" },
    { HOST, "memory", "Can only create SpecialWindow",
      "t: f32[4] @ Sm90_tensorMap(128, 4)" },
    { HOST, "memory", "Can only create SpecialWindow",
      "g(N, g1[0:N, 0:16] @ Sm90_tensorMap(128, 64, 16))" },
    { HOST, "memory", "expected a special window",
      "q = g1[0:N, 0:16] @ CudaGmemLinear" },
    { HOST, "memory", "box of 1 dimensions",
      "q = g1[0:N, 0:16] @ Sm90_tensorMap(128, 64)" },
    { HOST, "memory", "0, 32, 64 or 128",
      "q = g1[0:N, 0:16] @ Sm90_tensorMap(16, 64, 16)" },
    { FILE_TEXT, "barrier", "barrier mechanism is rejected on a parameter",
      "def f(b: barrier[4] @ CudaMbarrier):\n    pass" },
    { FILE_TEXT, "memory", "requires a Memory|Sm80_CommitGroup",
      "def f(b: f32[4] @ Sm80_CommitGroup):\n    pass" },
};

static const Refused sync_rows[] = {
    { TASK, "type", "Fence expects 2 arguments, found 1",
      "Fence(cuda_in_order)" },
    { TASK, "type", "Fence expects 2 arguments, found 3",
      "Fence(cuda_in_order, cuda_in_order, 0)" },
    { TASK, "type", "Arrive expects 1 or 2 arguments, found 0",
      "Arrive() >> cg" },
    { TASK, "type", "Await expects 3 arguments, found 2",
      "Await(cg, cuda_in_order)" },
    { TASK, "type", "no keyword argument|L2",
      "Fence(cuda_in_order, L2=cuda_in_order)" },
    { TASK, "syntax", ">>|Fence", "Fence(cuda_in_order, cuda_in_order) >> cg" },
    { TASK, "syntax", ">>|Await", "Await(cg, cuda_in_order, 0) >> cg" },
    { TASK, "syntax", ">>", "s >> cg" },
    { TASK, "syntax", ">>", "1 + 2" },
    { TASK, "syntax", ">>", "t" },
    { TASK, "timeline", "Sm80_cp_async?",
      "Fence(Sm80_cp_async_instr, cuda_in_order)" },
    { TASK, "timeline", "unknown synchronisation timeline 'cuda'",
      "Fence(cuda, cuda_in_order)" },
    { TASK, "timeline", "the string 'cuda_in_order'",
      "Fence('cuda_in_order', cuda_in_order)" },
    { TASK, "timeline", "an expression", "Fence(1, cuda_in_order)" },
    { TASK, "barrier", "N=1|Arrive", "Arrive(cuda_in_order, 2) >> cg" },
    { TASK, "barrier", "0.75", "Await(cg, cuda_in_order, 0.75)" },
    { TASK, "barrier", "int literal|t", "Await(cg, cuda_in_order, t)" },
    { TASK, "barrier", "requires barrier type|'s'",
      "Arrive(cuda_in_order, 1) >> s" },
    { TASK, "barrier", "requires barrier type|'s'",
      "Await(s[0, 0], cuda_in_order, 0)" },
    { TASK, "type", "expected 2 indices of 'bar', found 1",
      "Await(bar[0], cuda_in_order, 0)" },
    { TASK, "type", "expected 2 indices of 'bar', found 0",
      "Arrive(cuda_in_order, 1) >> bar" },
    { TASK, "type", "found the barrier 'cg'", "s[0, 0] = cg" },
    { TASK, "barrier", "requires a BarrierMechanism", "b: barrier" },
    { TASK, "barrier", "requires a BarrierMechanism|CudaSmemLinear",
      "b: barrier @ CudaSmemLinear" },
    { TASK, "barrier", "which commit group 'q' is",
      "q: barrier @ CudaCommitGroup\nAwait(q, cuda_in_order, 0)" },
    { TASK, "barrier", "which commit group 'q' is",
      "q: barrier @ CudaCommitGroup\nArrive(cuda_in_order, 1) >> q" },
    { TASK, "barrier", "cannot be ring_guarded_by",
      "b: barrier[4].ring_guarded_by(cg) @ CudaMbarrier" },
    { TASK, "type", "Expected ring_buffer_by.depth > 0",
      "b: barrier[4 @ ring_buffer_by(0)] @ CudaMbarrier" },
    { TASK, "type", "ring_buffer_by.depth|int literal",
      "b: barrier[4 @ ring_buffer_by(2.5)] @ CudaMbarrier" },
    { TASK, "type", "ring_buffer_by expects one argument",
      "b: barrier[4 @ ring_buffer_by(size=2)] @ CudaMbarrier" },
    { TASK, "type", "multiple managed ring buffer dimensions in b",
      "b: barrier[4 @ ring_buffer_by(2), 4 @ ring_buffer_by(2)] @ "
      "CudaMbarrier" },
    { TASK, "barrier", "ring_guarded_by requires barrier type",
      "q: f32[4 @ ring_buffer_by(2)].ring_guarded_by(s) @ CudaSmemLinear" },
    { TASK, "barrier", "without indices",
      "q: f32[4 @ ring_buffer_by(2)].ring_guarded_by(bar[0]) @ "
      "CudaSmemLinear" },
};

#define CP "Sm80_cp_async_1d(s[0, 0:4], x[t, 0:4]"
static const Refused call_rows[] = {
    { TASK, "syntax", "cannot have more than 1 trailing barrier expr",
      CP ", T=f32, size0=4) >> cg >> cg" },
    { TASK, "instr", "'size0' is missing", CP ", T=f32)" },
    { TASK, "instr", "'T' is missing", CP ", size0=4)" },
    { TASK, "instr", "no template argument 'size1'",
      CP ", T=f32, size0=4, size1=2)" },
    { TASK, "instr", "'size0' is given twice",
      CP ", T=f32, size0=4, size0=4)" },
    { TASK, "instr", "'size0' expects a literal of kind int, found 'a'",
      CP ", T=f32, size0='a')" },
    { TASK, "instr", "4, 8 or 16 bytes|size0=3", CP ", T=f32, size0=3)" },
    { TASK, "instr", "precision of 'src' differs",
      CP ", dst=f32, src=f16, size0=4)" },
    { TASK, "type", "expects 2 arguments, found 1",
      "Sm80_cp_async_1d(s[0, 0:4], T=f32, size0=4)" },
    { TASK, "type", "expected data for 'dst'",
      "Sm80_cp_async_1d(0, x[t, 0:4], T=f32, size0=4)" },
    { TASK, "syntax", "positional argument stands behind",
      "Sm80_cp_async_1d(T=f32, s[0, 0:4])" },
    { TASK, "type", "found the variable 't'", CP ", T=f32, size0=t)" },
    { TASK, "name", "unknown name 'f99'", CP ", T=f99, size0=4)" },
    { TASK, "name", "unknown procedure or instruction 'Sm90_tma_load_9d'",
      "Sm90_tma_load_9d(w[0:64, 0:32], m[0:64, 0:32])" },
    { TASK, "instr", "smem_box is the sizes",
      "Sm90_tma_load_2d(w[0:64, 0:32], m[0:64, 0:32], dst=f32, src=f32, "
      "size0=64, "
      "size1=32, smem_box=(32, 32), swizzle=128) >> bar[0, 0]" },
};

static const Refused entry_rows[] = {
    { FILE_TEXT, "instr", "has no timeline",
      "instr a(x: f32 @ CudaRmem):\n    unit cuda_thread\n    access x: "
      "in_order\n"
      "    body:\n        x = 0.0\n    hook h" },
    { FILE_TEXT, "instr", "has no access of 'x'",
      "instr a(x: f32 @ CudaRmem):\n    unit cuda_thread\n"
      "    timeline cuda_in_order_instr\n    body:\n        x = 0.0\n    hook "
      "h" },
    { FILE_TEXT, "instr", "has no body",
      "instr a(x: f32 @ CudaRmem):\n    unit cuda_thread\n"
      "    timeline cuda_in_order_instr\n    access x: in_order\n    hook h" },
    { FILE_TEXT, "instr", "has no ptx and no hook",
      "instr a(x: f32 @ CudaRmem):\n    unit cuda_thread\n"
      "    timeline cuda_in_order_instr\n    access x: in_order\n"
      "    body:\n        x = 0.0" },
    { FILE_TEXT, "instr", "in_order or out_of_order",
      "instr a(x: f32 @ CudaRmem):\n    unit cuda_thread\n"
      "    timeline Sm80_cp_async_instr\n    access x: "
      "distributed(cuda_thread)\n"
      "    body:\n        x = 0.0\n    hook h" },
    { FILE_TEXT, "instr", "unknown clause 'colour'",
      "memory M:\n    family shared\n    colour red" },
    { FILE_TEXT, "instr", "no family clause", "memory M:\n    scalar read" },
    { FILE_TEXT, "instr", "expects one of its words",
      "memory M:\n    family attic" },
    { FILE_TEXT, "instr", "family of qualitative timelines",
      "memory M:\n    family shared\n    quals none" },
    { FILE_TEXT, "memory", "is defined by itself", "memory M:\n    same M" },
    { FILE_TEXT, "name", "'M' is defined twice",
      "memory M:\n    family shared\nmemory M:\n    family shared" },
    { FILE_TEXT, "instr", "without its ranks",
      "instr a_{n}d(x: f32 @ CudaRmem):\n    unit cuda_thread\n"
      "    timeline cuda_in_order_instr\n    access x: in_order\n"
      "    body:\n        x = 0.0\n    hook h" },
    { FILE_TEXT, "unit", "expected CollUnit", "unit u = 4" },
    { FILE_TEXT, "unit", "a box of 1 entries",
      "unit u = CollUnit((8, ), (1, 2))" },
    { FILE_TEXT, "unit", "expects tuples", "unit u = CollUnit(8, 1)" },
    { FILE_TEXT, "unit", "positive factor",
      "unit u = CollUnit((blockDim, ), (0, ))" },
    { FILE_TEXT, "type", "expects a scalar type",
      "@config\nclass C:\n    a: tensor" },
    { FILE_TEXT, "syntax", "expected a field", "@config\nclass C:\n    pass" },
};

static void check_rows(const Refused *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_refused(&rows[i]);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof *rows)

Test(exo_parse, syntax_is_refused)
{
    CHECK_ROWS(syntax_rows);
}
Test(exo_parse, names_and_types_are_refused)
{
    CHECK_ROWS(name_rows);
}
Test(exo_parse, loops_are_refused)
{
    CHECK_ROWS(loop_rows);
}
Test(exo_parse, device_functions_are_refused)
{
    CHECK_ROWS(device_rows);
}
Test(exo_parse, memories_are_refused)
{
    CHECK_ROWS(memory_rows);
}
Test(exo_parse, synchronisation_is_refused)
{
    CHECK_ROWS(sync_rows);
}
Test(exo_parse, calls_are_refused)
{
    CHECK_ROWS(call_rows);
}
Test(exo_parse, entries_are_refused)
{
    CHECK_ROWS(entry_rows);
}

/* A near miss is answered with the name that was meant. */
Test(exo_parse, misspelled_entries_are_named)
{
    static const struct {
        const char *text, *fix;
    } rows[] = {
        { "def f(x: f32[4] @ CudaGmemLiner):\n    pass", "CudaGmemLinear" },
        { "def f(x: f32[4] @ CudaGmemLinear):\n"
          "    with CudaDeviceFunction(32):\n"
          "        for t in cuda_threads(0, 1, unit=cuda_wrap):\n"
          "            pass",
          "cuda_warp" },
        { "def f(x: f32[4] @ CudaGmemLinear):\n    Sm90_tma_laod_2d(x)",
          "Sm90_tma_load_2d" },
        { "def f(x: f32[4]):\n    Sm90_zero_scale_d_f32(x)",
          "older name: use Sm90_tk_zero_scale_d" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ctx *ctx = ctx_new();
        Lib *lib = library(ctx);
        cr_expect(!parse(ctx, lib, rows[i].text, strlen(rows[i].text)));
        const Diag *d = ctx_diags(ctx);
        cr_expect(d && d->fix && strstr(d->fix, rows[i].fix), "%s: %s",
                  rows[i].fix, d && d->fix ? d->fix : "no advice");
        ctx_free(ctx);
    }
}
