#!/usr/bin/env python3
"""Every entry of the instruction library, in programs of its own, three ways.

    instructions.py [--all] [--only=TEXT] [--gpu=FOLDER] [--read=FOLDER]

body/machine: the checks prove the program, and the machine model, which runs
the lowered program, ends with what the bodies compute. ptxas: ptxas takes its
PTX, where there is one. gpu: it ran on the GPU and ended with the same. The
cases are made by the files in instructions/; each names the entries that it
is there for, and an entry of lib/ without a case is a failure.

Without options a sample; with --all, or EXO_LONG set, every case. Where this
machine has no GPU, --gpu writes each case with its PTX to FOLDER, with a script
that runs them on another, where only exo-run is needed (no LLVM, no Z3):

    EXO_RUN=build/bin/exo-run sh FOLDER/run.sh [JOBS]

and --read=FOLDER adds what that left in FOLDER/results to the table, which
--all and --read print whole; otherwise only the failures are."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "instructions"))

import ampere  # noqa: E402
import hopper  # noqa: E402
import merge  # noqa: E402
import tiles  # noqa: E402

SAMPLE = 40  # one case in so many, in a short run
COLUMNS = ("body/machine", "ptxas", "gpu")
MISSING = 4  # exit status of the tools
GROUP = 24  # cases a program on another machine

RUN_SH = """\
#!/bin/sh
# Runs the programs of this folder on the GPU: EXO_RUN=.. run.sh [JOBS]. A line
# `CASE pass` or `CASE fail` goes to results, what was printed to PROGRAM.log. A
# program of several cases that fails is run case by case.
cd "$(dirname "$0")" || exit 2
export EXO_RUN="${EXO_RUN:-exo-run}"
one() {
    name=$1
    shift
    members=$(sed -n "s/^$name: //p" members)
    if "$EXO_RUN" "$name.exo" "$@" --level=gpu --ptx="$name.ptx" --check \\
        >"$name.log" 2>&1; then
        for member in ${members:-$name}; do
            echo "$member pass"
        done
    elif [ -z "$members" ]; then
        echo "$name fail"
    else
        for member in $members; do
            (one "$member")
        done
    fi
}
if [ "$1" = --one ]; then
    shift
    one "$@"
    exit 0
fi
xargs -P "${1:-4}" -L 1 sh ./run.sh --one <programs >results
grep -c ' pass$' results
grep ' fail$' results
exit 0
"""


def cases():
    """All of them; each name once."""
    found = {}
    for module in (ampere, hopper, tiles):
        for case in module.cases():
            if case.name in found:
                raise ValueError(f"two cases have the name {case.name}")
            found[case.name] = case
    return list(found.values())


def tool(name):
    folder = os.environ.get("EXO_BIN", "build/bin")
    return os.path.join(folder, name)


def find_ptxas():
    for path in (os.environ.get("EXO_PTXAS"), shutil.which("ptxas"),
                 "/usr/local/cuda/bin/ptxas"):
        if path and os.path.exists(path):
            return path
    return None


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          timeout=600, check=False, errors="replace")
    return done.returncode, done.stdout


class Result:
    """A case's marks by column, and what was printed where one is FAIL."""

    def __init__(self, case):
        self.case = case
        self.marks = dict.fromkeys(COLUMNS, "-")
        self.output = ""

    def step(self, column, *command):
        """One command of a column; False when that fails. What lacks a part of
        this machine, as a GPU, leaves no mark."""
        status, output = run(*command)
        if status == MISSING:
            return False
        self.marks[column] = "FAIL" if status else "pass"
        if status:
            self.output += f"{' '.join(command)}: status {status}\n{output}"
        return status == 0


def try_case(case, folder, ptxas, here):
    """The case's marks; its program and PTX stay in the folder. here: run it on
    this machine's GPU, where there is one."""
    result = Result(case)
    base = os.path.join(folder, case.name)
    sizes = ["--size", case.sizes] if case.sizes else []
    with open(base + ".exo", "w", encoding="utf-8") as out:
        out.write(case.text)
    if result.step("body/machine", tool("exo-check"), base + ".exo", *sizes):
        result.step("body/machine", tool("exo-run"), base + ".exo", *sizes,
                    "--level=async", "--check")
    if not result.step("ptxas", tool("exo-translate"), base + ".exo",
                       "--to=ptx", "-o", base + ".ptx"):
        return result
    result.marks["ptxas"] = "-"
    if ptxas:
        result.step("ptxas", ptxas, "-arch=sm_90a", base + ".ptx", "-o",
                    "/dev/null")
    if here:
        result.step("gpu", tool("exo-run"), base + ".exo", *sizes,
                    "--level=gpu", f"--ptx={base}.ptx", "--check")
    return result


def instruction_names():
    """Every instruction of the library."""
    status, output = run(tool("exo-opt"), "--list-instructions=names")
    if status:
        raise RuntimeError(output)
    return output.split()


def missing(names, tried):
    """The entries without a case."""
    have = {entry for case in tried for entry in case.entries}
    return sorted(set(names) - have), sorted(have - set(names))


def read_results(folder):
    """Marks of a run on a GPU, by case."""
    marks = {}
    with open(os.path.join(folder, "results"), encoding="utf-8") as lines:
        for line in lines:
            name, mark = line.split()
            marks[name] = "FAIL" if mark == "fail" else mark
    return marks


def write_gpu(folder, results):
    """What run.sh needs beside the cases and their PTX: programs of several."""
    def path(name):
        return os.path.join(folder, name)

    good = [r.case for r in results if os.path.exists(path(r.case.name + ".ptx"))]
    with open(path("run.sh"), "w", encoding="utf-8") as out:
        out.write(RUN_SH)
    with open(path("programs"), "w", encoding="utf-8") as programs, \
            open(path("members"), "w", encoding="utf-8") as lists:
        for program, members in merge.groups(good, GROUP):
            sizes = f" --size {program.sizes}" if program.sizes else ""
            programs.write(f"{program.name}{sizes}\n")
            if len(members) == 1 and members[0] is program:
                continue
            names = " ".join(c.name for c in members)
            lists.write(f"{program.name}: {names}\n")
            base = path(program.name)
            with open(base + ".exo", "w", encoding="utf-8") as out:
                out.write(program.text)
            status, output = run(tool("exo-translate"), base + ".exo",
                                 "--to=ptx", "-o", base + ".ptx")
            if status:
                raise RuntimeError(output)


def print_table(results):
    """One row a case, one column a way."""
    width = max(len(r.case.name) for r in results)
    print(f"{'case':{width}}  {'  '.join(COLUMNS)}  entries")
    for r in results:
        marks = "  ".join(f"{r.marks[c]:{len(c)}}" for c in COLUMNS)
        print(f"{r.case.name:{width}}  {marks}  {' '.join(r.case.entries)}")
    for column in COLUMNS:
        counts = {}
        for r in results:
            counts[r.marks[column]] = counts.get(r.marks[column], 0) + 1
        text = ", ".join(f"{n} {mark}" for mark, n in sorted(counts.items()))
        print(f"{column}: {text}")


def options():
    """Options by name; unknown ones are an error."""
    found = {}
    for argument in sys.argv[1:]:
        match = re.fullmatch(r"--(all|only|gpu|read)(?:=(.*))?", argument)
        if not match:
            sys.exit(__doc__)
        found[match[1]] = match[2] or ""
    return found


def main():
    given = options()
    every = cases()
    lost, unknown = missing(instruction_names(), every)
    whole = "all" in given or bool(os.environ.get("EXO_LONG"))
    chosen = [c for c in every
              if (given["only"] in c.name if "only" in given else
                  whole or zlib.crc32(c.name.encode()) % SAMPLE == 0)]
    ptxas = find_ptxas()
    jobs = int(os.environ.get("EXO_JOBS", 0)) or 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.get("gpu") or scratch
        os.makedirs(folder, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            results = list(pool.map(
                lambda c: try_case(c, folder, ptxas, "gpu" not in given),
                chosen))
        if "gpu" in given:
            write_gpu(folder, results)
    marks = read_results(given["read"]) if "read" in given else {}
    for r in results:
        r.marks["gpu"] = marks.get(r.case.name, r.marks["gpu"])
    if "all" in given or "read" in given:
        print_table(results)
    failed = [r for r in results if "FAIL" in r.marks.values()]
    for r in failed:
        print(f"FAIL: {r.case.name} {r.marks}\n{r.output}")
    for name in lost:
        print(f"FAIL: no case for the instruction {name}")
    for name in unknown:
        print(f"FAIL: a case for {name}, which is no instruction")
    bad = len(failed) + len(lost) + len(unknown)
    absent = [c for c in COLUMNS if all(r.marks[c] == "-" for r in results)]
    for column in absent:
        print(f"skipped: instructions, {column}: not on this machine")
    print(f"{len(results) - len(failed)} passed, {bad} failed, "
          f"{len(absent)} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
