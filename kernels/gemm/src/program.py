"""The plain loop nests of the special kernels, as text.

A kind says what a kernel computes: C[M, N] = f(alpha * A B^T + beta * C + bias)
for one product or a batch of them. Each part that an epilogue's name does not
have is not there: without beta C is not read.
"""
import itertools
from typing import NamedTuple

ACTIVATIONS = {"relu": "relu(x)", "silu": "x * sigmoid(x)",
               "gelu": "x * sigmoid(x * (1.5957691216 + "
                       "0.07135481627 * x * x))"}
TILE_OPS = {"relu": "relu", "silu": "silu", "gelu": "gelu_tanh"}
OWN_OUTPUT = {"bf16": "bf16", "f16": "f16", "tf32": "f32", "e4m3": "bf16",
              "e5m2": "bf16", "e4m3_sums": "bf16", "e5m2_sums": "bf16"}
BITS = {"bf16": 16, "f16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "f32": 32}


class Kind(NamedTuple):
    type: str
    layout: str
    output: str
    epilogue: str  # alpha, or words of beta, bias and an activation; or none
    batched: bool

    def has(self, word):
        return word in self.epilogue.split("_")

    @property
    def element(self):
        return "f32" if self.type == "tf32" else self.type

    @property
    def activation(self):
        return next((a for a in ACTIVATIONS if self.has(a)), None)


def plain(type_):
    """The product alone, of K-major operands."""
    return Kind(type_, "tn", OWN_OUTPUT[type_], "", False)


def entry_keys(kind):
    """What a table's entry says of a set; what is usual is left out."""
    out = {"type": kind.type, "layout": kind.layout}
    if kind.output != OWN_OUTPUT[kind.type]:
        out["output"] = kind.output
    if kind.epilogue:
        out["epilogue"] = kind.epilogue
    if kind.batched:
        out["batched"] = True
    return out


def kinds(rows):
    """The kinds that a row of the table's `special` spans."""
    for kind in itertools.product(rows["types"], rows["layouts"],
                                  rows["outputs"], rows["epilogues"],
                                  rows["batched"]):
        type_, layout, output, epilogue, batched = kind
        yield Kind(type_, layout,
                   OWN_OUTPUT[type_] if output == "own" else output,
                   epilogue, batched)


def name(kind):
    """gemm_TYPE[_LAYOUT][_OUTPUT][_batch][_EPILOGUE]"""
    words = ["gemm", kind.type]
    words += [kind.layout] if kind.layout != "tn" else []
    words += [kind.output] if kind.output != OWN_OUTPUT[kind.type] else []
    words += ["batch"] if kind.batched else []
    words += [kind.epilogue] if kind.epilogue else []
    return "_".join(words)


def params(kind):
    """The schedule's parameters."""
    out = {"TYPE": kind.element, "OUT": kind.output,
           "SCALED": int(bool(kind.epilogue)), "BETA": int(kind.has("beta")),
           "BIAS": int(kind.has("bias")),
           "ACTIVATION": TILE_OPS.get(kind.activation, "none")}
    if kind.batched:
        out.update(LOOP="b", TASKS="b", BATCH_ONE="b,", BATCH_ALL="0:L,",
                   BATCH_BOX="1,")
    return out


def _tensor(kind, element, rows, columns):
    batch = "L, " if kind.batched else ""
    return f"[{element}][{batch}{rows}, {columns}]"


def _parameters(kind):
    a = ("K", "M") if kind.layout[0] == "n" else ("M", "K")
    b = ("K", "N") if kind.layout[1] == "t" else ("N", "K")
    yield from (["L: size"] if kind.batched else [])
    yield from ("M: size", "N: size", "K: size")
    yield "A: " + _tensor(kind, kind.element, *a)
    yield "B: " + _tensor(kind, kind.element, *b)
    yield "C: " + _tensor(kind, kind.output, "M", "N")
    yield from (["alpha: f32"] if kind.epilogue else [])
    yield from (["beta: f32"] if kind.has("beta") else [])
    yield from ([f"bias: {kind.output}[N]"] if kind.has("bias") else [])


def _asserts(kind):
    """Rows are whole multiples of 16 bytes."""
    rows = {"N": [kind.output], "M": [], "K": []}
    rows["M" if kind.layout[0] == "n" else "K"].append(kind.element)
    rows["N" if kind.layout[1] == "t" else "K"].append(kind.element)
    for extent in "MNK":
        if rows[extent]:
            granule = 128 // min(BITS[t] for t in rows[extent])
            yield f"assert {extent} % {granule} == 0"
    for tensor in "ABC":
        yield f"assert stride({tensor}, {2 if kind.batched else 1}) == 1"


def _epilogue(kind, c):
    """From acc to C."""
    if not kind.epilogue:
        return [f"{c} = acc"]
    lines, result = [], "x"
    if kind.has("beta"):
        lines += ["old: f32", f"old = {c}", "old = old * beta"]
    lines += ["x: f32", "x = acc", "x = x * alpha"]
    lines += ["x += old"] if kind.has("beta") else []
    lines += ["x += bias[n]"] if kind.has("bias") else []
    if kind.activation:
        result = "y"
        lines += ["y: f32", "y = " + ACTIVATIONS[kind.activation]]
    return lines + [f"{c} = {result}"]


def text(kind):
    """The program."""
    one = "b, " if kind.batched else ""
    a = one + ("k, m" if kind.layout[0] == "n" else "m, k")
    b = one + ("k, n" if kind.layout[1] == "t" else "n, k")
    read = "tf32(tf32_rn({}))" if kind.type == "tf32" else "f32({})"
    product = f"acc += {read.format(f'A[{a}]')} * {read.format(f'B[{b}]')}"
    loops = (["for b in seq(0, L):"] if kind.batched else []) + [
        "for m in seq(0, M):", "for n in seq(0, N):"]
    lines = [f"def {name(kind)}({', '.join(_parameters(kind))}):"]
    lines += ["    " + line for line in _asserts(kind)]
    lines += [depth * "    " + line for depth, line in enumerate(loops, 1)]
    inner = (len(loops) + 1) * "    "
    lines += [inner + line for line in (
        "acc: f32", "acc = 0.0", "for k in seq(0, K):", "    " + product,
        *_epilogue(kind, f"C[{one}m, n]"))]
    return "\n".join(lines) + "\n"
