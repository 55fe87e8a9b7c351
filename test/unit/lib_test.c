/* The shipped library: every entry is instantiated, with parameters that it
 * takes and with ones that it refuses; footprints, maps, PTX and timelines are
 * checked against values worked out by hand. */
#include "ir/lib_entry.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Fixture {
    Ctx *ctx;
    Lib *lib;
    Arena *arena;
} Fixture;

static Fixture open_fixture(void)
{
    Fixture f = { .ctx = ctx_new(), .arena = arena_new() };
    f.lib = lib_new(f.ctx);
    cr_assert(lib_load_dir(f.lib, EXO_SOURCE_DIR "/lib"), "lib/ does not load");
    return f;
}

static void close_fixture(Fixture *f)
{
    arena_free(f->arena);
    ctx_free(f->ctx);
}

/* The arguments of a call `f(a, b=c)` as literals. */
static unsigned read_args(Fixture *f, const char *text, const Param **out)
{
    Build b;
    char call[600];
    Module *m = module_new(f->ctx);
    snprintf(call, sizeof call, "f(%s)", text);
    AstExpr *e =
        exo_syntax_expr(f->ctx, f->arena, (Loc){ 0 }, call, strlen(call));
    cr_assert(e, "bad row: %s", text);
    build_init(&b, m, NULL, f->arena);
    Param *p = ARENA_ARRAY(f->arena, Param, e->n);
    for (unsigned i = 1; i < e->n; i++) {
        const AstExpr *a = e->args[i];
        bool named = a->kind == AST_keyword;
        cr_assert(build_const(&b, named ? a->args[0] : a, &p[i - 1]));
        p[i - 1].name = named ? a->name : NULL;
    }
    module_free(m);
    *out = p;
    return e->n - 1;
}

static const Instr *instance(Fixture *f, const char *name, const char *args)
{
    const Param *p;
    unsigned n = read_args(f, args, &p);
    return instr_instance(f->lib, (Loc){ 0 }, name, n, p);
}

typedef struct Row {
    const char *name, *good, *bad, *message;
} Row;

#define BOX(n) "dst=f32, src=f32, "
static const Row instr_rows[] = {
    { "Sm80_cp_async_1d", "T=f32, size0=4", "T=f32, size0=3",
      "4, 8 or 16 bytes" },
    { "Sm80_cp_async_1d", "dst=f16, src=f16, size0=2",
      "dst=f16, src=f32, size0=2", "precision of 'src' differs" },
    { "Sm80_cp_async_2d", "T=f32, size0=2, size1=2", "T=f32, size0=4, size1=4",
      "4, 8 or 16 bytes" },
    { "Sm80_cp_async_f32", "size=4", "size=3", "4, 8 or 16 bytes" },
    { "Sm80_ldmatrix_16b", "T=bf16, nmat0=2, nmat1=2, operand='A'",
      "T=bf16, nmat0=2, nmat1=1", "4 matrices" },
    { "Sm80_ldmatrix_16b", "dst='f16', src='f16', nmat0=4, nmat1=1",
      "T=f32, nmat0=2, nmat1=2", "f16 or bf16" },
    { "Sm80_ldmatrix_32b", "T=f32, nmat0=1, nmat1=4",
      "T=f32, nmat0=2, nmat1=2, operand='C'", "'A' or 'B'" },
    { "Sm80_mma_m16n8", "D=f32, A=bf16, B=bf16, K_pack=2",
      "D=f32, A=bf16, B=f16, K_pack=2", "one type" },
    { "Sm80_mma_m16n8", "D=f32, A=f32, B=f32, K_pack=1",
      "D=f32, A=f32, B=f32, K_pack=2", "fill 32 bits" },
    { "Sm80_mma_m16n8", "D=f16, A=f16, B=f16, K_pack=2",
      "D=f16, A=bf16, B=bf16, K_pack=2", "f16 in f16" },
    { "Sm80_mma_m16n8", "D=i32, A=i8, B=ui8, K_pack=4",
      "D=i32, A=i32, B=i32, K_pack=1", "i8 and ui8 in i32" },
    { "Sm80_ldmatrix_8b", "T=ui8, nmat0=2, nmat1=2, operand='A'",
      "T=bf16, nmat0=2, nmat1=2", "i8 or ui8" },
    { "Sm80_mma_m16n8_zero", "D=f32", "D=bf16", "f32 or i32" },
    { "Sm80_mma_store_d_row_major_tf32", "", "T=f32",
      "no template argument 'T'" },
    { "Sm80_mma_store_d_col_major_tf32", "", "T=f32",
      "no template argument 'T'" },
    { "Sm80_mma_reduce_d_row_major_tf32", "", "T=f32",
      "no template argument 'T'" },
    { "Sm80_mma_reduce_d_col_major_tf32", "", "T=f32",
      "no template argument 'T'" },
    { "Sm80_mma_atomic_reduce_d_row_major_tf32", "", "T=f32",
      "no template argument 'T'" },
    { "Sm80_mma_atomic_reduce_d_col_major_tf32", "", "T=f32",
      "no template argument 'T'" },
    { "Sm90_tma_load_1d", "T=f32, size0=64, smem_box=(64, ), swizzle=0",
      "T=f32, size0=64, smem_box=(32, ), swizzle=0", "smem_box" },
    { "Sm90_tma_load_2d",
      "dst=bf16, src=bf16, size0=128, size1=64, smem_box=(128, 64)",
      "dst=bf16, src=bf16, size0=128, size1=64, smem_box=(64, 128)",
      "smem_box" },
    { "Sm90_tma_load_3d",
      "T=f16, size0=2, size1=8, size2=64, smem_box=(2, 1, 8, 64)",
      "T=f16, size0=2, size1=8, smem_box=(2, 8, 64)", "'size2' is missing" },
    { "Sm90_tma_load_4d",
      "T=f16, size0=2, size1=8, size2=2, size3=64, smem_box=(2, 8, 2, 64)",
      "T=f16, size0=2, size1=8, size2=2, size3=64, smem_box=(2, 8, 64)",
      "smem_box" },
    { "Sm90_tma_load_5d",
      "T=f16, size0=1, size1=2, size2=2, size3=2, size4=64, smem_box=(1, 2, 2, "
      "2, 64)",
      "T=f16, size0=1, size1=2, size2=2, size3=2, size4=64, smem_box=(2, 2, 2, "
      "2, 64)",
      "smem_box" },
    { "Sm90_tma_load_multicast_1d",
      "T=f32, ncta=2, size0=64, cta_stride=1, smem_box=(32, ), swizzle=128",
      "T=f32, ncta=2, size0=63, cta_stride=1, smem_box=(32, )",
      "multiple of ncta" },
    { "Sm90_tma_load_multicast_2d",
      "T=bf16, ncta=2, size0=256, size1=64, cta_stride=1, smem_box=(128, 64)",
      "T=bf16, ncta=2, size0=256, size1=64, cta_stride=1, smem_box=(256, 64)",
      "divided by ncta" },
    { "Sm90_tma_load_multicast_3d",
      "T=bf16, ncta=2, size0=4, size1=8, size2=64, cta_stride=2, smem_box=(2, "
      "8, 64)",
      "T=bf16, ncta=2, size0=4, size1=8, size2=64, cta_stride=0, smem_box=(2, "
      "8, 64)",
      "cta_stride" },
    { "Sm90_tma_load_multicast_4d",
      "T=bf16, ncta=1, size0=4, size1=8, size2=2, size3=64, cta_stride=1, "
      "smem_box=(4, 8, 2, 64)",
      "T=bf16, ncta=0, size0=4, size1=8, size2=2, size3=64, cta_stride=1, "
      "smem_box=(4, 8, 2, 64)",
      "multiple of ncta" },
    { "Sm90_tma_load_multicast_5d",
      "T=bf16, ncta=4, size0=4, size1=2, size2=2, size3=2, size4=64, "
      "cta_stride=1, "
      "smem_box=(1, 2, 2, 2, 64)",
      "T=bf16, ncta=4, size0=4, size1=2, size2=2, size3=2, size4=64, "
      "cta_stride=1, "
      "smem_box=(4, 2, 2, 2, 64)",
      "smem_box" },
    { "Sm90_tma_load_tf32_1d", "size0=64, smem_box=(64, ), swizzle=0",
      "size0=64, smem_box=(32, ), swizzle=0", "smem_box" },
    { "Sm90_tma_load_tf32_2d", "size0=128, size1=32, smem_box=(128, 32)",
      "size0=128, size1=32, smem_box=(32, 128)", "smem_box" },
    { "Sm90_tma_load_tf32_3d",
      "size0=2, size1=8, size2=32, smem_box=(2, 1, 8, 32)",
      "size0=2, size1=8, smem_box=(2, 8, 32)", "'size2' is missing" },
    { "Sm90_tma_load_tf32_4d",
      "size0=2, size1=8, size2=2, size3=32, smem_box=(2, 8, 2, 32)",
      "T=f32, size0=2, size1=8, size2=2, size3=32, smem_box=(2, 8, 2, 32)",
      "no template argument 'T'" },
    { "Sm90_tma_load_tf32_5d",
      "size0=1, size1=2, size2=2, size3=2, size4=32, smem_box=(1, 2, 2, 2, 32)",
      "size0=1, size1=2, size2=2, size3=2, size4=32, smem_box=(2, 2, 2, 2, 32)",
      "smem_box" },
    { "Sm90_tma_load_multicast_tf32_1d",
      "ncta=2, size0=64, cta_stride=1, smem_box=(32, )",
      "ncta=2, size0=63, cta_stride=1, smem_box=(32, )", "multiple of ncta" },
    { "Sm90_tma_load_multicast_tf32_2d",
      "ncta=2, size0=256, size1=32, cta_stride=1, smem_box=(128, 32)",
      "ncta=2, size0=256, size1=32, cta_stride=1, smem_box=(256, 32)",
      "divided by ncta" },
    { "Sm90_tma_load_multicast_tf32_3d",
      "ncta=2, size0=4, size1=8, size2=32, cta_stride=2, smem_box=(2, 8, 32)",
      "ncta=2, size0=4, size1=8, size2=32, cta_stride=0, smem_box=(2, 8, 32)",
      "cta_stride" },
    { "Sm90_tma_load_multicast_tf32_4d",
      "ncta=1, size0=4, size1=8, size2=2, size3=32, "
      "cta_stride=1, smem_box=(4, 8, 2, 32)",
      "ncta=0, size0=4, size1=8, size2=2, size3=32, "
      "cta_stride=1, smem_box=(4, 8, 2, 32)",
      "multiple of ncta" },
    { "Sm90_tma_load_multicast_tf32_5d",
      "ncta=2, size0=2, size1=2, size2=2, size3=2, size4=32, "
      "cta_stride=1, smem_box=(1, 2, 2, 2, 32)",
      "ncta=2, size0=2, size1=2, size2=2, size3=2, size4=32, "
      "cta_stride=1, smem_box=(2, 2, 2, 2, 32)",
      "divided by ncta" },
    { "Sm90_tma_store_1d", "T=f32, size0=64, smem_box=(64, ), swizzle=0",
      "T=f32, size0=64, smem_box=(64, ), swizzle=16", "swizzle" },
    { "Sm90_tma_store_2d", "T=bf16, size0=128, size1=64, smem_box=(128, 64)",
      "T=bf16, size0=128, size1=64, smem_box=64", "kind tuple" },
    { "Sm90_tma_store_3d",
      "T=bf16, size0=1, size1=128, size2=64, smem_box=(1, 128, 64)",
      "T=bf16, size0=1, size1=128, size2=64", "'smem_box' is missing" },
    { "Sm90_tma_store_4d",
      "T=bf16, size0=1, size1=1, size2=128, size3=64, smem_box=(1, 1, 128, 64)",
      "T=bf16, size0=1, size1=1, size2=128, size3=64, smem_box=(1, 1, 64, 64)",
      "smem_box" },
    { "Sm90_tma_store_5d",
      "T=bf16, size0=1, size1=1, size2=1, size3=128, size4=64, smem_box=(1, 1, "
      "1, 128, 64)",
      "T=bf16, size0=1, size1=1, size2=1, size3=128, size4=64, smem_box=(1, 1, "
      "1, 64, 64)",
      "smem_box" },
    { "Sm90_tma_reduce_add_1d", "T=f32, size0=64, smem_box=(64, )",
      "T=e4m3, size0=64, smem_box=(64, )", "a bulk reduction adds" },
    { "Sm90_tma_reduce_add_2d", "T=f32, size0=64, size1=32, smem_box=(64, 32)",
      "T=i8, size0=64, size1=32, smem_box=(64, 32)", "a bulk reduction adds" },
    { "Sm90_tma_reduce_add_3d",
      "T=f32, size0=1, size1=64, size2=32, smem_box=(1, 64, 32)",
      "T=f32, size0=1, size1=64, size2=32, smem_box=(1, 32, 64)", "smem_box" },
    { "Sm90_tma_reduce_add_4d",
      "T=f32, size0=1, size1=1, size2=64, size3=32, smem_box=(1, 1, 64, 32)",
      "T=f32, size0=1, size1=1, size2=64, size3=32, smem_box=(1, 1, 32, 64)",
      "smem_box" },
    { "Sm90_tma_reduce_add_5d",
      "T=f32, size0=1, size1=1, size2=1, size3=64, size4=32, smem_box=(1, 1, "
      "1, 64, 32)",
      "T=f32, size0=1, size1=1, size2=1, size3=64, size4=32, smem_box=(1, 1, "
      "1, 32, 64)",
      "smem_box" },
    { "Sm90_bulk_scatter", "T=f32, ncta=4, rows=8, cols=32, span=32",
      "T=f32, ncta=4, rows=8, cols=32, span=24", "rows for each CTA" },
    { "Sm90_bulk_scatter",
      "T=bf16, ncta=8, rows=16, cols=32, span=128, cta_stride=2, swizzle=64",
      "T=bf16, ncta=8, rows=4, cols=32, span=32, swizzle=64",
      "whole patterns of the swizzle" },
    { "Sm90_bulk_scatter", "T=ui8, ncta=2, rows=1, cols=16, span=2, swizzle=0",
      "T=ui8, ncta=2, rows=1, cols=8, span=2, swizzle=0",
      "multiples of 16 bytes" },
    { "Sm90_cluster_reduce_f32",
      "T=bf16, ncta=4, pitch=16, span=56, rows=8, cols=32",
      "T=bf16, ncta=4, pitch=16, span=48, rows=8, cols=32",
      "the rows of all CTAs" },
    { "Sm90_cluster_reduce_f32",
      "T=f32, ncta=2, pitch=4, span=7, rows=3, cols=36, cta_stride=2",
      "T=f32, ncta=2, pitch=4, span=7, rows=3, cols=34, cta_stride=2",
      "cols is a multiple of 4" },
    { "Sm90_tk_mma_row_col", "D=f32, A=bf16, B=bf16, N=256, K=64, swizzle=128",
      "D=f32, A=bf16, B=bf16, N=256, K=24", "32 bytes" },
    { "Sm90_tk_mma_row_col", "D=f32, A=f32, B=f32, N=128, K=32",
      "D=f32, A=f32, B=bf16, N=128, K=32", "one type" },
    { "Sm90_tk_mma_row_col", "D=f16, A=e4m3, B=e5m2, N=64, K=64",
      "D=f16, A=bf16, B=bf16, N=64, K=64", "goes with f16 or 8-bit" },
    { "Sm90_tk_mma_row_col", "D=f32, A=f16, B=f16, N=16, K=16, swizzle=32",
      "D=f32, A=f16, B=f16, N=264, K=16", "multiple of 8 up to 256" },
    { "Sm90_tk_mma_row_col", "D=f32, A=f16, B=f16, N=168, K=64",
      "D=f32, A=f16, B=f16, N=164, K=64", "multiple of 8 up to 256" },
    { "Sm90_tk_mma_row_row", "D=f32, A=bf16, B=bf16, N64=4, K=64",
      "D=f32, A=f32, B=f32, N64=4, K=64", "transposed operands have 16 bits" },
    { "Sm90_tk_mma_rmem_col", "D=f32, A=bf16, B=bf16, N=128, K=64",
      "D=f32, A=f32, B=f32, N=128, K=12", "32 bytes" },
    { "Sm90_tk_mma_rmem_col", "D=f32, A=f32, B=f32, N=128, K=24",
      "D=f16, A=f32, B=f32, N=128, K=24", "goes with f16 or 8-bit" },
    { "Sm90_tk_mma_rmem_col", "D=f16, A=e4m3, B=e5m2, N=128, K=96",
      "D=f32, A=i8, B=i8, N=128, K=96", "e4m3, e5m2, f16" },
    { "Sm90_tk_mma_rmem_row", "D=f32, A=f16, B=f16, N64=2, K=16",
      "D=f32, A=f16, B=f16, N64=5, K=16", "up to 256" },
    { "Sm90_tk_mma_col_col", "D=f32, A=f16, B=f16, N=128, K=16",
      "D=f32, A=f16, B=f16, N=128, K=16, swizzle=64", "swizzle of 128" },
    { "Sm90_tk_mma_col_row", "D=f32, A=f16, B=f16, N64=2, K=16",
      "D=i32, A=f16, B=f16, N64=2, K=16", "D of wgmma is f16 or f32" },
    { "Sm90_tk_zero_scale_d", "D=f32, N=256", "D=bf16, N=256", "f16 or f32" },
    { "cuda_tk_store_rs_cols",
      "dst=bf16, src=f32, rows=16, outer_cols=2, col0=64",
      "dst=bf16, src=f32, rows=16, outer_cols=2, col0=4",
      "col0 is a multiple" },
    { "cuda_tk_store_rs_cols_transposed",
      "dst=bf16, src=f32, rows=16, cols=24, col0=8",
      "dst=e4m3, src=f32, rows=16, cols=24, col0=8",
      "elements of 16 or 32 bits" },
    { "cuda_tk_store_rs_inner_cols_8",
      "dst=f32, src=f32, rows=16, outer_cols=2",
      "dst=f32, src=f32, rows=24, outer_cols=2", "multiple of 16" },
    { "cuda_tk_store_rs_inner_cols_16",
      "dst=bf16, src=f32, rows=16, outer_cols=2", "dst=bf16, src=f32, rows=16",
      "'outer_cols' is missing" },
    { "cuda_tk_store_rs_inner_cols_32",
      "dst=bf16, src=f32, rows=16, outer_cols=2",
      "dst=f64, src=f32, rows=16, outer_cols=2", "swizzle of shared memory" },
    { "cuda_tk_store_rs_inner_cols_64",
      "dst=bf16, src=f32, rows=16, outer_cols=4",
      "dst=bf16, src=f32, rows=16, outer_cols=0", "positive|outer_cols" },
    { "cuda_tk_store_rs_inner_cols_128",
      "dst=e4m3, src=f32, rows=16, outer_cols=1",
      "dst=bf16, src=f32, rows=16, outer_cols=1", "swizzle of shared memory" },
    { "cuda_tk_load_rs_inner_cols_8", "dst=f32, src=f32, rows=16, outer_cols=2",
      "dst=f32, src=f32, rows=24, outer_cols=1", "multiple of 16" },
    { "cuda_tk_load_rs_inner_cols_16",
      "dst=f32, src=bf16, rows=16, outer_cols=2",
      "dst=f32, src=bf16, rows=8, outer_cols=2", "multiple of 16" },
    { "cuda_tk_load_rs_inner_cols_32",
      "dst=f32, src=bf16, rows=16, outer_cols=2",
      "dst=f32, src=bf16, rows=16, outer_cols='a'", "kind int" },
    { "cuda_tk_load_rs_inner_cols_64",
      "dst=f32, src=bf16, rows=16, outer_cols=2",
      "dst=f32, src=bf16, rows=16, outer_cols=2, cols=1",
      "no template argument 'cols'" },
    { "cuda_tk_load_rs_inner_cols_128",
      "dst=f32, src=e5m2, rows=16, outer_cols=2",
      "dst=f32, src=bf16, rows=16, outer_cols=2", "swizzle of shared memory" },
    { "cuda_tk_load_rg", "dst=f32, src=bf16, size0=16, size1=32",
      "dst=f32, src=bf16, size0=16, size1=32, layout='all'", "'row' or 'col'" },
    { "cuda_tk_store_rg", "dst=f32, src=f32, size0=16, size1=32",
      "dst=f32, size0=16, size1=32", "'ST' is missing" },
    { "cuda_tk_load_sg", "T=bf16, size0=16, size1=64",
      "T=bf16, size0=16, size1=40", "multiples of 16" },
    { "cuda_tk_store_sg", "dst=f32, src=f32, size0=32, size1=16",
      "T=f32, size0=8, size1=16", "multiples of 16" },
    { "cuda_tk_load_vec_rs", "dst=f32, src=bf16, length=32, layout='ortho'",
      "dst=f32, src=bf16, length=40, layout='ortho'", "multiple of 16" },
    { "cuda_tk_store_vec_rs", "dst=f32, src=bf16, length=32, layout='naive'",
      "dst=f32, src=bf16, length=32, layout='all'", "'align', 'ortho'" },
    { "cuda_tk_vec_copy", "dst=f32, src=bf16, length=32, layout='align'",
      "dst=f32, length=32, layout='align'", "'ST' is missing" },
    { "cuda_tk_vec_copy_layout",
      "dst=f32, src=f32, length=16, dst_layout='align', src_layout='ortho'",
      "dst=f32, src=f32, length=16, dst_layout='align'",
      "'src_layout' is missing" },
    { "cuda_tk_tile_copy", "dst=f16, src=f32, rows=16, cols=32",
      "dst=f16, src=f32, cols=32", "'rows' is missing" },
    { "cuda_tk_tile_cols", "T=f32, rows=16, cols=32, col0=16",
      "T=f32, rows=16, cols=32, col0=-16", "col0 is not negative" },
#define TILE(f)                                                \
    {                                                          \
        "cuda_tk_" f, "T=f32, rows=16, cols=32, layout='row'", \
            "T=i32, rows=16, cols=32", "f32, f16 or bf16"      \
    }
#define VECTOR(f)                                             \
    {                                                         \
        "cuda_tk_vec_" f, "T=f16, length=32, layout='ortho'", \
            "T=f16, length=32", "'layout' is missing"         \
    }
#define BOTH(f) TILE("tile_" f), VECTOR(f)
#define BINARY(f)                                          \
    BOTH(f "_3op"), BOTH(f "_3op_scalar"), BOTH(f "_lhs"), \
        BOTH(f "_lhs_scalar"), BOTH(f "_rhs")
#define FILL(f) BOTH(f), TILE("make_causal_" f), TILE("make_causal_" f "_t")
    FILL("zero"),
    FILL("one"),
    FILL("pos_infty"),
    FILL("neg_infty"),
    FILL("pos_inf"),
    FILL("neg_inf"),
    BOTH("exp"),
    BOTH("exp2"),
    BOTH("log"),
    BOTH("log2"),
    BOTH("abs"),
    BOTH("relu"),
    BOTH("sigmoid"),
    BOTH("silu"),
    BOTH("gelu_tanh"),
    BOTH("add_reduce"),
    BOTH("add_reduce_scalar"),
    BINARY("max"),
    BINARY("min"),
    BINARY("add"),
    BINARY("sub"),
    BINARY("mul"),
    BINARY("div"),
    TILE("row_max"),
    TILE("row_min"),
    TILE("row_sum"),
    TILE("row_prod"),
    TILE("col_max"),
    TILE("col_min"),
    TILE("col_sum"),
    TILE("col_prod"),
    TILE("broadcast_row"),
    TILE("add_row"),
    TILE("sub_row"),
    TILE("mul_row"),
    TILE("div_row"),
    TILE("broadcast_col"),
    TILE("add_col"),
    TILE("sub_col"),
    TILE("mul_col"),
    TILE("div_col"),
#define COPY(n)                                                              \
    { "cudaMemcpyAsync_htod_" n "d", "dst=f32, src=f32", "dst=f32, src=f16", \
      "precision" },                                                         \
        { "cudaMemcpyAsync_dtoh_" n "d", "T=f32", "", "'T' is missing" },    \
    {                                                                        \
        "cudaMemsetAsync0_" n "d", "dst=f32", "dst=4", "kind type"           \
    }
#define OLD_COPY(n)                                                           \
    { "cudaMemcpyAsync_htod_" n, "", "T=f32", "no template argument 'T'" },   \
        { "cudaMemcpyAsync_dtoh_" n, "", "n=1", "no template argument 'n'" }, \
    {                                                                         \
        "cudaMemsetAsync0_" n, "", "dst=f32", "no template argument 'dst'"    \
    }
    OLD_COPY("1f32"),
    OLD_COPY("2f32"),
    OLD_COPY("3f32"),
    OLD_COPY("4f32"),
    OLD_COPY("5f32"),
    OLD_COPY("1i32"),
    OLD_COPY("2i32"),
    OLD_COPY("3i32"),
    OLD_COPY("4i32"),
    OLD_COPY("5i32"),
    COPY("1"),
    COPY("2"),
    COPY("3"),
    COPY("4"),
    COPY("5"),
    { "cuda_packed32_load", "T=f16, pack=2", "T=f16, pack=4", "fill 32 bits" },
    { "cuda_packed32_store", "T=f32, pack=1, mem='global'",
      "T=f32, pack=1, mem='local'", "'shared' or 'global'" },
    { "cuda_packed32_loadv_16b", "T=bf16, v=4", "T=bf16, v=3", "2 or 4 words" },
    { "cuda_packed32_loadv_32b", "T=i32, v=2", "T=f16, v=2", "32 bits" },
    { "cuda_packed32_storev_16b", "T=f16, v=2", "T=f32, v=2", "16 bits" },
    { "cuda_packed32_storev_32b", "T=f32, v=4", "T=f32, v=8", "2 or 4 words" },
    { "cuda_warp_broadcast_sync_1d", "T=f32", "T=f32, size0=16", "32 threads" },
    { "cuda_warp_broadcast_sync_2d", "T=i32, size0=8, size1=4",
      "T=f64, size0=8, size1=4", "32 bits" },
    { "cuda_shfl_xor_sync_1d", "T=f32, laneMask=4", "T=f32, laneMask=3",
      "power of two" },
    { "cuda_shfl_xor_sync_sum_1d", "laneMask=16", "laneMask=32",
      "power of two" },
};
enum { N_INSTR = sizeof instr_rows / sizeof *instr_rows };

static void check_error(const Ctx *ctx, const char *parts, const Row *row)
{
    bool found = false;
    char part[100];
    for (const Diag *d = ctx_diags(ctx); d; d = d->next) {
        bool all = true;
        for (const char *p = parts; *p;) {
            size_t n = strcspn(p, "|");
            snprintf(part, sizeof part, "%.*s", (int)n, p);
            all &= strstr(d->message, part) != NULL;
            p += n + (p[n] != 0);
        }
        found |= all;
    }
    cr_expect(found, "%s(%s): no error with '%s', but '%s'", row->name,
              row->bad, parts,
              ctx_diags(ctx) ? ctx_diags(ctx)->message : "none");
}

Test(lib, every_instruction_has_instances)
{
    for (unsigned i = 0; i < N_INSTR; i++) {
        const Row *row = &instr_rows[i];
        Fixture f = open_fixture();
        const Instr *in = instance(&f, row->name, row->good);
        cr_expect(in, "%s(%s): %s", row->name, row->good,
                  ctx_diags(f.ctx) ? ctx_diags(f.ctx)->message : "no error");
        if (in) {
            cr_expect_eq(in, instance(&f, row->name, row->good));
            cr_expect(in->unit && in->timeline && in->scope && in->body);
            cr_expect(in->hook || in->n_ptx, "%s", row->name);
            for (unsigned k = 0; k < in->n_params; k++)
                cr_expect(in->params[k].is_index || in->params[k].flags,
                          "%s: '%s' is neither read nor written", row->name,
                          in->params[k].name);
        }
        ctx_clear_diags(f.ctx);
        cr_expect(!instance(&f, row->name, row->bad), "%s(%s) accepted",
                  row->name, row->bad);
        check_error(f.ctx, row->message, row);
        close_fixture(&f);
    }
}

typedef struct Seen {
    unsigned instrs, missing;
} Seen;

static void see_entry(const char *kind, const char *name, void *user)
{
    Seen *s = user;
    bool found = false;
    if (strcmp(kind, "instr") != 0)
        return;
    s->instrs++;
    for (unsigned i = 0; i < N_INSTR; i++)
        found |= strcmp(instr_rows[i].name, name) == 0;
    cr_expect(found, "no row for the instruction %s", name);
    s->missing += !found;
}

Test(lib, every_instruction_has_a_row)
{
    Fixture f = open_fixture();
    Seen s = { 0, 0 };
    lib_list(f.lib, see_entry, &s);
    cr_expect(s.instrs > 50);
    cr_expect_eq(s.missing, 0);
    close_fixture(&f);
}

/* ---- what an instance says --------------------------------------------- */

static const InstrParam *param(const Instr *in, const char *name)
{
    for (unsigned i = 0; in && i < in->n_params; i++)
        if (!strcmp(in->params[i].name, name))
            return &in->params[i];
    cr_assert(false, "no parameter %s", name);
    return NULL;
}

static const char *ptx_text(Fixture *f, const Instr *in, unsigned i)
{
    StrBuf b = { 0 };
    cr_assert(i < in->n_ptx);
    for (unsigned k = 0; k < in->ptx[i].n; k++) {
        const PtxPiece *p = &in->ptx[i].pieces[k];
        if (p->text)
            strbuf_add(&b, p->text);
        else
            strbuf_addf(&b, "<%s:%lld>", in->params[p->param].name,
                        (long long)p->reg);
    }
    const char *s = arena_strdup(f->arena, strbuf_text(&b));
    strbuf_free(&b);
    return s;
}

Test(lib, cp_async_is_described)
{
    Fixture f = open_fixture();
    const Instr *in = instance(&f, "Sm80_cp_async_1d", "T=f32, size0=4");
    cr_assert(in);
    const InstrParam *dst = param(in, "dst"), *src = param(in, "src");
    cr_expect_eq(dst->flags, ACC_WRITE);
    cr_expect(dst->write_only && dst->out_of_order);
    cr_expect_eq(src->flags, ACC_READ);
    cr_expect(!src->write_only && src->out_of_order);
    cr_expect_eq(dst->bytes, 16);
    cr_expect_eq(dst->shape[0], 4);
    cr_expect_eq(in->n_ptx, 2);
    cr_expect_str_eq(ptx_text(&f, in, 0),
                     "cp.async.cg.shared.global [<dst:-1>], [<src:-1>], 16;");
    cr_expect_str_eq(ptx_text(&f, in, 1),
                     "cp.async.ca.shared.global [<dst:-1>], [<src:-1>], 16;");
    in = instance(&f, "Sm80_cp_async_1d", "T=f32, size0=2");
    cr_expect_eq(in->n_ptx, 1);
    cr_expect_str_eq(ptx_text(&f, in, 0),
                     "cp.async.ca.shared.global [<dst:-1>], [<src:-1>], 8;");
    cr_expect_str_eq(in->scope, "cuda");
    cr_expect_eq(in->trailing_mechanism, NULL);
    close_fixture(&f);
}

Test(lib, mma_is_described)
{
    Fixture f = open_fixture();
    const Instr *in =
        instance(&f, "Sm80_mma_m16n8", "D=f32, A=f16, B=f16, K_pack=2");
    cr_assert(in);
    cr_expect_eq(param(in, "D")->flags & ACC_REDUCE, ACC_REDUCE);
    cr_expect(!param(in, "D")->write_only);
    cr_expect_eq(param(in, "A")->n_distributed, 2);
    cr_expect_str_eq(
        ptx_text(&f, in, 0),
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {<D:-2>}, "
        "{<A:0>, <A:2>, <A:1>, <A:3>}, {<B:-2>}, {<D:-2>};");
    close_fixture(&f);
}

Test(lib, multicast_is_described)
{
    Fixture f = open_fixture();
    const Instr *in =
        instance(&f, "Sm90_tma_load_multicast_2d",
                 "dst=bf16, src=bf16, ncta=2, size0=256, size1=64, "
                 "cta_stride=1, smem_box=(128, 64), swizzle=128");
    cr_assert(in);
    const InstrParam *dst = param(in, "dst"), *src = param(in, "src");
    cr_expect_eq(dst->rank, 3);
    cr_expect_eq(dst->shape[0], 2);
    cr_expect_eq(dst->n_distributed, 1);
    cr_expect_str_eq(dst->distributed_units[0]->name, "cuda_cta_in_cluster");
    cr_expect_str_eq(dst->mem->name, "Sm90_SmemSwizzled");
    cr_expect(dst->write_only);
    cr_expect(src->allow_out_of_bounds);
    cr_expect_str_eq(src->mem->name, "Sm90_tensorMap");
    cr_expect_eq(src->mem->n_params, 3);
    cr_expect_eq(src->bytes, 256 * 64 * 2);
    cr_expect_str_eq(in->trailing_mechanism->name, "CudaMbarrier");
    cr_expect_eq(in->n_trailing_units, 1);
    cr_expect_eq(in->unit->scale, 2);
    cr_expect_str_eq(in->hook, "tma_load_multicast");
    cr_expect_eq(instr_targ_int(in, "ncta"), 2);
    close_fixture(&f);
}

Test(lib, wgmma_is_described)
{
    Fixture f = open_fixture();
    const Instr *in =
        instance(&f, "Sm90_tk_mma_row_col",
                 "D=f32, A=bf16, B=bf16, N=256, K=64, swizzle=128");
    const Instr *tf32 =
        instance(&f, "Sm90_tk_mma_row_col", "D=f32, A=f32, B=f32, N=256, K=32");
    cr_assert(in && tf32);
    cr_expect_eq(param(in, "D")->n_distributed, 1);
    cr_expect(!param(in, "D")->out_of_order && param(in, "A")->out_of_order);
    cr_expect_str_eq(in->timeline, "wgmma_async_instr");
    StrBuf text = { 0 };
    int rounded = 0;
    for (Op *op = tf32->body; op && op->n_blocks; op = op->blocks[0]->first)
        for (Op *o = op->blocks[0]->first; o; o = o->next)
            rounded += o->code == OP_arith_tf32;
    cr_expect_eq(rounded, 2);
    strbuf_free(&text);
    in = instance(&f, "Sm90_tk_zero_scale_d", "D=f32, N=256");
    cr_expect(param(in, "D")->write_only);
    in = instance(&f, "cuda_tk_store_rs_cols",
                  "dst=bf16, src=f32, rows=16, outer_cols=2, col0=64");
    cr_expect_eq(param(in, "dst")->shape[2], 64);
    cr_expect_eq(param(in, "src")->shape[1], -1);
    cr_expect(param(in, "dst")->write_only);
    close_fixture(&f);
}

Test(lib, host_copies_are_described)
{
    Fixture f = open_fixture();
    const Instr *in =
        instance(&f, "cudaMemcpyAsync_htod_2d", "dst=f32, src=f32");
    cr_assert(in);
    cr_expect_eq(in->n_params, 4);
    cr_expect(in->params[0].is_index && in->params[1].is_index);
    cr_expect_str_eq(in->params[1].name, "size1");
    cr_expect_eq(param(in, "dst")->shape[0], -1);
    cr_expect_str_eq(in->scope, "cpu");
    close_fixture(&f);
}

/* ---- memories, units, timelines ---------------------------------------- */

static const Mem *memory(Fixture *f, const char *name, const char *args)
{
    const Param *p;
    unsigned n = read_args(f, args, &p);
    return lib_mem(f->lib, (Loc){ 0 }, memref_get(f->ctx, name, n, p));
}

static const Row memory_rows[] = {
    { "DRAM", "", "1", "more arguments" },
    { "CudaGridConstant", "", "1", "more arguments" },
    { "CudaGmemLinear", "", "1", "more arguments" },
    { "CudaGmemAtomicity16B", "", "1", "more arguments" },
    { "CudaSmemAtomicity16B", "", "1", "more arguments" },
    { "CudaDeviceVisibleLinear", "", "1", "more arguments" },
    { "CudaBasicDeviceVisible", "", "1", "more arguments" },
    { "CudaDeviceVisibleAtomicity16B", "", "1", "more arguments" },
    { "CudaSmemLinear", "", "1", "more arguments" },
    { "Sm90_SmemSwizzled", "64", "16", "32, 64 or 128" },
    { "Sm90_tensorMap", "128, 128, 64", "128", "1 to 5 dimensions" },
    { "Sm90_tensorMap", "0, 1, 2, 3, 4, 5", "0, 1, 2, 3, 4, 5, 6",
      "1 to 5 dimensions" },
    { "Sm90_tensorMapTf32", "128, 128, 32", "128", "1 to 5 dimensions" },
    { "Sm90_tensorMapTf32", "64, 128, 16", "16, 128, 4", "0, 32, 64 or 128" },
    { "CudaRmem", "", "1", "more arguments" },
    { "CudaRmemLinear", "", "1", "more arguments" },
    { "CudaRmemUniform", "64", "0", "at least 1 thread" },
    { "CudaRmemPacked32", "", "1", "more arguments" },
    { "Sm80_RmemMatrixD", "16, 8", "16, 16", "16 x 8" },
    { "CudaTkWarpTileAny", "", "1", "more arguments" },
    { "CudaTkWarpTile", "16, 24", "16, 20", "multiple of 8" },
    { "CudaTkWarpTile", "16, 32, 'col'", "16, 24, 'col'", "multiple of 16" },
    { "CudaTkWarpTile", "16, 32, layout='col'", "16, 32, 'up'",
      "'row' or 'col'" },
    { "CudaTkWarpVec", "64, 'ortho'", "64, 'all'", "layout of a vector" },
    { "Sm90_TkRmemTileA", "64", "8", "multiple of 16" },
    { "Sm90_TkRmemTileA32", "24", "4", "multiple of 8" },
    { "Sm90_TkRmemTileA8", "64", "16", "multiple of 32" },
    { "Sm90_TkRmemTileD", "168", "164", "up to 256" },
    { "CudaMbarrier", "", "1", "more arguments" },
    { "CudaMbarrierPreArrive", "3", "-1", "not negative" },
    { "Sm80_CommitGroup", "", "1", "more arguments" },
    { "Sm90_TmaCommitGroup", "", "1", "more arguments" },
    { "Sm90_WgmmaCommitGroup", "", "1", "more arguments" },
    { "CudaClusterSync", "", "1", "more arguments" },
};
enum { N_MEMORY = sizeof memory_rows / sizeof *memory_rows };

Test(lib, every_memory_can_be_made)
{
    Fixture f = open_fixture();
    for (unsigned i = 0; i < N_MEMORY; i++) {
        const Row *row = &memory_rows[i];
        const Mem *m = memory(&f, row->name, row->good);
        cr_expect(m, "%s(%s)", row->name, row->good);
        cr_expect(m && m->qual_family, "%s has no timelines", row->name);
        ctx_clear_diags(f.ctx);
        cr_expect(!memory(&f, row->name, row->bad), "%s(%s)", row->name,
                  row->bad);
        check_error(f.ctx, row->message, row);
        ctx_clear_diags(f.ctx);
    }
    close_fixture(&f);
}

static void see_memory(const char *kind, const char *name, void *user)
{
    bool found = strcmp(kind, "memory") != 0;
    for (unsigned i = 0; i < N_MEMORY; i++)
        found |= strcmp(memory_rows[i].name, name) == 0;
    cr_expect(found, "no row for the memory %s", name);
    (void)user;
}

Test(lib, every_memory_has_a_row)
{
    Fixture f = open_fixture();
    lib_list(f.lib, see_memory, NULL);
    close_fixture(&f);
}

Test(lib, memories_stand_for_each_other)
{
    Fixture f = open_fixture();
    const Mem *gmem = memory(&f, "CudaGmemLinear", "");
    const Mem *any = memory(&f, "CudaDeviceVisibleAtomicity16B", "");
    const Mem *smem = memory(&f, "Sm90_SmemSwizzled", "128");
    const Mem *pre = memory(&f, "CudaMbarrierPreArrive", "3");
    const Mem *bar = memory(&f, "CudaMbarrier", "");
    cr_expect(mem_is_a(f.lib, gmem->ref, any->ref));
    cr_expect(mem_is_a(f.lib, smem->ref, any->ref));
    cr_expect(!mem_is_a(f.lib, any->ref, gmem->ref));
    cr_expect(!mem_is_a(f.lib, smem->ref, gmem->ref));
    cr_expect(mem_is_a(f.lib, pre->ref, bar->ref));
    cr_expect(!mem_is_a(f.lib, bar->ref, pre->ref));
    cr_expect_eq(memory(&f, "CudaRmem", ""), memory(&f, "CudaRmemLinear", ""));
    cr_expect_eq(pre->pre_arrive, 3);
    cr_expect_eq(smem->swizzle, 128);
    cr_expect_eq(lib_mem_find(f.lib, memref_get(f.ctx, "Nowhere", 0, NULL)),
                 NULL);
    cr_expect_eq(ctx_error_count(f.ctx), 0);
    close_fixture(&f);
}

static bool index_value(const Env *env, const Atom *atom, int64_t *out)
{
    *out = ((const int64_t *)env->user)[atom->var - 1];
    return atom->kind == ATOM_var;
}

/* A map of registers fills each register of each lane once. */
static void check_map(const Mem *m)
{
    bool seen[32 * 256] = { false };
    cr_assert(m && m->map_thread && m->packed >= 1 && m->packed <= 2);
    int64_t rows = m->packed_shape[0];
    int64_t cols = m->packed == 2 ? m->packed_shape[1] : 1;
    cr_expect_eq(32 * m->n_slots, rows * cols * m->n_copies);
    for (int64_t e = 0; e < rows * cols; e++) {
        int64_t at[2] = { e / cols, e % cols }, thread, slot;
        Env env = { index_value, at };
        cr_assert(affine_eval(m->map_thread, &env, &thread));
        cr_assert(affine_eval(m->map_slot, &env, &slot));
        for (int64_t k = 0; k < m->n_copies; k++, thread += m->copy_pitch) {
            cr_assert(thread >= 0 && thread < 32 && slot >= 0 &&
                      slot < m->n_slots);
            cr_expect(!seen[thread * m->n_slots + slot]);
            seen[thread * m->n_slots + slot] = true;
        }
    }
}

static void map_at(const Mem *m, int64_t r, int64_t c, int64_t thread,
                   int64_t slot)
{
    int64_t at[2] = { r, c }, t, s;
    Env env = { index_value, at };
    cr_assert(affine_eval(m->map_thread, &env, &t));
    cr_assert(affine_eval(m->map_slot, &env, &s));
    cr_expect_eq(t, thread);
    cr_expect_eq(s, slot);
}

Test(lib, register_maps_are_one_to_one)
{
    Fixture f = open_fixture();
    check_map(memory(&f, "Sm90_TkRmemTileD", "256"));
    check_map(memory(&f, "Sm90_TkRmemTileD", "16"));
    check_map(memory(&f, "Sm90_TkRmemTileD", "168"));
    check_map(memory(&f, "Sm90_TkRmemTileA", "64"));
    check_map(memory(&f, "Sm90_TkRmemTileA32", "24"));
    check_map(memory(&f, "Sm90_TkRmemTileA8", "64"));
    check_map(memory(&f, "CudaTkWarpVec", "48, 'ortho'"));
    check_map(memory(&f, "CudaTkWarpVec", "48, 'align'"));
    check_map(memory(&f, "CudaTkWarpVec", "48, 'naive'"));
    check_map(memory(&f, "Sm80_RmemMatrixD", "16, 8"));
    check_map(memory(&f, "CudaTkWarpTile", "32, 48"));
    check_map(memory(&f, "CudaTkWarpTile", "32, 48, 'col'"));
    map_at(memory(&f, "Sm90_TkRmemTileD", "64"), 0, 0, 0, 0);
    map_at(memory(&f, "Sm90_TkRmemTileD", "64"), 9, 3, 5, 3);
    map_at(memory(&f, "Sm90_TkRmemTileD", "64"), 15, 63, 31, 31);
    map_at(memory(&f, "Sm90_TkRmemTileA", "32"), 8, 24, 0, 14);
    map_at(memory(&f, "Sm90_TkRmemTileA32", "16"), 9, 13, 5, 7);
    map_at(memory(&f, "Sm90_TkRmemTileA8", "64"), 8, 53, 1, 29);
    close_fixture(&f);
}

static const Unit *unit(Fixture *f, int64_t scale, const char *name,
                        const char *args)
{
    const Param *p;
    unsigned n = read_args(f, args, &p);
    return lib_unit(f->lib, (Loc){ 0 }, unitref_get(f->ctx, scale, name, n, p));
}

Test(lib, units_are_read)
{
    Fixture f = open_fixture();
    const Unit *u = unit(&f, 2, "cuda_warp", "");
    cr_assert(u);
    cr_expect_eq(u->n, 1);
    cr_expect(u->domain[0].block_dim == 1 && u->domain[0].num == 1);
    cr_expect_eq(u->box[0].num, 64);
    u = unit(&f, 4, "cuda_cta_in_cluster_strided", "2");
    cr_assert(u);
    cr_expect_eq(u->n, 3);
    cr_expect(u->domain[0].cluster_dim == 1 && u->domain[0].den == 2);
    cr_expect_eq(u->domain[1].num, 2);
    cr_expect_eq(u->box[0].num, 4);
    cr_expect(u->box[2].block_dim == 1);
    u = unit(&f, 1, "cuda_agnostic_sub_cta", "");
    cr_expect(u && u->box[1].agnostic && !u->box[0].agnostic);
    cr_expect(!unit(&f, 2, "cuda_quadpair", ""));
    cr_expect(strstr(ctx_diags(f.ctx)->message, "cannot be scaled"));
    cr_expect(!unit(&f, 1, "cuda_sheep", ""));
    close_fixture(&f);
}

Test(lib, timelines_include_each_other)
{
    const SyncTimeline *order = sync_timeline_find("cuda_in_order");
    const SyncTimeline *temporal = sync_timeline_find("cuda_temporal");
    const SyncTimeline *both =
        sync_timeline_find("cuda_generic_and_async_proxy");
    const SyncTimeline *cp = sync_timeline_find("Sm80_cp_async");
    const SyncTimeline *generic = sync_timeline_find("Sm80_generic");
    cr_assert(order && temporal && both && cp && generic);
    cr_expect(sync_timeline_includes(order, temporal));
    cr_expect(sync_timeline_includes(both, order));
    cr_expect(sync_timeline_includes(generic, cp));
    cr_expect(!sync_timeline_includes(cp, temporal));
    cr_expect(!sync_timeline_includes(temporal, order));
    cr_expect(!sync_timeline_includes(order, both));
    cr_expect(!sync_timeline_find("cuda_in_order_instr"));
    cr_expect(instr_timeline_known("wgmma_async_instr"));
    cr_expect(!instr_timeline_known("wgmma_async"));
    uint32_t initial, extended;
    cr_expect(
        qual_family_lookup("ram", "Sm80_cp_async_instr", &initial, &extended));
    cr_expect_eq(initial, 1u << 5);
    cr_expect_eq(extended, 1u << 5 | 1u << 3);
    cr_expect(
        !qual_family_lookup("rmem", "wgmma_async_instr", &initial, &extended));
    cr_expect(qual_family_lookup("rmem_wgmma_d", "wgmma_zero_instr", &initial,
                                 &extended));
    cr_expect_eq(extended, 1u << 11 | 1u << 9);
    cr_expect_str_eq(qual_timeline(12)->name, "cuda_async_proxy_retired");
}
