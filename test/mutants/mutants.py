"""Mutants of proved programs: each differs in one place from a program that is
right, in a way that real kernels have been wrong. Those that can go wrong must
be refused with the class of the fault, those that mean the same accepted, and
whatever the machine model shows wrong must have been refused at that size.

usage: mutants.py par|async [--kernels] [--places] [--bin=DIR] [--seed=N]
                  [--sample=N] [--sizes=N] [--seeds=N] [--only=TEXT]
                  [--base=TEXT]

Bases are those with the smallest tiles, or with --kernels the kernels that
ship. A mutant is checked at the sizes that the checks derive and at those of
its base, and run; of a kernel at the derived ones, and run where it is
accepted. --sample takes that many mutants, by the seed; --sizes so many of each
base's sizes, beside the derived ones (2 with --sample); otherwise all are run.
--seeds: of the machine model's schedules (5); with more, refused mutants are
run too, and the share that a schedule shows wrong is printed.
--only and --base take the kinds, or those of a fault, and the bases, whose name
has the text; --base the one of that name alone, if there is one. Prints a line for each fault of the checks, tables by kind and by
base, and the counts. Returns 1 when a mutant was missed, refused where it is right, or
refused with another class.

--places runs nothing: it counts the mutants of each fault of faults.py on each
base and kernel, and fails where one that can have the fault has no mutant.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import async_kinds
import faults
import par_kinds
from bases import BASES, KERNELS
from kinds import ragged

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIMIT = 300
SEEDS = 5
LEVELS = {"par": par_kinds, "async": async_kinds}


def jobs():
    """How many mutants are tried at once."""
    return int(os.environ.get("EXO_JOBS", 0)) or min(2, os.cpu_count() or 1)


class Tools:
    """Runs exo-check and exo-run from a folder; the latter with some seeds."""

    def __init__(self, folder, seeds):
        self.folder = folder
        self.seeds = seeds

    def run(self, tool, *arguments):
        try:
            return subprocess.run(
                [os.path.join(self.folder, tool), *arguments],
                capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess([], -1, "", "timeout")

    def many(self):
        return self.seeds > SEEDS

    def check(self, *arguments):
        """(verdict, codes): proved, refuted, unknown (its own code), or what
        went wrong."""
        done = self.run("exo-check", *arguments, "--diagnostics=json")
        codes = []
        for line in done.stderr.split("\n"):
            if line.startswith("{"):
                diag = json.loads(line)
                if diag["severity"] == "error":
                    codes.append(diag["code"])
        if done.returncode == 0:
            return "proved", codes
        if done.returncode == 1:
            return "refuted", codes
        if done.returncode == 3:
            return "unknown", codes + ["unknown"]
        return f"exit status {done.returncode}", codes

    def machine_is_right(self, path, sizes, base):
        """True, False, or None where the machine does not run it. A lowered
        text is held against the outputs of its base."""
        arguments = ["--size=" + sizes, "--level=async",
                     f"--seeds={self.seeds}", "--clusters=1"]
        if path.endswith(".exo"):
            arguments.append("--check")
        done = self.run("exo-run", path, *arguments)
        if done.returncode != 0:
            return False if "async, seed" in done.stderr else None
        if path.endswith(".exo"):
            return True
        if sizes not in base.results:
            right = self.run("exo-run", base.path, *arguments)
            base.results[sizes] = results(right.stdout)
        return results(done.stdout) == base.results[sizes]


def results(text):
    """The lines that name outputs and their hashes."""
    return [line for line in text.split("\n")
            if line and not line.startswith("async, seed")]


class Mutant:
    """A text, where it was changed, and what came out."""

    def __init__(self, kind, base, place, text):
        self.kind, self.base, self.place, self.text = kind, base, place, text
        self.faults = []
        self.refused = False
        self.ran = False
        self.shown = False

    def fault(self, what, text):
        self.faults.append((what, text))


def judge(mutant, verdict, codes, wrong, where):
    """Holds a verdict against what was expected: wrong, right, or None where
    the fault may not be reached at these sizes."""
    expected = mutant.kind.codes
    known = {"proved", "refuted"} | expected & {"unknown"}
    if verdict not in known:
        mutant.fault("failed", f"{where}: {verdict}")
    elif wrong is None and verdict == "proved":
        return
    elif wrong and verdict == "proved":
        mutant.fault("missed", f"{where}: accepted, expected "
                     + " or ".join(sorted(expected)))
    elif wrong is False and verdict != "proved":
        mutant.fault("over-strict", f"{where}: refused with "
                     + ", ".join(sorted(set(codes))))
    elif verdict != "proved" and not expected & set(codes):
        mutant.fault("misnamed", f"{where}: refused with "
                     + ", ".join(sorted(set(codes))) + ", expected "
                     + " or ".join(sorted(expected)))


def at_some(kind, wrong):
    """What is expected of the derived sizes, which have all that can occur."""
    if any(wrong) or kind.wrong is ragged:
        return True
    return None if None in wrong else False


def try_mutant(mutant, level, tools, chosen, folder, number):
    """Checks and runs one. What was accepted is run, to find what was missed;
    refused mutants of the source too, and with many seeds all, to see how many
    can be shown. The sizes of a kernel are large: the first with three tasks
    alone."""
    kind, base = mutant.kind, mutant.base
    path = os.path.join(folder, f"{number}.{level.ending}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(mutant.text)
    sizes = base.sizes()
    wrong = [kind.wrong(base, trips, tasks) for trips, tasks, _ in sizes]
    verdict, codes = tools.check(*level.arguments(base, path))
    judge(mutant, verdict, codes, at_some(kind, wrong), "at derived sizes")
    mutant.refused = verdict in ("refuted", "unknown")
    if not mutant.faults and codes and set(codes) & level.static:
        return
    if base in KERNELS:
        if verdict != "proved":
            return
        picked = [min(2, len(sizes) - 1)]
    else:
        picked = chosen(mutant, len(sizes))
    for i in picked:
        if base not in KERNELS:
            verdict, codes = tools.check(*level.arguments(base, path),
                                         "--size=" + sizes[i][2])
            judge(mutant, verdict, codes, wrong[i], sizes[i][2])
        if verdict != "proved" and level.ending == "eir" and not tools.many():
            continue
        right = tools.machine_is_right(path, sizes[i][2], base)
        mutant.ran |= right is not None
        if right is False:
            mutant.shown = True
            if verdict == "proved":
                mutant.fault("missed", f"{sizes[i][2]}: accepted, and wrong on "
                             "the machine model")


def spread(found):
    """Of places that differ in numbers alone the first and the last: a kernel
    that ships repeats itself."""
    alike = collections.OrderedDict()
    for place, text in found:
        alike.setdefault(re.sub(r"\d+", "#", place), []).append((place, text))
    return [m for like in alike.values() for m in like[:1] + like[1:][-1:]]


def all_mutants(level, bases, only):
    for kind in level.kinds:
        if only not in kind.name and only != kind.fault:
            continue
        for base in bases:
            if not kind.concerns(base):
                continue
            found = level.mutants(kind, base)
            if base in KERNELS:
                found = spread(found)
            for place, text in found:
                yield Mutant(kind, base, place, text)


def count_places(level, table, bases, mutants):
    """Prints how many mutants each fault has on each base, and returns how many
    are expected and how many of these are missing. `.`: the base cannot have
    the fault."""
    counts = collections.Counter((m.kind.fault, m.base.name) for m in mutants)
    expected, missing = 0, 0
    for fault, (words, where) in table.items():
        print(f"{fault}: {words}")
        cells = []
        for base in bases:
            n = counts[fault, base.name]
            expected += base.like in where
            if base.like in where and n == 0:
                missing += 1
                cells.append(f"{base.name}=NONE")
            elif n:
                cells.append(f"{base.name}={n}")
        print("    " + " ".join(cells))
    for kind in level.kinds:
        if kind.fault and kind.fault not in table:
            missing += 1
            print(f"'{kind.name}' is of no known fault: {kind.fault}")
        if kind not in {m.kind for m in mutants}:
            missing += 1
            print(f"'{kind.name}' finds no place")
    return expected, missing


COLUMNS = ["mutants", "killed", "equivalent", "missed", "over-strict",
           "misnamed", "failed", "shown"]


def print_rows(head, mutants, name):
    """A table of what became of the mutants, those of one name in a row."""
    rows = collections.OrderedDict()
    for m in mutants:
        row = rows.setdefault(name(m), collections.Counter())
        row["mutants"] += 1
        row["killed" if m.refused else "equivalent"] += 1
        row["shown"] += m.shown
        for what in {what for what, _ in m.faults}:
            row[what] += 1
    print(f"{head:52}" + "".join(f"{c:>12}" for c in COLUMNS))
    for title, row in rows.items():
        print(f"{title:52}" + "".join(f"{row[c]:12}" for c in COLUMNS))
    return sum(rows.values(), collections.Counter())


def print_table(mutants, seeds):
    print_rows("kind", mutants, lambda m: m.kind.name)
    total = print_rows("base", mutants, lambda m: m.base.name)
    print(", ".join(f"{total[c]} {c}" for c in COLUMNS[1:-1])
          + f"; {total['shown']} shown wrong by the machine")
    for what, refused in (("accepted", False), ("refused", True)):
        ran = [m for m in mutants if m.ran and m.refused == refused]
        wrong = sum(m.shown for m in ran)
        print(f"run with {seeds} seeds: {len(ran)} {what}, of these wrong "
              f"{wrong}" + (f" ({100 * wrong // len(ran)} %)" if ran else ""))


def named(bases, text):
    """The base of that name, otherwise those whose name has the text."""
    return [base for base in bases if base.name == text] \
        or [base for base in bases if text in base.name]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("level", choices=sorted(LEVELS))
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--sizes", type=int)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="")
    parser.add_argument("--base", default="")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--places", action="store_true")
    options = parser.parse_args()
    tools = Tools(options.bin, options.seeds)
    level = LEVELS[options.level].Level(tools)
    rng = random.Random(options.seed)
    bases = named(KERNELS if options.kernels else BASES, options.base)
    if options.places:
        bases = BASES + KERNELS
    mutants = list(all_mutants(level, bases, options.only))
    if options.places:
        expected, missing = count_places(
            level, faults.LEVELS[options.level], bases, mutants)
        print(f"{len(mutants)} mutants")
        print(f"{expected - missing} passed, {missing} failed, 0 skipped")
        return 1 if missing else 0
    if options.sample:
        rng.shuffle(mutants)
        mutants = mutants[: options.sample]

    few = options.sizes or (2 if options.sample else 0)
    picks = {m: rng.sample(range(24), few) for m in mutants}

    def chosen(mutant, n):
        """The sizes to run, by the seed alone."""
        return sorted({i % n for i in picks[mutant]}) if few else range(n)

    with tempfile.TemporaryDirectory() as folder:

        def attempt(numbered):
            number, mutant = numbered
            try_mutant(mutant, level, tools, chosen, folder, number)
            for what, text in mutant.faults:
                print(f"{what}: {mutant.kind.name}, {mutant.base.name} "
                      f"{mutant.place}: {text}", flush=True)

        with concurrent.futures.ThreadPoolExecutor(jobs()) as pool:
            list(pool.map(attempt, enumerate(mutants)))
    print_table(mutants, options.seeds)
    failed = sum(1 for m in mutants if m.faults) + (not mutants)
    print(f"seed {options.seed}")
    print(f"{max(len(mutants) - failed, 0)} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
