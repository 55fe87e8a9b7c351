"""Register tiles and vectors of a warp: moves, element-wise operations, masks,
reductions and broadcasts.

A program loads what its one instruction needs, calls it and stores what it
wrote. Operands of logarithms and divisors are made positive first."""

from cases import BYTES, Case

ROWS, COLS = 16, 32
LARGER = 32, 48
BINARY = ("max", "min", "add", "sub", "mul", "div")
FILLS = ("zero", "one", "pos_infty", "neg_infty", "pos_inf", "neg_inf")
UNARY = ("exp", "exp2", "log", "log2", "abs", "relu", "sigmoid", "silu",
         "gelu_tanh")
TYPES = ("f32", "f16", "bf16")
ALL_TYPES = ("f32", "f16", "bf16", "e4m3", "e5m2", "e8m0")
LAYOUTS = ("row", "col")
VECTORS = ("ortho", "align", "naive")


class Program:
    """The body of a program, as it grows."""

    def __init__(self, shapes, layout):
        self.rows, self.cols = shapes
        self.layout = layout
        self.head, self.lines = [], []

    def line(self, text):
        self.lines.append(" " * 12 + text)

    def argument(self, name, ty, shape):
        self.head.append(f"{name}: {ty}[{shape}] @ CudaGmemLinear")

    def fence(self):
        self.line("Fence(cuda_in_order, cuda_in_order)")

    def by_threads(self, n, text):
        """A line for each of n elements, by as many threads, 16 at a time."""
        for at in range(0, n, 16):
            self.line("for i in cuda_threads(0, 16, unit=cuda_thread):")
            self.line("    " + text.replace("$", f"{at} + i"))

    # ---- tiles ---------------------------------------------------------------

    def tile(self, name, ty):
        self.line(f"{name}: {ty}[{self.rows}, {self.cols}] @ CudaTkWarpTile"
                  f"({self.rows}, {self.cols}, '{self.layout}')")
        return f"{name}[0:{self.rows}, 0:{self.cols}]"

    def sizes(self):
        return f"rows={self.rows}, cols={self.cols}, layout='{self.layout}'"

    def load_tile(self, name, ty, from_ty=None):
        """A tile with the contents of an argument of its own."""
        from_ty = from_ty or ty
        self.argument(f"{name}_g", from_ty, f"{self.rows}, {self.cols}")
        tile = self.tile(name, ty)
        self.line(f"cuda_tk_load_rg({tile}, {name}_g[0:{self.rows}, "
                  f"0:{self.cols}], dst={ty}, src={from_ty}, "
                  f"size0={self.rows}, size1={self.cols}, "
                  f"layout='{self.layout}')")
        return tile

    def store_tile(self, name, ty, to_ty=None):
        to_ty = to_ty or ty
        self.argument(f"{name}_y", to_ty, f"{self.rows}, {self.cols}")
        self.line(f"cuda_tk_store_rg({name}_y[0:{self.rows}, 0:{self.cols}], "
                  f"{name}[0:{self.rows}, 0:{self.cols}], dst={to_ty}, "
                  f"src={ty}, size0={self.rows}, size1={self.cols}, "
                  f"layout='{self.layout}')")

    # ---- vectors -------------------------------------------------------------

    def vector(self, name, ty, length, layout):
        self.line(f"{name}: {ty}[{length}] @ CudaTkWarpVec({length}, "
                  f"'{layout}')")
        return f"{name}[0:{length}]"

    def load_vector(self, name, ty, length, layout, from_ty=None):
        from_ty = from_ty or ty
        self.argument(f"{name}_g", from_ty, length)
        self.line(f"{name}_s: {from_ty}[{length}] @ CudaSmemLinear")
        self.by_threads(length, f"{name}_s[$] = {name}_g[$]")
        self.fence()
        vector = self.vector(name, ty, length, layout)
        self.line(f"cuda_tk_load_vec_rs({vector}, {name}_s[0:{length}], "
                  f"dst={ty}, src={from_ty}, length={length}, "
                  f"layout='{layout}')")
        return vector

    def store_vector(self, name, ty, length, layout, to_ty=None):
        to_ty = to_ty or ty
        self.argument(f"{name}_y", to_ty, length)
        self.line(f"{name}_o: {to_ty}[{length}] @ CudaSmemLinear")
        self.line(f"cuda_tk_store_vec_rs({name}_o[0:{length}], "
                  f"{name}[0:{length}], dst={to_ty}, src={ty}, "
                  f"length={length}, layout='{layout}')")
        self.fence()
        self.by_threads(length, f"{name}_y[$] = {name}_o[$]")

    # ---- the whole -----------------------------------------------------------

    def case(self, name, entries, scalar=None):
        head = list(self.head)
        if scalar:
            head.append(f"scalar: {scalar} @ CudaGridConstant")
        self.fence()
        body = "\n".join(self.lines)
        return Case(name, entries, f"""\
def {name}({", ".join(head)}):
    with CudaDeviceFunction(blockDim=32):
        for t in cuda_tasks(0, 1):
{body}
""")


def positive(p, kind, of, make):
    """|of| + 1, in a new tile or vector; make(name) declares one."""
    absolute, result = make("absolute"), make("positive")
    p.line(f"cuda_tk_{kind}_abs({absolute}, {of[0]}, T={of[1]}, {of[2]})")
    p.line(f"cuda_tk_{kind}_one({result}, T={of[1]}, {of[2]})")
    p.line(f"cuda_tk_{kind}_add_lhs({result}, {absolute}, T={of[1]}, {of[2]})")
    return result


class Kind:
    """What differs between tiles and vectors."""

    def __init__(self, kind, ty, layout):
        self.kind, self.ty, self.layout = kind, ty, layout
        self.p = Program((ROWS, COLS), layout if kind == "tile" else "row")
        self.length = 32
        self.sizes = (self.p.sizes() if kind == "tile" else
                      f"length={self.length}, layout='{layout}'")

    def make(self, name, ty=None):
        if self.kind == "tile":
            return self.p.tile(name, ty or self.ty)
        return self.p.vector(name, ty or self.ty, self.length, self.layout)

    def load(self, name, ty=None):
        if self.kind == "tile":
            return self.p.load_tile(name, ty or self.ty)
        return self.p.load_vector(name, ty or self.ty, self.length, self.layout)

    def store(self, name, ty=None):
        if self.kind == "tile":
            self.p.store_tile(name, ty or self.ty)
        else:
            self.p.store_vector(name, ty or self.ty, self.length, self.layout)

    def positive(self, of):
        return positive(self.p, self.kind, (of, self.ty, self.sizes), self.make)

    def call(self, op, *args):
        self.p.line(f"cuda_tk_{self.kind}_{op}({', '.join(args)}, T={self.ty}, "
                    f"{self.sizes})")

    def case(self, op, scalar=False):
        return self.p.case(f"{self.kind}_{op}_{self.ty}_{self.layout}",
                           (f"cuda_tk_{self.kind}_{op}", ),
                           self.ty if scalar else None)


def element_wise(kind, ty, layout):
    """Each operation on tiles or on vectors."""
    for op in FILLS:
        k = Kind(kind, ty, layout)
        k.call(op, k.make("d"))
        k.store("d")
        yield k.case(op)
    for op in UNARY:
        k = Kind(kind, ty, layout)
        a = k.load("a")
        a = k.positive(a) if op.startswith("log") else a
        k.call(op, k.make("d"), a)
        k.store("d")
        yield k.case(op)
    for op in ("add_reduce", "add_reduce_scalar"):
        k = Kind(kind, ty, layout)
        scalar = op.endswith("scalar")
        d = k.load("d")
        k.call(op, d, "scalar" if scalar else k.load("a"))
        k.store("d")
        yield k.case(op, scalar)
    for op in BINARY:
        yield from binary(kind, ty, layout, op)


def binary(kind, ty, layout, op):
    """dst = lhs op rhs, dst = dst op src, dst = src op dst."""
    k = Kind(kind, ty, layout)
    lhs, rhs = k.load("a"), k.load("b")
    rhs = k.positive(rhs) if op == "div" else rhs
    k.call(f"{op}_3op", k.make("d"), lhs, rhs)
    k.store("d")
    yield k.case(f"{op}_3op")
    k = Kind(kind, ty, layout)
    lhs = k.load("a")
    k.call(f"{op}_3op_scalar", k.make("d"), lhs, "scalar")
    k.store("d")
    yield k.case(f"{op}_3op_scalar", True)
    k = Kind(kind, ty, layout)
    d, src = k.load("d"), k.load("a")
    src = k.positive(src) if op == "div" else src
    k.call(f"{op}_lhs", d, src)
    k.store("d")
    yield k.case(f"{op}_lhs")
    k = Kind(kind, ty, layout)
    d = k.load("d")
    k.call(f"{op}_lhs_scalar", d, "scalar")
    k.store("d")
    yield k.case(f"{op}_lhs_scalar", True)
    k = Kind(kind, ty, layout)
    d, src = k.load("d"), k.load("a")
    d = k.positive(d) if op == "div" else d
    k.call(f"{op}_rhs", src, d)
    k.store("positive" if op == "div" else "d")
    yield k.case(f"{op}_rhs")


def copies():
    """Every pair of types; vectors also between layouts."""
    for dst in ALL_TYPES:
        for src in ALL_TYPES:
            for layout in LAYOUTS if dst == src else ("row", ):
                p = Program((ROWS, COLS), layout)
                a, d = p.load_tile("a", src), p.tile("d", dst)
                p.line(f"cuda_tk_tile_copy({d}, {a}, dst={dst}, src={src}, "
                       f"{p.sizes()})")
                p.store_tile("d", dst)
                yield p.case(f"tile_copy_{dst}_{src}_{layout}",
                             ("cuda_tk_tile_copy", ))
            p = Program((ROWS, COLS), "row")
            p.load_tile("a", dst, src)
            p.store_tile("a", dst, src)
            yield p.case(f"load_rg_{dst}_{src}",
                         ("cuda_tk_load_rg", "cuda_tk_store_rg"))
            p = Program((ROWS, COLS), "row")
            a = p.load_vector("a", src, 48, "ortho")
            d = p.vector("d", dst, 48, "ortho")
            p.line(f"cuda_tk_vec_copy({d}, {a}, dst={dst}, src={src}, "
                   "length=48, layout='ortho')")
            p.store_vector("d", dst, 48, "ortho")
            yield p.case(f"vec_copy_{dst}_{src}", ("cuda_tk_vec_copy", ))
    for ty in TYPES:
        for to in VECTORS:
            for src in VECTORS:
                p = Program((ROWS, COLS), "row")
                a = p.load_vector("a", ty, 48, src)
                d = p.vector("d", ty, 48, to)
                p.line(f"cuda_tk_vec_copy_layout({d}, {a}, dst={ty}, src={ty}, "
                       f"length=48, dst_layout='{to}', src_layout='{src}')")
                p.store_vector("d", ty, 48, to)
                yield p.case(f"vec_copy_layout_{ty}_{to}_{src}",
                             ("cuda_tk_vec_copy_layout", "cuda_tk_load_vec_rs",
                              "cuda_tk_store_vec_rs"))


def masks(ty, layout):
    """On, above and below the diagonal."""
    for op in FILLS:
        for side in ("", "_t"):
            p = Program((ROWS, COLS), layout)
            p.lines = ["        for o in cuda_tasks(0, 3):"]
            d = p.load_tile("d", ty)
            p.line(f"cuda_tk_make_causal_{op}{side}(16 * o, 16, {d}, T={ty}, "
                   f"{p.sizes()})")
            p.head = [h.replace("[16", "[3, 16") for h in p.head]
            p.argument("d_y", ty, f"3, {ROWS}, {COLS}")
            p.line(f"cuda_tk_store_rg(d_y[o, 0:{ROWS}, 0:{COLS}], {d}, "
                   f"dst={ty}, src={ty}, size0={ROWS}, size1={COLS}, "
                   f"layout='{layout}')")
            case = p.case(f"make_causal_{op}{side}_{ty}_{layout}",
                          (f"cuda_tk_make_causal_{op}{side}", ))
            case.text = case.text.replace(
                "        for t in cuda_tasks(0, 1):\n", "").replace(
                    "d_g[0", "d_g[o, 0")
            yield case


def vectors_and_tiles(ty, layout, shape):
    """Reductions into vectors, and broadcasts of them."""
    end = f"{ty}_{layout}" + ("" if shape == (ROWS, COLS) else "_larger")
    for axis in ("row", "col"):
        length = shape[axis == "col"]
        ortho = (axis == "row") == (layout == "row")
        vec = "ortho" if ortho else "align"
        for op in ("max", "min", "sum", "prod"):
            p = Program(shape, layout)
            a = p.load_tile("a", ty)
            d = p.load_vector("d", ty, length, vec)
            p.line(f"cuda_tk_{axis}_{op}({d}, {a}, T={ty}, {p.sizes()})")
            p.store_vector("d", ty, length, vec)
            yield p.case(f"{axis}_{op}_{end}", (f"cuda_tk_{axis}_{op}", ))
        for op in ("broadcast", "add", "sub", "mul", "div"):
            p = Program(shape, layout)
            d = p.tile("d", ty) if op == "broadcast" else p.load_tile("d", ty)
            a = p.load_vector("a", ty, length, vec)
            if op == "div":
                a = positive(p, "vec",
                             (a, ty, f"length={length}, layout='{vec}'"),
                             lambda n: p.vector(n, ty, length, vec))
            p.line(f"cuda_tk_{op}_{axis}({d}, {a}, T={ty}, {p.sizes()})")
            p.store_tile("d", ty)
            yield p.case(f"{op}_{axis}_{end}", (f"cuda_tk_{op}_{axis}", ))


def swizzled(ty, inner, rows):
    """Registers to and from shared memory of `inner` columns; and global memory
    to and from it."""
    outer = max(1, 32 // inner)
    cols = outer * inner
    span = inner * BYTES[ty]
    p = Program((rows, cols), "row")
    a = p.load_tile("a", ty)
    d = p.tile("d", ty)
    p.line(f"s: {ty}[{outer}, {rows}, {inner}] @ Sm90_SmemSwizzled({span})")
    window = f"s[0:{outer}, 0:{rows}, 0:{inner}]"
    sizes = f"dst={ty}, src={ty}, rows={rows}, outer_cols={outer}"
    names = tuple(f"cuda_tk_{verb}_rs_inner_cols_{inner}"
                  for verb in ("store", "load"))
    p.line(f"{names[0]}({window}, {a}, {sizes})")
    p.fence()
    p.line(f"{names[1]}({d}, {window}, {sizes})")
    p.store_tile("d", ty)
    yield p.case(f"rs_inner_cols_{inner}_{ty}_{rows}", names)
    if inner % 16:
        return
    p = Program((rows, inner), "row")
    p.argument("x", ty, f"{rows}, {inner}")
    p.argument("y", ty, f"{rows}, {inner}")
    p.line(f"s: {ty}[{rows}, {inner}] @ Sm90_SmemSwizzled({span})")
    window = f"[0:{rows}, 0:{inner}]"
    sizes = f"dst={ty}, src={ty}, size0={rows}, size1={inner}"
    p.line(f"cuda_tk_load_sg(s{window}, x{window}, {sizes})")
    p.fence()
    p.line(f"cuda_tk_store_sg(y{window}, s{window}, {sizes})")
    yield p.case(f"load_sg_{inner}_{ty}_{rows}",
                 ("cuda_tk_load_sg", "cuda_tk_store_sg"))


def columns(ty, to):
    """The middle of a tile's columns, converted on the way."""
    inner = 64 // BYTES[to]
    p = Program((ROWS, 16 + 2 * inner), "row")
    a = p.load_tile("a", ty)
    p.line(f"s: {to}[2, {ROWS}, {inner}] @ Sm90_SmemSwizzled(64)")
    p.line(f"cuda_tk_store_rs_cols(s[0:2, 0:{ROWS}, 0:{inner}], {a}, dst={to}, "
           f"src={ty}, rows={ROWS}, outer_cols=2, col0=16, swizzle=64)")
    p.fence()
    p.argument("y", to, f"2, {ROWS}, {inner}")
    p.line("for r in cuda_threads(0, 16, unit=cuda_thread):")
    p.line("    for o in seq(0, 2):")
    p.line(f"        for c in seq(0, {inner}):")
    p.line("            y[o, r, c] = s[o, r, c]")
    return p.case(f"store_rs_cols_{to}_{ty}", ("cuda_tk_store_rs_cols", ))


def columns_transposed(ty, to, cols, swizzle):
    """The middle of a tile's columns, each in a row beside that of a neighbour."""
    p = Program((ROWS, cols + 16), "row")
    a = p.load_tile("a", ty)
    width = swizzle // BYTES[to]
    p.line(f"s: {to}[{cols}, {width}] @ Sm90_SmemSwizzled({swizzle})")
    for at in range(0, width, ROWS):
        p.line(f"cuda_tk_store_rs_cols_transposed(s[0:{cols}, {at}:{at + ROWS}], "
               f"{a}, dst={to}, src={ty}, rows={ROWS}, cols={cols}, "
               f"col0={at // 2 % 24}, swizzle={swizzle})")
    p.fence()
    p.argument("y", to, f"{cols}, {width}")
    for at in range(0, width, ROWS):
        p.line("for r in cuda_threads(0, 16, unit=cuda_thread):")
        p.line(f"    for c in seq(0, {cols}):")
        p.line(f"        y[c, {at} + r] = s[c, {at} + r]")
    return p.case(f"store_rs_cols_transposed_{to}_{ty}_{cols}_{swizzle}",
                  ("cuda_tk_store_rs_cols_transposed", ))


def columns_of_tile(ty, col0):
    """Some of a tile's columns as a tile."""
    p = Program((ROWS, 3 * COLS), "row")
    a = p.load_tile("a", ty)
    p.cols = COLS
    p.line(f"cuda_tk_tile_cols({p.tile('d', ty)}, {a}, dst={ty}, src={ty}, "
           f"rows={ROWS}, cols={COLS}, col0={col0})")
    p.store_tile("d", ty)
    return p.case(f"tile_cols_{ty}_{col0}", ("cuda_tk_tile_cols", ))


def cases():
    """Every case."""
    yield from copies()
    for ty in TYPES:
        for layout in LAYOUTS:
            yield from element_wise("tile", ty, layout)
            yield from masks(ty, layout)
            yield from vectors_and_tiles(ty, layout, (ROWS, COLS))
            yield from vectors_and_tiles(ty, layout, LARGER)
        for layout in VECTORS:
            yield from element_wise("vec", ty, layout)
    for ty in ALL_TYPES:
        for inner in (8, 16, 32, 64, 128):
            if inner * BYTES[ty] in (32, 64, 128):
                yield from swizzled(ty, inner, 16)
                yield from swizzled(ty, inner, 32)
    for ty in ("f32", "bf16"):
        for to in ("f32", "bf16", "e4m3"):
            yield columns(ty, to)
        for to, swizzle in (("bf16", 32), ("bf16", 64), ("bf16", 128),
                            ("f16", 128), ("f32", 64), ("f32", 128)):
            for cols in (8, 32, 40):
                yield columns_transposed(ty, to, cols, swizzle)
        for col0 in (0, 16, 40, 64):
            yield columns_of_tile(ty, col0)
