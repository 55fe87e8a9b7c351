/* A registered source, so that errors show its line. */
#include "ir/diag.h"

#if EXO_WITH_JSON
#include "tools/json_file.h"

json_t *json_file_read(Ctx *ctx, const char *path, const char *code,
                       uint32_t *file)
{
    size_t n;
    json_error_t why;
    *file = ctx_read_source(ctx, path);
    if (!*file)
        return NULL;
    const char *text = ctx_source_text(ctx, *file, &n);
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!root) {
        uint32_t line = why.line > 0 ? (uint32_t)why.line : 1;
        diag_error(ctx, (Loc){ *file, line, 1 }, code, "this is not JSON: %s",
                   why.text);
    }
    return root;
}
#endif
