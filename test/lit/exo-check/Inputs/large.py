"""Programs that are large in one way each, written to the folder given."""
import pathlib
import sys

HEAD = """def f(N: size, x: f32[N] @ CudaGmemLinear):
    with CudaDeviceFunction(blockDim=128):
        for t in cuda_tasks(0, 1):
"""
STORE = ["for l in cuda_threads(0, 128, unit=cuda_thread):",
         "    if l < N:", "        x[l] = 1.0"]


def program(name, lines):
    text = HEAD + "".join(" " * 12 + line + "\n" for line in lines)
    pathlib.Path(sys.argv[1], name + ".exo").write_text(text)


def elements(n):
    """An mbarrier each of whose elements all threads use once."""
    return [f"b: barrier[{n}, 1 @ (ring_buffer_by(depth=1))] @ CudaMbarrier",
            f"for i in seq(0, {n}):",
            "    Arrive(cuda_in_order, 1) >> b[i, 0]",
            f"for i in seq(0, {n}):",
            "    Await(b[i, 0], cuda_in_order, 0)"] + STORE


def trips(depth):
    """As many loops of two trips around one statement."""
    loops = [" " * i + f"for i{i} in seq(0, 2):" for i in range(depth)]
    return loops + [" " * depth + line for line in STORE]


def allocs(n):
    lines = STORE[:1]
    for i in range(n):
        lines += [f"    r{i}: f32 @ CudaRmemLinear", f"    r{i} = {i}.0"]
    return lines + STORE


program("trips", trips(60))
program("elements", elements(3000))
program("few", elements(200))
program("allocs", allocs(5000))
