"""Kinds of mutants of the lowered text that leave the protocol alone: elements
at another place, maps, shapes. Rows as in async_kinds.py."""
from edits import all_of, drop, replace, twice
from kinds import Kind, number

MAP = r"_map = host\.tensor_map"

KINDS = [
    Kind("", "tile with another swizzle",
         all_of(replace(r"mem\.alloc", r"Swizzled\(32\)", "Swizzled(64)"),
             replace(r"mem\.alloc", r"Swizzled\(128\)", "Swizzled(64)")),
         "M-SWZ"),
    Kind("", "tile without swizzle",
         replace(r"mem\.alloc", r"Sm90_SmemSwizzled\(\d+\)", "CudaSmemLinear"),
         "M-SWZ wellformed"),
    Kind("", "map with another swizzle",
         replace(MAP, r"Sm90_tensorMap\(\d+", "Sm90_tensorMap(16"),
         "M-SWZ M-BOX"),
    Kind("", "map with another box",
         replace(MAP, r"(Sm90_tensorMap\(\d+), \d+", r"\1, 24"), "M-BOX"),
    Kind("descriptor", "wgmma with another n",
         number(r"mma_async", "n", lambda n: n // 2, lambda n: n + 4),
         "W-SHAPE W-REG"),
    Kind("descriptor", "wgmma with another k",
         number(r"mma_async", "k", lambda k: 2 * k, lambda k: k // 2),
         "W-SHAPE"),
    Kind("", "wgmma half a row group further",
         replace(r"mma_async", r"- 64 \+: 64", "- 56 +: 64"),
         "W-REG W-SHAPE M-SWZ bounds"),
    Kind("", "rows of a tile outside its object",
         replace(r"tile\.store.*- 64 \+: 16", r"- 64 \+: 16", "- 80 +: 16"),
         "bounds"),
    Kind("", "columns of a tile outside its fragment",
         number(r"tile\.store", "col0", lambda n: n + 4096), "bounds"),
    Kind("", "store dropped", drop(r"tensor\.(store|reduce)"), "X-COVER"),
    Kind("", "store twice", twice(r"tensor\.store"), "X-COVER D-WAW"),
    Kind("", "first tile left out",
         replace(r"async\.tasks", r"%tn in \[0,", "%tn in [1,"),
         "X-COVER B-CYCLE B-COUNT B-TX"),
]
