/* Any module that .eir can say is printed as .exo or refused with an error. */
#include "ir/eir.h"
#include "ir/exo.h"
#include "ir/lib.h"
#include "ir/wellformed.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    StrBuf out = { 0 };
    Ctx *ctx = ctx_new();
    uint32_t file = ctx_add_source(ctx, "fuzz.eir", (const char *)data, size);
    Module *m = eir_parse(ctx, file, lib_new(ctx));
    if (m && module_wellformed(m, NULL) && !exo_print(m, &out) &&
        ctx_error_count(ctx) == 0)
        panic("not printed, without an error");
    strbuf_free(&out);
    module_free(m);
    ctx_free(ctx);
    return 0;
}
