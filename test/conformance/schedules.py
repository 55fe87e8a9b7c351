#!/usr/bin/env python3
"""Random programs under random steps compute what they computed before.

Each program gets a schedule of steps under `try`: a step is refused or taken.
Then the program is run as it was and as scheduled, at sizes down to 1, on the
same inputs: small integers, so that every order of summation gives the same
bits. A difference, a read of what was never written, or an access outside a
tensor is a step that should have been refused. 400 steps are tried, 20000 with
EXO_LONG.
"""

import os
import random
import struct
import subprocess
import sys
import tempfile

BIN = os.environ.get("EXO_BIN", "build/bin")
STEPS = 10
ATTEMPTS = 20000 if os.environ.get("EXO_LONG") else 400
SIZES = (1, 6, 13)


def index(rng, loops, extent):
    """An index that stays in 0 .. extent - 1: N or 8."""
    fit = [v for v, e in loops if e == extent]
    if fit and rng.random() < 0.8:
        v = rng.choice(fit)
        if extent == "8":
            return rng.choice([v, v, f"7 - {v}", f"({v} + 3) % 8", f"{v} / 2"])
        return rng.choice([v, v, v, f"N - 1 - {v}", f"{v} / 2"])
    return rng.choice(["0", "0", "3"]) if extent == "8" else "0"


def element(rng, loops, names):
    name = rng.choice(names)
    extents = {"x": "N", "u": "N", "z": "8", "y": "N8", "t": ""}[name]
    parts = {"N": ["N"], "8": ["8"], "N8": ["N", "8"], "": []}[extents]
    if not parts:
        return name
    return f"{name}[{', '.join(index(rng, loops, e) for e in parts)}]"


def value(rng, loops):
    e = element(rng, loops, ["x", "z", "y", "u", "t"])
    f = element(rng, loops, ["x", "z", "y"])
    return rng.choice([e, "1.0", f"{e} + {f}", f"2.0 * {f}", f"{e} - 1.0",
                       f"{e} + ({f} + 1.0)"])


def statements(rng, loops, depth, indent, out):
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        kind = rng.random()
        pad = "    " * indent
        if kind < 0.45 and depth < 3:
            v = "ijk"[depth] + str(rng.randrange(3))
            e = rng.choice(["N", "8"])
            out.append(f"{pad}for {v} in seq(0, {e}):")
            statements(rng, loops + [(v, e)], depth + 1, indent + 1, out)
        elif kind < 0.55 and loops and depth < 4:
            v = rng.choice(loops)[0]
            c = rng.choice([f"{v} < 3", f"{v} % 2 == 0", "N > 4", f"{v} >= 1"])
            out.append(f"{pad}if {c}:")
            statements(rng, loops, depth + 1, indent + 1, out)
        else:
            to = element(rng, loops, ["y", "u", "z", "t"])
            sign = rng.choice(["=", "=", "+="])
            out.append(f"{pad}{to} {sign} {value(rng, loops)}")


def program(rng):
    out = ["def f(N: size, x: f32[N], z: f32[8], y: f32[N, 8], u: f32[N]):",
           "    t: f32", "    t = 0.0"]
    statements(rng, [], 0, 1, out)
    statements(rng, [], 0, 1, out)
    return "\n".join(out) + "\n"


def step(rng, n):
    k = rng.randrange(4)
    any_loop = f"`for _ in _`#{k}"
    any_stmt = rng.choice([f"`_ = _`#{k}", f"`_ += _`#{k}", any_loop,
                           f"`if _`#{rng.randrange(2)}"])
    alloc = f"`_: _`#{rng.randrange(2)}"
    tail = rng.choice(["guard", "cut", "cut_and_guard", "perfect"])
    return rng.choice([
        f"divide_loop {any_loop} {rng.choice([1, 2, 3, 4])} o{n} p{n} {tail}",
        f"mult_loops {any_loop} q{n}",
        f"cut_loop {any_loop} {rng.choice([0, 1, 4, 'N', '`N / 2`'])}",
        f"shift_loop {any_loop} {rng.choice([0, 1, 2])}",
        f"extend_loop {any_loop} 0 {rng.choice(['`N + 1`', 16, '`2 * N`'])}",
        f"join_loops {any_loop} {any_loop}.next",
        f"reorder_loops {any_loop}",
        f"reorder_loops {any_loop}",
        f"lift_scope {any_stmt}",
        f"lift_scope {any_stmt}",
        f"fission {any_stmt}.after {rng.choice([1, 1, 2])}",
        f"fission {any_stmt}.after {rng.choice([1, 1, 2])}",
        f"autofission {any_stmt}.before",
        f"fuse {any_loop} {any_loop}.next",
        f"fuse {any_loop} {any_loop}.next",
        f"remove_loop {any_loop}",
        f"add_loop {any_stmt} a{n} {rng.choice([1, 3, 'N'])} "
        f"{rng.choice(['true', 'false'])}",
        f"unroll_loop {any_loop}",
        f"eliminate_dead_code {any_stmt}",
        f"reorder_stmts {any_stmt}",
        f"reorder_stmts {any_stmt}",
        f"specialize {any_stmt} `N > 5`",
        f"commute_expr {any_stmt} `_ + _`",
        f"left_reassociate_expr {any_stmt} `_ + _`",
        f"merge_writes {any_stmt}",
        f"merge_writes {any_stmt}",
        f"split_write {any_stmt}",
        f"fold_into_reduce {any_stmt}",
        f"inline_assign {any_stmt}",
        f"bind_expr {any_stmt} `{rng.choice('xzyu')}[_]` b{n}",
        f"stage_mem {any_stmt} `{rng.choice(['x[0:N]', 'z[0:8]', 'u[0:N]', 'y[0:N, 0:8]', 'z[0:4]'])}` s{n}",
        f"stage_mem {any_stmt} `{rng.choice(['z[0:8]', 'u[0:N]', 'y[0:N, 0:8]'])}` s{n} accum=true",
        f"expand_dim {alloc} 8 {rng.choice([0, 3])}",
        f"lift_alloc {alloc}",
        f"autolift_alloc {alloc} {rng.choice([1, 2])}",
        f"sink_alloc {alloc}",
        f"divide_dim {alloc} 0 {rng.choice([2, 4])}",
        f"mult_dim {alloc} 0 1",
        f"rearrange_dim {alloc} `[1, 0]`",
        f"resize_dim {alloc} 0 {rng.choice([4, 8])}",
        f"reuse_buffer {alloc} `_: _`#1",
        f"delete_buffer {alloc}",
        f"add_if {any_stmt} `N > 0`",
        f"remove_if `if _`#{k}",
        f"rewrite_expr `if _`#{k} "
        f"{rng.choice(['`N > 4` `N >= 5`', '`N > 4` `N > 5`'])}",
        "simplify",
    ])


def write_npy(path, rng, shape):
    """A float32 array of small integers, in the layout of numpy's files."""
    count = 1
    for extent in shape:
        count *= extent
    text = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {text}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00")
        f.write(struct.pack("<H", len(header)) + header.encode())
        for _ in range(count):
            f.write(struct.pack("<f", rng.randrange(-4, 5)))


def write_inputs(folder, rng, size):
    shapes = {"x": (size,), "z": (8,), "y": (size, 8), "u": (size,)}
    for name, shape in shapes.items():
        write_npy(f"{folder}/in_{name}.npy", rng, shape)


def run(folder, size, schedule, out):
    command = [f"{BIN}/exo-run", f"{folder}/p.exo", "--size", f"N={size}"]
    for name in "xzyu":
        command += ["--in", f"{name}={folder}/in_{name}.npy"]
    for name in "zyu":
        command += ["--out", f"{name}={folder}/{out}_{name}.npy"]
    if schedule:
        command.append(f"--schedule={folder}/p.sched")
    return subprocess.run(command, capture_output=True, text=True)


def contents(folder, out):
    texts = []
    for name in "zyu":
        with open(f"{folder}/{out}_{name}.npy", "rb") as f:
            texts.append(f.read())
    return texts


def attempt(seed, folder):
    """Whether the program could be run, and what went wrong or None."""
    rng = random.Random(seed)
    with open(f"{folder}/p.exo", "w") as f:
        f.write(program(rng))
    with open(f"{folder}/p.sched", "w") as f:
        for n in range(STEPS):
            f.write(f"try {step(rng, n)}\n")
    for size in SIZES:
        write_inputs(folder, rng, size)
        if run(folder, size, False, "a").returncode:
            return False, None
        after = run(folder, size, True, "b")
        if after.returncode:
            return True, f"N={size}: {after.stderr[-800:]}"
        if contents(folder, "a") != contents(folder, "b"):
            return True, f"N={size}: the results differ"
    return True, None


def main():
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    passed = failed = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        seed = first
        while tried < ATTEMPTS:
            ran, fault = attempt(seed, folder)
            if fault:
                print(f"seed {seed}: {fault}")
                failed += 1
            elif ran:
                passed += 1
            tried += STEPS if ran else 0
            seed += 1
            if seed > first + 4 * ATTEMPTS:
                break
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
