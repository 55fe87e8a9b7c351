#!/usr/bin/env python3
"""Every code that a diagnostic is reported with has one row in
verify/hazards.def, so that JSON can name the rule."""

import os
import re
import sys

LAYERS = ("ir", "passes", "verify", "codegen", "runtime", "tools")
ROW = re.compile(r'^HAZARD\("([a-z-]+)"', re.M)
# A call of a reporting function: any arguments, the code, more arguments.
REPORT = re.compile(
    r'\b(?:diag_(?:error|warning|remark)|\w+_error|sc_require|sc_answer)\s*\('
    r'(?:[^()";]|\((?:[^()]|\([^()]*\))*\))*?"([a-z][a-z-]*)"\s*,')


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(os.path.dirname(here))
    with open(os.path.join(top, "verify", "hazards.def")) as table:
        rows = ROW.findall(table.read())
    faults = 0
    for code in sorted(set(rows)):
        if rows.count(code) > 1:
            print(f"verify/hazards.def: '{code}' has {rows.count(code)} rows")
            faults += 1
    for layer in LAYERS:
        for folder, _, names in os.walk(os.path.join(top, layer)):
            for name in sorted(names):
                if not name.endswith(".c"):
                    continue
                path = os.path.join(folder, name)
                with open(path) as source:
                    codes = set(REPORT.findall(source.read()))
                for code in sorted(codes - set(rows)):
                    print(f"{os.path.relpath(path, top)}: reports '{code}', "
                          "which has no row in verify/hazards.def")
                    faults += 1
    if not rows:
        print("verify/hazards.def: no row found")
        faults += 1
    print("0 passed, 1 failed, 0 skipped" if faults
          else "1 passed, 0 failed, 0 skipped")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
