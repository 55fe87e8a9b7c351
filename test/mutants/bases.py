"""The proved programs that mutants are made of, and the sizes to run them at.

A base is a text with a statement a line. Its trip count is how often its ring
or pipeline goes round in a task, its tasks are those of one cluster. BASES have
the smallest tiles; KERNELS are those that ship, each with the base that it is
like: kinds of mutants name bases, and mean the kernels that are like them too.
"""
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "base")
SHIPPED = os.path.join(FOLDER, "..", "..", "..", "kernels")


class Base:
    """name; depth: slots of its ring; size: from trips and tasks to the sizes;
    trips: the trip count where it is fixed; like: the base that it is like,
    for a kernel that ships; zero: it may go round not at all; lines: its text;
    lowered, results: what was made of it so far, for those who ask again."""

    def __init__(self, name, depth, size, trips=None, like=None, zero=False):
        self.name = name
        self.depth = depth
        self.size = size
        self.trips = trips
        self.like = like or name
        self.zero = zero
        self.path = os.path.join(SHIPPED if like else FOLDER, name + ".exo")
        with open(self.path, encoding="utf-8") as file:
            self.lines = statements(file.read().split("\n"))
        self.lowered = None
        self.results = {}

    def sizes(self):
        """[(trips, tasks, sizes)] at which each phase of the ring occurs."""
        d = self.depth
        wanted = sorted({0, 1, 2, d - 1, d, d + 1, 2 * d, 2 * d + 1}
                        - (set() if self.zero else {0}))
        if self.trips:
            wanted = [self.trips]
        found = []
        for trips in wanted:
            for tasks in (1, 2, 3):
                sizes = self.size(trips, tasks)
                if sizes not in [known for _, _, known in found]:
                    found.append((trips, tasks, sizes))
        return found

    def find(self, pattern):
        """The numbers of the lines that the pattern is found in."""
        return [i for i, line in enumerate(self.lines)
                if re.search(pattern, line) and not line.startswith("#")]


def statements(lines):
    """Lines that a bracket keeps open go on with the next."""
    whole, depth = [], 0
    for line in lines:
        if depth > 0:
            space = "" if whole[-1][-1] in "([" else " "
            whole[-1] += space + line.strip()
        else:
            whole.append(line)
        code = "" if line.startswith("#") else line
        depth += len(re.findall(r"[(\[]", code))
        depth -= len(re.findall(r"[)\]]", code))
    return whole


def gemm(m, n, k, least=8):
    """Sizes of a GEMM whose tasks are tiles of C beside each other."""
    return lambda trips, tasks: f"M={m},N={n * tasks},K={k * trips or least}"


def lines_of(m):
    return lambda trips, tasks: f"M={m},N={m * tasks}"


BASES = [
    Base("coop_1x1", 3, gemm(128, 16, 16)),
    Base("coop_2x1", 3, gemm(256, 16, 16)),
    Base("coop_1x2", 3, gemm(128, 32, 16)),
    Base("coop_2x2", 3, gemm(256, 32, 16)),
    Base("ping_pong", 3, gemm(256, 128, 64)),
    Base("split_k", 3, lambda trips, tasks: f"M=256,N=16,K={64 * tasks}", 4),
    Base("staged", 3, gemm(128, 256, 64)),
    Base("cluster_staged", 3, gemm(256, 16, 16)),
    Base("separate", 3, gemm(128, 16, 16)),
    Base("register_a", 3, gemm(128, 16, 16)),
    Base("sm80", 2, gemm(32, 16, 16), zero=True),
    Base("sm80_ring", 3, gemm(32, 16, 16)),
    Base("cp_async", 2, lambda trips, tasks: f"T={trips},M={trips}"),
    Base("publish", 1, lambda trips, tasks: f"T={tasks}", 1),
    Base("two_sets", 1, lambda trips, tasks: f"M={tasks}", 1),
    Base("exchange", 1, lambda trips, tasks: f"M={tasks}", 1),
    Base("dependent", 1, lambda trips, tasks: f"M={tasks}", 1),
]
KERNELS = [
    Base("gemm_sm90_bf16", 4, gemm(256, 256, 64), like="coop_2x1"),
    Base("gemm_sm90_f16", 4, gemm(256, 256, 64), like="coop_2x1"),
    Base("gemm_sm90_tf32", 4, gemm(256, 256, 32), like="coop_2x1"),
    Base("gemm_sm90_bf16_1x1", 4, gemm(128, 256, 64), like="coop_1x1"),
    Base("gemm_sm90_bf16_1x2", 4, gemm(128, 512, 64), like="coop_1x2"),
    Base("gemm_sm90_bf16_2x2", 4, gemm(256, 512, 64), like="coop_2x2"),
    Base("gemm_sm90_bf16_pingpong", 3, gemm(256, 128, 64), like="ping_pong"),
    Base("gemm_sm90_tf32_splitk", 4,
         lambda trips, tasks: f"M=256,N=256,K={1024 * tasks}", 32,
         like="split_k"),
    Base("gemm/gemm_bf16_256x96_t", 4,
         lambda trips, tasks: f"M=256,N={96 * tasks},K={64 * trips},W=1",
         like="tail"),
    Base("gemm/gemm_bf16_128x128_pp", 6, gemm(256, 128, 64), like="turns"),
    Base("gemm/gemm_bf16_64x64_s4", 13,
         lambda trips, tasks: f"M=64,N={64 * tasks},K={256 * trips}",
         like="reduced"),
    Base("gemm/gemm_tf32_128x128_p512", 6,
         lambda trips, tasks: f"M=128,N={128 * tasks},K={32 * trips}",
         like="parts"),
    Base("gemm_sm80_bf16", 2, gemm(128, 128, 32), like="sm80"),
    Base("gemm_sm80_f16", 2, gemm(128, 128, 32), like="sm80"),
    Base("gemm_sm80_tf32", 2, gemm(128, 128, 32), like="sm80"),
    Base("gemm_sm80_bf16_mbarrier", 4, gemm(128, 128, 32), like="sm80_ring"),
    Base("gemm_sm80_f16_mbarrier", 4, gemm(128, 128, 32), like="sm80_ring"),
    Base("gemm_sm80_tf32_mbarrier", 4, gemm(128, 128, 32), like="sm80_ring"),
    Base("attention_sm90_bf16", 2,
         lambda trips, tasks: f"Z={tasks},S={128 * trips}", like="attention"),
    Base("gemm_simt_f32", 1, gemm(128, 128, 16), like="simt"),
    Base("transpose", 1, lines_of(32), 1, like="transpose"),
    Base("gemv_f32", 1, lambda trips, tasks: f"M={32 * tasks},K=64", 1,
         like="gemv"),
    Base("saxpy", 1, lambda trips, tasks: f"N={256 * tasks}", 1, like="saxpy"),
]
ALL = [base.like for base in BASES + KERNELS]
COOP = ["coop_1x1", "coop_2x1", "coop_1x2", "coop_2x2"]
ONE_RING = COOP + ["ping_pong", "split_k", "staged", "cluster_staged",
                   "separate", "register_a"]
RINGS = ONE_RING + ["turns"]
