/* The .exo front end on any bytes: it parses or reports, and what it accepts
 * prints as text that it accepts again and prints the same. */
#include "ir/exo.h"
#include "ir/lib.h"

#include <stdlib.h>
#include <string.h>

static const char library_text[] =
    "memory DRAM:\n    family cpu\n    scalar read, write\n    quals dram\n"
    "memory S[s: int]:\n    family shared\n    scalar read, write\n"
    "    quals ram\n"
    "memory M[w: int, box...: int]:\n    family map\n    quals ram\n"
    "memory B:\n    family barrier\n    barrier mbarrier\n    quals mbarrier\n"
    "unit cuda_thread = CollUnit((blockDim, ), (1, ), scaled_dim_idx=0)\n"
    "instr copy[n: int, T: type](d: [T][n] @ S(1), s: [T][n] @ S(1)):\n"
    "    unit cuda_thread\n    timeline cuda_in_order_instr\n"
    "    access d: in_order\n    access s: in_order\n"
    "    body:\n        for i in seq(0, n):\n            d[i] = s[i]\n"
    "    hook copy\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The print of a text in a context of its own; false when it is refused. */
static bool print_of(const char *text, size_t n, StrBuf *out)
{
    Ctx *ctx = ctx_new();
    Lib *lib = lib_new(ctx);
    uint32_t file =
        ctx_add_source(ctx, "lib.exo", library_text, sizeof library_text - 1);
    if (!lib_load_text(lib, file, false))
        panic("the library of the fuzzer does not load");
    Module *m =
        exo_parse(ctx, ctx_add_source(ctx, "fuzz.exo", text, n), lib, NULL);
    bool ok = m && exo_print(m, out);
    if (!m && ctx_error_count(ctx) == 0)
        panic("refused without an error");
    if (m && !ok)
        panic("read but not printed");
    module_free(m);
    ctx_free(ctx);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    StrBuf first = { 0 }, second = { 0 };
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    if (print_of(text, size, &first)) {
        if (first.len && !print_of(first.data, first.len, &second))
            panic("the print is refused:\n%s", first.data);
        if (strcmp(strbuf_text(&first), strbuf_text(&second)) != 0)
            panic("prints differ:\n%s----\n%s", strbuf_text(&first),
                  strbuf_text(&second));
    }
    strbuf_free(&first);
    strbuf_free(&second);
    free(text);
    return 0;
}
