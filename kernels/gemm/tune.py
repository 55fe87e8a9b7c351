#!/usr/bin/env python3
"""Time the kernels of this folder on a GPU and write tuned.json.

    tune.py OUT --exo-translate=build/bin/exo-translate --only-translate
    tune.py OUT -o tuned.json                                        # GPU machine

The first step writes the kernels' C to OUT. In the second each kernel is
checked against a float64 product, then timed on squares, on the shapes of the
benchmark's tables and on shapes drawn from a seed, the L2 cache flushed before
each run. With --special both are of the kernels that are not stored
(src/make.py), and special.json is written. Sets that are not timed stay in the
table as they are. What is written, keyed by device, type, layout, output,
epilogue, batched or not, and shape class:

    one_wave   tiles that run at once:       us = a + b * steps + c * megabytes
                                                  + d * steps * occupied
                                                  + e * straddled + f * sums
    waves      tiles in several rounds:      us = a + rounds * (b + c * steps)
                                                  + d * megabytes + e * traffic
                                                  + f * straddled + g * sums

for each kernel, fitted to its times, and the fastest kernel of each shape that
was timed. `exo-translate tuned.json --to=c` makes the library that chooses by
it. Needs PyTorch and a C compiler; no LLVM, no Z3.
"""
import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import random
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, os.pardir, "bench"))
sys.path.insert(0, os.path.join(HERE, "src"))
import make  # noqa: E402
import program  # noqa: E402
from gpu_problem import (BATCH, POOL_BYTES, Problem,  # noqa: E402
                         call_kernel)
from gpu_timing import (FORMATS, compile_c, interleaved,  # noqa: E402
                        torch_on_gpu)

BYTES = {"f32": 4, "bf16": 2, "f16": 2}
MOST_PRODUCTS = 1 << 40
NEAR, NOISE = 1.15, 1.002
SHAPES = [(n, n, n) for n in (256, 512, 1024, 2048, 4096, 8192)] + [
    (16384, 16384, 4096), (4096, 4096, 16384), (8192, 8192, 512),
    (8192, 1024, 8192), (512, 512, 16384), (256, 256, 65536)]


def drawn_shapes(count, seed):
    """Log-uniform from 64 to 16384, multiples of 16, at most 2^39 products."""
    rng, shapes = random.Random(seed), []
    while len(shapes) < count:
        shape = tuple(16 * round(math.exp(rng.uniform(math.log(64),
                                                      math.log(16384))) / 16)
                      for _ in range(3))
        if math.prod(shape) <= 1 << 39:
            shapes.append(shape)
    return shapes


def tile_of(name):
    """rows, columns, CTAs of a cluster with tiles of their own, below and beside
    each other, CTAs that share one, CTAs of a multiprocessor, and columns of K
    that a task takes (0: all), of
    gemm_TYPE[_LAYOUT]_ROWSxCOLUMNS[_cBELOW][_nBESIDE][_sSPLIT][_bBLOCKS][_pPART]
    or .._x, a turned tile, whose rows and columns here are those of C, too, as are
    below and beside; or .._t, which has tiles of half as many rows, too, or .._pp, whose tasks have
    two tiles, one below the other: the rows are those of a task; or .._wPART,
    whose sums of parts a second kernel adds up."""
    tile = re.search(r"_(\d+)x(\d+)(?:_c(\d+))?(?:_n(\d+))?(?:_s(\d+))?"
                     r"(?:_b(\d+))?(?:_[pw](\d+))?", name)
    rows, *others = (int(x or 1) for x in tile.groups()[:6])
    return (rows * (2 if name.endswith("_pp") else 1), *others,
            int(tile[7] or 0))


def sums_of(tile):
    """How many sums of parts a kernel with such tiles adds up; 0: none."""
    row = make.table()["tiles"][tile]
    return row["MOST"] if "MOST" in row else 0


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig with one attribute, the dimensions of a cluster."""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p), ("n", ctypes.c_uint)]


def clusters_at_once(size):
    """How many clusters of so many CTAs run at once, a CTA a multiprocessor."""
    cuda, shared = ctypes.CDLL("libcuda.so.1"), 200 << 10
    module, function, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    text = b".version 8.0\n.target sm_90\n.address_size 64\n" \
           b".visible .entry k() { ret; }\n"
    attribute = (ctypes.c_uint * 18)()  # CUlaunchAttribute: id, pad, 64 bytes
    attribute[0], attribute[2:5] = 4, (size, 1, 1)
    config = LaunchConfig((size * 1024, 1, 1), (128, 1, 1), shared, None,
                          ctypes.cast(attribute, ctypes.c_void_p), 1)
    for status in (
            cuda.cuModuleLoadData(ctypes.byref(module), text),
            cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k"),
            cuda.cuFuncSetAttribute(function, 8, shared),
            cuda.cuOccupancyMaxActiveClusters(ctypes.byref(n), function,
                                              ctypes.byref(config))):
        if status != 0:
            sys.exit(f"tune: the occupancy of clusters of {size} is not known "
                     f"(CUresult {status})")
    return n.value


class Kernel:
    """One kernel's C library, built here and called through ctypes."""

    def __init__(self, folder, name, kind):
        self.name, self.kind = name, kind
        (self.rows, self.columns, self.cluster, self.beside, self.split,
         self.blocks, part) = tile_of(name)
        self.part = part or 1 << 30
        self.most_sums = sums_of(name.removeprefix(program.name(kind) + "_"))
        self.half = self.rows // 2 if name.endswith("_t") else 0
        self.form = FORMATS[kind.type]
        self.bytes_out = BYTES[kind.output]
        self.products = BATCH if kind.batched else 1
        self.step = 128 // self.form.bytes_in
        library = ctypes.CDLL(compile_c(folder, name))
        self.function = getattr(library, name)
        self.function.restype = ctypes.c_int
        self.message = getattr(library, name + "_last_error")
        self.message.restype = ctypes.c_char_p

    def __call__(self, problem, slots):
        whole = [self.whole_rows(problem.shape, slots)] if self.half else []
        if call_kernel(self.function, problem, whole) != 0:
            raise RuntimeError(f"{self.name}: {self.message().decode()}")

    def clusters(self, shape):
        """Of all tasks."""
        return (math.ceil(shape[0] / (self.rows * self.cluster)) *
                math.ceil(shape[1] / (self.columns * self.beside)) *
                math.ceil(shape[2] / self.part)) * self.products

    def fits(self, shape, slots):
        """With tiles of two sizes: have the larger a whole wave? With sums of
        parts: is there room?"""
        if self.most_sums:
            return (math.ceil(shape[2] / self.part) <= self.most_sums and
                    1e6 * self.sums(shape) <= POOL_BYTES)
        return not self.half or (shape[0] >= self.rows and
                                 self.occupied(shape, slots) >= 1)

    def sums(self, shape):
        """Megabytes of the sums of parts."""
        parts = math.ceil(shape[2] / self.part) if self.most_sums else 0
        return 4e-6 * parts * shape[0] * shape[1] * self.products

    def whole_rows(self, shape, slots):
        """Of larger tiles, as the library chooses them."""
        across = math.ceil(shape[1] / self.columns)
        whole = math.ceil(shape[0] / self.rows) * across
        whole = whole // self.slots(slots) * self.slots(slots) // across
        return max(1, min(whole, shape[0] // self.rows))

    @property
    def ctas(self):
        """Of a cluster."""
        return self.cluster * self.beside * self.split

    def slots(self, of_size):
        """Clusters that run at once, where so many of a size do."""
        return self.blocks * of_size[self.ctas]

    def occupied(self, shape, slots):
        """Clusters over those that run at once."""
        return self.clusters(shape) / self.slots(slots)

    def steps(self, shape):
        """Of a CTA."""
        return math.ceil(min(shape[2], self.part) / (self.step * self.split))


def time_shape(torch, kernels, shape, rounds, slots):
    """us of each kernel that fits the shape, interleaved, those near the fastest
    more often; wrong ones are an error."""
    kernels = [k for k in kernels if k.fits(shape, slots)]
    problem = Problem(torch, kernels[0].kind._asdict(), shape, 1)
    want = problem.wanted()
    for kernel in kernels:
        problem.reset()
        kernel(problem, slots)
        error = problem.error(want)
        if not error <= problem.tolerance():
            sys.exit(f"{kernel.name} is wrong at {shape}: error {error:.3g}")
    del want
    bodies = {k.name: lambda k=k: k(problem, slots) for k in kernels}
    times = interleaved(torch, bodies, rounds, 0, 1)
    near = {name: body for name, body in bodies.items()
            if times[name] < NEAR * min(times.values())}
    times.update(interleaved(torch, near, 3 * rounds, 0, 2))
    return {name: 1e3 * ms for name, ms in times.items()}


def fit(torch, rows, times, weights):
    """Coefficients without negative ones; relative errors are weighed. Columns
    are scaled, and those of zeros left out: the solver takes what is small for
    what is none."""
    columns = [i for i in range(len(rows[0]) if rows else 0)
               if any(r[i] for r in rows)]
    size = {i: max(abs(r[i] / t) for r, t in zip(rows, times))
            for i in columns}
    y = torch.tensor([[w] for w in weights], dtype=torch.float64)
    while columns:
        x = torch.tensor([[r[i] / size[i] / t * w for i in columns]
                          for r, t, w in zip(rows, times, weights)],
                         dtype=torch.float64)
        got = torch.linalg.lstsq(x, y, driver="gelsd").solution
        got = got.flatten().tolist()
        if min(got) >= 0:
            break
        columns.pop(got.index(min(got)))
    result = [0.0] * (len(rows[0]) if rows else 0)
    for i, value in zip(columns, got if columns else []):
        result[i] = round(value / size[i], 6)
    return result


def rounds_of(kernel, shape, slots):
    """Rounds of tiles, clusters' tiles, and their rows in all."""
    if not kernel.half:
        tiles = kernel.clusters(shape) / math.ceil(shape[2] / kernel.part)
        return (math.ceil(kernel.occupied(shape, slots)), tiles,
                tiles * kernel.rows * kernel.cluster)
    across, at_once = math.ceil(shape[1] / kernel.columns), kernel.slots(slots)
    whole = kernel.whole_rows(shape, slots)
    below = math.ceil((shape[0] - whole * kernel.rows) / kernel.half)
    return (math.ceil(whole * across / at_once) +
            0.5 * math.ceil(below * across / at_once),
            (whole + below) * across,
            (whole * kernel.rows + below * kernel.half) * across)


def features(kernel, shape, slots):
    """Is it one wave, and what its costs are multiplied with (what the words
    mean says codegen/c_dispatch.h)."""
    m, n, k = shape
    megabytes = ((m + n) * k * kernel.form.bytes_in +
                 m * n * kernel.bytes_out) * kernel.products / 1e6
    steps = kernel.steps(shape)
    occupied = kernel.occupied(shape, slots)
    rounds, tiles, rows = rounds_of(kernel, shape, slots)
    traffic = [x * k * kernel.form.bytes_in / 1e6 for x in
               (rows, tiles * kernel.columns * kernel.beside)]
    inner = (m if kernel.kind.layout[0] == "n" else k,
             n if kernel.kind.layout[1] == "t" else k)
    straddled = sum(t for t, extent in zip(traffic, inner)
                    if extent * kernel.form.bytes_in % 128)
    if rounds == 1 and not kernel.half:
        return True, [1, steps, megabytes, steps * occupied, straddled,
                      kernel.sums(shape)]
    return False, [1, rounds, rounds * steps, megabytes, sum(traffic),
                   straddled, kernel.sums(shape)]


def estimate(kernel, cost, shape, slots):
    if not kernel.fits(shape, slots):
        return math.inf
    one, x = features(kernel, shape, slots)
    return sum(a * b for a, b in zip(cost["one_wave" if one else "waves"], x))


def costs(kernel, timed, slots, solve):
    """The two shape classes of a kernel: one wave of tiles, several. A shape
    weighs the more the nearer the kernel comes to the fastest there (by the
    square: held out shapes in bf16 lose 2.8 % by the choice, 3.1 % without)."""
    rows = {True: ([], [], []), False: ([], [], [])}
    for shape, us in timed:
        if kernel.name not in us:
            continue
        one, x = features(kernel, shape, slots)
        weight = (min(us.values()) / us[kernel.name]) ** 2
        for column, value in zip(rows[one], (x, us[kernel.name], weight)):
            column.append(value)
    first = solve(*rows[True]) or [0] * 6
    return {
        "one_wave": first,
        "waves": solve(*rows[False]) if len(rows[False][1]) > 4
        else [0, first[0], first[1] + first[3], first[2], 0, first[4],
              first[5]]}


def tune_set(torch, kernels, args, slots):
    timed = []
    for shape in SHAPES + drawn_shapes(args.drawn, args.seed):
        if math.prod(shape) * kernels[0].products <= MOST_PRODUCTS:
            timed.append(
                (shape,
                 time_shape(torch, kernels, shape, args.rounds, slots)))
    return entry_of(kernels, timed, slots,
                    lambda *rows: fit(torch, *rows))


def entry_of(kernels, timed, slots, solve):
    """The set's entry, and all times. SHAPES are listed, with the fastest where
    the kernel that the costs favour is more than NOISE slower."""
    fitted = {k.name: costs(k, timed, slots, solve) for k in kernels}
    shapes = []
    for shape, us in timed:
        best = min(us, key=us.get)
        chosen = min(kernels, key=lambda k: estimate(
            k, fitted[k.name], shape, slots))
        if us[chosen.name] <= NOISE * us[best]:
            best = chosen.name
        if shape in SHAPES:
            shapes.append({"M": shape[0], "N": shape[1], "K": shape[2],
                           "kernel": best})
    return {
        **program.entry_keys(kernels[0].kind),
        "kernels": [{"file": k.name + ".exo", "kernel": k.name,
                     "rows": k.rows, "columns": k.columns,
                     "cluster": k.cluster, "beside": k.beside,
                     "step": k.step, "split": k.split, "part": k.part,
                     "slots": k.slots(slots),
                     **({"sums": k.most_sums} if k.most_sums else {}),
                     **({"half": k.half} if k.half else {}),
                     **fitted[k.name]}
                    for k in kernels],
        "shapes": shapes,
    }, [{"shape": s, "us": t} for s, t in timed]


def sets(args):
    """Each set of kernels to be timed, and their names."""
    found = make.special() if args.special else make.stored()
    for kind, tiles in found:
        if kind.type in args.types.split(",") and \
                kind.layout in args.layouts.split(","):
            yield kind, [f"{program.name(kind)}_{t}" for t in tiles]


def translate_all(args, names):
    """The C of stored kernels, or of special ones, which are made first."""
    os.makedirs(args.folder, exist_ok=True)
    if args.special:
        for kernel in make.special_kernels():
            if kernel[0] in names:
                make.write(args.folder, os.path.join(
                    os.path.dirname(args.exo_translate), "exo-opt"), kernel)

    def one(name):
        source = args.folder if args.special else HERE
        done = subprocess.run(
            [args.exo_translate, os.path.join(source, name + ".exo"),
             "--to=c", "-o", os.path.join(args.folder, name + ".c")],
            capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else f"{name}: {done.stderr}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = "".join(pool.map(one, names))
    if errors:
        sys.exit(errors)


def merged(path, entries, device):
    """The entries, in the places they have in an earlier table of the device,
    and what else that has."""
    earlier = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            table = json.load(f)
        earlier = table["entries"] if table["device"] == device else []
    timed = {make.kind_of(e): e for e in entries}
    return [timed.pop(make.kind_of(e), e) for e in earlier] + [
        e for e in entries if make.kind_of(e) in timed]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="where the kernels' .c and .h lie")
    parser.add_argument("--types", default=",".join(program.OWN_OUTPUT))
    parser.add_argument("--layouts", default="tn,nn,nt,tt")
    parser.add_argument("--special", action="store_true",
                        help="the kernels that are not stored")
    parser.add_argument("--exo-translate", help="make the .c files with it")
    parser.add_argument("--only-translate", action="store_true")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--drawn", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--times", help="write every time here")
    parser.add_argument("-o", help="tuned.json here; special.json")
    args = parser.parse_args()
    torch = None if args.only_translate else torch_on_gpu("tune")
    todo = list(sets(args))
    if args.exo_translate:
        translate_all(args, [n for _, names in todo for n in names])
    if args.only_translate:
        return 0
    torch.zeros(1, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    device = torch.cuda.get_device_properties(0)
    entries, times = [], {}
    for kind, names in todo:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            kernels = list(pool.map(
                lambda n, k=kind: Kernel(args.folder, n, k), names))
        slots = {n: clusters_at_once(n)
                 for n in sorted({k.ctas for k in kernels})}
        entry, timed = tune_set(torch, kernels, args, slots)
        entries.append(entry)
        times[program.name(kind)] = timed
        print(f"{program.name(kind)}: {len(kernels)} kernels, {len(timed)} "
              "shapes", flush=True)
    path = args.o or os.path.join(
        HERE, "special.json" if args.special else "tuned.json")
    table = {"version": 1, "function": "exo_gemm", "device": device.name,
             "multiprocessors": device.multi_processor_count,
             "entries": merged(path, entries, device.name)}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(table, f, indent=1)
        f.write("\n")
    if args.times:
        with open(args.times, "w", encoding="utf-8") as f:
            json.dump(times, f)
    return 0


if __name__ == "__main__":
    sys.exit(main())
