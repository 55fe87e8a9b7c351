#!/usr/bin/env python3
"""Every name of Exo-GPU's instruction catalogue: an entry of the library, or an
older name that is refused with the new one, or instances that are refused with
the reason. Written from the catalogue, row by row; a name that is lost fails."""

import os
import re
import subprocess
import sys
import tempfile

RANKS = range(1, 6)
BINARY = ("max", "min", "add", "sub", "mul", "div")
FILLS = ("zero", "one", "pos_infty", "neg_infty", "pos_inf", "neg_inf")


def element_wise(kind):
    """The operations that tiles and vectors share."""
    yield from (f"cuda_tk_{kind}_{f}" for f in FILLS)
    for f in ("copy", "exp", "exp2", "log", "log2", "abs", "relu",
              "add_reduce", "add_reduce_scalar"):
        yield f"cuda_tk_{kind}_{f}"
    for f in BINARY:
        for form in ("3op", "3op_scalar", "lhs", "lhs_scalar", "rhs"):
            yield f"cuda_tk_{kind}_{f}_{form}"


def present():
    """Names of entries, by section of the catalogue."""
    for n in RANKS:  # the host
        for stem in ("cudaMemcpyAsync_htod", "cudaMemcpyAsync_dtoh",
                     "cudaMemsetAsync0"):
            yield from (f"{stem}_{n}{end}" for end in ("d", "f32", "i32"))
    yield from ("cuda_packed32_load", "cuda_packed32_store")
    for bits in (16, 32):
        yield f"cuda_packed32_loadv_{bits}b"
        yield f"cuda_packed32_storev_{bits}b"
    yield from ("cuda_warp_broadcast_sync_1d", "cuda_warp_broadcast_sync_2d",
                "cuda_shfl_xor_sync_1d", "cuda_shfl_xor_sync_sum_1d")
    yield from ("Sm80_cp_async_1d", "Sm80_cp_async_2d", "Sm80_cp_async_f32",
                "Sm80_ldmatrix_16b", "Sm80_ldmatrix_32b", "Sm80_mma_m16n8",
                "Sm80_mma_m16n8_zero")
    for verb in ("store", "reduce", "atomic_reduce"):
        for major in ("row", "col"):
            yield f"Sm80_mma_{verb}_d_{major}_major_tf32"
    for n in RANKS:  # tensor copies
        for stem in ("load", "load_multicast", "store", "reduce_add"):
            yield f"Sm90_tma_{stem}_{n}d"
    for a in ("row", "rmem", "col"):
        for b in ("col", "row"):
            yield f"Sm90_tk_mma_{a}_{b}"
    yield "Sm90_tk_zero_scale_d"
    for place in ("rg", "sg", "vec_rs"):  # the wrappers on tiles
        yield from (f"cuda_tk_load_{place}", f"cuda_tk_store_{place}")
    for n in (8, 16, 32, 64, 128):
        yield f"cuda_tk_load_rs_inner_cols_{n}"
        yield f"cuda_tk_store_rs_inner_cols_{n}"
    yield from element_wise("tile")
    for f in FILLS:
        yield from (f"cuda_tk_make_causal_{f}", f"cuda_tk_make_causal_{f}_t")
    for axis in ("row", "col"):
        for f in ("max", "min", "sum", "prod"):
            yield f"cuda_tk_{axis}_{f}"
        for f in ("broadcast", "add", "sub", "mul", "div"):
            yield f"cuda_tk_{f}_{axis}"
    yield from element_wise("vec")
    yield "cuda_tk_vec_copy_layout"


# Older names and names of the scheduling library: refused, with what to write.
RENAMED = {
    "Sm90_mma_async_tf32": "Sm90_tk_mma_row_col",
    "Sm90_zero_scale_d_f32": "Sm90_tk_zero_scale_d",
    "Sm90_multicast_copy_tensor_to_smem_swizzled_2f32":
        "Sm90_tma_load_multicast_2d",
    "Sm90_copy_tensor_to_smem_swizzled_2f32": "Sm90_tma_load_2d",
    "Sm90_copy_tensor_to_gmem_linear_2f32": "Sm90_tma_store_2d",
    "Sm90_reduce_tensor_to_gmem_linear_2f32": "Sm90_tma_reduce_add_2d",
    "Sm90_mma_store_d_col_major_tf32": "cuda_tk_store_rs_inner_cols_32",
    "get_cuda_packed32_loadv": "cuda_packed32_loadv_16b",
    "get_cuda_packed32_storev": "cuda_packed32_storev_16b",
    "cuda_tk_load_rs_advice": "cuda_tk_load_rs_inner_cols_64",
    "cuda_tk_store_rs_advice": "cuda_tk_store_rs_inner_cols_64",
}

# What nothing can be made of for sm_90a: the tensor memory of sm_100, whatever
# is called so in a program. Each in the place where such a name stands.
SM_100 = ("needs the tensor memory of sm_100", [
    ("tcgen05_mma", "call"), ("tcgen05_cp", "call"), ("tcgen05_shift", "call"),
    ("tcgen05_ld", "call"), ("tcgen05_st", "call"),
    ("Sm100_tcgen05_mma", "call"),
    ("CudaTmem", "memory"), ("Sm100_Tmem", "memory"),
    ("tcgen05_commit", "timeline"), ("tcgen05_ld", "timeline"),
    ("tcgen05_st", "timeline"), ("tcgen05_mma_instr", "timeline"),
    ("tcgen05_mma_instr", "entry"), ("tcgen05_cp_instr", "entry"),
    ("tcgen05_shift_instr", "entry"), ("tcgen05_ld_instr", "entry"),
    ("tcgen05_st_instr", "entry"),
])

# Instances that are refused: call, reason.
REFUSED = [
    ("cuda_packed32_loadv_32b(r[0:8, 0:1], g[0:8], T=f32, v=8, mem='global')",
     "8 need sm_100"),
    ("cuda_warp_broadcast_sync_1d(r[0:16, 0], r[0:16, 0], 0, T=f32, size0=16)",
     "32 threads of a warp"),
    ("Sm80_mma_m16n8(m[0:16, 0:8], r[0:8, 0:1], r[0:8, 0:1], D=i32, A=i32, "
     "B=i32, K_pack=1)", "i8 and ui8 in i32"),
    ("Sm90_tk_mma_row_col(m[0:16, 0:8], g[0:8], g[0:8], D=i32, A=i8, B=i8, "
     "N=64, K=32)", "D of wgmma is f16 or f32"),
    ("Sm90_tk_mma_rmem_row(m[0:16, 0:8], g[0:8], g[0:8], D=f32, A=f32, B=f32, "
     "N64=1, K=32)", "transposed operands have 16 bits"),
    ("cuda_tk_tile_exp(m[0:16, 0:8], m[0:16, 0:8], T=e8m0, rows=16, cols=16)",
     "f32, f16 or bf16"),
    ("cuda_tk_store_rs_inner_cols_64(g[0:8], m[0:16, 0:8], DT=bf16, ST=bf16, "
     "rows=24, outer_cols=1)", "the rows of a tile are a multiple of 16"),
    ("Sm90_tma_reduce_add_1d(g[0:8], r[0:8, 0], T=e4m3, size0=8, "
     "smem_box=(8, ))", "a bulk reduction adds"),
]

PROGRAM = """\
def refused(g: f32[8] @ CudaGmemLinear):
    with CudaDeviceFunction(blockDim=32):
        for task in cuda_tasks(0, 1):
            m: f32[16, 8] @ Sm80_RmemMatrixD(16, 8)
            for t in cuda_threads(0, 1, unit=cuda_thread):
                r: f32[8, 1] @ CudaRmemPacked32
                {}
"""


ENTRY = """\
instr mine(dst: [f32][4] @ CudaRmem):
    unit cuda_thread
    timeline {}
    access dst: out_of_order
    body:
        for i in seq(0, 4):
            dst[i] = 0.0
    ptx sm_80: "nothing;"

def refused(x: f32[4] @ DRAM):
    pass
"""


def program_with(name, place):
    """A program in which that name stands at that place."""
    if place == "entry":
        return ENTRY.format(name)
    return PROGRAM.format({"call": f"{name}(g[0:8])",
                           "memory": f"q: f32[8] @ {name}",
                           "timeline": f"Fence({name}, cuda_in_order)"}[place])


def errors_of(program, path):
    """The exit status and what is printed for that program."""
    with open(path, "w", encoding="utf-8") as out:
        out.write(program)
    tool = os.path.join(os.environ.get("EXO_BIN", "build/bin"), "exo-opt")
    done = subprocess.run([tool, path, "--pass-pipeline=check-par"],
                          stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          timeout=60, check=False)
    return done.returncode, done.stdout


def main():
    tool = os.path.join(os.environ.get("EXO_BIN", "build/bin"), "exo-opt")
    listed = subprocess.run([tool, "--list-instructions=names"], text=True,
                            stdout=subprocess.PIPE, check=True).stdout.split()
    faults, passed = [], 0
    for name in present():
        passed += name in listed
        if name not in listed:
            faults.append(f"{name} is not in the library")
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "refused.exo")
        expected = [(program_with(old, "call"), f"older name: use .*{new}")
                    for old, new in RENAMED.items()]
        expected += [(PROGRAM.format(call), re.escape(text))
                     for call, text in REFUSED]
        expected += [(program_with(*at), f"'?{at[0]}'? .*{SM_100[0]}")
                     for at in SM_100[1]]
        faults += [f"{new}, the new name of {old}, is not in the library"
                   for old, new in RENAMED.items() if new not in listed]
        for program, text in expected:
            status, output = errors_of(program, path)
            good = status == 1 and re.search(text, output)
            passed += bool(good)
            if not good:
                faults.append(f"{program}: status {status}, no '{text}' in\n{output}")
    for fault in faults:
        print(f"FAIL: {fault}")
    print(f"{passed} passed, {len(faults)} failed, 0 skipped")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
