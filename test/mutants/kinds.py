"""What the tables of kinds of lowered mutants share: bases, sizes at which a
mutant is wrong, a row."""
from bases import BASES, Base, gemm
from edits import all_of, replace

GEMM = Base("gemm_sm90_bf16", 4, gemm(256, 256, 64), kernel=True)
ALL = BASES + [GEMM]


def always(base, trips, tasks):
    return True


def never(base, trips, tasks):
    return False


def from_two(base, trips, tasks):
    return trips >= 2


def late(base, trips, tasks):
    """Wrong once every ring has come round; before that, the fault may not have
    been reached, and the machine model alone says."""
    return True if tasks >= 3 and trips * tasks > 2 * base.depth else None


def late_from_two(base, trips, tasks):
    return late(base, trips, tasks) if trips >= 2 else False


def late_off_period(base, trips, tasks):
    return late(base, trips, tasks) if trips % (2 * base.depth) else None


def off_period(base, trips, tasks):
    """A ring's position after a task is not a whole number of turns of slot and
    parity, and there is a next task."""
    return tasks >= 2 and trips % (2 * base.depth) != 0


class Kind:
    def __init__(self, name, edit, codes, wrong=always, only=None, but=()):
        self.name = name
        self.bases = [b for b in ALL if (b.name in only if only else True)
                      and b.name not in but]
        self.edit = edit
        self.codes = set(codes.split())
        self.wrong = wrong


def number(pattern, attribute, *changes):
    """On each line found, one mutant a change of the attribute's number."""
    return all_of(*[
        replace(pattern, rf"\b{attribute} = (\d+)",
                lambda m, f=f: f"{attribute} = {f(int(m.group(1)))}")
        for f in changes])
