"""Writes small programs whose Arrives and Awaits on a wgmma group stand in
loops, ifs and out of order, and runs each on the machine model: what the
checks accept is lowered and right, what they refuse is said at its line.

wgmma_waits.py FOLDER EXO_RUN"""
import pathlib
import subprocess
import sys

HEAD = """def f(N: size, A: f16[64, 64] @ CudaGmemLinear,
      B: f16[64, 64] @ CudaGmemLinear, C: f16[2, 64, 64] @ CudaGmemLinear):
    a_map = A[0:64, 0:64] @ Sm90_tensorMap(128, 64, 64)
    b_map = B[0:64, 0:64] @ Sm90_tensorMap(128, 64, 64)
    with CudaDeviceFunction(blockDim=128):
        for t in cuda_tasks(0, 1):
            acc0: f32[4, 16, 64] @ Sm90_TkRmemTileD(64, )
            acc1: f32[4, 16, 64] @ Sm90_TkRmemTileD(64, )
            full: barrier[1 @ (ring_buffer_by(depth=1))] @ CudaMbarrier
            group: barrier @ Sm90_WgmmaCommitGroup
            a_s: f16[64, 64] @ Sm90_SmemSwizzled(128, )
            b_s: f16[64, 64] @ Sm90_SmemSwizzled(128, )
            Sm90_tk_zero_scale_d(acc0[0:4, 0:16, 0:64], DT=f32, N=64)
            Sm90_tk_zero_scale_d(acc1[0:4, 0:16, 0:64], DT=f32, N=64)
            with CudaWarps(0, 1):
                Sm90_tma_load_2d(a_s[0:64, 0:64], a_map[0:64, 0:64], T=f16, size0=64, size1=64, smem_box=(64, 64), swizzle=128) >> full[0]
                Sm90_tma_load_2d(b_s[0:64, 0:64], b_map[0:64, 0:64], T=f16, size0=64, size1=64, smem_box=(64, 64), swizzle=128) >> full[0]
                Arrive(cuda_temporal, 1) >> full[0]
            Await(full[0], cuda_generic_and_async_proxy, 0)
"""
END = ["Fence(cuda_in_order, cuda_in_order)"]


def mma(acc):
    return ["Fence(wgmma_fence_1, wgmma_fence_2)",
            f"Sm90_tk_mma_row_col({acc}[0:4, 0:16, 0:64], a_s[0:64, 0:64], "
            "b_s[0:64, 0:64], DT=f32, AT=f16, BT=f16, N=64, K=64, "
            "swizzle=128)"]


def store(acc, at):
    return ["for w in cuda_threads(0, 4, unit=cuda_warp):",
            f"    cuda_tk_store_rg(C[{at}, 16 * w:16 * w + 16, 0:64], "
            f"{acc}[w, 0:16, 0:64], DT=f16, ST=f32, size0=16, size1=64)"] + END


M, M1 = mma("acc0"), mma("acc1")
A = ["Arrive(wgmma_async, 1) >> group"]
W = ["Await(group, cuda_in_order, 0)"]
W1 = ["Await(group, cuda_in_order, 1)"]
S, S1 = store("acc0", 0), store("acc1", 1)


def inside(head, body):
    return [head + ":"] + ["    " + line for line in body]


def loop(body, trips="1", name="z"):
    return inside(f"for {name} in seq(0, {trips})", body)


def when(cond, then, otherwise):
    return inside(f"if {cond}", then) + inside("else", otherwise)


RIGHT = {
    "await in a loop of one trip": M + A + loop(W) + S,
    "await in a loop of N trips": M + A + loop(W, "N") + S,
    "await in both arms": M + A + when("N > 1", W, W) + S,
    "await and store in both arms": M + A + when("N > 1", W + S, W + S),
    "wgmma in one loop, await in the next":
        loop(M + A, "N") + loop(W, "N") + S,
    "await of the trip before": loop(W + M + A, "N") + W + S,
    "await in a loop in a loop": loop(M + A + loop(W, "1", "y") + S, "N"),
    "store after an await from the second trip on":
        loop(inside("if z > 0", W + S) + M + A, "N") + W + S,
    "arrive in a loop": M + loop(A) + W + S,
    "arrive in both arms": M + when("N > 1", A, A) + W + S,
    "arrive in one arm, and after it": M + inside("if N > 1", A) + A + W + S,
    "await between a wgmma and its arrive": M + A + M1 + W + A + W + S + S1,
    "store of what is complete before another is committed":
        M + A + M1 + W + S + A + W + S1,
    "await without a group": W + M + A + W + S,
    "two awaits": M + A + W + W + S,
    "an older group": M + A + M1 + A + W1 + S + W + S1,
    "an empty group behind": M + A + A + W1 + S + W,
    "wgmma and arrive in an if": when("N > 1", M + A, M + A) + W + S,
}
REFUSED = {
    "await in a loop that may not run": M + A + loop(W, "N - 1") + S,
    "await in one arm": M + A + inside("if N > 1", W) + S,
    "await before the arrive": M + W + S + A + W,
    "an older group, by a loop that may not run":
        M + A + loop(A, "N - 1") + W1 + S + W,
}


def run(folder, tool, name, lines):
    path = pathlib.Path(folder, name.replace(" ", "_") + ".exo")
    path.write_text(HEAD + "".join(" " * 12 + x + "\n" for x in lines + END))
    out = subprocess.run(
        [tool, path, "--size", "N=3", "--level=async", "--check", "--seeds=4"],
        capture_output=True, text=True, check=False)
    text = out.stdout + out.stderr
    if text.count("agrees") == 4:
        return "right"
    return "refused" if "may be in flight" in text else "wrong: " + text


for names, expected in ((RIGHT, "right"), (REFUSED, "refused")):
    for what, body in names.items():
        found = run(sys.argv[1], sys.argv[2], what, body)
        print(f"{what}: {found}")
        assert found == expected, found
print(len(RIGHT), "right", len(REFUSED), "refused")
