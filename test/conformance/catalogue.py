#!/usr/bin/env python3
"""The catalogue of conformance: test/conformance/catalogue/cases.txt.

Each line of that table is a case by section, class and name, with its verdict
and its program; the table says what the verdicts mean. A program is read and
tried alone, without the comments that expect errors, so that a case that is
lost, or is decided for another reason, is seen here. Cases of one section and
class have different names; every class of the table has a program for each.
The counts by section and class go before the last line,
`N passed, N failed, N skipped`."""

import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

EXPECTED = re.compile(r"\s*# expected-.*")
VERDICTS = ("accepted", "refused", "hazard", "undecided", "shows", "lowers",
            "runs", "proved", "elsewhere", "not-ours")
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(HERE, "catalogue", "cases.txt")
SECTIONS = ("12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.7")

Case = collections.namedtuple("Case", "section kind name verdict program texts")


def read_table():
    """(the cases, what is wrong with the table)"""
    cases, faults, seen = [], [], set()
    with open(TABLE, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split("|")]
            if len(fields) != 6 or fields[3] not in VERDICTS:
                faults.append(f"cases.txt:{number}: not a case: {line.strip()}")
                continue
            case = Case(*fields[:5], [t for t in fields[5].split(" & ") if t])
            if case[:3] in seen:
                faults.append(f"cases.txt:{number}: {case.name} stands twice")
            seen.add(case[:3])
            cases.append(case)
    for section in SECTIONS:
        if not any(case.section == section for case in cases):
            faults.append(f"no case of section {section}")
    return cases, faults


def path_of(name):
    if name.startswith("lit/"):
        return os.path.join(TOP, "test", name)
    if name.startswith("kernels/"):
        return os.path.join(TOP, name)
    return os.path.join(HERE, "catalogue", name)


def source_of(program):
    """The text of a program, or None."""
    place, *values = program.split()
    name, _, procedure = place.partition(":")
    if not os.path.exists(path_of(name)):
        return None
    with open(path_of(name), encoding="utf-8") as file:
        text = file.read()
    if procedure:
        parts = [part for part in text.split("// -----")
                 if re.search(rf"^def {procedure}\(", part, re.M)]
        if len(parts) != 1:
            return None
        text = EXPECTED.sub("", parts[0])
    values = dict(value.split("=", 1) for value in values)
    return re.sub(r"\$([A-Z]+)", lambda m: values[m.group(1)], text)


def run(tool, *args):
    """(exit status, everything printed)"""
    tool = os.path.join(os.environ.get("EXO_BIN", "build/bin"), tool)
    done = subprocess.run([tool, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          timeout=300, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def lacking(texts, output):
    """What is wrong with an output that is to contain some texts and lack
    others, or None."""
    for text in texts:
        if text.startswith("!") and text[1:] in output:
            return f"has '{text[1:]}'\n{output}"
        if not text.startswith("!") and text not in output:
            return f"has no '{text}'\n{output}"
    return None


def checked(path, texts, refused):
    status, output = run("exo-opt", path, "--pass-pipeline=check-par", "-o",
                         path + ".eir")
    if status != int(refused):
        return f"has exit status {status}\n{output}"
    return lacking(texts, output)


def not_proved(path, verdict, texts):
    sizes = [text for text in texts if text.startswith("--size=")]
    status, output = run("exo-check", path, *sizes)
    wanted = {"hazard": (1, "refuted"), "undecided": (3, "unknown")}[verdict]
    found = re.search(rf"^sync-check @\w+: {wanted[1]}", output, re.M)
    if status != wanted[0] or not found:
        return f"is not {wanted[1]} by sync-check\n{output}"
    return lacking([text for text in texts if text not in sizes], output)


def printed(path, texts, *options):
    status, output = run("exo-opt", path, *options)
    if status:
        return f"has exit status {status}\n{output}"
    return lacking(texts, output)


def runs(path, sizes, on_the_model):
    for size in (" ".join(sizes).split() or [None]):
        sized = ["--size", size] if size else []
        status, output = run("exo-check", path, *sized)
        if status:
            return f"is not proved at {size}: status {status}\n{output}"
        if not on_the_model:
            continue
        status, output = run("exo-run", path, "--level=async", "--check",
                             "--seeds=3", *sized)
        if status:
            return f"does not run at {size}: status {status}\n{output}"
    return None


def fault_of(case, scratch):
    """What is wrong with a case, or None."""
    if case.verdict == "not-ours":
        return None if case.texts else "gives no reason"
    if case.verdict == "elsewhere":
        path = os.path.join(TOP, case.program)
        if not case.texts or not os.path.exists(path):
            return "names no test"
        with open(path, encoding="utf-8") as file:
            return lacking(case.texts, file.read())
    source = source_of(case.program) if case.program else None
    if source is None:
        return "has no program"
    if not case.texts and case.verdict in (
            "refused", "hazard", "undecided", "shows", "lowers"):
        return "asks for no text"
    path = os.path.join(scratch, "_".join(case[:3]).replace(" ", "_") + ".exo")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    if case.verdict in ("accepted", "refused"):
        return checked(path, case.texts, case.verdict == "refused")
    if case.verdict in ("hazard", "undecided"):
        return not_proved(path, case.verdict, case.texts)
    if case.verdict == "shows":
        return printed(path, case.texts, "--emit=exo", "--annotate=tilings")
    if case.verdict == "lowers":
        return printed(path, case.texts,
                       "--pass-pipeline=lower-par-to-async")
    return runs(path, case.texts, case.verdict == "runs")


def main():
    cases, faults = read_table()
    failed = len(faults)
    for fault in faults:
        print(f"FAIL: {fault}")
    counts = {}
    jobs = int(os.environ.get("EXO_JOBS", 0)) or min(2, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for case, fault in zip(cases, pool.map(
                lambda case: fault_of(case, scratch), cases)):
            if fault:
                failed += 1
                print(f"FAIL: {case.section} {case.kind}: {case.name} {fault}")
            count = counts.setdefault(case[:2], collections.Counter())
            count[case.verdict] += 1
    for (section, kind), count in counts.items():
        print(f"{section} {kind}: " + ", ".join(
            f"{count[verdict]} {verdict}" for verdict in VERDICTS
            if count[verdict]))
    verdicts = collections.Counter(case.verdict for case in cases)
    print(f"{len(cases)} cases: " + ", ".join(
        f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS
        if verdicts[verdict]))
    print(f"{len(cases) + len(faults) - failed} passed, {failed} failed, "
          "0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
