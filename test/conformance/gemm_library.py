#!/usr/bin/env python3
"""The library of a table of kernels: it compiles, is refused when wrong, takes
the entry that serves what is asked for, and chooses as the costs say, here
computed once more.

Needs exo-translate with LLVM, jansson and ptxas, and a C compiler; runs without
a GPU, since choosing needs none.
"""
import copy
import ctypes
import importlib.util
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile

BIN = os.environ["EXO_BIN"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
GEMM = os.path.join(ROOT, "kernels", "gemm")


def kernel(name, rows, columns, cluster, one_wave, waves, **split):
    return {"file": os.path.join(GEMM, f"gemm_{name}.exo"),
            "kernel": f"gemm_{name}", "rows": rows, "columns": columns,
            "cluster": cluster, "step": 64, "one_wave": one_wave,
            "waves": waves, **split}


TABLE = {
    "version": 1, "function": "exo_gemm", "device": "a test",
    "multiprocessors": 132,
    "entries": [{
        "type": "bf16", "layout": "tn",
        "kernels": [
            kernel("bf16_128x256_c2", 128, 256, 2, [7, 0.55, 0.1, 0.05],
                   [5, 1.4, 0.68, 0]),
            kernel("bf16_64x64", 64, 64, 1, [5, 0.1, 0.3, 0.02, 0.01],
                   [4.5, 0.4, 0.1, 0.03, 0.04, 0.08]),
            kernel("bf16_64x64_s8", 64, 64, 1, [6.5, 0.1, 0.3, 0.05],
                   [6, 1.4, 0.18, 0.03], split=8, slots=15),
            kernel("bf16_64x128_s4", 64, 128, 1, [6.4, 0.15, 0.2, 0.05],
                   [6, 1.3, 0.28, 0.02], split=4, part=4096),
            kernel("bf16_128x128_w768", 128, 128, 1,
                   [8, 0.3, 0.08, 0.02, 0, 0.3],
                   [8, 0.9, 0.3, 0.02, 0, 0, 0.4], part=768, sums=32),
            kernel("bf16_256x128", 256, 128, 1, [7.2, 0.5, 0.1, 0.05],
                   [5.1, 1.3, 0.65, 0], beside=2),
            kernel("bf16_256x96_t", 256, 96, 1, [6.2, 0.4, 0.1, 0.02],
                   [6, 0.9, 0.45, 0.01, 0.01, 0.01], half=128)],
        "shapes": [{"M": 64, "N": 64, "K": 64,
                    "kernel": "gemm_bf16_128x256_c2"}]}],
}


# Shapes with a long K, and with more parts or more sums than there is room for.
SUMMED = [(72, 720, 15528), (256, 256, 24576), (256, 256, 24584),
          (1024, 1024, 12288), (1032, 1024, 12288)]

# Entries of a second library: layout, output, epilogue, batched.
SPECIAL = [("tn", "bf16", "", False), ("tn", "bf16", "alpha", False),
           ("nt", "bf16", "beta", False), ("tn", "f32", "bias_gelu", False),
           ("tn", "bf16", "alpha", True)]

# What is asked of it, and the kernel or the message that answers.
ASKED = [
    ({}, "gemm_bf16_64x64"),
    ({"alpha": 2.0}, "gemm_bf16_alpha_64x64"),
    ({"batch": 1}, "gemm_bf16_64x64"),
    ({"batch": 4, "c_batch": 4096}, "gemm_bf16_64x64"),
    ({"batch": 4, "a_batch": 4096, "b_batch": 4096, "c_batch": 4096},
     "gemm_bf16_batch_alpha_64x64"),
    ({"batch": 4, "a_batch": 4096, "b_batch": 0, "c_batch": 4096},
     "gemm_bf16_64x64"),
    ({"batch": 4, "a_batch": 4096, "b_batch": 4096, "c_batch": 4096,
      "alpha": 3.0}, "gemm_bf16_batch_alpha_64x64"),
    ({"beta": 1.0, "a_mn_major": 1, "b_mn_major": 1},
     "gemm_bf16_nt_beta_64x64"),
    ({"output": "f32", "bias": 16, "activation": "gelu"},
     "gemm_bf16_f32_bias_gelu_64x64"),
    ({"beta": 1.0}, "layout tn, output bf16, epilogue alpha_beta; those of "
                    "the type are: tn bf16, tn bf16 alpha, nt bf16 beta, "
                    "tn f32 bias_gelu, tn bf16 batched alpha"),
    ({"a_mn_major": 1}, "layout nn, output bf16"),
    ({"output": "f16"}, "output f16"),
    ({"output": "f32", "activation": "gelu"}, "epilogue alpha_gelu;"),
    ({"output": "f32", "bias": 16, "activation": "relu"},
     "epilogue alpha_bias_relu;"),
    ({"batch": -1}, "batch must be 0 to 2^30"),
    ({"lda": 1 << 31}, "strides must be within 2^30"),
]

# Strides in a product [64, 64, 64], or one with fewer rows or more products, as
# exo_gemm_ex takes and refuses them.
STRIDES = [
    ({"ldc": 72}, "A is NULL"),
    ({"ldc": 56}, "rows of C overlap: n = 64, ldc = 56, c_batch = 0"),
    ({"ldc": -56}, "rows of C overlap"),
    ({"ldc": 0}, "rows of C overlap"),
    ({"m": 1, "lda": 1, "ldc": 1}, "A is NULL"),
    ({"m": 1, "batch": 2, "c_batch": 64}, "A is NULL"),
    ({"m": 1, "batch": 2, "c_batch": 56}, "rows of C overlap"),
    ({"batch": 2, "c_batch": 4096}, "A is NULL"),
    ({"batch": 2, "c_batch": -4096}, "A is NULL"),
    ({"batch": 2, "c_batch": 4088}, "rows of C overlap"),
    ({"batch": 2, "c_batch": 0}, "rows of C overlap"),
    ({"batch": 2, "c_batch": 64, "ldc": 128}, "A is NULL"),
    ({"batch": 2, "c_batch": 56, "ldc": 128}, "rows of C overlap"),
    ({"batch": 3, "c_batch": 64, "ldc": 128}, "rows of C overlap"),
    ({"batch": 2, "c_batch": 4096, "a_batch": 1},
     "must be multiples of 16 bytes"),
    ({"batch": 2, "c_batch": 4096, "b_batch": 4}, "multiples of 16 bytes"),
    ({"batch": 2, "c_batch": 4097}, "multiples of 16 bytes"),
]


def parts(n, size):
    return -(-n // size)


def slots_of(k):
    return k.get("slots", 132 // (k["cluster"] * k.get("beside", 1) *
                                  k.get("split", 1)))


def columns_of(k):
    """Of a cluster."""
    return k["columns"] * k.get("beside", 1)


def depths(x, k):
    """Of K: parts, and columns of the longest."""
    part = x.get("part", 1 << 30)
    return parts(k, part), min(k, part)


def sums_of(x, m, n, k):
    """Megabytes of sums of parts; None where there is no room for them."""
    count = depths(x, k)[0]
    if "sums" not in x:
        return 0
    room = count <= x["sums"] and 4 * count * m * n <= 64 << 20
    return 4e-6 * count * m * n if room else None


def megabytes_of(m, n, k):
    return 1e-6 * 2 * ((m + n) * k + m * n)


def whole_rows(k, m, n):
    """Of tiles of a kernel with smaller ones, too."""
    across = parts(n, k["columns"])
    whole = parts(m, k["rows"]) * across // 132 * 132 // across
    return max(1, min(whole, m // k["rows"]))


def cost_of_two_sizes(k, m, n, depth):
    across, whole = parts(n, k["columns"]), whole_rows(k, m, n)
    if m < k["rows"] or parts(m, k["rows"]) * across < 132:
        return 1e30
    below = parts(m - whole * k["rows"], k["half"])
    rounds = parts(whole * across, 132) + 0.5 * parts(below * across, 132)
    traffic = 1e-6 * 2 * depth * across * (
        whole * k["rows"] + below * k["half"] +
        (whole + below) * k["columns"])
    a, b, c, d, e, f = k["waves"][:6]
    return (a + rounds * (b + c * parts(depth, k["step"])) +
            d * megabytes_of(m, n, depth) + e * traffic +
            f * (traffic if depth % 64 else 0))


def cost(k, m, n, steps_of):
    if "half" in k:
        return cost_of_two_sizes(k, m, n, steps_of)
    deep, longest = depths(k, steps_of)
    whole = parts(m, k["rows"] * k["cluster"]) * parts(n, columns_of(k))
    tiles = whole * deep
    slots = slots_of(k)
    steps = parts(longest, k["step"] * k.get("split", 1))
    megabytes = megabytes_of(m, n, steps_of)
    traffic = 1e-6 * 2 * whole * steps_of * (k["rows"] * k["cluster"] +
                                             columns_of(k))
    straddled = traffic if steps_of % 64 else 0
    sums = sums_of(k, m, n, steps_of)
    if sums is None:
        return 1e30
    if tiles <= slots:
        a, b, c, d, e, f = (k["one_wave"] + [0, 0])[:6]
        return (a + b * steps + c * megabytes + d * steps * tiles / slots +
                e * straddled + f * sums)
    a, b, c, d, e, f, g = (k["waves"] + [0, 0, 0])[:7]
    return (a + parts(tiles, slots) * (b + c * steps) + d * megabytes +
            e * traffic + f * straddled + g * sums)


def expected(m, n, k):
    """The plan by the rule that codegen/c_dispatch.h states."""
    entry = TABLE["entries"][0]
    for s in entry["shapes"]:
        if (s["M"], s["N"], s["K"]) == (m, n, k):
            return s["kernel"]
    best = min(entry["kernels"], key=lambda x: cost(x, m, n, k))
    text, least = best["kernel"], cost(best, m, n, k)
    for x in entry["kernels"]:
        for by_columns in () if "half" in x else (False, True):
            along = columns_of(x) if by_columns else x["rows"] * x["cluster"]
            across = (parts(m, x["rows"] * x["cluster"]) if by_columns
                      else parts(n, columns_of(x))) * depths(x, k)[0]
            total, slots = (n if by_columns else m), slots_of(x)
            rounds = parts(total, along) * across // slots
            at = rounds * slots // across * along
            if rounds < 1 or not 1 <= at < total:
                continue
            rest = (m, n - at) if by_columns else (m - at, n)
            whole = (m, at) if by_columns else (at, n)
            second = min(entry["kernels"], key=lambda y: cost(y, *rest, k))
            both = cost(x, *whole, k) + cost(second, *rest, k)
            if both < 0.97 * least:
                least = both
                text = (f"{x['kernel']} {'columns' if by_columns else 'rows'} "
                        f"0:{at}, {second['kernel']}")
    return text


class Run:
    def __init__(self, folder):
        self.folder, self.passed, self.failed = folder, 0, 0
        self.made = 0

    def note(self, ok, text):
        self.passed += bool(ok)
        self.failed += not ok
        if not ok:
            print(text)

    def library(self, table):
        """The shared library of a table, or None."""
        done = self.translate(table)
        shared = os.path.join(self.folder, f"exo_gemm_{self.made}.so")
        self.made += 1
        built = done.returncode == 0 and subprocess.run(
            ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared",
             "-fPIC", os.path.join(self.folder, "exo_gemm.c"), "-o", shared,
             "-ldl", "-lpthread"], check=False).returncode == 0
        self.note(built, f"the library is not made: {done.stderr}")
        return shared if built else None

    def translate(self, table):
        path = os.path.join(self.folder, "table.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(table if isinstance(table, str) else json.dumps(table))
        return subprocess.run(
            [os.path.join(BIN, "exo-translate"), path, "--to=c", "-o",
             os.path.join(self.folder, "exo_gemm.c")], capture_output=True,
            text=True, check=False)


def check_choices(run, library, shapes):
    for shape in shapes:
        got = library.choice("bf16", *shape)
        run.note(got == expected(*shape),
                 f"{shape}: chose '{got}', expected '{expected(*shape)}'")


def load(name, *path):
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(GEMM, *path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def special_entry(folder, *kind):
    """An entry of one kernel of 64 x 64 of that kind, made in the folder."""
    make = load("make", "src", "make.py")
    kind = make.program.Kind("bf16", *kind)
    name = make.program.name(kind) + "_64x64"
    make.write(folder, os.path.join(BIN, "exo-opt"),
               (name, make.program.text(kind),
                make.special_params(kind, "64x64")))
    return {**kind._asdict(), "shapes": [], "kernels": [
        {**TABLE["entries"][0]["kernels"][1], "kernel": name,
         "file": name + ".exo"}]}


def special_table(folder):
    """The kernels of SPECIAL, in the folder, and their table."""
    return {**TABLE, "entries": [special_entry(folder, *kind)
                                 for kind in SPECIAL]}


def check_special(run, binding, folder):
    """Each request of ASKED gets its answer, in exo_gemm_ex too, which without
    a GPU goes as far as the kernel's own checks: none has an address."""
    shared = run.library(special_table(folder))
    library = binding.ExoGemm(shared) if shared else None
    for asked, answer in ASKED if library else []:
        served = answer.startswith("gemm_")
        try:
            got = library.choice("bf16", 64, 64, 64, **asked)
        except RuntimeError as e:
            got = str(e)
        run.note(got == answer if served else answer in got,
                 f"{asked}: '{got}', expected '{answer}'")
        try:
            library.run(library.args("bf16", (64, 64, 64), ldc=64, **asked))
            got = "it ran"
        except RuntimeError as e:
            got = str(e)
        run.note((answer + ": A is NULL" if served else answer) in got,
                 f"{asked}: exo_gemm_ex said '{got}'")
    for kernel, answer in (
            ("gemm_bf16_64x64", "gemm_bf16_64x64: A is NULL"),
            ("gemm_bf16_alpha_64x64", "'gemm_bf16_alpha_64x64' is no kernel "
                                      "for these arguments")
    ) if library else ():
        try:
            library.run(library.args("bf16", (64, 64, 64), ldc=64), kernel)
            got = "it ran"
        except RuntimeError as e:
            got = str(e)
        run.note(answer in got, f"exo_gemm_ex_by {kernel} said '{got}'")
    if library:
        check_strides(run, library)
        check_arrays(run, binding, library)


def check_strides(run, library):
    """Each row of STRIDES gets its answer, and the choice no buffer."""
    dense = {"lda": 64, "ldb": 64, "ldc": 64}
    for asked, answer in STRIDES:
        fields = {**dense, **asked}
        try:
            library.run(library.args(
                "bf16", (fields.pop("m", 64), 64, 64), **fields))
            got = "it ran"
        except RuntimeError as e:
            got = str(e)
        run.note(answer in got, f"{asked}: '{got}', expected '{answer}'")
    for shape, batch in (((64, 64, 64), 0), ((1 << 30, ) * 3, 1 << 30)):
        args = library.args("bf16", shape, batch=batch)
        for size, status in ((0, 0), (10, 1)):
            got = library._library.exo_gemm_ex_choice(
                ctypes.byref(args), None, ctypes.c_size_t(size))
            run.note(got == status, f"a choice into {size} bytes at NULL "
                                    f"answers {got}")


class Fake:
    """An array for DLPack, at address 0: its calls end in 'A is NULL'."""

    def __init__(self, binding, shape, strides, kind=(4, 16), device=2):
        numbers = ctypes.c_int64 * len(shape)
        self.kept = numbers(*shape), numbers(*strides)
        self.tensor = binding._DLTensor(
            data=None, device_type=device, ndim=len(shape), code=kind[0],
            bits=kind[1], lanes=1,
            shape=ctypes.cast(self.kept[0], ctypes.POINTER(ctypes.c_int64)),
            strides=ctypes.cast(self.kept[1], ctypes.POINTER(ctypes.c_int64)))

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def check_arrays(run, binding, library):
    """What ExoGemm.gemm makes of arrays."""
    def fake(*args, **how):
        return Fake(binding, *args, **how)

    rows = fake((64, 64), (64, 1))
    row = fake((1, 64), (1, 1))  # as PyTorch says it
    columns = fake((64, 64), (1, 64))
    batch = fake((2, 64, 64), (4096, 64, 1))
    wide = fake((64, 64), (64, 1), kind=(2, 32))
    vector = fake((64, ), (1, ), kind=(2, 32))
    short, byte, double = (fake((64, 64), (64, 1), kind=kind)
                           for kind in ((1, 16), (1, 8), (2, 64)))
    for a, b, c, how, answer in (
            (rows, rows, rows, {}, "gemm_bf16_64x64: A is NULL"),
            (row, rows, row, {}, "gemm_bf16_64x64: A is NULL"),
            (rows, rows, rows, {"alpha": 2.0}, "gemm_bf16_alpha_64x64: A is"),
            (columns, columns, rows, {"beta": 1.0},
             "gemm_bf16_nt_beta_64x64: A is NULL"),
            (batch, batch, batch, {}, "gemm_bf16_batch_alpha_64x64: A is"),
            (rows, rows, rows, {"beta": 1.0}, "no kernel has type bf16"),
            (rows, rows, wide, {"bias": vector, "activation": "gelu"},
             "no kernel has type bf16, layout tn, output f32, epilogue "
             "alpha_gelu"),
            (rows, rows, columns, {}, "elements of c's rows must be adjacent"),
            (rows, rows, batch, {}, "shapes do not fit"),
            (rows, rows, rows, {"bias": vector}, "the bias must be"),
            (rows, rows, rows, {"activation": "tanh"}, "no activation tanh"),
            (rows, wide, rows, {}, "a is of type bf16, b of tf32"),
            (rows, rows, double, {}, "c's elements must be f32, bf16 or f16"),
            (rows, rows, short, {}, "c's elements must be f32, bf16 or f16"),
            (short, short, rows, {"kind": "bf16"}, "gemm_bf16_64x64: A is"),
            (short, short, rows, {}, "no kernels of type None"),
            (byte, byte, rows, {"kind": "bf16"}, "8 bits of type None, which"),
            (wide, wide, rows, {"kind": "bf16"}, "which is not bf16"),
            (byte, double, rows, {"kind": "bf16"}, "a is of type None, b of"),
            (fake((64, 64), (128, 2)), rows, rows, {}, "a's rows must be adj"),
            (fake((64, 64), (64, 1), device=1), rows, rows, {},
             "on a CUDA device"),
            (vector, rows, rows, {}, "expected 2 or 3 dimensions, found 1")):
        try:
            library.gemm(a, b, c, **how)
            got = "it ran"
        except (ValueError, RuntimeError) as e:
            got = str(e)
        run.note(answer in got, f"gemm {how}: '{got}', expected '{answer}'")


def mixed(table, entry, name):
    """Kernels of two element types under one name."""
    f16 = {"file": os.path.join(GEMM, "gemm_f16_nt_64x64.exo"),
           "kernel": "gemm_f16_nt_64x64"}
    entry["type"] = name
    table["entries"].append({**entry, "layout": "nt", "shapes": [], "kernels": [
        {**entry["kernels"][1], **f16}]})


def check_refusals(run):
    def changed(fn):
        table = copy.deepcopy(TABLE)
        fn(table, table["entries"][0])
        return table

    rows = [
        ("{", "this is not JSON"),
        (changed(lambda t, e: t.update(version=2)), "version: expected 1"),
        (changed(lambda t, e: t.update(function="a b")), "expected a name"),
        (changed(lambda t, e: t.update(function="int")), "no word of C or C++"),
        (changed(lambda t, e: t.update(function="class")), "no word of C"),
        (changed(lambda t, e: t.update(function="sinf")), "of its library"),
        (changed(lambda t, e: t.update(function="exo_context")),
         "or of the code that is printed"),
        (changed(lambda t, e: t.update(device="*/")), "fits into a comment"),
        (changed(lambda t, e: t.update(entries=[])), "at least one entry"),
        (changed(lambda t, e: t["entries"].append(
            {**e, "shapes": [], "kernels": [e["kernels"].pop()]})),
         "one entry for each"),
        (changed(lambda t, e: e.update(layout="xn")), 'expected "tn"'),
        (changed(lambda t, e: e.update(layout="nn")),
         "A: [T][K, M], B: [T][N, K], C: [U][M, N])"),
        (changed(lambda t, e: e.update(output="f32")), "U the entry's output"),
        (changed(lambda t, e: e.update(batched=True)),
         "half: expected no kernel of batches"),
        (changed(lambda t, e: (e["kernels"].pop(), e.update(batched=True))),
         "(L: size, M: size"),
        (changed(lambda t, e: e["kernels"][-1].update(half=96)),
         "half: expected half of the rows"),
        (changed(lambda t, e: e["kernels"][-1].pop("half")),
         "K: size, A: [T]"),
        (changed(lambda t, e: e["kernels"][0].update(cluster=1, half=64)),
         "K: size, W: size, A: [T]"),
        (changed(lambda t, e: e.update(batched=1)), "expected true or false"),
        (changed(lambda t, e: e.update(epilogue="beta")), ", beta: f32"),
        (changed(lambda t, e: e.update(epilogue="bias_bias")),
         "epilogue: expected words of"),
        (changed(lambda t, e: e.update(epilogue="tanh")),
         "epilogue: expected words of"),
        (changed(lambda t, e: e.update(epilogue="bias_")),
         "epilogue: expected words of"),
        (changed(lambda t, e: e.update(type="relu")), "no activation's"),
        (changed(lambda t, e: e.update(type="output_f32")), "or output's"),
        (changed(lambda t, e: e.update(type="f16")), "T what its type is"),
        (changed(lambda t, e: e.update(type="tf32_x")), "T what its type is"),
        (changed(lambda t, e: mixed(t, e, "half")),
         "the same for all of the type"),
        (changed(lambda t, e: e["kernels"].append(e["kernels"][1])),
         "gemm_bf16_64x64: expected each kernel once"),
        (changed(lambda t, e: e.update(kernels=[])), "at least one kernel"),
        (changed(lambda t, e: e["kernels"][0].update(rows=0)),
         "rows: expected an integer"),
        (changed(lambda t, e: e["kernels"][2].update(split=0)),
         "split: expected an integer"),
        (changed(lambda t, e: e["kernels"][2].update(slots=1.5)),
         "slots: expected an integer"),
        (changed(lambda t, e: e["kernels"][2].update(sums=8)),
         "sums: expected a part beside it"),
        (changed(lambda t, e: e["kernels"][2].update(split=256)),
         "no more CTAs than there are multiprocessors"),
        (changed(lambda t, e: e["kernels"][0].update(waves=[1, 2, 3])),
         "waves: expected four to seven numbers"),
        (changed(lambda t, e: e["kernels"][0].update(one_wave=[1, 2, -3, 0])),
         "one_wave: expected four to six numbers"),
        (changed(lambda t, e: e["kernels"][0].update(kernel="gemm_none")),
         "expected a kernel of the same entry"),
        (changed(lambda t, e: (e["kernels"][1].update(kernel="gemm_none"))),
         "has a procedure 'gemm_none'"),
        (changed(lambda t, e: e["kernels"][1].update(
            file=os.path.join(ROOT, "kernels", "saxpy.exo"),
            kernel="saxpy")), "must have the parameters"),
    ]
    for table, message in rows:
        done = run.translate(table)
        run.note(done.returncode == 1 and message in done.stderr,
                 f"expected '{message}', found {done.returncode}: "
                 f"{done.stderr}")


def main():
    if not shutil.which("ptxas") and not os.path.exists(
            "/usr/local/cuda/bin/ptxas") and "EXO_PTXAS" not in os.environ:
        print("needs ptxas\n0 passed, 0 failed, 1 skipped")
        return 0
    binding = load("exo_gemm", "exo_gemm.py")
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        shared = run.library(TABLE)
        if shared:
            library = binding.ExoGemm(shared)
            rng = random.Random(3)
            check_choices(run, library, [(64, 64, 64), (1, 8, 8)] + SUMMED + [
                tuple(8 * rng.randint(1, int(math.exp(rng.uniform(1, 7.5))))
                      for _ in range(3)) for _ in range(300)])
            run.note([library.choice("bf16", *s)[-5:] == "_w768"
                      for s in SUMMED] == [True, True, False, True, False],
                     "sums of parts are not chosen as they should be")
            run.note(library.types == ["bf16"], f"types {library.types}")
            try:
                library.choice("f16", 8, 8, 8)
                run.note(False, "a type without kernels is taken")
            except ValueError as e:
                run.note("no kernels of type f16" in str(e), str(e))
            try:
                library.choice("bf16", 0, 8, 8)
                run.note(False, "0 rows are taken")
            except RuntimeError as e:
                run.note("1 to 2^30" in str(e), f"unexpected message: {e}")
        check_special(run, binding, folder)
        check_refusals(run)
        print(f"{run.passed} passed, {run.failed} failed, 0 skipped")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
