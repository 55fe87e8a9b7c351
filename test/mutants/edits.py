"""Edits of a text by lines. Each gives a function from a base to its mutants,
[(place, text)]: the place is the line's number and what was done there."""
import re


def indent(line):
    return line[: len(line) - len(line.lstrip())]


def mutant(base, at, what, lines):
    if lines == base.lines:
        return []
    return [(f"line {at + 1}: {what}", "\n".join(lines))]


def unchanged(base):
    """The program itself."""
    return [("as it is", "\n".join(base.lines))]


def replace(pattern, old, new, count=0):
    """On each line found, one mutant: old becomes new."""

    def edit(base):
        made = []
        for i in base.find(pattern):
            line = re.sub(old, new, base.lines[i], count=count)
            what = f"{line.strip()[:60]}"
            made += mutant(base, i, what,
                           base.lines[:i] + [line] + base.lines[i + 1:])
        return made

    return edit


def drop(pattern):
    """Each line found is taken away."""

    def edit(base):
        made = []
        for i in base.find(pattern):
            old = base.lines[i]
            keep = not re.search(r"assert|async\.|host\.", old)
            line = [indent(old) + "pass"] if keep else []
            made += mutant(base, i, f"without {old.strip()[:60]}",
                           base.lines[:i] + line + base.lines[i + 1:])
        return made

    return edit


def where(text, edit, found=True):
    """The edit, of bases in which a line has the text, or none has."""

    def edit_those(base):
        return edit(base) if bool(base.find(text)) == found else []

    return edit_those


def under(pattern, head):
    """Each line found is put below a line of its own: an if or a loop."""

    def edit(base):
        made = []
        for i in base.find(pattern):
            line = base.lines[i]
            made += mutant(base, i, f"{head} {line.strip()[:50]}",
                           base.lines[:i]
                           + [indent(line) + head, "    " + line]
                           + base.lines[i + 1:])
        return made

    return edit


def move(pattern, target, after, block=False):
    """Each line found goes before or after the nearest line of the target,
    counted forward when it goes after one and backward when before; with block,
    an if on top goes along."""

    def edit(base):
        made = []
        for i in base.find(pattern):
            where = [j for j in base.find(target) if (j > i) == after]
            if not where:
                continue
            j = where[0] if after else where[-1]
            first = i
            if block and base.lines[i - 1].strip().startswith("if "):
                first = i - 1
            moved = base.lines[first:i + 1]
            shift = len(indent(base.lines[j])) - len(indent(moved[0]))
            moved = [" " * shift + line if shift > 0 else line[-shift:]
                     for line in moved]
            side = "after" if after else "before"
            what = f"{base.lines[i].strip()[:40]} {side} line {j + 1}"
            if after:
                text = (base.lines[:first] + base.lines[i + 1:j + 1] + moved
                        + base.lines[j + 1:])
            else:
                text = (base.lines[:j] + moved + base.lines[j:first]
                        + base.lines[i + 1:])
            made += mutant(base, i, what, text)
        return made

    return edit


def swap_lines(first, second):
    """Each line found changes places with the next line of the second."""

    def edit(base):
        made = []
        for i in base.find(first):
            where = [j for j in base.find(second) if j > i]
            if not where:
                continue
            j, lines = where[0], list(base.lines)
            lines[i], lines[j] = lines[j], lines[i]
            made += mutant(base, i, f"changed places with line {j + 1}", lines)
        return made

    return edit


def swap_words(pattern, one, other):
    """On all lines found at once, two words change places."""

    def edit(base):
        lines = list(base.lines)
        found = base.find(pattern)
        for i in found:
            lines[i] = re.sub(
                rf"\b({one}|{other})\b",
                lambda m: other if m.group(0) == one else one, lines[i])
        return mutant(base, found[0], f"{one} and {other} swapped",
                      lines) if found else []

    return edit


def twice(pattern):
    """Each line found is there two times."""

    def edit(base):
        return [m for i in base.find(pattern)
                for m in mutant(base, i,
                                f"twice {base.lines[i].strip()[:50]}",
                                base.lines[:i + 1] + base.lines[i:])]

    return edit


def all_of(*edits):
    """The mutants of several edits."""
    return lambda base: [m for edit in edits for m in edit(base)]
