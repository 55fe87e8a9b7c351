#!/usr/bin/env python3
"""Random annotated programs against the checks and the machine model.

usage: test/fuzz/programs.py [--bin=FOLDER] [--count=N] [--seed=N] [--keep=DIR]
       test/fuzz/programs.py --print=SEED

A program is a task loop over phases that fill and read shared memory,
registers and rings, with nests of thread loops over several units, and the
synchronisation that this needs. About half of the programs are then broken at
one place: a statement dropped or swapped with its neighbour, a number, unit,
timeline or memory changed. The seed alone decides the text.

For each program no check may crash or run past the limit, and one that every
check has proved must compute on the machine model, under three schedules, what
it computes sequentially. What fails is kept as seed-N.exo in --keep. The last
line printed is `N passed, N failed, N skipped`."""

import os
import random
import re
import subprocess
import sys
import tempfile

LIMIT_S = 60
UNIT = "unit column8 = CollUnit((8,), (1,))\n\n"


class Program:
    """The text of one program, made from a seed."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.depth, self.names = [], 0, 0
        self.block = self.rng.choice([32, 64, 64, 96, 128, 256])
        self.ctas = self.rng.choice([1, 1, 1, 2, 4])
        self.tasks = self.rng.choice([1, 2, 3])
        self.make()
        if self.rng.random() < 0.5:
            self.break_one()

    def text(self):
        head = UNIT if any("column8" in line for line in self.lines) else ""
        return head + "\n".join(self.lines) + "\n"

    # ---- pieces ----------------------------------------------------------

    def put(self, text):
        self.lines.append("    " * self.depth + text)

    def open(self, text):
        self.put(text)
        self.depth += 1

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def fence(self, chance=0.95):
        if self.rng.random() > chance:
            return
        if self.ctas > 1 and self.rng.random() < 0.5:
            depth = self.depth
            self.open(f"for {self.name('c')} in cuda_threads(0, {self.ctas}, "
                      "unit=cuda_cta_in_cluster):")
            self.put("Fence(cuda_in_order, cuda_in_order)")
            self.depth = depth
        else:
            self.put("Fence(cuda_in_order, cuda_in_order)")

    def loops(self):
        """Shapes of a nest over the threads of a CTA: (count, unit, weight)
        where the thread is the sum of weight * iterator."""
        n = self.block
        part = self.rng.choice([4, 8, 16])
        return self.rng.choice([
            [(n, "cuda_thread", 1)],
            [(n // 32, "cuda_warp", 32), (32, "cuda_thread", 1)],
            [(n // part, f"{part} * cuda_thread", part),
             (part, "cuda_thread", 1)],
            [(8, "column8", 1), (n // 8, "cuda_thread", 8)],
            [(n // 32, "cuda_warp", 32), (2, "16 * cuda_thread", 16),
             (16, "cuda_thread", 1)],
        ])

    def nest(self, loops):
        """Opens the loops; (iterators, thread, CTA or None)."""
        cta = None
        if self.ctas > 1:
            cta = self.name("c")
            self.open(f"for {cta} in cuda_threads(0, {self.ctas}, "
                      "unit=cuda_cta_in_cluster):")
        iterators, terms = [], []
        for count, unit, weight in loops:
            i = self.name("t")
            self.open(f"for {i} in cuda_threads(0, {count}, unit={unit}):")
            iterators.append(i)
            terms.append(i if weight == 1 else f"{weight} * {i}")
        return iterators, " + ".join(terms), cta

    def place(self, thread, cta):
        """Where a thread's element of x and y is."""
        base = f"{self.block * self.ctas} * task"
        return base + (f" + {self.block} * {cta}" if cta else "") + \
            f" + {thread}"

    def other(self, thread):
        """The position of some thread of the CTA."""
        n = self.block
        return self.rng.choice([
            thread, f"({thread} + {self.rng.randrange(1, n)}) % {n}",
            f"{n - 1} - ({thread})", f"({thread}) / 2"])

    # ---- phases -----------------------------------------------------------

    def shared(self):
        """Every thread writes an element of shared memory, others read it."""
        s = self.name("s")
        lead = f"{self.ctas}, " if self.ctas > 1 else ""
        self.put(f"{s}: f32[{lead}{self.block}] @ CudaSmemLinear")
        depth = self.depth
        _, thread, cta = self.nest(self.loops())
        at = f"{cta}, " if cta else ""
        self.put(f"{s}[{at}{thread}] = x[{self.place(thread, cta)}]")
        self.depth = depth
        self.fence()
        _, thread, cta = self.nest(self.loops())
        at = f"{cta}, " if cta else ""
        if self.rng.random() < 0.3:
            self.open(f"if {thread} < {self.rng.randrange(1, self.block)}:")
        self.put(f"y[{self.place(thread, cta)}] += "
                 f"{s}[{at}{self.other(thread)}]")
        self.depth = depth
        self.fence()

    def registers(self):
        """Registers spread over a nest, used in two nests of its shape."""
        r = self.name("r")
        loops = self.loops()
        k = self.rng.choice([1, 2, 3])
        extents = [str(self.ctas)] if self.ctas > 1 else []
        extents += [str(count) for count, _, _ in loops] + [str(k)]
        self.put(f"{r}: f32[{', '.join(extents)}] @ CudaRmemLinear")
        depth = self.depth
        for target in ("{r} = x[{p}]", "y[{p}] += {r}"):
            iterators, thread, cta = self.nest(loops)
            i = self.name("k")
            self.open(f"for {i} in seq(0, {k}):")
            index = ", ".join(([cta] if cta else []) + iterators + [i])
            self.put(target.format(r=f"{r}[{index}]",
                                   p=self.place(thread, cta)))
            self.depth = depth

    def copies(self):
        """A quarter of the threads fill shared memory by cp.async."""
        n = self.block // 4
        s, g, t = self.name("s"), self.name("g"), self.name("t")
        self.put(f"{s}: f32[{self.block}] @ CudaSmemLinear")
        self.put(f"{g}: barrier[{n}] @ Sm80_CommitGroup")
        depth = self.depth
        self.open(f"for {t} in cuda_threads(0, {n}, unit=cuda_thread):")
        to = f"4 * {t}"
        at = self.place(to, None)
        self.put(f"Sm80_cp_async_1d({s}[{to}:{to} + 4], x[{at}:{at} + 4], "
                 "size0=4, T=f32)")
        self.put(f"Arrive(Sm80_cp_async, 1) >> {g}[{t}]")
        self.put(f"Await({g}[{t}], cuda_in_order, 0)")
        self.depth = depth
        self.fence()
        _, thread, _ = self.nest(self.loops())
        self.put(f"y[{self.place(thread, None)}] += "
                 f"{s}[{self.other(thread)}]")
        self.depth = depth
        self.fence()

    def ring(self):
        """One warp fills a ring of shared memory, the others read it."""
        warps = self.block // 32
        n, d = self.rng.choice([1, 2, 3, 5]), self.rng.choice([1, 2, 4])
        free, full, s, k = (self.name(v) for v in ("free", "full", "s", "k"))
        ring = f"@ (ring_buffer_by(depth={d}))"
        self.put(f"{free}: barrier[{n + d} {ring}] @ "
                 f"CudaMbarrierPreArrive({d}, )")
        self.put(f"{full}: barrier[{n} {ring}] @ CudaMbarrier")
        self.put(f"{s}: f32[{n} {ring}, 32].ring_guarded_by({free}) @ "
                 "CudaSmemLinear")
        depth = self.depth
        self.open(f"for {k} in seq(0, {n}):")
        self.open("with CudaWarps(0, 1):")
        self.put(f"Await({free}[{k}], cuda_temporal, 0)")
        t = self.name("t")
        self.open(f"for {t} in cuda_threads(0, 32, unit=cuda_thread):")
        self.put(f"{s}[{k}, {t}] = x[{self.place(t, None)}]")
        self.depth -= 1
        self.put(f"Arrive(cuda_in_order, 1) >> {full}[{k}]")
        self.depth -= 1
        self.open(f"with CudaWarps(1, {warps}):")
        self.put(f"Await({full}[{k}], cuda_in_order, 0)")
        w, t = self.name("w"), self.name("t")
        self.open(f"for {w} in cuda_threads(0, {warps - 1}, unit=cuda_warp):")
        self.open(f"for {t} in cuda_threads(0, 32, unit=cuda_thread):")
        self.put(f"y[{self.place(f'32 * {w} + {t}', None)}] += "
                 f"{s}[{k}, 31 - {t}]")
        self.depth -= 2
        self.put(f"Arrive(cuda_in_order, 1) >> {free}[{k} + {d}]")
        self.depth = depth
        self.fence()

    def make(self):
        total = self.block * self.ctas * self.tasks
        self.open(f"def random(x: f32[{total}] @ CudaGmemLinear, "
                  f"y: f32[{total}] @ CudaGmemLinear):")
        cluster = f", clusterDim={self.ctas}" if self.ctas > 1 else ""
        self.open(f"with CudaDeviceFunction(blockDim={self.block}{cluster}):")
        self.open(f"for task in cuda_tasks(0, {self.tasks}):")
        phases = [self.shared, self.registers]
        if self.ctas == 1:
            phases.append(self.copies)
        if self.ctas == 1 and self.block > 32:
            phases.append(self.ring)
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            self.rng.choice(phases)()

    # ---- one fault ----------------------------------------------------------

    def break_one(self):
        change = self.rng.choice([self.drop, self.swap, self.number,
                                  self.word, self.word])
        change(self.rng.randrange(3, len(self.lines)))

    def drop(self, i):
        if not self.lines[i].endswith(":"):
            indent = len(self.lines[i]) - len(self.lines[i].lstrip())
            self.lines[i] = " " * indent + "pass"

    def swap(self, i):
        a, b = self.lines[i - 1], self.lines[i]
        same = len(a) - len(a.lstrip()) == len(b) - len(b.lstrip())
        if same and not a.endswith(":") and not b.endswith(":"):
            self.lines[i - 1], self.lines[i] = b, a

    def number(self, i):
        found = list(re.finditer(r"(?<![\w.])\d+(?![\w.])", self.lines[i]))
        if found:
            m = self.rng.choice(found)
            value = max(0, int(m.group()) + self.rng.choice([-1, 1]))
            self.lines[i] = (self.lines[i][:m.start()] + str(value) +
                             self.lines[i][m.end():])

    def word(self, i):
        words = [("cuda_warp", "cuda_thread"), ("cuda_thread)", "cuda_warp)"),
                 ("cuda_in_order,", "cuda_temporal,"), ("seq(", "par("),
                 (", cuda_in_order", ", cuda_temporal"),
                 ("CudaSmemLinear", "CudaRmemLinear"),
                 ("CudaRmemLinear", "CudaSmemLinear"), (" += ", " = "),
                 ("cuda_temporal", "cuda_generic_and_async_proxy"),
                 ("CudaMbarrier", "CudaClusterSync"),
                 ("cuda_cta_in_cluster", "cuda_warp_in_cluster")]
        here = [w for w in words if w[0] in self.lines[i]]
        if here:
            old, new = self.rng.choice(here)
            self.lines[i] = self.lines[i].replace(old, new, 1)


# ---- running ----------------------------------------------------------------

def run(command):
    """(exit status or None past the limit, output)"""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, f"ran past {LIMIT_S} s"


def try_program(folder, path):
    """("accepted", "refused" or "undecided", NULL or what went wrong)"""
    status, output = run([os.path.join(folder, "exo-check"), path])
    if status not in (0, 1, 3):
        return "failed", f"exo-check: status {status}\n{output}"
    if status:
        return ("refused" if status == 1 else "undecided"), None
    status, output = run([os.path.join(folder, "exo-run"), path,
                          "--level=async", "--check", "--seeds=3"])
    if status:
        return "failed", f"accepted, but exo-run: status {status}\n{output}"
    return "accepted", None


def option(name, otherwise):
    for arg in sys.argv[1:]:
        if arg.startswith(f"--{name}="):
            return arg.split("=", 1)[1]
    return otherwise


def main():
    if option("print", None) is not None:
        sys.stdout.write(Program(int(option("print", "0"))).text())
        return 0
    folder = option("bin", os.environ.get("EXO_BIN", "build/bin"))
    keep = option("keep", None)
    first, count = int(option("seed", "1")), int(option("count", "1000"))
    counts = dict.fromkeys(("accepted", "refused", "undecided", "failed"), 0)
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(first, first + count):
            path = os.path.join(keep or scratch, f"seed-{seed}.exo")
            with open(path, "w", encoding="utf-8") as file:
                file.write(Program(seed).text())
            kind, fault = try_program(folder, path)
            counts[kind] += 1
            if fault:
                print(f"FAIL: seed {seed}: {fault[:2000]}")
            else:
                os.remove(path)
    print(", ".join(f"{n} {kind}" for kind, n in counts.items()))
    print(f"{count - counts['failed']} passed, {counts['failed']} failed, "
          "0 skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
