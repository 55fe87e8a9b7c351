#!/usr/bin/env python3
"""Every code that judges a program is reported for one.

The rows of test/conformance/catalogue/codes.txt tie each code of
verify/hazards.def to a program that is refused with it and one like it that is
not, or to the test that shows the code where no source text can. A code of
these groups without a row is a fault, and so is a row whose program is not
refused with its code. The last line is `N passed, N failed, N skipped`."""

import json
import os
import re
import sys
import tempfile

import catalogue

TABLE = os.path.join(catalogue.HERE, "catalogue", "codes.txt")
GROUPS = ("parse", "structure", "check-seq", "check-par",
          "lower-par-to-async", "warn", "sync-check", "check-async")
ROW = re.compile(r'^HAZARD\("([\w-]+)",\s*"([\w-]+)"', re.M)


def codes_of_table():
    """The codes of verify/hazards.def in the groups that judge programs."""
    path = os.path.join(catalogue.TOP, "verify", "hazards.def")
    with open(path, encoding="utf-8") as file:
        return [code for code, group in ROW.findall(file.read())
                if group in GROUPS]


def read_rows():
    with open(TABLE, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                yield [field.strip() for field in line.split("|")]


def codes_reported(scratch, program, command):
    """(the codes, everything printed), None for a program that is not there"""
    source = catalogue.source_of(program)
    if source is None:
        return None, f"there is no program {program}"
    path = os.path.join(scratch, re.sub(r"\W", "_", program) + ".exo")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    tool, *options = command.split()
    if tool == "exo-opt":
        options += ["-o", path + ".eir"]
    _, output = catalogue.run(tool, path, *options, "--diagnostics=json")
    codes = set()
    for line in output.splitlines():
        if line.startswith("{"):
            diag = json.loads(line)
            if diag["severity"] != "remark":
                codes.add(diag["code"])
    return codes, output


def fault_of(scratch, row):
    """What is wrong with a row, or None."""
    if len(row) != 4:
        return "has no four columns"
    code, program, command, other = row
    if program == "elsewhere":
        path = os.path.join(catalogue.TOP, command)
        if not os.path.exists(path):
            return f"names no test: {command}"
        with open(path, encoding="utf-8") as file:
            return catalogue.lacking([other], file.read())
    codes, output = codes_reported(scratch, program, command)
    if codes is None or code not in codes:
        return f"is not reported of {program}\n{output}"
    codes, output = codes_reported(scratch, other, command)
    if codes is None or code in codes:
        return f"is reported of {other}\n{output}"
    return None


def main():
    status, _ = catalogue.run("exo-opt", catalogue.path_of("kernels/saxpy.exo"),
                              "--diagnostics=json", "-o", os.devnull)
    rows = list(read_rows())
    if status == 4:
        print("skipped: built without JSON")
        print(f"0 passed, 0 failed, {len(rows)} skipped")
        return 0
    failed = 0
    named = [row[0] for row in rows]
    for code in codes_of_table():
        if code not in named:
            print(f"FAIL: {code} has no row in codes.txt")
            failed += 1
    for code in named:
        if code not in codes_of_table() or named.count(code) > 1:
            print(f"FAIL: codes.txt: {code} is no code, or stands twice")
            failed += 1
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for row in rows:
            fault = fault_of(scratch, row)
            if fault:
                print(f"FAIL: {row[0]} {fault}")
                wrong += 1
    print(f"{len(rows)} codes, each reported by a test")
    print(f"{len(rows) - wrong} passed, {wrong + failed} failed, 0 skipped")
    return 1 if wrong + failed else 0


if __name__ == "__main__":
    sys.exit(main())
