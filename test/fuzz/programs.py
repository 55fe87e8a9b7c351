#!/usr/bin/env python3
"""Random annotated programs against the checks and the machine model.

usage: test/fuzz/programs.py [--bin=FOLDER] [--count=N] [--seed=N] [--keep=DIR]
       test/fuzz/programs.py --print=SEED

The programs are those of generate.py. For each, no check may crash or run past
the limit, and one that every check has proved must compute on the machine
model, under three schedules and at two sizes where it has any, what it computes
sequentially. The text with derived.* attributes of one that is lowered passes
check-par too. What fails is kept as seed-N.exo in --keep. Printed are how many
programs were generated, accepted, refused, undecided, lowered (check-par proved
them) and run, for each feature how many programs with it were accepted, and
`N passed, N failed, N skipped` at the end. Fewer than two of five accepted is a
failure: a generator whose programs are refused shows nothing."""

import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import generate  # noqa: E402

LIMIT_S = 120
LEAST_ACCEPTED = 0.4


def run(command):
    """(exit status or None past the limit, output)"""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, f"ran past {LIMIT_S} s"


class Trial:
    """What became of one program: its kind, and what went wrong or None."""

    def __init__(self, folder, program, path):
        self.program, self.fault, self.runs = program, None, 0
        status, output = run([os.path.join(folder, "exo-check"), path])
        self.lowered = "check-par @random: proved" in output
        self.kind = {0: "accepted", 1: "refused", 3: "undecided"}.get(
            status, "failed")
        if self.kind == "failed":
            self.fault = f"exo-check: status {status}\n{output}"
        if self.lowered:
            self.compare_derived(folder, path)
        if self.kind != "accepted":
            return
        for size in program.size_run():
            sized = ["--size", size] if size else []
            status, output = run(
                [os.path.join(folder, "exo-run"), path, "--level=async",
                 "--check", "--seeds=3", *sized])
            self.runs += 3
            if status:
                self.kind = "failed"
                self.fault = (f"accepted, but exo-run {' '.join(sized)}: "
                              f"status {status}\n{output}")
                return

    def compare_derived(self, folder, path):
        """What the analysis writes down, it finds again."""
        tool, text = os.path.join(folder, "exo-opt"), path + ".eir"
        status, output = run([tool, path, "--print-derived", "-o", text])
        if status == 0:
            status, output = run([tool, text, "--pass-pipeline=check-par",
                                  "-o", os.devnull])
        if status:
            self.kind = "failed"
            self.fault = f"derived attributes: status {status}\n{output}"


def option(name, otherwise):
    for arg in sys.argv[1:]:
        if arg.startswith(f"--{name}="):
            return arg.split("=", 1)[1]
    return otherwise


def try_seed(folder, keep, seed):
    program = generate.Program(seed)
    path = os.path.join(keep, f"seed-{seed}.exo")
    with open(path, "w", encoding="utf-8") as file:
        file.write(program.text())
    trial = Trial(folder, program, path)
    if not trial.fault:
        os.remove(path)
        if os.path.exists(path + ".eir"):
            os.remove(path + ".eir")
    return trial


def report(trials):
    """Prints the counts; how many failed."""
    kinds = collections.Counter(trial.kind for trial in trials)
    lowered = sum(trial.lowered for trial in trials)
    runs = sum(trial.runs for trial in trials)
    print(f"{len(trials)} generated, " + ", ".join(
        f"{kinds[kind]} {kind}"
        for kind in ("accepted", "refused", "undecided", "failed")) +
        f", {lowered} lowered, {runs} runs")
    features = collections.Counter(), collections.Counter()
    for trial in trials:
        for feature in trial.program.features:
            features[0][feature] += 1
            features[1][feature] += trial.kind == "accepted"
    for feature, count in sorted(features[0].items()):
        print(f"  {feature}: {features[1][feature]} of {count} accepted")
    return kinds["failed"]


def main():
    if option("print", None) is not None:
        sys.stdout.write(generate.Program(int(option("print", "0"))).text())
        return 0
    folder = option("bin", os.environ.get("EXO_BIN", "build/bin"))
    first, count = int(option("seed", "1")), int(option("count", "1000"))
    jobs = int(os.environ.get("EXO_JOBS", 0)) or min(2, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        keep = option("keep", scratch)
        trials = list(pool.map(
            lambda seed: try_seed(folder, keep, seed),
            range(first, first + count)))
    for seed, trial in enumerate(trials, first):
        if trial.fault:
            print(f"FAIL: seed {seed}: {trial.fault[:2000]}")
    failed = report(trials)
    accepted = sum(trial.kind == "accepted" for trial in trials)
    if accepted < LEAST_ACCEPTED * count:
        print(f"FAIL: {accepted} of {count} accepted are too few")
        failed += 1
    print(f"{count - min(failed, count)} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
