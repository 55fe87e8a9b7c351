#!/usr/bin/env python3
"""Checks what is a matter of text alone in the C files.

At most 80 columns and 1200 lines, no tab, no trailing blank, no marker of
unfinished work, and no exit() outside tools/ (a forked copy ends by _exit()).
"""

import os
import re
import sys

FOLDERS = ("ir", "passes", "verify", "codegen", "runtime", "tools", "test")
LINE_RULES = (
    (re.compile(r"\t"), "a tab"),
    (re.compile(r"[ \t]+$"), "a trailing blank"),
    (re.compile(r"^.{81}"), "more than 80 columns"),
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "a marker of unfinished work"),
)
EXIT = re.compile(r"(?<![\w.>])exit\s*\(")
LONGEST_FILE = 1200


def check_file(top, path):
    """The number of faults in one file, each printed."""
    with open(os.path.join(top, path), encoding="utf-8") as file:
        lines = file.read().split("\n")
    faults = 0
    rules = list(LINE_RULES)
    if not path.startswith(("tools/", "test/")) and path.endswith(".c"):
        rules.append((EXIT, "exit() outside tools/"))
    for number, line in enumerate(lines, 1):
        for rule, what in rules:
            if rule.search(line):
                print(f"{path}:{number}: {what}")
                faults += 1
    if len(lines) > LONGEST_FILE + 1:
        print(f"{path}: {len(lines) - 1} lines, more than {LONGEST_FILE}")
        faults += 1
    return faults


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(here)
    faults = 0
    for top_folder in FOLDERS:
        for folder, _, names in os.walk(os.path.join(top, top_folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.relpath(os.path.join(folder, name), top)
                    faults += check_file(top, path)
    print("0 passed, 1 failed, 0 skipped" if faults
          else "1 passed, 0 failed, 0 skipped")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
