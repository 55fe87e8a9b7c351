"""The phases of a random program: rows of statements in a task, each right by
itself, that leave nothing of theirs in flight."""


class Phases:
    """Writes phases into self.lines; the program (generate.py) chooses."""

    # ---- pieces ----------------------------------------------------------

    def put(self, text):
        self.lines.append("    " * self.depth + text)

    def open(self, text):
        self.put(text)
        self.depth += 1

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def choose_phases(self):
        kinds = ["shared", "registers", "shared", "registers", "exchange",
                 "tma_load", "tma_store"]
        if self.block > 32:
            kinds += ["ring", "tma_ring", "tma_ring"]
        if self.ctas == 1:
            kinds += ["copies", "uniform"]
        if self.ctas == 1 and self.block > 32:
            kinds += ["copies_ring", "hand_over"]
        if self.ctas > 1:
            kinds += ["multicast", "multicast", "cluster_sync", "neighbours"]
        if self.ctas == 1 and self.block == 256 and not self.named:
            kinds += ["wgmma"] * 20
        return [self.rng.choice(kinds)
                for _ in range(self.rng.choice([1, 1, 2, 3]))]

    def fence(self, second="cuda_in_order", whole=True):
        """A fence of all threads; of each CTA, where that is enough."""
        depth = self.depth
        if self.ctas > 1 and not whole and self.rng.random() < 0.5:
            self.open(f"for {self.name('c')} in cuda_threads(0, {self.ctas}, "
                      "unit=cuda_cta_in_cluster):")
        self.put(f"Fence(cuda_in_order, {second})")
        self.depth = depth

    def warps(self, lo, hi):
        """Opens warps lo to hi of each CTA."""
        if not self.named:
            self.open(f"with CudaWarps({lo}, {hi}):")
        elif (lo, hi) == (0, 1):
            self.open("with CudaWarps(name='load'):")
        elif (lo, hi) == (1, self.block // 32):
            self.open("with CudaWarps(name='work'):")
        else:
            self.open(f"with CudaWarps({lo - 1}, {hi - 1}, name='work'):")

    def each_cta(self):
        """Opens the loop over CTAs; the index that it gives in front of
        others, and the CTA's number."""
        if self.ctas == 1:
            return "", "0"
        c = self.name("c")
        self.open(f"for {c} in cuda_threads(0, {self.ctas}, "
                  "unit=cuda_cta_in_cluster):")
        return f"{c}, ", c

    def lead(self):
        return f"{self.ctas}, " if self.ctas > 1 else ""

    def loops(self):
        """Shapes of a nest over the threads of a CTA: (count, unit, weight)
        where the thread is the sum of weight * iterator."""
        n = self.block
        part = self.rng.choice([4, 8, 16])
        shapes = [
            [(n, "cuda_thread", 1)],
            [(n // 32, "cuda_warp", 32), (32, "cuda_thread", 1)],
            [(n // part, f"{part} * cuda_thread", part),
             (part, "cuda_thread", 1)],
            [(8, "column8", 1), (n // 8, "cuda_thread", 8)],
            [(n // 2, "pairs", 2), (2, "cuda_thread", 1)],
            [(n // 32, "cuda_warp", 32), (2, "16 * cuda_thread", 16),
             (16, "cuda_thread", 1)],
        ]
        if self.ctas > 1:
            shapes.append([(n // 16, "wide", 16), (16, "cuda_thread", 1)])
        shape = self.rng.choice(shapes)
        if any(unit in ("column8", "pairs", "wide") for _, unit, _ in shape):
            self.features.add("own units")
        return shape

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

    def within(self, place):
        """Opens a guard where the last task is ragged."""
        if self.ragged:
            self.open(f"if {place} < N:")

    def load(self, target, place):
        """target = the element of x, 0 beyond the end."""
        if not self.ragged:
            self.put(f"{target} = x[{place}]")
            return
        depth = self.depth
        self.within(place)
        self.put(f"{target} = x[{place}]")
        self.depth = depth
        self.open("else:")
        self.put(f"{target} = 0.0")
        self.depth = depth

    def add_to_y(self, place, value):
        depth = self.depth
        self.within(place)
        self.put(f"y[{place}] += {value}")
        self.depth = depth

    def other(self, thread):
        """The position of some thread of the CTA."""
        n = self.block
        return self.rng.choice([
            thread, f"({thread} + {self.rng.randrange(1, n)}) % {n}",
            f"{n - 1} - ({thread})", f"({thread}) / 2"])

    def matrix(self, rows, cols, elem="f32"):
        """Another parameter, `rows` of it a task; its name."""
        name = self.name("m")
        self.params.append(f"{name}: {elem}[{rows} * ({self.count}), {cols}] "
                           "@ CudaGmemLinear")
        return name

    def tensor_map(self, tensor, rows, cols, box):
        name = self.name("map")
        swizzle, r, c = box
        self.host.append(
            f"{name} = {tensor}[0:{rows} * ({self.count}), 0:{cols}] @ "
            f"Sm90_tensorMap({swizzle}, {r}, {c})")
        return name

    def tile(self):
        """(swizzle, rows, columns, memory) of a tile of f32."""
        swizzle = self.rng.choice([0, 32, 64, 128])
        cols = swizzle // 4 or 32
        memory = f"Sm90_SmemSwizzled({swizzle})" if swizzle else \
            "CudaSmemLinear"
        return swizzle, self.rng.choice([4, 8, 16]), cols, memory

    def loops_of(self, n, cols):
        """Opens a loop of threads over columns, n of them at most."""
        t = self.name("t")
        self.open(f"for {t} in cuda_threads(0, {min(n, cols)}, "
                  "unit=cuda_thread):")
        return t

    # ---- ordinary code ----------------------------------------------------

    def shared(self):
        """Every thread writes an element of shared memory, others read it."""
        s = self.name("s")
        self.put(f"{s}: f32[{self.lead()}{self.block}] @ CudaSmemLinear")
        depth = self.depth
        _, thread, cta = self.nest(self.loops())
        at = f"{cta}, " if cta else ""
        self.load(f"{s}[{at}{thread}]", self.place(thread, cta))
        self.depth = depth
        self.fence(whole=False)
        _, thread, cta = self.nest(self.loops())
        at = f"{cta}, " if cta else ""
        if self.rng.random() < 0.3:
            self.open(f"if {thread} < {self.rng.randrange(1, self.block)}:")
        self.add_to_y(self.place(thread, cta),
                      f"{s}[{at}{self.other(thread)}]")
        self.depth = depth
        self.fence()

    def exchange(self):
        """As shared, several times over the same memory."""
        s, k = self.name("s"), self.name("k")
        self.put(f"{s}: f32[{self.lead()}{self.block}] @ CudaSmemLinear")
        depth = self.depth
        self.open(f"for {k} in seq(0, {self.rng.choice([1, 2, 3])}):")
        inner = self.depth
        _, thread, cta = self.nest(self.loops())
        at = f"{cta}, " if cta else ""
        self.load(f"{s}[{at}{thread}]", self.place(thread, cta))
        self.depth = inner
        self.fence(whole=False)
        _, thread, cta = self.nest(self.loops())
        at = f"{cta}, " if cta else ""
        self.add_to_y(self.place(thread, cta),
                      f"{s}[{at}{self.other(thread)}]")
        self.depth = inner
        self.fence(whole=False)
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
        for step in (0, 1):
            iterators, thread, cta = self.nest(loops)
            i = self.name("k")
            self.open(f"for {i} in seq(0, {k}):")
            index = ", ".join(([cta] if cta else []) + iterators + [i])
            if step == 0:
                self.load(f"{r}[{index}]", self.place(thread, cta))
            else:
                self.add_to_y(self.place(thread, cta), f"{r}[{index}]")
            self.depth = depth
        self.fence()

    def uniform(self):
        """A value that every thread of a warp holds."""
        u = self.name("u")
        n = self.block // 32
        self.put(f"{u}: f32[{n}] @ CudaRmemUniform(32)")
        depth = self.depth
        w = self.name("w")
        self.open(f"for {w} in cuda_threads(0, {n}, unit=cuda_warp):")
        self.load(f"{u}[{w}]", self.place(f"32 * {w}", None))
        t = self.name("t")
        self.open(f"for {t} in cuda_threads(0, 32, unit=cuda_thread):")
        self.add_to_y(self.place(f"32 * {w} + {t}", None), f"{u}[{w}]")
        self.depth = depth
        self.fence()

    # ---- cp.async ----------------------------------------------------------

    def copies(self):
        """A quarter of the threads fill shared memory by cp.async."""
        n = self.block // 4
        s, g, t = self.name("s"), self.name("g"), self.name("t")
        m = self.matrix(1, self.block)
        self.put(f"{s}: f32[{self.block}] @ CudaSmemLinear")
        self.put(f"{g}: barrier[{n}] @ Sm80_CommitGroup")
        depth = self.depth
        self.open(f"for {t} in cuda_threads(0, {n}, unit=cuda_thread):")
        to = f"4 * {t}"
        self.put(f"Sm80_cp_async_1d({s}[{to}:{to} + 4], "
                 f"{m}[task, {to}:{to} + 4], size0=4, T=f32)")
        self.put(f"Arrive(Sm80_cp_async, 1) >> {g}[{t}]")
        self.put(f"Await({g}[{t}], cuda_in_order, 0)")
        self.depth = depth
        self.fence()
        _, thread, _ = self.nest(self.loops())
        self.add_to_y(self.place(thread, None), f"{s}[{self.other(thread)}]")
        self.depth = depth
        self.fence()

    def copies_ring(self):
        """One warp fills a ring by cp.async, which arrives on mbarriers."""
        n, d = self.rng.choice([1, 2, 3, 5]), self.rng.choice([1, 2, 4])
        m = self.matrix(n, 128)
        free, full, s, k = self.ring_of(n, d, "128", "CudaSmemLinear")
        depth = self.depth
        self.open(f"for {k} in seq(0, {n}):")
        inner = self.depth
        self.warps(0, 1)
        self.put(f"Await({free}[{k}], cuda_temporal, 0)")
        t = self.loops_of(32, 32)
        self.put(f"Sm80_cp_async_1d({s}[{k}, 4 * {t}:4 * {t} + 4], "
                 f"{m}[{n} * task + {k}, 4 * {t}:4 * {t} + 4], size0=4, "
                 "T=f32)")
        self.depth -= 1
        self.put(f"Arrive(Sm80_cp_async, 1) >> {full}[{k}]")
        self.depth = inner
        self.consume(free, full, s, k, d, lambda t: f"127 - {t}")
        self.depth = depth
        self.fence()

    # ---- rings -------------------------------------------------------------

    def ring_of(self, n, d, shape, memory):
        """Allocates a ring of data with its two barriers."""
        free, full, s, k = (self.name(v) for v in ("free", "full", "s", "k"))
        ring = f"@ (ring_buffer_by(depth={d}))"
        self.put(f"{free}: barrier[{self.lead()}({n} + {d}) {ring}] @ "
                 f"CudaMbarrierPreArrive({d}, )")
        self.put(f"{full}: barrier[{self.lead()}({n}) {ring}] @ CudaMbarrier")
        self.put(f"{s}: f32[{self.lead()}({n}) {ring}, {shape}]"
                 f".ring_guarded_by({free}) @ {memory}")
        return free, full, s, k

    def consume(self, free, full, s, k, d, at, cta=""):
        """The other warps add what is in a slot to y, then release it."""
        warps = self.block // 32
        self.warps(1, warps)
        second = self.rng.choice(["cuda_in_order",
                                  "cuda_generic_and_async_proxy"])
        self.put(f"Await({full}[{cta}{k}], {second}, 0)")
        inner = self.depth
        w, t = self.name("w"), self.name("t")
        self.open(f"for {w} in cuda_threads(0, {warps - 1}, unit=cuda_warp):")
        self.open(f"for {t} in cuda_threads(0, 32, unit=cuda_thread):")
        number = cta.rstrip(", ")
        self.add_to_y(self.place(f"32 * {w} + {t}", number or None),
                      f"{s}[{cta}{k}, {at(t)}]")
        self.depth = inner
        self.put(f"Arrive(cuda_in_order, 1) >> {free}[{cta}{k} + {d}]")
        self.depth = inner - 1

    def ring(self):
        """One warp of each CTA fills a ring of shared memory, the others
        read it."""
        n, d = self.rng.choice([1, 2, 3, 5]), self.rng.choice([1, 2, 4])
        free, full, s, k = self.ring_of(n, d, "32", "CudaSmemLinear")
        depth = self.depth
        self.open(f"for {k} in seq(0, {n}):")
        cta, number = self.each_cta()
        inner = self.depth
        self.warps(0, 1)
        self.put(f"Await({free}[{cta}{k}], cuda_temporal, 0)")
        t = self.loops_of(32, 32)
        self.load(f"{s}[{cta}{k}, {t}]",
                  self.place(t, number if cta else None))
        self.depth -= 1
        self.put(f"Arrive(cuda_in_order, 1) >> {full}[{cta}{k}]")
        self.depth = inner
        self.consume(free, full, s, k, d, lambda t: f"31 - {t}", cta)
        self.depth = depth
        self.fence()

    def hand_over(self):
        """Two sets of warps hand one buffer to and fro by barriers alone."""
        n = self.rng.choice([1, 2, 4])
        there, back, s, k = (self.name(v) for v in ("there", "back", "s", "k"))
        self.put(f"{there}: barrier[{n} @ (ring_buffer_by(depth=1))] @ "
                 "CudaMbarrier")
        self.put(f"{back}: barrier[{n + 1} @ (ring_buffer_by(depth=1))] @ "
                 "CudaMbarrierPreArrive(1, )")
        self.put(f"{s}: f32[32] @ CudaSmemLinear")
        depth = self.depth
        self.open(f"for {k} in seq(0, {n}):")
        inner = self.depth
        self.warps(0, 1)
        self.put(f"Await({back}[{k}], cuda_temporal, 0)")
        t = self.loops_of(32, 32)
        self.load(f"{s}[{t}]", self.place(t, None))
        self.depth -= 1
        self.put(f"Arrive(cuda_in_order, 1) >> {there}[{k}]")
        self.depth = inner
        self.warps(1, 2)
        self.put(f"Await({there}[{k}], cuda_in_order, 0)")
        t = self.loops_of(32, 32)
        self.add_to_y(self.place(f"32 + {t}", None), f"{s}[31 - {t}]")
        self.depth -= 1
        self.put(f"Arrive(cuda_in_order, 1) >> {back}[{k} + 1]")
        self.depth = depth
        self.fence()

    # ---- bulk copies -------------------------------------------------------

    def tma_load(self):
        """One warp of each CTA loads a tile, threads take it on."""
        swizzle, rows, cols, memory = tile = self.tile()
        m = self.matrix(rows * self.ctas, cols)
        out = self.matrix(rows * self.ctas, cols)
        source = self.tensor_map(m, rows * self.ctas, cols, tile[:3])
        b, s, i = self.name("b"), self.name("s"), self.name("i")
        self.put(f"{b}: barrier[{self.lead()}1 @ (ring_buffer_by(depth=1))] @ "
                 "CudaMbarrier")
        self.put(f"{s}: f32[{self.lead()}{rows}, {cols}] @ {memory}")
        depth = self.depth
        cta, number = self.each_cta()
        inner = self.depth
        row = f"{rows * self.ctas} * task + {rows} * {number}"
        if self.block > 32:
            self.warps(0, 1)
        self.put(f"Sm90_tma_load_2d({s}[{cta}0:{rows}, 0:{cols}], "
                 f"{source}[{row}:{row} + {rows}, 0:{cols}], T=f32, "
                 f"size0={rows}, size1={cols}, smem_box=({rows}, {cols}), "
                 f"swizzle={swizzle}) >> {b}[{cta}0]")
        self.put(f"Arrive(cuda_temporal, 1) >> {b}[{cta}0]")
        self.depth = inner
        self.put(f"Await({b}[{cta}0], cuda_in_order, 0)")
        t = self.loops_of(self.block, cols)
        self.open(f"for {i} in seq(0, {rows}):")
        self.put(f"{out}[{row} + {i}, {t}] = {s}[{cta}{i}, {cols - 1} - {t}]")
        self.depth = depth
        self.fence()

    def tma_store(self):
        """Threads fill a tile of each CTA, one warp copies or adds it out."""
        swizzle, rows, cols, memory = tile = self.tile()
        m = self.matrix(rows * self.ctas, cols)
        out = self.matrix(rows * self.ctas, cols)
        target = self.tensor_map(out, rows * self.ctas, cols, tile[:3])
        s, g, i = self.name("s"), self.name("g"), self.name("i")
        self.put(f"{s}: f32[{self.lead()}{rows}, {cols}] @ {memory}")
        ctas = f"[{self.ctas}]" if self.ctas > 1 else ""
        self.put(f"{g}: barrier{ctas} @ Sm90_TmaCommitGroup")
        depth = self.depth
        cta, number = self.each_cta()
        inner = self.depth
        row = f"{rows * self.ctas} * task + {rows} * {number}"
        t = self.loops_of(self.block, cols)
        self.open(f"for {i} in seq(0, {rows}):")
        self.put(f"{s}[{cta}{i}, {t}] = 2.0 * {m}[{row} + {i}, {t}]")
        self.depth = inner
        self.put("Fence(cuda_in_order, cuda_generic_and_async_proxy)")
        if self.block > 32:
            self.warps(0, 1)
        kind = self.rng.choice(["store", "store", "reduce_add"])
        at = f"[{number}]" if self.ctas > 1 else ""
        self.put(f"Sm90_tma_{kind}_2d({target}[{row}:{row} + {rows}, "
                 f"0:{cols}], {s}[{cta}0:{rows}, 0:{cols}], T=f32, "
                 f"size0={rows}, size1={cols}, smem_box=({rows}, {cols}), "
                 f"swizzle={swizzle})")
        self.put(f"Arrive(tma_to_gmem_async, 1) >> {g}{at}")
        self.put(f"Await({g}{at}, cuda_in_order, 0)")
        self.depth = depth
        self.fence()

    def tma_ring(self):
        """One warp of each CTA keeps a ring of tiles filled. The number of
        steps may be a size."""
        n, d = self.rng.choice([1, 2, 3, 5]), self.rng.choice([1, 2, 3])
        rows = self.rng.choice([4, 8])
        if self.rng.random() < 0.4:
            n = "K"
            self.sizes["K"] = [1, 4]
            self.features.add("sizes")
        step = rows * self.ctas
        m = self.name("m")
        self.params.append(f"{m}: f32[{step} * ({n}), 32] @ CudaGmemLinear")
        source = self.name("map")
        self.host.append(f"{source} = {m}[0:{step} * ({n}), 0:32] @ "
                         f"Sm90_tensorMap(128, {rows}, 32)")
        free, full, s, k = self.ring_of(n, d, f"{rows}, 32",
                                        "Sm90_SmemSwizzled(128)")
        depth = self.depth
        self.open(f"for {k} in seq(0, {n}):")
        cta, number = self.each_cta()
        inner = self.depth
        row = f"{step} * {k} + {rows} * {number}"
        self.warps(0, 1)
        self.put(f"Await({free}[{cta}{k}], cuda_temporal, 0)")
        self.put(f"Sm90_tma_load_2d({s}[{cta}{k}, 0:{rows}, 0:32], "
                 f"{source}[{row}:{row} + {rows}, 0:32], T=f32, "
                 f"size0={rows}, size1=32, smem_box=({rows}, 32), "
                 f"swizzle=128) >> {full}[{cta}{k}]")
        self.put(f"Arrive(cuda_temporal, 1) >> {full}[{cta}{k}]")
        self.depth = inner
        r = self.rng.randrange(rows)
        self.consume(free, full, s, k, d, lambda t: f"{r}, 31 - {t}", cta)
        self.depth = depth
        self.fence()

    # ---- clusters ----------------------------------------------------------

    def multicast(self):
        """A tile for all CTAs, of which each loads a part."""
        n, rows = self.ctas, 16
        m = self.matrix(rows, 32)
        source = self.tensor_map(m, rows, 32, (128, rows // n, 32))
        b, s, c = self.name("b"), self.name("s"), self.name("c")
        self.put(f"{b}: barrier[{n}, 1 @ (ring_buffer_by(depth=1))] @ "
                 "CudaMbarrier")
        self.put(f"{s}: f32[{n}, {rows}, 32] @ Sm90_SmemSwizzled(128)")
        depth = self.depth
        if self.block > 32:
            self.warps(0, 1)
        self.put(f"Sm90_tma_load_multicast_2d({s}[0:{n}, 0:{rows}, 0:32], "
                 f"{source}[{rows} * task:{rows} * task + {rows}, 0:32], "
                 f"T=f32, ncta={n}, size0={rows}, size1=32, cta_stride=1, "
                 f"smem_box=({rows // n}, 32), swizzle=128) >> "
                 f"{b}[0:{n}, 0]")
        self.open(f"for {c} in cuda_threads(0, {n}, "
                  "unit=cuda_cta_in_cluster):")
        self.put(f"Arrive(cuda_temporal, 1) >> {b}[{c}, 0] >> {b}[0:{n}, 0]")
        self.depth = depth
        cta, number = self.each_cta()
        self.put(f"Await({b}[{cta}0], cuda_in_order, 0)")
        t = self.loops_of(self.block, 32)
        r = self.rng.randrange(rows)
        self.add_to_y(self.place(t, number), f"{s}[{cta}{r}, 31 - {t}]")
        self.depth = depth
        self.fence()

    def cluster_sync(self):
        """Registers, and a wait of the cluster in two halves."""
        a = self.name("a")
        self.put(f"{a}: barrier @ CudaClusterSync")
        self.put(f"Arrive(cuda_in_order, 1) >> {a}")
        r, depth = self.name("r"), self.depth
        n = self.block
        self.put(f"{r}: f32[{self.ctas}, {n}] @ CudaRmemLinear")
        for step in (0, 1):
            _, thread, cta = self.nest([(n, "cuda_thread", 1)])
            if step == 0:
                self.load(f"{r}[{cta}, {thread}]", self.place(thread, cta))
            else:
                self.add_to_y(self.place(thread, cta),
                              f"{r}[{cta}, {thread}]")
            self.depth = depth
        self.put(f"Await({a}, cuda_in_order, 0)")
        self.fence()

    def neighbours(self):
        """CTAs in another order, through global memory and a fence."""
        n = self.block * self.ctas
        g = self.name("g")
        self.params.append(f"{g}: f32[{n} * ({self.count})] @ CudaGmemLinear")
        depth = self.depth
        _, thread, cta = self.nest(self.loops())
        self.load(f"{g}[{self.place(thread, cta)}]", self.place(thread, cta))
        self.depth = depth
        self.fence()
        _, thread, cta = self.nest(self.loops())
        across = f"{self.ctas - 1} - {cta}"
        self.add_to_y(self.place(thread, cta),
                      f"{g}[{n} * task + {self.block} * ({across}) + {thread}]")
        self.depth = depth
        self.fence()

    # ---- wgmma -------------------------------------------------------------

    def wgmma(self):
        """A warp loads tiles, a warpgroup multiplies them."""
        n, d = self.rng.choice([1, 2, 3]), self.rng.choice([1, 2])
        cols = self.rng.choice([16, 32, 64])
        elem = self.rng.choice(["bf16", "f16"])
        ring = f"@ (ring_buffer_by(depth={d}))"
        a, b = self.matrix(64, 64 * n, elem), self.matrix(cols, 64 * n, elem)
        out = self.matrix(64, cols)
        a_map = self.tensor_map(a, 64, 64 * n, (128, 64, 64))
        b_map = self.tensor_map(b, cols, 64 * n, (128, cols, 64))
        acc, free, full, cg, s, r, k, w = (
            self.name(v) for v in ("acc", "free", "full", "cg", "s", "r", "k",
                                   "w"))
        self.put(f"{acc}: f32[4, 16, {cols}] @ Sm90_TkRmemTileD({cols})")
        self.put(f"{free}: barrier[{n + d} {ring}] @ "
                 f"CudaMbarrierPreArrive({d}, )")
        self.put(f"{full}: barrier[{n} {ring}] @ CudaMbarrier")
        self.put(f"{cg}: barrier @ Sm90_WgmmaCommitGroup")
        for name, rows in ((s, 64), (r, cols)):
            self.put(f"{name}: {elem}[{n} {ring}, {rows}, 64]"
                     f".ring_guarded_by({free}) @ Sm90_SmemSwizzled(128)")
        depth = self.depth
        self.warps(0, 4)
        self.put(f"Sm90_tk_zero_scale_d({acc}[0:4, 0:16, 0:{cols}], DT=f32, "
                 f"N={cols})")
        self.depth = depth
        self.open(f"for {k} in seq(0, {n}):")
        inner = self.depth
        self.warps(4, 5)
        self.put(f"Await({free}[{k}], cuda_temporal, 0)")
        for name, source, rows in ((s, a_map, 64), (r, b_map, cols)):
            self.put(f"Sm90_tma_load_2d({name}[{k}, 0:{rows}, 0:64], "
                     f"{source}[{rows} * task:{rows} * task + {rows}, "
                     f"64 * {k}:64 * {k} + 64], T={elem}, size0={rows}, "
                     f"size1=64, smem_box=({rows}, 64), swizzle=128) >> "
                     f"{full}[{k}]")
        self.put(f"Arrive(cuda_temporal, 1) >> {full}[{k}]")
        self.depth = inner
        self.warps(0, 4)
        self.put(f"Await({full}[{k}], cuda_generic_and_async_proxy, 0)")
        self.put("Fence(wgmma_fence_1, wgmma_fence_2)")
        self.put(f"Sm90_tk_mma_row_col({acc}[0:4, 0:16, 0:{cols}], "
                 f"{s}[{k}, 0:64, 0:64], {r}[{k}, 0:{cols}, 0:64], DT=f32, "
                 f"AT={elem}, BT={elem}, N={cols}, K=64, swizzle=128)")
        self.put(f"Arrive(wgmma_async, 1) >> {cg}")
        self.put(f"Await({cg}, cuda_in_order, 0)")
        self.put(f"Arrive(cuda_in_order, 1) >> {free}[{k} + {d}]")
        self.depth = depth
        self.warps(0, 4)
        self.open(f"for {w} in cuda_threads(0, 4, unit=cuda_warp):")
        row = f"64 * task + 16 * {w}"
        self.put(f"cuda_tk_store_rg({out}[{row}:{row} + 16, 0:{cols}], "
                 f"{acc}[{w}, 0:16, 0:{cols}], DT=f32, ST=f32, size0=16, "
                 f"size1={cols})")
        self.depth = depth
        self.fence()
