#!/usr/bin/env python3
"""Time the kernels of this folder on a GPU and write tuned.json.

    exo-translate gemm_bf16_128x256.exo --to=c -o OUT/gemm_bf16_128x256.c   # each
    tune.py OUT --types bf16,f16 -o tuned.json                       # GPU machine

With --exo-translate the first step is done here too, in parallel. Each kernel
is checked against a float64 product, then timed on squares, on the shapes of
the benchmark's tables and on shapes drawn from a seed, the L2 cache flushed
before each run. What is written, keyed by device, type, layout and shape class:

    one_wave   tiles that run at once:       us = a + b * steps + c * megabytes
                                                  + d * steps * occupied
    waves      tiles in several rounds:      us = a + rounds * (b + c * steps)
                                                  + d * megabytes

for each kernel, fitted to its times, and the fastest kernel of each shape that
was timed. `exo-translate tuned.json --to=c` makes the library that chooses by
it. Needs PyTorch and a C compiler; no LLVM, no Z3.
"""
import argparse
import concurrent.futures
import ctypes
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, os.pardir, "bench"))
from gpu_timing import (FORMATS, compile_c, in_memory, interleaved,  # noqa: E402
                        is_right, kind_of, layout_of, operands,
                        relative_error)

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
    """rows, columns, CTAs of a cluster with tiles of their own, and CTAs that
    share one, of gemm_TYPE[_LAYOUT]_ROWSxCOLUMNS[_cCLUSTER][_sSPLIT]."""
    tile = re.search(r"_(\d+)x(\d+)(?:_c(\d+))?(?:_s(\d+))?", name)
    return int(tile[1]), int(tile[2]), int(tile[3] or 1), int(tile[4] or 1)


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

    def __init__(self, folder, name):
        self.name = name
        self.type = kind_of(name)
        self.layout = layout_of(name)
        self.rows, self.columns, self.cluster, self.split = tile_of(name)
        self.step = 128 // FORMATS[self.type].bytes_in
        library = ctypes.CDLL(compile_c(folder, name))
        self.function = getattr(library, name)
        self.function.restype = ctypes.c_int
        self.message = getattr(library, name + "_last_error")
        self.message.restype = ctypes.c_char_p

    def __call__(self, torch, a, b, c):
        args = [ctypes.c_int64(n) for n in (*c.shape, a.shape[1])]
        for t in (in_memory(a, self.layout[0] == "n"),
                  in_memory(b, self.layout[1] == "t"), c):
            args += [ctypes.c_void_p(t.data_ptr()),
                     ctypes.c_int64(t.stride(0)), ctypes.c_int64(1)]
        stream = torch.cuda.current_stream().cuda_stream
        if self.function(*args, ctypes.c_void_p(stream)) != 0:
            raise RuntimeError(f"{self.name}: {self.message().decode()}")

    def occupied(self, shape, slots):
        """Clusters over those that run at once."""
        clusters = (math.ceil(shape[0] / (self.rows * self.cluster)) *
                    math.ceil(shape[1] / self.columns))
        return clusters / slots[self.cluster * self.split]

    def steps(self, shape):
        """Of a CTA."""
        return math.ceil(shape[2] / (self.step * self.split))


def time_shape(torch, kernels, shape, rounds):
    """us of each kernel on the shape, interleaved; wrong ones are an error."""
    kind = kernels[0].type
    a, b, c = operands(torch, kind, shape, 1, kernels[0].layout)
    for kernel in kernels:
        c.fill_(float("nan"))
        kernel(torch, a, b, c)
        error = relative_error(a, b, c)
        if not is_right(kind, error):
            sys.exit(f"{kernel.name} is wrong at {shape}: error {error:.3g}")
    bodies = {k.name: lambda k=k: k(torch, a, b, c) for k in kernels}
    times = interleaved(torch, bodies, rounds, 0, 1)
    return {name: 1e3 * ms for name, ms in times.items()}


def fit(torch, rows, times):
    """Coefficients without negative ones, relative errors weighed alike."""
    columns = list(range(len(rows[0]))) if rows else []
    while columns:
        x = torch.tensor([[r[i] / t for i in columns]
                          for r, t in zip(rows, times)], dtype=torch.float64)
        y = torch.ones(len(times), 1, dtype=torch.float64)
        got = torch.linalg.lstsq(x, y).solution.flatten().tolist()
        if min(got) >= 0:
            break
        columns.pop(got.index(min(got)))
    result = [0.0] * (len(rows[0]) if rows else 0)
    for i, value in zip(columns, got if columns else []):
        result[i] = round(value, 6)
    return result


def features(kernel, shape, slots):
    """Is it one wave, and what its costs are multiplied with."""
    m, n, k = shape
    form = FORMATS[kernel.type]
    megabytes = ((m + n) * k * form.bytes_in + m * n * form.bytes_out) / 1e6
    steps = kernel.steps(shape)
    occupied = kernel.occupied(shape, slots)
    rounds = math.ceil(occupied)
    if rounds == 1:
        return True, [1, steps, megabytes, steps * occupied]
    return False, [1, rounds, rounds * steps, megabytes]


def estimate(kernel, cost, shape, slots):
    one, x = features(kernel, shape, slots)
    return sum(a * b for a, b in zip(cost["one_wave" if one else "waves"], x))


def costs(kernel, timed, slots, solve):
    """The two shape classes of a kernel: one wave of tiles, several."""
    rows = {True: ([], []), False: ([], [])}
    for shape, us in timed:
        one, x = features(kernel, shape, slots)
        rows[one][0].append(x)
        rows[one][1].append(us[kernel.name])
    first = solve(*rows[True]) or [0, 0, 0, 0]
    return {"one_wave": first,
            "waves": solve(*rows[False]) if len(rows[False][1]) > 4
            else [0, first[0], first[1] + first[3], first[2]]}


def tune_type(torch, kind, kernels, args, slots):
    timed = []
    for shape in SHAPES + drawn_shapes(args.drawn, args.seed):
        timed.append((shape, time_shape(torch, kernels, shape, args.rounds)))
    return entry_of(kind, kernels, timed, slots,
                    lambda rows, us: fit(torch, rows, us))


def entry_of(kind, kernels, timed, slots, solve):
    """The type's entry, and all times. A shape is listed where the kernel that
    the costs favour was more than 2 % slower than the fastest."""
    fitted = {k.name: costs(k, timed, slots, solve) for k in kernels}
    shapes = []
    for shape, us in timed:
        best = min(us, key=us.get)
        chosen = min(kernels, key=lambda k: estimate(
            k, fitted[k.name], shape, slots))
        if shape in SHAPES and us[chosen.name] > 1.02 * us[best]:
            shapes.append({"M": shape[0], "N": shape[1], "K": shape[2],
                           "kernel": best})
    return {
        "type": kind, "layout": kernels[0].layout,
        "kernels": [{"file": k.name + ".exo", "kernel": k.name,
                     "rows": k.rows, "columns": k.columns,
                     "cluster": k.cluster, "step": k.step, "split": k.split,
                     "slots": slots[k.cluster * k.split], **fitted[k.name]}
                    for k in kernels],
        "shapes": shapes,
    }, [{"shape": s, "us": t} for s, t in timed]


def translate_all(translate, folder, names):
    os.makedirs(folder, exist_ok=True)

    def one(name):
        subprocess.run([translate, os.path.join(HERE, name + ".exo"),
                        "--to=c", "-o", os.path.join(folder, name + ".c")],
                       check=True, stderr=subprocess.DEVNULL)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, names))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="where the kernels' .c and .h lie")
    parser.add_argument("--types", default=",".join(
        k for k in FORMATS if k != "f32"))
    parser.add_argument("--layouts", default="tn")
    parser.add_argument("--exo-translate", help="make the .c files with it")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--drawn", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--times", help="write every time here")
    parser.add_argument("-o", default=os.path.join(HERE, "tuned.json"))
    args = parser.parse_args()
    types, layouts = args.types.split(","), args.layouts.split(",")
    names = sorted(f[:-4] for f in os.listdir(HERE)
                   if f.endswith(".exo") and kind_of(f[:-4]) in types
                   and layout_of(f) in layouts)
    if args.exo_translate:
        translate_all(args.exo_translate, args.folder, names)
    import torch
    if not torch.cuda.is_available():
        print("tune: no GPU here", file=sys.stderr)
        return 4
    torch.zeros(1, device="cuda")
    device = torch.cuda.get_device_properties(0)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = list(pool.map(lambda n: Kernel(args.folder, n), names))
        slots = {n: clusters_at_once(n)
                 for n in sorted({k.cluster * k.split for k in kernels})}
        entries, times = [], {}
        for kind, layout in itertools.product(types, layouts):
            mine = [k for k in kernels
                    if (k.type, k.layout) == (kind, layout)]
            if not mine:
                continue
            entry, timed = tune_type(torch, kind, mine, args, slots)
            entries.append(entry)
            times[f"{kind} {layout}"] = timed
            print(f"{kind} {layout}: {len(mine)} kernels, {len(timed)} shapes",
                  flush=True)
    table = {"version": 1, "function": "exo_gemm", "device": device.name,
             "multiprocessors": device.multi_processor_count,
             "entries": entries}
    with open(args.o, "w", encoding="utf-8") as f:
        json.dump(table, f, indent=1)
        f.write("\n")
    if args.times:
        with open(args.times, "w", encoding="utf-8") as f:
            json.dump(times, f)
    return 0


if __name__ == "__main__":
    sys.exit(main())
