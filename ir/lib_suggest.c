/* What to say of a name that no entry has: that what it stands for cannot be
 * supported, what an older name is called now, or which entry was meant: the
 * one with the smallest edit distance, when that is at most a third of the
 * name. */
#include "ir/lib_entry.h"

#include <string.h>

enum { LONGEST = 64 };

/* Names that Exo-GPU once had, and what says the same now. */
static const struct {
    const char *old, *now;
} old_names[] = {
    { "CudaCommitGroup",
      "Sm80_CommitGroup, Sm90_TmaCommitGroup or Sm90_WgmmaCommitGroup" },
    { "Sm90_RmemMatrixD", "Sm90_TkRmemTileD(N)" },
    { "Sm90_mma_async_tf32", "Sm90_tk_mma_row_col with f32 operands" },
    { "Sm90_zero_scale_d_f32", "Sm90_tk_zero_scale_d" },
    { "Sm90_multicast_copy_tensor_to_smem_swizzled_2f32",
      "Sm90_tma_load_multicast_2d" },
    { "Sm90_copy_tensor_to_smem_swizzled_2f32", "Sm90_tma_load_2d" },
    { "Sm90_copy_tensor_to_gmem_linear_2f32", "Sm90_tma_store_2d" },
    { "Sm90_reduce_tensor_to_gmem_linear_2f32", "Sm90_tma_reduce_add_2d" },
    { "Sm90_mma_store_d_col_major_tf32",
      "cuda_tk_store_rs_inner_cols_32 and Sm90_tma_store_2d" },
    { "get_cuda_packed32_loadv",
      "cuda_packed32_loadv_16b or cuda_packed32_loadv_32b" },
    { "get_cuda_packed32_storev",
      "cuda_packed32_storev_16b or cuda_packed32_storev_32b" },
    { "cuda_tk_load_rs_advice",
      "cuda_tk_load_rs_inner_cols_64, or another number of columns" },
    { "cuda_tk_store_rs_advice",
      "cuda_tk_store_rs_inner_cols_64, or another number of columns" },
};

static const char needs_sm_100[] =
    "it needs the tensor memory of sm_100, and code is made for sm_90a";

/* How names begin of what this compiler cannot make code for, and why. */
static const struct {
    const char *stem, *reason;
} unsupported[] = {
    { "tcgen05_", needs_sm_100 },
    { "Sm100_", needs_sm_100 },
    { "CudaTmem", needs_sm_100 },
};

const char *lib_unsupported(const char *name)
{
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (strncmp(name, unsupported[i].stem, strlen(unsupported[i].stem)) ==
            0)
            return unsupported[i].reason;
    return NULL;
}

const char *lib_unknown_text(Ctx *ctx, const char *what, const char *name)
{
    const char *why = lib_unsupported(name);
    return why ? arena_printf(ctx_arena(ctx), "%s '%s' is not supported: %s",
                              what, name, why)
               : arena_printf(ctx_arena(ctx), "unknown %s '%s'", what, name);
}

static const char *new_name(const char *name)
{
    for (size_t i = 0; i < sizeof old_names / sizeof *old_names; i++)
        if (strcmp(old_names[i].old, name) == 0)
            return old_names[i].now;
    return NULL;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Insertions, deletions and replacements from a to b; both at most LONGEST. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[LONGEST + 1];
    size_t n = strlen(a), m = strlen(b);
    for (unsigned k = 0; k <= m; k++)
        row[k] = k;
    for (unsigned i = 1; i <= n; i++) {
        unsigned before = row[0];
        row[0] = i;
        for (unsigned k = 1; k <= m; k++) {
            unsigned replace = before + (a[i - 1] != b[k - 1]);
            before = row[k];
            row[k] = least(replace, least(row[k], row[k - 1]) + 1);
        }
    }
    return row[m];
}

const char *lib_suggest(const Lib *lib, AstDeclKind kind, const char *name)
{
    const char *best = NULL;
    size_t length = strlen(name);
    unsigned limit = (unsigned)length / 3 + 1;
    if (length > LONGEST)
        return NULL;
    for (; lib; lib = lib->parent)
        for (size_t i = 0; i < lib->entries.len; i++) {
            const Entry *e = lib->entries.data[i];
            if ((kind != AST_proc && e->kind != kind) ||
                strlen(e->name) > LONGEST)
                continue;
            unsigned d = distance(name, e->name);
            if (d < limit) {
                limit = d;
                best = e->name;
            }
        }
    return best;
}

void lib_fix_name(const Lib *lib, Diag *d, AstDeclKind kind, const char *name,
                  const char *otherwise)
{
    if (lib_unsupported(name))
        return;
    const char *near = lib ? lib_suggest(lib, kind, name) : NULL;
    const char *now = lib ? new_name(name) : NULL;
    if (now)
        diag_fix(lib->ctx, d, "that is an older name: use %s", now);
    else if (near)
        diag_fix(lib->ctx, d, "did you mean %s?", near);
    else if (lib)
        diag_fix(lib->ctx, d, "%s", otherwise);
}
