"""Writes the inputs of limits.test into a folder."""

import os
import sys


def write(folder, name, text):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def proc(body):
    return "proc @f(%n: size) {\n" + body + "\n}\n"


def nest(levels):
    return proc("ctl.if %n > 4 {\n" * levels + "}\n" * levels)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    write(folder, "nest-990.eir", nest(990))
    write(folder, "nest-1100.eir", nest(1100))
    write(folder, "brackets.eir",
          proc("ctl.assert " + "(" * 5000 + "%n > 1" + ")" * 5000))
    write(folder, "nots.eir", proc("ctl.assert " + "not " * 5000 + "%n > 1"))
    write(folder, "tuples.eir",
          proc("ctl.pass {a = " + "(" * 5000 + ")" * 5000 + "}"))
    write(folder, "terms.eir", proc("ctl.assert %n > " + "%n + " * 5000 + "1"))
    write(folder, "list.eir",
          proc("ctl.pass {a = (" + "1, " * 5000 + "1)}"))
    write(folder, "bytes.eir", bytes(range(256)) * 100)
    write(folder, "errors.eir", proc("a.b\n" * 5000))


main()
