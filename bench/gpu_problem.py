"""A call of a GEMM kernel: operands on a GPU by an entry of a table of kernels
(docs/using-the-c-output.md), what C must become, and the call itself. Shared by
the tuner and bench/gpu_gemm_special.py. `torch` is PyTorch's module."""
import ctypes

from gpu_timing import FORMATS

POOL_BYTES = 64 << 20  # that a library keeps: C_POOL_BYTES of codegen/c_emit.h

DTYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}
TOLERANCE = {"bf16": 6e-3, "f16": 2e-3, "f32": 2e-3}
FP8 = 1  # bytes
BATCH = 3  # products of a batch


class Problem:
    """Random operands of one call, rows `pad` elements apart in fields of NaN,
    and random alpha, beta and bias where the entry's epilogue has them. C is
    NaN where beta is 0."""

    def __init__(self, torch, entry, shape, seed, pad=0):
        self.torch, self.entry, self.shape = torch, entry, shape
        self.pad = pad
        self.words = [w for w in entry.get("epilogue", "").split("_") if w]
        self.batch = BATCH if entry.get("batched") else 1
        self.rng = torch.Generator(device="cuda").manual_seed(seed)
        m, n, k = shape
        form, layout = FORMATS[entry["type"]], entry["layout"]
        self.inputs = getattr(torch, form.inputs)
        self.output = getattr(torch, DTYPES[output_of(entry)])
        self.a = self.matrix(m, k, self.inputs, layout[0] == "n")
        self.b = self.matrix(n, k, self.inputs, layout[1] == "t")
        self.alpha = self.scalar() if self.words else 1.0
        self.beta = self.scalar() / 2 if "beta" in self.words else 0.0
        self.bias = self.normal(n).to(self.output) \
            if "bias" in self.words else None
        self.c = self.matrix(m, n, self.output, False)
        self.before = self.c.clone()
        self.reset()

    def reset(self):
        """C as it was before the call."""
        if self.beta:
            self.c.copy_(self.before)
        else:
            self.c.fill_(float("nan"))

    def normal(self, *shape):
        return self.torch.randn(*shape, generator=self.rng, device="cuda")

    def scalar(self):
        return float(self.torch.rand((), generator=self.rng, device="cuda")
                     ) + 0.5

    def matrix(self, rows, columns, dtype, by_columns):
        """batch x rows x columns."""
        if by_columns:
            rows, columns = columns, rows
        field = self.torch.full((self.batch, rows + 2, columns + self.pad),
                                float("nan"), device="cuda").to(dtype)
        inner = field[:, 1:rows + 1, :columns]
        inner.copy_(self.normal(self.batch, rows, columns).to(dtype))
        return inner.transpose(1, 2) if by_columns else inner

    def tolerance(self):
        """Of the relative error in the Frobenius norm."""
        form = FORMATS[self.entry["type"]]
        return max(TOLERANCE[output_of(self.entry)],
                   form.tolerance if form.bytes_in == FP8 else 0)

    def wanted(self):
        torch = self.torch
        x = self.alpha * (self.a.float().double() @
                          self.b.float().double().transpose(1, 2))
        if self.beta:
            x += self.beta * self.before.double()
        if self.bias is not None:
            x += self.bias.double()
        functions = {"relu": torch.relu, "silu": torch.nn.functional.silu,
                     "gelu": lambda t: torch.nn.functional.gelu(
                         t, approximate="tanh")}
        for word in self.words:
            x = functions[word](x) if word in functions else x
        return x

    def surroundings_are_whole(self):
        base = self.c._base if self.c._base is not None else self.c
        outside = self.torch.ones_like(base, dtype=self.torch.bool)
        m, n, _ = self.shape
        outside[:, 1:m + 1, :n] = False
        return bool(self.torch.isnan(base[outside]).all())

    def error(self, want):
        difference = float((self.c.double() - want).norm())
        size = float(want.norm())
        return difference / size if size else difference


def output_of(entry):
    own = {"tf32": "f32", "e4m3": "bf16", "e5m2": "bf16"}
    kind = entry["type"].removesuffix("_sums")
    return entry.get("output") or own.get(kind, kind)


def rows_of(tensor):
    """Distance of its rows, or of its columns where those are adjacent."""
    return tensor.stride(2) if tensor.stride(2) != 1 else tensor.stride(1)


def call_kernel(function, p, more=()):
    """The kernel's own function: sizes, more of them, tensors, alpha, beta,
    bias; its status."""
    args = [ctypes.c_int64(x) for x in
            ([p.batch] if p.entry.get("batched") else []) + [*p.shape, *more]]
    for t in (p.a, p.b, p.c):
        args.append(ctypes.c_void_p(t.data_ptr()))
        if p.entry.get("batched"):
            args.append(ctypes.c_int64(t.stride(0)))
        args += [ctypes.c_int64(rows_of(t)), ctypes.c_int64(1)]
    args += [ctypes.c_float(p.alpha)] if p.words else []
    args += [ctypes.c_float(p.beta)] if "beta" in p.words else []
    args += [ctypes.c_void_p(p.bias.data_ptr())] if p.bias is not None else []
    return function(*args, ctypes.c_void_p(stream_of(p.torch)))


def stream_of(torch):
    return torch.cuda.current_stream().cuda_stream
