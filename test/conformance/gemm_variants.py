#!/usr/bin/env python3
"""The kernels of kernels/gemm are what their sources and schedules give, and
translate with all their checks.

Every committed text is compared; every kernel, also those that are not stored,
is translated, and run on the machine model against its meaning, in long runs
(EXO_LONG=1), otherwise a few of each type and layout. The last line counts.
"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

BIN = os.environ["EXO_BIN"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
GEMM = os.path.join(ROOT, "kernels", "gemm")
SAMPLE = ("_128x256", "_64x64", "_64x32", "_64x64_s8", "_64x64_p1024",
          "_128x128_w768", "_80x128_x", "_160x256_c2_x", "_72x64_s8_x")
# A ragged edge of each extent; K shorter than the ring, and longer, and of more
# than one part.
SIZES = ("M=136,N=48,K=16", "M=72,N=272,K=1040")

SPECIAL_SAMPLE = (
    "gemm_bf16_bias_gelu_64x64", "gemm_bf16_beta_bias_128x128",
    "gemm_bf16_nt_beta_64x64", "gemm_f16_f32_bias_64x64",
    "gemm_tf32_alpha_64x64", "gemm_e4m3_f16_alpha_128x128",
    "gemm_bf16_beta_silu_64x64", "gemm_tf32_beta_bias_relu_128x128",
    "gemm_e4m3_bias_gelu_64x64", "gemm_bf16_bias_gelu_64x64_s4",
    "gemm_f16_bias_128x64_s4", "gemm_bf16_f32_64x64_s4",
    "gemm_e4m3_bias_64x64_s4", "gemm_bf16_beta_128x128_w768",
    "gemm_f16_bias_128x128_w768", "gemm_bf16_f32_batch_beta_128x128",
    "gemm_f16_nn_batch_128x128")

# Clusters of CTAs beside each other, and in both directions: type, layout,
# output, epilogue, batched; CTAs below and beside each other.
CLUSTERS = ((("bf16", "tn", "bf16", "", False), 1, 2),
            (("bf16", "nt", "bf16", "", False), 1, 2),
            (("tf32", "tn", "f32", "bias", False), 1, 4),
            (("f16", "tn", "f16", "beta_bias", False), 2, 2),
            (("bf16", "nt", "bf16", "", True), 2, 2),
            (("e4m3_sums", "tn", "bf16", "", False), 2, 2))

# Tiles of two sizes: type, columns; sizes with tiles of both, or of one.
TAILS = (("bf16", 96), ("f16", 128), ("tf32", 64))
TAIL_SIZES = ("M=600,N=136,K=328,W=1", "M=520,N=48,K=16,W=2",
              "M=904,N=264,K=72,W=1")

# Tiles of a task that take turns: type, layout, output, epilogue, batched;
# columns, tiles of 64 rows, CTAs below and beside each other.
PINGPONG = ((("bf16", "tn", "bf16", "", False), 64, 1, 1, 1),
            (("tf32", "tn", "f32", "beta_bias_relu", False), 64, 1, 1, 1),
            (("bf16", "nt", "bf16", "beta", True), 64, 2, 1, 1),
            (("f16", "nn", "f32", "bias", False), 64, 1, 2, 2),
            (("e4m3_sums", "tn", "bf16", "", False), 48, 1, 2, 1))

# A statement without which a special kernel is wrong: the lanes of a warp read
# the old C that others of them overwrite; C and the bias are there before they
# are read, and free before the next come.
NEEDED = (
    ("gemm_bf16_beta_64x64", "Fence(cuda_in_order, cuda_in_order)"),
    ("gemm_bf16_beta_64x64",
     "Await(c_full[c, g, 0], cuda_generic_and_async_proxy, 0)"),
    ("gemm_bf16_beta_64x64", "Await(c_free[c, g, 0], cuda_temporal, 0)"),
    ("gemm_bf16_bias_64x64",
     "Await(bias_full[c, 0], cuda_generic_and_async_proxy, 0)"),
    ("gemm_bf16_bias_64x64", "Await(bias_free[c, 0], cuda_temporal, 0)"),
    ("gemm_bf16_bias_64x64", "Arrive(cuda_in_order, 1) >> bias_free[c, 1]"),
    ("gemm_bf16_beta_64x64_s4",
     "Await(c_full[c, 0], cuda_generic_and_async_proxy, 0)"),
    ("gemm_bf16_beta_64x64_s4", "Await(c_free[c, 0], cuda_temporal, 0)"),
    ("gemm_bf16_bias_64x64_s4",
     "Await(bias_full[c, 0], cuda_generic_and_async_proxy, 0)"),
    ("gemm_bf16_bias_64x64_s4", "Await(sum_free[c, 0], cuda_in_order, 0)"),
    ("gemm_bf16_bias_64x64_s4", "Arrive(cuda_in_order, 1) >> sum_free[c, 1]"),
    ("gemm_bf16_bias_64x64_s4", "Arrive(cuda_in_order, 1) >> c_ready[c, 0]"),
    ("gemm_bf16_64x64_pp", "Await(turn[c, 0], cuda_temporal, 0)"),
    ("gemm_bf16_64x64_pp", "Await(turn[c, 1], cuda_temporal, 0)"),
    ("gemm_bf16_64x64_pp", "Arrive(cuda_in_order, 1) >> turn[c, 1]"),
    ("gemm_bf16_beta_128x128_w768", "Fence(cuda_in_order, cuda_in_order)"))


def load_make():
    spec = importlib.util.spec_from_file_location(
        "make", os.path.join(GEMM, "src", "make.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tool(name, path, *args):
    done = subprocess.run([os.path.join(BIN, name), path, *args],
                          capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode != 0 else ""


def errors_of(path):
    errors = tool("exo-translate", path, "--to=ptx", "-o", os.devnull)
    batch = "L=3," if "_batch_" in path else ""
    for size in TAIL_SIZES if path.endswith("_t.exo") else SIZES:
        errors += tool("exo-run", path, "--size", batch + size,
                       "--level=async", "--check")
    return errors


def without(make):
    """How many of the kernels that lack a statement of NEEDED are refuted, and
    how many not."""
    refuted = 0
    kernels = {k[0]: k for k in (*make.special_kernels(), *pingpong(make))}
    for name, statement in NEEDED:
        text = make.schedule(os.path.join(BIN, "exo-opt"), *kernels[name])
        pattern = r"\s+".join(re.escape(w) for w in statement.split())
        faulty, found = re.subn(pattern, "pass", text, count=1)
        with tempfile.NamedTemporaryFile("w", suffix=".exo") as f:
            f.write(faulty)
            f.flush()
            done = subprocess.run([os.path.join(BIN, "exo-check"), f.name],
                                  capture_output=True, text=True, check=False)
        right = found and done.returncode == 1
        if not right:
            print(f"{name} without {statement}: {done.stdout}{done.stderr}")
        refuted += right
    return refuted, len(NEEDED) - refuted


def translated(kernels, make):
    """How many of the kernels are right, and wrong."""
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for kernel in kernels:
            make.write(folder, os.path.join(BIN, "exo-opt"), kernel)
            errors = errors_of(os.path.join(folder, kernel[0] + ".exo"))
            if errors:
                print(f"{kernel[0]}.exo does not translate and agree:\n"
                      f"{errors}")
            passed += not errors
            failed += bool(errors)
    return passed, failed


def made(make, kind, ending, more):
    """A kernel that is not in the table."""
    kind = make.program.Kind(*kind)
    params = {**make.layout_params(kind.layout), **make.program.params(kind),
              **more}
    source = f"gemm_{kind.type}.exo"
    if kind.type.endswith("_sums"):
        params.update(TYPE=kind.type.removesuffix("_sums"), SUMS=1)
    else:
        source = make.program.text(kind)
    return f"{make.program.name(kind)}_{ending}", source, params


def clusters(make):
    """The kernels of CLUSTERS."""
    for kind, below, beside in CLUSTERS:
        yield made(make, kind, f"64x64_c{below}n{beside}",
                   {"WARPGROUPS": 1, "TILE_N": 64, "CLUSTER": below,
                    "CLUSTER_N": beside})


def pingpong(make):
    """The kernels of PINGPONG."""
    for kind, columns, subtiles, below, beside in PINGPONG:
        yield made(make, kind, f"{64 * subtiles}x{columns}_pp",
                   {"schedule": "sm90_pingpong.sched", "TILE_N": columns,
                    "SUBTILES": subtiles, "CLUSTER": below,
                    "CLUSTER_N": beside})


def tails(make):
    """The kernels of TAILS."""
    for type_, columns in TAILS:
        kind = make.program.plain(type_)
        yield (f"gemm_{type_}_256x{columns}_t",
               make.tail_source(f"gemm_{type_}.exo"),
               {"schedule": "sm90_tail.sched", "TYPE": kind.element,
                "OUT": kind.output, "TILE_N": columns})


def special(make):
    """The kernels that are not stored, or a few of them."""
    for kernel in make.special_kernels():
        if os.environ.get("EXO_LONG") or kernel[0] in SPECIAL_SAMPLE:
            yield kernel


def main():
    make, passed, failed = load_make(), 0, 0
    names = set()
    for name, source, params in make.variants():
        path = os.path.join(GEMM, name + ".exo")
        names.add(name + ".exo")
        text = make.schedule(os.path.join(BIN, "exo-opt"), name, source,
                             params)
        with open(path, encoding="utf-8") as f:
            same = f.read() == text
        if not same:
            print(f"{name}.exo is not what its source and schedule give: "
                  "run kernels/gemm/src/make.py")
        errors = ""
        if os.environ.get("EXO_LONG") or name.endswith(SAMPLE):
            errors = errors_of(path)
        if errors:
            print(f"{name}.exo does not translate and agree:\n{errors}")
        right = same and not errors
        passed += right
        failed += not right
    stray = {f for f in os.listdir(GEMM) if f.endswith(".exo")} - names
    for name in sorted(stray):
        print(f"{name} has no row in src/variants.json")
    failed += len(stray)
    for more in (translated(special(make), make),
                 translated(clusters(make), make),
                 translated(pingpong(make), make),
                 translated(tails(make), make), without(make)):
        passed += more[0]
        failed += more[1]
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
