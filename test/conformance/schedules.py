#!/usr/bin/env python3
"""Random programs under random steps compute what they computed before.

Each program is random statements and a recipe's own, and gets the recipe's steps
with random arguments, then random ones. Each step is refused or taken. Then the
program is run as it was and as scheduled, at sizes down to 1, on the same inputs.
Their numbers are integers, whose arithmetic is exact modulo 2^32, so that every
order of summation gives the same; a recipe with floating numbers stands first,
where they are small. A difference, a read of what was never written, or an access outside a tensor is a
step that should have been refused. Every operator must have been taken once at
least; how often each was tried and taken is printed. 900 steps are tried, 20000
with EXO_LONG.
"""

import os
import random
import re
import struct
import subprocess
import sys
import tempfile

BIN = os.environ.get("EXO_BIN", "build/bin")
STEPS = 10
ATTEMPTS = 20000 if os.environ.get("EXO_LONG") else 900
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
    return rng.choice([e, "1", f"{e} + {f}", f"2 * {f}", f"{e} - 1",
                       f"{e} + ({f} + 1)"])


def local(rng, loops, indent, out):
    """Memory of its own: a scalar, or an array that is filled and read."""
    pad, n = "    " * indent, len(out)
    to = element(rng, loops, ["y", "u", "z", "t"])
    if rng.random() < 0.5:
        out.append(f"{pad}w{n}: i32")
        out.append(f"{pad}w{n} = {value(rng, loops)}")
        out.append(f"{pad}{to} += w{n}")
        return
    extent, trips = rng.choice([("N", "N"), ("8", "8"), ("N + 1", "N")])
    there = rng.choice([f"v{n}", f"v{n}", f"{trips} - 1 - v{n}"])
    out.append(f"{pad}w{n}: i32[{extent}]")
    out.append(f"{pad}for v{n} in seq(0, {trips}):")
    out.append(f"{pad}    w{n}[v{n}] = {value(rng, loops)}")
    if there == f"v{n}" and rng.random() < 0.5:
        out.append(f"{pad}    {to} += w{n}[v{n}]")
        return
    out.append(f"{pad}for v{n} in seq(0, {trips}):")
    out.append(f"{pad}    {to} += w{n}[{there}]")


def statements(rng, loops, depth, indent, out):
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        kind = rng.random()
        pad = "    " * indent
        if kind < 0.4 and depth < 3:
            v = "ijk"[depth] + str(rng.randrange(3))
            e, hi = rng.choice([("N", "N"), ("8", "8"), ("N", "N - 3"),
                                ("8", "N % 4"), ("8", "8 - 2 * (N % 8)")])
            out.append(f"{pad}for {v} in seq(0, {hi}):")
            statements(rng, loops + [(v, e)], depth + 1, indent + 1, out)
        elif kind < 0.5 and loops and depth < 4:
            v = rng.choice(loops)[0]
            c = rng.choice([f"{v} < 3", f"{v} % 2 == 0", "N > 4", f"{v} >= 1"])
            out.append(f"{pad}if {c}:")
            statements(rng, loops, depth + 1, indent + 1, out)
            if rng.random() < 0.3:
                out.append(f"{pad}else:")
                statements(rng, loops, depth + 1, indent + 1, out)
        elif kind < 0.6:
            local(rng, loops, indent, out)
        else:
            to = element(rng, loops, ["y", "u", "z", "t"])
            sign = rng.choice(["=", "=", "+="])
            out.append(f"{pad}{to} {sign} {value(rng, loops)}")


# A recipe: definitions before the procedure, statements at its end, steps. What
# stands in {..|..} is one of these at random. Helpers begin with _, so that the
# procedure stays the only public one.
ADD = """def _add(n: size, a: [i32][n], b: [i32][n]):
    for i in seq(0, n):
        a[i] += b[i]
"""
FOUR = """def _four(a: [i32][4], b: [i32][4]):
    for i in seq(0, 4):
        a[i] += b[i]
"""
NOTHING = """def _nothing(n: size):
    pass
"""
CONFIG = """@config
class C:
    s: i32
    q: i32
"""
HINTED = """instr _hinted[size: int, cache_hint: str = 'none'](dst: [i32][size], src: [i32][size]):
    unit cuda_thread
    timeline cuda_in_order_instr
    access dst: in_order
    access src: in_order
    body:
        for i in seq(0, size):
            dst[i] += src[i]
    ptx sm_80: "nop;"

"""
CLEAR = """for r0 in seq(0, N):
    for r1 in seq(0, 8):
        y[r0, r1] = 1
"""
COPY = """b0: f32[8]
for r0 in seq(0, 8):
    b0[r0] = z[r0]
for r1 in seq(0, 8):
    z[r1] = b0[7 - r1]
"""
PAIR = """for r0 in seq(0, N):
    u[r0] = x[r0]
for r1 in seq(0, N):
    y[r1, {0|1}] = u[{r1|N - 1 - r1}]
"""
NEST = """for r0 in seq(0, N):
    for r1 in seq(0, 8):
        y[r0, r1] = x[r0]
        y[r0, {r1|7 - r1}] += 1
"""

RECIPES = [
    (ADD + NOTHING, "_add(N, u[0:N], x[0:N])\n", """
proc _add
copy_proc _other
proc _other
divide_loop `i` {2|3} io ii {guard|cut|perfect}
proc f
c = call_eqv `_add(_)` _other
insert_noop_call c.{after|before} `_nothing(N)`
inline {c|`_nothing(_)`}
"""),
    (ADD, "for r0 in seq(0, {N|N - 1}):\n    u[r0] += x[{r0|0}]\n", """
replace `r0` {_add|`_add(n=N)`}
inline `_add(_)`
"""),
    (FOUR, "for r0 in seq(0, 4):\n    z[r0] += z[r0 + 4]\n"
     "for r1 in seq(0, 4):\n    z[r1{| + 1}] += z[r1 + 4]\n", """
proc _four
make_instr _quad cuda_thread cuda_in_order_instr `nop;`
proc f
replace `r0` _quad
set_trailing_barrier_expr `_quad(_)` None
replace `r1` _quad
reorder_stmts `_quad(_)`#0
"""),
    (CONFIG, "C.s = 1\nz[0] = z[1] * z[2]\n", """
delete_config `C.s = _`
bind_config `z[0] = z[1] * z[2]` `z[{1|2}]` C.s
write_config `t = 0`.before C.{q|s} 1
"""),
    ("", "w0 = y[0:N, 2:6]\nfor r0 in seq(0, N):\n    w0[r0, 1] = 2\n", """
inline_window `w0 = _`#0
stage_window `r0` `y[0:N, {0:8|3:5|4:8}]` w1
stage_mem `r0` `y[0:N, {0:8|3}]` s0
"""),
    ("", "for r0 in seq(0, N):\n    u[r0] = 3\nfor r1 in seq(0, N):\n"
     "    u[r1] = {4|x[r1]}\n", """
m0 = stage_window `r0` `u[0:N] @ Sm90_tensorMap(0, 8)` u_map
divide_loop `r0` {2|4} ro ri
remove_if `ro`/`if _ < N`
inline_window m0
m1 = stage_window `r1` `u[{0:N|0:1}] @ Sm90_tensorMap(0, 8)` v_map
divide_loop `r1` {2|4} rp rj
remove_if `rp`/`if _ < N`
"""),
    ("", CLEAR, """
parallelize_loop `r0`
set_loop_mode `r0` seq pragma_unroll=2
update_loop_mode `r0` pragma_unroll={4|0}
set_loop_mode `r0` cuda_tasks
set_loop_mode `r1` cuda_threads unit=cuda_thread
wrap_with_context `r0` `CudaDeviceFunction(blockDim=32)`
insert_fence `r1`.after cuda_in_order cuda_in_order
insert_barrier_alloc `r1`.before bar `barrier @ CudaMbarrier`
insert_arrive `r1`.after cuda_in_order bar
insert_await `r1`.after bar cuda_in_order
wrap_with_context `r1` `CudaWarps(0, 1)`
lift_scope `with CudaWarps(_)`
"""),
    ("", "z[0] = z[1] + (z[2] + z[3])\nz[{4|1}] = z[4] + z[5]\n", """
left_reassociate_expr `z[0] = z[1] + (z[2] + z[3])` `z[{1|1|2}] + _`
commute_expr `z[0] = _`#0 `_ + _`
fold_into_reduce `z[4] = z[4] + z[5]`
s = split_write `z[0] = z[_] + _`#0
merge_writes s
"""),
    ("", """a0: i32
a0 = 0
for r0 in seq(0, N):
    a0 += {2|z[3]} * x[r0]
u[0] = a0
if N == 6:
    for r1 in seq(0, N):
        u[r1] = 1
""", """
lift_reduce_constant `a0 = 0`
rewrite_expr `r1` N 6
unroll_loop `r1`
"""),
    ("", COPY, """
resize_dim `b0` 0 {8|9|16} offset={0|-1}
divide_dim `b0` 0 {2|4}
rearrange_dim `b0` `[1, 0]`
mult_dim `b0` {0 1|1 0}
set_memory `b0` DRAM
set_precision `b0` f64
expand_dim `b0` {8|N} {0|3}
"""),
    ("", COPY, """
unroll_loop `r0`
unroll_loop `r1`
unroll_buffer `b0` 0
replicate_buffer `b0_{0|1}` 2 v0 {0|1|2}
"""),
    ("", """b0: i32[N]
for r0 in seq(0, N):
    b0[r0] = x[r0]
    if r0 > {0|1}:
        u[r0] = b0[r0] + b0[r0 - 1]
""", """
resize_dim `b0` 0 {1|2|3} fold=true
delete_buffer `b0`
"""),
    ("", """for r0 in seq(0, N):
    b0: i32
    b0 = x[r0]
    b1: i32
    b1 = {2|b0}
    u[r0] = b1
""", """
reuse_buffer `b0` `b1`
lift_alloc `b0`
sink_alloc `b0`
autolift_alloc `b0`
"""),
    ("", """for r0 in seq(0, N):
    b0: i32
    b0 = x[r0]
    b1: i32
    b1 = {x|u}[r0]
    u[r0] = 1
    y[r0, 0] = b0
    y[r0, 1] = b1
""", """
inline_assign `b0 = _`
delete_buffer `b0`
inline_assign `b1 = _`
delete_buffer `b1`
"""),
    ("", "for r0 in seq(0, N):\n    u[r0] = x[{r0|0}]\nfor r1 in seq(0, N):\n"
     "    u[r1] {+=|=} x[r1]\n", """
divide_with_recompute `r0` 1 1 ro ri
divide_with_recompute `r1` {1|`(N + 1) / 2`} {1|2} rp rj
"""),
    ("", "for r0 in seq(0, N):\n    u[r0] = {x[r0]|u[0]}\n", """
divide_with_recompute `r0` 1 1 ro ri
remove_loop `ro`
"""),
    ("", PAIR, """
shift_loop `r1` {1|2}
extend_loop {`r1`|`r0`} 0 `N + {1|2}`
shift_loop `r1` 0
fuse `r0` `r1`
"""),
    ("", CLEAR, """
mult_loops `r0` rm
divide_loop `rm` 8 r0 r1 {perfect|guard|cut}
reorder_loops `r0`
cut_loop `r0` {0|1|`N - 1`}
join_loops `r0`#0 `r0`#1
"""),
    ("", "z[3] = 4\n", """
s = specialize `z[3] = 4` `N < 1`
eliminate_dead_code s
s = specialize `z[3] = 4` `N {> 5|< 1}`
eliminate_dead_code s
simplify
add_if `z[3] = _`#0 `N {>= 1|> 2}`
add_loop `z[3] = _`#0 rl {3|N}
remove_loop `rl`
insert_pass `z[3] = _`#0.after
delete_pass `pass`#0
"""),
    ("", "z[3] = z[1] * 2\nz[5] = {4|z[3]}\n", """
bind_expr `z[3] = z[1] * 2` `z[1]` v0
reorder_stmts `z[3] = _`#0
reorder_stmts `z[3] = _`
extract_subproc `z[5] = _` _sub
add_assertion `N {>= 1|< 20|< 1}`
"""),
    ("", "for r0 in seq(0, N):\n    b0: i32[4]\n    b0[1] = 2\n    u[r0] = b0[1]\n",
     """
wrap_with_context `r0` `CudaDeviceFunction(blockDim=32)`
set_loop_mode `r0` cuda_tasks
insert_barrier_alloc `b0`.before bar `barrier[4] @ CudaMbarrier`
set_dim_size_annotation `b0` 0 2
set_dim_size_annotation `bar` 0 2
set_ring_guarded_by `b0` bar
"""),
    ("", CLEAR, """
rename g
set_arg_memory u CudaGmemLinear
set_window z true
"""),
    ("", NEST.replace("{r1|7 - r1}", "r1"), """
fission `y[_] += 1`.before 2
lift_scope `r1`#0
partial_eval N 6
"""),
    ("", """b0: i32[8]
for r0 in seq(0, 8):
    b0[r0] = z[r0]
w0 = b0[{0:4|4:8}]
b1: i32[8]
for r1 in seq(0, 8):
    b1[r1] = 7
{w0[1] = 5|z[0] = w0[1]|z[0] = 5}
z[1] = b1[{1|5}]
z[2] = {b0|w0|b1}[1]
""", """
reuse_buffer `b0` `b1`
extract_subproc {`w0[1] = 5`|`z[0] = _`#0}..`z[2] = _`#0 _sub
proc _sub
reorder_stmts `w0[1] = 5` `z[1] = _`..`z[2] = _`
proc f
delete_buffer `b1`
"""),
    ("", """b0: i32[2, 4, 4]
for r0 in seq(0, 2):
    for r1 in seq(0, 4):
        for r2 in seq(0, 4):
            b0[r0, r1, r2] = z[r1] + 2 * z[r2 + 4]
w0 = b0[{0, 0:4, 0:4|1, 0:4, 0:4}]
z[0] = w0[1, 2]
b1: i32[4, 8]
w1 = b1[0:4, 2]
if stride(w1, {0) == 8|0) == 5}:
    z[1] = z[1] + 1
""", """
rearrange_dim `b0` `[{0, 2, 1|1, 0, 2}]`
mult_dim `b0` {0 2|0 1|1 2|1 0}
resize_dim `b1` {1 5|0 5}
rearrange_dim `b1` `[1, 0]`
"""),
    ("", """a0: i32
a0 = 0
for r0 in seq(0, {N):
    a0 += z[3]|N):
    a0 += x[N - 1]|N - 3):
    a0 += z[3]|N - 3):
    a0 += x[N - 4]} * {x[r0]|(a0 + x[r0])}
u[0] = a0
b0: i32[8]
for r1 in seq(0, 8):
    b0[r1] = {z[r1]|1}
for r2 in seq(0, 8):
    b0[r2] = {b0[r2] + 1|2}
    z[r2] = b0[{r2|7 - r2}]
""", """
lift_reduce_constant `a0 = 0`
stage_mem {`r2`|`r1`} `b0[0:8]` s0
stage_mem `r2` `b0[0:8]` s1
"""),
    ("", NEST, """
autofission `y[_] += 1`.before
fuse `r0`#0 `r0`#1
"""),
    (HINTED, "_hinted(z[0:4], z[4:8], size=4)\n_hinted(z[1:3], z[5:7], size=2)\n", """
set_cache_hint `_hinted(_)`#0 {evict_first|evict_last|none|evict_soon}
set_cache_hint `_hinted(_)`#1 {evict_first|none}
"""),
]


def fill(rng, text):
    """The text with one of the alternatives in each {..|..}."""
    return re.sub(r"\{([^{}]*)\}",
                  lambda m: rng.choice(m.group(1).split("|")), text)


def program(rng, recipe):
    out = ["def f(N: size, x: i32[N], z: i32[8], y: i32[N, 8], u: i32[N]):",
           "    t: i32", "    t = 0"]
    own = fill(rng, recipe[1]).rstrip("\n").split("\n")
    out += ["    " + line for line in own]
    statements(rng, [], 0, 1, out)
    statements(rng, [], 0, 1, out)
    return recipe[0] + "\n" + "\n".join(out) + "\n"


def step(rng, n):
    k = rng.randrange(4)
    any_loop = f"`for _ in _`#{k}"
    any_stmt = rng.choice([f"`_ = _`#{k}", f"`_ += _`#{k}", any_loop,
                           f"`if _`#{rng.randrange(2)}"])
    alloc = f"`_: _`#{rng.randrange(4)}"
    tail = rng.choice(["guard", "cut", "cut_and_guard", "perfect", "overlap"])
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
        f"divide_with_recompute {any_loop} {rng.choice([1, 2, '`N / 2`'])} "
        f"{rng.choice([1, 2, 3])} o{n} p{n}",
        f"extend_loop {any_loop} 0 {rng.choice([8, '`N + 1`'])}",
        f"resize_dim {alloc} 0 {rng.choice([1, 2, 3])} fold=true",
        f"stage_window {any_stmt} `{rng.choice(['z[2:8]', 'u[0:N]', 'y[0:N, 0:4]', 'x[0:N + 1]'])}` w{n}x",
        f"extract_subproc {any_stmt} _p{n}",
        f"inline {rng.choice(['`_p1(_)`', '`_p2(_)`', '`_p3(_)`'])}",
        f"unroll_buffer {alloc} 0",
        f"remove_if `if _`#{k}",
        f"rewrite_expr `if _`#{k} "
        f"{rng.choice(['`N > 4` `N >= 5`', '`N > 4` `N > 5`'])}",
        "simplify",
    ])


def write_npy(path, rng, shape):
    """An int32 array of small integers, in the layout of numpy's files."""
    count = 1
    for extent in shape:
        count *= extent
    text = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {text}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00")
        f.write(struct.pack("<H", len(header)) + header.encode())
        for _ in range(count):
            f.write(struct.pack("<i", rng.randrange(-4, 5)))


def write_inputs(folder, rng, size):
    shapes = {"x": (size,), "z": (8,), "y": (size, 8), "u": (size,)}
    for name, shape in shapes.items():
        write_npy(f"{folder}/in_{name}.npy", rng, shape)


def run(folder, name, size, out):
    command = [f"{BIN}/exo-run", f"{folder}/{name}.exo", "--level=seq"]
    if size:
        command += ["--size", f"N={size}"]
    for tensor in "xzyu":
        command += ["--in", f"{tensor}={folder}/in_{tensor}.npy"]
    for tensor in "zyu":
        command += ["--out", f"{tensor}={folder}/{out}_{tensor}.npy"]
    return subprocess.run(command, capture_output=True, text=True)


def contents(folder, out):
    """The numbers of the outputs."""
    numbers = []
    for name in "zyu":
        with open(f"{folder}/{out}_{name}.npy", "rb") as f:
            data = f.read()
        start = 10 + struct.unpack("<H", data[8:10])[0]
        numbers += struct.unpack(f"<{(len(data) - start) // 4}i", data[start:])
    return numbers


def operator(line):
    """The operator of a line, or None for one that is no step."""
    words = re.sub(r"^\w+ = ", "", line).split()
    return None if words[0] == "proc" else words[0]


def schedule(folder, lines):
    """Takes the lines one by one; the operators of those that were taken."""
    talk = "\n".join(["show off"] + lines + ["steps", "quit"]) + "\n"
    command = [f"{BIN}/exo-opt", f"{folder}/p.exo", "--interactive",
               "--emit=exo", "-o", f"{folder}/q.exo"]
    done = subprocess.run(command, input=talk, capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr[-800:]
    listed = done.stdout.split("> steps\n")[-1].split("> quit")[0]
    taken = [line.split(None, 1)[1] for line in listed.splitlines()]
    return [op for op in map(operator, taken) if op], None


class Attempt:
    """One program and its steps."""

    def __init__(self, seed, folder):
        rng = random.Random(seed)
        recipe = RECIPES[seed % len(RECIPES)]
        self.folder = folder
        self.taken, self.fault = [], None
        lines = fill(rng, recipe[2]).strip("\n").split("\n")
        lines += [step(rng, n) for n in range(STEPS - len(lines))]
        self.tried = [op for op in map(operator, lines) if op]
        with open(f"{folder}/p.exo", "w") as f:
            f.write(program(rng, recipe))
        sizes = rng.sample(SIZES, 2)
        self.ran = self.before(rng, sizes[0])
        if self.ran:
            self.taken, self.fault = schedule(folder, lines)
        if self.ran and not self.fault:
            self.compare(rng, sizes)

    def before(self, rng, size):
        """Can the program be run as it is?"""
        write_inputs(self.folder, rng, size)
        return run(self.folder, "p", size, "a").returncode == 0

    def compare(self, rng, sizes):
        fixed = "partial_eval" in self.taken
        for size in [6] if fixed else sizes:
            if not self.before(rng, size):
                self.fault = f"N={size}: it cannot be run"
                return
            after = run(self.folder, "q", None if fixed else size, "b")
            if after.returncode:
                self.fault = f"N={size}: {after.stderr[-800:]}"
                return
            if contents(self.folder, "a") != contents(self.folder, "b"):
                self.fault = f"N={size}: the results differ"
                return


def operators():
    """The names at the left of the list, up to the other names."""
    text = subprocess.run([f"{BIN}/exo-opt", "--list-schedule-ops"],
                          capture_output=True, text=True, check=True).stdout
    lines = text.split("\nother names\n")[0].split("\n")
    return [line.split()[0] for line in lines if line and line[0] != " "]


def count(attempt, counts):
    for at, names in enumerate((attempt.tried, attempt.taken or [])):
        for name in names:
            counts.setdefault(name, [0, 0])[at] += 1


def report(counts):
    """Prints the counts; how many operators were never taken."""
    missing = 0
    for name in operators():
        tried, taken = counts.get(name, (0, 0))
        print(f"{name}: tried {tried}, taken {taken}")
        missing += taken == 0
    return missing


def main():
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    passed = failed = tried = 0
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        seed = first
        while tried < ATTEMPTS and seed < first + 4 * ATTEMPTS:
            attempt = Attempt(seed, folder)
            if attempt.fault:
                print(f"seed {seed}: {attempt.fault}")
                failed += 1
            elif attempt.ran:
                passed += 1
            if attempt.ran:
                tried += len(attempt.tried)
                count(attempt, counts)
            seed += 1
    failed += report(counts)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
