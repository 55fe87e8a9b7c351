"""Several cases in one program: starting a process and its GPU costs more than
most cases do. Each case's kernel stays one of its own; its arguments get the
case's number, by which a difference tells whose it is."""

import re

from cases import Case


def split(text):
    """A list's items, split at the commas outside brackets."""
    depth, start, items = 0, 0, []
    for at, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            items.append(text[start:at])
            start = at + 1
    return [item.strip() for item in items + [text[start:]]]


def renamed(case, number):
    """The case's parameters and body, with the number behind each argument."""
    match = re.fullmatch(r"def \w+\((.*?)\):\n(.*)", case.text, re.DOTALL)
    params, body = split(match[1]), match[2]
    for param in list(params):
        name = param.split(":")[0]
        word = re.compile(rf"(?<!')\b{name}\b(?![='])")  # no keyword, no string
        params = [word.sub(f"{name}_{number}", p) for p in params]
        body = word.sub(f"{name}_{number}", body)
    return params, body


def merge(name, cases):
    """One case with the kernels of all of them."""
    params, bodies = [], []
    for number, case in enumerate(cases):
        more, body = renamed(case, number)
        params += more
        bodies.append(body)
    head = ",\n        ".join(params)
    entries = tuple(entry for case in cases for entry in case.entries)
    return Case(name, entries, f"def {name}({head}):\n" + "".join(bodies))


def groups(cases, size):
    """Programs of up to `size` cases each, with their members; cases that have
    sizes stay alone."""
    alone = [c for c in cases if c.sizes]
    rest = [c for c in cases if not c.sizes]
    for at in range(0, len(rest), size):
        members = rest[at:at + size]
        yield merge(f"group_{at // size}", members), members
    for case in alone:
        yield case, [case]
