#!/usr/bin/env python3
"""Checks who includes whom.

The arrows are tools -> codegen, runtime, verify -> passes -> ir, codegen and
verify apart; every project header is included by its path from the top
folder. A foreign library is known to one folder alone.
"""

import os
import re
import sys

ARROWS = {
    "ir": {"ir"},
    "passes": {"ir", "passes"},
    "verify": {"ir", "passes", "verify"},
    "codegen": {"ir", "passes", "codegen"},
    "runtime": {"ir", "runtime"},
    "tools": {"ir", "passes", "verify", "codegen", "runtime", "tools"},
}
# A folder that only some may look into, although the arrow allows it.
INNER = {"verify/smt/": ("verify/smt/", "tools/")}
FOREIGN = {
    "llvm-c/": ("codegen/",),
    "llvm/": (),
    "z3": ("verify/smt/",),
    "cuda": ("runtime/",),
    "jansson.h": ("tools/",),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def fault_of(path, quote, name):
    """What is wrong with path's include of name, or None."""
    layer = path.split("/")[0]
    for prefix, homes in FOREIGN.items():
        if name.startswith(prefix) and not path.startswith(homes):
            allowed = ", ".join(homes) or "no folder"
            return f"'{name}' may be included in {allowed} only"
    if quote == "<":
        return None
    target = name.split("/")[0]
    if "/" not in name or target not in ARROWS:
        return f"'{name}' is no path from the top folder into a layer"
    if target not in ARROWS[layer]:
        allowed = ", ".join(sorted(ARROWS[layer]))
        return f"{layer} includes '{name}', but only {allowed} are below it"
    for inner, homes in INNER.items():
        if name.startswith(inner) and not path.startswith(homes):
            return f"'{name}' may be included in {', '.join(homes)} only"
    return None


def check_file(top, path):
    """The number of wrong includes in one file, each printed."""
    faults = 0
    with open(os.path.join(top, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = INCLUDE.match(line)
            fault = found and fault_of(path, *found.groups())
            if fault:
                print(f"{path}:{number}: {fault}")
                faults += 1
    return faults


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(os.path.dirname(here))
    faults = 0
    for layer in ARROWS:
        for folder, _, names in os.walk(os.path.join(top, layer)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def")):
                    path = os.path.relpath(os.path.join(folder, name), top)
                    faults += check_file(top, path)
    print("0 passed, 1 failed, 0 skipped" if faults
          else "1 passed, 0 failed, 0 skipped")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
