#!/usr/bin/env python3
"""Check and time the GEMM kernels with epilogues, batches, layouts and other
output types on one GPU.

    make.py EXO_OPT --library DIR && exo-translate DIR/tuned.json --to=c
        -o DIR/exo_gemm.c
    gpu_gemm_special.py DIR [--only=TEXT] [--bench]

Every kernel of DIR/tuned.json whose name has TEXT is called by itself, and each
entry through exo_gemm_ex, on shapes that do not fit the tiles: random alpha,
beta, bias, operands with rows apart, the result's surroundings and, where beta
is 0, C itself poisoned with NaN. The reference is a float64 product. Of tuning
it is checked that it leaves C alone and memory free, and is refused under
capture, that what it chooses is right, and read back from a file. --bench times
the entries beside what PyTorch offers for the same, by cuBLAS or cuBLASLt. Needs
PyTorch and a C compiler; no LLVM, no Z3.
"""
import argparse
import importlib.util
import json
import math
import os
import sys
import tempfile

from gpu_problem import (POOL_BYTES, Problem, output_of, rows_of,
                         stream_of)
from gpu_timing import compile_c, interleaved, torch_on_gpu

SHAPES = [(16, 16, 16), (136, 272, 80), (528, 1040, 208), (1024, 512, 2064)]
TIMED = [(4096, 4096, 4096), (2048, 1024, 512)]
EPILOGUE_WORDS = ("relu", "gelu", "silu")
PAD = 16  # elements between rows that belong to nobody
# Bytes that stay in the library's pool and with the kernels that are loaded; less
# than the tuner's scratch, twice the L2 cache.
KEPT = POOL_BYTES + (32 << 20)


def call_library(binding, p, kernel=None):
    """exo_gemm_ex through the Python binding's arguments; by one kernel."""
    layout = p.entry["layout"]
    binding.run(binding.args(
        p.entry["type"], p.shape, output=output_of(p.entry),
        activation=next((w for w in p.words if w in EPILOGUE_WORDS), None),
        a_mn_major=layout[0] == "n", b_mn_major=layout[1] == "t",
        batch=p.batch, a=p.a.data_ptr(), b=p.b.data_ptr(), c=p.c.data_ptr(),
        lda=rows_of(p.a), ldb=rows_of(p.b), ldc=rows_of(p.c),
        a_batch=p.a.stride(0), b_batch=p.b.stride(0), c_batch=p.c.stride(0),
        alpha=p.alpha, beta=p.beta,
        bias=p.bias.data_ptr() if p.bias is not None else None,
        stream=stream_of(p.torch)), kernel)


def check_entry(torch, binding, entry, only):
    """Failures of an entry's kernels, and how many were tried."""
    calls = {k["kernel"]: lambda p, n=k["kernel"]: call_library(binding, p, n)
             for k in entry["kernels"] if only in k["kernel"]}
    if calls:
        first = next(iter(calls)).rpartition("_")[0]
        calls[f"exo_gemm_ex as {first}"] = lambda p: call_library(binding, p)
    failures, worst = 0, 0.0
    for name, call in calls.items():
        for seed, shape in enumerate(SHAPES):
            p = Problem(torch, entry, shape, seed, PAD)
            call(p)
            torch.cuda.synchronize()
            error = p.error(p.wanted())
            if error <= p.tolerance() and p.surroundings_are_whole():
                worst = max(worst, error)
                continue
            failures += 1
            print(f"WRONG {name} {shape}: relative error {error:.3g}, "
                  f"surroundings {p.surroundings_are_whole()}", flush=True)
    if calls:
        print(f"{', '.join(calls)}: {failures} of {len(calls) * len(SHAPES)} "
              f"wrong, largest error {worst:.2e}", flush=True)
    return failures, len(calls) * len(SHAPES)


def check_arrays(torch, binding):
    """ExoGemm.gemm with PyTorch's arrays: views, batches, other outputs."""
    g = torch.Generator(device="cuda").manual_seed(5)

    def normal(*shape):
        return torch.randn(*shape, generator=g, device="cuda").bfloat16()

    tall, wide, row = normal(264, 96), normal(136, 96), normal(136)
    batch = normal(3, 264, 96), normal(3, 136, 96)
    calls = [
        (tall, wide, torch.bfloat16, {}),
        (tall, normal(96, 136).t(), torch.bfloat16, {"alpha": 0.5}),
        (normal(96, 264).t(), wide, torch.bfloat16, {"beta": 2.0}),
        (tall[8:, 16:], wide[:, 16:], torch.bfloat16,
         {"bias": row, "activation": "gelu"}),
        (tall, wide, torch.float32, {"alpha": 3.0}),
        (*batch, torch.bfloat16, {"alpha": 0.25}),
        (*batch, torch.bfloat16, {"bias": row}),  # one product at a time
    ]
    wrong = 0
    for a, b, output, how in calls:
        c = torch.ones(*a.shape[:-1], b.shape[-2], device="cuda",
                       dtype=output)
        want = how.get("alpha", 1.0) * (
            a.double() @ b.double().transpose(-1, -2)) + \
            how.get("beta", 0.0) * c.double()
        want += how["bias"].double() if "bias" in how else 0.0
        if "activation" in how:
            want = torch.nn.functional.gelu(want, approximate="tanh")
        try:
            binding.gemm(a, b, c, stream=stream_of(torch), **how)
        except RuntimeError as e:
            if "no kernel has type" not in str(e):
                raise
            print(f"ExoGemm.gemm {tuple(a.shape)} {list(how)} has no kernel "
                  "here")
            continue
        error = float((c.double() - want).norm() / want.norm())
        if not error <= 6e-3:
            wrong += 1
            print(f"WRONG ExoGemm.gemm {tuple(a.shape)} {list(how)}: {error}")
    return wrong, len(calls)


def free_memory(torch):
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0]


def check_tuning(torch, binding):
    """Tuning on this GPU in bf16: what was wrong is printed."""
    g = torch.Generator(device="cuda").manual_seed(6)
    field = torch.randn(2, 1000, 800, generator=g, device="cuda").bfloat16()
    a, b = field[0, :, :776], field[1, :520, :776]
    c = torch.full((1000, 520), 7.0, device="cuda", dtype=a.dtype)
    want = a.double() @ b.double().t()
    stream = torch.cuda.Stream()
    path = os.path.join(tempfile.mkdtemp(prefix="exo-bench-"), "tuned.txt")

    def choice():
        return binding.choice("bf16", 1000, 520, 776, lda=800, ldb=800)

    def is_right():
        stream.synchronize()
        return float((c.double() - want).norm() / want.norm()) <= 6e-3

    torch.cuda.synchronize()
    binding.gemm(a, b, c, stream=stream.cuda_stream)
    verdicts = {"untuned: a wrong product": is_right()}
    c.fill_(7.0)
    before, memory = choice(), free_memory(torch)
    found = binding.tune(a, b, c, 32, stream=stream.cuda_stream)
    verdicts["tuning writes C"] = bool((c == 7.0).all())
    verdicts["tuning keeps memory"] = free_memory(torch) >= memory - KEPT
    tuned = choice()
    print(f"tuning: {found.candidates} plans, {found.us:.1f} us by {tuned}, "
          f"{found.untuned_us:.1f} us by {before}")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        try:
            binding.tune(a, b, c, stream=stream.cuda_stream)
            verdicts["tuned under capture"] = False
        except RuntimeError as e:
            verdicts[f"under capture: {e}"] = "is captured" in str(e)
        binding.tune_first(4)
        binding.gemm(a, b, c, stream=stream.cuda_stream)
        binding.gemm(a[:512], b, c[:512], stream=stream.cuda_stream)
        binding.tune_first(0)
    graph.replay()
    torch.cuda.synchronize()
    verdicts["tuned: a wrong product"] = is_right()
    binding.save_tuned(path)
    binding.clear_tuned()
    verdicts["not forgotten"] = choice() == before
    verdicts["lines are left out"] = binding.load_tuned(path) == 0
    verdicts["not read back"] = choice() == tuned
    binding.clear_tuned()
    for words in (w for w, ok in verdicts.items() if not ok):
        print(f"WRONG {words}")
    return sum(not ok for ok in verdicts.values()), len(verdicts)


def theirs(torch, p):
    """The same by PyTorch, or None where it has no one call for it."""
    a, b, out = p.a[0], p.b[0].t(), p.c[0]
    if p.a.element_size() < 2 or p.output != p.inputs:
        return None
    if p.entry.get("batched"):
        bt = p.b.transpose(1, 2)
        return lambda: torch.baddbmm(p.c, p.a, bt, beta=p.beta, alpha=p.alpha,
                                     out=p.c)
    if p.bias is not None and "relu" in p.words or "gelu" in p.words:
        return (lambda: torch._addmm_activation(
            p.bias, a, b, use_gelu="gelu" in p.words)) \
            if p.bias is not None else None
    if "silu" in p.words:
        return None
    if p.bias is not None:
        return None if p.beta else lambda: torch.addmm(
            p.bias, a, b, alpha=p.alpha)
    return lambda: torch.addmm(out, a, b, beta=p.beta, alpha=p.alpha, out=out)


def bench_entry(torch, binding, entry, args):
    for shape in TIMED:
        p = Problem(torch, entry, shape, 1)
        p.c.zero_()
        bodies = {"ours": lambda p=p: call_library(binding, p)}
        other = theirs(torch, p)
        if other:
            bodies["theirs"] = other
        us = {k: 1e3 * v for k, v in
              interleaved(torch, bodies, args.rounds, 3, 1).items()}
        flop = 2.0 * math.prod(shape) * p.batch
        print("%-10s %-3s %-24s %16s  ours %8.1f us %6.1f TFLOP/s%s"
              % (entry["type"], entry["layout"],
                 (entry.get("epilogue") or "plain") + " " + output_of(entry) +
                 (" batch" if entry.get("batched") else ""),
                 "x".join(map(str, shape)), us["ours"],
                 flop / us["ours"] / 1e6,
                 "  PyTorch %8.1f us  ratio %.3f"
                 % (us["theirs"], us["theirs"] / us["ours"])
                 if other else ""), flush=True)


def load_binding(path):
    spec = importlib.util.spec_from_file_location(
        "exo_gemm", os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                 os.pardir, "kernels", "gemm", "exo_gemm.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ExoGemm(path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="with exo_gemm.c, .h and tuned.json")
    parser.add_argument("--only", default="", help="kernels with this in "
                        "their names")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    torch = torch_on_gpu("gpu_gemm_special")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.zeros(1, device="cuda")
    binding = load_binding(compile_c(args.folder, "exo_gemm"))
    with open(os.path.join(args.folder, "tuned.json"), encoding="utf-8") as f:
        plain, entries = [], []
        for e in json.load(f)["entries"]:
            is_plain = e["layout"] == "tn" and not (
                e.get("epilogue") or e.get("batched") or e.get("output"))
            (plain if is_plain else entries).append(e)
    counts = [check_entry(torch, binding, e, args.only)
              for e in entries]
    if "bf16" in binding.types:
        counts.append(check_arrays(torch, binding))
    if any(e["type"] == "bf16" for e in plain):
        counts.append(check_tuning(torch, binding))
    wrong = sum(c[0] for c in counts)
    print(f"{sum(c[1] for c in counts) - wrong} right, {wrong} wrong")
    if args.bench:
        for entry in entries:
            if any(args.only in k["kernel"] for k in entry["kernels"]):
                bench_entry(torch, binding, entry, args)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
