#!/usr/bin/env python3
"""Steps with arguments that mostly make no sense are refused, never a crash.

Each kernel that ships is given random operators with random arguments of the
right kinds, in a session at a pipe, some undone and taken again; the session must
end well. 12 sessions of 25 steps, 200 with EXO_LONG.
"""

import glob
import os
import random
import subprocess
import sys

BIN = os.environ.get("EXO_BIN", "build/bin")
ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
SESSIONS = 200 if os.environ.get("EXO_LONG") else 12
STEPS = 25

PATTERNS = ["for _ in _", "_ = _", "_ += _", "_: _", "if _", "_(_)", "with _",
            "Await(_)", "Arrive(_)", "Fence(_)", "_ = _[_]", "i", "_"]
MOVES = ["", "", "", ".body", ".before", ".after", ".next", ".parent", ".first",
         ".begin", ".end", "..`_ = _`#1", ".parent.parent", ".prev"]
NUMBERS = ["0", "1", "2", "4", "-1", "8", "9999999999", "N"]
NAMES = ["q0", "i", "A", "x", "f", "9z", "N"]
TEXTS = ["N", "`N + 1`", "0", "8", "cuda_in_order", "cuda_thread",
         "CudaSmemLinear", "`barrier @ CudaMbarrier`", "f32", "f64", "perfect",
         "cut", "guard", "`A[0:4]`", "`A[0:N, 0:8]`", "`x[0:N]`", "`_ + _`",
         "`_ * _`", "`[1, 0]`", "Sm90_tma_load_2d", "`Sm80_cp_async_1d(size0=2)`",
         "None", "`CudaWarps(0, 1)`", "`CudaDeviceFunction(blockDim=32)`", "C.s",
         "`N > 4`", "`(`", "`x[`", "9223372036854775807", "`K / 64`",
         "-9223372036854775808", "`", "$P", "$(lo `_`)", "$(dim `_: _` 9)"]


def operators():
    """Each operator with the kinds of its arguments."""
    text = subprocess.run([f"{BIN}/exo-opt", "--list-schedule-ops"],
                          capture_output=True, text=True, check=True).stdout
    lines = text.split("\nother names\n")[0].split("\n")
    words = [line.split() for line in lines if line and line[0] != " "]
    return [(w[0], [a.split(":")[0] for a in w[1:]]) for w in words]


def argument(rng, kind):
    if kind in ("stmt", "loop", "alloc", "block", "gap", "if"):
        return f"`{rng.choice(PATTERNS)}`#{rng.choice([0, 0, 1, 2, 5])}" \
            + rng.choice(MOVES)
    if kind == "int":
        return rng.choice(NUMBERS)
    if kind == "bool":
        return rng.choice(["true", "false"])
    return rng.choice(NAMES if kind == "name" else TEXTS)


def session(rng, table):
    lines = ["show off"]
    for _ in range(STEPS):
        name, kinds = rng.choice(table)
        given = [argument(rng, k) for k in kinds if rng.random() < 0.95]
        lines.append(" ".join([name] + given))
        if rng.random() < 0.2:
            lines.append(rng.choice(["undo", "redo", "steps", "repeat"]))
    return "\n".join(lines) + "\n"


def main():
    rng = random.Random(1)
    table = operators()
    kernels = sorted(glob.glob(os.path.join(ROOT, "kernels", "*.exo")))
    passed = failed = 0
    for number in range(SESSIONS):
        talk = session(rng, table)
        kernel = kernels[number % len(kernels)]
        done = subprocess.run([f"{BIN}/exo-opt", kernel, "--interactive"],
                              input=talk, capture_output=True, text=True)
        if done.returncode == 0:
            passed += 1
            continue
        failed += 1
        said = done.stdout.rstrip("\n").split("\n")
        print(f"session {number} on {kernel}: exit {done.returncode} after "
              f"'{[s for s in said if s.startswith('> ')][-1:]}'")
        print(done.stderr[-500:])
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
