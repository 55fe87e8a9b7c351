"""Ampere's instructions, those of every CUDA device, and the host's."""

from cases import BYTES, Case, comma, spans


# ---- host ----------------------------------------------------------------------

def host(rank, ty, old):
    """Copies to the device and back, and a fill."""
    sizes = [3, 2, 4, 2][: rank - 1]
    shape = comma(["N"] + sizes)
    args = comma(["N"] + sizes)
    window = spans(["N"] + sizes)
    index = comma(["i"] + ["0"] * (rank - 1))
    suffix = f"{rank}{ty}" if old else f"{rank}d"
    types = "" if old else f", dst={ty}, src={ty}"
    fill = "" if old else f", dst={ty}"
    name = f"host_{suffix}_{ty}"
    stems = ("cudaMemcpyAsync_htod", "cudaMemcpyAsync_dtoh", "cudaMemsetAsync0")
    return Case(name, tuple(f"{stem}_{suffix}" for stem in stems), f"""\
def {name}(N: size, x: {ty}[{shape}], y: {ty}[{shape}], z: {ty}[{shape}]):
    d: {ty}[{shape}] @ CudaGmemLinear
    e: {ty}[{shape}] @ CudaGmemLinear
    cudaMemcpyAsync_htod_{suffix}({args}, d[{window}], x[{window}]{types})
    cudaMemsetAsync0_{suffix}({args}, e[{window}]{fill})
    with CudaDeviceFunction(blockDim=32):
        for b in cuda_tasks(0, (N + 31) / 32):
            for t in cuda_threads(0, 32):
                for i in seq(0, N):
                    if i == 32 * b + t:
                        e[{index}] += d[{index}]
    cudaMemcpyAsync_dtoh_{suffix}({args}, y[{window}], d[{window}]{types})
    cudaMemcpyAsync_dtoh_{suffix}({args}, z[{window}], e[{window}]{types})
""", "N=40")


# ---- shuffles --------------------------------------------------------------------

def shuffle(name, entry, ty, shape, call):
    """Values of threads, in registers, put through one call."""
    loops, index, indent = "", [], 12
    left = 32
    for i, n in enumerate(shape):
        left //= n
        unit = f"{left} * cuda_thread" if left > 1 else "cuda_thread"
        loops += " " * indent + f"for t{i} in cuda_threads(0, {n}, unit={unit}):\n"
        index.append(f"t{i}")
        indent += 4
    at = comma(index)
    pad = " " * indent
    return Case(name, (entry, ), f"""\
def {name}(x: {ty}[{comma(shape)}] @ CudaGmemLinear,
           y: {ty}[{comma(shape)}] @ CudaGmemLinear):
    with CudaDeviceFunction(blockDim=32):
        for b in cuda_tasks(0, 1):
            r: {ty}[{comma(shape)}] @ CudaRmem
            q: {ty}[{comma(shape)}] @ CudaRmem
{loops}{pad}r[{at}] = x[{at}]
{call}
{loops}{pad}y[{at}] = q[{at}]
""")


def broadcasts(ty):
    """From one lane to all."""
    yield shuffle(f"broadcast_1d_{ty}", "cuda_warp_broadcast_sync_1d", ty, [32],
                  "            cuda_warp_broadcast_sync_1d(q[0:32], r[0:32], 5, "
                  f"T={ty}, size0=32)")
    for a in (2, 4, 8, 16):
        b = 32 // a
        yield shuffle(
            f"broadcast_2d_{a}_{ty}", "cuda_warp_broadcast_sync_2d", ty, [a, b],
            f"            cuda_warp_broadcast_sync_2d(q[0:{a}, 0:{b}], "
            f"r[0:{a}, 0:{b}], {a - 1}, 1, T={ty}, size0={a}, size1={b})")


def exchange(entry, ty, mask):
    """Pairs of lanes, mask apart."""
    outer, inner = 16 // mask, mask
    types = f"T={ty}, " if entry == "cuda_shfl_xor_sync_1d" else ""
    call = f"""\
            for t0 in cuda_threads(0, {outer}, unit={2 * mask} * cuda_thread):
                for t2 in cuda_threads(0, {inner}, unit=2 * cuda_threads_strided(1, {mask})):
                    {entry}(q[t0, 0:2, t2], r[t0, 0:2, t2], {types}laneMask={mask})"""
    return shuffle(f"{entry[5:]}_{mask}_{ty}", entry, ty, [outer, 2, inner],
                   call)


# ---- packed registers, cp.async ------------------------------------------------------

def packed(entry, ty, shape):
    """Global to registers to shared, and back."""
    row = spans(shape)
    flat = 1
    for n in shape:
        flat *= n
    v = f"v={shape[0]}" if len(shape) > 1 else f"pack={flat}"
    load, store = (entry.replace("load", verb) for verb in ("load", "store"))
    name = f"{entry[5:]}_{flat}_{ty}"
    move = f"dst={ty}, src={ty}, {v}, mem="
    return Case(name, (load, store), f"""\
def {name}(x: {ty}[32, {flat}] @ CudaGmemLinear, y: {ty}[32, {flat}] @ CudaGmemLinear):
    with CudaDeviceFunction(blockDim=32):
        for b in cuda_tasks(0, 1):
            s: {ty}[32, {flat}] @ CudaSmemLinear
            for t in cuda_threads(0, 32):
                r: {ty}[{comma(shape)}] @ CudaRmemPacked32
                q: {ty}[{comma(shape)}] @ CudaRmemPacked32
                {load}(r[{row}], x[t, 0:{flat}], {move}'global')
                {store}(s[t, 0:{flat}], r[{row}], {move}'shared')
                {load}(q[{row}], s[t, 0:{flat}], {move}'shared')
                {store}(y[t, 0:{flat}], q[{row}], {move}'global')
            Fence(cuda_in_order, cuda_in_order)
""")


def cp_async(entry, ty, shape):
    """Global to shared; each thread copies its own few bytes."""
    sizes = (f"size={shape[0]}" if entry == "Sm80_cp_async_f32" else
             f"dst={ty}, src={ty}, "
             + comma(f"size{i}={n}" for i, n in enumerate(shape)))
    loops = "".join(f"{' ' * (16 + 4 * i)}for i{i} in seq(0, {n}):\n"
                    for i, n in enumerate(shape))
    at = comma(f"i{i}" for i in range(len(shape)))
    pad = " " * (16 + 4 * len(shape))
    name = f"{entry[5:]}_{'x'.join(map(str, shape))}_{ty}"
    return Case(name, (entry, ), f"""\
def {name}(x: {ty}[32, {comma(shape)}] @ CudaGmemLinear,
           y: {ty}[32, {comma(shape)}] @ CudaGmemLinear):
    with CudaDeviceFunction(blockDim=32):
        for b in cuda_tasks(0, 1):
            s: {ty}[32, {comma(shape)}] @ CudaSmemLinear
            for t in cuda_threads(0, 32):
                {entry}(s[t, {spans(shape)}], x[t, {spans(shape)}], {sizes})
            Fence(Sm80_generic, cuda_in_order)
            for t in cuda_threads(0, 32):
{loops}{pad}y[t, {at}] = s[t, {at}]
            Fence(cuda_in_order, cuda_in_order)
""")


# ---- mma.sync ------------------------------------------------------------------------

def stage(name, ty, rows, cols):
    """A tensor into shared memory, by the threads of a warp."""
    return f"""\
            {name}_s: {ty}[{rows}, {cols}] @ CudaSmemLinear
            for t in cuda_threads(0, 32):
                for i in seq(0, {rows * cols // 32}):
                    {name}_s[(32 * i + t) / {cols}, (32 * i + t) % {cols}] = {name}[(32 * i + t) / {cols}, (32 * i + t) % {cols}]
"""


LDMATRIX = {4: "Sm80_ldmatrix_32b", 2: "Sm80_ldmatrix_16b",
            1: "Sm80_ldmatrix_8b"}


def mma(d, a, b, store):
    """One tile C = A B: operands by ldmatrix, the result by `store`."""
    pack = 4 // BYTES[a]
    k = 8 * pack
    load = LDMATRIX[BYTES[a]]
    dst, out, sizes = ("C[0:16, 0:8]", "16, 8", "")
    if store == "cuda_tk_store_rg":
        sizes = f", dst={d}, src={d}, size0=16, size1=8"
    if "col" in store:
        dst, out = "C[0:8, 0:16]", "8, 16"
    name = f"mma_{d}_{a}_{b}_{store[5:].removeprefix('mma_')}"
    return Case(name, (load, "Sm80_mma_m16n8", "Sm80_mma_m16n8_zero", store),
                f"""\
def {name}(A: {a}[16, {k}] @ CudaGmemLinear, B: {b}[16, {k}] @ CudaGmemLinear,
           C: {d}[{out}] @ CudaGmemLinear):
    with CudaDeviceFunction(blockDim=32):
        for task in cuda_tasks(0, 1):
{stage("A", a, 16, k)}{stage("B", b, 16, k)}            Fence(cuda_in_order, cuda_in_order)
            D: {d}[16, 8] @ Sm80_RmemMatrixD(16, 8)
            a_r: {a}[8, 4, 2, 2, {pack}] @ CudaRmemPacked32
            b_r: {b}[8, 4, 2, 2, {pack}] @ CudaRmemPacked32
            {load}(a_r[0:8, 0:4, 0:2, 0:2, 0:{pack}], A_s[0:16, 0:{k}],
                dst={a}, src={a}, nmat0=2, nmat1=2, operand='A')
            {load}(b_r[0:8, 0:4, 0:2, 0:2, 0:{pack}], B_s[0:16, 0:{k}],
                dst={b}, src={b}, nmat0=2, nmat1=2, operand='B')
            Sm80_mma_m16n8_zero(D[0:16, 0:8], D={d})
            for i in seq(0, 2):
                Sm80_mma_m16n8(D[0:16, 0:8], a_r[0:8, 0:4, 0:2, 0:2, 0:{pack}],
                    b_r[0:8, 0:4, i, 0:2, 0:{pack}], D={d}, A={a}, B={b},
                    K_pack={pack})
            {store}({dst}, D[0:16, 0:8]{sizes})
            Fence(cuda_in_order, cuda_in_order)
""")


def ldmatrix(ty, nmat0, nmat1, operand):
    """Matrices side by side or one above the other, stored lane by lane."""
    load, pack = LDMATRIX[BYTES[ty]], 4 // BYTES[ty]
    rows, cols = 8 * nmat0, 4 * pack * nmat1
    name = f"{load[5:]}_{nmat0}_{nmat1}_{operand}_{ty}"
    whole = f"0:{nmat0}, 0:{nmat1}, 0:{pack}"
    return Case(name, (load, ), f"""\
def {name}(A: {ty}[{rows}, {cols}] @ CudaGmemLinear, y: {ty}[8, 4, {nmat0}, {nmat1}, {pack}] @ CudaGmemLinear):
    with CudaDeviceFunction(blockDim=32):
        for task in cuda_tasks(0, 1):
{stage("A", ty, rows, cols)}            Fence(cuda_in_order, cuda_in_order)
            r: {ty}[8, 4, {nmat0}, {nmat1}, {pack}] @ CudaRmemPacked32
            {load}(r[0:8, 0:4, {whole}], A_s[0:{rows}, 0:{cols}],
                dst={ty}, src={ty}, nmat0={nmat0}, nmat1={nmat1}, operand='{operand}')
            for g in cuda_threads(0, 8, unit=4 * cuda_thread):
                for t in cuda_threads(0, 4, unit=cuda_thread):
                    for i in seq(0, {nmat0}):
                        for j in seq(0, {nmat1}):
                            cuda_packed32_store(y[g, t, i, j, 0:{pack}], r[g, t, i, j, 0:{pack}],
                                dst={ty}, src={ty}, pack={pack}, mem='global')
            Fence(cuda_in_order, cuda_in_order)
""")


def cases():
    """Every case."""
    for rank in range(1, 6):
        yield host(rank, "bf16", False)
        for ty in ("f32", "i32"):
            yield host(rank, ty, False)
            yield host(rank, ty, True)
    for ty in ("f32", "i32"):
        yield from broadcasts(ty)
        for mask in (1, 2, 4, 8, 16):
            yield exchange("cuda_shfl_xor_sync_1d", ty, mask)
    for mask in (1, 2, 4, 8, 16):
        yield exchange("cuda_shfl_xor_sync_sum_1d", "f32", mask)
    for ty in ("f32", "i32", "f16", "bf16"):
        words = 4 // BYTES[ty]
        yield packed("cuda_packed32_load", ty, [words])
        for v in (2, 4):
            yield packed(f"cuda_packed32_loadv_{8 * BYTES[ty]}b", ty,
                         [v, words])
    for ty in ("f32", "bf16", "ui8", "f64"):
        for n in (4, 8, 16):
            if n >= BYTES[ty]:
                yield cp_async("Sm80_cp_async_1d", ty, [n // BYTES[ty]])
    for shape in ([2, 2], [1, 4], [2, 1]):
        yield cp_async("Sm80_cp_async_2d", "f32", shape)
    for n in (1, 2, 4):
        yield cp_async("Sm80_cp_async_f32", "f32", [n])
    for types in (("f32", "f32"), ("f32", "bf16"), ("f32", "f16"),
                  ("f16", "f16"), ("i32", "i8"), ("i32", "ui8")):
        yield mma(*types, types[1], "cuda_tk_store_rg")
    for ty in ("f32", "i32", "f16", "bf16", "i8", "ui8"):
        for shape in ((1, 4), (2, 2), (4, 1)):
            for operand in ("A", "B"):
                yield ldmatrix(ty, *shape, operand)
    yield mma("i32", "i8", "ui8", "cuda_tk_store_rg")
    yield mma("i32", "ui8", "i8", "cuda_tk_store_rg")
    for how in ("store", "reduce", "atomic_reduce"):
        for major in ("row", "col"):
            yield mma("f32", "bf16", "bf16",
                      f"Sm80_mma_{how}_d_{major}_major_tf32")
