"""The proved programs that mutants are made of, and the sizes to run them at.

A base is a text with a statement a line. Its trip count is how often its ring
or pipeline goes round in a task, its tasks are those of one cluster."""
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "base")
KERNELS = os.path.join(FOLDER, "..", "..", "..", "kernels")


class Base:
    """name; lines: its text; depth: slots of its ring; size: from trips and
    tasks to the sizes; trips: the trip count where it is fixed;
    kernel: it is one that ships."""

    def __init__(self, name, depth, size, trips=None, kernel=False):
        self.name = name
        self.depth = depth
        self.trips = trips
        self.path = os.path.join(KERNELS if kernel else FOLDER, name + ".exo")
        with open(self.path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.size = size
        self.lowered = None

    def sizes(self):
        """[(trips, tasks, sizes)] at which each phase of the ring occurs."""
        d = self.depth
        wanted = sorted({1, 2, d - 1, d, d + 1, 2 * d, 2 * d + 1} - {0})
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


def gemm(m, n, k):
    """Sizes of a GEMM whose tasks are tiles of C beside each other."""
    return lambda trips, tasks: f"M={m},N={n * tasks},K={k * trips}"


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
    Base("cp_async", 2, lambda trips, tasks: f"T={trips},M={trips}"),
    Base("exchange", 1, lambda trips, tasks: f"M={tasks}", 1),
]
BY_NAME = {base.name: base for base in BASES}
COOP = ["coop_1x1", "coop_2x1", "coop_1x2", "coop_2x2"]
RINGS = COOP + ["ping_pong", "split_k", "staged", "cluster_staged", "separate",
                "register_a"]
