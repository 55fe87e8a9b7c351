#!/usr/bin/env python3
"""Check and time our GEMM kernels beside cuBLAS on one GPU.

The kernels come as the C libraries that `exo-translate --to=c` writes, which
this script compiles and calls with PyTorch's tensors; cuBLAS is PyTorch's
matmul. Checking: outputs poisoned, random normal inputs of two seeds, a
float64 product as the reference. Timing: per shape the candidates run
interleaved in shuffled order, the L2 cache is flushed before each run, events
time it, and the mean of the middle half of the rounds counts; the ratio of two
such means of one run is the figure, the median over runs is reported.

Needs PyTorch and a C compiler on the machine with the GPU; no LLVM, no Z3.
"""
import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

SHAPES = {
    "square": [(1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3],
    "headline": [(4096,) * 3, (8192,) * 3],
    "wide": [(16384, 16384, 4096), (4096, 4096, 16384), (8192, 8192, 512),
             (8192, 1024, 8192)],
}

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

# Element types of inputs and output by what a kernel's name contains, and the
# relative error in the Frobenius norm that the format allows.
FORMATS = [
    ("bf16", "bfloat16", "bfloat16", 6e-3),
    ("f16", "float16", "float16", 1e-3),
    ("tf32", "float32", "float32", 2e-3),
    ("f32", "float32", "float32", 1e-5),
]


def format_of(name):
    for part, inputs, output, tolerance in FORMATS:
        if part in name:
            return inputs, output, tolerance
    raise SystemExit(f"gpu_gemm: no element type is known for '{name}'")


class Library:
    """One generated C library, compiled here and called through ctypes."""

    def __init__(self, folder, name):
        self.name = name
        source = os.path.join(folder, name + ".c")
        self.folder = tempfile.mkdtemp(prefix="exo-bench-")
        shared = os.path.join(self.folder, name + ".so")
        subprocess.run(["cc", "-O2", "-std=c11", "-shared", "-fPIC", "-I",
                        folder, source, "-o", shared, "-lpthread", "-ldl"],
                       check=True)
        self.lib = ctypes.CDLL(shared)
        self.function = getattr(self.lib, name)
        self.function.restype = ctypes.c_int
        self.error = getattr(self.lib, name + "_error_string")
        self.error.restype = ctypes.c_char_p

    def __call__(self, *args):
        raw = []
        for a in args:
            if isinstance(a, int):
                raw.append(ctypes.c_int64(a))
            elif isinstance(a, float):
                raw.append(ctypes.c_float(a))
            else:
                raw.append(ctypes.c_void_p(a.data_ptr()))
        import torch
        stream = torch.cuda.current_stream().cuda_stream
        code = self.function(*raw, ctypes.c_void_p(stream))
        if code != 0:
            raise RuntimeError(f"{self.name}: {self.error(code).decode()}")


def middle_half_mean(values):
    values = sorted(values)
    quarter = len(values) // 4
    return statistics.fmean(values[quarter:len(values) - quarter])


def operands(torch, name, shape, seed):
    m, n, k = shape
    inputs, output, _ = format_of(name)
    dtype, out = getattr(torch, inputs), getattr(torch, output)
    g = torch.Generator(device="cuda").manual_seed(seed)
    a = torch.randn(m, k, generator=g, device="cuda").to(dtype)
    b = torch.randn(n, k, generator=g, device="cuda").to(dtype)
    c = torch.full((m, n), float("nan"), device="cuda", dtype=out)
    return a, b, c


def relative_error(torch, a, b, c):
    """||C - A B^T|| / ||A B^T||, in float64, in row blocks to save memory."""
    error = norm = 0.0
    step = max(1, (1 << 27) // max(1, b.shape[0]))
    bt = b.double().t()
    for r in range(0, a.shape[0], step):
        want = a[r:r + step].double() @ bt
        got = c[r:r + step].double()
        error += float(((got - want) ** 2).sum())
        norm += float((want ** 2).sum())
    return (error / norm) ** 0.5 if norm else error ** 0.5


def check(torch, library, shapes, seeds):
    failures = 0
    worst = 0.0
    for shape in shapes:
        for seed in seeds:
            a, b, c = operands(torch, library.name, shape, seed)
            library(*shape, a, b, c)
            torch.cuda.synchronize()
            error = relative_error(torch, a, b, c)
            right = error <= format_of(library.name)[2]  # NaN is not right
            worst = max(worst, error) if right else worst
            if not right:
                failures += 1
                print(f"WRONG {library.name} {shape} seed {seed}: relative "
                      f"error {error:.3g}", flush=True)
    print(f"{library.name}: {len(shapes) * len(seeds) - failures} of "
          f"{len(shapes) * len(seeds)} right, largest error {worst:.2e}",
          flush=True)
    return failures


def one_run(torch, library, shape, rounds, seed):
    a, b, c = operands(torch, library.name, shape, seed)
    out = torch.empty_like(c)
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    bodies = {
        "ours": lambda: library(*shape, a, b, c),
        "cublas": lambda: torch.mm(a, b.t(), out=out),
    }
    times = {k: [] for k in bodies}
    shuffle = random.Random(seed)
    for round_ in range(rounds + 4):
        order = list(bodies)
        shuffle.shuffle(order)
        for which in order:
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            flush.zero_()
            start.record()
            bodies[which]()
            end.record()
            torch.cuda.synchronize()
            if round_ >= 4:
                times[which].append(start.elapsed_time(end))
    return {k: middle_half_mean(v) for k, v in times.items()}


def bench(torch, library, shapes, rounds, runs):
    rows = []
    for shape in shapes:
        flop = 2.0 * shape[0] * shape[1] * shape[2]
        results = [one_run(torch, library, shape, rounds, 1 + r)
                   for r in range(runs)]
        ratios = [r["cublas"] / r["ours"] for r in results]
        row = {
            "kernel": library.name, "shape": shape,
            "ratio": statistics.median(ratios), "ratios": ratios,
            "tflops": {k: statistics.median(flop / r[k] / 1e9
                                            for r in results)
                       for k in ("ours", "cublas")},
        }
        rows.append(row)
        print("%-16s %18s  ours %6.1f  cuBLAS %6.1f TFLOP/s  ratio %.3f  (%s)"
              % (library.name, "x".join(map(str, shape)),
                 row["tflops"]["ours"], row["tflops"]["cublas"], row["ratio"],
                 " ".join("%.3f" % r for r in ratios)), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="where the generated .c and .h lie")
    parser.add_argument("--kernels", default="gemm_sm90_bf16,gemm_sm90_tf32")
    parser.add_argument("--check", action="store_true",
                        help="all check shapes instead of the timed ones only")
    parser.add_argument("--no-bench", action="store_true")
    parser.add_argument("--shapes", default="headline",
                        help="a set (%s) or M,N,K;M,N,K" % ", ".join(SHAPES))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", help="write the rows here")
    args = parser.parse_args()

    import torch
    if not torch.cuda.is_available():
        print("gpu_gemm: no GPU here", file=sys.stderr)
        return 4
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.zeros(1, device="cuda")  # the context the libraries use
    shapes = SHAPES.get(args.shapes) or [
        tuple(int(x) for x in s.split(",")) for s in args.shapes.split(";")]
    rows, failures = [], 0
    for name in args.kernels.split(","):
        library = Library(args.folder, name)
        failures += check(torch, library,
                          CHECK_SHAPES if args.check else shapes, (1, 2))
        if failures == 0 and not args.no_bench:
            rows += bench(torch, library, shapes, args.rounds, args.runs)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(0),
                       "rounds": args.rounds, "runs": args.runs,
                       "rows": rows}, f, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
