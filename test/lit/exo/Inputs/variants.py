"""One small program for each variant of the library's Hopper instructions:
tensor copies of 1 to 5 dimensions with each swizzle, wgmma with each pair of
majors, types and widths, tile stores. Each is checked, run on the machine model
against its sequential reading, and written as PTX where the build can.

usage: variants.py PATH_OF_EXO_RUN SCRATCH [--all] [--ptx] [--gpu]
"""
import os
import subprocess
import sys

BYTES = {"f32": 4, "bf16": 2, "f16": 2, "e4m3": 1, "e5m2": 1}


def spans(extents):
    return ", ".join(f"0:{e}" for e in extents)


def comma(items):
    return ", ".join(map(str, items))


def copy_program(rank, swizzle, ty):
    """A task loads a box by TMA and stores it elsewhere by TMA."""
    inner = (swizzle or 64) // BYTES[ty]
    box = [2, 3, 2, 4][: rank - 1] + [inner]
    tensor = ["N"] + [2 * b for b in box[1:]]
    memory = f"Sm90_SmemSwizzled({swizzle})" if swizzle else "CudaSmemLinear"
    window = comma(
        [f"{box[0]} * t:{box[0]} * t + {box[0]}"]
        + [f"{b}:{2 * b}" for b in box[1:]]
    )
    sizes = comma(f"size{i}={b}" for i, b in enumerate(box))
    args = (
        f"dst={ty}, src={ty}, {sizes}, smem_box=({comma(box)}, ), "
        f"swizzle={swizzle}"
    )
    name = f"copy_{rank}d_{swizzle}_{ty}"
    return name, f"""\
def {name}(N: size, x: {ty}[{comma(tensor)}] @ CudaGmemLinear,
           y: {ty}[{comma(tensor)}] @ CudaGmemLinear):
    assert N % 8 == 0
    x_map = x[{spans(tensor)}] @ Sm90_tensorMap({swizzle}, {comma(box)})
    y_map = y[{spans(tensor)}] @ Sm90_tensorMap({swizzle}, {comma(box)})
    with CudaDeviceFunction(blockDim=32):
        for t in cuda_tasks(0, (N + {box[0] - 1}) / {box[0]}):
            raw: barrier[1 @ (ring_buffer_by(depth=1))] @ CudaMbarrier
            s: {ty}[{comma(box)}] @ {memory}
            cg: barrier @ Sm90_TmaCommitGroup
            Sm90_tma_load_{rank}d(s[{spans(box)}], x_map[{window}], {args}) >> raw[0]
            Arrive(cuda_temporal, 1) >> raw[0]
            Await(raw[0], cuda_generic_and_async_proxy, 0)
            Sm90_tma_store_{rank}d(y_map[{window}], s[{spans(box)}], {args})
            Arrive(tma_to_gmem_async, 1) >> cg
            Await(cg, cuda_in_order, 0)
            Fence(cuda_in_order, cuda_in_order)
"""


def tma(verb, dst, src, ty, sizes, swizzle):
    return (
        f"Sm90_tma_{verb}_2d({dst}, {src}, dst={ty}, src={ty}, "
        f"size0={sizes[0]}, size1={sizes[1]}, smem_box=({comma(sizes)}), "
        f"swizzle={swizzle})"
    )


def mma_program(a_major, b_major, types, n, swizzle, out):
    """One tile: C = A B by wgmma, stored through shared memory."""
    d, a, b = types
    across = a_major == "col" or b_major == "row"
    k = 64 if across else swizzle // BYTES[a]
    a_shape = [k, 64] if a_major == "col" else [64, k]
    b_rows = b_major == "row"
    b_tensor = [k, n] if b_rows else [n, k]
    b_shared = [n // 64, k, 64] if b_rows else [n, k]
    b_box = [k, 64] if b_rows else [n, k]
    inner = min(128 // BYTES[out], n)
    span = inner * BYTES[out]
    outer = n // inner
    width = f"N64={n // 64}" if b_rows else f"N={n}"
    load_a = tma("load", f"a_s[{spans(a_shape)}]", f"a_map[{spans(a_shape)}]",
                 a, a_shape, swizzle)
    if b_rows:
        load_b = f"""for j in seq(0, {n // 64}):
                    """ + tma("load", f"b_s[j, {spans(b_box)}]",
                              f"b_map[0:{k}, 64 * j:64 * j + 64]", b, b_box,
                              swizzle)
    else:
        load_b = tma("load", f"b_s[{spans(b_box)}]", f"b_map[{spans(b_box)}]",
                     b, b_box, swizzle)
    store = tma("store", f"c_map[0:64, {inner} * j:{inner} * j + {inner}]",
                f"c_s[j, 0:64, 0:{inner}]", out, [64, inner], span)
    name = f"mma_{a_major}_{b_major}_{d}_{a}_{b}_{n}_{swizzle}_{out}"
    return name, f"""\
def {name}(A: {a}[{comma(a_shape)}] @ CudaGmemLinear,
           B: {b}[{comma(b_tensor)}] @ CudaGmemLinear,
           C: {out}[64, {n}] @ CudaGmemLinear):
    a_map = A[{spans(a_shape)}] @ Sm90_tensorMap({swizzle}, {comma(a_shape)})
    b_map = B[{spans(b_tensor)}] @ Sm90_tensorMap({swizzle}, {comma(b_box)})
    c_map = C[0:64, 0:{n}] @ Sm90_tensorMap({span}, 64, {inner})
    with CudaDeviceFunction(blockDim=128):
        for t in cuda_tasks(0, 1):
            acc: {d}[4, 16, {n}] @ Sm90_TkRmemTileD({n})
            Sm90_tk_zero_scale_d(acc[0:4, 0:16, 0:{n}], D={d}, N={n})
            raw: barrier[1 @ (ring_buffer_by(depth=1))] @ CudaMbarrier
            cg: barrier @ Sm90_WgmmaCommitGroup
            a_s: {a}[{comma(a_shape)}] @ Sm90_SmemSwizzled({swizzle})
            b_s: {b}[{comma(b_shared)}] @ Sm90_SmemSwizzled({swizzle})
            with CudaWarps(0, 1):
                {load_a} >> raw[0]
                {load_b} >> raw[0]
                Arrive(cuda_temporal, 1) >> raw[0]
            Await(raw[0], cuda_generic_and_async_proxy, 0)
            Fence(wgmma_fence_1, wgmma_fence_2)
            Sm90_tk_mma_{a_major}_{b_major}(
                acc[0:4, 0:16, 0:{n}], a_s[{spans(a_shape)}],
                b_s[{spans(b_shared)}], D={d}, A={a}, B={b}, {width}, K={k},
                swizzle={swizzle})
            Arrive(wgmma_async, 1) >> cg
            Await(cg, cuda_in_order, 0)
            c_s: {out}[{outer}, 64, {inner}] @ Sm90_SmemSwizzled({span})
            for w in cuda_threads(0, 4, unit=cuda_warp):
                cuda_tk_store_rs_inner_cols_{inner}(
                    c_s[0:{outer}, 16 * w:16 * w + 16, 0:{inner}],
                    acc[w, 0:16, 0:{n}], dst={out}, src={d}, rows=16,
                    outer_cols={outer})
            Fence(cuda_in_order, cuda_generic_and_async_proxy)
            with CudaWarps(0, 1):
                for j in seq(0, {outer}):
                    {store}
                done: barrier @ Sm90_TmaCommitGroup
                Arrive(tma_to_gmem_async, 1) >> done
                Await(done, cuda_in_order, 0)
            Fence(cuda_in_order, cuda_in_order)
"""


def mma_registers_program(ty, n, out):
    """The same with A loaded from shared memory into registers first."""
    name, text = mma_program("row", "col", ("f32", ty, ty), n, 128, out)
    k = 128 // BYTES[ty]
    tile = "Sm90_TkRmemTileA" + {1: "8", 2: "", 4: "32"}[BYTES[ty]]
    edits = [
        (name, name.replace("row_col", "rmem_col")),
        (f"a_s: {ty}[64, {k}]",
         f"a_r: {ty}[4, 16, {k}] @ {tile}({k})\n"
         f"            a_s: {ty}[1, 64, {k}]"),
        (f"a_s[0:64, 0:{k}], a_map", f"a_s[0, 0:64, 0:{k}], a_map"),
        ("            Fence(wgmma_fence_1", f"""\
            for w in cuda_threads(0, 4, unit=cuda_warp):
                cuda_tk_load_rs_inner_cols_{k}(
                    a_r[w, 0:16, 0:{k}], a_s[0:1, 16 * w:16 * w + 16, 0:{k}],
                    dst={ty}, src={ty}, rows=16, outer_cols=1)
            Fence(wgmma_fence_1"""),
        ("Sm90_tk_mma_row_col(", "Sm90_tk_mma_rmem_col("),
        (f"0:{n}], a_s[0:64, 0:{k}]", f"0:{n}], a_r[0:4, 0:16, 0:{k}]"),
    ]
    for old, new in edits:
        if old not in text:
            sys.exit(f"{name}: no '{old}' to edit")
        text = text.replace(old, new)
    return edits[0][1], text


def programs(every):
    """Name, text and sizes of each program."""
    for rank in range(1, 6) if every else (3, ):
        for swizzle in (0, 32, 64, 128):
            for ty in ("f32", "bf16") if every else ("bf16", ):
                yield copy_program(rank, swizzle, ty) + ("N=40", )
    cases = [
        ("row", "col", ("f32", "f32", "f32"), 64, 32, "f32"),
        ("row", "row", ("f32", "bf16", "bf16"), 128, 128, "f32"),
        ("col", "col", ("f32", "bf16", "bf16"), 64, 128, "bf16"),
        ("row", "col", ("f32", "e4m3", "e5m2"), 64, 64, "f32"),
    ]
    if every:
        for swizzle in (32, 64, 128):
            for ty in ("bf16", "f16", "f32", "e4m3", "e5m2"):
                cases.append(
                    ("row", "col", ("f32", ty, ty), 64, swizzle, "f32"))
        for n in (16, 32, 96, 128, 256):
            cases.append(("row", "col", ("f32", "bf16", "bf16"), n, 128, "f32"))
        cases += [
            ("row", "col", ("f16", "f16", "f16"), 64, 128, "f16"),
            ("row", "col", ("f16", "e4m3", "e4m3"), 64, 64, "f16"),
            ("row", "row", ("f32", "f16", "f16"), 64, 128, "bf16"),
            ("col", "row", ("f32", "f16", "f16"), 256, 128, "f16"),
            ("row", "col", ("f32", "bf16", "bf16"), 128, 128, "e4m3"),
        ]
    yield mma_registers_program("bf16", 64, "f32") + (None, )
    if every:
        for case in (("f16", 128, "f16"), ("f32", 64, "f32"),
                     ("e4m3", 64, "f32"), ("e5m2", 32, "bf16")):
            yield mma_registers_program(*case) + (None, )
    for case in cases:
        yield mma_program(*case) + (None, )


def main():
    tool, scratch = sys.argv[1:3]
    folder = os.path.dirname(tool)
    options = sys.argv[3:]
    os.makedirs(scratch, exist_ok=True)
    failed = count = 0
    for name, text, sizes in programs("--all" in options):
        path = os.path.join(scratch, name + ".exo")
        ptx = os.path.join(scratch, name + ".ptx")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        size = ["--size", sizes] if sizes else []
        run = [os.path.join(folder, "exo-run"), path, *size, "--check"]
        steps = [
            [os.path.join(folder, "exo-check"), path, *size],
            run + ["--level=async"],
        ]
        if "--ptx" in options or "--gpu" in options:
            steps.append([os.path.join(folder, "exo-translate"), path,
                          "--to=ptx", "-o", ptx])
        if "--gpu" in options:
            steps.append(run + ["--level=gpu", "--ptx=" + ptx])
        for step in steps:
            count += 1
            done = subprocess.run(step, capture_output=True, text=True)
            if done.returncode != 0:
                failed += 1
                print(*step, f": status {done.returncode}", sep=" ")
                print(done.stdout, done.stderr, sep="\n")
                break
    print(f"{count} steps, {failed} failed")
    sys.exit(1 if failed or not count else 0)


main()
