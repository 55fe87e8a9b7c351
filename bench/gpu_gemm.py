#!/usr/bin/env python3
"""Check and time our GEMM kernels beside cuBLAS, and Triton, on one GPU.

Kernels come as the C libraries that `exo-translate --to=c` writes into a
folder: single ones by --kernels, the library that chooses by --library, once
for each of --types. This script compiles them and calls them with PyTorch's
tensors. cuBLAS is PyTorch's matmul, for fp8 its scaled matmul, which takes
cuBLASLt with fast accumulation; Triton, with --triton, bench/triton_gemm.py.

Checking: outputs poisoned, random normal inputs of two seeds, a float64 product
as the reference. Timing: per shape the candidates run interleaved in shuffled
order, the L2 cache flushed before each run, which a spinning kernel delays until
its launch is queued; events time it, the mean of the middle half of the rounds
counts; the ratio of two such means of one run is the figure, the median over
runs is reported, with the geometric mean over the shapes and the share of the
data sheet's peak; with Triton the ratio to the faster of it and cuBLAS, too.

Tuning: --tune lets the library time its kernels on each shape first, apart from
the rounds; what it chose then is what is checked and timed. Where that is not
what it chooses untuned, the latter runs in the same rounds, and the ratio of
their means is printed.

Certificates: that of each library, NAME.cert.json beside NAME.c, is held against
the code that is timed, and what it proves is printed (bench/certificate.py).
With --json the results go to a file, of which bench/gpu_gemm_report.py makes the
table and the drawing of docs/benchmarks.md.

Needs PyTorch and a C compiler on the machine with the GPU; no LLVM, no Z3.
"""
import argparse
import ctypes
import importlib.util
import json
import math
import os
import random
import statistics
import sys

from certificate import NotCertified, certified
from gpu_timing import (FORMATS, compile_c, in_memory, interleaved, is_right,
                        kind_of, layout_of, operands, relative_error,
                        torch_on_gpu)

SHAPES = {
    "square": [(1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3],
    "headline": [(4096,) * 3, (8192,) * 3, (16384, 16384, 4096),
                 (4096, 4096, 16384), (8192, 1024, 8192)],
    "wide": [(8192, 8192, 512)],
    "split": [(512, 512, 16384), (256, 256, 65536)],
}


def drawn_shapes(count=20, seed=20261129):
    """Log-uniform from 64 to 16384, multiples of 8."""
    rng = random.Random(seed)

    def extent():
        x = math.exp(rng.uniform(math.log(64), math.log(16384)))
        return max(64, min(16384, 8 * round(x / 8)))

    return [(extent(), extent(), extent()) for _ in range(count)]


SHAPES["drawn"] = drawn_shapes()
SHAPES["all"] = (SHAPES["square"][:2] + SHAPES["headline"] + SHAPES["wide"] +
                 SHAPES["drawn"])

# Dense TFLOP/s of an H200 by its data sheet.
PEAK = {"bfloat16": 989, "float16": 989, "float32": 494, "float8_e4m3fn": 1979,
        "float8_e5m2": 1979}

# Ragged against tiles of 128 x 256 x 64, K shorter than the ring, one tile,
# several tasks a cluster.
CHECK_SHAPES = [
    (8, 8, 8), (8, 16, 24), (16, 8, 64), (128, 256, 64), (256, 256, 128),
    (264, 520, 200), (136, 264, 72), (120, 248, 56), (512, 512, 512),
    (1000, 1000, 1000), (2048, 64, 4096), (64, 2048, 4096), (8, 16384, 128),
    (16384, 8, 128), (8, 8, 16384), (384, 768, 1152), (4096, 4096, 64),
    (1032, 2056, 4104), (4096, 4096, 4096), (8192, 8192, 1024),
    (16384, 1032, 264), (2104, 8200, 520), (16384, 16384, 256),
]


class Single:
    """One kernel: dense operands, or those of kernels/gemm (gemm_TYPE_..),
    which take strides and may have a layout."""

    def __init__(self, folder, name):
        self.name = self.library_name = name
        self.layout = layout_of(name)
        self.strided = name.split("_")[1] in FORMATS
        if name.endswith("_t"):
            raise SystemExit(f"{name} takes the rows of whole tiles, which the "
                             "library chooses: time it by --library")
        library = ctypes.CDLL(compile_c(folder, name))
        self.function = getattr(library, name)
        self.function.restype = ctypes.c_int
        self.error = getattr(library, name + "_last_error")
        self.error.restype = ctypes.c_char_p

    def choice(self, shape):
        del shape
        return self.name

    def untuned(self, shape):
        """There is nothing to choose."""
        del shape

    def __call__(self, torch, a, b, c):
        args = [ctypes.c_int64(n) for n in (*c.shape, a.shape[1])]
        for t in (in_memory(a, self.layout[0] == "n"),
                  in_memory(b, self.layout[1] == "t"), c):
            args.append(ctypes.c_void_p(t.data_ptr()))
            if self.strided:
                args += [ctypes.c_int64(t.stride(0)), ctypes.c_int64(1)]
        stream = torch.cuda.current_stream().cuda_stream
        status = self.function(*args, ctypes.c_void_p(stream))
        if status != 0:
            raise RuntimeError(f"{self.name}: {self.error().decode()}")


class Chooser:
    """The library of kernels/gemm/tuned.json, for one element type."""

    def __init__(self, library, name, kind):
        self.name, self.kind, self.library = f"exo_gemm {kind}", kind, library
        self.library_name = name
        self.layout = "tn"
        self.before_tuning = {}  # choices by shape

    def choice(self, shape):
        return self.library.choice(self.kind, *shape)

    def untuned(self, shape):
        """What would be chosen without tuning, if that is something else."""
        before = self.before_tuning.get(tuple(shape))
        return before if before != self.choice(shape) else None

    def args(self, torch, a, b, c):
        return self.library.args(
            self.kind, (*c.shape, a.shape[1]), a=a.data_ptr(),
            b=b.data_ptr(), c=c.data_ptr(), lda=a.stride(0), ldb=b.stride(0),
            ldc=c.stride(0), stream=torch.cuda.current_stream().cuda_stream)

    def __call__(self, torch, a, b, c, plan=None):
        self.library.run(self.args(torch, a, b, c), plan)

    def tune(self, torch, shape, candidates):
        self.before_tuning[tuple(shape)] = self.choice(shape)
        a, b, c = operands(torch, self.kind, shape, 1)
        found = self.library.tune_args(self.args(torch, a, b, c), candidates)
        if not bool(torch.isnan(c).all()):
            raise RuntimeError(f"{self.name}: tuning for {shape} writes C")
        other = self.untuned(shape)
        print(f"{self.name} {'x'.join(map(str, shape))}: tuned over "
              f"{found.candidates} plans, {found.us:.1f} us by "
              f"{self.choice(shape)}" +
              (f" for {found.untuned_us:.1f} us by {other}" if other else
               ", as untuned"), flush=True)


def choosers(folder, name, kinds):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir,
                        "kernels", "gemm", "exo_gemm.py")
    spec = importlib.util.spec_from_file_location("exo_gemm", path)
    binding = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(binding)
    library = binding.ExoGemm(compile_c(folder, name))
    return [Chooser(library, name, kind) for kind in kinds]


def multiple_of_granule(name, shape):
    """Extents that the rows' alignment allows: 16 bytes."""
    granule = max(8, 16 // FORMATS[kind_of(name)].bytes_in)
    return tuple(-(-x // granule) * granule for x in shape)


def check(torch, kernel, shapes, seeds):
    failures = 0
    worst = 0.0
    for shape in shapes:
        for seed in seeds:
            a, b, c = operands(torch, kind_of(kernel.name), shape, seed,
                               kernel.layout)
            kernel(torch, a, b, c)
            torch.cuda.synchronize()
            error = relative_error(a, b, c)
            right = is_right(kind_of(kernel.name), error)
            worst = max(worst, error) if right else worst
            if not right:
                failures += 1
                print(f"WRONG {kernel.name} {shape} seed {seed}: relative "
                      f"error {error:.3g}, by {kernel.choice(shape)}",
                      flush=True)
    print(f"{kernel.name}: {len(shapes) * len(seeds) - failures} of "
          f"{len(shapes) * len(seeds)} right, largest error {worst:.2e}",
          flush=True)
    return failures


def library_product(torch, kind, a, b, out):
    """The vendor's product: cuBLAS, for fp8 cuBLASLt, for sums of sums without
    its fast accumulation."""
    if a.element_size() > 1:
        return lambda: torch.mm(a, b.t(), out=out)
    one = torch.tensor(1.0, device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one,
                                    out_dtype=out.dtype,
                                    use_fast_accum=not kind.endswith("sums"))


def one_run(torch, kernel, shape, args, seed, triton):
    a, b, c = operands(torch, kind_of(kernel.name), shape, seed, kernel.layout)
    out = torch.empty_like(c)
    bodies = {
        "ours": lambda: kernel(torch, a, b, c),
        "cublas": library_product(torch, kind_of(kernel.name), a, b,
                                  out),
    }
    untuned = kernel.untuned(shape)
    if untuned:
        bodies["untuned"] = lambda: kernel(torch, a, b, c, untuned)
    if triton:
        bodies["triton"] = triton.product(a, b, torch.empty_like(c))
    return interleaved(torch, bodies, args.rounds, 4, seed, args.in_a_row)


def row_of(kernel, shape, results):
    """The figures of some runs, each the milliseconds of what it timed."""
    flop = 2.0 * shape[0] * shape[1] * shape[2]
    ratios = [r["cublas"] / r["ours"] for r in results]
    row = {
        "kernel": kernel.name, "shape": shape, "choice": kernel.choice(shape),
        "ratio": statistics.median(ratios), "ratios": ratios,
        "us": {k: 1e3 * statistics.median(r[k] for r in results)
               for k in results[0]},
        "tflops": {k: statistics.median(flop / r[k] / 1e9 for r in results)
                   for k in results[0]},
    }
    row["peak"] = row["tflops"]["ours"] / PEAK[FORMATS[kind_of(kernel.name)].inputs]
    if "triton" in results[0]:
        row["over_best"] = statistics.median(
            min(r["cublas"], r["triton"]) / r["ours"] for r in results)
    if "untuned" in results[0]:
        row["over_untuned"] = statistics.median(
            r["untuned"] / r["ours"] for r in results)
    return row


def time_shape(torch, kernel, shape, args, triton):
    row = row_of(kernel, shape, [
        one_run(torch, kernel, shape, args, 1 + r, triton)
        for r in range(args.runs)])
    if args.tune:
        row.setdefault("over_untuned", 1.0)
    return row


def print_row(row):
    """One line; ratios above 1: ours is the faster."""
    triton = row["tflops"].get("triton")
    best, untuned = row.get("over_best"), row.get("over_untuned")
    print("%-14s %18s  ours %6.1f (%2.0f %% of peak)  cuBLAS %6.1f%s TFLOP/s, "
          "%8.1f us  ratio %.3f  (%s)%s%s  %s"
          % (row["kernel"], "x".join(map(str, row["shape"])),
             row["tflops"]["ours"], 100 * row["peak"],
             row["tflops"]["cublas"],
             f"  Triton {triton:6.1f}" if triton else "", row["us"]["cublas"],
             row["ratio"], " ".join("%.3f" % r for r in row["ratios"]),
             f"  over the best {best:.3f}" if best else "",
             f"  over untuned {untuned:.3f}" if untuned else "",
             row["choice"]), flush=True)


def print_means(name, rows):
    """Geometric means over the shapes and the least, of each ratio there is."""
    for key, what in (("ratio", "over cuBLAS"),
                      ("over_best", "over the best of cuBLAS and Triton"),
                      ("over_untuned", "tuned over untuned")):
        ratios = [r[key] for r in rows if key in r]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"{name}: geometric mean {mean:.3f} {what}, {len(ratios)} "
                  f"shapes, least {min(ratios):.3f}", flush=True)


def what_is_proved(args, name):
    """The certificate in words, or None without one that holds."""
    try:
        said = certified(args.folder, name)
    except NotCertified as fault:
        print(f"{name}: NOT CERTIFIED: {fault}", flush=True)
        return None
    print(f"{name}: {said}", flush=True)
    return said


def bench(torch, kernel, shapes, args, triton, proved):
    rows = []
    for shape in shapes:
        rows.append(time_shape(torch, kernel, shape, args, triton))
        rows[-1]["certificate"] = proved
        print_row(rows[-1])
    print_means(kernel.name, rows)
    return rows


def measure(torch, kernel, shapes, args, triton, proved):
    """Tunes, checks and times: rows, and how many products were wrong."""
    def fitting(some):
        return [multiple_of_granule(kernel.name, s) for s in some]

    timed = fitting(shapes)
    if args.tune and isinstance(kernel, Chooser):
        for shape in timed:
            kernel.tune(torch, shape, args.tune)
    checked = (fitting(CHECK_SHAPES) if args.check else []) + \
        ([] if args.check and args.no_bench else timed)
    wrong = check(torch, kernel, list(dict.fromkeys(checked)), (1, 2))
    if wrong or args.no_bench:
        return [], wrong
    return bench(torch, kernel, timed, args, triton, proved), 0


def load_triton(wanted):
    if not wanted:
        return None
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "triton_gemm.py")
    spec = importlib.util.spec_from_file_location("triton_gemm", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="where the generated .c and .h lie")
    parser.add_argument("--kernels", default="",
                        help="single kernels, by name")
    parser.add_argument("--library", help="the library that chooses, by name")
    parser.add_argument("--types", default="bf16,f16,tf32,e4m3")
    parser.add_argument("--triton", action="store_true")
    parser.add_argument("--tune", nargs="?", type=int, const=16, default=0,
                        metavar="N", help="the library times N plans (16) for "
                        "each shape before")
    parser.add_argument("--check", action="store_true",
                        help="all check shapes besides the timed ones")
    parser.add_argument("--no-bench", action="store_true")
    parser.add_argument("--shapes", default="headline",
                        help="a set (%s) or M,N,K;M,N,K" % ", ".join(SHAPES))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--in-a-row", type=int, default=1,
                        help="time so many launches one after another")
    parser.add_argument("--require-certificates", action="store_true",
                        help="time nothing whose certificate does not hold")
    parser.add_argument("--json", help="write the rows here")
    args = parser.parse_args()
    if args.tune and not args.library:
        parser.error("--tune is for a --library")
    torch = torch_on_gpu("gpu_gemm")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.zeros(1, device="cuda")  # the context the libraries use
    shapes = SHAPES.get(args.shapes) or [
        tuple(int(x) for x in s.split(",")) for s in args.shapes.split(";")]
    kernels = [Single(args.folder, n) for n in args.kernels.split(",") if n]
    if args.library:
        kernels += choosers(args.folder, args.library, args.types.split(","))
    triton = load_triton(args.triton)
    rows, failures = [], 0
    proved = {name: what_is_proved(args, name)
              for name in dict.fromkeys(k.library_name for k in kernels)}
    for kernel in kernels:
        if args.require_certificates and not proved[kernel.library_name]:
            failures += 1
            continue
        new, wrong = measure(torch, kernel, shapes, args, triton,
                             proved[kernel.library_name])
        rows += new
        failures += wrong
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(0),
                       "rounds": args.rounds, "runs": args.runs,
                       "in_a_row": args.in_a_row,
                       "rows": rows}, f, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
