#!/usr/bin/env python3
"""Each operator has a schedule that is taken and one that is refused.

Looked for in test/lit/schedule: a RUN line whose --schedule is taken counts for
every operator of that file, one that starts with `not` for the last.
"""

import glob
import os
import re
import subprocess
import sys

BIN = os.environ.get("EXO_BIN", "build/bin")
ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def operators():
    """The names at the left of the list, up to the other names."""
    command = [f"{BIN}/exo-opt", "--list-schedule-ops"]
    text = subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout
    lines = text.split("\nother names\n")[0].split("\n")
    return [line.split()[0] for line in lines if line and line[0] != " "]


def steps(text):
    """The operators of a schedule, in order."""
    names = []
    text = re.sub(r"\\\n", " ", text)
    for line in text.split("\n"):
        words = re.sub(r"^\s*\w+ = ", "", line).split()
        if words and words[0] in ("try", "repeat"):
            words = words[1:]
        names += words[:1]
    return names


def schedule_text(path, parts):
    """A part of the test, or a schedule that ships; none for one it makes."""
    name = os.path.basename(path)
    shipped = os.path.join(ROOT, "kernels", name)
    if name in parts or not os.path.exists(shipped):
        return parts.get(name, "")
    with open(shipped) as f:
        return f.read()


def read_test(text, taken, refused):
    parts = dict(re.findall(r"^//--- (\S+)\n(.*?)(?=^//--- |\Z)", text,
                            re.M | re.S))
    text = re.sub(r"\\\n\s*RUN:", "", text)
    for negated, path in re.findall(r"RUN: (not )?.*--schedule=(\S+)", text):
        names = steps(schedule_text(path, parts))
        if negated:
            refused.update(names[-1:])
        else:
            taken.update(names)


def main():
    taken, refused = set(), set()
    for path in glob.glob(os.path.join(ROOT, "test/lit/schedule/*.test")):
        with open(path) as f:
            read_test(f.read(), taken, refused)
    passed = failed = 0
    for name in operators():
        for what, names in (("taken", taken), ("refused", refused)):
            if name in names:
                passed += 1
            else:
                print(f"{name}: no test in which it is {what}")
                failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
