"""Runs a command at a terminal of its own and types lines at it.

typing.py COMMAND ARG.. -- LINE..   In a line, <TAB> and <UP> are those keys.
Each line is typed when a prompt is there. Prints what the terminal shows,
without control sequences; a command that keeps silent for long is given up.
"""

import os
import pty
import re
import select
import sys

SILENCE = 60
KEYS = {"<TAB>": b"\t", "<UP>": b"\x1b[A"}


def read_until(fd, end):
    """What comes up to `end`, or until the other side is gone."""
    data = b""
    while not data.endswith(end):
        if not select.select([fd], [], [], SILENCE)[0]:
            raise SystemExit(f"no prompt after {data!r}")
        try:
            more = os.read(fd, 4096)
        except OSError:
            break
        if not more:
            break
        data += more
    return data


def keys(line):
    data = line.encode()
    for name, key in KEYS.items():
        data = data.replace(name.encode(), key)
    return data + b"\r"


def main():
    at = sys.argv.index("--")
    command, lines = sys.argv[1:at], sys.argv[at + 1:]
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "vt100"
        os.environ["COLUMNS"] = "200"
        os.execvp(command[0], command)
    shown = b""
    for line in lines:
        shown += read_until(fd, b"> ")
        os.write(fd, keys(line))
    shown += read_until(fd, b"\0")
    text = re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])|[\x07\r\x0f]",
                  b"", shown)
    sys.stdout.write(text.decode(errors="replace"))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    main()
