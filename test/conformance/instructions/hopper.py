"""Hopper's instructions: tensor copies of 1 to 5 dimensions with each swizzle,
wgmma with each pair of majors, types and widths, tile stores."""

import re

from cases import BYTES, Case, comma, spans

BOX = [2, 3, 2, 4]


# ---- tensor copies -------------------------------------------------------------

def tile_memory(swizzle):
    return f"Sm90_SmemSwizzled({swizzle})" if swizzle else "CudaSmemLinear"


def shapes(rank, swizzle, ty):
    """A box, and a tensor two boxes wide in each dimension but the first."""
    box = BOX[: rank - 1] + [(swizzle or 64) // BYTES[ty]]
    tensor = ["N"] + [2 * b for b in box[1:]]
    window = comma([f"{box[0]} * t:{box[0]} * t + {box[0]}"]
                   + [f"{b}:{2 * b}" for b in box[1:]])
    return box, tensor, window


def copy(rank, swizzle, ty, out, rounds=False):
    """A task loads a box by TMA, rounded to tf32 or as it is, and stores it, or
    adds it, elsewhere."""
    box, tensor, window = shapes(rank, swizzle, ty)
    memory = tile_memory(swizzle)
    rest = (comma(f"size{i}={b}" for i, b in enumerate(box))
            + f", smem_box=({comma(box)}, ), swizzle={swizzle}")
    types = f"dst={ty}, src={ty}, "
    load = f"Sm90_tma_load_{'tf32_' if rounds else ''}{rank}d"
    source = "Sm90_tensorMapTf32" if rounds else "Sm90_tensorMap"
    name = f"tma_{out}_{rank}d_{swizzle}_{'tf32' if rounds else ty}"
    return Case(name, (load, f"Sm90_tma_{out}_{rank}d"),
                f"""\
def {name}(N: size, x: {ty}[{comma(tensor)}] @ CudaGmemLinear,
           y: {ty}[{comma(tensor)}] @ CudaGmemLinear):
    assert N % 16 == 0
    x_map = x[{spans(tensor)}] @ {source}({swizzle}, {comma(box)})
    y_map = y[{spans(tensor)}] @ Sm90_tensorMap({swizzle}, {comma(box)})
    with CudaDeviceFunction(blockDim=32):
        for t in cuda_tasks(0, (N + {box[0] - 1}) / {box[0]}):
            raw: barrier[1 @ (ring_buffer_by(depth=1))] @ CudaMbarrier
            s: {ty}[{comma(box)}] @ {memory}
            cg: barrier @ Sm90_TmaCommitGroup
            {load}(s[{spans(box)}], x_map[{window}],
                {'' if rounds else types}{rest}) >> raw[0]
            Arrive(cuda_temporal, 1) >> raw[0]
            Await(raw[0], cuda_generic_and_async_proxy, 0)
            Sm90_tma_{out}_{rank}d(y_map[{window}], s[{spans(box)}], {types}{rest})
            Arrive(tma_to_gmem_async, 1) >> cg
            Await(cg, cuda_in_order, 0)
            Fence(cuda_in_order, cuda_in_order)
""", "N=48")


def multicast(rank, ncta, cta_stride, ty, rounds=False):
    """Each of ncta CTAs, cta_stride apart, has the whole box and stores a part
    of it; with a stride of 2 there are two such groups, of boxes of their own."""
    ncta = ncta if rank > 1 else 1
    box = [2 * ncta, 2, 3, 2][: rank - 1] + [128 // BYTES[ty]]
    part = [box[0] // ncta] + box[1:]
    tensor = ["N"] + box[1:]
    rest = [f"0:{b}" for b in box[1:]]
    groups = cta_stride
    start = f"{groups * box[0]} * t + {box[0]} * o"
    load = comma([f"{start}:{start} + {box[0]}"] + rest)
    mine = comma([f"{part[0]} * c:{part[0]} * c + {part[0]}"] + rest)
    store = comma([f"{start} + {part[0]} * c:"
                   f"{start} + {part[0]} * c + {part[0]}"] + rest)
    unit = "cuda_cta_in_cluster"
    strided = f"{unit}_strided({groups})" if groups > 1 else unit
    types = f"dst={ty}, src={ty}"
    sizes = [comma(f"size{i}={b}" for i, b in enumerate(s)) for s in (box, part)]
    load_box = f"Sm90_tma_load_multicast_{'tf32_' if rounds else ''}{rank}d"
    source = "Sm90_tensorMapTf32" if rounds else "Sm90_tensorMap"
    name = (f"tma_multicast_{rank}d_{ncta}_{cta_stride}_"
            f"{'tf32' if rounds else ty}")
    return Case(name, (load_box, ), f"""\
def {name}(N: size, x: {ty}[{comma(tensor)}] @ CudaGmemLinear,
           y: {ty}[{comma(tensor)}] @ CudaGmemLinear):
    assert N % 16 == 0
    x_map = x[{spans(tensor)}] @ {source}(128, {comma(part)})
    y_map = y[{spans(tensor)}] @ Sm90_tensorMap(128, {comma(part)})
    with CudaDeviceFunction(clusterDim={ncta * groups}, blockDim=32):
        for t in cuda_tasks(0, (N + {groups * box[0] - 1}) / {groups * box[0]}):
            raw: barrier[{ncta}, {groups}, 1 @ (ring_buffer_by(depth=1))] @ CudaMbarrier
            s: {ty}[{ncta}, {groups}, {comma(box)}] @ Sm90_SmemSwizzled(128)
            for o in cuda_threads(0, {groups}, unit={ncta} * {strided}):
                {load_box}(s[0:{ncta}, o, {spans(box)}], x_map[{load}],
                    {'' if rounds else types + ', '}ncta={ncta}, {sizes[0]}, cta_stride={cta_stride},
                    smem_box=({comma(part)}, ), swizzle=128) >> raw[0:{ncta}, o, 0]
                for c in cuda_threads(0, {ncta}, unit={strided}):
                    Arrive(cuda_temporal, 1) >> raw[0:{ncta}, o, 0] >> raw[c, o, 0]
                    Await(raw[c, o, 0], cuda_generic_and_async_proxy, 0)
                    cg: barrier @ Sm90_TmaCommitGroup
                    Sm90_tma_store_{rank}d(y_map[{store}], s[c, o, {mine}],
                        {types}, {sizes[1]}, smem_box=({comma(part)}, ), swizzle=128)
                    Arrive(tma_to_gmem_async, 1) >> cg
                    Await(cg, cuda_in_order, 0)
            Fence(cuda_in_order, cuda_in_order)
""", "N=48")


def every_cta(stride):
    unit = "cuda_cta_in_cluster"
    return f"{unit}_strided({stride})" if stride > 1 else unit


def cluster_reduce(ncta, cta_stride, rows, cols, swizzle, out):
    """Each CTA has rows for all of its group, adds up its own of all CTAs'."""
    groups = cta_stride
    height = ncta * rows
    memory, strided = tile_memory(swizzle), every_cta(groups)
    name = f"cluster_reduce_{ncta}_{cta_stride}_{rows}x{cols}_{swizzle}_{out}"
    return Case(name, ("Sm90_cluster_reduce_f32", ), f"""\
def {name}(N: size, x: f32[N, {ncta}, {groups}, {height}, {cols}] @ CudaGmemLinear,
           y: {out}[N, {ncta}, {groups}, {rows}, {cols}] @ CudaGmemLinear):
    with CudaDeviceFunction(clusterDim={ncta * groups}, blockDim=32):
        for t in cuda_tasks(0, N):
            s: f32[{ncta}, {groups}, {height}, {cols}] @ {memory}
            z: {out}[{ncta}, {groups}, {rows}, {cols}] @ CudaSmemLinear
            for o in cuda_threads(0, {groups}, unit={ncta} * {strided}):
                for c in cuda_threads(0, {ncta}, unit={strided}):
                    for j in cuda_threads(0, {cols}, unit=cuda_thread):
                        for i in seq(0, {height}):
                            s[c, o, i, j] = x[t, c, o, i, j]
            Fence(cuda_in_order, cuda_in_order)
            for o in cuda_threads(0, {groups}, unit={ncta} * {strided}):
                Sm90_cluster_reduce_f32(z[0:{ncta}, o, 0:{rows}, 0:{cols}],
                    s[0:{ncta}, o, 0:{height}, 0:{cols}], T={out}, ncta={ncta},
                    pitch={rows}, span={height}, rows={rows}, cols={cols},
                    cta_stride={cta_stride})
            Fence(cuda_in_order, cuda_in_order)
            for o in cuda_threads(0, {groups}, unit={ncta} * {strided}):
                for c in cuda_threads(0, {ncta}, unit={strided}):
                    for j in cuda_threads(0, {cols}, unit=cuda_thread):
                        for i in seq(0, {rows}):
                            y[t, c, o, i, j] = z[c, o, i, j]
            Fence(cuda_in_order, cuda_in_order)
""", "N=3")


def scatter(ncta, cta_stride, rows, cols, swizzle, ty):
    """Each CTA of a group sends each its rows, which leave as they came."""
    groups = cta_stride
    height = ncta * rows
    memory, strided = tile_memory(swizzle), every_cta(groups)
    name = f"bulk_scatter_{ncta}_{cta_stride}_{rows}x{cols}_{swizzle}_{ty}"
    shape = f"{ncta}, {groups}, {ncta}, {rows}, {cols}"
    return Case(name, ("Sm90_bulk_scatter", ), f"""\
def {name}(N: size, x: {ty}[N, {ncta}, {groups}, {height}, {cols}] @ CudaGmemLinear,
           y: {ty}[N, {shape}] @ CudaGmemLinear):
    with CudaDeviceFunction(clusterDim={ncta * groups}, blockDim=32):
        for t in cuda_tasks(0, N):
            got: barrier[{ncta}, {groups}, 1 @ (ring_buffer_by(depth=1))] @ CudaMbarrier
            s: {ty}[{ncta}, {groups}, {height}, {cols}] @ {memory}
            r: {ty}[{shape}] @ {memory}
            for o in cuda_threads(0, {groups}, unit={ncta} * {strided}):
                for c in cuda_threads(0, {ncta}, unit={strided}):
                    for j in cuda_threads(0, {cols}, unit=cuda_thread):
                        for i in seq(0, {height}):
                            s[c, o, i, j] = x[t, c, o, i, j]
            Fence(cuda_in_order, cuda_generic_and_async_proxy)
            for o in cuda_threads(0, {groups}, unit={ncta} * {strided}):
                Sm90_bulk_scatter(r[0:{ncta}, o, 0:{ncta}, 0:{rows}, 0:{cols}],
                    s[0:{ncta}, o, 0:{height}, 0:{cols}], T={ty}, ncta={ncta},
                    rows={rows}, cols={cols}, span={height}, cta_stride={cta_stride},
                    swizzle={swizzle}) >> got[0:{ncta}, o, 0]
                for c in cuda_threads(0, {ncta}, unit={strided}):
                    Arrive(cuda_temporal, 1) >> got[0:{ncta}, o, 0] >> got[c, o, 0]
                    Await(got[c, o, 0], cuda_in_order, 0)
                    for j in cuda_threads(0, {cols}, unit=cuda_thread):
                        for d in seq(0, {ncta}):
                            for i in seq(0, {rows}):
                                y[t, c, o, d, i, j] = r[c, o, d, i, j]
            Fence(cuda_in_order, cuda_in_order)
""", "N=3")


def tma(verb, dst, src, ty, sizes, swizzle):
    return (
        f"Sm90_tma_{verb}_2d({dst}, {src}, dst={ty}, src={ty}, "
        f"size0={sizes[0]}, size1={sizes[1]}, smem_box=({comma(sizes)}), "
        f"swizzle={swizzle})"
    )


def mma(a_major, b_major, types, n, swizzle, out):
    """One tile: C = A B by wgmma, stored through shared memory."""
    d, a, b = types
    across = a_major == "col" or b_major == "row"
    k = 64 if across else swizzle // BYTES[a]
    a_shape = [k, 64] if a_major == "col" else [64, k]
    b_rows = b_major == "row"
    b_tensor = [k, n] if b_rows else [n, k]
    b_shared = [n // 64, k, 64] if b_rows else [n, k]
    b_box = [k, 64] if b_rows else [n, k]
    inner = max(i for i in (8, 16, 32, 64, 128)
                if i * BYTES[out] <= 128 and n % i == 0)
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
    save = tma("store", f"c_map[0:64, {inner} * j:{inner} * j + {inner}]",
                f"c_s[j, 0:64, 0:{inner}]", out, [64, inner], span)
    name = f"mma_{a_major}_{b_major}_{d}_{a}_{b}_{n}_{swizzle}_{out}"
    entries = (f"Sm90_tk_mma_{a_major}_{b_major}", "Sm90_tk_zero_scale_d")
    return Case(name, entries, f"""\
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
                    {save}
                done: barrier @ Sm90_TmaCommitGroup
                Arrive(tma_to_gmem_async, 1) >> done
                Await(done, cuda_in_order, 0)
            Fence(cuda_in_order, cuda_in_order)
""")


def mma_registers(b_major, ty, n):
    """The same with A loaded from shared memory into registers first."""
    whole = mma("row", b_major, ("f32", ty, ty), n, 128, "f32")
    name, text = whole.name, whole.text
    k = 64 if b_major == "row" else 128 // BYTES[ty]
    tile = "Sm90_TkRmemTileA" + {1: "8", 2: "", 4: "32"}[BYTES[ty]]
    edits = [
        (name, name.replace("mma_row", "mma_rmem")),
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
        ("Sm90_tk_mma_row_", "Sm90_tk_mma_rmem_"),
        (f"0:{n}], a_s[0:64, 0:{k}]", f"0:{n}], a_r[0:4, 0:16, 0:{k}]"),
    ]
    for old, new in edits:
        if old not in text:
            raise ValueError(f"{name}: no '{old}' to edit")
        text = text.replace(old, new)
    return Case(edits[0][1], (f"Sm90_tk_mma_rmem_{b_major}", ), text)


def mma_in_cluster(a_major, b_major, types, n, out):
    """Each of two CTAs computes the tile, and stores 64 rows of C."""
    tile = mma(a_major, b_major, types, n, 128, out)
    name = tile.name + "_in_cluster"
    edits = [
        (tile.name, name),
        (f"C: {out}[64, {n}]", f"C: {out}[128, {n}]"),
        (f"C[0:64, 0:{n}]", f"C[0:128, 0:{n}]"),
        ("c_map[0:64, ", "c_map[64 * c:64 * c + 64, "),
        ("blockDim=128", "clusterDim=2, blockDim=128"),
    ]
    text = tile.text
    for old, new in edits:
        if old not in text:
            raise ValueError(f"{name}: no '{old}' to edit")
        text = text.replace(old, new)
    head, body = text.split("for t in cuda_tasks(0, 1):\n")
    shared = re.findall(r" +[abc]_s: .*\n", body)
    for line in shared:
        body = body.replace(line, "")
    body = re.sub(r"\b([abc]_s)\[", r"\1[c, ", body)
    *lines, last = body.splitlines(True)
    body = "".join("    " + line for line in lines) + last
    shared = "".join(line.replace("[", "[2, ", 1) for line in shared)
    return Case(name, tile.entries, head + f"""\
for t in cuda_tasks(0, 1):
{shared}            for c in cuda_threads(0, 2, unit=cuda_cta_in_cluster):
{body}""")


def cases():
    """Every case."""
    for rank in range(1, 6):
        for swizzle in (0, 32, 64, 128):
            for ty in ("f32", "f16", "bf16", "i32", "ui8"):
                yield copy(rank, swizzle, ty, "store")
            yield copy(rank, swizzle, "f32", "store", rounds=True)
            for ty in ("f32", "f16", "bf16", "i32"):
                yield copy(rank, swizzle, ty, "reduce_add")
        for ncta, cta_stride in ((1, 1), (2, 1), (4, 1), (2, 2)):
            if rank > 1 or ncta * cta_stride == 1:
                yield multicast(rank, ncta, cta_stride, "bf16")
                yield multicast(rank, ncta, cta_stride, "f32", rounds=True)
    for ncta, cta_stride in ((1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (2, 4)):
        for out in ("bf16", "f16", "f32"):
            yield cluster_reduce(ncta, cta_stride, 4, 32, 128, out)
        yield cluster_reduce(ncta, cta_stride, 8, 16, 64, "bf16")
        yield cluster_reduce(ncta, cta_stride, 16, 8, 32, "f32")
        yield cluster_reduce(ncta, cta_stride, 8, 32, 0, "f16")
        yield cluster_reduce(ncta, cta_stride, 3, 32, 128, "bf16")
        yield cluster_reduce(ncta, cta_stride, 9, 32, 128, "f32")
        yield scatter(ncta, cta_stride, 8, 32, 128, "f32")
        yield scatter(ncta, cta_stride, 16, 32, 64, "bf16")
        yield scatter(ncta, cta_stride, 8, 8, 32, "f32")
        yield scatter(ncta, cta_stride, 1, 16, 0, "ui8")
    eight = ("e4m3", "e5m2")
    for swizzle in (32, 64, 128):
        for ty in ("bf16", "f16", "f32") + eight:
            yield mma("row", "col", ("f32", ty, ty), 64, swizzle, "f32")
    for a in eight:
        for b in eight:
            for d in ("f16", "f32"):
                yield mma("row", "col", (d, a, b), 96, 128, d)
    for n in [n for n in range(8, 257, 8) if n != 64]:
        yield mma("row", "col", ("f32", "bf16", "bf16"), n, 128, "f32")
    yield mma("row", "col", ("f16", "f16", "f16"), 64, 128, "f16")
    yield mma("row", "col", ("f32", "bf16", "bf16"), 128, 128, "e4m3")
    for majors in (("row", "row"), ("col", "col"), ("col", "row")):
        for d, ty in (("f32", "bf16"), ("f32", "f16"), ("f16", "f16")):
            for n in (64, 128, 192, 256):
                yield mma(*majors, (d, ty, ty), n, 128, d)
    for majors in (("row", "col"), ("row", "row"), ("col", "col"),
                   ("col", "row")):
        yield mma_in_cluster(*majors, ("f32", "bf16", "bf16"), 192, "f32")
    for b_major in ("col", "row"):
        for ty in ("bf16", "f16") + (() if b_major == "row" else
                                     ("f32", ) + eight):
            for n in (64, 128):
                yield mma_registers(b_major, ty, n)
