"""Random annotated programs, each made from a seed alone.

A program is a device function of tasks whose body is a row of phases
(phases.py), each right by itself: it fills registers, shared memory or rings
and reads them with the synchronisation that this needs. Around it stands host
code of several forms. About half of the programs are then broken at one place
or a few: a statement dropped or swapped with its neighbour, a number, unit,
timeline or memory changed."""

import random
import re

import phases

UNITS = {
    "column8": "unit column8 = CollUnit((8,), (1,))",
    "pairs": "unit pairs = CollUnit((blockDim / 2, 2), (1, 2))",
    "wide": "unit wide = CollUnit((clusterDim, blockDim), (1, 16), "
            "scaled_dim_idx=1)",
}


class Program(phases.Phases):
    """The text of one program; `features` names what it has in it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.depth, self.names = [], 0, 0
        self.params, self.host = [], []
        self.features = set()
        self.block = self.rng.choice([32, 64, 64, 96, 128, 128, 256, 320])
        self.ctas = self.rng.choice([1, 1, 1, 1, 2, 2, 4])
        self.named = self.block > 32 and self.rng.random() < 0.25
        self.choose_tasks()
        self.choose_host()
        body = self.make_body()
        self.make(body)
        if self.rng.random() < 0.5:
            self.features.add("broken")
            for _ in range(self.rng.choice([1, 1, 1, 2, 4])):
                self.break_one()

    def text(self):
        head = [text for name, text in UNITS.items()
                if any(name in line for line in self.lines)]
        return "\n".join(head + [""] * bool(head) + self.lines) + "\n"

    # ---- what surrounds the phases ------------------------------------------

    def choose_tasks(self):
        """The number of tasks as the program has it, and the sizes to run
        at. N: a task each, or the elements of ragged tasks."""
        n = self.block * self.ctas
        kind = self.rng.choice(["constant", "constant", "tasks", "ragged"])
        self.count, self.sizes, self.ragged = "3", {}, False
        if kind == "constant":
            self.count = str(self.rng.choice([1, 2, 3]))
        elif kind == "tasks":
            self.count = "N"
            self.sizes["N"] = [1, 3]
        else:
            self.ragged = True
            self.count = f"(N + {n - 1}) / {n}"
            self.sizes["N"] = [n - 1, 2 * n + 5]
        if self.sizes:
            self.features.add("sizes")

    def choose_host(self):
        self.x, self.y = "x", "y"
        self.form = self.rng.choice(["plain", "plain", "plain", "two", "loop",
                                     "if", "copies", "window"])
        if self.form != "plain":
            self.features.add(f"host {self.form}")

    def extent(self):
        return "N" if self.ragged else \
            f"{self.block * self.ctas} * ({self.count})"

    def size_run(self):
        """--size arguments to run at, one a run; [None] without sizes."""
        names = sorted(self.sizes)
        if not names:
            return [None]
        return [",".join(f"{n}={self.sizes[n][i]}" for n in names)
                for i in range(2)]

    def make_body(self):
        kinds = self.choose_phases()
        for kind in kinds:
            self.features.add(kind)
            getattr(self, kind)()
        body, self.lines = self.lines, []
        return body

    def device(self, body):
        cluster = f", clusterDim={self.ctas}" if self.ctas > 1 else ""
        self.open(f"with CudaDeviceFunction({self.threads_of()}{cluster}):")
        self.open(f"for task in cuda_tasks(0, {self.count}):")
        for line in body:
            self.put(line)
        self.depth -= 2

    def threads_of(self):
        if not self.named:
            return f"blockDim={self.block}"
        self.features.add("named warps")
        return ("warp_config=[CudaWarpConfig(name='load', count=1), "
                f"CudaWarpConfig(name='work', count={self.block // 32 - 1})]")

    def make(self, body):
        memory = "DRAM" if self.form == "copies" else "CudaGmemLinear"
        params = [f"{name}: size" for name in sorted(self.sizes)]
        params += [f"{name}: f32[{self.extent()}] @ {memory}"
                   for name in ("x", "y")] + self.params
        self.open(f"def random({', '.join(params)}):")
        if self.ctas > 1:
            self.features.add("clusters")
        getattr(self, "host_" + self.form)(body)

    def put_maps(self):
        for line in self.host:
            self.put(line)

    def host_plain(self, body):
        self.put_maps()
        self.device(body)

    def host_two(self, body):
        """Another kernel in front, through memory of the host's making."""
        self.put(f"made: f32[{self.extent()}] @ CudaGmemLinear")
        self.put_maps()
        self.open("with CudaDeviceFunction(blockDim=64):")
        self.open(f"for b in cuda_tasks(0, ({self.extent()} + 63) / 64):")
        self.open("for l in cuda_threads(0, 64, unit=cuda_thread):")
        self.open(f"if 64 * b + l < {self.extent()}:")
        self.put("made[64 * b + l] = 2.0 * x[64 * b + l]")
        self.depth -= 4
        self.device([re.sub(r"\bx\[", "made[", line) for line in body])

    def host_loop(self, body):
        self.put_maps()
        self.open("for again in seq(0, 2):")
        self.device(body)
        self.depth -= 1

    def host_if(self, body):
        self.put_maps()
        size = next(iter(self.sizes), None)
        self.open(f"if {size} > 1:" if size else "if True:")
        self.device(body)
        self.depth -= 1

    def host_copies(self, body):
        """The tensors are the host's; copies to the device and back."""
        self.put(f"dx: f32[{self.extent()}] @ CudaGmemLinear")
        self.put(f"dy: f32[{self.extent()}] @ CudaGmemLinear")
        self.put_maps()
        for d, h in (("dx", "x"), ("dy", "y")):
            self.put(f"cudaMemcpyAsync_htod_1d({self.extent()}, "
                     f"{d}[0:{self.extent()}], {h}[0:{self.extent()}], "
                     "T=f32)")
        self.device([re.sub(r"\b([xy])\[", r"d\1[", line) for line in body])
        self.put(f"cudaMemcpyAsync_dtoh_1d({self.extent()}, "
                 f"y[0:{self.extent()}], dy[0:{self.extent()}], T=f32)")

    def host_window(self, body):
        self.put(f"wx = x[0:{self.extent()}]")
        self.put(f"wy = y[0:{self.extent()}]")
        self.put_maps()
        self.device([re.sub(r"\b([xy])\[", r"w\1[", line) for line in body])

    # ---- one fault ----------------------------------------------------------

    def break_one(self):
        change = self.rng.choice([self.drop, self.swap, self.number,
                                  self.word, self.word])
        for _ in range(8):
            before = list(self.lines)
            change(self.rng.randrange(3, len(self.lines)))
            if self.lines != before:
                return

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
                 ("cuda_generic_and_async_proxy", "cuda_in_order"),
                 ("CudaMbarrier", "CudaClusterSync"),
                 ("Sm80_cp_async, 1", "cuda_in_order, 1"),
                 ("tma_to_gmem_async, 1", "cuda_in_order, 1"),
                 ("wgmma_async, 1", "cuda_in_order, 1"),
                 (".ring_guarded_by", ".guarded_by"),
                 ("swizzle=128", "swizzle=64"), ("tma_store", "tma_load"),
                 ("cuda_cta_in_cluster", "cuda_warp_in_cluster")]
        here = [w for w in words if w[0] in self.lines[i]]
        if here:
            old, new = self.rng.choice(here)
            self.lines[i] = self.lines[i].replace(old, new, 1)
