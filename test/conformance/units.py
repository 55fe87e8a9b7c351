#!/usr/bin/env python3
"""Which thread runs what, for clusters of 1, 2 and 4 CTAs and 1 to 12 warps.

A row of the table is a nest of thread loops: units of warps, of odd numbers of
threads, strided, user-made, of CTAs. Beside each loop stands its iterator as a
formula in the CTA's number c and the thread's number t, written down from the
meaning of the unit. Of each row and size a program is made whose threads load
registers spread over the nest, and shared memory spread over the CTAs, and add
them to memory in a second nest, the shared memory in reverse. The checks must
prove it; the lowered text, evaluated for every thread of the cluster, must add
exactly where the formulas say and nowhere else; the machine model must compute
the sequential result. Refused must be one trip more than there are threads for,
a second nest that spreads the registers over other threads, and shared memory
spread over warps. With EXO_LONG all nests for clusters, otherwise a quarter."""

import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile

BIN = os.environ.get("EXO_BIN", "build/bin")
JOBS = int(os.environ.get("EXO_JOBS", 0)) or 2
LONG = bool(os.environ.get("EXO_LONG"))

UNITS = """
unit column8 = CollUnit((8,), (1,))
unit octet = CollUnit((blockDim / 32, 4, 8), (1, 1, 8))
unit half = CollUnit((blockDim / 16, 2, 8), (2, 1, 8))
"""


def whole(n):
    return lambda w, c: n


def per_warp(n):
    return lambda w, c: n * w


# A loop: name, trips by (warps, CTAs), unit, formula, and whether the trips are
# all that there is room for. A row: when it applies, a `with` or None, loops.
def loop(name, trips, unit, formula, full=True):
    return name, trips, unit, formula, full


LANES = loop("l", whole(32), "cuda_thread", "t % 32")
WARPS = loop("w", per_warp(1), "cuda_warp", "t // 32")
CTAS = loop("n", lambda w, c: c, "cuda_cta_in_cluster", "c")

ROWS = {
    "threads": (None, None, [
        loop("a", per_warp(32), "cuda_thread", "t")]),
    "warps": (None, None, [WARPS, LANES]),
    "some of the warps": (lambda w: w > 1, None, [
        loop("w", lambda w, c: w - 1, "cuda_warp", "t // 32", False),
        loop("l", whole(31), "cuda_thread", "t % 32", False)]),
    "five times six": (None, None, [
        WARPS, loop("g", whole(5), "6 * cuda_thread", "t % 32 // 6"),
        loop("i", whole(6), "cuda_thread", "t % 32 % 6")]),
    "threes across warps": (None, None, [
        loop("g", lambda w, c: 32 * w // 3, "3 * cuda_thread", "t // 3"),
        loop("i", whole(3), "cuda_thread", "t % 3")]),
    "every second thread": (None, None, [
        loop("g", per_warp(4), "8 * cuda_thread", "t // 8"),
        loop("p", whole(2), "4 * cuda_threads_strided(1, 2)", "t % 2"),
        loop("i", whole(4), "cuda_thread", "t % 8 // 2")]),
    "pairs four apart": (None, None, [
        loop("g", per_warp(2), "16 * cuda_thread", "t // 16"),
        loop("p", whole(2), "4 * cuda_threads_strided(2, 4)", "t % 4 // 2"),
        loop("q", whole(4), "cuda_threads_strided(2, 4)", "t % 16 // 4"),
        loop("i", whole(2), "cuda_thread", "t % 2")]),
    "columns": (None, None, [
        loop("g", whole(8), "column8", "t % 8"),
        loop("i", per_warp(4), "cuda_thread", "t // 8")]),
    "octets of a warp": (None, None, [
        WARPS, loop("o", whole(4), "octet", "t % 32 // 8"),
        loop("i", whole(8), "cuda_thread", "t % 8")]),
    "halves of 16": (None, None, [
        WARPS, loop("h", whole(2), "half", "t % 16 // 8"),
        loop("r", whole(2), "8 * cuda_thread", "t % 32 // 16"),
        loop("i", whole(8), "cuda_thread", "t % 8")]),
    "quadpairs": (None, None, [
        WARPS, loop("q", whole(4), "cuda_quadpair", "t % 16 // 4"),
        loop("h", whole(2), "4 * cuda_thread", "t % 32 // 16"),
        loop("i", whole(4), "cuda_thread", "t % 4")]),
    "warpgroups": (lambda w: w >= 4, None, [
        loop("g", lambda w, c: w // 4, "cuda_warpgroup", "t // 128"),
        loop("w", whole(4), "cuda_warp", "t // 32 % 4"), LANES]),
    "without warp 0": (lambda w: w > 1, ("CudaWarps(1, {w})", "t - 32"), [
        loop("w", lambda w, c: w - 1, "cuda_warp", "t // 32"), LANES]),
    "without warps 0, 1": (lambda w: w > 2, ("CudaWarps(2, {w})", "t - 64"), [
        loop("g", lambda w, c: 8 * (w - 2), "4 * cuda_thread", "t // 4"),
        loop("i", whole(4), "cuda_thread", "t % 4")]),
}

# Loops over CTAs: the first for 2 and 4 of them, the others for 4.
CLUSTER_ROWS = {
    "CTAs": [CTAS],
    "CTAs two apart": [
        loop("n", whole(2), "2 * cuda_cta_in_cluster_strided(2)", "c % 2"),
        loop("m", whole(2), "cuda_cta_in_cluster", "c // 2")],
    "pairs of CTAs": [
        loop("n", whole(2), "2 * cuda_cta_in_cluster", "c // 2"),
        loop("m", whole(2), "cuda_cta_in_cluster", "c % 2")],
}


def nests(warps, ctas):
    """(name, loops around the CTA, with, loops) of each row that applies."""
    for name, (applies, scope, loops) in ROWS.items():
        if applies and not applies(warps):
            continue
        if ctas == 1:
            yield name, [], scope, loops
            continue
        for outer, around in CLUSTER_ROWS.items():
            if ctas == 4 or outer == "CTAs":
                yield f"{outer}, {name}", around, scope, loops
    if ctas > 1:
        yield "one warp of each CTA", [], None, [
            loop("w", per_warp(1), f"{ctas} * cuda_warp_in_cluster_strided(1)",
                 "t // 32"), CTAS, LANES]


def nest(warps, ctas, around, scope, loops, body):
    """The lines of the loops with the body in them."""
    out, depth = [], 3
    for i, (name, n, unit, _, _) in enumerate(around + loops):
        if scope and i == len(around):
            out.append("    " * depth + f"with {scope[0].format(w=warps)}:")
            depth += 1
        out.append("    " * depth + f"for {name} in cuda_threads(0, "
                   f"{n(warps, ctas)}, unit={unit}):")
        depth += 1
    return out + ["    " * depth + line for line in body]


def program(warps, ctas, around, scope, first, second, lead=None):
    """Two nests with registers and shared memory between them; the trips of
    the first are the extents. Shared memory is spread over the CTAs by the
    loops in `lead`, its first indices."""
    trips = {l[0]: l[1](warps, ctas) for l in around + first}
    lead = [l[0] for l in around] if lead is None else lead
    names = ", ".join(trips)
    shape = ", ".join(map(str, trips.values()))
    order = lead + [n for n in trips if n not in lead]
    back = lead + [f"{trips[n] - 1} - {n}" for n in trips if n not in lead]
    s_shape = ", ".join(str(trips[n]) for n in order)
    args = ", ".join(f"{v}: f32[2, {shape}] @ CudaGmemLinear" for v in "xyz")
    return "\n".join([
        UNITS, f"def f({args}):",
        f"    with CudaDeviceFunction(blockDim={32 * warps}, "
        f"clusterDim={ctas}):",
        "        for task in cuda_tasks(0, 2):",
        f"            v: f32[{shape}] @ CudaRmem",
        f"            s: f32[{s_shape}] @ CudaSmemLinear",
        *nest(warps, ctas, around, scope, first,
              [f"v[{names}] = x[task, {names}]",
               f"s[{', '.join(order)}] = x[task, {names}]"]),
        "            Fence(cuda_in_order, cuda_in_order)",
        *nest(warps, ctas, around, scope, second,
              [f"y[task, {names}] += v[{names}]",
               f"z[task, {names}] += s[{', '.join(back)}]"]),
        "            Fence(cuda_in_order, cuda_in_order)"]) + "\n"


# ---- the lowered text, evaluated --------------------------------------------

def expression(text):
    """An index or condition of .eir as Python."""
    text = text.replace("floordiv", "//").replace(" mod ", " % ")
    return compile(re.sub(r"%([a-z_]\w*)", r"\1", text), text, "eval")


def stores(text):
    """[(conditions with the branch taken, index)] of the sums into y."""
    found, stack = [], []
    for line in text.split("\n"):
        line = line.strip()
        branch = re.match(r"(?:%\d+ = )?ctl\.if (.*?)(?: ->.*)? "
                          r"(?:origin\(.*\) )?\{$", line)
        if branch:
            stack.append((expression(branch[1]), True))
        elif line.startswith("} else {"):
            stack[-1] = (stack[-1][0], False)
        elif line.endswith("{"):
            stack.append(None)
        elif line.startswith("}"):
            stack.pop()
        found_sum = re.match(r"mem\.reduce %y\[(.*?)\],", line)
        if found_sum:
            found.append(([s for s in stack if s],
                          expression(f"({found_sum[1]},)")))
    return found


def lowered_places(text, warps, ctas):
    """{(cta, thread): [index of y that it adds to in task 0]}"""
    sums, places = stores(text), {}
    for c, w, l in itertools.product(range(ctas), range(warps), range(32)):
        env = {"cta": c, "warp": w, "lane": l, "task": 0}
        places[c, 32 * w + l] = [
            eval(index, env) for conditions, index in sums
            if all(bool(eval(cond, env)) == taken
                   for cond, taken in conditions)]
    return places


def expected_places(warps, ctas, around, scope, loops):
    places = {}
    formulas = [(compile(f, f, "eval"), n(warps, ctas))
                for _, n, _, f, _ in around + loops]
    for c, t in itertools.product(range(ctas), range(32 * warps)):
        inner = eval(scope[1], {"t": t}) if scope else t
        at = [(eval(f, {"c": c, "t": inner}), n) for f, n in formulas]
        runs = inner >= 0 and all(0 <= i < n for i, n in at)
        places[c, t] = [(0, *(i for i, _ in at))] if runs else []
    return places


# ---- running ----------------------------------------------------------------

def tool(name, path, *args):
    done = subprocess.run([f"{BIN}/{name}", path, *args], text=True,
                          capture_output=True, check=False)
    return done.returncode, done.stdout, done.stdout + done.stderr


def accepted(path, warps, ctas, around, scope, loops):
    lead = None if around or ctas == 1 else ["n"]
    with open(path, "w", encoding="utf-8") as f:
        f.write(program(warps, ctas, around, scope, loops, loops, lead))
    status, _, said = tool("exo-check", path)
    if status:
        return "not proved: " + said
    status, text, said = tool("exo-opt", path,
                              "--pass-pipeline=lower-par-to-async")
    if status:
        return "not lowered: " + said
    got = lowered_places(text, warps, ctas)
    wanted = expected_places(warps, ctas, around, scope, loops)
    for thread, places in wanted.items():
        if got[thread] != places:
            return (f"CTA {thread[0]}, thread {thread[1]}: expected {places}, "
                    f"lowered to {got[thread]}")
    status, _, said = tool("exo-run", path, "--level=async", "--check",
                           "--seeds=2")
    return "not the sequential result: " + said if status else None


def refused(path, text, *messages):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    status, _, said = tool("exo-check", path)
    if status != 1 or not any(m in said for m in messages):
        return f"expected {messages}, status {status}: {said}"
    return None


def one_trip_more(path, warps, ctas, around, scope, loops, which):
    """The threads do not suffice. One trip of a unit as wide as what is around
    it divides nothing, so two do not either."""
    longer = around + loops
    name, n, unit, formula, full = longer[which]
    longer[which] = name, lambda w, c: n(w, c) + 1, unit, formula, full
    k = len(around)
    text = program(warps, ctas, longer[:k], scope, longer[k:], longer[k:])
    trivial = ["trivial tiling"] if n(warps, ctas) == 1 else []
    return refused(path, text, "not enough threads available", *trivial)


def other_threads(warps):
    """Registers in pairs of neighbours, read in two halves of the CTA."""
    n = 16 * warps
    first = [loop("a", whole(n), "2 * cuda_thread", ""),
             loop("b", whole(2), "cuda_thread", "")]
    second = [loop("b", whole(2), f"{n} * cuda_thread", ""),
              loop("a", whole(n), "cuda_thread", "")]
    return program(warps, 1, [], None, first, second)


def warps_before_ctas(warps, ctas):
    """Shared memory is spread over CTAs, not over the warps of one."""
    loops = [loop("w", per_warp(1),
                  f"{ctas} * cuda_warp_in_cluster_strided(1)", ""), CTAS, LANES]
    return program(warps, ctas, [], None, loops, loops, ["w", "n"])


def cases():
    """(name, function of a path that answers what went wrong or None)"""
    for ctas, warps in itertools.product((1, 2, 4), range(1, 13)):
        here = f"{ctas} CTAs, {warps} warps: "
        for k, (name, *row) in enumerate(nests(warps, ctas)):
            if not LONG and ctas > 1 and (k + warps) % 4:
                continue
            args = (warps, ctas, *row)
            yield here + name, lambda p, a=args: accepted(p, *a)
            loops = row[0] + row[2]
            which = (k + warps) % len(loops)
            if loops[which][4]:
                yield f"{here}{name}, one trip more of {loops[which][0]}", \
                    lambda p, a=args, i=which: one_trip_more(p, *a, i)
        if ctas == 1:
            yield f"{here}registers of other threads", \
                lambda p, w=warps: refused(p, other_threads(w), "thread_pitch")
        elif warps > 1:
            yield f"{here}shared memory over warps", \
                lambda p, w=warps, c=ctas: refused(
                    p, warps_before_ctas(w, c),
                    "is not an expected distributed iterator")


def main():
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        todo = list(cases())
        faults = list(pool.map(
            lambda k: todo[k][1](f"{folder}/{k}.exo"), range(len(todo))))
    failed = 0
    for (name, _), fault in zip(todo, faults):
        if fault:
            failed += 1
            print(f"FAIL: {name}: {fault[:1500]}")
    print(f"{len(todo) - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
