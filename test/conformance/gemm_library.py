#!/usr/bin/env python3
"""The library of a table of kernels: it compiles, is refused when wrong, and
chooses as the costs say, here computed once more.

Needs exo-translate with LLVM, jansson and ptxas, and a C compiler; runs without
a GPU, since choosing needs none.
"""
import copy
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


def kernel(name, rows, columns, cluster, one_wave, waves):
    return {"file": os.path.join(GEMM, f"gemm_{name}.exo"),
            "kernel": f"gemm_{name}", "rows": rows, "columns": columns,
            "cluster": cluster, "step": 64, "one_wave": one_wave,
            "waves": waves}


TABLE = {
    "version": 1, "function": "exo_gemm", "device": "a test",
    "multiprocessors": 132,
    "entries": [{
        "type": "bf16", "layout": "tn",
        "kernels": [
            kernel("bf16_128x256_c2", 128, 256, 2, [7, 0.55, 0.1, 0.05],
                   [5, 1.4, 0.68, 0]),
            kernel("bf16_64x64", 64, 64, 1, [5, 0.1, 0.3, 0.02],
                   [4.5, 0.4, 0.18, 0.03])],
        "shapes": [{"M": 64, "N": 64, "K": 64,
                    "kernel": "gemm_bf16_128x256_c2"}]}],
}


def parts(n, size):
    return -(-n // size)


def cost(k, m, n, steps_of):
    tiles = parts(m, k["rows"] * k["cluster"]) * parts(n, k["columns"])
    slots = 132 // k["cluster"]
    steps = parts(steps_of, k["step"])
    megabytes = 1e-6 * 2 * ((m + n) * steps_of + m * n)
    if tiles <= slots:
        a, b, c, d = k["one_wave"]
        return (a + b * steps + c * megabytes +
                d * steps * tiles / slots)
    a, b, c, d = k["waves"]
    return a + parts(tiles, slots) * (b + c * steps) + d * megabytes


def expected(m, n, k):
    """The plan by the rule that codegen/c_dispatch.h states."""
    entry = TABLE["entries"][0]
    for s in entry["shapes"]:
        if (s["M"], s["N"], s["K"]) == (m, n, k):
            return s["kernel"]
    best = min(entry["kernels"], key=lambda x: cost(x, m, n, k))
    text, least = best["kernel"], cost(best, m, n, k)
    for x in entry["kernels"]:
        for by_columns in (False, True):
            along = x["columns"] if by_columns else x["rows"] * x["cluster"]
            across = (parts(m, x["rows"] * x["cluster"]) if by_columns
                      else parts(n, x["columns"]))
            total, slots = (n if by_columns else m), 132 // x["cluster"]
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

    def note(self, ok, text):
        self.passed += bool(ok)
        self.failed += not ok
        if not ok:
            print(text)

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


def check_refusals(run):
    def changed(fn):
        table = copy.deepcopy(TABLE)
        fn(table, table["entries"][0])
        return table

    rows = [
        ("{", "this is not JSON"),
        (changed(lambda t, e: t.update(version=2)), "version: expected 1"),
        (changed(lambda t, e: t.update(function="a b")), "expected a name"),
        (changed(lambda t, e: t.update(device="*/")), "fits into a comment"),
        (changed(lambda t, e: t.update(entries=[])), "at least one entry"),
        (changed(lambda t, e: t["entries"].append(e)), "one entry for each"),
        (changed(lambda t, e: e.update(layout="nn")), 'expected "tn"'),
        (changed(lambda t, e: e.update(kernels=[])), "at least one kernel"),
        (changed(lambda t, e: e["kernels"][0].update(rows=0)),
         "rows: expected an integer"),
        (changed(lambda t, e: e["kernels"][0].update(waves=[1, 2, 3])),
         "waves: expected four numbers"),
        (changed(lambda t, e: e["kernels"][0].update(one_wave=[1, 2, -3, 0])),
         "one_wave: expected four numbers"),
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
    spec = importlib.util.spec_from_file_location(
        "exo_gemm", os.path.join(GEMM, "exo_gemm.py"))
    binding = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(binding)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        done = run.translate(TABLE)
        shared = os.path.join(folder, "exo_gemm.so")
        built = done.returncode == 0 and subprocess.run(
            ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared",
             "-fPIC", os.path.join(folder, "exo_gemm.c"), "-o", shared,
             "-ldl", "-lpthread"], check=False).returncode == 0
        run.note(built, f"the library is not made: {done.stderr}")
        if built:
            library = binding.ExoGemm(shared)
            rng = random.Random(3)
            check_choices(run, library, [(64, 64, 64), (1, 8, 8)] + [
                tuple(8 * rng.randint(1, int(math.exp(rng.uniform(1, 7.5))))
                      for _ in range(3)) for _ in range(300)])
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
        check_refusals(run)
        print(f"{run.passed} passed, {run.failed} failed, 0 skipped")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
