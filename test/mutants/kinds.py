"""What the tables of kinds share: the sizes at which a mutant is wrong, and a
row of the lowered ones."""
from edits import all_of, replace
from faults import CLUSTERS


def always(base, trips, tasks):
    return True


def never(base, trips, tasks):
    return False


def from_two(base, trips, tasks):
    return trips >= 2


def from_one(base, trips, tasks):
    return trips >= 1


def past_depth(base, trips, tasks):
    return trips > base.depth


def only_one(base, trips, tasks):
    return trips == 1


def ragged(base, trips, tasks):
    """Wrong where tiles have edges, or there are some along each dimension: at
    the derived sizes, and perhaps not at those of a base."""
    return None


def behind_first(wrong):
    """The same where copies go on behind a ring's first round, if that has some of
    its own; before, the machine model alone says which of them the fault is in."""
    def judged(base, trips, tasks):
        lines = base.lowered.lines if base.lowered else ()
        alone = trips * tasks <= base.depth \
            and any("once = True" in line for line in lines)
        return wrong(base, trips, tasks) and (None if alone else True)
    return judged


def late(base, trips, tasks):
    """Wrong once every ring has come round; before that, the fault may not have
    been reached, and the machine model alone says."""
    return True if tasks >= 3 and trips * tasks > 2 * base.depth else None


def late_off_round(base, trips, tasks):
    """A task that goes round whole rings may arrive on the slots in another order:
    all are free before the next, and the machine model says whether in time."""
    return late(base, trips, tasks) if trips % base.depth else None


def late_from_two(base, trips, tasks):
    return late(base, trips, tasks) if trips >= 2 else False


def late_off_period(base, trips, tasks):
    return late(base, trips, tasks) if trips % (2 * base.depth) else None


def off_period(base, trips, tasks):
    """A ring's position after a task is not a whole number of turns of slot and
    parity, and there is a next task, or perhaps a wait at the end."""
    if trips % (2 * base.depth) == 0:
        return False
    return True if tasks >= 2 else None if base.like in CLUSTERS else False


class Kind:
    """fault: that of faults.py, or none; name; edit; codes, of which one is
    expected; wrong: at which sizes; only, but: bases, otherwise all."""

    def __init__(self, fault, name, edit, codes, wrong=always, only=None,
                 but=()):
        self.fault = fault
        self.name = name
        self.only, self.but = only, but
        self.edit = edit
        self.codes = set(codes.split())
        self.wrong = wrong

    def concerns(self, base):
        return (self.only is None or base.like in self.only) \
            and base.like not in self.but


def number(pattern, attribute, *changes):
    """On each line found, one mutant a change of the attribute's number."""
    return all_of(*[
        replace(pattern, rf"\b{attribute} = (\d+)",
                lambda m, f=f: f"{attribute} = {f(int(m.group(1)))}")
        for f in changes])
