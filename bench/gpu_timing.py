"""What the tuner and the benchmark of GEMMs share: element types, operands,
the judgement of a product, and timing on a GPU. `torch` is PyTorch's module."""
import os
import random
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple


class Format(NamedTuple):
    """Inputs and output by PyTorch's names, bytes of an element of each, and
    the relative error in the Frobenius norm that the format allows."""
    inputs: str
    output: str
    bytes_in: int
    bytes_out: int
    tolerance: float


FORMATS = {
    "bf16": Format("bfloat16", "bfloat16", 2, 2, 6e-3),
    "f16": Format("float16", "float16", 2, 2, 1e-3),
    "tf32": Format("float32", "float32", 4, 4, 1e-3),
    "f32": Format("float32", "float32", 4, 4, 1e-5),
    "e4m3": Format("float8_e4m3fn", "bfloat16", 1, 2, 2e-2),
    "e5m2": Format("float8_e5m2", "bfloat16", 1, 2, 2e-2),
    "e4m3_sums": Format("float8_e4m3fn", "bfloat16", 1, 2, 6e-3),
    "e5m2_sums": Format("float8_e5m2", "bfloat16", 1, 2, 6e-3),
}


def torch_on_gpu(program):
    """PyTorch's module. Without it, or without a GPU, one line says so and the
    program ends with status 2."""
    try:
        import torch
    except ImportError:
        print(f"{program}: needs PyTorch, which is not installed here",
              file=sys.stderr)
        sys.exit(2)
    if not torch.cuda.is_available():
        print(f"{program}: needs a GPU, and PyTorch finds none here",
              file=sys.stderr)
        sys.exit(2)
    return torch


def kind_of(name):
    """The element type in a kernel's name: gemm_sm90_bf16, exo_gemm e4m3,
    gemm_e4m3_sums_128x128, whose sums of 128 products are added in f32."""
    words = "_" + name.replace(" ", "_") + "_"
    kinds = [kind for kind in FORMATS if f"_{kind}_" in words]
    if not kinds:
        raise SystemExit(f"no element type is known for '{name}'")
    return max(kinds, key=len)


def compile_c(folder, name):
    """The shared library of folder/name.c, in a folder of its own."""
    shared = os.path.join(tempfile.mkdtemp(prefix="exo-bench-"), name + ".so")
    subprocess.run(["cc", "-O2", "-std=c11", "-shared", "-fPIC", "-I", folder,
                    os.path.join(folder, name + ".c"), "-o", shared,
                    "-lpthread", "-ldl"], check=True)
    return shared


LAYOUTS = ("tn", "nn", "nt", "tt")


def layout_of(name):
    """The layout in a kernel's name, gemm_bf16_nt_128x256; "tn" without one."""
    return next((w for w in name.split("_") if w in LAYOUTS), "tn")


def operands(torch, kind, shape, seed, layout="tn"):
    """Random normal A[m, k] and B[n, k], in memory as the layout says (first
    letter A, n: by columns; second B, t: by columns), and C full of NaN."""
    m, n, k = shape
    form = FORMATS[kind]
    dtype = getattr(torch, form.inputs)
    g = torch.Generator(device="cuda").manual_seed(seed)
    a = torch.randn(m, k, generator=g, device="cuda").to(dtype)
    b = torch.randn(n, k, generator=g, device="cuda").to(dtype)
    if layout[0] == "n":
        a = a.t().contiguous().t()
    if layout[1] == "t":
        b = b.t().contiguous().t()
    c = torch.full((m, n), float("nan"), device="cuda",
                   dtype=getattr(torch, form.output))
    return a, b, c


def in_memory(operand, by_columns):
    """The operand as its rows lie in memory."""
    return operand.t() if by_columns else operand


def relative_error(a, b, c):
    """||C - A B^T|| / ||A B^T||, in float64, in row blocks to save memory."""
    error = norm = 0.0
    step = max(1, (1 << 27) // max(1, b.shape[0]))
    bt = b.float().double().t()
    for r in range(0, a.shape[0], step):
        want = a[r:r + step].float().double() @ bt
        got = c[r:r + step].double()
        error += float(((got - want) ** 2).sum())
        norm += float((want ** 2).sum())
    return (error / norm) ** 0.5 if norm else error ** 0.5


def is_right(kind, error):
    """NaN is not."""
    return error <= FORMATS[kind].tolerance


def middle_half_mean(values):
    values = sorted(values)
    quarter = len(values) // 4
    return statistics.fmean(values[quarter:len(values) - quarter])


def _once(torch, flush, body, in_a_row):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    flush.zero_()
    torch.cuda._sleep(300000 * in_a_row)
    start.record()
    for _ in range(in_a_row):
        body()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / in_a_row


def interleaved(torch, bodies, rounds, warmup, seed, in_a_row=1):
    """Milliseconds of each body by name: in shuffled order, the L2 cache flushed
    before each run, which a spinning kernel delays until its launches are
    queued; the mean of the middle half of the rounds after the first `warmup`.
    A run is so many in a row, of which the mean counts."""
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    times = {name: [] for name in bodies}
    shuffle = random.Random(seed)
    for round_ in range(rounds + warmup):
        order = list(bodies)
        shuffle.shuffle(order)
        for name in order:
            spent = _once(torch, flush, bodies[name], in_a_row)
            if round_ >= warmup:
                times[name].append(spent)
    return {name: middle_half_mean(v) for name, v in times.items()}
