"""A Triton GEMM as a second baseline: C = A B^T, persistent, through TMA.

One program a multiprocessor walks the tiles of C in bands of eight rows of
tiles; tiles of A and B come by tensor descriptors. The configuration is the
fastest of a few, timed at the first call for a shape.
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _tiles(a_desc, b_desc, c_desc, m, n, k, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, BAND: tl.constexpr):
    rows = tl.cdiv(m, BM)
    columns = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), rows * columns, tl.num_programs(0),
                         flatten=True):
        band = tile // (BAND * columns)
        first = band * BAND
        height = tl.minimum(rows - first, BAND)
        within = tile - first * columns
        row = (first + within % height) * BM
        column = (within // height) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in tl.range(0, tl.cdiv(k, BK)):
            a = a_desc.load([row, step * BK])
            b = b_desc.load([column, step * BK])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([row, column], acc.to(c_desc.dtype))


_CONFIGS = [(128, 256, 3, 8), (128, 128, 4, 8), (128, 128, 4, 4),
            (64, 128, 4, 4), (64, 64, 6, 4)]
_chosen = {}


def _launch(a, b, c, config):
    from triton.tools.tensor_descriptor import TensorDescriptor
    bm, bn, stages, warps = config
    bk = 128 // a.element_size()
    m, k = a.shape
    n = b.shape[0]
    grid = (min(torch.cuda.get_device_properties(0).multi_processor_count,
                triton.cdiv(m, bm) * triton.cdiv(n, bn)),)
    descriptors = [TensorDescriptor.from_tensor(t, shape) for t, shape in
                   ((a, [bm, bk]), (b, [bn, bk]), (c, [bm, bn]))]
    return lambda: _tiles[grid](*descriptors, m, n, k, bm, bn, bk, 8,
                                num_stages=stages, num_warps=warps)


def _time(body):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    body()
    best = float("inf")
    for _ in range(3):
        torch.cuda._sleep(300000)
        start.record()
        body()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end))
    return best


def product(a, b, c):
    """A function that computes c = a b^T."""
    key = (a.dtype, *a.shape, b.shape[0])
    if key not in _chosen:
        timed = []
        for config in _CONFIGS:
            try:
                timed.append((_time(_launch(a, b, c, config)), config))
            except triton.runtime.errors.OutOfResources:
                continue
        _chosen[key] = min(timed)[1]
    return _launch(a, b, c, _chosen[key])
